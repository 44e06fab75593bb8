"""What whoever makes or activates a version should know of it: segments that never start, names that are alike."""

from __future__ import annotations

from collections.abc import Mapping

from lenience.policy.words import plural
from lenience.segments.alike import told_alike
from lenience.segments.starting import known_to_lose
from lenience.service.specification import PolicySpecification
from lenience.service.tables import SolvedTable


def cautions(specification: PolicySpecification, tables: Mapping[str, SolvedTable]) -> list[str]:
    """Warnings about a version, from its specification and the solved table of each segment."""
    found = told_alike(tables)
    warnings = [] if found is None else [found]
    if specification.constraints.exploration_floor > 0:
        return warnings
    closed = {name: table for name, table in tables.items() if table.closed}
    losing = [name for name, table in closed.items() if known_to_lose(table.prior, table.cost)]
    rare = [name for name in closed if name not in losing]
    if losing:
        warnings.append(f"{_never_start(losing, len(tables))}: by what is believed beforehand they almost surely lose.")
    if rare:
        warnings.append(
            f"{_never_start(rare, len(tables))}: too few will come, for what is believed beforehand, to be worth a "
            "first acceptance. Beliefs that borrow from other segments, coarser segments or an exploration floor would "
            "open them."
        )
    return warnings


def _never_start(names: list[str], segments: int) -> str:
    shown = ", ".join(repr(name) for name in names[:5]) + (" …" if len(names) > 5 else "")
    return f"{len(names):,} of {segments:,} segments {plural(len(names), 'never starts', 'never start')} ({shown})"

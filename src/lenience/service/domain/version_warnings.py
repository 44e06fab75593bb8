"""What whoever makes or activates a version should know of it: segments that never start, names that are alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lenience.core.formatting import counted, plural
from lenience.segments.similar_names import describe_similar_names
from lenience.segments.starting import known_to_lose
from lenience.service.domain.rule import Counts
from lenience.service.domain.solved_tables import SolvedTable
from lenience.service.domain.specification import PolicySpecification


def version_warnings(specification: PolicySpecification, tables: Mapping[str, SolvedTable]) -> list[str]:
    """Warnings about a version, from its specification and the solved table of each segment."""
    warning = describe_similar_names(tables)
    warnings = [] if warning is None else [warning]
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


def dropped_segment_warnings(segments: Mapping[str, Counts], remaining: Collection[str]) -> list[str]:
    """A warning about segments that the ruling version has, another one lacks, and of which something is known.

    >>> dropped_segment_warnings({"old": Counts(successes=2), "young": Counts(pending=1), "new": Counts()}, ["young"])
    ["This version has no segment 'old' (0 outcomes pending, 2 known): once it rules, nobody of it can be decided, ..."]
    """
    known = {
        name: (one.pending, one.successes + one.failures) for name, one in segments.items() if name not in remaining
    }
    lost = [
        f"{name!r} ({counted(pending, 'outcome')} pending, {outcomes:,} known)"
        for name, (pending, outcomes) in known.items()
        if pending or outcomes
    ]
    if not lost:
        return []
    shown = ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")
    return [
        f"This version has no {plural(len(lost), 'segment')} {shown}: once it rules, nobody of it can be decided, and "
        "what was learnt there is not used."
    ]


def _never_start(names: list[str], segments: int) -> str:
    shown = ", ".join(repr(name) for name in names[:5]) + (" …" if len(names) > 5 else "")
    return f"{len(names):,} of {segments:,} segments {plural(len(names), 'never starts', 'never start')} ({shown})"

"""What the person who creates or activates a version must know: segments that never start, and what is proved."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lenience.core.formatting import counted, plural
from lenience.segments.similar_names import describe_similar_names
from lenience.segments.starting import known_to_lose
from lenience.service.domain.exposure_tables import EstimatedTable
from lenience.service.domain.late_offer_tables import EstimatedLateOfferTable
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.rule import Counts, SegmentRule
from lenience.service.domain.solved_tables import SolvedTable
from lenience.service.domain.specification import PolicySpecification


def version_warnings(specification: PolicySpecification, tables: Mapping[str, SolvedTable]) -> list[str]:
    """Return warnings about a version, from its specification and the solved table of each segment."""
    warning = describe_similar_names(tables)
    warnings = [] if warning is None else [warning]
    estimated = [name for name, table in tables.items() if isinstance(table, EstimatedTable | EstimatedLateOfferTable)]
    if estimated:
        warnings.append(
            f"{len(estimated):,} of {len(tables):,} segments {plural(len(estimated), 'is', 'are')} too large to solve "
            f"exactly ({_shown(estimated)}). Limits there are estimates, and the certificate states their error."
        )
    if specification.constraints.exploration_floor > 0:
        return warnings
    model = specification.pooled_model(list(tables))
    if model is not None:
        start = model.start({})
        borrowed = {name: model.borrowed(start, name) for name in tables}
        closed = {
            name: table
            for name, table in tables.items()
            if table.limit(borrowed[name].successes, borrowed[name].outcomes - borrowed[name].successes) == 0
        }
    else:
        closed = {name: table for name, table in tables.items() if table.closed}
    losing = [name for name, table in closed.items() if model is None and _known_to_lose(table)]
    rare = [name for name in closed if name not in losing]
    if losing:
        warnings.append(f"{_never_start(losing, len(tables))}: almost certainly a loss, given the prior.")
    if rare:
        borrow = "history_model shared or curve" if model is None else "the history of some segments"
        warnings.append(
            f"{_never_start(rare, len(tables))}: given the prior, too few applicants are expected for a first "
            f"acceptance to pay. To open them, use {borrow}, coarser segments, or an exploration "
            f"floor{', or offer smaller amounts' if specification.objective.offers else ''}."
        )
    return warnings


def proved_segments(specification: PolicySpecification, tables: Mapping[str, SolvedTable]) -> int:
    """Return the number of segments whose decisions are all proved optimal; none if features decide."""
    return 0 if specification.feature_spec is not None else sum(table.proved for table in tables.values())


def _known_to_lose(table: SolvedTable) -> bool:
    """Return whether almost certainly every offer loses, or everybody does if all have one cost."""
    offers = table.offers
    return known_to_lose(table.prior, table.cost if offers is None else min(offers.cost))


def beyond_table_warnings(rules: Mapping[str, SegmentRule], counts: Mapping[str, Counts]) -> list[str]:
    """Return a warning about segments with more outcomes than a table for offers values, e.g. after an import.

    Only tables of earlier versions of the software have such a limit.
    """
    beyond = {
        name: rule.table.rows
        for name, rule in rules.items()
        if isinstance(rule.table, OfferTable)
        and not rule.table.values_any_number
        and counts[name].good + counts[name].bad >= rule.table.rows
        and rule.table.share_accepted(counts[name].good, counts[name].bad, counts[name].pending) < 1.0
    }
    if not beyond:
        return []
    return [
        f"{counted(len(beyond), 'segment')} {plural(len(beyond), 'has', 'have')} more outcomes than the "
        f"{min(beyond.values()):,} for which this version values further ones ({_shown(list(beyond))}). There it "
        "accepts only offers that pay by themselves."
    ]


def dropped_segment_warnings(segments: Mapping[str, Counts], remaining: Collection[str]) -> list[str]:
    """Return a warning about segments of the active version, with outcomes, that another version lacks.

    >>> dropped_segment_warnings({"old": Counts(successes=2), "young": Counts(pending=1), "new": Counts()}, ["young"])
    ["This version has no segment 'old' (0 outcomes pending, 2 known). Once it is active, it cannot ..."]
    """
    known = {
        name: (counts.pending, counts.successes + counts.failures)
        for name, counts in segments.items()
        if name not in remaining
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
        f"This version has no {plural(len(lost), 'segment')} {shown}. Once it is active, it cannot decide for "
        f"{plural(len(lost), 'this segment', 'these segments')}, and does not use the outcomes recorded there."
    ]


def _never_start(names: list[str], segments: int) -> str:
    return (
        f"{len(names):,} of {segments:,} segments {plural(len(names), 'never starts', 'never start')} ({_shown(names)})"
    )


def _shown(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (" …" if len(names) > 5 else "")

"""Regions without outcomes: kinds of applicants of whom no outcome is known, and what is tried there.

A region has one condition on a feature, or two on different features. The regions are found one after the other: each
is the one with most applicants that no earlier region holds. A second condition must add half as many applicants
again, because one condition is easier to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from lenience.core.formatting import counted, percent
from lenience.service.domain.feature_parts import FeatureParts, parts_by_quantiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.models.feature_columns import RowEncoding

    Rows = NDArray[np.float64]
    Flags = NDArray[np.bool_]

MOST_REGIONS = 6
RANGES = 8  # of a number
LEAST, LEAST_SHARE = 10, 0.03  # applicants of a region
MORE = 1.5  # times the applicants that a second condition must give
MOST_PAIRED = 400  # conditions of which pairs are tried


class RegionDecision(NamedTuple):
    """A decision: whether it was accepted, also to learn, whether its outcome is known, and the estimate."""

    accepted: bool
    to_learn: bool  # although not above the break-even
    known: bool
    mean: float
    n: float


class UnlabelledRegion(msgspec.Struct, frozen=True):
    """Applicants of whom no outcome is known, and how many of them were accepted, also to learn.

    ``expected`` is the mean of their expected success rates, and ``evidence`` the median of how many similar outcomes
    the estimates are worth.
    """

    where: str
    features: list[str]
    applicants: int
    accepted: int
    to_learn: int
    expected: float
    evidence: float
    sentence: str


class Condition(NamedTuple):
    """A condition on one feature: who fulfils it, and its words."""

    feature: int
    holds: Flags
    words: str


def unlabelled_regions(
    encoding: RowEncoding, rows: Rows, decisions: list[RegionDecision], enough: float = float("inf")
) -> list[UnlabelledRegion]:
    """Return the largest regions without outcomes, at most six.

    Parameters
    ----------
    encoding : RowEncoding
        The features.
    rows : ndarray
        The encoded features of applicants.
    decisions : list of RegionDecision
        The decision on each.
    enough : float, optional
        Evidence from before that counts as outcomes, in similar outcomes. By default no evidence is enough.

    Returns
    -------
    list of UnlabelledRegion
        The regions, the largest first. None if no outcome is known at all, because then everyone is in one.

    Examples
    --------
    >>> from lenience.models.feature_columns import FeatureColumn, RowEncoding
    >>> encoding = RowEncoding([FeatureColumn("income", unit="USD")])
    >>> rows = encoding.rows([{"income": 1000.0 * i} for i in range(80)])
    >>> decided = [RegionDecision(i >= 30 or i == 25, i == 25, i >= 30, i / 80, 4.0) for i in range(80)]
    >>> print(unlabelled_regions(encoding, rows, decided)[0].sentence)
    Income below 30,000 USD: 30 applicants, no outcome yet. 1 accepted to learn. The model expects 18.1% on average,
    from as much evidence as 4 similar outcomes.
    """
    import numpy as np

    known = np.array([one.known for one in decisions], dtype=bool)
    if not known.any():
        return []
    before = np.array([one.n for one in decisions]) >= enough
    labelled = known | before
    conditions = _conditions(parts_by_quantiles(encoding, rows, RANGES), rows)
    least = max(LEAST, LEAST_SHARE * len(rows))
    conditions = [one for one in conditions if one.holds.sum() >= least]
    left = np.ones(len(rows), dtype=bool)
    regions: list[UnlabelledRegion] = []
    while conditions and len(regions) < MOST_REGIONS:
        found = _largest(conditions, labelled, left, least)
        if not found:
            break
        holds = np.logical_and.reduce([one.holds for one in found])
        left &= ~holds
        names = [encoding.columns[one.feature].name for one in found]
        members = [one for one, inside in zip(decisions, holds, strict=True) if inside]
        regions.append(_region(" and ".join(one.words for one in found), names, members))
    return sorted(regions, key=lambda region: -region.applicants)


def segments_without_outcomes(decisions: dict[str, list[RegionDecision]]) -> list[UnlabelledRegion]:
    """Return the segments of whom no outcome is known, the largest first: regions of a policy with segments.

    >>> rejected = RegionDecision(False, False, False, 0.4, 2.0)
    >>> [region.where for region in segments_without_outcomes({"A": [rejected] * 12, "B": [rejected] * 3})]
    ['A']
    """
    without = [
        _region(name, [], members)
        for name, members in decisions.items()
        if len(members) >= LEAST and not any(one.known for one in members)
    ]
    return sorted(without, key=lambda region: -region.applicants)[:MOST_REGIONS]


def _conditions(parts: list[FeatureParts], rows: Rows) -> list[Condition]:
    """Return all conditions on one feature: ranges that are open at one end, single ranges, and single values."""
    conditions = []
    for i, each in enumerate(parts):
        own, last = each.of(rows), each.known - 1
        spans = [(part, part) for part in range(each.size)]
        if each.edges:
            spans += [(0, part) for part in range(1, last)] + [(part, last) for part in range(1, last)]
        elif not each.block.column.values:
            spans = [(each.missing, each.missing)]
        conditions += [Condition(i, (own >= low) & (own <= high), each.words(low, high)) for low, high in spans]
    return conditions


def _largest(conditions: list[Condition], labelled: Flags, left: Flags, least: float) -> list[Condition]:
    """Return the conditions of the region without outcomes that has most of the applicants who are left."""
    import numpy as np

    holds = np.array([one.holds for one in conditions], dtype=np.float32)
    alone = np.where((holds @ labelled.astype(np.float32)) == 0.0, holds @ left.astype(np.float32), 0.0)
    best = int(alone.argmax())
    single = [conditions[best]] if alone[best] >= least else []
    if len(conditions) > MOST_PAIRED:
        return single
    outcomes = (holds * labelled) @ holds.T
    together = np.where(outcomes == 0.0, (holds * left) @ holds.T, 0.0)
    of = np.array([one.feature for one in conditions])
    together[of[:, None] == of[None, :]] = 0.0
    # A pair that contains a region of one condition says nothing more.
    empty = (holds @ labelled.astype(np.float32)) == 0.0
    together[empty, :], together[:, empty] = 0.0, 0.0
    one, other = (int(each) for each in np.unravel_index(together.argmax(), together.shape))
    most = together[one, other]
    if most >= least and most >= MORE * alone[best]:
        return [conditions[each] for each in sorted((one, other))]
    return single


def _region(where: str, features: list[str], members: list[RegionDecision]) -> UnlabelledRegion:
    import statistics

    accepted, to_learn = sum(one.accepted for one in members), sum(one.to_learn for one in members)
    expected = statistics.fmean(one.mean for one in members)
    evidence = statistics.median(one.n for one in members)
    name = where[0].upper() + where[1:]
    taken = "Nobody was accepted."
    if accepted:
        all_to_learn = "to learn" if to_learn == accepted else ""
        taken = f"{accepted:,} accepted {all_to_learn}".rstrip()
        taken += f", {to_learn:,} of them to learn." if 0 < to_learn < accepted else "."
    size = round(evidence)
    worth = f"as much evidence as {counted(size, 'similar outcome')}" if size else "hardly any evidence"
    return UnlabelledRegion(
        name,
        features,
        len(members),
        accepted,
        to_learn,
        expected,
        evidence,
        f"{name}: {counted(len(members), 'applicant')}, no outcome yet. {taken} The model expects {percent(expected)} "
        f"on average, from {worth}.",
    )

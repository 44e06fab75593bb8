"""What was decided about groups that nobody decided by: measures by monitored attribute, each with an interval.

The counts are exact; an interval says how much chance alone could change a rate. Two things stay unknown whatever the
number of decisions, and have bounds instead:

- the group of some applicants. Of u_a accepted and u_r rejected applicants without the attribute, any number may belong
  to a group with a_g accepted of n_g, so its acceptance is between a_g / (n_g + u_r) and (a_g + u_a) / (n_g + u_a);
- the outcome of those who were rejected or are still open (selective labels). They may all fail or all succeed.

Acceptance of the deserving needs the outcomes of the rejected. The estimate takes each applicant to succeed as often as
its segment does; within a segment the policy does not choose, so those accepted there stand for all. The bounds need no
such assumption.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations

import msgspec

from lenience.analysis.proportions import CONFIDENCE, difference_interval, rate_interval, ratio_interval
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError

UNKNOWN = ""  # the name of the group of those whose attribute is unknown
JOINED = " × "  # between the values of several attributes
FOUR_FIFTHS = 0.8


class GroupCounts(msgspec.Struct, frozen=True):
    """The applicants of one group in one segment, and what became of them.

    Parameters
    ----------
    arrivals, accepted : int
        How many arrived, and how many of them were accepted.
    successes, failures : int
        Known outcomes of the accepted.
    early_arrivals, early_accepted : int
        How many of them were in the first half of the group's applicants.
    amounts : int
        How many of the accepted have an amount.
    amount, amount_squares : float
        The sum of their amounts, and of the squares.
    profits : int
        How many outcomes have a profit in money.
    profit, profit_squares : float
        The sum of the profits, and of the squares.

    Examples
    --------
    >>> (GroupCounts(10, 4, 3, 1) + GroupCounts(5, 5)).accepted
    9
    """

    arrivals: int = 0
    accepted: int = 0
    successes: int = 0
    failures: int = 0
    early_arrivals: int = 0
    early_accepted: int = 0
    amounts: int = 0
    amount: float = 0.0
    amount_squares: float = 0.0
    profits: int = 0
    profit: float = 0.0
    profit_squares: float = 0.0

    def __add__(self, other: GroupCounts) -> GroupCounts:
        """Return the counts of both together."""
        return GroupCounts(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


Cells = Mapping[tuple[str, str], GroupCounts]  # by group and segment; the group UNKNOWN is that of unknown attributes


class Measure(msgspec.Struct, frozen=True):
    """A number with its 95% interval.

    Parameters
    ----------
    value : float
        The number.
    interval : Bounds
        Where it could be by chance alone.
    """

    value: float
    interval: Bounds


class GroupMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a group.

    Parameters
    ----------
    name : str
        The value of the attribute, or the values of several, joined by ×.
    counts : GroupCounts
        The counts of all its segments together.
    share : float
        Its share of the applicants whose attribute is known.
    acceptance : Measure
        The share accepted.
    acceptance_bounds : Bounds
        What its acceptance can be if applicants with an unknown attribute belong to it.
    early, late, change : Measure or None
        Acceptance in the first and the second half of its applicants, and late minus early. None with one applicant.
    deserving_acceptance : Measure or None
        The share accepted of those who would succeed, if each applicant succeeds as often as its segment. None if no
        outcome is known in its segments.
    deserving_bounds : Bounds
        The same without that assumption.
    success : Measure or None
        The success rate of its accepted applicants with an outcome.
    expected_success : float or None
        The success rate of the same applicants if each succeeds as often as its segment.
    success_bounds : Bounds
        The success rate of all its applicants, whatever the unknown outcomes are.
    outcome_unknown : float
        The share of its applicants whose outcome nobody knows: rejected, or accepted and still open.
    first_accepted : int or None
        The first applicant of the group who was accepted: 1 if it was the very first. None if nobody was.
    wait : Bounds or None
        95% interval of the mean number of applicants until one is accepted, from the first acceptance alone.
    amount : Measure or None
        The mean amount of an accepted applicant.
    profit : Measure or None
        The mean profit of an outcome.
    """

    name: str
    counts: GroupCounts
    share: float
    acceptance: Measure
    acceptance_bounds: Bounds
    early: Measure | None
    late: Measure | None
    change: Measure | None
    deserving_acceptance: Measure | None
    deserving_bounds: Bounds
    success: Measure | None
    expected_success: float | None
    success_bounds: Bounds
    outcome_unknown: float
    first_accepted: int | None
    wait: Bounds | None
    amount: Measure | None
    profit: Measure | None

    @property
    def calibration(self) -> Measure | None:
        """Observed minus expected success rate: below 0, the group succeeds less often than its segments."""
        if self.success is None or self.expected_success is None:
            return None
        shift = self.expected_success
        interval = Bounds(self.success.interval.lower - shift, self.success.interval.upper - shift)
        return Measure(self.success.value - shift, interval)


class GroupComparison(msgspec.Struct, frozen=True):
    """The acceptance of a group compared with the group that is accepted most.

    Parameters
    ----------
    name, most : str
        The group, and the group that is accepted most.
    ratio, difference : Measure
        Its rate divided by that of the other group, and minus it.
    difference_bounds : Bounds
        What the difference can be if the unknown attributes were known.
    """

    name: str
    most: str
    ratio: Measure
    difference: Measure
    difference_bounds: Bounds

    @property
    def four_fifths(self) -> str:
        """Whether the ratio is below 4/5, a convention of US employment guidance: below, unsure or not below."""
        if self.ratio.value >= FOUR_FIFTHS:
            return "not below"
        return "below" if self.ratio.interval.upper < FOUR_FIFTHS else "unsure"


class MonitoredGroups(msgspec.Struct, frozen=True):
    """The measures of all groups of an attribute, or of combinations of several.

    Parameters
    ----------
    attributes : tuple of str
        The attributes.
    groups : list of GroupMeasures
        The groups, the largest first.
    unknown : GroupCounts
        The applicants whose group is unknown.
    comparisons : list of GroupComparison
        Each group but the one accepted most, compared with that one.
    cells : mapping
        The counts by group and segment that they were computed from.
    """

    attributes: tuple[str, ...]
    groups: list[GroupMeasures]
    unknown: GroupCounts
    comparisons: list[GroupComparison]
    cells: dict[tuple[str, str], GroupCounts]

    @property
    def unknown_share(self) -> float:
        """The share of all applicants whose group is unknown."""
        known = sum(group.counts.arrivals for group in self.groups)
        total = known + self.unknown.arrivals
        return self.unknown.arrivals / total if total else 0.0

    def comparison(self, name: str) -> GroupComparison | None:
        """Return the comparison of a group.

        Parameters
        ----------
        name : str
            The group.

        Returns
        -------
        GroupComparison or None
            The comparison, or None for the group accepted most.
        """
        return next((row for row in self.comparisons if row.name == name), None)


def attribute_sets(names: Sequence[str], most: int = 5) -> list[tuple[str, ...]]:
    """Return what groups can be made of: each attribute, each pair of the first ones, and all of these together.

    Parameters
    ----------
    names : sequence of str
        The attributes.
    most : int, optional
        How many of them are combined.

    Returns
    -------
    list of tuple of str
        The attributes of each set of groups.

    Examples
    --------
    >>> attribute_sets(["sex", "race", "age"])[3:]
    [('sex', 'race'), ('sex', 'age'), ('race', 'age'), ('sex', 'race', 'age')]
    """
    some = tuple(names[:most])
    singles: list[tuple[str, ...]] = [(name,) for name in names]
    return singles + list(combinations(some, 2)) + ([some] if len(some) > 2 else [])


def measure_groups(
    cells: Cells,
    attributes: Sequence[str] = ("group",),
    first_accepted: Mapping[str, int] | None = None,
    rates: Mapping[str, tuple[float, float]] | None = None,
    early: Mapping[str, tuple[int, int]] | None = None,
) -> MonitoredGroups:
    """Compute the measures of all groups from counts by group and segment.

    Parameters
    ----------
    cells : mapping of (str, str) to GroupCounts
        The counts of each group in each segment. The group "" has the applicants whose attribute is unknown.
    attributes : sequence of str, optional
        The names of the attributes that make the groups.
    first_accepted : mapping of str to int, optional
        The first applicant of each group who was accepted, counted from 1.
    rates : mapping of str to (float, float), optional
        The success rate of each segment and its variance, e.g. of a belief. By default they come from the outcomes in
        ``cells``, and segments without any are left out of the acceptance of the deserving.
    early : mapping of str to (int, int), optional
        The number of applicants in the first half of each group, and how many of them were accepted. By default they
        are the sums of those in ``cells``.

    Returns
    -------
    MonitoredGroups
        The groups with their measures, and each compared with the group accepted most.

    Raises
    ------
    InputError
        If no applicant has a known group.

    Examples
    --------
    >>> cells = {
    ...     ("f", "low"): GroupCounts(100, 40, 30, 10),
    ...     ("m", "low"): GroupCounts(50, 20, 16, 4),
    ...     ("m", "high"): GroupCounts(50, 50, 45, 5),
    ...     ("", "low"): GroupCounts(10, 5),
    ... }
    >>> result = measure_groups(cells, ["sex"])
    >>> for group in result.groups:
    ...     print(f"{group.name} {group.acceptance.value:.0%} {group.acceptance_bounds.lower:.1%}")
    f 40% 38.1%
    m 70% 66.7%
    >>> result.comparison("f").four_fifths, round(result.unknown_share, 3)
    ('below', 0.048)
    """
    names = sorted({group for group, _ in cells if group != UNKNOWN})
    totals = {name: _total(counts for (group, _), counts in cells.items() if group == name) for name in names}
    totals = {name: counts for name, counts in totals.items() if counts.arrivals}
    for name, (arrivals, accepted) in (early or {}).items():
        if name in totals:
            totals[name] = msgspec.structs.replace(totals[name], early_arrivals=arrivals, early_accepted=accepted)
    if not totals:
        raise InputError.because(
            f"must be known for some applicants, to measure fairness by {', '.join(attributes)}",
            "monitored",
            code="insufficient_data",
        )
    unknown = _total(counts for (group, _), counts in cells.items() if group == UNKNOWN)
    everyone = sum(counts.arrivals for counts in totals.values())
    known_rates = {**segment_rates(cells), **(rates or {})}
    first = first_accepted or {}
    groups = [
        _measures(name, cells, counts, everyone, unknown, known_rates, first.get(name))
        for name, counts in totals.items()
    ]
    groups.sort(key=lambda group: (-group.counts.arrivals, group.name))
    return MonitoredGroups(tuple(attributes), groups, unknown, _comparisons(groups, unknown), dict(cells))


def segment_rates(cells: Cells) -> dict[str, tuple[float, float]]:
    """Return the success rate of each segment with outcomes, and its variance, from a flat prior.

    >>> segment_rates({("f", "low"): GroupCounts(9, 8, 5, 3), ("m", "low"): GroupCounts(9, 1, 1, 0)})["low"][0]
    0.6363636363636364
    """
    rates = {}
    for segment in {segment for _, segment in cells}:
        both = _total(counts for (_, own), counts in cells.items() if own == segment)
        good, bad = both.successes + 1.0, both.failures + 1.0
        if both.successes + both.failures:
            n = good + bad
            rates[segment] = (good / n, good * bad / (n * n * (n + 1)))
    return rates


def rows_to_cells(
    groups: Sequence[Sequence[object]],
    accepted: Sequence[object],
    outcomes: Sequence[object] | None = None,
    segments: Sequence[Hashable] | None = None,
    amounts: Sequence[float | None] | None = None,
) -> tuple[dict[tuple[str, str], GroupCounts], dict[str, int]]:
    """Count rows, in the order of their arrival, by group and segment.

    Parameters
    ----------
    groups : sequence of sequences
        The columns of the attributes. A row is unknown if one of them is missing.
    accepted : sequence of bool
        Who was accepted.
    outcomes : sequence of bool or None, optional
        The outcomes of the accepted; None if not known yet.
    segments : sequence, optional
        The segment of each row; by default all are in one.
    amounts : sequence of float or None, optional
        The amount of each row.

    Returns
    -------
    tuple
        The counts by group and segment, and the first accepted applicant of each group.

    Examples
    --------
    >>> cells, first = rows_to_cells([["f", None, "f"]], [False, True, True], [None, True, False])
    >>> cells["f", "all"].accepted, cells["", "all"].successes, first
    (1, 1, {'f': 2})
    """
    names = [_joined(values) for values in zip(*groups, strict=True)]
    size = Counter(names)
    place: Counter[str] = Counter()
    first: dict[str, int] = {}
    sums: dict[tuple[str, str], list[float]] = {}
    for i, name in enumerate(names):
        place[name] += 1
        yes = bool(accepted[i])
        outcome = outcomes[i] if outcomes is not None and yes else None
        early = 2 * place[name] <= size[name]
        amount = amounts[i] if amounts is not None and yes else None
        if yes and name != UNKNOWN:
            first.setdefault(name, place[name])
        good, bad = outcome is not None and bool(outcome), outcome is not None and not outcome
        one = (1, yes, good, bad, early, early and yes, amount is not None, amount or 0.0, (amount or 0.0) ** 2)
        row = sums.setdefault((name, "all" if segments is None else str(segments[i])), [0] * 9)
        for k, number in enumerate(one):
            row[k] += number
    names_of_counts = GroupCounts.__struct_fields__[:7]
    cells = {
        key: GroupCounts(
            **{name: int(number) for name, number in zip(names_of_counts, row, strict=False)},
            amount=row[7],
            amount_squares=row[8],
        )
        for key, row in sums.items()
    }
    return cells, first


def _joined(values: Sequence[object]) -> str:
    from lenience.files.vocabulary import is_missing

    if any(is_missing(value) for value in values):
        return UNKNOWN
    return JOINED.join(str(value).strip() for value in values)


def _measures(
    name: str,
    cells: Cells,
    counts: GroupCounts,
    everyone: int,
    unknown: GroupCounts,
    rates: Mapping[str, tuple[float, float]],
    first: int | None,
) -> GroupMeasures:
    own = {segment: cell for (group, segment), cell in cells.items() if group == name}
    known = counts.successes + counts.failures
    rejected, is_open = counts.arrivals - counts.accepted, counts.accepted - known
    early = late = change = None
    if counts.early_arrivals:
        second = (counts.accepted - counts.early_accepted, counts.arrivals - counts.early_arrivals)
        halves = (*second, counts.early_accepted, counts.early_arrivals)
        early = rate_measure(counts.early_accepted, counts.early_arrivals)
        late = rate_measure(*second)
        change = Measure(late.value - early.value, difference_interval(*halves))
    outcomes = {segment: cell.successes + cell.failures for segment, cell in own.items()}
    expected = sum(n * rates[segment][0] for segment, n in outcomes.items() if n) / known if known else None
    return GroupMeasures(
        name=name,
        counts=counts,
        share=counts.arrivals / everyone,
        acceptance=rate_measure(counts.accepted, counts.arrivals),
        acceptance_bounds=_acceptance_bounds(counts, unknown),
        early=early,
        late=late,
        change=change,
        deserving_acceptance=_deserving(own, rates),
        deserving_bounds=Bounds(
            _share(counts.successes, counts.successes + rejected), 1.0 if counts.successes + is_open else 0.0
        ),
        success=rate_measure(counts.successes, known) if known else None,
        expected_success=expected,
        success_bounds=Bounds(
            counts.successes / counts.arrivals, (counts.successes + rejected + is_open) / counts.arrivals
        ),
        outcome_unknown=(rejected + is_open) / counts.arrivals,
        first_accepted=first,
        wait=None if first is None else waiting_interval(first),
        amount=_mean(counts.amounts, counts.amount, counts.amount_squares),
        profit=_mean(counts.profits, counts.profit, counts.profit_squares),
    )


def rate_measure(hits: int, total: int) -> Measure:
    """Return a rate with Wilson's interval.

    >>> rate_measure(1, 2).value
    0.5
    """
    return Measure(hits / total if total else 0.0, rate_interval(hits, total))


def waiting_interval(first: int) -> Bounds:
    """Return the 95% interval of the mean number of applicants until one is accepted, if the first was this one.

    It is exact for applicants with equal chances: the first acceptance then has a geometric distribution.

    >>> interval = waiting_interval(5)
    >>> round(interval.lower, 2), round(interval.upper)
    (1.66, 198)
    """
    tail = (1 - CONFIDENCE) / 2
    most = 1.0 if first == 1 else -math.expm1(math.log(tail) / (first - 1))
    least = -math.expm1(math.log1p(-tail) / first)
    return Bounds(1 / most, 1 / least)


def _acceptance_bounds(counts: GroupCounts, unknown: GroupCounts) -> Bounds:
    rejected = unknown.arrivals - unknown.accepted
    return Bounds(
        counts.accepted / (counts.arrivals + rejected),
        (counts.accepted + unknown.accepted) / (counts.arrivals + unknown.accepted),
    )


def _deserving(own: Mapping[str, GroupCounts], rates: Mapping[str, tuple[float, float]]) -> Measure | None:
    """Return the share accepted of those who would succeed, with an interval by the delta method."""
    from scipy.special import ndtri

    used = [(cell.accepted, cell.arrivals, *rates[segment]) for segment, cell in own.items() if segment in rates]
    accepted = sum(yes * rate for yes, _, rate, _ in used)
    total = sum(arrivals * rate for _, arrivals, rate, _ in used)
    if total <= 0:
        return None
    value = accepted / total
    # Two sources of chance: the rates of the segments, and who happened to arrive and be accepted.
    spread = sum(((yes - value * arrivals) / total) ** 2 * variance for yes, arrivals, _, variance in used)
    spread += value * (1 - value) / total
    off = float(ndtri(0.5 + CONFIDENCE / 2)) * math.sqrt(spread)
    return Measure(value, Bounds(max(value - off, 0.0), min(value + off, 1.0)))


def _mean(number: int, total: float, squares: float) -> Measure | None:
    """Return a mean with its interval from Student's distribution, or None without numbers."""
    from scipy.special import stdtrit

    if not number:
        return None
    mean = total / number
    if number == 1:
        return Measure(mean, Bounds(-math.inf, math.inf))
    deviation = math.sqrt(max(squares - number * mean * mean, 0.0) / (number - 1) / number)
    off = float(stdtrit(number - 1, 0.5 + CONFIDENCE / 2)) * deviation
    return Measure(mean, Bounds(mean - off, mean + off))


def _comparisons(groups: Sequence[GroupMeasures], unknown: GroupCounts) -> list[GroupComparison]:
    best = max(groups, key=lambda group: group.acceptance.value)
    if best.counts.accepted == 0:
        return []
    rows = []
    for group in groups:
        if group is best:
            continue
        numbers = (group.counts.accepted, group.counts.arrivals, best.counts.accepted, best.counts.arrivals)
        mine, theirs = group.acceptance_bounds, best.acceptance_bounds
        rows.append(
            GroupComparison(
                group.name,
                best.name,
                Measure(group.acceptance.value / best.acceptance.value, ratio_interval(*numbers)),
                Measure(group.acceptance.value - best.acceptance.value, difference_interval(*numbers)),
                # The unknown that raise one rate are accepted, and those that lower the other are rejected.
                Bounds(mine.lower - theirs.upper, mine.upper - theirs.lower),
            )
        )
    return rows


def _total(cells: Iterable[GroupCounts]) -> GroupCounts:
    total = GroupCounts()
    for counts in cells:
        total = total + counts
    return total


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0

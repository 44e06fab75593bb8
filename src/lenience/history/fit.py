"""Count past decisions by segment and turn them into beliefs (:func:`fit_history`).

Counting is a GROUP BY. The engine that holds the data does it, through Ibis: DuckDB (embedded), or PostgreSQL, Spark,
BigQuery or Snowflake by connection URL. Only one row per segment comes back, whatever the size of the table.

A row is one past applicant: the segment, whether the applicant was accepted, the outcome (missing for rejected
applicants and for outcomes that are not known yet), and the date of the decision. A *label* is the outcome of an
accepted applicant.

With a maturity, only decisions that are at least that old have labels. A loan of last month that has not defaulted is
pending, not a success. A recent failure does not count either: if it did, recent months would show failures only. A
half-life gives older labels less weight. The counts n and s are then fractions, which a belief allows.

Every row is counted once, as used or as bad, and the counts are shown. A row is bad if it has no segment, no valid
decision or outcome, an outcome on a rejection, no date where one is needed, or a date in the future. Bad rows are never
used, and always reported; ``strict`` raises an error instead. A date in the future does not become the date of the
count: one typing error (2062 for 2026) would make every label of the file old enough.

:mod:`lenience.history.counts` explains how the counting is made fast.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.formatting import counted, percent, plural
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.core.validation import listed
from lenience.files.date_formats import SUCH, Order, check_order
from lenience.files.economics import Economics, RateUnit, Unit, with_economics
from lenience.files.source import open_source, reading, repetitions, without_engine_warnings
from lenience.history.ages import CAME, check_maturing, with_date_codes, with_outcome_dates
from lenience.history.counts import (
    BAD_ROWS,
    KINDS,
    NO_ECONOMICS,
    OUTCOME_DATES,
    count_rows,
    strange_dates,
    strange_economics,
    used_rows,
)
from lenience.history.dates import check_readable, check_span, in_days, make_clock
from lenience.history.economics import SegmentEconomics, group_offers, merged_offers
from lenience.history.immaturity import Immaturity, judge_maturity
from lenience.history.maturing import Maturing
from lenience.history.price_dependence import BAND, PriceDependence, price_dependence, with_price_bands
from lenience.history.statuses import GivenWords, check_words, strange_values
from lenience.models.maturing import Known, TimingCurves
from lenience.segments.similar_names import SimilarNamesWarning, describe_similar_names

if TYPE_CHECKING:
    from lenience.core.objective import Objective
    from lenience.segments.segments import Segments

SEPARATOR = " / "  # between the values of several segment columns


class SegmentHistory(msgspec.Struct, frozen=True):
    """The past of one segment: how many applied, how many were accepted, and their outcomes.

    Parameters
    ----------
    segment : str
        The name of the segment.
    arrivals : int
        The number of applicants, including rejected ones.
    accepted : int
        The number of accepted applicants.
    labels : int
        The number of accepted applicants with a mature outcome.
    successes : int
        How many of the labels are successes.
    pending : int
        The number of accepted applicants whose outcome is missing or not mature.
    n : float
        The labels, weighted by age if a half-life was given.
    s : float
        The successes, weighted by age if a half-life was given.
    values : tuple of str
        The values of the segment columns.
    expired : int
        How many of the pending have been without an outcome for longer than ``expire_after``.
    economics : SegmentEconomics, optional
        The offers of the applicants, if gain and loss or the terms of loans were given.
    recent : int
        How many of the applicants arrived in the twelve months before the date of the count; 0 without dates.

    Examples
    --------
    >>> past = {"region": ["north", "north"], "accepted": [1, 1], "repaid": [1, None]}
    >>> [north] = fit_history(past, segment="region", accepted="accepted", outcome="repaid").segments
    >>> north.arrivals, north.labels, north.successes, north.pending
    (2, 1, 1, 1)
    """

    segment: str
    arrivals: int
    accepted: int
    labels: int
    successes: int
    pending: int
    n: float
    s: float
    values: tuple[str, ...] = ()
    expired: int = 0
    economics: SegmentEconomics | None = None
    recent: int = 0

    @property
    def out(self) -> int:
        """The number of labels that are still expected."""
        return self.pending - self.expired

    @property
    def rate(self) -> float | None:
        """The success rate of the labels; None without labels."""
        return self.successes / self.labels if self.labels else None


NAMED_UP_TO = 5_000_000  # rows: in a larger source, values without a meaning are counted but not named
MANY = 0.02  # if a larger share of the rows is left out, the shares of the segments are biased

MEANINGS = {"accepted": "accepted or rejected", "outcome": "success, failure or not known yet"}


class History(msgspec.Struct, frozen=True):
    """Past decisions by segment, and the rows that could not be used.

    Parameters
    ----------
    segments : tuple of SegmentHistory
        The counts of each segment, sorted by name.
    rows : int
        The number of rows read.
    bad : dict of str to int
        The number of unusable rows of each kind, e.g. ``{"segment": 2, "outcome": 0, …}``.
    later : int
        The number of rows left out because they were decided after ``as_of``.
    as_of : datetime or None
        The date of the count; None without a time column.
    columns : tuple of str
        The columns that make a segment.
    maturity : float, optional
        Days until an outcome is certain.
    strange : tuple of (str, int)
        The most frequent values of the outcome column that have no meaning, each with the number of its rows.
    strange_dates : tuple of str
        The most frequent texts of the time column that are not dates.
    strange_decisions : tuple of (str, int)
        The most frequent values of the accepted column that have no meaning, each with the number of its rows.
    repeated : int
        The number of rows that are exact copies of other rows; 0 if most rows of the source are alike.
    notes : tuple of str
        How a file was read, e.g. that its numbers have decimal commas.
    most_offers : int
        The largest number of offers that were kept for each segment.
    strange_economics : tuple of (str, int)
        The most frequent texts in the columns of gain, loss or loans that are no valid numbers, each with its column
        and the number of its rows.
    maturing : Maturing, optional
        When outcomes arrive, and the ages of the pending.
    immaturity : Immaturity, optional
        How far known outcomes alone are from what is expected in the end, if the difference is notable.
    price_dependence : tuple of PriceDependence
        With gains and losses: how much success inside segments depends on the break-even and on the amount at stake.

    Examples
    --------
    >>> past = {"region": ["north", "north"], "in": [1, 1], "good": [1, 0]}
    >>> fit_history(past, "region", "in", "good")["north"].rate
    0.5
    """

    segments: tuple[SegmentHistory, ...]
    rows: int
    bad: dict[str, int]
    later: int
    as_of: dt.datetime | None
    columns: tuple[str, ...] = ()
    maturity: float | None = None
    strange: tuple[tuple[str, int], ...] = ()
    strange_dates: tuple[str, ...] = ()
    strange_decisions: tuple[tuple[str, int], ...] = ()
    repeated: int = 0
    notes: tuple[str, ...] = ()
    most_offers: int = 25
    strange_economics: tuple[tuple[str, int], ...] = ()
    maturing: Maturing | None = None
    immaturity: Immaturity | None = None
    price_dependence: tuple[PriceDependence, ...] = ()

    @property
    def applied(self) -> Maturing | None:
        """When outcomes arrive, if the beliefs include what the pending say at their age."""
        return self.maturing if self.maturing is not None and self.maturing.applied else None

    @property
    def last_year(self) -> int | None:
        """The number of applicants in the last twelve months; None if the dates span less, or there are none."""
        recent = sum(row.recent for row in self.segments)
        return recent if 0 < recent < sum(row.arrivals for row in self.segments) else None

    @property
    def bad_rows(self) -> int:
        """The number of rows that could not be used."""
        return sum(self.bad.values())

    @property
    def unread(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """Values without a meaning, for each column where they cost so many rows that shares are biased.

        The keys are ``accepted`` and ``outcome``.
        """
        words = {"accepted": self.strange_decisions, "outcome": self.strange}
        return {kind: values for kind, values in words.items() if self.bad[kind] > MANY * self.rows}

    @property
    def has_offers(self) -> bool:
        """Whether the offers of the applicants are known."""
        return bool(self.segments) and all(row.economics is not None for row in self.segments if row.arrivals)

    def offers(self) -> dict[str, Offers]:
        """Return the offers of each segment's applicants, including rejected ones.

        Returns
        -------
        dict of str to Offers
            The offers by segment.

        Raises
        ------
        InputError
            If the history has neither gain and loss nor the terms of loans.

        Examples
        --------
        >>> past = {"region": ["n", "n"], "in": [1, 0], "good": [1, None], "won": [20, 50]}
        >>> history = fit_history(past, "region", "in", "good", gain="won", loss=80, currency="$")
        >>> history.offers()["n"].amount
        (100.0, 130.0)
        """
        self._check_offers()
        return {row.segment: row.economics.offers for row in self.segments if row.economics is not None}

    def offers_of_all(self) -> Offers:
        """Return the offers of all applicants together, compressed to a few.

        Returns
        -------
        Offers
            The offers.

        Raises
        ------
        InputError
            If the history has neither gain and loss nor the terms of loans.

        Examples
        --------
        >>> past = {"region": ["n", "s"], "in": [1, 1], "good": [1, 0], "won": [20, 50]}
        >>> fit_history(past, "region", "in", "good", gain="won", loss=80).offers_of_all().share
        (0.5, 0.5)
        """
        self._check_offers()
        parts = [(row.economics.offers, float(row.arrivals)) for row in self.segments if row.economics is not None]
        return merged_offers(parts, self.most_offers)

    def offers_error(self) -> float:
        """Return how far applicants' offers are from those of their segment, on average, in gain and in loss.

        A policy for the segments' offers earns at most this much less for each applicant than one for the exact ones.

        Returns
        -------
        float
            Money an applicant; 0 if every applicant's own offer is among those of the segment.

        Examples
        --------
        >>> past = {"region": ["n", "n"], "in": [1, 1], "good": [1, 0], "won": [20, 50]}
        >>> fit_history(past, "region", "in", "good", gain="won", loss=80, most_offers=1).offers_error()
        15.0
        """
        self._check_offers()
        total = sum(row.arrivals for row in self.segments)
        return sum(row.economics.error * row.arrivals for row in self.segments if row.economics is not None) / total

    def beliefs(self, prior: Belief | None = None) -> dict[str, Belief]:
        """Return the belief about each segment: the prior plus the segment's own labels.

        With ``maturing``, the pending count too, according to their age.

        Parameters
        ----------
        prior : Belief, optional
            The belief before any label; Beta(1, 1) by default.

        Returns
        -------
        dict of str to Belief
            The belief by segment.

        Examples
        --------
        >>> past = {"region": ["north", "north"], "in": [1, 1], "good": [1, 0]}
        >>> fit_history(past, "region", "in", "good").beliefs(Belief(8, 6))
        {'north': Belief(n=10.0, s=7.0)}
        """
        base = Belief(2, 1) if prior is None else check_prior(prior)
        return {row.segment: self._matured(row, Belief(base.n + row.n, base.s + row.s)) for row in self.segments}

    def _matured(self, row: SegmentHistory, belief: Known) -> Known:
        """Return the belief after the pending of a segment, if they count."""
        return belief if self.applied is None else self.applied.belief(row.segment, belief)

    def rates(self) -> dict[str, float]:
        """Return the success rate of each segment: of its labels or, with ``maturing``, as the pending let expect.

        Returns
        -------
        dict of str to float
            The rate by segment; 0 without an outcome.

        Examples
        --------
        >>> past = {"region": ["north", "north"], "in": [1, 1], "good": [1, 0]}
        >>> fit_history(past, "region", "in", "good").rates()
        {'north': 0.5}
        """
        matured = {} if self.applied is None else self.beliefs()
        return {
            row.segment: matured[row.segment].mean if matured and row.accepted else row.rate or 0.0
            for row in self.segments
        }

    @property
    def overall_rate(self) -> float:
        """The success rate of all accepted applicants together, by :meth:`rates`."""
        rates, accepted = self.rates(), sum(row.accepted for row in self.segments)
        return sum(row.accepted * rates[row.segment] for row in self.segments) / max(accepted, 1)

    @property
    def mean_delay(self) -> float | None:
        """The mean days from a decision to its outcome, the pending included; None if their ages do not count."""
        return None if self.applied is None else self.applied.mean_delay(self.overall_rate)

    def shares(self) -> dict[str, float]:
        """Return each segment's share of all applicants, including rejected ones.

        Returns
        -------
        dict of str to float
            The share by segment.

        Examples
        --------
        >>> past = {"region": ["north", "south"], "in": [1, 0], "good": [1, None]}
        >>> fit_history(past, "region", "in", "good").shares()
        {'north': 0.5, 'south': 0.5}
        """
        total = sum(row.arrivals for row in self.segments)
        return {row.segment: row.arrivals / total for row in self.segments if row.arrivals}

    def divide(
        self,
        objective: Objective,
        prior: Belief | MixtureBelief | None = None,
        group: str | Sequence[str] = (),
        own_offers: bool = True,
    ) -> Segments:
        """Return the segments with their shares and beliefs, ready to be solved.

        Parameters
        ----------
        objective : Objective
            The objective of the whole population, e.g. ``Discounted(cost=0.8, discount=0.99)``. If it has offers, e.g.
            ``Discounted(offers=history.offers_of_all(), discount=0.99)``, and the history knows the offers of its
            applicants, every segment gets its own offers instead.
        prior : Belief or MixtureBelief, optional
            The belief before any label; Beta(1, 1) by default. With a mixture, labels that contradict the prior make
            the alternative take over.
        group : str or sequence of str, optional
            The segment column, or columns, that hold the group of a segment.
        own_offers : bool, default True
            Whether segments get their own offers. With False every segment keeps those of the objective.

        Returns
        -------
        Segments
            The segments.

        Examples
        --------
        >>> from lenience import Discounted
        >>> past = {"region": ["north", "south"], "in": [1, 1], "good": [1, 0]}
        >>> fit_history(past, "region", "in", "good").divide(Discounted(cost=0.8, discount=0.99)).names
        ['north', 'south']

        With a gain and a loss for each row, values are in money:

        >>> past |= {"won": [20, 50], "lost": [80, 90]}
        >>> history = fit_history(past, "region", "in", "good", gain="won", loss="lost", currency="$")
        >>> cells = history.divide(Discounted(offers=history.offers_of_all(), discount=0.99))
        >>> cells["south"].objective.offers.amount, round(cells.solve().value().midpoint)
        ((140.0,), 112)
        """
        from lenience.segments.segments import Segments

        shares = self.shares()
        known: Mapping[str, Belief | MixtureBelief]
        if isinstance(prior, MixtureBelief):
            known = {row.segment: self._matured(row, prior.after(row.n, row.s)) for row in self.segments}
        else:
            known = self.beliefs(prior)
        return Segments.of(
            shares, self.objectives(objective, own_offers), {name: known[name] for name in shares}, self.groups(group)
        )

    def objectives(self, objective: Objective, own_offers: bool = True) -> Objective | dict[str, Objective]:
        """Return the objective of each segment: with its own offers, if the objective has offers.

        Parameters
        ----------
        objective : Objective
            The objective of the whole population.
        own_offers : bool, default True
            Whether segments get their own offers.

        Returns
        -------
        Objective or dict of str to Objective
            The objective, if it is the same for all; otherwise the objective by segment.

        Examples
        --------
        >>> from lenience import Discounted
        >>> past = {"region": ["n", "s"], "in": [1, 1], "good": [1, 0], "won": [20, 50]}
        >>> history = fit_history(past, "region", "in", "good", gain="won", loss=80)
        >>> history.objectives(Discounted(offers=history.offers_of_all(), discount=0.9))["n"].offers.amount
        (100.0,)
        """
        if objective.offers is None or not own_offers or not self.has_offers:
            return objective
        return {name: objective.with_offers(offers) for name, offers in self.offers().items()}

    def groups(self, group: str | Sequence[str]) -> dict[str, str]:
        """Return the group of each segment.

        Parameters
        ----------
        group : str or sequence of str
            The segment column, or columns, that hold the group. Without a column every group is ``""``.

        Returns
        -------
        dict of str to str
            The group by segment.

        Raises
        ------
        InputError
            If a column is not a segment column.

        Examples
        --------
        >>> past = {"race": ["x", "y"], "band": [1, 2], "in": [1, 1], "good": [1, 0]}
        >>> fit_history(past, ["race", "band"], "in", "good").groups("race")
        {'x / 1': 'x', 'y / 2': 'y'}
        """
        positions = self.positions("group", [group] if isinstance(group, str) else group)
        return {row.segment: SEPARATOR.join(row.values[i] for i in positions) for row in self.segments}

    def positions(self, field: str, columns: Sequence[str]) -> list[int]:
        """Return the positions of columns among the segment columns.

        Parameters
        ----------
        field : str
            The name of the parameter to show in an error.
        columns : sequence of str
            The columns.

        Returns
        -------
        list of int
            The position of each column.

        Raises
        ------
        InputError
            If a column is not a segment column.

        Examples
        --------
        >>> past = {"race": ["x"], "band": [1], "in": [1], "good": [1]}
        >>> fit_history(past, ["race", "band"], "in", "good").positions("score", ["band"])
        [1]
        """
        for name in columns:
            if name not in self.columns:
                raise InputError.unknown_name(field, name, self.columns, "the segment columns")
        return [self.columns.index(name) for name in columns]

    def _check_offers(self) -> None:
        """Raise InputError if the offers of the applicants are unknown."""
        if not self.has_offers:
            raise InputError.because(
                "are unknown: the history has no gain and loss of each applicant",
                "offers",
                code="missing",
                hint="Give fit_history gain= and loss=, or amount=, rate= and term=.",
            )

    def __getitem__(self, segment: str) -> SegmentHistory:
        for row in self.segments:
            if row.segment == segment:
                return row
        raise InputError(
            "segment", segment, f"one of the {len(self.segments):,} segments of the history", code="unknown_name"
        )

    def describe(self) -> str:
        """Describe what was read, and what was left out and why.

        Returns
        -------
        str
            One sentence or more on each line.

        Examples
        --------
        >>> past = {"region": ["north", None], "in": [1, 1], "good": [1, 0]}
        >>> print(fit_history(past, "region", "in", "good").describe())
        2 rows read, 1 used: 1 label and 0 pending in 1 segment.
        1 row not used: no segment.
        """
        used = self.rows - self.bad_rows - self.later
        labels = sum(row.labels for row in self.segments)
        pending = sum(row.pending for row in self.segments)
        counts = f"{counted(labels, 'label')} and {pending:,} pending in {counted(len(self.segments), 'segment')}"
        lines = [f"{self.rows:,} rows read, {used:,} used: {counts}."]
        if self.as_of is not None:
            young = f"; younger than {self.maturity:g} days is pending" if self.maturity else ""
            lines.append(f"Counted as of {self.as_of:%Y-%m-%d}{young}.")
        expired = sum(row.expired for row in self.segments)
        if expired:
            lines.append(f"{expired:,} of the pending {plural(expired, 'has', 'have')} expired: no outcome in time.")
        if self.applied is not None:
            lines.append(self._describe_maturing(self.applied))
        if self.immaturity is not None:
            lines.append(f"Warning: {self.immaturity.describe()}")
        for kind, count in self.bad.items():
            if count:
                strange = {"outcome": self.strange, "accepted": self.strange_decisions}.get(kind)
                which = f": {_list_values(strange, count)}" if strange else ""
                if kind == "time" and self.strange_dates:
                    examples = ", ".join(repr(value) for value in self.strange_dates)
                    which = f" that can be read (write {SUCH}; not {examples})"
                if kind == "economics" and self.strange_economics:
                    which = f", e.g. {', '.join(f'{value} ({rows:,})' for value, rows in self.strange_economics)}"
                reason = (BAD_ROWS | OUTCOME_DATES | NO_ECONOMICS)[kind]
                line = f"{counted(count, 'row')} not used: {reason}{which}."
                if kind == "time" and count > MANY * self.rows:
                    lines.insert(1, f"Warning: {line}")
                else:
                    lines.append(line)
        if unread := [MEANINGS[kind] for kind in self.unread]:
            lines.append(
                "With so many rows left out, shares, volumes and the share accepted are biased: say which values mean "
                f"{', and which '.join(unread)}."
            )
        if self.later:
            lines.append(f"{counted(self.later, 'row')} left out: decided after {self.as_of:%Y-%m-%d}.")
        if self.repeated:
            are = "is an exact copy of another row" if self.repeated == 1 else "are exact copies of other rows"
            lines.append(f"{counted(self.repeated, 'row')} {are}. Every copy is counted.")
        lines += self.notes
        if self.has_offers:
            lines.append(self._describe_offers())
            if warned := self.price_warning():
                lines.append(f"Warning: {warned}")
        similar_names = describe_similar_names(row.segment for row in self.segments)
        if similar_names is not None:
            lines.append(similar_names)
        return "\n".join(lines)

    def _describe_maturing(self, maturing: Maturing) -> str:
        """Describe what the pending say, and how long outcomes take."""
        rows = [row for row in self.segments if row.segment in maturing.open_loans]
        beliefs = self.beliefs()
        added = sum(beliefs[row.segment].n - (2 + row.n) for row in rows)
        pending = sum(row.pending for row in rows)
        says = f"say as much as {added:,.0f} outcomes" if added >= 0 else "also show that the outcomes say less"
        return " ".join([f"The {pending:,} pending count according to their age and {says}.", *maturing.describe()])

    def price_warning(self) -> str:
        """Return a warning if the success rate inside segments depends on the break-even or on the amount.

        Returns
        -------
        str
            The warning; an empty text if there is none.

        Examples
        --------
        >>> past = {"grade": ["A"] * 400, "in": [1] * 400, "good": [1] * 200 + [1, 1, 1, 0] * 50}
        >>> prices = {"won": [20] * 200 + [40] * 200, "lost": [80] * 200 + [60] * 200}
        >>> print(fit_history(past | prices, "grade", "in", "good", gain="won", loss="lost").price_warning())
        Inside segments, applicants with a lower break-even succeed less often: 75.0% against 100.0% of ...
        """
        notable = [one.describe() for one in self.price_dependence if one.notable]
        if not notable:
            return ""
        return (
            f"{' '.join(notable)} Policies for amounts and prices assume one success rate a segment, so they choose "
            "the wrong offers here. Divide the segments by price, or decide with one break-even a segment."
        )

    def _describe_offers(self) -> str:
        """Describe the offers of the applicants, and how exact they are."""
        offers, error = self.offers_of_all(), self.offers_error()
        mean = offers.money.format(offers.mean_amount)
        text = f"The mean amount at stake (gain + loss) is {mean}, the break-even of all {percent(offers.mean_cost)}."
        if error == 0.0:
            return text
        share = percent(error / offers.mean_amount, 2)
        return (
            f"{text} Each segment's offers are grouped to at most {self.most_offers}, which changes gain and loss by "
            f"{offers.money.format(error)} on average ({share} of the amount)."
        )

    def selection(self) -> str:
        """Return a warning if past decisions rejected anyone; an empty text if everyone was accepted.

        Returns
        -------
        str
            The warning.

        Examples
        --------
        >>> past = {"region": ["north", "north"], "in": [1, 0], "good": [1, None]}
        >>> print(fit_history(past, "region", "in", "good").selection())
        Only 1 of 2 past applicants (50%) were accepted. Within a segment, their outcomes are a fair sample only if \
nothing else that matters decided who was accepted.
        """
        arrivals, accepted = sum(row.arrivals for row in self.segments), sum(row.accepted for row in self.segments)
        if accepted == arrivals:
            return ""
        unseen = sum(row.labels == 0 for row in self.segments)
        text = (
            f"Only {accepted:,} of {arrivals:,} past applicants ({percent(accepted / arrivals, 0)}) were accepted. "
            "Within a segment, their outcomes are a fair sample only if nothing else that matters decided who was "
            "accepted."
        )
        if unseen:
            text += (
                f" {unseen:,} of {len(self.segments):,} segments {plural(unseen, 'has', 'have')} no outcome at all. "
                "Use the model shared or curve to learn about them from other segments."
            )
        return text


def fit_history(
    source: object,
    segment: str | Sequence[str],
    accepted: str,
    outcome: str,
    time: str | None = None,
    *,
    connection: object = None,
    as_of: dt.datetime | dt.date | str | None = None,
    maturity: float | dt.timedelta | None = None,
    half_life: float | dt.timedelta | None = None,
    expire_after: float | dt.timedelta | None = None,
    outcome_time: str | None = None,
    maturing: Literal["learn"] | TimingCurves | None = None,
    success: Sequence[object] | None = None,
    failure: Sequence[object] | None = None,
    pending: Sequence[object] | None = None,
    accepted_values: Sequence[object] | None = None,
    rejected_values: Sequence[object] | None = None,
    only_given: bool = False,
    dates: Order | None = None,
    sheet: str | None = None,
    gain: str | float | None = None,
    loss: str | float | None = None,
    amount: str | float | None = None,
    rate: str | float | None = None,
    term: str | float | None = None,
    loss_given_default: str | float | None = None,
    funding_rate: str | float | None = None,
    term_unit: Unit | None = None,
    rate_unit: RateUnit | None = None,
    currency: str = "",
    most_offers: int = 25,
    price_bands: int | None = None,
    strict: bool = False,
    warn: bool = True,
) -> History:
    """Count past decisions by segment, in the engine that holds them.

    White space around texts is ignored. ``describe()`` of the result reports every row that could not be used.

    Parameters
    ----------
    source : path, frame, Ibis table or str
        A CSV, Excel (.xlsx) or Parquet file, a folder of Parquet files or a glob pattern; a frame (pandas, polars,
        pyarrow, a dict of lists); an Ibis table; or, with ``connection``, the name of a table.
    segment : str or sequence of str
        The column, or columns, that make a segment.
    accepted : str
        The column that says who was accepted.
    outcome : str
        The column of the outcome: missing for rejected applicants and for outcomes that are not known yet.
    time : str, optional
        The column of the decision's date. ``as_of``, ``maturity``, ``half_life`` and ``expire_after`` need it.
    connection : str or Ibis backend, optional
        The database that holds the table, e.g. ``postgres://user@host/base``.
    as_of : datetime, date or str, optional
        The date of the count. Decisions after it are left out. By default the last date that is not in the future.
    maturity : float or timedelta, optional
        Days until an outcome is certain; outcomes of younger decisions are pending.
    half_life : float or timedelta, optional
        Days after which a label counts half.
    expire_after : float or timedelta, optional
        Days after which a missing outcome is no longer expected (but not before the maturity). Each segment's
        ``expired`` counts these.
    outcome_time : str, optional
        The column of the date when an outcome became known; it needs ``time``. Outcomes after ``as_of`` are pending.
        Without ``as_of``, the date of the count is not before the last outcome.
    maturing : "learn" or TimingCurves, optional
        Let the pending count according to their age, because failures and successes become known at different ages.
        "learn" learns the timing from the dates and needs ``outcome_time``. It takes the place of ``maturity``.
    success : sequence, optional
        Values of ``outcome`` that mean success, in addition to 1, true and words such as "repaid".
    failure : sequence, optional
        Values of ``outcome`` that mean failure, in addition to 0, false and words such as "default".
    pending : sequence, optional
        Values of ``outcome`` that mean "not known yet".
    accepted_values : sequence, optional
        Values of ``accepted`` that mean yes.
    rejected_values : sequence, optional
        Values of ``accepted`` that mean no.
    only_given : bool, default False
        Whether only the given values have a meaning. Texts must then match exactly.
    dates : {"mdy", "dmy", "ymd"}, optional
        The order of day, month and year in dates such as 06/01/2011. By default the column decides; if it fits both
        orders, an error asks for this argument.
    sheet : str, optional
        The sheet of an Excel file; by default the first that is not empty.
    gain, loss : str or float, optional
        What a success of each applicant earns and what a failure loses: columns, or one number for all rows. Rejected
        applicants have them too.
    amount : str or float, optional
        The amount lent, instead of gain and loss: a column or a number, as all that follow. ``rate`` and ``term`` are
        then needed. :meth:`lenience.Offer.from_loan` has the formula.
    rate : str or float, optional
        The interest rate a year: 0.12, or "12%".
    term : str or float, optional
        The term in years, or a text with its unit, such as "36 months".
    loss_given_default : str or float, optional
        The share of the amount that a default loses; everything by default.
    funding_rate : str or float, optional
        The rate a year at which the lender funds the loan; 0 by default.
    term_unit : {"years", "months"}, optional
        The unit of terms without one. It is needed if terms may be months: above 30, or all from 12 on.
    rate_unit : {"fraction", "percent"}, optional
        What numbers without a percent sign are in the columns of rates: 0.12 or 12 for 12%. It is needed if a number
        is 1 or more.
    currency : str, optional
        The sign or code that texts show amounts with, e.g. "$".
    most_offers : int, default 25
        The largest number of offers to keep for each segment. Similar offers are grouped.
    price_bands : int, optional
        With gains and losses: divide each segment further by this many bands of break-evens, with about as many rows
        each. Use it where success inside segments depends on the price (:meth:`History.price_warning`).
    strict : bool, default False
        Whether to raise an error if any row cannot be used.
    warn : bool, default True
        Whether to warn (``SimilarNamesWarning``) if names of segments differ only by case or inner white space.

    Returns
    -------
    History
        The counts by segment, and the rows that could not be used.

    Raises
    ------
    InputError
        If the source cannot be read, a column does not exist, a given value does not occur, no decision is old enough
        for the maturity, or, with ``strict``, a row cannot be used.

    Examples
    --------
    >>> past = {
    ...     "region": ["north", "north", "south", "south", "south"],
    ...     "accepted": [True, True, True, False, False],
    ...     "repaid": [1, 0, None, None, 1],
    ... }
    >>> history = fit_history(past, segment="region", accepted="accepted", outcome="repaid")
    >>> history.beliefs()
    {'north': Belief(n=4.0, s=2.0), 'south': Belief(n=2.0, s=1.0)}
    >>> print(history.describe())
    5 rows read, 4 used: 2 labels and 1 pending in 2 segments.
    1 row not used: an outcome on a rejection.

    Loans have different amounts and rates:

    >>> past |= {"amount": [1000, 5000, 2000, 9000, 500], "interest": ["8%", "12%", "25%", "9%", "30%"]}
    >>> loans = {"amount": "amount", "rate": "interest", "term": "3 years", "loss_given_default": 0.6}
    >>> history = fit_history(past, "region", "accepted", "repaid", **loans, currency="$")
    >>> [round(cost, 3) for cost in history.offers()["north"].cost]
    [0.824, 0.754]
    """
    columns = [segment] if isinstance(segment, str) else listed("segment", segment, "a column's name or several")
    words = GivenWords(
        success or (), failure or (), pending or (), accepted_values or (), rejected_values or (), only=only_given
    )
    economics = Economics.from_options(
        gain=gain,
        loss=loss,
        amount=amount,
        rate=rate,
        term=term,
        loss_given_default=loss_given_default,
        funding_rate=funding_rate,
        term_unit=term_unit,
        rate_unit=rate_unit,
        currency=currency,
        most_offers=most_offers,
    )
    priced = economics is not None
    if price_bands is not None and not priced:
        raise InputError.because(
            "needs gain and loss, or the terms of loans",
            "price_bands",
            value=price_bands,
            hint="Bands are of each row's break-even.",
            code="missing",
        )
    check_maturing(maturing, time, outcome_time, maturity)
    maturity_days, notes = in_days("maturity", maturity), list[str]()
    with without_engine_warnings(), reading(None if connection is not None else source):
        table, backend = open_source(source, connection, notes, sheet)
        as_given = table
        try:
            single = {"accepted": accepted, "outcome": outcome, "time": time, "outcome_time": outcome_time}
            _check_columns(table.columns, columns, single)
            if economics is not None:
                table = with_economics(backend, table, economics, notes)
                if price_bands is not None:
                    table, columns = with_price_bands(backend, table, price_bands), [*columns, BAND]
            order = check_order(dates)
            half_life_days = in_days("half_life", half_life)
            ages = (maturity_days, half_life_days, in_days("expire_after", expire_after))
            known_at = None
            if outcome_time is not None:
                table = with_outcome_dates(backend, table, outcome, outcome_time, words, order, notes)
                known_at = table[CAME]
            clock = make_clock(backend, table, time, as_of, *ages, known_at, order, notes)
            check_words(backend, table, accepted, outcome, words)
            if clock is not None and known_at is not None:
                table = with_date_codes(table, outcome, clock, as_of is not None)
            rows = count_rows(backend, table, columns, accepted, outcome, clock, words, priced)
            history = _history(rows, columns, None if clock is None else clock.now, priced, known_at is not None)
            if economics is not None and history.segments:
                used = used_rows(backend, table, columns, accepted, outcome, clock, words)
                names = [f"g{i}" for i in range(len(columns))]
                history = _with_offers(history, group_offers(backend, used, names, economics, history.rows), economics)
                history = msgspec.structs.replace(history, price_dependence=price_dependence(backend, used, names))
            if time and clock and history.bad["time"] and not history.segments:
                check_readable(backend, table, time, clock)
            if maturity_days and clock and not any(row.labels for row in history.segments):
                check_span(backend, table, clock, maturity_days)
            details: dict[str, Any] = {"maturity": maturity_days, "notes": tuple(notes)}
            if clock is not None and clock.now is not None and (maturing or history.rows <= NAMED_UP_TO):
                query = (backend, table, columns, accepted, outcome, clock, words)
                details |= judge_maturity(history.segments, query, maturing, maturity_days, half_life_days, priced)
            # To name the values without a meaning, the rows must be read again. That is too slow for a warehouse.
            if history.rows <= NAMED_UP_TO:
                if history.bad["outcome"] or history.bad["accepted"]:
                    strange = strange_values(backend, table, columns, accepted, outcome, words)
                    details["strange"], details["strange_decisions"] = (tuple(values) for values in strange)
                if economics is not None and history.bad["economics"]:
                    details["strange_economics"] = tuple(strange_economics(backend, table, economics))
                if time and clock and history.bad["time"]:
                    details["strange_dates"] = tuple(strange_dates(backend, table, time, clock))
            if connection is None:
                details["repeated"] = repetitions(source, as_given, history.rows)
            history = msgspec.structs.replace(history, **details)
        finally:
            if isinstance(connection, str):
                backend.disconnect()
    if strict and history.bad_rows:
        raise InputError.because(
            f"must have no bad rows with strict:\n{history.describe()}",
            "source",
            label="history",
            value=history.bad_rows,
        )
    similar_names = describe_similar_names(row.segment for row in history.segments) if warn else None
    if similar_names is not None:
        warnings.warn(similar_names, SimilarNamesWarning, stacklevel=2)
    return history


def _check_columns(existing: Sequence[str], segment: Sequence[str], single: Mapping[str, str | None]) -> None:
    """Raise InputError if a column does not exist or has two roles."""
    roles: dict[str, str] = {}
    for role, name in [*(("segment", name) for name in segment), *single.items()]:
        if name is None:
            continue
        if name not in existing:
            raise InputError.unknown_name(role, name, existing, "the columns")
        if roles.get(name) == role:
            raise InputError.because(
                f"must name different columns; {name!r} is there twice", role, value=name, code="duplicate"
            )
        if name in roles and role != "time":  # segments may be days, so their column may also be the date
            raise InputError.because(
                f"must be different columns; both are {name!r}", (role, roles[name]), value=name, code="duplicate"
            )
        roles[name] = role


def _list_values(strange: Sequence[tuple[str, int]], count: int) -> str:
    """List values without a meaning, each with the number of its rows."""
    values = ", ".join(f"{value!r} ({rows:,})" for value, rows in strange)
    others = count - sum(rows for _, rows in strange)
    return f"{values}, others ({others:,})" if others else values


def _with_offers(history: History, offers: Mapping[tuple[str, ...], SegmentEconomics], economics: Economics) -> History:
    """Add the offers of each segment to a history."""
    segments = tuple(msgspec.structs.replace(row, economics=offers.get(row.values)) for row in history.segments)
    return msgspec.structs.replace(history, segments=segments, most_offers=economics.most_offers)


def _history(
    rows: list[dict[str, Any]], columns: list[str], as_of: dt.datetime | None, priced: bool, dated: bool = False
) -> History:
    """Make a history of the counts of :func:`~lenience.history.counts.count_rows`."""
    kinds = [*BAD_ROWS, *(OUTCOME_DATES if dated else ()), *(NO_ECONOMICS if priced else ())]
    bad = dict.fromkeys(kinds, 0)
    later = total = 0
    segments = []
    for row in rows:
        count = {kind: int(row.get(kind) or 0) for kind in KINDS}
        total += sum(count.values())
        later += count["later"]
        for kind in bad:
            bad[kind] += count[kind]
        labels = count["success"] + count["failure"]
        accepted = labels + count["pending"]
        arrivals = accepted + count["turned_down"]
        if not arrivals:
            continue
        values = tuple(str(row[f"g{i}"]) for i in range(len(columns)))
        n, s = float(row.get("n", labels) or 0.0), float(row.get("s", count["success"]) or 0.0)
        segments.append(
            SegmentHistory(
                segment=SEPARATOR.join(values),
                arrivals=arrivals,
                accepted=accepted,
                labels=labels,
                successes=count["success"],
                pending=count["pending"],
                n=n,
                s=min(s, n),
                values=values,
                expired=int(row.get("expired") or 0),
                recent=int(row.get("recent") or 0),
            )
        )
    segments.sort(key=lambda segment: segment.segment)
    return History(tuple(segments), total, bad, later, as_of, tuple(columns))

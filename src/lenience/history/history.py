"""History: past decisions by segment, and the beliefs, offers and segments that follow from them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.core.belief import Belief, check_prior
from lenience.core.data_origin import PolicyOrigin
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.core.protected_attributes import protected_among
from lenience.history.description import MANY, describe_history, describe_prices, describe_selection
from lenience.history.economics import merged_offers
from lenience.history.immaturity import Immaturity
from lenience.history.maturing import Maturing
from lenience.history.price_dependence import PriceDependence
from lenience.history.segment_history import SEPARATOR, SegmentHistory
from lenience.models.maturing import Known
from lenience.segments.column_parts import ColumnParts

if TYPE_CHECKING:
    from lenience.core.objective import Objective
    from lenience.segments.segments import Segments


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
    origin : PolicyOrigin, optional
        The source: file and digest, rows used and left out, dates, and what columns and values mean.
    cells : tuple of ColumnParts
        How the segment columns are divided, if one of them is cut into bands; empty otherwise.

    Examples
    --------
    >>> from lenience import fit_history
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
    origin: PolicyOrigin | None = None
    cells: tuple[ColumnParts, ...] = ()

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
        >>> from lenience import fit_history
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
        >>> from lenience import fit_history
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
        >>> from lenience import fit_history
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
        >>> from lenience import fit_history
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
        >>> from lenience import fit_history
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
        >>> from lenience import fit_history
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
        >>> from lenience import fit_history
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

    def specification(
        self,
        name: str,
        objective: Objective,
        *,
        model: str = "own",
        prior: Belief | None = None,
        group: str | Sequence[str] = (),
        score: str | Sequence[str] = (),
        segment_costs: Mapping[str, float] | None = None,
        doubt: float | None = None,
        description: str = "",
        exploration_floor: float = 0.0,
        exposure_cap: int | None = None,
        expire_after_days: float | None = None,
    ) -> dict[str, Any]:
        """Return the policy of this history as the service takes it, with everything that its outcomes say.

        It is what ``lenience fit --output`` writes. Create the policy with ``Client.create_policy``, or write it to a
        file for ``lenience check`` and ``lenience serve --policy``.

        Parameters
        ----------
        name : str
            The name of the policy.
        objective : Objective
            The objective of the whole population. If it has offers, e.g. ``Discounted(offers=history.offers_of_all(),
            arrivals=1000, discount_rate=0.1)``, every segment gets the offers of its own applicants.
        model : str, default "own"
            Where beliefs come from: "own", "jeffreys", "shared", "curve", "history" or "pooled-history".
        prior : Belief, optional
            The belief before any label; Beta(1, 1) by default.
        group : str or sequence of str, optional
            The segment column, or columns, that hold the group of a segment.
        score : str or sequence of str, optional
            The ordered segment columns, for the model "curve".
        segment_costs : mapping, optional
            The break-even success rate of single segments, where it differs from that of the objective.
        doubt : float, optional
            The probability that the prior is wrong and nothing is known instead.
        description : str, default ""
            The purpose of the policy.
        exploration_floor : float, default 0
            The share of a stopped segment that is still accepted.
        exposure_cap : int, optional
            The most outcomes that may be pending in a segment.
        expire_after_days : float, optional
            The days after which a missing outcome expires.

        Returns
        -------
        dict
            The specification, of JSON values.

        Raises
        ------
        InputError
            If a column, a model or a segment does not exist.

        Examples
        --------
        >>> from lenience import Discounted, fit_history
        >>> past = {"region": ["north", "south"], "in": [1, 1], "good": [1, 0]}
        >>> made = fit_history(past, "region", "in", "good").specification("loans", Discounted(0.8, 0.99))
        >>> made["segments"][0]
        {'name': 'north', 'share': 0.5, 'prior': {'n': 3.0, 's': 2.0}, 'group': None, 'past_outcomes': 1.0}
        """
        from lenience.history.beliefs import beliefs_of_history
        from lenience.history.origin import fitted_origin
        from lenience.history.specification import PolicySettings, make_specification

        columns = [group] if isinstance(group, str) else list(group)
        fitted = beliefs_of_history(
            self, model, Belief(2, 1) if prior is None else check_prior(prior), columns,
            [score] if isinstance(score, str) else score,
        )  # fmt: skip
        settings = PolicySettings(
            name=name,
            description=description,
            exploration_floor=exploration_floor,
            exposure_cap=exposure_cap,
            expire_after_days=expire_after_days,
            segment_costs=dict(segment_costs or {}),
            doubt=doubt,
            protected=tuple(protected_among(self.columns)),
        )
        arrivals = {row.segment: max(row.arrivals, 1) for row in self.segments}
        total = sum(arrivals.values())
        return make_specification(
            settings,
            objective,
            fitted.shrinkage,
            {segment: count / total for segment, count in arrivals.items()},
            self.groups(columns) if columns else {},
            self.offers() if objective.offers is not None and self.has_offers else {},
            self.cells,
            fitted_origin(self.origin, model, objective),
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
        >>> from lenience import fit_history
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
        >>> from lenience import fit_history
        >>> past = {"kind": ["x", "y"], "band": [1, 2], "in": [1, 1], "good": [1, 0]}
        >>> fit_history(past, ["kind", "band"], "in", "good").groups("kind")
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
        >>> from lenience import fit_history
        >>> past = {"kind": ["x"], "band": [1], "in": [1], "good": [1]}
        >>> fit_history(past, ["kind", "band"], "in", "good").positions("score", ["band"])
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
        >>> from lenience import fit_history
        >>> past = {"region": ["north", None], "in": [1, 1], "good": [1, 0]}
        >>> print(fit_history(past, "region", "in", "good").describe())
        2 rows read, 1 used: 1 label and 0 pending in 1 segment.
        1 row not used: no segment.
        """
        return describe_history(self)

    def price_warning(self) -> str:
        """Return a warning if the success rate inside segments depends on the break-even or on the amount.

        Returns
        -------
        str
            The warning; an empty text if there is none.

        Examples
        --------
        >>> from lenience import fit_history
        >>> past = {"grade": ["A"] * 400, "in": [1] * 400, "good": [1] * 200 + [1, 1, 1, 0] * 50}
        >>> prices = {"won": [20] * 200 + [40] * 200, "lost": [80] * 200 + [60] * 200}
        >>> print(fit_history(past | prices, "grade", "in", "good", gain="won", loss="lost").price_warning())
        Inside segments, applicants with a lower break-even succeed less often: 75.0% against 100.0% of ...
        """
        return describe_prices(self)

    def selection(self) -> str:
        """Return a warning if past decisions rejected anyone; an empty text if everyone was accepted.

        Returns
        -------
        str
            The warning.

        Examples
        --------
        >>> from lenience import fit_history
        >>> past = {"region": ["north", "north"], "in": [1, 0], "good": [1, None]}
        >>> print(fit_history(past, "region", "in", "good").selection())
        Only 1 of 2 past applicants (50%) were accepted. Within a segment, their outcomes are a fair sample only if \
nothing else that matters decided who was accepted.
        """
        return describe_selection(self)

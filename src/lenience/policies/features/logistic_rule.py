"""LogisticRule: decisions of a logistic model, as a function of what it knows and of who is pending.

It has the belief about coefficients, the reference rows, the objective with its tables, and nothing else: no log, no
random numbers and no scikit-learn. :class:`~lenience.FeaturePolicy` decides with it, and so does whoever restores a
stored policy, so both give the same decisions bit for bit.
"""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.objective import Objective
from lenience.core.offer_rows import OfferRows
from lenience.models.hypotheses import compared_rows, project_rows
from lenience.models.logistic_belief import LogisticBelief
from lenience.policies.features.decision import Decision, OfferedDecision
from lenience.policies.features.effective_discount import lenient
from lenience.policies.features.offer_decisions import FIELDS, LATE_FIELDS, ReferenceOffers, decide_offer_rows
from lenience.policies.features.reference_set import ReferenceLogOdds
from lenience.policies.features.row_decisions import WeighedRows, decide_rows, decide_weighed, weigh_rows
from lenience.solvers.delayed.limit_table import exposure_limit
from lenience.solvers.offers.label_table import LabelTable, label_table, per_mean_amount
from lenience.solvers.offers.late_label_table import late_label_value
from lenience.solvers.stopping.threshold_table import ThresholdTable, threshold_table

Rows = NDArray[np.float64]
Room = tuple[Rows, ...]  # the design of pending rows by column, and mean and variance of their log-odds
Table = ThresholdTable | LabelTable
DECIDED = 11  # columns that a decision fills
CHUNK = 256  # rows that a thread weighs at a time
MANY = 2 * CHUNK  # rows from which on threads pay
THREADS = 2  # that weigh rows


def decision_table(objective: Objective) -> Table:
    """Return the table that decisions of an objective need: minimum rates, or values of a label with offers."""
    most = min(objective.discount_at(0), 1.0 - 1e-9)
    if objective.offers is None:
        return threshold_table(objective.cost, most)
    return label_table(objective.offers, most)


class LogisticRule:
    """What a decision about one row needs, apart from the row and the pending ones.

    Parameters
    ----------
    belief
        The belief about the coefficients.
    reference
        The rows that represent the population.
    objective
        The objective.
    table
        What :func:`decision_table` returns.
    brought
        What the reference rows bring, if the objective has offers.
    explore
        The probability of accepting those whom the policy would reject.
    exposure
        A limit of similar acceptances pending, or a solved policy with limits; None for those of the objective.
    late_limits
        Whether offers whose labels come late have exposure limits. Policies that were stored before these existed have
        none: a label counts 1/(1 + r · delay) of its value instead.
    """

    def __init__(
        self,
        belief: LogisticBelief,
        reference: ReferenceLogOdds,
        objective: Objective,
        table: Table,
        brought: ReferenceOffers | None = None,
        explore: float = 0.0,
        exposure: Any = None,
        late_limits: bool = True,
    ) -> None:
        self.belief = belief
        self.reference = reference
        self.objective = objective
        self.table: Any = table
        self.brought = brought
        self.explore = float(explore)
        self.exposure = exposure
        self.late_limits = late_limits

    def decide(
        self,
        rows: Rows,
        pending: Rows | ReferenceLogOdds,
        arrivals: int,
        chances: Rows,
        offers: OfferRows | None = None,
    ) -> list[Decision]:
        """Decide rows in turn. Those accepted here are pending for those who come later.

        Parameters
        ----------
        rows
            Rows of numbers.
        pending
            The design of the accepted rows without an outcome, or that with the log-odds at this belief, which saves
            computing them.
        arrivals
            How many were decided before.
        chances
            A uniform random number for each row. With 1, nobody is accepted at random.
        offers
            What each row asks for, if the objective has offers.
        """
        return self._decide(rows, pending, arrivals + np.arange(len(rows)), chances, offers)

    def _decide(
        self,
        rows: Rows,
        pending: Rows | ReferenceLogOdds,
        arrivals: NDArray[np.int64],
        drawn: Rows | None,
        offers: OfferRows | None,
    ) -> list[Decision]:
        """Decide rows in turn; ``arrivals`` says how many were decided before each. Without a draw, each is alone."""
        # With a random number of 1 nobody counts as accepted, so nobody is pending for those who come later.
        chances = np.ones(len(rows)) if drawn is None else drawn
        room = self._room(pending, len(rows))
        waiting = len(room[1]) - len(rows)
        numbers = arrivals.tolist()
        gammas = np.array([self.objective.discount_at(number) for number in numbers])
        limits = limits_apply(self.objective, self.exposure)
        if offers is None and not limits and len(rows) >= MANY:
            fields = self._run_many(rows, room, waiting, gammas, chances)[:, :7]
            return _decisions(numbers, fields)
        design = self.belief.design.rows(rows)
        if offers is not None:
            decided = self._limited_offers if self.late_limits and limits else self._offers
            fields = decided(design, room, waiting, gammas, chances, offers, numbers)
            return [
                offered_decision(number, each, offers) for number, each in zip(numbers, fields.tolist(), strict=True)
            ]
        if limits and drawn is None:
            alone = self._run(design, room, waiting, gammas, chances, limited=True).tolist()
            fields = np.array([self._limit(one, number, 1.0) for one, number in zip(alone, numbers, strict=True)])
        elif limits:
            fields = self._limited(design, room, waiting, gammas, chances, numbers)
        else:
            fields = self._run(design, room, waiting, gammas, chances)[:, :7]
        return _decisions(numbers, fields)

    def _room(self, pending: Rows | ReferenceLogOdds, more: int) -> tuple[Rows, Rows, Rows]:
        """Return the design by column and the log-odds of pending rows, with room for more."""
        known = pending if isinstance(pending, ReferenceLogOdds) else None
        rows = pending if known is None else known.design
        assert isinstance(rows, np.ndarray)
        waiting, several = len(rows), len(self.belief.weights)
        columns = np.zeros((self.belief.means.shape[1], waiting + more))
        m, v = np.zeros((2, waiting + more, several))
        if waiting:
            columns[:, :waiting] = rows.T
        if known is not None:
            m[:waiting], v[:waiting] = known.m, known.v
        elif waiting:
            project_rows(rows, self.belief.means, self.belief.covariances, m[:waiting], v[:waiting])
        return columns, m, v

    def decide_each(
        self, rows: Rows, pending: Rows, arrivals: NDArray[np.int64], offers: OfferRows | None = None
    ) -> list[Decision]:
        """Decide rows, each as if it came alone. Nobody is accepted at random: whoever calls it draws.

        Parameters
        ----------
        rows
            Rows of numbers.
        pending
            The design of the accepted rows without an outcome.
        arrivals
            How many were decided before each row.
        offers
            What each row asks for, if the objective has offers.
        """
        return self._decide(rows, pending, arrivals, None, offers)

    def accepts(self, rows: Rows, pending: Rows, arrivals: int, choice: OfferRows | None = None) -> NDArray[np.bool_]:
        """Return which rows would be accepted for certain, each as if alone and with the one choice of offers."""
        offers = None
        if choice is not None:
            width = len(choice.amount)
            amounts, costs = np.tile(choice.amount, len(rows)), np.tile(choice.cost, len(rows))
            offers = OfferRows(amounts, costs, np.arange(len(rows) + 1) * width)
        decisions = self.decide_each(rows, pending, np.full(len(rows), arrivals, dtype=np.int64), offers)
        return np.array([decision.propensity >= 1.0 for decision in decisions], dtype=np.bool_)

    def _run(
        self, design: Rows, pending: Room, waiting: int, gammas: Rows, chances: Rows, limited: bool = False
    ) -> Rows:
        """Run the compiled decisions on rows of the design."""
        known, reference = self.belief, self.reference
        out = np.empty((len(design), DECIDED))
        arguments: list[Any] = [
            reference.columns, reference.m, reference.v, *pending, waiting, gammas, chances, self.explore, limited,
            *self.table, out,
        ]  # fmt: skip
        decide_rows(design, known.weights, known.means, known.covariances, *arguments)
        return out

    def _run_many(self, rows: Rows, pending: Room, waiting: int, gammas: Rows, chances: Rows) -> Rows:
        """Run the compiled decisions on many rows: other threads weigh the next rows while this one decides.

        The decisions are those of :meth:`_run`, bit for bit.
        """
        known, reference = self.belief, self.reference
        beliefs = known.weights, known.means, known.covariances
        compared = reference.columns, reference.m.copy(), reference.v.copy()
        columns, m, v = pending
        earlier = compared_rows(columns, known.weights, m, v, waiting)
        table: ThresholdTable = self.table
        out = np.empty((len(rows), DECIDED))

        def weigh(first: int) -> tuple[Rows, WeighedRows]:
            part = slice(first, first + CHUNK)
            design = known.design.rows(rows[part])
            return design, weigh_rows(design, *beliefs, *compared, gammas[part], table.cost)

        firsts = range(0, len(rows), CHUNK)
        with ThreadPoolExecutor(THREADS) as pool:
            ahead = deque(pool.submit(weigh, first) for first in firsts[: THREADS + 1])
            for place, first in enumerate(firsts):
                design, weighed = ahead.popleft().result()
                later = place + THREADS + 1
                if later < len(firsts):
                    ahead.append(pool.submit(weigh, firsts[later]))
                part = slice(first, first + CHUNK)
                waiting = decide_weighed(
                    design, weighed, known.weights, earlier, waiting, gammas[part], chances[part], self.explore, False,
                    *table, out[part],
                )  # fmt: skip
        return out

    def _limited(
        self, design: Rows, pending: Room, waiting: int, gammas: Rows, chances: Rows, arrivals: list[int]
    ) -> Rows:
        """Decide with exposure limits, which may need a solve for each row."""
        out = np.empty((len(design), 7))
        for i in range(len(design)):
            one = slice(i, i + 1)
            fields = self._run(design[one], pending, waiting, gammas[one], np.ones(1), limited=True)[0].tolist()
            out[i] = self._limit(fields, arrivals[i], float(chances[i]))
            if out[i, 0]:
                self._await(design[one], pending, waiting)
                waiting += 1
        return out

    def _await(self, row: Rows, pending: Room, waiting: int) -> None:
        """Write a row of the design, and its log-odds, behind those that are pending."""
        columns, m, v = pending
        here = slice(waiting, waiting + 1)
        columns[:, waiting] = row[0]
        project_rows(row, self.belief.means, self.belief.covariances, m[here], v[here])

    def _limit(self, fields: list[float], arrivals: int, chance: float) -> tuple[float, ...]:
        """Apply exposure limits to the fields of a decided row."""
        _, counted, mean, n, discount, _, near, q, left, explored, worth = fields
        limits = ExposureLimits(self.objective, self.table, self.exposure, arrivals)
        if self.exposure is None:
            # Limits are optimal if the prior is right. If the truth is better than the prior, they are too tight.
            accept = counted >= 1.0 or limits.accept(mean, n, discount, q, left, worth, explored)
        else:
            accept = limits.accept(mean, n, discount, q, left, worth, near)
        return limits.fields(accept, chance, self.explore, mean, n, discount, left, worth, near)

    def _offers(
        self, design: Rows, pending: Room, waiting: int, gammas: Rows, chances: Rows, offers: OfferRows,
        arrivals: list[int],
    ) -> Rows:  # fmt: skip
        """Decide offers without exposure limits."""
        unit = label_unit(self.objective)
        return self._run_offers(
            design, pending, waiting, gammas, chances, offers, unit, np.empty((len(design), FIELDS))
        )

    def _limited_offers(
        self, design: Rows, pending: Room, waiting: int, gammas: Rows, chances: Rows, offers: OfferRows,
        arrivals: list[int],
    ) -> Rows:  # fmt: skip
        """Decide offers with exposure limits, which may need a solve for each row."""
        out = np.empty((len(design), FIELDS + 1))
        room = np.empty((1, FIELDS + LATE_FIELDS))
        for i in range(len(design)):
            limits = ExposureLimits(self.objective, None, self.exposure, arrivals[i])
            one, own = slice(i, i + 1), offers.take(i, i + 1)
            _, _, mean, n, discount, near, best, counted, q, stake, explored, alone = self._run_offers(
                design[one], pending, waiting, gammas[one], np.ones(1), own, limits.unit, room
            )[0].tolist()
            # Limits are optimal if the prior is right. If the truth is better than the prior, they are too tight.
            label = max(counted, min(alone, stake * limits.late_label(n, mean, q, explored)))
            profit = own.amount[int(best)] * (mean - own.cost[int(best)])
            propensity = 1.0 if profit + label > 0.0 else self.explore
            position = best + offers.start[i]
            out[i] = chances[i] < propensity, propensity, mean, n, discount, near, position, label, alone
            if out[i, 0]:
                self._await(design[one], pending, waiting)
                waiting += 1
        return out

    def _run_offers(
        self, design: Rows, pending: Room, waiting: int, gammas: Rows, chances: Rows, offers: OfferRows, unit: float,
        out: Rows,
    ) -> Rows:  # fmt: skip
        """Run the compiled decisions on offers."""
        known, reference = self.belief, self.reference
        arguments: list[Any] = [
            reference.columns, reference.m, reference.v, *(self.brought or ()), *pending, waiting, gammas, chances,
            self.explore, unit, *offers, *self.table[1:], out,
        ]  # fmt: skip
        decide_offer_rows(design, known.weights, known.means, known.covariances, *arguments)
        return out


class ExposureLimits:
    """How many like x may be pending where outcomes come late or a limit is given.

    Parameters
    ----------
    objective
        The objective.
    table
        The minimum rates; None with offers.
    exposure
        A limit, a solved policy with limits, or None for those of the objective.
    arrivals
        How many were decided before.
    """

    def __init__(self, objective: Objective, table: Any, exposure: Any, arrivals: int) -> None:
        self.objective = objective
        self.table = table
        self.exposure = exposure
        self.discount = float(objective.discount_at(arrivals))
        self.unit = 1.0 if objective.offers is None else float(objective.offers.mean_amount)

    def accept(
        self, mean: float, n: float, discount: float, q: float, left: float, worth: float, pending: float
    ) -> bool:
        """Return whether to accept at a belief with this many similar acceptances pending."""
        cost = self.objective.cost
        if mean > cost:
            return True
        threshold = lenient(cost, float(self.table.threshold(n, discount)), left, worth)
        return mean > threshold and pending < self.limit(n, mean, q)

    def fields(
        self, accept: bool, chance: float, explore: float, mean: float, n: float, discount: float, left: float,
        worth: float, pending: float,
    ) -> tuple[float, ...]:  # fmt: skip
        """Return the fields of a decision with exposure limits."""
        threshold = lenient(self.objective.cost, float(self.table.threshold(n, discount)), left, worth)
        propensity = 1.0 if accept else explore
        return float(chance < propensity), propensity, mean, n, discount, threshold, pending

    def limit(self, n: float, mean: float, q: float) -> float:
        """Return how many like x may be pending at x's belief, if people like x are a share q of the arrivals."""
        solved = self.exposure
        if solved is None:
            if not self.objective.label_delay:
                return math.inf
            arrivals, discounting = self._rates()
            return exposure_limit(n, mean, self.objective.cost, q * arrivals, discounting)
        if not hasattr(solved, "exposure"):
            return float(solved)
        prior = solved.prior
        k = max(round(n - prior.n), 0)
        j = min(max(round(mean * (prior.n + k) - prior.s), 0), k)
        return float(solved.exposure(prior.n + k, prior.s + j))

    def late_label(self, n: float, mean: float, q: float, pending: float) -> float:
        """Return what one more label is worth in money at x's belief, if people like x bring what the population does.

        ``pending`` similar acceptances are pending, and people like x are a share q of the arrivals.
        """
        offers = self.objective.offers
        assert offers is not None
        arrivals, discounting = self._rates()
        _, few = per_mean_amount(offers)
        return self.unit * late_label_value(few, n, mean, pending, q * arrivals, discounting)

    def _rates(self) -> tuple[float, float]:
        """Return arrivals and discounting per mean delay of a label."""
        arrivals = (self.objective.arrivals or 1.0) * self.objective.label_delay
        return arrivals, arrivals * (1.0 / max(self.discount, 1e-9) - 1.0)


def _decisions(arrivals: list[int], fields: Rows) -> list[Decision]:
    """Return decisions from the fields of their rows."""
    return [
        Decision(arrival, taken > 0.0, *numbers)
        for arrival, (taken, *numbers) in zip(arrivals, fields.tolist(), strict=True)
    ]


def limits_apply(objective: Objective, exposure: Any) -> bool:
    """Return whether exposure limits apply."""
    return exposure is not None or objective.label_delay > 0.0


def label_unit(objective: Objective) -> float:
    """Return the population's mean amount, times what is left of a late label's value where it has no limits."""
    rate, delay, offers = objective.discount_rate, objective.label_delay, objective.offers
    late = rate * delay if rate is not None and delay else 0.0
    return float((1.0 if offers is None else offers.mean_amount) / (1.0 + late))


def offered_decision(arrival: int, fields: list[float], offers: OfferRows) -> OfferedDecision:
    """Return the decision on an offer from the fields of its row."""
    taken, propensity, mean, n, discount, pending, best, label = fields[:FIELDS]
    return OfferedDecision(
        arrival, taken > 0, propensity, mean, n, discount, None, pending,
        amount=float(offers.amount[int(best)]), cost=float(offers.cost[int(best)]), label_value=label,
        first_label_value=fields[FIELDS] if len(fields) > FIELDS else None,
    )  # fmt: skip

"""FeaturePolicy: the paper's policy for individuals with features: accept iff p̂(x) > c_n(x) at x's effective discount.

A model gives the belief at x: a success probability p̂ and, from its confidence, a belief size n (the paper's
Discussion). People like x are a share q of the arrivals, and a rate h of labels about x comes for free
(:mod:`lenience.policies.features.effective_discount`). Together they give x's effective discount γ′, and (n, γ′) gives
the threshold c_n, from a table of certified thresholds (:mod:`lenience.solvers.stopping.threshold_table`), with less
leniency where labels come for free. Where p̂ > c, acceptance needs no exploring.

Late labels. A pending acceptance has cost its risk and has taught nothing yet. Pending acceptances count by their
likeness to x: m(x) = Σ_pending ρ²(x, ·), the *effective pending*. Where the delay is unknown they count as labels that
will come, so c is taken at n + m: as many individuals get the benefit of the doubt as if all pending outcomes were in
and had left p̂ unchanged. With a :class:`~lenience.objectives.delayed.Delayed` objective, x below the break-even is
accepted while m(x) is below an exposure limit: that of the problem of people like x, who arrive at the rate qλ, at x's
own belief (:mod:`lenience.solvers.delayed.limit_table`). For this limit m(x) leaves out those above the break-even,
because their labels come for free and q, h and the threshold count them already. The limit is optimal if the prior is
right. On data that are better than the prior it is too tight, so the default model also accepts x if the threshold at
n + m does. ``exposure`` sets other limits: the ``exposure(n, s)`` of any solved problem, or a number. Outcomes that do
not come expire after ``expire_after`` (three mean delays of a Delayed objective). Expired outcomes no longer block
anyone, and nothing is learnt from them.

Offers. If the objective has offers, amounts and break-evens differ from row to row. A row is accepted iff a(p̂ − c) plus
the value of its label is above 0, with the best offer of its menu. The label is worth a share of S · I(n + m, p̂, γ′): S
is what people like x have at stake, and I comes from a table for the population's offers
(:mod:`lenience.policies.features.offer_decisions`). A label that comes late counts 1/(1 + r · delay) of that.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.core.errors import InputError
from lenience.core.formatting import count, percents, plural
from lenience.core.offer_rows import OfferRows
from lenience.core.offers import Offers
from lenience.core.validation import real, whole
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.feature_model import FeatureModel, is_missing
from lenience.models.gaussian import belief_size
from lenience.models.hypotheses import liken, mixed, mixed_roughly, project_all, project_rows
from lenience.models.logistic_estimator import LogisticEstimator
from lenience.policies.features.base import Decision, OfferedDecision, SelectivePolicy
from lenience.policies.features.effective_discount import (
    lenient,
    offer_shares,
    own_discount,
    q_and_h,
    shares,
    stretched,
)
from lenience.policies.features.offer_decisions import FIELDS, ReferenceOffers, best_offer, decide_offer_rows
from lenience.policies.features.reference_set import ReferenceLogOdds
from lenience.solvers.delayed.limit_table import exposure_limit
from lenience.solvers.offers.label_table import LabelTable, label_table
from lenience.solvers.stopping.threshold_table import ThresholdTable, look_up, threshold_table

REFERENCE = 100


class NeverStartsWarning(UserWarning):
    """Warn about a policy without labels that would accept nobody and so would never learn."""


class FeaturePolicy(SelectivePolicy):
    """Accept by features, learn from the accepted, and explore by what a label is worth.

    Parameters
    ----------
    model
        A model of :mod:`lenience.models`, or a Pipeline that ends in one. By default a
        :class:`~lenience.models.BayesianLogistic`.
    objective
        The objective: Discounted, FiniteHorizon or Delayed, with one cost or with offers.
    reference
        The number of rows that represent the population.
    refresh
        Whether the newest arrivals replace these rows.
    explore
        The probability of accepting those whom the policy would reject. Use a value above 0 if the log must serve to
        evaluate other policies later.
    exposure
        For late labels: the limit of similar acceptances pending, as a number or as a solved policy with an
        ``exposure(n, s)`` method. By default the limits of a Delayed objective.
    expire_after
        The age at which a pending outcome expires. By default that of the objective, which is three mean delays for a
        Delayed one; outcomes of others never expire.
    random_state
        Seed or generator of the random numbers, as in scikit-learn.

    Examples
    --------
    >>> from lenience import Discounted
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit(X)
    >>> policy.decide(X[:3])  # nothing is known yet: the first is given the benefit of the doubt
    array([ True,  True,  True])
    >>> policy.observe(X[:2], [True, True], [1, 0]).pending_  # the outcome of the third is unknown
    1
    >>> [decision.propensity for decision in policy.log_]
    [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        model: Any = None,
        objective: Any = None,
        reference: int = REFERENCE,
        refresh: bool = True,
        explore: float = 0.0,
        exposure: Any = None,
        expire_after: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.objective = objective
        self.reference = reference
        self.refresh = refresh
        self.explore = explore
        self.exposure = exposure
        self.expire_after = expire_after
        self.random_state = random_state

    def accepts(self, X: Any, offers: Any = None) -> NDArray[np.bool_]:
        """Return who would be accepted now, each as if alone and without exploring. Nothing is logged or changed.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.
        offers : optional
            What each row asks for, as in :meth:`decide`.

        Returns
        -------
        ndarray of bool
            Whether each row would be accepted.

        Examples
        --------
        >>> from lenience import Discounted, Offers
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> objective = Discounted(offers=Offers([500, 5000], [0.8, 0.8]), discount=0.99)
        >>> policy = FeaturePolicy(objective=objective).fit(X)
        >>> policy.accepts(X[:2], offers=([500, 50_000], 0.8))
        array([ True, False])
        """
        return np.asarray(self.propensity(X, offers) >= 1.0)

    def label_value(self, X: Any) -> NDArray[np.float64]:
        """Return what the outcome of each row would be worth for later decisions about similar people, in money.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.

        Returns
        -------
        ndarray of float
            One amount for each row.

        Raises
        ------
        InputError
            If the objective has no offers.

        Examples
        --------
        >>> from lenience import Discounted, Offers
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> objective = Discounted(offers=Offers([500, 5000], [0.8, 0.8]), discount=0.99)
        >>> policy = FeaturePolicy(objective=objective).fit(X)
        >>> bool((policy.label_value(X) > 0).all())
        True
        """
        if self.objective.offers is None:
            raise InputError.because(
                "needs an objective with offers",
                "objective",
                label="label_value",
                value=self.objective,
                hint="Give the objective offers= instead of cost=.",
                code="unsupported_offers",
            )
        rows = self._rows(X)
        any_offer = OfferRows.of(self.objective.offers.offers_of(0)[0], len(rows), self.objective.offers)
        decisions = [self._alone(rows, i, any_offer) for i in range(len(rows))]
        return np.array([decision.label_value for decision in decisions if isinstance(decision, OfferedDecision)])

    def explain(self, X: Any, offers: Any = None) -> list[str]:
        """Return the decision for each row if it came now, alone, and the reason in words.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.
        offers : optional
            What each row asks for, as in :meth:`decide`.

        Returns
        -------
        list of str
            One sentence for each row.

        Examples
        --------
        >>> from lenience import Discounted
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit(X)
        >>> print(policy.explain(X[:1])[0])
        Accept: expected success ...
        """
        rows = self._rows(X)
        brought = self._offer_rows(offers, len(rows))
        missing, unseen = self._missing(X), self._unfamiliar(X, rows)
        sentences = []
        for i in range(len(rows)):
            d = self._alone(rows, i, brought)
            if isinstance(d, OfferedDecision) and brought is not None:
                sentences.append(
                    self._explain_offer(d, brought.take(i, i + 1), f"{_without(missing[i])}{_with(unseen[i])}")
                )
                continue
            cost = self.objective.cost
            mean, even, enough = percents(d.mean, cost, cost if d.threshold is None else d.threshold)
            estimate = f"expected success {mean} (evidence: {count(d.n)} observations)"
            seen = f"{estimate}{_without(missing[i])}{_with(unseen[i])}"
            held = d.threshold is not None and d.threshold < d.mean <= cost and d.propensity < 1.0
            if d.mean > cost:
                sentences.append(f"Accept: {seen}, above the {even} break-even.")
            elif held and d.pending:
                sentences.append(
                    f"Reject for now: {seen}, below the {even} break-even. {d.pending:.1f} acceptances of similar "
                    "people are pending: wait for their outcomes."
                )
            elif held:
                sentences.append(
                    f"Reject: {seen}, so far below the {even} break-even that an outcome that comes late would not be "
                    "worth the risk."
                )
            elif d.threshold is not None and d.mean > d.threshold and d.propensity == 1.0:
                sentences.append(
                    f"Accept: {seen}, below the {even} break-even but above the minimum of {enough}: what the outcome "
                    "teaches about similar people is worth the risk."
                )
            else:
                sentences.append(
                    f"Reject: {seen}, not above the minimum of {enough} at which the outcome would be worth the risk "
                    f"(break-even {even})."
                )
        return sentences

    def _explain_offer(self, d: OfferedDecision, choice: OfferRows, remarks: str) -> str:
        """Return the decision on an offer and its reason, in money."""
        money = self.objective.offers.money
        size, largest = money.format(d.amount), float(choice.stake[0])
        verb = f"Offer {size} instead of {money.format(largest)}" if largest > d.amount else f"Accept {size}"
        mean, even = percents(d.mean, d.cost)
        profit, label = d.amount * (d.mean - d.cost), d.label_value or 0.0
        estimate = f"expected success {mean} (evidence: {count(d.n)} observations){remarks}"
        if profit > 0.0:
            return f"{verb}: {estimate}, above the {even} break-even. The expected profit is {money.format(profit)}."
        facts = f"{estimate}, not above the {even} break-even. The expected loss is {money.format(-profit)}."
        worth = money.format(label)
        if d.propensity == 1.0:
            return f"{verb}: {facts} What the outcome teaches about similar people is worth {worth}."
        waiting = f" {d.pending:.1f} acceptances of similar people are pending." if (d.pending or 0.0) >= 0.05 else ""
        most = money.format(label / (d.cost - d.mean)) if d.cost > d.mean else ""
        below = f" At this break-even, amounts below {most} are accepted." if most and profit + label <= 0.0 else ""
        return f"Reject {size}: {facts} What the outcome teaches about similar people is worth {worth}.{waiting}{below}"

    def _missing(self, X: Any) -> list[list[str]]:
        """Return the missing features of each row as given."""
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:  # A sparse matrix has zeros and no missing values.
            return [[]] * X.shape[0]
        return [[name for name, cell in zip(self._names(), row, strict=True) if is_missing(cell)] for row in cells]

    def _unfamiliar(self, X: Any, rows: NDArray[np.float64]) -> list[list[str]]:
        """Return the unseen categories of each row, except those of missing features."""
        if self.transformer_ is None or not self._unseen.blocks:
            return [[]] * len(rows)
        cells, names, of_rows = np.asarray(X, dtype=object), self._names(), []
        for i, which in enumerate(self._unseen.where(self._raw(X, reset=False), rows)):
            categories = []
            for block, unseen in zip(self._unseen.blocks, which, strict=True):
                cell = None if block.name is None else cells[i, names.index(block.name)]
                if unseen and block.name is None:
                    categories.append("of a feature that the Pipeline makes")
                elif unseen and not is_missing(cell):
                    categories.append(f"{block.name} = {cell!r}")
            of_rows.append(categories)
        return of_rows

    def _default_model(self) -> FeatureModel:
        return BayesianLogistic.for_cost(self._break_even())

    def _start(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        size = whole("reference", self.reference, least=1)
        real("explore", self.explore, least=0, most=1)
        if self.expire_after is not None:
            real("expire_after", self.expire_after, least=0)
        if self.exposure is not None and not hasattr(self.exposure, "exposure"):
            real("exposure", self.exposure, least=0)
        self.cost_ = self._break_even()
        most = min(self.objective.discount_at(0), 1.0 - 1e-9)
        if self.objective.offers is None:
            self.table_: ThresholdTable = threshold_table(self.cost_, most)
        else:
            self.label_table_: LabelTable = label_table(self.objective.offers, most)
        pick = np.arange(len(rows)) if len(rows) <= size else self._random.choice(len(rows), size, replace=False)
        self._reference(rows[pick], None if offers is None else offers.pick(pick))

    def _ready(self) -> None:
        """Warn if nobody would be accepted before the first label, because then no label ever comes."""
        if self.labels_ or self.explore:
            return
        chances = np.ones(len(self.reference_))
        if any(decision.propensity > 0 for decision in self._decide(self.reference_, chances, self._any_offer())):
            return
        most, even = percents(float(self.model_.beliefs(self.reference_)[1].max()), self.cost_)
        given = f"prior=Belief(2, {2 * self.cost_:.4g})" if hasattr(self.model_, "prior") else "its intercept_mean"
        warnings.warn(
            f"The policy would accept none of the {len(self.reference_)} reference rows, so it would never learn. "
            f"Before any label {type(self.model_).__name__} expects a success rate of at most {most}, and the "
            f"break-even is {even}. {self._late_reason()}Fit with known outcomes, give the model a prior closer to the "
            f"break-even ({given}), or explore (explore=0.05)",
            NeverStartsWarning,
            stacklevel=3,
        )

    def _late_reason(self) -> str:
        """Return a sentence about late outcomes where limits apply, with a space after it."""
        if not self._limited():
            return ""
        if self.exposure is not None:
            return "The limits given with exposure= count as well. "
        delay = self.objective.label_delay * (self.objective.arrivals or 1.0)
        return f"Outcomes come {delay:.3g} arrivals late on average, so a first one is worth less. "

    def _any_offer(self) -> OfferRows | None:
        """Return all of the population's offers for each reference row, of which one may be made."""
        population = self.objective.offers
        if population is None:
            return None
        choice = Offers.menu(population.amount, population.cost)
        return OfferRows.of(choice, len(self.reference_), population)

    def _reference(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        self.reference_ = np.array(rows)
        if self.objective.offers is not None:
            self._brought = ReferenceOffers.of(len(rows), self.objective.offers, offers)
        self._oldest = 0
        self._log_odds: ReferenceLogOdds | None = None  # of the reference rows, once a decision needs them

    def _learn(
        self, rows: NDArray[np.float64], outcomes: NDArray[np.float64], stakes: NDArray[np.float64] | None = None
    ) -> None:
        known, self._log_odds = self._log_odds, None
        if known is None or len(rows) > 1:
            super()._learn(rows, outcomes, stakes)
            return
        known.follow(self.model_.belief_.learn_one(rows[0], float(outcomes[0])))
        self._log_odds = known

    def _arrived(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        if not self.refresh:
            return
        size = whole("reference", self.reference, least=1)
        first = max(len(rows) - size, 0)
        for i, row in enumerate(rows[first:], first):
            at = self._oldest % size
            if len(self.reference_) < size:
                at = len(self.reference_)
                self.reference_ = np.vstack((self.reference_, row[None]))
                self._log_odds = None
                if offers is not None:
                    self._brought = self._brought.longer()
            else:
                self.reference_[at] = row
                self._oldest += 1
                if self._log_odds is not None:
                    self._log_odds.replace(self.model_, at, row)
            if offers is not None:
                self._brought.put(at, offers, i, self.objective.offers)

    def _decide(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], offers: OfferRows | None
    ) -> list[Decision]:
        gammas = np.array([self._discount(i) for i in range(len(rows))])
        if offers is not None:
            if isinstance(self.model_, LogisticEstimator) and self.exposure is None:
                table = self._decide_logistic_offers(rows, chances, gammas, offers)
            else:
                table = self._decide_any_offers(rows, chances, gammas, offers)
            return [self._offered(i, fields.tolist(), offers) for i, fields in enumerate(table)]
        if not isinstance(self.model_, LogisticEstimator):
            table = self._decide_any(rows, chances, gammas)
        elif self._limited():
            table = self._decide_logistic_limited(rows, chances, gammas)
        else:
            table = self._decide_logistic(rows, chances, gammas)[:, :7]
        return [
            Decision(self.arrivals_ + i, bool(fields[0] > 0), *(float(field) for field in fields[1:]))
            for i, fields in enumerate(table)
        ]

    def _decide_logistic(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Decide with a Bayesian logistic regression, in compiled code."""
        return self._run_logistic(self.model_.design(rows), *self._designed_pending(len(rows)), gammas, chances)

    def _decide_logistic_limited(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Decide with a Bayesian logistic regression and exposure limits, which may need a solve for each row."""
        design = self.model_.design(rows)
        pending, waiting = self._designed_pending(len(rows))
        out = np.empty((len(rows), 7))
        for i in range(len(rows)):
            one = slice(i, i + 1)
            _, counted, mean, n, discount, _, near, q, left, explored = self._run_logistic(
                design[one], pending[: waiting + 1], waiting, gammas[one], np.ones(1)
            )[0].tolist()
            if self.exposure is None:
                # Limits are optimal if the prior is right. If the truth is better than the prior, they are too tight.
                accept = counted >= 1.0 or self._below_limit(mean, n, discount, q, left, explored)
            else:
                accept = self._below_limit(mean, n, discount, q, left, near)
            out[i] = self._limited_decision(accept, float(chances[i]), mean, n, discount, left, near)
            if out[i, 0]:
                pending[waiting] = design[i]
                waiting += 1
        return out

    def _run_logistic(
        self,
        design: NDArray[np.float64],
        pending: NDArray[np.float64],
        waiting: int,
        gammas: NDArray[np.float64],
        chances: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Run the compiled decisions on rows of the design."""
        model, reference = self.model_, self._projected()
        out = np.empty((len(design), 10))
        decide_rows(
            design,
            model.weights_,
            model.means_,
            model.covariances_,
            reference.design,
            reference.m,
            reference.v,
            pending,
            waiting,
            gammas,
            chances,
            float(self.explore),
            *self.table_,
            out,
        )
        return out

    def _projected(self) -> ReferenceLogOdds:
        """Return the log-odds of the reference rows."""
        if self._log_odds is None:
            self._log_odds = ReferenceLogOdds(self.model_, self.reference_)
        return self._log_odds

    def _designed_pending(self, rows: int) -> tuple[NDArray[np.float64], int]:
        """Return the design of the pending acceptances, with room for ``rows`` more, and their number."""
        waiting = [row for _, row in self._pending_outcomes.pending.values()]
        pending = np.zeros((len(waiting) + rows, self.model_.means_.shape[1]))
        if waiting:
            pending[: len(waiting)] = self.model_.design(np.array(waiting))
        return pending, len(waiting)

    def _decide_logistic_offers(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64], offers: OfferRows
    ) -> NDArray[np.float64]:
        """Decide offers with a Bayesian logistic regression, in compiled code."""
        model, reference = self.model_, self._projected()
        pending, waiting = self._designed_pending(len(rows))
        out = np.empty((len(rows), FIELDS))
        arguments: list[Any] = [
            reference.design, reference.m, reference.v, *self._brought, pending, waiting, gammas, chances,
            float(self.explore), self._unit(), *offers, *self.label_table_[1:], out,
        ]  # fmt: skip
        decide_offer_rows(model.design(rows), model.weights_, model.means_, model.covariances_, *arguments)
        return out

    def _decide_any_offers(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64], offers: OfferRows
    ) -> NDArray[np.float64]:
        """Decide offers with any model, from its beliefs and likeness, and with exposure limits."""
        n, mean = self.model_.beliefs(rows)
        size, rate = self.model_.beliefs(self.reference_)
        precision, resolved = (size + 1.0) / np.maximum(rate * (1.0 - rate), 1e-12), 1.0 / (size + 2.0)
        like = self.model_.likeness(rows, self.reference_)
        near = self._similar_pending(rows, explored=False)
        among = self.model_.likeness(rows, rows) if len(rows) > 1 else np.ones((1, 1))
        unit = self._unit() / self.label_table_.unit
        out = np.empty((len(rows), FIELDS))
        for i in range(len(rows)):
            own = (n[i] + 1.0) / max(mean[i] * (1.0 - mean[i]), 1e-12)
            q, h, left, stake = offer_shares(
                like[i], rate, precision, resolved, mean[i], own, 1.0 / (n[i] + 2.0), *self._brought
            )
            discount = own_discount(gammas[i], q, h)
            pending = float(near[i])
            counted = n[i] + (pending if self.exposure is None else 0.0)
            where = stretched(mean[i], n[i], left, self.label_table_.kink, self.label_table_.slope)
            label = unit * stake * left * float(self.label_table_.label_value(counted, where, discount))
            best = best_offer(offers.amount, offers.cost, offers.start[i], offers.start[i + 1], mean[i])
            profit = offers.amount[best] * (mean[i] - offers.cost[best])
            below = self.exposure is None or pending < self._limit(float(n[i]), float(mean[i]), q)
            propensity = 1.0 if profit > 0.0 or (profit + label > 0.0 and below) else float(self.explore)
            taken = chances[i] < propensity
            out[i] = taken, propensity, mean[i], n[i], discount, pending, best, label
            if taken:
                near[i + 1 :] += among[i + 1 :, i]
        return out

    def _unit(self) -> float:
        """Return the population's mean amount, times what is left of a label's value if it comes late."""
        rate, delay = self.objective.discount_rate, self.objective.label_delay
        return float(self.objective.offers.mean_amount / (1.0 + (rate * delay if delay else 0.0)))

    def _offered(self, i: int, fields: list[float], offers: OfferRows) -> OfferedDecision:
        """Return the decision on a row from its fields."""
        taken, propensity, mean, n, discount, pending, best, label = fields
        return OfferedDecision(
            self.arrivals_ + i, taken > 0, propensity, mean, n, discount, None, pending,
            amount=float(offers.amount[int(best)]), cost=float(offers.cost[int(best)]), label_value=label,
        )  # fmt: skip

    def _decide_any(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Decide with any model, from its beliefs and likeness, and with exposure limits."""
        cost = self.cost_
        n, mean = self.model_.beliefs(rows)
        size, rate = self.model_.beliefs(self.reference_)
        spread = np.maximum(rate * (1.0 - rate), 1e-12)
        distance, resolved = (rate - cost) ** 2 * (size + 1.0) / spread, 1.0 / (size + 2.0)
        like = self.model_.likeness(rows, self.reference_)
        explored = self.exposure is None and self._limited()
        near = self._similar_pending(rows, explored)
        among = self.model_.likeness(rows, rows) if len(rows) > 1 else np.ones((1, 1))
        out = np.empty((len(rows), 7))
        for i in range(len(rows)):
            own = (mean[i] - cost) ** 2 * (n[i] + 1.0) / max(mean[i] * (1.0 - mean[i]), 1e-12)
            q, h, left = shares(like[i], rate, distance, resolved, own, 1.0 / (n[i] + 2.0), cost)
            discount = own_discount(gammas[i], q, h)
            pending = float(near[i])
            if self._limited():
                size, expected = float(n[i]), float(mean[i])
                accept = self._below_limit(expected, size, discount, q, left, pending)
                out[i] = self._limited_decision(accept, float(chances[i]), expected, size, discount, left, pending)
            else:
                threshold = lenient(cost, float(self.table_.threshold(n[i] + pending, discount)), left)
                propensity = 1.0 if mean[i] > cost or mean[i] > threshold else float(self.explore)
                out[i] = chances[i] < propensity, propensity, mean[i], n[i], discount, threshold, pending
            if out[i, 0] and not (explored and mean[i] > cost):
                near[i + 1 :] += among[i + 1 :, i]
        return out

    def _below_limit(self, mean: float, n: float, discount: float, q: float, left: float, pending: float) -> bool:
        """Return whether to accept at a belief with this many similar acceptances pending."""
        if mean > self.cost_:
            return True
        threshold = lenient(self.cost_, float(self.table_.threshold(n, discount)), left)
        return mean > threshold and pending < self._limit(n, mean, q)

    def _limited_decision(
        self, accept: bool, chance: float, mean: float, n: float, discount: float, left: float, pending: float
    ) -> tuple[float, ...]:
        """Return the fields of a decision with exposure limits."""
        threshold = lenient(self.cost_, float(self.table_.threshold(n, discount)), left)
        propensity = 1.0 if accept else float(self.explore)
        return float(chance < propensity), propensity, mean, n, discount, threshold, pending

    def _limited(self) -> bool:
        """Return whether exposure limits apply."""
        return self.exposure is not None or self.objective.label_delay > 0.0

    def _similar_pending(self, rows: NDArray[np.float64], explored: bool) -> NDArray[np.float64]:
        """Return the effective number pending for each row; ``explored``: only those not above the break-even."""
        waiting = np.array([row for _, row in self._pending_outcomes.pending.values()])
        if explored and len(waiting):
            waiting = waiting[self.model_.beliefs(waiting)[1] <= self.cost_]
        if not len(waiting):
            return np.zeros(len(rows))
        return np.asarray(self.model_.likeness(rows, waiting).sum(axis=1))

    def _limit(self, n: float, mean: float, q: float) -> float:
        """Return how many like x may be pending at x's belief, if people like x are a share q of the arrivals."""
        solved = self.exposure
        if solved is None:
            if not self.objective.label_delay:
                return math.inf
            arrivals = (self.objective.arrivals or 1.0) * self.objective.label_delay
            discounting = arrivals * (1.0 / max(self._discount(), 1e-9) - 1.0)
            return exposure_limit(n, mean, self.cost_, q * arrivals, discounting)
        if not hasattr(solved, "exposure"):
            return float(solved)
        prior = solved.prior
        k = max(round(n - prior.n), 0)
        j = min(max(round(mean * (prior.n + k) - prior.s), 0), k)
        return float(solved.exposure(prior.n + k, prior.s + j))


def _without(missing: list[str]) -> str:
    """Return a phrase that lists missing features."""
    return f", without the missing {plural(len(missing), 'feature')} {', '.join(missing)}" if missing else ""


def _with(unseen: list[str]) -> str:
    """Return a phrase that lists unseen categories."""
    return f", with the unseen {plural(len(unseen), 'category', 'categories')} {', '.join(unseen)}" if unseen else ""


@compiled
def decide_rows(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    R: NDArray[np.float64],
    reference_m: NDArray[np.float64],
    reference_v: NDArray[np.float64],
    pending: NDArray[np.float64],
    waiting: int,
    gammas: NDArray[np.float64],
    chances: NDArray[np.float64],
    explore: float,
    cost: float,
    n0: float,
    n_step: float,
    g0: float,
    g_step: float,
    f: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Decide rows in turn. Write accepted, propensity, p̂, n, γ′, c_n and the effective pending of each.

    Three more columns serve exposure limits: q, the share of the leniency that is left, and the effective pending of
    those who are not above the break-even.
    ``pending`` has room for those accepted here, after the ``waiting`` rows that it holds.
    """
    several, size = means.shape
    m, v, p, s = np.empty((4, several))
    U = np.empty((several, size))
    pending_m, pending_v, pending_p, pending_s = np.empty((4, pending.shape[0], several))
    rates, spreads = np.empty((2, pending.shape[0]))
    project_rows(pending[:waiting], means, covariances, pending_m, pending_v)
    for k in range(waiting):
        rates[k], spreads[k] = mixed_roughly(weights, pending_m[k], pending_v[k], pending_p[k], pending_s[k])
    for i in range(X.shape[0]):
        project_all(X[i], means, covariances, m, v, U)
        mean, variance = mixed(weights, m, v, p, s)
        n = belief_size(mean, variance)
        q, h, left = q_and_h(weights, m, v, U, p, s, R, reference_m, reference_v, cost)
        rough, spread = mixed_roughly(weights, m, v, p, s)
        near = 0.0
        below = 0.0
        for k in range(waiting):
            like = liken(
                pending[k], pending_v[k], pending_p[k], pending_s[k], rates[k], spreads[k],
                weights, v, U, p, s, rough, spread,
            )  # fmt: skip
            near += like
            if rates[k] <= cost:
                below += like
        discount = own_discount(gammas[i], q, h)
        threshold = lenient(cost, look_up(cost, n0, n_step, g0, g_step, f, n + near, discount), left)
        propensity = 1.0 if mean > cost or mean > threshold else explore
        taken = chances[i] < propensity
        out[i, 0] = 1.0 if taken else 0.0
        out[i, 1] = propensity
        out[i, 2] = mean
        out[i, 3] = n
        out[i, 4] = discount
        out[i, 5] = threshold
        out[i, 6] = near
        out[i, 7] = q
        out[i, 8] = left
        out[i, 9] = below
        if taken:
            pending[waiting] = X[i]
            pending_v[waiting], pending_p[waiting], pending_s[waiting] = v, p, s
            rates[waiting], spreads[waiting] = rough, spread
            waiting += 1

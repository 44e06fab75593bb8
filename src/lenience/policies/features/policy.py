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
(:mod:`lenience.policies.features.offer_decisions`). With a Delayed objective the label is worth at most what one more
pending label is worth in the problem of people like x (:mod:`lenience.solvers.offers.late_label_table`), so that each
offer has an exposure limit. The default model also accepts x if the label at n + m is worth the expected loss.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import percents
from lenience.core.offer_rows import OfferRows
from lenience.core.offers import Offers
from lenience.core.validation import real, whole
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.feature_columns import FeatureColumn, RowEncoding
from lenience.models.feature_model import FeatureModel, is_missing
from lenience.models.live_logistic import LiveLogistic
from lenience.models.logistic_belief import LogisticBelief
from lenience.models.logistic_estimator import LogisticEstimator
from lenience.policies.features.base import SelectivePolicy
from lenience.policies.features.decision import Decision, OfferedDecision
from lenience.policies.features.declared import DeclaredFeatures
from lenience.policies.features.effective_discount import (
    explored_share,
    lenient,
    offer_shares,
    own_discount,
    shares,
    stretched,
)
from lenience.policies.features.explanation import (
    Explainer,
    Explanation,
    checked_wording,
    evidence_in_words,
    remarks_on,
    summary,
)
from lenience.policies.features.feature_rule import FeatureRule
from lenience.policies.features.label_worth import counts_as, label_worth
from lenience.policies.features.logistic_rule import (
    ExposureLimits,
    LogisticRule,
    decision_table,
    label_unit,
    limits_apply,
    offered_decision,
)
from lenience.policies.features.offer_decisions import FIELDS, ReferenceOffers, best_offer
from lenience.policies.features.reference_set import ReferenceLogOdds
from lenience.solvers.offers.label_table import LabelTable
from lenience.solvers.stopping.threshold_table import ThresholdTable

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
    columns
        The features as a list of :class:`~lenience.models.FeatureColumn`. Rows are then mappings from names to values,
        or a data frame, with categories and missing values. Such a policy can be stored and served.

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
        columns: Any = None,
    ) -> None:
        self.model = model
        self.objective = objective
        self.reference = reference
        self.refresh = refresh
        self.explore = explore
        self.exposure = exposure
        self.expire_after = expire_after
        self.random_state = random_state
        self.columns = columns

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

    def decide_batch(self, batch: Any, amount: str | None = None, cost: str | None = None) -> Any:
        """Decide a batch of a table, each row as if alone and without exploring. Nothing is logged or changed.

        A batch goes through Python, so this works wherever a table can be cut into Arrow batches: DuckDB, Spark
        (``mapInArrow``), Ray and Dask (``map_batches``). Decisions are the same for any cut.

        Parameters
        ----------
        batch : pyarrow.Table or pyarrow.RecordBatch
            Applicants, with a column for each feature.
        amount : str, optional
            The column with the amount at stake (gain + loss), if the objective has offers.
        cost : str, optional
            The column with the break-even, if the objective has offers.

        Returns
        -------
        pyarrow.Table or pyarrow.RecordBatch
            The batch with ``decision``, ``reason``, ``success_rate`` and ``evidence`` (how many outcomes the estimate
            is worth); with offers also ``expected_profit`` and ``label_value``.

        Raises
        ------
        InputError
            If a column is missing.

        Examples
        --------
        >>> import pyarrow
        >>> from lenience import Discounted
        >>> from lenience.models import FeatureColumn
        >>> past = [{"income": 10.0}, {"income": 40.0}] * 50
        >>> policy = FeaturePolicy(objective=Discounted(0.6, discount=0.9), columns=[FeatureColumn("income")])
        >>> decided = policy.fit(past, [0, 1] * 50).decide_batch(pyarrow.table({"income": [12.0, 38.0]}))
        >>> decided["decision"].to_pylist(), decided["reason"].to_pylist()
        (['reject', 'accept'], ['below_threshold', 'above_break_even'])
        """
        from lenience.policies.features.table_decisions import decide_batch

        return decide_batch(self, batch, amount, cost)

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
        decisions = self._each_alone(rows, any_offer)
        return np.array([decision.label_value for decision in decisions if isinstance(decision, OfferedDecision)])

    def explain(self, X: Any, offers: Any = None, wording: Any = None, noun: str = "cases") -> list[Explanation]:
        """Return the decision for each row if it came now, alone, and why.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.
        offers : optional
            What each row asks for, as in :meth:`decide`.
        wording : dict, optional
            The lender's own sentence for a feature, by name, for the reasons of rejections.
        noun : str, default "cases"
            What a case is called, in the plural, such as "loans".

        Returns
        -------
        list of Explanation
            One explanation for each row: contributions of the features, the evidence, what would have changed the
            answer, and the main reasons of a rejection. With a Pipeline, or a model that is not a logistic regression,
            it has the decision, its reason in a sentence and the evidence.

        Examples
        --------
        >>> from lenience import Discounted
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit(X)
        >>> print(policy.explain(X[:1])[0].summary)
        Accept: expected success ...
        """
        rows = self._rows(X)
        brought = self._offer_rows(offers, len(rows))
        missing, unseen = self._missing(X), self._unfamiliar(X, rows)
        explainer = self._explainer(wording, noun)
        checked_wording(wording, self._names())
        explanations = []
        for i in range(len(rows)):
            decision = self._alone(rows, i, brought)
            choice = None if brought is None else brought.take(i, i + 1)
            sentence = summary(decision, self.objective, choice, remarks_on(missing[i], unseen[i]))
            if explainer is None:
                explanations.append(Explanation(sentence, decision, evidence_in_words(decision.n, noun)))
                continue
            accepts = self._accepting(explainer.rule, choice)
            given = [None if is_missing(cell) else cell for cell in self._cells(X)[i].tolist()]
            explanations.append(explainer.explain(rows[i], decision, sentence, accepts, given))
        return explanations

    def _explainer(self, wording: Any, noun: str) -> Explainer | None:
        """Return what explains decisions in detail; None for a Pipeline or a model that is not logistic."""
        if not isinstance(self.model_, LogisticEstimator) or self.exposure is not None:
            return None
        if isinstance(self.transformer_, DeclaredFeatures):
            encoding = self.transformer_.encoding
        elif self.transformer_ is None and len(set(names := self._names())) == len(names):
            encoding = RowEncoding([FeatureColumn(name) for name in names])
        else:
            return None
        return Explainer(self._rule(), encoding, self.reference_, wording, noun)

    def _accepting(self, rule: LogisticRule, choice: OfferRows | None) -> Callable[[Any], NDArray[np.bool_]]:
        """Return a function that says which of many rows would be accepted now, each as if alone, with one choice."""
        pending, arrivals = self._designed_pending(), self.arrivals_
        return lambda rows: rule.accepts(rows, pending, arrivals, choice)

    def _missing(self, X: Any) -> list[list[str]]:
        """Return the missing features of each row as given."""
        cells = self._cells(X)
        if cells.ndim != 2:  # A sparse matrix has zeros and no missing values.
            return [[]] * X.shape[0]
        return [[name for name, cell in zip(self._names(), row, strict=True) if is_missing(cell)] for row in cells]

    def _unfamiliar(self, X: Any, rows: NDArray[np.float64]) -> list[list[str]]:
        """Return the unseen categories of each row, except those of missing features."""
        if self.transformer_ is None or not self._unseen.blocks:
            return [[]] * len(rows)
        cells, names, of_rows = self._cells(X), self._names(), []
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

    def _cells(self, X: Any) -> NDArray[Any]:
        """Return the rows as given, with a column for each feature."""
        if isinstance(self.transformer_, DeclaredFeatures):
            people = self.transformer_.applicants(X)
            return np.array([[person.get(name) for name in self._names()] for person in people], dtype=object)
        return np.asarray(X, dtype=object)

    def _default_model(self) -> FeatureModel:
        return BayesianLogistic.for_cost(self._break_even())

    def _start(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        size = whole("reference", self.reference, least=1)
        real("explore", self.explore, least=0, most=1)
        if self.expire_after is not None:
            real("expire_after", self.expire_after, least=0)
        if self.exposure is not None and not hasattr(self.exposure, "exposure"):
            real("exposure", self.exposure, least=0)
        self.cost_, self._late_limits = self._break_even(), True
        table: Any = decision_table(self.objective)
        if self.objective.offers is None:
            self.table_: ThresholdTable = table
        else:
            self.label_table_: LabelTable = table
        pick = np.arange(len(rows)) if len(rows) <= size else self._random.choice(len(rows), size, replace=False)
        self._reference(rows[pick], None if offers is None else offers.pick(pick))

    def _ready(self) -> None:
        """Warn if nobody would be accepted before the first label, because then no label ever comes."""
        if isinstance(self.model_, LogisticEstimator):
            self._projected()  # From here on every label moves them.
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
        if not limits_apply(self.objective, self.exposure):
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
        places = []
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
                places.append(at)
            if offers is not None:
                self._brought.put(at, offers, i, self.objective.offers)
        if places and self._log_odds is not None:
            self._log_odds.replace(self.model_.belief_, places, rows[len(rows) - len(places) :])

    def _decide(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], offers: OfferRows | None
    ) -> list[Decision]:
        if isinstance(self.model_, LogisticEstimator) and (offers is None or self.exposure is None):
            return self._rule().decide(rows, self._designed_pending(), self.arrivals_, chances, offers)
        gammas = np.array([self._discount(i) for i in range(len(rows))])
        if offers is not None:
            table = self._decide_any_offers(rows, chances, gammas, offers)
            return [offered_decision(self.arrivals_ + i, fields.tolist(), offers) for i, fields in enumerate(table)]
        table = self._decide_any(rows, chances, gammas)
        return [
            Decision(self.arrivals_ + i, bool(fields[0] > 0), *(float(field) for field in fields[1:]))
            for i, fields in enumerate(table)
        ]

    def _each_alone(self, rows: NDArray[np.float64], offers: OfferRows | None) -> list[Decision]:
        if isinstance(self.model_, LogisticEstimator) and (offers is None or self.exposure is None):
            arrivals = np.full(len(rows), self.arrivals_, dtype=np.int64)
            return self._rule().decide_each(rows, self._designed_pending(), arrivals, offers)
        return super()._each_alone(rows, offers)

    def _rule(self) -> LogisticRule:
        """Return the rule of a logistic regression as it is now."""
        brought = None if self.objective.offers is None else self._brought
        table: Any = self.table_ if self.objective.offers is None else self.label_table_
        belief: LogisticBelief = self.model_.belief_
        return LogisticRule(
            belief, self._projected(), self.objective, table, brought, self.explore, self.exposure, self._late_limits
        )

    def to_rule(self) -> FeatureRule:
        """Return the policy as a value that can be stored, restored, hashed and served.

        It has a copy of what the policy knows, and keeps the reference rows as they are.

        Returns
        -------
        FeatureRule
            The rule, which decides as this policy does.

        Raises
        ------
        InputError
            If the policy has no declared columns, a model that cannot be stored, or limits of its own.

        Examples
        --------
        >>> from lenience import Discounted
        >>> from lenience.models import FeatureColumn
        >>> people = [{"income": float(i)} for i in range(50)]
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99), columns=[FeatureColumn("income")])
        >>> rule = policy.fit(people).to_rule()
        >>> rule.decide(people[0]).mean == float(policy.beliefs(people[:1])[1][0])
        True
        """
        if not isinstance(self.transformer_, DeclaredFeatures):
            raise InputError.because(
                "must declare the features, so that they can be stored", "columns", code="missing",
                hint='Fit FeaturePolicy(columns=[FeatureColumn("income"), …]) with them.',
            )  # fmt: skip
        if not isinstance(self.model_, LogisticEstimator):
            raise InputError("model", type(self.model_).__name__, "a BayesianLogistic or a CalibratedScore")
        if self.exposure is not None:
            raise InputError.because("cannot be stored with the policy", "exposure", value=self.exposure)
        rule, known = self._rule(), self.model_.belief_
        copied = LogisticBelief(
            known.design, known.weights.copy(), known.means.copy(), known.covariances.copy(), known.labels
        )
        model = LiveLogistic(self.transformer_.encoding.columns, copied)
        return FeatureRule(
            model, self.objective, self.reference_, self.explore, rule.brought, rule.table, rule.reference,
            self._late_limits,
        )  # fmt: skip

    @classmethod
    def from_rule(cls, rule: FeatureRule) -> FeaturePolicy:
        """Return a fitted policy that decides and learns as a rule does.

        Parameters
        ----------
        rule : FeatureRule
            The rule, e.g. what a service sends. It is copied.

        Returns
        -------
        FeaturePolicy
            The policy, with an empty log. It keeps the reference rows (``refresh=False``).

        Examples
        --------
        >>> from lenience import Discounted
        >>> from lenience.models import FeatureColumn
        >>> people = [{"income": float(i)} for i in range(50)]
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99), columns=[FeatureColumn("income")])
        >>> rule = policy.fit(people).to_rule()
        >>> FeaturePolicy.from_rule(rule).to_rule().state_hash() == rule.state_hash()
        True
        """
        from lenience.policies.features.storing import policy_of

        return policy_of(rule, cls)

    def save(self, path: Any) -> None:
        """Write the policy to a JSON file, with everything it knows.

        The log and pending outcomes are not part of it.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        InputError
            If the policy cannot be stored, or the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from lenience import Discounted
        >>> from lenience.models import FeatureColumn
        >>> people = [{"income": float(i)} for i in range(50)]
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99), columns=[FeatureColumn("income")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     policy.fit(people, [1, 0] * 25).save(Path(folder) / "policy.json")
        ...     FeaturePolicy.load(Path(folder) / "policy.json").labels_
        50
        """
        from lenience.policies.features.storing import save_rule

        save_rule(self.to_rule(), path)

    @classmethod
    def load(cls, path: Any) -> FeaturePolicy:
        """Read a policy that :meth:`save` or ``lenience fit`` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        FeaturePolicy
            The fitted policy, with an empty log. It keeps the reference rows (``refresh=False``).

        Raises
        ------
        InputError
            If the file is not such a policy, or was changed.
        """
        from lenience.policies.features.storing import load_rule

        return cls.from_rule(load_rule(path))

    def _projected(self) -> ReferenceLogOdds:
        """Return the log-odds of the reference rows."""
        if self._log_odds is None:
            self._log_odds = ReferenceLogOdds(self.model_.belief_, self.reference_)
        return self._log_odds

    def _designed_pending(self) -> NDArray[np.float64]:
        """Return the design of the pending acceptances."""
        waiting = [row for _, row in self._pending_outcomes.pending.values()]
        empty: NDArray[np.float64] = np.empty((0, self.model_.means_.shape[1]))
        return self.model_.design(np.array(waiting)) if waiting else empty

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
        limits = ExposureLimits(self.objective, None, self.exposure, self.arrivals_)
        late = self.exposure is None and limits_apply(self.objective, None)
        unit = limits.unit if late else label_unit(self.objective)
        explored = self._explored_pending(rows, mean) if late else near
        out = np.empty((len(rows), FIELDS + late))
        for i in range(len(rows)):
            own = (n[i] + 1.0) / max(mean[i] * (1.0 - mean[i]), 1e-12)
            q, h, left, free, stake = offer_shares(
                like[i], rate, precision, resolved, mean[i], mean[i], own, 1.0 / (n[i] + 2.0), *self._brought
            )
            discount = own_discount(gammas[i], q, h)
            pending = float(near[i])
            # With exposure limits, pending acceptances count by the limit.
            counted = n[i] + (pending if self.exposure is None and not late else 0.0)
            where = stretched(mean[i], n[i], left, self.label_table_.kink, self.label_table_.slope)
            table = self.label_table_.label_value(counted, where, discount)
            label = unit / self.label_table_.unit * stake * left * float(table)
            if free > 0.0:
                worth = label_worth(
                    np.sqrt(like[i] / precision), rate, self._brought.cost, self._brought.stake,
                    counts_as(like[i].sum()), mean[i], 1.0 / math.sqrt(own), n[i], counted - n[i], free, gammas[i],
                )  # fmt: skip
                label = min(label, unit * worth)
            first = label
            if late:
                at = float(n[i]), float(mean[i]), q
                first, label = (min(label, stake * limits.late_label(*at, m)) for m in (0.0, float(explored[i])))
            best = best_offer(offers.amount, offers.cost, offers.start[i], offers.start[i + 1], mean[i])
            profit = offers.amount[best] * (mean[i] - offers.cost[best])
            below = self.exposure is None or pending < limits.limit(float(n[i]), float(mean[i]), q)
            propensity = 1.0 if profit > 0.0 or (profit + label > 0.0 and below) else float(self.explore)
            taken = chances[i] < propensity
            out[i, :FIELDS] = taken, propensity, mean[i], n[i], discount, pending, best, label
            out[i, FIELDS:] = first
            if taken:
                near[i + 1 :] += among[i + 1 :, i]
                if late:
                    explored[i + 1 :] += among[i + 1 :, i] * self._explored(mean[i + 1 :], mean[i])
        return out

    def _explored(self, mean: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
        """Return how much a pending acceptance with a success rate counts as explored, for rows with these rates."""
        table = self.label_table_
        return np.array([explored_share(rate, each, table.cost, table.start, table.share) for each in mean.tolist()])

    def _explored_pending(self, rows: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the effective number of explored acceptances pending for each row of offers."""
        waiting = np.array([row for _, row in self._pending_outcomes.pending.values()])
        if not len(waiting):
            return np.zeros(len(rows))
        counts = np.column_stack([self._explored(mean, rate) for rate in self.model_.beliefs(waiting)[1].tolist()])
        return np.asarray((self.model_.likeness(rows, waiting) * counts).sum(axis=1))

    def _decide_any(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], gammas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Decide with any model, from its beliefs and likeness, and with exposure limits."""
        cost = self.cost_
        n, mean = self.model_.beliefs(rows)
        size, rate = self.model_.beliefs(self.reference_)
        spread = np.maximum(rate * (1.0 - rate), 1e-12)
        distance, resolved = (rate - cost) ** 2 * (size + 1.0) / spread, 1.0 / (size + 2.0)
        variance = spread / (size + 1.0)
        costs, stakes = np.full((len(rate), 1), cost), np.ones((len(rate), 1))
        like = self.model_.likeness(rows, self.reference_)
        limited = limits_apply(self.objective, self.exposure)
        limits = ExposureLimits(self.objective, self.table_, self.exposure, self.arrivals_)
        explored = self.exposure is None and limited
        near = self._similar_pending(rows, explored)
        among = self.model_.likeness(rows, rows) if len(rows) > 1 else np.ones((1, 1))
        out = np.empty((len(rows), 7))
        for i in range(len(rows)):
            own = (mean[i] - cost) ** 2 * (n[i] + 1.0) / max(mean[i] * (1.0 - mean[i]), 1e-12)
            q, h, left, free = shares(like[i], rate, distance, resolved, own, 1.0 / (n[i] + 2.0), cost)
            discount = own_discount(gammas[i], q, h)
            pending = float(near[i])
            # With exposure limits, pending acceptances count by the limit.
            ahead = 0.0 if limited else pending
            worth = math.inf
            if free > 0.0:
                worth = label_worth(
                    np.sqrt(like[i] * variance), rate, costs, stakes, counts_as(like[i].sum()), mean[i],
                    math.sqrt(mean[i] * (1.0 - mean[i]) / (n[i] + 1.0)), n[i], ahead, free, gammas[i],
                )  # fmt: skip
            if limited:
                size, expected = float(n[i]), float(mean[i])
                accept = limits.accept(expected, size, discount, q, left, worth, pending)
                out[i] = limits.fields(
                    accept, float(chances[i]), float(self.explore), expected, size, discount, left, worth, pending
                )
            else:
                threshold = lenient(cost, float(self.table_.threshold(n[i] + pending, discount)), left, worth)
                propensity = 1.0 if mean[i] > cost or mean[i] > threshold else float(self.explore)
                out[i] = chances[i] < propensity, propensity, mean[i], n[i], discount, threshold, pending
            if out[i, 0] and not (explored and mean[i] > cost):
                near[i + 1 :] += among[i + 1 :, i]
        return out

    def _similar_pending(self, rows: NDArray[np.float64], explored: bool) -> NDArray[np.float64]:
        """Return the effective number pending for each row; ``explored``: only those not above the break-even."""
        waiting = np.array([row for _, row in self._pending_outcomes.pending.values()])
        if explored and len(waiting):
            waiting = waiting[self.model_.beliefs(waiting)[1] <= self.cost_]
        if not len(waiting):
            return np.zeros(len(rows))
        return np.asarray(self.model_.likeness(rows, waiting).sum(axis=1))

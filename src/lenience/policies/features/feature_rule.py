"""FeatureRule: a policy with declared features as a value that can be stored, restored and hashed.

It is a live model (:mod:`lenience.models.live_model`) together with what its decisions need: the objective, the rows
that represent the population, and the table of minimum rates. A decision is a function of this state, the applicant,
the offer and who is pending. Nothing is logged and nothing is random: whoever calls it gives the random number.

The frame holds everything that a version fixes, including the table of minimum rates, because another machine would
round it otherwise. Tables of offers are large and are computed again. The numbers hold the belief and the log-odds of
the reference rows, which follow every label.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.objective import Objective
from lenience.core.offer_rows import OfferRows
from lenience.core.validation import real
from lenience.models.feature_columns import FeatureColumn
from lenience.models.live_logistic import LiveLogistic
from lenience.models.live_model import ApplicantBelief, StoredModel, checked_outcome
from lenience.models.state_bytes import Array, invalid_state, pack, unpack
from lenience.policies.features.contributions import Comparison, mean_log_odds
from lenience.policies.features.decision import Decision
from lenience.policies.features.explanation import Explainer, Explanation, remarks_on, summary
from lenience.policies.features.logistic_rule import LogisticRule, decision_table
from lenience.policies.features.offer_decisions import ReferenceOffers
from lenience.policies.features.reference_set import ReferenceLogOdds
from lenience.solvers.stopping.threshold_table import ThresholdTable

CERTAINLY = 1.0 - 2.0**-53  # the largest random number: it accepts only those whom the policy accepts for certain

Rows = NDArray[np.float64]


class ThresholdFrame(msgspec.Struct, frozen=True):
    """The table of minimum rates."""

    cost: float
    n0: float
    n_step: float
    g0: float
    g_step: float
    f: Array


class RuleFrame(msgspec.Struct, frozen=True):
    """What a version fixes."""

    model: bytes
    objective: bytes
    explore: float
    reference: Array
    brought: tuple[Array, Array, Array] | None
    table: ThresholdFrame | None
    # Given with offers whose labels come late. States that were stored before there were such limits do not have it.
    late_limits: bool | msgspec.UnsetType = msgspec.UNSET


class RuleNumbers(msgspec.Struct, frozen=True):
    """What labels change: the model, and the log-odds of the reference rows."""

    model: bytes
    m: Array
    v: Array


class FeatureRule(StoredModel):
    """Decide applicants with declared features, and learn one label at a time.

    Parameters
    ----------
    model : LiveLogistic
        The model.
    objective : Objective
        The objective: Discounted, FiniteHorizon or Delayed, with one cost or with offers.
    reference : ndarray
        Encoded rows that represent the population, as :attr:`encoding` makes them.
    explore : float, default 0
        The probability of accepting those whom the policy would reject.
    brought : ReferenceOffers, optional
        What the reference rows bring, if the objective has offers. By default what the objective says.
    table : optional
        The table of the objective's decisions, if it is known already.
    log_odds : ReferenceLogOdds, optional
        The log-odds of the reference rows, if they are known already; they are copied.
    late_limits : bool, default True
        Whether offers whose labels come late have exposure limits.

    Raises
    ------
    InputError
        If the reference rows do not have the columns of the model.

    Examples
    --------
    >>> from lenience import Discounted
    >>> from lenience.models import BayesianLogistic, FeatureColumn, LiveLogistic, RowEncoding
    >>> columns = [FeatureColumn("income", unit="USD"), FeatureColumn("region", "category", values=("north", "south"))]
    >>> past = [{"income": 1000.0 * i, "region": "north" if i % 3 else "south"} for i in range(30)]
    >>> rows = RowEncoding(columns).rows(past)
    >>> fitted = BayesianLogistic().spare(1).centre_on(0.8).prepare(rows)
    >>> rule = FeatureRule(LiveLogistic(columns, fitted.belief_), Discounted(cost=0.8, discount=0.99), rows)
    >>> decision = rule.decide({"income": 20_000, "region": "south"})
    >>> decision.accepted, decision.mean > decision.threshold
    (True, True)
    >>> rule.observe({"income": 20_000, "region": "south"}, False)
    >>> FeatureRule.from_state(rule.state()).state_hash() == rule.state_hash()
    True
    """

    kind: ClassVar[str] = "feature-policy"

    def __init__(
        self,
        model: LiveLogistic,
        objective: Objective,
        reference: Rows,
        explore: float = 0.0,
        brought: ReferenceOffers | None = None,
        table: Any = None,
        log_odds: ReferenceLogOdds | None = None,
        late_limits: bool = True,
    ) -> None:
        self.model = model
        self.objective = objective
        self.explore = real("explore", explore, least=0, most=1)
        self.reference = np.array(reference, dtype=np.float64)
        if self.reference.ndim != 2 or not len(self.reference) or self.reference.shape[1] != model.encoding.width:
            raise InputError(
                "reference", self.reference.shape, f"at least one row of {model.encoding.width} numbers",
                code="length_mismatch",
            )  # fmt: skip
        if brought is None and objective.offers is not None:
            brought = ReferenceOffers.of(len(self.reference), objective.offers, None)
        self._rule = LogisticRule(
            model.knowledge,
            ReferenceLogOdds(model.knowledge, self.reference),
            objective,
            decision_table(objective) if table is None else table,
            None if brought is None else ReferenceOffers(*(each.copy() for each in brought)),
            self.explore,
            late_limits=late_limits,
        )
        if log_odds is not None:
            self._rule.reference.m, self._rule.reference.v = log_odds.m.copy(), log_odds.v.copy()

    @property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """The declared features."""
        return self.model.columns

    @property
    def labels(self) -> int:
        """The number of labels learnt."""
        return self.model.labels

    @property
    def late_limits(self) -> bool:
        """Whether offers whose labels come late have exposure limits."""
        return self._rule.late_limits

    @property
    def cost(self) -> float:
        """The break-even success rate; with offers, that of accepting everyone."""
        offers = self.objective.offers
        return float(self.objective.cost if offers is None else offers.mean_cost)

    def encode(self, applicant: Mapping[str, Any]) -> Rows:
        """Return the row of numbers of an applicant, which can be stored for as long as its outcome is pending.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.

        Returns
        -------
        ndarray
            The row.
        """
        return self.model.encoding.row(applicant)

    def observe(self, applicant: Mapping[str, Any], outcome: bool) -> None:
        """Learn one label.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.
        outcome : bool
            Whether it was a success.
        """
        self.observe_row(self.encode(applicant), outcome)

    def observe_row(self, row: Rows, outcome: bool) -> None:
        """Learn the label of an encoded row.

        Parameters
        ----------
        row : ndarray
            What :meth:`encode` returned.
        outcome : bool
            Whether it was a success.
        """
        self._rule.reference.follow(self.model.knowledge.learn_one(row, checked_outcome(outcome)))

    def correct_row(self, row: Rows, outcome: bool) -> None:
        """Correct the label of an encoded row that was learnt before. It takes as long as learning one.

        Parameters
        ----------
        row : ndarray
            What :meth:`encode` returned.
        outcome : bool
            The right outcome; the opposite was learnt.
        """
        self._rule.reference.follow(self.model.knowledge.relabel_one(row, checked_outcome(outcome)))

    def copy(self) -> Self:
        """Return a rule that learns without changing this one.

        Returns
        -------
        FeatureRule
            The copy. It shares what never changes.
        """
        other = copy(self)
        other.model = copy(self.model)
        known = other.model.knowledge = copy(self.model.knowledge)
        known.weights, known.means = known.weights.copy(), known.means.copy()
        known.covariances = known.covariances.copy()
        other._rule = copy(self._rule)
        other._rule.belief = known
        reference = other._rule.reference = copy(self._rule.reference)
        reference.m, reference.v = reference.m.copy(), reference.v.copy()
        return other

    def belief(self, applicant: Mapping[str, Any]) -> ApplicantBelief:
        """Return the belief about an applicant.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.

        Returns
        -------
        ApplicantBelief
            Belief size and expected success probability.
        """
        return self.model.belief(applicant)

    def decide(
        self,
        applicant: Mapping[str, Any],
        offer: Any = None,
        pending: Any = (),
        arrivals: int = 0,
        chance: float = CERTAINLY,
    ) -> Decision:
        """Decide one applicant. Nothing changes.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.
        offer : Offer or Offers, optional
            What the applicant asks for, or a menu, if the objective has offers.
        pending : ndarray, or sequence of mapping
            Those who were accepted and have no outcome yet: encoded rows, or applicants.
        arrivals : int, default 0
            How many were decided before, which counts with a finite horizon.
        chance : float, optional
            A uniform random number below 1. By default nobody is accepted at random.

        Returns
        -------
        Decision
            The decision, with p̂, n, the minimum rate or the value of the label, the effective discount and the
            effective number of similar acceptances pending.
        """
        offers = None if offer is None else [offer]
        return self.decide_many([applicant], offers, pending, arrivals, np.array([chance]))[0]

    def decide_many(
        self,
        applicants: Any,
        offers: Any = None,
        pending: Any = (),
        arrivals: int = 0,
        chances: NDArray[np.float64] | None = None,
    ) -> list[Decision]:
        """Decide applicants in order. Those accepted earlier in the list are pending for those who come later.

        Parameters
        ----------
        applicants : ndarray, data frame or sequence of mapping
            Encoded rows, or applicants.
        offers : optional
            What each applicant asks for, as in :meth:`FeaturePolicy.decide <lenience.FeaturePolicy.decide>`.
        pending : ndarray, sequence of mapping, or ReferenceLogOdds
            Those who were accepted and have no outcome yet: encoded rows, applicants, or what :meth:`log_odds` returns.
        arrivals : int, default 0
            How many were decided before.
        chances : ndarray, optional
            A uniform random number for each. By default nobody is accepted at random.

        Returns
        -------
        list of Decision
            One decision for each applicant.
        """
        rows = self._encoded(applicants)
        design = self.model.knowledge.design
        population = self.objective.offers
        if population is None and offers is not None:
            raise InputError.because(
                "needs an objective with offers", "offers", code="unsupported_offers",
                hint="Give the objective offers= instead of cost=.",
            )  # fmt: skip
        brought = None if population is None else OfferRows.of(offers, len(rows), population)
        drawn = np.full(len(rows), CERTAINLY) if chances is None else chances
        known: Any = pending
        if not isinstance(pending, ReferenceLogOdds):
            waiting = self._encoded(pending)
            known = design.rows(waiting) if len(waiting) else np.empty((0, design.width))
        return self._rule.decide(rows, known, arrivals, drawn, brought)

    def decide_each(self, rows: Rows, arrivals: NDArray[np.int64], offers: Any = None) -> list[Decision]:
        """Decide encoded rows, each as if it came alone while nobody is pending, and without random acceptance.

        It is one computation for all rows, and gives the same numbers as one call for each.

        Parameters
        ----------
        rows : ndarray
            Encoded rows.
        arrivals : ndarray
            How many were decided before each row.
        offers : optional
            What each row asks for, as in :meth:`decide_many`.

        Returns
        -------
        list of Decision
            One for each row. ``propensity`` is the probability of acceptance, and nobody is ``accepted``.
        """
        population = self.objective.offers
        brought = None if population is None else OfferRows.of(offers, len(rows), population)
        nobody = np.empty((0, self.model.knowledge.design.width))
        return self._rule.decide_each(self._encoded(rows), nobody, arrivals, brought)

    def log_odds(self, rows: Rows) -> ReferenceLogOdds:
        """Return the log-odds of encoded rows by what is known now, to decide many times with the same rows pending.

        Parameters
        ----------
        rows : ndarray
            Encoded rows.

        Returns
        -------
        ReferenceLogOdds
            What ``pending`` takes until the next label.
        """
        return ReferenceLogOdds(self.model.knowledge, self._encoded(rows))

    def explain(
        self,
        applicant: Mapping[str, Any],
        offer: Any = None,
        pending: Any = (),
        arrivals: int = 0,
        wording: Mapping[str, str] | None = None,
        noun: str = "cases",
    ) -> Explanation:
        """Explain the decision about an applicant as :meth:`decide` makes it, without random acceptance.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.
        offer : Offer or Offers, optional
            What the applicant asks for, or a menu, if the objective has offers.
        pending : ndarray, or sequence of mapping
            Those who were accepted and have no outcome yet: encoded rows, or applicants.
        arrivals : int, default 0
            How many were decided before.
        wording : mapping, optional
            The lender's own sentence for a feature, by name, for the reasons of rejections.
        noun : str, default "cases"
            What a case is called, in the plural, such as "loans".

        Returns
        -------
        Explanation
            Contributions of the features, the evidence, what would have changed the answer, and the main reasons of a
            rejection.
        """
        decision = self.decide(applicant, offer, pending, arrivals)
        row, design, population = self.encode(applicant), self.model.knowledge.design, self.objective.offers
        waiting = self._encoded(pending)
        designed = design.rows(waiting) if len(waiting) else np.empty((0, design.width))
        choice = None if population is None else OfferRows.of(None if offer is None else [offer], 1, population)
        values = [column.check(applicant.get(column.name)) for column in self.columns]
        missing = [column.name for column, value in zip(self.columns, values, strict=True) if value is None]
        unseen = [f"{name} = {applicant[name]!r}" for name in self.model.encoding.unseen(applicant)]
        sentence = summary(decision, self.objective, choice, remarks_on(missing, unseen))
        explainer = Explainer(self._rule, self.model.encoding, self.reference, wording, noun)
        return explainer.explain(
            row, decision, sentence, lambda rows: self._rule.accepts(rows, designed, arrivals, choice), values
        )

    def comparison(self, cost: float) -> Comparison:
        """Return what tells which features lower applicants most, compared with the reference rows that are accepted.

        Parameters
        ----------
        cost : float
            The break-even. Applicants are compared with the reference rows above it.

        Returns
        -------
        Comparison
            It holds until the next label. Its ``lowering(row)`` gives the positions of the features, as the reasons of
            :meth:`explain` have them, in much less time than a whole explanation.
        """
        belief = self._rule.belief
        rates = belief.beliefs(self.reference)[1]
        return Comparison.with_accepted(belief, self.model.encoding, self.reference, rates, cost)

    def contributions(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return what each feature adds to the mean log-odds of encoded rows, compared with the reference rows.

        Parameters
        ----------
        rows : ndarray
            What :meth:`encode` returns, one line for each applicant.

        Returns
        -------
        contributions : ndarray
            One line for each applicant, one column for each feature.
        log_odds : ndarray
            The mean log-odds of each applicant: those of the reference rows plus its contributions.
        """
        knowledge = self.model.knowledge
        contributions = Comparison(knowledge, self.model.encoding, self.reference).of_rows(rows)
        return contributions, mean_log_odds(knowledge, rows)

    def similar(self, applicant: Mapping[str, Any], others: Any) -> Rows:
        """Return the likeness of an applicant and others, each from 0 to 1.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.
        others : ndarray, or sequence of mapping
            Encoded rows, or applicants.

        Returns
        -------
        ndarray
            How much of the uncertainty about each of the others would go if everything about the applicant were known.
        """
        return np.asarray(self.model.knowledge.likeness(self.encode(applicant)[None], self._encoded(others))[0])

    def to_specification(self) -> dict[str, Any]:
        """Return the rule as a JSON document that people can read, with the exact state as text.

        Returns
        -------
        dict
            JSON values, which :meth:`from_specification` reads.
        """
        from lenience.policies.features.storing import to_specification

        return to_specification(self)

    @classmethod
    def from_specification(cls, document: Mapping[str, Any]) -> FeatureRule:
        """Return the rule that a JSON document holds.

        Parameters
        ----------
        document : mapping
            What :meth:`to_specification` returned.

        Returns
        -------
        FeatureRule
            The rule.

        Raises
        ------
        InputError
            If the document is not a stored policy, or was changed.
        """
        from lenience.policies.features.storing import from_specification

        return from_specification(document)

    def _encoded(self, applicants: Any) -> Rows:
        if isinstance(applicants, np.ndarray) and applicants.dtype == np.float64:
            return np.ascontiguousarray(applicants.reshape(-1, self.model.encoding.width))
        return self.model.encoding.rows(applicants)

    def numbers(self) -> bytes:
        """Return what labels change, as bytes.

        Returns
        -------
        bytes
            The numbers.
        """
        reference = self._rule.reference
        return pack(RuleNumbers(self.model.numbers(), Array.of(reference.m), Array.of(reference.v)))

    def _frame(self) -> bytes:
        brought, table = self._rule.brought, self._rule.table
        lines = None if brought is None else (Array.of(brought[0]), Array.of(brought[1]), Array.of(brought[2]))
        late = self.late_limits and self.objective.offers is not None and self.objective.label_delay > 0.0
        kept = None
        if isinstance(table, ThresholdTable):
            n0, n_step, g0, g_step = (float(each) for each in table[1:5])
            kept = ThresholdFrame(table.cost, n0, n_step, g0, g_step, Array.of(table.f))
        return pack(
            RuleFrame(
                self.model.frame,
                msgspec.json.encode(self.objective),
                self.explore,
                Array.of(self.reference),
                lines,
                kept,
                True if late else msgspec.UNSET,
            )
        )

    @classmethod
    def _restore(cls, frame: bytes, numbers: bytes) -> Self:
        described, given = unpack(frame, RuleFrame), unpack(numbers, RuleNumbers)
        model = LiveLogistic._restore(described.model.partition(b"\n")[2], given.model)
        objective: Objective = Objective.from_builtins(msgspec.json.decode(described.objective))
        brought = None if described.brought is None else ReferenceOffers(*(each.values() for each in described.brought))
        table = None
        if described.table is not None:
            t = described.table
            table = ThresholdTable(t.cost, t.n0, t.n_step, t.g0, t.g_step, t.f.values())
        late_limits = described.late_limits is True
        reference_rows = described.reference.values()
        rule = cls(model, objective, reference_rows, described.explore, brought, table, late_limits=late_limits)
        m, v = given.m.values(), given.v.values()
        reference = rule._rule.reference
        if m.shape != reference.m.shape or v.shape != reference.v.shape:
            raise invalid_state("the log-odds of the reference rows have another shape")
        reference.m, reference.v = m, v
        return rule

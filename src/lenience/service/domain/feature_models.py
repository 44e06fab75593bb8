"""Models that decide by an applicant's own features: a logistic regression, or the user's own score, recalibrated.

The state is what the model knows of its coefficients. It starts from the state that came with the version, such as one
that was fitted to a history file, or from a prior. Labels teach it one at a time, in the order of the policy's own
chain, as with :mod:`lenience.service.domain.pooled_models`.

A correction turns a label that was learnt into its opposite. If the label is not too old, everything since is learnt
again, from the stored state before it (:mod:`lenience.service.storage.relearning`): the model then knows what it would
know if the label had been right at once. Otherwise, or if features that this needs were erased, the likelihood is
multiplied. The log-likelihood of a label y at x is yη − log(1 + e^η) with η = xᵀβ, so the opposite label changes it by
±η, which is linear in β: the Gaussian belief moves, and its covariance stays. That costs as much as a label and needs
nobody else's features. It is coarse where few labels are known, and close where many are. The log says which was done.

Features are personal data. They are stored beside the log and can be erased. A label of an applicant whose features
were erased, and a correction of it, teach the model nothing.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.models.feature_columns import FeatureColumn, RowEncoding
from lenience.service.domain import limits
from lenience.service.domain.pooled_models import CurveModel, ModelLabel, OwnModel, SharedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.core.objective import Objective
    from lenience.models.live_logistic import LiveLogistic
    from lenience.policies.features.contributions import Comparison
    from lenience.policies.features.decision import Decision
    from lenience.policies.features.feature_rule import FeatureRule
    from lenience.policies.features.reference_set import ReferenceLogOdds

    Rows = NDArray[np.float64]

REFERENCE = 100  # rows that represent the population if none are given
MOST_REFERENCE = 200
STATE = 2_000_000  # letters of a state
COMPARISONS = 32  # break-evens for which a state keeps what reasons need
CLOSE = 1e-6  # relative: another machine may round a decision's numbers otherwise
Value: TypeAlias = limits.FeatureValue | None
FeatureValues: TypeAlias = Mapping[str, Value]
Columns: TypeAlias = Annotated[list[FeatureColumn], Meta(max_length=limits.FEATURES)]
ReferenceRows: TypeAlias = Annotated[
    list[dict[limits.FeatureName, Value]],
    Meta(max_length=MOST_REFERENCE, description="Applicants that represent the population, without names"),
]
StateText: TypeAlias = Annotated[
    str, Meta(max_length=STATE, pattern=r"^[A-Za-z0-9+/=]*$", description="What the model knows already, in base64")
]
Wording: TypeAlias = Annotated[
    dict[limits.FeatureName, Annotated[str, Meta(min_length=1, max_length=500, pattern=limits.PLAIN)]],
    Meta(max_length=limits.FEATURES, description="Your own sentence for rejections because of a feature, by its name"),
]


class LogisticModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="logistic", tag_field="type"):
    """A Bayesian logistic regression on declared features."""

    columns: Annotated[Columns, Meta(min_length=1)]
    state: StateText | None = None
    reference: ReferenceRows = []
    reasons: Wording | UnsetType = UNSET  # not encoded if it is not given, as in specifications of earlier releases

    def __post_init__(self) -> None:
        _check_wording(self)

    @property
    def declared(self) -> list[FeatureColumn]:
        """The features of a request."""
        return self.columns


class CalibratedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="calibrated", tag_field="type"):
    """The user's own score, recalibrated as outcomes arrive."""

    score: limits.FeatureName
    scale: Annotated[
        Literal["failure", "success", "points"],
        Meta(description="What the score is: a probability of failure (default) or of success, or points"),
    ] = "failure"
    trust: Annotated[float, Meta(ge=0, le=1e9, description="How many outcomes the score is worth")] = 200.0
    higher_is_better: bool = True
    columns: Columns = []
    state: StateText | None = None
    reference: ReferenceRows = []
    reasons: Wording | UnsetType = UNSET

    def __post_init__(self) -> None:
        _check_wording(self)

    @property
    def declared(self) -> list[FeatureColumn]:
        """The features of a request: the score and those declared."""
        if any(column.name == self.score for column in self.columns):
            return self.columns
        if self.scale == "points":
            raise InputError.because(
                f"must declare the score {self.score!r} with its range, because it is in points",
                "model.columns",
                code="missing",
            )
        return [FeatureColumn(self.score, minimum=0.0, maximum=1.0, required=True), *self.columns]


def _check_wording(spec: FeatureSpec) -> None:
    """Raise InputError if there is a sentence for a feature that is not declared."""
    if not spec.reasons:
        return
    names = [column.name for column in spec.declared]
    for name in spec.reasons:
        if name not in names:
            raise InputError.unknown_name("model.reasons", name, names)


FeatureSpec: TypeAlias = LogisticModel | CalibratedModel
ModelSpec: TypeAlias = OwnModel | SharedModel | CurveModel | LogisticModel | CalibratedModel


class Applicant(msgspec.Struct, frozen=True, array_like=True):
    """What a decision rests on: the estimate for the applicant, its effective discount, and similar ones pending."""

    n: float
    mean: float
    discount: float
    pending: float

    def close_to(self, other: Applicant) -> bool:
        """Return whether two computations agree, up to rounding on another machine."""
        return all(
            abs(one - two) <= CLOSE * max(1.0, abs(one), abs(two))
            for one, two in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        )


class PendingApplicants(NamedTuple):
    """The rows of the accepted applicants of a chain without an outcome, by decision."""

    chain: int
    rows: Mapping[str, Any]


@dataclass(frozen=True)
class FeatureState:
    """What a model knows after a label, and from which event on it has learnt."""

    rule: FeatureRule
    since: int

    def encode(self) -> str:
        """Return what labels have changed as the text that is stored. The rest is stored once, with the version."""
        return f"{self.since}:{b64encode(self.rule.numbers()).decode()}"

    def digest(self) -> str:
        """Return the SHA-256 of the whole state."""
        return self._digest

    def comparison(self, cost: float) -> Comparison:
        """Return the comparison with those who are accepted at a break-even. The last ones are kept."""
        known = self._comparisons.get(cost)
        if known is None:
            if len(self._comparisons) >= COMPARISONS:
                self._comparisons.clear()
            known = self._comparisons[cost] = self.rule.comparison(cost)
        return known

    @cached_property
    def _comparisons(self) -> dict[float, Comparison]:
        return {}

    @cached_property
    def _digest(self) -> str:
        return self.rule.state_hash()


@dataclass
class FeatureModel:
    """The model of a version that decides by features.

    Parameters
    ----------
    spec : LogisticModel or CalibratedModel
        The model as the version names it.
    first : str
        The state from which the version starts, in base64 (:func:`first_state`).
    """

    spec: FeatureSpec
    first: str
    by_features: ClassVar[bool] = True
    encoding: RowEncoding = field(init=False)
    _known: dict[int, tuple[FeatureState, list[str], ReferenceLogOdds]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.encoding = RowEncoding(self.spec.declared)

    @cached_property
    def _start(self) -> FeatureRule:
        return _restored(self.first)

    @property
    def objective(self) -> Objective:
        """The objective."""
        return self._start.objective

    @property
    def labels_before(self) -> int:
        """The number of labels that the state from which the version starts has learnt."""
        return self._start.labels

    @property
    def reference(self) -> Rows:
        """The encoded applicants that represent the population."""
        return self._start.reference

    @cached_property
    def reference_is_data(self) -> bool:
        """Whether these are applicants, and not rows that are spread over the declared ranges."""
        try:
            spread = self.encoding.rows(typical_applicants(self.spec.declared))
        except InputError:
            return True  # without ranges nothing can be spread
        return spread.shape != self.reference.shape or bool((spread != self.reference).any())

    def start(self, counts: Mapping[str, tuple[int, int]], at: int = 0) -> FeatureState:
        """Return the state from which the version learns after an event, whatever the segments' counts are."""
        return FeatureState(self._start, at)

    def restore(self, text: str) -> FeatureState:
        """Return a stored state."""
        since, _, body = text.partition(":")
        return FeatureState(self._rule_of(b64decode(body)), int(since))

    def _rule_of(self, numbers: bytes) -> FeatureRule:
        from lenience.models.state_bytes import join
        from lenience.policies.features.feature_rule import FeatureRule

        return FeatureRule.from_state(join(self._start.frame, numbers))

    def digest_of(self, text: str) -> str:
        """Return the digest of a stored state."""
        from lenience.models.state_bytes import join

        return sha256(join(self._start.frame, b64decode(text.partition(":")[2]))).hexdigest()

    def row(self, inputs: str) -> Rows:
        """Return stored features as a row of numbers."""
        return self.encoding.row(msgspec.json.decode(inputs))

    def accepts(self, inputs: str | None) -> bool:
        """Return whether stored features are those that the model takes."""
        return inputs is not None and self.takes(msgspec.json.decode(inputs))

    def takes(self, applicant: FeatureValues) -> bool:
        """Return whether an applicant's features are those that the model takes."""
        try:
            self.encoding.row(applicant)
        except InputError:
            return False
        return True

    def warnings(self, applicant: FeatureValues) -> list[str]:
        """Return a warning for each category that is not declared. It does not repeat the value."""
        try:
            unseen = self.encoding.unseen(applicant)
        except InputError:
            return []  # the request is rejected
        return [f"the value of {name} is not one of those declared; decided as one never seen" for name in unseen]

    def learn(self, state: FeatureState, label: ModelLabel) -> FeatureState:
        """Return the state after a label or a correction. The given state does not change."""
        if not self.accepts(label.inputs):
            return state  # erased, or of a time when the policy had other features
        if label.is_correction and (label.learnt_at is None or label.learnt_at <= state.since):
            return state  # the version has not learnt what is corrected
        rule, row = state.rule.copy(), self.row(label.inputs or "")
        if label.is_correction:
            rule.correct_row(row, label.successes > 0)
        else:
            rule.observe_row(row, label.successes > 0)
        return FeatureState(rule, state.since)

    def decide_each(
        self, state: FeatureState, rows: Sequence[Rows], arrivals: Sequence[int], choices: Sequence[Sequence[Offer]]
    ) -> list[Decision]:
        """Decide applicants, each as if nobody were pending, without random acceptance; :meth:`decide` starts from it.

        ``choices`` has the offers of which one can be made to each.
        """
        import numpy as np

        return state.rule.decide_each(np.array(rows), np.array(arrivals, dtype=np.int64), self._menus(choices))

    def decide(
        self,
        state: FeatureState,
        row: Rows,
        pending: Callable[[], PendingApplicants],
        arrivals: int,
        chance: float,
        choices: Sequence[Offer],
        alone: Decision | None = None,
    ) -> Decision:
        """Decide one applicant.

        Similar ones that are pending can only turn an acceptance below the break-even into a rejection. So ``pending``,
        which returns their rows, is called only there. ``alone`` is what :meth:`decide_each` returned, if it is known.
        """
        import numpy as np

        if alone is None:
            alone = self.decide_each(state, [row], [arrivals], [choices])[0]
        if chance < alone.propensity:
            alone = msgspec.structs.replace(alone, accepted=True)
        cost = getattr(alone, "cost", self.objective.cost)
        if alone.propensity < 1.0 or alone.mean > cost:
            return alone
        waiting = pending()
        if not waiting.rows:
            return alone
        known, drawn = self._log_odds(state, waiting), np.array([chance])
        return state.rule.decide_many(row[None], self._menus([choices]), known, arrivals, drawn)[0]

    def _menus(self, choices: Sequence[Sequence[Offer]]) -> Any:
        """Return the offers of applicants as the rule takes them, or None if it takes none."""
        from lenience.core.offers import Offers

        population = self.objective.offers
        if population is None:
            return None
        return [  # who brings no offers has the choice that everybody has
            Offers.menu([one.amount for one in menu], [one.cost for one in menu]) if menu else population
            for menu in choices
        ]

    def lowered_by(self, state: FeatureState, row: Rows, cost: float) -> dict[str, str]:
        """Return the features that speak most against an applicant, and the lender's sentence for each.

        A sentence of ours does not repeat the value: answers are stored for a while, and it is personal data.
        """
        own = self.spec.reasons or {}
        return {
            name: own.get(name, f"The value of {name} lowers the expected success rate.")
            for name in (self.encoding.columns[i].name for i in state.comparison(cost).lowering(row))
        }

    def _log_odds(self, state: FeatureState, pending: PendingApplicants) -> ReferenceLogOdds:
        """Return the log-odds of pending applicants. Those of the last call are kept until the next label."""
        import numpy as np

        ids = list(pending.rows)
        known = self._known.get(pending.chain)
        if known is None or known[0] is not state:
            known = (state, [], state.rule.log_odds(np.empty((0, self.encoding.width))))
        _, before, odds = known
        if before != ids[: len(before)]:
            places = {decision: i for i, decision in enumerate(before)}
            kept = [decision for decision in ids if decision in places]
            ids = [*kept, *(decision for decision in ids if decision not in places)]
            chosen = [places[decision] for decision in kept]
            odds.design, odds.m, odds.v = odds.design[chosen], odds.m[chosen], odds.v[chosen]
            before = kept
        new = ids[len(before) :]
        if new:
            more = state.rule.log_odds(np.array([pending.rows[decision] for decision in new]))
            odds.design = np.concatenate((odds.design, more.design))
            odds.m, odds.v = np.concatenate((odds.m, more.m)), np.concatenate((odds.v, more.v))
        self._known[pending.chain] = (state, ids, odds)
        return odds


def first_state(spec: FeatureSpec, objective: Objective, explore: float) -> str:
    """Return the state from which a version starts, in base64: the one given, or a prior.

    Raises
    ------
    InputError
        If the state is not one of these columns, or ranges are missing that the prior needs.
    """
    from lenience.models.live_logistic import LiveLogistic
    from lenience.models.live_model import restore
    from lenience.policies.features.feature_rule import FeatureRule

    columns = spec.declared
    encoding = RowEncoding(columns)
    given = None if spec.state is None else restore(_decoded(spec.state))
    if given is not None and (not isinstance(given, FeatureRule | LiveLogistic) or list(given.columns) != columns):
        raise InputError.because(
            "must be that of a model with the same columns", "model.state", code="conflicting_fields"
        )
    if isinstance(given, FeatureRule):
        if spec.reference:
            raise InputError.because(
                "must not be given with the state of a policy, which has its own rows",
                "model.reference",
                code="conflicting_fields",
            )
        if (given.objective, given.explore) == (objective, explore):
            return b64encode(given.state()).decode()
        rule = FeatureRule(given.model, objective, given.reference, explore)
        return b64encode(rule.state()).decode()
    rows = encoding.rows(list(spec.reference) or typical_applicants(columns))
    model = given if isinstance(given, LiveLogistic) else _prior(spec, objective, encoding, rows)
    return b64encode(FeatureRule(model, objective, rows, explore).state()).decode()


def _prior(spec: FeatureSpec, objective: Objective, encoding: RowEncoding, rows: Rows) -> LiveLogistic:
    """Return a model that has learnt nothing yet."""
    from lenience.models.bayesian_logistic import BayesianLogistic
    from lenience.models.calibrated_score import CalibratedScore
    from lenience.models.live_logistic import LiveLogistic

    cost = objective.cost if objective.offers is None else objective.offers.mean_cost
    estimator: Any = BayesianLogistic()
    if isinstance(spec, CalibratedModel):
        position = next(block.start for block in encoding.blocks if block.column.name == spec.score)
        estimator = CalibratedScore(position, spec.scale, spec.trust, spec.higher_is_better)
    return LiveLogistic(encoding.columns, estimator.centre_on(cost).spare(encoding.spare).prepare(rows).belief_)


def typical_applicants(columns: Sequence[FeatureColumn]) -> list[Mapping[str, Any]]:
    """Return applicants spread evenly over the declared ranges and values, which are nobody's data.

    Numbers follow the additive sequences of irrational steps, so that they do not move together.

    >>> people = typical_applicants([FeatureColumn("age", minimum=20, maximum=70)])
    >>> len(people), 44 < sum(one["age"] for one in people) / 100 < 46
    (100, True)
    """
    out: list[Mapping[str, Any]] = []
    for column in columns:
        if column.type == "number" and (column.minimum is None or column.maximum is None):
            raise InputError.because(
                "needs a minimum and a maximum, because no state and no reference rows are given",
                f"model.columns.{column.name}",
                label=f"the feature {column.name!r}",
                code="missing",
            )
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
    for i in range(REFERENCE):
        row: dict[str, Any] = {}
        for j, column in enumerate(columns):
            step = primes[j % len(primes)] ** 0.5 * (1 + j // len(primes))
            share = ((i + 0.5) * step) % 1.0
            if column.type == "category":
                row[column.name] = column.values[int(share * len(column.values))]
            else:
                assert column.minimum is not None
                assert column.maximum is not None
                row[column.name] = column.minimum + share * (column.maximum - column.minimum)
        out.append(row)
    return out


def typical_or_given(spec: FeatureSpec) -> Mapping[str, Any]:
    """Return an applicant as an example of a request."""
    if spec.reference:
        return spec.reference[0]
    numbers = {column.name: column.minimum for column in spec.declared if column.minimum is not None}
    categories = {column.name: column.values[0] for column in spec.declared if column.values}
    return {column.name: (numbers | categories).get(column.name, 0.0) for column in spec.declared}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise InputError("model.state", text[:20], "a model's state in base64") from None


def _restored(text: str) -> FeatureRule:
    from lenience.policies.features.feature_rule import FeatureRule

    return FeatureRule.from_state(_decoded(text))

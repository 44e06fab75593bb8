"""PolicySpecification: one version of a policy, as a client posts it, and the problem of each of its segments.

A segment with a share q of the arrivals has its own problem. With an overall discount γ it discounts by
γ_x = γq/(1 − γ + γq). With λ arrivals a year it has λq, and of a horizon H it has Hq. Segments without a share divide
the rest equally.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lenience.core.belief import Belief
from lenience.core.data_origin import PolicyOrigin
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offers
from lenience.core.validation import real, whole
from lenience.models.feature_columns import RowEncoding
from lenience.models.maturing import TimingCurves
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.service.domain import limits
from lenience.service.domain.fair_version import FairnessLimit
from lenience.service.domain.feature_cells import Feature, names_of
from lenience.service.domain.feature_models import CalibratedModel, FeatureSpec, LogisticModel, ModelSpec
from lenience.service.domain.forgetting import Forgetting
from lenience.service.domain.monitored import AttributeName
from lenience.service.domain.overall import Capacity, OverallLimits
from lenience.service.domain.pooled_models import WEAKEST, CurveModel, PooledModel, SharedModel
from lenience.service.domain.referral import Referral

DAYS = 365.25  # in a year, the unit of time of an objective
LEAST = 1e-9  # smallest positive value: much smaller numbers have too few digits to compute with
Rate = Annotated[float, Meta(ge=LEAST, lt=1, description="Strictly between 0 and 1")]
Positive = Annotated[float, Meta(ge=LEAST, le=1e12)]
Cap = Annotated[int, Meta(ge=1, le=10**9, description="The most outcomes that may be pending at once in a segment")]
LossCap = Annotated[
    float, Meta(ge=LEAST, le=1e15, description="The most that a segment may lose if all its pending outcomes fail")
]
Doubt = Annotated[
    float, Meta(ge=0, lt=1, description="The probability that the prior is wrong and nothing is known instead")
]
PastOutcomes = Annotated[
    float, Meta(ge=0, le=1e12, description="How many real outcomes the prior holds; they count as evidence in reasons")
]
ONLY_SEGMENT = "all"


Objective: TypeAlias = Discounted | FiniteHorizon | Delayed


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Past outcomes of a segment."""

    successes: Annotated[float, Meta(ge=0, le=1e12)]
    failures: Annotated[float, Meta(ge=0, le=1e12)]


class SegmentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A segment with its own settings.

    Fields that came later are not encoded where they are not given. Earlier specifications keep their text.
    """

    name: limits.SegmentName
    share: Annotated[float, Meta(ge=LEAST, le=1)] | None = None
    prior: Belief | None = None
    cost: Rate | None = None
    exposure_cap: Cap | None = None
    group: (
        Annotated[
            limits.SegmentName,
            Meta(description="The group its members belong to. To monitor groups, send monitored with each decision"),
        ]
        | None
    ) = None
    offers: Offers | UnsetType | None = UNSET
    doubt: Doubt | UnsetType | None = UNSET
    exposure_cap_amount: LossCap | UnsetType | None = UNSET
    past_outcomes: PastOutcomes | UnsetType | None = UNSET


class Constraints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Constraints that hold whatever the optimum is."""

    exposure_cap: Cap | None = None
    exploration_floor: Annotated[
        float, Meta(ge=0, lt=1, description="The least probability of acceptance where the policy has stopped")
    ] = 0.0
    exposure_cap_amount: LossCap | UnsetType | None = UNSET
    overall_exposure_cap: (
        Annotated[int, Meta(ge=1, le=10**9, description="The most outcomes that may be pending over all segments")]
        | UnsetType
        | None
    ) = UNSET
    overall_exposure_cap_amount: (
        Annotated[
            float,
            Meta(ge=LEAST, le=1e15, description="The most that all segments may lose if all pending outcomes fail"),
        ]
        | UnsetType
        | None
    ) = UNSET


class PolicySpecification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One version of a policy, as posted."""

    name: limits.Name
    objective: Objective
    prior: Belief = Belief(2, 1)
    segments: Annotated[list[limits.SegmentName | SegmentSpec], Meta(max_length=limits.SEGMENTS)] = []
    features: Annotated[
        list[Feature],
        Meta(
            max_length=8,
            description="Features that divide the population into cells. Each cell is a segment; list a cell under "
            "segments to give it its own settings",
        ),
    ] = []
    history: Annotated[
        dict[limits.SegmentName, Record],
        Meta(
            max_length=limits.SEGMENTS,
            description="Past outcomes by segment, added to the prior (up to history_cap of them)",
        ),
    ] = {}
    history_cap: Positive = 20.0
    history_model: Annotated[
        Literal["own", "shared", "curve"],
        Meta(
            description="Where the prior of a segment comes from: own uses the given prior; shared fits one prior to "
            "the history of all segments; curve fits a curve in their scores"
        ),
    ] = "own"
    scores: Annotated[
        dict[limits.SegmentName, Annotated[float, Meta(ge=-1e12, le=1e12)]],
        Meta(
            max_length=limits.SEGMENTS,
            description="With history_model curve: the score of each segment, higher is better",
        ),
    ] = {}
    constraints: Constraints = Constraints()
    expire_after_days: (
        Annotated[float, Meta(gt=0, le=36_500, description="Days after which a missing outcome expires")] | None
    ) = None
    description: Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")] = ""
    doubt: Doubt | UnsetType | None = UNSET
    capacity: (
        Annotated[Capacity, Meta(description="What all segments together may accept in a month or year")]
        | UnsetType
        | None
    ) = UNSET
    past_outcomes: PastOutcomes | UnsetType | None = UNSET
    timing: (
        Annotated[
            TimingCurves,
            Meta(description="When outcomes arrive. With it, open loans count as evidence according to their age"),
        ]
        | UnsetType
        | None
    ) = UNSET
    fairness: (
        Annotated[FairnessLimit, Meta(description="A limit on the acceptance rates of groups")] | UnsetType | None
    ) = UNSET
    waiting_list: (
        Annotated[bool, Meta(description="Whether applicants wait, not rejected, if only a limit is reached")]
        | UnsetType
        | None
    ) = UNSET
    protected: (
        Annotated[
            list[AttributeName],
            Meta(max_length=limits.FEATURES, description="Attributes that the policy must not decide by"),
        ]
        | UnsetType
        | None
    ) = UNSET
    decide_by_protected: (
        Annotated[
            bool,
            Meta(description="Allow features, segments or groups that are protected attributes, where the law does"),
        ]
        | UnsetType
        | None
    ) = UNSET
    model: (
        Annotated[
            ModelSpec,
            Meta(
                description="How the policy learns: own, each segment from its own outcomes; shared and curve, from "
                "those of all segments; logistic, by the applicant's features; calibrated, from the user's own score"
            ),
        ]
        | UnsetType
        | None
    ) = UNSET

    origin: (
        Annotated[PolicyOrigin, Meta(description="The past decisions that the policy was fitted to")] | UnsetType | None
    ) = UNSET
    referral: (
        Annotated[Referral, Meta(description="Which applicants a person decides: the answer refer")] | UnsetType | None
    ) = UNSET

    forgetting: (
        Annotated[Forgetting, Meta(description="Outcomes of old decisions count less, for rates that change")]
        | UnsetType
        | None
    ) = UNSET

    def __post_init__(self) -> None:
        self._check_timing()
        self._check_forgetting()
        self._check_fairness()
        self._check_model()
        _check_limits(self.objective)
        self._check_offers()
        if self.history_model != "own" and not self.history:
            raise InputError.because(
                "needs history to fit",
                "history_model",
                label=f"history_model {self.history_model!r}",
                value=self.history_model,
                code="missing",
            )
        if (self.history_model == "curve") != bool(self.scores):
            raise InputError.because(
                "must be given with history_model 'curve', and only then", "scores", code="conflicting_fields"
            )

    def _check_timing(self) -> None:
        """Raise InputError for timing curves that the objective cannot have, or that are too long."""
        if not self.timing:
            return
        if self.objective.horizon is not None:
            raise InputError.because("needs an objective without a horizon", "timing", code="conflicting_fields")
        ages, alternatives = len(self.timing.ages), len(self.timing.alternatives)
        for field, size, most in (("ages", ages, limits.AGES), ("alternatives", alternatives, limits.CURVES)):
            if size > most:
                raise InputError(f"timing.{field}", size, f"at most {most:,} entries", code="too_large")

    def _check_forgetting(self) -> None:
        """Raise InputError for a kind of model or objective that cannot forget."""
        if not self.forgetting:
            return
        if self.pools or self.feature_spec is not None:
            name = str(self.model.__struct_config__.tag) if self.model else ""
            raise InputError.because(
                f"cannot be combined with the model {name!r}, which learns each outcome once",
                "forgetting",
                hint="Use the model own, or leave forgetting out.",
                code="conflicting_fields",
            )
        if self.objective.horizon is not None:
            raise InputError.because("needs an objective without a horizon", "forgetting", code="conflicting_fields")

    def _check_fairness(self) -> None:
        """Raise InputError for a fairness limit that this kind of policy cannot have."""
        if not self.fairness:
            return
        own = [spec for spec in self.segments if isinstance(spec, SegmentSpec)]
        objective = self.objective
        given = {
            "objective.offers": objective.offers is not None,
            "objective.horizon": objective.horizon is not None,
            "objective.label_delay": bool(objective.label_delay),
            "capacity": bool(self.capacity),
            "doubt": bool(self.doubt) or any(spec.doubt for spec in own),
        }
        for field, present in given.items():
            if present:
                raise InputError.because(
                    f"cannot be combined with {field}: it needs one break-even, known priors, outcomes without delay "
                    "and no other limit over all segments",
                    "fairness",
                    code="conflicting_fields",
                )

    def _check_model(self) -> None:
        """Raise InputError for settings that a model which is refitted cannot have."""
        if not self.pools and self.feature_spec is None:
            return
        own = [spec for spec in self.segments if isinstance(spec, SegmentSpec)]
        settings = {
            "history_model": self.history_model != "own",
            "prior": self.prior != Belief(2, 1) or any(spec.prior is not None for spec in own),
            "doubt": bool(self.doubt) or any(spec.doubt for spec in own),
            "timing": bool(self.timing),
            "capacity": bool(self.capacity),
            "fairness": bool(self.fairness),
        }
        if self.feature_spec is not None:
            settings |= {
                "segments": bool(self.segments),
                "features": bool(self.features),
                "history": bool(self.history),
            }
            RowEncoding(self.feature_spec.declared)
        for field, given in settings.items():
            if given:
                raise InputError.because(
                    "must not be given with a model that is refitted as outcomes arrive",
                    field,
                    hint=f"Leave {field} out, or use the model own.",
                    code="conflicting_fields",
                )

    def _check_offers(self) -> None:
        """Raise InputError for offers, caps or doubts that the objective cannot have."""
        own = [spec for spec in self.segments if isinstance(spec, SegmentSpec)]
        if self.objective.horizon is not None and self.objective.label_delay:
            raise InputError.because(
                "needs outcomes that come at once: the service decides late outcomes without a horizon",
                "horizon",
                value=self.objective.horizon,
                hint="Leave out horizon, or use type horizon.",
                code="conflicting_fields",
            )
        if self.objective.offers is None:
            with_offers = next((spec for spec in own if spec.offers), None)
            if with_offers is not None:
                raise InputError.because(
                    "must not have its own offers, because the objective has one cost",
                    "segments",
                    label=f"the segment {with_offers.name!r}",
                    value=with_offers.name,
                    hint="Give the objective offers instead of a cost.",
                    code="conflicting_fields",
                )
            in_money = {
                "exposure_cap_amount": self.constraints.exposure_cap_amount
                or any(spec.exposure_cap_amount for spec in own),
                "overall_exposure_cap_amount": self.constraints.overall_exposure_cap_amount,
                "capacity.loss": self.capacity and self.capacity.loss,
                "referral.amount_above": self.referral and self.referral.amount_above,
            }
            for field, given in in_money.items():
                if given:
                    counting = {"capacity.loss": "acceptances", "referral.amount_above": "near_minimum"}.get(
                        field, field.removesuffix("_amount")
                    )
                    raise InputError.because(
                        "needs an objective with offers, because amounts are not known otherwise",
                        field,
                        hint=f"Use {counting}{'' if counting == 'near_minimum' else ', which counts'}.",
                        code="conflicting_fields",
                    )
            return
        _check_amounts("objective.offers", self.objective.offers)
        for spec in own:
            if spec.cost is not None:
                raise InputError.because(
                    "must not have its own cost, because the objective has offers",
                    "segments",
                    label=f"the segment {spec.name!r}",
                    value=spec.name,
                    hint="Give the segment its own offers.",
                    code="conflicting_fields",
                )
            if spec.offers:
                _check_amounts("segments", spec.offers)
                if spec.offers.currency not in ("", self.objective.offers.currency):
                    raise InputError.because(
                        f"must have the objective's currency {self.objective.offers.currency!r}, "
                        f"not {spec.offers.currency!r}",
                        "segments",
                        label=f"the segment {spec.name!r}",
                        value=spec.offers.currency,
                        code="conflicting_fields",
                    )

    @property
    def expiry_days(self) -> float | None:
        """Days after which a missing outcome expires: as given, or three mean delays of late outcomes."""
        late = self.objective.expire_after
        return DAYS * late if self.expire_after_days is None and late is not None else self.expire_after_days

    @property
    def overall_limits(self) -> OverallLimits | None:
        """The limits over all segments, or None if there are none."""
        constraints = self.constraints
        limits = OverallLimits(
            self.capacity or None,
            constraints.overall_exposure_cap or None,
            constraints.overall_exposure_cap_amount or None,
        )
        return None if limits == OverallLimits() else limits

    @property
    def pools(self) -> bool:
        """Whether segments learn from each other's outcomes as they arrive."""
        return isinstance(self.model, SharedModel | CurveModel)

    @property
    def feature_spec(self) -> FeatureSpec | None:
        """The model that decides by features, or None."""
        return self.model if isinstance(self.model, LogisticModel | CalibratedModel) else None

    def pooled_model(self, names: Sequence[str]) -> PooledModel | None:
        """Return the model that segments share, or None if each learns on its own."""
        if not isinstance(self.model, SharedModel | CurveModel):
            return None
        records = [self.history.get(name, Record(0.0, 0.0)) for name in names]
        past = [(record.successes + record.failures, record.successes) for record in records]
        return PooledModel(self.model, names, past, self.history_cap)

    @property
    def groups(self) -> dict[str, str]:
        """The group of each segment that has one."""
        given = (spec for spec in self.segments if isinstance(spec, SegmentSpec))
        return {spec.name: spec.group for spec in given if spec.group is not None}

    def past_outcomes_by_segment(self, names: Iterable[str]) -> dict[str, float]:
        """Return how many real outcomes the prior of each segment holds: its history, or what came with the prior.

        >>> segments = ["a", SegmentSpec("b", past_outcomes=7), "c"]
        >>> spec = PolicySpecification("p", Discounted(0.8, 0.9), segments=segments, history={"a": Record(45, 5)})
        >>> spec.past_outcomes_by_segment("abc")
        {'a': 50.0, 'b': 7.0, 'c': 0.0}
        """
        own = {spec.name: spec.past_outcomes for spec in self.segments if isinstance(spec, SegmentSpec)}
        past = {}
        for name in names:
            given = own.get(name)
            record = self.history.get(name, Record(0.0, 0.0))
            before = self.past_outcomes if given is UNSET or given is None else given
            past[name] = record.successes + record.failures + (before or 0.0)
        return past

    def problems(self) -> list[SegmentProblem]:
        """Return the problem of each segment."""
        specs = self._specs()
        names = [spec.name for spec in specs]
        unknown = [name for name in self.history if name not in names]
        if unknown:
            raise InputError.because(
                f"must name segments of the policy; {unknown[0]!r} is not one",
                "history",
                value=unknown[0],
                code="unknown_name",
            )
        self.pooled_model(names)  # raises InputError for scores of other segments
        priors = self._priors(specs)
        return [self._problem(*parts) for parts in zip(specs, _shares(specs), priors, strict=True)]

    def _specs(self) -> list[SegmentSpec]:
        """Return the segments with their own settings."""
        given = [SegmentSpec(spec) if isinstance(spec, str) else spec for spec in self.segments]
        cells = names_of(self.features) if self.features else []
        own = {spec.name: spec for spec in given}
        for names in ([spec.name for spec in given], cells):
            if len(set(names)) < len(names):
                repeated = next(name for name in names if names.count(name) > 1)
                raise InputError.because(
                    f"must be unique; {repeated!r} appears twice",
                    "segments",
                    label="the names of segments",
                    value=repeated,
                    code="duplicate",
                )
        if not cells:
            return given or [SegmentSpec(ONLY_SEGMENT)]
        odd = next((name for name in own if name not in cells), None)
        if odd is not None:
            raise InputError(
                "segments",
                odd,
                f"cells of the features, such as {cells[0]!r}",
                label="segments beside features",
                code="unknown_name",
            )
        return [own.get(name, SegmentSpec(name)) for name in cells]

    def _priors(self, specs: list[SegmentSpec]) -> list[Belief]:
        """Return the prior of each segment, before its own past outcomes."""
        if self.pools:
            return [WEAKEST] * len(specs)
        if self.history_model == "own":
            return [spec.prior or self.prior for spec in specs]
        own = next((spec.name for spec in specs if spec.prior is not None), None)
        if own is not None:
            raise InputError.because(
                "must not have its own prior with a history_model that fits one",
                "segments",
                label=f"the segment {own!r}",
                value=own,
                code="conflicting_fields",
            )
        return fitted_priors([spec.name for spec in specs], self.history, self.scores)

    def _problem(self, spec: SegmentSpec, share: float, prior: Belief) -> SegmentProblem:
        doubt = self.doubt if spec.doubt is UNSET or spec.doubt is None else spec.doubt
        start: Belief | MixtureBelief = MixtureBelief.doubt(prior, doubt) if doubt else prior
        past = None if self.pools else self.history.get(spec.name)
        if past is not None and past.successes + past.failures > 0:
            weight = min(1.0, self.history_cap / (past.successes + past.failures))
            good, bad = past.successes * weight, past.failures * weight
            start = Belief.from_counts(good, bad, start) if isinstance(start, Belief) else start.after(good + bad, good)
        return SegmentProblem(
            name=spec.name,
            share=share,
            problem=self._objective(spec).for_share(share),
            prior=start,
            exposure_cap=spec.exposure_cap or self.constraints.exposure_cap,
            exploration_floor=self.constraints.exploration_floor,
            exposure_cap_amount=spec.exposure_cap_amount or self.constraints.exposure_cap_amount or None,
            pooled=self.pools,
        )

    def _objective(self, spec: SegmentSpec) -> Objective:
        """Return the objective of a segment, before it takes its share of the arrivals."""
        offers = self.objective.offers
        if offers is None:
            return self.objective.with_cost(spec.cost or self.objective.cost)
        if not spec.offers:
            return self.objective
        return msgspec.structs.replace(
            self.objective, offers=msgspec.structs.replace(spec.offers, currency=offers.currency)
        )


class SegmentProblem(msgspec.Struct, frozen=True):
    """The problem to solve for a segment."""

    name: str
    share: float
    problem: Objective
    prior: Belief | MixtureBelief
    exposure_cap: int | None
    exploration_floor: float
    exposure_cap_amount: float | None = None  # in money: what may be lost if all pending outcomes fail
    charges: tuple[float, ...] = ()  # of each offer, for the capacity that it uses
    pooled: bool = False  # whether the segment borrows evidence, so that its belief can be anywhere

    @property
    def belief(self) -> Belief:
        """The prior as one belief: a doubtful one has the same mean and variance."""
        return self.prior if isinstance(self.prior, Belief) else Belief(self.prior.n, self.prior.s)


def fitted_priors(names: list[str], history: dict[str, Record], scores: dict[str, float]) -> list[Belief]:
    """Return the prior of each segment, fitted to all history: one for all, or on a curve in the scores.

    >>> past = {"a": Record(45, 5), "b": Record(40, 10)}
    >>> [f"{prior.mean:.2f}" for prior in fitted_priors(["a", "b", "c"], past, {})]
    ['0.75', '0.75', '0.75']
    >>> [f"{prior.mean:.2f}" for prior in fitted_priors(["a", "b", "c"], past, {"a": 3, "b": 2, "c": 1})]
    ['0.86', '0.58', '0.57']
    """
    from lenience.models.curve import Curve
    from lenience.models.protocol import Model
    from lenience.models.shared import Shared

    no_record = Record(0, 0)
    records = [history.get(name, no_record) for name in names]
    labels, successes = [past.successes + past.failures for past in records], [past.successes for past in records]
    if scores:
        if set(scores) != set(names):
            odd = sorted(set(scores) ^ set(names))[0]
            raise InputError.because(
                f"must have one entry for each segment of the policy; {odd!r} is not in both",
                "scores",
                value=odd,
                code="unknown_name",
            )
        model: Model = Curve([scores[name] for name in names])
    else:
        model = Shared(len(names))
    sizes, good = model.priors(labels, successes)
    return [Belief(float(n), float(min(s, n))) for n, s in zip(sizes, good, strict=True)]


def _check_limits(objective: Objective) -> None:
    """Raise InputError for values the library allows and the service does not: tiny numbers, long horizons."""
    for name in ("arrivals", "discount_rate", "label_delay"):
        if getattr(objective, name):
            real(f"objective.{name}", getattr(objective, name), least=LEAST, most=1e12)
    if objective.horizon is not None:
        whole("objective.horizon", objective.horizon, least=1, most=limits.HORIZON)


def _check_amounts(field: str, offers: Offers) -> None:
    """Raise InputError for more offers, or for smaller or larger amounts, than the service takes."""
    if len(offers.amount) > limits.OFFERS:
        raise InputError(
            field,
            len(offers.amount),
            f"at most {limits.OFFERS:,} offers",
            hint="Offers.compress of the Python package returns a few that stand for all.",
            code="too_large",
        )
    for amount in offers.amount:
        real(f"{field}.amount", amount, least=LEAST, most=limits.AMOUNT)
    if len(offers.currency) > limits.CURRENCY or not offers.currency.isprintable():
        raise InputError(f"{field}.currency", offers.currency, f"at most {limits.CURRENCY} printable characters")


def _shares(specs: list[SegmentSpec]) -> list[float]:
    taken = sum(spec.share for spec in specs if spec.share is not None)
    rest = sum(spec.share is None for spec in specs)
    if taken > 1 + 1e-9:
        raise InputError.because(
            f"must add up to at most 1, not {taken:g}", "segments", label="the shares of segments", value=taken
        )
    if rest and taken >= 1:
        raise InputError.because(
            "must leave a rest for segments without a share", "segments", label="the shares of segments", value=taken
        )
    each = (1 - taken) / rest if rest else 0.0
    return [real("share", each if spec.share is None else spec.share, above=0, most=1) for spec in specs]

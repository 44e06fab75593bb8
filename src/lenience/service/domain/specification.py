"""PolicySpecification: what a version of a policy is to do, as it is posted; and the problem of each of its segments.

A segment that is a share q of the arrivals has a problem of its own: with a discount γ of the whole it discounts by
γ_x = γq/(1 − γ + γq), with arrivals λ a year it has λq, and of a horizon H it has Hq. Shares that are not given are
equal parts of what is left.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.validation import real, whole
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.service.domain import limits
from lenience.service.domain.feature_cells import Feature, names_of

DAYS = 365.25  # in a year, the unit of time of an objective
LEAST = 1e-9  # of what must be positive: numbers near the least there is have no digits left to compute with
Rate = Annotated[float, Meta(ge=LEAST, lt=1, description="Strictly between 0 and 1")]
Positive = Annotated[float, Meta(ge=LEAST, le=1e12)]
Cap = Annotated[int, Meta(ge=1, le=10**9, description="The most outcomes that may be pending at once in a segment")]
ONLY_SEGMENT = "all"


Objective: TypeAlias = Discounted | FiniteHorizon | Delayed


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Past outcomes of a segment."""

    successes: Annotated[float, Meta(ge=0, le=1e12)]
    failures: Annotated[float, Meta(ge=0, le=1e12)]


class SegmentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A segment with what it has of its own."""

    name: limits.SegmentName
    share: Annotated[float, Meta(ge=LEAST, le=1)] | None = None
    prior: Belief | None = None
    cost: Rate | None = None
    exposure_cap: Cap | None = None
    group: Annotated[limits.SegmentName, Meta(description="The group its members belong to, for fairness")] | None = (
        None
    )


class Constraints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What holds whatever the optimum says."""

    exposure_cap: Cap | None = None
    exploration_floor: Annotated[
        float, Meta(ge=0, lt=1, description="The least probability of acceptance where the policy has stopped")
    ] = 0.0


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
            description="How features divide the population into cells, which are the segments; those listed as "
            "segments then say what a cell has of its own",
        ),
    ] = []
    history: Annotated[
        dict[limits.SegmentName, Record],
        Meta(description="Past outcomes by segment, added to the prior (up to history_cap of them)"),
    ] = {}
    history_cap: Positive = 20.0
    history_model: Annotated[
        Literal["own", "shared", "curve"],
        Meta(
            description="What a segment is given beside its own past outcomes: the prior; or a prior fitted to the "
            "history of all segments, the same for all (shared) or on a curve in their scores"
        ),
    ] = "own"
    scores: Annotated[
        dict[limits.SegmentName, Annotated[float, Meta(ge=-1e12, le=1e12)]],
        Meta(description="With history_model curve: a score of each segment, the better the higher"),
    ] = {}
    constraints: Constraints = Constraints()
    expire_after_days: (
        Annotated[float, Meta(gt=0, le=36_500, description="The days after which an outcome that has not come expires")]
        | None
    ) = None
    description: Annotated[str, Meta(max_length=2_000, pattern=r"^[^\x00]*$")] = ""

    def __post_init__(self) -> None:
        _check_limits(self.objective)
        if self.history_model != "own" and not self.history:
            raise InputError(f"history_model {self.history_model!r} must have a history to fit it to")
        if (self.history_model == "curve") != bool(self.scores):
            raise InputError("scores must be given with history_model 'curve', and only then")

    @property
    def expiry_days(self) -> float | None:
        """The days after which an outcome that has not come expires: as given, or three mean delays of late labels."""
        late = self.objective.expire_after
        return DAYS * late if self.expire_after_days is None and late is not None else self.expire_after_days

    @property
    def groups(self) -> dict[str, str]:
        """The group of each segment that has one."""
        given = (spec for spec in self.segments if isinstance(spec, SegmentSpec))
        return {spec.name: spec.group for spec in given if spec.group is not None}

    def problems(self) -> list[SegmentProblem]:
        """Each segment's own problem."""
        specs = self._specs()
        names = [spec.name for spec in specs]
        unknown = [name for name in self.history if name not in names]
        if unknown:
            raise InputError(f"history must be of segments of the policy, and {unknown[0]!r} is none of them")
        priors = self._priors(specs)
        return [self._problem(*one) for one in zip(specs, _shares(specs), priors, strict=True)]

    def _specs(self) -> list[SegmentSpec]:
        """The segments with what each has of its own."""
        given = [SegmentSpec(spec) if isinstance(spec, str) else spec for spec in self.segments]
        cells = names_of(self.features) if self.features else []
        own = {spec.name: spec for spec in given}
        for names in ([spec.name for spec in given], cells):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InputError(f"the names of segments must differ, and {twice!r} is there twice")
        if not cells:
            return given or [SegmentSpec(ONLY_SEGMENT)]
        odd = next((name for name in own if name not in cells), None)
        if odd is not None:
            raise InputError(f"segments beside features must be cells of these, such as {cells[0]!r}, not {odd!r}")
        return [own.get(name, SegmentSpec(name)) for name in cells]

    def _priors(self, specs: list[SegmentSpec]) -> list[Belief]:
        """What each segment is given beside its own past outcomes."""
        if self.history_model == "own":
            return [spec.prior or self.prior for spec in specs]
        own = next((spec.name for spec in specs if spec.prior is not None), None)
        if own is not None:
            raise InputError(f"the segment {own!r} must have no prior of its own with a history_model that fits one")
        return fitted_priors([spec.name for spec in specs], self.history, self.scores)

    def _problem(self, spec: SegmentSpec, share: float, prior: Belief) -> SegmentProblem:
        past = self.history.get(spec.name)
        if past is not None and past.successes + past.failures > 0:
            weight = min(1.0, self.history_cap / (past.successes + past.failures))
            prior = Belief.from_counts(past.successes * weight, past.failures * weight, prior)
        return SegmentProblem(
            name=spec.name,
            share=share,
            problem=self.objective.with_cost(spec.cost or self.objective.cost).for_share(share),
            prior=prior,
            exposure_cap=spec.exposure_cap or self.constraints.exposure_cap,
            exploration_floor=self.constraints.exploration_floor,
        )


class SegmentProblem(msgspec.Struct, frozen=True):
    """What is to be solved for a segment."""

    name: str
    share: float
    problem: Objective
    prior: Belief
    exposure_cap: int | None
    exploration_floor: float


def fitted_priors(names: list[str], history: dict[str, Record], scores: dict[str, float]) -> list[Belief]:
    """The prior of each segment, fitted to the history of all: one for all, or with scores on a curve in them.

    >>> past = {"a": Record(45, 5), "b": Record(40, 10)}
    >>> [f"{prior.mean:.2f}" for prior in fitted_priors(["a", "b", "c"], past, {})]
    ['0.75', '0.75', '0.75']
    >>> [f"{prior.mean:.2f}" for prior in fitted_priors(["a", "b", "c"], past, {"a": 3, "b": 2, "c": 1})]
    ['0.86', '0.58', '0.57']
    """
    from lenience.models.curve import Curve
    from lenience.models.protocol import Model
    from lenience.models.shared import Shared

    none = Record(0, 0)
    records = [history.get(name, none) for name in names]
    labels, successes = [one.successes + one.failures for one in records], [one.successes for one in records]
    if scores:
        if set(scores) != set(names):
            odd = sorted(set(scores) ^ set(names))[0]
            raise InputError(f"scores must be of all segments of the policy and of no others, which fails for {odd!r}")
        model: Model = Curve([scores[name] for name in names])
    else:
        model = Shared(len(names))
    sizes, good = model.priors(labels, successes)
    return [Belief(float(n), float(min(s, n))) for n, s in zip(sizes, good, strict=True)]


def _check_limits(objective: Objective) -> None:
    """Refuse what the library allows and a service does not: numbers too small to compute with, and long horizons."""
    for name in ("arrivals", "discount_rate", "label_delay"):
        if getattr(objective, name):
            real(f"objective.{name}", getattr(objective, name), least=LEAST, most=1e12)
    if objective.horizon is not None:
        whole("objective.horizon", objective.horizon, least=1, most=limits.HORIZON)


def _shares(specs: list[SegmentSpec]) -> list[float]:
    taken = sum(spec.share for spec in specs if spec.share is not None)
    rest = sum(spec.share is None for spec in specs)
    if taken > 1 + 1e-9:
        raise InputError(f"the shares of segments must add up to at most 1, not {taken:g}")
    if rest and taken >= 1:
        raise InputError("the shares of segments must leave something for those without a share")
    each = (1 - taken) / rest if rest else 0.0
    return [real("share", each if spec.share is None else spec.share, above=0, most=1) for spec in specs]

"""PolicySpecification: one version of a policy, as a client posts it, and the problem of each of its segments.

A segment with a share q of the arrivals has its own problem. With an overall discount γ it discounts by
γ_x = γq/(1 − γ + γq). With λ arrivals a year it has λq, and of a horizon H it has Hq. Segments without a share divide
the rest equally.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.objective import one_break_even
from lenience.core.validation import real, whole
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.objectives.finite_horizon import FiniteHorizon
from lenience.service.domain import limits
from lenience.service.domain.feature_cells import Feature, names_of

DAYS = 365.25  # in a year, the unit of time of an objective
LEAST = 1e-9  # smallest positive value: much smaller numbers have too few digits to compute with
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
    """A segment with its own settings."""

    name: limits.SegmentName
    share: Annotated[float, Meta(ge=LEAST, le=1)] | None = None
    prior: Belief | None = None
    cost: Rate | None = None
    exposure_cap: Cap | None = None
    group: Annotated[limits.SegmentName, Meta(description="The group its members belong to, for fairness")] | None = (
        None
    )


class Constraints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Constraints that hold whatever the optimum is."""

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

    def __post_init__(self) -> None:
        one_break_even(self.objective, "A policy of the service")
        _check_limits(self.objective)
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

    @property
    def expiry_days(self) -> float | None:
        """Days after which a missing outcome expires: as given, or three mean delays of late outcomes."""
        late = self.objective.expire_after
        return DAYS * late if self.expire_after_days is None and late is not None else self.expire_after_days

    @property
    def groups(self) -> dict[str, str]:
        """The group of each segment that has one."""
        given = (spec for spec in self.segments if isinstance(spec, SegmentSpec))
        return {spec.name: spec.group for spec in given if spec.group is not None}

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
    """The problem to solve for a segment."""

    name: str
    share: float
    problem: Objective
    prior: Belief
    exposure_cap: int | None
    exploration_floor: float


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

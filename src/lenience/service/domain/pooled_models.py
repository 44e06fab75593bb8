"""Models that pool segments and are refitted as outcomes arrive: one shared prior, or a curve in the segments' scores.

The belief of a segment is its own outcomes plus what the model borrows from the others. The fit needs only the outcomes
of each segment, so the *state* of such a model is their counts. A correction moves one count, and costs no more than an
outcome. Outcomes of a policy with such a model have one order, in the policy's own chain: each event there holds a
digest of the state after it, and a decision holds the place of the event whose state it used.

Tables of such a version start from a weak prior (:data:`WEAKEST`). What the model says beyond it is evidence that a
segment *borrows*: outcomes and successes, which need not be whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.models.protocol import Model
from lenience.service.domain import limits

WEAKEST = Belief(1, 0.5)  # the prior of the tables; a weaker belief is decided as if it were worth one outcome
CLOSE = 1e-7  # relative: another machine may round a fit otherwise


class OwnModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="own", tag_field="type"):
    """Each segment learns from its own outcomes only."""


class SharedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="shared", tag_field="type"):
    """All segments share one prior, which is fitted to the outcomes of all of them."""

    strongest: Annotated[float, Meta(ge=1, le=1e6, description="The most outcomes that the prior is worth")] = 100.0


class CurveModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="curve", tag_field="type"):
    """The segments lie on a curve in their scores, which is fitted to the outcomes of all of them."""

    scores: Annotated[
        dict[limits.SegmentName, Annotated[float, Meta(ge=-1e12, le=1e12)]],
        Meta(min_length=1, max_length=limits.SEGMENTS, description="The score of each segment, higher is better"),
    ]
    cap: Annotated[float, Meta(ge=1, le=1e6, description="The most outcomes that the curve is worth")] = 20.0


class Borrowed(msgspec.Struct, frozen=True, array_like=True):
    """What a segment borrows from the others: outcomes and successes beyond the weakest prior."""

    outcomes: float
    successes: float

    def close_to(self, other: Borrowed) -> bool:
        """Return whether two fits agree, up to rounding on another machine."""
        room = CLOSE * max(1.0, abs(self.outcomes), abs(other.outcomes))
        return abs(self.outcomes - other.outcomes) <= room and abs(self.successes - other.successes) <= room


class ModelLabel(NamedTuple):
    """A change of outcomes that models learn: of a segment, and for models with features of one applicant."""

    segment: str
    successes: int
    failures: int
    inputs: str | None = None  # the applicant's features, as they are stored; None without them
    learnt_at: int | None = None  # for a correction: where the label that it replaces was logged

    @property
    def is_correction(self) -> bool:
        """Whether it replaces an earlier outcome."""
        return self.successes * self.failures < 0


class PooledState(msgspec.Struct, frozen=True, array_like=True):
    """The outcomes of each segment of a version, in the order of its segments."""

    successes: tuple[int, ...]
    failures: tuple[int, ...]
    labels: int = 0  # outcomes and corrections learnt since the version started to learn

    def encode(self) -> str:
        """Return the state as the text that is hashed and stored."""
        return msgspec.json.encode(self).decode()

    def digest(self) -> str:
        """Return the SHA-256 of the text."""
        return sha256(self.encode().encode()).hexdigest()


class PooledModel:
    """The model of a version: from the outcomes of all segments to what each one borrows.

    Parameters
    ----------
    spec : SharedModel or CurveModel
        The model as the version names it.
    names : sequence of str
        The segments of the version.
    past : sequence of tuple
        For each segment, the past outcomes and successes that came with the version.
    history_cap : float
        The most past outcomes that count as a segment's own.

    Examples
    --------
    >>> model = PooledModel(SharedModel(), ["a", "b"], [(0.0, 0.0), (0.0, 0.0)], 20.0)
    >>> state = model.start({})
    >>> better = model.learn(state, ModelLabel("a", 1, 0))
    >>> model.borrowed(better, "b").successes > model.borrowed(state, "b").successes
    True
    """

    def __init__(
        self,
        spec: SharedModel | CurveModel,
        names: Sequence[str],
        past: Sequence[tuple[float, float]],
        history_cap: float,
    ) -> None:
        if isinstance(spec, CurveModel) and set(spec.scores) != set(names):
            odd = sorted(set(spec.scores) ^ set(names))[0]
            raise InputError.because(
                f"must have one entry for each segment of the policy; {odd!r} is not in both",
                "model.scores",
                value=odd,
                code="unknown_name",
            )
        self.spec = spec
        self.by_features = False
        self.names = tuple(names)
        self._place = {name: i for i, name in enumerate(names)}
        self._past = tuple(past)
        weights = [min(1.0, history_cap / n) if n else 0.0 for n, _ in past]
        self._own_past = [(weight * n, weight * s) for weight, (n, s) in zip(weights, past, strict=True)]
        self._last: tuple[PooledState, tuple[Borrowed, ...]] | None = None

    def start(self, counts: Mapping[str, tuple[int, int]], at: int = 0) -> PooledState:
        """Return the state for the successes and failures that the segments have after an event."""
        pairs = [counts.get(name, (0, 0)) for name in self.names]
        return PooledState(tuple(s for s, _ in pairs), tuple(f for _, f in pairs))

    def learn(self, state: PooledState, label: ModelLabel) -> PooledState:
        """Return the state after a change of a segment's outcomes. Segments that the version lacks change nothing."""
        segment, successes, failures = label[:3]
        at = self._place.get(segment)
        if at is None:
            return state
        return PooledState(
            (*state.successes[:at], state.successes[at] + successes, *state.successes[at + 1 :]),
            (*state.failures[:at], state.failures[at] + failures, *state.failures[at + 1 :]),
            state.labels + 1,
        )

    def restore(self, text: str) -> PooledState:
        """Return a stored state."""
        return msgspec.json.decode(text, type=PooledState)

    @staticmethod
    def digest_of(text: str) -> str:
        """Return the digest of a stored state."""
        return sha256(text.encode()).hexdigest()

    def borrowed(self, state: PooledState, segment: str) -> Borrowed:
        """Return what a segment borrows. The model is fitted once for each state."""
        last = self._last
        if last is None or (last[0] is not state and last[0] != state):
            last = self._last = (state, self._fit(state))
        return last[1][self._place[segment]]

    def _fit(self, state: PooledState) -> tuple[Borrowed, ...]:
        good = [s + past for s, (_, past) in zip(state.successes, self._past, strict=True)]
        bad = [f + n - past for f, (n, past) in zip(state.failures, self._past, strict=True)]
        sizes, successes = self._model.priors([s + f for s, f in zip(good, bad, strict=True)], good)
        return tuple(
            Borrowed(float(n) + own - WEAKEST.n, float(s) + own_good - WEAKEST.s)
            for n, s, (own, own_good) in zip(sizes, successes, self._own_past, strict=True)
        )

    @cached_property
    def _model(self) -> Model:
        from lenience.models.curve import Curve
        from lenience.models.shared import Shared

        if isinstance(self.spec, CurveModel):
            return Curve([self.spec.scores[name] for name in self.names], cap=self.spec.cap)
        return Shared(len(self.names), self.spec.strongest)

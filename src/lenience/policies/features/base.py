"""SelectivePolicy: what every policy with features does, whatever its rule: decide, log, wait, learn.

Individuals come with features. ``decide`` says who is accepted and logs each decision with its *propensity*, the
probability with which it was to be accepted: without it nobody can later say from the log what another policy would
have earned. ``observe`` brings outcomes, and only those of the accepted are learnt from: the others' are not known,
and where a file happens to hold one it is ignored. Accepted individuals whose outcome has not come are *pending*, until
they are heard of or expire (:mod:`lenience.policies.features.outcome_matching` says which acceptance an outcome
belongs to).

By scikit-learn's conventions: parameters are constructor arguments and nothing else, ``fit`` starts from rows of
features (labels optional), ``clone`` works, and the model may be a Pipeline whose last step is a model of
:mod:`lenience.models`; what stands before it (a ColumnTransformer, splines) is fitted to the first rows, without
labels.
Categories that these did not have are noticed (:mod:`lenience.policies.features.unseen`).
"""

from __future__ import annotations

import math
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.frames import to_frame
from lenience.core.objective import Objective
from lenience.core.validation import real
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.cells import Cells
from lenience.models.feature_estimator import BaseEstimator, numbers, plain
from lenience.models.feature_model import FeatureModel, is_missing
from lenience.policies.features.outcome_matching import Awaited, checked_arrivals
from lenience.policies.features.unseen import UnseenCategories, dense


class Decision(msgspec.Struct, frozen=True):
    """One decision as it is logged.

    ``propensity`` is the probability of acceptance, ``mean`` and ``n`` the belief; ``discount`` and ``threshold`` are
    the individual's own γ′ and c_n where the policy has them, ``pending`` the acceptances like this one still unheard
    of.
    """

    arrival: int
    accepted: bool
    propensity: float
    mean: float
    n: float
    discount: float | None = None
    threshold: float | None = None
    pending: float | None = None


class SelectivePolicy(BaseEstimator):
    """The frame of a policy with features; a subclass gives the acceptance probability of each row."""

    model: Any
    objective: Any
    random_state: Any
    n_features_in_: int

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Start afresh from rows of features, the reference set, and from their outcomes where they are known.

        ``y`` may be missing altogether, or have NaN (or None) for those who were not accepted.
        """
        from sklearn.utils import check_random_state

        if not isinstance(self.objective, Objective) or math.isinf(self.objective.volume):
            raise InputError("objective", self.objective, "a Discounted, a FiniteHorizon or a Delayed objective")
        self.log_: list[Decision] = []
        self.arrivals_ = 0
        self.accepted_ = 0
        self.labels_ = 0
        self._awaited = Awaited()
        self._latest = 0
        self._random = check_random_state(self.random_state)
        self.transformer_, self.model_ = _parts(self.model)
        if self.model_ is None:
            self.model_ = self._default_model()
        if hasattr(self.model_, "centre_on"):
            self.model_.centre_on(self.objective.cost)
        rows = self._raw(X, reset=True)
        if self.transformer_ is not None:
            encoded = dense(self.transformer_.fit_transform(rows))
            self._unseen = UnseenCategories(self.transformer_, self._names())
            rows = self._unseen.counted(rows, encoded)
            if self._unseen.blocks and not rows[:, -1].any() and hasattr(self.model_, "spare"):
                self.model_.spare(1)
        self.model_.prepare(rows)
        self._start(np.asarray(rows, dtype=np.float64))
        if y is not None:
            which, seen = _known(y, len(rows))
            if which:
                self._learn(np.asarray(rows, dtype=np.float64)[which], np.array(seen))
                self.labels_ = len(seen)
        self._ready()
        return self

    def decide(
        self, X: ArrayLike, time: float | None = None, chances: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """Who of these is accepted, in the order they come; each decision is logged.

        Those accepted earlier in the same call are pending for those who come later in it. ``time`` (of any unit, that
        of a Delayed objective if it is one; by default as if all came evenly, at its rate or one a unit) is when they
        came: it is what pending outcomes expire by. ``chances``
        are uniform random numbers, one a row, for policies that are to be compared on the same luck.
        """
        rows = self._rows(X)
        now = self._clock() if time is None else real("time", time)
        self._expire(now)
        if chances is None:
            chances = self._random.random_sample(len(rows))
        accepted = np.zeros(len(rows), dtype=np.bool_)
        for i, decision in enumerate(self._decide(rows, chances)):
            self.log_.append(decision)
            accepted[i] = decision.accepted
            self.accepted_ += decision.accepted
            self._awaited.decided(decision.arrival, rows[i], decision.accepted, now)
        self._latest = self.arrivals_
        self.arrivals_ += len(rows)
        self._arrived(rows)
        return accepted

    def observe(
        self, X: ArrayLike, accepted: ArrayLike, outcomes: ArrayLike, arrivals: ArrayLike | None = None
    ) -> Self:
        """Outcomes have come: learn from the accepted whose outcome is known (not NaN or None), and from nobody else.

        An accepted row whose outcome is not known stays pending. ``arrivals`` are the numbers of their decisions
        (:attr:`latest_` after ``decide``, ``arrival`` in the log): with them an outcome that was taken before is left
        out, and one that can be no decision's is refused. Without them an outcome belongs to the longest pending
        acceptance of the same features; if there is none, it is learnt as a label from elsewhere.
        """
        rows = self._rows(X)
        which, seen = _known(outcomes, len(rows), _flags(accepted, len(rows)))
        if arrivals is not None:
            given = checked_arrivals(arrivals, len(rows), self.arrivals_)
            which, seen = self._awaited.by_arrival(given, rows, which, seen)
        if which:
            known = rows if len(which) == len(rows) else rows[which]
            if arrivals is None:
                self._awaited.by_features(known, seen)
            self._learn(known, np.array(seen))
            self.labels_ += len(seen)
        return self

    def log_frame(self, X: Any = None, backend: str | None = None) -> Any:
        """The log as a data frame (pandas, polars or pyarrow): decisions with outcomes, for ``lenience offpolicy``.

        ``X``, if given, are the features of everyone decided, in the order they came: the policy does not keep them.
        The outcome is missing for the rejected, and for the accepted who have not been heard of.
        """
        from lenience.policies.features.log_frame import log_rows

        return to_frame(log_rows(self.log_, self._awaited.outcomes, X), backend)

    def use_reference(self, X: ArrayLike) -> Self:
        """Let these rows stand for the population, where the policy asks who else there is."""
        self._reference(self._rows(X))
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """1 for those who would be accepted (with a probability of at least a half) if they came now, alone."""
        return (self.propensity(X) >= 0.5).astype(np.int64)

    def propensity(self, X: ArrayLike) -> NDArray[np.float64]:
        """The probability of acceptance of each row if it came now, alone; nothing is logged or changed."""
        rows = self._rows(X)
        never = np.ones(1)  # a chance of 1 accepts nobody by lot
        return np.array([self._decide(rows[i : i + 1], never)[0].propensity for i in range(len(rows))])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The believed probabilities of failure and success."""
        rows = self._rows(X)
        mean = self.model_.beliefs(rows)[1]
        return np.column_stack((1.0 - mean, mean))

    def beliefs(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """n and p̂ at each row."""
        rows = self._rows(X)
        n, mean = self.model_.beliefs(rows)
        return n, mean

    @property
    def pending_(self) -> int:
        """How many accepted individuals have not been heard of."""
        return len(self._awaited.pending)

    @property
    def outcomes_(self) -> dict[int, float]:
        """The outcomes taken, by arrival."""
        return dict(self._awaited.outcomes)

    @property
    def latest_(self) -> NDArray[np.int64]:
        """The arrivals of the last call of ``decide``, for ``observe``."""
        return np.arange(self._latest, self.arrivals_)

    def __sklearn_tags__(self) -> Any:
        """Rows with missing values are welcome if the model takes them, and labels are optional."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags

    def _default_model(self) -> FeatureModel:
        """One Gaussian belief, centred so that a middling individual is as likely above the break-even as below."""
        return single_gaussian(self.objective.cost)

    def _discount(self, ahead: int = 0) -> float:
        """γ for the arrival that comes after so many more; over a finite horizon 1 − 1/(those left), discounted."""
        return float(self.objective.discount_at(self.arrivals_ + ahead))

    def _clock(self) -> float:
        """The time by the number of arrivals."""
        return float(self.objective.clock(self.arrivals_))

    def _start(self, rows: NDArray[np.float64]) -> None:
        """Take the first rows."""

    def _ready(self) -> None:
        """All that is known at the start has been learnt."""

    def _reference(self, rows: NDArray[np.float64]) -> None:
        """Take the rows that stand for the population."""

    def _decide(self, rows: NDArray[np.float64], chances: NDArray[np.float64]) -> list[Decision]:
        n, mean = self.model_.beliefs(rows)
        found = []
        accepted = 0
        for i in range(len(rows)):
            propensity = self._acceptance(rows[i], float(mean[i]), float(n[i]), self.accepted_ + accepted)
            take = bool(chances[i] < propensity)
            accepted += take
            found.append(Decision(self.arrivals_ + i, take, propensity, float(mean[i]), float(n[i])))
        return found

    def _acceptance(self, row: NDArray[np.float64], mean: float, n: float, accepted: int) -> float:
        """The probability of accepting a row at this belief after so many acceptances."""
        raise NotImplementedError

    def _learn(self, rows: NDArray[np.float64], outcomes: NDArray[np.float64]) -> None:
        self.model_.learn(rows, outcomes)

    def _arrived(self, rows: NDArray[np.float64]) -> None:
        """All who came, the rejected included."""

    def _expire(self, now: float) -> None:
        own = getattr(self, "expire_after", None)
        after = self.objective.expire_after if own is None else own
        if after is not None:
            self._awaited.expire(now, after)

    def _raw(self, X: ArrayLike, reset: bool) -> Any:
        """The rows, checked; frames stay frames where a transformer may want their columns by name."""
        from sklearn.utils.validation import validate_data

        if self.transformer_ is None:
            return numbers(self, self.model_.coded(X) if isinstance(self.model_, Cells) else X, reset=reset)
        return validate_data(self, X, skip_check_array=True, reset=reset)

    def _names(self) -> list[str]:
        """The features as they are given: by name, or x0 and on as by scikit-learn."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _rows(self, X: ArrayLike) -> NDArray[np.float64]:
        named = hasattr(self, "feature_names_in_") or getattr(self, "transformer_", self) is not None
        if not named and plain(X, getattr(self, "n_features_in_", None)):
            return X  # type: ignore[return-value]
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")
        rows = self._raw(X, reset=False)
        if self.transformer_ is not None:
            rows = self._unseen.counted(rows, dense(self.transformer_.transform(rows)))
        return np.ascontiguousarray(rows, dtype=np.float64)


def single_gaussian(cost: float) -> BayesianLogistic:
    """The model of policies that are given none: one hypothesis, the best found of those with one."""
    return BayesianLogistic(1.65, 6.6, math.log(cost / (1.0 - cost)))


def _parts(model: Any) -> tuple[Any, Any]:
    """What transforms the rows, and the model itself, both fresh."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    if model is None:
        return None, None
    if isinstance(model, Pipeline):
        final, front = model.steps[-1][1], model.steps[:-1]
        transformer = clone(Pipeline(front)) if front else None
    else:
        final, transformer = model, None
    if not isinstance(final, FeatureModel):
        refused = InputError("model", final, "a model of lenience.models, or a Pipeline that ends in one")
        if isinstance(final, type) or not (hasattr(final, "fit") and hasattr(final, "predict_proba")):
            raise refused
        raise refused.with_hint(f"Wrap it: lenience.models.Bootstrap({type(final).__name__}())")
    return transformer, clone(final)


def _flags(accepted: ArrayLike, rows: int) -> list[Any]:
    # Plain numbers in a loop: for the one row that comes at a time it is quicker than any array.
    found: Any = accepted if isinstance(accepted, list) else np.asarray(accepted).tolist()
    if (
        not isinstance(found, list)
        or len(found) != rows
        or not all(not is_missing(flag) and flag in (0, 1) for flag in found)
    ):
        raise InputError("accepted", accepted, f"true or false for each of the {rows} rows")
    return found


def _known(y: ArrayLike, rows: int, accepted: list[Any] | None = None) -> tuple[list[int], list[float]]:
    """The accepted rows whose outcome is known, and these outcomes; what is given for the others is not looked at."""
    given: Any = y if isinstance(y, list) else np.asarray(y).tolist()
    if not isinstance(given, list) or len(given) != rows:
        raise InputError.because(
            f"must be one for each of the {rows} rows, not of shape {np.shape(y)}",
            "outcomes",
            value=np.shape(y),
            code="length_mismatch",
        )
    which, seen = [], []
    for i, value in enumerate(given):
        if is_missing(value) or (accepted is not None and not accepted[i]):
            continue
        if isinstance(value, list) or value not in (0, 1):
            raise InputError("outcomes", value, "0 or 1 (false or true)")
        which.append(i)
        seen.append(float(value))
    return which, seen

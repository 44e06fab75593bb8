"""SelectivePolicy: what all policies with features do, whatever their rule: decide, log, wait, learn.

Individuals have features. ``decide`` returns who is accepted and logs each decision with its *propensity*, the
probability with which it was accepted. Without propensities a log cannot show what another policy would have earned.
``observe`` takes outcomes. The policy learns only from those of the accepted, because the others' are unknown; if a
file contains an outcome of a rejected individual, it is ignored. Accepted individuals without an outcome are *pending*
until it arrives or expires (:mod:`lenience.policies.features.outcome_matching` matches outcomes to acceptances).

The class follows scikit-learn's conventions: all parameters are constructor arguments, ``fit`` starts from rows of
features (labels are optional) and ``clone`` works. The model may be a Pipeline whose last step is a model of
:mod:`lenience.models`. The steps before it (a ColumnTransformer, splines) are fitted to the first rows, without labels.
Later categories that these rows did not have are detected (:mod:`lenience.policies.features.unseen`).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.frames import to_frame
from lenience.core.objective import Objective
from lenience.core.offer_rows import OfferRows
from lenience.core.validation import real
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.cells import Cells
from lenience.models.feature_estimator import BaseEstimator, numbers, plain
from lenience.models.feature_model import FeatureModel, is_missing
from lenience.policies.features.decision import Decision, OfferedDecision
from lenience.policies.features.declared import DeclaredFeatures
from lenience.policies.features.outcome_matching import PendingOutcomes, checked_arrivals, one_per_row
from lenience.policies.features.unseen import UnseenCategories, dense


class SelectivePolicy(BaseEstimator):
    """Base class of policies with features. A subclass defines the acceptance probability of each row."""

    model: Any
    objective: Any
    random_state: Any
    n_features_in_: int

    def fit(self, X: Any, y: ArrayLike | None = None, offers: Any = None) -> Self:
        """Start afresh from rows of features (the reference set) and from those of their outcomes that are known.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features that represent the population.
        y : array_like, optional
            The outcome of each row, 0 or 1; NaN or None where it is unknown.
        offers : optional
            The offer of each row, as in :meth:`decide`, if the objective has offers. By default everyone brings the
            objective's offers, whatever the features.

        Returns
        -------
        SelectivePolicy
            The policy itself.

        Raises
        ------
        InputError
            If the objective, the model or an outcome is invalid.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> from lenience.models import Cells
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(model=Cells(), objective=Discounted(cost=0.6, discount=0.99))
        >>> policy.fit(X, [1, 0] * 50).predict([[0.0], [1.0]])
        array([1, 0])
        """
        from sklearn.utils import check_random_state

        if not isinstance(self.objective, Objective) or math.isinf(self.objective.volume):
            raise InputError("objective", self.objective, "a Discounted, a FiniteHorizon or a Delayed objective")
        self._check_objective()
        self.log_: list[Decision] = []
        self.arrivals_ = 0
        self.accepted_ = 0
        self.labels_ = 0
        self._pending_outcomes = PendingOutcomes()
        self._made: dict[int, tuple[float, float]] = {}  # by arrival: the offer that was accepted
        self._latest = 0
        self._random = check_random_state(self.random_state)
        self.transformer_, self.model_ = _parts(self.model)
        declared = self._declared()
        if declared is not None:
            self.transformer_ = declared
        if self.model_ is None:
            self.model_ = self._default_model()
        if hasattr(self.model_, "centre_on"):
            self.model_.centre_on(self._break_even())
        rows = self._raw(X, reset=True)
        if self.transformer_ is not None:
            encoded = dense(self.transformer_.fit_transform(rows))
            self._unseen = UnseenCategories(self.transformer_, self._names()) if declared is None else declared
            if declared is not None and hasattr(self.model_, "name_columns"):
                self.model_.name_columns(declared.encoded_names())
            rows = self._unseen.counted(rows, encoded)
            if self._unseen.blocks and not rows[:, -1].any() and hasattr(self.model_, "spare"):
                self.model_.spare(1)
        which, seen = ([], []) if y is None else _known(y, len(rows))
        if which and hasattr(self.model_, "past_choices"):
            labelled = np.zeros(len(rows), dtype=np.bool_)
            labelled[which] = True
            self.model_.past_choices(labelled)
        self.model_.prepare(rows)
        given = None if offers is None else self._offer_rows(offers, len(rows))
        self._start(np.asarray(rows, dtype=np.float64), given)
        if which:
            made = [None if given is None else given.best(i, 1.0)[:2] for i in which]
            self._learn(np.asarray(rows, dtype=np.float64)[which], np.array(seen), self._stakes(made))
            self.labels_ = len(seen)
        self._ready()
        return self

    def decide(
        self,
        X: Any,
        time: float | None = None,
        chances: NDArray[np.float64] | None = None,
        offers: Any = None,
    ) -> NDArray[np.bool_]:
        """Decide individuals in the order of their arrival and log each decision.

        Those accepted earlier in the same call are pending for those who come later in it.

        Parameters
        ----------
        X : array_like or data frame
            Their features, one row each.
        time : float, optional
            The time of their arrival, in any unit (that of the objective if it is a Delayed one). Pending outcomes
            expire by it. By default arrivals are evenly spaced: at the objective's rate, or one per unit.
        chances : ndarray, optional
            One uniform random number per row, to compare policies with the same random numbers.
        offers : optional
            What each row asks for, if the objective has offers: a list of :class:`~lenience.Offer` (or of menus, from
            which the policy chooses), or a pair of columns (amounts at stake, break-evens). One offer or menu serves
            for all rows. The log has the offers that were made.

        Returns
        -------
        ndarray of bool
            Who is accepted.

        Raises
        ------
        InputError
            If offers are missing or do not fit the rows.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> from lenience.models import Cells
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(model=Cells(), objective=Discounted(cost=0.6, discount=0.99)).fit(X, [1, 0] * 50)
        >>> policy.decide([[1.0], [0.0]])
        array([False,  True])
        >>> policy.pending_
        1
        """
        rows = self._rows(X)
        brought = self._offer_rows(offers, len(rows))
        now = self._clock() if time is None else real("time", time)
        self._expire(now)
        if chances is None:
            chances = self._random.random_sample(len(rows))
        decisions = self._decide(rows, chances, brought)
        accepted = np.array([decision.accepted for decision in decisions], dtype=np.bool_)
        self.log_ += decisions
        self.accepted_ += int(accepted.sum())
        self._pending_outcomes.decided(self.arrivals_, rows, accepted, now)
        for decision in decisions if brought is not None else ():
            if isinstance(decision, OfferedDecision) and decision.accepted:
                self._made[decision.arrival] = decision.amount, decision.cost
        self._latest = self.arrivals_
        self.arrivals_ += len(rows)
        self._arrived(rows, brought)
        return accepted

    def observe(self, X: Any, accepted: ArrayLike, outcomes: ArrayLike, arrivals: ArrayLike | None = None) -> Self:
        """Learn from outcomes of accepted individuals. Rows without a known outcome stay pending.

        With ``arrivals`` each outcome is matched to its decision: repeated outcomes are skipped, and impossible ones
        raise an error. Without, an outcome belongs to the longest pending acceptance with the same features; if there
        is none, it counts as a label from another source.

        Parameters
        ----------
        X : array_like or data frame
            Features, one row each.
        accepted : array_like
            Whether each individual was accepted. The outcomes of the others are ignored.
        outcomes : array_like
            The outcome of each, 0 or 1; NaN or None where it is unknown.
        arrivals : array_like, optional
            The numbers of their decisions: :attr:`latest_` after ``decide``, or ``arrival`` in the log.

        Returns
        -------
        SelectivePolicy
            The policy itself.

        Raises
        ------
        InputError
            If an outcome is invalid, contradicts an earlier one or does not match the decision with its arrival.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit(X)
        >>> accepted = policy.decide(X[:2])
        >>> policy.pending_
        2
        >>> policy.observe(X[:2], accepted, [1, 0], arrivals=[0, 1]).pending_
        0
        """
        rows = self._rows(X)
        which, seen = _known(outcomes, len(rows), _flags(accepted, len(rows)))
        matched: list[int | None] = []
        if arrivals is not None:
            given = checked_arrivals(arrivals, len(rows), self.arrivals_)
            which, seen = self._pending_outcomes.by_arrival(given, rows, which, seen)
            matched = [given[i] for i in which]
        if which:
            known = rows if len(which) == len(rows) else rows[which]
            if arrivals is None:
                matched = self._pending_outcomes.by_features(known, seen)
            made = [None if arrival is None else self._made.pop(arrival, None) for arrival in matched]
            self._learn(known, np.array(seen), self._stakes(made))
            self.labels_ += len(seen)
        return self

    def log_frame(self, X: Any = None, backend: str | None = None) -> Any:
        """Return the log as a data frame of decisions with outcomes, as ``lenience offpolicy`` reads it.

        The outcome is missing for the rejected and for the accepted who are still pending.

        Parameters
        ----------
        X : array_like or data frame, optional
            The features of everyone decided, in the order of arrival. The policy does not store them.
        backend : str, optional
            "pandas", "polars" or "pyarrow"; by default the first that is installed.

        Returns
        -------
        data frame
            One row for each decision.

        Raises
        ------
        InputError
            If X does not have one row for each decision, or has a column of the log.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit(X)
        >>> accepted = policy.decide(X[:2])
        >>> policy.log_frame(backend="pyarrow").column_names[:4]
        ['arrival', 'accepted', 'propensity', 'mean']
        """
        from lenience.policies.features.log_frame import log_rows

        return to_frame(log_rows(self.log_, self._pending_outcomes.outcomes, X), backend)

    def use_reference(self, X: Any, offers: Any = None) -> Self:
        """Replace the rows that represent the population.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.
        offers : optional
            The offer of each row, as in :meth:`fit`.

        Returns
        -------
        SelectivePolicy
            The policy itself.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> policy = FeaturePolicy(objective=Discounted(cost=0.6, discount=0.99)).fit([[0.0], [1.0]] * 50)
        >>> policy.use_reference([[0.0], [0.5], [1.0]] * 20).predict([[0.5]])
        array([1])
        """
        rows = self._rows(X)
        self._reference(rows, None if offers is None else self._offer_rows(offers, len(rows)))
        return self

    def predict(self, X: Any, offers: Any = None) -> NDArray[np.int64]:
        """Return who would be accepted now, each as if alone.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.
        offers : optional
            What each row asks for, as in :meth:`decide`.

        Returns
        -------
        ndarray of int
            1 where the probability of acceptance is at least ½, 0 elsewhere.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> from lenience.models import Cells
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(model=Cells(), objective=Discounted(cost=0.6, discount=0.99)).fit(X, [1, 0] * 50)
        >>> policy.predict([[0.0], [1.0]])
        array([1, 0])
        """
        return (self.propensity(X, offers) >= 0.5).astype(np.int64)

    def propensity(self, X: Any, offers: Any = None) -> NDArray[np.float64]:
        """Return the probability with which each row would be accepted now, as if alone. Nothing is logged or changed.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.
        offers : optional
            What each row asks for, as in :meth:`decide`.

        Returns
        -------
        ndarray of float
            One probability for each row.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> from lenience.models import Cells
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(model=Cells(), objective=Discounted(cost=0.6, discount=0.99), explore=0.05)
        >>> policy.fit(X, [1, 0] * 50).propensity([[0.0], [1.0]])
        array([1.  , 0.05])
        """
        rows = self._rows(X)
        brought = self._offer_rows(offers, len(rows))
        return np.array([decision.propensity for decision in self._each_alone(rows, brought)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the estimated probabilities of failure and success.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.

        Returns
        -------
        ndarray of float
            Two columns: failure, success.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> from lenience.models import Cells
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(model=Cells(), objective=Discounted(cost=0.6, discount=0.99)).fit(X, [1, 0] * 50)
        >>> policy.predict_proba([[0.0], [1.0]]).round(2)
        array([[0.02, 0.98],
               [0.98, 0.02]])
        """
        rows = self._rows(X)
        mean = self.model_.beliefs(rows)[1]
        return np.column_stack((1.0 - mean, mean))

    def beliefs(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the belief at each row.

        Parameters
        ----------
        X : array_like or data frame
            Rows of features.

        Returns
        -------
        tuple of ndarray
            The belief sizes n and the expected success probabilities p̂.

        Examples
        --------
        >>> from lenience import Discounted, FeaturePolicy
        >>> from lenience.models import Cells
        >>> X = [[0.0], [1.0]] * 50
        >>> policy = FeaturePolicy(model=Cells(), objective=Discounted(cost=0.6, discount=0.99)).fit(X, [1, 0] * 50)
        >>> n, mean = policy.beliefs([[0.0], [1.0]])
        >>> n, mean.round(2)
        (array([52., 52.]), array([0.98, 0.02]))
        """
        rows = self._rows(X)
        n, mean = self.model_.beliefs(rows)
        return n, mean

    @property
    def pending_(self) -> int:
        """The number of accepted individuals without an outcome."""
        return len(self._pending_outcomes.pending)

    @property
    def outcomes_(self) -> dict[int, float]:
        """The outcomes observed, by arrival."""
        return dict(self._pending_outcomes.outcomes)

    @property
    def latest_(self) -> NDArray[np.int64]:
        """The arrivals of the last call of ``decide``, to pass to ``observe``."""
        return np.arange(self._latest, self.arrivals_)

    def __sklearn_tags__(self) -> Any:
        """Declare that rows may have missing values if the model accepts them, and that labels are optional."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags

    def _default_model(self) -> FeatureModel:
        """Return one Gaussian belief, centred so that a typical individual is at the break-even."""
        return single_gaussian(self._break_even())

    def _declared(self) -> DeclaredFeatures | None:
        """Return the declared columns; None without."""
        columns = getattr(self, "columns", None)
        if columns is None:
            return None
        if self.transformer_ is not None:
            raise InputError.because(
                "must not be given with a Pipeline, which makes columns of its own",
                "columns",
                code="conflicting_fields",
            )
        return DeclaredFeatures(columns)

    def _check_objective(self) -> None:
        """Raise InputError if the policy cannot use the objective."""

    def _break_even(self) -> float:
        """Return the break-even success rate; with offers, that of accepting everyone."""
        offers = self.objective.offers
        return float(self.objective.cost if offers is None else offers.mean_cost)

    def _offer_rows(self, offers: Any, rows: int) -> OfferRows | None:
        """Return the offers of rows, checked; None if the objective has one break-even for all."""
        population = self.objective.offers
        if population is not None:
            return OfferRows.of(offers, rows, population)
        if offers is not None:
            raise InputError.because(
                "needs an objective with offers",
                "offers",
                label="offers",
                hint="Give the objective offers= instead of cost=.",
                code="unsupported_offers",
            )
        return None

    def _stakes(self, made: list[tuple[float, float] | None]) -> NDArray[np.float64] | None:
        """Return the amount, relative to the mean, and the break-even of each label; None without offers."""
        population = self.objective.offers
        if population is None:
            return None
        usual = population.mean_amount, population.mean_cost  # of labels from other sources
        stakes = np.array([usual if offer is None else offer for offer in made]).reshape(-1, 2)
        stakes[:, 0] /= population.mean_amount
        return stakes

    def _alone(self, rows: NDArray[np.float64], i: int, offers: OfferRows | None) -> Decision:
        """Return the decision on one row as if it came now. With a random number of 1, nobody is accepted at random."""
        return self._decide(rows[i : i + 1], np.ones(1), None if offers is None else offers.take(i, i + 1))[0]

    def _each_alone(self, rows: NDArray[np.float64], offers: OfferRows | None) -> list[Decision]:
        """Return the decision on each row as if it alone came now."""
        return [self._alone(rows, i, offers) for i in range(len(rows))]

    def _discount(self, ahead: int = 0) -> float:
        """Return γ for the arrival after ``ahead`` more; with a finite horizon 1 − 1/(number left), discounted."""
        return float(self.objective.discount_at(self.arrivals_ + ahead))

    def _clock(self) -> float:
        """Return the time that corresponds to the number of arrivals."""
        return float(self.objective.clock(self.arrivals_))

    def _start(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        """Take the first rows, and their offers if they are known."""

    def _ready(self) -> None:
        """Run after everything that is known at the start has been learnt."""

    def _reference(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        """Take the rows that represent the population, and their offers if they are known."""

    def _decide(
        self, rows: NDArray[np.float64], chances: NDArray[np.float64], offers: OfferRows | None
    ) -> list[Decision]:
        """Decide rows in turn; ``chances`` are the random numbers that acceptance is drawn with."""
        n, mean = self.model_.beliefs(rows)
        costs = np.full(len(rows), self.objective.cost) if offers is None else offers.break_even
        decisions: list[Decision] = []
        accepted = 0
        for i in range(len(rows)):
            size, rate, cost = float(n[i]), float(mean[i]), float(costs[i])
            propensity = self._acceptance(rows[i], rate, size, self.accepted_ + accepted, cost)
            take = bool(chances[i] < propensity)
            accepted += take
            if offers is None:
                decisions.append(Decision(self.arrivals_ + i, take, propensity, rate, size))
                continue
            amount, made, _ = offers.best(i, rate)
            decisions.append(
                OfferedDecision(self.arrivals_ + i, take, propensity, rate, size, amount=amount, cost=made)
            )
        return decisions

    def _acceptance(self, row: NDArray[np.float64], mean: float, n: float, accepted: int, cost: float) -> float:
        """Return the probability of accepting a row at this belief and break-even, after ``accepted`` acceptances."""
        raise NotImplementedError

    def _learn(
        self, rows: NDArray[np.float64], outcomes: NDArray[np.float64], stakes: NDArray[np.float64] | None = None
    ) -> None:
        """Learn the outcomes of these rows. ``stakes`` are as :meth:`_stakes` returns them."""
        self.model_.learn(rows, outcomes)

    def _arrived(self, rows: NDArray[np.float64], offers: OfferRows | None) -> None:
        """Take everyone who arrived, including the rejected, and what they asked for."""

    def _expire(self, now: float) -> None:
        """Expire pending outcomes that are too old now."""
        own = getattr(self, "expire_after", None)
        after = self.objective.expire_after if own is None else own
        if after is not None:
            self._pending_outcomes.expire(now, after)

    def _raw(self, X: Any, reset: bool) -> Any:
        """Return the rows, checked. Frames stay frames, because a transformer may select their columns by name."""
        from sklearn.utils.validation import validate_data

        if isinstance(self.transformer_, DeclaredFeatures):
            names = self.transformer_.names
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
            return self.transformer_.applicants(X)
        if self.transformer_ is None:
            return numbers(self, self.model_.coded(X) if isinstance(self.model_, Cells) else X, reset=reset)
        return validate_data(self, X, skip_check_array=True, reset=reset)

    def _names(self) -> list[str]:
        """Return the names of the features as given, or x0, x1, … as in scikit-learn."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else [str(name) for name in names]

    def _rows(self, X: Any) -> NDArray[np.float64]:
        """Return the rows as numbers, checked and transformed."""
        named = hasattr(self, "feature_names_in_") or getattr(self, "transformer_", self) is not None
        if not named and plain(X, getattr(self, "n_features_in_", None)):
            given: NDArray[np.float64] = X
            return given
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")
        rows = self._raw(X, reset=False)
        if self.transformer_ is not None:
            rows = self._unseen.counted(rows, dense(self.transformer_.transform(rows)))
        return np.ascontiguousarray(rows, dtype=np.float64)


def single_gaussian(cost: float) -> BayesianLogistic:
    """Return the default model of the baselines: the best prior among those with one hypothesis."""
    return BayesianLogistic(1.65, 6.6, math.log(cost / (1.0 - cost)))


def _parts(model: Any) -> tuple[Any, Any]:
    """Return the transformer of the rows and the model, both unfitted."""
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
        error = InputError("model", final, "a model of lenience.models, or a Pipeline that ends in one")
        if isinstance(final, type) or not (hasattr(final, "fit") and hasattr(final, "predict_proba")):
            raise error
        raise error.with_hint(f"Wrap it: lenience.models.Bootstrap({type(final).__name__}())")
    return transformer, clone(final)


def _flags(accepted: ArrayLike, rows: int) -> list[Any]:
    """Return whether each row was accepted, after checking that the flags are 0 or 1."""
    # Plain numbers in a loop are quicker than an array, because most calls have one row.
    flags: Any = accepted if isinstance(accepted, list) else np.asarray(accepted).tolist()
    if (
        not isinstance(flags, list)
        or len(flags) != rows
        or not all(not is_missing(flag) and flag in (0, 1) for flag in flags)
    ):
        raise InputError("accepted", accepted, f"true or false for each of the {rows} rows")
    return flags


def _known(y: ArrayLike, rows: int, accepted: list[Any] | None = None) -> tuple[list[int], list[float]]:
    """Return which accepted rows have a known outcome, and these outcomes. The others' values are ignored."""
    which, seen = [], []
    for i, value in enumerate(one_per_row("outcomes", y, rows)):
        if is_missing(value) or (accepted is not None and not accepted[i]):
            continue
        if isinstance(value, list) or value not in (0, 1):
            raise InputError("outcomes", value, "0 or 1 (false or true)")
        which.append(i)
        seen.append(float(value))
    return which, seen

"""What all feature models share, following scikit-learn's conventions.

A model is prepared with rows that need no labels, then learns labels as they arrive. ``fit(X, y)`` does both at once
and ``partial_fit`` continues. So every model is also an ordinary binary classifier: it can be cloned, tuned by a search
and put behind a Pipeline or a ColumnTransformer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.core.validation import check_cost
from lenience.models.feature_model import checked_outcomes
from lenience.models.label_order import neutral_order

if TYPE_CHECKING:

    class ClassifierMixin:
        """The type of scikit-learn's class, which has no type hints."""

    class BaseEstimator:
        """The type of scikit-learn's class, which has no type hints."""

        def __sklearn_tags__(self) -> Any: ...

else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin
    except ModuleNotFoundError as error:
        raise InputError.missing_package("models with features", "scikit-learn", "learn") from error


class FeatureEstimator(ClassifierMixin, BaseEstimator):
    """Base class of feature models; a subclass implements ``_prepare``, ``_learn``, ``_beliefs`` and ``_likeness``."""

    classes_: NDArray[Any]
    n_features_in_: int
    _break_even: float = 0.5  # a model alone does not know the cost
    _spare: int = 0
    _order_matters: bool = True  # whether `_learn` depends on the order of its rows
    _labelled: NDArray[np.bool_] | None = None  # which of the rows to prepare with have a label, if known

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Prepare with the rows and learn their labels.

        Parameters
        ----------
        X : array_like
            Rows of features.
        y : array_like
            Labels of two classes of any kind; the second in sorted order is success.
        sample_weight : array_like, optional
            Weight of each row.

        Returns
        -------
        FeatureEstimator
            The model itself.

        Raises
        ------
        InputError
            If there are more than two classes or a weight is negative.

        Examples
        --------
        >>> from lenience.models import BayesianLogistic
        >>> X, y = [[0.0], [1.0]] * 50, [0, 1] * 50
        >>> BayesianLogistic().fit(X, y).predict([[0.0], [1.0]])
        array([0, 1])
        """
        from sklearn.utils.multiclass import check_classification_targets

        rows, labels = self._numbers(X, y)
        check_classification_targets(labels)
        self.classes_ = _classes(labels)
        self._prepare(rows)
        self._learn_in_any_order(
            rows, (labels == self.classes_[1]).astype(np.float64), _weights(sample_weight, len(rows))
        )
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more labels. The first call prepares the model with its own rows.

        Parameters
        ----------
        X : array_like
            Rows of features.
        y : array_like
            Labels.
        classes : array_like, optional
            The two classes, for a first call whose labels do not show both.
        sample_weight : array_like, optional
            Weight of each row.

        Returns
        -------
        FeatureEstimator
            The model itself.

        Raises
        ------
        InputError
            If a label is of neither class.

        Examples
        --------
        >>> from lenience.models import Cells
        >>> model = Cells().partial_fit([[0.0], [1.0]], [0, 1])
        >>> model.partial_fit([[0.0]], [0]).beliefs([[0.0], [1.0]])[0]
        array([4., 3.])
        """
        if not hasattr(self, "classes_"):
            rows, labels = self._numbers(X, y)
            self.classes_ = _classes(labels if classes is None else np.asarray(classes))
            self._prepare(rows)
        else:
            rows, labels = self._rows(X), np.asarray(y)
        unknown = set(np.unique(labels)) - set(self.classes_)
        if unknown:
            raise InputError("classes", sorted(unknown), str(self.classes_.tolist()))
        self._learn_in_any_order(
            rows, (labels == self.classes_[1]).astype(np.float64), _weights(sample_weight, len(rows))
        )
        return self

    def prepare(self, X: ArrayLike) -> Self:
        """Forget all labels; take scales and columns from rows without labels.

        Parameters
        ----------
        X : array_like
            Rows of features.

        Returns
        -------
        FeatureEstimator
            The model itself.

        Examples
        --------
        >>> from lenience.models import Cells
        >>> Cells().prepare([[0.0], [1.0]]).beliefs([[0.0]])
        (array([2.]), array([0.5]))
        """
        rows = self._numbers(X)
        self.classes_ = np.array([0, 1])
        self._prepare(rows)
        return self

    def centre_on(self, cost: float) -> Self:
        """Centre a prior that the user left open on a break-even rate.

        A policy calls this before it prepares its model.

        Parameters
        ----------
        cost : float
            The break-even success rate.

        Returns
        -------
        FeatureEstimator
            The model itself.

        Examples
        --------
        >>> from lenience.models import BayesianLogistic
        >>> X = [[0.0], [1.0]]
        >>> before = BayesianLogistic().prepare(X).beliefs([[0.5]])[1]
        >>> after = BayesianLogistic().centre_on(0.8).prepare(X).beliefs([[0.5]])[1]
        >>> before.round(2), after.round(2)
        (array([0.5]), array([0.78]))
        """
        self._break_even = check_cost(cost)
        return self

    def spare(self, columns: int) -> Self:
        """Reserve the last columns for what the prepared rows do not show.

        A policy calls this before it prepares its model.

        Reserved columns do not count as features: beliefs about rows like the prepared ones are the same as without
        them.

        Parameters
        ----------
        columns : int
            Number of reserved columns.

        Returns
        -------
        FeatureEstimator
            The model itself.
        """
        self._spare = columns
        return self

    def past_choices(self, labelled: ArrayLike) -> Self:
        """Say which of the rows to prepare with have a known outcome.

        A policy calls this before it prepares its model. If earlier decisions chose whose outcome is known, the choice
        itself is evidence about the others (:class:`~lenience.models.BayesianLogistic` uses it).

        Parameters
        ----------
        labelled : array_like of bool
            Whether each row has a known outcome.

        Returns
        -------
        FeatureEstimator
            The model itself.

        Examples
        --------
        An earlier rule accepted whose features add up to more than 0. Evidence about the opposite end is weak:

        >>> from lenience.models import BayesianLogistic
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 5))
        >>> known, y = X.sum(axis=1) > 0, rng.random(1000) < 0.8
        >>> naive = BayesianLogistic().prepare(X).learn(X[known], y[known])
        >>> careful = BayesianLogistic().past_choices(known).prepare(X).learn(X[known], y[known])
        >>> [float(model.beliefs([[-1.0] * 5])[0][0].round()) for model in (naive, careful)]
        [25.0, 4.0]
        """
        self._labelled = np.asarray(labelled, dtype=np.bool_)
        return self

    def learn(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn outcomes, in addition to those learnt before. The order of the rows does not matter.

        Parameters
        ----------
        X : array_like
            Rows of features.
        y : array_like
            The outcome of each row, 0 or 1.

        Returns
        -------
        FeatureEstimator
            The model itself.

        Examples
        --------
        >>> from lenience.models import Cells
        >>> model = Cells().prepare([[0.0], [1.0]]).learn([[0.0], [0.0]], [1, 1])
        >>> model.learn([[1.0]], [0]).beliefs([[0.0], [1.0]])[1].round(2)
        array([0.75, 0.33])
        """
        rows = self._rows(X)
        self._learn_in_any_order(rows, checked_outcomes(y, len(rows)), np.ones(len(rows)))
        return self

    def beliefs(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the belief at each row.

        Parameters
        ----------
        X : array_like
            Rows of features.

        Returns
        -------
        n : ndarray
            Belief size at each row: how many observations the model's certainty is worth.
        mean : ndarray
            Success probability p̂ at each row.

        Examples
        --------
        >>> from lenience.models import Cells
        >>> n, mean = Cells().prepare([[0.0], [1.0]]).learn([[0.0], [0.0]], [1, 1]).beliefs([[0.0], [1.0]])
        >>> n, mean
        (array([4., 2.]), array([0.75, 0.5 ]))
        """
        return self._beliefs(self._rows(X))

    def likeness(self, X: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
        """Return ρ² between each row of X and each row of R.

        Parameters
        ----------
        X : array_like
            Rows of features.
        R : array_like
            Rows to compare with.

        Returns
        -------
        ndarray
            A matrix with one row for each row of X and one column for each row of R.

        Examples
        --------
        >>> from lenience.models import Cells
        >>> Cells().prepare([[0.0], [1.0]]).likeness([[0.0]], [[0.0], [1.0]])
        array([[1., 0.]])
        """
        return self._likeness(self._rows(X), self._rows(R))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probabilities of failure and success, 1 − p̂ and p̂.

        Parameters
        ----------
        X : array_like
            Rows of features.

        Returns
        -------
        ndarray
            Two columns: failure and success.

        Examples
        --------
        >>> from lenience.models import Cells
        >>> Cells().fit([[0.0], [0.0], [1.0]], [1, 1, 0]).predict_proba([[0.0]])
        array([[0.25, 0.75]])
        """
        mean = self.beliefs(X)[1]
        return np.column_stack((1.0 - mean, mean))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more likely class of each row.

        Parameters
        ----------
        X : array_like
            Rows of features.

        Returns
        -------
        ndarray
            A class for each row.

        Examples
        --------
        >>> from lenience.models import Cells
        >>> Cells().fit([[0.0], [0.0], [1.0]], [1, 1, 0]).predict([[0.0], [1.0]])
        array([1, 0])
        """
        likelier = (self.beliefs(X)[1] > 0.5).astype(np.int64)
        classes: NDArray[Any] = self.classes_[likelier]
        return classes

    def __sklearn_tags__(self) -> Any:
        """Declare two classes and support for missing values."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags

    def _rows(self, X: ArrayLike) -> NDArray[np.float64]:
        if plain(X, getattr(self, "n_features_in_", None)) and not hasattr(self, "feature_names_in_"):
            return X  # type: ignore[return-value]
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "classes_")
        rows: NDArray[np.float64] = self._numbers(X, reset=False)
        return rows

    def _prior(self, given: Any) -> Belief:
        """Return the given prior, or one worth two labels and centred on the break-even."""
        return Belief(2, 2.0 * self._break_even) if given is None else check_prior(given)

    def _numbers(self, X: ArrayLike, *y: ArrayLike, **options: Any) -> Any:
        return numbers(self, X, *y, **options)

    def _learn_in_any_order(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Learn labels so that their order in the batch does not matter."""
        if len(y) > 1 and self._order_matters:
            order = neutral_order(X, y, weights)
            X, y, weights = X[order], y[order], weights[order]
        self._learn(X, y, weights)

    def _prepare(self, X: NDArray[np.float64]) -> None:
        raise NotImplementedError

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        raise NotImplementedError

    def _beliefs(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raise NotImplementedError

    def _likeness(self, X: NDArray[np.float64], R: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError


def numbers(estimator: Any, X: Any, *y: ArrayLike, **options: Any) -> Any:
    """Return rows as numbers, checked by scikit-learn (with labels if given); the estimator remembers the columns."""
    from sklearn.utils.validation import validate_data

    try:
        return validate_data(estimator, X, *y, dtype=np.float64, ensure_all_finite="allow-nan", **options)
    except ValueError:
        texts = _texts(X)
        if not texts:
            raise
    columns = [f"{name!r} ({text!r})" for name, text in texts.items()]
    raise InputError.because(
        f"must be numbers; column {', '.join(columns)} holds text",
        "X",
        value=list(texts),
        hint="Put a Pipeline in front that encodes it, such as make_pipeline(ColumnTransformer([('text', "
        f"OneHotEncoder(handle_unknown='ignore'), {list(texts)})], remainder='passthrough'), "
        "lenience.models.BayesianLogistic()).",
    )


def _texts(X: Any) -> dict[str | int, str]:
    """Return the columns that hold text, by name or number, each with its first text."""
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2:
        return {}
    names = list(getattr(X, "columns", range(cells.shape[1])))
    texts: dict[str | int, str] = {}
    for name, column in zip(names, cells.T, strict=True):
        for cell in column:
            if isinstance(cell, str) and number_in(cell) is None:
                texts[name] = cell
                break
    return texts


def number_in(text: str) -> float | None:
    """Parse a text as a number; return None if it is not one."""
    try:
        return float(text)
    except ValueError:
        return None


def plain(X: object, columns: int | None) -> bool:
    """Return whether X needs no conversion. scikit-learn's own checks take longer than a decision."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == columns
        and X.dtype == np.float64
        and X.flags.c_contiguous
        and len(X) > 0
        and not np.isinf(X).any()
    )


def _classes(labels: NDArray[Any]) -> NDArray[Any]:
    classes = np.unique(labels)
    if len(classes) > 2:
        raise InputError.because(
            "Only binary classification is supported. The type of the target is multiclass.",
            "y",
            label="",
            value=len(classes),
            allowed="two classes",
        )
    if len(classes) == 1:
        # Selective labels often begin with only one class, but outcomes always have two: 0 and 1.
        if classes[0] in (0, 1):
            return np.array([0, 1], dtype=classes.dtype) if classes.dtype != np.bool_ else np.array([False, True])
        raise InputError.because(
            f"must have two classes, or be outcomes 0 and 1, not the one class {classes[0]!r}",
            "y",
            value=classes[0],
            allowed="two classes, or outcomes 0 and 1",
        )
    return classes


def _weights(given: ArrayLike | None, rows: int) -> NDArray[np.float64]:
    if given is None:
        return np.ones(rows)
    weights = np.asarray(given, dtype=np.float64)
    weights = np.full(rows, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (rows,) or not np.all(weights >= 0):
        raise InputError("sample_weight", allowed=f"a number of at least 0 for each of the {rows} rows")
    if rows and not weights.any():
        raise InputError("sample_weight", allowed="above 0 for at least one row, not zero for all")
    return weights

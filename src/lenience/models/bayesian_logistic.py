"""Bayesian logistic regression: the default feature model.

The model. logit p(x) = β₀ + Σ_k β_k z_k, the features z standardised over the rows that prepared it. How much the
features matter is learnt: hypotheses, in which the coefficients β_k share a variance of 0.3 (they say next to nothing),
3 or 30 (they say nearly everything), run side by side, and each is weighted by how well it predicted the labels
(:mod:`lenience.models.hypotheses`). The prior weights 0.15, 0.6 and 0.25 are close to what 200 labels of each of eleven
data sets leave on average, starting from equal weights: 0.17, 0.61 and 0.22 (``python -m research
hypothesis-weights``).

Effects may bend. In two further hypotheses the features share their variance (3 or 30) with the columns of
:mod:`lenience.models.rank_columns`: ranks, their squares and a column for zeros. Straight and bent effects start with
half of the weight of 3 and 30 each: 0.15, 0.3, 0.12 and 0.3, 0.13. Without a feature of more than two values nothing
can bend, and there are three hypotheses.

The past may have chosen whose outcome is known. :mod:`lenience.models.selection` adds columns for what this choice
says, if :meth:`past_choices` tells which rows have a label.

The intercept's prior is about the population. If the features contribute variance s to the log-odds, averaging over
individuals pulls rates towards ½ as if log-odds were divided by κ = √(1 + πs/8). So the log-odds of the population's
success rate have a prior variance of 0.46 under every hypothesis if β₀ has 0.46 κ². 0.46 is the mean square of
log-odds(success rate) − log-odds(cost) over the data sets on which constants were chosen. :meth:`for_cost`, and a
policy whose model has no ``intercept_mean``, centre β₀ on (3 + κ)/4 · log(c/(1 − c)). This lies between two centres:
the one at which an average individual (1), and the one at which the population (κ), is equally likely to be above and
below the break-even. It is nearer to the first. A model on its own is centred on p = ½.

One-hot cells (:meth:`BayesianLogistic.for_cells`) have no intercept and a variance of π²/3 each, so that p is about
uniform: the model is then independent counts, cell by cell, in the log-odds.

A single label is learnt by the rank-one update of :mod:`lenience.models.gaussian`: the work per label or belief does
not depend on the number of labels seen. Several labels at once, such as a history, are learnt by expectation
propagation (:mod:`lenience.models.batch_learning`), so their order does not matter. Interactions and splines come from
a Pipeline in front.

Edge cases. Without labels the belief is the prior's. Labels of one class only are no problem, because the prior bounds
the coefficients. A feature that did not vary in N prepared rows is scaled so that a change of 1 is √N standard
deviations (:mod:`lenience.models.scaling`), because nothing is known about an unseen category. A policy's column for
unseen categories takes no share of the features' variance. A missing value counts as the feature's mean: it says
nothing. Standardised values are limited to ±``limit``, because a row far outside the data is not that much more
informative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.validation import check_cost, number, real
from lenience.models.known_directions import Directed, checked_directions, statements
from lenience.models.logistic_belief import LogisticBelief
from lenience.models.logistic_design import LogisticDesign
from lenience.models.logistic_estimator import LogisticEstimator
from lenience.models.rank_columns import find_rank_columns
from lenience.models.scaling import centre_and_scale
from lenience.models.selection import Selection, find_selection, prior_of_columns

FEATURE_VARIANCES = (0.3, 3.0, 30.0)
FEATURE_WEIGHTS = (0.15, 0.6, 0.25)
BENT_VARIANCES = (3.0, 30.0)  # of the hypotheses in which effects may bend
LINEAR_AND_BENT_WEIGHTS = (0.15, 0.3, 0.12, 0.3, 0.13)
RATE_VARIANCE = 0.46
LIMIT = 6.0
Numbers = float | tuple[float, ...]


class BayesianLogistic(LogisticEstimator):
    """Logistic regression with a Gaussian belief about its coefficients, updated by one label or by many at once.

    Parameters
    ----------
    intercept_variance : float or tuple of float, optional
        Prior variance of the intercept, one number or one per hypothesis. The default is 0.46 κ².
    feature_variance : float or tuple of float, default (0.3, 3, 30)
        Prior variance of the features' coefficients. Several numbers are several hypotheses.
    intercept_mean : float or tuple of float, optional
        Prior log-odds of an average individual, one number or one per hypothesis. By default a policy uses
        :meth:`for_cost` with the cost of its objective, and a model on its own uses 0.
    intercept : bool, default True
        Whether there is an intercept.
    divided : bool, default True
        Whether the features share ``feature_variance`` or have it each.
    standardise : bool, default True
        Whether to standardise features.
    limit : float, default 6
        Largest absolute value of a standardised feature.
    hypothesis_weights : tuple of float, optional
        Prior weights of the hypotheses, straight ones first. By default equal, or those above for the default
        hypotheses.
    bent_variance : float or tuple of float, optional
        Prior variance of further hypotheses, in which the effect of a feature may bend; () for none. The default is
        (3, 30) with the default ``feature_variance``, otherwise none.
    selection : bool, default True
        Whether the choice of the labelled rows counts as evidence, if :meth:`past_choices` says which they are.
    monotonic_cst : array_like of int, optional
        The direction of each feature's effect on success where it is known, as in scikit-learn: 1 rises, -1 falls, 0 is
        open. Behind a Pipeline it is about the columns that the Pipeline makes.

    Examples
    --------
    >>> X = [[0.0], [1.0], [0.0], [1.0]]
    >>> model = BayesianLogistic().prepare(X)
    >>> n, mean = model.beliefs([[0.5]])
    >>> float(mean[0].round(6)), float(n[0].round(2))  # before any label, at the mean of the features
    (0.5, 3.24)
    >>> model.learn(X, [0, 1, 0, 1]).predict_proba([[0.0], [1.0], [float("nan")]])[:, 1].round(2)
    array([0.14, 0.86, 0.5 ])
    >>> model.weights_.round(2)  # of the three hypotheses, 0.15, 0.6 and 0.25 before
    array([0.06, 0.55, 0.39])
    """

    def __init__(
        self,
        intercept_variance: Numbers | None = None,
        feature_variance: Numbers = FEATURE_VARIANCES,
        intercept_mean: Numbers | None = None,
        intercept: bool = True,
        divided: bool = True,
        standardise: bool = True,
        limit: float = LIMIT,
        hypothesis_weights: Numbers | None = None,
        bent_variance: Numbers | None = None,
        selection: bool = True,
        monotonic_cst: Any = None,
    ) -> None:
        self.intercept_variance = intercept_variance
        self.feature_variance = feature_variance
        self.intercept_mean = intercept_mean
        self.intercept = intercept
        self.divided = divided
        self.standardise = standardise
        self.limit = limit
        self.hypothesis_weights = hypothesis_weights
        self.bent_variance = bent_variance
        self.selection = selection
        self.monotonic_cst = monotonic_cst

    @classmethod
    def for_cost(cls, cost: float) -> BayesianLogistic:
        """Create the default model for a cost: the prior is centred near the break-even.

        Parameters
        ----------
        cost : float
            The break-even success rate.

        Returns
        -------
        BayesianLogistic
            The model, not yet prepared.

        Examples
        --------
        >>> model = BayesianLogistic.for_cost(0.8).prepare([[0.0], [1.0]])
        >>> model.beliefs([[0.5]])[1].round(2)
        array([0.78])
        """
        return cls(intercept_mean=_centres(check_cost(cost), (*FEATURE_VARIANCES, *BENT_VARIANCES)))

    @classmethod
    def for_cells(cls) -> BayesianLogistic:
        """Create a model for one-hot cells: no intercept, and p about uniform in every cell.

        Returns
        -------
        BayesianLogistic
            The model, not yet prepared.

        Examples
        --------
        >>> X = [[1.0, 0.0], [0.0, 1.0]]  # two cells, one-hot
        >>> model = BayesianLogistic.for_cells().prepare(X).learn([X[0]] * 4, [1, 1, 1, 0])
        >>> model.beliefs(X)[1].round(2)
        array([0.68, 0.5 ])
        """
        return cls(intercept=False, divided=False, standardise=False, feature_variance=math.pi**2 / 3.0)

    def _prepare(self, X: NDArray[np.float64]) -> None:
        real("limit", self.limit, above=0)
        count = X.shape[1]
        centre, scale = centre_and_scale(X) if self.standardise else (np.zeros(count), np.ones(count))
        limit = float(self.limit) if self.standardise else math.inf
        design = LogisticDesign(centre, scale, limit, bool(self.intercept))
        straight, bent = _each("feature_variance", self.feature_variance), self._bent()
        given = len(straight) + len(bent)
        directions = checked_directions(self.monotonic_cst, count - self._spare)
        if bent:
            ranks = find_rank_columns(X, count - self._spare, directions)
            if ranks.width:
                around, width = centre_and_scale(ranks.of(X))
                design = design._replace(ranks=ranks, bend_centre=around, bend_scale=width)
            else:
                bent = ()  # nothing can bend, so these hypotheses would repeat the others
        if self.selection and self.standardise and self._labelled is not None and len(self._labelled) == len(X):
            design = design._replace(selection=find_selection(design.standardised(X), self._labelled))
        self.selection_: Selection | None = design.selection
        self._set_prior(design, straight, bent, given, count)
        self._directed: Directed | None = None
        if directions is not None:
            self._direct(design, np.append(directions, np.zeros(self._spare, dtype=np.int64)))

    def _direct(self, design: LogisticDesign, directions: NDArray[np.int64]) -> None:
        """Restrict the prior to the known directions; how much the features say stays open."""
        rows = statements(directions, design.first, design.width, design.ranks, design.bend_scale)
        self._directed = Directed(rows, self.weights_.copy(), self.means_.copy(), self.covariances_.copy())
        self._directed.restrict(self.weights_, self.means_, self.covariances_)

    def _bent(self) -> tuple[float, ...]:
        """Return the variances of the hypotheses in which effects may bend."""
        if self.bent_variance is None:
            return BENT_VARIANCES if self.standardise and self.feature_variance == FEATURE_VARIANCES else ()
        if isinstance(self.bent_variance, tuple | list) and not self.bent_variance:
            return ()
        return _each("bent_variance", self.bent_variance)

    def _set_prior(
        self, design: LogisticDesign, straight: tuple[float, ...], bent: tuple[float, ...], given: int, count: int
    ) -> None:
        """Set the prior of each hypothesis; ``given`` is their number in the parameters."""
        spreads = (*straight, *bent)
        around = tuple(RATE_VARIANCE * stretch(s) ** 2 for s in spreads)
        if self.intercept_variance is not None:
            around = _each("intercept_variance", self.intercept_variance, given)[: len(spreads)]
        centres = _centres(self._break_even, spreads)
        if self.intercept_mean is not None:
            centres = _each("intercept_mean", self.intercept_mean, given, positive=False)[: len(spreads)]
        weights = _default_weights(straight, bent)
        if self.hypothesis_weights is not None:
            weights = _each("hypothesis_weights", self.hypothesis_weights, given)[: len(spreads)]
        first, bends = design.first, design.bends
        mean, variance = prior_of_columns() if design.selection is not None else (np.empty(0), np.empty(0))
        variances = np.zeros((len(spreads), design.width))
        means = np.zeros(variances.shape)
        features = max(count - self._spare, 1)
        for k, spread in enumerate(spreads):
            columns = features if k < len(straight) else features + bends
            end = first + count + (0 if k < len(straight) else bends)
            variances[k, first:end] = spread / (columns if self.divided else 1)
        if self.intercept:
            variances[:, 0], means[:, 0] = around, centres
        variances[:, first + count + bends :], means[:, first + count + bends :] = variance, mean
        covariances = np.array([np.diag(each) for each in variances])
        self.belief_ = LogisticBelief(design, np.array(weights) / np.sum(weights), means, covariances)

    def _learn(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        if self._directed is not None and not self.labels_ and len(y) > 1:
            self._directed.restrict(self.weights_, self.means_, self.covariances_, self.design(X), y, weights)
            self.belief_.labels += len(y)
        else:
            super()._learn(X, y, weights)


def stretch(variance: float) -> float:
    """Return κ, the factor by which features of this variance shrink a population's log-odds towards 0."""
    return math.sqrt(1.0 + math.pi * variance / 8.0)


def _centres(cost: float, spreads: tuple[float, ...]) -> tuple[float, ...]:
    """Return the centre of the intercept's prior for a break-even, under each hypothesis."""
    odds = math.log(cost / (1.0 - cost))
    return tuple(odds * (3.0 + stretch(s)) / 4.0 for s in spreads)


def _default_weights(straight: tuple[float, ...], bent: tuple[float, ...]) -> tuple[float, ...]:
    """Return the prior weights of the hypotheses if none are given."""
    if straight == FEATURE_VARIANCES and not bent:
        return FEATURE_WEIGHTS
    if straight == FEATURE_VARIANCES and bent == BENT_VARIANCES:
        return LINEAR_AND_BENT_WEIGHTS
    return (1.0,) * (len(straight) + len(bent))


def _each(field: str, given: Numbers, several: int | None = None, positive: bool = True) -> tuple[float, ...]:
    """Return one checked number per hypothesis."""
    values = tuple(given) if isinstance(given, tuple | list | np.ndarray) else (given,)
    if several is not None and len(values) == 1:
        values *= several
    if not values or (several is not None and len(values) != several):
        wanted = (
            "at least one number" if several is None else f"one number, or {several}: one for each feature_variance"
        )
        raise InputError(field, given, wanted, code="length_mismatch")
    if positive:
        return tuple(real(field, value, above=0) for value in values)
    return tuple(number(field, value, "that is finite") for value in values)

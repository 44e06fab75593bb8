"""A logistic curve in ordered scores, with an effect for each group.

The model. logit p_x = b₀ + Σ_k b_k z_xk + g_group(x), the scores z standardised over the cells, with a Gaussian prior
on all coefficients. The posterior given the labels is taken as Gaussian at its mode (Laplace): N(μ, Σ), Σ⁻¹ = Λ + Σ_x
w_x a_x a_xᵀ, w_x = n_x p_x(1 − p_x).

What a cell receives. Its *cavity*: the posterior without the cell's own labels, so that they do not count twice.
Removing a cell is a rank-one change, Σ_−x = Σ + w Σaaᵀ Σ/(1 − w v) with v = aᵀΣa, and μ_−x = μ − Σ_−x a (s − n p).
The cavity's moments of p, by Gauss–Hermite quadrature, are those of a Beta of size p̂(1 − p̂)/var − 1. That size, at
most ``cap``, is transferred to the cell. No curve is exactly right, so the cap lets a cell's own labels overrule it.

The prior. b₀ ~ N(0, 1.65) and the slopes share a variance of 1.65, together π²/3, so that before any label p is about
uniform in an average cell. If a score is *rising* (a higher score is better) its slope has mean ``slope`` instead of 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.compiled import compiled
from lenience.core.errors import InputError
from lenience.core.validation import floats, real
from lenience.models.protocol import checked_counts
from lenience.models.quadrature import quadrature

CAP = 20.0
VARIANCE = 1.65
GROUP_VARIANCE = 0.5
SLOPE = 1.0  # prior mean of the slope of a rising score, per standard deviation
LEAST = 0.05  # smallest belief size that is transferred
STEPS = 50


class Curve:
    """Fit a logistic curve in scores, plus group effects, to the labels of all cells.

    Parameters
    ----------
    scores : array_like
        One score per cell, or a table of cells by scores.
    groups : sequence of str, optional
        The group of each cell. Each group gets an effect of its own.
    cap : float, default 20
        The most labels that the curve is worth to a cell.
    rising : bool, default True
        Whether a higher score is better.
    slope : float, default 1
        Prior mean of the slope of a rising score, per standard deviation.
    group_variance : float, default 0.5
        Prior variance of a group effect, in log-odds.

    Raises
    ------
    InputError
        If scores are not finite, or groups do not match the cells.

    Examples
    --------
    >>> curve = Curve(scores=[10, 30, 50, 70, 90])
    >>> n0, s0 = curve.priors([0, 0, 40, 40, 40], [0, 0, 20, 30, 38])
    >>> (s0 / n0).round(2)  # the first two cells have no labels; the curve says what to expect
    array([0.09, 0.23, 0.47, 0.79, 0.87])
    """

    def __init__(
        self,
        scores: ArrayLike,
        groups: Sequence[str] | None = None,
        cap: float = CAP,
        rising: bool = True,
        slope: float = SLOPE,
        group_variance: float = GROUP_VARIANCE,
    ) -> None:
        features = floats("scores", scores)
        features = features[:, None] if features.ndim == 1 else features
        if features.ndim != 2 or not features.size or not np.all(np.isfinite(features)):
            raise InputError("scores", allowed="finite numbers, one for each cell, or a table of cells by features")
        if groups is not None and len(groups) != len(features):
            raise InputError.because(
                f"must name a group for each of the {len(features)} cells, not {len(groups)}",
                "groups",
                value=len(groups),
                code="length_mismatch",
            )
        spread = features.std(axis=0)
        z = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        names = list(dict.fromkeys(groups or []))
        effects = np.array([[float(group == name) for name in names] for group in groups or []])
        effects = effects if len(names) > 1 else np.zeros((len(features), 0))
        self.cap = real("cap", cap, above=0)
        count = features.shape[1]
        self.design = np.ascontiguousarray(np.hstack([np.ones((len(features), 1)), z, effects]))
        tilt = real("slope", slope, least=0) if rising else 0.0
        self.mean = np.concatenate([[0.0], np.full(count, tilt), np.zeros(effects.shape[1])])
        variances = [VARIANCE, *[VARIANCE / count] * count]
        variances += [real("group_variance", group_variance, above=0)] * effects.shape[1]
        self.precision = 1.0 / np.array(variances)

    @classmethod
    def of_design(
        cls,
        design: NDArray[np.float64],
        mean: NDArray[np.float64],
        precision: NDArray[np.float64],
        cap: float,
    ) -> Curve:
        """Create a curve from its design and prior, as another curve stored them.

        Parameters
        ----------
        design : ndarray
            One row for each cell: intercept, standardised scores and group effects.
        mean : ndarray
            Prior mean of each coefficient.
        precision : ndarray
            One over the prior variance of each coefficient.
        cap : float
            The most labels that the curve is worth to a cell.

        Returns
        -------
        Curve
            The curve.

        Examples
        --------
        >>> curve = Curve(scores=[10, 50, 90])
        >>> same = Curve.of_design(curve.design, curve.mean, curve.precision, curve.cap)
        >>> bool((same.priors([0, 40, 40], [0, 20, 36])[0] == curve.priors([0, 40, 40], [0, 20, 36])[0]).all())
        True
        """
        curve = cls.__new__(cls)
        curve.design, curve.mean, curve.precision = np.ascontiguousarray(design), mean, precision
        curve.cap = real("cap", cap, above=0)
        return curve

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.design)

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute what the labels of the other cells say about each cell through the curve.

        Parameters
        ----------
        labels : array_like
            Number of labels of each cell.
        successes : array_like
            Number of successes of each cell.

        Returns
        -------
        n : ndarray
            Prior size n₀ of each cell, at most ``cap``.
        s : ndarray
            Prior successes s₀ of each cell.

        Examples
        --------
        >>> n0, s0 = Curve(scores=[10, 50, 90]).priors([0, 40, 40], [0, 20, 36])
        >>> (s0 / n0).round(2)
        array([0.14, 0.57, 0.7 ])
        """
        n, s = checked_counts(self.cells, labels, successes)
        size, good = np.empty(self.cells), np.empty(self.cells)
        nodes, weights = quadrature()
        transfer(self.design, n, s, self.mean, self.precision, self.cap, nodes, weights, self.mean.copy(), size, good)
        return size, good

    def coefficients(self, labels: ArrayLike, successes: ArrayLike) -> NDArray[np.float64]:
        """Fit the coefficients to the labels.

        Parameters
        ----------
        labels : array_like
            Number of labels of each cell.
        successes : array_like
            Number of successes of each cell.

        Returns
        -------
        ndarray
            Intercept, slopes (per standard deviation) and group effects.

        Examples
        --------
        >>> Curve(scores=[10, 50, 90]).coefficients([40, 40, 40], [10, 24, 36]).round(2)  # the intercept and one slope
        array([0.46, 1.31])
        """
        n, s = checked_counts(self.cells, labels, successes)
        coefficients = self.mean.copy()
        climb(self.design, n, s, self.mean, self.precision, coefficients)
        return coefficients

    def __repr__(self) -> str:
        return f"Curve({self.cells} cells, {self.design.shape[1]} coefficients, cap={self.cap:g})"


@compiled
def log_posterior(
    design: NDArray[np.float64],
    n: NDArray[np.float64],
    s: NDArray[np.float64],
    mean: NDArray[np.float64],
    precision: NDArray[np.float64],
    b: NDArray[np.float64],
) -> float:
    """Return the log posterior density of the coefficients, up to a constant."""
    total = 0.0
    for k in range(b.size):
        total -= 0.5 * precision[k] * (b[k] - mean[k]) ** 2
    for i in range(n.size):
        if n[i] > 0.0:
            eta = 0.0
            for k in range(b.size):
                eta += design[i, k] * b[k]
            total += s[i] * eta - n[i] * (max(eta, 0.0) + math.log1p(math.exp(-abs(eta))))
    return total


@compiled
def climb(
    design: NDArray[np.float64],
    n: NDArray[np.float64],
    s: NDArray[np.float64],
    mean: NDArray[np.float64],
    precision: NDArray[np.float64],
    b: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Take Newton steps from ``b`` to the posterior mode, in place; return the covariance there.

    The log posterior is strictly concave, so Newton steps that are halved until they climb arrive from anywhere.
    """
    count = b.size
    height = log_posterior(design, n, s, mean, precision, b)
    hessian = np.empty((count, count))
    slope = np.empty(count)
    for _ in range(STEPS):
        for k in range(count):
            slope[k] = -precision[k] * (b[k] - mean[k])
            for m in range(count):
                hessian[k, m] = precision[k] if k == m else 0.0
        for i in range(n.size):
            if n[i] <= 0.0:
                continue
            eta = 0.0
            for k in range(count):
                eta += design[i, k] * b[k]
            p = 1.0 / (1.0 + math.exp(-eta))
            rest = s[i] - n[i] * p
            w = n[i] * p * (1.0 - p)
            for k in range(count):
                slope[k] += design[i, k] * rest
                for m in range(count):
                    hessian[k, m] += w * design[i, k] * design[i, m]
        step = np.linalg.solve(hessian, slope)
        size = np.max(np.abs(step))
        if size < 1e-7:
            break
        scale = 1.0
        for _half in range(40):
            trial = log_posterior(design, n, s, mean, precision, b + scale * step)
            if trial >= height - 1e-12 * abs(height):
                break
            scale *= 0.5
        for k in range(count):
            b[k] += scale * step[k]
        height = trial
    covariance: NDArray[np.float64] = np.linalg.inv(hessian).astype(np.float64)
    return covariance


@compiled
def transfer(
    design: NDArray[np.float64],
    n: NDArray[np.float64],
    s: NDArray[np.float64],
    mean: NDArray[np.float64],
    precision: NDArray[np.float64],
    cap: float,
    nodes: NDArray[np.float64],
    weights: NDArray[np.float64],
    b: NDArray[np.float64],
    size: NDArray[np.float64],
    good: NDArray[np.float64],
) -> None:
    """Fit from ``b`` on (in place) and write the size and the successes that each cell receives."""
    covariance = climb(design, n, s, mean, precision, b)
    count = b.size
    for i in range(n.size):
        eta = 0.0
        v = 0.0
        for k in range(count):
            eta += design[i, k] * b[k]
            for m in range(count):
                v += design[i, k] * covariance[k, m] * design[i, m]
        if n[i] > 0.0:
            # The cavity: v/(1 − wv) and η − v/(1 − wv) (s − np).
            p = 1.0 / (1.0 + math.exp(-eta))
            w = n[i] * p * (1.0 - p)
            v = v / max(1.0 - w * v, 1e-9)
            eta -= v * (s[i] - n[i] * p)
        root = math.sqrt(v)
        first = 0.0
        second = 0.0
        for q in range(nodes.size):
            p = 1.0 / (1.0 + math.exp(-(eta + root * nodes[q])))
            first += weights[q] * p
            second += weights[q] * p * p
        variance = max(second - first * first, 1e-12)
        transferred = first * (1.0 - first) / variance - 1.0
        size[i] = min(max(transferred, LEAST), cap)
        good[i] = size[i] * first

"""Learn many labels at once, so that their order does not matter: expectation propagation.

One pass of assumed-density filtering (:mod:`lenience.models.gaussian`) approximates after every label, so labels that
are sorted by outcome mislead it. Here each label i has a *site*, a Gaussian exp(ν_i a − ½ τ_i a²) in its log-odds
a = βᵀx_i that stands for its likelihood. The belief is the prior N(μ₀, Σ₀) times all sites:

    Σ⁻¹ = Σ₀⁻¹ + Xᵀ diag(τ) X,        μ = μ₀ + Σ Xᵀ(ν − τ Xμ₀).

A sweep takes each site out of the belief (the *cavity*), puts the label's likelihood in its place, and chooses the site
anew so that mean and variance of a are those of the result, by the same quadrature as for a single label. All labels
are updated at once, then Σ follows from one product of matrices. Sweeps stop when no log-odds in the batch move by more
than 10⁻⁶ standard deviations. For one label the result is that of the single pass, exactly.

The marginal likelihood of the batch, which weighs the hypotheses, is

    log Z = Σ_i [ log Z_i + ½ log(1 + τ_i v_i) − (ν_i b_i + ½ v_i ν_i² − ½ τ_i b_i²)/(1 + τ_i v_i) ]
            − ½ log|I + LᵀXᵀ diag(τ) X L| + ½ (μ − μ₀)ᵀXᵀν,

with N(b_i, v_i) the cavity of a − x_iᵀμ₀, Z_i the probability of the label under it, ν of the same shifted log-odds,
and Σ₀ = LLᵀ. Everything is computed with L, so that Σ₀ is never inverted.

Equal labels of equal rows share a site, and a label with a weight w counts as ⌈w⌉ labels with weights of at most 1. A
sweep takes O(N d²) time; memory beyond the rows themselves is O(N).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled
from lenience.models.gaussian import sigmoid, tilted
from lenience.models.hypotheses import LEAST_WEIGHT, learn_rows
from lenience.models.label_order import ROWS_AT_ONCE, projection

TOLERANCE = 1e-6  # largest move of log-odds in a last sweep, in standard deviations
SWEEPS = 100
NEWTON_STEPS = 50
CLOSE_TO_MODE = 1e-3  # a smaller fall of the loss ends the search for the mode
LEAST_STEP = 0.05

Vector = NDArray[np.float64]


class Batch(NamedTuple):
    """Labels to learn, with equal ones grouped.

    Parameters
    ----------
    rows
        Design rows, one per group.
    y
        Outcome of each group.
    weight
        Weight of one label, at most 1.
    copies
        Number of equal labels.
    """

    rows: Vector
    y: Vector
    weight: Vector
    copies: Vector


class _Belief(NamedTuple):
    """A Gaussian belief after a batch, in terms of its prior N(μ₀, LLᵀ): μ = μ₀ + Lθ, Σ = RRᵀ."""

    theta: Vector
    root: Vector
    log_determinant: float


def grouped(X: Vector, y: Vector, weights: Vector) -> Batch:
    """Return labels with equal ones counted instead of repeated; those with a weight of 0 are left out.

    Parameters
    ----------
    X : ndarray
        Design rows.
    y : ndarray
        Their outcomes.
    weights : ndarray
        Their weights.

    Returns
    -------
    Batch
        The groups.

    Examples
    --------
    >>> batch = grouped(np.array([[1.0], [2.0], [1.0]]), np.array([1.0, 0.0, 1.0]), np.ones(3))
    >>> batch.rows.tolist(), batch.y.tolist(), batch.copies.tolist()
    ([[1.0], [2.0]], [1.0, 0.0], [2.0, 1.0])
    """
    count = np.ceil(weights)
    weight = weights / np.maximum(count, 1.0)
    order, same = _repeats(X, y, weight)
    if not same.any() and weights.all():
        return Batch(X, y, weight, count)
    order, same = order[weights[order] > 0], same[weights[order] > 0]
    starts = np.flatnonzero(~same)
    first = order[starts]
    return Batch(X[first], y[first], weight[first], np.add.reduceat(count[order], starts) if len(starts) else count[:0])


def _repeats(X: Vector, y: Vector, weight: Vector) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return an order in which equal labels are next to each other, and which of them repeat the one before."""
    keys = projection(X, y, weight)
    order = np.argsort(keys, kind="stable")
    same = np.zeros(len(order), dtype=np.bool_)
    at = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    a, b = order[at + 1], order[at]
    same[at + 1] = (X[a] == X[b]).all(axis=1) & (y[a] == y[b]) & (weight[a] == weight[b])
    return order, same


def learn_labels(
    X: Vector, y: Vector, label_weights: Vector, weights: Vector, means: Vector, covariances: Vector
) -> None:
    """Learn labels from the belief as it is: one by the quick update, several by :func:`learn_batch`.

    The parameters are those of :func:`learn_batch`.
    """
    single = len(y) == 1 and label_weights[0] <= 1.0
    (learn_rows if single else learn_batch)(X, y, label_weights, weights, means, covariances)


def learn_batch(
    X: Vector, y: Vector, label_weights: Vector, weights: Vector, means: Vector, covariances: Vector
) -> None:
    """Learn the labels of many rows at once, from the belief as it is; write the new belief.

    Parameters
    ----------
    X : ndarray
        Design rows.
    y : ndarray
        Their outcomes.
    label_weights : ndarray
        Their weights.
    weights : ndarray
        Weight of each hypothesis; overwritten.
    means : ndarray
        Mean of the coefficients under each hypothesis; overwritten.
    covariances : ndarray
        Their covariance under each hypothesis; overwritten.

    Examples
    --------
    >>> X, y = np.ones((40, 1)), np.repeat([0.0, 1.0], 20)  # all failures first
    >>> weights, means, covariances = np.ones(1), np.zeros((1, 1)), np.full((1, 1, 1), 3.0)
    >>> learn_batch(X, y, np.ones(40), weights, means, covariances)
    >>> bool(abs(means[0, 0]) < 1e-9), covariances.round(2).tolist()
    (True, [[[0.1]]])
    """
    batch = grouped(X, y, label_weights)
    if not len(batch.y):
        return
    evidence = np.empty(len(weights))
    sites = np.zeros((2, len(batch.y)))  # each hypothesis starts from those of the one before
    for k in range(len(weights)):
        evidence[k] = _propagate(batch, means[k], covariances[k], *sites)
    weights *= np.exp(evidence - evidence.max())
    weights /= weights.sum()
    np.maximum(weights, LEAST_WEIGHT, out=weights)
    weights /= weights.sum()


def _propagate(batch: Batch, mean: Vector, covariance: Vector, precision: Vector, pull: Vector) -> float:
    """Learn the batch under one hypothesis, and return the logarithm of its marginal likelihood.

    Overwrites the belief and the sites.
    """
    root = _root(covariance)
    centre = batch.rows @ mean
    pull -= precision * centre  # now relative to the prior's mean, like everything below
    _start_at_mode(batch, root, centre, precision, pull)
    m, v, evidence = np.empty((3, len(batch.y)))
    last_m, last_v = np.full((2, len(batch.y)), np.inf)
    step, before = 1.0, np.inf
    for _ in range(SWEEPS):
        belief = _assemble(batch, root, precision, pull)
        _project(batch.rows, root @ belief.theta, belief.root, m, v)
        moved = _largest_move(m, v, last_m, last_v)
        last_m[:], last_v[:] = m, v
        # Full steps nearly always converge, because logistic likelihoods are log-concave. Otherwise shorter ones do.
        if moved > before:
            step = max(0.5 * step, LEAST_STEP)
        before = moved
        _update_sites(batch.y, batch.weight, centre, m, v, step, precision, pull, evidence)
        if moved <= TOLERANCE:
            break
    mean += root @ belief.theta
    covariance[:] = belief.root @ belief.root.T
    fit = 0.5 * float((batch.copies * pull) @ m)
    pull += precision * centre
    return float(batch.copies @ evidence) - 0.5 * belief.log_determinant + fit


def _largest_move(m: Vector, v: Vector, last_m: Vector, last_v: Vector) -> float:
    """Return by how many standard deviations log-odds moved, or by which share their variance changed, at most."""
    known = v > 0
    if not known.any():
        return 0.0
    means = np.abs(m - last_m)[known] / np.sqrt(v[known])
    return float(max(means.max(), (np.abs(v - last_v)[known] / v[known]).max()))


def _start_at_mode(batch: Batch, root: Vector, centre: Vector, precision: Vector, pull: Vector) -> None:
    """Replace the sites by those of an expansion at the mode of the posterior (Laplace), which Newton's steps find.

    From here sweeps converge quickly. From no sites at all they may not, if a confident prior is far from the labels.
    The sites given are only a first guess.
    """
    theta = _assemble(batch, root, precision, pull).theta
    loss = _loss(batch, root, centre, theta)
    nothing = np.zeros(root.shape[1])
    if (prior_loss := _loss(batch, root, centre, nothing)) < loss:
        theta, loss = nothing, prior_loss
    for _ in range(NEWTON_STEPS):
        _sites_at(batch.y, batch.weight, centre, batch.rows @ (root @ theta), precision, pull)
        step = _assemble(batch, root, precision, pull).theta - theta
        while (new := _loss(batch, root, centre, theta + step)) > loss and np.abs(step).max() > 1e-9:
            step *= 0.5
        if loss - new <= CLOSE_TO_MODE:
            return
        theta, loss = theta + step, new


def _loss(batch: Batch, root: Vector, centre: Vector, theta: Vector) -> float:
    """Return the negative logarithm of the posterior density, up to a constant."""
    log_odds = centre + batch.rows @ (root @ theta)
    likelihood = np.logaddexp(0.0, np.where(batch.y > 0.5, -log_odds, log_odds))
    return float((batch.copies * batch.weight) @ likelihood + 0.5 * theta @ theta)


def _root(covariance: Vector) -> Vector:
    """Return L with Σ = LLᵀ; rounding may have made a variance of about 0 negative."""
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)


def _assemble(batch: Batch, root: Vector, precision: Vector, pull: Vector) -> _Belief:
    """Return the belief that the sites make of the prior."""
    size = root.shape[0]
    gram, sums = np.zeros((size, size)), np.zeros(size)
    for first in range(0, len(batch.y), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        scaled = batch.rows[part] * np.sqrt(batch.copies[part] * precision[part])[:, None]
        gram += scaled.T @ scaled
        sums += (batch.copies[part] * pull[part]) @ batch.rows[part]
    inner = root.T @ gram @ root
    inner[np.diag_indices(size)] += 1.0
    factor = np.linalg.cholesky(inner)  # of A, and Σ = L A⁻¹ Lᵀ
    theta = np.linalg.solve(factor.T, np.linalg.solve(factor, root.T @ sums))
    return _Belief(theta, np.linalg.solve(factor, root.T).T, 2.0 * float(np.log(np.diag(factor)).sum()))


def _project(rows: Vector, shift: Vector, root: Vector, m: Vector, v: Vector) -> None:
    """Write the mean and variance of each row's log-odds, relative to the prior's mean."""
    for first in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        m[part] = rows[part] @ shift
        spread = rows[part] @ root
        v[part] = np.einsum("ij,ij->i", spread, spread)


@compiled
def _sites_at(y: Vector, weight: Vector, centre: Vector, at: Vector, precision: Vector, pull: Vector) -> None:
    """Write the sites that match each likelihood in slope and curvature at these log-odds, relative to ``centre``."""
    for i in range(y.size):
        p = sigmoid(centre[i] + at[i])
        precision[i] = weight[i] * p * (1.0 - p)
        pull[i] = weight[i] * (y[i] - p) + precision[i] * at[i]


@compiled
def _update_sites(
    y: Vector,
    weight: Vector,
    centre: Vector,
    m: Vector,
    v: Vector,
    step: float,
    precision: Vector,
    pull: Vector,
    evidence: Vector,
) -> None:
    """Move every site towards the one that its cavity asks for; write each label's part of the evidence.

    ``m`` and ``v`` are moments of the log-odds; they and ``pull`` are relative to ``centre``.
    """
    for i in range(y.size):
        if v[i] <= 1e-14:
            # Rows of zeros teach nothing, but some hypotheses predict them better than others.
            evidence[i] = weight[i] * math.log(sigmoid(centre[i]) if y[i] > 0.5 else sigmoid(-centre[i]))
            continue
        left = 1.0 - precision[i] * v[i]
        variance = v[i] / left
        mean = (m[i] - v[i] * pull[i]) / left
        total, after, spread = tilted(centre[i] + mean, variance, y[i], weight[i])
        ratio = spread / variance
        slope = (after - centre[i] - mean) / variance
        curvature = (1.0 - ratio) / variance
        precision[i] += step * (curvature / ratio - precision[i])
        pull[i] += step * ((slope + mean * curvature) / ratio - pull[i])
        grown = 1.0 + precision[i] * variance
        evidence[i] = (
            math.log(total)
            + 0.5 * math.log(grown)
            - (pull[i] * mean + 0.5 * variance * pull[i] ** 2 - 0.5 * precision[i] * mean**2) / grown
        )

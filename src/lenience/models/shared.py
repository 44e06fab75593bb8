"""A shared prior: all cells draw their success probability from one Beta distribution (empirical Bayes).

The model. p_x ~ Beta(α, β) for every cell x; cell x has n_x labels, s_x of them successes. The marginal likelihood of
all labels is beta-binomial,

    L(α, β) = Σ_x [ log B(α + s_x, β + n_x − s_x) − log B(α, β) ],

and (α, β) = (n₀m, n₀(1 − m)) maximises it together with a weak prior on the population of cells, logit m ~ N(0, 1.1²)
and log n₀ ~ N(log 5, 1). Cells with labels therefore say what to expect of a cell without labels.

What a cell receives. After a few labels m itself is uncertain. A prior that ignored this would close all cells after
the first few failures. So the spread of m around its maximum (Laplace: normal in logit m) counts too: the cell receives
the Beta with mean E m and variance E m(1 − m)/(n₀ + 1) + var m. Without labels this is Beta(1, 1) to within a few per
cent. Newton steps in (logit m, log n₀) find the maximum; a step is halved until it climbs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.compiled import compiled
from lenience.core.validation import real, whole
from lenience.models.protocol import checked_counts
from lenience.models.quadrature import quadrature

STEPS = 60
LOGIT_VARIANCE = 1.1**2
SIZE_CENTRE = math.log(5.0)
SIZE_VARIANCE = 1.0


class Shared:
    """Fit one Beta prior for all cells to the labels of all cells.

    Parameters
    ----------
    cells : int
        Number of cells.
    strongest : float, default 100
        The largest prior size n₀, in labels.

    Examples
    --------
    >>> n0, s0 = Shared(4).priors([50, 50, 50, 0], [45, 40, 42, 0])
    >>> round(float(n0[3]), 1), round(float(s0[3] / n0[3]), 2)  # the fourth cell has no labels of its own
    (8.1, 0.78)
    """

    def __init__(self, cells: int, strongest: float = 100.0) -> None:
        self._cells = whole("cells", cells, least=1)
        self.strongest = real("strongest", strongest, above=0)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self._cells

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the fitted prior, which is the same for all cells.

        Parameters
        ----------
        labels : array_like
            Number of labels of each cell.
        successes : array_like
            Number of successes of each cell.

        Returns
        -------
        n : ndarray
            Prior size n₀ of each cell, at most ``strongest``.
        s : ndarray
            Prior successes s₀ of each cell.

        Examples
        --------
        >>> n0, s0 = Shared(cells=4).priors([100, 100, 100, 0], [78, 80, 82, 0])
        >>> (s0 / n0).round(2), n0.round()
        (array([0.76, 0.76, 0.76, 0.76]), array([11., 11., 11., 11.]))
        """
        n, s = checked_counts(self._cells, labels, successes)
        nodes, weights = quadrature()
        size, good = given_beta(n, s, np.array([0.0, SIZE_CENTRE]), self.strongest, nodes, weights)
        return np.full(self._cells, size), np.full(self._cells, good)

    def __repr__(self) -> str:
        return f"Shared({self._cells}, strongest={self.strongest:g})"


@compiled
def digamma_pair(x: float) -> tuple[float, float]:
    """Return ψ(x) and ψ′(x) for x > 0: the recurrence up to 8, then the asymptotic series (error about 1e-11)."""
    psi = 0.0
    tri = 0.0
    while x < 8.0:
        psi -= 1.0 / x
        tri += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    psi += math.log(x) - 0.5 / x - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    tri += 1.0 / x + 0.5 * r + r / x * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * 5 / 66))))
    return psi, tri


@compiled
def beta_likelihood(n: NDArray[np.float64], s: NDArray[np.float64], u: float, v: float) -> float:
    """Return the penalised marginal log-likelihood at logit m = u, log n₀ = v."""
    size = math.exp(v)
    a = size / (1.0 + math.exp(-u))
    b = size - a
    centre = v - SIZE_CENTRE
    total = -0.5 * u * u / LOGIT_VARIANCE - 0.5 * centre * centre / SIZE_VARIANCE
    base = math.lgamma(size) - math.lgamma(a) - math.lgamma(b)
    for i in range(n.size):
        if n[i] > 0.0:
            total += base + math.lgamma(a + s[i]) + math.lgamma(b + n[i] - s[i]) - math.lgamma(size + n[i])
    return total


@compiled
def fit_beta(n: NDArray[np.float64], s: NDArray[np.float64], peak: NDArray[np.float64]) -> float:
    """Move ``peak`` = (logit m, log n₀) to the maximum of the likelihood, and return the variance of logit m there."""
    u = peak[0]
    v = peak[1]
    height = beta_likelihood(n, s, u, v)
    spread = LOGIT_VARIANCE
    for _ in range(STEPS):
        size = math.exp(v)
        m = 1.0 / (1.0 + math.exp(-u))
        a = size * m
        b = size - a
        psi_a, tri_a = digamma_pair(a)
        psi_b, tri_b = digamma_pair(b)
        psi_n, tri_n = digamma_pair(size)
        # Compute the derivatives of the log-likelihood in α and β.
        ga = 0.0
        gb = 0.0
        haa = 0.0
        hbb = 0.0
        hab = 0.0
        for i in range(n.size):
            if n[i] <= 0.0:
                continue
            pa, ta = digamma_pair(a + s[i])
            pb, tb = digamma_pair(b + n[i] - s[i])
            pn, tn = digamma_pair(size + n[i])
            ga += pa - psi_a + psi_n - pn
            gb += pb - psi_b + psi_n - pn
            haa += ta - tri_a + tri_n - tn
            hbb += tb - tri_b + tri_n - tn
            hab += tri_n - tn
        # Convert them to derivatives in u and v: ∂α/∂u = n₀m(1−m) = −∂β/∂u, ∂α/∂v = α, ∂β/∂v = β.
        w = size * m * (1.0 - m)
        gu = w * (ga - gb) - u / LOGIT_VARIANCE
        gv = a * ga + b * gb - (v - SIZE_CENTRE) / SIZE_VARIANCE
        huu = w * w * (haa - 2.0 * hab + hbb) + w * (1.0 - 2.0 * m) * (ga - gb) - 1.0 / LOGIT_VARIANCE
        hvv = a * a * haa + 2.0 * a * b * hab + b * b * hbb + a * ga + b * gb - 1.0 / SIZE_VARIANCE
        huv = w * (a * haa + (b - a) * hab - b * hbb) + w * (ga - gb)
        determinant = huu * hvv - huv * huv
        if huu < 0.0 and determinant > 0.0:
            spread = -hvv / determinant
            du = -(hvv * gu - huv * gv) / determinant
            dv = -(huu * gv - huv * gu) / determinant
        else:
            # The function is not concave here, so follow the gradient, scaled by the size of the curvature.
            du = gu / (abs(huu) + 1e-9)
            dv = gv / (abs(hvv) + 1e-9)
        largest = max(abs(du), abs(dv))
        if largest > 1.0:
            du /= largest
            dv /= largest
        step = 1.0
        better = False
        for _half in range(30):
            trial = beta_likelihood(n, s, u + step * du, v + step * dv)
            if trial >= height:
                better = True
                break
            step *= 0.5
        if not better:
            break
        gain = trial - height
        u += step * du
        v += step * dv
        height = trial
        if gain < 1e-9 * (1.0 + abs(height)) and step * largest < 1e-5:
            break
    peak[0] = u
    peak[1] = v
    return spread


@compiled
def given_beta(
    n: NDArray[np.float64],
    s: NDArray[np.float64],
    peak: NDArray[np.float64],
    strongest: float,
    nodes: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> tuple[float, float]:
    """Fit from ``peak`` on (in place); return the size and the successes of the Beta that every cell receives."""
    root = math.sqrt(fit_beta(n, s, peak))
    first = 0.0
    second = 0.0
    for q in range(nodes.size):
        m = 1.0 / (1.0 + math.exp(-(peak[0] + root * nodes[q])))
        first += weights[q] * m
        second += weights[q] * m * m
    variance = (first - second) / (math.exp(peak[1]) + 1.0) + second - first * first
    size = min(max(first * (1.0 - first) / variance - 1.0, 0.05), strongest)
    return size, size * first

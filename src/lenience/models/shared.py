"""Shared: the cells' success probabilities are draws from one Beta distribution, fitted to all labels (empirical
Bayes).

The model. p_x ~ Beta(α, β) for every cell x; x's labels are n_x with s_x successes. The labels' marginal likelihood is
the beta-binomial one,

    L(α, β) = Σ_x [ log B(α + s_x, β + n_x − s_x) − log B(α, β) ],

and (α, β) = (n₀m, n₀(1 − m)) maximises it together with a weak belief about the population of cells, logit m ~
N(0, 1.1²) and log n₀ ~ N(log 5, 1). So cells that have been tried say what to expect of one that has not.

What a cell is given. After a few labels m itself is hardly known, and a prior that pretended it were would shut all
cells after the first few failures. So the spread of m around its maximum (Laplace: normal in logit m) counts too: the
cell is given the Beta with mean E m and variance E m(1 − m)/(n₀ + 1) + var m. Without labels that is Beta(1.0, 1.0) to
a few per cent. The maximum is found by Newton steps in (logit m, log n₀), halved until they climb.
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
    """One Beta prior for all cells, fitted to their labels.

    >>> n0, s0 = Shared(4).priors([50, 50, 50, 0], [45, 40, 42, 0])
    >>> round(float(n0[3]), 1), round(float(s0[3] / n0[3]), 2)  # the fourth cell has no labels of its own
    (8.1, 0.78)
    """

    def __init__(self, cells: int, strongest: float = 100.0) -> None:
        self._cells = whole("cells", cells, least=1)
        self.strongest = real("strongest", strongest, above=0)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self._cells

    def priors(self, labels: ArrayLike, successes: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The fitted Beta, the same for all cells; its size is at most ``strongest``."""
        n, s = checked_counts(self._cells, labels, successes)
        nodes, weights = quadrature()
        size, good = given_beta(n, s, np.array([0.0, SIZE_CENTRE]), self.strongest, nodes, weights)
        return np.full(self._cells, size), np.full(self._cells, good)

    def __repr__(self) -> str:
        return f"Shared({self._cells}, strongest={self.strongest:g})"


@compiled
def digamma_pair(x: float) -> tuple[float, float]:
    """ψ(x) and ψ′(x) for x > 0: the recurrence up to 8, then the asymptotic series (to about 1e-11)."""
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
    """The penalised marginal log-likelihood at logit m = u, log n₀ = v."""
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
def fit_beta(n: NDArray[np.float64], s: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    """Climb from ``found`` = (logit m, log n₀) to the maximum, in place; returns the variance of logit m there."""
    u = found[0]
    v = found[1]
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
        # Derivatives of the likelihood in α and β.
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
        # To u and v: ∂α/∂u = n₀m(1−m) = −∂β/∂u, ∂α/∂v = α, ∂β/∂v = β.
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
            # Not concave here: climb along the gradient, scaled by what curvature there is.
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
    found[0] = u
    found[1] = v
    return spread


@compiled
def given_beta(
    n: NDArray[np.float64],
    s: NDArray[np.float64],
    found: NDArray[np.float64],
    strongest: float,
    nodes: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> tuple[float, float]:
    """Fit from ``found`` on (in place); the size and the successes of the Beta that every cell is given."""
    root = math.sqrt(fit_beta(n, s, found))
    first = 0.0
    second = 0.0
    for q in range(nodes.size):
        m = 1.0 / (1.0 + math.exp(-(found[0] + root * nodes[q])))
        first += weights[q] * m
        second += weights[q] * m * m
    variance = (first - second) / (math.exp(found[1]) + 1.0) + second - first * first
    size = min(max(first * (1.0 - first) / variance - 1.0, 0.05), strongest)
    return size, size * first

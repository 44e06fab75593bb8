"""The loss from keeping a policy after the discount or the belief has changed: when to solve again.

Let π′ be optimal for the discount γ′ and the belief b′, and let γ and b be right. Write x = 1/(1 − γ) for the
discounted number of individuals (including the current one) and G = E_{b′}(p − c)⁺ for what knowing p gains per
individual. Then

    V*_{γ,b} − V^{π′}_{γ,b}  ≤  G |x − x′|  +  x ∫ |p − c| |b(p) − b′(p)| dp.

Proof. A policy sees only outcomes, so its value is ∫ v_π(p) b(p) dp with v_π(p) = (p − c) τ_π(p), where τ_π(p), the
expected discounted number accepted, lies in [0, x].

The belief. With π* optimal for (γ, b), ∫ (v_π* − v_π′) b = ∫ (v_π* − v_π′)(b − b′) + (V^π* − V^π′)_{γ,b′}. In the
first term |v_π* − v_π′| = |p − c| |τ_π* − τ_π′| ≤ |p − c| x. The second is at most V*_{γ,b′} − V^π′_{γ,b′}: the belief
is now b′ in both.

The discount, γ < γ′. V* does not fall as γ rises (the recursion V = max(p̂ − c + γ E V, 0) is monotone in γ, as V ≥
0), so V*_γ − V^π′_γ ≤ V*_γ′ − V^π′_γ = E Σ_k (γ′^k − γ^k)(p̂_k − c) 1(accepting at k). Since p̂_k − c ≤ E[(p − c)⁺ |
what was seen], the sum is at most G Σ_k (γ′^k − γ^k) = G (x′ − x).

The discount, γ > γ′. W = V^π′_γ′ ≥ 0, as π′ is optimal there. The operator T_γ W = 1(π′ accepts)(p̂ − c + γ E W)
satisfies T_γ W ≥ T_γ′ W = W because E W ≥ 0, so iterating it gives V^π′_γ ≥ V^π′_γ′ = V*_γ′. And V*_γ ≤ V*_γ′ + G (x −
x′), as in the case before with the optimal policy of γ. Together V*_γ − V^π′_γ ≤ G (x − x′). ∎

In words: a share that is wrong by 1% costs at most 1% of what knowing p would earn in the segment (G x). The optimum is
flat, so the true loss is of second order and far smaller, but only the bound is guaranteed. The integral needs no
quadrature. The two densities cross at most twice, because their log ratio Δα log p + Δβ log(1 − p) + const has one
extremum. Between crossings and c the integral is a sum of incomplete Beta functions.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.errors import InputError
from lenience.objectives.discounted import Discounted
from lenience.solvers.stopping.clairvoyant import gain_of_knowing

HALVINGS = 60


def loss_of_keeping(solved: Discounted, solved_belief: Belief, right: Discounted, right_belief: Belief) -> float:
    """Return a bound of what is lost by following for ever the policy of another discount and belief.

    Both objectives must have the same cost.

    Parameters
    ----------
    solved : Discounted
        The objective that the policy was solved for.
    solved_belief : Belief
        The belief that the policy was solved for.
    right : Discounted
        The objective that is right.
    right_belief : Belief
        The belief that is right.

    Returns
    -------
    float
        The bound, in units of reward, as of the segment's next member. In the same units, knowing p would earn
        E(p − c)⁺ / (1 − discount).

    Raises
    ------
    InputError
        If an objective is not a Discounted one.

    Examples
    --------
    >>> round(loss_of_keeping(Discounted(0.8, 0.99), Belief(2, 1), Discounted(0.8, 0.9901), Belief(2, 1)), 4)
    0.0202
    """
    for field, objective in (("solved", solved), ("right", right)):
        if not getattr(objective, "stationary", False):
            raise InputError(field, objective, "a Discounted objective")
    check_prior(solved_belief, "solved_belief")
    check_prior(right_belief, "right_belief")
    keep = losses_of_keeping(
        [solved.discount],
        [solved_belief.n],
        [solved_belief.s],
        [right.discount],
        [right_belief.n],
        [right_belief.s],
        right.cost,
    )
    return float(keep[0])


def losses_of_keeping(
    solved_discount: ArrayLike,
    solved_n: ArrayLike,
    solved_s: ArrayLike,
    right_discount: ArrayLike,
    right_n: ArrayLike,
    right_s: ArrayLike,
    cost: ArrayLike,
) -> NDArray[np.float64]:
    """Return the same bound for many segments at once."""
    old_x = 1.0 / (1.0 - np.asarray(solved_discount, dtype=np.float64))
    new_x = 1.0 / (1.0 - np.asarray(right_discount, dtype=np.float64))
    n, s = np.asarray(solved_n, dtype=np.float64), np.asarray(solved_s, dtype=np.float64)
    gain = gains_of_knowing(n, s, cost)
    return gain * np.abs(new_x - old_x) + new_x * belief_distance(right_n, right_s, n, s, cost)


def belief_distance(
    n: ArrayLike, s: ArrayLike, other_n: ArrayLike, other_s: ArrayLike, cost: ArrayLike
) -> NDArray[np.float64]:
    """Return ∫ |p − c| |b(p) − b′(p)| dp for Beta beliefs b and b′, for arrays that broadcast together.

    >>> belief_distance(2, 1, 2, 1, 0.8)
    array(0.)
    >>> float(belief_distance(2, 1, 2, 2, 0.5))  # a uniform belief against the certainty of success
    0.75
    """
    size, good, size2, good2, c = np.broadcast_arrays(
        *(np.asarray(part, dtype=np.float64) for part in (n, s, other_n, other_s, cost))
    )
    a, b, a2, b2 = good, size - good, good2, size2 - good2
    same = (a == a2) & (b == b2)
    open_ = (a > 0) & (b > 0) & (a2 > 0) & (b2 > 0)
    # A certain belief has no density. The integral is then the sum of E|p − c| of both beliefs.
    apart = _mean_distance(size, good, c) + _mean_distance(size2, good2, c)
    safe = [np.where(open_, part, 1.0) for part in (a, b, a2, b2)]
    low, high = _crossings(*safe)
    cuts = np.sort(np.stack([np.zeros_like(c), low, high, c, np.ones_like(c)]), axis=0)
    pieces = [
        np.abs(_moment(safe[0], safe[1], c, u, v) - _moment(safe[2], safe[3], c, u, v)) for u, v in pairwise(cuts)
    ]
    return np.where(same, 0.0, np.where(open_, np.minimum(sum(pieces), apart), apart))


def gains_of_knowing(n: ArrayLike, s: ArrayLike, cost: ArrayLike) -> NDArray[np.float64]:
    """Return E(p − c)⁺ for beliefs (n, s) whose costs may differ."""
    sizes, good, c = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (n, s, cost)))
    return np.asarray(gain_of_knowing(sizes, good, c))  # type: ignore[call-overload]


def _moment(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    c: NDArray[np.float64],
    u: NDArray[np.float64],
    v: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return ∫ (p − c) b(p) dp from u to v under Beta(a, b)."""
    from scipy.special import betainc

    mean = a / (a + b)
    first = mean * (betainc(a + 1, b, v) - betainc(a + 1, b, u))
    return np.asarray(first - c * (betainc(a, b, v) - betainc(a, b, u)))


def _mean_distance(n: NDArray[np.float64], s: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return E|p − c| = 2 E(p − c)⁺ − (p̂ − c)."""
    gain = gains_of_knowing(n, s, c)
    return 2.0 * gain - (s / n - c)


def _crossings(
    a: NDArray[np.float64], b: NDArray[np.float64], a2: NDArray[np.float64], b2: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where the densities of Beta(a, b) and Beta(a2, b2) cross: at most once on either side of the extremum.

    In the logit t of p the log ratio's derivative in t is Δα (1 − p) − Δβ p, so the extremum is at p = Δα/(Δα + Δβ)
    where that lies inside (0, 1). Otherwise the ratio is monotone, and both brackets hold the same crossing or none.
    """
    from scipy.special import betaln, expit

    da, db = a - a2, b - b2
    constant = betaln(a2, b2) - betaln(a, b)
    total = da + db
    inside = da * db > 0
    peak = np.where(inside, da / np.where(total == 0, 1.0, total), 0.5)
    middle = np.where(inside, np.log(np.maximum(peak, 1e-300)) - np.log1p(-np.minimum(peak, 1 - 1e-16)), 0.0)
    far = 700.0

    def ratio(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(constant - da * np.logaddexp(0.0, -t) - db * np.logaddexp(0.0, t))

    def bisect(start: NDArray[np.float64], stop: NDArray[np.float64]) -> NDArray[np.float64]:
        sign = ratio(start) > 0
        for _ in range(HALVINGS):
            half = 0.5 * (start + stop)
            left = (ratio(half) > 0) == sign
            start, stop = np.where(left, half, start), np.where(left, stop, half)
        return 0.5 * (start + stop)

    left_end = np.full_like(middle, -far)
    right_end = np.full_like(middle, far)
    low = bisect(left_end, np.where(inside, middle, far))
    high = bisect(np.where(inside, middle, left_end), right_end)
    return np.asarray(expit(low)), np.asarray(expit(high))

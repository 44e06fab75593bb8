"""check_policy: a checklist that every policy must pass, including your own.

A policy that passes can be evaluated exactly, simulated, stored and served. The check uses the beliefs that follow from
the policy's prior, or from Beta(1, 1) if it has none.

Policies that look at the offer have checks of their own. Their acceptance need not rise with the success rate: a tiny
offer may be accepted where a label is worth much, and rejected where more is known. But at one belief a better offer is
never accepted less. Below the break-even, a smaller amount is a better offer; so is a lower break-even at the same
amount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.offers import Offer, Offers
from lenience.core.protocols import Accepts, OfferRule, acceptance_at, looks_at_pending
from lenience.core.validation import having, whole
from lenience.policies.registry import policy_from_json

AMOUNTS = (0.01, 1.0, 100.0)  # of the offers to check, in units of the policy's own mean amount
COSTS = (0.3, 0.5, 0.8)  # break-evens to check a policy at that has none of its own


class PolicyError(AssertionError):
    """Report a policy that fails a check of :func:`lenience.check_policy`."""


def check_policy(policy: Accepts | OfferRule, prior: Belief | None = None, rows: int = 40) -> list[str]:
    """Check that a policy does what every policy must do.

    Parameters
    ----------
    policy : Accepts or OfferRule
        The policy: any object with an ``acceptance(n, s)`` method, or with an ``offer_acceptance(n, s, offers)``.
    prior : Belief, optional
        The belief to start from; by default the policy's prior, or Beta(1, 1).
    rows : int
        The number of belief sizes to check, starting with the prior's.

    Returns
    -------
    list of str
        The names of the checks that apply to this policy, all of which it passed.

    Raises
    ------
    PolicyError
        If the policy fails a check; the message says what a policy must do instead.

    Examples
    --------
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> check_policy(Greedy(cost=0.8))
    ['probabilities', 'shapes', 'no state', 'JSON', 'repr', 'monotone', 'two values', 'stopping']

    A policy that looks at the offer:

    >>> from lenience.policies.beliefs.offer_baselines import GreedyOffers
    >>> check_policy(GreedyOffers())
    ['probabilities', 'no state', 'better offers', 'JSON', 'repr']
    """
    given = prior or getattr(policy, "prior", None) or Belief(2, 1)
    start = check_prior(given.beliefs[0] if isinstance(given, MixtureBelief) else given)
    if isinstance(policy, OfferRule) and not hasattr(policy, "acceptance"):
        return _check_offers(policy, start, whole("rows", rows, least=1))
    having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    plain: Any = policy
    return _check_plain(plain, start, whole("rows", rows, least=1))


def _check_plain(policy: Accepts, start: Belief, rows: int) -> list[str]:
    """Run the checks of a policy that does not look at the offer."""
    n, s = _lattice(start, rows)
    done: list[str] = []
    for name, check in CHECKS.items():
        try:
            if check(policy, n, s):
                done.append(name)
        except PolicyError:
            raise
        except Exception as error:  # A user's policy may raise anything.
            raise PolicyError(f"The check {name!r} fails with {_named(error)}") from error
    return done


def _named(error: Exception) -> str:
    """Return the class and the message of an error."""
    return f"{type(error).__name__}: {error}"


def _lattice(start: Belief, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return n and s of all beliefs in the first rows after a start."""
    k = np.concatenate([np.full(row + 1, row) for row in range(rows)])
    j = np.concatenate([np.arange(row + 1) for row in range(rows)])
    return start.n + k, start.s + j.astype(np.float64)


def _acceptance(policy: Accepts, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
    """Call the policy and turn any error into a PolicyError."""
    try:
        return np.asarray(acceptance_at(policy, n, s, pending))
    except Exception as error:  # A user's policy may raise anything.
        given = "one n and one s" if np.ndim(n) == np.ndim(s) == 0 else "arrays of n and s"
        raise PolicyError(f"acceptance must accept {given}, but it raises {_named(error)}") from error


def _require(condition: bool, sentence: str) -> None:
    """Raise a PolicyError with this sentence unless the condition holds."""
    if not condition:
        raise PolicyError(sentence)


def _probabilities(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check that acceptance returns probabilities as float64."""
    chance = _acceptance(policy, n, s)
    _require(chance.dtype == np.float64, f"acceptance must return float64, not {chance.dtype}")
    _require(bool(np.all((chance >= 0) & (chance <= 1))), "acceptance must be a probability from 0 to 1 everywhere")
    return True


def _shapes(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check that acceptance takes numbers and arrays, and broadcasts."""
    flat = _acceptance(policy, n, s)
    square = _acceptance(policy, n.reshape(1, -1), s.reshape(1, -1))
    _require(square.shape == (1, n.size), "acceptance must keep the shape of its arguments")
    _require(np.array_equal(square[0], flat), "acceptance must not depend on the shape of its arguments")
    for i in range(0, n.size, 7):
        single = _acceptance(policy, float(n[i]), float(s[i]))
        _require(single.shape == (), "acceptance at one belief must be one number")
        _require(float(single) == flat[i], f"acceptance at {(n[i], s[i])} must be the same alone and in an array")
    row = n == n[-1]
    _require(
        np.array_equal(_acceptance(policy, float(n[-1]), s[row]), flat[row]), "acceptance must broadcast n against s"
    )
    _require(_acceptance(policy, n[:0], s[:0]).shape == (0,), "acceptance of an empty array must be an empty array")
    return True


def _no_state(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check that a call changes neither the given arrays nor later answers."""
    sizes, successes = n.copy(), s.copy()
    first = _acceptance(policy, sizes, successes)
    _require(
        np.array_equal(sizes, n) and np.array_equal(successes, s), "acceptance must not change the arrays it is given"
    )
    _require(
        np.array_equal(_acceptance(policy, n[::-1], s[::-1])[::-1], first), "acceptance must depend on the belief only"
    )
    return True


def _json(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check that the policy can be written as JSON and read again."""
    writer: Any = policy
    if not hasattr(policy, "to_json"):
        raise PolicyError(
            "the policy must have a to_json method, and its class a from_json method, to be stored and served"
        )
    text = writer.to_json()
    read = getattr(type(policy), "from_json", policy_from_json)  # A user's class has its own from_json.
    try:
        again = read(text)
    except Exception as error:  # A user's from_json may raise anything.
        raise PolicyError(
            f"policy_from_json, or the from_json of the class, must read what to_json writes: {error}"
        ) from error
    _require(type(again) is type(policy), "a policy read from its JSON must have the same class")
    _require(again.to_json() == text, "a policy read from its JSON must write the same JSON")
    _require(
        np.array_equal(_acceptance(again, n, s), _acceptance(policy, n, s)),
        "a policy read from its JSON must make the same decisions",
    )
    return True


def _repr(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check that repr is stable and begins with the name of the class."""
    text = repr(policy)
    _require(
        text == repr(policy) and " at 0x" not in text, "repr must be the same each time and contain no memory address"
    )
    _require(text.startswith(type(policy).__name__), "repr must begin with the name of the class")
    return True


def _monotone(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check, for policies marked ``monotone``, that more successes at the same n never make acceptance less likely."""
    if not getattr(policy, "monotone", False):
        return False
    chance = _acceptance(policy, n, s)
    same_row = np.diff(n) == 0
    _require(
        bool(np.all(np.diff(chance)[same_row] >= 0)),
        "acceptance must not fall with s, because the policy is marked monotone",
    )
    return True


def _two_values(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check, for policies marked ``two_valued``, that acceptance takes at most two values at each n."""
    if not getattr(policy, "two_valued", False):
        return False
    chance = _acceptance(policy, n, s)
    for size in np.unique(n):
        values = np.unique(chance[n == size]).size
        _require(values <= 2, f"acceptance must take at most two values per n, not {values} at n = {size:g}")
    return True


def _stopping(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """Check the rates above which the policy claims never to stop, and at or below which it claims to have stopped."""
    if looks_at_pending(policy) or not hasattr(policy, "stop_ceiling"):
        return False
    chance, rate = _acceptance(policy, n, s), s / n
    promises: Any = policy
    _require(hasattr(policy, "stop_floor"), "a policy with a stop_ceiling must also have a stop_floor(n)")
    above = rate > promises.stop_ceiling
    _require(bool(np.all(chance[above] > 0)), "the policy must accept above its stop_ceiling")
    for size in np.unique(n):
        below = (n >= size) & (rate <= promises.stop_floor(float(size)))
        _require(bool(np.all(chance[below] == 0)), f"the policy must have stopped at or below stop_floor({size:g})")
    return True


CHECKS: Mapping[str, Callable[[Accepts, NDArray[np.float64], NDArray[np.float64]], bool]] = {
    "probabilities": _probabilities,
    "shapes": _shapes,
    "no state": _no_state,
    "JSON": _json,
    "repr": _repr,
    "monotone": _monotone,
    "two values": _two_values,
    "stopping": _stopping,
}


def _check_offers(policy: OfferRule, start: Belief, rows: int) -> list[str]:
    """Run the checks of a policy that looks at the offer; return the names of those that apply."""
    if hasattr(policy, "limit"):
        rows = min(rows, 4)  # with late labels every belief needs its own solve
    rows = min(rows, getattr(policy, "horizon", None) or rows)
    offers = _offers_to_check(policy)
    done = []
    for name, check in OFFER_CHECKS.items():
        try:
            if check(policy, start, rows, offers):
                done.append(name)
        except PolicyError:
            raise
        except Exception as error:  # A user's policy may raise anything.
            raise PolicyError(f"The check {name!r} fails with {_named(error)}") from error
    return done


def _offers_to_check(policy: OfferRule) -> Offers:
    """Return offers of several amounts at each break-even that the policy knows; ordered by break-even, then amount."""
    own: Offers | None = getattr(policy, "offers", None)
    costs = sorted(set(own.cost)) if own is not None else list(COSTS)
    unit = own.mean_amount if own is not None else 1.0
    pairs = [(unit * amount, cost) for cost in costs for amount in AMOUNTS]
    return Offers([amount for amount, _ in pairs], [cost for _, cost in pairs])


def _row(start: Belief, k: int) -> tuple[float, NDArray[np.float64]]:
    """Return n and all s after k outcomes."""
    return start.n + k, start.s + np.arange(k + 1.0)


def _probabilities_with_offers(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check that offer_acceptance returns probabilities: a line for each belief and a column for each offer."""
    for k in range(rows):
        n, s = _row(start, k)
        chance = policy.offer_acceptance(n, s, offers)
        _require(isinstance(chance, np.ndarray) and chance.dtype == np.float64, "offer_acceptance must return float64")
        wanted = (s.size, len(offers.amount))
        _require(chance.shape == wanted, f"offer_acceptance must have the shape {wanted}, not {chance.shape}")
        _require(bool(np.all((chance >= 0) & (chance <= 1))), "offer_acceptance must be a probability from 0 to 1")
    return True


def _no_state_with_offers(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check that an answer depends only on the belief and the offer, and not on what is asked beside or before it."""
    n, s = _row(start, rows - 1)
    given = s.copy()
    first = policy.offer_acceptance(n, given, offers)
    _require(np.array_equal(given, s), "offer_acceptance must not change the array it is given")
    turned = policy.offer_acceptance(n, s[::-1].copy(), offers)[::-1]
    _require(np.array_equal(turned, first), "offer_acceptance must depend on the belief and the offer only")
    for i in range(0, s.size, 7):
        alone = policy.offer_acceptance(n, s[i : i + 1], offers)[0]
        _require(np.array_equal(alone, first[i]), "a belief must be decided the same alone and beside others")
    for o in range(len(offers.amount)):
        single = policy.offer_acceptance(n, s, Offers((offers.amount[o],), (offers.cost[o],)))[:, 0]
        _require(np.array_equal(single, first[:, o]), "an offer must be decided the same alone and beside others")
    return True


def _better_offers(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check that no better offer is accepted less at the same belief."""
    amount, cost = np.array(offers.amount), np.array(offers.cost)
    for k in range(rows):
        n, s = _row(start, k)
        chance = policy.offer_acceptance(n, s, offers)
        rate = s / n
        for i in range(amount.size):
            for j in range(amount.size):
                if cost[i] == cost[j] and amount[i] < amount[j]:
                    below = rate < cost[i]
                    _require(
                        bool(np.all(chance[below, i] >= chance[below, j])),
                        "below the break-even, a smaller amount must be accepted wherever a larger one is",
                    )
                if amount[i] == amount[j] and cost[i] < cost[j]:
                    _require(
                        bool(np.all(chance[:, i] >= chance[:, j])),
                        "at the same amount, a lower break-even must be accepted wherever a higher one is",
                    )
    return True


def _decisions(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check, for policies with a ``decide``, that its answers agree with offer_acceptance and with each other."""
    decider: Any = policy
    if not hasattr(policy, "decide"):
        return False
    ask = [Offer(a, c) for a, c in zip(offers.amount, offers.cost, strict=True)]
    for k in range(0, rows, 3):
        n, s = _row(start, k)
        chance = policy.offer_acceptance(n, s, offers)
        for i in range(0, s.size, 4):
            belief = Belief(n, float(s[i]))
            for o, offer in enumerate(ask):
                decision = decider.decide(belief, offer)
                label = decision.label_value
                _require(0.0 <= label.lower <= label.upper, "bounds of a label's value must be in order, from 0 on")
                _require(decision.offer == offer, "a decision on one offer must name this offer")
                _require(
                    decision.expected_profit == offer.expected_profit(belief.mean),
                    "expected_profit must be the amount times the success rate less the break-even",
                )
                _require(decision.accepted == (chance[i, o] > 0.5), "decide must agree with offer_acceptance")
                _require(decider.accepts(belief, offer) == decision.accepted, "accepts must agree with decide")
                sure = decision.expected_profit + label.lower > 0.0 or decision.expected_profit + label.upper <= 0.0
                _require(not decision.proved or sure, "a decision is proved only if both bounds of the label agree")
            best = decider.decide(belief, ask)
            most = max(one.expected_profit(belief.mean) for one in ask)
            _require(best.expected_profit == most, "the offer made from a menu must have the largest expected profit")
    return True


def _largest_amounts(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check, for policies with a ``largest_amount``, that smaller amounts are accepted and larger ones are not."""
    decider: Any = policy
    if not hasattr(policy, "largest_amount"):
        return False
    for k in range(0, rows, 5):
        n, s = _row(start, k)
        for good in s[::3].tolist():
            belief = Belief(n, good)
            for cost in sorted(set(offers.cost)):
                most = decider.largest_amount(belief, cost)
                if np.isinf(most):
                    _require(belief.mean >= cost, "only a success rate above the break-even has no largest amount")
                elif most > 0.0:
                    _require(decider.accepts(belief, Offer(0.999 * most, cost)), "smaller amounts must be accepted")
                    _require(not decider.accepts(belief, Offer(1.001 * most, cost)), "larger amounts must be rejected")
    return True


def _values(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check, for policies with a ``value``, that its bounds are in order and not below 0."""
    if not hasattr(policy, "value"):
        return False
    owner: Any = policy
    for belief in (start, Belief(start.n + rows - 1, start.s + rows - 1)):
        bounds = owner.value(belief)
        _require(0.0 <= bounds.lower <= bounds.upper, "bounds of the value must be in order, from 0 on")
    return True


def _json_with_offers(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check, for policies with a ``to_json``, that it can be read again."""
    writer: Any = policy
    if not hasattr(policy, "to_json"):
        return False
    text = writer.to_json()
    read = getattr(type(policy), "from_json", policy_from_json)  # A user's class has its own from_json.
    again: Any = read(text)
    _require(type(again) is type(policy), "a policy read from its JSON must have the same class")
    _require(again.to_json() == text, "a policy read from its JSON must write the same JSON")
    for k in range(rows):
        n, s = _row(start, k)
        same = np.array_equal(again.offer_acceptance(n, s, offers), policy.offer_acceptance(n, s, offers))
        _require(same, "a policy read from its JSON must make the same decisions")
    return True


def _repr_with_offers(policy: OfferRule, start: Belief, rows: int, offers: Offers) -> bool:
    """Check that repr is stable and begins with the name of the class."""
    text = repr(policy)
    _require(text == repr(policy) and " at 0x" not in text, "repr must be the same each time, without a memory address")
    _require(text.startswith(type(policy).__name__), "repr must begin with the name of the class")
    return True


OFFER_CHECKS: Mapping[str, Callable[[OfferRule, Belief, int, Offers], bool]] = {
    "probabilities": _probabilities_with_offers,
    "no state": _no_state_with_offers,
    "better offers": _better_offers,
    "decisions": _decisions,
    "largest amounts": _largest_amounts,
    "values": _values,
    "JSON": _json_with_offers,
    "repr": _repr_with_offers,
}

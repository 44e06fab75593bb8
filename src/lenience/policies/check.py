"""check_policy: the checklist that every policy passes, ours and anyone's.

A policy that passes can be evaluated exactly, simulated, stored and served. The beliefs tried are those of the policy's
own lattice where it has a prior, and of Beta(1, 1) otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief, check_prior
from lenience.core.protocols import Accepts, acceptance_at, looks_at_pending
from lenience.core.validation import having, whole
from lenience.policies.registry import policy_from_json


class PolicyError(AssertionError):
    """A policy that does not do what every policy must."""


def check_policy(policy: Accepts, prior: Belief | None = None, rows: int = 40) -> list[str]:
    """Hold a policy to the checklist over the first ``rows`` belief sizes; return what was checked.

    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> check_policy(Greedy(cost=0.8))
    ['probabilities', 'shapes', 'no state', 'JSON', 'repr', 'monotone', 'two values', 'stopping']
    """
    having("policy", policy, "acceptance", "a policy, such as Greedy(cost=0.8)")
    start = check_prior(prior or getattr(policy, "prior", None) or Belief(2, 1))
    n, s = _lattice(start, whole("rows", rows, least=1))
    done: list[str] = []
    for name, check in CHECKS.items():
        try:
            if check(policy, n, s):
                done.append(name)
        except PolicyError:
            raise
        except Exception as error:  # whatever a policy of one's own may raise
            raise PolicyError(f"the policy must pass {name!r}, and fails with {_named(error)}") from error
    return done


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _lattice(start: Belief, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    k = np.concatenate([np.full(row + 1, row) for row in range(rows)])
    j = np.concatenate([np.arange(row + 1) for row in range(rows)])
    return start.n + k, start.s + j.astype(np.float64)


def _ask(policy: Accepts, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
    try:
        return np.asarray(acceptance_at(policy, n, s, pending))
    except Exception as error:  # whatever a policy of one's own may raise
        given = "one n and one s" if np.ndim(n) == np.ndim(s) == 0 else "arrays of n and s"
        raise PolicyError(f"acceptance must take {given}, and fails on them with {_named(error)}") from error


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise PolicyError(sentence)


def _probabilities(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    chance = _ask(policy, n, s)
    _require(chance.dtype == np.float64, f"acceptance must return float64, not {chance.dtype}")
    _require(bool(np.all((chance >= 0) & (chance <= 1))), "acceptance must be a probability from 0 to 1 everywhere")
    return True


def _shapes(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    flat = _ask(policy, n, s)
    square = _ask(policy, n.reshape(1, -1), s.reshape(1, -1))
    _require(square.shape == (1, n.size), "acceptance must keep the shape of its arguments")
    _require(np.array_equal(square[0], flat), "acceptance must not depend on the shape of its arguments")
    for i in range(0, n.size, 7):
        one = _ask(policy, float(n[i]), float(s[i]))
        _require(one.shape == (), "acceptance at one belief must be one number")
        _require(float(one) == flat[i], f"acceptance at {(n[i], s[i])} must be the same alone and in an array")
    row = n == n[-1]
    _require(np.array_equal(_ask(policy, float(n[-1]), s[row]), flat[row]), "acceptance must broadcast n against s")
    _require(_ask(policy, n[:0], s[:0]).shape == (0,), "acceptance of no beliefs must be empty")
    return True


def _no_state(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """A rejection changes no belief: neither the arrays given nor the answer to the same question asked again."""
    sizes, successes = n.copy(), s.copy()
    first = _ask(policy, sizes, successes)
    _require(np.array_equal(sizes, n) and np.array_equal(successes, s), "acceptance must not change the beliefs given")
    _require(np.array_equal(_ask(policy, n[::-1], s[::-1])[::-1], first), "acceptance must depend on the belief alone")
    return True


def _json(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    writer: Any = policy
    if not hasattr(policy, "to_json"):
        raise PolicyError("the policy must have a to_json, and its class a from_json, to be stored and served")
    text = writer.to_json()
    read = getattr(type(policy), "from_json", policy_from_json)  # a class of one's own brings its reader
    try:
        again = read(text)
    except Exception as error:  # whatever a reader of one's own may raise
        raise PolicyError(
            f"policy_from_json, or the from_json of the class, must read what to_json writes: {error}"
        ) from error
    _require(type(again) is type(policy), "JSON must keep the kind of policy")
    _require(again.to_json() == text, "JSON must be the same after a round trip")
    _require(np.array_equal(_ask(again, n, s), _ask(policy, n, s)), "JSON must keep every decision")
    return True


def _repr(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    text = repr(policy)
    _require(text == repr(policy) and " at 0x" not in text, "repr must be the same each time and name no address")
    _require(text.startswith(type(policy).__name__), "repr must begin with the name of the class")
    return True


def _monotone(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """More successes of as many never make acceptance less likely, where the policy says so."""
    if not getattr(policy, "monotone", False):
        return False
    chance = _ask(policy, n, s)
    same_row = np.diff(n) == 0
    _require(bool(np.all(np.diff(chance)[same_row] >= 0)), "acceptance must not fall with s: the policy says monotone")
    return True


def _two_values(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    if not getattr(policy, "two_valued", False):
        return False
    chance = _ask(policy, n, s)
    for size in np.unique(n):
        values = np.unique(chance[n == size]).size
        _require(values <= 2, f"acceptance must take two values a row: it takes {values} at n = {size:g}")
    return True


def _stopping(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    """The rates above which, and at or below which, the policy says that it never stops, or has stopped."""
    if looks_at_pending(policy) or not hasattr(policy, "stop_ceiling"):
        return False
    chance, rate = _ask(policy, n, s), s / n
    promises: Any = policy
    _require(hasattr(policy, "stop_floor"), "a policy that has a stop_ceiling must have a stop_floor(n) too")
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

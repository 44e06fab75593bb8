"""check_policy: a checklist that every policy must pass, including your own.

A policy that passes can be evaluated exactly, simulated, stored and served. The check uses the beliefs that follow from
the policy's prior, or from Beta(1, 1) if it has none.
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
    """Report a policy that fails a check of :func:`lenience.check_policy`."""


def check_policy(policy: Accepts, prior: Belief | None = None, rows: int = 40) -> list[str]:
    """Check that a policy does what every policy must do.

    Parameters
    ----------
    policy : Accepts
        The policy: any object with an ``acceptance(n, s)`` method.
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
        except Exception as error:  # A user's policy may raise anything.
            raise PolicyError(f"The check {name!r} fails with {_named(error)}") from error
    return done


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _lattice(start: Belief, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    k = np.concatenate([np.full(row + 1, row) for row in range(rows)])
    j = np.concatenate([np.arange(row + 1) for row in range(rows)])
    return start.n + k, start.s + j.astype(np.float64)


def _acceptance(policy: Accepts, n: ArrayLike, s: ArrayLike, pending: ArrayLike = 0) -> NDArray[np.float64]:
    try:
        return np.asarray(acceptance_at(policy, n, s, pending))
    except Exception as error:  # A user's policy may raise anything.
        given = "one n and one s" if np.ndim(n) == np.ndim(s) == 0 else "arrays of n and s"
        raise PolicyError(f"acceptance must accept {given}, but it raises {_named(error)}") from error


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise PolicyError(sentence)


def _probabilities(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
    chance = _acceptance(policy, n, s)
    _require(chance.dtype == np.float64, f"acceptance must return float64, not {chance.dtype}")
    _require(bool(np.all((chance >= 0) & (chance <= 1))), "acceptance must be a probability from 0 to 1 everywhere")
    return True


def _shapes(policy: Accepts, n: NDArray[np.float64], s: NDArray[np.float64]) -> bool:
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

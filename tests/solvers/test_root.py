"""The enclosure of a root of a function that is known only within bounds."""

from __future__ import annotations

import math
import random

import pytest

from lenience import Bounds
from lenience.solvers.stopping.root import enclose_root


def test_the_root_is_enclosed_however_the_function_is_uncertain() -> None:
    """The function rises by at least as much as its argument. Its bounds are as unfair as they may be."""
    draws = random.Random(7)
    for _ in range(300):
        root, slope, below, above = (
            draws.random(),
            draws.choice([1.0, 1.0, 3.0, 500.0]),
            *(draws.choice([0.0, 1e-9, 1e-3, 0.05]) for _ in range(2)),
        )

        def function(
            x: float, root: float = root, slope: float = slope, less: float = below, more: float = above
        ) -> Bounds:
            exact = slope * (x - root)
            return Bounds(exact - less, exact + more)

        guess = draws.choice([0.0, 1.0, root, draws.random(), root + 0.01, root - 0.01])
        found = enclose_root(function, 0.0, 1.0, guess, 1e-12, draws.choice([math.inf, 0.01]))
        assert found.lower <= root <= found.upper
        assert 0.0 <= found.lower <= found.upper <= 1.0
        assert found.width <= below + above + 2e-12
        if slope == 1.0 and below > 0.0 and above > 0.0 and 0.1 < root < 0.9:
            # No root that the bounds allow is left out.
            assert found.width >= 0.9 * min(below, above)


@pytest.mark.parametrize("guess", [-3.0, 0.0, 0.3, 1.0, 4.0])
def test_a_curved_function_and_any_guess(guess: float) -> None:
    found = enclose_root(lambda x: Bounds(x + x**3 - 1, x + x**3 - 1), 0.0, 1.0, guess, 1e-12)
    assert found.width <= 1e-12
    assert found.lower <= 0.6823278038280193 <= found.upper

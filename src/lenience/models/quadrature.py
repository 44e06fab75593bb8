"""Nodes and weights for means under a normal distribution, the same numbers on every machine.

Gauss–Hermite quadrature with 24 nodes, and 65 evenly spaced nodes for functions that are steep in comparison. The
Gauss–Hermite numbers are listed, because algorithms that find them round differently from machine to machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import as_python
from lenience.core.portable_exp import portable_exp

# The positive nodes, and the weight of each and of its mirror image.
HERMITE = (
    (0.3173700966294523, 0.2408701155466403),
    (0.953421922932109, 0.16145951286700008),
    (1.59348042981642, 0.07206936401717833),
    (2.2404678516917524, 0.021126344408967546),
    (2.8977286432233136, 0.003976608929181309),
    (3.56930676407356, 0.0004647187187793957),
    (4.260383605019905, 3.2095005652745914e-05),
    (4.978041374639121, 1.2176597454425813e-06),
    (5.732747175251201, 2.2674616734806418e-08),
    (6.541675005098634, 1.7186649279648582e-10),
    (7.437890666021663, 3.714974152762399e-13),
    (8.507803519195257, 9.390193689041956e-17),
)
HERMITE_NODES: NDArray[np.float64] = np.array([-node for node, _ in HERMITE[::-1]] + [node for node, _ in HERMITE])
HERMITE_WEIGHTS: NDArray[np.float64] = np.array(
    [weight for _, weight in HERMITE[::-1]] + [weight for _, weight in HERMITE]
)
EVEN_NODES: NDArray[np.float64] = np.arange(-32, 33) / 4.0
EVEN_WEIGHTS: NDArray[np.float64] = np.array(
    [as_python(portable_exp)(-0.5 * node * node) / 4.0 / math.sqrt(2.0 * math.pi) for node in EVEN_NODES.tolist()]
)


def quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights for means under a standard normal.

    >>> nodes, weights = quadrature()
    >>> round(float(weights @ nodes**4), 9)
    3.0
    """
    return HERMITE_NODES, HERMITE_WEIGHTS

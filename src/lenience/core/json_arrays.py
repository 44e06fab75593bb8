"""Write and read the arrays and objectives of solved policies in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from lenience.core.objective import Objective


def encode_array(value: object) -> object:
    """Return an array as a list, which msgspec can write."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(type(value))


def decode_array(kind: type, value: Any) -> object:
    """Convert what msgspec has read: a list to an array, or an object to an objective by its tag."""
    if isinstance(kind, type) and issubclass(kind, Objective):
        return kind.from_builtins(value)
    numbers = np.asarray(value)
    return numbers if numbers.dtype == np.float64 else numbers.astype(np.int64)

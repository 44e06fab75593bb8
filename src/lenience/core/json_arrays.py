"""Arrays of numbers and objectives in JSON: how solved policies are written and read."""

from __future__ import annotations

from typing import Any

import numpy as np

from lenience.core.objective import Objective


def encode_array(value: object) -> object:
    """An array as a list, for msgspec to write."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(type(value))


def decode_array(kind: type, value: Any) -> object:
    """The array of a list that msgspec has read, or the objective of an object that has its tag."""
    if isinstance(kind, type) and issubclass(kind, Objective):
        return kind.from_builtins(value)
    numbers = np.asarray(value)
    return numbers if numbers.dtype == np.float64 else numbers.astype(np.int64)

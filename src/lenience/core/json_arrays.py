"""Arrays of whole numbers in JSON: how the tables of solved policies are written and read."""

from __future__ import annotations

from typing import Any

import numpy as np


def encode_array(value: object) -> object:
    """An array as a list, for msgspec to write."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(type(value))


def decode_array(kind: type, value: Any) -> object:
    """The array of a list that msgspec has read."""
    return np.asarray(value, dtype=np.int64)

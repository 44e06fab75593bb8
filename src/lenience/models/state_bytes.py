"""The bytes of a model: the same model always has the same bytes, so that they can be hashed.

A state has two parts. The *frame* never changes: the kind of model, its columns, scales and prior. The *numbers* change
with every label. Both are msgpack maps in a fixed order of fields; arrays are little-endian float64 or int64.

    "lenience model 1\\n" · length of the frame (4 bytes, big-endian) · frame · numbers

A store can keep the frame once and the numbers after every label. The hash covers both.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError

MAGIC = b"lenience model 1\n"
LENGTH = 4
Kind = TypeVar("Kind")


class Array(msgspec.Struct, frozen=True, array_like=True):
    """An array as bytes: its type, shape and little-endian data."""

    type: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, values: NDArray[Any]) -> Array:
        """Return the bytes of an array of floats or integers; every NaN becomes the same one.

        >>> Array.of(np.array([1.5, 2.0])).values().tolist()
        [1.5, 2.0]
        """
        if values.dtype.kind == "f":
            clean = np.where(np.isnan(values), math.nan, values)
            return cls("<f8", tuple(values.shape), np.ascontiguousarray(clean, dtype="<f8").tobytes())
        return cls("<i8", tuple(values.shape), np.ascontiguousarray(values, dtype="<i8").tobytes())

    def values(self) -> NDArray[Any]:
        """Return a new array, which may be overwritten."""
        if self.type not in ("<f8", "<i8") or len(self.data) != 8 * math.prod(self.shape):
            raise invalid_state("an array does not have the length that its shape needs")
        numbers = np.frombuffer(self.data, dtype=self.type).reshape(self.shape)
        return numbers.astype(np.float64 if self.type == "<f8" else np.int64)


def pack(value: msgspec.Struct) -> bytes:
    """Return the bytes of a struct."""
    return msgspec.msgpack.encode(value)


def unpack(data: bytes, kind: type[Kind]) -> Kind:
    """Return the struct that bytes hold, or raise an InputError."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise invalid_state(str(error)) from error


def join(frame: bytes, numbers: bytes) -> bytes:
    """Return the state that a frame and numbers make up."""
    return prefix(frame) + numbers


def prefix(frame: bytes) -> bytes:
    """Return what precedes the numbers in a state."""
    return MAGIC + len(frame).to_bytes(LENGTH, "big") + frame


def split(state: bytes) -> tuple[bytes, bytes]:
    """Return the frame and the numbers of a state.

    >>> split(join(b"frame", b"numbers"))
    (b'frame', b'numbers')
    """
    start = len(MAGIC) + LENGTH
    if not isinstance(state, bytes) or not state.startswith(MAGIC) or len(state) < start:
        raise invalid_state("it does not begin as one")
    end = start + int.from_bytes(state[len(MAGIC) : start], "big")
    if end > len(state):
        raise invalid_state("it is cut off")
    return state[start:end], state[end:]


def invalid_state(reason: str) -> InputError:
    """Return the error for bytes that are not a state."""
    return InputError.because(
        f"must be the stored state of a model: {reason}", "state", code="invalid_file",
        hint="Use the bytes that state() returned.",
    )  # fmt: skip

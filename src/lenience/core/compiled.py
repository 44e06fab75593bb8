"""Compile kernels with Numba and cache them on disk. Only this module knows how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a kernel to machine code.

    The only freedom beyond strict arithmetic is contraction (fused multiply-add), which removes a rounding and so keeps
    error bounds valid. Use :func:`exactly_compiled` for arithmetic that relies on the exact rounding of each step.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(function))


def exactly_compiled(function: Function) -> Function:
    """Compile a kernel with strict arithmetic, which double-double numbers and portable states need.

    The option must be given even though it is the default: a kernel without it takes over the option of the first
    kernel that calls it, so that its rounding would depend on which one is compiled first.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)(function))


def as_python(function: Function) -> Function:
    """Return the Python function of a kernel, also where Numba is told to compile nothing."""
    return cast(Function, getattr(function, "py_func", function))

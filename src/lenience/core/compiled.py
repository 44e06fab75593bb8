"""The one place that knows how kernels are compiled (Numba, cached on disk)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a kernel to machine code.

    Only contraction (fused multiply-add) is allowed beyond strict arithmetic: where errors are counted it takes one
    rounding away. Arithmetic that relies on the exact rounding of each step is :func:`exactly_compiled`.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(function))


def exactly_compiled(function: Function) -> Function:
    """Compile a kernel in strict arithmetic, as double-double numbers need."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))

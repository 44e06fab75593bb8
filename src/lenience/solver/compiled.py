"""The one place that knows how kernels are compiled (Numba, cached on disk)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a kernel to machine code.

    Only contraction (fused multiply-add) is allowed beyond strict arithmetic: it never adds a rounding
    error, so the error analyses in this folder hold with and without it.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(function))


def parallel(function: Function) -> Function:
    """Compile a kernel whose ``prange`` loops run on all cores."""
    return cast(
        Function,
        numba.njit(cache=True, nogil=True, parallel=True, error_model="numpy", fastmath={"contract"})(function),
    )

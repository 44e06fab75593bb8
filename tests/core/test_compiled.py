"""Strict kernels stay strict, whoever calls them first."""

from __future__ import annotations

from lenience.core.compiled import compiled, exactly_compiled


@exactly_compiled
def strict_sum(a: float, b: float, c: float) -> float:
    return a * b + c


@compiled
def calls_strict_sum(a: float, b: float, c: float) -> float:
    return strict_sum(a, b, c)


@compiled
def fused_sum(a: float, b: float, c: float) -> float:
    return a * b + c


def test_a_strict_kernel_rounds_every_step_even_if_another_kernel_calls_it_first() -> None:
    tiny = 2.0**-30
    numbers = (1.0 + tiny, 1.0 - tiny, -1.0)  # the product is 1 − 2⁻⁶⁰, which rounds to 1
    assert calls_strict_sum(*numbers) == 0.0
    assert strict_sum(*numbers) == 0.0
    assert fused_sum(*numbers) in (0.0, -(2.0**-60))  # a processor without the fused operation rounds as well

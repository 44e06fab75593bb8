"""Read the exposure limits from the recursion with late labels, plane by plane, and record which are proved.

While m descends, five numbers are stored for each state: the smallest m at which the state is rejected, not proved
accepted, and proved rejected, and the largest m at which it is accepted and proved accepted. In the end they give the
limit, whether it is proved, and whether acceptance resumes above it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lenience.core.compiled import compiled


@compiled
def first_hopeful(
    high: NDArray[np.float64], at: int, lo: int, middle: int, strike: NDArray[np.float64], base: int, g_low: float
) -> int:
    """Return the first state of the row that may be accepted; ``high[at + j]`` is its plane at the cap.

    Accepting needs V(m+1) > c − p̂, and V does not fall in m or s. So nobody is accepted below that state.
    """
    j = lo
    while j < middle:
        x = strike[j - base]
        if high[at + j] - g_low * x * (1.0 - 6e-15) >= x * (1.0 - 1e-14):
            break
        j += 1
    return j


@compiled
def read_plane(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    here: np.uint64,
    width: np.uint64,
    m: int,
    begin: np.uint64,
    end: np.uint64,
    good: NDArray[np.float64],
    bad: NDArray[np.float64],
    strike: NDArray[np.float64],
    wait_low: float,
    wait_high: float,
    d: float,
    least_rejected: NDArray[np.int32],
    least_doubt: NDArray[np.int32],
    least_refused: NDArray[np.int32],
    most_accepted: NDArray[np.int32],
    most_proved: NDArray[np.int32],
) -> None:
    """Record which states accept with m pending: those with Q(m+1) > wE + d (c − p̂), where d = 1 + λ/(r + mμ)."""
    one = np.uint64(1)
    over = here + width
    under = here - width if m > 0 else here
    for i in range(begin, end):
        later_low = 0.0
        later_high = 0.0
        if m > 0:
            later_low = wait_low * (good[i] * low[under + i + one] + bad[i] * low[under + i])
            later_high = wait_high * (good[i] * high[under + i + one] + bad[i] * high[under + i])
        slack = 1e-14 * (d * strike[i] + later_high)
        gain_low = low[over + i] - later_high - d * strike[i] - slack
        gain_high = high[over + i] - later_low - d * strike[i] + slack
        if gain_low + gain_high > 0.0:
            if most_accepted[i] < 0:
                most_accepted[i] = m
            if gain_low > 0.0:
                if most_proved[i] < 0:
                    most_proved[i] = m
            else:
                least_doubt[i] = m
        else:
            least_rejected[i] = m
            least_doubt[i] = m
            if gain_high < 0.0:
                least_refused[i] = m

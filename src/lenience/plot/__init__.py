"""Every figure: functions that return a matplotlib figure; :func:`save` writes it as PNG, SVG or PDF."""

from lenience.plot.delay import limit_map, value_against_delay
from lenience.plot.simulate import (
    plot_acceptance_by_arrival,
    plot_comparison,
    plot_drift,
    plot_regret_over_time,
)
from lenience.plot.stopping import operating_characteristics, regret_against_horizon, thresholds, value_functions
from lenience.plot.style import check_path, save

__all__ = [
    "check_path",
    "limit_map",
    "operating_characteristics",
    "plot_acceptance_by_arrival",
    "plot_comparison",
    "plot_drift",
    "plot_regret_over_time",
    "regret_against_horizon",
    "save",
    "thresholds",
    "value_against_delay",
    "value_functions",
]

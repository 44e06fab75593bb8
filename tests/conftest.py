"""Settings for every test."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # the oracles are imported by name

# Compilation makes a first example slow; the machines are noisy; the same examples every time.
settings.register_profile(
    "lenience",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("lenience")

"""Which tests must notice a fault in which file, and what is left out because a fault there changes no promise."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """A file, the tests that must notice its faults, and the functions and constants that are not changed."""

    path: str
    tests: tuple[str, ...]
    compiled: bool = False  # whether kernels are compiled; small problems are quicker without
    skipped: frozenset[str] = frozenset()


MARGINS = "tests/solvers/test_rounding_margins.py"
STOPPING = "tests/solvers/test_stopping.py"
SOLVERS = "src/lenience/solvers/"
BELIEFS = "src/lenience/policies/beliefs/"

# Guesses of cost and effort: they decide how long a solve takes and what is refused, never what is proved.
EFFORT = frozenset(
    {
        "SECONDS_A_STATE", "MOST_STATES", "MOST_ROWS", "ATTEMPTS", "progress", "discounted_seconds", "horizon_seconds",
        "_horizon_width", "_guess_look_ahead", "_band_width", "_refuse_absurd", "NANOSECONDS", "MEMORY_LIMIT", "_SHARE",
        "_LOG_GAP", "rows_for", "cap_for", "estimate_cost", "_plan", "_refuse", "_told", "MOST_UPDATES", "ROOM", "ROW",
        "TILE", "CELLS", "HALVINGS", "_aims", "_guess", "LONG", "MOST_SHOWN", "PRECISION", "SHOWN", "MOST_VOLUME",
    }
)  # fmt: skip

TARGETS = (
    Target(
        SOLVERS + "stopping/band.py",
        (
            MARGINS,
            f"{STOPPING}::test_distance_to_the_strike_is_exact_to_rounding",
            f"{STOPPING}::test_cheap_upper_start_is_above_the_clairvoyant",
        ),
        skipped=EFFORT,
    ),
    Target(SOLVERS + "stopping/solve.py", (MARGINS, STOPPING), True, EFFORT),
    Target(SOLVERS + "stopping/evaluation.py", (MARGINS, "tests/analysis/test_exact.py"), True, EFFORT),
    Target(SOLVERS + "stopping/clairvoyant.py", ("tests/solvers", "tests/objectives"), True, EFFORT),
    Target(
        SOLVERS + "stopping/forward.py", ("tests/solvers/test_walk.py", "tests/analysis/test_exact.py"), True, EFFORT
    ),
    Target(SOLVERS + "stopping/boundary_walk.py", ("tests/solvers/test_walk.py", "tests/analysis/test_exact.py"), True),
    Target(SOLVERS + "stopping/root.py", (MARGINS, STOPPING), True, EFFORT),
    Target(
        SOLVERS + "stopping/threshold.py", (MARGINS, STOPPING, "tests/solvers/test_threshold_table.py"), True, EFFORT
    ),
    Target(SOLVERS + "stopping/gittins_index.py", (STOPPING,), True, EFFORT),
    Target(SOLVERS + "stopping/leniency_rate.py", (STOPPING,), True, EFFORT),
    Target(SOLVERS + "delayed/planes.py", (MARGINS, "tests/solvers/test_delayed.py"), True, EFFORT),
    Target(
        SOLVERS + "delayed/limits.py",
        ("tests/policies/beliefs/test_exposure.py", "tests/solvers/test_delayed.py"),
        True,
    ),
    Target(
        SOLVERS + "delayed/recursion.py",
        (MARGINS, "tests/solvers/test_delayed.py", "tests/policies/beliefs/test_exposure.py"),
        True,
        EFFORT,
    ),
    Target(SOLVERS + "delayed/start.py", (MARGINS, "tests/solvers/test_delayed.py"), True, EFFORT),
    Target(SOLVERS + "delayed/plan.py", ("tests/solvers/test_delayed.py",), True, EFFORT),
    Target(SOLVERS + "delayed/evaluation.py", ("tests/analysis/test_delay.py",), True, EFFORT),
    Target(
        "src/lenience/core/lattice.py",
        (
            "tests/core/test_lattice.py",
            "tests/policies/beliefs/test_optimal.py",
            "tests/policies/beliefs/test_exposure.py",
        ),
        True,
    ),
    Target("src/lenience/core/belief.py", ("tests/core/test_belief.py",), True),
    Target(
        BELIEFS + "optimal.py", ("tests/policies/beliefs/test_optimal.py", "tests/solvers/test_walk.py"), True, EFFORT
    ),
    Target(BELIEFS + "exposure.py", ("tests/policies/beliefs/test_exposure.py",), True, EFFORT),
    Target(BELIEFS + "pending.py", ("tests/policies/beliefs", "tests/analysis/test_delay.py"), True),
    Target(BELIEFS + "bayes_ucb.py", ("tests/policies/beliefs",), True),
    Target(BELIEFS + "kl_ucb.py", ("tests/policies/beliefs",), True),
    Target(BELIEFS + "thompson.py", ("tests/policies/beliefs",), True),
    Target(BELIEFS + "forgetting.py", ("tests/policies/beliefs",), True),
    Target("src/lenience/segments/staleness.py", ("tests/segments/test_staleness.py",), True, EFFORT),
    Target("src/lenience/segments/starting.py", ("tests/segments/test_starting.py",), True, EFFORT),
    Target("src/lenience/models/shared.py", ("tests/models/test_models.py",), True),
    Target("src/lenience/models/own_counts.py", ("tests/models/test_models.py",), True),
    Target("src/lenience/models/gaussian.py", ("tests/models",), True),
    Target("src/lenience/service/domain/rule.py", ("tests/service/domain/test_rules.py",), True),
    Target(
        "src/lenience/service/commands/transitions.py",
        ("tests/service/domain/test_rules.py", "tests/service/commands/test_engine.py -k 'not postgresql'"),
        True,
    ),
)

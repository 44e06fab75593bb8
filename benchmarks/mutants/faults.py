"""Faults written by hand that a test once missed. Each is a file, the text as it is, and the text with the fault."""

from __future__ import annotations

from typing import NamedTuple

SOLVERS = "src/lenience/solvers/"


class Fault(NamedTuple):
    """A fault: ``before`` occurs in the file, and every occurrence is replaced."""

    name: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]
    compiled: bool = False  # small problems are quicker without compiling


MARGINS = "tests/solvers/test_rounding_margins.py"
KERNELS = "tests/solvers/test_kernels.py"
WALK = "tests/solvers/test_walk.py"
OPTIMAL = "tests/policies/beliefs/test_optimal.py"
EXPOSURE = "tests/policies/beliefs/test_exposure.py"
TABLES = "tests/service/domain/test_solved_tables.py"

FAULTS = (
    Fault(
        "the cap's upper bound takes only the successor of a success",
        SOLVERS + "delayed/planes.py",
        "more = good[i] * high[here + i + one] + bad[i] * high[here + i]",
        "more = high[here + i + one]",
        (MARGINS + " -k small_caps",),
    ),
    Fault(
        "no rounding margin",
        SOLVERS + "stopping/band.py",
        "ROUNDING = 1e-15",
        "ROUNDING = 0.0",
        (MARGINS + " -k 'rounding_alone or roundings_of_every_row and not late'",),
    ),
    Fault(
        "rounding margins are swapped",
        SOLVERS + "stopping/band.py",
        "ROUNDING = 1e-15",
        "ROUNDING = -1e-15",
        (MARGINS + " -k 'rounding_alone or roundings_of_every_row and not late'",),
    ),
    Fault(
        "no margin where the band starts and where it stops",
        SOLVERS + "stopping/band.py",
        "1e-14",
        "0.0",
        (MARGINS + " -k rounding_alone",),
    ),
    Fault(
        "rounding margins of the start with late labels are swapped",
        SOLVERS + "delayed/start.py",
        "(1.0 + ",
        "(1.0 - ",
        (KERNELS + " -k forty_digits",),
    ),
    Fault(
        "no rounding margin for late labels",
        SOLVERS + "delayed/planes.py",
        "side * 3e-15",
        "side * 0.0",
        (MARGINS + " -k 'late_labels'",),
    ),
    Fault(
        "rounding margins for late labels are swapped",
        SOLVERS + "delayed/planes.py",
        "(1.0 + side *",
        "(1.0 - side *",
        (MARGINS + " -k 'late_labels'",),
    ),
    Fault(
        "evaluation starts from 0.9 of the upper bound",
        SOLVERS + "stopping/evaluation.py",
        "upper = gain * scale *",
        "upper = 0.9 * gain * scale *",
        (MARGINS + " -k certain_priors",),
    ),
    Fault(
        "a horizon's clairvoyant is not weighted",
        SOLVERS + "stopping/band.py",
        "known = weight * put_above(",
        "known = put_above(",
        (MARGINS + " -k horizons",),
    ),
    Fault(
        "half of the upper start's extra",
        SOLVERS + "stopping/band.py",
        "            extra = free_label_part(",
        "            extra = 0.5 * free_label_part(",
        (MARGINS + " -k look_ahead_of_nothing",),
    ),
    Fault(
        "the last row's edge forgets the discount",
        SOLVERS + "stopping/band.py",
        "<= (1.0 - gamma) * below * ",
        "<= below * ",
        (MARGINS + " -k wrong_stop",),
    ),
    Fault(
        "an undecided prior is worth nothing",
        SOLVERS + "stopping/solve.py",
        "_value(stop_below[0] > 0, _reward(band.lower, ",
        "_value(accept_from[0] > 0, _reward(band.lower, ",
        (MARGINS + " -k undecided_prior",),
    ),
    Fault(
        "an undecided belief is accepted",
        "src/lenience/policies/beliefs/optimal.py",
        "self.certificate.tolerance)[1].lower > 0.0",
        "self.certificate.tolerance)[1].upper > 0.0",
        (OPTIMAL + " -k undecided",),
        compiled=True,
    ),
    Fault(
        "the stop floor is one state too high",
        "src/lenience/policies/beliefs/optimal.py",
        "(self.prior.s + least - 1) / n",
        "(self.prior.s + least) / n",
        (OPTIMAL + " -k stop_floor",),
        compiled=True,
    ),
    Fault(
        "the stop floor is one state too low",
        "src/lenience/policies/beliefs/optimal.py",
        "(self.prior.s + least - 1) / n",
        "(self.prior.s + least - 2) / n",
        (OPTIMAL + " -k stop_floor",),
        compiled=True,
    ),
    Fault(
        "the exposure policy's stop floor is one state too high",
        "src/lenience/policies/beliefs/exposure.py",
        "(self.prior.s + first - 1) / n",
        "(self.prior.s + first) / n",
        (EXPOSURE + " -k stop_floor",),
        compiled=True,
    ),
    Fault(
        "a hundredth of an observation is on the lattice",
        "src/lenience/core/lattice.py",
        "LATTICE = 1e-9",
        "LATTICE = 1e-2",
        ("tests/core/test_lattice.py", OPTIMAL + " -k beside"),
        compiled=True,
    ),
    Fault(
        "ruin is bounded at the upper end of each cell",
        SOLVERS + "stopping/forward.py",
        "float(ends[i]), ceiling) if i",
        "float(ends[i + 1]), ceiling) if i",
        (WALK + " -k mean_of_the_ruin",),
    ),
    Fault(
        "what a walk set aside is forgotten",
        SOLVERS + "stopping/forward.py",
        "        aside += float(mass[:begin].sum() + mass[end:].sum())\n",
        "",
        (WALK + " -k set_aside",),
    ),
    Fault(
        "what a boundary walk set aside is forgotten",
        SOLVERS + "stopping/boundary_walk.py",
        "aside += mass[end]",
        "aside += 0.0",
        (WALK + " -k set_aside",),
    ),
    Fault(
        "later stops leave out what was set aside",
        SOLVERS + "stopping/forward.py",
        "(undeserving + ever)) + walked.aside",
        "(undeserving + ever))",
        (WALK + " -k set_aside",),
    ),
    Fault(
        "beyond the table one state too many is rejected",
        "src/lenience/service/domain/stopping_tables.py",
        "(self.prior.s + self._least[last] - 1) * n",
        "(self.prior.s + self._least[last]) * n",
        (TABLES + " -k beyond_the_table_decisions",),
        compiled=True,
    ),
    Fault(
        "a threshold forgets the rounding of its rate",
        SOLVERS + "stopping/threshold.py",
        "math.nextafter(bounds.lower, 0.0), math.nextafter(bounds.upper, math.inf)",
        "bounds.lower, bounds.upper",
        (MARGINS + " -k rounding_of_the_rate",),
    ),
    Fault(
        "a rate 1e-12 below the cost has no limit",
        "src/lenience/core/lattice.py",
        "AT_COST = 1e-15",
        "AT_COST = 1e-12",
        (EXPOSURE + " -k just_below",),
        compiled=True,
    ),
)

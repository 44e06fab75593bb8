"""What would have happened, for the last step to a new policy: out of sample where there are dates, or from nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lenience.core.belief import Belief
from lenience.dashboard.figures.course import course_picture
from lenience.dashboard.rendering import UNIT, natural
from lenience.dashboard.wizard.answers import Answers, FormError, sentence
from lenience.dashboard.wizard.backtest import Backtest, backtest, halved
from lenience.dashboard.wizard.past_file import known_outcomes, rejected_since
from lenience.dashboard.wizard.plan import (
    DAYS,
    SegmentPlan,
    believe_as_answered,
    read_column_answers,
    read_segments,
    read_specification,
    read_unit,
)
from lenience.history.past_rows import KnownOutcome

SHOWN = 100  # segments of which the rows are shown, the largest
NO_DATE = (
    "The file's rows have no date (step 2), so they cannot be divided into an earlier and a later half, and how the "
    "policy would have done with what was known by then cannot be shown."
)
NO_HALVES = (
    "When the later half of the applicants began, no outcome of the earlier half was known, so how the policy would "
    "have done with what was known by then cannot be shown."
)
TOO_SLOW = "No segment could be solved quickly enough to be tested here."


def backtest_view(path: Path, answers: Answers, cold: bool) -> dict[str, Any]:
    """The applicants of the later half decided again with what was known by then; all of them from nothing (``cold``).

    A sentence where that cannot be done.
    """
    shown: dict[str, Any] = {"trouble": "", "found": None, "cold": cold, "query": answers.query}
    try:
        segments = read_segments(path, answers)
        specification = read_specification(answers, segments)
    except FormError as error:
        return shown | {"trouble": sentence(str(error)), "cold": True}
    assert segments.past is not None
    history = segments.past.history
    mapping = read_column_answers(answers)
    known = known_outcomes(path, mapping, history)
    objective = specification.objective
    late = objective.label_delay
    if cold:
        priors = {row.cell: before for row, before in zip(segments.rows, segments.before, strict=True)}
        shown |= {
            "rejected": sum(row.arrivals - row.accepted for row in history.segments),
            "waiting": sum(row.pending for row in history.segments),
            "dated": bool(answers.time),
        }
    else:
        earlier, later = halved(known, max(late, (mapping.columns.maturity or 0.0) / DAYS))
        if not mapping.columns.time or not earlier:
            return shown | {"trouble": NO_HALVES if mapping.columns.time else NO_DATE}
        priors = _believed(segments, answers, earlier)
        since, rejected = rejected_since(path, mapping, history, later[0].years or 0.0)
        shown |= {"rejected": rejected, "waiting": 0, "dated": True, "since": since, "taught": len(earlier)}
        known = list(later)
    found = backtest(specification, priors, known)
    if not found.segments:
        return shown | {"trouble": TOO_SLOW}
    return shown | _told(found, answers) | {"late": late > 0}


def _believed(segments: SegmentPlan, answers: Answers, outcomes: Sequence[KnownOutcome]) -> dict[str, Belief]:
    """Return what the model makes of these outcomes alone."""
    assert segments.past is not None
    labels = Counter(one.segment for one in outcomes)
    successes = Counter(one.segment for one in outcomes if one.success)
    counts = {name: (float(labels[name]), float(successes[name])) for name in labels}
    return believe_as_answered(answers, segments.past, counts).beliefs


def _told(found: Backtest, answers: Answers) -> dict[str, Any]:
    """The back-test as the page shows it."""
    money = answers.known == "money"
    scale = read_unit(answers)
    rows = sorted(found.segments, key=lambda one: -one.past.accepted)
    return {
        "found": found,
        "rows": sorted(rows[:SHOWN], key=lambda row: natural(row.name)),
        "more": len(rows) - SHOWN,
        "scale": scale,
        "digits": 0 if money else 1,
        "unit": "in the money of your gain and loss" if money else UNIT,
        "pictures": [course_picture(found.course, scale), course_picture(found.course, scale, narrow=True)],
    }

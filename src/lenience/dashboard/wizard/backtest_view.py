"""What would have happened, for the last step to a new policy: out of sample where there are dates, or from nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lenience.core.belief import Belief
from lenience.dashboard.figures.course import course_picture
from lenience.dashboard.rendering import UNIT, natural
from lenience.dashboard.wizard.answers import Answers, Refused, sentence
from lenience.dashboard.wizard.backtest import Backtest, backtest, halved
from lenience.dashboard.wizard.past_file import Known, known_outcomes, rejected_since
from lenience.dashboard.wizard.plan import (
    DAYS,
    Segments,
    model_of,
    read_mapping,
    read_segments,
    read_specification,
    read_unit,
)
from lenience.models.protocol import shrinkage

SHOWN = 100  # segments of which the rows are shown, the largest
NO_DATE = (
    "The file's rows have no date (step 2), so they cannot be divided into an earlier and a later half, and how the "
    "policy would have done with what was known by then cannot be shown."
)
NO_HALVES = (
    "When the later half of the applicants began, no outcome of the earlier half was known, so how the policy would "
    "have done with what was known by then cannot be shown."
)
TOO_SLOW = "No segment could be solved quickly enough to be replayed here."


def replayed_view(path: Path, answers: Answers, cold: bool) -> dict[str, Any]:
    """The applicants of the later half decided again with what was known by then; all of them from nothing (``cold``).

    A sentence where that cannot be done.
    """
    shown: dict[str, Any] = {"trouble": "", "found": None, "cold": cold, "query": answers.query}
    try:
        segments = read_segments(path, answers)
        specification = read_specification(answers, segments)
    except Refused as error:
        return shown | {"trouble": sentence(str(error)), "cold": True}
    assert segments.past is not None
    history = segments.past.history
    mapping = read_mapping(answers)
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
        earlier, later = halved(known, max(late, mapping.maturity / DAYS))
        if not mapping.time or not earlier:
            return shown | {"trouble": NO_HALVES if mapping.time else NO_DATE}
        priors = _believed(segments, answers, earlier)
        since, rejected = rejected_since(path, mapping, history, later[0].years or 0.0)
        shown |= {"rejected": rejected, "waiting": 0, "dated": True, "since": since, "taught": len(earlier)}
        known = list(later)
    found = backtest(specification, priors, known)
    if not found.segments:
        return shown | {"trouble": TOO_SLOW}
    return shown | _told(found, answers) | {"late": late > 0}


def _believed(segments: Segments, answers: Answers, outcomes: Sequence[Known]) -> dict[str, Belief]:
    """What the model makes of these outcomes alone."""
    assert segments.past is not None
    names = [row.cell for row in segments.rows]
    seen = Counter(one.segment for one in outcomes)
    good = Counter(one.segment for one in outcomes if one.success)
    model = model_of(answers, segments.past, names)
    rows = shrinkage(model, [float(seen[name]) for name in names], [float(good[name]) for name in names], names)
    return {row.cell: row.belief for row in rows}


def _told(found: Backtest, answers: Answers) -> dict[str, Any]:
    """The replay as the page shows it."""
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

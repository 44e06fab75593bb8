"""The back-test in the last step of a new policy: out of sample if there are dates, or without history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lenience.core.belief import Belief
from lenience.core.money import UNITS
from lenience.core.objective import Objective
from lenience.dashboard.figures.course import course_picture
from lenience.dashboard.rendering import UNIT, natural
from lenience.dashboard.wizard.answers import Answers, FormError, sentence
from lenience.dashboard.wizard.backtest import Backtest, backtest, halved
from lenience.dashboard.wizard.objective_plan import DAYS, read_specification, read_unit
from lenience.dashboard.wizard.past_file import known_outcomes, offers_of_rows, rejected_since
from lenience.dashboard.wizard.plan import SegmentPlan, believe_as_answered, read_column_answers, read_segments
from lenience.history.past_rows import KnownOutcome

SHOWN = 100  # largest segments, whose rows are shown
NO_DATE = (
    "The back-test needs dates to divide the file into an earlier and a later half. Choose the date of the decision in "
    "step 2 if the file has one."
)
NO_HALVES = "The back-test cannot run: no outcome was known yet when the later half of the applicants began."
TOO_SLOW = "The back-test cannot run: every segment takes too long to solve."


def backtest_view(path: Path, answers: Answers, cold: bool) -> dict[str, Any]:
    """Return the values of the back-test.

    It decides the later half with what was known by then, or all applicants without history (``cold``). If that is not
    possible, ``trouble`` says why.
    """
    shown: dict[str, Any] = {"trouble": "", "result": None, "cold": cold, "query": answers.query}
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
    offers = None
    if answers.known == "file":
        offers = offers_of_rows(path, mapping, [applicant.place for applicant in known])
        known = [applicant for applicant in known if applicant.place in offers]  # others are rows that cannot be used
    elif objective.offers is not None:  # one gain and one loss for all
        offers = {applicant.place: objective.offers.offers_of(0)[0] for applicant in known}
    late = objective.label_delay
    if cold:
        priors = {row.cell: before for row, before in zip(segments.rows, segments.before, strict=True)}
        shown |= {
            "rejected": sum(row.arrivals - row.accepted for row in history.segments),
            "waiting": sum(row.pending for row in history.segments),
            "dated": bool(answers.time),
        }
    else:
        earlier, later = halved(known, max(late, (mapping.maturity or 0.0) / DAYS))
        if not mapping.time or not earlier:
            return shown | {"trouble": NO_HALVES if mapping.time else NO_DATE}
        priors = _believed(segments, answers, earlier)
        since, rejected = rejected_since(path, mapping, history, later[0].years or 0.0)
        shown |= {"rejected": rejected, "waiting": 0, "dated": True, "since": since, "taught": len(earlier)}
        known = list(later)
    result = backtest(specification, priors, known, offers=offers)
    if not result.segments:
        return shown | {"trouble": TOO_SLOW}
    return shown | _result_values(result, answers, objective) | {"late": late > 0}


def _believed(segments: SegmentPlan, answers: Answers, outcomes: Sequence[KnownOutcome]) -> dict[str, Belief]:
    """Return the model's beliefs from these outcomes alone."""
    assert segments.past is not None
    labels = Counter(outcome.segment for outcome in outcomes)
    successes = Counter(outcome.segment for outcome in outcomes if outcome.success)
    counts = {name: (float(labels[name]), float(successes[name])) for name in labels}
    return believe_as_answered(answers, segments.past, counts).beliefs


def _result_values(result: Backtest, answers: Answers, objective: Objective) -> dict[str, Any]:
    """Return the back-test as the page shows it."""
    offers = objective.offers
    in_money = answers.known == "money" or offers is not None
    money = UNITS if offers is None else offers.money
    scale = read_unit(answers) if offers is None else 1.0
    unit = "in the currency of your gain and loss" if in_money else UNIT
    rows = sorted(result.segments, key=lambda row: -row.past.accepted)
    return {
        "result": result,
        "rows": sorted(rows[:SHOWN], key=lambda row: natural(row.name)),
        "more": len(rows) - SHOWN,
        "scale": scale,
        "digits": 0 if in_money else 1,
        "unit": f"in {money.currency}" if money.currency else unit,
        "money": money,
        "pictures": [course_picture(result.course, scale), course_picture(result.course, scale, narrow=True)],
    }

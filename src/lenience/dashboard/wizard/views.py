"""What each step for a new policy shows: from the answers so far to the values that its page is filled in with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import func, select

from lenience.core.errors import InputError
from lenience.core.formatting import amount
from lenience.dashboard.figures.intervals import shrinkage_bar
from lenience.dashboard.pages.policy import objective_words, request_words
from lenience.dashboard.rendering import natural
from lenience.dashboard.wizard import intake, past_file
from lenience.dashboard.wizard.answers import BANDS, COLUMNS, EVERYONE, OBJECTIVE, Answers, Refused, sentence
from lenience.dashboard.wizard.bands import MANY, USUAL
from lenience.dashboard.wizard.guesses import guess_accepted, guess_columns, guess_meaning, other_dates
from lenience.dashboard.wizard.plan import (
    DAYS,
    read_cost,
    read_mapping,
    read_objective,
    read_segments,
    read_specification,
    read_unit,
    starting,
    untouched_score,
)
from lenience.service.domain import limits
from lenience.service.http.service import Service
from lenience.service.storage import schema

MEANINGS = {  # of a value, by what it is said of: a value that is bad makes a bad row
    "accepted": {"yes": "accepted", "no": "rejected", "bad": "none of these"},
    "outcome": {"yes": "success", "no": "failure", "none": "not known yet", "bad": "none of these"},
}
MOST_SILENT = 0.4  # of those accepted, who may have no outcome before the page warns
SHOWN = 100  # segments of which a page shows the rows, the largest


def columns_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """The columns with their guessed or given meanings."""
    _from_file(path)
    there = past_file.columns(path)
    if not answers.segment and not answers.outcome:
        guessed = guess_columns(there)
        guessed["accepted"] = guess_accepted(path, there, guessed)
        names = {name: guessed[name] for name in ("accepted", "outcome", "time", "group", "score")}
        first = (guessed["segment"],) if guessed["segment"] else ()
        answers = msgspec.structs.replace(answers, **names, segment=first)
    return {
        "columns": there,
        "bands": {column.name: _bands(column, answers) for column in there if column.numbers and column.different > 2},
        "sampled": past_file.SAMPLE if past_file.count(path) > past_file.SAMPLE else 0,
        "chosen": answers,
        "everyone": EVERYONE,
        "accepted": meanings(path, answers, "accepted"),
        "outcome": meanings(path, answers, "outcome"),
        "carried": answers.pairs(COLUMNS),
    }


def _bands(column: past_file.Column, answers: Answers) -> str:
    """What stands in the field for a column's bands: as answered, or what is usual until the column was ticked."""
    usual = USUAL if column.different > MANY and column.name not in answers.segment else ""
    return dict(answers.bands).get(column.name, usual)


def bands_view(path: Path, answers: Answers, column: str, text: str) -> dict[str, Any]:
    """The bands of one column: their names, how many lie in each, and what became of them.

    What is still to be answered in other fields is no fault of the bands: they wait for it.
    """
    found: dict[str, Any] = {"column": column, "rows": [], "trouble": "", "waits": False}
    found["ticked"] = column in answers.segment
    if not text:
        return found
    alone = msgspec.structs.replace(answers, segment=(column,), bands=((column, text),), group="", score="")
    try:
        past = past_file.read_past(path, read_mapping(alone))
    except InputError as error:
        waits = isinstance(error, Refused) and error.field != BANDS + column
        return found | {"trouble": sentence(str(error)), "waits": waits}
    return found | {"rows": past.history.segments, "shares": past.shares}


def meanings(path: Path, answers: Answers, kind: str) -> dict[str, Any]:
    """The values of a column and what each means: as answered, or guessed."""
    column = answers.accepted if kind == "accepted" else answers.outcome
    found: dict[str, Any] = {"column": column, "rows": [], "trouble": "", "words": MEANINGS[kind]}
    if column in ("", EVERYONE):
        return found
    try:
        there = past_file.values(path, column)
    except InputError as error:
        return found | {"trouble": sentence(f"{error}.")}
    said = {value: meaning for meaning in MEANINGS[kind] for value in answers.meaning(kind, meaning)}
    rows = [
        (value, count, said.get(value) or guess_meaning("accepted" if kind == "accepted" else "outcome", column, value))
        for value, count in there
    ]
    return found | {"rows": rows, "trouble": "" if rows else f"The column {column!r} is empty."}


def beliefs_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """What the file says, and what the model makes of it."""
    _from_file(path)
    segments = read_segments(path, answers)
    assert segments.past is not None
    history = segments.past.history
    rows = sorted(zip(history.segments, segments.rows, strict=True), key=lambda pair: -pair[0].arrivals)
    return {
        "history": history,
        "lines": [*history.describe().split("\n")[1:], *intake.notes(path), *_nobody(segments.past)],
        "silent": _silent(segments.past, answers),
        "labels": sum(row.labels for row in history.segments),
        "pending": sum(row.pending for row in history.segments),
        "warning": history.selection(),
        "score_warning": untouched_score(answers),
        "rows": [
            (one, row, shrinkage_bar(row))
            for one, row in sorted(rows[:SHOWN], key=lambda pair: natural(pair[0].segment))
        ],
        "scored": bool(segments.past.scores),
        "grouped": bool(segments.past.groups),
        "model": answers.model or "independent",
        "carried": answers.pairs(("model",)),
    }


def objective_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """The objective as answered so far, and who would start."""
    segments = read_segments(path, answers)
    past = segments.past
    guessed = ""
    if past is not None and past.years and past.years > 1 / 52:
        guessed = f"{sum(row.arrivals for row in past.history.segments) / past.years:.3g}"
        guessed = f"{float(guessed):.0f}"
    usual, delay_words = usual_delay(path, answers, past)
    # The rate is never empty once this step was sent; what was emptied there stays empty.
    delay = answers.delay if answers.rate else answers.delay or usual
    rate = answers.rate or "10"
    shown = msgspec.structs.replace(answers, arrivals=answers.arrivals or guessed, rate=rate, delay=delay, usual=usual)
    return {
        "shown": shown,
        "guessed": guessed,
        "delay_words": delay_words,
        "policies": [name for name, _ in _policies(service)],
        "carried": answers.pairs(OBJECTIVE),
        **starting_view(path, shown),
    }


def usual_delay(path: Path, answers: Answers, past: past_file.Past | None) -> tuple[str, str]:
    """The mean delay that the form fills in where outcomes are not certain at once, and where it comes from.

    By the file, where it says when outcomes came; else half of the days after which one is certain, which is the most.
    """
    if past is None or not answers.time:
        return "", ""
    mapping = read_mapping(answers)
    for column in other_dates(past_file.columns(path), answers.time):
        found = past_file.mean_delay(path, mapping, past.history, column)
        if found is not None:
            days = f"{found[0]:.3g}"
            return days if mapping.maturity else "", f"in the file {days}, from {answers.time} to {column}"
    if not mapping.maturity:
        return "", ""
    half = f"{mapping.maturity / 2:g}"
    most = f"the {mapping.maturity:g} of step 2, after which all are certain"
    return half, f"{half} is half of {most}: type the mean if you know it"


def starting_view(path: Path, answers: Answers) -> dict[str, Any]:
    """Which segments would start; a sentence where the objective is not complete."""
    empty: dict[str, Any] = {"starts": [], "trouble": "", "cost": None, "more": 0, "late": None, "whole": 0.0}
    try:
        segments = read_segments(path, answers)
        cost = read_cost(answers)
        empty["cost"] = cost
        aim = read_objective(answers)
    except Refused as error:
        return empty | {"trouble": sentence(str(error))}
    rows = starting(segments, aim)
    return empty | {
        "starts": sorted(rows[:SHOWN], key=lambda row: natural(row.name)),
        "more": len(rows) - SHOWN,
        "begin": sum(row.starts is True for row in rows),
        "never": sum(row.starts is False for row in rows),
        "late": None
        if aim.expire_after is None
        else {"segments": len(rows), "most": limits.SOLVE_SECONDS, "expire_after": DAYS * aim.expire_after},
        "whole": aim.volume,
    }


def check_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """The policy as it would be made."""
    segments = read_segments(path, answers)
    specification = read_specification(answers, segments)
    number = dict(_policies(service)).get(specification.name, 0) + 1
    return {
        "specification": specification,
        "words": [*objective_words(specification.objective), *unit_words(answers)],
        "number": number,
        "fresh": len({one.name for one in specification.problems()} - _segments(service, specification.name)),
        "late": specification.objective.label_delay > 0,
        "most": limits.SOLVE_SECONDS,
        "history": None if segments.past is None else segments.past.history,
        "awaited": 0 if segments.past is None else sum(row.pending for row in segments.past.history.segments),
        "model": answers.model or "independent",
        "sent": request_words(specification),
        "carried": answers.pairs(),
    }


def unit_words(answers: Answers) -> list[tuple[str, str]]:
    """What one unit of value is in money, where gain and loss were given: the policy itself keeps their ratio alone."""
    if answers.known != "money":
        return []
    unit, cost = read_unit(answers), read_cost(answers)
    said = f"{amount(unit)} in your money: a success earns {amount(unit * (1 - cost))}, a failure loses "
    return [("One unit of value", f"{said}{amount(unit * cost)}. The policy's page counts in such units.")]


def _from_file(path: Path) -> None:
    if path.suffix != ".parquet":
        raise Refused("objective", "", "These segments were named by hand: there are no columns to map")


def _nobody(past: past_file.Past) -> list[str]:
    """That some cells have nobody, where columns were cut."""
    empty = [row.segment for row in past.history.segments if row.arrivals == 0]
    if not empty:
        return []
    one = len(empty) == 1
    which = f"“{empty[0]}”" if one else f"{len(empty):,} segments, such as “{empty[0]}”"
    return [f"Nobody in the file is in {which}. The share of one applicant is taken for {'it' if one else 'each'}."]


def _silent(past: past_file.Past, answers: Answers) -> str:
    """That many of those taken as accepted have no outcome: some of them may have been rejected."""
    accepted = sum(row.accepted for row in past.history.segments)
    if past.silent <= MOST_SILENT * accepted:
        return ""
    taken = (
        "everyone in the file is taken" if answers.accepted == EVERYONE else f"by {answers.accepted!r} they are taken"
    )
    return (
        f"{past.silent:,} of {accepted:,} ({past.silent / accepted:.0%}) have no outcome, and {taken} as accepted: "
        "they count as still awaited. If some of them were rejected, say so in the step before."
    )


def _policies(service: Service) -> list[tuple[str, int]]:
    """The policies there are, with the number of their newest version."""
    policy, version = schema.policy, schema.version
    query = select(policy.c.name, func.max(version.c.number)).join(version, version.c.policy_id == policy.c.id)
    with service.store.read() as connection:
        return [(row[0], row[1]) for row in connection.execute(query.group_by(policy.c.name).order_by(policy.c.name))]


def _segments(service: Service, name: str) -> set[str]:
    """The segments that a policy has had, in any version; none where there is no such policy."""
    policy, chain = schema.policy, schema.chain
    query = select(chain.c.segment).join(policy, policy.c.id == chain.c.policy_id).where(policy.c.name == name)
    with service.store.read() as connection:
        return set(connection.execute(query.where(chain.c.segment.is_not(None))).scalars())


VIEWS = {"columns": columns_view, "beliefs": beliefs_view, "objective": objective_view, "check": check_view}

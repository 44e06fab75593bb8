"""The values that the page of each step of a new policy shows, from the answers so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import func, select

from lenience.core.errors import InputError
from lenience.core.formatting import amount, percent
from lenience.core.offers import describe_offers
from lenience.core.protected_attributes import is_protected, protected_among
from lenience.dashboard.figures.intervals import shrinkage_bar
from lenience.dashboard.read_models.policy_description import describe_objective, example_request
from lenience.dashboard.rendering import natural
from lenience.dashboard.wizard import past_file, upload_reader
from lenience.dashboard.wizard.answers import (
    BANDS,
    COLUMNS,
    EVERYONE,
    EVIDENCE,
    OBJECTIVE,
    Answers,
    FormError,
    sentence,
)
from lenience.dashboard.wizard.feature_plan import (
    TRUST,
    feature_objective,
    guess_uses,
    read_feature_answers,
    read_feature_fit,
    read_feature_specification,
)
from lenience.dashboard.wizard.file_plan import review_view
from lenience.dashboard.wizard.guesses import (
    guess_accepted,
    guess_columns,
    guess_loan,
    guess_outcome_time,
    other_dates,
)
from lenience.dashboard.wizard.objective_plan import (
    DAYS,
    read_cost,
    read_objective,
    read_segment_costs,
    read_settings,
    read_specification,
    read_unit,
    start_mark,
    starting,
)
from lenience.dashboard.wizard.plan import read_column_answers, read_segments, untouched_score
from lenience.files.value_guesses import Kind, guess_meaning
from lenience.history.feature_fit import FeatureFit
from lenience.history.history import History
from lenience.reports.timing_figures import timing_figures, weight_figures
from lenience.service.domain import limits
from lenience.service.http.service import Service
from lenience.service.storage import schema

MEANINGS = {  # labels of the meanings of a value; a bad value makes a bad row
    "accepted": {"yes": "accepted", "no": "rejected", "bad": "none of these"},
    "outcome": {"yes": "success", "no": "failure", "none": "not known yet", "bad": "none of these"},
}
MOST_SILENT = 0.4  # share of accepted applicants without an outcome above which the page warns
LINES = ("group-1", "group-2 dashed")  # classes of the style sheet
MANY = 20  # different numbers: bands are suggested for a column with more
USUAL = "5"  # bands that the form suggests
SHOWN = 100  # largest segments, whose rows a page shows


def columns_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the columns with their guessed or given meanings."""
    _from_file(path)
    columns = past_file.columns(path)
    if not answers.segment and not answers.outcome:
        guessed = guess_columns(columns)
        guessed["accepted"] = guess_accepted(path, columns, guessed)
        guessed["outcome_time"] = guess_outcome_time(columns, guessed["time"])
        names = {name: guessed[name] for name in ("accepted", "outcome", "time", "outcome_time", "group", "score")}
        first = (guessed["segment"],) if guessed["segment"] else ()
        watched = tuple(
            column.name
            for column in columns
            if is_protected(column.name) and column.name not in (*first, *names.values()) and not column.dates
        )
        loan = guess_loan(columns)
        priced = {"priced": "loan", **loan} if loan else {}
        answers = msgspec.structs.replace(answers, **names, **priced, segment=first, monitor=watched)
    return {
        "columns": columns,
        "bands": {
            column.name: _bands(column, answers) for column in columns if column.numbers and column.different > 2
        },
        "sampled": past_file.SAMPLE if past_file.count(path) > past_file.SAMPLE else 0,
        "chosen": answers,
        "everyone": EVERYONE,
        "accepted": meanings(path, answers, "accepted"),
        "outcome": meanings(path, answers, "outcome"),
        "carried": answers.pairs(COLUMNS),
    }


def _bands(column: past_file.Column, answers: Answers) -> str:
    """Return the content of the field for a column's bands: as answered, or a suggestion until it is selected."""
    usual = USUAL if column.different > MANY and column.name not in answers.segment else ""
    return dict(answers.bands).get(column.name, usual)


def features_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the columns with how each is probably used by a policy with features, or as answered."""
    _from_file(path)
    columns, rows = past_file.columns(path), past_file.count(path)
    if not answers.outcome:
        guessed = guess_columns(columns)
        guessed["accepted"] = guess_accepted(path, columns, guessed)
        names = {name: guessed[name] for name in ("accepted", "outcome", "score")}
        answers = msgspec.structs.replace(answers, **names)
    taken = (answers.outcome, answers.accepted)
    uses = dict(answers.uses) or guess_uses(columns, rows, taken)
    return {
        "columns": columns,
        "chosen": answers,
        "uses": uses,
        "protected_columns": protected_among([column.name for column in columns]),
        "kind": answers.kind or "logistic",
        "trust": answers.trust or TRUST,
        "sampled": past_file.SAMPLE if rows > past_file.SAMPLE else 0,
        "everyone": EVERYONE,
        "accepted": meanings(path, answers, "accepted"),
        "outcome": meanings(path, answers, "outcome"),
        "carried": answers.pairs(COLUMNS),
    }


def bands_view(path: Path, answers: Answers, column: str, text: str) -> dict[str, Any]:
    """Return the bands of one column: their names, the number of applicants in each, and their outcomes.

    If other fields must be answered first, the bands wait for them (``waits``).
    """
    view: dict[str, Any] = {"column": column, "rows": [], "trouble": "", "waits": False}
    view["ticked"] = column in answers.segment
    if not text:
        return view
    alone = msgspec.structs.replace(answers, segment=(column,), bands=((column, text),), group="", score="")
    try:
        past = past_file.read_past(path, read_column_answers(alone))
    except InputError as error:
        waits = isinstance(error, FormError) and error.field != BANDS + column
        return view | {"trouble": sentence(str(error)), "waits": waits}
    return view | {"rows": past.history.segments, "shares": past.shares}


def meanings(path: Path, answers: Answers, kind: Kind) -> dict[str, Any]:
    """Return the values of a column and their meanings, as answered or guessed."""
    column = answers.accepted if kind == "accepted" else answers.outcome
    view: dict[str, Any] = {"column": column, "rows": [], "trouble": "", "choices": MEANINGS[kind]}
    if column in ("", EVERYONE):
        return view
    try:
        values = past_file.values(path, column)
    except InputError as error:
        return view | {"trouble": sentence(f"{error}.")}
    answered = {value: meaning for meaning in MEANINGS[kind] for value in answers.meaning(kind, meaning)}
    rows = [(value, count, answered.get(value) or guess_meaning(kind, column, value)) for value, count in values]
    return view | {"rows": rows, "trouble": "" if rows else f"The column {column!r} is empty."}


def beliefs_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the evidence in the file and the estimates of the model."""
    _from_file(path)
    segments = read_segments(path, answers)
    assert segments.past is not None
    history = segments.past.history
    rows = sorted(zip(history.segments, segments.rows, strict=True), key=lambda pair: -pair[0].arrivals)
    lines = [line for line in history.describe().split("\n")[1:] if not line.startswith("Warning: ")]
    return {
        "history": history,
        "lines": [*lines, *upload_reader.notes(path), *_nobody(segments.past)],
        "silent": _silent(segments.past),
        "immature": _immature(history),
        "prices": _prices(history),
        "maturing": _maturing_view(history),
        "labels": sum(row.labels for row in history.segments),
        "pending": sum(row.pending for row in history.segments),
        "warning": history.selection(),
        "score_warning": untouched_score(answers),
        "rows": [
            (past, row, shrinkage_bar(row))
            for past, row in sorted(rows[:SHOWN], key=lambda pair: natural(pair[0].segment))
        ],
        "scored": bool(segments.past.scores),
        "grouped": bool(segments.past.groups),
        "model": answers.model or "own",
        "chosen": answers,
        "carried": answers.pairs(EVIDENCE),
    }


def objective_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the objective as answered so far, and which segments would start."""
    if answers.kind:
        return _feature_objective_view(service, path, answers)
    segments = read_segments(path, answers)
    past = segments.past
    guessed = average = ""
    last_year = None
    if past is not None and past.years and past.years > 1 / 52:
        average = f"{sum(row.arrivals for row in past.history.segments) / past.years:.3g}"
        average = f"{float(average):.0f}"
        last_year = past.history.last_year
        guessed = average if last_year is None else f"{last_year}"
    priced = past is not None and past.history.has_offers
    known = "file" if priced and not answers.rate else answers.known
    # Amounts that differ and late outcomes together take long to solve, so no delay is suggested for them.
    usual, delay_source = ("", "") if known == "file" else usual_delay(path, answers, past)
    # The rate is never empty after this step was sent, so an empty delay then means that the user cleared it.
    delay = answers.delay if answers.rate else answers.delay or usual
    rate = answers.rate or "10"
    shown = msgspec.structs.replace(
        answers, arrivals=answers.arrivals or guessed, rate=rate, delay=delay, usual=usual, known=known
    )
    return {
        "shown": shown,
        "priced": describe_offers(past.history.offers_of_all()) if past is not None and priced else "",
        "average": average,
        "last_year": last_year,
        "delay_source": delay_source,
        "policies": [name for name, _ in _policies(service)],
        "carried": answers.pairs(OBJECTIVE),
        "starting_shown": True,
        "example_segment": next(iter(segments.shares)),
        **starting_view(path, shown),
    }


def _feature_objective_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the objective of a policy with features as answered so far."""
    given = read_feature_answers(path, answers)
    priced = given.economics is not None
    known = "file" if priced and not answers.rate else answers.known
    shown = msgspec.structs.replace(answers, rate=answers.rate or "10", known=known)
    return {
        "shown": shown,
        "priced": "the gain and the loss of each applicant" if priced else "",
        "average": "",
        "last_year": None,
        "delay_source": "",
        "policies": [name for name, _ in _policies(service)],
        "carried": answers.pairs(OBJECTIVE),
        "starting_shown": False,
    }


def usual_delay(path: Path, answers: Answers, past: past_file.UploadedPast | None) -> tuple[str, str]:
    """Return the mean delay that the form suggests, and its source.

    It comes from the file if that has dates of outcomes. Otherwise it is half of the days until an outcome is final.
    """
    if past is None or not answers.time:
        return "", ""
    if past.history.mean_delay is not None:
        days = f"{past.history.mean_delay:.3g}"
        return days, f"{days} in the file, from {answers.time} to {answers.outcome_time}, the pending included"
    mapping = read_column_answers(answers)
    for column in other_dates(past_file.columns(path), answers.time):
        measured = past_file.mean_delay(path, mapping, past.history, column)
        if measured is not None:
            days = f"{measured[0]:.3g}"
            return days if mapping.maturity else "", f"{days} in the file, from {answers.time} to {column}"
    if not mapping.maturity:
        return "", ""
    half = f"{mapping.maturity / 2:g}"
    most = f"the {mapping.maturity:g} days of step 2"
    return half, f"{half} is half of {most}; type the mean if you know it"


def starting_view(path: Path, answers: Answers) -> dict[str, Any]:
    """Return which segments would start, or a message if the objective is incomplete."""
    empty: dict[str, Any] = {"starts": [], "trouble": "", "cost": None, "more": 0, "late": None, "volume": 0.0}
    empty["start_mark"] = start_mark
    try:
        segments = read_segments(path, answers)
        cost = read_cost(answers, segments)
        empty["cost"] = cost
        objective = read_objective(answers, segments)
        costs = read_segment_costs(answers, segments)
    except FormError as error:
        return empty | {"trouble": sentence(str(error))}
    rows = starting(segments, objective, costs=costs)
    return empty | {
        "starts": sorted(rows[:SHOWN], key=lambda row: natural(row.name)),
        "more": len(rows) - SHOWN,
        "begin": sum(row.starts is True for row in rows),
        "never": sum(row.starts is False for row in rows),
        "late": None
        if objective.expire_after is None
        else {"segments": len(rows), "most": limits.SOLVE_SECONDS, "expire_after": DAYS * objective.expire_after},
        "volume": objective.volume,
    }


def check_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the policy as it would be created."""
    if answers.kind:
        return _feature_check_view(service, path, answers)
    segments = read_segments(path, answers)
    specification = read_specification(answers, segments)
    number = dict(_policies(service)).get(specification.name, 0) + 1
    return {
        "by_features": False,
        "specification": specification,
        "objective_rows": [*describe_objective(specification.objective), *describe_unit(answers)],
        "number": number,
        "fresh": len({problem.name for problem in specification.problems()} - _segments(service, specification.name)),
        "late": specification.objective.label_delay > 0,
        "most": limits.SOLVE_SECONDS,
        "history": None if segments.past is None else segments.past.history,
        "pending": 0 if segments.past is None else sum(row.pending for row in segments.past.history.segments),
        "model": answers.model or "own",
        "sent": example_request(specification),
        "carried": answers.pairs(),
    }


def _feature_check_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the summary of a policy with features. What the model learns from the file is shown after it is fitted."""
    objective = feature_objective(answers)
    settings = read_settings(answers)
    given = read_feature_answers(path, answers)
    described = describe_objective(objective)
    if answers.known == "file":
        described = [("Break-even", "each applicant's own, from the file"), *described[1:]]
    return {
        "by_features": True,
        "settings": settings,
        "objective_rows": [*described, *describe_unit(answers)],
        "number": dict(_policies(service)).get(answers.name, 0) + 1,
        "columns": given.columns,
        "monitored": given.monitored,
        "score": given.score,
        "carried": answers.pairs(),
    }


def fitted_view(path: Path, answers: Answers) -> dict[str, Any]:
    """Return what the model has learnt from the file, or why it cannot be fitted."""
    try:
        specification = read_feature_specification(path, answers)
        fit = read_feature_fit(path, answers)
    except FormError as error:
        return {"fit": None, "trouble": sentence(str(error)), "sent": "", "stakes": None}
    return {"fit": fit, "trouble": "", "sent": example_request(specification), "stakes": _stakes(fit)}


def _stakes(fit: FeatureFit) -> dict[str, str] | None:
    """Return what an applicant earns or loses on average, and the break-even; None without gains and losses."""
    offers = fit.policy.objective.offers
    if offers is None:
        return None
    mean, cost = offers.mean_amount, offers.mean_cost
    gain, loss = offers.money.format(mean * (1.0 - cost)), offers.money.format(mean * cost)
    return {"gain": gain, "loss": loss, "cost": percent(cost)}


def describe_unit(answers: Answers) -> list[tuple[str, str]]:
    """Return the money value of one unit if gain and loss are given, because the policy stores only their ratio."""
    if answers.known != "money" or (answers.money_currency and not answers.delay):
        return []
    unit, cost = read_unit(answers), read_cost(answers)
    gain, loss = amount(unit * (1 - cost)), amount(unit * cost)
    text = f"{amount(unit)} in your currency: a success earns {gain}, a failure loses {loss}."
    return [("One unit of value", f"{text} The policy page shows values in these units.")]


def _from_file(path: Path) -> None:
    if path.suffix != ".parquet":
        raise FormError("objective", "", "You listed these segments yourself, so there are no columns to map")


def _nobody(past: past_file.UploadedPast) -> list[str]:
    """Return a note about segments without applicants, if columns are cut into bands."""
    empty = [row.segment for row in past.history.segments if row.arrivals == 0]
    if not empty:
        return []
    single = len(empty) == 1
    which = f"“{empty[0]}”" if single else f"{len(empty):,} segments, such as “{empty[0]}”"
    return [f"Nobody in the file is in {which}. {'It gets' if single else 'Each gets'} the share of one applicant."]


def _maturing_view(history: History) -> dict[str, Any] | None:
    """Return the figures on pending outcomes, if they count according to their age."""
    if history.applied is None:
        return None
    curves, rate = history.applied.curves, min(max(history.overall_rate, 0.001), 0.999)
    return {
        "rate": rate,
        "timing": timing_figures(curves, LINES),
        "weights": weight_figures(curves, rate, LINES),
    }


def _immature(history: History) -> str:
    """Return how far off known outcomes alone are, and what to choose instead; an empty text if they are not."""
    immaturity = history.immaturity
    if immaturity is None:
        return ""
    column = "" if immaturity.dated else "choose the date when the outcome became known, and "
    window = ""
    if immaturity.maturity:
        window = f", or type {immaturity.maturity:.0f} days until an outcome is final"
    what = f"In the previous step, {column}let pending outcomes count according to their age{window}."
    return f"{immaturity.describe()} {what}"


def _prices(history: History) -> str:
    """Return a warning if success inside segments depends on prices or amounts, and what to choose instead."""
    warning = history.price_warning()
    if not warning:
        return ""
    return f"{warning} In an earlier step, add the column of the interest rate or of the amount to the segments."


def _silent(past: past_file.UploadedPast) -> str:
    """Return a warning if many accepted applicants have no outcome: some may have been rejected."""
    accepted = sum(row.accepted for row in past.history.segments)
    if past.silent <= MOST_SILENT * accepted:
        return ""
    return (
        f"{past.silent:,} of {accepted:,} accepted applicants ({past.silent / accepted:.0%}) have no outcome, so their "
        "outcomes count as pending. If some of them were in fact rejected, correct it in the previous step."
    )


def _policies(service: Service) -> list[tuple[str, int]]:
    """Return all policies with the number of their newest version."""
    policy, version = schema.policy, schema.version
    query = select(policy.c.name, func.max(version.c.number)).join(version, version.c.policy_id == policy.c.id)
    with service.store.read() as connection:
        return [(row[0], row[1]) for row in connection.execute(query.group_by(policy.c.name).order_by(policy.c.name))]


def _segments(service: Service, name: str) -> set[str]:
    """Return the segments of a policy in any version, empty if the policy does not exist."""
    policy, chain = schema.policy, schema.chain
    query = select(chain.c.segment).join(policy, policy.c.id == chain.c.policy_id).where(policy.c.name == name)
    with service.store.read() as connection:
        return set(connection.execute(query.where(chain.c.segment.is_not(None))).scalars())


def file_view(service: Service, path: Path, answers: Answers) -> dict[str, Any]:
    """Return the policy in a file as it would be created."""
    return review_view(path, answers, dict(_policies(service)))


VIEWS = {
    "columns": columns_view,
    "features": features_view,
    "beliefs": beliefs_view,
    "objective": objective_view,
    "check": check_view,
    "review": file_view,
}

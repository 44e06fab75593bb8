"""From the answers to a plan: the segments with what is believed of each, the objective, and the specification."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.dashboard.wizard.answers import (
    BANDS,
    EVERYONE,
    Answers,
    FormError,
    day,
    number,
    one_of,
    optional,
    percent,
    sentence,
)
from lenience.dashboard.wizard.bands import Cut, read_cut
from lenience.dashboard.wizard.past_file import ColumnAnswers, UploadedPast, read_past
from lenience.history.beliefs import Fitted
from lenience.history.past import believe, propose_segments
from lenience.history.past_columns import PastColumns
from lenience.models.own_counts import OwnCounts
from lenience.models.protocol import Shrinkage, shrinkage
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.segments.segments import Segment
from lenience.segments.starting import StartForecast, forecast_starts
from lenience.service.domain import limits
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.specification import PolicySpecification

MODELS = ("own", "shared", "curve")
DAYS = 365.25
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
SECONDS = 1.5  # spent on the volumes of one view
Objective = Discounted | Delayed


class ByHand(msgspec.Struct, frozen=True):
    """Segments that were named by hand, and one prior for all of them."""

    shares: dict[str, float]
    prior: Belief


class SegmentPlan(msgspec.Struct, frozen=True):
    """What the policy will start from: of each segment its share and how its belief came about."""

    rows: list[Shrinkage]
    shares: dict[str, float]
    groups: dict[str, str]
    before: list[Belief]  # what the model believes of each before it has seen any outcome
    past: UploadedPast | None = None


def read_hand(text: str, rate: str, worth: str) -> ByHand:
    """Segments as someone lists them: one a line, its share after the last comma (nothing there: no share).

    >>> read_hand("north, 60 %\\nsouth, 40", "50", "2").shares
    {'north': 0.6, 'south': 0.4}
    >>> read_hand("north\\nsouth", "70", "10").prior
    Belief(n=10.0, s=7.0)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise FormError("start", "segments", "Name at least one segment, one on each line")
    if len(lines) > limits.SEGMENTS:
        raise FormError("start", "segments", f"A policy may have {limits.SEGMENTS:,} segments, not {len(lines):,}")
    shares: dict[str, float] = {}
    for line in lines:
        name, comma, share = line.rpartition(",")
        name = name.strip() if comma else line
        _name_alone(line, name, bool(comma))
        if name in shares:
            raise FormError("start", "segments", f"The names of segments must differ, and {name!r} is there twice")
        if not name or len(name) > 200:
            raise FormError("start", "segments", f"The name of a segment must have 1 to 200 characters, not {name!r}")
        label = f"The share of {name!r} in per cent"
        shares[name] = (
            number("start", "segments", label, share, above=0, most=100) / 100 if comma and share.strip() else math.nan
        )
    if all(share < 0.01 for share in shares.values()) and math.isclose(sum(shares.values()), 0.01, rel_tol=0.02):
        first = f"{1e4 * next(iter(shares.values())):g}"
        said = f"The shares are in per cent, and add up to 1% here: type {first} for {first}%"
        raise FormError("start", "segments", said)
    given = math.fsum(share for share in shares.values() if not math.isnan(share))
    left = [name for name, share in shares.items() if math.isnan(share)]
    if given > 1 + 1e-9 or (left and given >= 1):
        raise FormError("start", "segments", f"The shares must add up to at most 100%, not {100 * given:g}%")
    for name in left:
        shares[name] = (1 - given) / len(left)
    mean = percent("start", "rate", "The success rate that is expected", rate or "50", above=0, below=100)
    size = number("start", "worth", "What the expectation is worth", worth or "2", above=0, most=1e6)
    return ByHand(shares, Belief(size, size * mean))


def _name_alone(line: str, name: str, comma: bool) -> None:
    """Refuse a line whose name seems to hold the share: it was not set off by a comma, or has a decimal comma."""
    found = re.fullmatch(r"(.*\S)\s+(\d[\d.]*)\s*%?|(.*[^\d.])(\d[\d.]*)\s*%", line) if not comma else None
    if found is not None:
        before, share = (found[1] or found[3]).strip(), found[2] or found[4]
        said = f"Write “{before}, {share}” if {share}% is the share of {before!r}, or “{line},” if that is its name"
        raise FormError("start", "segments", said)
    found = re.fullmatch(r"(.*),\s*(\d+)", name) if comma else None
    if found is not None:
        part = line.rpartition(",")[2].strip()
        raise FormError("start", "segments", f"Use a point in a share: “{found[1].strip()}, {found[2]}.{part}”")


def read_column_answers(answers: Answers) -> ColumnAnswers:
    """What the columns mean, as answered."""
    if not answers.segment:
        raise FormError("columns", "segment", "Choose at least one column that divides the applicants into segments")
    if not answers.outcome:
        raise FormError("columns", "outcome", "Choose the column that says what became of the accepted")
    used = [*answers.segment, *(name for name in (answers.accepted, answers.outcome, answers.time) if name)]
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise FormError("columns", "outcome", f"The column {twice!r} cannot mean two things")
    if not answers.accepted:
        said = "Choose the column that says who was accepted, or that everyone in the file was"
        raise FormError("columns", "accepted", said)
    everyone = answers.accepted == EVERYONE
    good, bad = answers.meaning("outcome", "yes"), answers.meaning("outcome", "no")
    if not good or not bad:
        missing = "success" if not good else "failure"
        raise FormError("columns", "outcome", f"Say which value of {answers.outcome!r} means a {missing}")
    if not everyone and not answers.meaning("accepted", "yes"):
        raise FormError(
            "columns", "accepted", f"Say which value of {answers.accepted!r} means that someone was accepted"
        )
    maturity = optional(
        "columns", "maturity", "The days until an outcome is certain", answers.maturity, least=0, most=36500
    )
    if maturity and not answers.time:
        raise FormError(
            "columns", "maturity", "Choose the column of the date: without it nobody knows how old an outcome is"
        )
    if answers.as_of and not answers.time:
        raise FormError("columns", "as_of", "Choose the column of the date: without it no row is known to be later")
    columns = PastColumns(
        segments=answers.segment,
        outcome=answers.outcome,
        success=good,
        failure=bad,
        pending=answers.meaning("outcome", "none"),
        accepted=None if everyone else answers.accepted,
        accepted_values=() if everyone else answers.meaning("accepted", "yes"),
        rejected_values=() if everyone else answers.meaning("accepted", "no"),
        only_given=True,
        time=answers.time or None,
        groups=(answers.group,) if answers.group else (),
        scores=(answers.score,) if answers.score else (),
        maturity=maturity or None,
        as_of=day("columns", "as_of", "The date of the count", answers.as_of) if answers.as_of else None,
    )
    return ColumnAnswers(
        columns,
        cuts=tuple((column, _cut(column, text)) for column, text in answers.bands if column in answers.segment),
    )


def _cut(column: str, text: str) -> Cut:
    try:
        return read_cut(column, text)
    except InputError as error:
        raise FormError("columns", BANDS + column, sentence(str(error)), error.code) from None


def read_segments(path: Path, answers: Answers) -> SegmentPlan:
    """The segments with what is believed of each: from the file by a model, or as named by hand."""
    if path.suffix == ".json":
        hand = msgspec.json.decode(path.read_bytes(), type=ByHand)
        names = list(hand.shares)
        rows = shrinkage(OwnCounts(len(names), hand.prior), [0.0] * len(names), [0.0] * len(names), names)
        return SegmentPlan(rows, hand.shares, {}, [hand.prior] * len(names))
    try:
        past = read_past(path, read_column_answers(answers))
    except FormError:
        raise
    except InputError as error:
        raise FormError("columns", "", sentence(str(error)), error.code) from None
    fitted = believe_as_answered(answers, past)
    before = fitted.beliefs_before
    return SegmentPlan(fitted.shrinkage, past.shares, past.groups, [before[name] for name in past.names], past)


def believe_as_answered(
    answers: Answers, past: UploadedPast, counts: Mapping[str, tuple[float, float]] | None = None
) -> Fitted:
    """Return what the model that was chosen believes of the segments, by the file's outcomes or by other counts."""
    model = one_of("beliefs", "model", "The model", answers.model or "own", MODELS)
    if model == "curve" and not past.scores:
        raise FormError(
            "beliefs",
            "model",
            "A curve needs a score: choose its column in the step before, and tick it as a segment too",
        )
    return believe(past, model, counts=counts)


def read_cost(answers: Answers) -> float:
    """The break-even success rate: as given, or from what a success gains and a failure loses."""
    step = "objective"
    if one_of(step, "known", "The break-even", answers.known, ("rate", "money")) == "rate":
        return percent(step, "cost", "The break-even success rate", answers.cost, above=0, below=100)
    gain, loss = _money(answers)
    return loss / (gain + loss)


def read_unit(answers: Answers) -> float:
    """What one acceptance is worth between failure and success: gain and loss together, or 1 where they are not known.

    A success then earns (1 − c) of it and a failure loses c of it, which are the gain and the loss.
    """
    return sum(_money(answers)) if answers.known == "money" else 1.0


def _money(answers: Answers) -> tuple[float, float]:
    gain = number("objective", "gain", "The gain of a success", answers.gain, above=0, most=1e12)
    return gain, number("objective", "loss", "The loss of a failure", answers.loss, above=0, most=1e12)


def objective_told(answers: Answers) -> dict[str, Any]:
    """What is to be maximised, in the fields of a specification."""
    step, told = "objective", {"type": "discounted", "cost": read_cost(answers)}
    delay = optional(step, "delay", "The days until an outcome is known", answers.delay, least=0, most=36_500)
    if one_of(step, "future", "How the future counts", answers.future, ("yearly", "discount")) == "discount":
        if delay and answers.delay != answers.usual:  # what the form filled in is no wish of anyone's
            raise FormError(step, "delay", "Outcomes that come late need applicants and a discount rate a year")
        return told | {"discount": number(step, "discount", "The discount", answers.discount, least=0, below=1)}
    told["arrivals"] = number(step, "arrivals", "The number of applicants a year", answers.arrivals, above=0, most=1e12)
    rate = percent(step, "rate", "The discount rate a year", answers.rate, 0.1, above=0, most=1e6)
    if rate > 1:
        said = f"The discount rate a year would be {100 * rate:g}%: 100% is the most; type 10 for 10% a year"
        raise FormError(step, "rate", said)
    told["discount_rate"] = rate
    return told | {"type": "delayed", "label_delay": delay / DAYS} if delay else told


def read_objective(answers: Answers) -> Objective:
    """The same, ready to be divided among the segments."""
    told = objective_told(answers)
    if "discount" in told:
        return Discounted(told["cost"], told["discount"])
    rates = (told["cost"], told["arrivals"], told["discount_rate"])
    return Delayed(*rates, told["label_delay"]) if "label_delay" in told else Discounted.from_rates(*rates)


def unsolved(error: BadRequest) -> FormError:
    """Return the error for a policy that could not be solved.

    The hint is about segments: what the solver itself could be asked for is not in this form, and the rest are facts.
    """
    return FormError(
        "objective",
        "",
        f"The policy cannot be solved: {error.detail}",
        "too_large" if error.code == "too_large" else "invalid_value",
    )


def read_specification(answers: Answers, segments: SegmentPlan) -> PolicySpecification:
    """The policy as the service takes it."""
    step, told = "objective", objective_told(answers)
    if not answers.name:
        raise FormError(step, "name", "Give the policy a name")
    floor = percent(step, "floor", "The exploration floor", answers.floor or "0", least=0, below=100)
    cap = optional(step, "cap", "The exposure cap", answers.cap, least=1, most=1e9)
    expiry = optional(step, "expiry", "The days after which an outcome expires", answers.expiry, above=0, most=36500)
    if cap is not None and cap != int(cap):
        raise FormError(step, "cap", f"The exposure cap must be a whole number, not {cap:g}")
    constraints: dict[str, Any] = {"exploration_floor": floor}
    if cap is not None:
        constraints["exposure_cap"] = int(cap)
    made: dict[str, Any] = {
        "name": answers.name,
        "objective": told,
        "features": [] if segments.past is None else list(segments.past.features),
        "segments": propose_segments(segments.shares, {row.cell: row.belief for row in segments.rows}, segments.groups),
        "constraints": constraints,
        "description": answers.description,
    }
    if expiry is not None:
        made["expire_after_days"] = expiry
    try:
        found: PolicySpecification = msgspec.convert(made, PolicySpecification)
        found.problems()
    except msgspec.ValidationError as error:
        if "$.name" in str(error):
            raise FormError(step, "name", _no_name(answers.name)) from None
        raise FormError(step, "", f"The policy cannot be made: {error}") from None
    except (InputError, BadRequest) as error:
        raise FormError(step, "", f"The policy cannot be made: {error}") from None
    return found


def _no_name(name: str) -> str:
    """Why a name is none, and what it could be.

    >>> print(_no_name("My cards, 2025"))
    Letters, digits, dots, dashes and underscores make a name, at most 64, no spaces: 'My cards, 2025' could be
    'My-cards-2025'
    >>> _no_name("Ratenkredit Süd").partition("could be ")[2]
    "'Ratenkredit-Sued'"
    """
    said = "Letters, digits, dots, dashes and underscores make a name, at most 64, no spaces"
    plain = unicodedata.normalize("NFKD", name.translate(GERMAN)).encode("ascii", "ignore").decode()
    could = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:64]
    return f"{said}: {name[:64]!r} could be {could!r}" if could else f"{said}, a letter or digit first"


def starting(segments: SegmentPlan, objective: Objective, seconds: float = SECONDS) -> list[StartForecast]:
    """Forecast which segments would start, the largest first."""
    beliefs = {row.cell: row.belief for row in segments.rows}
    cells = [
        Segment(name, min(segments.shares[name], 1.0), objective, belief, segments.groups.get(name, ""))
        for name, belief in beliefs.items()
    ]
    return forecast_starts(cells, seconds)


def start_mark(row: StartForecast) -> tuple[str, str]:
    """Return the kind of the mark that a page shows for a forecast, and its word."""
    if row.starts is None:
        return "plain", "told when solved"
    if not row.starts:
        return "reject", "never starts"
    return ("accept", "accept") if row.needed == 0.0 else ("learn", "accept to learn")


def untouched_score(answers: Answers) -> str:
    """A warning where a score was chosen that makes no segments; empty where none was, or it does.

    >>> untouched_score(Answers(segment=("score",), score="score"))
    ''
    """
    if not answers.score or answers.score in answers.segment:
        return ""
    return (
        f"The score {answers.score!r} is not ticked as a segment: each segment has the mean score of its members, "
        "which says little where they are alike. Tick it too, in bands such as 300-499, to decide by it."
    )

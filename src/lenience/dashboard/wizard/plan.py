"""From the answers to a plan: the segments with what is believed of each, the objective, and the specification."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError, TooLargeError
from lenience.core.objective import ExposureObjective
from lenience.dashboard.wizard.answers import (
    BANDS,
    EVERYONE,
    Answers,
    Refused,
    day,
    number,
    one_of,
    optional,
    percent,
    sentence,
)
from lenience.dashboard.wizard.bands import Cut, read_cut
from lenience.dashboard.wizard.past_file import Mapping, Past, read_past
from lenience.models.curve import Curve
from lenience.models.own_counts import UNIFORM, Independent
from lenience.models.protocol import Model, Shrinkage, shrinkage
from lenience.models.shared import Shared
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.segments.starting import starting_volume
from lenience.service.domain import limits
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.specification import PolicySpecification

MODELS = ("independent", "shared", "curve")
DAYS = 365.25
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
COARSE, MOST_VOLUME = 0.01, 20_000.0  # of a volume that is only shown
SECONDS = 1.5  # spent on the volumes of one view
Objective = Discounted | Delayed


class ByHand(msgspec.Struct, frozen=True):
    """Segments that were named by hand, and one prior for all of them."""

    shares: dict[str, float]
    prior: Belief


class Segments(msgspec.Struct, frozen=True):
    """What the policy will start from: of each segment its share and how its belief came about."""

    rows: list[Shrinkage]
    shares: dict[str, float]
    groups: dict[str, str]
    before: list[Belief]  # what the model believes of each before it has seen any outcome
    past: Past | None = None


class Forecast(msgspec.Struct, frozen=True):
    """Whether a segment would start, as far as a page can wait: ``starts`` and ``needed`` are nothing where it takes
    too long to tell, unlike those of a :class:`lenience.segments.starting.Start`."""

    name: str
    belief: Belief
    share: float
    volume: float
    needed: float | None
    starts: bool | None

    @property
    def mark(self) -> tuple[str, str]:
        """The kind of mark, and its word."""
        if self.starts is None:
            return "plain", "told when solved"
        if not self.starts:
            return "reject", "never starts"
        return ("accept", "accept") if self.needed == 0.0 else ("learn", "accept to learn")


def read_hand(text: str, rate: str, worth: str) -> ByHand:
    """Segments as someone lists them: one a line, its share after the last comma (nothing there: no share).

    >>> read_hand("north, 60 %\\nsouth, 40", "50", "2").shares
    {'north': 0.6, 'south': 0.4}
    >>> read_hand("north\\nsouth", "70", "10").prior
    Belief(n=10.0, s=7.0)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise Refused("start", "segments", "Name at least one segment, one on each line")
    if len(lines) > limits.SEGMENTS:
        raise Refused("start", "segments", f"A policy may have {limits.SEGMENTS:,} segments, not {len(lines):,}")
    shares: dict[str, float] = {}
    for line in lines:
        name, comma, share = line.rpartition(",")
        name = name.strip() if comma else line
        _name_alone(line, name, bool(comma))
        if name in shares:
            raise Refused("start", "segments", f"The names of segments must differ, and {name!r} is there twice")
        if not name or len(name) > 200:
            raise Refused("start", "segments", f"The name of a segment must have 1 to 200 characters, not {name!r}")
        label = f"The share of {name!r} in per cent"
        shares[name] = (
            number("start", "segments", label, share, above=0, most=100) / 100 if comma and share.strip() else math.nan
        )
    if all(share < 0.01 for share in shares.values()) and math.isclose(sum(shares.values()), 0.01, rel_tol=0.02):
        first = f"{1e4 * next(iter(shares.values())):g}"
        said = f"The shares are in per cent, and add up to 1 % here: type {first} for {first} %"
        raise Refused("start", "segments", said)
    given = math.fsum(share for share in shares.values() if not math.isnan(share))
    left = [name for name, share in shares.items() if math.isnan(share)]
    if given > 1 + 1e-9 or (left and given >= 1):
        raise Refused("start", "segments", f"The shares must add up to at most 100 %, not {100 * given:g} %")
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
        said = f"Write “{before}, {share}” if {share} % is the share of {before!r}, or “{line},” if that is its name"
        raise Refused("start", "segments", said)
    found = re.fullmatch(r"(.*),\s*(\d+)", name) if comma else None
    if found is not None:
        part = line.rpartition(",")[2].strip()
        raise Refused("start", "segments", f"Use a point in a share: “{found[1].strip()}, {found[2]}.{part}”")


def read_mapping(answers: Answers) -> Mapping:
    """What the columns mean, as answered."""
    if not answers.segment:
        raise Refused("columns", "segment", "Choose at least one column that divides the applicants into segments")
    if not answers.outcome:
        raise Refused("columns", "outcome", "Choose the column that says what became of the accepted")
    used = [*answers.segment, *(name for name in (answers.accepted, answers.outcome, answers.time) if name)]
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise Refused("columns", "outcome", f"The column {twice!r} cannot mean two things")
    if not answers.accepted:
        said = "Choose the column that says who was accepted, or that everyone in the file was"
        raise Refused("columns", "accepted", said)
    everyone = answers.accepted == EVERYONE
    good, bad = answers.meaning("outcome", "yes"), answers.meaning("outcome", "no")
    if not good or not bad:
        missing = "success" if not good else "failure"
        raise Refused("columns", "outcome", f"Say which value of {answers.outcome!r} means a {missing}")
    if not everyone and not answers.meaning("accepted", "yes"):
        raise Refused("columns", "accepted", f"Say which value of {answers.accepted!r} means that someone was accepted")
    maturity = optional(
        "columns", "maturity", "The days until an outcome is certain", answers.maturity, least=0, most=36500
    )
    if maturity and not answers.time:
        raise Refused(
            "columns", "maturity", "Choose the column of the date: without it nobody knows how old an outcome is"
        )
    if answers.as_of and not answers.time:
        raise Refused("columns", "as_of", "Choose the column of the date: without it no row is known to be later")
    return Mapping(
        segments=answers.segment,
        outcome=answers.outcome,
        success=good,
        failure=bad,
        unknown=answers.meaning("outcome", "none"),
        accepted="" if everyone else answers.accepted,
        yes=answers.meaning("accepted", "yes"),
        no=answers.meaning("accepted", "no"),
        time=answers.time,
        group=answers.group,
        score=answers.score,
        maturity=maturity or 0.0,
        as_of=day("columns", "as_of", "The date of the count", answers.as_of) if answers.as_of else "",
        cuts=tuple((column, _cut(column, text)) for column, text in answers.bands if column in answers.segment),
    )


def _cut(column: str, text: str) -> Cut:
    try:
        return read_cut(column, text)
    except InputError as error:
        raise Refused("columns", BANDS + column, sentence(str(error))) from None


def read_segments(path: Path, answers: Answers) -> Segments:
    """The segments with what is believed of each: from the file by a model, or as named by hand."""
    if path.suffix == ".json":
        hand = msgspec.json.decode(path.read_bytes(), type=ByHand)
        names = list(hand.shares)
        rows = shrinkage(Independent(len(names), hand.prior), [0.0] * len(names), [0.0] * len(names), names)
        return Segments(rows, hand.shares, {}, [hand.prior] * len(names))
    mapping = read_mapping(answers)
    try:
        past = read_past(path, mapping)
    except InputError as error:
        raise Refused("columns", "", sentence(str(error))) from None
    counted = past.history.segments
    names = [row.segment for row in counted]
    model = model_of(answers, past, names)
    rows = shrinkage(model, [row.n for row in counted], [row.s for row in counted], names)
    nothing = [0.0] * len(names)
    before = [row.prior for row in shrinkage(model, nothing, nothing, names)]
    return Segments(rows, past.shares, past.groups, before, past)


def model_of(answers: Answers, past: Past, names: list[str]) -> Model:
    """The model that was chosen, of these segments, before it has seen an outcome."""
    kind = one_of("beliefs", "model", "The model", answers.model or "independent", MODELS)
    if kind == "shared":
        return Shared(len(names))
    if kind == "independent":
        return Independent(len(names), UNIFORM)
    if not past.scores:
        raise Refused(
            "beliefs",
            "model",
            "A curve needs a score: choose its column in the step before, and tick it as a segment too",
        )
    groups = [past.groups.get(name, "") for name in names] if past.groups else None
    return Curve([past.scores[name] for name in names], groups)


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
            raise Refused(step, "delay", "Outcomes that come late need applicants and a discount rate a year")
        return told | {"discount": number(step, "discount", "The discount", answers.discount, least=0, below=1)}
    told["arrivals"] = number(step, "arrivals", "The number of applicants a year", answers.arrivals, above=0, most=1e12)
    rate = percent(step, "rate", "The discount rate a year", answers.rate, 0.1, above=0, most=1e6)
    if rate > 1:
        said = f"The discount rate a year would be {100 * rate:g} %: 100 % is the most; type 10 for 10 % a year"
        raise Refused(step, "rate", said)
    told["discount_rate"] = rate
    return told | {"type": "delayed", "label_delay": delay / DAYS} if delay else told


def read_objective(answers: Answers) -> Objective:
    """The same, ready to be divided among the segments."""
    told = objective_told(answers)
    if "discount" in told:
        return Discounted(told["cost"], told["discount"])
    rates = (told["cost"], told["arrivals"], told["discount_rate"])
    return Delayed(*rates, told["label_delay"]) if "label_delay" in told else Discounted.from_rates(*rates)


def too_large(answers: Answers, error: Exception) -> Refused:
    """That a policy could not be solved, with what to change in this form; what the solver would have is not in it."""
    found = str(error).partition(": ask for ")[0]
    if answers.future == "discount":
        field, change = "discount", "a discount further from 1"
    else:
        late = ", fewer days until outcomes are known" if answers.delay else ""
        field, change = "arrivals", f"fewer applicants a year{late} or a higher discount rate"
    said = f"The policy cannot be solved: {found}. Type {change} here, or divide the applicants into more segments"
    return Refused("objective", field, said)


def read_specification(answers: Answers, segments: Segments) -> PolicySpecification:
    """The policy as the service takes it."""
    step, told = "objective", objective_told(answers)
    if not answers.name:
        raise Refused(step, "name", "Give the policy a name")
    floor = percent(step, "floor", "The exploration floor", answers.floor or "0", least=0, below=100)
    cap = optional(step, "cap", "The exposure cap", answers.cap, least=1, most=1e9)
    expiry = optional(step, "expiry", "The days after which an outcome expires", answers.expiry, above=0, most=36500)
    if cap is not None and cap != int(cap):
        raise Refused(step, "cap", f"The exposure cap must be a whole number, not {cap:g}")
    constraints: dict[str, Any] = {"exploration_floor": floor}
    if cap is not None:
        constraints["exposure_cap"] = int(cap)
    made: dict[str, Any] = {
        "name": answers.name,
        "objective": told,
        "features": [] if segments.past is None else list(segments.past.features),
        "segments": [
            {
                "name": row.cell,
                "share": min(segments.shares[row.cell], 1.0),
                "prior": {"n": row.belief.n, "s": row.belief.s},
                "group": segments.groups.get(row.cell),
            }
            for row in segments.rows
        ],
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
            raise Refused(step, "name", _no_name(answers.name)) from None
        raise Refused(step, "", f"The policy cannot be made: {error}") from None
    except (InputError, BadRequest) as error:
        raise Refused(step, "", f"The policy cannot be made: {error}") from None
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


def starting(segments: Segments, objective: Objective, seconds: float = SECONDS) -> list[Forecast]:
    """Which segments would start, the largest first; volumes are told to a hundredth while there is time."""
    starting_volume(UNIFORM, objective.cost, COARSE, MOST_VOLUME)  # what is compiled first does not count
    until = time.monotonic() + seconds
    found = []
    for row in sorted(segments.rows, key=lambda row: -segments.shares[row.cell]):
        share = segments.shares[row.cell]
        volume = share * objective.volume
        needed: float | None = None
        begins: bool | None = None
        if row.belief.mean > objective.cost:
            needed, begins = 0.0, True
        elif time.monotonic() < until:
            bounds = starting_volume(row.belief, objective.cost, COARSE, MOST_VOLUME)
            needed = bounds.midpoint
            begins = None if bounds.lower < volume < bounds.upper else volume >= bounds.upper
            if math.isinf(needed) and volume > MOST_VOLUME:
                begins = None
            if begins and isinstance(objective, ExposureObjective):
                begins = _starts_late(objective.for_share(min(share, 1.0)), row.belief)
        found.append(Forecast(row.cell, row.belief, share, volume, needed, begins))
    return found


def _starts_late(objective: ExposureObjective, belief: Belief) -> bool | None:
    """Whether a first acceptance pays although its label comes late; nothing where that takes long to tell."""
    try:
        return objective.enclose(belief, tolerance=COARSE, seconds=1.0)[1] != 0
    except TooLargeError:
        return None


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

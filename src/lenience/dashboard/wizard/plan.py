"""Turn the answers into a plan: the segments with their beliefs, the objective and the specification."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.offers import Offers
from lenience.core.protected_attributes import protected_among
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
from lenience.files.date_formats import Order, check_order
from lenience.files.economics import Economics
from lenience.history.beliefs import Fitted
from lenience.history.origin import fitted_origin
from lenience.history.past import believe, propose_segments
from lenience.history.past_columns import PastColumns
from lenience.models.own_counts import OwnCounts
from lenience.models.protocol import Shrinkage, shrinkage
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.segments.segments import Segment
from lenience.segments.starting import StartForecast, forecast_starts, segment_starts
from lenience.service.domain import limits
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.specification import PolicySpecification
from lenience.solvers.offers.solve import offer_seconds

MODELS = ("own", "shared", "curve")
DAYS = 365.25
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
COARSE = 1e-3  # tolerance of an estimate of time
SECONDS = 1.5  # for the volumes of one view
Objective = Discounted | Delayed


class ByHand(msgspec.Struct, frozen=True):
    """Segments listed by the user, and one prior for all of them."""

    shares: dict[str, float]
    prior: Belief


class SegmentPlan(msgspec.Struct, frozen=True):
    """The start of the policy: the share of each segment and how its belief is derived."""

    rows: list[Shrinkage]
    shares: dict[str, float]
    groups: dict[str, str]
    before: list[Belief]  # the model's belief about each segment before any outcome
    past: UploadedPast | None = None


def read_hand(text: str, rate: str, worth: str) -> ByHand:
    """Read a list of segments: one per line, with an optional share after the last comma.

    >>> read_hand("north, 60 %\\nsouth, 40", "50", "2").shares
    {'north': 0.6, 'south': 0.4}
    >>> read_hand("north\\nsouth", "70", "10").prior
    Belief(n=10.0, s=7.0)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise FormError("start", "segments", "Name at least one segment, one per line")
    if len(lines) > limits.SEGMENTS:
        raise FormError("start", "segments", f"A policy has at most {limits.SEGMENTS:,} segments, not {len(lines):,}")
    shares: dict[str, float] = {}
    for line in lines:
        name, comma, share = line.rpartition(",")
        name = name.strip() if comma else line
        _name_alone(line, name, bool(comma))
        if name in shares:
            raise FormError("start", "segments", f"The names of segments must be unique; {name!r} appears twice")
        if not name or len(name) > 200:
            raise FormError("start", "segments", f"The name of a segment must have 1 to 200 characters, not {name!r}")
        label = f"The share of {name!r} in percent"
        shares[name] = (
            number("start", "segments", label, share, above=0, most=100) / 100 if comma and share.strip() else math.nan
        )
    if all(share < 0.01 for share in shares.values()) and math.isclose(sum(shares.values()), 0.01, rel_tol=0.02):
        first = f"{1e4 * next(iter(shares.values())):g}"
        message = f"The shares are in percent and add up to only 1%. Type {first} for {first}%"
        raise FormError("start", "segments", message)
    given = math.fsum(share for share in shares.values() if not math.isnan(share))
    left = [name for name, share in shares.items() if math.isnan(share)]
    if given > 1 + 1e-9 or (left and given >= 1):
        raise FormError("start", "segments", f"The shares must add up to at most 100%, not {100 * given:g}%")
    for name in left:
        shares[name] = (1 - given) / len(left)
    mean = percent("start", "rate", "The expected success rate", rate or "50", above=0, below=100)
    size = number("start", "worth", "The confidence in outcomes", worth or "2", above=0, most=1e6)
    return ByHand(shares, Belief(size, size * mean))


def _name_alone(line: str, name: str, comma: bool) -> None:
    """Raise FormError if a name seems to include the share, without a comma or with a decimal comma."""
    ending = re.fullmatch(r"(.*\S)\s+(\d[\d.]*)\s*%?|(.*[^\d.])(\d[\d.]*)\s*%", line) if not comma else None
    if ending is not None:
        before, share = (ending[1] or ending[3]).strip(), ending[2] or ending[4]
        message = f"Type “{before}, {share}” if {share}% is the share of {before!r}, or “{line},” if that is its name"
        raise FormError("start", "segments", message)
    decimal = re.fullmatch(r"(.*),\s*(\d+)", name) if comma else None
    if decimal is not None:
        part = line.rpartition(",")[2].strip()
        raise FormError(
            "start", "segments", f"Type a decimal point in a share: “{decimal[1].strip()}, {decimal[2]}.{part}”"
        )


def read_column_answers(answers: Answers) -> ColumnAnswers:
    """Return the meaning of the columns from the answers."""
    if not answers.segment:
        raise FormError("columns", "segment", "Choose at least one column that divides the applicants into segments")
    if not answers.outcome:
        raise FormError("columns", "outcome", "Choose the column with the outcome of accepted applicants")
    single = (answers.accepted, answers.outcome, answers.time, answers.outcome_time)
    used = [*answers.segment, *(name for name in single if name)]
    repeated = next((name for name in used if used.count(name) > 1), None)
    if repeated is not None:
        raise FormError(
            "columns", "outcome", f"The column {repeated!r} is chosen twice. Choose a different column for each field"
        )
    everyone = check_meanings(answers)
    good, bad = answers.meaning("outcome", "yes"), answers.meaning("outcome", "no")
    maturity = optional(
        "columns", "maturity", "The days until an outcome is final", answers.maturity, least=0, most=36500
    )
    if maturity and not answers.time:
        raise FormError(
            "columns", "maturity", "Choose the date of the decision. It is needed to know how old an outcome is"
        )
    _check_maturing(answers, maturity)
    if answers.as_of and not answers.time:
        raise FormError("columns", "as_of", "Choose the date of the decision. It is needed to ignore later rows")
    check_protected(answers, answers.segment)
    columns = PastColumns(
        segments=answers.segment,
        decide_by_protected=bool(answers.decide_by_protected),
        outcome=answers.outcome,
        success=good,
        failure=bad,
        pending=answers.meaning("outcome", "none"),
        accepted=None if everyone else answers.accepted,
        accepted_values=() if everyone else answers.meaning("accepted", "yes"),
        rejected_values=() if everyone else answers.meaning("accepted", "no"),
        only_given=True,
        time=answers.time or None,
        dates=_dates(answers.dates),
        groups=(answers.group,) if answers.group else (),
        scores=(answers.score,) if answers.score else (),
        maturity=maturity or None,
        outcome_time=answers.outcome_time or None,
        maturing=bool(answers.maturing),
        as_of=day("columns", "as_of", "The date of the count", answers.as_of) if answers.as_of else None,
    )
    columns = msgspec.structs.replace(columns, economics=read_economics(answers))
    return ColumnAnswers(
        columns,
        cuts=tuple((column, _cut(column, text)) for column, text in answers.bands if column in answers.segment),
    )


def check_meanings(answers: Answers) -> bool:
    """Raise FormError if the meaning of decisions or outcomes is incomplete. Return whether everyone was accepted."""
    if not answers.accepted:
        message = "Choose the column that shows who was accepted, or “everyone in the file was accepted”"
        raise FormError("columns", "accepted", message)
    everyone = answers.accepted == EVERYONE
    for meaning, word in (("yes", "success"), ("no", "failure")):
        if not answers.meaning("outcome", meaning):
            raise FormError("columns", "outcome", f"Choose which value of {answers.outcome!r} means {word}")
    if not everyone and not answers.meaning("accepted", "yes"):
        raise FormError("columns", "accepted", f"Choose which value of {answers.accepted!r} means accepted")
    return everyone


def check_protected(answers: Answers, names: Sequence[str]) -> None:
    """Raise FormError if decisions would be made by a protected attribute and the person has not confirmed it."""
    protected = protected_among(names)
    if protected and not answers.decide_by_protected:
        raise FormError(
            "columns",
            "decide_by_protected",
            f"Decisions would differ by {', '.join(protected)}, which is unlawful for lenders in many countries. Do "
            "not decide by it, or confirm below that the law allows it. To measure fairness, send it as monitored with "
            "each decision instead",
            "decides_by_protected",
        )


def _check_maturing(answers: Answers, maturity: float | None) -> None:
    """Raise FormError if the dates do not suffice to let pending outcomes count according to their age."""
    if answers.outcome_time and not answers.time:
        raise FormError("columns", "outcome_time", "Choose the date of the decision too. An age needs both dates")
    if not answers.maturing:
        return
    if not answers.outcome_time:
        message = "Choose the date when the outcome became known, so that pending outcomes count according to their age"
        raise FormError("columns", "outcome_time", message, "missing")
    if maturity:
        message = "Leave the days until an outcome is final empty if pending outcomes count according to their age"
        raise FormError("columns", "maturity", message, "conflicting_fields")


def _dates(text: str) -> Order | None:
    """Return the order of day, month and year that the user chose; None if the column decides."""
    try:
        return check_order(text or None)
    except InputError as error:
        raise FormError("columns", "dates", sentence(str(error)), error.code) from None


def read_economics(answers: Answers) -> Economics | None:
    """Return where the file has the gain and the loss of each applicant, or None if it has neither.

    >>> read_economics(Answers(priced="gain_loss", gain_column="won", loss_column="lost", currency="$")).given
    {'gain': 'won', 'loss': 'lost'}
    """
    kind = one_of("columns", "priced", "What the file has", answers.priced or "none", ("none", "gain_loss", "loan"))
    if kind == "none":
        return None
    labels = {
        "gain_column": "the gain of a success",
        "loss_column": "the loss of a failure",
        "amount_column": "the amount lent",
        "rate_column": "the interest rate",
        "term_column": "the term",
    }
    needed = ("gain_column", "loss_column") if kind == "gain_loss" else ("amount_column", "rate_column", "term_column")
    for name in needed:
        if not getattr(answers, name):
            raise FormError("columns", name, f"Choose the column with {labels[name]}", "missing")
    if len(answers.currency) > limits.CURRENCY or not answers.currency.isprintable():
        message = f"The currency must have at most {limits.CURRENCY} characters, such as $ or EUR"
        raise FormError("columns", "currency", message)
    fields: dict[str, Any] = {name.removesuffix("_column"): getattr(answers, name) for name in needed}
    if kind == "loan":
        for name in ("loss_given_default", "funding_rate", "rate_unit", "term_unit"):
            if getattr(answers, name):
                fields[name] = getattr(answers, name)
    try:
        return Economics(**fields, currency=answers.currency)
    except InputError as error:
        raise FormError("columns", "priced", sentence(str(error)), error.code) from None


def _cut(column: str, text: str) -> Cut:
    try:
        return read_cut(column, text)
    except InputError as error:
        raise FormError("columns", BANDS + column, sentence(str(error)), error.code) from None


def read_segments(path: Path, answers: Answers) -> SegmentPlan:
    """Return the segments with their beliefs: from the file with a model, or as listed by the user."""
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
        if "dates" in error.fields:
            message = f"The column {answers.time!r} {error.reason}. Choose whether the day or the month comes first"
            raise FormError("columns", "dates", message, error.code) from None
        raise FormError("columns", "", sentence(str(error)), error.code) from None
    fitted = believe_as_answered(answers, past)
    before = fitted.beliefs_before
    return SegmentPlan(fitted.shrinkage, past.shares, past.groups, [before[name] for name in past.names], past)


def believe_as_answered(
    answers: Answers, past: UploadedPast, counts: Mapping[str, tuple[float, float]] | None = None
) -> Fitted:
    """Return the beliefs of the chosen model, from the file's outcomes or from other counts."""
    model = one_of("beliefs", "model", "The model", answers.model or "own", MODELS)
    if model == "curve" and not past.scores:
        raise FormError(
            "beliefs",
            "model",
            "A curve needs a score. Choose its column in the previous step, and select it as a segment too",
        )
    return believe(past, model, counts=counts)


def read_cost(answers: Answers, segments: SegmentPlan | None = None) -> float:
    """Return the break-even success rate: as typed, from gain and loss, or the mean of the applicants in the file."""
    step = "objective"
    known = one_of(step, "known", "The break-even", answers.known, ("rate", "money", "file"))
    if known == "file":
        return offers_in_file(segments).mean_cost
    if known == "rate":
        return percent(step, "cost", "The break-even success rate", answers.cost, above=0, below=100)
    gain, loss = _money(answers)
    return loss / (gain + loss)


def read_unit(answers: Answers) -> float:
    """Return the money value of one unit: gain plus loss, or 1 if they are not given.

    A success earns 1 − c of a unit and a failure loses c of it, which are the gain and the loss.
    """
    return sum(_money(answers)) if answers.known == "money" else 1.0


def _money(answers: Answers) -> tuple[float, float]:
    gain = number("objective", "gain", "The gain per success", answers.gain, above=0, most=1e12)
    return gain, number("objective", "loss", "The loss per failure", answers.loss, above=0, most=1e12)


def offers_in_file(segments: SegmentPlan | None) -> Offers:
    """Return the offers of all applicants in the file, or raise FormError if it has none."""
    if segments is None or segments.past is None or not segments.past.history.has_offers:
        message = "The file has no gains and losses yet. Choose their columns in step 2, or enter one break-even"
        raise FormError("objective", "known", message)
    return segments.past.history.offers_of_all()


def read_offers(answers: Answers, segments: SegmentPlan | None) -> Offers | None:
    """Return the offers of the objective: those of the file, or one for all with a currency; None for one break-even.

    >>> read_offers(Answers(known="money", gain="200", loss="800", money_currency="$"), None).cost
    (0.8,)
    """
    if answers.known == "file":
        return offers_in_file(segments)
    if answers.known != "money" or not answers.money_currency:
        return None
    gain, loss = _money(answers)
    if len(answers.money_currency) > limits.CURRENCY or not answers.money_currency.isprintable():
        message = f"The currency must have at most {limits.CURRENCY} characters, such as $ or EUR"
        raise FormError("objective", "money_currency", message)
    return Offers((gain + loss,), (loss / (gain + loss),), currency=answers.money_currency)


def objective_fields(answers: Answers, segments: SegmentPlan | None = None) -> dict[str, Any]:
    """Return the objective as the fields of a specification."""
    step, fields = "objective", {"type": "discounted", "cost": read_cost(answers, segments)}
    offers = read_offers(answers, segments)
    delay = optional(step, "delay", "The days until an outcome is known", answers.delay, least=0, most=36_500)
    if offers is not None and delay and answers.future == "yearly" and answers.known != "file":
        offers = None  # the policy keeps one break-even, and the page shows the money value of a unit
    if offers is not None:
        fields = {"type": "discounted", "offers": msgspec.to_builtins(offers)}
    if one_of(step, "future", "How the future counts", answers.future, ("yearly", "discount")) == "discount":
        if delay and answers.delay != answers.usual:  # a delay that the form suggested does not count
            raise FormError(step, "delay", "Late outcomes need the number of applicants and the discount rate per year")
        return fields | {"discount": number(step, "discount", "The discount", answers.discount, least=0, below=1)}
    fields["arrivals"] = number(
        step, "arrivals", "The number of applicants per year", answers.arrivals, above=0, most=1e12
    )
    rate = percent(step, "rate", "The discount rate per year", answers.rate, 0.1, above=0, most=1e6)
    if rate > 1:
        message = f"The discount rate per year must be at most 100%, not {100 * rate:g}%. Type 10 for 10% per year"
        raise FormError(step, "rate", message)
    fields["discount_rate"] = rate
    return fields | {"type": "delayed", "label_delay": delay / DAYS} if delay else fields


def read_objective(answers: Answers, segments: SegmentPlan | None = None) -> Objective:
    """Return the objective of the whole policy, before it is divided among the segments."""
    fields = objective_fields(answers, segments)
    if "offers" in fields:
        return msgspec.convert(fields, Delayed) if "label_delay" in fields else msgspec.convert(fields, Discounted)
    if "discount" in fields:
        return Discounted(fields["cost"], fields["discount"])
    rates = (fields["cost"], fields["arrivals"], fields["discount_rate"])
    return Delayed(*rates, fields["label_delay"]) if "label_delay" in fields else Discounted.from_rates(*rates)


def unsolved(error: BadRequest) -> FormError:
    """Return the error for a policy that could not be solved.

    Its hint is about segments, because this form has no settings of the solver and its other answers are facts.
    """
    return FormError(
        "objective",
        "",
        f"The policy cannot be solved: {error.detail}",
        "too_large" if error.code == "too_large" else "invalid_value",
    )


def read_specification(answers: Answers, segments: SegmentPlan) -> PolicySpecification:
    """Return the policy as the service takes it."""
    objective = objective_fields(answers, segments)
    made = read_settings(answers) | {
        "objective": objective,
        "features": [] if segments.past is None else list(segments.past.features),
        "segments": _proposed_segments(answers, segments),
    }
    if segments.past is not None:
        cost = read_cost(answers, segments)
        origin = fitted_origin(segments.past.history.origin, answers.model or "own", cost)
        made["origin"] = msgspec.to_builtins(origin)
    if protected_among(answers.segment):
        made |= {"decide_by_protected": True, "protected": protected_among(answers.segment)}
    return checked_specification(made)


def read_settings(answers: Answers) -> dict[str, Any]:
    """Return name, purpose, constraints and expiry as fields of a specification."""
    step = "objective"
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
    made: dict[str, Any] = {"name": answers.name, "constraints": constraints, "description": answers.description}
    if expiry is not None:
        made["expire_after_days"] = expiry
    try:
        msgspec.convert(answers.name, limits.Name)
    except msgspec.ValidationError:
        raise FormError(step, "name", _invalid_name(answers.name)) from None
    return made


def checked_specification(made: dict[str, Any]) -> PolicySpecification:
    """Return the specification of its fields, or raise FormError if it is invalid."""
    try:
        specification: PolicySpecification = msgspec.convert(made, PolicySpecification)
        specification.problems()
    except (msgspec.ValidationError, InputError, BadRequest) as error:
        raise FormError("objective", "", f"The policy is invalid: {error}") from None
    return specification


def _proposed_segments(answers: Answers, segments: SegmentPlan) -> list[dict[str, Any]]:
    """Return the segments as the service takes them, with their own offers if the file has any."""
    proposed = propose_segments(segments.shares, {row.cell: row.belief for row in segments.rows}, segments.groups)
    labels = {row.cell: row.labels for row in segments.rows if row.labels}
    for segment in proposed:
        if segment["name"] in labels:
            segment["past_outcomes"] = labels[segment["name"]]
    if answers.known != "file" or segments.past is None:
        return proposed
    own = segments.past.history.offers()
    return [
        {**segment, "offers": msgspec.to_builtins(own[segment["name"]])} if segment["name"] in own else segment
        for segment in proposed
    ]


def _invalid_name(name: str) -> str:
    """Explain why a name is invalid, and suggest another.

    >>> print(_invalid_name("My cards, 2025"))
    The name may have up to 64 letters, digits, dots, dashes and underscores, not 'My cards, 2025'. Try 'My-cards-2025'
    >>> _invalid_name("Ratenkredit Süd").partition("Try ")[2]
    "'Ratenkredit-Sued'"
    """
    rule = "The name may have up to 64 letters, digits, dots, dashes and underscores"
    plain = unicodedata.normalize("NFKD", name.translate(GERMAN)).encode("ascii", "ignore").decode()
    suggestion = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:64]
    more = f"not {name[:64]!r}. Try {suggestion!r}" if suggestion else "and must begin with a letter or digit"
    return f"{rule}, {more}"


def starting(segments: SegmentPlan, objective: Objective, seconds: float = SECONDS) -> list[StartForecast]:
    """Forecast which segments would start, the largest first."""
    beliefs = {row.cell: row.belief for row in segments.rows}
    own = {}
    if objective.offers is not None and segments.past is not None and segments.past.history.has_offers:
        own = segments.past.history.offers()
    cells = [
        Segment(
            name,
            min(segments.shares[name], 1.0),
            objective.with_offers(own[name]) if name in own else objective,
            belief,
            segments.groups.get(name, ""),
        )
        for name, belief in beliefs.items()
    ]
    return forecast_starts(cells, seconds) if objective.offers is None else _offer_starts(cells, seconds)


def _offer_starts(cells: list[Segment], seconds: float) -> list[StartForecast]:
    """Forecast which segments with offers start, the largest first. What takes too long is not known."""
    until = time.monotonic() + seconds
    rows = []
    for cell in sorted(cells, key=lambda cell: -cell.share):
        belief, offers = cell.prior, cell.objective.offers
        assert isinstance(belief, Belief)
        assert offers is not None
        needed: float | None = None
        starts: bool | None = None
        if belief.mean > min(offers.cost):
            needed, starts = 0.0, True
        elif time.monotonic() < until and offer_seconds(belief, offers, cell.own.discount, 1, COARSE) < seconds:
            starts = segment_starts(cell)
        rows.append(StartForecast(cell.name, belief, cell.share, cell.volume, needed, starts))
    return rows


def start_mark(row: StartForecast) -> tuple[str, str]:
    """Return the kind of the mark that a page shows for a forecast, and its word."""
    if row.starts is None:
        return "plain", "not known yet"
    if not row.starts:
        return "reject", "never starts"
    return ("accept", "accept") if row.needed == 0.0 else ("learn", "accept to learn")


def untouched_score(answers: Answers) -> str:
    """Return a warning if the chosen score is not a segment column, else an empty text.

    >>> untouched_score(Answers(segment=("score",), score="score"))
    ''
    """
    if not answers.score or answers.score in answers.segment:
        return ""
    return (
        f"The score {answers.score!r} is not selected as a segment, so each segment gets its members' mean score. "
        "These means may be nearly the same. To decide by the score, select it too, in bands such as 300-499."
    )

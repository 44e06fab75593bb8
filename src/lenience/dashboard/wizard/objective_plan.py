"""Turn the answers about the objective into a policy: break-evens, limits, the specification, and who would start."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Mapping
from typing import Any

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.offers import Offers
from lenience.core.protected_attributes import protected_among
from lenience.dashboard.wizard.answers import (
    Answers,
    FormError,
    number,
    one_of,
    optional,
    percent,
    sentence,
)
from lenience.dashboard.wizard.plan import SegmentPlan, read_doubt
from lenience.history.origin import fitted_origin
from lenience.history.specification import (
    PolicySettings,
    check_segment_costs,
    make_specification,
    one_offer,
    segment_objectives,
)
from lenience.objectives.delayed import Delayed
from lenience.objectives.discounted import Discounted
from lenience.segments.column_parts import ColumnParts
from lenience.segments.segments import Segment
from lenience.segments.starting import StartForecast, forecast_starts, segment_starts
from lenience.service.domain import limits
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.specification import PolicySpecification
from lenience.solvers.offers.solve import offer_seconds

DAYS = 365.25
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
COARSE = 1e-3  # tolerance of an estimate of time
SECONDS = 1.5  # for the volumes of one view
Objective = Discounted | Delayed


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
    return one_offer(gain, loss, answers.money_currency)


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
    objective: Objective = msgspec.convert(objective_fields(answers, segments), Objective)
    return objective


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
    objective = read_objective(answers, segments)
    settings = msgspec.structs.replace(
        read_settings(answers),
        segment_costs=read_segment_costs(answers, segments),
        doubt=read_doubt(answers),
        protected=tuple(protected_among(answers.segment, answers.monitor)),
        monitored=answers.monitor,
    )
    cells: tuple[ColumnParts, ...] = ()
    origin = None
    if segments.past is not None:
        history = segments.past.history
        cells, origin = history.cells, fitted_origin(history.origin, answers.model or "own", objective)
    offers = _own_offers(answers, segments)
    return checked_specification(
        make_specification(settings, objective, segments.rows, segments.shares, segments.groups, offers, cells, origin)
    )


def read_settings(answers: Answers) -> PolicySettings:
    """Return name, purpose, constraints and expiry."""
    step = "objective"
    if not answers.name:
        raise FormError(step, "name", "Give the policy a name")
    floor = percent(step, "floor", "The exploration floor", answers.floor or "0", least=0, below=100)
    cap = optional(step, "cap", "The exposure cap", answers.cap, least=1, most=1e9)
    expiry = optional(step, "expiry", "The days after which an outcome expires", answers.expiry, above=0, most=36500)
    if cap is not None and cap != int(cap):
        raise FormError(step, "cap", f"The exposure cap must be a whole number, not {cap:g}")
    check_name(answers.name, step)
    return PolicySettings(
        name=answers.name,
        description=answers.description,
        exploration_floor=floor,
        exposure_cap=None if cap is None else int(cap),
        expire_after_days=expiry,
    )


def check_name(name: str, step: str) -> None:
    """Raise FormError if a policy cannot have this name."""
    try:
        msgspec.convert(name, limits.Name)
    except msgspec.ValidationError:
        raise FormError(step, "name", _invalid_name(name)) from None


def read_segment_costs(answers: Answers, segments: SegmentPlan) -> dict[str, float]:
    """Return the break-evens of single segments: one a line, the name, a comma and the percentage."""
    costs: dict[str, float] = {}
    for line in filter(None, (line.strip() for line in answers.segment_costs.splitlines())):
        name, comma, text = (part.strip() for part in line.rpartition(","))
        if not comma or not name:
            message = f"Type a segment and its break-even on each line, such as “{next(iter(segments.shares))}, 85”"
            raise FormError("objective", "segment_costs", f"{message}, not {line!r}")
        if name in costs:
            raise FormError("objective", "segment_costs", f"The segment {name!r} has two break-evens", "duplicate")
        costs[name] = percent("objective", "segment_costs", f"The break-even of {name!r}", text, above=0, below=100)
    try:
        check_segment_costs(costs, segments.shares)
    except InputError as error:
        raise FormError("objective", "segment_costs", sentence(error.reason), error.code) from None
    if costs and answers.known == "file":
        message = "Every applicant has its own break-even, from the file. Leave the break-evens of segments empty"
        raise FormError("objective", "segment_costs", message, "conflicting_fields")
    return costs


def checked_specification(made: dict[str, Any]) -> PolicySpecification:
    """Return the specification of its fields, or raise FormError if it is invalid."""
    try:
        specification: PolicySpecification = msgspec.convert(made, PolicySpecification)
        specification.problems()
    except (msgspec.ValidationError, InputError, BadRequest) as error:
        raise FormError("objective", "", f"The policy is invalid: {error}") from None
    return specification


def _own_offers(answers: Answers, segments: SegmentPlan) -> dict[str, Offers]:
    """Return the offers of each segment, if the file has them and they decide."""
    if answers.known != "file" or segments.past is None:
        return {}
    return segments.past.history.offers()


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


def starting(
    segments: SegmentPlan, objective: Objective, seconds: float = SECONDS, costs: Mapping[str, float] | None = None
) -> list[StartForecast]:
    """Forecast which segments would start, the largest first."""
    own: dict[str, Offers] = {}
    if objective.offers is not None and segments.past is not None and segments.past.history.has_offers:
        own = segments.past.history.offers()
    goals = segment_objectives(objective, list(segments.shares), own, costs or {})
    cells = [
        Segment(
            row.cell,
            min(segments.shares[row.cell], 1.0),
            goals[row.cell] if isinstance(goals, dict) else goals,
            row.belief,
            segments.groups.get(row.cell, ""),
        )
        for row in segments.rows
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

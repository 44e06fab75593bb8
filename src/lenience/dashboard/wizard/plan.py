"""Turn the answers about a file into a plan: the meaning of its columns, and the segments with their beliefs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
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
from lenience.dashboard.wizard.hand import ByHand
from lenience.dashboard.wizard.past_file import UploadedPast, read_past
from lenience.files.date_formats import Order, check_order
from lenience.files.economics import Economics
from lenience.history.bands import Cut, read_cut
from lenience.history.beliefs import MODELS, Fitted
from lenience.history.past import believe
from lenience.history.past_columns import PastColumns
from lenience.models.own_counts import OwnCounts
from lenience.models.protocol import Shrinkage, shrinkage
from lenience.service.domain import limits


class SegmentPlan(msgspec.Struct, frozen=True):
    """The start of the policy: the share of each segment and how its belief is derived."""

    rows: list[Shrinkage]
    shares: dict[str, float]
    groups: dict[str, str]
    before: list[Belief]  # the model's belief about each segment before any outcome
    past: UploadedPast | None = None


def read_column_answers(answers: Answers) -> PastColumns:
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
    check_protected(answers, answers.segment, answers.monitor)
    half_life = optional(
        "columns", "half_life", "The days after which an outcome counts half", answers.half_life, above=0, most=36500
    )
    if half_life and not answers.time:
        raise FormError("columns", "half_life", "Choose the date of the decision. It is needed to know how old it is")
    price_bands = optional("columns", "price_bands", "The number of price bands", answers.price_bands, least=2, most=20)
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
        half_life=half_life,
        price_bands=None if price_bands is None else int(price_bands),
        outcome_time=answers.outcome_time or None,
        maturing=bool(answers.maturing),
        as_of=day("columns", "as_of", "The date of the count", answers.as_of) if answers.as_of else None,
    )
    return msgspec.structs.replace(
        columns,
        economics=read_economics(answers),
        bands=tuple((column, _cut(column, text)) for column, text in answers.bands if column in answers.segment),
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


def check_protected(answers: Answers, names: Sequence[str], monitored: Sequence[str] = ()) -> None:
    """Raise FormError if decisions would be made by a protected attribute and the person has not confirmed it."""
    protected = protected_among(names, monitored)
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
            message = f"Choose the column with {labels[name]}, or type one value for all"
            raise FormError("columns", name, message, "missing")
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
    return believe(past, model, read_prior(answers), counts)


def read_prior(answers: Answers) -> Belief:
    """Return what is known of a segment before any outcome; Beta(1, 1) if nothing is typed.

    >>> read_prior(Answers(prior_rate="70", prior_worth="10"))
    Belief(n=10.0, s=7.0)
    """
    mean = percent("beliefs", "prior_rate", "The expected success rate", answers.prior_rate or "50", above=0, below=100)
    size = number("beliefs", "prior_worth", "The confidence in outcomes", answers.prior_worth or "2", above=0, most=1e6)
    return Belief(size, size * mean)


def read_doubt(answers: Answers) -> float | None:
    """Return the probability that the starting estimate is wrong, or None."""
    if not answers.doubt:
        return None
    doubt = percent("beliefs", "doubt", "The doubt in the starting estimate", answers.doubt, least=0, below=100)
    return doubt or None


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

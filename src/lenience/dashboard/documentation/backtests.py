"""A back-test of a version on a file of past decisions, read as the version's origin says.

The later half of the applicants with known outcomes is decided again, with only what was known when it began. If
nothing was, all of them are decided from the start of the policy, without evidence. The origin of the version says
which column holds what and which words mean success, so nobody has to name them again.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lenience.core.belief import Belief
from lenience.core.data_origin import PolicyOrigin, digest_of_file
from lenience.core.errors import InputError
from lenience.dashboard.wizard import past_file
from lenience.dashboard.wizard.backtest import Backtest, backtest, halved
from lenience.dashboard.wizard.past_file import UploadedPast
from lenience.dashboard.wizard.upload_reader import save_upload
from lenience.files.economics import FIELDS, Economics
from lenience.history.origin import ALL_ACCEPTED, EMPTY
from lenience.history.past import believe
from lenience.history.past_columns import PastColumns
from lenience.history.past_rows import KnownOutcome
from lenience.history.segment_history import SEPARATOR
from lenience.service.domain.specification import PolicySpecification

DAYS = 365.25
MEANINGS = ("success", "failure", "pending", "accepted", "rejected")
NO_ORIGIN = "The version has no recorded origin, so it is not known what the columns of the file mean."
BY_FEATURES = (
    "A version that decides by features is not back-tested here. Run lenience replay on the file instead: it compares "
    "policies with features in order of time."
)
NO_DATES = (
    "A back-test needs dates, to divide the file into an earlier and a later half. The origin names no such column."
)
NO_OUTCOMES = "The file has no outcome that is final."
TOO_SLOW = "Every segment takes too long to solve."


class BacktestFacts(msgspec.Struct, frozen=True):
    """A back-test, or why there is none.

    Parameters
    ----------
    file : str
        The name of the file.
    digest : str
        Its SHA-256 digest.
    same_file : bool
        Whether it is the file that the version was fitted to.
    trouble : str
        Why there is no result; empty if there is one.
    result : Backtest or None
        The result.
    since : str
        The date from which applicants were decided again.
    known_before : int
        The number of outcomes that were known then.
    rejected : int
        The number of applicants since then who were rejected in the past, whose outcomes nobody knows.
    maturity : float or None
        Days after which outcomes are final. Younger applicants are left out.
    cold : bool
        Whether no outcome was known when the later half began, so that all applicants are decided from the start.
    """

    file: str
    digest: str
    same_file: bool
    trouble: str = ""
    result: Backtest | None = None
    since: str = ""
    known_before: int = 0
    rejected: int = 0
    maturity: float | None = None
    cold: bool = False


def backtest_on_file(specification: PolicySpecification, path: Path) -> BacktestFacts:
    """Return the back-test of a version on a file.

    Parameters
    ----------
    specification : PolicySpecification
        The version.
    path : Path
        A CSV, Excel or Parquet file with the columns that the origin of the version names.

    Raises
    ------
    InputError
        If the file does not exist, cannot be read, or lacks a column.
    """
    if not path.is_file():
        raise InputError("data", str(path), "a file that exists", code="missing_file")
    digest, origin = digest_of_file(path), specification.origin or None
    facts = BacktestFacts(path.name, digest, origin is not None and origin.digest == digest)
    if origin is None:
        return msgspec.structs.replace(facts, trouble=NO_ORIGIN)
    if specification.feature_spec is not None:
        return msgspec.structs.replace(facts, trouble=BY_FEATURES)
    if "time" not in origin.columns:
        return msgspec.structs.replace(facts, trouble=NO_DATES)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "past.parquet"
        save_upload(path, table, origin.settings.get("sheet"), path.name)
        return _tested(facts, specification, origin, table)


def _tested(
    facts: BacktestFacts, specification: PolicySpecification, origin: PolicyOrigin, table: Path
) -> BacktestFacts:
    cuts = tuple((feature.name, tuple(feature.edges)) for feature in specification.features if feature.edges)
    columns = msgspec.structs.replace(recorded_columns(origin, same_file=facts.same_file), bands=cuts)
    past = past_file.read_past(table, columns)
    immature = past.history.immaturity
    if columns.maturity is None and immature is not None and immature.maturity:
        # Failures become known earlier than successes: only applicants who are old enough are decided again.
        columns = msgspec.structs.replace(columns, maturity=immature.maturity)
        past = past_file.read_past(table, columns)
    known = past_file.known_outcomes(table, columns, past.history)
    objective = specification.objective
    offers = None
    if columns.economics is not None and objective.offers is not None:
        offers = past_file.offers_of_rows(table, columns, [one.place for one in known])
        known = [one for one in known if one.place in offers]
    elif objective.offers is not None:
        offers = {one.place: objective.offers.offers_of(0)[0] for one in known}
    if not known:
        return msgspec.structs.replace(facts, trouble=NO_OUTCOMES)
    wait = max(objective.label_delay, (columns.maturity or 0.0) / DAYS)
    earlier, later = halved(known, wait)
    cold = not earlier
    if cold:
        later = known
    result = backtest(specification, _beliefs(past, origin.model, earlier), later, offers=offers)
    if not result.segments:
        return msgspec.structs.replace(facts, trouble=TOO_SLOW)
    since, rejected = past_file.rejected_since(table, columns, past.history, later[0].years or 0.0)
    return msgspec.structs.replace(
        facts,
        result=result,
        since=f"{since:%Y-%m-%d}",
        known_before=len(earlier),
        rejected=rejected,
        maturity=columns.maturity,
        cold=cold,
    )


def recorded_columns(origin: PolicyOrigin, *, same_file: bool) -> PastColumns:
    """Return the meaning of a file's columns as an origin records it.

    Parameters
    ----------
    origin : PolicyOrigin
        The origin.
    same_file : bool
        Whether it is the file of the origin, so that the same date of the count applies.
    """
    columns, settings = origin.columns, origin.settings
    if "price_bands" in settings:
        raise InputError.because(
            "cannot be back-tested here, because its segments are divided by price", "data", label="the version"
        )
    words = {name: _words(settings.get(name, "")) for name in MEANINGS}
    accepted = columns.get("accepted")
    maturity = settings.get("maturity_days")
    return PastColumns(
        segments=tuple(columns["segment"].split(SEPARATOR)),
        outcome=columns["outcome"],
        accepted=None if accepted in (None, ALL_ACCEPTED) else accepted,
        success=words["success"],
        failure=words["failure"],
        pending=words["pending"],
        accepted_values=words["accepted"],
        rejected_values=words["rejected"],
        # A long list of words was cut when it was recorded. The usual words then count too.
        only_given=not any(text.endswith("…") for text in settings.values()),
        time=columns.get("time"),
        outcome_time=columns.get("outcome_time"),
        scores=tuple(columns["score"].split(SEPARATOR)) if "score" in columns else (),
        maturity=None if maturity is None else float(maturity),
        dates=settings.get("dates"),  # type: ignore[arg-type]
        as_of=settings.get("as_of") if same_file else None,
        economics=_economics(origin.economics),
        decide_by_protected=True,  # the version was allowed to, and nothing is decided here
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.removesuffix("…").split(", ") if word and word != EMPTY)


def _economics(recorded: dict[str, str]) -> Economics | None:
    """Return where gains and losses are, or None if the break-even is the same for all."""
    given = {name: recorded[name] for name in (*FIELDS, "term_unit", "rate_unit", "currency") if name in recorded}
    return Economics(**given) if any(name in FIELDS for name in given) else None  # type: ignore[arg-type]


def _beliefs(past: UploadedPast, model: str, outcomes: Sequence[KnownOutcome]) -> dict[str, Belief]:
    """Return the model's beliefs from these outcomes alone."""
    labels = Counter(outcome.segment for outcome in outcomes)
    successes = Counter(outcome.segment for outcome in outcomes if outcome.success)
    counts = {name: (float(labels[name]), float(successes[name])) for name in labels}
    return believe(past, model, counts=counts).beliefs

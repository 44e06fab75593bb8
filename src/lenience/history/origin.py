"""The origin of a history: file and digest, rows used and left out, and what its columns and values mean.

Words for success or acceptance are recorded as they occur in the file, also the usual ones that nobody had to name.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.core.data_origin import SOFTWARE, PolicyOrigin, file_identity, named_texts, short
from lenience.core.formatting import percent
from lenience.files.economics import Economics
from lenience.history.counts import BAD_ROWS, NO_ECONOMICS, OUTCOME_DATES
from lenience.history.past_columns import PastColumns
from lenience.history.segment_history import SEPARATOR
from lenience.history.statuses import FALSE, TRUE, UNKNOWN, GivenWords, decision_codes, outcome_codes, trimmed

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from lenience.core.objective import Objective
    from lenience.history.history import History

MOST_VALUES = 20  # of each meaning
MOST_READ = 200_000  # rows whose values are recorded
MOST_PAIRS = 1_000  # of an outcome and a decision
OUTCOMES = {TRUE: "success", FALSE: "failure", UNKNOWN: "pending"}
DECISIONS = {TRUE: "accepted", FALSE: "rejected"}
EMPTY = "(empty)"
ALL_ACCEPTED = "(everyone was accepted)"
LATER = "decided after the date of the count"
LOAN_FORMULA = "a success earns the interest of equal monthly payments minus funding; a default loses its share"
PLAIN_FORMULA = "a success earns the gain and a failure loses the loss"


def value_meanings(backend: Any, table: ir.Table, accepted: str, outcome: str, words: GivenWords) -> dict[str, str]:
    """Return the values of the file by their meaning: success, failure, pending, accepted and rejected.

    Only the first rows are read: a large text file would be parsed once more for it.
    """
    import ibis

    first = table.limit(MOST_READ)
    decision = decision_codes(backend, first[accepted], words)
    label = outcome_codes(backend, first[outcome], words)
    rows = first.select(
        outcome=trimmed(first[outcome]).cast("string"),
        decision=trimmed(first[accepted]).cast("string"),
        outcome_means=label.meaning(label.value),
        decision_means=decision.meaning(decision.value),
    )
    pairs = rows.group_by("outcome", "decision", "outcome_means", "decision_means").agg(rows=rows.count())
    pairs = pairs.order_by(ibis.desc("rows"), "outcome", "decision").limit(MOST_PAIRS)
    found: dict[str, dict[str, None]] = {name: {} for name in (*OUTCOMES.values(), *DECISIONS.values())}
    for row in backend.to_pyarrow(pairs).to_pylist():
        taken = DECISIONS.get(row["decision_means"])
        if taken is not None:
            found[taken][row["decision"] or EMPTY] = None
        if taken == "accepted" and row["outcome_means"] in OUTCOMES:  # outcomes of the rejected mean nothing
            found[OUTCOMES[row["outcome_means"]]][row["outcome"] or EMPTY] = None
    return {name: ", ".join(list(values)[:MOST_VALUES]) for name, values in found.items() if values}


def economics_record(economics: Economics | None) -> dict[str, str]:
    """Return how gain and loss were computed, as an origin records it.

    >>> economics_record(Economics(gain="won", loss=800, currency="$"))["loss"]
    '800'
    """
    if economics is None:
        return {}
    given: dict[str, Any] = {
        name: f"{value:g}" if isinstance(value, float | int) else value for name, value in economics.given.items()
    }
    units = {"term_unit": economics.term_unit, "rate_unit": economics.rate_unit, "currency": economics.currency}
    formula = LOAN_FORMULA if "amount" in given else PLAIN_FORMULA
    return named_texts({**given, **units, "formula": formula})


def history_origin(
    history: History,
    source: object,
    connection: object,
    columns: Mapping[str, str | None],
    settings: Mapping[str, Any],
    economics: Economics | None,
    span: tuple[dt.date | None, dt.date | None],
) -> PolicyOrigin:
    """Return the origin of a history. ``span`` has the dates of the first and of the last decision."""
    reasons = BAD_ROWS | OUTCOME_DATES | NO_ECONOMICS
    left_out = {reasons[kind]: rows for kind, rows in history.bad.items() if rows}
    if history.later:
        left_out[LATER] = history.later
    file, digest = file_identity(source, connection)
    rows = history.segments
    return PolicyOrigin(
        file=file,
        digest=digest,
        rows=history.rows - history.bad_rows - history.later,
        left_out=history.bad_rows + history.later,
        why_left_out=left_out,
        columns=named_texts({"segment": SEPARATOR.join(history.columns), **columns}),
        settings=named_texts(settings),
        first=None if span[0] is None else f"{span[0]:%Y-%m-%d}",
        last=None if span[1] is None else f"{span[1]:%Y-%m-%d}",
        software=SOFTWARE,
        accepted=sum(row.accepted for row in rows),
        labels=sum(row.labels for row in rows),
        successes=sum(row.successes for row in rows),
        pending=sum(row.pending for row in rows),
        economics=economics_record(economics),
    )


def feature_origin(
    table: Mapping[str, Sequence[Any]],
    outcomes: Sequence[float],
    taken: Sequence[bool],
    columns: Mapping[str, str | None],
    model: str,
    economics: Economics | None,
    objective: Objective,
    identity: tuple[str, str],
) -> PolicyOrigin:
    """Return the origin of a policy with features.

    Parameters
    ----------
    table
        The columns of the file.
    outcomes, taken
        1 for a success, 0 for a failure and NaN if the outcome is not known; and who was accepted.
    columns
        The column of each field: ``outcome``, ``accepted``, and others for the record.
    model
        The model's name.
    economics, objective
        How gain and loss were computed, and the objective with its break-even if they were not.
    identity
        The file's name and digest.
    """
    words: dict[str, Counter[str]] = {}
    outcome, accepted = columns["outcome"], columns["accepted"]
    for i, (y, yes) in enumerate(zip(outcomes, taken, strict=True)):
        if yes and outcome is not None:
            meaning = "pending" if y != y else "success" if y else "failure"
            words.setdefault(meaning, Counter())[_cell(table[outcome][i])] += 1
        if accepted is not None:
            words.setdefault("accepted" if yes else "rejected", Counter())[_cell(table[accepted][i])] += 1
    settings = {name: ", ".join(value for value, _ in of.most_common(MOST_VALUES)) for name, of in words.items()}
    labels, accepted_rows = sum(y == y for y in outcomes), sum(map(bool, taken))
    return PolicyOrigin(
        file=identity[0],
        digest=identity[1],
        rows=len(outcomes),
        columns=named_texts({**columns, "accepted": accepted or ALL_ACCEPTED}),
        settings=named_texts(settings),
        model=model,
        software=SOFTWARE,
        accepted=accepted_rows,
        labels=labels,
        successes=sum(y == 1 for y in outcomes),
        pending=accepted_rows - labels,
        economics=economics_record(economics) or {"break_even": percent(_break_even(objective), 4)},
    )


def _cell(value: object) -> str:
    return EMPTY if value is None or value != value or not str(value).strip() else str(value).strip()


def _break_even(objective: Objective) -> float:
    return objective.cost if objective.offers is None else objective.offers.mean_cost


def fitted_origin(origin: PolicyOrigin | None, model: str, objective: Objective) -> PolicyOrigin | None:
    """Return the origin of a policy: that of its history, with the model and, without amounts, the break-even."""
    if origin is None:
        return None
    economics = origin.economics or {"break_even": percent(_break_even(objective), 4)}
    return msgspec.structs.replace(origin, model=short(model), economics=economics)


def with_groups_and_scores(origin: PolicyOrigin | None, columns: PastColumns) -> PolicyOrigin | None:
    """Return an origin that also names the columns of groups and scores."""
    if origin is None:
        return None
    more = {"group": SEPARATOR.join(columns.groups), "score": SEPARATOR.join(columns.scores)}
    return msgspec.structs.replace(origin, columns=origin.columns | named_texts(more))

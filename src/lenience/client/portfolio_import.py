"""Read a file of past decisions and send it to a running service, in batches.

The whole file is read and checked before anything is sent, because imported decisions stay in the policy's log. Rows
are sent in the order of their dates. It is safe to import a file again, also after an interruption: the service knows
each row by the digest of the file and its position. A newer file of the same loans brings new loans and new outcomes,
if the loans have references.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lenience.core.data_origin import SOFTWARE, digest_of_file
from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.core.request_limits import BATCH_SIZE
from lenience.files.columns import read_columns
from lenience.files.date_formats import Order, read_dates
from lenience.files.outcome_words import merge_words, suggest_value
from lenience.files.vocabulary import FAILURE, MISSING, NO, SUCCESS, YES, is_missing
from lenience.history.segment_history import SEPARATOR

MOST_NAMED = 10  # problems that are named
OFFER_FIELDS = ("amount", "cost", "gain", "loss", "rate", "term", "loss_given_default", "funding_rate")
NOTHING: dict[str, str] = {}

Row = dict[str, Any]
Send = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # send a batch, and return the service's answer


class PortfolioColumns(NamedTuple):
    """Which column holds what. Only the date of the decision and the outcome are needed."""

    date: str
    outcome: str
    segment: tuple[str, ...] = ()
    reference: str | None = None
    accepted: str | None = None  # without it, all rows were accepted
    outcome_date: str | None = None
    features: Mapping[str, str] = NOTHING  # the column of each feature
    offer: Mapping[str, str] = NOTHING  # the column of each part of an offer, e.g. amount, rate and term
    monitored: Mapping[str, str] = NOTHING  # the column of each monitored attribute

    def named(self) -> dict[str, str]:
        """Return the column of each field, as the service records it."""
        single = {"decided_at": self.date, "outcome": self.outcome, "segment": SEPARATOR.join(self.segment)}
        optional = {"reference": self.reference, "decision": self.accepted, "outcome_at": self.outcome_date}
        given = {field: column for field, column in {**single, **optional}.items() if column}
        given |= {f"features.{name}": column for name, column in self.features.items()}
        given |= {f"monitored.{name}": column for name, column in self.monitored.items()}
        return given | {f"offer.{name}": column for name, column in self.offer.items()}


class PortfolioWords(NamedTuple):
    """Words of the columns, in addition to the usual ones."""

    success: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    current: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Return the given words, as the service records them."""
        return {kind: ", ".join(words)[:200] for kind, words in zip(self._fields, self, strict=True) if words}


class Portfolio(NamedTuple):
    """The rows of a file as the service takes them, in the order of their dates, and where they come from."""

    rows: list[Row]
    source: Row
    problems: Mapping[str, list[int]]  # rows that are left out, by their problem


class PortfolioImport(msgspec.Struct, frozen=True):
    """The result of an import.

    Parameters
    ----------
    number
        The number of the import in the policy.
    rows
        The number of rows sent.
    recorded
        The number of decisions recorded now.
    outcomes
        The number of decisions that were there, whose outcome or interim status is new.
    repeated
        The number of rows that were there before.
    left_out
        The number of rows of the file that were not sent.
    problems
        What is wrong with rows that were left out or that the service rejected.
    rejected
        The number of rows that the service rejected.
    dry_run
        Whether the file was only checked.
    """

    number: int
    rows: int
    recorded: int = 0
    outcomes: int = 0
    repeated: int = 0
    left_out: int = 0
    problems: tuple[str, ...] = ()
    rejected: int = 0
    dry_run: bool = False

    def describe(self) -> str:
        """Describe the import: one line of counts, then one line for each problem.

        Examples
        --------
        >>> print(PortfolioImport(1, 300, 290, 3, 7, 2, ("2 rows: issued must be a date",)).describe())
        Import 1: 290 decisions recorded, 3 new outcomes of known decisions, 7 known before, 2 rows left out.
        2 rows: issued must be a date
        """
        verb = "would be recorded" if self.dry_run else "recorded"
        text = f"Import {self.number}: {counted(self.recorded, 'decision')} {verb}"
        for number, words in (
            (self.outcomes, f"{counted(self.outcomes, 'new outcome')} of known decisions"),
            (self.repeated, f"{self.repeated:,} known before"),
            (self.rejected, f"{self.rejected:,} rejected"),
            (self.left_out, f"{counted(self.left_out, 'row')} left out"),
        ):
            text += f", {words}" if number else ""
        return "\n".join([f"{text}.", *self.problems])


def read_portfolio(
    path: str | Path,
    columns: PortfolioColumns,
    words: PortfolioWords | None = None,
    leave_out: bool = False,
    model: str = "",
    not_in_prior: bool = False,
    today: dt.datetime | None = None,
    dates: Order | None = None,
    sheet: str | None = None,
) -> Portfolio:
    """Read a file of past decisions.

    Parameters
    ----------
    path
        A CSV, Excel or Parquet file.
    columns
        Which column holds what.
    words
        Words of the columns, in addition to the usual ones.
    leave_out
        Whether to leave out rows that cannot be read. By default they are an error.
    model
        Where the policy's prior comes from, for the record.
    not_in_prior
        Whether the outcomes are not among those that the policy's prior holds.
    today
        The time after which dates are in the future; now by default.
    dates
        The order of the parts in dates such as 06/01/2011; by default the column decides.
    sheet
        The sheet of an Excel file; by default the first that is not empty.

    Raises
    ------
    InputError
        If the file or a column cannot be read, a given word does not occur, or rows are invalid.
    """
    given = PortfolioWords() if words is None else words
    table = read_columns(path, sheet=sheet)
    for name in columns.named().values() if not columns.segment else [*_without_segment(columns), *columns.segment]:
        if name not in table:
            raise InputError.unknown_name("column", name, list(table), "the columns")
    reader = _RowReader(table, columns, given, today or dt.datetime.now(dt.UTC).replace(tzinfo=None), dates)
    rows: list[tuple[dt.datetime, int, Row]] = []
    problems: dict[str, list[int]] = {}
    for i in range(len(table[columns.date])):
        row = reader.read(i)
        if isinstance(row, str):
            problems.setdefault(row, []).append(i + 2)  # the heading is line 1
        else:
            rows.append((reader.dates[i] or dt.datetime.min, i, row))
    if problems and not leave_out:
        total = sum(map(len, problems.values()))
        raise InputError.because(
            f"{counted(total, 'row')} cannot be imported: {'; '.join(_described(problems))}",
            "data",
            label="",
            hint="Correct the file, or leave these rows out with --leave-out-invalid (leave_out=True in Python).",
        )
    if not rows:
        raise InputError.because("has no row that can be imported", "data", label=str(path), code="insufficient_data")
    rows.sort(key=lambda row: (row[0], row[1]))
    source = {
        "file": Path(path).name[:255],
        "digest": digest_of_file(Path(path)),
        "rows": len(rows),
        "left_out": sum(map(len, problems.values())),
        "why_left_out": {problem[:200]: len(lines) for problem, lines in list(problems.items())[:100]},
        "columns": columns.named(),
        "settings": given.named() | {name: value for name, value in (("dates", dates), ("sheet", sheet)) if value},
        "first": f"{rows[0][0]:%Y-%m-%d}",
        "last": f"{rows[-1][0]:%Y-%m-%d}",
        "model": model[:200],
        "software": SOFTWARE,
        "not_in_prior": not_in_prior,
    }
    return Portfolio([row for _, _, row in rows], source, problems)


def send_portfolio(
    portfolio: Portfolio,
    send: Send,
    dry_run: bool = False,
    progress: Callable[[PortfolioImport], None] | None = None,
) -> PortfolioImport:
    """Check all rows with the service, then send them. Nothing is recorded if a row is invalid."""
    named = _described(portfolio.problems)
    left_out = portfolio.source["left_out"]
    done = PortfolioImport(0, len(portfolio.rows), left_out=left_out, problems=tuple(named), dry_run=dry_run)
    for checking in (True,) if dry_run else (True, False):
        result = done
        for start in range(0, len(portfolio.rows), BATCH_SIZE):
            part = portfolio.rows[start : start + BATCH_SIZE]
            answer = send({"source": portfolio.source, "first": start, "rows": part, "dry_run": checking})
            problems = [f"row {one['position']:,}: {one['detail']}" for one in answer["problems"]]
            result = msgspec.structs.replace(
                result,
                number=answer["number"],
                recorded=result.recorded + answer["recorded"],
                outcomes=result.outcomes + answer["outcomes"],
                repeated=result.repeated + answer["repeated"],
                rejected=result.rejected + len(problems),
                problems=(*result.problems, *problems)[: len(named) + MOST_NAMED],
            )
            if progress is not None and not checking:
                progress(result)
    return result


class _RowReader:
    """Reads one row after the other from columns."""

    def __init__(
        self,
        table: Mapping[str, list[Any]],
        columns: PortfolioColumns,
        words: PortfolioWords,
        today: dt.datetime,
        dates: Order | None,
    ) -> None:
        self.table, self.columns, self.today = table, columns, today
        self.dates = read_dates(columns.date, table[columns.date], dates, "date").moments
        self.outcome_dates: list[dt.datetime | None] = [None] * len(self.dates)
        if columns.outcome_date is not None:
            self.outcome_dates = read_dates(
                columns.outcome_date, table[columns.outcome_date], dates, "outcome_date"
            ).moments
        self.meaning = _outcome_meaning(columns.outcome, table[columns.outcome], words)
        self.accepting: dict[str, bool] = {}
        if columns.accepted is not None:
            no, yes = merge_words(("accepted", "rejected"), NO, YES, _lower(words.rejected), _lower(words.accepted), ())
            self.accepting = {str(word): True for word in yes} | {str(word): False for word in no}
        self.first_of: dict[str, int] = {}  # the row of each reference

    def read(self, i: int) -> Row | str:
        """Return a row as the service takes it, or what is wrong with it."""
        columns, cell = self.columns, self._cell
        when = self.dates[i]
        if when is None:
            return f"{columns.date} must be a date such as 2024-12-31, not {cell(columns.date, i)!r}"
        if when > self.today:
            return f"{columns.date} must not be in the future"
        row: Row = {"decided_at": _iso(when)}
        if columns.accepted is not None:
            accepted = self.accepting.get(cell(columns.accepted, i).lower())
            if accepted is None:
                word = cell(columns.accepted, i)
                return f"{columns.accepted} must be a word for accepted or rejected, not {word!r}"
            if not accepted:
                row["decision"] = "reject"
        if "decision" not in row:
            outcome = self.meaning.get(cell(columns.outcome, i).lower())
            if outcome is None:
                return f"{columns.outcome} must be a word for an outcome, not {cell(columns.outcome, i)!r}"
            if outcome:
                row["outcome"] = outcome
        problem = self._outcome_date(row, i, when) or self._reference(row, i)
        if problem:
            return problem
        if columns.segment:
            row["segment"] = SEPARATOR.join(cell(name, i) for name in columns.segment)
        if columns.features:
            row["features"] = {name: _number_or_text(cell(column, i)) for name, column in columns.features.items()}
        if columns.offer:
            offer = {name: _number_or_text(cell(column, i)) for name, column in columns.offer.items()}
            wrong = next((name for name, value in offer.items() if not isinstance(value, float)), None)
            if wrong is not None:
                return f"{columns.offer[wrong]} must be a number, not {cell(columns.offer[wrong], i)!r}"
            row["offer"] = offer
        if columns.monitored:
            row["monitored"] = {
                name: cell(column, i)
                for name, column in columns.monitored.items()
                if not is_missing(self.table[column][i])
            }
        return row

    def _outcome_date(self, row: Row, i: int, decided: dt.datetime) -> str:
        """Add the date of the outcome, or return what is wrong with it."""
        column = self.columns.outcome_date
        if column is None or row.get("outcome") not in ("success", "failure") or is_missing(self.table[column][i]):
            return ""
        when = self.outcome_dates[i]
        if when is None:
            return f"{column} must be a date such as 2024-12-31, not {self._cell(column, i)!r}"
        if when.date() < decided.date() or when > self.today:
            return f"{column} must not be before {self.columns.date} or in the future"
        row["outcome_at"] = _iso(when)
        return ""

    def _reference(self, row: Row, i: int) -> str:
        """Add the reference, or return what is wrong with it."""
        column = self.columns.reference
        if column is None:
            return ""
        reference = self._cell(column, i)
        if not reference:
            return f"{column} must not be empty"
        if self.first_of.setdefault(reference, i) != i:
            return f"{column} must be unique, but other rows have the same reference"
        row["reference"] = reference
        return ""

    def _cell(self, column: str, i: int) -> str:
        value = self.table[column][i]
        return "" if value is None or value != value else str(value).strip()


def _without_segment(columns: PortfolioColumns) -> list[str]:
    return [column for field, column in columns.named().items() if field != "segment"]


def _lower(words: Iterable[str]) -> list[str]:
    return [str(word).strip().lower() for word in words]


def _outcome_meaning(column: str, values: Sequence[Any], words: PortfolioWords) -> dict[str, str]:
    """Return what each word of the outcome means; "" is pending. Raise InputError if a given word does not occur."""
    given = {name: _lower(some) for name, some in zip(words._fields, words, strict=True)}
    open_words = [*given["pending"], *given["late"], *given["current"], *given["expired"]]
    bad, good = merge_words(("success", "failure"), FAILURE, SUCCESS, given["failure"], given["success"], open_words)
    meaning = {"late": "late", "current": "current", "expired": "expired", "pending": ""}
    meaning |= dict.fromkeys(map(str, good), "success") | dict.fromkeys(map(str, bad), "failure")
    meaning |= dict.fromkeys(MISSING, "") | dict.fromkeys(given["pending"], "")
    for name in ("late", "current", "expired"):
        meaning |= dict.fromkeys(given[name], name)
    occurring = {str(value).strip().lower() for value in set(values)}
    for name in ("success", "failure", "pending", "late", "current", "expired"):
        for word in given[name]:
            if word not in occurring:
                raise InputError.because(
                    f"{word!r} does not occur in {column}",
                    name,
                    label="",
                    value=word,
                    hint=suggest_value(word, sorted({str(value).strip() for value in set(values)} - {""})),
                    code="unknown_name",
                )
    return meaning


def _iso(when: dt.datetime) -> str:
    return f"{when:%Y-%m-%d}" if when.time() == dt.time() else f"{when:%Y-%m-%dT%H:%M:%S}"


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _described(problems: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the problems, the most frequent first, with their number and the first line."""
    counts = Counter({problem: len(lines) for problem, lines in problems.items()})
    named = [
        f"{counted(number, 'row')} (line {problems[problem][0]:,}{' and others' if number > 1 else ''}): {problem}"
        for problem, number in counts.most_common(MOST_NAMED)
    ]
    more = len(problems) - len(named)
    return [*named, f"and {counted(more, 'other problem')}"] if more > 0 else named

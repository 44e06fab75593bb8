"""Read tables of individuals: from a file, a frame or OpenML to numeric features, and outcomes as 0 and 1.

Columns of numbers stay numbers. Missing values are NaN, which the default model replaces by the mean. Any other column
becomes one column of 0 and 1 for each category, including the missing one; a column of two categories becomes a single
column. The coding never looks at the outcome.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.files.columns import read_columns
from lenience.files.date_formats import Order, describe_unreadable, looks_like_date, read_dates
from lenience.files.economics import Economics, GainsAndLosses
from lenience.files.outcome_words import OutcomeWords, Words, read_outcomes
from lenience.files.vocabulary import is_missing

MOST_CATEGORIES = 50
MOST_GROUPS = 20
LEAST_IDENTIFIERS = 10  # with fewer values, a column is never taken for identifiers
# A column with this many different whole numbers holds identifiers: among so many measurements some would be equal.
MANY = 1_000
ID = re.compile(r"(?i:(.*[_\s.-])?(id|uuid)|row(_?names?|_?num(ber)?)?|index)|.*[a-z]I[dD]")  # names of identifiers
MOST_NAMED = 12  # columns that a sentence names


class Table(msgspec.Struct, frozen=True, eq=False):
    """Individuals with numeric features, outcomes and, if a column of groups is named, groups.

    Parameters
    ----------
    name
        The name of the data.
    X
        The features, one row for each individual with a known outcome.
    y
        The outcomes, 0 or 1.
    features
        The names of the features.
    groups
        The group of each individual.
    rows
        The number of rows read, including those without an outcome.
    columns
        The columns that the features were made from.
    identifiers
        Columns that were left out because they seem only to identify rows.
    group
        The column of the groups, if it is not a feature.
    notes
        How the file was read, as sentences for the user.
    coding
        The number of features that each column became.
    dates
        Columns that were left out because they hold dates.
    stakes
        What each individual may gain and lose, if that was asked for.
    times
        The date of each individual in seconds, if a column of dates is named.
    kept
        The number of each individual's row in the file, counted from 0.
    undated
        The number of rows that were left out because they have no date that can be read.
    monitored
        The values of the attributes that fairness is measured by, by column.
    """

    name: str
    X: np.ndarray[Any, np.dtype[np.float64]]
    y: np.ndarray[Any, np.dtype[np.float64]]
    features: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    rows: int | None = None
    columns: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    group: str | None = None
    notes: tuple[str, ...] = ()
    coding: tuple[int, ...] = ()
    dates: tuple[str, ...] = ()
    stakes: GainsAndLosses | None = None
    times: np.ndarray[Any, Any] | None = None
    kept: np.ndarray[Any, np.dtype[np.int64]] | None = None
    undated: int = 0
    monitored: dict[str, tuple[Any, ...]] = {}

    @property
    def size(self) -> str:
        """The number of features, and the number of columns they were made from."""
        if len(self.columns or self.features) == len(self.features):
            return counted(len(self.features), "feature")
        return f"{counted(len(self.columns), 'column')}, {len(self.features):,} after coding"

    def describe(self) -> str:
        """Describe which rows and columns are used, and how."""
        columns = self.columns or self.features
        sentences = [f"Features: {_shortened(columns)}.", *self._coded()]
        if self.identifiers:
            names = _shortened(self.identifiers)
            sentences.append(
                f"Left out because they seem to identify rows (name them as features to use them): {names}."
            )
        if self.dates:
            sentences.append(f"Left out because they are dates: {_shortened(self.dates)}.")
        if self.group is not None:
            sentences.append(f"The group {_shortened([self.group])} is not a feature (name it as a feature to use it).")
        if self.rows is not None and self.rows > len(self.y) + self.undated:
            sentences.insert(
                0,
                f"Only the {len(self.y):,} of {self.rows:,} rows with a known outcome are used; an outcome that is "
                "missing or not known yet is no failure. If outcomes are known only for applicants accepted in the "
                "past, only those applicants are used.",
            )
        return " ".join([*self.notes, *sentences])

    def _coded(self) -> Iterable[str]:
        """Describe how categories were coded, and name columns with missing values and columns without effect."""
        ends = np.cumsum(self.coding)
        positions = {
            column: slice(end - count, end) for column, count, end in zip(self.columns, self.coding, ends, strict=False)
        }
        labels = {column: self.features[position] for column, position in positions.items()}
        texts = [column for column in positions if labels[column] != (column,)]
        if texts:
            codings = [
                f"{column} {len(labels[column])}{', including missing' * (f'{column}=missing' in labels[column])}"
                for column in texts
            ]
            yield f"Coded as 0 and 1, one feature per category (two categories: one feature): {'; '.join(codings)}."
        incomplete = [
            column for column in positions if column not in texts and np.isnan(self.X[:, positions[column]]).any()
        ]
        if incomplete:
            yield f"A missing value counts as the mean: {_shortened(incomplete)}."
        constant = [column for column, position in positions.items() if _constant(self.X[:, position])]
        if constant:
            yield f"The same in every row, so without effect: {_shortened(constant)}."

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return f"Table({self.name!r}, {rows:,} rows, {columns} features, success rate {self.y.mean():.3f})"


def read_table(
    path: str | Path,
    outcome: str,
    features: Sequence[str] | None = None,
    group: str | None = None,
    success: Words = None,
    economics: Economics | None = None,
    failure: Words = None,
    pending: Words = None,
    time: str | None = None,
    dates: Order | None = None,
    sheet: str | None = None,
    monitor: Sequence[str] = (),
) -> Table:
    """Read a table from a CSV or Excel file with a header, a Parquet file, or an ARFF file (OpenML's format).

    Parameters
    ----------
    path
        The file.
    outcome
        The column of outcomes.
    features
        The columns to use. By default all but the outcome, the group, dates, and identifiers: texts or whole numbers
        that are all different.
    group
        The column of groups. It is a feature only if ``features`` names it: in many places a decision must not depend
        on it.
    success
        The values of the outcome that mean success, in addition to the usual words.
    economics
        Where to find what each row may gain and lose.
    failure
        The values of the outcome that mean failure, in addition to the usual words.
    pending
        The values of the outcome that mean "not known yet". These rows are left out.
    time
        The column of dates. Rows without one are left out.
    dates
        The order of the parts in dates such as 06/01/2011.
    sheet
        The sheet of an Excel file.
    monitor
        Columns of attributes that fairness is measured by. They are features only if ``features`` names them.
    """
    notes: list[str] = []
    columns = read_columns(path, notes, sheet)
    table = from_columns(
        columns, outcome, features, group, success, Path(path).stem, economics, failure, pending, time, dates, monitor
    )
    return msgspec.structs.replace(table, notes=(*notes, *table.notes))


def numbers_of(columns: Mapping[str, Sequence[Any]], column: str) -> NDArray[np.float64]:
    """Return a column as numbers: NaN if a value is missing, 1 and 0 for true and false."""
    numbers = []
    for value in column_of(columns, column):
        text = {"true": "1", "false": "0"}.get(str(value).strip().lower(), value)
        number = math.nan if is_missing(text) else _number(text)
        if number is None:
            raise InputError.because(
                f"must contain numbers; found {value!r}", column, label=f"column {column!r}", value=value
            )
        numbers.append(number)
    return np.array(numbers)


def from_openml(
    name: str | int, outcome: str | None = None, features: Sequence[str] | None = None, group: str | None = None,
    success: Words = None, economics: Economics | None = None, failure: Words = None, pending: Words = None,
    time: str | None = None, dates: Order | None = None, monitor: Sequence[str] = (),
) -> Table:  # fmt: skip
    """Download a table from OpenML by name or number; by default the outcome is OpenML's target."""
    from sklearn.datasets import fetch_openml

    which: dict[str, Any] = {"data_id": name} if isinstance(name, int) else {"name": name}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # scikit-learn warns when it tries again
            dataset = fetch_openml(**which, as_frame=True)
    except OSError as error:
        raise InputError.unreadable("name", name, error) from None
    target = outcome or dataset.target.name
    return from_frame(
        dataset.frame, target, features, group, success, str(name), economics, failure, pending, time, dates, monitor
    )


def from_frame(
    frame: Any,
    outcome: str,
    features: Sequence[str] | None = None,
    group: str | None = None,
    success: Words = None,
    name: str = "frame",
    economics: Economics | None = None,
    failure: Words = None,
    pending: Words = None,
    time: str | None = None,
    dates: Order | None = None,
    monitor: Sequence[str] = (),
) -> Table:
    """Make a table from a data frame (pandas, or any frame that has columns by name and ``to_numpy``)."""
    columns = {str(column): _cells(frame[column].to_numpy()) for column in frame.columns}
    others = (economics, failure, pending, time, dates, monitor)
    return from_columns(columns, outcome, features, group, success, name, *others)


def _cells(values: Any) -> list[Any]:
    """Return a frame's column as Python values: timestamps as dates, and lengths of time as days."""
    cells = np.asarray(values)
    if cells.dtype.kind == "M":
        cells = cells.astype("datetime64[us]")
    elif cells.dtype.kind == "m":
        cells = cells / np.timedelta64(1, "D")
    return list(cells.astype(object).tolist())


def from_columns(
    columns: Mapping[str, Sequence[Any]],
    outcome: str,
    features: Sequence[str] | None = None,
    group: str | None = None,
    success: Words = None,
    name: str = "data",
    economics: Economics | None = None,
    failure: Words = None,
    pending: Words = None,
    time: str | None = None,
    dates: Order | None = None,
    monitor: Sequence[str] = (),
) -> Table:
    """Make a table from columns by name.

    Examples
    --------
    >>> table = from_columns({"age": [30, None], "job": ["none", "clerk"], "paid": ["yes", "no"]}, "paid")
    >>> table.features, table.y.tolist(), table.X.tolist()
    (('age', 'job=none'), [1.0, 0.0], [[30.0, 1.0], [nan, 0.0]])
    >>> table = from_columns({"age": [30, 40], "sex": ["m", "f"], "paid": ["yes", "no"]}, "paid", group="sex")
    >>> table.features, table.groups
    (('age',), ('m', 'f'))
    """
    for column in (outcome, *(features or ()), *monitor, *([group] if group else []), *([time] if time else [])):
        column_of(columns, column)
    for column, times in Counter(features).items():
        if times > 1:
            raise InputError.because(
                f"must name each column once; {column!r} is there {times} times",
                "features",
                value=column,
                code="duplicate",
            )
    chosen = list(features) if features else [column for column in columns if column not in (group, time, *monitor)]
    chosen = [column for column in chosen if column != outcome]
    identifiers, dated_columns = ((), ()) if features else _left_out(columns, chosen)
    chosen = [column for column in chosen if column not in (*identifiers, *dated_columns)]
    if not chosen:
        others = "the outcome and the group" if group and not features else "the outcome"
        raise InputError.because(f"must name at least one column other than {others}", "features", code="missing")
    y = _outcomes(outcome, columns[outcome], OutcomeWords.of(success, failure, pending))
    known = ~np.isnan(y)
    notes: list[str] = []
    moments: NDArray[Any] | None = None
    undated = 0
    if time is not None:
        read = read_dates(time, columns[time], dates)
        notes += [*([describe_unreadable(time, read)] if read.unreadable else []), *read.notes]
        moments = np.array(read.moments, dtype="datetime64[s]")
        dated = ~np.isnat(moments)
        undated = int((known & ~dated).sum())
        if undated > read.unreadable:
            notes.append(f"{counted(undated - read.unreadable, 'row')} left out: no date in {time}.")
        known &= dated
        if not known.any():
            raise InputError.because(
                "must have a date in at least one row with a known outcome",
                "time",
                label=f"time {time!r}",
                value=time,
                code="insufficient_data",
            )
    parts = [list(_encoded(column, columns[column])) for column in chosen]
    names, X = _stacked(parts)
    groups = None if group is None else _groups(group, columns[group], known)
    rows = None if economics is None else economics.read(columns, known, notes)
    stakes = None if rows is None else GainsAndLosses(rows.gain[known], rows.loss[known])
    return Table(
        name,
        X[known],
        y[known],
        names,
        groups,
        len(y),
        tuple(chosen),
        identifiers,
        group=None if group in chosen else group,
        notes=tuple(notes),
        coding=tuple(len(part) for part in parts),
        dates=dated_columns,
        stakes=stakes,
        times=None if moments is None else moments[known],
        kept=np.flatnonzero(known),
        undated=undated,
        monitored={column: tuple(np.array(columns[column], dtype=object)[known]) for column in monitor},
    )


def left_out_columns(columns: Mapping[str, Sequence[Any]], chosen: Sequence[str]) -> list[str]:
    """Return the columns that make bad features, because they only identify rows or are dates."""
    return [name for names in _left_out(columns, chosen) for name in names]


def _left_out(columns: Mapping[str, Sequence[Any]], chosen: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that only identify rows, and those of dates."""
    identifiers = tuple(column for column in chosen if _identifies(column, columns[column]))
    dates = tuple(column for column in chosen if column not in identifiers and _dated(columns[column]))
    return identifiers, dates


def coded(columns: Mapping[str, Sequence[Any]], chosen: Sequence[str]) -> NDArray[np.float64]:
    """Return columns as numeric features."""
    return _stacked([list(_encoded(column, column_of(columns, column))) for column in chosen])[1]


def _stacked(
    parts: Sequence[Sequence[tuple[str, NDArray[np.float64]]]],
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    features = [feature for part in parts for feature in part]
    return tuple(label for label, _ in features), np.column_stack([values for _, values in features])


def _groups(column: str, values: Sequence[Any], known: NDArray[np.bool_]) -> tuple[str, ...]:
    groups = tuple(
        "missing" if _has_no_category(value) else str(value).strip()
        for value, is_known in zip(values, known, strict=True)
        if is_known
    )
    different = len(set(groups))
    if different > MOST_GROUPS:
        raise InputError.because(
            f"must have at most {MOST_GROUPS} different values, not {different:,}",
            "group",
            label=f"group {column!r}",
            value=different,
            hint="Use a column of bands, such as low, middle and high.",
            code="too_large",
        )
    return groups


def _constant(X: NDArray[np.float64]) -> bool:
    """Return whether all values are equal, apart from missing ones, which count as the mean."""
    missing = np.isnan(X)
    return bool(np.all(missing | (np.where(missing, -np.inf, X).max(axis=0) == X)))


def column_of(columns: Mapping[str, Sequence[Any]], name: str) -> Sequence[Any]:
    """Return a column by its name, or raise InputError that names the columns."""
    if name not in columns:
        raise InputError.unknown_name("column", name, columns, "the columns")
    return columns[name]


def _has_no_category(value: Any) -> bool:
    """Return whether a cell is missing in a column of categories, where "none" is a category: no guarantor, no job."""
    return is_missing(value) and not (isinstance(value, str) and value.strip().lower() == "none")


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _encoded(column: str, values: Sequence[Any]) -> Iterable[tuple[str, NDArray[np.float64]]]:
    numbers = [math.nan if is_missing(value) else _number(value) for value in values]
    missing = [_has_no_category(value) for value in values]
    # A column with only "none" and missing cells has no number, so it has categories.
    if None not in numbers and (all(missing) or not all(math.isnan(number or 0.0) for number in numbers)):
        coded_numbers = np.array(numbers, dtype=np.float64)
        if np.isinf(coded_numbers).any():
            infinite = next(value for value, number in zip(values, coded_numbers, strict=True) if math.isinf(number))
            raise InputError.because(
                f"must contain finite numbers; found {infinite!r}",
                column,
                label=f"column {column!r}",
                value=infinite,
                hint="Correct the value or leave it empty.",
            )
        yield column, coded_numbers
        return
    labels = ["missing" if gap else str(value).strip() for value, gap in zip(values, missing, strict=True)]
    categories = sorted(set(labels))
    if len(categories) > MOST_CATEGORIES:
        texts = [str(value) for value, number in zip(values, numbers, strict=True) if number is None]
        present = len(values) - sum(missing)
        if 2 * len(texts) < present:  # a column of numbers with some invalid cells
            examples = ", ".join(repr(text) for text in list(dict.fromkeys(texts))[:3])
            raise InputError.because(
                f"must be numbers; {len(texts):,} of its {present:,} cells "
                f"{'is not' if len(texts) == 1 else 'are not'} (such as {examples})",
                column,
                label=f"column {column!r}",
                value=texts[0],
                allowed="numbers",
                hint="Correct or empty them, or leave the column out of the features.",
            )
        raise InputError.because(
            f"has {len(categories):,} categories, more than {MOST_CATEGORIES}",
            column,
            label=f"column {column!r}",
            value=len(categories),
            hint="Leave it out of the features.",
            code="too_large",
        )
    for category in categories[1:] if len(categories) == 2 else categories:
        yield f"{column}={category}", np.array([float(label == category) for label in labels])


def _identifies(column: str, values: Sequence[Any]) -> bool:
    """Return whether a column only identifies rows.

    It does if its texts (not mostly numbers) are all different, as names are. It also does if it holds whole numbers
    that are all different and either rise or fall from row to row, or are many. A column named id may have repeated
    values.

    Examples
    --------
    >>> _identifies("loan", range(1001, 1020)), _identifies("age", [30, 20, 40] * 9), _identifies("pay", [3, 1, 2] * 9)
    (True, False, False)
    """
    texts = [str(value).strip() for value in values if not _has_no_category(value)]
    different = len(set(texts))
    named = ID.fullmatch(column) is not None
    if len(texts) < LEAST_IDENTIFIERS or (2 * different < len(texts) if named else different < len(texts)):
        return False
    numbers = [number for text in texts if (number := _number(text)) is not None]
    if 2 * len(numbers) <= len(texts):
        return different == len(texts)
    if len(numbers) < len(texts) or not all(number.is_integer() for number in numbers):
        return False
    steps = np.diff(numbers)
    return named or len(numbers) >= MANY or bool(np.all(steps > 0) or np.all(steps < 0))


def _dated(values: Sequence[Any]) -> bool:
    """Return whether most values are dates. Dates make bad features: future dates do not occur in the file."""
    texts = [str(value) for value in values if not is_missing(value)]
    return 2 * sum(map(looks_like_date, texts)) > len(texts)


def _shortened(names: Sequence[str]) -> str:
    """Join names, without the rest of a long list and the ends of long names."""
    shown = [name if len(name) <= 30 else name[:29] + "…" for name in names[:MOST_NAMED]]
    return ", ".join(shown) + (f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else "")


def _outcomes(column: str, values: Sequence[Any], words: OutcomeWords) -> NDArray[np.float64]:
    """Return 1 for success, 0 for failure, and NaN for an outcome that is missing or not known yet."""
    outcomes = read_outcomes(column, values, words)
    if np.isnan(outcomes).all():
        raise InputError.because(
            "must be known for at least one row", "outcome", label=f"outcome {column!r}", code="insufficient_data"
        )
    return outcomes

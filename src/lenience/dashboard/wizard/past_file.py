"""A file of past decisions that was taken in, read for what each step needs.

Its columns are texts without white space around them (see :mod:`lenience.dashboard.wizard.intake`). Counting is left to
:func:`lenience.fit_history`.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from lenience.core.errors import InputError
from lenience.dashboard.wizard.bands import Cells, Cut, cell_of, features_of, part_of
from lenience.dashboard.wizard.kept_table import among, connect, identifier, kept, literal, names
from lenience.files.vocabulary import looks_like_date
from lenience.history.beliefs import BAND, ordered
from lenience.history.dates import FORMATS
from lenience.history.fit import History, fit_history
from lenience.history.statuses import MOST_NAMED
from lenience.service.domain import limits
from lenience.service.domain.feature_cells import Feature

MOST_VALUES = 20  # that an outcome or a decision may have
SAMPLE = 1_000
YEAR = 365.25 * 86_400  # in seconds


class Column(msgspec.Struct, frozen=True):
    """A column, with a few of its values."""

    name: str
    examples: tuple[str, ...]
    different: int  # values in the first rows
    numbers: bool  # most of them; a few that are none do not make it something else
    dates: bool  # likewise
    bands: bool = False


class Mapping(msgspec.Struct, frozen=True):
    """What the columns mean. Without an ``accepted`` column everyone in the file was accepted."""

    segments: tuple[str, ...]
    outcome: str
    success: tuple[str, ...]
    failure: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    accepted: str = ""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    time: str = ""
    group: str = ""
    score: str = ""
    maturity: float = 0.0
    as_of: str = ""
    cuts: tuple[tuple[str, Cut], ...] = ()  # segment columns of numbers, and how they are cut into bands


class Past(msgspec.Struct, frozen=True):
    """What the file says: the counts, and of each segment its group and mean score where they were asked for."""

    history: History
    groups: dict[str, str]
    scores: dict[str, float]
    years: float | None  # in which these applicants came
    silent: int = 0  # of those accepted, who have no outcome in the file
    features: tuple[Feature, ...] = ()  # where columns are cut: the cells of these are the segments

    @property
    def shares(self) -> dict[str, float]:
        """The share of each segment; a cell of which nobody came has that of one applicant."""
        came = {row.segment: max(row.arrivals, 1) for row in self.history.segments}
        whole = sum(came.values())
        return {name: count / whole for name, count in came.items()}


class Known(msgspec.Struct, frozen=True):
    """One past applicant whose outcome is known; ``years`` is when, from the first date (or by place in the file)."""

    segment: str
    success: bool
    years: float | None
    place: int


def ready() -> bool:
    """Whether the extra that reads histories is installed; it takes a second to load, and is not loaded for that."""
    return all(find_spec(name) is not None for name in ("duckdb", "ibis", "pyarrow"))


def columns(path: Path) -> list[Column]:
    """The columns with examples from the first rows."""
    with connect() as engine:
        rows = engine.execute(f"SELECT * FROM {kept(path)} LIMIT {SAMPLE}").fetchall()
    found = []
    for i, name in enumerate(names(path)):
        values = [row[i] for row in rows if row[i] is not None]
        different = list(dict.fromkeys(values))
        found.append(
            Column(
                name,
                tuple(value[:40] for value in different[:4]),
                len(different),
                bool(values) and 10 * sum(_is_number(value) for value in values) >= 9 * len(values),
                2 * sum(looks_like_date(value) for value in values) > len(values),
                any(BAND.fullmatch(value) and not _is_number(value) for value in different),
            )
        )
    return found


def count(path: Path) -> int:
    """How many rows there are."""
    with connect() as engine:
        return int(engine.execute(f"SELECT count(*) FROM {kept(path)}").fetchone()[0])


def values(path: Path, column: str) -> list[tuple[str, int]]:
    """The different values of a column with their counts, the most frequent first; missing ones are left out."""
    if column not in names(path):
        raise InputError.because(
            f"The file has no column {column!r}", "column", label="", value=column, code="unknown_name"
        )
    with connect() as engine:
        query = f"SELECT {identifier(column)} AS v, count(*) AS k FROM {kept(path)} WHERE v IS NOT NULL GROUP BY v"
        found = engine.execute(f"{query} ORDER BY k DESC, v LIMIT {MOST_VALUES + 1}").fetchall()
    if len(found) > MOST_VALUES:
        raise InputError.because(
            f"has more than {MOST_VALUES} different values, too many to say what each means",
            column,
            label=f"the column {column!r}",
            code="too_large",
        )
    return [(str(value), int(count)) for value, count in found]


def without(path: Path, column: str) -> int:
    """In how many rows a column is empty."""
    with connect() as engine:
        query = f"SELECT count(*) FROM {kept(path)} WHERE {identifier(column)} IS NULL"
        return int(engine.execute(query).fetchone()[0])


def follows(path: Path, outcome: str, column: str, yes: str, no: str) -> bool:
    """Whether the outcomes go by a column: most are there where it says yes, hardly any (1 in 100) where it says no."""
    there, by = identifier(outcome), identifier(column)
    query = f"SELECT {by}, count({there}) / count(*) FROM {kept(path)} WHERE {by} IS NOT NULL GROUP BY {by}"
    with connect() as engine:
        shares = dict(engine.execute(query).fetchall())
    return bool(shares.get(yes, 0.0) > 0.5 and shares.get(no, 1.0) <= 0.01)


@lru_cache(maxsize=16)
def read_past(path: Path, mapping: Mapping) -> Past:
    """Count the file as the mapping says."""
    with connect() as engine:
        frame = engine.sql(_meant(path, mapping)).to_arrow_table()
        history = fit_history(
            frame,
            "segment",
            "accepted",
            "outcome",
            "decided" if mapping.time else None,
            maturity=mapping.maturity or None,
            as_of=mapping.as_of or None,
            warn=False,  # what it says is shown
        )
        engine.execute(f"CREATE VIEW past AS {_meant(path, mapping)}")
        # In their place the mapping has put a number: named are the values of the file.
        history = msgspec.structs.replace(history, strange=_strange(engine))
        features = features_of(path, mapping.segments, mapping.cuts)
        _check(history, mapping)
        used = "WHERE segment IS NOT NULL GROUP BY segment"
        groups = {}
        for segment, least, many in engine.execute(
            f"SELECT segment, min(grouped), count(DISTINCT grouped) FROM past {used}"
        ).fetchall():
            if many > 1:
                raise InputError.because(
                    f"has members of {many} groups of {mapping.group!r}",
                    "group",
                    label=f"the segment {segment!r}",
                    value=mapping.group,
                    hint=f"Choose {mapping.group!r} as a segment too, or another group.",
                )
            if least is not None:
                groups[segment] = least
        scores = _scores(engine, mapping.score)
        if features:
            cells = Cells.of(features)
            history = msgspec.structs.replace(history, segments=cells.history(history.segments))
            groups |= cells.groups(mapping.group)
            scores = cells.scores(mapping.score, scores)
        years = _span(engine, mapping)
        missing = "accepted AND outcome IS NULL AND segment IS NOT NULL"
        silent = engine.execute(f"SELECT count(*) FROM past WHERE {missing}").fetchone()[0]
    if mapping.score and any(row.segment not in scores for row in history.segments):
        without = next(row.segment for row in history.segments if row.segment not in scores)
        raise InputError.because(
            f"must hold numbers, or bands such as '300-499'; the segment {without!r} has none",
            "score",
            label=f"the column {mapping.score!r}",
            value=without,
        )
    return Past(history, groups, scores, years, silent, features)


def known_outcomes(path: Path, mapping: Mapping, history: History) -> list[Known]:
    """The past applicants whose outcome is known (and mature), in order of time."""
    with connect() as engine:
        rows = engine.execute(
            "SELECT segment, outcome = 1, epoch(decided - min(decided) OVER ()), place FROM "
            f"({_meant(path, mapping)}) WHERE {_known(mapping, history)} ORDER BY decided, place"
        ).fetchall()
    return [Known(segment, good, None if at is None else at / YEAR, place) for segment, good, at, place in rows]


def rejected_since(path: Path, mapping: Mapping, history: History, years: float) -> tuple[dt.date, int]:
    """The day so many years after the first known outcome was decided, and how many were rejected from then on."""
    with connect() as engine:
        engine.execute(f"CREATE VIEW past AS {_meant(path, mapping)}")
        first = engine.execute(f"SELECT min(decided) FROM past WHERE {_known(mapping, history)}").fetchone()[0]
        since: dt.datetime = first + dt.timedelta(seconds=round(years * YEAR))
        where = f"NOT accepted AND outcome IS NULL AND segment IS NOT NULL AND {_happened(mapping)} AND decided >= ?"
        return since.date(), int(engine.execute(f"SELECT count(*) FROM past WHERE {where}", [since]).fetchone()[0])


def mean_delay(path: Path, mapping: Mapping, history: History, column: str) -> tuple[float, int] | None:
    """The days from the decision to the date in another column, on average, and of how many outcomes.

    Nothing where that is not when outcomes came: it is missing for many, comes before the decision, or is still ahead.
    """
    dated = f"SELECT file_row_number AS place, {_moment(column)} AS came FROM read_parquet(?, file_row_number = true)"
    both = f"({_meant(path, mapping)}) JOIN ({dated}) USING (place) WHERE {_known(mapping, history)}"
    ahead = "count(*) FILTER (came > decided), count(*) FILTER (came > current_localtimestamp())"
    with connect() as engine:
        mean, later, future, known = engine.execute(
            f"SELECT avg(epoch(came - decided)) / 86400, {ahead}, count(*) FROM {both}", [str(path)]
        ).fetchone()
    return (float(mean), int(later)) if known and later >= 0.9 * known and not future else None


def _known(mapping: Mapping, history: History) -> str:
    """Whether a row has an outcome that counts: known, and old enough."""
    where = "accepted AND outcome IN (0, 1) AND segment IS NOT NULL"
    if mapping.time:
        where += f" AND {_happened(mapping)}"
        if mapping.maturity and history.as_of is not None:
            cutoff = history.as_of - dt.timedelta(days=mapping.maturity)
            where += f" AND decided <= TIMESTAMP '{cutoff:%Y-%m-%d %H:%M:%S.%f}'"
    return where


def _scores(engine: Any, column: str) -> dict[str, float]:
    """The mean score of each segment that has one; bands such as 300-499 count by their rank, as for a command."""
    there = "FROM past WHERE segment IS NOT NULL AND score IS NOT NULL"
    figure = "TRY_CAST(score AS DOUBLE)"
    told = engine.execute(f"SELECT DISTINCT score {there} AND {figure} IS NULL").fetchall()
    if any(BAND.fullmatch(text) for (text,) in told):
        bands = [
            text for (text,) in engine.execute(f"SELECT DISTINCT score {there}").fetchall() if BAND.fullmatch(text)
        ]
        engine.execute(
            "CREATE TABLE ranks AS SELECT unnest(?) AS band, unnest(?) AS rank", [bands, ordered(column, bands)]
        )
        asked = (
            "SELECT segment, avg(rank) FROM past JOIN ranks ON score = band WHERE segment IS NOT NULL GROUP BY segment"
        )
    else:
        asked = f"SELECT segment, avg({figure}) {there} AND isfinite({figure}) GROUP BY segment"
    return {segment: float(score) for segment, score in engine.execute(asked).fetchall()}


def _happened(mapping: Mapping) -> str:
    """Whether a row has a date that can be: not after today, nor after that of the count."""
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    if mapping.as_of:
        now = min(now, dt.datetime.combine(dt.date.fromisoformat(mapping.as_of), dt.time.max))
    return f"decided <= TIMESTAMP '{now:%Y-%m-%d %H:%M:%S.%f}'"


def _span(engine: Any, mapping: Mapping) -> float | None:
    """The years over which the applicants came: from the dates of the middle 98 % of them, for a single date that was
    mistyped would lengthen it by decades."""
    asked = f"SELECT quantile_cont(epoch(decided), [0.01, 0.99]) FROM past WHERE {_happened(mapping)}"
    ends = engine.execute(asked).fetchone()[0] if mapping.time else None
    return None if ends is None else (ends[1] - ends[0]) / 0.98 / YEAR


def _check(history: History, mapping: Mapping) -> None:
    by = " and ".join(repr(name) for name in mapping.segments)
    if not history.segments:
        raise InputError.because(
            f"No row can be used: {history.describe()}", "file", label="", code="insufficient_data"
        )
    if len(history.segments) > limits.SEGMENTS:
        raise InputError.because(
            f"has {len(history.segments):,} segments by {by}; a policy may have {limits.SEGMENTS:,}",
            "segment",
            label="the file",
            value=len(history.segments),
            hint=(
                "Choose fewer or coarser columns, and cut a column of numbers into bands by typing 5 beside it "
                f"({_widest(history, mapping)!r} has the most values)."
            ),
            code="too_large",
        )
    for row in history.segments:
        if len(row.segment) > 200 or not re.match(limits.PLAIN, row.segment):
            raise InputError.because(
                f"must have a name of at most 200 characters without line breaks, not {row.segment!r}",
                "segment",
                label="a segment",
                value=row.segment,
            )
    if not any(row.labels for row in history.segments):
        old = f" and is {mapping.maturity:g} days old" if mapping.maturity else ""
        raise InputError.because(
            f"No outcome is known: no accepted row has a value of {mapping.outcome!r} with a meaning{old}",
            "outcome",
            label="",
            code="insufficient_data",
        )


def _widest(history: History, mapping: Mapping) -> str:
    """The column that divides the applicants most."""
    parts = [row.segment.split(" / ") for row in history.segments[:SAMPLE]]
    values = [len({part[i] for part in parts if i < len(part)}) for i in range(len(mapping.segments))]
    return mapping.segments[values.index(max(values))]


def _strange(engine: Any) -> tuple[tuple[str, int], ...]:
    """The values that are no outcome, of rows that are otherwise sound, the most frequent first."""
    sound = "outcome = 2 AND accepted IS NOT NULL AND segment IS NOT NULL"
    asked = f"SELECT told, count(*) AS k FROM past WHERE {sound} GROUP BY told ORDER BY k DESC, told LIMIT {MOST_NAMED}"
    return tuple((str(value), int(rows)) for value, rows in engine.execute(asked).fetchall())


def _meant(path: Path, mapping: Mapping) -> str:
    """The query that says what each row means."""
    there = names(path)
    asked = [*mapping.segments, mapping.outcome, mapping.accepted, mapping.time, mapping.group, mapping.score]
    for name in asked:
        if name and name not in there:
            raise InputError.because(
                f"The file has no column {name!r}", "column", label="", value=name, code="unknown_name"
            )
    features = features_of(path, mapping.segments, mapping.cuts)
    # Missing where one of the columns is.
    whole = cell_of(features) if features else " || ' / ' || ".join(identifier(name) for name in mapping.segments)
    parts = [f"{whole} AS segment"]
    if mapping.accepted:
        column = identifier(mapping.accepted)
        yes, no = among(column, mapping.yes), among(column, mapping.no)
        parts.append(f"CASE WHEN {yes} THEN true WHEN {no} THEN false END AS accepted")
    else:
        parts.append("true AS accepted")
    column = identifier(mapping.outcome)
    good, bad = among(column, mapping.success), among(column, mapping.failure)
    unknown = f"{column} IS NULL OR {among(column, mapping.unknown)}"
    parts.append(
        f"CAST(CASE WHEN {unknown} THEN NULL WHEN {good} THEN 1 WHEN {bad} THEN 0 ELSE 2 END AS TINYINT) AS outcome"
    )
    parts.append(f"{column} AS told")
    parts.append(f"{_moment(mapping.time)} AS decided")
    for name, meaning in ((mapping.group, "grouped"), (mapping.score, "score")):
        told = identifier(name) if name else "CAST(NULL AS VARCHAR)"
        cut = next((one for one in features if one.name == name and meaning == "grouped"), None)
        parts.append(f"{told if cut is None else part_of(cut)} AS {meaning}")
    parts.append("file_row_number AS place")
    return f"SELECT {', '.join(parts)} FROM read_parquet({literal(str(path))}, file_row_number = true)"


def _moment(column: str) -> str:
    if not column:
        return "CAST(NULL AS TIMESTAMP)"
    text = identifier(column)
    return f"coalesce(TRY_CAST({text} AS TIMESTAMP), try_strptime({text}, {list(FORMATS)}))"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""From past decisions to segments with beliefs: the pipeline of the command line and of the dashboard's wizard.

    source ─► read_past (counts, groups, scores) ─► believe (a model's belief about each segment) ─► make_specification

:func:`read_past` counts with :func:`lenience.fit_history`, so statuses, dates and missing values mean the same to every
caller. A caller only says what the columns mean (:class:`~lenience.history.past_columns.PastColumns`).
:mod:`lenience.history.past_rows` answers questions about single rows, by the same meanings, and
:mod:`lenience.history.specification` writes the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.core.errors import InputError
from lenience.files.source import open_source, without_engine_warnings
from lenience.history.beliefs import Fitted, fit_model, ordered
from lenience.history.fit import fit_history
from lenience.history.history import History
from lenience.history.origin import with_groups_and_scores
from lenience.history.past_columns import PastColumns
from lenience.history.past_rows import check_columns, groups_of_rows, mean_scores
from lenience.history.segment_history import SegmentHistory
from lenience.models.own_counts import UNIFORM
from lenience.segments.column_parts import ColumnParts

if TYPE_CHECKING:
    from lenience.core.belief import Belief


class PastSegments(msgspec.Struct, frozen=True):
    """The segments of past decisions: their counts, groups and scores.

    Parameters
    ----------
    history
        The counts.
    groups
        The group of each segment; empty if no column of groups is named.
    scores
        The scores of each segment, one for each column of scores; empty if none is named.
    """

    history: History
    groups: dict[str, str]
    scores: dict[str, tuple[float, ...]]

    @property
    def names(self) -> list[str]:
        """The names of the segments."""
        return [row.segment for row in self.history.segments]

    @property
    def shares(self) -> dict[str, float]:
        """The share of each segment; a cell without applicants counts as if it had one."""
        arrivals = {row.segment: max(row.arrivals, 1) for row in self.history.segments}
        total = sum(arrivals.values())
        return {name: count / total for name, count in arrivals.items()}


def read_past(
    source: object,
    columns: PastColumns,
    connection: object = None,
    strict: bool = False,
    sheet: str | None = None,
) -> PastSegments:
    """Count past decisions, and find the group and the scores of each segment.

    Parameters
    ----------
    source
        A file, a frame, an Ibis table, or the name of a table of ``connection``.
    columns
        What its columns mean.
    connection
        A database, or its URL.
    strict
        Whether rows that cannot be used raise an error.
    sheet
        The sheet of an Excel file; by default the first that is not empty.

    Returns
    -------
    PastSegments
        The counts, groups and scores.

    Raises
    ------
    InputError
        If a column does not exist, a group or a score is missing, or the source cannot be read.

    Examples
    --------
    >>> past = {"band": ["below 20", "20 and above"], "in": ["yes", "yes"], "good": ["1", "0"]}
    >>> columns = PastColumns(("band",), "good", "in", groups=("band",), scores=("band",))
    >>> read_past(past, columns).scores
    {'20 and above': (1.0,), 'below 20': (0.0,)}
    """
    history = fit_history(
        source,
        columns.segments,
        columns.accepted,
        columns.outcome,
        columns.time,
        dates=columns.dates,
        sheet=sheet,
        connection=connection,
        as_of=columns.as_of,
        maturity=columns.maturity,
        half_life=columns.half_life,
        expire_after=columns.expire_after,
        outcome_time=columns.outcome_time,
        maturing="learn" if columns.maturing else None,
        success=columns.success,
        failure=columns.failure,
        pending=columns.pending,
        accepted_values=columns.accepted_values,
        rejected_values=columns.rejected_values,
        only_given=columns.only_given,
        **({} if columns.economics is None else msgspec.structs.asdict(columns.economics)),
        price_bands=columns.price_bands,
        bands=dict(columns.bands),
        decide_by_protected=columns.decide_by_protected,
        strict=strict,
        warn=False,  # the caller shows History.describe(), which has the warning
    )
    history = msgspec.structs.replace(history, origin=with_groups_and_scores(history.origin, columns))
    if history.cells and (columns.groups or columns.scores):
        with without_engine_warnings():
            table = open_source(source, connection, sheet=sheet)[0]
        return _with_cells(table, msgspec.structs.replace(columns, cells=history.cells), history)
    return PastSegments(history, _groups(source, columns, history), _scores(source, columns, history))


def believe(
    past: PastSegments,
    model: str = "own",
    prior: Belief = UNIFORM,
    counts: Mapping[str, tuple[float, float]] | None = None,
) -> Fitted:
    """Return a model's belief about each segment.

    Parameters
    ----------
    past
        The segments.
    model
        One of :data:`lenience.history.beliefs.MODELS`.
    prior
        The prior of the models that take one.
    counts
        Labels and successes by segment, instead of the history's; a segment that is not in it has none.

    Returns
    -------
    Fitted
        Prior, labels and belief of each segment, and warnings.
    """
    rows = past.history.segments
    if counts is not None:
        rows = tuple(_with_counts(row, *counts.get(row.segment, (0.0, 0.0))) for row in rows)
    groups = [past.groups.get(row.segment, "") for row in rows] if past.groups else None
    scores = [past.scores[row.segment] for row in rows] if past.scores else None
    maturing = past.history.applied if counts is None else None
    return fit_model(rows, model, prior, groups, scores, maturing)


def _with_counts(row: SegmentHistory, n: float, s: float) -> SegmentHistory:
    return msgspec.structs.replace(row, n=n, s=s, labels=int(n), successes=int(s))


def _groups(table: Any, columns: PastColumns, history: History) -> dict[str, str]:
    if not columns.groups:
        return {}
    if all(name in columns.segments for name in columns.groups):
        return history.groups(columns.groups)
    if _is_table(table) and len(columns.groups) == 1:
        return groups_of_rows(table, columns)
    history.positions("group", columns.groups)  # raises an error that names the columns that may be groups
    return {}


def _scores(table: Any, columns: PastColumns, history: History) -> dict[str, tuple[float, ...]]:
    if not columns.scores:
        return {}
    rows = history.segments
    if _is_table(table) and len(columns.scores) == 1 and columns.scores[0] not in columns.segments:
        means = mean_scores(table, columns)
        _check_scores(columns.scores[0], rows, means)
        return {row.segment: (means[row.segment],) for row in rows}
    positions = history.positions("score", columns.scores)
    ranks = [
        ordered(column, [row.values[i] for row in rows]) for column, i in zip(columns.scores, positions, strict=True)
    ]
    return dict(zip((row.segment for row in rows), zip(*ranks, strict=True), strict=True))


def _with_cells(table: Any, columns: PastColumns, history: History) -> PastSegments:
    """Return the cells with their groups and scores."""
    names, parts = [row.segment for row in history.segments], [row.values for row in history.segments]
    groups: dict[str, str] = {}
    in_duckdb = table.get_backend().name == "duckdb"
    if columns.groups:
        check_columns(table, columns)
        groups = groups_of_rows(table, columns) if in_duckdb else {}
        i = _position(columns.cells, columns.groups[0])
        if i is not None:
            cell = columns.cells[i]
            start = len(f"{cell.name}=") if cell.values else 0
            groups |= {name: part[i][start:] for name, part in zip(names, parts, strict=True)}
    scores: dict[str, float] = {}
    if columns.scores:
        means = mean_scores(table, columns) if in_duckdb else {}
        scores = _scores_of_cells(columns.cells, columns.scores[0], names, parts, means)
        _check_scores(columns.scores[0], history.segments, scores)
    return PastSegments(history, groups, {name: (score,) for name, score in scores.items()})


def _scores_of_cells(
    cells: Sequence[ColumnParts],
    score: str,
    names: Sequence[str],
    parts: Sequence[tuple[str, ...]],
    seen: Mapping[str, float],
) -> dict[str, float]:
    """Return the score of every cell: its own, the mean of cells in the same band, or the middle of its band."""
    i = _position(cells, score)
    keys = ["" if i is None else part[i] for part in parts]
    same_band: dict[str, list[float]] = {}
    for name, key in zip(names, keys, strict=True):
        if name in seen:
            same_band.setdefault(key, []).append(seen[name])
    scores = {}
    for name, key in zip(names, keys, strict=True):
        if name in seen:
            scores[name] = seen[name]
        elif key in same_band:
            scores[name] = sum(same_band[key]) / len(same_band[key])
        elif i is not None and cells[i].edges:
            edges, band = cells[i].edges, cells[i].labels.index(key)
            scores[name] = (edges[max(band - 1, 0)] + edges[min(band, len(edges) - 1)]) / 2
    return scores


def _position(cells: Sequence[ColumnParts], column: str) -> int | None:
    return next((i for i, cell in enumerate(cells) if cell.name == column), None)


def _check_scores(column: str, rows: Iterable[SegmentHistory], scores: Mapping[str, float]) -> None:
    unscored = next((row.segment for row in rows if row.segment not in scores), None)
    if unscored is not None:
        raise InputError.because(
            f"must hold numbers, or bands such as '300-499'; the segment {unscored!r} has none",
            "score",
            label=f"the column {column!r}",
            value=unscored,
        )


def _is_table(source: object) -> bool:
    return hasattr(source, "get_backend")

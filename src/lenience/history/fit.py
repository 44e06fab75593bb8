"""Count past decisions by segment and turn them into beliefs (:func:`fit_history`).

Counting is a GROUP BY. The engine that holds the data does it, through Ibis: DuckDB (embedded), or PostgreSQL, Spark,
BigQuery or Snowflake by connection URL. Only one row per segment comes back, whatever the size of the table.

A row is one past applicant: the segment, whether the applicant was accepted, the outcome (missing for rejected
applicants and for outcomes that are not known yet), and the date of the decision. A *label* is the outcome of an
accepted applicant.

With a maturity, only decisions that are at least that old have labels. A loan of last month that has not defaulted is
pending, not a success. A recent failure does not count either: if it did, recent months would show failures only. A
half-life gives older labels less weight. The counts n and s are then fractions, which a belief allows.

Every row is counted once, as used or as bad, and the counts are shown. A row is bad if it has no segment, no valid
decision or outcome, an outcome on a rejection, no date where one is needed, or a date in the future. Bad rows are never
used, and always reported; ``strict`` raises an error instead. A date in the future does not become the date of the
count: one typing error (2062 for 2026) would make every label of the file old enough.

:mod:`lenience.history.counts` explains how the counting is made fast.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from lenience.core.errors import InputError
from lenience.core.protected_attributes import require_consent
from lenience.core.validation import listed
from lenience.files.date_formats import Order, check_order
from lenience.files.economics import Economics, RateUnit, Unit, with_economics
from lenience.files.source import open_source, reading, repetitions, without_engine_warnings
from lenience.history.ages import CAME, check_maturing, with_date_codes, with_outcome_dates
from lenience.history.bands import Cut, cell_expression, check_cut, cut_columns
from lenience.history.counts import (
    BAD_ROWS,
    KINDS,
    NO_ECONOMICS,
    OUTCOME_DATES,
    count_rows,
    strange_dates,
    strange_economics,
    used_rows,
)
from lenience.history.dates import check_readable, check_span, in_days, make_clock
from lenience.history.economics import SegmentEconomics, group_offers
from lenience.history.history import History
from lenience.history.immaturity import judge_maturity
from lenience.history.origin import ALL_ACCEPTED, history_origin, value_meanings
from lenience.history.past_columns import CELL, EVERYONE
from lenience.history.price_dependence import BAND, price_dependence, with_price_bands
from lenience.history.segment_history import SEPARATOR, SegmentHistory
from lenience.history.statuses import GivenWords, check_words, strange_values
from lenience.models.maturing import TimingCurves
from lenience.segments.column_parts import ColumnParts, cell_parts
from lenience.segments.similar_names import SimilarNamesWarning, describe_similar_names

NAMED_UP_TO = 5_000_000  # rows: in a larger source, values without a meaning are counted but not named


def fit_history(
    source: object,
    segment: str | Sequence[str],
    accepted: str | None,
    outcome: str,
    time: str | None = None,
    *,
    connection: object = None,
    as_of: dt.datetime | dt.date | str | None = None,
    maturity: float | dt.timedelta | None = None,
    half_life: float | dt.timedelta | None = None,
    expire_after: float | dt.timedelta | None = None,
    outcome_time: str | None = None,
    maturing: Literal["learn"] | TimingCurves | None = None,
    success: Sequence[object] | None = None,
    failure: Sequence[object] | None = None,
    pending: Sequence[object] | None = None,
    accepted_values: Sequence[object] | None = None,
    rejected_values: Sequence[object] | None = None,
    only_given: bool = False,
    dates: Order | None = None,
    sheet: str | None = None,
    gain: str | float | None = None,
    loss: str | float | None = None,
    amount: str | float | None = None,
    rate: str | float | None = None,
    term: str | float | None = None,
    loss_given_default: str | float | None = None,
    funding_rate: str | float | None = None,
    term_unit: Unit | None = None,
    rate_unit: RateUnit | None = None,
    currency: str = "",
    most_offers: int = 25,
    price_bands: int | None = None,
    bands: Mapping[str, int | Sequence[float]] | None = None,
    decide_by_protected: bool = False,
    strict: bool = False,
    warn: bool = True,
) -> History:
    """Count past decisions by segment, in the engine that holds them.

    White space around texts is ignored. ``describe()`` of the result reports every row that could not be used.

    Parameters
    ----------
    source : path, frame, Ibis table or str
        A CSV, Excel (.xlsx) or Parquet file, a folder of Parquet files or a glob pattern; a frame (pandas, polars,
        pyarrow, a dict of lists); an Ibis table; or, with ``connection``, the name of a table.
    segment : str or sequence of str
        The column, or columns, that make a segment.
    accepted : str or None
        The column that says who was accepted; None if everyone in the source was.
    outcome : str
        The column of the outcome: missing for rejected applicants and for outcomes that are not known yet.
    time : str, optional
        The column of the decision's date. ``as_of``, ``maturity``, ``half_life`` and ``expire_after`` need it.
    connection : str or Ibis backend, optional
        The database that holds the table, e.g. ``postgres://user@host/base``.
    as_of : datetime, date or str, optional
        The date of the count. Decisions after it are left out. By default the last date that is not in the future.
    maturity : float or timedelta, optional
        Days until an outcome is certain; outcomes of younger decisions are pending.
    half_life : float or timedelta, optional
        Days after which a label counts half.
    expire_after : float or timedelta, optional
        Days after which a missing outcome is no longer expected (but not before the maturity). Each segment's
        ``expired`` counts these.
    outcome_time : str, optional
        The column of the date when an outcome became known; it needs ``time``. Outcomes after ``as_of`` are pending.
        Without ``as_of``, the date of the count is not before the last outcome.
    maturing : "learn" or TimingCurves, optional
        Let the pending count according to their age, because failures and successes become known at different ages.
        "learn" learns the timing from the dates and needs ``outcome_time``. It takes the place of ``maturity``.
    success : sequence, optional
        Values of ``outcome`` that mean success, in addition to 1, true and words such as "repaid".
    failure : sequence, optional
        Values of ``outcome`` that mean failure, in addition to 0, false and words such as "default".
    pending : sequence, optional
        Values of ``outcome`` that mean "not known yet".
    accepted_values : sequence, optional
        Values of ``accepted`` that mean yes.
    rejected_values : sequence, optional
        Values of ``accepted`` that mean no.
    only_given : bool, default False
        Whether only the given values have a meaning. Texts must then match exactly.
    dates : {"mdy", "dmy", "ymd"}, optional
        The order of day, month and year in dates such as 06/01/2011. By default the column decides; if it fits both
        orders, an error asks for this argument.
    sheet : str, optional
        The sheet of an Excel file; by default the first that is not empty.
    gain, loss : str or float, optional
        What a success of each applicant earns and what a failure loses: columns, or one number for all rows. Rejected
        applicants have them too.
    amount : str or float, optional
        The amount lent, instead of gain and loss: a column or a number, as all that follow. ``rate`` and ``term`` are
        then needed. :meth:`lenience.Offer.from_loan` has the formula.
    rate : str or float, optional
        The interest rate a year: 0.12, or "12%".
    term : str or float, optional
        The term in years, or a text with its unit, such as "36 months".
    loss_given_default : str or float, optional
        The share of the amount that a default loses; everything by default.
    funding_rate : str or float, optional
        The rate a year at which the lender funds the loan; 0 by default.
    term_unit : {"years", "months"}, optional
        The unit of terms without one. It is needed if terms may be months: above 30, or all from 12 on.
    rate_unit : {"fraction", "percent"}, optional
        What numbers without a percent sign are in the columns of rates: 0.12 or 12 for 12%. It is needed if a number
        is 1 or more.
    currency : str, optional
        The sign or code that texts show amounts with, e.g. "$".
    most_offers : int, default 25
        The largest number of offers to keep for each segment. Similar offers are grouped.
    price_bands : int, optional
        With gains and losses: divide each segment further by this many bands of break-evens, with about as many rows
        each. Use it where success inside segments depends on the price (:meth:`History.price_warning`).
    bands : mapping, optional
        Segment columns of numbers to cut into bands: a number of bands of about equal size, e.g. ``{"score": 5}``, or
        their edges, e.g. ``{"score": [580, 640]}``. The segments are then the cells of all segment columns, also
        those without a row, with names such as "score 580..640, region=north".
    decide_by_protected : bool, default False
        Whether segments may be made of a column that names a protected attribute, such as sex or race. To measure
        fairness without deciding by it, use :func:`lenience.analysis.monitor_history`.
    strict : bool, default False
        Whether to raise an error if any row cannot be used.
    warn : bool, default True
        Whether to warn (``SimilarNamesWarning``) if names of segments differ only by case or inner white space.

    Returns
    -------
    History
        The counts by segment, and the rows that could not be used.

    Raises
    ------
    InputError
        If the source cannot be read, a column does not exist, a given value does not occur, no decision is old enough
        for the maturity, a segment column is protected, or, with ``strict``, a row cannot be used.

    Examples
    --------
    >>> past = {
    ...     "region": ["north", "north", "south", "south", "south"],
    ...     "accepted": [True, True, True, False, False],
    ...     "repaid": [1, 0, None, None, 1],
    ... }
    >>> history = fit_history(past, segment="region", accepted="accepted", outcome="repaid")
    >>> history.beliefs()
    {'north': Belief(n=4.0, s=2.0), 'south': Belief(n=2.0, s=1.0)}
    >>> print(history.describe())
    5 rows read, 4 used: 2 labels and 1 pending in 2 segments.
    1 row not used: an outcome on a rejection.

    Loans have different amounts and rates:

    >>> past |= {"amount": [1000, 5000, 2000, 9000, 500], "interest": ["8%", "12%", "25%", "9%", "30%"]}
    >>> loans = {"amount": "amount", "rate": "interest", "term": "3 years", "loss_given_default": 0.6}
    >>> history = fit_history(past, "region", "accepted", "repaid", **loans, currency="$")
    >>> [round(cost, 3) for cost in history.offers()["north"].cost]
    [0.824, 0.754]

    A column of numbers is cut into bands, and everyone was accepted:

    >>> past = {"score": [510, 600, 650, 700], "repaid": [0, 1, 1, 1]}
    >>> fit_history(past, "score", None, "repaid", bands={"score": [600]}).rates()
    {'score<600': 0.0, 'score>=600': 1.0}
    """
    columns = [segment] if isinstance(segment, str) else listed("segment", segment, "a column's name or several")
    require_consent(
        map(str, columns),
        decide_by_protected=decide_by_protected,
        field="segment",
        monitor="monitor_history",
        allow="decide_by_protected=True",
    )
    words = GivenWords(
        success or (), failure or (), pending or (), accepted_values or (), rejected_values or (), only=only_given
    )
    economics = Economics.from_options(
        gain=gain,
        loss=loss,
        amount=amount,
        rate=rate,
        term=term,
        loss_given_default=loss_given_default,
        funding_rate=funding_rate,
        term_unit=term_unit,
        rate_unit=rate_unit,
        currency=currency,
        most_offers=most_offers,
    )
    priced = economics is not None
    if price_bands is not None and not priced:
        raise InputError.because(
            "needs gain and loss, or the terms of loans",
            "price_bands",
            value=price_bands,
            hint="Bands are of each row's break-even.",
            code="missing",
        )
    cuts = _check_bands(bands, columns, price_bands)
    check_maturing(maturing, time, outcome_time, maturity)
    maturity_days, notes = in_days("maturity", maturity), list[str]()
    with without_engine_warnings(), reading(None if connection is not None else source):
        table, backend = open_source(source, connection, notes, sheet)
        as_given = table
        try:
            single = {"accepted": accepted, "outcome": outcome, "time": time, "outcome_time": outcome_time}
            _check_columns(table.columns, columns, single)
            divided = cut_columns(table, columns, cuts)
            if divided:
                table, columns = table.mutate(**{CELL: cell_expression(table, divided)}), [CELL]
            if accepted is None:
                accepted, table = EVERYONE, table.mutate(**{EVERYONE: True})
            if economics is not None:
                table = with_economics(backend, table, economics, notes)
                if price_bands is not None:
                    table, columns = with_price_bands(table, columns, price_bands), [*columns, BAND]
            order = check_order(dates)
            half_life_days = in_days("half_life", half_life)
            ages = (maturity_days, half_life_days, in_days("expire_after", expire_after))
            known_at = None
            if outcome_time is not None:
                table = with_outcome_dates(backend, table, outcome, outcome_time, words, order, notes)
                known_at = table[CAME]
            clock = make_clock(backend, table, time, as_of, *ages, known_at, order, notes)
            check_words(backend, table, accepted, outcome, words)
            if clock is not None and known_at is not None:
                table = with_date_codes(table, outcome, clock, as_of is not None)
            rows = count_rows(backend, table, columns, accepted, outcome, clock, words, priced)
            history = _history(rows, columns, None if clock is None else clock.now, priced, known_at is not None)
            if economics is not None and history.segments:
                used = used_rows(backend, table, columns, accepted, outcome, clock, words)
                names = [f"g{i}" for i in range(len(columns))]
                history = _with_offers(history, group_offers(backend, used, names, economics, history.rows), economics)
                history = msgspec.structs.replace(history, price_dependence=price_dependence(backend, used, names))
            if time and clock and history.bad["time"] and not history.segments:
                check_readable(backend, table, time, clock)
            if maturity_days and clock and not any(row.labels for row in history.segments):
                check_span(backend, table, clock, maturity_days)
            details: dict[str, Any] = {"maturity": maturity_days, "notes": tuple(notes)}
            if clock is not None and clock.now is not None and (maturing or history.rows <= NAMED_UP_TO):
                query = (backend, table, columns, accepted, outcome, clock, words)
                details |= judge_maturity(history.segments, query, maturing, maturity_days, half_life_days, priced)
            meanings: dict[str, str] = {}
            # To name the values without a meaning, the rows must be read again. That is too slow for a warehouse.
            if history.rows <= NAMED_UP_TO:
                if history.bad["outcome"] or history.bad["accepted"]:
                    strange = strange_values(backend, table, columns, accepted, outcome, words)
                    details["strange"], details["strange_decisions"] = (tuple(values) for values in strange)
                if economics is not None and history.bad["economics"]:
                    details["strange_economics"] = tuple(strange_economics(backend, table, economics))
                if time and clock and history.bad["time"]:
                    details["strange_dates"] = tuple(strange_dates(backend, table, time, clock))
                meanings = value_meanings(backend, table, accepted, outcome, words)
            if connection is None:
                details["repeated"] = repetitions(source, as_given, history.rows)
            history = msgspec.structs.replace(history, **details)
            if divided:
                history = _with_all_cells(history, divided)
            settings: dict[str, Any] = {
                **meanings,
                "as_of": history.as_of and f"{history.as_of:%Y-%m-%d}",
                "sheet": sheet,
            }
            settings |= {"maturity_days": maturity_days, "half_life_days": half_life_days, "dates": order}
            settings |= {"price_bands": price_bands, "pending_count_by_age": "yes" if maturing else None}
            settings |= {f"bands of {column.name}": ", ".join(column.labels) for column in divided if column.edges}
            span, named = _span(rows), {**single, "accepted": single["accepted"] or ALL_ACCEPTED}
            history = msgspec.structs.replace(
                history, origin=history_origin(history, source, connection, named, settings, economics, span)
            )
        finally:
            if isinstance(connection, str):
                backend.disconnect()
    if strict and history.bad_rows:
        raise InputError.because(
            f"must have no bad rows with strict:\n{history.describe()}",
            "source",
            label="history",
            value=history.bad_rows,
        )
    similar_names = describe_similar_names(row.segment for row in history.segments) if warn else None
    if similar_names is not None:
        warnings.warn(similar_names, SimilarNamesWarning, stacklevel=2)
    return history


def _span(rows: Sequence[Mapping[str, Any]]) -> tuple[dt.date | None, dt.date | None]:
    """Return the dates of the first and of the last decision."""
    firsts = [row["first"] for row in rows if row.get("first") is not None]
    return min(firsts, default=None), max((row["last"] for row in rows if row.get("last") is not None), default=None)


def _check_columns(existing: Sequence[str], segment: Sequence[str], single: Mapping[str, str | None]) -> None:
    """Raise InputError if a column does not exist or has two roles."""
    roles: dict[str, str] = {}
    for role, name in [*(("segment", name) for name in segment), *single.items()]:
        if name is None:
            continue
        if name not in existing:
            raise InputError.unknown_name(role, name, existing, "the columns")
        if roles.get(name) == role:
            raise InputError.because(
                f"must name different columns; {name!r} is there twice", role, value=name, code="duplicate"
            )
        if name in roles and role != "time":  # segments may be days, so their column may also be the date
            raise InputError.because(
                f"must be different columns; both are {name!r}", (role, roles[name]), value=name, code="duplicate"
            )
        roles[name] = role


def _check_bands(
    bands: Mapping[str, int | Sequence[float]] | None, columns: Sequence[str], price_bands: int | None
) -> dict[str, Cut]:
    """Return the columns to cut into bands; raise InputError if one is not a segment column."""
    cuts = {name: check_cut(name, cut) for name, cut in (bands or {}).items()}
    for name in cuts:
        if name not in columns:
            raise InputError.unknown_name("bands", name, columns, "the segment columns")
    if cuts and price_bands is not None:
        raise InputError.because(
            "cannot be combined with bands of a column", "price_bands", value=price_bands,
            hint="Cut the column of the interest rate into bands instead.", code="conflicting_fields",
        )  # fmt: skip
    return cuts


def _with_all_cells(history: History, divided: tuple[ColumnParts, ...]) -> History:
    """Return a history of all cells, also those without a row."""
    if not history.segments:
        return history
    seen = {row.segment: row for row in history.segments}
    rows = tuple(
        msgspec.structs.replace(seen.get(name, SegmentHistory(name, 0, 0, 0, 0, 0, 0.0, 0.0)), values=parts)
        for name, parts in cell_parts(divided).items()
    )
    names = tuple(column.name for column in divided)
    return msgspec.structs.replace(history, segments=rows, columns=names, cells=divided)


def _with_offers(history: History, offers: Mapping[tuple[str, ...], SegmentEconomics], economics: Economics) -> History:
    """Add the offers of each segment to a history."""
    segments = tuple(msgspec.structs.replace(row, economics=offers.get(row.values)) for row in history.segments)
    return msgspec.structs.replace(history, segments=segments, most_offers=economics.most_offers)


def _history(
    rows: list[dict[str, Any]], columns: list[str], as_of: dt.datetime | None, priced: bool, dated: bool = False
) -> History:
    """Make a history of the counts of :func:`~lenience.history.counts.count_rows`."""
    kinds = [*BAD_ROWS, *(OUTCOME_DATES if dated else ()), *(NO_ECONOMICS if priced else ())]
    bad = dict.fromkeys(kinds, 0)
    later = total = 0
    segments = []
    for row in rows:
        count = {kind: int(row.get(kind) or 0) for kind in KINDS}
        total += sum(count.values())
        later += count["later"]
        for kind in bad:
            bad[kind] += count[kind]
        labels = count["success"] + count["failure"]
        accepted = labels + count["pending"]
        arrivals = accepted + count["turned_down"]
        if not arrivals:
            continue
        values = tuple(str(row[f"g{i}"]) for i in range(len(columns)))
        n, s = float(row.get("n", labels) or 0.0), float(row.get("s", count["success"]) or 0.0)
        segments.append(
            SegmentHistory(
                segment=SEPARATOR.join(values),
                arrivals=arrivals,
                accepted=accepted,
                labels=labels,
                successes=count["success"],
                pending=count["pending"],
                n=n,
                s=min(s, n),
                values=values,
                expired=int(row.get("expired") or 0),
                recent=int(row.get("recent") or 0),
            )
        )
    segments.sort(key=lambda segment: segment.segment)
    return History(tuple(segments), total, bad, later, as_of, tuple(columns))

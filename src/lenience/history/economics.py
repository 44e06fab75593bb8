"""Compute the offer of each past applicant in the engine that holds the rows, and group the offers of each segment.

A row has a gain and a loss, or it describes a loan: amount, interest rate, term, loss given default, funding rate
(:meth:`lenience.Offer.from_loan` has the formula). Each of these is a column, or one number for all rows. Rates, terms
and amounts are written as :mod:`lenience.files.economics` says, but a row without valid numbers is a bad row here. The
units of columns may be given: rates in percent, terms in months. The engine
computes gain and loss, and returns either the different offers of each segment or, if there are too many, the means of
similar offers: a cell holds amounts within 10% and break-evens within 2 points of each other. The cells of a segment
are then compressed to a few offers (:meth:`lenience.Offers.compress`), and the error of both steps is bounded: by
Jensen's inequality the mean distance to a cell's mean is at most the square root of the variances' sum.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from lenience.core.errors import InputError
from lenience.core.offers import MONTHS, Offers, compress_with_error
from lenience.core.validation import real, whole
from lenience.history.statuses import MOST_NAMED

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    from numpy.typing import NDArray

Unit = Literal["years", "months"]
RateUnit = Literal["fraction", "percent"]

MOST_MONEY = 1e15  # a larger gain or loss is not valid
LEAST_RATIO = 1e-9  # of gain to loss, and of loss to gain: below it the break-even is 0 or 1 after rounding
AMOUNT_STEP = 0.1  # of the logarithm of the amount, in one cell
COST_STEP = 0.02  # of the break-even, in one cell
MOST_EXACT_ROWS = 1_000_000  # in a larger source, offers are grouped to cells without looking for different ones first
MOST_EXACT = 50_000  # different offers, all segments together, that are returned as they are
SMALL_RATE = 1e-4  # a year: below it the interest is computed by a series, because the formula loses digits
LONGEST_YEARS, FEWEST_MONTHS = 30.0, 12.0  # a plain term above the one, or all from the other on, may be months

NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
SIGNS = "[$€£¥]"
IN_MONTHS = r"^[0-9.]+ *m(o|os|on|onth|onths)?\.?$"
IN_YEARS = r"^[0-9.]+ *y(r|rs|ear|ears)?\.?$"
PLAIN_TERM = r"^[0-9.]+$"

GAIN, LOSS = "__gain__", "__loss__"  # derived columns of a row; a gain that is missing is not valid
GAIN_AND_LOSS = ("gain", "loss")
LOAN = ("amount", "rate", "term")
LOAN_OPTIONS = ("loss_given_default", "funding_rate")
RATES = ("rate", "funding_rate", "loss_given_default")
NUMBERS = {name: f"__{name}_number__" for name in (*GAIN_AND_LOSS, *LOAN, *LOAN_OPTIONS)}  # derived columns


class Economics(msgspec.Struct, frozen=True):
    """What a success of each past applicant would have earned, and what a failure would have lost.

    Give gain and loss, or amount, rate and term. Each is the name of a column, or one number for all rows.

    Parameters
    ----------
    gain, loss
        What a success earns, and what a failure loses.
    amount
        The amount lent.
    rate
        The interest rate a year: 0.12 or "12%".
    term
        The term: in years, in months with ``term_unit="months"``, or with its unit, such as "36 months".
    loss_given_default
        The share of the amount that a default loses; everything by default.
    funding_rate
        The rate a year at which the lender funds the loan; 0 by default.
    term_unit
        The unit of terms without a unit: "years" or "months".
    rate_unit
        What numbers without a percent sign are in the columns of rates: "fraction" (0.12 is 12%) or "percent" (12 is
        12%). It is needed where a number is 1 or more.
    currency
        The sign or code that texts show amounts with.
    most_offers
        The largest number of offers to keep for each segment.
    """

    gain: str | float | None = None
    loss: str | float | None = None
    amount: str | float | None = None
    rate: str | float | None = None
    term: str | float | None = None
    loss_given_default: str | float | None = None
    funding_rate: str | float | None = None
    term_unit: Unit | None = None
    rate_unit: RateUnit | None = None
    currency: str = ""
    most_offers: int = 25

    @property
    def given(self) -> dict[str, str | float]:
        """The columns and numbers that are given."""
        names = (*GAIN_AND_LOSS, *LOAN, *LOAN_OPTIONS)
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def check(self) -> bool:
        """Return whether economics are given; raise InputError if something is missing or does not fit."""
        given = self.given
        if not given:
            for option in ("term_unit", "rate_unit", "currency"):
                if getattr(self, option):
                    raise InputError.because(
                        "needs gain and loss, or amount, rate and term",
                        option,
                        value=getattr(self, option),
                        code="missing",
                    )
            return False
        needed = GAIN_AND_LOSS if "gain" in given or "loss" in given else LOAN
        others = [name for name in given if (name in GAIN_AND_LOSS) != (needed is GAIN_AND_LOSS)]
        if others:
            raise InputError.because(
                "Give either gain and loss, or amount, rate and term of the loans, not both",
                (*needed, *others),
                label="",
                code="conflicting_fields",
            )
        for name in needed:
            if name not in given:
                beside = " and ".join(other for other in needed if other in given) or next(iter(given))
                raise InputError.because(f"must be given too, beside {beside}", name, code="missing")
        for option, allowed in (("term_unit", get_args(Unit)), ("rate_unit", get_args(RateUnit))):
            if getattr(self, option) not in (None, *allowed):
                raise InputError.unknown_name(option, getattr(self, option), allowed)
        whole("most_offers", self.most_offers, least=1)
        return True


class SegmentEconomics(msgspec.Struct, frozen=True):
    """The offers of a segment's past applicants, including rejected ones.

    Parameters
    ----------
    offers
        The offers with their shares.
    error
        How far the offers of applicants are from these, on average: at most this much in gain and in loss. 0 if each
        applicant's own offer is among them.
    accepted_gain
        The mean gain of the accepted applicants; 0 if nobody was accepted.
    accepted_loss
        Their mean loss.
    """

    offers: Offers
    error: float
    accepted_gain: float
    accepted_loss: float


def with_economics(backend: Any, table: ir.Table, economics: Economics, notes: list[str]) -> ir.Table:
    """Return the table with the gain and the loss of each row. How columns were read is added to ``notes``.

    A gain that is not valid is missing.
    """
    import ibis

    given = {field: _column_or_number(table, field, value) for field, value in economics.given.items()}
    if "gain" in given:
        numbers = {field: _money(backend, given[field], field) for field in GAIN_AND_LOSS}
        read = table.mutate(**{NUMBERS[field]: number for field, number in numbers.items()})
        gain, loss = (read[NUMBERS[field]] for field in GAIN_AND_LOSS)
    else:
        given.setdefault("loss_given_default", 1.0)
        given.setdefault("funding_rate", 0.0)
        units = _column_units(backend, table, given, economics, notes)
        numbers = {field: _rate(backend, given[field], field, units.get(field)) for field in RATES}
        numbers["amount"] = _money(backend, given["amount"], "amount")
        numbers["term"] = _term(backend, given["term"], units["term"])
        # Each number is a column of an inner query: where it is used several times, its text is read once.
        read = table.mutate(**{NUMBERS[field]: number for field, number in numbers.items()})
        amount, years = read[NUMBERS["amount"]], read[NUMBERS["term"]]
        rate, funding, lost = (read[NUMBERS[field]] for field in RATES)
        sound = (rate > funding) & (funding >= 0.0) & (years > 0.0) & (years < MOST_MONEY)
        interest = _interest(rate, years) - _interest(funding, years)
        gain = ibis.ifelse(sound, amount * interest, ibis.null("float64"))
        loss = amount * lost
    priced = read.mutate(**{GAIN: gain, LOSS: loss})
    return priced.mutate(**{GAIN: ibis.ifelse(_valid(priced), priced[GAIN], ibis.null("float64"))})


def _valid(priced: ir.Table) -> Any:
    """Return whether gain and loss are valid. NaN is larger than any number here, so the upper limits reject it."""
    gain, loss = priced[GAIN], priced[LOSS]
    return (
        (gain > 0.0)
        & (loss > 0.0)
        & (gain < MOST_MONEY)
        & (loss < MOST_MONEY)
        & (gain > LEAST_RATIO * loss)
        & (loss > LEAST_RATIO * gain)
    )


def group_offers(
    backend: Any, used: ir.Table, names: Sequence[str], economics: Economics, rows: int
) -> dict[tuple[str, ...], SegmentEconomics]:
    """Return the offers of each segment from the rows that are used.

    ``used`` has the columns of the segment, gain, loss and accepted (true or false).
    """
    import numpy as np

    sums = {
        "rows": used.count(),
        "accepted_rows": used.count(where=used.accepted),
    }
    cells: Any = None
    if rows <= MOST_EXACT_ROWS:
        exact = used.group_by([*names, "gain", "loss"]).agg(**sums)
        cells = backend.to_pyarrow(exact.limit(MOST_EXACT + 1))
    if cells is None or cells.num_rows > MOST_EXACT:
        stake = used.gain + used.loss
        binned = used.mutate(
            amount_cell=(stake.ln() / AMOUNT_STEP).floor().cast("int64"),
            cost_cell=(used.loss / stake / COST_STEP).floor().cast("int64"),
        )
        cells = backend.to_pyarrow(
            binned.group_by([*names, "amount_cell", "cost_cell"]).agg(
                rows=binned.count(),
                accepted_rows=binned.count(where=binned.accepted),
                gain=binned.gain.mean(),
                loss=binned.loss.mean(),
                gain_variance=binned.gain.var(how="pop"),
                loss_variance=binned.loss.var(how="pop"),
                accepted_gain=binned.gain.mean(where=binned.accepted),
                accepted_loss=binned.loss.mean(where=binned.accepted),
            )
        )
    columns = {name: cells.column(name) for name in cells.column_names}
    members: dict[tuple[str, ...], list[int]] = {}
    for line, values in enumerate(zip(*(columns[name].to_pylist() for name in names), strict=True)):
        members.setdefault(tuple(str(value) for value in values), []).append(line)
    numbers = {
        name: np.nan_to_num(np.array(column.to_pylist(), dtype=np.float64))
        for name, column in columns.items()
        if name not in names
    }
    numbers.setdefault("accepted_gain", numbers["gain"])
    numbers.setdefault("accepted_loss", numbers["loss"])
    return {
        segment: _compressed({name: column[lines] for name, column in numbers.items()}, economics)
        for segment, lines in members.items()
    }


def strange_economics(backend: Any, priced: ir.Table, economics: Economics) -> list[tuple[str, int]]:
    """Return the most frequent values that are no valid numbers, each with its column and the number of its rows."""
    import ibis

    strange: list[tuple[str, int]] = []
    for field, name in economics.given.items():
        if not isinstance(name, str) or name not in priced.columns or not priced[name].type().is_string():
            continue
        texts = priced.filter(priced[NUMBERS[field]].isnull()).select(value=priced[name].strip())
        frequent = texts.group_by("value").agg(rows=texts.count())
        frequent = frequent.order_by(ibis.desc("rows"), "value").limit(MOST_NAMED)
        for row in backend.to_pyarrow(frequent).to_pylist():
            strange.append((f"{name} {row['value']!r}" if row["value"] else f"{name} missing", int(row["rows"])))
    return sorted(strange, key=lambda pair: -pair[1])[:MOST_NAMED]


def merged_offers(parts: Sequence[tuple[Offers, float]], most: int) -> Offers:
    """Return the offers of several segments as one distribution, each segment with its weight.

    >>> merged_offers([(Offers([100], [0.5]), 3), (Offers([200], [0.5]), 1)], 25).share
    (0.75, 0.25)
    """
    import numpy as np

    amounts = np.concatenate([np.array(offers.amount) for offers, _ in parts])
    losses = np.concatenate([np.array(offers.amount) * offers.cost for offers, _ in parts])
    weights = np.concatenate([weight * np.array(offers.share) for offers, weight in parts])
    merged = Offers.from_gains_and_losses(amounts - losses, losses, weights, most)
    return msgspec.structs.replace(merged, currency=parts[0][0].currency)


def parse_number(field: str, text: str) -> float | None:
    """Return the number that a text means, such as "0.6", "60%" or "36 months"; None if it is no number.

    A number of months is returned in years.

    >>> parse_number("rate", "12%"), parse_number("term", "36 months"), parse_number("term", "grade")
    (0.12, 3.0, None)
    """
    clean = re.sub(SIGNS, "", text.strip().lower()).strip()
    if field == "term":
        for pattern, parts in ((IN_MONTHS, MONTHS), (IN_YEARS, 1)):
            if re.match(pattern, clean):
                return _number(re.sub("[^0-9.]", "", clean.rstrip(".")), 1.0 / parts)
    if field in RATES and clean.endswith("%"):
        return _number(clean[:-1].strip(), 0.01)
    return _number(clean)


def _number(text: str, scale: float = 1.0) -> float | None:
    try:
        return float(text) * scale if math.isfinite(float(text)) else None
    except ValueError:
        return None


class _Constant(NamedTuple):
    """One number for all rows, and whether it was written with its unit."""

    value: float
    with_unit: bool


def _column_or_number(table: ir.Table, field: str, value: str | float) -> Any:
    """Return a column of the table, or a constant."""
    if isinstance(value, str):
        if value in table.columns:
            return table[value]
        constant = parse_number(field, value)
        if constant is None:
            raise InputError.unknown_name(field, value, table.columns, "the columns")
        with_unit = not re.match(NUMBER, value.strip())
    else:
        constant, with_unit = real(field, value), False
    if field == "funding_rate":
        real(field, constant, least=0)
    else:
        real(field, constant, above=0)
    most = {"rate": 1.0, "funding_rate": 1.0, "loss_given_default": 1.0 + 1e-9}.get(field)
    if most is not None and not with_unit and constant >= most:
        raise InputError(field, value, f"a fraction such as 0.12, or a text such as '{constant:g}%'")
    return _Constant(constant, with_unit)


def _column_units(
    backend: Any, table: ir.Table, given: Mapping[str, Any], economics: Economics, notes: list[str]
) -> dict[str, str]:
    """Return the unit of each column of rates and of the terms, by what is given or by what the numbers must be."""
    ranges: dict[str, tuple[Any, Any]] = {}
    for field in (*RATES, "term"):
        column = given.get(field)
        if column is None or isinstance(column, float | _Constant):
            continue
        if field == "term":
            value, plain = _term_number(backend, column)
            plain = plain & (economics.term_unit is None)
        else:
            value, plain = _rate_number(backend, column, field)
        positive = plain & (value > 0.0) & (value < MOST_MONEY)
        ranges[field] = (value.min(where=positive), value.max(where=positive))
    extremes: dict[str, Any] = {}
    if ranges:
        query = table.aggregate(**{f"{field}_{side}": expression for field, pair in ranges.items()
                                   for side, expression in zip(("least", "most"), pair, strict=True)})  # fmt: skip
        [extremes] = backend.to_pyarrow(query).to_pylist()
    units = {}
    for field in RATES:
        if field in ranges:
            name = given[field].get_name()
            least, most = (extremes[f"{field}_{side}"] for side in ("least", "most"))
            units[field] = _unit_of_rates(field, name, least, most, economics.rate_unit)
            if least is not None and units[field] == "percent":
                notes.append(f"Numbers in {name} are read as percents: {most:g} is {most:g}%.")
    term = given["term"]
    if "term" in ranges:
        least, most, name = extremes["term_least"], extremes["term_most"], f"column {term.get_name()}"
    else:
        least = most = None if term.with_unit else term.value
        name = "term"
    if economics.term_unit is None and most is not None and (most > LONGEST_YEARS or least >= FEWEST_MONTHS):
        shown = f"{least:g}" if least == most else f"{least:g} to {most:g}"
        raise InputError.because(
            f"must be given: {name} has {shown}, which may be months or years",
            "term_unit",
            value=most,
            code="missing",
            hint="It is either years or months.",
        )
    units["term"] = economics.term_unit or "years"
    return units


def _unit_of_rates(field: str, name: str, least: float | None, most: float | None, unit: str | None) -> str:
    """Return whether the plain numbers of a column are fractions or percents; raise InputError if it is not clear."""
    if field == "loss_given_default" and (most is None or most <= 1.0):
        return "fraction"
    if unit is not None and (unit == "percent" or field != "loss_given_default"):
        return unit
    if most is None or most < 1.0:
        return "fraction"
    raise InputError.because(
        f"must be given: column {name} has numbers from {least:g} to {most:g}, and {most:g} may mean {most:g}% or "
        f"{100.0 * most:,.0f}%",
        "rate_unit",
        value=[least, most],
        code="missing",
        hint="It is either percent (12 is 12%) or fraction (0.12 is 12%).",
    )


def _money(backend: Any, given: Any, field: str) -> Any:
    import ibis

    if isinstance(given, _Constant):
        return ibis.literal(given.value, type="float64")
    if not given.type().is_string():
        return _plain_number(given, field)
    return _text_number(backend, given.strip().re_replace(f"^{SIGNS} *", ""))


def _rate(backend: Any, given: Any, field: str, unit: str | None) -> Any:
    import ibis

    if isinstance(given, float | _Constant):
        return ibis.literal(given if isinstance(given, float) else given.value, type="float64")
    value, plain = _rate_number(backend, given, field)
    return value if unit == "fraction" else ibis.ifelse(plain, value / 100.0, value)


def _rate_number(backend: Any, column: Any, field: str) -> tuple[Any, Any]:
    """Return the numbers of a column of rates, those with a percent sign as fractions, and which have no such sign."""
    import ibis

    if not column.type().is_string():
        return _plain_number(column, field), column.notnull()
    text = column.strip()
    marked = text.endswith("%")
    number = _text_number(backend, text.re_replace(" *%$", ""))
    return ibis.ifelse(marked, number / 100.0, number), ~marked


def _term(backend: Any, given: Any, unit: str) -> Any:
    import ibis

    if isinstance(given, _Constant):
        parts = MONTHS if unit == "months" and not given.with_unit else 1
        return ibis.literal(given.value / parts, type="float64")
    value, plain = _term_number(backend, given)
    return ibis.ifelse(plain, value / MONTHS, value) if unit == "months" else value


def _term_number(backend: Any, column: Any) -> tuple[Any, Any]:
    """Return the numbers of a column of terms, those with a unit in years, and which have no unit."""
    import ibis

    if not column.type().is_string():
        return _plain_number(column, "term"), column.notnull()
    text = column.strip().lower()
    number = _text_number(backend, text.re_extract("^([0-9.]+)", 1))
    value = ibis.cases(
        (text.re_search(IN_MONTHS), number / MONTHS),
        (text.re_search(IN_YEARS) | text.re_search(PLAIN_TERM), number),
        else_=ibis.null("float64"),
    )
    return value, text.re_search(PLAIN_TERM)


def _plain_number(column: Any, field: str) -> Any:
    kind = column.type()
    if not kind.is_numeric():
        raise InputError(field, str(kind), "a column of numbers", label=f"column {column.get_name()}")
    return column.cast("float64")


def _text_number(backend: Any, text: Any) -> Any:
    """Return the number that a text means; missing if it is none."""
    import ibis
    import ibis.expr.operations as ops

    if backend.has_operation(ops.TryCast):
        # Without the test, DuckDB would read texts such as 'nan' and '1_000' as numbers.
        return ibis.ifelse(text.re_search(NUMBER), text.try_cast("float64"), ibis.null("float64"))
    return ibis.ifelse(text.re_search(NUMBER), text, ibis.null("string")).cast("float64")


def _interest(rate: Any, years: Any) -> Any:
    """Return the interest that a loan of 1 pays in all, in equal monthly payments."""
    import ibis

    monthly, payments = ibis.greatest(rate, SMALL_RATE) / MONTHS, years * MONTHS
    full = monthly * payments / (1.0 - (-payments * (1.0 + monthly).ln()).exp()) - 1.0
    least = rate / MONTHS
    series = least * (payments + 1.0) / 2.0 + least * least * (payments * payments - 1.0) / 12.0
    return ibis.ifelse(rate >= SMALL_RATE, full, series)


def _compressed(cells: Mapping[str, NDArray[np.float64]], economics: Economics) -> SegmentEconomics:
    """Compress the cells of a segment to a few offers, and bound the error."""
    import numpy as np

    rows = cells["rows"]
    offers, error = compress_with_error(cells["gain"], cells["loss"], rows, economics.most_offers)
    if "gain_variance" in cells:
        error += float(rows @ np.sqrt(cells["gain_variance"] + cells["loss_variance"])) / float(rows.sum())
    accepted = cells["accepted_rows"]
    count = max(float(accepted.sum()), 1.0)
    return SegmentEconomics(
        offers=msgspec.structs.replace(offers, currency=economics.currency),
        error=error,
        accepted_gain=float(accepted @ cells["accepted_gain"]) / count,
        accepted_loss=float(accepted @ cells["accepted_loss"]) / count,
    )

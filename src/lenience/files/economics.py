"""Read what each row of a table may gain and lose: from gains and losses, or from the terms of loans.

Each field of :class:`Economics` names a column or gives one value for all rows. A name that is a column wins over a
value. There are two ways to describe a row:

- ``gain`` and ``loss``: what a success earns and what a failure loses, both above 0.
- ``amount``, ``rate`` and ``term`` of a loan that is repaid in equal monthly payments, with ``loss_given_default`` (the
  share of the amount that a default loses, by default 1) and ``funding_rate`` (by default 0).
  :meth:`lenience.core.offers.Offer.from_loan` has the formula.

Conventions, the same wherever loans are read:

- A **rate** is a fraction a year (0.12) or a text with a percent sign ("12%", "12.5 %", "12,5%"). If a column has a
  number of 1 or more without a percent sign, ``rate_unit`` must say whether it is a percent, because 12 may mean 12%
  or 1,200%. The loss given default follows the same rule, except that it may be 1.
- A **term** is a number of years, or a text with its unit ("36 months", "3 years"). If a number without a unit may be
  in months, ``term_unit`` must say what it is.
- An **amount** of money is a number, perhaps with a currency sign or code. If all commas of a column separate thousands
  ("$1,200.50") or all are decimal commas ("1.200,50 €"), they are read so, and a note says it. Otherwise values with
  commas are invalid.

The engine that holds the rows computes gain and loss (:func:`with_economics`). :meth:`Economics.read` does the same for
columns in memory, and raises an error that names the row if a value that is needed is missing or invalid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from lenience.core.errors import InputError
from lenience.core.offers import MONTHS, Offers
from lenience.core.validation import real, whole
from lenience.files.vocabulary import CURRENCY, NUMBER, WITH_THOUSANDS, how_to_write, is_missing

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    from numpy.typing import NDArray

Unit = Literal["years", "months"]
RateUnit = Literal["fraction", "percent"]

MOST_MONEY = 1e15  # a larger gain or loss is not valid
LEAST_RATIO = 1e-9  # of gain to loss, and of loss to gain: below it the break-even is 0 or 1 after rounding
SMALL_RATE = 1e-4  # a year: below it the interest is computed by a series, because the formula loses digits
LONGEST_YEARS, FEWEST_MONTHS = 30.0, 12.0  # a plain term above the one, or all from the other on, may be months

SIGNS = "[$€£¥]"
WITH_DECIMALS = r"^[-+]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+),[0-9]{1,2}$"
DECIMAL_COMMA_RATE = r"^([-+]?[0-9]{1,2}),([0-9]{1,3})$"
SPACED = r"^[-+]?[0-9]{1,3}([ '\x{a0}\x{202f}][0-9]{3})+([.,][0-9]*)?$"  # spaces or apostrophes between thousands
BEGINS_AS_NUMBER = rf" *{SIGNS}? *[-+.]?[0-9]"  # such a text is a value that is not valid, rather than a column
IN_MONTHS = r"^[0-9.]+ *m(o|os|on|onth|onths)?\.?$"
IN_YEARS = r"^[0-9.]+ *y(r|rs|ear|ears)?\.?$"
PLAIN_TERM = r"^[0-9.]+$"

ROW = "__row__"  # the number of a row
GAIN, LOSS = "__gain__", "__loss__"  # derived columns of a row; a gain that is missing is not valid
GAIN_AND_LOSS = ("gain", "loss")
LOAN = ("amount", "rate", "term")
LOAN_OPTIONS = ("loss_given_default", "funding_rate")
RATES = ("rate", "funding_rate", "loss_given_default")
FIELDS = (*GAIN_AND_LOSS, *LOAN, *LOAN_OPTIONS)
NUMBERS = {name: f"__{name}_number__" for name in FIELDS}  # derived columns
ALLOWED = {
    **dict.fromkeys(("gain", "loss", "amount"), "an amount of money above 0, such as 1000"),
    "rate": "a rate above 0, such as 0.12 or 12%",
    "term": "a term above 0, such as 3 (years) or 36 months",
    "loss_given_default": "a share above 0, such as 0.6 or 60%",
    "funding_rate": "a rate of at least 0, such as 0.04 or 4%",
}


class GainsAndLosses(NamedTuple):
    """What each row may gain and lose, in money. Rows that were not needed are NaN."""

    gain: NDArray[np.float64]
    loss: NDArray[np.float64]

    @property
    def amount(self) -> NDArray[np.float64]:
        """The amount at stake of each row: gain plus loss."""
        return self.gain + self.loss

    @property
    def cost(self) -> NDArray[np.float64]:
        """The break-even success rate of each row: loss/(gain + loss)."""
        return self.loss / (self.gain + self.loss)

    def offers(self, currency: str = "", most: int = 25) -> Offers:
        """Return the offers of the population: the rows, compressed to at most ``most`` offers.

        Parameters
        ----------
        currency : str, optional
            The sign or code that texts show amounts with.
        most : int, optional
            The largest number of offers.

        Returns
        -------
        Offers
            The offers with their shares. Rows that are NaN are left out.

        Examples
        --------
        >>> import numpy as np
        >>> rows = GainsAndLosses(np.array([200.0, 100.0, 100.0]), np.array([800.0, 100.0, 100.0]))
        >>> few = rows.offers("$")
        >>> few.amount, few.cost, [round(share, 3) for share in few.share]
        ((200.0, 1000.0), (0.5, 0.8), [0.667, 0.333])
        """
        import numpy as np

        known = np.isfinite(self.gain) & np.isfinite(self.loss)
        few = Offers.from_gains_and_losses(self.gain[known], self.loss[known], most=most)
        return msgspec.structs.replace(few, currency=currency)


class Economics(msgspec.Struct, frozen=True):
    """Where to find what each row may gain and lose.

    Give gain and loss, or amount, rate and term. Each is the name of a column, or one value for all rows.

    Parameters
    ----------
    gain : str or float, optional
        What a success earns.
    loss : str or float, optional
        What a failure loses.
    amount : str or float, optional
        The amount lent, instead of the gain and the loss.
    rate : str or float, optional
        The interest rate a year: 0.12 or "12%".
    term : str or float, optional
        The term: in years, in months with ``term_unit="months"``, or with its unit, such as "36 months".
    loss_given_default : str or float, optional
        The share of the amount that a default loses; everything by default.
    funding_rate : str or float, optional
        The rate a year at which the lender funds the loan; 0 by default.
    term_unit : {"years", "months"}, optional
        The unit of terms without a unit.
    rate_unit : {"fraction", "percent"}, optional
        What numbers without a percent sign are in the columns of rates: 0.12, or 12 for 12%. It is needed where a
        number is 1 or more.
    currency : str, optional
        The sign or code that texts show amounts with.
    most_offers : int, optional
        The largest number of offers to keep for each segment.

    Raises
    ------
    InputError
        If the fields do not describe gains and losses in one of the two ways.

    Examples
    --------
    >>> loans = {"asked": ["1000", "5000"], "rate": ["20%", "10%"], "months": ["36 months", "60 months"]}
    >>> rows = Economics(amount="asked", rate="rate", term="months", loss_given_default=0.6).read(loans)
    >>> rows.gain.round().tolist(), rows.loss.round().tolist()
    ([338.0, 1374.0], [600.0, 3000.0])
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

    def __post_init__(self) -> None:
        given = self.given
        if not given:
            raise InputError.because(
                "Give gain and loss, or amount, rate and term", (*GAIN_AND_LOSS, *LOAN), label="", code="missing"
            )
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

    @property
    def given(self) -> dict[str, str | float]:
        """The columns and values that are given."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name) is not None}

    @classmethod
    def from_options(cls, **values: Any) -> Economics | None:
        """Return what the options describe, or None if they name neither gains and losses nor loans.

        Parameters
        ----------
        **values
            The fields of the class.

        Returns
        -------
        Economics or None
            Where to find gains and losses.

        Raises
        ------
        InputError
            If the options do not fit together, or a unit or a currency is given alone.

        Examples
        --------
        >>> Economics.from_options(gain=None, loss=None) is None
        True
        """
        if any(values.get(name) is not None for name in FIELDS):
            return cls(**values)
        for option in ("term_unit", "rate_unit", "currency"):
            if values.get(option):
                raise InputError.because(
                    "needs gain and loss, or amount, rate and term", option, value=values[option], code="missing"
                )
        return None

    def read(
        self,
        columns: Mapping[str, Sequence[Any]],
        rows: NDArray[np.bool_] | None = None,
        notes: list[str] | None = None,
    ) -> GainsAndLosses:
        """Return what each row of columns in memory may gain and lose.

        Parameters
        ----------
        columns : mapping of str to sequence
            The columns of the file.
        rows : ndarray of bool, optional
            The rows that are needed; by default all. Values of the others are not read.
        notes : list of str, optional
            A list to which sentences on how columns were read are added.

        Returns
        -------
        GainsAndLosses
            The gain and the loss of each row.

        Raises
        ------
        InputError
            If a column does not exist, the unit of a column is not clear, or a value in a row that is needed is missing
            or invalid.

        Examples
        --------
        >>> Economics(gain="interest", loss=800).read({"interest": ["200", "150"]}).loss.tolist()
        [800.0, 800.0]
        """
        import numpy as np

        from lenience.files.source import open_source, reading, without_engine_warnings

        count = len(next(iter(columns.values()), []))
        places = np.arange(count) if rows is None else np.flatnonzero(rows)
        gain, loss = np.full((2, count), np.nan)
        if not places.size:
            return GainsAndLosses(gain, loss)
        wanted = [name for name in columns if name in self.given.values()]
        with without_engine_warnings(), reading(None):
            import pyarrow as pa

            cells = {name: [_text(columns[name][place]) for place in places.tolist()] for name in wanted}
            # DuckDB ignores case in names: columns whose names differ only in case would be one.
            different = {name.lower() for name in wanted}
            names: dict[Any, str] = {
                name: name if len(different) == len(wanted) else f"{name} ({position})"
                for position, name in enumerate(wanted, start=1)
            }
            texts = {names[name]: pa.array(column, pa.string()) for name, column in cells.items()}
            renamed = {field: names.get(value, value) for field, value in self.given.items()}
            economics = msgspec.structs.replace(self, **renamed)
            table, backend = open_source({ROW: pa.array(places), **texts})
            try:
                priced = with_economics(backend, table, economics, [] if notes is None else notes, list(columns))
                numbers = {field: NUMBERS[field] for field in self.given}
                result = backend.to_pyarrow(priced.select(ROW, GAIN, LOSS, *numbers.values()).order_by(ROW))
            finally:
                backend.disconnect()
        gain[places], loss[places] = (result.column(name).to_numpy() for name in (GAIN, LOSS))
        invalid = np.flatnonzero(np.isnan(gain[places]))
        if invalid.size:
            line = int(invalid[0])
            raise self._invalid_row(
                int(places[line]),
                {name: column[line] for name, column in cells.items()},
                {field: result.column(name)[line].as_py() for field, name in numbers.items()},
            )
        return GainsAndLosses(gain, loss)

    def _invalid_row(
        self, place: int, cells: Mapping[str, str | None], numbers: Mapping[str, float | None]
    ) -> InputError:
        """Return an error that says why a row has no valid gain and loss."""
        row = f"row {place + 1:,}"
        for field, name in self.given.items():
            number = numbers[field]
            if number is not None and (number > 0.0 or (number == 0.0 and field == "funding_rate")):
                continue
            cell = cells[str(name)]  # values for all rows are valid
            if cell is None:
                error = InputError.because("must not be missing", field, value=None, code="missing")
            else:
                error = InputError(field, cell, ALLOWED[field], hint=how_to_write(cell) or None)
            return error.at(f"{row}, column {name!r}")
        rate, funding = numbers.get("rate"), numbers.get("funding_rate")
        if rate is not None and funding is not None and funding >= rate:
            allowed = f"below the rate of {rate:g}, or nothing is gained"
            return InputError("funding_rate", funding, allowed, place=row)
        return InputError.because(
            f"must be below {MOST_MONEY:g}, and neither may be less than a billionth of the other",
            tuple(self.given),
            label="gain and loss",
            place=row,
        )


def with_economics(
    backend: Any, table: ir.Table, economics: Economics, notes: list[str], columns: Sequence[str] | None = None
) -> ir.Table:
    """Return a table with the gain and the loss of each row, in the columns ``GAIN`` and ``LOSS``.

    Parameters
    ----------
    backend : ibis.BaseBackend
        The engine that holds the rows.
    table : ibis.Table
        The rows.
    economics : Economics
        Where to find gains and losses.
    notes : list of str
        A list to which sentences on how columns were read are added.
    columns : sequence of str, optional
        The names that an error suggests for an unknown column; by default the table's.

    Returns
    -------
    ibis.Table
        The table with more columns. A row without a valid gain and loss has no gain.

    Raises
    ------
    InputError
        If a column does not exist, a value for all rows is invalid, or the unit of a column is not clear.
    """
    import ibis

    names = table.columns if columns is None else columns
    given = {field: _column_or_number(table, field, value, names) for field, value in economics.given.items()}
    if "gain" in given:
        numbers = {field: _money(backend, table, given[field], field, notes) for field in GAIN_AND_LOSS}
        read = table.mutate(**{NUMBERS[field]: number for field, number in numbers.items()})
        gain, loss = (read[NUMBERS[field]] for field in GAIN_AND_LOSS)
    else:
        given.setdefault("loss_given_default", 1.0)
        given.setdefault("funding_rate", 0.0)
        units = _column_units(backend, table, given, economics, notes)
        numbers = {field: _rate(backend, given[field], field, units.get(field)) for field in RATES}
        numbers["amount"] = _money(backend, table, given["amount"], "amount", notes)
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


def parse_number(field: str, text: str) -> float | None:
    """Return the number that a text means, such as "0.6", "60%" or "36 months".

    Parameters
    ----------
    field : str
        The field of :class:`Economics` that the text is for: only rates have percents, and only terms have units.
    text : str
        The text.

    Returns
    -------
    float or None
        The number, a number of months in years; None if the text is no number.

    Examples
    --------
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
    number = float(text) if re.match(NUMBER, text) else math.nan
    return number * scale if math.isfinite(number) else None


def _text(cell: object) -> str | None:
    """Return a cell as a text, or None if it is missing."""
    return None if is_missing(cell) else str(cell)


class _Constant(NamedTuple):
    """One number for all rows, and whether it was written with its unit."""

    value: float
    with_unit: bool


def _column_or_number(table: ir.Table, field: str, value: str | float, names: Sequence[str]) -> Any:
    """Return a column of the table, or a constant."""
    if isinstance(value, str):
        if value in table.columns:
            return table[value]
        constant = parse_number(field, value)
        if constant is None and re.match(BEGINS_AS_NUMBER, value):
            raise InputError(field, value, ALLOWED[field], hint=how_to_write(value.strip()) or None)
        if constant is None:
            raise InputError.unknown_name(field, value, names, "the columns")
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


def _money(backend: Any, table: ir.Table, given: Any, field: str, notes: list[str]) -> Any:
    """Return the numbers of a column of money, or one number for all rows."""
    import ibis

    if isinstance(given, _Constant):
        return ibis.literal(given.value, type="float64")
    if not given.type().is_string():
        return _plain_number(given, field)
    text = given.strip().re_replace(f"^{CURRENCY} *", "").re_replace(f" *{CURRENCY}$", "")
    if backend.name == "duckdb":  # other engines have other regular expressions
        text = ibis.ifelse(text.re_search(SPACED), text.re_replace(r"[ '\x{a0}\x{202f}]", ""), text)
    rows = table.select(text=text, value=given)
    rows = rows.filter(rows.text.contains(","))
    thousands, decimals = rows.text.re_search(WITH_THOUSANDS), rows.text.re_search(WITH_DECIMALS)
    query = rows.aggregate(
        thousands=rows.count(where=thousands),
        decimals=rows.count(where=decimals),
        example=rows["value"].max(where=thousands | decimals),
    )
    [commas] = backend.to_pyarrow(query).to_pylist()
    if commas["thousands"] and not commas["decimals"]:
        notes.append(f"{given.get_name()}: commas separate thousands, as in {commas['example'].strip()!r}.")
        text = ibis.ifelse(text.re_search(WITH_THOUSANDS), text.replace(",", ""), text)
    elif commas["decimals"] and not commas["thousands"]:
        notes.append(f"{given.get_name()}: numbers with a decimal comma, as in {commas['example'].strip()!r}.")
        pointed = text.replace(".", "").replace(",", ".")
        text = ibis.ifelse(text.re_search(WITH_DECIMALS), pointed, text)
    return _text_number(backend, text)


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
    plain = text.re_replace(" *%$", "")
    number = _text_number(backend, plain.re_replace(DECIMAL_COMMA_RATE, r"\1.\2"))
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

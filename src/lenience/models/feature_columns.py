"""Declared features: name, type, allowed values and unit, and the row of numbers that a model sees.

A model that is stored and served needs to know what a request may contain. :class:`FeatureColumn` declares one feature.
:class:`RowEncoding` turns an applicant, a mapping from names to values, into a row of numbers:

    number       the value itself; a missing value is NaN
    category     one column for each declared value, 1 where it applies; all NaN if the category is missing
    unseen       if there is a category: the number of features whose category is not declared

A category that is not declared has zeros in all columns of its feature, and counts in the last column. This is what
``OneHotEncoder(handle_unknown="ignore")`` and :mod:`lenience.policies.features.unseen` do in a Pipeline. A missing
value says nothing: models put it at the mean of the column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.validation import listed, mapped, real
from lenience.models.feature_model import is_missing

PLAIN = r"^[^\x00-\x1f\x7f]*$"
MOST_VALUES = 200  # of a category
LARGEST = float(np.finfo(np.float64).max)  # a bound that only infinity exceeds
Bound = Annotated[float, Meta(ge=-1e300, le=1e300)]
Value = float | int | str | bool | None


class FeatureColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One feature: a number with a range, or a category with its values.

    Parameters
    ----------
    name : str
        The name, as in a request or a file.
    type : {"number", "category"}, default "number"
        What kind of value it has.
    minimum, maximum : float, optional
        The range of a number. A value outside is an error, because it is probably in another unit.
    values : tuple of str
        The values of a category. Other values are allowed and count as unseen.
    unit : str, default ""
        The unit of a number, such as "USD" or "years".
    required : bool, default False
        Whether a missing value is an error.

    Raises
    ------
    InputError
        If a number has values, a category has a range or no values, or values repeat.

    Examples
    --------
    >>> income = FeatureColumn("income", minimum=0, unit="USD a year")
    >>> purpose = FeatureColumn("purpose", "category", values=("car", "home"))
    >>> income.check(52_000), purpose.check("boat"), purpose.check(None)
    (52000.0, 'boat', None)
    """

    name: Annotated[str, Meta(min_length=1, max_length=64, pattern=PLAIN)]
    type: Literal["number", "category"] = "number"
    minimum: Bound | None = None
    maximum: Bound | None = None
    values: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=200, pattern=PLAIN)], ...], Meta(max_length=MOST_VALUES)
    ] = ()
    unit: Annotated[str, Meta(max_length=32, pattern=PLAIN)] = ""
    required: bool = False

    def __post_init__(self) -> None:
        # Equal declarations have equal bytes, however they were written.
        for field in ("minimum", "maximum"):
            if (given := getattr(self, field)) is not None:
                force_setattr(self, field, real(f"columns.{self.name}.{field}", given))
        force_setattr(self, "values", tuple(listed(f"columns.{self.name}.values", self.values, "a list of texts")))
        if self.type not in ("number", "category"):
            raise InputError(f"columns.{self.name}.type", self.type, "'number' or 'category'")
        if self.type == "number":
            if self.values:
                raise self._wrong("must not have values, because it is a number", "values")
            low, high = self.minimum, self.maximum
            if low is not None and high is not None and not low < high:
                raise InputError(
                    f"columns.{self.name}.maximum",
                    high,
                    f"above the minimum {low:g}",
                    label=f"maximum of {self.name!r}",
                )
            return
        if self.minimum is not None or self.maximum is not None:
            raise self._wrong("must not have a range, because it is a category", "minimum")
        if not self.values:
            raise self._wrong("must list its values, because it is a category", "values")
        if len(set(self.values)) < len(self.values):
            raise self._wrong("must not list a value twice", "values")

    def _wrong(self, reason: str, field: str) -> InputError:
        return InputError.because(
            reason, f"columns.{self.name}.{field}", label=f"the column {self.name!r}", code="conflicting_fields"
        )

    def check(self, value: object) -> float | str | None:
        """Return a value as the model uses it: a float, a text, or None if it is missing.

        Parameters
        ----------
        value : object
            The value in a request or a file.

        Returns
        -------
        float, str or None
            The value.

        Raises
        ------
        InputError
            If the value has another type, is outside the range, or is missing but required.

        Examples
        --------
        >>> FeatureColumn("age", minimum=18, maximum=120).check(1975)
        Traceback (most recent call last):
            ...
        lenience.core.errors.InputError: the feature 'age' must be a number from 18 to 120, not 1975
        """
        if value is None or is_missing(value):
            if self.required:
                raise InputError.because(
                    "is required", f"features.{self.name}", label=f"the feature {self.name!r}", code="missing"
                )
            return None
        if self.type == "category":
            text = category_text(value)
            if text is None:
                raise self._invalid(value, f"a text, such as {self.values[0]!r}")
            return text
        if isinstance(value, bool) or not isinstance(value, float | int | np.floating | np.integer):
            raise self._invalid(value, f"a number{self._range()}")
        number = float(value)
        low, high = self.minimum, self.maximum
        if not math.isfinite(number) or (low is not None and number < low) or (high is not None and number > high):
            raise self._invalid(value, f"a number{self._range()}")
        return number

    def _range(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.minimum is not None and self.maximum is not None:
            return f" from {self.minimum:g} to {self.maximum:g}{unit}"
        if self.minimum is not None:
            return f" of at least {self.minimum:g}{unit}"
        return "" if self.maximum is None else f" of at most {self.maximum:g}{unit}"

    def _invalid(self, value: object, allowed: str) -> InputError:
        return InputError(f"features.{self.name}", value, allowed, label=f"the feature {self.name!r}")


def category_text(value: object) -> str | None:
    """Return a category as a text; whole numbers and truth values have one text each.

    >>> category_text("car"), category_text(3), category_text(3.0), category_text(True), category_text([])
    ('car', '3', '3', 'true', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return None


class Block(NamedTuple):
    """The encoded columns of one feature: from ``start`` up to, but not including, ``stop``."""

    column: FeatureColumn
    start: int
    stop: int


class RowEncoding:
    """Turn applicants with declared features into rows of numbers.

    Parameters
    ----------
    columns : sequence of FeatureColumn
        The features, in order.

    Raises
    ------
    InputError
        If there is no column, or two have the same name.

    Examples
    --------
    >>> encoding = RowEncoding([FeatureColumn("age"), FeatureColumn("region", "category", values=("north", "south"))])
    >>> encoding.row({"age": 40, "region": "south"})
    array([40.,  0.,  1.,  0.])
    >>> encoding.row({"region": "west"})  # a missing number, and a category that is not declared
    array([nan,  0.,  0.,  1.])
    """

    def __init__(self, columns: Sequence[FeatureColumn]) -> None:
        self.columns = tuple(columns)
        names = [column.name for column in self.columns]
        if not names:
            raise InputError("columns", [], "a list of at least one FeatureColumn", code="missing")
        if len(set(names)) < len(names):
            raise InputError.because("must have different names", "columns", code="duplicate")
        blocks, start = [], 0
        for column in self.columns:
            stop = start + (len(column.values) if column.type == "category" else 1)
            blocks.append(Block(column, start, stop))
            start = stop
        self.blocks = tuple(blocks)
        self.counts_unseen = any(column.type == "category" for column in self.columns)
        self.width = start + self.counts_unseen
        self._names = frozenset(names)
        self._positions = {
            column.name: {value: i for i, value in enumerate(column.values)} for column in self.columns if column.values
        }
        self._categories = tuple(block for block in self.blocks if block.column.type == "category")
        self._numbers = tuple(_plain_bounds(block) for block in self.blocks if block.column.type != "category")

    @property
    def spare(self) -> int:
        """The number of last columns that known rows leave empty: 1 if categories can be unseen."""
        return int(self.counts_unseen)

    def sources(self) -> list[int]:
        """Return the feature that each encoded column belongs to.

        Returns
        -------
        list of int
            The position of a feature for each encoded column; −1 for the count of unseen categories.
        """
        of = [i for i, block in enumerate(self.blocks) for _ in range(block.start, block.stop)]
        return of + [-1] * self.spare

    def row(self, applicant: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the row of one applicant.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name. A feature that is not there is missing.

        Returns
        -------
        ndarray
            The row.

        Raises
        ------
        InputError
            If a value is invalid or a name is not declared.
        """
        return np.array(self._plain_row(applicant) or self._closer(applicant), dtype=np.float64)

    def _closer(self, applicant: Mapping[str, Any]) -> list[float]:
        """Return the row of one applicant value by value, or raise InputError for the first one that is invalid."""
        given = mapped("features", applicant, "an object with a value for each feature")
        if not self._names.issuperset(given):
            unknown = next(name for name in given if name not in self._names)
            raise InputError.unknown_name("features", unknown, [column.name for column in self.columns])
        out = [0.0] * self.width
        for column, start, stop in self.blocks:
            value = column.check(given.get(column.name))
            if value is None:
                out[start:stop] = [math.nan] * (stop - start)
            elif isinstance(value, str):
                position = self._positions[column.name].get(value)
                if position is None:
                    out[-1] += 1.0
                else:
                    out[start + position] = 1.0
            else:
                out[start] = value
        return out

    def rows(self, applicants: Any) -> NDArray[np.float64]:
        """Return the rows of many applicants: a data frame, or a list of mappings.

        Parameters
        ----------
        applicants : data frame or iterable of mapping
            The applicants. Columns of a data frame that are not declared are an error.

        Returns
        -------
        ndarray
            One row for each applicant.
        """
        people = applicant_list(applicants, [column.name for column in self.columns])
        rows = [self._plain_row(each) or self._closer(each) for each in people]
        return np.array(rows, dtype=np.float64).reshape(len(people), self.width)

    def _plain_row(self, applicant: Mapping[str, Any]) -> list[float] | None:
        """Return the row of an applicant with plain values, or None if one needs a closer look or is invalid."""
        if type(applicant) is not dict or not self._names.issuperset(applicant):
            return None
        cells, get = [0.0] * self.width, applicant.get
        for name, place, low, high, required in self._numbers:
            value: Any = get(name)
            kind = type(value)
            if kind is float or kind is int:
                if not low <= value <= high:  # NaN is not either
                    return None
                cells[place] = value
            elif value is None and not required:
                cells[place] = math.nan
            else:
                return None
        for column, start, stop in self._categories:
            value = get(column.name)
            if type(value) is str:
                position = self._positions[column.name].get(value)
                if position is None:
                    cells[-1] += 1.0
                else:
                    cells[start + position] = 1.0
            elif value is None and not column.required:
                cells[start:stop] = [math.nan] * (stop - start)
            else:
                return None
        return cells

    def unseen(self, applicant: Mapping[str, Any]) -> list[str]:
        """Return the features of an applicant whose category is not declared.

        Parameters
        ----------
        applicant : mapping
            The value of each feature by name.

        Returns
        -------
        list of str
            Names of features.
        """
        return [
            column.name
            for column in self.columns
            if column.type == "category" and (value := column.check(applicant.get(column.name))) is not None
            and value not in column.values
        ]  # fmt: skip


def _plain_bounds(block: Block) -> tuple[str, int, float, float, bool]:
    """Return the name, the place and the range of a number, and whether it is required."""
    column = block.column
    low = -LARGEST if column.minimum is None else column.minimum
    high = LARGEST if column.maximum is None else column.maximum
    return column.name, block.start, low, high, column.required


def applicant_list(applicants: Any, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return applicants as mappings: from a data frame, from mappings, or from plain rows in the order of ``names``."""
    if hasattr(applicants, "to_pylist"):  # pyarrow
        return list(applicants.to_pylist())
    if hasattr(applicants, "to_dicts"):  # polars
        return list(applicants.to_dicts())
    if hasattr(applicants, "to_dict") and hasattr(applicants, "columns"):  # pandas
        return list(applicants.to_dict("records"))
    if isinstance(applicants, Mapping):
        return [applicants]
    out: list[Mapping[str, Any]] = []
    for each in applicants:
        if isinstance(each, Mapping):
            out.append(each)
            continue
        values = list(each)
        if len(values) != len(names):
            raise InputError(
                "X", len(values), f"rows with {len(names)} values: {', '.join(names)}", code="length_mismatch"
            )
        out.append(
            {name: getattr(value, "item", lambda v=value: v)() for name, value in zip(names, values, strict=True)}
        )
    return out


def infer_columns(applicants: Any, categories: Iterable[str] = ()) -> list[FeatureColumn]:
    """Declare the columns of past applicants: text is a category, everything else a number.

    Parameters
    ----------
    applicants : data frame or list of mapping
        Past applicants.
    categories : iterable of str
        Columns that are categories although they hold numbers.

    Returns
    -------
    list of FeatureColumn
        One declaration for each column, with the categories that occur. Ranges are open.

    Raises
    ------
    InputError
        If a column is empty, or has too many categories.

    Examples
    --------
    >>> [column.type for column in infer_columns([{"age": 30, "region": "north"}, {"age": None, "region": "south"}])]
    ['number', 'category']
    """
    people = applicant_list(applicants, [])
    if not people:
        raise InputError("X", [], "at least one row", code="insufficient_data")
    names = list(dict.fromkeys(name for row in people for name in row))
    named = set(categories)
    for name in named - set(names):
        raise InputError.unknown_name("categories", name, names, "the columns")
    columns = []
    for name in names:
        known = [value for row in people if not is_missing(value := row.get(name))]
        if not known:
            raise InputError.because(
                "has no value in any row", f"columns.{name}", label=f"the column {name!r}", code="insufficient_data",
                hint="Leave it out.",
            )  # fmt: skip
        if name not in named and all(
            isinstance(value, float | int | np.number) and not isinstance(value, bool) for value in known
        ):
            columns.append(FeatureColumn(name))
            continue
        texts = sorted({str(category_text(value)) for value in known})
        if len(texts) > MOST_VALUES:
            raise InputError.because(
                f"has {len(texts):,} different values, more than the {MOST_VALUES} that a category may have",
                f"columns.{name}", label=f"the column {name!r}", code="too_large",
                hint="Leave it out, or group its values.",
            )  # fmt: skip
        columns.append(FeatureColumn(name, "category", values=tuple(texts)))
    return columns

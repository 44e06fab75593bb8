"""Options of past decisions that are short texts: bands such as score:5, and break-evens such as students=0.9."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lenience.core.errors import InputError
from lenience.files.vocabulary import how_to_write

if TYPE_CHECKING:
    from lenience.history.bands import Cut


def check_accepted(column: str | None, all_accepted: bool) -> str | None:
    """Return the column that says who was accepted, or None if everyone was.

    >>> check_accepted("approved", False)
    'approved'
    """
    if column is None and not all_accepted:
        raise InputError.because(
            "is missing", "--accepted", code="missing",
            hint="Name the column that says who was accepted, or type --all-accepted if everyone was.",
        )  # fmt: skip
    if column is not None and all_accepted:
        raise InputError.because(
            "Give either --accepted or --all-accepted, not both",
            ("--accepted", "--all-accepted"),
            label="",
            code="conflicting_fields",
        )
    return column


def read_bands(texts: Iterable[str]) -> dict[str, Cut]:
    """Return the columns that are cut into bands.

    >>> read_bands(["score:5", "age:30,50"])
    {'score': 5, 'age': (30.0, 50.0)}
    """
    from lenience.history.bands import read_cut

    bands: dict[str, Cut] = {}
    for text in texts:
        column, colon, cut = text.rpartition(":")
        if not colon or not column:
            raise InputError("--score-bands", text, "a column and its bands, e.g. score:5 or score:580,640,700")
        if column in bands:
            raise InputError.because(f"names {column!r} twice", "--score-bands", value=column, code="duplicate")
        try:
            bands[column] = read_cut(column, cut)
        except InputError as error:
            raise InputError.because(str(error), "--score-bands", label="--score-bands:", value=text) from None
    return bands


def read_segment_costs(texts: Iterable[str]) -> dict[str, float]:
    """Return the break-evens of single segments; a name may contain "=".

    >>> read_segment_costs(["region=north=0.9", "students = 85%"])
    {'region=north': 0.9, 'students': 0.85}
    """
    costs: dict[str, float] = {}
    for text in texts:
        name, equals, number = (part.strip() for part in text.rpartition("="))
        try:
            cost = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            cost = 0.0
        if not equals or not name or not 0 < cost < 1:
            raise InputError(
                "--segment-cost", text, "a segment and its break-even between 0 and 1, e.g. students=0.9",
                hint=how_to_write(number) or None,
            )  # fmt: skip
        if name in costs:
            raise InputError.because(f"names {name!r} twice", "--segment-cost", value=name, code="duplicate")
        costs[name] = cost
    return costs


def read_ranges(texts: Iterable[str]) -> dict[str, tuple[float | None, float | None]]:
    """Return the smallest and the largest value of features; an end may be open.

    >>> read_ranges(["income=0:1000000", "age=18:"])
    {'income': (0.0, 1000000.0), 'age': (18.0, None)}
    """
    ranges: dict[str, tuple[float | None, float | None]] = {}
    for text in texts:
        name, equals, ends = (part.strip() for part in text.rpartition("="))
        low, colon, high = ends.partition(":")
        try:
            ranges[name] = (float(low) if low.strip() else None, float(high) if high.strip() else None)
        except ValueError:
            equals = ""
        if not equals or not name or not colon or ranges[name] == (None, None):
            raise InputError("--feature-range", text, "a feature and its range, e.g. income=0:1000000 or age=18:")
    return ranges


def read_units(texts: Iterable[str]) -> dict[str, str]:
    """Return the units of features.

    >>> read_units(["income=EUR a year"])
    {'income': 'EUR a year'}
    """
    units: dict[str, str] = {}
    for text in texts:
        name, equals, unit = (part.strip() for part in text.partition("="))
        if not equals or not name or not unit:
            raise InputError("--feature-unit", text, "a feature and its unit, e.g. income=EUR")
        units[name] = unit
    return units

"""The meaning of the columns of past decisions."""

from __future__ import annotations

import msgspec

from lenience.files.date_formats import Order
from lenience.files.economics import Economics
from lenience.history.bands import Cut
from lenience.segments.column_parts import ColumnParts

CELL = "__cell__"  # a derived column: the name of a row's cell, if columns are cut into bands
EVERYONE = "__everyone_accepted__"  # a derived column: always true, if the file has no rejected applicants


class PastColumns(msgspec.Struct, frozen=True):
    """The meaning of the columns of past decisions.

    Parameters
    ----------
    segments
        The columns that make a segment.
    outcome
        The column of the outcome.
    accepted
        The column that says who was accepted; None if everyone was.
    success, failure, pending
        Values of the outcome that mean success, failure, and not known yet.
    accepted_values, rejected_values
        Values of the accepted column that mean yes and no.
    only_given
        Whether no other value has a meaning; otherwise the usual words count too.
    time
        The column of the decision's date.
    outcome_time
        The column of the date when an outcome became known.
    maturing
        Whether the pending count according to their age.
    dates
        The order of the parts in dates such as 06/01/2011: "mdy", "dmy" or "ymd"; by default the column decides.
    groups
        The columns that say which group a segment belongs to.
    scores
        The ordered columns, for a curve.
    maturity
        Days until an outcome is certain.
    half_life
        Days after which a label counts half.
    expire_after
        Days after which a missing outcome is no longer expected.
    as_of
        The date of the count; by default the last date that is not in the future.
    economics
        What each applicant may gain and lose; None if it is unknown.
    price_bands
        The number of bands of break-evens by which segments are divided further; None if they are not.
    bands
        The segment columns that are cut into bands, each with a number of bands or their edges.
    cells
        How the segment columns are divided then, for questions about single rows; :attr:`History.cells` has it.
    decide_by_protected
        Whether segments may be made of columns that name a protected attribute, such as sex.
    """

    segments: tuple[str, ...]
    outcome: str
    accepted: str | None = None
    success: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    accepted_values: tuple[str, ...] = ()
    rejected_values: tuple[str, ...] = ()
    only_given: bool = False
    time: str | None = None
    groups: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    maturity: float | None = None
    half_life: float | None = None
    expire_after: float | None = None
    as_of: str | None = None
    economics: Economics | None = None
    bands: tuple[tuple[str, Cut], ...] = ()
    cells: tuple[ColumnParts, ...] = ()
    outcome_time: str | None = None
    maturing: bool = False
    dates: Order | None = None
    price_bands: int | None = None
    decide_by_protected: bool = False

"""Parts of a feature, with words for each: ranges of a number, the values of a category, missing and unknown values.

Ranges of a number are cut at quantiles of given rows, at round edges. So a part holds a similar share of those rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lenience.models.binning import round_edges
from lenience.models.feature_columns import Block, RowEncoding
from lenience.policies.features.explanation import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureParts:
    """The parts of one feature.

    Parts are numbered: first the ranges or the values, then missing, then unknown (of a category only).
    """

    block: Block
    edges: tuple[float, ...] = ()

    @property
    def known(self) -> int:
        """The number of ranges or of declared values."""
        return len(self.block.column.values) or len(self.edges) + 1

    @property
    def missing(self) -> int:
        """The part of missing values."""
        return self.known

    @property
    def unknown(self) -> int:
        """The part of values that are not declared. A number has none."""
        return self.known + 1

    @property
    def size(self) -> int:
        """The number of parts."""
        return self.known + (2 if self.block.column.values else 1)

    def of(self, rows: Rows) -> NDArray[np.int64]:
        """Return the part of each encoded row."""
        import numpy as np

        _, start, stop = self.block
        own = rows[:, start:stop]
        if self.block.column.values:
            parts = np.where((own > 0.0).any(axis=1), own.argmax(axis=1), self.unknown)
        else:
            parts = np.searchsorted(np.array(self.edges), np.nan_to_num(own[:, 0]), side="right")
        return np.where(np.isnan(own).any(axis=1), self.missing, parts)

    def words(self, first: int, last: int | None = None) -> str:
        """Return the words for a part, or for neighbouring ranges of a number from the first to the last."""
        column, last = self.block.column, first if last is None else last
        if first == self.missing:
            return f"{column.name} missing"
        if column.values:
            return f"{column.name} not declared" if first == self.unknown else f"{column.name} {column.values[first]}"
        low = None if first == 0 else self.edges[first - 1]
        high = None if last == self.known - 1 else self.edges[last]
        if low is not None and high is not None:
            return f"{column.name} from {shown(low)} to {shown(high, column.unit)}"
        if high is not None:
            return f"{column.name} below {shown(high, column.unit)}"
        return f"{column.name} {shown(low, column.unit)} or more" if low is not None else f"any {column.name}"


def parts_by_quantiles(encoding: RowEncoding, rows: Rows, most: int) -> list[FeatureParts]:
    """Return the parts of each feature, with at most so many ranges of a number, which hold similar shares of the rows.

    >>> import numpy as np
    >>> from lenience.models.feature_columns import FeatureColumn
    >>> encoding = RowEncoding([FeatureColumn("income", unit="USD"), FeatureColumn("job", "category", values=("a",))])
    >>> people = [{"income": 1000.0 * i, "job": "a" if i % 2 else "b"} for i in range(100)]
    >>> income, job = parts_by_quantiles(encoding, encoding.rows(people), 4)
    >>> income.words(0), income.words(1, 2), income.words(3)
    ('income below 25,000 USD', 'income from 25,000 to 75,000 USD', 'income 75,000 USD or more')
    >>> np.bincount(job.of(encoding.rows(people))), job.words(2)
    (array([50,  0, 50]), 'job not declared')
    """
    import numpy as np

    parts = []
    for block in encoding.blocks:
        if block.column.values:
            parts.append(FeatureParts(block))
            continue
        values = rows[:, block.start]
        values = values[~np.isnan(values)]
        edges: list[float] = []
        if values.size and values.min() < values.max():
            shares = np.linspace(0.0, 1.0, most + 1)[1:-1]
            edges = round_edges(np.unique(np.quantile(values, shares, method="higher")).tolist(), values)
            edges = [edge for edge in edges if values.min() < edge <= values.max()]
        parts.append(FeatureParts(block, tuple(edges)))
    return parts

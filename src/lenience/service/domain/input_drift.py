"""Whether the features of the latest applicants are still those of the data that a version started from.

The population stability index (:mod:`lenience.service.domain.population_stability`) compares the parts of each feature.
The noise level allows for the number of features, so that a version with many of them gives no more false alarms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.formatting import percent
from lenience.service.domain.feature_parts import FeatureParts, parts_by_quantiles
from lenience.service.domain.population_stability import (
    FOR_A_RANGE,
    LEAST,
    LEVEL,
    MOST_RANGES,
    Change,
    stability_index,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.models.feature_columns import RowEncoding

    Rows = NDArray[np.float64]


class InputDrift(msgspec.Struct, frozen=True):
    """How a feature of the latest applicants differs from the earlier data.

    ``index`` is the population stability index, and ``noise`` what it exceeds by chance with a probability of 0.1% for
    all features together. ``interval`` holds the true index with probability 95%. ``missing`` and ``unknown`` are the
    shares of the latest applicants whose value is missing, or is a category that is not declared. ``…_before`` are the
    shares in the earlier data.
    """

    feature: str
    change: Change
    index: float
    noise: float
    interval: Bounds
    missing: float
    missing_before: float
    unknown: float
    unknown_before: float
    sentence: str


def input_drift(encoding: RowEncoding, before: Rows, latest: Rows) -> list[InputDrift]:
    """Compare the features of the latest applicants with earlier data, both encoded.

    Parameters
    ----------
    encoding : RowEncoding
        The features.
    before, latest : ndarray
        Earlier applicants and the latest ones.

    Returns
    -------
    list of InputDrift
        One comparison for each feature, or nothing if either side has fewer than 50 applicants.

    Examples
    --------
    >>> from lenience.models.feature_columns import FeatureColumn, RowEncoding
    >>> encoding = RowEncoding([FeatureColumn("income", minimum=0, unit="USD")])
    >>> before = encoding.rows([{"income": 1000.0 * i} for i in range(100)])
    >>> latest = encoding.rows([{"income": 600.0 * i} for i in range(100)])
    >>> print(input_drift(encoding, before, latest)[0].sentence)
    Changed much: 100% now have income below 60,000 USD, 60% before.
    >>> input_drift(encoding, before, before[::2])[0].change
    'none'
    """
    if min(len(before), len(latest)) < LEAST:
        return []
    ranges = max(min(MOST_RANGES, len(before) // FOR_A_RANGE, len(latest) // FOR_A_RANGE), 2)
    parts = parts_by_quantiles(encoding, before, ranges)
    return [_drift(each, before, latest, len(parts)) for each in parts]


def _drift(parts: FeatureParts, before: Rows, latest: Rows, features: int) -> InputDrift:
    import numpy as np

    old = np.bincount(parts.of(before), minlength=parts.size + 1)
    new = np.bincount(parts.of(latest), minlength=parts.size + 1)
    found = stability_index(old, new, LEVEL / features)
    old_shares, new_shares = old / old.sum(), new / new.sum()
    return InputDrift(
        parts.block.column.name,
        found.change,
        found.index,
        found.noise,
        found.interval,
        float(new_shares[parts.missing]),
        float(old_shares[parts.missing]),
        float(new_shares[parts.unknown]),
        float(old_shares[parts.unknown]),
        _sentence(parts, old_shares, new_shares, found.change),
    )


def _sentence(parts: FeatureParts, old: Rows, new: Rows, change: Change) -> str:
    """Say what has changed most: the part of a category, or the side of an edge, whose share has grown most."""
    if change == "none":
        return "No change beyond chance."
    spans = [(part, part) for part in range(parts.size)]
    if parts.edges:
        last = parts.known - 1
        spans = [(0, part) for part in range(last)] + [(part, last) for part in range(1, last + 1)]
        spans.append((parts.missing, parts.missing))
    grown = [(float(new[low : high + 1].sum()), float(old[low : high + 1].sum()), low, high) for low, high in spans]
    now, before, low, high = max(grown, key=lambda one: one[0] - one[1])
    special = {parts.missing: "have no value", parts.unknown: "have a value that is not declared"}
    what = special.get(low) or f"have {parts.words(low, high)}"
    extent = "much" if change == "much" else "somewhat"
    return f"Changed {extent}: {percent(now)} now {what}, {percent(before)} before."

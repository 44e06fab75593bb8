"""Whether the features of the latest applicants are still those of the data that a version started from.

The population stability index of a feature is Σ (a − r) log(a/r) over its parts, with the shares a of the latest
applicants and r of the earlier ones. Half a case is added to each part, because a logarithm must be finite. If nothing
has changed, the index of two samples of m and n is (1/m + 1/n) χ² with one degree of freedom less than there are parts,
for large samples. What chance alone exceeds with a small probability is the noise level. It allows for the number of
features, so that a version with many of them gives no more false alarms. A feature has changed if its index is above
the noise level and above what lenders usually let pass.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from lenience.core.formatting import percent
from lenience.service.domain.feature_parts import FeatureParts, parts_by_quantiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.models.feature_columns import RowEncoding

    Rows = NDArray[np.float64]
    Counts = NDArray[np.int64]

LEAST = 50  # applicants on either side; with fewer, nothing is compared
LEVEL = 0.001  # the probability of any alarm if nothing has changed
SOME, MUCH = 0.1, 0.25  # usual limits of the index
MOST_RANGES = 10
FOR_A_RANGE = 20  # earlier applicants in a range of a number
RARE = 5  # parts with fewer cases of both samples together are counted as one
Change: TypeAlias = Literal["none", "some", "much"]


class InputDrift(msgspec.Struct, frozen=True):
    """How a feature of the latest applicants differs from the earlier data.

    ``index`` is the population stability index, and ``noise`` what it exceeds by chance with a probability of 0.1% for
    all features together. ``missing`` and ``unknown`` are shares of the latest applicants whose value is missing, or is
    a category that is not declared. ``…_before`` are the shares in the earlier data.
    """

    feature: str
    change: Change
    index: float
    noise: float
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
    index, noise = stability_index(old, new, LEVEL / features)
    change: Change = "none"
    if index > max(noise, SOME):
        change = "much" if index > max(noise, MUCH) else "some"
    old_shares, new_shares = old / old.sum(), new / new.sum()
    return InputDrift(
        parts.block.column.name,
        change,
        index,
        noise,
        float(new_shares[parts.missing]),
        float(old_shares[parts.missing]),
        float(new_shares[parts.unknown]),
        float(old_shares[parts.unknown]),
        _sentence(parts, old_shares, new_shares, change),
    )


def stability_index(old: Counts, new: Counts, level: float) -> tuple[float, float]:
    """Return the population stability index of two counts by part, and what chance exceeds at a level.

    >>> import numpy as np
    >>> index, noise = stability_index(np.array([50, 50]), np.array([20, 80]), 0.001)
    >>> round(index, 2), round(noise, 2)
    (0.41, 0.22)
    """
    import numpy as np
    from scipy.special import chdtri

    together = old + new
    rare = together < RARE
    if rare.any():
        old = np.append(old[~rare], old[rare].sum())
        new = np.append(new[~rare], new[rare].sum())
        some = (old + new) > 0
        old, new = old[some], new[some]
    if len(old) < 2:
        return 0.0, 0.0
    r = (old + 0.5) / (old.sum() + 0.5 * len(old))
    a = (new + 0.5) / (new.sum() + 0.5 * len(new))
    index = math.fsum((a - r) * np.log(a / r))
    return index, float(chdtri(len(old) - 1, level)) * (1.0 / int(old.sum()) + 1.0 / int(new.sum()))


def _sentence(parts: FeatureParts, old: Rows, new: Rows, change: Change) -> str:
    """Say what has changed most: the part of a category, or the side of an edge, whose share has grown most."""
    if change == "none":
        return "As before, up to chance."
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

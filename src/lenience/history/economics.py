"""Group the offers of past applicants by segment.

The engine that holds the rows computes the gain and the loss of each (:mod:`lenience.files.economics`). It then returns
either the different offers of each segment or, if there are too many, the means of similar offers: a cell holds amounts
within 10% and break-evens within 2 points of each other. The cells of a segment are then compressed to a few offers
(:meth:`lenience.Offers.compress`), and the error of both steps is bounded: by Jensen's inequality the mean distance to
a cell's mean is at most the square root of the variances' sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lenience.core.offers import Offers, compress_with_error
from lenience.files.economics import Economics

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    from numpy.typing import NDArray

AMOUNT_STEP = 0.1  # of the logarithm of the amount, in one cell
COST_STEP = 0.02  # of the break-even, in one cell
MOST_EXACT_ROWS = 1_000_000  # in a larger source, offers are grouped to cells without looking for different ones first
MOST_EXACT = 50_000  # different offers, all segments together, that are returned as they are


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

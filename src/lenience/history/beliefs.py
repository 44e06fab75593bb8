"""Fit a model to past decisions (:func:`beliefs_of_history`), with segment columns as groups and scores.

The models own, jeffreys, shared and curve treat past outcomes as the segments' own labels. *history* is the paper's
suggestion: the observed outcomes n₀ and successes s₀ of each segment become its prior. *pooled-history* pools them over
all segments, which is the selective-labels trap, and warns about it. With every model, a history that left segments
without outcomes was selective, and a warning says so.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.history.history import History
from lenience.history.maturing import Maturing
from lenience.history.segment_history import SegmentHistory
from lenience.models.curve import Curve
from lenience.models.from_history import FromHistory, SelectiveLabelsWarning
from lenience.models.own_counts import JEFFREYS, UNIFORM, OwnCounts
from lenience.models.protocol import Model, Shrinkage, shrinkage
from lenience.models.shared import Shared

MODELS = ("own", "jeffreys", "shared", "curve", "history", "pooled-history")
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
BAND = re.compile(rf"(?P<below>below )?(?P<edge>{NUMBER})(?: to {NUMBER}| and above|\s?[–-]\s?{NUMBER}|\+)?")


class Fitted(NamedTuple):
    """A model fitted to a history: prior, own labels and belief of each segment, and a warning if there is one."""

    model: str
    shrinkage: list[Shrinkage]
    warning: str | None
    fitted_model: Model

    @property
    def beliefs(self) -> dict[str, Belief]:
        """The belief about each segment."""
        return {row.cell: row.belief for row in self.shrinkage}

    @property
    def beliefs_before(self) -> dict[str, Belief]:
        """The belief about each segment before the model has seen any outcome."""
        names = [row.cell for row in self.shrinkage]
        nothing = [0.0] * len(names)
        return {row.cell: row.prior for row in shrinkage(self.fitted_model, nothing, nothing, names)}


def beliefs_of_history(
    history: History,
    model: str = "own",
    prior: Belief = UNIFORM,
    group: Sequence[str] = (),
    score: Sequence[str] = (),
) -> Fitted:
    """Fit a model to a history.

    Parameters
    ----------
    history
        The past decisions.
    model
        One of :data:`MODELS`.
    prior
        The prior of the models that take one.
    group
        The segment columns that hold the group; the curve has an effect for each group.
    score
        The ordered segment columns; the curve rises in each.

    Returns
    -------
    Fitted
        Prior, labels and belief of each segment, and a warning.

    Examples
    --------
    >>> from lenience.history.fit import fit_history
    >>> past = {"band": [10, 10, 50, 50, 90], "in": [0, 0, 1, 1, 1], "good": [None, None, 0, 1, 1]}
    >>> fitted = beliefs_of_history(fit_history(past, "band", "in", "good"), "curve", score=["band"])
    >>> [round(belief.mean, 2) for belief in fitted.beliefs.values()]
    [0.28, 0.53, 0.8]
    >>> fitted.warning
    'the past accepted nobody in 1 of 3 segments: their expected rates come from the prior or from other segments'
    """
    scores = None
    if score:
        ranks = [ordered(column, [row.values[i] for row in history.segments])
                 for column, i in zip(score, history.positions("score", score), strict=True)]  # fmt: skip
        scores = list(zip(*ranks, strict=True))
    groups = list(history.groups(group).values()) if group else None
    return fit_model(history.segments, model, prior, groups, scores, history.applied)


def fit_model(
    rows: Sequence[SegmentHistory],
    model: str,
    prior: Belief = UNIFORM,
    groups: Sequence[str] | None = None,
    scores: Sequence[tuple[float, ...]] | None = None,
    maturing: Maturing | None = None,
) -> Fitted:
    """Fit a model to the counts of segments.

    Parameters
    ----------
    rows
        The counts of each segment.
    model
        One of :data:`MODELS`.
    prior
        The prior of the models that take one.
    groups
        The group of each segment, for the curve.
    scores
        The scores of each segment, for the curve.
    maturing
        When outcomes arrive, and the pending of each segment, if they count according to their age. Models that learn
        from all segments then see the outcomes that say as much as the known outcomes and the pending together.

    Raises
    ------
    InputError
        If there is no such model, or the curve has no scores.
    """
    if model not in MODELS:
        raise InputError("model", model, f"one of {', '.join(MODELS)}")
    if model == "curve" and not scores:
        raise InputError.because(
            "must name an ordered segment column if the model is the curve", "score", code="missing"
        )
    n, s = [row.n for row in rows], [row.s for row in rows]
    if maturing is not None:
        effective = [maturing.effective_counts(row.segment, row.n, row.s) for row in rows]
        n, s = [each[0] for each in effective], [each[1] for each in effective]
    warning: str | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SelectiveLabelsWarning)
        cells = _model(rows, model, prior, groups, scores, n, s)
    for record in caught:
        warning = str(record.message)
    # FromHistory has the past outcomes in its priors already.
    own_labels = ([0.0] * len(rows), [0.0] * len(rows)) if isinstance(cells, FromHistory) else (n, s)
    shrunk = shrinkage(cells, *own_labels, [row.segment for row in rows])
    if maturing is not None and not isinstance(cells, FromHistory):
        shrunk = [_matured(one, row, maturing) for one, row in zip(shrunk, rows, strict=True)]
    unseen = [row for row in rows if not row.labels]
    if warning is None and unseen:
        past = "shows no outcome" if any(row.accepted for row in unseen) else "accepted nobody"
        source = "the prior or from other segments" if model in ("shared", "curve") else "the prior alone"
        where = f"{len(unseen):,} of {len(rows):,} segments"
        warning = f"the past {past} in {where}: their expected rates come from {source}"
    return Fitted(model, shrunk, warning, cells)


def _model(
    rows: Sequence[SegmentHistory],
    name: str,
    prior: Belief,
    groups: Sequence[str] | None,
    scores: Sequence[tuple[float, ...]] | None,
    n: Sequence[float],
    s: Sequence[float],
) -> Model:
    if name == "shared":
        return Shared(len(rows))
    if name == "curve":
        return Curve(scores or (), groups)
    if name in ("history", "pooled-history"):
        arrivals = [max(float(row.arrivals), labels) for row, labels in zip(rows, n, strict=True)]
        return FromHistory(n, s, prior, pooled=name == "pooled-history", arrivals=arrivals)
    return OwnCounts(len(rows), JEFFREYS if name == "jeffreys" else prior)


def _matured(shrunk: Shrinkage, row: SegmentHistory, maturing: Maturing) -> Shrinkage:
    """Return the segment's belief from the model's prior, the known outcomes and the pending."""
    known = Belief(shrunk.prior.n + row.n, min(shrunk.prior.s + row.s, shrunk.prior.n + row.n))
    return msgspec.structs.replace(shrunk, labels=row.n, successes=row.s, belief=maturing.belief(row.segment, known))


def ordered(column: str, values: Sequence[str]) -> list[float]:
    """Turn values into numbers of the same order.

    Numbers stay as they are. Bands such as 'below 20', '20 to 50', '50 and above' or '20–50' are replaced by their
    rank.

    Examples
    --------
    >>> ordered("band", ["20 to 50", "below 20", "50 and above", "20 to 50"])
    [1.0, 0.0, 2.0, 1.0]
    """
    try:
        return [float(value) for value in values]
    except ValueError:
        pass
    edges: list[tuple[float, bool]] = []
    for value in values:
        match = BAND.fullmatch(value.strip())
        if match is None:
            raise InputError("score", value, "a number, or a band such as '20 to 50'", label=f"score column {column}")
        edges.append((float(match["edge"]), not match["below"]))
    rank = {edge: float(i) for i, edge in enumerate(sorted(set(edges)))}
    return [rank[edge] for edge in edges]

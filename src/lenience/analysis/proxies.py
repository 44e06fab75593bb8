"""Proxies: which segments or features reveal a group, and how much of a difference in acceptance they explain.

A policy that does not look at a group may still decide by something that stands for it. Three numbers say how closely a
column follows the group:

- mutual information: how many bits the column reveals about the group, and their share of the group's entropy;
- balanced accuracy: how often the best guess from the column is right, if all groups are equally frequent. Guessing
  without the column is right for 1 of k groups;
- for two groups the area under the ROC curve (AUC): how often a member of one is ordered before a member of the other.

A difference in acceptance R_g − R_h divides into composition and rates (Kitagawa 1955, Oaxaca and Blinder 1973). With
the shares w and the rates r of the column's values,

    R_g − R_h = Σ (w_g − w_h)(r_g + r_h)/2 + Σ (r_g − r_h)(w_g + w_h)/2.

The first sum is what different values of the column explain. The second is what is left within them. Where one group
has no applicants, the rate of the other stands for it.

Intervals come from a bootstrap of the counts. With few applicants every column seems to reveal something, so the
balanced accuracy also has the level that chance alone would reach in 1 of 20 tables without any relation.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.analysis.monitored_groups import UNKNOWN, Cells, GroupCounts, Measure
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError

DRAWS = 400  # of the bootstrap
SEED = 20_231
TAIL = 2.5  # percent outside each end of an interval
CHANCE = 95.0  # percent of tables without a relation that stay below the level by chance

Table = NDArray[np.float64]  # counts by column value, group, and rejected or accepted; draws may come first


class Proxy(msgspec.Struct, frozen=True):
    """How closely a column follows a group.

    Parameters
    ----------
    column : str
        The name of the column.
    values : int
        The number of its values.
    information : Measure
        Mutual information with the group, in bits.
    information_share : float
        The same as a share of the group's entropy.
    balanced_accuracy : Measure
        How often the best guess of the group from the column is right, if all groups are equally frequent.
    guessing : float
        The same without the column.
    by_chance : float
        The balanced accuracy that chance alone reaches in 1 of 20 tables without any relation.
    auc : Measure or None
        The area under the ROC curve, for two groups.
    """

    column: str
    values: int
    information: Measure
    information_share: float
    balanced_accuracy: Measure
    guessing: float
    by_chance: float
    auc: Measure | None

    @property
    def reveals(self) -> bool:
        """Whether the column reveals more about the group than chance alone would suggest."""
        return self.balanced_accuracy.value > self.by_chance


class Decomposition(msgspec.Struct, frozen=True):
    """How much of a difference in acceptance a column explains.

    Parameters
    ----------
    column : str
        The name of the column.
    first, second : str
        The groups; the difference is that of the first minus the second.
    difference : Measure
        The difference in acceptance.
    composition : Measure
        The part that comes from different values of the column.
    rates : Measure
        The part that is left: different acceptance at the same value.
    by_value : dict of str to float
        What each value of the column adds to ``composition``.
    """

    column: str
    first: str
    second: str
    difference: Measure
    composition: Measure
    rates: Measure
    by_value: dict[str, float]


def find_proxy(cells: Cells, column: str = "segment", draws: int = DRAWS) -> Proxy:
    """Measure how closely a column follows the groups.

    Parameters
    ----------
    cells : mapping of (str, str) to GroupCounts
        The counts by group and value of the column. The group "" is unknown and left out.
    column : str, optional
        The name of the column, for the result.
    draws : int, optional
        The number of bootstrap draws.

    Returns
    -------
    Proxy
        Mutual information, balanced accuracy and AUC, with intervals.

    Raises
    ------
    InputError
        If fewer than two groups have applicants.

    Examples
    --------
    >>> counts = {"fa": 80, "fb": 20, "ma": 20, "mb": 80}
    >>> cells = {(name[0], name[1]): GroupCounts(number) for name, number in counts.items()}
    >>> proxy = find_proxy(cells)
    >>> round(proxy.balanced_accuracy.value, 2), round(proxy.auc.value, 2), round(proxy.information.value, 3)
    (0.8, 0.8, 0.278)
    >>> proxy.reveals
    True
    """
    table, _, groups = _table(cells)
    counts = table.sum(axis=-1)
    rng = np.random.default_rng(SEED)
    again = _draws(counts, rng, draws)
    total = counts.sum()
    apart = np.outer(counts.sum(1), counts.sum(0)) / total  # without any relation
    unrelated = _draws(apart, rng, draws)
    entropy = _entropy(counts.sum(0))
    information = _information(counts)
    accuracy = _accuracy(counts)
    return Proxy(
        column=column,
        values=len(counts),
        information=_measure(information, _information(again), least=0.0),
        information_share=float(information / entropy) if entropy > 0 else 0.0,
        balanced_accuracy=_measure(accuracy, _accuracy(again)),
        guessing=1 / len(groups),
        by_chance=float(np.percentile(_accuracy(unrelated), CHANCE)),
        auc=_measure(_auc(counts), _auc(again)) if len(groups) == 2 else None,
    )


def decompose_difference(
    cells: Cells, first: str, second: str, column: str = "segment", draws: int = DRAWS
) -> Decomposition:
    """Divide a difference in acceptance between two groups into composition and rates.

    Parameters
    ----------
    cells : mapping of (str, str) to GroupCounts
        The counts by group and value of the column.
    first, second : str
        The groups.
    column : str, optional
        The name of the column, for the result.
    draws : int, optional
        The number of bootstrap draws.

    Returns
    -------
    Decomposition
        The difference, what the column explains, and what is left, with intervals.

    Raises
    ------
    InputError
        If a group has no applicants.

    Examples
    --------
    >>> cells = {
    ...     ("f", "low"): GroupCounts(80, 16), ("f", "high"): GroupCounts(20, 18),
    ...     ("m", "low"): GroupCounts(20, 4), ("m", "high"): GroupCounts(80, 72),
    ... }
    >>> parts = decompose_difference(cells, "f", "m")
    >>> round(parts.difference.value, 2), round(parts.composition.value, 2), round(abs(parts.rates.value), 2)
    (-0.42, -0.42, 0.0)
    """
    table, values, groups = _table(cells)
    for name in (first, second):
        if name not in groups:
            raise InputError.unknown_name("group", name, groups)
    pair = table[:, [groups.index(first), groups.index(second)], :]
    rng = np.random.default_rng(SEED)
    again = _draws(pair, rng, draws)
    composition, rates, parts = _decomposed(pair)
    many_compositions, many_rates, _ = _decomposed(again)
    return Decomposition(
        column=column,
        first=first,
        second=second,
        difference=_measure(composition + rates, many_compositions + many_rates),
        composition=_measure(composition, many_compositions),
        rates=_measure(rates, many_rates),
        by_value={value: float(part) for value, part in zip(values, parts, strict=True)},
    )


def _table(cells: Cells) -> tuple[Table, list[str], list[str]]:
    """Return rejected and accepted applicants by value and group, with the names of both."""
    groups = sorted({group for (group, _), counts in cells.items() if group != UNKNOWN and counts.arrivals})
    values = sorted({value for (group, value), counts in cells.items() if group != UNKNOWN and counts.arrivals})
    if len(groups) < 2:
        raise InputError.because("needs applicants of two groups", "groups", label="", code="insufficient_data")
    table = np.zeros((len(values), len(groups), 2))
    for (group, value), counts in cells.items():
        if group != UNKNOWN and counts.arrivals:
            place = table[values.index(value), groups.index(group)]
            place += (counts.arrivals - counts.accepted, counts.accepted)
    return table, values, groups


def _draws(counts: Table, rng: np.random.Generator, draws: int) -> Table:
    """Return bootstrap samples of a table of counts."""
    total = round(float(counts.sum()))
    shares = (counts / counts.sum()).ravel()
    drawn: Table = rng.multinomial(total, shares, size=draws).reshape(draws, *counts.shape).astype(np.float64)
    return drawn


def _measure(value: Table | np.float64, draws: Table, least: float = -np.inf) -> Measure:
    low, high = np.percentile(draws, [TAIL, 100 - TAIL])
    # A plug-in estimate can lie outside the percentiles of its own bootstrap if it is biased.
    return Measure(float(value), Bounds(float(max(min(low, value), least)), float(max(high, value))))


def _entropy(counts: Table) -> float:
    shares = counts / counts.sum(-1, keepdims=True)
    return float(-(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(-1))


def _information(counts: Table) -> Table:
    """Return the mutual information of rows and columns in bits; draws may come first."""
    joint = counts / counts.sum((-2, -1), keepdims=True)
    apart = joint.sum(-1, keepdims=True) * joint.sum(-2, keepdims=True)
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=joint > 0)
    result: Table = (joint * np.log2(ratio)).sum((-2, -1))
    return result


def _within(counts: Table) -> Table:
    """Return the distribution of the values in each group."""
    sizes = counts.sum(-2, keepdims=True)
    result: Table = np.divide(counts, sizes, out=np.zeros_like(counts), where=sizes > 0)
    return result


def _accuracy(counts: Table) -> Table:
    """Return the balanced accuracy of the best guess: in each value, the group to which it is most likely."""
    within = _within(counts)
    result: Table = within.max(-1).sum(-1) / counts.shape[-1]
    return result


def _auc(counts: Table) -> Table:
    """Return the area under the ROC curve of two groups, ordering values by their likelihood ratio."""
    within = _within(counts)
    first, second = within[..., 0], within[..., 1]
    order = np.argsort(-np.divide(first, first + second, out=np.zeros_like(first), where=first + second > 0), axis=-1)
    first, second = np.take_along_axis(first, order, -1), np.take_along_axis(second, order, -1)
    before = np.cumsum(first, -1) - first
    result: Table = (second * (before + first / 2)).sum(-1)
    return result


def _decomposed(pair: Table) -> tuple[Table, Table, Table]:
    """Return composition, rates, and the composition by value, of (…, values, 2 groups, rejected and accepted)."""
    sizes = pair.sum(-1)
    weights = _within(sizes)
    known = sizes > 0
    rates = np.divide(pair[..., 1], sizes, out=np.zeros_like(sizes), where=known)
    other = rates[..., ::-1]
    rates = np.where(known, rates, other)
    parts = (weights[..., 0] - weights[..., 1]) * rates.mean(-1)
    left = (rates[..., 0] - rates[..., 1]) * weights.mean(-1)
    return parts.sum(-1), left.sum(-1), parts


def find_proxies(columns: dict[str, Cells], draws: int = DRAWS) -> list[Proxy]:
    """Measure how closely each of several columns follows the groups, the closest first.

    Parameters
    ----------
    columns : dict of str to mapping
        The counts by group and value, for each column.
    draws : int, optional
        The number of bootstrap draws.

    Returns
    -------
    list of Proxy
        One for each column, the one that reveals most first.

    Examples
    --------
    >>> same = {(group, value): GroupCounts(50) for group in "fm" for value in "ab"}
    >>> close = {("f", "a"): GroupCounts(90), ("m", "a"): GroupCounts(5), ("m", "b"): GroupCounts(95)}
    >>> [(proxy.column, proxy.reveals) for proxy in find_proxies({"hair": same, "shoes": close})]
    [('shoes', True), ('hair', False)]
    """
    proxies = [find_proxy(cells, column, draws) for column, cells in columns.items()]
    return sorted(proxies, key=lambda proxy: -proxy.balanced_accuracy.value)


def split_segments(cells: Cells, names: Sequence[str], separator: str) -> dict[str, dict[tuple[str, str], GroupCounts]]:
    """Return the counts by each column that the segments are made of, from counts by segment.

    Parameters
    ----------
    cells : mapping of (str, str) to GroupCounts
        The counts by group and segment, where the name of a segment has the values of several columns.
    names : sequence of str
        The names of the columns.
    separator : str
        What stands between the values in the name of a segment.

    Returns
    -------
    dict of str to mapping
        For each column, the counts by group and value. Segments with another number of values are left out.

    Examples
    --------
    >>> cells = {("f", "A / north"): GroupCounts(3), ("f", "A / south"): GroupCounts(4)}
    >>> split_segments(cells, ["grade", "region"], " / ")["grade"]["f", "A"].arrivals
    7
    """
    columns: dict[str, dict[tuple[str, str], GroupCounts]] = {name: {} for name in names}
    for (group, segment), counts in cells.items():
        parts = segment.split(separator)
        if len(parts) == len(names):
            for name, part in zip(names, parts, strict=True):
                column = columns[name]
                column[group, part] = column.get((group, part), GroupCounts()) + counts
    return columns

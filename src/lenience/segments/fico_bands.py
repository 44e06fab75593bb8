"""fico_segments: the FICO tables as segments, by group and score band or by score band alone."""

from __future__ import annotations

import math

from lenience.core.belief import Belief
from lenience.core.validation import real
from lenience.data.fico import load_fico
from lenience.objectives.discounted import Discounted
from lenience.segments.segments import Segment, Segments


def fico_segments(
    objective: Discounted, *, by_group: bool = True, bands: int = 10, evidence: float = 20.0
) -> tuple[Segments, dict[str, dict[str, float]]]:
    """Return the FICO tables as segments, and the share of each group in each segment.

    Parameters
    ----------
    objective : Discounted
        The objective of the whole population.
    by_group : bool
        Whether segments are score bands of each group. Otherwise they are score bands of all groups together.
    bands : int
        The number of score bands, from 1 to 100.
    evidence : float
        How many outcomes the belief about each segment is worth. Its mean is the true success rate.

    Returns
    -------
    Segments
        The segments.
    dict
        The share of each group in each segment, as :func:`~lenience.fair_optimum` takes it.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> segments, mix = fico_segments(Discounted(0.8, 0.999), by_group=False, bands=4)
    >>> segments.names
    ['0–25', '25–50', '50–75', '75–100']
    >>> {group: round(share, 3) for group, share in mix["75–100"].items()}
    {'white': 0.893, 'black': 0.022, 'hispanic': 0.039, 'asian': 0.046}
    """
    known = real("evidence", evidence, above=0)
    fico = load_fico()
    cells = fico.cells(bands)
    kinds = [cell.name if by_group else cell.name.removeprefix(f"{cell.group} ") for cell in cells]
    segments, mix = [], {}
    for name in dict.fromkeys(kinds):
        members = [cell for cell, kind in zip(cells, kinds, strict=True) if kind == name]
        share = math.fsum(cell.share for cell in members)
        rate = math.fsum(cell.share * cell.p for cell in members) / share
        group = members[0].group if by_group else ""
        segments.append(Segment(name, share, objective, Belief(known, known * rate), group))
        mix[name] = {cell.group: cell.share / share for cell in members}
    return Segments(segments), mix

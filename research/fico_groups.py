"""The FICO study by group: who is shut out at the outset by each model, and how groups fare while it learns."""

from __future__ import annotations

import msgspec
import numpy as np

from lenience.core.belief import Belief
from lenience.models.protocol import beliefs
from lenience.objectives.discounted import Discounted
from lenience.segments.segments import Segments
from lenience.segments.starting import Shutout, shut_out_at_outset
from research.fico import Population, make_model, run_rule


class GroupOutcome(msgspec.Struct, frozen=True):
    """A group under a model and the optimal rule, simulated: the share of its arrivals accepted early and late, and of
    its members in deserving cells the share whose cell is shut in the end."""

    model: str
    group: str
    early: float
    late: float
    deserving_early: float
    deserving_late: float
    shut: float
    shut_half_width: float


def divided(world: Population, cost: float, discount: float, known: list[Belief]) -> Segments:
    """The cells as segments with these beliefs."""
    names = [cell.name for cell in world.cells]
    shares = dict(zip(names, world.shares.tolist(), strict=True))
    groups = dict(zip(names, world.groups, strict=True))
    return Segments.of(shares, Discounted(cost, discount), dict(zip(names, known, strict=True)), groups)


def outset(world: Population, model: str, cost: float, discount: float) -> list[Shutout]:
    """By group, how many deserving cells a model shuts out before the first arrival.

    >>> from research.fico import fico_world
    >>> for row in outset(fico_world(), "independent", 0.9, 0.9998):
    ...     print(row.group, row.deserving, row.deserving_shut)
    white 5 0
    black 3 3
    hispanic 4 4
    asian 5 5
    """
    zero = np.zeros(len(world.cells))
    cells = divided(world, cost, discount, beliefs(make_model(model, world), zero, zero))
    return shut_out_at_outset(cells, {cell.name: cell.p for cell in world.cells}, model)


def by_group(world: Population, model: str, cost: float, discount: float, runs: int = 100) -> list[GroupOutcome]:
    """How each group fares under a model's beliefs and the optimal rule."""
    found = run_rule(world, model, "optimal", cost, discount, runs)
    share, p = world.shares, world.p
    result = []
    for group in dict.fromkeys(world.groups):
        mine = np.array([cell.group == group for cell in world.cells])
        good = mine & (p > cost)
        all_, deserving = share * mine / (share @ mine), share * good / (share @ good)
        shut = 1.0 - found.accepting @ deserving
        result.append(
            GroupOutcome(
                model=model,
                group=group,
                early=float(found.early.mean(axis=0) @ all_),
                late=float(found.late.mean(axis=0) @ all_),
                deserving_early=float(found.early.mean(axis=0) @ deserving),
                deserving_late=float(found.late.mean(axis=0) @ deserving),
                shut=float(shut.mean()),
                shut_half_width=float(1.96 * shut.std(ddof=1) / np.sqrt(runs)),
            )
        )
    return result

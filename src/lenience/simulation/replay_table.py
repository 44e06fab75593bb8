"""A replay's results as rows of text."""

from __future__ import annotations

import math

from lenience.core.formatting import even_percent
from lenience.core.money import Money
from lenience.simulation.replay_result import PolicyResult, ReplayResult

MOST_GROUPS = 4  # groups that fit beside the other columns


def replay_rows(result: ReplayResult, given: Money | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the headings and one row per policy. The others are compared with the first policy.

    Rewards are shown in the given money, by default in that of the objective.
    """
    money = given or result.objective.money
    groups = list(result.policies[0].by_group)
    headings = ["policy", "reward", "± 95%", "lead", "± 95%", "total", "regret", "accepted", *groups]
    choice = result.policies[0].assumed is not None
    if choice:
        headings.insert(8, "other offer")
    rows = []
    for outcome in result.policies:
        first = outcome is result.policies[0]
        difference, half = outcome.behind(result.policies[0])
        rows.append(
            [
                outcome.policy,
                money.format(outcome.mean, 2),
                _finite(outcome.half_width, money),
                "" if first else money.format_change(difference, 2),
                "" if first else _finite(half, money),
                money.format(float(outcome.total.mean()), 1),
                money.format(float(outcome.regret.mean()), 2),
                even_percent(outcome.accepted, 0),
                *([_share(outcome.assumed)] if choice else []),
                *(_accepted(outcome, group) for group in groups),
            ]
        )
    return headings, rows


def replay_tables(result: ReplayResult, money: Money | None = None) -> list[tuple[list[str], list[list[str]]]]:
    """Return one table, or two if there are many groups: the rewards, and the acceptance by group.

    Rewards are shown in the given money, by default in that of the objective.
    """
    headings, rows = replay_rows(result, money)
    groups = list(result.policies[0].by_group)
    if len(groups) <= MOST_GROUPS:
        return [(headings, rows)]
    own = len(headings) - len(groups)
    accepted = [[group, *(_accepted(outcome, group) for outcome in result.policies)] for group in groups]
    return [
        (headings[:own], [row[:own] for row in rows]),
        (["accepted of", *(outcome.policy for outcome in result.policies)], accepted),
    ]


def period_table(result: ReplayResult, given: Money | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the headings and one row per period: the population, and what the first policy did.

    Rewards are shown in the given money, by default in that of the objective.
    """
    money, policy = given or result.objective.money, result.policies[0].policy
    headings = ["period", "arrivals", "success rate", "accepted", "success of accepted", "reward per arrival"]
    rows = []
    for each in result.periods:
        good = each.success_of_accepted[policy]
        rows.append(
            [
                each.period,
                f"{each.arrivals:,.0f}",
                even_percent(each.success_rate),
                even_percent(each.accepted[policy]),
                "–" if good is None else even_percent(good),
                money.format(each.reward[policy], 3),
            ]
        )
    return headings, rows


def _accepted(outcome: PolicyResult, group: str) -> str:
    """Format the share accepted of a group. In a short run nobody of it may have arrived."""
    share = outcome.by_group[group]
    return even_percent(share, 0) if math.isfinite(share) else "–"


def _finite(value: float, money: Money) -> str:
    return money.format(value, 2) if math.isfinite(value) else "–"


def _share(share: float | None) -> str:
    """Format the share of acceptances with another offer than the one that was made."""
    return "–" if share is None or math.isnan(share) else even_percent(share, 0)

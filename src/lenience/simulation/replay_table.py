"""A replay's results as rows of text."""

from __future__ import annotations

import math

from lenience.core.formatting import even_percent
from lenience.simulation.replay import PolicyResult, ReplayResult

MOST_GROUPS = 4  # groups that fit beside the other columns


def replay_rows(result: ReplayResult) -> tuple[list[str], list[list[str]]]:
    """Return the headings and one row per policy. The others are compared with the first policy."""
    groups = list(result.policies[0].by_group)
    headings = ["policy", "reward", "± 95%", "lead", "± 95%", "total", "regret", "accepted", *groups]
    rows = []
    for outcome in result.policies:
        first = outcome is result.policies[0]
        difference, half = outcome.behind(result.policies[0])
        rows.append(
            [
                outcome.policy,
                result.format_reward(outcome.mean),
                _finite(result, outcome.half_width),
                "" if first else _signed(result, difference),
                "" if first else _finite(result, half),
                result.format_reward(float(outcome.total.mean()), 1),
                result.format_reward(float(outcome.regret.mean())),
                even_percent(outcome.accepted, 0),
                *(_accepted(outcome, group) for group in groups),
            ]
        )
    return headings, rows


def replay_tables(result: ReplayResult) -> list[tuple[list[str], list[list[str]]]]:
    """Return one table, or two if there are many groups: the rewards, and the acceptance by group."""
    headings, rows = replay_rows(result)
    groups = list(result.policies[0].by_group)
    if len(groups) <= MOST_GROUPS:
        return [(headings, rows)]
    own = len(headings) - len(groups)
    accepted = [[group, *(_accepted(outcome, group) for outcome in result.policies)] for group in groups]
    return [
        (headings[:own], [row[:own] for row in rows]),
        (["accepted of", *(outcome.policy for outcome in result.policies)], accepted),
    ]


def _accepted(outcome: PolicyResult, group: str) -> str:
    """Format the share accepted of a group. In a short run nobody of it may have arrived."""
    share = outcome.by_group[group]
    return even_percent(share, 0) if math.isfinite(share) else "–"


def _finite(result: ReplayResult, value: float) -> str:
    return result.format_reward(value) if math.isfinite(value) else "–"


def _signed(result: ReplayResult, value: float) -> str:
    """Format a difference with its sign."""
    text = result.format_reward(value)
    return text if text.startswith(("-", "−")) else f"+{text}"

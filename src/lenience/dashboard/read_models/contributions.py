"""What each feature of an applicant does to the expected success rate, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from lenience.policies.features.explanation import shown
from lenience.service.domain.answers import DecisionView


class ContributionInWords(NamedTuple):
    """A feature, its value, and what it does to the expected success rate."""

    name: str
    value: str
    words: str


def effect_in_words(log_odds: float, contribution: float) -> str:
    """Return what a feature does to the expected success rate: the change of the rate that it makes, in points.

    >>> effect_in_words(0.4, 1.2), effect_in_words(0.4, -0.1), effect_in_words(0.4, 0.0001)
    ('raises it by 28.9 points', 'lowers it by 2.4 points', 'no effect')
    """
    points = 100.0 * (_rate(log_odds) - _rate(log_odds - contribution))
    if abs(points) < 0.05:
        return "no effect"
    return f"{'raises' if points > 0 else 'lowers'} it by {abs(points):.1f} points"


def contributions_in_words(decision: DecisionView, units: Mapping[str, str]) -> list[ContributionInWords]:
    """Return the contributions of a decision's features, the largest first. Numbers have the unit of their feature."""
    odds = decision.log_odds or 0.0
    return [
        ContributionInWords(
            one.feature,
            shown(one.value, "" if one.value is None else units.get(one.feature, "")),
            effect_in_words(odds, one.log_odds),
        )
        for one in decision.contributions
    ]


def _rate(log_odds: float) -> float:
    """Return the success rate of log-odds."""
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0

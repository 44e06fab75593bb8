"""What each feature of an applicant does to the expected success rate, in words."""

from __future__ import annotations

from typing import NamedTuple

from lenience.policies.features.explanation import shown
from lenience.service.domain.answers import DecisionView

LEAST = 0.005  # log-odds below which a feature says nothing


class ContributionInWords(NamedTuple):
    """A feature, its value, and whether it raises or lowers the expected success rate."""

    name: str
    value: str
    words: str


def effect_in_words(log_odds: float) -> str:
    """Return what a feature does to the expected success rate.

    >>> effect_in_words(-1.2), effect_in_words(0.1), effect_in_words(0.001)
    ('strongly lowers it', 'slightly raises it', 'no effect')
    """
    if abs(log_odds) < LEAST:
        return "no effect"
    strength = "strongly " if abs(log_odds) >= 1.0 else "slightly " if abs(log_odds) < 0.25 else ""
    return f"{strength}{'raises' if log_odds > 0 else 'lowers'} it"


def contributions_in_words(decision: DecisionView) -> list[ContributionInWords]:
    """Return the contributions of a decision's features, the largest first."""
    return [
        ContributionInWords(one.feature, shown(one.value), effect_in_words(one.log_odds))
        for one in decision.contributions
    ]

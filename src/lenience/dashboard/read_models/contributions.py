"""What each feature of an applicant adds to the expected success rate, by what the model knows now."""

from __future__ import annotations

from base64 import b64decode

import msgspec

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.policies.features.feature_rule import FeatureRule
from lenience.service.domain.answers import DecisionView
from lenience.service.domain.problems import Problem
from lenience.service.queries.reading import Queries

LEAST = 0.005  # log-odds below which a feature says nothing


class FeatureContribution(msgspec.Struct, frozen=True):
    """A feature, its value, and whether it raises or lowers the expected success rate."""

    name: str
    value: str
    log_odds: float

    @property
    def words(self) -> str:
        """What the feature does to the expected success rate."""
        if abs(self.log_odds) < LEAST:
            return "no effect"
        strength = "strongly " if abs(self.log_odds) >= 1.0 else "slightly " if abs(self.log_odds) < 0.25 else ""
        return f"{strength}{'raises' if self.log_odds > 0 else 'lowers'} it"


def read_contributions(queries: Queries, decision: DecisionView) -> list[FeatureContribution]:
    """Return the contributions of a decision's features, the largest first; empty if they are not known."""
    if not decision.features:
        return []
    try:
        model = queries.model(decision.policy, decision.policy_version or None)
    except Problem:
        return []
    rule = FeatureRule.from_state(b64decode(model.state))
    offer = None if decision.offer is None else Offer(decision.offer.amount, decision.offer.cost)
    try:
        explained = rule.explain({name: value for name, value in decision.features.items() if value is not None}, offer)
    except InputError:
        return []  # features of a time when the policy had other columns
    return [
        FeatureContribution(one.column, "unknown" if one.value is None else str(one.value), one.log_odds)
        for one in explained.contributions
    ]

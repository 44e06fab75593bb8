"""Money at risk now, compared with the limits of a policy: of each segment, and over all segments."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lenience.core.money import Money
from lenience.dashboard.read_models.policy_status import PolicyStatus


class LimitUse(msgspec.Struct, frozen=True):
    """How much of a limit in money is used."""

    policy: str
    what: str  # the segment, or "all segments"
    used: float
    limit: float
    money: Money

    @property
    def share(self) -> float:
        """The share of the limit that is used."""
        return self.used / self.limit


def limit_uses(policies: Sequence[PolicyStatus]) -> list[LimitUse]:
    """Return the limits in money of policies, the most used one first."""
    uses = []
    for policy in policies:
        if not policy.has_offers:
            continue
        for segment in policy.segments:
            cap = segment.rule.exposure_cap_amount
            if cap is not None:
                uses.append(LimitUse(policy.name, segment.name, segment.counts.at_risk, cap, policy.money))
        overall = policy.version.overall
        if overall is not None and overall.cap_amount is not None:
            at_risk = policy.totals.at_risk if policy.use is None else policy.use.at_risk
            uses.append(LimitUse(policy.name, "all segments", at_risk, overall.cap_amount, policy.money))
    return sorted(uses, key=lambda use: -use.share)

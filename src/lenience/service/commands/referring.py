"""Refer an applicant to a person, if the version's rules or its daily capacity say so."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from lenience.core.money import UNITS
from lenience.service.domain.answers import DecisionAnswer
from lenience.service.domain.events import ReferralGround, ReviewWorth
from lenience.service.domain.feature_models import Applicant
from lenience.service.domain.referral_decision import WORTH, estimate, refer, referral_reason
from lenience.service.domain.rule import Counts, SegmentRule, Verdict
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version
from lenience.service.storage.referrals import referred_today, review_price


class Referred(NamedTuple):
    """Why a person decides an applicant, None if the policy does, and what a review is worth."""

    ground: ReferralGround | None
    review: ReviewWorth | None
    rate: float
    evidence: float

    def answer(self, version: Version, answer: DecisionAnswer) -> DecisionAnswer:
        """Return the answer to an applicant, from what the policy would answer."""
        ground, referral = self.ground, version.referral
        if ground is None or referral is None:
            return answer
        offers = version.specification.objective.offers
        money = UNITS if offers is None else offers.money
        reason = referral_reason(referral, ground, answer.reason, self.rate, self.evidence, money)
        return msgspec.structs.replace(answer, decision="refer", rule=ground.by, reason=reason, principal_reasons=[])


def refer_applicant(
    ledger: Ledger,
    record: PolicyRecord,
    version: Version,
    rule: SegmentRule,
    counts: Counts,
    verdict: Verdict,
    applicant: Applicant | None,
) -> Referred:
    """Return whether a person decides an applicant under a version that refers."""
    referral = version.referral
    assert referral is not None
    rate, evidence = estimate(rule, counts, applicant)
    price, used = 0.0, 0
    if referral.daily_capacity is not None:
        price, used = review_price(ledger, record, referral.daily_capacity), referred_today(ledger, record)
    ground, review = refer(referral, verdict, rate, evidence, price, used)
    if ground is not None and ground.by == WORTH:
        ledger.referred_today[record.id] = used + 1
    return Referred(ground, review, rate, evidence)

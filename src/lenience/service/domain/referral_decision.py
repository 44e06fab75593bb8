"""Whether a person decides an applicant, from what the policy would answer. The audit calls the same function."""

from __future__ import annotations

from lenience.core.formatting import count, percent
from lenience.core.money import Money
from lenience.service.domain.events import Choice, ReferralGround, ReviewWorth
from lenience.service.domain.feature_models import Applicant
from lenience.service.domain.referral import Referral, review_worth
from lenience.service.domain.rule import ABOVE, BELOW, LEARNING, Counts, SegmentRule, Verdict

AMOUNT, EVIDENCE, NEAR, WORTH = "amount_above", "evidence_below", "near_minimum", "daily_capacity"
JUDGED = (ABOVE, LEARNING, BELOW)  # the rules of answers that a person can judge better: no limit, no draw


def estimate(rule: SegmentRule, counts: Counts, applicant: Applicant | None) -> tuple[float, float]:
    """Return the expected success rate of an applicant, and on how many outcomes it rests."""
    if applicant is not None:
        return applicant.mean, applicant.n
    return rule.basis(counts).rate, rule.past_outcomes + counts.good + counts.bad


def refer(
    referral: Referral, verdict: Verdict, rate: float, evidence: float, price: float = 0.0, used: int = 0
) -> tuple[ReferralGround | None, ReviewWorth | None]:
    """Return why a person decides an applicant, or None, and what a review is worth where there is a capacity.

    Parameters
    ----------
    referral : Referral
        The rules and the capacity of the version.
    verdict : Verdict
        What the policy would answer.
    rate : float
        The expected success rate.
    evidence : float
        On how many outcomes it rests.
    price : float
        What a review must be worth today.
    used : int
        How many were referred today within the capacity.
    """
    if verdict.rule not in JUDGED or verdict.probability not in (0.0, 1.0):
        return None, None
    amount = 1.0 if verdict.offer is None else verdict.offer.amount
    worth = review_worth(amount, rate, verdict.threshold, referral.accuracy)
    by: str | None = None
    review: ReviewWorth | None = None
    if referral.amount_above is not None and verdict.offer is not None and amount > referral.amount_above:
        by = AMOUNT
    elif referral.evidence_below is not None and evidence < referral.evidence_below:
        by = EVIDENCE
    elif referral.near_minimum is not None and abs(rate - verdict.threshold) < referral.near_minimum:
        by = NEAR
    elif referral.daily_capacity is not None:
        review = ReviewWorth(worth, price, used)
        if worth > 0.0 and worth >= price and used < referral.daily_capacity:
            by = WORTH
    if by is None:
        return None, review
    would: Choice = "accept" if verdict.decision == "accept" else "reject"
    return ReferralGround(by, would, verdict.rule, worth), review


def referral_reason(
    referral: Referral, ground: ReferralGround, reason: str, rate: float, evidence: float, money: Money
) -> str:
    """Return the reason of a referral: why a person decides, and what the policy would answer."""
    why = {
        AMOUNT: f"more than {money.format(referral.amount_above or 0.0)} is at stake",
        EVIDENCE: f"the estimate rests on {count(evidence)} outcomes, fewer than {count(referral.evidence_below or 0)}",
        NEAR: f"the expected success rate of {percent(rate)} is within {percent(referral.near_minimum or 0.0)} of the "
        "minimum",
        WORTH: f"a review is worth most here, about {money.format(ground.worth)}"
        f"{'' if money.known else ' units of gain + loss'}",
    }[ground.by]
    return f"Refer to a person, because {why}. The policy would answer: {reason}"

"""Explain decisions about offers, in money: the reason, the principal reasons, and what would have changed it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lenience.core.formatting import counted, percent, percents, plural
from lenience.core.offers import Offer
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.overall import OVERALL
from lenience.service.domain.reason_parts import (
    PrincipalReason,
    again_text,
    evidence,
    few_outcomes,
    horizon_over,
    limit_reached,
    limit_text,
    not_now,
    overall_text,
    pending_text,
    waiting_text,
)
from lenience.service.domain.rule import (
    ABOVE,
    BELOW,
    CAP,
    CAPACITY,
    FLOOR,
    LEARNING,
    LIMIT,
    LOSS_CAP,
    OVER,
    Counts,
    SegmentRule,
    Verdict,
)

MOST_STEPS = 1_000  # outcomes that are tried to find what would have changed a decision


def offer_reason(rule: SegmentRule, counts: Counts, verdict: Verdict, choices: Sequence[Offer] = ()) -> str:
    """Return the reason for a decision about an offer, in a few sentences."""
    text = _Text(rule, counts, verdict)
    kind, size = verdict.rule, text.money(text.offer.amount)
    larger = [one.amount for one in choices if one.amount > text.offer.amount]
    verb = f"Offer {size} instead of {text.money(max(larger))}" if larger else f"Accept {size}"
    out = limit_text(counts, verdict)
    if kind == ABOVE:
        return f"{verb}: {text.compared}. {text.earns}{out}"
    if kind == OVER:
        return f"Reject {size}: {horizon_over(rule)}."
    if kind in OVERALL:
        return f"{not_now(verdict, size)}: {waiting_text(rule, kind, text.unit)}"
    if kind == LEARNING:
        return f"{verb}: {text.compared}. {text.cost} One more outcome is worth {text.label} for later decisions.{out}"
    if kind == FLOOR:
        return (
            f"{verb}: {text.compared}. {text.cost} The exploration floor accepts {percent(rule.exploration_floor)} of "
            "such applicants anyway, so that the segment never closes for good."
        )
    if kind == CAP:
        cap = f"the exposure cap is {rule.exposure_cap:,}"
        return f"{not_now(verdict, size)}: {pending_text(counts)}, and {cap}. New outcomes make room."
    if kind == LOSS_CAP:
        return (
            f"{not_now(verdict, size)}: the pending outcomes of this segment can lose {text.money(counts.at_risk)}, "
            f"this offer {text.money(text.offer.loss)} more, and the cap is "
            f"{text.money(rule.exposure_cap_amount or 0.0)}. New outcomes make room."
        )
    if kind == LIMIT:
        # Tables are interpolated, so that an estimated one may have no limit where a label is worth too little.
        limit = "" if verdict.limit is None else f" The limit for this offer is {verdict.limit:,}."
        return (
            f"{not_now(verdict, size)}: {text.compared}. {text.cost} With {counted(counts.pending, 'outcome')} "
            f"pending, one more is worth only {text.label}.{limit} New outcomes make room."
        )
    if kind == CAPACITY:
        return (
            f"{not_now(verdict, size)}: {text.compared}. The batch was ranked, and better-ranked applicants used its "
            "capacity or make one more outcome of this segment worth too little."
        )
    assert kind == BELOW
    floor = "" if verdict.probability == 0 else f" The exploration floor accepts {percent(rule.exploration_floor)}."
    return (
        f"Reject {size}: {text.compared}. {text.cost} One more outcome is worth only {text.label} for later decisions. "
        f"{text.largest}{floor}"
    )


def offer_principal_reasons(rule: SegmentRule, counts: Counts, verdict: Verdict) -> list[PrincipalReason]:
    """Return the main reasons of a rejection, the most important first. An acceptance has none."""
    if verdict.decision == "accept":
        return []
    text = _Text(rule, counts, verdict)
    if verdict.rule == OVER:
        return [PrincipalReason("no_more_acceptances", "The planned number of applicants has been reached.")]
    if verdict.rule in OVERALL:
        return [limit_reached(f"{verdict.rule}_reached", overall_text(rule, verdict.rule, text.unit), verdict)]
    if verdict.rule == CAP:
        full = f"This segment has reached its cap of {counted(rule.exposure_cap or 0, 'open case')}."
        return [limit_reached("exposure_cap_reached", full, verdict)]
    if verdict.rule == CAPACITY:
        return [limit_reached("no_capacity", "Other applicants of the same batch were ranked higher.", verdict)]
    if verdict.rule == LOSS_CAP:
        cap = text.money(rule.exposure_cap_amount or 0.0)
        full = f"With this offer, open cases of this segment could lose more than the cap of {cap}."
        return [limit_reached("exposure_cap_amount_reached", full, verdict)]
    limit = "" if verdict.limit is None else f" of {counted(verdict.limit, 'open case')}"
    full = f"This segment has reached its limit{limit} for this offer."
    reached = [limit_reached("exposure_limit_reached", full, verdict)] if verdict.rule == LIMIT else []
    record = (
        f"For applicants in the same segment, {evidence(rule, counts)}. "
        f"The minimum for this offer is {percent(verdict.threshold)}."
    )
    reasons = [*reached, PrincipalReason("record_of_similar_applicants", record)]
    if text.most > 0.0:
        size = f"The amount at stake is {text.money(text.offer.amount)}. {text.largest}"
        reasons.append(PrincipalReason("amount_at_stake", size))
    return [*reasons, *few_outcomes(rule, counts)]


def what_would_change_offer(
    rule: SegmentRule, counts: Counts, verdict: Verdict, choices: Sequence[Offer] = ()
) -> list[str]:
    """Return the changes that would have reversed the decision about an offer, each in one sentence."""
    text = _Text(rule, counts, verdict)
    given = choices or (text.offer,)
    changes: list[str] = []
    if verdict.rule == CAP and rule.exposure_cap is not None:
        room = counts.pending - rule.exposure_cap + 1
        changes.append(f"{room:,} fewer {plural(room, 'outcome')} pending: the decision would have been accept.")
    if verdict.rule == LIMIT and verdict.limit is not None:
        room = counts.pending - verdict.limit + 1
        changes.append(f"{room:,} fewer {plural(room, 'outcome')} pending: the decision would have been accept.")
    if verdict.rule == LOSS_CAP and rule.exposure_cap_amount is not None:
        excess = counts.at_risk + text.offer.loss - rule.exposure_cap_amount
        changes.append(f"{text.money(excess)} less at risk in pending outcomes: accept.")
    if verdict.rule in OVERALL:
        changes.append(f"Less used by all segments together. {again_text(rule, verdict.rule)}")
    if verdict.rule == CAPACITY:
        changes.append("More capacity for the batch, or a higher rank: accept.")
    if verdict.rule == OVER:
        changes.append("A longer horizon.")
    accepted = verdict.decision == "accept"
    if verdict.rule in (BELOW, LIMIT):
        if text.most > 0.0:
            changes.append(f"An amount at stake below {text.money(text.most)} at this break-even: accept.")
        more = _steps(rule, counts, given, True, range(1, min(counts.failures, MOST_STEPS) + 1), swap=True)
        if more is not None:
            outcomes = counted(counts.successes + counts.failures, "outcome")
            changes.append(f"{more:,} of {outcomes} a success instead of a failure: accept.")
    if verdict.rule in (BELOW, LIMIT, ABOVE, LEARNING):
        run = _steps(rule, counts, given, not accepted, range(1, MOST_STEPS + 1))
        if run is not None:
            word = plural(run, "failure") if accepted else plural(run, "success", "successes")
            changes.append(
                f"{run:,} further {word}{' in a row' if run > 1 else ''}: {'reject' if accepted else 'accept'}."
            )
    if verdict.rule == LEARNING and text.most < math.inf:
        changes.append(f"An amount at stake of {text.money(text.most)} or more at this break-even: reject.")
    if verdict.rule == FLOOR or (verdict.rule == BELOW and verdict.probability > 0):
        changes.append(f"Another draw of the exploration floor: {'reject' if accepted else 'accept'}.")
    return changes


def _steps(
    rule: SegmentRule, counts: Counts, choices: Sequence[Offer], up: bool, steps: range, swap: bool = False
) -> int | None:
    """Return how many outcomes would change whether an offer pays by itself, caps left out, or None."""
    table = rule.table_after(counts)
    assert isinstance(table, OfferTable)
    for more in steps:
        good = counts.good + (more if up else 0)
        bad = counts.bad + (0 if up else more) - (more if swap else 0)
        rate = table.rate(good, bad)
        profit = max(rule.net_profit(one, rate) for one in choices)
        if (profit + table.label(good, bad, counts.pending).worth > 0.0) == up:
            return more
    return None


class _Text:
    """The parts of the texts about one decision."""

    def __init__(self, rule: SegmentRule, counts: Counts, verdict: Verdict) -> None:
        assert verdict.offer is not None
        assert verdict.expected_profit is not None
        assert isinstance(rule.table, OfferTable)
        self.unit = rule.table.money
        self.money = self.unit.format
        self.offer, self.profit = verdict.offer, verdict.expected_profit
        self._charge = rule.charge(verdict.offer)
        self._worth = rule.label(counts).worth
        rate = rule.basis(counts).rate
        even = percents(rate, self.offer.cost)[1]
        side = "above" if rate > self.offer.cost else "not above"
        self.compared = f"{evidence(rule, counts)}, {side} the break-even of {even}"
        # The largest amount at this break-even for which the value of the label makes up.
        self.most = rule.largest_amount(self.offer.cost, counts)

    @property
    def cost(self) -> str:
        """What the offer is expected to lose, and what its capacity is worth elsewhere."""
        loses = f"The expected loss is {self.money(-self.profit)}" if self.profit <= 0.0 else self._profit
        return f"{loses}{self._capacity}."

    @property
    def earns(self) -> str:
        """What the offer is expected to earn, and what its capacity is worth elsewhere."""
        return f"{self._profit}{self._capacity}."

    @property
    def _profit(self) -> str:
        return f"The expected profit is {self.money(self.profit)}"

    @property
    def _capacity(self) -> str:
        return f", and the limited capacity that it uses is worth {self.money(self._charge)}" if self._charge else ""

    @property
    def label(self) -> str:
        """What one more outcome is worth."""
        return self.money(self._worth)

    @property
    def largest(self) -> str:
        """Which amounts are accepted."""
        if self.most <= 0.0:
            return "At this break-even, no amount is accepted."
        return f"At this break-even, amounts below {self.money(self.most)} are accepted."

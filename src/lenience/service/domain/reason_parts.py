"""Parts of the texts that explain decisions, with and without offers."""

from __future__ import annotations

import msgspec

from lenience.core.formatting import count, counted, percent, plural
from lenience.core.money import Money
from lenience.service.domain.horizon_offer_tables import HorizonOfferTable
from lenience.service.domain.overall import OVERALL_CAP, OVERALL_LOSS_CAP, PERIOD_CAPACITY
from lenience.service.domain.rule import Counts, SegmentRule, Verdict


class PrincipalReason(msgspec.Struct, frozen=True):
    """One of the main reasons of a rejection, as adverse action notices require."""

    code: str
    text: str


def not_now(verdict: Verdict, size: str = "") -> str:
    """Return how the reason of a decision starts if only a limit stands in the way: the applicant waits if it can."""
    if verdict.decision == "wait":
        return f"Wait with {size}" if size else "Wait"
    return f"Reject {size} for now" if size else "Reject for now"


def limit_reached(code: str, text: str, verdict: Verdict) -> PrincipalReason:
    """Return the reason that a limit is reached. It is about places, not about the applicant.

    >>> limit_reached("exposure_cap_reached", "The cap is 9.", Verdict("reject", "exposure_cap", 9, 0.0, 0.5)).text
    'The cap is 9. Applicants who are alike may be treated differently while this limit is reached.'
    """
    waits = " This applicant is on the waiting list." if verdict.decision == "wait" else ""
    return PrincipalReason(
        code, f"{text} Applicants who are alike may be treated differently while this limit is reached.{waits}"
    )


def horizon_over(rule: SegmentRule) -> str:
    """Return the words for a horizon that is over: of applicants, or of acceptances where stopping is final."""
    if isinstance(rule.table, HorizonOfferTable):
        return f"all {rule.table.horizon:,} applicants of the horizon have arrived"
    return f"all {rule.table.horizon:,} acceptances of the horizon have been made"


def evidence(rule: SegmentRule, counts: Counts) -> str:
    """Return the expected success rate of a segment and its evidence: outcomes, and the prior."""
    basis = rule.basis(counts)
    if basis.evidence is None:
        known, past = counts.successes + counts.failures, rule.past_outcomes
        before = f"prior evidence worth {counted_roughly(rule.table.prior.n)}"
        if counts.borrowed is not None:
            worth = max(rule.table.prior.n + counts.borrowed.outcomes, 0.0)
            before = f"evidence from other segments worth {counted_roughly(worth)}"
        before += f", from {_past(past)}" if past else ""
        parts = [f"{counts.successes:,} of {known:,} succeeded{fading_words(counts)}"] if known else []
        parts += [open_words(counts)] if counts.open else []
        record = f"{', '.join(parts)}, plus {before}" if parts else before
        basis.evidence = f"the expected success rate is {percent(basis.rate)} ({record})"
    return basis.evidence


def evidence_words(rule: SegmentRule, counts: Counts) -> str:
    """Return what is known of a segment, without the prior's own weight.

    A page shows it after the word "evidence".
    """
    known, past = counts.successes + counts.failures, rule.past_outcomes
    words = "no outcome yet"
    if known and past:
        words = f"{counted_roughly(known + past)} ({count(past)} of them from before the policy)"
    elif known + past:
        words = _past(past) if past else counted(known, "outcome")
    words += fading_words(counts)
    return f"{words} and {open_words(counts)}" if counts.open else words


def fading_words(counts: Counts) -> str:
    """Return as how many outcomes the known ones count, if old ones count less.

    >>> fading_words(Counts(successes=30, failures=10, forgotten_outcomes=16.4, forgotten_successes=12.0))
    ', which count as 23.6 because old outcomes count less'
    """
    if not counts.forgotten_outcomes:
        return ""
    left = max(counts.successes + counts.failures - counts.forgotten_outcomes, 0.0)
    return f", which count as {count(left)} because old outcomes count less"


def open_words(counts: Counts) -> str:
    """Return how many open loans count, and as how many outcomes.

    >>> open_words(Counts(open=212, open_outcomes=64.2, open_successes=60.1))
    '212 open cases that count as 64.2'
    """
    weight = max(counts.open_outcomes, 0.0)
    shown = count(weight) if weight >= 0.05 else "almost nothing"
    return f"{counted(counts.open, 'open case')} that {'counts' if counts.open == 1 else 'count'} as {shown}"


def _past(outcomes: float) -> str:
    return f"{count(outcomes)} past {plural(outcomes, 'outcome')}"


def counted_roughly(outcomes: float) -> str:
    """Format a number of outcomes that need not be whole.

    >>> counted_roughly(1), counted_roughly(0.5), counted_roughly(1188)
    ('1 outcome', '0.5 outcomes', '1,188 outcomes')
    """
    return f"{count(outcomes)} {plural(outcomes, 'outcome')}"


def pending_text(counts: Counts) -> str:
    """Return how many outcomes are pending, as part of a sentence."""
    return f"{counted(counts.pending, 'outcome')} {'is' if counts.pending == 1 else 'are'} pending"


def limit_text(counts: Counts, verdict: Verdict) -> str:
    """Return how many outcomes are pending and may be, as a sentence, or nothing if there is no limit."""
    if verdict.limit is None:
        return ""
    return f" {counted(counts.pending, 'outcome')} pending, of at most {verdict.limit:,} at once."


def break_even_text(rule: SegmentRule) -> str:
    """Return the break-even of a segment with one cost, and what a price or a fairness limit adds to it."""
    cost = rule.table.cost
    if rule.fairness is not None and rule.fairness.shift(rule.name):
        shift = rule.fairness.shift(rule.name)
        points = f"{'plus' if shift > 0 else 'minus'} {percent(abs(shift))}"
        return f"{percent(cost)} ({percent(rule.break_even)} {points} for the fairness limit)"
    if not rule.price:
        return percent(cost)
    return f"{percent(cost)} ({percent(rule.break_even)} plus {percent(rule.price)} because capacity is limited)"


def overall_text(rule: SegmentRule, kind: str, money: Money) -> str:
    """Return the limit over all segments that a rejection is due to, as a sentence.

    It is the same for every applicant whom the limit leaves out.
    """
    limits = rule.overall
    assert limits is not None
    if kind == OVERALL_CAP:
        return f"All segments together have reached the cap of {counted(limits.cap or 0, 'open case')}."
    if kind == OVERALL_LOSS_CAP:
        cap = money.format(limits.cap_amount or 0.0)
        return f"With this offer, open cases of all segments together could lose more than the cap of {cap}."
    capacity = limits.capacity
    assert kind == PERIOD_CAPACITY
    assert capacity is not None
    if capacity.loss is None:
        return f"This {capacity.per}'s capacity of {counted(capacity.acceptances or 0, 'acceptance')} is used."
    left = f"What is left of this {capacity.per}'s capacity, {money.format(capacity.loss)} at risk,"
    return f"{left} is too little for this offer."


def waiting_text(rule: SegmentRule, kind: str, money: Money) -> str:
    """Return the limit over all segments that a rejection is due to, and when it makes room, to end a sentence."""
    text = overall_text(rule, kind, money)
    return f"{text[0].lower()}{text[1:]} {again_text(rule, kind)}"


def again_text(rule: SegmentRule, kind: str) -> str:
    """Return when a limit over all segments makes room again, as a sentence."""
    if kind != PERIOD_CAPACITY or rule.overall is None or rule.overall.capacity is None:
        return "New outcomes make room."
    return f"The next {rule.overall.capacity.per} makes room."


def few_outcomes(rule: SegmentRule, counts: Counts) -> list[PrincipalReason]:
    """Return the reason that little is known of a segment, if that is so."""
    known = counts.successes + counts.failures
    borrowed = 0.0 if counts.borrowed is None else counts.borrowed.outcomes
    if rule.table.prior.n + borrowed + known >= 30:  # the prior counts as evidence too
        return []
    total = known + rule.past_outcomes
    few = f"Only {counted_roughly(total)} {'is' if total == 1 else 'are'} known in this segment."
    return [PrincipalReason("limited_experience_with_segment", few)]

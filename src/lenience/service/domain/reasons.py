"""Explain decisions: the reason, the principal reasons of a rejection, and what would have changed the decision."""

from __future__ import annotations

from collections.abc import Sequence

from lenience.core.formatting import count, counted, percent, plural
from lenience.core.money import Money
from lenience.core.offers import Offer
from lenience.service.domain.offer_reasons import offer_principal_reasons, offer_reason, what_would_change_offer
from lenience.service.domain.overall import OVERALL
from lenience.service.domain.reason_parts import (
    PrincipalReason,
    again_text,
    break_even_text,
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
    FLOOR,
    LEARNING,
    LIMIT,
    OVER,
    Counts,
    SegmentRule,
    Verdict,
)

NO_MONEY = Money()  # where all have one cost, limits count


def reasons(
    rule: SegmentRule, counts: Counts, verdict: Verdict, choices: Sequence[Offer] = ()
) -> tuple[str, list[PrincipalReason]]:
    """Return the reason and the principal reasons, cached while the counts they mention stay the same."""
    if verdict.offer is not None:  # hardly two offers are the same
        return offer_reason(rule, counts, verdict, choices), offer_principal_reasons(rule, counts, verdict)
    pending = -1 if verdict.limit is None else counts.pending
    cache = rule.basis(counts).reasons
    texts = cache.get((verdict.rule, pending))
    if texts is None:
        if len(cache) > 1000:
            cache.clear()
        texts = (reason(rule, counts, verdict), principal_reasons(rule, counts, verdict))
        cache[verdict.rule, pending] = texts
    return texts


def reason(rule: SegmentRule, counts: Counts, verdict: Verdict) -> str:
    """Return the reason for a decision, in one or two sentences."""
    if verdict.offer is not None:
        return offer_reason(rule, counts, verdict)
    even = break_even_text(rule)
    seen, n = evidence(rule, counts), rule.table.prior.n + counts.good + counts.bad
    kind = verdict.rule
    if kind == ABOVE:
        return f"Accept: {seen}, above the break-even of {even}.{limit_text(counts, verdict)}"
    if kind == LEARNING:
        return (
            f"Accept: {seen}, not above the break-even of {even}, but above the minimum of "
            f"{percent(verdict.threshold)} at this amount of evidence. What an acceptance teaches is worth more than "
            f"its expected loss.{limit_text(counts, verdict)}"
        )
    if kind == FLOOR:
        return (
            f"Accept: {seen}, not above the minimum of {percent(verdict.threshold)}. The exploration floor accepts "
            f"{percent(rule.exploration_floor)} of such applicants anyway, so that the segment never closes for good."
        )
    if kind == OVER:
        return f"Reject: {horizon_over(rule)}."
    if kind == CAP:
        cap = f"the exposure cap is {rule.exposure_cap:,}"
        return f"{not_now(verdict)}: {pending_text(counts)}, and {cap}. New outcomes make room."
    if kind in OVERALL:
        return f"{not_now(verdict)}: {waiting_text(rule, kind, NO_MONEY)}"
    if kind == LIMIT:
        return (
            f"{not_now(verdict)}: {seen}, not above the break-even of {even}, and {pending_text(counts)}. "
            f"The limit at this amount of evidence is {verdict.limit:,}. New outcomes make room."
        )
    assert kind == BELOW
    floor = "" if verdict.probability == 0 else f" (the exploration floor accepts {percent(rule.exploration_floor)})"
    finality = (
        "The rejection is final unless new evidence arrives."
        if counts.pending == 0 and not floor
        else "Future outcomes may change this."
    )
    if counts.borrowed is not None:
        finality = "Future outcomes of this segment or of others may change this."
    return (
        f"Reject: {seen}, not above the minimum of {percent(verdict.threshold)} after {count(n)} observations "
        f"(break-even {even}){floor}. {finality}"
    )


def principal_reasons(rule: SegmentRule, counts: Counts, verdict: Verdict) -> list[PrincipalReason]:
    """Return the main reasons of a rejection, the most important first. An acceptance has none."""
    if verdict.offer is not None:
        return offer_principal_reasons(rule, counts, verdict)
    if verdict.decision == "accept":
        return []
    cost = rule.table.cost
    seen = f"For applicants in the same segment, {evidence(rule, counts)}"
    kind = verdict.rule
    if kind == OVER:
        return [PrincipalReason("no_more_acceptances", "The planned number of acceptances has been reached.")]
    short = PrincipalReason(
        "record_of_similar_applicants",
        f"{seen}. The minimum is {percent(verdict.threshold)}.",
    )
    if kind == CAP:
        full = f"This segment has reached its cap of {counted(rule.exposure_cap or 0, 'open case')}."
        return [limit_reached("exposure_cap_reached", full, verdict)]
    if kind in OVERALL:
        return [limit_reached(f"{kind}_reached", overall_text(rule, kind, NO_MONEY), verdict)]
    if kind == LIMIT:
        out = f"This segment has reached its limit of {counted(verdict.limit or 0, 'open case')}."
        below = f"{seen}. The break-even is {percent(cost)}."
        return [
            limit_reached("exposure_limit_reached", out, verdict),
            PrincipalReason("record_of_similar_applicants", below),
        ]
    return [short, *few_outcomes(rule, counts)]


def what_would_change(rule: SegmentRule, counts: Counts, verdict: Verdict, choices: Sequence[Offer] = ()) -> list[str]:
    """Return the changes that would have reversed the decision, each in one sentence."""
    if verdict.offer is not None:
        return what_would_change_offer(rule, counts, verdict, choices)
    outcomes = counts.successes + counts.failures
    least = None if counts.open or counts.borrowed is not None else rule.table_after(counts).least_accepted(outcomes)
    kind = verdict.rule
    changes: list[str] = []
    if kind in OVERALL:
        changes.append(f"Less used by all segments together. {again_text(rule, kind)}")
    if kind in (LIMIT, CAP):
        room = counts.pending - (verdict.limit or 0) + 1
        changes.append(f"{room:,} fewer {plural(room, 'outcome')} pending: the decision would have been accept.")
    if kind in (LIMIT, BELOW):
        more = _successes_needed(rule, counts)
        if more is not None:
            changes.append(f"{more:,} of {counted(outcomes, 'outcome')} a success instead of a failure: accept.")
        run = _run_needed(rule, counts)
        if run is not None:
            changes.append(
                f"{run:,} further {plural(run, 'success', 'successes')}{' in a row' if run > 1 else ''}: accept."
            )
    if kind == BELOW and verdict.probability > 0:
        changes.append("Another draw of the exploration floor: accept.")
    if kind == OVER:
        changes.append("A longer horizon.")
    if kind in (ABOVE, LEARNING):
        if verdict.limit is not None:
            room = verdict.limit - counts.pending
            changes.append(f"{room:,} more {plural(room, 'outcome')} pending: the decision would have been reject.")
        if least is not None and 0 < least <= counts.successes:
            fewer = counts.successes - least + 1
            changes.append(
                f"{fewer:,} fewer {plural(fewer, 'success', 'successes')} among {counted(outcomes, 'outcome')}: reject."
            )
        run = _failures_needed(rule, counts)
        if run is not None:
            changes.append(f"{run:,} further {plural(run, 'failure')}{' in a row' if run > 1 else ''}: reject.")
    if kind == FLOOR:
        changes.append("Another draw of the exploration floor: reject.")
    return changes


def _successes_needed(rule: SegmentRule, counts: Counts) -> int | None:
    """Return how many failures would have had to be successes, or None."""
    for more in range(1, min(counts.failures, 1000) + 1):
        limit = rule.table_after(counts).limit(counts.good + more, counts.bad - more)
        if limit is None or counts.pending < limit:
            return more
    return None


def _run_needed(rule: SegmentRule, counts: Counts) -> int | None:
    """Return how many successes in a row would open the segment again, or None."""
    if rule.table.horizon is not None:
        return None
    for more in range(1, 1001):
        limit = rule.table_after(counts).limit(counts.good + more, counts.bad)
        if limit is None or counts.pending < limit:
            return more
    return None


def _failures_needed(rule: SegmentRule, counts: Counts) -> int | None:
    """Return how many failures in a row would close the segment, within the rows of its table, or None."""
    if rule.table.horizon is not None:
        return None
    for more in range(1, min(1001, rule.table.rows - counts.successes - counts.failures)):
        limit = rule.table_after(counts).limit(counts.good, counts.bad + more)
        if limit is not None and counts.pending >= limit:
            return more
    return None


def overruled(reason: str, by: str, choice: str, *, review: bool = False) -> str:
    """Return a reason preceded by the override that replaced the decision, or by the decision on a referred case.

    >>> overruled("Reject: 40% are expected to succeed.", "head of risk", "accept")
    'Overridden by head of risk: accept. The policy decided: Reject: 40% are expected to succeed.'
    """
    if review:
        return f"Decided by {by}: {choice}. {reason}"
    return f"Overridden by {by}: {choice}. The policy decided: {reason}"

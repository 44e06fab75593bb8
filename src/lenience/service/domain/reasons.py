"""Decisions in words: why, the principal reasons of a rejection, and what would have changed the answer."""

from __future__ import annotations

import msgspec

from lenience.core.formatting import count, counted, percent, plural
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


class PrincipalReason(msgspec.Struct, frozen=True):
    """One of the main reasons of a rejection, as a lender must give them."""

    code: str
    text: str


def reasons(rule: SegmentRule, counts: Counts, verdict: Verdict) -> tuple[str, list[PrincipalReason]]:
    """The reason in words and the principal reasons; the same as last time where nothing they tell of has changed."""
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
    """Why it was decided so, in one sentence or two."""
    cost = rule.table.cost
    seen, n = _seen(rule, counts), rule.table.prior.n + counts.successes + counts.failures
    kind = verdict.rule
    if kind == ABOVE:
        return f"Accept: {seen}, above the {percent(cost)} break-even.{_out(counts, verdict)}"
    if kind == LEARNING:
        return (
            f"Accept: {seen}, not above the {percent(cost)} break-even, but above the {percent(verdict.threshold)} "
            f"that is enough so early: what an acceptance teaches is worth more than its expected loss."
            f"{_out(counts, verdict)}"
        )
    if kind == FLOOR:
        return (
            f"Accept: {seen}, not above the {percent(verdict.threshold)} that is asked, but a share of "
            f"{percent(rule.exploration_floor)} is accepted all the same, so that the segment is never closed for good."
        )
    if kind == OVER:
        return f"Reject: all {rule.table.horizon:,} acceptances of the horizon have been made."
    if kind == CAP:
        return (
            f"Reject for now: {_pending(counts)}, and at most {rule.exposure_cap:,} may be at "
            "once; the next outcome makes room."
        )
    if kind == LIMIT:
        return (
            f"Reject for now: {seen}, short of the {percent(cost)} break-even, and {_pending(counts)}, while no more "
            f"than {verdict.limit:,} should be out at once; the next outcome makes room."
        )
    assert kind == BELOW
    floor = "" if verdict.probability == 0 else f" (a share of {percent(verdict.probability)} is accepted all the same)"
    finality = (
        "The rejection is final unless something else is learnt."
        if counts.pending == 0 and not floor
        else "Outcomes still to come may change that."
    )
    return (
        f"Reject: {seen}, not above the {percent(verdict.threshold)} that is asked after {count(n)} observations "
        f"(break-even {percent(cost)}){floor}. {finality}"
    )


def principal_reasons(rule: SegmentRule, counts: Counts, verdict: Verdict) -> list[PrincipalReason]:
    """The main reasons of a rejection, the weightiest first; none for an acceptance."""
    if verdict.decision == "accept":
        return []
    prior, cost = rule.table.prior, rule.table.cost
    seen = f"Of applicants in the same segment {_seen(rule, counts)}"
    kind = verdict.rule
    if kind == OVER:
        return [PrincipalReason("no_more_acceptances", "The number of acceptances that was planned has been reached.")]
    short = PrincipalReason(
        "record_of_similar_applicants",
        f"{seen}; {percent(verdict.threshold)} is asked.",
    )
    if kind == CAP:
        full = f"{_out_of_segment(counts)} no outcome yet, the most that is allowed."
        return [PrincipalReason("exposure_cap_reached", full)]
    if kind == LIMIT:
        out = f"{_out_of_segment(counts)} no outcome yet; at most {verdict.limit:,} may."
        below = f"{seen}; the break-even is {percent(cost)}."
        return [
            PrincipalReason("exposure_limit_reached", out),
            PrincipalReason("record_of_similar_applicants", below),
        ]
    reasons = [short]
    known = counts.successes + counts.failures
    if prior.n + known < 30:  # what was known beforehand counts too
        few = f"Only {counted(known, 'outcome')} of the segment {'is' if known == 1 else 'are'} known."
        reasons.append(PrincipalReason("limited_experience_with_segment", few))
    return reasons


def what_would_change(rule: SegmentRule, counts: Counts, verdict: Verdict) -> list[str]:
    """What would have made the answer another one, each in one sentence."""
    outcomes = counts.successes + counts.failures
    least = rule.table.least_accepted(outcomes)
    kind = verdict.rule
    changes: list[str] = []
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


def _seen(rule: SegmentRule, counts: Counts) -> str:
    """What is known of a segment: outcomes that came, apart from what was believed before any did."""
    prior, known = rule.table.prior, counts.successes + counts.failures
    expected = percent((prior.s + counts.successes) / (prior.n + known))
    before = f"what was believed beforehand, worth {counted_roughly(prior.n)}"
    if not known:
        return f"{expected} are expected to succeed, by {before}"
    return f"{counts.successes:,} of {known:,} succeeded, which with {before}, makes {expected} expected"


def counted_roughly(outcomes: float) -> str:
    """How many outcomes, of what need not be whole.

    >>> counted_roughly(1), counted_roughly(0.5), counted_roughly(1188)
    ('1 outcome', '0.5 outcomes', '1,188 outcomes')
    """
    return f"{count(outcomes)} {plural(outcomes, 'outcome')}"


def _out(counts: Counts, verdict: Verdict) -> str:
    if verdict.limit is None:
        return ""
    return f" {counted(counts.pending, 'outcome')} pending, of at most {verdict.limit:,} at once."


def _out_of_segment(counts: Counts) -> str:
    return f"{counted(counts.pending, 'accepted applicant')} of the segment {'has' if counts.pending == 1 else 'have'}"


def _pending(counts: Counts) -> str:
    return f"{counted(counts.pending, 'outcome')} {'is' if counts.pending == 1 else 'are'} pending"


def _successes_needed(rule: SegmentRule, counts: Counts) -> int | None:
    """How many failures would have had to be successes."""
    for more in range(1, min(counts.failures, 1000) + 1):
        limit = rule.table.limit(counts.successes + more, counts.failures - more)
        if limit is None or counts.pending < limit:
            return more
    return None


def _run_needed(rule: SegmentRule, counts: Counts) -> int | None:
    """How many successes in a row would open the segment again."""
    if rule.table.horizon is not None:
        return None
    for more in range(1, 1001):
        limit = rule.table.limit(counts.successes + more, counts.failures)
        if limit is None or counts.pending < limit:
            return more
    return None


def _failures_needed(rule: SegmentRule, counts: Counts) -> int | None:
    """How many failures in a row would close the segment, as far as its table goes."""
    if rule.table.horizon is not None:
        return None
    for more in range(1, min(1001, rule.table.rows - counts.successes - counts.failures)):
        limit = rule.table.limit(counts.successes, counts.failures + more)
        if limit is not None and counts.pending >= limit:
            return more
    return None


def overruled(reason: str, by: str, choice: str) -> str:
    """A reason as it was given, after who has decided otherwise since.

    >>> overruled("Reject: 40% are expected to succeed.", "head of risk", "accept")
    'Decided otherwise (head of risk): accept. The policy had said: Reject: 40% are expected to succeed.'
    """
    return f"Decided otherwise ({by}): {choice}. The policy had said: {reason}"

"""Parts of the texts that explain decisions, with and without offers."""

from __future__ import annotations

import msgspec

from lenience.core.formatting import count, counted, percent, plural
from lenience.service.domain.rule import Counts, SegmentRule, Verdict


class PrincipalReason(msgspec.Struct, frozen=True):
    """One of the main reasons of a rejection, as adverse action notices require."""

    code: str
    text: str


def evidence(rule: SegmentRule, counts: Counts) -> str:
    """Return the expected success rate of a segment and its evidence: outcomes, and the prior."""
    basis = rule.basis(counts)
    if basis.evidence is None:
        prior, known = rule.table.prior, counts.successes + counts.failures
        before = f"prior evidence worth {counted_roughly(prior.n)}"
        record = f"{counts.successes:,} of {known:,} succeeded, plus {before}" if known else before
        basis.evidence = f"the expected success rate is {percent(basis.rate)} ({record})"
    return basis.evidence


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


def few_outcomes(rule: SegmentRule, counts: Counts) -> list[PrincipalReason]:
    """Return the reason that little is known of a segment, if that is so."""
    known = counts.successes + counts.failures
    if rule.table.prior.n + known >= 30:  # the prior counts as evidence too
        return []
    few = f"Only {counted(known, 'outcome')} {'is' if known == 1 else 'are'} known in this segment."
    return [PrincipalReason("limited_experience_with_segment", few)]

"""What the event of a decision states: the counts before it, and the verdict."""

from __future__ import annotations

from lenience.service.domain.events import Decided, Imported, Shadow
from lenience.service.domain.rule import Counts, Verdict


def stated_counts(event: Decided | Imported) -> Counts:
    """Return the counts of the segment before the decision."""
    counts = (event.arrivals, event.accepted, event.pending, event.successes, event.failures)
    opened = (event.open if isinstance(event, Decided) else None) or (0, 0.0, 0.0)
    borrowed = event.borrowed if isinstance(event, Decided) else None
    forgotten = (event.forgotten if isinstance(event, Decided) else None) or (0.0, 0.0)
    return Counts(*counts, event.at_risk or 0.0, *opened, borrowed, *forgotten)


def stated_verdict(event: Decided | Shadow) -> Verdict:
    """Return the decision and its grounds. Of a referral: what the policy would have answered."""
    referral = event.referral if isinstance(event, Decided) else None
    return Verdict(
        event.decision if referral is None else referral.would,
        event.rule if referral is None else referral.rule,
        event.limit,
        event.probability,
        event.threshold,
        event.offer,
        event.expected_profit,
        event.label_value,
    )

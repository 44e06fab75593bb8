"""Count the open loans of a segment by age, once a day, before its first decision of the day."""

from __future__ import annotations

from collections.abc import Sequence

from lenience.service.domain.events import OpenLoansCounted
from lenience.service.domain.open_loans import OpenEvidence, OpenLoans, ages_digest, ages_of, weigh
from lenience.service.domain.state import ChainState
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import Version


def count_open_loans(ledger: Ledger, actor: str, chain: ChainState, versions: Sequence[Version]) -> None:
    """Append what the open loans of a segment say, if a version needs it and it was not counted today."""
    segment = chain.segment or ""
    timed = [version for version in versions if version.specification.timing and segment in version.rules]
    numbers = [version.number for version in timed]
    if not timed or (chain.open_loans is not None and chain.open_loans.is_current(ledger.now, numbers)):
        return
    ages = ages_of(ledger.open_decisions(chain.id), ledger.now)
    evidence = tuple(
        OpenEvidence(version.number, *weigh(version.rules[segment], version.specification.timing, chain.counts, ages))
        for version in timed
        if version.specification.timing
    )
    event = OpenLoansCounted(
        at=ledger.now,
        actor=actor,
        number=ages.total(),
        ages=ages_digest(ages),
        evidence=tuple((one.version, one.outcomes, one.successes) for one in evidence),
    )
    seq = ledger.append(chain, event)
    chain.open_loans = OpenLoans(ledger.now, seq, event.number, evidence)

"""Count the open loans of a segment by age, and what is forgotten, once a day before its first decision of the day."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from lenience.service.domain.clock import DAY
from lenience.service.domain.events import OpenLoansCounted
from lenience.service.domain.forgetting import forgotten
from lenience.service.domain.open_loans import (
    OpenEvidence,
    OpenLoans,
    ages_digest,
    ages_of,
    weigh,
    with_forgotten,
)
from lenience.service.domain.state import ChainState
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import Version


def count_open_loans(ledger: Ledger, actor: str, chain: ChainState, versions: Sequence[Version]) -> None:
    """Append what the open loans say and what is forgotten, if a version needs it and it was not counted today."""
    segment = chain.segment or ""
    own = [version for version in versions if segment in version.rules]
    timed = [version for version in own if version.specification.timing]
    fading = [version for version in own if version.specification.forgetting]
    numbers, fading_numbers = [version.number for version in timed], [version.number for version in fading]
    if not (timed or fading):
        return
    if chain.open_loans is not None and chain.open_loans.is_current(ledger.now, numbers, fading_numbers):
        return
    lost: dict[int, OpenEvidence] = {}
    if fading:
        known = ledger.known_outcomes(chain.id)
        for version in fading:
            if version.specification.forgetting:
                half_life = version.specification.forgetting.half_life_days
                lost[version.number] = OpenEvidence(version.number, *forgotten(known, ledger.now // DAY, half_life))
    ages = ages_of(ledger.open_decisions(chain.id), ledger.now)
    evidence = tuple(
        OpenEvidence(
            version.number,
            *weigh(
                version.rules[segment],
                version.specification.timing,
                with_forgotten(chain.counts, lost.get(version.number)),
                ages,
            ),
        )
        for version in timed
        if version.specification.timing
    )
    event = OpenLoansCounted(
        at=ledger.now,
        actor=actor,
        number=ages.total(),
        ages=ages_digest(ages),
        evidence=tuple((one.version, one.outcomes, one.successes) for one in evidence),
        forgotten=tuple((one.version, one.outcomes, one.successes) for one in lost.values()),
    )
    seq = ledger.append(chain, event)
    chain.open_loans = OpenLoans(
        ledger.now, seq, event.number, evidence, forgotten=tuple(lost.values()) if lost else UNSET
    )

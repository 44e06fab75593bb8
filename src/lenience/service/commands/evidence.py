"""The counts that a version sees: the segment's own, with open loans and with what it borrows from other segments."""

from __future__ import annotations

from dataclasses import replace

from lenience.service.domain.open_loans import with_open_loans
from lenience.service.domain.pooled_models import PooledState
from lenience.service.domain.rule import Counts
from lenience.service.domain.state import ChainState
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version


def counts_seen(ledger: Ledger, record: PolicyRecord, version: Version, chain: ChainState) -> Counts:
    """Return the counts of a segment as a live version sees them now."""
    counts = with_open_loans(chain.counts, chain.open_loans, version.number)
    if version.model is None or chain.segment is None:
        return counts
    state = ledger.model_states(record).states[version.number]
    assert isinstance(state, PooledState)
    return replace(counts, borrowed=version.model.borrowed(state, chain.segment))

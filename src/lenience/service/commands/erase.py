"""Erase the personal data of the decisions that a query has listed (see queries/personal_data.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.service.commands.outcomes import carry_out
from lenience.service.commands.transitions import plan_nothing
from lenience.service.domain import limits
from lenience.service.domain.answers import ErasureAnswer
from lenience.service.domain.events import Repeated
from lenience.service.domain.receipts import CommandAnswer, Sender, encoder, make_receipt
from lenience.service.storage import schema
from lenience.service.storage.command import store_answer
from lenience.service.storage.ledger import Ledger


class ErasureRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Select the decisions to erase: by reference, by age in days, and by policy."""

    reference: limits.Reference | None = None
    older_than_days: Annotated[float, Meta(ge=0, le=36_500)] | None = None
    policy: limits.Name | None = None
    dry_run: bool = False  # only count them
    after: Annotated[str, Meta(max_length=36, pattern=r"^[0-9a-f-]*\Z", description="next of an answer")] | None = None

    def __post_init__(self) -> None:
        if self.reference is None and self.older_than_days is None:
            fields = ("reference", "older_than_days")
            raise InputError.because("must be given", fields, label="reference or older_than_days", code="missing")


@dataclass(frozen=True, slots=True)
class Erase:
    """The command that erases the personal data of listed decisions."""

    sender: Sender
    ids: list[str]
    next: str | None

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 2 * len(self.ids)

    @property
    def decisions(self) -> list[str]:
        """All of them."""
        return self.ids

    def resolve(self, ledger: Ledger) -> None:
        """Do nothing: the decisions exist, and decisions are never deleted."""

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chains of the segments, or the system's chain, which logs a request without matches.

        The chains of the policies' monitored attributes come after those of the segments.
        """
        segments = [ledger.chain_of[decision] for decision in self.ids]
        owners = (ledger.registry.owner_of(ledger.connection, chain) for chain in set(segments))
        return [*segments, *{owner.monitored for owner in owners}] or [schema.SYSTEM_CHAIN]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Erase the data that no other request has erased meanwhile."""
        states = ledger.unerased([ledger.decisions[decision] for decision in self.ids])
        plans = [(ledger.chains[state.chain], plan_nothing(state, "erasure", recorded=True)) for state in states]
        answer = CommandAnswer(200, encoder.encode(ErasureAnswer(len(self.ids), len(plans), self.next)))
        if not plans and self.sender.key is not None:
            receipt = make_receipt(self.sender, answer)
            chain = ledger.chains[self.chains(ledger)[0]]
            event = Repeated(at=ledger.now, actor=self.sender.actor, decision="", receipt=receipt.digest)
            store_answer(ledger, self.sender, receipt, chain.id, ledger.append(chain, event), answer)
        carry_out(ledger, self.sender, plans, answer)
        return answer

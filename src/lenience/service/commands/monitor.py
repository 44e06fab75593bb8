"""Add or correct the monitored attributes of a decision. It changes no decision and no count."""

from __future__ import annotations

from dataclasses import dataclass

from lenience.core.errors import InputError
from lenience.core.request_limits import MONITORED_ATTRIBUTES
from lenience.service.domain.answers import MonitoredAnswer
from lenience.service.domain.events import Repeated
from lenience.service.domain.monitored import refuse_decided, strip_attributes
from lenience.service.domain.problems import BadRequest, unknown_decision
from lenience.service.domain.protected import feature_names
from lenience.service.domain.receipts import CommandAnswer, Sender, encoder, make_receipt
from lenience.service.storage.command import store_answer
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version


@dataclass(frozen=True, slots=True)
class Monitor:
    """The command that adds or corrects monitored attributes. Null removes one."""

    sender: Sender
    decision: str
    changes: dict[str, str | None]

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 1 + len(self.changes)

    @property
    def decisions(self) -> tuple[str, ...]:
        """The decision that has them."""
        return (self.decision,)

    def resolve(self, ledger: Ledger) -> None:
        """Raise a Problem if the decision does not exist, or if its policy decides by one of the attributes."""
        if self.decision not in ledger.chain_of:
            raise unknown_decision(self.decision)
        try:
            given = strip_attributes(self.changes)
            record = self._record(ledger)
            if record.active is not None:
                names = [name for name, value in given.items() if value is not None]
                check_monitored(record, record.active, names)
        except InputError as error:
            raise BadRequest.of(error) from None

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chain of the policy's monitored attributes. The segment's chain is not touched."""
        return [self._record(ledger).monitored]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Store the attributes, and log the commitment to all of them."""
        record = self._record(ledger)
        chain = ledger.chains[record.monitored]
        ledger.read_monitored([self.decision])
        before = ledger.monitored[self.decision].values
        given = strip_attributes(self.changes)
        after = {name: value for name, value in {**before, **given}.items() if value is not None}
        if len(after) > MONITORED_ATTRIBUTES:
            allowed = f"at most {MONITORED_ATTRIBUTES} attributes for a decision"
            raise BadRequest(f"monitored must have {allowed}", code="too_large", field="monitored", allowed=allowed)
        recorded = after != before
        # The answer may be stored under a key, so it holds names and no values.
        body = MonitoredAnswer(self.decision, record.name, sorted(after), recorded)
        answer = CommandAnswer(200, encoder.encode(body))
        receipt = make_receipt(self.sender, answer)
        if recorded:
            seq = ledger.set_monitored(chain, self.sender.actor, self.decision, after, receipt.digest)
        elif self.sender.key is not None:
            actor = self.sender.actor
            event = Repeated(at=ledger.now, actor=actor, decision=self.decision, receipt=receipt.digest)
            seq = ledger.append(chain, event)
        else:
            return answer
        store_answer(ledger, self.sender, receipt, chain.id, seq, answer)
        return answer

    def _record(self, ledger: Ledger) -> PolicyRecord:
        return ledger.registry.owner_of(ledger.connection, ledger.chain_of[self.decision])


def check_monitored(record: PolicyRecord, version: Version, names: list[str]) -> None:
    """Raise InputError if a version decides by an attribute that is to be monitored, and is not allowed to."""
    specification = version.specification
    if not specification.decide_by_protected:
        refuse_decided(record.name, feature_names(specification), names)

"""Let referred cases lapse that nobody has decided in time."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from lenience.service.commands.outcomes import carry_out, log_no_change
from lenience.service.commands.transitions import plan_expiry
from lenience.service.domain import limits
from lenience.service.domain.answers import ExpiryAnswer
from lenience.service.domain.clock import DAY
from lenience.service.domain.receipts import CommandAnswer, Sender, encoder
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger


@dataclass(frozen=True, slots=True)
class ExpireReferrals:
    """The command that lets referred cases of a policy lapse, each after the days of the version that referred it."""

    sender: Sender
    policy: str
    most: int = limits.BATCH

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 2 * self.most

    @property
    def decisions(self) -> tuple[str, ...]:
        """Empty, because they are not known in advance."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Load the policy."""
        ledger.load_policy(self.policy)

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chains of the policy's segments, and its own, which logs a request without matches."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        return [record.chain, *record.segments.values()]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Let the cases lapse."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        table = schema.decision
        where = (table.c.status == schema.REFERRED) & table.c.chain_id.in_(list(record.segments.values()))
        rows = ledger.connection.execute(select(table.c.id, table.c.version, table.c.at).where(where)).all()
        due = []
        for row in rows:
            referral = ledger.registry.version(ledger.connection, record.id, row.version).referral
            if referral is not None and row.at < ledger.now - referral.expire_after_days * DAY:
                due.append(row.id)
        ledger.read_decisions(due[: self.most])
        states = [ledger.decisions[identity] for identity in due[: self.most]]
        # Changes of this transaction are not in the database yet.
        plans = [(ledger.chains[one.chain], plan_expiry(one)) for one in states if one.status == schema.REFERRED]
        answer = CommandAnswer(200, encoder.encode(ExpiryAnswer(len(plans), len(due) > self.most)))
        carry_out(ledger, self.sender, plans, answer)
        if not plans:
            log_no_change(ledger, self.sender, ledger.chains[record.chain], answer)
        return answer

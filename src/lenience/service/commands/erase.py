"""Erasing the personal data of many decisions: which still have some is found by a reader, and erased by a command.

To find the old ones among millions may take a while, and nobody who asks for a decision is to wait for it: each request
looks at so many decisions, and says where the next begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta
from sqlalchemy import exists, select

from lenience.core.errors import InputError
from lenience.service.commands.command import Answer, Sender, encoder, keep, receipt
from lenience.service.commands.outcomes import carry_out
from lenience.service.commands.transitions import plan_nothing
from lenience.service.domain import limits
from lenience.service.domain.answers import ErasureAnswer
from lenience.service.domain.events import Repeated
from lenience.service.queries.reading import Filters, Queries
from lenience.service.storage import schema
from lenience.service.storage.ledger import Ledger

LOOKED_AT = 10_000  # decisions, at most, in one request
DAY = 86_400 * 1_000_000  # in microseconds; the clocks of several machines differ by less


class ErasureRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Erase the personal data of the decisions with this reference, older than so many days, of this policy."""

    reference: limits.Reference | None = None
    older_than_days: Annotated[float, Meta(ge=0, le=36_500)] | None = None
    policy: limits.Name | None = None
    dry_run: bool = False  # only count them
    after: Annotated[str, Meta(max_length=36, pattern=r"^[0-9a-f-]*\Z", description="next of an answer")] | None = None

    def __post_init__(self) -> None:
        if self.reference is None and self.older_than_days is None:
            fields = ("reference", "older_than_days")
            raise InputError.because("must be given", fields, label="reference or older_than_days", code="missing")


def holding(queries: Queries, filters: Filters, after: str | None) -> tuple[list[str], str | None]:
    """Decisions that still have personal data, oldest first, and after which one to go on, if there may be more."""
    table, personal, events = schema.decision, schema.personal, schema.event
    start = table.c.id > (after or "")
    with queries.store.read() as connection:
        query = queries.matching(connection, filters).where(start)
        last = None
        if filters.reference is None:  # who has one has personal data
            window = select(table.c.id, table.c.at).where(start).order_by(table.c.id).offset(LOOKED_AT - 1).limit(1)
            last = connection.execute(window).one_or_none()
            place = (personal.c.chain_id == events.c.chain_id) & (personal.c.seq == events.c.seq)
            overridden = select(events.c.about).join(personal, place).where(schema.OVERRIDE)
            own = exists().where((personal.c.chain_id == table.c.chain_id) & (personal.c.seq == table.c.seq))
            query = query.where(own | table.c.id.in_(overridden))
        if last is not None:
            query = query.where(table.c.id <= last.id)
        rows = connection.execute(query.order_by(table.c.id).limit(limits.BATCH + 1)).all()
    found = [row.id for row in rows[: limits.BATCH]]
    if len(rows) > limits.BATCH:
        return found, found[-1]
    if last is None or (filters.until is not None and last.at > filters.until + DAY):  # ids sort by time
        return found, None
    return found, last.id


@dataclass(frozen=True, slots=True)
class Erase:
    """The command that erases the personal data of decisions that were found to have some."""

    sender: Sender
    found: list[str]
    next: str | None

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 2 * len(self.found)

    @property
    def decisions(self) -> list[str]:
        """All of them."""
        return self.found

    def resolve(self, ledger: Ledger) -> None:
        """They were found, and a decision never goes."""

    def chains(self, ledger: Ledger) -> list[int]:
        """The chains of all segments concerned; or the system's, which notes a request that found nothing."""
        return [ledger.chain_of[one] for one in self.found] or [schema.SYSTEM_CHAIN]

    def run(self, ledger: Ledger) -> Answer:
        """Erase it; another may have been quicker with some."""
        states = ledger.unerased([ledger.decisions[one] for one in self.found])
        plans = [(ledger.chains[one.chain], plan_nothing(one, "erasure", recorded=True)) for one in states]
        answer = Answer(200, encoder.encode(ErasureAnswer(len(self.found), len(plans), self.next)))
        if not plans and self.sender.key is not None:
            given = receipt(self.sender, answer)
            chain = ledger.chains[self.chains(ledger)[0]]
            event = Repeated(at=ledger.now, actor=self.sender.actor, decision="", receipt=given.digest)
            keep(ledger, self.sender, given, chain.id, ledger.append(chain, event), answer)
        carry_out(ledger, self.sender, plans, answer)
        return answer

"""The imported portfolios of a policy, as its own chain records them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain as chain_together

from sqlalchemy import Connection, select, text

from lenience.service.domain.answers import ImportView
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import Event, ImportStarted, RowsImported, read
from lenience.service.domain.imported_rows import covered
from lenience.service.storage import schema

_IMPORT = text("""substr(body, 1, 15) = '{"kind":"import'""")  # import and import_rows, but not imported


@dataclass(slots=True)
class ImportRecord:
    """One import: its provenance and its batches."""

    started: ImportStarted
    batches: list[RowsImported] = field(default_factory=list)

    @property
    def received(self) -> int:
        """The number of its rows that have arrived."""
        return covered(self.batches)

    def view(self) -> ImportView:
        """Return the import as it is shown."""
        event, received = self.started, self.received
        return ImportView(
            **{name: getattr(event, name) for name in ImportView.__struct_fields__ if hasattr(event, name)},
            received=received,
            recorded=sum(batch.recorded for batch in self.batches),
            accepted=sum(batch.accepted for batch in self.batches),
            pending=sum(batch.pending for batch in self.batches),
            successes=sum(batch.successes for batch in self.batches),
            failures=sum(batch.failures for batch in self.batches),
            complete=received == event.rows,
            imported_at=iso_time(event.at),
            imported_by=event.actor,
        )


def read_imports(connection: Connection, chain: int, unwritten: Iterable[Event] = ()) -> dict[int, ImportRecord]:
    """Return the imports of a policy by number, from its own chain, and from events that are not written yet."""
    events = schema.event
    query = select(events.c.body).where(events.c.chain_id == chain, _IMPORT).order_by(events.c.seq)
    records: dict[int, ImportRecord] = {}
    written = map(read, connection.execute(query).scalars())
    for event in chain_together(written, unwritten):
        if isinstance(event, ImportStarted):
            records[event.number] = ImportRecord(event)
        elif isinstance(event, RowsImported):
            records[event.number].batches.append(event)
    return records

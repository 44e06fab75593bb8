"""The versions of a policy as its log records them: who created and approved each, from what, and what is proved."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType
from sqlalchemy import Connection, or_, select

from lenience.core.data_origin import PolicyOrigin
from lenience.service.domain.answers import StateEntry, VersionRecord
from lenience.service.domain.clock import iso_time
from lenience.service.domain.events import StateChanged, VersionCreated, read
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import PolicyRecord


class _Described(msgspec.Struct, frozen=True):
    """The fields of a specification that a list of versions shows. Others are not decoded."""

    description: str = ""
    origin: PolicyOrigin | UnsetType | None = UNSET


def read_version_records(connection: Connection, record: PolicyRecord) -> list[VersionRecord]:
    """Return the versions of a policy, the oldest first."""
    events, table = schema.event, schema.version
    kinds = or_(events.c.body.startswith('{"kind":"version"'), events.c.body.startswith('{"kind":"state"'))
    query = select(events.c.body).where((events.c.chain_id == record.chain) & kinds).order_by(events.c.seq)
    created: dict[int, VersionCreated] = {}
    changes: dict[int, list[StateEntry]] = {}
    for event in map(read, connection.scalars(query)):
        if isinstance(event, VersionCreated):
            created[event.number] = event
        elif isinstance(event, StateChanged):
            entry = StateEntry(
                event.state, iso_time(event.at), event.actor, event.four_eyes, event.reason, event.percent
            )
            changes.setdefault(event.number, []).append(entry)
    stored = select(table.c.number, table.c.specification).where(table.c.policy_id == record.id)
    texts = {row.number: row.specification for row in connection.execute(stored)}
    return [
        _record(number, state, created.get(number), changes.get(number, []), texts.get(number))
        for number, state in record.states.items()
    ]


def _record(
    number: int, state: str, created: VersionCreated | None, changes: list[StateEntry], text: str | None
) -> VersionRecord:
    described = _Described() if text is None else msgspec.json.decode(text, type=_Described)
    approvals = [change for change in changes if change.state == "active"]
    approval = approvals[-1] if approvals else None
    return VersionRecord(
        version=number,
        state=state,  # type: ignore[arg-type]
        percent=changes[-1].percent if changes else None,
        created_at=None if created is None else iso_time(created.at),
        created_by=None if created is None else created.actor,
        activated_at=None if approval is None else approval.at,
        activated_by=None if approval is None else approval.by,
        four_eyes=approval is not None and approval.four_eyes,
        segments=0 if created is None else len(created.names),
        proved=None if created is None else created.proved,
        software="" if created is None else created.software,
        specification="" if created is None else created.specification,
        description=described.description,
        origin=described.origin or None,
        changes=changes,
    )

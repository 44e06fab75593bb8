"""The rows of monitored attributes: one for each attribute of a decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, select

from lenience.service.domain.monitored import MonitoredValues
from lenience.service.storage import schema
from lenience.service.storage.monitored_totals import values_of

MOST_IN_STATEMENT = 500


def read_monitored(connection: Connection, decisions: Sequence[str]) -> dict[str, MonitoredValues]:
    """Return the monitored attributes of the decisions that have any."""
    table = schema.monitored
    result: dict[str, MonitoredValues] = {}
    for row in connection.execute(select(table).where(table.c.decision.in_(decisions)).order_by(table.c.name)):
        result.setdefault(row.decision, MonitoredValues(row.salt, {})).values[row.name] = row.value
    return result


def delete_monitored(connection: Connection, decisions: Sequence[str]) -> None:
    """Delete the attributes of decisions."""
    table = schema.monitored
    for start in range(0, len(decisions), MOST_IN_STATEMENT):
        some = table.c.decision.in_(decisions[start : start + MOST_IN_STATEMENT])
        connection.execute(table.delete().where(some))


def monitored_rows(decisions: Iterable[tuple[str, int, MonitoredValues]]) -> list[tuple[str, str, str, str, int]]:
    """Return the rows of decisions with their chains and attributes."""
    return [
        (decision, name, value, data.salt, chain)
        for decision, chain, data in decisions
        for name, value in data.values.items()
    ]


def monitored_names(connection: Connection, chain: int) -> dict[str, list[str]]:
    """Return the attributes that the decisions of a policy have, and the values of each, from the totals.

    ``chain`` is that of the policy's monitored attributes.
    """
    totals, chains, own = schema.monitored_total, schema.chain, schema.chain.alias()
    query = (
        select(totals.c.attributes)
        .join(chains, chains.c.id == totals.c.chain_id)
        .join(own, own.c.monitors == chains.c.policy_id)
        .where(own.c.id == chain, totals.c.number > 0)
        .distinct()
    )
    result: dict[str, set[str]] = {}
    for text in connection.execute(query).scalars():
        for name, value in (values_of(text) or {}).items():
            result.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in sorted(result.items())}

"""Which policies decide by protected attributes now. Every page of the dashboard says so."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select

from lenience.service.domain.protected import protected_decisions
from lenience.service.domain.specification import PolicySpecification
from lenience.service.storage import schema
from lenience.service.storage.monitored_rows import monitored_names
from lenience.service.storage.policy_cache import LIVE

ALLOWED = '%"decide_by_protected":true%'


def policies_deciding_by_protected(connection: Connection) -> dict[str, list[str]]:
    """Return the protected attributes that the live versions of each policy decide by."""
    version, policy, chain = schema.version, schema.policy, schema.chain
    query = (
        select(policy.c.name, version.c.specification, chain.c.id)
        .join(policy, policy.c.id == version.c.policy_id)
        .join(chain, chain.c.monitors == policy.c.id)
        .where(version.c.state.in_(LIVE), version.c.specification.like(ALLOWED))
        .order_by(policy.c.name, version.c.number)
    )
    result: dict[str, list[str]] = {}
    for name, text, monitored in connection.execute(query):
        specification = msgspec.json.decode(text, type=PolicySpecification)
        if specification.decide_by_protected:  # the text may also occur in a description
            attributes = protected_decisions(specification, monitored_names(connection, monitored))
            result[name] = list(dict.fromkeys([*result.get(name, []), *attributes]))
    return {name: attributes for name, attributes in result.items() if attributes}

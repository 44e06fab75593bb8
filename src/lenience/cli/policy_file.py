"""The policy file: what lenience fit writes, and what check, serve and export-sql take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import select

from lenience.cli.past import PastOptions
from lenience.core.errors import InputError
from lenience.history.origin import fitted_origin
from lenience.history.past import propose_segments
from lenience.policies.features.storing import FORMAT
from lenience.service.domain.specification import PolicySpecification
from lenience.service.storage import schema

if TYPE_CHECKING:
    from lenience.service.storage.store import Store


def write_specification(past: PastOptions, path: str, doubt: float | None) -> None:
    """Write the policy of past decisions as the service takes it."""
    if past.segments is None:
        raise InputError.because("needs --cost, or --gain and --loss", "--output", value=path, code="missing")
    cells = past.segments.cells
    objective: Any = past.late or cells[0].objective
    if cells[0].objective.offers is not None:
        objective = objective.with_offers(past.history.offers_of_all())
    beliefs = {row.cell: row.belief for row in past.fitted.shrinkage}
    segments = propose_segments({cell.name: cell.share for cell in cells}, beliefs, past.groups)
    labels = {row.cell: row.labels for row in past.fitted.shrinkage}
    for segment, cell in zip(segments, cells, strict=True):
        if labels.get(cell.name):
            segment["past_outcomes"] = labels[cell.name]
        if cell.objective.offers is not None:
            segment["offers"] = msgspec.to_builtins(cell.objective.offers)
    made: dict[str, Any] = {"name": _name(path), "objective": objective_fields(objective), "segments": segments}
    if doubt:
        made["doubt"] = doubt
    if past.protected:
        made |= {"decide_by_protected": True, "protected": list(past.protected)}
    origin = fitted_origin(past.history.origin, past.fitted.model, objective.cost)
    made["origin"] = msgspec.to_builtins(origin)
    read_specification(made, path)
    Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")


def read_policy_file(path: str) -> PolicySpecification:
    """Return the policy in a file, as the service takes it: of segments, or with features and all it has learnt."""
    try:
        document = msgspec.json.decode(Path(path).read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError.because(
            f"is not JSON: {error}", "file", label=path, value=path, code="invalid_file"
        ) from error
    if isinstance(document, dict) and document.get("format") == FORMAT:
        from lenience.client.feature_policies import feature_policy_body
        from lenience.policies.features.storing import from_specification

        body = feature_policy_body(from_specification(document), _name(path))
        document = body | ({"origin": document["origin"]} if document.get("origin") else {})
    return read_specification(document, path)


def install(store: Store, specification: PolicySpecification, activate: bool) -> str:
    """Make the policy of a file the active version, unless it is already, and say what was done."""
    from lenience.service.commands.lifecycle import ChangeState, CreateVersion, solve_version
    from lenience.service.domain.problems import Problem
    from lenience.service.domain.receipts import Sender, encoder
    from lenience.service.storage.policy_cache import PolicyCache
    from lenience.service.storage.writer import Writer

    name, sender = specification.name, Sender("policy file")
    with store.read() as connection:
        rows = connection.execute(
            select(schema.version.c.number, schema.version.c.state, schema.version.c.specification)
            .join(schema.policy, schema.policy.c.id == schema.version.c.policy_id)
            .where(schema.policy.c.name == name)
            .order_by(schema.version.c.number)
        ).all()
    text = encoder.encode(specification).decode()
    same = next((row for row in reversed(rows) if row.specification == text), None)
    if same is not None and same.number == rows[-1].number and (same.state == "active" or not activate):
        return f"Policy {name}: version {same.number} is {same.state} already."
    writer = Writer(store, PolicyCache())
    try:
        if same is None or same.number != rows[-1].number:
            writer.call(CreateVersion(sender, solve_version(specification)))
        number = len(rows) + (same is None or same.number != rows[-1].number)
        if not activate:
            return f"Policy {name}: version {number} is a draft. Somebody else must activate it (--four-eyes)."
        writer.call(ChangeState(sender, name, "active", None))
    except Problem as problem:
        raise InputError.because(problem.full_detail, "--policy", label="", value=name) from None
    finally:
        writer.close()
    return f"Policy {name}: version {number} is active."


def objective_fields(objective: Any) -> dict[str, Any]:
    """Return an objective as it is posted, without the fields that are not given."""
    return {key: value for key, value in msgspec.to_builtins(objective).items() if value is not None}


def read_specification(document: Any, path: str) -> PolicySpecification:
    """Return a specification, checked."""
    try:
        specification = msgspec.convert(document, PolicySpecification)
        specification.problems()
    except msgspec.ValidationError as error:
        raise InputError.because(
            f"is not a policy file: {error}", "file", label=path, value=path, code="invalid_file"
        ) from error
    return specification


def _name(path: str) -> str:
    """Return the name of a policy from that of its file.

    >>> _name("out/My loans.json")
    'My-loans'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).stem).strip("-._")[:64] or "policy"

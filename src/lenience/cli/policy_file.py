"""The policy file of segments: what lenience fit writes, and what the service and export-sql take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from lenience.cli.past import PastOptions
from lenience.core.errors import InputError
from lenience.history.past import propose_segments
from lenience.service.domain.specification import PolicySpecification


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
    read_specification(made, path)
    Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")


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

"""The policy file: what lenience fit writes, and what check, serve and export-sql take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from lenience.cli.past import PastOptions
from lenience.cli.progress import counting
from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.history.origin import fitted_origin
from lenience.history.specification import PolicySettings, make_specification, one_offer
from lenience.service.domain.policy_file import checked_document, decode_policy_file, encode_policy_file
from lenience.service.domain.specification import PolicySpecification
from lenience.service.storage import schema

if TYPE_CHECKING:
    from lenience.service.storage.store import Store


def write_specification(past: PastOptions, path: str, settings: PolicySettings, money: Money) -> None:
    """Write the policy of past decisions as the service takes it."""
    if past.segments is None or past.objective is None:
        raise InputError.because("needs --cost, or --gain and --loss", "--output", value=path, code="missing")
    objective = in_money(past.objective, money)
    shares = {cell.name: cell.share for cell in past.segments.cells}
    own = past.history.offers() if past.history.has_offers else {}
    origin = fitted_origin(past.history.origin, past.fitted.model, past.objective)
    made = make_specification(
        settings, objective, past.fitted.shrinkage, shares, past.groups, own, past.history.cells, origin
    )
    write_policy_file(made, path)


def in_money(objective: Any, money: Money) -> Any:
    """Return the objective with its one gain and loss as an offer, if the user gave them with a currency."""
    # With late outcomes one break-even is solved exactly and offers are not, so it stays one break-even.
    if objective.offers is not None or money.unit is None or not money.currency or objective.label_delay:
        return objective
    return objective.with_offers(
        one_offer(money.unit * (1 - objective.cost), money.unit * objective.cost, money.currency)
    )


def write_policy_file(made: dict[str, Any], path: str) -> None:
    """Check a specification and write it to a file."""
    checked_document(made, path)
    Path(path).write_bytes(encode_policy_file(made))


def read_policy_file(path: str) -> PolicySpecification:
    """Return the policy in a file, as the service takes it: of segments, or with features and all it has learnt."""
    return decode_policy_file(Path(path).read_bytes(), path)


def install(store: Store, specification: PolicySpecification, activate: bool) -> str:
    """Make the policy of a file the active version, unless it is already, and say what was done."""
    from lenience.service.commands.lifecycle import ChangeState, CreateVersion, solve_version
    from lenience.service.commands.solve_progress import SolveProgress
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
            progress = SolveProgress()
            with counting(f"Solving {name}", progress):
                solved = solve_version(specification, progress)
            writer.call(CreateVersion(sender, solved))
        number = len(rows) + (same is None or same.number != rows[-1].number)
        if not activate:
            return f"Policy {name}: version {number} is a draft. Somebody else must activate it (--four-eyes)."
        writer.call(ChangeState(sender, name, "active", None))
    except Problem as problem:
        raise InputError.because(problem.full_detail, "--policy", label="", value=name) from None
    finally:
        writer.close()
    return f"Policy {name}: version {number} is active."

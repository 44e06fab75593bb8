"""The database from which every schedule starts: a few small policies of different kinds, made once by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from faults.event_loop import SimulatedLoop
from faults.machine import DATABASE, Machine
from lenience.service.commands.lifecycle import ChangeState, CreateVersion, SolvedVersion, solve_version
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.signed_note import SigningKey
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.service import Service

CAP, OVERALL_CAP, LOSS_CAP = 3, 5, 9_000
KEY = SigningKey("faults", bytes(range(32)))
SIMPLE = {"type": "discounted", "cost": 0.6, "discount": 0.9}
CARDS: dict[str, Any] = {
    "name": "cards",
    "objective": SIMPLE,
    "prior": {"n": 2, "s": 1.4},
    "segments": ["young", "old"],
    "constraints": {"exposure_cap": CAP, "exploration_floor": 0.1, "overall_exposure_cap": OVERALL_CAP},
    "capacity": {"acceptances": 40},
    "waiting_list": True,
    "expire_after_days": 1,
}
SHOPS: dict[str, Any] = {
    "name": "shops",
    "objective": SIMPLE,
    "segments": ["small", "large"],
    "model": {"type": "shared"},
    "constraints": {"exposure_cap": CAP},
    "referral": {"near_minimum": 0.02, "daily_capacity": 6, "expire_after_days": 1},
}
APPLICANTS: dict[str, Any] = {
    "name": "applicants",
    "objective": {**SIMPLE, "cost": 0.5},
    "model": {
        "type": "logistic",
        "columns": [
            {"name": "income", "minimum": 0, "maximum": 100},
            {"name": "region", "type": "category", "values": ["north", "south"]},
        ],
    },
    "constraints": {"exposure_cap": CAP},
}
LOANS: dict[str, Any] = {
    "name": "loans",
    "objective": {
        "type": "discounted",
        "offers": {"amount": [500, 5000], "cost": [0.6, 0.6], "currency": "$"},
        "discount": 0.9,
    },
    "prior": {"n": 2, "s": 1.4},
    "segments": ["car", "home"],
    "constraints": {"exposure_cap": CAP, "overall_exposure_cap_amount": LOSS_CAP},
    "waiting_list": True,
    "referral": {"amount_above": 4_999},
    "timing": {"ages": [0, 1, 2, 3], "success_open": [1, 1, 0.5, 0], "failure_open": [1, 0.5, 0.2, 0]},
}
POLICIES = (CARDS, SHOPS, APPLICANTS, LOANS)
OTHER_COST = 0.55


@cache
def solved(policy: str, cost: float | None = None) -> SolvedVersion:
    """Return a solved version of a policy, at its own break-even (discount, with offers) or another one."""
    posted = next(each for each in POLICIES if each["name"] == policy)
    if cost is not None:
        changed = {"discount": cost} if "offers" in posted["objective"] else {"cost": cost}
        posted = {**posted, "objective": {**posted["objective"], **changed}}
    return solve_version(msgspec.convert(posted, PolicySpecification))


def first_image(machine: Machine, policies: Sequence[str]) -> dict[str, bytes]:
    """Make the database with some of the policies, and return its files."""
    key = {f"{DATABASE}.log-key": f"{KEY.text}\n".encode(), f"{DATABASE}.secret": _secret()}
    machine.reset("image", key)
    loop = SimulatedLoop(machine.scheduler)

    async def create() -> None:
        service = Service(machine.database)
        await service.start()
        for name in policies:
            await service.perform(CreateVersion(make_sender("alice", None, "", ""), solved(name)))
            await service.perform(ChangeState(make_sender("bob", None, "", ""), name, "active", None))
        await service.ask(service.seal_log)
        await service.stop()

    loop.run_until_complete(create())
    loop.close()
    return {path.name: path.read_bytes() for path in machine.disk.folder.iterdir() if not path.name.endswith(".lock")}


def _secret() -> bytes:
    from lenience.service.storage.session_secrets import StoredSecret, _encoded

    return _encoded([StoredSecret("0" * 64)])

"""Write the log that ``test_old_logs.py`` opens: one policy of each objective, with every kind of event.

``first.db`` was written by the first release of the service, with this script run in a checkout of it:

    PYTHONPATH=tests python write_log.py first.db

``second.db`` was written before the log could hold imported decisions, open loans by age and interim statuses. It has a
policy with offers, too.

``third.db`` was written before corrections of labels with features were learnt again: its corrections have multiplied
the likelihood. It has a policy that decides by features, and nothing else.

    PYTHONPATH=tests python write_log.py third.db features

Run it again in a later checkout (with another file name) before the stored forms change.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

from engines import Engine
from lenience.service.domain.offer_requests import OfferRequest

OBJECTIVES: dict[str, dict[str, Any]] = {
    "factor": {"type": "discounted", "cost": 0.8, "discount": 0.99},
    "rates": {"type": "discounted", "cost": 0.8, "arrivals": 20, "discount_rate": 0.1},
    "horizon": {"type": "horizon", "cost": 0.7, "horizon": 120},
    "late": {"type": "delayed", "cost": 0.8, "arrivals": 20, "discount_rate": 0.2, "label_delay": 0.5},
    "offers": {
        "type": "discounted",
        "discount": 0.95,
        "offers": {"amount": [100.0, 1000.0], "cost": [0.8, 0.8], "share": [0.5, 0.5], "currency": "$"},
    },
}
SEGMENTS = [{"name": "young", "share": 0.6}, {"name": "old", "share": 0.3, "cost": 0.6, "exposure_cap": 4}]
PLAIN_SEGMENTS = [{"name": "young", "share": 0.6}, {"name": "old", "share": 0.3, "exposure_cap": 4}]


def write_log(path: Path) -> None:
    """Write the database."""
    chance = Random(0)
    engine = Engine(str(path))
    for name, objective in OBJECTIVES.items():
        offers = "offers" in objective
        engine.create(name=name, objective=objective, segments=PLAIN_SEGMENTS if offers else SEGMENTS)
        more: dict[str, Any] = {"offer": OfferRequest(amount=100, cost=0.8)} if offers else {}
        for i in range(14):
            segment = "young" if i % 3 else "old"
            decision = engine.decide(segment, policy=name, reference=f"{name} {i}", **more)
            if decision["decision"] == "accept" and i % 5 != 4:
                engine.outcome(decision["id"], "success" if chance.random() < 0.8 else "failure")
            if decision["decision"] == "accept" and i == 3:
                engine.correct(decision["id"], "failure")
            if decision["decision"] == "accept" and i == 4:
                engine.give_up(decision["id"])
            if i == 6:
                engine.erase(decision["id"])
        last = engine.decide("young", policy=name, **more)
        engine.override(last["id"], "reject" if last["decision"] == "accept" else "accept")
    assert engine.audit().findings == []
    engine.close()


def write_features(path: Path) -> None:
    """Write the database of a policy that decides by features, with corrections and erasures."""
    chance = Random(1)
    engine = Engine(str(path))
    columns = [{"name": "income", "minimum": 0, "maximum": 100}]
    engine.create(
        name="applicants",
        objective={"type": "discounted", "cost": 0.5, "discount": 0.99},
        segments=[],
        model={"type": "logistic", "columns": columns},
    )
    known: list[tuple[str, str]] = []
    for i in range(30):
        features = {"income": round(100 * chance.random(), 1)}
        decision = engine.decide(None, policy="applicants", reference=f"applicant {i}", features=features)
        if decision["decision"] == "accept" and i % 6 != 5:
            outcome = "success" if chance.random() < 0.9 else "failure"
            engine.outcome(decision["id"], outcome)
            known.append((decision["id"], outcome))
        if i in (9, 15, 22):
            wrong, outcome = known[len(known) // 2]
            engine.correct(wrong, "failure" if outcome == "success" else "success")
        if i in (12, 20):
            engine.erase(known[len(known) // 3][0])
    assert engine.audit().findings == []
    engine.close()


if __name__ == "__main__":
    (write_features if "features" in sys.argv[2:] else write_log)(Path(sys.argv[1]))

"""Personal data is erased by decision, by person or by age, and the log stays whole: on both databases."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest

from engines import Engine
from lenience.service.commands.erase import Erase
from lenience.service.commands.outcomes import Change, OverrideRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.queries.personal_data import decisions_with_personal_data
from lenience.service.queries.reading import Filters
from lenience.service.storage.ledger import Ledger


def test_personal_data_can_be_erased_and_the_log_stays_whole(engine: Engine) -> None:
    engine.create()
    made = engine.decide(reference="Ada Lovelace, 10 December 1815")
    kept = engine.decide(reference="Charles Babbage")
    engine.override(made["id"], "reject", reason="a note about Ada Lovelace")
    assert engine.queries.page(Filters(reference="Ada Lovelace, 10 December 1815"), None, 10).decisions
    engine.erase(made["id"])
    view = engine.queries.decision(made["id"])
    assert (view.reference, view.erased) == (None, True)
    assert [entry.reason for entry in view.history if entry.kind == "override"] == [None]
    assert engine.queries.decision(kept["id"]).reference == "Charles Babbage"
    assert not engine.queries.page(Filters(reference="Ada Lovelace, 10 December 1815"), None, 10).decisions
    from sqlalchemy import text

    with engine.store.read() as connection:
        for table in ("event", "decision", "personal", "idempotency"):
            for row in connection.execute(text(f"SELECT * FROM {table}")):
                assert "Ada" not in repr(row)


def test_what_is_erased_already_is_not_erased_again(engine: Engine) -> None:
    engine.create()
    made = engine.decide(reference="Ada Lovelace")["id"]
    assert engine.erase(made)["recorded"] is True
    assert engine.erase(made)["recorded"] is False
    assert [entry.kind for entry in engine.queries.decision(made).history] == ["decision", "erasure"]
    engine.override(made, "reject", "Ada is known to the branch")  # the reason is personal data again
    assert engine.erase(made)["recorded"] is True
    both = [Change(make_sender("tester", None, "", ""), made, "erasure") for _ in range(2)]
    fresh = engine.decide(reference="Grace Hopper")["id"]
    both += [Change(make_sender("tester", None, "", ""), fresh, "erasure") for _ in range(2)]
    asked = OverrideRequest("reject", "head of credit", "given after the erasure")
    with engine.store.write() as connection:  # one transaction: what it has erased is not in the database yet
        ledger = Ledger(engine.store, connection, engine.registry)
        ledger.find([made, fresh])
        ledger.lock(ledger.chain_of.values())
        ledger.read_decisions([made, fresh])
        told = [msgspec.json.decode(command.run(ledger).body)["recorded"] for command in both]
        Change(make_sender("tester", None, "", ""), fresh, "override", override=asked).run(ledger)
        ledger.flush()
    assert told == [False, False, True, False]
    assert engine.queries.decision(fresh).history[-1].reason == "given after the erasure"


def test_personal_data_is_erased_by_reference_and_by_age(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create()
    monkeypatch.setattr("lenience.service.queries.personal_data.SEARCH_SIZE", 3)
    monkeypatch.setattr("lenience.service.queries.personal_data.DAY", 0)
    monkeypatch.setattr("lenience.service.domain.limits.BATCH", 2)
    given = ["Ada", None, "Ada", "Bob", "Ada", None, "Eve"]
    made = [engine.decide("young", reference=reference)["id"] for reference in given]
    engine.override(made[1], "reject", "a note about Joe")  # personal data without a reference
    young = engine.queries.decision(made[6]).history[0].at
    until = int(datetime.fromisoformat(young).timestamp() * 1e6)

    def erased(filters: Filters, key: str | None = None) -> list[tuple[int, int]]:
        """What each request found and erased, up to the last."""
        told: list[tuple[int, int]] = []
        after = None
        while True:
            found, after = decisions_with_personal_data(engine.queries, filters, after)
            who = make_sender("tester", key and f"{key} {len(told)}", "", "")
            answer = engine.call(Erase(who, found, after))
            told.append((answer["found"], answer["erased"]))
            assert answer["next"] == after
            if after is None:
                return told

    assert erased(Filters(reference="Ada"), "one") == [(2, 2), (1, 1)]
    assert erased(Filters(reference="Ada")) == [(0, 0)]
    found, _ = decisions_with_personal_data(engine.queries, Filters(until=until), None)
    assert found == [made[1]]  # of the three that were looked at
    assert erased(Filters(until=until), "two") == [(1, 1), (1, 1), (0, 0)]
    assert erased(Filters(until=until), "three") == [(0, 0), (0, 0), (0, 0)]
    again = Erase(
        make_sender("tester", "one 0", "", ""), [made[6]], None
    )  # a retry that finds others: the first answer
    assert engine.call(again)["erased"] == 2
    views = [engine.queries.decision(one) for one in made]
    assert [view.reference for view in views] == [None] * 6 + ["Eve"]
    assert [view.history[-1].kind == "erasure" for view in views] == [True] * 5 + [False] * 2
    assert engine.queries.decision(made[1]).history[1].reason is None

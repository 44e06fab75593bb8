"""The names of people who sign in: shown instead of issuer and subject, and deleted some time later."""

from __future__ import annotations

from sqlalchemy import select, update

from engines import Engine
from lenience.service.commands.keys import create_key
from lenience.service.domain.clock import now
from lenience.service.storage import schema
from lenience.service.storage.people import KEEP_NAMES, actor_names, forget_people, remember_person

ANNA, BELA = "https://login.example.org#1001", "https://login.example.org#1002"


def test_names_are_shown_updated_and_forgotten(engine: Engine) -> None:
    key, _ = create_key(engine.store, "batch program", ("decide",), None, "test")
    for actor, label in ((ANNA, "Anna"), (BELA, "Bela Cruz"), (ANNA, "Anna Berg")):  # the last sign-in counts
        remember_person(engine.store, actor, label)
    with engine.store.read() as connection:
        names = actor_names(connection, [ANNA, BELA, key, "local", ANNA])
    assert names == {ANNA: "Anna Berg", BELA: "Bela Cruz", key: f"batch program (key {key})", "local": "local"}
    with engine.store.write() as connection:
        people = schema.person
        connection.execute(update(people).where(people.c.actor == ANNA).values(seen_at=now() - KEEP_NAMES - 1))
    forget_people(engine.store)
    with engine.store.read() as connection:
        assert list(connection.scalars(select(schema.person.c.actor))) == [BELA]
        assert actor_names(connection, [ANNA]) == {ANNA: ANNA}

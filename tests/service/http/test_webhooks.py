"""Alerts that begin and end once, and webhooks that deliver them to a real receiver."""

from __future__ import annotations

import base64
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select, text, update

from apart import awaited
from engines import Engine
from lenience.core.errors import InputError
from lenience.dashboard.app import create_app
from lenience.service.domain import alerts, webhook_messages
from lenience.service.domain.clock import DAY, GuardedClock, now
from lenience.service.domain.webhook_addresses import check_address
from lenience.service.http import service as running
from lenience.service.http.metrics import Metrics
from lenience.service.http.service import Service
from lenience.service.queries.audit import audit
from lenience.service.storage import alert_states, schema, webhook_outbox
from serving import sqlite_file

Json = dict[str, Any]


class Receiver(ThreadingHTTPServer):
    """A receiver of webhooks that checks signatures as the standard says, and rejects the first requests."""

    def __init__(self, failures: int = 0) -> None:
        self.secret, self.failures = "", failures
        self.attempts: list[str] = []
        self.received: list[Json] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?team=risk"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        identity, timestamp = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        signed = f"{identity}.{timestamp}.".encode() + body
        key = base64.b64decode(self.server.secret.removeprefix("whsec_"))
        expected = "v1," + base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
        genuine = hmac.compare_digest(self.headers["webhook-signature"], expected)
        fresh = abs(int(timestamp) - now() // 1_000_000) < webhook_messages.TOLERANCE
        self.server.attempts.append(identity)
        if self.server.failures > 0:
            self.server.failures -= 1
            status = 503
        else:
            status = 204 if genuine and fresh and self.path == "/hook?team=risk" else 400
        if status == 204:
            self.server.received.append({**json.loads(body), "id": identity})
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiving(failures: int = 0) -> Iterator[Receiver]:
    with Receiver(failures) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()


@contextmanager
def service_on(database: str) -> Iterator[Service]:
    service = Service(database)
    try:
        yield service
    finally:
        service.writer.close()
        service.store.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks without a pause, attempts without a wait, and receivers on this machine."""
    monkeypatch.setattr(running, "ALERTS_EVERY", 0.0)
    monkeypatch.setattr(webhook_messages, "BACKOFF", (0.0,) * 5)
    monkeypatch.setenv("LENIENCE_WEBHOOK_ALLOW", "127.0.0.1")


def ask(app: Any, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
    async def send() -> tuple[int, Json]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            answer = await client.request(method, path, json=body)
            return answer.status_code, answer.json()

    return awaited(send())


@pytest.mark.usefixtures("quick")
def test_an_alert_reaches_a_receiver_that_fails_twice_and_after_a_restart(tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    engine = Engine(database)
    engine.create(constraints={"exposure_cap": 2}, segments=["young"])
    made = [engine.decide()["id"] for _ in range(2)]
    engine.close()
    with receiving(failures=2) as receiver:
        app: Any = create_app(database)
        service: Service = app.app.state.service
        status, created = ask(app, "POST", "/v1/webhooks", {"url": receiver.url, "kinds": ["limit_reached"]})
        assert (status, created["kinds"]) == (201, ["limit_reached"])
        receiver.secret = created["secret"]
        assert ask(app, "POST", "/v1/webhooks", {"url": receiver.url})[1]["code"] == "duplicate"
        for _ in range(3):
            service.check_alerts()  # it begins once, however often it is looked at
        ((alert,),) = [ask(app, "GET", "/v1/alerts")[1]["alerts"]]
        assert (alert["kind"], alert["policy"], alert["subject"]) == ("limit_reached", "cards", "young")
        service.send_messages()
        (hook,) = ask(app, "GET", "/v1/webhooks")[1]["webhooks"]
        assert (hook["messages"][0]["attempts"], "503" in hook["messages"][0]["error"]) == (1, True)
        assert "secret" not in hook
        awaited(service.stop())

        with service_on(database) as again:
            again.send_messages()
            again.send_messages()
            assert len(receiver.attempts) == 3
            assert len(set(receiver.attempts)) == 1  # the same id, so that a repetition can be ignored
            assert [one["type"] for one in receiver.received] == ["limit_reached.began"]
            assert receiver.received[0]["data"]["subject"] == "young"
            again.send_messages()
            assert len(receiver.attempts) == 3
            assert audit(again.store).findings == []
        engine = Engine(database)
        engine.outcome(made[0], "success")
        engine.close()
        with service_on(database) as again:
            again.check_alerts()  # one of two: in the gap
            again.send_messages()
            assert len(receiver.received) == 1
        engine = Engine(database)
        engine.outcome(made[1], "success")
        engine.close()
        with service_on(database) as again:
            again.check_alerts()
            again.check_alerts()
            again.send_messages()
            assert [one["type"] for one in receiver.received] == ["limit_reached.began", "limit_reached.ended"]
            with again.store.write() as connection:
                connection.execute(update(schema.webhook).values(kinds="drift"))
            assert [one.where for one in audit(again.store).findings] == [f"webhook {created['id']}"]
    # The secret is in no table, and the log has no address.
    with service_on(database) as again, again.store.read() as connection:
        dump = "\n".join(connection.connection.driver_connection.iterdump())  # type: ignore[union-attr]
        assert created["secret"] not in dump
        assert (tmp_path / (Path(database).name + ".webhook-secret")).read_text() not in dump
        logged = "".join(connection.execute(select(schema.event.c.body)).scalars())
        assert "127.0.0.1" not in logged


@pytest.mark.usefixtures("quick")
def test_a_message_is_given_up_in_the_end_and_a_webhook_can_be_removed(tmp_path: Path) -> None:
    database = sqlite_file(tmp_path)
    app: Any = create_app(database)
    service: Service = app.app.state.service
    with receiving(failures=100) as receiver:
        _, created = ask(app, "POST", "/v1/webhooks", {"url": receiver.url})
        assert ask(app, "POST", f"/v1/webhooks/{created['id']}/test")[0] == 202
        for _ in range(8):
            service.send_messages()
        (hook,) = ask(app, "GET", "/v1/webhooks")[1]["webhooks"]
        (message,) = hook["messages"]
        assert (message["attempts"], message["given_up"], message["type"]) == (6, True, "test")
        assert len(receiver.attempts) == 6
        ask(app, "POST", f"/v1/webhooks/{created['id']}/test")
        assert ask(app, "DELETE", f"/v1/webhooks/{created['id']}")[0] == 200
        service.send_messages()
        assert len(receiver.attempts) == 6
        assert ask(app, "DELETE", f"/v1/webhooks/{created['id']}")[1]["code"] == "unknown_webhook"
        assert ask(app, "POST", f"/v1/webhooks/{created['id']}/test")[1]["code"] == "unknown_webhook"
    assert audit(service.store).findings == []
    alert_states.forget_delivered(service.store, now() + 60 * DAY)
    awaited(service.stop())


def test_attempts_are_spread_over_three_days() -> None:
    waits = [webhook_messages.wait_before(attempt, "msg_1") or 0.0 for attempt in range(1, 11)]
    assert 2.4 * 86_400 < sum(waits) < 3.8 * 86_400
    assert all(later > earlier for earlier, later in pairwise(waits))
    around = [webhook_messages.wait_before(3, f"msg_{i}") or 0.0 for i in range(200)]
    assert (min(around), max(around)) == pytest.approx((240, 360), abs=5)
    assert webhook_messages.wait_before(11, "msg_1") is None


def test_messages_wait_in_a_bounded_outbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_states, "MOST_WAITING", 3)
    with service_on(sqlite_file(tmp_path)) as service:
        with service.store.write() as connection:
            for i in range(5):
                alert_states.enqueue_message(connection, "0" * 12, str(i), i)
        with service.store.read() as connection:
            bodies = connection.execute(select(schema.webhook_delivery.c.body).order_by(text("created_at"))).scalars()
            assert list(bodies) == ["2", "3", "4"]


def test_only_one_process_checks_in_an_interval(database: str) -> None:
    engine = Engine(database)
    try:
        found = [alert_states.begin_check(engine.store, at, 60) for at in (1_000, 1_030, 1_060, 1_061)]
        assert found == [True, False, True, False]
    finally:
        engine.close()


def test_conditions_are_gauges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ALERTS_EVERY", 0.0)
    database = sqlite_file(tmp_path)
    engine = Engine(database)
    engine.create(expire_after_days=30.0, prior={"n": 40, "s": 38}, segments=[
        {"name": "young", "share": 0.8}, {"name": "old", "share": 0.1},
        {"name": "shut", "share": 0.1, "prior": {"n": 90, "s": 9}},
    ])  # fmt: skip
    made = engine.batch(["old"] * 60)
    for one in made[:50]:
        engine.outcome(one["id"], "failure")
    engine.close()
    with service_on(database) as service:
        with service.store.write() as connection:
            connection.execute(update(schema.decision).values(at=now() - 25 * DAY))
            connection.execute(schema.audited.insert(), {"id": 1, "found": '{"at":"","report":{"findings":[{}]}}'})
        monkeypatch.setattr(GuardedClock, "refusing", property(lambda _: True))
        service.check_alerts()
        metrics = Metrics()
        metrics.show_readings(service.readings)
        shown = metrics.text(service.writer).decode()
        for line in (
            'lenience_segment_stopped{policy="cards",segment="shut"} 1.0',
            'lenience_segment_stopped{policy="cards",segment="young"} 0.0',
            'lenience_outcomes_overdue{policy="cards"} 10.0',
            'lenience_limit_reached{limit="young",policy="cards"} 0.0',
            "lenience_audit_findings 1.0",
            "lenience_clock_refused 1.0",
        ):
            assert line in shown.splitlines()
        drift = next(line for line in shown.splitlines() if line.startswith('lenience_drift{of="segments"'))
        assert float(drift.split()[-1]) > 1.0
        with service.store.read() as connection:
            kinds = {(alert.kind, alert.subject) for alert in alert_states.read_alerts(connection)}
        assert kinds == {
            ("segment_stopped", "shut"), ("segment_stopped", "old"), ("outcomes_overdue", ""), ("drift", "segments"),
            ("calibration", ""), ("audit_failed", ""), ("clock_refused", ""),
        }  # fmt: skip
        metrics.show_readings([])
        assert 'lenience_outcomes_overdue{policy="cards"} 0.0' in metrics.text(service.writer).decode()


@pytest.mark.parametrize(
    ("url", "addresses", "allowed", "problem"),
    [
        ("https://example.org/x", ["93.184.215.14"], [], None),
        ("http://example.org/x", ["93.184.215.14"], [], "address_unusable"),
        ("https://example.org/x", ["93.184.215.14", "10.0.0.1"], [], "address_unusable"),  # all addresses count
        ("https://169.254.169.254/latest", [], [], "address_unusable"),
        ("https://[::1]/", [], [], "address_unusable"),
        ("https://[::ffff:127.0.0.1]/", [], [], "address_unusable"),
        ("http://127.0.0.1:8000/", [], ["127.0.0.0/8"], None),
        ("http://inside.corp/", ["10.1.2.3"], [".corp"], None),
        ("http://corp.evil.org/", ["10.1.2.3"], [".corp"], "address_unusable"),
        ("https://example.org/x", ["93.184.215.14"], ["10.0.0.0/8"], "address_unusable"),
        ("ftp://example.org/", [], [], "invalid_value"),
        ("https://user:secret@example.org/", [], [], "invalid_value"),
        ("https://exa mple.org/", [], [], "invalid_value"),
        ("https://example.org/\x7f", [], [], "invalid_value"),
        ("https://nowhere.invalid/", [], [], "invalid_value"),
    ],
)
def test_addresses_are_guarded(url: str, addresses: list[str], allowed: list[str], problem: str | None) -> None:
    if problem is None:
        assert check_address(url, allowed, lambda host, port: addresses).path.startswith("/")
        return
    with pytest.raises(InputError) as error:
        check_address(url, allowed, lambda host, port: addresses)
    assert (error.value.code, error.value.field) == (problem, "url")
    assert "secret" not in str(error.value)


def test_a_private_address_is_a_bad_request(tmp_path: Path) -> None:
    app: Any = create_app(sqlite_file(tmp_path))
    status, problem = ask(app, "POST", "/v1/webhooks", {"url": "https://127.0.0.1/hook"})
    assert (status, problem["field"], problem["code"]) == (400, "url", "address_unusable")
    status, problem = ask(app, "POST", "/v1/webhooks", {"url": "https://example.org", "kinds": ["weather"]})
    assert (status, problem["field"], "outcomes_overdue" in problem["allowed"]) == (400, "kinds[0]", True)
    awaited(app.app.state.service.stop())


def test_when_messages_are_due_and_when_they_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, hooks, errors = schema.webhook_delivery, schema.webhook, ["refused", "refused"]
    sent: list[str] = []

    def send(message: webhook_outbox.Message, *_: object) -> str | None:
        sent.append(message.body)
        return errors.pop() if errors and message.body == "first" else None

    monkeypatch.setattr(webhook_outbox, "_send", send)
    with service_on(sqlite_file(tmp_path)) as service:

        def rows() -> list[Any]:
            with service.store.read() as connection:
                return list(connection.execute(select(table).order_by(table.c.body)).all())

        with service.store.write() as connection:
            for hook in ("a" * 12, "b" * 12):
                values = {"id": hook, "url": f"https://{hook}.org/", "kinds": "drift", "created_at": 0}
                connection.execute(insert(hooks).values({name: values[name] for name in values if name in hooks.c}))
            alert_states.enqueue_message(connection, "a" * 12, "first", 1_000)
            alert_states.enqueue_message(connection, "b" * 12, "second", 2_000)
        assert [(row.attempts, row.next_at) for row in rows()] == [(0, 1_000), (0, 2_000)]
        assert webhook_outbox.send_due(service.store, lambda: 999) == 0
        assert webhook_outbox.send_due(service.store, lambda: 1_000) == 1
        first, second = rows()
        assert (first.attempts, first.error, first.delivered_at, second.attempts) == (1, "refused", None, 0)
        wait = webhook_messages.wait_before(1, first.id)
        assert wait is not None
        assert first.next_at == 1_000 + int(wait * 1_000_000)
        assert [one.body for one in webhook_outbox._claim(service.store, 3_000)] == ["second"]
        assert webhook_outbox._claim(service.store, 3_000 + 59_999_999) != []  # the first one, which is due again
        assert [one.body for one in webhook_outbox._claim(service.store, 3_000 + 60_000_000)] == ["second"]
        late = 10 * 60_000_000
        assert webhook_outbox.send_due(service.store, lambda: late) == 2
        assert webhook_outbox.send_due(service.store, lambda: 2 * late) == 1
        assert [row.attempts for row in rows()] == [3, 1]
        assert [row.error for row in rows()] == [None, None]
        assert [row.delivered_at for row in rows()] == [2 * late, late]
        assert (
            sorted(sent) == ["first", "first", "first", "second"]
            or sorted(sent) == ["first", "second"] + ["second"] * 2
        )
        alert_states.forget_delivered(service.store, 1_000 + 30 * DAY)
        assert len(rows()) == 2
        alert_states.forget_delivered(service.store, 1_001 + 30 * DAY)
        assert [row.body for row in rows()] == ["second"]


def test_readings_change_their_own_alerts_and_reach_the_webhooks_of_their_kind(tmp_path: Path) -> None:
    def reading(kind: Any, policy: str, subject: str, level: Any = "on") -> alerts.Reading:
        return alerts.Reading(kind, policy, subject, level, 1.0, "So it is.")

    table, hooks = schema.webhook_delivery, schema.webhook
    with service_on(sqlite_file(tmp_path)) as service:
        with service.store.write() as connection:
            values = {"id": "a" * 12, "url": "https://a.org/", "kinds": "drift", "created_at": 0}
            connection.execute(insert(hooks).values({name: values[name] for name in values if name in hooks.c}))
            assert alert_states.read_readings(connection) == []
        assert alert_states.begin_check(service.store, 0, 60)
        given = [reading("drift", "cards", "a"), reading("drift", "loans", "a"), reading("calibration", "cards", "a")]
        given.append(reading("drift", "cards", "b"))
        assert len(alert_states.apply_readings(service.store, given, 7)) == 4
        off = [reading("drift", "cards", "a", "off"), *given[1:]]
        (ended,) = alert_states.apply_readings(service.store, off, 9)
        assert (ended.key, ended.began) == (given[0].key, False)
        with service.store.read() as connection:
            left = {(one.kind, one.policy, one.subject) for one in alert_states.read_alerts(connection)}
            assert left == {("drift", "loans", "a"), ("calibration", "cards", "a"), ("drift", "cards", "b")}
            assert {
                (one.policy, one.level) for one in alert_states.read_readings(connection) if one.subject == "b"
            } == {("cards", "on")}
            bodies = [json.loads(body) for body in connection.execute(select(table.c.body)).scalars()]
        assert sorted(one["type"] for one in bodies) == ["drift.began"] * 3 + ["drift.ended"]
        assert alert_states.apply_readings(service.store, off, 10) == []


def test_each_webhook_has_an_outbox_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_states, "MOST_WAITING", 2)
    table = schema.webhook_delivery
    with service_on(sqlite_file(tmp_path)) as service, service.store.write() as connection:
        for i, hook in enumerate(("a", "a", "b", "a")):
            alert_states.enqueue_message(connection, hook * 12, str(i), i)
        assert sorted(connection.execute(select(table.c.body)).scalars()) == ["1", "2", "3"]
        connection.execute(update(table).values(next_at=None))  # delivered ones do not count
        alert_states.enqueue_message(connection, "a" * 12, "4", 4)
        assert len(connection.execute(select(table.c.body)).all()) == 4

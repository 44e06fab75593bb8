"""Proofs over HTTP, and the commands that check them: verify, witness, audit with a checkpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from sqlalchemy import delete, text

from lenience import Client, ServiceError
from lenience.service.storage import schema
from lenience.service.storage.store import Store
from serving import SPEC, Served, serving, sqlite_file

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def key_file(run: Run, served: Served, tmp_path: Path) -> Path:
    """The public key of the log; on PostgreSQL there is none."""
    code, out, _ = run("keys", "log-key", "--database", served.database)
    if code:
        pytest.skip("this log has no key")
    path = tmp_path / "log.key"
    path.write_text(out)
    return path


def test_a_decision_is_verified_offline(client: Client, key_file: Path, run: Run, tmp_path: Path) -> None:
    decision = client.decide("cards", "old", reference="application 17")
    proof = tmp_path / "decision.json"
    proof.write_text(json.dumps(client.proof(decision["id"])))
    code, out, _ = run("verify", str(proof), "--log-key", str(key_file), "--json")
    shown = json.loads(out)
    assert (code, shown["valid"], shown["decision"], shown["choice"]) == (0, True, decision["id"], decision["decision"])
    assert shown["reference"] == "application 17"
    code, out, _ = run("verify", str(proof), "--log-key", key_file.read_text().strip())  # the key itself
    assert (code, decision["id"] in out) == (0, True)

    changed = proof.read_text().replace('\\"version\\":1', '\\"version\\":2')
    assert changed != proof.read_text()
    (tmp_path / "changed.json").write_text(changed)
    code, out, _ = run("verify", str(tmp_path / "changed.json"), "--log-key", str(key_file), "--json")
    assert (code, json.loads(out)["valid"]) == (1, False)
    for wrong in (("verify", str(key_file), "--log-key", str(key_file)), ("verify", str(proof), "--log-key", "a+b+c")):
        code, _, err = run(*wrong)
        assert (code, err.count("\n")) == (2, 1)


def test_a_witness_sees_a_log_that_only_grows(
    served: Served, client: Client, key_file: Path, run: Run, tmp_path: Path
) -> None:
    own = tmp_path / "my.key"
    own.write_text(run("keys", "log-key", "--new")[1])
    state, received = tmp_path / "witnessed.txt", []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        words = ("witness", "--url", served.url, "--log-key", str(key_file), "--state", str(state))
        post = ("--sign-with", str(own), "--post", f"http://127.0.0.1:{server.server_port}/")
        client.proof(client.decide("cards", "old")["id"])
        assert run(*words, *post)[0] == 0
        client.proof(client.decide("cards", "old")["id"])
        code, out, _ = run(*words, *post, "--json")
        server.shutdown()
        thread.join()
    assert (code, json.loads(out)["valid"]) == (0, True)
    assert received[-1] == state.read_text() == json.loads(out)["note"]
    assert state.read_text().count("\n— ") == 2  # the log's signature and the witness's
    code, out, _ = run("audit", "--database", served.database, "--checkpoint", str(state), "--log-key", str(key_file))
    assert code == 0, out
    assert run("audit", "--database", served.database, "--checkpoint", str(state))[0] == 2
    assert run("audit", "--database", served.database, "--checkpoint", str(own), "--log-key", str(key_file))[0] == 2


def test_a_log_that_was_replaced_is_not_valid_for_the_witness(run: Run, tmp_path: Path) -> None:
    database, state, key = sqlite_file(tmp_path), tmp_path / "state.txt", tmp_path / "log.key"
    for again in (False, True):
        with serving(database) as made, made.client() as client:
            if not again:
                client.create_policy(SPEC)
                client.activate("cards")
            client.proof(client.decide("cards", "old")["id"])
            key.write_text(run("keys", "log-key", "--database", database)[1])
            words = ("witness", "--url", made.url, "--log-key", str(key), "--state", str(state), "--json")
            code, out, _ = run(*words)
        if again:
            assert (code, json.loads(out)["valid"]) == (1, False)
            return
        assert code == 0
        store = Store(database)
        with store.write() as connection:  # an event that was signed is changed, and the tree is made again
            connection.execute(text("UPDATE event SET hash = replace(hash, 'a', 'b') WHERE chain_id = 1"))
            connection.execute(text("UPDATE event SET hash = 'ff' WHERE seq = 1"))
            for table in (schema.log_run, schema.log_chain, schema.log_tile, schema.log_checkpoint):
                connection.execute(delete(table))
        store.close()


def test_proofs_have_clear_errors(served: Served, client: Client) -> None:
    with pytest.raises(ServiceError) as caught:
        client.proof("00000000-0000-7000-8000-000000000000")
    assert caught.value.status == 404
    with pytest.raises(ServiceError) as caught:
        client.consistency(5, 4)
    assert (caught.value.status, caught.value.code) == (400, "invalid_value")
    decision = client.decide("cards", "old")
    if served.database.startswith("postgresql"):
        with pytest.raises(ServiceError) as caught:
            client.checkpoint()
        assert (caught.value.status, caught.value.code) == (409, "no_checkpoint")
    else:
        with pytest.raises(ServiceError) as caught:
            client.proof(decision["id"], size=1)
        assert (caught.value.status, caught.value.code) == (409, "not_in_log")
        assert client.proof(decision["id"])["size"] == client.checkpoint()["size"]

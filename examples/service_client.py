"""A whole session with the decision service: start it, create a policy, decide, record outcomes, correct one, audit.

    python examples/service_client.py

It starts `lenience serve` on a free port in a temporary folder, and stops it at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import lenience as ln


@contextmanager
def service(database: Path) -> Iterator[str]:
    """Run the service, and yield its address."""
    command = [sys.executable, "-m", "lenience", "serve", "--port", "0", "--database", str(database), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def session(client: ln.Client) -> None:
    """Decide forty applicants, and record the outcomes of the accepted."""
    client.create_policy(
        {
            "name": "cards",
            "objective": {"type": "discounted", "cost": 0.8, "discount": 0.99},
            "prior": {"n": 5, "s": 4},
            "segments": ["score below 600", "score 600 and above"],
        }
    )
    client.activate("cards")
    rng = np.random.default_rng(3)
    accepted: list[str] = []
    for i in range(40):
        segment, truth = ("score 600 and above", 0.9) if i % 2 else ("score below 600", 0.6)
        monitored = {"sex": "f" if rng.random() < 0.5 else "m"}  # for the fairness page; the policy never sees it
        decision = client.decide("cards", segment=segment, reference=f"application {i}", monitored=monitored)
        if decision["decision"] == "accept":
            client.outcome(decision["id"], "success" if rng.random() < truth else "failure")
            accepted.append(decision["id"])
        if i >= 38:
            print(f"{segment}: {decision['reason']}")
    client.correct(accepted[0], "success")
    client.erase(accepted[0])
    for one in client.policy("cards")["segments"]:
        print(f"{one['name']}: belief {one['belief']}")
    print(f"{len(accepted)} of 40 accepted; {sum(1 for _ in client.decisions(policy='cards'))} decisions in the log")


def main() -> None:
    """Run the session, then audit its log."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "decisions.db"
        with service(database) as url, ln.Client(url) as client:
            session(client)
        audit = [sys.executable, "-m", "lenience", "audit", "--database", str(database), "--json"]
        report = json.loads(subprocess.run(audit, capture_output=True, text=True, check=True).stdout)
        print("The audit passed." if report["whole"] else report["findings"])


if __name__ == "__main__":
    main()

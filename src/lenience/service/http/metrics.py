"""Metrics for Prometheus: of this process, or of all processes of a service together.

Several processes of `lenience serve` keep theirs in files of one folder, so that whichever is asked tells the sum.
"""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

from lenience.service.writer import Writer
from lenience.settings import MULTIPROCESS

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """Counters and times, shown at /metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "lenience_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lenience_request_seconds", "Time to answer", ["route"], registry=self.registry, buckets=BUCKETS
        )
        self._decisions = Counter("lenience_decisions", "Decisions made", ["policy"], registry=self.registry)
        self._outcomes = Counter("lenience_outcomes", "Outcomes recorded", registry=self.registry)
        self._transactions = self._gauge("lenience_transactions", "Transactions written")
        self._commands = self._gauge("lenience_commands", "Commands written by them")
        self._waiting = self._gauge("lenience_waiting", "Commands in the queue")
        self._policies: dict[str, Counter] = {}
        self._kept: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def _gauge(self, name: str, words: str) -> Gauge:
        return Gauge(name, words, registry=self.registry, multiprocess_mode="livesum")

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (method, route, status)
        found = self._kept.get(key)
        if found is None:
            found = (self._requests.labels(method, route, str(status)), self._seconds.labels(route))
            if len(self._kept) < 1000:
                self._kept[key] = found
        found[0].inc()
        found[1].observe(seconds)

    def decided(self, policy: str, count: int) -> None:
        """Count decisions."""
        child = self._policies.get(policy)
        if child is None:
            child = self._policies[policy] = self._decisions.labels(policy)
        child.inc(count)

    def observed(self, count: int) -> None:
        """Count outcomes."""
        self._outcomes.inc(count)

    def text(self, writer: Writer) -> bytes:
        """All of them, as Prometheus reads them."""
        self._transactions.set(writer.batches)
        self._commands.set(writer.commands)
        self._waiting.set(writer.waiting)
        if MULTIPROCESS not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

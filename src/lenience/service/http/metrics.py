"""Metrics for Prometheus, of this process or of all processes of a service together.

Several processes of `lenience serve` keep their metrics in files of one folder, so that any of them can report the sum.
The number of waiting commands is a gauge, so each process updates it every second. The last value of a dead process is
removed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from lenience.core.settings import MULTIPROCESS
from lenience.service.domain.alerts import KINDS, Kind, Reading
from lenience.service.domain.receipts import CommandAnswer
from lenience.service.storage.writer import Writer

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
WATCH_EVERY = 1.0  # seconds
# The name and the labels of the gauge of each kind of alert. The number of subjects is bounded (alerts.py).
GAUGES: dict[Kind, tuple[str, tuple[str, ...]]] = {
    "limit_reached": ("lenience_limit_reached", ("policy", "limit")),
    "segment_stopped": ("lenience_segment_stopped", ("policy", "segment")),
    "outcomes_overdue": ("lenience_outcomes_overdue", ("policy",)),
    "drift": ("lenience_drift", ("policy", "of")),
    "calibration": ("lenience_calibration_off", ("policy",)),
    "audit_failed": ("lenience_audit_findings", ()),
    "clock_refused": ("lenience_clock_refused", ()),
}


class Metrics:
    """The counters and times shown at /metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "lenience_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "lenience_request_seconds", "Time to answer", ["route"], registry=self.registry, buckets=BUCKETS
        )
        self._decisions = Counter(
            "lenience_decisions", "Decisions made", ["policy", "decision"], registry=self.registry
        )
        self._outcomes = Counter("lenience_outcomes", "Outcomes recorded", registry=self.registry)
        self._transactions = Counter("lenience_transactions", "Transactions written", registry=self.registry)
        self._commands = Counter("lenience_commands", "Commands carried out by them", registry=self.registry)
        self._waiting = Gauge(
            "lenience_waiting", "Commands in the queue", registry=self.registry, multiprocess_mode="livesum"
        )
        self._gauges = {
            name: Gauge(name, KINDS[kind], labels, registry=self.registry, multiprocess_mode="livemax")
            for kind, (name, labels) in GAUGES.items()
        }
        self._alerts: dict[tuple[str, ...], float] = {}  # what the gauges show
        self._policies: dict[str, tuple[Counter, Counter, Counter]] = {}
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (method, route, status)
        series = self._series.get(key)
        if series is None:
            series = (self._requests.labels(method, route, str(status)), self._seconds.labels(route))
            if len(self._series) < 1000:
                self._series[key] = series
        series[0].inc()
        series[1].observe(seconds)

    def written(self, answers: Sequence[CommandAnswer]) -> None:
        """Count what a transaction wrote, without rejected or repeated commands."""
        if not answers:
            return
        self._transactions.inc()
        self._commands.inc(len(answers))
        outcomes = 0
        decided: dict[str, tuple[int, int, int]] = {}
        for answer in answers:
            counts = answer.made
            outcomes += counts.outcomes
            if counts.accepted or counts.rejected or counts.referred:
                before = decided.get(counts.policy, (0, 0, 0))
                new = (counts.accepted, counts.rejected, counts.referred)
                decided[counts.policy] = (before[0] + new[0], before[1] + new[1], before[2] + new[2])
        self._outcomes.inc(outcomes)
        for policy, numbers in decided.items():
            for counter, number in zip(self._of(policy), numbers, strict=True):
                counter.inc(number)

    def _of(self, policy: str) -> tuple[Counter, Counter, Counter]:
        """Return the counters of a policy's acceptances, rejections and referrals."""
        counters = self._policies.get(policy)
        if counters is None:
            labels = [self._decisions.labels(policy, word) for word in ("accept", "reject", "refer")]
            counters = (labels[0], labels[1], labels[2])
            self._policies[policy] = counters
        return counters

    async def watch(self, writer: Writer, readings: Callable[[], Sequence[Reading]] = tuple) -> None:
        """Update the gauges forever: the number of waiting commands, and the conditions of alerts."""
        shown: Sequence[Reading] = ()
        while True:
            self._waiting.set(writer.waiting)
            if (latest := readings()) is not shown:
                shown = latest
                self.show_readings(shown)
            await asyncio.sleep(WATCH_EVERY)

    def show_readings(self, readings: Sequence[Reading]) -> None:
        """Show the conditions of alerts. What no longer has a reading is 0, because a gauge of all processes stays."""
        values: dict[tuple[str, ...], float] = dict.fromkeys(self._alerts, 0.0)
        for reading in readings:
            name, labels = GAUGES[reading.kind]
            values[name, *(reading.policy, reading.subject)[: len(labels)]] = reading.value
        for key, value in values.items():
            self._alerts[key] = value
            name, labels = key[0], key[1:]
            gauge = self._gauges[name]
            (gauge.labels(*labels) if labels else gauge).set(value)

    def text(self, writer: Writer) -> bytes:
        """Return all metrics in the format of Prometheus."""
        self._waiting.set(writer.waiting)
        folder = os.environ.get(MULTIPROCESS)
        if folder is None:
            return generate_latest(self.registry)
        remove_dead_processes(Path(folder))
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def remove_dead_processes(folder: Path) -> None:
    """Remove the gauges of processes that no longer run. Their counters stay."""
    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process, str(folder))  # type: ignore[no-untyped-call]
        except PermissionError:
            continue  # the process runs under another user


CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

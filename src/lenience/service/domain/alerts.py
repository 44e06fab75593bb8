"""Alerts: conditions that begin and end, each reported once at either time.

A reading says for one subject whether a condition holds. Between the level at which an alert begins and the one at
which it ends there is a gap, so that a number that moves around a limit does not report it again and again: a reading
in the gap changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from lenience.core.formatting import counted

Kind: TypeAlias = Literal[
    "limit_reached",
    "segment_stopped",
    "outcomes_overdue",
    "drift",
    "calibration",
    "audit_failed",
    "clock_refused",
]
KINDS: dict[Kind, str] = {
    "limit_reached": "an exposure limit, a cap or the capacity is reached",
    "segment_stopped": "a segment is no longer accepted",
    "outcomes_overdue": "outcomes have been pending for two thirds of the time until they expire",
    "drift": "applicants have changed",
    "calibration": "outcomes are not as expected",
    "audit_failed": "the last audit started from the dashboard found something, or failed",
    "clock_refused": "the machine's clock was set forward, and the service keeps its own time",
}
Level: TypeAlias = Literal["on", "between", "off"]
MOST_SUBJECTS = 50  # of one kind and policy; further ones are reported together
OTHERS = "(others)"
GAP = 0.05  # of a limit, by which a number must fall below it before the alert ends


class Reading(msgspec.Struct, frozen=True):
    """Whether a condition holds for a subject (a segment, a limit or what has drifted), and its number."""

    kind: Kind
    policy: str
    subject: str
    level: Level
    value: float
    sentence: str

    @property
    def key(self) -> AlertKey:
        """What identifies the alert."""
        return AlertKey(self.kind, self.policy, self.subject)


class AlertKey(NamedTuple):
    """The kind, policy and subject of an alert."""

    kind: Kind
    policy: str
    subject: str


class Alert(msgspec.Struct, frozen=True):
    """An alert that has begun and not ended."""

    kind: Kind
    policy: str
    subject: str
    began_at: str
    sentence: str


class AlertChange(msgspec.Struct, frozen=True):
    """An alert that begins or ends."""

    key: AlertKey
    began: bool
    sentence: str


def limit_level(used: float, limit: float) -> Level:
    """Return whether a limit is reached, with a gap of 5%, or at least 1, before the alert ends.

    >>> [limit_level(used, 100) for used in (100, 96, 95, 94)]
    ['on', 'between', 'between', 'off']
    >>> [limit_level(used, 3) for used in (3, 2, 1)]
    ['on', 'between', 'off']
    """
    if used >= limit:
        return "on"
    return "between" if used >= limit - max(GAP * limit, min(1.0, limit / 2)) else "off"


def bound_subjects(readings: Iterable[Reading], active: Iterable[AlertKey]) -> list[Reading]:
    """Return readings with at most 50 subjects of a kind and policy. Further ones that hold are counted together.

    Subjects whose alert has begun come first, so that a new one does not take the place of an old one.

    >>> many = [Reading("segment_stopped", "cards", f"s{i:02}", "on", 1.0, "") for i in range(60)]
    >>> bounded = bound_subjects(many, [AlertKey("segment_stopped", "cards", "s59")])
    >>> len(bounded), bounded[0].subject, bounded[-1].subject, bounded[-1].value
    (51, 's59', '(others)', 10.0)
    """
    begun = set(active)
    groups: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        groups.setdefault((reading.kind, reading.policy), []).append(reading)
    bounded: list[Reading] = []
    for group in groups.values():
        group.sort(key=lambda reading: (reading.key not in begun, reading.level != "on", reading.subject))
        bounded += group[:MOST_SUBJECTS]
        rest = [reading for reading in group[MOST_SUBJECTS:] if reading.level == "on"]
        if len(group) > MOST_SUBJECTS:
            first = group[0]
            sentence = f"{counted(len(rest), 'more segment')}: {KINDS[first.kind]}."
            level: Level = "on" if rest else "off"
            bounded.append(Reading(first.kind, first.policy, OTHERS, level, float(len(rest)), sentence))
    return bounded


def alert_changes(active: Mapping[AlertKey, str], readings: Iterable[Reading]) -> list[AlertChange]:
    """Return the alerts that begin and end.

    Parameters
    ----------
    active : mapping
        The alerts that have begun, with their sentences.
    readings : iterable of Reading
        The readings now. An alert without a reading ends, e.g. because its policy has no live version any more.

    Examples
    --------
    >>> full = Reading("limit_reached", "cards", "young", "on", 9.0, "Full.")
    >>> (change,) = alert_changes({}, [full])
    >>> change.began, alert_changes({full.key: "Full."}, [full])
    (True, [])
    >>> alert_changes({full.key: "Full."}, [msgspec.structs.replace(full, level="between")])
    []
    >>> [change.began for change in alert_changes({full.key: "Full."}, [])]
    [False]
    """
    now = {reading.key: reading for reading in readings}
    began = [
        AlertChange(key, True, reading.sentence)
        for key, reading in now.items()
        if reading.level == "on" and key not in active
    ]
    ended = [
        AlertChange(key, False, sentence)
        for key, sentence in active.items()
        if key not in now or now[key].level == "off"
    ]
    return began + ended

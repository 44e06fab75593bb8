"""Roll a version out to a share of the applicants: what a request holds, and when a rollout is not possible."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lenience.core.formatting import count
from lenience.service.domain import limits
from lenience.service.domain.events import State
from lenience.service.domain.problems import Conflict
from lenience.service.storage.policy_cache import PolicyRecord, Version


class RolloutRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The version to roll out, by default the newest (or the one that is rolled out), and its share of applicants."""

    percent: Annotated[
        float, Meta(ge=0, le=100, description="The share of applicants that the version decides. 0 rolls it back")
    ]
    version: Annotated[int, Meta(ge=1, le=10**6)] | None = None
    reason: limits.ChangeReason | UnsetType = UNSET


def check_rollout(record: PolicyRecord, number: int, percent: float | None) -> None:
    """Raise Conflict if a version cannot be rolled out or activated now, whatever it contains.

    Parameters
    ----------
    record : PolicyRecord
        The policy.
    number : int
        The version.
    percent : float or None
        The share of applicants. None to activate the version for everybody.
    """
    other = record.rollout
    if percent == 0.0:
        if other is None or other.number != number:
            raise Conflict(
                f"version {number} of {record.name!r} is {record.states[number]}, so there is nothing to roll back",
                code="version_state",
                field="percent",
                value=percent,
            )
        return
    if record.active is None and percent is not None:
        raise Conflict(
            f"the policy {record.name!r} has no active version that decides the other applicants. Activate one first",
            code="no_active_version",
        )
    if other is not None and other.number != number:
        raise Conflict(
            f"version {other.number} of {record.name!r} is rolled out to {count(record.percent)}% of applicants. "
            "Activate it or roll it back first: one version at a time is compared with the active one",
            code="rollout_running",
            field="version",
            value=number,
        )


def check_same_limits(record: PolicyRecord, version: Version) -> None:
    """Raise Conflict if a version has other limits over all segments than the active one, next to which it decides."""
    active = record.active
    if active is not None and active.overall != version.overall:
        raise Conflict(
            f"version {version.number} of {record.name!r} has other limits over all segments than the active version "
            f"{active.number}, and both versions count the same open cases. Create a version with the same "
            "capacity and overall_exposure_cap, or activate this one for everybody",
            code="rollout_limits",
            field="version",
            value=version.number,
        )


def shadow_warnings(record: PolicyRecord, version: Version) -> list[str]:
    """Return a warning if a version in shadow needs more of a request than the active one does."""
    more = [] if record.active is None else _more_needed(record.active, version)
    if not more:
        return []
    return [
        f"Version {version.number} also needs {' and '.join(more)}. Applicants whose requests do not have them are "
        "decided as usual and are not compared."
    ]


def rollout_warnings(record: PolicyRecord, version: Version) -> list[str]:
    """Return a warning if the version needs more of a request than the active one does."""
    active = record.active
    if active is None:
        return []
    more, needed = _more_needed(active, version), _needed(version)
    warnings = []
    if more:
        warnings.append(
            f"Version {version.number} also needs {' and '.join(more)}. Applicants whose requests do not have them are "
            f"decided by version {active.number} and do not count in the comparison."
        )
    without = [name for name in active.rules if name not in version.rules]
    if without and not needed and active.feature_model is None:
        shown = ", ".join(without[:5]) + (" …" if len(without) > 5 else "")
        warnings.append(
            f"Version {version.number} does not have these segments, which version {active.number} goes on to decide: "
            f"{shown}."
        )
    return warnings


def _needed(version: Version) -> list[str]:
    """Return the names of the features that a version needs."""
    columns = version.feature_model.encoding.columns if version.feature_model else ()
    return [*(column.name for column in columns), *(feature.name for feature in version.specification.features)]


def _more_needed(active: Version, version: Version) -> list[str]:
    """Return what a version needs of a request and the active one does not."""
    known, needed, more = _needed(active), _needed(version), []
    new = [name for name in needed if name not in known]
    if new:
        more.append(f"the features {', '.join(new)}")
    if any(rule.needs_offer for rule in version.rules.values()) and active.specification.objective.offers is None:
        more.append("an offer")
    if not needed and active.feature_model is not None and version.specification.segments:
        more.append("a segment")
    return more


def describes_rollout(record: PolicyRecord, number: int, state: State) -> bool:
    """Return whether a change of a version's state starts, changes or ends a rollout."""
    return state == "rollout" or (record.rollout is not None and record.rollout.number == number)

"""Which protected attributes a version decides by: features, segments and groups that are named like one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lenience.core.protected_attributes import protected_among, require_consent
from lenience.service.domain.specification import PolicySpecification, SegmentSpec

PARTS = re.compile(r"[,;·|×/]")  # that separate the attributes in the name of a segment
SIGNS = re.compile(r"[=:<>]|\s\d")  # that end the name of an attribute


def decided_by(specification: PolicySpecification) -> list[str]:
    """Return the names that a version decides by: its features, and the attributes in its segments' names.

    >>> from lenience.objectives.discounted import Discounted
    >>> spec = PolicySpecification("p", Discounted(0.8, 0.9), segments=["race=black, score<600", "north"])
    >>> decided_by(spec)
    ['race', 'score', 'north']
    """
    names = feature_names(specification)
    given = [spec if isinstance(spec, SegmentSpec) else SegmentSpec(spec) for spec in specification.segments]
    texts = [text for spec in given for text in (spec.name, spec.group or "")]
    for text in texts:
        names += [SIGNS.split(part, maxsplit=1)[0].strip() for part in PARTS.split(text)]
    return [name for name in dict.fromkeys(names) if name]


def feature_names(specification: PolicySpecification) -> list[str]:
    """Return the features that a version decides by: those that make segments, and those of its model."""
    names = [feature.name for feature in specification.features]
    if specification.feature_spec is not None:
        names += [column.name for column in specification.feature_spec.declared]
    return names


def _field_of(specification: PolicySpecification, name: str) -> str:
    """Return the field of a version that has a name which it decides by."""
    if specification.feature_spec is not None:
        return "model.columns"
    return "features" if any(name == feature.name for feature in specification.features) else "segments"


def protected_decisions(
    specification: PolicySpecification, monitored: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Return the protected attributes that a version decides by, or raise InputError if it is not allowed to.

    A group counts as one if it is a value of a monitored attribute. A version that says that it decides by one, but
    whose names do not show which, decides by those that it lists as protected.

    Parameters
    ----------
    specification : PolicySpecification
        The version.
    monitored : mapping of str to sequence of str, optional
        The attributes that are monitored, with their values.

    Returns
    -------
    list of str
        The names, empty if the version decides by none.
    """
    known = dict(monitored or {})
    values = {value.casefold() for several in known.values() for value in several}
    groups = [group for group in dict.fromkeys(specification.groups.values()) if group.casefold() in values]
    names = [*decided_by(specification), *groups]
    attributes = [*(specification.protected or ()), *known, *groups]
    shown = next(iter(protected_among(names, attributes)), "")
    found = require_consent(
        names,
        attributes,
        decide_by_protected=bool(specification.decide_by_protected),
        field=_field_of(specification, shown),
        monitor="monitored in each decision",
        allow='"decide_by_protected": true to the policy',
    )
    if found or not specification.decide_by_protected:
        return found
    return list(specification.protected or ["a protected attribute"])  # segments may have other names, such as f and m

"""Monitored attributes: what a decision's fairness is measured by, and what no decision looks at.

They are personal data. They are stored beside the log, which holds only a salted commitment to them, in a chain of
their own. Decisions are made from the chains of segments alone, so an attribute can change no decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.core.protected_attributes import same_attribute
from lenience.core.request_limits import MONITORED_ATTRIBUTES, PLAIN_TEXT
from lenience.service.domain import limits
from lenience.service.domain.chain import commitment
from lenience.service.domain.identity import random_hex

AttributeName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=40, pattern=PLAIN_TEXT)]
AttributeValue: TypeAlias = Annotated[str, Meta(min_length=1, max_length=64, pattern=PLAIN_TEXT)]
MonitoredAttributes: TypeAlias = Annotated[
    dict[AttributeName, AttributeValue],
    Meta(
        max_length=MONITORED_ATTRIBUTES,
        description="Attributes that fairness is measured by, e.g. sex or age_band (personal data). No decision "
        "looks at them",
    ),
]

_encoder = msgspec.json.Encoder()


class MonitoredRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Attributes to add or to correct. Those that are not named stay as they are; null removes one."""

    monitored: Annotated[
        dict[AttributeName, AttributeValue | None], Meta(min_length=1, max_length=MONITORED_ATTRIBUTES)
    ]


class MonitoredItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes to add or to correct, for the decision with this id or the one decision with this reference."""

    id: Annotated[str, Meta(max_length=limits.DECISION, pattern=limits.PLAIN)] | None = None
    reference: limits.Reference | None = None
    monitored: Annotated[
        dict[AttributeName, AttributeValue | None], Meta(min_length=1, max_length=MONITORED_ATTRIBUTES)
    ]

    def __post_init__(self) -> None:
        if (self.id is None) == (self.reference is None):
            fields = ("id", "reference")
            raise InputError.because("must be given", fields, label="either id or reference", code="missing")


class MonitoredBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Attributes of several decisions."""

    decisions: Annotated[list[MonitoredItem], Meta(min_length=1, max_length=limits.BATCH)]


class MonitoredValues(NamedTuple):
    """The monitored attributes of a decision, with the salt of their commitment."""

    salt: str
    values: dict[str, str]

    @classmethod
    def of(cls, values: Mapping[str, str]) -> MonitoredValues:
        """Return attributes with a new salt."""
        return cls(random_hex(32), dict(sorted(values.items())))

    @property
    def commitment(self) -> str:
        """The commitment to the attributes, which the log holds."""
        return commitment(self.salt, *(part for pair in sorted(self.values.items()) for part in pair))


NOTHING_MONITORED = MonitoredValues("", {})


def strip_attributes(given: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return attributes without white space around names and values, or raise InputError if one is blank.

    >>> strip_attributes({" sex": "f ", "race": None})
    {'sex': 'f', 'race': None}
    """
    stripped: dict[str, str | None] = {}
    for name, value in given.items():
        short, text = name.strip(), None if value is None else value.strip()
        if not short or text == "":
            raise InputError.because(
                "must have names and values that are not blank",
                "monitored",
                hint="Leave an attribute out if it is unknown.",
            )
        if short in stripped:
            raise InputError.because(f"must name {short!r} once", "monitored", code="duplicate")
        stripped[short] = text
    return stripped


def refuse_decided(policy: str, features: Iterable[str], names: Iterable[str]) -> None:
    """Raise InputError if an attribute that a policy decides by is to be monitored as well.

    >>> refuse_decided("loans", ["age"], ["Age"])
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: monitored must not name 'Age', because the policy 'loans' decides by it. ...
    """
    decided = list(features)
    both = [name for name in names if any(same_attribute(name, feature) for feature in decided)]
    if both:
        raise InputError.because(
            f"must not name {', '.join(map(repr, both))}, because the policy {policy!r} decides by "
            f"{'it' if len(both) == 1 else 'them'}",
            "monitored",
            hint="Create a version that does not use it, or, where the law allows it, one with decide_by_protected.",
            code="decides_by_protected",
        )

"""Features instead of a segment: cut points and categories that divide the population into segments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise, product
from typing import Annotated

import msgspec
from msgspec import Meta

from lenience.errors import InputError
from lenience.service import limits

OTHER = "other"


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number divided at ``edges``, or a category that is one of ``values`` or else «other».

    >>> score = Feature("score", edges=[600.0, 700.0])
    >>> score.labels
    ['score<600', 'score 600..700', 'score>=700']
    >>> score.label(600), Feature("region", values=["north"]).label("west")
    ('score 600..700', 'region=other')
    """

    name: limits.FeatureName
    edges: Annotated[list[float], Meta(max_length=limits.FEATURES)] = []
    values: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=64, pattern=limits.PLAIN)]], Meta(max_length=limits.FEATURES)
    ] = []

    def __post_init__(self) -> None:
        if bool(self.edges) == bool(self.values):
            raise InputError(f"the feature {self.name!r} must have either edges or values")
        if any(low >= high for low, high in pairwise(self.edges)):
            raise InputError(f"the edges of {self.name!r} must rise")
        if len(set(self.values)) < len(self.values) or OTHER in self.values:
            raise InputError(f"the values of {self.name!r} must differ, and none may be 'other'")

    @property
    def labels(self) -> list[str]:
        """What a segment's name says of this feature, for every part."""
        if self.values:
            return [f"{self.name}={value}" for value in (*self.values, OTHER)]
        middle = [f"{self.name} {low:g}..{high:g}" for low, high in pairwise(self.edges)]
        return [f"{self.name}<{self.edges[0]:g}", *middle, f"{self.name}>={self.edges[-1]:g}"]

    def label(self, value: limits.FeatureValue) -> str:
        """The part a value lies in."""
        if self.values:
            if not isinstance(value, str):
                raise InputError(f"the feature {self.name!r} must be a text, not {value!r}")
            return f"{self.name}={value if value in self.values else OTHER}"
        if not isinstance(value, int | float) or value != value:
            raise InputError(f"the feature {self.name!r} must be a number, not {value!r}")
        return self.labels[bisect_right(self.edges, value)]


def names_of(features: list[Feature]) -> list[str]:
    """The names of all segments that features make."""
    if len({feature.name for feature in features}) < len(features):
        raise InputError("the names of features must differ")
    total = 1
    for feature in features:
        total *= len(feature.labels)
        if total > limits.SEGMENTS:
            raise InputError(f"features must make at most {limits.SEGMENTS:,} segments")
    return [_joined(labels) for labels in product(*(feature.labels for feature in features))]


def segment_of(features: list[Feature], given: Mapping[str, limits.FeatureValue]) -> str:
    """The segment that an individual with these features belongs to."""
    missing = [feature.name for feature in features if feature.name not in given]
    if missing:
        raise InputError(f"features must have {missing[0]!r}")
    return _joined(tuple(feature.label(given[feature.name]) for feature in features))


def _joined(labels: tuple[str, ...]) -> str:
    name = ", ".join(labels)
    if len(name) > 200:
        raise InputError("features must have names and values so short that a segment's name has at most 200 letters")
    return name

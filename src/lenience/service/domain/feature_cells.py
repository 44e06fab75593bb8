"""Features in place of a segment: cut points and categories divide the population into segments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise, product
from typing import Annotated

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.segments.column_parts import OTHER, part_labels
from lenience.service.domain import limits

LIKE = 0.75  # similarity, from 0 to 1, from which a value is probably a misspelling of a listed one
MOST_NAMED = 10  # values that a warning lists


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number cut at ``edges``, or a category with ``values``; any other value counts as "other".

    >>> score = Feature("score", edges=[600.0, 700.0])
    >>> score.labels
    ['score<600', 'score 600..700', 'score>=700']
    >>> Feature("income", edges=[1_000_000, 1_000_001]).labels
    ['income<1000000', 'income 1000000..1000001', 'income>=1000001']
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
            raise InputError.because(
                "must have either edges or values",
                "features",
                label=f"the feature {self.name!r}",
                code="conflicting_fields",
            )
        if any(low >= high for low, high in pairwise(self.edges)):
            raise InputError.because(
                "must increase", "features", label=f"the edges of {self.name!r}", value=list(self.edges)
            )
        if len(set(self.values)) < len(self.values) or OTHER in self.values:
            raise InputError.because(
                "must differ, and none may be 'other'",
                "features",
                label=f"the values of {self.name!r}",
                code="duplicate",
            )

    @property
    def labels(self) -> list[str]:
        """The label of each part, as it appears in segment names."""
        return part_labels(self.name, self.edges, self.values)

    def label(self, value: limits.FeatureValue | None) -> str:
        """Return the label of the part that contains a value."""
        if self.values:
            if not isinstance(value, str):
                raise InputError(f"features.{self.name}", value, "a text", label=f"the feature {self.name!r}")
            return f"{self.name}={value if value in self.values else OTHER}"
        if not isinstance(value, int | float) or value != value:
            raise InputError(f"features.{self.name}", value, "a number", label=f"the feature {self.name!r}")
        return self.labels[bisect_right(self.edges, value)]


def names_of(features: list[Feature]) -> list[str]:
    """Return the names of all segments that the features define."""
    if len({feature.name for feature in features}) < len(features):
        raise InputError.because("must have different names", "features", code="duplicate")
    total = 1
    for feature in features:
        total *= len(feature.labels)
        if total > limits.SEGMENTS:
            raise InputError.because(f"must make at most {limits.SEGMENTS:,} segments", "features", code="too_large")
    return [_joined(labels) for labels in product(*(feature.labels for feature in features))]


def segment_of(features: list[Feature], given: Mapping[str, limits.FeatureValue | None]) -> str:
    """Return the segment of an individual; its features must be exactly those of the policy."""
    names = [feature.name for feature in features]
    for name in given:
        if name not in names:
            raise InputError.because(
                f"must be {' and '.join(names)}; the policy does not use {name!r}",
                f"features.{name}",
                label="features",
                value=name,
                allowed=" and ".join(names),
                code="unknown_name",
            )
    missing = [feature.name for feature in features if feature.name not in given]
    if missing:
        raise InputError.because(
            f"must have {missing[0]!r}", f"features.{missing[0]}", label="features", code="missing"
        )
    return _joined(tuple(feature.label(given[feature.name]) for feature in features))


def strip_values(
    features: list[Feature], given: Mapping[str, limits.FeatureValue | None]
) -> dict[str, limits.FeatureValue | None]:
    """Return the features without white space around the values of categories.

    >>> strip_values([Feature("region", values=["north"])], {"region": " north"})
    {'region': 'north'}
    """
    values = dict(given)
    for feature in features:
        value = values.get(feature.name)
        if feature.values and isinstance(value, str) and value not in feature.values:
            values[feature.name] = value.strip()
    return values


def unknown_value_warnings(features: list[Feature], given: Mapping[str, limits.FeatureValue | None]) -> list[str]:
    """Return a warning for each category value that the policy does not list.

    A warning repeats the value only if it is close to a listed one. Answers are stored for a while, and any other value
    may be personal data.

    >>> region = [Feature("region", values=["Nord", "West"])]
    >>> unknown_value_warnings(region, {"region": "nord"}), unknown_value_warnings(region, {"region": "Nord"})
    (["'nord' is not a value of region (nearest: 'Nord'); decided as other"], [])
    >>> unknown_value_warnings(region, {"region": "Lisbon"})
    ['the value of region is not one of Nord, West; decided as other']
    """
    warnings = []
    for feature in features:
        value = given.get(feature.name)
        if not feature.values or not isinstance(value, str) or value in (*feature.values, OTHER):
            continue
        near = _nearest(value, tuple(feature.values))
        if near is not None:
            warnings.append(f"{value!r} is not a value of {feature.name} (nearest: {near!r}); decided as other")
        else:
            some = ", ".join(feature.values[:MOST_NAMED]) + (", …" if len(feature.values) > MOST_NAMED else "")
            warnings.append(f"the value of {feature.name} is not one of {some}; decided as other")
    return warnings


@lru_cache(maxsize=1024)
def _nearest(value: str, values: tuple[str, ...]) -> str | None:
    """Return the listed value that was probably meant, or None."""
    by_folded = {listed.casefold(): listed for listed in values}
    return next((by_folded[match] for match in get_close_matches(value.casefold(), by_folded, 1, LIKE)), None)


def _joined(labels: tuple[str, ...]) -> str:
    name = ", ".join(labels)
    if len(name) > 200:
        raise InputError.because(
            "must have shorter names and values: a segment's name has at most 200 letters",
            "features",
            code="too_large",
        )
    return name

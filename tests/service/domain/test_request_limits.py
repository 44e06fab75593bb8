"""The limits of requests are a contract: clients rely on them, and stored versions must stay valid."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from lenience.service.domain.imported_rows import ImportRequest
from lenience.service.domain.specification import PolicySpecification

KEYS = (
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "maxProperties"),
)
RATE = {"minimum": 1e-9, "exclusiveMaximum": 1}
SHARE = {"minimum": 0, "exclusiveMaximum": 1}
COUNT = {"minimum": 0, "maximum": 1e12}
CAP = {"minimum": 1, "maximum": 10**9}
LOSS_CAP = {"minimum": 1e-9, "maximum": 1e15}
AMOUNT = {"minimum": 1e-9, "maximum": 1e12}
NAME = {"minLength": 1, "maxLength": 200}
SHORT_NAME = {"minLength": 1, "maxLength": 64}
DATE = {"minLength": 10, "maxLength": 40}
IMPORTED = {"minimum": 0, "maximum": 10**7}
TEXT = {"maxLength": 200}
NAMED = {"maxProperties": 100}

LIMITS: dict[str, Any] = {
    "PolicySpecification.name": SHORT_NAME,
    "PolicySpecification.segments": {"maxItems": 1000},
    "PolicySpecification.segments.items": NAME,
    "PolicySpecification.features": {"maxItems": 8},
    "PolicySpecification.history": {"maxProperties": 1000},
    "PolicySpecification.history.propertyNames": NAME,
    "PolicySpecification.history_cap": AMOUNT,
    "PolicySpecification.scores": {"maxProperties": 1000},
    "PolicySpecification.scores.additionalProperties": {"minimum": -1e12, "maximum": 1e12},
    "PolicySpecification.expire_after_days": {"exclusiveMinimum": 0, "maximum": 36_500},
    "PolicySpecification.description": {"maxLength": 2000},
    "PolicySpecification.doubt": SHARE,
    "PolicySpecification.past_outcomes": COUNT,
    "SegmentSpec.name": NAME,
    "SegmentSpec.share": {"minimum": 1e-9, "maximum": 1},
    "SegmentSpec.cost": RATE,
    "SegmentSpec.exposure_cap": CAP,
    "SegmentSpec.group": NAME,
    "SegmentSpec.doubt": SHARE,
    "SegmentSpec.exposure_cap_amount": LOSS_CAP,
    "SegmentSpec.past_outcomes": COUNT,
    "Feature.name": SHORT_NAME,
    "Feature.edges": {"maxItems": 64},
    "Feature.values": {"maxItems": 64},
    "Feature.values.items": SHORT_NAME,
    "Record.successes": COUNT,
    "Record.failures": COUNT,
    "Constraints.exposure_cap": CAP,
    "Constraints.exploration_floor": SHARE,
    "Constraints.exposure_cap_amount": LOSS_CAP,
    "Constraints.overall_exposure_cap": CAP,
    "Constraints.overall_exposure_cap_amount": LOSS_CAP,
    "Capacity.acceptances": CAP,
    "Capacity.loss": LOSS_CAP,
    "ImportRequest.first": IMPORTED,
    "ImportRequest.rows": {"minItems": 1, "maxItems": 1000},
    "ImportSource.file": {"minLength": 1, "maxLength": 255},
    "ImportSource.rows": {"minimum": 1, "maximum": 10**7},
    "ImportSource.left_out": IMPORTED,
    "ImportSource.why_left_out": NAMED,
    "ImportSource.why_left_out.propertyNames": TEXT,
    "ImportSource.why_left_out.additionalProperties": IMPORTED,
    "ImportSource.columns": NAMED,
    "ImportSource.settings": NAMED,
    "ImportSource.model": TEXT,
    "ImportSource.software": TEXT,
    "ImportedRow.decided_at": DATE,
    "ImportedRow.outcome_at": DATE,
    "ImportedRow.segment": NAME,
    "ImportedRow.reference": NAME,
    "ImportedRow.features": {"maxProperties": 64},
    "ImportedRow.features.propertyNames": SHORT_NAME,
    "ImportedRow.features.additionalProperties": TEXT,
    "OfferRequest.amount": AMOUNT,
    "OfferRequest.cost": RATE,
    "OfferRequest.gain": AMOUNT,
    "OfferRequest.loss": AMOUNT,
    "OfferRequest.rate": {"exclusiveMinimum": 0, "maximum": 100},
    "OfferRequest.term": {"exclusiveMinimum": 0, "maximum": 100},
    "OfferRequest.loss_given_default": {"exclusiveMinimum": 0, "maximum": 10},
    "OfferRequest.funding_rate": {"minimum": 0, "maximum": 100},
}


def stated(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each field of a schema with its limits. A field may have limits as one of several types."""
    if isinstance(node, list):
        for part in node:
            yield from stated(part, path)
    elif isinstance(node, dict):
        limits = {key: node[key] for key in KEYS if isinstance(node.get(key), int | float)}
        if limits:
            yield ".".join(path), limits
        for key, part in node.items():
            if key != "default":
                yield from stated(part, path if key in ("properties", "$defs", "anyOf") else (*path, key))


@cache
def all_stated() -> dict[str, dict[str, float]]:
    return {
        field: limits
        for request in (PolicySpecification, ImportRequest)
        for field, limits in stated(msgspec.json.schema(request)["$defs"])
    }


@pytest.mark.parametrize("field", LIMITS)
def test_the_limits_of_requests(field: str) -> None:
    assert all_stated()[field] == LIMITS[field]

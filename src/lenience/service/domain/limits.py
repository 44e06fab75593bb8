"""The limits of a request, in one place."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lenience.core.request_limits import BATCH_SIZE, DECISION_ID_LENGTH, PLAIN_TEXT

BODY = 4 * 1024 * 1024  # bytes of a request
BATCH = BATCH_SIZE  # decisions or outcomes in one request
CSV_COLUMNS = 100  # of a CSV file with outcomes
SEGMENTS = 1_000  # of one version of a policy
HORIZON = 5_000_000
FEATURES = 64
OFFERS = 1_000  # of a version or of one of its segments
CHOICES = 100  # offers in one request, of which one is made
AMOUNT = 1e12  # largest amount at stake
CURRENCY = 8  # characters of a currency
AGES = 5_000  # of timing curves
CURVES = 200  # equally likely timing curves
DECISION = DECISION_ID_LENGTH  # letters of a decision's id
SOLVE_SECONDS = 60.0  # to solve a segment, as estimated by the solver
VERSION_SECONDS = 300.0  # to solve all segments of a version

PLAIN = PLAIN_TEXT

Name = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", description="A name")]
SegmentName = Annotated[str, Meta(min_length=1, max_length=200, pattern=PLAIN, description="A segment's name")]
Reference = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=PLAIN, description="The caller's own reference (personal data)")
]
ChangeReason = Annotated[
    str, Meta(max_length=500, pattern=PLAIN, description="The reason for the change log, without personal data")
]
Role = Annotated[
    str,
    Meta(min_length=1, max_length=100, pattern=PLAIN, description="The role of the overriding person"),
]
Note = Annotated[str, Meta(min_length=1, max_length=2_000, pattern=r"^[^\x00]*$", description="The reason")]
Date = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=40,
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]{4,15}(Z|[+-][0-9]{2}:?[0-9]{2})?)?\Z",
        description="A date (midnight UTC) or a time (UTC unless it has an offset), ISO 8601",
    ),
]
FeatureName = Annotated[str, Meta(min_length=1, max_length=64, pattern=PLAIN)]
FeatureValue = float | Annotated[str, Meta(max_length=200, pattern=PLAIN)]

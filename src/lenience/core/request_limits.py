"""Limits of a request on which the service and its client agree."""

from __future__ import annotations

BATCH_SIZE = 1_000  # decisions or outcomes in one request
DECISION_ID_LENGTH = 200  # letters of a decision's id
MONITORED_ATTRIBUTES = 8  # of one decision

# Text without control characters: they have no place in a name, and PostgreSQL cannot store the first of them.
PLAIN_TEXT = r"^[^\x00-\x1f\x7f]*$"

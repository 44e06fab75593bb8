"""Rows of an imported portfolio: past decisions with their own dates, and where they came from.

A row keeps its identity if it is sent again. Its id is made of its own date, the digest of the file and its position,
so that a repeated import finds it. The id reveals nothing of the reference, which is personal data.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from lenience.core.data_origin import MOST_NAMED, DataOrigin, Text
from lenience.core.errors import InputError
from lenience.service.domain import limits
from lenience.service.domain.clock import check_order, iso_time, read_time
from lenience.service.domain.events import Choice, Imported, ImportStarted, Interim, RowsImported
from lenience.service.domain.monitored import MonitoredAttributes
from lenience.service.domain.offer_requests import OfferRequest
from lenience.service.domain.rule import Counts, at_risk_after

MOST_IMPORTED = 10_000_000  # rows of one import
Rows = Annotated[int, Meta(ge=0, le=MOST_IMPORTED)]
PastOutcome: TypeAlias = Literal["pending", "late", "current", "success", "failure", "expired"]


class ImportedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One past decision. A rejected one has no outcome; an accepted one without an outcome is pending."""

    decided_at: limits.Date
    decision: Choice = "accept"
    outcome: PastOutcome | None = None
    outcome_at: limits.Date | None = None
    segment: limits.SegmentName | None = None
    reference: limits.Reference | None = None
    features: Annotated[dict[limits.FeatureName, limits.FeatureValue], Meta(max_length=limits.FEATURES)] | None = None
    offer: OfferRequest | None = None
    monitored: MonitoredAttributes | None = None

    def __post_init__(self) -> None:
        if self.decision == "reject" and self.outcome is not None:
            raise InputError.because("must not be given for a rejected decision", "outcome", code="conflicting_fields")
        if self.outcome_at is not None and self.outcome not in ("success", "failure"):
            raise InputError.because(
                "must be given only with the outcome success or failure", "outcome_at", code="conflicting_fields"
            )

    @property
    def status(self) -> str:
        """The status of the decision that it becomes."""
        if self.decision == "reject":
            return "rejected"
        return "pending" if self.outcome in (None, "late", "current") else self.outcome

    @property
    def reported(self) -> Interim | None:
        """Its interim status."""
        return self.outcome if self.outcome in ("late", "current") else None

    def dates(self, now: int) -> tuple[int, int | None]:
        """Return the own dates of the decision and of its outcome, or raise InputError.

        >>> ImportedRow("2020-03-01", outcome="success", outcome_at="2020-02-01").dates(1_700_000_000_000_000)
        Traceback (most recent call last):
            ...
        lenience.core.errors.InputError: outcome_at must not be before the decision (2020-03-01), not 2020-02-01
        """
        decided_at = read_time("decided_at", self.decided_at)
        check_order("decided_at", decided_at, 0, now, "1970")
        decided_at = min(decided_at, now)  # a date in a time zone that is ahead
        if self.outcome_at is None:
            return decided_at, None
        outcome_at = read_time("outcome_at", self.outcome_at)
        check_order("outcome_at", outcome_at, decided_at, now)
        return decided_at, outcome_at


class ImportSource(DataOrigin, frozen=True, forbid_unknown_fields=True):
    """Where a portfolio comes from. It is in the log for good, so it must not hold personal data."""

    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z", description="The SHA-256 digest of the file")]
    rows: Annotated[int, Meta(ge=1, le=MOST_IMPORTED, description="The number of rows that are imported")]
    left_out: Annotated[Rows, Meta(description="The number of rows of the file that are not imported")] = 0
    why_left_out: Annotated[dict[Text, Rows], Meta(max_length=MOST_NAMED)] = {}  # noqa: RUF012  (msgspec copies it)
    first: limits.Date | None = None
    last: limits.Date | None = None
    model: Annotated[Text, Meta(description="Where the prior of the policy comes from")] = ""
    not_in_prior: Annotated[
        bool, Meta(description="The outcomes of the file are not among those that a version's prior holds")
    ] = False

    def started(self, number: int, at: int, actor: str) -> ImportStarted:
        """Return the event that records it."""
        return ImportStarted(at=at, actor=actor, number=number, **msgspec.structs.asdict(self))

    def difference(self, event: ImportStarted) -> str | None:
        """Return the field in which an earlier import of the same file differs, or None. A file may be renamed."""
        names = [name for name in self.__struct_fields__ if name not in ("file", "software", "model")]
        return next((name for name in names if getattr(self, name) != getattr(event, name)), None)


class ImportRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A batch of an import: the source, the position of its first row, and the rows. A dry run records nothing."""

    source: ImportSource
    first: Annotated[int, Meta(ge=0, le=MOST_IMPORTED)]
    rows: Annotated[list[ImportedRow], Meta(min_length=1, max_length=limits.BATCH)]
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.first + len(self.rows) > self.source.rows:
            raise InputError.because(
                f"must end at row {self.source.rows:,}, which is the number in source.rows, "
                f"not at row {self.first + len(self.rows):,}",
                "rows",
            )


def imported_id(decided_at: int, policy: str, digest: str, position: int) -> str:
    """Return the id of an imported decision, which begins with its own date like all ids.

    >>> imported_id(1_700_000_000_000_000, "loans", "00", 17)[:13]
    '018bcfe5-6800'
    """
    noise = sha256(f"{policy}\0{digest}\0{position}".encode()).hexdigest()
    stamp = f"{decided_at // 1000:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7{noise[:3]}-a{noise[3:6]}-{noise[6:18]}"


def covered(batches: Iterable[RowsImported]) -> int:
    """Return how many rows of an import have arrived. Batches may overlap.

    >>> batch = RowsImported(at=0, actor="", number=1, first=0, size=10, recorded=10)
    >>> covered([batch, msgspec.structs.replace(batch, first=5)])
    15
    """
    reached = total = 0
    for batch in sorted(batches, key=lambda batch: batch.first):
        end = batch.first + batch.size
        total += max(end - max(batch.first, reached), 0)
        reached = max(reached, end)
    return total


def imported_reason(event: Imported) -> str:
    """Return the reason of an imported decision: it was made elsewhere."""
    verb = "accepted" if event.decision == "accept" else "rejected"
    return f"Imported: {verb} on {iso_time(event.decided_at)[:10]}, not by this policy."


def count_imported(counts: Counts, event: Imported) -> None:
    """Count an imported decision, in the service and in the audit.

    >>> from lenience.core.offers import Offer
    >>> counts = Counts()
    >>> row = Imported(
    ...     at=0, actor="", id="i", source=1, position=0, decided_at=0, arrivals=0, accepted=0, pending=0, successes=0,
    ...     failures=0, decision="accept", status="pending", offer=Offer(1000.0, 0.8),
    ... )
    >>> count_imported(counts, row)
    >>> counts.pending, counts.at_risk
    (1, 800.0)
    """
    counts.arrivals += 1
    counts.accepted += event.decision == "accept"
    counts.successes += event.status == "success"
    counts.failures += event.status == "failure"
    if event.status == "pending":
        counts.pending += 1
        loss = 0.0 if event.offer is None else event.offer.amount * event.offer.cost
        counts.at_risk = at_risk_after(counts.at_risk, loss, counts.pending)

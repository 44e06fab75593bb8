"""The rows of the feed for a data warehouse. Programs without a database read them too."""

from __future__ import annotations

import msgspec


class FeedRow(msgspec.Struct, frozen=True, omit_defaults=False, kw_only=True):
    """One change. Add new columns at the end, so that the columns of earlier files keep their positions.

    ``position`` is its place in the log. ``kind`` is policy, version, state, import, decision, imported, outcome,
    correction, status, expiry, override or erasure. ``id`` is the decision that it is about. Columns that do not apply
    are empty. ``expected_rate`` is the success rate that the version expected when it decided, worth ``evidence``
    outcomes. ``offer_amount`` and ``offer_cost`` are those of the offer that was decided, and ``offers`` has all of the
    request. ``reference`` and ``features`` are personal data. ``specification`` is that of a new version.
    """

    position: int
    kind: str
    at: str
    policy: str | None = None
    segment: str | None = None
    id: str | None = None
    policy_version: int | None = None
    decision: str | None = None
    rule: str | None = None
    reason: str | None = None
    probability: float | None = None
    threshold: float | None = None
    limit: int | None = None
    arrivals: int | None = None
    accepted: int | None = None
    pending: int | None = None
    successes: int | None = None
    failures: int | None = None
    expected_rate: float | None = None
    evidence: float | None = None
    offer_amount: float | None = None
    offer_cost: float | None = None
    expected_profit: float | None = None
    label_value: float | None = None
    offers: str | None = None
    replaces: str | None = None
    decided_at: str | None = None
    status: str | None = None
    outcome: str | None = None
    outcome_date: str | None = None
    by: str | None = None
    state: str | None = None
    specification: str | None = None
    reference: str | None = None
    features: str | None = None


class FeedPage(msgspec.Struct, frozen=True):
    """Rows from a cursor on. ``next`` is the cursor for the next request, and ``more`` whether there are rows now."""

    rows: list[FeedRow]
    next: int
    more: bool


def column_types() -> dict[str, str]:
    """Return the type of each column: int, float or str.

    >>> types = column_types()
    >>> types["position"], types["offer_amount"], types["reference"]
    ('int', 'float', 'str')
    """
    return {name: str(FeedRow.__annotations__[name]).partition(" ")[0] for name in FeedRow.__struct_fields__}

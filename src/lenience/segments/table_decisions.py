"""Decide a whole table of applicants by segment, inside the engine that holds it.

Given what is known now, a segment's decision is a constant, or with offers a comparison: accept if
amount × (rate − break-even) + value of the label is above 0. So a policy is a CASE over the segments, which Ibis writes
in the SQL of any engine.

Guarantee: row by row the decision is that of ``SegmentPolicies.accepts`` with each segment's prior as its belief. Every
row is decided by what is known now: nobody in the table counts as pending for another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lenience.core.belief import Belief
from lenience.core.decision_reasons import ABOVE, ACCEPT, BELOW, LEARNING, REJECT
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from lenience.segments.policies import SegmentPolicies

MOST_SEGMENTS = 1000  # branches of a CASE, which an engine tries one after another
MOST_AMOUNT = 1e300  # what is larger is not an amount
UNKNOWN, NO_OFFER = "unknown_segment", "no_offer"


class SegmentFigures(NamedTuple):
    """What the decisions about a segment rest on; ``cost`` is None if applicants bring their own break-evens."""

    name: str
    rate: float
    label: float
    cost: float | None
    accepted: bool


def segment_figures(policies: SegmentPolicies) -> list[SegmentFigures]:
    """Return the figures of each segment, or raise an error where decisions need more than the belief of today."""
    check_number(len(policies))
    return [figures_of(cell.name, cell.own, cell.prior, policies[cell.name]) for cell in policies.segments]


def check_number(segments: int) -> None:
    """Raise InputError for more segments than a CASE should have."""
    if segments > MOST_SEGMENTS:
        raise InputError(
            "segments", segments, f"at most {MOST_SEGMENTS:,} segments", code="too_large",
            hint="Decide in parts, or send the applicants to the service in batches.",
        )  # fmt: skip


def figures_of(name: str, objective: Any, prior: Belief | MixtureBelief, policy: Any = None) -> SegmentFigures:
    """Return what the decisions about a segment rest on, from its own objective and what is known of it.

    Parameters
    ----------
    name
        The segment.
    objective
        The objective of the segment alone.
    prior
        What is known of it.
    policy
        Its solved policy; solved here by default.

    Returns
    -------
    SegmentFigures
        The figures.

    Raises
    ------
    InputError
        If decisions depend on what is pending or on how many arrivals are left.

    Examples
    --------
    >>> from lenience import Discounted
    >>> figures_of("a", Discounted(0.8, 0.99), Belief(10, 7))
    SegmentFigures(name='a', rate=0.7, label=0.0, cost=0.8, accepted=True)
    """
    if objective.label_delay or objective.horizon is not None:
        raise InputError.because(
            "must have no late labels and no horizon: such decisions depend on what is pending or left",
            "objective", value=objective, code="conflicting_fields",
            hint="Send the applicants to the service, which counts them.",
        )  # fmt: skip
    policy = objective.solve(prior, rows=1) if policy is None else policy
    if objective.offers is None:
        return SegmentFigures(name, prior.mean, 0.0, objective.cost, bool(policy.accepts(prior)))
    return SegmentFigures(name, prior.mean, policy.label_value(prior).lower, None, False)


def decided(
    figures: list[SegmentFigures], table: ir.Table, segment: str, amount: str | None, cost: str | None
) -> ir.Table:
    """Return the table with the decision of each row, its reason, and the figures that it rests on."""
    import ibis

    with_offers = figures[0].cost is None
    if with_offers != (amount is not None and cost is not None) or (amount is None) != (cost is None):
        raise InputError.because(
            "must both be given if the segments have offers, and only then", ("amount", "cost"),
            label="amount and cost", code="missing" if with_offers else "conflicting_fields",
        )  # fmt: skip
    for name in (segment, amount, cost):
        if name is not None and name not in table.columns:
            raise InputError.unknown_name("column", name, table.columns, "the columns")
    names = table[segment].cast("string")
    fields = ("rate", "label") if with_offers else ("rate", "cost", "accepted")
    # The figures are columns of an inner query, so that the SQL names each segment once for each figure.
    known = table.mutate(**{f"lenience_{field}": _by_segment(names, figures, field) for field in fields})
    rate = known["lenience_rate"]
    columns: dict[str, Any] = {"success_rate": rate}
    valid: Any = rate.notnull()
    if with_offers:
        at_stake, even, label = known[amount].cast("float64"), known[cost].cast("float64"), known["lenience_label"]
        offered = (at_stake > 0.0) & (at_stake <= MOST_AMOUNT) & (even > 0.0) & (even < 1.0)
        valid &= offered.fill_null(False)
        profit = at_stake * (rate - even)
        columns |= {"expected_profit": ibis.cases((valid, profit)), "label_value": label}
        accepted, above = profit + label > 0.0, profit > 0.0
    else:
        accepted, above = known["lenience_accepted"], rate > known["lenience_cost"]
    reason = ibis.cases(
        (rate.isnull(), UNKNOWN), (~valid, NO_OFFER), (~accepted, BELOW), (above, ABOVE), else_=LEARNING
    )
    decision = ibis.cases((~valid, ibis.null("string")), (accepted, ibis.literal(ACCEPT)), else_=ibis.literal(REJECT))
    return known.select(*table.columns, decision=decision, reason=reason, **columns)


def _by_segment(names: Any, figures: list[SegmentFigures], field: str) -> Any:
    """Return a figure of the segment that each row belongs to; none for an unknown segment."""
    import ibis

    kind = "boolean" if field == "accepted" else "float64"
    values = [(names == one.name, ibis.literal(getattr(one, field), type=kind)) for one in figures]
    return ibis.cases(*values, else_=ibis.null(kind))

"""Describe a policy: its objective, and an example of a request for a decision."""

from __future__ import annotations

from typing import Any

import msgspec

from lenience.core.formatting import amount, count, counted, duration, percent
from lenience.core.objective import Objective
from lenience.core.offers import Offer, Offers
from lenience.dashboard.read_models.policy_status import PolicyStatus
from lenience.service.domain.fair_version import FairnessBody
from lenience.service.domain.feature_cells import Feature
from lenience.service.domain.feature_models import typical_or_given
from lenience.service.domain.overall import period_name
from lenience.service.domain.specification import PolicySpecification


def describe_objective(objective: Objective) -> list[tuple[str, str]]:
    """Describe an objective in the words of a risk department, as pairs of a label and a value."""
    rows = (
        [("Break-even success rate", percent(objective.cost))]
        if objective.offers is None
        else _offers(objective.offers)
    )
    if objective.horizon is not None:
        return [*rows, ("Applicants in total", amount(objective.horizon))]
    if objective.arrivals is None:
        volume = f"{count(objective.volume)} (discount factor {objective.discount:.6g})"
        return [*rows, ("Discounted applicants", volume)]
    rows += [
        ("Applicants per year", amount(objective.arrivals or 0)),
        ("Discount rate per year", percent(objective.discount_rate or 0)),
    ]
    if objective.label_delay:
        rows.append(("Outcomes are known after", f"{duration(objective.label_delay)} on average"))
    return rows


def describe_limits(policy: PolicyStatus) -> list[tuple[str, str]]:
    """Describe the limits over all segments of a policy, what is used of them, and what they cost."""
    limits, use, money = policy.version.overall, policy.use, policy.money
    rows = _fairness(policy.version.fairness)
    forgetting = policy.version.specification.forgetting
    if forgetting:
        rows.append(("Forgetting", f"outcomes count half {forgetting.half_life_days:g} days after their decision"))
    if limits is None or use is None:
        return rows
    capacity, price = limits.capacity, policy.version.capacity
    if capacity is not None:
        period, used = period_name(capacity.per, use.month), use.used(capacity)
        text = (
            f"{counted(capacity.acceptances or 0, 'acceptance')} a {capacity.per} ({used:,} used in {period})"
            if capacity.loss is None
            else f"{money.format(capacity.loss)} a {capacity.per} if all acceptances fail "
            f"({money.format(used)} used in {period})"
        )
        rows.append(("Capacity of all segments", text))
    if capacity is not None and price is not None:
        unit = "acceptance" if capacity.loss is None else f"{money.format(1.0)} that could be lost"
        worth = money.format(price.price) if capacity.loss is None else money.format(price.price, 2)
        rows.append(("Price of capacity", f"{worth} for each {unit}" if price.price else "none: it suffices for all"))
        bound, free = money.format(price.bound), money.format(price.unlimited.upper)
        rows.append(("Highest possible value", f"{bound} with this capacity, {free} without a limit (proved)"))
    if limits.cap is not None:
        rows.append(("Exposure cap of all segments", f"{use.pending:,} of {limits.cap:,} outcomes pending"))
    if limits.cap_amount is not None:
        rows.append(
            (
                "Cap on losses of all segments",
                f"{money.format(use.at_risk)} of {money.format(limits.cap_amount)} at risk",
            )
        )
    return rows


def _fairness(body: FairnessBody | None) -> list[tuple[str, str]]:
    """Describe a fairness limit, and what it does to the expected acceptance rate of each group."""
    if body is None:
        return []
    measure = body.limit.constraint.measure
    rows = [("Fairness limit", body.limit.constraint.describe())]
    for row in body.groups:
        pair = (row.acceptance, row.acceptance_without)
        after, before = pair if measure == "acceptance" else (row.opportunity, row.opportunity_without)
        rows.append(
            (f"Expected: {row.group}", f"{percent(after.midpoint)}, without the limit {percent(before.midpoint)}")
        )
    return rows


def _offers(offers: Offers) -> list[tuple[str, str]]:
    """Describe the offers that applicants bring, or that can be made."""
    low, high = percent(min(offers.cost)), percent(max(offers.cost))
    count_text = f"{len(offers.amount):,} to choose from" if offers.menu_count == 1 else f"{len(offers.amount):,} kinds"
    return [
        ("Offers", count_text if len(offers.amount) > 1 else "the same for everyone"),
        ("Gain plus loss of an offer", offers.money.format_range(min(offers.amount), max(offers.amount))),
        ("Break-even success rate", low if low == high else f"{low} to {high}"),
    ]


def example_request(specification: PolicySpecification) -> str:
    """Write the request that a program would send to this policy, as an example in JSON.

    >>> from lenience import Discounted
    >>> from lenience.service.domain.feature_cells import Feature
    >>> cut = PolicySpecification("cards", Discounted(0.8, 0.99), features=[Feature("score", edges=[600.0])])
    >>> print(example_request(cut))
    {"features": {"score": 600}, "reference": "application 17"}
    >>> loans = Discounted(offers=Offers([1000, 5000], [0.8, 0.8]), discount=0.99)
    >>> print(example_request(PolicySpecification("loans", loans)))
    {"offer": {"gain": 200.0, "loss": 800.0}, "reference": "application 17"}
    """
    fields: dict[str, Any] = {}
    if specification.feature_spec is not None:
        first_applicant = typical_or_given(specification.feature_spec)
        fields["features"] = {name: _short(value) for name, value in first_applicant.items()}
    elif specification.features:
        fields["features"] = example_features(specification.features)
    elif specification.segments:
        first = specification.segments[0]
        fields["segment"] = first if isinstance(first, str) else first.name
    if specification.protected and not specification.decide_by_protected:
        fields["monitored"] = dict.fromkeys(specification.protected, "…")
    offers = specification.objective.offers
    if offers is not None and offers.menu_count > 1:
        offer = Offer(offers.amount[0], offers.cost[0])
        fields["offer"] = {"gain": float(f"{offer.gain:.4g}"), "loss": float(f"{offer.loss:.4g}")}
    return msgspec.json.format(msgspec.json.encode(fields | {"reference": "application 17"}), indent=0).decode()


def _short(value: float | str | None) -> float | str | None:
    """Return a number with few digits."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def example_features(features: list[Feature]) -> dict[str, float | str]:
    """Give a value for each feature, as a request for a decision would.

    >>> example_features([Feature("score", edges=[600.0]), Feature("region", values=["north"])])
    {'score': 600, 'region': 'north'}
    """
    values: dict[str, float | str] = {}
    for feature in features:
        edge = feature.edges[len(feature.edges) // 2] if feature.edges else 0.0
        values[feature.name] = feature.values[0] if feature.values else int(edge) if edge.is_integer() else edge
    return values

"""The specification of a policy from past decisions: the one format that the service, the command line and files share.

``lenience fit --output``, the guided form and :meth:`lenience.History.specification` all write it here. It is a dict of
JSON values, as ``POST /v1/policies`` takes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lenience.core.data_origin import PolicyOrigin
from lenience.core.errors import InputError
from lenience.core.objective import Objective
from lenience.core.offers import Offers
from lenience.core.validation import real
from lenience.models.protocol import Shrinkage
from lenience.segments.column_parts import ColumnParts

ALL_HISTORY = 1e12  # a history_cap that never applies


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a person decides about a policy, besides its objective and its segments.

    Parameters
    ----------
    name
        The name of the policy.
    description
        Its purpose.
    exploration_floor
        The share of a stopped segment that is still accepted.
    exposure_cap
        The most outcomes that may be pending in a segment; None for no cap.
    expire_after_days
        The days after which a missing outcome expires; None for the default.
    segment_costs
        The break-even success rate of single segments, where it differs from that of the objective.
    doubt
        The probability that the prior is wrong and nothing is known instead; None for none.
    protected
        Protected attributes that the policy decides by, because a person allowed it.
    monitored
        Attributes that the policy must not decide by.
    """

    name: str
    description: str = ""
    exploration_floor: float = 0.0
    exposure_cap: int | None = None
    expire_after_days: float | None = None
    segment_costs: dict[str, float] = {}
    doubt: float | None = None
    protected: tuple[str, ...] = ()
    monitored: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """The settings that any policy has, as fields of a specification."""
        constraints: dict[str, Any] = {}
        if self.exploration_floor:
            constraints["exploration_floor"] = self.exploration_floor
        if self.exposure_cap is not None:
            constraints["exposure_cap"] = self.exposure_cap
        made: dict[str, Any] = {"name": self.name}
        if self.description:
            made["description"] = self.description
        if constraints:
            made["constraints"] = constraints
        if self.expire_after_days is not None:
            made["expire_after_days"] = self.expire_after_days
        if self.protected:
            made |= {"decide_by_protected": True, "protected": list(self.protected)}
        elif self.monitored:
            made["protected"] = list(self.monitored)
        return made


def make_specification(
    settings: PolicySettings,
    objective: Objective,
    rows: Sequence[Shrinkage],
    shares: Mapping[str, float],
    groups: Mapping[str, str] | None = None,
    offers: Mapping[str, Offers] | None = None,
    cells: Sequence[ColumnParts] = (),
    origin: PolicyOrigin | None = None,
) -> dict[str, Any]:
    """Return the specification of a policy.

    Parameters
    ----------
    settings
        Name, purpose, limits and the break-evens of single segments.
    objective
        The objective of the whole population.
    rows
        Prior, outcomes and belief of each segment.
    shares
        The share of each segment.
    groups
        The group of each segment that has one.
    offers
        The offers of each segment that has its own, if the objective has offers.
    cells
        How the columns of the segments are divided, if one of them is cut into bands.
    origin
        The past decisions that the policy comes from.

    Returns
    -------
    dict
        The specification.

    Raises
    ------
    InputError
        If a break-even is given for a segment that does not exist.

    Examples
    --------
    >>> from lenience.core.belief import Belief
    >>> from lenience.objectives.discounted import Discounted
    >>> row = Shrinkage("north", Belief(2, 1), 8, 6, Belief(10, 7))
    >>> made = make_specification(PolicySettings(name="loans"), Discounted(0.8, 0.99), [row], {"north": 1.0})
    >>> made["segments"]
    [{'name': 'north', 'share': 1.0, 'prior': {'n': 10.0, 's': 7.0}, 'group': None, 'past_outcomes': 8}]
    """
    check_segment_costs(settings.segment_costs, shares)
    made = settings.fields | {"objective": objective_fields(objective)}
    if cells:
        made["features"] = [column.fields for column in cells]
    history: dict[str, Any] = {}
    made["segments"] = segments = []
    for row in rows:
        name, start = row.cell, row.belief
        if settings.doubt:  # the outcomes decide between the prior and the doubt, so they must stay apart from it
            start = row.prior
            good, all_ = max(row.belief.s - row.prior.s, 0.0), max(row.belief.n - row.prior.n, 0.0)
            if all_:
                history[name] = {"successes": good, "failures": max(all_ - good, 0.0)}
        segment: dict[str, Any] = {
            "name": name,
            "share": min(shares[name], 1.0),
            "prior": {"n": start.n, "s": start.s},
            "group": (groups or {}).get(name),
        }
        if row.labels and name not in history:
            segment["past_outcomes"] = row.labels
        own = segment_offers(objective, name, offers or {}, settings.segment_costs)
        if own is not None:
            segment["offers"] = msgspec.to_builtins(own)
        elif name in settings.segment_costs:
            segment["cost"] = settings.segment_costs[name]
        segments.append(segment)
    if settings.doubt:
        made["doubt"] = settings.doubt
    if origin is not None:
        made["origin"] = msgspec.to_builtins(origin)
    if history:
        made |= {"history": history, "history_cap": ALL_HISTORY}
    return made


def segment_offers(
    objective: Objective, name: str, offers: Mapping[str, Offers], costs: Mapping[str, float]
) -> Offers | None:
    """Return the offers of a segment that has its own, or None.

    A segment with its own break-even keeps the amount of an objective with one offer for all.
    """
    if objective.offers is None:
        return None
    if name not in costs:
        return offers.get(name)
    if len(objective.offers.amount) > 1:
        raise InputError.because(
            "cannot be given where each applicant has its own gain and loss", "segment_costs",
            value=name, code="conflicting_fields",
        )  # fmt: skip
    return msgspec.structs.replace(objective.offers, cost=(costs[name],))


def segment_objectives(
    objective: Any, names: Sequence[str], offers: Mapping[str, Offers], costs: Mapping[str, float]
) -> Any:
    """Return the objective of each segment with its own offers or break-even, or one for all if they do not differ."""
    if not costs and not (offers and objective.offers is not None):
        return objective
    own = {}
    for name in names:
        brought = segment_offers(objective, name, offers, costs)
        if brought is not None:
            own[name] = objective.with_offers(brought)
        else:
            own[name] = objective.with_cost(costs[name]) if name in costs else objective
    return own


def check_segment_costs(costs: Mapping[str, float], names: Mapping[str, object]) -> None:
    """Raise InputError if a break-even is invalid or given for a segment that does not exist."""
    for name, cost in costs.items():
        if name not in names:
            raise InputError.unknown_name("segment_costs", name, names, "the segments")
        real("segment_costs", cost, above=0, below=1, label=f"the break-even of {name!r}")


def objective_fields(objective: Any) -> dict[str, Any]:
    """Return an objective as it is posted: without fields that are not given or follow from others.

    >>> from lenience.objectives.discounted import Discounted
    >>> objective_fields(Discounted(0.8, arrivals=100, discount_rate=0.1))
    {'type': 'discounted', 'cost': 0.8, 'arrivals': 100.0, 'discount_rate': 0.1}
    """
    fields = {key: value for key, value in msgspec.to_builtins(objective).items() if value is not None}
    if "arrivals" in fields:
        fields.pop("discount", None)
    return fields


def one_offer(gain: float, loss: float, currency: str) -> Offers:
    """Return the offer of a policy with one gain and one loss for all applicants, so that it speaks in money.

    >>> one_offer(200, 800, "$").cost
    (0.8,)
    """
    return Offers((gain + loss,), (loss / (gain + loss),), currency=currency)

"""The applicants of a command, decided by their features: one computation for all of them, then one after the other.

A decision changes no model, so what a version's model says about each applicant is computed at once. Who is accepted is
pending for those who come later, and caps count. Both are looked at applicant by applicant, so the answers are those of
single decisions one after another, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.policies.features.decision import Decision
from lenience.service.domain.chain import draw
from lenience.service.domain.feature_models import (
    Applicant,
    FeatureModel,
    FeatureState,
    FeatureValues,
    PendingApplicants,
)
from lenience.service.domain.feature_rule import NO_DRAW, decide_applicant, needs_features
from lenience.service.domain.overall import OverallUse
from lenience.service.domain.rule import Verdict
from lenience.service.domain.specification import ONLY_SEGMENT
from lenience.service.domain.state import ChainState
from lenience.service.storage.expected_applicants import ExpectedApplicants
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version


class Estimate(NamedTuple):
    """An applicant's encoded features, and what a model says about it alone."""

    row: Any
    alone: Decision


@dataclass(slots=True)
class Applicants:
    """The applicants of one command. Labels do not change while it runs.

    Parameters
    ----------
    ledger
        The transaction.
    record
        The policy.
    features
        The features of each request, None where it has none.
    choices
        The offers of each request.
    order
        The positions of the requests in the order in which they are decided.
    chains
        The chain of each request.
    encoded
        The rows of all requests under the active version, if they are known.
    """

    ledger: Ledger
    record: PolicyRecord
    features: Sequence[FeatureValues | None]
    choices: Sequence[tuple[Offer, ...]]
    order: Sequence[int]
    chains: Sequence[int]
    encoded: Any = None
    _estimates: dict[int, dict[int, Estimate]] = field(default_factory=dict)  # by version and position
    _arrivals: dict[int, int] = field(default_factory=dict)  # in the segment before each request, by position

    def __post_init__(self) -> None:
        before: Counter[int] = Counter()
        for place in self.order:
            chain = self.chains[place]
            self._arrivals[place] = self.ledger.chains[chain].counts.arrivals + before[chain]
            before[chain] += 1

    def decide(
        self, version: Version, chain: ChainState, place: int, identity: str, use: OverallUse | None = None
    ) -> tuple[Verdict, Applicant] | None:
        """Decide an applicant by its features. Return None if the request does not have what the version needs."""
        model, state = self._model(version)
        estimate = self._estimated(version, model, state).get(place)
        if estimate is None:
            return None
        rule = version.rules[ONLY_SEGMENT]
        chance = draw(chain.head, identity) if rule.exploration_floor > 0 else NO_DRAW

        def pending() -> PendingApplicants:
            return self.ledger.pending_rows(chain, version)

        row, alone = estimate
        choices = self.choices[place]
        return decide_applicant(rule, model, state, row, pending, chain.counts, chance, choices, use, alone)

    def lowered_by(self, version: Version, verdict: Verdict, place: int) -> dict[str, str]:
        """Return the features that speak most against a rejected applicant, if the version decides by features."""
        if version.feature_model is None or not needs_features(verdict):
            return {}
        model, state = self._model(version)
        cost = version.rules[ONLY_SEGMENT].break_even if verdict.offer is None else verdict.offer.cost
        return model.lowered_by(state, self._estimated(version, model, state)[place].row, cost)

    def _model(self, version: Version) -> tuple[FeatureModel, FeatureState]:
        model, state = version.feature_model, self.ledger.model_states(self.record).states[version.number]
        assert model is not None
        assert isinstance(state, FeatureState)
        return model, state

    def _estimated(self, version: Version, model: FeatureModel, state: FeatureState) -> dict[int, Estimate]:
        """Return the estimates of all applicants that a version can decide, by position."""
        estimates = self._estimates.get(version.number)
        if estimates is None and self.encoded is not None and version is self.record.active:
            own = ExpectedApplicants(self.encoded, self.choices, self.chains)
            arrivals = [self._arrivals[place] for place in range(len(self.chains))]
            alone = self.ledger.expected.decide_each(self.record.id, model, state, own, arrivals)
            estimates = {place: Estimate(self.encoded[place], one) for place, one in enumerate(alone)}
            self._estimates[version.number] = estimates
        elif estimates is None:
            rows = self._rows(version, model)
            needs_offer = version is not self.record.active and version.specification.objective.offers is not None
            places = [place for place in self.order if place in rows and (self.choices[place] or not needs_offer)]
            estimates = {}
            if places:
                alone = model.decide_each(
                    state,
                    [rows[place] for place in places],
                    [self._arrivals[place] for place in places],
                    [self.choices[place] for place in places],
                )
                estimates = {place: Estimate(rows[place], one) for place, one in zip(places, alone, strict=True)}
            self._estimates[version.number] = estimates
        return estimates

    def _rows(self, version: Version, model: FeatureModel) -> dict[int, Any]:
        """Return the encoded features of the applicants whose features the version takes, by position."""
        given = {place: features for place, features in enumerate(self.features) if features is not None}
        try:
            return dict(zip(given, model.encoding.rows(list(given.values())), strict=True)) if given else {}
        except InputError:  # some were sent for the active version, which has other features
            return {place: model.encoding.row(one) for place, one in given.items() if model.takes(one)}

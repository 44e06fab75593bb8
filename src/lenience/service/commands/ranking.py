"""Rank a batch of applicants where only some can be accepted: these 40 of this week's 200.

The index of an applicant is the expected profit of its offer plus what its outcome adds to those of the better-ranked
applicants of its segment (:mod:`lenience.segments.ranking`). The chosen applicants are then decided one by one, the
best first, so that exposure caps hold. The others are rejected for lack of capacity, if not for another reason. If the
version has a capacity with a price, the index is what remains after the price of what the offer uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.segments.ranking import Applicant, rank
from lenience.service.commands.decide import Decide, DecisionRequest
from lenience.service.commands.evidence import counts_seen
from lenience.service.domain import limits
from lenience.service.domain.answers import DecisionAnswer, RankAnswer
from lenience.service.domain.capacity_price import HIGHEST
from lenience.service.domain.events import Rank
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.rule import Counts, SegmentRule, Verdict
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version


class RankRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A batch of individuals with offers, and how many of them, or how much money, can be accepted."""

    decisions: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=limits.BATCH)]
    capacity: Annotated[int, Meta(ge=1, le=limits.BATCH, description="The most acceptances")] | None = None
    budget: (
        Annotated[float, Meta(gt=0, le=1e15, description="The most that the accepted may lose if all of them fail")]
        | None
    ) = None

    def __post_init__(self) -> None:
        if self.capacity is None and self.budget is None:
            raise InputError.because(
                "must be given", ("capacity", "budget"), label="capacity or budget", code="missing"
            )


@dataclass(frozen=True, slots=True)
class BatchRanking:
    """The applicants of a batch by rank. Positions are those of the request."""

    order: list[int]  # positions, the best first
    chosen: frozenset[int]
    index: list[float]  # by position
    total: float
    bound: float


def rank_batch(
    rules: Sequence[SegmentRule],
    counts: Sequence[Counts],
    choices: Sequence[Sequence[Offer]],
    capacity: int | None,
    budget: float | None,
) -> BatchRanking:
    """Rank the applicants of a batch, each given by its segment's rule and counts, and by its offers."""
    labels: dict[str, tuple[float, ...]] = {}
    applicants: list[Applicant] = []
    sizes = Counter(rule.name for rule in rules)
    for position, (rule, own, offers) in enumerate(zip(rules, counts, choices, strict=True)):
        table, basis = rule.table_after(own), rule.basis(own)
        assert isinstance(table, OfferTable)
        if rule.name not in labels:
            labels[rule.name] = table.batch_label_values(own.good, own.bad, sizes[rule.name], own.pending)
        offer = rule.best_offer(offers or table.choices, basis.rate)
        first = labels[rule.name][0]
        priced = Offer(offer.amount, min(offer.cost + rule.charge(offer) / offer.amount, HIGHEST))
        applicants.append(Applicant(str(position), basis.belief, priced, first, offer.loss, rule.name))
    result = rank(applicants, capacity, budget, labels)
    order = [*result.chosen, *result.waiting, *result.rejected]
    index = {int(one.name): one.index for one in order}
    return BatchRanking(
        order=[int(one.name) for one in order],
        chosen=frozenset(int(one.name) for one in result.chosen),
        index=[index[position] for position in range(len(applicants))],
        total=result.index,
        bound=result.bound,
    )


@dataclass(slots=True)
class DecideRanked(Decide):
    """The command that ranks a batch and decides it."""

    capacity: int | None = None
    budget: float | None = None
    _ranking: BatchRanking | None = None

    def _assign(self, record: PolicyRecord, segments: list[str]) -> list[str]:
        """Return the segments as they are: a ranked batch has one index, so the active version decides all of it."""
        return segments

    def _check(self, ledger: Ledger, version: Version, chains: list[int]) -> None:
        rules = [version.rules[ledger.chains[chain].segment or ""] for chain in chains]
        if any(rule.table.offers is None for rule in rules):
            raise BadRequest(
                "only a policy whose objective has offers can rank a batch",
                code="unsupported_offers",
                field="capacity",
            )

    def _order(self, ledger: Ledger, version: Version, chains: list[int]) -> Sequence[int]:
        locked = [ledger.chains[chain] for chain in chains]
        rules = [version.rules[chain.segment or ""] for chain in locked]
        record = ledger.registry.known(self.policy)
        assert record is not None
        counts = [counts_seen(ledger, record, version, chain) for chain in locked]
        self._ranking = rank_batch(rules, counts, self._choices, self.capacity, self.budget)
        return self._ranking.order

    def _all(self, answers: list[DecisionAnswer]) -> RankAnswer:
        ranking = self._ranked
        return RankAnswer(answers, ranking.order, ranking.index, len(ranking.chosen), ranking.total, ranking.bound)

    def _rank(self, place: int) -> Rank | None:
        ranking = self._ranked
        return Rank(ranking.order.index(place) + 1, len(ranking.order), ranking.index[place])

    def _after_ranking(self, rule: SegmentRule, verdict: Verdict, place: int) -> Verdict:
        if verdict.decision != "accept" or place in self._ranked.chosen:
            return verdict
        return rule.without_capacity(verdict)

    @property
    def _ranked(self) -> BatchRanking:
        assert self._ranking is not None
        return self._ranking

"""Recompute which applicants were left to a person, what a review was worth, and the capacity of each day."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection, select

from lenience.service.domain.clock import DAY, iso_time
from lenience.service.domain.events import Decided, ReviewWorth
from lenience.service.domain.referral import price_of_day, window_of
from lenience.service.domain.referral_decision import WORTH, estimate, refer
from lenience.service.domain.rule import Counts
from lenience.service.domain.statements import stated_verdict
from lenience.service.storage import schema
from lenience.service.storage.policy_cache import Version

Row = tuple[int, int, str, str, float]


class StatedReview(NamedTuple):
    """What a decision states about a review of its applicant."""

    at: int
    id: str
    where: str
    stated: ReviewWorth
    capacity: int
    referred: bool


@dataclass(slots=True)
class ReferralRecomputation:
    """The recomputation of the referrals of a policy, over all its segments."""

    label: str
    report: Callable[[str, str], None]
    _reviews: list[StatedReview] = field(default_factory=list)
    _rows: dict[str, Row] = field(default_factory=dict)

    def check(
        self, where: str, place: tuple[int, str], event: Decided, counts: Counts, version: Version | None
    ) -> None:
        """Check whether a person had to decide an applicant.

        Parameters
        ----------
        where : str
            The place of the event, for findings.
        place : tuple
            The chain and its segment.
        event : Decided
            The decision.
        counts : Counts
            The counts before it.
        version : Version or None
            The version that decided, if it is known.
        """
        chain, segment = place
        ground = event.referral
        if (event.decision == "refer") != (ground is not None) or (ground is not None and event.rule != ground.by):
            self.report(where, "it does not say why a person decides, or says it without a referral")
        if ground is not None:
            self._rows[event.id] = (chain, event.at, ground.by, ground.would, ground.worth)
        if version is None or segment not in version.rules:
            return
        referral = version.referral
        if referral is None:
            if ground is not None or event.review is not None:
                self.report(where, f"version {version.number} refers nobody")
            return
        rate, evidence = estimate(version.rules[segment], counts, event.applicant)
        stated = event.review or ReviewWorth(0.0, 0.0, 0)
        expected = refer(referral, stated_verdict(event), rate, evidence, stated.price, stated.used)
        if expected != (ground, event.review):
            right = "a person" if expected[0] is not None else "the policy"
            self.report(
                where,
                f"by version {version.number}, {right} decides it, or a review has another worth",
            )
        if event.review is not None and referral.daily_capacity is not None:
            by_worth = ground is not None and ground.by == WORTH
            self._reviews.append(
                StatedReview(event.at, event.id, where, event.review, referral.daily_capacity, by_worth)
            )

    def finish(self, connection: Connection, policy: int) -> None:
        """Compare prices and daily numbers over all segments, and the rows of the table."""
        self._reviews.sort()
        times = [one.at for one in self._reviews]
        prices: dict[tuple[int, int], float] = {}
        numbers: dict[int, list[StatedReview]] = {}
        for one in self._reviews:
            if one.referred:
                numbers.setdefault(one.at // DAY, []).append(one)
            key = (one.at // DAY, one.capacity)
            if key not in prices:
                since, until = window_of(one.at)
                earlier = self._reviews[bisect_left(times, since) : bisect_left(times, until)]
                known = [(each.id, each.at, each.stated.worth) for each in earlier]
                prices[key] = price_of_day(known, one.at, one.capacity)
            if one.stated.price != prices[key]:
                self.report(
                    one.where,
                    f"it says that a review had to be worth {one.stated.price:g} that day; earlier decisions say "
                    f"{prices[key]:g}",
                )
        for day, referred in numbers.items():
            if sorted(one.stated.used for one in referred) != list(range(len(referred))):
                self.report(self.label, f"the applicants referred on {iso_time(day * DAY)[:10]} are counted wrongly")
        for one in self._reviews:
            if one.stated.used > len(numbers.get(one.at // DAY, ())):
                self.report(one.where, "it counts more referrals on that day than there were")
        self._check_rows(connection, policy)

    def _check_rows(self, connection: Connection, policy: int) -> None:
        table = schema.referral
        unmatched = dict(self._rows)
        for row in connection.execute(select(table).where(table.c.policy_id == policy)).all():
            expected = unmatched.pop(row.decision, None)
            if expected is None:
                self.report(f"referral {row.decision}", f"the log of {self.label} does not hold it")
            elif expected != (row.chain_id, row.at, row.rule, row.would, row.worth):
                self.report(f"referral {row.decision}", "its row differs from the log")
        for decision in sorted(unmatched)[:10]:
            self.report(f"referral {decision}", f"it is in the log of {self.label}, but its row is missing")

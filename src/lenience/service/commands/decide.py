"""Decide: accept or reject one or several individuals in order. Each sees the pending outcomes of those before it.

Where amounts differ, a request holds the offer, or the offers of which one can be made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.service.commands.applicants import Applicants
from lenience.service.commands.evidence import counts_seen
from lenience.service.commands.monitor import check_monitored
from lenience.service.commands.open_loans import count_open_loans
from lenience.service.commands.referring import refer_applicant
from lenience.service.commands.rollout_assignment import Assignment, assign
from lenience.service.domain import limits
from lenience.service.domain.answers import DecisionAnswer, DecisionsAnswer, RankAnswer, decision_answer
from lenience.service.domain.chain import draw
from lenience.service.domain.events import Decided, Rank, Shadow
from lenience.service.domain.feature_cells import strip_values, unknown_value_warnings
from lenience.service.domain.identity import new_id_and_salt
from lenience.service.domain.monitored import MonitoredAttributes, strip_attributes
from lenience.service.domain.offer_requests import LOAN_ONLY, OfferRequest, missing_terms_warnings
from lenience.service.domain.overall import UseChange
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import CommandAnswer, Sender, WriteCounts, encoder, make_receipt
from lenience.service.domain.rule import SegmentRule, Verdict, at_risk_after
from lenience.service.domain.shadow_segments import Change, segment_in_shadow, segments_of
from lenience.service.domain.specification import ONLY_SEGMENT
from lenience.service.domain.state import ChainState, Personal
from lenience.service.storage.command import store_answer
from lenience.service.storage.expected_applicants import ExpectedApplicants
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyRecord, Version


class DecisionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One individual: its segment, or its features if the policy uses features, and its offer where amounts differ.

    The offers and the monitored attributes are not encoded where they are not given, so that a request of an earlier
    release has the same digest. No decision looks at monitored attributes.
    """

    segment: limits.SegmentName | None = None
    reference: limits.Reference | None = None
    features: (
        Annotated[dict[limits.FeatureName, limits.FeatureValue | None], Meta(max_length=limits.FEATURES)] | None
    ) = None
    offer: Annotated[OfferRequest, Meta(description="The offer to decide")] | UnsetType | None = UNSET
    offers: (
        Annotated[
            list[OfferRequest],
            Meta(min_length=1, max_length=limits.CHOICES, description="The offers of which one can be made"),
        ]
        | UnsetType
        | None
    ) = UNSET
    monitored: MonitoredAttributes | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.offer and self.offers:
            raise InputError.because(
                "must not be given together", ("offer", "offers"), label="offer and offers", code="conflicting_fields"
            )

    @property
    def least_fields(self) -> int:
        """The number of fields in the JSON of the request, at least: fields may also be given as null."""
        features = 0 if self.features is None else 1 + len(self.features)
        return (self.segment is not None) + (self.reference is not None) + features

    @property
    def choices(self) -> tuple[Offer, ...]:
        """The offers of which one can be made. Empty if none is given."""
        if self.offer:
            return (self.offer.offer,)
        return tuple(each.offer for each in self.offers) if self.offers else ()


class BatchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several individuals, decided in order."""

    decisions: Annotated[list[DecisionRequest], Meta(min_length=1, max_length=limits.BATCH)]


@dataclass(slots=True)
class Decide:
    """The command that decides."""

    sender: Sender
    policy: str
    requests: list[DecisionRequest]
    single: bool
    _located: tuple[PolicyRecord, list[int]] | None = None  # the policy as last loaded, and the chain of each request
    _warnings: dict[int, list[str]] = field(default_factory=dict)  # by the position of a request
    _choices: list[tuple[Offer, ...]] = field(default_factory=list)  # the offers of each request
    _rows: Any = None  # the encoded features of the requests, if the active version decides by features
    _monitored: dict[int, dict[str, str]] = field(default_factory=dict)  # by the position of a request
    _arms: Assignment | None = None  # who is decided by a version that is rolled out, if there is one
    _now: int = 0  # the time of the transaction
    _ids: list[tuple[str, str]] = field(default_factory=list)  # ids and salts that were drawn early, in order

    @property
    def size(self) -> int:
        """About how many rows it writes."""
        return 3 * len(self.requests)

    @property
    def decisions(self) -> tuple[str, ...]:
        """Empty, because it makes new decisions."""
        return ()

    def resolve(self, ledger: Ledger) -> None:
        """Load the policy and check the segments."""
        record = ledger.registry.known(self.policy)
        if record is None or not self._known(record):
            record = ledger.load_policy(self.policy)
        self._located, self._now, self._ids = None, ledger.now, []
        chains = self._place(record)
        ledger.expect_models(record)
        if self._rows is not None:
            ledger.expected.add(record.id, ExpectedApplicants(self._rows, self._choices, chains))

    def chains(self, ledger: Ledger) -> list[int]:
        """Return the chains of the requested segments, and the policy's own if limits hold over all segments."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        return self._locked(record)

    def _place(self, record: PolicyRecord) -> list[int]:
        """Return the chain of each request, or raise BadRequest."""
        if self._located is None or self._located[0] is not record:
            self._tidy(record)
            self._note_missing_terms(record)
            segments = [record.segment(request.segment, request.features) for request in self.requests]
            self._choices = [
                record.choices(segment, request.choices)
                for segment, request in zip(segments, self.requests, strict=True)
            ]
            self._note_monitored(record)
            self._arms = None
            if record.rollout is not None:
                self._draw_ids(len(segments))
                segments = self._assign(record, segments)
            self._located = (record, [record.segments[segment] for segment in segments])
        return self._located[1]

    def _draw_ids(self, number: int) -> None:
        """Draw the ids of the decisions early, because the version in rollout depends on them without a reference.

        They must sort as the decisions are made, so a policy in rollout draws all ids at the same stage.
        """
        if not self._ids:
            self._ids = [new_id_and_salt(self._now) for _ in range(number)]

    def _assign(self, record: PolicyRecord, segments: list[str]) -> list[str]:
        """Note which requests the version in rollout decides, and return the segment of each under its version."""
        offers = [request.choices for request in self.requests]
        self._arms = assign(record, self.requests, offers, segments, [identity for identity, _ in self._ids])
        for place, choices in self._arms.choices.items():
            self._choices[place] = choices
        return self._arms.segments

    def _locked(self, record: PolicyRecord) -> list[int]:
        """Return the chains to lock: those of the segments, and the policy's own where it counts for all of them."""
        own = [record.chain] if record.counts_over_segments else []
        segments = self._place(record)
        return [*own, *([record.monitored] if self._monitored else []), *segments]

    def _note_monitored(self, record: PolicyRecord) -> None:
        """Note the monitored attributes of each request, or raise BadRequest."""
        self._monitored = {}
        for i, request in enumerate(self.requests):
            if request.monitored:
                try:
                    given = strip_attributes(request.monitored)
                    check_monitored(record, record.ruling(), list(given))
                except InputError as error:
                    raise BadRequest.of(error) from None
                self._monitored[i] = {name: value for name, value in given.items() if value is not None}

    def _tidy(self, record: PolicyRecord) -> None:
        """Strip white space from the values of categories before they are stored, and note unknown values."""
        self._warnings, self._rows = {}, None
        by_features = record.ruling().feature_model
        if by_features is not None:
            applicants = [request.features for request in self.requests]
            if any(features is None for features in applicants):
                return  # the request is rejected
            try:
                self._rows = by_features.encoding.rows(applicants)
            except InputError as error:
                raise BadRequest.of(error) from None
            if by_features.encoding.counts_unseen:  # in the last column
                for i, row in enumerate(self._rows):
                    if row[-1] > 0:
                        self._warnings[i] = by_features.warnings(applicants[i] or {})
            return
        features = record.ruling().specification.features
        if not features:
            return
        for i, request in enumerate(self.requests):
            if request.features is not None:
                tidy = strip_values(features, request.features)
                if tidy != request.features:
                    self.requests[i] = msgspec.structs.replace(request, features=tidy)
                unknown = unknown_value_warnings(features, tidy)
                if unknown:
                    self._warnings[i] = unknown

    def _note_missing_terms(self, record: PolicyRecord) -> None:
        """Note terms of loans that the version was fitted with and that a request leaves out."""
        origin = record.ruling().specification.origin
        if not origin or not any(name in origin.economics for name in LOAN_ONLY):
            return
        for i, request in enumerate(self.requests):
            offers = [request.offer] if request.offer else request.offers or []
            if missing := missing_terms_warnings(offers, origin.economics):
                self._warnings[i] = [*self._warnings.get(i, []), *missing]

    def run(self, ledger: Ledger) -> CommandAnswer:
        """Decide in order."""
        record = ledger.registry.known(self.policy)
        assert record is not None
        chains = self._place(record)
        if any(ledger.chains[chain].revision != record.revision for chain in set(chains)):
            record = ledger.load_policy(self.policy)
            chains = self._place(record)
            ledger.lock(self._locked(record))
        version = record.ruling()
        self._check(ledger, version, chains)
        for one in dict.fromkeys(chains):
            count_open_loans(ledger, self.sender.actor, ledger.chains[one], record.live)
            if record.mixes_kinds and ledger.chains[one].segment == ONLY_SEGMENT:
                ledger.see_segments(record, ledger.chains[one], self.sender.actor)
        answers: dict[int, DecisionAnswer] = {}
        order = self._order(ledger, version, chains)
        features = [request.features for request in self.requests]
        applicants = Applicants(ledger, record, features, self._choices, order, chains, self._rows)
        for i in order:
            chain = ledger.chains[chains[i]]
            arm = version if self._arms is None else self._arms.version(record, i)
            event, answer, personal = self._decide(ledger, record, arm, chain, i, applicants)
            answers[i] = answer
            if len(answers) == len(chains):  # the event that carries the receipt of the whole answer
                accepted = sum(answer.decision == "accept" for answer in answers.values())
                left = sum(answer.decision == "refer" for answer in answers.values())
                made = WriteCounts(self.policy, accepted, len(answers) - accepted - left, referred=left)
                body = answer if self.single else self._all([answers[position] for position in range(len(chains))])
                full_answer = CommandAnswer(201, encoder.encode(body), made)
                receipt = make_receipt(self.sender, full_answer)
                if receipt.digest is not None:
                    event = msgspec.structs.replace(event, receipt=receipt.digest)
            seq = ledger.append(chain, event)
            if chain.shadow_segments is not None and event.shadows:
                loss = 0.0 if event.offer is None else event.offer.loss
                taken = int(event.decision == "accept")
                counted = Change(int(event.again is None), taken, taken, loss=loss)
                chain.shadow_segments.change(segments_of(event.shadows), counted)
            ledger.add_decision(event.id, chain.id, seq, event.version, event.decision, event.offer)
            if version.overall is not None and event.decision == "accept":
                change = UseChange(1, 1, 0.0 if event.offer is None else event.offer.loss)
                ledger.change_use(ledger.chains[record.chain], self.sender.actor, event.id, change)
            if event.referral is not None:
                ledger.add_referral(chain, event.id, event.referral)
            if personal is not None:
                ledger.add_personal(chain.id, seq, personal, event.id)
            if event.decision == "accept":
                ledger.note_pending(chain.id, event.id, pending=True)
            if i in self._monitored:
                monitored = ledger.chains[record.monitored]
                ledger.set_monitored(monitored, self.sender.actor, event.id, self._monitored[i])
        store_answer(ledger, self.sender, receipt, chain.id, seq, full_answer)
        return full_answer

    def _check(self, ledger: Ledger, version: Version, chains: list[int]) -> None:
        """Raise a Problem if the version cannot decide the requests, before anything is appended."""

    def _order(self, ledger: Ledger, version: Version, chains: list[int]) -> Sequence[int]:
        """Return the positions of the requests in the order in which they are decided."""
        return range(len(chains))

    def _all(self, answers: list[DecisionAnswer]) -> DecisionsAnswer | RankAnswer:
        """Return the answer to a batch."""
        return DecisionsAnswer(answers)

    def _rank(self, place: int) -> Rank | None:
        """Return the rank of a request. Only a ranked batch has ranks."""
        return None

    def _after_ranking(self, rule: SegmentRule, verdict: Verdict, place: int) -> Verdict:
        """Return the verdict after the ranking of the batch, if there is one."""
        return verdict

    @property
    def _again(self) -> str | None:
        """The waiting decision that this command decides again, if it does."""
        return None

    def _known(self, record: PolicyRecord) -> bool:
        """Return whether the cached policy has all requested segments. If not, it may have changed."""
        if record.active is None:
            return False
        if record.active.specification.features or record.active.feature_model is not None:
            return True
        return all(request.segment is None or request.segment in record.active.rules for request in self.requests)

    def _decide(
        self,
        ledger: Ledger,
        record: PolicyRecord,
        version: Version,
        chain: ChainState,
        place: int,
        applicants: Applicants,
    ) -> tuple[Decided, DecisionAnswer, Personal | None]:
        assert chain.segment is not None
        request, warnings, choices = self.requests[place], self._warnings.get(place, []), self._choices[place]
        rule = version.rules[chain.segment]
        counts = chain.counts
        seen = counts_seen(ledger, record, version, chain)
        identity, salt = self._ids.pop(0) if self._ids else new_id_and_salt(ledger.now)
        # The draw depends on the chain's head and the new id. Nobody can choose them, and the audit repeats the draw.
        chance = draw(chain.head, identity) if rule.exploration_floor > 0 else 1.0
        own = ledger.chains[record.chain] if version.overall is not None else None
        use = None if own is None else ledger.overall_use(own)
        inputs = None if request.features is None else encoder.encode(request.features).decode()
        applicant = None
        if version.feature_model is not None:
            decided = applicants.decide(version, chain, place, identity, use)
            assert decided is not None
            verdict, applicant = decided
        else:
            verdict = self._after_ranking(rule, rule.decide(seen, chance, choices, use), place)
        referred = None
        if version.referral is not None:
            referred = refer_applicant(ledger, record, version, rule, seen, verdict, applicant)
        shadows: tuple[Shadow, ...] = ()
        in_shadow = record.shadows if self._arms is None else self._arms.in_shadow(record, place)
        if in_shadow:
            shadows = tuple(
                [
                    shadow
                    for version_in_shadow in in_shadow
                    if (shadow := self._shadow(ledger, record, version_in_shadow, chain, place, identity, applicants))
                ]
            )
        answer = decision_answer(
            record.name,
            version.number,
            rule,
            seen,
            verdict,
            identity,
            ledger.time,
            warnings,
            choices,
            self._again,
            applicant,
            applicants.lowered_by(version, verdict, place),
        )
        if referred is not None:
            answer = referred.answer(version, answer)
        personal = None
        if request.reference is not None or request.features is not None:
            personal = Personal(salt, request.reference, inputs)
        event = Decided(
            at=ledger.now,
            actor=self.sender.actor,
            id=identity,
            version=version.number,
            arrivals=counts.arrivals,
            accepted=counts.accepted,
            pending=counts.pending,
            successes=counts.successes,
            failures=counts.failures,
            decision=answer.decision,
            rule=answer.rule,
            limit=verdict.limit,
            probability=verdict.probability,
            threshold=verdict.threshold,
            reason=answer.reason,
            personal=None if personal is None else personal.commitment,
            shadows=shadows,
            offers=choices,
            offer=verdict.offer,
            expected_profit=verdict.expected_profit,
            label_value=verdict.label_value,
            at_risk=counts.at_risk or None,
            rank=self._rank(place),
            overall=use,
            overall_at=None if own is None else own.length,
            open=(seen.open, seen.open_outcomes, seen.open_successes) if seen.open else None,
            forgotten=(seen.forgotten_outcomes, seen.forgotten_successes) if seen.forgotten_outcomes else None,
            again=self._again,
            model_at=ledger.model_states(record).at if record.learning else None,
            borrowed=seen.borrowed,
            applicant=applicant,
            referral=None if referred is None else referred.ground,
            review=None if referred is None else referred.review,
            unfit=None if self._arms is None else self._arms.unfit(place),
        )
        counts.arrivals += self._again is None  # who waited has arrived before
        if answer.decision == "accept":
            counts.accepted += 1
            counts.pending += 1
            if verdict.offer is not None:
                counts.at_risk = at_risk_after(counts.at_risk, verdict.offer.loss, counts.pending)
        return event, answer, personal

    def _shadow(
        self,
        ledger: Ledger,
        record: PolicyRecord,
        version: Version,
        chain: ChainState,
        place: int,
        identity: str,
        applicants: Applicants,
    ) -> Shadow | None:
        """Return what a shadow version would decide, or None if the request does not have what it needs."""
        assert chain.segment is not None
        choices = self._choices[place]
        if version.feature_model is not None:
            decided = applicants.decide(version, chain, place, identity)
            return None if decided is None else Shadow(version.number, *decided[0], None, decided[1])
        if chain.segment not in version.rules:
            return self._other_segment(version, chain, place, identity)
        if version.rules[chain.segment].needs_offer and not choices:
            return None
        rule = version.rules[chain.segment]
        counts = counts_seen(ledger, record, version, chain)
        verdict = rule.decide(counts, draw(chain.head, identity) if rule.exploration_floor > 0 else 1.0, choices)
        return Shadow(version.number, *verdict, counts.borrowed)

    def _other_segment(self, version: Version, chain: ChainState, place: int, identity: str) -> Shadow | None:
        """Return what a version by segments would decide about an applicant who is decided by features.

        Return None if the request does not say its segment, or if segments of the active version are other ones.
        """
        request, choices, known = self.requests[place], self._choices[place], chain.shadow_segments
        if chain.segment != ONLY_SEGMENT or known is None:
            return None
        spec = version.specification
        segment = segment_in_shadow(spec.features, version.rules, request.segment, request.features)
        if segment is None or (version.rules[segment].needs_offer and not choices):
            return None
        rule, counts = version.rules[segment], known.seen(version.number, segment, version.model)
        verdict = rule.decide(counts, draw(chain.head, identity) if rule.exploration_floor > 0 else 1.0, choices)
        seen = known.counts(version.number, segment)
        return Shadow(version.number, *verdict, counts.borrowed, None, segment, seen)

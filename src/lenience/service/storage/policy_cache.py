"""Policies as the engine uses them: versions and solved tables, read from the database once and cached.

Versions and tables never change, so they stay cached (tables up to a limit). The active version can change. Each chain
of a policy carries a ``revision`` that every change of state increases, under the same lock that a decision takes. A
process with an outdated copy therefore notices before it decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
from sqlalchemy import Connection, select

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.service.domain.capacity_price import CapacityBody
from lenience.service.domain.events import State
from lenience.service.domain.fair_version import FairnessBody
from lenience.service.domain.feature_cells import segment_of
from lenience.service.domain.feature_models import FeatureModel, FeatureState
from lenience.service.domain.limits import FeatureValue
from lenience.service.domain.offer_requests import ALLOWED
from lenience.service.domain.overall import OverallLimits
from lenience.service.domain.pooled_models import PooledModel, PooledState
from lenience.service.domain.problems import BadRequest, Conflict, NotFound
from lenience.service.domain.referral import Referral
from lenience.service.domain.rule import SegmentRule
from lenience.service.domain.solved_tables import SolvedTable, load
from lenience.service.domain.specification import ONLY_SEGMENT, PolicySpecification
from lenience.service.storage import schema

CACHED_TABLES = 4096
LIVE = ("active", "rollout", "shadow")  # the states of versions that decide or learn


class StoredSegment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A segment of a version: the digest of its table, and its constraints."""

    name: str
    share: float
    solved: str
    exposure_cap: int | None
    exploration_floor: float
    exposure_cap_amount: float | None = None
    capacity: str | None = None  # the digest of the price of the capacity that all segments share
    fairness: str | None = None  # the digest of the fair optimum of all segments
    model: str | None = None  # the digest of the state from which a model with features starts


@dataclass(slots=True)
class Version:
    """One version of a policy."""

    number: int
    state: State
    specification: PolicySpecification
    rules: dict[str, SegmentRule]
    created_at: int
    overall: OverallLimits | None = None  # over all segments
    capacity: CapacityBody | None = None
    fairness: FairnessBody | None = None
    model: PooledModel | None = None  # learns from the outcomes of all segments
    feature_model: FeatureModel | None = None  # decides by the applicant's own features

    @property
    def live(self) -> PooledModel | FeatureModel | None:
        """The model that learns from every outcome of the policy, if there is one."""
        return self.model or self.feature_model

    @property
    def referral(self) -> Referral | None:
        """Which applicants a person decides, if the version refers any."""
        return self.specification.referral or None

    @property
    def tables(self) -> dict[str, SolvedTable]:
        """The solved table of each segment."""
        return {name: rule.table for name, rule in self.rules.items()}


@dataclass(slots=True)
class PolicyRecord:
    """A policy with its versions and chains."""

    id: int
    name: str
    chain: int
    revision: int
    created_at: int
    segments: dict[str, int]  # the chain of each segment
    states: dict[int, State]
    active: Version | None
    shadows: list[Version] = field(default_factory=list)
    monitored: int = 0  # the chain that commits to monitored attributes
    rollout: Version | None = None  # decides a share of the applicants, next to the active version
    percent: float = 0.0  # of applicants that it decides
    counts_over_segments: bool = field(init=False)  # whether decisions take the policy's own chain too

    def __post_init__(self) -> None:
        deciding = [version for version in (self.active, self.rollout) if version is not None]
        daily = [version.referral and version.referral.daily_capacity for version in deciding]
        self.counts_over_segments = any(version.overall is not None for version in deciding) or any(daily)

    @property
    def live(self) -> list[Version]:
        """The versions that decide or run in shadow: the active one, that in rollout, and the shadows."""
        deciding = [version for version in (self.active, self.rollout) if version is not None]
        return [*deciding, *self.shadows]

    @property
    def learning(self) -> dict[int, PooledModel | FeatureModel]:
        """The models that learn from every outcome of the policy, by version: those of all live versions."""
        return {version.number: version.live for version in self.live if version.live is not None}

    @property
    def by_features(self) -> list[Version]:
        """The live versions that decide by the applicant's own features."""
        return [version for version in self.live if version.feature_model is not None]

    def ruling(self) -> Version:
        """Return the active version, or raise Conflict."""
        if self.active is None:
            raise Conflict(
                f"the policy {self.name!r} has no active version. Activate one first", code="no_active_version"
            )
        return self.active

    def segment(self, segment: str | None, features: Mapping[str, FeatureValue | None] | None) -> str:
        """Return the segment that a request names, directly or by features."""
        return self.segment_under(self.ruling(), segment, features)

    def segment_under(
        self, version: Version, segment: str | None, features: Mapping[str, FeatureValue | None] | None
    ) -> str:
        """Return the segment of a version that a request names, directly or by features."""
        spec = version.specification
        if version.feature_model is not None:
            if segment not in (None, ONLY_SEGMENT):
                self._check_named(segment)
            if features is None:
                names = ", ".join(column.name for column in version.feature_model.encoding.columns)
                detail = f"the policy {self.name!r} needs features: {names}"
                raise BadRequest(detail, code="missing", field="features", allowed=names)
            return ONLY_SEGMENT
        challenged = version.number not in [one.number for one in self.by_features] and bool(self.by_features)
        if spec.features:
            if challenged and features is not None:  # a shadow version may need more features
                features = {
                    feature.name: features[feature.name] for feature in spec.features if feature.name in features
                }
            if features is None or segment is not None:
                detail = f"the policy {self.name!r} needs features instead of a segment"
                raise BadRequest(detail, code="missing", field="features")
            try:
                return segment_of(spec.features, features)
            except InputError as error:
                raise BadRequest.of(error) from None
        if features is not None and not challenged:
            detail = f"the policy {self.name!r} takes a segment, not features"
            raise BadRequest(detail, code="unknown_field", field="features")
        if segment is None:
            if not spec.segments:
                return ONLY_SEGMENT
            allowed = f"one of {_some(version.rules)}"
            raise BadRequest(f"segment must be given: {allowed}", code="missing", field="segment", allowed=allowed)
        if segment not in version.rules:
            unknown = InputError("segment", segment, f"one of {_some(version.rules)}", code="unknown_name")
            raise BadRequest.of(unknown)
        return segment

    def _check_named(self, segment: str) -> None:
        """Raise BadRequest if no other live version has a segment that is named next to features."""
        named = [one for one in self.live if one.feature_model is None and one.specification.segments]
        if not named:
            detail = f"the policy {self.name!r} decides by features and takes no segment"
            raise BadRequest(detail, code="unknown_field", field="segment")
        names = list(dict.fromkeys(name for version in named for name in version.rules))
        if segment not in names:
            raise BadRequest.of(InputError("segment", segment, f"one of {_some(names)}", code="unknown_name"))

    @property
    def mixes_kinds(self) -> bool:
        """Whether live versions decide by segments and by features, next to each other."""
        if not self.shadows and self.rollout is None:
            return False
        return bool(self.by_features) and any(
            one.feature_model is None and ONLY_SEGMENT not in one.rules for one in self.live
        )

    def choices(self, segment: str, offers: tuple[Offer, ...], version: Version | None = None) -> tuple[Offer, ...]:
        """Return the offers of a request, or raise BadRequest if a version needs an offer or the policy takes none."""
        rule = (version or self.ruling()).rules[segment]
        if offers:
            if all(version.specification.objective.offers is None for version in self.live):
                raise BadRequest(
                    f"the policy {self.name!r} has one break-even for all and takes no offer. Leave the offer out, or "
                    "create a version whose objective has offers",
                    code="unsupported_offers",
                    field="offer",
                )
        elif rule.needs_offer:
            detail = f"offer must be given, because the amounts of the policy {self.name!r} differ: {ALLOWED}"
            raise BadRequest(detail, code="missing", field="offer", allowed=ALLOWED)
        return offers


ModelState: TypeAlias = PooledState | FeatureState


class ModelStates(NamedTuple):
    """The states of a policy's models after an event of its chain. Nothing in it changes."""

    revision: int  # of the policy
    at: int
    states: dict[int, ModelState]  # by version


class PendingRows(NamedTuple):
    """The design of the accepted applicants of a chain without an outcome, when the chain had this length."""

    length: int
    rows: dict[str, Any]  # by decision


class PolicyCache:
    """The policies that this process has loaded."""

    def __init__(self) -> None:
        self._policies: dict[str, PolicyRecord] = {}
        self._names: dict[int, str] = {}
        self._versions: dict[tuple[int, int], Version] = {}
        self._tables: dict[str, SolvedTable] = {}
        self._owners: dict[int, str] = {}  # the policy of each segment's chain
        self._lock = Lock()
        self.model_states: dict[int, ModelStates] = {}  # as of the last transaction of this process, by policy
        self.pending_rows: dict[tuple[int, int], PendingRows] = {}  # by chain and version
        self.review_prices: dict[tuple[int, int, int], float] = {}  # by policy, day and daily capacity

    def known(self, name: str) -> PolicyRecord | None:
        """Return a policy as last loaded. It may have changed since."""
        return self._policies.get(name)

    def owner(self, chain: int) -> PolicyRecord | None:
        """Return the policy of a segment's chain as last loaded, or None if it was not loaded yet."""
        return self._policies.get(self._owners.get(chain, ""))

    def owner_of(self, connection: Connection, chain: int) -> PolicyRecord:
        """Return the policy of a segment's chain. It may have changed since it was loaded."""
        record = self.owner(chain)
        if record is None:
            query = select(schema.chain.c.policy_id).where(schema.chain.c.id == chain)
            record = self.load(connection, self.name_of(connection, connection.execute(query).scalar_one()))
        return record

    def name_of(self, connection: Connection, policy_id: int) -> str:
        """Return the name of a policy."""
        name = self._names.get(policy_id)
        if name is None:
            name = connection.execute(select(schema.policy.c.name).where(schema.policy.c.id == policy_id)).scalar_one()
            self._names[policy_id] = name
        return name

    def load(self, connection: Connection, name: str) -> PolicyRecord:
        """Load the current state of a policy."""
        policy_row = connection.execute(select(schema.policy).where(schema.policy.c.name == name)).one_or_none()
        if policy_row is None:
            raise NotFound(f"the policy {name!r} does not exist", code="unknown_policy", field="policy", value=name)
        columns = (schema.chain.c.id, schema.chain.c.segment, schema.chain.c.revision)
        chains = connection.execute(select(*columns).where(schema.chain.c.policy_id == policy_row.id)).all()
        own = next(row for row in chains if row.segment is None)
        monitors = schema.chain.c.monitors == policy_row.id
        monitored = connection.execute(select(schema.chain.c.id).where(monitors)).scalar_one_or_none()
        rows = connection.execute(
            select(schema.version.c.number, schema.version.c.state, schema.version.c.percent).where(
                schema.version.c.policy_id == policy_row.id
            )
        ).all()
        states = {row.number: cast(State, row.state) for row in sorted(rows)}
        live = [self.version(connection, policy_row.id, n) for n, state in states.items() if state in LIVE]
        for version in live:
            version.state = states[version.number]
        record = PolicyRecord(
            id=policy_row.id,
            name=name,
            chain=own.id,
            revision=own.revision,
            created_at=policy_row.created_at,
            segments={row.segment: row.id for row in chains if row.segment is not None},
            states=states,
            active=next((version for version in live if version.state == "active"), None),
            shadows=[version for version in live if version.state == "shadow"],
            monitored=monitored or 0,
            rollout=next((version for version in live if version.state == "rollout"), None),
            percent=next((row.percent for row in rows if row.state == "rollout"), None) or 0.0,
        )
        self._policies[name] = record
        self._owners.update(dict.fromkeys(record.segments.values(), name))
        self._names[policy_row.id] = name
        return record

    def version(self, connection: Connection, policy_id: int, number: int) -> Version:
        """Return one version with its tables."""
        cached = self._versions.get((policy_id, number))
        if cached is not None:
            return cached
        where = (schema.version.c.policy_id == policy_id) & (schema.version.c.number == number)
        row = connection.execute(select(schema.version).where(where)).one_or_none()
        if row is None:
            raise NotFound(f"version {number} does not exist", code="unknown_version", field="version", value=number)
        stored = msgspec.json.decode(row.segments, type=list[StoredSegment])
        self._read_tables(connection, [segment.solved for segment in stored])
        specification = msgspec.json.decode(row.specification, type=PolicySpecification)
        overall, capacity = specification.overall_limits, self._capacity(connection, stored)
        fairness = self._fairness(connection, stored)
        past = specification.past_outcomes_by_segment(segment.name for segment in stored)
        version = Version(
            number=number,
            state=cast(State, row.state),
            specification=specification,
            rules={
                segment.name: SegmentRule(
                    segment.name,
                    segment.share,
                    self._tables[segment.solved],
                    segment.solved,
                    segment.exposure_cap,
                    segment.exploration_floor,
                    segment.exposure_cap_amount,
                    capacity,
                    overall,
                    past[segment.name],
                    bool(specification.waiting_list),
                    fairness,
                )
                for segment in stored
            },
            created_at=row.created_at,
            overall=overall,
            capacity=capacity,
            fairness=fairness,
            model=specification.pooled_model([segment.name for segment in stored]),
            feature_model=self._feature_model(connection, specification, stored),
        )
        self._versions[policy_id, number] = version
        return version

    def forget(self) -> None:
        """Clear the cache: a database that was unreachable may be another one now (a restored backup)."""
        self._policies.clear()
        self._owners.clear()
        self._names.clear()
        self._versions.clear()
        self.model_states.clear()
        self.pending_rows.clear()
        self.review_prices.clear()

    def _read_tables(self, connection: Connection, digests: Iterable[str]) -> None:
        with self._lock:
            wanted = list(set(digests))
            if len(self._tables) + len(wanted) > CACHED_TABLES:
                self._tables.clear()
            missing = [digest for digest in wanted if digest not in self._tables]
            for start in range(0, len(missing), 100):
                some = missing[start : start + 100]
                for digest, body in _bodies(connection, some).items():
                    self._tables[digest] = load(body)

    def _feature_model(
        self, connection: Connection, specification: PolicySpecification, segments: Sequence[StoredSegment]
    ) -> FeatureModel | None:
        """Return the model that decides by features, with the state from which it starts."""
        spec, digest = specification.feature_spec, segments[0].model
        if spec is None or digest is None:
            return None
        first = _bodies(connection, [digest])[digest]
        return FeatureModel(spec, first)

    def _capacity(self, connection: Connection, segments: Sequence[StoredSegment]) -> CapacityBody | None:
        """Return the price of the capacity that the segments share, if they do."""
        digest = segments[0].capacity
        if digest is None:
            return None
        return msgspec.json.decode(_bodies(connection, [digest])[digest], type=CapacityBody)

    def _fairness(self, connection: Connection, segments: Sequence[StoredSegment]) -> FairnessBody | None:
        """Return the fair optimum of the segments, if the version has a fairness limit."""
        digest = segments[0].fairness
        if digest is None:
            return None
        return msgspec.json.decode(_bodies(connection, [digest])[digest], type=FairnessBody)


def _bodies(connection: Connection, digests: Sequence[str]) -> dict[str, str]:
    """Return stored tables by their digests, after checking that they have not been changed."""
    rows = connection.execute(select(schema.solved).where(schema.solved.c.digest.in_(digests))).all()
    for row in rows:
        if sha256(row.body.encode()).hexdigest() != row.digest:
            raise RuntimeError(f"the solved table {row.digest} has been changed: run lenience audit")
    return {row.digest: row.body for row in rows}


def _some(names: Iterable[str]) -> str:
    several = list(names)
    shown = ", ".join(repr(name) for name in several[:5])
    return shown if len(several) <= 5 else f"{shown} … ({len(several):,} in all)"

"""How good the rejections of a policy are, from the log: counted again, one decision after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from engines import Engine, Json
from lenience.core.intervals import anytime_interval, exact_interval
from lenience.service.domain.problems import NotFound
from lenience.service.domain.version_estimates import TO_LEARN
from lenience.service.queries import rejections as rejections_module
from lenience.service.queries.reading import Filters
from serving import BY_FEATURES, sqlite_file

FLOOR = 0.1
OFFERED: Json = {
    "type": "discounted",
    "offers": {"amount": [1000.0], "cost": [0.7], "currency": "$"},
    "discount": 0.95,
}
RATES = {"young": 0.25, "old": 0.9}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A policy with a floor and a segment that never starts, one by features, one that nobody has used."""
    engine = Engine(sqlite_file(tmp_path_factory.mktemp("rejections")))
    shut = {"name": "shut", "prior": {"n": 60, "s": 12}}
    engine.create(segments=["young", "old"], objective=OFFERED, constraints={"exploration_floor": FLOOR})
    engine.create(name="closed", segments=["young", shut], objective=OFFERED)
    engine.create(**{**BY_FEATURES, "name": "features", "segments": []})
    engine.create(name="unused")
    rng = random.Random(4)
    for i in range(200):
        segment = rng.choice(list(RATES))
        made = engine.decide(segment)
        if made["decision"] == "accept" and i % 5:
            engine.outcome(made["id"], "success" if rng.random() < RATES[segment] else "failure")
        elif made["decision"] == "reject" and i % 9 == 0:
            engine.override(made["id"], "accept")
    for _ in range(12):
        engine.decide("shut", "closed")
    for _ in range(30):
        income = rng.uniform(0, 100)
        made = engine.decide(None, "features", features={"income": income, "region": "north"})
        if made["decision"] == "accept":
            engine.outcome(made["id"], "success" if rng.random() < income / 100 else "failure")
    yield engine
    assert engine.audit().findings == []
    engine.close()


def test_rejections_are_counted_as_in_the_log(engine: Engine) -> None:
    answer = engine.queries.rejections("cards")
    views = [
        engine.queries.decision(one.id) for one in engine.queries.page(Filters(policy="cards"), None, 500).decisions
    ]
    assert (answer.decisions, answer.currency) == (200, "$")
    young = next(one for one in answer.segments if one.segment == "young")
    own = [view for view in views if view.segment == "young"]
    rejected = [view for view in own if view.decision == "reject"]
    assert young.rejected == len(rejected) > 5
    assert young.amount == 1000.0 * len(rejected)
    n, s, pending = engine.counts("young")
    assert young.rate == pytest.approx(s / n)
    assert (young.outcomes, young.successes, young.pending) == (n - 2, s - 1, pending)
    assert young.without_prior == anytime_interval(young.successes, young.outcomes, 0.9)
    assert young.profit == pytest.approx(1000 * len(rejected) * (s / n - 0.7))
    drawn = [view for view in own if view.rule == "exploration_floor"]
    known = [view for view in drawn if view.status in ("success", "failure")]
    good = sum(view.status == "success" for view in known)
    assert young.check is not None
    assert (young.check.accepted, young.check.outcomes) == (len(drawn), len(known))
    check = exact_interval(good, len(known), 0.9)
    assert (young.check.interval.lower, young.check.interval.upper) == pytest.approx((check.lower, check.upper))
    people = [view for view in views if view.overridden]
    assert answer.by_people is not None
    assert answer.by_people.accepted == len(people) > 0
    to_learn = [view for view in own if view.decision == "accept" and view.rule in TO_LEARN]
    assert young.to_learn == len(to_learn)
    assert young.to_learn_profit == pytest.approx(sum(view.profit or 0.0 for view in to_learn))
    assert answer.statement.startswith("Of 100 rejected")


def test_a_segment_that_never_started_is_unknown(engine: Engine) -> None:
    answer = engine.queries.rejections("closed")
    (shut,) = answer.segments
    assert (shut.segment, shut.rejected, shut.verdict, shut.basis) == ("shut", 12, "unknown", "prior")
    assert answer.total is None
    assert answer.statement.startswith("Nothing is known")


def test_a_model_with_features_is_asked_by_band(engine: Engine) -> None:
    answer = engine.queries.rejections("features")
    views = [
        engine.queries.decision(one.id) for one in engine.queries.page(Filters(policy="features"), None, 500).decisions
    ]
    rejected = [view for view in views if view.decision == "reject"]
    assert sum(one.rejected for one in answer.segments) == len(rejected) > 0
    band = max(answer.segments, key=lambda one: one.rejected)
    assert band.basis == "model"
    means = [view.belief.mean for view in rejected if view.belief is not None]
    means = [mean for mean in means if band.segment.startswith(f"expected {int(mean * 10) * 10}–")]
    assert len(means) == band.rejected
    assert band.rate == pytest.approx(sum(means) / len(means))


def test_nothing_to_say_yet_and_an_answer_that_is_cached(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.queries.rejections("unused").segments == []
    assert engine.queries.rejections("unused").since is None
    with pytest.raises(NotFound):
        engine.queries.rejections("nobody")
    before = engine.queries.rejections("cards")
    assert engine.queries.rejections("cards") is before
    monkeypatch.setattr(rejections_module, "LATEST", 50)
    engine.decide("old")
    assert engine.queries.rejections("cards").decisions == 50

"""Fairness by group: counts are the log's, intervals the textbook's, and empty states say what is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx
import pytest

from engines import Engine
from lenience.analysis.proportions import difference_interval, rate_interval, ratio_interval
from lenience.dashboard.figures.series import Series, dumbbells, lines, spread, time_ticks
from lenience.dashboard.pages.fairness import AcceptanceCount, disparities, read_fairness
from lenience.dashboard.read_models.notices import attention
from lenience.dashboard.read_models.policy_status import read_policy_status
from lenience.dashboard.read_models.prospects import Prospects
from lenience.dashboard.read_models.time_buckets import TimeBucketCache
from lenience.service.domain import identity
from lenience.service.domain.clock import now
from serving import Served, serving, sqlite_file

SCRIPT = "<script>alert(1)</script>"
SPEC: dict[str, Any] = {
    "name": "cards",
    "objective": {"type": "discounted", "cost": 0.8, "discount": 0.998},
    "segments": [
        {"name": "a young", "group": "a", "share": 0.3},
        {"name": "a old", "group": "a", "share": 0.3},
        {"name": "b", "group": f"b {SCRIPT}", "share": 0.3},
        {"name": "c", "group": "c", "share": 0.02},
    ],
}


def test_a_rate_s_interval() -> None:
    """Against its definition: the rates from which what was seen is less than z standard deviations away."""
    for hits, total in ((0, 10), (3, 10), (50, 1000), (10, 10)):
        found = rate_interval(hits, total)
        for end in (found.lower, found.upper):
            if 0 < end < 1:
                off = abs(hits / total - end) / math.sqrt(end * (1 - end) / total)
                assert off == pytest.approx(1.959964, abs=1e-5)
        assert found.lower <= hits / total <= found.upper
    assert (rate_interval(0, 10).lower, rate_interval(10, 10).upper) == (0, 1)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    import numpy as np

    chance = np.random.default_rng(5)
    p, q, n, m = 0.6, 0.45, 150, 220
    inside = [0, 0]
    for hits, others in zip(chance.binomial(n, p, 4000), chance.binomial(m, q, 4000), strict=True):
        numbers = (int(hits), n, int(others), m)
        inside[0] += p - q in difference_interval(*numbers)
        inside[1] += p / q in ratio_interval(*numbers)
    # Four standard deviations of a proportion of 95% among 4,000 are 1.4 points.
    assert [count / 4000 for count in inside] == pytest.approx([0.95, 0.95], abs=0.014)


def test_ratios_without_hits_are_finite() -> None:
    none = ratio_interval(0, 50, 25, 50)
    assert none.lower == 0
    assert 0 < none.upper < 0.5
    assert ratio_interval(0, 0, 1, 2).upper == math.inf


def test_names_at_line_ends_do_not_meet() -> None:
    places = spread([20.0, 21.0, 22.0, 150.0, 290.0, 299.0])
    assert all(b - a >= 14 - 1e-9 for a, b in pairwise(places))
    assert min(places) >= 14
    assert max(places) <= 300


def test_pictures() -> None:
    hour = 3_600_000_000
    one = Series("only", [(10 * hour, 3, 4)])
    for picture in lines([one], hour):
        assert "only: 75% of 4 accepted" in picture
    two = [one, Series(SCRIPT, [(9 * hour, 1, 2), (11 * hour, 2, 2)])]
    for picture in lines(two, hour):
        assert SCRIPT not in picture
        assert picture.count('class="line group-') == 2
    row = (SCRIPT, (0.5, rate_interval(5, 10)), (0.2, rate_interval(2, 10)))
    for picture in dumbbells([row]):
        assert SCRIPT not in picture
        assert "50% early, 20% late" in picture
    assert [words for _, words in time_ticks(0, 6 * hour, hour, 8)][:3] == ["00:00", "01:00", "02:00"]


def test_groups_are_what_the_log_says(engine: Engine) -> None:
    engine.create(**SPEC)
    seen: dict[str, list[bool]] = {"a": [], "b": []}
    for i in range(60):
        segment = ("a young", "b", "a old", "b")[i % 4]
        decided = engine.decide(segment)
        seen[segment[0]].append(decided["decision"] == "accept")
        if decided["decision"] == "accept":
            engine.outcome(decided["id"], "success" if segment == "a old" else "failure")
    with engine.store.read() as connection:
        standing = read_policy_status(engine, connection, "cards")  # it reads the registry alone
        found = read_fairness(connection, standing, TimeBucketCache())
    a, b, c = found.groups
    for group, mine in ((a, seen["a"]), (b, seen["b"])):
        half = len(mine) // 2
        assert group.all == AcceptanceCount(sum(mine), len(mine))
        assert group.early == AcceptanceCount(sum(mine[:half]), half)
        assert group.late == AcceptanceCount(sum(mine[half:]), len(mine) - half)
        assert sum(point[2] for point in next(one for one in found.series if one.name == group.name).points) == 30
    assert 0 < sum(seen["b"]) < 30
    assert a.disparity is None
    assert b.disparity is not None
    assert b.disparity.ratio == pytest.approx(b.all.rate / a.all.rate)
    assert b.disparity.kind in ("below", "unsure")
    assert (c.all.arrivals, c.disparity) == (0, None)
    assert [len(group.stopped) for group in found.groups] == [1, 1, 1]
    assert a.believed == pytest.approx(sum(one.belief.mean for one in a.segments) / 2)
    ahead = Prospects().shut_outs(standing.segments)
    assert ahead["a young"] == ahead["b"] == 1
    assert 0 < ahead["a old"] < 1
    weights = [one.belief.exceeds(0.8) for one in a.segments]
    assert a.shut_out(ahead) == pytest.approx((weights[0] + weights[1] * ahead["a old"]) / sum(weights))
    assert b.shut_out(ahead) == 1


def test_nobody_accepted_is_no_comparison(engine: Engine) -> None:
    engine.create(**{**SPEC, "objective": {**SPEC["objective"], "discount": 0.5}})
    engine.batch(["a young", "b"])
    with engine.store.read() as connection:
        standing = read_policy_status(engine, connection, "cards")
        found = read_fairness(connection, standing, TimeBucketCache())
    assert [group.all for group in found.groups] == [
        AcceptanceCount(0, 1),
        AcceptanceCount(0, 1),
        AcceptanceCount(0, 0),
    ]
    assert all(group.disparity is None for group in disparities(found.groups))


def test_ids_that_are_later_than_their_time_are_no_trouble(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has written a later log before goes on from its last id: early and late are parts of the whole."""
    engine.create(**SPEC)
    monkeypatch.setattr(identity, "_last", (now() // 1000 + 3_600_000) << 12)
    assert {engine.decide("b")["decision"] for _ in range(5)} == {"accept"}
    with engine.store.read() as connection:
        standing = read_policy_status(engine, connection, "cards")
        b = read_fairness(connection, standing, TimeBucketCache()).groups[1]
    assert (b.all, b.early, b.late) == (AcceptanceCount(5, 5), AcceptanceCount(0, 0), AcceptanceCount(5, 5))
    assert -1 <= b.change.lower <= b.change.upper <= 1


def test_overrides_are_told_apart_and_stopped_is_what_the_policy_s_page_says(engine: Engine) -> None:
    engine.create(**SPEC)
    made = [engine.decide("b") for _ in range(4)]
    engine.override(made[0]["id"], "reject")
    while (one := engine.decide("b"))["decision"] == "accept":
        engine.outcome(one["id"], "failure")
    engine.override(one["id"], "accept")
    again = engine.decide("b")
    engine.override(again["id"], "accept")
    engine.override(again["id"], "reject")  # back to what the policy decided
    with engine.store.read() as connection:
        standing = read_policy_status(engine, connection, "cards")
        found = read_fairness(connection, standing, TimeBucketCache())
    b = found.groups[1]
    segment = standing.segment("b")
    assert (b.overridden, found.groups[0].overridden) == ((1, 1), (0, 0))
    assert (segment.next, segment.counts.pending) == ("stopped", 4)
    assert b.stopped == ["b"]
    assert [notice.text for notice in attention(standing) if "been stopped" in notice.text] == [
        "cards: the segment “b” has been stopped; pending outcomes may still reopen it."
    ]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(sqlite_file(tmp_path_factory.mktemp("fairness"))) as made:
        yield made


def test_the_page_from_nothing_to_a_comparison(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=30) as http, served.client() as client:
        assert "No policy yet" in http.get("/fairness").text
        client.create_policy(SPEC)
        client.activate("cards")
        assert "cards has made no decision yet" in http.get("/fairness").text
        for _ in range(4):
            client.decide("cards", "a old")
        only = http.get("/fairness").text
        assert "Only one group has applicants" in only
        assert "4 decisions are too few for a chart, which needs at least 30." in only
        assert "<svg" not in only
        client.decide("cards", "b")
        page = http.get("/fairness").text
        assert "Four-fifths rule" in page
        assert SCRIPT not in page
        assert "b &lt;script&gt;" in page
        row = re.search(
            r'<th scope="row"><span class="name">a</span></th><td class="number">4</td>\s*<td class="number">100\.0%',
            page,
        )
        assert row
        for _ in range(25):
            client.decide("cards", "a old")
        part = http.get("/fairness/live", params={"policy": "cards"}).text
        assert "Acceptance over time" in part
        assert "<svg" in part
        assert "<html" not in part
        assert "…</td>" not in part
        assert "style=" not in page
        assert http.get("/fairness", params={"policy": "none"}).status_code == 404
        assert http.get("/fairness", params={"policy": "x" * 65}).status_code == 400
        client.create_policy({**SPEC, "name": "plain", "segments": ["one", "two"]})
        client.activate("plain")
        client.decide_batch("plain", [{"segment": "one"}] * 40)
        busiest = http.get("/fairness").text  # whether it has groups or not
        assert "<option selected>plain</option>" in busiest
        assert "No attribute is monitored" in http.get("/fairness", params={"policy": "plain"}).text

"""What monitoring says: acceptance and its causes, drift in words, and the state of a report."""

from __future__ import annotations

import pytest

from lenience.core.bounds import Bounds
from lenience.service.domain.expected_outcomes import KnownOutcome, compare_outcomes
from lenience.service.domain.monitoring import (
    compare_acceptance,
    drift_of_shares,
    summarise_outcomes,
    summarise_population,
)
from lenience.service.domain.population_stability import stability_index

WIDE = Bounds(0.0, 1.0)


@pytest.mark.parametrize(
    ("accepted", "limited", "state"),
    [(640, 0, "ok"), (600, 0, "ok"), (560, 0, "watch"), (500, 0, "act"), (500, 140, "watch")],
)
def test_acceptance_needs_action_if_it_differs_much_and_not_by_limits(accepted: int, limited: int, state: str) -> None:
    shares = {"a": 0.8, "b": 0.2}
    would = {"a": 0.75, "b": 0.2}
    arrivals = {"a": 800, "b": 200}
    found = compare_acceptance(shares, would, arrivals, accepted, limited, 0, WIDE, [])
    assert found.expected == pytest.approx(0.64)
    assert found.state == state
    assert found.by_limits == pytest.approx(-limited / 1000)
    assert found.by_mix == pytest.approx((accepted + limited) / 1000 - 0.64)
    assert found.range is not None
    assert found.range.lower < 0.64 < found.range.upper
    assert ("limits" in found.sentence) == (limited > 0)
    inside = found.range.lower <= accepted / 1000 <= found.range.upper
    assert ("Causes: " in found.sentence) != inside


def test_people_who_change_decisions_are_a_cause() -> None:
    found = compare_acceptance({"a": 1.0}, {"a": 1.0}, {"a": 100}, 80, 0, -20, WIDE, [])
    assert found.by_people == -0.2
    assert found.by_mix == pytest.approx(0.0)
    assert found.state == "act"
    assert compare_acceptance({"a": 1.0}, {"a": 1.0}, {"a": 50}, 50, 0, 0, WIDE, []).state == "ok"
    few = compare_acceptance({"a": 1.0}, {"a": 1.0}, {"a": 49}, 10, 0, 0, WIDE, [])
    assert (few.state, few.expected) == ("no_data", None)
    unknown = compare_acceptance(None, {"a": 1.0}, {"a": 100}, 80, 0, 0, WIDE, [])
    assert (unknown.state, unknown.rate) == ("no_data", 0.8)


def test_drift_names_the_part_that_has_grown_most() -> None:
    before, now = [60, 30, 10], [20, 30, 50]
    found = drift_of_shares("segments", "segments", ["a", "b", "c"], before, now, stability_index(before, now))
    assert (found.state, found.parts[-1].name) == ("act", "b")
    assert (found.parts[0].before, found.parts[0].now) in ((0.6, 0.2), (0.1, 0.5))
    assert "50% now in c, 10% before" in found.sentence
    one, two = (summarise_population([found] * number, 100, "earlier ones") for number in (1, 2))
    assert "the mix of segments." in one
    assert "the mix of segments and 1 other comparison." in two
    same = drift_of_shares("segments", "segments", ["a", "b"], [50, 50], [49, 51], stability_index([50, 50], [49, 51]))
    assert same.state == "ok"
    assert "have not changed" in summarise_population([same], 100, "earlier ones")


def test_outcomes_are_summarised_with_the_groups_that_differ() -> None:
    known = [
        KnownOutcome(name, name, 0.9, 1e6, 0, i >= bad) for name, bad in (("a", 10), ("b", 60)) for i in range(100)
    ]
    groups = compare_outcomes(known)
    (overall,) = compare_outcomes(one._replace(group="all") for one in known)
    text = summarise_outcomes(overall, groups, [])
    assert "not as expected in b." in text
    (good,) = compare_outcomes(one._replace(group="all") for one in known[:100])
    assert summarise_outcomes(good, groups, []).startswith("Outcomes are not as expected in b.")
    (fine,) = compare_outcomes(known[:100])
    assert summarise_outcomes(fine, [fine], []).startswith("Outcomes are as expected")


def test_causes_are_named_only_outside_the_range() -> None:
    would = {"a": 0.64}
    for accepted, changed in ((615, 0), (630, 0), (665, 0), (640, 12)):
        found = compare_acceptance({"a": 1.0}, would, {"a": 1000}, accepted, 0, changed, WIDE, [])
        assert found.range is not None
        assert found.range.lower <= accepted / 1000 <= found.range.upper
        assert "Due to" not in found.sentence
    low = compare_acceptance({"a": 1.0}, would, {"a": 1000}, 605, 0, 0, WIDE, [])
    assert "a different mix of applicants −3.5 points" in low.sentence
    assert "limits" not in low.sentence
    high = compare_acceptance({"a": 1.0}, would, {"a": 1000}, 675, 0, 35, WIDE, [])
    assert "changes by people +3.5 points" in high.sentence
    assert "mix" not in high.sentence
    assert high.state == "ok"  # sure, and too small to matter


def test_what_is_said_with_few_applicants() -> None:
    nobody = compare_acceptance({"a": 1.0}, {"a": 1.0}, {"a": 0}, 0, 0, 0, None, [])
    assert (nobody.rate, nobody.applicants, nobody.by_mix) == (None, 0, 0.0)
    few = compare_acceptance({"a": 1.0}, {"a": 1.0}, {"a": 20}, 5, 3, 1, WIDE, [])
    assert (few.rate, few.by_mix, few.by_limits, few.by_people) == (0.25, 0.0, 0.0, 0.0)
    unknown = compare_acceptance(None, {}, {"a": 100}, 80, 10, 5, WIDE, [])
    assert (unknown.by_mix, unknown.by_limits, unknown.by_people) == (0.0, -0.1, 0.05)
    assert summarise_population([], 49, "").startswith("49 applicants so far")
    assert summarise_population([], 50, "") == "There is nothing to compare the applicants with yet."


def test_at_most_twenty_parts_are_listed() -> None:
    before, now = [10.0] * 30, [10.0] * 29 + [200.0]
    names = [f"part {i}" for i in range(30)]
    found = drift_of_shares("segments", "segments", names, before, now, stability_index(before, now))
    assert len(found.parts) == 20
    assert found.parts[0].name == "part 29"
    assert (found.parts[0].before, found.parts[0].now) == pytest.approx((1 / 30, 200 / 490))
    little = drift_of_shares(
        "segments", "s", ["a", "b"], [5e5, 5e5], [5.1e5, 4.9e5], stability_index([5e5, 5e5], [5.1e5, 4.9e5])
    )
    assert "too small to matter" in little.sentence

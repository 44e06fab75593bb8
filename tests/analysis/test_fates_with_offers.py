"""What policies do to segments with offers or a doubtful prior, and what floors and caps cost there."""

from __future__ import annotations

import numpy as np
import pytest

from lenience import Belief, Discounted, MixtureBelief, Offers, Segments
from lenience.analysis.fairness import cost_of_exposure_cap, cost_of_floor, group_fates, segment_fates
from lenience.analysis.limited_offers import OffersWithFloor
from lenience.core.errors import TooLargeError
from rejections import rejected

SHARES, GROUPS, PRIOR = {"a": 0.6, "b": 0.4}, {"a": "A", "b": "B"}, Belief(3, 2.2)
PLAIN = Segments.of(SHARES, Discounted(0.8, 0.98), PRIOR, GROUPS)
ONE = Segments.of(SHARES, Discounted(offers=Offers([500.0], [0.8]), discount=0.98), PRIOR, GROUPS)
TWO = Offers([100.0, 900.0], [0.7, 0.8], share=[0.3, 0.7])
TRUTHS = {"a": 0.85, "b": 0.7}


@pytest.mark.parametrize("truths", [None, TRUTHS])
def test_one_offer_is_one_break_even(truths: dict[str, float] | None) -> None:
    for plain, offered in zip(segment_fates(PLAIN.solve(), truths), segment_fates(ONE.solve(), truths), strict=True):
        for name in ("accepted", "early", "late", "ever"):
            bounds = getattr(offered.bounds, name)
            assert bounds.lower - 1e-9 <= getattr(plain.bounds, name).upper
            assert bounds.upper + 1e-9 >= getattr(plain.bounds, name).lower
            assert bounds.width < 0.02
        assert (offered.cost, offered.starts, offered.deserving) == (plain.cost, plain.starts, plain.deserving)
    [one, two] = group_fates(segment_fates(ONE.solve(), truths))
    assert (one.group, two.group) == ("A", "B")


def test_floors_and_caps_cost_the_amount_times_what_they_cost_with_one_break_even() -> None:
    floors, caps = {"A": 0.05, "B": 0.1}, {"a": 3, "b": 5}
    for one, other in (
        (cost_of_floor(PLAIN.solve(), floors), cost_of_floor(ONE.solve(), floors)),
        (cost_of_exposure_cap(PLAIN.solve(), caps), cost_of_exposure_cap(ONE.solve(), caps)),
    ):
        for plain, offered in zip(one, other, strict=True):
            assert offered.optimum.midpoint == pytest.approx(500 * plain.optimum.midpoint, rel=1e-6)
            assert offered.cost.midpoint == pytest.approx(500 * plain.cost.midpoint, abs=1e-3)
            assert offered.cost.lower > 0


def test_acceptance_of_two_offers_against_a_simulation() -> None:
    cells = Segments.of({"all": 1.0}, Discounted(offers=TWO, discount=0.95), PRIOR)
    policies = cells.solve()
    [fate] = segment_fates(policies, {"all": 0.78})
    policy, rng, runs = policies["all"], np.random.default_rng(0), 1500
    weights = 0.95 ** np.arange(120)
    half = 14  # 0.95^14 is the first power below one half
    taken, stopped = np.zeros((runs, 120)), 0
    table = {}
    for run in range(runs):
        n, s = PRIOR.n, PRIOR.s
        for t in range(120):
            if (n, s) not in table:
                table[n, s] = policy.offer_acceptance(n, [s], TWO)[0]
            which = 0 if rng.random() < 0.3 else 1
            if table[n, s][which]:
                taken[run, t] = 1
                n, s = n + 1, s + (rng.random() < 0.78)
        stopped += not table.get((n, s), np.ones(2)).any()
    early = taken[:, :half] @ weights[:half] / weights[:half].sum()
    late = taken[:, half:] @ weights[half:] / weights[half:].sum()
    assert fate.early == pytest.approx(early.mean(), abs=4 * early.std() / np.sqrt(runs))
    assert fate.late == pytest.approx(late.mean(), abs=4 * late.std() / np.sqrt(runs) + 0.01)
    assert fate.cost == 0.7
    assert fate.deserves
    assert fate.shut_out == pytest.approx(stopped / runs, abs=0.06)


def test_a_floor_applies_only_where_nothing_is_accepted() -> None:
    policy = Discounted(offers=TWO, discount=0.97).solve(PRIOR)
    floored = OffersWithFloor(policy, PRIOR, 0.2)
    n, s = 13.0, PRIOR.s + np.arange(11)
    plain, limited = policy.offer_acceptance(n, s, TWO), floored.offer_acceptance(n, s, TWO)
    for before, after in zip(plain, limited, strict=True):
        assert after.tolist() == (before.tolist() if before.any() else [0.2, 0.2])
    assert not plain[0].any()
    assert plain.any(axis=1).sum() > plain.all(axis=1).sum() > 0
    beyond = floored.offer_acceptance(
        PRIOR.n + policy.certificate.rows, [0.9 * (PRIOR.n + policy.certificate.rows)], TWO
    )
    assert beyond.tolist() == [[1.0, 1.0]]


def test_doubt_is_the_average_over_its_beliefs() -> None:
    doubted = MixtureBelief.doubt(Belief(6, 4.6), 0.3)
    objective = Discounted(0.8, 0.95)
    for truths in (None, {"all": 0.85}):
        [fate] = segment_fates(Segments.of({"all": 1.0}, objective, doubted).solve(), truths)
        same = MixtureBelief((Belief(6, 4.6), Belief(6, 4.6)), (0.4, 0.6))
        [mixed] = segment_fates(Segments.of({"all": 1.0}, objective, same).solve(), truths)
        [single] = segment_fates(Segments.of({"all": 1.0}, objective, Belief(6, 4.6)).solve(), truths)
        assert mixed.accepted == pytest.approx(single.accepted, abs=0.02)
        assert mixed.early == pytest.approx(single.early, abs=1e-6)
        assert fate.early != pytest.approx(single.early, abs=1e-3)
        assert 0 < fate.late < fate.early <= 1


def test_what_cannot_be_computed_says_so() -> None:
    many = Segments.of({"all": 1.0}, Discounted(offers=TWO, discount=0.9999), PRIOR)
    with pytest.raises(TooLargeError):
        segment_fates(many.solve())
    both = Segments.of({"all": 1.0}, Discounted(offers=TWO, discount=0.95), MixtureBelief.doubt(PRIOR, 0.2))
    with rejected("prior"):
        segment_fates(both.solve())

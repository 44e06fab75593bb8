"""Replays of rows that offer a choice: the policy chooses, and the outcome belongs to the offer that was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Discounted, FeaturePolicy, Offers, replay
from lenience.core.errors import InputError
from lenience.core.offer_rows import OfferRows
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.policies.features.baselines import GreedyRule
from lenience.policies.features.decision import OfferedDecision
from lenience.reports.replay_report import describe_columns
from lenience.simulation.replay import ONE_BREAK_EVEN, OURS, default_policies
from lenience.simulation.replay_draws import draw
from lenience.simulation.replay_table import replay_rows

COUNT = 200
RNG = np.random.default_rng(4)
X = RNG.normal(size=(COUNT, 2))
Y = (RNG.random(COUNT) < 1 / (1 + np.exp(-0.6 - 1.5 * X[:, 0]))).astype(float)
AMOUNT, COST = RNG.choice([500.0, 2000.0], COUNT), RNG.choice([0.65, 0.8], COUNT)
POPULATION = Offers([500, 2000] * 2, [0.65, 0.65, 0.8, 0.8], currency="$")
MENUS = OfferRows.starters(AMOUNT, COST, [0.1])
GOAL = Discounted(offers=POPULATION.with_starters([0.1]), discount=0.97)
FULL = np.zeros(COUNT)


def _slowly(seed: int, arrivals: int) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """Run our policy one arrival after another, and return whom it accepted, with which offer, and what that earned."""
    chance = draw(seed, COUNT, arrivals, 0)
    policy = FeaturePolicy(None, GOAL).fit(X)
    sample = chance.reference[:100]
    policy.use_reference(X[sample], MENUS.pick(sample))
    accepted, position, earned = [], [], []
    for t, i in enumerate(chance.order):
        menu = [AMOUNT[i], 0.1 * AMOUNT[i]]
        took = policy.decide(X[i : i + 1], float(t), chance.chances[t : t + 1], MENUS.take(i, i + 1))[0]
        made = policy.log_[-1]
        assert isinstance(made, OfferedDecision)
        accepted.append(took)
        position.append(int(np.argmin(np.abs(np.array(menu) - made.amount))))
        earned.append(took * made.amount * (Y[i] - made.cost))
        if took:
            policy.observe(X[i : i + 1], [True], Y[i : i + 1])
    return np.array(accepted), np.array(position), np.array(earned)


def test_the_policy_chooses_and_earns_what_it_chose() -> None:
    result = replay(X, Y, GOAL, {OURS: FeaturePolicy(None, GOAL)}, seeds=2, arrivals=40, offers=MENUS, made=FULL)
    ours = result[OURS]
    assert ours.choices is not None
    for seed in range(2):
        accepted, position, earned = _slowly(seed, 40)
        assert np.array_equal(ours.decisions[seed], accepted)
        assert np.array_equal(ours.choices[seed], position)
        assert ours.total[seed] == pytest.approx(earned.sum())
        assert ours.discounted[seed] == pytest.approx(earned @ 0.97 ** np.arange(40))
    small = ours.choices[ours.decisions] == 1
    assert 0 < small.mean() < 1  # it starts small and grows
    assert ours.assumed == pytest.approx(small.mean())
    assert small[: len(small) // 4].mean() > small[-len(small) // 4 :].mean()


def test_the_offer_that_was_made_decides_what_is_assumed() -> None:
    policies: dict[str, Any] = {"greedy": GreedyRule(None, GOAL, burn_in=10)}
    full = replay(X, Y, GOAL, policies, seeds=2, arrivals=40, offers=MENUS, made=FULL)
    tenth = replay(X, Y, GOAL, policies, seeds=2, arrivals=40, offers=MENUS, made=FULL + 1)
    assert np.array_equal(full["greedy"].total, tenth["greedy"].total)  # The outcome is assumed to be the same.
    assert full["greedy"].assumed == pytest.approx(1 - (tenth["greedy"].assumed or 0.0))


def test_policies_that_treat_offers_alike_make_the_offer_that_was_made() -> None:
    alike = {ONE_BREAK_EVEN: default_policies(GOAL)[ONE_BREAK_EVEN]}
    menu = replay(X, Y, GOAL, alike, seeds=2, arrivals=40, offers=MENUS, made=FULL)
    single = Discounted(offers=POPULATION, discount=0.97)
    plain = replay(X, Y, single, alike, seeds=2, arrivals=40, offers=(AMOUNT, COST))
    np.testing.assert_allclose(menu[ONE_BREAK_EVEN].total, plain[ONE_BREAK_EVEN].total)
    assert menu[ONE_BREAK_EVEN].assumed == 0.0


def test_the_model_that_knows_all_outcomes_chooses_the_best_offer() -> None:
    result = replay(X, Y, GOAL, {OURS: FeaturePolicy(None, GOAL)}, seeds=1, arrivals=30, offers=MENUS, made=FULL)
    mean = BayesianLogistic().fit(X, Y).beliefs(X)[1]
    # At one break-even the full amount is best where it pays, and nothing pays elsewhere.
    worth = np.where(mean > COST, AMOUNT * (Y - COST), 0.0)
    assert result.known == pytest.approx(worth[draw(0, COUNT, 30, 0).order] @ 0.97 ** np.arange(30))
    assert result.full_information.assumed == 0.0
    assert 0 < result.full_information.accepted < 1


def test_tables_show_how_much_is_assumed() -> None:
    result = replay(X, Y, GOAL, {OURS: FeaturePolicy(None, GOAL)}, seeds=1, arrivals=30, offers=MENUS, made=FULL)
    headings, rows = replay_rows(result)
    assert len(headings) == len(rows[0])
    assert rows[0][headings.index("other offer")].endswith("%")
    assert "assumed" in describe_columns(result)
    assert result.summary()[0]["assumed"] == result[OURS].assumed


@pytest.mark.parametrize(
    ("offers", "made", "field", "code"),
    [
        (MENUS, None, "made", "missing"),
        (MENUS, [0, 1], "made", "length_mismatch"),
        (MENUS, FULL + 2, "made", "invalid_value"),
        (MENUS, FULL + 0.5, "made", "invalid_value"),
        ((AMOUNT, COST), FULL, "made", "conflicting_fields"),
    ],
)
def test_wrong_choices_are_rejected(offers: Any, made: Any, field: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        replay(X, Y, GOAL, seeds=1, arrivals=3, offers=offers, made=made)
    assert (caught.value.field, caught.value.code) == (field, code)


def test_starters_on_the_command_line(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "loans.csv"
    lines = ["x,z,won,lost,repaid"]
    for i in range(80):
        gain, loss = AMOUNT[i] * (1 - COST[i]), AMOUNT[i] * COST[i]
        lines.append(f"{X[i, 0]:.4f},{X[i, 1]:.4f},{gain:.2f},{loss:.2f},{Y[i]:.0f}")
    file.write_text("\n".join(lines))
    words = ("replay", str(file), "--outcome", "repaid", "--features", "x,z", "--discount", "0.9", "--seeds", "1")
    money = ("--gain", "won", "--loss", "lost", "--currency", "$", "--individuals", "12")
    code, out, _ = run(*words, *money, "--starter", "0.1", "--json")
    assert code == 0
    assert all("assumed" in row for row in json.loads(out)["policies"])
    code, out, _ = run(*words, *money, "--starter", "0.1")
    assert code == 0
    assert "other offer" in " ".join(out.split())
    for extra in (("--cost", "0.8", "--starter", "0.1"), (*money, "--starter", "1.5")):
        code, _, error = run(*words, *extra)
        assert code == 2
        assert "start" in error or "share" in error

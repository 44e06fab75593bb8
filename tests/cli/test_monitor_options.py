"""--monitor and --decide-by-protected: fairness by attributes that decisions do not look at."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lenience import InputError, fit_history
from lenience.analysis import monitor_history, monitored_fates

Run = Any
GOAL = ("--cost", "0.7", "--discount", "0.95")
COLUMNS = ("--segment", "band", "--accepted", "approved", "--outcome", "repaid")


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> str:
    chance = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("monitor") / "loans.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["band", "score", "sex", "age_band", "approved", "propensity", "repaid", "known"])
        for _ in range(300):
            woman = chance.random() < 0.5
            high = chance.random() < (0.3 if woman else 0.7)
            propensity = 0.9 if high else 0.4
            good, approved = chance.random() < (0.9 if high else 0.6), chance.random() < propensity
            sex = "" if chance.random() < 0.1 else "f" if woman else "m"
            age = ("18-34", "35-")[int(chance.integers(2))]
            score = (60 if high else 30) + int(chance.integers(20))
            outcome = int(good) if approved else ""
            writer.writerow(["high" if high else "low", score, sex, age, int(approved), propensity, outcome, int(good)])
    return str(path)


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("command", ["fit", "report"])
def test_past_decisions_are_measured_by_attribute_and_by_pair(
    run: Run, loans: str, tmp_path: Path, command: str
) -> None:
    page = tmp_path / "report.html"
    words = ["--output", str(page)] if command == "report" else []
    code, out, err = run(command, loans, *COLUMNS, *GOAL, "--monitor", "sex", "--monitor", "age_band", *words, "--json")
    assert (code, err) == (0, "")
    by_sex, by_age, by_both = json.loads(out)["monitored"]
    rows = rows_of(loans)
    women = [row for row in rows if row["sex"] == "f"]
    entry = next(group for group in by_sex["groups"] if group["name"] == "f")
    assert entry["counts"]["arrivals"] == len(women)
    assert entry["counts"]["successes"] == sum(row["repaid"] == "1" for row in women)
    assert entry["acceptance"]["value"] == pytest.approx(np.mean([int(row["approved"]) for row in women]))
    assert by_sex["unknown"]["arrivals"] == sum(row["sex"] == "" for row in rows)
    assert by_age["unknown"]["arrivals"] == 0
    assert {group["name"] for group in by_both["groups"]} == {f"{s} × {a}" for s in "fm" for a in ("18-34", "35-")}
    [difference] = by_sex["explained_by_segments"]
    parts = difference["composition"]["value"] + difference["rates"]["value"]
    assert parts == pytest.approx(difference["difference"]["value"])
    assert by_sex["segments_reveal"]["balanced_accuracy"]["value"] > by_sex["segments_reveal"]["by_chance"]
    if command == "report":
        assert "It is not a law of lending" in page.read_text(encoding="utf-8")


def test_a_group_s_future_is_that_of_its_segments(loans: str) -> None:
    from lenience import Discounted, Segments, segment_fates

    history = fit_history(loans, "band", "approved", "repaid")
    [by_sex] = monitor_history(loans, "band", "approved", "repaid", monitor="sex")
    cells = Segments.of({row.segment: 0.5 for row in history.segments}, Discounted(0.7, 0.95), history.beliefs())
    fates = segment_fates(cells.solve(), rows=200)
    by_name = {fate.name: fate for fate in fates}
    for row in monitored_fates(fates, by_sex.cells):
        counts = {band: by_sex.cells[row.group, band].arrivals for band in by_name}
        total = sum(counts.values())
        expected = sum(n / total * by_name[band].accepted for band, n in counts.items())
        assert row.acceptance.midpoint == pytest.approx(expected)
        worth = {band: n * by_name[band].deserving for band, n in counts.items()}
        shut = sum(w * (by_name[band].shut_out or 0.0) for band, w in worth.items()) / sum(worth.values())
        assert row.wrongly_rejected is not None
        assert row.wrongly_rejected.midpoint == pytest.approx(shut, abs=1e-9)


def test_deciding_by_a_protected_or_monitored_column_needs_consent(run: Run, loans: str) -> None:
    by_sex = ("--segment", "sex", "--accepted", "approved", "--outcome", "repaid", *GOAL)
    code, _, err = run("fit", loans, *by_sex)
    assert code == 2
    assert "--decide-by-protected" in err
    assert "--monitor" in err
    code, out, _ = run("fit", loans, *by_sex, "--decide-by-protected", "--json")
    assert code == 0
    assert json.loads(out)["decides_by_protected"] == ["sex"]
    assert "Decisions differ by sex" in json.loads(out)["warning"]
    code, _, err = run("fit", loans, *COLUMNS, *GOAL, "--monitor", "band")
    assert code == 2
    assert "'band'" in err
    with pytest.raises(InputError) as error:
        fit_history(loans, "sex", "approved", "repaid")
    assert error.value.code == "decides_by_protected"
    assert fit_history(loans, "sex", "approved", "repaid", decide_by_protected=True).segments


def test_an_unknown_monitored_column_is_named(run: Run, loans: str) -> None:
    code, _, err = run("fit", loans, *COLUMNS, "--monitor", "gender")
    assert code == 2
    assert "--monitor" in err


def test_replay_reports_acceptance_of_those_who_succeed(run: Run, loans: str) -> None:
    words = ("--outcome", "known", "--features", "score", *GOAL, "--seeds", "2", "--individuals", "40")
    code, out, err = run("replay", loans, *words, "--monitor", "sex", "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)["monitored"]
    assert {row["group"] for row in rows} == {"", "f", "m"}
    always = [row for row in rows if row["policy"] == "always"]
    assert all(row["acceptance"]["value"] == 1.0 for row in always)
    assert sum(row["arrivals"] for row in always) == 80
    for features in (("--features", "score,sex"), ()):  # without --features, all columns are features
        code, _, err = run("replay", loans, "--outcome", "known", *features, *GOAL)
        assert code == 2
        assert "--decide-by-protected" in err


def test_a_log_is_measured_for_the_policy_and_for_the_proposal(run: Run, loans: str) -> None:
    words = ("--cost", "0.7", "--accepted", "approved", "--outcome", "repaid", "--score", "score", "--at-least", "50")
    code, out, _ = run("offpolicy", loans, *words, "--monitor", "sex", "--json")
    assert code == 0
    rows = rows_of(loans)
    women = [row for row in rows if row["sex"] == "f"]
    answer = {(row["policy"], row["group"]): row for row in json.loads(out)["monitored"]}
    assert answer["proposal", "f"]["acceptance"]["value"] == pytest.approx(
        np.mean([int(row["score"]) >= 50 for row in women])
    )
    assert answer["logged", "f"]["acceptance"]["value"] == pytest.approx(
        np.mean([int(row["approved"]) for row in women])
    )
    deserving = [row for row in women if row["repaid"] == "1"]
    weights = [1 / float(row["propensity"]) for row in deserving]
    expected = sum(w * (int(row["score"]) >= 50) for w, row in zip(weights, deserving, strict=True)) / sum(weights)
    assert answer["proposal", "f"]["acceptance_of_deserving"]["value"] == pytest.approx(expected)
    assert run("offpolicy", loans, *words, "--monitor", "sex")[0] == 0

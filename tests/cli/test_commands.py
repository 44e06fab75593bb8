"""The answers of the commands, as tables and as JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lenience import Belief, Discounted, FiniteHorizon
from lenience.cli.options import console, note_rounding, table
from lenience.cli.progress import solving
from lenience.core.errors import InputError
from lenience.paper import Claim

Run = Any
Rejection = Callable[..., InputError]


def test_solve_json(run: Run) -> None:
    code, out, err = run("solve", "--cost", "0.8", "--discount", "0.99", "--prior", "2,1", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["accept"] is True
    assert 1.02916652 < answer["value"]["lower"] <= answer["value"]["upper"] < 1.02916655
    assert answer["certificate"]["undecided"] == 0
    thresholds = {entry["n"]: entry["accept_from"] for entry in answer["thresholds"]}
    assert (thresholds[10], thresholds[100], len(thresholds)) == (7, 78, 1000)


def test_solve_says_what_to_do_before_the_figures(run: Run) -> None:
    _, out, err = run("solve", "--cost", "0.8", "--discount", "0.99")
    words = " ".join(out.split())
    assert "above the minimum: 37.6% after 2 observations, 65.4% after 10, 77.8% after 100" in words
    assert (
        "This is expected to earn 1.03 in total. Someone who knew the success rate in advance would expect 2, so"
        in words
    )
    assert "learning costs 0.971" in words
    assert words.index("above the minimum") < words.index("leniency c − cₙ") < words.index("Discounted(cost=0.8")
    assert "a success earns 0.2 and a failure loses 0.8" in words
    _, out, err = run("solve", "--cost", "0.8", "--discount", "0.95")
    assert "This earns nothing and loses nothing." in " ".join(out.split())
    assert err == ""


def test_gittins_json(run: Run) -> None:
    _, out, _ = run("gittins", "--discount", "0.99", "--prior", "2,1", "--json")
    index = json.loads(out)["index"]
    assert index["lower"] <= 0.86985999443 <= index["upper"]
    _, out, _ = run("gittins", "--discount", "0.9", "--table", "3", "--json")
    assert [(row["alpha"], row["beta"]) for row in json.loads(out)["indices"]] == [(1, 1), (1, 2), (2, 1)]


def test_threshold_json(run: Run) -> None:
    _, out, _ = run("threshold", "--cost", "0.8", "--discount", "0.99", "-n", "10", "--json")
    answer = json.loads(out)
    assert answer["thresholds"][0]["threshold"]["lower"] == pytest.approx(0.654376406, abs=1e-9)
    assert answer["leniency_rate"] == pytest.approx(2.61800741, abs=1e-8)
    _, out, _ = run("threshold", "--cost", "0.8", "--discount", "0.99", "-n", "10")
    assert out.startswith("Accept while the success rate is above the minimum: 65.4% after 10 observations.")


def test_characteristics_json(run: Run) -> None:
    _, out, _ = run("characteristics", "--cost", "0.8", "--discount", "0.99", "--p", "0.9", "--rows", "500", "--json")
    at_p, averaged = json.loads(out)["characteristics"]
    assert at_p["p"] == 0.9
    assert averaged["p"] is None
    assert 0 < at_p["shut_out"]["lower"] <= at_p["shut_out"]["upper"] < 1
    assert at_p["accepted"]["upper"] is None


def test_regret_json(run: Run) -> None:
    _, out, _ = run("regret", "--cost", "0.5", "--horizon", "50", "--json")
    rows = json.loads(out)["rows"]
    assert min(rows, key=lambda row: float(row["regret"]))["policy"] == "optimal"


def test_delay_json(run: Run, tmp_path: Path) -> None:
    words = ("delay", "--cost", "0.8", "--arrivals", "50", "--discount-rate", "0.5", "--label-delay", "0.25")
    files = [str(tmp_path / "values.png"), str(tmp_path / "limits.svg")]
    code, out, _ = run(*words, "--applicants", "9", "--figure", files[0], "--limits-figure", files[1], "--json")
    assert code == 0
    answer = json.loads(out)
    assert (answer["limit"], answer["accept"], answer["accept_now"]) == (1, True, 1)
    assert answer["value"]["lower"] <= 0.687839 <= answer["value"]["upper"]
    values = {row["policy"]: row["value"] for row in answer["values"]}
    assert values["blind to pending"]["upper"] < -0.35
    assert answer["figures"] == files
    assert all(Path(name).stat().st_size > 10_000 for name in files)
    code, out, _ = run(*words, "--pending", "1")
    assert code == 0
    assert "Reject for now" in " ".join(out.split())


def test_simulate_json_is_reproducible(run: Run, tmp_path: Path) -> None:
    words = (
        "simulate",
        "--cost",
        "0.5",
        "--discount",
        "0.9",
        "--horizon",
        "60",
        "--replications",
        "300",
        "--seed",
        "3",
    )
    code, out, _ = run("simulate", "--cost", "0.5", "--horizon", "9", "--replications", "1", "--json")
    assert (code, '"lower": null' in out) == (0, True)  # of one run there is no interval
    several = ("--policy", "greedy", "--policy", "epsilon-greedy:epsilon=0.2", "--world", "bernoulli:p=0.7")
    figure, folder = str(tmp_path / "compare.png"), str(tmp_path / "results")
    code, out, _ = run(*words, *several, "--figure", figure, "--save", folder, "--json")
    assert code == 0
    first = json.loads(out)
    assert {row["policy"] for row in first["summary"]} >= {"greedy", "epsilon-greedy (epsilon=0.2)", "optimum"}
    assert Path(figure).stat().st_size > 5000
    assert sorted(path.name for path in Path(folder).iterdir()) == [
        "over_time.parquet",
        "replications.parquet",
        "summary.parquet",
    ]
    again = json.loads(run(*words, *several, "--json")[1])
    assert again["summary"] == first["summary"]
    code, out, _ = run(*words)
    assert code == 0
    assert "Behind optimum:" in out
    assert "Shut out:" in out


def test_sweep(run: Run, rejection: Rejection, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(
        'cost = [0.5, 0.6]\nhorizon = 40\nreplications = 100\n[[policies]]\nname = "greedy"\n'
        '[[worlds]]\nname = "bernoulli"\np = 0.7\n'
    )
    output = tmp_path / "results.parquet"
    code, out, _ = run("sweep", str(file), "--output", str(output), "--json")
    assert code == 0
    assert {row["cost"] for row in json.loads(out)["rows"]} == {0.5, 0.6}
    assert output.read_bytes().startswith(b"PAR1")
    error = rejection("sweep", str(file), "--output", str(tmp_path / "results.xlsx"))
    assert (error.field, error.code) == ("--output", "invalid_value")
    plain = tmp_path / "results.csv"
    code, out, _ = run("sweep", str(file), "--output", str(plain))
    assert code == 0
    assert "behind optimum" in out
    assert re.search(r"optimum +-?\d+\.\d+ ± \d", out)
    assert "Behind optimum:" in out
    assert plain.read_text().splitlines()[0].replace('"', "").startswith("cost,discount,horizon,world,policy,metric")
    file.write_text('cost = 0.5\nhorizon = 40\n[[worlds]]\nname = "utopia"\n')
    code, _, err = run("sweep", str(file))
    assert code == 2
    assert "line 4" in err
    assert "utopia" in err


def test_paper_report(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # That the claims stand is tested with the study; here, what the command makes of them.
    claims = [
        Claim("3.1", "Proposition 3: E[V] [/a]", "holds", "seen", "more"),
        Claim("4", "another", "made precise", "measured"),
    ]
    monkeypatch.setattr("lenience.paper.check.check_paper", lambda seed: claims)
    report = tmp_path / "paper.html"
    code, out, _ = run("paper", "--output", str(report), "--json")
    assert code == 0
    assert [claim["verdict"] for claim in json.loads(out)["claims"]] == ["holds", "made precise"]
    page = report.read_text()
    assert "<svg" in page
    assert "src=" not in page
    assert "Proposition 3" in page
    claims.append(Claim("5", "a third", "fails", "contradicted"))
    code, out, _ = run("paper", "--output", str(report))
    assert code == 1
    assert "2 of 3 claims stand" in out
    assert "Proposition 3: E[V] [/a]" in out


def test_solve_several_segments(run: Run) -> None:
    given = ["solve", "--cost", "0.8", "--discount", "0.998", "--segment", "many=0.9", "--segment", "few=0.05"]
    _, out, _ = run(*given, "--json")
    many, few = json.loads(out)["segments"]
    assert (many["accept"], few["accept"]) == (True, False)
    assert few["volume"] == pytest.approx(0.05 * 499)
    assert few["volume_to_start"] == pytest.approx(32.14, abs=0.01)
    assert many["discount"] == pytest.approx(0.998 * 0.9 / (0.002 + 0.998 * 0.9))
    code, out, _ = run(*given)
    assert code == 0
    assert "never starts" in out
    assert run("solve", "--cost", "0.8", "--discount", "0.9", "--segment", "half")[0] == 2


def test_solve_tells_the_volume_at_which_one_would_start(run: Run) -> None:
    _, out, _ = run("solve", "--cost", "0.8", "--discount", "0.95", "--json")
    answer = json.loads(out)
    assert (answer["accept"], answer["volume"]) == (False, pytest.approx(19.0))
    assert answer["volume_to_start"] == pytest.approx(32.1, abs=0.1)


def test_rates_and_horizons(run: Run) -> None:
    _, out, _ = run("solve", "--cost", "0.8", "--arrivals", "99", "--discount-rate", "1", "--json")
    assert json.loads(out)["objective"]["discount"] == pytest.approx(0.99)
    _, out, _ = run("solve", "--cost", "0.8", "--horizon", "50", "--json")
    assert json.loads(out)["objective"]["horizon"] == 50
    assert len(json.loads(out)["thresholds"]) == 50


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "--cost", "0.8", "--discount", "0.99"),
        ("solve", "--cost", "0.8", "--horizon", "20"),
        ("gittins", "--discount", "0.9"),
        ("gittins", "--discount", "0.9", "--table", "14", "--tolerance", "1e-3"),
        ("threshold", "--cost", "0.8", "--discount", "0.9"),
        ("characteristics", "--cost", "0.8", "--discount", "0.9", "--rows", "300"),
        ("characteristics", "--cost", "0.8", "--discount", "0.9", "--rows", "300", "--greedy"),
        ("regret", "--cost", "0.5", "--horizon", "20"),
    ],
    ids=" ".join,
)
def test_tables_are_printed(run: Run, words: tuple[str, ...]) -> None:
    code, out, _ = run(*words)
    assert code == 0
    assert len(out.splitlines()) >= 2
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("figure", "ending"),
    [("values", "png"), ("values", "svg"), ("thresholds", "pdf"), ("characteristics", "png"), ("regret", "svg")],
)
def test_figures(run: Run, tmp_path: Path, figure: str, ending: str) -> None:
    path = tmp_path / f"figure.{ending}"
    extra = ("--most", "100") if figure == "regret" else ("--discount", "0.9")
    code, out, _ = run("plot", figure, "--output", str(path), *extra, "--json")
    assert code == 0
    assert json.loads(out)["file"] == str(path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(start)
    if ending == "png":
        pixels = pytest.importorskip("matplotlib.image").imread(path)
        assert len({tuple(pixel) for pixel in pixels.reshape(-1, pixels.shape[2]).tolist()}) > 10
    if ending == "svg":
        shown = {"values": "success rate p̂ of the belief", "regret": "number of individuals H"}[figure]
        assert f"<!-- {shown} -->" in path.read_text(encoding="utf-8")


def test_demo_serves_a_portfolio_whose_log_holds(run: Run, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lenience", "demo", "--folder", str(tmp_path)]
    done = subprocess.run([*command, "--port", "0", "--seconds", "0.5", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["url"].startswith("http://127.0.0.1:")
    code, out, _ = run("audit", "--database", str(tmp_path / "demo.db"), "--json")
    assert code == 0
    assert json.loads(out)["decisions"] > 2_500


def test_delay_leaves_out_what_is_too_large(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["delay", "--cost", "0.6", "--arrivals", "20", "--discount-rate", "0.5", "--label-delay", "0.5"]
    exact = {row["policy"]: row["value"] for row in json.loads(run(*given, "--json")[1])["values"]}
    monkeypatch.setattr("lenience.cli.delay.MOST_UPDATES", 0)
    _, out, err = run(*given, "--json")
    assert err.startswith("6 values would take too long to compute exactly: simulating, about ")
    simulated = json.loads(out)["simulated"]
    assert len(simulated) == 6
    for row in simulated:  # two and a half times the half-width holds all six but once in ten thousand
        assert abs(row["mean"] - exact[row["policy"]]["lower"]) <= 2.5 * row["half_width"] + 1e-6, row
    monkeypatch.setattr("lenience.cli.delay.MOST_SIMULATED", 0)
    code, out, _ = run(*given)
    assert code == 0
    rows = {line.split("  ")[0].strip(): line.split()[-1] for line in out.splitlines() if line.strip()}
    assert float(rows["exposure limit"]) > 0
    assert rows["blind to pending"] == rows["cap 3"] == rows["wait for every label"] == "–"
    assert "–: an exact value would take too long" in out
    _, out, _ = run(*given, "--json")
    assert [row["policy"] for row in json.loads(out)["values"]] == ["exposure limit"]
    words = ("delay", "--cost", "0.85", "--arrivals", "9000", "--discount-rate", "0.1", "--label-delay", "1")
    answer = json.loads(run(*words, "--json")[1])
    assert answer["limit"] > 20
    assert answer["certificate"]["error"] < 1e-3 * answer["certificate"]["estimate"]
    assert answer["value"]["lower"] < answer["certificate"]["estimate"] < answer["value"]["upper"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("threshold --cost 0.8 --discount 0.9999 -n 10", "Finding thresholds …"),
        ("simulate --cost 0.8 --horizon 300 --replications 40 --json", "Simulating 40 replications of 300 arrivals …"),
        (
            "delay --cost 0.8 --arrivals 9 --discount-rate 0.1 --label-delay 1",
            "Solving for labels that come late …\nEvaluating what policies earn with late labels …",
        ),
    ],
)
def test_work_that_takes_a_moment_says_what_it_is(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    monkeypatch.setattr("lenience.cli.progress.SENTENCE_AFTER", 0.0)
    code, _, err = run(*words.split())
    assert (code, err) == (0, said + "\n")


def _later(done: threading.Event, label: str, work: Any, estimate: Any) -> Any:
    """Work that is not done before its length is estimate."""

    def waiting() -> Any:
        assert done.wait(20)
        return work()

    def telling() -> Any:
        done.set()
        return estimate()

    return solving(label, waiting, telling)


def test_a_long_solve_is_foretold_and_its_thresholds_are_those_of_the_table(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["solve", "--cost", "0.8", "--discount", "0.99", "--rows", "200"]
    _, out, err = run(*given)
    assert "leniency c − cₙ" in out
    assert err == ""
    monkeypatch.setattr("lenience.policies.beliefs.optimal.LONG", 0.0)
    monkeypatch.setattr("lenience.cli.solve.LONG_WAIT", 0.0)
    done = threading.Event()
    monkeypatch.setattr("lenience.cli.progress.BAR_AFTER", 0.01)
    monkeypatch.setattr("lenience.cli.solve.solving", lambda label, work, estimate: _later(done, label, work, estimate))
    code, out, err = run(*given)
    assert code == 0
    assert err == "This takes about 0 s: Discounted(cost=0.8, discount=0.99) looks far ahead.\n"
    assert out.startswith("Accept: 1 of 2 succeeded (50%)")
    assert "0.7700 … 0.7800" in out
    assert "precise to one observation" in out
    monkeypatch.undo()
    seconds = [Discounted(0.8, discount).solve_seconds(Belief(2, 1)) for discount in (0.99, 0.9999, 0.999999)]
    assert seconds[0] < 0.01 < seconds[1] < 1 < seconds[2] < 60
    assert FiniteHorizon(0.8, 5_000_000).solve_seconds(Belief(2, 1)) > 1


def test_what_rounding_leaves_open_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    note_rounding(1.1e-9, 1e-9)
    assert capsys.readouterr().err == ""
    note_rounding(2.9e-7, 1e-9)
    assert "rounding limits the precision to 3e-07" in capsys.readouterr().err


def test_in_a_narrow_window_words_are_broken_and_not_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    grid = table()
    for heading in ("observations", "successes"):
        grid.add_column(heading, justify="right")
    grid.add_row("2", "none")
    console().print(grid)
    out = capsys.readouterr().out
    assert "…" not in out
    assert sorted("".join(out.split()).replace("─", "")) == sorted("observationssuccesses2none")

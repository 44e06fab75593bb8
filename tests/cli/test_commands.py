"""The command line: answers, JSON, and one line for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lenience.cli import COMMANDS, cli, main

Run = Any


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lenience", *words])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as exit_:
            main()
        output = capsys.readouterr()
        return int(exit_.value.code or 0), output.out, output.err

    return call


def test_solve_json(run: Run) -> None:
    code, out, err = run("solve", "--cost", "0.8", "--discount", "0.99", "--prior", "2,1", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["accept"] is True
    assert 1.02916652 < answer["value"]["lower"] <= answer["value"]["upper"] < 1.02916655
    assert answer["certificate"]["undecided"] == 0
    thresholds = {entry["n"]: entry["accept_from"] for entry in answer["thresholds"]}
    assert (thresholds[10], thresholds[100], len(thresholds)) == (7, 78, 1000)


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
    code, out, _ = run("plot", figure, "--output", str(path), "--discount", "0.9", "--most", "100", "--json")
    assert code == 0
    assert json.loads(out)["file"] == str(path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(start)


def test_demo(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("demo", "--folder", str(tmp_path))
    assert code == 0
    assert "proved optimal for n ≤ 746" in " ".join(out.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure1.png", "thresholds.png"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("solve", "--cost", "1.2", "--discount", "0.9"), "cost must be a number strictly between 0 and 1, not 1.2"),
        (("solve", "--cost", "0.8", "--discount", "1"), "discount must be a number from 0 to below 1, not 1.0"),
        (("solve", "--cost", "0.8", "--discount", "nan"), "discount must be a number from 0 to below 1, not nan"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "2,3"), "s must be a number from 0 to n = 2"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "0,0"), "n must be a number above 0"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "2"), "prior must be n,s"),
        (("solve", "--cost", "0.8"), "give --discount"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--arrivals", "5"), "not both"),
        (("solve", "--cost", "0.8", "--horizon", "0"), "horizon must be a whole number of at least 1, not 0"),
        (("solve", "--cost", "0.8", "--discount", "0.99999999999"), "minutes"),
        (("solve", "--cost", "much", "--discount", "0.9"), "'much' is not a valid float"),
        (("solve", "--discount", "0.9"), "Missing option '--cost'"),
        (("solve", "--cost", "0.8", "--colour", "red"), "No such option"),
        (("gittins", "--discount", "0.9", "--table", "1"), "table must be a whole number from 2 to 1000, not 1"),
        (("threshold", "--cost", "0.8", "--discount", "0.9", "-n", "0"), "n must be a number above 0, not 0"),
        (("characteristics", "--cost", "0.8", "--discount", "0.9", "--p", "2"), "p must be a number from 0 to 1"),
        (("plot", "values", "--output", "figure.gif"), "output must be a file name ending in .png, .svg, .pdf"),
        (("plot", "values", "--output", "/nowhere/figure.png"), "output must be in a folder that exists"),
        (("sovle",), "no command 'sovle'; there are audit, characteristics, demo"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_with_an_example_and_json(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Example:" in out
    assert f"lenience {command}" in out
    assert "--json" in out
    assert cli.get_command.__doc__


def test_help_lists_every_command(run: Run) -> None:
    _, out, _ = run("--help")
    for command in COMMANDS:
        assert command in out


@pytest.mark.parametrize("code", ["import lenience", "import lenience.cli"])
def test_starting_loads_nothing_heavy(code: str) -> None:
    script = f"{code}; import sys; print([m for m in ('numba', 'scipy', 'matplotlib') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_loads_nothing_heavy_and_python_m_works() -> None:
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lenience", "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage:" in found.stdout
    for heavy in ("numba", "scipy", "matplotlib", "numpy"):
        assert f" {heavy}\n" not in found.stderr

"""Every study runs by its name, here on the smallest setting that it has, and says what it should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from research import STUDIES, fico_report, late_labels
from research.__main__ import main


def test_the_list_names_every_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = re.findall(r"^  ([a-z-]+)  +(\S.*\.)$", capsys.readouterr().out, re.MULTILINE)
    assert listed == [(name, about) for name, (_, about) in STUDIES.items()]


def test_an_unknown_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["weather"]) == 2
    assert (
        "NAME must be one of delayed-benchmark, estimated-limits, exploration, exploration-bound, features"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m research {name}")


def test_two_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    main(["two-worlds", "--cost", "0.61"])
    head, line, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[:4] for row in rows] == [
        ["| 0.61", "0.723, 0.479", "0.99", "11.3"],
        ["| 0.61", "0.723, 0.479", "0.999", "112.7"],
    ]
    assert head.count("|") == line.count("|") == rows[0].count("|")


def test_prior_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    main(["prior-worlds", "--worlds", "2", "--features", "1"])
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[:3] for row in rows] == [
        [f"| {discount}", cost, "1"] for discount in ("0.99", "0.999") for cost in ("0.3", "0.8")
    ]
    assert {row.count("|") for row in rows} == {head.count("|")}


def test_hypothesis_weights(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hypothesis-weights", "--labels", "20", "--draws", "1"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("variance")
    assert rows[0].startswith("german credit")
    assert rows[-1].startswith("mean")
    for row in rows:
        weights = [float(number) for number in row[16:].split()]
        assert sum(weights) == pytest.approx(1.0, abs=0.02)


def test_free_labels(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.free_labels.DEPTHS", {0.99: 300})
    main(["free-labels", "--cost", "0.8", "--steps", "18"])
    out = capsys.readouterr().out
    assert out.startswith("75 problems")  # four shares × four ratios, less one that is impossible, × five sizes
    factors = [float(number) for number in re.findall(r"mean ([\d.]+)", out)]
    assert len(factors) == 4 + 5
    assert all(0.4 < factor < 2.5 for factor in factors)


def test_late_labels(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        main(["late-labels", "weather"])
    assert "part must be one of exact, laws, rates, figures, not 'weather'" in capsys.readouterr().err
    monkeypatch.setitem(late_labels.PARTS, "rates", lambda: print("here"))
    main(["late-labels", "rates"])
    assert re.fullmatch(r"here\n\[rates: \d+ s\]\n", capsys.readouterr().out)


def test_simulation_figures(tmp_path: Path) -> None:
    main(["simulation-figures", "comparison", "--folder", str(tmp_path), "--replications", "20"])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"simulate-comparison.png", "simulate-regret.png"}


def test_the_fico_study_computes_only_what_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def study(*_: object, **__: object) -> None:
        raise AssertionError("every setting is stored")

    monkeypatch.setattr(fico_report, "study", study)
    rows = fico_report.run()
    fico_report.draw(rows, tmp_path / "fico.png")
    assert (tmp_path / "fico.png").read_bytes().startswith(b"\x89PNG")


def test_the_package_does_not_import_research() -> None:
    for path in (Path(__file__).parents[2] / "src").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) research\b", path.read_text(encoding="utf-8"), re.MULTILINE), path

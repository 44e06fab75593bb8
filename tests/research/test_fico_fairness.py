"""The study of the price of fairness on the FICO tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.fico_fairness import main


def test_the_study_draws_both_figures_and_prints_each_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--folder", str(tmp_path), "--costs", "0.8", "--discount", "0.9", "--points", "2"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fair-aware.png", "fair-blind.png"]
    out = capsys.readouterr().out
    assert out.count("break-even") == 2
    assert out.count("asian: accepted") == 4

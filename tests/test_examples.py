"""The examples run from beginning to end and print their results."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAY = {
    "custom_policy": ["checked: probabilities", "the optimum is worth 1.22", "behind the optimum by"],
    "fraud_features": ["of 600 shipped", "Reject: expected success", "Ship every order below an amount of 2? The"],
    "late_labels": ["0 outcomes are pending, and the limit is 2", "accept 2", "exposure limit", "blind to pending"],
    "lender": ["1,500 rows read", "students starts", "Wrote"],
    "service_client": ["40 decisions in the log", "The audit passed."],
}


def test_each_example_is_tested() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(SAY)


@pytest.mark.parametrize("name", sorted(SAY))
def test_example(name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", [name, *([str(tmp_path)] if name == "lender" else [])])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    said = capfd.readouterr().out
    for part in SAY[name]:
        assert part in said
    if name == "lender":
        assert "students" in (tmp_path / "segments.html").read_text(encoding="utf-8")

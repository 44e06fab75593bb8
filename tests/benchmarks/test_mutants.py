"""The mutation tests themselves: every listed fault still applies, and every target and test exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mutants.__main__ import listed, reasons, sampled, without_line
from benchmarks.mutants.sites import mutants_of
from benchmarks.mutants.targets import TARGETS

ROOT = Path(__file__).parents[2]


def test_every_listed_fault_changes_its_file() -> None:
    for trial in listed():
        assert trial.source != (ROOT / trial.path).read_text()
        compile(trial.source, trial.path, "exec")
        for tests in trial.tests:
            assert (ROOT / tests.split(" ")[0]).exists(), tests


def test_every_target_has_its_tests() -> None:
    for target in TARGETS:
        assert (ROOT / target.path).exists(), target.path
        for tests in target.tests:
            assert (ROOT / tests.split(" ")[0].split("::")[0]).exists(), tests


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    first, again, other = sampled(20, 1, "root.py"), sampled(20, 1, "root.py"), sampled(20, 2, "root.py")
    assert first == again
    assert first != other
    assert len({trial.source for trial in first}) == 20


def test_named_equivalents_are_mutants_that_exist() -> None:
    names = {
        without_line(f"{mutant.path}:{mutant.line} {mutant.name}")
        for target in TARGETS
        for mutant in mutants_of(target.path, (ROOT / target.path).read_text(), target.skipped)
    }
    for name, reason in reasons().items():
        assert name in names, name
        assert len(reason) > 20, name


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("a + b", ["f: + becomes -", "f: drop the term after +"]),
        ("(a + 1) * b", ["f: * becomes /", "f: + becomes -", "f: drop the term after +", "f: 1 becomes 2"]),
        ("min(a, b)", ["f: min becomes max"]),
        ("a <= b and not c", ["f: and becomes or", "f: <= becomes <", "f: not is dropped"]),
        ("-a if True else 0.5", ["f: True becomes False", "f: - is dropped", "f: 0.5 becomes 1.0"]),
    ],
)
def test_changes_of_an_expression(code: str, changes: list[str]) -> None:
    source = (
        f'def f(a: int = 3) -> int:\n    """1 + 1."""\n    if a:\n        raise ValueError(1 + 1)\n    return {code}\n'
    )
    found = mutants_of("f.py", source)
    assert [mutant.name for mutant in found] == changes
    for mutant in found:
        compile(source[: mutant.start] + mutant.text + source[mutant.end :], "f.py", "exec")


def test_what_is_skipped_is_not_changed() -> None:
    source = "LIMIT = 3\n\ndef cost(a):\n    return a + LIMIT\n"
    assert mutants_of("f.py", source, frozenset({"LIMIT", "cost"})) == []
    assert len(mutants_of("f.py", source)) == 3

"""The mutation tests themselves: every listed fault still applies, and every target and test exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mutants.sites import mutants_of
from benchmarks.mutants.targets import PACKAGES, TARGETS
from benchmarks.mutants.trials import listed, package_of, reasons, sampled

ROOT = Path(__file__).parents[2]


def test_every_listed_fault_changes_its_file() -> None:
    for trial in listed():
        assert trial.source != (ROOT / trial.path).read_text()
        compile(trial.source, trial.path, "exec")
        for tests in trial.tests:
            assert (ROOT / tests.arguments.split(" ")[0]).exists(), tests


def test_every_target_has_its_tests() -> None:
    for target in TARGETS:
        assert (ROOT / target.path).exists(), target.path
        for tests in (*target.small, *target.tests):
            assert (ROOT / tests.split(" ")[0].split("::")[0]).exists(), tests


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    first, again, other = sampled(20, 1, "root.py"), sampled(20, 1, "root.py"), sampled(20, 2, "root.py")
    assert first == again
    assert first != other
    assert len({trial.source for trial in first}) == 20


def test_every_package_has_its_share_of_a_sample() -> None:
    packages = [package_of(trial.path) for trial in sampled(4 * len(PACKAGES), 3)]
    assert {package: packages.count(package) for package in PACKAGES} == dict.fromkeys(PACKAGES, 4)


def test_named_equivalents_are_mutants_that_exist() -> None:
    names = {
        f"{mutant.path} {mutant.name}"
        for target in TARGETS
        for mutant in mutants_of(target.path, (ROOT / target.path).read_text(), target.skipped)
    }
    for name, reason in reasons().items():
        assert name in names, name
        assert len(reason) > 20, name


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("a + b", ["+ becomes -: return a - b", "drop the term after +: return a"]),
        (
            "(a + 1) * b",
            [
                "* becomes /: return (a + 1) / b",
                "+ becomes -: return (a - 1) * b",
                "drop the term after +: return (a) * b",
                "1 becomes 2: return (a + 2) * b",
            ],
        ),
        ("4e-16 * a", ["* becomes /: return 4e-16 / a", "4e-16 becomes 0.0: return 0.0 * a"]),
        ("zip(a, b, strict=True)", []),
        ("a * (1.0 - 4e-16)", []),
        ("min(a, b)", ["min becomes max: return max(a, b)"]),
        (
            "a <= b and not c",
            [
                "and becomes or: return a <= b or not c",
                "<= becomes <: return a < b and not c",
                "not is dropped: return a <= b and c",
            ],
        ),
        (
            "-a if True else 0.5",
            [
                "True becomes False: return -a if False else 0.5",
                "- is dropped: return a if True else 0.5",
                "0.5 becomes 1.0: return -a if True else 1.0",
            ],
        ),
    ],
)
def test_changes_of_an_expression(code: str, changes: list[str]) -> None:
    source = (
        f'def f(a: int = 3) -> int:\n    """1 + 1."""\n    if a:\n        raise ValueError(1 + 1)\n    return {code}\n'
    )
    mutants = mutants_of("f.py", source)
    assert [mutant.name for mutant in mutants] == [f"f: {change}" for change in changes]
    for mutant in mutants:
        faulty = source[: mutant.start] + mutant.text + source[mutant.end :]
        assert faulty.split("\n")[mutant.line - 1].strip() == mutant.name.split(": ")[-1]


def test_changes_of_an_assignment_in_place() -> None:
    names = [mutant.name for mutant in mutants_of("f.py", "def f(a):\n    a[2] -= b\n")]
    assert names == ["f: -= becomes +=: a[2] += b", "f: 2 becomes 3: a[3] -= b"]


def test_what_is_skipped_is_not_changed() -> None:
    source = "LIMIT = 3\n\ndef cost(a):\n    return a + LIMIT\n"
    assert mutants_of("f.py", source, frozenset({"LIMIT", "cost"})) == []
    assert len(mutants_of("f.py", source)) == 3

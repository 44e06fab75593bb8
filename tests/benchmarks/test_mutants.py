"""The mutation tests themselves: every listed fault still applies, and every target and test exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants.probe import Probe
from benchmarks.mutants.sandbox import _importers, _mirror
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


def test_a_copy_follows_the_project(tmp_path: Path) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    for name in ("src/a.py", "src/b.py", "tests/test_a.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "pyproject.toml").write_text("")
    assert len(_mirror(root, copy)) == 4
    assert _mirror(root, copy) == []
    (root / "src/a.py").write_text("changed")
    (root / "src/b.py").unlink()
    assert _mirror(root, copy) == [copy / "src/a.py"]
    assert (copy / "src/a.py").read_text() == "changed"
    assert not (copy / "src/b.py").exists()


def test_importers_are_followed_through_other_files(tmp_path: Path) -> None:
    sources = {
        "low": "X = 1",
        "middle": "from package.low import X",
        "top": "from package import middle",
        "other": "import math",
    }
    for name, source in sources.items():
        (tmp_path / "package").mkdir(exist_ok=True)
        (tmp_path / "package" / f"{name}.py").write_text(source)
    importers = _importers(tmp_path)
    assert {path.stem for path in importers[tmp_path / "package/low.py"]} == {"low", "middle", "top"}
    assert {path.stem for path in importers[tmp_path / "package/other.py"]} == {"other"}


def test_promising_and_quick_tests_come_first(tmp_path: Path) -> None:
    class Item:
        def __init__(self, nodeid: str) -> None:
            self.nodeid = nodeid

    items: list[Any] = [Item("slow"), Item("quick"), Item("sharp"), Item("new")]
    Probe({"slow": 9.0, "quick": 1.0, "sharp": 5.0}, {"sharp": 2}, tmp_path / "x").pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["sharp", "new", "quick", "slow"]

"""The mutation tests themselves: every listed fault still applies, and every target and test exists."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

from benchmarks.mutants.calls import CallRecorder, _forget_results, _reached
from benchmarks.mutants.kernel_graph import KernelGraph
from benchmarks.mutants.overlay import overlay
from benchmarks.mutants.probe import Probe
from benchmarks.mutants.sandbox import _mirror
from benchmarks.mutants.sites import mutants_of
from benchmarks.mutants.targets import NUMBERS, PACKAGES, TARGETS
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
    assert all(package in PACKAGES and (ROOT / tests).exists() for package, tests in NUMBERS.items())


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    first, again, other = sampled(20, 1, ["root.py"]), sampled(20, 1, ["root.py"]), sampled(20, 2, ["root.py"])
    assert first == again
    assert first != other
    assert len({trial.source for trial in first}) == 20


def test_every_package_has_its_share_of_a_sample() -> None:
    packages = [package_of(trial.path) for trial in sampled(4 * len(PACKAGES), 3)]
    assert {package: packages.count(package) for package in PACKAGES} == dict.fromkeys(PACKAGES, 4)


def test_every_file_can_have_its_share_of_a_sample() -> None:
    paths = [trial.path for trial in sampled(10, 3, ["offers/band.py", "stopping/root.py"], by_file=True)]
    assert sorted({path.split("/")[-1]: paths.count(path) for path in paths}.items()) == [
        ("band.py", 5),
        ("root.py", 5),
    ]


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


def test_kernels_are_followed_through_constants_and_other_files(tmp_path: Path) -> None:
    kernel = "@compiled\ndef {}(x):\n    return {}\n"
    sources = {
        "low": "BASE = 2.0\nSCALE = 3.0 * BASE\n"
        + kernel.format("power", "x * SCALE")
        + "def plain(x):\n    return x\n",
        "top": "from low import power\n" + kernel.format("walk", "power(x)") + kernel.format("alone", "x"),
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    graph, low = KernelGraph(tmp_path), tmp_path / "low.py"

    def names(where: str = "") -> set[str]:
        return {kernel.name for kernel in graph.concerned(low, where)}

    assert names("BASE") == names("power") == names() == {"power", "walk"}
    assert names("plain") == set()


def test_a_process_imports_the_fault_instead_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((SourceFileLoader, "get_code"), (AssertionRewritingHook, "exec_module")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # undone after the test
    for name in ("faulty_module", "sound_module"):
        (tmp_path / f"{name}.py").write_text("def f(a):\n    return a + 1\n")
    path = tmp_path / "faulty_module.py"
    overlay(str(path), "def f(a):\n    return a - 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert importlib.import_module("faulty_module").f(1) == 0
    assert importlib.import_module("sound_module").f(1) == 2


def test_pytest_imports_the_fault_as_well(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loader reads the files on its command line, without the usual one."""
    for owner, name in ((SourceFileLoader, "get_code"), (AssertionRewritingHook, "exec_module")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    path = tmp_path / "rewritten_module.py"
    path.write_text("def f(a):\n    return a + 1\n")
    overlay(str(path), "def f(a):\n    return a - 1\n")
    specification = spec_from_file_location("rewritten_module", path, loader=AssertionRewritingHook(pytestconfig))
    assert specification is not None
    module = module_from_spec(specification)
    AssertionRewritingHook(pytestconfig).exec_module(module)
    assert module.f(1) == 0


LIBRARY = """
from functools import cache
import numba

@numba.njit
def inner(x):
    return x

@numba.njit
def outer(x):
    return inner(x)

@cache
def remembered():
    return 1

class Rule:
    def decide(self):
        def nested():
            return 1
        return nested()
"""


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "src").mkdir()
    path = tmp_path / "src/some_library.py"
    path.write_text(LIBRARY)
    specification = spec_from_file_location("some_library", path)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    sys.modules["some_library"] = module
    yield module
    del sys.modules["some_library"]


def test_calls_of_a_test_include_those_of_its_fixtures(tmp_path: Path, library: Any) -> None:
    recorder = CallRecorder(tmp_path)
    before = sys.gettrace()
    sys.settrace(recorder._trace)
    try:
        with recorder._recording() as calls:
            library.remembered()
            with recorder._recording() as of_fixture:
                library.Rule().decide()
            library.remembered()
        with recorder._recording() as again:
            library.remembered()
        _forget_results(tmp_path)
        with recorder._recording() as forgotten:
            library.remembered()
    finally:
        sys.settrace(before)
    decided = {"src/some_library.py Rule.decide", "src/some_library.py Rule.decide.nested"}
    assert of_fixture == decided
    assert calls == decided | {"src/some_library.py remembered"}
    assert again == set()
    assert forgotten == {"src/some_library.py remembered"}


def test_a_kernel_calls_every_kernel_that_it_names(library: Any) -> None:
    assert _reached(library.outer) == [library.outer, library.inner]
    assert _reached(library.inner) == [library.inner]


def test_promising_and_quick_tests_come_first(tmp_path: Path) -> None:
    class Item:
        def __init__(self, nodeid: str) -> None:
            self.nodeid = nodeid

    items: list[Any] = [Item("slow"), Item("quick"), Item("sharp"), Item("unconcerned")]
    Probe({"slow": 9.0, "quick": 1.0, "sharp": 5.0}, {"sharp": 2}, tmp_path / "x").pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["sharp", "quick", "slow"]

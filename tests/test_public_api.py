"""Public names: they load, documentation uses no others, and their docstrings are complete."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lenience
from docstring_coverage import Documented, documented_objects, public_modules, public_names, report

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]

# Packages whose docstrings are complete. When you finish another one, add it here; see
# `python tests/docstring_coverage.py PACKAGE` for what is missing.
DOCUMENTED = [
    "analysis",
    "client",
    "core",
    "data",
    "history",
    "models",
    "objectives",
    "paper",
    "plot",
    "policies",
    "reports",
    "segments",
    "simulation",
    "solvers",
]


def test_the_top_level_has_few_names() -> None:
    names = [name for name in public_names(lenience) if f"lenience.{name}" not in public_modules()]
    assert 30 <= len(names) <= 42


@pytest.mark.parametrize("module", public_modules())
def test_public_names_load(module: str) -> None:
    names = public_names(public_modules()[module])
    assert names == sorted(names)
    for name in names:
        assert getattr(public_modules()[module], name).__doc__, name
    assert set(names) <= set(dir(public_modules()[module]))


def test_each_name_is_public_in_one_place() -> None:
    places: dict[str, list[str]] = {}
    for module_name, module in public_modules().items():
        for name in public_names(module):
            places.setdefault(name, []).append(module_name)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_public_name_is_also_a_module_of_its_package() -> None:
    # Importing such a module would replace the public name by the module.
    for module in public_modules().values():
        modules = {each.name for each in pkgutil.iter_modules(module.__path__)} - {
            name.rpartition(".")[2] for name in public_modules()
        }
        assert modules.isdisjoint(public_names(module)), module.__name__


@pytest.mark.parametrize("module", public_modules())
def test_unknown_names_are_attribute_errors(module: str) -> None:
    with pytest.raises(AttributeError, match="nothing"):
        getattr(public_modules()[module], "nothing")  # noqa: B009


def test_naming_the_packages_loads_nothing_heavy() -> None:
    script = f"import sys, {', '.join(public_modules())}; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    for heavy in ("numpy", "numba", "scipy", "matplotlib", "msgspec", "httpx"):
        assert f"'{heavy}'" not in loaded


def _code(page: Path) -> Iterator[str]:
    """The Python code of a page: a whole example, or the blocks of a Markdown page without prompts and output."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        yield text
        return
    blocks = re.findall(r"^```(?:python|pycon|py)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    joined = "\n".join(blocks)
    prompted = re.findall(r"^(?:>>>|\.\.\.)(?: (.*))?$", joined, flags=re.MULTILINE)
    yield "\n".join(prompted)
    yield "\n".join(block for block in blocks if ">>>" not in block)


def used_names(code: str) -> set[tuple[str, str]]:
    """Module and name of everything of lenience that the code imports or takes from it."""
    tree = ast.parse(code)
    aliases = {"lenience"}
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "lenience":
                    aliases.add(alias.asname or "lenience")
                    used |= {tuple(alias.name.rsplit(".", 1))} if "." in alias.name else set()
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lenience":
            used |= {(node.module or "", alias.name) for alias in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if isinstance(node.value, ast.Name) and node.value.id in aliases:
            used.add(("lenience", node.attr))
        elif (
            isinstance(node.value, ast.Attribute)
            and isinstance(node.value.value, ast.Name)
            and node.value.value.id in aliases
            and f"lenience.{node.value.attr}" in public_modules()
        ):
            used.add((f"lenience.{node.value.attr}", node.attr))
    return {(module, name) for module, name in used}


def private_names(code: str) -> list[str]:
    """What the code uses of lenience that is not public."""
    public = {(module, name) for module in public_modules() for name in public_names(public_modules()[module])}
    return sorted(f"{module}.{name}" for module, name in used_names(code) - public - {("lenience", "__version__")})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documentation_uses_public_names_only(page: Path) -> None:
    assert [name for code in _code(page) for name in private_names(code)] == []


def test_inline_code_of_documentation_names_public_things() -> None:
    checked = 0
    for page in PAGES:
        for module, name in re.findall(r"`ln\.(?:(\w+)\.)?(\w+)", page.read_text(encoding="utf-8")):
            place = f"lenience.{module}" if f"lenience.{module}" in public_modules() else "lenience"
            shown = name if place != "lenience" or not module else module
            assert shown in [*public_names(public_modules()[place]), "__version__"], f"{page.name}: ln.{module}.{name}"
            checked += 1
    assert checked > 10


def test_private_names_are_noticed() -> None:
    lines = ["import lenience as ln", "from lenience.core.belief import Belief", "ln.policies.secret", "ln.Nothing"]
    code = "\n".join([*lines, "ln.Belief(2, 1).mean", "ln.policies.Greedy(0.5).accepts"])
    assert private_names(code) == ["lenience.Nothing", "lenience.core.belief.Belief", "lenience.policies.secret"]


@pytest.mark.parametrize("package", DOCUMENTED)
def test_docstrings_are_complete(package: str) -> None:
    objects = [each for each in documented_objects() if each.package == package]
    assert objects
    assert [gap for each in objects for gap in each.gaps()] == []


def test_every_public_object_has_a_summary() -> None:
    for each in documented_objects():
        assert not any("has no docstring" in gap for gap in each.gaps()), each.name


def test_gaps_are_noticed() -> None:
    def half(rate: float, *, exact: bool) -> float:
        """Halve a rate.

        Parameters
        ----------
        rate : float
            A rate.
        """
        return rate / 2

    assert Documented("core", "half", half).gaps() == [
        "half does not describe its parameter exact",
        "half does not say what it returns",
    ]
    half.__doc__ = None
    assert Documented("core", "half", half).gaps() == ["half has no docstring"]
    assert "all " in report(["core"])


def test_the_stub_and_the_package_agree() -> None:
    """Every name of a stub is where the stub says it is."""
    for module_name in public_modules():
        folder = Path(str(importlib.import_module(module_name).__file__)).parent
        for node in ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8")).body:
            assert isinstance(node, ast.ImportFrom)
            for alias in node.names:
                assert alias.asname == alias.name, f"{module_name}: write `{alias.name} as {alias.name}`"

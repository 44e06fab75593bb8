"""Public names and what their docstrings leave out; ``python tests/docstring_coverage.py`` prints shares by package.

Give it the names of packages to list every gap in them: ``python tests/docstring_coverage.py objectives policies``.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from numpydoc.docscrape import NumpyDocString

ROOT = Path(__file__).resolve().parents[1]


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module exports, without its version."""
    return [name for name in vars(module)["__all__"] if name != "__version__"]


@functools.cache
def public_modules() -> dict[str, ModuleType]:
    """Return the modules with public names: the top level and its public packages."""
    stub = ast.parse((ROOT / "src" / "lenience" / "__init__.pyi").read_text(encoding="utf-8"))
    packages = [
        alias.name
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module is None
        for alias in node.names
    ]
    return {name: import_module(name) for name in ["lenience", *(f"lenience.{package}" for package in packages)]}


class Documented(NamedTuple):
    """A public class, function, method or property.

    Parameters
    ----------
    package : str
        The package that defines it, e.g. "objectives".
    name : str
        Its name as a user writes it, e.g. "lenience.Belief.observe".
    target : object
        The class, function or property itself.
    """

    package: str
    name: str
    target: Any

    @property
    def takes_parameters(self) -> bool:
        """Whether it is called with parameters or returns something, so that its docstring needs sections."""
        return bool(_parameters(self.target)) or _returns(self.target)

    def gaps(self) -> list[str]:
        """Return what the docstring leaves out, one sentence each."""
        text = inspect.getdoc(self.target) or ""  # an override without a docstring has that of its base
        if not text or (inspect.isclass(self.target) and _generated(self.target)):
            return [f"{self.name} has no docstring"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = NumpyDocString(text)
        gaps = []
        described = {name.strip().lstrip("*") for entry in parsed["Parameters"] for name in entry.name.split(",")}
        for name in _parameters(self.target):
            if name not in described:
                gaps.append(f"{self.name} does not describe its parameter {name}")
        if _returns(self.target) and not (parsed["Returns"] or parsed["Yields"]):
            gaps.append(f"{self.name} does not say what it returns")
        return gaps


@functools.cache
def documented_objects() -> tuple[Documented, ...]:
    """Return everything public that needs a docstring, each once."""
    seen: set[int] = set()
    objects = []
    for module_name, module in public_modules().items():
        for name in public_names(module):
            target = getattr(module, name)
            if isinstance(target, ModuleType):
                continue
            for path, part in _with_members(f"{module_name}.{name}", target):
                plain = part.fget if isinstance(part, property) else part
                if id(plain) not in seen and str(plain.__module__).startswith("lenience."):
                    seen.add(id(plain))
                    objects.append(Documented(plain.__module__.split(".")[1], path, part))
    return tuple(objects)


def _with_members(path: str, target: Any) -> Iterator[tuple[str, Any]]:
    yield path, target
    if not inspect.isclass(target):
        return
    own: set[str] = set()
    for base in target.__mro__:
        members = vars(base) if base.__module__.startswith("lenience.") else {}
        for name, value in members.items():
            if name in own:  # overridden
                continue
            own.add(name)
            member = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if isinstance(member, functools.cached_property):
                member = property(member.func)
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                yield f"{path}.{name}", member


def _generated(target: type[Any]) -> bool:
    """Whether the docstring is inherited, or the signature that Python writes for a class without one."""
    return "__doc__" not in vars(target) or (target.__doc__ or "").startswith(f"{target.__name__}(")


def _parameters(target: Any) -> list[str]:
    if isinstance(target, property) or getattr(target, "_is_protocol", False):
        return []
    if inspect.isclass(target) and issubclass(target, Exception) and not _has_own_constructor(target):
        return []
    names = inspect.signature(target).parameters
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def _has_own_constructor(target: type[Any]) -> bool:
    return any("__init__" in vars(base) for base in target.__mro__ if base.__module__.startswith("lenience."))


def _returns(target: Any) -> bool:
    if isinstance(target, property) or inspect.isclass(target):
        return False
    return inspect.signature(target).return_annotation not in (None, "None", "NoReturn")


def report(packages: list[str]) -> str:
    """Return a table of the share per package; for the given packages also every gap."""
    lines = [
        f"{'package':<12} {'public':>6} {'complete':>8} {'share':>6}   {'callable':>8} {'complete':>8} {'share':>6}"
    ]
    objects = documented_objects()
    for package in [*sorted({each.package for each in objects}), "all"]:
        row = f"{package:<12}"
        of_package = [each for each in objects if package in (each.package, "all")]
        for part in (of_package, [each for each in of_package if each.takes_parameters]):
            complete = sum(not each.gaps() for each in part)
            row += f" {len(part):>6} {complete:>8} {complete / max(len(part), 1):>6.0%} "
        lines.append(row.rstrip())
    lines += [gap for each in objects if each.package in packages for gap in each.gaps()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(sys.argv[1:]))

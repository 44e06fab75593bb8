"""Which compiled kernels a change concerns: Numba does not compile a caller again when what it calls has changed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from numba.core.caching import _CacheLocator

DECORATORS = ("compiled", "exactly_compiled")


class Definition(NamedTuple):
    """A kernel, or a constant of a module, and the names that it uses."""

    path: Path
    name: str
    uses: frozenset[str]
    kernel: bool


class KernelGraph:
    """The kernels and constants of the modules under a folder.

    Two definitions with the same name are taken for one. This may compile a kernel once too often, never too seldom.

    Parameters
    ----------
    source
        The folder.
    """

    def __init__(self, source: Path) -> None:
        self.definitions = [one for path in sorted(source.rglob("*.py")) for one in _definitions(path)]

    def concerned(self, path: Path, name: str = "") -> list[Definition]:
        """Return the kernels whose code depends on a function or constant of a file, or on anything in it."""
        names = {name.split(".")[0]} if name else {one.name for one in self.definitions if one.path == path}
        while True:
            more = {one.name for one in self.definitions if one.uses & names} - names
            if not more:
                break
            names |= more
        return [one for one in self.definitions if one.kernel and one.name in names]


def forget(cache: Path, kernels: Iterable[Definition]) -> None:
    """Remove compiled kernels from a folder of Numba's."""
    for kernel in kernels:
        folder = cache / _CacheLocator.get_suitable_cache_subpath(str(kernel.path))  # type: ignore[no-untyped-call]
        for compiled in folder.glob(f"{kernel.path.stem}.{kernel.name}-*"):
            compiled.unlink()


def _definitions(path: Path) -> list[Definition]:
    result = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            if any(isinstance(one, ast.Name) and one.id in DECORATORS for one in node.decorator_list):
                result.append(Definition(path, node.name, _names(node), True))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            uses = _names(node.value) if node.value else frozenset()
            for name in {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}:
                result.append(Definition(path, name, uses, False))
    return result


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))

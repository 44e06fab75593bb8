"""Find the places of a source file where a small fault can be made: operators, comparisons, constants, terms."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
TINY = 1e-9  # a constant below this is a margin of rounding: twice as much is as good, but none is a fault
GUARDS = ("strict", "stacklevel")  # options that matter only if the code is wrong, or to the text of a warning
SWAPPED_CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "floor": "ceil"}


class Mutant(NamedTuple):
    """One change of one file: the text from ``start`` to ``end`` is replaced."""

    path: str
    start: int
    end: int
    text: str
    name: str  # such as "_value: < becomes <=: return a <= 1"
    line: int
    function: str = ""  # such as "Rule.decide"; empty outside of functions


def mutants_of(path: str, source: str, skipped: frozenset[str] = frozenset()) -> list[Mutant]:
    """Return every mutant of a file, except inside the functions and constants named in ``skipped``.

    The name of a mutant says the function, the change, and the line with the change in it.

    >>> [mutant.name for mutant in mutants_of("f.py", "def f(a):\\n    return a < 1\\n")]
    ['f: < becomes <=: return a <= 1', 'f: 1 becomes 2: return a < 2']
    """
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def offset(line: int, column: int) -> int:
        text = source[lines[line - 1] : lines[line]]
        return lines[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))

    result = []
    tree = ast.parse(source)
    functions = set(_functions(tree, ""))
    for where, node in _nodes(tree, ""):
        if where.split(".")[-1] in skipped:
            continue
        for start, end, text, change in _changes(node, source, offset):
            number = bisect_right(lines, start)
            before, after = source.rfind("\n", 0, start) + 1, source.find("\n", end)
            changed_line = (source[before:start] + text + source[end:after]).split("\n")[0].strip()
            result.append(
                Mutant(
                    path,
                    start,
                    end,
                    text,
                    f"{where or 'module'}: {change}: {changed_line}",
                    number,
                    where if where in functions else "",
                )
            )
    return result


def _functions(node: ast.AST, where: str) -> Iterator[str]:
    """Return the names of all functions, such as "Rule.decide"."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{where}.{child.name}" if where else child.name
            if isinstance(child, ast.FunctionDef):
                yield name
            yield from _functions(child, name)
        else:
            yield from _functions(child, where)


def _nodes(node: ast.AST, where: str) -> Iterator[tuple[str, ast.expr | ast.AugAssign]]:
    """Walk the expressions of code, leaving out docstrings, annotations, decorators, errors, f-strings and guards."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if (isinstance(node, ast.keyword) and node.arg in GUARDS) or _is_margin(node):
        return
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        inside = f"{where}.{node.name}" if where else node.name
        for statement in node.body:
            yield from _nodes(statement, inside)
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Assign) and not where and isinstance(node.targets[0], ast.Name):
        where = node.targets[0].id
    if isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield from _nodes(node.value, where)
        return
    if isinstance(node, ast.expr | ast.AugAssign):
        yield where, node
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, where)


def _changes(
    node: ast.expr | ast.AugAssign, source: str, at: Callable[[int, int], int]
) -> Iterator[tuple[int, int, str, str]]:
    def span(part: ast.expr | ast.AugAssign) -> tuple[int, int]:
        assert part.end_lineno is not None
        assert part.end_col_offset is not None
        return at(part.lineno, part.col_offset), at(part.end_lineno, part.end_col_offset)

    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _is_margin(node.right):
        old, new = OPERATORS[type(node.op)]
        start, end = span(node.left)[1], span(node.right)[0]
        place = start + source[start:end].index(old)
        yield place, place + 1, new, f"{old} becomes {new}"
        if isinstance(node.op, ast.Add | ast.Sub):
            yield (
                span(node.left)[1],
                span(node)[1],
                _closing(source[span(node.left)[1] : end]),
                f"drop the term after {old}",
            )
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        old, new = OPERATORS[type(node.op)]
        place = span(node.target)[1] + source[span(node.target)[1] :].index(old)
        yield place, place + 1, new, f"{old}= becomes {new}="
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        old, new = COMPARISONS[type(node.ops[0])]
        start, end = span(node.left)[1], span(node.comparators[0])[0]
        place = start + source[start:end].index(old)
        yield place, place + len(old), new, f"{old} becomes {new}"
    elif isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        start, end = span(node.values[0])[1], span(node.values[1])[0]
        match = re.search(rf"\b{old}\b", source[start:end])
        if match:
            yield start + match.start(), start + match.end(), new, f"{old} becomes {new}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        start, end = span(node)
        value = node.value
        changed: float = 2 * value
        if isinstance(value, bool):
            changed = not value
        elif isinstance(value, int) or value in (0.0, 1.0):
            changed = value + 1
        elif value < TINY:
            changed = 0.0
        yield start, end, repr(changed), f"{source[start:end]} becomes {changed!r}"
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SWAPPED_CALLS and (len(node.args) > 1 or name == "floor"):
            end = span(node.func)[1]
            yield end - len(name), end, SWAPPED_CALLS[name], f"{name} becomes {SWAPPED_CALLS[name]}"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        start = span(node)[0]
        sign = "not " if isinstance(node.op, ast.Not) else "-"
        yield start, start + len(sign), "", f"{sign.strip()} is dropped"


def _is_margin(node: ast.AST) -> bool:
    """Whether this is a factor such as (1.0 + 4e-16), which moves a bound outward by what rounding can do.

    More roundings are counted than any one input has, so that one margin alone can hardly be missed. The faults written
    by hand drop or turn round all margins of a file together.
    """
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.left, ast.Constant)
        and node.left.value == 1.0
        and isinstance(node.right, ast.Constant)
        and isinstance(node.right.value, float)
        and 0.0 < node.right.value < TINY
    )


def _closing(between: str) -> str:
    """The brackets that the left operand leaves open before the operator."""
    return ")" * between.split("#")[0].count(")")

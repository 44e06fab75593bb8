"""From docstrings and signatures to Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

WIDTH = 96


def prose(docstring: str | None) -> str:
    """A docstring as Markdown: roles become code, doctests become code blocks, angle brackets are shown as they are.

    >>> prose("See :class:`Belief` for n < 2.\\n\\n>>> 1 + 1\\n2\\n")
    'See `Belief` for n &lt; 2.\\n\\n```python\\n>>> 1 + 1\\n2\\n```'
    """
    out: list[str] = []
    inside = False
    for line in inspect.cleandoc(docstring or "").split("\n"):
        starts = line.lstrip().startswith(">>>")
        if starts and not inside:
            if out and out[-1]:
                out.append("")
            out.append("```python")
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(re.sub(r"\s*# doctest:.*$", "", line) if inside else _text(line))
    if inside:
        out.append("```")
    return "\n".join(out).strip()


def _text(line: str) -> str:
    if line.startswith("    "):  # a formula set apart
        return line
    line = re.sub(r":(?:class|func|mod|meth):`~?([^`]+)`", r"`\1`", line).replace("``", "`")
    parts = line.split("`")
    return "`".join(part if i % 2 else part.replace("<", "&lt;").replace("*", "\\*") for i, part in enumerate(parts))


def signature(name: str, target: Callable[..., Any]) -> str:
    """How something is called, on one line if it fits.

    >>> def twice(x: float, *, loud: bool = False) -> float: ...
    >>> signature("twice", twice)
    'twice(x: float, *, loud: bool = False) -> float'
    """
    found = inspect.signature(target)
    parts: list[str] = []
    star = False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = True
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(_parameter(parameter))
    after = "" if found.return_annotation is found.empty else f" -> {annotation(found.return_annotation)}"
    line = f"{name}({', '.join(parts)}){after}"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){after}"


def _parameter(parameter: inspect.Parameter) -> str:
    text = str(parameter).split(parameter.name)[0] + parameter.name  # with its stars
    if parameter.annotation is not parameter.empty:
        text += f": {annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    default: str = repr(parameter.default)
    return f"{text} = {'…' if ' at 0x' in default or default.startswith('<') else default}"


def annotation(found: object) -> str:
    """A type as one writes it."""
    text = found if isinstance(found, str) else inspect.formatannotation(found)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; bars inside its cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
    )

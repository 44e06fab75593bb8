"""Extension of griffe, which reads the sources for mkdocstrings: constructors of structs, and examples as code."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import griffe
import msgspec

EXAMPLES = re.compile(r"^Examples\n-+$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Adapt what griffe reads to how our sources are written."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a struct the constructor that msgspec generates, because the source does not contain it."""
        struct = getattr(import_module(cls.module.path), cls.name, None)
        if not (inspect.isclass(struct) and issubclass(struct, msgspec.Struct)) or "__init__" in cls.members:
            return
        parameters = [
            griffe.Parameter(
                parameter.name,
                annotation=_annotation(parameter.annotation),
                kind=griffe.ParameterKind[parameter.kind.name.lower()],
                default=None if parameter.default is parameter.empty else _shown(parameter.default),
            )
            for parameter in inspect.signature(struct).parameters.values()
        ]
        receiver = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(receiver, *parameters)))

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Turn roles and examples of a docstring into Markdown."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def _annotation(annotation: object) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", text)


def _shown(default: object) -> str:
    shown = repr(default)
    return "…" if " at 0x" in shown or shown.startswith("<") else shown


def to_markdown(docstring: str) -> str:
    """Return a docstring in which examples outside the section Examples are code blocks, and roles are code.

    >>> to_markdown("See :class:`Belief`.\\n\\n>>> 1 + 1\\n2\\n")
    'See `Belief`.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    text = re.sub(r":(?:class|func|mod|meth):`~?([^`]+)`", r"`\1`", inspect.cleandoc(docstring))
    section = EXAMPLES.search(text)
    before, after = (text[: section.start()], text[section.start() :]) if section else (text, "")
    lines: list[str] = []
    inside = False
    for line in [*before.split("\n"), ""]:
        if line.startswith(">>>") and not inside:
            lines += ["", "```pycon"] if lines and lines[-1] else ["```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(re.sub(r"\s*# doctest:.*$", "", line) if inside else line)
    return ("\n".join(lines).rstrip() + ("\n\n" if after else "") + after).strip()

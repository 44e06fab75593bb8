"""The library's reference: every public name of lenience, from its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import lenience
from generate.markdown import annotation, prose, signature

# A page for each part of the library, by where a name lives; the first prefix that fits decides.
PAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "beliefs": ("Beliefs and what is proved", "What is known of p, and numbers with their bounds.",
                ("belief", "bounds", "certificate", "gittins", "leniency", "errors", "solver")),
    "objectives": ("Objectives", "What is to be maximised; `solve` makes the policy.", ("objective",)),
    "policies": ("Policies", "Who is accepted: the optimum, exposure limits, and rivals.", ("policy",)),
    "segments": ("Segments, history and models", "Populations in parts, past decisions, and where beliefs come from.",
                 ("segments", "history", "model")),
    "simulation": ("Worlds and simulation", "Policies side by side on the same individuals.", ("simulate", "plot")),
    "studies": ("Studies and data", "Exact evaluation, fairness, off-policy estimates, the paper.", ("study", "data")),
    "client": ("The service's client", "The decision service from Python.", ("client",)),
}  # fmt: skip


def names_of(page: str) -> list[str]:
    """The public names on a page.

    >>> names_of("client")
    ['Client', 'ServiceError']
    """
    prefixes = PAGES[page][2]
    return [name for name in vars(lenience)["__all__"] if name in prefixes]


def pages() -> Iterator[tuple[str, str]]:
    """Each page's path and text."""
    for page, (title, about, _) in PAGES.items():
        parts = [f"# {title}", about]
        for name in names_of(page):
            parts += list(_entry(name, getattr(lenience, name)))
        yield f"reference/{page}.md", "\n\n".join(parts) + "\n"


def _entry(name: str, target: Any) -> Iterator[str]:
    yield f"## {name} {{ #{name} }}"
    if inspect.isclass(target):
        yield from _class(name, target)
    else:
        yield f"```python\n{signature(name, target)}\n```"
        yield prose(target.__doc__)


def _class(name: str, target: type[Any]) -> Iterator[str]:
    if not issubclass(target, Exception) and not getattr(target, "_is_protocol", False):
        yield f"```python\n{signature(name, target)}\n```"
    yield prose(target.__doc__)
    for member, value in vars(target).items():
        if member.startswith("_"):
            continue
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(value, property):
            result = inspect.signature(value.fget).return_annotation if value.fget else ""
            yield f"### {name}.{member} {{ #{name}.{member} }}"
            yield f"```python\n{member}: {annotation(result)}\n```"
            yield prose(value.__doc__)
        elif inspect.isfunction(function) and function.__doc__:
            yield f"### {name}.{member} {{ #{name}.{member} }}"
            yield f"```python\n{signature(f'{name}.{member}' if function is not value else member, function)}\n```"
            yield prose(function.__doc__)
    inherited = sorted(
        {
            member
            for base in target.__mro__[1:]
            if base.__module__.startswith("lenience")
            for member, value in vars(base).items()
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
        }
        - set(vars(target))
    )
    if inherited:
        yield "Also, as every one of its kind: " + ", ".join(f"`{member}`" for member in inherited) + "."

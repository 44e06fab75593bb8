"""What a shell is offered when one presses tab."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from lenience.cli import cli


def offered(*words: str) -> tuple[set[str], set[str]]:
    """The values, and the kinds (plain, file, dir), that complete the last word."""
    found = ShellComplete(cli, {}, "lenience", "_LENIENCE_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return {item.value for item in found}, {item.type for item in found}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("fit", "--model", "p"), {"pooled-history"}),
        (("simulate", "--policy", "ep"), {"epsilon-greedy"}),
        (("simulate", "--world", "b"), {"bernoulli"}),
        (("plot", "t"), {"thresholds"}),
        (("keys", "create", "--role", "de"), {"decide"}),
        (("completion", "z"), {"zsh"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_values_of_which_there_is_a_list(words: tuple[str, ...], values: set[str]) -> None:
    assert offered(*words)[0] == values


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "loa"),
        ("report", "--truths", "t"),
        ("report", "--output", "r"),
        ("replay", "loa"),
        ("replay", "--report", "r"),
        ("offpolicy", "dec"),
        ("outcomes", "rep"),
        ("plot", "values", "-o", "f"),
        ("simulate", "--figure", "f"),
        ("sweep", "s"),
        ("serve", "--database", "d"),
        ("audit", "--expect", "a"),
    ],
    ids=" ".join,
)
def test_file_names(words: tuple[str, ...]) -> None:
    assert offered(*words)[1] == {"file"}


def test_folders() -> None:
    assert offered("simulate", "--save", "r")[1] == offered("demo", "--folder", "d")[1] == {"dir"}

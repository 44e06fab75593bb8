"""Every command and option, from the command line itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from generate.markdown import table
from lenience.cli import cli

PATH = "reference/options.md"


def walk() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, subcommands too.

    >>> "lenience solve" in dict(walk()), "lenience keys create" in dict(walk())
    (True, True)
    """
    yield from _below("lenience", cli)


def _below(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    with click.Context(group, info_name=path) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield f"{path} {name}", command
            if isinstance(command, click.Group):
                yield from _below(f"{path} {name}", command)


def page() -> str:
    """The page."""
    parts = [
        "# Commands and options",
        "Every command with all of its options, as `--help` shows them; [the command line](../commands.md) tells what "
        "they are for. `lenience --version` prints the version, `-h` or `--help` the help of any command.",
    ]
    for name, command in walk():
        parts.append(f"## {name} {{ #{name.replace(' ', '-')} }}")
        with click.Context(command, info_name=name) as context:
            parts.append(f"```console\n{context.get_usage().removeprefix('Usage: ')}\n```")
        parts.append(_help(command.help or ""))
        rows = [row for row in map(_row, command.params) if row]
        if rows:
            parts.append(table(["option", "value", "default", "meaning"], rows))
    return "\n\n".join(parts) + "\n"


def _help(text: str) -> str:
    """The help text; what stands after a backspace is to be shown as it is."""
    blocks = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if block.startswith("\b"):
            lines = block.removeprefix("\b").strip("\n").split("\n")
            if lines[0].strip() == "Example:":
                lines = lines[1:]
            blocks.append("```console\n" + inspect.cleandoc("\n".join(["", *lines])) + "\n```")
        else:
            blocks.append(block.replace("<", "&lt;").replace("*", "\\*"))
    return "\n\n".join(blocks)


def _row(parameter: click.Parameter) -> list[str] | None:
    with click.Context(click.Command("none")) as context:
        about = parameter.to_info_dict()
        names = ", ".join(f"`{name}`" for name in [*about["opts"], *about["secondary_opts"]])
        if isinstance(parameter, click.Argument):
            return [names.upper(), parameter.make_metavar(context), "", "required" if parameter.required else ""]
        assert isinstance(parameter, click.Option)
        record = parameter.get_help_record(context)
        value = "" if parameter.is_flag else parameter.make_metavar(context).strip("[]")
        extra = parameter.get_help_extra(context)
        default = "required" if parameter.required else extra.get("default", "")
        meaning = parameter.help or (record[1] if record else "")
        if parameter.multiple:
            meaning += " May be repeated."
        if extra.get("envvars"):
            meaning += f" Also from `{'`, `'.join(extra['envvars'])}`."
    return [names, f"`{value}`" if value else "", str(default), meaning.replace("<", "&lt;").replace("*", "\\*")]

"""The command line: one file a command, each loaded only when it is called."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from lenience.__about__ import __version__
from lenience.cli.error_messages import in_options, of_usage
from lenience.cli.streams import prepare, to_a_reader
from lenience.core.errors import InputError, in_words

COMMANDS = {
    "audit": "Recompute a service's log: is everything as it was decided?",
    "characteristics": "What a policy does to a population: whom it shuts out, what learning costs.",
    "completion": "The shell code that completes commands and options.",
    "delay": "What late labels cost, and how many acceptances may be pending.",
    "demo": "Open the dashboard on a lender's portfolio with simulated applicants.",
    "erase": "Erase the personal data of a person, or of long ago, from a running service.",
    "fit": "From past decisions to a belief for each segment.",
    "gittins": "For which costs is a population worth accepting? (Gittins index)",
    "keys": "Make, list and revoke the API keys of a service.",
    "offpolicy": "Estimate what a proposed policy would have earned, from a log with propensities.",
    "outcomes": "Record the outcomes of a file, however long, with a running service.",
    "paper": "Every claim of the paper, checked, in one HTML report.",
    "plot": "Draw value functions, thresholds, operating characteristics or regret.",
    "regret": "Compare ways of exploring when rewards are not discounted.",
    "replay": "Replay policies online on a file of individuals, seeing only the outcomes of the accepted.",
    "report": "One HTML page on the segments of past decisions.",
    "serve": "Serve decisions over HTTP, durable and auditable.",
    "simulate": "Several policies in one world, on the same individuals.",
    "solve": "The optimal acceptance policy, proved.",
    "sweep": "Policies × worlds × parameters, from a TOML file.",
    "threshold": "The success rate above which one accepts after n observations.",
}
OWN = ("demo", "serve", "simulate", "sweep")  # see to interruptions, and to their processes, in the main thread


class Commands(click.Group):
    """A group that imports a command's file only when the command is called, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"lenience.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the words up to the command; what they ask to be shown, such as --help, is shown to who still reads."""
        found = None
        with to_a_reader():
            found = super().make_context(info_name, args, parent, **extra)
        if found is None:
            raise click.exceptions.Exit(0)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and its words, in which no option is given twice that has one value."""
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            _check_once(command, words)
        return name, command, words

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; what the library says of its values is said of the command's options."""
        answer = None
        try:
            with to_a_reader():
                answer = super().invoke(ctx)
        except InputError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if command is None:
                raise
            raise in_options(error, command) from error
        return answer

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lenience")
def cli() -> None:
    """Accept or reject, when only the accepted reveal their outcome.

    Optimal policies for the selective-labels problem: lenient while little is known, strict as one learns.
    """


def _check_once(command: click.Command, words: Sequence[str]) -> None:
    """Refuse an option with one value that is given twice: click would take the last, in silence."""
    if isinstance(command, click.Group):
        command = command.commands.get(words[0] if words else "", command)
    given = Counter(word.partition("=")[0] for word in words[: words.index("--") if "--" in words else None])
    for option in command.params:
        often = sum(given[name] for name in option.opts)
        if isinstance(option, click.Option) and often > 1 and not (option.multiple or option.is_flag):
            raise InputError.because(
                f"must be given once, and is there {often} times", option.opts[0], value=often, code="duplicate"
            )


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    prepare()
    try:
        if sys.argv[1:2] and sys.argv[1] in OWN:
            sys.exit(cli.main(standalone_mode=False) or 0)
        from lenience.cli.progress import run_interruptible

        sys.exit(run_interruptible(lambda: cli.main(standalone_mode=False)) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        with to_a_reader():
            click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        where = f" {error.ctx.command_path}" if isinstance(error, click.UsageError) and error.ctx else " lenience"
        click.echo(f"{where.strip()}: {of_usage(error)}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        if sys.stderr.isatty():
            click.echo("\x1b[?25h", nl=False, err=True)  # the cursor, which a progress bar hides
        click.echo("lenience: stopped", err=True)
        sys.exit(130)
    except ValueError as error:  # InputError, and whatever a library says of a value
        click.echo(f"lenience: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(f"lenience: {in_words(error)}", err=True)
        sys.exit(2)

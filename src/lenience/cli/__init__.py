"""The command line: one module per command, imported only when the command is called."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from lenience.__about__ import __version__
from lenience.cli.error_messages import usage_message, with_option_names
from lenience.cli.streams import ignoring_broken_pipe, prepare
from lenience.core.errors import InputError, in_words

# The commands as --help lists them: the five that most people need first, then by purpose.
GROUPS: dict[str, dict[str, str]] = {
    "Start here": {
        "demo": "Open the dashboard on a lender's portfolio with simulated applicants.",
        "sample": "Write simulated loans to a CSV file, to try the other commands on.",
        "report": "Write one HTML page on the segments of past decisions.",
        "fit": "Estimate success rates from past decisions, by segment or by features.",
        "serve": "Serve decisions over HTTP, durable and auditable.",
    },
    "Decide": {
        "check": "Say what the policy in a file will do, and which segments it will not start.",
        "solve": "Compute the optimal acceptance policy, with a proof.",
        "offers": "Decide offers of different amounts, or choose what to offer.",
        "rank": "Choose whom to accept from a batch, with a limited capacity.",
        "delay": "Compute what late labels cost, and how many acceptances may be pending.",
        "fair": "Compute the best policy under a fairness constraint, its price, and who pays.",
        "export-sql": "Write a policy as SQL that decides a table of applicants.",
    },
    "Data": {
        "import": "Import past decisions from a file into a policy of a running service.",
        "outcomes": "Send the outcomes in a file to a running service.",
        "export": "Write what has changed in a running service to a file for a data warehouse.",
        "erase": "Erase personal data, by reference or by age, from a running service.",
    },
    "Compare": {
        "replay": "Replay policies on a file of individuals, of whom only the accepted reveal their outcome.",
        "offpolicy": "Estimate what a proposed policy would have earned, from a log with propensities.",
        "rejections": "Estimate how many of the rejected would have succeeded, and whether rejecting them was right.",
        "simulate": "Compare policies in one simulated world, on the same individuals.",
        "sweep": "Simulate policies × worlds × parameters, from a TOML file.",
        "characteristics": "Compute what a policy does to a population: who is wrongly rejected, what learning costs.",
    },
    "Operate": {
        "keys": "Create, list and revoke the API keys of a service.",
        "rollout": "Roll a version out to a share of applicants, or compare it with the active one.",
        "monitor": "Check whether applicants and outcomes of a running policy are as expected.",
        "audit": "Recompute a service's log and check every decision.",
        "document": "Write the documentation pack of a policy: purpose, data, validation, limits, change log.",
        "verify": "Check the proof of a decision with the public key of the log.",
        "witness": "Check that a service's log only grows, and countersign its checkpoints.",
        "backup": "Copy a service's database into one file while the service runs.",
        "restore": "Put a backup in the place of a service's database.",
        "completion": "Print the shell code that completes commands and options.",
    },
    "Research": {
        "paper": "Check every claim of the paper and write one HTML report.",
        "threshold": "Compute the minimum success rate for acceptance after n observations.",
        "gittins": "Find the costs up to which a population is worth accepting (Gittins index).",
        "regret": "Compare ways of exploring when rewards are not discounted.",
        "plot": "Draw value functions, thresholds, operating characteristics or regret.",
    },
}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
MODULES = {"export-sql": "export_sql", "import": "import_portfolio"}  # commands whose name cannot be that of a module
MAIN_THREAD = ("demo", "serve", "simulate", "sweep")  # they handle interrupts and their own processes


class Commands(click.Group):
    """A group that imports a command's module only when the command is called, so that --help is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        name = MODULES.get(cmd_name, cmd_name)
        command = getattr(import_module(f"lenience.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments up to the command; ignore a closed pipe while --help is printed."""
        context = None
        with ignoring_broken_pipe():
            context = super().make_context(info_name, args, parent, **extra)
        if context is None:
            raise click.exceptions.Exit(0)
        return context

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; raise InputError if an option with one value is given twice."""
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            _check_once(command, words)
        return name, command, words

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; errors of the library name the command's options."""
        answer = None
        try:
            with ignoring_broken_pipe():
                answer = super().invoke(ctx)
        except InputError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if command is None:
                raise
            raise with_option_names(error, command) from error
        return answer

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by purpose, without importing them."""
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lenience")
def cli() -> None:
    """Accept or reject, when only the accepted reveal their outcome.

    Optimal policies for the selective-labels problem: lenient while little is known, stricter as evidence grows.
    """


def _check_once(command: click.Command, words: Sequence[str]) -> None:
    """Raise InputError if an option with one value is given twice: click would silently use the last."""
    if isinstance(command, click.Group):
        command = command.commands.get(words[0] if words else "", command)
    given = Counter(word.partition("=")[0] for word in words[: words.index("--") if "--" in words else None])
    for option in command.params:
        times = sum(given[name] for name in option.opts)
        if isinstance(option, click.Option) and times > 1 and not (option.multiple or option.is_flag):
            raise InputError.because(
                f"must be given once, not {times} times", option.opts[0], value=times, code="duplicate"
            )


def main() -> None:
    """Run the command line. Invalid input prints one line on stderr and exits with code 2."""
    prepare()
    try:
        if sys.argv[1:2] and sys.argv[1] in MAIN_THREAD:
            sys.exit(cli.main(standalone_mode=False) or 0)
        from lenience.cli.progress import run_interruptible

        sys.exit(run_interruptible(lambda: cli.main(standalone_mode=False)) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        with ignoring_broken_pipe():
            click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        where = f" {error.ctx.command_path}" if isinstance(error, click.UsageError) and error.ctx else " lenience"
        click.echo(f"{where.strip()}: {usage_message(error)}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        if sys.stderr.isatty():
            click.echo("\x1b[?25h", nl=False, err=True)  # show the cursor again, which a progress bar hides
        click.echo("lenience: stopped", err=True)
        sys.exit(130)
    except ValueError as error:  # InputError, or a library's error about a value
        click.echo(f"lenience: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(f"lenience: {in_words(error)}", err=True)
        sys.exit(2)

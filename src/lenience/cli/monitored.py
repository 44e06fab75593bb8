"""Options and tables of monitored attributes, for all commands that measure fairness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from lenience.cli.options import console, table
from lenience.core.protected_attributes import require_consent

if TYPE_CHECKING:
    from lenience.analysis.monitored_groups import Measure, MonitoredGroups
    from lenience.analysis.monitored_replay import GroupDecisions
    from lenience.analysis.proxies import Decomposition, Proxy

Command = TypeVar("Command", bound=Callable[..., Any])
MOST_SETS = 4  # tables that are printed; --json has all

decide_by_protected_option = click.option(
    "--decide-by-protected",
    is_flag=True,
    help="Allow decisions by a protected or monitored attribute, for research or where the law allows it.",
)


def monitor_option(what: str) -> Callable[[Command], Command]:
    """Return the option that names a monitored attribute."""
    text = f"A column {what}, e.g. sex; decisions do not look at it; may be repeated."
    return click.option("--monitor", multiple=True, help=text)


def check_protected(
    option: str, names: Iterable[str], monitored: Sequence[str], decide_by_protected: bool
) -> tuple[str, ...]:
    """Return the protected attributes that decisions are made by, or raise InputError unless the user allows them."""
    protected = require_consent(
        names,
        monitored,
        decide_by_protected=decide_by_protected,
        field=option,
        monitor="--monitor instead",
        allow="--decide-by-protected",
    )
    return tuple(protected)


def explain(result: MonitoredGroups) -> tuple[list[Decomposition], Proxy | None]:
    """Return how the differences between groups divide, and how closely the segments follow the groups."""
    from lenience.analysis.proxies import decompose_difference, find_proxy

    if len(result.groups) < 2:
        return [], None
    rows = [decompose_difference(result.cells, row.name, row.most) for row in result.comparisons]
    return rows, find_proxy(result.cells)


def monitored_json(results: Sequence[MonitoredGroups]) -> list[dict[str, Any]]:
    """Return the measures of all groups for JSON."""
    entries = []
    for result in results:
        differences, proxy = explain(result)
        entries.append(
            {
                "attributes": list(result.attributes),
                "unknown": msgspec.to_builtins(result.unknown),
                "groups": msgspec.to_builtins(result.groups),
                "comparisons": [
                    {**msgspec.to_builtins(row), "four_fifths": row.four_fifths} for row in result.comparisons
                ],
                "explained_by_segments": msgspec.to_builtins(differences),
                "segments_reveal": msgspec.to_builtins(proxy),
            }
        )
    return entries


def print_decisions(rows: Sequence[GroupDecisions]) -> None:
    """Print by group how each policy decides about it."""
    from lenience.core.formatting import even_percent

    def shown(measure: Measure | None) -> str:
        if measure is None:
            return ""
        ends = (even_percent(measure.interval.lower, 0), even_percent(measure.interval.upper, 0))
        return f"{even_percent(measure.value)} ({ends[0]} – {ends[1]})"

    for attributes in list(dict.fromkeys(row.attributes for row in rows))[:MOST_SETS]:
        grid = table(f"By {' × '.join(attributes)}, which the policies do not look at (95% intervals)")
        for position, heading in enumerate(
            ("policy", "group", "accepted", "of those who succeed", "of those who fail")
        ):
            grid.add_column(heading, justify="right" if position > 1 else "left")
        for row in sorted((row for row in rows if row.attributes == attributes), key=lambda row: row.policy):
            cells = (row.acceptance, row.acceptance_of_deserving, row.acceptance_of_others)
            grid.add_row(row.policy, row.group or "unknown", *map(shown, cells))
        console().print(grid)


def print_monitored(results: Sequence[MonitoredGroups]) -> None:
    """Print one table for each set of groups, and what explains the differences."""
    from lenience.core.formatting import counted, percent
    from lenience.reports.segment_report_monitored import describe_explained, monitored_rows

    out = console()
    for result in results[:MOST_SETS]:
        header, rows = monitored_rows(result)
        grid = table(f"Past decisions by {' × '.join(result.attributes)}, which they do not look at")
        for position, heading in enumerate(header):
            grid.add_column(heading, justify="right" if position else "left", overflow="fold")
        for row in rows:
            grid.add_row(*row)
        out.print("\n", grid, sep="")
        if result.unknown.arrivals:
            out.print(
                f"Unknown for {counted(result.unknown.arrivals, 'applicant')} ({percent(result.unknown_share)}); in "
                "brackets what acceptance can be if they belong to the group."
            )
        for line in describe_explained(result, *explain(result)):
            out.print(line)
    if len(results) > MOST_SETS:
        out.print(f"{len(results) - MOST_SETS} more combinations: --json prints all.")

"""lenience sweep: simulate policies × worlds × parameters, from a TOML file."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click

from lenience.cli.options import FILE, console, json_option, print_json, table
from lenience.cli.progress import announcing

SHOWN = ("discounted", "behind", "accepted", "shut_out")


@click.command(short_help="Simulate policies × worlds × parameters, from a TOML file.")
@click.argument("file", type=FILE)
@click.option("--output", "-o", type=FILE, help="Write the results in long format to this file (.csv or .parquet).")
@click.option("--workers", type=int, help="The number of processes; it does not change the result.")
@json_option
def sweep(file: str, output: str | None, workers: int | None, as_json: bool) -> None:
    """Run the sweep that FILE describes; every list in it adds a dimension to the grid.

    \b
    Example:
      lenience sweep sweep.toml --output results.parquet
    """
    from lenience.analysis.sweep import run_sweep
    from lenience.simulation.reference_policies import OPTIMUM, columns_in_words
    from lenience.simulation.result import Estimate, check_frame_path, save_frame

    if output is not None:
        check_frame_path(output)
    bar = not as_json and sys.stderr.isatty()
    with nullcontext() if bar else announcing(f"Running the sweep of {file}"):
        frame = run_sweep(file, workers, progress=bar, backend="pyarrow")
    if output is not None:
        save_frame(frame, output)
    rows = frame.to_pylist()
    if as_json:
        print_json({"rows": rows, "file": output})
        return
    references = list(dict.fromkeys(row["reference"] for row in rows if row["reference"]))
    shown = [metric for metric in SHOWN if metric != "behind" or references]
    titles = {"behind": f"behind {references[0]}" if len(references) == 1 else "behind reference"}
    grid = table(f"{file}: means with 95% intervals (all metrics: --output or --json)")
    settings = [name for name in ("cost", "discount", "horizon", "world") if len({row[name] for row in rows}) > 1]
    for heading in (*settings, "policy", *(titles.get(name, name.replace("_", " ")) for name in shown)):
        grid.add_column(heading, justify="left" if heading in ("policy", "world") else "right")
    lines: dict[tuple[object, ...], dict[str, str]] = {}
    for row in rows:
        key = (*(row[name] for name in settings), row["policy"])
        lines.setdefault(key, {})[row["metric"]] = str(Estimate(row["mean"], row["lower"], row["upper"]))
    for key, estimates in lines.items():
        grid.add_row(*(str(part) for part in key), *(estimates.get(name, "") for name in shown))
    out = console()
    out.print(grid)
    out.print(columns_in_words(references))
    if any(name != OPTIMUM for name in references):
        out.print("If labels come late or p drifts, no policy here is optimal, and others may earn more.")
    if output is not None:
        click.echo(f"Wrote {output}")

"""lenience replay: compute what policies would have earned on data whose outcomes are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lenience.cli.economics import objective_or_economics_options, unit_of_rows
from lenience.cli.file_options import dates_option, outcome_words, sheet_option
from lenience.cli.monitored import check_protected, decide_by_protected_option, monitor_option, print_decisions
from lenience.cli.options import (
    FILE,
    bold,
    console,
    json_option,
    objective,
    print_json,
    table,
    unit_of,
)
from lenience.core.money import Money

if TYPE_CHECKING:
    from lenience.files.date_formats import Order
    from lenience.files.economics import Economics


@click.command(short_help="Replay policies on a file of individuals, of whom only the accepted reveal their outcome.")
@click.argument("data", type=FILE)
@click.option("--outcome", required=True, help="The column of outcomes.")
@outcome_words
@click.option(
    "--features", help="Columns to use, separated by commas; by default all but outcome, group, identifiers, dates."
)
@click.option(
    "--group", help="A column of groups, to report acceptance by group. Not a feature unless --features names it."
)
@monitor_option("by which fairness is measured")
@decide_by_protected_option
@objective_or_economics_options
@click.option(
    "--seeds", type=int, default=30, show_default=True, help="The number of runs, each with newly drawn arrivals."
)
@click.option("--individuals", type=int, help="Arrivals per run; by default as many as matter to the objective.")
@click.option("--label-delay", type=float, help="The mean delay of an outcome, in arrivals (0: no delay).")
@click.option(
    "--starter",
    "starters",
    type=float,
    multiple=True,
    help="A share of each row's own amount that may be offered instead, such as 0.1; may be repeated.",
)
@click.option("--warm", type=int, default=0, show_default=True, help="Labels known at the start.")
@click.option("--in-order", is_flag=True, help="Let rows arrive in order of --time, each once, and show drift.")
@click.option("--time", "time_column", help="The column of dates, for --in-order.")
@dates_option
@sheet_option
@click.option("--decisions", type=FILE, help="Write the decisions of all policies to this CSV or Parquet file.")
@click.option("--figure", type=FILE, help="Write a figure to this file (PNG, SVG or PDF).")
@click.option("--report", type=FILE, help="Write a self-contained report to this HTML file.")
@json_option
def replay(
    data: str,
    outcome: str,
    success: tuple[str, ...],
    failure: tuple[str, ...],
    pending: tuple[str, ...],
    features: str | None,
    group: str | None,
    monitor: tuple[str, ...],
    decide_by_protected: bool,
    cost: float | None,
    economics: Economics | None,
    money: Money,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    horizon: int | None,
    seeds: int,
    individuals: int | None,
    label_delay: float | None,
    starters: tuple[float, ...],
    warm: int,
    in_order: bool,
    time_column: str | None,
    dates: Order | None,
    sheet: str | None,
    decisions: str | None,
    figure: str | None,
    report: str | None,
    as_json: bool,
) -> None:
    """Replay policies with features on DATA, a CSV, Excel, Parquet or ARFF file (or openml:NAME), as if its individuals
    arrived one by one.

    An outcome that is not known yet is no failure: name its values with --pending, and these rows are left out. With
    --in-order the rows arrive by date, and the results are shown over time.

    With columns of gains and losses, or with the terms of loans, every individual has its own amount at stake and
    break-even. With --starter, policies may offer a share of the amount first. The replay then assumes that the outcome
    would have been the same, and says for how many acceptances.

    \b
    Example:
      lenience replay loans.csv --outcome repaid --cost 0.8 --discount 0.99 --report replay.html
      lenience replay loans.csv --outcome repaid --features score,amount --monitor sex --monitor age_band \\
        --cost 0.8 --discount 0.99
      lenience replay loans.csv --outcome repaid --amount amount --rate interest --term "36 months" \\
        --loss-given-default 60% --funding-rate 4% --currency $ --discount 0.999
      lenience replay loans.xlsx --outcome status --pending Current --pending Late --in-order --time issued \\
        --cost 0.8 --discount 0.999
    """
    from pathlib import Path

    import msgspec
    import numpy as np

    from lenience.analysis.monitored_replay import monitor_replay
    from lenience.cli.progress import announcing, solving
    from lenience.cli.replay_decisions import check_decisions_path, write_decisions
    from lenience.core.errors import InputError
    from lenience.core.formatting import counted, percent, percents
    from lenience.core.offer_rows import OfferRows
    from lenience.core.validation import real
    from lenience.files.table import from_openml, read_table
    from lenience.reports.replay_report import (
        FEW,
        describe_best,
        describe_columns,
        describe_full_information,
        describe_periods,
        describe_replay,
        write_replay_report,
    )
    from lenience.simulation.replay import late
    from lenience.simulation.replay import replay as run
    from lenience.simulation.replay_table import period_table, replay_tables

    prompt = objective(0.5 if cost is None else cost, discount, arrivals, discount_rate, horizon)
    delay = 0.0 if label_delay is None else real("label_delay", label_delay, least=0)
    if figure is not None:
        from lenience.plot import check_path

        check_path(figure, "figure")
    if report is not None and not Path(report).parent.is_dir():
        raise InputError("report", str(Path(report).parent), "in a folder that exists", code="missing_file")
    if in_order != (time_column is not None):
        raise InputError.because(
            "--in-order needs --time, the column of dates, and --time needs --in-order",
            ("--time", "--in-order"),
            label="",
            code="missing",
        )
    if dates is not None and time_column is None:
        raise InputError.because("needs --time", ("--dates", "--time"), label="--dates", code="missing")
    if decisions is not None:
        check_decisions_path(decisions)
    chosen = None if features is None else [name.strip() for name in features.split(",")]
    check_protected("--features", chosen or (), monitor, decide_by_protected)
    with announcing(f"Reading {data}"):
        if data.startswith("openml:"):
            name = data.removeprefix("openml:")
            number = int(name) if name.isdigit() else name
            data_table = from_openml(
                number, outcome, chosen, group, success, economics, failure, pending, time_column, dates, monitor
            )
        else:
            data_table = read_table(
                data, outcome, chosen, group, success, economics, failure, pending, time_column, dates, sheet, monitor
            )
    check_protected("--features", data_table.columns, monitor, decide_by_protected)  # also if all columns are features
    stakes, offered = data_table.stakes, None
    if stakes is not None:
        population = stakes.offers(money.currency)
        if starters:
            offered = OfferRows.starters(stakes.amount, stakes.cost, starters)
            population = population.with_starters(starters)
        prompt = msgspec.structs.replace(prompt, cost=None, offers=population)
    elif starters:
        raise InputError.because(
            "needs --gain and --loss, or the terms of loans",
            "--starter",
            hint="A starter is a share of what each row has at stake.",
            code="missing",
        )
    goal = late(prompt, delay) if delay else prompt
    answer = solving(
        f"Replaying {counted(seeds, 'run')} on {counted(len(data_table.y), 'individual')}, each with all policies",
        lambda: run(
            data_table.X, data_table.y, goal, seeds=seeds, arrivals=individuals, warm=warm, groups=data_table.groups,
            offers=offered or stakes, times=data_table.times,
            made=None if offered is None else np.zeros(len(data_table.y)),
        ),
    )  # fmt: skip
    size = f"{counted(len(data_table.y), 'individual')}, {data_table.size}"
    if cost is not None:
        title = f"{data_table.name}: {size}, break-even {percent(cost, 2)}"
    elif stakes is not None:
        least, most = percents(float(stakes.cost.min()), float(stakes.cost.max()))
        at_stake = money.format(float(stakes.amount.mean()))
        title = f"{data_table.name}: {size}, {at_stake} at stake on average, break-even {least} to {most}"
    written = []
    if figure is not None:
        from lenience.plot import save
        from lenience.plot.features import replay_figure

        written.append(str(save(replay_figure(answer, title, money), figure)))
    if decisions is not None:
        written.append(write_decisions(answer, data_table, decisions))
    if report is not None:
        written.append(str(write_replay_report(answer, report, title, data_table.describe(), money)))
    by_group = monitor_replay(answer, data_table.y, data_table.monitored) if monitor else []
    if as_json:
        print_json(
            {
                "rows": data_table.rows,
                "individuals": len(data_table.y),
                "description": data_table.describe(),
                "columns": list(data_table.columns),
                "identifiers": list(data_table.identifiers),
                "dates": list(data_table.dates),
                "group": data_table.group,
                "features": list(data_table.features),
                "success_rate": answer.success_rate,
                "arrivals": answer.arrivals,
                "seeds": answer.seeds,
                "warm": answer.warm,
                "known": answer.known,
                "unit": unit_of(cost, money) if stakes is None else unit_of_rows(money),
                "full_information": answer.full_information.mean,
                "policies": answer.summary(),
                "periods": msgspec.to_builtins(answer.periods),
                "monitored": msgspec.to_builtins(by_group),
                "files": written,
            }
        )
        return
    out = console()
    out.print(bold(title), f"\n{describe_replay(answer)}\n{data_table.describe()}\n", sep="")
    for headings, rows in replay_tables(answer, money):
        grid = table()
        for position, heading in enumerate(headings):
            grid.add_column(heading, justify="right" if position else "left", no_wrap=position == 0)
        for row in rows:
            grid.add_row(*row)
        out.print(grid)
    out.print(describe_columns(answer, money) + "\n")
    if answer.periods:
        out.print(describe_periods(answer))
        headings, rows = period_table(answer, money)
        grid = table()
        for position, heading in enumerate(headings):
            grid.add_column(heading, justify="right" if position else "left", no_wrap=position == 0)
        for row in rows:
            grid.add_row(*row)
        out.print(grid)
    print_decisions(by_group)
    out.print(describe_best(answer, money) + (" (Set the number of runs with --seeds.)" if answer.seeds < FEW else ""))
    out.print(describe_full_information(answer, money))
    for path in written:
        out.print(f"Wrote {path}")

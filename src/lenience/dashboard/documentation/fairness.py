"""Chapter 6, fairness: what decisions did to groups that they did not look at, each measure with its interval."""

from __future__ import annotations

from lenience.analysis.monitored_groups import GroupMeasures, Measure, MonitoredGroups
from lenience.core.formatting import counted, even_percent, percent
from lenience.dashboard.documentation.facts import PackFacts
from lenience.reports.canvas import percent_ticks
from lenience.reports.charts import IntervalRow
from lenience.reports.document import (
    Block,
    CaptionedTable,
    Chapter,
    Facts,
    Figure,
    Heading,
    IntervalChart,
    Notice,
    Paragraph,
)
from lenience.reports.views import ReportTable, TableCell

MOST = 20  # groups
VERDICTS = {"below": "below four fifths", "unsure": "not clear", "not below": "not below four fifths"}


def fairness_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    specification = facts.specification
    if specification.decide_by_protected:
        named = ", ".join(specification.protected or [])
        used = f"The version decides by protected attributes ({named}). Somebody confirmed that the law allows it."
    else:
        used = "The version does not decide by a protected attribute. Groups are only measured."
    blocks: list[Block] = [Paragraph(used)]
    if facts.view.fairness is not None:
        blocks += _limit(facts)
    if facts.monitored:
        for result in facts.monitored:
            blocks += _attribute(result)
    else:
        blocks.append(
            Notice(
                "No group can be measured yet.",
                "Send the attributes in the field monitored of each decision (they are personal data and can be "
                "erased), or give them to an import. Decisions never look at them.",
            )
        )
    question = "Are groups treated differently, by how much, and how sure is that?"
    return Chapter("Fairness", question, blocks)


def _limit(facts: PackFacts) -> list[Block]:
    view = facts.view.fairness
    assert view is not None
    money = facts.status.money
    return [
        Facts(
            "Fairness limit of the version",
            [
                ("Limit", view.limit),
                ("Expected value with the limit", money.format(view.value.midpoint)),
                ("Expected value without it", money.format(view.unlimited.midpoint)),
            ],
        )
    ]


def _attribute(result: MonitoredGroups) -> list[Block]:
    groups = result.groups[:MOST]
    name = " and ".join(result.attributes)
    if not groups:
        return []
    rows = [_row(result, group) for group in groups]
    header = (
        "Group",
        "Decisions",
        "Accepted",
        "95% interval",
        "Compared with most accepted",
        "Four fifths",
        "Success of accepted",
    )
    unknown = (
        f" The attribute is unknown for {percent(result.unknown_share)} of the decisions."
        if result.unknown.arrivals
        else ""
    )
    return [
        Heading(f"By {name}"),
        Paragraph(
            f"{counted(sum(group.counts.arrivals for group in groups), 'decision')} in "
            f"{counted(len(groups), 'group')}.{unknown}"
        ),
        Figure(
            f"Share accepted by {name}, with 95% intervals. Intervals that do not overlap differ by more than chance.",
            IntervalChart(
                [
                    IntervalRow(
                        group.name,
                        group.acceptance.value,
                        group.acceptance.interval.lower,
                        group.acceptance.interval.upper,
                    )
                    for group in groups
                ],
                percent_ticks(0, 1),
                (0.0, 1.0),
                "Share accepted",
            ),
        ),
        CaptionedTable(
            f"Decisions by {name}",
            ReportTable(
                header,
                rows,
                "Four fifths: whether the acceptance rate is below 80% of the highest one, a screening convention of "
                "US "
                "employment guidance and no legal test of lending.",
            ),
        ),
    ]


def _row(result: MonitoredGroups, group: GroupMeasures) -> list[str | TableCell]:
    compared = result.comparison(group.name)
    ratio = "the most accepted" if compared is None else _with_interval(compared.ratio)
    success = "no outcome yet" if group.success is None else _with_interval(group.success)
    return [
        group.name,
        f"{group.counts.arrivals:,}",
        even_percent(group.acceptance.value),
        f"{percent(group.acceptance.interval.lower)} to {percent(group.acceptance.interval.upper)}",
        ratio,
        "–" if compared is None else VERDICTS[compared.four_fifths],
        success,
    ]


def _with_interval(measure: Measure) -> str:
    low, high = percent(measure.interval.lower, 0), percent(measure.interval.upper, 0)
    return f"{percent(measure.value)} ({low} to {high})"

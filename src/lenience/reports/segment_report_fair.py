"""The part of the segments' report on the fair optimum: the price of fairness, and who pays."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from lenience.analysis.fair_constraints import Measure
from lenience.analysis.fair_optimum import FairGroup, FairOptimum, PriceOfFairness
from lenience.core.formatting import even_percent, percent
from lenience.core.money import Money
from lenience.reports.charts import LineSeries, line_chart
from lenience.reports.views import ReportTable, Section, TableCell

LEGAL_NOTE = (
    "These decisions differ by group. In the United States and the European Union a lender may not decide by a "
    "protected attribute such as race or sex. Use them for research, or where the law allows them. This is not legal "
    "advice."
)
BLIND_NOTE = (
    "Decisions depend on the segment alone; the group of an applicant is not used. Whether a policy may be chosen for "
    "its effect on groups is a legal question too. This is not legal advice."
)
AVERAGE_NOTE = (
    "Rates are expected over the whole future, where later applicants count less. Where a segment has two policies, "
    "one is drawn at the start, and the limit holds on average over this draw."
)
SUBJECTS: dict[Measure, str] = {
    "acceptance": "Acceptance rate",
    "opportunity": "Acceptance rate of those who succeed",
}


def legal_note(result: FairOptimum) -> str:
    """Return what to know about the law, by whether decisions differ by group."""
    return LEGAL_NOTE if result.group_aware else BLIND_NOTE


def describe_price(result: FairOptimum, money: Money) -> str:
    """Say what the constraint costs, and to what the numbers are proved."""
    free, price = result.unconstrained, result.price
    share = f" ({percent(price.midpoint / free.midpoint)})" if free.midpoint > 0.0 else ""
    return (
        f"With {result.constraint.describe()}, the best policy earns {money.format(result.value.midpoint)}. Without "
        f"this limit it earns {money.format(free.midpoint)}. So the price of fairness is "
        f"{money.format(price.midpoint)}{share}, proved to within {money.format_error(price.width)}. No policy that "
        "keeps the limit earns more."
    )


def describe_payers(result: FairOptimum) -> str:
    """Say whose acceptance rate falls and whose rises."""
    if not result.lowered and not result.raised:
        return "The limit holds anyway: no group's acceptance rate changes."
    parts = []
    if result.lowered:
        parts.append(f"Levelling down: the acceptance rate falls for {_changes(result.lowered)}.")
    if result.raised:
        parts.append(f"It rises for {_changes(result.raised)}.")
    if not result.lowered:
        parts.append("No group's acceptance rate falls.")
    return " ".join(parts)


def describe_inversion(result: FairOptimum) -> str:
    """Say if a segment is accepted more often than one that is more likely to succeed; empty if none is."""
    if result.group_aware or result.inversion is None:
        return ""
    weak, strong = result.inversion
    return (
        f"To keep the limit without seeing the group, the policy accepts {percent(weak.acceptance.midpoint)} of "
        f"{weak.name}, where {percent(weak.expected_success)} are expected to succeed, and only "
        f"{percent(strong.acceptance.midpoint)} of {strong.name}, where {percent(strong.expected_success)} are."
    )


def group_table(result: FairOptimum, money: Money) -> ReportTable:
    """Show the rates and the value of each group, without and with the constraint."""
    header = [
        "group", "share of applicants", "accepted without the limit", "accepted with it", "change, points",
        "of those who succeed: without", "with", "value without", "value with",
    ]  # fmt: skip
    body: list[list[str | TableCell]] = []
    for row in result.groups:
        points = f"{100 * row.change:+.1f}".replace("-", "−")
        kind = "reject" if row in result.lowered else "accept" if row in result.raised else ""
        body.append(
            [
                row.group,
                even_percent(row.share),
                even_percent(row.acceptance_without.midpoint),
                TableCell(even_percent(row.acceptance.midpoint), bar=row.acceptance.midpoint),
                TableCell(points if kind else "0", kind),
                even_percent(row.opportunity_without.midpoint),
                even_percent(row.opportunity.midpoint),
                money.format(row.value_without.midpoint),
                money.format(row.value.midpoint),
            ]
        )
    return ReportTable(header, body, AVERAGE_NOTE)


def fair_section(result: FairOptimum, curve: PriceOfFairness, money: Money) -> Section:
    """Show the fair optimum at a limit, and the price of fairness at every limit."""
    text = (
        "The first figure shows what the best policy earns against the largest difference between groups that is "
        "allowed: the further left, the stricter. The others show who pays: the rate of each group, once if rates may "
        f"rise and fall, and once if they may only rise. Amounts are {money.words}."
    )
    payers = " ".join(filter(None, [describe_payers(result), describe_inversion(result)]))
    paragraphs = [describe_price(result, money), payers, text, legal_note(result)]
    return Section(
        "The price of fairness", paragraphs, _figures(curve, money), group_table(result, money), side_by_side=True
    )


def _figures(curve: PriceOfFairness, money: Money) -> list[Markup]:
    limits = [100 * limit for limit in curve.within]
    across = "Largest difference between groups, points"
    values = [
        LineSeries(label, limits, [money.amount(point.value.midpoint) for point in points])
        for label, points in (("rise and fall", curve.points), ("only rise", curve.raising))
    ]
    figures = [line_chart(values, across, money.axis_label("Value"))]
    for points, how in ((curve.points, "rise and fall"), (curve.raising, "only rise")):
        rates = [
            LineSeries(group.group, limits, [100 * _rate(point.groups[g], curve.measure) for point in points])
            for g, group in enumerate(points[0].groups)
        ]
        figures.append(line_chart(rates, across, f"{SUBJECTS[curve.measure]} if rates {how}, %"))
    return figures


def _rate(group: FairGroup, measure: Measure) -> float:
    return (group.acceptance if measure == "acceptance" else group.opportunity).midpoint


def _changes(groups: Sequence[FairGroup]) -> str:
    changes = [
        f"{row.group} from {percent(row.acceptance_without.midpoint)} to {percent(row.acceptance.midpoint)}"
        for row in groups
    ]
    return changes[0] if len(changes) == 1 else f"{', '.join(changes[:-1])} and {changes[-1]}"

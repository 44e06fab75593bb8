"""The parts of the segments' report that compare: groups, models, constraints, and the proposal with today."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lenience.analysis.fairness import ConstraintCost, GroupFate, group_fates, segment_fates
from lenience.analysis.status_quo import CAVEAT, StatusQuoComparison, describe_status_quo
from lenience.core.errors import InputError
from lenience.core.formatting import even_percent
from lenience.core.money import Money
from lenience.history.history import History
from lenience.reports.views import ReportTable, Section, TableCell
from lenience.segments.policies import SegmentPolicies
from lenience.segments.segments import Segments
from lenience.segments.small_starts import StarterGroup
from lenience.segments.starting import Shutout

MOST_COMPARED = 60  # segments listed beside what they earn today


def followed_groups(policies: SegmentPolicies, truths: Mapping[str, float] | None) -> list[GroupFate] | str:
    """Follow the segments of each group forward, or return why that cannot be computed."""
    try:
        return group_fates(segment_fates(policies, truths))
    except InputError as error:  # too many members, or offers with a prior that may be wrong
        return error.sentence


def group_section(groups: Sequence[GroupFate] | str, segments: Segments, history: History | None) -> Section:
    """Show the acceptance of each group from now on, and how often decisions about it are wrong."""
    if isinstance(groups, str):
        return Section("Outcomes by group", [f"Not computed. {groups}"])
    known = all(row.false_rejection is not None for row in groups)
    past = _past_acceptance(segments, history)
    header = ["group", "share of applicants"]
    header += ["accepted in the past"] if past else []
    header += ["accepted from now on", "first half", "second half", "wrongly rejected (probability)"]
    header += ["would succeed, rejected", "would fail, accepted"] if known else []
    body: list[list[str | TableCell]] = []
    for row in groups:
        line: list[str | TableCell] = [row.group or "all", even_percent(row.share)]
        line += [past.get(row.group, "")] if past else []
        line += [
            TableCell(even_percent(row.acceptance), bar=row.acceptance),
            even_percent(row.early),
            even_percent(row.late),
        ]
        line.append("" if row.shut_out is None else even_percent(row.shut_out))
        if row.false_rejection is not None and row.false_acceptance is not None:
            line += [even_percent(row.false_rejection), even_percent(row.false_acceptance)]
        body.append(line)
    basis = "the true success rates" if known else "the evidence on each segment"
    text = (
        f"Computed exactly from {basis}. First half and second half: the two halves of each segment's discounted "
        "future. Wrongly rejected: the probability that an applicant from a segment above the break-even finds it "
        "closed for good."
    )
    if any(cell.objective.offers is not None for cell in segments):
        text += " Accepted means at any of its offers, and the break-even is the lowest one."
    return Section("Outcomes by group", [text], table=ReportTable(header, body))


def _past_acceptance(segments: Segments, history: History | None) -> dict[str, str]:
    """Return the share of past applicants that was accepted, by group."""
    if history is None:
        return {}
    arrivals, accepted = dict.fromkeys(segments.groups, 0), dict.fromkeys(segments.groups, 0)
    for row in history.segments:
        if row.segment in segments:
            arrivals[segments[row.segment].group] += row.arrivals
            accepted[segments[row.segment].group] += row.accepted
    return {group: even_percent(accepted[group] / count) for group, count in arrivals.items() if count}


def starter_section(groups: Sequence[StarterGroup], known: bool) -> Section:
    """Show by group how many segments above the break-even a smaller first offer opens."""
    basis = "true success rate" if known else "past success rate"
    text = (
        "A smaller first offer costs less if it fails, and teaches as much. The table counts the segments whose "
        f"{basis} is above the break-even: how many are accepted today, and how many would be if a tenth of the "
        "amount may be offered first."
    )
    body: list[list[str | TableCell]] = [
        [row.group or "all", f"{row.segments:,}", f"{row.start:,}", f"{row.start_small:,}"] for row in groups
    ]
    header = ["group", "above break-even", "accepted at the full amount", "accepted with a tenth first"]
    return Section("A smaller first offer", [text], table=ReportTable(header, body))


def model_section(outset: Sequence[Shutout], known: bool) -> Section:
    """Show by model and group how many segments are never accepted, and how many of them are above the break-even."""
    groups = list(dict.fromkeys(row.group for row in outset))
    by = {(row.model, row.group): row for row in outset}
    body: list[list[str | TableCell]] = []
    for model in dict.fromkeys(row.model for row in outset):
        line: list[str | TableCell] = [model or ""]
        for group in groups:
            row = by[model, group]
            line.append(
                TableCell(
                    f"{row.shut:,} of {row.segments:,}",
                    note=f"{row.deserving_shut:,} of {row.deserving:,} above break-even",
                    note_kind="reject" if row.deserving_shut else "soft",
                )
            )
        body.append(line)
    basis = "true success rate" if known else "past success rate"
    text = (
        "The number of segments that each model would never accept again, from the same past decisions. The second "
        f"line counts only segments whose {basis} is above the break-even."
    )
    return Section(
        "Segments that each model rejects", [text], table=ReportTable(["model", *(g or "all" for g in groups)], body)
    )


def constraint_section(name: str, costs: Sequence[ConstraintCost] | str, total_value: float, money: Money) -> Section:
    """Show what a constraint costs by group, or why that is unknown."""
    title = f"Constraint: {name}"
    if isinstance(costs, str):
        return Section(title, [f"The cost of this constraint was not computed: {costs}."])
    body: list[list[str | TableCell]] = []
    for group in dict.fromkeys(row.group for row in costs):
        of_group = [row for row in costs if row.group == group]
        body.append([group or "all", f"{len(of_group):,}", *_constraint_cells(of_group, total_value, money)])
    if len(body) > 1:
        body.append(
            [TableCell("all groups", "strong"), f"{len(costs):,}", *_constraint_cells(costs, total_value, money)]
        )
    header = ["group", "segments", "value without", "value with", "cost", "share of the total value"]
    text = f"What the constraint costs, computed exactly from the evidence on each segment. Amounts are {money.words}."
    return Section(title, [text], table=ReportTable(header, body))


def _constraint_cells(rows: Sequence[ConstraintCost], total_value: float, money: Money) -> list[str]:
    before = math.fsum(row.optimum.midpoint for row in rows)
    after = math.fsum(row.constrained.midpoint for row in rows)
    share = even_percent((before - after) / total_value, 2) if total_value > 0 else ""
    return [money.format(before), money.format(after), money.format(max(before - after, 0.0)), share]


def status_quo_section(rows: Sequence[StatusQuoComparison], money: Money) -> Section:
    """Compare the proposal with today's acceptance rates, by segment."""
    header = ["segment", "accepted today → proposal", "value today", "value of the proposal", "difference"]
    largest = sorted(rows, key=lambda row: -abs(row.more))[:MOST_COMPARED]
    body: list[list[str | TableCell]] = [
        [row.segment, row.change, money.format(row.as_now), money.format(row.proposed), money.format_change(row.more)]
        for row in largest
    ]
    note = f"The {MOST_COMPARED} segments of {len(rows):,} that differ most." if len(rows) > MOST_COMPARED else ""
    return Section(
        "Compared with today", [describe_status_quo(rows, money), CAVEAT], table=ReportTable(header, body, note)
    )

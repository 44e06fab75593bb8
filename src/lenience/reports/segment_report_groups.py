"""The parts of the segments' report that compare: how groups fare, whom each model shuts out, what constraints cost, by
how much the proposal is better than now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from lenience.analysis.fairness import ConstraintCost, GroupFate
from lenience.analysis.status_quo import CAVEAT, Money, ThanNow, describe_than_now
from lenience.core.formatting import even_percent
from lenience.history.fit import History
from lenience.segments.segments import Segments
from lenience.segments.starting import Shutout

MOST_COMPARED = 60  # segments listed beside what they earn now


def html_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table that scrolls sideways where it must; cells are HTML already."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def marked(now: str, accept: bool | None) -> str:
    """What to do, in the colour of acceptance or rejection."""
    return f'<span class="{"yes" if accept else "no"}">{now}</span>'


def fairness_section(groups: Sequence[GroupFate], segments: Segments, history: History | None) -> str:
    """How groups fare: exactly at true success rates, or as is to be expected at what is believed."""
    known = all(row.false_rejection is not None for row in groups)
    header = ["group", "of arrivals", "accepted so far", "accepted from now on", "early", "late", "deserving, shut out"]
    header += ["would succeed, rejected", "would fail, accepted"] if known else []
    past = _past(segments, history)
    if not past:
        header.remove("accepted so far")
    body = []
    for row in groups:
        line = [escape(row.group or "all"), even_percent(row.share)]
        line += [past.get(row.group, "")] if past else []
        line += [_bar(row.acceptance), even_percent(row.early), even_percent(row.late)]
        line.append("" if row.shut_out is None else even_percent(row.shut_out))
        if row.false_rejection is not None and row.false_acceptance is not None:
            line += [even_percent(row.false_rejection), even_percent(row.false_acceptance)]
        body.append(line)
    at = "at the true success rates" if known else "averaged over what is believed of each segment"
    return (
        f"<h2>How groups fare</h2><p>Computed exactly, {at}. Early and late are the first and second half of each "
        "segment's discounted future; deserving and shut out is the probability that a member of a segment worth "
        f"accepting finds it closed for good.</p>{html_table(header, body)}"
    )


def _past(segments: Segments, history: History | None) -> dict[str, str]:
    """By group, the share of past arrivals that was accepted."""
    if history is None:
        return {}
    arrivals, accepted = dict.fromkeys(segments.groups, 0), dict.fromkeys(segments.groups, 0)
    for row in history.segments:
        if row.segment in segments:
            arrivals[segments[row.segment].group] += row.arrivals
            accepted[segments[row.segment].group] += row.accepted
    return {group: even_percent(accepted[group] / count) for group, count in arrivals.items() if count}


def outset_section(outset: Sequence[Shutout], known: bool) -> str:
    """By group and model: segments that never start, and of them those that deserve acceptance."""
    groups = list(dict.fromkeys(row.group for row in outset))
    by = {(row.model, row.group): row for row in outset}
    body = []
    for model in dict.fromkeys(row.model for row in outset):
        line = [escape(model)]
        for group in groups:
            row = by[model, group]
            mark = "no" if row.deserving_shut else "soft"
            lost = f'<small class="{mark}">{row.deserving_shut:,} of {row.deserving:,} deserving</small>'
            line.append(f"{row.shut:,} of {row.segments:,}<br>{lost}")
        body.append(line)
    header = ["model", *(group or "all" for group in groups)]
    deserve = "their true success rate" if known else "the success rate of their past outcomes"
    return (
        "<h2>Whom each model shuts out at the outset</h2><p>The same past under other beliefs: how many segments would "
        f"never be accepted again, and below it how many of those that deserve it, {deserve} being above the cost.</p>"
        + html_table(header, body)
    )


def constraint_section(name: str, costs: Sequence[ConstraintCost] | str, whole: float) -> str:
    """What a constraint costs, by group, or why that is not known."""
    if isinstance(costs, str):
        return f"<h2>Constraint: {escape(name)}</h2><p>Its cost was not computed: {escape(costs)}.</p>"
    body = []
    for group in dict.fromkeys(row.group for row in costs):
        mine = [row for row in costs if row.group == group]
        body.append([escape(group or "all"), f"{len(mine):,}", *_money(mine, whole)])
    if len(body) > 1:
        body.append(["<b>together</b>", f"{len(costs):,}", *_money(costs, whole)])
    header = ["group", "segments", "value without", "value with", "cost", "of the whole value"]
    return (
        f"<h2>Constraint: {escape(name)}</h2><p>Its exact cost in value, if what is believed is right.</p>"
        + html_table(header, body)
    )


def _money(rows: Sequence[ConstraintCost], whole: float) -> list[str]:
    before = math.fsum(row.optimum.midpoint for row in rows)
    after = math.fsum(row.constrained.midpoint for row in rows)
    share = even_percent((before - after) / whole, 2) if whole > 0 else ""
    return [f"{before:,.3f}", f"{after:,.3f}", f"{max(before - after, 0.0):,.3f}", share]


def _bar(share: float) -> str:
    """A share as a number over a bar."""
    return f'<span class="bar"><i style="width:{100 * share:.1f}%"></i><b>{even_percent(share)}</b></span>'


def than_now_section(rows: Sequence[ThanNow], money: Money) -> str:
    """By how much the proposal is expected to be better than going on as now, by segment."""
    header = ["segment", "accepted so far → proposed", "as now", "proposed", "more"]
    largest = sorted(rows, key=lambda row: -abs(row.more))[:MOST_COMPARED]
    body = [
        [escape(row.segment), row.change, *(money.show(value) for value in (row.as_now, row.proposed, row.more))]
        for row in largest
    ]
    more = f" The {MOST_COMPARED} that differ most of {len(rows):,} are listed." if len(rows) > MOST_COMPARED else ""
    said = f"{describe_than_now(rows, money)} {CAVEAT}{more}"
    return f"<h2>By how much better than now</h2><p>{escape(said)}</p>{html_table(header, body)}"

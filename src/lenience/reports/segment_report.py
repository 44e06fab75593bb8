"""segments_report: one HTML page about many segments, for people: who is accepted, why, who never starts, how groups
fare.

The page is self-contained (styles and figures inline, no script, nothing fetched), follows the reader's dark or light
setting, and fits a phone. All that is drawn comes from structures that are public on their own:
:func:`~lenience.segments.starting.starts`, :func:`~lenience.models.protocol.shrinkage`,
:func:`~lenience.analysis.fairness.group_fates`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from lenience.analysis.fairness import ConstraintCost, group_fates, segment_fates
from lenience.analysis.ignored_delay import Ignored
from lenience.analysis.status_quo import Money, compare_with_now
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import count, counted, describe_unit, even_percent, plural
from lenience.core.validation import having
from lenience.history.fit import History
from lenience.models.protocol import Shrinkage
from lenience.reports.segment_report_groups import (
    constraint_section,
    fairness_section,
    html_table,
    marked,
    outset_section,
    than_now_section,
)
from lenience.reports.segment_report_late import late_section
from lenience.segments.exposure_limits import Exposure
from lenience.segments.policies import SegmentPolicies
from lenience.segments.segments import Segments
from lenience.segments.starting import Shutout, Start, shut_out_at_outset, starts

MOST_DRAWN = 60  # segments that are drawn; tables have all
MOST_LISTED = 500


def segments_report(
    policies: SegmentPolicies,
    title: str = "Segments",
    truths: Mapping[str, float] | None = None,
    shrinkage: Sequence[Shrinkage] | None = None,
    history: History | None = None,
    outset: Sequence[Shutout] = (),
    constraints: Mapping[str, Sequence[ConstraintCost] | str] | None = None,
    warning: str | None = None,
    facts: Mapping[str, str] | None = None,
    money: Money | None = None,
    late: Sequence[Exposure] = (),
    ignored: Sequence[Ignored] = (),
) -> str:
    """The page as HTML text; :func:`write_report` saves it.

    ``truths`` (where known) adds who deserves acceptance and how often decisions are wrong; ``shrinkage`` where beliefs
    came from; ``history`` what was read and what could not be used; ``outset`` what each model would shut out;
    ``constraints`` what each would cost, or why that is not known; ``warning`` what the reader must know first;
    ``facts`` what the page was made from, by name; ``money`` what a unit of value is, for the comparison with now;
    ``late`` the segments' exposure limits (:func:`~lenience.exposure_limits`) where labels come late, ``ignored`` what
    to ignore them costs.
    """
    having("policies", policies, "segments", "solved segments, as of Segments.solve()")
    limits = {row.name: row for row in late}
    if late and list(limits) != policies.segments.names:
        raise InputError.because(
            "must have the limits of the same segments in the same order, as exposure_limits returns them",
            "late",
            code="length_mismatch",
        )
    rows = [
        msgspec.structs.replace(row, starts=limits[row.name].starts is not False) if late else row
        for row in starts(policies.segments)
    ]
    worth = math.fsum(row.worth for row in late) if late else policies.value().midpoint
    parts = [_summary(worth, rows, limits), _cards(policies, worth, rows, limits)]
    if facts:
        said = "; ".join(f"{escape(name)} <b>{escape(fact)}</b>" for name, fact in facts.items())
        parts.append(f'<p class="note">Made from: {said}.</p>')
    if history is not None and history.selection():
        parts.append(f'<p class="note"><b>Selective labels.</b> {escape(history.selection())}</p>')
    if warning:
        parts.append(f'<p class="note">Note: {escape(warning)}.</p>')
    if late:
        dated = history is not None and history.as_of is not None
        parts.append(late_section(late, ignored, money or Money(), dated))
    compared = [] if history is None else compare_with_now(policies, history, late)
    if compared:
        parts.append(than_now_section(compared, money or Money()))
    shut = [row for row in rows if not row.starts]
    parts.append(_never(policies.segments, shut, truths))
    parts.append(_figure(policies, rows, bool(late)))
    if truths is not None or len(policies.segments.groups) > 1:
        parts.append(fairness_section(group_fates(segment_fates(policies, truths)), policies.segments, history))
    if outset:
        parts.append(outset_section(outset, truths is not None))
    for name, costs in (constraints or {}).items():
        parts.append(constraint_section(name, costs, policies.value().midpoint))
    parts.append(_segments(policies, rows, history, limits))
    if shrinkage is not None:
        parts.append(_shrinkage(shrinkage))
    if history is not None:
        text = "<br>".join(escape(line) for line in history.describe().splitlines())
        parts.append(f'<h2>What was read</h2><p class="note">{text}</p>')
    body = "\n".join(parts)
    style = files("lenience.reports").joinpath("segment_report.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{style}</style></head><body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def write_report(path: str | Path, policies: SegmentPolicies, **options: Any) -> Path:
    """Save the page of :func:`segments_report`, to which the options go."""
    target = Path(path)
    target.write_text(segments_report(policies, **options), encoding="utf-8")
    return target


def _accepted(rows: list[Start], limits: Mapping[str, Exposure]) -> set[str]:
    """The segments whose next member is accepted."""
    return {row.name for row in rows if (limits[row.name].accept if limits else row.starts)}


def _summary(worth: float, rows: list[Start], limits: Mapping[str, Exposure]) -> str:
    """What to do and what is counted, in words."""
    begin = len(_accepted(rows, limits))
    costs = {row.cost for row in rows}
    if len(costs) == 1:
        unit = describe_unit(costs.pop())
    else:
        unit = "a success earns 1 − c and a failure loses c, c being the segment's break-even"
    until = (
        "while fewer of its labels are pending than its limit, which changes with what they say"
        if limits
        else "while its success rate is above what is asked of it, which is less than the break-even while little is "
        "known and rises to it"
    )
    return (
        f"<p>Accept in {begin:,} of {counted(len(rows), 'segment')}, and in each go on {until}. Together they "
        f"are expected to earn {worth:,.2f} from now on. As to what is counted, {unit}; times that "
        "sum in money, a value is money. What comes later counts less, by the discount.</p>"
    )


def _cards(policies: SegmentPolicies, worth: float, rows: list[Start], limits: Mapping[str, Exposure]) -> str:
    segments, begin = policies.segments, _accepted(rows, limits)
    share = math.fsum(cell.share for cell in segments if cell.name in begin)
    total = math.fsum(cell.share for cell in segments)
    cards = [
        (f"{len(segments):,}", "segments"),
        (f"{len(begin):,}", "are accepted now"),
        (even_percent(share / total, 0), "of arrivals belong to them"),
        (
            f"{worth:,.2f}",
            "expected to be earned from now on, in units of a gain and a loss together",
        ),
    ]
    if limits:
        waiting = sum(row.accept is False and row.limit != 0 for row in limits.values())
        cards.append((f"{waiting:,}", plural(waiting, "waits", "wait") + " for labels that are pending"))
    else:
        cards.append((f"{policies.tables:,}", "different policies solved, each with its certificate"))
    inner = "".join(f'<div class="card"><b>{a}</b><span>{escape(b)}</span></div>' for a, b in cards)
    return f'<div class="cards">{inner}</div>'


def _never(segments: Segments, shut: list[Start], truths: Mapping[str, float] | None) -> str:
    text = "<h2>Segments that never start</h2>"
    if not shut:
        return text + "<p>None: every segment is worth a first acceptance.</p>"
    losing = sum(row.loses for row in shut)
    if losing:
        text += (
            f"<p>{losing:,} of {counted(len(segments), 'segment')} {plural(losing, 'is', 'are')} almost surely a loss: "
            "by what is believed the success rate is below the break-even, with a hope of less than 5 % that it is "
            "not.</p>"
        )
    slow = sum(not row.loses and row.needed < row.volume for row in shut)
    if slow:
        text += (
            f"<p>In {slow:,} of {counted(len(segments), 'segment')} labels come so late that learning does not pay: "
            "acceptances would go on at a loss meanwhile.</p>"
        )
    rare = len(shut) - losing - slow
    if rare:
        text += (
            f"<p>{rare:,} of {counted(len(segments), 'segment')} {plural(rare, 'is', 'are')} too rare, for what is "
            "believed, to be worth an acceptance, and shut out from here on, deserving or not; beliefs that borrow "
            "strength, coarser segments or a floor on exploration would let them in.</p>"
        )
    header = ["group", "segments", "never start"]
    if truths is not None:
        header += ["deserving", "of them never start", "of their arrivals"]
    body = []
    out = {row.name for row in shut}
    for row in shut_out_at_outset(segments, truths, begin={name: name not in out for name in segments.names}):
        line = [escape(row.group or "all"), f"{row.segments:,}", f"{row.shut:,}"]
        if row.deserving is not None:
            line += [f"{row.deserving:,}", f"{row.deserving_shut:,}", even_percent(row.deserving_share_shut or 0.0, 0)]
        body.append(line)
    return text + html_table(header, body)


def _figure(policies: SegmentPolicies, rows: list[Start], late: bool) -> str:
    """Beliefs as points with 90 % intervals, the threshold as a tick, the cost as a line."""
    order = sorted(range(len(rows)), key=lambda i: -rows[i].volume)[:MOST_DRAWN]
    drawn = [rows[i] for i in sorted(order)]
    left, width, step, top = 170.0, 720.0, 19.0, 26.0
    height = top + step * len(drawn) + 30.0

    def x(rate: float) -> float:
        return left + rate * (width - left - 20.0)

    lines = [f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="Beliefs and thresholds by segment">']
    for tick in range(0, 11, 2):
        at = x(tick / 10)
        lines.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{top - 8:g}" y2="{height - 24:g}"/>')
        lines.append(f'<text class="soft" x="{at:.1f}" y="{height - 8:g}" text-anchor="middle">{tick * 10} %</text>')
    for cost in sorted({row.cost for row in drawn}):
        lines.append(
            f'<line class="cost" x1="{x(cost):.1f}" x2="{x(cost):.1f}" y1="{top - 8:g}" y2="{height - 24:g}"/>'
        )
        lines.append(
            f'<text class="soft" x="{x(cost):.1f}" y="{top - 12:g}" text-anchor="middle">break-even {cost:.4g}</text>'
        )
    for i, row in enumerate(drawn):
        y = top + step * (i + 0.5)
        interval = row.prior.interval(0.9)
        needed = _threshold(policies, row.name, row.prior)
        kind = "" if row.starts else ' class="shut"'
        name = row.name if len(row.name) <= 24 else row.name[:23] + "…"
        lines.append(
            f"<g{kind}><title>{escape(row.name)}: {escape(row.reason)}</title>"
            f'<text x="{left - 10:g}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
            f'<line class="range" x1="{x(interval.lower):.1f}" x2="{x(interval.upper):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<line class="need" x1="{x(needed):.1f}" x2="{x(needed):.1f}" y1="{y - 6:.1f}" y2="{y + 6:.1f}"/>'
            f'<circle class="mean" cx="{x(row.prior.mean):.1f}" cy="{y:.1f}" r="4.5"/></g>'
        )
    lines.append("</svg>")
    more = f" The {MOST_DRAWN} largest of {len(rows):,} are drawn." if len(rows) > MOST_DRAWN else ""
    return (
        "<h2>What is believed, and what is asked</h2>"
        "<p>Points: the expected success rate, with the interval that holds it nine times in ten. Ticks: the rate "
        "above which one accepts now, below the break-even by the benefit of the doubt"
        f"{', as if labels came at once' if late else ''}. Red: rejected.{more}</p>"
        f'<div class="scroll" style="padding:.6rem">{"".join(lines)}</div>'
    )


def _threshold(policies: SegmentPolicies, name: str, belief: Belief) -> float:
    policy = policies[name]
    return float(policy.threshold(belief.n, tolerance=1e-3).midpoint) if hasattr(policy, "threshold") else 0.0


def _segments(
    policies: SegmentPolicies, rows: list[Start], history: History | None, limits: Mapping[str, Exposure]
) -> str:
    past = {} if history is None else {row.segment: row for row in history.segments}
    body = []
    for cell, row in list(zip(policies.segments, rows, strict=True))[:MOST_LISTED]:
        own, late = past.get(row.name), limits.get(row.name)
        came = {"accepted / arrivals": "" if own is None else f"{own.accepted:,} / {own.arrivals:,}"} if past else {}
        here = {"share": even_percent(cell.share, 2), "volume": f"{row.volume:,.1f}"}
        known = {"believed": f"{even_percent(row.prior.mean)} of {count(row.prior.n)}"}
        line = {"segment": escape(row.name), "group": escape(row.group)}
        if late is None:
            needed = {"volume to start": "far more" if math.isinf(row.needed) else f"{row.needed:,.1f}"}
            worth = {"worth": f"{policies.segment_value(row.name).midpoint:,.3f}"}
            now = {"now": marked("accept" if row.starts else "reject", row.starts)}
            body.append(line | came | here | needed | known | worth | now)
        else:  # what to do comes first, for the table is wide
            now = {"now": marked(late.now, late.accept), "pending": f"{late.pending:,}", "at most out": late.most}
            body.append(line | now | known | {"worth": f"{late.worth:,.3f}"} | came | here)
    header = list(body[0])
    more = f"<p class='soft'>The first {MOST_LISTED} of {len(rows):,}.</p>" if len(rows) > MOST_LISTED else ""
    said = "; below the volume to start, learning would not pay"
    if limits:
        said = ". At most out: how many acceptances without a label are worth having at once"
    return (
        f"<h2>All segments</h2><p>Volume: the members still to come, each counted at its discount{said}. Believed: the "
        "expected success rate, and how many observations it rests on. Worth: what is expected to be earned from now "
        "on.</p>"
        f"{html_table(header, [list(line.values()) for line in body])}{more}"
    )


def _shrinkage(rows: Sequence[Shrinkage]) -> str:
    header = ["segment", "prior", "own labels", "own rate", "belief", "weight of the prior"]
    body = [
        [
            escape(row.cell),
            f"{even_percent(row.prior.mean)} of {count(row.prior.n)}",
            count(row.labels),
            "" if row.own_rate is None else even_percent(row.own_rate),
            f"{even_percent(row.belief.mean)} of {count(row.belief.n)}",
            even_percent(row.pull, 0),
        ]
        for row in rows[:MOST_LISTED]
    ]
    said = "<p>What others say of a segment, its own labels, and both together.</p>"
    return f"<h2>Where beliefs come from</h2>{said}{html_table(header, body)}"

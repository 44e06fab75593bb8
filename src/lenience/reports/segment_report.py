"""segments_report: one HTML page about many segments, for business readers: who is accepted, why, and at what value.

The page is self-contained (style and figures inline, no script, nothing is fetched), follows the reader's dark or light
setting, and fits a phone. Its numbers come from public functions: :func:`~lenience.segments.starting.starts`,
:func:`~lenience.models.protocol.shrinkage`, :func:`~lenience.analysis.fairness.group_fates`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lenience.analysis.fair_optimum import FairOptimum, PriceOfFairness
from lenience.analysis.fairness import ConstraintCost, segment_fates
from lenience.analysis.ignored_delay import Ignored
from lenience.analysis.monitored_groups import MonitoredGroups
from lenience.analysis.status_quo import compare_with_status_quo
from lenience.core.errors import InputError
from lenience.core.formatting import amount, count, counted, even_percent, percent, plural
from lenience.core.money import Money
from lenience.core.validation import having
from lenience.history.history import History
from lenience.models.protocol import Shrinkage
from lenience.policies.beliefs.offers import offers_of
from lenience.policies.beliefs.optimal import OptimalPolicy
from lenience.reports.canvas import percent_ticks
from lenience.reports.charts import IntervalRow, interval_chart
from lenience.reports.exposure_text import limits_text
from lenience.reports.rendering import render
from lenience.reports.segment_report_exposure import exposure_section
from lenience.reports.segment_report_fair import fair_section
from lenience.reports.segment_report_groups import (
    constraint_section,
    followed_groups,
    group_section,
    model_section,
    starter_section,
    status_quo_section,
)
from lenience.reports.segment_report_maturing import maturing_sections
from lenience.reports.segment_report_monitored import monitored_section
from lenience.reports.views import ReportTable, Section, TableCell, decision_cell
from lenience.segments.exposure_limits import Exposure
from lenience.segments.policies import SegmentPolicies
from lenience.segments.segments import Segments
from lenience.segments.small_starts import starter_groups
from lenience.segments.starting import Shutout, Start, has_offers, shut_out_at_outset, starts
from lenience.solvers.stopping.threshold import estimate_threshold

MOST_DRAWN = 60  # segments in the figure; tables list more
MOST_LISTED = 500
RATE_TOLERANCE = 1e-3  # of a minimum rate
RATE_SECONDS = 3e-3  # for each of about ten solves of a minimum rate, by the solver's estimate


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
    fair: tuple[FairOptimum, PriceOfFairness] | str | None = None,
    monitored: Sequence[MonitoredGroups] = (),
) -> str:
    """Return the report as the text of an HTML page; :func:`write_segments_report` saves it.

    Parameters
    ----------
    policies : SegmentPolicies
        The solved segments, as returned by ``Segments.solve()``.
    title : str, default "Segments"
        The page's title.
    truths : mapping of str to float, optional
        True success rates, where known. They add how often decisions are wrong.
    shrinkage : sequence of Shrinkage, optional
        Where the expected success rates come from.
    history : History, optional
        The past decisions. They add the comparison with today and the notes on the data.
    outset : sequence of Shutout, optional
        Which segments each model would never accept.
    constraints : mapping, optional
        What each constraint costs, or why that is unknown.
    warning : str, optional
        What the reader must know first.
    facts : mapping of str to str, optional
        What the page is based on, e.g. the file.
    money : Money, optional
        How to show amounts; by default as the objective says.
    late : sequence of Exposure, optional
        The limits of :func:`~lenience.exposure_limits`, if outcomes are delayed.
    ignored : sequence of Ignored, optional
        What ignoring the delay would cost.
    fair : tuple of FairOptimum and PriceOfFairness, or str, optional
        The fair optimum at a limit and at every limit, or why it is unknown.
    monitored : sequence of MonitoredGroups, optional
        Past decisions by attributes that they do not look at, as of :func:`lenience.analysis.monitor_history`.

    Returns
    -------
    str
        The page.

    Raises
    ------
    InputError
        If ``late`` has other segments than ``policies``.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> segments = Segments.of({"north": 0.6, "south": 0.4}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> "<title>Loans</title>" in segments_report(segments.solve(), "Loans")
    True
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
    shown = money or next(iter(policies.segments)).objective.money
    worth = math.fsum(row.worth for row in late) if late else policies.value().midpoint
    compared = [] if history is None else compare_with_status_quo(policies, history, late)
    sections = [status_quo_section(compared, shown)] if compared else []
    if late:
        dated = history is not None and history.as_of is not None
        sections.append(exposure_section(late, ignored, shown, dated))
    sections.append(_rejected_section(policies.segments, [row for row in rows if not row.starts], truths))
    sections.append(_rates_section(policies, rows, bool(late)))
    if history is not None and history.applied is not None:
        sections += maturing_sections(history, history.applied)
    offers = any(row.offers is not None for row in rows)
    if truths is not None or len(policies.segments.groups) > 1:
        sections.append(group_section(followed_groups(policies, truths), policies.segments, history))
    if monitored:
        exact = not late and not any(map(has_offers, policies.segments))
        fates = segment_fates(policies, truths) if exact else None
        sections += [monitored_section(result, fates) for result in monitored]
    shut = sum(not row.starts for row in rows)
    if (offers or len(policies.segments.groups) > 1) and not late and 0 < shut <= MOST_LISTED:
        rates = truths
        if rates is None and history is not None:
            past_rates = history.rates()
            rates = {name: past_rates.get(name, 0.0) for name in policies.segments.names}
        sections.append(starter_section(starter_groups(policies.segments, rates), truths is not None))
    if outset:
        sections.append(model_section(outset, truths is not None))
    for name, costs in (constraints or {}).items():
        sections.append(constraint_section(name, costs, policies.value().midpoint, shown))
    if isinstance(fair, str):
        sections.append(Section("The price of fairness", [f"It was not computed: {fair}."]))
    elif fair is not None:
        sections.append(fair_section(*fair, shown))
    sections.append(_segments_section(policies, rows, history, limits, shown))
    if shrinkage is not None:
        sections.append(_evidence_section(shrinkage))
    return render(
        "segments.html",
        title=title,
        summary=_summary(worth, rows, limits, shown),
        cards=_cards(policies, worth, rows, limits, shown),
        facts=dict(facts or {}),
        selection="" if history is None else history.selection(),
        warning=f"{warning[0].upper()}{warning[1:]}." if warning else "",
        sections=sections,
        prices="" if history is None else history.price_warning(),
        immaturity="" if history is None or history.immaturity is None else history.immaturity.describe(),
        data_notes="" if history is None else history.describe(),
    )


def write_segments_report(path: str | Path, policies: SegmentPolicies, **options: Any) -> Path:
    """Write the page of :func:`segments_report` to a file.

    Parameters
    ----------
    path : str or Path
        The file to write.
    policies : SegmentPolicies
        The solved segments, as returned by ``Segments.solve()``.
    **options : Any
        The other parameters of :func:`segments_report`.

    Returns
    -------
    Path
        The path of the page.

    Examples
    --------
    >>> import tempfile
    >>> from lenience import Belief, Discounted, Segments
    >>> segments = Segments.of({"north": 1.0}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_segments_report(f"{folder}/report.html", segments.solve(), title="Loans").name
    'report.html'
    """
    target = Path(path)
    target.write_text(segments_report(policies, **options), encoding="utf-8")
    return target


def _accepted(rows: list[Start], limits: Mapping[str, Exposure]) -> set[str]:
    """Return the segments whose next applicant is accepted."""
    return {row.name for row in rows if (limits[row.name].accept if limits else row.starts)}


def _summary(worth: float, rows: list[Start], limits: Mapping[str, Exposure], money: Money) -> str:
    """Say what to do and what it is worth."""
    accepted = len(_accepted(rows, limits))
    rule = (
        "In each, continue while fewer applicants are pending than its limit. The limit changes with the outcomes."
        if limits
        else "In each, continue while its success rate is above the minimum rate. The minimum starts below the "
        "break-even, because early outcomes teach you something, and rises to it as evidence grows."
    )
    return (
        f"Accept applicants in {accepted:,} of {counted(len(rows), 'segment')}. {rule} Together they are expected to "
        f"earn {money.format(worth)}. {_unit({row.cost for row in rows}, money)} Later amounts count less "
        "(discounting)."
    )


def _unit(costs: set[float], money: Money) -> str:
    """Say what amounts mean."""
    if money.unit is not None:
        return f"Amounts are {money.words}."
    if len(costs) > 1:
        return f"Amounts are {money.words}."
    cost = costs.pop()
    return f"Amounts are {money.words}: a success earns {amount(1 - cost)} and a failure loses {amount(cost)}."


def _cards(
    policies: SegmentPolicies, worth: float, rows: list[Start], limits: Mapping[str, Exposure], money: Money
) -> list[tuple[str, str]]:
    segments, accepted = policies.segments, _accepted(rows, limits)
    share = math.fsum(cell.share for cell in segments if cell.name in accepted)
    total = math.fsum(cell.share for cell in segments)
    cards = [
        (f"{len(segments):,}", plural(len(segments), "segment")),
        (f"{len(accepted):,}", "accepted now"),
        (even_percent(share / total, 0), "of applicants are in accepted segments"),
        (money.format(worth), f"expected value, {money.words}"),
    ]
    if limits:
        waiting = sum(row.accept is False and row.limit != 0 for row in limits.values())
        cards.append((f"{waiting:,}", plural(waiting, "waits", "wait") + " for pending outcomes"))
    else:
        cards.append((f"{policies.tables:,}", f"{plural(policies.tables, 'policy', 'policies')} solved and proved"))
    return cards


def _rejected_section(segments: Segments, shut: list[Start], truths: Mapping[str, float] | None) -> Section:
    title = "Segments that are never accepted"
    if not shut:
        return Section(title, ["None. Every segment is worth a first acceptance."])
    every = counted(len(segments), "segment")
    paragraphs = []
    losing = sum(row.loses for row in shut)
    if losing:
        paragraphs.append(
            f"{losing:,} of {every} {plural(losing, 'is', 'are')} almost certainly unprofitable: the probability that "
            "the success rate is above the break-even is below 5%."
        )
    slow = sum(not row.loses and row.offers is None and row.needed < row.volume for row in shut)
    if slow:
        paragraphs.append(
            f"In {slow:,} of {every}, outcomes arrive too late: the losses in the meantime outweigh what you learn."
        )
    rare = len(shut) - losing - slow
    if rare:
        paragraphs.append(
            f"{rare:,} of {every} {plural(rare, 'has', 'have')} too few applicants: learning whether they succeed "
            "would cost more than it can earn. They stay rejected even if they would succeed. To change that, use a "
            "model that shares evidence between segments, larger segments, a smaller first offer, or a minimum "
            "acceptance rate (floor)."
        )
    header = ["group", "segments", "never accepted"]
    if truths is not None:
        header += ["above break-even", "of these, never accepted", "share of their applicants"]
    out = {row.name for row in shut}
    body: list[list[str | TableCell]] = []
    for row in shut_out_at_outset(segments, truths, begin={name: name not in out for name in segments.names}):
        line: list[str | TableCell] = [row.group or "all", f"{row.segments:,}", f"{row.shut:,}"]
        if row.deserving is not None:
            line += [f"{row.deserving:,}", f"{row.deserving_shut:,}", even_percent(row.deserving_share_shut or 0.0, 0)]
        body.append(line)
    return Section(title, paragraphs, table=ReportTable(header, body))


def _rates_section(policies: SegmentPolicies, rows: list[Start], late: bool) -> Section:
    """Draw the expected rates with 90% intervals, the minimum rates as ticks and the break-even as a line."""
    order = sorted(range(len(rows)), key=lambda i: -rows[i].volume)[:MOST_DRAWN]
    drawn = [rows[i] for i in sorted(order)]
    marks = [_rate_row(policies, row) for row in drawn]
    costs = sorted({row.cost for row in drawn})
    references = [(cost, f"break-even {percent(cost, 2)}" if len(costs) == 1 else percent(cost, 2)) for cost in costs]
    if len(costs) > 4:  # more labels than fit side by side
        references = [(cost, "") for cost in costs]
    figures = [
        interval_chart(
            marks,
            percent_ticks(0.0, 1.0),
            (0.0, 1.0),
            references,
            reference_kind="even",
            longest=letters,
            width=width,
            name="Expected success rate and minimum rate by segment",
            kind=kind,
        )
        for width, letters, kind in ((900.0, 28, "wide"), (420.0, 18, "narrow"))
    ]
    more = f" The figure shows the {MOST_DRAWN} largest of {len(rows):,} segments." if len(rows) > MOST_DRAWN else ""
    text = (
        "Dots show the expected success rate, bars where it lies with 90% probability. Ticks show the minimum rate: "
        "a segment is accepted while its expected rate is above it"
        f"{' (computed as if outcomes arrived at once)' if late else ''}. The dashed line is the break-even. Rejected "
        f"segments are red.{more}"
    )
    return Section("Expected success rate and minimum rate", [text], figures)


def _rate_row(policies: SegmentPolicies, row: Start) -> IntervalRow:
    interval, minimum = row.prior.interval(0.9), _minimum_rate(policies, row)
    minimum_text = "" if minimum is None else f"minimum rate {percent(minimum)}, "
    tooltip = (
        f"{row.name}: expected success rate {percent(row.prior.mean)} (between {percent(interval.lower)} and "
        f"{percent(interval.upper)}), {minimum_text}{'accepted' if row.starts else 'rejected'}"
    )
    kind = "" if row.starts else "reject"
    return IntervalRow(row.name, row.prior.mean, interval.lower, interval.upper, minimum, kind, tooltip)


def _minimum_rate(policies: SegmentPolicies, row: Start) -> float | None:
    """Return the success rate from which the next member is accepted; with offers, one with a mean offer.

    None if decisions depend on more than that.
    """
    policy, cell = policies[row.name], policies.segments[row.name]
    if has_offers(cell):
        label = policy.label_value(row.prior).midpoint
        return float(max(row.cost - label / offers_of(cell.objective).mean_amount, 0.0))
    if not isinstance(policy, OptimalPolicy):
        return None
    if not cell.objective.stationary:
        return float(policy.threshold(row.prior.n, RATE_TOLERANCE).midpoint)
    return estimate_threshold(cell.own.cost, cell.own.discount, row.prior.n, RATE_TOLERANCE, RATE_SECONDS)


def _decision(row: Start) -> str:
    """Return the decision on the next member, in words."""
    if row.offers is not None and 0.0 < row.offers.share_accepted < 1.0:
        return f"accept {percent(row.offers.share_accepted, 0)} of offers"
    return "accept" if row.starts else "reject"


def _segments_section(
    policies: SegmentPolicies,
    rows: list[Start],
    history: History | None,
    limits: Mapping[str, Exposure],
    money: Money,
) -> Section:
    past = {} if history is None else {row.segment: row for row in history.segments}
    one = money.per_year(None)
    grouped = len(policies.segments.groups) > 1
    header = ["segment", *(["group"] if grouped else [])]
    header += ["decision now", "pending", "limit"] if limits else ["decision"]
    header += ["expected success rate", "evidence", "value"]
    header += [*(["accepted / applicants"] if past else []), "share", "volume"]
    offers = any(row.offers is not None for row in rows)
    if offers:
        header += ["mean amount", "break-even", "largest amount now"]
    elif not limits:
        header.append("volume needed")
    body: list[list[str | TableCell]] = []
    for cell, row in list(zip(policies.segments, rows, strict=True))[:MOST_LISTED]:
        own, late = past.get(row.name), limits.get(row.name)
        line: list[str | TableCell] = [row.name, *([row.group] if grouped else [])]
        if late is None:
            line.append(decision_cell(_decision(row), row.starts))
        else:
            line += [decision_cell(late.now, late.accept), f"{late.pending:,}", limits_text(late)]
        worth = policies.segment_value(row.name).midpoint if late is None else late.worth
        line += [even_percent(row.prior.mean), count(row.prior.n), money.format(worth)]
        if past:
            line.append("" if own is None else f"{own.accepted:,} / {own.arrivals:,}")
        line += [even_percent(cell.share, 2), f"{row.volume:,.1f}"]
        if row.offers is not None:
            most = "any" if math.isinf(row.offers.largest) else one.format(row.offers.largest)
            line += [one.format(offers_of(cell.objective).mean_amount), even_percent(row.cost), most]
        elif late is None:
            line.append("far more" if math.isinf(row.needed) else f"{row.needed:,.1f}")
        body.append(line)
    note = f"The first {MOST_LISTED} of {len(rows):,} segments." if len(rows) > MOST_LISTED else ""
    needed_text = "" if limits else " Volume needed: the volume from which learning about the segment pays."
    if offers:
        needed_text = (
            " Mean amount: gain plus loss of an applicant. Break-even: the success rate at which accepting everyone "
            "earns nothing. Largest amount now: the largest that is accepted at this break-even."
        )
    text = (
        "Evidence: how many outcomes the expected success rate rests on. Value: what the segment is expected to earn, "
        f"{money.words}. Volume: the number of applicants still to come, where later ones count less.{needed_text}"
    )
    return Section("All segments", [text], table=ReportTable(header, body, note))


def _evidence_section(rows: Sequence[Shrinkage]) -> Section:
    header = [
        "segment", "expected from other segments", "evidence", "own outcomes", "own success rate",
        "expected success rate", "evidence in total", "weight of other segments",
    ]  # fmt: skip
    body = [
        [
            row.cell,
            even_percent(row.prior.mean),
            count(row.prior.n),
            count(row.labels),
            "" if row.own_rate is None else even_percent(row.own_rate),
            even_percent(row.belief.mean),
            count(row.belief.n),
            even_percent(row.pull, 0),
        ]
        for row in rows[:MOST_LISTED]
    ]
    note = f"The first {MOST_LISTED} of {len(rows):,} segments." if len(rows) > MOST_LISTED else ""
    text = (
        "The expected success rate combines two sources: what other segments or the prior suggest, "
        "and the segment's own outcomes. Evidence is counted in outcomes."
    )
    return Section("Where the expected success rates come from", [text], table=ReportTable(header, body, note))

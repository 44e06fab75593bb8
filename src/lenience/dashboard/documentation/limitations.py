"""Chapter 5, limitations: what the version cannot know or does not do, generated from its specification and its log."""

from __future__ import annotations

from collections.abc import Sequence

from lenience.core.formatting import counted, percent
from lenience.dashboard.documentation.facts import PackFacts
from lenience.reports.document import Block, Bullets, Chapter, Paragraph

LITTLE = 30.0  # outcomes; an estimate that rests on fewer is called weak
FEW_DECISIONS = 100  # of a group; a difference of ten points is not visible with fewer
MANY_LEFT_OUT = 0.02  # share of rows
NAMED = 6


def limitations_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    points = limitations(facts)
    blocks: list[Block] = [
        Paragraph(
            f"{counted(len(points), 'limitation')} of this version, generated from its specification and its log."
        ),
        Bullets(points),
    ]
    return Chapter("Limitations", "Where is the model weak, and when must it not be used?", blocks)


def limitations(facts: PackFacts) -> list[tuple[str, str]]:
    """Return the limitations, each with a short lead."""
    return [*_of_data(facts), *_of_segments(facts), *_of_method(facts), *_of_groups(facts)]


def _of_data(facts: PackFacts) -> list[tuple[str, str]]:
    origin = facts.specification.origin or None
    points = [
        (
            "Rejected applicants have no outcome.",
            "No data can show what they would have done. Estimates for segments with few acceptances rest on the "
            "model.",
        )
    ]
    if origin is None:
        points.append(("The data of the version is not recorded.", "Its selection cannot be reviewed."))
        return points
    total = origin.rows + origin.left_out
    if total and origin.left_out > MANY_LEFT_OUT * total:
        share = percent(origin.left_out / total)
        points.append(
            ("Many rows were left out.", f"{origin.left_out:,} of {total:,} ({share}). Shares may be biased.")
        )
    if origin.accepted and origin.pending > 0.2 * origin.accepted:
        share = percent(origin.pending / origin.accepted)
        aged = (
            "they count by their age" if "pending_count_by_age" in origin.settings else "they do not count as evidence"
        )
        points.append(("Many outcomes were pending.", f"{share} of past acceptances were open; {aged}."))
    if not origin.digest:
        points.append(
            ("The source has no digest.", "It was a table, so it cannot be shown later that it is unchanged.")
        )
    if origin.first is None:
        points.append(("The data has no dates.", "Neither its age nor a back-test by time is possible."))
    return points


def _of_segments(facts: PackFacts) -> list[tuple[str, str]]:
    if facts.specification.feature_spec is not None:
        return [
            (
                "Decisions by features are estimates.",
                "The value of an outcome for other applicants is approximated, and no optimality is proved.",
            ),
            *(("A region has no outcomes.", region.sentence) for region in facts.report.regions[:NAMED]),
        ]
    segments = facts.status.segments
    past = facts.specification.past_outcomes_by_segment(segment.name for segment in segments)
    points = []
    never = [segment.name for segment in segments if segment.rule.table.closed and not segment.rule.exploration_floor]
    if never:
        why = "A first acceptance would not pay: too few applicants are expected, or it would almost surely lose"
        points.append(
            (_several(never, "never starts", "never start"), f"{why}: {_named(never)}. Nothing will be learnt there.")
        )
    stopped = [segment.name for segment in segments if segment.stopped and segment.name not in never]
    if stopped:
        text = f"{_named(stopped)}. A stop is for good unless pending outcomes reopen it."
        points.append((_several(stopped, "is stopped", "are stopped"), text))
    weak = [
        segment.name
        for segment in segments
        if past[segment.name] + segment.counts.successes + segment.counts.failures < LITTLE
    ]
    if weak:
        points.append(
            (
                _several(weak, "has little evidence", "have little evidence"),
                f"Fewer than {LITTLE:.0f} outcomes: {_named(weak)}. The prior dominates the estimate there.",
            )
        )
    unproved = [segment.name for segment in facts.view.segments if not segment.proved]
    if unproved:
        text = f"{_named(unproved)}. Their limits are estimates with a stated error, or a few decisions are not proved."
        points.append((_several(unproved, "is not fully proved", "are not fully proved"), text))
    return points


def _of_method(facts: PackFacts) -> list[tuple[str, str]]:
    specification = facts.specification
    objective = specification.objective
    points = [
        (
            "The model assumes constant success rates.",
            "A change of the economy or of the applicants shows only in the monitoring.",
        )
    ]
    if specification.feature_spec is None:
        points.append(
            (
                "The model assumes constant shares.",
                "If a segment grows or shrinks, its minimum rates are no longer optimal.",
            )
        )
    if objective.offers is not None:
        points.append(
            (
                "The model assumes that success does not depend on the amount.",
                "If larger loans fail more often within a segment, the policy accepts too many of them.",
            )
        )
    if objective.label_delay and not specification.timing:
        points.append(
            (
                "The model assumes exponential delays.",
                "Real outcomes cluster, e.g. at the end of a term. Limits are then approximate.",
            )
        )
    if specification.capacity:
        points.append(
            (
                "A price on acceptances keeps the capacity.",
                "The policy under the limit is near the optimum, not proved optimal.",
            )
        )
    if not specification.constraints.exploration_floor:
        points.append(
            (
                "Stopped segments are not revisited.",
                "Without an exploration floor, a change for the better goes unseen.",
            )
        )
    if facts.overrides:
        points.append(
            (
                "People overrule the policy.",
                f"{counted(facts.overrides, 'override')} so far. If they know more than the segment, outcomes are "
                f"selected.",
            )
        )
    return points


def _of_groups(facts: PackFacts) -> list[tuple[str, str]]:
    if not facts.monitored:
        return [("Fairness is not measured.", "No decision has a monitored attribute, so no group can be compared.")]
    few = [
        f"{group.name} ({', '.join(result.attributes)})"
        for result in facts.monitored
        for group in result.groups
        if group.counts.arrivals < FEW_DECISIONS
    ]
    if not few:
        return []
    text = f"Fewer than {FEW_DECISIONS} decisions: {_named(few)}. Differences there may be chance."
    return [("Some groups have too few cases.", text)]


def _several(names: Sequence[str], one: str, more: str) -> str:
    return f"1 segment {one}." if len(names) == 1 else f"{len(names):,} segments {more}."


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED:,} others"

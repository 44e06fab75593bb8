"""Chapter 3, method and assumptions: the rule, where estimates come from, the economics, and what is assumed."""

from __future__ import annotations

from lenience.core.formatting import counted, duration, percent
from lenience.dashboard.documentation.data import largest
from lenience.dashboard.documentation.facts import PackFacts
from lenience.dashboard.figures.boundary import Boundary
from lenience.reports.charts import LineSeries
from lenience.reports.document import Block, Bullets, Chapter, Facts, Figure, Heading, LineChart, Paragraph
from lenience.service.queries.model_report import model_name

DRAWN = 3  # segments
FURTHER = 3_000.0  # outcomes on the axis, in addition to those of the prior

MODELS = {
    "own": (
        "Each segment learns from its own outcomes only. Its estimate is a Beta distribution: the prior plus one for "
        "each "
        "success or failure."
    ),
    "shared": "Segments share one distribution of success rates, which is fitted again as outcomes arrive.",
    "curve": "The success rate follows a smooth curve in the score, which is fitted again as outcomes arrive.",
    "logistic": (
        "A Bayesian logistic regression estimates the success rate from the applicant's features, with its "
        "uncertainty. It "
        "learns from every outcome in order."
    ),
    "calibrated": "The user's own score is recalibrated by a Bayesian regression that learns from every outcome in "
    "order.",
}


def method_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    objective = facts.specification.objective
    blocks: list[Block] = [
        Paragraph(
            "An applicant is accepted if the expected profit of this acceptance plus the value of its outcome for "
            "later "
            "decisions is above zero. The value of the outcome falls as evidence grows. The policy is therefore "
            "lenient "
            "where little is known, and close to the break-even where much is known."
        ),
        Paragraph(f"{_horizon(facts)} {MODELS[model_name(facts.status.version)]}"),
    ]
    if objective.offers is None:
        blocks.append(
            Paragraph(
                f"The break-even success rate is {percent(objective.cost)}: at this rate gains and losses cancel. "
                f"Values "
                "are in units of gain plus loss."
            )
        )
    blocks += _economics(facts)
    chart = boundary_chart(facts)
    if chart is not None:
        blocks.append(
            Figure(
                "How far below the break-even the expected success rate may be while applicants are still accepted in "
                "order to learn, by the number of outcomes that the estimate is based on.",
                chart,
            )
        )
    blocks += [Heading("Assumptions"), Bullets(assumptions(facts))]
    return Chapter("Method and assumptions", "How does the model decide, and what does it assume?", blocks)


def _horizon(facts: PackFacts) -> str:
    objective = facts.specification.objective
    if objective.horizon is not None:
        return f"The version maximises the expected profit of {counted(int(objective.horizon), 'applicant')}."
    late = f" Outcomes are known after {duration(objective.label_delay)} on average." if objective.label_delay else ""
    if objective.arrivals is not None:
        return (
            f"The version maximises the expected discounted profit. It assumes {objective.arrivals:,.10g} applicants "
            f"a year "
            f"and a discount rate of {percent(objective.discount_rate or 0.0)} a year.{late}"
        )
    factor = f"{objective.discount:.6g}"
    return f"The version maximises the expected discounted profit. The discount factor of an applicant is {factor}."


def _economics(facts: PackFacts) -> list[Block]:
    """Describe how gain and loss were computed, if it is recorded."""
    origin, offers = facts.specification.origin or None, facts.specification.objective.offers
    pairs: list[tuple[str, str]] = []
    if offers is not None:
        low, high = offers.money.format(min(offers.amount)), offers.money.format(max(offers.amount))
        pairs += [
            ("Currency", offers.currency or "not named"),
            ("Gain plus loss of an applicant", _range(low, high)),
            ("Break-even success rate", _range(percent(min(offers.cost)), percent(max(offers.cost)))),
        ]
    if origin is not None:
        given = {name: value for name, value in origin.economics.items() if name != "currency"}
        pairs += [(name.replace("_", " ").capitalize(), value) for name, value in given.items()]
    return [Facts("Economics", pairs)] if pairs else []


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def assumptions(facts: PackFacts) -> list[tuple[str, str]]:
    """Return the assumptions of the version, each with what breaks it or where it is checked."""
    specification = facts.specification
    objective = specification.objective
    points = [
        (
            "Success rates do not change over time.",
            "Outcomes of all times count alike. Calibration by period in chapter 4 shows whether this holds.",
        ),
        (
            "Applicants of a segment are alike.",
            "Within a segment the policy does not choose, so those accepted represent all. Another criterion that "
            "decides "
            "who is accepted, such as overrides, breaks this.",
        ),
    ]
    if specification.feature_spec is None:
        points.append(
            (
                "Each segment keeps its share of the applicants.",
                "Chapter 7 compares the shares with those of the last decisions.",
            )
        )
    else:
        points = [points[0]]
        points.append(
            ("Log-odds are additive in the features.", "Bands of expected success in chapter 4 show where this fails.")
        )
    if objective.offers is not None:
        points.append(
            (
                "Success does not depend on the amount or the price."
                if specification.feature_spec is not None
                else "Within a segment, success does not depend on the amount or the price.",
                "lenience fit tests this on the file by segment and warns if it fails.",
            )
        )
    if objective.label_delay and not specification.timing:
        points.append(
            (
                "The time until an outcome is known is exponential, and the same for successes and failures.",
                f"Its mean is {duration(objective.label_delay)}. Failures that arrive earlier than successes make "
                f"young "
                "segments look worse than they are.",
            )
        )
    if specification.timing:
        points.append(("Open cases mature as past ones did.", "They count as evidence according to their age."))
    if specification.doubt:
        points.append(
            ("The prior may be wrong.", f"With probability {percent(specification.doubt)} nothing is known instead.")
        )
    if specification.capacity:
        points.append(("Capacity has one price for all segments.", "Its upper bound on the value is proved."))
    return points


def boundary_chart(facts: PackFacts) -> LineChart | None:
    """Draw how far below the break-even the largest segments still accept, by the number of outcomes."""
    if facts.status.version.feature_model is not None:
        return None
    series: list[LineSeries] = []
    for segment in largest(facts, DRAWN):
        table = segment.rule.table
        if table.closed:
            continue
        points = Boundary(table, table.prior.n + FURTHER).stop
        if len(points) > 1:
            below = [100 * max(segment.cost - rate, 0.0) for _, rate in points]
            series.append(LineSeries(segment.name, [n for n, _ in points], below))
    if not series:
        return None
    return LineChart(series, "Outcomes that the estimate is based on", "Points below the break-even", log_x=True)

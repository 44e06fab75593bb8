"""The chart of the what-if page: the minimum rate for the question, and that of the policy it is compared with.

The axes do not move while the user drags: rates from 0 to 100%, evidence up to a few hundred outcomes.
"""

from __future__ import annotations

from markupsafe import Markup

from lenience.core.formatting import amount, percent
from lenience.dashboard.figures.boundary import Boundary, leniency, limit_labels
from lenience.dashboard.read_models.policy_status import SegmentStatus
from lenience.reports.canvas import Canvas, log_ticks, percent_ticks
from lenience.service.domain.solved_tables import SolvedTable

REACH = 300.0  # observations on the axis, or twenty times the prior's if that is more


def pictures(table: SolvedTable, text: str, against: SegmentStatus | None = None) -> list[Markup]:
    """Draw the chart, wide and narrow."""
    theirs = against.rule.table if against else None
    start = table.prior.n
    left = min(start, theirs.prior.n if theirs else 2.0, 2.0)
    most = max(REACH, 20 * start, 20 * theirs.prior.n if theirs else 0.0)
    mine = Boundary(table, most)
    other = Boundary(theirs, most) if theirs else None
    return [_drawn(mine, other, table, against, (left, most), text, narrow) for narrow in (False, True)]


def _drawn(
    mine: Boundary,
    other: Boundary | None,
    table: SolvedTable,
    against: SegmentStatus | None,
    ends: tuple[float, float],
    text: str,
    narrow: bool,
) -> Markup:
    canvas = Canvas(440 if narrow else 760, 360 if narrow else 420, ends, (0.0, 1.0), log_x=True)
    foot = [(mine.sizes[0], 0.0), (mine.sizes[-1], 0.0)]
    canvas.area(mine.stop, foot, "stop", "Reject for good")
    leniency(canvas, mine)
    canvas.vertical_axis(percent_ticks(0.0, 1.0), "success rate")
    canvas.horizontal_axis(log_ticks(*ends, 6 if narrow else 9), "evidence: outcomes, including the prior")
    cost = mine.cost
    if other is not None and against is not None:
        canvas.line(other.stop, "boundary theirs", f"Current minimum rate of {against.name}")
        if abs(other.cost - cost) > 1e-9:
            canvas.line([(ends[0], other.cost), (ends[1], other.cost)], "even theirs", "Its current break-even")
    canvas.line(mine.stop, "boundary", "Minimum rate: the policy stops at or below it")
    canvas.line([(ends[0], cost), (ends[1], cost)], "even", f"Break-even {percent(cost)}")
    if against is not None:
        belief = against.belief
        if belief.n <= ends[1]:
            tooltip = f"{against.name} now: {percent(belief.mean)} after {amount(round(belief.n, 1))} outcomes"
            canvas.dot((belief.n, belief.mean), f"now {against.mark}", tooltip, 5)
            if not narrow:
                below = 0 < canvas.y(belief.mean) - canvas.y(cost) < 24  # not across the break-even
                canvas.label((belief.n, belief.mean), "now", "note", "middle", dy=17 if below else -9)
    prior = table.prior
    canvas.dot((prior.n, prior.mean), "start", f"Starting estimate: {percent(prior.mean)}", 6)
    right = canvas.width - canvas.right - 4
    above = canvas.y(cost) - 6
    canvas.text(
        right,
        above if above > canvas.top + 10 else canvas.y(cost) + 15,
        f"break-even {percent(cost)}",
        "note even",
        "end",
    )
    canvas.text(canvas.x(mine.sizes[0]) + 10, canvas.height - canvas.bottom - 10, "reject for good", "note stop")
    limit_labels(canvas, mine)
    return canvas.drawn("Minimum success rate by amount of evidence", text, "narrow" if narrow else "wide")

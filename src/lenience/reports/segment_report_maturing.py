"""The part of the segments' report on pending outcomes that count according to their age."""

from __future__ import annotations

from lenience.core.formatting import count, counted, even_percent
from lenience.history.history import History
from lenience.history.maturing import FLAT, Maturing
from lenience.reports.timing_figures import timing_figures, weight_figures
from lenience.reports.views import ReportTable, Section, TableCell

MOST_LISTED = 500


def maturing_sections(history: History, maturing: Maturing) -> list[Section]:
    """Show when outcomes become known, how much pending ones count, and what they change."""
    failures, successes = maturing.half_known
    first = failures is not None and (successes is None or failures < successes)
    bias = "too low" if first else "wrong"
    why = (
        f"Failures and successes become known at different ages, so rates from known outcomes alone are {bias}. "
        "Therefore each pending outcome counts according to its age: a recent one says nothing yet, and one that is "
        "still pending when most failures would be known is probably a success."
    )
    overall = min(max(history.overall_rate, 0.001), 0.999)
    sections = [Section("When outcomes become known", [why, *maturing.describe()], timing_figures(maturing.curves))]
    weights = (
        f"The figure is for the average success rate of {even_percent(overall)}. At 0% a pending outcome says nothing; "
        "at 100% it counts as much as a known one."
    )
    figures = weight_figures(maturing.curves, overall)
    sections.append(Section("How much a pending outcome counts", [weights], figures))
    sections.append(_rates(history))
    return sections


def _rates(history: History) -> Section:
    """Compare the rates of known outcomes with those that include the pending."""
    beliefs = history.beliefs()
    header = ["segment", "known outcomes only", "with pending outcomes", "difference", "outcomes known", "pending",
              "evidence of the pending"]  # fmt: skip
    body: list[list[str | TableCell]] = []
    for row in history.segments[:MOST_LISTED]:
        after = beliefs[row.segment]
        moved = "" if row.rate is None else f"{100 * (after.mean - row.rate):+.1f} points".replace("-", "−")
        added = max(after.n - FLAT.n - row.n, 0.0)
        body.append(
            [
                row.segment,
                "" if row.rate is None else even_percent(row.rate),
                TableCell(even_percent(after.mean), "strong"),
                moved,
                f"{row.labels:,}",
                f"{row.pending:,}",
                count(added),
            ]
        )
    note = ""
    if len(history.segments) > MOST_LISTED:
        note = f"The first {MOST_LISTED} of {counted(len(history.segments), 'segment')}."
    text = (
        "Evidence of the pending: how many known outcomes they are worth. It is 0 if they also show that the known "
        "outcomes say less than they seem to."
    )
    return Section("Success rates with and without pending outcomes", [text], table=ReportTable(header, body, note))

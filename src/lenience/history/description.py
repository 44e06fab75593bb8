"""The words for a history: what was read and left out, and warnings about selection and prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lenience.core.formatting import counted, percent, plural
from lenience.files.date_formats import SUCH
from lenience.history.counts import BAD_ROWS, NO_ECONOMICS, OUTCOME_DATES
from lenience.history.maturing import Maturing
from lenience.segments.similar_names import describe_similar_names

if TYPE_CHECKING:
    from lenience.history.history import History

MANY = 0.02  # if a larger share of the rows is left out, the shares of the segments are biased
MEANINGS = {"accepted": "accepted or rejected", "outcome": "success, failure or not known yet"}


def describe_history(history: History) -> str:
    """Describe what was read, and what was left out and why."""
    used = history.rows - history.bad_rows - history.later
    labels = sum(row.labels for row in history.segments)
    pending = sum(row.pending for row in history.segments)
    counts = f"{counted(labels, 'label')} and {pending:,} pending in {counted(len(history.segments), 'segment')}"
    lines = [f"{history.rows:,} rows read, {used:,} used: {counts}."]
    if history.as_of is not None:
        young = f"; younger than {history.maturity:g} days is pending" if history.maturity else ""
        lines.append(f"Counted as of {history.as_of:%Y-%m-%d}{young}.")
    expired = sum(row.expired for row in history.segments)
    if expired:
        lines.append(f"{expired:,} of the pending {plural(expired, 'has', 'have')} expired: no outcome in time.")
    if history.applied is not None:
        lines.append(_describe_maturing(history, history.applied))
    if history.immaturity is not None:
        lines.append(f"Warning: {history.immaturity.describe()}")
    for kind, count in history.bad.items():
        if count:
            strange = {"outcome": history.strange, "accepted": history.strange_decisions}.get(kind)
            which = f": {_list_values(strange, count)}" if strange else ""
            if kind == "time" and history.strange_dates:
                examples = ", ".join(repr(value) for value in history.strange_dates)
                which = f" that can be read (write {SUCH}; not {examples})"
            if kind == "economics" and history.strange_economics:
                which = f", e.g. {', '.join(f'{value} ({rows:,})' for value, rows in history.strange_economics)}"
            reason = (BAD_ROWS | OUTCOME_DATES | NO_ECONOMICS)[kind]
            line = f"{counted(count, 'row')} not used: {reason}{which}."
            if kind == "time" and count > MANY * history.rows:
                lines.insert(1, f"Warning: {line}")
            else:
                lines.append(line)
    if unread := [MEANINGS[kind] for kind in history.unread]:
        lines.append(
            "With so many rows left out, shares, volumes and the share accepted are biased: say which values mean "
            f"{', and which '.join(unread)}."
        )
    if history.later:
        lines.append(f"{counted(history.later, 'row')} left out: decided after {history.as_of:%Y-%m-%d}.")
    if history.repeated:
        are = "is an exact copy of another row" if history.repeated == 1 else "are exact copies of other rows"
        lines.append(f"{counted(history.repeated, 'row')} {are}. Every copy is counted.")
    lines += history.notes
    if history.has_offers:
        lines.append(_describe_offers(history))
        if warned := describe_prices(history):
            lines.append(f"Warning: {warned}")
    similar_names = describe_similar_names(row.segment for row in history.segments)
    if similar_names is not None:
        lines.append(similar_names)
    return "\n".join(lines)


def describe_prices(history: History) -> str:
    """Return a warning if the success rate inside segments depends on the break-even or on the amount, or nothing."""
    notable = [one.describe() for one in history.price_dependence if one.notable]
    if not notable:
        return ""
    return (
        f"{' '.join(notable)} Policies for amounts and prices assume one success rate a segment, so they choose "
        "the wrong offers here. Divide the segments by price, or decide with one break-even a segment."
    )


def describe_selection(history: History) -> str:
    """Return a warning if past decisions rejected anyone, or nothing."""
    arrivals, accepted = sum(row.arrivals for row in history.segments), sum(row.accepted for row in history.segments)
    if accepted == arrivals:
        return ""
    unseen = sum(row.labels == 0 for row in history.segments)
    text = (
        f"Only {accepted:,} of {arrivals:,} past applicants ({percent(accepted / arrivals, 0)}) were accepted. "
        "Within a segment, their outcomes are a fair sample only if nothing else that matters decided who was "
        "accepted."
    )
    if unseen:
        text += (
            f" {unseen:,} of {len(history.segments):,} segments {plural(unseen, 'has', 'have')} no outcome at all. "
            "Use the model shared or curve to learn about them from other segments."
        )
    return text


def _describe_maturing(history: History, maturing: Maturing) -> str:
    """Describe what the pending say, and how long outcomes take."""
    rows = [row for row in history.segments if row.segment in maturing.open_loans]
    beliefs = history.beliefs()
    added = sum(beliefs[row.segment].n - (2 + row.n) for row in rows)
    pending = sum(row.pending for row in rows)
    says = f"say as much as {added:,.0f} outcomes" if added >= 0 else "also show that the outcomes say less"
    return " ".join([f"The {pending:,} pending count according to their age and {says}.", *maturing.describe()])


def _describe_offers(history: History) -> str:
    """Describe the offers of the applicants, and how exact they are."""
    offers, error = history.offers_of_all(), history.offers_error()
    mean = offers.money.format(offers.mean_amount)
    text = f"The mean amount at stake (gain + loss) is {mean}, the break-even of all {percent(offers.mean_cost)}."
    if error == 0.0:
        return text
    share = percent(error / offers.mean_amount, 2)
    return (
        f"{text} Each segment's offers are grouped to at most {history.most_offers}, which changes gain and loss by "
        f"{offers.money.format(error)} on average ({share} of the amount)."
    )


def _list_values(strange: Sequence[tuple[str, int]], count: int) -> str:
    """List values without a meaning, each with the number of its rows."""
    values = ", ".join(f"{value!r} ({rows:,})" for value, rows in strange)
    others = count - sum(rows for _, rows in strange)
    return f"{values}, others ({others:,})" if others else values

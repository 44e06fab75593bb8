"""lenience check: what the policy in a file will do at the start, and whom it will not start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from lenience.cli.options import FILE, bold, console, json_option, print_json, table
from lenience.cli.progress import announcing
from lenience.core.formatting import counted, even_percent, percent
from lenience.core.money import Money
from lenience.core.offers import Offers

if TYPE_CHECKING:
    from lenience.segments.starting import Start
    from lenience.service.domain.specification import PolicySpecification, SegmentProblem

MOST_SHOWN = 50


@click.command(short_help="Say what the policy in a file will do, and whom it will not start.")
@click.argument("file", type=FILE)
@json_option
def check(file: str, as_json: bool) -> None:
    """Read the policy in FILE and say what it will do with the first applicants.

    FILE is what lenience fit --output writes, or any policy that the service takes.

    \b
    Example:
      lenience check policy.json
    """
    from lenience.cli.policy_file import read_policy_file

    specification = read_policy_file(file)
    if specification.feature_spec is not None:
        _check_features(file, specification, as_json)
        return
    with announcing("Computing which segments would start"):
        problems, rows = _starts(specification)
    shares = {one.name: one.share for one in problems}
    accepted = math.fsum(shares[row.name] * _share_accepted(row) for row in rows)
    earned = _profits(problems, rows)
    profit = None if earned is None else math.fsum(shares[name] * one for name, one in earned.items())
    arrivals = specification.objective.arrivals
    if as_json:
        print_json(
            {
                "name": specification.name,
                "accepted_at_start": accepted,
                "profit_per_applicant": profit,
                "profit_per_year": None if profit is None or arrivals is None else arrivals * profit,
                "currency": _currency(specification),
                "segments": [
                    {
                        "segment": row.name, "share": shares[row.name], "success_rate": row.prior.mean,
                        "outcomes": row.prior.n, "break_even": row.cost, "starts": row.starts,
                        "share_accepted": _share_accepted(row),
                        "profit_per_applicant": None if earned is None else earned[row.name],
                        "largest_amount": None if row.offers is None else row.offers.largest,
                        "label_value": None if row.offers is None else row.offers.label_value,
                        "reason": row.reason,
                    }
                    for row in rows
                ],
            }
        )  # fmt: skip
        return
    out = console()
    never = [row for row in rows if not row.starts]
    origin = specification.origin
    fitted = f" Fitted to {origin.file}: {counted(origin.labels, 'known outcome')}." if origin else ""
    out.print(bold(f"{specification.name}:"), f" {counted(len(rows), 'segment')}.{fitted}", sep="")
    out.print(f"Of 100 applicants at the start, about {100 * accepted:.0f} are accepted.")
    money = Money(1.0, _currency(specification))
    if profit is not None:
        text = f"The expected profit on these 100 is {money.format(100 * profit)}"
        if arrivals is not None:
            text += f"; on {arrivals:,.0f} applicants a year it is {money.format(arrivals * profit)}"
        out.print(f"{text}. What the policy learns from them adds to it later.")
    grid = table()
    grid.add_column("segment", overflow="fold", min_width=8)
    priced = [] if earned is None else ["largest\namount", "profit per\napplicant"]
    for heading in ("share", "expected\nsuccess", "break-\neven", *priced, "now"):
        grid.add_column(heading, justify="right")
    for row in rows[:MOST_SHOWN]:
        mean, even = even_percent(row.prior.mean), even_percent(row.cost)
        line = [row.name, percent(shares[row.name]), mean, even]
        if earned is not None:
            line += ["" if row.offers is None else _largest(row, money), money.format(earned[row.name])]
        grid.add_row(*line, _now(row))
    out.print(grid)
    if len(rows) > MOST_SHOWN:
        out.print(f"The first {MOST_SHOWN} of {len(rows):,} segments; --json prints all.")
    by_name = {one.name: one for one in problems}
    for row in never[:MOST_SHOWN]:
        out.print(bold(f"{row.name}"), f" {row.reason}.{_loss(row, by_name[row.name])}", sep="")
    if specification.objective.label_delay:
        out.print("Outcomes come late: the service also limits how many may be pending in each segment.")
    out.print("Next: lenience serve --policy", file)


def _starts(specification: PolicySpecification) -> tuple[list[SegmentProblem], list[Start]]:
    """Return the problem of each segment, and whether it starts."""
    from lenience.segments.segments import Segment
    from lenience.segments.starting import starts

    problems = specification.problems()
    # Each problem is that of its segment alone, so its share is all of it.
    return problems, starts([Segment(one.name, 1.0, one.problem, one.prior) for one in problems])


def _profits(problems: list[SegmentProblem], rows: list[Start]) -> dict[str, float] | None:
    """Return the expected profit on an applicant of each segment now, or None if the policy knows no money.

    An offer of amount a and break-even c is accepted if a(p̂ − c) plus the value of its outcome is above 0. Its own
    profit is a(p̂ − c), which is below 0 where the policy accepts in order to learn.
    """
    by_name = {row.name: row for row in rows}
    profits = {}
    for one in problems:
        offers, start = one.problem.offers, by_name[one.name].offers
        if offers is None or start is None or offers.menu_count < len(offers.amount):
            return None
        each = [(share, a * (one.prior.mean - c)) for a, c, share in _single(offers)]
        profits[one.name] = math.fsum(share * profit for share, profit in each if profit + start.label_value > 0)
    return profits


def _single(offers: Offers) -> list[tuple[float, float, float]]:
    return list(zip(offers.amount, offers.cost, offers.share, strict=True))


def _loss(row: Start, problem: SegmentProblem) -> str:
    """Return what accepting everyone of a segment would lose, if that is money."""
    offers = problem.problem.offers
    if offers is None or offers.menu_count < len(offers.amount):
        return ""
    mean = math.fsum(share * a * (row.prior.mean - c) for a, c, share in _single(offers))
    return f" Accepting everyone would lose {offers.money.format(-mean)} an applicant." if mean < 0 else ""


def _currency(specification: PolicySpecification) -> str:
    offers = specification.objective.offers
    return "" if offers is None else offers.currency


def _share_accepted(row: Start) -> float:
    return float(row.starts) if row.offers is None else row.offers.share_accepted


def _now(row: Start) -> str:
    share = _share_accepted(row)
    return "accept" if share == 1.0 else f"accept {even_percent(share, 0)}" if share else "reject"


def _largest(row: Start, money: Money) -> str:
    assert row.offers is not None
    return "any" if math.isinf(row.offers.largest) else money.format(row.offers.largest)


def _check_features(file: str, specification: PolicySpecification, as_json: bool) -> None:
    """Say what a policy with features will do with applicants like those that it was fitted to."""
    from lenience.policies.features.storing import load_rule

    rule = load_rule(file)
    decisions = rule.decide_many(
        rule.reference, None if rule.objective.offers is None else _middle(rule.objective.offers)
    )
    accepted = math.fsum(decision.accepted for decision in decisions) / max(len(decisions), 1)
    names = [column.name for column in rule.columns]
    if as_json:
        print_json(
            {"name": specification.name, "labels": rule.labels, "features": names, "accepted_at_start": accepted}
        )
        return
    out = console()
    out.print(
        bold(f"{specification.name}:"),
        f" decides by {', '.join(names)}; {counted(rule.labels, 'outcome')} learnt.", sep="",
    )  # fmt: skip
    out.print(f"Of 100 applicants like those in the file, about {100 * accepted:.0f} are accepted now.")
    out.print("Next: lenience serve --policy", file)


def _middle(offers: Offers) -> Any:
    """Return one offer that stands for all: the middle one by amount."""
    from lenience.core.offers import Offer

    middle = sorted(zip(offers.amount, offers.cost, strict=True))[len(offers.amount) // 2]
    return Offer(*middle)

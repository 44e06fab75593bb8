"""lenience check: what the policy in a file will do at the start, and which segments it will not start."""

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
    from lenience.service.domain.specification import PolicySpecification

MOST_SHOWN = 50


@click.command(short_help="Say what the policy in a file will do, and which segments it will not start.")
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
    from lenience.service.domain.first_decisions import first_decisions

    specification = read_policy_file(file)
    if specification.feature_spec is not None:
        _check_features(file, specification, as_json)
        return
    with announcing("Computing which segments would start"):
        first = first_decisions(specification)
    if as_json:
        print_json(
            {
                "name": specification.name,
                "accepted_at_start": first.accepted,
                "profit_per_applicant": first.profit,
                "profit_per_year": first.profit_per_year,
                "currency": first.money.currency,
                "segments": [
                    {
                        "segment": one.name, "share": one.share, "success_rate": one.start.prior.mean,
                        "outcomes": one.start.prior.n, "break_even": one.start.cost, "starts": one.start.starts,
                        "share_accepted": one.share_accepted,
                        "profit_per_applicant": one.profit,
                        "largest_amount": None if one.start.offers is None else one.start.offers.largest,
                        "label_value": None if one.start.offers is None else one.start.offers.label_value,
                        "reason": one.start.reason,
                    }
                    for one in first.segments
                ],
            }
        )  # fmt: skip
        return
    out = console()
    origin = specification.origin
    fitted = f" Fitted to {origin.file}: {counted(origin.labels, 'known outcome')}." if origin else ""
    out.print(bold(f"{specification.name}:"), f" {counted(len(first.segments), 'segment')}.{fitted}", sep="")
    for sentence in first.describe():
        out.print(sentence)
    grid = table()
    grid.add_column("segment", overflow="fold", min_width=8)
    priced = [] if first.profit is None else ["largest\namount", "profit per\napplicant"]
    for heading in ("share", "expected\nsuccess", "break-\neven", *priced, "now"):
        grid.add_column(heading, justify="right")
    for one in first.segments[:MOST_SHOWN]:
        mean, even = even_percent(one.start.prior.mean), even_percent(one.start.cost)
        line = [one.name, percent(one.share), mean, even]
        if first.profit is not None:
            assert one.start.offers is not None
            assert one.profit is not None
            largest = one.start.offers.largest
            line += ["any" if math.isinf(largest) else first.money.format(largest), first.money.format(one.profit)]
        grid.add_row(*line, one.now)
    out.print(grid)
    if len(first.segments) > MOST_SHOWN:
        out.print(f"The first {MOST_SHOWN} of {len(first.segments):,} segments; --json prints all.")
    for one in [one for one in first.segments if not one.start.starts][:MOST_SHOWN]:
        out.print(bold(one.name), one.reason)
    if specification.objective.label_delay:
        out.print("Outcomes come late: the service also limits how many may be pending in each segment.")
    out.print("Next: lenience serve --policy", file)


def _check_features(file: str, specification: PolicySpecification, as_json: bool) -> None:
    """Say what a policy with features will do with applicants like those that it was fitted to."""
    from lenience.policies.features.storing import load_rule

    rule = load_rule(file)
    decisions = rule.decide_many(
        rule.reference, None if rule.objective.offers is None else _middle(rule.objective.offers)
    )
    accepted = math.fsum(decision.accepted for decision in decisions) / max(len(decisions), 1)
    offers = rule.objective.offers
    profit = None
    if offers is not None and len(offers.amount) == 1:  # otherwise the middle offer does not stand for all in money
        stake, cost = offers.amount[0], offers.cost[0]
        profit = stake * math.fsum(one.mean - cost for one in decisions if one.accepted) / max(len(decisions), 1)
    names = [column.name for column in rule.columns]
    if as_json:
        print_json(
            {
                "name": specification.name,
                "labels": rule.labels,
                "features": names,
                "accepted_at_start": accepted,
                "profit_per_applicant": profit,
                "currency": "" if offers is None else offers.currency,
            }
        )
        return
    out = console()
    out.print(
        bold(f"{specification.name}:"),
        f" decides by {', '.join(names)}; {counted(rule.labels, 'outcome')} learnt.", sep="",
    )  # fmt: skip
    out.print(f"Of 100 applicants like those in the file, about {100 * accepted:.0f} are accepted now.")
    if profit is not None:
        assert offers is not None
        money = Money(unit=1, currency=offers.currency).format(100 * profit)
        out.print(f"The expected profit on these 100 is {money}. What the policy learns from them adds to it later.")
    out.print("Next: lenience serve --policy", file)


def _middle(offers: Offers) -> Any:
    """Return one offer that stands for all: the middle one by amount."""
    from lenience.core.offers import Offer

    middle = sorted(zip(offers.amount, offers.cost, strict=True))[len(offers.amount) // 2]
    return Offer(*middle)

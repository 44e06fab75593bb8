"""Chapter 1, purpose: what the policy decides, what it maximises, who made and approved it, and how it is used."""

from __future__ import annotations

from lenience.core.formatting import count, counted, percent, plural
from lenience.dashboard.documentation.facts import PackFacts
from lenience.dashboard.read_models.policy_description import describe_limits, describe_objective
from lenience.reports.document import Block, Chapter, Facts, Notice, Paragraph
from lenience.service.domain.answers import VersionRecord

NOT_SERVED = "not recorded yet: the service records who creates a version"
STATES = {
    "draft": "It is a draft and decides nothing.",
    "shadow": "It runs in shadow: it decides every applicant too, without effect.",
    "rollout": "It is rolled out: it decides a share of the applicants.",
    "active": "It is active and decides applicants now.",
    "retired": "It is retired and decides nothing any more.",
}


def purpose_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    specification, record = facts.specification, _record(facts)
    blocks: list[Block] = []
    if specification.description:
        blocks.append(Paragraph(specification.description))
    else:
        text = (
            "The version has no description. State its business purpose in the field description of the next version."
        )
        blocks.append(Notice("No business purpose is recorded.", text))
    blocks += [
        Paragraph(
            f"The policy {facts.view.name} accepts or rejects applicants one at a time. Only accepted applicants "
            f"reveal "
            "whether they succeed. The policy therefore weighs two things: what it expects to earn from an applicant, "
            "and what the outcome would teach it about later applicants."
        ),
        Paragraph(f"This pack documents version {facts.number}. {STATES[facts.view.state]} {_use(facts)}"),
        Facts(
            "Identification and approval",
            [
                ("Policy", facts.view.name),
                ("Version and state", f"{facts.number}, {facts.view.state}"),
                ("Author", f"{facts.name(record.created_by)}{_on(record.created_at)}" if facts.served else NOT_SERVED),
                ("Approver", f"{facts.name(record.activated_by)}{_on(record.activated_at)}"),
                ("Four eyes", _four_eyes(facts)),
                ("Software that solved it", record.software or "not recorded (earlier release)"),
                ("SHA-256 of the specification", record.specification or "not recorded"),
            ],
        ),
        Facts("Objective and limits", [*describe_objective(specification.objective), *_limits(facts)]),
    ]
    return Chapter("Purpose", "What does the model decide, for whom, and who is responsible for it?", blocks)


def _record(facts: PackFacts) -> VersionRecord:
    return next(one for one in facts.view.versions if one.version == facts.number)


def _on(moment: str | None) -> str:
    return "" if moment is None else f", {moment[:10]}"


def _four_eyes(facts: PackFacts) -> str:
    record = _record(facts)
    if record.activated_by is None:
        return "not activated yet"
    if record.four_eyes:
        return "required: somebody other than the author activated it"
    same = record.activated_by == record.created_by
    return "not required; the author activated it" if same else "not required; somebody else activated it"


def _use(facts: PackFacts) -> str:
    """Say how much the policy has been used."""
    if not facts.served:
        return "No service uses it yet."
    if not facts.decided:
        return "No decision has been made yet."
    accepted = facts.accepted
    text = (
        f"All versions together have made {counted(facts.decided, 'decision')}, of which {accepted:,} "
        f"{plural(accepted, 'is an acceptance', 'are acceptances')}."
    )
    if facts.profit is not None:
        total, money = facts.profit.total, facts.profit.money
        text += (
            f" Known outcomes have earned {money.format(total.realised)}, and pending ones lose "
            f"{money.format(total.at_risk)} if all of them fail."
        )
    return text


def _limits(facts: PackFacts) -> list[tuple[str, str]]:
    """Describe constraints, expiry and limits over all segments."""
    specification, money = facts.specification, facts.status.money
    constraints = specification.constraints
    rows = describe_limits(facts.status)
    if constraints.exploration_floor:
        share = percent(constraints.exploration_floor)
        rows.append(("Exploration floor", f"{share} of applicants in a stopped segment are still accepted"))
    if constraints.exposure_cap:
        rows.append(("Exposure cap", f"{constraints.exposure_cap:,} pending in a segment"))
    if constraints.exposure_cap_amount:
        rows.append(("Cap on losses", f"{money.format(constraints.exposure_cap_amount)} in a segment"))
    if specification.referral:
        rows.append(("Cases for people", _referral(facts)))
    if specification.expiry_days:
        rows.append(("Missing outcomes expire after", f"{count(specification.expiry_days)} days"))
    return rows


def _referral(facts: PackFacts) -> str:
    """Say which applicants people decide."""
    rule, money = facts.specification.referral, facts.status.money
    assert rule
    parts = []
    if rule.amount_above is not None:
        parts.append(f"more than {money.format(rule.amount_above)} at stake")
    if rule.evidence_below is not None:
        parts.append(f"an estimate from fewer than {count(rule.evidence_below)} outcomes")
    if rule.near_minimum is not None:
        parts.append(f"an expected rate within {percent(rule.near_minimum)} of the minimum")
    if rule.daily_capacity is not None:
        parts.append(f"the {rule.daily_capacity:,} a day whose review is worth most")
    return "; ".join(parts)

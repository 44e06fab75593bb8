"""The decision on an applicant by its own features: what the model's rule says, within the caps of the version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.formatting import count, counted, percent
from lenience.core.money import Money
from lenience.core.objective import Objective
from lenience.core.offers import Offer
from lenience.policies.features.decision import MOST_REASONS, Decision, OfferedDecision
from lenience.service.domain.feature_models import CLOSE, Applicant, FeatureModel, FeatureState, PendingApplicants
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.overall import OVERALL, OverallUse
from lenience.service.domain.reason_parts import (
    PrincipalReason,
    limit_reached,
    overall_text,
    pending_text,
    waiting_text,
)
from lenience.service.domain.rule import (
    ABOVE,
    BELOW,
    CAP,
    FLOOR,
    LEARNING,
    LIMIT,
    LOSS_CAP,
    OVER,
    Counts,
    SegmentRule,
    Verdict,
)

TABLE_PRECISION = 1e-4
NO_DRAW = 0.5  # settles nothing: without an exploration floor nobody is accepted at random


def decide_applicant(
    rule: SegmentRule,
    model: FeatureModel,
    state: FeatureState,
    row: Any,
    pending: Callable[[], PendingApplicants],
    counts: Counts,
    draw: float,
    choices: Sequence[Offer],
    use: OverallUse | None = None,
    alone: Decision | None = None,
) -> tuple[Verdict, Applicant]:
    """Return the verdict on an applicant and what it rests on.

    Parameters
    ----------
    rule : SegmentRule
        The caps of the version.
    model : FeatureModel
        Its model.
    state : FeatureState
        What the model knows.
    row : ndarray
        The applicant's features, encoded.
    pending : callable
        Returns the rows of the accepted applicants without an outcome, if they are needed.
    counts : Counts
        The counts before the decision.
    draw : float
        A number in [0, 1) that settles the exploration floor.
    choices : sequence of Offer
        The offers of which one can be made. Without any, all offers of the version can be.
    use : OverallUse, optional
        What the policy has used, where it has limits over all segments.
    alone : Decision, optional
        What :meth:`FeatureModel.decide_each` returns for the applicant with all ``choices``, if it is known.
    """
    menu = choices or _own_menu(rule)
    fitting = _fitting(rule, counts, menu, use)
    some_fit = 0 < len(fitting) < len(menu)
    offered, known = (fitting, None) if some_fit else (choices, alone)
    decided = model.decide(state, row, pending, counts.arrivals, draw, offered, known)
    applicant = Applicant(decided.n, decided.mean, decided.discount or 0.0, decided.pending or 0.0)
    verdict = _verdict(rule, model, decided, menu)
    horizon = model.objective.horizon
    if horizon is not None and counts.arrivals >= horizon:
        return verdict._replace(decision="reject", rule=OVER, probability=0.0), applicant
    if verdict.decision == "accept":
        held = _held(rule, counts, verdict.offer, not fitting, use)
        if held is not None:
            verdict = verdict._replace(decision="reject", rule=held, probability=0.0)
    return rule.with_waiting_list(verdict), applicant


def _own_menu(rule: SegmentRule) -> Sequence[Offer]:
    """Return the offers of the version, of which one is made if the request names none."""
    return rule.table.choices if isinstance(rule.table, OfferTable) and rule.table.offers is not None else ()


def _fitting(rule: SegmentRule, counts: Counts, choices: Sequence[Offer], use: OverallUse | None) -> Sequence[Offer]:
    """Return the offers whose loss the caps in money still allow."""
    cap = rule.exposure_cap_amount
    if cap is not None:
        choices = [one for one in choices if counts.at_risk + one.loss <= cap]
    return choices if use is None or rule.overall is None else rule.overall.fitting(use, choices)


def _held(
    rule: SegmentRule, counts: Counts, offer: Offer | None, none_fits: bool, use: OverallUse | None
) -> str | None:
    """Return the cap that stands in the way of an acceptance, or None."""
    if rule.exposure_cap is not None and counts.pending >= rule.exposure_cap:
        return CAP
    if use is not None and rule.overall is not None:
        full = rule.overall.full(use)
        if full is not None:
            return full
    if not none_fits or offer is None:
        return None
    exceeded = None if use is None or rule.overall is None else rule.overall.exceeded(use, offer)
    own = rule.exposure_cap_amount is not None and counts.at_risk + offer.loss > rule.exposure_cap_amount
    return LOSS_CAP if own else exceeded


def _verdict(rule: SegmentRule, model: FeatureModel, decided: Decision, choices: Sequence[Offer]) -> Verdict:
    """Return what the model's rule says, before the caps."""
    offer: Offer | None = None
    profit: float | None = None
    label: Bounds | None = None
    cost = model.objective.cost
    threshold = cost if decided.threshold is None else decided.threshold
    if isinstance(decided, OfferedDecision):
        cost, worth = decided.cost, decided.label_value or 0.0
        same = [one for one in choices if (one.amount, one.cost) == (decided.amount, decided.cost)]
        offer = same[0] if same else Offer(decided.amount, decided.cost)
        profit, label = offer.expected_profit(decided.mean), Bounds(worth, worth)
        threshold = min(max(cost - worth / offer.amount, 0.0), 1.0)
    if decided.propensity >= 1.0:
        kind = ABOVE if decided.mean > cost else LEARNING
        threshold = min(threshold, decided.mean) if kind == LEARNING else threshold
    else:
        held = decided.held_back if isinstance(decided, OfferedDecision) else threshold < decided.mean <= cost
        kind = FLOOR if decided.accepted else LIMIT if held else BELOW
    choice = "accept" if decided.accepted else "reject"
    numbers = (rule.exposure_cap, decided.propensity, threshold)
    return Verdict(choice, kind, *numbers, offer, profit, label)  # type: ignore[arg-type]


def applicant_belief(applicant: Applicant) -> Belief:
    """Return the estimate for an applicant as a belief."""
    return Belief(applicant.n, applicant.n * applicant.mean)


def _estimate(applicant: Applicant) -> str:
    return (
        f"the expected success rate of applicants with these features is {percent(applicant.mean)} "
        f"(as much evidence as {count(applicant.n)} similar outcomes)"
    )


def applicant_reason(rule: SegmentRule, applicant: Applicant, verdict: Verdict, counts: Counts, cost: float) -> str:
    """Return the reason for a decision, in a few sentences."""
    seen, kind = _estimate(applicant), verdict.rule
    money = Money() if rule.table.offers is None else rule.table.offers.money
    even, least = percent(cost), percent(verdict.threshold)
    size = "" if verdict.offer is None else f" {money.format(verdict.offer.amount)}"
    if kind == ABOVE:
        return f"Accept{size}: {seen}, above the break-even of {even}."
    if kind == LEARNING:
        return (
            f"Accept{size}: {seen}, not above the break-even of {even}, but above the minimum of {least}. What the "
            "outcome teaches about similar applicants is worth more than its expected loss."
        )
    if kind == FLOOR:
        floor = percent(rule.exploration_floor)
        return f"Accept{size}: {seen}, not above the minimum of {least}. The exploration floor accepts {floor} anyway."
    if kind == OVER:
        return "Reject: all applicants of the horizon have arrived."
    later = "Wait" if verdict.decision == "wait" else "Reject for now"
    if kind == CAP:
        return (
            f"{later}: {pending_text(counts)}, and the exposure cap is {rule.exposure_cap:,}. New outcomes make room."
        )
    if kind == LOSS_CAP:
        cap = money.format(rule.exposure_cap_amount or 0.0)
        return f"{later}: with this offer, open cases could lose more than the cap of {cap}. New outcomes make room."
    if kind in OVERALL:
        return f"{later}: {waiting_text(rule, kind, money)}"
    if kind == LIMIT:
        return (
            f"{later}: {seen}, not above the break-even of {even}, and {count(applicant.pending)} acceptances of "
            "similar applicants are pending. New outcomes make room."
        )
    return f"Reject{size}: {seen}, not above the minimum of {least} (break-even {even})."


def needs_features(verdict: Verdict) -> bool:
    """Return whether the reasons of a decision are features: of a rejection for which no cap is the reason."""
    return verdict.decision != "accept" and verdict.rule in (BELOW, LIMIT)


def applicant_principal_reasons(
    rule: SegmentRule, applicant: Applicant, verdict: Verdict, cost: float, lowered_by: Mapping[str, str]
) -> list[PrincipalReason]:
    """Return the main reasons of a rejection, at most four, the most important first. An acceptance has none.

    Parameters
    ----------
    rule : SegmentRule
        The caps of the version.
    applicant : Applicant
        The estimate.
    verdict : Verdict
        The decision.
    cost : float
        The break-even.
    lowered_by : mapping
        The features that speak most against the applicant, with a sentence for each (:meth:`FeatureModel.lowered_by`).
        It is empty if they are not known any more, or if there are none.
    """
    kind = verdict.rule
    if verdict.decision == "accept":
        return []
    if kind == OVER:
        return [PrincipalReason("no_more_acceptances", "The planned number of applicants has been reached.")]
    if kind == CAP:
        full = f"The cap of {counted(rule.exposure_cap or 0, 'open case')} has been reached."
        return [limit_reached("exposure_cap_reached", full, verdict)]
    money = Money() if rule.table.offers is None else rule.table.offers.money
    if kind == LOSS_CAP:
        cap = f"With this offer, open cases could lose more than {money.format(rule.exposure_cap_amount or 0.0)}."
        return [limit_reached("exposure_cap_amount_reached", cap, verdict)]
    if kind in OVERALL:
        return [limit_reached(f"{kind}_reached", overall_text(rule, kind, money), verdict)]
    reasons = [PrincipalReason(f"feature:{name}", text) for name, text in lowered_by.items()]
    if not reasons:
        seen = _estimate(applicant)
        short = f"{seen[0].upper()}{seen[1:]}. The minimum is {percent(min(verdict.threshold, cost))}."
        reasons.append(PrincipalReason("estimate_for_these_features", short))
        if kind != LIMIT and applicant.n < 30:
            few = f"Similar applicants have given only as much evidence as {count(applicant.n)} outcomes."
            reasons.append(PrincipalReason("limited_experience_with_features", few))
    if kind == LIMIT:
        waiting = f"{count(applicant.pending)} acceptances of similar applicants have no outcome yet."
        reasons.insert(0, limit_reached("exposure_limit_reached", waiting, verdict))
    return reasons[:MOST_REASONS]


def what_would_change_applicant(rule: SegmentRule, applicant: Applicant, verdict: Verdict, cost: float) -> list[str]:
    """Return the changes that would have reversed the decision, each in one sentence."""
    kind, changes = verdict.rule, list[str]()
    if kind in (LIMIT, CAP, LOSS_CAP, *OVERALL):
        changes.append("Fewer open cases: accept.")
    if kind in (BELOW, LIMIT):
        least = percent(min(verdict.threshold, cost) if kind == BELOW else cost)
        changes.append(f"An expected success rate above {least} at this amount of evidence: accept.")
    if kind in (ABOVE, LEARNING):
        changes.append(f"An expected success rate of at most {percent(min(verdict.threshold, cost))}: reject.")
    if kind == FLOOR or (kind == BELOW and verdict.probability > 0):
        changes.append("Another draw of the exploration floor.")
    return changes


def consistent(verdict: Verdict, applicant: Applicant, objective: Objective) -> bool:
    """Return whether a decision follows from the estimate that it states, as far as one can tell without features."""
    cost = objective.cost if verdict.offer is None else verdict.offer.cost
    accepted = verdict.decision == "accept"
    if verdict.rule == ABOVE:
        return accepted and applicant.mean > cost
    if verdict.rule == LEARNING:
        return accepted and verdict.threshold <= applicant.mean <= cost
    return accepted == (verdict.rule == FLOOR)


def same_verdict(one: Verdict, other: Verdict) -> bool:
    """Return whether two verdicts agree, up to rounding of their numbers on another machine.

    Thresholds come from a table, which earlier versions computed to about 10⁻⁴ only.
    """
    same = (one.decision, one.rule, one.limit, one.offer) == (other.decision, other.rule, other.limit, other.offer)
    same = same and abs(one.threshold - other.threshold) <= TABLE_PRECISION
    pairs = [(one.probability, other.probability)]
    if one.label_value is not None and other.label_value is not None:
        pairs.append((one.label_value.lower, other.label_value.lower))
    return same and all(abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b)) for a, b in pairs)

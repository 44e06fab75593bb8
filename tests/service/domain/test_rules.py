"""What the service decides by a segment's rule, and what each event does to the counts: every case, by hand."""

from __future__ import annotations

from functools import cache

import pytest

from lenience import Belief, Discounted, FiniteHorizon
from lenience.core.errors import InputError
from lenience.models.maturing import OpenShares, TimingCurves
from lenience.objectives.delayed import Delayed
from lenience.service.commands.transitions import (
    OverrideRequest,
    Transition,
    plan_correction,
    plan_expiry,
    plan_nothing,
    plan_outcome,
    plan_override,
    status_of,
)
from lenience.service.domain.answers import choice_of
from lenience.service.domain.events import Outcome
from lenience.service.domain.problems import Conflict
from lenience.service.domain.rule import Counts, DecisionBasis, SegmentRule
from lenience.service.domain.solved_tables import Effort, SolvedTable, load, solve
from lenience.service.domain.specification import Objective, PolicySpecification, SegmentProblem
from lenience.service.domain.state import DecisionState


@cache
def table(problem: Objective) -> SolvedTable:
    return load(solve(SegmentProblem("x", 1.0, problem, Belief(2, 1), None, 0.0), Effort(rows=60, limit=False)))


def rule(problem: Objective, cap: int | None = None, floor: float = 0.0) -> SegmentRule:
    return SegmentRule("x", 1.0, table(problem), "", cap, floor)


PROMPT = Discounted(0.8, 0.99)
LATE = Delayed(0.8, 50, 0.1, 1)


@pytest.mark.parametrize(
    ("counts", "decision", "reason", "probability"),
    [
        (Counts(), "accept", "worth_learning", 1.0),
        (Counts(successes=6, failures=2), "accept", "worth_learning", 1.0),  # 7 of 10
        (Counts(successes=5, failures=3), "reject", "below_threshold", 0.0),  # 6 of 10
        (Counts(successes=7, failures=1), "accept", "worth_learning", 1.0),  # 8 of 10: at the cost, not above it
        (Counts(successes=8, failures=0), "accept", "above_break_even", 1.0),
        (Counts(successes=8, failures=0, pending=10**6), "accept", "above_break_even", 1.0),
    ],
)
def test_prompt_labels(counts: Counts, decision: str, reason: str, probability: float) -> None:
    verdict = rule(PROMPT).decide(counts, 0.0)
    assert (verdict.decision, verdict.rule, verdict.probability) == (decision, reason, probability)
    assert verdict.limit == (None if decision == "accept" else 0)


@pytest.mark.parametrize(
    ("pending", "cap", "decision", "reason", "limit"),
    [
        (4, None, "accept", "worth_learning", 5),
        (5, None, "reject", "exposure_limit", 5),
        (6, None, "reject", "exposure_limit", 5),
        (2, 3, "accept", "worth_learning", 3),
        (3, 3, "reject", "exposure_cap", 3),
        (4, 3, "reject", "exposure_cap", 3),
        (5, 3, "reject", "exposure_limit", 3),
        (5, 9, "reject", "exposure_limit", 5),
    ],
)
def test_late_labels(pending: int, cap: int | None, decision: str, reason: str, limit: int) -> None:
    counts = Counts(successes=6, failures=2, pending=pending)  # 7 of 10: at most 5 may be pending
    verdict = rule(LATE, cap).decide(counts, 0.0)
    assert (verdict.decision, verdict.rule, verdict.limit) == (decision, reason, limit)
    assert verdict.probability == float(decision == "accept")


@pytest.mark.parametrize(("pending", "expected"), [(3, "accept"), (4, "reject")])
def test_a_cap_holds_above_the_break_even_too(pending: int, expected: str) -> None:
    verdict = rule(LATE, 4).decide(Counts(successes=9, failures=1, pending=pending), 0.0)
    assert verdict.decision == expected
    assert verdict.limit == 4
    assert verdict.rule == ("above_break_even" if expected == "accept" else "exposure_cap")


@pytest.mark.parametrize(
    ("draw", "pending", "cap", "decision", "reason", "probability"),
    [
        (0.0, 0, None, "accept", "exploration_floor", 0.25),
        (0.2499, 7, None, "accept", "exploration_floor", 0.25),
        (0.25, 0, None, "reject", "below_threshold", 0.25),
        (0.0, 1, 2, "accept", "exploration_floor", 0.25),
        (0.0, 2, 2, "reject", "below_threshold", 0.0),
    ],
)
def test_the_exploration_floor(
    draw: float, pending: int, cap: int | None, decision: str, reason: str, probability: float
) -> None:
    verdict = rule(PROMPT, cap, 0.25).decide(Counts(failures=5, pending=pending), draw)
    assert (verdict.decision, verdict.rule, verdict.probability, verdict.limit) == (decision, reason, probability, 0)
    assert rule(PROMPT).decide(Counts(failures=5), 0.0).probability == 0.0


def test_a_horizon_ends_with_the_last_acceptance() -> None:
    segment = rule(FiniteHorizon(0.3, 3), None, 0.5)
    assert segment.decide(Counts(accepted=2, successes=2), 0.0).decision == "accept"
    for accepted in (3, 4):
        over = segment.decide(Counts(accepted=accepted, successes=2), 0.0)
        assert over[:4] == ("reject", "horizon_over", 0, 0.0)


def test_counts_start_from_nothing() -> None:
    assert Counts() == Counts(arrivals=0, accepted=0, pending=0, successes=0, failures=0)


def test_the_basis_follows_the_outcomes() -> None:
    segment = rule(LATE, 7)
    first = segment.basis(Counts(successes=6, failures=2))
    assert segment.basis(Counts(successes=6, failures=2, pending=3, arrivals=9)) is first
    for counts in (Counts(successes=6, failures=3), Counts(successes=7, failures=2), Counts(successes=2, failures=6)):
        fresh = segment.basis(counts)
        assert (fresh.successes, fresh.failures) == (counts.successes, counts.failures)
        assert segment.belief(counts) == Belief(2 + counts.successes + counts.failures, 1 + counts.successes)
    assert segment.limit(Counts(successes=6, failures=2)) == 5
    assert segment.limit(Counts(successes=9, failures=1)) == 7
    assert first.optimum == 5
    assert first.threshold == segment.table.threshold(6, 2)


def state(status: str) -> DecisionState:
    return DecisionState("d1", 1, 2, 1, 0, status != "rejected", status)


START = Counts(arrivals=20, accepted=10, pending=4, successes=3, failures=2)


def after(plan: Transition) -> tuple[int, ...]:
    counts = plan.counts_after(START)
    return counts.arrivals, counts.accepted, counts.pending, counts.successes, counts.failures


@pytest.mark.parametrize(
    ("status", "outcome", "recorded", "counts"),
    [
        ("pending", "success", True, (20, 10, 3, 4, 2)),
        ("pending", "failure", True, (20, 10, 3, 3, 3)),
        ("expired", "success", True, (20, 10, 4, 4, 2)),
        ("expired", "failure", True, (20, 10, 4, 3, 3)),
        ("success", "success", False, (20, 10, 4, 3, 2)),
        ("failure", "failure", False, (20, 10, 4, 3, 2)),
    ],
)
def test_outcomes(status: str, outcome: Outcome, recorded: bool, counts: tuple[int, ...]) -> None:
    plan = plan_outcome(state(status), outcome)
    assert (plan.recorded, plan.status, plan.choice, plan.kind) == (recorded, outcome, "accept", "outcome")
    assert after(plan) == counts
    assert plan_outcome(state("pending"), outcome, status) == Transition(
        state("pending"), outcome, "accept", "outcome", recorded, plan.successes, plan.failures, plan.pending
    )


@pytest.mark.parametrize(
    ("status", "outcome", "message"),
    [
        ("rejected", "success", "override it to accept first"),
        ("success", "failure", "has the outcome success already"),
        ("failure", "success", "has the outcome failure already"),
    ],
)
def test_outcomes_that_cannot_be(status: str, outcome: Outcome, message: str) -> None:
    with pytest.raises(Conflict, match=message):
        plan_outcome(state(status), outcome)


def test_expiry() -> None:
    plan = plan_expiry(state("pending"))
    assert (plan.recorded, plan.status, plan.choice, plan.kind) == (True, "expired", "accept", "expiry")
    assert after(plan) == (20, 10, 3, 3, 2)
    again = plan_expiry(state("expired"))
    assert not again.recorded
    assert after(again) == (20, 10, 4, 3, 2)
    for status in ("success", "failure", "rejected"):
        with pytest.raises(Conflict, match="not pending"):
            plan_expiry(state(status))


def test_corrections() -> None:
    better = plan_correction(state("failure"), "success")
    assert after(better) == (20, 10, 4, 4, 1)
    assert (better.recorded, better.before, better.status, better.kind) == (True, "failure", "success", "correction")
    worse = plan_correction(state("success"), "failure")
    assert after(worse) == (20, 10, 4, 2, 3)
    assert (worse.recorded, worse.before, worse.status) == (True, "success", "failure")
    same = plan_correction(state("success"), "success")
    assert not same.recorded
    assert after(same) == (20, 10, 4, 3, 2)
    for status in ("pending", "expired", "rejected"):
        with pytest.raises(Conflict, match="no outcome to correct"):
            plan_correction(state(status), "success")


def test_overrides() -> None:
    accept = OverrideRequest("accept", "officer", "knows the applicant")
    reject = OverrideRequest("reject", "officer", "fraud")
    plan = plan_override(state("rejected"), accept)
    assert after(plan) == (20, 11, 5, 3, 2)
    assert (plan.recorded, plan.status, plan.choice, plan.kind) == (True, "pending", "accept", "override")
    assert plan.override == accept
    assert plan.personal is not None
    assert plan.personal.details == "knows the applicant"
    waiting = plan_override(state("pending"), reject)
    assert after(waiting) == (20, 9, 3, 3, 2)
    assert (waiting.recorded, waiting.status, waiting.choice) == (True, "rejected", "reject")
    assert after(plan_override(state("expired"), reject)) == (20, 9, 4, 3, 2)
    for status in ("success", "failure"):
        with pytest.raises(Conflict, match="can no longer be overridden"):
            plan_override(state(status), reject)
    for status, request in (("pending", accept), ("rejected", reject)):
        with pytest.raises(Conflict, match="already"):
            plan_override(state(status), request)


@pytest.mark.parametrize(("status", "choice"), [("pending", "accept"), ("rejected", "reject"), ("success", "accept")])
def test_nothing_changes(status: str, choice: str) -> None:
    plan = plan_nothing(state(status), "erasure", recorded=True)
    assert after(plan) == (20, 10, 4, 3, 2)
    assert (plan.status, plan.choice, plan.recorded) == (status, choice, True)
    assert not plan_nothing(state(status), "erasure", recorded=False).recorded
    assert (status_of(state(status)), choice_of(choice == "accept", status)) == (status, choice)


def test_only_texts_are_stripped() -> None:
    from lenience.service.domain.feature_cells import Feature, strip_values

    region = Feature("region", values=["north", "1"])
    given: dict[str, float | str] = {"region": 1.0, "other": " x "}
    assert strip_values([region], given) == given
    assert strip_values([region], {"region": " north "}) == {"region": "north"}


def test_the_service_takes_no_horizon_with_late_outcomes() -> None:
    with pytest.raises(InputError) as error:
        PolicySpecification(name="loans", objective=Delayed(0.8, 50, 0.1, 1, horizon=100))
    assert (error.value.field, error.value.code) == ("horizon", "conflicting_fields")


def test_the_own_date_of_an_outcome_cannot_change() -> None:
    known = state("success")
    known.outcome_at = 5
    assert not plan_outcome(known, "success", own_date=5).recorded
    assert not plan_outcome(known, "success").recorded
    assert not plan_outcome(state("success"), "success", own_date=6).recorded  # no date was recorded
    with pytest.raises(Conflict) as caught:
        plan_outcome(known, "success", own_date=6)
    assert caught.value.code == "outcome_recorded"


@pytest.mark.parametrize(
    ("ages", "alternatives", "valid"), [(5000, 0, True), (5001, 0, False), (2, 200, True), (2, 201, False)]
)
def test_how_long_timing_curves_may_be(ages: int, alternatives: int, valid: bool) -> None:
    shares = (1.0,) * ages
    curves = TimingCurves(tuple(range(ages)), shares, shares, (OpenShares(shares, shares),) * alternatives)
    if valid:
        PolicySpecification("p", PROMPT, timing=curves)
    else:
        with pytest.raises(InputError) as caught:
            PolicySpecification("p", PROMPT, timing=curves)
        assert caught.value.code == "too_large"


class BetweenRows:
    """A table whose limit and threshold are interpolated apart from each other."""

    cost, horizon = 0.8, None

    def __init__(self, limit: int | None, threshold: float) -> None:
        self._limit, self._threshold = limit, threshold

    def belief(self, successes: float, failures: float) -> Belief:
        return Belief(2 + successes + failures, 1 + successes)

    def limit(self, successes: float, failures: float) -> int | None:
        return self._limit

    def threshold(self, successes: float, failures: float) -> float:
        return self._threshold


@pytest.mark.parametrize(
    ("limit", "threshold", "borrows", "shown"),
    [
        (0, 0.5, True, 0.6),  # rejected at 60%, so the threshold is not below it
        (0, 0.7, True, 0.7),
        (3, 0.7, True, 0.6),  # accepted at 60%, so the threshold is not above it
        (3, 0.5, True, 0.5),
        (None, 0.7, True, 0.7),
        (0, 0.5, False, 0.5),
        (3, 0.7, False, 0.7),
    ],
)
def test_limits_and_thresholds_with_borrowed_evidence_agree(
    limit: int | None, threshold: float, borrows: bool, shown: float
) -> None:
    basis = DecisionBasis(BetweenRows(limit, threshold), None, 5, 3, borrows=borrows)  # type: ignore[arg-type]
    assert (basis.rate, basis.threshold, basis.limit) == (0.6, shown, limit)

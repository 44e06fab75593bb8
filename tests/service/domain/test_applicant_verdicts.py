"""The decision on an applicant by features: every rule, cap and edge, without a database or a fitted model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from lenience.core.bounds import Bounds
from lenience.core.offers import Offer, Offers
from lenience.policies.features.decision import Decision, OfferedDecision
from lenience.service.domain.feature_models import CLOSE, Applicant
from lenience.service.domain.feature_rule import (
    applicant_belief,
    applicant_principal_reasons,
    applicant_reason,
    consistent,
    decide_applicant,
    needs_features,
    same_verdict,
    what_would_change_applicant,
)
from lenience.service.domain.offer_tables import OfferTable
from lenience.service.domain.overall import Capacity, OverallLimits, OverallUse
from lenience.service.domain.rule import Counts, SegmentRule, Verdict

SMALL, LARGE = Offer(100, 0.5), Offer(1000, 0.5)  # they lose 50 and 500
MADE = Decision(0, True, 1.0, 0.8, 9.0, 0.9, 0.6, 2.0)  # a mean of 80%, a minimum of 60%
OFFERED = OfferedDecision(0, True, 1.0, 0.8, 9.0, 0.9, None, 2.0, amount=1000.0, cost=0.5, label_value=40.0)


def a_rule(**changes: Any) -> SegmentRule:
    given = {"table": SimpleNamespace(offers=None), "exposure_cap": None, "exploration_floor": 0.0, **changes}
    return SegmentRule("all", 1.0, digest="digest", **given)


class Model:
    """A model whose decision is known. It notes the offers among which it may choose, and what it is told."""

    def __init__(self, made: Decision, horizon: int | None = None) -> None:
        self.made, self.offered = made, [Offer(1, 0.5)]
        self.alone: Decision | None = None
        self.objective = SimpleNamespace(cost=0.7, horizon=horizon)

    def decide(
        self, state: Any, row: Any, pending: Any, arrivals: int, draw: float, choices: Any, alone: Decision | None
    ) -> Decision:
        self.offered, self.alone = list(choices), alone
        return self.made


def decide(
    made: Decision = MADE,
    *,
    counts: Counts | None = None,
    choices: tuple[Offer, ...] = (),
    use: OverallUse | None = None,
    horizon: int | None = None,
    model: Model | None = None,
    alone: Decision | None = None,
    **rule: Any,
) -> Verdict:
    asked, nothing, seen = cast(Any, model or Model(made, horizon)), cast(Any, None), counts or Counts()
    return decide_applicant(a_rule(**rule), asked, nothing, None, nothing, seen, 0.5, choices, use, alone)[0]


def changed(made: Decision, **changes: Any) -> Decision:
    return msgspec.structs.replace(made, **changes)


@pytest.mark.parametrize(
    ("changes", "decision", "kind", "threshold"),
    [
        ({"mean": 0.8}, "accept", "above_break_even", 0.6),
        ({"mean": 0.65}, "accept", "worth_learning", 0.6),
        ({"mean": 0.7}, "accept", "worth_learning", 0.6),  # at the break-even
        ({"mean": 0.55}, "accept", "worth_learning", 0.55),  # the stated minimum is not above the mean
        ({"mean": 0.5, "accepted": False, "propensity": 0.0}, "reject", "below_threshold", 0.6),
        ({"mean": 0.6, "accepted": False, "propensity": 0.0}, "reject", "below_threshold", 0.6),
        ({"mean": 0.65, "accepted": False, "propensity": 0.0}, "reject", "exposure_limit", 0.6),
        ({"mean": 0.7, "accepted": False, "propensity": 0.0}, "reject", "exposure_limit", 0.6),
        ({"mean": 0.5, "accepted": True, "propensity": 0.2}, "accept", "exploration_floor", 0.6),
        ({"mean": 0.5, "accepted": False, "propensity": 0.2}, "reject", "below_threshold", 0.6),
        ({"mean": 0.8, "threshold": None}, "accept", "above_break_even", 0.7),
    ],
)
def test_the_rule_that_decides(changes: dict[str, Any], decision: str, kind: str, threshold: float) -> None:
    verdict = decide(changed(MADE, **changes))
    assert (verdict.decision, verdict.rule, verdict.threshold) == (decision, kind, threshold)
    assert verdict.probability == changes.get("propensity", 1.0)
    assert (verdict.offer, verdict.expected_profit, verdict.label_value) == (None, None, None)


def test_the_estimate_is_stated() -> None:
    made = changed(MADE, discount=None, pending=None)
    nothing = cast(Any, None)
    for one, rest in ((MADE, (0.9, 2.0)), (made, (0.0, 0.0))):
        model = cast(Any, Model(one))
        applicant = decide_applicant(a_rule(), model, nothing, None, nothing, Counts(), 0.5, ())[1]
        assert applicant == Applicant(9.0, 0.8, *rest)
    assert applicant_belief(Applicant(9.0, 0.8, 0.9, 2.0)).s == 9.0 * 0.8


def test_an_offer_is_decided_at_its_own_break_even() -> None:
    verdict = decide(OFFERED, choices=(SMALL, LARGE))
    assert (verdict.rule, verdict.offer, verdict.label_value) == ("above_break_even", LARGE, Bounds(40.0, 40.0))
    assert verdict.expected_profit == pytest.approx(300.0)
    assert verdict.threshold == pytest.approx(0.46)  # 0.5 - 40/1000
    learns = decide(changed(OFFERED, mean=0.48), choices=(SMALL, LARGE))
    assert learns.rule == "worth_learning"
    assert learns.threshold == pytest.approx(0.46)
    assert decide(changed(OFFERED, label_value=900.0)).threshold == 0.0
    assert decide(changed(OFFERED, label_value=-900.0, accepted=False, propensity=0.0)).threshold == 1.0
    assert decide(changed(OFFERED, label_value=None)).threshold == 0.5
    other = decide(changed(OFFERED, amount=7.0), choices=(SMALL, LARGE))
    assert other.offer == Offer(7.0, 0.5)


@pytest.mark.parametrize(("arrivals", "kind"), [(4, "above_break_even"), (5, "horizon_over"), (6, "horizon_over")])
def test_nobody_is_accepted_after_the_horizon(arrivals: int, kind: str) -> None:
    verdict = decide(horizon=5, counts=Counts(arrivals=arrivals))
    over = kind == "horizon_over"
    assert (verdict.rule, verdict.decision) == (kind, "reject" if over else "accept")
    assert verdict.probability == (0.0 if over else 1.0)


@pytest.mark.parametrize(("pending", "kind"), [(1, "above_break_even"), (2, "exposure_cap"), (3, "exposure_cap")])
def test_a_cap_on_the_number_pending(pending: int, kind: str) -> None:
    verdict = decide(exposure_cap=2, counts=Counts(pending=pending))
    assert (verdict.rule, verdict.limit) == (kind, 2)
    assert verdict.probability == (0.0 if kind == "exposure_cap" else 1.0)
    rejection = decide(changed(MADE, accepted=False, propensity=0.0, mean=0.5), exposure_cap=2)
    assert rejection.rule == "below_threshold"  # a cap is the reason of nothing that is rejected anyway


@pytest.mark.parametrize(
    ("at_risk", "fits"), [(0.0, [SMALL, LARGE]), (500.0, [SMALL, LARGE]), (500.5, [SMALL]), (950.0, [SMALL])]
)
def test_offers_that_fit_under_a_cap_in_money(at_risk: float, fits: list[Offer]) -> None:
    model = Model(OFFERED)
    decide(model=model, choices=(SMALL, LARGE), counts=Counts(at_risk=at_risk), exposure_cap_amount=1000.0)
    assert model.offered == fits


@pytest.mark.parametrize(
    ("at_risk", "holds"), [(0.0, True), (500.0, True), (500.5, False), (950.0, False), (951, True)]
)
def test_a_known_decision_holds_only_where_no_cap_removes_an_offer(at_risk: float, holds: bool) -> None:
    # It is one among all offers. Where only some fit, the model must choose again. Where none does, nothing is chosen.
    menus: list[dict[str, Any]] = [{"choices": (SMALL, LARGE)}, {"table": Table(SMALL, LARGE)}]
    for menu in menus:
        model = Model(OFFERED)
        decide(model=model, alone=OFFERED, counts=Counts(at_risk=at_risk), exposure_cap_amount=1000.0, **menu)
        assert model.alone is (OFFERED if holds else None)
        use = OverallUse(pending=1, at_risk=at_risk)
        decide(model=model, alone=OFFERED, use=use, overall=OverallLimits(cap_amount=1000.0), **menu)
        assert model.alone is (OFFERED if holds else None)


def test_where_no_offer_fits_the_cap_in_money_is_the_reason() -> None:
    full: dict[str, Any] = {"choices": (SMALL, LARGE), "counts": Counts(at_risk=951.0), "exposure_cap_amount": 1000.0}
    model = Model(OFFERED)
    verdict = decide(model=model, **full)
    assert (verdict.decision, verdict.rule) == ("reject", "exposure_cap_amount")
    assert model.offered == [SMALL, LARGE]  # what would be offered without the cap
    assert decide(OFFERED, waiting_list=True, **full).decision == "wait"
    assert decide(exposure_cap_amount=1000.0, counts=Counts(at_risk=5000.0)).decision == "accept"  # without offers
    assert decide(**full).decision == "accept"  # the model has one break-even, so offers do not matter
    also: list[dict[str, Any]] = [{"overall": OverallLimits(cap=3)}, {"use": OverallUse(pending=1)}]
    for more in also:
        assert decide(OFFERED, **full, **more).rule == "exposure_cap_amount"


class Table(OfferTable):
    """A table with offers of its own."""

    def __init__(self, *offers: Offer) -> None:
        self.offers = Offers.menu([one.amount for one in offers], [one.cost for one in offers])
        self._each = self.offers


def test_the_offers_of_the_version_count_if_the_request_names_none() -> None:
    for at_risk, offered, decision in ((0.0, [], "accept"), (501.0, [SMALL], "accept"), (951.0, [], "reject")):
        model = Model(OFFERED)
        table = Table(SMALL, LARGE)
        verdict = decide(model=model, table=table, counts=Counts(at_risk=at_risk), exposure_cap_amount=1000.0)
        assert (model.offered, verdict.decision) == (offered, decision)
        assert verdict.rule == ("above_break_even" if decision == "accept" else "exposure_cap_amount")
    # Where one offer names the request, the version's own do not count.
    model = Model(OFFERED)
    decide(model=model, table=Table(SMALL), choices=(LARGE,), exposure_cap_amount=1000.0)
    assert model.offered == [LARGE]


def test_limits_over_all_segments() -> None:
    overall = OverallLimits(Capacity(acceptances=10), cap=3, cap_amount=1000.0)
    free: dict[str, Any] = {"choices": (SMALL, LARGE), "overall": overall}
    assert decide(OFFERED, use=OverallUse(accepted=9, pending=2), **free).decision == "accept"
    assert decide(OFFERED, use=OverallUse(accepted=10), **free).rule == "period_capacity"
    assert decide(OFFERED, use=OverallUse(pending=3), **free).rule == "overall_exposure_cap"
    assert decide(OFFERED, use=OverallUse(pending=1, at_risk=951.0), **free).rule == "overall_exposure_cap_amount"
    # Without the counters, as for a shadow version, these limits do not matter.
    assert decide(OFFERED, use=None, **free).decision == "accept"
    assert decide(OFFERED, use=OverallUse(accepted=10**6), choices=(SMALL,)).decision == "accept"
    # The limits of the segment come first.
    both: dict[str, Any] = {"counts": Counts(at_risk=990.0), "exposure_cap_amount": 1000.0, **free}
    assert decide(OFFERED, use=OverallUse(pending=1, at_risk=990.0), **both).rule == "exposure_cap_amount"
    apart: dict[str, Any] = {"counts": Counts(at_risk=950.0), "exposure_cap_amount": 1000.0, **free}
    assert decide(changed(OFFERED, amount=100.0), use=OverallUse(pending=1, at_risk=990.0), **apart).rule == (
        "overall_exposure_cap_amount"
    )
    counted: dict[str, Any] = {"counts": Counts(pending=1), "exposure_cap": 1, **free}
    assert decide(OFFERED, use=OverallUse(pending=3), **counted).rule == "exposure_cap"
    model = Model(OFFERED)
    decide(model=model, use=OverallUse(pending=1, at_risk=600.0), **free)
    assert model.offered == [SMALL]


def verdict_of(kind: str, decision: str = "reject", **changes: Any) -> Verdict:
    return Verdict(cast(Any, decision), kind, None, 0.0, 0.6, **changes)


def codes(kind: str, applicant: Applicant, **lowered_by: str) -> list[str]:
    rule = a_rule(exposure_cap=2, exposure_cap_amount=10.0, overall=OverallLimits(cap=3))
    verdict = verdict_of(kind)
    return [one.code for one in applicant_principal_reasons(rule, applicant, verdict, 0.7, lowered_by)]


def test_principal_reasons_by_rule() -> None:
    known, new = Applicant(30.0, 0.65, 0.9, 2.0), Applicant(29.0, 0.65, 0.9, 2.0)
    assert codes("below_threshold", known) == ["estimate_for_these_features"]
    assert codes("below_threshold", new) == ["estimate_for_these_features", "limited_experience_with_features"]
    assert codes("exposure_limit", new) == ["exposure_limit_reached", "estimate_for_these_features"]
    assert codes("below_threshold", new, income="Too low.") == ["feature:income"]
    assert codes("exposure_cap", new) == ["exposure_cap_reached"]
    assert codes("exposure_cap_amount", new) == ["exposure_cap_amount_reached"]
    assert codes("overall_exposure_cap", new) == ["overall_exposure_cap_reached"]
    assert codes("horizon_over", new) == ["no_more_acceptances"]
    assert applicant_principal_reasons(a_rule(), new, verdict_of("above_break_even", "accept"), 0.7, {}) == []
    (one,) = applicant_principal_reasons(a_rule(), known, verdict_of("below_threshold"), 0.55, {})
    assert "The minimum is 55%" in one.text  # of an offer whose break-even is below the minimum of the version
    (one,) = applicant_principal_reasons(a_rule(exposure_cap=2), known, verdict_of("exposure_cap"), 0.7, {})
    assert "2 open cases" in one.text
    (one,) = applicant_principal_reasons(
        a_rule(exposure_cap_amount=1234.0), known, verdict_of("exposure_cap_amount"), 0.7, {}
    )
    assert "1,234" in one.text


def test_features_are_reasons_only_where_no_cap_is() -> None:
    for kind in ("below_threshold", "exposure_limit"):
        assert needs_features(verdict_of(kind))
        assert needs_features(verdict_of(kind, "wait"))
        assert not needs_features(verdict_of(kind, "accept"))
    assert not needs_features(verdict_of("exposure_cap"))


@pytest.mark.parametrize(
    ("kind", "decision", "words"),
    [
        ("above_break_even", "accept", ["Accept: ", "80%", "above the break-even of 70%"]),
        ("worth_learning", "accept", ["Accept: ", "not above the break-even of 70%", "minimum of 60%"]),
        ("exploration_floor", "accept", ["Accept: ", "minimum of 60%", "accepts 5% anyway"]),
        ("horizon_over", "reject", ["Reject: all applicants of the horizon"]),
        ("exposure_cap", "reject", ["Reject for now: ", "the exposure cap is 2"]),
        ("exposure_cap", "wait", ["Wait: ", "the exposure cap is 2"]),
        ("exposure_cap_amount", "reject", ["Reject for now: ", "the cap of 1,234"]),
        ("overall_exposure_cap", "wait", ["Wait: "]),
        ("exposure_limit", "reject", ["Reject for now: ", "80%", "2 acceptances of similar applicants"]),
        ("below_threshold", "reject", ["Reject: ", "minimum of 60% (break-even 70%)"]),
    ],
)
def test_the_reason_in_words(kind: str, decision: str, words: list[str]) -> None:
    rule = a_rule(exposure_cap=2, exploration_floor=0.05, exposure_cap_amount=1234.0, overall=OverallLimits(cap=3))
    applicant, counts = Applicant(9.0, 0.8, 0.9, 2.0), Counts(pending=2)
    text = applicant_reason(rule, applicant, verdict_of(kind, decision), counts, 0.7)
    assert text.startswith(words[0])
    assert all(word in text for word in words), text
    offered = applicant_reason(rule, applicant, verdict_of("above_break_even", "accept", offer=LARGE), counts, 0.7)
    assert offered.startswith("Accept 1,000: ")


def test_what_would_have_changed_the_decision() -> None:
    def changes(kind: str, cost: float = 0.7, probability: float = 0.0) -> list[str]:
        verdict = verdict_of(kind)._replace(probability=probability)
        return what_would_change_applicant(a_rule(), Applicant(9.0, 0.8, 0.9, 2.0), verdict, cost)

    (less,) = changes("exposure_cap")
    assert "Fewer open cases" in less
    assert changes("exposure_cap_amount") == changes("overall_exposure_cap") == [less]
    limit = changes("exposure_limit")
    assert limit[0] == less
    assert "above 70%" in limit[1]
    assert "above 60%" in changes("below_threshold")[0]
    assert "above 50%" in changes("below_threshold", cost=0.5)[0]
    for kind in ("above_break_even", "worth_learning"):
        (below,) = changes(kind)
        assert "at most 60%: reject" in below
        assert "at most 50%: reject" in changes(kind, cost=0.5)[0]
    assert changes("exploration_floor") == ["Another draw of the exploration floor."]
    assert changes("below_threshold", probability=0.1)[1:] == ["Another draw of the exploration floor."]
    assert len(changes("below_threshold")) == 1
    assert changes("horizon_over") == []
    assert changes("exposure_limit", probability=0.1) == limit


def test_a_decision_must_follow_from_its_estimate() -> None:
    objective = cast(Any, SimpleNamespace(cost=0.7))

    def follows(kind: str, decision: str, mean: float, offer: Offer | None = None) -> bool:
        return consistent(verdict_of(kind, decision, offer=offer), Applicant(9.0, mean, 0.9, 0.0), objective)

    assert follows("above_break_even", "accept", 0.71)
    assert not follows("above_break_even", "accept", 0.7)
    assert not follows("above_break_even", "reject", 0.71)
    assert follows("above_break_even", "accept", 0.6, LARGE)  # the offer's own break-even is 50%
    for mean, expected in ((0.59, False), (0.6, True), (0.65, True), (0.7, True), (0.71, False)):
        assert follows("worth_learning", "accept", mean) == expected
    assert not follows("worth_learning", "reject", 0.65)
    assert follows("exploration_floor", "accept", 0.5)
    assert not follows("exploration_floor", "reject", 0.5)
    assert follows("below_threshold", "reject", 0.5)
    assert not follows("below_threshold", "accept", 0.5)


def test_verdicts_agree_up_to_rounding() -> None:
    one = verdict_of("worth_learning", "accept", offer=LARGE, label_value=Bounds(50.0, 50.0))
    assert same_verdict(one, one)
    assert same_verdict(one, one._replace(threshold=0.6 + 0.9e-4))
    assert same_verdict(one, one._replace(threshold=0.6 - 0.9e-4))
    assert same_verdict(one, one._replace(probability=CLOSE / 2))
    assert same_verdict(one, one._replace(label_value=Bounds(50.0 + 20 * CLOSE, 51.0)))  # relative to 50
    assert same_verdict(one, one._replace(label_value=None))
    assert same_verdict(one._replace(threshold=0.0), one._replace(threshold=1e-4))
    others: list[dict[str, Any]] = [
        {"threshold": 0.6 + 1.1e-4},
        {"threshold": 0.6 - 1.1e-4},
        {"probability": 2 * CLOSE},
        {"label_value": Bounds(50.0 + 100 * CLOSE, 51.0)},
        {"decision": "reject"},
        {"rule": "above_break_even"},
        {"limit": 3},
        {"offer": SMALL},
    ]
    for other in others:
        assert not same_verdict(one, one._replace(**other))
        assert not same_verdict(one._replace(**other), one)

"""The starter amount of the what-if page, against the solvers it is computed with."""

from __future__ import annotations

import re

import httpx
import msgspec
import pytest

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.money import Money
from lenience.core.offers import Offers
from lenience.dashboard.read_models.outlook import PATIENT, QUICK, answer_question, foresee
from lenience.dashboard.read_models.starter import answer_starter, starter_summary
from lenience.dashboard.read_models.what_if_inputs import WhatIfQuestion, draft, preset_of, read_question
from lenience.objectives.discounted import Discounted
from lenience.service.domain.solved_tables import load, solve
from lenience.service.domain.specification import PolicySpecification, SegmentSpec
from serving import OFFERS, Served

MENU = {**OFFERS, "offers": {**OFFERS["offers"], "menus": [0, 0]}}


@pytest.mark.parametrize("starter", [2.0, 10.0, 40.0, 100.0])
@pytest.mark.parametrize("applicants", [1.0, 9.9, 50.0])
def test_values_are_those_of_the_menu(starter: float, applicants: float) -> None:
    question = WhatIfQuestion(applicants=applicants, starter=starter)
    answer = answer_starter(question, PATIENT)
    discount = question.volume / (1 + question.volume)
    assert answer.without is not None
    assert answer.with_starter is not None
    assert answer.without.midpoint == pytest.approx(answer_question(question).outlook.value.midpoint, abs=2e-4)
    menu = question.menu or Offers((1.0,), (0.8,))
    policy = Discounted(offers=menu, discount=discount).solve(Belief(2, 1))
    assert answer.with_starter.midpoint == pytest.approx(discount * policy.value(Belief(2, 1)).midpoint, abs=2e-4)
    assert answer.starts_small == policy.accepts(Belief(2, 1), menu)
    assert answer.starts == Discounted(0.8, discount).starts(Belief(2, 1))
    assert answer.with_starter.upper >= answer.without.lower


def test_the_largest_starter_offer_starts_and_a_larger_one_does_not() -> None:
    question = WhatIfQuestion(applicants=1.0)
    largest = answer_starter(question, PATIENT).largest
    assert largest is not None
    assert 0.02 < largest < 1
    for factor, starts in ((0.98, True), (1.03, False)):
        other = msgspec.structs.replace(question, starter=100 * largest * factor)
        assert answer_starter(other, PATIENT).starts_small is starts
        assert ("never starts." in starter_summary(answer_starter(other, PATIENT)).split("Without")[0]) is not starts


def test_a_large_volume_is_left_to_a_slower_answer_or_to_none() -> None:
    question = WhatIfQuestion(applicants=1_500, rate=10, starter=10)
    quick, patient = answer_starter(question, QUICK), answer_starter(question, PATIENT)
    assert (quick.more, quick.with_starter) == (True, None)
    assert not patient.more
    assert patient.with_starter is not None
    too_large = answer_starter(WhatIfQuestion(applicants=1e8, starter=10), PATIENT)
    assert (too_large.more, too_large.with_starter) == (False, None)
    assert "too long" in starter_summary(too_large)


def test_late_outcomes_are_named() -> None:
    assert "immediately" in answer_starter(WhatIfQuestion(applicants=1, weeks=8, starter=10)).note


def test_a_policy_with_a_menu_gives_the_slider_and_the_money() -> None:
    specification = msgspec.convert({"name": "loans", "objective": MENU}, PolicySpecification)
    problem = specification.problems()[0]
    start = preset_of(specification, problem)
    assert (start.shown.starter, start.shown.break_even) == (10.0, 80.0)
    assert start.money == Money(5000.0, "$")
    theirs = foresee(problem.problem, problem.belief, load(solve(problem)))
    answer = answer_starter(start.exactly(start.shown), PATIENT)
    assert answer.with_starter is not None
    assert theirs.value.midpoint == pytest.approx(start.money.amount(answer.with_starter.midpoint), abs=1.0)
    assert theirs.starts
    assert theirs.knowing == pytest.approx(99 * 5000 * 0.02, rel=1e-3)
    many = msgspec.convert({"name": "loans", "objective": OFFERS}, PolicySpecification)
    start = preset_of(many, many.problems()[0])
    assert start.shown.starter == 100.0
    assert "an average one: $2,750 at a break-even of 80%" in start.note


def test_a_starter_offer_is_saved_as_a_menu() -> None:
    made = draft(WhatIfQuestion(starter=20, applicants=40), "new")
    assert made.objective.offers == Offers.menu((0.2, 1.0), (0.8, 0.8))
    with pytest.raises(InputError, match="a starter amount cannot be saved with late outcomes"):
        draft(WhatIfQuestion(starter=20, weeks=8), "new")


def test_the_offers_of_a_policy_are_kept_or_the_draft_is_rejected() -> None:
    own = Offers([100.0], [0.7], currency="$")
    objective = msgspec.convert(OFFERS, Discounted)
    base = PolicySpecification("loans", objective, segments=[SegmentSpec("a", share=0.5, offers=own), "b"])
    start = preset_of(base, base.problems()[0]).shown
    assert draft(start, "loans", base, "a") == base
    more = draft(read_question({"applicants": "20"}, start), "loans", base, "a")
    assert more.objective.offers == objective.offers
    assert more.objective.arrivals == pytest.approx(40)
    assert more.segments == base.segments
    for name, value in (("break_even", "60"), ("weeks", "3"), ("starter", "20")):
        with pytest.raises(InputError, match="cannot be saved, because the policy has offers of its own"):
            draft(read_question({name: value}, start), "loans", base, "a")


def test_the_page_shows_the_starter_offer_in_money(http: httpx.Client, served: Served) -> None:
    with served.client() as client:
        client.create_policy({"name": "what-if-menu", "objective": MENU})
        client.activate("what-if-menu")
    page = http.get("/what-if", params={"policy": "what-if-menu"}).text
    assert re.search(r'name="starter" value="10" min="0\.1" max="100\.?0?"', page)
    assert re.search(r"With a starter offer of 10% \(\$500\), the policy is worth \$\d", page)
    assert "Value with the starter offer" in page
    nothing = http.get("/what-if/answer", params={"policy": "what-if-menu", "starter": "100", "applicants": "1"}).text
    assert "Without a starter offer, the policy never starts. It starts with one of at most" in nothing
    assert "Value with the starter offer" not in nothing

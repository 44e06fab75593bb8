"""What if: the numbers shown are the library's, drafts are what was asked, and bad input is refused in a sentence."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from lenience import Belief, Delayed, Discounted
from lenience.core.errors import InputError
from lenience.core.formatting import percent
from lenience.dashboard.figures.boundary import Boundary
from lenience.dashboard.read_models.outlook import PATIENT, QUICK, answer_question, foresee, summary
from lenience.dashboard.read_models.what_if_inputs import SLIDERS, WhatIfQuestion, draft, preset, read_question
from lenience.dashboard.rendering import signed
from lenience.segments.starting import starting_volume
from lenience.service.domain.solved_tables import load, solve
from lenience.service.domain.specification import PolicySpecification, Record, SegmentSpec
from lenience.solvers.stopping.boundary_walk import fate
from lenience.solvers.stopping.clairvoyant import gain_of_knowing
from lenience.solvers.stopping.threshold import enclose_threshold
from serving import Served, serving, sqlite_file

SCRIPT = "<script>alert(1)</script>"
GROUPED: dict[str, Any] = {
    "name": "cards",
    "objective": {"type": "discounted", "cost": 0.8, "discount": 0.998},
    "segments": [{"name": "young", "share": 0.25}, {"name": SCRIPT, "share": 0.75, "prior": {"n": 4, "s": 3}}],
}
LATE: dict[str, Any] = {
    "name": "loans",
    "objective": {"type": "delayed", "cost": 0.7, "arrivals": 20, "discount_rate": 0.1, "label_delay": 0.25},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(sqlite_file(tmp_path_factory.mktemp("what-if"))) as made:
        with made.client() as client:
            for spec in (GROUPED, LATE):
                client.create_policy(spec)
                client.activate(spec["name"])
        yield made


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=30) as made:
        yield made


def cell(page: str, row: str, column: int = 0) -> str:
    """A figure of the table."""
    found = re.search(rf'<th scope="row">{re.escape(row)}.*?</tr>', page, re.DOTALL)
    assert found, row
    text = re.findall(r'<td class="number">(.*?)</td>', found[0], re.DOTALL)[column]
    return html.unescape(re.sub(r"<[^>]*>", "", text)).strip()


def test_outlook_is_the_library_s() -> None:
    problem, prior = Discounted.from_rates(0.8, 50, 0.1), Belief(2, 1)
    found = answer_question(WhatIfQuestion(break_even=80, applicants=50, rate=10)).outlook
    policy = problem.solve(prior, rows=2000)
    value = problem.discount * policy.value(prior).midpoint
    assert found.volume == pytest.approx(500)
    assert found.value.midpoint == pytest.approx(value, abs=1e-5)
    assert found.knowing == pytest.approx(500 * gain_of_knowing(2, 1, 0.8))
    assert found.learning == pytest.approx(500 * 0.02 - value, abs=1e-5)
    ahead = fate(2, 1, 0.8, policy.accept_from)
    assert found.shut_out == pytest.approx(ahead.shut_out / ahead.deserving, abs=1e-9)
    assert found.needed == pytest.approx(starting_volume(prior, 0.8).midpoint)
    assert (found.starts, found.at_most) == (True, False)


def test_late_labels() -> None:
    asked = WhatIfQuestion(break_even=70, applicants=20, rate=10, weeks=13)
    exact = Delayed(0.7, 20, 0.1, 0.25).solve(Belief(2, 1))
    found = answer_question(asked)
    assert (found.note, found.more) == ("", False)
    assert found.outlook.value.midpoint == pytest.approx(exact.certificate.estimate, rel=1e-4)
    assert found.outlook.table.limit(0, 0) == exact.limit(Belief(2, 1))
    assert found.outlook.at_most
    # Outcomes that come at once are worth more.
    assert (
        found.outlook.value.upper
        < answer_question(WhatIfQuestion(break_even=70, applicants=20, rate=10)).outlook.value.lower
    )


def test_what_takes_long_is_shown_simpler_first_and_then_in_full() -> None:
    asked = WhatIfQuestion(applicants=120, rate=10, weeks=4)
    first = answer_question(asked, QUICK)
    assert first.more
    assert first.note.startswith("Shown as if outcomes arrived immediately")
    assert first.outlook.value.midpoint == answer_question(WhatIfQuestion(applicants=120)).outlook.value.midpoint
    full = answer_question(asked, PATIENT)
    assert (full.note, full.more) == ("", False)
    assert full.outlook.value.upper < first.outlook.value.lower
    many = answer_question(WhatIfQuestion(applicants=1e6), QUICK)
    assert many.more
    assert many.outlook.volume == pytest.approx(QUICK.volume)
    assert "for 5,000 discounted applicants" in many.note


def test_a_population_that_never_starts() -> None:
    found = answer_question(WhatIfQuestion(break_even=80, applicants=1, rate=10)).outlook
    assert not found.starts
    assert found.value.upper == 0
    assert found.shut_out == 1
    assert summary(found) == (
        "The policy never starts: a first acceptance needs 32.1 discounted applicants to pay, and there are 10."
    )
    assert answer_question(WhatIfQuestion(break_even=80, applicants=3.3, rate=10)).outlook.starts
    large = msgspec.structs.replace(found, volume=51_234.5, needed=61_234.5)
    assert "needs 61,234 discounted applicants to pay, and there are 51,234" in summary(large)


@pytest.mark.parametrize("prior", [Belief(2, 1), Belief(6.155, 4.3)])
def test_the_line_drawn_is_the_threshold(prior: Belief) -> None:
    """Where the table knows only its decisions, the smooth line is near the true threshold and right about each."""
    problem = Discounted.from_rates(0.8, 80, 0.1)
    found = answer_question(WhatIfQuestion(applicants=80, success=100 * prior.mean, seen=prior.n)).outlook
    stop = Boundary(found.table, 300).stop
    for n, rate in stop[4::12]:
        assert rate == pytest.approx(enclose_threshold(problem, n, 1e-4).midpoint, abs=0.05 if n < 10 else 0.02)
    assert [rate for _, rate in stop] == sorted(rate for _, rate in stop)
    for k, (n, rate) in enumerate(stop[:60]):
        least = found.table.boundary[k]
        assert least == 0 or (prior.s + least - 1) / n <= rate + 1e-12
        assert least > k or rate <= (prior.s + least) / n + 1e-12


@pytest.mark.parametrize("spec", [GROUPED, LATE])
def test_presets_give_the_policy_s_own_figures(spec: dict[str, Any]) -> None:
    for one in msgspec.convert(spec, PolicySpecification).problems():
        theirs = foresee(one.problem, one.belief, load(solve(one)))
        mine = answer_question(preset(one.problem, one.belief).shown).outlook
        assert mine.volume == pytest.approx(theirs.volume, rel=1e-3)
        assert mine.value.midpoint == pytest.approx(theirs.value.midpoint, rel=1e-3)
        assert mine.shut_out == pytest.approx(theirs.shut_out, abs=0.01)


def test_a_horizon_is_preset_as_so_many_that_count() -> None:
    from lenience import FiniteHorizon
    from lenience.service.domain.specification import SegmentProblem

    problem = FiniteHorizon(0.8, 300)
    found = preset(problem, Belief(2, 1))
    assert found.shown.volume == pytest.approx(300)
    assert "ends after 300 applicants" in found.note
    theirs = foresee(problem, Belief(2, 1), load(solve(SegmentProblem("all", 1.0, problem, Belief(2, 1), None, 0.0))))
    assert theirs.value.midpoint == pytest.approx(problem.solve(Belief(2, 1)).value(Belief(2, 1)).midpoint)
    assert (theirs.volume, theirs.needed) == (300, None)


def test_sliders_hold_what_may_be_typed() -> None:
    for slider in SLIDERS:
        low, high, step = slider.ends
        assert low < high
        assert step > 0
        for value in (slider.least, slider.low, slider.high, slider.most):
            assert low <= slider.place(value) <= high
        for text in ("nan", "inf", "-1", "x", ""):
            with pytest.raises(InputError, match=f"^{slider.name} must be a number from"):
                read_question({slider.name: text})


def test_a_draft_of_nothing() -> None:
    made = draft(WhatIfQuestion(break_even=70, applicants=40, rate=5, weeks=26, success=60, seen=5), "new")
    assert made.objective == Delayed(0.7, 40, 0.05, 0.5)
    assert (made.name, made.prior, made.segments) == ("new", Belief(5, 3), [])


def test_a_draft_changes_what_was_changed_and_nothing_else() -> None:
    base = PolicySpecification(
        "cards",
        Delayed(0.7, 1 / 3, 0.1, 0.5),
        segments=["a", SegmentSpec("b", share=0.25, cost=0.6)],
        history={"a": Record(5, 5), "b": Record(1, 2)},
    )
    a, b = base.problems()
    start = preset(b.problem, b.belief).shown
    assert draft(start, "cards", base, "b") == base
    other = read_question({"success": "90"}, start)
    made = draft(other, "cards", base, "b")
    assert made.objective == base.objective
    assert made.problems()[0] == a
    assert made.problems()[1].prior == other.prior
    wider = draft(read_question({"applicants": "10"}, start), "cards", base, "b")
    assert isinstance(wider.objective, Delayed)
    assert wider.objective.arrivals == pytest.approx(40)
    assert wider.problems()[1].prior == b.prior


def test_what_was_not_moved_is_not_rounded() -> None:
    base = PolicySpecification("cards", Delayed(0.7, 1000 / 3, 0.1, 1 / 7), Belief(67, 54))
    start = preset(base.problems()[0].problem, Belief(67, 54)).shown
    assert start.success == 80.6
    surer = draft(read_question({"seen": "134"}, start), "cards", base, "all").problems()[0].prior
    assert surer.s == pytest.approx(108, abs=1e-9)
    dearer = draft(read_question({"break_even": "75"}, start), "cards", base, "all").objective
    assert isinstance(dearer, Delayed)
    assert (dearer.cost, dearer.arrivals) == (0.75, 1000 / 3)
    assert dearer.label_delay == pytest.approx(1 / 7, abs=1e-12)


def test_a_belief_of_a_segment_made_of_features_becomes_its_own() -> None:
    features = [{"name": "age", "edges": [30]}]
    base = msgspec.convert({**LATE, "features": features}, PolicySpecification)
    one = base.problems()[0]
    start = preset(one.problem, one.belief).shown
    assert draft(start, "loans", base, one.name) == base
    surer = draft(read_question({"success": "90"}, start), "loans", base, one.name).problems()
    assert [problem.name for problem in surer] == ["age<30", "age>=30"]
    assert [problem.prior.mean for problem in surer] == [pytest.approx(0.9), 0.5]


def test_the_page_shows_both(http: httpx.Client) -> None:
    page = http.get("/what-if", params={"policy": "loans", "break_even": "80", "weeks": "0"}).text
    mine = answer_question(WhatIfQuestion(break_even=80, applicants=20)).outlook
    theirs = Delayed(0.7, 20, 0.1, 0.25).solve(Belief(2, 1))
    assert cell(page, "Expected total value") == signed(mine.value.midpoint, 2)
    assert cell(page, "Expected total value", 1) == signed(theirs.value(Belief(2, 1)).midpoint, 2)
    assert cell(page, "Discounted applicants", 1) == "200"
    assert cell(page, "Risk of wrongful rejection") == percent(mine.shut_out)
    assert cell(page, "Risk of wrongful rejection", 1).startswith("≤ ")
    assert summary(mine) in page
    assert page.count("<svg") == 2
    assert 'name="weeks" value="0"' in page


def test_the_page_opens_with_the_busiest_policy_that_rules(http: httpx.Client, served: Served) -> None:
    with served.client() as client:
        client.decide("loans")
    assert 'name="policy" value="loans"' in http.get("/what-if").text
    nothing = http.get("/what-if", params={"policy": ""}).text
    assert "as it began</th>" not in nothing
    assert "what-if?policy=&amp;" in nothing  # and so does the link to these numbers


def test_the_answer_follows_the_fields(http: httpx.Client) -> None:
    asked = {**WhatIfQuestion(applicants=50).fields, "break_even": "75"}
    answered = http.get("/what-if/answer", params=asked).text
    found = answer_question(read_question(asked)).outlook
    assert "<html" not in answered
    assert cell(answered, "Cost of learning").split()[0] == f"{found.learning:.2f}"
    assert 'form="save" name="break_even" value="75"' in answered
    assert "style=" not in answered
    late = {**asked, "weeks": "8", "applicants": "120"}
    first = http.get("/what-if/answer", params=late).text
    assert "patient=true" in first
    assert "Computing the exact result" in first
    assert "patient=true" not in http.get("/what-if/answer", params={**late, "patient": "true"}).text


def test_names_are_escaped(http: httpx.Client) -> None:
    for params in ({"policy": "cards", "segment": SCRIPT}, {"policy": SCRIPT}, {"policy": "cards", "rate": SCRIPT}):
        page = http.get("/what-if", params=params).text
        assert SCRIPT not in page
        assert "&lt;script&gt;" in page


@pytest.mark.parametrize("path", ["/what-if", "/what-if/answer"])
def test_bad_values_are_refused_in_a_sentence(http: httpx.Client, path: str) -> None:
    answer = http.get(path, params={"break_even": "101"}, headers={"accept": "text/html"})
    assert answer.status_code == 400
    assert "reak_even must be a number from 0.1 to 99.9, both included, not 101.0" in answer.text
    assert http.get(path, params={"policy": "none"}).status_code == 404
    assert http.get(path, params={"policy": "cards", "segment": "none"}).status_code == 404


def test_saving(http: httpx.Client, served: Served) -> None:
    form: dict[str, str] = {**WhatIfQuestion(break_even=75, applicants=40).fields, "name": "fresh"}
    assert http.post("/what-if/draft", data=form).status_code == 403
    token = re.search(r'name="token" value="(\w+)"', http.get("/what-if").text)
    assert token
    form["token"] = token[1]
    made = http.post("/what-if/draft", data=form)
    assert (made.status_code, made.headers["location"]) == (303, "/policies/fresh?version=1")
    again = http.post("/what-if/draft", data=form)
    assert again.status_code == 409
    assert "a policy &#39;fresh&#39; already exists" in again.text.lower()
    assert http.post("/what-if/draft", data={**form, "name": "not a name"}).status_code == 400
    version = {**form, "name": "cards", "policy": "cards", "segment": "young"}
    moved = http.post("/what-if/draft", data=version).headers["location"]
    assert moved == "/policies/cards?version=2"
    page = http.get(moved).text
    assert "Saved version 2 of cards as a draft" in page
    assert "Applicants per year" in page
    assert ">160<" in page.replace("</dd>", "<")  # four times the segment's
    with served.client() as client:
        assert next(one for one in client.policies() if one["name"] == "cards")["active"] == 1

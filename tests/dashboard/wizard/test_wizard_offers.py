"""The guided form with gains and losses of each applicant: from a file to a policy with offers."""

from __future__ import annotations

import html
import re
import time
from typing import Any

import pytest

from lenience.core.belief import Belief
from lenience.core.offers import Offer, Offers
from lenience.dashboard.wizard.answers import Answers, FormError
from lenience.dashboard.wizard.backtest import backtest
from lenience.dashboard.wizard.objective_plan import objective_fields
from lenience.dashboard.wizard.plan import read_economics
from lenience.history.fit import fit_history
from lenience.history.past_rows import KnownOutcome
from lenience.objectives.discounted import Discounted
from lenience.service.domain.specification import PolicySpecification
from new_policies import Browser, alert
from serving import Served

ROWS = [
    (
        "north" if i % 2 else "south",
        "no" if i % 7 == 0 else "yes",
        "" if i % 7 == 0 else str(int(i % 5 > 0)),
        f"2024-{1 + i // 28:02}-{1 + i % 28:02}",
        "" if i == 20 else 200 + 10 * (i % 3),
        900 - 100 * (i % 4),
        1000 * (1 + i % 3),
        f"{12 + 6 * (i % 2)}%",
        "24 months",
    )
    for i in range(80)
]
HEADING = "region,approved,repaid,decided,won,lost,lent,interest,term\n"
CSV = HEADING + "".join(",".join(map(str, row)) + "\n" for row in ROWS)
GIVEN = {"priced": "gain_loss", "gain_column": "won", "loss_column": "lost", "currency": "$"}
REST = {"future": "discount", "discount": "0.99", "model": "own"}


def _history(**economics: Any) -> Any:
    names = HEADING.strip().split(",")
    columns = {name: [str(row[i]) for row in ROWS] for i, name in enumerate(names)}
    columns["repaid"] = [value or None for value in columns["repaid"]]  # type: ignore[misc]
    return fit_history(columns, "region", "approved", "repaid", "decided", **economics, currency="$")


def test_a_file_with_gains_and_losses_makes_a_policy_with_offers(clerk: Browser, forms: Served) -> None:
    answers = {**clerk.uploaded(CSV.encode()), **GIVEN}
    beliefs = clerk.http.get("/new/beliefs", params=answers)
    assert "1 row not used" in beliefs.text
    shown = clerk.http.get("/new/objective", params={**clerk.answers(beliefs), "model": "own"})
    answers = clerk.answers(shown)
    assert answers["known"] == ["file"]  # what the file has is taken unless one says otherwise
    assert "Each segment gets the offers of its own applicants" in shown.text
    answers |= {**REST, "name": "priced-loans"}
    panel = clerk.http.get("/new/starting", params=answers).text
    assert "2 start" in panel or "1 start" in panel
    check = clerk.http.get("/new/check", params=answers)
    assert check.status_code == 200
    assert "Gain plus loss of an offer" in check.text
    assert '"offer":' in html.unescape(check.text)
    tested = html.unescape(" ".join(clerk.http.get("/new/past", params={**answers, "cold": "true"}).text.split()))
    known = [row for i, row in enumerate(ROWS) if row[2] and i != 20]
    actual = sum(int(row[4]) if row[2] == "1" else -int(row[5]) for row in known)
    assert f"actual {'+' if actual > 0 else '−'}${abs(actual):,}" in tested
    assert f"the {len(known)} past applicants with a known outcome" in tested
    halves = " ".join(clerk.http.get("/new/past", params=answers).text.split())
    assert f"only the <strong>{len(known) // 2} outcomes known by" in halves
    made = clerk.post("/new/create", **clerk.answers(check), state="active")
    assert (made.status_code, made.headers["location"]) == (303, "/policies/priced-loans?version=1")
    with forms.client() as client:
        specification = client.policy("priced-loans")["specification"]
    history = _history(gain="won", loss="lost")
    own = {segment["name"]: segment["offers"] for segment in specification["segments"]}
    for name, offers in history.offers().items():
        assert own[name]["amount"] == pytest.approx(list(offers.amount))
        assert own[name]["share"] == pytest.approx(list(offers.share))
    assert specification["objective"]["offers"]["currency"] == "$"
    assert "Which offers are accepted" in clerk.http.get("/policies/priced-loans").text


def test_loans_are_read_with_their_units(clerk: Browser) -> None:
    loan = {
        "priced": "loan",
        "amount_column": "lent",
        "rate_column": "interest",
        "term_column": "term",
        "loss_given_default": "60%",
        "funding_rate": "4%",
        "currency": "EUR",
    }
    answers = {**clerk.uploaded(CSV.encode()), **loan, **REST, "known": "file", "rate": "10", "name": "loans-in-euros"}
    check = html.unescape(clerk.http.get("/new/check", params=answers).text)
    offers = [Offer.from_loan(1000 * size, rate, 2, 0.6, 0.04).amount for size in (1, 3) for rate in (0.12, 0.18)]
    sizes = re.search(r"Gain plus loss of an offer</dt><dd>EUR ([\d,]+) to EUR ([\d,]+)", check)
    assert sizes is not None
    assert [int(text.replace(",", "")) for text in sizes.groups()] == [round(min(offers)), round(max(offers))]


def test_one_gain_and_one_loss_in_a_currency_make_one_offer(clerk: Browser) -> None:
    money = {"known": "money", "gain": "200", "loss": "800", "money_currency": "$", "rate": "10"}
    answers = {**clerk.uploaded(CSV.encode()), **REST, **money, "name": "one-offer"}
    check = html.unescape(clerk.http.get("/new/check", params=answers).text)
    assert "$1,000" in check
    tested = html.unescape(clerk.http.get("/new/past", params={**answers, "cold": "true"}).text)
    good = sum(row[2] == "1" for row in ROWS)
    bad = sum(row[2] == "0" for row in ROWS)
    actual = 200 * good - 800 * bad
    assert f"actual {'+' if actual > 0 else '−'}${abs(actual):,}" in tested
    fields = objective_fields(Answers(**money, future="yearly", arrivals="100", delay="30"))  # type: ignore[arg-type]
    assert (fields["type"], fields["cost"]) == ("delayed", 0.8)  # late outcomes keep one break-even


def test_amounts_that_differ_may_have_late_outcomes(clerk: Browser, forms: Served) -> None:
    late = {"known": "file", "future": "yearly", "arrivals": "12", "rate": "50", "delay": "60", "model": "own"}
    answers = {**clerk.uploaded(CSV.encode()), **GIVEN, **late, "name": "late-loans"}
    panel = clerk.http.get("/new/starting", params=answers)
    assert panel.status_code == 200
    assert "start" in panel.text
    assert 'role="alert"' not in panel.text
    check = clerk.http.get("/new/check", params=answers)
    assert check.status_code == 200
    assert "Outcomes are known after" in check.text
    made = clerk.post("/new/create", **clerk.answers(check), state="active")
    assert made.status_code == 303
    assert made.headers["location"].startswith(("/policies/late-loans?version=1", "/solves/"))
    until = time.monotonic() + 60.0  # a busy machine solves in the background
    while clerk.http.get("/policies/late-loans").status_code != 200 and time.monotonic() < until:
        time.sleep(0.1)
    with forms.client() as client:
        objective = client.policy("late-loans")["specification"]["objective"]
        assert (objective["type"], objective["label_delay"]) == ("delayed", pytest.approx(60 / 365.25))
        assert client.decide("late-loans", segment="north", offer={"gain": 200, "loss": 100})["decision"] == "accept"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"priced": "gain_loss", "gain_column": "won"}, "Choose the column with the loss of a failure, or type"),
        ({"priced": "loan", "amount_column": "lent"}, "Choose the column with the interest rate, or type"),
        ({**GIVEN, "gain_column": "nothing"}, "nothing"),
        ({**GIVEN, "currency": "thalers and more"}, "The currency must have at most 8 characters"),
        ({"known": "file"}, "The file has no gains and losses yet."),
        ({"priced": "everything"}, "everything"),
    ],
)
def test_what_is_missing_is_named(clerk: Browser, changes: dict[str, str], message: str) -> None:
    answers = {**clerk.uploaded(CSV.encode()), **REST, "rate": "10", "cost": "80", "name": "wrong", **changes}
    answer = clerk.http.get("/new/check", params=answers)
    assert answer.status_code == 400
    assert message in alert(answer)


def test_economics_are_those_of_the_answers() -> None:
    assert read_economics(Answers()) is None
    loan = Answers(priced="loan", amount_column="a", rate_column="r", term_column="t", loss_given_default="60%")
    economics = read_economics(loan)
    assert economics is not None
    assert economics.given == {"amount": "a", "rate": "r", "term": "t", "loss_given_default": "60%"}
    with pytest.raises(FormError, match="Term_unit must be one of years, months"):
        read_economics(Answers(priced="loan", amount_column="a", rate_column="r", term_column="t", term_unit="weeks"))


def test_the_backtest_decides_each_offer_and_counts_money() -> None:
    offers = Offers([100.0, 1000.0], [0.8, 0.8], currency="$")
    objective = Discounted(offers=offers, discount=0.99)
    known = [KnownOutcome("all", i % 3 > 0, None, i) for i in range(60)]
    brought = {i: Offer(offers.amount[i % 2], 0.8) for i in range(60) if i != 5}
    found = backtest(PolicySpecification("p", objective), {"all": Belief(2, 1)}, known, offers=brought)
    policy, belief, earned, accepted = objective.solve(Belief(2, 1)), Belief(2, 1), 0.0, 0
    for one in known:
        if one.place in brought and policy.accepts(belief, brought[one.place]):
            earned += brought[one.place].gain if one.success else -brought[one.place].loss
            accepted += 1
            belief = belief.observe([one.success])
    assert 0 < accepted < 59
    assert (found.new.accepted, found.past.accepted) == (accepted, 59)
    assert found.new_value == pytest.approx(earned)
    actual = [(one.success, brought[one.place]) for one in known if one.place in brought]
    assert found.past_value == pytest.approx(sum(offer.gain if good else -offer.loss for good, offer in actual))

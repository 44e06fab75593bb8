"""The guided form for a policy with features: the same policy as on the command line, and what it rejects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lenience import Discounted, FeaturePolicy, Offers
from lenience.dashboard.wizard import feature_plan
from lenience.dashboard.wizard.answers import EVERYONE, Answers, FormError
from lenience.files.economics import Economics
from lenience.history.feature_fit import fit_features
from new_policies import Browser, alert
from serving import Served

HEADING = "income,purpose,sex,pd,decision,status\n"
AIM = {"known": "rate", "cost": "70", "future": "discount", "discount": "0.99", "name": "by-features"}


def rows(count: int = 60) -> str:
    lines = []
    for i in range(count):
        income = 20 + (7 * i) % 60
        accepted = "withdrawn" if i % 20 == 19 else "yes" if income > 30 else "no"
        status = "" if accepted != "yes" else "open" if i % 9 == 0 else "paid" if (11 * i) % 80 < income else "default"
        lines.append(f"{income},{('car', 'home')[i % 2]},{'fm'[i % 2]},{(80 - income) / 100},{accepted},{status}")
    return "\n".join(lines) + "\n"


CSV = HEADING + rows()


@pytest.fixture
def answers(clerk: Browser) -> dict[str, Any]:
    """The answers that the form suggests for the file, with the meaning of its words."""
    sent = clerk.upload(CSV.encode())
    shown = clerk.http.get(sent.headers["location"].replace("/new/columns", "/new/features"))
    given = clerk.answers(shown)
    given["accepted_means"] = ["yes:yes", "no:no", "bad:withdrawn"]
    given["outcome_means"] = ["yes:paid", "no:default", "none:open"]
    return {**given, **AIM}


def test_the_form_suggests_how_columns_are_used(answers: dict[str, Any]) -> None:
    uses = {name: answers[f"use:{name}"] for name in ("income", "purpose", "sex", "pd", "decision", "status")}
    expected = {
        "income": "number",
        "purpose": "category",
        "sex": "monitor",
        "pd": "number",
        "decision": "",
        "status": "",
    }
    assert uses == {name: [use] for name, use in expected.items()}
    assert (answers["accepted"], answers["outcome"]) == (["decision"], ["status"])


@pytest.mark.parametrize("kind", ["logistic", "calibrated"])
def test_the_policy_is_that_of_the_command_line(
    clerk: Browser, forms: Served, answers: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    name = f"wizard-{kind}"
    score = {"score": "pd", "scale": "failure", "trust": "50", "use:pd": ""} if kind == "calibrated" else {"use:pd": ""}
    answers |= {"kind": kind, "name": name, **score}
    shown = clerk.http.get("/new/fitted", params=answers).text
    assert "Known outcomes" in shown
    money = {"known": "money", "gain": "300", "loss": "700", "money_currency": "$"}
    assert "Known outcomes" in clerk.http.get("/new/fitted", params={**answers, **money}).text
    assert '"monitored": {"sex": "…"}' in shown.replace("&#34;", '"')
    document = clerk.http.get("/new/policy.json", params=answers).json()
    made = clerk.post("/new/create", **answers, state="active")
    assert (made.status_code, made.headers["location"]) == (303, f"/policies/{name}?version=1")
    file = tmp_path / "past.csv"
    file.write_text("\n".join(line for line in CSV.splitlines() if "withdrawn" not in line) + "\n")
    fitted = fit_features(
        file, "status", "decision", Discounted(0.7, 0.99), kind, ["income"], ["purpose"],
        "pd" if kind == "calibrated" else None, trust=50.0, pending="open",
    )  # fmt: skip
    with forms.client() as client:
        policy = client.policy(name)
        served = client.download(name).to_rule()
    own = fitted.policy.to_rule()
    assert served.state_hash() == own.state_hash()
    assert policy["specification"]["protected"] == ["sex"]
    (tmp_path / "policy.json").write_text(json.dumps(document))
    assert FeaturePolicy.load(tmp_path / "policy.json").to_rule().state_hash() == own.state_hash()
    origin = policy["versions"][0]["origin"]
    assert fitted.origin is not None
    assert (origin["file"], origin["model"], origin["left_out"]) == ("past.csv", kind, CSV.count("withdrawn"))
    assert (origin["rows"], origin["labels"]) == (fitted.origin.rows, fitted.origin.labels)
    assert origin["settings"] == fitted.origin.settings
    assert document["origin"] == origin


def priced_rows() -> str:
    """Return the file with the terms of each loan, and what it earns or loses in money."""
    lines = [HEADING.strip() + ",lent,yearly,months,won,lost"]
    for i, line in enumerate(rows().splitlines()):
        lent, yearly, months = 1_000 * (1 + i % 4), 8 + i % 5, 12 * (1 + i % 2)
        lines.append(f"{line},{lent},{yearly},{months},{lent * (0.2 + 0.01 * (i % 3))},{lent * 0.5}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("columns", "economics"),
    [
        (
            {"priced": "gain_loss", "gain_column": "won", "loss_column": "lost"},
            Economics(gain="won", loss="lost", currency="$"),
        ),
        (
            {
                "priced": "loan", "amount_column": "lent", "rate_column": "yearly", "term_column": "months",
                "rate_unit": "percent", "term_unit": "months", "loss_given_default": "0.6",
            },
            Economics(
                amount="lent", rate="yearly", term="months", rate_unit="percent", term_unit="months",
                loss_given_default="0.6", currency="$",
            ),
        ),
    ],
    ids=["gains and losses", "loans"],
)  # fmt: skip
def test_gains_and_losses_of_the_file_are_those_of_the_command_line(
    clerk: Browser, forms: Served, tmp_path: Path, columns: dict[str, str], economics: Economics
) -> None:
    sent = clerk.upload(priced_rows().encode())
    shown = clerk.http.get(sent.headers["location"].replace("/new/columns", "/new/features"))
    unused = {f"use:{name}": "" for name in ("pd", "lent", "yearly", "months", "won", "lost")}
    name = f"priced-{columns['priced']}".replace("_", "-")
    given = {
        **clerk.answers(shown), **AIM, **unused, **columns, "currency": "$", "known": "file", "name": name,
        "accepted_means": ["yes:yes", "no:no", "bad:withdrawn"],
        "outcome_means": ["yes:paid", "no:default", "none:open"],
    }  # fmt: skip
    fitted_page = clerk.http.get("/new/fitted", params=given)
    assert (fitted_page.status_code, "$" in fitted_page.text) == (200, True), alert(fitted_page)
    made = clerk.post("/new/create", **given, state="active")
    assert (made.status_code, made.headers["location"]) == (303, f"/policies/{name}?version=1")
    file = tmp_path / "past.csv"
    file.write_text("\n".join(line for line in priced_rows().splitlines() if "withdrawn" not in line) + "\n")
    own = fit_features(
        file, "status", "decision", Discounted(0.5, 0.99), "logistic", ["income"], ["purpose"], pending="open",
        economics=economics, currency="$",
    ).policy.to_rule()  # fmt: skip
    with forms.client() as client:
        served = client.download(name).to_rule()
        decided = client.decide(name, features={"income": 70, "purpose": "car"}, offer={"amount": 2_000.0, "cost": 0.7})
        offers = client.policy(name)["specification"]["objective"]["offers"]
    assert offers["currency"] == "$"
    assert served.state_hash() == own.state_hash()
    same = own.decide({"income": 70, "purpose": "car"}, Offers.menu([2_000.0], [0.7]))
    assert (decided["decision"] == "accept", decided["belief"]["n"]) == (same.accepted, same.n)
    assert decided["expected_profit"] == pytest.approx(2_000 * (same.mean - 0.7))


def test_gains_and_losses_need_their_columns(clerk: Browser, answers: dict[str, Any]) -> None:
    assert "no gains and losses yet" in clerk.http.get("/new/fitted", params={**answers, "known": "file"}).text
    half = {"known": "file", "priced": "gain_loss", "gain_column": "income"}
    assert "the loss of a failure" in clerk.http.get("/new/fitted", params={**answers, **half}).text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"use:income": "", "use:purpose": "", "use:pd": ""}, "at least one column"),
        ({"use:sex": "category"}, "Decisions would differ by sex"),
        ({"use:status": "category"}, "chosen twice"),
        ({"least:income": "50", "most:income": "10"}, "above the minimum"),
        ({"least:income": "much"}, "must be a number"),
        ({"use:income": "weight"}, "must be"),
        ({"kind": "calibrated", "score": ""}, "Choose the column of your score"),
        ({"outcome_means": ["yes:paid"]}, "means failure"),
    ],
)
def test_invalid_answers_are_shown_again_at_their_step(
    clerk: Browser, answers: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    shown = clerk.http.get("/new/objective", params={**answers, **changes})
    assert shown.status_code == 400
    assert "New policy: features" in shown.text
    assert words in alert(shown)


def test_what_cannot_be_fitted_is_said(
    clerk: Browser, answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = clerk.http.get("/new/fitted", params={**answers, "least:income": "40"}).text
    assert "must be a number of at least 40" in narrow
    texts = clerk.http.get("/new/fitted", params={**answers, "use:purpose": "number"}).text
    assert "must contain numbers only" in texts
    refused = clerk.post("/new/create", **{**answers, "least:income": "40"}, state="active")
    assert refused.status_code == 400
    assert "at least 40" in alert(refused)


def test_a_large_file_is_rejected_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "past.parquet"
    pq.write_table(pa.table({"income": ["1", "2"], "repaid": ["1", "0"]}), path)
    monkeypatch.setattr(feature_plan, "MOST_ROWS", 1)
    given = Answers(
        kind="logistic", uses=(("income", "number"),), accepted=EVERYONE, outcome="repaid",
        outcome_means=("yes:1", "no:0"), cost="50", future="discount", discount="0.9",
    )  # fmt: skip
    with pytest.raises(FormError) as error:
        feature_plan.read_feature_fit(path, given)
    assert error.value.code == "too_large"
    monkeypatch.setattr(feature_plan, "MOST_ROWS", 2)
    assert feature_plan.read_feature_fit(path, given).labels == 2

"""Off-policy estimates: unbiased, intervals that cover, and a refusal where the log is silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad

from lenience import Discounted, FeaturePolicy, Offers, off_policy
from lenience.analysis.off_policy import FEWEST, OffPolicy, RewardEstimate
from lenience.core.money import Money
from lenience.core.offer_rows import OfferRows
from rejections import rejected

Array = NDArray[np.float64]


def logged(rows: int, seed: int) -> tuple[Array, Array, Array, Array, Array]:
    """Features, propensities, acceptances, outcomes (NaN for the rejected) and what each would earn on average."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    p = 1 / (1 + np.exp(-x))
    e = np.clip(0.15 + 0.7 * (x > -0.5), 0, 1)
    a = (rng.random(rows) < e).astype(float)
    y = np.where(a > 0, (rng.random(rows) < p).astype(float), np.nan)
    return x, e, a, y, p - 0.6


def test_unbiased_and_covering() -> None:
    exact = quad(lambda t: np.exp(-t * t / 2) / np.sqrt(2 * np.pi) * (1 / (1 + np.exp(-t)) - 0.6), 0.3, 10)[0]
    hits_ips = hits_dr = 0
    ips, dr, truth = [], [], []
    for seed in range(80):
        x, e, a, y, gain = logged(600, seed)
        pi = (x > 0.3).astype(float)
        found = off_policy(pi, a, e, y, 0.6, X=x[:, None])
        assert found.doubly_robust is not None
        ips.append(found.inverse_propensity.value)
        dr.append(found.doubly_robust.value)
        truth.append(float((pi * gain).mean()))
        hits_ips += found.inverse_propensity.lower <= exact <= found.inverse_propensity.upper
        hits_dr += found.doubly_robust.lower <= exact <= found.doubly_robust.upper
    assert np.mean(ips) == pytest.approx(exact, abs=3 * np.std(ips) / np.sqrt(80))
    assert np.mean(dr) == pytest.approx(exact, abs=3 * np.std(dr) / np.sqrt(80))
    assert hits_ips >= 70
    assert hits_dr >= 70
    assert np.std(dr) < np.std(ips)  # the model takes noise away
    assert np.mean(truth) == pytest.approx(exact, abs=5e-3)


def test_intervals_cover_where_propensities_are_small() -> None:
    rng = np.random.default_rng(4)
    hits = normal = cautions = 0
    share = 0.4  # of arrivals that were accepted with a probability of 0.05 only
    exact = share * (0.3 - 0.6) + (1 - share) * (0.8 - 0.6)
    for _ in range(700):
        rare = rng.random(400) < share
        e = np.where(rare, 0.05, 0.9)
        a = rng.random(400) < e
        y = np.where(a, rng.random(400) < np.where(rare, 0.3, 0.8), np.nan)
        found = off_policy(np.ones(400), a, e, y, 0.6)
        terms = np.where(a, (np.where(a, y, 0.0) - 0.6) / e, 0.0)
        half = 1.96 * terms.std(ddof=1) / 20
        estimate = found.inverse_propensity
        assert estimate.upper - estimate.value > half
        hits += estimate.lower <= exact <= estimate.upper
        normal += abs(estimate.value - exact) <= half
        cautions += bool(found.caution)
    assert normal < hits
    assert hits >= 655  # 95% of 700 are 665, with a standard deviation of 6
    assert cautions == 700  # by the propensities such a log is worth about 46 acceptances
    x, often, taken, known, _ = logged(600, 1)
    assert off_policy((x > 0.3).astype(float), taken, often, known, 0.6).caution == ""


def test_no_overlap_is_refused() -> None:
    x, e, a, y, _ = logged(500, 1)
    e = np.where(x < -1, 0.0, e)
    a = np.where(x < -1, 0.0, a)
    y = np.where(x < -1, np.nan, y)
    with rejected("propensity", "insufficient_data"):
        off_policy(np.ones(500), a, e, y, 0.6)
    # A proposal that stays within what was possible is answered.
    assert off_policy((x > -1).astype(float), a, e, y, 0.6).effective > 100


def test_too_little_overlap_is_refused() -> None:
    x, e, a, y, _ = logged(500, 1)
    with rejected("accepted", "insufficient_data"):
        off_policy((x > 2.2).astype(float), a, e, y, 0.6)


def test_a_deterministic_log_answers_for_its_own_subset_only() -> None:
    x, _, _, _, _ = logged(800, 3)
    a = (x > 0).astype(float)
    y = np.where(a > 0, (np.random.default_rng(0).random(800) < 0.7).astype(float), np.nan)
    stricter = off_policy((x > 0.5).astype(float), a, a, y, 0.6)
    mine = (x > 0.5) & (a > 0)
    assert stricter.inverse_propensity.value == pytest.approx((mine * (np.nan_to_num(y) - 0.6)).mean())
    with rejected("propensity", "insufficient_data"):
        off_policy((x > -0.5).astype(float), a, a, y, 0.6)


def test_a_gain_at_the_edge_of_its_interval_is_no_verdict() -> None:
    some = RewardEstimate(0.0, -0.01, 0.01)
    for gain, words in (
        (
            RewardEstimate(0.0123, 1e-7, 0.0246),
            "may have earned more",
        ),
        (RewardEstimate(-0.0123, -0.0246, -1e-7), "may have earned less"),
        (RewardEstimate(0.0123, 0.001, 0.0236), "would have earned more: +0.0123 per arrival, 95% interval +0.0010 to"),
        (RewardEstimate(0.0, 0.0, 0.0), "does not show whether"),
    ):
        statement = OffPolicy(100, some, some, None, gain, 0.5, 50.0).statement
        assert words in statement
        assert "-0.0000 " not in statement


def test_a_frame_with_text_has_its_columns_named() -> None:
    x, e, a, y, _ = logged(100, 1)
    frame = pd.DataFrame({"score": x, "job": ["cook"] * 100, "town": ["x"] * 100})
    with rejected("X"):
        off_policy((x > 0).astype(float), a, e, y, 0.6, X=frame)


def test_a_policys_own_log_can_be_used() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 2))
    y = (rng.random(1500) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    policy = FeaturePolicy(objective=Discounted(0.6, 0.99), explore=0.15, random_state=0).fit(X)
    for i in range(0, 1500, 10):
        taken = policy.decide(X[i : i + 10])
        policy.observe(X[i : i + 10], taken, y[i : i + 10])
    a = np.array([d.accepted for d in policy.log_], dtype=float)
    e = np.array([d.propensity for d in policy.log_])
    found = off_policy((X[:, 0] > 0.4).astype(float), a, e, np.where(a > 0, y, np.nan), 0.6, X=X)
    assert found.gain.lower < found.gain.value < found.gain.upper
    assert "acceptances" in found.statement


def test_the_logs_own_draws_are_no_proposal() -> None:
    rng = np.random.default_rng(0)
    e = np.full(200, 0.5)
    a = rng.random(200) < e
    y = np.where(a, rng.random(200) < 0.6, np.nan)
    with rejected("proposed"):
        off_policy(a, a, e, y, 0.5)
    everyone = np.ones(200)  # where all were accepted, for certain or nearly so, it is a rule as good as any
    for nearly in (everyone, np.full(200, 0.99)):
        assert off_policy(everyone, everyone, nearly, y > 0, 0.5).accepted == 1.0


def test_with_more_folds_than_rows_each_row_is_one() -> None:
    found = off_policy([0.0, 0.0], [1, 0], [0.5, 0.5], [1, np.nan], 0.6, X=[[1.0], [2.0]], folds=5)
    assert found.doubly_robust is not None
    assert found.doubly_robust.value == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"proposed": [2.0, 0.0]}, ("proposed", "invalid_value")),
        ({"proposed": [1.0, np.nan]}, ("proposed", "invalid_value")),
        ({"propensity": [0.5, -0.1]}, ("propensity", "invalid_value")),
        ({"accepted": [0.5, 1]}, ("accepted", "invalid_value")),
        ({"outcomes": [np.nan, np.nan]}, ("outcomes", "insufficient_data")),
        ({"outcomes": [0.5, np.nan]}, ("outcomes", "invalid_value")),
        ({"propensity": [0.0, 0.5]}, ("propensity", "invalid_value")),
        ({"proposed": [1.0]}, ("proposed", "length_mismatch")),
        ({"cost": 1.0}, ("cost", "invalid_value")),
    ],
)
def test_bad_input(change: dict[str, Any], message: tuple[str | None, str]) -> None:
    given: dict[str, Any] = {
        "proposed": [1.0, 0.0], "accepted": [1, 0], "propensity": [0.5, 0.5], "outcomes": [1, np.nan], "cost": 0.6,
    } | change  # fmt: skip
    with rejected(*message):
        off_policy(**given)


def test_equal_offers_earn_their_amount_times_what_one_cost_earns() -> None:
    x, e, a, y, _ = logged(3000, 1)
    pi = (x > 0.3).astype(float)
    one = off_policy(pi, a, e, y, 0.6, X=x[:, None])
    many = off_policy(pi, a, e, y, X=x[:, None], offers=(np.full(3000, 250.0), 0.6))
    assert one.doubly_robust is not None
    assert many.doubly_robust is not None
    for before, after in (
        (one.logged, many.logged),
        (one.inverse_propensity, many.inverse_propensity),
        (one.doubly_robust, many.doubly_robust),
        (one.gain, many.gain),
    ):
        assert after.value == pytest.approx(250 * before.value)
        assert after.lower == pytest.approx(250 * before.lower)
        assert after.upper == pytest.approx(250 * before.upper)
    assert many.effective == pytest.approx(one.effective)
    assert many.caution == one.caution


def test_estimates_in_money_are_unbiased_and_cover() -> None:
    """Amounts depend on x, break-evens on the row: a plain average over many arrivals is the truth."""

    def stakes(x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        return 100 * np.exp(0.5 * x), rng.choice([0.5, 0.7], len(x))

    rng = np.random.default_rng(99)
    x = rng.normal(size=1_000_000)
    amount, cost = stakes(x, rng)
    exact = float(np.where(x > 0.3, amount * (1 / (1 + np.exp(-x)) - cost), 0.0).mean())
    ips, dr, hits = [], [], 0
    for seed in range(60):
        x, e, a, y, _ = logged(800, seed)
        offers = stakes(x, np.random.default_rng(seed + 1000))
        result = off_policy((x > 0.3).astype(float), a, e, y, X=x[:, None], offers=offers)
        assert result.doubly_robust is not None
        ips.append(result.inverse_propensity.value)
        dr.append(result.doubly_robust.value)
        hits += result.doubly_robust.lower <= exact <= result.doubly_robust.upper
    assert np.mean(ips) == pytest.approx(exact, abs=3.5 * np.std(ips) / np.sqrt(60))
    assert np.mean(dr) == pytest.approx(exact, abs=3.5 * np.std(dr) / np.sqrt(60))
    assert hits >= 52
    assert np.std(dr) < np.std(ips)


def test_a_large_amount_carries_the_estimate() -> None:
    x, e, a, y, _ = logged(1500, 3)
    amount = np.ones(1500)
    pi = (x > 0.3).astype(float)
    assert not off_policy(pi, a, e, y, offers=(amount, 0.6)).caution
    amount[np.flatnonzero((a > 0) & (pi > 0))[0]] = 100.0
    heavy = off_policy(pi, a, e, y, offers=(amount, 0.6))
    assert "Few acceptances carry this estimate" in heavy.caution
    assert FEWEST < heavy.effective < 100
    amount[np.flatnonzero((a > 0) & (pi > 0))[0]] = 1e6
    with rejected("accepted", "insufficient_data"):
        off_policy(pi, a, e, y, offers=(amount, 0.6))


def test_money_is_shown_as_money() -> None:
    x, e, a, y, _ = logged(3000, 1)
    result = off_policy((x > 0.3).astype(float), a, e, y, offers=(np.full(3000, 25_000.0), 0.6))
    dollars = Money(1, "$")
    assert result.format_reward(1234.6, dollars) == "+$1,235"
    assert result.format_reward(-1234.6, dollars) == "−$1,235"
    assert "+$" in result.describe(dollars)


def test_either_a_cost_or_offers() -> None:
    x, e, a, y, _ = logged(600, 0)
    pi = (x > 0.3).astype(float)
    with rejected("cost", "missing"):
        off_policy(pi, a, e, y)
    with rejected("cost", "conflicting_fields"):
        off_policy(pi, a, e, y, 0.6, offers=(1.0, 0.6))
    with rejected("amount", "length_mismatch"):
        off_policy(pi, a, e, y, offers=([1.0], 0.6))
    with rejected("made", "missing"):
        off_policy(pi, a, e, y, offers=Offers.menu([1, 2], [0.5, 0.6]))


def test_the_log_of_a_policy_with_offers_is_evaluated() -> None:
    """The log of a policy has the offers that were made, so it is enough to evaluate another policy."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2500, 2))
    y = rng.random(2500) < 1 / (1 + np.exp(-1.5 * X[:, 0] - 0.5))
    amounts = rng.choice([100.0, 900.0], 2500)
    objective = Discounted(offers=Offers([100, 900], [0.6, 0.6]), discount=0.95)
    policy = FeaturePolicy(objective=objective, explore=0.3, random_state=0).fit(X[:100])
    for first in range(0, 2500, 250):
        rows = slice(first, first + 250)
        accepted = policy.decide(X[rows], offers=(amounts[rows], 0.6))
        policy.observe(X[rows], accepted, y[rows], arrivals=policy.latest_)
    log = policy.log_frame(backend="pandas")
    assert log["amount"].tolist() == amounts.tolist()
    result = off_policy(X[:, 0] > 0, log["accepted"], log["propensity"], log["outcome"], X=X, offers=log)
    earned = np.where(X[:, 0] > 0, amounts * (1 / (1 + np.exp(-1.5 * X[:, 0] - 0.5)) - 0.6), 0.0).mean()
    assert result.doubly_robust is not None
    assert result.doubly_robust.lower < earned < result.doubly_robust.upper


def chosen_offers(rows: int, seed: int) -> dict[str, Any]:
    """Draw a log that offers 900 or 90 at random, where the success rate depends on the offer."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    chances = np.column_stack((np.where(x > 0, 0.6, 0.1), np.where(x > 0, 0.3, 0.4)))
    u = rng.random(rows)
    made = np.where(u < chances[:, 0], 0.0, np.where(u < chances.sum(axis=1), 1.0, np.nan))
    rates = 1 / (1 + np.exp(-np.column_stack((x - 0.5, x + 1.0))))
    a = ~np.isnan(made)
    y = np.where(a, rng.random(rows) < rates[np.arange(rows), np.where(a, made, 0).astype(int)], np.nan)
    return {"x": x, "chances": chances, "made": made, "accepted": a, "outcomes": y, "rates": rates}


MENU = Offers.menu([900, 90], [0.6, 0.5])


def test_only_rows_with_the_proposed_offer_count() -> None:
    log = chosen_offers(4000, 1)
    x, made, y, chances = log["x"], log["made"], log["outcomes"], log["chances"]
    chosen = np.where(x > 0.5, 0, 1)
    pi = np.where(x > -0.5, 0.8, 0.0)
    result = off_policy(pi, log["accepted"], chances, y, offers=MENU, made=made, chosen=chosen, X=x[:, None])
    terms, logged = [], []
    for i in range(4000):
        a, c = (900.0, 0.6) if chosen[i] == 0 else (90.0, 0.5)
        terms.append(pi[i] * a * (y[i] - c) / chances[i, chosen[i]] if made[i] == chosen[i] else 0.0)
        logged.append(0.0 if np.isnan(made[i]) else (900 * (y[i] - 0.6) if made[i] == 0 else 90 * (y[i] - 0.5)))
    assert result.inverse_propensity.value == pytest.approx(np.mean(terms))
    assert result.logged.value == pytest.approx(np.mean(logged))
    amounts, costs = np.where(chosen == 0, 900.0, 90.0), np.where(chosen == 0, 0.6, 0.5)
    truth = float(np.mean(pi * amounts * (log["rates"][np.arange(4000), chosen] - costs)))
    assert result.doubly_robust is not None
    assert result.doubly_robust.lower < truth < result.doubly_robust.upper
    assert result.inverse_propensity.lower < truth < result.inverse_propensity.upper
    # To count outcomes of the other offer would give a wrong answer, because the success rate depends on the offer.
    any_offer = np.where(log["accepted"], pi * amounts * (np.nan_to_num(y) - costs) / chances.sum(axis=1), 0.0).mean()
    assert not result.inverse_propensity.lower < any_offer < result.inverse_propensity.upper


def test_a_menu_of_one_offer_is_that_offer() -> None:
    x, e, a, y, _ = logged(900, 2)
    pi = (x > 0.3).astype(float)
    plain = off_policy(pi, a, e, y, offers=(900.0, 0.6), X=x[:, None])
    menus = OfferRows(np.tile([900.0, 5.0], 900), np.tile([0.6, 0.5], 900), np.arange(901) * 2)
    one = off_policy(
        pi, a, np.column_stack((e, np.zeros(900))), y, offers=menus, X=x[:, None], made=np.zeros(900),
        chosen=np.zeros(900),
    )  # fmt: skip
    assert one == plain


def test_choices_that_the_log_cannot_answer_are_rejected() -> None:
    log = chosen_offers(600, 3)
    rows = (log["accepted"], log["chances"], log["outcomes"])
    given: dict[str, Any] = {"offers": MENU, "made": log["made"], "chosen": np.zeros(600)}
    never = log["chances"] * [1.0, 0.0]
    with rejected("propensity"):  # an offer was made whose probability is 0
        off_policy(np.ones(600), rows[0], never, rows[2], **given)
    full = np.where(log["made"] == 1, np.nan, log["made"])
    only = (~np.isnan(full), never, np.where(np.isnan(full), np.nan, log["outcomes"]))
    with rejected("propensity", "insufficient_data"):  # the log never offers what the proposal would
        off_policy(np.ones(600), *only, offers=MENU, made=full, chosen=np.ones(600))
    for wrong, field in (({"chosen": None}, "chosen"), ({"made": None}, "made")):
        with rejected(field, "missing"):
            off_policy(np.ones(600), *rows, **given | wrong)
    with rejected("chosen", "invalid_value"):
        off_policy(np.ones(600), *rows, **given | {"chosen": np.full(600, 2)})
    with rejected("propensity", "length_mismatch"):
        off_policy(np.ones(600), rows[0], log["chances"].sum(axis=1), rows[2], **given)
    with rejected("propensity"):
        off_policy(np.ones(600), rows[0], 2 * log["chances"], rows[2], **given)
    with rejected("chosen", "conflicting_fields"):
        off_policy(np.ones(600), rows[0], log["chances"][:, 0] + 0.2, rows[2], 0.6, chosen=np.zeros(600))


def test_the_command_reads_shares_of_an_amount(run: Any, tmp_path: Path) -> None:
    log = chosen_offers(900, 4)
    lines = ["x,won,lost,accepted,outcome,p_full,p_tenth,share"]
    for i in range(900):
        a, made = int(log["accepted"][i]), log["made"][i]
        share = "" if not a else ("1" if made == 0 else "0.1")
        outcome = f"{log['outcomes'][i]:.0f}" if a else ""
        lines.append(f"{log['x'][i]:.4f},360,540,{a},{outcome},{log['chances'][i, 0]},{log['chances'][i, 1]},{share}")
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines))
    words = ("offpolicy", str(file), "--gain", "won", "--loss", "lost", "--score", "x", "--at-least", "0")
    choice = ("--offer-propensity", "1=p_full", "--offer-propensity", "0.1=p_tenth", "--made", "share")
    code, out, _ = run(*words, *choice, "--proposed-offer", "0.1", "--json")
    assert code == 0
    x = np.array([float(f"{one:.4f}") for one in log["x"]])
    result = off_policy(
        (x >= 0).astype(float), log["accepted"], log["chances"], log["outcomes"], made=log["made"],
        chosen=np.ones(900), offers=Offers.menu([900, 90], [0.6, 0.6]),
    )  # fmt: skip
    assert json.loads(out)["inverse_propensity"]["value"] == pytest.approx(result.inverse_propensity.value)
    for extra, part in (
        ((*choice, "--proposed-offer", "0.5"), "--proposed-offer"),
        (choice, "--proposed-offer"),
        (("--made", "share"), "--offer-propensity"),
        (("--offer-propensity", "p_full", "--made", "share", "--proposed-offer", "1"), "--offer-propensity"),
    ):
        code, _, error = run(*words, *extra)
        assert code == 2
        assert part in error

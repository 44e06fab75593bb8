"""Objectives and priors that may be wrong: right, or rejected, and never the belief of the same mean and variance."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lenience import Belief, Delayed, Discounted, FiniteHorizon, InputError, MixtureBelief, Offers
from lenience.policies import Greedy

PRIOR = MixtureBelief.doubt(Belief(4, 2.8), 0.2)
NEVER = MixtureBelief.doubt(Belief(5, 1), 0.2)  # at a cost of 0.8 it is not worth a first acceptance
PROMPT = Discounted(0.8, 0.99)
LATE = Delayed(0.8, arrivals=20, discount_rate=0.5, label_delay=0.25)


def test_enclose_is_the_value_of_the_solved_policy() -> None:
    value, accepting = PROMPT.enclose(PRIOR, 1e-9)
    solved = PROMPT.solve(PRIOR).value(PRIOR)
    assert value.lower <= solved.upper
    assert solved.lower <= value.upper
    assert accepting.midpoint == pytest.approx(solved.midpoint, abs=1e-8)
    assert PROMPT.enclose(NEVER, 1e-9)[0].upper == pytest.approx(0.0, abs=1e-8)
    assert PROMPT.enclose(NEVER, 1e-9)[1].upper < 0.0


@pytest.mark.parametrize("objective", [PROMPT, FiniteHorizon(0.8, 100), LATE])
def test_starts_knows_of_the_doubt(objective: Discounted | FiniteHorizon | Delayed) -> None:
    assert objective.starts(MixtureBelief.doubt(Belief(5, 4.5), 0.2))
    assert not objective.starts(NEVER)
    assert objective.starts(NEVER) == bool(objective.solve(NEVER).accepts(NEVER))


@pytest.mark.parametrize(
    "use",
    [
        lambda: FiniteHorizon(0.8, 20).enclose(PRIOR, 1e-9),  # type: ignore[arg-type]
        lambda: LATE.enclose(PRIOR),  # type: ignore[arg-type]
        lambda: PROMPT.evaluate(Greedy(0.8), PRIOR, 1e-6),  # type: ignore[arg-type]
        lambda: FiniteHorizon(0.8, 20).evaluate(Greedy(0.8), PRIOR, 1e-6),  # type: ignore[arg-type]
        lambda: LATE.solve(Belief(4, 2.8), rows=5).limit(PRIOR),
        lambda: PROMPT.solve(Belief(4, 2.8), rows=5).accepts(PRIOR),
    ],
)
def test_a_mixture_is_rejected_where_one_belief_is_needed(use: Callable[[], object]) -> None:
    with pytest.raises(InputError) as error:
        use()
    assert (error.value.field, error.value.code) == ("belief", "invalid_value")


def test_a_threshold_needs_one_offer_and_one_prior() -> None:
    one = Discounted(offers=Offers([1000], [0.8], currency="$"), discount=0.99).solve(Belief(2, 1))
    plain = PROMPT.solve(Belief(2, 1))
    for n in (3.0, 10.0):
        assert one.threshold(n, 1e-6).midpoint == pytest.approx(plain.threshold(n, 1e-6).midpoint, abs=2e-6)
    two = Discounted(offers=Offers([1, 5], [0.8, 0.8]), discount=0.9).solve(Belief(2, 1), rows=5)
    for policy in (two, PROMPT.solve(PRIOR, rows=5)):
        with pytest.raises(InputError) as error:
            policy.threshold(10)
        assert (error.value.field, error.value.code) == ("n", "unsupported_offers")


def test_one_offer_with_a_currency_gives_money_in_every_text() -> None:
    objective = Discounted(offers=Offers([1000], [0.8], currency="$"), discount=0.99)
    policy = objective.solve(Belief(2, 1))
    assert "$1,000" in objective.describe()
    assert "The expected loss is $300. One more outcome is worth $310" in policy.explain(Belief(2, 1))
    assert "$0.01" in policy.certificate.describe(objective.money)
    late = Delayed(offers=Offers([1000], [0.8], currency="$"), arrivals=20, discount_rate=0.5, label_delay=0.25)
    assert "Reject $1,000" in late.solve(Belief(2, 1), tolerance=1e-4).explain(Belief(20, 5))
    final = FiniteHorizon(offers=Offers([1000], [0.8], currency="$"), horizon=20).solve(Belief(2, 1))
    assert "Accept $1,000" in final.explain(Belief(12, 11), left=5)

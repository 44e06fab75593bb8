"""Exposure limits: look-ups, words, batches, JSON."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lenience.solvers.delayed.plan as plan
from lenience import Belief, InputError
from lenience.core.protocols import UNLIMITED, PendingPolicy
from lenience.objectives.delayed import Delayed
from lenience.policies import Constant, Greedy
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.policies.beliefs.pending import Blind, Capped
from rejections import rejected

PROBLEM = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
PRIOR = Belief(2, 1)


@pytest.fixture(scope="module")
def policy() -> ExposurePolicy:
    policy: ExposurePolicy = PROBLEM.solve(PRIOR)
    return policy


def test_limits_rise_with_successes(policy: ExposurePolicy) -> None:
    for n in range(2, 300):
        limits = policy.exposure(n, np.arange(1, n))
        assert np.all(np.diff(limits) >= 0), n
        assert limits[-1] == UNLIMITED or n < 6


def test_no_limit_from_the_break_even_on(policy: ExposurePolicy) -> None:
    assert policy.limit(Belief(10, 8)) is None
    assert policy.limit(Belief(20, 16)) is None
    assert policy.accepts(Belief(10, 9), pending=10**6)
    assert policy.limit(Belief(100, 79)) is not None


@given(st.integers(0, 400), st.floats(0, 1), st.integers(0, 80))
def test_one_answer(policy: ExposurePolicy, k: int, share: float, pending: int) -> None:
    """accepts, acceptance, limit and accept_now tell the same, for a scalar and an array."""
    belief = Belief(2 + k, 1 + round(share * k))
    limit = policy.limit(belief)
    expected = limit is None or pending < limit
    assert policy.accepts(belief, pending) == expected
    assert policy.acceptance(belief.n, belief.s, pending)[()] == float(expected)
    table = policy.acceptance([belief.n, 2.0], [belief.s, 1.0], [[pending], [0]])
    assert table.shape == (2, 2)
    assert table[0, 0] == float(expected)
    room = 7 if limit is None else min(max(limit - pending, 0), 7)
    assert policy.accept_now(belief, pending, 7) == room
    assert policy.explain(belief, pending).startswith("Accept" if expected else "Reject")


def test_beyond_the_table(policy: ExposurePolicy) -> None:
    """Limits beyond the last row are near those of a longer table, and change from 0 to none within it."""
    longer = PROBLEM.solve(PRIOR, tolerance=1e-8)
    assert longer.rows > policy.rows + 500
    for k in range(policy.rows + 1, longer.rows, 97):
        good = 1 + np.arange(int(0.8 * k) - 30, int(0.8 * k) + 6)
        mine, theirs = policy.exposure(2 + k, good), longer.exposure(2 + k, good)
        few = theirs < 20
        assert np.all(np.abs(mine[few] - theirs[few]) <= 6)
        assert np.all(mine[theirs == UNLIMITED] == UNLIMITED)
        assert policy.stop_floor(2.0 + k) < 0.8
        assert np.all(mine[good <= policy.stop_floor(2.0 + k) * (2 + k)] == 0)


def test_off_the_lattice(policy: ExposurePolicy) -> None:
    between = policy.limit(Belief(10.5, 7.3))
    assert between is not None
    assert 0 < between < 20
    assert policy.limit(Belief(1, 0.5)) == Delayed(0.8, 50, 0.1, 1).solve(Belief(1, 0.5), rows=1).limit(Belief(1, 0.5))
    assert not policy.proved(Belief(10.5, 7.3))


def test_value(policy: ExposurePolicy) -> None:
    at_prior = policy.value(PRIOR)
    assert 7.000204 in at_prior or abs(at_prior.midpoint - 7.000204) < 3e-6
    with_pending = policy.value(PRIOR, pending=3)
    assert with_pending.lower > at_prior.upper
    many = policy.value(PRIOR, pending=len(policy.lower) + 5)
    assert many.upper >= with_pending.lower
    after = policy.value(Belief(3, 2)).midpoint, policy.value(Belief(3, 1)).midpoint
    assert after[0] > at_prior.midpoint > after[1]


def test_words(policy: ExposurePolicy) -> None:
    assert "1 outcome is pending, and the limit is 5" in policy.explain(Belief(10, 7), 1)
    assert "5 outcomes are pending, and the limit is 5" in policy.explain(Belief(10, 7), 5)
    assert "final" in policy.explain(Belief(10, 2), 0)
    assert "The 3 pending outcomes may change this" in policy.explain(Belief(10, 2), 3)
    assert "not below the break-even of 80%" in policy.explain(Belief(10, 9), 100)
    assert "proved" in policy.certificate.statement
    assert f"{policy.certificate.rows:,} rows" in policy.certificate.statement
    assert policy.expire_after == 3.0


def test_json(policy: ExposurePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loaded policy decides alike, and without a solver."""
    text = policy.to_json()
    loaded = ExposurePolicy.from_json(text)
    assert loaded.to_json() == text

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a decision called the solver")

    monkeypatch.setattr(plan, "solve_problem", fail)
    for n in (2, 3, 10, 57, 900, 5000):
        good = np.arange(1, n)
        assert np.array_equal(loaded.exposure(n, good), policy.exposure(n, good))
    assert loaded.certificate == policy.certificate
    assert loaded.value(PRIOR) == policy.value(PRIOR)
    assert "exposure" in repr(loaded).lower()
    for broken in ("{}", "[]", text[:-5], text.replace('"cost":0.8', '"cost":1.8')):
        with pytest.raises(InputError):
            ExposurePolicy.from_json(broken)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cost", 0),
        ("cost", 1.0),
        ("cost", "much"),
        ("arrivals", 0),
        ("arrivals", float("inf")),
        ("discount_rate", 0),
        ("discount_rate", -0.1),
        ("label_delay", -1),
        ("label_delay", 0),
        ("label_delay", float("nan")),
    ],
)
def test_bad_problems(field: str, value: object) -> None:
    good: dict[str, object] = {"cost": 0.8, "arrivals": 50, "discount_rate": 0.1, "label_delay": 1}
    with pytest.raises(InputError, match=field):
        Delayed(**{**good, field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [{"rows": 0}, {"tolerance": 0}, {"pending_cap": 0}, {"look_ahead": 0}, {"seconds": 0}, {"pending_cap": 2.5}],
)
def test_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        PROBLEM.solve(PRIOR, **options)  # type: ignore[arg-type]


def test_bad_questions(policy: ExposurePolicy) -> None:
    with rejected("prior"):
        PROBLEM.solve((2, 1))  # type: ignore[arg-type]
    for ask in (policy.accepts, policy.value, policy.explain):
        with rejected("pending"):
            ask(PRIOR, -1)
    with rejected("applicants"):
        policy.accept_now(PRIOR, 0, -2)
    with rejected("label_delay"):
        Delayed(0.8, 50, 0.1, 0)


@settings(max_examples=30)
@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 12), st.integers(1, 10), st.booleans())
def test_capped(n: int, share: float, pending: int, cap: int, everywhere: bool) -> None:
    s = round(share * n)
    policy = Capped(Greedy(0.5), cost=0.8, cap=cap, everywhere=everywhere)
    free = s >= 0.8 * n * (1 - 1e-12) and not everywhere
    expected = float(s > 0.5 * n and (free or pending < cap))
    assert policy.acceptance(n, s, pending)[()] == expected
    assert expected == float(pending < policy.exposure(n, s)[()])


def test_rivals_are_policies(policy: ExposurePolicy) -> None:
    for one in (policy, Blind(Greedy(0.8), 0.8), Capped(Greedy(0.8), 0.8, 3)):
        assert isinstance(one, PendingPolicy)
    assert Blind(Constant(0.5), 0.8).steady_limit is None
    with rejected("cap"):
        Capped(Greedy(0.8), 0.8, 0)
    with rejected("cost"):
        Blind(Greedy(0.8), 1.8)


def test_tiny_priors_are_told_apart_from_beliefs_beside_them() -> None:
    policy = Delayed(0.5, 1, 5, 0.1).solve(Belief(1e-10, 9e-11), rows=2)
    assert policy.limit(Belief(1e-10, 9e-11)) is None
    assert policy.limit(Belief(1e-10, 1e-11)) == 0
    assert not policy.proved(Belief(1e-10, 1e-11))


def test_beliefs_beside_the_lattice_are_not_looked_up(policy: ExposurePolicy) -> None:
    assert policy.stop_floor(10.001) == -1.0
    assert not policy.proved(Belief(10.001, 7))
    assert not policy.proved(Belief(10, 7.001))
    assert policy.proved(Belief(10, 2))


def test_a_rate_just_below_the_cost_has_a_limit() -> None:
    # 5·10⁻¹³ below the cost is below it; 16 of 20 at a cost of 0.8 is at the cost, although 0.8 is rounded upwards.
    below = Belief(2, 1.6 * (1 - 5e-13))
    policy = PROBLEM.solve(below, rows=3, tolerance=1e-3)
    limit = policy.limit(below)
    assert limit is not None
    assert limit > 10
    assert PROBLEM.solve(Belief(20, 16), rows=1, tolerance=1e-3).limit(Belief(20, 16)) is None
    capped = Capped(Constant(1.0), cost=0.8, cap=3)
    assert capped.acceptance(below.n, below.s, pending=3)[()] == 0.0
    assert capped.acceptance(20, 16, pending=3)[()] == 1.0
    assert capped.exposure([2, 20], [below.s, 16]).tolist() == [3, UNLIMITED]


def test_rows_that_prove_nothing_below_are_not_called_proved(policy: ExposurePolicy) -> None:
    hopeless = Belief(10, 2)
    assert policy.proved(hopeless)
    doubtful = msgspec.structs.replace(policy, open_rows=(8,))
    assert not doubtful.proved(hopeless)
    assert doubtful.proved(Belief(11, 2))
    again = ExposurePolicy.from_json(doubtful.to_json())
    assert again.open_rows == (8,)
    assert "open_rows" not in policy.to_json()


@pytest.mark.parametrize("options", [{}, {"pending_cap": 3, "look_ahead": 60}, {"tolerance": 1e-2}])
def test_the_certificate_counts_what_is_not_proved(options: dict[str, float]) -> None:
    policy = Delayed(0.7, 10, 0.2, 0.5).solve(PRIOR, **options)  # type: ignore[arg-type]
    unproved = []
    for k in range(policy.rows):
        states = [Belief(2 + k, 1 + j) for j in range(k + 1)]
        unproved += [k] * sum(not policy.proved(state) for state in states)
    assert len(unproved) == policy.certificate.unsettled
    assert policy.certificate.settled_rows == (unproved[0] if unproved else policy.rows)


def test_the_stop_floor_is_the_best_rate_at_which_nobody_is_accepted(policy: ExposurePolicy) -> None:
    for k in range(0, 300, 7):
        n = 2.0 + k
        good = 1.0 + np.arange(k + 1)
        closed = good[policy.exposure(n, good) == 0]
        assert policy.stop_floor(n) == (closed.max() / n if closed.size else -1.0)


def test_the_floor_beyond_the_table_is_the_best_rate_without_a_limit_above_0() -> None:
    policy = Delayed(0.8, arrivals=50, discount_rate=0.1, label_delay=1).solve(Belief(2, 1), rows=20)
    n = 42.0
    floor = policy.stop_floor(n)
    successes = round(floor * n)
    assert floor * n == pytest.approx(successes)
    assert policy.exposure(n, [successes])[0] == 0
    assert policy.exposure(n, [successes + 1])[0] > 0


def test_a_row_beyond_the_table_is_like_the_row_that_stands_for_it(policy: ExposurePolicy) -> None:
    """Between the same two states lies nearly the same part of c·n."""
    rows = policy.rows
    k = np.arange(rows - 3, rows + 200)
    row, shift = policy._within(k)
    for one, inside, more in zip(k.tolist(), row.tolist(), shift.tolist(), strict=True):
        if one < rows:
            assert (inside, more) == (one, 0)
            continue
        assert rows - 64 <= inside < rows
        distance = [abs(0.8 * (one - last) - round(0.8 * (one - last))) for last in range(rows - 64, rows)]
        assert abs(0.8 * (one - inside) - more) == pytest.approx(min(distance), abs=1e-9)
    same, none = policy._within(np.array([0, 5, rows - 1]))
    assert same.tolist() == [0, 5, rows - 1]
    assert none.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("unsettled", "resumed_proved", "proved"), [(0, 0, True), (1, 0, False), (0, 1, False), (2, 3, False)]
)
def test_a_certificate_is_proved_without_doubt_and_without_resumption(
    policy: ExposurePolicy, unsettled: int, resumed_proved: int, proved: bool
) -> None:
    certificate = msgspec.structs.replace(policy.certificate, unsettled=unsettled, resumed_proved=resumed_proved)
    assert certificate.proved is proved

"""What every model owes: priors that are beliefs, own labels that take over, shrinkage that adds up."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lenience import Belief
from lenience.models.curve import Curve
from lenience.models.from_history import FromHistory, SelectiveLabelsWarning
from lenience.models.own_counts import JEFFREYS, UNIFORM, OwnCounts, skeptical
from lenience.models.protocol import Model, beliefs, shrinkage
from lenience.models.shared import Shared, digamma_pair, fit_beta
from rejections import rejected

SCORES = np.linspace(5, 95, 12)
GROUPS = ["a", "b", "c"] * 4
MODELS: list[Model] = [
    OwnCounts(12),
    OwnCounts(12, JEFFREYS),
    OwnCounts(12, skeptical(0.8)),
    Shared(12),
    Curve(SCORES),
    Curve(SCORES, GROUPS),
    Curve(np.column_stack([SCORES, SCORES[::-1] ** 2]), GROUPS, rising=False),
    FromHistory(np.arange(12.0), np.arange(12.0) / 2),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_every_model(model: Model) -> None:
    assert isinstance(model, Model)
    generator = np.random.default_rng(1)
    for _ in range(20):
        n = generator.integers(0, 200, 12) * generator.integers(0, 2, 12)
        s = generator.binomial(n, 0.7)
        n0, s0 = model.priors(n, s)
        assert n0.shape == s0.shape == (12,)
        assert np.all(n0 > 0)
        assert np.all((s0 > 0) & (s0 < n0))
        rows = shrinkage(model, n, s)
        for row, belief in zip(rows, beliefs(model, n, s), strict=True):
            assert row.belief == belief
            assert row.belief.n == pytest.approx(row.prior.n + row.labels)
            mixed = row.pull * row.prior.mean + (1 - row.pull) * (row.own_rate or 0.0)
            assert row.belief.mean == pytest.approx(mixed)
        # Order of the same labels does not matter, nor do counts given as floats.
        again = model.priors(n.astype(float), s.astype(float))
        assert np.array_equal(again[0], n0)
    many = np.zeros(12)
    many[3] = 1e6
    good = 0.9 * many
    assert beliefs(model, many, good)[3].mean == pytest.approx(0.9, abs=1e-3)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_bad_counts(model: Model) -> None:
    with rejected("labels", "length_mismatch"):
        beliefs(model, [1.0], [0.0])
    with rejected("labels"):
        beliefs(model, np.ones(12), 2 * np.ones(12))


def test_named_priors() -> None:
    assert Belief(2, 1) == UNIFORM
    assert Belief(1, 0.5) == JEFFREYS
    prior = skeptical(0.9, n=6, chance=0.05)
    assert prior.n == 6
    assert prior.exceeds(0.9) == pytest.approx(0.05, abs=1e-9)
    assert skeptical(0.9, n=0.5).n == 0.5
    with rejected("n"):
        skeptical(0.9, n=0)
    with rejected("chance"):
        skeptical(0.9, chance=1.0)
    own = OwnCounts(2, [Belief(3, 2), Belief(5, 1)])
    assert own.priors([0, 0], [0, 0])[1].tolist() == [2, 1]
    with rejected("prior", "length_mismatch"):
        OwnCounts(3, [UNIFORM])


def test_history_by_cell_is_the_papers_prior() -> None:
    model = FromHistory([100, 0], [90, 0], arrivals=[150, 200])
    assert beliefs(model, [10, 1], [5, 1]) == [Belief(112, 96), Belief(3, 2)]


def test_pooled_history_warns_of_the_trap() -> None:
    with pytest.warns(SelectiveLabelsWarning, match="1,000 past outcomes .40% of arrivals. are pooled") as caught:
        model = FromHistory([900, 100, 0], [880, 90, 0], pooled=True, arrivals=[900, 600, 1000])
    assert "1 of which have none" in str(caught[0].message)
    # The trap itself: a cell that was never accepted is believed to be as good as the best, and surely so.
    trapped = beliefs(model, [0, 0, 0], [0, 0, 0])[2]
    assert trapped.n == 1002
    assert trapped.mean > 0.96
    # At a modest weight it can be overruled, and nothing is said.
    modest = FromHistory([900, 100, 0], [880, 90, 0], pooled=True, weight=0.02)
    assert beliefs(modest, [0, 0, 0], [0, 0, 0])[2].n == pytest.approx(22)


def test_digamma() -> None:
    from scipy.special import polygamma, psi

    for x in (0.02, 0.5, 1.0, 3.7, 7.999, 8.0, 11.0, 4e4):
        found = digamma_pair(x)
        assert found[0] == pytest.approx(float(psi(x)), rel=1e-13, abs=2e-12)
        assert found[1] == pytest.approx(float(polygamma(1, x)), rel=1e-13, abs=2e-12)


def test_shared_without_labels_is_about_uniform() -> None:
    n0, s0 = Shared(5).priors(np.zeros(5), np.zeros(5))
    assert n0[0] == pytest.approx(2.0, abs=0.2)
    assert s0[0] / n0[0] == pytest.approx(0.5)


def test_shared_finds_the_maximum() -> None:
    from scipy.optimize import minimize
    from scipy.special import betaln, expit

    generator = np.random.default_rng(7)
    for a, b in ((8.0, 2.0), (1.0, 3.0), (0.5, 0.5)):
        n = generator.integers(0, 60, 40).astype(float)
        s = generator.binomial(n.astype(int), generator.beta(a, b, 40)).astype(float)

        def loss(z: np.ndarray[tuple[int], np.dtype[np.float64]], n: object = n, s: object = s) -> float:
            size, m = np.exp(z[1]), expit(z[0])
            likelihood = betaln(size * m + s, size * (1 - m) + n - s) - betaln(size * m, size * (1 - m))
            return float(-likelihood.sum() + 0.5 * z[0] ** 2 / 1.1**2 + 0.5 * (z[1] - np.log(5)) ** 2)

        best = minimize(loss, np.array([0.0, 0.7]), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
        found = np.array([0.0, np.log(5)])
        spread = fit_beta(n, s, found)
        assert found == pytest.approx(best.x, abs=1e-4)
        # The spread is that of the marginal curvature at the maximum.
        step = 1e-3
        bent = [
            minimize(
                lambda v, u=u: loss(np.array([u, v[0]])),
                [found[1]],
                method="Nelder-Mead",
                options={"xatol": 1e-7, "fatol": 1e-11},
            ).fun
            for u in (found[0] - step, found[0], found[0] + step)
        ]
        assert 1 / spread == pytest.approx((bent[0] - 2 * bent[1] + bent[2]) / step**2, rel=1e-2)
        n0, s0 = Shared(40).priors(n, s)
        assert n0[0] < np.exp(found[1])  # less sure than the maximum pretends
        assert s0[0] / n0[0] == pytest.approx(expit(found[0]), abs=0.01)


def test_shared_recovers_the_population_of_cells() -> None:
    generator = np.random.default_rng(4)
    truth = generator.beta(12, 3, 2000)
    n = np.full(2000, 30)
    n0, s0 = Shared(2000).priors(n, generator.binomial(n, truth))
    assert s0[0] / n0[0] == pytest.approx(0.8, abs=0.02)
    assert n0[0] == pytest.approx(15, rel=0.15)


def test_curve_finds_the_mode() -> None:
    from scipy.optimize import minimize

    generator = np.random.default_rng(3)
    model = Curve(SCORES, GROUPS)
    n = generator.integers(0, 80, 12).astype(float)
    s = generator.binomial(n.astype(int), 1 / (1 + np.exp(-(SCORES - 50) / 15))).astype(float)

    def loss(b: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        eta = model.design @ b
        return float(-(s @ eta - n @ np.logaddexp(0, eta)) + 0.5 * model.precision @ (b - model.mean) ** 2)

    best = minimize(loss, model.mean, method="BFGS", options={"gtol": 1e-8})
    assert np.allclose(model.coefficients(n, s), best.x, atol=1e-5)


def test_a_cell_is_not_told_its_own_labels_twice() -> None:
    """The cavity is near a fit that never saw the cell's labels, and far from one that did."""
    n, s = np.full(12, 30.0), np.round(30 / (1 + np.exp(-(SCORES - 50) / 15)))
    s[5] = 2.0  # one cell off the curve
    model = Curve(SCORES, cap=1e9)
    given = model.priors(n, s)
    without_n, without_s = n.copy(), s.copy()
    without_n[5] = without_s[5] = 0
    refitted = model.priors(without_n, without_s)
    told, untold = given[1][5] / given[0][5], refitted[1][5] / refitted[0][5]
    assert told == pytest.approx(untold, abs=0.03)
    assert abs(told - s[5] / n[5]) > 0.2


def test_the_cap_and_the_direction() -> None:
    n, s = np.full(12, 500.0), np.round(500 / (1 + np.exp(-(SCORES - 50) / 15)))
    size, good = Curve(SCORES, cap=20).priors(n, s)
    assert size.max() == 20.0
    assert np.all(np.diff(good / size) > 0)
    before = Curve(SCORES).priors(np.zeros(12), np.zeros(12))
    assert before[1][-1] / before[0][-1] > 0.65 > 0.35 > before[1][0] / before[0][0]
    flat = Curve(SCORES, rising=False).priors(np.zeros(12), np.zeros(12))
    assert np.allclose(flat[1] / flat[0], 0.5)


def test_groups_borrow_from_each_other_and_differ() -> None:
    scores, groups = np.tile([20.0, 40, 60, 80], 2), ["a"] * 4 + ["b"] * 4
    n = np.array([200.0, 200, 200, 200, 20, 20, 0, 0])
    s = np.array([40.0, 80, 120, 160, 1, 3, 0, 0])
    size, good = Curve(scores, groups).priors(n, s)
    rate = good / size
    assert rate[7] < rate[3]  # b was seen to do worse
    assert rate[7] > rate[6]  # yet the slope carries over
    with rejected("groups", "length_mismatch"):
        Curve(scores, ["a"])
    with rejected("scores"):
        Curve([1.0, float("nan")])


@pytest.mark.parametrize(
    ("labels", "weight", "warns"), [(20, 1.0, False), (21, 1.0, True), (40, 0.5, False), (30, 1.0, True)]
)
def test_a_pooled_history_that_new_labels_can_overrule_needs_no_warning(
    labels: int, weight: float, warns: bool
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FromHistory([labels - 5, 5], [5, 3], weight=weight, pooled=True)
    assert [one.category for one in caught] == [SelectiveLabelsWarning] * warns

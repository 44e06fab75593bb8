"""Sequence unfairness, drift, sweeps and the paper's claims."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import lenience as ln
from lenience.analysis.sweep import parse_sweep
from lenience.paper.claim import CORRECTED, FAILS, HOLDS
from lenience.paper.discussion import borrowed
from lenience.paper.shape import half_chords, monotone_step
from lenience.reports.paper_report import paper_report
from rejections import rejected

FLAT = ln.Belief(2, 1)

SWEEP = """
cost = [0.6, 0.8]
discount = 0.95
horizon = 100
replications = 40
seed = 3
prior = { n = 2, s = 1 }

[[policies]]
name = "epsilon-greedy"
epsilon = [0.01, 0.1]

[[policies]]
name = "explore-then-exploit"
explore = 5

[[worlds]]
name = "bernoulli"
p = [0.5, 0.7, 0.9]

[[worlds]]
name = "segments"
shares = [0.5, 0.5]
rates = [0.4, 0.9]
"""

SEGMENTS = """name = "segments"
shares = [0.5, 0.5]
rates = [0.4, 0.9]
"""
LATE = """name = "late-labels"
world = { name = "prior", prior = { n = 2, s = 1 } }
delay = { kind = "exponential", mean = -20 }
"""


def enumerated(policy: ln.Policy, arrivals: int, p: float | None) -> list[float]:
    """Acceptance by arrival, by going through every history of decisions and outcomes."""
    total = [0.0] * arrivals
    for history in product((None, 0, 1), repeat=arrivals):
        n, s, chance, taken = FLAT.n, FLAT.s, 1.0, []
        for step in history:
            accept = float(policy.acceptance(n, s))
            success = s / n if p is None else p
            taken.append(step is not None)
            if step is None:
                chance *= 1 - accept
            else:
                chance *= accept * (success if step else 1 - success)
                n, s = n + 1, s + step
        for i, accepted in enumerate(taken):
            total[i] += chance * accepted
    return total


@pytest.mark.parametrize("p", [None, 0.75])
@pytest.mark.parametrize(
    "policy",
    [
        ln.policies.Thompson(0.6),
        ln.policies.EpsilonGreedy(0.6, 0.3),
        ln.policies.BayesUCB(0.6),
        ln.policies.Greedy(0.4),
    ],
)
def test_acceptance_by_arrival_is_exact(policy: ln.Policy, p: float | None) -> None:
    found = ln.acceptance_by_arrival(policy, 6, p, FLAT)
    assert found.acceptance.tolist() == pytest.approx(enumerated(policy, 6, p))


def test_early_arrivals_meet_the_more_lenient_policy() -> None:
    policy = ln.Discounted(0.8, 0.99).solve(FLAT)
    found = ln.acceptance_by_arrival(policy, 300, p=0.9)
    assert found.first == 1.0
    assert np.all(np.diff(found.acceptance) <= 1e-12)
    assert 0.2 < found.gap < 0.3
    # In the long run those are shut out whom the operating characteristics say.
    exact = ln.characteristics(policy, p=0.9).shut_out
    assert exact is not None
    assert ln.acceptance_by_arrival(policy, 3000, p=0.9).last == pytest.approx(1 - exact.midpoint, abs=1e-4)


def test_acceptance_by_arrival_agrees_with_simulation() -> None:
    policies: dict[str, ln.Policy] = {
        "optimal": ln.Discounted(0.8, 0.97).solve(FLAT),
        "thompson": ln.policies.Thompson(0.8),
    }
    run = ln.compare_policies(
        policies, ln.simulation.Bernoulli(0.85), cost=0.8, horizon=60, replications=5000, prior=FLAT, optimum=False,
        checkpoints=range(1, 61),
    )  # fmt: skip
    for name, policy in policies.items():
        exact = ln.acceptance_by_arrival(policy, 60, 0.85, FLAT).acceptance
        for i, found in enumerate(run.acceptance_over_time(name, 0.9999)):
            assert exact[i] == pytest.approx(found.mean, abs=1e-9) or exact[i] in found


def test_too_many_arrivals_are_refused() -> None:
    with rejected("arrivals", "too_large"):
        ln.acceptance_by_arrival(ln.policies.Greedy(0.5), 10**6, belief=FLAT)
    with rejected("arrivals", "too_large"):
        ln.acceptance_by_arrival(ln.policies.Thompson(0.5), 2000, belief=FLAT)
    with rejected("belief"):
        ln.acceptance_by_arrival(ln.policies.Greedy(0.5), 10)


def test_forgetting_pays_where_p_changes_and_costs_where_it_does_not() -> None:
    rows = ln.analysis.drift_study(0.5, 0.99, FLAT, [0.0, 0.02], [0.9, 0.98], horizon=500, replications=400, seed=1)
    gained = {(row.hazard, row.memory): row.gained for row in rows}
    assert gained[0.0, 0.9].upper < 0
    assert gained[0.0, 0.98].upper < 0
    assert gained[0.02, 0.98].lower > 0
    assert gained[0.0, 1.0].mean == gained[0.02, 1.0].mean == 0.0


def test_a_sweep_runs_the_grid() -> None:
    import narwhals as nw

    frame = nw.from_native(ln.analysis.run_sweep(parse_sweep(SWEEP), backend="polars"))
    assert frame["cost"].unique().sort().to_list() == [0.6, 0.8]
    assert frame["world"].n_unique() == 4
    assert sorted(frame["policy"].unique()) == [
        "epsilon-greedy (epsilon=0.01)",
        "epsilon-greedy (epsilon=0.1)",
        "explore-then-exploit (explore=5)",
        "optimum",
    ]
    assert len(frame) == 2 * 4 * 4 * 9
    cell = frame.filter(
        (nw.col("cost") == 0.8)
        & (nw.col("world") == "bernoulli (p=0.9)")
        & (nw.col("policy") == "epsilon-greedy (epsilon=0.1)")
        & (nw.col("metric") == "accepted")
    )
    alone = ln.compare_policies(
        {"it": ln.policies.EpsilonGreedy(0.8, 0.1)}, ln.simulation.Bernoulli(0.9), cost=0.8, discount=0.95, horizon=100,
        replications=40, prior=FLAT, seed=3,
    )  # fmt: skip
    assert cell["mean"].to_list() == [alone.estimate("it", "accepted").mean]


def test_priors_of_segments_are_one_setting() -> None:
    two = "prior = [{ n = 2, s = 1 }, { n = 20, s = 18 }]"
    world = f'[[worlds]]\nname = "segments"\nshares = [1, 3]\n{two}'
    frame = ln.analysis.run_sweep(parse_sweep(f"cost = 0.5\nhorizon = 9\nreplications = 9\n{world}"), backend="pyarrow")
    assert len(set(frame["world"].to_pylist())) == 1
    named = ln.simulation.world_named(
        "segments", shares={"b": 3, "a": 1}, prior={"a": {"n": 2, "s": 1}, "b": {"n": 20, "s": 18}}
    )
    assert named == ln.simulation.Mixture([3, 1], prior=[ln.Belief(20, 18), ln.Belief(2, 1)])
    with rejected("prior", "length_mismatch"):
        parse_sweep(f"cost = 0.5\nhorizon = 9\n{world}".replace("[1, 3]", "[1, 3, 1]"))


def test_a_sweep_file_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    assert ln.analysis.load_sweep(file).policies[0]["name"] == "epsilon-greedy"
    with rejected("sweep", "unreadable_file"):
        ln.analysis.load_sweep(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("cost = [0.6, 0.8]", "cost = [0.6, 1.8]", "line 2, key cost"),
        ("discount = 0.95", 'discount = "high"', "line 3, key discount"),
        ("horizon = 100", "horizon = 0", "line 4, key horizon"),
        ("replications = 40", "replications = -1", "line 5, key replications"),
        ("seed = 3", "seed = 0.5", "line 6, key seed"),
        ("prior = { n = 2, s = 1 }", "prior = { n = 2 }", "line 7, key prior"),
        ("prior = { n = 2, s = 1 }", "prior = 3", "line 7, key prior"),
        ("seed = 3", "sead = 3", "line 6, key sead"),
        ('"explore-then-exploit"', '"explore"', "line 14, key policies.name"),
        ("explore = 5", "explore = -5", "line 15, key policies.explore"),
        ("explore = 5", "exploit = 5", "line 15, key policies.exploit"),
        ("explore = 5", "", "line 14, key policies"),
        ('"bernoulli"', '"bernouli"', "line 18, key worlds.name"),
        ("p = [0.5, 0.7, 0.9]", "p = [0.5, 7, 0.9]", "line 19, key worlds.p"),
        ("rates = [0.4, 0.9]", "rates = [0.4]", "line 24, key worlds.rates"),
        (
            SEGMENTS,
            'name = "segments"\nshares = { DE = 0.6, FR = 0.3, US = 0.3 }\nprior = { n = 2, s = 1 }',
            "line 23, key worlds.shares",
        ),
        ('name = "bernoulli"\n', "", "line 17, key worlds"),
        ("explore = 5", "explore = = 5", "line 15, key explore"),
        ("horizon = 100", "", ""),
        (
            "cost = [0.6, 0.8]",
            "cost = []",
            "line 2, key cost",
        ),
        ("horizon = 100", "horizon = []", "line 4, key horizon"),
        ("p = [0.5, 0.7, 0.9]", "p = []", "line 19, key worlds.p"),
        ("epsilon = [0.01, 0.1]", "epsilon = []", "line 11, key policies.epsilon"),
        ("rates = [0.4, 0.9]", "rates = []", "line 24, key worlds.rates"),
        (SEGMENTS, LATE, "line 24, key worlds.delay.mean"),
        (
            SEGMENTS,
            LATE.replace("prior", "prio", 1).replace("-20", "20"),
            "line 23, key worlds.world.name",
        ),
        (SEGMENTS, LATE.replace("kind", "kin"), "line 24, key worlds.delay.kin"),
        (SEGMENTS, LATE.replace("mean = -20 }", "mean = 20"), "line 24, key delay"),
        (SEGMENTS, LATE.replace("mean = -20 }\n", "mean = 20"), "line 24"),
        (
            SEGMENTS,
            LATE.split("delay")[0] + "[worlds.delay]\nkind = 'fixed'\nmean = -1",
            "line 26, key worlds.delay.mean",
        ),
    ],
)
def test_a_broken_sweep_names_line_and_key(old: str, new: str, place: str) -> None:
    assert old in SWEEP
    with pytest.raises(ln.InputError) as caught:
        parse_sweep(SWEEP.replace(old, new))
    assert caught.value.place == ", ".join(filter(None, ["sweep", place]))


@pytest.fixture(scope="module")
def claims() -> list[ln.paper.Claim]:
    return ln.paper.check_paper()


# Everything the paper numbers or leaves to others: its equations, theorem, propositions, lemma, figure and proofs.
EQUATIONS = [f"({number})" for number in range(1, 15)]
NUMBERED = ["Theorem 1", "Proposition 2", "Proposition 3", "Theorem 4", "Lemma 1", "Figure 1"]
PROOFS = ["Appendix A.1", "Appendix A.2", "Appendix A.3", "Appendix A.4"]
FUTURE = ["3.1, Figure 1, future work", "3.2, future work", "4, and 2, future work", "4, future work"]


def test_the_papers_claims_stand(claims: list[ln.paper.Claim]) -> None:
    assert [claim.claim for claim in claims if not claim.stands] == []
    assert all(any(digit.isdigit() for digit in claim.evidence) for claim in claims)  # each with numbers found
    assert len({claim.claim for claim in claims}) == len(claims)


@pytest.mark.parametrize("seed", [3, 10, 17])
def test_what_is_borrowed_does_not_hang_on_one_draw(seed: int) -> None:
    claim = borrowed(seed)
    assert claim.stands
    lost, pasts = (int(each) for each in re.findall(r"by more on (\d+) of the (\d+) pasts", claim.evidence)[0])
    assert 0 < lost < pasts / 4  # it does lose now and then, and says so


def test_the_deltas_of_appendix_a2_meet_the_points_they_stand_for() -> None:
    claim = monotone_step(0)
    assert claim.verdict == CORRECTED
    assert "reaches 0.636, and the second bracket needs 0.727" in claim.evidence
    assert "negative (-0.045 at n = 10" in claim.addition  # (10 · 0.05 − 1)/11
    # Lemma 1 with α = ½ asks f at x ± δ/2. In exact fractions these are the four points of the second bracket.
    n, p1, p2 = Fraction(10), Fraction(2, 5), Fraction(7, 10)
    x = (n * (p1 + p2) + 1) / (2 * (n + 1))
    wide, narrow = (Fraction(delta).limit_denominator(1000) for delta in half_chords(10, 0.4, 0.7))
    assert {x + wide / 2, x - wide / 2} == {(n * p2 + 1) / (n + 1), n * p1 / (n + 1)}
    assert {x + narrow / 2, x - narrow / 2} == {n * p2 / (n + 1), (n * p1 + 1) / (n + 1)}
    assert float(x + wide / 4) == pytest.approx(0.636, abs=5e-4)  # what the printed δ, half as large, reaches
    assert float((n * p2 + 1) / (n + 1)) == pytest.approx(0.727, abs=5e-4)


def test_nothing_of_the_paper_is_left_out(claims: list[ln.paper.Claim]) -> None:
    sections = " ".join(claim.section for claim in claims)
    for first, last in re.findall(r"\((\d+)\)–\((\d+)\)", sections):
        sections += " " + " ".join(f"({number})" for number in range(int(first), int(last) + 1))
    for part in [*EQUATIONS, *NUMBERED, *PROOFS, *FUTURE, "3.2, after (9)"]:
        assert part in sections, part


class Page(HTMLParser):
    """What is in a page: its tags, whether they close, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for key, value in attrs if key in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_stands_alone(claims: list[ln.paper.Claim], tmp_path: Path) -> None:
    path = ln.reports.write_paper_report(tmp_path / "deep" / "paper.html", claims, seed=77)
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text.removeprefix("<!doctype html>"))
    assert page.open == []
    assert page.loads == []
    assert page.tags.count("svg") == 4
    assert page.tags.count("article") == len(claims)
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text
    assert 'name="viewport"' in text
    assert "with seed 77" in text


NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"


def number_of(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_page_of_the_documentation_is_that_of_these_claims(claims: list[ln.paper.Claim], tmp_path: Path) -> None:
    # All words; the numbers of the evidence may differ in their last digits, rounding errors and timings altogether.
    written = ln.reports.write_paper_report(tmp_path / "paper.md", claims).read_text(encoding="utf-8").splitlines()
    kept = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8").splitlines()
    assert len(written) == len(kept)
    for new, old in zip(written, kept, strict=True):
        if not new.startswith(">"):
            assert new == old
            continue
        assert re.split(NUMBER, new) == re.split(NUMBER, old)
        numbers = re.findall(NUMBER, new), re.findall(NUMBER, old), re.split(NUMBER, new)[1:]
        for number, before, after in zip(*numbers, strict=True):
            if not re.match(r" m?s\b| seconds", after):
                assert number_of(number) == pytest.approx(number_of(before), rel=0.1, abs=1e-6), new


def test_a_failed_claim_shows() -> None:
    text = paper_report([ln.paper.Claim("9", "1 < 0 & more", FAILS, "It is not.")])
    assert '<article class="fails">' in text
    assert "1 &lt; 0 &amp; more" in text
    assert "<b>1</b><span>fails</span>" in text
    assert HOLDS in text

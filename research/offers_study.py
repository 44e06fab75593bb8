"""The study on real loans: what is it worth to decide each loan by its own amount and price?

Applicants are drawn from a table of real loans (:mod:`research.loans`) with replacement and arrive one by one. Each
belongs to a segment and brings an amount and a price. Accepted, it earns its interest less the funding cost, or loses a
share of the amount; its outcome is then known. A rejected applicant's outcome is never seen. All policies meet the same
applicants.

What was fixed before any policy was run: the tables, the economics, grades as segments, the policies with their
constants, the discount factor (the policies plan for as many applicants as the stream has: γ = 1 − 1/applicants) and
the number of runs. Segments by sub-grade, shuffled outcomes, rates from the prior and the portfolio prior were
added after the first results, to find out where they come from. No policy was changed.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.belief import Belief
from lenience.core.offers import Offers
from lenience.core.validation import whole
from lenience.models.curve import Curve
from research.loans import GRADES, STEPS, Loans, load_loans
from research.offer_streams import (
    FLAT,
    GREEDY,
    LABEL,
    THOMPSON,
    UPPER,
    LabelTables,
    Problem,
    Rule,
    Runs,
    Stream,
    accept_applicants,
    simulate,
    solve_tables,
)

ECONOMICS = ((None, 0.6), (None, 1.0), (0.15, 0.6), (0.15, 1.0), (0.25, 0.6))  # share that fails, loss given default
SEGMENTS = ("grade", "sub-grade")
RECORDED, SHUFFLED, FROM_PRIOR = "recorded", "shuffled", "from the prior"
STARTS = ("cold", "warm")
RUNS = 200
PAST = 2_000  # applicants before a warm start, of whom today's rule accepted grades A to C
TODAY = 3  # grades that today's rule accepts
LABELLED = 0.1  # the first part of a cold stream, which cutoff rules accept whole to choose by
BURN_IN = 20
COSTS = 5  # break-evens for which the policy by price is solved in each segment; the nearest decides
MOST_OFFERS = 25
PER_SEGMENT = 3 + COSTS  # tables of label values

OFFERS, PRICE, SEGMENT, ALL = "amount and price", "price only", "one break-even per segment", "one break-even for all"
RULES = (OFFERS, PRICE, SEGMENT, ALL, "greedy", "greedy after 20", "Thompson", "upper bound")
POOLED, OWN, PORTFOLIO = "pooled", "own counts", "portfolio prior"
BELIEFS = (POOLED, OWN, PORTFOLIO)
PORTFOLIO_SIZE = 5  # loans that the portfolio prior is worth
EVERYONE, CURRENT, GRADE, PROFITABLE, KNOWN = (
    "accept everyone",
    "keep grades A to C",
    "grade cutoff",
    "profitable segments",
    "success rates known",
)
FIXED = (EVERYONE, CURRENT, GRADE, PROFITABLE, KNOWN)


class Setting(msgspec.Struct, frozen=True):
    """Describe one experiment.

    Parameters
    ----------
    table
        The table of loans.
    segments
        What makes a segment, with the term: the ``grade`` or the ``sub-grade``.
    outcomes
        ``recorded`` with each loan; ``shuffled`` among the loans of a segment, so that neither price nor amount says
        anything about the outcome, as the policies suppose; or ``from the prior``, where each run draws the success
        rate of every segment from Beta(1, 1), which own counts start from, so that their beliefs are right as well.
    failure_share
        The share of applicants who would fail: bad loans are drawn more often to make it so. None is as recorded.
    loss_given_default
        The share of the amount that a failure loses.
    start
        ``cold`` without outcomes, or ``warm`` with those of an earlier rule that accepted grades A to C.
    applicants
        The length of the stream.
    """

    table: str
    segments: str
    outcomes: str
    failure_share: float | None
    loss_given_default: float
    start: str
    applicants: int

    @property
    def discount(self) -> float:
        """The discount factor of an applicant."""
        return 1.0 - 1.0 / self.applicants


class PolicyResult(msgspec.Struct, frozen=True, array_like=True):
    """What a policy earned in a setting, in dollars: the mean over runs with half its 95% interval.

    ``behind`` is how much more the reference earned, run by run: the policy by amount and price, on the same beliefs if
    the policy has beliefs, and on pooled ones otherwise. ``discounted`` and ``discounted_behind`` are the same with
    later profits discounted.
    """

    rule: str
    beliefs: str
    profit: int
    half_width: int
    behind: int
    behind_half_width: int
    discounted: int
    discounted_behind: int
    discounted_behind_half_width: int
    accepted: float


class SettingResult(msgspec.Struct, frozen=True):
    """What every policy earned in a setting."""

    setting: Setting
    runs: int
    policies: list[PolicyResult]

    def of(self, rule: str, beliefs: str = "") -> PolicyResult:
        """Return the result of one policy."""
        return next(one for one in self.policies if (one.rule, one.beliefs) == (rule, beliefs))


def settings() -> list[Setting]:
    """Return every setting of the study, those that need the same tables of label values one after the other.

    >>> len(settings())
    74
    """
    return [
        Setting(table, segments, outcomes, share, lost, start, applicants)
        for table, applicants in (("2016", 10_000), ("2016", 2_000), ("2018", 10_000))
        for segments in SEGMENTS
        for share, lost in ECONOMICS
        for outcomes in (RECORDED, SHUFFLED, FROM_PRIOR)
        if table == "2016" or (segments, outcomes) == ("grade", RECORDED)
        if outcomes == RECORDED or segments == "grade"
        if outcomes != FROM_PRIOR or (share, lost) == ECONOMICS[0]
        for start in STARTS
    ]


class World(msgspec.Struct, frozen=True, eq=False):
    """Hold what the applicants of a setting bring, and what anyone can know without outcomes.

    Parameters
    ----------
    loans
        The table.
    weights
        How likely each loan is to come.
    gain, loss
        What each loan earns if it is repaid, and loses otherwise.
    segment
        The segment of each loan.
    grade, score, term
        The grade, the position of the grade or sub-grade, and the term of each segment.
    """

    loans: Loans
    weights: NDArray[np.float64]
    gain: NDArray[np.float64]
    loss: NDArray[np.float64]
    segment: NDArray[np.int64]
    grade: NDArray[np.int64]
    score: NDArray[np.float64]
    term: NDArray[np.int64]

    @property
    def segments(self) -> int:
        """The number of segments."""
        return int(self.grade.size)

    @property
    def amount(self) -> NDArray[np.float64]:
        """The amount at stake of each loan."""
        return self.gain + self.loss

    @property
    def cost(self) -> NDArray[np.float64]:
        """The break-even of each loan."""
        return self.loss / self.amount

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each segment in the applicants."""
        return self.sums(self.weights)

    @property
    def rates(self) -> NDArray[np.float64]:
        """The success rate of each segment, which no policy knows."""
        return self.sums(self.weights * ~self.loans.failed) / self.shares

    @property
    def success_rate(self) -> float:
        """The success rate of all applicants together, which a lender with some experience knows."""
        return float(self.weights @ ~self.loans.failed)

    @property
    def mean_costs(self) -> NDArray[np.float64]:
        """The break-even of accepting all of each segment."""
        return self.sums(self.weights * self.loss) / self.sums(self.weights * self.amount)

    @property
    def mean_cost(self) -> float:
        """The break-even of accepting everyone."""
        return float(self.weights @ self.loss / (self.weights @ self.amount))

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of a column of the loans over each segment."""
        return np.bincount(self.segment, values, self.segments).astype(np.float64)


@lru_cache(maxsize=4)
def make_world(table: str, segments: str, failure_share: float | None, loss_given_default: float) -> World:
    """Return the world of a setting."""
    loans = load_loans(table)
    fine = loans.sub_grade if segments == "sub-grade" else STEPS * loans.grade
    present, segment = np.unique(np.stack([fine, loans.term], axis=1), axis=0, return_inverse=True)
    loss = loans.principal * loss_given_default
    return World(
        loans,
        loans.weights(failure_share),
        loans.gains(),
        loss,
        segment.ravel(),
        present[:, 0] // STEPS,
        -present[:, 0].astype(np.float64),
        present[:, 1],
    )


def failures_inside_segments(world: World, values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the share of recorded failures below and above the median of some values inside each segment.

    >>> world = make_world("2016", "grade", None, 0.6)
    >>> below, above = failures_inside_segments(world, world.loans.rate)
    >>> below < above  # dear loans of a segment fail more often
    True
    """
    failed, weight, total = world.loans.failed, 0.0, np.zeros(2)
    for segment in range(world.segments):
        here = world.segment == segment
        above = here & (values > np.median(values[here]))
        below = here & ~above
        if above.any():
            total += here.sum() * np.array([failed[below].mean(), failed[above].mean()])
            weight += here.sum()
    return float(total[0] / weight), float(total[1] / weight)


def success_rates(world: World, runs: int, outcomes: str) -> NDArray[np.float64]:
    """Return the success rate of each segment, runs × segments."""
    if outcomes == FROM_PRIOR:
        return np.stack([np.random.default_rng([2, run]).random(world.segments) for run in range(runs)])
    return np.broadcast_to(world.rates, (runs, world.segments))


def draw(world: World, runs: int, applicants: int, outcomes: str = RECORDED, seed: int = 0) -> Stream:
    """Draw streams; run r has the same applicants in every setting with the same table and weights.

    >>> stream = draw(make_world("2016", "grade", 0.15, 0.6), runs=3, applicants=1000)
    >>> stream.order.shape, bool(abs(stream.succeeds.mean() - 0.85) < 0.03)
    ((3, 1000), True)
    """
    edges = np.cumsum(world.weights)
    uniform = np.stack([np.random.default_rng([seed, run]).random((2, applicants)) for run in range(runs)])
    order = np.minimum(np.searchsorted(edges, uniform[:, 0], side="right"), edges.size - 1)
    succeeds = ~world.loans.failed[order]
    if outcomes != RECORDED:
        rates = np.take_along_axis(success_rates(world, runs, outcomes), world.segment[order], axis=1)
        succeeds = uniform[:, 1] < rates
    return Stream(order, succeeds, world.segment, world.amount, world.cost)


def history(world: World, runs: int, start: str, outcomes: str = RECORDED) -> Stream:
    """Return the applicants before the stream: none after a cold start.

    Those whom today's rule rejected are among them; their outcomes are not to be used.
    """
    return draw(world, runs, PAST if start == "warm" else 0, outcomes, seed=1)


def known_before(world: World, past: Stream) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the outcomes that today's rule left behind: labels and successes, runs × segments."""
    labels = np.zeros((len(past.order), world.segments))
    successes = np.zeros_like(labels)
    for run, order in enumerate(past.order):
        seen = world.loans.grade[order] < TODAY
        segment = past.segment[order[seen]]
        labels[run] = np.bincount(segment, minlength=world.segments)
        successes[run] = np.bincount(segment, past.succeeds[run, seen], world.segments)
    return labels, successes


def own_cost_grid(world: World, segment: int) -> NDArray[np.float64]:
    """Return the break-evens for which the policy by price is solved in a segment."""
    costs = world.cost[world.segment == segment]
    return np.asarray(np.quantile(costs, (np.arange(COSTS) + 0.5) / COSTS))


def problems(world: World, applicants: int) -> list[Problem]:
    """Return what is solved, segment by segment: its offers, the mean break-even, its own, and several for the price.

    The offers and the shares are those of all applicants, which a lender sees without outcomes.
    """
    discount = 1.0 - 1.0 / applicants
    result = []
    for segment, share in enumerate(world.shares.tolist()):
        here = world.segment == segment
        own = discount * share / (1.0 - discount + discount * share)
        rows = math.ceil(2.0 * share * (applicants + PAST)) + 100
        offers = Offers.from_gains_and_losses(world.gain[here], world.loss[here], world.weights[here], MOST_OFFERS)
        costs = [world.mean_cost, float(world.mean_costs[segment]), *own_cost_grid(world, segment).tolist()]
        result += [Problem(one, own, rows) for one in (offers, *(Offers((1.0,), (cost,)) for cost in costs))]
    return result


@lru_cache(maxsize=2)
def label_tables(
    table: str,
    segments: str,
    failure_share: float | None,
    loss_given_default: float,
    applicants: int,
    interpolated: bool,
) -> LabelTables:
    """Solve the label values of a world."""
    world = make_world(table, segments, failure_share, loss_given_default)
    return solve_tables(problems(world, applicants), interpolated)


def make_rule(name: str, world: World) -> Rule:
    """Return a rule by its name."""
    one = np.ones_like(world.amount)
    first_table = world.segment * PER_SEGMENT
    if name == OFFERS:
        return Rule(LABEL, world.amount, world.cost, first_table)
    if name == ALL:
        return Rule(LABEL, one, np.full_like(one, world.mean_cost), first_table + 1)
    if name == SEGMENT:
        return Rule(LABEL, one, world.mean_costs[world.segment], first_table + 2)
    if name == PRICE:
        grids = np.stack([own_cost_grid(world, segment) for segment in range(world.segments)])
        nearest = np.abs(grids[world.segment] - world.cost[:, None]).argmin(axis=1)
        return Rule(LABEL, one, world.cost, first_table + 3 + nearest)
    kind = {"greedy": GREEDY, "greedy after 20": GREEDY, "Thompson": THOMPSON, "upper bound": UPPER}[name]
    return Rule(kind, one, world.cost, first_table, BURN_IN if name == "greedy after 20" else 0)


def make_curve(world: World) -> Curve:
    """Return the model that pools segments: a logistic curve in the grade or sub-grade, with an effect of the term."""
    return Curve(world.score, groups=[str(term) for term in world.term])


def fixed_decisions(
    name: str, world: World, stream: Stream, past: Stream, rates: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which applicants a rule without beliefs accepts, runs × applicants.

    Cutoff rules choose once. After a cold start they accept the first tenth of the stream and choose by its outcomes;
    after a warm start they choose by the outcomes that today's rule left, and reject grades without outcomes.
    """
    order = stream.order
    if name == EVERYONE:
        return np.ones(order.shape, dtype=np.bool_)
    if name == CURRENT:
        return world.loans.grade[order] < TODAY
    if name == KNOWN:
        return np.take_along_axis(rates, world.segment[order], axis=1) > world.cost[order]
    warm = past.order.shape[1] > 0
    labelled = 0 if warm else math.ceil(LABELLED * order.shape[1])
    accepts = np.empty(order.shape, dtype=np.bool_)
    for run in range(len(order)):
        seen, good = (past.order[run], past.succeeds[run]) if warm else (order[run], stream.succeeds[run])
        use = world.loans.grade[seen] < TODAY if warm else np.arange(seen.size) < labelled
        seen, good = seen[use], good[use]
        earned = world.amount[seen] * (good - world.cost[seen])
        if name == PROFITABLE:
            chosen = np.bincount(world.segment[seen], earned, world.segments) > 0.0
            accepts[run] = chosen[world.segment[order[run]]]
        else:
            by_grade = np.bincount(world.loans.grade[seen], earned, len(GRADES))
            best = int(np.concatenate([[0.0], np.cumsum(by_grade)]).argmax())
            accepts[run] = world.loans.grade[order[run]] < best
        accepts[run, :labelled] = True
    return accepts


def run_setting(setting: Setting, runs: int = RUNS) -> SettingResult:
    """Run every policy of the study in one setting.

    >>> result = run_setting(Setting("2016", "grade", RECORDED, 0.25, 0.6, "cold", 300), runs=3)
    >>> len(result.policies), result.policies[0].rule
    (29, 'amount and price')
    """
    runs = whole("runs", runs, least=2)
    economics = (setting.table, setting.segments, setting.failure_share, setting.loss_given_default)
    world = make_world(*economics)
    stream = draw(world, runs, setting.applicants, setting.outcomes)
    past = history(world, runs, setting.start, setting.outcomes)
    labels, successes = known_before(world, past)
    rates = success_rates(world, runs, setting.outcomes)
    results: dict[tuple[str, str], Runs] = {}
    for beliefs in BELIEFS:
        tables = label_tables(*economics, setting.applicants, interpolated=beliefs != OWN)
        curve = make_curve(world) if beliefs == POOLED else None
        prior = Belief(PORTFOLIO_SIZE, PORTFOLIO_SIZE * world.success_rate) if beliefs == PORTFOLIO else FLAT
        for name in RULES:
            rule = make_rule(name, world)
            results[name, beliefs] = simulate(stream, setting.discount, rule, tables, curve, labels, successes, prior)
    for name in FIXED:
        decisions = fixed_decisions(name, world, stream, past, rates)
        results[name, ""] = accept_applicants(stream, setting.discount, decisions)
    policies = [
        _summary(rule, beliefs, own, results[OFFERS, beliefs or POOLED]) for (rule, beliefs), own in results.items()
    ]
    return SettingResult(setting, runs, policies)


def _summary(rule: str, beliefs: str, own: Runs, reference: Runs) -> PolicyResult:
    """Summarise the runs of a policy, to the dollar."""
    behind, later = reference.profit - own.profit, reference.discounted - own.discounted
    return PolicyResult(
        rule,
        beliefs,
        _dollars(own.profit.mean()),
        _dollars(_half_width(own.profit)),
        _dollars(behind.mean()),
        _dollars(_half_width(behind)),
        _dollars(own.discounted.mean()),
        _dollars(later.mean()),
        _dollars(_half_width(later)),
        round(float(own.accepted.mean()), 4),
    )


def _dollars(value: float) -> int:
    return round(float(value))


def _half_width(values: NDArray[np.float64]) -> float:
    return float(1.96 * values.std(ddof=1) / math.sqrt(values.size))

"""Late labels: the certified solve beside the plain recursion, and problems too large for the plain one.

`python -m benchmarks.delayed limit-cost [seconds] [seed]` measures instead, over random problems, what is lost by
taking the first rejection for the exposure limit. `python -m benchmarks.delayed offer-errors [seconds] [seed]` compares
estimates with offers and mixture priors with certified solves of random problems.
"""

from __future__ import annotations

import math
import random
import sys
import time

import numpy as np

from benchmarks.measure import best, peak_memory, report, seconds
from lenience import Belief, MixtureBelief, Offers, Segments, exposure_limits
from lenience.analysis.delay import limit_cost
from lenience.core.compiled import compiled
from lenience.core.errors import TooLargeError
from lenience.objectives.delayed import Delayed
from lenience.policies.beliefs.estimated_labels import EstimatedLabels
from lenience.policies.beliefs.exposure import ExposurePolicy
from lenience.solvers.offers.delayed import solve_delayed_offers

PRIOR = Belief(2, 1)


@compiled
def plain(cost: float, arrivals: float, rate: float, resolve: float, rows: int, cap: int) -> float:
    """The recursion as it stands: one-sided, every belief and every number pending, from Beta(1, 1)."""
    g = arrivals / rate
    value = np.zeros((rows + 2, cap + 1))
    for j in range(rows + 1):
        value[j, :] = max((1.0 + j) / (2.0 + rows) - cost, 0.0) * g
    fresh = np.zeros((rows + 2, cap + 1))
    for k in range(rows - 1, -1, -1):
        for j in range(k + 1):
            p = (1.0 + j) / (2.0 + k)
            for m in range(cap, -1, -1):
                late = 0.0
                if m > 0:
                    late = m * resolve * (p * value[j + 1, m - 1] + (1.0 - p) * value[j, m - 1])
                reject = late / (rate + m * resolve)
                more = fresh[j, m + 1] if m < cap else 0.0
                total = rate + arrivals + m * resolve
                if m == cap:
                    total = rate + m * resolve
                accept = (arrivals * (p - cost + more) + late) / total
                fresh[j, m] = max(accept, reject)
        value, fresh = fresh, value
    return float(value[0, 0])


def main() -> None:
    """Measure and print."""
    problem = Delayed(cost=0.8, arrivals=200, discount_rate=0.1, label_delay=1)
    found: list[float] = []
    plainly = best(lambda: found.append(plain(0.8, 200.0, 0.1, 1.0, 1200, 900)), repeats=2)
    kept: list[ExposurePolicy] = []
    certified = best(lambda: kept.append(problem.solve(PRIOR)), repeats=5)
    loose = best(lambda: problem.solve(PRIOR, tolerance=1e-4), repeats=5)
    proof = kept[-1].certificate
    code = (
        "from lenience import Belief\nfrom lenience.objectives.delayed import Delayed\n"
        "policy = Delayed(cost=0.8, arrivals={arrivals}, discount_rate=0.1, label_delay=1)"
        ".solve_proved(Belief(2, 1), tolerance={tolerance})"
    )
    nothing = peak_memory(
        "from lenience import Belief\nfrom lenience.objectives.delayed import Delayed\n"
        "Delayed(cost=0.8, arrivals=5, discount_rate=0.5, label_delay=1).solve(Belief(2, 1), tolerance=1e-2)"
    )
    rows = [
        ["plain, 1,200 rows, 900 pending, no bound", seconds(plainly), f"{found[-1]:.4f}", "?", ""],
        [
            f"certified, {proof.look_ahead:,} rows, {proof.pending_cap} pending",
            seconds(certified),
            f"[{proof.value.lower:.6f}, {proof.value.upper:.6f}]",
            f"{proof.relative_gap:.1e}",
            f"{peak_memory(code.format(arrivals=200, tolerance=1e-6)):.0f} MB",
        ],
        ["the same to 1e-4", seconds(loose), "", "< 1e-4", ""],
    ]
    for arrivals, tolerance in ((1000, 1e-5), (5000, 1e-3)):
        start = time.perf_counter()
        large = Delayed(0.8, arrivals, 0.1, 1).solve_proved(PRIOR, tolerance=tolerance).certificate
        taken = time.perf_counter() - start
        rows.append(
            [
                f"{arrivals:,} a year, {large.look_ahead:,} rows, {large.pending_cap:,} pending",
                seconds(taken),
                f"[{large.value.lower:.4f}, {large.value.upper:.4f}], best {large.estimate:.4f}",
                f"{large.relative_gap:.1e}",
                f"{peak_memory(code.format(arrivals=arrivals, tolerance=tolerance)):.0f} MB",
            ]
        )
    report(
        f"Labels after a year, 200 arrivals a year unless said, money at 10%, c = 0.8, Beta(1, 1) "
        f"(a process that solves next to nothing: {nothing:.0f} MB)",
        ["", "time", "value at the prior", "relative gap", "peak memory"],
        rows,
    )
    measure_sizes()
    measure_offer_sizes()
    measure_segments()


def measure_sizes() -> None:
    """The time of ``solve``, after compilation, over sizes, priors and delays; and of a horizon."""
    for tiny in (Delayed(0.5, 1.0, 1.0, 1.0), Delayed(0.5, 1.0, 1.0, 1.0, horizon=3)):
        tiny.solve(PRIOR)
        tiny.solve(PRIOR, seconds=1e-9)
    late = [Delayed(0.8, arrivals, 0.1, delay) for arrivals in (10, 1e2, 1e3, 1e4, 1e5, 1e6) for delay in (0.05, 1, 30)]
    cases = [(problem, Belief(n, 0.79 * n)) for problem in late for n in (2, 1e3, 1e6)]
    cases += [
        (Delayed(4767 / 6467, 3408, 0.1, 523 / 365), Belief(1300, 1033)),
        (Delayed(0.8, 658, 0.1, 1.4), Belief(338, 262)),
        (Delayed(0.8, 5, 1e-6, 0.2), PRIOR),
        *((Delayed(0.8, 1000, label_delay=0.5, horizon=horizon), PRIOR) for horizon in (100, 300, 10_000, 1_000_000)),
    ]
    slowest, rows = 0.0, []
    for problem, prior in cases:
        start = time.perf_counter()
        certificate = problem.solve(prior).certificate
        taken = time.perf_counter() - start
        slowest = max(slowest, taken)
        if prior.n in (2, 338, 1300):
            rows.append([str(problem), f"{prior.n:g}", seconds(taken), f"{certificate.value}"])
    report(
        f"solve(prior) at any size: {len(cases)} problems, the slowest took {seconds(slowest)}",
        ["problem", "prior n", "time", "value"],
        rows,
    )


def measure_offer_sizes() -> None:
    """The CPU time of ``solve`` with nine offers, after compilation, over sizes, priors and delays."""
    nine = Offers([0.2, 1, 4] * 3, [0.7] * 3 + [0.8] * 3 + [0.9] * 3)
    tiny = Delayed(offers=nine, arrivals=1, discount_rate=1, label_delay=1)
    for warm in (PRIOR, MixtureBelief.doubt(PRIOR, 0.5)):
        tiny.solve(warm)
        tiny.solve(warm, seconds=1e-9)
    slowest, rows, count = 0.0, [], 0
    for arrivals in (10, 100, 1_000, 20_000, 1_000_000):
        for delay in (0.05, 1.0, 30.0):
            for n in (2, 1e3, 1e6):
                belief = Belief(n, 0.79 * n)
                for prior in (belief, MixtureBelief.doubt(belief, 0.2)):
                    problem = Delayed(offers=nine, arrivals=arrivals, discount_rate=0.1, label_delay=delay)
                    start = time.process_time()
                    policy = problem.solve(prior)
                    taken = time.process_time() - start
                    slowest, count = max(slowest, taken), count + 1
                    if delay == 1.0 and n != 1e3:
                        kind = "doubt 0.2" if isinstance(prior, MixtureBelief) else "one belief"
                        proved = "proved" if policy.proves else "estimated"
                        value = f"{policy.value(prior)}"
                        rows.append([f"{arrivals:,} a year", f"{n:g}", kind, seconds(taken), value, proved])
    report(
        f"Nine offers at any size: {count} problems, the slowest took {seconds(slowest)} of CPU time",
        ["arrivals", "prior n", "prior", "CPU time", "value", ""],
        rows,
    )


def random_offer_problem(draw: random.Random) -> tuple[Belief | MixtureBelief, Offers, float, float, float]:
    """Return a prior, offers, arrivals, label delay and discount rate."""
    count, base = draw.randint(1, 9), draw.uniform(0.25, 0.92)
    spread, distance = draw.uniform(0.0, 1.8), draw.choice((0.0, 0.03, 0.1))
    amount = [math.exp(draw.gauss(0.0, spread)) for _ in range(count)]
    cost = [min(max(base + draw.gauss(0.0, 1.0) * distance, 0.05), 0.97) for _ in range(count)]
    share = [draw.uniform(0.1, 1.0) for _ in range(count)]
    offers = Offers.menu(amount, cost) if count > 1 and draw.random() < 0.3 else Offers(amount, cost, share)

    def belief() -> Belief:
        n = math.exp(draw.uniform(0.0, 5.5))
        mean = base + draw.gauss(0.0, 1.0) * math.sqrt(base * (1 - base) / (n + 1))
        return Belief(n, n * min(max(mean, 0.02), 0.98))

    prior: Belief | MixtureBelief = belief()
    kind = draw.random()
    if kind < 0.3:
        prior = MixtureBelief.doubt(belief(), draw.uniform(0.02, 0.5))
    elif kind < 0.45:
        prior = MixtureBelief((belief(), belief()), (1.0, draw.uniform(0.2, 2.0)))
    rate = draw.uniform(0.05, 1.0)
    arrivals = rate * math.exp(draw.uniform(1.5, 5.2))
    return prior, offers, arrivals, math.exp(draw.uniform(-3.0, 4.0)) / arrivals, rate


def measure_offer_errors(budget: float, seed: int) -> None:
    """How often the stated errors of estimates are false, over random problems that can be proved quickly."""
    draw, end = random.Random(seed), time.process_time() + budget
    problems = false = labels = outside = 0
    worst = 0.0
    while time.process_time() < end:
        problem = random_offer_problem(draw)
        try:
            proved = solve_delayed_offers(*problem, 1e-5, 0.4, rows=12)
        except TooLargeError:
            continue
        table, blocks = EstimatedLabels.solve(*problem)
        far = max(proved.value.lower - blocks.value, blocks.value - proved.value.upper, 0.0)
        problems += 1
        false += far > blocks.error
        worst = max(worst, far / blocks.error)
        for k in (0, 1, 4, 11):
            first, begin, count = proved.rows[k].tolist()
            for position in {0, count // 2, count - 1} if count else ():
                for pending in (0, 1, 2, 5, 20):
                    if pending < proved.table.shape[2]:
                        low, high = (max(float(side[begin + position, pending]), 0.0) for side in proved.table)
                        stated = table.bounds(first + position, k - first - position, pending)
                        labels += 1
                        outside += low > stated.upper or high < stated.lower
    print(
        f"{problems} problems: the stated error of the value is false in {false}; the largest error is {worst:.2f} of "
        f"the stated one; {outside} of {labels} labels are outside of their stated errors"
    )


def measure_segments() -> None:
    """The time for the limits of 100 segments, on all cores."""
    draw = random.Random(1)
    shares = [draw.uniform(0.2, 3.0) for _ in range(100)]
    beliefs = {}
    for i in range(100):
        n = 10 ** draw.uniform(0.3, 3.5)
        beliefs[f"s{i}"] = Belief(n, n * draw.uniform(0.7, 0.82))
    named = {f"s{i}": share / sum(shares) for i, share in enumerate(shares)}
    segments = Segments.of(named, Delayed(0.8, 50_000, 0.1, 1.2), beliefs)
    exposure_limits(Segments.of({"all": 1.0}, Delayed(0.8, 50, 0.1, 1), PRIOR))
    start = time.perf_counter()
    rows = exposure_limits(segments)
    taken, computed = time.perf_counter() - start, sum(row.not_computed is None for row in rows)
    print(f"100 segments, 50,000 arrivals a year: {seconds(taken)}, {computed} computed")


def measure_limit_cost(budget: float, seed: int) -> None:
    """What the first rejection costs as a limit, over random problems for so many seconds."""
    draw = random.Random(seed)
    end = time.perf_counter() + budget
    worst, cases, resuming = 0.0, 0, 0
    while time.perf_counter() < end:
        cost, rate = draw.choice((0.3, 0.5, 0.6, 0.7, 0.8, 0.9)), draw.choice((0.05, 0.1, 0.2, 0.5))
        arrivals = rate * 10 ** draw.uniform(0.8, 2.5)
        delay = 10 ** draw.uniform(-1.5, 1) / arrivals * draw.choice((1, 5, 20))
        n = draw.randint(1, 12)
        prior = Belief(n, n * cost * draw.choice((0.7, 0.8, 0.9, 0.95)))
        problem = Delayed(cost, arrivals, rate, delay)
        if problem.enclose(prior, tolerance=1e-4)[0].lower < 1e-6:
            continue
        found = limit_cost(problem, prior, 3e-8)
        cases += 1
        resuming += found.lower > 0
        if found.lower > worst:
            worst = found.lower
            print(f"{found.lower:.2e} … {found.upper:.2e} at {problem}, {prior}")
    print(
        f"{cases} problems, the first rejection is not the optimum in {resuming} of them; at worst it costs {worst:.2e}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] in (["limit-cost"], ["offer-errors"]):
        words = [*sys.argv[2:], "60", "0"]
        measure = measure_limit_cost if sys.argv[1] == "limit-cost" else measure_offer_errors
        measure(float(words[0]), int(words[1]) if len(sys.argv) > 3 else 0)
    else:
        main()

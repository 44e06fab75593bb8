"""Solving many segments: together on all cores against one by one, and what re-solving costs when shares move.

python -m benchmarks.segments
"""

from __future__ import annotations

import os
import time

import numpy as np

from benchmarks.measure import compare, seconds
from lenience import Belief, Discounted, Segments

SEGMENTS = 10_000


def population(volume: float, seed: int = 1) -> Segments:
    """Return segments with distinct shares, costs and priors, and this mean discounted volume."""
    generator = np.random.default_rng(seed)
    weights = generator.lognormal(0.0, 1.0, SEGMENTS)
    shares = weights / weights.sum()
    total = volume * SEGMENTS
    cost = generator.uniform(0.6, 0.9, SEGMENTS)
    mean = generator.uniform(0.4, 0.95, SEGMENTS)
    names = [f"segment {i}" for i in range(SEGMENTS)]
    return Segments.of(
        dict(zip(names, shares.tolist(), strict=True)),
        {name: Discounted(float(c), total / (1 + total)) for name, c in zip(names, cost, strict=True)},
        {name: Belief(2, 2 * float(m)) for name, m in zip(names, mean, strict=True)},
    )


def main() -> None:
    """Print the table."""
    Segments.of({"a": 1.0}, Discounted(0.8, 0.9), Belief(2, 1)).solve()  # compile
    print(f"{SEGMENTS:,} distinct segments, {os.cpu_count()} cores, every value to within 1e-9")
    print(
        f"{'mean discounted volume':>24} {'together':>10} {'(CPU)':>10} {'one by one':>12} {'refresh, shares −1%':>22}"
    )
    for volume in (10.0, 100.0, 1000.0):
        cells = population(volume)
        start, busy = time.perf_counter(), time.process_time()
        policies = cells.solve(rows=100)
        together, busy = time.perf_counter() - start, time.process_time() - busy
        sample = cells.cells[:: SEGMENTS // 200]
        start = time.perf_counter()
        for cell in sample:
            cell.own.solve(cell.prior, rows=100)
        alone = (time.perf_counter() - start) * SEGMENTS / len(sample)
        noise = np.random.default_rng(2).uniform(0.99, 1.0, SEGMENTS)
        moved = cells.with_shares({cell.name: cell.share * k for cell, k in zip(cells, noise.tolist(), strict=True)})
        start = time.perf_counter()
        _, report = policies.refresh(moved, allowed_loss=0.009)
        again = time.perf_counter() - start
        if volume == 1000.0:
            compare("10,000 segments of volume 1,000", seconds(together), "one by one", together / alone, "at most 8 s")
        times = f"{together:>8.2f} s {busy:>8.2f} s {alone:>10.2f} s {again:>8.2f} s"
        print(f"{volume:>24,.0f} {times} ({len(report.solved):,} solved again)")


if __name__ == "__main__":
    main()

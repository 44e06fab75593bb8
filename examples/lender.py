"""Turn a lender's two years of decisions into a belief for each kind of customer, policies, and a report.

    python examples/lender.py [FOLDER]

It writes loans.csv (made up here; use your own) and segments.html to FOLDER, by default a temporary one.
"""

from __future__ import annotations

import csv
import datetime as dt
import sys
import tempfile
from pathlib import Path

import numpy as np

import lenience as ln

KINDS = {"salaried": (0.62, 0.90), "self-employed": (0.33, 0.83), "students": (0.05, 0.86)}  # share, true repayment


def make_loans(file: Path, rows: int = 1500) -> None:
    """Write decisions: salaried applicants were approved, self-employed sometimes, students never."""
    rng = np.random.default_rng(7)
    names, shares = list(KINDS), [share for share, _ in KINDS.values()]
    with file.open("w", newline="") as text:
        out = csv.writer(text)
        out.writerow(["customer", "decided", "approved", "repaid"])
        for i in range(rows):
            name = names[rng.choice(len(names), p=shares)]
            day = dt.date(2024, 1, 1) + dt.timedelta(days=int(730 * i / rows))
            approved = name == "salaried" or (name == "self-employed" and rng.random() < 0.1)
            repaid = "yes" if rng.random() < KINDS[name][1] else "no"
            known = approved and day <= dt.date(2024, 12, 31)
            out.writerow([name, day, int(approved), repaid if known else ""])


def main(folder: Path) -> None:
    """Go from the history to segments, show which of them start, and write the report."""
    loans = folder / "loans.csv"
    make_loans(loans)
    history = ln.fit_history(
        loans, segment="customer", accepted="approved", outcome="repaid", time="decided", maturity=365
    )
    print(history.describe())

    # A repaid loan earns 150, another one loses 850. 750 people apply per year, and the interest rate is 10%.
    goal = ln.Discounted.from_rates(cost=850 / (850 + 150), arrivals=750, discount_rate=0.1)
    cells = history.divide(goal)
    for row in ln.starts(cells):
        print(f"{row.name} {row.reason}")
    policies = cells.solve()
    for cell in cells:
        print(f"{cell.name}: {policies[cell.name].explain(cell.prior)}")

    page = ln.reports.segments_report(policies, title="Two years of loans", history=history)
    (folder / "segments.html").write_text(page, encoding="utf-8")
    print(f"Wrote {folder / 'segments.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))

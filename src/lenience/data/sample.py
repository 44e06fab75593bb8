"""sample_loans: simulated loans of a small lender, to try every command on.

Nobody's data is in it. A loan's chance of being repaid follows its score, income and purpose. The old rule accepted
scores from 640 on, and a few below by hand. So, as at a real lender, the outcomes of most low scores were never seen.
Loans are repaid month by month: on the last day some are still running, and a few of those are late. Age and sex play
no part in who repays; sex is there to be monitored.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.validation import whole

LAST_DAY = dt.date(2026, 6, 30)
DAYS = 1095  # three years of applications
CUTOFF = 640
MONTHS = 24  # the term of every loan
GRADES = ((740, "A"), (700, "B"), (660, "C"), (620, "D"), (580, "E"))
PRICES = {"A": 0.09, "B": 0.13, "C": 0.17, "D": 0.21, "E": 0.26, "F": 0.32}  # yearly interest
PURPOSES = ("car", "home", "debt", "business", "other")
RISK = {"car": 0.2, "home": 0.3, "debt": -0.1, "business": -0.35, "other": 0.0}  # added to the log-odds


def sample_loans(rows: int = 3000, seed: int = 1) -> dict[str, list[Any]]:
    """Simulate loan applications of three years, with decisions, prices and outcomes.

    Parameters
    ----------
    rows : int, default 3000
        The number of applications.
    seed : int, default 1
        The seed: the same seed gives the same loans.

    Returns
    -------
    dict of str to list
        The columns by name: ``application``, ``decided`` (date), ``score`` (500 to 850), ``grade`` (A to F, by score),
        ``income`` (a year), ``purpose``, ``region``, ``amount``, ``rate`` (yearly interest), ``term`` ("24 months"),
        ``approved`` (yes or no), ``status`` (Fully Paid, Charged Off, Current or Late; empty if rejected), ``closed``
        (date; empty unless the loan has ended) and ``sex`` (f, m, or empty).

    Raises
    ------
    InputError
        If an argument is invalid.

    Examples
    --------
    >>> loans = sample_loans(200)
    >>> len(loans["score"]), sorted(set(loans["status"]))
    (200, ['', 'Charged Off', 'Current', 'Fully Paid', 'Late'])
    """
    count, chance = whole("rows", rows, least=1, most=10_000_000), np.random.default_rng(whole("seed", seed))
    score = np.clip(chance.normal(665, 55, count).round(), 500, 850).astype(int)
    income = np.exp(chance.normal(10.6, 0.45, count)).round(-2)
    purpose = chance.choice(PURPOSES, count, p=[0.3, 0.2, 0.25, 0.1, 0.15])
    amount = np.clip(np.exp(chance.normal(8.3, 0.7, count)).round(-2), 500, 25_000)
    grade = [next((grade for least, grade in GRADES if one >= least), "F") for one in score]
    rate = np.round([PRICES[one] for one in grade] + chance.normal(0, 0.01, count), 3)
    odds = 2.0 + 0.02 * (score - 660) + 0.4 * np.log(income / 40_000) + [RISK[one] for one in purpose]
    repaid = chance.random(count) < 1 / (1 + np.exp(-odds))
    accepted = (score >= CUTOFF) | (chance.random(count) < 0.04)
    day = np.sort(chance.integers(0, DAYS, count))
    share = np.where(repaid, 1.0, chance.beta(1.3, 2.0, count))  # of the term, until the loan ends
    ends = day + np.ceil(30.44 * MONTHS * share).astype(int) + np.where(repaid, 0, 90)
    known = accepted & (ends < DAYS)
    late = ~repaid & (ends - 90 < DAYS)
    status = np.select([~accepted, known & repaid, known, late], ["", "Fully Paid", "Charged Off", "Late"], "Current")
    return {
        "application": [f"A{i + 1:06d}" for i in range(count)],
        "decided": _dates(day, np.ones(count, dtype=np.bool_)),
        "score": score.tolist(),
        "grade": grade,
        "income": income.astype(int).tolist(),
        "purpose": purpose.tolist(),
        "region": chance.choice(["north", "south", "east", "west"], count).tolist(),
        "amount": amount.astype(int).tolist(),
        "rate": rate.tolist(),
        "term": [f"{MONTHS} months"] * count,
        "approved": np.where(accepted, "yes", "no").tolist(),
        "status": status.tolist(),
        "closed": _dates(ends, known),
        "sex": chance.choice(["f", "m", ""], count, p=[0.46, 0.5, 0.04]).tolist(),
    }


def _dates(days: NDArray[Any], given: NDArray[np.bool_]) -> list[str]:
    """Return the dates of days since the first one; empty where a date is not given."""
    first = LAST_DAY - dt.timedelta(days=DAYS - 1)
    return [
        (first + dt.timedelta(days=int(day))).isoformat() if known else ""
        for day, known in zip(days, given, strict=True)
    ]

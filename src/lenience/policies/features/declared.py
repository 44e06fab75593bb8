"""Declared features in front of a policy's model: applicants by name in, rows of numbers out.

It takes the place of a Pipeline of encoders (:mod:`lenience.policies.features.unseen`), with columns that are declared
instead of fitted. A policy with declared columns can be stored and served.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.validation import listed
from lenience.models.feature_columns import FeatureColumn, RowEncoding, applicant_list
from lenience.policies.features.unseen import Block


class DeclaredFeatures:
    """Encode applicants with declared columns, and say which of their categories are unseen.

    Parameters
    ----------
    columns
        The declared columns.
    """

    def __init__(self, columns: Any) -> None:
        given = listed("columns", columns, "a list of FeatureColumn")
        for column in given:
            if not isinstance(column, FeatureColumn):
                raise InputError("columns", column, "a list of FeatureColumn, such as FeatureColumn('income')")
        self.encoding = RowEncoding(given)
        self.blocks = [
            Block(block.start, block.stop, block.column.name)
            for block in self.encoding.blocks
            if block.column.type == "category"
        ]

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [column.name for column in self.encoding.columns]

    def encoded_names(self) -> list[str]:
        """Return the name of the feature that each encoded column belongs to."""
        names = [block.column.name for block in self.encoding.blocks for _ in range(block.start, block.stop)]
        return names + ["unseen categories"] * self.encoding.spare

    def applicants(self, X: Any) -> list[Any]:
        """Return rows as mappings from names to values."""
        return list(applicant_list(X, self.names))

    def fit_transform(self, X: Any) -> NDArray[np.float64]:
        """Return the encoded rows; nothing is fitted."""
        return self.encoding.rows(X)

    transform = fit_transform

    def where(self, X: Any, encoded: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which features have unseen categories, with a column for each block."""
        unseen = [(encoded[:, block.start : block.stop] == 0.0).all(axis=1) for block in self.blocks]
        return np.stack(unseen, axis=1) if unseen else np.zeros((len(encoded), 0), dtype=np.bool_)

    def counted(self, X: Any, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the encoded rows, which already count unseen categories."""
        return encoded

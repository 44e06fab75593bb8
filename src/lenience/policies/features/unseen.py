"""Unseen categories: values that first appear after the encoder in front of a model was fitted.

``OneHotEncoder(handle_unknown="ignore")`` writes zeros into all columns of a feature whose category it does not know.
A model would treat such a row like any other and be as confident about it. But no known category has zeros in all its
columns, so the encoder's output reveals the unseen ones. Each row gets one more column: the number of its unseen
categories. It is 0 in the rows that a policy starts with, so nothing is known about any other value until labels of
unseen categories come (:mod:`lenience.models.scaling` defines how far away such a row is).

The search covers encoders in a Pipeline, in a ColumnTransformer, and in either inside the other. An encoder that drops
a category is left alone, because it writes zeros for a known category.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Block(NamedTuple):
    """The columns of one feature's categories.

    Parameters
    ----------
    start, stop
        The first column, and the one after the last.
    name
        The name of the feature; None if it is not one of those given.
    """

    start: int
    stop: int
    name: str | None


class UnseenCategories:
    """Where the categories of a fitted Pipeline's output are, and which rows have unseen ones.

    Parameters
    ----------
    front
        The fitted Pipeline.
    names
        The names of its input features.
    """

    def __init__(self, front: Any, names: list[str]) -> None:
        self.blocks: list[Block] = []
        self.encoder: Any = None  # the steps up to the encoders, if others follow them
        for k in range(1, len(front.steps) + 1):
            blocks = _blocks(front[:k], names)
            self.blocks = [block if block.name in names else block._replace(name=None) for block in blocks]
            if self.blocks:
                self.encoder = front[:k] if k < len(front.steps) else None
                break

    def where(self, X: Any, encoded: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which features have unseen categories, with a column for each block, from the Pipeline's output."""
        codes = encoded if self.encoder is None else dense(self.encoder.transform(X))
        unseen = [~codes[:, block.start : block.stop].any(axis=1) for block in self.blocks]
        return np.stack(unseen, axis=1) if unseen else np.zeros((len(encoded), 0), dtype=np.bool_)

    def counted(self, X: Any, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows with one more column, the number of their unseen categories, if there are any encoders."""
        return np.column_stack((encoded, self.where(X, encoded).sum(axis=1))) if self.blocks else encoded


def dense(rows: Any) -> NDArray[np.float64]:
    """Return a transformer's output as an array, also if it is a sparse matrix or a frame."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def _blocks(transformer: Any, names: list[str] | None) -> list[Block]:
    """Return the blocks of a fitted transformer's output; ``names`` are its input features, if known."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder

    if isinstance(transformer, OneHotEncoder):
        return _encoded(transformer, names)
    if isinstance(transformer, Pipeline):
        last = transformer.steps[-1][1]
        return _blocks(last, _after(transformer, names) if len(transformer.steps) > 1 else names)
    if not isinstance(transformer, ColumnTransformer):
        return []
    blocks = []
    for label, part, columns in transformer.transformers_:
        start = transformer.output_indices_[label].start
        for block in _blocks(part, _picked(part, columns, names)):
            blocks.append(Block(start + block.start, start + block.stop, block.name))
    return blocks


def _encoded(encoder: Any, names: list[str] | None) -> list[Block]:
    known = getattr(encoder, "categories_", None)  # An encoder without columns is not fitted.
    if known is None or encoder.handle_unknown == "error" or encoder.drop is not None:
        return []
    rare = getattr(encoder, "infrequent_categories_", [None] * len(known))
    labels = names if names is not None and len(names) == len(known) else [None] * len(known)
    blocks, start = [], 0
    for categories, infrequent, name in zip(known, rare, labels, strict=True):
        # Infrequent categories share a column.
        stop = start + len(categories) - (0 if infrequent is None else len(infrequent) - 1)
        blocks.append(Block(start, stop, name))
        start = stop
    return blocks


def _after(pipeline: Any, names: list[str] | None) -> list[str] | None:
    """Return the names of the last step's input, if these are still the features that were given."""
    if names is None:
        return None
    try:
        inputs = [str(name) for name in pipeline[:-1].get_feature_names_out(names)]
    except (AttributeError, ValueError):  # A step does not define output names, or was fitted to other names.
        return None
    return inputs if set(inputs) <= set(names) else None


def _picked(part: Any, columns: Any, names: list[str] | None) -> list[str] | None:
    """Return the names of the columns that a ColumnTransformer gives to one of its parts."""
    own = getattr(part, "feature_names_in_", None)
    if names is None or own is not None:
        return None if own is None else [str(name) for name in own]
    try:
        return list(np.array(names, dtype=object)[columns])  # Columns are positions, a slice or a mask.
    except IndexError:
        return None

"""Unseen categories: values that came up after the encoder in front of a model was fitted.

``OneHotEncoder(handle_unknown="ignore")`` makes zeros in all columns of a feature whose category it does not know. To a
model that is an ordinary row, about which it would be as sure as about any other. But all its columns are zero for no
category that is known, so that unseen ones can be told from the encoder's output: rows get one more column, the number
of their categories that are unseen. It is 0 in the rows that a policy starts with, so that nothing is known of any
other value (:mod:`lenience.models.scaling` says how far away it is), until labels of unseen categories come.

Encoders are found in a Pipeline, in a ColumnTransformer, and where one is inside the other. An encoder that drops a
category makes zeros of one that is known, and is left alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Block(NamedTuple):
    """The columns, ``start`` up to ``stop``, of a feature's categories, and its name if it is one that was given."""

    start: int
    stop: int
    name: str | None


class UnseenCategories:
    """Where the categories of a fitted Pipeline's output are, and which of its rows have unseen ones."""

    def __init__(self, front: Any, names: list[str]) -> None:
        self.blocks: list[Block] = []
        self.encoder: Any = None  # the steps up to the encoders, where others come after them
        for k in range(1, len(front.steps) + 1):
            found = _blocks(front[:k], names)
            self.blocks = [block if block.name in names else block._replace(name=None) for block in found]
            if self.blocks:
                self.encoder = front[:k] if k < len(front.steps) else None
                break

    def where(self, X: Any, encoded: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which features have unseen categories, a column for each block; ``encoded`` is what the Pipeline made."""
        codes = encoded if self.encoder is None else dense(self.encoder.transform(X))
        found = [~codes[:, block.start : block.stop].any(axis=1) for block in self.blocks]
        return np.stack(found, axis=1) if found else np.zeros((len(encoded), 0), dtype=np.bool_)

    def counted(self, X: Any, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows with the number of their unseen categories in one more column, if there are any encoders."""
        return np.column_stack((encoded, self.where(X, encoded).sum(axis=1))) if self.blocks else encoded


def dense(rows: Any) -> NDArray[np.float64]:
    """What a transformer made, a sparse matrix or a frame included, as an array."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def _blocks(transformer: Any, names: list[str] | None) -> list[Block]:
    """The blocks of a fitted transformer's output; ``names`` are its input's features, where these are known."""
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
    found = []
    for label, part, columns in transformer.transformers_:
        start = transformer.output_indices_[label].start
        for block in _blocks(part, _picked(part, columns, names)):
            found.append(Block(start + block.start, start + block.stop, block.name))
    return found


def _encoded(encoder: Any, names: list[str] | None) -> list[Block]:
    known = getattr(encoder, "categories_", None)  # an encoder of no columns at all is not fitted
    if known is None or encoder.handle_unknown == "error" or encoder.drop is not None:
        return []
    rare = getattr(encoder, "infrequent_categories_", [None] * len(known))
    labels = names if names is not None and len(names) == len(known) else [None] * len(known)
    found, start = [], 0
    for categories, infrequent, name in zip(known, rare, labels, strict=True):
        stop = start + len(categories) - (0 if infrequent is None else len(infrequent) - 1)  # these share a column
        found.append(Block(start, stop, name))
        start = stop
    return found


def _after(pipeline: Any, names: list[str] | None) -> list[str] | None:
    """The names of what comes to the last step, if these are still the features that were given."""
    if names is None:
        return None
    try:
        found = [str(name) for name in pipeline[:-1].get_feature_names_out(names)]
    except (AttributeError, ValueError):  # a step that does not say, or that was fitted to other names
        return None
    return found if set(found) <= set(names) else None


def _picked(part: Any, columns: Any, names: list[str] | None) -> list[str] | None:
    """The names of the columns that a ColumnTransformer gives to one of its parts."""
    own = getattr(part, "feature_names_in_", None)
    if names is None or own is not None:
        return None if own is None else [str(name) for name in own]
    try:
        return list(np.array(names, dtype=object)[columns])  # by position, as a slice or as a mask
    except IndexError:
        return None

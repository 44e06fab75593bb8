"""Live models: they learn one label at a time and can be stored, restored and hashed.

Every model that the service runs has this interface, and the library uses the same objects. An applicant is a mapping
from the names of declared features to values (:mod:`lenience.models.feature_columns`), or the name of a cell for models
of cells. The state is bytes (:mod:`lenience.models.state_bytes`). A model that is restored from its state continues bit
for bit as if it had never been stored, on any machine: updates use strict arithmetic only.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from lenience.core.errors import InputError
from lenience.models.state_bytes import join, prefix, split


class ApplicantBelief(NamedTuple):
    """The belief about one applicant.

    Parameters
    ----------
    n : float
        The belief size: how many observations the estimate is worth.
    mean : float
        The expected success probability p̂.
    """

    n: float
    mean: float


@runtime_checkable
class LiveModel(Protocol):
    """A model that learns label by label, with a state that can be stored, restored and hashed."""

    def observe(self, applicant: Any, outcome: bool) -> None:
        """Learn one label.

        Parameters
        ----------
        applicant
            The features of the applicant, or the name of its cell.
        outcome : bool
            Whether it was a success.
        """

    def belief(self, applicant: Any) -> ApplicantBelief:
        """Return the belief about an applicant.

        Parameters
        ----------
        applicant
            The features of the applicant, or the name of its cell.

        Returns
        -------
        ApplicantBelief
            Belief size and expected success probability.
        """

    @property
    def frame(self) -> bytes:
        """The part of the state that never changes."""

    def numbers(self) -> bytes:
        """Return the part of the state that labels change.

        Returns
        -------
        bytes
            The numbers.
        """

    def state(self) -> bytes:
        """Return the state, from which :func:`restore` makes the same model.

        Returns
        -------
        bytes
            The frame and the numbers.
        """

    def state_hash(self) -> str:
        """Return the SHA-256 of the state.

        Returns
        -------
        str
            64 hexadecimal digits.
        """


class StoredModel:
    """Base class of live models: state and hash. A subclass defines ``_frame``, ``numbers`` and ``_restore``."""

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[StoredModel]]] = {}
    _frame_bytes: bytes | None = None
    _hash: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            StoredModel._kinds[cls.kind] = cls

    @property
    def frame(self) -> bytes:
        """The part of the state that never changes."""
        if self._frame_bytes is None:
            self._frame_bytes = self.kind.encode() + b"\n" + self._frame()
        return self._frame_bytes

    def state(self) -> bytes:
        """Return the state, from which :func:`restore` makes the same model.

        Returns
        -------
        bytes
            The frame and the numbers.
        """
        return join(self.frame, self.numbers())

    def state_hash(self) -> str:
        """Return the SHA-256 of :meth:`state`, in hexadecimal digits.

        Returns
        -------
        str
            64 digits.
        """
        if self._hash is None:  # Most of the bytes of a small model are in its frame, so hash them once.
            self._hash = hashlib.sha256(prefix(self.frame))
        digest = self._hash.copy()
        digest.update(self.numbers())
        return str(digest.hexdigest())

    @classmethod
    def from_state(cls, state: bytes) -> Self:
        """Return the model that a state describes.

        Parameters
        ----------
        state : bytes
            What :meth:`state` returned.

        Returns
        -------
        StoredModel
            The model, which continues bit for bit.

        Raises
        ------
        InputError
            If the bytes are not the state of such a model.
        """
        model = restore(state)
        if not isinstance(model, cls):
            raise InputError("state", model.kind, f"the state of a model of kind {cls.kind!r}")
        return model

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_hash": None}  # a running hash cannot be copied by pickle

    def numbers(self) -> bytes:
        """Return the part of the state that labels change.

        Returns
        -------
        bytes
            The numbers.
        """
        raise NotImplementedError

    def _frame(self) -> bytes:
        raise NotImplementedError

    @classmethod
    def _restore(cls, frame: bytes, numbers: bytes) -> Self:
        raise NotImplementedError


def restore(state: bytes) -> Any:
    """Return the live model of any kind that a state describes.

    Parameters
    ----------
    state : bytes
        What ``state()`` of a live model returned.

    Returns
    -------
    LiveModel
        The model, which continues bit for bit.

    Raises
    ------
    InputError
        If the bytes are not the state of a model.

    Examples
    --------
    >>> from lenience.models import CellCounts, OwnCounts
    >>> model = CellCounts(OwnCounts(2), ["north", "south"])
    >>> model.observe("north", True)
    >>> again = restore(model.state())
    >>> again.belief("north"), again.state_hash() == model.state_hash()
    (ApplicantBelief(n=3.0, mean=0.6666666666666666), True)
    """
    from lenience.models import stored_kinds  # noqa: F401

    frame, numbers = split(state)
    kind, _, described = frame.partition(b"\n")
    name = kind.decode("ascii", "replace")
    if name not in StoredModel._kinds:
        raise InputError.unknown_name("state", name, sorted(StoredModel._kinds), label="the kind of the stored model")
    return StoredModel._kinds[name]._restore(described, numbers)


def checked_outcome(outcome: object) -> float:
    """Return an outcome as 0.0 or 1.0."""
    if isinstance(outcome, bool | np.bool_ | int | float | np.number) and outcome in (0, 1):
        return float(outcome)
    raise InputError("outcome", outcome, "true or false")

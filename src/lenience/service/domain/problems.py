"""What can go wrong with a request: each with its HTTP status, a title and one sentence."""

from __future__ import annotations

import logging
from collections.abc import Sequence

log = logging.getLogger("lenience.service")


class Problem(Exception):  # noqa: N818  (the word of RFC 9457)
    """A request that is not carried out."""

    status = 500
    title = "Internal error"
    logged = False

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    @property
    def told(self) -> str:
        """All of it, for whoever runs the service: who only calls it is told the detail."""
        cause = getattr(self, "cause", None)
        return self.detail if cause is None else f"{self.detail} ({cause})"


class BadRequest(Problem):
    """The request cannot be understood, or a value in it cannot be used."""

    status = 400
    title = "Bad request"


class Unauthenticated(Problem):
    """No valid key."""

    status = 401
    title = "Key needed"


class Forbidden(Problem):
    """A key without the role."""

    status = 403
    title = "Not allowed"


class NotFound(Problem):
    """No such policy, version or decision."""

    status = 404
    title = "Not found"


class Conflict(Problem):
    """The request contradicts what is recorded already."""

    status = 409
    title = "Conflict"


class Unsupported(Problem):
    """A body of a kind that its endpoint does not read."""

    status = 415
    title = "Unsupported media type"


class Damaged(Problem):
    """The database is no database, or damaged: a backup is needed."""

    status = 503
    title = "Unavailable"


class Unavailable(Problem):
    """The database cannot be written or reached now; nothing was recorded, and the request may be tried again.

    It is ``lost`` if a connection that had worked was found dead: a new one may do. The ``cause`` is for the log.
    """

    status = 503
    title = "Unavailable"

    def __init__(self, detail: str, *, lost: bool = False, cause: str | None = None) -> None:
        super().__init__(detail)
        self.lost = lost
        self.cause = cause


def log_cause(error: Problem) -> None:
    """Say in the log what a caller is not told: once, by the writer for all it could not write, or at the door."""
    if error.status == 503 and not error.logged:
        error.logged = True
        fields = {"detail": error.detail, "cause": getattr(error, "cause", None)}
        log.error("database unavailable", extra={"fields": fields})


def log_unforeseen(error: Exception, **fields: object) -> None:
    """Say in the log what nobody foresaw, in full: once, by the writer if it was met there, or at the door."""
    if not getattr(error, "logged", False):
        vars(error)["logged"] = True
        log.error("unforeseen error", exc_info=error, extra={"fields": fields})


NONE_OF_THESE = "there is none of these decisions"
THIS_REFERENCE = "this reference"  # not the reference itself: answers are kept, and personal data is not


def unknown_decision(identity: str) -> NotFound:
    """That there is no such decision.

    >>> unknown_decision("17").detail
    "there is no decision '17'"
    """
    shown = repr(identity)
    return NotFound(f"there is no decision {shown if len(shown) <= 80 else shown[:77] + '...'}")


def not_one(accepted: Sequence[str]) -> NotFound | Conflict:
    """That not one accepted decision has a reference, but none or several.

    >>> not_one([]).detail, not_one(["a", "b"]).detail
    ('no accepted decision has this reference', '2 accepted decisions have this reference: give their ids (a, b)')
    """
    if not accepted:
        return NotFound(f"no accepted decision has {THIS_REFERENCE}")
    some = ", ".join(accepted[:3]) + (", …" if len(accepted) > 3 else "")
    return Conflict(f"{len(accepted)} accepted decisions have {THIS_REFERENCE}: give their ids ({some})")

"""What can go wrong with a request: each with its HTTP status, a title and one sentence."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec import UNSET

from lenience.core.errors import InputError

log = logging.getLogger("lenience.service")


class Problem(Exception):  # noqa: N818  (the word of RFC 9457)
    """A request that is not carried out.

    Parameters
    ----------
    detail
        What is wrong, as a sentence.
    code
        What kind of problem it is; the code of its class if none is given. Codes are listed in docs/service.md and do
        not change between versions.
    field
        The field at fault, as the request names it.
    value
        What was given. Leave it out where it may be personal data or a secret.
    allowed
        What is allowed, as a phrase.
    """

    status = 500
    title = "Internal error"
    code = "internal_error"
    logged = False

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        field: str | None = None,
        value: object = UNSET,
        allowed: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        if code is not None:
            self.code = code
        self.field = field
        self.value = value
        self.allowed = allowed

    @property
    def told(self) -> str:
        """All of it, for whoever runs the service: who only calls it is told the detail."""
        cause = getattr(self, "cause", None)
        return self.detail if cause is None else f"{self.detail} ({cause})"


class BadRequest(Problem):
    """The request cannot be understood, or a value in it cannot be used."""

    status = 400
    title = "Bad request"
    code = "invalid_request"

    @classmethod
    def of(cls, error: InputError) -> BadRequest:
        """Return the problem for an error of the library."""
        return cls(str(error), code=error.code, field=error.field, value=error.value, allowed=error.allowed)


class Unauthenticated(Problem):
    """No valid key."""

    status = 401
    title = "Key needed"
    code = "unauthenticated"


class Forbidden(Problem):
    """A key without the role."""

    status = 403
    title = "Not allowed"
    code = "forbidden"


class NotFound(Problem):
    """No such policy, version or decision."""

    status = 404
    title = "Not found"
    code = "not_found"


class Conflict(Problem):
    """The request contradicts what is recorded already."""

    status = 409
    title = "Conflict"
    code = "conflict"


class Unsupported(Problem):
    """A body of a kind that its endpoint does not read."""

    status = 415
    title = "Unsupported media type"
    code = "unsupported_media_type"


class Damaged(Problem):
    """The database is no database, or damaged: a backup is needed."""

    status = 503
    title = "Unavailable"
    code = "database_damaged"


class Unavailable(Problem):
    """The database cannot be written or reached now; nothing was recorded, and the request may be tried again.

    It is ``lost`` if a connection that had worked was found dead: a new one may do. The ``cause`` is for the log.
    """

    status = 503
    title = "Unavailable"
    code = "unavailable"

    def __init__(self, detail: str, *, code: str | None = None, lost: bool = False, cause: str | None = None) -> None:
        super().__init__(detail, code=code)
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


UNKNOWN_DECISION = "unknown_decision"
UNKNOWN_DECISIONS = "unknown_decisions"
UNKNOWN_REFERENCE = "unknown_reference"
AMBIGUOUS_REFERENCE = "ambiguous_reference"


def unknown_decision(identity: str) -> NotFound:
    """That there is no such decision.

    >>> unknown_decision("17").detail
    "there is no decision '17'"
    """
    shown = repr(identity)
    detail = f"there is no decision {shown if len(shown) <= 80 else shown[:77] + '...'}"
    return NotFound(detail, code=UNKNOWN_DECISION, field="id")


def not_one(accepted: Sequence[str]) -> NotFound | Conflict:
    """That not one accepted decision has a reference, but none or several.

    >>> not_one([]).detail, not_one(["a", "b"]).detail
    ('no accepted decision has this reference', '2 accepted decisions have this reference: give their ids (a, b)')
    """
    if not accepted:
        # Not the reference itself: answers are stored, and personal data must not be.
        return NotFound("no accepted decision has this reference", code=UNKNOWN_REFERENCE, field="reference")
    some = ", ".join(accepted[:3]) + (", …" if len(accepted) > 3 else "")
    detail = f"{len(accepted)} accepted decisions have this reference: give their ids ({some})"
    return Conflict(detail, code=AMBIGUOUS_REFERENCE, field="reference")

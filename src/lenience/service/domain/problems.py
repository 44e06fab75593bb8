"""The problems a request can meet, each with an HTTP status, a title and a sentence."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec import UNSET

from lenience.core.errors import InputError

log = logging.getLogger("lenience.service")


class Problem(Exception):  # noqa: N818  (the word of RFC 9457)
    """A request that the service rejects.

    Parameters
    ----------
    detail
        What is wrong, as a sentence.
    code
        What kind of problem it is; the code of its class if none is given. Codes are listed in docs/service.md and do
        Kind of problem, by default the code of the class. Codes are listed in docs/service.md and do
    field
        The invalid field, as the request names it.
    value
        The value given. Leave it out if it may be personal data or a secret.
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
    def full_detail(self) -> str:
        """The detail and the cause, for the operator of the service. Callers see only the detail."""
        cause = getattr(self, "cause", None)
        return self.detail if cause is None else f"{self.detail} ({cause})"


class BadRequest(Problem):
    """The request cannot be read, or holds an invalid value."""

    status = 400
    title = "Bad request"
    code = "invalid_request"

    @classmethod
    def of(cls, error: InputError) -> BadRequest:
        """Return the problem for an error of the library."""
        return cls(str(error), code=error.code, field=error.field, value=error.value, allowed=error.allowed)


class Unauthenticated(Problem):
    """The request has no valid key."""

    status = 401
    title = "Key needed"
    code = "unauthenticated"


class Forbidden(Problem):
    """The key lacks the required role."""

    status = 403
    title = "Not allowed"
    code = "forbidden"


class NotFound(Problem):
    """The policy, version or decision does not exist."""

    status = 404
    title = "Not found"
    code = "not_found"


class Conflict(Problem):
    """The request contradicts what is already recorded."""

    status = 409
    title = "Conflict"
    code = "conflict"


class Unsupported(Problem):
    """The endpoint does not read bodies of this media type."""

    status = 415
    title = "Unsupported media type"
    code = "unsupported_media_type"


class Damaged(Problem):
    """The file is damaged or is not a database. Restore a backup."""

    status = 503
    title = "Unavailable"
    code = "database_damaged"


class UnreadableText(Damaged):
    """A text in the database is not valid UTF-8. Other rows are not affected."""


class Unavailable(Problem):
    """The database cannot be reached or written now. Nothing was recorded, so the request can be retried.

    ``lost`` is true if a working connection broke: a new connection may succeed. ``cause`` is for the log only.
    """

    status = 503
    title = "Unavailable"
    code = "unavailable"

    def __init__(self, detail: str, *, code: str | None = None, lost: bool = False, cause: str | None = None) -> None:
        super().__init__(detail, code=code)
        self.lost = lost
        self.cause = cause


def log_cause(error: Problem) -> None:
    """Log the cause of a database problem, which callers do not see. Each error is logged once."""
    if error.status == 503 and not error.logged:
        error.logged = True
        fields = {"detail": error.detail, "cause": getattr(error, "cause", None)}
        log.error("database unavailable", extra={"fields": fields})


def log_unforeseen(error: Exception, **fields: object) -> None:
    """Log an unexpected error in full. Each error is logged once."""
    if not getattr(error, "logged", False):
        vars(error)["logged"] = True
        log.error("unforeseen error", exc_info=error, extra={"fields": fields})


UNKNOWN_DECISION = "unknown_decision"
UNKNOWN_DECISIONS = "unknown_decisions"
UNKNOWN_REFERENCE = "unknown_reference"
AMBIGUOUS_REFERENCE = "ambiguous_reference"


def unknown_decision(identity: str) -> NotFound:
    """Return the problem for a decision that does not exist.

    >>> unknown_decision("17").detail
    "there is no decision '17'"
    """
    shown = repr(identity)
    detail = f"there is no decision {shown if len(shown) <= 80 else shown[:77] + '...'}"
    return NotFound(detail, code=UNKNOWN_DECISION, field="id")


def not_one_decision(decisions: Sequence[str]) -> NotFound | Conflict:
    """Return the problem for a reference that no decision has, or that several have.

    >>> not_one_decision([]).detail
    'no decision has this reference'
    """
    if not decisions:
        return NotFound("no decision has this reference", code=UNKNOWN_REFERENCE, field="reference")
    some = ", ".join(decisions[:3]) + (", …" if len(decisions) > 3 else "")
    detail = f"{len(decisions)} decisions have this reference: give their ids ({some})"
    return Conflict(detail, code=AMBIGUOUS_REFERENCE, field="reference")


def not_one(accepted: Sequence[str]) -> NotFound | Conflict:
    """Return the problem for a reference that no accepted decision has, or that several have.

    >>> not_one([]).detail, not_one(["a", "b"]).detail
    ('no accepted decision has this reference', '2 accepted decisions have this reference: give their ids (a, b)')
    """
    if not accepted:
        # Do not repeat the reference: answers are stored, and personal data must not be.
        return NotFound("no accepted decision has this reference", code=UNKNOWN_REFERENCE, field="reference")
    some = ", ".join(accepted[:3]) + (", …" if len(accepted) > 3 else "")
    detail = f"{len(accepted)} accepted decisions have this reference: give their ids ({some})"
    return Conflict(detail, code=AMBIGUOUS_REFERENCE, field="reference")

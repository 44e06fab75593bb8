"""What people write in files: the words that mean yes, no and nothing, and what looks like a date."""

from __future__ import annotations

import re

SUCCESS = ("1", "1.0", "true", "t", "yes", "y", "ok", "success", "good", "paid", "repaid", "fully paid", "won")
FAILURE = ("0", "0.0", "false", "f", "no", "n", "failure", "bad", "default", "defaulted", "charged off", "lost")
YES = (*SUCCESS, "accept", "accepted", "approve", "approved", "granted")
NO = (*FAILURE, "reject", "rejected", "declined", "denied", "refused")
ABROAD = {
    **dict.fromkeys(("ja", "oui", "sí", "si", "sì", "sim", "tak", "ano"), True),
    **dict.fromkeys(("nein", "nee", "nej", "nei", "non", "não", "nao", "nie", "ne"), False),
}  # yes and no in other languages: to guess by where a person sees the guess, since they also answer "did it fail?"
NOTHING = ("", "nan", "null", "none", "na", "n/a")


def yes_or_no(text: str) -> bool | None:
    """Whether a word means yes or no; None where it is neither.

    >>> yes_or_no(" Repaid "), yes_or_no("0"), yes_or_no("soon")
    (True, False, None)
    """
    word = text.strip().lower()
    return True if word in YES else False if word in NO else None


def looks_like_date(text: str) -> bool:
    """Whether a text looks like a date.

    >>> [looks_like_date(text) for text in ("2024-01-31", "31.1.2024", "2024-01", "north", "612")]
    [True, True, True, False, False]
    """
    return re.match(r"\s*(\d{4}-\d{1,2}(-\d{1,2})?([ T].*)?|\d{1,2}\.\d{1,2}\.\d{4})\s*\Z", text) is not None

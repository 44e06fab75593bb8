"""Guess what a value of an outcome or a decision means, for a person to check."""

from __future__ import annotations

import re
from typing import Literal

from lenience.files.vocabulary import ABROAD, MISSING, yes_or_no

Kind = Literal["accepted", "outcome"]
# Words in the names of columns in which 1 means failure.
TURNED = ("default", "bad", "charged", "delinq", "fail", "loss", "fraud", "ausfall", "défaut", "impago", "verlust")
PENDING = ("current", "pending", "open", "active", "in progress", "running", "ongoing", "unknown", *MISSING)
PLAIN = ("1", "1.0", "true", "t", "yes", "y", "0", "0.0", "false", "f", "no", "n", *ABROAD)


def guess_meaning(kind: Kind, column: str, value: str) -> str:
    """Guess whether a value means yes, no, not known yet ("none") or none of these ("bad").

    >>> guess_meaning("outcome", "repaid", "1"), guess_meaning("outcome", "defaulted", "1")
    ('yes', 'no')
    >>> guess_meaning("outcome", "status", "Charged Off"), guess_meaning("outcome", "status", "Current")
    ('no', 'none')
    >>> guess_meaning("outcome", "status", "Late (31-120 days)"), guess_meaning("outcome", "status", "In Grace Period")
    ('none', 'none')
    >>> guess_meaning("accepted", "bewilligt", "nein"), guess_meaning("outcome", "Ausfall", "Nein")
    ('no', 'yes')
    >>> guess_meaning("outcome", "status", "??"), guess_meaning("accepted", "decision", "withdrawn")
    ('bad', 'bad')
    """
    word = re.sub(r"[\s_-]+", " ", value.strip().lower())
    turned = kind == "outcome" and any(part in column.lower() for part in TURNED) and word in PLAIN
    positive = yes_or_no(word)
    if positive is None:
        positive = ABROAD.get(word)
    if positive is not None:
        return "yes" if positive != turned else "no"
    is_open = word in PENDING or re.match(r"(late|in grace)\b", word) is not None
    return "none" if kind == "outcome" and is_open else "bad"

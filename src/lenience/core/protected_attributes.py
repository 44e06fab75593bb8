"""Protected attributes: names by which decisions must not be made unless somebody says that they may.

Laws name different attributes. The list holds those that laws against discrimination commonly name, e.g. the Equal
Credit Opportunity Act in the United States and the directives of the European Union. It is a reminder: a name that is
not in it may still be protected, and a column may stand for a protected attribute without naming it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lenience.core.errors import InputError

WORDS = {
    *("sex", "gender", "race", "racial", "ethnic", "ethnicity", "religion", "religious", "creed", "nationality"),
    *("citizenship", "disability", "disabled", "pregnant", "pregnancy", "caste"),
}
PHRASES = {
    *("national origin", "country of birth", "birth country", "skin color", "skin colour", "marital status"),
    *("sexual orientation", "sexual identity", "mother tongue", "civil status", "date of birth", "birth date"),
    *("birthdate", "birth year", "year of birth", "dob"),
}
# An age is protected if it is that of a person. The age of an account or of a car is not.
PERSONS = {"applicant", "borrower", "customer", "client", "person", "candidate", "patient", "employee", "member"}
AGES = {"band", "group", "bracket", "range", "bin", "class", "years"}


def words_of(name: str) -> list[str]:
    """Return the words of a name in small letters.

    >>> words_of("Applicant_Sex"), words_of("ageBand")
    (['applicant', 'sex'], ['age', 'band'])
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W_]+", spaced.casefold())


def same_attribute(first: str, second: str) -> bool:
    """Return whether two names mean the same attribute: they differ at most in case, spaces and punctuation.

    >>> same_attribute("age_band", "Age band"), same_attribute("age", "wage")
    (True, False)
    """
    return words_of(first) == words_of(second)


def is_protected(name: str) -> bool:
    """Return whether a name is that of an attribute which laws against discrimination commonly protect.

    Parameters
    ----------
    name : str
        The name of a column, a feature or an attribute.

    Returns
    -------
    bool
        Whether the name says so. Many protected attributes have other names.

    Examples
    --------
    >>> [name for name in ("sex", "applicant_race", "age", "age_of_account", "score") if is_protected(name)]
    ['sex', 'applicant_race', 'age']
    """
    words = words_of(name)
    if WORDS & set(words):
        return True
    text = " ".join(words)
    if any(phrase in text for phrase in PHRASES if " " in phrase) or set(words) & PHRASES:
        return True
    rest = [word for word in words if word != "age"]
    return len(rest) < len(words) and all(word in PERSONS or word in AGES for word in rest)


def protected_among(names: Iterable[str], monitored: Iterable[str] = ()) -> list[str]:
    """Return the names that are protected: by their own words, or because they are monitored.

    Parameters
    ----------
    names : iterable of str
        The names that decisions are made by.
    monitored : iterable of str, optional
        The names of monitored attributes.

    Returns
    -------
    list of str
        Those of ``names`` that are protected, in order.

    Examples
    --------
    >>> protected_among(["score", "region", "sex"], monitored=["Region"])
    ['region', 'sex']
    """
    known = list(monitored)
    return [name for name in names if is_protected(name) or any(same_attribute(name, other) for other in known)]


def require_consent(
    names: Iterable[str],
    monitored: Iterable[str] = (),
    *,
    decide_by_protected: bool,
    field: str,
    monitor: str,
    allow: str,
) -> list[str]:
    """Return the protected attributes that decisions are made by, or raise InputError if nobody said that they may be.

    Parameters
    ----------
    names : iterable of str
        The names that decisions are made by.
    monitored : iterable of str, optional
        The names of monitored attributes.
    decide_by_protected : bool
        Whether the user has said that decisions may be made by protected attributes.
    field : str
        The option or field that names them, for the message.
    monitor, allow : str
        What to type to monitor them instead, and what to type to decide by them anyway.

    Returns
    -------
    list of str
        The protected ones among ``names``.

    Raises
    ------
    InputError
        If there are any and ``decide_by_protected`` is false.

    Examples
    --------
    >>> require_consent(["sex"], decide_by_protected=False, field="segment", monitor="--monitor sex", allow="--yes")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: segment must not name 'sex', a protected attribute or one that you monitor, ...
    >>> require_consent(["sex"], decide_by_protected=True, field="segment", monitor="", allow="")
    ['sex']
    """
    protected = protected_among(names, monitored)
    if protected and not decide_by_protected:
        shown = ", ".join(map(repr, protected[:5]))
        raise InputError.because(
            f"must not name {shown}, a protected attribute or one that you monitor, because decisions would differ "
            "by it",
            field,
            value=protected[0],
            hint=f"To measure fairness without deciding by it, use {monitor}. If the law allows you to decide by it, "
            f"add {allow}.",
            code="decides_by_protected",
        )
    return protected


def describe_consent(names: Iterable[str]) -> str:
    """Return the warning that decisions are made by protected attributes.

    >>> describe_consent(["race"])
    'Decisions differ by race. In many countries a lender may not decide by a protected attribute. ...'
    """
    return (
        f"Decisions differ by {', '.join(names)}. In many countries a lender may not decide by a protected attribute. "
        "Use it for research, or where the law allows it."
    )

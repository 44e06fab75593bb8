"""Words for yes, no and missing, and numbers in local notation."""

from __future__ import annotations

import re

SUCCESS = (
    *("1", "1.0", "true", "t", "yes", "y", "ok", "success", "good", "paid", "repaid", "fully paid", "won"),
    *("fully-paid", "fully_paid", "paid off", "paid-off", "paid_off", "paid in full"),
)
FAILURE = (
    *("0", "0.0", "false", "f", "no", "n", "failure", "bad", "default", "defaulted", "charged off", "lost"),
    *("charged-off", "charged_off", "charge off", "charge-off", "written off", "written-off", "written_off"),
)
YES = (*SUCCESS, "accept", "accepted", "approve", "approved", "granted")
NO = (*FAILURE, "reject", "rejected", "declined", "denied", "refused")
ABROAD = {
    **dict.fromkeys(("ja", "oui", "sí", "si", "sì", "sim", "tak", "ano"), True),
    **dict.fromkeys(("nein", "nee", "nej", "nei", "non", "não", "nao", "nie", "ne"), False),
}  # yes and no in other languages: only for guesses that a person checks, because they also answer "did it fail?"
THOUSANDS = r"[-+]?[1-9]\d{0,2}(,\d{3})+"  # e.g. 50,000: the comma separates thousands or is a decimal comma
NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
CODES = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF INR JPY KES KRW MXN NGN NOK NZD PLN RON SEK SGD THB TRY USD ZAR"
CURRENCY = rf"([$€£¥₹₦]|{CODES.replace(' ', '|')})"  # beside an amount: a sign or a code
WITH_THOUSANDS = r"^[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$"
MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "<na>")  # the words that every reader takes as missing


def yes_or_no(text: str) -> bool | None:
    """Return whether a word means yes (True) or no (False); None if it means neither.

    Examples
    --------
    >>> yes_or_no(" Repaid "), yes_or_no("0"), yes_or_no("soon")
    (True, False, None)
    """
    word = text.strip().lower()
    return True if word in YES else False if word in NO else None


def is_missing(value: object) -> bool:
    """Return whether a cell is missing: None, NaN, or one of the words that people write for it.

    >>> [is_missing(value) for value in (None, float("nan"), " N/A ", "?", "none", 0, "nobody")]
    [True, True, True, True, True, False, False]
    """
    return value is None or value != value or str(value).strip().lower() in MISSING


def how_to_write(text: str, whole: bool = False) -> str:
    """Return how to write a number that has commas, spaces or a percent sign; empty if the text is no such number.

    Examples
    --------
    >>> how_to_write("0,8"), how_to_write("80%"), how_to_write("1.234,5")
    ('Write 0.8.', 'Write 0.8.', 'Write 1234.5.')
    >>> how_to_write("50,000")
    'Leave the comma out (50000), or write a point if it is a decimal comma (50.000).'
    >>> how_to_write("1,250,000"), how_to_write("50,000", whole=True), how_to_write("much")
    ('Leave the commas out (1250000).', 'Leave the comma out (50000).', '')
    """
    if percents := re.fullmatch(r"([-+]?\d*[.,]?\d+) ?%", text):
        return f"Write {float(percents[1].replace(',', '.')) / 100:.12g}."
    if re.fullmatch(THOUSANDS, text):
        commas = text.count(",")
        advice = f"Leave the comma{'s' if commas > 1 else ''} out ({text.replace(',', '')})"
        decimal = "" if whole or commas > 1 else f", or write a point if it is a decimal comma ({with_point(text)})"
        return f"{advice}{decimal}."
    if re.fullmatch(r"[-+]?[1-9]\d{0,2}( \d{3})+", text):
        return f"Write {text.replace(' ', '')}."
    if re.fullmatch(r"[-+]?\d+(\.\d{3})*,\d+", text) and not whole:
        return f"Write {with_point(text)}."
    if re.fullmatch(r"[-+]?\d+(,\d{3})+\.\d+", text):
        return f"Write {text.replace(',', '')}."
    return ""


def with_point(text: str) -> str:
    """Return a number that has a decimal comma, and perhaps points between thousands, with a decimal point."""
    return text.replace(".", "").replace(",", ".")


def read_number(text: str) -> float | None:
    """Return the number that a cell means, also with a currency, commas between thousands or a percent sign.

    >>> [read_number(text) for text in ("$1,200.50", "900 EUR", "12.5 %", "1e3", "Jan 2024", "1,2")]
    [1200.5, 900.0, 0.125, 1000.0, None, None]
    """
    clean = re.sub(rf"^{CURRENCY} *| *{CURRENCY}$", "", text.strip())
    percents = clean.endswith("%")
    clean = clean.removesuffix("%").strip()
    if re.fullmatch(THOUSANDS + r"(\.\d*)?", clean):
        clean = clean.replace(",", "")
    if not re.match(NUMBER, clean):
        return None
    return float(clean) / 100 if percents else float(clean)

"""Decisions in plain words."""

from __future__ import annotations

from lenience.belief import Belief


def percent(rate: float, decimals: int = 1) -> str:
    """A rate as a percentage with at most so many decimals.

    >>> percent(0.8), percent(0.6544)
    ('80 %', '65.4 %')
    """
    text = f"{100 * rate:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def percents(*rates: float) -> list[str]:
    """Rates as percentages, with as many decimals as it takes to tell different ones apart.

    >>> percents(0.7998, 0.8, 0.79974)
    ['79.98 %', '80 %', '79.97 %']
    """
    for decimals in range(1, 8):
        texts = [percent(rate, decimals) for rate in rates]
        if len(set(texts)) == len(set(rates)):
            break
    return texts


def amount(number: float) -> str:
    """A count, which need not be whole.

    >>> amount(10000.0), amount(0.5)
    ('10,000', '0.5')
    """
    return f"{round(number, 6):,.10g}"


def plural(number: float, one: str, several: str | None = None) -> str:
    """The word that goes with a number.

    >>> plural(1, "outcome"), plural(0, "outcome"), plural(2, "success", "successes")
    ('outcome', 'outcomes', 'successes')
    """
    return one if number == 1 else several or f"{one}s"


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its word.

    >>> counted(1, "outcome"), counted(1200, "outcome")
    ('1 outcome', '1,200 outcomes')
    """
    return f"{number:,} {plural(number, one, several)}"


def duration(years: float) -> str:
    """A time in the largest unit that it fills.

    >>> duration(1), duration(0.25), duration(1 / 52)
    ('1 year', '3 months', '1 week')
    """
    for size, unit in ((1.0, "year"), (1 / 12, "month"), (1 / 52, "week")):
        count = years / size
        if count > 0.995:
            return f"{count:.3g} {unit}{'' if abs(count - 1) < 0.005 else 's'}"
    return f"{years * 365:.2g} days"


def observed(belief: Belief, rate: str | None = None) -> str:
    """What was observed: '7 of 10 succeeded (70 %)'."""
    return f"{amount(belief.s)} of {amount(belief.n)} succeeded ({rate or percent(belief.mean)})"


def describe_stopping(belief: Belief, cost: float, accepted: bool, continuation: float, threshold: float | None) -> str:
    """Why a belief is accepted, or stopped at for good; the threshold may be one that is not known."""
    mean, even, *known = percents(belief.mean, cost, *([] if threshold is None else [threshold]))
    seen = observed(belief, mean)
    size = f"{amount(belief.n)} observation{'' if belief.n == 1 else 's'}"
    if accepted and belief.mean > cost:
        return f"Accept: {seen}, above the {even} break-even. Accepting is worth {continuation:.3g} in all."
    if accepted:
        short = "not above" if mean == even else "short of"
        enough = f"above the {known[0]} that is enough" if known else "enough"
        return (
            f"Accept: {seen}, {short} the {even} break-even, but {enough} after {size}: what an acceptance teaches is "
            f"worth more than its expected loss of {cost - belief.mean:.2g}. Accepting is worth {continuation:.3g} in "
            "all."
        )
    asked = f"not above the {known[0]} that is asked" if known else "less than is asked"
    return (
        f"Reject: {seen}, {asked} after {size} (break-even {even}): even counting what could be learnt, accepting is "
        f"expected to lose {-continuation:.3g}. The rejection is final, "
        "for nothing more is learnt without acceptances."
    )


def count(number: float) -> str:
    """How many, of what need not be whole: three digits, or all before the point with separators.

    >>> count(2.5), count(84.31), count(1083.2)
    ('2.5', '84.3', '1,083')
    """
    return f"{number:.3g}" if number < 999.5 else f"{number:,.0f}"

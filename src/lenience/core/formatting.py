"""Format numbers, and describe decisions in words."""

from __future__ import annotations

from collections.abc import Sequence

from lenience.core.belief import Belief
from lenience.core.money import UNITS, Money


def percent(rate: float, decimals: int = 1) -> str:
    """Format a rate as a percentage with at most the given number of decimals.

    The percent sign follows the number without a space, everywhere: 79.3%.

    >>> percent(0.8), percent(0.6544)
    ('80%', '65.4%')
    """
    text = f"{100 * rate:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def even_percent(rate: float, decimals: int = 1) -> str:
    """Format a rate as a percentage with exactly the given number of decimals, for table columns.

    >>> even_percent(0.8), even_percent(0.6544, 0)
    ('80.0%', '65%')
    """
    return f"{100 * rate:.{decimals}f}%"


def percents(*rates: float) -> list[str]:
    """Format rates as percentages, with enough decimals that different rates look different.

    >>> percents(0.7998, 0.8, 0.79974)
    ['79.98%', '80%', '79.97%']
    """
    for decimals in range(1, 8):
        texts = [percent(rate, decimals) for rate in rates]
        if len(set(texts)) == len(set(rates)):
            break
    return texts


def amount(number: float) -> str:
    """Format a count, which need not be a whole number.

    >>> amount(10000.0), amount(0.5)
    ('10,000', '0.5')
    """
    return f"{round(number, 6):,.10g}"


def edge_name(edge: float) -> str:
    """Format an edge of a band: from a million on in full, not as 1e+06.

    >>> edge_name(0.25), edge_name(600.0), edge_name(1e6), edge_name(2_500_000.5)
    ('0.25', '600', '1000000', '2500000.5')
    """
    return f"{edge:.12g}" if abs(edge) >= 1e6 else f"{edge:g}"


def plural(number: float, one: str, several: str | None = None) -> str:
    """Return the singular or the plural of a word, to go with a number.

    >>> plural(1, "outcome"), plural(0, "outcome"), plural(2, "success", "successes")
    ('outcome', 'outcomes', 'successes')
    """
    return one if number == 1 else several or f"{one}s"


def counted(number: int, one: str, several: str | None = None) -> str:
    """Format a number with its word.

    >>> counted(1, "outcome"), counted(1200, "outcome")
    ('1 outcome', '1,200 outcomes')
    """
    return f"{number:,} {plural(number, one, several)}"


def duration(years: float) -> str:
    """Format a time in the largest unit that it fills.

    >>> duration(365 / 365.25), duration(0.25), duration(1 / 52)
    ('1 year', '3 months', '1 week')
    """
    for size, unit in ((1.0, "year"), (1 / 12, "month"), (1 / 52, "week")):
        count = years / size
        if count > 0.995:
            one = abs(count - 1) < 0.005  # 365 days count as a year too
            return f"1 {unit}" if one else f"{count:.3g} {unit}s"
    return f"{years * 365:.2g} days"


def observed(belief: Belief, rate: str | None = None) -> str:
    """Describe what was observed: '7 of 10 succeeded (70%)'."""
    return f"{amount(belief.s)} of {amount(belief.n)} succeeded ({rate or percent(belief.mean)})"


def describe_rule(cost: float, minimums: Sequence[tuple[float, float]]) -> str:
    """Describe when a policy accepts, from a few belief sizes n with their thresholds.

    >>> print(describe_rule(0.8, [(2, 0.349), (10, 0.654)]))
    Accept while the success rate is above the minimum: 34.9% after 2 observations, 65.4% after 10. The minimum rises to
    the break-even of 80%, because the more is known, the less is left to learn. Once the success rate falls to the
    minimum, stop for good.
    """
    even, *rates = percents(cost, *(rate for _, rate in minimums))
    steps = [f"{rate} after {amount(n)}" for rate, (n, _) in zip(rates, minimums, strict=True)]
    steps[0] += f" {plural(minimums[0][0], 'observation')}"
    return (
        f"Accept while the success rate is above the minimum: {', '.join(steps)}. The minimum rises to the break-even "
        f"of {even}, because the more is known, the less is left to learn. Once the success rate falls to the minimum, "
        "stop for good."
    )


def describe_unit(cost: float, money: Money = UNITS) -> str:
    """Describe what values are in, and what a success and a failure are worth.

    >>> print(describe_unit(0.8))
    Values are in units of gain + loss: a success earns 0.2 and a failure loses 0.8.
    >>> print(describe_unit(0.9375, Money(6400, "$")))
    A success earns $400 and a failure loses $6,000.
    """
    if money.known:
        one = money.per_year(None)
        return f"A success earns {one.format(1 - cost)} and a failure loses {one.format(cost)}."
    return f"Values are in units of gain + loss: a success earns {amount(1 - cost)} and a failure loses {amount(cost)}."


def describe_stopping(
    belief: Belief,
    cost: float,
    accepted: bool,
    continuation: float,
    threshold: float | None,
    money: Money = UNITS,
) -> str:
    """Explain why a policy accepts at a belief, or stops there for good. The threshold may be unknown."""
    mean, even, *known = percents(belief.mean, cost, *([] if threshold is None else [threshold]))
    seen = observed(belief, mean)
    size = f"{amount(belief.n)} {plural(belief.n, 'observation')}"
    minimum = f" The minimum after {size} is {known[0]}." if known else ""
    worth = f"Accepting is worth {money.format(continuation)} in all."
    if accepted and belief.mean > cost:
        return f"Accept: {seen}, above the break-even of {even}. {worth}"
    if accepted:
        below = "not above" if mean == even else "below"
        loss = cost - belief.mean
        why = (
            f"What the outcome teaches is worth more than the expected loss of {money.format(loss)}."
            if loss > 1e-12
            else "The outcome teaches something, and no loss is expected."
        )
        return f"Accept: {seen}, {below} the break-even of {even}.{minimum} {why} {worth}"
    return (
        f"Reject: {seen}.{minimum} The break-even is {even}. Even with what the outcome would teach, accepting is "
        f"expected to lose {money.format(-continuation)}. The rejection is final, because nothing more is learnt "
        "without acceptances."
    )


def count(number: float) -> str:
    """Format a number for reading: three digits, or all digits before the point with separators.

    >>> count(2.5), count(84.31), count(1083.2)
    ('2.5', '84.3', '1,083')
    """
    return f"{number:.3g}" if number < 999.5 else f"{number:,.0f}"

"""Decisions in plain words."""

from __future__ import annotations

from lenience.belief import Belief


def percent(rate: float) -> str:
    """A rate as a percentage with at most one decimal.

    >>> percent(0.8), percent(0.6544)
    ('80 %', '65.4 %')
    """
    text = f"{100 * rate:.1f}"
    return f"{text.removesuffix('.0')} %"


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


def observed(belief: Belief) -> str:
    """What was observed: '7 of 10 succeeded (70 %)'."""
    return f"{belief.s:.4g} of {belief.n:.4g} succeeded ({percent(belief.mean)})"


def describe_stopping(belief: Belief, cost: float, accepted: bool, continuation: float, threshold: float) -> str:
    """Why a belief is accepted, or stopped at for good."""
    seen = observed(belief)
    enough = percent(threshold)
    size = f"{belief.n:.4g} observation{'' if belief.n == 1 else 's'}"
    if accepted and belief.mean > cost:
        return f"Accept: {seen}, above the {percent(cost)} break-even. Accepting is worth {continuation:.3g} in all."
    if accepted:
        short = "not above" if percent(belief.mean) == percent(cost) else "short of"
        return (
            f"Accept: {seen}, {short} the {percent(cost)} break-even, but above the {enough} that is enough after "
            f"{size}: what an acceptance teaches is worth more than its expected loss of {cost - belief.mean:.2g}. "
            f"Accepting is worth {continuation:.3g} in all."
        )
    return (
        f"Reject: {seen}, not above the {enough} that is asked after {size} (break-even {percent(cost)}): even "
        f"counting what could be learnt, accepting is expected to lose {-continuation:.3g}. The rejection is final, "
        "for nothing more is learnt without acceptances."
    )

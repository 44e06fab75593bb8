"""ExposureCertificate: what the solver proved about exposure limits, and what it did not."""

from __future__ import annotations

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.money import UNITS, Money


class ExposureCertificate(msgspec.Struct, frozen=True):
    """What the two-sided recursion over (n, s, pending) proved, including floating-point error.

    Parameters
    ----------
    tolerance
        The relative width of ``value`` that was requested.
    value
        Proved bounds of the optimal value at the prior, before the first arrival and with nothing pending.
    estimate
        The best single number within ``value``.
    relative_gap
        The relative width of ``value`` that was reached. Where the value is tiny, it is relative to a thousandth of
        what knowing p would earn.
    rows
        The number of belief sizes n in the table.
    look_ahead
        The number of belief sizes that the solver computed, including those of the table.
    pending_cap
        The largest number pending in the recursion.
    limits
        The number of states that can have a limit: those with p̂ below the break-even.
    unsettled
        The number of these states whose first rejection is not proved.
    settled_rows
        The number of rows at the start of the table in which every limit is proved.
    capped
        The number of limits that are at least ``pending_cap``.
    resumed
        The number of states in which acceptance seems to resume at a larger number pending than the limit.
    resumed_proved
        The number of states in which this is proved.
    states
        The number of states (n, s, pending) that the solver computed.

    Examples
    --------
    >>> from lenience import Belief, Delayed
    >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
    >>> certificate = late.solve(Belief(2, 1), rows=20).certificate
    >>> certificate.rows, certificate.unsettled, certificate.relative_gap < 1e-6
    (20, 1, True)
    """

    tolerance: float
    value: Bounds
    estimate: float
    relative_gap: float
    rows: int
    look_ahead: int
    pending_cap: int
    limits: int
    unsettled: int
    settled_rows: int
    capped: int
    resumed: int
    resumed_proved: int
    states: int

    @property
    def proved(self) -> bool:
        """Whether every limit is proved to be the first rejection, and none is proved to be followed by acceptance."""
        return self.unsettled == 0 and self.resumed_proved == 0

    @property
    def statement(self) -> str:
        """The certificate in words.

        Examples
        --------
        >>> from lenience.core.belief import Belief
        >>> from lenience.objectives.delayed import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=1, discount_rate=0.1, label_delay=1).solve(Belief(6, 4), rows=4)
        >>> print(policy.certificate.statement)
        The optimal value at the prior is proved to lie between 0.211102... and 0.211102... Every limit of 4 rows is
        proved to be the least number pending at which rejecting is optimal. In 1 state acceptance is proved to resume
        with more pending than the limit; the policy does not follow it, which is not proved to cost little but cost
        at most 7e-6 of the value in all cases tried.
        """
        return self.describe()

    def describe(self, money: Money = UNITS) -> str:
        """Return the certificate in words, with values in money where it is known.

        Parameters
        ----------
        money : Money, optional
            How to show values; by default in units of gain + loss.

        Returns
        -------
        str
            A few sentences.

        Examples
        --------
        >>> from lenience.core.belief import Belief
        >>> from lenience.objectives.delayed import Delayed
        >>> policy = Delayed(cost=0.7, arrivals=1, discount_rate=0.1, label_delay=1).solve(Belief(6, 4), rows=4)
        >>> print(policy.certificate.describe(Money(1000, "$")))
        The optimal value at the prior is proved to be $211.10 ± $0.01. Every limit of 4 rows is ...
        """
        lower, upper = f"{self.value.lower:.10g}", f"{self.value.upper:.10g}"
        parts = [f"The optimal value at the prior is proved to lie between {lower} and {upper}."]
        if lower == upper:
            parts = [f"The optimal value at the prior is proved to be {lower}."]
        if money.known:
            parts = [f"The optimal value at the prior is proved to be {money.format_bounds(self.value)}."]
        if self.unsettled == 0:
            parts.append(
                f"Every limit of {self.rows:,} rows is proved to be the least number pending at which rejecting is "
                "optimal."
            )
        else:
            parts.append(
                f"Of {self.limits:,} limits in {self.rows:,} rows, {self.limits - self.unsettled:,} are proved to be "
                "the least number pending at which rejecting is optimal, among them all of the first "
                f"{self.settled_rows:,} rows; the others are read off the middle of the enclosure."
            )
        if self.capped:
            parts.append(f"{self.capped:,} limits are at least {self.pending_cap:,}, the most pending followed.")
        if self.resumed_proved:
            states = f"{self.resumed_proved:,} state{'' if self.resumed_proved == 1 else 's'}"
            parts.append(
                f"In {states} acceptance is proved to resume with more pending than the limit; the policy does not "
                "follow it, which is not proved to cost little but cost at most 7e-6 of the value in all cases tried."
            )
        else:
            parts.append(
                "Nowhere is acceptance proved to resume with more pending than the limit, nor is it proved that it "
                "never does; following the limit cost at most 7e-6 of the value in all cases tried."
            )
        return " ".join(parts)

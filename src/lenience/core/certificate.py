"""Certificate: what is proved about a solved policy, and how."""

from __future__ import annotations

import msgspec

from lenience.core.money import UNITS, Money


class Certificate(msgspec.Struct, frozen=True):
    """State what the solver proved about a policy, floating-point error included.

    Parameters
    ----------
    tolerance : float
        The accuracy that was requested, in units of reward.
    rows : int
        Number of belief sizes n that the policy decides.
    look_ahead : int
        Number of rows computed beyond them.
    undecided : int
        Number of states whose decision is not proved. Either decision is optimal there to within ``width``, and the
        policy rejects.
    width : float
        Widest bounds of the value of accepting at the boundary of any row, in units of reward.
    states : int
        Number of states computed.

    Examples
    --------
    >>> from lenience import Belief, Discounted
    >>> Discounted(cost=0.8, discount=0.9).solve(Belief(2, 1)).certificate.proved
    True
    """

    tolerance: float
    rows: int
    look_ahead: int
    undecided: int
    width: float
    states: int

    @property
    def proved(self) -> bool:
        """Whether every decision is proved optimal."""
        return self.undecided == 0

    @property
    def statement(self) -> str:
        """The certificate in words.

        >>> Certificate(1e-9, rows=1000, look_ahead=1706, undecided=0, width=4e-10, states=226554).statement
        'Every decision of 1,000 rows is proved optimal; values at the boundary are known to within 4e-10.'
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
            One sentence.

        Examples
        --------
        >>> certificate = Certificate(1e-9, rows=1000, look_ahead=1706, undecided=0, width=4e-10, states=226554)
        >>> certificate.describe(Money(6400, "$"))
        'Every decision of 1,000 rows is proved optimal; values at the boundary are known to within $0.01.'
        """
        known = f"values at the boundary are known to within {money.format_error(self.width)}"
        if self.proved:
            return f"Every decision of {self.rows:,} rows is proved optimal; {known}."
        return (
            f"All but {self.undecided:,} decisions of {self.rows:,} rows are proved optimal; those lie so near the "
            f"boundary that either choice is optimal to within {money.format_error(self.width)}, and the policy "
            "rejects."
        )

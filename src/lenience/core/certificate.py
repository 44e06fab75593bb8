"""Certificate: what is proved about a solved policy, and how."""

from __future__ import annotations

import msgspec


class Certificate(msgspec.Struct, frozen=True):
    """What the two-sided recursion proved, floating-point error included.

    ``rows`` is the number of belief sizes n decided, ``look_ahead`` the rows computed beyond them,
    ``undecided`` the states whose decision is not proved (there either decision is optimal to within
    ``width``; the policy rejects), ``width`` the widest enclosure of the value of accepting at the
    boundary of any row, in units of reward. ``states`` counts the states computed.
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
        known = f"values at the boundary are known to within {self.width:.2g}"
        if self.proved:
            return f"Every decision of {self.rows:,} rows is proved optimal; {known}."
        return (
            f"All but {self.undecided:,} decisions of {self.rows:,} rows are proved optimal; those lie so near the "
            f"boundary that either choice is optimal to within {self.width:.2g}, and the policy rejects."
        )

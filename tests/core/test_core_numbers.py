"""Which numbers beliefs, offers and money take."""

from __future__ import annotations

import pytest

from lenience import Belief, MixtureBelief, Money, Offer, Offers
from number_ranges import Range, names_of

KNOWN = Belief(9, 7)
RANGES = [
    Range("n", lambda x: Belief(x, 0), [0.1], [0, -1]),
    Range("s", lambda x: Belief(1, x), [0, 0.5], [-0.1]),
    Range("successes", lambda x: Belief.from_counts(x, 1), [0, 0.5], [-0.1]),
    Range("failures", lambda x: Belief.from_counts(1, x), [0, 0.5], [-0.1]),
    Range("alpha", lambda x: Belief.from_beta(x, 1), [0, 0.5], [-0.1]),
    Range("beta", lambda x: Belief.from_beta(1, x), [0, 0.5], [-0.1]),
    Range("probability", lambda x: KNOWN.interval(x), [0.1, 0.9], [0, 1]),
    Range("probability", lambda x: MixtureBelief.doubt(KNOWN, 0.1).interval(x), [0.1, 0.9], [0, 1]),
    Range("weights", lambda x: MixtureBelief((KNOWN, Belief(2, 1)), (1, x)), [0.1, 1.5], [0]),
    Range("doubt", lambda x: MixtureBelief.doubt(KNOWN, x), [0.1, 0.9], [0, 1]),
    Range("unit", lambda x: Money(x), [0.1], [0]),
    Range("yearly", lambda x: Money(1, yearly=x), [0.1], [0]),
    Range("gain", lambda x: Money.from_gain_and_loss(x, 1), [0.1], [0]),
    Range("loss", lambda x: Money.from_gain_and_loss(1, x), [0.1], [0]),
    Range("amount", lambda x: Offer(x, 0.5), [0.1], [0]),
    Range("cost", lambda x: Offer(1, x), [0.1, 0.9], [0, 1]),
    Range("gain", lambda x: Offer.from_gain_and_loss(x, 1), [0.1], [0]),
    Range("loss", lambda x: Offer.from_gain_and_loss(1, x), [0.1], [0]),
    Range("amount", lambda x: Offer.from_loan(x, 0.1, 1), [0.1], [0]),
    Range("rate", lambda x: Offer.from_loan(1, x, 1), [0.1], [0]),
    Range("term", lambda x: Offer.from_loan(1, 0.1, x), [0.1], [0]),
    Range("loss_given_default", lambda x: Offer.from_loan(1, 0.1, 1, loss_given_default=x), [0.1], [0]),
    Range("funding_rate", lambda x: Offer.from_loan(1, 0.1, 1, funding_rate=x), [0, 0.05], [-0.1]),
    Range("amount", lambda x: Offers([x], [0.5]), [0.1], [0]),
    Range("cost", lambda x: Offers([1], [x]), [0.1, 0.9], [0, 1]),
    Range("share", lambda x: Offers([1, 2], [0.5, 0.5], [1, x]), [0, 0.1], [-0.1]),
    Range("share", lambda x: Offers([1], [0.5]).with_starters([x]), [0.1, 0.9], [0, 1]),
    Range("most", lambda x: Offers([1, 2, 3], [0.5, 0.6, 0.7]).compress(x), [1, 2], [0]),
]


@pytest.mark.parametrize("one", RANGES, ids=names_of(RANGES))
def test_which_numbers_are_allowed(one: Range) -> None:
    one.check()

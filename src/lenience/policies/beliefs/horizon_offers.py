"""HorizonOfferPolicy: decide offers where the number of arrivals is known.

An offer is accepted where its expected profit and the value of its label are above 0 together. The fewer arrivals are
left, the less a label is worth, so the policy must know how many are left. The tables are solved when the first
decision needs them, and JSON holds only the problem and its certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.core.json_arrays import decode_array, encode_array
from lenience.core.lattice import is_near, size_distance
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.objective import StoppingObjective
from lenience.core.offers import Offer, Offers
from lenience.core.validation import whole
from lenience.policies.beliefs.offers import (
    OfferDecision,
    check_belief,
    choices_of,
    decide_offer,
    explain_offer,
    largest_accepted,
    lattice_position,
    offers_of,
)
from lenience.solvers.offers.horizon import HorizonTables


class HorizonOfferPolicy(msgspec.Struct, frozen=True, eq=False, tag="horizon_offers", tag_field="type"):
    """The optimal policy for offers, or for a mixture as a prior, where the number of arrivals is known.

    The ``solve`` method of :class:`~lenience.FiniteHorizon` creates it. Every method takes ``left``, the number of
    arrivals that are left, this one included. By default it is what is left if nobody was rejected since the start.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance, as a mixture.
    certificate
        What the solver proved.

    Examples
    --------
    >>> from lenience import FiniteHorizon
    >>> offers = Offers(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
    >>> policy = FiniteHorizon(offers=offers, horizon=100).solve(prior=Belief(2, 1))
    >>> print(policy.explain(Belief(2, 1), Offer(500, 0.8)))
    Accept $500: 1 of 2 succeeded (50%), below the break-even of 80%. The expected loss is $150. One more outcome is
    worth $245 for the 99 arrivals after this one.
    >>> policy.accepts(Belief(2, 1), Offer(500, 0.8), left=5)
    False
    """

    objective: StoppingObjective
    prior: MixtureBelief
    certificate: Certificate

    @classmethod
    def solve(cls, objective: StoppingObjective, prior: Belief | MixtureBelief, tolerance: float) -> HorizonOfferPolicy:
        """Solve an objective with a horizon and offers, or with a mixture for a prior.

        Parameters
        ----------
        objective : FiniteHorizon
            The objective.
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        tolerance : float
            How accurately values are computed, in units of the mean amount.

        Returns
        -------
        HorizonOfferPolicy
            The policy.

        Raises
        ------
        TooLargeError
            If the problem would take too much time or memory.
        """
        check_belief(prior, "prior")
        horizon = objective.horizon or 0
        tables = _tables(prior, offers_of(objective), objective.discount, horizon, tolerance)
        certificate = Certificate(tolerance, horizon, 0, tables.undecided, tables.width, round(tables.band.states))
        return cls(objective, MixtureBelief.of(prior), certificate)

    @property
    def horizon(self) -> int:
        """The number of arrivals in all."""
        return self.objective.horizon or 0

    @property
    def offers(self) -> Offers:
        """What arrivals bring: the objective's offers, or one offer of amount 1 at the objective's cost."""
        return offers_of(self.objective)

    def label_value(self, belief: Belief | MixtureBelief, left: int | None = None) -> Bounds:
        """Return what one more outcome is worth for the arrivals after this one.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        left : int, optional
            Number of arrivals left, this one included.

        Returns
        -------
        Bounds
            Proved bounds, in money.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> policy = FiniteHorizon(offers=Offers.menu([0.1, 1], [0.8, 0.8]), horizon=40).solve(Belief(2, 1))
        >>> [round(policy.label_value(Belief(2, 1), left).midpoint, 4) for left in (40, 20, 1)]
        [0.0465, 0.0445, 0.0]
        """
        position = lattice_position(self.prior, check_belief(belief), self.horizon)
        count = self._left(belief, left)
        if position is not None and position[0] + count <= self.horizon:
            return self._own.label_at(*position, count)
        return self._solved(belief, count).label_value

    def value(self, belief: Belief | MixtureBelief, left: int | None = None) -> Bounds:
        """Return V, what the optimal policy earns from a belief on.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        left : int, optional
            Number of arrivals left, this one included.

        Returns
        -------
        Bounds
            Proved bounds of the value, in money.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
        >>> print(FiniteHorizon(offers=offers, horizon=1000).solve(Belief(2, 1)).value(Belief(2, 1)))
        38.773226... ± ...
        """
        count = self._left(belief, left)
        if count == self.horizon and lattice_position(self.prior, check_belief(belief), 1) is not None:
            return self._own.value
        return self._solved(belief, count).value

    def decide(
        self,
        belief: Belief | MixtureBelief,
        offer: Offer | Offers | Sequence[Offer] | None = None,
        left: int | None = None,
    ) -> OfferDecision:
        """Return the decision: whether to accept, and which offer to make.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from. It may be left out if every arrival brings the same choice.
        left : int, optional
            Number of arrivals left, this one included.

        Returns
        -------
        OfferDecision
            The decision.

        Raises
        ------
        InputError
            If there is no offer, or the number of arrivals left is unknown or too large.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> menu = Offers.menu(amount=[500, 5000], cost=[0.8, 0.8])
        >>> policy = FiniteHorizon(offers=menu, horizon=100).solve(Belief(2, 1))
        >>> [policy.decide(Belief(6, 4), left=left).accepted for left in (90, 5)]
        [True, False]
        """
        return decide_offer(belief, choices_of(self.offers, offer), self.label_value(belief, left))

    def accepts(
        self,
        belief: Belief | MixtureBelief,
        offer: Offer | Offers | Sequence[Offer] | None = None,
        left: int | None = None,
    ) -> bool:
        """Return whether the next individual is accepted.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from. It may be left out if every arrival brings the same choice.
        left : int, optional
            Number of arrivals left, this one included.

        Returns
        -------
        bool
            True to accept.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> policy = FiniteHorizon(offers=Offers([1, 5], [0.8, 0.8]), horizon=60).solve(Belief(2, 1))
        >>> policy.accepts(Belief(10, 7), Offer(1, 0.8)), policy.accepts(Belief(10, 7), Offer(5, 0.8))
        (True, False)
        """
        return self.decide(belief, offer, left).accepted

    def share_accepted(self, belief: Belief | MixtureBelief, left: int | None = None) -> float:
        """Return the share of arrivals that are accepted at a belief.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        left : int, optional
            Number of arrivals left, this one included.

        Returns
        -------
        float
            A share from 0 to 1.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> policy = FiniteHorizon(offers=Offers([1, 5], [0.8, 0.8]), horizon=60).solve(Belief(2, 1))
        >>> policy.share_accepted(Belief(10, 7))
        0.5
        """
        offers = self.offers
        return math.fsum(
            share
            for menu, share in enumerate(offers.share)
            if share > 0.0 and self.decide(belief, offers.offers_of(menu), left).accepted
        )

    def largest_amount(self, belief: Belief | MixtureBelief, cost: float, left: int | None = None) -> float:
        """Return the largest amount at stake that is accepted at a belief, for a break-even.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        cost : float
            The break-even success rate of the offer.
        left : int, optional
            Number of arrivals left, this one included.

        Returns
        -------
        float
            The amount; infinity where the success rate is above the break-even.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> policy = FiniteHorizon(offers=Offers([500, 5000], [0.8, 0.8]), horizon=100).solve(Belief(2, 1))
        >>> [round(policy.largest_amount(Belief(2, 1), 0.8, left)) for left in (100, 50, 10)]
        [817, 798, 229]
        """
        return largest_accepted(belief, cost, self.label_value(belief, left))

    def offer_acceptance(self, n: float, s: ArrayLike, offers: Offers, left: int | None = None) -> NDArray[np.float64]:
        """Return which offers are accepted at many beliefs of one size.

        Parameters
        ----------
        n : float
            The number of observations: the prior's and a whole number.
        s : array_like
            Numbers of successes.
        offers : Offers
            The offers.
        left : int, optional
            Number of arrivals left, this one included.

        Returns
        -------
        ndarray of float
            0 or 1: one line for each belief, one column for each offer.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> offers = Offers([1, 5], [0.8, 0.8])
        >>> policy = FiniteHorizon(offers=offers, horizon=60).solve(Belief(2, 1))
        >>> policy.offer_acceptance(10, [6, 7, 9], offers, left=40)
        array([[0., 0.],
               [1., 0.],
               [1., 1.]])
        """
        successes = np.atleast_1d(np.asarray(s, dtype=np.float64))
        labels = self._row_labels(n, successes, left)
        gains = np.array(offers.amount) * ((successes / n)[:, None] - np.array(offers.cost))
        return np.asarray(gains + labels[:, None] > 0.0, dtype=np.float64)

    def label_values(self, n: ArrayLike, s: ArrayLike, left: int) -> NDArray[np.float64]:
        """Return lower bounds of the value of a label at many beliefs, with the same number of arrivals left.

        Parameters
        ----------
        n : array_like
            Numbers of observations.
        s : array_like
            Numbers of successes.
        left : int
            Number of arrivals left, this one included.

        Returns
        -------
        ndarray of float
            Amounts of money.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> policy = FiniteHorizon(offers=Offers([1, 5], [0.8, 0.8]), horizon=60).solve(Belief(2, 1))
        >>> policy.label_values([2, 3], [1, 2], left=59).round(2)
        array([0.39, 0.32])
        """
        sizes, successes = np.asarray(n, dtype=np.float64), np.asarray(s, dtype=np.float64)
        count = whole("left", left, least=1, most=self.horizon)
        prior = self.prior.simplified
        if isinstance(prior, Belief):
            k, j = np.rint(sizes - prior.n), np.rint(successes - prior.s)
            on = (np.abs(sizes - prior.n - k) < 1e-6) & (np.abs(successes - prior.s - j) < 1e-6)
            if np.all(on & (j >= 0) & (j <= k) & (k + count <= self.horizon)):
                return self._own.state_labels(k.astype(np.int64), j.astype(np.int64), count)
        return np.array(
            [
                self.label_value(Belief(float(size), float(good)), count).lower
                for size, good in zip(sizes, successes, strict=True)
            ]
        )

    def label_plane(self, belief: Belief, left: int) -> NDArray[np.float64] | None:
        """Return lower bounds of the value of a label at all states that can be met with a number of arrivals left.

        Parameters
        ----------
        belief : Belief
            The belief at the start of all arrivals.
        left : int
            Number of arrivals left, this one included.

        Returns
        -------
        ndarray of float or None
            Amounts of money: k observations and j successes later they are at k(k+1)/2 + j. None if the belief is not
            the prior.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> policy = FiniteHorizon(offers=Offers([1, 5], [0.8, 0.8]), horizon=60).solve(Belief(2, 1))
        >>> policy.label_plane(Belief(2, 1), left=59).round(2)
        array([0.39, 0.  , 0.32])
        """
        if lattice_position(self.prior, belief, 1) is None:
            return None
        return self._own.label_plane(whole("left", left, least=1, most=self.horizon))

    def explain(
        self,
        belief: Belief | MixtureBelief,
        offer: Offer | Offers | Sequence[Offer] | None = None,
        left: int | None = None,
        money: Money | None = None,
    ) -> str:
        """Return the decision at a belief and its reason, in words.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from.
        left : int, optional
            Number of arrivals left, this one included.
        money : Money, optional
            How to show amounts; by default as the objective says.

        Returns
        -------
        str
            A few sentences.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> menu = Offers.menu(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
        >>> print(FiniteHorizon(offers=menu, horizon=100).solve(Belief(2, 1)).explain(Belief(10, 7), left=20))
        Offer $500 instead of $5,000: 7 of 10 succeeded (70%), below the break-even of 80%. The expected loss is $50.
        One more outcome is worth $84.68 for the 19 arrivals after this one.
        """
        choices = choices_of(self.offers, offer)
        later = self._left(belief, left) - 1
        words = f"the {counted(later, 'arrival')} after this one" if later else "this last arrival"
        shown = self.objective.money if money is None else money
        one_cost = self.objective.offers is None and offer is None
        return explain_offer(belief, choices, self.decide(belief, choices, left), shown, words, sized=not one_cost)

    def to_json(self) -> str:
        """Return the policy as JSON text; :meth:`from_json` reads it.

        Returns
        -------
        str
            JSON text.
        """
        return msgspec.json.encode(self, enc_hook=encode_array).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> HorizonOfferPolicy:
        """Read a policy that :meth:`to_json` wrote. Its first decision solves the problem again.

        Parameters
        ----------
        text : str or bytes
            The JSON text.

        Returns
        -------
        HorizonOfferPolicy
            The policy.

        Raises
        ------
        InputError
            If the text is not the JSON of such a policy.

        Examples
        --------
        >>> from lenience import FiniteHorizon
        >>> policy = FiniteHorizon(offers=Offers([1, 5], [0.8, 0.8]), horizon=50).solve(Belief(2, 1))
        >>> HorizonOfferPolicy.from_json(policy.to_json()).accepts(Belief(4, 3), Offer(1, 0.8))
        True
        """
        try:
            policy = msgspec.json.decode(text, type=cls, dec_hook=decode_array)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError.because(
                f"is not the JSON of a policy for offers over a horizon: {error}", "text", code="invalid_file"
            ) from error
        if policy.objective.horizon is None:
            raise InputError.because("must have a horizon", "objective", code="invalid_file")
        return policy

    def __repr__(self) -> str:
        return f"HorizonOfferPolicy({self.objective!r}, prior={self.prior.simplified!r})"

    @property
    def _own(self) -> HorizonTables:
        """The tables from the prior on."""
        return _tables(
            self.prior.simplified, self.offers, self.objective.discount, self.horizon, self.certificate.tolerance
        )

    def _left(self, belief: Belief | MixtureBelief, left: int | None) -> int:
        """Return the number of arrivals left; by default, what is left if nobody was rejected."""
        if left is not None:
            return whole("left", left, least=1, most=self.horizon)
        position = lattice_position(self.prior, check_belief(belief), self.horizon)
        if position is None:
            raise InputError.because(
                "is required, because the belief does not follow from the prior within the horizon",
                "left",
                code="missing",
            )
        return self.horizon - position[0]

    def _row_labels(self, n: float, s: NDArray[np.float64], left: int | None) -> NDArray[np.float64]:
        """Return lower bounds of the value of a label at many beliefs of one size."""
        prior = self.prior.simplified
        k = round(n - prior.n)
        if isinstance(prior, Belief) and 0 <= k < self.horizon and is_near(n, prior.n, size_distance(prior)):
            count = self.horizon - k if left is None else whole("left", left, least=1, most=self.horizon)
            j = np.rint(s - prior.s).astype(np.int64)
            if k + count <= self.horizon and np.all(np.abs(s - prior.s - j) < 1e-6) and np.all((j >= 0) & (j <= k)):
                return self._own.state_labels(np.full(j.size, k), j, count)
        return np.array([self.label_value(Belief(n, float(one)), left).lower for one in s])

    def _solved(self, belief: Belief | MixtureBelief, left: int) -> HorizonTables:
        """Return the solution with the belief as its prior, cached."""
        return _start(
            MixtureBelief.of(check_belief(belief)).simplified,
            self.offers,
            self.objective.discount,
            left,
            self.certificate.tolerance,
        )


@lru_cache(maxsize=4)
def _tables(
    prior: Belief | MixtureBelief, offers: Offers, discount: float, horizon: int, tolerance: float
) -> HorizonTables:
    """Solve for decisions at every belief and number of arrivals left."""
    return HorizonTables(prior, offers, discount, horizon, tolerance)


@lru_cache(maxsize=256)
def _start(
    belief: Belief | MixtureBelief, offers: Offers, discount: float, left: int, tolerance: float
) -> HorizonTables:
    """Solve for one belief only."""
    return HorizonTables(belief, offers, discount, left, tolerance, keep=False)

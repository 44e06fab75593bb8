"""OfferPolicy: accept an offer where its expected profit and the value of the label are above 0.

A solved policy is a table of the value of one label, I(n, s), on the prior's lattice. It decides every offer, also one
that was not among those it was solved for: accept if and only if a(p̂ − c) + I > 0. So small amounts get the benefit of
the doubt first. Unlike with one offer, a rejection is not final: a smaller or better-priced offer may come.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import InputError
from lenience.core.formatting import amount as number_text
from lenience.core.formatting import percents
from lenience.core.json_arrays import decode_array, encode_array
from lenience.core.lattice import is_near, size_distance, success_distance
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.money import Money
from lenience.core.objective import Objective, StoppingObjective
from lenience.core.offers import Offer, Offers
from lenience.core.validation import check_tolerance, listed, real, whole
from lenience.solvers.offers.solve import OfferSolution, solve_offers


class OfferDecision(msgspec.Struct, frozen=True):
    """Hold the decision on one applicant and what it rests on.

    Parameters
    ----------
    accepted : bool
        Whether to accept. Where that is not proved, the policy rejects.
    offer : Offer
        The offer to make: the best one of those that may be made, also where the applicant is rejected.
    expected_profit : float
        The expected profit of that offer alone; negative below its break-even.
    label_value : Bounds
        What the outcome teaches is worth, for later decisions.
    proved : bool
        Whether the decision is proved optimal.
    """

    accepted: bool
    offer: Offer
    expected_profit: float
    label_value: Bounds
    proved: bool


class OfferPolicy(msgspec.Struct, frozen=True, eq=False, tag="offers", tag_field="type"):
    """The optimal policy where amounts and break-evens differ, or where the prior is a mixture.

    The ``solve`` method of the objective creates it.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance, as a mixture.
    index
        For each number k of new observations: the first state in the table, its position and the number of states.
    table
        Lower and upper bounds of the value of a label, state by state.
    certificate
        What the solver proved.

    Examples
    --------
    >>> from lenience import Discounted
    >>> offers = Offers(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
    >>> policy = Discounted(offers=offers, discount=0.99).solve(prior=Belief(2, 1))
    >>> policy.accepts(Belief(2, 1), Offer(500, 0.8)), policy.accepts(Belief(2, 1), Offer(5000, 0.8))
    (True, False)
    >>> print(policy.explain(Belief(2, 1), Offer(500, 0.8)))
    Accept $500: 1 of 2 succeeded (50%), below the break-even of 80%. The expected loss is $150. One more outcome is
    worth $228 for later decisions.
    """

    objective: StoppingObjective
    prior: MixtureBelief
    index: np.ndarray[Any, np.dtype[np.int64]]
    table: np.ndarray[Any, np.dtype[np.float64]]
    certificate: Certificate

    @classmethod
    def solve(
        cls,
        objective: StoppingObjective,
        prior: Belief | MixtureBelief,
        rows: int,
        tolerance: float,
        look_ahead: int | None = None,
    ) -> OfferPolicy:
        """Solve an objective with offers, or with a mixture for a prior.

        Parameters
        ----------
        objective : Objective
            The objective, discounted.
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.
        rows : int
            Number of belief sizes n to decide, from the prior on.
        tolerance : float
            How accurately values are computed, in units of the mean amount.
        look_ahead : int, optional
            Number of rows to compute beyond them. By default it follows from the tolerance.

        Returns
        -------
        OfferPolicy
            The policy.
        """
        check_belief(prior, "prior")
        solution = solve_offers(prior, offers_of(objective), objective.discount, rows, tolerance, look_ahead)
        certificate = Certificate(
            tolerance, rows, solution.look_ahead, solution.undecided, solution.width, solution.states
        )
        return cls(objective, MixtureBelief.of(prior), solution.rows, solution.table, certificate)

    @property
    def rows(self) -> int:
        """The number of belief sizes n in the table, starting with the prior's."""
        return self.certificate.rows

    @property
    def offers(self) -> Offers:
        """What arrivals bring: the objective's offers, or one offer of amount 1 at the objective's cost."""
        return offers_of(self.objective)

    def label_value(self, belief: Belief | MixtureBelief) -> Bounds:
        """Return what one more outcome is worth for later decisions.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        Bounds
            Proved bounds, in money.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(offers=Offers.menu(amount=[0.1, 1], cost=[0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
        >>> print(policy.label_value(Belief(2, 1)))
        0.0458178856... ± ...
        """
        check_belief(belief)
        position = self._position(belief)
        if position is not None:
            k, j = position
            first, begin, count = self.index[k].tolist()
            if j < first or count == 0:
                return Bounds(0.0, 0.0)
            if j < first + count:
                low, high = self.table[:, begin + j - first].tolist()
                return Bounds(low, high)
        return self._solved(belief).label_value

    def batch_label_values(self, count: int) -> NDArray[np.float64]:
        """Return what the first, second, … outcome from the prior is worth if all are obtained at the same time.

        The k-th is worth the expected value of a label after k − 1 outcomes: γ(E V after k − E V after k − 1).

        Parameters
        ----------
        count : int
            The number of outcomes. Rows of the table that are missing are solved.

        Returns
        -------
        ndarray of float
            Lower bounds, in money.

        Raises
        ------
        InputError
            If the prior is a mixture.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(offers=Offers([500, 5000], [0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
        >>> policy.batch_label_values(4).round()
        array([228., 233., 142.,  78.])
        """
        prior = self.prior.simplified
        if not isinstance(prior, Belief):
            raise InputError("prior", prior, "a Belief, such as Belief(n=2, s=1)")
        chance = np.ones(1)  # of each number of successes
        values = []
        for k in range(whole("count", count, least=1)):
            successes = prior.s + np.arange(k + 1, dtype=np.float64)
            values.append(float(chance @ self._row_labels(prior.n + k, successes)))
            mean = np.minimum(successes / (prior.n + k), 1.0)
            chance = np.append(chance * (1.0 - mean), 0.0) + np.insert(chance * mean, 0, 0.0)
        return np.array(values)

    def decide(
        self, belief: Belief | MixtureBelief, offer: Offer | Offers | Sequence[Offer] | None = None
    ) -> OfferDecision:
        """Return the decision: whether to accept, and which offer to make.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from. It may be left out if every arrival brings the same choice.

        Returns
        -------
        OfferDecision
            The decision.

        Raises
        ------
        InputError
            If there is no offer.

        Examples
        --------
        >>> from lenience import Discounted
        >>> menu = Offers.menu(amount=[500, 5000], cost=[0.8, 0.8])
        >>> policy = Discounted(offers=menu, discount=0.99).solve(Belief(2, 1))
        >>> policy.decide(Belief(2, 1)).offer, policy.decide(Belief(12, 10)).offer
        (Offer(amount=500.0, cost=0.8), Offer(amount=5000.0, cost=0.8))
        """
        return decide_offer(belief, choices_of(self.offers, offer), self.label_value(belief))

    def accepts(self, belief: Belief | MixtureBelief, offer: Offer | Offers | Sequence[Offer] | None = None) -> bool:
        """Return whether the next individual is accepted.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from. It may be left out if every arrival brings the same choice.

        Returns
        -------
        bool
            True to accept.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(offers=Offers([1, 5], [0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
        >>> policy.accepts(Belief(10, 7), Offer(1, 0.8)), policy.accepts(Belief(10, 7), Offer(5, 0.8))
        (True, False)
        """
        return self.decide(belief, offer).accepted

    def share_accepted(self, belief: Belief | MixtureBelief) -> float:
        """Return the share of arrivals that are accepted at a belief.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        float
            A share from 0 to 1.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(offers=Offers([1, 5], [0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
        >>> policy.share_accepted(Belief(10, 7))
        0.5
        """
        offers = self.offers
        return math.fsum(
            share
            for menu, share in enumerate(offers.share)
            if share > 0.0 and self.decide(belief, offers.offers_of(menu)).accepted
        )

    def offer_acceptance(self, n: float, s: ArrayLike, offers: Offers) -> NDArray[np.float64]:
        """Return which offers are accepted at many beliefs of one size.

        Parameters
        ----------
        n : float
            The number of observations: the prior's and a whole number.
        s : array_like
            Numbers of successes.
        offers : Offers
            The offers.

        Returns
        -------
        ndarray of float
            0 or 1: one line for each belief, one column for each offer.

        Examples
        --------
        >>> from lenience import Discounted
        >>> offers = Offers([1, 5], [0.8, 0.8])
        >>> Discounted(offers=offers, discount=0.99).solve(Belief(2, 1)).offer_acceptance(10, [6, 7, 9], offers)
        array([[0., 0.],
               [1., 0.],
               [1., 1.]])
        """
        successes = np.atleast_1d(np.asarray(s, dtype=np.float64))
        labels = self._row_labels(n, successes)
        gains = np.array(offers.amount) * ((successes / n)[:, None] - np.array(offers.cost))
        return np.asarray(gains + labels[:, None] > 0.0, dtype=np.float64)

    def stop_rates(self, n: float, offers: Offers) -> tuple[float, float]:
        """Return the success rates between which the policy may stop for good, from a belief size on.

        Parameters
        ----------
        n : float
            The number of observations: the prior's and a whole number.
        offers : Offers
            What arrivals bring.

        Returns
        -------
        tuple of float
            A rate above which the policy never stops: the lowest break-even. And one at or below which it has stopped
            at this size and at every larger one; −1 if none is known.

        Examples
        --------
        >>> from lenience import Discounted
        >>> offers = Offers([1, 5], [0.8, 0.8])
        >>> Discounted(offers=offers, discount=0.99).solve(Belief(2, 1)).stop_rates(10, offers)
        (0.8, 0.6)
        """
        ceiling = min(cost for cost, menu in zip(offers.cost, offers.menu_of, strict=True) if offers.share[menu] > 0.0)
        prior = self.prior.simplified
        if not isinstance(prior, Belief) or offers != self.offers:
            return ceiling, -1.0
        # The value does not fall with s and does not rise with n, so the beliefs at which it is 0 are the lowest ones.
        successes = prior.s + np.arange(round(n - prior.n) + 1.0)
        rejected = np.flatnonzero(~self.offer_acceptance(n, successes, offers).any(axis=1))
        return ceiling, float(successes[rejected[-1]] / n) if rejected.size else -1.0

    def largest_amount(self, belief: Belief | MixtureBelief, cost: float) -> float:
        """Return the largest amount at stake that is accepted at a belief, for a break-even.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        cost : float
            The break-even success rate of the offer.

        Returns
        -------
        float
            The amount; infinity where the success rate is above the break-even.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(offers=Offers([500, 5000], [0.8, 0.8]), discount=0.99).solve(Belief(2, 1))
        >>> round(policy.largest_amount(Belief(2, 1), 0.8))
        760
        """
        return largest_accepted(belief, cost, self.label_value(belief))

    def value(self, belief: Belief | MixtureBelief) -> Bounds:
        """Return V, what the optimal policy earns from a belief on.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        Bounds
            Proved bounds of the value, in money.

        Examples
        --------
        >>> from lenience import Discounted
        >>> offers = Offers(amount=[0.1, 1, 5], cost=[0.8, 0.8, 0.8])
        >>> print(Discounted(offers=offers, discount=0.95).solve(Belief(2, 1)).value(Belief(2, 1)))
        0.309691587... ± ...
        """
        return self._solved(check_belief(belief)).value

    def continuation(
        self, belief: Belief | MixtureBelief, offer: Offer | Offers | Sequence[Offer] | None = None
    ) -> Bounds:
        """Return the value of accepting now and being optimal afterwards.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from. It may be left out if every arrival brings the same choice.

        Returns
        -------
        Bounds
            Proved bounds of the expected profit, the value of the label and the value of later arrivals, added up.

        Examples
        --------
        >>> from lenience import Discounted
        >>> prior = MixtureBelief.doubt(Belief(5, 1), 0.5)
        >>> print(Discounted(cost=0.8, discount=0.99).solve(prior).continuation(prior))
        0.12381870... ± ...
        """
        decision, value = self.decide(belief, offer), self.value(belief)
        profit, label, discount = decision.expected_profit, decision.label_value, self.objective.discount
        return Bounds(profit + label.lower + discount * value.lower, profit + label.upper + discount * value.upper)

    def threshold(self, n: float, tolerance: float | None = None) -> Bounds:
        """Return c_n, the success rate above which the policy accepts at a belief size, if there is one offer only.

        Parameters
        ----------
        n : float
            The belief size, any number above 0.
        tolerance : float, optional
            The precision; by default that of the policy.

        Returns
        -------
        Bounds
            Proved bounds of the threshold.

        Raises
        ------
        InputError
            If amounts or break-evens differ, or the prior may be wrong: decisions then depend on more than n.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(offers=Offers([1000], [0.8], currency="$"), discount=0.99).solve(Belief(2, 1))
        >>> print(policy.threshold(10))
        0.65437640... ± ...
        """
        from lenience.solvers.stopping.threshold import enclose_threshold

        if not self.offers.single or isinstance(self.prior.simplified, MixtureBelief):
            why = "amounts or break-evens differ" if not self.offers.single else "the prior may be wrong"
            raise InputError.because(
                f"does not decide alone where {why}",
                "n",
                value=n,
                hint="Use decide(belief, offer), largest_amount(belief, cost) or least_accepted(outcomes).",
                code="unsupported_offers",
            )
        fine = self.certificate.tolerance if tolerance is None else check_tolerance(tolerance)
        problem: StoppingObjective = msgspec.structs.replace(self.objective, cost=self.offers.cost[0], offers=None)  # type: ignore[type-var]
        return enclose_threshold(problem, real("n", n, above=0), fine)

    def explain(
        self,
        belief: Belief | MixtureBelief,
        offer: Offer | Offers | Sequence[Offer] | None = None,
        money: Money | None = None,
    ) -> str:
        """Return the decision at a belief and its reason, in words.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from.
        money : Money, optional
            How to show amounts; by default as the objective says.

        Returns
        -------
        str
            A few sentences.

        Examples
        --------
        >>> from lenience import Discounted
        >>> menu = Offers.menu(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
        >>> print(Discounted(offers=menu, discount=0.99).solve(Belief(2, 1)).explain(Belief(10, 6)))
        Offer $500 instead of $5,000: 6 of 10 succeeded (60%), below the break-even of 80%. The expected loss is $100.
        One more outcome is worth $105 for later decisions.

        With one break-even and a prior that may be wrong:

        >>> prior = MixtureBelief.doubt(Belief(5, 1), 0.5)
        >>> print(Discounted(cost=0.7, discount=0.99).solve(prior).explain(prior))
        Accept: 35% are expected to succeed, below the break-even of 70%. The expected loss is 0.35. One more outcome is
        worth 0.363 for later decisions.
        """
        choices = choices_of(self.offers, offer)
        shown = self.objective.money if money is None else money
        one_cost = self.objective.offers is None and offer is None
        return explain_offer(belief, choices, self.decide(belief, choices), shown, sized=not one_cost)

    def least_accepted(self, outcomes: int, offer: Offer | Offers | Sequence[Offer] | None = None) -> int | None:
        """Return the smallest number of successes among new outcomes that is accepted.

        With one break-even, every larger number is accepted, too.

        Parameters
        ----------
        outcomes : int
            The number of outcomes since the prior.
        offer : Offer, Offers or sequence of Offer, optional
            The offer, or the offers to choose from. It may be left out if every arrival brings the same choice.

        Returns
        -------
        int or None
            The number of successes; None if none is enough.

        Raises
        ------
        InputError
            If the offer is needed.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(cost=0.8, discount=0.99).solve(MixtureBelief.doubt(Belief(4, 2.8), 0.2))
        >>> [policy.least_accepted(k) for k in (0, 1, 5, 20)]
        [0, 1, 4, 15]
        """
        count = whole("outcomes", outcomes, least=0)
        choices = choices_of(self.offers, offer)

        def accepted(successes: int) -> bool:
            after = self.prior.after(count, successes)
            # Above the break-even no label is needed. Those of such states may have to be solved.
            return any(after.mean > one.cost for one in choices) or self.accepts(after, choices)

        if not self.offers.single or choices != self.offers.offers_of(0):
            return next((successes for successes in range(count + 1) if accepted(successes)), None)
        least = bisect_left(range(count + 1), True, key=accepted)
        return least if least <= count else None

    def to_json(self) -> str:
        """Return the policy as JSON text; :meth:`from_json` reads it without solving anything.

        Returns
        -------
        str
            JSON text.
        """
        return msgspec.json.encode(self, enc_hook=encode_array).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> OfferPolicy:
        """Read a policy that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The JSON text.

        Returns
        -------
        OfferPolicy
            The policy.

        Raises
        ------
        InputError
            If the text is not the JSON of such a policy.

        Examples
        --------
        >>> from lenience import Discounted
        >>> policy = Discounted(offers=Offers([1, 5], [0.8, 0.8]), discount=0.9).solve(Belief(2, 1), rows=5)
        >>> OfferPolicy.from_json(policy.to_json()).accepts(Belief(4, 3), Offer(1, 0.8))
        True
        """
        try:
            policy = msgspec.json.decode(text, type=cls, dec_hook=decode_array)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError.because(
                f"is not the JSON of a policy for offers: {error}", "text", code="invalid_file"
            ) from error
        if policy.index.shape != (policy.rows, 3) or policy.table.ndim != 2:
            raise InputError.because(f"must have {policy.rows} rows", "index", code="length_mismatch")
        return policy

    def __repr__(self) -> str:
        return f"OfferPolicy({self.objective!r}, prior={self.prior.simplified!r}, rows={self.rows})"

    def _row_labels(self, n: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return lower bounds of the value of a label at many beliefs of one size; solve a longer table if needed."""
        prior = self.prior.simplified
        k = round(n - prior.n)
        if not isinstance(prior, Belief) or k < 0 or not is_near(n, prior.n, size_distance(prior)):
            return np.array([self.label_value(Belief(n, float(one))).lower for one in s])
        index, table = self.index, self.table
        if k >= self.rows:
            rows = 1 << k.bit_length()
            longer = _longer(prior, self.offers, self.objective.discount, self.certificate.tolerance, rows)
            index, table = longer.rows, longer.table
        first, begin, count = index[k].tolist()
        j = np.rint(s - prior.s).astype(np.int64)
        # Above the table a label is worth next to nothing, and below it nothing.
        on_lattice = (np.abs(s - prior.s - j) < 1e-6) & (j >= 0) & (j <= k)
        inside = on_lattice & (j >= first) & (j < first + count)
        labels = np.zeros(s.size)
        labels[inside] = table[0, begin + j[inside] - first]
        labels[~on_lattice] = [self.label_value(Belief(n, float(one))).lower for one in s[~on_lattice]]
        return labels

    def _position(self, belief: Belief | MixtureBelief) -> tuple[int, int] | None:
        """Return the new observations and successes of a belief; None if it is not in the table."""
        return lattice_position(self.prior, belief, self.rows)

    def _solved(self, belief: Belief | MixtureBelief) -> OfferSolution:
        """Return the solution with the belief as its prior, cached."""
        return _solution(belief, self.offers, self.objective.discount, self.certificate.tolerance)


def offers_of(objective: Objective) -> Offers:
    """Return an objective's offers; one offer of amount 1 if it has a cost instead."""
    return objective.offers or Offers((1.0,), (objective.cost,))


def choices_of(offers: Offers, offer: Offer | Offers | Sequence[Offer] | None) -> list[Offer]:
    """Return the offers to choose from; without an offer, those of the only menu."""
    if isinstance(offer, Offer):
        return [offer]
    if offer is None:
        offer = offers
    if isinstance(offer, Offers):
        if offer.menu_count == 1:
            return offer.offers_of(0)
        raise InputError("offer", offer, "one offer or one menu", hint="Say which offer is to be decided.")
    choices = listed("offer", offer, "an Offer or a list of them, such as Offer(amount=1000, cost=0.8)")
    if not choices or not all(isinstance(one, Offer) for one in choices):
        raise InputError("offer", offer, "an Offer or a list of them, such as Offer(amount=1000, cost=0.8)")
    return choices


def decide_offer(belief: Belief | MixtureBelief, choices: Sequence[Offer], label: Bounds) -> OfferDecision:
    """Return the decision on the best of several offers, given what a label is worth."""
    rate = belief.mean
    best = max(choices, key=lambda one: one.expected_profit(rate))
    profit = best.expected_profit(rate)
    accepted = profit + label.lower > 0.0
    return OfferDecision(accepted, best, profit, label, accepted or profit + label.upper <= 0.0)


def explain_offer(
    belief: Belief | MixtureBelief,
    choices: Sequence[Offer],
    decision: OfferDecision,
    money: Money,
    later: str = "later decisions",
    sized: bool = True,
) -> str:
    """Return a decision and its reason in words; ``later`` says what one more outcome is worth something for.

    If all applicants bring the same break-even and no amount, ``sized`` is False.
    """
    best = decision.offer
    size = f" {money.format(best.amount)}" if sized else ""
    others = [one for one in choices if one.amount > best.amount]
    verb = f"Offer{size} instead of {money.format(max(one.amount for one in others))}" if others else f"Accept{size}"
    mean, even = percents(belief.mean, best.cost)
    evidence = f"{number_text(belief.s)} of {number_text(belief.n)} succeeded ({mean})"
    if isinstance(belief, MixtureBelief):
        evidence = f"{mean} are expected to succeed"
    label = money.format(decision.label_value.midpoint)
    if decision.expected_profit > 0.0:
        profit = money.format(decision.expected_profit)
        return f"{verb}: {evidence}, above the break-even of {even}. The expected profit is {profit}."
    loss = money.format(-decision.expected_profit)
    facts = f"{evidence}, below the break-even of {even}. The expected loss is {loss}."
    if decision.accepted:
        return f"{verb}: {facts} One more outcome is worth {label} for {later}."
    if label == money.format(0.0):
        return f"Reject{size}: {facts} One more outcome is worth nothing for {later}."
    if not sized:
        final = "The rejection is final, because nothing more is learnt without acceptances."
        return f"Reject: {facts} One more outcome is worth only {label} for {later}. {final}"
    most = money.format(largest_accepted(belief, best.cost, decision.label_value))
    return (
        f"Reject{size}: {facts} One more outcome is worth only {label} for {later}. "
        f"At this break-even, amounts below {most} are accepted."
    )


def largest_accepted(belief: Belief | MixtureBelief, cost: float, label: Bounds) -> float:
    """Return the largest amount at stake that is accepted for a break-even, given what a label is worth."""
    gap = real("cost", cost, above=0, below=1) - belief.mean
    return math.inf if gap <= 0.0 else label.lower / gap


def lattice_position(prior: MixtureBelief, belief: Belief | MixtureBelief, rows: int) -> tuple[int, int] | None:
    """Return the observations and successes from a prior to a belief; None if it is not in the first rows after it."""
    own, given = prior.beliefs, MixtureBelief.of(belief).beliefs
    if len(own) != len(given):
        return None
    k, j = round(given[0].n - own[0].n), round(given[0].s - own[0].s)
    if not 0 <= j <= k < rows:
        return None
    for before, after in zip(own, given, strict=True):
        if not is_near(after.n - k, before.n, size_distance(before)):
            return None
        if not is_near(after.s - j, before.s, success_distance(before)):
            return None
    if isinstance(belief, MixtureBelief) and len(own) > 1:
        # The same outcomes, but another doubt at the start, are another belief.
        reached = prior.after(k, j).weights
        if any(abs(one - other) > 1e-9 for one, other in zip(belief.weights, reached, strict=True)):
            return None
    return k, j


def check_belief(belief: object, field: str = "belief") -> Belief | MixtureBelief:
    """Return the belief, or raise InputError if it is none."""
    if not isinstance(belief, Belief | MixtureBelief):
        raise InputError(field, belief, "a Belief or a MixtureBelief, such as Belief(n=2, s=1)")
    return belief


@lru_cache(maxsize=8)
def _longer(prior: Belief, offers: Offers, discount: float, tolerance: float, rows: int) -> OfferSolution:
    """Solve for a longer table."""
    return solve_offers(prior, offers, discount, rows, tolerance)


@lru_cache(maxsize=4096)
def _solution(belief: Belief | MixtureBelief, offers: Offers, discount: float, tolerance: float) -> OfferSolution:
    """Solve one belief."""
    return solve_offers(belief, offers, discount, 1, tolerance)

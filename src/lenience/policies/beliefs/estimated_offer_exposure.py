"""EstimatedOfferExposurePolicy: offers and late labels, for problems that are too large to prove anything in time.

The worth of one more pending label comes from an estimated table (:mod:`lenience.policies.beliefs.estimated_labels`),
which covers every belief that follows from the prior. Other beliefs are solved when they are asked for.

Proved is only that an offer above its break-even is accepted. The value has a stated error, which the tests compare
with certified solves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.errors import InputError
from lenience.core.json_arrays import decode_array
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import ExposureObjective
from lenience.core.validation import whole
from lenience.policies.beliefs.estimated_exposure import EstimateCertificate
from lenience.policies.beliefs.estimated_labels import EstimatedLabels
from lenience.policies.beliefs.offer_exposure_decisions import OfferExposureDecisions
from lenience.policies.beliefs.offers import check_belief, offers_of
from lenience.solvers.offers.delayed_blocks import REACH

SAME = 1e-9  # relative; counts that differ by less are equal


class LabelsAtBelief(NamedTuple):
    """The part of a table of labels at the belief that some outcomes lead to."""

    table: EstimatedLabels
    successes: float
    failures: float

    def bounds(self, pending: int) -> Bounds:
        """Return the estimate less and plus its stated error."""
        return self.table.bounds(self.successes, self.failures, pending)

    def worth(self, pending: int) -> float:
        """Return the estimate; 0 for more pending than the table follows."""
        return self.table.worth(self.successes, self.failures, pending)

    def first_rejection(self, profit: float) -> int:
        """Return the fewest pending labels at which an expected loss is not worth taking."""
        return self.table.first_rejection(self.successes, self.failures, profit)


class EstimatedOfferExposurePolicy(
    OfferExposureDecisions, frozen=True, eq=False, tag="estimated_offer_exposure", tag_field="type"
):
    """Estimated decisions on offers, or with a doubtful prior, where labels come late, for any size.

    The ``solve`` method of :class:`~lenience.Delayed` creates it where proving takes longer than allowed.

    Parameters
    ----------
    objective
        The objective that was solved.
    prior
        The belief before the first acceptance, as a mixture.
    labels
        What one more pending label is worth, from the prior on.
    values
        Values at the prior, for the numbers pending of the table of labels.
    certificate
        The estimate of the value and its stated error.

    Examples
    --------
    >>> from lenience import Delayed, Offer, Offers
    >>> offers = Offers(amount=[500, 5000], cost=[0.8, 0.8], currency="$")
    >>> policy = Delayed(offers=offers, arrivals=20_000, discount_rate=0.1, label_delay=1).solve(Belief(2, 1))
    >>> [policy.limit(Belief(2, 1), Offer(amount, 0.8)) for amount in (500, 5000)]
    [129, 0]
    >>> policy.certificate.proved
    False
    """

    labels: EstimatedLabels
    values: tuple[float, ...]
    certificate: EstimateCertificate

    @classmethod
    def solve(cls, objective: ExposureObjective, prior: Belief | MixtureBelief) -> EstimatedOfferExposurePolicy:
        """Estimate what labels are worth from a prior on.

        Parameters
        ----------
        objective : ExposureObjective
            The objective, with offers or with one break-even.
        prior : Belief or MixtureBelief
            What is known of the success probability at the start.

        Returns
        -------
        EstimatedOfferExposurePolicy
            The policy.

        Examples
        --------
        >>> from lenience import Delayed
        >>> late = Delayed(cost=0.8, arrivals=50, discount_rate=0.1, label_delay=1)
        >>> EstimatedOfferExposurePolicy.solve(late, Belief(2, 1)).limit(Belief(10, 7))
        5
        """
        start = check_belief(prior, "prior")
        labels, blocks = EstimatedLabels.solve(
            start,
            offers_of(objective),
            objective.arrivals or 0.0,
            objective.label_delay,
            objective.discount_rate or 0.0,
        )
        return cls(
            objective,
            MixtureBelief.of(start),
            labels,
            tuple(blocks.values.tolist()),
            EstimateCertificate(blocks.value, blocks.error),
        )

    @property
    def proves(self) -> bool:
        """False: labels are estimated."""
        return False

    def value(self, belief: Belief | MixtureBelief, pending: int = 0) -> Bounds:
        """Return the estimated value from a belief on, before the next arrival, less and plus its stated error.

        Beliefs other than the prior need a solve.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.
        pending : int
            Number of accepted individuals whose label is not known yet.

        Returns
        -------
        Bounds
            The estimate less and plus its stated error, in money. It is not proved.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = EstimatedOfferExposurePolicy.solve(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))
        >>> 7.0002 in policy.value(Belief(2, 1))
        True
        """
        count = whole("pending", pending)
        own = self if MixtureBelief.of(belief) == self.prior else _solved(self.objective, belief)
        estimate = float(np.interp(count, own.labels.counts, own.values))
        start, error = own.certificate.estimate, own.certificate.error
        if start > 0.0:  # With more pending the value is larger, and so is its error.
            error *= max(estimate / start, 1.0)
        return Bounds(max(estimate - error, 0.0), estimate + error)

    def to_json(self) -> str:
        """Return the policy as JSON text; :meth:`from_json` reads it without solving anything.

        Returns
        -------
        str
            JSON text.
        """
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> EstimatedOfferExposurePolicy:
        """Read a policy that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            The JSON text.

        Returns
        -------
        EstimatedOfferExposurePolicy
            The policy.

        Raises
        ------
        InputError
            If the text is not the JSON of such a policy.

        Examples
        --------
        >>> from lenience import Delayed
        >>> policy = EstimatedOfferExposurePolicy.solve(Delayed(0.8, 50, 0.1, 1), Belief(2, 1))
        >>> EstimatedOfferExposurePolicy.from_json(policy.to_json()).limit(Belief(10, 7))
        5
        """
        try:
            return msgspec.json.decode(text, type=cls, dec_hook=decode_array)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError.because(
                f"is not the JSON of estimated decisions on offers: {error}", "text", code="invalid_file"
            ) from error

    def __repr__(self) -> str:
        return f"EstimatedOfferExposurePolicy({self.objective!r}, prior={self.prior.simplified!r})"

    def labels_at(self, belief: Belief | MixtureBelief) -> LabelsAtBelief:
        """Return what labels are worth at a belief.

        A belief that does not follow from the prior, or that the prior all but excludes, has a table of its own, which
        is solved when it is first asked for.

        Parameters
        ----------
        belief : Belief or MixtureBelief
            What is known of the success probability.

        Returns
        -------
        LabelsAtBelief
            Estimates by the number pending, with their stated error.
        """
        mixture = MixtureBelief.of(check_belief(belief))
        if len(mixture.beliefs) == len(self.prior.beliefs):
            start, now = self.prior.beliefs[0], mixture.beliefs[0]
            good, bad = now.s - start.s, (now.n - now.s) - (start.n - start.s)
            slack = SAME * max(now.n, 1.0)
            if len(mixture.beliefs) == 1:
                # One belief is found by its size and rate, whatever the number of successes behind it.
                near = abs(now.mean - start.mean) <= REACH * math.sqrt(start.variance)
                if near and now.n >= start.n - slack:
                    return LabelsAtBelief(self.labels, good, bad)
            elif good >= -slack and bad >= -slack:
                expected = self.prior.after(max(good + bad, 0.0), min(max(good, 0.0), max(good + bad, 0.0)))
                if _same(expected, mixture):
                    return LabelsAtBelief(self.labels, max(good, 0.0), max(bad, 0.0))
        return LabelsAtBelief(_solved(self.objective, mixture.simplified).labels, 0.0, 0.0)


def _same(one: MixtureBelief, other: MixtureBelief) -> bool:
    """Return whether two mixtures are equal up to rounding."""
    return all(
        math.isclose(a.n, b.n, rel_tol=SAME)
        and math.isclose(a.s, b.s, rel_tol=SAME, abs_tol=SAME)
        and math.isclose(v, w, rel_tol=1e-6, abs_tol=SAME)
        for a, b, v, w in zip(one.beliefs, other.beliefs, one.weights, other.weights, strict=True)
    )


@lru_cache(maxsize=64)
def _solved(objective: ExposureObjective, belief: Belief | MixtureBelief) -> EstimatedOfferExposurePolicy:
    """Return the policy of a belief, cached."""
    return EstimatedOfferExposurePolicy.solve(objective, belief)

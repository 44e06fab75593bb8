"""OfferRequest: an offer as a request gives it, in one of three forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.core.validation import real
from lenience.service.domain import limits

LEAST = 1e-9
Amount = Annotated[float, Meta(ge=LEAST, le=limits.AMOUNT)]
FORMS: tuple[tuple[str, ...], ...] = (("amount", "cost"), ("gain", "loss"), ("amount", "rate", "term"))
LOAN_ONLY = ("loss_given_default", "funding_rate")
# What the service assumes if a request leaves these terms of a loan out.
LEFT_OUT = {"loss_given_default": "a default loses all of the amount", "funding_rate": "funding costs nothing"}
ALLOWED = "amount and cost, or gain and loss, or amount, rate and term (with loss_given_default and funding_rate)"


class OfferRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One offer, given as ``amount`` (at stake) and ``cost``, as ``gain`` and ``loss``, or as a loan.

    A loan has the ``amount`` lent, the interest ``rate`` a year and the ``term`` in years.
    """

    amount: Annotated[Amount, Meta(description="Gain plus loss; with rate and term, the amount lent")] | None = None
    cost: (
        Annotated[float, Meta(ge=LEAST, lt=1, description="The break-even success rate: loss/(gain + loss)")] | None
    ) = None
    gain: Annotated[Amount, Meta(description="What a success earns")] | None = None
    loss: Annotated[Amount, Meta(description="What a failure loses")] | None = None
    rate: Annotated[float, Meta(gt=0, le=100, description="The interest rate a year, e.g. 0.12")] | None = None
    term: Annotated[float, Meta(gt=0, le=100, description="The term in years")] | None = None
    loss_given_default: (
        Annotated[float, Meta(gt=0, le=10, description="The share of the amount lent that a default loses")] | None
    ) = None
    funding_rate: (
        Annotated[float, Meta(ge=0, le=100, description="The rate a year at which the lender funds the loan")] | None
    ) = None

    def __post_init__(self) -> None:
        given = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        loan = "rate" in given or "term" in given
        form = FORMS[2] if loan else FORMS[1] if "gain" in given or "loss" in given else FORMS[0]
        for name in form:
            if name not in given:
                raise InputError.because(
                    f"must be given: an offer has {ALLOWED}", name, allowed=ALLOWED, code="missing"
                )
        for name in given:
            if name not in form and not (loan and name in LOAN_ONLY):
                raise InputError.because(
                    f"cannot be combined with {' and '.join(form)}: an offer has {ALLOWED}",
                    name,
                    value=getattr(self, name),
                    allowed=ALLOWED,
                    code="conflicting_fields",
                )
        offer = self.offer
        real("cost", offer.cost, least=LEAST, below=1, label="the break-even loss/(gain + loss)")
        real("amount", offer.amount, least=LEAST, most=limits.AMOUNT, label="gain plus loss")

    @property
    def offer(self) -> Offer:
        """The amount at stake and the break-even.

        >>> OfferRequest(gain=200, loss=800).offer
        Offer(amount=1000.0, cost=0.8)
        """
        if self.cost is not None and self.amount is not None:
            return Offer(self.amount, self.cost)
        if self.gain is not None and self.loss is not None:
            return Offer.from_gain_and_loss(self.gain, self.loss)
        assert self.amount is not None
        assert self.rate is not None
        assert self.term is not None
        lost = 1.0 if self.loss_given_default is None else self.loss_given_default
        return Offer.from_loan(self.amount, self.rate, self.term, lost, self.funding_rate or 0.0)


def missing_terms_warnings(offers: Iterable[OfferRequest], economics: Mapping[str, str]) -> list[str]:
    """Return a warning for each term of a loan that the policy was fitted with and that a request leaves out.

    Parameters
    ----------
    offers
        The offers of the request.
    economics
        How gain and loss of the past loans were computed, from the origin of the version.

    Examples
    --------
    >>> missing_terms_warnings([OfferRequest(amount=5000, rate=0.12, term=3)], {"loss_given_default": "0.6"})
    ['offer.loss_given_default is missing, so a default loses all of the amount; the policy was fitted with 0.6']
    >>> missing_terms_warnings([OfferRequest(gain=200, loss=800)], {"loss_given_default": "0.6"})
    []
    """
    loans = [offer for offer in offers if offer.rate is not None]
    return [
        f"offer.{name} is missing, so {meaning}; the policy was fitted with {economics[name]}"
        for name, meaning in LEFT_OUT.items()
        if name in economics and any(getattr(loan, name) is None for loan in loans)
    ]

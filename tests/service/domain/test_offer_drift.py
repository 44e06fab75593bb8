"""Warnings about offers that have changed: how often they are wrong, and what they overlook."""

from __future__ import annotations

import numpy as np

from lenience import Offer, Offers
from lenience.service.domain.offer_drift import offer_drift

ATOMS = Offers(amount=[500, 1000, 5000], cost=[0.7, 0.8, 0.9], share=[0.5, 0.3, 0.2])


def drawn(rng: np.random.Generator, count: int, scale: float = 1.0) -> list[Offer]:
    chosen = rng.choice(3, size=count, p=np.array(ATOMS.share))
    return [Offer(scale * ATOMS.amount[i], ATOMS.cost[i]) for i in chosen]


def test_the_same_offers_are_hardly_ever_reported() -> None:
    rng = np.random.default_rng(7)
    false = sum(offer_drift("a", ATOMS, drawn(rng, 300)) is not None for _ in range(2_000))
    assert false <= 8  # 2 are expected


def test_larger_offers_are_reported() -> None:
    rng = np.random.default_rng(8)
    assert all(offer_drift("a", ATOMS, drawn(rng, 1_000, 1.5)) for _ in range(20))
    assert offer_drift("a", ATOMS, drawn(rng, 99, 3.0)) is None  # too few
    assert offer_drift("a", ATOMS, drawn(rng, 1_000_000, 1.04)) is None  # a change that does not matter


def test_prices_count_beside_amounts() -> None:
    cheaper = [Offer(amount, cost + 0.05) for amount, cost in zip(ATOMS.amount, ATOMS.cost, strict=True)] * 200
    even = Offers(amount=[500, 1000, 5000], cost=[0.7, 0.8, 0.9])
    warning = offer_drift("a", even, cheaper)
    assert warning is not None
    assert "average" in warning


def test_one_offer_for_all() -> None:
    only = Offers(amount=[1000], cost=[0.8])
    assert offer_drift("a", only, [Offer(1000, 0.8)] * 200) is None
    assert offer_drift("a", only, [Offer(2000, 0.8)] * 200) is not None
    assert offer_drift("a", Offers.menu(amount=[100, 1000], cost=[0.8, 0.8]), [Offer(100, 0.8)] * 200) is None

"""How well a version predicts: expected and actual success rates by band of the expected rate.

The intervals of all bands hold together with probability 90%. With many bands, one would otherwise often miss by
chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.formatting import counted, percent

BANDS = 10
CONFIDENCE = 0.9  # that the intervals of all bands hold


class BandDecision(NamedTuple):
    """A decision: the expected success rate, whether it was accepted and why, and the outcome if it is known."""

    mean: float
    accepted: bool
    to_learn: bool  # although not above the break-even
    success: bool | None


class CalibrationBand(msgspec.Struct, frozen=True):
    """Applicants whose expected success rate lies in one band.

    ``expected`` is the mean expected success rate of those with an outcome and ``actual`` the share of successes, with
    its ``interval``. They are null without an outcome. ``agrees`` says whether the interval holds the expected rate.
    """

    low: float
    high: float
    applicants: int
    accepted: int
    to_learn: int
    outcomes: int
    successes: int
    expected: float | None
    actual: float | None
    interval: Bounds | None
    agrees: bool | None
    remark: str


def bands_of(decisions: Iterable[BandDecision]) -> list[CalibrationBand]:
    """Return the bands of decisions, from the lowest expected rate to the highest, without empty ends.

    >>> two = [BandDecision(0.82, True, False, True), BandDecision(0.87, True, False, False)]
    >>> [(band.low, band.outcomes, band.actual, round(band.expected, 3), band.agrees) for band in bands_of(two)]
    [(0.8, 2, 0.5, 0.845, True)]
    """
    groups: list[list[BandDecision]] = [[] for _ in range(BANDS)]
    for one in decisions:
        groups[min(int(one.mean * BANDS), BANDS - 1)].append(one)
    with_outcomes = sum(any(one.success is not None for one in group) for group in groups)
    confidence = 1.0 - (1.0 - CONFIDENCE) / max(with_outcomes, 1)
    bands = [_band(i, group, confidence) for i, group in enumerate(groups)]
    while bands and not bands[-1].applicants:
        bands.pop()
    while bands and not bands[0].applicants:
        bands.pop(0)
    return bands


def _band(i: int, group: list[BandDecision], confidence: float) -> CalibrationBand:
    known = [one for one in group if one.success is not None]
    good = sum(one.success is True for one in known)
    accepted, to_learn = sum(one.accepted for one in group), sum(one.to_learn for one in group)
    expected = actual = interval = agrees = None
    if known:
        expected, actual = sum(one.mean for one in known) / len(known), good / len(known)
        interval = Belief(1 + len(known), 0.5 + good).interval(confidence)
        agrees = interval.lower <= expected <= interval.upper
    return CalibrationBand(
        low=i / BANDS,
        high=(i + 1) / BANDS,
        applicants=len(group),
        accepted=accepted,
        to_learn=to_learn,
        outcomes=len(known),
        successes=good,
        expected=expected,
        actual=actual,
        interval=interval,
        agrees=agrees,
        remark=_remark(len(group), accepted, to_learn, agrees),
    )


def _remark(applicants: int, accepted: int, to_learn: int, agrees: bool | None) -> str:
    """Say what a band shows, in a few words."""
    if not applicants:
        return ""
    if agrees is None:
        if to_learn:
            return "no outcome yet; some are accepted to learn"
        return "no outcome yet" if accepted else "nobody is accepted"
    return "as expected" if agrees else "not as expected"


def calibration_sentence(bands: list[CalibrationBand]) -> str:
    """Say whether outcomes are as expected, over all bands.

    >>> calibration_sentence(bands_of([BandDecision(0.82, True, False, True)]))
    'Outcomes are as expected in the 1 band that has any: 100% succeeded, 82% was expected (1 outcome).'
    >>> calibration_sentence([])
    'No outcome is known yet.'
    """
    known = [band for band in bands if band.outcomes]
    if not known:
        return "No outcome is known yet."
    outcomes = sum(band.outcomes for band in known)
    actual = percent(sum(band.successes for band in known) / outcomes)
    expected = percent(sum((band.expected or 0.0) * band.outcomes for band in known) / outcomes)
    rates = f"{actual} succeeded, {expected} was expected ({counted(outcomes, 'outcome')})."
    wrong = [band for band in known if not band.agrees]
    if not wrong:
        several = "the 1 band that has any" if len(known) == 1 else f"all {len(known)} bands that have any"
        return f"Outcomes are as expected in {several}: {rates}"
    where = ", ".join(f"{percent(band.low, 0)}–{percent(band.high, 0)}" for band in wrong)
    return f"Outcomes are not as expected where the model expects {where}. Over all bands, {rates}"

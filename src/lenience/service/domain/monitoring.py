"""What monitoring says about a version: the population, expected and observed outcomes, and acceptance.

Each comparison has an interval, a state (ok, watch or act) and a sentence.

Acceptance. Let q be the shares of the segments in the version's own population, a those of the latest applicants, and w
the share that the version would accept in a segment if no limit were reached. Then

    accepted = Σ q w  +  Σ (a − q) w  −  stopped by a limit  +  changed by people.

The first term is what the version expects of its own population, the second is due to a different mix of applicants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from lenience.core.bounds import Bounds
from lenience.core.formatting import counted, percent
from lenience.service.domain.expected_outcomes import ExpectedOutcomes, Health, likely_successes
from lenience.service.domain.input_drift import InputDrift
from lenience.service.domain.population_stability import LEAST, LEVEL, Change, StabilityIndex

MOST_PARTS = 20  # parts of a population that are listed, the most changed ones
SMALL, LARGE = 0.05, 0.10  # differences of acceptance that matter
STATES: dict[Change, Health] = {"none": "ok", "some": "watch", "much": "act"}
Kind: TypeAlias = Literal["segments", "feature", "offers"]


class PartShare(msgspec.Struct, frozen=True):
    """The share of a part of the population, before and now."""

    name: str
    before: float
    now: float


class PopulationDrift(msgspec.Struct, frozen=True):
    """How the latest applicants differ from the version's own data.

    ``index`` is the population stability index. Chance alone exceeds ``noise`` with a probability of 0.1%, over all
    comparisons of the kind. ``interval`` holds the true index with probability 95%. ``parts`` are those that changed
    most.
    """

    kind: Kind
    name: str
    index: float
    noise: float
    interval: Bounds
    state: Health
    sentence: str
    parts: list[PartShare] = []


class MonthlyAcceptance(msgspec.Struct, frozen=True):
    """The acceptance rate of a month (UTC), with its 95% interval."""

    month: str
    applicants: int
    accepted: int
    rate: float
    interval: Bounds


class Acceptance(msgspec.Struct, frozen=True):
    """The acceptance rate of the latest applicants, and the rate that the version expects of its own population.

    ``rate`` = ``expected`` + ``by_mix`` + ``by_limits`` + ``by_people``. Chance alone leaves ``range`` with a
    probability of 5% if the population is still that of the version and no limit is reached.
    """

    applicants: int
    accepted: int
    rate: float | None
    interval: Bounds | None
    expected: float | None
    range: Bounds | None
    by_mix: float
    by_limits: float
    by_people: float
    state: Health
    sentence: str
    months: list[MonthlyAcceptance]


class MonitoringReport(msgspec.Struct, frozen=True):
    """How a running version does, compared with its own data and its own expectations.

    ``population`` compares the latest applicants with ``compared_with``. ``outcomes`` compares all known outcomes
    together, ``by_segment`` in segments (or, where the version decides by features, in bands of the expected rate) and
    ``by_month`` by the month of the decision.
    """

    policy: str
    version: int
    at: str
    state: Health
    sentence: str
    compared_with: str
    applicants: int
    population: list[PopulationDrift]
    population_sentence: str
    outcomes: ExpectedOutcomes | None
    by_segment: list[ExpectedOutcomes]
    by_month: list[ExpectedOutcomes]
    outcomes_sentence: str
    acceptance: Acceptance


def drift_of_shares(
    kind: Kind, name: str, names: Sequence[str], before: Sequence[float], now: Sequence[float], found: StabilityIndex
) -> PopulationDrift:
    """Return the drift of a division of the population into parts.

    Parameters
    ----------
    kind : str
        What is divided: segments, a feature or offers.
    name : str
        The name of the feature or segment.
    names : sequence of str
        The names of the parts.
    before, now : sequence of float
        Counts or shares of the parts.
    found : StabilityIndex
        Their population stability index.
    """
    old, new = max(sum(before), 1e-300), max(sum(now), 1e-300)
    parts = [PartShare(part, b / old, n / new) for part, b, n in zip(names, before, now, strict=True)]
    parts.sort(key=lambda part: -abs(part.now - part.before))
    sentence = "No change beyond chance." if found.index <= found.noise else "A change too small to matter."
    if found.change != "none":
        grown = max(parts, key=lambda part: part.now - part.before)
        extent = "much" if found.change == "much" else "somewhat"
        sentence = f"Changed {extent}: {percent(grown.now)} now in {grown.name}, {percent(grown.before)} before."
    return PopulationDrift(
        kind, name, found.index, found.noise, found.interval, STATES[found.change], sentence, parts[:MOST_PARTS]
    )


def drift_of_feature(one: InputDrift) -> PopulationDrift:
    """Return the drift of a feature of a model in the form of the others."""
    return PopulationDrift("feature", one.feature, one.index, one.noise, one.interval, STATES[one.change], one.sentence)


def summarise_population(drifts: Sequence[PopulationDrift], applicants: int, compared_with: str) -> str:
    """Say whether the population has changed.

    >>> summarise_population([], 12, "")
    '12 applicants so far. The comparison starts at 50.'
    """
    if not drifts:
        if applicants < LEAST:
            return f"{counted(applicants, 'applicant')} so far. The comparison starts at {LEAST}."
        return "There is nothing to compare the applicants with yet."
    changed = [one for one in drifts if one.state != "ok"]
    against = f"compared with {compared_with}"
    if not changed:
        return f"The applicants have not changed, {against}."
    first = max(changed, key=lambda one: one.index)
    what = {"segments": "the mix of segments", "feature": first.name, "offers": f"the offers in {first.name}"}
    more = f" and {counted(len(changed) - 1, 'other comparison')}" if len(changed) > 1 else ""
    return f"The applicants have changed, {against}: {what[first.kind]}{more}. {first.sentence}"


def summarise_outcomes(
    overall: ExpectedOutcomes | None, groups: Sequence[ExpectedOutcomes], months: Sequence[ExpectedOutcomes]
) -> str:
    """Say whether outcomes are as expected.

    >>> summarise_outcomes(None, [], [])
    'No outcome is known yet.'
    """
    if overall is None or not overall.outcomes:
        return "No outcome is known yet."
    wrong = [one for one in (*groups, *months) if one.state in ("watch", "act")]
    if overall.state == "ok" and not wrong:
        return f"Outcomes are as expected. {overall.sentence}"
    where = ", ".join(one.name for one in sorted(wrong, key=lambda one: one.state)[:5])
    return f"Outcomes are not as expected{f' in {where}' if where else ''}. {overall.sentence}"


def compare_acceptance(
    shares: Mapping[str, float] | None,
    would_accept: Mapping[str, float],
    arrivals: Mapping[str, int],
    accepted: int,
    limited: int,
    changed: int,
    interval: Bounds | None,
    months: list[MonthlyAcceptance],
) -> Acceptance:
    """Compare the acceptance of the latest applicants with what the version expects of its own population.

    Parameters
    ----------
    shares : mapping or None
        The share of each segment in the version's own population; None if it is not known.
    would_accept : mapping
        The share that the version would accept in each segment if no limit were reached.
    arrivals : mapping
        The latest applicants of each segment.
    accepted : int
        How many of them were accepted.
    limited : int
        How many of them a limit stopped.
    changed : int
        How many more were accepted because people changed decisions, negative if fewer.
    interval : Bounds or None
        The interval of the acceptance rate.
    months : list of MonthlyAcceptance
        The rate by month.
    """
    size = sum(arrivals.values())
    if size < LEAST:
        sentence = f"{counted(size, 'applicant')} so far. The comparison starts at {LEAST}."
        rate = accepted / size if size else None
        return Acceptance(size, accepted, rate, interval, None, None, 0.0, 0.0, 0.0, "no_data", sentence, months)
    rate = accepted / size
    by_limits, by_people = -limited / size, changed / size
    text = f"{percent(rate)} of the last {size:,} applicants were accepted"
    if shares is None:
        sentence = f"{text}. What the version expected is not known yet."
        return Acceptance(
            size, accepted, rate, interval, None, None, 0.0, by_limits, by_people, "no_data", sentence, months
        )
    expected = min(max(sum(share * would_accept[name] for name, share in shares.items()), 0.0), 1.0)
    by_mix = rate - by_limits - by_people - expected
    inside = likely_successes(size, expected, 1.0, 0.05)
    surely = likely_successes(size, expected, 1.0, LEVEL)
    state: Health = "ok"
    if not surely[0] <= accepted <= surely[1] and abs(rate - expected) > SMALL:
        # A limit that is reached is no surprise by itself: it has an alert of its own.
        state = "act" if abs(by_mix + by_people) > LARGE else "watch"
    wide = f"{percent(inside[0] / size)} to {percent(inside[1] / size)}"
    sentence = f"{text}. Expected for the version's own population: {percent(expected)} ({wide})."
    if not inside[0] <= accepted <= inside[1]:
        causes = {"a different mix of applicants": by_mix, "limits": by_limits, "changes by people": by_people}
        named = [
            f"{name} {100 * points:+.1f} points".replace("-", "−")
            for name, points in causes.items()
            if abs(points) >= 0.0005
        ]
        sentence += f" Causes: {', '.join(named)}." if named else ""
    bounds = Bounds(inside[0] / size, inside[1] / size)
    return Acceptance(
        size, accepted, rate, interval, expected, bounds, by_mix, by_limits, by_people, state, sentence, months
    )

"""off_policy: what a proposed policy would have earned, from the log of another, before anything is changed.

The log has for each individual the features x, whether it was accepted (A), the propensity e with which it was to be
accepted, and the outcome y of the accepted. A policy that accepts x with probability π(x) earns V = E[π(x)(y − c)] an
arrival. Two estimates, both unbiased if propensities are right:

    inverse propensity   mean of  π A (y − c)/e
    doubly robust        mean of  π μ(x) + π A (y − c − μ(x))/e

with μ(x) = p̂(x) − c from a model fitted to the *other* folds' accepted individuals (cross-fitting): right if the
propensities or the model are, and the less noisy of the two where the model is any good.

Intervals are Student's, from the spread of the terms. Where propensities are small a few heavy terms make up most of
it, and it is itself known badly: of n terms with kurtosis k a variance is worth ν = 2n/(k − 1) degrees of freedom,
which Student's law is given. With thousands of light terms that is the normal interval. Where few acceptances carry
the estimate (by the propensities alone it is worth (Σπ)²/Σ(π²/e) of them) no interval can be trusted, since the heavy
terms may not have occurred: then the answer comes with a caution.

A log of a policy that learns, whose propensities depend on earlier outcomes: each term still has the right mean, given
the past, if propensities were written down when the decision was made, so the inverse-propensity estimate is unbiased.
Its interval holds only in the long run and if acceptance does not die out: keep a floor of exploration. The doubly
robust one has the folds' models look at later rows as well, and is then only nearly unbiased.

No overlap, no answer. Where π > 0 but e = 0 the log says nothing of what the proposal would do, and no estimate can
make up for it: such a log is refused, with the share of the proposal's acceptances that it is silent about. Log with a
small ``explore`` probability, and the next proposal can be evaluated.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import percent, plural
from lenience.core.validation import check_cost, floats, real, whole

FEWEST = 30.0  # effective acceptances below which an interval means nothing
FEW = 100.0  # effective acceptances, by the propensities, below which normal intervals were result too narrow
HEAVY = 0.25  # of all weight on the five heaviest acceptances: a rule of thumb
BY_CHANCE = 1e-6  # a proposal that agrees with the log less likely than this has seen it


class RewardEstimate(msgspec.Struct, frozen=True):
    """An estimated reward an arrival with its 95% interval."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.lower:.4g}, {self.upper:.4g}]"


class OffPolicy(msgspec.Struct, frozen=True):
    """What the log says of a proposal, per arrival.

    ``logged`` is what the logging policy earned, ``inverse_propensity`` and ``doubly_robust`` what the proposal would
    have (the second only with features), ``gain`` the better-founded of the two less ``logged``, paired; ``accepted``
    is the share the proposal accepts; ``effective`` the number of acceptances the estimate is worth after weighting;
    ``caution`` says that few acceptances carry the estimate, where that is so.
    """

    arrivals: int
    logged: RewardEstimate
    inverse_propensity: RewardEstimate
    doubly_robust: RewardEstimate | None
    gain: RewardEstimate
    accepted: float
    effective: float
    caution: str = ""

    def written(self, number: float) -> str:
        """A reward with as many decimals as the gain's interval leaves to be told: three digits of its half-width."""
        half = (self.gain.upper - self.gain.lower) / 2
        decimals = 2 - math.floor(math.log10(half)) if 0 < half < math.inf else 5
        return f"{number:+z.{max(decimals, 0)}f}"

    @property
    def statement(self) -> str:
        """The answer in words."""
        value, lower, upper = (self.written(part) for part in (self.gain.value, self.gain.lower, self.gain.upper))
        if (float(lower) == 0) != (float(upper) == 0):
            more = "more" if self.gain.value > 0 else "less"
            verdict = f"The proposal may have earned {more}, but no gain at all is at the edge of the interval"
        elif self.gain.lower > 0:
            verdict = "The proposal would have earned more"
        elif self.gain.upper < 0:
            verdict = "The proposal would have earned less"
        else:
            verdict = "The log does not tell the proposal from the policy that was used"
        return (
            f"{verdict}: {value} an arrival, 95% interval {lower} to {upper}, from "
            f"{self.arrivals:,} arrivals worth {self.effective:,.0f} acceptances."
            f"{' ' + self.caution if self.caution else ''}"
        )


def off_policy(
    proposed: ArrayLike,
    accepted: ArrayLike,
    propensity: ArrayLike,
    outcomes: ArrayLike,
    cost: float,
    X: ArrayLike | None = None,
    least_propensity: float = 1e-3,
    folds: int = 5,
) -> OffPolicy:
    """RewardEstimate what a proposed policy would have earned.

    ``proposed`` are its acceptance probabilities for the logged individuals (a policy's ``propensity(X)``, or 0 and 1);
    ``outcomes`` are those of the accepted, anything for the others. Propensities below ``least_propensity`` count as
    none.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=4000)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-x))
    >>> e = np.where(x > 0, 0.9, 0.2)
    >>> a = rng.random(4000) < e
    >>> result = off_policy((x > 0.4).astype(float), a, e, np.where(a, y, np.nan), cost=0.6, X=x[:, None])
    >>> print(result.statement)
    The proposal would have earned more: +0.04... an arrival, 95% interval +0.03... to +0.0..., from 4,000 arrivals
    worth 1,215 acceptances.
    """
    c = check_cost(cost)
    floor = real("least_propensity", least_propensity, above=0, below=1)
    pi, a, e, y = _checked(proposed, accepted, propensity, outcomes)
    _refuse_hindsight(pi, a, e)
    _refuse_silence(pi, e, floor)
    known = a & (pi > 0)
    weights = np.where(known, pi / np.where(e > 0, e, 1.0), 0.0)
    total = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / total if total > 0 else 0.0
    if pi.sum() > 0 and effective < FEWEST:
        raise InputError.because(
            f"must hold at least {FEWEST:.0f} effective acceptances among those that the proposal accepts; it holds "
            f"{effective:.1f}, too few for an interval",
            "accepted",
            label="the log",
            value=effective,
            allowed=f"at least {FEWEST:.0f} effective acceptances",
            hint="Log more decisions, or propose a policy nearer to the one that decided.",
            code="insufficient_data",
        )
    reward = np.where(a, np.where(a, y, 0.0) - c, 0.0)
    inverse = weights * np.where(a, reward, 0.0)
    robust = None
    if X is not None:
        model = _crossfit(_numbers(X), a, y, whole("folds", folds, least=2)) - c
        robust = pi * model + weights * np.where(a, reward - model, 0.0)
    best = inverse if robust is None else robust
    return OffPolicy(
        len(pi),
        _estimate(reward),
        _estimate(inverse),
        None if robust is None else _estimate(robust),
        _estimate(best - reward),
        float(pi.mean()),
        effective,
        _caution(pi, e, weights),
    )


def _estimate(terms: NDArray[np.float64]) -> RewardEstimate:
    from scipy.special import stdtrit

    value, count = float(terms.mean()), len(terms)
    if count < 2:
        return RewardEstimate(value, -math.inf, math.inf)
    apart = terms - value
    variance = float((apart**2).mean())
    kurtosis = float((apart**4).mean()) / variance**2 if variance > 0 else 1.0
    # The variance of n terms of kurtosis k is worth 2n/(k − 1) degrees of freedom, of two-valued terms no more than n.
    freedom = min(max(2.0 * count / max(kurtosis - 1.0, 1e-9), 1.0), count - 1.0)
    half = float(stdtrit(freedom, 0.975)) * math.sqrt(variance / (count - 1))
    return RewardEstimate(value, value - half, value + half)


def _caution(pi: NDArray[np.float64], e: NDArray[np.float64], weights: NDArray[np.float64]) -> str:
    """That few acceptances carry an estimate, if they do: by the propensities, or by the weights that occurred."""
    meant = pi > 0
    if not meant.any():
        return ""
    planned = float(pi.sum()) ** 2 / float((pi[meant] ** 2 / e[meant]).sum())
    heaviest = float(np.sort(weights)[-5:].sum() / weights.sum())
    reasons = [f"by its propensities the log is worth {planned:,.0f}"] if planned < FEW else []
    reasons += [f"the five heaviest carry {percent(heaviest)} of the weight"] if heaviest > HEAVY else []
    if not reasons:
        return ""
    least = float(e[meant].min())
    return (
        f"Few acceptances carry this estimate ({', and '.join(reasons)}; the least propensity is {least:.2g}): the "
        "interval may be too narrow."
    )


def _refuse_hindsight(pi: NDArray[np.float64], a: NDArray[np.bool_], e: NDArray[np.float64]) -> None:
    """A proposal that is the log's own decisions knows what the lottery drew: weighing it by chances is nonsense."""
    if not np.array_equal(pi, a):
        return
    agreed = np.where(a, e, 1.0 - e)  # the chance that a rule made beforehand agrees with each decision
    if float(np.log(np.maximum(agreed, 1e-300)).sum()) < math.log(BY_CHANCE):
        raise InputError.because(
            "must be probabilities known before the decision; these are the log's own decisions",
            "proposed",
            hint="What they earned is the log's own reward.",
        )


def _refuse_silence(pi: NDArray[np.float64], e: NDArray[np.float64], floor: float) -> None:
    silent = (pi > 0) & (e < floor)
    if silent.any():
        share = float(pi[silent].sum() / pi.sum())
        raise InputError.because(
            f"has no overlap with the proposal: of those whom it would accept, {percent(share)} had a probability of "
            f"acceptance below {floor:g}, so the log does not show what they would earn",
            "propensity",
            label="the log",
            value=share,
            hint="Log with some exploration, or propose a policy that accepts only those who could have been accepted.",
            code="insufficient_data",
        )


def _numbers(X: Any) -> NDArray[np.float64]:
    """The features as an array; of a frame that is not all numbers, the columns are named."""
    if _is_numbers(X) or not hasattr(X, "columns") or not hasattr(X, "to_numpy"):
        return floats("X", X)
    texts = [str(column) for column in X.columns if not _is_numbers(X[column])]
    several = plural(len(texts), "column {} is", "columns {} are").format(", ".join(texts))
    raise InputError.because(f"must be numbers; its {several} not", "X", value=texts, allowed="numbers")


def _is_numbers(values: Any) -> bool:
    try:
        floats("X", values)
    except InputError:
        return False
    return True


def _crossfit(X: NDArray[np.float64], a: NDArray[np.bool_], y: NDArray[np.float64], folds: int) -> NDArray[np.float64]:
    """p̂ at every row from a model that has not seen its fold."""
    from lenience.models.bayesian_logistic import BayesianLogistic

    if X.ndim != 2 or len(X) != len(a):
        raise InputError(
            "X", X.shape, f"a table with a row for each of the {len(a)} logged individuals", code="length_mismatch"
        )
    fold = np.arange(len(a)) % folds
    result = np.empty(len(a))
    for k in range(min(folds, len(a))):  # with more folds than rows each row is one
        model = BayesianLogistic().prepare(X)
        train = a & (fold != k)
        if train.any():
            model.learn(X[train], y[train])
        result[fold == k] = model.beliefs(X[fold == k])[1]
    return result


def _checked(
    proposed: ArrayLike, accepted: ArrayLike, propensity: ArrayLike, outcomes: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    pi, e = floats("proposed", proposed), floats("propensity", propensity)
    taken, y = floats("accepted", accepted), floats("outcomes", outcomes)
    if pi.ndim != 1 or not len(pi) or not pi.shape == e.shape == taken.shape == y.shape:
        raise InputError.because(
            "must have one number for each logged individual",
            ("proposed", "accepted", "propensity", "outcomes"),
            label="proposed, accepted, propensity and outcomes",
            code="length_mismatch",
        )
    for name, values in (("proposed", pi), ("propensity", e)):
        wrong = int(len(values) - np.count_nonzero((values >= 0) & (values <= 1)))
        if wrong:
            gone = int(np.isnan(values).sum())
            said = (
                f"{wrong:,} of {len(values):,} {plural(wrong, 'is', 'are')} not{f' ({gone:,} missing)' if gone else ''}"
            )
            raise InputError.because(
                f"must be probabilities from 0 to 1, both included; {said}",
                name,
                allowed="probabilities from 0 to 1, both included",
            )
    if not np.all((taken == 0) | (taken == 1)):
        raise InputError("accepted", allowed="true or false for each logged individual")
    a = taken.astype(bool)
    if not np.all((y[a] == 0) | (y[a] == 1)):
        raise InputError(
            "outcomes",
            allowed="0 or 1 for every accepted individual",
            hint="Leave out those whose outcome is not known yet.",
        )
    if np.any(a & (e == 0)):
        raise InputError("propensity", allowed="above 0 for everyone who was accepted")
    return pi, a, e, y

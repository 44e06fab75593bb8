"""off_policy: what a proposed policy would have earned, from the log of another, before anything changes.

The log has for each individual the features x, whether it was accepted (A), the propensity e (the probability that it
would be accepted), and the outcome y of the accepted. A policy that accepts x with probability π(x) earns
V = E[π(x)(y − c)] per arrival. There are two estimates, both unbiased if the propensities are right:

    inverse propensity   mean of  π A (y − c)/e
    doubly robust        mean of  π μ(x) + π A (y − c − μ(x))/e

with μ(x) = p̂(x) − c from a model fitted to the accepted individuals of the *other* folds (cross-fitting). The doubly
robust estimate is right if the propensities or the model are, and less noisy if the model is any good.

Intervals use Student's t distribution, from the spread of the terms. If propensities are small, a few heavy terms make
up most of the spread, and it is itself uncertain: the variance of n terms with kurtosis k has ν = 2n/(k − 1) degrees of
freedom, which the t distribution uses. With thousands of light terms this is the normal interval. If few acceptances
carry the estimate (by the propensities alone it is worth (Σπ)²/Σ(π²/e) of them), no interval is reliable, because the
heavy terms may not have occurred. The result then contains a warning.

Offers. If amounts at stake a and break-evens c differ from row to row, the reward is a(y − c) and μ(x) = a(p̂(x) − c).
Estimates are then in money. An acceptance counts by its weight times its amount where it matters how many carry the
estimate, because one large loan can carry it as well as one small propensity.

Menus. If rows offer a choice, an action is to accept with one offer. The outcome is known for the offer that was made
only, so A is 1 if the individual was accepted with the offer that the proposal would make, and e is the probability of
that. Rows with another offer count for neither estimate's correction. A log that never made the proposal's offer has
e = 0 there: no overlap.

If the logging policy learns, its propensities depend on earlier outcomes. Each term still has the right mean given the
past, if propensities were recorded when the decision was made, so the inverse-propensity estimate is unbiased. Its
interval holds only in the long run and if acceptance does not die out: keep a floor of exploration. The models of the
doubly robust estimate also use later rows, so it is then only nearly unbiased.

Open is not failed. An acceptance whose outcome is not known yet is not counted as a failure. If the share k of the
accepted have a known outcome, each of them counts 1/k: the probability of a known acceptance is e·k. That is unbiased
if open cases do not differ from closed ones. They often do, because failures arrive first: the result has a warning.

No overlap, no answer. Where π > 0 but e = 0, the log does not show what the proposal would earn, and no estimate can
make up for it. Such a log is rejected, with the share of the proposal's acceptances that it does not cover. Log with a
small ``explore`` probability, and the next proposal can be evaluated.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import percent, plural
from lenience.core.money import UNITS, Money
from lenience.core.offer_rows import OfferRows
from lenience.core.offers import Offers
from lenience.core.validation import check_cost, floats, real, whole
from lenience.files.outcome_words import OutcomeWords, Words, known_or_pending

FEWEST = 30.0  # fewer effective acceptances are too few for an interval
FEW = 100.0  # with fewer effective acceptances by the propensities, intervals are too narrow
HEAVY = 0.25  # share of the weight on the five heaviest acceptances: a rule of thumb
BY_CHANCE = 1e-6  # a proposal whose agreement with the log is less likely than this has seen the log


class RewardEstimate(msgspec.Struct, frozen=True):
    """An estimated reward per arrival with its 95% interval.

    Parameters
    ----------
    value : float
        The estimate.
    lower : float
        The lower end of the interval.
    upper : float
        The upper end of the interval.
    """

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.lower:.4g}, {self.upper:.4g}]"


class OffPolicy(msgspec.Struct, frozen=True):
    """What the log shows about a proposal, per arrival.

    Parameters
    ----------
    arrivals : int
        The number of logged individuals.
    logged : RewardEstimate
        What the logging policy earned.
    inverse_propensity : RewardEstimate
        What the proposal would have earned, by inverse propensities.
    doubly_robust : RewardEstimate or None
        The same by the doubly robust estimate; None without features.
    gain : RewardEstimate
        The better of the two estimates minus ``logged``, paired. The doubly robust one is preferred.
    accepted : float
        The share that the proposal accepts.
    effective : float
        The number of acceptances that the estimate is worth after weighting.
    caution : str, optional
        A warning if few acceptances carry the estimate or many are pending, else empty.
    pending : int, optional
        The number of accepted individuals whose outcome is not known yet.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> accepted = rng.random(2000) < 0.5
    >>> outcomes = np.where(accepted, rng.random(2000) < 0.7, np.nan)
    >>> result = off_policy(np.ones(2000), accepted, np.full(2000, 0.5), outcomes, cost=0.5)
    >>> 0.1 < result.inverse_propensity.value < 0.3  # accepting everyone earns 0.7 − 0.5 per arrival
    True
    >>> result.gain.lower > 0
    True
    """

    arrivals: int
    logged: RewardEstimate
    inverse_propensity: RewardEstimate
    doubly_robust: RewardEstimate | None
    gain: RewardEstimate
    accepted: float
    effective: float
    caution: str = ""
    pending: int = 0

    def format_reward(self, number: float, money: Money = UNITS) -> str:
        """Format a reward; without money, with three digits of the half-width of the interval of the gain.

        Parameters
        ----------
        number : float
            The reward.
        money : Money, optional
            How to show rewards; by default in units of gain + loss.

        Returns
        -------
        str
            The reward with its sign.
        """
        if money.known:
            return money.format_change(number)
        half = (self.gain.upper - self.gain.lower) / 2
        decimals = 2 - math.floor(math.log10(half)) if 0 < half < math.inf else 5
        return f"{number:+z.{max(decimals, 0)}f}"

    @property
    def statement(self) -> str:
        """The answer in words, with rewards in units of gain + loss."""
        return self.describe()

    def describe(self, money: Money = UNITS) -> str:
        """Return the answer in words.

        Parameters
        ----------
        money : Money, optional
            How to show rewards; by default in units of gain + loss.

        Returns
        -------
        str
            One sentence, or two if there is a warning.
        """
        ends = (self.gain.lower, self.gain.upper)
        value, lower, upper = (self.format_reward(part, money) for part in (self.gain.value, *ends))
        at_edge = [float(self.format_reward(end)) == 0 for end in ends]
        if at_edge[0] != at_edge[1]:
            more = "more" if self.gain.value > 0 else "less"
            verdict = f"The proposal may have earned {more}, but zero is at the edge of the interval"
        elif self.gain.lower > 0:
            verdict = "The proposal would have earned more"
        elif self.gain.upper < 0:
            verdict = "The proposal would have earned less"
        else:
            verdict = "The log does not show whether the proposal would have earned more or less"
        return (
            f"{verdict}: {value} per arrival, 95% interval {lower} to {upper}, from "
            f"{self.arrivals:,} arrivals worth {self.effective:,.0f} acceptances."
            f"{' ' + self.caution if self.caution else ''}"
        )


def off_policy(
    proposed: ArrayLike,
    accepted: ArrayLike,
    propensity: ArrayLike,
    outcomes: ArrayLike,
    cost: float | None = None,
    X: ArrayLike | None = None,
    least_propensity: float = 1e-3,
    folds: int = 5,
    offers: Any = None,
    *,
    made: ArrayLike | None = None,
    chosen: ArrayLike | None = None,
    success: Words = None,
    failure: Words = None,
    pending: Words = None,
) -> OffPolicy:
    """Estimate what a proposed policy would have earned, from the log of another.

    Parameters
    ----------
    proposed : array_like
        The probability that the proposal accepts each logged individual: the ``propensity(X)`` of a policy, or 0 and 1.
    accepted : array_like
        Whether each individual was accepted.
    propensity : array_like
        The probability with which the logging policy accepted each individual. If rows have menus, by offer: for each
        row, the probability of accepting with each offer of its menu.
    outcomes : array_like
        The outcome of each accepted individual: 0 or 1, or words such as "repaid" and "default". Missing (None or NaN)
        means not known yet. Values of the rejected are ignored.
    cost : float, optional
        The break-even success rate, if it is the same for all.
    X : array_like, optional
        The features of each individual, for the doubly robust estimate.
    least_propensity : float, optional
        Propensities below this count as 0.
    folds : int, optional
        The number of folds of the cross-fitting.
    offers : optional
        Instead of the cost: the offer of each row, as a pair of columns (amounts at stake, break-evens) or a list of
        :class:`~lenience.Offer`. Estimates are then in money; ``result.describe(Money(1, "$"))`` shows them so. A row
        may also have a menu to choose from, ``Offers.menu(…)``. A row then counts for the proposal only if the log made
        the offer that the proposal would make, because the outcome of another offer is not known.
    made : array_like, optional
        If rows have menus: the position in its menu of the offer that was made, from 0. Values of the rejected are
        ignored.
    chosen : array_like, optional
        If rows have menus: the position of the offer that the proposal would make. Ignored where ``proposed`` is 0.
    success, failure, pending : str or sequence, optional
        Outcomes that mean success, failure, and "not known yet", in addition to the usual words. A value without a
        meaning raises an error.

    Returns
    -------
    OffPolicy
        The estimates with 95% intervals.

    Raises
    ------
    InputError
        If an argument is invalid, the log does not overlap with the proposal (it never made the offers that the
        proposal would make), it holds too few acceptances, or the proposal repeats the decisions of the log.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=4000)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-x))
    >>> e = np.where(x > 0, 0.9, 0.2)
    >>> a = rng.random(4000) < e
    >>> result = off_policy((x > 0.4).astype(float), a, e, np.where(a, y, np.nan), cost=0.6, X=x[:, None])
    >>> print(result.statement)
    The proposal would have earned more: +0.04... per arrival, 95% interval +0.03... to +0.0..., from 4,000 arrivals
    worth 1,215 acceptances.

    A log that offered half of the applicants a tenth of the amount, and a proposal to do so always:

    >>> menu, small = Offers.menu([900, 90], [0.6, 0.6]), rng.random(4000) < 0.5
    >>> started = off_policy(
    ...     np.ones(4000), np.ones(4000), np.full((4000, 2), 0.5), y, offers=menu, made=small, chosen=np.ones(4000)
    ... )
    >>> started.effective < 2100, started.inverse_propensity.value > started.logged.value
    (True, True)
    """
    menus = None if offers is None or cost is not None else _menus(offers, proposed)
    if menus is not None:
        return _with_menus(
            menus, proposed, accepted, propensity, outcomes, made, chosen, X, least_propensity, folds,
            OutcomeWords.of(success, failure, pending),
        )  # fmt: skip
    if made is not None or chosen is not None:
        raise InputError.because(
            "needs rows that offer a choice",
            "made" if chosen is None else "chosen",
            hint="Give each row a menu as its offers, such as Offers.menu([500, 50], [0.8, 0.8]).",
            code="conflicting_fields",
        )
    pi, a, e, y = _checked(proposed, accepted, propensity, outcomes, OutcomeWords.of(success, failure, pending))
    amount, c = stakes_of_rows(cost, offers, len(pi))
    return _estimated(_Log(pi, a, e, y, amount, c, amount, c, a), X, least_propensity, folds)


class _Log(NamedTuple):
    """A checked log: the proposal's and the log's probabilities, what each would put at stake, and what is comparable.

    ``e`` is the log's probability of doing what the proposal would do: accept, with the offer that the proposal would
    make. ``same`` says who was accepted with that offer.
    """

    pi: NDArray[np.float64]
    a: NDArray[np.bool_]
    e: NDArray[np.float64]
    y: NDArray[np.float64]
    amount: NDArray[np.float64]
    c: NDArray[np.float64]
    logged_amount: NDArray[np.float64]
    logged_c: NDArray[np.float64]
    same: NDArray[np.bool_]


def _estimated(log: _Log, X: ArrayLike | None, least_propensity: float, folds: int) -> OffPolicy:
    """Return the estimates from a checked log."""
    floor = real("least_propensity", least_propensity, above=0, below=1)
    pi, a, e, y, amount, c, logged_amount, logged_c, same = log
    _reject_hindsight(pi, same, e)
    _reject_no_overlap(pi, e, floor, same is not log.a)
    open_cases = int((a & np.isnan(y)).sum())
    warnings = _pending_warning(open_cases, int(a.sum()))
    if open_cases:  # from here on, an acceptance is one with a known outcome
        e = e * (1.0 - open_cases / a.sum())
        scale, a = a.sum() / (a.sum() - open_cases), a & ~np.isnan(y)
        same = same & a
    else:
        scale = 1.0
    known = same & (pi > 0)
    weights = np.where(known, pi / np.where(e > 0, e, 1.0), 0.0)
    carried = weights * amount
    total = float((carried**2).sum())
    effective = float(carried.sum()) ** 2 / total if total > 0 else 0.0
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
    reward = np.where(same, amount * (np.where(same, y, 0.0) - c), 0.0)
    inverse = weights * reward
    robust = None
    if X is not None:
        model = amount * (_crossfit(_numbers(X), a, y, whole("folds", folds, least=2)) - c)
        robust = pi * model + weights * np.where(same, reward - model, 0.0)
    best = inverse if robust is None else robust
    logged = scale * np.where(a, logged_amount * (np.where(a, y, 0.0) - logged_c), 0.0)
    return OffPolicy(
        len(pi),
        _estimate(logged),
        _estimate(inverse),
        None if robust is None else _estimate(robust),
        _estimate(best - logged),
        float(pi.mean()),
        effective,
        " ".join(text for text in (_caution(pi * amount, e, carried), warnings) if text),
        open_cases,
    )


def _menus(offers: Any, proposed: ArrayLike) -> OfferRows | None:
    """Return the menus of the rows if any offers a choice."""
    stakes = OfferRows.of(offers, len(floats("proposed", proposed).ravel()), Offers((1.0, 1.0), (0.5, 0.5)))
    return None if stakes.single else stakes


def _with_menus(
    menus: OfferRows,
    proposed: ArrayLike,
    accepted: ArrayLike,
    propensity: Any,
    outcomes: ArrayLike,
    made: ArrayLike | None,
    chosen: ArrayLike | None,
    X: ArrayLike | None,
    least_propensity: float,
    folds: int,
    words: OutcomeWords,
) -> OffPolicy:
    """Return the estimates where rows offer a choice: a row counts if the log made the offer of the proposal."""
    for name, given in (("made", made), ("chosen", chosen)):
        if given is None:
            which = "was made" if name == "made" else "the proposal would make"
            raise InputError.because(
                f"must say which offer {which}, because rows offer a choice",
                name,
                hint=f"Give {name}=[0, 1, …], the position of that offer in the row's menu.",
                code="missing",
            )
    chances = _by_offer(menus, propensity)
    total = np.add.reduceat(chances, menus.start[:-1])
    if np.any(total > 1.0 + 1e-9):
        row = int(np.flatnonzero(total > 1.0 + 1e-9)[0])
        raise InputError.because(
            f"must add up to at most 1 in each row; in row {row + 1:,} they add up to {total[row]:g}", "propensity"
        )
    pi, a, _, y = _checked(proposed, accepted, np.minimum(total, 1.0), outcomes, words)
    ours, theirs = menus.positions("chosen", chosen, pi > 0), menus.positions("made", made, a)
    if np.any(a & (chances[menus.start[:-1] + theirs] == 0)):
        raise InputError("propensity", allowed="above 0 for every offer that was made")
    offer, logged = menus.at(ours), menus.at(theirs)
    return _estimated(
        _Log(pi, a, chances[menus.start[:-1] + ours], y, offer.amount, offer.cost, logged.amount, logged.cost,
             a & (ours == theirs)),
        X, least_propensity, folds,
    )  # fmt: skip


def _by_offer(menus: OfferRows, propensity: Any) -> NDArray[np.float64]:
    """Return the probability of each offer of each row, one row after another."""
    counts = np.diff(menus.start)
    try:
        rows = [np.atleast_1d(floats("propensity", one)) for one in propensity]
    except TypeError:
        rows = []
    if [row.size for row in rows] != counts.tolist():
        raise InputError.because(
            "must have one probability for each offer of each row, because rows offer a choice",
            "propensity",
            hint="Log the probability of accepting with each offer of the menu, such as [[0.5, 0.3], …].",
            code="length_mismatch",
        )
    return np.concatenate(rows)


def _pending_warning(open_cases: int, accepted: int) -> str:
    """Return a warning if some of the accepted have no outcome yet; raise InputError if none has one."""
    if not open_cases:
        return ""
    if open_cases == accepted:
        raise InputError.because(
            "must be known for at least one accepted individual", "outcomes", code="insufficient_data"
        )
    return (
        f"{open_cases:,} of {accepted:,} accepted ({percent(open_cases / accepted)}) have no outcome yet. The others "
        "count for them. If failures arrive earlier than successes, the rewards are therefore too low: use only "
        "decisions old enough to have their outcome."
    )


def stakes_of_rows(cost: float | None, offers: Any, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the amount at stake and the break-even of each row, checked. With one cost the amount is 1."""
    if (cost is None) == (offers is None):
        raise InputError.because(
            f"Give either cost or offers{'' if cost is None else ', not both'}",
            ("cost", "offers"),
            label="",
            code="missing" if cost is None else "conflicting_fields",
        )
    if cost is not None:
        return np.ones(rows), np.full(rows, check_cost(cost))
    stakes = OfferRows.of(offers, rows, Offers((1.0, 1.0), (0.5, 0.5)))
    return stakes.amount, stakes.cost


def _estimate(terms: NDArray[np.float64]) -> RewardEstimate:
    """Return the mean of the terms with its 95% interval."""
    from scipy.special import stdtrit

    value, count = float(terms.mean()), len(terms)
    if count < 2:
        return RewardEstimate(value, -math.inf, math.inf)
    deviations = terms - value
    variance = float((deviations**2).mean())
    kurtosis = float((deviations**4).mean()) / variance**2 if variance > 0 else 1.0
    # The variance of n terms of kurtosis k has 2n/(k − 1) degrees of freedom; that of two-valued terms at most n.
    freedom = min(max(2.0 * count / max(kurtosis - 1.0, 1e-9), 1.0), count - 1.0)
    half = float(stdtrit(freedom, 0.975)) * math.sqrt(variance / (count - 1))
    return RewardEstimate(value, value - half, value + half)


def _caution(pi: NDArray[np.float64], e: NDArray[np.float64], weights: NDArray[np.float64]) -> str:
    """Return a warning if few acceptances carry an estimate, by the propensities or by the weights that occurred."""
    proposed = pi > 0
    if not proposed.any():
        return ""
    planned = float(pi.sum()) ** 2 / float((pi[proposed] ** 2 / e[proposed]).sum())
    heaviest = float(np.sort(weights)[-5:].sum() / weights.sum())
    reasons = [f"by the propensities the log is worth {planned:,.0f}"] if planned < FEW else []
    reasons += [f"the five heaviest carry {percent(heaviest)} of the weight"] if heaviest > HEAVY else []
    if not reasons:
        return ""
    least = float(e[proposed].min())
    return (
        f"Few acceptances carry this estimate ({', and '.join(reasons)}; the smallest propensity is {least:.2g}), so "
        "the interval may be too narrow."
    )


def _reject_hindsight(pi: NDArray[np.float64], a: NDArray[np.bool_], e: NDArray[np.float64]) -> None:
    """Raise InputError if the proposal repeats the decisions of the log, because weighting is then meaningless."""
    if not np.array_equal(pi, a):
        return
    agreement = np.where(a, e, 1.0 - e)  # probability that a rule made before the log agrees with each decision
    if float(np.log(np.maximum(agreement, 1e-300)).sum()) < math.log(BY_CHANCE):
        raise InputError.because(
            "must be probabilities known before the decision; these are the log's own decisions",
            "proposed",
            hint="The reward of these decisions is the reward of the log itself.",
        )


def _reject_no_overlap(pi: NDArray[np.float64], e: NDArray[np.float64], floor: float, menus: bool) -> None:
    """Raise InputError if the proposal accepts individuals whom the log could not accept."""
    silent = (pi > 0) & (e < floor)
    if silent.any():
        share = float(pi[silent].sum() / pi.sum())
        raise InputError.because(
            f"does not overlap with the proposal: of those whom it would accept, {percent(share)} had a probability of "
            f"acceptance{' with that offer' if menus else ''} below {floor:g}, so the log does not show what they "
            "would earn",
            "propensity",
            label="the log",
            value=share,
            hint=(
                "Log with some chance of each offer, or propose offers that could have been made."
                if menus
                else "Log with some exploration, or propose a policy that accepts only those who could have been "
                "accepted."
            ),
            code="insufficient_data",
        )


def _numbers(X: Any) -> NDArray[np.float64]:
    """Convert the features to an array; the error names the columns of a frame that are not numbers."""
    if _is_numbers(X) or not hasattr(X, "columns") or not hasattr(X, "to_numpy"):
        return floats("X", X)
    texts = [str(column) for column in X.columns if not _is_numbers(X[column])]
    columns = plural(len(texts), "column {} is", "columns {} are").format(", ".join(texts))
    raise InputError.because(f"must be numbers; its {columns} not", "X", value=texts, allowed="numbers")


def _is_numbers(values: Any) -> bool:
    """Return whether values can be converted to numbers."""
    try:
        floats("X", values)
    except InputError:
        return False
    return True


def _crossfit(X: NDArray[np.float64], a: NDArray[np.bool_], y: NDArray[np.float64], folds: int) -> NDArray[np.float64]:
    """Return p̂ of every row from a model that has not seen its fold."""
    from lenience.models.bayesian_logistic import BayesianLogistic

    if X.ndim != 2 or len(X) != len(a):
        raise InputError(
            "X", X.shape, f"a table with a row for each of the {len(a)} logged individuals", code="length_mismatch"
        )
    fold = np.arange(len(a)) % folds
    result = np.empty(len(a))
    for k in range(min(folds, len(a))):  # with more folds than rows, each row is a fold
        model = BayesianLogistic().prepare(X)
        train = a & (fold != k)
        if train.any():
            model.learn(X[train], y[train])
        result[fold == k] = model.beliefs(X[fold == k])[1]
    return result


def _checked(
    proposed: ArrayLike, accepted: ArrayLike, propensity: ArrayLike, outcomes: ArrayLike, words: OutcomeWords
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Check the columns of a log; return them as arrays."""
    pi, e = floats("proposed", proposed), floats("propensity", propensity)
    decisions, given = floats("accepted", accepted), np.asarray(outcomes)
    if pi.ndim != 1 or not len(pi) or not pi.shape == e.shape == decisions.shape == given.shape:
        raise InputError.because(
            "must have one number for each logged individual",
            ("proposed", "accepted", "propensity", "outcomes"),
            label="proposed, accepted, propensity and outcomes",
            code="length_mismatch",
        )
    for name, values in (("proposed", pi), ("propensity", e)):
        wrong = int(len(values) - np.count_nonzero((values >= 0) & (values <= 1)))
        if wrong:
            missing = int(np.isnan(values).sum())
            absent = f" ({missing:,} missing)" if missing else ""
            counts = f"{wrong:,} of {len(values):,} {plural(wrong, 'is', 'are')} not{absent}"
            raise InputError.because(
                f"must be probabilities from 0 to 1, both included; {counts}",
                name,
                allowed="probabilities from 0 to 1, both included",
            )
    if not np.all((decisions == 0) | (decisions == 1)):
        raise InputError("accepted", allowed="true or false for each logged individual")
    a = decisions.astype(bool)
    y = np.full(len(pi), np.nan)
    y[a] = known_or_pending(given[a], int(a.sum()), words)
    if np.any(a & (e == 0)):
        raise InputError("propensity", allowed="above 0 for everyone who was accepted")
    return pi, a, e, y

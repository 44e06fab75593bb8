"""Calibrate the user's own score: a scorecard or a probability of default that comes with each applicant.

The model. With L the log-odds of success that the score states,

    logit p = a + b L + Σ_j g_j z_j + Σ_k r_k tent_k(L),

an intercept, a slope, effects of segments and other features, and a residual along the score that a straight line
leaves over (:mod:`lenience.models.score_design`). If the score is right, a = 0, b = 1 and everything else is 0. The
posterior is Gaussian and learns a label by the rank-one update of
:mod:`lenience.models.gaussian`.

The prior: "trust it as if from k labels". Suppose that a model with a vague prior N(m, Λ⁻¹) had learnt from k labels of
applicants like those it was prepared with, and that the labels had agreed with the score. Its precision would be

    Λ + k · mean of σ′(L) z zᵀ     over these applicants,

the Fisher information of k labels. So there is less confidence where applicants are rare: at scores and in segments
that hardly occurred. Λ has variances of 3.3 (intercept), 1 (slope), 0.5 (each segment, and all numbers together) and
0.25 (each tent). With k → ∞ the belief is the score; with k → 0 the labels decide. Averaging over an uncertain p pulls
rates towards ½, as if log-odds were divided by κ = √(1 + πv/8), where v is their mean variance. So the prior mean of b
is κ instead of 1, and before any label the expected success rate is about what the score says.

Points have no probabilities. They are standardised, and the slope has mean 1 per standard deviation in the given
direction. The intercept's mean is the log-odds of the break-even, if a policy gives one.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.validation import real, whole
from lenience.models.gaussian import sigmoid
from lenience.models.logistic_belief import LogisticBelief
from lenience.models.logistic_estimator import LogisticEstimator
from lenience.models.scaling import centre_and_scale
from lenience.models.score_design import FAILURE, POINTS, SUCCESS, ScoreDesign

SCALES = {"failure": FAILURE, "success": SUCCESS, "points": POINTS}
TRUST = 200.0
KNOTS = 7
INTERCEPT_VARIANCE, SLOPE_VARIANCE = math.pi**2 / 3.0, 1.0
SEGMENT_VARIANCE = 0.5  # of each segment, and of all numbers together
TENT_VARIANCE = 0.25
LIMIT = 6.0


class CalibratedScore(LogisticEstimator):
    """Recalibrate a score and learn what it misses, starting from as much trust as k labels deserve.

    Parameters
    ----------
    score : int or str, default 0
        The column with the score: its position in the rows, or its name if a policy has declared columns.
    scale : {"failure", "success", "points"}, default "failure"
        What the score is: a probability of failure (a probability of default), a probability of success, or points.
    trust : float, default 200
        How many labels the score is worth.
    higher_is_better : bool, default True
        The direction of points.

    Raises
    ------
    InputError
        If a parameter is invalid, or scores are missing or not probabilities.

    Examples
    --------
    >>> pd = np.array([[0.02], [0.05], [0.10], [0.20], [0.40]])
    >>> model = CalibratedScore(trust=200).prepare(pd)
    >>> model.beliefs(pd)[1].round(2)  # before any label, about what the score says
    array([0.98, 0.95, 0.9 , 0.81, 0.6 ])
    >>> bad = model.learn(np.repeat(pd, 40, axis=0), np.tile([1, 0], 100))  # half of all fail
    >>> bool((bad.beliefs(pd)[1] < 0.8).all())
    True
    """

    def __init__(
        self,
        score: int | str = 0,
        scale: Literal["failure", "success", "points"] = "failure",
        trust: float = TRUST,
        higher_is_better: bool = True,
    ) -> None:
        self.score = score
        self.scale = scale
        self.trust = trust
        self.higher_is_better = higher_is_better

    def name_columns(self, names: list[str]) -> CalibratedScore:
        """Say what the columns of the rows are called, so that the score can be found by its name.

        A policy with declared columns calls this before it prepares its model.

        Parameters
        ----------
        names : list of str
            The name of the feature that each column belongs to.

        Returns
        -------
        CalibratedScore
            The model itself.
        """
        self._names = list(names)
        return self

    def _position(self, columns: int) -> int:
        if not isinstance(self.score, str):
            return whole("score", self.score, most=columns - 1)
        names = getattr(self, "_names", None) or [str(name) for name in getattr(self, "feature_names_in_", [])]
        if self.score not in names:
            raise InputError.unknown_name("score", self.score, dict.fromkeys(names), "the columns")
        return names.index(self.score)

    def _prepare(self, X: NDArray[np.float64]) -> None:
        if self.scale not in SCALES:
            raise InputError.unknown_name("scale", self.scale, SCALES)
        trust = real("trust", self.trust, least=0)
        position = self._position(X.shape[1])
        scores, others = X[:, position], np.delete(X, position, axis=1)
        design = ScoreDesign(position, SCALES[self.scale], *self._points(scores), *_scales(others), LIMIT, np.zeros(1))
        stated = design.rows(X)[:, 1]
        knots = np.unique(np.quantile(stated, (np.arange(KNOTS) + 0.5) / KNOTS))
        design = design._replace(knots=knots)
        Z = design.rows(X)
        mean = np.zeros(design.width)
        mean[1] = 1.0
        if self.scale == "points":
            mean[0] = math.log(self._break_even / (1.0 - self._break_even))
        p = np.array([sigmoid(each) for each in Z @ mean])
        information = (Z * (p * (1.0 - p))[:, None]).T @ Z / len(Z)
        covariance = np.linalg.inv(np.diag(1.0 / _variances(design, self._spare)) + trust * information)
        covariance = 0.5 * (covariance + covariance.T)
        # Averaging over an uncertain p pulls it towards ½, as if log-odds were divided by this factor.
        mean[:2] *= math.sqrt(1.0 + math.pi / 8.0 * float(np.einsum("ij,jk,ik->i", Z, covariance, Z).mean()))
        self.belief_ = LogisticBelief(design, np.ones(1), mean[None], covariance[None])

    def _points(self, scores: NDArray[np.float64]) -> tuple[float, float]:
        """Check the scores, and return the centre and the scale of points."""
        if np.isnan(scores).any():
            raise InputError("score", math.nan, "a number in every row", code="missing")
        if self.scale != "points":
            wrong = (scores < 0.0) | (scores > 1.0)
            if wrong.any():
                raise InputError(
                    "score", float(scores[wrong][0]), f"a probability of {self.scale}, from 0 to 1",
                    hint='Divide percentages by 100. For points use scale="points".',
                )  # fmt: skip
            return 0.0, 1.0
        centre, spread = centre_and_scale(scores[:, None])
        return float(centre[0]), float(spread[0]) * (1.0 if self.higher_is_better else -1.0)


def _scales(others: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scales of the other columns: 0 and 1 stay as they are, numbers are standardised."""
    if not others.shape[1]:
        return np.empty(0), np.empty(0)
    centre, spread = centre_and_scale(others)
    for j in range(others.shape[1]):
        known = others[~np.isnan(others[:, j]), j]
        if np.isin(known, (0.0, 1.0)).all():
            centre[j], spread[j] = 0.0, 1.0
    return centre, spread


def _variances(design: ScoreDesign, spare: int) -> NDArray[np.float64]:
    """Return the variances of the vague prior."""
    numbers = design.spread != 1.0
    numbers[len(numbers) - spare :] = False
    others = np.full(design.centre.size, SEGMENT_VARIANCE)
    others[numbers] /= max(int(numbers.sum()), 1)
    tents = np.full(design.knots.size, TENT_VARIANCE)
    return np.concatenate(([INTERCEPT_VARIANCE, SLOPE_VARIANCE], others, tents))


def default_scores(cost: float, scale: Literal["failure", "success"] = "failure") -> NDArray[Any]:
    """Return scores to prepare with if no applicants are known: log-odds around the break-even, with a spread of 1."""
    from scipy.special import expit, ndtri

    success = expit(math.log(cost / (1.0 - cost)) + ndtri((np.arange(99) + 0.5) / 99))
    return np.asarray(1.0 - success if scale == "failure" else success)

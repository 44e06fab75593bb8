"""From a file of past decisions to a policy with features: declared columns, a model and everything it learnt.

Rows are applicants, whether they were accepted or not. Outcomes count for the accepted only. The rejected show what the
earlier rule chose, which the default model takes into account. Columns of numbers are numbers, all others categories.
The rows are sorted by what they are first, so the order of the file does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.data_origin import PolicyOrigin, file_identity
from lenience.core.errors import InputError
from lenience.core.formatting import counted, even_percent
from lenience.core.objective import Objective
from lenience.files.columns import read_columns
from lenience.files.economics import Economics
from lenience.files.outcome_words import OutcomeWords, Words, read_outcomes
from lenience.files.table import column_of, left_out_columns
from lenience.files.vocabulary import is_missing, read_number
from lenience.history.origin import feature_origin
from lenience.models.feature_columns import FeatureColumn, RowEncoding, infer_columns
from lenience.models.label_order import neutral_order
from lenience.policies.features.policy import FeaturePolicy

FEATURE_MODELS = ("logistic", "calibrated")
BANDS = 5
SAMPLE = 500  # applicants who show how many would be accepted now
TRUST = 200.0


class Band(NamedTuple):
    """Known outcomes with similar expected success, in the data that the model learnt from.

    Parameters
    ----------
    low, high
        The lowest and the highest expected success rate.
    labels
        The number of known outcomes.
    expected
        The mean of the expected success rates.
    observed
        The share of successes.
    """

    low: float
    high: float
    labels: int
    expected: float
    observed: float


class MonitoredRows(NamedTuple):
    """Attributes of past applicants that the policy does not look at.

    Parameters
    ----------
    attributes
        The value of each attribute for each applicant; None if it is unknown.
    bands
        The band of expected success that each applicant is in, in words.
    accepted
        Who was accepted.
    outcomes
        1 for a success, 0 for a failure, NaN if it is not known.
    """

    attributes: Mapping[str, Sequence[str | None]]
    bands: Sequence[str]
    accepted: NDArray[np.bool_]
    outcomes: NDArray[np.float64]


class ScoreScale(NamedTuple):
    """The user's own score: its column, what it is, its direction, and how many outcomes it is worth."""

    column: str
    scale: Literal["failure", "success", "points"] = "failure"
    higher_is_better: bool = True
    trust: float = TRUST


class FeatureFit(NamedTuple):
    """A policy that learnt from past decisions, and what was read.

    Parameters
    ----------
    policy
        The policy.
    rows, accepted, labels
        How many applicants there are, how many were accepted, and how many outcomes of these are known.
    left_out
        Columns that were left out because they identify rows or are dates.
    notes
        How the file was read.
    bands
        Expected and observed success by band of expected success.
    accepted_now
        The share of the applicants (of a sample) who would be accepted now.
    monitored
        The attributes that are monitored, if there are any.
    origin
        The file and its digest, the rows, and what columns and values mean.
    """

    policy: FeaturePolicy
    rows: int
    accepted: int
    labels: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    bands: tuple[Band, ...]
    accepted_now: float
    monitored: MonitoredRows | None = None
    origin: PolicyOrigin | None = None

    def describe(self) -> str:
        """Return what was read, in sentences."""
        columns = self.policy.columns
        named = ", ".join(column.name for column in columns)
        sentences = [
            f"{counted(self.rows, 'applicant')}, {self.accepted:,} accepted, {counted(self.labels, 'known outcome')}.",
            f"Features: {named}.",
        ]
        if self.left_out:
            sentences.append(
                "Left out because they identify rows or are dates (name them with --feature to use them): "
                f"{', '.join(self.left_out)}."
            )
        return "\n".join([*self.notes, *sentences])


def fit_features(
    source: str | Path,
    outcome: str,
    accepted: str | None,
    objective: Objective,
    model: str = "logistic",
    features: Sequence[str] = (),
    categories: Sequence[str] = (),
    score: str | None = None,
    score_scale: Literal["failure", "success", "points"] = "failure",
    higher_is_better: bool = True,
    trust: float = TRUST,
    economics: Economics | None = None,
    currency: str = "",
    success: Words = None,
    failure: Words = None,
    pending: Words = None,
    accepted_values: Words = None,
    rejected_values: Words = None,
    sheet: str | None = None,
    monitor: Sequence[str] = (),
    ranges: Mapping[str, tuple[float | None, float | None]] | None = None,
    units: Mapping[str, str] | None = None,
) -> FeatureFit:
    """Fit a policy with features to a file of past decisions.

    Parameters
    ----------
    source
        A CSV, Excel, Parquet or ARFF file.
    outcome
        The column of outcomes; missing or pending ones are not known yet.
    accepted
        The column that says who was accepted; None if everyone was. Outcomes of others are ignored.
    objective
        What to maximise. With ``economics`` its cost is replaced by the rows' offers.
    model
        "logistic", or "calibrated" for a score that you already have.
    features
        The columns to use; by default all but the outcome, ``accepted``, identifiers, dates and those of ``economics``.
    categories
        Columns of numbers that are categories; they are features too.
    score
        With "calibrated", the column of the score.
    score_scale
        What the score is: a probability of failure (of default), a probability of success, or points.
    higher_is_better
        The direction of points.
    trust
        With "calibrated", how many labels the score is worth.
    economics
        Where to find what each row may gain and lose, if amounts differ.
    currency
        The sign or code of the currency.
    success, failure, pending
        Values of the outcome, in addition to the usual words.
    accepted_values, rejected_values
        Values of ``accepted``, in addition to the usual words.
    sheet
        The sheet of an Excel file.
    monitor
        Columns that fairness is measured by, e.g. sex. They are no features unless they are named as such.
    ranges
        The smallest and the largest value of features, None for an open end. Other values are errors.
    units
        The units of features.

    Returns
    -------
    FeatureFit
        The policy, and what was read.

    Raises
    ------
    InputError
        If a column does not exist, a value has no meaning, or no outcome of an accepted applicant is known.
    """
    if model not in FEATURE_MODELS:
        raise InputError.unknown_name("model", model, FEATURE_MODELS)
    if (model == "calibrated") != (score is not None):
        raise InputError.because(
            "must be given with the model 'calibrated', and only then", "score",
            code="missing" if score is None else "conflicting_fields",
        )  # fmt: skip
    notes: list[str] = []
    table = read_columns(source, notes, sheet)
    y, taken = _outcomes(
        table, outcome, accepted, OutcomeWords.of(success, failure, pending), accepted_values, rejected_values
    )
    scale = None if score is None else ScoreScale(score, score_scale, higher_is_better, trust)
    priced = [name for name in _named(economics) if name in table]
    attributes = {name: _texts(column_of(table, name)) for name in monitor}
    chosen, left_out = _chosen(table, features, categories, score, [outcome, accepted or outcome, *priced, *monitor])
    people = read_applicants(table, chosen, categories)
    columns = _declared(people, chosen, categories, score, score_scale)
    columns = _with_ranges(columns, ranges or {}, units or {})
    fitted = fit_rows(
        table, columns, people, y, taken, objective, scale, economics, currency,
        left_out=left_out, notes=notes, attributes=attributes,
    )  # fmt: skip
    named = {"outcome": outcome, "accepted": accepted, "score": score, "features": ", ".join(chosen)}
    named["monitored"] = ", ".join(monitor)
    origin = feature_origin(
        table, y.tolist(), taken.tolist(), named, model, economics, objective, file_identity(source)
    )
    return fitted._replace(origin=origin)


def fit_rows(
    table: Mapping[str, Sequence[Any]],
    columns: Sequence[FeatureColumn],
    people: list[dict[str, Any]],
    y: NDArray[np.float64],
    taken: NDArray[np.bool_],
    objective: Objective,
    score: ScoreScale | None = None,
    economics: Economics | None = None,
    currency: str = "",
    *,
    left_out: tuple[str, ...] = (),
    notes: list[str] | None = None,
    attributes: Mapping[str, Sequence[str | None]] | None = None,
) -> FeatureFit:
    """Fit a policy with features to past applicants that were read already.

    Parameters
    ----------
    table
        The columns of the file, for ``economics``.
    columns
        The declared features.
    people
        The applicants: the value of each feature by name.
    y, taken
        The known outcomes of the accepted (others NaN), and who was accepted.
    objective, economics, currency
        As in :func:`fit_features`.
    score
        The score to calibrate, if the model is that.
    left_out, notes
        What the result says about the file.
    attributes
        Attributes that are monitored: the value for each applicant, None if it is unknown.

    Returns
    -------
    FeatureFit
        The policy, and what was read.

    Raises
    ------
    InputError
        If a value is outside the range of its column.
    """
    from lenience.models.calibrated_score import CalibratedScore

    remarks = [] if notes is None else notes
    offers: Any = None
    if economics is not None:
        stakes = economics.read(table, None, remarks)
        objective = objective.with_offers(stakes.offers(currency))
        offers = stakes.amount, stakes.cost
    encoded = RowEncoding(columns).rows(people)
    order = neutral_order(encoded, np.nan_to_num(y, nan=2.0), np.ones(len(y)) if offers is None else offers[0])
    estimator = None
    if score is not None:
        estimator = CalibratedScore(score.column, score.scale, score.trust, score.higher_is_better)
    policy = FeaturePolicy(estimator, objective, refresh=False, random_state=0, columns=list(columns))
    sorted_offers = None if offers is None else tuple(each[order] for each in offers)
    policy.fit([people[i] for i in order], y[order], offers=sorted_offers)
    known = ~np.isnan(y)
    some = order[:SAMPLE]
    sampled = None if offers is None else tuple(each[some] for each in offers)
    now = policy.accepts([people[i] for i in some], sampled)
    expected = policy.model_.beliefs(encoded)[1]
    monitored = MonitoredRows(attributes, _band_names(expected), taken, y) if attributes else None
    return FeatureFit(
        policy, len(y), int(taken.sum()), int(known.sum()), left_out, tuple(remarks),
        _bands(expected[known], y[known]), float(now.mean()), monitored,
    )  # fmt: skip


def _outcomes(
    table: Mapping[str, Sequence[Any]],
    outcome: str,
    accepted: str | None,
    words: OutcomeWords,
    accepted_values: Words,
    rejected_values: Words,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the known outcomes of the accepted (others NaN), and who was accepted."""
    column_of(table, outcome)
    taken = np.ones(len(table[outcome]), dtype=np.bool_)
    if accepted is not None:
        try:
            flags = read_outcomes(
                accepted, column_of(table, accepted), OutcomeWords.of(accepted_values, rejected_values), "accepted"
            )
        except InputError as error:
            raise error.with_hint("Say what it means with --accepted-value or --rejected-value.") from None
        taken = flags == 1.0
    # Values of the rejected are not read: they may mean anything.
    values = [value if yes else None for value, yes in zip(table[outcome], taken, strict=True)]
    y = read_outcomes(outcome, values, words)
    if np.isnan(y).all():
        raise InputError.because(
            "must be known for at least one accepted applicant", "outcome", label=f"outcome {outcome!r}",
            value=outcome, code="insufficient_data",
        )  # fmt: skip
    return y, taken


def _named(economics: Economics | None) -> list[str]:
    """Return the texts of economics that may be names of columns."""
    if economics is None:
        return []
    return [
        value
        for value in (getattr(economics, field) for field in economics.__struct_fields__)
        if isinstance(value, str)
    ]


def _chosen(
    table: Mapping[str, Sequence[Any]],
    features: Sequence[str],
    categories: Sequence[str],
    score: str | None,
    others: Sequence[str],
) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns to use, the score first, and those that were left out although nobody said so."""
    for name in (*features, *categories, *([] if score is None else [score])):
        column_of(table, name)
        if name in others[:2]:
            raise InputError.because("must not be a feature", "feature", label=f"column {name!r}", value=name)
    first = [] if score is None else [score]
    if features or score is not None:
        return list(dict.fromkeys([*first, *features, *categories])), ()
    rest = [name for name in table if name not in others]
    unusable = [name for name in left_out_columns(table, rest) if name not in categories]
    chosen = list(dict.fromkeys([*(name for name in rest if name not in unusable), *categories]))
    if not chosen:
        raise InputError.because(
            "must be at least one column", "feature", code="missing", hint="Name it with --feature."
        )
    return chosen, tuple(unusable)


def read_applicants(
    table: Mapping[str, Sequence[Any]], chosen: Sequence[str], categories: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the rows by name: numbers where all values of a column are, otherwise texts."""
    cells = {name: _cells(name, table[name], name in categories) for name in chosen}
    return [dict(zip(chosen, row, strict=True)) for row in zip(*cells.values(), strict=True)]


def _cells(name: str, values: Sequence[Any], category: bool) -> list[float | str | None]:
    numbers: list[float | str | None] = []
    for value in values:
        if is_missing(value):
            numbers.append(None)
            continue
        number = read_number(value) if isinstance(value, str) else float(value)
        if number is None:
            category = True
            break
        numbers.append(number)
    if not category:
        if any(isinstance(number, float) and math.isinf(number) for number in numbers):
            raise InputError.because("must contain finite numbers", "feature", label=f"column {name!r}", value=name)
        return numbers
    return [None if is_missing(value) else str(value).strip() for value in values]


def _declared(
    people: list[dict[str, Any]], chosen: Sequence[str], categories: Sequence[str], score: str | None, scale: str
) -> list[FeatureColumn]:
    """Declare the columns; the score is required, and between 0 and 1 if it is a probability."""
    columns = {column.name: column for column in infer_columns(people, [name for name in categories if name in chosen])}
    if score is not None:
        if columns[score].type != "number":
            raise InputError.because("must contain numbers", "score", label=f"column {score!r}", value=score)
        low, high = (None, None) if scale == "points" else (0.0, 1.0)
        columns[score] = FeatureColumn(score, minimum=low, maximum=high, required=True)
    return [columns[name] for name in chosen]


def _with_ranges(
    columns: Sequence[FeatureColumn],
    ranges: Mapping[str, tuple[float | None, float | None]],
    units: Mapping[str, str],
) -> list[FeatureColumn]:
    """Return the columns with their ranges and units."""
    by_name = {column.name: column for column in columns}
    for field, given in (("feature_range", ranges), ("feature_unit", units)):
        for name in given:
            if name not in by_name:
                raise InputError.unknown_name(field, name, by_name, "the features")
    for name, (low, high) in ranges.items():
        by_name[name] = msgspec.structs.replace(by_name[name], minimum=low, maximum=high)
    for name, unit in units.items():
        by_name[name] = msgspec.structs.replace(by_name[name], unit=unit)
    return list(by_name.values())


def _texts(values: Sequence[Any]) -> list[str | None]:
    """Return the values of an attribute as texts, None where it is unknown."""
    return [None if is_missing(value) else str(value).strip() for value in values]


def _band_names(expected: NDArray[np.float64]) -> list[str]:
    """Return for each applicant the band of expected success that it is in; bands have equal numbers of applicants.

    >>> _band_names(np.array([0.1, 0.9, 0.2, 0.8, 0.5]))[:2]
    ['expected success up to 18%', 'expected success above 82%']
    """
    edges = np.unique(np.quantile(expected, np.linspace(0.0, 1.0, BANDS + 1)[1:-1]))
    shown = [even_percent(float(edge), 0) for edge in edges]
    names = [f"expected success up to {shown[0]}"]
    names += [f"expected success from {low} to {high}" for low, high in pairwise(shown)]
    names.append(f"expected success above {shown[-1]}")
    return [names[int(i)] for i in np.searchsorted(edges, expected)]


def _bands(mean: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[Band, ...]:
    """Return expected and observed success in bands of equal numbers of outcomes."""
    order = np.argsort(mean, kind="stable")
    parts = [part for part in np.array_split(order, BANDS) if len(part)]
    return tuple(
        Band(
            float(mean[part[0]]), float(mean[part[-1]]), len(part), float(mean[part].mean()), float(y[part].mean())
        )
        for part in parts
    )  # fmt: skip

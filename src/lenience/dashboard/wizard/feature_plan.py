"""A policy with features from the answers: declared columns, a model fitted to the file, and the specification.

The fit is the one of ``lenience fit --model logistic`` or ``--model calibrated``
(:mod:`lenience.history.feature_fit`), so both give the same policy.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import msgspec
import numpy as np

from lenience.client.feature_policies import feature_policy_body
from lenience.core.data_origin import PolicyOrigin
from lenience.core.errors import InputError
from lenience.core.objective import Objective
from lenience.core.protected_attributes import is_protected, protected_among
from lenience.dashboard.wizard.answers import EVERYONE, Answers, FormError, number, one_of, optional, sentence
from lenience.dashboard.wizard.guesses import WORDS
from lenience.dashboard.wizard.objective_plan import checked_specification, read_objective, read_settings
from lenience.dashboard.wizard.past_file import Column
from lenience.dashboard.wizard.plan import check_meanings, check_protected, read_economics
from lenience.dashboard.wizard.upload_reader import uploaded_file
from lenience.dashboard.wizard.upload_table import connect, identifier, names, table_of
from lenience.files.economics import Economics
from lenience.history.counts import BAD_ROWS
from lenience.history.feature_fit import FeatureFit, ScoreScale, fit_rows, read_applicants
from lenience.history.origin import feature_origin
from lenience.models.feature_columns import MOST_VALUES, FeatureColumn, infer_columns
from lenience.service.domain import limits
from lenience.service.domain.specification import PolicySpecification

KINDS = ("logistic", "calibrated")
USES = ("number", "category", "monitor")
SCALES = ("failure", "success", "points", "points_lower")  # the last: fewer points are better
MOST_ROWS = 100_000  # that are fitted while a person waits
MOST_FEATURES = limits.FEATURES
TRUST = "200"
MONITORED_NAME = 40  # characters of a monitored attribute's name


class FeatureAnswers(NamedTuple):
    """What a policy with features is made from. Equal answers give the same policy, so that a fit can be kept."""

    columns: tuple[FeatureColumn, ...]  # as typed; those of categories get their values from the file
    categories: tuple[str, ...]
    monitored: tuple[str, ...]
    accepted: str
    outcome: str
    meanings: tuple[tuple[str, ...], ...]
    score: ScoreScale | None
    economics: Economics | None


def guess_uses(columns: list[Column], rows: int, taken: tuple[str, ...]) -> dict[str, str]:
    """Return how each column is probably used: as a number, a category, monitored, or not at all.

    >>> made = [Column("income", ("1",), 90, True, False), Column("sex", ("f",), 2, False, False)]
    >>> guess_uses([*made, Column("customer id", ("a",), 100, False, False)], 100, ())
    {'income': 'number', 'sex': 'monitor', 'customer id': ''}
    """
    uses = {}
    for column in columns:
        identifies = column.different >= 0.9 * min(rows, 1_000) and not column.numbers
        named = any(word in column.name.lower() for word in WORDS["time"] if word in ("date", "time"))
        usable = column.different > 1 and not column.dates and not identifies and not named
        use = "number" if column.numbers else "category" if column.different <= MOST_VALUES else ""
        if column.name.lower() in ("id", "key", "reference") or column.name.lower().endswith((" id", "_id")):
            use = ""
        if is_protected(column.name):
            use = "monitor"
        uses[column.name] = use if usable and column.name not in taken else ""
    return uses


def read_feature_answers(path: Path, answers: Answers) -> FeatureAnswers:
    """Return what the policy is made from, or raise FormError."""
    kind = one_of("features", "kind", "The model", answers.kind, KINDS)
    if not answers.outcome:
        raise FormError("features", "outcome", "Choose the column with the outcome of accepted applicants")
    check_meanings(answers)
    uses = {column: use for column, use in answers.uses if column in names(path)}
    for column, use in uses.items():
        one_of("features", f"use:{column}", f"The use of {column!r}", use, USES)
    score = _score(answers, uses) if kind == "calibrated" else None
    chosen = [column for column, use in uses.items() if use != "monitor" and (score is None or column != score.column)]
    for column in chosen:
        if column in (answers.outcome, answers.accepted):
            raise FormError("features", f"use:{column}", f"The column {column!r} is chosen twice. Do not use it here")
    if not chosen and score is None:
        raise FormError("features", "uses", "Choose at least one column as a feature")
    if len(chosen) > MOST_FEATURES:
        raise FormError("features", "uses", f"A policy has at most {MOST_FEATURES} features, not {len(chosen)}")
    check_protected(answers, chosen)
    declared = [_declared(answers, column, uses[column]) for column in chosen]
    if score is not None:
        ends = (None, None) if score.scale == "points" else (0.0, 1.0)
        declared.insert(0, FeatureColumn(score.column, minimum=ends[0], maximum=ends[1], required=True))
    return FeatureAnswers(
        tuple(declared),
        tuple(column for column in chosen if uses[column] == "category"),
        tuple(column for column, use in uses.items() if use == "monitor"),
        answers.accepted,
        answers.outcome,
        tuple(answers.meaning(*each) for each in MEANINGS),
        score,
        read_economics(answers),
    )


MEANINGS = (("outcome", "yes"), ("outcome", "no"), ("outcome", "bad"), ("accepted", "yes"), ("accepted", "no"))


def _score(answers: Answers, uses: dict[str, str]) -> ScoreScale:
    if not answers.score:
        raise FormError("features", "score", "Choose the column of your score")
    scale = one_of("features", "scale", "The score", answers.scale or "failure", SCALES)
    trust = number(
        "features", "trust", "How many outcomes the score is worth", answers.trust or TRUST, least=0, most=1e9
    )
    kind = cast(Literal["failure", "success", "points"], scale.removesuffix("_lower"))
    return ScoreScale(answers.score, kind, scale != "points_lower", trust)


def _declared(answers: Answers, column: str, use: str) -> FeatureColumn:
    """Return a feature as typed. The values of a category come from the file later."""
    label = f"of {column!r}"
    low, high = (
        optional("features", f"{name}:{column}", f"The {word} {label}", dict(given).get(column, ""))
        for name, word, given in (("least", "minimum", answers.least), ("most", "maximum", answers.most))
    )
    unit = dict(answers.units).get(column, "")
    fields: dict[str, Any] = {"name": column, "unit": unit}
    if use == "category":
        fields |= {"type": "category", "values": ["(from the file)"], "unit": ""}
    else:
        fields |= {"minimum": low, "maximum": high}
    try:
        return msgspec.convert(fields, FeatureColumn)
    except (msgspec.ValidationError, InputError) as error:
        raise FormError(
            "features", f"least:{column}", sentence(f"the column {column!r} cannot be used: {error}")
        ) from None


@lru_cache(maxsize=4)
def fit_upload(path: Path, answers: FeatureAnswers, objective: Objective) -> FeatureFit:
    """Fit the policy to an uploaded file."""
    table = _rows(path, answers)
    y, taken = _labels(table, answers)
    if not len(y):
        raise FormError("features", "accepted", "No row can be used: every decision means “none of these”")
    if np.isnan(y).all():
        raise FormError("features", "outcome", f"No outcome is known: no accepted row has one in {answers.outcome!r}")
    chosen = [column.name for column in answers.columns]
    people = read_applicants(table, chosen, answers.categories)
    try:
        inferred = {column.name: column for column in infer_columns(people, answers.categories)}
        columns = [_with_values(column, inferred[column.name]) for column in answers.columns]
        fitted = fit_rows(
            table, columns, people, y, taken, objective, answers.score, answers.economics,
            "" if answers.economics is None else answers.economics.currency,
        )  # fmt: skip
        return fitted._replace(origin=_origin(path, table, y, taken, answers, objective))
    except InputError as error:
        of = error.field or ""
        field = of.removeprefix("features.") if of.startswith("features.") else ""
        raise FormError("features", f"least:{field}" if field else "", sentence(str(error)), error.code) from None


def _origin(
    path: Path, table: dict[str, list[Any]], y: Any, taken: Any, answers: FeatureAnswers, objective: Objective
) -> PolicyOrigin:
    """Return where the policy comes from."""
    with connect() as engine:
        rows = int(engine.execute(f"SELECT count(*) FROM {table_of(path)}").fetchone()[0])
    named = {
        "outcome": answers.outcome,
        "accepted": None if answers.accepted == EVERYONE else answers.accepted,
        "score": None if answers.score is None else answers.score.column,
        "features": ", ".join(column.name for column in answers.columns),
        "monitored": ", ".join(answers.monitored),
    }
    model = "logistic" if answers.score is None else "calibrated"
    origin = feature_origin(
        table, y.tolist(), taken.tolist(), named, model, answers.economics, objective, uploaded_file(path)
    )
    left_out = rows - origin.rows
    why = {BAD_ROWS["accepted"]: left_out} if left_out else {}
    return msgspec.structs.replace(origin, left_out=left_out, why_left_out=why)


def _with_values(declared: FeatureColumn, inferred: FeatureColumn) -> FeatureColumn:
    """Return a declared feature with the values of its category."""
    if declared.type == "category":
        return inferred
    if inferred.type != "number":
        raise InputError.because(
            "must contain numbers only", f"features.{declared.name}", label=f"the column {declared.name!r}",
            hint="Use it as a category, or leave it out.",
        )  # fmt: skip
    return declared


def _rows(path: Path, answers: FeatureAnswers) -> dict[str, list[Any]]:
    """Return the columns of the file that are used, without rows whose decision has no meaning."""
    economics = answers.economics
    priced = [] if economics is None else [str(value) for value in economics.given.values()]
    wanted = [answers.outcome, *(column.name for column in answers.columns), *priced]
    if answers.accepted != EVERYONE:
        wanted.append(answers.accepted)
    known = [name for name in dict.fromkeys(wanted) if name in names(path)]
    with connect() as engine:
        rows = int(engine.execute(f"SELECT count(*) FROM {table_of(path)}").fetchone()[0])
        if rows > MOST_ROWS:
            raise FormError(
                "features",
                "",
                f"The file has {rows:,} rows, more than the {MOST_ROWS:,} that this form fits. Upload a sample, or use "
                "“lenience fit --model logistic --output policy.json” and create the policy from Python",
                "too_large",
            )
        query = f"SELECT {', '.join(map(identifier, known))} FROM {table_of(path)}"
        lines = engine.execute(query).fetchall()
    if answers.accepted != EVERYONE:
        at, (yes, no) = known.index(answers.accepted), answers.meanings[3:]
        lines = [line for line in lines if line[at] is not None and str(line[at]) in (*yes, *no)]
    return dict(zip(known, map(list, zip(*lines, strict=True)), strict=True)) if lines else {name: [] for name in known}


def _labels(table: dict[str, list[Any]], answers: FeatureAnswers) -> tuple[Any, Any]:
    """Return the known outcomes of the accepted (others NaN), and who was accepted."""
    good, bad, _, accepting, _ = answers.meanings
    outcomes = table[answers.outcome]
    taken = np.ones(len(outcomes), dtype=np.bool_)
    if answers.accepted != EVERYONE:
        taken = np.array([str(value) in accepting for value in table[answers.accepted]], dtype=np.bool_)
    codes = dict.fromkeys(bad, 0.0) | dict.fromkeys(good, 1.0)
    y = np.array([codes.get(str(value), np.nan) for value in outcomes])
    return np.where(taken, y, np.nan), taken


def feature_objective(answers: Answers) -> Objective:
    """Return the objective. Gains and losses of the file replace its break-even when the model is fitted."""
    if answers.known != "file":
        return read_objective(answers)
    if read_economics(answers) is None:
        message = "The file has no gains and losses yet. Choose their columns in step 2, or enter one break-even"
        raise FormError("objective", "known", message)
    return read_objective(msgspec.structs.replace(answers, known="rate", cost="50"))


def read_feature_fit(path: Path, answers: Answers) -> FeatureFit:
    """Return the policy fitted to the file as answered."""
    given = read_feature_answers(path, answers)
    if answers.known != "file":
        given = given._replace(economics=None)
    return fit_upload(path, given, feature_objective(answers))


def read_feature_specification(path: Path, answers: Answers) -> PolicySpecification:
    """Return the policy as the service takes it, with everything that the model learnt from the file."""
    feature_objective(answers)
    settings = read_settings(answers)
    given = read_feature_answers(path, answers)
    settings = msgspec.structs.replace(
        settings,
        monitored=tuple(name for name in given.monitored if len(name) <= MONITORED_NAME),
        protected=tuple(protected_among([column.name for column in given.columns])),
    )
    fit = read_feature_fit(path, answers)
    body = feature_policy_body(fit.policy, answers.name) | settings.fields
    return checked_specification(body | {"origin": msgspec.to_builtins(fit.origin)})

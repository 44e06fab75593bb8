"""How a version does: predictions against outcomes, regions without outcomes, features, and drift of their values.

It looks at the latest decisions that the version made, or accompanied in shadow. Applicants whose features were erased
count in the bands, because the log holds the estimate, and not for regions and drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection

from lenience.core.errors import InputError
from lenience.core.formatting import counted
from lenience.service.domain.calibration_bands import BandDecision, CalibrationBand, bands_of, calibration_sentence
from lenience.service.domain.feature_models import FeatureModel
from lenience.service.domain.input_drift import InputDrift, input_drift
from lenience.service.domain.unlabelled_regions import (
    RegionDecision,
    UnlabelledRegion,
    segments_without_outcomes,
    unlabelled_regions,
)
from lenience.service.domain.version_estimates import VersionEstimate, estimate_under
from lenience.service.queries.applicant_explanation import state_now
from lenience.service.storage.latest_decisions import LatestDecision, latest_decisions
from lenience.service.storage.policy_cache import ModelStates, PolicyRecord, Version

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lenience.policies.features.feature_rule import FeatureRule

    Rows = NDArray[np.float64]

LATEST = 3_000  # decisions that are read
RECENT = 500  # of them whose features are compared with earlier ones
FIRST = 200  # applicants to compare with, if the version has no data of its own
EXPLAINED = 100  # latest applicants whose contributions show what a feature does
KNOWN_BEFORE = 30.0  # similar outcomes in the evidence of a version that started from past outcomes


class FeatureEffect(msgspec.Struct, frozen=True):
    """What a feature does to the expected success rate of the latest applicants.

    ``points`` is by how much it moves the rate on average, as a share of 1, compared with the reference applicants.
    ``rises`` says whether the rate rises with the value of a number; it is null for a category, and without effect.
    """

    feature: str
    type: str
    unit: str
    points: float
    rises: bool | None


class ModelReport(msgspec.Struct, frozen=True):
    """How a version does, over the latest decisions that it made or accompanied in shadow.

    ``outcomes`` of its ``decisions`` are known. ``without_features`` of them are not in the regions, effects and drift,
    because their features were erased. ``drift`` compares with ``compared_with``; it is empty if there are fewer than
    50 applicants on either side.
    """

    policy: str
    version: int
    model: str
    decisions: int
    outcomes: int
    without_features: int
    calibration: str
    bands: list[CalibrationBand]
    regions: list[UnlabelledRegion]
    effects: list[FeatureEffect]
    drift: list[InputDrift]
    compared_with: str


def read_model_report(
    connection: Connection, record: PolicyRecord, version: Version, known: ModelStates | None
) -> ModelReport:
    """Return how a version does.

    Parameters
    ----------
    connection : Connection
        A transaction.
    record : PolicyRecord
        The policy as it is now.
    version : Version
        The version.
    known : ModelStates or None
        States of models that are known already.
    """
    decided = [
        (one, estimate)
        for one in latest_decisions(connection, record.segments, LATEST)
        if (estimate := estimate_under(version.number, version.rules, one.segment, one.event)) is not None
    ]
    bands = bands_of(
        BandDecision(estimate.mean, estimate.accepts, estimate.to_learn, one.success) for one, estimate in decided
    )
    model = version.feature_model
    report = ModelReport(
        policy=record.name,
        version=version.number,
        model=model_name(version),
        decisions=len(decided),
        outcomes=sum(one.success is not None for one, _ in decided),
        without_features=0,
        calibration=calibration_sentence(bands),
        bands=bands,
        regions=[],
        effects=[],
        drift=[],
        compared_with="",
    )
    if model is None:
        by_segment: dict[str, list[RegionDecision]] = {}
        for one, estimate in decided:
            by_segment.setdefault(one.segment, []).append(_region_decision(one, estimate))
        return msgspec.structs.replace(report, regions=segments_without_outcomes(by_segment))
    _, state = state_now(connection, record, version.number, model, known)
    return _with_features(connection, record, report, model, state.rule, decided)


def model_name(version: Version) -> str:
    """Return the type of a version's model: own if each segment learns on its own."""
    model = version.specification.model
    return str(model.__struct_config__.tag) if model else "own"


def _with_features(
    connection: Connection,
    record: PolicyRecord,
    report: ModelReport,
    model: FeatureModel,
    rule: FeatureRule,
    decided: list[tuple[LatestDecision, VersionEstimate]],
) -> ModelReport:
    """Return a report with regions, effects and drift of features."""
    import numpy as np

    usable = [(one, estimate, row) for one, estimate in decided if (row := _row(model, one)) is not None]
    if not usable:
        return msgspec.structs.replace(report, without_features=len(decided))
    rows = np.array([row for _, _, row in usable])
    decisions = [_region_decision(one, estimate) for one, estimate, _ in usable]
    before, latest, words = _to_compare(connection, record, model, [one.id for one, _, _ in usable], rows)
    return msgspec.structs.replace(
        report,
        without_features=len(decided) - len(usable),
        regions=unlabelled_regions(
            model.encoding, rows, decisions, KNOWN_BEFORE if model.labels_before else float("inf")
        ),
        effects=_effects(model, rule, rows[:EXPLAINED]),
        drift=input_drift(model.encoding, before, latest),
        compared_with=words,
    )


def read_feature_drift(
    connection: Connection, record: PolicyRecord, model: FeatureModel, latest: Sequence[LatestDecision]
) -> tuple[list[InputDrift], str]:
    """Compare the features of the latest applicants with those of the version's own data.

    Parameters
    ----------
    connection : Connection
        A transaction.
    record : PolicyRecord
        The policy.
    model : FeatureModel
        The version's model.
    latest : sequence of LatestDecision
        The latest decisions, the newest first.

    Returns
    -------
    tuple
        The comparison of each feature, and words for the earlier applicants.
    """
    import numpy as np

    usable = [(one.id, row) for one in latest if (row := _row(model, one)) is not None]
    if not usable:
        return [], ""
    rows = np.array([row for _, row in usable])
    before, recent, words = _to_compare(connection, record, model, [identity for identity, _ in usable], rows)
    return input_drift(model.encoding, before, recent), words


def _region_decision(one: LatestDecision, estimate: VersionEstimate) -> RegionDecision:
    return RegionDecision(estimate.accepts, estimate.to_learn, one.success is not None, estimate.mean, estimate.n)


def _row(model: FeatureModel, one: LatestDecision) -> Any:
    """Return the encoded features of a decision, or None if they were erased or are those of another version."""
    if one.inputs is None:
        return None
    try:
        return model.row(one.inputs)
    except InputError:
        return None


def _to_compare(
    connection: Connection, record: PolicyRecord, model: FeatureModel, ids: list[str], rows: Rows
) -> tuple[Rows, Rows, str]:
    """Return the earlier rows and the latest ones, and words for the earlier ones.

    A version that started without data has only rows that are spread over the declared ranges. It is compared with its
    own first applicants.
    """
    import numpy as np

    if model.reference_is_data:
        size = len(model.reference)
        return model.reference, rows[:RECENT], f"{counted(size, 'applicant')} in the data that the version started from"
    first = [
        (one.id, row)
        for one in latest_decisions(connection, record.segments, FIRST, oldest=True)
        if (row := _row(model, one)) is not None
    ]
    start = {identity for identity, _ in first}
    later = np.array([identity not in start for identity in ids])
    before = np.array([row for _, row in first]).reshape(len(first), rows.shape[1])
    return before, rows[later][:RECENT], f"the first {counted(len(first), 'applicant')}"


def _effects(model: FeatureModel, rule: FeatureRule, rows: Rows) -> list[FeatureEffect]:
    """Return what each feature does to the expected success rates of rows, the largest effect first."""
    import numpy as np

    contributions, log_odds = rule.contributions(rows)
    with_it, without = _rate(log_odds)[:, None], _rate(log_odds[:, None] - contributions)
    points = np.abs(with_it - without).mean(axis=0)
    effects = []
    for i, block in enumerate(model.encoding.blocks):
        column, values = block.column, rows[:, block.start]
        rises = None
        some = ~np.isnan(values)
        if column.type == "number" and some.sum() > 2 and np.ptp(values[some]) > 0.0 and np.ptp(contributions[some, i]):
            rises = bool(np.corrcoef(values[some], contributions[some, i])[0, 1] > 0.0)
        effects.append(FeatureEffect(column.name, column.type, column.unit, float(points[i]), rises))
    return sorted(effects, key=lambda effect: -effect.points)


def _rate(log_odds: Rows) -> Rows:
    """Return success rates from log-odds."""
    from scipy.special import expit

    return expit(log_odds)  # type: ignore[no-any-return]

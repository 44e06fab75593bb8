"""Policies with declared features as JSON, and back: a document that people can read, with the exact state.

The document says what the policy is (objective, model, columns, number of labels) and holds the state, compressed, as
text. The state is what counts. The other fields are for readers, and reading checks that they agree with it, so a
document that was edited by hand is an error instead of a surprise.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from lenience.core.data_origin import DataOrigin
from lenience.core.errors import InputError
from lenience.core.validation import mapped
from lenience.models.live_model import restore
from lenience.models.score_design import ScoreDesign
from lenience.policies.features.declared import DeclaredFeatures
from lenience.policies.features.feature_rule import FeatureRule
from lenience.policies.features.offer_decisions import ReferenceOffers
from lenience.policies.features.outcome_matching import PendingOutcomes
from lenience.policies.features.reference_set import ReferenceLogOdds

if TYPE_CHECKING:
    from lenience.policies.features.policy import FeaturePolicy

FORMAT = "lenience feature policy"
VERSION = 1
MOST_BYTES = 500_000_000  # of a state, so that a small document cannot fill the memory


def to_specification(rule: FeatureRule, origin: DataOrigin | None = None) -> dict[str, Any]:
    """Return a rule as a document of JSON values, with the origin of what it has learnt if it is known."""
    return {
        **_description(rule),
        **({} if origin is None else {"origin": msgspec.to_builtins(origin)}),
        "state_hash": rule.state_hash(),
        "state": base64.b64encode(zlib.compress(rule.state(), 6)).decode("ascii"),
    }


def _description(rule: FeatureRule) -> dict[str, Any]:
    """Return the part of the document that is for readers."""
    calibrated = isinstance(rule.model.knowledge.design, ScoreDesign)
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": "calibrated" if calibrated else "logistic",
        "objective": msgspec.json.decode(msgspec.json.encode(rule.objective)),
        "columns": msgspec.json.decode(msgspec.json.encode(rule.columns)),
        "explore": rule.explore,
        "labels": rule.labels,
        "reference_rows": len(rule.reference),
    }


def from_specification(document: Any) -> FeatureRule:
    """Return the rule that a document holds, or raise an InputError."""
    given: Mapping[str, Any] = mapped("policy", document, f"an object with format {FORMAT!r}")
    if isinstance(model := given.get("model"), Mapping) and "format" not in given:
        return _rule_of_version(model)
    if given.get("format") != FORMAT or given.get("version") != VERSION:
        raise InputError(
            "format", given.get("format"), f"{FORMAT!r}, version {VERSION}", code="invalid_file",
            hint="Write the document with FeaturePolicy.save or lenience fit --output.",
        )  # fmt: skip
    rule = restore(_state(given.get("state")))
    if not isinstance(rule, FeatureRule):
        raise InputError("state", rule.kind, "the state of a policy with features", code="invalid_file")
    if rule.state_hash() != given.get("state_hash"):
        raise InputError.because(
            "does not have the hash that the document says: it was changed or cut off", "state", code="invalid_file"
        )
    for field, value in _description(rule).items():
        if given.get(field) != value:
            raise InputError.because(
                "does not agree with the state of the policy", field, value=given.get(field), code="invalid_file",
                hint="Fit the policy again instead of editing the document.",
            )  # fmt: skip
    return rule


def _rule_of_version(model: Mapping[str, Any]) -> FeatureRule:
    """Return the rule in a version of the service, as lenience fit --output and the guided form write it."""
    try:
        rule = restore(base64.b64decode(str(model.get("state") or ""), validate=True))
    except (binascii.Error, InputError):
        rule = None
    if not isinstance(rule, FeatureRule):
        raise InputError.because(
            "must hold what the model has learnt", "model.state", code="invalid_file",
            hint="Write the file with lenience fit --output.",
        )  # fmt: skip
    return rule


def _state(text: object) -> bytes:
    """Return the bytes of a state that is given as text."""
    wrong = InputError.because("must be the compressed state of a policy", "state", code="invalid_file")
    if not isinstance(text, str):
        raise wrong
    try:
        unpacked = zlib.decompressobj()
        data = unpacked.decompress(base64.b64decode(text, validate=True), MOST_BYTES)
    except (binascii.Error, zlib.error, ValueError):
        raise wrong from None
    if not unpacked.eof:
        raise wrong
    return data


def save_rule(rule: FeatureRule, path: str | Path, origin: DataOrigin | None = None) -> None:
    """Write a rule to a file, with the origin of what it has learnt if it is known."""
    try:
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(to_specification(rule, origin)), indent=2))
    except OSError as error:
        raise InputError.unreadable("path", path, error) from error


def load_rule(path: str | Path) -> FeatureRule:
    """Read a rule from a file."""
    try:
        return from_specification(msgspec.json.decode(Path(path).read_bytes()))
    except (OSError, msgspec.DecodeError) as error:
        raise InputError.unreadable("path", path, error) from error


def policy_of(rule: FeatureRule, kind: type[FeaturePolicy]) -> FeaturePolicy:
    """Return a fitted FeaturePolicy that decides and learns as a rule does. It has a copy of what the rule knows."""
    from sklearn.utils import check_random_state

    from lenience.models.bayesian_logistic import BayesianLogistic
    from lenience.models.calibrated_score import CalibratedScore

    own = restore(rule.state())
    model: Any = CalibratedScore() if isinstance(own.model.knowledge.design, ScoreDesign) else BayesianLogistic()
    policy = kind(
        model=model,
        objective=own.objective,
        reference=len(own.reference),
        refresh=False,
        explore=own.explore,
        columns=list(own.columns),
    )
    declared = DeclaredFeatures(own.columns)
    policy.transformer_ = policy._unseen = declared
    policy.n_features_in_ = len(declared.names)
    policy.feature_names_in_ = np.array(declared.names, dtype=object)
    policy.model_ = model
    model.belief_, model.classes_, model.n_features_in_ = own.model.knowledge, np.array([0, 1]), own.reference.shape[1]
    model._directed, model.selection_ = None, getattr(model.belief_.design, "selection", None)
    policy.log_, policy.arrivals_, policy.accepted_, policy.labels_ = [], 0, 0, own.labels
    policy._pending_outcomes, policy._made, policy._latest = PendingOutcomes(), {}, 0
    policy._random = check_random_state(policy.random_state)
    policy.cost_, policy._late_limits = own.cost, own.late_limits
    policy.reference_, policy._oldest = own.reference, 0
    inner = own._rule
    if own.objective.offers is None:
        policy.table_ = inner.table
    else:
        policy.label_table_ = inner.table
        policy._brought = ReferenceOffers(*inner.brought)
    log_odds: ReferenceLogOdds = inner.reference
    policy._log_odds = log_odds
    return policy

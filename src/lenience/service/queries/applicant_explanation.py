"""Explain a decision by features: by the model's state at the time, which is computed again from the log.

The newest state that was stored before the decision and the labels between them give the state that decided. A label
whose features were erased since cannot be learnt again. The state is the right one if it gives the estimate that the
log states for the applicant. If it does not, contributions come from what the model knows now, and nothing says what
decided or what would have changed it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection

from lenience.core.offers import Offers
from lenience.service.domain.answers import ContributionsAt, FeatureContribution
from lenience.service.domain.events import Decided, Learned
from lenience.service.domain.feature_models import CLOSE, FeatureModel, FeatureState
from lenience.service.domain.feature_rule import needs_features
from lenience.service.domain.rule import ABOVE, BELOW, LEARNING
from lenience.service.domain.specification import ONLY_SEGMENT
from lenience.service.domain.statements import stated_verdict
from lenience.service.storage.model_states import last_state, policy_events, read_label, read_model_states
from lenience.service.storage.policy_cache import ModelStates, PolicyRecord, Version


class ApplicantExplanation(NamedTuple):
    """What the features of an applicant say.

    ``lowered_by`` has the features that speak most against a rejected applicant, each with a sentence. ``changes`` are
    what would have changed the decision. Both are empty if the state at that time is not known. The contributions add
    up to ``log_odds`` minus ``reference_log_odds``.
    """

    contributions: list[FeatureContribution]
    at: ContributionsAt | None
    lowered_by: dict[str, str]
    changes: list[str]
    log_odds: float | None
    reference_log_odds: float | None


NOT_EXPLAINED = ApplicantExplanation([], None, {}, [], None, None)


def explain_applicant(
    connection: Connection,
    record: PolicyRecord,
    version: Version,
    event: Decided,
    inputs: str,
    known: ModelStates | None,
) -> ApplicantExplanation:
    """Return what the features of an applicant say.

    Parameters
    ----------
    connection : Connection
        A transaction.
    record : PolicyRecord
        The policy as it is now.
    version : Version
        The version that decided, by features.
    event : Decided
        The decision.
    inputs : str
        The stored features.
    known : ModelStates or None
        States that are known already.
    """
    model, verdict = version.feature_model, stated_verdict(event)
    assert model is not None
    features: dict[str, Any] = msgspec.json.decode(inputs)
    state = None if event.model_at is None else state_at(connection, record, version.number, model, event.model_at)
    decided_by = state is not None and _gives_estimate(state, features, event)
    if state is None or not decided_by:
        state = state_now(connection, record, version.number, model, known)[1]
    offers = None
    if event.offers:
        offers = Offers.menu([one.amount for one in event.offers], [one.cost for one in event.offers])
    why = state.rule.explain(features, offers, arrivals=event.arrivals)
    contributions = [FeatureContribution(one.column, one.value, one.log_odds) for one in why.contributions]
    odds = (why.log_odds, why.reference_log_odds)
    if not decided_by:
        return ApplicantExplanation(contributions, "now", {}, [], *odds)
    lowered_by: dict[str, str] = {}
    if needs_features(verdict):
        cost = version.rules[ONLY_SEGMENT].break_even if verdict.offer is None else verdict.offer.cost
        lowered_by = model.lowered_by(state, model.row(inputs), cost)
    changes: list[str] = []
    # The explanation knows nothing of caps and of the draw of the exploration floor, and nobody is pending in it.
    if verdict.rule in (ABOVE, LEARNING, BELOW) and why.decision.accepted == (verdict.decision == "accept"):
        verb = "Reject" if why.decision.accepted else "Accept"
        if_none = "" if why.decision.accepted or not event.pending else ", if no similar applicant is pending"
        changes = [f"{verb} with {change.text}{if_none}." for change in why.changes]
    return ApplicantExplanation(contributions, "decision", lowered_by, changes, *odds)


def state_at(
    connection: Connection, record: PolicyRecord, version: int, model: FeatureModel, at: int
) -> FeatureState | None:
    """Return the state of a version's model after an event of the policy's chain, or None if none was stored before.

    Labels whose features were erased since are left out, unless a state was stored after them.
    """
    stored = last_state(connection, record.id, version, at)
    if stored is None:
        return None
    start, text = stored
    state = model.restore(text)
    for _, event in policy_events(connection, record.chain, start, at):
        if isinstance(event, Learned):
            state = model.learn(state, read_label(connection, record.chain, event, needs_inputs=True))
    return state


def state_now(
    connection: Connection, record: PolicyRecord, version: int, model: FeatureModel, known: ModelStates | None
) -> tuple[int, FeatureState]:
    """Return what a version's model knows now, and the event of the policy's chain after which it holds.

    A version that does not learn has the state that was stored last, or the one from which it would start.
    """
    if version in record.learning:
        states = read_model_states(connection, record, known)
        state = states.states[version]
        assert isinstance(state, FeatureState)
        return states.at, state
    at, text = last_state(connection, record.id, version) or (0, None)
    return at, model.start({}) if text is None else model.restore(text)


def _gives_estimate(state: FeatureState, features: dict[str, Any], event: Decided) -> bool:
    """Return whether a state gives the estimate that a decision states, up to rounding on another machine."""
    assert event.applicant is not None
    belief = state.rule.belief(features)
    pairs = (belief.n, event.applicant.n), (belief.mean, event.applicant.mean)
    return all(abs(one - two) <= CLOSE * max(1.0, abs(one), abs(two)) for one, two in pairs)

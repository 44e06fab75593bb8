"""The applicants whom the commands of a transaction will decide by features, so that one computation serves them all.

A transaction holds many single decisions. What a model says about an applicant alone depends on its row, its offers,
how many arrived before it, and the state of the model. A command that is next in line therefore computes it also for
the commands behind it, and each of them uses it only if all of that is still so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lenience.core.offers import Offer
from lenience.service.domain.feature_models import FeatureModel, FeatureState

if TYPE_CHECKING:
    from lenience.policies.features.decision import Decision

MOST_AHEAD = 256  # applicants of later commands that are computed in advance


@dataclass(slots=True, eq=False)
class ExpectedApplicants:
    """The applicants of one command, in the order of its requests, and what the model said about them."""

    rows: Any  # encoded
    choices: Sequence[tuple[Offer, ...]]
    chains: Sequence[int]
    state: FeatureState | None = None
    arrivals: list[int] = field(default_factory=list)
    alone: list[Decision] = field(default_factory=list)


@dataclass(slots=True)
class ExpectedCommands:
    """The commands of a transaction that decide by features. ``turn`` is the one that is resolved or run now."""

    turn: int = 0
    _by_turn: dict[tuple[int, int], ExpectedApplicants] = field(default_factory=dict)  # by policy and turn

    def add(self, policy: int, applicants: ExpectedApplicants) -> None:
        """Add the applicants of the command that is resolved now."""
        self._by_turn[policy, self.turn] = applicants

    def decide_each(
        self, policy: int, model: FeatureModel, state: FeatureState, applicants: ExpectedApplicants, arrivals: list[int]
    ) -> list[Decision]:
        """Return what the active version's model says about each applicant of the command that runs now, alone.

        Parameters
        ----------
        policy : int
            The policy.
        model : FeatureModel
            The model of its active version.
        state : FeatureState
            What the model knows.
        applicants : ExpectedApplicants
            Those of the command.
        arrivals : list of int
            How many arrived in the segment before each of them.
        """
        own = self._by_turn.get((policy, self.turn))
        if own is None or own.rows is not applicants.rows or list(own.choices) != list(applicants.choices):
            own = applicants
        if own.state is not state or own.arrivals != arrivals:
            self._compute(model, state, [(own, arrivals), *self._next(policy, own, arrivals)])
        return own.alone

    def _next(
        self, policy: int, own: ExpectedApplicants, arrivals: list[int]
    ) -> list[tuple[ExpectedApplicants, list[int]]]:
        """Return the applicants of the commands that follow, and how many will have arrived before each.

        A command that does not decide by features may change what the model knows, so it ends the row.
        """
        before: dict[int, int] = {}
        for chain, number in zip(own.chains, arrivals, strict=True):
            before[chain] = max(before.get(chain, 0), number + 1)
        later: list[tuple[ExpectedApplicants, list[int]]] = []
        turn, total = self.turn + 1, 0
        while total < MOST_AHEAD and (following := self._by_turn.get((policy, turn))) is not None:
            numbers = []
            for chain in following.chains:
                if chain not in before:
                    return later
                numbers.append(before[chain])
                before[chain] += 1
            later.append((following, numbers))
            total += len(numbers)
            turn += 1
        return later

    def _compute(
        self, model: FeatureModel, state: FeatureState, together: list[tuple[ExpectedApplicants, list[int]]]
    ) -> None:
        """Compute what the model says about the applicants of several commands."""
        rows = [row for applicants, _ in together for row in applicants.rows]
        numbers = [number for _, arrivals in together for number in arrivals]
        choices = [menu for applicants, _ in together for menu in applicants.choices]
        alone, start = model.decide_each(state, rows, numbers, choices), 0
        for applicants, arrivals in together:
            stop = start + len(arrivals)
            applicants.state, applicants.arrivals, applicants.alone = state, arrivals, alone[start:stop]
            start = stop

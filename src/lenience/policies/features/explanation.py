"""Explain a decision with features, as data and in words: why, from how much evidence, and what would have changed it.

Contributions are in log-odds and add up exactly to the difference from the people of the reference rows
(:mod:`lenience.policies.features.contributions`). Reasons of a rejection compare the applicant with the reference rows
above the break-even instead: those are the people who are accepted. There are at most four, the largest first, in the
lender's own words if a wording is given. If only a limit of pending outcomes stands in the way, the reason says so,
because it is not about the applicant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lenience.core.errors import InputError
from lenience.core.formatting import count, percent, percents, plural
from lenience.core.objective import Objective
from lenience.core.offer_rows import OfferRows
from lenience.core.validation import mapped
from lenience.models.feature_columns import FeatureColumn, RowEncoding
from lenience.policies.features.changed_answers import (
    amount_that_changes,
    break_even_that_changes,
    evidence_that_changes,
    feature_changes,
)
from lenience.policies.features.contributions import Comparison, mean_log_odds
from lenience.policies.features.decision import Decision, OfferedDecision
from lenience.policies.features.logistic_rule import LogisticRule

MOST_CHANGES = 3
Rows = NDArray[np.float64]


class Contribution(msgspec.Struct, frozen=True):
    """What one feature adds to the log-odds of success, compared with the people of the reference rows.

    Parameters
    ----------
    column : str
        The feature.
    value : float, str or None
        The applicant's value; None if it is missing.
    log_odds : float
        What it adds. Above 0 it speaks for the applicant.
    """

    column: str
    value: float | str | None
    log_odds: float


class AnswerChange(msgspec.Struct, frozen=True):
    """A change that would have changed the answer.

    Parameters
    ----------
    kind : str
        "feature", "amount", "break_even" or "evidence".
    column : str or None
        The feature, if it is one.
    value : float or str
        The value, the amount, the break-even or the belief size at which the answer changes.
    text : str
        The change in words.
    """

    kind: str
    column: str | None
    value: float | str
    text: str


class RejectionReason(msgspec.Struct, frozen=True):
    """One of the main reasons of a rejection.

    Parameters
    ----------
    code : str
        "feature" if it is about the applicant, "limit_reached" if too many similar outcomes are pending.
    column : str or None
        The feature.
    text : str
        The reason in words; the lender's own where a wording is given.
    """

    code: str
    column: str | None
    text: str


class Explanation(msgspec.Struct, frozen=True):
    """Why a decision is what it is. ``print`` shows it in words.

    Parameters
    ----------
    summary : str
        The decision and its reason in one sentence.
    decision : Decision
        The decision with its numbers.
    evidence : str
        How much evidence there is, in words.
    contributions : tuple of Contribution
        What each feature adds to the log-odds, the largest first; empty if the model is not a logistic one with
        declared or plain columns.
    log_odds : float or None
        The mean log-odds of the applicant: ``reference_log_odds`` plus all contributions.
    reference_log_odds : float or None
        The mean log-odds of the people of the reference rows.
    changes : tuple of AnswerChange
        What would have changed the answer; empty if no single change would, or none was looked for.
    reasons : tuple of RejectionReason
        The main reasons of a rejection, at most four, the most important first.

    Examples
    --------
    >>> from lenience import Discounted, FeaturePolicy
    >>> from lenience.models import FeatureColumn
    >>> people = [{"income": float(i % 10), "debt": float(i % 7)} for i in range(200)]
    >>> good = [person["income"] > 3 for person in people]
    >>> columns = [FeatureColumn("income", unit="thousand USD"), FeatureColumn("debt", unit="thousand USD")]
    >>> policy = FeaturePolicy(objective=Discounted(cost=0.8, discount=0.9), columns=columns).fit(people, good)
    >>> explanation = policy.explain([{"income": 1, "debt": 5}], wording={"income": "Income too low"})[0]
    >>> explanation.decision.accepted, explanation.reasons[0].text
    (False, 'Income too low')
    >>> explanation.changes[0].column
    'income'
    """

    summary: str
    decision: Decision
    evidence: str
    contributions: tuple[Contribution, ...] = ()
    log_odds: float | None = None
    reference_log_odds: float | None = None
    changes: tuple[AnswerChange, ...] = ()
    reasons: tuple[RejectionReason, ...] = ()

    def __str__(self) -> str:
        lines = [self.summary, self.evidence]
        if self.reasons:
            lines += ["Main reasons:", *(f"  {i}. {reason.text}" for i, reason in enumerate(self.reasons, 1))]
        if self.contributions:
            lines.append("Effect on the log-odds of success, compared with the reference applicants:")
            width = max(len(each.column) for each in self.contributions)
            lines += [
                f"  {each.column:<{width}}  {each.log_odds:+.2f}  ({shown(each.value)})" for each in self.contributions
            ]
        if self.changes:
            lines += ["The answer would be different with:", *(f"  {change.text}" for change in self.changes)]
        elif self.contributions:
            lines.append("No change of a single feature would have changed the answer.")
        return "\n".join(lines)


def shown(value: float | str | None, unit: str = "") -> str:
    """Return a value in words.

    >>> shown(1234.5, "USD"), shown(None), shown("car")
    ('1,234.5 USD', 'missing', 'car')
    """
    if value is None:
        return "missing"
    text = value if isinstance(value, str) else f"{value:,.6g}"
    return f"{text} {unit}" if unit else text


def held_back(decision: Decision, cost: float) -> bool:
    """Return whether only pending outcomes, or their delay, stand in the way of an acceptance."""
    if isinstance(decision, OfferedDecision):
        return decision.held_back
    return decision.threshold is not None and decision.threshold < decision.mean <= cost and decision.propensity < 1.0


def summary(decision: Decision, objective: Objective, choice: OfferRows | None = None, remarks: str = "") -> str:
    """Return the decision and its reason in one or two sentences."""
    if isinstance(decision, OfferedDecision) and choice is not None:
        return _offer_summary(decision, objective, choice, remarks)
    d, cost = decision, objective.cost
    mean, even, enough = percents(d.mean, cost, cost if d.threshold is None else d.threshold)
    seen = f"expected success {mean} (evidence: {count(d.n)} observations){remarks}"
    if d.mean > cost:
        return f"Accept: {seen}, above the {even} break-even."
    if held_back(d, cost) and d.pending:
        return (
            f"Reject for now: {seen}, below the {even} break-even. {d.pending:.1f} acceptances of similar people are "
            "pending: wait for their outcomes."
        )
    if held_back(d, cost):
        return (
            f"Reject: {seen}, so far below the {even} break-even that an outcome that comes late would not be worth "
            "the risk."
        )
    if d.threshold is not None and d.mean > d.threshold and d.propensity == 1.0:
        return (
            f"Accept: {seen}, below the {even} break-even but above the minimum of {enough}: what the outcome teaches "
            "about similar people is worth the risk."
        )
    return (
        f"Reject: {seen}, not above the minimum of {enough} at which the outcome would be worth the risk "
        f"(break-even {even})."
    )


def _offer_summary(d: OfferedDecision, objective: Objective, choice: OfferRows, remarks: str) -> str:
    """Return the decision on an offer and its reason, in money."""
    money = objective.money
    size, largest = money.format(d.amount), float(choice.stake[0])
    verb = f"Offer {size} instead of {money.format(largest)}" if largest > d.amount else f"Accept {size}"
    mean, even = percents(d.mean, d.cost)
    profit, label = d.amount * (d.mean - d.cost), d.label_value or 0.0
    estimate = f"expected success {mean} (evidence: {count(d.n)} observations){remarks}"
    if profit > 0.0:
        return f"{verb}: {estimate}, above the {even} break-even. The expected profit is {money.format(profit)}."
    facts = f"{estimate}, not above the {even} break-even. The expected loss is {money.format(-profit)}."
    worth = money.format(label)
    if d.propensity == 1.0:
        return f"{verb}: {facts} What the outcome teaches about similar people is worth {worth}."
    if d.held_back:
        return (
            f"Reject {size} for now: {facts} {d.pending or 0.0:.1f} acceptances of similar people are pending, so one "
            f"more outcome is worth only {worth}. Wait for their outcomes."
        )
    waiting = f" {d.pending:.1f} acceptances of similar people are pending." if (d.pending or 0.0) >= 0.05 else ""
    most = money.format(label / (d.cost - d.mean)) if d.cost > d.mean else ""
    below = f" At this break-even, amounts below {most} are accepted." if most and profit + label <= 0.0 else ""
    return f"Reject {size}: {facts} What the outcome teaches about similar people is worth {worth}.{waiting}{below}"


def evidence_in_words(n: float, noun: str = "cases") -> str:
    """Return a belief size in words.

    >>> evidence_in_words(27.3, "loans"), evidence_in_words(0.4)
    ('There is as much evidence as from 27 similar loans.', 'There is hardly any evidence: less than one similar case.')
    """
    if n < 1.0:
        return f"There is hardly any evidence: less than one similar {noun.removesuffix('s')}."
    size = round(n)
    return f"There is as much evidence as from {size:,} similar {noun.removesuffix('s') if size == 1 else noun}."


def remarks_on(missing: list[str], unseen: list[str]) -> str:
    """Return phrases that list missing features and unseen categories."""
    without = f", without the missing {plural(len(missing), 'feature')} {', '.join(missing)}" if missing else ""
    strange = f", with the unseen {plural(len(unseen), 'category', 'categories')} {', '.join(unseen)}" if unseen else ""
    return without + strange


class Explainer:
    """Explain decisions of a logistic rule whose columns are known.

    Parameters
    ----------
    rule
        The rule.
    encoding
        The features.
    reference
        The encoded reference rows.
    wording
        The lender's own sentence for features, by name.
    noun
        What a case is called, in the plural, such as "loans".
    """

    def __init__(
        self,
        rule: LogisticRule,
        encoding: RowEncoding,
        reference: Rows,
        wording: Mapping[str, str] | None = None,
        noun: str = "cases",
    ) -> None:
        self.rule = rule
        self.encoding = encoding
        self.reference = reference
        self.wording = checked_wording(wording, [column.name for column in encoding.columns])
        self.noun = noun
        objective = rule.objective
        self.cost = float(objective.cost if objective.offers is None else objective.offers.mean_cost)

    def explain(
        self,
        row: Rows,
        decision: Decision,
        sentence: str,
        accepts: Callable[[Rows], NDArray[np.bool_]],
        values: list[float | str | None],
    ) -> Explanation:
        """Explain a decision about an encoded row.

        Parameters
        ----------
        row
            The encoded row.
        decision
            The decision.
        sentence
            The decision in one sentence.
        accepts
            Which of many encoded rows would be accepted with the same offer, each as if alone.
        values
            The applicant's value of each feature.
        """
        belief = self.rule.belief
        effects = Comparison(belief, self.encoding, self.reference).contributions(row)
        columns = self.encoding.columns
        order = sorted(range(len(columns)), key=lambda i: -abs(float(effects[i])))
        contributions = tuple(Contribution(columns[i].name, values[i], float(effects[i])) for i in order)
        return Explanation(
            sentence,
            decision,
            evidence_in_words(decision.n, self.noun),
            contributions,
            float(mean_log_odds(belief, row[None])[0]),
            float(mean_log_odds(belief, self.reference).mean()),
            self._changes(row, decision, accepts, values),
            () if decision.propensity >= 1.0 else self._reasons(row, decision, values),
        )

    def _reasons(self, row: Rows, decision: Decision, values: list[float | str | None]) -> tuple[RejectionReason, ...]:
        """Return the main reasons of a rejection: what lowers the applicant below those above the break-even."""
        if decision.pending and held_back(decision, self.cost):
            text = (
                f"Outcomes of {decision.pending:.1f} similar acceptances are pending, which is the limit. Applicants "
                "who are alike may be treated differently while it is reached."
            )
            return (RejectionReason("limit_reached", None, text),)
        rates = self.rule.belief.beliefs(self.reference)[1]
        cost = decision.cost if isinstance(decision, OfferedDecision) else self.cost
        compared = Comparison.with_accepted(self.rule.belief, self.encoding, self.reference, rates, cost)
        return tuple(
            RejectionReason("feature", column.name, self.wording.get(column.name, _reason(column, values[i])))
            for i in compared.lowering(row)
            for column in (self.encoding.columns[i],)
        )

    def _changes(
        self,
        row: Rows,
        decision: Decision,
        accepts: Callable[[Rows], NDArray[np.bool_]],
        values: list[float | str | None],
    ) -> tuple[AnswerChange, ...]:
        """Return what would have changed the answer: features, the smallest change first, then offer and evidence."""
        of = {column.name: (column, value) for column, value in zip(self.encoding.columns, values, strict=True)}
        changes = []
        for change in feature_changes(self.encoding, row, self.reference, accepts)[:MOST_CHANGES]:
            column, value = of[change.column]
            text = f"{column.name} {shown(change.value, column.unit)} instead of {shown(value, column.unit)}"
            changes.append(AnswerChange("feature", column.name, change.value, text))
        if isinstance(decision, OfferedDecision):
            return (*changes, *self._offer_changes(decision))
        enough = evidence_that_changes(decision, self.cost, self.rule.table)
        if enough is not None:
            less = "less" if enough < decision.n else "more"
            text = (
                f"{less} evidence for the same expected success: from {count(round(enough, 1))} instead of "
                f"{count(round(decision.n, 1))} similar {self.noun}"
            )
            changes.append(AnswerChange("evidence", None, enough, text))
        return tuple(changes)

    def _offer_changes(self, decision: OfferedDecision) -> list[AnswerChange]:
        money, changes = self.rule.objective.money, []
        amount, even = amount_that_changes(decision), break_even_that_changes(decision)
        accepted = decision.propensity >= 1.0
        if amount is not None and (amount > decision.amount) == accepted:
            bound = "at least" if accepted else "below"
            text = f"an amount at stake of {bound} {money.format(amount)} instead of {money.format(decision.amount)}"
            changes.append(AnswerChange("amount", None, amount, text))
        if even is not None and (even > decision.cost) == accepted:
            bound = "at least" if accepted else "below"
            text = f"a break-even of {bound} {percent(even)} instead of {percent(decision.cost)}"
            changes.append(AnswerChange("break_even", None, even, text))
        return changes


def checked_wording(wording: Any, names: list[str]) -> Mapping[str, str]:
    """Return the lender's sentences by feature, checked."""
    if wording is None:
        return {}
    given = mapped("wording", wording, "a sentence for each feature, by name")
    for name, text in given.items():
        if name not in names:
            raise InputError.unknown_name("wording", name, names)
        if not isinstance(text, str) or not text:
            raise InputError(f"wording.{name}", text, "a sentence")
    return given


def _reason(column: FeatureColumn, value: float | str | None) -> str:
    """Return the reason that a feature is, if the lender has no wording for it."""
    if value is None:
        return f"{column.name} is missing"
    return f"{column.name} is {shown(value, column.unit)}"

"""How a version with a model does, as its page shows it: calibration, regions without outcomes, and features."""

from __future__ import annotations

from typing import NamedTuple

from lenience.service.domain.input_drift import InputDrift
from lenience.service.http.service import Service
from lenience.service.queries.model_report import FeatureEffect, ModelReport

LEAST = 0.0005  # a smaller effect on the success rate is none
CHANGES = {"none": ("plain", "as before"), "some": ("wait", "somewhat changed"), "much": ("reject", "changed")}


class FeatureRow(NamedTuple):
    """A feature in the table: what it does, and whether its values have changed."""

    effect: FeatureEffect
    words: str
    drift: InputDrift | None

    @property
    def mark(self) -> tuple[str, str]:
        """The kind of the mark that shows the change, and its words."""
        return ("plain", "not compared yet") if self.drift is None else CHANGES[self.drift.change]


class ReportView(NamedTuple):
    """The report of a version, and the rows of its table of features."""

    report: ModelReport
    features: list[FeatureRow]

    @property
    def changed(self) -> list[InputDrift]:
        """The features whose values have changed, the most changed first."""
        changed = [one for one in self.report.drift if one.change != "none"]
        return sorted(changed, key=lambda one: -one.index)


def report_view(service: Service, name: str, number: int | None) -> ReportView | None:
    """Return the report of a version with a model, or None if each of its segments learns on its own."""
    with service.store.read() as connection:
        record = service.registry.load(connection, name)
        shown = number or (record.active.number if record.active else max(record.states))
        if shown in record.states and service.registry.version(connection, record.id, shown).live is None:
            return None
    report = service.queries.report(name, number)
    drift = {one.feature: one for one in report.drift}
    rows = [FeatureRow(effect, effect_words(effect), drift.get(effect.feature)) for effect in report.effects]
    return ReportView(report, rows)


def effect_words(effect: FeatureEffect) -> str:
    """Say what a feature does to the expected success rate.

    >>> effect_words(FeatureEffect("income", "number", "USD", 0.042, True))
    '±4.2 points; higher is better'
    >>> effect_words(FeatureEffect("purpose", "category", "", 0.0, None))
    'no effect'
    """
    if effect.points < LEAST:
        return "no effect"
    direction = {True: "; higher is better", False: "; lower is better", None: ""}[effect.rises]
    return f"±{100 * effect.points:.1f} points{direction}"

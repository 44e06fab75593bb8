"""The price of fairness in the report and in figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lenience import Belief, Discounted, InputError, Segments, fair_optimum
from lenience.analysis import FairOptimum, Parity, PriceOfFairness, price_of_fairness
from lenience.core.money import Money
from lenience.plot import plot_price_of_fairness
from lenience.reports.segment_report import segments_report
from lenience.reports.segment_report_fair import describe_payers, describe_price, fair_section, legal_note

GROUPS = {"a": "A <b>", "b": "B & C"}


def cells() -> Segments:
    return Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.7, 0.9), {"a": Belief(4, 3.2), "b": Belief(4, 2)})


@pytest.fixture(scope="module")
def fair() -> tuple[FairOptimum, PriceOfFairness]:
    return fair_optimum(cells(), GROUPS, Parity(0.1)), price_of_fairness(cells(), GROUPS, within=[0, 0.1, 0.3])


def test_the_section_has_figures_a_row_for_each_group_and_the_legal_note(
    fair: tuple[FairOptimum, PriceOfFairness],
) -> None:
    section = fair_section(*fair, Money(1000, "$"))
    assert len(section.figures) == 3
    assert section.table is not None
    assert [row[0] for row in section.table.rows] == list(GROUPS.values())
    assert legal_note(fair[0]) in section.paragraphs
    page = segments_report(cells().solve(), fair=fair)
    assert "A &lt;b&gt;" in page
    assert "<b>:" not in page
    assert "It was not computed: too large." in segments_report(cells().solve(), fair="too large")


def test_the_sentences_name_the_price_and_who_pays(fair: tuple[FairOptimum, PriceOfFairness]) -> None:
    result = fair[0]
    price = describe_price(result, Money(1000, "$"))
    assert f"${1000 * result.value.midpoint:,.0f}" in price
    assert f"${1000 * result.price.midpoint:,.0f}" in price
    payers = describe_payers(result)
    assert payers.index("A <b>") < payers.index("B & C")
    assert describe_payers(fair_optimum(cells(), GROUPS, Parity(1.0))) != payers
    blind = fair_optimum(cells(), {"a": {"A": 0.9}, "b": {"B": 0.9}}, Parity(0.1))
    assert legal_note(blind) != legal_note(result)


def test_the_figure_has_values_above_and_rates_below(fair: tuple[FairOptimum, PriceOfFairness], tmp_path: Path) -> None:
    path = tmp_path / "price.svg"
    figure = plot_price_of_fairness({"one": fair[1], "two": fair[1]}, path, Money(1000, "$"))
    assert path.stat().st_size > 1000
    values, _, rates, _ = figure.axes
    drawn = np.asarray(values.get_lines()[0].get_ydata())
    assert drawn == pytest.approx([1000 * point.value.midpoint for point in fair[1].points])
    assert len(rates.get_lines()) == 4  # two groups, rising and falling or only rising
    with pytest.raises(InputError):
        plot_price_of_fairness({})
    with pytest.raises(InputError):
        plot_price_of_fairness("curve")  # type: ignore[arg-type]

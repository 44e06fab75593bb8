"""The data that comes with the package is what its sources say."""

from __future__ import annotations

import numpy as np
import pytest

from lenience.data import load_fico, load_german_credit


def test_fico_tables() -> None:
    fico = load_fico()
    assert fico.individuals == {"white": 133165, "black": 18274, "hispanic": 14702, "asian": 7906}
    assert len(fico.scores) == 198
    assert fico.scores[0] == 0.0
    assert fico.scores[-1] == 100.0
    for group in fico.groups:
        assert np.all(np.diff(fico.cumulative[group]) >= 0)
        assert fico.cumulative[group][-1] == pytest.approx(1.0, abs=1e-4)
        assert np.all((fico.success[group] >= 0) & (fico.success[group] <= 1))
    # Single figures of the source, as per cent bad and cumulative per cent.
    assert fico.success["white"][0] == pytest.approx(1 - 0.9854)
    assert fico.success["asian"][2] == pytest.approx(1 - 0.9419)
    assert fico.cumulative["black"][3] == pytest.approx(0.0647)


def test_fico_cells() -> None:
    fico = load_fico()
    cells = fico.cells(10)
    assert len(cells) == 40
    assert sum(cell.share for cell in cells) == pytest.approx(1.0)
    for group in fico.groups:
        mine = [cell for cell in cells if cell.group == group]
        assert np.all(np.diff([cell.p for cell in mine]) > 0)
        # Bands average to the group.
        mean = sum(cell.share * cell.p for cell in mine) / sum(cell.share for cell in mine)
        assert mean == pytest.approx(fico.success_rate(group), abs=1e-9)
    assert sum(cell.p > 0.8 for cell in cells) / 40 == pytest.approx(0.5, abs=0.1)  # a flat prior says a fifth


def test_german_credit() -> None:
    loans = load_german_credit()
    assert len(loans) == 21
    assert all(len(column) == 1000 for column in loans.values())
    assert int(loans["success"].sum()) == 700
    assert loans["age"].min() == 19
    assert loans["amount"][0] == 1169
    assert set(loans["checking"].tolist()) == {"A11", "A12", "A13", "A14"}

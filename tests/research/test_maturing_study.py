"""The study on pending outcomes, on two small portfolios."""

from __future__ import annotations

import pytest

from research.maturing import ESTIMATES, PAGE, Followed, Setting, frozen, score

pytest.importorskip("ibis")


def test_scores_of_each_estimate() -> None:
    share, scores = score(Setting(2, 300, 1_500), portfolios=2)
    assert list(scores) == list(ESTIMATES)
    assert 0.4 < share < 0.6
    assert scores["with pending"].error < scores["known only"].error
    assert scores["with pending"].z < 2 < scores["known only"].z


def test_people_who_are_looked_at_early() -> None:
    """Half live for three years and half fail after one, in two years; at the end of the second, few are known."""
    ends: list[bool | None] = [True, False] * 199
    people = Followed(["a"] * 400, [2001] * 200 + [2002] * 200, [1095, 365] * 200, [*ends, True, None])
    history, truth = frozen(people, 2002)
    assert truth["a"] == pytest.approx(200 / 399)
    assert (history["a"].successes, history["a"].accepted) == (0, 400)
    assert history["a"].labels == pytest.approx(100, abs=2)


def test_the_page_has_the_results() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "60 portfolios each" in text
    assert text.count("\n| flchain") == 8

"""fit and report where labels come late."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lenience import Belief, Delayed
from lenience.segments import exposure_limits as late

Run = Any

# North is known to be good, of south four are out, one for too long and one not yet mature, island is new and rare.
LATE = "region,day,approved,repaid\n" + "".join(
    f"{region},{day},{approved},{repaid}\n" * times
    for region, day, approved, repaid, times in (
        ("north", "2021-03-01", 1, "yes", 27),
        ("north", "2021-03-01", 1, "no", 3),
        ("north", "2023-03-01", 1, "", 4),
        ("south", "2021-03-01", 1, "yes", 6),
        ("south", "2021-03-01", 1, "no", 2),
        ("south", "2019-03-01", 1, "", 1),
        ("south", "2023-04-01", 1, "", 3),
        ("south", "2023-06-01", 1, "no", 1),
        ("south", "2023-06-01", 0, "", 9),
        ("island", "2023-06-01", 0, "", 1),
    )
)


def test_labels_that_come_late(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loans = tmp_path / "loans.csv"
    loans.write_text(LATE)
    columns = ("--segment", "region", "--accepted", "approved", "--outcome", "repaid", "--time", "day")
    rates = ("--arrivals", "30", "--discount-rate", "0.1")
    asked = (str(loans), *columns, "--maturity", "365", "--cost", "0.8", *rates)

    code, out, _ = run("fit", *asked, "--label-delay", "1", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["warning"] is None or "late" not in answer["warning"]
    found = {row["segment"]: row for row in answer["segments"]}
    own = Delayed(0.8, 30 * 22 / 57, 0.1, 1).solve(Belief(10, 7), tolerance=1e-4)
    limit = own.limit(Belief(10, 7))
    assert limit is not None
    assert 0 < limit < 4  # of them five would be pending, but one has expired
    south = found["south"]
    assert (south["pending"], south["expired"], south["accept"]) == (5, 1, False)
    assert south["late"] == {
        "pending": 4, "limit": limit, "unlimited": False, "proved": own.proved(Belief(10, 7)), "room": 0,
        "now": "wait", "not_computed": None,
    }  # fmt: skip
    assert [found["north"]["late"][name] for name in ("limit", "unlimited", "now")] == [None, True, "accept"]
    assert [found["island"]["late"][name] for name in ("limit", "unlimited", "now")] == [0, False, "reject"]

    # A limit that takes too long to prove is estimated.
    monkeypatch.setattr(late, "SECONDS", 1e-9)
    code, out, _ = run("fit", *asked, "--label-delay", "1")
    assert code == 0
    assert re.search(rf"south .* 4 +~{limit} +wait", out)

    # A delay shorter than the maturity, before which no label counts, and a limit without time for it, are named.
    monkeypatch.setattr(late, "ALL_SECONDS", -1.0)
    code, out, _ = run("fit", *asked, "--label-delay", "0.75")
    assert code == 0
    said = " ".join(out.split())
    assert "1 of the pending has expired" in said
    assert "Outcomes arrive after 9 months on average" in said
    assert "outcomes are final after 365 days, later than the assumed mean delay of 0.75 years" in said
    assert re.search(r"north .* 4 +no limit +accept", out)
    assert re.search(r"south .* 4 +\? +not computed", out)
    assert "The limit of 1 segment was not computed (south: The " in said
    monkeypatch.undo()

    # At once, with a caution: the same segment is simply accepted.
    code, out, _ = run("fit", *asked, "--json")
    answer = json.loads(out)
    assert {row["segment"]: row["accept"] for row in answer["segments"]}["south"] is True
    assert "outcomes arrive late (9 are pending)" in answer["warning"]
    assert "1 for the maturity of 365 days" in answer["warning"]

    page = tmp_path / "report.html"
    code, out, _ = run("report", *asked, "--label-delay", "1", "--output", str(page), "--json")
    assert code == 0
    answer = json.loads(out)
    assert [row["now"] for row in answer["late"]] == ["reject", "accept", "wait"]
    [ignored] = answer["ignoring_the_delay"]
    assert ignored["segment"] == "south"
    assert ignored["blind"] < ignored["limited"] == pytest.approx(0.1 * own.value(Belief(10, 7)).midpoint)
    rows = {row["segment"]: row for row in answer["than_now"]["segments"]}
    assert rows["south"]["proposed"] == pytest.approx(0.1 * own.value(Belief(10, 7), 4).midpoint, rel=2e-4)
    assert rows["south"]["as_now"] == pytest.approx(30 * 13 / 57 * (0.7 - 0.8))
    assert answer["than_now"]["proposed"] == pytest.approx(0.1 * answer["value"])
    html = page.read_text()
    assert "<h2>Delayed outcomes</h2>" in html
    assert "If you ignored the delay" in html
    assert html.count('<span class="reject">wait</span>') == 2
    assert "labels after <b>1 year on average</b>" in html

    for wrong, said in (
        (("--discount", "0.9", "--label-delay", "1"), "--label-delay needs --cost, --arrivals and --discount-rate"),
        ((*rates, "--label-delay", "0"), "--label-delay must be a number above 0, not 0.0"),
    ):
        for command in ("fit", "report"):
            code, _, err = run(command, str(loans), *columns, "--cost", "0.8", *wrong)
            assert (code, err) == (2, f"lenience: {said}\n")


def test_a_horizon(run: Run) -> None:
    options = ("delay", "--cost", "0.7", "--arrivals", "50", "--label-delay", "0.2", "--horizon", "60")
    code, out, _ = run(*options, "--applicants", "9", "--json")
    assert code == 0
    answer = json.loads(out)
    policy = Delayed(0.7, 50, label_delay=0.2, horizon=60).solve(Belief(2, 1))
    assert answer["limit"] == policy.limit(Belief(2, 1)) == answer["accept_now"]
    assert answer["certificate"]["proved"] is True
    shown = {(row["left"], row["n"], row["s"]): row["limit"] for row in answer["limits"]}
    assert shown[30, 6.0, 4.0] == policy.limit(Belief(6, 4), left=30)
    code, out, _ = run(*options)
    assert code == 0
    assert "arrivals left" in out
    code, _, error = run(*options, "--figure", "late.png")
    assert code == 2
    assert "--horizon" in error
    code, _, error = run("delay", "--cost", "0.7", "--arrivals", "50", "--label-delay", "0.2")
    assert code == 2
    assert "--discount-rate" in error

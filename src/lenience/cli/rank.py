"""lenience rank: choose whom to accept from a batch of applicants where only some can be accepted."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from lenience.cli.file_options import sheet_option
from lenience.cli.options import FILE, bold, console, discounted, json_option, print_json, prior_option, table
from lenience.cli.progress import solving
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import counted, percent
from lenience.core.money import Money
from lenience.core.offers import Offer
from lenience.core.validation import real, whole

if TYPE_CHECKING:
    from lenience.segments.ranking import Applicant, Ranking

SHOWN = 50  # applicants in the printed table
ADDED = ("decision", "rank", "index", "expected_profit", "label_value")  # columns of the output file


class Batch(NamedTuple):
    """The file: its columns, and what each row says."""

    columns: dict[str, list[Any]]
    names: list[str]
    segments: list[str]
    offers: list[Offer]
    beliefs: dict[str, Belief]
    money: list[float] | None


@click.command(short_help="Choose whom to accept from a batch, with a limited capacity.")
@click.argument("file", type=FILE)
@click.option(
    "--segment",
    "segment_columns",
    multiple=True,
    required=True,
    help="A column that makes segments; may be repeated.",
)
@click.option("--observations", required=True, help="The column of the number of outcomes known in the segment.")
@click.option("--successes", required=True, help="The column of how many of them are successes.")
@click.option("--amount", help="The column of the amount at stake (gain plus loss), or one number for all.")
@click.option("--cost", help="The column of the break-even success rate, or one number for all.")
@click.option("--gain", help="The column of what a success earns, or one number; with --loss, instead of --amount.")
@click.option("--loss", help="The column of what a failure loses, or one number; with --gain.")
@click.option("--discount", type=float, help="The discount γ from one individual to the next, in [0, 1).")
@click.option("--arrivals", type=float, help="Individuals per year; with --discount-rate, instead of --discount.")
@click.option("--discount-rate", type=float, help="The yearly interest rate, such as 0.1, with --arrivals.")
@prior_option
@click.option("--capacity", type=int, help="The largest number of applicants to accept.")
@click.option("--money", "budget", type=float, help="The most money that the accepted may use together.")
@click.option("--lent", help="The column of the money that each uses, for --money; by default the amount at stake.")
@click.option("--id", "id_column", help="The column that identifies the applicants; by default the number of the row.")
@click.option("--currency", default="", help="The currency to print amounts with, such as $ or EUR.")
@sheet_option
@click.option("--output", "-o", type=FILE, help="Write all rows with their decisions to this CSV file, the best first.")
@json_option
def rank(
    file: str,
    segment_columns: tuple[str, ...],
    observations: str,
    successes: str,
    amount: str | None,
    cost: str | None,
    gain: str | None,
    loss: str | None,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    prior: Belief,
    capacity: int | None,
    budget: float | None,
    lent: str | None,
    id_column: str | None,
    currency: str,
    sheet: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Choose whom to accept from FILE, a CSV, Excel or Parquet file with one applicant in each row.

    The index of an applicant is the expected profit plus what the outcome would teach about the segment. The applicants
    with the largest indices are chosen, and nobody with an index of 0 or less.

    \b
    Example:
      lenience rank applicants.csv --segment region --observations known --successes repaid \\
        --amount amount --cost 0.8 --discount 0.999 --capacity 40 --currency $
      lenience rank applicants.csv --segment region --observations known --successes repaid \\
        --gain interest --loss principal --discount 0.999 --money 100000 --output ranked.csv
    """
    from lenience.segments.ranking import rank as choose
    from lenience.segments.ranking import value_batch

    most = None if capacity is None else whole("capacity", capacity, least=1)
    limit = None if budget is None else real("money", budget, above=0)
    if lent is not None and limit is None:
        raise InputError.because("needs --money", ("--lent", "--money"), label="--lent", code="missing")
    target = None if output is None else _output_path(output)
    problem = discounted(0.5, discount, arrivals, discount_rate)
    stake = (amount, cost, gain, loss)
    batch = _read(file, sheet, segment_columns, observations, successes, stake, lent, id_column, prior)
    rows = [str(row) for row in range(len(batch.names))]
    valued = solving(
        "Valuing outcomes",
        lambda: value_batch(rows, batch.segments, batch.offers, batch.beliefs, problem.discount, batch.money),
    )
    result = choose(valued.applicants, most, limit, valued.label_values)
    if target is not None:
        _write(target, batch, result)
    if as_json:
        print_json(_as_json(batch, result, most, limit, output))
        return
    _print(batch, result, limit, Money(1.0, currency))
    if output is not None:
        click.echo(f"Wrote {output}")


def _read(
    file: str,
    sheet: str | None,
    segment_columns: tuple[str, ...],
    observations: str,
    successes: str,
    stake: tuple[str | None, str | None, str | None, str | None],
    lent: str | None,
    id_column: str | None,
    prior: Belief,
) -> Batch:
    """Read the file; errors name the line."""
    from lenience.files.columns import read_columns
    from lenience.files.vocabulary import is_missing

    notes: list[str] = []
    columns = read_columns(file, notes, sheet)
    for message in notes:
        click.echo(message, err=True)
    count = len(next(iter(columns.values())))
    amount, cost, gain, loss = stake

    def numbers(option: str, column: str, **limits: Any) -> list[float]:
        return _numbers(file, columns, option, column, count, limits)

    if amount is not None and cost is not None and gain is loss is None:
        amounts, costs = numbers("--amount", amount, above=0), numbers("--cost", cost, above=0, below=1)
        offers = [Offer(*pair) for pair in zip(amounts, costs, strict=True)]
    elif gain is not None and loss is not None and amount is cost is None:
        gains, losses = numbers("--gain", gain, above=0), numbers("--loss", loss, above=0)
        offers = [Offer.from_gain_and_loss(*pair) for pair in zip(gains, losses, strict=True)]
    else:
        raise InputError.because(
            "Give either --amount with --cost, or --gain with --loss",
            ("--amount", "--cost", "--gain", "--loss"),
            label="",
            code="missing" if amount is gain is None else "conflicting_fields",
        )
    texts = [_column(columns, "--segment", name) for name in segment_columns]
    segments = [
        " / ".join("missing" if is_missing(value) else str(value).strip() for value in row)
        for row in zip(*texts, strict=True)
    ]
    known, good = numbers("--observations", observations, least=0), numbers("--successes", successes, least=0)
    return Batch(
        columns,
        [str(row) for row in range(1, count + 1)]
        if id_column is None
        else [str(value).strip() for value in _column(columns, "--id", id_column)],
        segments,
        offers,
        _beliefs(file, segments, known, good, (observations, successes), prior),
        None if lent is None else numbers("--lent", lent, above=0),
    )


def _beliefs(
    file: str,
    segments: Sequence[str],
    known: Sequence[float],
    good: Sequence[float],
    names: tuple[str, str],
    prior: Belief,
) -> dict[str, Belief]:
    """Return the belief of each segment: the prior and its outcomes, which must be the same in all its rows."""
    counts: dict[str, tuple[float, float]] = {}
    for row, (segment, n, s) in enumerate(zip(segments, known, good, strict=True)):
        if s > n:
            _fail(file, row, InputError(names[1], s, f"at most {n:g}, the number in column {names[0]!r}"))
        if counts.setdefault(segment, (n, s)) != (n, s):
            before = counts[segment]
            _fail(
                file,
                row,
                InputError.because(
                    f"must have the same outcomes in all rows of a segment: {before[1]:g} of {before[0]:g} before, and "
                    f"{s:g} of {n:g} here",
                    "segment",
                    label=f"segment {segment!r}",
                    value=segment,
                ),
            )
    return {segment: Belief(prior.n + n, prior.s + s) for segment, (n, s) in counts.items()}


def _numbers(
    file: str, columns: dict[str, list[Any]], option: str, column: str, count: int, limits: dict[str, Any]
) -> list[float]:
    """Return the numbers of a column, or one number for all rows."""
    from lenience.files.vocabulary import how_to_write

    if column not in columns:
        try:
            constant = float(column)
        except ValueError:
            _column(columns, option, column)  # It raises the error for an unknown column.
            raise
        return [real(option, constant, **limits)] * count
    numbers = []
    for row, value in enumerate(columns[column]):
        text = str(value).strip()
        try:
            number: object = float(text)
        except ValueError:
            number = "" if value is None else text
        try:
            numbers.append(real(column, number, label=f"column {column!r}", **limits))
        except InputError as error:
            _fail(file, row, error.with_hint(how_to_write(text) or None))
    return numbers


def _column(columns: dict[str, list[Any]], option: str, name: str) -> list[Any]:
    """Return a column, or raise InputError that names the option and the columns."""
    if name not in columns:
        raise InputError.unknown_name(option, name, columns, "the columns")
    return columns[name]


def _fail(file: str, row: int, error: InputError) -> NoReturn:
    """Raise an error about a row, with its line in the file if it has lines."""
    from lenience.files.columns import read_rows

    try:
        lines = [line for line, _ in read_rows(file)][1:]
        place = f"line {lines[row]:,}"
    except (InputError, IndexError):  # It is a Parquet file, or several.
        place = f"row {row + 1:,}"
    raise error.at(f"{file}, {place}") from None


def _output_path(output: str) -> Path:
    """Check the path of the output before anything is computed."""
    target = Path(output)
    if target.suffix.lower() != ".csv":
        raise InputError("--output", output, "a file name ending in .csv")
    if not target.parent.is_dir():
        raise InputError("--output", str(target.parent), "in a folder that exists", code="missing_file")
    return target


def _decisions(result: Ranking) -> list[tuple[str, int | None, Applicant]]:
    """Return all applicants with their decision and, if they are chosen, their rank."""
    return [
        *(("accept", place, one) for place, one in enumerate(result.chosen, 1)),
        *(("wait", None, one) for one in result.waiting),
        *(("reject", None, one) for one in result.rejected),
    ]


def _write(target: Path, batch: Batch, result: Ranking) -> None:
    """Write all rows, the chosen ones first; columns of an earlier ranking are replaced."""
    others = [name for name in batch.columns if name not in ADDED]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*others, *ADDED])
        for decision, place, one in _decisions(result):
            cells = [batch.columns[name][int(one.name)] for name in others]
            writer.writerow([*cells, decision, place, one.index, one.expected_profit, one.label_value])


def _as_json(batch: Batch, result: Ranking, most: int | None, limit: float | None, output: str | None) -> object:
    """Return the answer for JSON."""
    return {
        "applicants": len(batch.names),
        "capacity": most,
        "money": limit,
        "money_used": result.money,
        "index": result.index,
        "bound": result.bound,
        "rows": [
            {
                "decision": decision,
                "rank": place,
                "id": batch.names[int(one.name)],
                "segment": batch.segments[int(one.name)],
                "amount": one.offer.amount,
                "cost": one.offer.cost,
                "expected_success": one.belief.mean,
                "expected_profit": one.expected_profit,
                "label_value": one.label_value,
                "index": one.index,
            }
            for decision, place, one in _decisions(result)
        ],
        "file": output,
    }


def _print(batch: Batch, result: Ranking, limit: float | None, money: Money) -> None:
    """Print the chosen applicants and what they are worth."""

    def total(of: Callable[[Applicant], float]) -> str:
        return money.format(sum(of(one) for one in result.chosen))

    out = console()
    out.print(bold(f"Accept {len(result.chosen):,} of {counted(len(batch.names), 'applicant')}."))
    if result.chosen:
        grid = table()
        for heading in ("rank", "applicant", "segment"):
            grid.add_column(heading, justify="right" if heading == "rank" else "left")
        for heading in ("amount", "break-even", "expected success", "expected profit", "value of outcome", "index"):
            grid.add_column(heading, justify="right")
        for place, one in enumerate(result.chosen[:SHOWN], 1):
            grid.add_row(
                f"{place:,}",
                batch.names[int(one.name)],
                batch.segments[int(one.name)],
                money.format(one.offer.amount),
                percent(one.offer.cost, 2),
                percent(one.belief.mean),
                money.format(one.expected_profit),
                money.format(one.label_value),
                money.format(one.index),
            )
        out.print(grid)
        if len(result.chosen) > SHOWN:
            out.print(f"The first {SHOWN} are shown. --output and --json have all of them.")
        out.print(
            f"They are expected to earn {total(lambda one: one.expected_profit)}. Their outcomes are worth "
            f"{total(lambda one: one.label_value)} for later decisions."
        )
    if limit is not None:
        out.print(
            f"They use {money.format(result.money)} of {money.format(limit)}. Their indices add up to "
            f"{money.format(result.index)}; no other choice reaches more than {money.format(result.bound)}."
        )
    if result.waiting:
        out.print(f"Accepting pays for {counted(len(result.waiting), 'more applicant')}, but there is no capacity.")
    if result.rejected:
        out.print(f"Accepting does not pay for {counted(len(result.rejected), 'applicant')}.")

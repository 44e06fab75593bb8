"""Shared by the commands that start from past decisions: their options, and the segments they lead to."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec

from lenience.cli.file_options import dates_option, outcome_words, sheet_option
from lenience.cli.monitored import check_protected, decide_by_protected_option, monitor_option
from lenience.cli.options import FILE, discounted, note_units, prior_option
from lenience.cli.past_texts import check_accepted, read_bands, read_segment_costs
from lenience.cli.progress import announcing
from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.formatting import plural
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.protected_attributes import describe_consent
from lenience.core.validation import real
from lenience.files.value_guesses import guess_meaning
from lenience.history.beliefs import MODELS
from lenience.history.price_dependence import BAND
from lenience.history.specification import check_segment_costs, segment_objectives
from lenience.objectives.delayed import Delayed

if TYPE_CHECKING:
    from lenience.analysis.monitored_groups import MonitoredGroups
    from lenience.files.date_formats import Order
    from lenience.files.economics import Economics
    from lenience.history.beliefs import Fitted
    from lenience.history.group_mix import GroupMix
    from lenience.history.history import History
    from lenience.history.past_columns import PastColumns
    from lenience.objectives.discounted import Discounted
    from lenience.segments.exposure_limits import Exposure
    from lenience.segments.segments import Segments
    from lenience.segments.starting import Shutout

DAYS = 365.25  # per year
LAST_YEAR = "last-year"
NOTABLE = 1.25  # a ratio of volumes above which a warning tells both
OPTIONS = {"accepted": ("--accepted-value", "--rejected-value"), "outcome": ("--success", "--failure", "--pending")}

Command = TypeVar("Command", bound=Callable[..., Any])


class YearlyArrivals(click.ParamType[float | str]):
    """A number of individuals per year, or the word for those of the last twelve months."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number, or the word itself."""
        if value == LAST_YEAR:
            return LAST_YEAR
        try:
            return float(value)
        except ValueError:
            raise InputError("--arrivals", value, f"a number above 0, or {LAST_YEAR}") from None


def history_options(command: Command, models: Sequence[str] = MODELS, segment_required: bool = True) -> Command:
    """Add the options for past decisions and the meaning of their columns; each command adds its own --cost."""
    for option in (
        decide_by_protected_option,
        monitor_option("by which fairness is measured"),
        click.option("--truths", type=FILE, help="A CSV file of the segment columns and p, the true success rates."),
        click.option(
            "--group", "group_columns", multiple=True, help="A segment column that holds the group; may be repeated."
        ),
        click.option("--score", "score_columns", multiple=True, help="An ordered segment column, for --model curve."),
        click.option(
            "--model",
            type=click.Choice(list(models)),
            default="own",
            show_default=True,
            help="What to assume about a segment beyond its own outcomes; see the documentation of segments.",
        ),
        prior_option,
        click.option("--discount-rate", type=float, help="The yearly interest rate, with --arrivals."),
        click.option("--label-delay", type=float, help="The mean delay of an outcome in years; with --arrivals."),
        click.option(
            "--arrivals",
            type=YearlyArrivals(),
            help="Individuals per year, all segments together, or last-year for those of the last twelve months in "
            "SOURCE; with --discount-rate.",
        ),
        click.option("--discount", type=float, help="The discount γ from one individual to the next, in [0, 1)."),
        click.option(
            "--price-bands",
            type=int,
            help="Divide segments by this many bands of break-evens; with columns of --gain and --loss, or of loans.",
        ),
        click.option("--strict", is_flag=True, help="Stop with an error if any row cannot be used."),
        click.option(
            "--rejected-value", multiple=True, help="A value of --accepted that means rejected; may be repeated."
        ),
        click.option("--accepted-value", multiple=True, help="A value of --accepted that means yes; may be repeated."),
        outcome_words,
        click.option("--half-life", type=float, help="Days after which a label counts half; needs --time."),
        click.option(
            "--maturing",
            is_flag=True,
            help="Let the pending count according to their age; needs --time and --outcome-time.",
        ),
        click.option("--maturity", type=float, help="Days until an outcome is certain; younger ones are pending."),
        click.option("--as-of", help="The date of the count; by default the last date not in the future."),
        click.option("--connection", help="The URL of a database whose table SOURCE names."),
        click.option(
            "--outcome-time", "outcome_time_column", help="The column of the date when an outcome became known."
        ),
        sheet_option,
        dates_option,
        click.option("--time", "time_column", help="The column of the decision's date."),
        click.option("--outcome", "outcome_column", required=True, help="The column of the outcome; missing: pending."),
        click.option("--all-accepted", is_flag=True, help="Everyone in SOURCE was accepted; instead of --accepted."),
        click.option("--accepted", "accepted_column", help="The column that says who was accepted."),
        click.option(
            "--score-bands",
            "band_texts",
            multiple=True,
            help="Cut a column of numbers into bands, each a segment: score:5, or score:580,640,700 for the edges; may "
            "be repeated.",
        ),
        click.option(
            "--segment",
            "segment_columns",
            multiple=True,
            required=segment_required,
            help="A column that makes segments; may be repeated.",
        ),
        click.argument("source", type=FILE),
    ):
        command = option(command)
    return command


class PastOptions(NamedTuple):
    """Past decisions, a model fitted to them and, if a cost is given, the segments to decide."""

    history: History
    fitted: Fitted
    segments: Segments | None
    groups: dict[str, str]
    truths: dict[str, float] | None
    outset: list[Shutout]
    late: Delayed | None = None
    arrivals: float | None = None
    mix: GroupMix | None = None
    monitored: list[MonitoredGroups] = []  # noqa: RUF012  (a named tuple's default is never changed)
    protected: tuple[str, ...] = ()  # attributes that decisions differ by
    objective: Discounted | Delayed | None = None  # of the whole population
    costs: dict[str, float] = {}  # noqa: RUF012  (of single segments)
    to_type: tuple[str, ...] = ()  # options with which to give values a meaning

    def exposures(self, values: bool = False) -> list[Exposure]:
        """Return the limit on pending applicants of each segment; an empty list without a label delay."""
        if self.late is None or self.segments is None:
            return []
        from lenience.segments.exposure_limits import exposure_limits
        from lenience.segments.segments import Segments

        shares = {cell.name: cell.share for cell in self.segments}
        beliefs = {cell.name: cell.prior for cell in self.segments}
        out = {row.segment: row.out for row in self.history.segments if row.segment in shares}
        late: Any = self.late
        brought = {cell.name: cell.objective.offers for cell in self.segments}
        if any(brought.values()):
            late = {name: self.late.with_offers(own) for name, own in brought.items() if own is not None}
        elif self.costs:
            late = segment_objectives(self.late, list(shares), {}, self.costs)
        with announcing("Computing how many may be pending at a time"):
            return exposure_limits(Segments.of(shares, late, beliefs, self.groups), out, values)

    def described(self) -> str:
        """Describe what was read, and what to type if values have no meaning or outcomes are immature."""
        return "\n".join([self.history.describe(), *self.to_type, *_to_mature(self.history), *_to_divide(self.history)])

    def warning(self, accepts: Mapping[str, bool], on_page: bool = False) -> str | None:
        """Return warnings about the beliefs and the decisions based on them.

        On a page they do not say what to type, because its reader has no command line.
        """
        from lenience.analysis.monotonicity import uneven_decisions_warning

        uneven = None if self.fitted.model == "curve" else uneven_decisions_warning(self.history, accepts)
        consent = describe_consent(self.protected).removesuffix(".") if self.protected else None
        volume, delay = self._volume_warning(on_page), self._delay_warning(on_page)
        warnings = (self.fitted.warning, uneven, delay, volume, consent)
        return "; ".join(warning for warning in warnings if warning) or None

    def _volume_warning(self, on_page: bool) -> str | None:
        """Return a warning if the given volume is far from that of the last twelve months."""
        last_year, as_of = self.history.last_year, self.history.as_of
        if self.arrivals is None or last_year is None or as_of is None:
            return None
        if 1 / NOTABLE < self.arrivals / last_year < NOTABLE:
            return None
        text = (
            f"the amounts assume {self.arrivals:,.10g} applicants a year, but {last_year:,} arrived in the twelve "
            f"months to {as_of:%Y-%m-%d}"
        )
        return text if on_page else f"{text}; to use these, type --arrivals {LAST_YEAR}"

    def _delay_warning(self, on_page: bool) -> str | None:
        """Return a warning if labels come later than the options assume."""
        maturity, pending = self.history.maturity or 0.0, sum(row.pending for row in self.history.segments)
        years = f"{maturity / DAYS:.2g}"
        if self.late is not None:
            if self.late.label_delay > 0.99 * maturity / DAYS:
                return None
            text = (
                f"outcomes are final after {maturity:g} days, later than the assumed mean delay of "
                f"{self.late.label_delay:g} years, so more applicants are pending than the limits assume"
            )
            return text if on_page else f"{text}: use --label-delay {years}"
        if self.segments is None or not (maturity or pending):
            return None
        example = f", e.g. {years} for the maturity of {maturity:g} days" if maturity else ""
        if self.history.mean_delay is not None:
            example = f", e.g. {self.history.mean_delay / DAYS:.2g} as in the source"
        text = (
            f"outcomes arrive late ({pending:,} {plural(pending, 'is', 'are')} pending), but these decisions assume "
            "that they arrive at once"
        )
        if on_page:
            return text
        return (
            f"{text}: add --label-delay, their mean delay in years{example}, with --arrivals and --discount-rate, to "
            "see how many may be pending at a time"
        )


def read_past_options(
    source: str,
    segment_columns: tuple[str, ...],
    accepted_column: str | None,
    all_accepted: bool,
    band_texts: tuple[str, ...],
    outcome_column: str,
    time_column: str | None,
    outcome_time_column: str | None,
    maturing: bool,
    dates: Order | None,
    sheet: str | None,
    connection: str | None,
    as_of: str | None,
    maturity: float | None,
    half_life: float | None,
    price_bands: int | None,
    success: tuple[str, ...],
    failure: tuple[str, ...],
    pending: tuple[str, ...],
    accepted_value: tuple[str, ...],
    rejected_value: tuple[str, ...],
    strict: bool,
    cost: float | None,
    economics: Economics | None,
    discount: float | None,
    arrivals: float | str | None,
    discount_rate: float | None,
    label_delay: float | None,
    prior: Belief,
    model: str,
    score_columns: tuple[str, ...],
    group_columns: tuple[str, ...],
    truths: str | None,
    monitor: tuple[str, ...] = (),
    decide_by_protected: bool = False,
    floor_group: tuple[str, ...] = (),
    doubt: float | None = None,
    mix_columns: tuple[str, ...] = (),
    segment_cost_texts: tuple[str, ...] = (),
) -> PastOptions:
    """Read past decisions as the options say; the groups of a floor must exist.

    ``mix_columns`` are the columns of a group that decisions do not look at: each segment has members of several.
    """
    from lenience.history.past import believe, read_past
    from lenience.history.past_columns import PastColumns
    from lenience.segments.segments import Segments
    from lenience.segments.starting import shut_out_at_outset

    accepted = check_accepted(accepted_column, all_accepted)
    bands = read_bands(band_texts)
    segment_columns += tuple(name for name in bands if name not in segment_columns)
    costs = read_segment_costs(segment_cost_texts)
    if costs and cost is None:
        raise InputError.because(
            "needs --cost, or --gain and --loss as numbers: otherwise each applicant has its own break-even",
            "--segment-cost", code="missing" if economics is None else "conflicting_fields",
        )  # fmt: skip
    protected = check_protected("--segment", segment_columns, monitor, decide_by_protected)
    if label_delay is not None and ((cost is None and economics is None) or arrivals is None or discount_rate is None):
        raise InputError.because("needs --cost, --arrivals and --discount-rate", "--label-delay", code="missing")
    if dates is not None and time_column is None:
        raise InputError.because(
            "needs --time, the column of dates", ("--dates", "--time"), label="--dates", code="missing"
        )
    if time_column is None and (as_of is not None or maturity is not None or half_life is not None):
        raise InputError.because(
            "--as-of, --maturity and --half-life need --time, the column of the decisions' dates",
            ("--time", "--as-of", "--maturity", "--half-life"),
            label="",
            code="missing",
        )
    if score_columns and model != "curve" and cost is None and economics is None:
        raise InputError.because(
            "needs --model curve, or --cost, which compares every model", "--score", code="missing"
        )
    if doubt is not None and cost is None and economics is None:
        raise InputError.because("needs --cost, or --gain and --loss", "--doubt", code="missing")
    if (arrivals == LAST_YEAR or maturing or outcome_time_column is not None) and time_column is None:
        option = "--maturing" if maturing else "--outcome-time" if outcome_time_column else f"--arrivals {LAST_YEAR}"
        raise InputError.because(
            "needs --time, the column of the decisions' dates",
            (option.split()[0], "--time"),
            label=option,
            code="missing",
        )
    if maturing and outcome_time_column is None:
        raise InputError.because(
            "needs --outcome-time, the column of the dates when outcomes became known",
            ("--maturing", "--outcome-time"),
            label="--maturing",
            code="missing",
        )
    if maturing and maturity is not None:
        raise InputError.because(
            "Give either --maturing or --maturity, not both",
            ("--maturing", "--maturity"),
            label="",
            code="conflicting_fields",
        )
    late = None
    if cost is not None or economics is not None:
        # The volume of the last year is not known before the rows are counted; all options are checked before that.
        assumed = 1.0 if isinstance(arrivals, str) else arrivals
        problem, late = problems_of(cost, discount, assumed, discount_rate, label_delay)
        if late is not None and label_delay is not None:
            note_units(0.0, [label_delay])
    elif discount is not None or arrivals is not None or discount_rate is not None:
        raise InputError.because(
            "--discount, --arrivals and --discount-rate need --cost, or --gain and --loss",
            ("--cost", "--discount", "--arrivals", "--discount-rate"),
            label="",
            code="missing",
        )
    columns = PastColumns(
        segment_columns,
        outcome_column,
        accepted,
        success=success,
        failure=failure,
        pending=pending,
        accepted_values=accepted_value,
        rejected_values=rejected_value,
        time=time_column,
        dates=dates,
        groups=group_columns,
        scores=score_columns,
        maturity=maturity,
        half_life=half_life,
        expire_after=None if late is None or time_column is None else (late.expire_after or 0.0) * DAYS,
        as_of=as_of,
        economics=economics,
        outcome_time=outcome_time_column,
        maturing=maturing,
        price_bands=price_bands,
        bands=tuple(bands.items()),
        decide_by_protected=decide_by_protected,
    )
    with announcing("Counting past decisions"):
        past = read_past(source, columns, connection, strict, sheet)
    history = past.history
    if not history.segments:
        description = " ".join([history.describe(), *_to_type(history, accepted, outcome_column)])
        raise InputError.because(
            f"must have rows that can be used; {source!r} has none: {description}",
            "source",
            value=str(source),
            code="insufficient_data",
        )
    if isinstance(arrivals, str):
        arrivals = _arrivals_last_year(history)
        problem, late = problems_of(cost, discount, arrivals, discount_rate, label_delay)
    for group in floor_group:  # the groups are known once the rows are counted
        if group not in (groups := dict.fromkeys(past.groups.values())):
            raise InputError.unknown_name("--floor-group", group, groups)
    if mix_columns and price_bands is not None:
        raise InputError.because(
            "cannot be combined with groups that decisions do not look at",
            "--price-bands",
            hint="Leave out --price-bands, or --fair.",
            code="conflicting_fields",
        )
    mix = _mix(source, columns, mix_columns, history, connection, sheet) if mix_columns else None
    monitored = _monitored(source, columns, monitor, history, connection, sheet) if monitor else []
    to_type = tuple(_to_type(history, accepted, outcome_column))
    fitted = believe(past, model, prior)
    known = None if truths is None else _truths(Path(truths), history)
    if cost is None and economics is None:
        return PastOptions(
            history, fitted, None, past.groups, known, [], mix=mix, monitored=monitored, protected=protected,
            to_type=to_type,
        )  # fmt: skip
    whole = problem if economics is None else problem.with_offers(history.offers_of_all())
    check_segment_costs(costs, past.shares)
    offers = history.offers() if economics is not None else {}
    objective = segment_objectives(whole, past.names, offers, costs)
    outset, segments = [], None
    with announcing(f"Computing which of {len(history.segments):,} segments would start with each model"):
        for name in MODELS:
            if name == "curve" and not score_columns:
                continue
            beliefs = _doubted(believe(past, name, prior), doubt, history)
            divided = Segments.of(past.shares, objective, beliefs, past.groups)
            segments = divided if name == model else segments
            # "history" gives the same beliefs as "own", and "pooled-history" is the selective-labels trap.
            if name not in ("history", "pooled-history"):
                outset += shut_out_at_outset(divided, known or history.rates(), name)
    posted: Discounted | Delayed = with_rates(whole, arrivals, discount_rate)
    if late is not None:
        posted = late if whole.offers is None else late.with_offers(whole.offers)
    return PastOptions(
        history, fitted, segments, past.groups, known, outset, late, arrivals, mix, monitored, protected, posted, costs,
        to_type,
    )  # fmt: skip


def _monitored(
    source: str,
    columns: PastColumns,
    monitor: tuple[str, ...],
    history: History,
    connection: str | None,
    sheet: str | None,
) -> list[MonitoredGroups]:
    """Measure past decisions by monitored attributes; an unknown column is one of theirs."""
    from lenience.analysis.monitored_history import monitor_columns

    try:
        with announcing("Counting past decisions by monitored attribute"):
            return monitor_columns(source, columns, history, monitor, connection, sheet)
    except InputError as error:
        raise error.with_fields({"segment": "--monitor", "monitored": "--monitor"}) from None


def _mix(
    source: str,
    columns: PastColumns,
    groups: tuple[str, ...],
    history: History,
    connection: str | None,
    sheet: str | None,
) -> GroupMix:
    """Count the groups of each segment; an unknown column is that of the group."""
    from lenience.history.group_mix import group_mix

    try:
        with announcing("Counting the groups of each segment"):
            return group_mix(source, columns, groups, history, connection, sheet)
    except InputError as error:
        raise error.with_fields({"segment": "group"}) from None


def part_of_a_year(options: Mapping[str, Any]) -> float | None:
    """Return the factor from a total value to the equivalent yearly payment: λ(1 − γ), or r if labels come late."""
    arrivals, rate = options["arrivals"], options["discount_rate"]
    if options["label_delay"] is not None:
        return float(rate)
    return None if arrivals is None else arrivals * rate / (arrivals + rate)


def problems_of(
    cost: float | None,
    discount: float | None,
    arrivals: float | None,
    discount_rate: float | None,
    label_delay: float | None,
) -> tuple[Discounted, Delayed | None]:
    """Return the problem of the whole population, and the one with late labels if there is a label delay."""
    problem = discounted(0.5 if cost is None else cost, discount, arrivals, discount_rate)
    if arrivals is None or discount_rate is None or label_delay is None:
        return problem, None
    return problem, Delayed(problem.cost, arrivals, discount_rate, real("--label-delay", label_delay, above=0))


def with_rates(problem: Discounted, arrivals: float | None, discount_rate: float | None) -> Discounted:
    """Return the objective with the yearly numbers that its discount comes from, as the service takes it."""
    if arrivals is None:
        return problem
    return msgspec.structs.replace(problem, arrivals=arrivals, discount_rate=discount_rate)


def _arrivals_last_year(history: History) -> float:
    """Return the number of applicants of the last twelve months, or raise InputError if the dates span less."""
    if history.last_year is None:
        raise InputError.because(
            f"must be a number: the dates of the source span less than a year, so there is no {LAST_YEAR}",
            "--arrivals",
            value=LAST_YEAR,
            code="insufficient_data",
        )
    return float(history.last_year)


def _doubted(fitted: Fitted, doubt: float | None, history: History) -> Mapping[str, Belief | MixtureBelief]:
    """Return the belief about each segment. With doubt, its own outcomes may contradict the prior."""
    if doubt is None:
        return fitted.beliefs
    beliefs = {
        row.cell: MixtureBelief.doubt(row.prior, doubt).after(row.labels, row.successes) for row in fitted.shrinkage
    }
    if history.applied is None:
        return beliefs
    return {name: history.applied.belief(name, belief) for name, belief in beliefs.items()}


def _to_mature(history: History) -> list[str]:
    """Return the options with which immature outcomes count as they should."""
    immaturity = history.immaturity
    if immaturity is None:
        return []
    name = "" if immaturity.dated else " with --outcome-time, the column of the dates when outcomes became known"
    window = f", or --maturity {immaturity.maturity:.0f}" if immaturity.maturity else ""
    return [f"Type --maturing{name}, so that the pending count according to their age{window}."]


def _to_divide(history: History) -> list[str]:
    """Return the option with which success depends less on the price, if it does inside segments."""
    if not history.price_warning():
        return []
    option = "more --price-bands" if BAND in history.columns else "--price-bands 4"
    return [f"Type {option}, so that applicants with other prices are other segments, or give --cost."]


def _to_type(history: History, accepted: str | None, outcome: str) -> list[str]:
    """Return the options with which to give values a meaning, with a guess where there is one."""
    lines = []
    for kind, words in history.unread.items():
        if not words:  # the values are empty, or the source is too large to look for them
            continue
        column = outcome if kind == "outcome" else accepted or ""
        guesses = {word: _guessed_option(kind, column, word) for word, _ in words}
        if known := [f"{option} {shlex.quote(word)}" for word, option in guesses.items() if option]:
            lines.append(f"If these values of {column} mean what their words say, type {' '.join(known)}.")
        first, *others = [shlex.quote(word) for word, option in guesses.items() if not option] or [""]
        if first:
            options = [f"{option} {first}" for option in OPTIONS[kind]]
            more = f", and the same for {', '.join(others)}" if others else ""
            lines.append(f"Type {' or '.join(options)}{more}.")
    return lines


def _guessed_option(kind: str, column: str, word: str) -> str:
    """Return the option that a value probably needs; empty if it is unclear."""
    meaning = guess_meaning("accepted" if kind == "accepted" else "outcome", column, word)
    options = dict(zip(("yes", "no", "none"), OPTIONS[kind], strict=False))
    return options.get(meaning, "")


def _truths(path: Path, history: History) -> dict[str, float]:
    """Read true success rates by segment from a file with the segment columns and p."""
    from lenience.files.columns import read_columns
    from lenience.history.segment_history import SEPARATOR

    try:
        columns = read_columns(path)
    except InputError as error:
        raise InputError.unreadable("truths", path, error) from None
    required = [*history.columns, "p"]
    if any(name not in columns for name in required):
        raise InputError.because(
            f"must have a header with {', '.join(required)} and a row for each segment",
            "truths",
            value=str(path),
            code="invalid_file",
        )
    rates = {}
    for *values, p in zip(*(columns[name] for name in required), strict=True):
        name = SEPARATOR.join(str(value).strip() for value in values)
        try:
            rates[name] = real("truths", float(p or "nan"), least=0, most=1, label=f"p of {name}")
        except ValueError as error:
            raise InputError("truths", p, "a number from 0 to 1", label=f"p of {name}") from error
    for row in history.segments:
        if row.segment not in rates:
            raise InputError.because(
                f"must have a success rate for every segment; {row.segment!r} has none",
                "truths",
                value=row.segment,
                code="missing",
            )
    return rates

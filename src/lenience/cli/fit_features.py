"""lenience fit with --model logistic or calibrated: a policy with features from past decisions, as a file."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from lenience.cli.feature_options import TRUST
from lenience.cli.monitored import check_protected, monitored_json, print_monitored
from lenience.cli.options import bold, console, print_json, table, unit_of
from lenience.cli.past import problems_of, with_rates
from lenience.cli.past_texts import check_accepted, read_ranges, read_units
from lenience.cli.policy_options import read_settings
from lenience.cli.progress import announcing
from lenience.core.errors import InputError
from lenience.core.formatting import counted, even_percent, percent
from lenience.core.money import Money

# Options of segments that mean nothing with features, by parameter.
UNUSED = {
    "time_column": "--time", "outcome_time_column": "--outcome-time", "maturing": "--maturing", "dates": "--dates",
    "connection": "--connection", "as_of": "--as-of", "maturity": "--maturity", "half_life": "--half-life",
    "price_bands": "--price-bands", "strict": "--strict", "group_columns": "--group", "truths": "--truths",
    "doubt": "--doubt", "band_texts": "--score-bands", "segment_cost_texts": "--segment-cost",
}  # fmt: skip


def fit_by_features(as_json: bool, cost: float | None, money: Money, **options: Any) -> None:
    """Fit the policy, write it if asked to, and print what it learnt."""
    from lenience.cli.policy_file import in_money, write_policy_file
    from lenience.history.feature_fit import fit_features

    for name, option in UNUSED.items():
        if options[name]:
            raise InputError.because(
                f"cannot be combined with --model {options['model']}", option, code="conflicting_fields"
            )
    settings, output = read_settings(options), options["output"]
    accepted = check_accepted(options["accepted_column"], options["all_accepted"])
    economics, model = options["economics"], options["model"]
    if cost is None and economics is None:
        raise InputError.because("needs --cost, or --gain and --loss", "--model", value=model, code="missing")
    scores = options["score_columns"]
    if len(scores) > 1 or (model == "calibrated") != bool(scores):
        raise InputError.because(
            "must name one column with --model calibrated, and only then", "--score", value=list(scores),
            code="missing" if not scores else "conflicting_fields",
        )  # fmt: skip
    scale = options["score_scale"]
    if model == "logistic" and (options["trust"] is not None or scale is not None or options["lower_is_better"]):
        raise InputError.because(
            "need --model calibrated", ("--trust", "--score-scale", "--lower-is-better"),
            label="--trust, --score-scale and --lower-is-better", code="conflicting_fields",
        )  # fmt: skip
    if isinstance(options["arrivals"], str):
        raise InputError("--arrivals", options["arrivals"], f"a number above 0 with --model {model}")
    problem, late = problems_of(
        cost, options["discount"], options["arrivals"], options["discount_rate"], options["label_delay"]
    )
    objective = with_rates(problem, options["arrivals"], options["discount_rate"]) if late is None else late
    if economics is None:
        objective = in_money(objective, money)
    with announcing("Fitting the model"):
        fitted = fit_features(
            options["source"],
            options["outcome_column"],
            accepted,
            objective,
            model,
            options["feature_columns"],
            (*options["segment_columns"], *options["category_columns"]),
            scores[0] if scores else None,
            scale or "failure",
            not options["lower_is_better"],
            TRUST if options["trust"] is None else options["trust"],
            economics,
            money.currency,
            options["success"],
            options["failure"],
            options["pending"],
            options["accepted_value"],
            options["rejected_value"],
            options["sheet"],
            options["monitor"],
            read_ranges(options["feature_ranges"]),
            read_units(options["feature_units"]),
        )
    rule = fitted.policy.to_rule()
    names = [column.name for column in rule.columns]
    protected = check_protected("--feature", names, options["monitor"], options["decide_by_protected"])
    monitored = []
    if fitted.monitored is not None:
        from lenience.analysis.monitored_history import monitor_rows

        past = fitted.monitored
        monitored = monitor_rows(past.attributes, past.bands, past.accepted.tolist(), past.outcomes.tolist())
    if output is not None:
        from lenience.client.feature_policies import feature_policy_body

        settings = msgspec.structs.replace(settings, protected=protected, monitored=options["monitor"])
        body = feature_policy_body(fitted.policy, settings.name) | settings.fields
        write_policy_file(body | {"origin": msgspec.to_builtins(fitted.origin)}, output)
    if as_json:
        print_json(
            {
                "rows": fitted.rows,
                "accepted": fitted.accepted,
                "labels": fitted.labels,
                "model": model,
                "description": fitted.describe(),
                "columns": msgspec.to_builtins(list(rule.columns)),
                "left_out": list(fitted.left_out),
                "unit": unit_of(cost, money),
                "accepted_now": fitted.accepted_now,
                "bands": [band._asdict() for band in fitted.bands],
                "state_hash": rule.state_hash(),
                "output": output,
                "monitored": monitored_json(monitored),
            }
        )
        return
    out = console()
    out.print(fitted.describe())
    out.print()
    grid = table()
    for heading in ("expected success", "outcomes", "mean expected", "observed"):
        grid.add_column(heading, justify="right")
    for band in fitted.bands:
        span = f"{even_percent(band.low)} to {even_percent(band.high)}"
        grid.add_row(span, f"{band.labels:,}", even_percent(band.expected), even_percent(band.observed))
    out.print(grid)
    out.print("Expected and observed success of the outcomes that the model learnt from.")
    out.print(f"Of applicants like these, {percent(fitted.accepted_now)} would be accepted now.")
    numbers = [one for one in rule.columns if one.type == "number"]
    unlimited = [one.name for one in numbers if one.minimum is None and one.maximum is None]
    if unlimited:
        out.print(
            f"Without a range, the service takes any number for {', '.join(unlimited)}. "
            f"To reject typing errors, add e.g. --feature-range {unlimited[0]}=LOWEST:HIGHEST."
        )
    if output is None:
        out.print("Add --output policy.json to write the policy to a file.")
    else:
        out.print(bold("Written:"), f"{output}, with {counted(rule.labels, 'outcome')} learnt.")
        out.print(f"Next: lenience check {shlex.quote(output)}")
    print_monitored(monitored)

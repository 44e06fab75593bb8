"""lenience export-sql: a policy as SQL, for the warehouse that holds the applicants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lenience.cli.options import FILE, json_option, print_json
from lenience.core.errors import InputError

# Our name of each dialect, and Ibis's.
DIALECTS = {
    "bigquery": "bigquery", "clickhouse": "clickhouse", "databricks": "databricks", "duckdb": "duckdb",
    "mssql": "mssql", "mysql": "mysql", "oracle": "oracle", "postgres": "postgres", "snowflake": "snowflake",
    "spark": "databricks", "sqlite": "sqlite", "trino": "trino",
}  # fmt: skip
FEATURES_IN_SQL = "A policy with features is not SQL: use FeaturePolicy.decide_batch in Spark, Ray or DuckDB."


@click.command("export-sql", short_help="Write a policy as SQL that decides a table of applicants.")
@click.argument("file", type=FILE)
@click.option("--dialect", type=click.Choice(sorted(DIALECTS)), required=True, help="The SQL to write.")
@click.option("--table", "table_name", default="applicants", show_default=True, help="The table of applicants.")
@click.option("--segment", default="segment", show_default=True, help="The column of the segment.")
@click.option("--keep", multiple=True, help="Another column of the table to keep in the answer; may be repeated.")
@click.option("--amount", help="The column of the amount at stake (gain plus loss), if the policy has offers.")
@click.option("--cost", "cost_column", help="The column of the break-even success rate, if the policy has offers.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write the SQL to this file.")
@json_option
def export_sql(
    file: str,
    dialect: str,
    table_name: str,
    segment: str,
    keep: tuple[str, ...],
    amount: str | None,
    cost_column: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Write the policy in FILE as a SELECT that adds the decision and its reason to every applicant.

    FILE is what lenience fit --output writes for segments, or any policy that the service takes. The SQL decides by
    what is known when it is written: write it again after new outcomes. Limits on pending applicants, late outcomes,
    horizons and features need the service or Python.

    \b
    Example:
      lenience fit loans.csv --segment region --accepted approved --outcome repaid --cost 0.8 --arrivals 500 \\
        --discount-rate 0.1 --output policy.json
      lenience export-sql policy.json --dialect snowflake --table new_applicants --segment region \\
        --keep applicant_id
    """
    text = policy_sql(file, dialect, table_name, segment, keep, amount, cost_column)
    if output is not None:
        Path(output).write_text(text + "\n", encoding="utf-8")
    if as_json:
        print_json({"dialect": dialect, "sql": text, "output": output})
    elif output is None:
        click.echo(text)


def policy_sql(
    file: str,
    dialect: str,
    table_name: str,
    segment: str,
    keep: tuple[str, ...],
    amount: str | None,
    cost_column: str | None,
) -> str:
    """Return the policy in a file as SQL."""
    import ibis

    from lenience.segments.table_decisions import decided

    figures = _figures(file)
    # As decimals, so that the SQL makes them floating-point numbers, as the policy computes.
    numbers = {name: "decimal(38, 9)" for name in (amount, cost_column) if name is not None}
    applicants = ibis.table({**dict.fromkeys((*keep, segment), "string"), **numbers}, name=table_name)
    found = decided(figures, applicants, segment, amount, cost_column)
    return str(ibis.to_sql(found, dialect=DIALECTS[dialect]))


def _figures(file: str) -> Any:
    """Return what the decisions about each segment rest on, or raise an error if SQL cannot decide them."""
    from lenience.cli.policy_file import read_policy_file
    from lenience.segments.table_decisions import check_number, figures_of

    spec = read_policy_file(file)
    if spec.feature_spec is not None:
        raise _not_in_sql("model", FEATURES_IN_SQL)
    limits = {
        "model": spec.pools,
        "capacity": spec.overall_limits is not None,
        "fairness": bool(spec.fairness),
        "constraints.exploration_floor": spec.constraints.exploration_floor > 0,
    }
    problems = spec.problems()
    limits["constraints.exposure_cap"] = any(one.exposure_cap or one.exposure_cap_amount for one in problems)
    for field, given in limits.items():
        if given:
            raise _not_in_sql(field, "Only the service, which counts and draws, decides with it.")
    check_number(len(problems))
    return [figures_of(one.name, one.problem, one.prior) for one in problems]


def _not_in_sql(field: str, hint: str) -> InputError:
    return InputError.because("cannot be written as SQL", field, code="conflicting_fields", hint=hint)

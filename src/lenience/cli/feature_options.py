"""Options of lenience fit for models with features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lenience.core.errors import InputError

FEATURE_MODELS = ("logistic", "calibrated")
TRUST = 200.0
OPTIONS = {
    "feature_columns": "--feature",
    "category_columns": "--category",
    "score_scale": "--score-scale",
    "lower_is_better": "--lower-is-better",
    "trust": "--trust",
    "feature_ranges": "--feature-range",
    "feature_units": "--feature-unit",
}

Command = TypeVar("Command", bound=Callable[..., Any])


def feature_options(command: Command) -> Command:
    """Add the options for models with features."""
    for option in (
        click.option(
            "--lower-is-better", is_flag=True, help="Say that fewer points are better; with --score-scale points."
        ),
        click.option(
            "--score-scale",
            type=click.Choice(["failure", "success", "points"]),
            help="What --score is: a probability of failure (the default), a probability of success, or points.",
        ),
        click.option(
            "--trust", type=float, help=f"How many outcomes the score is worth, {TRUST:g} by default; with calibrated."
        ),
        click.option(
            "--feature-unit",
            "feature_units",
            multiple=True,
            help="The unit of a feature, e.g. income=EUR; may be repeated.",
        ),
        click.option(
            "--feature-range",
            "feature_ranges",
            multiple=True,
            help="The range of a feature, e.g. income=0:1000000 or age=18:; the service rejects other values; may be "
            "repeated.",
        ),
        click.option(
            "--category",
            "category_columns",
            multiple=True,
            help="A feature that is a category although it has numbers; may be repeated.",
        ),
        click.option(
            "--feature",
            "feature_columns",
            multiple=True,
            help="A column to decide by, with --model logistic or calibrated; by default all that can be used.",
        ),
    ):
        command = option(command)
    return command


def without_feature_options(options: dict[str, Any]) -> None:
    """Remove the options for features; raise InputError if one is given, or if there is no segment."""
    for name, option in OPTIONS.items():
        if options.pop(name):
            raise InputError.because("needs --model logistic or --model calibrated", option, code="conflicting_fields")
    if not options["segment_columns"] and not options["band_texts"]:
        raise InputError.because(
            "is missing", "--segment", code="missing",
            hint="Name the columns that make segments, or use --model logistic or calibrated.",
        )  # fmt: skip

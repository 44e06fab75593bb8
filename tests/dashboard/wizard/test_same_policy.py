"""One file, described to lenience fit and to the guided form, gives the same policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lenience import History, fit_history
from lenience.cli import cli
from lenience.core.belief import Belief
from lenience.dashboard.wizard import upload_reader
from lenience.dashboard.wizard.answers import EVERYONE, Answers
from lenience.dashboard.wizard.feature_plan import read_feature_specification
from lenience.dashboard.wizard.objective_plan import read_specification
from lenience.dashboard.wizard.plan import read_segments
from lenience.data import sample_loans
from lenience.objectives.discounted import Discounted
from lenience.service.domain.policy_file import checked_document, decode_policy_file
from lenience.service.domain.specification import PolicySpecification, SegmentSpec

Run = Callable[..., tuple[int, str, str]]
ACCEPTED = ("--accepted", "approved")
STATUS = ("--outcome", "status", "--pending", "Current", "--pending", "Late")
YEARLY = ("--arrivals", "900", "--discount-rate", "0.1")
DATED = ("--time", "decided")
MEANT: dict[str, Any] = {
    "accepted": "approved",
    "accepted_means": ("yes:yes", "no:no"),
    "outcome": "status",
    "outcome_means": ("yes:Fully Paid", "no:Charged Off", "none:Current", "none:Late"),
    "known": "rate",
    "cost": "75",
    "arrivals": "900",
    "rate": "10",
    "name": "same",
}
RATE = ("--cost", "0.75")
LOANS = ("--amount", "amount", "--rate", "rate", "--term", "term", "--loss-given-default", "0.6", "--currency", "$")
LOAN_ANSWERS = {
    "priced": "loan",
    "amount_column": "amount",
    "rate_column": "rate",
    "term_column": "term",
    "loss_given_default": "0.6",
    "currency": "$",
    "known": "file",
}
# The options of the command, and the answers that mean the same.
SAME: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "segments, limits and monitored attributes": (
        (*("--segment", "grade", "--segment", "region", "--group", "region", *RATE, "--monitor", "sex"),
         *("--description", "A test", "--exploration-floor", "0.02", "--exposure-cap", "7", "--expire-after", "90")),
        {"segment": ("grade", "region"), "group": "region", "monitor": ("sex",), "description": "A test",
         "floor": "2", "cap": "7", "expiry": "90"},
    ),
    "bands of a score on a curve": (
        (*("--segment", "score", "--segment", "region"),
         *("--score-bands", "score:4", "--model", "curve", "--score", "score", *RATE)),
        {"segment": ("score", "region"), "bands": (("score", "4"),), "model": "curve", "score": "score"},
    ),
    "edges, break-evens of segments, prior and doubt": (
        (*("--score-bands", "score:600,700", *RATE, "--prior", "10,7", "--doubt", "0.2"),
         *("--segment-cost", "score<600=0.9", "--segment-cost", "score>=700=70%")),
        {"segment": ("score",), "bands": (("score", "600, 700"),), "prior_rate": "70", "prior_worth": "10",
         "doubt": "20", "segment_costs": "score<600, 90\nscore>=700, 70"},
    ),
    "gain, loss and a shared model": (
        (*("--segment", "grade", "--gain", "250", "--loss", "750", "--currency", "$"),
         *("--segment-cost", "F=0.9", "--model", "shared")),
        {"segment": ("grade",), "known": "money", "gain": "250", "loss": "750", "money_currency": "$",
         "segment_costs": "F, 90", "model": "shared"},
    ),
    "late outcomes in money": (
        (*("--segment", "grade", *DATED, "--gain", "250", "--loss", "750", "--currency", "$"),
         *("--label-delay", "0.5", "--maturity", "100", "--half-life", "200")),
        {"segment": ("grade",), "time": "decided", "known": "money", "gain": "250", "loss": "750",
         "money_currency": "$", "delay": "182.625", "maturity": "100", "half_life": "200"},
    ),
    "loans in price bands": (
        ("--segment", "grade", *LOANS, "--price-bands", "2"),
        {"segment": ("grade",), **LOAN_ANSWERS, "price_bands": "2"},
    ),
    "one value for all loans, open loans by age": (
        (*("--segment", "grade", "--amount", "5000", "--rate", "rate", "--term", "24 months", "--funding-rate", "3%"),
         *(*DATED, "--outcome-time", "closed", "--maturing", "--as-of", "2026-05-31", "--model", "jeffreys")),
        {"segment": ("grade",), "priced": "loan", "amount_column": "5000", "rate_column": "rate",
         "term_column": "24 months", "funding_rate": "3%", "known": "file", "time": "decided",
         "outcome_time": "closed", "maturing": "yes", "as_of": "2026-05-31", "model": "jeffreys"},
    ),
    "decided by a protected attribute": (
        ("--segment", "sex", *RATE, "--decide-by-protected"), {"segment": ("sex",), "decide_by_protected": "yes"}
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("same")
    columns = sample_loans(400, seed=2)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (folder / "loans.csv").write_text("\n".join(lines))
    upload_reader.save_upload(folder / "loans.csv", folder / "loans.parquet", name="loans.csv")
    return folder / "loans.csv", folder / "loans.parquet"


def by_command(run: Run, source: Path, target: Path, *words: str) -> PolicySpecification:
    code, _, err = run("fit", str(source), *words, "--name", "same", "--output", str(target))
    assert code == 0, err
    return decode_policy_file(target.read_bytes(), "policy.json")


def alike(specification: PolicySpecification) -> Any:
    """The specification without rounding in the last digits, which sums in another order leave."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.9g}")
        if isinstance(value, dict):
            return {key: rounded(each) for key, each in value.items()}
        return [rounded(each) for each in value] if isinstance(value, list) else value

    return rounded(msgspec.to_builtins(specification))


@pytest.mark.parametrize("name", SAME)
def test_the_command_and_the_form_make_the_same_policy(
    run: Run, monkeypatch: pytest.MonkeyPatch, files: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr("lenience.cli.fit._starts", lambda past: {})  # the table of the command is not compared here
    monkeypatch.setattr("lenience.cli.past.PastOptions.exposures", lambda self: [])
    monkeypatch.setattr("lenience.segments.starting.shut_out_at_outset", lambda *values: [])
    options, changes = SAME[name]
    given = Answers(**{**MEANT, **changes})
    words = [*ACCEPTED, *STATUS, *YEARLY, *options]
    written = by_command(run, files[0], tmp_path / "policy.json", *words)
    made = read_specification(given, read_segments(files[1], given))
    assert alike(made) == alike(written)


def test_everyone_was_accepted(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    words = ("--segment", "region", "--all-accepted", *STATUS, "--cost", "0.75", "--discount", "0.99")
    written = by_command(run, files[0], tmp_path / "policy.json", *words)
    changes = {"accepted": EVERYONE, "accepted_means": (), "future": "discount", "discount": "0.99"}
    given = Answers(**{**MEANT, **changes, "segment": ("region",)})
    made = read_specification(given, read_segments(files[1], given))
    assert alike(made) == alike(written)
    assert made.origin
    assert made.origin.accepted == made.origin.rows == 400


@pytest.mark.parametrize("model", ["logistic", "calibrated"])
def test_policies_with_features_are_the_same(run: Run, files: tuple[Path, Path], tmp_path: Path, model: str) -> None:
    words = ["--model", model, "--feature", "income", "--category", "purpose", "--monitor", "sex", *ACCEPTED, *STATUS]
    words += ["--feature-range", "income=0:1000000", "--feature-unit", "income=EUR", *YEARLY, "--cost", "0.75"]
    uses = (("income", "number"), ("purpose", "category"), ("sex", "monitor"))
    changes: dict[str, Any] = {"kind": model, "uses": uses, "least": (("income", "0"),)}
    changes |= {"most": (("income", "1000000"),), "units": (("income", "EUR"),)}
    if model == "calibrated":
        words += ["--score", "score", "--score-scale", "points", "--trust", "50"]
        changes |= {"score": "score", "scale": "points", "trust": "50"}
    written = by_command(run, files[0], tmp_path / "policy.json", *words)
    made = read_feature_specification(files[1], Answers(**{**MEANT, **changes}))
    assert alike(made) == alike(written)
    assert made.protected == ["sex"]


def test_every_option_of_fit_is_compared_or_needs_no_answer() -> None:
    """A new option of fit needs an answer in the form and a line above, or a reason here."""
    compared = {word for words, _ in SAME.values() for word in words if word.startswith("--")}
    compared |= {
        "--accepted",
        "--outcome",
        "--pending",
        "--arrivals",
        "--discount-rate",
        "--discount",
        "--all-accepted",
    }
    compared |= {"--name", "--output", "--feature", "--category", "--feature-range", "--feature-unit", "--score-scale"}
    compared |= {"--trust"}
    elsewhere = {
        "--success": "the form asks for the meaning of every value",
        "--failure": "the form asks for the meaning of every value",
        "--accepted-value": "the form asks for the meaning of every value",
        "--rejected-value": "the form asks for the meaning of every value",
        "--dates": "asked in the form; the sample's dates are clear",
        "--sheet": "asked in the form at the upload",
        "--rate-unit": "asked in the form; the sample's rates are clear",
        "--term-unit": "asked in the form; the sample's terms are clear",
        "--lower-is-better": "a scale of the score in the form",
        "--connection": "the form does not connect to databases",
        "--truths": "measures a simulation and changes no policy",
        "--strict": "the form shows the rows that cannot be used",
        "--json": "output",
        "--help": "output",
    }
    command = cli.get_command(None, "fit")  # type: ignore[arg-type]
    assert command is not None
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert options - compared - elsewhere.keys() == set()


def test_a_history_makes_the_same_policy(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    written = by_command(
        run, files[0], tmp_path / "policy.json", "--segment", "grade", *ACCEPTED, *STATUS, *YEARLY, *RATE,
        "--prior", "10,7", "--segment-cost", "F=0.9", "--exposure-cap", "7",
    )  # fmt: skip
    history = fit_history(files[0], "grade", "approved", "status", pending=["Current", "Late"])
    made = history.specification(
        "same", Discounted(0.75, arrivals=900, discount_rate=0.1), prior=Belief(10, 7), segment_costs={"F": 0.9},
        exposure_cap=7,
    )  # fmt: skip
    assert alike(checked_document(made, "policy.json")) == alike(written)


def test_doubt_stays_apart_from_the_outcomes(files: tuple[Path, Path]) -> None:
    """The service starts from the same mixture as the library: the prior in doubt, then the outcomes."""
    history: History = fit_history(files[0], "grade", "approved", "status", pending=["Current", "Late"])
    made = history.specification("same", Discounted(0.75, 0.99), prior=Belief(10, 7), doubt=0.2)
    [first] = [one for one in checked_document(made, "policy.json").problems() if one.name == "A"]
    from lenience import MixtureBelief

    own = history["A"]
    assert first.prior == MixtureBelief.doubt(Belief(10, 7), 0.2).after(own.n, own.s)


def test_a_segment_with_its_own_break_even_keeps_the_amount() -> None:
    past = {"grade": ["A", "B"], "in": [1, 1], "good": [1, 0], "won": [20, 20]}
    history = fit_history(past, "grade", "in", "good", gain="won", loss=80, currency="$")
    objective = Discounted(offers=history.offers_of_all(), discount=0.9)
    made = checked_document(history.specification("own", objective, segment_costs={"B": 0.6}), "policy.json")
    offers = {one.name: one.offers for one in made.segments if isinstance(one, SegmentSpec)}
    assert [(one.amount, one.cost) for one in offers.values() if one] == [((100.0,), (0.8,)), ((100.0,), (0.6,))]

"""Errors about input carry their field, value, allowed values, hint and code as data, and cross processes."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import lenience
from lenience.core.errors import CODES, InputError, TooLargeError

ln: Any = lenience  # the types reject what is tried here
PROBLEM, PRIOR = ln.Discounted(0.8, 0.9), ln.Belief(2, 1)
LATE = ln.Delayed(0.8, 50, 0.1, 1.0)
POLICY = PROBLEM.solve(PRIOR)


@pytest.mark.parametrize(
    ("call", "field", "value"),
    [
        (lambda: ln.Belief(0, 0), "n", 0),
        (lambda: ln.Belief(2, 3), "s", 3),
        (lambda: ln.Discounted(1.2, 0.9), "cost", 1.2),
        (lambda: ln.Discounted(0.8, 1), "discount", 1),
        (lambda: ln.Discounted.from_rates(0.8, -1, 0.1), "arrivals", -1),
        (lambda: ln.Discounted.from_rates(0.8, 5, 0), "discount_rate", 0),
        (lambda: ln.FiniteHorizon(0.8, 0), "horizon", 0),
        (lambda: ln.FiniteHorizon(0.8, 5, 2), "discount", 2),
        (lambda: ln.Delayed(0.8, 50, 0.1, 0), "label_delay", 0),
        (lambda: PROBLEM.solve(3), "prior", 3),
        (lambda: PROBLEM.solve(PRIOR, rows=0), "rows", 0),
        (lambda: PROBLEM.solve(PRIOR, tolerance=0), "tolerance", 0),
        (lambda: LATE.solve(PRIOR, seconds=-1), "seconds", -1),
        (lambda: ln.gittins_index(PRIOR, discount=1.0), "discount", 1.0),
        (lambda: ln.solvers.gittins_table(-1, 1, discount=0.9), "alpha", UNSET),
        (lambda: ln.evaluate(POLICY, PROBLEM, 3), "belief", 3),
        (lambda: ln.characteristics(POLICY, 2), "p", 2),
        (lambda: ln.acceptance_by_arrival(POLICY, 0), "arrivals", 0),
        (lambda: ln.policies.Greedy(2), "cost", 2),
        (lambda: ln.policies.EpsilonGreedy(0.8, 2), "epsilon", 2),
        (lambda: ln.policies.policy_named("gredy", cost=0.8), "policy", "gredy"),
        (lambda: ln.policies.policy_named("greedy", price=0.8), "price", "price"),
        (lambda: ln.policies.policy_named("greedy"), "cost", UNSET),
        (lambda: ln.simulation.world_named("bernouli"), "world", "bernouli"),
        (lambda: ln.simulation.Bernoulli(2), "p", 2),
        (
            lambda: ln.compare_policies(ln.policies.Greedy(0.8), ln.simulation.Bernoulli(0.9), cost=0.8, horizon=0),
            "horizon",
            0,
        ),
        (lambda: ln.Segments.of({"a": 2.0}, PROBLEM, PRIOR), "share", 2.0),
        (lambda: ln.Segments.of({"a": 0.7, "b": 0.7}, PROBLEM, PRIOR), "shares", 1.4),
        (lambda: ln.fit_history("none.csv", "a", "b", "c"), "source", "none.csv"),
        (lambda: ln.Client("nowhere"), "url", "nowhere"),
        (lambda: ln.Client("http://127.0.0.1:1", retries=-1), "retries", -1),
    ],
)
def test_an_error_names_its_field_and_value(call: Callable[[], object], field: str, value: object) -> None:
    with pytest.raises(InputError) as caught:
        call()
    error = caught.value
    assert (error.field, error.value) == (field, value)
    assert error.code in CODES
    assert len(str(error).splitlines()) == 1
    if error.label is None:
        assert str(error).startswith(" and ".join(error.fields))


class Unpicklable:
    def __reduce__(self) -> str:
        raise TypeError("this object stays here")

    def __repr__(self) -> str:
        return "Unpicklable()"


@pytest.mark.parametrize(
    "error",
    [
        InputError("cost", 2, "a number below 1", hint="Type 0.2.", label="the cost", place="sweep, line 1"),
        InputError.because("must differ", ("a", "b"), value="x", code="duplicate"),
        InputError.unknown_name("policy", "gredy", ["greedy"]),
        InputError.unreadable("source", "loans.csv", "it is empty"),
        InputError.missing_package("figures", "matplotlib", "plot"),
        TooLargeError("Solving this", seconds=90, allowed_seconds=10, field="rows", hint="Use fewer rows."),
    ],
    ids=lambda error: error.code,
)
def test_errors_can_be_pickled_and_copied(error: InputError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert vars(other) == vars(error)
        assert str(other) == str(error)


def test_a_value_that_cannot_be_pickled_goes_as_its_text() -> None:
    error = pickle.loads(pickle.dumps(InputError("policy", Unpicklable(), "a policy")))
    assert error.value == "Unpicklable()"
    assert str(error) == "policy must be a policy, not Unpicklable()"


def test_errors_cross_processes() -> None:
    from joblib import Parallel, delayed

    with pytest.raises(InputError) as caught:
        Parallel(n_jobs=2)(delayed(ln.Discounted)(cost, 0.9) for cost in (0.5, 1.5))
    assert (caught.value.field, caught.value.value) == ("cost", 1.5)


def test_an_error_about_size_carries_its_numbers() -> None:
    with pytest.raises(TooLargeError) as caught:
        ln.Delayed(0.8, 90_000, 0.1, 1.0).solve_proved(PRIOR, seconds=2)
    error = caught.value
    assert error.code == "too_large"
    assert error.seconds is not None
    assert error.seconds > 2 == error.allowed_seconds
    assert error.fields == ("tolerance", "seconds")
    assert error.hint == "Use a larger tolerance or more seconds."
    assert str(error) == f"{error.sentence}. {error.hint}"


@pytest.mark.parametrize(
    "work",
    [lambda: ln.Discounted(0.8, 1 - 1e-11).solve(PRIOR), lambda: ln.solvers.paper_values(0.8, 0.9, [1], N=10**9)],
)
def test_a_hint_about_size_does_not_ask_for_other_facts(work: Callable[[], object]) -> None:
    with pytest.raises(TooLargeError) as caught:
        work()
    assert not {"cost", "discount", "arrivals", "horizon", "prior"} & set(caught.value.fields)


def test_the_parts_of_an_error_can_be_replaced() -> None:
    error = InputError("discount_rate", 0, "a number above 0", hint="Type 0.1.")
    assert str(error.with_hint(None)) == "discount_rate must be a number above 0, not 0"
    placed = error.with_fields({"discount_rate": "--discount-rate"}).at("line 3").at("sweep")
    assert str(placed) == "sweep: line 3: --discount-rate must be a number above 0, not 0. Type 0.1."
    assert (placed.field, placed.code, error.field) == ("--discount-rate", "invalid_value", "discount_rate")


def test_long_values_are_cut_in_the_sentence_only() -> None:
    error = InputError("name", "x" * 500, "short")
    assert len(str(error)) < 120
    assert error.value == "x" * 500


def test_every_code_of_a_problem_is_documented() -> None:
    """The codes in the service's sources are those that docs/service.md lists."""
    root = Path(__file__).parents[2]
    listed = set(re.findall(r"`([a-z_]+)`", (root / "docs/service.md").read_text().partition("### Error codes")[2]))
    assert {"invalid_value", "unknown_decision"} <= listed
    used: set[str] = set()
    for part in ("domain/problems.py", "storage", "commands", "http", "queries"):
        place = root / "src/lenience/service" / part
        for file in [place] if place.is_file() else place.rglob("*.py"):
            text = file.read_text()
            for raised in re.findall(r"(?:BadRequest|NotFound|Conflict|Forbidden|Unavailable)\([^)]*\)", text):
                used |= set(re.findall(r'code="([a-z_]+)"', raised))
            used |= set(re.findall(r'^    code = "([a-z_]+)"', text, re.MULTILINE))
            used |= set(re.findall(r'^(?:UNKNOWN|AMBIGUOUS)_\w+ = "([a-z_]+)"', text, re.MULTILINE))
    assert len(used) > 20
    assert used <= listed

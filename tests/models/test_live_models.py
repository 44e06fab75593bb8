"""Live models: one label at a time, stored and restored bit for bit, and hashed."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import mpmath
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lenience import Belief, InputError
from lenience.core.portable_exp import portable_exp
from lenience.models import (
    ApplicantBelief,
    BayesianLogistic,
    CalibratedScore,
    CellCounts,
    Curve,
    FeatureColumn,
    LiveLogistic,
    LiveModel,
    Model,
    OwnCounts,
    RowEncoding,
    Shared,
    beliefs,
    infer_columns,
    restore,
)
from lenience.models.cell_counts import CellNumbers
from lenience.models.live_model import StoredModel
from lenience.models.logistic_belief import LogisticBelief
from lenience.models.logistic_design import LogisticDesign
from lenience.models.state_bytes import Array, join, pack, split

COLUMNS = (
    FeatureColumn("income", minimum=0, unit="USD a year"),
    FeatureColumn("debt", minimum=0, maximum=1e6),
    FeatureColumn("purpose", "category", values=("car", "home", "study")),
)
CELLS = ["A", "B", "C", "D"]


def applicants(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw applicants with missing values, zeros and categories that are not declared."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        person: dict[str, Any] = {
            "income": float(rng.lognormal(10, 0.5)),
            "debt": float(rng.integers(0, 4) * 1000),
            "purpose": str(rng.choice(["car", "home", "study", "boat"], p=[0.4, 0.3, 0.25, 0.05])),
        }
        for name in person:
            if rng.random() < 0.1:
                person[name] = None
        drawn.append(person)
    return drawn


def logistic(selected: bool = False, seed: int = 0) -> LiveLogistic:
    """Return a default model with bends and, if the history is selected, a selection index."""
    encoding = RowEncoding(COLUMNS)
    known = [{**person, "purpose": "car"} for person in applicants(150, seed)]
    rows = encoding.rows(known)
    model = BayesianLogistic().spare(encoding.spare).centre_on(0.8)
    if selected:
        labelled = np.nan_to_num(rows[:, 0]) > 20_000
        good = np.random.default_rng(seed).random(len(rows)) < 0.8
        model.past_choices(labelled).prepare(rows).learn(rows[labelled], good[labelled])
        assert model.selection_ is not None
    else:
        model.prepare(rows)
    return LiveLogistic(COLUMNS, model.belief_)


def calibrated() -> LiveLogistic:
    """Return a calibrated score with a segment and a number that it misses."""
    columns = (FeatureColumn("income", minimum=0, maximum=1e9), COLUMNS[2])
    encoding = RowEncoding(columns)
    people = [{**person, "income": person["income"] or 0.0} for person in applicants(80)]
    known = encoding.rows([{"income": p["income"], "purpose": p["purpose"]} for p in people if p["purpose"] != "boat"])
    model = CalibratedScore(0, "points", trust=30).spare(encoding.spare).centre_on(0.8).prepare(known)
    return LiveLogistic(columns, model.belief_)


def cells(name: str) -> CellCounts:
    models: dict[str, Model] = {
        "own": OwnCounts(4, [Belief(2, 1), Belief(3, 2), Belief(4, 1), Belief(2, 1.5)]),
        "shared": Shared(4, strongest=50),
        "curve": Curve([10, 30, 50, 90], ["x", "y", "x", "y"], cap=15),
    }
    return CellCounts(models[name], CELLS)


MAKERS: dict[str, Any] = {
    "own": lambda: cells("own"),
    "shared": lambda: cells("shared"),
    "curve": lambda: cells("curve"),
    "logistic": logistic,
    "calibrated": calibrated,
    "selected": lambda: logistic(selected=True),
}


def labels(kind: str, count: int, seed: int) -> list[tuple[Any, bool]]:
    rng = np.random.default_rng(seed)
    people: list[Any] = (
        list(rng.choice(CELLS, count)) if kind in ("own", "shared", "curve") else applicants(count, seed)
    )
    if kind == "calibrated":
        people = [{"income": person["income"] or 9.0, "purpose": person["purpose"]} for person in people]
    return list(zip(people, (rng.random(count) < 0.7).tolist(), strict=True))


@pytest.mark.parametrize("kind", MAKERS)
def test_restored_models_continue_bit_for_bit(kind: str) -> None:
    for seed in range(3):
        whole, other = MAKERS[kind](), MAKERS[kind]()
        sequence = labels(kind, 30, seed)
        where = 1 + 9 * seed
        for person, outcome in sequence[:where]:
            other.observe(person, outcome)
        other = restore(other.state())
        assert isinstance(other, LiveModel)
        for person, outcome in sequence[where:]:
            other.observe(person, outcome)
        before = whole.state()
        for person, outcome in sequence:
            whole.observe(person, outcome)
        assert other.state() == whole.state() != before
        assert other.frame == whole.frame
        assert other.state_hash() == whole.state_hash() == hashlib.sha256(whole.state()).hexdigest()
        assert other.belief(sequence[0][0]) == whole.belief(sequence[0][0])
        assert split(whole.state()) == (whole.frame, whole.numbers())


@pytest.mark.parametrize("kind", MAKERS)
def test_every_label_changes_the_hash(kind: str) -> None:
    model = MAKERS[kind]()
    hashes = {model.state_hash()}
    for person, outcome in labels(kind, 10, 4):
        model.observe(person, outcome)
        hashes.add(model.state_hash())
    assert len(hashes) == 11


@pytest.mark.parametrize("kind", ["own", "shared", "curve"])
def test_cell_beliefs_are_those_of_the_model(kind: str) -> None:
    model = cells(kind)
    for cell, outcome in labels(kind, 60, 1):
        model.observe(cell, outcome)
    expected = beliefs(model.model, model.labels, model.successes)
    for cell, belief in zip(CELLS, expected, strict=True):
        assert model.belief(cell) == ApplicantBelief(belief.n, belief.s / belief.n)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(CELLS), st.booleans()), min_size=1, max_size=20), st.data())
def test_labels_of_cells_can_be_taken_back(sequence: list[tuple[str, bool]], data: st.DataObject) -> None:
    model, without = cells("shared"), cells("shared")
    wrong = data.draw(st.integers(0, len(sequence) - 1))
    for i, (cell, outcome) in enumerate(sequence):
        model.observe(cell, outcome)
        if i != wrong:
            without.observe(cell, outcome)
    model.retract(*sequence[wrong])
    assert model.state() == without.state()
    assert model.belief("A") == without.belief("A")


def test_labels_that_were_never_counted_cannot_be_taken_back() -> None:
    model = cells("own")
    model.observe("A", True)
    for outcome in (False, True):
        if outcome:
            model.retract("A", True)
        with pytest.raises(InputError) as error:
            model.retract("A", outcome)
        assert error.value.field == "applicant"


def test_live_logistic_is_the_library_model() -> None:
    model = logistic()
    encoding = RowEncoding(COLUMNS)
    estimator = BayesianLogistic().spare(encoding.spare).centre_on(0.8)
    estimator.prepare(encoding.rows([{**person, "purpose": "car"} for person in applicants(150)]))
    for person, outcome in labels("logistic", 40, 2):
        model.observe(person, outcome)
        estimator.learn(encoding.rows([person]), [outcome])
    n, mean = estimator.beliefs(encoding.rows(people := applicants(30, 9)))
    assert [model.belief(person) for person in people] == [ApplicantBelief(*pair) for pair in zip(n, mean, strict=True)]
    assert model.labels == estimator.labels_ == 40


def test_rows_have_the_same_bits_alone_and_in_a_batch() -> None:
    model = logistic(selected=True)
    rows = model.encoding.rows(applicants(50, 3))
    together = model.knowledge.design.rows(rows)
    alone = np.vstack([model.knowledge.design.rows(row[None]) for row in rows])
    assert np.array_equal(together, alone)


def test_encoding_is_that_of_a_one_hot_encoder() -> None:
    pandas = pytest.importorskip("pandas")
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder

    from lenience.policies.features.unseen import UnseenCategories

    people = [person for person in applicants(80, 5) if person["purpose"] is not None]
    frame = pandas.DataFrame(people)
    encoder = OneHotEncoder(categories=[["car", "home", "study"]], handle_unknown="ignore", sparse_output=False)
    known = frame[frame["purpose"] != "boat"]
    front = Pipeline(
        [("encode", ColumnTransformer([("rest", "passthrough", ["income", "debt"]), ("text", encoder, ["purpose"])]))]
    ).fit(known)
    expected = UnseenCategories(front, list(frame.columns)).counted(frame, front.transform(frame))
    assert np.array_equal(RowEncoding(COLUMNS).rows(frame), np.asarray(expected, dtype=float), equal_nan=True)
    assert RowEncoding(COLUMNS).sources() == [0, 1, 2, 2, 2, -1]


def test_applicants_in_any_container_give_the_same_rows() -> None:
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    encoding, people = RowEncoding(COLUMNS), applicants(10, 6)
    plain = [[person[column.name] for column in COLUMNS] for person in people]
    for container in (pandas.DataFrame(people), polars.DataFrame(people), pyarrow.Table.from_pylist(people), plain):
        assert np.array_equal(encoding.rows(container), encoding.rows(people), equal_nan=True)


@pytest.mark.parametrize(
    ("person", "field", "code"),
    [
        ({"income": -1}, "features.income", "invalid_value"),
        ({"debt": 2e6}, "features.debt", "invalid_value"),
        ({"income": "much"}, "features.income", "invalid_value"),
        ({"income": True}, "features.income", "invalid_value"),
        ({"income": math.inf}, "features.income", "invalid_value"),
        ({"purpose": ["car"]}, "features.purpose", "invalid_value"),
        ({"incme": 3}, "features", "unknown_name"),
        ([3, 4], "features", "invalid_value"),
    ],
)
def test_invalid_applicants_are_rejected(person: Any, field: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        RowEncoding(COLUMNS).row(person)
    assert (error.value.field, error.value.code) == (field, code)


def test_required_features_must_be_there() -> None:
    encoding = RowEncoding([FeatureColumn("age", required=True)])
    with pytest.raises(InputError) as error:
        encoding.row({})
    assert (error.value.field, error.value.code) == ("features.age", "missing")


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "category"},
        {"type": "category", "values": ("a", "a")},
        {"type": "category", "values": ("a",), "minimum": 0.0},
        {"values": ("a",)},
        {"minimum": 2.0, "maximum": 1.0},
        {"type": "text"},
    ],
)
def test_invalid_columns_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        FeatureColumn("x", **wrong)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode({"name": "x", **wrong}), type=FeatureColumn)


def test_columns_are_declared_from_past_applicants() -> None:
    columns = infer_columns(applicants(100), categories=["debt"])
    assert [column.type for column in columns] == ["number", "category", "category"]
    assert columns[1].values == ("0", "1000", "2000", "3000")
    assert columns[2].values == ("boat", "car", "home", "study")
    assert RowEncoding(columns).unseen({"debt": 5, "purpose": "car"}) == ["debt"]
    for wrong in ([], [{"age": None}], [{"id": str(i)} for i in range(300)]):
        with pytest.raises(InputError):
            infer_columns(wrong)
    with pytest.raises(InputError):
        infer_columns(applicants(3), categories=["colour"])


def test_bytes_that_are_no_state_are_rejected() -> None:
    state = logistic().state()
    frame, numbers = split(state)
    wrong = [
        b"",
        b"something else",
        state[:40],
        state[:-8],
        join(b"other\n" + frame.partition(b"\n")[2], numbers),
        join(frame, cells("own").numbers()),
        join(cells("own").frame, pack(CellNumbers(Array("<f8", (9,), b""), Array.of(np.zeros(4))))),
        join(cells("own").frame, pack(CellNumbers(Array.of(np.ones(4)), Array.of(np.full(4, 2.0))))),
    ]
    for data in wrong:
        with pytest.raises(InputError) as error:
            restore(data)
        assert error.value.field == "state"
    with pytest.raises(InputError):
        CellCounts.from_state(state)
    assert isinstance(LiveLogistic.from_state(state), StoredModel)


def test_invalid_models_and_labels_are_rejected() -> None:
    with pytest.raises(InputError):
        CellCounts(Shared(2), ["A", "A"])
    with pytest.raises(InputError):
        LiveLogistic(COLUMNS[:1], logistic().knowledge)
    for outcome in (2, "yes", None, math.nan):
        with pytest.raises(InputError) as error:
            logistic().observe({}, outcome)  # type: ignore[arg-type]
        assert error.value.field == "outcome"
    with pytest.raises(InputError) as error:
        cells("own").belief("E")
    assert error.value.code == "unknown_name"


def test_the_same_labels_give_the_same_hash_on_every_machine() -> None:
    """The hash below is that of one machine; a processor or a library that rounds differently would change it."""
    design = LogisticDesign(np.array([1.0, 0.5]), np.array([2.0, 0.25]), limit=6.0)
    belief = LogisticBelief(
        design,
        np.array([0.25, 0.75]),
        np.zeros((2, 3)),
        np.array([np.diag([1.0, 0.3, 0.3]), np.diag([2.0, 20.0, 20.0])]),
    )
    model = LiveLogistic([FeatureColumn("a"), FeatureColumn("b")], belief)
    for i in range(200):
        model.observe({"a": (7 * i) % 11 - 3.0, "b": None if i % 5 == 0 else (i % 4) / 8}, i % 3 > 0)
    assert model.state_hash() == "7c1fe32335a2beed5d5231594fe8434887f27c377b38a6c5cb4e4d83a6c576d9"


def test_portable_exponential_is_accurate() -> None:
    points = np.concatenate((np.linspace(-700.0, 700.0, 301), np.random.default_rng(0).normal(size=200))).tolist()
    for x in points:
        assert abs(mpmath.mpf(portable_exp(x)) / mpmath.exp(mpmath.mpf(x)) - 1) < 2.3e-16
    assert portable_exp(-800.0) == 0.0
    assert portable_exp(800.0) == math.inf


def test_many_rows_are_encoded_as_one_by_one() -> None:
    encoding = RowEncoding([*COLUMNS, FeatureColumn("age", required=True, maximum=120)])
    people = [{**one, "age": 20 + i} for i, one in enumerate(applicants(40, seed=3))]
    people += [{"age": 5.5}, {"age": 7, "income": None, "purpose": "boat"}, {"age": 8, "purpose": 3}]
    assert encoding.rows(people).tobytes() == np.array([encoding.row(one) for one in people]).tobytes()
    wrongs: list[dict[str, Any]] = [{}, {"age": math.nan}, {"age": 121}, {"age": 4, "income": -1.0}, {"age": True}]
    for wrong in [*wrongs, {"age": 1, "size": 2}]:
        with pytest.raises(InputError) as alone:
            encoding.row(wrong)
        with pytest.raises(InputError) as together:
            encoding.rows([*people, wrong])
        assert (str(alone.value), alone.value.field) == (str(together.value), together.value.field)

"""Categories that the first rows did not have: nothing is known of them, and they are named and learnt."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from lenience import Discounted, FeaturePolicy
from lenience.models import BayesianLogistic, Bootstrap, Cells, Neighbours

GOAL = Discounted(0.6, 0.99)
REGIONS = np.array(["east", "north", "south"], dtype=object)


def encoder(**options: Any) -> Any:
    return OneHotEncoder(**{"handle_unknown": "ignore"} | options)


def front(categories: Any, columns: Any, rest: str = "passthrough") -> Any:
    return ColumnTransformer([("kind", categories, columns)], remainder=rest)


def rows(count: int = 200, seed: int = 0) -> Any:
    """Age, region and job, in this order."""
    rng = np.random.default_rng(seed)
    found = np.empty((count, 3), dtype=object)
    found[:, 0] = rng.normal(40, 10, count)
    found[:, 1] = rng.choice(REGIONS, count)
    found[:, 2] = rng.choice(["clerk", "cook"], count)
    return found


def outcomes(X: Any, seed: int = 1) -> Any:
    return (np.random.default_rng(seed).random(len(X)) < np.where(X[:, 1] == "east", 0.9, 0.15)).astype(int)


def policy(*steps: Any, model: Any = None) -> Any:
    return FeaturePolicy(make_pipeline(*steps, model or BayesianLogistic()), GOAL, random_state=0)


def with_cell(X: Any, column: int, value: Any) -> Any:
    changed = X.copy()
    changed[:, column] = value
    return changed


def test_of_an_unseen_category_nothing_is_known_until_its_labels_come() -> None:
    """600 labels of ten categories, rates 0.15 and 0.9: the truth at an eleventh is as far as the belief says."""
    away, after = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rates = rng.choice([0.15, 0.9], 11)
        kinds = rng.integers(0, 10, (600, 1))
        fitted = policy(encoder()).fit(kinds, rng.random(600) < rates[kinds[:, 0]])
        new = np.array([[10]])
        n, mean = fitted.beliefs(new)
        away.append((rates[10] - mean[0]) / np.sqrt(mean[0] * (1 - mean[0]) / (n[0] + 1)))
        fitted.observe(np.repeat(new, 20, axis=0), [True] * 20, labels := rng.random(20) < rates[10])
        after.append(abs(fitted.beliefs(new)[1][0] - labels.mean()))
    assert 0.7 < np.sqrt(np.mean(np.square(away))) < 1.5
    assert np.mean(after) < 0.05


def test_others_are_believed_and_decided_as_without_the_added_column() -> None:
    X = rows()
    piped = policy(front(encoder(), [1, 2])).fit(X, outcomes(X))
    coded = ColumnTransformer([("kind", encoder(), [1, 2])], remainder="passthrough").fit(X)
    plain = FeaturePolicy(BayesianLogistic(), GOAL, random_state=0)
    plain.fit(np.asarray(coded.transform(X), dtype=float), outcomes(X))
    later = rows(50, 2)
    same = plain.beliefs(np.asarray(coded.transform(later), dtype=float))
    assert np.allclose(piped.beliefs(later), same, rtol=1e-9)
    assert piped.model_.n_features_in_ == plain.model_.n_features_in_ + 1
    assert piped.decide(later).tolist() == plain.decide(np.asarray(coded.transform(later), dtype=float)).tolist()


@pytest.mark.parametrize(
    "steps",
    [
        (front(encoder(), [1, 2]),),
        (front(encoder(sparse_output=False), slice(1, 3)),),
        (front(encoder(), [False, True, True]),),
        (ColumnTransformer([("age", StandardScaler(), [0])], remainder=encoder()),),
        (front(make_pipeline(SimpleImputer(strategy="most_frequent"), encoder()), [1, 2]),),
        (front(encoder(), [1, 2]), StandardScaler(with_mean=False)),
        (front(encoder(handle_unknown="infrequent_if_exist"), [1, 2]),),
        (front(encoder(min_frequency=10), [1, 2]),),
        (ColumnTransformer([("all", front(encoder(), [0, 1]), [1, 2])], remainder="passthrough"),),
    ],
    ids=["plain", "dense", "mask", "remainder", "imputed", "scaled", "infrequent", "frequent", "nested"],
)
def test_encoders_are_found_wherever_they_are(steps: Any) -> None:
    X = rows()
    fitted = policy(*steps).fit(X, outcomes(X))
    seen = X[:3]
    one, both = with_cell(seen, 1, "west"), with_cell(with_cell(seen, 1, "west"), 2, "pilot")
    assert [fitted._rows(given)[:, -1].tolist() for given in (seen, one, both)] == [[0] * 3, [1] * 3, [2] * 3]
    assert (fitted.beliefs(one)[0] < 4).all()
    assert (fitted.beliefs(seen)[0] > 10).all()
    assert ", with the unseen category x1 = 'west', " in fitted.explain(one)[0].summary
    assert ", with the unseen categories x1 = 'west', x2 = 'pilot', " in fitted.explain(both)[0].summary
    assert "unseen" not in "".join(each.summary for each in fitted.explain(seen))
    together = fitted.propensity(np.vstack((seen, one)))
    assert together.tolist() == [fitted.propensity(row[None])[0] for row in np.vstack((seen, one))]


def test_frequent_and_rare_categories_have_columns_of_their_own() -> None:
    X = rows()
    X[:4, 1] = ["far", "off", "far", "off"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, that categories are unknown
        for unknown in ("infrequent_if_exist", "warn"):
            known = policy(front(encoder(handle_unknown=unknown, min_frequency=5), [1, 2])).fit(X)
            new = with_cell(with_cell(X[:1], 1, "west"), 2, "pilot")
            assert known._rows(new)[0, -1] == 1  # a region is as the rare ones; among jobs none was rare
            assert "unseen category x2 = 'pilot', " in known.explain(new)[0].summary
    rare = policy(front(encoder(max_categories=3), [1, 2])).fit(X)
    assert rare._rows(with_cell(X, 2, "pilot"))[:, -1].tolist() == [1] * 200
    assert rare._rows(with_cell(X, 1, "west"))[:, -1].tolist() == [1] * 200


@pytest.mark.parametrize("options", [{"drop": "first"}, {"handle_unknown": "error"}], ids=str)
def test_rows_stay_as_they_are_where_zeros_say_nothing(options: dict[str, Any]) -> None:
    X = rows()
    fitted = policy(front(encoder(**options), [1, 2])).fit(X)
    assert fitted._rows(X).shape[1] == fitted.transformer_.transform(X).shape[1]
    assert policy(StandardScaler()).fit(np.eye(3)).model_.n_features_in_ == 3


def test_categories_that_are_listed_but_unseen_are_far_as_well() -> None:
    X = rows()
    listed = policy(front(encoder(categories=[[*REGIONS, "west"], ["clerk", "cook"]]), [1, 2])).fit(X, outcomes(X))
    assert (listed.beliefs(with_cell(X[:5], 1, "west"))[0] < 4).all()
    some = policy(front(encoder(categories=[["east", "north"], ["clerk"]]), [1, 2])).fit(X, outcomes(X))
    assert set(some._rows(X)[:, -1]) == {0, 1, 2}  # unseen ones among the first rows: a feature like any other
    assert some.model_._spare == 0


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_name_the_column_as_given(backend: str) -> None:
    frames = pytest.importorskip(backend)
    names = ["age", "region", "job"]

    def framed(X: Any) -> Any:
        return frames.DataFrame({name: X[:, i].tolist() for i, name in enumerate(names)})

    X, new = rows(), with_cell(rows(3, 4), 1, "west")
    columns = ["region", "job"]
    for steps in (
        (front(encoder(), columns),),
        (front(make_pipeline(SimpleImputer(strategy="most_frequent"), encoder()), columns),)
        if backend == "pandas"
        else (front(encoder(), columns, rest="drop"),),
        (front(encoder(sparse_output=False), columns).set_output(transform=backend),),
    ):
        fitted = policy(*steps).fit(framed(X), outcomes(X))
        assert ", with the unseen category region = 'west', " in fitted.explain(framed(new))[2].summary
        taken = fitted.decide(framed(new))
        ids = fitted.latest_
        fitted.observe(framed(new), taken, [1, 0, 1], arrivals=ids)
        assert fitted.labels_ == 200 + taken.sum()
    if backend == "pandas":
        chosen = policy(front(encoder(), make_column_selector(dtype_exclude="number"))).fit(framed(X))
        assert "region = 'west'" in chosen.explain(framed(new))[0].summary
        banded = FunctionTransformer(lambda frame: frame.assign(band=(frame["age"] // 10).astype(str)))
        made = policy(banded, front(encoder(), ["band", "region"], rest="drop")).fit(framed(X))
        strange = "of a feature that the Pipeline makes, region = 'west', "
        assert strange in made.explain(framed(with_cell(new, 0, 990.0)))[0].summary


def test_what_cannot_be_named_is_told_and_what_is_missing_is_told_once() -> None:
    X = rows()
    upper = FunctionTransformer(lambda cells: np.char.upper(cells.astype(str)))
    made = policy(front(make_pipeline(upper, encoder()), [1, 2])).fit(X)
    new = with_cell(X[:1], 1, "west")
    assert "with the unseen category of a feature that the Pipeline makes, " in made.explain(new)[0].summary
    fitted = policy(front(encoder(), [1, 2])).fit(X, outcomes(X))
    hole = with_cell(X[:1], 1, None)
    assert ", without the missing feature x1, " in fitted.explain(hole)[0].summary
    assert "unseen" not in fitted.explain(hole)[0].summary
    assert fitted.beliefs(hole)[0] < 4  # nothing was missing before: nothing is known of it


def test_it_is_kept_cloned_and_referred_to_as_other_rows_are() -> None:
    X = rows()
    given = policy(front(encoder(), [1, 2]))
    fitted = clone(given).fit(X, outcomes(X))
    kept = pickle.loads(pickle.dumps(fitted))
    new = with_cell(rows(30, 5), 1, "west")
    assert kept.use_reference(new).decide(new).tolist() == fitted.use_reference(new).decide(new).tolist()
    assert kept.explain(new) == fitted.explain(new)
    assert (fitted.reference_[:, -1] == 1).all()
    assert clone(fitted).get_params()["model__columntransformer__kind__handle_unknown"] == "ignore"


@pytest.mark.parametrize(
    "model",
    [BayesianLogistic(), Neighbours(), Bootstrap(LogisticRegression(), copies=5, random_state=0), Cells()],
    ids=repr,
)
def test_every_model_knows_little_of_it_and_learns(model: Any) -> None:
    X = rows(400)[:, 1:]
    y = outcomes(np.column_stack((X[:, 0], X)))
    fitted = policy(encoder(), model=model).fit(X, y)
    new = with_cell(X[:1], 0, "west")
    assert fitted.beliefs(new)[0][0] < 4 < 20 < fitted.beliefs(X[:1])[0][0]
    fitted.observe(np.repeat(new, 20, axis=0), [True] * 20, [1] * 20)
    n, mean = fitted.beliefs(new)
    assert n[0] > 5
    assert mean[0] > 0.85
    assert fitted.predict_proba(X[:50]).min() > 0

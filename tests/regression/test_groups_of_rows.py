"""Rows of a group depend on each other: they are held out together, wherever rows are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian
from fenchel.learning.rows import effective_number, held_out_folds, rows_by_content
from fenchel.losses import Pinball
from fenchel.model_selection import ConformalRegressor, PathSearchCV

LEVELS = [0.1, 0.5, 0.9]
MODELS = [QuantileRegressor(LEVELS), ExpectileRegressor(0.5), SVR(), KernelRidge()]


def visits(n_persons=40, each=5, seed=0):
    """What is measured of persons, each of whom has a level that nothing tells."""
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_persons), each)
    base, level = random.normal(size=(2, n_persons))
    time = random.uniform(size=len(person))
    noise = 0.3 * random.normal(size=len(person))
    y = (base + 1.5 * level)[person] + np.sin(3.0 * time) + noise
    return np.column_stack([base[person], time]), y, person


X, Y, PERSON = visits()
NEW_X, NEW_Y, _ = visits(400, 5, 1)


def test_intervals_hold_what_they_say_of_new_groups():
    """Without groups the model knows the level of each person from the other visits."""
    held = []
    for groups in (None, PERSON):
        low, high = QuantileRegressor([0.1, 0.9]).fit(X, Y, groups=groups).predict(NEW_X).T
        held.append(np.mean((low <= NEW_Y) & (high >= NEW_Y)))
    assert held[0] < 0.5
    assert 0.72 < held[1] < 0.92


def test_what_is_learned_is_for_new_groups():
    scores = [KernelRidge().fit(X, Y, groups=g).score(NEW_X, NEW_Y) for g in (None, PERSON)]
    assert scores[1] > scores[0] + 0.2


@pytest.mark.parametrize("n_rows", [1000, 120])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_rows_of_a_group_are_in_one_fold(n_rows, n_folds):
    random = np.random.default_rng(0)
    group = random.integers(0, 30, len(X))
    weight = random.integers(1, 4, len(X)).astype(float)
    rows = rows_by_content(X, Y[:, None], weight, n_rows, n_folds, groups=group)
    assert rows.n_folds == n_folds
    assert len(rows.X) == min(n_rows, len(X))
    seen = [set(rows.groups[rows.fold(k)]) for k in range(n_folds)]
    assert sum(map(len, seen)) == len(set(rows.groups))
    for found, target, number in zip(rows.X, rows.targets, rows.groups, strict=True):
        place = np.flatnonzero((found == X).all(axis=1) & (target == Y))
        assert number in group[place]
    fold, n_different = held_out_folds(X, Y[:, None], n_folds, weight, group)
    assert n_different == len(X)
    assert len(set(zip(fold, group, strict=True))) == len(set(group))


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_neither_order_nor_repetitions_nor_labels_matter(model):
    random = np.random.default_rng(0)
    times = random.integers(0, 3, len(X))
    expected = clone(model).fit(X, Y, sample_weight=times, groups=PERSON).predict(NEW_X)
    rows = random.permutation(np.repeat(np.arange(len(X)), times))
    words = np.array([f"{number:03d}" for number in PERSON])
    again = clone(model).fit(X[rows], Y[rows], groups=pd.Series(words[rows])).predict(NEW_X)
    np.testing.assert_allclose(again, expected, atol=2e-3 * Y.std())


def test_offsets_are_those_of_folds_by_groups():
    given = {"kernel": Gaussian(0.7), "alpha": 1e-3, "tol": 1e-9}
    model = QuantileRegressor(LEVELS, refit_offsets="held_out", **given)
    found = clone(model).fit(X, Y, groups=PERSON)
    plain = clone(model).set_params(refit_offsets=None)
    fold, _ = held_out_folds(X, Y[:, None], 5, None, PERSON)
    residual = np.empty((len(X), 3))
    for k in range(5):
        out = fold == k
        residual[out] = Y[out, None] - plain.fit(X[~out], Y[~out]).predict(X[out])
    moved = Pinball(LEVELS).offset_for_new_rows(residual, np.ones(len(X)), 40.0)
    np.testing.assert_allclose(found.offset_ - found.certified_offset_, moved, atol=1e-4)
    assert found.certificate_.relative_gap <= 1e-9


def test_the_number_of_rows_is_that_of_groups():
    group = np.repeat([0, 1, 2], [1, 2, 3])
    weight = np.array([3.0, 1.0, 2.0, 1.0, 1.0, 1.0])
    number = effective_number(np.ones((6, 1)), np.ones((6, 1)), weight, group)
    assert number == pytest.approx(3.0)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_few_groups(model, n_groups):
    fitted = clone(model).fit(X, Y, groups=PERSON % n_groups)
    assert fitted.status_.converged
    assert np.isfinite(fitted.predict(NEW_X)).all()


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (PERSON[:-1], "groups must have one entry for each of the 200 rows of X, got 199"),
        (np.zeros(200), "groups must have two different labels or more, got 1"),
        ([None] * 200, "groups must have no missing labels, got some"),
        (np.ones((200, 2)), r"groups must be an array of shape \(n_samples,\), got one of shape"),
        ("person", r"groups must be an array of shape \(n_samples,\), got 'person'"),
    ],
)
def test_groups_that_are_refused(groups, said):
    with pytest.raises(ValueError, match=said):
        KernelRidge().fit(X, Y, groups=groups)


def test_labels_of_several_types_are_refused():
    with pytest.raises(TypeError, match="groups must have labels of one type"):
        KernelRidge().fit(X, Y, groups=np.array([1, "a"] * 100, dtype=object))


def test_only_groups_of_rows_with_weight_count():
    with pytest.raises(ValueError, match="two different labels or more, got 1"):
        KernelRidge().fit(X, Y, sample_weight=PERSON == 3, groups=PERSON)


def test_groups_are_for_rows_in_memory(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="groups must be None for rows that are not in memory"):
        KernelRidge().fit(tmp_path / "x.npy", Y, groups=PERSON)


def test_a_refused_fit_leaves_the_last_one():
    model = KernelRidge(alpha=1e-2, learn=False).fit(X, Y)
    before = model.predict(NEW_X)
    with pytest.raises(ValueError, match="two different labels"):
        model.fit(X, -Y, groups=np.zeros(200))
    np.testing.assert_array_equal(model.predict(NEW_X), before)


def test_conformal_wrappers_hand_groups_on():
    model = ConformalRegressor(KernelRidge(), method="cv+", coverage=0.8, cv=GroupKFold(2))
    model.fit(X, Y, groups=PERSON)
    rows = [np.arange(len(X)), *(train for train, _ in GroupKFold(2).split(X, Y, PERSON))]
    for fitted, some in zip(model.models_, rows, strict=True):
        expected = KernelRidge().fit(X[some], Y[some], groups=PERSON[some])
        np.testing.assert_array_equal(fitted.predict(NEW_X), expected.predict(NEW_X))


@pytest.mark.filterwarnings("ignore:offsets are those of the fit")
@pytest.mark.parametrize("in_file", [False, True])
def test_the_last_fit_of_a_search_has_groups(in_file, tmp_path):
    """Of rows in memory: those in files know of none."""
    grid, folds = {"alpha": [1e-3, 1e-2]}, GroupKFold(3)
    model = QuantileRegressor(LEVELS, kernel=Gaussian(0.7))
    np.save(tmp_path / "x.npy", X)
    rows = tmp_path / "x.npy" if in_file else X
    search = PathSearchCV(model, grid, cv=folds).fit(rows, Y, groups=PERSON)
    groups = None if in_file else PERSON
    expected = model.chosen(**search.best_params_).fit(rows, Y, groups=groups)
    np.testing.assert_array_equal(search.predict(NEW_X), expected.predict(NEW_X))
    offset = search.best_estimator_.offset_ - search.best_estimator_.certified_offset_
    assert np.any(offset != 0.0) != in_file


def test_pipelines_route_groups():
    with sklearn.config_context(enable_metadata_routing=True):
        last = KernelRidge().set_fit_request(groups=True)
        found = make_pipeline(StandardScaler(), last).fit(X, Y, groups=PERSON)
    scaled = StandardScaler().fit(X)
    expected = KernelRidge().fit(scaled.transform(X), Y, groups=PERSON)
    np.testing.assert_array_equal(found.predict(NEW_X), expected.predict(scaled.transform(NEW_X)))

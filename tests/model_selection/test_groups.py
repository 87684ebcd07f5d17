"""Folds that hold out whole groups: equal to a list of the splits, routed, and refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import QuantileRegressor as LinearQuantiles
from sklearn.model_selection import (
    BaseCrossValidator,
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    PredefinedSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conformal_cases import NEW, SMOOTH, WEIGHT, X, Y
from fenchel import KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian
from fenchel.model_selection import (
    ConformalQuantileRegressor,
    ConformalRegressor,
    GroupLassoCV,
    KernelRidgeCV,
    LassoCV,
    PathSearchCV,
    RidgeCV,
)

GROUPS = np.random.default_rng(1).permutation(np.arange(60) // 5)
GRID = {"alpha": [1e-1, 1e-3]}
BY_GROUPS = GroupKFold(3)
SPLITS = list(BY_GROUPS.split(X, Y, GROUPS))
QUANTILES = QuantileRegressor(kernel=Gaussian(1.5), alpha=1e-2)
SEARCHES = [
    PathSearchCV(SMOOTH, GRID),
    RidgeCV(GRID["alpha"]),
    LassoCV(GRID["alpha"]),
    GroupLassoCV([0, 1], GRID["alpha"]),
    KernelRidgeCV(GRID["alpha"], kernel=Gaussian(1.5)),
]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("model", SEARCHES, ids=lambda model: type(model).__name__)
def test_a_search_is_that_of_the_splits(model, weight):
    found = model.set_params(cv=BY_GROUPS).fit(X, Y, sample_weight=weight, groups=GROUPS)
    results = found.cv_results_
    expected = model.set_params(cv=SPLITS).fit(X, Y, sample_weight=weight)
    assert found.n_splits_ == 3
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_array_equal(results[name], expected.cv_results_[name])
    assert found.best_params_ == expected.best_params_


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "model",
    [
        ConformalRegressor(SMOOTH),
        ConformalRegressor(SMOOTH, method="cv+", coverage=0.8),
        ConformalQuantileRegressor(QUANTILES),
    ],
    ids=["split", "cv+", "quantiles"],
)
def test_calibration_is_that_of_the_splits(model, weight):
    found = model.set_params(cv=BY_GROUPS).fit(X, Y, weight, groups=GROUPS)
    scores, rows = found.conformity_scores_, found.calibration_indices_
    expected = model.set_params(cv=SPLITS).fit(X, Y, weight)
    np.testing.assert_array_equal(scores, expected.conformity_scores_)
    np.testing.assert_array_equal(rows, expected.calibration_indices_)


@pytest.mark.parametrize(
    "inner", [PathSearchCV(SMOOTH, GRID, cv=BY_GROUPS), GridSearchCV(SMOOTH, GRID, cv=BY_GROUPS)]
)
def test_a_search_in_a_wrapper_has_the_groups_of_its_rows(inner):
    """Of the rows that it is fitted to, in each of the fits."""
    model = ConformalRegressor(inner, method="cv+", coverage=0.8, cv=BY_GROUPS)
    model.fit(X, Y, groups=GROUPS)
    parts = [np.arange(60), *(train for train, _ in SPLITS)]
    for fitted, rows in zip(model.models_, parts, strict=True):
        expected = clone(inner).fit(X[rows], Y[rows], groups=GROUPS[rows])
        for k in range(3):
            scores = (each.cv_results_[f"split{k}_test_score"] for each in (fitted, expected))
            np.testing.assert_array_equal(*scores)
    split = ConformalRegressor(inner, cv=BY_GROUPS, coverage=0.8).fit(X, Y, groups=GROUPS)
    np.testing.assert_array_equal(split.predict(NEW), model.models_[1].predict(NEW))


def test_weights_of_groups_are_those_of_the_paper():
    """Lee, Foygel Barber, Willett (2023): each group has the same share, and so has infinity."""
    groups = np.repeat(np.arange(20), [1, 5] * 10)
    weight = 1.0 / np.array([1.0, 5.0])[groups % 2]
    cv = GroupShuffleSplit(1, test_size=0.6, random_state=0)
    model = ConformalRegressor(SMOOTH, cv=cv, coverage=0.8).fit(X, Y, weight, groups=groups)
    held_out = groups[model.calibration_indices_]
    assert len(np.unique(held_out)) == 12
    assert set(held_out).isdisjoint(np.delete(groups, model.calibration_indices_))
    order = np.argsort(model.conformity_scores_)
    shares = (1.0 / np.bincount(held_out)[held_out] / 13.0)[order]
    margin = model.conformity_scores_[order][np.argmax(np.cumsum(shares) >= 0.8 - 1e-12)]
    interval = model.predict_interval(NEW, sample_weight=np.ones(len(NEW)))
    np.testing.assert_allclose(np.ptp(interval, axis=1), 2.0 * margin)
    assert (
        margin
        != ConformalRegressor(SMOOTH, cv=cv, coverage=0.8).fit(X, Y, groups=groups).quantile_
    )


@pytest.mark.parametrize(
    "groups",
    [
        GROUPS.tolist(),
        GROUPS.astype(float),
        [f"group {g}" for g in GROUPS],
        pd.Series(GROUPS, index=np.arange(60)[::-1]),
        pd.Series(GROUPS).astype("category"),
    ],
    ids=["list", "floats", "words", "series", "categories"],
)
def test_labels_of_any_kind(groups):
    cv = LeaveOneGroupOut()
    assert PathSearchCV(SMOOTH, GRID, cv=cv, refit=False).fit(X, Y, groups=groups).n_splits_ == 12
    model = ConformalRegressor(SMOOTH, cv=cv, coverage=0.8).fit(X, Y, groups=groups)
    np.testing.assert_array_equal(model.calibration_indices_, np.flatnonzero(GROUPS == 0))


class Halves(BaseCrossValidator):
    """Of a user, who has not said that it takes groups."""

    def _iter_test_masks(self, X=None, y=None, groups=None):
        yield groups < 6

    def get_n_splits(self, X=None, y=None, groups=None):
        return 1


def test_splitters_of_users_take_groups():
    model = ConformalRegressor(SMOOTH, cv=Halves()).fit(X, Y, groups=GROUPS)
    np.testing.assert_array_equal(model.calibration_indices_, np.flatnonzero(GROUPS < 6))


NEEDS = r"cv must be a splitter that takes groups, such as GroupKFold\(\), for groups to be given"


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (PathSearchCV(SMOOTH, GRID), "5"),
        (PathSearchCV(SMOOTH, GRID, cv=KFold(3)), r"KFold\(n_splits=3, .*\)"),
        (PathSearchCV(SMOOTH, GRID, cv=PredefinedSplit(GROUPS % 3)), r"PredefinedSplit\(.*"),
        (PathSearchCV(SMOOTH, GRID, cv=SPLITS), "3 splits"),
        (KernelRidgeCV(), "None"),
        (LassoCV(), "5"),
        (ConformalRegressor(SMOOTH), "None"),
        (ConformalRegressor(SMOOTH, cv=0.2), "0.2"),
        (ConformalRegressor(SMOOTH, cv=3, method="cv+"), "3"),
        (ConformalQuantileRegressor(QUANTILES, cv=SPLITS), "3 splits"),
    ],
)
def test_groups_without_a_splitter_of_groups_are_refused(model, given):
    with pytest.raises(ValueError, match=f"^{NEEDS}, got {given}$"):
        model.fit(X, Y, groups=GROUPS)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            PathSearchCV(SMOOTH, GRID, scoring="loo", cv=BY_GROUPS),
            "groups must be None for scoring='loo', which leaves out one row at a time: another "
            "scoring makes use of cv, and of groups",
        ),
        (
            ConformalRegressor(SMOOTH, method="jackknife+", cv=BY_GROUPS),
            r"groups must be None for method='jackknife\+', which leaves out one row at a time: "
            r"'cv\+' can do groups",
        ),
        (
            ConformalRegressor(KernelRidge(1e-2).fit(X, Y), cv="prefit"),
            "groups must be None for cv='prefit', with which no rows are held out",
        ),
        (
            ConformalRegressor(KernelRidge(), method="cv+", cv=BY_GROUPS, learn_share=0.5),
            "groups must be None for learn_share, which puts rows of each group into all fits",
        ),
        (
            PathSearchCV(SMOOTH, GRID, cv=LeavePGroupsOut(12)),
            r"cv must be able to split the rows of X, got LeavePGroupsOut\(.*\): The groups",
        ),
    ],
)
def test_groups_of_no_use_are_refused(model, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}") as caught:
        model.fit(X, Y, groups=GROUPS)
    assert "\n" not in str(caught.value)


class Lazy:
    def compute(self):
        return GROUPS


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (GROUPS[:59], "groups must have one entry for each of the 60 rows of X, got 59"),
        (GROUPS[:, None], r"groups must be an array of shape \(n_samples,\), got one of .*60, 1"),
        ("plot", r"groups must be an array of shape \(n_samples,\), got 'plot'$"),
        ([[0, 1], [2]], r"groups must be an array of shape \(n_samples,\), got lists$"),
        (np.where(GROUPS == 3, np.nan, GROUPS), "groups must have no missing labels"),
        ([None, *GROUPS[1:]], "groups must have no missing labels"),
        (pd.array([pd.NA, *GROUPS[1:]], dtype="Int64"), "groups must have no missing labels"),
        (np.ma.masked_equal(GROUPS, 3), "groups must have no missing labels"),
        (Lazy(), "groups must be an array in memory, got Lazy: compute it before"),
    ],
)
def test_labels_that_are_none_get_one_sentence(groups, sentence):
    for model in (PathSearchCV(SMOOTH, GRID), ConformalRegressor(SMOOTH)):
        with pytest.raises((ValueError, TypeError), match=f"^{sentence}"):
            model.set_params(cv=BY_GROUPS).fit(X, Y, groups=groups)


@pytest.mark.parametrize(
    "model", [PathSearchCV(SMOOTH, GRID), ConformalRegressor(SMOOTH)], ids=["search", "conformal"]
)
def test_routing(model):
    """Groups go to whom they were asked by, and are cut to the folds of an outer validation."""
    model.set_params(cv=BY_GROUPS)
    expected = model.fit(X, Y, groups=GROUPS).predict(NEW)
    outer = GroupKFold(4)
    each = []
    for train, test in outer.split(X, Y, GROUPS):
        part = model.fit(X[train], Y[train], groups=GROUPS[train])
        each.append(part.score(X[test], Y[test]))
    scaler = StandardScaler(with_mean=False, with_std=False)
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="groups"):
            make_pipeline(scaler, model).fit(X, Y, groups=GROUPS)
        asked = make_pipeline(scaler, model.set_fit_request(groups=True))
        np.testing.assert_allclose(asked.fit(X, Y, groups=GROUPS).predict(NEW), expected)
        result = cross_validate(asked, X, Y, params={"groups": GROUPS}, cv=outer)
    np.testing.assert_allclose(result["test_score"], each)


def test_rows_in_files():
    pa = pytest.importorskip("pyarrow", reason="tables on disk need Arrow")
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y, "w": WEIGHT})
    search = PathSearchCV(SMOOTH, GRID, cv=BY_GROUPS, refit=False)
    expected = search.fit(X, Y, sample_weight=WEIGHT, groups=GROUPS).cv_results_
    found = search.fit(table, "y", sample_weight="w", groups=GROUPS).cv_results_
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-3)
    with pytest.raises(ValueError, match=r"^groups must be an array of shape .*, got 'w'$"):
        search.fit(table, "y", groups="w")
    with pytest.raises(ValueError, match=r"^groups must have one entry for each of the 60 "):
        search.fit(table, "y", groups=GROUPS[:3])


def test_searches_of_single_levels_are_given_the_groups():
    search = GridSearchCV(LinearQuantiles(), {"alpha": [0.0, 1e-2]}, cv=BY_GROUPS)
    model = ConformalQuantileRegressor(search, cv=BY_GROUPS, method="cv+", coverage=0.5)
    found = model.fit(X, Y, groups=GROUPS).estimator_.estimators_
    for level, each in zip((0.25, 0.5, 0.75), found, strict=True):
        own = clone(search).set_params(estimator__quantile=level).fit(X, Y, groups=GROUPS)
        np.testing.assert_array_equal(
            each.cv_results_["mean_test_score"], own.cv_results_["mean_test_score"]
        )


@pytest.mark.parametrize("label", [0, 3])
def test_a_group_without_weight_is_no_fold(label):
    """Whichever label it has."""
    groups = np.repeat([0, 1, 2, 3], 15)
    weight = np.where(groups == label, 0.0, 1.0)
    model = ConformalRegressor(SMOOTH, cv=LeaveOneGroupOut(), method="cv+", coverage=0.6)
    whole = clone(model).fit(X, Y, sample_weight=weight, groups=groups)
    kept = weight > 0.0
    part = model.fit(X[kept], Y[kept], sample_weight=weight[kept], groups=groups[kept])
    assert whole.quantile_ == pytest.approx(part.quantile_, rel=1e-6)
    new = np.ones(len(NEW))
    expected = part.predict_interval(NEW, sample_weight=new)
    found = whole.predict_interval(NEW, sample_weight=new)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)

"""Conformal wrappers that can't do what they are asked for: parameters, weights, too few rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold
from sklearn.neighbors import KNeighborsRegressor

from conformal_cases import NEW, NEW_WEIGHT, SMOOTH, WEIGHT, X, Y
from fenchel import SVR, QuantileRegressor
from fenchel.kernels import Laplacian
from fenchel.model_selection import (
    ConformalQuantileRegressor,
    ConformalRegressor,
    PathSearchCV,
)


@pytest.mark.parametrize(("method", "n"), [("split", 32), ("cv+", 8), ("jackknife+", 8)])
def test_too_few_rows_are_said_out_loud(method, n):
    model = ConformalRegressor(SMOOTH, method=method)
    wide = "every interval is infinitely wide: .* at least 9 .* = 8"
    with pytest.warns(UserWarning, match=wide):
        model.fit(X[:n], Y[:n])
    assert model.n_calibration_ == 8
    assert model.quantile_ == np.inf
    with pytest.warns(UserWarning, match="25 of 25 intervals are infinitely wide"):
        interval = model.predict_interval(NEW)
    assert np.isneginf(interval[:, 0]).all()
    assert np.isposinf(interval[:, 1]).all()
    assert np.isfinite(model.predict_interval(NEW, coverage=0.8)).all()


def test_heavy_new_rows_have_infinite_intervals():
    model = ConformalRegressor(SMOOTH, coverage=0.9).fit(X, Y, np.ones(60))
    with pytest.warns(UserWarning, match="1 of 2 intervals .* of equal weight"):
        interval = model.predict_interval(NEW[:2], sample_weight=[1.0, 100.0])
    assert np.isinf(interval).all(axis=1).tolist() == [False, True]


def test_refits_that_do_not_converge_warn_once():
    model = ConformalRegressor(
        SVR(kernel=Laplacian(1.0), alpha=1e-3, solver="newton", max_iter=1), method="jackknife+"
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X[:12], Y[:12])
    said = [str(w.message) for w in caught if "leave-one-out fits" in str(w.message)]
    assert len(said) == 1
    assert "12 of 12 leave-one-out fits have not converged" in said[0]


TWICE = [(np.arange(30), np.arange(30, 60)), (np.arange(20), np.arange(30, 60))]
OVERLAP = [(np.arange(40), np.arange(30, 60))]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"method": "full"}, "method must be one of .*, got 'full'"),
        ({"side": "both"}, "side must be one of .*, got 'both'"),
        ({"coverage": 1.0}, r"coverage must be a number in \(0, 1\), got 1.0"),
        ({"coverage": "high"}, r"coverage must be a number in \(0, 1\), got 'high'"),
        (
            {"cv": "prefit", "method": "cv+"},
            "cv='prefit' needs method='split'.* got method='cv\\+'",
        ),
        ({"cv": "folds"}, "cv must be an integer >= 2, a splitter, .* got 'folds'"),
        ({"cv": 1}, r"cv must be .* a number in \(0, 1\), 'prefit' or None, got 1"),
        ({"cv": 1.5}, r"cv must be .* a number in \(0, 1\), 'prefit' or None, got 1.5"),
        ({"cv": 0.2, "method": "cv+"}, r"cv as a share .* got cv=0.2, method='cv\+'"),
        (
            {"cv": TWICE, "method": "cv+"},
            "cv must hold each row out once for method='cv.', got 2 splits",
        ),
        ({"cv": OVERLAP}, "cv must not fit to the rows that it holds out, got 1 split"),
    ],
)
def test_bad_parameters_get_one_sentence(params, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        ConformalRegressor(SMOOTH, **params).fit(X, Y)
    assert "\n" not in str(caught.value)


def test_bad_weights_and_estimators_get_one_sentence():
    with pytest.raises(TypeError, match="estimator must take sample_weight in fit, or be fitted"):
        ConformalRegressor(KNeighborsRegressor()).fit(X, Y, WEIGHT)
    with pytest.raises(TypeError, match=r"estimator must predict two quantiles.* got KernelRidge"):
        ConformalQuantileRegressor(SMOOTH).fit(X, Y)
    with pytest.raises(ValueError, match=r"level 0.05 among its levels, got \[0.5\]"):
        ConformalQuantileRegressor(QuantileRegressor().fit(X, Y), cv="prefit").fit(X, Y)
    weighted = ConformalRegressor(SMOOTH).fit(X, Y, np.ones(60))
    with pytest.raises(ValueError, match="sample_weight of new rows must be given"):
        weighted.predict_interval(NEW)
    with pytest.raises(ValueError, match="sample_weight of new rows must be None"):
        ConformalRegressor(SMOOTH).fit(X, Y).predict_interval(NEW, sample_weight=NEW_WEIGHT)
    with pytest.raises(ValueError, match="coverage must be a number in"):
        weighted.predict_interval(NEW, 0.0)
    silent = np.ones(60)
    silent[45:] = 0.0
    fold = [(np.arange(45), np.arange(45, 60))]
    with pytest.raises(ValueError, match="positive for a calibration row, got zeros only"):
        ConformalRegressor(SMOOTH, cv=fold).fit(X, Y, silent)
    lonely = np.eye(60)[0]
    with pytest.raises(ValueError, match=r"at least 2 rows of positive weight, .*= 1$"):
        ConformalRegressor(SMOOTH).fit(X, Y, lonely)
    with pytest.raises(ValueError, match="'jackknife\\+' needs two rows of positive weight"):
        ConformalRegressor(SMOOTH, method="jackknife+").fit(X, Y, lonely)


def test_remedies_for_infinite_intervals_are_ones():
    split = ConformalRegressor(SMOOTH)
    said = (
        r"got n_calibration_ = 8; take more rows, method='cv\+' \(all rows calibrate\), a larger "
        r"share cv or a coverage of at most 0\.888$"
    )
    with pytest.warns(UserWarning, match=said):
        split.fit(X[:32], Y[:32])
    for params in ({"method": "cv+"}, {"cv": 0.3}, {"coverage": 0.888}):
        assert np.isfinite(clone(split).set_params(**params).fit(X[:32], Y[:32]).quantile_)
    with pytest.warns(UserWarning, match=r"= 6; take more rows or a coverage of at most 0\.857$"):
        ConformalRegressor(clone(SMOOTH).fit(X, Y), cv="prefit").fit(X[:6], Y[:6])


def test_weighted_folds_that_are_too_small_are_said_out_loud():
    model = ConformalRegressor(SMOOTH, method="cv+", cv=10)
    said = (
        r"^intervals of new rows of mean weight are infinitely wide: a coverage of 0\.9 needs "
        r"calibration rows in each fold of 9 times the weight of the new row, at least 9 of equal "
        r"weight, got 6 times in the smallest of 10 folds; take more rows, fewer folds cv or a "
        r"coverage of at most 0\.857$"
    )
    with pytest.warns(UserWarning, match=said):
        model.fit(X, Y, np.ones(60))
    assert model.quantile_ == np.inf
    with pytest.warns(UserWarning, match="2 of 2 intervals are .* got 3 times in the smallest of"):
        model.predict_interval(NEW[:2], sample_weight=[2.0, 1.0])
    assert np.isfinite(model.predict_interval(NEW[:1], 0.857, sample_weight=[1.0])).all()
    assert np.isfinite(model.set_params(cv=6).fit(X, Y, np.ones(60)).quantile_)


ROWS = "cv must be pairs of numbers of the 60 rows of X, from 0 to 59, got {} in 1 split"
PAIRS = "cv must be pairs of numbers of rows to fit and to hold out, got {} in 1 split"
EMPTY = "cv must have rows to fit and rows to hold out in each split, got an empty side in 1 split"


@pytest.mark.parametrize(
    ("cv", "sentence"),
    [
        ([([0, 1], [60])], ROWS.format(60)),
        ([([-61], [3])], ROWS.format(-61)),
        ([(np.arange(59) < 9, [3])], ROWS.format("a mask of 59")),
        ([([0, 1], [])], EMPTY),
        ([([], [0])], EMPTY),
        ([([0.5], [0])], PAIRS.format(r"\[0.5\]")),
        ([(None, None)], PAIRS.format("None")),
        (["ab"], PAIRS.format("'a'")),
        ([(1, 2)], PAIRS.format("1")),
        (iter([]), "cv must have a split, got <.*> with none: an iterator is at its end after"),
        (
            GroupKFold(2),
            r"groups must be given to fit for a cv that splits by groups, GroupKFold\(.*\)$",
        ),
        (KFold(61), r"cv must be able to split the rows of X, got KFold\(.*\): Cannot have"),
    ],
)
def test_folds_that_are_none_get_one_sentence(cv, sentence):
    for model in (ConformalRegressor(SMOOTH), PathSearchCV(SMOOTH, {"alpha": [1.0]})):
        with pytest.raises((ValueError, TypeError), match=f"^{sentence}"):
            model.set_params(cv=cv).fit(X, Y)


def test_rows_that_calibrate_are_not_held_out_twice():
    said = "cv must not hold a row out twice in a split, got 1 split$"
    with pytest.raises(ValueError, match=said):
        ConformalRegressor(SMOOTH, cv=[([0, 1], [3, 3])]).fit(X, Y)


def test_masks_and_numbers_from_the_end_are_rows():
    first = np.arange(60) < 30
    numbers = ConformalRegressor(SMOOTH, cv=[(np.arange(30), np.arange(30, 60))]).fit(X, Y)
    for cv in ([(first, ~first)], [(np.arange(30), np.arange(-30, 0))]):
        model = ConformalRegressor(SMOOTH, cv=cv).fit(X, Y)
        np.testing.assert_array_equal(model.calibration_indices_, np.arange(30, 60))
        assert model.quantile_ == numbers.quantile_

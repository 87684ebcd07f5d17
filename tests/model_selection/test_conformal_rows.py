"""How many rows conformal wrappers need, and what they say where there are fewer."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from fenchel import KernelRidge
from fenchel.kernels import Gaussian
from fenchel.model_selection import (
    ConformalQuantileRegressor,
    ConformalRegressor,
    _conformal_models,
)
from fenchel.model_selection._folds import EachOut

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, size=(20, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.2 * RNG.normal(size=20)


@pytest.mark.parametrize("of", [ConformalRegressor, ConformalQuantileRegressor])
@pytest.mark.parametrize(
    ("params", "least"),
    [
        ({}, 2),
        ({"cv": 0.9}, 10),
        ({"cv": 1 / 3}, 2),
        ({"cv": 0.95}, 20),
        ({"cv": 3}, 3),
        ({"method": "cv+"}, 2),
        ({"method": "cv+", "cv": 5}, 5),
        ({"method": "jackknife+"}, 2),
    ],
)
def test_too_few_rows_get_one_sentence(of, params, least):
    name = of.__name__
    model = of(coverage=0.4, **params)
    with_cv = f" with cv={params['cv']!r}" if "cv" in params else ""
    for n in (1, least - 1):
        sentence = (
            f"{name}{with_cv} needs at least {least} rows, some of which calibrate what is fitted "
            f"to the others, got n_samples = {n}"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            model.fit(X[:n], Y[:n])
    assert model.fit(X[:least], Y[:least]).n_calibration_ >= 1


def test_models_without_a_row_predict_a_few_rows_at_a_time(monkeypatch):
    model = ConformalRegressor(LinearRegression(), method="jackknife+", coverage=0.8).fit(X, Y)
    whole = model.predict_interval(X)
    monkeypatch.setattr(_conformal_models, "_BLOCK_VALUES", 20 * 7)
    seen = []
    predict = LinearRegression.predict
    monkeypatch.setattr(
        LinearRegression, "predict", lambda self, Z: seen.append(len(Z)) or predict(self, Z)
    )
    np.testing.assert_array_equal(model.predict_interval(X), whole)
    assert seen == [7] * 40 + [6] * 20


def test_folds_of_one_row_are_all_rows_but_one():
    rows = np.array([1, 4, 9])
    folds = [(train.tolist(), held_out.tolist()) for train, held_out in EachOut(rows)]
    assert folds == [([4, 9], [1]), ([1, 9], [4]), ([1, 4], [9])]


@pytest.mark.parametrize("learn", [True, False])
def test_the_model_of_all_rows_is_as_after_a_fit(learn):
    estimator = KernelRidge() if learn else KernelRidge(1e-3, learn=False)
    fitted = ConformalRegressor(estimator, method="jackknife+").fit(X, Y).estimator_
    assert (fitted.learned_ is None) == (not learn)
    assert fitted.with_learned().kernel is not None
    np.testing.assert_allclose(fitted.feature_importances_.sum(), 1.0)


def test_names_of_columns_are_those_of_the_last_fit():
    named = pd.DataFrame(X, columns=["a", "b"])
    model = ConformalRegressor(LinearRegression(), coverage=0.7).fit(named, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_a_share_may_be_any_real_number():
    model = ConformalRegressor(LinearRegression(), cv=np.float32(0.25), coverage=0.7).fit(X, Y)
    assert model.n_calibration_ == 5


def test_one_row_may_calibrate_what_is_fitted():
    fitted = KernelRidge(1e-3, kernel=Gaussian(1.5)).fit(X, Y)
    assert ConformalRegressor(fitted, cv="prefit", coverage=0.4).fit(X[:1], Y[:1]).quantile_ < 9


@pytest.mark.parametrize("cv", [None, 0.5])
@pytest.mark.parametrize("method", ["split", "cv+"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_weight_zero_change_nothing(method, cv, seed):
    weight = np.zeros(20)
    weight[[1, 4, 9, 16]] = 1.0
    kept = weight > 0.0
    cv = 2 if method == "cv+" else cv
    model = ConformalRegressor(
        KernelRidge(1e-2, kernel=Gaussian(1.0)),
        method=method,
        coverage=0.3,
        cv=cv,
        random_state=seed,
    )
    found = [
        model.fit(X[rows], Y[rows], weight[rows]).predict_interval(X, sample_weight=np.ones(20))
        for rows in (slice(None), kept)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    assert np.isfinite(found[0]).all()
    assert model.n_calibration_ == (4 if method == "cv+" else np.ceil(4 * (cv or 0.25)))

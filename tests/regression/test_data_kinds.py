"""Frames, integers, few rows, constants: all kinds of data."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian
from regression_cases import (
    BRIEFLY,
    LEVELS,
    TOL,
    X,
    Y,
    by_default,
    everyone,
    uncertainty,
    with_levels,
)

# Kinds of data


@pytest.mark.slow
@everyone
def test_float32_and_integers(estimator):
    fixed = {"alpha": 1e-3, "learn": False}  # which rows are held out is not a smooth function
    single = estimator(**fixed).fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.predict(X.astype(np.float32)).dtype == np.float64
    double = estimator(**fixed).fit(X, Y)
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=5e-3)
    whole_X, whole_y = np.round(10 * X).astype(int), np.round(10 * Y).astype(int)
    model = estimator(**fixed).fit(whole_X, whole_y)
    expected = estimator(**fixed).fit(whole_X.astype(float), whole_y.astype(float))
    np.testing.assert_array_equal(model.predict(whole_X), expected.predict(whole_X))
    lists = estimator().fit(X.tolist(), Y.tolist()).predict(X.tolist())
    np.testing.assert_array_equal(lists, by_default(estimator).predict(X))
    not_contiguous = estimator().fit(np.asfortranarray(X), Y).predict(X[::-1])[::-1]
    np.testing.assert_allclose(not_contiguous, lists, rtol=1e-9)


@everyone
def test_data_frames(estimator):
    frame = pd.DataFrame(X, columns=["income", "age"])
    model = estimator().fit(frame, pd.Series(Y))
    np.testing.assert_array_equal(model.feature_names_in_, ["income", "age"])
    np.testing.assert_array_equal(model.predict(frame), by_default(estimator).predict(X))
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["age", "income"]])
    with pytest.raises(ValueError, match="height"):
        model.predict(frame.rename(columns={"age": "height"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.slow
@everyone
def test_duplicated_rows(estimator):
    rows = np.tile(np.arange(20), 3)
    model = estimator().fit(X[rows], Y[rows] + np.repeat([-0.1, 0.0, 0.1], 20))
    assert np.isfinite(model.predict(X)).all()
    assert model.certificate_.relative_gap <= model.tol
    prediction = model.predict(X[rows])
    np.testing.assert_allclose(prediction[:20], prediction[20:40], rtol=1e-9)
    # all rows the same: nothing to learn but a constant
    same = estimator().fit(np.ones((9, 2)), np.arange(9.0))
    prediction = same.predict(np.ones((2, 2)))
    assert prediction[0] == prediction[1]
    assert 0.0 <= prediction[0] <= 8.0


@everyone
def test_one_row(estimator):
    model = estimator().fit([[1.0, 2.0]], [3.0])
    np.testing.assert_allclose(model.predict([[1.0, 2.0], [50.0, -3.0]]), 3.0, rtol=1e-12)
    two = estimator(alpha=1e-6).fit([[0.0], [1.0]], [0.0, 1.0])
    assert np.all(np.diff(two.predict([[0.0], [1.0]])) > 0.5)


@everyone
@pytest.mark.parametrize("value", [0.0, 0.1, -1e8, 1e-200])
def test_constant_targets(estimator, value):
    model = estimator().fit(X, np.full(80, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-9, atol=1e-15)
    assert model.certificate_.relative_gap == 0.0


@with_levels
def test_constant_targets_for_several_levels(estimator):
    model = estimator(LEVELS).fit(X, np.full(80, 0.1))
    np.testing.assert_allclose(model.predict(X), 0.1, rtol=1e-9)
    assert model.crossing_loss(X) <= 1e-12


@pytest.mark.slow
@everyone
def test_constant_columns(estimator):
    wide = np.column_stack([X, np.full(80, 5.0), np.zeros(80), np.full(80, 0.1)])
    model = estimator().fit(wide, Y)
    np.testing.assert_allclose(model.predict(wide), by_default(estimator).predict(X), atol=1e-4)
    nothing = estimator().fit(np.full((80, 2), 0.1), Y)
    assert np.ptp(nothing.predict(np.full((3, 2), 0.1))) == 0.0


@everyone
def test_huge_alpha_gives_the_best_constant(estimator):
    model = estimator(alpha=1e12)
    if "refit_offsets" in model.get_params():  # else it is that of other rows
        model.set_params(refit_offsets=None)
    model.fit(X, Y)
    middle = np.mean(Y) if estimator in (ExpectileRegressor, KernelRidge) else np.median(Y)
    slack = 0.1 if estimator is SVR else 1e-5  # the tube of the SVR leaves the constant open
    assert np.ptp(model.predict(X)) <= 1e-6
    assert model.predict(X)[0] == pytest.approx(middle, abs=2 * slack)


@everyone
def test_tiny_alpha_is_honest(estimator):
    """Interpolation, or a warning with a usable fit: never nonsense in silence."""
    model = estimator(alpha=1e-14, learn=BRIEFLY)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    prediction = model.predict(X)
    assert np.isfinite(prediction).all()
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert warned == (model.certificate_.relative_gap > model.tol)
    assert np.abs(prediction - Y).mean() < 0.5 * np.std(Y)


@pytest.mark.parametrize(
    "model",
    [QuantileRegressor(LEVELS), ExpectileRegressor(LEVELS), SVR()],
    ids=lambda model: type(model).__name__,
)
def test_a_tube_wider_than_the_data_has_no_support(model):
    model = clone(model).set_params(epsilon=1e3).fit(X, Y)
    assert model.support_.shape == (0,)
    assert model.dual_coef_.shape == (0, len(model.offset_))
    assert model.certificate_.primal == 0.0
    prediction = model.predict(X).reshape(80, -1)
    assert np.ptp(prediction, axis=0).max() == 0.0
    assert np.linalg.norm(Y[:, None] - prediction, axis=1).max() <= 1e3


@everyone
def test_weights_of_very_different_sizes(estimator):
    """The light half of the rows counts for nothing, and does no harm."""
    weight = np.where(np.arange(80) % 2, 1e12, 1e-12)
    heavy = np.flatnonzero(np.arange(80) % 2)
    kernel = Gaussian(0.7)
    model = estimator(kernel=kernel, alpha=1e-3, tol=TOL).fit(X, Y, weight)
    expected = estimator(kernel=kernel, alpha=1e-3, tol=TOL).fit(X[heavy], Y[heavy])
    bound = 20 * uncertainty(expected)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=bound)


@everyone
def test_far_rows_get_the_offset(estimator):
    model = by_default(estimator)
    np.testing.assert_allclose(model.predict(1e100 * X), model.offset_[0], rtol=1e-12)


@pytest.mark.slow
def test_many_levels():
    levels = np.arange(1, 20) / 20
    model = QuantileRegressor(levels, alpha=1e-2).fit(X, Y)
    assert model.certificate_.relative_gap <= model.tol
    assert model.predict(X).shape == (80, 19)
    assert model.crossing_loss(X) < 0.05 * np.std(Y)

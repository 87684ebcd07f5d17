"""What the estimators promise: their statistics, their attributes, and scikit-learn's manners."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import kernel_ridge, svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics import d2_pinball_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor, features
from fenchel.kernels import DistanceQuantile, Gaussian, Laplacian, Linear, Matern, Polynomial
from fenchel.losses import Absolute, Huber, L2Norm, Loss, Pinball, Squared
from fenchel.solvers import Newton

LEVELS = [0.1, 0.5, 0.9]
TOL = 1e-8
ALL = [QuantileRegressor, ExpectileRegressor, SVR, KernelRidge]
everyone = pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.__name__)
with_levels = pytest.mark.parametrize(
    "estimator", [QuantileRegressor, ExpectileRegressor], ids=lambda e: e.__name__
)
with_targets = pytest.mark.parametrize("estimator", [SVR, KernelRidge], ids=lambda e: e.__name__)


def data(n=80, d=2, seed=0, n_targets=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    noise = rng.normal(size=n if n_targets is None else (n, n_targets))
    signal = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, -1]
    spread = 0.2 + 0.3 * (X[:, 0] + 1.0)
    if n_targets is None:
        return X, signal + spread * noise
    return X, signal[:, None] * np.arange(1, n_targets + 1) + spread[:, None] * noise


X, Y = data()
_, Y2 = data(n_targets=2)
WEIGHT = np.random.default_rng(1).uniform(0.2, 2.0, 80)


def uncertainty(model):
    """How far predictions on rows with k(x, x) <= 1 may be from the optimum's, offset aside.

    By strong convexity alpha ½‖V - V*‖² <= gap, and |h(x)| <= ‖V‖ sqrt(k(x, x) B_jj).
    """
    gap = max(model.certificate_.gap, model.tol * 1e-3) / model.alpha
    return np.sqrt(2.0 * gap) * np.sqrt(np.diag(model.coupling_).max())


# Quantiles and expectiles


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_quantile_property(alpha, gamma, weighted):
    """By optimality in the offset: share below <= level <= share at or below."""
    weight = WEIGHT if weighted else np.ones(80)
    model = QuantileRegressor(LEVELS, alpha=alpha, level_gamma=gamma, tol=TOL)
    model.fit(X, Y, sample_weight=weight if weighted else None)
    residual = Y[:, None] - model.predict(X)
    on_curve = 1e-3 * np.std(Y)  # free rows are on the curve only as exactly as the fit is
    share = weight / weight.sum()
    below = share @ (residual < -on_curve)
    at_most = share @ (residual <= on_curve)
    assert np.all(below <= np.add(LEVELS, 1e-9))
    assert np.all(at_most >= np.subtract(LEVELS, 1e-9))
    # and the two shares are not trivially far apart: few rows are on a curve
    assert np.all(at_most - below <= 0.5)


@pytest.mark.parametrize("weighted", [False, True])
def test_expectile_property(weighted):
    """Asymmetrically weighted residuals of each level sum to zero."""
    weight = WEIGHT if weighted else np.ones(80)
    model = ExpectileRegressor(LEVELS, tol=1e-10).fit(X, Y, sample_weight=weight)
    residual = Y[:, None] - model.predict(X)
    pull = weight[:, None] * np.where(residual < 0, np.subtract(1.0, LEVELS), LEVELS) * residual
    assert np.all(np.abs(pull.sum(axis=0)) <= 1e-4 * np.abs(pull).sum(axis=0))


def test_expectile_of_one_half_is_ridge_of_twice_the_strength():
    expectile = ExpectileRegressor(0.5, alpha=1e-3, tol=1e-12).fit(X, Y)
    ridge = KernelRidge(alpha=2e-3).fit(X, Y)
    np.testing.assert_allclose(expectile.predict(X), ridge.predict(X), atol=1e-5)


@with_levels
def test_gamma_zero_gives_parallel_curves(estimator):
    model = estimator(LEVELS, level_gamma=0.0).fit(X, Y)
    prediction = model.predict(data(seed=3)[0])
    difference = prediction - prediction[:, :1]
    assert np.ptp(difference, axis=0).max() <= 1e-10
    assert np.ptp(prediction[:, 0]) > 0.1
    assert np.all(np.diff(difference[0]) > 0.1)
    assert model.crossing_loss(X) == 0.0


@with_levels
def test_gamma_infinite_gives_independent_fits(estimator):
    together = estimator(LEVELS, level_gamma=np.inf, alpha=1e-2, tol=TOL).fit(X, Y)
    primal = 0.0
    for j, level in enumerate(LEVELS):
        alone = estimator(level, alpha=1e-2, tol=TOL).fit(X, Y)
        primal += alone.certificate_.primal
        function = together.predict(X)[:, j] - together.offset_[j]
        expected = alone.predict(X) - alone.offset_
        bound = uncertainty(alone) + uncertainty(together)
        np.testing.assert_allclose(function, expected, atol=bound)
        assert together.offset_[j] == pytest.approx(alone.offset_[0], abs=10 * bound)
    # objectives add up
    gap = together.certificate_.gap + 3 * TOL * primal
    assert together.certificate_.primal == pytest.approx(primal, abs=2 * gap)


@with_levels
@pytest.mark.parametrize("gamma", [0.0, 3.0, np.inf])
def test_unsorted_levels_permute_columns(estimator, gamma):
    order = [2, 0, 1]
    in_order = estimator(LEVELS, level_gamma=gamma, tol=TOL).fit(X, Y)
    shuffled = estimator([LEVELS[j] for j in order], level_gamma=gamma, tol=TOL).fit(X, Y)
    np.testing.assert_array_equal(shuffled.levels_, np.array(LEVELS)[order])
    bound = 20 * uncertainty(in_order)
    expected = in_order.predict(X)[:, order]
    np.testing.assert_allclose(shuffled.predict(X), expected, atol=bound)
    np.testing.assert_allclose(shuffled.offset_, in_order.offset_[order], atol=bound)
    assert bound < 0.1 * np.abs(np.diff(expected, axis=1)).min()  # the test can fail
    assert shuffled.crossing_loss(X) == pytest.approx(in_order.crossing_loss(X), abs=bound)


@with_levels
def test_levels_of_any_kind(estimator):
    reference = estimator([0.25, 0.75]).fit(X, Y).predict(X)
    for levels in ((0.25, 0.75), np.array([0.25, 0.75]), np.array([0.25, 0.75], np.float32)):
        np.testing.assert_array_equal(estimator(levels).fit(X, Y).predict(X), reference)
    assert estimator(0.3).fit(X, Y).predict(X).shape == (80,)
    assert estimator([0.3]).fit(X, Y).predict(X).shape == (80,)
    assert estimator([0.3, 0.4]).fit(X, Y).predict(X[:1]).shape == (1, 2)


def test_predict_interval():
    model = QuantileRegressor([0.9, 0.1, 0.5, 0.25, 0.75]).fit(X, Y)
    prediction = model.predict(X)
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), prediction[:, [1, 0]])
    np.testing.assert_array_equal(model.predict_interval(X, 0.5), prediction[:, [3, 4]])
    with pytest.raises(ValueError, match=r"coverage=0.9 needs the levels 0.05 and 0.95"):
        model.predict_interval(X, 0.9)


def test_score_is_the_mean_of_d2_pinball_scores():
    model = QuantileRegressor([0.9, 0.1]).fit(X, Y)
    new_X, new_y = data(seed=4)
    prediction = model.predict(new_X)
    for weight in (None, WEIGHT):
        expected = np.mean(
            [
                d2_pinball_score(new_y, prediction[:, j], alpha=level, sample_weight=weight)
                for j, level in enumerate([0.9, 0.1])
            ]
        )
        assert model.score(new_X, new_y, weight) == pytest.approx(expected, abs=1e-12)
    assert model.score(new_X, new_y[:, None]) == pytest.approx(model.score(new_X, new_y))
    assert QuantileRegressor(alpha=1e9).fit(X, Y).score(X, Y) == pytest.approx(0.0, abs=1e-6)


def test_score_of_expectiles_at_one_half_is_r2():
    model = ExpectileRegressor(0.5).fit(X, Y)
    residual = Y - model.predict(X)
    expected = 1.0 - np.sum(residual**2) / np.sum((Y - Y.mean()) ** 2)
    assert model.score(X, Y) == pytest.approx(expected, abs=1e-12)


@with_levels
def test_crossing_loss_by_definition(estimator):
    model = estimator([0.5, 0.1, 0.11, 0.9], level_gamma=np.inf, alpha=1e-6).fit(X, Y)
    new_X = 1.5 * data(seed=5)[0]
    prediction = model.predict(new_X)
    ordered = prediction[:, [1, 2, 0, 3]]
    expected = 0.0
    for j in range(3):
        for row in ordered:
            expected += max(0.0, row[j] - row[j + 1]) / len(new_X)
    assert expected > 0.0
    assert model.crossing_loss(new_X) == pytest.approx(expected, rel=1e-12)
    assert estimator(0.5).fit(X, Y).crossing_loss(X) == 0.0


# Attributes


MODELS = {
    "quantiles": QuantileRegressor(LEVELS, alpha=1e-3),
    "quantiles, one": QuantileRegressor(0.3, alpha=1e-3),
    "quantiles, insensitive": QuantileRegressor(LEVELS, alpha=1e-3, epsilon=0.3),
    "quantiles, through zero": QuantileRegressor(LEVELS, alpha=1e-3, fit_intercept=False),
    "quantiles, rough": QuantileRegressor(LEVELS, alpha=1e-3, kernel="laplacian"),
    "expectiles": ExpectileRegressor(LEVELS, alpha=1e-3),
    "expectiles, insensitive": ExpectileRegressor(LEVELS, alpha=1e-3, epsilon=0.3),
    "svr": SVR(alpha=1e-3, epsilon=0.2),
    "svr, squared": SVR("squared_epsilon_insensitive", alpha=1e-3, epsilon=0.2),
    "svr, huber": SVR("huber", alpha=1e-3, kappa=0.2),
    "svr, rough": SVR(alpha=1e-3, epsilon=0.2, kernel="laplacian"),
    "ridge": KernelRidge(alpha=1e-3),
    "ridge, through zero": KernelRidge(alpha=1e-3, fit_intercept=False),
    "ridge, rough": KernelRidge(alpha=1e-3, kernel="matern12"),
}
some_model = pytest.mark.parametrize("name", MODELS)


@some_model
@pytest.mark.parametrize("weighted", [False, True])
def test_dual_coefficients_predict_the_training_rows(name, weighted):
    model = clone(MODELS[name]).fit(X, Y, WEIGHT if weighted else None)
    assert model.dual_coef_.shape == (len(model.support_), len(model.offset_))
    gram = model.kernel_(X, X[model.support_])
    expected = gram @ model.dual_coef_ @ model.coupling_ + model.offset_
    prediction = model.predict(X).reshape(expected.shape)
    assert np.abs(prediction - expected).max() <= 1e-6 * np.abs(expected).max()
    assert np.any(model.dual_coef_ != 0.0, axis=1).all()
    assert np.all(np.diff(model.support_) > 0)


@some_model
def test_certificate_is_that_of_the_reported_model(name):
    model = clone(MODELS[name]).fit(X, Y, WEIGHT)
    certificate = model.certificate_
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
    assert -1e-12 <= certificate.relative_gap <= model.tol
    assert certificate.feasibility <= 1e-12
    assert 0.0 <= model.kernel_error_ <= 1e-9
    assert model.n_iter_ >= 1
    assert model.history_[-1].relative_gap <= model.tol
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    if not model.fit_intercept:
        np.testing.assert_array_equal(model.offset_, 0.0)
    # half the squared norm plus the weighted losses, from predictions and coefficients
    gram = model.kernel_(X[model.support_])
    norm = np.sum(model.dual_coef_ * (gram @ model.dual_coef_ @ model.coupling_))
    n_outputs = len(model.offset_)
    residual = (Y - np.atleast_2d(model.predict(X).T)).T
    loss = model.loss_.value(np.ascontiguousarray(residual.reshape(80, n_outputs)))
    primal = 0.5 * model.alpha * norm + WEIGHT @ loss / WEIGHT.sum()
    assert certificate.primal == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_box_of_quantile_coefficients(epsilon, weighted):
    weight = WEIGHT if weighted else np.ones(80)
    model = QuantileRegressor(LEVELS, alpha=1e-3, epsilon=epsilon)
    model.fit(X, Y, weight if weighted else None)
    C = weight[model.support_] / (1e-3 * weight.sum())
    slack = 1e-9 * C.max()
    assert np.all(model.dual_coef_ >= C[:, None] * np.subtract(LEVELS, 1.0) - slack)
    assert np.all(model.dual_coef_ <= C[:, None] * np.array(LEVELS) + slack)
    # the constraint of the intercept
    assert np.abs(model.dual_coef_.sum(axis=0)).max() <= 1e-9 * np.abs(model.dual_coef_).sum()
    if epsilon == 0.0:
        at_bound = np.isclose(model.dual_coef_, C[:, None] * np.subtract(LEVELS, 1.0))
        at_bound |= np.isclose(model.dual_coef_, C[:, None] * np.array(LEVELS))
        assert at_bound.mean() > 0.5


@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor(LEVELS, epsilon=1.0),
        ExpectileRegressor(LEVELS, epsilon=1.0),
        SVR(epsilon=0.5),
        SVR("squared_epsilon_insensitive", epsilon=0.5),
    ],
    ids=repr,
)
def test_rows_inside_the_tube_have_no_coefficients(model):
    model = clone(model).fit(X, Y)
    residual = Y[:, None] - model.predict(X).reshape(80, -1)
    length = np.linalg.norm(residual, axis=1)
    inside = np.flatnonzero(length < 0.98 * model.epsilon)
    assert len(inside) > 5
    assert not np.intersect1d(inside, model.support_).size
    outside = np.flatnonzero(length > 1.02 * model.epsilon)
    assert len(outside) > 5
    assert np.isin(outside, model.support_).all()


# Equivariance


@pytest.mark.parametrize("gamma", [0.0, 1.0, np.inf])
@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, -1e3), (1e6, -1e6)])
def test_quantiles_in_other_units(scale, shift, gamma):
    base = QuantileRegressor(LEVELS, level_gamma=gamma, alpha=1e-2, tol=TOL).fit(X, Y)
    model = QuantileRegressor(LEVELS, level_gamma=gamma, alpha=1e-2 / scale, tol=TOL)
    model.fit(X, scale * Y + shift)
    bound = 20 * uncertainty(base) + 1e-12 * abs(shift) / scale
    np.testing.assert_allclose((model.predict(X) - shift) / scale, base.predict(X), atol=bound)
    assert model.certificate_.relative_gap <= TOL


def test_quantiles_of_minus_y():
    base = QuantileRegressor([0.1, 0.6], alpha=1e-2, tol=TOL).fit(X, Y)
    mirrored = QuantileRegressor([0.9, 0.4], alpha=1e-2, tol=TOL).fit(X, -Y)
    bound = 20 * uncertainty(base)
    np.testing.assert_allclose(-mirrored.predict(X), base.predict(X), atol=bound)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, -1e3), (1e6, -1e6)])
def test_squared_losses_in_other_units(scale, shift):
    """Squared losses grow like the penalty: the same strength."""
    targets = scale * Y + shift
    tol = TOL
    for model, scaled in [
        (KernelRidge(alpha=1e-2), KernelRidge(alpha=1e-2)),
        (
            ExpectileRegressor(LEVELS, alpha=1e-2, tol=tol),
            ExpectileRegressor(LEVELS, alpha=1e-2, tol=tol),
        ),
        (
            SVR("squared_epsilon_insensitive", epsilon=0.2, alpha=1e-2, tol=tol),
            SVR("squared_epsilon_insensitive", epsilon=0.2 * scale, alpha=1e-2, tol=tol),
        ),
        (
            SVR("huber", kappa=0.2, alpha=1e-2, tol=tol),
            SVR("huber", kappa=0.2 * scale, alpha=1e-2, tol=tol),
        ),
        (
            SVR(epsilon=0.2, alpha=1e-2, tol=tol),
            SVR(epsilon=0.2 * scale, alpha=1e-2 / scale, tol=tol),
        ),
    ]:
        base = model.fit(X, Y).predict(X)
        found = (scaled.fit(X, targets).predict(X) - shift) / scale
        bound = 20 * uncertainty(model) + 1e-11 * abs(shift) / scale
        np.testing.assert_allclose(found, base, atol=bound)


@everyone
def test_units_of_the_features_do_not_matter_by_default(estimator):
    base = estimator().fit(X, Y).predict(X)
    units = np.array([1e-6, 1e5])
    found = estimator().fit(units * X + 3.0 * units, Y).predict(units * X + 3.0 * units)
    np.testing.assert_allclose(found, base, atol=2e-3 * np.std(Y))
    assert np.std(base) > 0.3 * np.std(Y)  # a sensible fit


# Weights


@everyone
def test_weights_are_repetition(estimator):
    count = np.random.default_rng(2).integers(1, 4, 80)
    model = estimator(tol=TOL).fit(X, Y, sample_weight=count)
    rows = np.repeat(np.arange(80), count)
    repeated = estimator(tol=TOL).fit(X[rows], Y[rows])
    bound = 20 * uncertainty(repeated)
    np.testing.assert_allclose(model.predict(X), repeated.predict(X), atol=bound)


@everyone
def test_zero_weight_is_removal(estimator):
    weight = WEIGHT.copy()
    weight[::4] = 0.0
    kept = np.flatnonzero(weight)
    targets = Y.copy()
    targets[::4] = 1e3
    model = estimator(tol=TOL).fit(X, targets, sample_weight=weight)
    removed = estimator(tol=TOL).fit(X[kept], Y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(model.predict(X), removed.predict(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.support_, kept[removed.support_])
    assert np.all(weight[model.support_] > 0.0)


@everyone
def test_scale_of_weights_does_not_matter(estimator):
    model = estimator(tol=TOL).fit(X, Y, sample_weight=WEIGHT)
    scaled = estimator(tol=TOL).fit(X, Y, sample_weight=1e4 * WEIGHT)
    bound = 20 * uncertainty(model)
    np.testing.assert_allclose(scaled.predict(X), model.predict(X), atol=bound)
    plain = estimator(tol=TOL).fit(X, Y)
    ones = estimator(tol=TOL).fit(X, Y, sample_weight=np.full(80, 7.0))
    np.testing.assert_allclose(ones.predict(X), plain.predict(X), atol=bound)
    assert np.abs(plain.predict(X) - model.predict(X)).max() > 1e-3


# Kinds of data


@everyone
def test_float32_and_integers(estimator):
    single = estimator().fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.predict(X.astype(np.float32)).dtype == np.float64
    np.testing.assert_allclose(single.predict(X), estimator().fit(X, Y).predict(X), atol=5e-3)
    whole_X, whole_y = np.round(10 * X).astype(int), np.round(10 * Y).astype(int)
    model = estimator().fit(whole_X, whole_y)
    expected = estimator().fit(whole_X.astype(float), whole_y.astype(float))
    np.testing.assert_array_equal(model.predict(whole_X), expected.predict(whole_X))
    lists = estimator().fit(X.tolist(), Y.tolist()).predict(X.tolist())
    np.testing.assert_array_equal(lists, estimator().fit(X, Y).predict(X))
    not_contiguous = estimator().fit(np.asfortranarray(X), Y).predict(X[::-1])[::-1]
    np.testing.assert_allclose(not_contiguous, lists, rtol=1e-9)


@everyone
def test_data_frames(estimator):
    frame = pd.DataFrame(X, columns=["income", "age"])
    model = estimator().fit(frame, pd.Series(Y))
    np.testing.assert_array_equal(model.feature_names_in_, ["income", "age"])
    np.testing.assert_array_equal(model.predict(frame), estimator().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["age", "income"]])
    with pytest.raises(ValueError, match="height"):
        model.predict(frame.rename(columns={"age": "height"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


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


@everyone
def test_constant_columns(estimator):
    wide = np.column_stack([X, np.full(80, 5.0), np.zeros(80), np.full(80, 0.1)])
    model = estimator().fit(wide, Y)
    np.testing.assert_allclose(model.predict(wide), estimator().fit(X, Y).predict(X), atol=1e-4)
    nothing = estimator().fit(np.full((80, 2), 0.1), Y)
    assert np.ptp(nothing.predict(np.full((3, 2), 0.1))) == 0.0


@everyone
def test_huge_alpha_gives_the_best_constant(estimator):
    model = estimator(alpha=1e12).fit(X, Y)
    middle = np.mean(Y) if estimator in (ExpectileRegressor, KernelRidge) else np.median(Y)
    slack = 0.1 if estimator is SVR else 1e-5  # the tube of the SVR leaves the constant open
    assert np.ptp(model.predict(X)) <= 1e-6
    assert model.predict(X)[0] == pytest.approx(middle, abs=2 * slack)


@everyone
def test_tiny_alpha_is_honest(estimator):
    """Interpolation, or a warning with a usable fit: never nonsense in silence."""
    model = estimator(alpha=1e-14)
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
    model = estimator(kernel=kernel, tol=TOL).fit(X, Y, weight)
    expected = estimator(kernel=kernel, tol=TOL).fit(X[heavy], Y[heavy])
    bound = 20 * uncertainty(expected)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=bound)


@everyone
def test_far_rows_get_the_offset(estimator):
    model = estimator().fit(X, Y)
    np.testing.assert_allclose(model.predict(1e100 * X), model.offset_[0], rtol=1e-12)


def test_many_levels():
    levels = np.arange(1, 20) / 20
    model = QuantileRegressor(levels, alpha=1e-2).fit(X, Y)
    assert model.certificate_.relative_gap <= model.tol
    assert model.predict(X).shape == (80, 19)
    assert model.crossing_loss(X) < 0.05 * np.std(Y)


# Ridge and support vectors against scikit-learn


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [Y, Y2], ids=["one output", "two outputs"])
def test_ridge_against_scikit_learn(targets, weighted):
    weight = WEIGHT if weighted else None
    total = WEIGHT.sum() if weighted else 80
    # length_scale ½: gamma of scikit-learn's rbf is 1 / (2 length_scale²)
    model = KernelRidge(alpha=1e-3, kernel=Gaussian(0.5), fit_intercept=False)
    model.fit(X, targets, weight)
    theirs = kernel_ridge.KernelRidge(alpha=1e-3 * total, kernel="rbf", gamma=2.0)
    theirs.fit(X, targets, weight)
    new_X = data(seed=6)[0]
    assert model.predict(new_X).shape == theirs.predict(new_X).shape
    np.testing.assert_allclose(model.predict(new_X), theirs.predict(new_X), atol=1e-6)
    if not weighted:
        coefficients = theirs.dual_coef_.reshape(80, -1)
        scale = np.abs(coefficients).max()
        np.testing.assert_allclose(model.dual_coef_, coefficients, atol=1e-5 * scale)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_solves_its_equation(weighted, fit_intercept):
    """(K + alpha N diag(1/s)) dual_coef = y - offset."""
    weight = WEIGHT if weighted else np.ones(80)
    model = KernelRidge(alpha=1e-3, kernel=Laplacian(0.5), fit_intercept=fit_intercept)
    model.fit(X, Y2, weight if weighted else None)
    system = model.kernel_(X) + 1e-3 * weight.sum() * np.diag(1.0 / weight)
    np.testing.assert_array_equal(model.support_, np.arange(80))
    np.testing.assert_allclose(system @ model.dual_coef_, Y2 - model.offset_, atol=1e-9)
    if fit_intercept:
        np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-9)
    assert model.certificate_.relative_gap <= 1e-10


def svr_objective(prediction, norm, epsilon, C):
    return 0.5 * norm + C * np.maximum(np.abs(Y - prediction) - epsilon, 0.0).sum()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_svr_against_scikit_learn(alpha, epsilon):
    C = 1.0 / (alpha * 80)
    theirs = svm.SVR(kernel="rbf", gamma=2.0, C=C, epsilon=epsilon, tol=1e-6).fit(X, Y)
    model = SVR(alpha=alpha, epsilon=epsilon, kernel=Gaussian(0.5), tol=TOL).fit(X, Y)
    objectives = []
    for fit, coefficients in ((theirs, theirs.dual_coef_.T), (model, model.dual_coef_)):
        gram = Gaussian(0.5)(X[fit.support_])
        norm = float((coefficients.T @ gram @ coefficients)[0, 0])
        objectives.append(svr_objective(fit.predict(X), norm, epsilon, C))
    assert objectives[1] <= objectives[0] * (1.0 + TOL) + 1e-12
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-4)
    assert model.certificate_.primal == pytest.approx(alpha * objectives[1], rel=1e-7)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-2)


@pytest.mark.parametrize(
    ("model", "definition"),
    [
        (SVR(epsilon=0.2), lambda r: np.maximum(r - 0.2, 0.0)),
        (
            SVR("squared_epsilon_insensitive", epsilon=0.2),
            lambda r: 0.5 * np.maximum(r - 0.2, 0.0) ** 2,
        ),
        (SVR("huber", kappa=0.2), lambda r: np.where(r < 0.2, 0.5 * r**2, 0.2 * r - 0.02)),
    ],
    ids=["epsilon_insensitive", "squared", "huber"],
)
@pytest.mark.parametrize("targets", [Y, Y2], ids=["one output", "two outputs"])
def test_svr_losses_by_definition(model, definition, targets):
    """The certified objective is the one in the docstring: lengths of residual vectors."""
    model = clone(model).set_params(alpha=1e-2).fit(X, targets)
    prediction = model.predict(X)
    assert prediction.shape == targets.shape
    length = np.linalg.norm((targets - prediction).reshape(80, -1), axis=1)
    gram = model.kernel_(X[model.support_])
    norm = np.sum(model.dual_coef_ * (gram @ model.dual_coef_))
    objective = 0.5e-2 * norm + definition(length).mean()
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-6)


@with_targets
def test_several_outputs(estimator):
    model = estimator().fit(X, Y2)
    assert model.predict(X).shape == (80, 2)
    assert model.offset_.shape == (2,)
    assert model.score(X, Y2) > 0.5
    column = estimator().fit(X, Y[:, None])
    assert column.predict(X).shape == (80, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], estimator().fit(X, Y).predict(X))


def test_ridge_of_several_outputs_is_one_for_each():
    model = KernelRidge().fit(X, Y2)
    for j in range(2):
        alone = KernelRidge().fit(X, Y2[:, j])
        np.testing.assert_allclose(model.predict(X)[:, j], alone.predict(X), rtol=1e-9)


def test_svr_of_several_outputs_does_not_depend_on_their_axes():
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    model = SVR(epsilon=0.3, tol=TOL).fit(X, Y2)
    rotated = SVR(epsilon=0.3, tol=TOL).fit(X, Y2 @ rotation)
    bound = 20 * uncertainty(model)
    np.testing.assert_allclose(rotated.predict(X), model.predict(X) @ rotation, atol=bound)


# Losses of one's own


class Quartic(Loss):
    """A quarter of the fourth power of one residual, conjugate ¾ |β|^(4/3)."""

    n_outputs = 1
    statistic = "minimizer of the mean fourth power"

    def value(self, residual):
        return 0.25 * residual[:, 0] ** 4

    def conjugate(self, dual):
        return 0.75 * np.abs(dual[:, 0]) ** (4.0 / 3.0)

    def _root(self, point, step):
        """u >= 0 with u³ + step u = |point|: the prox is u³."""
        size = np.abs(point)
        root = np.minimum(np.cbrt(size), size / step)
        for _ in range(60):
            root = root - (root**3 + step * root - size) / (3.0 * root**2 + step)
        return root

    def conjugate_prox(self, point, step):
        return np.sign(point) * self._root(point, step) ** 3

    def conjugate_prox_jacobian(self, point, step):
        square = 3.0 * self._root(point, step) ** 2
        return square / (square + step)


def test_loss_of_ones_own():
    model = SVR(loss=Quartic(), alpha=1e-2, kernel=Gaussian(0.5), tol=TOL).fit(X, Y)
    assert model.certificate_.relative_gap <= TOL
    # stationarity, from the definition: coefficients are c times the cubed residuals
    residual = Y - model.predict(X)
    coefficients = np.zeros(80)
    coefficients[model.support_] = model.dual_coef_[:, 0]
    cubes = residual**3 / (1e-2 * 80)
    np.testing.assert_allclose(coefficients, cubes, atol=1e-3 * np.abs(cubes).max())
    assert abs(cubes.sum()) <= 1e-3 * np.abs(cubes).sum()
    objective = 0.5e-2 * coefficients @ model.kernel_(X) @ coefficients
    objective += 0.25 * np.mean(residual**4)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_loss_of_ones_own_made_insensitive(epsilon):
    model = SVR(loss=Quartic().insensitive(epsilon), alpha=1e-2, kernel=Gaussian(0.5)).fit(X, Y)
    assert model.certificate_.relative_gap <= model.tol
    length = np.abs(Y - model.predict(X))
    inside = np.flatnonzero(length < 0.9 * epsilon)
    assert len(inside) > 0 or epsilon == 0.0
    assert not np.intersect1d(inside, model.support_).size


def test_losses_of_the_library():
    quantiles = QuantileRegressor(0.3, alpha=1e-2, tol=TOL).fit(X, Y)
    model = SVR(loss=Pinball(0.3), alpha=1e-2, tol=TOL).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), quantiles.predict(X))
    same = SVR(loss=Absolute().insensitive(0.2), epsilon=77.0).fit(X, Y)
    np.testing.assert_array_equal(same.predict(X), SVR(epsilon=0.2).fit(X, Y).predict(X))
    huber = SVR(loss=Huber(0.2)).fit(X, Y)
    np.testing.assert_array_equal(huber.predict(X), SVR("huber", kappa=0.2).fit(X, Y).predict(X))
    ridge = SVR(loss=Squared()).fit(X, Y2)
    np.testing.assert_allclose(ridge.predict(X), KernelRidge().fit(X, Y2).predict(X), rtol=1e-9)
    assert SVR(loss=L2Norm()).fit(X, Y2).predict(X).shape == (80, 2)


# Kernels and features


def minimum(A, B):
    return np.minimum(A[:, :1] + 2.0, B[:, :1].T + 2.0)


KERNELS = {
    "none": None,
    "gaussian": "gaussian",
    "rbf": "rbf",
    "laplacian": "laplacian",
    "matern12": "matern12",
    "matern32": "matern32",
    "matern52": "matern52",
    "polynomial": "polynomial",
    "linear": "linear",
    "median": Gaussian("median"),
    "quantile": Gaussian(DistanceQuantile(0.7)),
    "one width each": Gaussian([0.5, 2.0]),
    "theirs": sk.RBF(0.5),
    "theirs, sum": sk.RBF(0.5) + sk.ConstantKernel(2.0) * sk.Matern(0.5, nu=1.5),
    "ours, composite": 2.0 * Gaussian("median") * Linear() + Matern(1.0) ** 2,
    "mixed": Gaussian("scale") + sk.DotProduct(),
    "polynomial, object": Polynomial(2),
    "callable": minimum,
}


@everyone
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(estimator, name):
    model = estimator(kernel=KERNELS[name]).fit(X, Y)
    new_X = data(seed=7)[0]
    gram = model.kernel_(new_X, X[model.support_])
    expected = gram @ model.dual_coef_ @ model.coupling_ + model.offset_
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.predict(new_X), expected[:, 0], atol=1e-4 * scale)
    assert model.certificate_.relative_gap <= model.tol
    assert model.score(X, Y) > 0.15
    assert "'scale'" not in repr(model.kernel_)
    assert "'median'" not in repr(model.kernel_)


def test_names_are_the_kernels():
    for name, kernel in [
        ("gaussian", Gaussian()),
        ("laplacian", Laplacian()),
        ("matern52", Matern(nu=2.5)),
        ("linear", Linear()),
    ]:
        first = KernelRidge(kernel=name).fit(X, Y).predict(X)
        np.testing.assert_array_equal(first, KernelRidge(kernel=kernel).fit(X, Y).predict(X))
    theirs = KernelRidge(kernel=sk.RBF(0.5)).fit(X, Y).predict(X)
    np.testing.assert_allclose(KernelRidge(kernel=Gaussian(0.5)).fit(X, Y).predict(X), theirs)


@everyone
def test_precomputed(estimator):
    kernel = Gaussian(0.7)
    gram = kernel(X)
    model = estimator(kernel="precomputed").fit(gram, Y)
    new_X = data(n=15, seed=8)[0]
    expected = estimator(kernel=kernel).fit(X, Y).predict(new_X)
    bound = 2e-3 * np.std(Y)
    np.testing.assert_allclose(model.predict(kernel(new_X, X)), expected, atol=bound)
    weight = WEIGHT.copy()
    weight[::3] = 0.0
    model = estimator(kernel="precomputed").fit(gram, Y, weight)
    expected = estimator(kernel=kernel).fit(X, Y, weight).predict(new_X)
    np.testing.assert_allclose(model.predict(kernel(new_X, X)), expected, atol=bound)


@everyone
def test_precomputed_in_cross_validation(estimator):
    kernel, folds = Gaussian(0.7), KFold(4)
    given = cross_val_score(estimator(kernel="precomputed"), kernel(X), Y, cv=folds)
    computed = cross_val_score(estimator(kernel=kernel), X, Y, cv=folds)
    np.testing.assert_allclose(given, computed, atol=2e-3)
    assert given.mean() > 0.2


FEATURES = {
    "auto": {},
    "cholesky": {"features": "cholesky"},
    "cholesky, rank": {"features": "cholesky", "rank": 40},
    "nystroem": {"features": "nystroem"},
    "nystroem, rank": {"features": "nystroem", "rank": 60},
    "fourier": {"features": "fourier", "rank": 2000},
    "object": {"features": features.PivotedCholesky(tol=1e-8)},
    "object, landmarks": {"features": features.Nystroem(landmarks=X[::2])},
}


@everyone
@pytest.mark.filterwarnings("ignore:the feature map of rank")
@pytest.mark.parametrize("name", FEATURES)
def test_features(estimator, name):
    model = estimator(**FEATURES[name]).fit(X, Y)
    expected = estimator().fit(X, Y).predict(X)
    slack = 0.15 if name == "fourier" else 0.02
    assert np.std(model.predict(X) - expected) <= slack * np.std(Y)
    prediction = model.feature_map_.transform(X) @ model.weights_ + model.offset_
    np.testing.assert_allclose(model.predict(X), prediction[:, 0], rtol=1e-9, atol=1e-12)
    if "rank" in FEATURES[name]:
        assert model.feature_map_.rank_ <= FEATURES[name]["rank"]


@everyone
@pytest.mark.parametrize("kernel", ["laplacian", "matern12", Gaussian(0.02)], ids=repr)
def test_rough_kernels_do_not_depend_on_their_representation(estimator, kernel):
    """Kernels of full rank: whatever "auto" does, as exact as pivoted Cholesky."""
    model = estimator(kernel=kernel, tol=TOL).fit(X, Y, WEIGHT)
    factored = estimator(kernel=kernel, features="cholesky", tol=TOL).fit(X, Y, WEIGHT)
    new_X = data(seed=11)[0]
    bound = uncertainty(model) + uncertainty(factored)
    first, second = (m.predict(new_X) - m.offset_[0] for m in (model, factored))
    np.testing.assert_allclose(first, second, atol=bound)
    assert model.kernel_error_ <= 1e-9
    assert model.certificate_.primal == pytest.approx(
        factored.certificate_.primal,
        abs=model.certificate_.gap + factored.certificate_.gap + 1e-12,
    )


@everyone
def test_explicit_features(estimator):
    spread = PolynomialFeatures(2, include_bias=False)
    model = estimator(features=features.Explicit(spread)).fit(X, Y)
    expected = estimator(kernel="linear").fit(spread.fit_transform(X), Y)
    np.testing.assert_allclose(
        model.predict(X), expected.predict(spread.transform(X)), atol=2e-3 * np.std(Y)
    )
    assert model.kernel_error_ == 0.0


@everyone
def test_features_are_not_touched(estimator):
    given = features.Nystroem(rank=10)
    before = given.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(features=given, kernel="laplacian").fit(X, Y)
    assert given.get_params() == before
    assert not hasattr(given, "kernel_")
    assert model.features is given


@everyone
def test_truncation_is_reported_and_warned_about(estimator):
    with pytest.warns(UserWarning, match=r"rank 5 leaves out .*% .*increase rank"):
        model = estimator(kernel="laplacian", rank=5).fit(X, Y)
    assert model.kernel_error_ > 1e-3
    residual = model.kernel_(X) - (f := model.feature_map_.transform(X)) @ f.T
    assert model.kernel_error_ == pytest.approx(np.trace(residual) / 80.0, rel=1e-9)
    quiet = estimator(kernel="gaussian", rank=40).fit(X, Y)  # warnings are errors here
    assert 0.0 < quiet.kernel_error_ <= 1e-3


# scikit-learn's manners


@some_model
def test_clone_and_parameters(name):
    model = clone(MODELS[name])
    before = {key: repr(value) for key, value in model.get_params().items()}
    fitted = model.fit(X, Y)
    assert fitted is model
    assert {key: repr(value) for key, value in model.get_params().items()} == before
    again = clone(model)
    assert not hasattr(again, "dual_coef_")
    np.testing.assert_array_equal(again.fit(X, Y).predict(X), model.predict(X))
    type(model)(**model.get_params())


@everyone
def test_refit_forgets(estimator):
    model = estimator().fit(*data(n=30, d=3, seed=9))
    model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), estimator().fit(X, Y).predict(X))
    assert model.n_features_in_ == 2


@everyone
def test_grid_search(estimator):
    grid = {"alpha": [1e-4, 1e-2, 1e2], "kernel__length_scale": [0.5, "median"]}
    search = GridSearchCV(estimator(kernel=Gaussian()), grid, cv=3).fit(X, Y)
    assert search.best_params_["alpha"] < 1e2
    assert search.best_estimator_.kernel.length_scale in (0.5, "median")
    assert isinstance(search.best_estimator_.kernel_.length_scale, float)
    assert search.best_score_ > 0.2
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 6
    weighted = GridSearchCV(estimator(), {"alpha": [1e-4, 1e-2]}, cv=3)
    weighted.fit(X, Y, sample_weight=WEIGHT)
    assert weighted.best_params_["alpha"] in (1e-4, 1e-2)


@everyone
def test_pipelines(estimator):
    pipeline = make_pipeline(StandardScaler(), estimator())
    pipeline.set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    name = estimator.__name__.lower()
    pipeline.fit(frame, Y, **{f"{name}__sample_weight": WEIGHT})
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, ["a", "b"])
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(
        pipeline.predict(frame),
        estimator().fit(scaled, Y, WEIGHT).predict(scaled),
        rtol=1e-9,
        atol=1e-9 * Y.std(),  # a frame lies in memory by columns: its sums round differently
    )
    assert cross_val_predict(make_pipeline(StandardScaler(), estimator()), X, Y).shape == (80,)


@everyone
def test_random_state(estimator):
    def predictions(random_state):
        # more rows than are looked at for the width, and random features
        new_X, new_y = data(n=1500, seed=10)
        model = estimator(
            kernel=Gaussian("median"),
            features="fourier",
            rank=50,
            alpha=1e-1,
            random_state=random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return model.fit(new_X, new_y).predict(new_X[:50])

    np.testing.assert_array_equal(predictions(0), predictions(0))
    np.testing.assert_array_equal(predictions(None), predictions(None))
    assert np.abs(predictions(0) - predictions(1)).max() > 0.0
    np.testing.assert_array_equal(
        predictions(np.random.RandomState(5)), predictions(np.random.RandomState(5))
    )


# Stopping, starting, talking


@pytest.mark.parametrize(
    "model",
    [QuantileRegressor(LEVELS), ExpectileRegressor(LEVELS), SVR(), SVR("huber", kappa=0.1)],
    ids=repr,
)
def test_stopping_early_warns_and_keeps_a_usable_fit(model):
    model = clone(model).set_params(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"relative gap .* > tol=1e-09.*max_iter"):
        model.fit(X, Y)
    assert model.n_iter_ == 1
    assert model.certificate_.relative_gap > 1e-9
    assert np.isfinite(model.predict(X)).all()
    # the certificate still bounds the optimum
    optimum = clone(model).set_params(max_iter=1000).fit(X, Y).certificate_
    assert model.certificate_.dual <= optimum.primal
    assert model.certificate_.primal >= optimum.dual
    assert optimum.relative_gap <= 1e-9


@everyone
def test_warning_points_to_the_call_of_fit(estimator):
    """A warning names the file of the caller, not one of ours."""
    with pytest.warns(UserWarning, match="leaves out") as caught:
        estimator(kernel="laplacian", rank=5).fit(X, Y)
    assert [w.filename for w in caught] == [__file__] * len(caught)
    if estimator is not KernelRidge:
        with pytest.warns(ConvergenceWarning) as caught:
            estimator(max_iter=1, tol=1e-12).fit(X, Y)
        assert [w.filename for w in caught] == [__file__] * len(caught)


@pytest.mark.parametrize("name", ["quantiles", "expectiles", "svr", "quantiles, rough"])
def test_warm_start(name):
    model = clone(MODELS[name]).set_params(warm_start=True).fit(X, Y)
    first = model.predict(X)
    steps = model.n_iter_
    assert steps > 1
    model.fit(X, Y)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.predict(X), first, atol=20 * uncertainty(model))
    # a path: as good as from scratch
    model.set_params(alpha=5e-4).fit(X, Y)
    cold = clone(MODELS[name]).set_params(alpha=5e-4).fit(X, Y)
    optimum = cold.certificate_
    assert model.certificate_.relative_gap <= model.tol
    assert model.certificate_.primal == pytest.approx(optimum.primal, rel=3e-6)
    assert model.certificate_.dual <= optimum.primal
    # other data of any shape
    model.fit(X[:30], Y[:30])
    assert model.certificate_.relative_gap <= model.tol
    other = data(n=120, d=3)
    model.fit(*other)
    assert model.certificate_.relative_gap <= model.tol
    # without it, fits do not remember
    plain = clone(MODELS[name]).fit(X, Y)
    assert plain.fit(X, Y).n_iter_ == steps


def test_warm_start_with_weights_and_other_levels():
    model = QuantileRegressor(LEVELS, warm_start=True).fit(X, Y)
    weight = WEIGHT.copy()
    weight[::4] = 0.0
    for parameters, sample_weight in [
        ({}, weight),
        ({"levels": [0.2, 0.5, 0.9]}, weight),
        ({"levels": [0.2, 0.8]}, None),
        ({"epsilon": 0.2}, None),
        ({"fit_intercept": False}, None),
        ({"fit_intercept": True}, WEIGHT),
    ]:
        model.set_params(**parameters).fit(X, Y, sample_weight)
        cold = clone(model).fit(X, Y, sample_weight)
        assert model.certificate_.relative_gap <= model.tol
        assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=3e-6)


@everyone
def test_silent_unless_asked(estimator, capsys):
    estimator().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    model = estimator(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.history_) >= 1
    for line in lines:
        assert line.startswith(f"[{estimator.__name__}] step ")
        assert "relative gap" in line


def test_solvers_by_name_and_by_object():
    automatic = QuantileRegressor(LEVELS).fit(X, Y)
    by_name = QuantileRegressor(LEVELS, solver="newton").fit(X, Y)
    np.testing.assert_array_equal(by_name.predict(X), automatic.predict(X))
    exact = QuantileRegressor(LEVELS, solver=Newton(tol=1e-10)).fit(X, Y)
    assert exact.certificate_.relative_gap <= 1e-10
    newton = KernelRidge(solver="newton", tol=1e-10).fit(X, Y)
    closed = KernelRidge(solver="closed_form").fit(X, Y)
    np.testing.assert_allclose(newton.predict(X), closed.predict(X), atol=1e-4)
    np.testing.assert_array_equal(closed.predict(X), KernelRidge().fit(X, Y).predict(X))

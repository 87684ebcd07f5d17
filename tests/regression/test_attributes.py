"""What fitted attributes are, and what they do not depend on: units, weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from regression_cases import (
    BRIEFLY,
    LEVELS,
    MODELS,
    TOL,
    WEIGHT,
    X,
    Y,
    by_default,
    everyone,
    some_model,
    uncertainty,
)

# Attributes


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
    primal = 0.5 * model.alpha_ * norm + WEIGHT @ loss / WEIGHT.sum()
    assert certificate.primal == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_box_of_quantile_coefficients(epsilon, weighted):
    weight = WEIGHT if weighted else np.ones(80)
    model = QuantileRegressor(LEVELS, alpha=1e-3, epsilon=epsilon, learn=False)
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
        QuantileRegressor(LEVELS, epsilon=1.0, alpha=1e-3, learn=False),
        ExpectileRegressor(LEVELS, epsilon=1.0, alpha=1e-3, learn=False),
        SVR(epsilon=0.5, alpha=1e-3, learn=False),
        SVR("squared_epsilon_insensitive", epsilon=0.5, alpha=1e-3, learn=False),
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
    base = QuantileRegressor(LEVELS, level_gamma=gamma, alpha=1e-2, learn=False, tol=TOL).fit(X, Y)
    model = QuantileRegressor(LEVELS, level_gamma=gamma, alpha=1e-2 / scale, learn=False, tol=TOL)
    model.fit(X, scale * Y + shift)
    bound = 20 * uncertainty(base) + 1e-12 * abs(shift) / scale
    np.testing.assert_allclose((model.predict(X) - shift) / scale, base.predict(X), atol=bound)
    assert model.certificate_.relative_gap <= TOL


def test_quantiles_of_minus_y():
    base = QuantileRegressor([0.1, 0.6], alpha=1e-2, learn=False, tol=TOL).fit(X, Y)
    mirrored = QuantileRegressor([0.9, 0.4], alpha=1e-2, learn=False, tol=TOL).fit(X, -Y)
    bound = 20 * uncertainty(base)
    np.testing.assert_allclose(-mirrored.predict(X), base.predict(X), atol=bound)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, -1e3), (1e6, -1e6)])
def test_squared_losses_in_other_units(scale, shift):
    """Squared losses grow like the penalty: the same strength."""
    targets = scale * Y + shift
    tol = TOL
    for model, scaled in [
        (KernelRidge(alpha=1e-2, learn=False), KernelRidge(alpha=1e-2, learn=False)),
        (
            ExpectileRegressor(LEVELS, alpha=1e-2, learn=False, tol=tol),
            ExpectileRegressor(LEVELS, alpha=1e-2, learn=False, tol=tol),
        ),
        (
            SVR("squared_epsilon_insensitive", epsilon=0.2, alpha=1e-2, learn=False, tol=tol),
            SVR(
                "squared_epsilon_insensitive",
                epsilon=0.2 * scale,
                alpha=1e-2,
                learn=False,
                tol=tol,
            ),
        ),
        (
            SVR("huber", kappa=0.2, alpha=1e-2, learn=False, tol=tol),
            SVR("huber", kappa=0.2 * scale, alpha=1e-2, learn=False, tol=tol),
        ),
        (
            SVR(epsilon=0.2, alpha=1e-2, learn=False, tol=tol),
            SVR(epsilon=0.2 * scale, alpha=1e-2 / scale, learn=False, tol=tol),
        ),
    ]:
        base = model.fit(X, Y).predict(X)
        found = (scaled.fit(X, targets).predict(X) - shift) / scale
        bound = 20 * uncertainty(model) + 1e-11 * abs(shift) / scale
        np.testing.assert_allclose(found, base, atol=bound)


@pytest.mark.slow
@everyone
def test_units_of_the_features_do_not_matter_by_default(estimator):
    base = by_default(estimator).predict(X)
    units = np.array([1e-6, 1e5])
    found = estimator().fit(units * X + 3.0 * units, Y).predict(units * X + 3.0 * units)
    np.testing.assert_allclose(found, base, atol=2e-3 * np.std(Y))
    assert np.std(base) > 0.3 * np.std(Y)  # a sensible fit


# Weights


@everyone
def test_weights_are_repetition(estimator):
    count = np.random.default_rng(2).integers(1, 4, 80)
    given = {"tol": TOL, "learn": BRIEFLY}
    model = estimator(**given).fit(X, Y, sample_weight=count)
    rows = np.repeat(np.arange(80), count)
    repeated = estimator(**given).fit(X[rows], Y[rows])
    bound = 20 * uncertainty(repeated)
    np.testing.assert_allclose(model.predict(X), repeated.predict(X), atol=bound)


@everyone
def test_zero_weight_is_removal(estimator):
    weight = WEIGHT.copy()
    weight[::4] = 0.0
    kept = np.flatnonzero(weight)
    targets = Y.copy()
    targets[::4] = 1e3
    given = {"tol": TOL, "learn": BRIEFLY}
    model = estimator(**given).fit(X, targets, sample_weight=weight)
    removed = estimator(**given).fit(X[kept], Y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(model.predict(X), removed.predict(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.support_, kept[removed.support_])
    assert np.all(weight[model.support_] > 0.0)


@pytest.mark.slow
@everyone
def test_scale_of_weights_does_not_matter(estimator):
    given = {"tol": TOL, "learn": BRIEFLY}
    model = estimator(**given).fit(X, Y, sample_weight=WEIGHT)
    scaled = estimator(**given).fit(X, Y, sample_weight=1e4 * WEIGHT)
    bound = 20 * uncertainty(model)
    np.testing.assert_allclose(scaled.predict(X), model.predict(X), atol=bound)
    plain = estimator(**given).fit(X, Y)
    ones = estimator(**given).fit(X, Y, sample_weight=np.full(80, 7.0))
    np.testing.assert_allclose(ones.predict(X), plain.predict(X), atol=bound)
    assert np.abs(plain.predict(X) - model.predict(X)).max() > 1e-3

"""Norms of fits, and fits with a bound on them: the certificate is that of the bound."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.base import clone

from conic import conic_optimum
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Decomposable, Gaussian
from fenchel.model_selection import PathSearchCV
from regression_cases import LEVELS, MODELS, WEIGHT, Y2, X, Y, data, everyone, some_model

CASES = {
    "quantiles": QuantileRegressor(LEVELS),
    "quantiles, one": QuantileRegressor(0.3, kernel="laplacian"),
    "quantiles, insensitive": QuantileRegressor(LEVELS, epsilon=0.3),
    "quantiles, through zero": QuantileRegressor(LEVELS, fit_intercept=False),
    "quantiles, in order": QuantileRegressor(LEVELS, level_gamma=np.inf, non_crossing="train"),
    "quantiles, in order, through zero": QuantileRegressor(
        [0.2, 0.8], non_crossing="train", fit_intercept=False
    ),
    "expectiles": ExpectileRegressor(LEVELS),
    "svr": SVR(epsilon=0.2),
    "svr, squared": SVR("squared_epsilon_insensitive", epsilon=0.2),
    "svr, huber": SVR("huber", kappa=0.2),
    "ridge": KernelRidge(),
    "ridge, rough": KernelRidge(kernel="matern12"),
}
some_case = pytest.mark.parametrize("name", CASES)


def case(name, **parameters):
    return clone(CASES[name]).set_params(learn=False, **parameters)


@some_model
def test_norm_is_that_of_the_space_of_the_kernel(name):
    """‖h‖² = Σ_ij k(x_i, x_j) <a_i, B a_j>, from dual coefficients and the kernel alone."""
    model = clone(MODELS[name]).fit(X, Y, WEIGHT)
    gram = model.kernel_(X[model.support_])
    square = np.sum(model.dual_coef_ * (gram @ model.dual_coef_ @ model.coupling_))
    assert model.norm_ == pytest.approx(np.sqrt(square), rel=1e-4)


@some_case
@pytest.mark.parametrize("radius", [0.5, 5.0])
def test_the_optimum_of_the_bound(name, radius):
    """A conic solver that is given the bound itself, and knows no alpha."""
    model = case(name, radius=radius)
    model.fit(X, Y, WEIGHT)
    problem = model.make_problem(model.prepare(X, Y, WEIGHT))
    known = problem.design.features is not None
    optimum = conic_optimum(replace(problem, radius=radius), None if known else design_of(model))
    certificate = model.certificate_
    slack = 1e-7 * certificate.unit
    assert certificate.dual <= optimum.value + slack
    assert optimum.lower - slack <= certificate.primal <= optimum.value + 1e-6 * certificate.unit
    assert certificate.gap <= 1e-6 * certificate.unit
    assert model.status_.converged
    # the mean loss of predictions is the objective, and the bound is met and needed
    residual = Y[:, None] - model.predict(X).reshape(80, -1)
    loss = WEIGHT @ model.loss_.value(np.ascontiguousarray(residual)) / WEIGHT.sum()
    assert certificate.primal == pytest.approx(loss, rel=1e-8, abs=1e-12)
    assert radius * (1 - 1e-9) <= model.norm_ <= radius * (1 + 1e-9)


def design_of(model):
    """A root of the matrix of the kernel times that of the outputs, row by row."""
    values, basis = np.linalg.eigh(np.kron(model.kernel_(X), model.coupling_))
    return basis * np.sqrt(np.maximum(values, 0.0))


@some_case
def test_alpha_is_the_multiplier(name):
    """With a penalty of that strength the solution is the same, up to both gaps."""
    model = case(name, radius=2.0, tol=1e-8).fit(X, Y)
    penalized = case(name, alpha=model.alpha_, tol=1e-8).fit(X, Y)
    assert penalized.norm_ == pytest.approx(2.0, rel=2e-3)
    spread = np.ptp(model.predict(X))
    np.testing.assert_allclose(model.predict(X), penalized.predict(X), atol=2e-3 * spread)


@pytest.mark.parametrize("radius", [0.3, 3.0, 30.0])
def test_ridge_by_its_secular_equation(radius):
    """‖(K + λ)⁻¹ y‖_K = Λ without intercept, λ found by bisection."""
    model = KernelRidge(radius=radius, kernel=Gaussian(0.5), fit_intercept=False, tol=1e-10)
    model.fit(X, Y)
    values, basis = np.linalg.eigh(model.kernel_(X))
    values, image = np.maximum(values, 0.0), basis.T @ Y

    def excess(log_strength):
        return np.sqrt(np.sum(values * (image / (values + np.exp(log_strength))) ** 2)) - radius

    strength = np.exp(brentq(excess, -25.0, 10.0, xtol=1e-14))
    expected = basis @ (values * (image / (values + strength)))
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)
    assert model.alpha_ * 80 == pytest.approx(strength, rel=1e-3)


@everyone
def test_a_ball_that_is_larger_than_need_be(estimator):
    """Linear functions need no more norm than that: no more is taken, and the gap says so."""
    model = estimator(radius=1e3, kernel="linear", learn=False).fit(X[:40], Y[:40])
    assert model.status_.converged
    assert model.norm_ < 100.0
    assert model.certificate_.relative_gap <= 1e-6
    larger = estimator(radius=1e4, kernel="linear", learn=False).fit(X[:40], Y[:40])
    assert larger.certificate_.primal >= model.certificate_.dual - 1e-12


def test_larger_balls_have_smaller_losses():
    losses = [case("quantiles", radius=r).fit(X, Y).certificate_.primal for r in (0.1, 1.0, 10.0)]
    assert np.all(np.diff(losses) < 0.0)


def test_what_features_leave_out_counts():
    """The certificate is of the kernel as given: a bound of what all of it could do."""
    X, y = data(n=200, seed=2)
    model = QuantileRegressor(
        0.3, radius=4.0, kernel=Gaussian(0.3), rank=30, learn=False, features="nystroem"
    )
    with pytest.warns(UserWarning, match="30 features leave out a part of the kernel"):
        few = model.fit(X, y)
    whole = QuantileRegressor(0.3, radius=4.0, kernel=Gaussian(0.3), learn=False).fit(X, y)
    assert few.certified_kernel_ == "given"
    assert not few.status_.converged
    assert few.certificate_.dual <= whole.certificate_.primal + 1e-12
    assert few.certificate_.primal >= whole.certificate_.dual - 1e-12


@pytest.mark.slow
def test_operator_valued_kernels_and_several_targets():
    output = np.array([[1.0, 0.5], [0.5, 1.0]])
    kernel = Decomposable(Gaussian(0.5), output)
    for model in (KernelRidge(kernel=kernel, radius=2.0), SVR(kernel=kernel, radius=2.0)):
        model.fit(X, Y2)
        assert model.norm_ == pytest.approx(2.0, rel=1e-9)
        assert model.certificate_.relative_gap <= 1e-6
    scalar = KernelRidge(kernel=Gaussian(0.5), coupling=output, radius=2.0).fit(X, Y2)
    same = KernelRidge(kernel=kernel, radius=2.0).fit(X, Y2)
    np.testing.assert_allclose(scalar.predict(X), same.predict(X), atol=1e-2)


def test_a_learned_kernel_in_a_ball():
    model = QuantileRegressor(0.5, radius=1.0).fit(X, Y)
    assert model.learned_ is not None
    assert model.norm_ == pytest.approx(1.0, rel=1e-9)
    again = model.with_learned().fit(X, Y)
    assert again.learned_ is None
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-3)


def test_radii_in_a_search():
    search = PathSearchCV(KernelRidge(kernel=Gaussian(0.5)), {"radius": [0.1, 2.0, 1e4]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_ == {"radius": 2.0}
    with pytest.raises(ValueError, match=r"scoring='loo' needs radius=None, got radius=1\.0"):
        PathSearchCV(KernelRidge(radius=1.0), {"kernel": ["gaussian"]}, scoring="loo").fit(X, Y)


def test_one_of_alpha_and_radius():
    with pytest.raises(
        ValueError, match="at most one of alpha and radius can be given, got alpha"
    ):
        SVR(alpha=1.0, radius=1.0).fit(X, Y)


def test_it_starts_from_the_last_fit_and_can_be_stored():
    model = case("quantiles", radius=3.0, warm_start=True).fit(X, Y)
    first = len(model.history_)
    model.fit(X, Y)
    assert len(model.history_) < first
    stored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(stored.predict(X), model.predict(X))


def test_a_callback_stops_it():
    seen = []

    def callback(progress):
        seen.append(progress.relative_gap)
        return len(seen) == 2

    with pytest.warns(UserWarning, match="the callback returned a true value"):
        model = case("quantiles", radius=3.0, callback=callback).fit(X, Y)
    assert len(seen) == 2
    assert model.norm_ <= 3.0 * (1 + 1e-9)
    assert model.certificate_.relative_gap == pytest.approx(min(seen), rel=1e-3)


def test_nothing_is_learned_where_kernel_and_radius_are_given():
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (40, 1))
    y = random.normal(size=40)
    model = QuantileRegressor([0.2, 0.7], radius=0.7, kernel=Gaussian(0.5)).fit(X, y)
    assert model.learned_ is None
    np.testing.assert_array_equal(model.offset_, model.certified_offset_)
    assert SVR(epsilon=0.1, radius=1.0, kernel=Gaussian(0.5)).fit(X, y).learned_ is None
    assert SVR(radius=1.0, kernel=Gaussian(0.5)).fit(X, y).learned_ is not None  # for the tube
    assert QuantileRegressor([0.2, 0.7], radius=0.7).fit(X, y).learned_ is not None

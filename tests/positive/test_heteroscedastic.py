"""Mean and variance in one convex problem."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import fenchel
import positive_referee as referee
from contract_cases import with_checks
from fenchel.datasets import load_mcycle
from fenchel.kernels import Gaussian
from fenchel.positive import HeteroscedasticRegressor, NormalLikelihood

FLOORS = [0.0, 0.3]


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 1))
    std = 0.3 * np.exp(0.5 * X[:, 0])
    return X, np.sin(2.0 * X[:, 0]) + std * rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def inside(y, seed=1):
    """Dual points of the domain."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=len(y))
    slack = np.exp(rng.normal(size=len(y)))
    return np.stack([first, 0.5 * y**2 - 0.5 * (first + y) ** 2 - slack], axis=1)


@with_checks(HeteroscedasticRegressor(1e-2, kernel=Gaussian(8.0), learn=False))
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@with_checks(HeteroscedasticRegressor())
def test_scikit_learn_by_default(estimator, check):
    check(estimator)


def test_value_is_the_likelihood():
    y, mean, std = np.array([0.3, -2.0]), np.array([0.1, -1.0]), np.array([0.5, 3.0])
    natural = np.stack([mean / std**2, 1.0 / std**2 - 0.05], axis=1)
    expected = -norm.logpdf(y, mean, std) - 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(NormalLikelihood(y, 0.05).value(natural), expected, rtol=1e-12)
    assert np.isinf(NormalLikelihood(y).value(np.array([[0.0, 0.0], [1.0, -1.0]]))).all()


@pytest.mark.parametrize("floor", FLOORS)
def test_conjugate_by_numerical_maximization(floor):
    y = np.array([0.0, 1.5, -3.0, 0.2])
    loss, beta = NormalLikelihood(y, floor), inside(y)
    for i, (target, dual) in enumerate(zip(y, beta, strict=True)):
        single = NormalLikelihood(np.array([target]), floor)

        def height(u, single=single, dual=dual):
            z = np.array([[u[0], np.exp(u[1]) - floor]])
            return float(single.value(z)[0] - z[0] @ dual)

        best = minimize(
            height,
            [0.0, 0.0],
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 5000, "maxfev": 5000},
        )
        assert -best.fun == pytest.approx(loss.conjugate(beta)[i], abs=1e-8)


@pytest.mark.parametrize("floor", FLOORS)
def test_fenchel_young(floor):
    rng = np.random.default_rng(0)
    y = 3.0 * rng.normal(size=1000)
    loss, beta = NormalLikelihood(y, floor), inside(y)
    z = np.stack([3.0 * rng.normal(size=1000), np.exp(2.0 * rng.normal(size=1000))], axis=1)
    gap = loss.value(z) + loss.conjugate(beta) - np.einsum("ij,ij->i", z, beta)
    assert gap.min() >= -1e-10
    gradient, _ = loss.conjugate_derivatives(beta)
    gap = loss.value(gradient) + loss.conjugate(beta) - np.einsum("ij,ij->i", gradient, beta)
    np.testing.assert_allclose(gap, 0.0, atol=1e-9)
    outside = beta + np.array([0.0, 1e3])
    assert np.isinf(loss.conjugate(outside)).all()


@pytest.mark.parametrize("floor", FLOORS)
def test_derivatives_of_the_conjugate(floor):
    y = np.array([0.0, 1.5, -3.0, 0.2])
    loss, beta = NormalLikelihood(y, floor), inside(y)
    gradient, hessian = loss.conjugate_derivatives(beta)
    for j, step in enumerate(1e-6 * np.eye(2)):
        ahead, behind = beta + step, beta - step
        numeric = (loss.conjugate(ahead) - loss.conjugate(behind)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], numeric, rtol=1e-6, atol=1e-7)
        change = loss.conjugate_derivatives(ahead)[0] - loss.conjugate_derivatives(behind)[0]
        np.testing.assert_allclose(hessian[:, :, j], change / 2e-6, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("step", [1e-8, 1e-2, 1.0, 1e4])
def test_prox_meets_its_condition(step, floor):
    rng = np.random.default_rng(0)
    y = 2.0 * rng.normal(size=500)
    loss, point = NormalLikelihood(y, floor), 5.0 * rng.normal(size=(500, 2))
    beta = loss.conjugate_prox(point, step)
    assert np.isfinite(loss.conjugate(beta)).all()
    if step >= 1e-2:  # else the slack of the domain is lost in rounding
        gradient, _ = loss.conjugate_derivatives(beta)
        size = np.maximum(np.abs(point), np.abs(step * gradient)).max(axis=1, keepdims=True)
        assert np.all(np.abs(beta + step * gradient - point) <= 1e-8 * size)
        jacobian = loss.conjugate_prox_jacobian(point, step)
        for j, move in enumerate(1e-6 * np.eye(2)):
            change = loss.conjugate_prox(point + move, step)
            change -= loss.conjugate_prox(point - move, step)
            np.testing.assert_allclose(jacobian[:, :, j], change / 2e-6, rtol=1e-4, atol=1e-5)


def _conic_optimum(problem, y, floor):
    """Σ c ½(θ y² - 2 η y + q - t), q >= η²/θ, exp(t) <= θ, as a conic program."""
    n = len(y)
    program = referee.Program(problem, 2 * n)
    weight, z, extra = problem.weight, program.z.start, program.extra.start
    for i in range(n):
        eta, theta, q, t = z + 2 * i, z + 2 * i + 1, extra + i, extra + n + i
        program.linear[[eta, theta, q, t]] = weight[i] * np.array(
            [-y[i], 0.5 * y[i] ** 2, 0.5, -0.5]
        )
        row = np.zeros((3, program.size))
        row[0, t] = row[2, theta] = -1.0
        program.add(row, np.array([0.0, 1.0, floor]), clarabel.ExponentialConeT())
        row = np.zeros((3, program.size))  # ‖(2η, θ - q)‖ <= θ + q
        row[0, [theta, q]] = -1.0
        row[1, eta] = -2.0
        row[2, [theta, q]] = -1.0, 1.0
        program.add(row, np.array([floor, 0.0, floor]), clarabel.SecondOrderConeT(3))
    return program.solve() + 0.5 * floor * float(weight @ y**2)


@pytest.mark.parametrize("solver", ["newton", "proximal_newton"])
@pytest.mark.parametrize("max_std", [1.5, np.inf])
def test_against_a_semidefinite_program(max_std, solver):
    X, y, weight = data(25)
    model = HeteroscedasticRegressor(
        3e-3, trace_penalty=1e-2, max_std=max_std, rank=6, solver=solver, tol=1e-8, learn=False
    ).fit(X, y, weight)
    prepared = model.prepare(X, y, weight)
    problem = model._problem(prepared)
    optimum = _conic_optimum(problem, prepared.targets[:, 0], max_std**-2.0)
    assert model.certificate_.gap <= 1e-8
    assert model.certificate_.primal == pytest.approx(optimum, abs=1e-6)


def test_certificate_is_about_what_is_predicted():
    X, y, weight = data()
    model = HeteroscedasticRegressor(1e-3, trace_penalty=1e-2, learn=False).fit(X, y, weight)
    matrix = model.precision_model_.matrix_ * model.scale_**2
    penalty = 1e-2 * np.trace(matrix)
    penalty += 0.5e-3 * (np.sum(matrix**2) + np.sum(model.mean_weights_**2))
    negative = -model.log_likelihood(X, y, weight) - 0.5 * np.log(2.0 * np.pi)
    assert model.certificate_.primal == pytest.approx(
        negative - np.log(model.scale_) + penalty, abs=1e-10
    )


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "factor"), [(1e3, 1.0), (-5.0, 1e6), (0.0, -1e-4)])
def test_equivariant(shift, factor):
    X, y, weight = data()
    settings = {"alpha": 1e-3, "tol": 1e-9}
    mean, std = HeteroscedasticRegressor(**settings).fit(X, y, weight).predict(X, return_std=True)
    moved = HeteroscedasticRegressor(**settings).fit(X, shift + factor * y, weight)
    again, spread = moved.predict(X, return_std=True)
    np.testing.assert_allclose((again - shift) / factor, mean, atol=1e-3)
    np.testing.assert_allclose(spread / abs(factor), std, rtol=1e-3)


def test_far_from_the_data():
    X, y, _ = data()
    far = np.array([[1e3], [-1e6]])
    model = HeteroscedasticRegressor(max_std=2.5, learn=False).fit(X, y)
    mean, std = model.predict(far, return_std=True)
    np.testing.assert_allclose(mean, y.mean())
    np.testing.assert_allclose(std, 2.5 * y.std())
    near = np.random.default_rng(0).uniform(-50.0, 50.0, (100_000, 1))
    mean, std = model.predict(near, return_std=True)
    assert std.max() <= 2.5 * y.std() * (1.0 + 1e-12)
    assert std.min() > 0.0
    assert np.all(np.isfinite(mean))
    without = HeteroscedasticRegressor(max_std=np.inf, learn=False).fit(X, y)
    mean, std = without.predict(far, return_std=True)
    assert np.all(std == np.inf)
    np.testing.assert_allclose(mean, y.mean())
    assert without.floor_ == 0.0
    assert model.floor_ == pytest.approx((2.5 * y.std()) ** -2.0)


def test_finds_mean_and_standard_deviation():
    X, y, _ = data(2000)
    model = HeteroscedasticRegressor(1e-6, learn=False).fit(X, y)
    x = np.linspace(-1.5, 1.5, 50)
    mean, std = model.predict(x[:, None], return_std=True)
    np.testing.assert_allclose(mean, np.sin(2.0 * x), atol=0.15)
    np.testing.assert_allclose(std, 0.3 * np.exp(0.5 * x), rtol=0.15)
    interval = model.predict_interval(X, 0.9)
    assert np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])) == pytest.approx(0.9, abs=0.03)
    quantiles = model.predict_quantiles(X, [0.05, 0.5, 0.95])
    np.testing.assert_allclose(quantiles[:, [0, 2]], interval)
    np.testing.assert_allclose(quantiles[:, 1], model.predict(X))


def test_weights_are_counts():
    X, y, _ = data()
    counts = np.random.default_rng(2).integers(0, 4, len(y))
    settings = {"alpha": 1e-3, "kernel": Gaussian(0.8), "tol": 1e-9}
    weighted = HeteroscedasticRegressor(**settings).fit(X, y, counts)
    repeated = HeteroscedasticRegressor(**settings).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    for one, other in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-3)
    assert np.all(weighted.dual_coef_[counts == 0] == 0.0)


def test_constant_targets():
    X, _, _ = data()
    mean, std = HeteroscedasticRegressor().fit(X, np.full(len(X), 5.0)).predict(X, return_std=True)
    np.testing.assert_allclose(mean, 5.0)
    assert std.max() < 1e-11  # what rounding leaves of their deviation


def test_given_gram_matrix():
    X, y, weight = data()
    weight[::5] = 0.0
    kernel = Gaussian(0.8)
    plain = HeteroscedasticRegressor(1e-3, kernel=kernel).fit(X, y, weight)
    given = HeteroscedasticRegressor(1e-3, kernel="precomputed").fit(kernel(X), y, weight)
    new = np.linspace(-3.0, 3.0, 50)[:, None]
    for one, other in zip(
        plain.predict(new, return_std=True),
        given.predict(kernel(new, X), return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8])
def test_motorcycle_data_at_any_strength(alpha):
    X, y = load_mcycle(return_X_y=True)
    model = HeteroscedasticRegressor(alpha, trace_penalty=alpha, learn=False).fit(X, y)
    assert model.certificate_.gap <= 1e-6
    _, std = model.predict([[5.0], [35.0]], return_std=True)
    assert std[0] < std[1]


@pytest.mark.slow
def test_file_round_trip(tmp_path):
    X, y, _ = data()
    model = HeteroscedasticRegressor().fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert np.array_equal(same.predict_interval(X), model.predict_interval(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "alpha must be a finite number > 0 or None, got 0.0"),
        ({"trace_penalty": -1.0}, "trace_penalty must be a finite number >= 0, got -1"),
        ({"max_std": 0.0}, "max_std must be a number > 0 or inf, got 0"),
        ({"max_std": np.nan}, "max_std must be a number > 0 or inf, got nan"),
    ],
)
def test_bad_parameters(settings, message):
    X, y, _ = data()
    with pytest.raises(ValueError, match=message):
        HeteroscedasticRegressor(**settings).fit(X, y)


@pytest.mark.slow
def test_bad_requests():
    X, y, _ = data()
    model = HeteroscedasticRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"coverage must be a number in \(0, 1\), got 1.5"):
        model.predict_interval(X, 1.5)
    with pytest.raises(ValueError, match=r"levels must be numbers in \(0, 1\)"):
        model.predict_quantiles(X, [0.0, 0.5])

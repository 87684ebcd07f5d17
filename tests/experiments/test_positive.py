"""Quick forms of the experiments on non-negative models, and the models they compare with."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.comparisons.positive import (
    CONSTANT_STRENGTH,
    MAX_STD,
    LinearDensity,
    LinearPrecision,
    NonNegativeGaps,
    log_likelihood,
    pinball,
)
from experiments.comparisons.positive_other import (
    ExponentialDensity,
    ExponentialGaps,
    ExponentialPrecision,
    KernelMoments,
    KernelQuantiles,
)
from experiments.positive_common import mixture, mixture_density
from experiments.positive_example2 import approximations, lower_bound
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm

from experiments_cases import quick_form
from fenchel.kernels import Gaussian
from fenchel.positive import HeteroscedasticRegressor


@pytest.mark.slow
def test_figure1(tmp_path):
    results, page = quick_form("positive_figure1", tmp_path)
    found = results.set_index(["problem", "model"])
    assert len(found) == 15
    density = found.loc["density"]
    assert density.borrowed["PNM"] < -0.1
    assert (density.negative[["NCM", "GLM", "NW", "PSD"]] == 0.0).all()
    assert abs(density.integral["GLM"] - 1.0) > 1e-3
    assert abs(density.integral["PSD"] - 1.0) < 1e-6
    assert density.distance["NCM"] > 1.5 * density.distance["PSD"]
    assert (found.loc["variance"].undefined[["NCM", "GLM", "NW", "PSD"]] == 0.0).all()
    assert (found.loc["quantiles"].crossings[["NCM", "GLM", "NW", "PSD"]] == 0.0).all()
    assert f"{density.distance['PSD']:.4f}" in page


@pytest.mark.slow
def test_example2(tmp_path):
    results, page = quick_form("positive_example2", tmp_path)
    for name in ("narrow", "narrower"):
        part = results[results.target == name]
        assert (part.bound * (1.0 - 1e-9) <= part.NCM).all()
        assert part.bound.min() > 0.1
        assert part.PSD.min() < 1e-3
    assert results[results.target == "as printed"].NCM.min() < 1e-6
    assert "**confirmed**" in page


@pytest.mark.slow
def test_density10(tmp_path):
    results, page = quick_form("positive_density10", tmp_path, "--splits", "1")
    means = results.groupby(["dimension", "model"]).test.mean()
    assert means[10, "PSD"] > means[10, "KDE"]
    assert means[10, "default"] > means[10, "cholesky"] + 0.5
    assert {"PNM", "NCM", "GLM"} <= set(results[results.dimension == 10].model)
    assert (means < 0.05 + means[:, "truth"].loc[means.index.get_level_values(0)].to_numpy()).all()
    ours = results[results.model.isin(["PSD", "default", "best", "cholesky"])]
    assert (ours.integral - 1.0).abs().max() < 1e-8
    assert (means[:, "oracle"] >= means[:, "KDE"] - 0.01).all()
    assert f"{means[10, 'PSD']:.4f}" in page


@pytest.mark.slow
def test_real(tmp_path):
    results, page = quick_form("positive_real", tmp_path)
    found = results.set_index(["data", "model"])
    assert found.score["mcycle", "psd"] > found.score["mcycle", "gp"]
    assert found.crossings["engel", "psd"] == 0.0
    assert f"{found.score['geyser', 'psd']:.4f}" in page


def test_mixture():
    """The density is that of the rows: its log, its integral, and the moments."""
    grid = np.linspace(-6.0, 6.0, 4001)[:, None]
    assert np.trapezoid(mixture_density(grid), grid[:, 0]) == pytest.approx(1.0, abs=1e-9)
    X = mixture(200_000, 0, 3)
    np.testing.assert_allclose(np.cov(X.T), np.diag([1.3, 0.3, 0.3]), atol=0.02)
    point = np.array([[0.5, 0.2, -0.1]])
    parts = [norm.pdf(point, [side, 0, 0], np.sqrt(0.3)).prod() for side in (-1.0, 1.0)]
    assert mixture_density(point)[0] == pytest.approx(np.mean(parts))


@pytest.mark.parametrize("free", [True, False])
def test_linear_density_is_the_optimum(free):
    X, alpha = mixture(12, 1), 0.05
    model = LinearDensity(free, 1.0, alpha).fit(X)
    basis = model.basis_
    values, square, integrals = basis.values(X), basis.square(), basis.integrals()

    def objective(w):
        inside = np.maximum(values @ w, 1e-12)
        return -np.log(inside).mean() + 0.5 * alpha * w @ square @ w

    grid = np.linspace(-12.0, 12.0, 6001)[:, None]
    assert np.trapezoid(model.density(grid), grid[:, 0]) == pytest.approx(1.0, abs=1e-6)
    constant = np.linalg.lstsq(basis.values(grid), norm.pdf(grid[:, 0], 0.0, 1.5), rcond=1e-8)[0]
    start = constant if free else np.full(len(X), 1.0 / integrals.sum())
    found = minimize(
        objective,
        start,
        method="SLSQP",
        bounds=None if free else [(0.0, None)] * len(X),
        constraints=[{"type": "eq", "fun": lambda w: integrals @ w - 1.0}],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert objective(model.weights_) == pytest.approx(found.fun, abs=2e-5)
    assert objective(model.weights_) <= found.fun + 1e-7


def regression(n, seed=0):
    random = np.random.default_rng(seed)
    x = np.sort(random.random(n))
    return x[:, None], np.sin(6.0 * x) + np.exp(np.sin(6.0 * x)) * random.standard_normal(n)


@pytest.mark.parametrize("free", [True, False])
def test_linear_precision_is_the_optimum(free):
    (X, y), alpha = regression(15), 0.05
    model = LinearPrecision(free, 0.3, alpha).fit(X, y)
    z = (y - y.mean()) / y.std()
    means, values = model.mean_.values(X), model.precision_.values(X)
    square, r = model.precision_.square(), means.shape[1]

    def objective(point):
        w, a = point[:r], point[r:]
        theta = np.maximum(values @ a + MAX_STD**-2, 1e-9)
        eta = means @ w
        loss = 0.5 * (theta * z**2 - 2.0 * eta * z + eta**2 / theta - np.log(theta))
        return loss.mean() + 0.5 * alpha * (w @ w + a @ square @ a)

    bounds = [(None, None)] * r + [(None if free else 0.0, None)] * values.shape[1]
    conditions = [{"type": "ineq", "fun": lambda point: values @ point[r:]}] if free else []
    start = np.zeros(r + values.shape[1])
    found = minimize(
        objective,
        start,
        method="SLSQP",
        bounds=bounds,
        constraints=conditions,
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    reached = objective(np.concatenate([model.mean_weights_, model.weights_]))
    assert reached == pytest.approx(found.fun, abs=2e-5)
    assert reached <= found.fun + 1e-7
    mean, std = model.predict(X)
    assert model.score(X, y) == pytest.approx(norm.logpdf(y, mean, std).mean(), abs=1e-6)


def test_precision_models_agree_where_the_model_is_rich():
    """PNM is a relaxation of no PSD model, but both fit many rows about equally well."""
    X, y = regression(300)
    psd = HeteroscedasticRegressor(1e-3, kernel=Gaussian(0.3)).fit(X, y)
    mean, std = psd.predict(X, return_std=True)
    linear = LinearPrecision(True, 0.3, 1e-3).fit(X, y)
    assert linear.score(X, y) == pytest.approx(log_likelihood(y, mean, std), abs=0.05)


@pytest.mark.slow
def test_non_negative_gaps_are_the_optimum():
    (X, y), alpha = regression(10), 0.05
    levels = (0.25, 0.5, 0.75)
    model = NonNegativeGaps(levels, 0.3, alpha).fit(X, y)
    curves = model.predict(X)
    assert np.all(np.diff(curves, axis=1) >= 0.0)
    assert model.score(X, y) == -pinball(y, curves, levels)
    z = (y - np.median(y)) / np.abs(y - np.median(y)).mean()
    medians, values, square = model.median_.values(X), model.gaps_.values(X), model.gaps_.square()
    r, n = medians.shape[1], len(X)

    def parts(point):
        w, b = point[:r], point[r]
        a, c = point[r + 1 : r + 1 + 2 * n].reshape(2, n), point[r + 1 + 2 * n : r + 3 + 2 * n]
        median = medians @ w + b
        residual = z[:, None] - np.stack(
            [median - values @ a[0] - c[0], median, median + values @ a[1] + c[1]], axis=1
        )
        penalty = alpha * (w @ w + sum(row @ square @ row for row in a))
        return residual, 0.5 * (penalty + CONSTANT_STRENGTH * c @ c)

    def objective(point):
        residual, penalty = parts(point)
        loss = np.maximum(np.multiply(levels, residual), np.subtract(levels, 1.0) * residual)
        return loss.sum() / n + penalty

    best = np.concatenate(
        [model.weights_, model.offset_, model.gap_weights_.T.ravel(), model.gap_constants_]
    )
    size = r + 1 + 2 * n + 2

    def smooth(point):
        return float(
            np.sum(point[size:]) / n + np.sum(parts(point)[0] * levels) / n + parts(point)[1]
        )

    slack = [{"type": "ineq", "fun": lambda p: p[size:] + parts(p)[0].ravel()}]
    bounds = [(None, None)] * (r + 1) + [(0.0, None)] * (2 * n + 2 + 3 * n)
    start = np.concatenate([np.zeros(size), np.maximum(-parts(np.zeros(size))[0], 0.0).ravel()])
    found = minimize(
        smooth,
        start,
        method="SLSQP",
        bounds=bounds,
        constraints=slack,
        options={"maxiter": 500, "ftol": 1e-11},
    )
    assert found.success
    assert objective(best) == pytest.approx(found.fun, abs=1e-5)


def test_exponential_density_is_stationary():
    X, alpha = mixture(40, 2), 0.01
    model = ExponentialDensity(1.0, alpha, draws=400).fit(X)
    drawn = np.random.default_rng(0).uniform(-4.0, 4.0, (400, 1))
    inside, outside = model.basis_.values(X), model.basis_.values(drawn)

    def objective(w):
        integral = 8.0 * np.exp(outside @ w).mean()
        return np.log(integral) - (inside @ w).mean() + 0.5 * alpha * w @ w

    slope = approx_fprime(model.weights_, objective, 1e-7)
    assert np.abs(slope).max() < 1e-4
    assert 8.0 * model.density(drawn).mean() == pytest.approx(1.0, abs=1e-9)
    assert model.density(np.array([[4.5]]))[0] == 0.0


def test_exponential_precision_is_stationary():
    (X, y), alpha = regression(40), 0.01
    model = ExponentialPrecision(0.3, alpha, starts=2).fit(X, y)
    z, values = (y - y.mean()) / y.std(), model.basis_.values(X)
    r = values.shape[1]

    def objective(point):
        theta = np.exp(values @ point[r:-1] + point[-1]) + MAX_STD**-2
        loss = -norm.logpdf(z, values @ point[:r] / theta, theta**-0.5) - 0.5 * np.log(2 * np.pi)
        return loss.mean() + 0.5 * alpha * np.sum(point[:-1] ** 2)

    point = np.concatenate([model.mean_weights_, model.weights_, [model.offset_]])
    assert objective(point) == pytest.approx(model.values_[0], abs=1e-9)
    assert np.abs(approx_fprime(point, objective, 1e-7)).max() < 1e-3


def test_exponential_gaps():
    X, y = regression(80)
    model = ExponentialGaps(length_scale=0.3, alpha=0.01).fit(X, y)
    curves = model.predict(np.linspace(-1.0, 2.0, 500)[:, None])
    assert np.all(np.diff(curves, axis=1) > 0.0)
    convex = NonNegativeGaps(length_scale=0.3, alpha=0.01).fit(X, y)
    assert -model.score(X, y) < 1.1 * -convex.score(X, y)
    below = (y[:, None] <= model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(below, [0.25, 0.5, 0.75], atol=0.08)


def test_nadaraya_watson_by_the_definition():
    X, y = regression(25)
    h, g = 0.1, 0.2
    model = KernelMoments(h, g).fit(X, y)
    squares = []
    for i in range(len(y)):
        weight = np.exp(-0.5 * ((X[:, 0] - X[i, 0]) / h) ** 2)
        weight[i] = 0.0
        squares.append((y[i] - np.average(y, weights=weight)) ** 2)
    at = np.array([[0.37]])
    mean, std = model.predict(at)
    weight = np.exp(-0.5 * ((X[:, 0] - 0.37) / h) ** 2)
    assert mean[0] == pytest.approx(np.average(y, weights=weight))
    weight = np.exp(-0.5 * ((X[:, 0] - 0.37) / g) ** 2)
    assert std[0] ** 2 == pytest.approx(np.average(squares, weights=weight))
    wide = KernelQuantiles((0.2, 0.5, 0.8), 1e6).fit(X, y)
    expected = np.quantile(y, (0.2, 0.5, 0.8), method="inverted_cdf")
    np.testing.assert_array_equal(wide.predict(at)[0], expected)


def test_lower_bound_holds_for_any_sum():
    """Random sums of kernel functions with coefficients >= 0 do not come below it."""
    x, weights = np.polynomial.legendre.leggauss(200)
    bound = lower_bound(0.5)
    goal = np.exp(-2.0 * x**2)
    size = np.sqrt(weights @ goal**2)
    random = np.random.default_rng(0)
    for _ in range(200):
        z = random.normal(size=(1, 3))
        h = np.exp(-0.5 * (x[:, None] - z) ** 2) @ random.exponential(size=3)
        h *= max(0.0, weights @ (h * goal)) / (weights @ h**2)
        assert np.sqrt(weights @ (h - goal) ** 2) / size >= bound
    found = approximations(0.5, 3, 1.0)["NCM"]
    assert np.sqrt(weights @ (found - goal) ** 2) / size == pytest.approx(bound, rel=0.01)

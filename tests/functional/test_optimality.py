"""Fits against dense linear algebra, a conic solver, and the definition of an integral."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Gaussian, Laplacian
from fenchel.losses import CurveHuber
from functional_conic import curve_optimum

KERNEL, BETWEEN = Gaussian(0.7), Laplacian(0.3)
ALPHA = 1e-3
LOSSES = [
    *(("huber", norm) for norm in (1, 1.5, 2, 3, np.inf)),
    *(("squared_epsilon_insensitive", norm) for norm in (1, 1.5, 2, 3, np.inf)),
]
CLOSED = [
    ("huber", 1),
    ("huber", 2),
    ("squared_epsilon_insensitive", 2),
    ("squared_epsilon_insensitive", np.inf),
]
RULES = ["monte-carlo", "trapezoid", "given"]


def draw(n=10, m=8, seed=0):
    """Rows, shifted waves with noise and one outlier, and uneven points."""
    random = np.random.default_rng(seed)
    X, theta = random.uniform(size=(n, 2)), np.sort(random.uniform(size=m))
    y = np.sin(5.0 * (theta + X[:, :1])) + 0.3 * random.standard_normal((n, m))
    y[0] += 4.0
    return X, y, theta


def rule(name, m=8):
    return np.random.default_rng(9).uniform(0.1, 1.0, m) if name == "given" else name


def make(loss="squared", norm=2, **parameters):
    chosen = {
        "center": None,
        "kappa": 0.3,
        "epsilon": 0.3,
        "alpha": ALPHA,
        "kernel": KERNEL,
        "output_kernel": BETWEEN,
        "features": "cholesky",
        "tol": 1e-8,
    }
    return FunctionalRegressor(loss, norm, **{**chosen, **parameters})


def referee(X, y, theta, measure, loss, norm, *, kappa=0.3, epsilon=0.3, weight=None):
    threshold = {"squared": {}, "huber": {"kappa": kappa}}.get(loss, {"epsilon": epsilon})
    return curve_optimum(
        KERNEL(X),
        BETWEEN(theta[:, None]),
        y,
        measure,
        ALPHA,
        norm=norm,
        weight=weight,
        **threshold,
    )


def dense_ridge(K, G, y, measure, alpha, weight=None):
    """Fitted values (n, m) of the squared loss, by one system in all observed values."""
    n, m = y.shape
    seen = ~np.isnan(y).ravel()
    weight = np.ones(n) if weight is None else weight
    c = np.repeat(weight / (alpha * weight.sum()), m) * np.broadcast_to(measure, (n, m)).ravel()
    gram = np.kron(K, G)
    system = gram[np.ix_(seen, seen)] + np.diag(1.0 / c[seen])
    return (gram[:, seen] @ np.linalg.solve(system, y.ravel()[seen])).reshape(n, m)


def holes(y, seed=3):
    y = y.copy()
    gone = np.random.default_rng(seed).uniform(size=y.shape) < 0.3
    gone[:, 2] = False
    y[gone] = np.nan
    return y


@pytest.mark.parametrize("quadrature", RULES)
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 11.0)])
def test_square_loss_is_the_dense_kronecker_solution(quadrature, weight):
    X, y, theta = draw()
    model = make(quadrature=rule(quadrature)).fit(X, y, theta, sample_weight=weight)
    expected = dense_ridge(KERNEL(X), BETWEEN(theta[:, None]), y, model.measure_, ALPHA, weight)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-9)
    assert model.n_iter_ == 1


@pytest.mark.parametrize("solver", ["splitting", "fista"])
def test_iterative_solvers_reach_the_dense_solution(solver):
    X, y, theta = draw()
    model = make(solver=solver, tol=1e-12).fit(X, y, theta)
    expected = dense_ridge(KERNEL(X), BETWEEN(theta[:, None]), y, model.measure_, ALPHA)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("loss", "norm"), LOSSES)
def test_large_kappa_and_small_epsilon_are_the_square_loss(loss, norm):
    X, y, theta = draw()
    square = make().fit(X, y, theta)
    limit = make(loss, norm, kappa=1e5, epsilon=1e-12, tol=1e-12).fit(X, y, theta)
    np.testing.assert_allclose(limit.predict(X), square.predict(X), rtol=0, atol=1e-5)
    zero = make(loss, norm, kappa=1e5, epsilon=0.0, tol=1e-12).fit(X, y, theta)
    np.testing.assert_allclose(zero.predict(X), square.predict(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("quadrature", RULES)
@pytest.mark.parametrize(("loss", "norm"), LOSSES)
def test_optimum_is_that_of_a_conic_solver(loss, norm, quadrature):
    X, y, theta = draw()
    model = make(loss, norm, quadrature=rule(quadrature)).fit(X, y, theta)
    optimum = referee(X, y, theta, model.measure_, loss, norm)
    certificate = model.certificate_
    unit = certificate.gap / certificate.relative_gap if certificate.gap else optimum.value
    assert abs(certificate.relative_gap) <= 1e-8
    # the optimum is between the two, as far as the referee knows it
    slack = 2.0 * abs(optimum.value - optimum.lower) + 1e-8 * optimum.value
    assert certificate.dual <= optimum.value + slack
    assert certificate.primal >= optimum.lower - slack
    assert certificate.primal - optimum.lower <= certificate.gap + slack
    # strong convexity: α/2 times the squared distance of the functions is at most the gap
    allowed = 2.0 * np.sqrt(2.0 * (1e-8 * unit + slack) / ALPHA)
    assert np.abs(model.predict(X) - optimum.fitted).max() <= allowed
    assert allowed < 0.05
    if loss == "huber":  # the outlier has been felt: not the square loss in disguise
        assert np.abs(make().fit(X, y, theta).predict(X) - optimum.fitted).max() > 0.1


@pytest.mark.parametrize(("loss", "norm"), LOSSES)
def test_missing_values_and_weights_against_a_conic_solver(loss, norm):
    X, y, theta = draw()
    y, weight = holes(y), np.arange(1.0, 11.0)
    model = make(loss, norm, quadrature="trapezoid").fit(X, y, theta, sample_weight=weight)
    optimum = referee(X, y, theta, model.measure_, loss, norm, weight=weight)
    np.testing.assert_allclose(model.certificate_.primal, optimum.value, rtol=2e-7)
    np.testing.assert_allclose(model.predict(X), optimum.fitted, rtol=0, atol=2e-3)
    assert not np.any(model.dual_coef_[np.isnan(y)])


@pytest.mark.parametrize("quadrature", RULES)
@pytest.mark.parametrize("solver", ["splitting", "fista"])
def test_missing_values_are_left_out(quadrature, solver):
    X, y, theta = draw()
    y = holes(y)
    model = make(quadrature=rule(quadrature), solver=solver, tol=1e-12).fit(X, y, theta)
    expected = dense_ridge(KERNEL(X), BETWEEN(theta[:, None]), y, model.measure_, ALPHA)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-5)


def test_unobserved_points_are_as_good_as_absent():
    X, y, theta = draw()
    everywhere = np.full(8, 0.2)
    some = [0, 2, 3, 6]
    gaps = np.full_like(y, np.nan)
    gaps[:, some] = y[:, some]
    for loss, norm in CLOSED:
        full = make(loss, norm, quadrature=everywhere).fit(X, gaps, theta)
        part = make(loss, norm, quadrature=everywhere[some]).fit(X, y[:, some], theta[some])
        np.testing.assert_allclose(full.certificate_.primal, part.certificate_.primal, rtol=1e-7)
        np.testing.assert_allclose(full.predict(X), part.predict(X, theta), rtol=0, atol=2e-3)


@pytest.mark.parametrize("quadrature", ["monte-carlo", "trapezoid"])
@pytest.mark.parametrize(("loss", "norm"), [("squared", 2), *LOSSES])
def test_pairs_with_points_of_their_own(loss, norm, quadrature):
    X, y, theta = draw()
    y = holes(y)
    pairs = [(theta[seen], row[seen]) for row, seen in zip(y, ~np.isnan(y), strict=True)]
    model = make(loss, norm, quadrature=quadrature, tol=1e-8).fit(X, pairs)
    np.testing.assert_array_equal(model.grid_, theta)
    if quadrature == "trapezoid":
        assert model.measure_.shape == y.shape
        own = model.measure_
    else:
        own = np.full(8, 10.0 / np.sum(~np.isnan(y)))
        np.testing.assert_allclose(model.measure_, own)
    if loss == "squared":
        expected = dense_ridge(KERNEL(X), BETWEEN(theta[:, None]), y, own, ALPHA)
        value = model.certificate_.primal
    else:
        expected, value = (o := referee(X, y, theta, own, loss, norm)).fitted, o.value
    np.testing.assert_allclose(model.certificate_.primal, value, rtol=2e-7)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("quadrature", ["monte-carlo", "trapezoid"])
@pytest.mark.parametrize(("loss", "norm"), [("squared", 2), *CLOSED])
def test_refining_the_grid_converges_to_one_function(loss, norm, quadrature):
    X = np.random.default_rng(0).uniform(size=(12, 1))
    points = np.linspace(0.1, 0.9, 7)
    predictions, values = [], []
    for m in (20, 80, 320):
        theta = np.linspace(0.0, 1.0, m)
        y = np.sin(6.0 * (theta + X)) + 2.0 * np.exp(-40.0 * (theta - X) ** 2)
        model = make(loss, norm, quadrature=quadrature, output_kernel=Gaussian(0.2)).fit(
            X, y, theta
        )
        predictions.append(model.predict(X, points))
        values.append(model.certificate_.primal)
    coarse, fine = (np.abs(p - predictions[-1]).max() for p in predictions[:2])
    assert coarse > 1e-4  # there is something to converge
    assert fine < max(0.4 * coarse, 1e-3)
    assert abs(values[1] / values[2] - 1.0) < max(0.4 * abs(values[0] / values[2] - 1.0), 1e-4)
    assert fine < 0.02


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("parameters", [{}, {"representation": "eigen", "n_components": 4}])
@pytest.mark.parametrize("features", ["cholesky", "kernel_rows"])
def test_prediction_between_grid_points_is_the_representer_formula(loss, features, parameters):
    X, y, theta = draw()
    # gradients return the function of the dual point itself
    solver = {"squared": "closed_form", "huber": "fista"}[loss]
    model = make(loss, quadrature="trapezoid", features=features, solver=solver, **parameters)
    model.fit(X, y, theta)
    new, between = np.random.default_rng(4).uniform(size=(3, 2)), np.array([-0.1, 0.33, 1.2])
    if parameters:
        # u lives in the span of the leading eigenfunctions only
        root = np.sqrt(model.measure_)
        vectors = np.linalg.eigh(root[:, None] * BETWEEN(theta[:, None]) * root)[1][:, -4:]
        u = (root * model.dual_coef_ @ vectors) @ vectors.T / root
    else:
        u = model.dual_coef_
    by_hand = np.zeros((3, 3))
    for a, x in enumerate(new):
        for b, point in enumerate(between):
            for i, j in np.ndindex(y.shape):
                by_hand[a, b] += (
                    np.exp(-np.sum((x - X[i]) ** 2) / (2.0 * 0.7**2))
                    * np.exp(-abs(point - theta[j]) / 0.3)
                    * model.measure_[j]
                    * u[i, j]
                )
    # the splitting's function may be that of a point near the dual one: both are within
    # sqrt(2 gap / α) of the optimum in the norm of the space
    gap = max(model.certificate_.gap, 0.0) / ALPHA
    atol = 1e-9 if solver == "fista" else 1e-9 + 2.0 * np.sqrt(2.0 * gap)
    np.testing.assert_allclose(model.predict(new, between), by_hand, rtol=0, atol=atol)


@pytest.mark.parametrize("quadrature", RULES)
@pytest.mark.parametrize(("loss", "norm"), [("squared", 2), *(c for c in CLOSED if c[1] == 2)])
def test_representations_agree(loss, norm, quadrature):
    X, y, theta = draw()
    common = {"quadrature": rule(quadrature), "tol": 1e-10}
    spline = make(loss, norm, representation="spline", **common).fit(X, y, theta)
    eigen = make(loss, norm, representation="eigen", **common).fit(X, y, theta)
    between = np.linspace(0.0, 1.0, 21)
    np.testing.assert_allclose(
        eigen.predict(X, between), spline.predict(X, between), rtol=0, atol=1e-4
    )
    np.testing.assert_allclose(eigen.certificate_.primal, spline.certificate_.primal, rtol=1e-9)
    np.testing.assert_allclose(eigen.dual_coef_, spline.dual_coef_, rtol=0, atol=0.05)
    np.testing.assert_array_equal(eigen.support_, spline.support_)


@pytest.mark.parametrize(("loss", "norm"), [("squared", 2), *(c for c in CLOSED if c[1] == 2)])
def test_few_components_are_a_truncated_kernel(loss, norm):
    X, y, theta = draw()
    model = make(loss, norm, n_components=3, quadrature="trapezoid").fit(X, y, theta)
    root = np.sqrt(model.measure_)
    values, vectors = np.linalg.eigh(root[:, None] * BETWEEN(theta[:, None]) * root)
    truncated = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T / root[:, None] / root
    threshold = {"squared": {}, "huber": {"kappa": 0.3}}.get(loss, {"epsilon": 0.3})
    optimum = curve_optimum(KERNEL(X), truncated, y, model.measure_, ALPHA, norm=norm, **threshold)
    np.testing.assert_allclose(model.certificate_.primal, optimum.value, rtol=2e-7)
    np.testing.assert_allclose(model.predict(X), optimum.fitted, rtol=0, atol=2e-3)
    by_name = make(loss, norm, n_components=3, representation="eigen", quadrature="trapezoid")
    np.testing.assert_array_equal(by_name.fit(X, y, theta).predict(X), model.predict(X))


@pytest.mark.parametrize(("loss", "norm"), LOSSES)
@pytest.mark.parametrize("features", ["cholesky", "kernel_rows"])
def test_solvers_agree(loss, norm, features):
    X, y, theta = draw(25, 12)
    splitting, gradients = (
        make(loss, norm, solver=solver, features=features).fit(X, y, theta)
        for solver in ("splitting", "fista")
    )
    np.testing.assert_allclose(
        splitting.certificate_.primal, gradients.certificate_.primal, rtol=1e-7
    )
    np.testing.assert_allclose(splitting.predict(X), gradients.predict(X), rtol=0, atol=5e-3)
    assert splitting.n_iter_ < gradients.n_iter_


@pytest.mark.parametrize(("loss", "norm"), CLOSED)
def test_certificate_is_of_the_returned_coefficients(loss, norm):
    """Primal and dual objectives, computed from ``dual_coef_`` and predictions by definition."""
    X, y, theta = draw()
    model = make(loss, norm, quadrature="trapezoid", tol=1e-4, features="kernel_rows")
    model.fit(X, y, theta)
    assert model.weights_.shape == y.shape
    mu, c = model.measure_, 1.0 / (ALPHA * 10)
    beta = model.dual_coef_ / c  # dual curves
    residual = y - model.predict(X)

    def squared_norm(u):
        """‖Σ u_ij k(·, x_i) k(·, θ_j)‖²."""
        return np.einsum("ij,kl,ik,jl->", u, u, KERNEL(X), BETWEEN(theta[:, None]))

    earned = np.sum(mu * beta * y, axis=1) - 0.5 * np.sum(mu * beta**2, axis=1)
    if loss == "huber":
        sizes = np.abs(beta).max(axis=1) if norm == 1 else np.sqrt(np.sum(mu * beta**2, axis=1))
        assert sizes.max() <= 0.3 * (1.0 + 1e-12)
        value = CurveHuber(0.3, norm, mu).value(residual * np.sqrt(mu))
        if norm == 1:  # the sum of Huber losses of numbers
            size = np.abs(residual)
            by_hand = np.where(size <= 0.3, 0.5 * size**2, 0.3 * (size - 0.15)) @ mu
            np.testing.assert_allclose(value, by_hand, rtol=1e-12)
    elif norm == 2:
        length = np.sqrt(np.sum(mu * residual**2, axis=1))
        value = 0.5 * np.maximum(length - 0.3, 0.0) ** 2
        earned -= 0.3 * np.sqrt(np.sum(mu * beta**2, axis=1))
    else:
        value = 0.5 * np.maximum(np.abs(residual) - 0.3, 0.0) ** 2 @ mu
        earned -= 0.3 * np.sum(mu * np.abs(beta), axis=1)
    primal = 0.5 * ALPHA * squared_norm(model.weights_) + value.mean()
    dual = earned.mean() - 0.5 * ALPHA * squared_norm(mu * model.dual_coef_)
    certificate = model.certificate_
    np.testing.assert_allclose(primal, certificate.primal, rtol=1e-9)
    np.testing.assert_allclose(dual, certificate.dual, rtol=1e-9)
    assert certificate.gap >= 0.0
    assert certificate.gap == certificate.primal - certificate.dual


def test_a_short_run_warns_and_keeps_the_best():
    X, y, theta = draw(25, 12)
    exact = make("huber", 1, tol=1e-9).fit(X, y, theta).certificate_
    for solver, limits in (("splitting", (1, 4, 6)), ("fista", (1, 4))):
        for limit in limits:
            model = make("huber", 1, tol=1e-12, max_iter=limit, solver=solver)
            with pytest.warns(ConvergenceWarning, match="increase max_iter"):
                model.fit(X, y, theta)
            certificate = model.certificate_
            assert not model.status_.converged
            assert certificate.dual <= exact.primal
            assert certificate.primal >= exact.dual
            assert 1e-12 < certificate.relative_gap <= 1.0 + 1e-12
            best = min(1.0, *(p.relative_gap for p in model.history_))
            assert certificate.relative_gap >= best  # and what features leave out, a trifle
            assert certificate.relative_gap == pytest.approx(best, rel=1e-6)


def test_tolerance_is_met_or_said():
    """Small alphas and any threshold, without a warning."""
    random = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for alpha in (1e-7, 1e-4, 1e-1):
            for size in (0.01, 0.3, 10.0):
                X, y, theta = draw(20, 15, seed=int(random.integers(100)))
                for loss, norm in CLOSED:
                    model = FunctionalRegressor(loss, norm, size, size, alpha, learn=False)
                    model.fit(X, y, theta)
                    assert model.certificate_.relative_gap <= 1e-6


def test_extrapolation_does_not_go_in_circles():
    """Nearly all residuals far beyond κ, and a norm whose ball is nearly a box."""
    random = np.random.default_rng(54)
    X, theta = random.uniform(size=(13, 1)), np.sort(random.uniform(size=9))
    y = 700.0 * np.sin(5.0 * (theta + X)) + 70.0 * random.standard_normal((13, 9))
    for kappa in (0.1, 1.0, 10.0):
        for norm in (1.0, 1.05, 3.0, np.inf):
            model = FunctionalRegressor(
                "huber",
                norm,
                kappa,
                alpha=0.014,
                kernel=Laplacian(0.7),
                output_kernel=Laplacian(0.012),
                quadrature="trapezoid",
            )
            assert model.fit(X, y, theta).certificate_.relative_gap <= 1e-6


@pytest.mark.filterwarnings("ignore:stopped at")
@pytest.mark.parametrize("alpha", [1e-2, 1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_the_certificate_is_that_of_the_curves_that_are_predicted(alpha, scale):
    """With weights of 1e5 too, of which features of the fit and of new rows differ by rounding."""
    random = np.random.default_rng(0)
    X, theta = random.standard_normal((60, 1)), np.linspace(0.0, 1.0, 20)
    y = np.sin(6.0 * theta + X) + 0.3 * random.standard_normal((60, 20))
    given = {"alpha": alpha, "kernel": Gaussian(scale), "output_kernel": Laplacian(0.2)}
    model = FunctionalRegressor(**given, center=None).fit(X, y, theta)
    loss = 0.5 * np.mean((y - model.predict(X)) ** 2 @ model.measure_)
    objective = loss + 0.5 * alpha * model.norm_**2
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "norm", "given"),
    [
        ("huber", 1, {}),
        ("huber", 2, {"representation": "eigen", "n_components": 4}),
        ("squared_epsilon_insensitive", np.inf, {"features": "kernel_rows"}),
    ],
)
def test_the_norm_is_that_of_the_predicted_function(loss, norm, given):
    """It is the least one of all functions with its values at the rows and the points."""
    X, y, theta = draw()
    model = make(loss, norm, **given).fit(X, y, theta)
    values, between = model.predict(X), BETWEEN(theta[:, None])
    coefficients = np.linalg.solve(KERNEL(X), values) @ np.linalg.inv(between)
    assert model.norm_**2 == pytest.approx(float(np.vdot(coefficients, values)), rel=1e-7)

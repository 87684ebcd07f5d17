"""Curves with gaps or points of their own: own losses, and the solvers against one another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fenchel.design import Gram, Plain
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Gaussian, Laplacian
from fenchel.losses import Huber, Pinball, curve_loss
from fenchel.problem import Problem
from fenchel.solvers import Fista, Newton, Solution, Splitting
from fenchel.testing import check_design
from own_losses import LogCosh, slope

KERNEL, BETWEEN = Gaussian(0.7), Laplacian(0.3)
ALPHA = 1e-3
LOSSES = [
    ("squared", 2),
    *(("huber", norm) for norm in (1, 2, np.inf)),
    *(("squared_epsilon_insensitive", norm) for norm in (1, 2, np.inf)),
]


def draw(n=12, m=9):
    """Rows, uneven points, and shifted waves with noise, one outlier and gaps."""
    random = np.random.default_rng(0)
    X, theta = random.uniform(size=(n, 2)), np.sort(random.uniform(size=m))
    y = np.sin(5.0 * (theta + X[:, :1])) + 0.3 * random.standard_normal((n, m))
    y[0] += 4.0
    gone = random.uniform(size=y.shape) < 0.3
    gone[:, 2] = False
    return X, theta, y, np.where(gone, np.nan, y)


def as_pairs(y, theta):
    return [(theta[seen], row[seen]) for row, seen in zip(y, ~np.isnan(y), strict=True)]


def make(loss, norm=2, **parameters):
    chosen = {
        "center": None,
        "kappa": 0.3,
        "epsilon": 0.3,
        "alpha": ALPHA,
        "kernel": KERNEL,
        "output_kernel": BETWEEN,
        "tol": 1e-9,
        "max_iter": 5000,
    }
    return FunctionalRegressor(loss, norm, **{**chosen, **parameters})


@pytest.mark.parametrize("form", ["complete", "gaps", "pairs"])
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 13.0)])
def test_a_smooth_loss_of_ones_own_against_scipy(form, weight):
    """Values and predictions from functions Σ k(·, x_i) k_Θ(·, θ_j) v_ij with any v."""
    X, theta, whole, gaps = draw()
    y = whole if form == "complete" else gaps
    loss = LogCosh(0.4)
    model = make(loss, quadrature="trapezoid", features="kernel_rows")
    if form == "pairs":
        model.fit(X, as_pairs(y, theta), sample_weight=weight)
    else:
        model.fit(X, y, theta, sample_weight=weight)
    seen = ~np.isnan(y)
    measure = np.where(seen, np.broadcast_to(model.measure_, y.shape), 0.0)
    share = np.full(len(X), 1.0 / len(X)) if weight is None else weight / weight.sum()
    left, right = (
        vectors * np.sqrt(np.maximum(values, 0.0))
        for values, vectors in map(np.linalg.eigh, (KERNEL(X), BETWEEN(theta[:, None])))
    )  # h = left v rightᵀ has the norm of v

    def objective(v):
        v = v.reshape(y.shape)
        residual = np.where(seen, y - left @ v @ right.T, 0.0)
        losses = loss.value(residual.reshape(-1, 1)).reshape(y.shape)
        push = share[:, None] * measure * slope(loss, residual)
        value = 0.5 * ALPHA * np.sum(v * v) + share @ np.sum(measure * losses, axis=1)
        return value, (ALPHA * v - left.T @ push @ right).ravel()

    options = {"maxiter": 20_000, "maxfun": 50_000, "gtol": 1e-11, "ftol": 1e-16, "maxcor": 50}
    found = minimize(objective, np.zeros(y.size), jac=True, method="L-BFGS-B", options=options)
    expected = left @ found.x.reshape(y.shape) @ right.T
    certificate = model.certificate_
    assert abs(certificate.relative_gap) <= 1e-9
    assert certificate.dual <= found.fun * (1.0 + 1e-12)
    np.testing.assert_allclose(certificate.primal, found.fun, rtol=1e-7)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-3)
    assert not np.any(model.dual_coef_[~seen])
    squared = make("squared", quadrature="trapezoid", tol=1e-6)
    squared.fit(X, y, theta, sample_weight=weight)
    assert np.abs(squared.predict(X) - expected).max() > 0.1


@pytest.mark.parametrize(
    ("loss", "norm"), [*LOSSES, (LogCosh(0.4), 2), (Huber(0.3).insensitive(0.1), 2)]
)
@pytest.mark.parametrize("features", ["cholesky", "kernel_rows"])
def test_newton_reaches_the_point_of_the_splitting(loss, norm, features):
    X, theta, whole, gaps = draw()
    for y in (whole, gaps):
        splitting, newton = (
            make(loss, norm, features=features, solver=solver).fit(X, y, theta)
            for solver in ("splitting", "newton")
        )
        assert max(splitting.certificate_.relative_gap, newton.certificate_.relative_gap) <= 1e-9
        np.testing.assert_allclose(
            newton.certificate_.primal, splitting.certificate_.primal, rtol=1e-8
        )
        np.testing.assert_allclose(newton.predict(X), splitting.predict(X), rtol=0, atol=2e-3)
        new, between = X[:4] + 0.05, np.linspace(-0.1, 1.1, 7)
        np.testing.assert_allclose(
            newton.predict(new, between), splitting.predict(new, between), rtol=0, atol=2e-3
        )
        # zeros are exact in both
        np.testing.assert_allclose(newton.sparsity_, splitting.sparsity_, rtol=0, atol=0.05)
        assert not np.any(newton.dual_coef_[np.isnan(y)])


@pytest.mark.parametrize(("loss", "norm"), [("huber", 1), ("squared_epsilon_insensitive", 2)])
def test_newton_reaches_the_point_of_gradients_where_points_have_weights_of_their_own(loss, norm):
    X, theta, _, gaps = draw()
    pairs = as_pairs(gaps, theta)
    newton, gradients = (
        make(loss, norm, quadrature="trapezoid", solver=solver).fit(X, pairs)
        for solver in ("newton", "auto")
    )
    assert newton.measure_.shape == gaps.shape
    np.testing.assert_allclose(
        newton.certificate_.primal, gradients.certificate_.primal, rtol=1e-8
    )
    np.testing.assert_allclose(newton.predict(X), gradients.predict(X), rtol=0, atol=2e-3)
    assert newton.n_iter_ < gradients.n_iter_


@pytest.mark.parametrize("loss", ["absolute", "pinball", Pinball(0.8)])
def test_losses_with_kinks_only(loss):
    """No curvature of the loss to begin with, and bounds on every coordinate."""
    X, theta, _, gaps = draw()
    splitting, newton = (
        make(loss, alpha=1e-2, tol=1e-6, solver=solver).fit(X, gaps, theta)
        for solver in ("splitting", "newton")
    )
    assert max(splitting.certificate_.relative_gap, newton.certificate_.relative_gap) <= 1e-6
    np.testing.assert_allclose(
        newton.certificate_.primal, splitting.certificate_.primal, rtol=2e-6
    )


class WeightsOnly(Newton):
    """A solver that does not tell of which point its model is."""

    def solve(self, problem, warm_start=None, callback=None, loop=None):
        return replace(super().solve(problem, warm_start, callback, loop), source=None)


@pytest.mark.filterwarnings("ignore:.*leave out a part of the kernel")
@pytest.mark.parametrize(
    ("missing", "parameters"),
    [
        (False, {}),
        (True, {}),
        (False, {"n_components": 4}),
        (False, {"n_components": 4, "representation": "projected"}),
    ],
)
@pytest.mark.filterwarnings("ignore:theta must be between")  # points beyond are compared too
@pytest.mark.parametrize("rank", [None, 3])
def test_predictions_of_weights_are_those_of_the_point(parameters, rank, missing):
    """Of few features, of nearly as many as rows, and of eigenfunctions."""
    X, theta, whole, gaps = draw()
    y = gaps if missing else whole
    kernel = Gaussian(3.0)  # its third eigenvalue is already small
    models = [
        make("huber", kernel=kernel, rank=rank, tol=1e-6, solver=solver, **parameters)
        for solver in (Newton(1e-6), WeightsOnly(1e-6))
    ]
    between = np.linspace(-0.2, 1.3, 9)
    known, weights = (model.fit(X, y, theta).predict(X, between) for model in models)
    np.testing.assert_allclose(weights, known, rtol=0, atol=1e-7)
    assert np.ptp(known) > 0.1


@pytest.mark.parametrize("form", ["complete", "gaps", "pairs"])
@pytest.mark.parametrize("rank", [None, 3])
@pytest.mark.parametrize("solver", [Splitting, Fista, Newton])
def test_predictions_are_those_of_the_certified_model(form, rank, solver):
    """Far from the optimum, where the model of the splitting is not that of the dual point."""
    X, theta, whole, gaps = draw()
    y = whole if form == "complete" else gaps
    curves = (as_pairs(y, theta), None) if form == "pairs" else (y, theta)
    if form == "pairs" and solver is Splitting:
        pytest.skip("does not take them")
    model = make("huber", 1, kernel=Gaussian(3.0), rank=rank, quadrature="trapezoid", tol=1e-2)
    prepared = model.prepare(X, *curves)
    problem = model.make_problem(prepared)
    solution = solver(1e-2).solve(problem)
    model.set_params(solver=Given(solution)).fit_prepared(prepared)
    fitted = problem.design.values(solution.weights)
    mask = np.where(np.isnan(y), 0.0, 1.0)
    np.testing.assert_allclose(
        mask * np.sqrt(model.measure_) * model.predict(X), mask * fitted, rtol=0, atol=1e-9
    )
    assert np.abs(fitted).max() > 0.1
    assert solution.certificate.relative_gap > 1e-9


@dataclass(frozen=True)
class Given:
    """Returns what another solver found."""

    solution: Solution

    def requires(self, problem):
        return None

    def solve(self, problem, warm_start=None, callback=None):
        return self.solution


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("rank", [2, 11])
def test_designs_of_curves(own, rank):
    """The rows of a fit are designs like any others."""
    X, theta, whole, gaps = draw()
    model = make("huber", kernel=Gaussian(1.0), rank=rank)
    prepared = model.prepare(X, as_pairs(gaps, theta) if own else whole, None if own else theta)
    problem = model.make_problem(prepared)
    assert isinstance(problem, Problem)
    assert (problem.design.mask is not None) == own
    complete = problem.design.complete if own else problem.design
    assert isinstance(complete, Plain if rank == 2 else Gram)
    check_design(problem.design)
    values, vectors = problem.design.output_spectrum
    coupling = problem.design.coupling
    np.testing.assert_allclose((vectors * values) @ vectors.T, coupling @ coupling.T, atol=1e-12)


def test_curve_loss_of_a_mask_is_that_of_the_observed_points():
    _, _, whole, gaps = draw()
    seen = ~np.isnan(gaps)
    measure = np.full(9, 1.0 / 9.0)
    loss = curve_loss(LogCosh(0.4), np.where(seen, measure, 0.0))
    scaled = np.where(seen, whole, 0.0) * np.sqrt(measure)
    for i, value in enumerate(loss.value(scaled)):
        own = LogCosh(0.4).value(whole[i, seen[i]][:, None])
        assert value == pytest.approx(own.sum() / 9.0)


def test_the_conic_solver_says_what_it_needs():
    """Kernel rows with gaps have no matrix of all predictions."""
    random = np.random.default_rng(0)
    curves = random.normal(size=(12, 6))
    curves[3, 2] = np.nan
    model = FunctionalRegressor("squared", solver="conic")
    with pytest.raises(ValueError, match="needs features, and the fit has kernel values"):
        model.fit(random.normal(size=(12, 1)), curves)

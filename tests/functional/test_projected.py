"""Problem (5) and Algorithm 2 of the paper: n r coefficients in a truncated eigenbasis."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Gaussian, Laplacian
from functional_conic import curve_optimum

KERNEL, BETWEEN = Gaussian(0.7), Laplacian(0.3)
ALPHA, SIZE, RANK = 1e-3, 0.3, 4
LOSSES = ["squared", "huber", "squared_epsilon_insensitive"]


def draw(n=30, m=20, seed=0):
    """Rows, shifted waves with noise, and uneven points."""
    random = np.random.default_rng(seed)
    X, theta = random.uniform(size=(n, 2)), np.sort(random.uniform(size=m))
    y = np.sin(5.0 * (theta + X[:, :1])) + 0.3 * random.standard_normal((n, m))
    y[0] += 4.0
    return X, y, theta


def make(loss, representation="projected", **parameters):
    chosen = {
        "center": None,
        "kappa": SIZE,
        "epsilon": SIZE,
        "alpha": ALPHA,
        "kernel": KERNEL,
        "output_kernel": BETWEEN,
        "n_components": RANK,
        "features": "cholesky",
        "tol": 1e-10,
    }
    return FunctionalRegressor(loss, 2, representation=representation, **{**chosen, **parameters})


def eigensystem(theta):
    """Eigenvalues of (1/m) Σ_j k(θ, θ_j) ψ(θ_j), and ψ at the points with mean square one."""
    m = len(theta)
    values, vectors = np.linalg.eigh(BETWEEN(theta[:, None]) / m)
    return values[: -RANK - 1 : -1], vectors[:, : -RANK - 1 : -1] * np.sqrt(m)


def threshold(loss):
    return {"squared": {}, "huber": {"kappa": SIZE}}.get(loss, {"epsilon": SIZE})


def printed(K, delta, R, loss, steps=4000):
    """Algorithm 2 as printed, with its momentum (t - 2)/(t + 1) and a fixed step."""
    n = len(K)
    gamma = 1.0 / (1.0 + np.linalg.norm(K, 2) * delta.max() / (ALPHA * n))
    before = now = np.zeros_like(R)
    for t in range(steps):
        V = now + (t - 2) / (t + 1) * (now - before)
        U = V - gamma * (V + K @ (V * delta) / (ALPHA * n) - R)
        length = np.linalg.norm(U, axis=1, keepdims=True)
        if loss == "huber":
            U = np.minimum(SIZE / length, 1.0) * U
        elif loss == "squared_epsilon_insensitive":
            U = np.maximum(1.0 - gamma * SIZE / length, 0.0) * U
        before, now = now, U
    return now


@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_a_conic_solver_in_the_coefficients(loss):
    X, y, theta = draw(14, 9)
    delta, psi = eigensystem(theta)
    model = make(loss).fit(X, y, theta)
    optimum = curve_optimum(
        KERNEL(X), np.diag(delta), y @ psi / 9, np.ones(RANK), ALPHA, norm=2.0, **threshold(loss)
    )
    certificate = model.certificate_
    assert abs(certificate.relative_gap) <= 1e-10
    np.testing.assert_allclose(certificate.primal, optimum.value, rtol=2e-7)
    np.testing.assert_allclose(model.predict(X), optimum.fitted @ psi.T, rtol=0, atol=2e-3)


@pytest.mark.parametrize("solver", ["auto", "fista"])
@pytest.mark.parametrize("loss", LOSSES)
def test_coefficients_and_curves_are_those_of_algorithm_2(loss, solver):
    X, y, theta = draw()
    K = KERNEL(X)
    delta, psi = eigensystem(theta)
    A = printed(K, delta, y @ psi / 20, loss)
    model = make(loss, solver=solver, tol=1e-12).fit(X, y, theta)
    own = ALPHA * 30 * model.dual_coef_ @ psi / 20
    np.testing.assert_allclose(own, A, rtol=0, atol=2e-4)
    np.testing.assert_array_equal(np.any(own != 0.0, axis=1), np.any(A != 0.0, axis=1))
    assert model.sparsity_.rows == np.mean(~A.any(axis=1))
    new, between = np.random.default_rng(1).uniform(size=(5, 2)), np.linspace(0.0, 1.0, 7)
    functions = BETWEEN(between[:, None], theta[:, None]) @ psi / (20 * delta)
    by_hand = KERNEL(new, X) @ (A * delta) @ functions.T / (ALPHA * 30)
    np.testing.assert_allclose(model.predict(new, between), by_hand, rtol=0, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_outside_of_the_span_nothing_counts(loss):
    X, y, theta = draw()
    _, psi = eigensystem(theta)
    other = np.random.default_rng(2).standard_normal(y.shape) * 5.0
    other -= other @ psi @ psi.T / 20
    once, again = (make(loss).fit(X, curves, theta) for curves in (y, y + other))
    np.testing.assert_allclose(again.predict(X), once.predict(X), rtol=0, atol=1e-8)
    np.testing.assert_allclose(again.certificate_.primal, once.certificate_.primal, rtol=1e-10)


def test_all_eigenfunctions_leave_nothing_out():
    X, y, theta = draw()
    for loss in LOSSES:
        fits = [
            make(loss, name, n_components=None).fit(X, y, theta)
            for name in ("projected", "eigen", "spline")
        ]
        for model in fits[1:]:
            np.testing.assert_allclose(model.predict(X), fits[0].predict(X), rtol=0, atol=1e-4)


def test_the_square_loss_does_not_see_the_difference():
    X, y, theta = draw()
    fits = [make("squared", name).fit(X, y, theta) for name in ("projected", "eigen")]
    np.testing.assert_allclose(fits[0].predict(X), fits[1].predict(X), rtol=0, atol=1e-10)


def test_few_eigenfunctions_of_noisy_curves_are_another_problem():
    """The noise outside of the span is longer than ε: no residual is within, but some of (5)."""
    X, y, theta = draw()
    y[0] -= 4.0
    loss = {"epsilon": 0.2, "alpha": 1e-5}
    whole, part = (
        make("squared_epsilon_insensitive", name, **loss).fit(X, y, theta)
        for name in ("eigen", "projected")
    )
    assert whole.sparsity_.rows == 0.0
    assert part.sparsity_.rows > 0.3
    assert part.sparsity_.coefficients == part.sparsity_.rows
    apart = np.abs(whole.predict(X) - part.predict(X)).max()
    assert apart > 0.1 * np.ptp(part.predict(X))

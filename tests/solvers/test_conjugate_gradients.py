"""Ridge by products with the kernel, against the closed form with all of it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from fenchel import KernelRidge
from fenchel.design import Gram, Plain
from fenchel.features import KernelRowLimits as Limits
from fenchel.features import KernelRows
from fenchel.kernels import Computed, Gaussian, Laplacian
from fenchel.losses import Huber, Squared
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm, ConjugateGradients, WarmStart, make_solver
from fenchel.testing import check_solver

KERNEL = Gaussian(1.5)
ONE, THREE = np.eye(1), np.array([[1.0, 0.4, 0.0], [0.0, 0.5, 0.2], [0.3, 0.0, 2.0]])


def problem(stored, coupling=ONE, n=350, alpha=1e-3, fit_intercept=True, weighted=True):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    values = KERNEL(X) if stored else Computed(X, KERNEL)
    targets = np.sin(X[:, :1]) + rng.normal(size=(n, len(coupling)))
    weight = rng.uniform(0.1, 3.0, n) if weighted else np.ones(n)
    return Problem(Squared(), Gram(values, coupling), targets, weight, alpha, fit_intercept)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("coupling", [ONE, np.eye(3), THREE, np.ones((2, 1))])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-1, 1e-5])
def test_the_solution_is_that_of_the_closed_form(stored, coupling, fit_intercept, alpha):
    mine = problem(stored, coupling, alpha=alpha, fit_intercept=fit_intercept)
    exact = ClosedForm().solve(problem(True, coupling, alpha=alpha, fit_intercept=fit_intercept))
    solution = ConjugateGradients(tol=1e-12, rank=60).solve(mine)
    assert solution.status.converged, solution.status.message
    gap = solution.certificate.gap
    best = exact.certificate.dual
    assert solution.certificate.dual <= best + 1e-13
    assert best - 1e-13 <= solution.certificate.primal <= best + gap + 1e-13
    assert_allclose(solution.dual, exact.dual, rtol=0, atol=1e-4 * np.abs(exact.dual).max())
    again = problem(True, coupling, alpha=alpha, fit_intercept=fit_intercept)
    certified = again.certify(solution.dual).certificate  # by the stored kernel
    assert_allclose(certified.dual, solution.certificate.dual, rtol=1e-12)
    assert_allclose(certified.primal, solution.certificate.primal, rtol=1e-12)


@pytest.mark.slow
def test_landmarks_save_steps():
    mine = problem(False, n=600, alpha=1e-5)
    steps = [ConjugateGradients(tol=1e-8, rank=m).solve(mine).n_iter for m in (1, 50, 400, 600)]
    assert steps[0] > steps[1] > steps[2] >= steps[3]
    assert steps[0] > 3 * steps[2]
    assert steps[3] <= 3


def test_the_contract_of_solvers():
    problems = [problem(s, c, n=60) for s in (True, False) for c in (ONE, THREE)]
    check_solver(ConjugateGradients(tol=1e-9, rank=20), problems)


def test_stopping_early_is_honest():
    solution = ConjugateGradients(tol=1e-14, max_iter=2, rank=5).solve(problem(False, alpha=1e-5))
    assert not solution.status.converged
    assert "increase max_iter" in solution.status.message
    assert solution.n_iter == 2
    assert solution.certificate.relative_gap > 1e-14
    stopped = ConjugateGradients(tol=1e-14, rank=5).solve(
        problem(False, alpha=1e-5), callback=lambda p: p.iteration > 0
    )
    assert not stopped.status.converged


@pytest.mark.parametrize("change", ["equal rows", "zero kernel", "huge alpha", "constant y"])
def test_degenerate_problems(change):
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = X[:, :1].copy()
    X[1::2] = X[::2] if change == "equal rows" else X[1::2]
    K = np.zeros((80, 80)) if change == "zero kernel" else KERNEL(X)
    y = np.full((80, 1), 3.0) if change == "constant y" else y
    alpha = 1e60 if change == "huge alpha" else 1e-3
    mine = Problem(Squared(), Gram(K, ONE), y, np.ones(80), alpha)
    solution = ConjugateGradients(tol=1e-9, rank=30).solve(mine)
    assert solution.status.converged, solution.status.message
    assert_allclose(solution.certificate.primal, ClosedForm().solve(mine).certificate.primal)


def test_refusals_say_what_is_missing():
    plain = Problem(Squared(), Plain(np.eye(5), ONE), np.ones((5, 1)), np.ones(5), 1.0)
    with pytest.raises(ValueError, match=r"conjugate_gradients.*needs kernel values"):
        make_solver("conjugate_gradients", plain, 1e-6, 10)
    other = Problem(Huber(), Gram(np.eye(5), ONE), np.ones((5, 1)), np.ones(5), 1.0)
    with pytest.raises(ValueError, match=r"conjugate_gradients.*needs the squared loss"):
        make_solver("conjugate_gradients", other, 1e-6, 10)
    with pytest.raises(ValueError, match=r"closed_form.*solver='conjugate_gradients'"):
        make_solver("closed_form", problem(False), 1e-6, 10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("coupling", [ONE, THREE])
def test_a_start_spares_steps(coupling, fit_intercept):
    solver = ConjugateGradients(tol=1e-9, rank=30)
    mine = problem(False, coupling, alpha=1e-4, fit_intercept=fit_intercept)
    cold = solver.solve(mine)
    start = WarmStart(cold.dual, cold.offset, 1e-4)
    again = solver.solve(mine, start)
    assert again.status.converged
    assert again.n_iter < 0.7 * cold.n_iter
    other = problem(False, coupling, alpha=1.1e-4, fit_intercept=fit_intercept)
    near, far = solver.solve(other, start), solver.solve(other)
    assert near.n_iter < far.n_iter
    assert_allclose(near.dual, far.dual, rtol=0, atol=1e-3 * np.abs(far.dual).max())


@pytest.mark.slow
def test_an_estimator_whose_kernel_is_not_stored():
    n, rng = 2500, np.random.default_rng(3)
    X = rng.normal(size=(n, 6))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    stored = KernelRidge(1e-3, kernel=Laplacian(2.0), tol=1e-10).fit(X, y)
    solver = ConjugateGradients(tol=1e-10, rank=200)
    model = stored.with_parameters(features=KernelRows(stored=False), solver=solver)
    tracemalloc.start()
    model.fit(X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stored.feature_map_.rank_ == n
    assert model.certificate_.relative_gap <= 1e-10
    assert most < 0.5 * 8 * n**2
    assert_allclose(model.predict(X), stored.predict(X), rtol=0, atol=1e-4)
    assert_allclose(model.loo_residuals_, stored.loo_residuals_, rtol=0, atol=1e-3)
    assert isinstance(make_solver("auto", problem(False), 1e-6, 10), ConjugateGradients)


def test_landmarks_are_drawn_where_rows_before_leave_most():
    """Few rows far from a crowd: equal steps would hardly ever meet them."""
    rng = np.random.default_rng(5)
    X = np.concatenate([0.05 * rng.normal(size=(1000, 3)), 8.0 * rng.normal(size=(30, 3))])
    rng.shuffle(X)
    y = rng.normal(size=(len(X), 1))
    mine = Problem(Squared(), Gram(Computed(X, KERNEL), ONE), y, np.ones(len(X)), 1e-7)
    solution = ConjugateGradients(tol=1e-6, rank=150).solve(mine)
    assert solution.status.converged
    assert solution.n_iter <= 4


@pytest.mark.slow
def test_more_rows_than_are_stored_and_the_kernel_as_given():
    """Residuals and norm from kernel values by SciPy, in blocks."""
    n, alpha, width, rng = 10_050, 1e-4, 2.0, np.random.default_rng(3)
    X = rng.normal(size=(n, 8))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    model = KernelRidge(alpha, kernel=Gaussian(width)).fit(X, y)
    assert isinstance(model.feature_map_, KernelRows)
    u, image = np.zeros(n), np.empty(n)
    u[model.support_] = model.dual_coef_[:, 0]
    for start in range(0, n, 1000):
        rows = slice(start, start + 1000)
        squares = cdist(X[rows], X, "sqeuclidean")
        image[rows] = np.exp(squares * (-0.5 / width**2)) @ u
    residual = y - image - model.offset_[0]
    primal = 0.5 * alpha * u @ image + 0.5 * np.mean(residual**2)
    beta = alpha * n * u
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    dual = np.mean(beta * y - 0.5 * beta**2) - 0.5 * alpha * u @ image
    unit = 0.5 * np.var(y)
    assert -1e-12 <= (primal - dual) / unit <= 1e-6
    assert model.certificate_.relative_gap <= 1e-6
    assert_allclose(model.certificate_.primal, primal, rtol=1e-9)
    assert_allclose(model.certificate_.dual, dual, rtol=1e-9)
    assert_allclose(model.predict(X[:50]), y[:50] - residual[:50], rtol=0, atol=1e-9)


def test_what_has_use_for_few_features_gets_them(monkeypatch):
    """Searches, bounds on the norm and other solvers: as few as there are without this."""
    monkeypatch.setattr("fenchel.regression.ridge.KernelRowLimits", lambda _, n: Limits(200, n))
    rng = np.random.default_rng(4)
    X = rng.normal(size=(250, 8))  # with more features models keep kernel values in their place
    y = X[:, 0] + 0.3 * rng.normal(size=250)
    model = KernelRidge(1e-3, kernel=Gaussian(1.0))
    assert isinstance(model.fit(X, y).feature_map_, KernelRows)
    assert not model.feature_map_.stored
    assert not isinstance(model.prepare(X, y).inputs.feature_map, KernelRows)
    assert isinstance(model.fit(X, y).feature_map_, KernelRows)
    for other in ({"solver": "newton"}, {"solver": "closed_form"}, {"alpha": None, "radius": 1.0}):
        fitted = model.with_parameters(**other).fit(X, y)
        assert not isinstance(fitted.feature_map_, KernelRows)
    K = Gaussian(1.0)(X)
    inverse = np.linalg.inv(K + 0.25 * np.eye(250))
    centred = inverse - np.outer(inverse.sum(0), inverse.sum(0)) / inverse.sum()
    assert_allclose(model.loo_residuals_, (centred @ y) / centred.diagonal(), atol=2e-3)
    monkeypatch.setattr("fenchel.regression.ridge._MOST_FACTORED", 240)
    with pytest.raises(AttributeError, match=r"loo_residuals_ needs .* at most 240 rows, got 250"):
        _ = model.fit(X, y).loo_residuals_


def test_the_same_digits_for_any_number_of_threads():
    found = []
    for limit in (1, 3):
        with threadpool_limits(limit):
            found.append(ConjugateGradients(rank=300).solve(problem(False, n=4500)).dual)
    assert_array_equal(*found)

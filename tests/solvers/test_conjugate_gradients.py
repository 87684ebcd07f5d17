"""Ridge by products with the kernel, against the closed form with all of it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fenchel import KernelRidge
from fenchel.design import Computed, Gram, Plain
from fenchel.features import KernelRows
from fenchel.kernels import Gaussian, Laplacian
from fenchel.losses import Huber, Squared
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm, ConjugateGradients, make_solver
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
    with pytest.raises(ValueError, match=r"conjugate_gradients.*needs a kernel by its values"):
        make_solver("conjugate_gradients", plain, 1e-6, 10)
    other = Problem(Huber(), Gram(np.eye(5), ONE), np.ones((5, 1)), np.ones(5), 1.0)
    with pytest.raises(ValueError, match=r"conjugate_gradients.*needs the squared loss"):
        make_solver("conjugate_gradients", other, 1e-6, 10)
    with pytest.raises(ValueError, match=r"closed_form.*solver='conjugate_gradients'"):
        make_solver("closed_form", problem(False), 1e-6, 10)


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

"""Chapter 11 of Foundations of Machine Learning: its duals and identities, solved as printed.

With its slips corrected: (11.27) needs K + I/(2C) for C Σ|·|²_ε and has no upper bound, and
(11.34) divides by one minus what is printed. Estimators see none of this: here are only K, y,
C and Clarabel.
"""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from fenchel import SVR, KernelRidge
from fenchel.features import Explicit, KernelRows
from fenchel.kernels import Gaussian, Laplacian

M, EPSILON, THRESHOLD = 40, 0.15, 0.25
RNG = np.random.default_rng(11)
X = RNG.uniform(-1.0, 1.0, size=(M, 2))
Y = 3.0 + np.sin(3.0 * X[:, 0]) + 0.3 * RNG.standard_t(3, size=M)
KERNEL = Laplacian(0.6)
K = KERNEL(X)
STRENGTHS = pytest.mark.parametrize("C", [0.3, 3.0, 30.0])


def tube_dual(matrix, epsilon, bound):
    """(11.23) and (11.27): value and α' - α.

    max -ε(α' + α)ᵀ1 + (α' - α)ᵀy - ½(α' - α)ᵀ matrix (α' - α), 0 <= α, α' <= bound, sum zero.
    """
    difference = np.hstack([-np.eye(M), np.eye(M)])  # of (α, α')
    linear = epsilon * np.ones(2 * M) - difference.T @ Y
    value, both = quadratic_program(
        difference.T @ matrix @ difference, linear, np.ones((1, M)) @ difference, 0.0, bound
    )
    return value, difference @ both


def box_dual(matrix, bound):
    """Exercise 11.5: max αᵀy - ½αᵀ matrix α, |α_i| <= bound, Σα = 0; value and α."""
    return quadratic_program(matrix, -Y, np.ones((1, M)), -bound, bound)


def quadratic_program(square, linear, equal, low, high):
    """Value of max -½xᵀPx - qᵀx with A x = 0 and low <= x <= high, and x."""
    n = len(linear)
    blocks, right = [equal, -np.eye(n)], [np.zeros(len(equal)), -low * np.ones(n)]
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(n)]
    if np.isfinite(high):
        blocks.append(np.eye(n))
        right.append(high * np.ones(n))
        cones.append(clarabel.NonnegativeConeT(n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(square)),
        linear,
        sparse.csc_matrix(np.vstack(blocks)),
        np.concatenate(right),
        cones,
        settings,
    )
    result = solver.solve()
    assert str(result.status) in ("Solved", "AlmostSolved")
    return -result.obj_val, np.array(result.x)


def fitted(loss, alpha, epsilon=EPSILON):
    numbers = {"epsilon": epsilon, "kappa": THRESHOLD, "alpha": alpha}
    return SVR(loss, **numbers, kernel=KERNEL, tol=1e-13).fit(X, Y)


def coefficients(model):
    whole = np.zeros(M)
    whole[model.support_] = model.dual_coef_[:, 0]
    return whole


def check(model, value, dual):
    """The same value, (w, b) and dual coefficients; the dual is strictly concave in them."""
    assert model.certificate_.dual == pytest.approx(model.alpha * value, rel=1e-8)
    assert model.certificate_.primal == pytest.approx(model.alpha * value, rel=1e-8)
    scale = np.abs(dual).max()
    np.testing.assert_allclose(coefficients(model), dual, atol=1e-5 * scale)


def check_offsets(model, offsets):
    assert len(offsets) > 0
    np.testing.assert_allclose(offsets, model.offset_[0], atol=1e-6)


@STRENGTHS
def test_support_vector_regression(C):
    """(11.20), (11.23), and the offsets (11.25) and (11.26): C = 1 / (alpha m)."""
    model = fitted("epsilon_insensitive", 1.0 / (C * M))
    value, dual = tube_dual(K, EPSILON, C)
    check(model, value, dual)
    own = coefficients(model)
    free = np.flatnonzero((np.abs(own) > 1e-6 * C) & (np.abs(own) < (1 - 1e-6) * C))
    check_offsets(model, (Y - K @ own - EPSILON * np.sign(own))[free])


@STRENGTHS
def test_quadratic_support_vector_regression(C):
    """(11.27) for C Σ|·|²_ε: C = 1 / (2 alpha m), factor K + I/(2C), all support vectors free."""
    model = fitted("squared_epsilon_insensitive", 1.0 / (2.0 * C * M))
    value, dual = tube_dual(K + np.eye(M) / (2.0 * C), EPSILON, np.inf)
    check(model, value, dual)
    own = coefficients(model)
    support = np.flatnonzero(own)
    offsets = Y - K @ own - np.sign(own) * (EPSILON + np.abs(own) / (2.0 * C))
    check_offsets(model, offsets[support])
    # the textbook's rule, as for the loss without the square, does not give the offset
    wrong = Y - K @ own - np.sign(own) * EPSILON
    assert np.ptp(wrong[support]) > 1e-2


@STRENGTHS
def test_quadratic_dual_as_printed_is_that_of_half_the_loss(C):
    """K + I/C belongs to (C/2) Σ|·|²_ε, which is alpha = 1 / (C m) here, and to no other."""
    value, dual = tube_dual(K + np.eye(M) / C, EPSILON, np.inf)
    check(fitted("squared_epsilon_insensitive", 1.0 / (C * M)), value, dual)
    stated = fitted("squared_epsilon_insensitive", 1.0 / (2.0 * C * M))
    assert stated.certificate_.dual / stated.alpha > value * (1 + 1e-3)


@STRENGTHS
def test_huber(C):
    """Exercise 11.5: K + I/C in the box |α_i| <= C c; free rows have y - f - α/C = b."""
    model = fitted("huber", 1.0 / (C * M))
    value, dual = box_dual(K + np.eye(M) / C, C * THRESHOLD)
    check(model, value, dual)
    own = coefficients(model)
    free = np.flatnonzero(np.abs(own) < (1 - 1e-6) * C * THRESHOLD)
    check_offsets(model, (Y - K @ own - own / C)[free])
    # and the primal from its definition: quadratic up to c, then linear
    residual = Y - K @ own - model.offset_[0]
    size = np.abs(residual)
    loss = np.where(size <= THRESHOLD, 0.5 * size**2, THRESHOLD * size - 0.5 * THRESHOLD**2)
    assert 0.5 * own @ K @ own + C * loss.sum() == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("C", [0.3, 30.0])
def test_quadratic_without_tube_is_kernel_ridge(C):
    alpha = 1.0 / (2.0 * C * M)
    model = fitted("squared_epsilon_insensitive", alpha, 0.0)
    ridge = KernelRidge(alpha, kernel=KERNEL).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.offset_, ridge.offset_, rtol=0, atol=1e-10)
    # and the system that (11.27) has then: (K + I/(2C)) α + b = y, Σα = 0
    system = np.ones((M + 1, M + 1))
    system[:M, :M], system[M, M] = K + np.eye(M) / (2.0 * C), 0.0
    solved = np.linalg.solve(system, np.append(Y, 0.0))
    np.testing.assert_allclose(coefficients(model), solved[:M], rtol=0, atol=1e-10 * C)
    np.testing.assert_allclose(model.offset_, solved[M], rtol=0, atol=1e-10)
    # Newton knows nothing of that system; ½‖h - h*‖² <= gap <= tol P(0, mean), and k(x, x) = 1
    newton = SVR("squared_epsilon_insensitive", epsilon=0.0, alpha=alpha, kernel=KERNEL)
    newton.set_params(solver="newton", tol=1e-14).fit(X, Y)
    bound = np.sqrt(2.0 * 1e-14 * C * np.sum((Y - Y.mean()) ** 2))
    assert newton.certificate_.gap <= 0.5 * bound**2
    ours, exact = (each.predict(X) - each.offset_ for each in (newton, ridge))
    np.testing.assert_allclose(ours, exact, rtol=0, atol=bound)


# Kernel ridge regression


@pytest.mark.parametrize("lam", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("d", [3, 12])
def test_primal_is_dual(d, lam):
    """Table 11.1: (XXᵀ + λI)⁻¹XY (11.14) and X(K + λI)⁻¹Y (11.18), by both ways to fit."""
    rng = np.random.default_rng(d)
    Z, new = rng.normal(size=(M, d)), rng.normal(size=(7, d))
    primal = np.linalg.solve(Z.T @ Z + lam * np.eye(d), Z.T @ Y)
    dual = np.linalg.solve(Z @ Z.T + lam * np.eye(M), Y)
    ways = {"auto": Explicit, "kernel_rows": KernelRows}
    for features, kind in ways.items():
        params = {"kernel": "linear", "fit_intercept": False, "features": features}
        model = KernelRidge(lam / M, **params).fit(Z, Y)
        assert isinstance(model.feature_map_, kind)
        np.testing.assert_allclose(model.predict(new), new @ primal, rtol=0, atol=1e-10)
        np.testing.assert_allclose(coefficients(model), dual, rtol=1e-10, atol=1e-10 / lam)
        np.testing.assert_allclose(Z.T @ coefficients(model), primal, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (Gaussian(0.7), sk.RBF(0.7)),
        (Laplacian(0.6), sk.Matern(0.6, nu=0.5)),
        (2.0 * sk.Matern(0.5, nu=1.5), 2.0 * sk.Matern(0.5, nu=1.5)),
    ],
    ids=["gaussian", "laplacian", "matern"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_ridge_is_the_posterior_mean_of_a_gaussian_process(weighted, kernel, theirs):
    """With noise of variance αN / s_i."""
    weight = np.random.default_rng(0).uniform(0.3, 2.0, M) if weighted else np.ones(M)
    noise = 1e-2 * weight.sum() / weight
    process = GaussianProcessRegressor(theirs, alpha=noise, optimizer=None).fit(X, Y)
    model = KernelRidge(
        1e-2, kernel=kernel, learn=False, fit_intercept=False, features="kernel_rows"
    )
    model.fit(X, Y, weight)
    new = np.random.default_rng(1).uniform(-1.0, 1.0, size=(20, 2))
    np.testing.assert_allclose(model.predict(new), process.predict(new), rtol=0, atol=1e-10)


def textbook_ridge(gram, targets, lam):
    """Dual coefficients (11.17)."""
    return np.linalg.solve(gram + lam * np.eye(len(gram)), targets)


@pytest.mark.parametrize("lam", [1e-2, 1.0, 10.0])
def test_leave_one_out_error(lam):
    """(11.34) with 1 - e_iᵀ(K + λI)⁻¹K e_i in the denominator, and the steps (a) and (b)."""
    left_out = np.empty(M)
    for i in range(M):
        rest = np.flatnonzero(np.arange(M) != i)
        dual = textbook_ridge(K[np.ix_(rest, rest)], Y[rest], lam)
        left_out[i] = K[i, rest] @ dual
        replaced = Y.copy()
        replaced[i] = left_out[i]
        # (a) fitting to y with y_i replaced by the prediction gives the same function
        again = textbook_ridge(K, replaced, lam)
        np.testing.assert_allclose(K[:, rest] @ dual, K @ again, rtol=0, atol=1e-10)
        # (b)
        assert replaced @ np.linalg.solve(K + lam * np.eye(M), K[:, i]) == pytest.approx(
            left_out[i], abs=1e-10
        )
    model = KernelRidge(lam / M, kernel=KERNEL, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(model.loo_residuals_, Y - left_out, rtol=0, atol=1e-10)
    hat = np.diag(np.linalg.solve(K + lam * np.eye(M), K))
    fit = model.predict(X)
    corrected = np.mean(((fit - Y) / (1.0 - hat)) ** 2)
    assert model.loo_error_ == pytest.approx(corrected, rel=1e-10)
    printed = np.mean(((fit - Y) / hat) ** 2)
    assert abs(printed - corrected) > 1e-2 * corrected


def test_leave_one_out_error_with_a_constant_diagonal():
    """Exercise 11.9 (d): R_LOO = R / (1 - γ)², so that they coincide for γ = 0 only."""
    angles = 2.0 * np.pi * np.arange(M) / M
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    for lam in (0.1, 10.0):
        model = KernelRidge(lam / M, kernel=KERNEL, fit_intercept=False).fit(circle, Y)
        gram = KERNEL(circle)
        gamma = np.diag(np.linalg.solve(gram + lam * np.eye(M), gram))
        assert np.ptp(gamma) <= 1e-12
        error = np.mean((Y - model.predict(circle)) ** 2)
        assert model.loo_error_ == pytest.approx(error / (1.0 - gamma[0]) ** 2, rel=1e-10)


# Exercise 11.8


def test_the_best_kernel_matrix_says_nothing():
    """(11.16) at its maximum is yᵀ(K + λ I)⁻¹y; the least over ‖K‖ <= 1 is that of yyᵀ/‖y‖²."""
    strength = 0.7
    centred = Y - Y.mean()

    def value(matrix, y):
        return y @ np.linalg.solve(matrix + strength * np.eye(M), y)

    def best(y):
        return np.outer(y, y) / (y @ y)

    random = np.random.default_rng(0)
    least = value(best(centred), centred)
    assert least == pytest.approx(centred @ centred / (1.0 + strength))
    for _ in range(200):
        basis = np.linalg.qr(random.standard_normal((M, M)))[0]
        other = (basis * random.uniform(0.0, 1.0, M)) @ basis.T
        mixed = 0.5 * best(centred) + 0.5 * other
        assert least <= min(value(other, centred), value(mixed, centred)) + 1e-12
    # by the estimator: the objective of the fit is half of that, over n, times λ
    for y in (centred, random.permutation(centred)):
        model = KernelRidge(strength / M, kernel="precomputed", fit_intercept=False)
        model.fit(best(y), y)
        expected = 0.5 * strength / M * value(best(y), y)
        assert model.certificate_.primal == pytest.approx(expected)
        # whatever y is, noise as well, its fit is a multiple of it: nothing was learned
        np.testing.assert_allclose(model.predict(best(y)), y / (1.0 + strength))

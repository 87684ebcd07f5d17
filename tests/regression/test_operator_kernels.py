"""Estimators with operator-valued kernels: the same problems, the same certificate."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import fenchel
from conic import conic_optimum
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.design import Operator, Plain
from fenchel.features import Nystroem, OperatorCholesky, PivotedCholesky
from fenchel.kernels import (
    Decomposable,
    Gaussian,
    Laplacian,
    OperatorCallable,
    Transformable,
    level_coupling,
)
from fenchel.losses import Absolute, Pinball, Squared, SquaredPinball
from fenchel.model_selection import PathSearchCV
from fenchel.problem import Problem
from fenchel.solvers import SOLVERS, Newton, make_solver
from fenchel.solvers.newton_spaces import FeatureSpace
from fenchel.solvers.newton_system import Kinks, solve_in_kinks, solve_in_weights

LEVELS = [0.1, 0.5, 0.9]
N = 40
RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-1.0, 1.0, size=(N, 2))
Y = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1] + (0.2 + 0.2 * X[:, 0]) * RANDOM.normal(size=N)
Y3 = np.column_stack([Y, X[:, 1] - Y, 2.0 * np.cos(2 * X[:, 0]) + 0.1 * RANDOM.normal(size=N)])
WEIGHT = RANDOM.uniform(0.2, 2.0, N)
NEW = RANDOM.uniform(-1.0, 1.0, size=(25, 2))
B = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])
MAPS = [np.diag(scale) for scale in ([1.0, 0.5], [0.7, 0.7], [0.2, 1.3])]


def twisted(X, Z):
    """Blocks R(x) k(x, z) R(z)ᵀ, no two of which are multiples of each other."""

    def rotation(rows):
        angle = rows[:, 0]
        turned = np.zeros((len(rows), 3, 3))
        turned[:, 0, 0] = turned[:, 1, 1] = np.cos(angle)
        turned[:, 0, 1], turned[:, 1, 0] = -np.sin(angle), np.sin(angle)
        turned[:, 2, 2] = 1.0 + 0.5 * rows[:, 1]
        return turned

    k = np.exp(-np.sum((X[:, None] - Z) ** 2, axis=2))
    return np.einsum("ijk,im,mlk->imjl", rotation(X), k, rotation(Z))


KERNELS = {
    "sum": Decomposable(Gaussian(1.0), B) + Decomposable("linear", np.ones((3, 3))),
    "transformable": Transformable(Gaussian(0.8), MAPS),
    "rough": Transformable(Laplacian(1.0), MAPS),
    "callable": OperatorCallable(twisted, 3),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
with_intercept = pytest.mark.parametrize("fit_intercept", [True, False])


def matrix(kernel, X, Z=None):
    """The (n p, m p) matrix of the operator."""
    blocks = kernel.blocks(X, Z)
    n, m, p, _ = blocks.shape
    return blocks.transpose(0, 2, 1, 3).reshape(n * p, m * p)


def factor(K):
    """Some L with L Lᵀ = K."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def problem_of(loss, kernel, targets, weight=None, fit_intercept=True, alpha=1e-2):
    features = OperatorCholesky(kernel).fit_transform(X)
    weight = np.ones(N) if weight is None else weight
    return Problem(loss, Operator(features), targets, weight, alpha, fit_intercept)


# A decomposable kernel is the built-in one


@with_intercept
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("levels", [[0.3], LEVELS])
@pytest.mark.parametrize("estimator", [QuantileRegressor, ExpectileRegressor])
def test_decomposable_is_the_ordinary_estimator(
    estimator, levels, epsilon, weighted, fit_intercept
):
    weight = WEIGHT if weighted else None
    model = estimator(
        levels,
        epsilon=epsilon,
        alpha=1e-2,
        learn=False,
        fit_intercept=fit_intercept,
        tol=1e-10,
    )
    S = level_coupling(np.array(levels), 1.0)
    ordinary = model.fit(X, Y, weight)
    operator = clone(model).set_params(kernel=Decomposable(None, S @ S.T)).fit(X, Y, weight)
    assert operator.kernel_.kernel == ordinary.kernel_  # the same width, weights included
    same_fit(operator, ordinary)


def same_fit(operator, ordinary):
    """Optimal values within the two gaps, functions within what these gaps allow."""
    mine, other = operator.certificate_, ordinary.certificate_
    assert max(mine.relative_gap, other.relative_gap) <= 1e-10
    unit = operator.loss_.value(Y3[:, : operator.offset_.size]).mean() / operator.alpha
    assert abs(mine.primal - other.primal) <= 1e-8 * unit  # features are exact to 1e-10
    expected = ordinary.predict(NEW)
    np.testing.assert_allclose(operator.predict(NEW), expected, atol=2e-5 * np.ptp(Y))
    constant = np.broadcast_to(operator.offset_, operator._decision(NEW).shape)
    assert np.ptp(operator._decision(NEW) - constant) > 0.1  # no constant functions


@with_intercept
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(),
        SVR(epsilon=0.3),
        SVR("huber", kappa=0.1),
        SVR("squared_epsilon_insensitive", epsilon=0.1),
    ],
    ids=["ridge", "svr", "huber", "squared svr"],
)
def test_identity_is_the_ordinary_estimator(model, p, weighted, fit_intercept):
    weight, y = WEIGHT if weighted else None, Y3[:, :p]
    model = clone(model).set_params(
        alpha=1e-2, learn=False, fit_intercept=fit_intercept, tol=1e-10
    )
    ordinary = model.fit(X, y, weight)
    operator = clone(model).set_params(kernel=Decomposable(None, np.eye(p))).fit(X, y, weight)
    same_fit(operator, ordinary)


# Independent solutions


def dense_ridge(kernel, y, weight, alpha, fit_intercept):
    """Dual coefficients, offset and objective from (K + diag(1/c)) a = y - b, all dense."""
    n, p = y.shape
    K = matrix(kernel, X)
    c = np.repeat(weight / (alpha * weight.sum()), p)
    ones = np.tile(np.eye(p), (n, 1)) * float(fit_intercept)
    corner = np.eye(p) * float(not fit_intercept)
    system = np.block([[K + np.diag(1.0 / c), ones], [ones.T, corner]])
    solved = np.linalg.solve(system, np.concatenate([y.ravel(), np.zeros(p)]))
    a, b = solved[: n * p], solved[n * p :]
    residual = y.ravel() - K @ a - ones @ b
    return a.reshape(n, p), b, alpha * (0.5 * a @ K @ a + 0.5 * c @ residual**2)


@every_kernel
@with_intercept
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_loss_against_the_dense_system(kernel, fit_intercept, weighted):
    weight = WEIGHT if weighted else np.ones(N)
    a, b, value = dense_ridge(kernel, Y3, weight, 1e-2, fit_intercept)
    model = KernelRidge(1e-2, kernel=kernel, fit_intercept=fit_intercept, tol=1e-12)
    model.fit(X, Y3, weight if weighted else None)
    np.testing.assert_allclose(model.certificate_.primal, value, rtol=1e-8)
    np.testing.assert_allclose(model.offset_, b, atol=1e-6)
    np.testing.assert_allclose(model.dual_coef_, a, atol=1e-5 * np.abs(a).max())
    expected = (matrix(kernel, NEW, X) @ a.ravel()).reshape(-1, 3) + b
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-6)


@every_kernel
@with_intercept
@pytest.mark.parametrize(
    ("loss", "epsilon"),
    [
        (Pinball(LEVELS), 0.0),
        (Pinball(LEVELS), 0.2),
        (SquaredPinball(LEVELS), 0.0),
        (SquaredPinball(LEVELS), 0.2),
        (Absolute(), 0.0),
        (Squared().huber(0.3, norm=2), 0.0),
    ],
    ids=["pinball", "pinball eps", "expectile", "expectile eps", "l1", "huber"],
)
def test_against_clarabel(loss, epsilon, kernel, fit_intercept):
    """The referee gets a dense factor of the (n p, n p) matrix, and no features."""
    targets = Y[:, None] if hasattr(loss, "levels") else Y3
    problem = problem_of(
        loss.insensitive(epsilon), kernel, targets, WEIGHT, fit_intercept, alpha=3e-2
    )
    L = factor(matrix(kernel, X))
    optimum = conic_optimum(problem, design=L)
    unit = problem.baseline
    solution = Newton(tol=1e-9).solve(problem)
    found = solution.certificate
    assert solution.status.converged
    assert found.dual <= optimum.value + 1e-7 * unit
    assert found.primal >= optimum.lower - 1e-7 * unit
    assert abs(found.primal - optimum.value) <= 1e-7 * unit
    mine = problem.design.values(solution.weights)
    other = (L @ optimum.weights).reshape(N, 3)
    # alpha ½‖h - h*‖² is at most the two gaps together, by strong convexity
    largest = np.sqrt(2.0 * 3e-7 * unit / problem.alpha * kernel.diag(X).max())
    np.testing.assert_allclose(mine, other, atol=largest)
    assert np.ptp(other) > 10.0 * largest


@pytest.mark.parametrize("loss", [Pinball(LEVELS), Pinball(LEVELS).insensitive(0.2)], ids=repr)
def test_conic_solver_agrees(loss):
    problem = problem_of(loss, KERNELS["transformable"], Y[:, None])
    mine = make_solver("auto", problem, 1e-9, 1000).solve(problem).certificate
    other = make_solver("conic", problem, 1e-6, 200).solve(problem)
    assert other.status.converged
    assert abs(mine.primal - other.certificate.primal) <= 2e-6 * problem.baseline


# What a fit promises


@every_kernel
@pytest.mark.parametrize(
    "model",
    [QuantileRegressor(LEVELS), QuantileRegressor(LEVELS, epsilon=0.3), SVR(), KernelRidge()],
    ids=["quantile", "quantile eps", "svr", "ridge"],
)
def test_attributes_of_a_fit(model, kernel):
    y = Y if isinstance(model, QuantileRegressor) else Y3
    model = clone(model).set_params(kernel=kernel, tol=1e-8).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-8
    assert isinstance(model.feature_map_, OperatorCholesky)
    assert model.kernel_error_ <= 1e-10
    assert model.weights_.shape == (model.feature_map_.rank_,)
    a = model.dual_coef_
    np.testing.assert_allclose(a.sum(axis=0), 0.0, atol=1e-10 * np.abs(a).sum())
    np.testing.assert_array_equal(model.coupling_, np.eye(3))
    # the function of the dual coefficients is the one that predicts
    expected = (matrix(kernel, NEW, X[model.support_]) @ a.ravel()).reshape(-1, 3)
    np.testing.assert_allclose(model.predict(NEW), expected + model.offset_, atol=1e-5)
    # and the certificate's objective is that of the definition
    residual = y.reshape(N, -1) - model.predict(X)
    K = matrix(kernel, X[model.support_])
    value = 0.5 * model.alpha_ * a.ravel() @ K @ a.ravel() + model.loss_.value(residual).mean()
    np.testing.assert_allclose(value, model.certificate_.primal, rtol=1e-6)
    assert 0.1 < model.score(X, y) <= 1.0
    if isinstance(model, QuantileRegressor):
        assert model.crossing_loss(X) >= 0.0
        if model.epsilon:
            assert len(model.support_) < N


def test_weights_are_repetition():
    weight = RANDOM.integers(0, 4, N)
    kernel = Transformable(Gaussian("median"), MAPS)
    model = QuantileRegressor(LEVELS, kernel=kernel, tol=1e-10)
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(
        weighted.certificate_.primal, repeated.certificate_.primal, rtol=1e-8
    )
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), atol=1e-5)


def test_rank_caps_and_warns():
    model = KernelRidge(kernel=KERNELS["rough"], rank=20)
    with pytest.warns(ConvergenceWarning, match="20 features leave out a part of the kernel"):
        model.fit(X, Y3)
    assert model.weights_.shape == (20,)
    whole = KernelRidge(kernel=KERNELS["rough"]).fit(X, Y3).certificate_
    assert model.certificate_.dual <= whole.primal
    assert model.certificate_.relative_gap > 1e-6


@with_intercept
def test_curves_that_must_not_cross(fit_intercept):
    kernel = Decomposable(Gaussian(0.2), B) + KERNELS["transformable"]
    free = QuantileRegressor(
        [0.4, 0.5, 0.6], kernel=kernel, alpha=1e-3, fit_intercept=fit_intercept
    )
    assert free.fit(X, Y).crossing_loss(X) > 1e-3
    ordered = clone(free).set_params(non_crossing="train").fit(X, Y)
    assert ordered.certificate_.relative_gap <= 1e-6
    assert ordered.crossing_loss(X) <= 1e-9
    problem = problem_of(
        ordered.loss_, kernel, Y[:, None], fit_intercept=fit_intercept, alpha=1e-3
    )
    optimum = conic_optimum(problem, design=factor(matrix(kernel, X)))
    assert abs(ordered.certificate_.primal - optimum.value) <= 2e-6 * problem.baseline


def test_warm_start_saves_steps():
    model = QuantileRegressor(LEVELS, kernel=KERNELS["sum"], warm_start=True).fit(X, Y)
    steps = model.n_iter_
    again = model.set_params(alpha=model.alpha_ * 1.01).fit(X, Y)
    assert again.certificate_.relative_gap <= 1e-6
    assert again.n_iter_ < steps


def test_many_rows_start_from_few(monkeypatch):
    monkeypatch.setattr("fenchel.solvers.newton._COARSE_ROWS", N)
    problem = problem_of(Pinball(LEVELS), KERNELS["transformable"], Y[:, None])
    started = Newton(tol=1e-8).solve(problem)
    monkeypatch.undo()
    assert started.status.converged
    plain = Newton(tol=1e-8).solve(problem).certificate.primal
    assert abs(started.certificate.primal - plain) <= 2e-8 * problem.baseline


@pytest.mark.parametrize("kernel", list(KERNELS.values())[:3], ids=list(KERNELS)[:3])
def test_files_give_back_the_model(kernel, tmp_path):
    model = QuantileRegressor(LEVELS, kernel=kernel, epsilon=0.1).fit(X, Y)
    same = fenchel.load(fenchel.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(same.predict(NEW), model.predict(NEW))
    assert same.certificate_ == model.certificate_
    assert type(same.kernel_) is type(kernel)


def test_files_name_functions_and_ask_for_trust(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, twisted.__module__, sys.modules[__name__])
    model = KernelRidge(kernel=OperatorCallable(twisted, 3)).fit(X, Y3)
    path = fenchel.save(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match="twisted"):
        fenchel.load(path)
    same = fenchel.load(path, trusted=[f"{__name__}.twisted"])
    np.testing.assert_array_equal(same.predict(NEW), model.predict(NEW))


def test_files_refuse_functions_they_cannot_name(tmp_path):
    model = KernelRidge(kernel=Transformable("linear", [lambda X: X]))
    with pytest.raises(TypeError, match=r"function .*lambda"):
        fenchel.save(model, tmp_path / "model.skops")


@every_kernel
def test_cross_validation(kernel):
    alphas = [1e-1, 1e-3]
    quantiles = QuantileRegressor(LEVELS, kernel=kernel)
    search = PathSearchCV(quantiles, {"alpha": alphas}, cv=3).fit(X, Y)
    plain = QuantileRegressor(
        LEVELS, kernel=kernel, alpha=search.alpha_, refit_offsets="held_out"
    ).fit(X, Y)
    np.testing.assert_array_equal(search.predict(NEW), plain.predict(NEW))


def test_cross_validation_finds_strengths_unaided():
    search = PathSearchCV(KernelRidge(kernel=KERNELS["sum"]), {"alpha": 5}, cv=3).fit(X, Y3)
    assert search.best_score_ > 0.5
    assert 0 < search.best_index_ < 4


def test_default_strengths_are_those_of_the_scalar_kernel():
    scalar, operator = (
        model.path_grid(model.prepare(X, Y3), "alpha", 5)
        for model in (
            KernelRidge(kernel=Gaussian(0.5)),
            KernelRidge(kernel=Decomposable(Gaussian(0.5), np.eye(3))),
        )
    )
    np.testing.assert_allclose(operator, scalar, rtol=1e-9)


# What is refused


def test_outputs_must_match():
    with pytest.raises(
        ValueError, match="each level or column of y, 2 here, got Transformable with 3"
    ):
        QuantileRegressor([0.1, 0.9], kernel=KERNELS["transformable"]).fit(X, Y)
    with pytest.raises(ValueError, match="1 here, got OperatorSum with 3"):
        KernelRidge(kernel=KERNELS["sum"]).fit(X, Y)


@pytest.mark.parametrize("features", ["nystroem", "fourier", "kernel_rows", Nystroem()])
def test_other_features_are_refused(features):
    with pytest.raises(ValueError, match=r"features must be one of \['auto', 'cholesky'\] with"):
        KernelRidge(kernel=KERNELS["sum"], features=features).fit(X, Y3)


def test_parameters_of_the_kernel_are_checked_at_fit():
    bad = Decomposable("linear", [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="output must be positive semi-definite"):
        KernelRidge(kernel=bad).fit(X, Y3[:, :2])
    indefinite = OperatorCallable(lambda X, Z: -twisted(X, Z), 3)
    with pytest.raises(ValueError, match="operator-valued kernel must be symmetric"):
        KernelRidge(kernel=indefinite).fit(X, Y3)


def test_length_scales_are_for_scalar_kernels():
    grid = {"alpha": [1.0], "length_scale": [1.0]}
    search = PathSearchCV(KernelRidge(kernel=KERNELS["sum"]), grid)
    with pytest.raises(ValueError, match="length_scale is for kernels that have one"):
        search.fit(X, Y3)


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"newton", "conic", "fista"}))
def test_other_solvers_refuse(solver, p):
    model = KernelRidge(kernel=Decomposable("linear", np.eye(p)), solver=solver)
    sentence = "needs a scalar kernel, with coupling for the outputs; solver='newton' takes"
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, Y3[:, :p])


def test_automatic_solver_is_newton():
    problem = problem_of(Squared(), KERNELS["sum"], Y3)
    assert isinstance(make_solver("auto", problem, 1e-6, 10), Newton)


# The linear system


@with_intercept
@pytest.mark.parametrize("full", [False, True], ids=["diagonal", "matrices"])
def test_both_spaces_solve_the_newton_system(full, fit_intercept):
    """Against the system written out: I + Σ Φᵀ P Φ, bordered by the offset."""
    problem = problem_of(Squared(), KERNELS["sum"], Y3, fit_intercept=fit_intercept)
    r = len(problem.design.zero())
    random = np.random.default_rng(3)
    kinks = np.sort(random.choice(N, 15, replace=False))
    if full:
        root = random.normal(size=(15, 3, 2))
        jacobian = root @ root.transpose(0, 2, 1)
        blocks = jacobian
    else:
        jacobian = random.uniform(size=(15, 3)) * (random.uniform(size=(15, 3)) > 0.4)
        blocks = np.einsum("ij,jk->ijk", jacobian, np.eye(3))
    gradient, offset_gradient = random.normal(size=r), random.normal(size=3)
    ridge = np.array([1e-3, 2e-3, 3e-3])
    hessian = np.zeros((r + 3, r + 3))
    hessian[:r, :r] = np.eye(r)
    hessian[r:, r:] = np.diag(ridge)
    for i, P in zip(kinks, blocks, strict=True):
        both = np.hstack([problem.design.matrices[i], np.eye(3)])
        hessian += both.T @ P @ both
    size = r + 3 if fit_intercept else r
    right = np.concatenate([gradient, offset_gradient])
    expected = np.zeros(r + 3)
    expected[:size] = -np.linalg.solve(hessian[:size, :size], right[:size])
    for solve in (solve_in_weights, solve_in_kinks):
        moved = solve(problem, Kinks(kinks, jacobian), gradient, offset_gradient, ridge)
        np.testing.assert_allclose(np.concatenate(moved), expected, atol=1e-7)
    none = Kinks(kinks[:0], jacobian[:0])
    move = FeatureSpace(problem).move(
        none, FeatureSpace(problem).function(gradient), offset_gradient, ridge
    )
    np.testing.assert_allclose(move.function.coef, -gradient, rtol=1e-12)


def test_inner_products_of_functions():
    """<K(·, x_i) v, K(·, x_k) u> = vᵀ K(x_i, x_k) u, for both kinds of problems."""
    S = level_coupling(np.array(LEVELS), 1.0)
    kernel = Decomposable(Gaussian(1.0), S @ S.T)
    operator = problem_of(Squared(), kernel, Y3)
    features = PivotedCholesky(Gaussian(1.0)).fit_transform(X)
    plain = Problem(Squared(), Plain(features, S), Y3, np.ones(N), 1e-2)
    rows, vectors = np.array([3, 3, 8, 20]), np.random.default_rng(4).normal(size=(4, 3))
    blocks = kernel.blocks(X[rows])
    expected = np.einsum("ij,ikjl,kl->ik", vectors, blocks, vectors)
    for problem in (operator, plain):
        functions = problem.design.functions(rows, vectors)
        np.testing.assert_allclose(functions.gram(), expected, atol=1e-8)


def test_scalar_kernel_of_an_operator_problem_does_not_exist():
    design = problem_of(Squared(), KERNELS["sum"], Y3).design
    assert design.gram is None
    assert design.coupling is None
    with pytest.raises(NotImplementedError, match="no scalar kernel"):
        design.spectrum(np.ones(N))


def test_predictions_at_fit_are_those_of_predict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelRidge(kernel=KERNELS["sum"], alpha=1e-4).fit(X, Y3)
    features = OperatorCholesky(KERNELS["sum"]).fit_transform(X)
    at_fit = features @ model.weights_ + model.offset_
    np.testing.assert_allclose(model.predict(X), at_fit, atol=1e-9)

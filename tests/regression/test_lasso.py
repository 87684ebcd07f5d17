"""The Lasso against a quadratic program, scikit-learn, and its optimality conditions."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as ScikitLasso
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel
from fenchel import KernelRidge, Lasso, LinearRegression, lasso_path
from fenchel.datasets import make_sine_quantiles
from fenchel.features import KernelRows, Nystroem
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.solvers.lars import knots
from norm_conic import norm_optimum

TALL, WIDE = (60, 8), (25, 60)
shapes = pytest.mark.parametrize("shape", [TALL, WIDE], ids=["tall", "wide"])


def data(shape=TALL, outputs=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=shape) + 0.5 * random.normal(size=(shape[0], 1)) + 3.0
    W = random.normal(size=(shape[1], outputs)) * (random.uniform(size=(shape[1], 1)) < 0.4)
    y = X @ W + 0.5 * random.normal(size=(shape[0], outputs)) - 2.0
    return X, y if outputs > 1 else y[:, 0]


def loss(model, X, y, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    return 0.5 * weight @ (y - X @ model.coef_ - model.intercept_) ** 2 / weight.sum()


def quadratic_program(X, y, strength):
    """(11.33) as printed: λ Σ(w⁺ + w⁻) + Σ((w⁺ - w⁻)·x_i + b - y_i)²; value and w."""
    n, d = X.shape
    design = np.hstack([X, -X, np.ones((n, 1))])
    quadratic = sparse.csc_matrix(np.triu(2.0 * design.T @ design))
    linear = np.append(np.full(2 * d, strength), 0.0) - 2.0 * design.T @ y
    bounds = sparse.csc_matrix((-np.ones(2 * d), (range(2 * d), range(2 * d))), (2 * d, 2 * d + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    cones = [clarabel.NonnegativeConeT(2 * d)]
    solver = clarabel.DefaultSolver(quadratic, linear, bounds, np.zeros(2 * d), cones, settings)
    result = solver.solve()
    assert str(result.status) == "Solved"
    x = np.array(result.x)
    return result.obj_val + y @ y, x[:d] - x[d : 2 * d]


# --- the penalized form --------------------------------------------------------------------


@shapes
def test_quadratic_program_of_the_textbook(shape):
    X, y = data(shape)
    alpha = 0.1
    model = Lasso(alpha, tol=1e-10).fit(X, y)
    strength = 2.0 * alpha * len(X)
    value, w = quadratic_program(X, y, strength)
    residual = y - model.predict(X)
    ours = strength * np.abs(model.coef_).sum() + residual @ residual
    assert ours == pytest.approx(value, rel=1e-7)
    assert 2 * len(X) * model.certificate_.primal == pytest.approx(ours, rel=1e-12)
    np.testing.assert_allclose(model.coef_, w, atol=1e-3)
    assert 0 < len(model.selected_) < shape[1]
    np.testing.assert_array_equal(model.selected_, np.flatnonzero(np.abs(w) > 1e-4))


@pytest.mark.parametrize("fit_intercept", [True, False])
@shapes
def test_scikit_learn_has_the_same_scale(shape, fit_intercept):
    X, y = data(shape, seed=1)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, len(X))
    ours = Lasso(0.05, fit_intercept=fit_intercept, tol=1e-11).fit(X, y, weight)
    theirs = ScikitLasso(0.05, fit_intercept=fit_intercept, tol=1e-11, max_iter=100_000)
    theirs.fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-4)


@shapes
def test_optimality_conditions(shape):
    X, y = data(shape, seed=3)
    alpha = 0.2
    model = Lasso(alpha, tol=1e-13).fit(X, y)
    pull = (X - X.mean(axis=0)).T @ (y - model.predict(X)) / len(y)
    assert np.abs(pull).max() <= alpha * (1 + 1e-5)
    chosen = model.selected_
    np.testing.assert_allclose(pull[chosen], alpha * np.sign(model.coef_[chosen]), rtol=1e-5)
    assert np.abs(np.sum(y - model.predict(X))) <= 1e-9


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4, 1e-8])
@shapes
def test_the_gap_bounds_the_suboptimality_at_any_accuracy(shape, tol):
    X, y = data(shape, seed=4)
    weight = np.random.default_rng(5).uniform(0.2, 3.0, len(X))
    alpha = 0.05
    model = Lasso(alpha, tol=tol).fit(X, y, weight)
    best = norm_optimum(X, y, np.zeros(shape[1], dtype=int), 1, 1, alpha=alpha, weight=weight)
    value = alpha * np.abs(model.coef_).sum() + loss(model, X, y, weight)
    unit = 0.5 * np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(value, rel=1e-12)
    assert certificate.gap >= value - best.value - 1e-10 * unit
    assert certificate.dual <= best.value + 1e-10 * unit
    assert -1e-14 <= certificate.relative_gap <= tol
    assert certificate.relative_gap == pytest.approx(certificate.gap / unit, rel=1e-9)
    assert certificate.feasibility <= 1e-12


@pytest.mark.parametrize("constrained", [False, True])
def test_a_bad_model_is_not_certified(constrained):
    X, y = data(seed=6)
    centred, target = X - X.mean(axis=0), (y - y.mean())[:, None]
    norm = GroupNorm(np.zeros(8, dtype=np.intp), 1.0, 1.0)
    problem = NormProblem(centred, target, len(y), norm, 0.3, constrained)
    zero = np.zeros((8, 1))
    kind = {"radius" if constrained else "alpha": 0.3}
    best = norm_optimum(X, y, np.zeros(8, dtype=int), 1, 1, **kind)
    for W in (zero, -0.1 * best.weights, 0.5 * best.weights):
        value = 0.5 * np.mean((target - centred @ W) ** 2)
        value += 0.0 if constrained else 0.3 * np.abs(W).sum()
        certificate = problem.certify(W).certificate
        assert certificate.primal == pytest.approx(value, rel=1e-12)
        assert certificate.gap >= value - best.value - 1e-10 * problem.baseline
        assert value - best.value > 1e-3 * problem.baseline


def test_the_strength_at_which_all_vanish():
    X, y = data(WIDE, seed=7)
    largest = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
    model = Lasso(largest * (1 + 1e-9)).fit(X, y)
    assert len(model.selected_) == 0
    assert model.intercept_ == pytest.approx(y.mean())
    assert abs(model.certificate_.relative_gap) <= 1e-8
    assert len(Lasso(0.99 * largest).fit(X, y).selected_) > 0


def test_weights_are_repetitions_and_zero_is_absence():
    X, y = data(seed=8)
    weight = np.random.default_rng(9).integers(0, 4, len(X))
    for parameters in ({"alpha": 0.1}, {"radius": 1.0}):
        model = Lasso(**parameters, tol=1e-12)
        coef = model.fit(X, y, weight).coef_
        repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).coef_
        np.testing.assert_allclose(coef, repeated, atol=1e-6)


@pytest.mark.parametrize("parameters", [{"alpha": 0.1}, {"radius": 1.5}])
def test_outputs_are_independent(parameters):
    X, Y = data(outputs=3, seed=10)
    joint = Lasso(**parameters).fit(X, Y)
    assert joint.coef_.shape == (3, 8)
    assert joint.predict(X).shape == Y.shape
    single = [Lasso(**parameters).fit(X, y) for y in Y.T]
    np.testing.assert_allclose(joint.coef_, [model.coef_ for model in single], atol=1e-13)
    np.testing.assert_allclose(joint.alpha_, [model.alpha_ for model in single], atol=1e-13)
    primal = sum(model.certificate_.primal for model in single)
    assert joint.certificate_.primal == pytest.approx(primal, rel=1e-12)
    assert joint.certificate_.gap == pytest.approx(
        sum(model.certificate_.gap for model in single), abs=1e-13
    )


# --- the constrained form and the path ------------------------------------------------------


@pytest.mark.parametrize("radius", [0.05, 0.7, 2.0])
@shapes
def test_constrained_form_against_a_conic_solver(shape, radius):
    X, y = data(shape, seed=11)
    weight = np.random.default_rng(12).uniform(0.2, 3.0, len(X))
    model = Lasso(radius=radius).fit(X, y, weight)
    best = norm_optimum(X, y, np.zeros(shape[1], dtype=int), 1, 1, radius=radius, weight=weight)
    value = loss(model, X, y, weight)
    unit = 0.5 * np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    assert np.abs(model.coef_).sum() <= radius * (1 + 1e-14)
    assert model.radius_ == pytest.approx(radius, rel=1e-12)
    assert value == pytest.approx(best.value, abs=1e-7 * unit)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-12)
    assert abs(model.certificate_.relative_gap) <= 1e-11
    # with the multiplier as strength, the penalized form has the same solution
    penalized = Lasso(model.alpha_, tol=1e-13).fit(X, y, weight)
    np.testing.assert_allclose(penalized.coef_, model.coef_, atol=1e-5)


def test_a_wide_ball_is_no_constraint():
    X, y = data(seed=13)
    model = Lasso(radius=1e3).fit(X, y)
    free = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, free.coef_, atol=1e-9)
    assert model.alpha_ <= 1e-12
    assert model.radius_ == pytest.approx(np.abs(free.coef_).sum())


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@shapes
def test_every_knot_of_the_path_is_certified(shape, scale):
    X, y = data(shape, seed=14)
    y = y * scale
    path = lasso_path(X, y)
    assert path.coefs.shape == (len(path.alphas), shape[1])
    assert np.all(np.diff(path.alphas) < 0.0)
    assert np.all(np.diff(path.radii) >= 0.0)
    assert path.alphas[-1] == 0.0
    assert not path.coefs[0].any()
    centred, target = X - X.mean(axis=0), (y - y.mean())[:, None]
    norm = GroupNorm(np.zeros(shape[1], dtype=np.intp), 1.0, 1.0)
    for alpha, coef, intercept in zip(path.alphas, path.coefs, path.intercepts, strict=True):
        assert intercept == pytest.approx(np.mean(y - X @ coef), rel=1e-9)
        if alpha == 0.0:  # least squares: no multiple of a residual but zero is feasible
            first = path.alphas[0] * len(y)
            assert np.abs(centred.T @ (target[:, 0] - centred @ coef)).max() <= 1e-11 * first
            continue
        problem = NormProblem(centred, target, len(y), norm, alpha)
        assert abs(problem.certify(coef[:, None]).certificate.relative_gap) <= 1e-10


@shapes
def test_between_knots(shape):
    X, y = data(shape, seed=15)
    weight = np.random.default_rng(16).integers(0, 3, len(X)).astype(float)
    path = lasso_path(X, y, sample_weight=weight)
    for share in (0.9, 0.31, 0.02):
        alpha = share * path.alphas[0]
        coef, intercept = path.at(alpha=alpha)
        model = Lasso(alpha, tol=1e-13).fit(X, y, weight)
        np.testing.assert_allclose(coef, model.coef_, atol=1e-5)
        assert intercept == pytest.approx(model.intercept_, abs=1e-4)
        same, _ = path.at(radius=np.abs(coef).sum())
        np.testing.assert_allclose(same, coef, atol=1e-10)
    np.testing.assert_array_equal(path.at(alpha=2 * path.alphas[0])[0], 0.0)
    np.testing.assert_array_equal(path.at(radius=1e9)[0], path.coefs[-1])
    with pytest.raises(ValueError, match="exactly one of alpha and radius"):
        path.at(alpha=1.0, radius=1.0)
    for name in ("alpha", "radius"):
        for wrong, error in ((np.nan, ValueError), (-1.0, ValueError), ("x", TypeError)):
            with pytest.raises(error, match=f"{name} must be a number >= 0 or inf, got"):
                path.at(**{name: wrong})


def test_dependent_columns():
    """Columns twice, and thrice up to sign."""
    X, y = data(seed=17)
    X = np.hstack([X, X, -X])
    assert lasso_path(X, y).alphas[-1] == 0.0
    for radius in (0.5, 2.0, 1e3):
        model = Lasso(radius=radius).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-6
    model = Lasso(1e-3).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-6
    few = Lasso(1e-3).fit(X[:, :8], y)
    assert model.certificate_.primal == pytest.approx(few.certificate_.primal, rel=1e-5)


def test_the_bound_where_the_path_is_of_no_use():
    """Columns that differ by less than LARS can tell apart."""
    X, y = data(seed=17)
    twins = np.hstack([X, X + 1e-10 * np.random.default_rng(24).normal(size=X.shape)])
    alphas, points = knots(twins - twins.mean(axis=0), y - y.mean())
    for radius in (0.5, 2.0):
        model = Lasso(radius=radius).fit(twins, y)
        assert model.certificate_.relative_gap <= 1e-6
        assert model.certificate_.primal == pytest.approx(
            Lasso(radius=radius).fit(X, y).certificate_.primal, rel=1e-4
        )
    centred = twins - twins.mean(axis=0)
    pulls = np.abs(centred.T @ (y[:, None] - y.mean() - centred @ points.T)).max(axis=0) / len(y)
    assert np.max(pulls - alphas) > 0.01 * alphas[0]  # it is indeed of no use


def test_a_path_that_ends_early_says_so():
    """A column that LARS takes for a multiple of another one."""
    random = np.random.default_rng(23)
    X = random.normal(size=(30, 3))
    X[:, 1] = X[:, 0] + 1e-8 * X[:, 1]
    y = 1e8 * (X[:, 0] - X[:, 1]) + X[:, 2] + 0.1 * random.normal(size=30)
    with pytest.warns(ConvergenceWarning, match="the path ends at alpha="):
        path = lasso_path(X, y)
    assert 0.0 < path.alphas[-1] < 0.5 * path.alphas[0]
    pull = (X - X.mean(axis=0)).T @ (y - X @ path.coefs[-1] - path.intercepts[-1]) / 30
    assert np.abs(pull).max() == pytest.approx(path.alphas[-1], rel=1e-6)


def test_descent_that_is_too_slow_is_replaced_by_the_path():
    """A third of the strengths of empirical kernel maps are out of reach of a few sweeps."""
    X, y, _ = make_sine_quantiles(80, random_state=0)
    rows = KernelRows("gaussian").fit_transform(X)
    model = Lasso(1e-5, max_iter=50).fit(rows, y)
    assert model.n_iter_ == 50
    assert model.certificate_.relative_gap <= 1e-6
    theirs = ScikitLasso(1e-5, max_iter=50, tol=5e-7)
    with pytest.warns(ConvergenceWarning):
        theirs.fit(rows, y)


def test_not_converged():
    random = np.random.default_rng(18)
    X = random.normal(size=(2100, 2050)) + 5.0 * random.normal(size=(2100, 1))
    y = X[:, 0] + random.normal(size=2100)
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        model = Lasso(1e-3, max_iter=1).fit(X, y)
    assert not model.status_.converged
    assert model.certificate_.relative_gap > 1e-6


# --- as a member of the family -------------------------------------------------------------


@pytest.mark.parametrize("feature_map", [KernelRows("gaussian"), Nystroem("gaussian", rank=40)])
def test_empirical_kernel_maps(feature_map):
    X, y, _ = make_sine_quantiles(200, random_state=0)
    model = make_pipeline(feature_map, Lasso(1e-3)).fit(X, y)
    rank = model[0].transform(X).shape[1]
    assert model[-1].certificate_.relative_gap <= 1e-6
    assert 0 < len(model[-1].selected_) < rank / 2
    ridge = KernelRidge(1e-4, learn=False).fit(X, y)
    assert model.score(X, y) > 0.95 * ridge.score(X, y)


def test_grid_search_over_a_pipeline():
    X, y = data(seed=19)
    for grid in ({"lasso__alpha": [10.0, 0.1, 1e-3]}, {"lasso__radius": [0.1, 5.0]}):
        search = GridSearchCV(make_pipeline(StandardScaler(), Lasso()), grid, cv=3).fit(X, y)
        assert search.best_score_ > 0.8
        assert search.best_params_ != {name: values[0] for name, values in grid.items()}


@pytest.mark.parametrize("parameters", [{"alpha": 0.1}, {"radius": 1.5}])
def test_round_trip(parameters, tmp_path):
    X, y = data(outputs=2, seed=20)
    model = Lasso(**parameters).fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.certificate_ == model.certificate_
    assert same.get_params() == model.get_params()


@pytest.mark.parametrize("parameters", [{"alpha": 0.1}, {"radius": 1.5}])
def test_constant_targets_and_columns(parameters):
    X, y = data(seed=21)
    X[:, 0] = 0.1
    assert Lasso(**parameters).fit(X, y).coef_[0] == 0.0
    model = Lasso(**parameters).fit(X, np.full(len(y), 0.3))
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(0.3, rel=1e-15)
    assert model.certificate_.relative_gap == 0.0


def test_round_trip_of_an_empirical_kernel_map(tmp_path):
    X, y, _ = make_sine_quantiles(60, random_state=0)
    model = make_pipeline(KernelRows("gaussian"), Lasso(1e-2)).fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"alpha": 0.0}, ValueError, ["alpha", "> 0", "0.0"]),
        ({"alpha": np.nan}, ValueError, ["alpha", "> 0", "nan"]),
        ({"alpha": "1"}, TypeError, ["alpha", "> 0", "'1'"]),
        ({"radius": 0.0}, ValueError, ["radius", "> 0", "0.0"]),
        ({"radius": True}, TypeError, ["radius", "> 0", "True"]),
        ({"alpha": 1.0, "radius": 2.0}, ValueError, ["one", "alpha=1.0", "radius=2.0"]),
        ({"tol": 0.0}, ValueError, ["tol", "> 0", "0.0"]),
        ({"max_iter": 2.5}, TypeError, ["max_iter", ">= 1", "2.5"]),
    ],
)
def test_bad_parameters(parameters, error, words):
    X, y = data(seed=22)
    with pytest.raises(error) as caught:
        Lasso(**parameters).fit(X, y)
    for word in words:
        assert word in str(caught.value)

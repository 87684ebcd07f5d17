"""Levels of several targets: one output for each level of each column of y."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import d2_pinball_score

from conic import conic_optimum
from fenchel import ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.bounds import bound, level_bounds
from fenchel.design import Operator
from fenchel.kernels import Decomposable, Gaussian
from fenchel.learning import Learning
from fenchel.losses import Pinball, SquaredPinball
from fenchel.metrics import crossing_loss
from fenchel.model_selection import ConformalQuantileRegressor, PathSearchCV
from fenchel.persistence import load, save
from fenchel.plotting import FanDisplay
from fenchel.problem import Problem
from pairs import pairs
from regression_cases import TOL, data, uncertainty, with_levels

LEVELS = [0.8, 0.2, 0.5]
N, D = 60, 3
X, Y = data(N, n_targets=D)
Y = Y - [0.0, 5.0, 0.0]
NEW = data(30, seed=5)[0]
WEIGHT = np.random.default_rng(1).uniform(0.2, 2.0, N)
B = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, -0.2], [0.0, -0.2, 0.5]])
GIVEN = {"kernel": Gaussian(0.8), "learn": False, "tol": TOL}
LOSSES = {QuantileRegressor: Pinball, ExpectileRegressor: SquaredPinball}


def matrix_of(gamma, coupling):
    """exp(-γ (τ_j - τ_k)²) coupling_ml, levels first, by its entries."""
    return np.array(
        [
            [np.exp(-gamma * (t - u) ** 2) * coupling[m, k] for u in LEVELS for k in range(D)]
            for t in LEVELS
            for m in range(D)
        ]
    )


def referee(estimator, alpha, coupling, epsilon, weight, radius=None):
    """The problem as it is stated, each pair of a row and an output by itself; its optimum."""
    K = np.exp(-cdist(X, X, "sqeuclidean") / (2 * 0.8**2))
    values, vectors = np.linalg.eigh(np.kron(K, matrix_of(1.0, coupling)))
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    targets = np.array([[y[m] for _ in LEVELS for m in range(D)] for y in Y])
    loss = LOSSES[estimator](LEVELS, n_targets=D).insensitive(epsilon)
    design = Operator(factor.reshape(N, len(LEVELS) * D, -1))
    problem = Problem(loss, design, targets, weight, alpha, radius=radius)
    return problem, factor, conic_optimum(problem, factor)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "weighted", "epsilon", "coupled"),
    pairs(LOSSES, [False, True], [0.0, 0.3], [False, True]),
)
def test_agrees_with_a_conic_program(estimator, weighted, epsilon, coupled):
    """Optimal value, certificate and predictions are those of the problem as it is stated."""
    weight, alpha = WEIGHT if weighted else np.ones(N), 1e-2
    coupling = B if coupled else np.eye(D)
    model = estimator(LEVELS, alpha=alpha, epsilon=epsilon, coupling=B if coupled else None)
    model.set_params(**GIVEN).fit(X, Y, WEIGHT if weighted else None)
    _, factor, found = referee(estimator, alpha, coupling, epsilon, weight)
    value, lower = found.value, found.lower
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
    assert model.certificate_.dual <= value * (1 + 1e-9)
    assert model.certificate_.primal >= lower * (1 - 1e-9)
    values = (factor @ found.weights.ravel()).reshape(N, len(LEVELS), D)
    functions = model.predict(X) - model.offset_.reshape(len(LEVELS), D)
    gap = 2.0 * (value - lower + 1e-9 * value) / alpha
    assert np.abs(functions - values).max() <= uncertainty(model) + np.sqrt(gap) + 1e-4
    np.testing.assert_allclose(model.coupling_, matrix_of(1.0, coupling), atol=1e-12)


@pytest.mark.slow
def test_agrees_with_a_conic_program_in_a_ball():
    radius = 1.5
    model = QuantileRegressor(LEVELS, radius=radius, coupling=B, **GIVEN).fit(X, Y)
    _, _, found = referee(QuantileRegressor, model.alpha_, B, 0.0, np.ones(N), radius)
    assert model.norm_ == pytest.approx(radius, rel=1e-6)
    assert model.certificate_.primal == pytest.approx(found.value, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coupling", [None, B], ids=["alone", "coupled"])
@pytest.mark.parametrize("gamma", [0.0, 1.0, np.inf])
def test_quantile_property_of_each_target(gamma, coupling, weighted):
    weight = WEIGHT if weighted else np.ones(N)
    model = QuantileRegressor(LEVELS, alpha=1e-2, level_gamma=gamma, coupling=coupling, **GIVEN)
    model.fit(X, Y, WEIGHT if weighted else None)
    residual, share = Y[:, None, :] - model.predict(X), weight / weight.sum()
    on_curve = 1e-3 * Y.std(axis=0)
    below = np.einsum("i,ijm->jm", share, residual < -on_curve)
    at_most = np.einsum("i,ijm->jm", share, residual <= on_curve)
    levels = np.array(LEVELS)[:, None]
    assert below.shape == (3, D)
    assert np.all(below <= levels + 1e-9)
    assert np.all(at_most >= levels - 1e-9)
    assert np.all(at_most - below <= 0.5)


@with_levels
def test_targets_that_are_not_coupled_are_fits_of_their_own(estimator):
    model = estimator(LEVELS, alpha=1e-2, **GIVEN).fit(X, Y)
    primal = 0.0
    for m in range(D):
        alone = estimator(LEVELS, alpha=1e-2, **GIVEN).fit(X, Y[:, m])
        primal += alone.certificate_.primal
        function = model.predict(NEW)[:, :, m] - model.offset_.reshape(3, D)[:, m]
        bound = uncertainty(alone) + uncertainty(model)
        np.testing.assert_allclose(function, alone.predict(NEW) - alone.offset_, atol=bound)
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-6)


@with_levels
def test_targets_that_are_coupled_share_what_they_are(estimator):
    """With a coupling of ones, all columns have one function, up to offsets."""
    model = estimator(LEVELS, alpha=1e-2, coupling=np.ones((D, D)), **GIVEN).fit(X, Y)
    functions = model.predict(NEW) - model.offset_.reshape(3, D)
    assert np.ptp(functions, axis=2).max() <= 1e-9
    assert np.ptp(functions, axis=0).min() >= 0.0
    assert np.ptp(functions[:, 0, 0]) > 0.1


@with_levels
@pytest.mark.parametrize("epsilon", [0.0, 3.0])
def test_parallel_curves_of_each_target_are_in_order(estimator, epsilon):
    model = estimator(LEVELS, alpha=1e-2, level_gamma=0.0, epsilon=epsilon, coupling=B, **GIVEN)
    curves = model.fit(X, Y).predict(NEW)
    apart = np.diff(curves[:, np.argsort(LEVELS)], axis=1)
    assert np.ptp(apart, axis=0).max() <= 1e-9
    assert apart.min() >= -1e-9
    assert model.crossing_loss(NEW) <= 1e-9


@with_levels
def test_an_operator_valued_kernel_says_the_same(estimator):
    fixed = {"alpha": 1e-2, "learn": False, "tol": TOL}
    plain = estimator(LEVELS, kernel=Gaussian(0.8), coupling=B, **fixed).fit(X, Y)
    kernel = Decomposable(Gaussian(0.8), matrix_of(1.0, B))
    same = estimator(LEVELS, kernel=kernel, **fixed).fit(X, Y)
    assert same.predict(NEW).shape == (30, 3, D)
    assert same.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("solver", ["newton", "pdcd", "conic"])
def test_other_solvers(solver):
    given = {**GIVEN, "tol": 1e-4, "max_iter": 20_000}
    model = QuantileRegressor(LEVELS, alpha=0.1, coupling=B, solver=solver, **given).fit(X, Y)
    reference = QuantileRegressor(LEVELS, alpha=0.1, coupling=B, **GIVEN).fit(X, Y)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=1e-4)


@with_levels
def test_shapes(estimator):
    """Each level is predicted in the shape of y."""
    fixed = {"learn": False, "alpha": 1e-2}
    assert estimator(LEVELS, **fixed).fit(X, Y).predict(NEW).shape == (30, 3, D)
    assert estimator(LEVELS, **fixed).fit(X, Y).predict(NEW[:1]).shape == (1, 3, D)
    assert estimator([0.3], **fixed).fit(X, Y).predict(NEW).shape == (30, D)
    assert estimator(0.3, **fixed).fit(X, Y).predict(NEW).shape == (30, D)
    assert estimator(LEVELS, **fixed).fit(X, Y[:, 0]).predict(NEW).shape == (30, 3)
    model = estimator(LEVELS, **fixed).fit(X, Y)
    assert model.offset_.shape == (9,)
    assert model.dual_coef_.shape == (len(model.support_), 9)
    rows = Gaussian(1.0) if model.kernel_ is None else model.kernel_
    values = rows(NEW, X[model.support_]) @ model.dual_coef_ @ model.coupling_ + model.offset_
    np.testing.assert_allclose(values.reshape(30, 3, D), model.predict(NEW), atol=1e-3)


@with_levels
def test_a_single_column_is_taken_flat_with_a_warning(estimator):
    model = estimator(LEVELS, learn=False)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        predicted = model.fit(X, Y[:, :1]).predict(NEW)
    np.testing.assert_array_equal(predicted, model.fit(X, Y[:, 0]).predict(NEW))


def test_score_is_the_mean_of_those_of_the_targets():
    model = QuantileRegressor(LEVELS, alpha=1e-2, learn=False).fit(X, Y)
    curves = model.predict(X)
    each = [
        d2_pinball_score(Y[:, m], curves[:, j, m], alpha=level, sample_weight=WEIGHT)
        for j, level in enumerate(LEVELS)
        for m in range(D)
    ]
    assert model.score(X, Y, WEIGHT) == pytest.approx(np.mean(each), abs=1e-3)
    crossings = [crossing_loss(curves[:, :, m], LEVELS) for m in range(D)]
    assert model.crossing_loss(X) == pytest.approx(np.mean(crossings), abs=1e-12)
    alone = QuantileRegressor(0.3, alpha=1e-2, learn=False).fit(X, Y)
    assert alone.score(X, Y) <= 1.0
    assert alone.crossing_loss(X) == 0.0


def test_intervals_of_each_target():
    model = QuantileRegressor(LEVELS, alpha=1e-2, learn=False).fit(X, Y)
    ends = model.predict_interval(X)
    np.testing.assert_array_equal(ends, model.predict(X)[:, [1, 0]])
    inside = (ends[:, 0] <= Y) & (ends[:, 1] >= Y)
    assert np.all(inside.mean(axis=0) >= 0.6 - 1e-9)
    with pytest.raises(ValueError, match=r"coverage=0.9 needs the levels"):
        model.predict_interval(X, 0.9)


def test_refitted_offsets_of_each_target():
    fixed = {"epsilon": 2.0, "alpha": 1e-2, "coupling": B, **GIVEN}
    plain = QuantileRegressor(LEVELS, **fixed).fit(X, Y)
    model = QuantileRegressor(LEVELS, refit_offsets="train", **fixed).fit(X, Y)
    levels = np.array(LEVELS)[:, None]

    def missed(fitted):
        residual = Y[:, None] - fitted.predict(X)
        below = (residual < -1e-9).mean(axis=0) - levels
        return np.maximum(below, levels - (residual <= 1e-9).mean(axis=0)).max()

    assert missed(model) <= 1e-12
    assert missed(plain) > 0.1
    np.testing.assert_array_equal(model.support_, plain.support_)
    with pytest.raises(ValueError, match="epsilon must be 0 for intervals"):
        plain.predict_interval(X)


@pytest.mark.slow
def test_what_is_learned_is_that_of_one_target():
    """Twice the same target is one problem twice."""
    learn = Learning(max_evaluations=5)
    two = QuantileRegressor([0.2, 0.8], learn=learn).fit(X, Y[:, [0, 0]])
    one = QuantileRegressor([0.2, 0.8], learn=learn).fit(X, Y[:, 0])
    assert one.alpha_ / 1.7 < two.alpha_ < 1.7 * one.alpha_  # folds are other ones
    spread = np.ptp(Y[:, 0])
    for m in range(2):
        np.testing.assert_allclose(two.predict(NEW)[:, :, m], one.predict(NEW), atol=0.1 * spread)
    assert len(two.learned_.history) > 1


def test_files_searches_and_warm_starts(tmp_path):
    model = QuantileRegressor(LEVELS, coupling=B, alpha=1e-2, warm_start=True, **GIVEN).fit(X, Y)
    save(model, tmp_path / "model.fenchel")
    same = load(tmp_path / "model.fenchel")
    np.testing.assert_array_equal(same.predict(NEW), model.predict(NEW))
    assert same.loss_.n_targets == D
    steps = model.n_iter_
    assert model.fit(X, Y).n_iter_ < steps
    search = PathSearchCV(QuantileRegressor(LEVELS, coupling=B), {"alpha": [1e-1, 1e-3]}, cv=3)
    assert search.fit(X, Y).predict(NEW).shape == (30, 3, D)
    assert search.best_params_["alpha"] in (1e-1, 1e-3)


@pytest.mark.slow
def test_bounds_and_pictures():
    model = QuantileRegressor(LEVELS, radius=1.0, kernel=Gaussian(0.8)).fit(X, Y)
    found = level_bounds(model, X, Y, margin=1.0)
    assert len(found) == 3 * D
    assert bound(model, X, Y, target_bound=20.0).value > model.certificate_.primal
    display = FanDisplay.from_estimator(model, X, Y, output=1, ax=Figure().add_subplot())
    assert display.curves.shape[1] == 3
    assert display.curves.mean() < -3.0  # the second target lies around -5
    with pytest.raises(ValueError, match=r"output must be in 0\.\.2"):
        FanDisplay.from_estimator(model, X, Y, output=3, ax=Figure().add_subplot())


def test_conformal_intervals_are_of_one_target():
    model = QuantileRegressor([0.05, 0.5, 0.95], learn=False).fit(X, Y)
    wrapper = ConformalQuantileRegressor(model, cv="prefit")
    with pytest.raises(ValueError, match="quantiles of one target, got predictions of shape"):
        wrapper.fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="y"):
        ConformalQuantileRegressor(QuantileRegressor(learn=False)).fit(X, Y)


@pytest.mark.parametrize("estimator", [QuantileRegressor, ExpectileRegressor, KernelRidge])
@pytest.mark.parametrize("size", [pytest.param(2.0**-12, marks=pytest.mark.slow), 2.0**20])
def test_the_size_of_a_coupling_is_one_of_alpha(estimator, size):
    """A matrix of covariances, of targets in thousands: the function is the same."""
    learned, by_rule, searched = [], [], []
    for times in (1.0, size):
        model = estimator(coupling=times * B).fit(X, Y)
        learned.append([model.predict(NEW), model.alpha_ / times])
        model = estimator(coupling=times * B, learn=False).fit(X, Y)
        by_rule.append([model.predict(NEW), model.alpha_ / times])
        search = PathSearchCV(estimator(coupling=times * B, kernel=Gaussian(0.8)), cv=2).fit(X, Y)
        searched.append([search.predict(NEW), search.alpha_ / times])
    for (prediction, alpha), (same, one) in (learned, by_rule, searched):
        assert alpha == pytest.approx(one, rel=1e-9)
        np.testing.assert_allclose(prediction, same, atol=1e-4 * np.abs(prediction).max())

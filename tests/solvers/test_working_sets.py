"""Kernel values computed when needed: against stored ones, and without an (n, n) array."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as sk

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.datasets import make_heavy_tails
from fenchel.design import Gram, Plain
from fenchel.features import KernelRows
from fenchel.kernels import Computed, Gaussian, Laplacian, Linear, Matern, WithRanks, resolve
from fenchel.losses import Absolute, Huber, Pinball, Squared, SquaredPinball
from fenchel.problem import Problem
from fenchel.solvers import SMO, ClosedForm, Conic, Newton, Outputwise, WarmStart, make_solver
from fenchel.solvers.loop import Loop
from fenchel.solvers.newton import low_rank_start
from fenchel.solvers.working_sets import OnSets
from fenchel.testing import check_design

KERNELS = {
    "gaussian": Gaussian(3.0),
    "narrow": Gaussian(0.3),
    "matern": Matern(3.0, 1.5),
    "laplacian": Laplacian(4.0),
    "ranks": WithRanks(Matern(1.0, 2.5)),
    "of scikit-learn": 2.0 * sk.RBF(3.0) + sk.RationalQuadratic(),
    "sum": Gaussian(2.0) + Linear(),
}
LOSSES = {
    "absolute": Absolute(),
    "insensitive": Absolute().insensitive(0.2),
    "pinball": Pinball([0.2]),
    "huber": Huber(0.5),
    "expectile": SquaredPinball([0.9]),
    "insensitive expectile": SquaredPinball([0.2]).insensitive(0.1),
}


def problems(loss, kernel, n=400, c=3.0, fit_intercept=True, coupling=((0.7, 0.4),)):
    """The same problem with kernel values stored, computed, and computed with a start."""
    X, y = make_heavy_tails(n, random_state=0)
    kernel = resolve(kernel, X)
    weight = np.random.default_rng(0).integers(1, 4, n) / 2.0
    coupling = np.array(coupling)
    designs = [Gram(np.asarray(kernel(X)), coupling)]
    for rows in (KernelRows(kernel, stored=False), None):
        if rows is None:
            designs.append(Gram(designs[1].kernel_values.subset(np.arange(n)), coupling))
        else:
            designs.append(rows.design(rows.fit_transform(X), coupling))
    alpha = 1.0 / (c * weight.sum())
    return [Problem(loss, d, y[:, None], weight, alpha, fit_intercept) for d in designs]


def in_features(problem):
    """The same problem for the conic solver."""
    values, vectors = np.linalg.eigh(problem.design.gram)
    kept = values > 1e-13 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    return replace(problem, design=Plain(features, problem.design.coupling))


@pytest.mark.parametrize("name", KERNELS)
def test_products_and_blocks(name):
    stored, computed, _ = problems(Absolute(), KERNELS[name], n=300)
    random = np.random.default_rng(1)
    push, rows = random.standard_normal((300, 1)), random.permutation(300)[:41]
    for given in (None, rows):
        part = push if given is None else push[rows]
        expected = stored.design.image(part, given)
        np.testing.assert_allclose(computed.design.image(part, given), expected, atol=1e-11)
    values = computed.design.kernel_values
    others = rows[:7]
    block = values.block(rows, others)
    np.testing.assert_allclose(block, stored.design.gram[np.ix_(rows, others)], rtol=1e-12)
    single = values.in_single
    size = np.abs(stored.design.gram).max()
    assert single.block(rows, others).dtype == np.float32
    np.testing.assert_allclose(single.block(rows, others), block, atol=3e-6 * size)
    np.testing.assert_allclose(single.times(push), values.times(push), atol=1e-4 * size)


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 400])
def test_every_size_of_tile(n):
    stored, computed, _ = problems(Absolute(), Gaussian(2.0), n=n)
    push = np.random.default_rng(1).standard_normal((n, 1))
    np.testing.assert_allclose(computed.design.image(push), stored.design.image(push), atol=1e-11)


def test_it_is_a_design():
    X, _ = make_heavy_tails(40, random_state=0)
    values = Computed(X, Gaussian(2.0))
    check_design(Gram(values, np.array([[0.7, 0.4], [0.1, 0.9]])))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_the_conic_solver(name, fit_intercept):
    stored, *others = problems(LOSSES[name], Gaussian(3.0), 200, 30.0, fit_intercept)
    optimum = Conic(tol=1e-8).solve(in_features(stored)).certificate.primal
    unit = stored.baseline
    for problem in others:
        solution = SMO(tol=1e-7).solve(problem)
        assert solution.status.converged, solution.status.message
        assert solution.certificate.dual <= optimum + 1e-9 * unit
        assert solution.certificate.primal <= optimum + 1e-7 * unit
        # what it says of this point is so with all values stored
        primal = stored.primal(solution.weights, solution.offset)
        assert solution.certificate.primal == pytest.approx(primal, rel=1e-11)
        assert solution.certificate.dual == pytest.approx(stored.dual(solution.dual), rel=1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel(name):
    stored, computed, _ = problems(LOSSES["insensitive"], KERNELS[name], 700, 30.0)
    expected, found = SMO(tol=1e-7).solve(stored), SMO(tol=1e-7).solve(computed)
    assert found.status.converged, found.status.message
    apart = found.certificate.primal - expected.certificate.primal
    assert abs(apart) <= 1e-7 * stored.baseline


def test_auto_takes_sets_for_one_output():
    _, computed, _ = problems(Absolute(), Gaussian(3.0))
    assert isinstance(make_solver("auto", computed, 1e-6, 10), SMO)
    two = problems(Pinball([0.1, 0.9]), Gaussian(3.0), coupling=np.eye(2))[1]
    assert isinstance(make_solver("auto", two, 1e-6, 10), Outputwise)


def test_a_warm_start_needs_no_other():
    _, computed, _ = problems(Absolute(), Gaussian(3.0), c=30.0)
    solution = SMO().solve(computed)
    again = SMO().solve(computed, WarmStart(solution.dual, solution.offset, computed.alpha))
    assert again.status.converged
    assert again.n_iter == 0


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["matern", "laplacian"])
@pytest.mark.parametrize("loss", [Pinball, SquaredPinball], ids=["pinball", "expectile"])
def test_coupled_outputs(loss, kernel):
    """400 rows have 1200 coordinates, more than a set; Newton alone on stored values judges."""
    levels = [0.1, 0.5, 0.9]
    coupling = np.linalg.cholesky(np.exp(-(np.subtract.outer(levels, levels) ** 2)))
    stored, *others = problems(loss(levels), KERNELS[kernel], c=30.0, coupling=coupling)
    expected = Newton(1e-8).solve(stored)
    for problem in (stored, *others):
        assert isinstance(make_solver("auto", problem, 1e-6, 10), SMO)
        found = SMO(1e-7).solve(problem)
        assert found.status.converged, found.status.message
        apart = found.certificate.primal - expected.certificate.primal
        assert abs(apart) <= 1.1e-7 * stored.baseline
        assert found.certificate.primal == pytest.approx(
            stored.primal(found.weights, found.offset), rel=1e-11
        )
        assert found.certificate.dual == pytest.approx(stored.dual(found.dual), rel=1e-11)


def test_coupled_tubes_by_newton():
    """The length of a row of two is no sum over coordinates."""
    loss = Pinball([0.1, 0.9]).insensitive(0.1)
    _, computed, _ = problems(loss, Gaussian(3.0), coupling=np.array([[1.0, 0.0], [0.6, 0.8]]))
    solver = make_solver("auto", computed, 1e-6, 1000)
    assert isinstance(solver, Newton)
    assert solver.solve(computed).status.converged


def test_what_needs_all_values_says_so():
    _, computed, _ = problems(Squared(), Gaussian(3.0))
    with pytest.raises(ValueError, match="needs kernel values in memory"):
        make_solver(ClosedForm(), computed, 1e-6, 10)
    assert SMO().solve(computed).status.converged


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        SVR(epsilon=0.1, alpha=1e-4, kernel=Gaussian(3.0)),
        QuantileRegressor(0.3, alpha=1e-4, kernel=Matern(3.0)),
        ExpectileRegressor(0.9, alpha=1e-5, kernel=Gaussian(2.0)),
        QuantileRegressor([0.1, 0.9], alpha=1e-3, kernel=Gaussian(3.0)),
    ],
    ids=["svr", "quantile", "expectile", "levels"],
)
def test_rough_kernels_take_no_matrix(model):
    few, n = (4020, 4200) if isinstance(model, ExpectileRegressor) else (2100, 2500)
    X, y = make_heavy_tails(n, random_state=0)
    model.fit(X[:few], y[:few])  # compiled functions are loaded
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(model.feature_map_, KernelRows)
    assert not model.feature_map_.stored
    # all rows of an expectile are free: a Newton step factors one matrix in place
    assert peak < (1.5 if isinstance(model, ExpectileRegressor) else 0.8) * 8 * n**2
    assert model.status_.converged
    assert model.certified_kernel_ == "given"
    gram = model.kernel_(X)
    dual = np.zeros((n, model.dual_coef_.shape[1]))
    dual[model.support_] = model.dual_coef_
    prediction = gram @ dual @ model.coupling_ + model.offset_
    np.testing.assert_allclose(model.predict(X).reshape(n, -1), prediction, atol=1e-9)
    penalty = 0.5 * model.alpha * np.vdot(dual, gram @ dual @ model.coupling_)
    primal = penalty + model.loss_.value(y[:, None] - prediction).mean()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("kind", [KernelRidge, ExpectileRegressor])
def test_what_is_faster_with_its_matrix_keeps_it(kind):
    X, y = make_heavy_tails(2100, random_state=0)
    model = kind(alpha=1e-3, kernel=Gaussian(3.0), learn=False).fit(X, y)
    assert model.feature_map_.stored


def test_a_start_stays_on_its_bounds():
    _, problem, _ = problems(Absolute().insensitive(0.2), Gaussian(3.0), n=200)
    random = np.random.default_rng(0)
    dual = random.choice([-1.0, 0.0, 1.0], (200, 1), p=[0.5, 0.2, 0.3])
    inside = np.arange(0, 200, 2)
    dual[inside] = random.uniform(0.05, 0.95, (100, 1))
    ascent = OnSets(problem, 1.0)
    ascent.start(dual)
    found = ascent.dual / ascent.unit
    others = np.setdiff1d(np.arange(200), inside)
    assert np.array_equal(found[others], dual[others, 0])
    assert abs(ascent.dual.sum()) < 1e-12 * np.abs(ascent.dual).sum()
    assert np.all(found[inside] < dual[inside, 0])  # those above zero are too many
    assert np.all((found[inside] >= 0.0) & (found[inside] <= 1.0))
    image = problem.design.kernel_values.in_single.times(ascent.by_output(ascent.dual).T)
    slopes = ascent.outputs[0, 0] * image[:, 0] - ascent.targets
    np.testing.assert_allclose(ascent.pull, slopes, rtol=0.0, atol=1e-12 * np.abs(slopes).max())


def test_a_start_without_room_inside_is_balanced_all_the_same():
    _, problem, _ = problems(Absolute().insensitive(0.2), Gaussian(3.0), n=200)
    dual = np.where(np.arange(200) < 150, 1.0, -1.0)[:, None]
    ascent = OnSets(problem, 1.0)
    ascent.start(dual)
    assert abs(ascent.dual.sum()) < 1e-12 * np.abs(ascent.dual).sum()
    assert np.all(np.abs(ascent.dual / ascent.unit) <= 1.0 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_a_start_of_low_rank_is_on_the_ends_of_a_linear_loss(epsilon):
    _, problem, _ = problems(Pinball([0.2]).insensitive(epsilon), Gaussian(0.3))
    dual = low_rank_start(problem, Loop(1e-6, None), 0.25).dual
    ends = [-0.8, 0.0, 0.2] if epsilon else [-0.8, 0.2]
    for low, high in pairwise(ends):
        between = (dual > low) & (dual < high)
        middle = (dual > low + 0.25 * (high - low)) & (dual < high - 0.25 * (high - low))
        assert np.array_equal(between, middle)
    assert np.isin(dual, ends).mean() > 0.5


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(n, name, fit_intercept):
    stored, *computed = problems(LOSSES[name], Gaussian(3.0), n, 30.0, fit_intercept)
    expected = Conic(tol=1e-9).solve(in_features(stored)).certificate.dual
    for problem in computed:
        solution = SMO(tol=1e-8).solve(problem)
        assert solution.status.converged
        assert solution.certificate.dual == pytest.approx(expected, abs=1e-7 * stored.baseline)


def test_an_ascent_that_rounding_drives_off_is_not_used():
    """Differences of huge kernel values in single precision have no sign; squares no bounds."""
    rng = np.random.default_rng(0)
    X, y = 1e4 + rng.uniform(size=(11, 2)), rng.standard_normal((11, 2))
    features = KernelRows(stored=False)
    model = KernelRidge(1.7e-7, kernel=Gaussian(3.5) + Linear(), features=features, solver="smo")
    with pytest.warns(ConvergenceWarning, match="rounding errors allow no better"):
        model.fit(X, y)
    assert np.isfinite(model.certificate_.relative_gap)
    assert np.isfinite(model.predict(X)).all()

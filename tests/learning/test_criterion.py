"""The criterion is the held-out loss of fits without the fold, and its gradient is exact."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.kernels import Gaussian, Matern, WithRanks, opened
from fenchel.learning import Data, fold
from fenchel.learning import criterion as module
from fenchel.learning.criterion import HeldOut
from fenchel.learning.fold import Task
from fenchel.learning.parameters import OpenParameters
from fenchel.learning.rows import Rows, rows_by_content
from fenchel.losses import Absolute, Huber, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.solvers import newton_system
from own_losses import LogCosh

LEVELS = [0.2, 0.5, 0.9]
LOSSES = {
    "pinball": (Pinball(0.3), 1),
    "levels": (Pinball(LEVELS), 3),
    "expectile": (SquaredPinball(0.8), 1),
    "tube": (Absolute().insensitive(0.2), 1),
    "tube of levels": (Pinball(LEVELS).insensitive(0.2), 3),
    "squared tube": (Squared().insensitive(0.2), 1),
    "huber": (Huber(0.5), 1),
    "squared": (Squared(), 2),
    "length": (L2Norm(), 2),
    "own": (LogCosh(), 2),
}
KERNELS = {
    "matern": Matern([1.0, 1.5, 2.0], length_scale_bounds=(1e-2, 1e2)),
    "sum": 0.5 * Gaussian() + Matern(1.0, length_scale_bounds=(1e-2, 1e2)),
    "ranks": WithRanks(Gaussian()),
}


def rows_of(p, weighted, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2.0 * X[:, :1]) + 0.5 * rng.normal(size=(n, p))
    weight = rng.uniform(0.2, 2.0, n) if weighted else np.ones(n)
    return rows_by_content(X, y, weight, 1000, 3)


def coupling(p):
    return np.linalg.cholesky(0.5 * np.eye(p) + 0.5)


def differences(criterion, theta, step=1e-4):
    sides = [[criterion(theta + s * e)[0] for s in (step, -step)] for e in np.eye(len(theta))]
    return np.array([(high - low) / (2.0 * step) for high, low in sides])


@pytest.fixture
def tight(monkeypatch):
    """Fits to the last digit."""
    monkeypatch.setattr(module, "_TOL", 1e-20)


@pytest.mark.parametrize(("fit_intercept", "weighted"), [(True, False), (False, True)])
@pytest.mark.parametrize("name", LOSSES)
def test_gradient_for_every_loss(tight, name, fit_intercept, weighted):
    loss, p = LOSSES[name]
    rows = rows_of(p, weighted)
    task = Task(loss, coupling(p), rows.targets, fit_intercept)
    criterion = HeldOut(rows, [task], OpenParameters.of(KERNELS["matern"], rows, False), 1.0, 8.0)
    theta = np.append(np.zeros(KERNELS["matern"].n_dims), np.log(3e-3))
    _, gradient = criterion(theta)
    np.testing.assert_allclose(gradient, differences(criterion, theta), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_gradient_for_kernels(tight, name):
    rows = rows_of(1, weighted=True)
    kernel = opened(KERNELS[name], rows.X)
    task = Task(Pinball(0.3), np.eye(1), rows.targets, True)
    criterion = HeldOut(rows, [task], OpenParameters.of(kernel, rows, False), 1.0, 8.0)
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))
    assert len(theta) > 3
    _, gradient = criterion(theta)
    np.testing.assert_allclose(gradient, differences(criterion, theta), rtol=1e-6, atol=1e-7)


def ridge_by_folds(rows: Rows, kernel, alpha, fit_intercept):
    """The criterion for squares, fold by fold from the normal equations."""
    value, constant = 0.0, 0.0
    for k in range(rows.n_folds):
        inside = np.zeros(len(rows.X), dtype=bool)
        inside[rows.fold(k)] = True
        X, y, weight = rows.X[~inside], rows.targets[~inside], rows.weight[~inside]
        n = len(X)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = kernel(X) + np.diag(alpha * weight.sum() / weight)
        system[n, :n] = system[:n, n] = 1.0
        if not fit_intercept:
            system[n], system[:, n], system[n, n] = 0.0, 0.0, 1.0
        found = np.linalg.solve(system, np.vstack([y, np.zeros((1, y.shape[1]))]))
        held = rows.targets[inside]
        best = np.average(y, axis=0, weights=weight)  # of models without an intercept too
        for values, add in ((kernel(rows.X[inside], X) @ found[:n] + found[n], 0), (best, 1)):
            lost = 0.5 * rows.weight[inside] @ ((held - values) ** 2).sum(axis=1)
            value, constant = (value, constant + lost) if add else (value + lost, constant)
    return value / constant


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_value_is_the_loss_of_rows_that_were_left_out(fit_intercept):
    rows = rows_of(2, weighted=True)
    kernel = KERNELS["matern"]
    task = Task(Squared(), np.eye(2), rows.targets, fit_intercept)
    criterion = HeldOut(rows, [task], OpenParameters.of(kernel, rows, False), 2.0, 1e6)
    value, _ = criterion(np.append(np.zeros(kernel.n_dims), np.log(0.01)))
    expected = ridge_by_folds(rows, kernel, 0.02, fit_intercept)
    assert value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_outputs_of_one_strength_share_a_factor(fit_intercept, monkeypatch):
    """The value is that of normal equations, and the gradient that of differences."""
    rows = rows_of(3, weighted=True)
    kernel, factored = KERNELS["matern"], []
    original = fold.cholesky_of
    monkeypatch.setattr(fold, "cholesky_of", lambda a: factored.append(1) or original(a))

    def criterion_of(sizes):
        tasks = [
            Task(Squared(), np.array([[size]]), rows.targets[:, [j]], fit_intercept)
            for j, size in enumerate(sizes)
        ]
        return HeldOut(rows, tasks, OpenParameters.of(kernel, rows, False), 2.0, 1e6)

    theta = np.append(np.zeros(kernel.n_dims), np.log(0.01))
    value, _ = criterion_of([1.0, 1.0, 1.0])(theta)
    assert value == pytest.approx(ridge_by_folds(rows, kernel, 0.02, fit_intercept), rel=1e-9)
    assert len(factored) == rows.n_folds
    factored.clear()
    criterion = criterion_of([1.0, 0.5, 1.0])
    _, gradient = criterion(theta)
    assert len(factored) == 2 * rows.n_folds
    np.testing.assert_allclose(gradient, differences(criterion, theta), rtol=1e-6, atol=1e-7)


def test_value_does_not_depend_on_what_was_fitted_before(tight):
    rows = rows_of(1, weighted=False)
    kernel = KERNELS["matern"]
    task = Task(Pinball(0.3), np.eye(1), rows.targets, True)
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))
    once, again = (
        HeldOut(rows, [task], OpenParameters.of(kernel, rows, False), 1.0, 8.0) for _ in range(2)
    )
    again(theta + 1.0)
    for one, other in zip(once(theta), again(theta), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_other_rows_start_from_what_was_fitted_before(monkeypatch):
    """The same criterion in fewer steps of its first fits."""
    steps, fitted = [], module.fit_smoothed

    def noted(*arguments, **options):
        found = fitted(*arguments, **options)
        steps.append(found.n_steps)
        return found

    monkeypatch.setattr(module, "fit_smoothed", noted)
    few, rows = rows_of(1, False, n=300), rows_of(1, False, n=200, seed=1)
    kernel = KERNELS["matern"]
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))

    def criterion(rows, before=None):
        tasks = [Task(Pinball(q), np.eye(1), rows.targets, True) for q in (0.2, 0.7)]
        opened_of = OpenParameters.of(kernel, rows, False)
        return HeldOut(rows, tasks, opened_of, 1.0, 8.0, before)

    before = criterion(few)
    before(theta)
    found = []
    for each in (criterion(rows), criterion(rows, before)):
        steps.clear()
        found.append((each(theta), sum(steps)))
    (cold, many), (warm, fewer) = found
    assert fewer < many
    assert warm[0] == pytest.approx(cold[0], rel=1e-3)
    np.testing.assert_allclose(warm[1], cold[1], atol=0.02 * np.abs(cold[1]).max())


def test_a_start_that_is_worse_than_none_is_not_taken():
    """Of nearly singular systems a guess is far off, and Newton's method would not come back."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 1))
    y = np.sin(6.0 * X) + 0.3 * rng.normal(size=(60, 1))
    rows = rows_by_content(X, y, np.ones(60), 60, 3)
    kernel = Gaussian(1.5, length_scale_bounds="fixed")
    theta = np.array([np.log(1e-7)])

    def criterion(before=None):
        task = Task(Pinball(0.3), np.eye(1), rows.targets, True)
        return HeldOut(rows, [task], OpenParameters.of(kernel, rows, False), 1.0, 8.0, before)

    cold, far = criterion(), criterion()
    far(np.array([np.log(1.0)]))
    for each in far._folds:
        each.last = each.last._replace(dual=1e3 * each.last.dual, offset=each.last.offset + 1e3)
    assert criterion(far)(theta)[0] == pytest.approx(cold(theta)[0], rel=1e-2)
    assert far(theta)[0] == pytest.approx(cold(theta)[0], rel=1e-2)


def test_a_kept_factor_changes_nothing(tight, monkeypatch):
    rows = rows_of(1, weighted=True, n=200)
    kernel = KERNELS["matern"]
    task = Task(Pinball(LEVELS), coupling(3), rows.targets, True)
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))
    found = []
    for least in (1, 10_000):
        monkeypatch.setattr(newton_system, "LEAST_KINKS", least)
        criterion = HeldOut(rows, [task], OpenParameters.of(kernel, rows, False), 1.0, 8.0)
        criterion(theta)
        found.append(criterion(theta + 0.1))
    for kept, alone in zip(*found, strict=True):
        np.testing.assert_allclose(kept, alone, rtol=1e-4, atol=1e-6)


def test_a_level_by_itself_is_a_task(tight):
    """Outputs that do not interact: the sum of their criteria, in one unit."""
    rows = rows_of(1, weighted=False)
    kernel = KERNELS["matern"]
    together = Task(Squared(), np.eye(2), np.hstack([rows.targets, rows.targets**2]), True)
    apart = [Task(Squared(), np.eye(1), together.targets[:, [j]], True) for j in range(2)]
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))
    one, other = (
        HeldOut(rows, tasks, OpenParameters.of(kernel, rows, False), 1.0, 1e6)(theta)
        for tasks in ([together], apart)
    )
    assert one[0] == pytest.approx(other[0], rel=1e-6)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)], ids=str)
def test_outputs_with_strengths_of_their_own_fall_apart(tight, loss):
    """A diagonal coupling: the criterion is that of all outputs together."""
    rows, kernel = rows_of(3, weighted=True), KERNELS["matern"]
    coupling = np.diag([1.5, 1.0, 0.2])
    data = Data(rows.X, rows.targets, rows.weight, loss, coupling, False)
    parts = data.tasks(rows.targets)
    assert [part.coupling.tolist() for part in parts] == [[[1.5]], [[1.0]], [[0.2]]]
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))
    whole = [Task(loss, coupling, rows.targets, False)]
    opened_of = OpenParameters.of(kernel, rows, False)
    apart, joint = (HeldOut(rows, tasks, opened_of, 1.0, 1e6)(theta) for tasks in (parts, whole))
    assert apart[0] == pytest.approx(joint[0], rel=1e-6)
    np.testing.assert_allclose(apart[1], joint[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_coupled_outputs_of_the_squared_loss_fall_apart(tight, fit_intercept, weighted):
    """In the eigenbasis of their coupling: the criterion is that of all outputs together."""
    rows, kernel = rows_of(3, weighted=weighted), KERNELS["matern"]
    coupling = np.array([[1.5, 0.0], [0.4, 1.0], [0.2, -0.3]])
    coupling = np.linalg.cholesky(coupling @ coupling.T + 0.1 * np.eye(3))
    data = Data(rows.X, rows.targets, rows.weight, Squared(), coupling, fit_intercept)
    parts = data.tasks(rows.targets)
    assert len(parts) == 3
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))
    whole = [Task(Squared(), coupling, rows.targets, fit_intercept)]
    opened_of = OpenParameters.of(kernel, rows, False)
    apart, joint = (HeldOut(rows, tasks, opened_of, 1.0, 1e6)(theta) for tasks in (parts, whole))
    assert apart[0] == pytest.approx(joint[0], rel=1e-6)
    np.testing.assert_allclose(apart[1], joint[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_eigenbasis_is_for_all_strengths(monkeypatch, fit_intercept):
    rows, kernel = rows_of(3, weighted=True), KERNELS["matern"]
    coupling = np.diag([1.5, 0.7, 0.0])
    data = Data(rows.X, rows.targets, rows.weight, Squared(), coupling, fit_intercept)
    theta = np.append(np.zeros(kernel.n_dims), np.log(3e-3))
    known = rows, data.tasks(rows.targets), OpenParameters.of(kernel, rows, False), 1.0, 1e6
    by_factors = HeldOut(*known)
    monkeypatch.setattr(fold, "MANY_STRENGTHS", 2)
    by_basis = HeldOut(*known)
    assert len(by_basis._ridges) < len(by_factors._ridges)
    one, other = by_basis(theta), by_factors(theta)
    assert one[0] == pytest.approx(other[0], rel=1e-10)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-8, atol=1e-11)


def test_equal_eigenvalues_of_a_coupling_share_a_factorization():
    rows = rows_of(3, weighted=False)
    coupling = np.linalg.cholesky(np.eye(3) + 0.5)
    data = Data(rows.X, rows.targets, rows.weight, Squared(), coupling, True)
    sizes = [float(task.coupling[0, 0]) for task in data.tasks(rows.targets)]
    assert sizes == pytest.approx([1.0, 1.0, np.sqrt(2.5)])
    assert len(set(sizes)) == 2

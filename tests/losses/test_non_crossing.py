"""The loss of curves that must not cross, against linear and quadratic programs."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.isotonic import isotonic_regression

from fenchel.losses import Absolute, Loss, NonCrossing, Pinball
from fenchel.losses.base import Insensitive
from fenchel.testing import check_loss

LEVELS = [[0.3], [0.2, 0.7], [0.5, 0.9, 0.1], [0.8, 0.1, 0.5, 0.95, 0.3]]
each_levels = pytest.mark.parametrize("levels", LEVELS, ids=len)


def differences(levels) -> np.ndarray:
    """Rows that take a residual to what must be >= 0: lower level minus the next higher."""
    order = np.argsort(levels)
    matrix = np.zeros((len(levels) - 1, len(levels)))
    for k in range(len(levels) - 1):
        matrix[k, order[k]], matrix[k, order[k + 1]] = 1.0, -1.0
    return matrix


@each_levels
def test_domain_is_the_box_plus_the_polar_of_the_order(levels):
    loss, G = NonCrossing(Pinball(levels)), differences(levels)
    np.testing.assert_array_equal(loss.cone, G)
    rng = np.random.default_rng(0)
    dual = rng.normal(size=(200, len(levels))) * rng.choice([0.3, 1.0, 2.0], (200, 1))
    bounds = [(t - 1.0, t) for t in levels] + [(0.0, None)] * len(G)
    matrix = np.hstack([np.eye(len(levels)), -G.T])
    found = np.isfinite(loss.conjugate(dual))
    truth = [
        linprog(np.zeros(len(bounds)), A_eq=matrix, b_eq=beta, bounds=bounds).status == 0
        for beta in dual
    ]
    np.testing.assert_array_equal(found, truth)
    assert 20 < found.sum() < 180


@each_levels
def test_conjugate_is_the_supremum(levels):
    loss = NonCrossing(Pinball(levels))
    G, p = differences(levels), len(levels)
    tau = np.array(levels)
    rng = np.random.default_rng(1)
    for beta in loss.conjugate_prox(3.0 * rng.normal(size=(20, p)), 1.0):
        # sup of <β, up - down> - τ up - (1 - τ) down in the box ‖·‖_∞ <= 1: 0 inside the domain
        cost = np.concatenate([tau - beta, 1.0 - tau + beta])
        order = {"A_ub": np.hstack([-G, G]), "b_ub": np.zeros(p - 1)} if p > 1 else {}
        result = linprog(cost, bounds=[(0.0, 1.0)] * (2 * p), **order)
        assert abs(result.fun) <= 1e-7  # to which HiGHS solves
        assert loss.conjugate(beta[None])[0] == 0.0


def quadratic_prox(levels, v):
    """Minimize pinball(up - down) + ‖up - down - v‖²/2 in order, by Clarabel."""
    tau, p, G = np.array(levels), len(levels), differences(levels)
    split = np.hstack([np.eye(p), -np.eye(p)])
    A = np.vstack([-np.eye(2 * p), -G @ split])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    result = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(split.T @ split)),
        np.concatenate([tau, 1.0 - tau]) - split.T @ v,
        sparse.csc_matrix(A),
        np.zeros(len(A)),
        [clarabel.NonnegativeConeT(len(A))],
        settings,
    ).solve()
    return split @ np.array(result.x)


@each_levels
def test_prox_is_the_quadratic_program(levels):
    loss = NonCrossing(Pinball(levels))
    rng = np.random.default_rng(2)
    points = rng.normal(size=(30, len(levels))) * rng.choice([0.3, 1.0, 4.0], (30, 1))
    dual = loss.conjugate_prox(points, 0.7)
    truth = np.array([quadratic_prox(levels, v) for v in points])
    np.testing.assert_allclose(points - dual, truth, atol=1e-6)
    # no step matters: the conjugate is an indicator
    np.testing.assert_array_equal(loss.conjugate_prox(points, 1e9), dual)
    np.testing.assert_array_equal(loss.conjugate_prox(points, np.full((30, 1), 1e-9)), dual)


@each_levels
def test_bounds_are_hit_exactly(levels):
    """Residuals in order and off zero get the slopes of the pinball loss, to the last digit."""
    loss, pinball = NonCrossing(Pinball(levels)), Pinball(levels)
    p = len(levels)
    residual = np.empty((2, p))
    residual[:, np.argsort(levels)] = np.array([[7.5], [-7.5]]) - np.arange(p)
    dual = loss.conjugate_prox(residual * 1e3, 1.0)
    np.testing.assert_array_equal(dual, pinball.conjugate_prox(residual * 1e3, 1.0))
    assert not loss.conjugate_prox_jacobian(residual * 1e3, 1.0).any()


@each_levels
def test_jacobian_is_the_derivative(levels):
    loss, p = NonCrossing(Pinball(levels)), len(levels)
    rng = np.random.default_rng(3)
    points = rng.normal(size=(300, p)) * rng.choice([0.3, 1.0, 4.0, 30.0], (300, 1))
    points[:50, np.argsort(levels)] = -np.sort(-points[:50], axis=1)
    jacobian = loss.conjugate_prox_jacobian(points, 1.0)
    size = 1e-7
    for j in range(p):
        shift = size * (np.arange(p) == j)
        up, down = (loss.conjugate_prox(points + s * shift, 1.0) for s in (1.0, -1.0))
        np.testing.assert_allclose((up - down) / (2 * size), jacobian[:, :, j], atol=1e-7)
    # pools, kinks and free rows are all among them
    rank = np.round(np.einsum("ijj->i", jacobian))
    assert set(rank) == set(range(p + 1))


@each_levels
def test_compiled_envelope_is_its_definition(levels):
    loss = NonCrossing(Pinball(levels))
    rng = np.random.default_rng(4)
    anchor = loss.conjugate_prox(rng.normal(size=(50, len(levels))), 1.0)
    residual = rng.normal(size=(50, len(levels)))
    mine, truth = loss.envelope(anchor, residual, 0.7), Loss.envelope(loss, anchor, residual, 0.7)
    np.testing.assert_allclose(mine.dual, truth.dual, atol=1e-14)
    np.testing.assert_allclose(mine.value, truth.value, atol=1e-13)
    np.testing.assert_array_equal(mine.active, truth.active)
    np.testing.assert_allclose(mine.jacobian, truth.jacobian, atol=1e-14)


def test_nearest_is_isotonic_regression():
    levels = LEVELS[-1]
    order = np.argsort(levels)
    points = np.random.default_rng(5).normal(size=(30, len(levels)))
    found = NonCrossing(Pinball(levels)).nearest(points)[:, order]
    truth = [isotonic_regression(row, increasing=False) for row in points[:, order]]
    np.testing.assert_allclose(found, truth, atol=1e-14)
    assert np.all(np.diff(found, axis=1) <= 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@each_levels
def test_best_offsets_in_order_are_the_linear_program(levels, weighted):
    """Variables: offsets b, and the positive and negative parts of residual - b."""
    loss, G, p, n = NonCrossing(Pinball(levels)), differences(levels), len(levels), 25
    rng = np.random.default_rng(6)
    tau = np.array(levels)
    crossed = 0
    for spread in (0.05, 0.5, 1.0, 3.0, 10.0):
        residual = rng.normal(size=(n, 1)) + spread * rng.normal(size=(n, p))
        weight = rng.uniform(0.1, 2.0, n) if weighted else np.ones(n)
        cost = np.concatenate([np.zeros(p), np.outer(weight, tau).ravel()])
        cost = np.concatenate([cost, np.outer(weight, 1.0 - tau).ravel()])
        eye = sparse.identity(n * p)
        equal = sparse.hstack([np.tile(np.eye(p), (n, 1)), eye, -eye])
        # G (r_i - b) >= 0 for all i
        order = sparse.csr_matrix((n * len(G), cost.size))
        if p > 1:
            order = sparse.hstack(
                [np.tile(G, (n, 1)), sparse.csr_matrix((n * (p - 1), 2 * n * p))]
            )
        result = linprog(
            cost,
            A_ub=order,
            b_ub=(residual @ G.T).ravel(),
            A_eq=equal,
            b_eq=residual.ravel(),
            bounds=[(None, None)] * p + [(0.0, None)] * (2 * n * p),
        )
        assert result.status == 0
        offset = loss.minimizing_offset(residual, weight)
        assert weight @ loss.value(residual - offset) == pytest.approx(result.fun, rel=1e-9)
        plain = loss.pinball.minimizing_offset(residual, weight)
        crossed += not np.all(np.isfinite(loss.value(residual - plain)))
    assert crossed >= (0 if p == 1 else 2)


def test_best_offsets_of_one_target_are_its_quantiles():
    y = np.repeat(np.random.default_rng(7).normal(size=(30, 1)), 5, axis=1)
    loss = NonCrossing(Pinball(LEVELS[-1]))
    expected = Pinball(LEVELS[-1]).minimizing_offset(y, np.ones(30))
    np.testing.assert_array_equal(loss.minimizing_offset(y, np.ones(30)), expected)


def test_balancing_moves_by_no_more_than_it_must():
    levels = LEVELS[-1]
    loss, rng = NonCrossing(Pinball(levels)), np.random.default_rng(8)
    weight = rng.uniform(0.1, 2.0, 80)
    dual = loss.balanced(loss.conjugate_prox(2.0 * rng.normal(size=(80, 5)), 1.0), weight)
    np.testing.assert_allclose(loss.balanced(dual, weight), dual, atol=1e-14)
    for size in (1e-3, 1e-6, 1e-9):
        moved = loss.conjugate_prox(dual + size * rng.normal(size=dual.shape), 1.0)
        balanced = loss.balanced(moved, weight)
        assert np.abs(weight @ balanced).max() <= 1e-14 * (weight @ np.abs(balanced)).max()
        assert np.all(np.isfinite(loss.conjugate(balanced)))
        assert np.abs(balanced - moved).max() <= 20.0 * size


def test_balancing_projects_what_is_outside_and_shrinks_what_is_far():
    loss, rng = NonCrossing(Pinball(LEVELS[-1])), np.random.default_rng(9)
    for dual in (5.0 * rng.normal(size=(40, 5)), np.full((40, 5), 7.0)):
        balanced = loss.balanced(dual, np.ones(40))
        assert np.all(np.isfinite(loss.conjugate(balanced)))
        assert np.abs(balanced.sum(axis=0)).max() <= 1e-13 * np.abs(dual).sum()
    # multipliers so large that no point of the box makes up for them
    pushed = np.zeros((40, 5))
    pushed[:, [1, 4]] = [-10.0, 10.0]
    assert np.all(np.isfinite(loss.conjugate(pushed)))
    balanced = loss.balanced(pushed, np.ones(40))
    assert np.all(np.isfinite(loss.conjugate(balanced)))
    assert np.abs(balanced.sum(axis=0)).max() <= 1e-13


def test_order_is_taken_literally():
    loss = NonCrossing(Pinball([0.25, 0.75]))
    above = np.nextafter(1.0, 2.0)
    np.testing.assert_array_equal(
        np.isfinite(loss.value(np.array([[1.0, 1.0], [above, 1.0], [1.0, above]]))),
        [True, True, False],
    )


class Unmoved(NonCrossing):
    def nearest(self, residual):
        return residual


class Sorted(NonCrossing):
    def nearest(self, residual):
        """In the cone, but not the nearest point of it."""
        ordered = np.empty_like(residual)
        ordered[:, self._order] = -np.sort(-residual, axis=1)
        return ordered


class Shrunk(NonCrossing):
    balanced = Loss.balanced


class Unbalanced(NonCrossing):
    def balanced(self, dual, weight):
        return dual


class Reversed(NonCrossing):
    @property
    def cone(self):
        return -super().cone


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (Unmoved, "value is not finite"),
        (Sorted, "nearest is not a projection"),
        (Shrunk, "balanced leaves the domain"),
        (Unbalanced, "balanced leaves a sum"),
        (Reversed, "value is finite outside of the cone, or infinite inside"),
    ],
)
def test_the_contract_sees_what_is_wrong(broken, sentence):
    check_loss(NonCrossing(Pinball(LEVELS[2])))
    with pytest.raises(AssertionError, match=sentence):
        check_loss(broken(Pinball(LEVELS[2])))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: NonCrossing(Absolute()),
            r"pinball must be a Pinball loss with epsilon=0, got Abs",
        ),
        (lambda: NonCrossing(Pinball(0.3).insensitive(0.1)), r"with epsilon=0, got Pinball"),
        (lambda: NonCrossing(Pinball(0.3, n_targets=2)), r"a loss of one target, got Pinball"),
        (lambda: NonCrossing(Pinball([0.1, 0.9])).insensitive(0.1), r"no ε-insensitive version"),
        (lambda: Insensitive(NonCrossing(Pinball([0.1, 0.9])), 0.1), r"no ε-insensitive version"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_shown_as_it_is_made():
    assert repr(NonCrossing(Pinball([0.2, 0.1]))) == "NonCrossing(Pinball([0.2, 0.1]))"

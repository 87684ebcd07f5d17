"""Multi-task feature learning against its definition."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from experiments.comparisons import mtfl
from scipy import sparse

from fenchel.losses import Pinball

LEVELS = (0.2, 0.7)
STRENGTH = 0.5


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 4))
    return features, features @ [1.0, -1.0, 0.0, 0.3] + rng.normal(size=30)


def trace_norm_objective(learned, features, y):
    loss = Pinball(LEVELS).value(y[:, None] - learned.predict(features)).sum()
    return 0.5 * np.linalg.norm(learned.weights, "nuc") ** 2 + STRENGTH * loss


def trace_norm_optimum(features, y):
    """min ½ t² + C Σ loss, t the trace norm: [[P, W], [Wᵀ, Q]] ⪰ 0, tr P + tr Q <= 2t."""
    n, r = features.shape
    p = len(LEVELS)
    order = r + p
    triangle = [(i, j) for j in range(order) for i in range(j + 1)]
    place = {pair: k for k, pair in enumerate(triangle)}
    m, size = n * p, len(triangle)
    total = size + p + 1 + 2 * m  # M, b, t, positive and negative parts of residuals
    equality = sparse.lil_matrix((m, total))
    for i in range(n):
        for j in range(p):
            row = i * p + j
            for k in range(r):
                equality[row, place[(k, r + j)]] = features[i, k]
            equality[row, size + j] = 1.0
            equality[row, size + p + 1 + row] = 1.0
            equality[row, size + p + 1 + m + row] = -1.0
    trace = sparse.lil_matrix((1, total))
    for k in range(order):
        trace[0, place[(k, k)]] = 1.0
    trace[0, size + p] = -2.0
    parts = sparse.hstack([sparse.csc_matrix((2 * m, size + p + 1)), -sparse.eye(2 * m)])
    scale = [1.0 if i == j else np.sqrt(2.0) for i, j in triangle]
    cone = sparse.hstack([-sparse.diags(scale), sparse.csc_matrix((size, total - size))])
    quadratic = sparse.csc_matrix(([1.0], ([size + p], [size + p])), shape=(total, total))
    tau = np.tile(LEVELS, n)
    linear = np.concatenate([np.zeros(size + p + 1), STRENGTH * tau, STRENGTH * (1 - tau)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        quadratic,
        linear,
        sparse.vstack([equality, trace, parts, cone], format="csc"),
        np.concatenate([np.repeat(y, p), np.zeros(1 + 2 * m + size)]),
        [
            clarabel.ZeroConeT(m),
            clarabel.NonnegativeConeT(1 + 2 * m),
            clarabel.PSDTriangleConeT(order),
        ],
        settings,
    ).solve()
    assert str(solution.status) == "Solved"
    return solution.obj_val


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-5])
def test_it_solves_the_trace_norm_problem(data, tol):
    learned = mtfl.learn(*data, LEVELS, STRENGTH, tol=tol)
    optimum = trace_norm_optimum(*data)
    assert learned.objective == pytest.approx(trace_norm_objective(learned, *data), rel=1e-12)
    assert learned.relative_gap <= tol
    assert learned.lower <= optimum * (1 + 1e-7)
    assert optimum * (1 - 1e-7) <= learned.objective


def test_bounds_hold_when_steps_are_few(data):
    optimum = trace_norm_optimum(*data)
    gaps = []
    for steps in (1, 2, 4, 8):
        learned = mtfl.learn(*data, LEVELS, STRENGTH, tol=1e-12, max_iter=steps)
        assert learned.steps == steps
        assert learned.lower <= optimum * (1 + 1e-7)
        assert optimum * (1 - 1e-7) <= learned.objective
        gaps.append(learned.relative_gap)
    assert gaps[-1] < 0.1 * gaps[0]


def test_more_levels_than_features():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(20, 2))
    y = features[:, 0] + rng.normal(size=20)
    learned = mtfl.learn(features, y, (0.2, 0.5, 0.8), STRENGTH)
    assert learned.relative_gap <= 1e-3
    assert learned.weights.shape == (2, 3)


def test_every_strength_is_solved_in_few_steps():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    features = mtfl.row_features(X)(X)
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_t(3, size=60)
    for strength in np.geomspace(1e-5, 1e5, 11):
        learned = mtfl.learn(features, y, (0.1, 0.3, 0.5, 0.7, 0.9), strength, tol=1e-4)
        assert learned.relative_gap <= 1e-4
        assert learned.steps <= 30


def test_strength_zero_in_the_limit_is_a_constant():
    X = np.linspace(0.0, 1.0, 20)[:, None]
    features_of = mtfl.row_features(X)
    learned = mtfl.learn(features_of(X), X[:, 0], LEVELS, 1e-8)
    assert np.ptp(learned.predict(features_of(X)), axis=0).max() < 1e-4


def test_basis_keeps_inner_products():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(12, 2)), rng.normal(size=(5, 2))
    mapped = mtfl.row_features(X)
    width = mtfl.DistanceQuantile(0.7).measure(X)
    kernel = mtfl.Gaussian(width)
    np.testing.assert_allclose(mapped(new) @ mapped(X).T, kernel(new, X) @ kernel(X, X), atol=1e-8)

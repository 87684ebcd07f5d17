"""Group norms against their definition, and proxes by their optimality conditions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fenchel.norms import GroupNorm

DUAL = {1: np.inf, 1.01: 101.0, 1.25: 5.0, 1.5: 3.0, 2: 2, 3: 1.5, 7: 7 / 6, np.inf: 1}
PAIRS = list(itertools.product(DUAL, DUAL))
GROUPS = np.array([2, 0, 0, 1, 2, 1, 0, 3, 3])
each_pair = pytest.mark.parametrize(("q", "p"), PAIRS)


def norm(W, labels, q, p):
    """‖W‖_{q,p} from its definition."""
    unit = np.abs(W).max() or 1.0  # powers of 100 leave the floats
    inside = [np.linalg.norm(W[labels == j].ravel() / unit, q) for j in np.unique(labels)]
    return unit * np.linalg.norm(inside, p)


@each_pair
def test_value_and_dual_norm(q, p):
    random = np.random.default_rng(1)
    ours = GroupNorm(GROUPS, float(q), float(p))
    for _ in range(20):
        W, V = random.normal(size=(2, len(GROUPS), 2))
        assert ours.value(W) == pytest.approx(norm(W, GROUPS, q, p), rel=1e-14)
        dual = norm(V, GROUPS, DUAL[q], DUAL[p])
        assert ours.dual.value(V) == pytest.approx(dual, rel=1e-14)
        assert np.vdot(W, V) <= norm(W, GROUPS, q, p) * dual
    # the dual norm is attained: by the prox of the norm with a tiny remainder
    rest = V - ours.prox(V, 0.999 * ours.dual.value(V))
    tight = ours.prox(V, 0.999 * ours.dual.value(V))
    assert np.vdot(rest, tight) == pytest.approx(
        norm(tight, GROUPS, q, p) * norm(rest, GROUPS, DUAL[q], DUAL[p]), rel=1e-9
    )


@each_pair
def test_prox_by_its_optimality_conditions(q, p):
    """U is the prox of t‖·‖ at W exactly if ‖W - U‖_* <= t and <W - U, U> = t‖U‖."""
    random = np.random.default_rng(2)
    for trial in range(60):
        n_groups = random.integers(1, 5)
        labels = np.append(np.arange(n_groups), random.integers(0, n_groups, 5))
        W = random.normal(size=(len(labels), random.integers(1, 3))) * 10.0 ** random.integers(
            -6, 6
        )
        if trial % 3 == 0:  # ties and zeros
            W = np.round(2 * W / np.abs(W).max())
        bound = norm(W, labels, DUAL[q], DUAL[p])
        t = bound * random.uniform(0.01, 1.1)
        U = GroupNorm(labels, float(q), float(p)).prox(W, t)
        assert norm(W - U, labels, DUAL[q], DUAL[p]) <= t * (1 + 1e-12)
        gap = t * norm(U, labels, q, p) - np.vdot(W - U, U)
        assert abs(gap) <= 1e-13 * np.vdot(W, W)
        if t >= bound:
            assert np.abs(U).max() <= 1e-13 * np.abs(W).max()


@each_pair
def test_projection_is_on_the_ball_and_nearest(q, p):
    random = np.random.default_rng(3)
    ours = GroupNorm(GROUPS, float(q), float(p))
    for _ in range(20):
        W = random.normal(size=(len(GROUPS), 1))
        radius = norm(W, GROUPS, q, p) * random.uniform(0.05, 1.2)
        U = ours.project(W, radius)
        assert norm(U, GROUPS, q, p) <= radius * (1 + 1e-12)
        # W - U is in the normal cone at U: <W - U, V - U> <= 0 on the ball
        support = radius * norm(W - U, GROUPS, DUAL[q], DUAL[p])
        assert support - np.vdot(W - U, U) <= 1e-12 * np.vdot(W, W)


@pytest.mark.parametrize("q", DUAL)
def test_each_group_may_have_a_step_of_its_own(q):
    random = np.random.default_rng(4)
    W, steps = random.normal(size=(len(GROUPS), 2)), np.array([0.1, 3.0, 0.7, 0.2])
    whole = GroupNorm(GROUPS, float(q), 1.0)
    found = whole.prox(W, steps[GROUPS, None])
    for j, step in enumerate(steps):
        rows = np.flatnonzero(j == GROUPS)
        alone = GroupNorm(np.zeros(len(rows), dtype=int), float(q), 1.0).prox(W[rows], step)
        np.testing.assert_allclose(found[rows], alone, atol=1e-12)


@pytest.mark.parametrize("q", [1.0, 2.0])
def test_each_row_may_have_a_step_of_its_own(q):
    """(W - U) / t is in the subdifferential of the norm at U: of dual norm one, <., U> = ‖U‖."""
    random = np.random.default_rng(5)
    for _ in range(50):
        W = random.normal(size=(len(GROUPS), 2)) * 10.0 ** random.uniform(-3.0, 3.0)
        steps = 10.0 ** random.uniform(-6.0, 2.0, (len(GROUPS), 1))
        U = GroupNorm(GROUPS, q, 1.0).prox(W, steps)
        pull = (W - U) / steps
        assert norm(pull, GROUPS, DUAL[q], np.inf) <= 1.0 + 1e-7
        assert np.vdot(pull, U) == pytest.approx(norm(U, GROUPS, q, 1.0), rel=1e-7)


def test_steps_of_rows_may_be_tiny():
    """Squares of W / t overflow, and a step may vanish beside an entry that does."""
    W = np.array([[1e150], [-1e150], [0.0], [0.0], [2.0]])
    steps = np.array([[1e-200], [1e-300], [0.0], [1e-320], [1.0]])
    U = GroupNorm(np.array([0, 0, 1, 1, 2]), 2.0, 1.0).prox(W, steps)
    np.testing.assert_array_equal(U, [[1e150], [-1e150], [0.0], [0.0], [1.0]])


@pytest.mark.parametrize("q", [1.001, 1.01, 1.05, 1.2])
def test_a_large_group_leaves_others_their_proxes(q):
    """Of q near one, a group beside one 200 times larger was not moved at all."""
    W = np.array([[0.487], [-0.415], [0.379], [100.0]])
    found = GroupNorm(np.array([0, 0, 0, 1]), q, 1.0).prox(W, 0.47)
    alone = GroupNorm(np.zeros(3, dtype=int), q, 1.0).prox(W[:3], 0.47)
    np.testing.assert_allclose(found[:3], alone, atol=1e-9)
    pull = (W - found)[:3] / 0.47
    dual = np.sum(np.abs(pull) ** (q / (q - 1.0))) ** ((q - 1.0) / q)
    assert dual == pytest.approx(1.0, rel=1e-7)
    assert np.vdot(pull, found[:3]) == pytest.approx(norm(found[:3], [0] * 3, q, 1.0), abs=1e-9)

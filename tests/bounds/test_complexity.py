"""Rademacher averages against enumeration of signs and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fenchel.bounds import (
    affine_pseudo_dimension,
    finite_class,
    kernel_ball,
    kernel_ball_complexity,
    l1_ball,
    l1_ball_complexity,
    positive_model_complexity,
    rademacher_complexity,
)
from fenchel.kernels import Gaussian


def test_kernel_ball_of_two_rows_by_hand():
    """σᵀKσ is 2 + 2c for equal signs and 2 - 2c for different ones."""
    c, norm = 0.3, 1.7
    exact = norm * 0.5 * (np.sqrt(2 + 2 * c) + np.sqrt(2 - 2 * c)) / 2
    oracle = kernel_ball([[1.0, c], [c, 1.0]], norm)
    value, error = rademacher_complexity(oracle, 2, None)
    assert value == pytest.approx(exact, rel=1e-14)
    assert error == 0.0
    drawn = rademacher_complexity(oracle, 2, 20_000, random_state=1)
    assert abs(drawn.value - exact) < 4.0 * drawn.standard_error
    assert 0.0 < drawn.standard_error < 0.005 * exact


def test_kernel_ball_of_three_rows_by_hand():
    a, b, c = 0.5, 0.2, -0.4
    K = np.array([[1.0, a, b], [a, 1.0, c], [b, c, 1.0]])
    signs = [(1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)]  # the others are their opposites
    lengths = [3 + 2 * (s * t * a + s * u * b + t * u * c) for s, t, u in signs]
    exact = np.mean(np.sqrt(lengths)) / 3
    assert rademacher_complexity(kernel_ball(K, 1.0), 3, None).value == pytest.approx(exact)
    drawn = rademacher_complexity(kernel_ball(K, 1.0), 3, 20_000, random_state=0)
    assert abs(drawn.value - exact) < 4.0 * drawn.standard_error


def test_the_supremum_over_a_ball_is_reached_by_no_function_outside_of_it():
    """Against functions Σ a_i k(x_i, ·) normed to Λ: the best one has a proportional to σ."""
    random = np.random.RandomState(0)
    K = Gaussian(1.0)(random.standard_normal((5, 2)))
    signs = np.array([1.0, -1.0, -1.0, 1.0, 1.0])
    a = np.concatenate([signs[None], random.standard_normal((2000, 5))])
    a *= 2.0 / np.sqrt(np.einsum("mi,ij,mj->m", a, K, a))[:, None]
    reached = a @ K @ signs
    supremum = kernel_ball(K, 2.0)(signs[None])[0]
    assert reached[0] == pytest.approx(supremum)
    assert reached.max() <= supremum * (1 + 1e-12)


def test_bound_by_the_trace_is_within_khintchine():
    K = Gaussian(0.7)(np.random.RandomState(3).standard_normal((12, 2)))
    exact = rademacher_complexity(kernel_ball(K, 1.5), 12, None).value
    upper = kernel_ball_complexity(np.trace(K), 1.5, 12)
    assert upper == pytest.approx(1.5 / np.sqrt(12))
    assert upper / np.sqrt(2) <= exact < upper


def test_l1_ball_by_enumeration():
    X = np.array([[1.0, -2.0], [0.5, 1.0], [-1.0, 0.3]])
    corners = 0.8 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    total = 0.0
    for signs in itertools.product((-1, 1), repeat=3):
        total += max(float(np.dot(signs, X @ w)) for w in corners)
    exact = rademacher_complexity(l1_ball(X, 0.8), 3, None).value
    assert exact == pytest.approx(total / 8 / 3)
    assert exact <= l1_ball_complexity(2.0, 0.8, 2, 3)


def test_massart_is_near_for_many_features():
    X = np.sign(np.random.RandomState(0).standard_normal((200, 1000)))
    drawn = rademacher_complexity(l1_ball(X, 1.0), 200, 200)
    upper = l1_ball_complexity(1.0, 1.0, 1000, 200)
    assert 0.8 * upper < drawn.value < upper


def test_a_single_function_has_no_complexity():
    assert rademacher_complexity(finite_class([[3.0, -1.0, 2.0]]), 3, None).value == 0.0


def test_positive_models_by_their_exact_supremum():
    """sup of <A, S> over A ⪰ 0 with ‖A‖ <= L is L times the length of the positive part of S."""
    random = np.random.RandomState(0)
    phi = random.standard_normal((10, 3))
    phi *= 0.5 / np.linalg.norm(phi, axis=1, keepdims=True)

    def oracle(signs):
        S = np.einsum("mi,ij,ik->mjk", signs, phi, phi)
        return 2.0 * np.linalg.norm(np.maximum(np.linalg.eigvalsh(S), 0.0), axis=1)

    exact = rademacher_complexity(oracle, 10, None).value
    assert 0.3 * positive_model_complexity(2.0, 0.5, 10) < exact
    assert exact < positive_model_complexity(2.0, 0.5, 10)


def test_affine_functions_shatter_as_many_points_as_their_pseudo_dimension():
    """d + 1 points in general position are shattered around 0; d + 2 are not, by Radon."""
    random = np.random.RandomState(0)
    for d in (1, 2, 3):
        D = affine_pseudo_dimension(d)
        X = np.column_stack([random.standard_normal((D, d)), np.ones(D)])
        patterns = np.array(list(itertools.product((-1.0, 1.0), repeat=D)))
        weights = np.linalg.solve(X, patterns.T)
        np.testing.assert_array_equal(np.sign(X @ weights), patterns.T)
        # an affine dependence of one point more forbids one pattern, whatever the thresholds
        more = np.column_stack([random.standard_normal((D + 1, d)), np.ones(D + 1)])
        dependence = np.linalg.svd(more.T)[2][-1]
        np.testing.assert_allclose(more.T @ dependence, 0.0, atol=1e-12)
        thresholds = random.standard_normal(D + 1)
        side = np.sign(dependence) * (1.0 if dependence @ thresholds >= 0.0 else -1.0)
        values = more @ (10.0 * random.standard_normal((d + 1, 20_000))) - thresholds[:, None]
        assert not (np.sign(values) == side[:, None]).all(axis=0).any()
        if d == 1:  # of all other patterns, each occurs
            seen = {tuple(column) for column in np.sign(values).T}
            assert len(seen) == 2 ** (D + 1) - 1
    assert affine_pseudo_dimension(4, fit_intercept=False) == 4


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: rademacher_complexity(lambda s: s, 3), "oracle must return one supremum"),
        (lambda: rademacher_complexity(kernel_ball(np.eye(3), 1.0), 0), "n must be an integer"),
        (lambda: rademacher_complexity(kernel_ball(np.eye(20), 1.0), 20, None), "n at most 16"),
        (lambda: kernel_ball(np.ones((2, 3)), 1.0), "gram must be a square"),
        (lambda: kernel_ball(np.eye(2), -1.0), "norm must be a finite number >= 0, got -1"),
        (lambda: l1_ball([1.0], 1.0), "X must be a two-dimensional"),
        (lambda: kernel_ball_complexity(np.nan, 1.0, 3), "trace must be a finite"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()

"""A factor in the array of its matrix, against computations with two arrays."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fenchel.design import Factored, Gram


def matrix(n, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n // 2 + 1))
    return A @ A.T, rng.uniform(0.5, 2.0, n), rng.normal(size=(n, 3))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 200])
def test_all_of_it_against_numpy(n):
    K, shift, right = matrix(n)
    array = K.copy()
    factored = Factored(array).factor(shift)
    whole = K + np.diag(shift)
    assert_allclose(factored.solve(right), np.linalg.solve(whole, right), rtol=1e-9, atol=1e-11)
    assert_allclose(factored.product(right), K @ right, rtol=1e-12, atol=1e-11)
    factored.restore()
    assert_array_equal(array, K)
    factored, inverse = Factored(array).factor(shift), np.linalg.inv(whole)
    assert_allclose(factored.inverse_diagonal(), np.diag(inverse), rtol=1e-9)
    assert_allclose(factored.inverse(), inverse, rtol=1e-9, atol=1e-11)
    factored.restore()
    assert_array_equal(array, K)


def test_what_is_not_positive_definite_is_put_back():
    K, shift, _ = matrix(100)
    array = K.copy()
    with pytest.raises(np.linalg.LinAlgError):
        Factored(array).factor(-10.0 * shift)
    assert_array_equal(array, K)


def test_a_design_multiplies_by_the_kernel_while_the_factor_is_there():
    K, shift, right = matrix(150)
    array, S = K.copy(), np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [0.3, 0.0, 1.0]])
    design = Gram(array, S)
    design.factored(shift)
    assert design.left_factor is not None
    assert not np.array_equal(array, K)
    assert_allclose(design.image(right), K @ right @ (S @ S.T), rtol=1e-11, atol=1e-10)
    assert_allclose(design.diagonal(), np.diag(K) * np.sum(S**2) / 3, rtol=1e-13)
    for use in (
        lambda: design.gram,
        lambda: design.subset(np.arange(5)),
        lambda: design.functions(np.arange(4), np.ones((4, 3))).gram(),
        lambda: design.image(right[:3], np.arange(3)),
        lambda: design.factored(2.0 * shift).restore(),
    ):
        design.factored(shift)
        use()
        assert_array_equal(array, K)


def test_given_arrays_that_must_not_change_are_copied():
    K, shift, right = matrix(90)
    K.setflags(write=False)
    solution = Gram(K, np.eye(3)).factored(shift).solve(right)
    expected = np.linalg.solve(K + np.diag(shift), right)
    assert_allclose(solution, expected, rtol=1e-9, atol=1e-11)

"""Combinations of kernel values in tiles, against products with all kernel values."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from fenchel.kernels import (
    Callable,
    Gaussian,
    KernelFunctions,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    ScalarKernel,
    WithRanks,
    resolve,
)

KERNELS = [
    Gaussian(1.5),
    Matern(2.0, nu=0.5),
    Matern(2.0, nu=1.5),
    Matern(2.0, nu=2.5),
    Laplacian(1.0),
    Linear(),
    Polynomial(1),
    Polynomial(3, gain=0.2),
    WithRanks(Matern(2.0)),
    OnColumns(Gaussian(0.7), columns=[1]),
    Callable(lambda X, Y: np.minimum(X[:, :1] ** 2, Y[:, 0] ** 2)),
    sk.RBF(1.3),
    sk.RationalQuadratic(1.0, 0.5),
    sk.ConstantKernel(2.0) * sk.RBF(1.3) + sk.DotProduct(),
    2.0 * Gaussian(1.0) + Linear() * Laplacian(3.0),
    Gaussian(2.0) ** 2,
]


def data(n, m, d, p=2):
    rng = np.random.default_rng(n + m + d)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(m, p))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: repr(kernel)[:40])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 40, 3), (37, 5, 12), (300, 700, 2), (130, 4200, 9)])
def test_combined_is_a_product_with_all_kernel_values(kernel, n, m, d):
    X, Z, coefficients = data(n, m, d)
    kernel = resolve(kernel, Z)
    K = kernel(X, Z)
    allowed = 1e-13 * (np.abs(K) @ np.abs(coefficients)).max()
    combined = KernelFunctions(kernel, Z).combined(X, coefficients)
    assert_allclose(combined, K @ coefficients, rtol=0, atol=allowed)


def test_of_one_feature_and_of_nothing():
    X, Z, coefficients = data(50, 60, 1)
    expected = np.exp(-0.5 * (X - Z.T) ** 2) @ coefficients
    functions = KernelFunctions(Gaussian(1.0), Z)
    assert_allclose(functions.combined(X, coefficients), expected, rtol=1e-13, atol=1e-13)
    assert functions.combined(X[:0], coefficients).shape == (0, 2)
    none = KernelFunctions(Gaussian(1.0), Z[:0]).combined(X, coefficients[:0])
    assert_array_equal(none, np.zeros((50, 2)))


def test_the_same_bits_for_any_number_of_threads():
    X, Z, coefficients = data(9000, 900, 10)
    functions = KernelFunctions(resolve(WithRanks(Matern(2.0)), Z), Z)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            found.append(functions.combined(X, coefficients))
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_functions_of_a_user_are_called_in_one_thread():
    import threading

    seen = set()

    def linear(X, Y):
        seen.add(threading.get_ident())
        return X @ Y.T

    X, Z, coefficients = data(9000, 900, 10)
    with threadpool_limits(2):
        KernelFunctions(1.0 * Callable(linear), Z).combined(X, coefficients)
    assert seen == {threading.get_ident()}


def test_a_subclass_with_other_values_has_these():
    class Halved(Gaussian):
        def _evaluate(self, X, Y):
            return 0.5 * super()._evaluate(X, Y)

    class Doubled(Linear):
        def __call__(self, X, Y=None, eval_gradient=False):
            return 2.0 * super().__call__(X, Y, eval_gradient)

    class Foreign(ScalarKernel):
        def _evaluate(self, X, Y):
            return 3.0 * X @ Y.T

    X, Z, coefficients = data(30, 40, 3)
    for kernel in (Halved(1.0), Doubled(), Foreign()):
        combined = KernelFunctions(kernel, Z).combined(X, coefficients)
        assert_allclose(combined, kernel(X, Z) @ coefficients, rtol=1e-13, atol=1e-13)

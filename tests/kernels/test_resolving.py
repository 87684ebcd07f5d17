import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk

from fenchel.kernels import (
    ALIASES,
    Callable,
    DistanceQuantile,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    as_kernel,
    resolve,
)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 50.0]


def test_aliases():
    expected = {
        "gaussian": Gaussian(),
        "rbf": Gaussian(),
        "laplacian": Laplacian(),
        "matern12": Matern(nu=0.5),
        "matern32": Matern(nu=1.5),
        "matern52": Matern(nu=2.5),
        "polynomial": Polynomial(),
        "linear": Linear(),
        "precomputed": Precomputed(),
    }
    assert set(ALIASES) == set(expected)
    for name, kernel in expected.items():
        assert as_kernel(name) == kernel
        as_kernel(name).set_params(**dict.fromkeys(kernel.get_params(), 0.5))
        assert as_kernel(name) == kernel  # the table gives copies


def test_as_kernel_takes_kernels_functions_and_nothing():
    assert as_kernel(None) == Gaussian()
    for kernel in (Gaussian(2.0), sk.RBF(), sk.RBF() + Linear()):
        assert as_kernel(kernel) is kernel
    assert as_kernel(np.minimum.outer) == Callable(np.minimum.outer)


@pytest.mark.parametrize("kernel", [3, Gaussian, [Gaussian()], 1.5])
def test_as_kernel_refuses_other_types(kernel):
    with pytest.raises(TypeError, match="kernel must be None, a name, a kernel object or a func"):
        as_kernel(kernel)


def test_as_kernel_refuses_unknown_names():
    with pytest.raises(ValueError, match=r"kernel must be one of \['gaussian', .*got 'gausian'"):
        as_kernel("gausian")


def test_resolve_returns_a_new_kernel(X):
    kernel = 2.0 * Gaussian("median") + (Laplacian() * sk.RBF(3.0)) ** 2 + Linear()
    before = clone(kernel)
    resolved = resolve(kernel, X)
    assert kernel == before
    median = DistanceQuantile(0.5).measure(X)
    scale = DistanceQuantile(0.5, standardize=True).measure(X)
    expected = 2.0 * Gaussian(median)(X) + (Laplacian(scale)(X) * sk.RBF(3.0)(X)) ** 2 + X @ X.T
    np.testing.assert_allclose(resolved(X), expected, rtol=1e-12)
    assert resolve(resolved, X[:5]) == resolved  # numbers stay


def test_resolve_passes_weights_and_seed(X):
    weight = np.arange(30.0)
    measured = DistanceQuantile(0.7).measure(X, weight)
    assert resolve(Gaussian(DistanceQuantile(0.7)), X, weight).length_scale == measured
    many = np.random.default_rng(0).normal(size=(1500, 1))
    kernel = Gaussian("median") + Linear()
    assert resolve(kernel, many) == resolve(kernel, many, random_state=0)
    assert resolve(kernel, many) != resolve(kernel, many, random_state=1)


@pytest.mark.parametrize("width", ["mean", "0.7", -1.0, np.nan, [1.0, 0.0]])
@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: 2.0 * (Linear() + k) ** 2])
def test_resolve_refuses_bad_widths(X, width, wrap):
    with pytest.raises(ValueError, match=r"length_scale must be a positive number, .*'median'"):
        resolve(wrap(Gaussian(width)), X)


def test_resolve_refuses_wrong_lengths(X):
    with pytest.raises(ValueError, match="one entry for each of the 2 features, got 3"):
        resolve(Gaussian([1.0, 2.0, 3.0]), X)

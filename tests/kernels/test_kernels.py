"""Every kernel that there is a name for keeps its contract, and so do what is made of them."""

from __future__ import annotations

from inspect import isclass

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from fenchel import kernels
from fenchel.kernels import (
    ALIASES,
    BetweenCurves,
    Callable,
    DistanceQuantile,
    Gaussian,
    IntegralGaussian,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    Precomputed,
    ScalarKernel,
    WithRanks,
)
from fenchel.testing import check_kernel

WITHIN = (1e-3, 1e3)
KERNELS = [
    Gaussian(),
    Gaussian(2.0),
    Gaussian([1.0, 10.0, 0.1]),
    Gaussian("median"),
    Gaussian(DistanceQuantile(0.7)),
    Laplacian(),
    Laplacian("median"),
    Matern(nu=0.5),
    Matern(nu=1.5),
    Matern(2.0, nu=2.5),
    Linear(),
    Polynomial(),
    Polynomial(degree=5, gain=0.1, offset=0.0),
    Callable(lambda X, Y: np.exp(-np.abs(X[:, :1] - Y[:, 0]))),
    BetweenCurves(Gaussian("median")),
    BetweenCurves(Laplacian("median"), quadrature="trapezoid", points=[0.0, 1.0, 5.0]),
    BetweenCurves(sk.Matern(nu=1.5), n_channels=3),
    IntegralGaussian(),
    IntegralGaussian([1.0, 10.0, 0.1], n_channels=3),
    IntegralGaussian(DistanceQuantile(0.2), quadrature=[1.0, 2.0, 0.5]),
    OnColumns(Gaussian(), [0, 2]),
    OnColumns(BetweenCurves(Gaussian("median")), slice(1, None)) * OnColumns(Linear(), [0]),
    Gaussian() + 0.5 * Linear(),
    Gaussian("median") * Laplacian() + 1.0,
    Matern() ** 2,
    sk.RBF(2.0) + Gaussian(),
    sk.RationalQuadratic(),
    sk.DotProduct() * sk.Matern(nu=1.5),
    WithRanks(Gaussian()),
    WithRanks(Matern("median"), [0, 2]) + sk.ConstantKernel(0.5) * Linear(),
    # parameters within bounds, whose derivatives are tested
    Gaussian(2.0, WITHIN),
    Gaussian([1.0, 10.0, 0.1], WITHIN),
    Matern([1.0, 10.0, 0.1], 0.5, WITHIN),
    Matern(2.0, 2.5, WITHIN),
    Laplacian([1.0, 10.0, 0.1], WITHIN),
    OnColumns(Matern(1.0, length_scale_bounds=WITHIN), [0, 2]) * sk.RBF(2.0),
    2.0 * Gaussian() + 0.3 * Linear() * Laplacian(),
    (Matern() + sk.RBF(3.0)) ** 2 * sk.RationalQuadratic(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_contract(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("name", sorted(set(ALIASES) - {"precomputed"}))
def test_contract_of_aliases(name):
    check_kernel(name)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (70, 1), (30, 20)])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(), Matern(), Linear(), Polynomial(), BetweenCurves(Gaussian()), IntegralGaussian()],
    ids=repr,
)
def test_contract_on_rows_of_any_shape(kernel, shape):
    """One row, few rows, one feature, and as many features as go through a matrix product."""
    check_kernel(kernel, np.random.default_rng(0).standard_normal(shape))


def test_every_kernel_is_registered():
    public = [getattr(kernels, name) for name in kernels.__all__]
    classes = {each for each in public if isclass(each) and issubclass(each, ScalarKernel)}
    assert classes - {ScalarKernel, Precomputed} == {
        type(kernel) for kernel in KERNELS if isinstance(kernel, ScalarKernel)
    }

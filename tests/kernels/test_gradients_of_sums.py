"""Gradients of sums of kernels, by differences."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, RationalQuadratic

from fenchel.kernels import Gaussian, Matern, as_scalar_kernel


def test_gradient_of_a_sum_is_that_of_its_parts():
    random = np.random.default_rng(0)
    X, Z, weights = (
        random.normal(size=(5, 2)),
        random.normal(size=(4, 2)),
        random.normal(size=(5, 4)),
    )
    kernel = as_scalar_kernel(Gaussian(0.7) + Matern(1.3) + ConstantKernel(3.0))
    found = kernel.gradient(X, Z, weights)
    for column, step in enumerate(1e-6 * np.eye(2)):
        change = np.sum(weights * (kernel(X + step, Z) - kernel(X - step, Z)), axis=1) / 2e-6
        np.testing.assert_allclose(found[:, column], change, rtol=1e-6, atol=1e-8)
    assert as_scalar_kernel(Gaussian(0.7) + RationalQuadratic()).gradient(X, Z, weights) is None

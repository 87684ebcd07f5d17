"""Derivatives of kernels in their open parameters, against differences of values."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk

from fenchel.kernels import (
    Gaussian,
    Laplacian,
    Matern,
    WithRanks,
    differentiated,
    opened,
    parameter_gradient,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 2))
Z = RNG.normal(size=(5, 2))
KERNELS = [
    Gaussian(),
    Gaussian("shared"),
    Gaussian(0.7, length_scale_bounds=(0.1, 10.0)),
    Laplacian(),
    Matern(nu=0.5),
    Matern(nu=1.5),
    Matern(nu=2.5),
    WithRanks(Gaussian()),
    WithRanks(Matern()),
    Gaussian() + sk.ConstantKernel(0.5) * Matern(),
    Gaussian() ** 2,
    sk.RBF([0.5, 2.0]),
    sk.Matern(0.7, nu=1.5),
    sk.Matern([0.5, 2.0], nu=np.inf),
]
every_kernel = pytest.mark.parametrize("given", KERNELS, ids=repr)


def differences(kernel, weigh, step=1e-5):
    """Central differences of a number made of the kernel, in each of its open parameters."""
    moves = step * np.eye(kernel.n_dims)
    ends = [[weigh(kernel.clone_with_theta(kernel.theta + s * e)) for s in (1, -1)] for e in moves]
    return (np.array(ends) @ [1.0, -1.0]) / (2.0 * step)


@every_kernel
def test_values_and_derivatives_among_rows(given):
    kernel = opened(given, X)
    values, gradient_of = differentiated(kernel, X)
    np.testing.assert_allclose(values, kernel(X), rtol=1e-12, atol=1e-15)
    weights = RNG.normal(size=values.shape)
    expected = differences(kernel, lambda other: np.vdot(weights, other(X)))
    assert np.abs(expected).min() > 1e-3
    np.testing.assert_allclose(gradient_of(weights), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("given", [sk.RBF(np.ones(20)), sk.Matern(np.ones(20), nu=2.5)])
def test_no_array_of_all_derivatives(given):
    rows = RNG.normal(size=(200, 20))
    one = np.ones((200, 200))
    tracemalloc.start()
    try:
        differentiated(given, rows)[1](one)
        parameter_gradient(given, rows, rows, one)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * one.nbytes  # of 20


@every_kernel
def test_derivatives_between_rows(given):
    kernel = opened(given, X)
    weights = RNG.normal(size=(9, 5))
    expected = differences(kernel, lambda other: np.vdot(weights, other(X, Z)))
    found = parameter_gradient(kernel, X, Z, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@every_kernel
def test_derivatives_far_from_zero(given):
    """Squared distances do not depend on where rows are, and nor does what is learned."""
    near = np.round(2.0**20 * X) / 2.0**20
    weights = RNG.normal(size=(9, 9))
    found = []
    for rows in (near, near + 2.0**22):
        kernel = opened(given, rows)
        between = parameter_gradient(kernel, rows, rows[:5], weights[:, :5])
        found.append(np.append(differentiated(kernel, rows)[1](weights), between))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-9)

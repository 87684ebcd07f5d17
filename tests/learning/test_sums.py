"""Sums of kernels whose summands have very different sizes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel

from fenchel import KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian, Linear, Matern, summands_of
from fenchel.learning import Data, Learning, learn
from fenchel.losses import Squared


def trend(n=120, seed=0):
    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(size=n))
    return x[:, None], 2.0 * x + np.sin(12.0 * x) + 0.2 * random.normal(size=n)


@pytest.mark.parametrize("units", [24.0, 2000.0])
@pytest.mark.parametrize("model", [KernelRidge(), QuantileRegressor(0.5)])
@pytest.mark.parametrize("line", [Linear(), ConstantKernel(0.1) * Linear()], ids=["1", "learned"])
def test_a_trend_in_large_units_leaves_the_rest_of_the_curve(units, model, line):
    """Its functions are large; with an alpha in their unit, it was all that was fitted."""
    X, y = trend()
    model.set_params(kernel=Matern() + line, tol=1e-5)
    one = model.fit(X, y).predict(X)
    held_out = model.learned_.criterion
    other = model.fit(units * X, y).predict(units * X)
    assert np.abs(other - one).mean() < 0.02
    assert model.learned_.criterion < held_out + 0.01
    assert held_out < 0.35


@pytest.mark.parametrize("shift", [2000.0, 1e6])
@pytest.mark.parametrize("model", [KernelRidge(), QuantileRegressor(0.5)])
def test_rows_far_from_zero(shift, model):
    """Products near 1e12 left four digits of the other kernel, and alpha was 20 times larger."""
    X, y = trend()
    X = np.rint(1024.0 * X) / 1024.0  # so that moved rows are the same
    model.set_params(kernel=Matern() + Linear())
    one = model.fit(X, y).predict(X)
    learned = model.learned_
    other = model.fit(X + shift, y).predict(X + shift)
    assert model.learned_.alpha == pytest.approx(learned.alpha, rel=0.02)
    np.testing.assert_allclose(other, one, atol=2e-3)


def test_a_tiny_summand_changes_nothing():
    X, y = trend()
    one, other = (
        KernelRidge(kernel=kernel).fit(X, y) for kernel in (Matern(), Matern() + 1e-12 * Linear())
    )
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=0.02)


def test_numbers_beside_a_stationary_kernel_have_no_start_of_their_own():
    """They are as large as was asked for, in any units of X."""
    X, y = trend()
    rows = X, y[:, None], np.ones(len(X))
    one, other = (
        learn(Data(*rows, Squared(), np.eye(1), False), [kernel], None, Learning()).history
        for kernel in (Gaussian("learned") + 100.0, Gaussian("learned") + Linear() + 100.0)
    )
    # where there are several starts, the descent begins at the best of them
    assert other[3] == pytest.approx(min(other[:3]), rel=1e-6)
    assert one[2] != pytest.approx(min(one[:2]), rel=1e-3)


def test_summands():
    parts = [Gaussian(2.0), Linear(), Matern(1.0)]
    assert summands_of(parts[0] + (parts[1] + parts[2])) == parts
    assert summands_of(2.0 * (parts[0] + parts[1])) == [2.0 * (parts[0] + parts[1])]

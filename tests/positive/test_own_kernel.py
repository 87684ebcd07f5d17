"""A kernel of a user's own brings its integrals, gradient and factors to non-negative models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.gaussian_process import kernels as sk

from fenchel import DensityEstimator
from fenchel.features import KernelRows, Nystroem, PivotedCholesky
from fenchel.kernels import ScalarKernel
from fenchel.positive import PSDModel, moment
from fenchel.testing import check_kernel, check_positive_model


class Sech(ScalarKernel):
    """Π sech((x_c - z_c) / length_scale), with ∫ sech(t) sech(t - s) dt = 2 s / sinh s."""

    def __init__(self, length_scale=1.0):
        self.length_scale = length_scale

    def _apart(self, X, Z):
        return (X[:, None, :] - Z) / self.length_scale

    def _evaluate(self, X, Y):
        decay = np.exp(-np.abs(self._apart(X, Y)))
        return (2.0 * decay / (1.0 + decay**2)).prod(axis=2)

    def product_integrals(self, Z, measure):
        if not getattr(measure, "whole", False):
            return None
        s = self._apart(Z, Z)
        safe = np.where(s == 0.0, 1.0, s)
        return (2.0 * self.length_scale * np.where(s == 0.0, 1.0, safe / np.sinh(safe))).prod(
            axis=2
        )

    def gradient(self, X, Z, weights):
        slopes = (weights * self(X, Z))[:, :, None] * np.tanh(self._apart(X, Z))
        return -slopes.sum(axis=1) / self.length_scale

    def factor(self, columns):
        return self


class Values(ScalarKernel):
    """The same, of which only the values are known."""

    def __init__(self, length_scale=1.0):
        self.length_scale = length_scale

    _apart, _evaluate = Sech._apart, Sech._evaluate


def model(kernel, d=1, kind=PivotedCholesky):
    random = np.random.default_rng(0)
    features = kind(kernel).fit(random.uniform(-1.0, 1.0, (5, d)))
    return PSDModel(features, random.standard_normal((features.rank_, 2)))


@pytest.mark.parametrize("shape", [(20, 1), (20, 2)])
def test_it_keeps_the_contract(shape):
    check_kernel(Sech(0.7), np.random.default_rng(0).standard_normal(shape))


@pytest.mark.parametrize("kind", [PivotedCholesky, Nystroem, KernelRows])
def test_integral_is_its_own(kind):
    f = model(Sech(0.7), kind=kind)
    value, error = f.integral_with_error()
    assert 0.0 < error <= 1e-9 * value
    assert value == pytest.approx(quad(lambda x: f([[x]])[0], -30.0, 30.0)[0], rel=1e-8)
    # what it does not know is done by quadrature
    value, error = f.integral_with_error((-1.0, 0.5))
    assert error > 0.0
    assert value == pytest.approx(quad(lambda x: f([[x]])[0], -1.0, 0.5)[0], rel=1e-8)
    with pytest.raises(ValueError, match="no closed form of the integral over all of space"):
        model(Values(0.7), kind=kind).integral()


def test_gradient_is_its_own(monkeypatch):
    X = np.random.default_rng(1).uniform(-1.0, 1.0, (9, 2))
    f = model(Sech(0.7), d=2)
    by_differences = model(Values(0.7), d=2).gradient(X)
    assert np.allclose(f.gradient(X), by_differences, rtol=1e-7, atol=1e-9)
    monkeypatch.setattr(Sech, "gradient", lambda self, X, Z, weights: np.full_like(X, 3.0))
    assert np.all(f.gradient(X) == 3.0)


def test_marginals_and_samples_by_its_factors():
    f = model(Sech(0.7), d=2)
    g = f.marginal(1)
    assert g.integral() == pytest.approx(f.integral(), rel=1e-9)
    expected = quad(lambda x: f([[x, 0.3]])[0], -30.0, 30.0)[0]
    assert g([[0.3]])[0] == pytest.approx(expected, rel=1e-8)
    drawn = f.sample(2000, random_state=0)[:, 0]
    first = f.marginal(0)
    share = quad(lambda x: first([[x]])[0], -30.0, 0.2)[0] / f.integral()
    assert np.mean(drawn < 0.2) == pytest.approx(share, abs=0.05)
    with pytest.raises(ValueError, match="closed form"):
        f.marginal(1, ([-1.0, -1.0], [1.0, 1.0]))
    with pytest.raises(ValueError, match="another product over coordinates"):
        model(Values(0.7), d=2).marginal(1)


def test_density_on_all_of_the_line():
    X = np.random.default_rng(0).normal(size=(60, 1))
    density = DensityEstimator(kernel=Sech(1.0)).fit(X)
    assert density.integral() == pytest.approx(1.0, abs=1e-9)
    total = quad(lambda x: density.model_([[x]])[0], -40.0, 40.0, limit=200)[0]
    assert total == pytest.approx(1.0, rel=1e-7)
    check_positive_model(density.model_, X)
    with pytest.raises(ValueError, match="no closed form"):
        DensityEstimator(kernel=Values(1.0)).fit(X)


def test_subclasses_of_foreign_kernels_are_not_taken_for_their_parents():
    """Their values may be others."""

    class Wider(sk.RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return sk.RBF(2.0 * self.length_scale)(X, Y)

    Z = np.array([[0.0], [0.5]])
    assert moment(KernelRows(sk.RBF(1.0)).fit(Z)).error <= 1e-12
    with pytest.raises(ValueError, match="no closed form"):
        moment(KernelRows(Wider(1.0)).fit(Z))

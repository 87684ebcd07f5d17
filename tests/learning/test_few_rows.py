"""What fewer than twelve rows teach, by leaving each of them out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fenchel import SVR, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian, Matern
from fenchel.learning import Data, Learning, criterion, learn
from fenchel.losses import Huber, Squared

SMOOTHED = 2e-6  # the criterion is of squares smoothed by a millionth
MODELS = {"ridge": KernelRidge(), "huber": SVR("huber"), "median": QuantileRegressor(0.5)}


def drawn(n, size, noise, seed, d=1):
    random = np.random.default_rng(seed)
    X = random.uniform(-2.0, 2.0, (n, d))
    return X, size * X[:, 0] + noise * random.normal(size=n)


def loss(name, residual):
    return np.mean(np.abs(residual) if name == "median" else residual**2)


def ratio(name, n, size, noise, d=1):
    """Mean over draws of the loss on new rows over that of the best constant."""
    found = []
    for seed in range(20):
        X, y = drawn(n, size, noise, seed, d)
        new, target = drawn(500, size, noise, 1000 + seed, d)
        best = np.mean(y) if name == "ridge" else np.median(y)
        model = MODELS[name].fit(X, y)
        found.append(loss(name, target - model.predict(new)) / loss(name, target - best))
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("name", MODELS)
def test_noise_is_not_interpolated(name, n):
    assert ratio(name, n, 0.0, 1.0) < 1.5


def test_no_kernel_is_kept_that_is_worse_than_nearly_a_constant():
    """Of noise, with enough rows for folds of several."""
    for seed in (2, 8, 13):
        random = np.random.default_rng(seed)
        X, y = random.uniform(-2.0, 2.0, (16, 4)), random.normal(size=16)
        model = KernelRidge().fit(X, y)
        assert model.learned_.criterion < 1.02
        assert np.ptp(model.predict(X)) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_line_with_noise_is_learned(name):
    assert ratio(name, 8, 1.0, 0.3) < 0.5


def left_out(X, y, kernel, alpha):
    """Residuals with each row left out: of ridge regression, and of means."""
    errors = np.empty((2, len(y)))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        n = len(rest)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = kernel(X[rest]) + n * alpha * np.eye(n)
        system[n, :n] = system[:n, n] = 1.0
        found = np.linalg.solve(system, np.append(y[rest], 0.0))
        predicted = (kernel(X[[i]], X[rest]) @ found[:n])[0] + found[n]
        errors[:, i] = y[i] - predicted, y[i] - y[rest].mean()
    return errors


@pytest.mark.parametrize("n", [4, 11])
def test_the_criterion_leaves_out_each_row(n, monkeypatch):
    monkeypatch.setattr(criterion, "_TOL", 1e-20)
    X, y = drawn(n, 1.0, 0.3, 0)
    data = Data(X, y[:, None], np.ones(n), Squared(), np.eye(1), True)
    found = learn(data, [Gaussian(2.0)], 0.05, Learning())
    errors, means = (left_out(X, y, Gaussian(2.0), 0.05) ** 2).sum(axis=1)
    assert found.criterion == pytest.approx(errors / means, rel=SMOOTHED)
    assert found.residual is None


def test_the_size_of_held_out_residuals(monkeypatch):
    monkeypatch.setattr(criterion, "_TOL", 1e-20)
    X, y = drawn(11, 1.0, 0.3, 0)
    data = Data(X, y[:, None], np.ones(11), Squared(), np.eye(1), True, measured=True)
    found = learn(data, [Gaussian(2.0)], 0.05, Learning())
    sizes = np.abs(left_out(X, y, Gaussian(2.0), 0.05)[0])
    assert found.residual == pytest.approx(1.4826 * np.median(sizes), rel=1e1 * SMOOTHED)
    heavy = np.where(sizes == sizes.max(), 12.0, 1.0)  # more than half of all
    found = learn(replace(data, weight=heavy), [Gaussian(2.0)], 0.05, Learning())
    assert found.residual > 1.4826 * np.median(sizes)


@pytest.mark.slow
def test_what_gains_no_more_than_noise_is_left_for_the_largest_alpha():
    """Ten units of half of k(x, x) for squares; the number of rows that are fitted is n - 1."""
    learned = []
    for seed in range(20):
        X, y = drawn(6, 0.0, 1.0, seed)
        data = Data(X, y[:, None], np.ones(6), Squared(), np.eye(1), True)
        found = learn(data, [Matern()], None, Learning())
        most = 5.0 * (5.0 / 6.0) ** 0.6
        least = 1.0 - 0.5 / np.sqrt(6)
        learned.append(found.alpha)
        if found.alpha < 0.9 * most:  # it gains more, beside nearly a constant
            whole = learn(data, [Matern(found.kernel.length_scale)], 5.0, Learning())
            assert found.criterion < least * max(whole.criterion, 1.0)
        else:
            assert found.alpha == pytest.approx(most, rel=5e-3)
    assert np.median(learned) == pytest.approx(most, rel=5e-3)
    assert min(learned) < 0.1 * most


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_weights_order_and_units(name):
    X, y = drawn(9, 1.0, 0.3, 1, d=2)
    count = np.array([1, 3, 0, 2, 1, 1, 2, 1, 1])
    times = np.random.default_rng(0).permutation(np.repeat(np.arange(9), count))
    model = MODELS[name].set_params(tol=1e-10)
    one = model.fit(X, y, sample_weight=count).predict(X)
    again = model.fit(X[times], y[times]).predict(X)
    np.testing.assert_allclose(again, one, atol=1e-5)
    units = np.array([1e-3, 8e4])
    far = model.fit(units * X + 3.0 * units, 16.0 * y, sample_weight=count)
    np.testing.assert_allclose(far.predict(units * X + 3.0 * units), 16.0 * one, atol=1e-3)
    model.set_params(tol=1e-6)


def test_more_folds_than_rows_are_one_for_each_row():
    X = np.linspace(0.0, 1.0, 20)[:, None]
    found = [
        KernelRidge(learn=Learning(n_folds=n_folds)).fit(X, np.sin(6.0 * X[:, 0])).learned_
        for n_folds in (20, 60)
    ]
    assert found[0].criterion == found[1].criterion


def very_many_outputs():
    X = np.linspace(0.0, 1.0, 8)[:, None]
    return X, np.tile(np.sin(6.0 * X), 1600), np.eye(1600) + 1e-3


@pytest.mark.slow
def test_very_many_coupled_outputs_of_the_squared_loss_are_learned_from():
    """One by one."""
    X, Y, coupling = very_many_outputs()
    model = KernelRidge(coupling=coupling).fit(X, Y)
    assert model.learned_.n_rows == 8
    assert model.learned_.criterion < 0.5
    assert model.certificate_.relative_gap <= 1e-6


def test_very_many_coupled_outputs_of_other_losses_are_too_large_a_system():
    X, Y, coupling = very_many_outputs()
    data = Data(X, Y, np.ones(8), Huber(0.1), np.linalg.cholesky(coupling), True)
    assert learn(data, [Gaussian()], None, Learning()) is None

"""The tube of SVR that is not given: a tenth of the spread of y, or less with less noise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fenchel import SVR, KernelRidge
from fenchel.kernels import Matern
from fenchel.learning import Learning

LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
NEW = np.linspace(-2.9, 2.9, 300)[:, None]


def sine(noise, n=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-3.0, 3.0, (n, 1))
    return X, np.sin(2.0 * X[:, 0]) + noise * random.normal(size=n)


def error(model):
    return np.abs(model.predict(NEW) - np.sin(2.0 * NEW[:, 0])).mean()


def tenth(y):
    return 0.14826 * np.median(np.abs(y - np.median(y)))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.001, 0.03])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_follows_noise_that_is_small(loss, noise):
    X, y = sine(noise)
    model = SVR(loss).fit(X, y)
    assert 0.3 * noise < model.epsilon_ < 3.0 * noise
    assert model.epsilon_ == pytest.approx(0.5 * model.learned_.residual)
    assert model.loss_.epsilon == model.epsilon_
    assert error(model) < 0.4 * error(SVR(loss, epsilon=tenth(y)).fit(X, y))
    assert error(model) < 2.0 * error(KernelRidge().fit(X, y))
    assert len(model.support_) < 0.9 * len(y)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_no_wider_than_a_tenth_of_the_spread(loss):
    X, y = sine(0.5)
    model = SVR(loss).fit(X, y)
    assert model.epsilon_ == pytest.approx(tenth(y), rel=1e-12)
    assert 0.5 * model.learned_.residual > model.epsilon_
    given = SVR(loss, epsilon=model.epsilon_).fit(X, y)
    np.testing.assert_array_equal(model.predict(NEW), given.predict(NEW))


@pytest.mark.slow
def test_one_that_is_given_stays():
    X, y = sine(0.03)
    for epsilon in (0.0, 0.2):
        model = SVR(epsilon=epsilon).fit(X, y)
        assert model.epsilon_ == epsilon
        assert model.learned_.residual is None


def test_without_learning_it_is_a_tenth_of_the_spread():
    X, y = sine(0.03)
    models = [
        SVR(learn=False),
        SVR(kernel=Matern(1.0), alpha=1e-3),
    ]
    for model in models:
        assert model.fit(X, y).epsilon_ == pytest.approx(tenth(y), rel=1e-12)


@pytest.mark.filterwarnings("ignore:stopped at a relative gap")
def test_learning_that_is_ended_leaves_a_tenth_of_the_spread():
    X, y = sine(0.03)
    model = SVR(callback=lambda progress: "enough" if np.isnan(progress.dual) else None)
    assert model.fit(X, y).epsilon_ == pytest.approx(tenth(y), rel=1e-12)
    assert model.learned_.ended_early


@pytest.mark.slow
def test_where_only_alpha_or_only_the_kernel_is_learned():
    X, y = sine(0.03)
    for model in (SVR(kernel=Matern(1.0)), SVR(alpha=1e-6)):
        model.fit(X, y)
        assert 0.01 < model.epsilon_ < 0.5 * tenth(y)
        assert model.loss_.epsilon == model.epsilon_


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_units_order_and_weights(loss):
    X, y = sine(0.03, 80)
    count = np.random.default_rng(1).integers(0, 3, 80)
    times = np.random.default_rng(2).permutation(np.repeat(np.arange(80), count))
    model = SVR(loss, learn=Learning(max_evaluations=8))
    one = clone(model).fit(X, y, sample_weight=count)
    assert clone(model).fit(X[times], y[times]).epsilon_ == pytest.approx(one.epsilon_, rel=1e-6)
    large = clone(model).fit(4.0 * X - 9.0, 1024.0 * y, sample_weight=count)
    assert large.epsilon_ == pytest.approx(1024.0 * one.epsilon_, rel=1e-3)


@pytest.mark.slow
def test_several_outputs_have_one_by_the_length_of_residuals():
    X, y = sine(0.03)
    both = np.column_stack([y, np.cos(X[:, 0]) + 0.03 * np.random.default_rng(5).normal(size=200)])
    assert 0.01 < SVR().fit(X, both).epsilon_ < 0.06


def test_what_was_learned_goes_on():
    X, y = sine(0.03)
    model = SVR().fit(X, y)
    again = model.with_learned().fit(X, y)
    assert again.epsilon_ == model.epsilon_ == again.epsilon
    np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), rtol=0, atol=1e-9)
    assert SVR("huber").fit(X, y).with_learned().epsilon is None


@pytest.mark.slow
def test_rows_of_a_file_have_the_same(tmp_path):
    X, y = sine(0.03)
    np.save(tmp_path / "X.npy", X)
    found = SVR().fit(tmp_path / "X.npy", y)
    assert found.epsilon_ == pytest.approx(SVR().fit(X, y).epsilon_, rel=1e-6)
    wide = SVR(kernel=Matern(1.0), alpha=1.0).fit(tmp_path / "X.npy", y)
    assert wide.epsilon_ == pytest.approx(tenth(y), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.29999999999999993, 0.3, 0.30000000000000004])
def test_one_that_holds_all_targets_up_to_rounding(loss, epsilon):
    """Half of the range is 0.29999999999999999: the relative gap of the first was 1."""
    model = SVR(loss, epsilon=epsilon).fit([[0.0], [1.0]], [0.1, 0.7])
    assert model.status_.converged
    assert model.certificate_.relative_gap == 0.0
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), 0.4, atol=1e-15)

"""A few targets far from all others say little of what is learned for losses of bounded slope."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fenchel import SVR, QuantileRegressor
from fenchel.learning import unit_of_strength
from fenchel.learning.reach import within_reach
from fenchel.losses import Absolute, Huber, Pinball, Squared, SquaredPinball


def curve(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.sin(2.0 * X[:, 0]) + X[:, 1])


def typed_wrong(n: int, n_wrong: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their targets, and the same with some that are far away."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 6))
    y = curve(X) + 0.3 * random.normal(size=n)
    wrong = y.copy()
    wrong[:n_wrong] += random.choice([50.0, 200.0, 1000.0], size=n_wrong)
    return X, y, wrong


MODELS = {
    "median": QuantileRegressor(0.5),
    "levels": QuantileRegressor([0.1, 0.5, 0.9]),
    "huber": SVR("huber"),
    "tube": SVR(),
}


@pytest.mark.parametrize("size", [40, 150])
@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_about_those_without(name: str, size: int) -> None:
    """They were up to 200 times as far from the truth."""
    X, y, wrong = typed_wrong(size, size // 20, seed=0)
    new = np.random.default_rng(1).normal(size=(500, 6))

    def error(targets: np.ndarray) -> float:
        found = MODELS[name].fit(X, targets).predict(new)
        centre = found if found.ndim == 1 else found[:, 1]
        return float(np.abs(centre - curve(new)).mean())

    assert error(wrong) < 1.5 * error(y)


@pytest.mark.parametrize("times", [1e3, 1e6])
def test_how_far_away_does_not_matter(times: float) -> None:
    X, _, y = typed_wrong(60, 2, seed=3)
    farther = y.copy()
    farther[:2] *= times
    one, two = (SVR("huber", tol=1e-9).fit(X, targets) for targets in (y, farther))
    assert one.alpha_ / two.alpha_ == pytest.approx(1.0, abs=0.3)
    new = np.random.default_rng(1).normal(size=(200, 6))
    assert np.abs(one.predict(new) - two.predict(new)).mean() < 0.1


@pytest.mark.parametrize("loss", [Absolute(), Huber(0.5), Pinball([0.1, 0.5, 0.9]), Pinball(0.95)])
def test_losses_change_by_a_constant(loss: Absolute) -> None:
    """Of any prediction within the bulk of the targets."""
    random = np.random.default_rng(0)
    y = np.append(random.normal(size=200), [90.0, -400.0])[:, None]
    near = within_reach(loss, y, np.ones(202))
    assert np.array_equal(near[:200], y[:200])
    assert np.abs(near).max() < 20.0
    p = loss.n_outputs or 1
    lost = [
        loss.value(y - at * np.ones(p)) - loss.value(near - at * np.ones(p))
        for at in (-2.0, 0.0, 3.0)
    ]
    assert np.allclose(lost, lost[0], atol=1e-12)


@pytest.mark.parametrize("loss", [Squared(), SquaredPinball(0.9)])
def test_targets_of_other_losses_stay(loss: Squared) -> None:
    y = np.append(np.arange(50.0), 1e6)[:, None]
    assert within_reach(loss, y, np.ones(51)) is y


def test_targets_without_outliers_stay() -> None:
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=(1000, 2))
        assert within_reach(Absolute(), y, np.ones(1000)) is y


def test_units_order_and_repetition() -> None:
    random = np.random.default_rng(0)
    y = np.round(random.normal(size=(60, 1)), 1)
    y[:3] = [[80.0], [80.0], [-7000.0]]
    near = within_reach(Absolute(), y, np.ones(60))
    assert not np.array_equal(near, y)
    order = random.permutation(60)
    assert np.array_equal(within_reach(Absolute(), y[order], np.ones(60)), near[order])
    scaled = within_reach(Absolute(), 1024.0 * y, np.full(60, 8.0))
    assert np.array_equal(scaled, 1024.0 * near)
    values, counts = np.unique(y, return_counts=True)
    once = within_reach(Absolute(), values[:, None], counts.astype(float))
    assert np.array_equal(np.repeat(once, counts, axis=0), np.sort(near, axis=0))


@pytest.mark.parametrize("n_zero", [40, 70, 90])
def test_values_that_are_seldom_are_no_outliers(n_zero: int) -> None:
    """Where most targets are zero, the others are what there is to learn."""
    y = np.append(np.zeros(n_zero), np.linspace(10.0, 20.0, 100 - n_zero))[:, None]
    assert within_reach(Absolute(), y, np.ones(100)) is y


def test_a_unit_of_alpha_by_hand() -> None:
    """Two of twelve distances to the median, 5.5, are above 4.5: a million counts as 5 · 4.5."""
    y = np.append(np.arange(11.0), 1e6)
    middle = Fraction(11, 2)
    distances = [abs(Fraction(k) - middle) for k in range(11)]
    loss = Absolute().minimizing_offset(y[:, None], np.ones(12))
    assert loss[0] == float(middle)
    far = 5 * Fraction(9, 2)
    all_of_them = [*distances, far]
    expected = sum(all_of_them) / sum(d * d for d in all_of_them)
    found = unit_of_strength(Absolute(), y[:, None], np.ones(12))
    assert found == pytest.approx(float(expected), rel=1e-12)

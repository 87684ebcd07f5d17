"""The constant that minimizes the mean loss is the statistic that the loss is named after."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fenchel.losses import Absolute, Huber, L2Norm, Loss, Pinball, Squared, SquaredPinball

LEVELS = [0.1, 0.25, 0.5, 0.9]


@pytest.fixture
def y():
    return np.random.default_rng(0).gamma(2.0, size=(41, 1))


def constant(loss, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    y = np.broadcast_to(y, (len(y), loss.n_outputs or y.shape[1]))
    return loss.minimizing_offset(y, weight)


def test_mean(y):
    np.testing.assert_allclose(constant(Squared(), y), y.mean(axis=0), rtol=1e-14)
    weight = np.arange(1.0, 42.0)
    np.testing.assert_allclose(
        constant(Squared(), y, weight), np.average(y, axis=0, weights=weight), rtol=1e-14
    )


@pytest.mark.parametrize("n", [1, 2, 5, 10, 20, 41])
def test_quantiles_are_those_of_numpy(y, n):
    found = constant(Pinball(LEVELS), y[:n])
    np.testing.assert_allclose(
        found, np.quantile(y[:n], LEVELS, method="averaged_inverted_cdf"), rtol=1e-12
    )


@pytest.mark.parametrize("n", [1, 4, 10, 11, 20, 41])
def test_quantiles_for_new_rows_are_the_median_unbiased_ones_of_numpy(y, n):
    levels = [0.001, 0.03, 0.1, 0.27, 0.5, 0.9, 0.999]
    values = np.tile(y[:n], len(levels))
    found = Pinball(levels).offset_for_new_rows(values, np.full(n, 0.3), n)
    truth = np.quantile(y[:n, 0], levels, method="median_unbiased")
    np.testing.assert_allclose(found, truth, rtol=1e-12)


def test_quantiles_for_new_rows_with_weights_are_of_repeated_ones(y):
    times = np.random.default_rng(1).integers(0, 4, len(y))
    loss, number = Pinball(LEVELS), 17.3
    found = loss.offset_for_new_rows(np.tile(y, 4), 7.0 * times, number)
    again = np.tile(np.repeat(y, times, axis=0), 4)
    truth = loss.offset_for_new_rows(again, np.ones(len(again)), number)
    np.testing.assert_allclose(found, truth, rtol=1e-12)


def test_quantiles_for_new_rows_of_several_targets_and_other_losses(y):
    both = np.column_stack([y, y**2])
    loss = Pinball(LEVELS, n_targets=2)
    found = loss.offset_for_new_rows(np.tile(both, 4), np.ones(41), 41.0).reshape(4, 2)
    for column, target in enumerate(both.T):
        truth = np.quantile(target, LEVELS, method="median_unbiased")
        np.testing.assert_allclose(found[:, column], truth, rtol=1e-12)
    for loss in (Squared(), SquaredPinball(LEVELS), Huber(1.0)):
        values = np.tile(y, loss.n_outputs or 1)
        found = loss.offset_for_new_rows(values, np.ones(41), 41.0)
        np.testing.assert_array_equal(found, loss.minimizing_offset(values, np.ones(41)))


@pytest.mark.parametrize("n", [1, 2, 40, 41])
def test_median(y, n):
    assert constant(Absolute(), y[:n]) == pytest.approx(np.median(y[:n]))


@pytest.mark.parametrize("level", LEVELS)
def test_weighted_quantiles_are_those_of_numpy(y, level):
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    found = constant(Pinball(level), y, weight)[0]
    truth = np.quantile(y[:, 0], level, weights=weight, method="inverted_cdf")
    share = weight[y[:, 0] <= truth].sum() / weight.sum()
    assert share != pytest.approx(level)  # then the quantile is unique
    assert found == truth


def test_expectiles_solve_their_equation(y):
    weight = np.random.default_rng(1).random(len(y)) + 0.1
    found = constant(SquaredPinball(LEVELS), y, weight)
    above = weight @ np.maximum(y - found, 0.0)
    below = weight @ np.maximum(found - y, 0.0)
    np.testing.assert_allclose(LEVELS * above, (1.0 - np.array(LEVELS)) * below, rtol=1e-12)
    assert constant(SquaredPinball(0.5), y) == pytest.approx(y.mean())


def test_spatial_median():
    y = np.random.default_rng(0).standard_normal((31, 3))
    found = constant(L2Norm(), y)
    away = y - found
    directions = away / np.linalg.norm(away, axis=1, keepdims=True)
    np.testing.assert_allclose(directions.sum(axis=0), 0.0, atol=1e-8)


def test_spatial_median_may_be_a_row():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    np.testing.assert_allclose(constant(L2Norm(), corners + 3.0), [3.0, 3.0], atol=1e-9)


def test_huber_location_solves_its_equation(y):
    for kappa in (1e-3, 0.5, 100.0):
        found = constant(Huber(kappa), y)
        balance = np.clip(y - found, -kappa, kappa).sum()
        assert abs(balance) <= 1e-10 * kappa * len(y)
    assert constant(Huber(100.0), y) == pytest.approx(y.mean())


EVERY: list[Loss] = [
    Squared(),
    Absolute(),
    Huber(0.3),
    Pinball(LEVELS),
    SquaredPinball(LEVELS),
    L2Norm(),
    Absolute().insensitive(0.2),
    Pinball(LEVELS).insensitive(0.2),
    SquaredPinball(LEVELS).insensitive(0.2),
    L2Norm().insensitive(0.1),
]


def name(loss):
    return f"{type(loss).__name__}-{getattr(loss, 'epsilon', 0.0):g}"


@pytest.mark.parametrize("loss", EVERY, ids=name)
def test_weights_are_repetitions(loss, y):
    """Twice, so that quantiles at ties of the levels are looked at as well."""
    count = np.random.default_rng(2).integers(1, 4, 20)
    rows = y[:20] + 0.1 * np.random.default_rng(3).random((20, loss.n_outputs or 2))
    for repeat in (count, np.full(20, 3)):
        weighted = constant(loss, rows, repeat.astype(float))
        repeated = constant(loss, np.repeat(rows, repeat, axis=0))
        np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(
    "loss",
    [Squared(), Absolute(), Pinball(LEVELS), SquaredPinball(LEVELS), L2Norm()],
    ids=name,
)
def test_follows_shift_and_scale(loss, y, size):
    rows = np.broadcast_to(y, (len(y), loss.n_outputs or 2))
    plain = constant(loss, rows)
    np.testing.assert_allclose(constant(loss, size * rows), size * plain, rtol=1e-7)
    np.testing.assert_allclose(
        constant(loss, size * (rows - 5.0)), size * (plain - 5.0), rtol=1e-7
    )


@pytest.mark.parametrize("loss", EVERY, ids=name)
def test_one_row_and_equal_rows(loss):
    for n in (1, 7):
        rows = np.full((n, loss.n_outputs or 2), 3.3)
        offset = loss.minimizing_offset(rows, np.ones(n))
        np.testing.assert_allclose(loss.value(rows - offset), 0.0, atol=1e-14)


def test_offset_with_few_rows_outside_the_tube():
    """Where nearly all residuals are inside, the offset is judged by another minimizer."""
    rng = np.random.default_rng(1)
    loss = Pinball([0.25, 0.5, 0.75]).insensitive(5.0)
    noise = rng.standard_normal((500, 1)), rng.standard_normal((500, 3))
    residual = 1.2 * noise[0] + 0.1 * noise[1]
    outside = np.count_nonzero(loss.value(residual - residual.mean(axis=0)))
    assert 1 <= outside <= 20

    def mean_loss(offset):
        return loss.value(np.ascontiguousarray(residual - offset)).mean()

    found = loss.minimizing_offset(residual, np.ones(500))
    searched = min(
        (
            minimize(mean_loss, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 0})
            for start in (found, residual.mean(axis=0))
        ),
        key=lambda result: result.fun,
    )
    assert mean_loss(found) <= searched.fun * (1 + 1e-9)

"""The descent keeps the best point, stays within bounds, and stops when it is told."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.learning.descent import Descent

TARGET = np.array([1.0, -2.0, 0.5])


def bowl(theta):
    """A quadratic with its minimum at TARGET."""
    away = theta - TARGET
    return float(away @ (np.array([1.0, 10.0, 3.0]) * away)) + 0.1, np.array(
        [2.0, 20.0, 6.0]
    ) * away


def descent(bounds=10.0, strength=0.0, watch=None, relative=False):
    ends = np.broadcast_to(bounds, 3)[:, None] * np.array([-1.0, 1.0])

    def penalty(theta, value):
        squares = float(theta @ theta)
        plain = strength * squares, 2.0 * strength * theta, 0.0
        return plain if not relative else (value * plain[0], value * plain[1], plain[0])

    return Descent(np.zeros(3), ends, penalty, watch)


def test_minimum_is_found():
    found = descent()
    assert found.run(bowl, 50, 1e-12)
    np.testing.assert_allclose(found.best[2], TARGET, atol=1e-5)
    assert found.best[1] == pytest.approx(0.1)


def test_penalty_pulls_to_the_centre():
    found = descent(strength=2.0)
    found.run(bowl, 50, 1e-12)
    np.testing.assert_allclose(found.best[2], TARGET * [1 / 3, 10 / 12, 3 / 5], atol=1e-5)
    whole, plain, theta = found.best
    assert plain == pytest.approx(bowl(theta)[0])
    assert whole == pytest.approx(plain + 2.0 * theta @ theta)


@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_penalty_in_proportion_to_the_criterion(size):
    found = descent(strength=0.02, relative=True)
    found.run(lambda theta: tuple(size * part for part in bowl(theta)), 60, 1e-14)
    whole, plain, theta = found.best
    value, gradient = bowl(theta)
    share = 0.02 * float(theta @ theta)
    assert plain == pytest.approx(size * value)
    assert whole == pytest.approx(size * value * (1.0 + share))
    np.testing.assert_allclose(gradient * (1.0 + share) + 0.04 * value * theta, 0.0, atol=1e-4)
    assert np.abs(theta - TARGET).max() > 1e-4


def test_bounds_hold_and_closed_ones_are_not_free():
    found = descent([0.5, 10.0, 10.0])
    found.bounds[2] = 0.0
    found.run(bowl, 50, 1e-12)
    np.testing.assert_allclose(found.best[2], [0.5, -2.0, 0.0], atol=1e-5)


def test_nothing_is_free():
    found = descent(0.0)
    assert found.run(bowl, 50, 1e-12)
    np.testing.assert_array_equal(found.best[2], np.zeros(3))
    assert found.history == [bowl(np.zeros(3))[0]]


def test_best_point_is_kept_where_the_end_is_worse():
    """Values that jump: the last is not the least."""
    values = iter([3.0, 1.0, 2.0, 5.0, 4.0] + [6.0] * 100)
    seen = []

    def jumping(theta):
        seen.append(theta.copy())
        return next(values), np.ones(3)

    found = descent()
    found.run(jumping, 5, 1e-12)
    assert found.best[0] == 1.0
    np.testing.assert_array_equal(found.best[2], seen[1])


def test_number_of_calls_is_limited():
    count = 0

    def counted(theta):
        nonlocal count
        count += 1
        return bowl(theta)

    found = descent()
    assert found.run(counted, 4, 1e-14)
    assert count == len(found.history) == 4
    found.run(counted, 3, 1e-14)
    assert count == 7


def test_second_run_starts_from_the_best():
    found, starts = descent(), []
    found.run(bowl, 6, 1e-14)
    first = found.best[2].copy()

    def noted(theta):
        starts.append(theta.copy())
        return bowl(theta)

    found.run(noted, 1, 1e-14)
    np.testing.assert_array_equal(starts[0], first)


def test_watch_ends_it():
    found = descent(watch=lambda value: value < 20.0)
    assert not found.run(bowl, 50, 1e-12)
    assert found.history[-1] < 20.0
    assert all(value >= 20.0 for value in found.history[:-1])


def test_values_that_are_no_numbers_are_walls():
    def cliff(theta):
        return (np.nan, np.full(3, np.nan)) if theta[0] > 0.4 else bowl(theta)

    found = descent()
    found.run(cliff, 60, 1e-12)
    assert np.isfinite(found.best[0])
    assert found.best[2][0] <= 0.4
    assert found.best[0] < bowl(np.zeros(3))[0]


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_a_first_step_has_the_length_that_is_asked_for(size):
    """Whatever the unit of the criterion; it goes down the gradient."""
    found, seen = descent(), []

    def noted(theta):
        seen.append(theta.copy())
        value, gradient = bowl(theta)
        return size * value, size * gradient

    found.run(noted, 50, 1e-12, first_step=0.3)
    step, slopes = seen[1] - seen[0], bowl(seen[0])[1]
    np.testing.assert_allclose(step, -0.3 * slopes / np.linalg.norm(slopes), rtol=1e-9)
    np.testing.assert_allclose(found.best[2], TARGET, atol=1e-5)
    assert found.best[1] == pytest.approx(0.1 * size)

"""Shifts of levels that leave curves in order are the nearest of all such shifts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fenchel.learning.held_out import in_order


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_shifts_in_order(seed):
    rng = np.random.default_rng(seed)
    levels, shift = rng.permutation(5) / 6.0 + 0.1, rng.normal(size=5)
    room = rng.exponential(size=4) * (seed % 2)
    order = np.argsort(levels)
    inside = {"type": "ineq", "fun": lambda moved: np.diff(moved) + room}
    wanted = shift[order]
    start = np.full(5, wanted.mean())
    nearest = minimize(
        lambda moved: np.sum((moved - wanted) ** 2), start, constraints=[inside], tol=1e-12
    )
    assert nearest.success
    np.testing.assert_allclose(in_order(shift, levels, room)[order], nearest.x, atol=1e-6)


def test_shifts_in_order_stay():
    levels, shift = np.array([0.9, 0.1, 0.5]), np.array([1.0, 0.5, 0.2])
    np.testing.assert_allclose(in_order(shift, levels, np.array([0.4, 0.0])), shift)
    np.testing.assert_allclose(in_order(shift, levels), [1.0, 0.35, 0.35])

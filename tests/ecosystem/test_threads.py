"""Threads: no more than the user asked for, and what was set before comes back."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fenchel import SVR
from fenchel._threads import threads_that_pay
from fenchel.solvers import Newton

X = np.random.default_rng(0).uniform(size=(60, 2))


def threads():
    """The most threads that any library of linear algebra would take now."""
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@pytest.mark.parametrize("asked", [1, 2])
def test_small_fits_take_one_and_give_back(asked):
    seen = []

    class Watched(Newton):
        def solve(self, problem, warm_start=None, callback=None):
            seen.append(threads())
            return super().solve(problem, warm_start, callback)

    with threadpool_limits(asked, user_api="blas"):
        assert threads() == asked
        SVR(solver=Watched()).fit(X, X[:, 0])
        assert threads() == asked
    assert seen == [1]


@pytest.mark.parametrize("asked", [1, 2])
def test_large_fits_take_what_was_asked_for(asked):
    with threadpool_limits(asked, user_api="blas"), threads_that_pay(10_000):
        assert threads() == asked

"""Threads: no more than the user asked for, and what was set before comes back."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from attacks.interrupts import differing, state
from ecosystem.registry import CASES
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


def test_those_of_several_threads_are_one_limit():
    """Whoever leaves last sets back what was set before the first came, whichever comes first."""
    inside = Barrier(4)

    def enter(i):
        with threads_that_pay(10):
            inside.wait(20.0)
            time.sleep(0.01 * i)
            with threads_that_pay(20):
                return threads()

    with threadpool_limits(2, user_api="blas"):
        for _ in range(5):
            with ThreadPoolExecutor(4) as pool:
                assert list(pool.map(enter, range(4))) == [1] * 4
            assert threads() == 2


def test_an_error_gives_back():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), threads_that_pay(10):
            _ = 1 / 0
        assert threads() == 2


def test_entering_costs_little():
    with threadpool_limits(2, user_api="blas"):
        times = []
        for _ in range(50):
            began = time.perf_counter()
            with threads_that_pay(10):
                pass
            times.append(time.perf_counter() - began)
    assert np.median(times) < 1e-3


@pytest.mark.filterwarnings("ignore:the feature map of rank")  # small on purpose
def test_fits_are_the_same_bits_beside_each_other_and_for_any_number_of_threads():
    cases = [case for case in CASES if not hasattr(case.estimator, "param_grid")]

    def fit(case):
        return state(case.fitted())

    expected = [fit(case) for case in cases]
    filters = list(warnings.filters)
    with threadpool_limits(2, user_api="blas"):
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(fit, cases * 3))
        assert threads() == 2
    assert list(warnings.filters) == filters
    for case, one, other in zip(cases * 3, found, expected * 3, strict=True):
        assert one == other, (case.name, differing(one, other))

"""Memory that is used again holds nothing that anybody still has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

from fenchel._memory import Memory, empty, reused_memory
from fenchel.datasets import make_sine_quantiles
from fenchel.regression import QuantileRegressor

SHAPE = (2**16, 3)


def place(array):
    return array.__array_interface__["data"][0]


def test_memory_that_nobody_holds_is_used_again():
    with reused_memory():
        first = empty(SHAPE)
        there = place(first)
        first = None
        second = empty(SHAPE)
        assert place(second) == there
        assert second.shape == SHAPE
        assert second.dtype == np.float64
        assert second.flags.c_contiguous


@pytest.mark.parametrize(
    "view", [lambda a: a, lambda a: a[5:], lambda a: a.T[1], lambda a: a.reshape(-1)]
)
def test_memory_is_not_used_while_a_view_is_there(view):
    with reused_memory():
        held = view(empty(SHAPE))
        held[...] = 1.0
        for _ in range(3):
            empty(SHAPE)[...] = 2.0
        assert np.all(held == 1.0)
    empty(SHAPE)[...] = 3.0
    assert np.all(held == 1.0)


def test_other_sizes_have_memory_of_their_own():
    with reused_memory():
        there = place(empty(SHAPE))
        other = empty((2 * SHAPE[0], 3))
        assert other.size == 2 * SHAPE[0] * 3
        assert place(empty(SHAPE[::-1])) == there  # the same size


def test_memory_of_sizes_that_do_not_come_back_is_let_go():
    memory = Memory()
    with reused_memory(memory):
        held = [empty((SHAPE[0] + k,)) for k in range(3)]
        for k in range(1000):
            empty((2 * SHAPE[0] + k,))
            assert len(memory) <= 64
        assert [array.size for array in held] == [SHAPE[0], SHAPE[0] + 1, SHAPE[0] + 2]
        held[0][...], held[1][...] = 1.0, 2.0
        assert np.all(held[0] == 1.0)


def test_memory_that_is_kept_serves_the_next_time():
    memory = Memory()
    with reused_memory(memory):
        there = place(empty(SHAPE))
    with reused_memory():
        assert place(empty(SHAPE)) != there
    with reused_memory(memory):
        held = empty(SHAPE)
        assert place(held) == there
        assert place(empty(SHAPE)) != there
    assert len(memory) == 2


def test_inner_blocks_share_the_memory_of_the_outermost():
    with reused_memory():
        there = place(empty(SHAPE))
        with reused_memory():
            assert place(empty(SHAPE)) == there
        assert place(empty(SHAPE)) == there


def test_threads_get_different_memory():
    def mine(number):
        array = empty(SHAPE)
        array[...] = number
        return array

    with reused_memory(), ThreadPoolExecutor(4) as threads:
        tasks = [threads.submit(copy_context().run, mine, k) for k in range(20)]
        found = [task.result() for task in tasks]
    assert len({place(array) for array in found}) == 20
    assert all(np.all(array == k) for k, array in enumerate(found))


def test_memory_goes_back_at_the_end_whatever_is_raised():
    def fails():
        with reused_memory():
            empty(SHAPE)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    with reused_memory():
        held = empty(SHAPE)
    with reused_memory():
        assert place(empty(SHAPE)) != place(held)
    assert empty(SHAPE).base is None


def test_fits_hold_no_memory_that_later_fits_write_to():
    X, y, _ = make_sine_quantiles(60_000, random_state=0)
    settings = {"levels": [0.1, 0.5, 0.9], "learn": False}
    first = QuantileRegressor(**settings).fit(X, y)
    dual, predicted = first.dual_coef_.copy(), first.predict(X[:100])
    QuantileRegressor(**settings).fit(X, -3.0 * y)
    np.testing.assert_array_equal(first.dual_coef_, dual)
    np.testing.assert_array_equal(first.predict(X[:100]), predicted)

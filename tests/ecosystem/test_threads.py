"""Threads: no more than the user asked for, and what was set before comes back."""

from __future__ import annotations

import sys
import time
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, get_ident

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from attacks.interrupts import differing, state
from ecosystem.registry import CASES
from fenchel import SVR, GroupLasso, Lasso, LinearRegression, QuantileRegressor, Ridge, _threads
from fenchel._threads import in_threads, threads_that_pay
from fenchel.design import Plain, RowBlocks
from fenchel.kernels import Gaussian, Matern
from fenchel.model_selection import GroupLassoCV, LassoCV, PathSearchCV, RidgeCV
from fenchel.solvers import Newton

X = np.random.default_rng(0).uniform(size=(60, 2))


def threads():
    """The most threads that any library of linear algebra would take now."""
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@pytest.mark.slow
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


def test_libraries_that_have_one_are_left_alone_until_they_have_more(monkeypatch):
    changed, set_threads = [], _threads._set
    monkeypatch.setattr(_threads, "_set", lambda *each: changed.append(each) or set_threads(*each))
    for number in (1, 2, 1):
        with threadpool_limits(number, user_api="blas"):
            with threads_that_pay(10):
                assert threads() == 1
                assert _threads.threads_allowed() == number
            assert threads() == number
        assert bool(changed) == (number == 2)
        changed.clear()


def test_entering_costs_little():
    with threadpool_limits(2, user_api="blas"):
        times = []
        for _ in range(50):
            began = time.perf_counter()
            with threads_that_pay(10):
                pass
            times.append(time.perf_counter() - began)
    assert np.median(times) < 1e-3


LINEAR = LinearRegression(), Ridge(), Lasso(), GroupLasso(alpha=0.3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", LINEAR, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("shape", [(20_000, 3), (30, 20_000)], ids=["rows", "columns"])
def test_linear_models_are_the_same_bits_for_any_number_of_threads(shape, model, weighted):
    rng = np.random.default_rng(0)
    rows, noise = rng.normal(size=shape), rng.normal(size=shape[0])
    weight = rng.random(shape[0]) if weighted else None
    if isinstance(model, GroupLasso):
        model = clone(model).set_params(groups=np.arange(shape[1]) // 2)
    found = []
    for number in (1, 2):
        with threadpool_limits(number, user_api="blas"):
            fit = clone(model).fit(rows, rows[:, 0] + noise, weight)
            parts = fit.coef_, fit.intercept_, fit.predict(rows)
            found.append(([np.asarray(part).tobytes() for part in parts], fit.certificate_))
    assert found[0] == found[1]


def test_sums_over_many_rows_wake_no_other_thread(monkeypatch):
    seen, vdot = [], np.vdot

    def watched(one, other):
        seen.append((np.size(one), threads()))
        return vdot(one, other)

    monkeypatch.setattr(np, "vdot", watched)
    rows = np.random.default_rng(0).uniform(size=(20_000, 1))
    with threadpool_limits(2, user_api="blas"):
        QuantileRegressor(learn=False).fit(rows, rows[:, 0])
    assert {20_000} <= {size for size, _ in seen}
    assert {number for _, number in seen} == {1}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the feature map of rank")  # small on purpose
def test_fits_are_the_same_bits_beside_each_other_and_for_any_number_of_threads():
    searches = (PathSearchCV, GroupLassoCV, LassoCV, RidgeCV)
    cases = [case for case in CASES if not isinstance(case.estimator, searches)]

    def fit(case):
        return state(case.fitted())

    expected = [fit(case) for case in cases]
    filters = list(warnings.filters)
    with threadpool_limits(2, user_api="blas"):
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(fit, cases * 2))
        assert threads() == 2
    assert list(warnings.filters) == filters
    for case, one, other in zip(cases * 2, found, expected * 2, strict=True):
        assert one == other, (case.name, differing(one, other))


def test_parts_are_shared_by_as_many_threads_as_asked_for_and_keep_their_order():
    together = Barrier(3)

    def task(part):
        if part < 3:
            together.wait(20.0)  # passes only if three run at once
        return part, get_ident(), threads()

    with threadpool_limits(3, user_api="blas"):
        found = in_threads(task, range(20))
        assert threads() == 3
    assert [part for part, _, _ in found] == list(range(20))
    assert len({thread for _, thread, _ in found}) == 3
    assert {number for _, _, number in found} == {1}


def test_one_thread_runs_all_parts_itself():
    with threadpool_limits(1, user_api="blas"):
        assert set(in_threads(lambda part: get_ident(), range(5))) == {get_ident()}
    with threadpool_limits(3, user_api="blas"):
        assert in_threads(lambda part: get_ident(), range(1)) == [get_ident()]


def test_parts_within_parts_stay_in_their_thread():
    def outer(part):
        return set(in_threads(lambda inner: get_ident(), range(4))) == {get_ident()}

    with threadpool_limits(3, user_api="blas"):
        assert all(in_threads(outer, range(6)))


def test_the_error_of_the_first_part_is_raised_and_the_threads_serve_again():
    def task(part):
        if part >= 1:
            time.sleep(0.05 if part == 1 else 0.0)
            raise ValueError(f"part {part}")

    with threadpool_limits(3, user_api="blas"):
        with pytest.raises(ValueError, match="part 1"):
            in_threads(task, range(3))
        assert threads() == 3
        assert in_threads(lambda part: part, range(3)) == [0, 1, 2]


def test_an_interrupt_ends_the_pass_and_the_threads_serve_again():
    here, ran = get_ident(), []

    def task(part):
        ran.append(part)
        if get_ident() == here:
            raise KeyboardInterrupt
        time.sleep(0.01)

    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyboardInterrupt):
            in_threads(task, range(1000))
        assert len(ran) < 100
        assert threads() == 2
        assert in_threads(lambda part: part, range(3)) == [0, 1, 2]


@pytest.mark.parametrize("name", ["__enter__", "__exit__", "add", "discard", "settle"])
def test_an_interrupt_as_a_call_begins_leaves_the_threads_as_they_were(name):
    """Where Python looks at signals: before the first line of a function."""

    def trace(frame, event, argument):
        if frame.f_code.co_name == name and "_threads" in frame.f_code.co_filename:
            sys.settrace(None)
            raise KeyboardInterrupt

    def limited():
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with threads_that_pay(10):
                pass
        finally:
            sys.settrace(before)

    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(KeyboardInterrupt):
            limited()
        assert threads() == 2
        with threads_that_pay(10):
            assert threads() == 1
        assert threads() == 2


def test_floating_point_errors_are_told_as_the_caller_asks():
    with threadpool_limits(3, user_api="blas"), np.errstate(over="ignore"):
        assert in_threads(lambda part: np.float64(1e308) * 10.0, range(6)) == [np.inf] * 6


def test_sums_and_results_of_blocks_are_those_of_a_loop():
    values = np.random.default_rng(0).standard_normal((1003, 3))
    blocks = RowBlocks(len(values), 3)
    blocks.block_rows = 4
    with threadpool_limits(3, user_api="blas"):
        total, squares = blocks.sum(
            lambda rows: (values[rows].sum(axis=0), (values[rows] ** 2).sum())
        )
        starts = blocks.map(lambda rows: rows.start)
    np.testing.assert_allclose(total, values.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(squares, (values**2).sum(), rtol=1e-12)
    assert starts == list(range(0, 1003, 4))


@pytest.mark.parametrize(("most_parts", "most"), [(4, 8), (1, 4), (10**9, 132)])
def test_sums_in_memory_are_not_more_than_allowed(most_parts, most):
    blocks = RowBlocks(400, 1, most_parts)
    blocks.block_rows = 1
    with threadpool_limits(2, user_api="blas"):
        tracemalloc.start()
        try:
            (total,) = blocks.sum(lambda rows: (np.ones((100, 100)),))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (total == 400.0).all()
    assert peak < (most + 0.5) * total.nbytes


def test_large_products_of_features_and_outputs_have_fewer_partial_sums():
    features = np.zeros((3, 4096))
    assert Plain(features, np.eye(1024)).blocks.most_parts == 48
    assert Plain(features, np.eye(1)).blocks.most_parts == 128


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:stopped at a relative gap")  # small on purpose
@pytest.mark.parametrize(
    ("kernel", "rank", "n_rows"), [(Gaussian(0.7), None, 60_000), (Matern(0.5), 100, 9000)]
)
def test_passes_over_many_rows_are_the_same_bits_for_any_number_of_threads(kernel, rank, n_rows):
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(n_rows, 2))
    y = np.sin(6.0 * rows[:, 0]) + rng.standard_normal(n_rows) * (0.2 + rows[:, 1])

    def fit(number):
        model = QuantileRegressor(
            [0.25, 0.5, 0.75], kernel=kernel, alpha=1e-4, rank=rank, tol=1e-3, solver="newton"
        )
        with threadpool_limits(number, user_api="blas"):
            model.fit(rows, y)
            parts = model.weights_, model.dual_coef_, model.offset_, model.predict(rows)
        return [part.tobytes() for part in parts], model.certificate_

    first, *others = (fit(number) for number in (1, 2, 3))
    for other in others:
        assert other == first

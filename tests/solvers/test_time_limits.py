"""Limits of time that end work in the middle: what is returned then, and that it is certified."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import (
    FunctionalRegressor,
    KernelRidge,
    NonNegativeRegressor,
    QuantileRegressor,
    _clock,
)
from fenchel._clock import OutOfTime, check_time, within
from fenchel._threads import in_threads
from fenchel.certificate import Certificate
from fenchel.features import KernelRows
from fenchel.kernels import Gaussian, Matern
from fenchel.metrics import mean_pinball_loss
from fenchel.problem import Problem
from fenchel.solvers import Iterate, Loop, newton
from fenchel.solvers.loop import Watch
from fenchel.testing import small_problems

NO_TIME = "the next step would take longer than max_time leaves; increase max_time or tol"


@pytest.fixture
def slow(monkeypatch):
    """A machine on which operations take years: no system is begun where there is a limit."""
    monkeypatch.setattr(_clock, "_SPEED", 1e-8)


def rows(n=300, d=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n, d))
    return X, np.sin(6.0 * X[:, 0]) + 0.2 * random.normal(size=n)


def test_time_that_is_over_is_seen_and_the_first_of_two_ends_counts():
    check_time(1e30)  # there is no limit
    with within(60.0):
        check_time()
        with pytest.raises(OutOfTime):
            check_time(1e30)
        with within(0.0), pytest.raises(OutOfTime):
            check_time()
        with within(120.0), pytest.raises(OutOfTime):
            check_time(100.0 * _clock._SPEED)
        check_time(1.0)
    check_time(1e30)


def test_parts_of_a_pass_are_not_begun_after_the_end():
    done = []
    with within(0.5), pytest.raises(OutOfTime):  # enough to begin on a busy machine
        in_threads(lambda part: (done.append(part), time.sleep(0.1)), range(50))
    assert 1 <= len(done) < 50
    assert len(in_threads(lambda part: part, range(50))) == 50


def point(gap):
    return type("Point", (), {"certificate": Certificate(gap, 0.0, 1.0)})()


def test_a_loop_ends_where_work_does_not():
    loop = Loop(1e-6, Watch("a fit", max_time=60.0))
    late = lambda: check_time(1e30)  # noqa: E731
    assert loop.in_time(late) is None  # the first point takes the time that it takes
    assert not loop.stopped
    loop.run(iter([Iterate(0, point(0.5))]))
    assert loop.in_time(lambda: "found") == "found"
    assert loop.in_time(late) is None
    assert loop.stopped
    assert not loop.status("").converged
    assert loop.status("").message.endswith(f"after 0 steps: {NO_TIME}")


def test_ridge_is_solved_by_products_where_a_factor_takes_too_long(slow):
    X, y = rows()
    given = {"kernel": Gaussian(0.2), "alpha": 1e-3, "learn": False, "features": "kernel_rows"}
    whole = KernelRidge(**given).fit(X, y)
    limited = KernelRidge(**given, max_time=60.0).fit(X, y)
    assert "closed form" in whole.status_.message
    assert limited.status_.message.startswith("converged to a relative gap of")
    assert limited.predict(X) == pytest.approx(whole.predict(X), abs=1e-2)
    assert limited.certificate_.dual <= whole.certificate_.primal * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_curves_do_without_eigenbases_that_take_too_long(loss, slow):
    X, y = rows(60)
    curves = y[:, None] * np.linspace(0.5, 1.0, 20)
    given = {"kernel": Gaussian(0.2), "alpha": 1e-2, "learn": False, "loss": loss, "tol": 1e-4}
    given["features"] = "kernel_rows"
    whole = FunctionalRegressor(**given).fit(X, curves)
    limited = FunctionalRegressor(**given, max_time=60.0).fit(X, curves)
    assert limited.status_.converged
    assert limited.status_.message != whole.status_.message  # solved in another way
    assert limited.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-3)
    assert limited.certificate_.dual <= whole.certificate_.primal * (1.0 + 1e-9)


@pytest.mark.parametrize("stored", [False, True])
def test_the_model_of_few_rows_has_a_true_gap(stored, monkeypatch):
    """Where not even one pass is in time: its objective is computed here from predictions."""
    monkeypatch.setattr(newton, "_SOME", 64)
    X, y = rows()
    features = KernelRows(stored=stored)
    given = {"kernel": Gaussian(0.2), "alpha": 1e-3, "learn": False, "features": features}
    model = QuantileRegressor(0.3, **given, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09 s were reached"):
        model.fit(X, y)
    certificate = model.certificate_
    loss = mean_pinball_loss(y, model.predict(X), 0.3)
    assert certificate.primal == pytest.approx(loss + 0.5 * 1e-3 * model.norm_**2, rel=1e-9)
    optimum = QuantileRegressor(0.3, **given).fit(X, y).certificate_
    assert certificate.dual <= optimum.primal <= certificate.primal
    assert certificate.relative_gap < 0.9  # no constant
    enough = QuantileRegressor(0.3, **given, max_time=600.0).fit(X, y)
    assert enough.status_.converged
    assert enough.certificate_.primal == pytest.approx(optimum.primal, rel=2e-6)


def test_a_first_model_is_left_to_limits_alone(monkeypatch):
    monkeypatch.setattr(newton, "_SOME", 64)
    seen = []
    few = newton.of_few_rows
    monkeypatch.setattr(newton, "of_few_rows", lambda problem: seen.append(1) or few(problem))
    X, y = rows()
    given = {"kernel": Gaussian(0.2), "alpha": 1e-3, "learn": False}
    QuantileRegressor(0.3, **given, features=KernelRows(stored=False)).fit(X, y)
    assert not seen
    QuantileRegressor(0.3, **given, features=KernelRows(stored=False), max_time=600.0).fit(X, y)
    assert seen


@pytest.mark.parametrize(
    "model", [KernelRidge(alpha=1e-3), QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-3)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_time_is_over_at_once_a_model_of_few_rows_is_left(model):
    """With 3000 rows it was a constant after several times the limit, or no limit was kept."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * random.normal(size=3000) + 50.0
    model = clone(model).set_params(kernel=Matern(3.0), max_time=1e-9, learn=False).fit(X, y)
    assert model.status_.message.startswith("stopped at a relative gap")
    assert model.score(X, y) > 0.5


def test_a_model_of_few_rows_that_is_worse_than_a_constant_is_not_taken(monkeypatch):
    monkeypatch.setattr(newton, "_SOME", 64)
    X = np.random.default_rng(0).normal(size=(500, 8))
    y = np.random.default_rng(1).normal(size=500)
    levels, given = [0.1, 0.5, 0.9], {"kernel": Gaussian(1.0), "alpha": 1e-6, "learn": False}
    with pytest.warns(ConvergenceWarning):
        model = QuantileRegressor(levels, **given, max_time=1e-9).fit(X, y)
    assert model.certificate_.relative_gap <= 1.0 + 1e-9  # it was 1.5


def test_of_few_rows_is_a_model_of_the_whole_problem():
    problem: Problem = small_problems()[0]
    found = newton.of_few_rows(problem)
    assert not found.dual.any()
    assert found.certificate.primal == problem.primal(found.weights, found.offset)


@pytest.mark.slow
def test_steps_of_non_negative_models_that_take_too_long_are_not_begun(slow):
    X, y = rows(1200)
    y = np.abs(y)
    whole = NonNegativeRegressor(kernel=Gaussian(0.5), rank=20).fit(X, y)
    model = NonNegativeRegressor(kernel=Gaussian(0.5), rank=20, max_time=60.0)
    with pytest.warns(ConvergenceWarning, match=NO_TIME):
        model.fit(X, y)
    limited, optimum = model.certificate_, whole.certificate_
    assert whole.status_.converged
    assert limited.dual <= optimum.primal
    assert optimum.dual <= limited.primal
    assert limited.relative_gap > 1e-6
    assert model.predict(X).min() >= 0.0


def test_a_limit_on_many_rows_is_kept():
    """Without it, or with one that only steps look at, this takes half a minute and more."""
    X, y = rows(5000, 5)
    started = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        NonNegativeRegressor(max_time=0.2).fit(X, np.abs(y))
    assert time.perf_counter() - started < 6.0

"""Fits that are stopped: by a callback, after some seconds, or by an error or Ctrl-C."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from attacks.interrupts import STOPPABLE, state
from ecosystem.registry import X, Y
from fenchel import SVR, ExpectileRegressor, KernelRidge, Lasso, QuantileRegressor
from fenchel.certificate import Progress
from fenchel.functional import FunctionalRegressor
from fenchel.model_selection import PathSearchCV
from fenchel.solvers import Newton, Outputwise
from fenchel.solvers.loop import Watch

pytestmark = pytest.mark.filterwarnings("ignore:the feature map of rank")  # small on purpose
stoppable = pytest.mark.parametrize("case", STOPPABLE, ids=[case.name for case in STOPPABLE])
ONE_CERTIFICATE = (KernelRidge, Lasso)


def fitted(case, **parameters):
    return case.fresh().set_params(**parameters).fit(X, case.y, **case.extra)


@stoppable
def test_a_callback_sees_the_history(case):
    seen = []
    model = fitted(case, callback=seen.append)
    learning = [each for each in seen if np.isnan(each.dual)]
    assert seen == learning + model.history_
    learned = getattr(model, "learned_", None)
    assert [each.primal for each in learning] == ([] if learned is None else learned.history)
    assert all(type(each) is Progress for each in seen)
    assert state(model)[1]["certificate_"] == state(fitted(case))[1]["certificate_"]


@stoppable
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"callback": lambda progress: True}, "the callback returned a true value"),
        ({"callback": lambda progress: "it is late"}, "it is late"),
        ({"max_time": 1e-9}, "max_time=1e-09 s were reached; increase max_time or tol"),
    ],
)
def test_the_first_certificate_is_always_there(case, how, why):
    if isinstance(case.estimator, ONE_CERTIFICATE):
        assert fitted(case, **how).status_.converged
        return
    with pytest.warns(ConvergenceWarning) as told:
        model = fitted(case, tol=1e-12, **how)
    assert "stopped at a relative gap of" in str(told[-1].message)
    assert not model.status_.converged
    assert f": {why}" in model.status_.message
    assert len(model.history_) == 1
    assert np.isfinite(model.certificate_.dual)


@stoppable
def test_an_error_in_a_callback_leaves_the_last_fit(case):
    model = fitted(case)
    before = state(model)

    def stop(progress):
        raise KeyboardInterrupt

    model.callback = stop
    with pytest.raises(KeyboardInterrupt):
        model.fit(0.5 * X, case.y, **case.extra)
    model.callback = None
    assert state(model) == before


@stoppable
def test_what_is_refused(case):
    with pytest.raises(TypeError, match="callback must be a function or None, got 3"):
        fitted(case, callback=3)
    with pytest.raises(ValueError, match="max_time must be a finite number > 0 or None, got 0"):
        fitted(case, max_time=0)


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_independent_outputs_tell_of_the_whole(limit):
    """Bounds of the sum over outputs get better from line to line; all outputs are certified."""
    solver = Outputwise(lambda part: Newton(1e-9), tol=1e-9)
    model = QuantileRegressor([0.2, 0.5, 0.8], level_gamma=np.inf, solver=solver, tol=1e-9)
    model.set_params(alpha=1e-3, learn=False).fit(X, Y)
    history, best = model.history_, model.certificate_
    assert len(history) > 3
    for one, other in pairwise(history):
        assert other.relative_gap <= one.relative_gap + 1e-12
        assert one.dual <= best.primal + 1e-12
        assert one.primal >= best.dual - 1e-12
    assert history[-1].primal == best.primal
    seen = []

    def enough(progress):
        seen.append(progress)
        return len(seen) == limit

    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        stopped = clone(model).set_params(callback=enough).fit(X, Y)
    assert len(seen) == limit
    assert best.dual - 1e-12 <= stopped.certificate_.primal
    assert stopped.certificate_.dual <= best.primal + 1e-12


def test_one_clock_for_outputs_of_the_lasso():
    watch = Watch("Lasso", max_time=1e-9)
    assert watch(Progress(0, 0.0, 1.0, 0.0, 1.0)) is not None
    assert watch.seconds_left() == 0.0
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 40)) + 2.0 * rng.normal(size=(60, 1))
    targets = rows[:, :2] + rng.normal(size=(60, 2))
    model = Lasso(radius=3.0, tol=1e-300, max_time=1e-9)  # rounding keeps it from converging
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09 s were reached"):
        model.fit(rows, targets)
    assert model.certificate_.gap >= -1e-12


def test_conic_is_given_the_seconds():
    pytest.importorskip("clarabel", reason="clarabel is not installed")
    given = {"alpha": 1e-3, "epsilon": 0.1, "learn": False}
    model = SVR(solver="conic", max_time=1e-9, **given)
    with pytest.warns(ConvergenceWarning, match="MaxTime .*: increase max_iter or max_time"):
        model.fit(X, Y)
    best = SVR(**given).fit(X, Y).certificate_
    assert model.certificate_.primal >= best.dual
    assert model.certificate_.dual <= best.primal
    assert SVR(solver="conic", max_time=60.0, **given).fit(X, Y).status_.converged


def test_searches_count_what_was_stopped():
    search = PathSearchCV(ExpectileRegressor(tol=1e-12, max_time=1e-9), {"alpha": 3}, cv=3)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        search.fit(X, Y)
    assert search.n_early_stops_ == 9


def test_curves_stop_too():
    curves = np.sin(3.0 * np.linspace(0.0, 1.0, 9) + X[:, :1])
    model = FunctionalRegressor("huber", kappa=0.1, tol=1e-12, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, curves)
    assert model.predict(X).shape == curves.shape

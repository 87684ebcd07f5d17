"""scikit-learn's manners: clones, searches, pipelines, warnings, warm starts."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian
from fenchel.solvers import Newton
from regression_cases import (
    BRIEFLY,
    LEVELS,
    MODELS,
    WEIGHT,
    X,
    Y,
    by_default,
    data,
    everyone,
    some_model,
    uncertainty,
)

# scikit-learn's manners


@some_model
def test_clone_and_parameters(name):
    model = clone(MODELS[name])
    before = {key: repr(value) for key, value in model.get_params().items()}
    fitted = model.fit(X, Y)
    assert fitted is model
    assert {key: repr(value) for key, value in model.get_params().items()} == before
    again = clone(model)
    assert not hasattr(again, "dual_coef_")
    np.testing.assert_array_equal(again.fit(X, Y).predict(X), model.predict(X))
    type(model)(**model.get_params())


@pytest.mark.slow
@everyone
def test_refit_forgets(estimator):
    model = estimator(learn=BRIEFLY).fit(*data(n=30, d=3, seed=9))
    model.set_params(learn=True).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), by_default(estimator).predict(X))
    assert model.n_features_in_ == 2


@everyone
def test_grid_search(estimator):
    grid = {"alpha": [1e-4, 1e-2, 1e2], "kernel__length_scale": [0.5, "median"]}
    search = GridSearchCV(estimator(kernel=Gaussian()), grid, cv=3).fit(X, Y)
    assert search.best_params_["alpha"] < 1e2
    assert search.best_estimator_.kernel.length_scale in (0.5, "median")
    assert isinstance(search.best_estimator_.kernel_.length_scale, float)
    assert search.best_score_ > 0.2
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 6
    weighted = GridSearchCV(estimator(learn=False), {"alpha": [1e-4, 1e-2]}, cv=3)
    weighted.fit(X, Y, sample_weight=WEIGHT)
    assert weighted.best_params_["alpha"] in (1e-4, 1e-2)


@everyone
def test_pipelines(estimator):
    pipeline = make_pipeline(StandardScaler(), estimator(learn=BRIEFLY))
    pipeline.set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    name = estimator.__name__.lower()
    pipeline.fit(frame, Y, **{f"{name}__sample_weight": WEIGHT})
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, ["a", "b"])
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(
        pipeline.predict(frame),
        estimator(learn=BRIEFLY).fit(scaled, Y, WEIGHT).predict(scaled),
        rtol=1e-9,
        atol=1e-9 * Y.std(),  # a frame lies in memory by columns: its sums round differently
    )
    pipeline = make_pipeline(StandardScaler(), estimator(learn=False))
    assert cross_val_predict(pipeline, X, Y).shape == (80,)


@everyone
def test_random_state(estimator):
    def predictions(random_state):
        # more rows than are looked at for the width, and random features
        new_X, new_y = data(n=1500, seed=10)
        model = estimator(
            kernel=Gaussian("median"),
            features="fourier",
            rank=50,
            alpha=1e-1,
            random_state=random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return model.fit(new_X, new_y).predict(new_X[:50])

    np.testing.assert_array_equal(predictions(0), predictions(0))
    np.testing.assert_array_equal(predictions(None), predictions(None))
    assert np.abs(predictions(0) - predictions(1)).max() > 0.0
    np.testing.assert_array_equal(
        predictions(np.random.RandomState(5)), predictions(np.random.RandomState(5))
    )


# Stopping, starting, talking


@pytest.mark.parametrize(
    "model",
    [QuantileRegressor(LEVELS), ExpectileRegressor(LEVELS), SVR(), SVR("huber", kappa=0.1)],
    ids=repr,
)
def test_stopping_early_warns_and_keeps_a_usable_fit(model):
    model = clone(model).set_params(alpha=1e-3, learn=False, max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"relative gap .* > tol=1e-09.*max_iter"):
        model.fit(X, Y)
    assert model.n_iter_ == 1
    assert model.certificate_.relative_gap > 1e-9
    assert np.isfinite(model.predict(X)).all()
    # the certificate still bounds the optimum
    optimum = clone(model).set_params(max_iter=1000).fit(X, Y).certificate_
    assert model.certificate_.dual <= optimum.primal
    assert model.certificate_.primal >= optimum.dual
    assert optimum.relative_gap <= 1e-9


@everyone
def test_warning_points_to_the_call_of_fit(estimator):
    """A warning names the file of the caller, not one of ours."""
    with pytest.warns(ConvergenceWarning, match="leave out") as caught:
        estimator(kernel="laplacian", rank=5, learn=BRIEFLY).fit(X, Y)
    assert [w.filename for w in caught] == [__file__] * len(caught)
    if estimator is not KernelRidge:
        with pytest.warns(ConvergenceWarning) as caught:
            estimator(max_iter=1, tol=1e-12, learn=BRIEFLY).fit(X, Y)
        assert [w.filename for w in caught] == [__file__] * len(caught)


@pytest.mark.parametrize("name", ["quantiles", "expectiles", "svr", "quantiles, rough"])
def test_warm_start(name):
    model = clone(MODELS[name]).set_params(warm_start=True).fit(X, Y)
    first = model.predict(X)
    steps = model.n_iter_
    assert steps > 1
    model.fit(X, Y)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.predict(X), first, atol=20 * uncertainty(model))
    # a path: as good as from scratch
    model.set_params(alpha=5e-4).fit(X, Y)
    cold = clone(MODELS[name]).set_params(alpha=5e-4).fit(X, Y)
    optimum = cold.certificate_
    assert model.certificate_.relative_gap <= model.tol
    assert model.certificate_.primal == pytest.approx(optimum.primal, rel=3e-6)
    assert model.certificate_.dual <= optimum.primal
    # other data of any shape
    model.fit(X[:30], Y[:30])
    assert model.certificate_.relative_gap <= model.tol
    other = data(n=120, d=3)
    model.fit(*other)
    assert model.certificate_.relative_gap <= model.tol
    # without it, fits do not remember
    plain = clone(MODELS[name]).fit(X, Y)
    assert plain.fit(X, Y).n_iter_ == steps


def test_warm_start_with_weights_and_other_levels():
    model = QuantileRegressor(LEVELS, alpha=1e-3, learn=False, warm_start=True).fit(X, Y)
    weight = WEIGHT.copy()
    weight[::4] = 0.0
    for parameters, sample_weight in [
        ({}, weight),
        ({"levels": [0.2, 0.5, 0.9]}, weight),
        ({"levels": [0.2, 0.8]}, None),
        ({"epsilon": 0.2}, None),
        ({"fit_intercept": False}, None),
        ({"fit_intercept": True}, WEIGHT),
    ]:
        model.set_params(**parameters).fit(X, Y, sample_weight)
        cold = clone(model).fit(X, Y, sample_weight)
        assert model.certificate_.relative_gap <= model.tol
        assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=3e-6)


@everyone
def test_silent_unless_asked(estimator, capsys):
    estimator(learn=BRIEFLY).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    model = estimator(learn=BRIEFLY, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    n_learning = len(model.learned_.history)
    assert len(lines) == n_learning + len(model.history_) >= 2
    for line in lines[:n_learning]:
        assert line.startswith(f"[{estimator.__name__}] learning, evaluation ")
        assert "held-out loss" in line
    for line in lines[n_learning:]:
        assert line.startswith(f"[{estimator.__name__}] step ")
        assert "relative gap" in line


def test_solvers_by_name_and_by_object():
    given = {"alpha": 1e-3, "learn": False}
    automatic = QuantileRegressor(LEVELS, **given).fit(X, Y)
    by_name = QuantileRegressor(LEVELS, solver="newton", **given).fit(X, Y)
    np.testing.assert_array_equal(by_name.predict(X), automatic.predict(X))
    exact = QuantileRegressor(LEVELS, solver=Newton(tol=1e-10), **given).fit(X, Y)
    assert exact.certificate_.relative_gap <= 1e-10
    newton = KernelRidge(solver="newton", tol=1e-10, **given).fit(X, Y)
    closed = KernelRidge(solver="closed_form", **given).fit(X, Y)
    np.testing.assert_allclose(newton.predict(X), closed.predict(X), atol=1e-4)
    np.testing.assert_array_equal(closed.predict(X), KernelRidge(**given).fit(X, Y).predict(X))

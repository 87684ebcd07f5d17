"""Manners of the estimator: forms of curves, weights, units, scikit-learn, files, bad input."""

from __future__ import annotations

import pickle
import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel
from contract_cases import with_checks
from fenchel.design import Gram
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import BetweenCurves, Gaussian, Laplacian, Matern
from fenchel.losses import CurveHuber
from fenchel.problem import Problem
from fenchel.solvers import Fista, Splitting
from functional_center import center as mean_curve
from regression_cases import BRIEFLY

MODELS = [
    FunctionalRegressor("huber", 1, kappa=0.5),
    FunctionalRegressor("huber", 2, kappa=0.5, center="mean"),
    FunctionalRegressor("huber", 1.5, kappa=0.5, center="median", solver="fista"),
    FunctionalRegressor("squared_epsilon_insensitive", 2, center="mean"),
    FunctionalRegressor("squared_epsilon_insensitive", np.inf, quadrature="trapezoid"),
    FunctionalRegressor("huber", 2, representation="eigen", solver="splitting"),
    FunctionalRegressor("huber", 2, representation="projected", n_components=3),
    FunctionalRegressor(kernel="laplacian", output_kernel=Matern(0.3)),
]
# Learning takes most of the time, and is checked once.
MODELS = [FunctionalRegressor(learn=BRIEFLY), *(model.set_params(learn=False) for model in MODELS)]
LOSSES = [
    ("squared", 2),
    ("huber", 1),
    ("huber", 2),
    ("squared_epsilon_insensitive", 2),
    ("squared_epsilon_insensitive", np.inf),
]


@pytest.mark.filterwarnings("ignore:n_components=1 is not used")  # the checks set it
@with_checks(*MODELS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X, theta = random.uniform(size=(20, 2)), np.linspace(0.0, 2.0, 9)
    y = np.sin(3.0 * (theta + X[:, :1])) + 0.3 * random.standard_normal((20, 9))
    y[0] += 4.0
    return X, y, theta


def make(loss="squared", norm=2, **parameters):
    chosen = {
        "center": None,
        "kappa": 0.3,
        "epsilon": 0.3,
        "alpha": 1e-3,
        "kernel": Gaussian(0.5),
        "output_kernel": Gaussian(0.4),
        "tol": 1e-10,
        **parameters,
    }
    return FunctionalRegressor(loss, norm, **chosen)


@pytest.mark.parametrize(("loss", "norm"), LOSSES)
def test_weights_are_repetition(loss, norm, data):
    X, y, theta = data
    weight = np.arange(20) % 4
    times = np.repeat(np.arange(20), weight)
    weighted = make(loss, norm).fit(X, y, theta, sample_weight=weight)
    repeated = make(loss, norm).fit(X[times], y[times], theta)
    kept = weight > 0
    without = make(loss, norm).fit(X[kept], y[kept], theta, sample_weight=weight[kept])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=0, atol=1e-4)
    np.testing.assert_allclose(
        weighted.certificate_.primal, repeated.certificate_.primal, rtol=1e-8
    )
    np.testing.assert_allclose(weighted.predict(X), without.predict(X), rtol=0, atol=1e-8)
    assert weighted.dual_coef_.shape == y.shape
    assert not weighted.dual_coef_[~kept].any()
    assert np.abs(weighted.predict(X) - make(loss, norm).fit(X, y, theta).predict(X)).max() > 0.01


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("center", ["mean", "median"])
def test_center_with_weights_is_that_of_repeated_rows(center, first, data):
    X, y, theta = data
    y[3, 4] = np.nan
    weight = 1 + 2 * (np.arange(20) % 4)
    weight[0] = first  # an odd total, or an even one: the middle of two values
    times = np.repeat(np.arange(20), weight)
    model = make(center=center).fit(X, y, theta, sample_weight=weight)
    function = {"mean": np.nanmean, "median": np.nanmedian}[center]
    columns = np.arange(9) != 4
    np.testing.assert_allclose(model.center_[columns], function(y[times], axis=0)[columns])
    repeated = make(center=center).fit(X[times], y[times], theta)
    np.testing.assert_allclose(model.center_, repeated.center_, rtol=1e-12)
    far = np.full((1, 2), 1e6)
    between = [0.1, 1.0, 1.3]
    expected = np.interp(between, theta, model.center_)
    np.testing.assert_allclose(model.predict(far, between)[0], expected)
    assert not make().fit(X, y, theta).center_.any()
    thirds = make(center=center).fit(X, -y, theta, sample_weight=weight / 3.0)
    np.testing.assert_allclose(thirds.center_, -model.center_, rtol=1e-12)


def test_points_beyond_the_training_curves_are_warned_of(data):
    X, y, theta = data
    model = make(center="mean", output_kernel=Gaussian(0.1)).fit(X, y, theta)
    sentence = "theta must be between 0 and 2, .*, got points from -5 to 9"
    with pytest.warns(UserWarning, match=sentence):
        found = model.predict(X, theta=[-5.0, 1.0, 9.0])
    ends = np.tile(model.center_[[0, -1]], (20, 1))
    np.testing.assert_allclose(found[:, [0, 2]], ends, atol=1e-12)
    np.testing.assert_allclose(found[:, 1], model.predict(X)[:, 4], rtol=1e-12)
    model.predict(X, theta=[-0.25, 2.25])  # no further than points are from each other
    single = make().fit(X, y[:, 0], theta[:1])
    with pytest.warns(UserWarning, match="theta must be between 0 and 0"):
        single.predict(X, theta=0.1)


@pytest.mark.parametrize(("loss", "norm"), LOSSES)
@pytest.mark.parametrize("factor", [1e-6, 1e7])
def test_units_of_curves(loss, norm, factor, data):
    X, y, theta = data
    model = make(loss, norm).fit(X, y, theta)
    scaled = make(loss, norm, kappa=0.3 * factor, epsilon=0.3 * factor)
    scaled.fit(X, factor * y, theta)
    np.testing.assert_allclose(scaled.predict(X) / factor, model.predict(X), rtol=0, atol=1e-4)
    assert scaled.sparsity_ == model.sparsity_
    assert scaled.n_iter_ == model.n_iter_


def test_sparsity_counts_exact_zeros(data):
    X, y, theta = data
    curves = make("squared_epsilon_insensitive", 2, epsilon=0.5).fit(X, y, theta)
    zero = ~curves.dual_coef_.any(axis=1)
    assert 0 < zero.sum() < 20
    assert curves.sparsity_.rows == zero.mean() == curves.sparsity_.coefficients
    np.testing.assert_array_equal(curves.support_, np.flatnonzero(~zero))
    # by the loss: curves within ε have no coefficient, those beyond have one
    length = np.sqrt(np.mean((y - curves.predict(X)) ** 2, axis=1))
    assert np.all(length[zero] < 0.5 + 1e-4)
    assert np.all(length[~zero] > 0.5 - 1e-4)

    points = make("squared_epsilon_insensitive", np.inf, epsilon=0.3).fit(X, y, theta)
    zeros = points.dual_coef_ == 0.0
    assert 0.0 < zeros.mean() < 1.0
    assert points.sparsity_.coefficients == zeros.mean()
    assert np.all(np.abs(y - points.predict(X))[zeros] < 0.3 + 1e-3)
    assert np.all(np.abs(y - points.predict(X))[~zeros] > 0.3 - 1e-3)

    missing = y.copy()
    missing[:, 3] = np.nan
    seen = ~np.isnan(missing)
    model = make("squared_epsilon_insensitive", np.inf, epsilon=0.3).fit(X, missing, theta)
    assert model.sparsity_.coefficients == np.mean(model.dual_coef_[seen] == 0.0)

    assert make("huber").fit(X, y, theta).sparsity_ == (0.0, 0.0)
    everything = make("squared_epsilon_insensitive", 2, epsilon=1e3).fit(X, y, theta)
    assert everything.sparsity_ == (1.0, 1.0)
    assert not everything.predict(X).any()


@pytest.mark.parametrize(("loss", "norm"), LOSSES[1:])
@pytest.mark.parametrize("solver", ["splitting", "fista"])
def test_warm_start(loss, norm, solver, data):
    X, y, theta = data
    model = make(loss, norm, warm_start=True, solver=solver, tol=1e-7).fit(X, y, theta)
    cold = model.n_iter_
    again = model.fit(X, y, theta)
    assert again.n_iter_ < cold
    assert again.certificate_.relative_gap <= 1e-7
    moved = model.set_params(kappa=0.25, epsilon=0.25).fit(X, y, theta)
    fresh = make(loss, norm, kappa=0.25, epsilon=0.25, solver=solver, tol=1e-7).fit(X, y, theta)
    np.testing.assert_allclose(moved.certificate_.primal, fresh.certificate_.primal, rtol=1e-6)
    # curves of another shape: the start is dropped
    assert model.fit(X[:7], y[:7, :5]).predict(X).shape == (20, 5)


def test_warm_start_across_representations(data):
    X, y, theta = data
    model = make("huber", 2, warm_start=True, tol=1e-6).fit(X, y, theta)
    model.set_params(representation="eigen").fit(X, y, theta)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.n_iter_ <= 5


def test_callback_and_verbose(data, capsys):
    X, y, theta = data
    measure = np.full(9, 1.0 / 9.0)
    coupling = np.linalg.cholesky(Gaussian(0.4)(theta[:, None]) / 9.0 + 1e-12 * np.eye(9))
    problem = Problem(
        CurveHuber(0.3, 1, measure),
        Gram(Gaussian(0.5)(X), coupling),
        y / 3.0,
        np.ones(20),
        1e-4,
        fit_intercept=False,
    )
    for solver in (Splitting(1e-14, 500), Fista(1e-14, 500)):
        seen = []
        solution = solver.solve(
            problem, None, lambda p, seen=seen: seen.append(p) or len(seen) > 2
        )
        assert len(seen) == 3
        assert seen == solution.history
        assert not solution.status.converged
        assert "the callback returned a true value" in solution.status.message
        gaps = [p.relative_gap for p in seen]
        # the function zero, whose gap is at most 1, is returned where nothing is better
        assert solution.certificate.relative_gap == min(*gaps, 1.0)
        assert all(p.primal >= p.dual for p in seen)
    assert capsys.readouterr().out == ""
    model = make("huber", 1, verbose=1).fit(X, y, theta)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.history_)
    assert lines[0].startswith("[FunctionalRegressor] step ")


def test_own_solver(data):
    X, y, theta = data
    model = make("huber", 1, solver=Fista(1e-5, 10_000)).fit(X, y, theta)
    assert 1e-10 < model.certificate_.relative_gap <= 1e-5


def test_fdatagrid_in_and_out(data):
    skfda = pytest.importorskip("skfda", reason="FDataGrid is of scikit-fda")
    _, y, theta = data
    curves = skfda.FDataGrid(data_matrix=y, grid_points=theta)
    inputs = skfda.FDataGrid(data_matrix=np.cumsum(y, axis=1), grid_points=theta)
    kernel = BetweenCurves(Gaussian(2.0))
    model = make("huber", 1, kernel=kernel).fit(inputs, curves)
    arrays = make("huber", 1, kernel=kernel).fit(np.cumsum(y, axis=1), y, theta)
    predicted = model.predict(inputs)
    assert isinstance(predicted, skfda.FDataGrid)
    np.testing.assert_array_equal(predicted.grid_points[0], theta)
    expected = arrays.predict(np.cumsum(y, axis=1))
    np.testing.assert_array_equal(predicted.data_matrix[:, :, 0], expected)
    assert model.score(inputs, curves) == arrays.score(np.cumsum(y, axis=1), y, theta)


def test_multichannel_inputs(data):
    _, y, theta = data
    X = np.random.default_rng(2).standard_normal((20, 6, 3))
    model = make(kernel=Gaussian(4.0)).fit(X, y, theta)
    flat = make(kernel=Gaussian(4.0)).fit(X.reshape(20, 18), y, theta)
    np.testing.assert_array_equal(model.predict(X), flat.predict(X.reshape(20, 18)))
    assert model.n_features_in_ == 18


@pytest.mark.parametrize(("loss", "norm"), LOSSES)
def test_precomputed_kernel(loss, norm, data):
    X, y, theta = data
    weight = np.arange(20) % 4
    train, rest = X[:15], X[15:]
    kernel = Gaussian(0.5)
    given = make(loss, norm, kernel="precomputed")
    given.fit(kernel(train), y[:15], theta, sample_weight=weight[:15])
    own = make(loss, norm).fit(train, y[:15], theta, sample_weight=weight[:15])
    np.testing.assert_allclose(
        given.predict(kernel(rest, train)), own.predict(rest), rtol=0, atol=1e-4
    )
    assert given.__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("quadrature", ["monte-carlo", "trapezoid"])
def test_score(quadrature, data):
    X, y, theta = data
    y[2, 3] = np.nan
    weight = np.arange(1.0, 21.0)
    model = make(quadrature=quadrature).fit(X, y, theta)
    mu = np.full(9, 1.0 / 9.0) if quadrature == "monte-carlo" else np.r_[0.5, np.ones(7), 0.5] / 8
    seen = ~np.isnan(y)
    pairs = [(theta[s], row[s]) for s, row in zip(seen, y, strict=True)]
    mean = mean_curve(theta, pairs, weight)
    left, spread = (
        sum(weight[i] * mu[j] * (y[i, j] - other[i, j]) ** 2 for i, j in np.argwhere(seen))
        for other in (model.predict(X), np.tile(mean, (20, 1)))
    )
    np.testing.assert_allclose(model.score(X, y, sample_weight=weight), 1.0 - left / spread)
    # elsewhere: at two of the points
    some = model.score(X, y[:, [1, 5]], theta=theta[[1, 5]])
    if quadrature == "monte-carlo":
        part, at = y[:, [1, 5]], model.predict(X, theta[[1, 5]])
        expected = 1.0 - np.sum((part - at) ** 2) / np.sum((part - part.mean(axis=0)) ** 2)
        np.testing.assert_allclose(some, expected)


def test_pipeline_and_grid_search(data):
    X, y, _ = data
    model = FunctionalRegressor("huber", 1, kappa=0.3, learn=False)
    pipeline = make_pipeline(StandardScaler(), model)
    grid = {"functionalregressor__alpha": [1e-4, 1e-2, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[2] < scores[:2].max()
    assert search.predict(X).shape == y.shape
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = make().fit(frame, pd.DataFrame(y))
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict(frame), make().fit(X, y).predict(X))


@pytest.mark.parametrize("features", ["cholesky", "nystroem", "fourier", "kernel_rows"])
def test_feature_maps(features, data):
    X, y, theta = data
    reference = make("huber", 1).fit(X, y, theta).predict(X)
    model = make("huber", 1, features=features, rank=2000 if features == "fourier" else None)
    random = features == "fourier"
    told = pytest.warns(UserWarning, match="leaves out") if random else nullcontext()
    with told:
        model.fit(X, y, theta)
        again = clone(model).fit(X, y, theta)
    np.testing.assert_allclose(model.predict(X), reference, rtol=0, atol=0.2 if random else 1e-3)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"loss": "huber", "norm": 1, "features": "kernel_rows", "warm_start": True},
        {
            "loss": "squared_epsilon_insensitive",
            "norm": np.inf,
            "epsilon": 0.3,
            "center": "median",
        },
        {"loss": "huber", "norm": 2, "n_components": 4, "quadrature": "trapezoid"},
        {"loss": "huber", "norm": 2, "n_components": 4, "representation": "projected"},
        {"kernel": BetweenCurves(Laplacian(1.0)), "output_kernel": None, "solver": Fista()},
    ],
)
def test_pickles_and_files(parameters, data, tmp_path):
    X, y, theta = data
    model = make(**{"tol": 1e-6, **parameters}).fit(X, y, theta)
    between = [0.0, 0.77, 1.9]
    for same in (
        pickle.loads(pickle.dumps(model)),
        fenchel.load(fenchel.save(model, tmp_path / "model.skops")),
    ):
        assert type(same) is FunctionalRegressor
        np.testing.assert_array_equal(same.predict(X), model.predict(X))
        np.testing.assert_array_equal(same.predict(X, between), model.predict(X, between))
        np.testing.assert_array_equal(same.dual_coef_, model.dual_coef_)
        assert same.certificate_ == model.certificate_
        assert same.sparsity_ == model.sparsity_
        assert same.history_ == model.history_
        assert same.score(X, y) == model.score(X, y)
        if model.warm_start:  # goes on from where it was
            assert same.fit(X, y, theta).n_iter_ < model.n_iter_


def test_one_point_one_row_and_constant_curves():
    one = make("huber", 1).fit([[0.0]], [[2.0]])
    assert one.predict([[0.0]]).shape == (1, 1)
    flat = make("huber", 1).fit(np.arange(5.0)[:, None], np.arange(5.0))
    assert flat.predict([[0.0], [1.0]]).shape == (2,)
    zero = make("squared_epsilon_insensitive", 2).fit(np.arange(5.0)[:, None], np.zeros((5, 3)))
    assert not zero.predict([[1.0]]).any()
    assert zero.certificate_.relative_gap == 0.0


BAD = [
    ({"loss": "hinge"}, {}, "loss must be one of"),
    ({"loss": "huber", "kappa": 0.0}, {}, "kappa must be"),
    ({"loss": "huber", "kappa": -1.0}, {}, "kappa must be"),
    ({"loss": "squared_epsilon_insensitive", "epsilon": -0.1}, {}, "epsilon must be"),
    ({"norm": 0.5}, {}, "norm must be a number >= 1 or inf, got 0.5"),
    ({"norm": np.nan}, {}, "norm must be a number >= 1"),
    ({"norm": "2"}, {}, "norm must be a number >= 1"),
    ({"alpha": 0.0}, {}, "alpha must be"),
    ({"alpha": np.nan}, {}, "alpha must be"),
    ({"tol": 0.0}, {}, "tol must be"),
    ({"max_iter": 0}, {}, "max_iter must be"),
    ({"center": "mode"}, {}, "center must be one of"),
    ({"rank": 0}, {}, "rank must be"),
    ({"n_components": 0}, {}, "n_components must be"),
    ({"n_components": 3, "representation": "spline"}, {}, "n_components is for"),
    (
        {"loss": "pinball", "representation": "projected"},
        {},
        "representation='projected' needs a loss of the length of residual curves",
    ),
    ({"representation": "fourier"}, {}, "representation must be"),
    (
        {"loss": "huber", "norm": 1, "representation": "eigen"},
        {},
        "needs a loss of the length of residual curves",
    ),
    (
        {"loss": "squared_epsilon_insensitive", "norm": np.inf, "representation": "eigen"},
        {},
        "needs a loss of the length of residual curves",
    ),
    ({"representation": "eigen"}, {"missing": True}, "needs curves observed at all points"),
    ({"solver": "apgd"}, {}, "solver must be one of"),
    ({"solver": "closed_form", "loss": "huber"}, {}, "it needs the squared loss"),
    ({"solver": "closed_form"}, {"missing": True}, "it needs all outputs of all rows"),
    (
        {"solver": "splitting", "quadrature": "trapezoid"},
        {"pairs": True},
        "it needs the same weights of the outputs in all rows",
    ),
    ({"quadrature": "simpson"}, {}, "simpson"),
    ({"quadrature": np.r_[np.ones(8), 0.0]}, {}, "weight"),
    ({"quadrature": -np.ones(9)}, {}, "weight"),
    ({"quadrature": np.ones(5)}, {}, "5"),
    ({"output_kernel": "precomputed"}, {}, "output_kernel must be a kernel between points"),
    ({"kernel": "precomputed"}, {}, "X must be a square Gram matrix"),
    ({}, {"theta": np.zeros(9)}, "theta must increase strictly"),
    ({}, {"theta": np.arange(9.0)[::-1]}, "theta must increase strictly"),
    ({}, {"theta": np.arange(5.0)}, "theta must have one point for each of the 9 columns"),
    ({}, {"theta": np.r_[np.arange(8.0), np.inf]}, "theta must be finite"),
    ({}, {"empty": True}, "each curve of Y must be observed at one point or more"),
    ({}, {"infinite": True}, "Y must be finite, or NaN where not observed, got inf"),
    ({}, {"rows": 7}, "y must have one entry for each of the 20 rows of X, got 7"),
    ({}, {"weight": -np.ones(20)}, "[Nn]egative"),
    ({}, {"weight": np.zeros(20)}, "positive entry|non-zero number"),
    ({}, {"weight": np.ones(7)}, "sample_weight"),
]


@pytest.mark.parametrize(("parameters", "how", "message"), BAD, ids=lambda v: str(v)[:50])
def test_bad_input(parameters, how, message, data):
    X, y, theta = data
    y = y[: how.get("rows", 20)].copy()
    if "missing" in how:
        y[0, 0] = np.nan
    if "empty" in how:
        y[3] = np.nan
    if "infinite" in how:
        y[3, 2] = np.inf
    theta = how.get("theta", theta)
    if "pairs" in how:
        y, theta = [(theta[i % 3 :], row[i % 3 :]) for i, row in enumerate(y)], None
    with pytest.raises((ValueError, TypeError), match=message) as error:
        FunctionalRegressor(**parameters).fit(X, y, theta, sample_weight=how.get("weight"))
    text = str(error.value)
    assert not re.search(r"[.!] [A-Z]", text)  # one sentence
    assert "\n" not in text


def test_bad_input_of_predict(data):
    X, y, theta = data
    model = make().fit(X, y, theta)
    with pytest.raises(ValueError, match="theta must be one-dimensional"):
        model.predict(X, [[1.0, 0.0]])
    with pytest.raises(ValueError, match="theta must be finite"):
        model.predict(X, np.inf)
    with pytest.raises(ValueError, match="X has 3 features, but"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan, 0.0]])
    with pytest.raises(ValueError, match="NaN"):
        make().fit(np.full((20, 2), np.nan), y)

"""Mean and precision, median and gaps: a strength and a kernel each."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import fenchel
import positive_referee as referee
from fenchel.kernels import Gaussian, Matern
from fenchel.model_selection import PathSearchCV
from fenchel.positive import (
    HeteroscedasticRegressor,
    LinearPart,
    NonCrossingQuantileRegressor,
    NormalLikelihood,
    PSDPart,
    PSDProblem,
    Residual,
)
from positive.test_heteroscedastic import _conic_optimum, data

WIDE, NARROW = Gaussian(1.5), Matern(0.6, nu=1.5)
LEVELS = (0.25, 0.5, 0.75)
VARIANCE = {"alpha": 3e-3, "precision_strength": 7.0, "trace_penalty": 1e-2, "kernel": WIDE}
QUANTILES = {"alpha": 3e-3, "gap_strength": 7.0, "trace_penalty": 1e-2, "kernel": WIDE}
MODELS = {
    "precision": HeteroscedasticRegressor(precision_kernel=NARROW, **VARIANCE),
    "gap": NonCrossingQuantileRegressor(LEVELS, gap_kernel=NARROW, **QUANTILES),
}


def roots(kernel, X):
    """Features of rows by the spectrum of the kernel, which no part of the library computes."""
    values, vectors = np.linalg.eigh(kernel(X))
    kept = values > 1e-9 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def test_mean_and_precision_against_a_conic_program():
    X, y, weight = data(14)
    model = HeteroscedasticRegressor(precision_kernel=NARROW, tol=1e-8, **VARIANCE)
    model.fit(X, y, weight)
    mean = np.average(y, weights=weight)
    standard = (y - mean) / np.sqrt(np.average((y - mean) ** 2, weights=weight))
    problem = PSDProblem(
        NormalLikelihood(standard, 1.0 / 9.0),
        [PSDPart(roots(NARROW, X), 3e-3 * 7.0, 1e-2, np.array([0.0, 1.0]))],
        weight,
        [LinearPart(roots(WIDE, X), 3e-3, np.array([1.0, 0.0]))],
    )
    optimum = _conic_optimum(problem, standard, 1.0 / 9.0)
    assert model.certificate_.primal == pytest.approx(optimum, abs=2e-6)
    assert model.precision_kernel_ == NARROW
    assert model.kernel_ == WIDE


def test_median_and_gaps_against_a_conic_program():
    X, y, weight = data(14)
    model = NonCrossingQuantileRegressor(LEVELS, gap_kernel=NARROW, tol=1e-8, **QUANTILES)
    model.fit(X, y, weight)
    shift, scale = model._standardization(y[:, None], weight)
    standard = (y - shift) / scale
    targets = np.repeat(standard[:, None], 3, axis=1)
    gaps = np.hstack([roots(NARROW, X), np.ones((len(X), 1))])
    down, up = np.array([-1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    problem = PSDProblem(
        Residual(fenchel.losses.Pinball(LEVELS), targets),
        [PSDPart(gaps, 3e-3 * 7.0, 1e-2, direction) for direction in (down, up)]
        + [PSDPart(np.ones((len(X), 1)), 1e-4, 0.0, direction) for direction in (down, up)],
        weight,
        [LinearPart(roots(WIDE, X), 3e-3, np.ones(3))],
        offsets=np.ones((3, 1)),
    )
    optimum = referee.pinball(problem, targets, LEVELS)
    assert model.certificate_.primal == pytest.approx(optimum, abs=2e-6)
    assert model.gap_kernel_ == NARROW


@pytest.mark.parametrize("name", MODELS)
def test_the_same_kernel_twice_is_one_kernel(name):
    X, y, weight = data()
    model = MODELS[name]
    once, twice = (clone(model).set_params(**{f"{name}_kernel": k}) for k in (None, WIDE))
    new = np.linspace(-3.0, 3.0, 50)[:, None]
    pair = [m.fit(X, y, weight).predict_interval(new, 0.5) for m in (once, twice)]
    np.testing.assert_array_equal(pair[0], pair[1])
    other = model.fit(X, y, weight).predict_interval(new, 0.5)
    assert np.abs(other - pair[0]).max() > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_search_over_both(name):
    X, y, _ = data(40)
    scales, folds = [0.5, 1.5], KFold(3, shuffle=True, random_state=0)
    plain = type(MODELS[name])(alpha=1e-3, kernel=WIDE, tol=1e-7, max_iter=500)
    strengths = {f"{name}_strength": [1.0, 0.1]}
    grid = {**strengths, f"{name}_length_scale": scales, "alpha": [1e-2, 1e-4]}
    ours = PathSearchCV(plain, grid, cv=folds, selection="min").fit(X, y)
    kernels = [Gaussian(scale) for scale in scales]
    theirs = GridSearchCV(
        plain,
        {**strengths, f"{name}_kernel": kernels, "alpha": [1e-2, 1e-4]},
        cv=folds,
        scoring=lambda model, X, y: model.search_score(X, y),
    ).fit(X, y)

    def found(search, of):
        return {
            (of(p), p[f"{name}_strength"], p["alpha"]): score
            for p, score in zip(
                search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
            )
        }

    mine = found(ours, lambda p: p[f"{name}_length_scale"])
    expected = found(theirs, lambda p: p[f"{name}_kernel"].length_scale)
    assert mine.keys() == expected.keys()
    assert len({round(score, 6) for score in mine.values()}) == len(mine)
    for key, score in expected.items():
        assert mine[key] == pytest.approx(score, abs=1e-4)
    best = ours.best_estimator_
    chosen = ours.best_params_[f"{name}_length_scale"]
    assert getattr(best, f"{name}_kernel_").length_scale == chosen


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_file_round_trip_and_learning(name, tmp_path):
    X, y, _ = data()
    model = clone(MODELS[name]).set_params(kernel=None, learn=True).fit(X, y)
    assert model.learned_ is not None
    assert getattr(model, f"{name}_kernel_") == NARROW
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert np.array_equal(same.predict_interval(X, 0.5), model.predict_interval(X, 0.5))


@pytest.mark.parametrize("name", MODELS)
def test_refused(name):
    X, y, _ = data()
    plain = type(MODELS[name])
    given = {f"{name}_kernel": NARROW}
    with pytest.raises(ValueError, match=rf"^{name}_kernel must be None or a kernel of rows"):
        plain(kernel="precomputed", **given).fit(WIDE(X), y)
    with pytest.raises(ValueError, match=rf"^{name}_kernel must be None or a kernel of rows"):
        plain(**{f"{name}_kernel": "precomputed"}).fit(X, y)
    with pytest.raises(ValueError, match=r"^features must be a name or a FeatureMap with kernel="):
        plain(features=fenchel.features.Nystroem(WIDE, rank=5), **given).fit(X, y)
    with pytest.raises(ValueError, match=rf"^{name}_strength must be"):
        plain(**{f"{name}_strength": 0.0}).fit(X, y)

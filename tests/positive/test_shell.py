"""What the estimators of non-negative models share: warm starts, progress, certificates."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import fenchel
from fenchel.kernels import Laplacian
from fenchel.positive import (
    ConeRegressor,
    DensityEstimator,
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
)

GENERATORS = [[1.0, 0.0], [1.0, 1.0]]
ESTIMATORS = {
    "density": DensityEstimator(),
    "non-negative": NonNegativeRegressor(),
    "poisson": NonNegativeRegressor("poisson", alpha=1e-3),
    "heteroscedastic": HeteroscedasticRegressor(),
    "non-crossing": NonCrossingQuantileRegressor([0.2, 0.5, 0.8]),
    "inequalities": ConeRegressor("monotone", alpha=1e-3, learn=False),
    "generators": ConeRegressor(generators=GENERATORS, alpha=1e-3, learn=False),
}


def data(estimator, n=60):
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (n, 1))
    if isinstance(estimator, DensityEstimator):
        return X, None
    y = np.abs(np.sin(X[:, 0]) + 0.3 * random.normal(size=n))
    if isinstance(estimator, ConeRegressor):
        return X, np.stack([y, y + 0.2 * random.normal(size=n)], axis=1)
    return X, y


def given(name, **settings):
    return clone(ESTIMATORS[name]).set_params(**settings)


@pytest.mark.parametrize("tol", [1e-3, 1e-4])
def test_a_start_is_judged_before_it_is_moved_into_the_domain(tol):
    """It took as many steps as a fit without it."""
    estimator = given("non-crossing", warm_start=True, tol=tol)
    X, y = data(estimator)
    known = estimator.fit(X, y).certificate_
    estimator.fit(X, y)
    assert estimator.n_iter_ == 0
    assert estimator.certificate_.primal <= known.primal * (1.0 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_previous_fit_is_the_start(name):
    estimator = given(name, warm_start=True, tol=1e-4)
    X, y = data(estimator)
    estimator.fit(X, y)
    cold = estimator.n_iter_
    estimator.fit(X, y)
    assert estimator.n_iter_ < cold
    assert estimator.status_.converged
    without = given(name, tol=1e-4).fit(X, y)
    assert without.n_iter_ == cold
    # other rows: a start as if there had been none
    estimator.fit(X[:40], None if y is None else y[:40])
    fresh = given(name, tol=1e-4).fit(X[:40], None if y is None else y[:40])
    assert estimator.n_iter_ <= fresh.n_iter_ + (name == "inequalities") * cold


@pytest.mark.filterwarnings("ignore:the feature map of rank")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_fit_of_other_rows_is_no_start_where_it_is_worse(seed):
    """It took 134 to 200 steps, and did not always end."""
    random = np.random.default_rng(seed)
    settings = {"kernel": Laplacian(1.0), "alpha": 1e-4, "learn": False}
    tables = []
    for _ in range(2):
        X = random.normal(size=(60, 3))
        tables.append((X, np.sin(2.0 * X[:, 0]) + 0.3 * random.normal(size=60)))
    model = HeteroscedasticRegressor(rank=10, warm_start=True, **settings).fit(*tables[0])
    model.set_params(rank=None).fit(*tables[1])
    fresh = HeteroscedasticRegressor(**settings).fit(*tables[1])
    assert model.status_.converged
    assert model.n_iter_ <= fresh.n_iter_


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_that_had_no_weight_join_a_warm_start(name):
    estimator = given(name, warm_start=True)
    X, y = data(estimator)
    weight = np.ones(len(X))
    weight[::5] = 0.0
    estimator.fit(X, y, sample_weight=weight).fit(X, y)
    fresh = given(name).fit(X, y)
    assert estimator.status_.converged
    both = estimator.certificate_, fresh.certificate_
    assert max(c.dual for c in both) <= min(c.primal for c in both) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_progress_is_printed_and_kept(name, capsys):
    estimator = given(name, verbose=1)
    X, y = data(estimator)
    estimator.fit(X, y)
    printed = capsys.readouterr().out.splitlines()
    learned = getattr(estimator, "learned_", None)
    n_learning = 0 if learned is None else len(learned.history)
    said = [
        f"[{type(estimator).__name__}] learning, evaluation {k + 1}: held-out loss "
        for k in range(n_learning)
    ]
    assert all(map(str.startswith, printed, said))
    printed = printed[n_learning:]
    assert len(printed) == len(estimator.history_)
    assert all(line.startswith(f"[{type(estimator).__name__}] step ") for line in printed)
    gaps = [progress.relative_gap for progress in estimator.history_]
    assert gaps == sorted(gaps, reverse=True)
    assert estimator.history_[-1].iteration == estimator.n_iter_
    assert estimator.status_.message.startswith("converged to a relative gap of ")
    given(name).fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_on_prepared_rows_start_from_one_another(name):
    estimator = given(name)
    X, y = data(estimator)
    estimator.fit(X, y)
    prepared = estimator.prepare(X, y)
    stronger = given(name, alpha=3.0 * estimator.alpha_)
    stronger.check_parameters()
    for attribute in ("n_features_in_", "_flat"):
        if hasattr(estimator, attribute):
            setattr(stronger, attribute, getattr(estimator, attribute))
    start = stronger.fit_prepared(prepared)
    cold = stronger.n_iter_
    again = stronger.fit_prepared(prepared, start)
    assert stronger.n_iter_ < cold
    assert again.dual.shape == start.dual.shape
    assert stronger.status_.converged


@pytest.mark.slow
@pytest.mark.parametrize("name", ["density", "inequalities", "non-negative"])
def test_a_warm_start_is_saved(name, tmp_path):
    estimator = given(name, warm_start=True)
    X, y = data(estimator)
    estimator.fit(X, y)
    same = fenchel.load(fenchel.save(estimator, tmp_path / "model.skops"))
    same.fit(X, y)
    estimator.fit(X, y)
    assert same.n_iter_ == estimator.n_iter_
    assert same.certificate_ == estimator.certificate_


def test_a_density_is_certified_in_the_units_of_its_objective():
    """By the formula of the docstring, from public attributes."""
    X, _ = data(ESTIMATORS["density"])
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    density = DensityEstimator(1e-3, trace_penalty=1e-2).fit(100.0 * X, sample_weight=weight)
    A, V = density.model_.matrix_, density.volume_
    objective = -density.score(100.0 * X, sample_weight=weight)
    objective += 1e-2 * V * np.trace(A) + 0.5e-3 * V**2 * np.sum(A**2)
    certificate = density.certificate_
    assert certificate.primal == pytest.approx(objective, rel=1e-12)
    assert 0.0 <= certificate.gap == certificate.relative_gap <= 1e-6
    assert density.history_[-1].primal == pytest.approx(objective, abs=1e-6)


def test_before_the_conditions_are_met_no_model_is_claimed():
    density = DensityEstimator().fit(data(ESTIMATORS["density"])[0])
    first, last = density.history_[0], density.history_[-1]
    assert first.primal == first.relative_gap == np.inf
    assert np.isfinite(last.primal)
    assert np.isfinite(first.dual)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        NonCrossingQuantileRegressor([0.1, 0.5, 0.9], learn=False, gap_rank=8, tol=1e-9),
        NonNegativeRegressor(rank=12, tol=1e-9),
        HeteroscedasticRegressor(rank=12, tol=1e-9),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_order_of_rows_does_not_matter_where_features_are_few(model):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, 3))
    y = np.exp(0.5 * rows[:, 0]) + 0.2 * rng.uniform(size=60)
    order = rng.permutation(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what few features leave out
        expected = clone(model).fit(rows, y)
        found = clone(model).fit(rows[order], y[order])
    pivots = expected.feature_map_.pivots_
    np.testing.assert_array_equal(order[found.feature_map_.pivots_], pivots)
    np.testing.assert_allclose(found.predict(rows), expected.predict(rows), atol=1e-4)

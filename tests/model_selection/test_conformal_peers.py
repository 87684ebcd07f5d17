"""Our estimators inside of MAPIE and crepes, and our intervals against theirs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from fenchel import SVR, ExpectileRegressor, KernelRidge, Lasso, QuantileRegressor
from fenchel.datasets import make_sine_quantiles
from fenchel.kernels import Gaussian
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor

X, Y, _ = make_sine_quantiles(150, random_state=0)
TRAIN, CALIBRATION, NEW = slice(0, 60), slice(60, 110), slice(110, 150)
ESTIMATORS = [
    KernelRidge(1e-3, kernel=Gaussian(1.0)),
    SVR(alpha=1e-2, learn=False),
    QuantileRegressor(0.5, learn=False),
    ExpectileRegressor(0.5, learn=False),
    Lasso(alpha=1e-3),
]


@pytest.fixture(scope="module")
def mapie():
    return pytest.importorskip("mapie.regression", reason="MAPIE is not installed")


@pytest.fixture(scope="module")
def crepes():
    return pytest.importorskip("crepes", reason="crepes is not installed")


def ends(result):
    """Of a single confidence level from MAPIE's (n, 2, n_levels)."""
    return result[1][:, :, 0]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_split_of_mapie(mapie, estimator):
    peer = mapie.SplitConformalRegressor(clone(estimator), confidence_level=0.9, prefit=False)
    peer.fit(X[TRAIN], Y[TRAIN]).conformalize(X[CALIBRATION], Y[CALIBRATION])
    fitted = clone(estimator).fit(X[TRAIN], Y[TRAIN])
    ours = ConformalRegressor(fitted, cv="prefit").fit(X[CALIBRATION], Y[CALIBRATION])
    np.testing.assert_allclose(
        ours.predict_interval(X[NEW]), ends(peer.predict_interval(X[NEW])), rtol=1e-10
    )


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_split_of_crepes(crepes, estimator):
    peer = crepes.WrapRegressor(clone(estimator))
    peer.fit(X[TRAIN], Y[TRAIN])
    peer.calibrate(X[CALIBRATION], Y[CALIBRATION])
    fitted = clone(estimator).fit(X[TRAIN], Y[TRAIN])
    ours = ConformalRegressor(fitted, cv="prefit").fit(X[CALIBRATION], Y[CALIBRATION])
    theirs = np.asarray(peer.predict_int(X[NEW], confidence=0.9))
    np.testing.assert_allclose(ours.predict_interval(X[NEW]), theirs, rtol=1e-10)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_cv_plus_of_mapie(mapie, estimator, coverage):
    folds = KFold(5, shuffle=True, random_state=0)
    peer = mapie.CrossConformalRegressor(
        clone(estimator), confidence_level=coverage, method="plus", cv=folds
    )
    peer.fit_conformalize(X[:110], Y[:110])
    ours = ConformalRegressor(estimator, method="cv+", cv=folds, coverage=coverage)
    found = ours.fit(X[:110], Y[:110]).predict_interval(X[NEW])
    np.testing.assert_allclose(found, ends(peer.predict_interval(X[NEW])), rtol=1e-10)


def test_jackknife_plus_of_mapie(mapie):
    """A refit to one row fewer has alpha n where the closed form keeps alpha (n + 1)."""
    n = 40
    kernel = Gaussian(1.0)
    peer = mapie.CrossConformalRegressor(
        KernelRidge(1e-2 * n / (n - 1), kernel=kernel), method="plus", cv=-1
    )
    peer.fit_conformalize(X[:n], Y[:n])
    ours = ConformalRegressor(KernelRidge(1e-2, kernel=kernel), method="jackknife+")
    found = ours.fit(X[:n], Y[:n]).predict_interval(X[NEW])
    np.testing.assert_allclose(found, ends(peer.predict_interval(X[NEW])), atol=1e-7)


def test_conformalized_quantiles_of_mapie(mapie):
    levels = (0.1, 0.9, 0.5)  # MAPIE's order
    given = {"alpha": 1e-3, "learn": False}
    models = [QuantileRegressor(level, **given).fit(X[TRAIN], Y[TRAIN]) for level in levels]
    peer = mapie.ConformalizedQuantileRegressor(models, confidence_level=0.8, prefit=True)
    peer.conformalize(X[CALIBRATION], Y[CALIBRATION])
    theirs = ends(peer.predict_interval(X[NEW], symmetric_correction=True))
    joint = QuantileRegressor([0.1, 0.5, 0.9], level_gamma=np.inf, tol=1e-9, **given)
    joint.fit(X[TRAIN], Y[TRAIN])
    ours = ConformalQuantileRegressor(joint, cv="prefit", coverage=0.8)
    ours.fit(X[CALIBRATION], Y[CALIBRATION])
    np.testing.assert_allclose(ours.predict_interval(X[NEW]), theirs, atol=1e-3)


class Spread:
    """Difficulty of rows as crepes wants it, from a fitted model of two levels."""

    def __init__(self, model):
        self.model = model

    def apply(self, X):
        return np.ptp(self.model.predict(X), axis=1)


def test_normalized_intervals_and_predictive_distributions_of_crepes(crepes):
    """Difficulty from our expectiles, and a whole distribution for each row."""
    peer = crepes.WrapRegressor(KernelRidge(1e-3))
    peer.fit(X[TRAIN], Y[TRAIN])
    spread = ExpectileRegressor([0.2, 0.8]).fit(X[TRAIN], Y[TRAIN])
    peer.calibrate(X[CALIBRATION], Y[CALIBRATION], de=Spread(spread))
    interval = np.asarray(peer.predict_int(X[NEW], confidence=0.9))
    assert 0.7 < np.mean((interval[:, 0] <= Y[NEW]) & (Y[NEW] <= interval[:, 1])) <= 1.0
    assert np.ptp(np.diff(interval, axis=1)) > 0.1
    peer.calibrate(X[CALIBRATION], Y[CALIBRATION], cps=True, seed=0)
    p_values = np.asarray(peer.predict_p(X[NEW], Y[NEW], seed=0))
    assert p_values.shape == (40,)
    assert ((p_values >= 0.0) & (p_values <= 1.0)).all()

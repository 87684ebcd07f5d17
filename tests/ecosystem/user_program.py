"""A user's program, read by mypy and not run: what goes in, and what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt
import pandas as pd

import fenchel
from fenchel import SVR, ExpectileRegressor, GroupLasso, KernelRidge, Lasso, QuantileRegressor
from fenchel.certificate import Certificate
from fenchel.datasets import load_engel
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Gaussian, ScalarKernel
from fenchel.losses import Huber, Loss
from fenchel.model_selection import ConformalRegressor, PathSearchCV
from fenchel.online import OnlineSVR
from fenchel.positive import DensityEstimator, NonNegativeRegressor
from fenchel.solvers import Newton

Floats = npt.NDArray[np.float64]


class Own(Loss):
    """A loss of the user's."""

    def value(self, residual: Floats) -> Floats:
        return np.asarray(0.5 * (residual**2).sum(axis=1))


class Constant(ScalarKernel):
    """A kernel of the user's."""

    def _evaluate(self, X: Floats, Y: Floats) -> Floats:
        return np.ones((len(X), len(Y)))


def program() -> None:
    """Fit and predict with all kinds of input."""
    frame = pd.DataFrame({"width": [1.0, 2.0], "height": [2.0, 3.0]})
    column = pd.Series([1.0, 2.0])
    rows = [[1.0, 2.0], [2.0, 3.0]]
    targets = [1.0, 2.0]
    array = np.asarray(rows)

    quantiles = QuantileRegressor([0.1, 0.9], kernel=Gaussian("median"), solver=Newton())
    assert_type(quantiles.fit(frame, column), QuantileRegressor)
    assert_type(quantiles.fit(rows, targets, sample_weight=targets), QuantileRegressor)
    assert_type(quantiles.fit(array, array[:, 0]).predict(frame), Floats)
    assert_type(quantiles.predict_interval(rows, 0.8), Floats)
    assert_type(quantiles.score(frame, column), float)
    assert_type(quantiles.certificate_, Certificate)
    assert_type(quantiles.certificate_.relative_gap, float)

    assert_type(ExpectileRegressor(0.5).fit(frame, column).predict(frame), Floats)
    assert_type(fenchel.SVR(Huber(0.5)).fit(rows, targets).predict(rows), Floats)
    assert_type(KernelRidge(kernel="matern52").fit(frame, frame).predict(frame), Floats)
    assert_type(Lasso(alpha=0.1).fit(rows, targets).coef_, Floats)
    assert_type(GroupLasso().fit(frame, frame).predict(frame), Floats)
    assert_type(OnlineSVR().partial_fit(frame, column).predict(frame), Floats)
    assert_type(NonNegativeRegressor().fit(frame, column).predict(rows), Floats)
    assert_type(DensityEstimator().fit(frame).score_samples(rows), Floats)
    assert_type(FunctionalRegressor().fit(array, array, theta=targets), FunctionalRegressor)

    search = PathSearchCV(quantiles, {"alpha": 20, "level_gamma": [0.1, 1.0]})
    assert_type(search.fit(frame, column), PathSearchCV[QuantileRegressor])
    assert_type(search.fit(frame, column).best_estimator_.predict(frame), Floats)
    assert_type(PathSearchCV(DensityEstimator()).fit(frame).score(frame), float)
    wrapper = ConformalRegressor(KernelRidge(), method="cv+").fit(frame, column)
    assert_type(wrapper.predict_interval(frame), Floats)

    assert_type(fenchel.save(quantiles, "model.skops"), Path)
    X, y = load_engel(return_X_y=True)
    assert_type(fenchel.__version__, str)

    assert_type(SVR(Own(), kernel=Constant()).fit(X, y).predict(X), Floats)

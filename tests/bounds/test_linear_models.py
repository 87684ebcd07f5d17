"""Bounds of linear models: the ball is that of the norm which the estimator keeps small."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.model_selection import GridSearchCV

from bounds_cases import DELTA, N, ball, drawn, tail
from fenchel import GroupLasso, KernelRidge, Lasso, LinearRegression, Ridge
from fenchel.bounds import bound
from fenchel.kernels import Linear
from fenchel.online import OnlineRidge, WidrowHoff


@pytest.fixture(scope="module")
def sample():
    return drawn()


@pytest.mark.parametrize("Model", [Lasso, linear_model.Lasso])
def test_lasso_by_hand(sample, Model):
    X, y = sample
    model = Model(alpha=0.01, fit_intercept=False).fit(X, y)
    result = bound(model, X, y, target_bound=1.5, radius=1.0)
    Lambda, share = ball(np.abs(model.coef_).sum(), 1.5)
    M = Lambda + 1.5
    assert result.terms["complexity"] == pytest.approx(4.0 * Lambda * M * sqrt(2.0 * log(4.0) / N))
    total = result.terms["confidence"] + result.terms["choice of the class"]
    assert total == pytest.approx(M**2 * tail(DELTA * share))
    assert result.terms["empirical risk"] == pytest.approx(np.mean((y - X @ model.coef_) ** 2))
    observed = bound(model, X, y, target_bound=1.5, radius=1.0, empirical=True)
    largest = sqrt((X**2).mean(axis=0).max())
    assert observed.terms["complexity"] == pytest.approx(largest * result.terms["complexity"])


def test_a_constrained_lasso_needs_no_choice_of_the_class(sample):
    X, y = sample
    known = {"target_bound": 1.5, "radius": 1.0, "offset_bound": 1.5}
    for radius in (0.02, 50.0):  # also where the bound is not reached, it is that of the class
        model = Lasso(radius=radius).fit(X, y)
        result = bound(model, X, y, **known)
        assert result.terms["choice of the class"] == 0.0
        assert result.constants["norm"] == radius
        assert "the norm was fixed in advance" in result.assumptions
        assert bound(model, X, y, norm_bound=60.0, **known).constants["norm"] == 60.0
    chosen = GridSearchCV(Lasso(), {"radius": [0.01, 0.02]}).fit(X, y)
    result = bound(chosen, X, y, **known)
    assert result.terms["choice of the class"] > 0.0
    assert result.caveats == ()  # the radius only chooses a ball


@pytest.mark.parametrize("Model", [Ridge, OnlineRidge, linear_model.Ridge])
def test_ridge_is_in_a_ball_of_its_own_norm(sample, Model):
    X, y = sample
    model = Model(alpha=0.01, fit_intercept=False).fit(X, y)
    result = bound(model, X, y, target_bound=1.5, radius=sqrt(2.0))
    Lambda, share = ball(np.linalg.norm(model.coef_), 1.5 / sqrt(2.0))
    M = sqrt(2.0) * Lambda + 1.5
    assert result.terms["complexity"] == pytest.approx(4.0 * M * Lambda * sqrt(2.0 / N))
    total = result.terms["confidence"] + result.terms["choice of the class"]
    assert total == pytest.approx(M**2 * tail(DELTA * share))
    assert "theorem 11.11" in result.source
    observed = bound(model, X, y, target_bound=1.5, radius=sqrt(2.0), empirical=True)
    wanted = 4.0 * M * Lambda * sqrt(np.trace(X @ X.T)) / N
    assert observed.terms["complexity"] == pytest.approx(wanted)
    with pytest.raises(ValueError, match="radius must be given, with ‖x‖ <= radius of every x"):
        bound(model, X, y, target_bound=1.5)
    with pytest.raises(ValueError, match=r"radius must be at least 1\.3"):
        bound(model, X, y, target_bound=1.5, radius=1.0)  # enough for each |x_j|


def test_ridge_is_kernel_ridge_with_the_linear_kernel(sample):
    X, y = sample
    known = {"target_bound": 1.5, "radius": sqrt(2.0)}
    kernel = bound(KernelRidge(1e-2, kernel=Linear()).fit(X, y), X, y, **known)
    assert bound(Ridge(1e-2).fit(X, y), X, y, **known).terms == pytest.approx(kernel.terms)


@pytest.mark.parametrize(
    "model",
    [LinearRegression(), GroupLasso(), WidrowHoff(), linear_model.ElasticNet()],
    ids=lambda model: type(model).__name__,
)
def test_linear_models_of_other_classes_are_refused(sample, model):
    X, y = sample
    with pytest.raises(TypeError, match=f"got {type(model).__name__}: .*pseudo_dimension_bound"):
        bound(model.fit(X, y), X, y, target_bound=1.5, radius=1.5)


@pytest.mark.parametrize("Model", [Ridge, linear_model.Lasso])
def test_targets_that_are_no_numbers_have_no_bound(sample, Model):
    X, y = sample
    model, lost = Model(1e-2).fit(X, y), np.where(np.arange(len(y)) == 3, np.nan, y)
    with pytest.raises(ValueError, match=r"y contains NaN, first in y\[3\]"):
        bound(model, X, lost, target_bound=1.5, radius=sqrt(2.0))

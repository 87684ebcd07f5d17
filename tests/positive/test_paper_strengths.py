"""The strengths of the paper, as docs/convert.md says: the same fits from its own objectives."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.kernels import Gaussian
from fenchel.losses import Pinball, Squared
from fenchel.positive import (
    Constraint,
    DensityEstimator,
    HeteroscedasticRegressor,
    LinearPart,
    LogLikelihood,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
    NormalLikelihood,
    Poisson,
    PSDPart,
    PSDProblem,
    Residual,
    moment,
    solve,
)

KERNEL = Gaussian(0.8)
X = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 1))
NOISE = np.random.default_rng(1).normal(size=40)
Y = 30.0 * (np.maximum(X[:, 0], 0.0) + (0.1 + 0.1 * np.abs(X[:, 0])) * NOISE)
N, TOL = len(Y), 1e-9
OPTIONS = {"kernel": KERNEL, "tol": TOL, "max_iter": 500}


@pytest.mark.parametrize("loss", ["squared", "pinball", "poisson"])
def test_non_negative_regression(loss):
    y = np.abs(Y).round()
    model = NonNegativeRegressor(loss, level=0.7, alpha=1e-3, trace_penalty=1e-2, **OPTIONS)
    model.fit(X, y)
    s = model.scale_
    lambda_1 = 1e-2 * N * (s if loss == "squared" else 1.0)
    lambda_2 = 1e-3 * N / (1.0 if loss == "squared" else s)
    column = y[:, None]
    losses = {
        "squared": Residual(Squared(), column),
        "pinball": Residual(Pinball(0.7), column),
        "poisson": Poisson(y),
    }
    part = PSDPart(model.feature_map_.transform(X), lambda_2 / N, lambda_1 / N)
    found = solve(PSDProblem(losses[loss], [part], np.ones(N)), "auto", TOL, 500)
    np.testing.assert_allclose(found.model.matrices[0], model.model_.matrix_, atol=2e-3 * s)
    assert found.certificate.primal * N == pytest.approx(
        model.certificate_.primal * N * (s**2 if loss == "squared" else s), rel=1e-6
    )


def test_density():
    model = DensityEstimator(1e-2, trace_penalty=1e-2, tol=TOL).fit(X)
    V, features = model.volume_, model.feature_map_.transform(X)
    one = Constraint([moment(model.feature_map_).matrix], 1.0)
    part = PSDPart(features, 1e-2 * V**2, 1e-2 * V)
    problem = PSDProblem(LogLikelihood(), [part], np.ones(N), constraints=[one])
    found = solve(problem, "auto", TOL, 500)
    np.testing.assert_allclose(found.model.matrices[0], model.model_.matrix_, atol=1e-4)
    assert found.certificate.primal == pytest.approx(model.certificate_.primal, abs=1e-7)


def test_mean_and_variance():
    options = {"alpha": 1e-3, "precision_strength": 0.3, "max_std": np.inf, **OPTIONS}
    model = HeteroscedasticRegressor(trace_penalty=1e-2, **options).fit(X, Y)
    s, features = model.scale_, model.feature_map_.transform(X)
    lambda_1, lambda_2, linear = 1e-2 * N * s**2, 3e-4 * N * s**4, 1e-3 * N * s**2
    problem = PSDProblem(
        NormalLikelihood(Y - model.shift_),
        [PSDPart(features, lambda_2 / N, lambda_1 / N, np.array([0.0, 1.0]))],
        np.ones(N),
        [LinearPart(features, linear / N, np.array([1.0, 0.0]))],
    )
    found = solve(problem, "auto", TOL, 500)
    assert found.certificate.gap <= 1e-8
    expected = model.certificate_.primal + np.log(s)
    assert found.certificate.primal == pytest.approx(expected, abs=1e-7)
    np.testing.assert_allclose(found.model.weights[0] * s, model.mean_weights_, atol=1e-3)


def test_quantiles():
    options = {"alpha": 1e-3, "gap_strength": 0.3, "trace_penalty": 1e-2, **OPTIONS}
    model = NonCrossingQuantileRegressor((0.2, 0.5), **options).fit(X, Y)
    s, features = model.scale_, model.feature_map_.transform(X)
    lambda_1, lambda_2, linear = 1e-2 * N, 3e-4 * N / s, 1e-3 * N / s
    gap, one = np.hstack([features, np.ones((N, 1))]), np.ones((N, 1))
    down = np.array([-1.0, 0.0])
    problem = PSDProblem(
        Residual(Pinball((0.2, 0.5)), np.repeat((Y - model.shift_)[:, None], 2, axis=1)),
        [PSDPart(gap, lambda_2 / N, lambda_1 / N, down), PSDPart(one, 1e-4 / s, 0.0, down)],
        np.ones(N),
        [LinearPart(features, linear / N, np.ones(2))],
        offsets=np.ones((2, 1)),
    )
    found = solve(problem, "auto", TOL, 500)
    expected = model.certificate_.primal * s
    assert found.certificate.primal == pytest.approx(expected, rel=1e-6)

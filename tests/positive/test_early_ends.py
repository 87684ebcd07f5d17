"""Fits that end before they have a good model: what is left is about as good as a constant."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel.positive import (
    HeteroscedasticRegressor,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
)

MODELS = {
    "squared": NonNegativeRegressor(learn=False),
    "huber": NonNegativeRegressor("huber", learn=False),
    "median": NonNegativeRegressor("pinball", learn=False),
    "spread": HeteroscedasticRegressor(learn=False),
    "levels": NonCrossingQuantileRegressor([0.1, 0.5, 0.9], learn=False),
}


class _EndsAt:
    """A callback that ends a fit at one of its calls."""

    def __init__(self, number):
        self.left = number

    def __call__(self, progress):
        self.left -= 1
        return self.left <= 0


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("calls", [1, 2])
def test_a_model_that_is_left_is_about_as_good_as_a_constant(name, calls):
    """Scores of non-negative models were down to -77: first points have another size than y."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 3))
    y = 3.0 * np.sin(2.0 * X[:, 0]) + random.normal(size=120) + 50.0
    model = MODELS[name].set_params(callback=_EndsAt(calls))
    with pytest.warns(ConvergenceWarning, match="the callback"):
        model.fit(X, y)
    assert model.score(X, y) > -0.1
    shown = f"{model.certificate_.relative_gap:.1e}"
    assert f"a relative gap of {shown}" in model.status_.message
    model.set_params(callback=None)


def test_the_certificate_is_that_of_the_model_that_is_left():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = random.normal(size=60) + 50.0
    model = NonNegativeRegressor(alpha=1e-3, learn=False, callback=_EndsAt(1))
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    problem = model._problem(model.prepare(X, y))
    features, matrix = model.feature_map_.transform(X), model.model_.matrix_ / model.scale_
    values = np.einsum("ia,ab,ib->i", features, matrix, features)
    penalty = model.trace_penalty * np.trace(matrix) + 0.5e-3 * np.sum(matrix**2)
    loss = problem.weight @ problem.loss.value(values[:, None])
    assert model.certificate_.primal == pytest.approx(loss + penalty, rel=1e-9)
    assert model.certificate_.dual <= model.certificate_.primal

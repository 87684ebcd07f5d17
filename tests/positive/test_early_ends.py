"""Fits that end before they have a good model: what is left is about as good as a constant."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel.positive import (
    ConeRegressor,
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


def shifted_waves(n, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    wave = np.sin(2.0 * X[:, 0])
    noise = 0.2 * random.normal(size=(n, 3))
    return X, np.column_stack([wave, wave + 0.3 + 0.2 * X[:, 1] ** 2, wave + 1.0]) + noise


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_cones_are_fitted_to_few_rows_where_a_decomposition_takes_longer(loss):
    """One second for 3000 rows was 25: their decomposition came before the first point."""
    X, Y = shifted_waves(3000, 0)
    model = ConeRegressor(loss=loss, cone="monotone", alpha=1e-4, max_time=1.0, learn=False)
    # on a busy machine the second is over before the end of the decomposition is estimated
    ends = "the next step would take longer|max_time=1 s were reached"
    with pytest.warns(ConvergenceWarning, match=ends):
        model.fit(X, Y)
    assert model.n_iter_ == 0
    X_new, Y_new = shifted_waves(1000, 1)
    assert model.score(X_new, Y_new) > 0.5
    assert (np.diff(model.predict(X_new), axis=1) >= 0.0).all()
    assert model.certificate_.feasibility <= 1e-12
    assert model.certificate_.dual == 0.0 < model.certificate_.primal


@pytest.mark.parametrize("cone", ["monotone", "non_negative"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_matrices_of_few_rows_solve_their_problem(cone, loss):
    """In the span of their features, where the solution lies."""
    X, Y = shifted_waves(60, 2)
    model = ConeRegressor(loss=loss, cone=cone, alpha=1e-3, learn=False, solver="splitting").fit(
        X, Y
    )
    problem = model._splitting(model.prepare(X, Y), np.arange(0, 60, 3))
    assert problem.features.shape[1] > 20
    found = problem.of_few(2000, np.inf)
    best = problem.solve(1e-8, 20_000)
    unit = best.certificate.unit
    assert problem.primal(problem.feasible(found)) <= best.certificate.primal + 0.02 * unit

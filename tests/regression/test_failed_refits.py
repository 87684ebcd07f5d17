"""A fit that fails or is interrupted leaves the last one as it was."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel import SVR, ExpectileRegressor, NonNegativeRegressor, QuantileRegressor

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(0.0, 3.0, (30, 1))
Y = np.exp(np.sin(X[:, 0])) + 0.1 * RANDOM.uniform(0.0, 1.0, 30)


@pytest.mark.parametrize("kind", [QuantileRegressor, ExpectileRegressor])
def test_a_refused_refit_keeps_rows_and_levels(kind):
    model = kind([0.1, 0.9], alpha=1e-3).fit(X, Y)
    before = model.predict(X)
    model.set_params(levels=[0.1, 0.5, 0.9], solver="none")
    with pytest.raises(ValueError, match="solver must be one of"):
        model.fit(X[:9], Y[:9])
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(model.levels_, [0.1, 0.9])
    assert model.crossing_loss(X) >= 0.0


def test_an_interrupted_refit_of_a_non_negative_model(monkeypatch):
    model = NonNegativeRegressor().fit(X, Y)
    before, score = model.predict(X), model.score(X, Y)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("fenchel.positive._base.solve", stop)
    model.set_params(loss="poisson")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:9], Y[:9])
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.score(X, Y) == score


@pytest.mark.parametrize("solver", ["newton", "fista"])
def test_a_warm_start_brings_no_intercept_where_there_is_none(solver):
    targets = np.column_stack([Y, 5.0 + Y])
    model = SVR(epsilon=0.3, solver="newton", alpha=0.1, warm_start=True).fit(X, targets)
    model.set_params(solver=solver, fit_intercept=False).fit(X, targets)
    cold = SVR(epsilon=0.3, alpha=0.1, fit_intercept=False).fit(X, targets)
    np.testing.assert_array_equal(model.offset_, 0.0)
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-4)

"""Functions that change fast are found, though they look like noise from wide scales."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel import KernelRidge, QuantileRegressor
from fenchel.learning.short_scales import changing_columns


@pytest.mark.parametrize("estimator", [KernelRidge(), QuantileRegressor(0.5)])
def test_many_waves(estimator):
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(1200, 1)), rng.uniform(size=(500, 1))
    y, truth = (np.sin(80.0 * np.pi * Z[:, 0]) for Z in (X, new))
    found = estimator.fit(X, y + 0.2 * rng.normal(size=1200)).predict(new).ravel()
    assert np.mean((found - truth) ** 2) < 0.05 * np.var(truth)


@pytest.mark.parametrize("n_columns", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("estimator", [KernelRidge(), QuantileRegressor(0.5)])
def test_more_waves_than_few_rows_tell(estimator, n_columns):
    """350 rows are four for each of 80 periods, half of which are held out."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(2000, n_columns)), rng.uniform(size=(500, n_columns))
    y, truth = (np.sin(160.0 * np.pi * Z[:, 0]) for Z in (X, new))
    found = estimator.fit(X, y + 0.5 * rng.normal(size=2000)).predict(new).ravel()
    assert np.mean((found - truth) ** 2) < 0.2 * np.var(truth)


def test_columns_along_which_targets_change():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 5))
    wave = np.sin(300.0 * X[:, [3]]) + 0.5 * rng.normal(size=(1000, 1))
    assert changing_columns(X, wave).tolist() == [3]
    assert changing_columns(1e-6 * X + 7.0, 1e9 * wave).tolist() == [3]
    assert changing_columns(X, rng.normal(size=(1000, 1))).tolist() == []
    assert changing_columns(X, np.ones((1000, 1))).tolist() == []


def test_codes_beside_a_number():
    rng = np.random.default_rng(2)
    effects = 5.0 * rng.normal(size=60)

    def draw(n):
        code, number = rng.integers(0, 60, n), rng.uniform(size=n)
        return np.column_stack([code, number]).astype(float), effects[code] + np.sin(6.0 * number)

    (X, y), (new, truth) = draw(1200), draw(500)
    found = KernelRidge().fit(X, y + rng.normal(size=1200)).predict(new)
    assert np.mean((found - truth) ** 2) < 0.1 * np.var(truth)


def test_noise_stays_noise():
    rng = np.random.default_rng(0)
    for n_columns in (1, 4):
        model = KernelRidge().fit(rng.normal(size=(300, n_columns)), rng.normal(size=300))
        assert np.std(model.predict(rng.normal(size=(500, n_columns)))) < 0.3

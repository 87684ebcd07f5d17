"""Functions that change fast are found, though they look like noise from wide scales."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel import KernelRidge, QuantileRegressor


@pytest.mark.parametrize("estimator", [KernelRidge(), QuantileRegressor(0.5)])
def test_many_waves(estimator):
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(1200, 1)), rng.uniform(size=(500, 1))
    y, truth = (np.sin(80.0 * np.pi * Z[:, 0]) for Z in (X, new))
    found = estimator.fit(X, y + 0.2 * rng.normal(size=1200)).predict(new).ravel()
    assert np.mean((found - truth) ** 2) < 0.05 * np.var(truth)


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

"""How many rows conformal wrappers need, and what they say where there are fewer."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fenchel import KernelRidge
from fenchel.kernels import Gaussian
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, size=(20, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.2 * RNG.normal(size=20)


@pytest.mark.parametrize("of", [ConformalRegressor, ConformalQuantileRegressor])
@pytest.mark.parametrize(
    ("params", "least"),
    [
        ({}, 2),
        ({"cv": 0.9}, 10),
        ({"cv": 1 / 3}, 2),
        ({"cv": 0.95}, 20),
        ({"cv": 3}, 3),
        ({"method": "cv+"}, 2),
        ({"method": "cv+", "cv": 5}, 5),
        ({"method": "jackknife+"}, 2),
    ],
)
def test_too_few_rows_get_one_sentence(of, params, least):
    name = of.__name__
    model = of(coverage=0.4, **params)
    with_cv = f" with cv={params['cv']!r}" if "cv" in params else ""
    for n in (1, least - 1):
        sentence = (
            f"{name}{with_cv} needs at least {least} rows, some of which calibrate what is fitted "
            f"to the others, got n_samples = {n}"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            model.fit(X[:n], Y[:n])
    assert model.fit(X[:least], Y[:least]).n_calibration_ >= 1


def test_one_row_may_calibrate_what_is_fitted():
    fitted = KernelRidge(1e-3, kernel=Gaussian(1.5)).fit(X, Y)
    assert ConformalRegressor(fitted, cv="prefit", coverage=0.4).fit(X[:1], Y[:1]).quantile_ < 9


@pytest.mark.parametrize("cv", [None, 0.5])
@pytest.mark.parametrize("method", ["split", "cv+"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_weight_zero_change_nothing(method, cv, seed):
    weight = np.zeros(20)
    weight[[1, 4, 9, 16]] = 1.0
    kept = weight > 0.0
    cv = 2 if method == "cv+" else cv
    model = ConformalRegressor(
        KernelRidge(1e-2, kernel=Gaussian(1.0)),
        method=method,
        coverage=0.3,
        cv=cv,
        random_state=seed,
    )
    found = [
        model.fit(X[rows], Y[rows], weight[rows]).predict_interval(X, sample_weight=np.ones(20))
        for rows in (slice(None), kept)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    assert np.isfinite(found[0]).all()
    assert model.n_calibration_ == (4 if method == "cv+" else np.ceil(4 * (cv or 0.25)))

"""Models on columns whose mean is far larger than their spread."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel import SVR, GroupLasso, KernelRidge, Lasso, LinearRegression, Ridge
from fenchel.model_selection import KernelRidgeCV

MODELS = [
    LinearRegression(),
    Ridge(1e-2),
    Lasso(1e-2),
    Lasso(radius=0.5),
    GroupLasso(alpha=1e-2),
    GroupLasso(alpha=1e-2, q=np.inf),
]


def objective(model, X, y, weight):
    """The printed objective of a fitted model, from its predictions."""
    residual = (y.astype(np.longdouble) - model.predict(X)).reshape(len(X), -1)
    share = weight / weight.astype(np.longdouble).sum()
    loss = 0.5 * share @ (residual**2).sum(axis=1)
    if isinstance(model, LinearRegression) or getattr(model, "radius", None) is not None:
        return loss
    if isinstance(model, Ridge):
        return loss + 0.5 * model.alpha * (model.coef_**2).sum()
    size = model.norm_ if isinstance(model, GroupLasso) else np.abs(model.coef_).sum()
    return loss + model.alpha * size


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("away", [0.0, 1e3, 1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("shape", [(50, 4), (200, 3), (15, 30)])
@pytest.mark.parametrize("outputs", [0, 2])
def test_the_certificate_is_that_of_what_is_stored(model, away, shape, outputs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) + away
    y = (X - away) @ rng.standard_normal((shape[1], max(outputs, 1)))
    y += 0.3 * rng.standard_normal(y.shape)
    y = y if outputs else y[:, 0]
    weight = rng.uniform(0.1, 2.0, shape[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, weight)
    found, truth = model.certificate_, objective(model, X, y, weight)
    assert found.primal == pytest.approx(float(truth), rel=2e-13, abs=1e-16 * found.unit)
    assert model.status_.converged == (abs(found.relative_gap) <= 1e-6)
    assert model.status_.converged or (
        away >= 1e9 and "take the means off" in model.status_.message
    )


@pytest.mark.parametrize("away", [0.0, 1e3, 1e6, -1e8])
@pytest.mark.parametrize("n", [20, 50, 200])
def test_what_centring_rounds_is_no_direction(away, n):
    """Columns that are multiples of one another up to rounding have rank one."""
    rng = np.random.default_rng(n)
    t = rng.standard_normal(n)
    X = np.outer(t, [1.0, -2.0, 0.5, 3.0]) + away
    y = t + 0.35 * rng.standard_normal(n)
    model = LinearRegression().fit(X, y)
    assert model.rank_ == 1
    assert model.score(X, y) == pytest.approx(np.corrcoef(t, y)[0, 1] ** 2, abs=1e-7)
    slope = np.polyfit(t, y, 1)[0]
    shortest = slope * np.array([1.0, -2.0, 0.5, 3.0]) / 14.25
    np.testing.assert_allclose(model.coef_, shortest, atol=1e-6)


def test_units_of_columns_do_not_matter():
    """A column counts by its own rounding errors, not by those of larger ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 3)) + 1.0
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(len(X))
    once = LinearRegression().fit(X, y)
    units = 2.0 ** np.array([60, 0, -80])
    X[:, 0] += 2.0**20  # as seconds since an epoch
    model = LinearRegression().fit(X * units, y)
    assert model.rank_ == once.rank_ == 3
    np.testing.assert_allclose(model.coef_ * units, once.coef_, rtol=1e-8)


def test_constant_targets_far_from_zero_have_no_loss():
    X = np.random.default_rng(0).standard_normal((7, 2)) + 1e6
    weight = np.linspace(0.1, 1.0, 7)
    for model in (LinearRegression(), Ridge(), Lasso(), GroupLasso()):
        found = model.fit(X, np.full(7, 0.1), weight)
        assert found.status_.converged
        assert found.certificate_.gap == 0.0
        assert not found.coef_.any()


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(kernel="linear"),
        KernelRidge(kernel="linear", learn=False),
        KernelRidge(kernel="linear", features="kernel_rows", learn=False),
        KernelRidgeCV(kernel="linear"),
        SVR(kernel="linear"),
    ],
    ids=["learned", "unit", "gram", "grid", "svr"],
)
def test_strengths_of_a_linear_kernel_do_not_depend_on_where_columns_are(model):
    """They were in units of k(x, x), and made a constant of a fit to columns such as years."""
    rng = np.random.default_rng(0)
    X = np.round(2.0**20 * rng.standard_normal((50, 2))) / 2.0**20
    y = X @ [1.0, -0.5] + 0.5 * rng.standard_normal(50)
    once = model.fit(X, y).score(X, y)
    assert once > 0.7
    years = X + 2.0**12
    assert model.fit(years, y).score(years, y) == pytest.approx(once, abs=1e-4)

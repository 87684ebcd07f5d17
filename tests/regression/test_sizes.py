"""Data, weights and strengths that are very large or very small: a true fit, or one sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import (
    SVR,
    ExpectileRegressor,
    GroupLasso,
    KernelRidge,
    Lasso,
    LinearRegression,
    QuantileRegressor,
    Ridge,
)
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import DistanceQuantile
from regression_cases import BRIEFLY

MODELS = [
    LinearRegression(),
    Ridge(0.1),
    Lasso(0.1),
    GroupLasso(alpha=0.1),
    KernelRidge(0.1, learn=BRIEFLY),
    SVR(alpha=0.1, learn=BRIEFLY),
    QuantileRegressor([0.2, 0.5], alpha=0.1, learn=BRIEFLY),
    FunctionalRegressor("huber", alpha=0.1, learn=BRIEFLY),
]
all_models = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
strengths = pytest.mark.parametrize(
    "model", [each for each in MODELS if hasattr(each, "alpha")], ids=lambda m: type(m).__name__
)


def data(model):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    y = X[:, 0] + 0.3 * rng.standard_normal(12)
    return X, y[:, None] + np.zeros(4) if isinstance(model, FunctionalRegressor) else y


@all_models
def test_only_ratios_of_weights_count(model):
    X, y = data(model)
    weight = np.repeat([1.0, 0.5], 6)
    once = clone(model).fit(X, y, sample_weight=weight)
    for unit in (2.0**-1070, 2.0**-500, 2.0**500, 2.0**1023):
        fitted = clone(model).fit(X, y, sample_weight=unit * weight)
        np.testing.assert_array_equal(fitted.predict(X), once.predict(X))
        assert fitted.certificate_ == once.certificate_


@strengths
def test_strengths_whose_inverse_overflows_are_refused_or_said(model):
    X, y = data(model)
    fitted = clone(model).set_params(alpha=1e-320)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(model, (Lasso, GroupLasso)):  # they never divide by it
            fitted.fit(X, y)
            assert np.isfinite(fitted.coef_).all()
        else:
            with pytest.raises(ValueError, match="alpha must be large enough that 1 / alpha is"):
                fitted.fit(X, y)


def test_a_bound_whose_terms_overflow_is_no_bound():
    """The dual objective was NaN, from infinity times zero in what features leave out."""
    random = np.random.default_rng(1)
    X = random.normal(size=(12, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * random.normal(size=12)
    model = ExpectileRegressor([0.2, 0.5, 0.7], alpha=3e-301, learn=False)
    with pytest.warns(ConvergenceWarning, match="stopped at a relative gap"):
        model.fit(X, y, sample_weight=random.uniform(0.2, 2.0, 12))
    assert -np.inf <= model.certificate_.dual <= model.certificate_.primal
    assert np.isfinite(model.predict(X)).all()


@all_models
@pytest.mark.parametrize("power", [-310, -200, 160, 300])
def test_rows_beyond_squares(model, power):
    """A model that is finite and converged, or a sentence that names X."""
    X, y = data(model)
    fitted = clone(model)
    try:
        fitted.fit(X * 10.0**power, y)
    except ValueError as error:
        assert str(error).startswith("X")  # noqa: PT017  (a fit is as good)
        assert not hasattr(fitted, "certificate_")
        return
    assert power < 0
    assert np.isfinite(fitted.predict(X * 10.0**power)).all()
    assert abs(fitted.certificate_.relative_gap) <= 1e-6


@all_models
@pytest.mark.parametrize("power", [-300, -120, 120, 300])
def test_targets_beyond_squares_are_refused(model, power):
    X, y = data(model)
    with pytest.raises(ValueError, match=r"^y must be .* its square would (overflow|vanish)$"):
        clone(model).fit(X, y * 10.0**power)


@pytest.mark.parametrize("rule", ["scale", "median", DistanceQuantile(0.7)])
@pytest.mark.parametrize("unit", [2.0**-990, 2.0**-600, 2.0**490])
def test_length_scales_follow_the_units_of_rows(rule, unit):
    from fenchel.kernels import Gaussian, resolve

    X = np.random.default_rng(0).standard_normal((30, 2)) * [1.0, 8.0]
    once, scaled = (resolve(Gaussian(rule), rows).length_scale for rows in (X, unit * X))
    np.testing.assert_array_equal(scaled, unit * np.asarray(once))


def test_a_model_that_is_not_finite_is_not_returned():
    """Whatever a solver says of it."""

    class Broken:
        def requires(self, problem):
            return None

        def solve(self, problem, warm_start=None, callback=None):
            from fenchel.solvers import ClosedForm

            found = ClosedForm().solve(problem)
            return type(found)(
                found.dual,
                np.nan * found.weights,
                found.offset,
                found.certificate,
                found.status,
                1,
            )

    X, y = data(None)
    model = KernelRidge(0.1).fit(X, y)
    before = model.predict(X)
    with pytest.raises(
        ValueError, match=r"^X, y, sample_weight and alpha .* weights_ is not finite$"
    ):
        model.set_params(solver=Broken()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)

"""The judges of linear models, curves and non-negative models find lies, and only lies."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel import (
    DensityEstimator,
    FunctionalRegressor,
    GroupLasso,
    Lasso,
    LinearRegression,
    NonCrossingQuantileRegressor,
    NonNegativeRegressor,
    Ridge,
)
from fenchel.certificate import Status
from fenchel.kernels import Gaussian
from judge import losses
from judge.certificates import ANOTHER
from judge.curves import judge_curves
from judge.linear import LinearProblem, group_norms, judge_linear, lasso_norms
from judge.positive import judge_density, judge_non_negative, judge_values
from regression_cases import BRIEFLY


def linear(kind, **parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X @ rng.normal(size=5) + 1.0 + 0.3 * rng.normal(size=40)
    labels = np.array([0, 0, 1, 1, 1])
    l1, l_inf = lasso_norms()
    groups, dual = group_norms(labels, 2, 1)
    model, named = {
        "plain": lambda: (LinearRegression(), {"form": "none"}),
        "ridge": lambda: (Ridge(0.1), {"form": "squares", "strength": 0.1}),
        "lasso": lambda: (
            Lasso(0.1),
            {"form": "penalty", "strength": 0.1, "value": l1, "dual": l_inf},
        ),
        "bound": lambda: (
            Lasso(radius=0.5),
            {"form": "bound", "strength": 0.5, "value": l1, "dual": l_inf},
        ),
        "groups": lambda: (
            GroupLasso(labels, 0.1),
            {"form": "penalty", "strength": 0.1, "value": groups, "dual": dual},
        ),
    }[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(**parameters).fit(X, y)
    return LinearProblem(model, X, y[:, None], np.ones(40), **named)


LINEAR = ("plain", "ridge", "lasso", "bound", "groups")


@pytest.mark.parametrize("kind", LINEAR)
def test_nothing_is_found_in_an_honest_linear_fit(kind):
    named = linear(kind)
    assert not judge_linear(named, named.X[:5] + 1.0).findings


@pytest.mark.parametrize("kind", LINEAR)
def test_wrong_coefficients_are_found(kind):
    named = linear(kind)
    named.model.coef_ = named.model.coef_ + 0.01
    assert {"primal", "silent gap"} <= judge_linear(named).kinds


@pytest.mark.parametrize("kind", LINEAR)
def test_a_wrong_intercept_is_found(kind):
    named = linear(kind)
    named.model.intercept_ = named.model.intercept_ + 0.01
    assert {"primal", "silent gap"} <= judge_linear(named).kinds


@pytest.mark.parametrize("kind", LINEAR)
def test_wrong_numbers_of_linear_fits_are_found(kind):
    named = linear(kind)
    numbers = named.model.certificate_
    lies = {
        "dual above the optimum": replace(numbers, dual=numbers.primal + 1e-6),
        "negative gap": replace(numbers, dual=numbers.primal + 1e-6),
        "unit": replace(numbers, unit=1.01 * numbers.unit),
        "primal": replace(numbers, primal=numbers.primal * (1 + 1e-6)),
    }
    for kind_of_lie, lie in lies.items():
        named.model.certificate_ = lie
        assert kind_of_lie in judge_linear(named).kinds


def test_a_linear_fit_that_only_says_that_it_converged_is_found():
    named = linear("groups", max_iter=1, tol=1e-12)
    named.model.status_ = Status(True, "converged, or so it says")
    assert "silent gap" in judge_linear(named).kinds


def test_a_norm_above_the_bound_is_found():
    named = linear("bound")
    assert "bound" in judge_linear(replace(named, strength=0.499)).kinds


CURVES = [
    ("squared", 2),
    ("huber", 1),
    ("huber", 2),
    ("squared_epsilon_insensitive", 2),
    ("squared_epsilon_insensitive", np.inf),
    ("absolute", 2),
    ("pinball", 2),
]


def curves(loss, norm):
    rng = np.random.default_rng(0)
    X, theta = rng.uniform(size=(25, 1)), np.linspace(0.0, 1.0, 9)
    y = np.sin(6.0 * (theta + X)) + 0.2 * rng.normal(size=(25, 9))
    model = FunctionalRegressor(
        loss,
        norm,
        kernel=Gaussian(0.3),
        features="kernel_rows",
        quadrature="trapezoid",
        tol=1e-8,
        learn=BRIEFLY,
    )
    return model.fit(X, y, theta), X, y, np.ones(25)


@pytest.mark.parametrize(("loss", "norm"), CURVES)
def test_lies_about_curves_are_found(loss, norm):
    model, *data = curves(loss, norm)
    assert judge_curves(model, *data, data[0] + 0.1).kinds <= {ANOTHER}
    honest, numbers = model.dual_coef_, model.certificate_
    model.dual_coef_ = 1.05 * honest
    assert judge_curves(model, *data).kinds & {"silent gap", "predict is not the formula"}
    model.dual_coef_ = honest
    model.certificate_ = replace(numbers, dual=numbers.primal + 1e-5 * numbers.unit)
    assert judge_curves(model, *data).kinds & {"dual", "dual above the optimum"}
    model.certificate_ = replace(numbers, unit=2.0 * numbers.unit)
    assert "unit" in judge_curves(model, *data).kinds


@pytest.mark.parametrize("name", ["squared", "huber", "pinball"])
def test_lies_about_non_negative_functions_are_found(name):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(30, 1))
    y = np.maximum(X[:, 0], 0.0) + 0.1 * rng.normal(size=30)
    model = NonNegativeRegressor(name, kernel=Gaussian(1.0), tol=1e-7).fit(X, y)
    loss = losses.named(name, kappa=1.0 / model.scale_)
    given = model, X, y, np.ones(30), loss
    assert not judge_non_negative(*given, approximate=True).findings
    honest, numbers = model.dual_coef_, model.certificate_
    model.dual_coef_ = 1.1 * honest
    assert "predict is not the formula" in judge_non_negative(*given, approximate=True).kinds
    model.dual_coef_ = honest
    model.certificate_ = replace(numbers, dual=numbers.primal + 1e-3)
    assert judge_non_negative(*given, approximate=True).kinds & {"dual", "negative gap"}


def test_curves_that_cross_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    model = NonCrossingQuantileRegressor(learn=False).fit(X, rng.normal(size=30))
    assert not judge_values(model, "quantiles", X, False).findings
    honest = model.predict
    model.predict = lambda rows: honest(rows)[:, ::-1]
    assert judge_values(model, "quantiles", X, False).kinds == {"crossing"}


@pytest.mark.slow
def test_lies_about_densities_are_found():
    X = np.random.default_rng(0).normal(size=(40, 1))
    model = DensityEstimator(kernel=Gaussian(0.7)).fit(X)
    given = X, np.ones(40), (-20.0, 20.0), True
    assert not judge_density(model, *given).findings
    numbers = model.certificate_
    model.certificate_ = replace(numbers, primal=numbers.primal + 1e-6)
    assert judge_density(model, *given).kinds == {"primal"}
    model.certificate_, model.volume_ = numbers, 1.01 * model.volume_
    assert "volume" in judge_density(model, *given).kinds
    inside = X, np.ones(40), (-20.0, 0.5), True
    assert "integral" in judge_density(model, *inside).kinds

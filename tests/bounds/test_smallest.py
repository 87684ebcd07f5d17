"""The smallest of several bounds of a fit, its price, and the classes of fits in a ball."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV

from bounds_cases import DELTA, WIDTH, N, drawn, tail
from fenchel import SVR, KernelRidge, Lasso, LinearRegression, QuantileRegressor, Ridge
from fenchel.bounds import bound
from fenchel.kernels import Decomposable, Transformable

KNOWN = {"target_bound": 1.5, "radius": 1.0, "clip": True}


@pytest.fixture(scope="module")
def sample():
    return drawn()


def test_the_smallest_is_one_of_those_that_hold_together(sample):
    X, y = sample
    model = Lasso(0.01).fit(X, y)
    found = bound(model, X, y, smallest=True, **KNOWN)
    share = DELTA / 5  # l1 and l2, each with radius and trace, and the pseudo-dimension
    own = [bound(model, X, y, delta=share, empirical=e, **KNOWN).value for e in (False, True)]
    # for another norm: the theorem of Ridge for the same weights, with ‖x‖ <= √2 r∞
    ridge = linear_model.Ridge().fit(X, y)
    ridge.coef_, ridge.intercept_ = model.coef_, model.intercept_
    euclid = {**KNOWN, "radius": sqrt(2.0), "delta": share}
    own += [bound(ridge, X, y, empirical=e, **euclid).value for e in (False, True)]
    risk = np.mean((y - np.clip(model.predict(X), -1.5, 1.5)) ** 2)
    growth = 2.0 * 3.0 * log(np.e * N / 3.0)
    own.append(risk + 9.0 * (sqrt(2.0 * growth / N) + tail(share)))
    assert found.value == pytest.approx(min(own), rel=1e-12)
    assert sum(found.terms.values()) == pytest.approx(found.value, rel=1e-14)
    (sentence,) = [each for each in found.assumptions if "each for its part" in each]
    for value in own:
        assert f"{value:.4g} by " in sentence
    alone = bound(model, X, y, **KNOWN)
    price = {"choice of the bound": min(own) - alone.value}  # what a fifth of delta costs
    assert found.terms == pytest.approx({**alone.terms, **price})
    assert found.source.endswith("the smallest of 5: the ball with radius")


@pytest.mark.parametrize("model", [LinearRegression(), linear_model.ElasticNet(0.01)])
def test_linear_models_without_a_ball_have_the_pseudo_dimension(sample, model):
    X, y = sample
    X, y = np.tile(X, (40, 1)), np.tile(y, 40)
    found = bound(model.fit(X, y), X, y, target_bound=1.5, clip=True, smallest=True)
    assert "theorem 11.8, of all linear functions" in found.source
    assert found.constants["dimension"] == 3
    assert not found.vacuous
    with pytest.raises(TypeError, match=r"smallest=True, clip=True\) takes any linear"):
        bound(model, X, y, target_bound=1.5, smallest=True)


def test_a_search_over_intercepts_is_one_over_the_class_with_them(sample):
    X, y = sample
    known = {"target_bound": 2.0, "clip": True, "smallest": True}
    for grid in ([False], [True, False]):
        search = GridSearchCV(LinearRegression(), {"fit_intercept": grid}, cv=2)
        found = bound(search.fit(X, y - y.mean()), X, y - y.mean(), **known)
        assert found.constants["dimension"] == 3
    plain = LinearRegression(fit_intercept=False).fit(X, y)
    assert bound(plain, X, y, **known).constants["dimension"] == 2


def test_a_model_with_weights_that_is_not_linear(sample):
    X, y = sample
    model = linear_model.PoissonRegressor().fit(X, np.abs(y))
    with pytest.raises(TypeError, match=r"must predict X @ coef_ .* got PoissonRegressor"):
        bound(model, X, np.abs(y), target_bound=1.5, clip=True, smallest=True)


def test_the_trace_or_the_radius_not_both_and_the_smallest(sample):
    X, y = sample
    with pytest.raises(ValueError, match="empirical must be False with smallest=True"):
        bound(Ridge().fit(X, y), X, y, target_bound=1.5, radius=2.0, empirical=True, smallest=True)


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(radius=0.7, kernel=WIDTH, fit_intercept=False),
        SVR(radius=0.7, kernel=WIDTH, epsilon=0.1, fit_intercept=False),
        QuantileRegressor([0.2, 0.8], radius=0.7, kernel=WIDTH, fit_intercept=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_ball_that_was_fixed_in_advance_costs_no_choice(sample, model):
    X, y = sample
    result = bound(model.fit(X, y), X, y, target_bound=1.5)
    assert result.terms["choice of the class"] == 0.0
    assert result.constants["norm"] == pytest.approx(0.7, rel=1e-12)
    assert "the norm was fixed in advance" in result.assumptions
    with pytest.raises(ValueError, match="the objective of the fit is"):
        bound(model, X, -y, target_bound=1.5)


def test_operator_valued_kernels_by_their_diagonal(sample):
    """k B is the kernel k with the coupling B, and has the same bound."""
    X, y = sample
    output = np.array([[1.0, 0.3], [0.3, 4.0]])
    levels = {"levels": [0.2, 0.8], "alpha": 1e-2}
    model = QuantileRegressor(kernel=Decomposable(WIDTH, output), **levels).fit(X, y)
    result = bound(model, X, y, target_bound=1.5, radius=[1.0, 2.0], norm_bound=9.0)
    # Σ_j max(τ, 1 - τ) 2 Λ r_j / √n
    assert result.terms["complexity"] == pytest.approx(2.0 * 9.0 * 0.8 * 3.0 / sqrt(N))
    assert result.caveats == ()
    assert "the diagonal of K(x, x) is always at most 1², 2²" in result.assumptions
    observed = bound(
        model, X, y, target_bound=1.5, radius=[1.0, 2.0], norm_bound=9.0, empirical=True
    )
    assert observed.terms["complexity"] == pytest.approx(result.terms["complexity"])
    with pytest.raises(ValueError, match="radius must be given for an operator-valued kernel"):
        bound(model, X, y, target_bound=1.5)
    with pytest.raises(ValueError, match=r"radius must be at least 2, .* got .*1\.0"):
        bound(model, X, y, target_bound=1.5, radius=1.0)
    with pytest.raises(ValueError, match="radius must be a number or have one entry for each of"):
        bound(model, X, y, target_bound=1.5, radius=[1.0, 2.0, 3.0])
    turned = Transformable(WIDTH, [lambda x: x, lambda x: 2.0 * x])
    other = QuantileRegressor(kernel=turned, **levels).fit(X, y)
    assert bound(other, X, y, target_bound=1.5, radius=1.0).value > 0.0


def test_refitted_offsets_are_offsets_like_others(sample):
    X, y = sample
    model = QuantileRegressor(
        [0.2, 0.8], kernel=WIDTH, alpha=1e-2, epsilon=0.5, refit_offsets="train"
    )
    result = bound(model.fit(X, y), X, y, target_bound=1.5)
    residual = y[:, None] - model.predict(X)
    wanted = float(model.loss_.value(residual).mean())
    assert result.terms["empirical risk"] == pytest.approx(wanted, rel=1e-12)
    assert model.certified_offset_ != pytest.approx(model.offset_, abs=1e-3)


def test_other_linear_models_have_the_bound_of_the_pseudo_dimension():
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (200, 3))
    y = np.clip(X[:, 0] + 0.1 * random.normal(size=200), -1.0, 1.0)
    model = PLSRegression(1).fit(X, y)
    with pytest.raises(TypeError, match=r"must predict X @ coef_ \+ intercept_|must be"):
        bound(model, X, y, target_bound=1.0, clip=True, smallest=True)
    with pytest.raises(TypeError, match="clip must be True or False, got 'no'"):
        bound(model, X, y, target_bound=1.0, clip="no")

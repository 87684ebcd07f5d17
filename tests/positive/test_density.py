"""Density estimation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from contract_cases import with_checks
from fenchel.kernels import Gaussian, Laplacian, Polynomial
from fenchel.model_selection import PathSearchCV
from fenchel.positive import DensityEstimator


def mixture(n, seed=0, d=1):
    random = np.random.default_rng(seed)
    side = np.where(random.random(n) < 0.5, -1.0, 1.0)
    return side[:, None] + np.sqrt(0.3) * random.standard_normal((n, d))


@with_checks(DensityEstimator(), DensityEstimator(kernel=Laplacian()))
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, Gaussian(1.0), Laplacian(1.0)], ids=repr)
@pytest.mark.parametrize("support", [None, (-4.0, 5.0), (-np.inf, 4.0)])
def test_integral_is_one(kernel, support):
    X = mixture(200)
    density = DensityEstimator(kernel=kernel, support=support).fit(X)
    assert abs(density.integral() - 1.0) <= 1e-8
    low, high = (-40.0, 40.0) if support is None else np.maximum(support, -40.0)
    landmarks = np.sort(density.feature_map_.landmarks_[:, 0])
    cuts = np.concatenate([[low], landmarks, [high]])
    total = sum(
        quad(lambda x: density.model_([[x]])[0], a, b, epsabs=1e-12)[0] for a, b in pairwise(cuts)
    )
    assert abs(total - 1.0) <= 1e-6
    assert density.certificate_.relative_gap <= 1e-6
    grid = np.linspace(-6.0, 6.0, 1001)[:, None]
    assert np.all(density.model_(grid) >= 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
def test_equivariance(d):
    X = mixture(150, d=d)
    first = DensityEstimator().fit(X)
    for factor, shift in [(1e3, 0.0), (1e-3, 0.0), (2.0, 5.0)]:
        other = DensityEstimator().fit(factor * X + shift)
        expected = first.score_samples(X) - d * np.log(factor)
        assert other.score_samples(factor * X + shift) == pytest.approx(expected, abs=2e-3)
        assert other.score(factor * X + shift) == pytest.approx(expected.mean(), abs=1e-5)


def test_weights_are_repetitions():
    X = mixture(60)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    kernel = Gaussian(0.6)
    weighted = DensityEstimator(kernel=kernel, tol=1e-9).fit(X, sample_weight=weight)
    repeated = DensityEstimator(kernel=kernel, tol=1e-9).fit(np.repeat(X, weight, axis=0))
    assert weighted.score_samples(X) == pytest.approx(repeated.score_samples(X), abs=1e-3)
    assert np.all(weighted.dual_coef_[weight == 0] == 0.0)


@pytest.mark.slow
def test_held_out_likelihood_at_least_that_of_kernel_density():
    # the one-dimensional example of the paper, all parameters by cross-validation
    X, new = mixture(50, seed=1), mixture(5000, seed=2)
    widths = {"bandwidth": np.geomspace(0.1, 1.0, 12)}
    peer = GridSearchCV(KernelDensity(), widths, cv=5).fit(X)
    grid = {"alpha": [1e-4, 1e-3, 1e-2, 1e-1], "kernel": [Gaussian(s) for s in (0.5, 1.0)]}
    own = GridSearchCV(DensityEstimator(tol=1e-5, learn=False), grid, cv=5).fit(X)
    assert own.score(new) >= peer.score(new) / len(new)


@pytest.mark.slow
def test_samples_follow_the_density():
    density = DensityEstimator().fit(mixture(300))
    drawn = density.sample(3000, random_state=0)[:, 0]
    grid = np.linspace(-5.0, 5.0, 101)
    cdf = np.array([density.integral((-np.inf, t)) for t in grid])
    assert stats.kstest(drawn, lambda t: np.interp(t, grid, cdf)).pvalue > 1e-3


def test_support():
    X = np.abs(mixture(200))
    density = DensityEstimator(support=(0.0, np.inf)).fit(X)
    assert np.all(density.score_samples([[-0.1], [-5.0]]) == -np.inf)
    assert density.sample(500, random_state=0).min() >= 0.0
    assert density.integral((-1.0, 0.0)) == 0.0
    assert density.integral((-1.0, 1.0)) + density.integral((1.0, np.inf)) == pytest.approx(1.0)


def test_numbers_are_rows_of_one_column():
    x = mixture(80)[:, 0]
    plain, rows = DensityEstimator().fit(x), DensityEstimator().fit(x[:, None])
    assert np.array_equal(plain.score_samples(x), rows.score_samples(x[:, None]))
    assert DensityEstimator().fit(pd.Series(x)).score(x) == rows.score(x[:, None])
    assert plain.score(list(x)) == rows.score(x[:, None])
    assert plain.n_features_in_ == 1
    weighted = DensityEstimator().fit(x, sample_weight=np.arange(80.0))
    assert weighted.score(x) != plain.score(x)
    with pytest.raises(ValueError, match="Expected 2D array"):
        DensityEstimator().fit(mixture(80, d=2)).score_samples(x)
    with pytest.raises(ValueError, match="Expected 2D array"):
        DensityEstimator().fit(x, y=x)


@pytest.mark.slow
def test_default_landmarks_in_ten_columns():
    """All greedy pivots but the first are rows at the rim, centres of clusters are not."""
    random = np.random.default_rng(0)
    sides = np.where(random.random((2, 500)) < 0.5, -1.0, 1.0)
    X, new = np.sqrt(0.3) * random.standard_normal((2, 500, 10))
    X[:, 0], new[:, 0] = X[:, 0] + sides[0], new[:, 0] + sides[1]
    default = DensityEstimator(tol=1e-3).fit(X)
    greedy = DensityEstimator(tol=1e-3, features="cholesky", rank=50)
    with pytest.warns(UserWarning, match="leaves out"):
        greedy.fit(X)
    peer = max(KernelDensity(bandwidth=h).fit(X).score(new) for h in (0.4, 0.5, 0.6)) / 500
    assert default.feature_map_.rank_ == 50
    assert default.score(new) > greedy.score(new) + 0.2
    assert default.score(new) > peer
    few = DensityEstimator(tol=1e-3, rank=7).fit(X)
    assert few.feature_map_.rank_ == 7
    assert few.integral() == pytest.approx(1.0, abs=1e-6)
    turned = DensityEstimator(tol=1e-3).fit(3.0 * X[::-1] + 1.0)
    assert turned.score(3.0 * new + 1.0) == pytest.approx(
        default.score(new) - 10.0 * np.log(3.0), abs=1e-2
    )


@pytest.mark.slow
def test_more_rows_for_the_same_landmarks_do_no_harm():
    random = np.random.default_rng(0)

    def draw(n):
        return 4.0 * np.eye(4)[random.integers(0, 4, n)] + random.normal(size=(n, 4))

    new, rows = draw(2000), draw(4000)
    some, every = (DensityEstimator(rank=20, tol=1e-4).fit(rows[:n]) for n in (400, 4000))
    assert every.score(new) > some.score(new) + 0.05  # it was 0.06 less
    by_rule = [DensityEstimator(learn=False, tol=1e-2).fit(rows[:n]) for n in (1000, 4000)]
    scales = [
        fit.kernel_.length_scale / rows[: fit.dual_coef_.size].std(axis=0) for fit in by_rule
    ]
    np.testing.assert_allclose(scales, 2.0 * 1000 ** (-1.0 / 8.0), rtol=1e-9)


def test_bad_input():
    X = mixture(50)
    X[[7, 9]] = 8.0
    ends = r"support must be a pair \(low, high\) with low < high, each a number or an array"
    with pytest.raises(ValueError, match=ends):
        DensityEstimator(support=[(0, 1), (0, 1)]).fit(np.full((9, 2), 0.5))
    with pytest.raises(ValueError, match="support must contain all rows of X, got row 7"):
        DensityEstimator(support=(-5.0, 5.0)).fit(X)
    with pytest.raises(ValueError, match="alpha must be a finite number > 0 or None, got 0"):
        DensityEstimator(alpha=0.0).fit(X)
    with pytest.raises(ValueError, match="trace_penalty must be a finite number >= 0, got -1"):
        DensityEstimator(trace_penalty=-1.0).fit(X)
    with pytest.raises(ValueError, match="kernel must be a function of rows for a density"):
        DensityEstimator(kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match="integral is infinite"):
        DensityEstimator(kernel=Polynomial(2)).fit(X)
    with pytest.raises(ValueError, match="sample_weight must have a positive entry"):
        DensityEstimator().fit(X, sample_weight=np.zeros(50))
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        DensityEstimator(max_iter=1).fit(X)


@pytest.mark.parametrize("d", [1, 3])
def test_log_likelihoods_are_finite_where_densities_are_no_numbers(d):
    density = DensityEstimator(learn=False).fit(mixture(60, d=d))
    features = density.feature_map_
    X = np.array([[50.0], [90.0], [-1e4]]) * np.ones(d)
    inner = features.coefficients(density.model_.factor_)
    Z, scale = features.landmarks_, features.kernel_.length_scale
    for x, found in zip(X, density.score_samples(X), strict=True):
        logs = -0.5 * np.sum(np.square((x - Z) / scale), axis=1)
        expected = logsumexp(logs[:, None] + logs, b=inner @ inner.T)
        assert density.model_(x[None])[0] == 0.0
        assert found == pytest.approx(expected, rel=1e-9)


def test_a_search_is_not_decided_by_one_row_far_away():
    X = mixture(60)
    X[0] = 100.0
    candidates = {"length_scale": [0.01, 1.0]}
    search = PathSearchCV(DensityEstimator(kernel=Gaussian(1.0), learn=False), candidates, cv=3)
    assert search.fit(X).best_params_ == {"length_scale": 1.0}
    assert np.isfinite(search.best_score_)


def test_conditional_densities_far_out_are_those_of_the_nearest_rows():
    X = mixture(100, d=2)
    X[:, 1] += 2.0 * X[:, 0]
    density = DensityEstimator(kernel=Gaussian(0.3), learn=False).fit(X)
    far = density.predict_distribution([[0.0], [40.0]])
    grid = np.linspace(-6.0, 10.0, 4001)
    rows = np.stack([np.full(len(grid), 40.0), grid], axis=1)
    logs = density.score_samples(rows)
    share = np.exp(logs - logs.max())
    assert far.mean()[1] == pytest.approx(share @ grid / share.sum(), rel=1e-3)
    with pytest.raises(ValueError, match="where the density of the fit is positive"):
        density.predict_distribution([[1e12]])


def test_names_of_columns_that_say_what_is_predicted():
    frame = pd.DataFrame(mixture(40, d=3), columns=["a", "b", "c"])
    density = DensityEstimator(learn=False).fit(frame)
    found = density.predict_distribution(frame[["a", "c"]], column=1).mean()
    plain = density.predict_distribution(frame[["a", "c"]].to_numpy(), column=1).mean()
    np.testing.assert_array_equal(found, plain)
    for wrong in (["c", "a"], ["a", "b"]):
        with pytest.raises(
            ValueError, match=r"X must have the other columns .* \['a', 'c'\], got"
        ):
            density.predict_distribution(frame[wrong], column=1)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_densities_too_small_or_large_for_numbers_are_refused(unit):
    X = unit * mixture(40, d=30)
    with pytest.raises(ValueError, match="X must be in units in which densities of 30 columns"):
        DensityEstimator(learn=False).fit(X)

"""Theorems that are read off a fit: levels of new rows, the best of a ball, what features lose."""

from __future__ import annotations

from math import ceil, log, log2, sqrt

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from bounds_cases import DELTA, WIDTH, N, drawn
from fenchel import SVR, ExpectileRegressor, KernelRidge, Lasso, QuantileRegressor
from fenchel.bounds import (
    excess_bound,
    fat_shattering_dimension,
    l1_ball,
    level_bounds,
    perturbed_kernel_bound,
    rademacher_complexity,
    squared_loss_bound,
    truncation_bound,
)
from fenchel.features import Nystroem
from fenchel.kernels import Decomposable, Gaussian

LEVELS = [0.1, 0.5, 0.9]


@pytest.fixture(scope="module")
def sample():
    return drawn()


def share(k):
    return 2.0 / 3.0 / ((abs(k) + 1) * (abs(k) + 2))


@pytest.mark.parametrize("radius", [None, 0.4])
def test_levels_by_hand(sample, radius):
    X, y = sample
    alpha = None if radius else 1e-2
    model = QuantileRegressor(LEVELS, kernel=WIDTH, alpha=alpha, radius=radius).fit(X, y)
    found = level_bounds(model, X, y, margin=0.25)
    residual = y[:, None] - model.predict(X)
    k, m = (ceil(log2(each / 0.25)) for each in (model.norm_, np.abs(model.offset_).max()))
    norm, beta = 0.25 * 2.0**k, 0.25 * 2.0**m
    part = DELTA / 3.0 * share(m) * share(k)
    if radius:
        norm, part = radius, DELTA / 3.0 * share(m)
    delta = 2.0 * (norm + beta) / (0.25 * sqrt(N)) + sqrt(log(2.0 / part) / (2.0 * N))
    assert len(found) == 3
    for column, (low, high) in zip(residual.T, found, strict=True):
        above = np.mean(np.clip(1.0 - column / 0.25, 0.0, 1.0)) + delta
        below = np.mean(np.clip(-column / 0.25, 0.0, 1.0)) - delta
        assert high.value == pytest.approx(above, rel=1e-12)
        assert low.value == pytest.approx(below, rel=1e-12)
        assert sum(low.terms.values()) == pytest.approx(low.value, rel=1e-14)
        assert low.lower
        assert not high.lower


@pytest.mark.slow
def test_levels_hold_on_new_rows():
    """P(Y <= h_j(X)) by 10^5 rows more."""
    random = np.random.default_rng(0)

    def draw(n):
        X = random.uniform(-1.0, 1.0, (n, 1))
        return X, X[:, 0] + random.standard_normal(n)

    X, y = draw(3000)
    model = QuantileRegressor(LEVELS, kernel=Gaussian(1.0), radius=2.0).fit(X, y)
    new, target = draw(100_000)
    truth = (target[:, None] <= model.predict(new)).mean(axis=0)
    found = level_bounds(model, X, y, margin=1.0)
    assert all(low.value <= t <= high.value for t, (low, high) in zip(truth, found, strict=True))
    assert not found[0].upper.vacuous
    assert not found[2].lower.vacuous


@pytest.mark.slow
def test_excess_by_hand(sample):
    X, y = sample
    model = SVR(epsilon=0.2, radius=1.5, kernel=WIDTH).fit(X, y)
    found = excess_bound(model, X, y, target_bound=1.5)
    beta = 1.5 + 1.5 + 0.2
    M = 1.5 + beta + 1.5
    wanted = {
        "complexity": 2.0 * (1.5 + beta) / sqrt(N),
        "confidence": 2.0 * M * sqrt(log(2.0 / DELTA) / (2 * N)),
        "insensitivity": 0.2,
        "optimization": max(model.certificate_.gap, 0.0),
    }
    assert found.terms == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    # two levels, coupled by the tube, without offsets; K(x, x)_jj = 1
    model = QuantileRegressor(
        [0.2, 0.7], epsilon=0.2, radius=1.5, kernel=WIDTH, fit_intercept=False
    ).fit(X, y)
    found = excess_bound(model, X, y, target_bound=1.5)
    slope = sqrt(0.8**2 + 0.7**2)
    assert found.terms["complexity"] == pytest.approx(
        2.0 * sqrt(2.0) * slope * 1.5 * sqrt(2.0 / N)
    )
    assert found.terms["insensitivity"] == pytest.approx(0.2 * slope)


@pytest.mark.slow
def test_excess_counts_what_refitted_offsets_lose(sample):
    X, y = sample
    model = QuantileRegressor(LEVELS, epsilon=0.5, radius=1.0, kernel=WIDTH, refit_offsets="train")
    found = excess_bound(model.fit(X, y), X, y, target_bound=1.5)
    residual = y[:, None] - model.predict(X)
    wanted = float(model.loss_.value(residual).mean()) - model.certificate_.dual
    assert found.terms["optimization"] == pytest.approx(wanted, rel=1e-9)
    assert wanted > 1e-3


def test_excess_of_a_lasso_is_over_a_ball_of_the_l1_norm():
    """Its complexity grows with the number of columns; that of a Euclidean ball does not."""
    random = np.random.RandomState(1)
    X = random.choice([-1.0, 1.0], (200, 500))
    y = np.clip(0.5 * X[:, 0] + 0.3 * random.standard_normal(200), -1.5, 1.5)
    model = Lasso(radius=0.5, fit_intercept=False).fit(X, y)
    found = excess_bound(model, X, y, target_bound=1.5, radius=1.0)
    average = 0.5 * sqrt(2.0 * log(1000.0) / 200.0)
    slope = 2.0 * (1.5 + 0.5)  # of squares without a half
    assert found.terms["complexity"] == pytest.approx(2.0 * slope * average)
    assert found.terms["confidence"] == pytest.approx(
        2.0 * slope * (1.5 + 0.5) * sqrt(log(2.0 / DELTA) / 400.0)
    )
    simulated, error = rademacher_complexity(l1_ball(X, 0.5), 200)
    assert simulated - 3.0 * error <= found.constants["rademacher"] <= 1.5 * simulated


def test_excess_of_a_lasso_is_that_of_its_own_sample():
    """A fit with weights may be far from the minimum on the sample; an excess of 0 was stated."""
    random = np.random.RandomState(1)
    X = random.uniform(-1.0, 1.0, (200, 1))
    first = np.arange(200) < 150
    y = np.where(first, 0.5 * X[:, 0], random.choice([-1.0, 1.0], 200))
    model = Lasso(radius=1.0, fit_intercept=False)
    for weight in (np.where(first, 1e-3, 1.0), np.where(first, 1.0, 1e-3)):
        with pytest.raises(ValueError, match="must be the sample that the estimator was"):
            excess_bound(model.fit(X, y, weight), X, y, target_bound=1.0, radius=1.0)
    with pytest.raises(ValueError, match="must be the sample that the estimator was"):
        excess_bound(model.fit(X, y), X[:100], y[:100], target_bound=1.0, radius=1.0)


def test_excess_is_of_the_loss_that_bounds_are_of(sample):
    X, y = sample
    model = KernelRidge(radius=1.0, kernel=WIDTH, fit_intercept=False).fit(X, y)
    found = excess_bound(model, X, y, target_bound=1.5)
    assert found.risk == "E ‖y - h(x)‖² - min over the class"
    assert found.terms["complexity"] == pytest.approx(2.0 * 2.0 * 2.5 / sqrt(N))
    assert found.terms["optimization"] == pytest.approx(2.0 * model.certificate_.gap, abs=1e-12)
    assert found.trivial == pytest.approx(2.0 * 2.5**2)
    model = SVR(epsilon=0.2, radius=1.5, kernel=WIDTH).fit(X, y)
    risk = excess_bound(model, X, y, target_bound=1.5).risk
    assert risk.endswith("ℓ = Absolute().insensitive(0.2) without its tube")


def test_excess_of_curves_in_order_is_over_curves_in_order():
    """Functions that cross may have less loss than the certificate of the fit allows."""
    random = np.random.RandomState(2)
    X = random.uniform(-1.0, 1.0, (60, 1))
    y = np.clip(random.standard_t(2, 60), -1.5, 1.5)
    known = {"radius": 8.0, "kernel": Gaussian(0.1), "level_gamma": 100.0}
    free, ordered = (
        QuantileRegressor([0.4, 0.5, 0.6], non_crossing=each, **known).fit(X, y)
        for each in (None, "train")
    )
    found = excess_bound(ordered, X, y, target_bound=1.5)
    residual = y[:, None] - ordered.predict(X)
    over_all = free.loss_.value(residual).mean() - free.certificate_.primal
    assert found.terms["optimization"] < 0.1 * over_all
    assert "min over the functions of the class whose curves never cross, ℓ = " in found.risk
    assert "min over the class, ℓ = " in excess_bound(free, X, y, target_bound=1.5).risk


def test_fits_that_a_search_has_chosen(sample):
    X, y = sample
    grid = {"level_gamma": [0.1, 1.0]}
    search = GridSearchCV(QuantileRegressor([0.2, 0.8], radius=1.0, kernel=WIDTH), grid, cv=2)
    best = search.fit(X, y).best_estimator_
    found = excess_bound(search, X, y, target_bound=1.5)
    assert found.terms == excess_bound(best, X, y, target_bound=1.5).terms
    assert found.caveats == ("level_gamma was chosen on the sample, by cross-validation",)
    levels, same = (level_bounds(each, X, y, margin=0.5) for each in (search, best))
    assert [low.value for low, _ in levels] == [low.value for low, _ in same]
    search = GridSearchCV(SVR(epsilon=0.1, kernel=WIDTH), {"radius": [0.1, 1.0]}, cv=2).fit(X, y)
    with pytest.raises(ValueError, match="got a radius that a search chose on the sample: "):
        excess_bound(search, X, y, target_bound=1.5)
    search = GridSearchCV(KernelRidge(kernel=WIDTH), {"alpha": [0.1, 0.01]}, cv=2).fit(X, y)
    expected = truncation_bound(search.best_estimator_, X, y).value
    assert truncation_bound(search, X, y).value == expected


@pytest.mark.filterwarnings("ignore:stopped at a relative gap")  # of the kernel as given
def test_fits_whose_effect_is_not_of_the_kernel_alone_are_refused(sample):
    """With tol=0.1 predictions were 0.096 from those of the kernel, and the bound was 0.059."""
    X, y = sample
    model = KernelRidge(1e-2, features=Nystroem(Gaussian(0.5), rank=60), solver="newton", tol=0.1)
    with pytest.raises(ValueError, match=r"must be solved exactly, .* got solver='newton'"):
        truncation_bound(model.fit(X, y), X, y)
    model = KernelRidge(1e-2, kernel=Decomposable(Gaussian(0.5), np.eye(1)), rank=40)
    with pytest.raises(TypeError, match=r"must have a scalar kernel, .* got Decomposable"):
        truncation_bound(model.fit(X, y), X, y)


def test_refusals(sample):
    X, y = sample
    penalized = SVR(alpha=1e-2, epsilon=0.1, kernel=WIDTH).fit(X, y)
    with pytest.raises(ValueError, match="estimator must have been fitted with radius"):
        excess_bound(penalized, X, y, target_bound=1.5)
    with pytest.raises(TypeError, match=r"estimator must have levels, .* got SVR"):
        level_bounds(penalized, X, y, margin=0.1)
    with pytest.raises(TypeError, match=r"estimator must be a fitted KernelRidge .* got SVR"):
        truncation_bound(penalized, X, y)
    expectiles = ExpectileRegressor([0.5], radius=1.0, kernel=WIDTH).fit(X, y)
    assert excess_bound(expectiles, X, y, target_bound=1.5).value > 0.0
    with pytest.raises(ValueError, match="X and y must be the sample"):
        truncation_bound(KernelRidge(1e-2, kernel=WIDTH).fit(X, y), X, -y)


@pytest.mark.filterwarnings("ignore:stopped at a relative gap")  # of the kernel as given
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_what_a_truncated_kernel_changes(sample, fit_intercept, n_targets):
    X, y = sample
    Y = y if n_targets == 1 else np.column_stack([y, -X[:, 0]])
    coupling = None if n_targets == 1 else np.array([[1.0, 0.8], [0.8, 1.0]])
    kernel, more = Gaussian(0.5), {"coupling": coupling, "fit_intercept": fit_intercept}
    whole = KernelRidge(1e-2, kernel=kernel, **more).fit(X, Y)
    for rank in (20, 40, 60):
        model = KernelRidge(1e-2, features=Nystroem(kernel, rank=rank), **more)
        model.fit(X, Y)
        found = truncation_bound(model, X, Y)
        changed = np.linalg.norm(model.predict(X) - whole.predict(X))
        assert 1e-6 < changed <= found.value
        assert changed <= found.trivial
    assert not found.vacuous


@pytest.mark.filterwarnings("ignore:stopped at a relative gap")  # of the kernel as given
def test_a_truncated_kernel_whose_dual_point_is_shortened():
    """As features of low rank have it at a small strength, where the bound is a large one."""
    X = np.linspace(-1.0, 1.0, 60)[:, None]
    y = np.sin(3.0 * X[:, 0]) + 0.02 * np.cos(40.0 * X[:, 0])
    more = {"kernel": Gaussian(0.5), "learn": False}
    model = KernelRidge(1e-5, features="nystroem", rank=6, **more).fit(X, y)
    found = truncation_bound(model, X, y)
    left = np.linalg.norm(y - model.predict(X)) / (60 * 1e-5)
    assert found.value == pytest.approx(60.0 * model.kernel_error_ * left, rel=1e-6)
    whole = KernelRidge(1e-5, **more).fit(X, y)
    assert np.linalg.norm(model.predict(X) - whole.predict(X)) <= found.value


def test_perturbed_kernels():
    """Exercise 11.4 (b), for the worst y and for random kernels."""
    random = np.random.default_rng(1)
    for strength in (0.1, 1.0):
        for _ in range(50):
            root, change = random.standard_normal((2, 10, 10))
            K, E = root @ root.T, 0.1 * change @ change.T
            y = random.choice([-1.0, 1.0], 10)
            moved = np.linalg.solve(K + E + strength * np.eye(10), y)
            moved -= np.linalg.solve(K + strength * np.eye(10), y)
            size = np.linalg.norm(E, 2)
            found = perturbed_kernel_bound(size, 10, target_bound=1.0, strength=strength)
            assert np.linalg.norm(moved) <= min(found.value, found.trivial)
    # K = 0 and a small multiple of I: it is nearly reached
    small = perturbed_kernel_bound(1e-6, 10, target_bound=1.0, strength=1.0)
    assert sqrt(10) * (1.0 - 1.0 / (1.0 + 1e-6)) == pytest.approx(small.value, rel=1e-5)


def test_squares_by_absolute_values():
    """Exercise 11.6, by hand."""
    found = squared_loss_bound(0.1, 400, norm=0.5, radius=0.8, residual_bound=0.8)
    wanted = 0.8 * (0.1 + 2.0 * 0.4 / 20.0 + 0.8 * sqrt(log(20.0) / 800.0))
    assert found.value == pytest.approx(wanted)
    assert found.trivial == pytest.approx(0.64)


def test_a_ball_shatters_that_many_points_and_no_more():
    """Orthogonal rows: b_i h(x_i) >= γ needs ‖h‖² >= m γ² / r²."""
    for norm, radius, margin in [(3.0, 1.0, 1.0), (2.0, 0.5, 0.3), (1.0, 2.0, 0.7)]:
        most = fat_shattering_dimension(norm, radius, margin)
        needed = [margin * sqrt(m) / radius for m in (most, most + 1)]
        assert needed[0] <= norm * (1 + 1e-12) < needed[1]
    with pytest.raises(ValueError, match="margin must be a finite number > 0"):
        fat_shattering_dimension(1.0, 1.0, 0.0)


def test_dimensions_beyond_all_numbers_are_refused():
    with pytest.raises(ValueError, match="must have a square that is a floating-point number"):
        fat_shattering_dimension(1e200, 1e200, 1e-200)


def test_offsets_that_were_moved_out_of_the_class_are_refused():
    random = np.random.default_rng(5)
    X = random.uniform(-1.0, 1.0, (12, 1))
    y = np.sign(random.normal(size=12))
    model = QuantileRegressor(
        [0.02, 0.98], radius=0.05, kernel=Gaussian(0.05), refit_offsets="held_out"
    ).fit(X, y)
    with pytest.raises(ValueError, match="estimator must have offsets within"):
        excess_bound(model, X, y, target_bound=1.0)
    model.set_params(refit_offsets=None).fit(X, y)
    assert excess_bound(model, X, y, target_bound=1.0).value > 0.0

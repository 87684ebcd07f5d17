"""What a search has chosen has offsets of held-out rows, as what was learned has."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fenchel import ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian
from fenchel.learning import Learning, folds_by_content
from fenchel.losses import Pinball
from fenchel.model_selection import PathSearchCV

LEVELS = [0.1, 0.5, 0.9]
RNG = np.random.default_rng(3)
X = RNG.uniform(-1.0, 1.0, (80, 2))
Y = np.sin(4.0 * X[:, 0]) + 0.3 * RNG.normal(size=80)
GRID = {"alpha": [1e-2, 1e-3]}
KERNEL = Gaussian(0.5)


@pytest.mark.slow
def test_definition():
    """Quantiles of what rows lie above the curves of fits to the others, at the chosen alpha."""
    search = PathSearchCV(QuantileRegressor(LEVELS, kernel=KERNEL), GRID, cv=3).fit(X, Y)
    best, folds = search.best_estimator_, folds_by_content(X, Y[:, None], 5)
    residual = np.empty((80, 3))
    for k in range(5):
        held, given = folds == k, {"kernel": KERNEL, "alpha": search.alpha_, "learn": False}
        without = QuantileRegressor(LEVELS, **given).fit(X[~held], Y[~held])
        residual[held] = Y[held, None] - without.predict(X[held])
    loss, shift = Pinball(LEVELS), best.offset_ - best.certified_offset_
    least = loss.value(residual - loss.minimizing_offset(residual, np.ones(80))).mean()
    assert loss.value(residual - shift).mean() <= least * (1.0 + 1e-5)
    assert loss.value(residual).mean() > 1.02 * least


@pytest.mark.parametrize("estimator", [QuantileRegressor, ExpectileRegressor])
def test_where_they_are_by_themselves(estimator):
    moved = PathSearchCV(estimator(LEVELS, kernel=KERNEL), GRID, cv=2).fit(X, Y).best_estimator_
    assert np.all(moved.offset_[[0, 2]] != moved.certified_offset_[[0, 2]])
    for parameters in ({"refit_offsets": None}, {"fit_intercept": False}):
        plain = estimator(LEVELS, kernel=KERNEL, **parameters)
        best = PathSearchCV(plain, GRID, cv=2).fit(X, Y).best_estimator_
        np.testing.assert_array_equal(best.offset_, best.certified_offset_)


def test_a_tube_keeps_what_was_asked_for():
    tube = QuantileRegressor(LEVELS, kernel=KERNEL, epsilon=0.2, refit_offsets="train")
    best = PathSearchCV(tube, GRID, cv=2).fit(X, Y).best_estimator_
    assert best.refit_offsets == "train"


def test_candidates_have_the_offsets_of_their_fits(monkeypatch):
    """Else each of them would be five more fits."""
    seen = []
    fit = QuantileRegressor._fit_prepared

    def noted(self, *arguments):
        found = fit(self, *arguments)
        seen.append(bool(np.any(self.offset_ != self.certified_offset_)))
        return found

    monkeypatch.setattr(QuantileRegressor, "_fit_prepared", noted)
    PathSearchCV(QuantileRegressor(LEVELS, kernel=KERNEL), GRID, cv=2).fit(X, Y)
    assert seen == 4 * [False] + [True]


@pytest.mark.slow
def test_intervals_hold_new_rows():
    """On average over samples: fits of four fifths of 200 rows are a little worse than of all."""

    def sample(n, seed):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(size=(n, 4))
        return rows, np.sin(5.0 * rows).sum(axis=1) + 0.3 * rng.normal(size=n)

    rows, y = sample(4000, 100)
    held = {"auto": [], None: []}
    for seed in range(4):
        for offsets, shares in held.items():
            quantiles = QuantileRegressor(LEVELS, refit_offsets=offsets, tol=1e-4)
            search = PathSearchCV(quantiles, {"alpha": 5}, cv=2).fit(*sample(200, seed))
            low, high = search.predict_interval(rows, 0.8).T
            shares.append(np.mean((low <= y) & (y <= high)))
    off = {offsets: abs(np.mean(shares) - 0.8) for offsets, shares in held.items()}
    assert off["auto"] < min(0.05, off[None])


def test_sparse_rows():
    thin = np.where(RNG.random((80, 5)) < 0.5, RNG.normal(size=(80, 5)), 0.0)
    y = thin.sum(axis=1) + RNG.normal(size=80)
    quantiles = QuantileRegressor(LEVELS, kernel=Gaussian(2.0))
    best = PathSearchCV(quantiles, GRID, cv=2).fit(sparse.csr_array(thin), y).best_estimator_
    shift = best.offset_ - best.certified_offset_
    assert shift[0] < 0.0 < shift[2]


def test_models_without_offsets_to_move_are_as_before():
    search = PathSearchCV(KernelRidge(kernel=KERNEL), GRID, cv=2).fit(X, Y)
    plain = KernelRidge(kernel=KERNEL, alpha=search.alpha_, learn=False).fit(X, Y)
    np.testing.assert_array_equal(search.predict(X), plain.predict(X))


def test_what_was_learned_without_an_offset_may_be_fitted_again():
    learned = QuantileRegressor(
        LEVELS, fit_intercept=False, learn=Learning(max_evaluations=2)
    ).fit(X, Y)
    again = learned.with_learned().fit(X, Y)
    np.testing.assert_allclose(again.predict(X), learned.predict(X), atol=1e-4)

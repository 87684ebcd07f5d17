"""Fits that begin with a barrier, and those that are rough because they are compared only."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import ConstantKernel

from fenchel.datasets import load, make_sine_quantiles
from fenchel.kernels import Gaussian, Linear
from fenchel.losses import Pinball
from fenchel.positive import DensityEstimator, NonCrossingQuantileRegressor
from fenchel.positive.losses import Residual

X, Y, _ = make_sine_quantiles(60, random_state=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("along", [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
def test_the_best_move_of_pinball_losses_is_exact(seed, along):
    random = np.random.default_rng(seed)
    n, along = 31, np.array(along)
    weight = random.uniform(0.1, 1.0, n) if seed else np.full(n, 1.0 / n)
    loss = Residual(Pinball([0.1, 0.5, 0.8]), random.normal(size=(n, 1)), weight, 3)
    prediction = 5.0 + random.normal(size=(n, 3))

    def objective(move):
        return weight @ loss.value(prediction + move * along)

    found = loss.best_move(prediction, along, weight)
    kinks = (loss.targets - prediction)[:, along > 0.0].ravel()  # one of them is a minimum
    assert objective(found) == pytest.approx(min(map(objective, kinks)), rel=1e-14)
    assert objective(found) <= minimize_scalar(objective, bounds=(-20, 20)).fun + 1e-14
    order = random.permutation(n)
    other = Residual(Pinball([0.1, 0.5, 0.8]), loss.targets[order][:, :1], weight[order], 3)
    assert other.best_move(prediction[order], along, weight[order]) == pytest.approx(found)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-1, 1e-3, 1e-5])
def test_a_barrier_first_ends_at_the_same_kinks(alpha):
    given = {"alpha": alpha, "learn": False, "tol": 1e-7}
    both = NonCrossingQuantileRegressor(**given).fit(X, Y)
    prox = NonCrossingQuantileRegressor(solver="proximal_newton", **given).fit(X, Y)
    ones = both.certificate_, prox.certificate_
    assert max(c.dual for c in ones) <= min(c.primal for c in ones) + 1e-12
    assert both.status_.converged
    assert max(c.relative_gap for c in ones) <= 1e-7
    levels = both.levels_[None, :] / 60.0
    ends = [np.isclose(m.dual_coef_, -levels, atol=1e-6) for m in (both, prox)]
    assert np.mean(ends[0] == ends[1]) > 0.95


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (NonCrossingQuantileRegressor(learn=False, tol=1e-3), (X, Y)),
        (DensityEstimator(tol=1e-4), (X,)),
    ],
)
def test_rough_fits_are_told_of_only_where_somebody_listens(model, data):
    quiet = model.fit(*data)
    certificate, history = quiet.certificate_, quiet.history_
    told = model.set_params(callback=lambda progress: None).fit(*data)
    assert told.certificate_.primal == pytest.approx(certificate.primal, rel=1e-10)
    assert told.certificate_.dual == pytest.approx(certificate.dual, rel=1e-10)
    assert 2 <= len(history) < len(told.history_) == told.n_iter_ + 1
    assert history[-1].iteration == told.n_iter_
    model.callback = None


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
)
@pytest.mark.parametrize("alpha", [1e-6, 1e-8])
def test_fits_beyond_the_digits_of_floats_are_no_worse_than_no_function(alpha, seed):
    """Systems of their steps had no Cholesky factor, and losses were a thousand times as large."""
    data = load("mcycle")
    order = np.random.default_rng(seed).permutation(len(data.target))[:93]
    X, y = (np.asarray(part, float)[order] for part in (data.data, data.target))
    model = NonCrossingQuantileRegressor(
        [0.1, 0.3, 0.5, 0.7, 0.9],
        kernel=Gaussian(1.5) + ConstantKernel(1e5) * Linear(),
        alpha=alpha,
        learn=False,
        tol=1e-4,
        trace_penalty=0.0,
    )
    y = (y - y.mean()) / y.std()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    # where rounding ends a fit differs between processors
    assert len(said) == (model.certificate_.relative_gap > model.tol)
    residual = y[:, None, None] - np.broadcast_to(y[None, :, None], (93, 93, 5))
    losses = np.maximum(model.levels_ * residual, (model.levels_ - 1.0) * residual).mean(axis=0)
    common, own = losses.sum(axis=1).min(), losses.min(axis=0).sum()  # offsets alone; the unit
    found = model.certificate_
    assert 0.0 <= found.dual <= found.primal <= common / own * found.unit * (1.0 + 1e-12)

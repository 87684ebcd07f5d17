"""The table of docs/convert.md: both sides are fitted and compared."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model, svm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

import fenchel
from fenchel.kernels import Gaussian, Laplacian, Polynomial
from fenchel.losses import Pinball
from fenchel.regression import alpha_of

N, D = 80, 3
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, D)) * [1.0, 2.0, 0.5]
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * RANDOM.standard_t(3, size=N)
NEW = RANDOM.normal(size=(20, D))
WEIGHTS = RANDOM.integers(1, 4, size=N).astype(float)
TIGHT = 1e-10


def _close(ours, theirs, digits: float) -> None:
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), atol=digits, rtol=0.0)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_svr(C: float, weights) -> None:
    theirs = svm.SVR(C=C, epsilon=0.2, gamma=0.3, tol=1e-8).fit(X, Y, sample_weight=weights)
    total = N if weights is None else weights.sum()
    kernel = Gaussian(length_scale=(2 * 0.3) ** -0.5)
    ours = fenchel.SVR(alpha=alpha_of(C, total), epsilon=0.2, kernel=kernel, tol=TIGHT)
    _close(ours.fit(X, Y, sample_weight=weights), theirs, 1e-4)


def test_gamma_scale() -> None:
    theirs = svm.SVR(gamma="scale", tol=1e-8).fit(X, Y)
    kernel = Gaussian(length_scale=(X.shape[1] * X.var() / 2) ** 0.5)
    _close(fenchel.SVR(alpha=1 / N, epsilon=0.1, kernel=kernel, tol=TIGHT).fit(X, Y), theirs, 1e-4)


def test_linear_svr_with_squared_loss() -> None:
    theirs = svm.LinearSVR(
        C=0.7,
        epsilon=0.2,
        loss="squared_epsilon_insensitive",
        fit_intercept=False,
        dual=True,
        tol=1e-10,
        max_iter=100_000,
    ).fit(X, Y)
    ours = fenchel.SVR(
        "squared_epsilon_insensitive",
        epsilon=0.2,
        kernel="linear",
        alpha=alpha_of(0.7, N, squared=True),
        fit_intercept=False,
        tol=TIGHT,
    )
    _close(ours.fit(X, Y), theirs, 1e-4)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_kernel_ridge(weights) -> None:
    theirs = TheirRidge(alpha=0.5, kernel="rbf", gamma=0.3).fit(X, Y, sample_weight=weights)
    total = N if weights is None else weights.sum()
    ours = fenchel.KernelRidge(
        alpha=0.5 / total, kernel=Gaussian(length_scale=(2 * 0.3) ** -0.5), fit_intercept=False
    )
    _close(ours.fit(X, Y, sample_weight=weights), theirs, 1e-6)


def test_gaussian_process() -> None:
    kernel = 2.0 * RBF(1.3) + Matern(0.7, nu=2.5)
    ours = fenchel.KernelRidge(alpha=0.2 / N, kernel=kernel, learn=False, fit_intercept=False)
    ours.fit(X, Y)
    for same, s2 in ((kernel, 0.2), (kernel + WhiteKernel(0.15), 0.05)):
        theirs = GaussianProcessRegressor(same, alpha=s2, optimizer=None).fit(X, Y)
        _close(ours, theirs, 1e-6)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_ridge(weights) -> None:
    theirs = linear_model.Ridge(alpha=3.0).fit(X, Y, sample_weight=weights)
    total = N if weights is None else weights.sum()
    _close(fenchel.Ridge(alpha=3.0 / total).fit(X, Y, sample_weight=weights), theirs, 1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_lasso(weights) -> None:
    theirs = linear_model.Lasso(alpha=0.1, tol=1e-12).fit(X, Y, sample_weight=weights)
    ours = fenchel.Lasso(alpha=0.1, tol=1e-12).fit(X, Y, sample_weight=weights)
    _close(ours, theirs, 1e-6)


def test_multi_task_lasso() -> None:
    targets = np.column_stack([Y, X[:, 2] - Y])
    theirs = linear_model.MultiTaskLasso(alpha=0.3, tol=1e-12).fit(X, targets)
    _close(fenchel.GroupLasso(alpha=0.3, tol=1e-12).fit(X, targets), theirs, 1e-5)


def test_huber() -> None:
    theirs = linear_model.HuberRegressor(epsilon=1.5, alpha=0.0, tol=1e-9, max_iter=1000).fit(X, Y)
    kappa = 1.5 * theirs.scale_
    ours = fenchel.SVR("huber", kappa=kappa, kernel="linear", alpha=1e-9, tol=TIGHT).fit(X, Y)
    _close(ours, theirs, 2e-3)


def test_huber_of_statsmodels() -> None:
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    norm = sm.robust.norms.HuberT(1.2)
    theirs = sm.RLM(Y, sm.add_constant(X), M=norm).fit(maxiter=500, tol=1e-12)
    kappa = 1.2 * theirs.scale
    ours = fenchel.SVR("huber", kappa=kappa, kernel="linear", alpha=1e-9, tol=TIGHT).fit(X, Y)
    predicted = theirs.predict(sm.add_constant(NEW))
    np.testing.assert_allclose(ours.predict(NEW), predicted, atol=1e-4)


def test_linear_quantiles_without_penalty() -> None:
    """The linear program is the limit for alpha to 0: also that of quantreg's rq."""
    theirs = linear_model.QuantileRegressor(quantile=0.7, alpha=0.0).fit(X, Y)
    ours = fenchel.QuantileRegressor(0.7, kernel="linear", alpha=1e-7, tol=1e-9).fit(X, Y)
    losses = [Pinball(0.7).value((Y - model.predict(X))[:, None]) for model in (ours, theirs)]
    assert abs(losses[0].mean() / losses[1].mean() - 1.0) < 1e-5


def test_independent_levels_are_single_fits() -> None:
    """``tau = c(...)`` of quantreg."""
    settings = {"alpha": 1e-3, "learn": False, "tol": TIGHT}
    both = fenchel.QuantileRegressor([0.2, 0.7], level_gamma=np.inf, **settings).fit(X, Y)
    for column, level in enumerate((0.2, 0.7)):
        single = fenchel.QuantileRegressor(level, **settings).fit(X, Y)
        np.testing.assert_allclose(both.predict(NEW)[:, column], single.predict(NEW), atol=1e-3)


def test_kernels_of_scikit_learn() -> None:
    np.testing.assert_allclose(Gaussian((2 * 0.4) ** -0.5)(X, NEW), rbf_kernel(X, NEW, gamma=0.4))
    np.testing.assert_allclose(
        Polynomial(degree=2, gain=0.3, offset=1.5)(X, NEW),
        polynomial_kernel(X, NEW, degree=2, gamma=0.3, coef0=1.5),
    )
    # said to have no counterpart: the distances are not the same, unless there is one feature
    theirs = laplacian_kernel(X, NEW, gamma=0.4)
    assert np.abs(Laplacian(1 / 0.4)(X, NEW) - theirs).max() > 0.05
    one = [[0.3], [2.0]]
    np.testing.assert_allclose(Laplacian(1 / 0.4)(one), laplacian_kernel(one, gamma=0.4))


def test_kernels_of_kernlab() -> None:
    """The formulas of its manual, entry by entry."""
    x, z, s = X[0], NEW[0], 0.4
    distance = np.sqrt(sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
    pairs = {
        float(np.exp(-s * distance**2)): Gaussian((2 * s) ** -0.5),
        float(np.exp(-s * distance)): Laplacian(1 / s),
        float((0.5 * x @ z + 2.0) ** 3): Polynomial(degree=3, gain=0.5, offset=2.0),
    }
    for value, kernel in pairs.items():
        assert kernel([x], [z])[0, 0] == pytest.approx(value)

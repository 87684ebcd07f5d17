"""Certificates are of the kernel as given, whatever features leave out of it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.linalg import lstsq
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.features import Monomials, Nystroem, PivotedCholesky, Summands
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Decomposable, Gaussian, Laplacian, Linear, Matern, Polynomial
from fenchel.solvers import SOLVERS

leaves_out = pytest.warns(ConvergenceWarning, match="leave out a part of the kernel")


def rows(n, d=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, (n, d))
    return X, np.sin(4.0 * X.sum(axis=1)) + 0.2 * random.standard_normal(n)


def ridge_optimum(X, y, alpha, monomials):
    """Objective of ridge regression on explicit features, with an intercept, by least squares."""
    features = monomials(X.astype(np.longdouble)).astype(float)
    centred, target = features - features.mean(axis=0), y - y.mean()
    size = np.abs(centred).max(axis=0)
    size[size == 0.0] = 1.0
    penalty = np.diag(np.sqrt(alpha * len(y)) / size)
    stacked = np.vstack([centred / size, penalty])
    found = lstsq(stacked, np.concatenate([target, np.zeros(len(penalty))]))[0]
    left = np.concatenate([target, np.zeros(len(penalty))]) - stacked @ found
    return 0.5 * float(left @ left) / len(y)


def cubic(X):
    x = X[:, 0]
    return np.stack([x**0, np.sqrt(3) * x, np.sqrt(3) * x**2, x**3], axis=1)


def test_small_parts_of_a_polynomial_kernel_are_not_lost():
    random = np.random.default_rng(0)
    X = random.uniform(0.0, 1000.0, (150, 1))
    y = np.sin(X[:, 0] / 150.0) + 0.1 * random.standard_normal(150)
    model = KernelRidge(1e-4, kernel=Polynomial(3)).fit(X, y)
    assert isinstance(model.feature_map_, Monomials)
    best = ridge_optimum(X, y, 1e-4, cubic)
    certificate = model.certificate_
    assert certificate.dual <= best * (1.0 + 1e-9)
    assert certificate.primal >= best * (1.0 - 1e-9)
    assert certificate.relative_gap <= 1e-6


def test_summands_of_different_size_are_factored_by_themselves():
    random = np.random.default_rng(0)
    X = np.round(random.uniform(2e4, 2e5, (150, 1)))
    y = np.sin(X[:, 0] / 2.0) + X[:, 0] / 1e5
    model = KernelRidge(1e-4, kernel=Gaussian(1.0) + Linear()).fit(X, y)
    assert isinstance(model.feature_map_, Summands)
    on_rows = KernelRidge(1e-4, kernel=Gaussian(1.0) + Linear(), features="kernel_rows").fit(X, y)
    assert model.score(X, y) == pytest.approx(on_rows.score(X, y), abs=1e-6)
    assert model.score(X, y) > 0.99
    near = KernelRidge(1e-4, kernel=Gaussian(1.0) + Linear()).fit(X / 1e5, y)
    assert isinstance(near.feature_map_, PivotedCholesky)


@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor([0.2, 0.5, 0.8]),
        QuantileRegressor([0.5], fit_intercept=False),
        ExpectileRegressor([0.3, 0.7]),
        SVR(epsilon=0.05),
        KernelRidge(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("features", [{"rank": 12}, {"features": Nystroem(rank=12)}], ids=str)
def test_a_bound_with_few_features_holds_for_all_models_with_the_kernel(model, features):
    """No higher than the optimum on all kernel values, and not the bound of the features."""
    X, y = rows(120, 2)
    model = clone(model).set_params(kernel=Laplacian(0.7), alpha=1e-3, tol=1e-8)
    whole = model.fit(X, y).certificate_
    with leaves_out:
        model.set_params(**features).fit(X, y)
    few = model.certificate_
    assert not model.status_.converged
    assert few.dual <= whole.primal <= few.primal
    assert few.dual > 0.0
    mapped = model.feature_map_.transform(X)
    alone = clone(model).set_params(kernel="linear", features="auto", rank=None)
    alone.fit(mapped, y)
    assert alone.certificate_.relative_gap <= 1e-8  # the same model, of the features as kernel
    assert alone.certificate_.primal == pytest.approx(few.primal, rel=1e-6)
    assert alone.certificate_.dual > whole.primal


def exact_bound(model, X, push, problem_dual, alpha):
    """D of the kernel itself: that of the features less what they leave out, in full."""
    mapped = model.feature_map_.transform(X)
    rest = model.kernel_(X) - mapped @ mapped.T
    return problem_dual - 0.5 * alpha * float(np.vdot(push, rest @ push @ model.coupling_))


def test_what_is_left_out_is_counted_exactly_where_rows_are_few():
    """For ridge regression: the dual point is known by its residuals."""
    X, y = rows(150, 2)
    model = KernelRidge(1e-2, kernel=Laplacian(1.0), rank=60)
    with leaves_out:
        model.fit(X, y)
    push = np.zeros((150, 1))
    push[model.support_] = model.dual_coef_
    mapped = model.feature_map_.transform(X)
    beta = 1e-2 * 150 * push[:, 0]
    of_features = float(beta @ y - 0.5 * beta @ beta) / 150
    of_features -= 0.5e-2 * float(np.sum((mapped.T @ push) ** 2))
    expected = exact_bound(model, X, push, of_features, 1e-2)
    assert model.certificate_.dual >= expected - 1e-12
    assert model.certificate_.dual == pytest.approx(expected, rel=1e-9)


def test_features_are_added_until_the_bound_holds():
    """A factorization that was cut too early goes on, and the fit starts anew with it."""
    X, y = rows(400)
    kernel = Matern(0.3, 2.5)
    at_first = PivotedCholesky(kernel).fit(X).rank_
    model = KernelRidge(1e-9, kernel=kernel, tol=1e-7).fit(X, y)
    assert model.feature_map_.rank_ > at_first
    assert model.certificate_.relative_gap <= 1e-7
    assert model.status_.converged
    np.testing.assert_allclose(
        model.feature_map_.transform(X[:5]) @ model.weights_ + model.offset_,
        model.predict(X[:5])[:, None],
        atol=1e-9,
    )
    fixed = model.set_params(features=PivotedCholesky(tol=1e-10))
    with leaves_out:
        fixed.fit(X, y)
    assert fixed.feature_map_.rank_ == at_first


@pytest.mark.parametrize("size", [1e-2, 1e-4])
def test_features_of_a_smooth_kernel_are_not_capped_where_they_were_tried(size):
    """64 columns are what is tried first, and no cap: a small alpha needs more of them."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(200, 4))
    y = size * (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * random.standard_normal(200))
    model = QuantileRegressor(0.5, kernel=Gaussian(10.0), alpha=1e-7, tol=1e-6).fit(X, y)
    assert model.feature_map_.rank_ > 64
    assert model.status_.converged
    assert model.certificate_.relative_gap <= 1e-6


def test_operator_valued_kernels():
    X, y = rows(60)
    Y = np.stack([y, -y + X[:, 0]], axis=1)
    kernel = Decomposable(Laplacian(0.5), [[1.0, 0.3], [0.3, 1.0]])
    whole = KernelRidge(1e-3, kernel=kernel).fit(X, Y).certificate_
    with leaves_out:
        few = KernelRidge(1e-3, kernel=kernel, rank=25).fit(X, Y).certificate_
    assert 0.0 < few.dual <= whole.primal <= few.primal


@pytest.mark.parametrize("missing", [False, True])
def test_curves(missing):
    X, y = rows(50)
    theta = np.linspace(0.0, 1.0, 9)
    Y = y[:, None] * np.cos(3.0 * theta)
    if missing:
        Y[np.random.default_rng(1).random(Y.shape) < 0.2] = np.nan
    parameters = {"loss": "huber", "kappa": 0.2, "alpha": 1e-3, "kernel": Laplacian(0.3)}
    whole = FunctionalRegressor(**parameters).fit(X, Y, theta).certificate_
    with leaves_out:
        few = FunctionalRegressor(**parameters, rank=8).fit(X, Y, theta).certificate_
    assert 0.0 < few.dual <= whole.primal <= few.primal


@pytest.mark.slow
def test_many_rows_of_a_rough_kernel():
    """Above the rows whose kernel values are all kept: cut at a rank, and it is said."""
    X, y = rows(10_500, 3)
    with leaves_out:
        model = SVR(alpha=1e-6, kernel=Laplacian(0.2), rank=150).fit(X, y)
    assert model.certificate_.relative_gap > 1e-2
    assert "increase rank" in model.status_.message


@pytest.mark.filterwarnings("ignore:the feature map of rank")
def test_random_features_are_certified_as_a_kernel_of_their_own():
    X, y = rows(200)
    model = SVR(features="fourier", rank=50).fit(X, y)
    assert model.certified_kernel_ == "features"
    assert model.status_.message.endswith("of the approximated kernel")
    exact = SVR().fit(X, y)
    assert exact.certified_kernel_ == "given"
    assert "approximated" not in exact.status_.message


def test_columns_far_from_zero_are_no_worse_than_centred_ones():
    """A free constant makes the mean of a linear feature irrelevant, up to rounding."""
    X, y = rows(300, 3)
    far = X + np.array([1e6, -3e5, 0.0])
    for model in (QuantileRegressor([0.2, 0.8]), SVR(), ExpectileRegressor([0.4]), KernelRidge()):
        model.set_params(kernel="linear", alpha=1e-5)
        near = model.fit(X, y).predict(X)
        assert model.fit(far, y).certificate_.relative_gap <= 1e-6
        np.testing.assert_allclose(model.predict(far), near, atol=1e-3)


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_equal_rows_leave_only_the_offset(solver, kernel):
    """Centred features are then zero."""
    n = 2 if solver == "smo" else 6  # which needs a Gram matrix no larger than the features
    X, y = np.full((n, 2), 3.0), np.arange(float(n))
    fitted = 0
    plain = partial(QuantileRegressor, refit_offsets=None)  # fits to a part take some too long
    for model in (plain([0.5]), SVR(), KernelRidge(), plain([0.2, 0.8])):
        try:
            model.set_params(solver=solver, kernel=kernel).fit(X, y)
        except ValueError as error:
            assert "cannot solve this problem" in str(error)  # noqa: PT017  (a fit is as good)
            continue
        fitted += 1
        assert model.certificate_.relative_gap <= 1e-6
        np.testing.assert_allclose(np.ptp(model.predict(X), axis=0), 0.0, atol=1e-12)
    # one takes no offset, the other one no features
    assert fitted > 0 or solver in ("splitting", "conjugate_gradients")

"""Leave-one-out residuals in closed form against fits without the row, and coupled outputs."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import fenchel
from fenchel import KernelRidge, Ridge
from fenchel.features import KernelRows, Nystroem
from fenchel.kernels import Decomposable, Gaussian, Laplacian
from fenchel.regression import ridge
from fenchel.solvers.leave_one_out import (
    LeaveOneOutPath,
    Spectrum,
    complement_of,
    ridge_smoother,
)
from pairs import pairs

MIXING = np.random.default_rng(5).normal(size=(3, 3))
COUPLINGS = {
    "one output": (1, None),
    "independent": (3, None),
    "coupled": (3, MIXING @ MIXING.T),
    "singular": (3, np.ones((3, 3))),
}
KERNELS = {
    "explicit": ("linear", 40, "Explicit"),
    "rough": (Laplacian(0.4), 80, "KernelRows"),
    "rank n": (Laplacian(0.4), 30, "PivotedCholesky"),
}


def data(n, p, seed=0):
    rng = np.random.default_rng([seed, n, p])
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    Y = 5.0 + np.sin(3.0 * X[:, :1]) * np.arange(1, p + 1) + 0.3 * rng.normal(size=(n, p))
    return X, Y, rng.uniform(0.2, 3.0, n)


def brute_force(model, X, y, weight=None):
    """Residuals of each row at the model fitted without it, alpha times total weight fixed."""
    weight = np.ones(len(y)) if weight is None else weight
    total, residuals = weight.sum(), np.empty_like(y)
    params = model.get_params(deep=False)
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        params["alpha"] = model.alpha * total / (total - weight[i])
        part = KernelRidge(**params).fit(X[rest], y[rest], weight[rest])
        residuals[i] = y[i] - part.predict(X[i : i + 1])[0]
    return residuals


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_smoother_predicts_with_and_without_each_row(kernel, fit_intercept):
    kernel, n, expected_map = KERNELS[kernel]
    X, Y, weight = data(n, 1)
    y, new = Y[:, 0], np.random.default_rng(3).uniform(-1.0, 1.0, size=(6, 3))
    model = KernelRidge(0.01, kernel=kernel, fit_intercept=fit_intercept).fit(X, y, weight)
    assert type(model.feature_map_).__name__ == expected_map
    phi = model.feature_map_
    slopes, constant = ridge_smoother(
        phi.transform(X),
        weight / (0.01 * weight.sum()),
        1.0,
        gram=expected_map == "KernelRows",
        fit_intercept=fit_intercept,
    )
    shares = phi.transform(new) @ slopes + constant
    assert np.allclose(shares @ y, model.predict(new), rtol=1e-7)
    i = 4
    rest = np.arange(n) != i
    alpha = 0.01 * weight.sum() / weight[rest].sum()
    part = KernelRidge(alpha, kernel=kernel, fit_intercept=fit_intercept)
    expected = part.fit(X[rest], y[rest], weight[rest]).predict(new)
    left = shares @ y - shares[:, i] * model.loo_residuals_[i]
    assert np.allclose(left, expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("kernel", "outputs", "weighted", "fit_intercept"),
    pairs(KERNELS, COUPLINGS, [True, False], [True, False]),
)
def test_equals_fits_without_the_row(kernel, outputs, weighted, fit_intercept):
    kernel, n, expected_map = KERNELS[kernel]
    p, coupling = COUPLINGS[outputs]
    X, Y, weight = data(n, p)
    weight = weight if weighted else None
    model = KernelRidge(1e-3, kernel=kernel, coupling=coupling, fit_intercept=fit_intercept)
    model.fit(X, Y, weight)
    assert type(model.feature_map_).__name__ == expected_map
    expected = brute_force(model, X, Y, weight)
    scale = np.abs(expected).max()
    assert model.loo_residuals_.shape == Y.shape
    np.testing.assert_allclose(model.loo_residuals_, expected, rtol=0, atol=1e-10 * scale)
    error = np.average(np.mean(expected**2, axis=1), weights=weight)
    assert model.loo_error_ == pytest.approx(error, rel=1e-10)
    # no mere residuals
    assert np.abs(expected - (Y - model.predict(X))).max() > 1e-2 * scale


@pytest.mark.filterwarnings("ignore:.*leave out a part of the kernel")
@pytest.mark.parametrize(
    ("features", "outputs", "fit_intercept"),
    pairs(["auto", Nystroem(rank=20)], COUPLINGS, [True, False]),
)
def test_smooth_kernels_with_the_feature_map_held_fixed(features, outputs, fit_intercept):
    p, coupling = COUPLINGS[outputs]
    X, Y, weight = data(70, p)
    model = KernelRidge(1e-3, kernel=Gaussian(5.0), coupling=coupling, features=features)
    model.set_params(fit_intercept=fit_intercept)
    model.fit(X, Y, weight)
    assert model.feature_map_.rank_ < 70
    fixed = KernelRidge(1e-3, kernel="linear", coupling=coupling, fit_intercept=fit_intercept)
    expected = brute_force(fixed, model.feature_map_.transform(X), Y, weight)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.loo_residuals_, expected, rtol=0, atol=1e-10 * scale)


def test_a_row_goes_with_all_its_weight():
    """A row of weight two is two copies that leave together, not one of them."""
    X, Y, _ = data(20, 1)
    weight = np.ones(20)
    weight[4] = 2.0
    model = KernelRidge(1e-2, kernel=Laplacian(0.5)).fit(X, Y[:, 0], weight)
    twice = np.append(np.arange(20), 4)
    both = np.flatnonzero(twice != 4)
    part = KernelRidge(1e-2 * 21 / 19, kernel=Laplacian(0.5))
    part.fit(X[twice[both]], Y[twice[both], 0])
    expected = Y[4, 0] - part.predict(X[4:5])[0]
    assert model.loo_residuals_[4] == pytest.approx(expected, rel=1e-10)
    copies = KernelRidge(1e-2, kernel=Laplacian(0.5)).fit(X[twice], Y[twice, 0])
    assert abs(copies.loo_residuals_[4] - expected) > 1e-2 * abs(expected)


@pytest.mark.parametrize("precomputed", [False, True])
def test_rows_of_weight_zero_have_the_residual_of_the_model(precomputed):
    X, Y, weight = data(30, 2)
    weight[[3, 17]] = 0.0
    kernel = Laplacian(0.5)
    model = KernelRidge(1e-2, kernel="precomputed" if precomputed else kernel)
    rows = kernel(X) if precomputed else X
    model.fit(rows, Y, weight)
    kept = np.flatnonzero(weight)
    without = KernelRidge(1e-2, kernel=kernel).fit(X[kept], Y[kept], weight[kept])
    np.testing.assert_allclose(model.loo_residuals_[kept], without.loo_residuals_, atol=1e-12)
    np.testing.assert_allclose(
        model.loo_residuals_[[3, 17]], Y[[3, 17]] - model.predict(rows)[[3, 17]], atol=1e-12
    )
    assert model.loo_error_ == pytest.approx(without.loo_error_, rel=1e-12)


def test_computed_when_asked_for_and_only_once(monkeypatch):
    X, Y, _ = data(70, 1)
    calls = []

    def counted(*args):
        calls.append(args)
        return complement_of(*args)

    monkeypatch.setattr(ridge, "complement_of", counted)
    model = KernelRidge(1e-2, kernel=Laplacian(0.5)).fit(X, Y[:, 0])
    assert not calls
    first = model.loo_residuals_
    assert model.loo_error_ == pytest.approx(np.mean(first**2))
    assert len(calls) == 1
    assert model.fit(X, -Y[:, 0]).loo_residuals_ == pytest.approx(-first)
    assert len(calls) == 2


@pytest.mark.parametrize("kernel", ["linear", Gaussian(1.0), Laplacian(0.4)], ids=repr)
def test_survives_persistence(kernel, tmp_path):
    X, Y, weight = data(80, 2)
    weight[5] = 0.0
    model = KernelRidge(1e-3, kernel=kernel, coupling=[[1.0, 0.5], [0.5, 2.0]]).fit(X, Y, weight)
    copies = [pickle.loads(pickle.dumps(model))]  # before anything was asked for
    expected, error = model.loo_residuals_, model.loo_error_
    copies.append(fenchel.load(fenchel.save(model, tmp_path / "m.skops")))
    for copy in copies:
        np.testing.assert_allclose(copy.loo_residuals_, expected, rtol=1e-12)
        assert copy.loo_error_ == pytest.approx(error, rel=1e-12)


def test_constant_targets_on_kernel_rows():
    """No row carries a coefficient then, but all are needed for the hat matrix."""
    X, _, _ = data(80, 1)
    y = np.ones(80)
    model = KernelRidge(1e-3, kernel=Laplacian(0.4)).fit(X, y)
    assert isinstance(model.feature_map_, KernelRows)
    assert len(model.support_) == 0
    np.testing.assert_array_equal(model.loo_residuals_, np.zeros(80))


@pytest.mark.parametrize(
    "model",
    [
        Ridge(0.1),
        Ridge(0.1, fit_intercept=False),
        KernelRidge(0.01, kernel="rbf", learn=False),
        KernelRidge(0.01, kernel="linear", fit_intercept=False, learn=False),
        KernelRidge(0.01, kernel="laplacian", learn=False),
        KernelRidge(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_of_the_rows_as_they_were_at_the_fit(model, order):
    """Whatever becomes of the arrays and the parameters after it."""
    X, Y, weight = data(40, 1)
    weight[::7] = 0.0
    X, y = np.array(X, order=order), Y[:, 0].copy()
    twin = clone(model).fit(X.copy(), y.copy(), weight)
    expected = twin.loo_residuals_.copy()
    model.fit(X, y, weight)
    X *= 3.0
    y += 10.0
    weight += 1.0
    KernelRidge(0.1, kernel="laplacian", learn=False).fit(X, y)  # takes the place of a factor
    model.set_params(fit_intercept=not model.fit_intercept)
    np.testing.assert_allclose(model.loo_residuals_, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.loo_error_, twin.loo_error_, rtol=1e-9)


def test_of_sparse_rows_as_they_were_at_the_fit():
    X, Y, _ = data(40, 1)
    X = sparse.csr_array(X * (X > 0.0))
    model = KernelRidge(0.01, kernel="rbf", learn=False).fit(X, Y[:, 0])
    expected = KernelRidge(0.01, kernel="rbf", learn=False).fit(X.copy(), Y[:, 0]).loo_residuals_
    X.data *= 3.0
    np.testing.assert_allclose(model.loo_residuals_, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:stopped at a relative gap")  # of the kernel as given
@pytest.mark.parametrize("alpha", [1e-5, 1e-7])
def test_features_that_leave_out_so_much_that_a_shorter_dual_point_has_the_best_bound(alpha):
    X = np.linspace(-1.0, 1.0, 60)[:, None]
    y = np.sin(3.0 * X[:, 0]) + 0.02 * np.cos(40.0 * X[:, 0])
    model = KernelRidge(alpha, kernel=Gaussian(0.5), features="nystroem", rank=6, learn=False)
    model.fit(X, y)
    features = np.column_stack([model.feature_map_.transform(X), np.ones(60)])
    penalty = np.diag([60.0 * alpha] * (features.shape[1] - 1) + [0.0])
    hat = features @ np.linalg.solve(features.T @ features + penalty, features.T)
    expected = (y - hat @ y) / (1.0 - np.diag(hat))
    np.testing.assert_allclose(model.loo_residuals_, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore:stopped at a relative gap")  # of the kernel as given
def test_features_that_leave_out_most_of_the_kernel():
    """The fit to them is exact, however far the kernel as given is."""
    X, Y, weight = data(40, 2)
    model = KernelRidge(0.01, features=Nystroem(Laplacian(0.2), rank=6)).fit(X, Y, weight)
    assert model.certificate_.relative_gap > 0.1
    same = Ridge(0.01).fit(model.feature_map_.transform(X), Y, weight)
    np.testing.assert_allclose(model.loo_residuals_, same.loo_residuals_, rtol=1e-8)


def test_a_fit_that_stopped_far_from_its_optimum_has_none():
    X, Y, _ = data(40, 1)
    model = KernelRidge(1e-6, kernel=Laplacian(1.0), solver="fista", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, Y[:, 0])
    with pytest.raises(AttributeError, match="loo_residuals_ needs a fit that has come near"):
        _ = model.loo_residuals_


def test_a_bound_on_the_norm_that_is_larger_than_needed():
    """The best bound is then zero, that of no function; residuals are those of the model."""
    X, Y, _ = data(5, 1)
    kernel, y = Gaussian(1.0), Y[:, 0]
    model = KernelRidge(kernel=kernel, radius=1e4, learn=False).fit(X, y)
    assert model.norm_ < 1e4
    assert len(model.support_) == 5
    given = KernelRidge(model.alpha_, kernel=kernel, learn=False)
    np.testing.assert_allclose(model.loo_residuals_, brute_force(given, X, y), rtol=1e-4)
    values = kernel(X) @ model.dual_coef_[:, 0] + model.offset_
    np.testing.assert_allclose(values, model.predict(X), rtol=1e-8)


@pytest.mark.parametrize(
    ("n", "d", "alpha", "scale"), [(20, 100, 1e-3, 1e2), (50, 300, 1e-3, 1e3)]
)
def test_centred_columns_that_interpolate(n, d, alpha, scale):
    """1 - M_ii is 1e-8 and less there, from a matrix whose constant direction is nearly null."""
    random = np.random.default_rng(0)
    X, y = scale * random.normal(size=(n, d)), random.normal(size=n)
    X -= X.mean(axis=0)
    found = Ridge(alpha).fit(X, y).loo_residuals_
    for i in (0, n // 2):
        rest = np.delete(np.arange(n), i)
        middle, level = X[rest].mean(axis=0), y[rest].mean()
        system = np.vstack([X[rest] - middle, np.sqrt(alpha * n) * np.eye(d)])
        slopes = np.linalg.lstsq(system, np.append(y[rest] - level, np.zeros(d)), rcond=None)[0]
        assert found[i] == pytest.approx(y[i] - level - (X[i] - middle) @ slopes, rel=1e-3)


def test_shapes_and_frames():
    X, Y, weight = data(30, 1)
    weight[3] = 0.0
    frame = pd.DataFrame(X, columns=list("abc"))
    one = KernelRidge(1e-2).fit(frame, Y[:, 0], weight)
    assert one.loo_residuals_.shape == (30,)
    two = KernelRidge(1e-2).fit(frame, Y, weight)
    assert two.loo_residuals_.shape == (30, 1)
    np.testing.assert_array_equal(one.loo_residuals_, two.loo_residuals_[:, 0])
    assert not hasattr(KernelRidge(), "loo_residuals_")
    assert not hasattr(KernelRidge(), "loo_error_")


def test_other_solvers_give_the_same_to_their_tolerance():
    X, Y, weight = data(60, 2)
    exact = KernelRidge(1e-2, kernel=Gaussian(1.0)).fit(X, Y, weight).loo_residuals_
    newton = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="newton", tol=1e-12)
    np.testing.assert_allclose(newton.fit(X, Y, weight).loo_residuals_, exact, atol=1e-5)


def test_undefined_where_the_fit_follows_the_target_alone():
    single = KernelRidge(1e-2).fit([[1.0]], [2.0])
    assert np.isnan(single.loo_residuals_).all()
    assert np.isnan(single.loo_error_)
    # without intercept there is the model zero
    without = KernelRidge(1e-2, fit_intercept=False).fit([[1.0]], [2.0])
    assert without.loo_residuals_ == pytest.approx(2.0)
    # a feature that one row alone has, at a strength that does not count
    X = np.column_stack([np.linspace(-1.0, 1.0, 20), np.arange(20) == 7])
    y = np.random.default_rng(0).normal(size=20)
    model = KernelRidge(1e-18, kernel="linear").fit(X, y)
    assert np.flatnonzero(np.isnan(model.loo_residuals_)).tolist() == [7]
    assert np.isnan(model.loo_error_)


def test_tiny_strength_keeps_digits_on_kernel_rows():
    """There 1 - M_ii is a sum of positive terms: interpolation is no cancellation."""
    X, Y, weight = data(80, 1)
    gram = Laplacian(0.4)(X)
    precision = np.linalg.inv(gram)
    interpolating = (precision @ Y) / np.diag(precision)[:, None]
    model = KernelRidge(1e-15, kernel=Laplacian(0.4), fit_intercept=False, tol=1e-2).fit(X, Y)
    np.testing.assert_allclose(model.loo_residuals_, interpolating, rtol=1e-6)
    path = LeaveOneOutPath(gram, Y, weight, np.eye(1), gram=True, fit_intercept=False)
    np.testing.assert_allclose(path.residuals(np.array([1e-15]))[0], interpolating, rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", ["gram", "wide", "tall"])
def test_spectrum_is_the_hat_matrix(shape, fit_intercept):
    """P = I - M from a fit to each unit vector, by dense linear algebra."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(12, 30 if shape == "wide" else 4))
    gram = features @ features.T
    weight = rng.uniform(0.5, 2.0, 12)
    strengths = np.array([1e-2, 1.0, 30.0])
    spectrum = Spectrum(
        gram if shape == "gram" else features,
        weight,
        gram=shape == "gram",
        fit_intercept=fit_intercept,
    )
    diagonal = spectrum.complement(strengths)
    residuals = spectrum.residuals(strengths, np.eye(12))
    for k, t in enumerate(strengths):
        # rows weight t w_i, function norm 1: (K + diag(1 / (t w))) a + b = y, Σ a = 0
        system = np.zeros((13, 13))
        system[:12, :12] = gram + np.diag(1.0 / (t * weight))
        system[:12, 12] = system[12, :12] = 1.0
        size = 13 if fit_intercept else 12
        inverse = np.linalg.inv(system[:size, :size])[:12, :12]
        expected = inverse / (t * weight)[:, None]
        np.testing.assert_allclose(residuals[:, k], expected, atol=1e-11)
        np.testing.assert_allclose(diagonal[:, k], np.diag(expected), atol=1e-11)


@pytest.mark.parametrize("outputs", COUPLINGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_path_has_the_residuals_of_each_fit(kernel, outputs):
    kernel, n, _ = KERNELS[kernel]
    p, coupling = COUPLINGS[outputs]
    X, Y, weight = data(n, p)
    alphas = np.array([1.0, 1e-2, 1e-4])
    model = KernelRidge(1.0, kernel=kernel, coupling=coupling).fit(X, Y, weight)
    gram = isinstance(model.feature_map_, KernelRows)
    features = model.feature_map_.transform(X)
    path = LeaveOneOutPath(
        features, Y, weight, model.coupling_, gram=gram, fit_intercept=True
    ).residuals(alphas)
    for alpha, residuals in zip(alphas, path, strict=True):
        single = model.set_params(alpha=alpha).fit(X, Y, weight).loo_residuals_
        np.testing.assert_allclose(residuals, single, rtol=0, atol=1e-10 * np.abs(single).max())


# Coupled outputs


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Laplacian(0.4)], ids=repr)
@pytest.mark.parametrize("outputs", ["coupled", "singular"])
def test_coupling_is_the_decomposable_kernel(outputs, kernel, fit_intercept):
    """Against the full (n p, n p) system, and the operator-valued kernel by Newton."""
    p, B = COUPLINGS[outputs]
    X, Y, weight = data(70, p)
    model = KernelRidge(1e-2, kernel=kernel, coupling=B, fit_intercept=fit_intercept)
    model.fit(X, Y, weight)
    n, m = len(Y), Y.size
    system = np.zeros((m + p, m + p))
    ridge_term = np.diag(np.repeat(1e-2 * weight.sum() / weight, p))
    system[:m, :m] = np.kron(kernel(X), B) + ridge_term
    system[:m, m:] = np.tile(np.eye(p), (n, 1))
    system[m:, :m] = system[:m, m:].T
    right = np.append(Y.ravel(), np.zeros(p))
    size = m + p if fit_intercept else m
    solved = np.linalg.solve(system[:size, :size], right[:size])
    dual = solved[:m].reshape(n, p)
    offset = solved[m:] if fit_intercept else np.zeros(p)
    np.testing.assert_allclose(model.dual_coef_, dual, atol=1e-6 * np.abs(dual).max())
    np.testing.assert_allclose(model.offset_, offset, atol=1e-6)
    np.testing.assert_allclose(model.coupling_, B, atol=1e-12)
    new = data(15, p, seed=1)[0]
    values = kernel(new, X[model.support_]) @ model.dual_coef_ @ model.coupling_ + model.offset_
    np.testing.assert_allclose(model.predict(new), values, atol=1e-6)
    operator = KernelRidge(1e-2, kernel=Decomposable(kernel, B), fit_intercept=fit_intercept)
    operator.set_params(tol=1e-12).fit(X, Y, weight)
    np.testing.assert_allclose(model.predict(new), operator.predict(new), atol=1e-4)
    assert model.certificate_.relative_gap <= 1e-10
    assert model.n_iter_ == 1


def test_identity_coupling_is_the_default():
    X, Y, weight = data(70, 3)
    plain = KernelRidge(1e-2, kernel=Laplacian(0.4)).fit(X, Y, weight)
    same = KernelRidge(1e-2, kernel=Laplacian(0.4), coupling=np.eye(3)).fit(X, Y, weight)
    np.testing.assert_allclose(same.predict(X), plain.predict(X), atol=1e-12)
    np.testing.assert_allclose(same.loo_residuals_, plain.loo_residuals_, atol=1e-12)


@pytest.mark.parametrize(
    ("coupling", "message"),
    [
        (
            np.eye(3),
            r"coupling must have one row for each column of y, 2 here, got shape \(3, 3\)",
        ),
        ([[1.0, 2.0], [2.0, 1.0]], "coupling must be positive semi-definite"),
        ([[1.0, 0.5], [0.0, 1.0]], "coupling must be symmetric"),
        ([1.0, 2.0], "coupling must be a square matrix"),
    ],
)
def test_bad_couplings(coupling, message):
    X, Y, _ = data(20, 2)
    with pytest.raises(ValueError, match=message):
        KernelRidge(coupling=coupling).fit(X, Y)


def test_operator_valued_kernels_are_refused():
    X, Y, _ = data(20, 2)
    kernel = Decomposable(Gaussian(1.0), np.eye(2))
    model = KernelRidge(kernel=kernel).fit(X, Y)
    with pytest.raises(ValueError, match="leave-one-out residuals need a scalar kernel"):
        _ = model.loo_residuals_
    with pytest.raises(ValueError, match="coupling must be None with an operator-valued kernel"):
        KernelRidge(kernel=kernel, coupling=np.eye(2)).fit(X, Y)


def test_rounding_errors_that_hide_the_penalty_give_nan():
    """Rows near 1e6 without an intercept: the factor of their products does not exist."""
    X = 1e6 + 1e-3 * np.random.default_rng(0).normal(size=(9, 9))
    with pytest.warns(ConvergenceWarning, match="rounding errors dominate"):
        model = Ridge(1e-7, fit_intercept=False).fit(X, np.arange(9.0))
    assert np.isnan(model.loo_residuals_).all()
    assert np.isnan(model.loo_error_)

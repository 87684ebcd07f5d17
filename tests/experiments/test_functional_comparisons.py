"""Other regressions of curves against their definitions, and the comparison with ours."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.comparisons.functional import (
    KernelAdditive,
    MeanCurve,
    NadarayaWatson,
    ProjectionLearning,
    TripleBasis,
    chosen,
    cosines,
    splines,
    spread,
)
from sklearn.kernel_ridge import KernelRidge

from experiments import functional_comparisons
from experiments_cases import quick_form


@pytest.fixture
def curves():
    """Inputs and outputs to train on, and inputs to predict for."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((8, 6)), rng.standard_normal((8, 9)), rng.standard_normal((3, 6))


def test_nadaraya_watson_is_a_weighted_mean(curves):
    X, Y, new = curves
    expected = np.zeros((3, 9))
    for j, x in enumerate(new):
        weight = [np.exp(-np.mean((x - row) ** 2) / (2 * 0.7**2)) for row in X]
        expected[j] = sum(w * y for w, y in zip(weight, Y, strict=True)) / sum(weight)
    np.testing.assert_allclose(NadarayaWatson(0.7).fit(X, Y)(new), expected, rtol=1e-12)
    np.testing.assert_allclose(NadarayaWatson(1e-3).fit(X, Y)(X), Y)  # no weight underflows
    np.testing.assert_allclose(MeanCurve().fit(X, Y)(new), np.tile(Y.mean(axis=0), (3, 1)))


def test_bases():
    for m in (9, 100):
        theta = (np.arange(m) + 0.5) / m  # cosines are orthonormal at the middles
        shifted = np.cos(np.pi * np.outer(theta, np.arange(5))) * np.sqrt(2.0)
        shifted[:, 0] = 1.0
        np.testing.assert_allclose(shifted.T @ shifted / m, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(cosines(5, 3)[:, 1], np.sqrt(2) * np.cos(np.pi * np.arange(5) / 4))
    atoms = splines(50, 7)
    assert atoms.shape == (50, 7)
    np.testing.assert_allclose(atoms.sum(axis=1), 1.0)


def test_triple_basis_is_kernel_ridge_of_coefficients(curves):
    """In the limit of many random features, by scikit-learn."""
    X, Y, new = curves
    inner, outer = cosines(6, 4), cosines(9, 5)
    ridge = KernelRidge(alpha=0.05 * 8, kernel="rbf", gamma=0.5 / 0.9**2)
    ridge.fit(X @ inner / 6, Y @ outer / 9)
    expected = ridge.predict(new @ inner / 6) @ outer.T
    found = TripleBasis(0.9, 0.05, 4, 5, 200_000).fit(X, Y)(new)
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


def test_the_additive_kernel_is_a_double_integral(curves):
    X, Y, new = curves
    method = KernelAdditive(0.8, 0.02, 0.3, 0.25)
    s = np.linspace(0.0, 1.0, 6)

    def by_hand(a, b):
        return np.mean(
            [
                [
                    np.exp(-((s[j] - s[k]) ** 2) / 0.18) * np.exp(-((a[j] - b[k]) ** 2) / 1.28)
                    for k in range(6)
                ]
                for j in range(6)
            ]
        )

    between = np.array([[by_hand(a, b) for b in X] for a in new])
    np.testing.assert_allclose(method.kernel(new, X), between, rtol=1e-4)
    K = np.array([[by_hand(a, b) for b in X] for a in X])
    t = np.linspace(0.0, 1.0, 9)
    T = np.exp(-((t[:, None] - t) ** 2) / (2 * 0.25**2))
    dense = np.linalg.solve(np.kron(K, T) + 0.02 * 8 * np.eye(72), Y.ravel()).reshape(8, 9)
    np.testing.assert_allclose(method.fit(X, Y)(new), between @ dense @ T, rtol=1e-3, atol=1e-4)


def test_the_additive_model_on_fine_grids_thins_the_points():
    X = np.sin(np.linspace(0.0, 3.0, 101) * np.arange(1, 5)[:, None])
    fine, coarse = (
        KernelAdditive(1.0, 0.1).kernel(X, X),
        KernelAdditive(1.0, 0.1).kernel(X[:, ::5], X[:, ::5]),
    )
    np.testing.assert_allclose(fine, coarse, rtol=1e-10)


def test_projection_learning_minimizes_its_objective(curves):
    """Normal equations of mean ‖y_i - Φ f(x_i)‖² + alpha ‖f‖², by a dense least squares."""
    X, Y, new = curves
    alpha, atoms = 0.03, splines(9, 5)

    def kernel(A, B):
        return np.exp(-np.mean((A[:, None] - B) ** 2, axis=2) / (2 * 0.9**2))

    K = kernel(X, X)
    root = np.linalg.cholesky(K).T  # ‖f‖² = ‖root a‖²
    system = np.vstack(
        [np.kron(K, atoms) / np.sqrt(8 * 9), np.sqrt(alpha) * np.kron(root, np.eye(5))]
    )
    right = np.concatenate([Y.ravel() / np.sqrt(8 * 9), np.zeros(40)])
    a = np.linalg.lstsq(system, right)[0].reshape(8, 5)
    found = ProjectionLearning(0.9, alpha, 5).fit(X, Y)(new)
    np.testing.assert_allclose(found, kernel(new, X) @ a @ atoms.T, rtol=1e-7, atol=1e-9)


def test_choice_is_by_held_out_rows():
    X = np.linspace(0.0, 1.0, 40)[:, None] * np.ones(5)
    Y = np.sin(6.0 * X) + 0.3 * np.random.default_rng(0).standard_normal(X.shape)
    widths = [1e-3 * spread(X), 0.1 * spread(X), 10.0 * spread(X)]
    best = chosen([NadarayaWatson(w) for w in widths], X, Y, False, 0)
    assert best.width == widths[1]


@pytest.mark.slow
def test_quick_form(tmp_path):
    results, page = quick_form("functional_comparisons", tmp_path, "--splits", "1")
    assert set(results.method) == set(functional_comparisons.NAMES)
    error = results.set_index(["data", "method"]).nmse
    for data in ("noise", "type 2", "type 3"):
        assert (error[data].drop("mean") < error[data]["mean"]).all()
    # whole curves that are outliers: only losses that bound their influence bear them
    assert error["type 2", "H2"] < 0.5 * error["type 2"][list(functional_comparisons.OTHERS)].min()
    assert f"{1e3 * error['noise', 'KPL']:.2f}" in page

"""Operator-valued kernels are what their formulas say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from fenchel.kernels import (
    Decomposable,
    DistanceQuantile,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    OperatorCallable,
    OperatorKernel,
    OperatorSum,
    Polynomial,
    Transformable,
    operator_valued,
    resolve,
)

B = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])
MAPS = [np.random.default_rng(j).normal(size=(2, 4)) for j in range(3)]


def bend(X):
    return np.column_stack([X[:, 0] * X[:, 1], np.sin(X[:, 2])])


def heat(X, Z):
    """(n, m, 3, 3): a width for each pair of outputs, after Alvarez et al., section 5.2."""
    widths = np.array([0.5, 1.0, 2.0])
    total = widths[:, None] + widths
    squares = np.sum((X[:, None] - Z) ** 2, axis=2)[:, :, None, None]
    return np.exp(-squares / total) / total ** (X.shape[1] / 2)


KERNELS = {
    "decomposable": Decomposable(Gaussian(1.5), B),
    "decomposable, linear": Decomposable(Linear(), B),
    "decomposable, scikit-learn": Decomposable(RBF(0.7) + RBF(2.0), B.tolist()),
    "transformable": Transformable(Laplacian(1.0), MAPS),
    "transformable, polynomial": Transformable(Polynomial(2), [*MAPS[:2], bend]),
    "sum": Decomposable(Gaussian(1.5), B)
    + Decomposable(Matern(0.5), np.ones((3, 3)))
    + Transformable(Gaussian(2.0), MAPS),
    "callable": OperatorCallable(heat, 3),
}
every = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4))


def gram(kernel, X):
    """The (n p, n p) matrix of the operator."""
    p = kernel.n_outputs
    return kernel.blocks(X).transpose(0, 2, 1, 3).reshape(len(X) * p, -1)


def test_decomposable_by_definition():
    X, Z = rows(3), rows(4, 1)
    blocks = KERNELS["decomposable"].blocks(X, Z)
    assert blocks.shape == (3, 4, 3, 3)
    for i in range(3):
        for k in range(4):
            value = np.exp(-np.sum((X[i] - Z[k]) ** 2) / (2 * 1.5**2))
            np.testing.assert_allclose(blocks[i, k], value * B, rtol=1e-12)


def test_transformable_by_definition():
    X, Z = rows(3), rows(4, 1)
    blocks = KERNELS["transformable"].blocks(X, Z)
    bent = KERNELS["transformable, polynomial"].blocks(X, Z)
    for i in range(3):
        for k in range(4):
            for j in range(3):
                for m in range(3):
                    distance = np.linalg.norm(MAPS[j] @ X[i] - MAPS[m] @ Z[k])
                    np.testing.assert_allclose(blocks[i, k, j, m], np.exp(-distance), rtol=1e-10)
            product = float((MAPS[0] @ X[i]) @ bend(Z[[k]])[0])
            np.testing.assert_allclose(bent[i, k, 0, 2], (product + 1.0) ** 2, rtol=1e-10)


def test_sum_by_definition():
    X, Z = rows(3), rows(4, 1)
    total = KERNELS["sum"]
    assert len(total.kernels) == 3  # a flat list
    parts = [kernel.blocks(X, Z) for kernel in total.kernels]
    np.testing.assert_allclose(total.blocks(X, Z), parts[0] + parts[1] + parts[2], rtol=1e-12)


def test_callable_by_definition(monkeypatch):
    X, Z = rows(7), rows(4, 1)
    np.testing.assert_array_equal(KERNELS["callable"].blocks(X, Z), heat(X, Z))
    monkeypatch.setattr(operator_valued, "_CHUNK_VALUES", 200)  # one row at a time
    np.testing.assert_array_equal(KERNELS["callable"].blocks(X, Z), heat(X, Z))


@every
def test_columns_and_diagonal_are_those_of_the_blocks(kernel):
    X, Z = rows(40), rows(6, 1)
    outputs = np.array([2, 0, 0, 1, 2, 1])
    blocks = kernel.blocks(X, Z)
    expected = blocks[:, np.arange(6), :, outputs].transpose(1, 2, 0)
    np.testing.assert_allclose(kernel.columns(X, Z, outputs), expected, rtol=1e-12, atol=1e-14)
    diagonal = np.einsum("iijj->ij", kernel.blocks(X))
    np.testing.assert_allclose(kernel.diag(X), diagonal, rtol=1e-12)
    assert kernel.columns(X, Z[:0], outputs[:0]).shape == (40, 3, 0)


@every
def test_symmetric_and_positive(kernel):
    K = gram(kernel, rows(25))
    np.testing.assert_allclose(K, K.T, atol=1e-12 * K.max())
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)


@every
def test_clone_and_parameters(kernel):
    X = rows(5)
    copy = clone(kernel)
    assert type(copy) is type(kernel)
    np.testing.assert_array_equal(copy.blocks(X), kernel.blocks(X))
    assert copy.n_outputs == 3
    assert isinstance(copy, OperatorKernel)
    assert type(kernel).__name__ in repr(kernel)


def test_parameters_of_the_scalar_kernel():
    kernel = clone(Decomposable(Gaussian(1.0), B)).set_params(kernel__length_scale=3.0)
    assert kernel.kernel == Gaussian(3.0)


def test_widths_are_read_off_the_rows():
    X, weight = rows(30), np.random.default_rng(2).uniform(0.5, 2.0, 30)
    kernel = Decomposable(Gaussian("median"), B)
    fitted = kernel.resolved(X, weight)
    assert fitted.kernel == resolve(Gaussian("median"), X, weight)
    assert kernel.kernel == Gaussian("median")
    total = (kernel + kernel).resolved(X, weight)
    assert [part.kernel for part in total.kernels] == [fitted.kernel] * 2
    assert Decomposable(None, B).resolved(X).kernel == resolve(Gaussian(), X)


def test_widths_of_transformable_are_read_off_the_transformed_rows():
    X = rows(30)
    kernel = Transformable(Laplacian(DistanceQuantile(0.7)), MAPS)
    fitted = kernel.resolved(X)
    stacked = np.concatenate([X @ T.T for T in MAPS])
    np.testing.assert_allclose(
        fitted.kernel.length_scale,
        resolve(Laplacian(DistanceQuantile(0.7)), stacked).length_scale,
        rtol=1e-12,
    )
    weight = np.arange(30) % 3
    repeated = kernel.resolved(np.repeat(X, weight, axis=0))
    weighted = kernel.resolved(X[weight > 0], weight[weight > 0].astype(float))
    np.testing.assert_allclose(
        weighted.kernel.length_scale, repeated.kernel.length_scale, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("kernel", "complaint"),
    [
        (Decomposable("linear", [[1.0, 2.0]]), "output must be a square matrix"),
        (
            Decomposable("linear", [[1.0, np.nan], [np.nan, 1.0]]),
            "output must be an array",
        ),
        (Decomposable("linear", [[1.0, 0.5], [0.0, 1.0]]), "output must be symmetric"),
        (
            Decomposable("linear", [[1.0, 2.0], [2.0, 1.0]]),
            "semi-definite, got a matrix with",
        ),
        (Decomposable("precomputed", B), "cannot be 'precomputed'"),
        (Decomposable("gausian", B), "kernel must be one of"),
        (Transformable("linear", []), "one entry for each output"),
        (Transformable("linear", [np.eye(3)]), r"transforms\[0\] .* each of the 4 features"),
        (Transformable("linear", [np.eye(4), MAPS[0]]), r"number of columns, got \[4, 2\]"),
        (Transformable("linear", [lambda X: X[:, 0]]), r"transforms\[0\] must return an array"),
        (OperatorCallable(heat, 0), "n_outputs must be an integer >= 1, got 0"),
        (OperatorCallable(heat, True), "n_outputs must be an integer >= 1, got True"),
        (OperatorCallable(heat, 2.5), "n_outputs must be an integer >= 1, got 2.5"),
    ],
)
def test_refusals(kernel, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint):
        kernel.resolved(rows(5))


def test_a_function_must_return_blocks():
    kernel = OperatorCallable(heat, 2)
    with pytest.raises(ValueError, match=r"an array \(5, 5, 2, 2\) .* got shape \(5, 5, 3, 3\)"):
        kernel.blocks(rows(5))


def test_only_kernels_of_as_many_outputs_add_up():
    with pytest.raises(TypeError, match="unsupported operand"):
        KERNELS["decomposable"] + 1.0
    with pytest.raises(ValueError, match=r"same number of outputs, got \[3, 2\]"):
        _ = OperatorSum([KERNELS["callable"], Decomposable("linear", np.eye(2))]).n_outputs

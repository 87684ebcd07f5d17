"""Functions of a kernel from their coefficients, with bounds on what rounding may do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from judge.findings import UNIT, wide
from judge.kernels import Values, kernel_values


class Function(NamedTuple):
    """Values (n, p) of a function, and how far rounding may move them."""

    value: np.ndarray
    error: np.ndarray


class Term(NamedTuple):
    """k(x, z_i) B: scalar kernel values times a matrix between outputs."""

    values: Values
    bound: np.ndarray
    """√(k(x, x) k(z, z)), what errors of a factorization are relative to."""
    output: np.ndarray

    def of(self, coefficients: np.ndarray) -> Function:
        """Σ_i k(x, z_i) B a_i.

        What a factorization of the kernel or a sum over rows loses is as many units of rounding
        as there are rows, of √(k(x, x) k(z, z)) each, and a few more.
        """
        size = np.abs(coefficients) @ np.abs(self.output)
        rounding = self.values.error + (len(coefficients) + 32) * UNIT * self.bound
        return Function(self.values.value @ (coefficients @ self.output), _sum(rounding, size))


class FeatureTerm(NamedTuple):
    """The same for a kernel that is the product of features."""

    rows: np.ndarray
    centres: np.ndarray
    output: np.ndarray

    def of(self, coefficients: np.ndarray) -> Function:
        """Σ_i ⟨φ(x), φ(z_i)⟩ B a_i."""
        pushed = coefficients @ self.output
        size = _sum(np.abs(self.centres.T), np.abs(coefficients) @ np.abs(self.output))
        units = len(coefficients) + self.rows.shape[1] + 36
        error = units * UNIT * _sum(np.abs(self.rows), size)
        return Function(self.rows @ (self.centres.T @ pushed), error)


def _sum(sizes: np.ndarray, by: np.ndarray) -> np.ndarray:
    """A product of what has no sign, which needs no extended precision, but its range."""
    unit = np.abs(by).max(initial=0.0) or 1.0
    large = sizes.max(initial=0.0) or 1.0
    product = (sizes / large).astype(float) @ (by / unit).astype(float)
    return np.asarray(wide(product) * large * unit)


def combination(terms: list[Any], coefficients: np.ndarray, n: int) -> Function:
    """h(x) = Σ_m Σ_i k_m(x, z_i) B_m a_i for n rows x."""
    parts = [term.of(wide(coefficients)) for term in terms]
    nothing = wide(np.zeros((n, coefficients.shape[1])))
    value = sum((part.value for part in parts), start=nothing)
    return Function(value, sum((part.error for part in parts), start=nothing))


def scalar_term(kernel: Any, rows: np.ndarray, centres: np.ndarray, output: np.ndarray) -> Term:
    """The term of a scalar kernel."""
    values = kernel_values(kernel, rows, centres)
    return Term(values, _bound(kernel, rows, centres), wide(output))


def given_term(gram: np.ndarray, sizes: np.ndarray, output: np.ndarray) -> Term:
    """The term of kernel values that were given, with √k(x, x) √k(z, z) beside them."""
    return Term(Values(wide(gram), UNIT * np.abs(wide(gram))), wide(sizes), wide(output))


def feature_terms(
    feature_map: Any, rows: np.ndarray, centres: np.ndarray, output: np.ndarray
) -> list[FeatureTerm]:
    """The terms of an approximated kernel, which is that of its public features."""
    phi, psi = wide(feature_map.transform(rows)), wide(feature_map.transform(centres))
    if phi.ndim == 2:
        return [FeatureTerm(phi, psi, wide(output))]
    terms = []
    for j in range(phi.shape[1]):
        for other in range(phi.shape[1]):
            unit = np.zeros(output.shape)
            unit[other, j] = 1.0
            terms.append(FeatureTerm(phi[:, j], psi[:, other], unit))
    return terms


def diagonal(kernel: Any, rows: np.ndarray) -> np.ndarray:
    """k(x, x) of each row."""
    blocks = (rows[i : i + 1] for i in range(len(rows)))
    return np.abs(wide([kernel_values(kernel, block, block).value[0, 0] for block in blocks]))


def operator_diagonal(kernel: Any, rows: np.ndarray) -> np.ndarray:
    """The diagonal of K(x, x) of each row, (n, p)."""
    name = type(kernel).__name__
    if name == "Decomposable":
        return np.multiply.outer(diagonal(kernel.kernel, rows), np.diag(wide(kernel.output)))
    if name == "OperatorSum":
        return wide(np.sum([operator_diagonal(part, rows) for part in kernel.kernels], axis=0))
    images = [t(rows) if callable(t) else rows @ np.asarray(t).T for t in kernel.transforms]
    return np.stack([diagonal(kernel.kernel, image) for image in images], axis=1)


def _bound(kernel: Any, rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    inner = kernel.kernel if type(kernel).__name__ == "WithRanks" else kernel
    if type(inner).__name__ in ("Gaussian", "RBF", "Laplacian", "Matern"):
        return np.ones((len(rows), len(centres)))
    return np.sqrt(np.multiply.outer(diagonal(kernel, rows), diagonal(kernel, centres)))


def operator_terms(kernel: Any, rows: np.ndarray, centres: np.ndarray) -> list[Term]:
    """The terms of an operator-valued kernel with numbers in it, by the name of its class."""
    name = type(kernel).__name__
    if name == "Decomposable":
        return [scalar_term(kernel.kernel, rows, centres, kernel.output)]
    if name == "OperatorSum":
        return [term for part in kernel.kernels for term in operator_terms(part, rows, centres)]
    if name == "Transformable":
        p = len(kernel.transforms)
        terms = []
        for j in range(p):
            for other in range(p):
                left, right = (
                    np.asarray(t(part) if callable(t) else part @ np.asarray(t).T)
                    for t, part in (
                        (kernel.transforms[j], rows),
                        (kernel.transforms[other], centres),
                    )
                )
                unit = np.zeros((p, p))
                unit[other, j] = 1.0  # coefficients of one output, values of another
                terms.append(scalar_term(kernel.kernel, left, right, unit))
        return terms
    raise NotImplementedError(f"the judge knows no operator-valued kernel {name}")

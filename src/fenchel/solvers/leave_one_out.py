"""Leave-one-out residuals and predictions of kernel ridge regression, without refitting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, solve_triangular

from fenchel._typing import AnyArray, FloatArray
from fenchel.design import Factored, RowBlocks
from fenchel.design.tiled import multiplied, weighted_square
from fenchel.solvers.closed_form import MOST_FACTORS, groups_of
from fenchel.solvers.conjugate_gradients import shift_of

_VANISHING = 1e3 * np.finfo(float).eps
_BLOCK_VALUES = 2**20
_CHUNK_VALUES = 2**22  # residuals of a path at a time: 32 MiB


class Spectrum:
    r"""Residuals of ridge regression for any strength, from one eigendecomposition.

    .. math:: \sqrt w\, r(t) = P(t)\, \sqrt w\, y, \qquad
              P(t) = \Pi\, (I + t\, \Pi A \Pi)^{-1}\, \Pi, \qquad A = \sqrt w K \sqrt w

    where Π is the projection that subtracts the weighted mean, or the identity without intercept.
    The eigenvector √w of the offset is omitted from :math:`\Pi A \Pi = Q \Lambda Q^\top`, so that
    :math:`P(t) = Q (1 + t \Lambda)^{-1} Q^\top` has no cancellation. For features of lower rank,
    with T = Π√w Φ rotated to the eigenvectors of its square,
    :math:`P(t) = \Pi - T\, t (1 + t \Lambda)^{-1}\, T^\top`.

    Features are (n, r), or with ``gram`` the Gram matrix of the rows. The weights w are positive.
    """

    def __init__(
        self, features: FloatArray, weight: FloatArray, *, gram: bool, fit_intercept: bool
    ) -> None:
        self.root = np.sqrt(weight)
        self.constant = self.root / np.linalg.norm(self.root) if fit_intercept else None
        self.in_rows = gram or len(features) <= features.shape[1]
        if self.in_rows:
            matrix = _centred_gram(features, self.root, self.constant, gram)
            values, self.vectors = eigh(matrix, overwrite_a=True, check_finite=False)
            if fit_intercept:
                values, self.vectors = values[:-1], self.vectors[:, :-1]
        else:
            scaled = _centred(self.root[:, None] * features, self.constant)
            values, rotation = eigh(weighted_square(scaled), overwrite_a=True, check_finite=False)
            self.vectors = multiplied(scaled, rotation)
        self.values = np.maximum(values, 0.0)

    def complement(self, t: FloatArray) -> FloatArray:
        """Diagonal of P(t), that is 1 - M_ii, for several t, (n, m); NaN where it is zero."""
        shrink = self._shrink(t)
        diagonal = np.empty((len(self.root), len(t)))
        size = max(1, _BLOCK_VALUES // max(1, len(shrink)))
        for start in range(0, len(diagonal), size):
            rows = slice(start, start + size)
            diagonal[rows] = multiplied(self.vectors[rows] ** 2, shrink)
        if self.in_rows:
            return _without(diagonal, diagonal <= 0.0)
        free = 1.0 if self.constant is None else 1.0 - self.constant[:, None] ** 2
        diagonal = free - diagonal
        return _without(diagonal, diagonal <= _VANISHING)

    def residuals(self, t: FloatArray, targets: FloatArray) -> FloatArray:
        """Residuals of targets (n, q) for several t, (n, m, q)."""
        scaled = _centred(self.root[:, None] * targets, self.constant)
        pulled = self._shrink(t)[:, :, None] * multiplied(self.vectors.T, scaled)[:, None, :]
        part = multiplied(self.vectors, pulled.reshape(len(pulled), -1))
        part = part.reshape(len(scaled), len(t), -1)
        left = part if self.in_rows else scaled[:, None, :] - part
        return np.asarray(left / self.root[:, None, None])

    def _shrink(self, t: FloatArray) -> FloatArray:
        """What the basis is multiplied with, (k, m)."""
        shrunk = 1.0 / (1.0 + np.outer(self.values, t))
        return shrunk if self.in_rows else shrunk * t


class LeaveOneOutPath:
    r"""Leave-one-out residuals of kernel ridge regression for any strength.

    .. math:: y_i - h_{-i}(x_i) = W\, \mathrm{diag}(1 - M_{ii}(\sigma))^{-1}\, W^\top r_i,
              \qquad B = W \mathrm{diag}(\sigma) W^\top

    where row i is removed with all its weight and all its outputs, and alpha Σs remains that of
    all rows. M(σ) is the hat matrix of the kernel σk, with weights and intercept, for
    t = σ / (alpha Σs) in :class:`Spectrum`. The block of a row in the hat matrix is diagonal in
    the eigenvectors W of the coupling.

    The arguments are those of :class:`Spectrum`, with targets (n, p), the weights s and B.
    """

    def __init__(
        self,
        features: FloatArray,
        targets: FloatArray,
        sample_weight: FloatArray,
        output: FloatArray,
        *,
        gram: bool,
        fit_intercept: bool,
    ) -> None:
        self.spectrum = Spectrum(features, sample_weight, gram=gram, fit_intercept=fit_intercept)
        values, self.basis = eigh(output)
        self.values = np.maximum(values, 0.0)
        self.targets = targets @ self.basis
        self.weight = sample_weight
        self.total = float(sample_weight.sum())

    def residuals(self, alphas: FloatArray) -> FloatArray:
        """Leave-one-out residuals for several strengths, (m, n, p); NaN where undefined."""
        rotated = np.empty((len(alphas), *self.targets.shape))
        for value in np.unique(self.values):
            mine = self.values == value
            t = value / (alphas * self.total)
            left = self.spectrum.residuals(t, self.targets[:, mine])
            left /= self.spectrum.complement(t)[:, :, None]
            rotated[:, :, mine] = left.transpose(1, 0, 2)
        return np.asarray(rotated @ self.basis.T)

    def scores(self, alphas: FloatArray) -> FloatArray:
        """Minus the weighted mean squared residual, and its standard error, (2, m)."""
        size = max(1, _CHUNK_VALUES // self.targets.size)
        parts = np.array_split(alphas, range(size, len(alphas), size))
        return np.concatenate([self._moments(self.residuals(part)) for part in parts], axis=1)

    def _moments(self, residuals: FloatArray) -> FloatArray:
        squares = np.mean(residuals**2, axis=2)
        share = self.weight / self.total
        mean = squares @ share
        n = len(share)
        error = np.sqrt((squares - mean[:, None]) ** 2 @ share**2 * (n / (n - 1)))
        return np.stack([-mean, error])


def leave_one_out(
    features: FloatArray,
    residual: FloatArray,
    weight: FloatArray,
    output: FloatArray,
    *,
    gram: bool,
    fit_intercept: bool,
) -> FloatArray:
    """Leave-one-out residuals of a fit at one strength, (n, p), from its own residuals.

    As :class:`LeaveOneOutPath`, with the weights c = s / (alpha Σs) in place of s and alpha. For
    up to 16 distinct eigenvalues of the coupling, one Cholesky factor is computed for each:
    O(n r²) for features of rank r < n, else O(n³). NaN where undefined. A Gram matrix is
    overwritten.
    """
    values, basis = eigh(output)
    values = np.maximum(values, 0.0)
    groups = groups_of(values)
    if len(groups) <= MOST_FACTORS:
        chosen = _in_rows if gram or len(features) <= features.shape[1] else _in_features
        rotated = residual @ basis
        each = chosen(features, weight, [value for value, _ in groups], gram, fit_intercept)
        for (_, columns), own in zip(groups, each, strict=True):
            rotated[:, columns] /= own[:, None]
        return np.asarray(rotated @ basis.T)
    spectrum = Spectrum(features, weight, gram=gram, fit_intercept=fit_intercept)
    return np.asarray((residual @ basis) / spectrum.complement(values) @ basis.T)


def ridge_smoother(
    features: FloatArray, weight: FloatArray, scale: float, *, gram: bool, fit_intercept: bool
) -> tuple[FloatArray, FloatArray]:
    r"""Hat matrix of ridge regression: weights of the targets in the prediction at a point x.

    .. math:: h(x) + b = \sum_i H_i(x)\, y_i, \qquad H(x) = \varphi(x)^\top P + u

    Without row i the prediction is :math:`h(x) + b - H_i(x)\, e_i`, where e are the leave-one-out
    residuals: removing a row is equivalent to replacing y_i by its leave-one-out prediction.

    Returns P (r, n) and u (n,) for the weights c = s / (alpha Σs) and the kernel times ``scale``.
    With a Gram matrix, φ(x) are kernel values.
    """
    if gram:
        slopes = Factored(scale * features).factor(1.0 / weight).inverse()
        constant = np.zeros(len(weight))
        if fit_intercept:
            sums = slopes.sum(axis=0)
            constant = sums / sums.sum()
            slopes -= np.outer(sums, constant)
        return scale * slopes, constant
    constant = weight / weight.sum() if fit_intercept else np.zeros(len(weight))
    mean = constant @ features
    pulled = (features - mean).T * weight
    system = scale * (pulled @ (features - mean))
    np.einsum("ii->i", system)[:] += 1.0
    factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    slopes = scale * cho_solve(factor, pulled, check_finite=False)
    return slopes, constant - mean @ slopes


def complement_of(factored: Factored, fit_intercept: bool) -> FloatArray:
    """1 - M_ii from a factor of K + diag(d): d_i (G_ii - (G1)_i² / Σ G1).

    G is the inverse, and d = 1/(t c) for the weights c and the kernel times t.
    """
    shift = factored.shift
    sums = factored.solve(np.ones((len(shift), 1)))[:, 0] if fit_intercept else None
    own = shift * factored.inverse_diagonal()
    if sums is None:
        return own
    left = own - shift * sums**2 / sums.sum()
    return _without(left, left <= _VANISHING * own)


def _in_rows(
    features: FloatArray, weight: FloatArray, values: list[float], gram: bool, fit_intercept: bool
) -> Iterator[FloatArray]:
    """1 - M_ii for each value, from a factor for each.

    An intercept takes up any constant in the kernel. With one, the constant direction is no
    longer that of the least eigenvalue, which centred features make it, and G1 loses no digits.
    """
    matrix = features if gram else multiplied(features, features.T)
    if fit_intercept:
        matrix += float(np.einsum("ii->i", matrix).max())
    factored = Factored(matrix)
    largest = float(factored.diagonal.max())
    for value in values:
        left = np.full(len(weight), np.nan)
        with suppress(LinAlgError):  # the shift is below the rounding errors of the matrix
            left = complement_of(factored.factor(shift_of(weight, value, largest)), fit_intercept)
            factored.restore()
        yield left


def _in_features(
    features: FloatArray, weight: FloatArray, values: list[float], gram: bool, fit_intercept: bool
) -> Iterator[FloatArray]:
    """1 - M_ii for each value t, from I + t Φᵀ c Φ, the features centred by the weighted mean."""
    root = np.sqrt(weight)
    constant = root / np.linalg.norm(root) if fit_intercept else None
    scaled = _centred(root[:, None] * features, constant)
    square, blocks = weighted_square(scaled), RowBlocks(*scaled.shape)
    for t in values:
        system = t * square
        np.einsum("ii->i", system)[:] += 1.0
        factor = cholesky(system, lower=True, check_finite=False)
        left = 1.0 - t * np.concatenate(blocks.map(partial(_lengths, factor, scaled)))
        if constant is not None:
            left -= constant**2
        yield _without(left, left <= _VANISHING)


def _lengths(factor: FloatArray, scaled: FloatArray, rows: slice) -> FloatArray:
    """Squared lengths of L⁻¹ times some rows."""
    solved = solve_triangular(factor, scaled[rows].T, lower=True, check_finite=False)
    return np.einsum("ij,ij->j", solved, solved)


def _centred(scaled: FloatArray, constant: FloatArray | None) -> FloatArray:
    """Π times an array of rows."""
    return scaled if constant is None else scaled - np.outer(constant, constant @ scaled)


def _centred_gram(
    features: FloatArray, root: FloatArray, constant: FloatArray | None, gram: bool
) -> FloatArray:
    """Π A Π, with an eigenvalue above all others for the constant."""
    matrix = root[:, None] * (features if gram else multiplied(features, features.T)) * root
    if constant is None:
        return matrix
    matrix = _centred(_centred(matrix, constant).T, constant)
    largest = float(np.abs(matrix).sum(axis=1).max())
    matrix += np.outer(constant, (2.0 * largest or 1.0) * constant)
    return matrix


def _without(values: FloatArray, where: AnyArray) -> FloatArray:
    return np.where(where, np.nan, values)

"""Kernels between sampled curves, and kernels of a subset of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import Kernel

from fenchel._grids import as_grid, quadrature_weights
from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, FloatArray
from fenchel._validation import COUNT, NONE, NUMBERS, WITH_DATA, declared, shown
from fenchel.kernels.base import ScalarKernel, two_dimensional
from fenchel.kernels.distances import squared_distances, symmetric
from fenchel.kernels.of_seen import KERNEL, OfSeen
from fenchel.kernels.widths import (
    NAMED_WIDTHS,
    DistanceQuantile,
    check_length_scale,
    check_measured,
    check_scale_or_rule,
)

_CURVES = declared(quadrature=WITH_DATA, points=NONE | NUMBERS, n_channels=COUNT)
_BLOCK = 64  # rows of a block that stays in the processor's cache


class BetweenCurves(OfSeen):
    r"""Kernel between curves: a kernel of vectors with L² distances and inner products.

    .. math:: k(x, x') = k_0(W x, W x'), \qquad
              \|W x - W x'\|^2 = \sum_j \mu_j \|x(\theta_j) - x'(\theta_j)\|^2
              \approx \int \|x - x'\|^2\, \mathrm{d}\mu

    where W multiplies the values at θ_j by :math:`\sqrt{\mu_j}`. With ``Gaussian`` it is
    :math:`\exp(-\rho \|x - x'\|_{L^2}^2)` with ρ = 1/(2 length_scale²), with ``Laplacian``
    :math:`\exp(-\rho \|x - x'\|_{L^2})` with ρ = 1/length_scale.

    Parameters
    ----------
    kernel : kernel
        Kernel of vectors, for example ``Gaussian("median")``. Data-driven length scales are
        computed from the L² distances.
    quadrature : {"monte-carlo", "trapezoid"} or array-like of shape (n_points,)
        Weights μ_j: 1/n_points each, the trapezoidal rule divided by the length of the
        interval, or an array of weights. Weights of one give plain sums over the points.
    points : array-like of shape (n_points,), optional
        Points θ_j, strictly increasing; equidistant by default. Only ``"trapezoid"`` uses
        them.
    n_channels : int
        Number of values at each point. The columns of X are the channels of the first point,
        then those of the second, and so on: an array (n_samples, n_points, n_channels),
        reshaped.

    Raises
    ------
    TypeError, ValueError
        On evaluation, if a parameter is invalid or does not match the columns of X.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), *Functional output regression with infimal
    convolution: exploring the Huber and ε-insensitive losses*, appendix B.2.2.

    Examples
    --------
    >>> from fenchel.kernels import BetweenCurves, Gaussian
    >>> kernel = BetweenCurves(Gaussian(1.0), quadrature="trapezoid")
    >>> kernel([[0.0, 0.0, 0.0]], [[2.0, 2.0, 2.0], [0.0, 2.0, 0.0]]).round(4)
    array([[0.1353, 0.3679]])
    """

    constraints = _CURVES

    def __init__(
        self,
        kernel: Kernel,
        quadrature: Any = "monte-carlo",
        points: Any = None,
        n_channels: int = 1,
    ) -> None:
        self.kernel = kernel
        self.quadrature = quadrature
        self.points = points
        self.n_channels = n_channels

    def seen(self, X: FloatArray) -> FloatArray:
        """Return rows whose Euclidean distances are the L² distances of the curves."""
        KERNEL(self.kernel, "kernel")
        weights = _weights(self, X.shape[1])
        return X * np.repeat(np.sqrt(weights), self.n_channels)


class IntegralGaussian(ScalarKernel):
    r"""Average over the points of Gaussian kernels between the values of two curves.

    .. math:: k(x, x') = \sum_j \mu_j \exp\left(
              -\frac{\|x(\theta_j) - x'(\theta_j)\|^2}{2\, \mathrm{length\_scale}^2}\right)

    The norm is the Euclidean norm over the channels. If two curves agree on a part of the
    interval and differ widely elsewhere, the kernel value is the measure of that part. A Gaussian
    kernel of their L² distance would be nearly zero. The paper writes ρ for 1/(2 length_scale²).

    Parameters
    ----------
    length_scale : float, array-like of shape (n_channels,), str or DistanceQuantile
        Length scale, in the units of the values. ``"median"`` (default): the median L²
        distance of the curves, with weights μ_j scaled to sum to one.
        :class:`DistanceQuantile`: another quantile of these distances. Both are computed from
        the data when an estimator is fitted.
    quadrature, points, n_channels
        As in :class:`BetweenCurves`.

    Raises
    ------
    TypeError, ValueError
        As in :class:`BetweenCurves`.

    References
    ----------
    Appendix B.4 of the article cited in :class:`BetweenCurves`.

    Examples
    --------
    >>> from fenchel.kernels import IntegralGaussian
    >>> IntegralGaussian(1.0)([[0.0, 0.0]], [[0.0, 2.0], [2.0, 2.0]]).round(4)
    array([[0.5677, 0.1353]])
    """

    constraints = declared(**_CURVES, length_scale=check_scale_or_rule)

    def __init__(
        self,
        length_scale: Any = "median",
        quadrature: Any = "monte-carlo",
        points: Any = None,
        n_channels: int = 1,
    ) -> None:
        self.length_scale = length_scale
        self.quadrature = quadrature
        self.points = points
        self.n_channels = n_channels

    def seen(self, X: FloatArray) -> FloatArray:
        """Return rows whose Euclidean distances are the L² distances, weights scaled to sum 1."""
        scale = self.length_scale
        rule = NAMED_WIDTHS.get(scale) if isinstance(scale, str) else scale
        if isinstance(rule, DistanceQuantile) and rule.standardize:
            raise ValueError(
                "length_scale of IntegralGaussian must be a positive number, one for each "
                "channel, 'median' or a DistanceQuantile that does not standardize, got "
                f"{scale!r}"
            )
        weights = _weights(self, X.shape[1])
        return X * np.repeat(np.sqrt(weights / weights.sum()), self.n_channels)

    def _evaluate(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        check_measured(self.length_scale)
        scale = check_length_scale(self.length_scale, self.n_channels)
        weights = _weights(self, X.shape[1])
        first = self._by_points(X, scale)
        second = first if Y is X else self._by_points(Y, scale)

        def block(A: FloatArray, B: FloatArray) -> FloatArray:
            total = np.zeros((len(A), len(B)))
            for j, weight in enumerate(weights):
                values = squared_distances(A[:, j], B[:, j])
                values *= -0.5
                np.exp(values, out=values)
                values *= weight
                total += values
            return total

        with threads_that_pay(_BLOCK):  # the blocks are small
            if second is first:
                return symmetric(block, first)
            values = np.empty((len(X), len(Y)))
            for start in range(0, len(X), _BLOCK):
                values[start : start + _BLOCK] = block(first[start : start + _BLOCK], second)
            return values

    def diag(self, X: npt.ArrayLike) -> FloatArray:
        """Return k(x, x) for each row, (n,): the sum of the weights."""
        X = two_dimensional(X)
        return np.full(len(X), _weights(self, X.shape[1]).sum())

    def _by_points(self, X: FloatArray, scale: float | FloatArray) -> FloatArray:
        """Scaled values (n_samples, n_points, n_channels), contiguous at each point."""
        values = X.reshape(len(X), -1, self.n_channels).transpose(1, 0, 2) / scale
        return np.ascontiguousarray(values).transpose(1, 0, 2)


class OnColumns(OfSeen):
    r"""Kernel that uses only some of the columns of X.

    .. math:: k(x, x') = k_0(x_C, x'_C)

    Combine such kernels by ``*`` and ``+`` when rows contain several kinds of input, for
    example a curve and a vector.

    Parameters
    ----------
    kernel : kernel
        Kernel of these columns. Data-driven length scales are computed from these columns.
    columns : slice, array-like of int or array-like of bool
        The columns: a slice, indices from 0, or a mask with one entry for each column of X.

    Raises
    ------
    TypeError, ValueError
        On evaluation, if X does not have these columns.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import BetweenCurves, Gaussian, OnColumns, resolve
    >>> curve, vector = slice(0, 50), [50, 51]
    >>> kernel = OnColumns(BetweenCurves(Gaussian("median")), curve) * OnColumns(
    ...     Gaussian("scale"), vector
    ... )
    >>> X = np.random.default_rng(0).normal(size=(20, 52))
    >>> resolve(kernel, X)(X).shape
    (20, 20)
    """

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    def seen(self, X: FloatArray) -> FloatArray:
        """Return the selected columns, (n_samples, n_columns)."""
        KERNEL(self.kernel, "kernel")
        return np.ascontiguousarray(X[:, _checked_columns(self.columns, X.shape[1])])


def _weights(kernel: BetweenCurves | IntegralGaussian, n_columns: int) -> FloatArray:
    """Weight of each point, (n_points,), of rows with this many columns."""
    points, n_channels = kernel.points, kernel.n_channels
    COUNT(n_channels, "n_channels")
    n_points, rest = divmod(n_columns, int(n_channels))
    if rest or not n_points:
        raise ValueError(
            f"n_channels must divide the number of columns of X, {n_columns}, got {n_channels}"
        )
    grid = np.linspace(0.0, 1.0, n_points) if points is None else as_grid(points, "points")
    if len(grid) != n_points:
        raise ValueError(
            f"points must have one for each of the {n_points} points of a curve of X, "
            f"got {len(grid)}"
        )
    return quadrature_weights(grid, kernel.quadrature)


def _checked_columns(columns: Any, n_columns: int) -> slice | AnyArray:
    """Columns as an index of columns that exist."""
    allowed = f"a slice, numbers from 0 to {n_columns - 1} or a mask of {n_columns} entries"
    if isinstance(columns, slice):
        if not range(*columns.indices(n_columns)):
            raise ValueError(
                f"columns must be {allowed}, got {shown(columns)}, which is none of them"
            )
        return columns
    index = np.asarray(columns)
    if index.ndim != 1 or index.dtype.kind not in "iub":
        raise TypeError(f"columns must be {allowed}, got {shown(columns)}")
    if index.dtype.kind == "b":
        fits = len(index) == n_columns and index.any()
    else:
        fits = len(index) > 0 and index.min() >= 0 and index.max() < n_columns
    if not fits:
        raise ValueError(f"columns must be {allowed}, got {shown(columns)}")
    return index

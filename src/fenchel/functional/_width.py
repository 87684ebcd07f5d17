r"""The width of the output kernel, chosen by curves that are left out.

With the squared loss the problem falls apart into ridge regressions of the coordinates in the
eigenfunctions of the output kernel, with the strengths :math:`\alpha / \lambda_l`. So from one
eigendecomposition of the input kernel follow the residuals of all curves, each left out of the
fit, for every output kernel and every alpha.

Where points are crowded in a part of the range, no width suits all of it. Kernels of the ranks of
points are then tried as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from fenchel._typing import FloatArray
from fenchel.functional._gaps import USUAL, usual_width
from fenchel.functional._learning import N_COORDINATES, are_noise
from fenchel.functional.curves import Curves
from fenchel.kernels import Gaussian, WithRanks, resolve
from fenchel.learning import Learned
from fenchel.learning.rows import rows_by_content

_OTHERS = (1.0, 0.5, 0.25, 0.15, 0.067, 0.044, 0.03, 0.02, 0.013, 0.009, 0.006)
_STRENGTHS = 10.0 ** np.arange(-2.0, 2.1, 0.5)  # times alpha as learned with the usual width
_ROWS, _POINTS = 350, 200  # the former as in the first descent
_EXPLAINED, _MOST_COORDINATES = 0.95, 32
_OUTLYING = 3.0  # times the median length of residuals
_UNEVEN = 0.2  # distance of the points' distribution from an even one: 12 random ones have 0.25
_NEGLIGIBLE = 1e-10  # share of the largest eigenvalue


class OutputWidth(NamedTuple):
    """An output kernel, and in how many coordinates there is something to learn."""

    kernel: Any
    n_coordinates: int


class Points(NamedTuple):
    """Points of curves: of the grid, or groups of neighbours where these are many."""

    grid: FloatArray
    values: FloatArray
    measure: FloatArray


class _LeftOut(NamedTuple):
    """What curves that are left out lose, for the best strength of an output kernel."""

    kernel: Any
    squares: FloatArray
    """Squared lengths of residuals, (n,)."""
    losses: FloatArray
    """The same times weights."""
    explained: FloatArray
    """What is saved of each coordinate's squares, those with the largest first."""


class _Rows(NamedTuple):
    """Curves to leave out, and the eigensystem of the kernel of their rows, times weights."""

    X: FloatArray
    targets: FloatArray
    weight: FloatArray
    values: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, X: FloatArray, targets: FloatArray, weight: FloatArray, kernel: Any) -> Self:
        """With the kernel of the rows."""
        root = np.sqrt(weight)
        values, vectors = np.linalg.eigh(root[:, None] * kernel(X) * root)
        return cls(X, targets, weight, np.maximum(values, 0.0), vectors)

    def squares(self, targets: FloatArray, of_output: FloatArray, alpha: float) -> FloatArray:
        """Squared errors (n, p) of coordinates of rows that are left out: ridge regression's."""
        root, strength = np.sqrt(self.weight)[:, None], alpha * float(self.weight.sum())
        left = strength / (self.values[:, None] * of_output + strength)
        residual = self.vectors @ (left * (self.vectors.T @ (root * targets)))
        return np.asarray((residual / (self.vectors**2 @ left) / root) ** 2)


def better_width(
    X: FloatArray,
    curves: Curves,
    weight: FloatArray,
    learned: Learned,
    *,
    n_points: float,
    any_alpha: bool,
    unit: float,
    robust: bool,
) -> OutputWidth | None:
    """Return the output kernel that predicts left-out curves best.

    None if the improvement over the default is within the standard error.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    curves : Curves
        Complete.
    weight : ndarray of shape (n,)
    learned : Learned
        The kernel of the rows, and alpha, as learned with the usual width.
    n_points : float
        Number of points at which a curve was observed.
    any_alpha : bool
        Whether to use the best alpha for each kernel.
    unit : float
        Alpha in units of the loss over that of the squared loss.
    robust : bool
        Whether to ignore curves that are far from what the others predict.
    """
    points = _points(curves)
    known, middle = Gaussian(usual_width(points.grid)), np.array([learned.alpha / unit])
    # wider ones are better for the curves that are left, but not for the fit to all
    others = outputs_to_try(points.grid, n_points, narrow=robust)
    chosen = rows_by_content(X, points.values, weight, _ROWS, 1)
    rows = _Rows.of(chosen.X, chosen.targets, chosen.weight, learned.kernel)
    if robust:
        squares = _left_out(known, rows, points, middle).squares
        some = squares <= _OUTLYING**2 * np.median(squares)
        rows = _Rows.of(rows.X[some], rows.targets[some], rows.weight[some], learned.kernel)
    alphas = middle * _STRENGTHS if any_alpha else middle
    usual, *found = (_left_out(kernel, rows, points, alphas) for kernel in (known, *others))
    if not found:
        return None
    best = min(found, key=lambda each: float(each.losses.sum()))
    gains = usual.losses - best.losses
    if are_noise(gains):
        return None
    share = np.cumsum(best.explained) / (best.explained.sum() or 1.0)
    count = 1 + int(np.searchsorted(share, _EXPLAINED))
    most = max(N_COORDINATES, _MOST_COORDINATES * _ROWS // max(len(X), _ROWS))
    return OutputWidth(best.kernel, min(max(count, N_COORDINATES), most))


def _points(curves: Curves) -> Points:
    """Points that count, at most so many."""
    seen = curves.measure > 0.0
    grid, values, measure = curves.grid[seen], curves.values[:, seen], curves.measure[seen]
    if len(grid) <= _POINTS:
        return Points(grid, values, measure)
    starts = np.linspace(0, len(grid), _POINTS, endpoint=False).astype(int)
    sums = np.add.reduceat(measure, starts)
    return Points(
        np.add.reduceat(measure * grid, starts) / sums,
        np.add.reduceat(measure * values, starts, axis=1) / sums,
        sums,
    )


def outputs_to_try(grid: FloatArray, n_points: float, *, narrow: bool = False) -> list[Any]:
    """Output kernels beside the usual one, none narrower than the distance of a curve's points.

    Nothing is known in between. ``narrow`` is without those wider than the usual one.
    """
    if len(grid) == 1:
        return []
    length, even = float(grid[-1] - grid[0]), 1.0 / max(n_points - 1.0, 1.0)
    apart = 0.99 * max(float(np.median(np.diff(grid))), length * even)
    shares = [share for share in _OTHERS if not narrow or share < USUAL]
    found = [Gaussian(length * share) for share in shares if length * share > apart]
    if np.abs((grid - grid[0]) / length - np.linspace(0.0, 1.0, len(grid))).max() > _UNEVEN:
        shares = [USUAL, *(share for share in shares if share > 0.99 * even)]
        found += [WithRanks(Gaussian(np.array([length, share]))) for share in shares]
    return found


def _left_out(kernel: Any, rows: _Rows, points: Points, alphas: FloatArray) -> _LeftOut:
    """What is lost with an output kernel, and the best of some strengths."""
    root = np.sqrt(points.measure)
    theta = points.grid[:, None]
    between = np.asarray(resolve(kernel, theta)(theta))
    of_output, basis = np.linalg.eigh(root[:, None] * between * root)
    targets = (root * rows.targets) @ basis
    known = of_output > _NEGLIGIBLE * of_output[-1]  # no model reaches the others
    rest = (targets[:, ~known] ** 2).sum(axis=1)
    targets, of_output = targets[:, known], of_output[known]
    found = (rows.squares(targets, of_output, alpha) for alpha in alphas)
    squares = min(found, key=lambda each: float(rows.weight @ each.sum(axis=1)))
    before, whole = rows.weight @ targets**2, squares.sum(axis=1) + rest
    saved = np.maximum(before - rows.weight @ squares, 0.0)[np.argsort(-before)]
    return _LeftOut(kernel, whole, rows.weight * whole, saved)

"""The Lasso path, on which coefficients are piecewise linear in the strength."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fenchel._threads import without_warnings
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certified
from fenchel.norm_problem import NormProblem
from fenchel.solvers.base import Solution
from fenchel.solvers.loop import Iterate
from fenchel.solvers.norm_fista import NormFista, solved_on_fewer_rows

# lars_path takes an absolute strength of 1.2e-7 for zero: this is the strength to begin with
_TOP = 1e6
_END = 1e-10  # of the first strength: that counts as zero


@dataclass(frozen=True)
class Lars(CheckedWhenMade):
    """Lasso by LARS: the point of the path at a strength or a bound, exact up to rounding.

    If columns are too close to linear dependence, gradient steps continue from this point.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of gradient steps.

    References
    ----------
    Efron, Hastie, Johnstone, Tibshirani (2004), Least angle regression.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers import Lars
    >>> X, y = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0]]), np.array([[2.0], [-2.0], [0.0]])
    >>> absolute = GroupNorm(np.arange(2), q=1.0, p=1.0)
    >>> problem = NormProblem(X, y, 3.0, absolute, strength=0.1)
    >>> Lars().solve(problem).weights.round(3)[:, 0]
    array([1.85, 0.  ])
    """

    tol: float = 1e-6
    max_iter: int = 10_000

    def requires(self, problem: NormProblem) -> str | None:
        """Return None for the Lasso with one output, else a sentence that says what is missing."""
        return needs_the_lasso(problem)

    def solve(
        self,
        problem: NormProblem,
        warm_start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified weights; ``warm_start`` is ignored."""
        return solved_on_fewer_rows(problem, self._iterates(problem), self.tol, callback)

    def _iterates(self, problem: NormProblem) -> Iterator[Iterate[Certified]]:
        passed, weights = on_path(problem)
        yield Iterate(passed, problem.certify(weights))
        yield from NormFista(self.tol, self.max_iter).iterates(problem, weights, passed)


def needs_the_lasso(problem: NormProblem) -> str | None:
    """Return what is missing for a Lasso algorithm with one output, or None."""
    if problem.norm.is_sum and problem.n_outputs == 1 and not problem.unpenalized:
        return None
    return "needs the sum of absolute values of one output; NormFista takes any norm"


def on_path(problem: NormProblem) -> tuple[int, FloatArray]:
    """Return the number of steps of the path to the solution, and the solution, (d, 1)."""
    alphas, points = knots(problem.features, problem.targets[:, 0])
    places, place = -alphas * (len(problem.targets) / problem.count), -problem.strength
    if problem.constrained:
        places, place = radii_of(points), problem.strength
    weights = (along(places, place) @ points)[:, None]
    return max(int(np.count_nonzero(places < place)), 1), problem.inside(weights)


def radii_of(points: FloatArray) -> FloatArray:
    """‖w‖₁ at the knots, made non-decreasing against rounding errors."""
    return np.maximum.accumulate(np.abs(points).sum(axis=1))


def along(knots: FloatArray, value: float) -> FloatArray:
    """Interpolation weights of the knots for a value: a convex combination of two neighbours."""
    last = len(knots) - 1
    weights = np.zeros(last + 1)
    right = int(np.searchsorted(knots, value))
    if right == 0 or right > last:
        weights[min(right, last)] = 1.0
        return weights
    part = (value - knots[right - 1]) / (knots[right] - knots[right - 1])
    weights[right - 1], weights[right] = 1.0 - part, part
    return weights


def sound_knots(
    features: FloatArray, targets: FloatArray, alphas: FloatArray, coefs: FloatArray
) -> int:
    """Number of initial knots at which no column's correlation exceeds the strength.

    It can exceed it later, as LARS omits columns that it takes for combinations of others.
    """
    pull = features.T @ (targets - features @ coefs.T)
    off = np.abs(pull).max(axis=0) / len(targets) - alphas
    wrong = np.flatnonzero(off > _END * alphas[0])
    return max(int(wrong[0]), 1) if len(wrong) else len(alphas)


def knots(features: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Strengths (k,) and coefficients (k, d) of ½‖y - Xw‖²/m + α‖w‖₁ at the knots of LARS."""
    from sklearn.linear_model import lars_path  # noqa: PLC0415  (not with every estimator)

    longest = float(np.sqrt(np.einsum("ij,ij->j", features, features).max()))
    first = float(np.abs(features.T @ targets).max()) / len(targets)
    if first == 0.0:
        return np.zeros(1), np.zeros((1, features.shape[1]))
    scale = _TOP * longest / first
    once = _different(features)
    with without_warnings(ConvergenceWarning):  # judged here by what is returned
        alphas, _, coefs = lars_path(
            features[:, once] / longest,
            targets * scale,
            method="lasso",
            max_iter=16 * min(features.shape) + 16,
        )
    rising = np.flatnonzero(np.diff(alphas) > 0.0)
    if len(rising):
        alphas, coefs = alphas[: rising[0] + 1], coefs[:, : rising[0] + 1]
    alphas = alphas * (longest / scale)
    if alphas[-1] <= _END * first:
        alphas[-1] = 0.0
    points = np.zeros((len(alphas), features.shape[1]))
    points[:, once] = coefs.T / (longest * scale)
    return alphas, points


def _different(features: FloatArray) -> IntArray:
    """Columns without repetitions, up to sign, with which lars_path leaves the path."""
    found: dict[bytes, int] = {}
    for j, column in enumerate(features.T):
        sign = np.sign(column[np.argmax(np.abs(column))])
        found.setdefault(blake2b((sign * column + 0.0).tobytes()).digest(), j)
    return np.array(list(found.values()), dtype=np.intp)

"""Least squares without penalty, by a singular value decomposition."""

from __future__ import annotations

from dataclasses import dataclass

from fenchel._typing import FloatArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certified
from fenchel.norm_problem import NormProblem
from fenchel.solvers.base import Solution, settled
from fenchel.solvers.loop import Loop


@dataclass(frozen=True)
class LeastSquares(CheckedWhenMade):
    r"""Minimum-norm least squares, :math:`W = M^\dagger U^\top Y` where X = U M.

    One step of iterative refinement is done. Directions that are rounding errors are omitted.

    Parameters
    ----------
    tol : float
        Relative gap below which the solution counts as converged.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers import LeastSquares
    >>> X, y = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0]]), np.array([[2.0], [-2.0], [1.0]])
    >>> absolute = GroupNorm(np.arange(2), q=1.0, p=1.0)
    >>> problem = NormProblem(X, y, 3.0, absolute, strength=0.0)
    >>> LeastSquares().solve(problem).weights.round(3)[:, 0]
    array([ 2.   , -0.667])
    """

    tol: float = 1e-6

    def requires(self, problem: NormProblem) -> str | None:
        """Return None if there is neither penalty nor bound."""
        return None if problem.unpenalized else "needs strength=0; NormFista takes any"

    def solve(
        self,
        problem: NormProblem,
        warm_start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the certified solution; ``warm_start`` is ignored."""
        loop: Loop[Certified] = Loop(self.tol, callback)
        features, targets = problem.features, problem.targets
        weights = problem.range.shortest(targets)
        weights += problem.range.shortest(targets - features @ weights)
        weights[~features.any(axis=0)] = 0.0  # and not 1e-17 for columns that are constant
        how = "solved by singular values; scale the columns of X"
        return settled(loop, problem.certify(weights), 1, how)

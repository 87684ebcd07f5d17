"""The eigenbases of a decomposable kernel, and points by their coordinates in them."""

from __future__ import annotations

import numpy as np

from fenchel._memory import empty
from fenchel._typing import AnyArray, FloatArray
from fenchel.design import Smoother
from fenchel.problem import Problem

_CUT = 0.1  # of the tolerance: eigenvalues below that share of the typical curvature are left out
# of the turns; they change objectives by about their share of the loss. The dual objective is of
# all of them, and the model may be one without
_EXACT = 1e-3  # of the tolerance: rounding errors of values that are known without a product


class Eigenbases:
    """The matrix M = √c K √c times the output matrix, in its two eigenbases.

    If the outputs are a Markov chain, recursions along the chain replace their eigenbasis.

    Parameters
    ----------
    problem : Problem
        Problem with a decomposable kernel and without intercept.
    unit : float
        Typical curvature of the conjugate of the loss.
    tol : float
        Relative gap to reach: eigenvalues far below that share of the unit are left out.
    least : float, default=0.0
        Share of the unit below which they are left out whatever the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Gram
    >>> from fenchel.losses import Squared
    >>> from fenchel.problem import Problem
    >>> from fenchel.solvers.eigenbases import Eigenbases
    >>> design, targets = Gram(np.eye(2), np.eye(1)), np.ones((2, 1))
    >>> problem = Problem(Squared(), design, targets, np.ones(2), alpha=0.5, fit_intercept=False)
    >>> bases = Eigenbases(problem, 1.0, tol=1e-6)
    >>> bases.image(bases.coordinates(targets), shift=1.0)[0]
    array([[0.5],
           [0.5]])
    """

    def __init__(self, problem: Problem, unit: float, tol: float, least: float = 0.0) -> None:
        self._problem = problem
        rows, left = problem.design.spectrum(problem.sample_weight)
        outputs, right = problem.design.output_spectrum
        rows = rows / problem.alpha
        least = max(_CUT * tol, least) * unit
        self._largest = float(rows.max(initial=0.0) * outputs.max(initial=0.0))
        self._some = some = rows * outputs.max(initial=0.0) > least
        self._rest, self._vectors = rows[~some], left
        self._rows, self._left = rows[some], _columns(left, some)
        self._chain = problem.design.output_chain
        if self._chain is None:
            few = outputs * rows.max(initial=0.0) > least
            self._right = _columns(right, few)
            self._values = np.multiply.outer(self._rows, outputs[few])
            self.shape = self._values.shape
        else:
            self.shape = (problem.n_outputs, len(self._rows))
        self._shift = np.nan
        self._shrinking: FloatArray
        self._smoother: Smoother
        self.root = np.sqrt(problem.weight)[:, None]

    def coordinates(self, values: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Coordinates of a point (n, p) in the bases; in those of the rows if there is a chain."""
        if self._chain is None:
            return np.dot(self._left.T @ values, self._right, out=out)
        return np.dot(values.T, self._left, out=out)

    def image(self, inside: FloatArray, shift: float) -> tuple[FloatArray, FloatArray]:
        """M (shift + M)⁻¹ v, (n, p), and its coordinates, from the coordinates of a point v."""
        known = self._shift == shift
        self._shift = shift
        if self._chain is None:
            if not known:
                self._shrinking = self._values / (self._values + shift)
            found = np.multiply(inside, self._shrinking, out=empty(inside.shape))
            left, right = self._left @ found, self._right.T
        else:
            if not known:
                self._smoother = self._chain.smoother(self._rows / shift)
            found = self._smoother(inside)
            left, right = self._left, found.T
        return np.dot(left, right, out=empty((left.shape[0], right.shape[1]))), found

    def square(self, inside: FloatArray) -> float:
        """Return vᵀ M v of a point v from its coordinates, without what the bases leave out."""
        if self._chain is None:
            return float(np.einsum("ij,ij,ij->", inside, inside, self._values))
        return float(self._rows @ self._chain.forms(inside))

    def rest(self, values: FloatArray) -> float | None:
        """Return what :meth:`square` leaves out; None if that takes as long as all of it."""
        if self._chain is None:
            return None
        if len(self._rest) == 0:
            return 0.0
        outside = values.T @ _columns(self._vectors, ~self._some)
        return float(self._rest @ self._chain.forms(outside))

    def exact(self, shift: float, tol: float) -> bool:
        """Whether values and norms from coordinates are those of functions, far below ``tol``.

        What :meth:`solve` returns is a difference, with the rounding errors of its terms over the
        shift, and eigenvalues have those of the largest one.
        """
        return bool(self._largest * np.finfo(float).eps <= _EXACT * tol * shift)

    def weights(self, inside: FloatArray) -> FloatArray:
        """Return weights of the function of a point with these coordinates.

        Its values are M times that, without what the bases leave out.
        """
        problem = self._problem
        pulled = problem.design.pulled_spectrum(problem.sample_weight)
        inside = inside.T if self._chain is not None else inside @ self._right.T
        pulled = _columns(pulled, self._some) @ inside
        pulled /= np.sqrt(problem.alpha)
        return problem.design.weights_of(pulled)


def _columns(matrix: FloatArray, some: AnyArray) -> FloatArray:
    """Those columns; a view of the matrix where they are beside each other."""
    chosen = np.flatnonzero(some)
    if len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1:
        return matrix[:, chosen[0] : chosen[-1] + 1]
    return np.ascontiguousarray(matrix[:, some])

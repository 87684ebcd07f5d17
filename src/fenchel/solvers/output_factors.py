r"""Systems of coupled outputs where nearly all coordinates are kinks: a factor for each output.

With B = Q diag(λ) Qᵀ the matrix of the outputs and a stiffness d_i that the outputs of a row
share,

.. math:: D^{-1} \otimes I + K \otimes B
          = (I \otimes Q) \operatorname{diag}_j (D^{-1} + \lambda_j K) (I \otimes Q^\top),

so p factors of n rows take the place of one of n p: a pᵗʰ of the memory, and a p²ᵗʰ of the time.
Coordinates that are no kinks are held at zero by a border. Where the stiffness differs among the
outputs of a row, as for expectiles, the same with a mean is what conjugate gradients are
preconditioned by: their steps depend on the largest ratio of the two, and on nothing else.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel._typing import FloatArray, IntArray
from fenchel.design import Factored, KernelValues
from fenchel.solvers.kept_factor import Unknowns, conjugate_gradients

_TOL = 1e-9  # of a solution, in the norm that the preconditioner makes
_MOST_STEPS = 60
_NO_VALUE = 1e-14  # eigenvalues of B below this share of the largest are rounding errors
_PAYS = 0.5  # share of the cost of one factor for all; what is not counted costs as much


def pays(unknowns: Unknowns) -> bool:
    """Whether factors of single outputs cost less than one factor for all kinks."""
    n, p = unknowns.problem.n_rows, unknowns.problem.n_outputs
    if p == 1 or not unknowns.problem.design.is_gram:
        return False
    kinks = len(unknowns.rows)
    missing = n * p - kinks
    cost = p * n**3 / 3 + p * n**2 * missing + missing**3 / 3
    if cost > _PAYS * kinks**3 / 3:
        return False
    ratio = float((unknowns.sizes**2 / _shared_stiffness(unknowns)[unknowns.rows]).max()) ** 2
    steps = 0.0 if ratio < 1.0 + _TOL else 0.5 * np.sqrt(ratio) * np.log(2.0 / _TOL)
    cost += 4.0 * steps * p * (p + 1) * n**2
    return steps < _MOST_STEPS and cost <= _PAYS * kinks**3 / 3


def _shared_stiffness(unknowns: Unknowns) -> FloatArray:
    """One for each row: the geometric middle of the kinks; any that is positive without one."""
    least, most = np.full(unknowns.problem.n_rows, np.inf), np.zeros(unknowns.problem.n_rows)
    np.minimum.at(least, unknowns.rows, unknowns.sizes)
    np.maximum.at(most, unknowns.rows, unknowns.sizes)
    without = most == 0.0
    least[without] = most[without] = np.median(unknowns.sizes)
    return least * most


def _factored(kernel: KernelValues, shift: FloatArray) -> Factored:
    """The factor of K + diag(shift); stored values stay as they are."""
    matrix = kernel.matrix
    if matrix is None:
        return kernel.factored(shift)
    return Factored(np.array(matrix, np.float64, order="C")).factor(shift)


class OutputFactors:
    """Solver of systems with I + U Uᵀ, for U of the kinks.

    Raises LinAlgError if rounding errors prevent a factorization.
    """

    def __init__(self, unknowns: Unknowns) -> None:
        self._unknowns = unknowns
        problem = unknowns.problem
        self._shape = problem.n_rows, problem.n_outputs
        values, self._basis = np.linalg.eigh(problem.design.output_matrix)
        self._values = np.where(values > _NO_VALUE * values[-1], values, 0.0)
        self._shared = _shared_stiffness(unknowns)
        self._factors = [
            _factored(problem.design.kernel_values, 1.0 / (value * self._shared))
            for value in self._values[self._values > 0.0]
        ]
        is_kink = np.zeros(self._shape, bool)
        is_kink[unknowns.rows, unknowns.outputs] = True
        self._missing = np.nonzero(~is_kink)
        self._corner = cho_factor(self._inverse_among(*self._missing), lower=True)

    def _inverse_among(self, rows: IntArray, outputs: IntArray) -> FloatArray:
        """Entries of the inverse for all coordinates, among some of them."""
        few, place = np.unique(rows, return_inverse=True)
        found = np.zeros((len(rows), len(rows)))
        factors = iter(self._factors)
        for value, vector in zip(self._values, self._basis.T, strict=True):
            among = np.diag(self._shared[few])
            if value > 0.0:
                among = next(factors).inverse_among(few) / value
            found += np.outer(vector[outputs], vector[outputs]) * among[np.ix_(place, place)]
        return found

    def _inverse(self, right: FloatArray) -> FloatArray:
        """For all coordinates, (n, p, m)."""
        turned = np.einsum("npm,pj->jnm", right, self._basis)
        factors = iter(self._factors)
        for j, value in enumerate(self._values):
            if value > 0.0:
                turned[j] = next(factors).solve_once(turned[j]) / value
            else:
                turned[j] *= self._shared[:, None]
        return np.einsum("jnm,pj->npm", turned, self._basis)

    def _precondition(self, right: FloatArray) -> FloatArray:
        """The inverse for the kinks alone, with the stiffness that outputs share."""
        unknowns = self._unknowns
        sizes, kinks = unknowns.sizes[:, None], (unknowns.rows, unknowns.outputs)
        whole = np.zeros((*self._shape, right.shape[1]))
        whole[kinks] = right / sizes
        found = self._inverse(whole)
        if len(self._missing[0]):
            whole[...] = 0.0
            whole[self._missing] = cho_solve(self._corner, found[self._missing])
            found -= self._inverse(whole)
        return np.asarray(found[kinks] / sizes)

    def _times(self, right: FloatArray) -> FloatArray:
        """(I + U Uᵀ) times (k, m), with the kernel values beside a factor."""
        return self._unknowns.times(right, self._factors[0].product)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution (k, m)."""
        found, steps = conjugate_gradients(
            self._times, self._precondition, right, _TOL, _MOST_STEPS
        )
        if steps == _MOST_STEPS:
            raise LinAlgError("conjugate gradients do not end: rounding errors")
        return found

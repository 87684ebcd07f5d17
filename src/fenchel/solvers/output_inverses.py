r"""Systems of coupled outputs where most coordinates are kinks: an inverse for each output.

With B = Q diag(λ) Qᵀ the matrix of the outputs and a stiffness d_i that the outputs of a row
share,

.. math:: D^{-1} \otimes I + K \otimes B
          = (I \otimes Q) \operatorname{diag}_j (D^{-1} + \lambda_j K) (I \otimes Q^\top),

so p inverses of n rows take the place of a factor of n p: a pᵗʰ of the memory, and some p²ᵗʰ of
the time. Coordinates that are no kinks are held at zero by a border. Which these are changes with
every Newton step, and the inverses do not as long as the stiffness is that of the step before.
Where the stiffness differs among the outputs of a row, as for expectiles, the same with a mean is
what conjugate gradients are preconditioned by: their steps depend on the largest ratio of the two,
and on nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, lapack

from fenchel._compiling import njit
from fenchel._memory import empty
from fenchel._typing import FloatArray, IntArray
from fenchel.design import Factored, KernelValues
from fenchel.design.tiled import factor_lower, multiplied
from fenchel.problem import Problem
from fenchel.solvers.kept_factor import Solve, Unknowns, conjugate_gradients

_TOL = 1e-12
"""Of a solution, in the norm that the preconditioner makes. With 1e-8, fits of 283 rows and five
levels to a gap of 1e-4 took up to six times as many Newton steps; with 1e-10, one of 442 rows and
five levels at alpha 1e-8 ended at a gap of 1.3e-6, and with 1e-12 at 1.3e-7."""
_MOST_STEPS = 60
_NO_VALUE = 1e-14  # eigenvalues of B below this share of the largest are rounding errors
_SAME = 1e-9  # relative change of a stiffness that is none
_LEAST = 300  # kinks from which on their own factor costs more than what is not counted here
_PAYS = 0.5  # share of the cost of one factor for all; what is not counted costs as much
_FEW = 0.2  # of the rows: an inverse takes as long as solving for a third, and is of use again
STEPS_TO_COME = 4
"""With the same stiffness, in Newton's method: between changes there are some ten."""


class Stiffness(NamedTuple):
    """How stiff kinks are, by rows."""

    shared: FloatArray
    """Of the outputs of each row, (n,): the geometric middle; that of others without a kink."""
    ratio: float
    """Largest ratio of two of one row."""

    @classmethod
    def of(cls, unknowns: Unknowns) -> Stiffness:
        """Stiffness of the rows of some kinks."""
        weight = unknowns.problem.weight
        least, most = np.full(len(weight), np.inf), np.zeros(len(weight))
        np.minimum.at(least, unknowns.rows, unknowns.sizes)
        np.maximum.at(most, unknowns.rows, unknowns.sizes)
        known = most > 0.0
        middle = least[known] * most[known]
        usual = np.median(middle / weight[known])  # as most losses have one slope at their kinks
        shared = usual * np.where(weight > 0.0, weight, 1.0)
        shared[known] = middle
        return cls(shared, float((most[known] / least[known]).max()) ** 2)


def pays(
    unknowns: Unknowns, ratio: float = 1.0, kept: bool = False, uses: int = STEPS_TO_COME
) -> bool:
    """Whether inverses of single outputs cost less than one factor for all kinks.

    ``kept`` says whether there are inverses already; new ones have so many ``uses``.
    """
    n, p = unknowns.problem.n_rows, unknowns.problem.n_outputs
    kinks = len(unknowns.rows)
    missing = n * p - kinks
    steps = 0.0 if ratio < 1.0 + _TOL else 0.5 * np.sqrt(ratio) * np.log(2.0 / _TOL)
    cost = missing**3 / 3 + 4.0 * (1.0 + steps) * p * (p + 1) * n**2
    if not kept:  # one that differs in a row changes with its kinks, so is of use only once
        made = p * n**2 * (n / 3 + min(missing, 2 * n / 3))
        cost += made / (uses if steps == 0.0 else 1)
    return steps < _MOST_STEPS and cost <= _PAYS * kinks**3 / 3


class ByOutputs:
    """Solver of systems of one problem, which keeps inverses as long as they hold."""

    def __init__(self, problem: Problem, uses: int = STEPS_TO_COME) -> None:
        self._problem, self._uses = problem, uses
        self._kept: OutputInverses | None = None

    def solver(self, rows: IntArray, vectors: FloatArray) -> Solve | None:
        """What solves with I + U Uᵀ; None where a factor for all kinks costs less.

        Raises LinAlgError, as its result does, if rounding errors prevent that.
        """
        if len(rows) < _LEAST or self._problem.n_outputs == 1:
            return None
        if not self._problem.design.is_gram:
            return None
        unknowns = Unknowns.of(self._problem, rows, vectors)
        stiffness = Stiffness.of(unknowns)
        if self._kept is not None and not self._kept.hold(unknowns, stiffness):
            self._kept = None  # its memory is free before there are others
        if not pays(unknowns, stiffness.ratio, self._kept is not None, self._uses):
            return None
        if self._kept is None:
            self._kept = OutputInverses(self._problem, stiffness.shared)
        return self._kept.solver(unknowns)


class OutputInverses:
    """Inverses of D⁻¹ + λ_j K for a stiffness D, by which systems of any kinks are solved.

    They are factors as long as few rows have a coordinate that is no kink.

    Raises LinAlgError if rounding errors prevent a factorization.
    """

    def __init__(self, problem: Problem, shared: FloatArray) -> None:
        self._problem, self._shared = problem, shared
        values, basis = np.linalg.eigh(problem.design.output_matrix)
        positive = values > _NO_VALUE * values[-1]
        self._values, self._basis, self._rest = values[positive], basis[:, positive], None
        if not positive.all():
            self._rest = basis[:, ~positive] @ basis[:, ~positive].T
        self._inverses: FloatArray | None = None
        kernel = problem.design.kernel_values
        self._factors = [_factored(kernel, 1.0 / (value * shared)) for value in self._values]

    def hold(self, unknowns: Unknowns, stiffness: Stiffness) -> bool:
        """Whether the stiffness of all rows with kinks is that of these inverses."""
        rows, shared = unknowns.rows, stiffness.shared
        change = np.abs(shared[rows] - self._shared[rows])
        return bool((change <= _SAME * shared[rows]).all())

    def solver(self, unknowns: Unknowns) -> Solve:
        """What solves with I + U Uᵀ for U of some kinks."""
        p, sizes = self._problem.n_outputs, unknowns.sizes[:, None]
        kinks = unknowns.outputs, unknowns.rows
        is_kink = np.zeros((p, self._problem.n_rows), bool)
        is_kink[kinks] = True
        missing = np.nonzero(~is_kink)
        some = np.count_nonzero(~is_kink.all(axis=0))
        if self._inverses is None and some > _FEW * self._problem.n_rows:
            self._invert()
        corner = self._among(*missing)

        def precondition(right: FloatArray) -> FloatArray:
            whole = np.zeros((*is_kink.shape, right.shape[1]))
            whole[kinks] = right / sizes
            found = self._times(whole)
            if len(missing[0]):
                whole[...] = 0.0
                whole[missing] = lapack.dpotrs(corner, found[missing], lower=1)[0]
                found -= self._times(whole)
            return np.asarray(found[kinks] / sizes)

        def times(right: FloatArray) -> FloatArray:  # beside a factor are the kernel values
            return unknowns.times(right, self._factors[0].product if self._factors else None)

        def solve(right: FloatArray) -> FloatArray:
            found, steps = conjugate_gradients(times, precondition, right, _TOL, _MOST_STEPS)
            if steps == _MOST_STEPS:
                raise LinAlgError("conjugate gradients do not end: rounding errors")
            return found

        return solve

    def _invert(self) -> None:
        """Replace the factors by inverses."""
        n = len(self._shared)
        self._inverses = empty((len(self._values), n, n))
        for value, inverse in zip(self._values, self._inverses, strict=True):
            np.divide(self._factors.pop(0).inverse(), value, out=inverse)

    def _among(self, outputs: IntArray, rows: IntArray) -> FloatArray:
        """Factor of the inverse for all coordinates, of some of them alone."""
        pairs = np.einsum("aj,bj->abj", self._basis, self._basis)
        matrix = np.empty((len(rows),) * 2, order="F")
        inverses, place = self._inverses, rows
        if inverses is None:
            few, place = np.unique(rows, return_inverse=True)
            inverses = np.array([factor.inverse_among(few) for factor in self._factors])
            inverses /= self._values[:, None, None]
        _fill_among(inverses, pairs, place, outputs, matrix)
        if self._rest is not None:
            same = np.equal.outer(rows, rows) * self._shared[rows]
            matrix += self._rest[np.ix_(outputs, outputs)] * same
        if not factor_lower(matrix):
            raise LinAlgError("the inverse of some coordinates is not positive definite")
        return matrix

    def _times(self, right: FloatArray) -> FloatArray:
        """The inverse for all coordinates, times (p, n, m)."""
        p, n, m = right.shape
        flat = right.reshape(p, n * m)
        turned = np.dot(self._basis.T, flat).reshape(-1, n, m)
        for j, value in enumerate(self._values):
            if self._inverses is not None:
                turned[j] = multiplied(self._inverses[j], turned[j])
            else:
                turned[j] = self._factors[j].solve_once(turned[j]) / value
        found = np.dot(self._basis, turned.reshape(-1, n * m))
        if self._rest is not None:
            found += np.dot(self._rest, flat) * np.repeat(self._shared, m)
        return found.reshape(right.shape)


def _factored(kernel: KernelValues, shift: FloatArray) -> Factored:
    """The factor of K + diag(shift); stored values stay as they are."""
    matrix = kernel.matrix
    if matrix is None:
        return kernel.factored(shift)
    return Factored(np.array(matrix, np.float64, order="C")).factor(shift)


@njit(cache=True, nogil=True)
def _fill_among(
    inverses: FloatArray,
    pairs: FloatArray,
    rows: IntArray,
    outputs: IntArray,
    matrix: FloatArray,
) -> None:
    """Write the lower triangle of entries of Σ_j inverses[j] ⊗ pairs[..., j]."""
    for b in range(rows.size):
        for a in range(b, rows.size):
            value = 0.0
            for j in range(inverses.shape[0]):
                value += inverses[j, rows[b], rows[a]] * pairs[outputs[b], outputs[a], j]
            matrix[a, b] = value

"""Positive semi-definite matrices with a quadratic penalty and linear conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dsyevd

from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel.positive._loops import sizes_of

_ASYMMETRY = 1e-8  # of a matrix, in units of its largest entry, that is rounding
_STEPS = 200  # of Newton's method at most
EXACT = 1e-13  # relative violation of a condition that counts as none
_ROUNDED = 1e-11  # below that, a step that helps little is the last
_RAY = 1e-9  # relative rounding of the left-hand sides of a proof that conditions contradict


class Pairs(NamedTuple):
    r"""Coordinates in which the squared negative part has curvature.

    Column j of the factor of the Hessian is ``root[j] * (Φ u_a[j]) * (Φ u_b[j])``, over all
    pairs of eigenvectors of which at least one belongs to a negative eigenvalue.
    """

    first: IntArray
    second: IntArray
    root: FloatArray


@dataclass(frozen=True, eq=False)
class Spectra:
    r"""Eigenvalues g and vectors of the matrices G, with what follows from them.

    With a barrier :math:`-\mu \log\det A` besides the penalties, the matrix that belongs to G
    has the eigenvalues

    .. math:: a(g) = \frac{s - g}{2\, \mathrm{alpha}}, \qquad
              s = \sqrt{g^2 + 4\, \mathrm{alpha}\, \mu}, \qquad
              -\frac{a(g) - a(g')}{g - g'} = \frac{a + a'}{s + s'}

    and μ = 0 is the negative part :math:`[g]_- / \mathrm{alpha}`.
    """

    cone: Cone
    multipliers: FloatArray
    barrier: float
    values: list[FloatArray]
    vectors: list[FloatArray]
    sizes: list[FloatArray]
    """The eigenvalues a of the matrices A."""
    roots: list[FloatArray]
    """The numbers s."""
    value: float
    """Σ max_A (-<G, A> - alpha/2 ‖A‖² + μ log det A) + <ν, e>."""

    def with_barrier(self, barrier: float) -> Spectra:
        """The same matrices G with another barrier."""
        return self.cone.spectra_of(self.values, self.vectors, self.multipliers, barrier)

    def factors(self) -> list[FloatArray]:
        """F with F Fᵀ = A, (r, rank)."""
        return list(self._factors)

    @cached_property
    def _factors(self) -> list[FloatArray]:
        found = []
        for a, vectors in zip(self.sizes, self.vectors, strict=True):
            kept = a > 0.0
            columns = vectors if kept.all() else vectors[:, kept]
            found.append(columns * np.sqrt(a if kept.all() else a[kept]))
        return found

    @cached_property
    def turned(self) -> list[list[FloatArray | None]]:
        """Uᵀ M U of each condition and matrix, None where that is zero."""
        return [
            [None if m is None else u.T @ m @ u for m, u in zip(row, self.vectors, strict=True)]
            for row in self.cone.moments
        ]

    @cached_property
    def attained(self) -> FloatArray:
        """tr(M A) of each condition."""
        totals = []
        for row in self.turned:
            pairs = zip(row, self.sizes, strict=True)
            totals.append(sum(float(m.diagonal() @ a) for m, a in pairs if m is not None))
        return np.array(totals)

    def curvature(self, part: int) -> FloatArray:
        """Minus the divided differences of a, (r, r)."""
        every = np.arange(len(self.sizes[part]))
        return self._differences(part, every[:, None], every)

    def _differences(self, part: int, first: IntArray, second: IntArray) -> FloatArray:
        """Those of some pairs of eigenvalues."""
        a, s = self.sizes[part], self.roots[part]
        above, below = a[first] + a[second], s[first] + s[second]
        return np.divide(above, below, out=np.zeros_like(below), where=below > 0.0)

    def pairs(self, part: int, scale: FloatArray | None = None, least: float = 0.0) -> Pairs:
        """Where the curvature of one part is; with a scale, where it is above ``least``."""
        first, second, double = _upper(len(self.sizes[part]))
        curvature = double * self._differences(part, first, second)
        kept = (curvature if scale is None else curvature * scale[first, second]) > least
        if kept.all():
            return Pairs(first, second, np.sqrt(curvature))
        return Pairs(first[kept], second[kept], np.sqrt(curvature[kept]))

    def coordinates(self, part: int, pairs: Pairs, matrix: FloatArray) -> FloatArray:
        """Coordinates of a symmetric matrix in the columns of the factor."""
        vectors = self.vectors[part]
        turned = vectors.T @ matrix @ vectors
        return turned[pairs.first, pairs.second] * pairs.root

    def matrix(self, part: int, pairs: Pairs, coordinates: FloatArray) -> FloatArray:
        """The adjoint: the symmetric matrix of a vector of coordinates."""
        vectors = self.vectors[part]
        turned = np.zeros((vectors.shape[1], vectors.shape[1]))
        turned[pairs.first, pairs.second] = coordinates * pairs.root
        return vectors @ (0.5 * (turned + turned.T)) @ vectors.T


def _is_symmetric(matrix: FloatArray) -> bool:
    """But for rounding of integrals and products."""
    rounding = _ASYMMETRY * float(np.abs(matrix).max(initial=0.0))
    return bool(np.all(np.abs(matrix - np.transpose(matrix)) <= rounding))


@dataclass(frozen=True, eq=False)
class Cone:
    """Penalties and linear constraints of several matrices A_k ⪰ 0."""

    sizes: list[int]
    alphas: list[float]
    traces: list[float]
    moments: list[list[FloatArray | None]]
    """By condition, then by matrix."""
    right: FloatArray
    equality: AnyArray

    def __post_init__(self) -> None:
        for condition in self.moments:
            if len(condition) != len(self.sizes):
                raise ValueError(
                    f"moments must have one entry for each of the {len(self.sizes)} matrices, "
                    f"got {len(condition)}"
                )
            for moment, size in zip(condition, self.sizes, strict=True):
                if moment is not None and np.shape(moment) != (size, size):
                    raise ValueError(
                        f"moments must have shape ({size}, {size}), got {np.shape(moment)}"
                    )
                if moment is not None and not _is_symmetric(moment):
                    raise ValueError(
                        "moments must be symmetric, got a matrix that differs from its transpose "
                        f"by {np.abs(moment - np.transpose(moment)).max():g}"
                    )

    def shifted(self, gram: Sequence[FloatArray], multipliers: FloatArray) -> list[FloatArray]:
        """G = gram + trace penalty + Σ ν M."""
        shifted = []
        for k, (matrix, penalty) in enumerate(zip(gram, self._penalties, strict=True)):
            shifted.append(self._with_moments(matrix + penalty, k, multipliers))
        return shifted

    @cached_property
    def _penalties(self) -> list[FloatArray]:
        """λ I of each matrix."""
        return [lam * np.eye(size) for lam, size in zip(self.traces, self.sizes, strict=True)]

    @cached_property
    def _strengths(self) -> FloatArray:
        """alpha of each eigenvalue of all matrices."""
        return np.repeat(self.alphas, self.sizes)

    @cached_property
    def slices(self) -> list[slice]:
        """Where the eigenvalues of each matrix are among those of all."""
        return [slice(a, b) for a, b in pairwise(np.cumsum([0, *self.sizes]))]

    @cached_property
    def _lengths(self) -> list[list[float]]:
        """‖M‖ of each condition and matrix."""
        return [
            [0.0 if m is None else float(np.linalg.norm(m)) for m in row] for row in self.moments
        ]

    def _with_moments(self, total: FloatArray, k: int, multipliers: FloatArray) -> FloatArray:
        """Add Σ ν M of one matrix, in place."""
        for condition, nu in zip(self.moments, multipliers, strict=True):
            moment = condition[k]
            if moment is not None and nu != 0.0:
                total += nu * moment
        return total

    def spectra(
        self, gram: Sequence[FloatArray], multipliers: FloatArray, barrier: float = 0.0
    ) -> Spectra:
        """Decompose at given multipliers."""
        pairs = [_decomposed(matrix) for matrix in self.shifted(gram, multipliers)]
        return self.spectra_of([g for g, _ in pairs], [u for _, u in pairs], multipliers, barrier)

    def spectra_of(
        self,
        values: list[FloatArray],
        vectors: list[FloatArray],
        multipliers: FloatArray,
        barrier: float,
    ) -> Spectra:
        """What follows from eigenvalues and vectors."""
        g = np.concatenate(values)
        a, s = np.empty_like(g), np.empty_like(g)
        total = float(multipliers @ self.right)
        total += sizes_of(g, self._strengths, barrier, a, s)
        sizes, roots = [a[part] for part in self.slices], [s[part] for part in self.slices]
        return Spectra(self, multipliers, barrier, values, vectors, sizes, roots, total)

    def attained(self, matrices: Sequence[FloatArray]) -> FloatArray:
        """tr(M A) of each condition."""
        return np.array([_traces(condition, matrices) for condition in self.moments])

    def violation(self, matrices: Sequence[FloatArray]) -> float:
        """Largest relative violation of a condition."""
        if not len(self.right):
            return 0.0
        excess = self.attained(matrices) - self.right
        excess = np.where(self.equality, np.abs(excess), np.maximum(excess, 0.0))
        return float((excess / self._units([float(np.linalg.norm(a)) for a in matrices])).max())

    def _units(self, lengths: Sequence[float]) -> FloatArray:
        """What violations are relative to, for matrices of these lengths."""
        sizes = [sum(m * a for m, a in zip(row, lengths, strict=True)) for row in self._lengths]
        return np.maximum(np.maximum(np.abs(self.right), sizes), np.finfo(float).tiny)

    def solve(
        self,
        gram: Sequence[FloatArray],
        start: FloatArray,
        barrier: float = 0.0,
        accuracy: float = EXACT,
    ) -> Spectra:
        """Minimize over the multipliers, so that the matrices satisfy the constraints.

        This is the projection onto the feasible matrices. It uses a projected Newton method with
        one unknown per constraint, and its cost does not depend on the number of rows.
        """
        spectra = self.spectra(gram, start, barrier)
        if not len(self.right):
            return spectra
        before = np.inf
        for _ in range(_STEPS):
            gradient = self.right - spectra.attained
            nu = spectra.multipliers
            held = ~self.equality & (nu <= 0.0) & (gradient >= 0.0)
            left = np.where(held, 0.0, np.abs(gradient))
            # a slack condition with a positive multiplier is no violation, but not optimal
            units = self._units([float(np.sqrt(a @ a)) for a in spectra.sizes])
            worst = float((left / units).max())
            if worst <= accuracy or (worst <= _ROUNDED and worst > 0.5 * before):
                break
            before = worst
            moved = self._step(gram, spectra, gradient, ~held)
            if moved is None:
                break
            spectra = moved
            self._refuse_infeasible(spectra)
        return spectra

    def hessian(self, spectra: Spectra) -> FloatArray:
        """Second derivative in the multipliers."""
        found = np.zeros((len(self.moments), len(self.moments)))
        for k in range(len(self.sizes)):
            rows = [row[k] for row in spectra.turned]
            curved = spectra.curvature(k)
            for i, own in enumerate(rows):
                if own is None:
                    continue
                weighted = curved * own
                for j, other in enumerate(rows[: i + 1]):
                    if other is not None:
                        found[i, j] += float(np.vdot(weighted, other))
        return np.tril(found) + np.tril(found, -1).T

    def rows(self, spectra: Spectra, k: int, pairs: Pairs) -> FloatArray:
        """The conditions in the coordinates of curvature of one matrix, (conditions, pairs)."""
        rows = np.zeros((len(self.moments), len(pairs.root)))
        for row, turned in zip(rows, spectra.turned, strict=True):
            own = turned[k]
            if own is not None:
                row[:] = own[pairs.first, pairs.second] * pairs.root
        return rows

    def _step(
        self, gram: Sequence[FloatArray], spectra: Spectra, gradient: FloatArray, free: AnyArray
    ) -> Spectra | None:
        """One step, which lowers the value; None where rounding allows none."""
        nu = spectra.multipliers
        hessian = self.hessian(spectra)[np.ix_(free, free)]
        scale = float(np.trace(hessian))
        direction = np.zeros_like(nu)
        grow = scale <= 0.0
        if grow:  # no matrix has a negative part: walk until one has
            reach = max(
                float(np.abs(values).max(initial=0.0)) for values in spectra.values
            ) + float(np.abs(nu).max(initial=0.0))
            norms = np.array(
                [
                    max(float(np.linalg.norm(m)) for m in condition if m is not None)
                    for condition in self.moments
                ]
            )
            unit = max(reach, self.alphas[0] * float(np.abs(self.right).max()) / norms.max())
            direction[free] = -np.sign(gradient[free]) * unit / norms[free]
        else:
            ridge = 1e-14 * scale * np.eye(len(hessian))
            direction[free] = -np.linalg.solve(hessian + ridge, gradient[free])
        size, slope = 1.0, float(gradient @ direction)
        rounding = 1e-14 * (abs(spectra.value) + float(np.abs(nu * self.right).sum()))
        for _ in range(60):
            trial_nu = nu + size * direction
            trial_nu = np.where(self.equality, trial_nu, np.maximum(trial_nu, 0.0))
            trial = self.spectra(gram, trial_nu, spectra.barrier)
            if np.isfinite(trial.value) and (
                trial.value <= spectra.value + 1e-4 * size * slope
                or (abs(slope) * size <= rounding and self._closer(trial, gradient, free))
            ):
                return trial
            size *= 0.5
        return None

    def _closer(self, trial: Spectra, gradient: FloatArray, free: AnyArray) -> bool:
        """Whether the conditions are met better: where values differ by rounding only."""
        new = self.right - trial.attained
        return bool(np.linalg.norm(new[free]) < 0.9 * np.linalg.norm(gradient[free]))

    def _refuse_infeasible(self, spectra: Spectra) -> None:
        """Raise if the multipliers prove that no matrices meet the conditions.

        Σ ν M ⪰ 0 and <ν, e> < 0 contradict each other for A ⪰ 0.
        """
        nu = spectra.multipliers
        length = float(np.abs(nu).max())
        if length == 0.0 or float(nu @ self.right) >= -_RAY * length * np.abs(self.right).max():
            return
        ray = nu / length
        for k, size in enumerate(self.sizes):
            lam = np.linalg.eigvalsh(self._with_moments(np.zeros((size, size)), k, ray))
            if lam[0] < -_RAY * max(float(np.abs(lam).max()), np.finfo(float).tiny):
                return
        raise ValueError(
            "constraints must not contradict one another, and no non-negative function meets "
            "all of these: brought to length one and times "
            f"{np.array2string(ray, precision=3)}, their left-hand sides add "
            f"up to a number >= 0, and their right-hand sides to {float(ray @ self.right):.3g}"
        )


@lru_cache(maxsize=16)
def _upper(size: int) -> tuple[IntArray, IntArray, FloatArray]:
    """The indices of the upper half of a matrix, and how often each is in the whole.

    They are made once for all steps.
    """
    first, second = np.triu_indices(size)
    return first, second, np.where(first < second, 2.0, 1.0)


def _decomposed(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and vectors, of small matrices too without much ado."""
    if len(matrix) == 1:
        return matrix[0].copy(), np.ones((1, 1))
    values, vectors, failed = dsyevd(matrix)
    if failed:
        raise np.linalg.LinAlgError(f"eigenvalues did not converge ({failed})")
    return values, vectors


def _traces(condition: Sequence[FloatArray | None], matrices: Sequence[FloatArray]) -> float:
    pairs = zip(condition, matrices, strict=True)
    return sum(float(np.vdot(m, a)) for m, a in pairs if m is not None)

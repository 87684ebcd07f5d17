"""The linear systems of Newton steps, in the coordinates where the cone has curvature."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dtrtrs

from fenchel._clock import check_time
from fenchel._typing import FloatArray, IntArray
from fenchel.positive._cone import Pairs, Spectra
from fenchel.positive.problem import LinearPart, PSDPart, PSDProblem
from fenchel.solvers.newton_system import cholesky_of

_MADE = 200.0  # operations in whose time a value of a column is made and moved
_BLOCK_VALUES = 2**21  # 16 MiB of columns at a time
_NEGLIGIBLE = 1e-4  # pairs beside the identity: as many steps with 0 to 0.01; singular with 0.1

# Columns and eigenvalues beside the identity, where products are mixed. The matrix changes by
# a share of about the root of it. Densities of 10 000 rows of two columns take 23 steps with 1e-4
# and with 1; 1.6 times the time with 1e-4.
_LEFT_OUT = 0.1
_CURVED = 20  # times the features: of more pairs, rows have products by divided differences,
# which take 8 to 21 products of the features with 300 of them
_MOST_VALUES = 2**25  # of all Gram matrices of rows together
_ROUNDING = 1e-15  # of eigenvalues of divided differences beside the largest


class Curvature:
    r"""The factor Q of the Hessian of what is not a sum over rows: ``C Q Qᵀ C``.

    Its columns belong to pairs of eigenvectors of each PSD part and to the features of the
    linear parts. ``rows`` are the conditions on the matrices in the same coordinates: w must
    have ``rows @ w`` given. Where products of features span few dimensions, the columns are
    replaced by as few with the same products but for what is little beside the identity.
    """

    def __init__(self, problem: PSDProblem, spectra: Spectra, blocks: FloatArray) -> None:
        self.problem = problem
        self.active = problem.cone.equality | (spectra.multipliers > 0.0)
        self.by_differences = False
        few = len(problem.weight) ** 2 * len(problem.directions) <= _MOST_VALUES
        self.in_grams = few and blocks.ndim == 2
        self.parts: list[PairColumns | FeatureColumns] = []
        plain = []
        for k, part in enumerate(problem.psd):
            weight = self._weight(part, blocks)
            mixed = self._mixed(spectra, k, weight)
            columns, rows = self._paired(spectra, k, weight) if mixed is None else mixed
            self.parts.append(columns)
            plain.append(rows)
        for line in problem.linear:
            self.parts.append(FeatureColumns(line.features / np.sqrt(line.alpha)))
            plain.append(np.zeros((int(self.active.sum()), line.features.shape[1])))
        ends = np.cumsum([0, *(part.width for part in self.parts)])
        self.slices = [slice(a, b) for a, b in pairwise(ends)]
        self.width = int(ends[-1])
        both: list[PSDPart | LinearPart] = [*problem.psd, *problem.linear]
        self.directions = [problem.direction(part) for part in both]
        self.plain = np.concatenate(plain, axis=1)
        self.mixing, self.rows = _independent(self.plain)

    def _weight(self, part: PSDPart, blocks: FloatArray) -> FloatArray:
        """S along the direction of a part, (n,)."""
        along = self.problem.direction(part)
        if blocks.ndim == 2:
            return np.asarray(blocks @ (along * along))
        return np.einsum("ijk,j,k->i", blocks, along, along)

    def _mixed(
        self, spectra: Spectra, k: int, weight: FloatArray
    ) -> tuple[FeatureColumns, FloatArray] | None:
        """As few columns as ψ that matter and conditions, with the same products, and those rows.

        None where there are no ψ, they leave out too much, or pairs are fewer.
        """
        square, curvature = self.problem.squares[k], spectra.curvature(k)
        r, most = len(curvature), float(curvature.max())
        if square is None or most * float(weight @ square.left) > _LEFT_OUT:
            return None
        sizes = most * np.einsum("i,ij,ij->j", weight, square.features, square.features)
        count = int(np.flatnonzero(sizes > _LEFT_OUT).max(initial=-1)) + 1
        turned = square.pivots[:count] @ spectra.vectors[k]
        moments = [row[k] for row, one in zip(spectra.turned, self.active, strict=True) if one]
        own = [np.zeros((r, r)) if m is None else m for m in moments]
        width = count + len(own)
        if width >= r * (r + 1) // 2:
            return None
        matrix, factor = np.zeros((width, width)), np.eye(width)
        factor[:count, :count] = square.factor[:count, :count]
        matrix[:count, :count] = _curved_squares(turned, curvature, float(weight.sum()), _LEFT_OUT)
        for i, moment in enumerate(own, start=count):
            bent = curvature * moment
            matrix[i, :count] = np.einsum("ij,ij->i", turned @ bent, turned)
            matrix[:count, i] = matrix[i, :count]
            matrix[i, count:] = [float(np.vdot(bent, other)) for other in own]
        if width:
            half, _ = dtrtrs(factor, matrix, lower=1)
            matrix, _ = dtrtrs(factor, half.T, lower=1)
        root = _root(0.5 * (matrix + matrix.T))
        return FeatureColumns(square.features[:, :count], root[:count]), root[count:]

    def _paired(
        self, spectra: Spectra, k: int, weight: FloatArray
    ) -> tuple[PairColumns, FloatArray]:
        """Columns of pairs, and the conditions in these."""
        part = self.problem.psd[k]
        r = part.features.shape[1]  # of few rows it is cheap to see which pairs matter
        few = self.problem.squares[k] is None or len(part.features) <= r * (r + 1) // 2
        pairs = self._pairs(spectra, k, weight) if few else spectra.pairs(k)
        if few and self.in_grams and len(pairs.root) > _CURVED * r:
            pairs, self.by_differences = spectra.pairs(k), True  # which have all of them
        rows = self.problem.cone.rows(spectra, k, pairs)[self.active]
        return PairColumns(spectra, k, pairs, part, float(weight.sum())), rows

    def _pairs(self, spectra: Spectra, k: int, weight: FloatArray) -> Pairs:
        """Pairs whose columns, weighted by S, are not negligible beside the identity."""
        part = self.problem.psd[k]
        turned = part.features @ spectra.vectors[k]
        if part.combinations is None:
            squares = np.square(turned)
            scale = squares.T @ (weight[:, None] * squares)
        else:
            products = part.combined(turned[:, :, None] * turned[:, None, :])
            scale = np.einsum("i,ijk->jk", weight, np.square(products))
        vectors, curvature = spectra.vectors[k], spectra.curvature(k)
        for condition in self.problem.cone.moments:
            moment = condition[k]
            if moment is not None:
                turned = np.square(vectors.T @ moment @ vectors)
                scale += turned / max(float(np.vdot(curvature, turned)), np.finfo(float).tiny)
        return spectra.pairs(k, scale, _NEGLIGIBLE)

    def pull(self, dual: FloatArray) -> FloatArray:
        """Qᵀ C x of a dual point x (n, p)."""
        weighted = self.problem.weight[:, None] * dual
        pairs = zip(self.parts, self.directions, strict=True)
        return np.concatenate([part.pull(weighted @ along) for part, along in pairs])

    def predict(self, w: FloatArray) -> FloatArray:
        """Q w, a change of predictions (n, p)."""
        change = np.zeros((len(self.problem.weight), self.problem.n_outputs))
        for part, along, where in zip(self.parts, self.directions, self.slices, strict=True):
            change += part.predict(w[where])[:, None] * along
        return change

    def design(self, rows: IntArray | slice, root: FloatArray) -> FloatArray:
        """Rᵀ-weighted columns (width, rows * q), for roots R of shape (rows, q, p)."""
        m, q = len(root), root.shape[1]
        design = np.empty((self.width, m * q))
        for part, along, where in zip(self.parts, self.directions, self.slices, strict=True):
            block = part.columns(rows)
            np.multiply(
                block[:, :, None], root @ along, out=design[where].reshape(len(block), m, q)
            )
        return design

    def add_products(
        self, rows: IntArray | slice, blocks: FloatArray, matrix: FloatArray, crossed: FloatArray
    ) -> None:
        """Add what some rows are of QᵀSQ, its lower half alone, and of -QᵀSO.

        Part by part, as two of them meet in few outputs or in none.
        """
        columns = [part.columns(rows) for part in self.parts]
        known = list(zip(columns, self.directions, self.slices, strict=True))
        for k, (left, along, where) in enumerate(known):
            bent = blocks * along if blocks.ndim == 2 else blocks @ along
            crossed[where] -= left @ (bent @ self.problem.outward)
            for right, other, there in known[:k]:
                weight = bent @ other
                if weight.any():
                    matrix[where, there] += (left * weight) @ right.T
            scaled = left * np.sqrt(np.maximum(bent @ along, 0.0))
            matrix[where, where] += scaled @ scaled.T

    def missing(self, gradient: FloatArray) -> FloatArray:
        """What ``rows @ w`` must be for the conditions to be met after a full step."""
        return np.asarray(-gradient[self.active] @ self.mixing)

    def multipliers(self, turn: FloatArray) -> FloatArray:
        """Change of the multipliers that a solution of the system stands for."""
        change = np.zeros(len(self.active))
        if len(turn):
            change[self.active] = -self.mixing @ turn
        return change


class FeatureColumns:
    """Columns that are features, or few combinations ``features @ mixing`` of them."""

    def __init__(self, features: FloatArray, mixing: FloatArray | None = None) -> None:
        self.features, self.mixing = features, mixing
        self.width = (features if mixing is None else mixing).shape[1]

    def pull(self, weight: FloatArray) -> FloatArray:
        """Columnsᵀ weight."""
        pulled = self.features.T @ weight
        return pulled if self.mixing is None else self.mixing.T @ pulled

    def predict(self, w: FloatArray) -> FloatArray:
        """Columns w."""
        return self.features @ (w if self.mixing is None else self.mixing @ w)

    def columns(self, rows: IntArray | slice) -> FloatArray:
        """Some rows, (width, rows)."""
        some = self.features[rows].T
        return some if self.mixing is None else self.mixing.T @ some

    def some(self, rows: IntArray) -> FeatureColumns:
        """The columns of some rows."""
        return FeatureColumns(self.features[rows], self.mixing)

    def gram(self, least: float = 0.0) -> FloatArray:
        """Products of all rows, (n, n)."""
        columns = self.columns(slice(None))
        return np.asarray(columns.T @ columns)


class PairColumns:
    """Columns that are products of two features, turned to the eigenvectors.

    ``weight`` is the sum of S over the rows.
    """

    def __init__(
        self, spectra: Spectra, k: int, pairs: Pairs, part: PSDPart, weight: float
    ) -> None:
        self.spectra, self.k, self.pairs, self.part = spectra, k, pairs, part
        self.width, self.weight = len(pairs.root), weight

    def pull(self, weight: FloatArray) -> FloatArray:
        """Columnsᵀ weight."""
        features = self.part.features
        gram = features.T @ (self.part.spread(weight)[:, None] * features)
        return self.spectra.coordinates(self.k, self.pairs, gram)

    def predict(self, w: FloatArray) -> FloatArray:
        """Columns w."""
        matrix = self.spectra.matrix(self.k, self.pairs, w)
        features = self.part.features
        return self.part.combined(np.einsum("ij,ij->i", features @ matrix, features))

    def columns(self, rows: IntArray | slice) -> FloatArray:
        """Some rows, (width, rows)."""
        part = self.part
        if part.combinations is None:
            return self._of(part.features[rows])
        return self._of(part.features) @ part.combinations[rows].T

    def some(self, rows: IntArray) -> PairColumns:
        """The columns of some rows, where there are no combinations of rows."""
        part = replace(self.part, features=self.part.features[rows])
        return PairColumns(self.spectra, self.k, self.pairs, part, self.weight)

    def gram(self, least: float = _NEGLIGIBLE) -> FloatArray:
        """Products of all rows, (n, n); of many pairs without what is ``least`` beside S."""
        part, vectors = self.part, self.spectra.vectors[self.k]
        if self.width <= _CURVED * vectors.shape[1]:
            columns = self.columns(slice(None))
            return np.asarray(columns.T @ columns)
        turned, curvature = part.features @ vectors, self.spectra.curvature(self.k)
        products = _curved_squares(turned, curvature, self.weight, least)
        some = part.combinations
        return products if some is None else np.asarray(some @ (some @ products).T)

    def _of(self, features: FloatArray) -> FloatArray:
        turned = self.spectra.vectors[self.k].T @ features.T
        block = turned[self.pairs.first]
        block *= turned[self.pairs.second]
        block *= self.pairs.root[:, None]
        return np.asarray(block)


def _curved_squares(
    turned: FloatArray, curvature: FloatArray, weight: float, least: float
) -> FloatArray:
    r"""The matrix :math:`\sum_{ab} h_{ab} (v_{ia} v_{ib}) (v_{ja} v_{jb})` of rows v, (m, r).

    There are r (r + 1) / 2 products, but the divided differences h have few eigenvalues of any
    size: with :math:`h = \sum_k \lambda_k e_k e_k^\top` it is :math:`\sum_k \lambda_k
    (V \operatorname{diag}(e_k) V^\top)^2`, entry by entry. The spectrum is that of h times the
    largest entries of each column. What is left out of a row is its diagonal entry, and all
    weights times the largest one are more than it is beside the identity.
    """
    m = len(turned)
    if not m:
        return np.zeros((0, 0))
    size = np.abs(turned).max(axis=0)
    size = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(size[:, None] * curvature * size)
    shares = (vectors / size[:, None]).T
    largest = np.abs(np.square(turned) @ shares.T).max(axis=0)
    left_out = np.abs(values) * (weight * np.square(largest))
    kept = (left_out > least) & (np.abs(values) > _ROUNDING * np.abs(values).max())
    total = np.zeros((m, m), order="F")
    for value, share in zip(values[kept], shares[kept], strict=True):
        check_time()
        products = _weighted_products(turned, np.sqrt(np.abs(value)) * share)
        np.square(products, out=products)
        total += np.copysign(1.0, value) * products
    return np.asarray(total + np.tril(total, -1).T)


def _weighted_products(rows: FloatArray, share: FloatArray) -> FloatArray:
    """The lower triangle of the matrix V diag(s) Vᵀ of rows V."""
    total = np.zeros((len(rows), len(rows)), order="F")
    for sign in (1.0, -1.0):
        some = sign * share > 0.0
        if some.any():
            half = np.sqrt(np.abs(share[some]))[:, None] * rows.T[some]
            total = dsyrk(sign, half.T, lower=1, beta=1.0, c=total, overwrite_c=1)
    return np.asarray(total)


def _root(matrix: FloatArray) -> FloatArray:
    """R with R Rᵀ = matrix, which is positive semi-definite: Cholesky's, unless it is singular."""
    if not len(matrix):
        return matrix
    root, failed = dpotrf(matrix, lower=1, clean=1)
    if failed:
        values, vectors = np.linalg.eigh(matrix)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root)


def _independent(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M and an orthonormal basis ``Mᵀ rows`` of the span of the rows."""
    if not rows.size:
        return np.zeros((len(rows), 0)), rows[:0]
    turned, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    kept = sizes > 1e-10 * max(float(sizes[0]), np.finfo(float).tiny)
    return turned[:, kept] / sizes[kept], basis[kept]


class NewtonSystem:
    r"""Solves the bordered system of a Newton step in (w, b).

    .. math:: \begin{pmatrix} I + Q^\top S Q & -Q^\top S O & R^\top \\
              -O^\top S Q & O^\top S O + \rho I & 0 \\ R & 0 & 0 \end{pmatrix}

    S is block diagonal, a (p, p) block for each row of ``active`` and zero elsewhere. It is
    solved in the smaller of the two spaces: the columns of Q or the active coordinates.
    """

    def __init__(
        self, curvature: Curvature, active: IntArray, blocks: FloatArray, ridge: float
    ) -> None:
        self.curvature = curvature
        problem = curvature.problem
        root = roots_of(blocks)
        whole = len(active) == len(problem.weight)
        count = len(active) * root.shape[1]
        outward = problem.outward
        m = outward.shape[1]
        crossed, own = np.zeros((curvature.width, m)), np.eye(m) * ridge
        self.in_rows = count < curvature.width
        check_time(min(count, curvature.width) ** 3)
        size = len(active) if self.in_rows else max(1, _BLOCK_VALUES // max(1, curvature.width))
        matrix = np.eye(count if self.in_rows else curvature.width)
        self.design = None
        single = curvature.parts[0]
        plain = len(curvature.parts) == 1 and blocks.shape[1:] == (1,) and not m
        if plain and not self.in_rows and isinstance(single, FeatureColumns):
            # a single function: the products of few features, before they are mixed
            features = single.features if whole else single.features[active]
            scaled = features * (float(curvature.directions[0][0]) * np.sqrt(blocks))
            inner = scaled.T @ scaled
            matrix += inner if single.mixing is None else single.mixing.T @ inner @ single.mixing
            active = active[:0]
        for start in range(0, len(active), max(size, 1)):
            part = slice(start, start + size)
            rows = part if whole else active[part]
            check_time(operations(curvature.width, len(active[part]) * root.shape[1]))
            if not self.in_rows:
                curvature.add_products(rows, blocks[part], matrix, crossed)
                own += between_outputs(outward, blocks[part])
                continue
            self.design = design = curvature.design(rows, root[part])
            border = (root[part] @ outward).reshape(design.shape[1], m)
            matrix += design.T @ design
            crossed -= design @ border
            own += border.T @ border
        self.factor = cholesky_of(matrix), True
        self._set_border(crossed, own)

    def _set_border(self, crossed: FloatArray, own: FloatArray) -> None:
        """Reduce the system to offsets and conditions: blocks -QᵀSO and OᵀSO + ρI."""
        self.border = np.concatenate([crossed, self.curvature.rows.T], axis=1)
        self.n_offsets = len(own)
        if self.border.shape[1]:
            self.reduced = self._main(self.border)
            self.schur = -self.border.T @ self.reduced
            self.schur[: len(own), : len(own)] += own

    def _main(self, right: FloatArray) -> FloatArray:
        """(I + QᵀSQ)⁻¹ times something."""
        if not self.in_rows:
            return np.asarray(cho_solve(self.factor, right, check_finite=False))
        if self.design is None:
            return right.copy()
        inner = cho_solve(self.factor, self.design.T @ right, check_finite=False)
        return np.asarray(right - self.design @ inner)

    def solve(
        self, w: FloatArray, b: FloatArray, miss: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Solve for a right-hand side (w, b, miss)."""
        first = self._main(w)
        if not self.border.shape[1]:
            return first, b.copy(), np.zeros(0)
        if miss is None:
            miss = np.zeros(self.border.shape[1] - len(b))
        right = np.concatenate([b, miss])
        rest = np.linalg.solve(self.schur, right - self.border.T @ first)
        w = np.asarray(first - self.reduced @ rest)
        return w, np.asarray(rest[: self.n_offsets]), np.asarray(rest[self.n_offsets :])


def between_outputs(outward: FloatArray, blocks: FloatArray) -> FloatArray:
    """OᵀSO."""
    if blocks.ndim == 2:
        return np.asarray(outward.T @ (blocks.sum(axis=0)[:, None] * outward))
    return np.asarray(outward.T @ blocks.sum(axis=0) @ outward)


def operations(width: int, count: int) -> float:
    """Of a block of columns (width, count) and their products in the smaller space."""
    return _MADE * width * count + 2.0 * width * count * min(width, count)


def roots_of(blocks: FloatArray) -> FloatArray:
    """R with Rᵀ R = S, row by row: (n, q, p) for blocks (n, p) or (n, p, p)."""
    if blocks.ndim == 2:
        if blocks.shape[1] == 1:
            return np.sqrt(blocks)[:, :, None]
        return np.sqrt(blocks)[:, :, None] * np.eye(blocks.shape[1])
    lam, u = np.linalg.eigh(blocks)
    return np.sqrt(np.maximum(lam, 0.0))[:, :, None] * u.transpose(0, 2, 1)


def apply_blocks(blocks: FloatArray, vectors: FloatArray) -> FloatArray:
    """Row by row, block times vector."""
    if blocks.ndim == 2:
        return blocks * vectors
    return np.einsum("ijk,ik->ij", blocks, vectors)


def inverse_blocks(blocks: FloatArray) -> FloatArray:
    """Row by row, the inverse."""
    return np.asarray(1.0 / blocks if blocks.ndim == 2 else np.linalg.inv(blocks))

"""Check of a design."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.design import Design
from fenchel.testing._saying import about, require, require_shape

_TOL = 1e-8  # of the largest value: products of features lose half of the digits at most


def check_design(design: Design, random_state: int = 0) -> None:
    r"""Check that all methods of a design are consistent.

    The kernel matrix is computed from the values of :math:`K(\cdot, x_i) e_j` on all rows. It must
    be symmetric and positive semi-definite. Values, blocks, norms, inner products of functions and
    subsets are compared with it. So are the optional methods, if defined: the Hessian, the matrix
    of predictions, single outputs, the spectrum, the diagonal, coupling and Gram matrix.

    Parameters
    ----------
    design : Design
        The design. Rows times outputs should be at most a few hundred.
    random_state : int
        Seed of the trial points.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Plain
    >>> from fenchel.testing import check_design
    >>> rng = np.random.default_rng(0)
    >>> check_design(Plain(rng.normal(size=(9, 4)), np.eye(2)))
    >>> class Forgetful(Plain):
    ...     def squared_norm(self, weights):
    ...         return 0.0
    >>> check_design(Forgetful(rng.normal(size=(9, 4)), np.eye(2)))
    Traceback (most recent call last):
        ...
    AssertionError: Forgetful: squared_norm of a function is 0, and by the kernel it is ...
    """
    with about(type(design).__name__):
        trial = _Trial(design, np.random.default_rng(random_state))
        trial.check_functions()
        trial.check_subset()
        trial.check_optional()


class _Trial:
    """A design with the matrix of its kernel, (n p, n p)."""

    def __init__(self, design: Design, random: np.random.Generator) -> None:
        self.design, self.random = design, random
        self.n, self.p = design.n_rows, design.n_outputs
        size = self.n * self.p
        units = np.eye(size).reshape(size, self.n, self.p)
        columns = [design.values(design.link(unit)).ravel() for unit in units]
        self.kernel = np.stack(columns, axis=1)
        self.size = max(float(np.abs(self.kernel).max()), np.finfo(float).tiny)
        gap = float(np.abs(self.kernel - self.kernel.T).max())
        require(gap <= _TOL * self.size, f"the kernel must be symmetric, and is off by {gap:.3g}")
        lowest = float(np.linalg.eigvalsh(0.5 * (self.kernel + self.kernel.T))[0])
        require(
            lowest >= -_TOL * self.size * size,
            f"the kernel must be positive semi-definite, and has the eigenvalue {lowest:.3g}",
        )

    def near(self, found: Any, expected: Any, what: str) -> None:
        """Require that two arrays agree; ``what`` takes up the sentence."""
        found, expected = np.asarray(found), np.asarray(expected)
        require_shape(found, expected.shape, what.split(" ", maxsplit=1)[0])
        scale = _TOL * max(float(np.abs(expected).max(initial=0.0)), self.size)
        worst = np.abs(found - expected).max(initial=0.0)
        if found.ndim == 0:
            said = f"{what} is {float(found):.6g}, and by the kernel it is {float(expected):.6g}"
        else:
            said = f"{what} differ from those of the kernel by {worst:.3g}"
        require(bool(worst <= scale), said)

    def check_functions(self) -> None:
        """Values, norms and inner products, whole and in blocks."""
        design, n, p = self.design, self.n, self.p
        push = self.random.standard_normal((n, p))
        weights = design.link(push)
        require_shape(weights, design.zero().shape, "link")
        image = (self.kernel @ push.ravel()).reshape(n, p)
        self.near(design.values(weights), image, "values of a function")
        self.near(design.image(push), image, "image of a push")
        some = np.array([0, n - 1])
        part = np.zeros_like(push)
        part[some] = push[some]
        of_part = (self.kernel @ part.ravel()).reshape(n, p)
        self.near(design.image(push[some], some), of_part, "image of a push on some rows")
        directions = design.directions(weights)
        out = np.empty((n, p))
        for rows in (slice(0, n // 2), slice(n // 2, n)):
            design.predict(rows, directions, out=out[rows])
        self.near(out, image, "predict in blocks, into an array,")
        halves = [design.pull(rows, push[rows]) for rows in (slice(0, n // 2), slice(n // 2, n))]
        joined = design.values(design.weights_of(halves[0] + halves[1]))
        self.near(joined, image, "pull, added up over two blocks: values")
        square = float(push.ravel() @ image.ravel())
        self.near(design.squared_norm(weights), square, "squared_norm of a function")
        chosen = self.random.integers(0, n, 5)
        vectors = self.random.standard_normal((5, p))
        functions = design.functions(chosen, vectors)
        spread = np.zeros((5, n, p))
        spread[np.arange(5), chosen] = vectors
        flat = spread.reshape(5, -1)
        gram = flat @ self.kernel @ flat.T
        self.near(functions.gram(), gram, "functions.gram: inner products")
        self.near(functions.values(weights), flat @ image.ravel(), "functions.values")
        matrix = np.zeros((5, 5), order="F")
        functions.fill(matrix)
        self.near(np.tril(matrix), np.tril(np.eye(5) + gram), "functions.fill: entries")
        sizes = self.random.standard_normal(5)
        total = design.values(functions.weights(sizes)).ravel()
        self.near(total, self.kernel @ (sizes @ flat), "functions.weights: values")

    def check_subset(self) -> None:
        """Some rows are a design with the corresponding part of the kernel."""
        rows = np.sort(self.random.choice(self.n, max(1, self.n // 2), replace=False))
        part = self.design.subset(rows)
        require(part.n_rows == len(rows), f"subset has {part.n_rows} rows, not {len(rows)}")
        push = self.random.standard_normal((len(rows), self.p))
        whole = np.zeros((self.n, self.p))
        whole[rows] = push
        image = (self.kernel @ whole.ravel()).reshape(self.n, self.p)
        weights = part.link(push)
        self.near(part.values(weights), image[rows], "subset: values")
        everywhere = self.design.values(self.design.from_subset(rows, weights))
        self.near(everywhere, image, "from_subset: values")

    def check_optional(self) -> None:
        """What solvers make use of where it is there."""
        design, n, p = self.design, self.n, self.p
        matrix = design.matrix()
        if matrix is not None:
            self.near(matrix @ matrix.T, self.kernel, "matrix: products of rows")
        if (hessian := design.hessian(np.arange(n), np.ones((n, p)))) is not None:
            whole = np.stack([design.values(unit).ravel() for unit in _units(design.zero())], 1)
            both = np.hstack([whole, np.tile(np.eye(p), (n, 1))])
            self.near(hessian, both.T @ both, "hessian: entries")
        traces = np.einsum("ijij->i", self.kernel.reshape(n, p, n, p)) / p
        if design.mask is None:
            self.near(design.diagonal(), traces, "diagonal: entries")
        if design.coupling is None or design.mask is not None:
            return
        output = design.coupling @ design.coupling.T
        for scalar in (design.gram, design.features):
            if scalar is not None:
                gram = scalar if scalar is design.gram else scalar @ scalar.T
                self.near(np.kron(gram, output), self.kernel, "gram or features with coupling")
        self._check_spectrum(output)
        if (single := design.output(0)) is not None:
            own = self.kernel.reshape(n, p, n, p)[:, 0, :, 0]
            push = self.random.standard_normal((n, 1))
            self.near(single.values(single.link(push)), own @ push, "output: values")

    def _check_spectrum(self, output: FloatArray) -> None:
        weight = self.random.uniform(0.5, 2.0, self.n)
        values, vectors = self.design.spectrum(weight)
        root = np.sqrt(weight / weight.sum())
        scaled = (vectors * values) @ vectors.T / np.outer(root, root)
        self.near(np.kron(scaled, output), self.kernel, "spectrum: the matrix it stands for")
        outputs, basis = self.design.output_spectrum
        self.near((basis * outputs) @ basis.T, output, "output_spectrum: the matrix")
        if (chain := self.design.output_chain) is not None:
            self.near(chain.times(np.eye(len(output))), output, "output_chain: the matrix")


def _units(zero: FloatArray) -> FloatArray:
    """Weights with a single one in them, (size, *shape)."""
    return np.eye(zero.size).reshape(zero.size, *zero.shape)

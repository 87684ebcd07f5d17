"""scikit-learn's coordinate descent for the Lasso, dense or sparse, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from fenchel._threads import without_warnings
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import CheckedWhenMade
from fenchel.certificate import Callback, Certified
from fenchel.design import SparseRows
from fenchel.norm_problem import NormProblem
from fenchel.solvers.base import Solution, solution_of
from fenchel.solvers.lars import needs_the_lasso, on_path
from fenchel.solvers.loop import Iterate, Loop
from fenchel.solvers.norm_fista import REMEDY, NormFista

_PATH_SIZE = 2000  # rows or columns up to which the path is a remedy for slow descent
_FIRST_SWEEPS = 10  # the products of all columns take about as long, and easy fits end before
_ALL, _FIRST_COLUMNS = 500, 100
# Times the gap of all columns, to which the problem of some is solved. Of 0.003 to 0.1, this was
# among the fastest for eight problems of 300 to 2000 rows and 400 to 20 000 columns.
_ROUGH = 0.03


@dataclass(frozen=True)
class LassoDescent(CheckedWhenMade):
    """Lasso by scikit-learn's coordinate descent, or by the path if that does not converge.

    If there are many more rows than columns and the first sweeps are not enough, it goes on with
    the products of columns, which take less time than rows. Of more than 500 columns, those that
    matter are found by solving the problem with some of them, at first the 100 with the steepest
    slopes, until the certificate of all is good.

    Parameters
    ----------
    tol : float
        Relative duality gap at which it stops.
    max_iter : int
        Maximum number of sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.norm_problem import NormProblem
    >>> from fenchel.norms import GroupNorm
    >>> from fenchel.solvers import LassoDescent
    >>> X, y = np.array([[1.0, 0.5], [-1.0, 0.5], [0.0, -1.0]]), np.array([[2.0], [-2.0], [0.0]])
    >>> absolute = GroupNorm(np.arange(2), q=1.0, p=1.0)
    >>> problem = NormProblem(X, y, 3.0, absolute, strength=0.1)
    >>> LassoDescent().solve(problem).weights.round(3)[:, 0]
    array([1.85, 0.  ])
    """

    tol: float = 1e-6
    max_iter: int = 10_000

    def requires(self, problem: NormProblem) -> str | None:
        """Return None for the penalized Lasso with one output, else what is missing."""
        if problem.constrained:
            return "needs a penalty in place of a bound; Lars takes both"
        return needs_the_lasso(problem)

    def solve(
        self,
        problem: NormProblem,
        warm_start: FloatArray | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Return the best certified weights; a warm start is a sign of a path."""
        loop: Loop[Certified] = Loop(self.tol, callback)
        loop.run(self._iterates(problem, warm_start))
        return solution_of(loop, loop.status(REMEDY, "sweeps"))

    def _iterates(
        self, problem: NormProblem, start: FloatArray | None
    ) -> Iterator[Iterate[Certified]]:
        weights, sweeps = problem.zero() if start is None else start, 0
        if isinstance(problem.features, SparseRows):
            weights, sweeps = self._descend(problem, weights, self.tol)
            yield Iterate(sweeps, problem.certify(weights))
            yield from NormFista(self.tol, self.max_iter).iterates(problem, weights, sweeps)
            return
        d, size = len(weights), _FIRST_COLUMNS
        if d > _ALL:
            certified = problem.certify(weights)
            yield Iterate(0, certified)
        while sweeps < self.max_iter:
            needed = max(size, 2 * int(np.count_nonzero(weights)))
            size = d if d <= _ALL else min(needed, d)
            gap = np.inf if size == d else certified.certificate.relative_gap
            tol = self.tol if size == d else max(self.tol, _ROUGH * gap)
            columns = _most_pulled(problem, weights, size)
            part = problem if columns is None else problem.of_columns(columns)
            for limit, by_products in self._phases(part, size == d, start is None):
                if sweeps >= self.max_iter:
                    break
                own = weights if columns is None else weights[columns]
                left = min(limit, self.max_iter - sweeps)
                found, more = self._descend(part, own, tol, left, by_products)
                weights, sweeps = _among(problem, found, columns), sweeps + more
                certified = problem.certify(weights)
                yield Iterate(sweeps, certified)
            if size == d:
                break
            if tol == self.tol or not certified.certificate.relative_gap < gap:
                size *= 2  # these columns can do no more
        if min(problem.features.shape) <= _PATH_SIZE:
            yield Iterate(sweeps, problem.certify(on_path(problem)[1]))

    def _phases(self, problem: NormProblem, every: bool, cold: bool) -> list[tuple[int, bool]]:
        """Numbers of sweeps of some or all columns, and whether these are with their products.

        The last ones of all columns are without: products of nearly collinear ones lose digits.
        """
        (n, d), plain = problem.features.shape, (self.max_iter, False)
        if d > n:
            return [plain]
        first = [(_FIRST_SWEEPS, False)] if every and cold and d <= _ALL else []
        return [*first, (self.max_iter, True), *([plain] if every else [])]

    def _descend(
        self,
        problem: NormProblem,
        start: FloatArray,
        tol: float,
        most: int | None = None,
        by_products: bool = False,
    ) -> tuple[FloatArray, int]:
        """Weights (d, 1), and the number of sweeps, at most ``most``."""
        from sklearn.linear_model import enet_path  # noqa: PLC0415  (not with every estimator)

        rows, features, options = len(problem.targets), problem.features, {}
        targets = problem.targets[:, 0]
        if isinstance(features, SparseRows):
            root = features.root[:, 0]
            options = {"X_offset": features.means, "X_scale": np.ones(len(features.means))}
            if np.ptp(root) > 0.0:
                options["sample_weight"], targets = root**2, targets / root
            features = features.matrix
        else:
            features = np.asfortranarray(features)
        if by_products:
            options = {"Xy": problem.pulled[:, 0]}
        skipped = config_context(skip_parameter_validation=True)
        with skipped, without_warnings(ConvergenceWarning):  # the certificate says it
            _, coefs, _, sweeps = enet_path(
                features,
                np.ascontiguousarray(targets),
                l1_ratio=1.0,
                alphas=[problem.strength * (problem.count / rows)],
                precompute=problem.products if by_products else False,
                coef_init=start[:, 0],
                check_input=False,
                return_n_iter=True,
                max_iter=self.max_iter if most is None else most,
                tol=0.45 * tol,  # of ‖y‖², the baseline is half of that
                **options,
            )
        weights: FloatArray = coefs
        return weights, int(sweeps[0])


def _most_pulled(problem: NormProblem, weights: FloatArray, size: int) -> IntArray | None:
    """The columns that have a weight and those of the steepest slopes; None for all."""
    if size == len(weights):
        return None
    pull = np.abs(problem.features.T @ (problem.targets - problem.features @ weights))[:, 0]
    pull[weights[:, 0] != 0.0] = np.inf
    return np.sort(np.argpartition(pull, -size)[-size:])


def _among(problem: NormProblem, some: FloatArray, columns: IntArray | None) -> FloatArray:
    """Weights of all columns, zero but for some."""
    if columns is None:
        return some
    weights = problem.zero()
    weights[columns] = some
    return weights

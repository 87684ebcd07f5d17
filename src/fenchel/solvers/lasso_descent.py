"""scikit-learn's coordinate descent for the Lasso, dense or sparse, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from fenchel._threads import without_warnings
from fenchel._typing import FloatArray
from fenchel.certificate import Certified
from fenchel.design import SparseRows
from fenchel.norm_problem import NormProblem
from fenchel.solvers.base import LoopSolver
from fenchel.solvers.lars import needs_the_lasso, on_path
from fenchel.solvers.loop import Iterate
from fenchel.solvers.norm_fista import REMEDY, NormFista
from fenchel.solvers.some_columns import MANY, on_some_columns

_PATH_SIZE = 2000  # rows or columns up to which the path is a remedy for slow descent
_FIRST_SWEEPS = 10  # the products of all columns take about as long, and easy fits end before


@dataclass(frozen=True)
class LassoDescent(LoopSolver):
    """Lasso by scikit-learn's coordinate descent, or by the path if that does not converge.

    If there are no more columns than rows and the first sweeps are not enough, it goes on with
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

    remedy: ClassVar[str] = REMEDY
    unit: ClassVar[str] = "sweeps"
    tol: float = 1e-6
    max_iter: int = 10_000

    def requires(self, problem: NormProblem) -> str | None:
        """Return None for the penalized Lasso with one output, else what is missing."""
        if problem.constrained:
            return "needs a penalty in place of a bound; Lars takes both"
        return needs_the_lasso(problem)

    def _iterates(
        self, problem: NormProblem, start: FloatArray | None
    ) -> Iterator[Iterate[Certified]]:
        """Yield points; a start is a sign of a path, whose fits share the products of columns."""
        weights, sweeps = problem.zero() if start is None else start, 0
        if isinstance(problem.features, SparseRows):
            weights, sweeps = self._descend(problem, weights, self.tol, self.max_iter)
            yield Iterate(sweeps, problem.certify(weights))
            yield from NormFista(self.tol, self.max_iter).iterates(problem, weights, sweeps)
            return

        def solve(
            part: NormProblem, own: FloatArray, tol: float, most: int
        ) -> tuple[FloatArray, int]:
            return self._descend(part, own, tol, most, by_products=_are_few(part))

        weights, sweeps = yield from on_some_columns(
            problem, weights, self.tol, self.max_iter, solve
        )
        for most, by_products in self._phases(problem, start is None):
            if sweeps < self.max_iter:
                left = min(most, self.max_iter - sweeps)
                weights, more = self._descend(problem, weights, self.tol, left, by_products)
                sweeps += more
                yield Iterate(sweeps, problem.certify(weights))
        if min(problem.features.shape) <= _PATH_SIZE:
            yield Iterate(sweeps, problem.certify(on_path(problem)[1]))

    def _phases(self, problem: NormProblem, cold: bool) -> list[tuple[int, bool]]:
        """Numbers of sweeps, and whether these are with the products of columns.

        The last ones are without: products of nearly collinear columns lose digits.
        """
        plain = (self.max_iter, False)
        if not _are_few(problem):
            return [plain]
        first = [(_FIRST_SWEEPS, False)] if cold and problem.features.shape[1] <= MANY else []
        return [*first, (self.max_iter, True), plain]

    def _descend(
        self,
        problem: NormProblem,
        start: FloatArray,
        tol: float,
        most: int,
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
                max_iter=most,
                tol=0.45 * tol,  # of ‖y‖², the baseline is half of that
                **options,
            )
        weights: FloatArray = coefs
        return weights, int(sweeps[0])


def _are_few(problem: NormProblem) -> bool:
    """Whether sweeps are faster with the products of the columns."""
    rows, columns = problem.features.shape
    return columns <= rows

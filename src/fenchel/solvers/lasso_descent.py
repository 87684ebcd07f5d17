"""scikit-learn's coordinate descent for the Lasso, dense or sparse, with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
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

_PATH_SIZE = 2000  # rows or columns up to which the path is a remedy for slow descent


@dataclass(frozen=True)
class LassoDescent(LoopSolver):
    """Lasso by scikit-learn's coordinate descent, or by the path if that does not converge.

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
        weights, sweeps = self._descend(problem, start)
        yield Iterate(sweeps, problem.certify(weights))
        if isinstance(problem.features, SparseRows):
            yield from NormFista(self.tol, self.max_iter).iterates(problem, weights, sweeps)
        elif min(problem.features.shape) <= _PATH_SIZE:
            yield Iterate(sweeps, problem.certify(on_path(problem)[1]))

    def _descend(self, problem: NormProblem, start: FloatArray | None) -> tuple[FloatArray, int]:
        """Weights (d, 1), and the number of sweeps."""
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
        with without_warnings(ConvergenceWarning):  # the certificate says it
            _, coefs, _, sweeps = enet_path(
                features,
                np.ascontiguousarray(targets),
                l1_ratio=1.0,
                alphas=[problem.strength * (problem.count / rows)],
                precompute=False,
                coef_init=None if start is None else start[:, 0],
                check_input=False,
                return_n_iter=True,
                max_iter=self.max_iter,
                tol=0.45 * self.tol,  # of ‖y‖², the baseline is half of that
                **options,
            )
        weights: FloatArray = coefs
        return weights, int(sweeps[0])

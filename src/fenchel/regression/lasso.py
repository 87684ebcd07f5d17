"""The Lasso: sparse coefficients, with a penalty or with a bound on their sum."""

from __future__ import annotations

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import FloatArray
from fenchel.design import CentredRows
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from fenchel.regression._linear import NormModel
from fenchel.solvers import Lars, LassoDescent, NormFista, NormSolver, Solution, side_by_side


@parameters
class Lasso(NormModel):
    r"""Least squares with sparse coefficients, by a penalty or by a bound on their ℓ₁ norm.

    .. math:: \min_{w, b}\; \alpha \|w\|_1
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, (y_i - w \cdot x_i - b)^2

    .. math:: \min_{w, b}\; \frac{1}{2 \sum_i s_i} \sum_i s_i\, (y_i - w \cdot x_i - b)^2
              \quad\text{where}\quad \|w\|_1 \le \Lambda_1

    with ``alpha`` and with ``radius`` :math:`= \Lambda_1`. Several outputs are as many
    independent problems, each with this alpha or this radius;
    :class:`GroupLasso` selects columns for all of them together.

    Parameters
    ----------
    alpha : float, optional
        Strength of the penalty, > 0; 1e-3 if neither it nor ``radius`` is given. With N the sum
        of the weights (the number of rows without weights), the textbook's λ in (11.29) is
        2 * alpha * N; scikit-learn's ``Lasso(alpha)`` is alpha here.
    radius : float, optional
        The bound Λ₁ in (11.30), > 0, in place of ``alpha``.
    fit_intercept : bool, default=True
        Whether each output has a free offset.
    tol : float, default=1e-6
        Relative duality gap at which the fit has converged.
    max_iter : int, default=10000
        Limit on the number of sweeps of coordinate descent, or of gradient steps.
    verbose : int, default=0
        If positive, one line for each certificate is printed.
    callback, max_time
        As in :class:`QuantileRegressor`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        w; the second shape where y has two dimensions.
    intercept_ : float or ndarray of shape (n_outputs,)
        b.
    selected_ : ndarray of int
        Columns with a coefficient that is not zero, of any output.
    alpha_, radius_ : float, or ndarray of shape (n_outputs,) where there are several
        The strength and the bound at which the two forms have this solution: ``alpha_`` is alpha
        or the multiplier of the bound, ``radius_`` is ‖w‖₁.
    certificate_ : Certificate
        Of the very problem above, the sum over outputs. The dual point is the best multiple of
        the residuals (y - w·x - b), with max_j \|Σ_i s_i θ_i x_ij\| <= alpha Σ_i s_i in the
        penalized form; in the constrained form every such point is feasible.
    status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    See Also
    --------
    lasso_path : All solutions at once.

    Notes
    -----
    The penalized form is solved by scikit-learn's coordinate descent, the constrained one by its
    LARS, exact up to rounding: along the path ‖w‖₁ is linear between knots. The path also
    stands in where descent does not get there, and FISTA where the path ends early. Sparse X is
    never made dense, nor are its means taken off: there, FISTA is the remedy, and solves the
    constrained form.

    The Lasso has no natural use of kernels: with empirical kernel maps, the rows of the Gram
    matrix as features, it selects the rows that carry a function (see the second example).

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.4.

    Examples
    --------
    >>> from fenchel import Lasso
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X = [[1.0, 0.1], [2.0, -0.1], [3.0, 0.1], [4.0, 0.3]]
    >>> model = Lasso(alpha=0.1).fit(X, [1.0, 2.0, 3.0, 4.0])
    >>> model.selected_
    array([0])
    >>> Lasso(radius=0.5).fit(X, [1.0, 2.0, 3.0, 4.0]).coef_.round(9)
    array([0.5, 0. ])

    >>> from sklearn.pipeline import make_pipeline
    >>> from fenchel.features import KernelRows
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> model = make_pipeline(KernelRows("gaussian"), Lasso(alpha=0.01)).fit(X, y)
    >>> len(model[-1].selected_) < 20
    True
    """

    alpha: float | None = None

    def make_norm(self, n_features: int) -> GroupNorm:
        return GroupNorm(np.zeros(n_features, dtype=np.intp), 1.0, 1.0)

    def _solve(
        self, rows: CentredRows, problem: NormProblem, start: FloatArray | None
    ) -> Solution:
        tol = float(self.tol)
        solver: NormSolver = LassoDescent(tol, int(self.max_iter))
        if problem.constrained:
            dense = isinstance(rows.features, np.ndarray)
            solver = (Lars if dense else NormFista)(tol, int(self.max_iter))
        parts = [problem.output(j) for j in range(problem.n_outputs)]
        starts = [None if start is None else start[:, [j]] for j in range(problem.n_outputs)]
        callback = self._callback()  # one clock for all
        found = [
            solver.solve(part, own, callback) for part, own in zip(parts, starts, strict=True)
        ]
        solution = side_by_side(found, tol)
        self.selected_ = np.flatnonzero(np.any(solution.weights != 0.0, axis=1))
        ends = zip(parts, [each.weights for each in found], strict=True)
        both = np.array([(part.multiplier(w), part.norm.value(w)) for part, w in ends])
        self.alpha_, self.radius_ = both.T if len(parts) > 1 else both[0].tolist()
        return solution

"""The Lasso: sparse coefficients, with an ℓ₁ penalty or an ℓ₁ constraint."""

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
    r"""Linear least squares with an ℓ₁ penalty (Lasso) or an ℓ₁ constraint.

    .. math:: \min_{w, b}\; \alpha \|w\|_1
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, (y_i - w \cdot x_i - b)^2

    .. math:: \min_{w, b}\; \frac{1}{2 \sum_i s_i} \sum_i s_i\, (y_i - w \cdot x_i - b)^2
              \quad\text{where}\quad \|w\|_1 \le \Lambda_1

    The first problem is solved with ``alpha``, the second with ``radius`` :math:`= \Lambda_1`.
    Several outputs are independent problems, each with the same alpha or radius.
    :class:`GroupLasso` selects columns jointly for all outputs.

    Parameters
    ----------
    alpha : float, optional
        Strength of the penalty, > 0; 1e-3 if neither ``alpha`` nor ``radius`` is given. With N
        the sum of the weights (the number of rows without weights), the textbook's λ in (11.29)
        is 2 * alpha * N. scikit-learn's ``Lasso`` has the same alpha.
    radius : float, optional
        The bound Λ₁ in (11.30), > 0, used instead of ``alpha``.
    fit_intercept : bool, default=True
        Whether each output has an unpenalized offset.
    tol : float, default=1e-6
        Relative duality gap at which the fit has converged.
    max_iter : int, default=10000
        Maximum number of sweeps of coordinate descent, or of gradient steps.
    verbose : int, default=0
        If positive, one line is printed for each certificate.
    callback, max_time
        As in :class:`QuantileRegressor`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients w. The second shape is used if y has two dimensions.
    intercept_ : float or ndarray of shape (n_outputs,)
        Offset b.
    selected_ : ndarray of int
        Indices of the columns with a nonzero coefficient for some output.
    alpha_, radius_ : float, or ndarray of shape (n_outputs,) if there are several outputs
        The strength and the bound at which the two problems have this solution: ``alpha_`` is
        alpha or the multiplier of the bound, ``radius_`` is ‖w‖₁.
    certificate_ : Certificate
        Certificate of the problem above, summed over outputs. The dual point is the best multiple
        of the residuals (y - w·x - b). In the penalized problem it satisfies
        max_j \|Σ_i s_i θ_i x_ij\| <= alpha Σ_i s_i; in the constrained problem every multiple is
        feasible.
    status_, n_iter_, history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    See Also
    --------
    lasso_path : The whole regularization path.

    Notes
    -----
    The penalized problem is solved by scikit-learn's coordinate descent. The constrained problem
    is solved by scikit-learn's LARS, exact up to rounding, since ‖w‖₁ is linear between the knots
    of the path. LARS is also used if coordinate descent does not converge, and FISTA if the
    path ends early. Sparse X is neither made dense nor centred: for sparse X, FISTA is the
    fallback of coordinate descent, and it solves the constrained problem.

    The Lasso has no direct kernel version. With empirical kernel maps, whose features are the rows
    of the Gram matrix, it selects the rows that carry a function (see the second example).

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

    candidate_tol = 1e-5  # of the spread of y: below the noise, if that is a hundredth of it
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

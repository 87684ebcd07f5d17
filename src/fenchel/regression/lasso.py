"""The Lasso: sparse coefficients, with a penalty or with a bound on their sum."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fenchel._typing import FloatArray
from fenchel._validation import check_number
from fenchel.certificate import Certificate
from fenchel.regression._lars import LassoPath, along, knots, lasso_path
from fenchel.regression._linear_base import Fit, LinearModel, Rows
from fenchel.regression._norm_problem import NormProblem, check_form, fista, judged
from fenchel.regression._norms import GroupNorm

_PATH_SIZE = 2000  # rows or columns up to which the path is a remedy for slow descent


class Lasso(LinearModel):
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
    status_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    See Also
    --------
    lasso_path : All solutions at once.

    Notes
    -----
    The penalized form is solved by scikit-learn's coordinate descent, the constrained one by its
    LARS, exact up to rounding: along the path ‖w‖₁ is linear between knots. The path also
    stands in where descent does not get there, and FISTA where the path ends early.

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

    def __init__(
        self,
        alpha: float | None = None,
        *,
        radius: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> None:
        self.alpha = alpha
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def check_parameters(self) -> None:  # noqa: D102
        check_form(self)
        check_number(self, "tol", low=0.0, open_low=True)
        check_number(self, "max_iter", low=1, integer=True)

    def _solve(self, rows: Rows) -> Fit:
        strength, constrained = check_form(self)
        tol, limit = float(self.tol), int(self.max_iter)
        design, target = rows.weighted()
        norm = GroupNorm(np.zeros(design.shape[1], dtype=np.intp), 1.0, 1.0)
        root = rows.root if self.fit_intercept else None
        coef = np.zeros((design.shape[1], target.shape[1]))
        certificates, steps = [], 0
        for k in range(target.shape[1]):
            problem = NormProblem(
                design, target[:, k : k + 1], len(target), norm, strength, constrained, root
            )
            solve = _on_path if constrained else _descend
            coef[:, k : k + 1], done = solve(problem, tol, limit)
            certificates.append(problem.certify(coef[:, k : k + 1]))
            steps = max(steps, done)
        certificate = Certificate.of_sum(certificates)
        self._describe(coef, design, target)
        status = judged(certificate.relative_gap, tol, steps)
        return Fit(coef, certificate, status, steps)

    def _describe(self, coef: FloatArray, design: FloatArray, target: FloatArray) -> None:
        self.selected_ = np.flatnonzero(np.any(coef != 0.0, axis=1))
        radius = np.abs(coef).sum(axis=0)
        strength, constrained = check_form(self)
        alpha = np.full(len(radius), strength)
        if constrained:
            alpha = np.abs(design.T @ (target - design @ coef)).max(axis=0) / len(target)
        single = len(radius) == 1
        self.alpha_ = float(alpha[0]) if single else alpha
        self.radius_ = float(radius[0]) if single else radius


def _descend(problem: NormProblem, tol: float, max_iter: int) -> tuple[FloatArray, int]:
    """Coordinate descent, and the path where that is not enough."""
    from sklearn.linear_model import enet_path  # noqa: PLC0415  (not with every estimator)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate says it
        _, coefs, _, steps = enet_path(
            problem.design,
            np.ascontiguousarray(problem.target[:, 0]),
            l1_ratio=1.0,
            alphas=[problem.strength],
            precompute=False,
            check_input=False,
            return_n_iter=True,
            max_iter=max_iter,
            tol=0.45 * tol,  # of ‖y‖², the baseline is half of that
        )
    coef: FloatArray = coefs
    if steps[0] >= max_iter and min(problem.design.shape) <= _PATH_SIZE:
        gap = problem.certify(coef).gap
        alphas, points = knots(problem.design, problem.target[:, 0])
        other = (along(-alphas, -problem.strength) @ points)[:, None]
        if gap > tol * problem.baseline and problem.certify(other).gap < gap:
            coef = other
    return coef, int(steps[0])


def _on_path(problem: NormProblem, tol: float, max_iter: int) -> tuple[FloatArray, int]:
    """The point of the path with this ‖w‖₁, and FISTA from there where the path is not exact."""
    _, points = knots(problem.design, problem.target[:, 0])
    radii = np.maximum.accumulate(np.abs(points).sum(axis=1))
    weights = along(radii, problem.strength)
    coef = problem.inside((weights @ points)[:, None])
    done = int(np.count_nonzero(radii < problem.strength))
    if problem.certify(coef).relative_gap > tol:
        coef, done = fista(problem, coef, 0.9 * tol, max_iter)
    return coef, max(done, 1)


__all__ = ["Lasso", "LassoPath", "lasso_path"]

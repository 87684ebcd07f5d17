"""Density estimation by maximum likelihood with a non-negative model."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._bases import DensityMixin
from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import (
    BOOLEAN,
    NONE,
    POSITIVE,
    WITH_DATA,
    check_weights,
    declared,
    rows_of,
    shown,
)
from fenchel.certificate import Callback, Status
from fenchel.distributions import GridDistribution
from fenchel.features import FeatureMap, Nystroem, PivotedCholesky
from fenchel.kernels import Box, Gaussian, as_box, resolve
from fenchel.learning import LEARNING, Learning
from fenchel.positive._base import (
    FEATURE_TOL,
    MOST_FEATURES,
    PositiveEstimator,
    Prepared,
    mean_of_counted,
)
from fenchel.positive._conditional import conditional_density
from fenchel.positive._few_rows import FewRowsFirst, few_rows, landmark_candidates
from fenchel.positive._left_out import learned_width
from fenchel.positive._row_sums import weighted_gram
from fenchel.positive._solution import PSDSolution, Start
from fenchel.positive.conditions import check_conditions, refuse_unreachable
from fenchel.positive.integrals import moment
from fenchel.positive.losses import LogLikelihood
from fenchel.positive.model import PSDModel
from fenchel.positive.problem import Constraint, PSDPart, PSDProblem

# Without learning, alpha, trace_penalty and this are those of 32 combinations of the highest mean
# held-out log-likelihood on eight distributions (normal, mixture, claw, gamma, uniform, Student's
# t with 3 degrees, a ring, a mixture beside a gamma) with 50, 200 and 1000 rows: on average 0.03
# nats a row below a Gaussian kernel density whose bandwidth was chosen on the held-out rows.
# The same holds for both columns of the Old Faithful data; narrow modes want a smaller width.
_WIDTH = 2.0
# With a learned width 0.1 is as good as 0.01 and 0.001, and better where the width is too small.
_STRENGTH, _STRENGTH_LEARNED = 1e-2, 1e-1
# In ten columns, two normal clusters and 1000 rows, 50 greedy pivots lose 0.6 nats a row against
# as many centres of clusters, in four columns 0.7 of a ring and none of Student's t. In two the
# pivots are exact.
_FEW_COLUMNS = 2
_CENTRES = 50
_MOST_UNCERTAIN = 1e-3  # of the integral: a thousandth of a nat for each row


@parameters
class DensityEstimator(DensityMixin, PositiveEstimator):
    r"""Probability density that is a non-negative model, by penalized maximum likelihood.

    .. math:: \min_{A \succeq 0}\; -\frac{1}{\sum_i s_i} \sum_i s_i \log f_A(x_i)
              + \mathrm{trace\_penalty}\, V \operatorname{tr} A
              + \frac{\mathrm{alpha}}{2} V^2 \|A\|_F^2, \qquad
              f_A(x) = \varphi(x)^\top A \varphi(x), \quad \int f_A = 1

    The integral is one, up to ``integral_error_``. V is the volume of the kernel of
    the features, :math:`\sum_i s_i \int k(x, x_i)^2 dx / \sum_i s_i k(x_i, x_i)` over the
    support, so that strengths do not depend on units.

    Parameters
    ----------
    alpha : float, optional
        Strength of the squared norm of A, > 0 (λ₂ of the paper); by default 0.1 where the width
        was learned, and 0.01 where it was not.
    trace_penalty : float, default=1e-3
        Strength of the trace of A, >= 0 (λ₁ of the paper); it lowers the rank.
    kernel : None, str, kernel or callable, default=None
        See :func:`fenchel.kernels.as_kernel`. None is a Gaussian kernel whose length scales are
        a multiple of the standard deviations times 2 n^(-1/(4 + n_features)), where n is the
        effective number (Σ s)² / Σ s² of different rows: equal rows count as one with the sum of
        their weights. So neither the scale of weights matters nor whether rows are repeated or
        weighted, and the weights of a survey make the density as smooth as their spread says.
        The multiple is learned; it is one without learning. A kernel that is given stays as it
        is, with what is left open read off the rows by rules.
    learn : bool or Learning, default=True
        Whether the multiple is learned: the normal kernel density of half these length scales
        gives rows that are left out of it, with their repeats, the highest likelihood. It has a
        closed form, and looks at no more different rows than :class:`fenchel.learning.Learning`
        says. Below 12 different rows nothing is learned.
    conditions : sequence of Condition, default=()
        Linear conditions that the density must meet besides its integral, see
        :class:`Condition`: other integrals, values, derivatives and moments, such as a mean.
    support : None or pair (low, high), default=None
        Box in which the density lives, numbers or (n_features,) arrays, infinite ends allowed;
        all of R^d by default.
    solver : {"auto", "newton", "proximal_newton", "fista"} or solver, default="auto"
        "auto" is "newton". Of one column and 5000 rows or more it is Newton's method for a few
        hundred weighted points first, in whose panels polynomials have the same sums as over the
        rows; their density is certified on all rows, where steps go on if they have to. History
        and callback tell of certificates on all rows only.
    tol : float, default=1e-6
        Duality gap to reach, in nats for each row. Searches that leave the default compare
        candidates at 1e-4.
    features : {"auto", "cholesky", "nystroem", "fourier"} or FeatureMap, default="auto"
        How the kernel becomes features. "auto" is "cholesky" in one and two columns, and
        ``Nystroem(landmarks="kmeans")`` in more: the centres of clusters of rows. There the
        greedy choice of "cholesky" takes rows at the rim first.
    rank : int, optional
        Cap on the number of features; with "auto" 300 by default in one and two columns, and 50
        in more.
    max_iter, warm_start, random_state, verbose, callback, max_time
        As in :class:`NonNegativeRegressor`.

    Attributes
    ----------
    model_ : PSDModel
        The density, also its gradient, marginals and integrals.
    rank_ : int
        Rank of A.
    volume_ : float
        The volume V.
    integral_error_ : float
        Bound on ``|∫ f - 1|``, of rounding and of what is not integrated in closed form.
    certificate_ : Certificate
        Objectives, as above, of the density and of a feasible dual point; ``feasibility`` is at
        least ``integral_error_``, which ``status_`` says in words.
    dual_coef_ : ndarray of shape (n_samples,)
        Minus the weights over the densities of the rows, zero for rows without weight.
    learned_ : Learned or None
        How the width was learned; ``criterion`` is minus the mean log-likelihood of rows left
        out, in nats. None where nothing was.
    alpha_, kernel_, kernel_error_, feature_map_, n_iter_, history_, status_, n_features_in_
        As in :class:`NonNegativeRegressor`.
    feature_names_in_
        As in :class:`NonNegativeRegressor`.

    Raises
    ------
    ValueError
        If a row is outside of the support, the kernel has no finite integral on it, or
        quadrature leaves the integral uncertain by more than 1e-3.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import DensityEstimator
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> density = DensityEstimator().fit(X)
    >>> abs(density.integral() - 1.0) < 1e-8
    True
    >>> density.sample(3, random_state=0).shape
    (3, 1)

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Example 1 and (13).
    """

    candidate_tol = 1e-4  # of a nat: far below the standard error of a fold
    _most_features = MOST_FEATURES
    feature_parameters = (*PositiveEstimator.feature_parameters, "support")
    constraints = declared(
        support=WITH_DATA,
        conditions=check_conditions,
        alpha=NONE | POSITIVE,
        learn=BOOLEAN | LEARNING,
    )

    alpha: float | None = None
    _: KW_ONLY
    trace_penalty: float = 1e-3
    learn: bool | Learning = True
    features: str | FeatureMap = "auto"
    support: Any = None
    conditions: Any = ()

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the density.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples,)
            Rows, or numbers.
        y : None
            Ignored; where it is given, X must have two dimensions.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights: an integer weight is the same as repeating the row.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For parameters or data that are not allowed; the message names which.
        """
        return self._fit(X, y, sample_weight)

    def prepare(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Prepared:
        """What does not depend on strengths: rows with weight, kernel, features, integrals."""
        self._learned = None
        return self._prepared(X, y, sample_weight, False, None)

    def _prepared_for_fit(
        self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None, watch: Callback | None
    ) -> Prepared:
        self._learned = None
        prepared = self._prepared(X, y, sample_weight, bool(self.learn), watch)
        self.learned_ = self._learned
        return prepared

    def _prepared(
        self,
        X: ArrayLike,
        y: Any,
        sample_weight: ArrayLike | None,
        learns: bool,
        watch: Callback | None,
    ) -> Prepared:
        X = rows_of(self, _as_column(X) if y is None else X, least=2)
        # threads share blocks of rows; with one column all matrices are small, and the fit is
        # the same bit for bit for any number of threads if linear algebra has one
        with threads_that_pay(0 if X.shape[1] == 1 else len(X)):
            return self._prepared_rows(X, sample_weight, learns, watch)

    def _prepared_rows(
        self, X: FloatArray, sample_weight: ArrayLike | None, learns: bool, watch: Callback | None
    ) -> Prepared:
        weight = check_weights(X, sample_weight)
        rows, weight = X[weight > 0.0], weight[weight > 0.0]
        support = self._checked_support(rows)
        if learns and self.kernel is None and getattr(self.features, "kernel", None) is None:
            options = self.learn if isinstance(self.learn, Learning) else Learning()
            alpha = _STRENGTH_LEARNED if self.alpha is None else float(self.alpha)
            self._learned = learned_width(rows, weight, _length_scales, options, alpha, watch)
        inputs = self._mapped(X, sample_weight)
        with threads_that_pay(max(inputs.features.shape)):
            found = moment(inputs.feature_map, support)
        integrals = found.matrix
        features, share = inputs.features, inputs.weight / inputs.weight.sum()
        gram = weighted_gram(features, share)
        volume = float(np.vdot(gram, integrals) / np.trace(gram))
        none = np.zeros((len(features), 0))
        scale = np.array([1.0 / volume])
        few = few_rows(inputs.feature_map, inputs.rows, inputs.weight)
        return Prepared(inputs, none, np.zeros(1), scale, integrals / volume, found, few=few)

    def _chosen_solver(self, prepared: Prepared, start: Start | None = None) -> Any:
        """Newton's method on few points first, where these stand for the rows."""
        few = prepared.few
        if few is None or self.solver not in ("auto", "newton"):
            return self.solver
        problem = self._problem(prepared)
        part = replace(problem.psd[0], features=few.features)
        smaller = replace(problem, psd=[part], sample_weight=few.rule.masses, shared=few.squares)
        return FewRowsFirst(float(self.tol), int(self.max_iter), smaller, few.rule)

    def _problem(self, prepared: Prepared) -> PSDProblem:
        assert prepared.integrals is not None
        inputs = prepared.inputs
        part = PSDPart(inputs.features, self._strength(), float(self.trace_penalty))
        loss = LogLikelihood(float(prepared.scale[0]))
        one = Constraint([prepared.integrals], 1.0)
        scale = float(prepared.scale[0])
        support = as_box(self.support, inputs.feature_map.n_features_in_, "support")
        feature_map = inputs.feature_map
        linear = [each.constraint(feature_map, scale, support) for each in self.conditions]
        return PSDProblem(loss, [part], inputs.weight, constraints=[one, *linear])

    def _solve(
        self, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> PSDSolution:
        inputs, scale = prepared.inputs, float(prepared.scale[0])
        support = as_box(self.support, inputs.feature_map.n_features_in_, "support")
        refuse_unreachable(self.conditions, inputs.feature_map, inputs.features, scale, support)
        solution, found = super()._solve(prepared, start, watch), prepared.moment
        assert found is not None
        factor = _factor(prepared, solution)
        attained = float(np.vdot(factor, found.matrix @ factor))
        error = abs(attained - 1.0) + found.error_of(factor)
        if found.doubt is not None and error > _MOST_UNCERTAIN:
            raise ValueError(
                "kernel must have integrals in closed form (product_integrals), as Gaussian and "
                "Matern have, or a larger length scale, "
                f"got {shown(self.feature_map_.kernel_)}: by "
                f"quadrature the integral of the density is known to {error:.1g} only"
            )
        certificate, status = solution.certificate, solution.status
        certificate = replace(certificate, feasibility=max(certificate.feasibility, error))
        words = f"{status.message}; the integral is 1 up to {error:.1e}"
        if error > _MOST_UNCERTAIN:
            words = f"{words}, which is rounding: increase alpha"
        status = Status(status.converged and error <= _MOST_UNCERTAIN, words)
        return replace(solution, certificate=certificate, status=status)

    def _keep(self, prepared: Prepared, solution: PSDSolution) -> None:
        scale = float(prepared.scale[0])
        self.volume_ = 1.0 / scale
        self.integral_error_ = solution.certificate.feasibility
        factor = _factor(prepared, solution)
        self.model_ = PSDModel(prepared.inputs.feature_map, factor, self.support)
        self.rank_ = self.model_.rank_
        self.dual_coef_ = self.dual_coef_[:, 0] / scale

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Logarithm of the density at rows X, (n_samples,); -inf outside of the support.

        Of one column X may be numbers, (n_samples,).
        """
        check_is_fitted(self)
        rows = self._new_rows(_as_column(X) if self.n_features_in_ == 1 else X)
        return self.model_.log_values(rows)

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of rows X."""
        values = self.score_samples(X)
        return mean_of_counted(values, check_weights(values, sample_weight))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw rows from the density, (n_samples, n_features), see :meth:`PSDModel.sample`."""
        check_is_fitted(self)
        return self.model_.sample(n_samples, random_state)

    def predict_distribution(self, X: ArrayLike, column: int = -1) -> GridDistribution:
        """Predict one column of the rows from the others: its conditional distributions.

        The density of the column at each row is proportional to that of the fit, and piecewise
        linear between points of a grid that are a thirty-second of the length scale apart, as
        far around landmarks as their kernel can be seen. So quantiles and means are exact to
        about a thousandth of the standard deviation, however far out some rows are. Where the
        kernel does not decay, or its length scale is not known, the points divide the support
        into equal steps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features - 1)
            All columns of the fit but this one, in their order.
        column : int, default=-1
            Which column of the fit is predicted; the last one by default.

        Returns
        -------
        GridDistribution
            One distribution for each row.

        Raises
        ------
        ValueError
            If the fit has a single column, or its density is zero at a row whatever the column
            is; or if neither ``support`` nor the kernel bound the column.
        """
        check_is_fitted(self)
        return conditional_density(self.model_, X, column)

    def marginal(self, columns: Any) -> PSDModel:
        """Return the density of some columns, numbers from 0, see :meth:`PSDModel.marginal`."""
        check_is_fitted(self)
        return self.model_.marginal(columns)

    def integral(self, domain: Any = None) -> float:
        """Probability of a box ``(low, high)``, of everything by default."""
        check_is_fitted(self)
        return self.model_.integral(domain)

    def _strength(self) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        return _STRENGTH if self._learned is None else self._learned.alpha

    def with_learned(self) -> Self:
        """Return an unfitted copy with kernel and strength of the last fit as its parameters."""
        check_is_fitted(self)
        return self.with_kernel_of_fit(alpha=self.alpha_)

    def _resolved_kernel(self, rows: FloatArray, weight: FloatArray) -> Any:
        if self.kernel is not None or self._learned is not None:
            return super()._resolved_kernel(rows, weight)
        scales = _length_scales(rows, weight)
        return resolve(Gaussian(scales), rows, weight, self.random_state)

    def _map_of(
        self, kernel: Any, rows: FloatArray, rank: int | None = None
    ) -> tuple[FeatureMap, FloatArray]:
        if not (isinstance(self.features, str) and self.features == "auto"):
            return super()._map_of(kernel, rows, rank)
        if not self._by_centres(rows.shape[1]):
            return self._cholesky(kernel, rows, self.rank)
        centres = Nystroem(
            kernel, self.rank or _CENTRES, landmarks="kmeans", random_state=self.random_state
        )
        return centres, centres.to_arrays().fit_transform(rows)

    def _cholesky(
        self, kernel: Any, rows: FloatArray, rank: int | None
    ) -> tuple[FeatureMap, FloatArray]:
        some = landmark_candidates(rows)
        if some is None:
            return super()._cholesky(kernel, rows, rank)
        cholesky = PivotedCholesky(kernel, FEATURE_TOL, rank or MOST_FEATURES, self.random_state)
        return cholesky, cholesky.to_arrays().fit_among(rows, some)

    def _by_centres(self, n_columns: int) -> bool:
        """Whether landmarks are centres of clusters."""
        named = isinstance(self.features, str) and self.features == "auto"
        return named and n_columns > _FEW_COLUMNS

    def _warns_of_truncation(self, feature_map: FeatureMap) -> bool:
        return not self._by_centres(feature_map.n_features_in_)

    def _checked_support(self, X: FloatArray) -> Box:
        """The support, which must contain the rows."""
        support = as_box(self.support, X.shape[1], "support")
        outside = np.flatnonzero(~support.contains(X))
        if len(outside):
            raise ValueError(
                f"support must contain all rows of X, got row {outside[0]} outside of it: "
                f"{np.array2string(X[outside[0]], precision=6)}"
            )
        return support


def _as_column(X: Any) -> Any:
    """Numbers as rows of one column; all else as it is."""
    return np.asarray(X).reshape(-1, 1) if np.ndim(X) == 1 else X


def _factor(prepared: Prepared, solution: PSDSolution) -> FloatArray:
    """F of the density, in the units of the rows."""
    return np.asarray(np.sqrt(prepared.scale[0]) * solution.model.factors[0])


def _length_scales(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """Standard deviations times 2 n^(-1/(4 + d)), n the effective number of different rows."""
    axis = None if rows.shape[1] == 1 else 0  # numbers sort several times as fast as rows
    distinct, which = np.unique(rows, axis=axis, return_inverse=True)
    distinct = distinct.reshape(-1, rows.shape[1])
    share = np.bincount(np.ravel(which), weight) / weight.sum()
    centred = distinct - share @ distinct
    deviation = np.sqrt(share @ np.square(centred))
    deviation = np.where(deviation > 1e-12 * np.abs(distinct).max(axis=0), deviation, 1.0)
    number = 1.0 / float(share @ share)
    return np.asarray(deviation * _WIDTH * number ** (-1.0 / (4.0 + rows.shape[1])))

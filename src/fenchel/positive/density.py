"""Density estimation by penalized maximum likelihood with a non-negative model."""

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
from fenchel.positive._left_out import FEW_COLUMNS, learned_width
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
# as many centres of clusters, in four columns 0.7 of a ring and none of Student's t. Up to
# FEW_COLUMNS the pivots are exact.
_CENTRES = 50
# Rows for each centre up to which kernels get narrower. With 50 centres narrower ones leave out
# what is between them: of four clusters in five columns 20 000 rows had a lower likelihood than
# 1000. Of 5000 rows of seven tables of three to five columns six gain 0.01 to 0.06 nats a row.
_ROWS_OF_CENTRE = 20
_LARGEST_VOLUME = 1e290  # densities are about one over it, and far from the rows smaller
_MOST_UNCERTAIN = 1e-3  # of the integral: a thousandth of a nat for each row


@parameters
class DensityEstimator(DensityMixin, PositiveEstimator):
    r"""Density estimation with a non-negative model, by penalized maximum likelihood.

    .. math:: \min_{A \succeq 0}\; -\frac{1}{\sum_i s_i} \sum_i s_i \log f_A(x_i)
              + \mathrm{trace\_penalty}\, V \operatorname{tr} A
              + \frac{\mathrm{alpha}}{2} V^2 \|A\|_F^2, \qquad
              f_A(x) = \varphi(x)^\top A \varphi(x), \quad \int f_A = 1

    The integral is one up to ``integral_error_``. V is the volume of the kernel of the features,
    :math:`\sum_i s_i \int k(x, x_i)^2 dx / \sum_i s_i k(x_i, x_i)` over the support. With V in the
    penalties, strengths do not depend on the units of X.

    Parameters
    ----------
    alpha : float, optional
        Strength of the squared norm of A, > 0 (λ₂ in the paper). The default is 0.1 if the kernel
        width is learned from at least 12 distinct rows, and 0.01 otherwise.
    trace_penalty : float, default=1e-3
        Strength of the trace of A, >= 0 (λ₁ in the paper). It lowers the rank.
    kernel : None, str, kernel or callable, default=None
        See :func:`fenchel.kernels.as_kernel`. None is a Gaussian kernel with length scales c · 2
        n^(-1/(4 + n_features)) times the standard deviations. The multiple c is learned, or 1 with
        ``learn=False``. Here n is the effective sample size (Σ s)² / Σ s² of distinct rows; equal
        rows count as one row with the sum of their weights. The length scales thus do not depend
        on the scale of the weights, nor on whether rows are repeated or weighted. Unequal weights,
        as in surveys, give a smaller n and a smoother density. With the landmarks of
        ``features="auto"`` in three or more columns, n is at most 20 for each of them, as they do
        not resolve more. Length scales of a given kernel are not learned; those left open are
        computed from X.
    learn : bool or Learning, default=True
        Whether to learn the multiple c. It maximizes the leave-one-out likelihood of a normal
        kernel density, which has a closed form. Its bandwidths are these length scales over 2.8 in
        one and two columns, and over 2 in more columns and for cells. Repeats of a row are
        left out with it, unless fewer than 12 distinct rows hold nine tenths of the weight. Such
        rows are cells of rounded numbers or counts, and are left out one repeat at a time; whole
        weights are numbers of repeats. Where values repeat in a column, its length scale is at
        least about the distance between them. The number of distinct rows used is limited by
        :class:`fenchel.learning.Learning`. With fewer than 12 rows, or fewer than 12 distinct ones
        that are no cells, nothing is learned.
    conditions : sequence of Condition, default=()
        Linear conditions on the density besides its integral: other integrals, values, derivatives
        and moments, such as a mean. See :class:`Condition`.
    support : None or pair (low, high), default=None
        Box outside of which the density is zero, as numbers or (n_features,) arrays. Ends may be
        infinite. The default is all of R^d.
    solver : {"auto", "newton", "proximal_newton", "fista"} or solver, default="auto"
        "auto" is "newton". With one column and at least 5000 rows it first runs Newton's method on
        a few hundred weighted points that have the same sums of polynomials as the rows, panel by
        panel. The resulting density is certified on all rows, and iterations continue there if
        needed. The history and callback show certificates on all rows only.
    tol : float, default=1e-6
        Duality gap to reach, in nats per row. A parameter search compares candidates at 1e-4 if
        ``tol`` has its default value.
    features : {"auto", "cholesky", "nystroem", "fourier"} or FeatureMap, default="auto"
        Feature map of the kernel. "auto" is "cholesky" in one and two columns and
        ``Nystroem(landmarks="kmeans")`` in more, with cluster centres as landmarks. In more
        dimensions the greedy choice of "cholesky" selects rows at the boundary of the data first.
    rank : int, optional
        Maximum number of features. With ``features="auto"`` the default is 300 in one and two
        columns and 50 in more.
    max_iter, warm_start, random_state, verbose, callback, max_time
        As in :class:`NonNegativeRegressor`.

    Attributes
    ----------
    model_ : PSDModel
        The density, with methods for its gradient, marginals and integrals.
    rank_ : int
        Rank of A.
    volume_ : float
        The volume V.
    integral_error_ : float
        Bound on ``|∫ f - 1|`` from rounding and numerical integration.
    certificate_ : Certificate
        Primal objective of the density and dual objective of a feasible point. ``feasibility`` is
        at least ``integral_error_``, and ``status_`` describes it.
    dual_coef_ : ndarray of shape (n_samples,)
        Minus the weights over the densities of the rows; zero for rows of weight zero.
    learned_ : Learned or None
        Result of learning the width; ``criterion`` is minus the mean leave-one-out log-likelihood
        in nats. None if nothing was learned.
    alpha_, kernel_, kernel_error_, feature_map_, n_iter_, history_, status_, n_features_in_
        As in :class:`NonNegativeRegressor`.
    feature_names_in_
        As in :class:`NonNegativeRegressor`.

    Raises
    ------
    ValueError
        If a row is outside of the support, the kernel has no finite integral on the support, or
        quadrature leaves an uncertainty of the integral above 1e-3.

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
            Training samples; a vector is taken as one column.
        y : None
            Ignored. If given, X must have two dimensions.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. An integer weight is equivalent to repeating the row.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or data; the message names them.
        """
        return self._fit(X, y, sample_weight)

    def prepare(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Prepared:
        """Compute all that does not depend on strengths: rows, kernel, features, integrals."""
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
        if self.given_gram:
            raise ValueError(
                "kernel must be a function of rows for a density, as a Gram matrix has no "
                f"integrals, got {shown(self.kernel)}"
            )
        weight = check_weights(X, sample_weight)
        rows, weight = X[weight > 0.0], weight[weight > 0.0]
        support = self._checked_support(rows)
        if learns and self.kernel is None and getattr(self.features, "kernel", None) is None:
            options = self.learn if isinstance(self.learn, Learning) else Learning()
            alphas = _STRENGTH, _STRENGTH_LEARNED
            if self.alpha is not None:
                alphas = float(self.alpha), float(self.alpha)
            self._learned = learned_width(rows, weight, self._rule, options, alphas, watch)
        inputs = self._mapped(X, sample_weight)
        with threads_that_pay(max(inputs.features.shape)):
            found = moment(inputs.feature_map, support)
        integrals = found.matrix
        features, share = inputs.features, inputs.weight / inputs.weight.sum()
        gram = weighted_gram(features, share)
        with np.errstate(over="ignore", invalid="ignore"):
            volume = float(np.vdot(gram, integrals) / np.trace(gram))
        _check_volume(volume, inputs.feature_map.kernel_, X.shape[1])
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
        """Return the log-density at rows X, (n_samples,); -inf outside of the support.

        For one column X may also be a vector, (n_samples,).
        """
        check_is_fitted(self)
        rows = self._new_rows(_as_column(X) if self.n_features_in_ == 1 else X)
        return self.model_.log_values(rows)

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of rows X."""
        values = self.score_samples(X)
        return mean_of_counted(values, check_weights(values, sample_weight))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw samples from the density, (n_samples, n_features), see :meth:`PSDModel.sample`."""
        check_is_fitted(self)
        return self.model_.sample(n_samples, random_state)

    def predict_distribution(self, X: ArrayLike, column: int = -1) -> GridDistribution:
        """Predict the conditional distribution of one column given the others.

        The conditional density is proportional to the fitted density. It is represented as
        piecewise linear on a grid with a spacing of 1/32 of the length scale, which covers all
        landmarks up to where their kernel is negligible. Quantiles and means are accurate to about
        a thousandth of the standard deviation, however far out some rows are. If the kernel does
        not decay, or its length scale is not known, the grid divides the support into equal steps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features - 1)
            The other columns, in the order of the fit.
        column : int, default=-1
            Index of the predicted column; the last one by default.

        Returns
        -------
        GridDistribution
            One distribution for each row.

        Raises
        ------
        ValueError
            If the fit has a single column, X has other column names than the fit, the density is
            zero for a row at all values of the column, or neither ``support`` nor the kernel
            bounds the column.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return conditional_density(self.model_, X, column, names)

    def marginal(self, columns: Any) -> PSDModel:
        """Return the marginal density of some columns by index, see :meth:`PSDModel.marginal`."""
        check_is_fitted(self)
        return self.model_.marginal(columns)

    def integral(self, domain: Any = None) -> float:
        """Return the probability of a box ``(low, high)``; of all of space by default."""
        check_is_fitted(self)
        return self.model_.integral(domain)

    def _strength(self) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        return _STRENGTH if self._learned is None else self._learned.alpha

    def with_learned(self) -> Self:
        """Return an unfitted copy with the kernel and strength of the last fit."""
        check_is_fitted(self)
        return self.with_kernel_of_fit(alpha=self.alpha_)

    def _resolved_kernel(self, rows: FloatArray, weight: FloatArray) -> Any:
        if self.kernel is not None or self._learned is not None:
            return super()._resolved_kernel(rows, weight)
        scales = self._rule(rows, weight)
        return resolve(Gaussian(scales), rows, weight, self.random_state)

    def _rule(self, rows: FloatArray, weight: FloatArray) -> FloatArray:
        """Length scales without learning."""
        centres = self._by_centres(rows.shape[1])
        most = _ROWS_OF_CENTRE * (self.rank or _CENTRES) if centres else np.inf
        return _length_scales(rows, weight, most)

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
        return named and n_columns > FEW_COLUMNS

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


def _check_volume(volume: float, kernel: Any, n_columns: int) -> None:
    """Refuse units of X in which densities are too large or too small to be numbers."""
    if not 1.0 / _LARGEST_VOLUME <= volume <= _LARGEST_VOLUME:
        raise ValueError(
            f"X must be in units in which densities of {n_columns} columns are numbers, got "
            f"{shown(kernel)}, whose volume is beyond them: scale the columns, or use fewer"
        )


def _factor(prepared: Prepared, solution: PSDSolution) -> FloatArray:
    """F of the density, in the units of the rows."""
    return np.asarray(np.sqrt(prepared.scale[0]) * solution.model.factors[0])


def _length_scales(rows: FloatArray, weight: FloatArray, most: float) -> FloatArray:
    """Standard deviations times 2 n^(-1/(4 + d)), n the effective number of different rows."""
    axis = None if rows.shape[1] == 1 else 0  # numbers sort several times as fast as rows
    distinct, which = np.unique(rows, axis=axis, return_inverse=True)
    distinct = distinct.reshape(-1, rows.shape[1])
    share = np.bincount(np.ravel(which), weight) / weight.sum()
    centred = distinct - share @ distinct
    deviation = np.sqrt(share @ np.square(centred))
    deviation = np.where(deviation > 1e-12 * np.abs(distinct).max(axis=0), deviation, 1.0)
    number = min(1.0 / float(share @ share), most)
    return np.asarray(deviation * _WIDTH * number ** (-1.0 / (4.0 + rows.shape[1])))

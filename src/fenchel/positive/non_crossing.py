"""Quantile regression with curves that do not cross at any x."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Self

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import ArrayLike, FloatArray, IntArray
from fenchel._validation import COUNT, NONE, POSITIVE, SHARE, check_levels, declared
from fenchel.certificate import Callback
from fenchel.distributions import QuantileDistribution
from fenchel.kernels import as_kernel, level_coupling
from fenchel.learning import Learned, Learning
from fenchel.learning.held_out import NEAR, HalfTime, held_out_shift, in_order
from fenchel.learning_estimator import HeldOutOffsets
from fenchel.losses import Loss, Pinball
from fenchel.metrics import central_interval, d2_pinball_score, position_of_level
from fenchel.positive._base import PositiveRegressor, Prepared, with_constant
from fenchel.positive._row_sums import quadratic_forms
from fenchel.positive._solution import PSDSolution, Start
from fenchel.positive.losses import Residual
from fenchel.positive.problem import LinearPart, PSDPart, PSDProblem
from fenchel.solvers.loop import InTime

CONSTANT_STRENGTH = 1e-4  # below what the position of a single row is worth, up to 10 000 rows
MOST_GAP_FEATURES = 50
# By learned kernels the loss on 20 tables of 300 rows is the same with 10, 20 and 50, and with 20
# a distance has 231 columns in the systems of Newton's method in place of 1326.
LEARNED_GAP_FEATURES = 20
LEVEL_GAMMA = 1.0
"""The γ of the levels that kernel and alpha are learned from, the default of QuantileRegressor."""
# A barrier takes shorter steps the more targets there are, the prox more steps the smaller alpha
# is: of 300 rows, three levels and 50 features 0.8 and 0.4 s with 1e-3, 1.3 and 1.9 with 1e-5.
_MANY, _STRONG = 600, 1e-4
_ENOUGH = 1e-3  # gap of fits to a part of the rows: finer ones move offsets by 3e-3 of the scale


@parameters
class NonCrossingQuantileRegressor(HeldOutOffsets, PositiveRegressor):
    r"""Kernel quantile regression with curves that do not cross at any x.

    One level, the anchor, is an unconstrained kernel model. The gaps between neighbouring levels
    are non-negative functions, each the sum of a constant and a positive semi-definite model:

    .. math:: q_0(x) = b + w^\top \varphi(x), \qquad
              q_{\pm j}(x) = q_0(x) \pm \sum_{i \le j} v_{\pm i}(x), \qquad
              v_s(x) = c_s + \psi(x)^\top A_s \psi(x), \quad \psi = (\chi, 1)

    with φ the features of ``kernel`` and χ those of ``gap_kernel``. The problem is

    .. math:: \min_{A_s \succeq 0,\, c_s \ge 0,\, w,\, b}\;
              \frac{1}{\sum_i s_i} \sum_i s_i \sum_j \rho_{\tau_j}(y_i - q_j(x_i))
              + \frac{\mathrm{alpha}}{2} \|w\|^2
              + \sum_s \Bigl(\mathrm{trace\_penalty}\, \operatorname{tr} A_s
              + \frac{\mathrm{alpha} \cdot \mathrm{gap\_strength}}{2} \|A_s\|_F^2
              + \frac{10^{-4}}{2} c_s^2\Bigr)

    with :math:`\rho_\tau(\xi) = \max(\tau \xi, (\tau - 1) \xi)`. The median of y is subtracted and
    y is divided by the mean absolute deviation from it, so the fit is equivariant under shifts and
    scalings of y.

    Parameters
    ----------
    levels : float or sequence of float, default=(0.25, 0.5, 0.75)
        Quantile levels in (0, 1), in any order, without repeats.
    anchor : float, optional
        The level that is an unconstrained model; by default the level closest to 0.5.
    alpha : float or None, default=None
        Strength of the squared norms, > 0. If None, it is learned, or 1e-3 with ``learn=False``.
    gap_strength : float, default=1.0
        Ratio of the strength of the squared norms of the gaps to ``alpha``, > 0.
    trace_penalty : float, default=1e-4
        Strength of the traces of the A_s, >= 0. It lowers their ranks.
    learn : bool or Learning, default=True
        Whether to learn length scales that are "learned", and alpha if it is None, from held-out
        rows. The criterion is that of :class:`fenchel.QuantileRegressor` with coupled levels, and
        its alpha is used for the anchor.
    refit_offsets : {"auto", "held_out"} or None, default="auto"
        Whether to move the offset and the constants of the gaps after the fit, to quantiles of
        held-out residuals ("held_out", see Notes), or to keep those of the fit (None). "auto" is
        "held_out" if anything was to be learned, and in parameter searches. The certificate is for
        the fit, with ``certified_offset_`` and ``certified_gap_constants_``.
    gap_kernel : None, str, kernel or callable, default=None
        Kernel of the gaps; None is the kernel of the anchor. Its length scales must be numbers or
        rules, and are not learned.
    gap_rank : int, optional
        Number of features of the gaps with ``features="cholesky"``, which are the first features
        of their kernel. The default is at most 20 if anything was learned, and 50 otherwise. Other
        feature maps use all features.
    solver : {"auto", "newton", "proximal_newton"} or solver, default="auto"
        "auto" is "proximal_newton" for 600 targets (rows times levels) or more and an alpha of at
        least 1e-4. Otherwise it is "newton" down to a gap of 1e-4, followed by "proximal_newton".
    tol : float, default=1e-6
        Relative duality gap to reach, in units of the mean loss of the best constants. A parameter
        search compares candidates at 3e-3 if ``tol`` has its default value.
    kernel : None, str, kernel or callable, default=None
        See :func:`fenchel.kernels.as_kernel`. None is the kernel of
        :class:`fenchel.QuantileRegressor` with learned length scales, or the Gaussian kernel with
        length scales computed from X if ``learn=False``.
    features, rank, max_iter, warm_start, random_state, verbose, callback, max_time
        As in :class:`NonNegativeRegressor`.

    Attributes
    ----------
    levels_ : ndarray of shape (n_levels,)
        The levels as an array.
    anchor_ : float
        The level of the unconstrained model.
    weights_ : ndarray of shape (n_map_features,)
        The weights w, in the units of y.
    offset_ : float
        The offset b, in the units of y.
    gap_constants_ : ndarray of shape (n_levels - 1,)
        The constants c >= 0 in the units of y, for neighbouring levels in increasing order.
    certified_offset_, certified_gap_constants_
        The b and c of the fit before ``refit_offsets``, to which ``certificate_`` applies.
    gap_factors_ : list of n_levels - 1 ndarrays of shape (n_gap_features + 1, rank)
        Factors F with A = F Fᵀ, in the units of y.
    gap_kernel_ : kernel
        The kernel of the gaps.
    shift_, scale_ : float
        Median of y, and mean absolute deviation from it.
    certificate_ : Certificate
        Primal objective of the fit and dual objective of a feasible point.
    dual_coef_ : ndarray of shape (n_samples, n_levels)
        Dual variables times the weights, in the order of ``levels``; zero for rows of weight zero.
    loss_ : Pinball
        The pinball loss of the levels.
    alpha_, learned_, kernel_, kernel_error_, feature_map_, n_iter_, history_, status_
        As in :class:`NonNegativeRegressor`.
    n_features_in_, feature_names_in_
        As in :class:`NonNegativeRegressor`.

    Raises
    ------
    ValueError
        If ``anchor`` is not one of the levels.

    Notes
    -----
    Curves do not cross at any x by construction, for any data and even if the solver has not
    converged. Predictions add numbers >= 0 to the anchor one after the other, which preserves the
    order in floating point arithmetic too. Curves may touch.

    The levels of the fit hold for its own rows; new rows lie farther from the curves.
    ``refit_offsets`` corrects for this with five fits, each leaving out a fifth of the rows, with
    the kernel and alpha of the fit. With more than 2000 rows there is only one such fit, unless
    weights are so unequal that it leaves out fewer than 200 in effect. The curves are moved by
    quantiles of the residuals on the rows left out. No constant c becomes negative: if neighbours
    would move closer than that allows, both move by a common value between their two moves. So the
    gaps remain sums of numbers >= 0, and curves do not cross at any x.
    This does not guarantee coverage, because kernel and alpha were learned from all rows: for a
    guarantee see :class:`fenchel.model_selection.ConformalQuantileRegressor`. With ``max_time``,
    the fit of all rows uses at most half of the time left after learning. A warning says if the
    offsets were not moved.

    With more than 300 rows, a learned kernel is approximated by 300 features unless ``rank`` is
    given. The certificate is for the approximate kernel; ``kernel_error_`` and a warning report
    the approximation error.

    The strength of the constants c is fixed and small: it changes the share of rows below a level
    by less than 1e-4 c. The constants keep the curves apart, as in a constant model, for any
    ``alpha``. The constant feature in ψ allows a gap to be a constant plus a linear kernel
    function, as long as it is positive. With kernels that decay to zero, all curves become
    constant far from the data.

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Non-parametric models for non-negative functions, section
    6, multiple quantile regression. The constants are not in the paper; its gaps vanish far from
    the data.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.positive import NonCrossingQuantileRegressor
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> model = NonCrossingQuantileRegressor([0.1, 0.5, 0.9]).fit(X, y)
    >>> curves = model.predict([[-5.0], [0.7], [5.0]])
    >>> curves.shape
    (3, 3)
    >>> bool((curves[:, 0] <= curves[:, 1]).all() and (curves[:, 1] <= curves[:, 2]).all())
    True
    """

    second_kernel = "gap_kernel"
    feature_parameters = (*PositiveRegressor.feature_parameters, second_kernel)
    constraints = declared(
        levels=check_levels,
        anchor=NONE | SHARE,
        gap_strength=POSITIVE,
        gap_kernel=as_kernel,
        gap_rank=NONE | COUNT,
    )
    unlearned_alpha = 1e-3
    smooth_by_default = False
    candidate_tol = 3e-3  # scores within 0.02 of precise ones, where a standard error is 0.05

    levels: Any = (0.25, 0.5, 0.75)
    _: KW_ONLY
    anchor: float | None = None
    alpha: float | None = None
    learn: bool | Learning = True
    gap_strength: float = 1.0
    gap_kernel: Any = None
    gap_rank: int | None = None

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict the quantiles of all levels, in the order of ``levels``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples, n_levels), or (n_samples,) for one level
            Predicted quantiles.
        """
        features, own = self._both_features(X)
        gaps = self._gaps(own)
        order = np.argsort(self.levels_)
        middle = self._position()
        curves = np.empty((len(features), len(order)))
        curves[:, middle] = features @ self.weights_ + self.offset_
        # one after the other: rounding keeps a + v >= a for v >= 0
        for j in range(middle + 1, len(order)):
            curves[:, j] = curves[:, j - 1] + gaps[:, j - 1]
        for j in range(middle - 1, -1, -1):
            curves[:, j] = curves[:, j + 1] - gaps[:, j]
        prediction = np.empty_like(curves)
        prediction[:, order] = curves
        return prediction[:, 0] if len(order) == 1 else prediction

    def predict_gaps(self, X: ArrayLike) -> FloatArray:
        """Predict the gaps >= 0 between neighbouring levels, (n_samples, n_levels - 1).

        Gaps are in increasing order of the levels.
        """
        return self._gaps(self._both_features(X)[1])

    def predict_distribution(self, X: ArrayLike) -> QuantileDistribution:
        """Predict the distributions with these quantiles, one for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        QuantileDistribution
            Distributions of all rows. See :class:`fenchel.distributions.QuantileDistribution` for
            values between and beyond the levels.

        Raises
        ------
        ValueError
            If only one level was fitted.
        """
        curves = np.asarray(self.predict(X)).reshape(-1, len(self.levels_))
        return QuantileDistribution.from_quantiles(self.levels_, curves)

    def predict_interval(self, X: ArrayLike, coverage: float | None = None) -> FloatArray:
        """Predict the central interval for a coverage.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.
        coverage : float, optional
            In (0, 1). The levels (1 - coverage)/2 and (1 + coverage)/2 must have been fitted. None
            uses the outermost such pair.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper bounds.

        Raises
        ------
        ValueError
            If these levels were not fitted.
        """
        return central_interval(self.predict(X), self.levels_, coverage)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean over levels of D², the share of the loss of the best constant explained.

        1 is perfect, 0 is as good as the best constant for ``y``.
        """
        prediction = self.predict(X)
        return float(d2_pinball_score(y, prediction, self.levels_, sample_weight=sample_weight))

    def _gaps(self, features: FloatArray) -> FloatArray:
        gaps = np.empty((len(features), len(self.gap_factors_)))
        for s, (c, factor) in enumerate(zip(self.gap_constants_, self.gap_factors_, strict=True)):
            gaps[:, s] = c + quadratic_forms(with_constant(features[:, : len(factor) - 1]), factor)
        return gaps

    def _position(self) -> int:
        """Where the anchor is among the levels in increasing order."""
        return int(np.count_nonzero(self.levels_ < self.anchor_))

    def _standardization(
        self, targets: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        median = np.asarray(Pinball(0.5).minimizing_offset(targets, weight))
        distance = np.average(np.abs(targets - median), axis=0, weights=weight)
        size = np.abs(targets).max(axis=0)
        return median, np.where(distance > 1e-12 * size, distance, np.where(size > 0, size, 1.0))

    def _linear_loss(self, scale: float) -> tuple[Loss, bool]:
        return Pinball(self._telling_levels()), True

    def _linear_coupling(self, n_outputs: int) -> FloatArray:
        return level_coupling(self._telling_levels(), LEVEL_GAMMA)

    def _telling_levels(self) -> FloatArray:
        """The levels to learn from: of many, the outermost and the middle one say most."""
        levels = np.sort(self.levels_)
        return levels[np.unique([0, len(levels) // 2, len(levels) - 1])]

    def _chosen_solver(self, prepared: Prepared, start: Start | None = None) -> Any:
        """The prox where it is the faster one; rough fits from a start have a barrier for that."""
        many = len(prepared.targets) * len(self.levels_) >= _MANY
        by_prox = many and self._strength() >= _STRONG and start is None
        return "proximal_newton" if self.solver == "auto" and by_prox else self.solver

    def _problem(self, prepared: Prepared) -> PSDProblem:
        levels = np.sort(self.levels_)
        p, middle, inputs = len(levels), self._position(), prepared.inputs
        loss = Residual(Pinball(levels), prepared.targets, inputs.weight, p)
        features, one = prepared.positive.features, np.ones((len(inputs.features), 1))
        if prepared.positive.feature_map.nested:
            features = features[:, : self._gap_rank(self._learned)]
        features = with_constant(features)
        gap_alpha = self._strength() * float(self.gap_strength)
        gaps, constants = [], []
        for s in range(p - 1):
            direction = np.zeros(p)
            if s >= middle:
                direction[s + 1 :] = 1.0
            else:
                direction[: s + 1] = -1.0
            gaps.append(PSDPart(features, gap_alpha, float(self.trace_penalty), direction))
            constants.append(PSDPart(one, CONSTANT_STRENGTH, 0.0, direction))
        if not gaps:  # a single level: a part that does nothing, as the solver wants one
            constants.append(PSDPart(np.zeros_like(one), 1.0, 1.0, np.zeros(p)))
        anchor = LinearPart(inputs.features, self._strength(), np.ones(p))
        return PSDProblem(
            loss, [*gaps, *constants], inputs.weight, [anchor], offsets=np.ones((p, 1))
        )

    def _gap_rank(self, learned: Learned | None) -> int:
        """How many features the distances may have, where something was learned or nothing."""
        return self.gap_rank or (MOST_GAP_FEATURES if learned is None else LEARNED_GAP_FEATURES)

    def with_learned(self, times_rows: float = 1.0, *, held_out: bool = True) -> Self:
        copy = super().with_learned(times_rows, held_out=held_out)
        return copy.with_parameters(gap_rank=self._gap_rank(self.learned_))

    def _keep(self, prepared: Prepared, solution: PSDSolution) -> None:
        self.shift_, self.scale_ = float(prepared.shift[0]), float(prepared.scale[0])
        shift, scale = self.shift_, self.scale_
        model, p = solution.model, len(self.levels_)
        self.loss_ = Pinball(self.levels_)
        self.gap_kernel_ = self._keep_second(prepared)
        self.weights_ = scale * model.weights[0]
        self.offset_ = shift + scale * float(model.offset[0])
        self.gap_factors_ = [np.sqrt(scale) * factor for factor in model.factors[: p - 1]]
        self.gap_constants_ = np.array([scale * a[0, 0] for a in model.matrices[p - 1 :]][: p - 1])
        self.certified_offset_ = self.offset_
        self.certified_gap_constants_ = self.gap_constants_.copy()
        self.dual_coef_[:, np.argsort(self.levels_)] = self.dual_coef_.copy()

    def _solve(
        self, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> PSDSolution:
        if watch is not None and self._refitted() is not None:
            watch = HalfTime(watch)
        return super()._solve(prepared, start, watch)

    def _move(self, prepared: Prepared, solution: PSDSolution, watch: Callback | None) -> None:
        """From the offsets of the fit to those of held-out rows, by no more than order allows."""
        if self._refitted() is None:
            return
        levels = np.sort(self.levels_)
        shift = partial(
            held_out_shift,
            prepared.inputs.rows,
            prepared.targets,
            prepared.inputs.weight,
            Pinball(levels),
            partial(self._residuals, prepared, solution, watch),
            lambda: prepared.targets - self._problem(prepared).predictions(solution.model),
        )
        moved = self._held_out(watch, shift)
        if moved is None:
            return
        moved = in_order(self.scale_ * moved, levels, self.gap_constants_)
        self.offset_ += float(moved[self._position()])
        self.gap_constants_ = np.maximum(self.gap_constants_ + np.diff(moved), 0.0)

    def _residuals(
        self,
        prepared: Prepared,
        solution: PSDSolution,
        watch: Callback | None,
        held: IntArray,
        outside: IntArray,
    ) -> FloatArray | None:
        """Of held-out rows by a fit to all others, None where it stops far from its optimum."""
        part, new = prepared.only(outside), prepared.only(held)
        start = Start(solution.dual[outside], solution.multipliers)
        tol = max(float(self.tol), _ENOUGH, solution.certificate.relative_gap)
        found = self._solve_to(tol, part, start, InTime(watch))  # the same steps if watched or not
        if not (found.status.converged or found.certificate.relative_gap <= NEAR):
            return None
        return np.asarray(new.targets - self._problem(new).predictions(found.model))

    def default_grid(self) -> dict[str, Any]:
        """Return a grid with 9 values of alpha and two of ``gap_strength``."""
        return {"alpha": 9, "gap_strength": [1.0, 0.01]}

    def check_parameters(self) -> None:
        super().check_parameters()
        self.levels_ = check_levels(self.levels)
        if self.anchor is None:
            closest = np.argmin(np.abs(self.levels_ - 0.5).round(12))
            self.anchor_ = float(self.levels_[closest])
            return
        match = position_of_level(self.levels_, float(self.anchor))
        if match is None:
            raise ValueError(
                f"anchor must be None or one of the levels {self.levels_.tolist()}, got "
                f"{self.anchor!r}"
            )
        self.anchor_ = float(self.levels_[match])

"""Joint quantile regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from fenchel._parameters import parameters
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import NONE, OneOf, declared
from fenchel.certificate import Callback
from fenchel.distributions import QuantileDistribution
from fenchel.learning.held_out import in_order
from fenchel.losses import Loss, NonCrossing, Pinball
from fenchel.metrics import central_interval
from fenchel.problem import Problem
from fenchel.regression._levels import LevelRegressor
from fenchel.regression._prepared import Prepared
from fenchel.solvers import Solution


@parameters
class QuantileRegressor(LevelRegressor):
    r"""Kernel quantile regression at one or several levels, with a duality-gap certificate.

    .. math:: \min_{h, b}\; \frac{\alpha}{2} \|h\|_K^2
              + \frac{1}{\sum_i s_i} \sum_i s_i\, \ell_\varepsilon(y_i - h(x_i) - b), \qquad
              \ell(\xi) = \sum_j \max(\tau_j \xi_j, (\tau_j - 1) \xi_j)

    The functions have values in R^p, one output for each level, and lie in the space of the kernel
    :math:`K(x, x') = k(x, x') B` with :math:`B_{jk} = \exp(-\gamma (\tau_j - \tau_k)^2)`. If y has
    several columns, there is one output for each level of each column, and B is this matrix
    ⊗ ``coupling``.

    Parameters
    ----------
    levels : float or sequence of float, default=0.5
        Levels in (0, 1), in any order, without repeats.
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        See :func:`fenchel.kernels.as_kernel`. Length scales equal to "learned", the default of
        the kernels, are learned, one for each feature. Numbers are kept as given. None is a Matérn
        kernel of smoothness 3/2 on the features and their ranks
        (:class:`fenchel.kernels.WithRanks`); with ``learn=False`` it is a Gaussian kernel with
        widths computed from the data. An :class:`fenchel.kernels.OperatorKernel` with one output
        for each level (of each column of y) replaces k B; none of its parameters is learned.
    alpha : float, optional
        Strength of the regularization, > 0. The C of the papers is 1 / (alpha * sum of
        weights). Pinball losses grow like y and the penalty like y²: if y is expressed in units c
        times smaller, the same fit takes alpha / c. If None, alpha is learned. If nothing is
        learned, None is a thousandth of the mean loss of the best constant divided by its mean
        squared residual, times the mean diagonal of the kernel (and that of ``coupling``); for
        kernels that are not stationary, and with an offset, less the mean of all kernel values.
    learn : bool or Learning, default=True
        Whether open parameters (those left at None or "learned") are learned from held-out rows.
        Parameters given as numbers are kept. See :class:`fenchel.learning.Learning`, whose
        instances set the options.
    radius : float, optional
        Bound Λ > 0 on ‖h‖, used instead of ``alpha``: the mean loss is minimized over all h with
        :math:`\|h\|_K \le \Lambda`. See Notes. An open kernel is learned with a penalty, whose
        strength is then dropped. If the kernel is given, nothing is learned.
    level_gamma : float, default=1.0
        Parameter γ of the coupling between levels. With 0 the curves are parallel, and in order;
        with ``inf`` they are independent. Ignored with an operator-valued kernel, which has its
        own coupling.
    coupling : array-like of shape (n_outputs, n_outputs), optional
        Symmetric positive semi-definite matrix that couples the columns of y. With the default,
        the identity, the columns share only the kernel and the strength. Their losses are
        summed, so they should be in comparable units.
    epsilon : float, default=0.0
        Radius of insensitivity, in the units of y. A row whose vector of residuals (all levels of
        all columns) is shorter has dual coefficients equal to zero and is not in ``support_``.
        With ``epsilon`` > 0, levels are shares of rows only up to ε; see Notes and
        ``refit_offsets``.
    refit_offsets : {"auto", "held_out", "train"} or None, default="auto"
        Whether the offsets are moved after the fit to the quantiles, by weight, of the residuals
        y_i - h_j(x_i) - b_j. "held_out" takes the residuals of rows that were left out of the
        fit (see Notes), "train" those of the training rows. "auto" is "held_out" if a parameter
        was left to be learned or was chosen by a search; it is None if all parameters are given,
        or without intercept. With ``non_crossing`` the offsets are moved so that the curves stay
        in order, and "train" is not allowed. If the rows are not in memory, "held_out" keeps the
        offsets of the fit; a warning is given if there are fewer than 50 rows for each feature
        of ``feature_map_``. Moving the offsets adds no row to ``support_``, and the certificate
        remains that of the fit, with the offsets ``certified_offset_``.
    non_crossing : {None, "train"}, default=None
        "train" adds the constraint that neighbouring levels are in order at every training row
        of positive weight: :math:`h_j(x_i) + b_j \le h_{j+1}(x_i) + b_{j+1}` for levels in
        increasing order. See Notes. Requires ``epsilon=0`` and y with one column.
    fit_intercept : bool, default=True
        Whether each level has an unpenalized offset b_j.
    features : {"auto", "cholesky", "nystroem", "fourier"} or FeatureMap, default="auto"
        How the kernel is represented by features. "auto" is pivoted Cholesky, exact to 1e-10 as
        long as the rank allows. It is the only choice for operator-valued kernels.
    rank : int, optional
        Maximum rank of the feature map.
    solver : str or Solver, default="auto"
        A name in ``fenchel.solvers.SOLVERS``, or a solver. With kernel rows and ``epsilon=0`` or
        one level, "auto" is "smo" followed by "newton". It solves independent outputs one by one
        if a joint system would be large, and is "newton" otherwise.
    tol : float, default=1e-6
        Relative duality gap at which the fit has converged.
    max_iter : int, default=1000
        Maximum number of Newton steps.
    warm_start : bool, default=False
        Whether to start from the previous fit of this estimator.
    random_state : int, RandomState or None, default=None
        Seed of subsamples and random features; None is a fixed seed.
    verbose : int, default=0
        If positive, one line is printed for each certificate, and for each evaluation of learning.
    callback : callable, optional
        Called with each new entry of ``history_``, a :class:`fenchel.certificate.Progress`, and
        before that with each evaluation of learning (``is_learning``). If the return value is
        true, learning and the fit are stopped.
    max_time : float, optional
        Time limit of the fit in seconds, > 0. See Notes.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, n_levels)
        Coefficients a: h(x) = k(x, X[support_]) @ dual_coef_ @ coupling_ and
        C s_i (τ_j - 1) <= a_ij <= C s_i τ_j. See Notes. If y has several columns, the last axis
        here and in the attributes below lists all columns at the first level first:
        (n_support, n_levels * n_outputs).
    support_ : ndarray of shape (n_support,)
        Indices of the rows with a nonzero dual coefficient.
    offset_ : ndarray of shape (n_levels,)
        The offsets b.
    certified_offset_ : ndarray of shape (n_levels,)
        The offsets of the fit, before ``refit_offsets``. ``certificate_`` refers to these.
    coupling_ : ndarray of shape (n_levels, n_levels)
        The matrix B; the identity with an operator-valued kernel K, where
        h(x) = Σ_i K(x, X[support_[i]]) @ dual_coef_[i].
    weights_ : ndarray of shape (rank, n_levels), or (rank,) with an operator-valued kernel
        Weights of the features: h(x) = φ(x) @ weights_, with φ the feature map ``feature_map_``.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``relative_gap`` and ``feasibility``, in units of the
        objective above.
    kernel_, kernel_error_, feature_map_
        The kernel with its length scales, the share of its trace that the feature map leaves
        out, and the fitted feature map.
    certified_kernel_ : {"given", "features"}
        The kernel that the certificate refers to: the kernel as given, or the kernel of the
        features if these are random or if ``features`` is a user's map that is not ``in_space``.
    levels_ : ndarray of shape (n_levels,)
        The levels as an array.
    loss_ : Loss
        The loss of the residual vectors.
    alpha_ : float
        Strength of the regularization, as given or as learned. With ``radius`` it is the
        multiplier of the bound: the penalty of this strength has the same solution. Where the
        bound is not active, it is a strength so small that the loss is minimal within ``tol``.
    norm_ : float
        Norm ‖h‖ of the fitted function in the space of the kernel (of the features if the
        certificate refers to these).
    learned_ : Learned or None
        The learned parameters, see :class:`fenchel.learning.Learned`. None if nothing was
        learned.
    feature_importances_ : ndarray of shape (n_features,)
        Variance of the predictions due to each feature, as shares that sum to 1.
    idle_features_ : ndarray
        Names (or indices) of the features with an importance below one thousandth.
    status_ : Status
        Whether the solver ``converged``, and a ``message``.
    n_iter_, history_
        Number of Newton steps; objectives and gap after each outer iteration.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With an intercept, the following holds at the optimum for each column of y, counting rows by
    weight and with the offsets ``certified_offset_``:

    .. math:: \#\{i : y_i < h_j(x_i) + b_j - \varepsilon\} \le \tau_j\, n
              \le \#\{i : y_i \le h_j(x_i) + b_j + \varepsilon\}

    If ``epsilon=0``, these are the rows below the curve, and the rows below or on it; the
    interval between two levels holds at least the difference of the levels as a share of the
    training rows. If ``epsilon`` > 0, rows within ε of a curve may be on either side, whatever
    the level. ``predict_interval`` then raises an error, unless ``refit_offsets`` has restored the
    property: among all constants that may be added to h_j, the quantile of its residuals has the
    least pinball loss. The function itself remains that of the insensitive loss. With the
    moved offsets, the objective of the fit, which counts no loss inside the tube, is larger than
    ``primal``. With ``epsilon`` > 0 curves may cross, and if all rows are inside the tube the
    curves may coincide.

    These are shares of the training rows. The more flexible the function, the farther new rows
    lie from the curves: intervals between the levels 0.1 and 0.9 held 52 to 78 % of new rows on 20
    tables with at most 1000 training rows. By default, the offsets are therefore computed from
    held-out rows. Five fits leave out a fifth of the rows each, with the kernel and alpha of the
    full fit, and the quantiles of the residuals of all held-out rows are added to the offsets.
    With more than 2000 distinct rows one such fit is made, or more if it leaves out fewer than 200
    groups, or rows whose effective number by weights is less. The quantiles are then corrected by
    how much the rows left out differ from all rows in the full fit. Rows read from disk are not
    held out. On the 20 tables the intervals then held 77 to 86 %. This is not a guarantee, since
    kernel and alpha have been learned from all rows.
    :class:`fenchel.model_selection.ConformalQuantileRegressor` gives one.

    With ``non_crossing="train"`` the left inequality is certain for the lowest level only, and
    the right one for the highest. Curves that touch satisfy their levels on average, and the
    interval between the outermost curves holds at least its share.

    A fit that is stopped by ``callback`` or ``max_time`` keeps the best point found so far. Its
    certificate is valid, ``status_`` gives the reason, and a ConvergenceWarning is given. The
    callback is called when a solver computes a certificate. "closed_form" and "conic" compute
    only one, so a callback cannot stop them. An interrupt (Ctrl-C) leaves the estimator
    unchanged.

    The time limit runs from the start of ``fit`` and includes learning. It can stop steps and
    passes over the rows in the middle, and a linear system expected to exceed the remaining time
    is not started. With a limit, fits of 4096 rows or more first fit a model to a thousand of
    them, which is kept if no step ends in time; the rank of the features is limited so that
    computing them takes at most a quarter of the time; and "closed_form" switches to conjugate
    gradients if its system would take too long. In searches and conformal wrappers the limit
    applies to each single fit. If offsets are moved to held-out rows, the fit to all rows has half
    of the time that learning leaves. The offsets are kept, with a warning, if the fit was stopped
    by ``callback`` or if no time is left for any of the fits with rows left out.

    With ``radius`` the certificate is that of the constrained problem: of a function in the ball
    and of a dual point, in whose objective Λ ‖Σ_i s_i K(·, x_i) β_i‖ / Σ_i s_i replaces the
    square. Both are found by a few penalized fits, each started from the previous one, and
    ``history_`` has one entry for each fit. If the bound is not active, ``norm_`` is less than
    ``radius``.

    With ``non_crossing="train"`` the certificate is that of the constrained problem, and the
    fitted model satisfies the constraint exactly: crossings that a solver leaves are removed by
    the smallest change of the offsets (of h, without intercept) before the model is certified and
    returned. The order is guaranteed at the training rows of positive weight, up to rounding
    errors of ``predict``. Curves may cross at other rows (``crossing_loss`` measures it); only a
    family of functions that cannot cross would exclude this everywhere. The dual coefficients
    then include the multipliers of the constraint, and only their sums are bounded: over the
    lowest levels from above by the sum of C s_i τ_j, and over the highest levels from below by
    the sum of C s_i (τ_j - 1).

    ``predict`` uses the function given by ``weights_``, whose objective is ``primal``;
    ``dual_coef_`` is the point whose objective is ``dual``. At x, the functions of both differ by
    at most 2 √(gap k(x, x) B_jj / alpha) for output j, besides rounding and what the features
    leave out. Where alpha is small, this may be large for a gap within ``tol``.

    References
    ----------
    Sangnier, Fercoq, d'Alché-Buc (2016), Joint quantile regression in vector-valued RKHSs,
    eq. (2) and appendix B; (2017), Data sparse nonparametric regression with ε-insensitive
    losses, (P2) and, for targets in R^p, section 4.3. Takeuchi, Le, Sears, Smola (2006),
    Nonparametric quantile estimation.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-4).fit(X, y)
    >>> model.predict(X).shape
    (200, 3)
    >>> model.certificate_.relative_gap <= 1e-6
    True
    >>> import numpy as np
    >>> both = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-4).fit(X, np.column_stack([y, -y]))
    >>> both.predict(X).shape  # rows, levels, columns of y
    (200, 3, 2)
    """

    constraints = declared(non_crossing=NONE | OneOf(("train",)))
    _shares = False
    """Whether the levels of the last fit are shares of its rows."""

    _: KW_ONLY
    non_crossing: str | None = None

    def _level_loss(self, levels: Any, n_targets: int = 1) -> Loss:
        return Pinball(levels, n_targets)

    def _is_bounded(self) -> bool:
        return True

    def make_loss(self, n_targets: int) -> Loss:
        if self.non_crossing is None or len(self.levels_) == 1:
            return super().make_loss(n_targets)
        if (n_columns := self._n_columns(n_targets)) > 1:
            raise ValueError(
                f"non_crossing={self.non_crossing!r} needs y with one column, got {n_columns}; "
                "fit a model for each of them"
            )
        return NonCrossing(Pinball(self.levels_))

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.non_crossing is not None and self.epsilon > 0.0:
            raise ValueError(
                f"non_crossing={self.non_crossing!r} needs epsilon=0, got "
                f"epsilon={self.epsilon!r}: insensitivity would let curves cross by that much"
            )
        if self.refit_offsets == "train" and self.non_crossing is not None:
            raise ValueError(
                f"refit_offsets must be 'auto', 'held_out' or None with non_crossing="
                f"{self.non_crossing!r}, got 'train': curves with other offsets may cross"
            )

    def _moved(
        self, prepared: Prepared, problem: Problem, solution: Solution, watch: Callback | None
    ) -> FloatArray:
        moved = super()._moved(prepared, problem, solution, watch)
        if self.non_crossing is not None:  # what moves a higher level by no less keeps the order
            moved = in_order(moved, self.levels_)
        refitted = self._refitted() == "train" or bool(moved.any())
        self._shares = refitted or problem.loss.epsilon == 0.0
        return moved

    _without_tube = "refit_offsets='train' or epsilon=0"

    @property
    def _levels_are_shares(self) -> bool:
        return self._shares

    def _distribution(self, curves: FloatArray) -> QuantileDistribution:
        return QuantileDistribution.from_quantiles(self.levels_, curves)

    def predict_interval(self, X: ArrayLike, coverage: float | None = None) -> FloatArray:
        """Predict the central interval with a given coverage.

        The notes of the class say how many training rows it contains. For coverages whose levels
        were not fitted see :meth:`predict_distribution`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, optional
            In (0, 1). The levels (1 - coverage)/2 and (1 + coverage)/2 must have been fitted.
            None takes the outermost such pair.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, 2, n_outputs) for y with several columns
            Lower and upper ends of the intervals.

        Raises
        ------
        ValueError
            If the levels were not fitted, or with ``epsilon`` > 0 without ``refit_offsets``.
        """
        ends = [central_interval(curves, self.levels_, coverage) for curves in self._by_column(X)]
        self._check_shares("intervals")
        return ends[0] if len(ends) == 1 else np.stack(ends, axis=2)

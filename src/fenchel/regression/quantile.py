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
    r"""Kernel quantile regression, several levels at once, with a certificate.

    .. math:: \min_{h, b}\; \frac{\alpha}{2} \|h\|_K^2
              + \frac{1}{\sum_i s_i} \sum_i s_i\, \ell_\varepsilon(y_i - h(x_i) - b), \qquad
              \ell(\xi) = \sum_j \max(\tau_j \xi_j, (\tau_j - 1) \xi_j)

    over functions with values in R^p, one output for each level, in the space of the kernel
    :math:`K(x, x') = k(x, x') B`, :math:`B_{jk} = \exp(-\gamma (\tau_j - \tau_k)^2)`. Where y has
    several columns there is an output for each level of each of them, and B is this matrix
    ⊗ ``coupling``.

    Parameters
    ----------
    levels : float or sequence of float, default=0.5
        Levels in (0, 1), in any order, without repeats.
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        See :func:`fenchel.kernels.as_kernel`. Length scales that are "learned", the default of
        kernels, are learned, one for each feature; numbers stay as given. None is a Matérn kernel
        of smoothness 3/2 on the features and their ranks (:class:`fenchel.kernels.WithRanks`);
        with ``learn=False`` a Gaussian one with widths read off the data. An
        :class:`fenchel.kernels.OperatorKernel` with one output for each level (of each column
        of y) takes the place of k B; nothing in it is learned.
    alpha : float, optional
        Strength of the regularization, > 0. The C of the papers is 1 / (alpha * sum of
        weights). Pinball losses grow like y, the penalty like y²: for y in units c times
        smaller, the same fit takes alpha / c. None is learned; where nothing is, it is a
        thousandth of the mean loss of the best constant over its mean squared residual, times the
        mean diagonal of the kernel.
    learn : bool or Learning, default=True
        Whether parameters that are left open are learned from held-out rows, see
        :class:`fenchel.learning.Learning`, which also says how. Numbers that are given stay.
    radius : float, optional
        Bound Λ > 0 on ‖h‖, in place of ``alpha``: the mean loss is minimized over all h with
        :math:`\|h\|_K \le \Lambda`. See the notes. Where the kernel is learned, it is so with a
        penalty, whose strength is then left; where it is given, nothing is learned.
    level_gamma : float, default=1.0
        γ of the coupling: 0 makes the curves parallel, and in order, ``inf`` independent. Not
        used with an operator-valued kernel, which has a coupling of its own.
    coupling : array-like of shape (n_outputs, n_outputs), optional
        Symmetric positive semi-definite matrix between the columns of y, the identity by
        default: the columns then share kernel and strength, and nothing else. Their losses add
        up, so they should be in comparable units.
    epsilon : float, default=0.0
        Radius of insensitivity, in the units of y: rows whose vector of residuals, of all levels
        of all columns, is shorter get exactly zero dual coefficients and leave ``support_``.
        Levels are then shares of rows only up to ε, see the notes and ``refit_offsets``.
    refit_offsets : {"auto", "held_out", "train"} or None, default="auto"
        Whether offsets are moved after the fit to the quantiles of their levels of residuals
        y_i - h_j(x_i) - b_j, by weight: of rows that fits to the others have not seen
        ("held_out", see the notes), or of the training rows ("train"). "auto" is the former where
        something was left to be learned, or was chosen by a search; with numbers for all and
        without intercept it is None.
        With ``non_crossing`` they move so that curves stay in order, and "train" is not
        allowed. Rows that are not in memory have the offsets of the fit in place of those of
        held-out rows, and with fewer than 50 rows a feature a warning says so. No row enters
        ``support_``, and the certificate is that of the fit, with the offsets
        ``certified_offset_``.
    non_crossing : {None, "train"}, default=None
        "train" adds the constraint that neighbouring levels are in order at every training row
        of positive weight: :math:`h_j(x_i) + b_j \le h_{j+1}(x_i) + b_{j+1}` for levels in
        increasing order, see the notes. Needs ``epsilon=0``, and y with one column.
    fit_intercept : bool, default=True
        Whether each level has a free offset b_j.
    features : {"auto", "cholesky", "nystroem", "fourier"} or FeatureMap, default="auto"
        How the kernel becomes features; "auto" is pivoted Cholesky, exact to 1e-10 as long
        as the rank allows, and all there is for operator-valued kernels.
    rank : int, optional
        Cap on the rank of the feature map.
    solver : str or Solver, default="auto"
        A name in ``fenchel.solvers.SOLVERS``, or a solver. "auto" is "smo", finished by
        "newton", on kernel rows with ``epsilon=0`` or one level; independent outputs one by one
        where a joint system would be large; and "newton" elsewhere.
    tol : float, default=1e-6
        Relative duality gap at which the fit has converged.
    max_iter : int, default=1000
        Limit on the number of Newton steps.
    warm_start : bool, default=False
        Whether to start from the previous fit of this estimator.
    random_state : int, RandomState or None, default=None
        Seed of subsamples and random features; None is a fixed seed.
    verbose : int, default=0
        If positive, one line for each certificate is printed.
    callback : callable, optional
        Called with each entry of ``history_`` as it is made, a
        :class:`fenchel.certificate.Progress`; a truthy return value stops the fit.
    max_time : float, optional
        Seconds after which the solver stops, > 0. See the notes.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, n_levels)
        Coefficients a: h(x) = k(x, X[support_]) @ dual_coef_ @ coupling_ and
        C s_i (τ_j - 1) <= a_ij <= C s_i τ_j. See Notes. Of y with several columns, here and in
        what follows, all of them at the first level come first: (n_support, n_levels * n_outputs).
    support_ : ndarray of shape (n_support,)
        Rows with a dual coefficient that is not zero.
    offset_ : ndarray of shape (n_levels,)
        The offsets b.
    certified_offset_ : ndarray of shape (n_levels,)
        The offsets that ``certificate_`` is of: those of the fit, before ``refit_offsets``.
    coupling_ : ndarray of shape (n_levels, n_levels)
        The matrix B; the identity with an operator-valued kernel K, where
        h(x) = Σ_i K(x, X[support_[i]]) @ dual_coef_[i].
    weights_ : ndarray of shape (rank, n_levels), or (rank,) with an operator-valued kernel
        h(x) = φ(x) @ weights_, φ the feature map ``feature_map_``.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``relative_gap``, ``feasibility``, in units of the
        objective above.
    kernel_, kernel_error_, feature_map_
        The kernel with its widths, the share of its trace that the feature map leaves out,
        and the map.
    certified_kernel_ : {"given", "features"}
        The kernel that the certificate is of: as given, or that of the features, where these
        are random or a map of your own that is not ``in_space``.
    levels_ : ndarray of shape (n_levels,)
        The levels as an array.
    loss_ : Loss
        The loss of the residual vectors.
    alpha_ : float
        The strength of the fit, as given or as learned; with ``radius`` the multiplier of the
        bound: with a penalty of that strength, the solution is the same.
    norm_ : float
        ‖h‖, the norm of the fitted function in the space of the kernel (of the features, where
        the certificate is of these).
    learned_ : Learned or None
        What was learned, and how, see :class:`fenchel.learning.Learned`; None where nothing was.
    feature_importances_ : ndarray of shape (n_features,)
        Share of the variance of predictions due to each feature, summing to 1.
    idle_features_ : ndarray
        Names, or numbers, of features with less than a thousandth of it.
    status_ : Status
        ``converged`` and a ``message``: how the solver ended.
    n_iter_, history_
        Number of Newton steps; objectives and gap after each outer iteration.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    With an intercept, at the optimum, and by weight, for each column of y and the offsets
    ``certified_offset_``:

    .. math:: \#\{i : y_i < h_j(x_i) + b_j - \varepsilon\} \le \tau_j\, n
              \le \#\{i : y_i \le h_j(x_i) + b_j + \varepsilon\}

    Without tube these are the rows below the curve, and those below or on it, and an interval of
    two levels holds at least the share between them of the training rows. With a tube, the rows
    within ε of a curve may be on either side, whatever the level, and ``predict_interval``
    refuses, unless ``refit_offsets`` has brought the property back: of all constants that may be
    added to a function h_j, the quantile of its residuals is the one with the least pinball loss.
    The function itself stays that of the insensitive loss, and the objective of the fit, which
    counts no loss inside of the tube, is larger with these offsets than ``primal``.
    With a tube, curves may cross, and where all rows are inside of it they may be one curve.

    These are shares of the training rows. New rows lie farther from the curves, the more flexible
    the function is: intervals of the levels 0.1 and 0.9 held 52 to 78 % of them on 20 tables with
    at most 1000 training rows. So by default offsets are those of held-out rows: five fits leave
    out a fifth of the rows each, with the kernel and alpha of this one (of more than 2000 rows
    only one fit does, and rows read from disk are not held out), and the quantiles of all that
    these say of the rows they have not seen are added. On these tables the intervals then held 77
    to 86 %. It is no guarantee: kernel and alpha have seen all rows.
    :class:`fenchel.model_selection.ConformalQuantileRegressor` gives one.

    With ``non_crossing="train"`` the left one is certain for the lowest level only and
    the right one for the highest: curves that touch have their levels in the mean, and the
    interval between the outermost ones holds at least its share.

    A fit that is stopped, by ``callback`` or after ``max_time``, keeps the best point so far with
    its certificate, which is as true as any other; ``status_`` says why, and a ConvergenceWarning
    is given. A callback acts at the certificates that a solver asks for on its way; a solver that
    asks for one only cannot be stopped by it: "closed_form" and "conic". The seconds count from
    the start of ``fit``, learning included, and end steps and passes over rows in the middle; a
    system that would take longer than they leave is not begun. With a limit, fits of 4096 rows or
    more begin with the model of a thousand of them, which is what is kept where no step is in
    time, features are no more than take a quarter of the seconds, and "closed_form" goes over to
    conjugate gradients where its system takes too long. In searches and conformal
    wrappers the seconds are those of each single fit. Where offsets are moved to held-out rows,
    the fit of all rows has half of the time that learning leaves; fits stopped by ``callback``,
    or with no time for any fit without some rows, keep their offsets, and a warning says so. An
    interrupt (Ctrl-C) leaves the estimator as it was.

    With ``radius`` the certificate is that of the problem with the bound: of a function in the
    ball and of a dual point, in whose objective Λ ‖Σ_i s_i K(·, x_i) β_i‖ / Σ_i s_i takes the
    place of the square. Both come from a few fits with a penalty, each of which starts from the
    last, and ``history_`` has an entry for each of these. Where no bound is needed, ``norm_`` is
    less than it.

    With ``non_crossing="train"`` the certificate is that of the constrained problem, and the
    fitted model satisfies the constraint, not only nearly so: whatever a solver leaves of
    crossings is removed by the least change of the offsets (of h, without intercept) before the
    model is certified and returned. What is guaranteed is the order at the training rows of
    positive weight, up to rounding errors of ``predict``. Nothing is guaranteed at other rows,
    where curves may cross (``crossing_loss`` measures it): for curves that cross nowhere, a
    family of functions is needed that cannot. The dual coefficients then include the
    multipliers of the constraint, and are bounded in their sums only: over the lowest levels
    from above by those of C s_i τ_j, over the highest ones from below by those of
    C s_i (τ_j - 1).

    The function that predicts is that of ``weights_``, whose objective is ``primal``;
    ``dual_coef_`` is the point whose objective is ``dual``. They are one function, up to
    rounding and to what features leave out, wherever that one is within ``tol``, and else
    differ at x by no more than 2 √(gap k(x, x) B_jj / alpha) for output j.

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
        """Predict the central interval of a coverage.

        See the notes of the class for how many training rows it contains, and
        :meth:`predict_distribution` for coverages whose levels were not fitted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, optional
            In (0, 1). The levels (1 - coverage)/2 and (1 + coverage)/2 must have been fitted; None
            takes the outermost such pair.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, 2, n_outputs) for y with several columns
            Lower and upper ends.

        Raises
        ------
        ValueError
            If the levels were not fitted, or with ``epsilon`` > 0 without ``refit_offsets``.
        """
        ends = [central_interval(curves, self.levels_, coverage) for curves in self._by_column(X)]
        self._check_shares("intervals")
        return ends[0] if len(ends) == 1 else np.stack(ends, axis=2)

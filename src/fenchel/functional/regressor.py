"""Kernel regression with functions as outputs."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from fenchel._bases import RegressorMixin
from fenchel._grids import as_points
from fenchel._memory import reused_memory
from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray
from fenchel._validation import (
    COUNT,
    NONE,
    NOT_NEGATIVE,
    ORDER,
    POSITIVE,
    WITH_DATA,
    OneOf,
    check_weights,
    declared,
    rows_of,
)
from fenchel.certificate import Callback
from fenchel.estimator import all_or_nothing
from fenchel.features import compacted
from fenchel.functional._gaps import center_of
from fenchel.functional._inputs import (
    as_rows,
    check_rows,
    curves_of,
    is_array,
    sentence_on_range,
)
from fenchel.functional._learning import constant_of, losses_of
from fenchel.functional._preparation import CurvesFromRows
from fenchel.functional._representation import (
    REPRESENTATIONS,
    LossChoice,
    PreparedCurves,
    Represented,
    lacking_for_eigenfunctions,
    outputs_of,
    represent,
)
from fenchel.functional.curves import Curves, to_fdatagrid
from fenchel.kernels import as_kernel
from fenchel.losses.registry import loss_choice
from fenchel.metrics import explained_share
from fenchel.named_kernel import solve_named
from fenchel.problem import Problem
from fenchel.solvers import (
    ClosedForm,
    Fista,
    Solution,
    Solver,
    Splitting,
    first_that_can,
    make_solver,
)

_GRADIENT_STEPS = 20  # they cost about as much as a turn of the splitting, and more are needed
_GRADIENT_CHECK = 10  # steps between certificates, which cost about as much as one


class Sparsity(NamedTuple):
    """Fractions of exact zeros among the dual coefficients of the training curves."""

    coefficients: float
    """Fraction of zero coefficients, at observed points."""
    rows: float
    """Fraction of curves whose coefficients are all zero."""


@parameters
class FunctionalRegressor(RegressorMixin, CurvesFromRows):
    r"""Functional output kernel regression with any convex loss and a certificate.

    .. math:: \min_h\; \frac{\alpha}{2} \|h\|^2
              + \frac{1}{\sum_i s_i} \sum_i s_i\, \ell(y_i - h(x_i)), \qquad
              h(x)(\theta) = \sum_i k(x, x_i) \int k_\Theta(\theta, \theta')\, u_i(\theta')
              \, \mathrm{d}\mu(\theta')

    over functions of x whose values are functions of θ. The losses are losses of functions:
    :math:`\tfrac12\|\cdot\|_{L^2(\mu)}^2` ("squared"), its infimal convolution with
    :math:`\kappa \|\cdot\|_{L^p(\mu)}` ("huber") or with the indicator of
    :math:`\|\cdot\|_{L^p(\mu)} \le \varepsilon` ("squared_epsilon_insensitive"), and others of
    :func:`fenchel.losses.curve_loss`. Discretized losses converge to them as the grid is refined.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        Use "squared" without outliers, "huber" with outliers, and ε-insensitive losses for sparse
        models. Any name of :func:`fenchel.losses.make_loss` or any loss is accepted. It is
        integrated over the points, or applied to the L² norm if it only depends on lengths.
    norm : float, default=2
        Exponent p in [1, inf] of "huber" and "squared_epsilon_insensitive". For "huber", 2 bounds
        the influence of each curve and 1 that of each point. For the insensitive loss, 2 drops
        whole curves and inf single points. Projections have closed forms for 1, 2 and inf only.
    kappa : float, optional
        κ > 0 of "huber", in the units of y. None is half of the spread of the curves, 1.4826 times
        the median distance of their values from the pointwise median.
    epsilon : float, optional
        ε >= 0 of the ε-insensitive losses, in the units of y. None is a tenth of that spread.
    alpha : float, optional
        Strength of the regularization, > 0 (λ in the paper). None is learned, see Notes; with
        ``learn=False`` it is a thousandth of its unit.
    level : float, default=0.5
        τ in (0, 1) for "pinball" and "squared_pinball".
    kernel : None, str, kernel or callable, default=None
        Kernel k on the rows of X, see :func:`fenchel.kernels.as_kernel`. Length scales that are
        "learned" are learned. None is a Matérn kernel of smoothness 3/2 on columns and their
        ranks. With at least a column for each ten rows, ``Gaussian("shared")`` is used if it is
        better on held-out rows. With ``learn=False``, None is a Gaussian kernel. For inputs that
        are curves, see :class:`fenchel.kernels.BetweenCurves` and ``IntegralGaussian``.
    learn : bool or Learning, default=True
        Whether, or how, to learn open parameters from held-out rows, see
        :class:`fenchel.learning.Learning`.
    output_kernel : None, str, kernel or callable, default=None
        Kernel k_Θ on the points θ. None is a Gaussian kernel. Its length scale is chosen if the
        input kernel or alpha is learned, see Notes, and is a tenth of the grid's length otherwise.
        Other kernels are not learned: "learned", as in a name, is the median distance of points.
    center : {"auto", "mean", "median"} or None, default="auto"
        Curve that is subtracted from the data before the fit and added to predictions,
        interpolated linearly. "auto" is the mean, or the pointwise minimizer of an asymmetric
        loss, such as the quantile for "pinball". None shrinks predictions to zero, as in the
        paper, so they depend on the zero of the units of y. Incomplete curves are extended first.
    representation : {"auto", "spline", "eigen", "projected"}, default="auto"
        "spline": values at the grid points. "eigen": coefficients in the leading eigenfunctions of
        the output kernel, for the squared loss and ``norm=2`` on complete curves. The kernel is
        truncated, but the loss is that of the whole residual. "projected": the loss is that of the
        projected residual, as in problem (5) of the paper; κ and ε then refer to the projection.
        "auto" is "eigen" if ``n_components`` is given and curves and loss allow it (otherwise with
        a warning), else "spline".
    n_components : int, optional
        Number r of eigenfunctions; None uses all.
    quadrature : {"monte-carlo", "trapezoid"} or array-like of shape (m,), default="monte-carlo"
        Quadrature rule of μ, see :func:`fenchel.functional.as_curves`.
    features : {"auto", "cholesky", "nystroem", "fourier", "kernel_rows"} or FeatureMap
        Feature map of the input kernel, by default "auto".
    solver : str or Solver, default="auto"
        A name in ``fenchel.solvers.SOLVERS``, or a solver. "auto" is "closed_form" for the squared
        loss of complete curves, "splitting" if quadrature weights are common to all curves, and
        "fista" otherwise.
    max_iter : int, default=1000
        Maximum number of iterations of "splitting"; "fista" may use twenty times as many.
    rank, tol, warm_start, random_state, verbose, callback, max_time
        As in :class:`fenchel.QuantileRegressor`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n, m)
        Dual curves u at the grid points, with exact zeros; zero for rows of weight zero.
        Predictions use their function, or a better one within the duality gap.
    support_ : ndarray of int
        Indices of rows with a nonzero dual coefficient.
    sparsity_ : Sparsity
        Fractions of zero ``coefficients`` and of zero ``rows``.
    certificate_ : Certificate
        In units of the objective above, for curves without ``center_``. The relative gap is in
        units of the objective of ``center_`` alone.
    grid_ : ndarray of shape (m,)
        The grid points θ.
    measure_ : ndarray of shape (m,) or (n, m)
        The quadrature weights μ; zero for rows of weight zero, if rows have their own.
    center_ : ndarray of shape (m,)
        The curve that was subtracted.
    kernel_, output_kernel_ : kernel
        The kernels with numerical parameters.
    alpha_, kappa_, epsilon_ : float
        As given or learned, or computed from the curves.
    learned_ : Learned or None
        What was learned, and how; None if nothing was open.
    kernel_error_ : float
        Share of the trace of the input kernel that the features do not represent.
    loss_, norm_, status_, history_, n_iter_, n_features_in_, feature_names_in_
        As in the other estimators.

    Notes
    -----
    Kernel and alpha are learned from eight coordinates of the curves in the eigenfunctions of the
    output kernel, those with the largest mean squares. There the squared-loss problem separates
    into scalar ones. For losses with bounded slopes the criterion is the loss of each coordinate,
    made symmetric and without a tube, so that it is robust to outliers; else it is the squared
    loss.

    An incomplete curve is extended around a common trend: its difference from the trend is linear
    between its points and constant beyond them. The trend is the mean or median of the extended
    curves, after ten iterations from a local linear regression on the pairs of all curves
    (Gaussian weights, with a tenth of the range as standard deviation). Center, kernels and alpha
    are computed from the extended curves; learning uses the mean measure of the observed points.

    The length scale of the output kernel is then chosen by leave-one-out squared errors, which
    have a closed form, on up to 350 curves. A dozen candidates range from the length of the grid
    down to the distance of the points of a curve. If the grid is uneven, kernels of the ranks of
    points are candidates, too (:class:`~fenchel.kernels.WithRanks`). The default, a tenth of the
    grid, is kept unless the best one is better by more than the standard error of the difference.
    Otherwise kernel and alpha are learned again, from the coordinates with 95 % of what it
    explains, 8 to 32. Losses that bound the influence of outliers ignore curves three times as far
    from predictions as the median, and use no larger length scales than the default.

    If curves cover less than nine tenths of the range on average, left-out curves are compared at
    observed points only, by ridge regression on about 500 pairs, at most 8 for each curve. The
    candidates are the learned kernel, the initial kernels and a Gaussian kernel, at four scales;
    alphas over seven decades; and output length scales from a seventh of the range up. The learned
    values are kept unless the best gains more than the standard error, and also if the loss bounds
    the influence of outliers and some curves are outliers.

    The function of ``dual_coef_`` and the predicted function may be different points of the same
    certificate. Their distances from the optimum in the norm of the space are at most
    :math:`\sqrt{2 g / \alpha}`, with g the part of the gap of each, so their values differ by at
    most :math:`2 \sqrt{\mathrm{gap}\, k(x, x)\, k_\Theta(\theta, \theta) / \alpha}`.

    Fits are equivariant. If y is multiplied by c, multiply given ``kappa`` and ``epsilon`` by c.
    Keep ``alpha``, or divide it by c with "absolute", "pinball" and "epsilon_insensitive".

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), Functional output regression with infimal
    convolution: exploring the Huber and ε-insensitive losses.

    Fan (1993), Local linear regression smoothers and their minimax efficiencies: the start of
    the trend. Yao, Müller, Wang (2005), Functional data analysis for sparse longitudinal data:
    pooling the pairs of all curves.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.functional import FunctionalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, theta = rng.uniform(size=(60, 1)), np.linspace(0.0, 1.0, 25)
    >>> Y = np.sin(2 * np.pi * (theta + X))
    >>> Y[0] += 30.0
    >>> model = FunctionalRegressor("huber", kappa=0.5).fit(X, Y, theta)
    >>> bool(abs(model.predict([[0.25]], theta=[0.0, 0.5]) - [[1.0, -1.0]]).max() < 0.05)
    True
    """

    _multi_output = True
    constraints = declared(
        loss=loss_choice(),
        norm=ORDER,
        kappa=NONE | POSITIVE,
        epsilon=NONE | NOT_NEGATIVE,
        kernel=as_kernel,
        output_kernel=as_kernel,
        center=NONE | OneOf(("auto", "mean", "median")),
        representation=OneOf(("auto", *REPRESENTATIONS)),
        n_components=NONE | COUNT,
        quadrature=WITH_DATA,
    )

    _: KW_ONLY
    representation: str = "auto"
    n_components: int | None = None

    @all_or_nothing
    def fit(
        self, X: Any, y: Any, theta: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, d), (n, m', channels) or FDataGrid
            Inputs: vectors, sampled curves, or curves of several channels, whose columns are then
            ordered by point.
        y : array-like of shape (n, m) or (n,), list of pairs (θ, y), or FDataGrid
            Output curves, NaN at unobserved points.
        theta : array-like of shape (m,), optional
            The grid; equidistant points of [0, 1] by default.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights of the curves.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or data; the message names them.
        """
        self.check_parameters()
        watch = self._callback()
        prepared = self._learned_and_prepared(
            *self._given_curves(X, y, theta, sample_weight), sample_weight, watch
        )
        last = getattr(self, "_last", None) if self.warm_start else None
        nearby = self._fit_prepared(prepared, last, watch)
        self.learned_, self._learned = self._learned, None
        self._last = None
        if self.warm_start:  # rows may be others next time, and the values with them
            nearby[1] = np.nan
            self._last = nearby
        return self

    def make_problem(self, prepared: PreparedCurves) -> Problem:
        """Return the optimization problem for the current parameters."""
        choice = self._choice(prepared.spread)
        represented = self._represented(prepared, choice)
        return Problem(
            represented.outputs.loss(choice),
            represented.design,
            represented.outputs.targets,
            prepared.inputs.weight,
            self.strength(prepared),
            fit_intercept=False,
        )

    def _represented(self, prepared: PreparedCurves, choice: LossChoice) -> Represented:
        """The outputs in the representation that was asked for, and the rows for them."""
        curves, inputs = prepared.curves, prepared.inputs
        name = represent(self.representation, self.n_components, choice, curves)
        key = (name, self.n_components)
        if key not in prepared.represented:
            outputs = outputs_of(name, curves, prepared.between, self.n_components)
            made = Represented(outputs, inputs)
            prepared.represented[key] = made
        return prepared.represented[key]

    def fit_prepared(
        self, prepared: PreparedCurves, start: FloatArray | None = None
    ) -> FloatArray:
        """Solve on prepared curves, set the fitted attributes, and return a warm start.

        The warm start is (2, n, m), for scaled curves of all rows: a point near the dual solution,
        and alpha times the values of its function, NaN if unknown.
        """
        return self._fit_prepared(prepared, start, self._callback())

    def _fit_prepared(
        self, prepared: PreparedCurves, start: FloatArray | None, watch: Callback | None
    ) -> FloatArray:
        with threads_that_pay(prepared.size(self.n_components)), reused_memory(prepared.memory):
            return self._solved(prepared, start, watch)

    def _solved(
        self, prepared: PreparedCurves, start: FloatArray | None, watch: Callback | None
    ) -> FloatArray:
        curves, inputs = prepared.curves, prepared.inputs
        choice = self._choice(prepared.spread)
        size = (2, inputs.n_rows, curves.values.shape[1])
        warm = None
        if start is not None and start.shape == size:
            outputs = self._represented(prepared, choice).outputs
            mine = start if len(inputs.kept) == inputs.n_rows else start[:, inputs.kept]
            warm = outputs.start(mine, self.strength(prepared))
        used, problem, solution = solve_named(
            prepared,
            self.make_problem,
            lambda problem, near: self._solver(problem).solve(problem, near, watch),
            warm,
            self._tolerance,
            watch,
        )
        prepared.adopt(used)
        self.alpha_, self.norm_ = problem.alpha, problem.norm(solution.weights)
        made = self._represented(prepared, choice)
        self.kappa_, self.epsilon_ = choice.kappa, choice.epsilon
        solution, weights = made.as_stored(problem, solution, self._tolerance)
        self._keep_map(prepared.inputs, named=True, stacklevel=7)
        self._warn_of_components(prepared)
        self._keep(prepared, made, problem, solution)
        self.feature_map_, self.weights_ = compacted(self.feature_map_, weights)
        self._keep_end(solution, stacklevel=6)
        following = made.outputs.following(solution, problem.alpha)
        if len(inputs.kept) == inputs.n_rows:
            return following
        whole = np.zeros(size)
        whole[:, inputs.kept] = following
        return whole

    def _warn_of_components(self, prepared: PreparedCurves) -> None:
        if self.representation != "auto" or self.n_components is None:
            return
        lacking = lacking_for_eigenfunctions(self._choice(prepared.spread), prepared.curves)
        if lacking is not None:
            warnings.warn(
                f"n_components={self.n_components} is not used: eigenfunctions need {lacking}",
                UserWarning,
                stacklevel=6,
            )

    def _solver(self, problem: Problem) -> Solver:
        tol, limit = float(self.tol), int(self.max_iter)
        gradients = Fista(tol, _GRADIENT_STEPS * limit, check=_GRADIENT_CHECK)
        if self.solver == "fista":
            return gradients
        if self.solver == "auto":
            return first_that_can((ClosedForm(tol), Splitting(tol, limit), gradients), problem)
        return make_solver(self.solver, problem, tol, limit)

    def _keep(
        self,
        prepared: PreparedCurves,
        represented: Represented,
        problem: Problem,
        solution: Solution,
    ) -> None:
        curves, inputs = prepared.curves, prepared.inputs
        self.grid_, self.center_, measure = curves.grid, prepared.center, curves.measure
        self.measure_ = measure if measure.ndim == 1 else inputs.of_all(measure)
        self._given = curves.given
        root = np.sqrt(measure)
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
        dual = problem.weight[:, None] * inverse * represented.outputs.on_grid(solution.dual)
        self.dual_coef_ = inputs.of_all(dual)
        zero = dual == 0.0
        whole = zero.all(axis=1)
        self.support_ = np.sort(inputs.kept[~whole])
        points = zero if curves.observed is None else zero[curves.observed]
        self.sparsity_ = Sparsity(float(points.mean()), float(whole.mean()))
        self.output_kernel_, self.loss_ = prepared.output_kernel, problem.loss

    def predict(self, X: Any, theta: Any = None) -> Any:
        """Predict curves at new samples.

        Parameters
        ----------
        X : as in ``fit``
            New samples.
        theta : float or array-like of shape (m',), optional
            Points, in any order (increasing for an FDataGrid); None for the training grid. Beyond
            the grid, predictions return to the end values of ``center_`` within the length scale
            of a local output kernel. A warning is given for points further from the grid than its
            points are from each other.

        Returns
        -------
        ndarray of shape (n, m') or (n,), or FDataGrid
            Predicted curves in the format of y in :meth:`fit`; an array for pairs.
        """
        check_is_fitted(self)
        functions = self._given == "fdatagrid"
        single = theta is not None and np.ndim(theta) == 0 and not functions
        grid = self.grid_ if theta is None else as_points(theta, increasing=functions)
        values = self._evaluate(self._new_rows(self._flattened(X)), grid)
        beyond = sentence_on_range(grid, self.grid_)
        if beyond is not None:
            warnings.warn(beyond, UserWarning, stacklevel=2)
        if functions:
            return to_fdatagrid(grid, values)
        if single:
            return values[:, 0]
        return values[:, 0] if self._flat and values.shape[1] == 1 else values

    def _flattened(self, X: Any) -> Any:
        """Curves as rows, on the grid of the fit."""
        check_rows(X, vars(self).get("_rows_grid"), vars(self).get("_rows_shape"))
        return as_rows(X)

    def _evaluate(self, X: FloatArray, grid: FloatArray) -> FloatArray:
        """Values (n, m') for rows that are validated."""
        between = np.asarray(self.output_kernel_(self.grid_[:, None], grid[:, None]))
        with threads_that_pay(min(len(X), len(self.weights_))):
            values = self._new_features(X) @ self.weights_ @ between
        return np.asarray(values + np.interp(grid, self.grid_, self.center_))

    def score(
        self, X: Any, y: Any, theta: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Return the coefficient of determination R² of functions, at most 1.

        It is one minus the mean of ∫(y - h(x))² over that of ∫(y - mean curve)², over observed
        points. For asymmetric losses such as "pinball", the loss and its best constant curve are
        used instead. The arguments are those of :meth:`fit`, and points may differ from those.
        The mean of incomplete curves is computed as for ``center``. A ``quadrature`` array
        belongs to the training grid; curves at other points use "monte-carlo".
        """
        curves, predicted, weight = self.compared(X, y, theta, sample_weight)
        choice = self._fitted_choice()
        constant = center_of(constant_of(choice), curves, weight)
        losses = (losses_of(choice, curves, other) for other in (predicted, constant))
        return explained_share(*(float(weight @ each) for each in losses))

    def compared(
        self, X: Any, y: Any, theta: Any = None, sample_weight: Any = None
    ) -> tuple[Curves, FloatArray, FloatArray]:
        """Return curves to score, predictions at their observed points, and weights."""
        check_is_fitted(self)
        X = rows_of(self, self._flattened(X), reset=False)
        given = self.grid_ if theta is None and is_array(y) else theta
        rule = self._scoring_rule(given)
        curves = curves_of(y, len(X), given, rule, sample_weight)
        if (own := self._scoring_rule(curves.grid)) is not rule:  # pairs have their own points
            curves = curves_of(y, len(X), given, own, sample_weight)
        weight = check_weights(X, sample_weight)
        return curves, self._evaluate(X, curves.grid), weight

    def _scoring_rule(self, theta: Any) -> Any:
        same = theta is not None and np.array_equal(theta, self.grid_)
        return self.quadrature if same or isinstance(self.quadrature, str) else "monte-carlo"

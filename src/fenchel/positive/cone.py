"""Regression with vector outputs in a polyhedral cone at every x."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray, IntArray
from fenchel._validation import NONE, NOT_NEGATIVE, NUMBERS, POSITIVE, OneOf, declared, targets_of
from fenchel.certificate import Callback
from fenchel.learning import Learning
from fenchel.losses import Loss, make_loss
from fenchel.losses.registry import loss_choice, measured_thresholds
from fenchel.metrics import d2_score
from fenchel.positive._base import PositiveRegressor, Prepared, with_constant
from fenchel.positive._in_time import some_rows
from fenchel.positive._inequalities import InequalitySplitting
from fenchel.positive._row_sums import quadratic_forms
from fenchel.positive._solution import PSDSolution, Start
from fenchel.positive.losses import Residual
from fenchel.positive.problem import PSDPart, PSDProblem
from fenchel.positive.solvers import SOLVER_CHOICE

CONES = ("non_negative", "monotone")
_ROUNDING = 1e-10
SPLITTING = "splitting"
"""Name of the alternating direction solver."""


def non_negative_cone(n_outputs: int) -> FloatArray:
    """Return the matrix C of the cone of non-negative outputs, the identity.

    Examples
    --------
    >>> from fenchel.positive import non_negative_cone
    >>> non_negative_cone(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return np.eye(n_outputs)


def monotone_cone(n_outputs: int, non_negative: bool = False) -> FloatArray:
    """Return the matrix C of the cone of non-decreasing outputs.

    Parameters
    ----------
    n_outputs : int
        Number of outputs, >= 1.
    non_negative : bool
        Whether the first output must be >= 0 as well.

    Returns
    -------
    ndarray of shape (n_outputs - 1, n_outputs), or (n_outputs, n_outputs) with ``non_negative``

    Examples
    --------
    >>> from fenchel.positive import monotone_cone
    >>> monotone_cone(3)
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.]])
    """
    steps = np.diff(np.eye(n_outputs), axis=0)
    return np.concatenate([np.eye(n_outputs)[:1], steps]) if non_negative else steps


@parameters
class ConeRegressor(PositiveRegressor):
    r"""Regression whose outputs lie in a polyhedral cone at every x.

    For a cone given by inequalities, :math:`\{y : C y \ge 0\}`, each output has one symmetric
    matrix (Theorem 6):

    .. math:: f_s(x) = \psi(x)^\top A_s \psi(x), \qquad
              \sum_s C_{ts} A_s \succeq 0 \;\text{ for all } t

    .. math:: \min_{A}\; \frac{1}{\sum_i s_i} \sum_i s_i\, \ell(y_i - f(x_i))
              + \sum_s \Bigl(\mathrm{trace\_penalty}\, \|A_s\|_*
              + \frac{\mathrm{alpha}}{2} \|A_s\|_F^2\Bigr)

    For a cone spanned by generators, :math:`\{\sum_t a_t g_t : a \ge 0\}`, each generator has one
    positive semi-definite matrix (Remark 2):

    .. math:: f(x) = \sum_t \psi(x)^\top B_t \psi(x)\, g_t, \qquad B_t \succeq 0

    with the penalty :math:`\sum_t \mathrm{trace\_penalty}\, \operatorname{tr} B_t +
    \frac{\mathrm{alpha}}{2} \|B_t\|_F^2` instead. The features ψ = (φ, 1) are those of the kernel
    and a constant. The targets y and the thresholds of the loss are divided by the root mean
    square of y. ‖A‖_* is the nuclear norm, the sum of the absolute eigenvalues.

    Parameters
    ----------
    cone : {"non_negative", "monotone"} or array-like of shape (h, n_outputs), optional
        The matrix C. "monotone" means non-decreasing outputs. The default is "non_negative" unless
        ``generators`` are given. The cone must have interior points.
    generators : array-like of shape (t, n_outputs), optional
        The vectors g_t, instead of ``cone``. A few can span a cone in a high-dimensional space.
    loss : str or Loss, default="squared"
        Loss of the residuals: a name of :func:`fenchel.losses.make_loss`, or any loss.
    level, kappa, epsilon : float
        As in :class:`NonNegativeRegressor`.
    alpha : float or None, default=None
        Strength of the squared norms, > 0. If None, it is learned, or 1e-4 with ``learn=False``.
        If the kernel is learned too and alpha exceeds 1e-3, a constant is added to the kernel so
        that predicted levels are not shrunk.
    trace_penalty : float, default=0.0
        Strength of the traces or nuclear norms, >= 0. It lowers the ranks.
    learn : bool or Learning, default=True
        As in :class:`NonNegativeRegressor`, with linear models of the same loss and their alpha.
    solver : {"auto", "newton", "proximal_newton", "fista", "splitting"} or solver, default="auto"
        The first four are those of :class:`NonNegativeRegressor`. They apply to ``generators``,
        and to cones with as many orthogonal inequalities as outputs such as "non_negative". With a
        trace penalty, each inequality must then involve one output only. "splitting", alternating
        directions, applies to any inequalities. "auto" uses "splitting" only if none of the others
        applies.
    tol : float, default=1e-6
        Relative duality gap to reach, in units of the loss of the best constant.
    kernel : None, str, kernel or callable, default=None
        See :func:`fenchel.kernels.as_kernel`. None is a Gaussian kernel. Its length scales are
        learned, or computed from X with ``learn=False`` or random features.
    features, rank, max_iter, warm_start, random_state, verbose, callback, max_time
        As in :class:`NonNegativeRegressor`.

    Attributes
    ----------
    matrices_ : ndarray of shape (n_outputs, r + 1, r + 1)
        The matrices A_s in the units of y, for a cone of inequalities.
    multipliers_ : ndarray of shape (h, r + 1, r + 1)
        Multipliers Z_t ⪰ 0 of the inequalities, for rows of C scaled to unit length. They are zero
        for inequalities that are inactive or implied by others.
    factors_ : list of t ndarrays of shape (r + 1, rank)
        Factors F with B = F Fᵀ in the units of y, for generators of unit length.
    cone_, generators_ : ndarray or None
        C or the g_t, with rows of unit length.
    shift_ : ndarray of shape (n_outputs,)
        Vector subtracted from y: its mean along the directions v with C v = 0.
    scale_ : float
        Number by which y was divided after that.
    certificate_ : Certificate
        Primal objective of the fit and dual objective of a feasible point, for scaled y.
    loss_ : Loss
        The loss of residuals in the units of y.
    kappa_, epsilon_ : float
        As given, or computed from y.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        Dual variables times the weights; zero for rows of weight zero.
    alpha_, learned_, kernel_, kernel_error_, feature_map_, n_iter_, history_, status_
        As in :class:`NonNegativeRegressor`.
    n_features_in_, feature_names_in_
        As in :class:`NonNegativeRegressor`.

    Raises
    ------
    ValueError
        If the cone has no interior points, its number of columns is not the number of outputs, or
        the solver does not apply to it.

    Notes
    -----
    The outputs are in the cone up to rounding errors of ``predict``, and exactly in the cone for
    "non_negative" and "monotone".

    The two representations are different sets of functions. Every function of the generator form
    fulfils the inequalities of its cone, as
    :math:`\sum_s C_{us} A_s = \sum_t \langle C_u, g_t\rangle B_t \succeq 0`. The converse holds if
    the cone is simplicial (C has linearly independent rows, as for the two named cones); then only
    the penalties differ. For other cones, such as one over a square, some matrices fulfil the
    inequalities and are not combinations of generators with positive semi-definite coefficients.
    Inequalities therefore describe the larger set. Generators do not need a description by
    inequalities, which can be very many for a cone in many dimensions.

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Non-parametric models for non-negative functions, (15),
    Proposition 5, Theorem 6 and Remark 2.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import ConeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(80, 1))
    >>> Y = np.sin(X) + [0.0, 0.1, 0.2] + 0.3 * rng.normal(size=(80, 3))
    >>> model = ConeRegressor("monotone", alpha=1e-3).fit(X, Y)
    >>> bool((np.diff(model.predict(X), axis=1) >= 0.0).all())
    True
    >>> hull = ConeRegressor(generators=[[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]).fit(X, np.abs(Y))
    >>> hull.predict(X).shape
    (80, 3)
    """

    _multi_output = True
    feature_parameters = (*PositiveRegressor.feature_parameters, "cone", "generators", "loss")
    constraints = declared(
        cone=NONE | OneOf(CONES) | NUMBERS,
        generators=NONE | NUMBERS,
        loss=loss_choice(),
        kappa=NONE | POSITIVE,
        epsilon=NONE | NOT_NEGATIVE,
        solver=OneOf((SPLITTING,)) | SOLVER_CHOICE,
    )
    kappa_ = 1.0
    epsilon_ = 0.1

    cone: Any = None
    _: KW_ONLY
    generators: Any = None
    loss: Any = "squared"
    level: float = 0.5
    kappa: float | None = None
    epsilon: float | None = None
    alpha: float | None = None
    trace_penalty: float = 0.0
    learn: bool | Learning = True
    max_iter: int = 5000

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict outputs in the cone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted outputs.
        """
        features = with_constant(self._features_of(X))
        if self.generators_ is not None:
            sizes = [quadratic_forms(features, factor) for factor in self.factors_]
            prediction = np.stack(sizes, axis=1) @ self.generators_
        else:
            forms = [np.einsum("ij,ij->i", features @ a, features) for a in self.matrices_]
            prediction = self.shift_ + np.stack(forms, axis=1)
            if self._named == "non_negative":  # what rounding leaves
                prediction = np.maximum(prediction, 0.0)
            elif self._named == "monotone":
                prediction = np.maximum.accumulate(prediction, axis=1)
        return prediction[:, 0] if self._flat else prediction

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return D², the share of the loss of the best constant that is explained, at most 1.

        For the squared loss it is R², averaged over outputs.
        """
        prediction = self.predict(X)
        if self._quadratic(self.loss_, 1 if prediction.ndim == 1 else prediction.shape[1]):
            return super().score(X, y, sample_weight)
        y = targets_of(type(self).__name__, y, len(prediction), prediction.ndim > 1)
        return float(d2_score(y, prediction, self.loss_, sample_weight=sample_weight))

    def default_grid(self) -> dict[str, Any]:
        """Return a grid with 9 values of alpha."""
        return {"alpha": 9}

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.cone is not None and self.generators is not None:
            raise ValueError("cone must be None where generators are given, got both")
        if self.generators is not None and self.solver == SPLITTING:
            raise ValueError(
                "solver must be 'auto', 'newton', 'proximal_newton', 'fista' or a solver with "
                f"generators, got {SPLITTING!r}: it is for inequalities"
            )

    def _check_targets(self, targets: FloatArray) -> None:
        self._set_cone(targets.shape[1])

    def _residual_loss(self) -> Loss:
        """The loss in the units of y, once the cone is known."""
        rows = self.cone_ if self.generators is None else self.generators_
        assert rows is not None
        return make_loss(
            self.loss,
            rows.shape[1],
            kappa=self.kappa_,
            epsilon=self.epsilon_,
            level=self.level,
        )

    def _measure(self, targets: FloatArray, weight: FloatArray) -> None:
        self.kappa_, self.epsilon_ = measured_thresholds(self.kappa, self.epsilon, targets, weight)

    def _linear_loss(self, scale: float) -> tuple[Loss, bool]:
        return self._residual_loss().rescaled(scale), True

    @property
    def _free_level(self) -> float:
        return 1.0 if self._chooses_kernel else 0.0

    def _quadratic(self, loss: Loss, n_outputs: int) -> bool:
        """Whether a loss of so many outputs is half the squared length."""
        box = loss.box(n_outputs)
        if box is None or box.epsilon > 0.0:
            return False
        free = np.isinf(box.lower).all() and np.isinf(box.upper).all()
        return bool(free and np.all(box.below == 1.0) and np.all(box.above == 1.0))

    def _try(self, prepared: Prepared) -> None:
        if self._by_positive_parts():
            super()._try(prepared)
        else:
            self._refuse_other_solvers()

    def _by_positive_parts(self) -> bool:
        """Whether the problem is one of positive matrices for themselves."""
        if self.cone_ is None:
            return True
        cone = self.cone_[_needed(self.cone_)]
        single = bool(np.all(np.count_nonzero(cone, axis=1) == 1))
        turned = _orthonormal(cone) and (single or self.trace_penalty == 0.0)
        return turned and self.solver != SPLITTING

    def _refuse_other_solvers(self) -> None:
        if self.solver not in ("auto", SPLITTING):
            raise ValueError(
                f"solver must be 'auto' or {SPLITTING!r} for these inequalities, got "
                f"{self.solver!r}: others need a cone with orthogonal rows, or generators"
            )

    def _set_cone(self, p: int) -> None:
        """Resolve the cone, where the number of outputs is known."""
        self._named = None
        self.cone_ = self.generators_ = None
        if self.generators is not None:
            self.generators_ = _unit_rows(self.generators, "generators", p)
            return
        if self.cone is None or isinstance(self.cone, str):
            self._named = self.cone or "non_negative"
            if self._named == "monotone" and p < 2:
                raise ValueError(f"cone='monotone' needs two or more outputs, got {p}")
            matrix = monotone_cone(p) if self._named == "monotone" else non_negative_cone(p)
        else:
            matrix = self.cone
        self.cone_ = _unit_rows(matrix, "cone", p)

    def _standardization(
        self, targets: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        shift = np.zeros(targets.shape[1])
        if self.cone_ is not None:
            _, sizes, basis = np.linalg.svd(self.cone_)
            free = basis[np.count_nonzero(sizes > _ROUNDING) :]
            shift = free.T @ (free @ np.average(targets, axis=0, weights=weight))
        size = float(np.sqrt(np.average((targets - shift) ** 2, axis=0, weights=weight).mean()))
        return shift, np.full(len(shift), size if size > 0.0 else 1.0)

    def _problem(self, prepared: Prepared) -> PSDProblem:
        inputs, alpha = prepared.inputs, self._strength()
        features, trace = with_constant(inputs.features), float(self.trace_penalty)
        directions = self.generators_
        if self.cone_ is not None:
            directions = self.cone_[_needed(self.cone_)]
        assert directions is not None
        parts = [PSDPart(features, alpha, trace, g) for g in directions]
        return PSDProblem(self._prediction_loss(prepared), parts, inputs.weight)

    def _prediction_loss(
        self, prepared: Prepared, rows: slice | IntArray = slice(None)
    ) -> Residual:
        """The loss of scaled targets, of some rows."""
        targets, weight = prepared.targets[rows], prepared.inputs.weight[rows]
        scaled = self._residual_loss().rescaled(float(prepared.scale[0]))
        return Residual(scaled, targets, weight, targets.shape[1])

    def _solve(
        self, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> PSDSolution:
        self._set_cone(prepared.targets.shape[1])
        self._measure(float(prepared.scale[0]) * prepared.targets, prepared.inputs.weight)
        if self.cone_ is None:
            return super()._solve(prepared, start, watch)
        if self._by_positive_parts():
            return self._solve_turned(prepared, start, watch)
        self._refuse_other_solvers()
        splitting = self._splitting(prepared)
        some = some_rows(len(prepared.targets), watch)
        few = None if some is None else self._splitting(prepared, some)
        given = None if start is None else start.multipliers
        tol, limit = float(self.tol), int(self.max_iter)
        with threads_that_pay(splitting.size):
            return splitting.solve(tol, limit, given, watch, few)

    def _splitting(
        self, prepared: Prepared, rows: slice | IntArray = slice(None)
    ) -> InequalitySplitting:
        """The problem of some rows, under inequalities between matrices."""
        assert self.cone_ is not None
        cone = self.cone_[_needed(self.cone_)]
        loss = self._prediction_loss(prepared, rows)
        return InequalitySplitting(
            with_constant(prepared.inputs.features[rows]),
            loss,
            prepared.inputs.weight[rows],
            cone,
            _inner_point(cone),
            (self._strength(), float(self.trace_penalty)),
            prepared.targets[rows] if self._quadratic(loss.loss, loss.n_outputs) else None,
        )

    def _solve_turned(
        self, prepared: Prepared, start: Start | None, watch: Callback | None
    ) -> PSDSolution:
        """By the positive matrices B = C A, which have the norm of A for an orthonormal C.

        Their dual points are the same, and the multipliers of B_t ⪰ 0 the positive parts of
        the matrices G_t, the gradients of the objective in B_t.
        """
        solution = super()._solve(prepared, start, watch)
        assert self.cone_ is not None
        cone = self.cone_[_needed(self.cone_)]
        gradients = self._problem(prepared).push(solution.dual).gram
        trace = float(self.trace_penalty) * np.eye(len(gradients[0]))
        values, vectors = np.linalg.eigh(np.array(gradients) + trace)
        multipliers = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        matrices = np.einsum("ts,tab->sab", cone, np.array(solution.model.matrices))
        model = solution.model._replace(matrices=list(matrices), factors=[])
        return replace(solution, model=model, multipliers=multipliers)

    def _keep(self, prepared: Prepared, solution: PSDSolution) -> None:
        self.shift_, self.scale_ = prepared.shift, float(prepared.scale[0])
        self.loss_ = self._residual_loss()
        for name in ("matrices_", "multipliers_", "factors_"):  # of a fit of the other kind
            vars(self).pop(name, None)
        if self.cone_ is not None:
            self.matrices_ = self.scale_ * np.array(solution.model.matrices)
            self.multipliers_ = np.zeros((len(self.cone_), *solution.multipliers.shape[1:]))
            self.multipliers_[_needed(self.cone_)] = solution.multipliers
        else:
            root = np.sqrt(self.scale_)
            self.factors_ = [root * factor for factor in solution.model.factors]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True  # others are accepted, but cannot be reached
        return tags


def _unit_rows(rows: Any, name: str, n_outputs: int) -> FloatArray:
    """Rows of length one, refused if there are none or if one is zero."""
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != n_outputs or not len(array):
        raise ValueError(
            f"{name} must have rows of {n_outputs} entries, one for each output, got an array of "
            f"shape {array.shape}"
        )
    lengths = np.linalg.norm(array, axis=1)
    if not np.all(np.isfinite(lengths) & (lengths > 0.0)):
        row = int(np.argmin(np.isfinite(lengths) & (lengths > 0.0)))
        raise ValueError(
            f"{name} must have finite rows that are not zero, got {array[row].tolist()} in row "
            f"{row}"
        )
    return np.asarray(array / lengths[:, None])


def _needed(cone: FloatArray) -> IntArray:
    """Numbers of the inequalities that do not follow from others, as their sum would.

    A sum of positive semi-definite matrices is one too. With what follows, multipliers are not
    unique, and alternating directions take up to ten times as many steps.
    """
    left = list(range(len(cone)))
    for t in reversed(range(len(cone))):
        others = [u for u in left if u != t]
        if others and nnls(cone[others].T, cone[t])[1] <= _ROUNDING:
            left = others
    return np.array(left)


def _orthonormal(cone: FloatArray) -> bool:
    """Whether C is square with C Cᵀ = I."""
    h, p = cone.shape
    return h == p and bool(np.abs(cone @ cone.T - np.eye(h)).max() <= _ROUNDING)


def _inner_point(cone: FloatArray) -> FloatArray:
    """A small point with C x >= 1."""
    h, p = cone.shape
    one = np.ones((p, 1))
    left = np.block([[-cone, np.zeros((h, 1))], [np.eye(p), -one], [-np.eye(p), -one]])
    right = np.concatenate([-np.ones(h), np.zeros(2 * p)])
    found = linprog(np.eye(p + 1)[-1], left, right, bounds=(None, None))
    if found.status != 0:
        raise ValueError(
            "cone must have interior points, and no y makes all entries of cone @ y positive: "
            "write outputs that must be equal as one output"
        )
    return np.asarray(found.x[:p] * (1.0 + _ROUNDING))

"""Kernel ridge regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._parameters import parameters
from fenchel._threads import threads_that_pay
from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import declared
from fenchel.design import Factored
from fenchel.features import FeatureMap, KernelRowLimits
from fenchel.kernels import OperatorKernel, check_coupling, output_coupling
from fenchel.losses import Loss, Squared
from fenchel.problem import Problem
from fenchel.regression._base import KernelRegressor
from fenchel.regression._prepared import Prepared
from fenchel.solvers import Solution
from fenchel.solvers.leave_one_out import LeaveOneOutPath, complement_of, leave_one_out

_SOLVED = 1e-3  # relative gap above which residuals are not those of the optimum
_MOST_KEPT = 2**27  # numbers of a factor: 1 GiB
_MOST_FACTORED = 25_000  # rows, of which a matrix takes 5 GB
_BY_PRODUCTS = ("auto", "conjugate_gradients")
_factors: WeakKeyDictionary[FeatureMap, Factored] = WeakKeyDictionary()
"""The factor of the last fit of the process, by its feature map, and of no other."""


@parameters
class KernelRidge(KernelRegressor):
    r"""Kernel ridge regression with an intercept, solved in closed form, with a certificate.

    .. math:: \min_{h, b}\; \frac{\alpha}{2} \|h\|_K^2
              + \frac{1}{2 \sum_i s_i} \sum_i s_i\, \|y_i - h(x_i) - b\|^2, \qquad
              K\, \mathrm{dual\_coef}\, B + \alpha N\, \mathrm{diag}(1/s)\, \mathrm{dual\_coef}
              = y - b

    where N is the sum of the weights s and B the coupling of the outputs. With one output and no
    weights this is (K + alpha N I) dual_coef = y - b.

    Parameters
    ----------
    alpha : float, optional
        Strength of the regularization, > 0. The textbook's λ, and scikit-learn's
        ``KernelRidge(alpha)``, is alpha * n_samples here. If None, alpha is learned, see
        :class:`QuantileRegressor`.
    learn : bool or Learning, default=True
        As in :class:`QuantileRegressor`.
    radius : float, optional
        Bound Λ on ‖h‖, used instead of ``alpha``, see :class:`QuantileRegressor`. This is the
        problem of the textbook's section 11.3.2 with ‖h‖ <= Λ.
    kernel : None, str, kernel, callable or OperatorKernel, default=None
        See :func:`fenchel.kernels.as_kernel`. Outputs are independent unless ``coupling`` or an
        :class:`fenchel.kernels.OperatorKernel` couples them. Open parameters are learned, see
        :class:`QuantileRegressor`.
    coupling : array-like of shape (n_outputs, n_outputs), optional
        Symmetric positive semi-definite matrix B of the kernel k(x, x') B, by default the
        identity. The system is a Sylvester equation and is solved in the eigenvectors of B. A
        :class:`fenchel.kernels.Decomposable` kernel gives the same model, but is slower.
    solver : str or Solver, default="auto"
        A name in ``fenchel.solvers.SOLVERS``, or a solver. "auto" is "closed_form";
        "conjugate_gradients" if kernel values are not stored (see Notes); and "newton" with an
        operator-valued kernel.
    tol : float, default=1e-6
        Relative duality gap. A larger gap gives a warning that rounding errors dominate.
    max_iter : int, default=1000
        Maximum number of steps of an iterative solver.
    warm_start : bool, default=False
        Whether an iterative solver starts from the previous fit.
    verbose : int, default=0
        If positive, one line is printed for each evaluation of learning, and one with the gap.
    fit_intercept, features, rank, random_state, callback, max_time
        As in :class:`QuantileRegressor`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_support, n_outputs)
        Coefficients a: h(x) = k(x, X[support_]) @ dual_coef_ @ coupling_; with an operator-valued
        kernel K, h(x) = Σ_i K(x, X[support_[i]]) @ dual_coef_[i]. See the notes of
        :class:`QuantileRegressor`.
    support_ : ndarray of shape (n_support,)
        Indices of the rows with a nonzero dual coefficient, usually all rows.
    offset_ : ndarray of shape (n_outputs,)
        The offsets b.
    coupling_ : ndarray of shape (n_outputs, n_outputs)
        The matrix B; the identity with an operator-valued kernel.
    loo_residuals_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        y_i minus the prediction at x_i of the model fitted without row i, see Notes. If the table
        contains copies of row i, these stay in the fit and make the residual too small. A row of
        weight k is left out with all its weight.
    loo_error_ : float
        Σ_i s_i e_i² / Σ_i s_i, with e_i² the mean square of row i of ``loo_residuals_``.
    weights_, norm_, certificate_, loss_, alpha_, learned_, feature_importances_, idle_features_
        As in :class:`QuantileRegressor`.
    status_, kernel_, kernel_error_, certified_kernel_, feature_map_, n_iter_
        As in :class:`QuantileRegressor`.
    history_, n_features_in_, feature_names_in_
        As in :class:`QuantileRegressor`.

    Notes
    -----
    Let M be the hat matrix, with weights and intercept included. The leave-one-out residual of a
    row is

    .. math:: y_i - h_{-i}(x_i) - b_{-i} = (1 - M_{ii})^{-1} (y_i - h(x_i) - b),

    in each eigenvector of the coupling. Row i is left out with all its weight and all its outputs.
    The product alpha * N, with N the sum of all weights, is kept, and so are length scales and
    feature map; with ``radius`` the value of ``alpha_`` is kept, not the radius. A row of
    weight zero is not part of the fit: its entry is the residual of the model. An entry is NaN
    if 1 - M_ii is zero up to rounding (at most 2e-13): the fit then follows y_i whatever its
    value, as with a single row and an intercept. Close to that limit, the smaller
    1 - M_ii, the more digits are lost. If an entry is NaN, so is ``loo_error_``.

    If the kernel has (nearly) full rank, the exact problem is solved up to 50 000 rows: up to
    10 000 rows in closed form, with a stored matrix, and beyond that by conjugate gradients, which
    compute the kernel values again in each step. Features of low rank are used with a ``rank``,
    a ``radius`` or another solver, with more rows, and in searches over strengths. They
    are as fast at 20 000 rows and ten times faster at 50 000, with gaps of 1e-4 to 0.6 in place of
    1e-6.

    The leave-one-out residuals and their error are computed at first access and then kept. This
    takes O(n r²) for features of rank r < n, else O(n³), as the fit does. A fit on kernel rows
    keeps its matrix factor for this (n² numbers, at most 1 GiB in all) until the residuals are
    computed or another model is fitted in the process. A fitted model keeps its training rows or
    their features, whichever are fewer numbers, and so does its file. The residuals are as exact
    as the fit, hence with an iterative ``solver`` only as exact as its tolerance. Conjugate
    gradients have no factor, so one is computed, for at most 25 000 rows (5 GB). The residuals
    are not available for more rows than that, for operator-valued kernels, and for rows that were
    not in memory.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, Foundations of Machine Learning, section 11.3.2 and
    exercise 11.9, where (11.34) divides by M_ii in place of 1 - M_ii. Alvarez, Rosasco,
    Lawrence (2012), Kernels for vector-valued functions: a review, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X, y, _ = make_sine_quantiles(200, random_state=0)
    >>> model = KernelRidge(alpha=1e-4).fit(X, y)
    >>> model.predict(X).shape
    (200,)
    >>> bool(model.loo_error_ > np.mean((y - model.predict(X)) ** 2))
    True
    """

    _multi_output = True
    constraints = declared(coupling=check_coupling)
    _for_searches = False
    """Whether rows are prepared for many strengths, so that few features serve them all."""

    alpha: float | None = None
    _: KW_ONLY
    coupling: ArrayLike | None = None

    def _remember(self, prepared: Prepared, problem: Problem, solution: Solution) -> None:
        """Keep what leave-one-out residuals need: the rows, or the features if these are smaller.

        If the dual point with the best bound belongs to another model, its residuals are kept too.
        """
        self._loo: FloatArray | None = None
        self._train: FloatArray | None = None
        self._train_map: FeatureMap | None = None  # of these rows, where predictions need less
        self._residual: FloatArray | None = None
        self._came_near = True  # the optimum of the features, which may leave out much
        inputs = prepared.inputs
        self._n_rows, self._train_weight = inputs.n_rows, problem.weight
        self._idle, self._train_intercept = prepared.idle, problem.fit_intercept
        if isinstance(self.kernel_, OperatorKernel):
            return
        self._train_gram = problem.design.is_gram
        factored = problem.design.left_factor
        if not inputs.in_memory:
            return
        known = (solution.source, solution.nearby, solution.dual)
        own = next(point for point in known if point is not None)
        certificate = solution.certificate
        self._came_near = solution.status.converged or certificate.relative_gap <= _SOLVED
        if not self._came_near and self.radius is None:
            gap = certificate.primal - problem.dual(own)
            self._came_near = gap <= _SOLVED * certificate.unit
        self._residual = None if own is solution.dual else own
        fewer = inputs.features.size <= inputs.rows.size
        if factored is not None and factored.size <= _MOST_KEPT and not fewer:
            _factors.clear()
            _factors[self.feature_map_] = factored
        else:
            problem.design.restore()
        self._train_mapped = fewer and not self._train_gram
        self._train = inputs.features if self._train_mapped else inputs.rows.copy()
        same = isinstance(inputs.rows, np.ndarray) and np.may_share_memory(
            self._train, inputs.rows
        )
        if self._train_mapped and same:
            self._train = self._train.copy()  # the caller's array may change after the fit
        whole = type(self.feature_map_) is type(inputs.feature_map)
        if not (whole or self._train_gram or self._train_mapped):
            self._train_map = inputs.feature_map

    @property
    def loo_residuals_(self) -> FloatArray:
        """Leave-one-out residuals, in the shape of y."""
        check_is_fitted(self)
        if self._loo is None:
            self._loo = self._leave_one_out()
        return self._loo[:, 0] if self._flat else self._loo

    @property
    def loo_error_(self) -> float:
        """Weighted mean of the squares of ``loo_residuals_``."""
        residuals = self.loo_residuals_.reshape(self._n_rows, -1)[self._kept]
        return float(np.average(np.mean(residuals**2, axis=1), weights=self._train_weight))

    def _leave_one_out(self) -> FloatArray:
        if isinstance(self.kernel_, OperatorKernel):
            raise ValueError(
                "leave-one-out residuals need a scalar kernel, with coupling for the outputs, "
                f"got kernel={type(self.kernel_).__name__}"
            )
        if not self._came_near:
            raise AttributeError(
                "loo_residuals_ needs a fit that has come near its optimum, got one that has "
                f"{self.status_.message}"
            )
        if self._train is None:
            raise AttributeError(
                "loo_residuals_ needs a fit of rows that are in memory, and of many features the "
                "process of the fit: read it before the model is stored"
            )
        residual = self._residual
        if residual is None:
            weight = self._train_weight
            residual = np.zeros((len(weight), self.dual_coef_.shape[1]))
            where = np.searchsorted(self._kept, self.support_)
            residual[where] = self.dual_coef_ / weight[where, None]
        whole = np.empty((self._n_rows, residual.shape[1]))
        whole[self._kept] = self._without_each(residual)
        rows, targets = self._idle
        if len(rows):
            without = np.setdiff1d(np.arange(self._n_rows), self._kept, assume_unique=True)
            whole[without] = targets - self._evaluate(rows)
        return whole

    def _without_each(self, residual: FloatArray) -> FloatArray:
        """Leave-one-out residuals from those of the fit, by its factor if that is still there."""
        factored = _factors.pop(self.feature_map_, None)
        if factored is not None:
            return residual / complement_of(factored, self._train_intercept)[:, None]
        gram, features = self._train_gram, self._train
        assert features is not None
        if gram:
            if len(features) > _MOST_FACTORED:
                raise AttributeError(
                    f"loo_residuals_ needs a factor of all kernel values, for at most "
                    f"{_MOST_FACTORED} rows, got {len(features)}: give a rank, or use "
                    "cross_val_predict"
                )
            features = self.kernel_(features)
        elif not self._train_mapped:
            features = (self._train_map or self.feature_map_).transform(features)
        with threads_that_pay(0):  # tiles have threads of their own
            return leave_one_out(
                np.require(features, np.float64, ["C", "W"]),
                residual,
                self._train_weight,
                self.coupling_,
                gram=gram,
                fit_intercept=self._train_intercept,
            )

    @property
    def leave_one_out_by(self) -> str | None:
        """How rows are left out: "closed_form" for a scalar kernel and a penalty."""
        how = super().leave_one_out_by
        return how if how is None or self.radius is not None else "closed_form"

    def leave_one_out_scores(self, prepared: Prepared, alphas: FloatArray) -> FloatArray:
        """Return minus ``loo_error_`` and its standard error at each alpha, (2, m).

        All are computed from one eigendecomposition. They are NaN if a residual is undefined.
        """
        if isinstance(self.kernel, OperatorKernel):
            raise ValueError(
                "scoring='loo' needs a scalar kernel, with coupling for the outputs, got "
                f"kernel={type(self.kernel).__name__}"
            )
        if self.radius is not None:
            raise ValueError(f"scoring='loo' needs radius=None, got radius={self.radius!r}")
        if not prepared.inputs.in_memory:
            raise ValueError("scoring='loo' needs rows in memory; cv=5 leaves out folds of others")
        n, n_outputs = prepared.targets.shape
        if n == 1:
            raise ValueError("scoring='loo' needs two rows of positive weight, got n_samples = 1")
        root, inputs = self.make_coupling(n_outputs), prepared.inputs
        design, features = prepared.design(root), inputs.features
        if design.is_gram and design.gram is None:
            features = np.asarray(inputs.feature_map.kernel_(inputs.rows))
        with threads_that_pay(0):  # the same bits for any number of threads
            path = LeaveOneOutPath(
                features,
                prepared.targets,
                inputs.weight,
                root @ root.T,
                gram=design.is_gram,
                fit_intercept=bool(self.fit_intercept),
            )
            return path.scores(alphas)

    def _kernel_rows(self) -> KernelRowLimits:
        """As many as a matrix is factored of, and as products take some twenty seconds for."""
        if self._sparse:
            return super()._kernel_rows()
        once = self.radius is None and not self._for_searches
        by_products = isinstance(self.solver, str) and self.solver in _BY_PRODUCTS
        return KernelRowLimits(10_000, 50_000 if once and by_products else 0)

    def prepare(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Prepared:
        """Validate the data and do what does not depend on the strength; nothing is learned.

        For kernels of full rank and more than 10 000 rows, features of low rank are computed: one
        decomposition of these serves all strengths.
        """
        self._for_searches = True
        try:
            return super().prepare(X, y, sample_weight)
        finally:
            self._for_searches = False

    def __getstate__(self) -> Any:
        """State without a feature map that predictions do not need and that may be large."""
        state: Any = super().__getstate__()
        lost = state.get("_train_map") is not None
        return {**state, "_train": None, "_train_map": None} if lost else state

    def make_loss(self, n_targets: int) -> Loss:
        return Squared()

    def make_coupling(self, n_targets: int) -> FloatArray:
        return output_coupling(self.coupling, n_targets)

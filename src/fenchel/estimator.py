"""Base classes of the estimators: validation, features, fitting and prediction."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from html import escape
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from fenchel._bases import BaseEstimator, RegressorMixin
from fenchel._typing import AnyArray, ArrayLike, FloatArray, IntArray
from fenchel._validation import (
    CheckedParameters,
    check_magnitude,
    check_targets,
    check_weights,
    declared,
    rows_of,
    shown,
    targets_of,
)
from fenchel.certificate import Callback, Certificate, Progress, Status
from fenchel.design import Design, RowBlocks
from fenchel.features import (
    FEATURES_CHOICE,
    NO_KERNEL_ROWS,
    FeatureMap,
    KernelRowLimits,
    check_one_kernel,
    fit_feature_map,
    warn_of_truncation,
)
from fenchel.features.base import check_square
from fenchel.kernels import OperatorKernel, Precomputed, SparsePoints, as_kernel, resolve, settled
from fenchel.searchable import Searchable
from fenchel.solvers import SOLVER_CHOICE, takes_gram
from fenchel.solvers.loop import Watch

_OVERFLOWS = (
    "X, y, sample_weight and alpha must be of sizes that floating-point numbers can hold, as "
    "columns scaled to a spread of about 1 are: {}"
)
_PARTS = ("coef_", "intercept_", "weights_", "dual_coef_", "offset_", "center_")
_FAR = 100.0  # times 1e-11, what features solved for from kernel values are known to

_Method = TypeVar("_Method", bound=Callable[..., Any])


def all_or_nothing(fit: _Method) -> _Method:
    """Decorate a method that fits, so that the estimator changes only if the fit succeeds.

    The method runs on a copy, whose attributes replace those of the estimator in one step at the
    end. If anything is raised, nothing needs to be undone. Arrays of the previous fit must not be
    changed in place. Overflows give no warning on the way: an error is raised at the end if the
    model is not finite.
    """

    @wraps(fit)
    def fitted(estimator: Any, *data: Any, **options: Any) -> Any:
        twin = object.__new__(type(estimator))
        vars(twin).update(vars(estimator))
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                fit(twin, *data, **options)
        except (np.linalg.LinAlgError, ArithmeticError) as error:
            raise ValueError(_OVERFLOWS.format(f"a step has no result ({error})")) from error
        estimator.__dict__ = vars(twin)
        return estimator

    return cast(_Method, fitted)


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows of positive weight, with their features.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelRidge
    >>> X, weight = np.linspace(0.0, 1.0, 5)[:, None], np.array([1.0, 0.0, 1.0, 1.0, 1.0])
    >>> KernelRidge(learn=False).prepare(X, X[:, 0], weight).inputs.kept
    array([0, 2, 3, 4])
    """

    kept: IntArray
    """Their indices among all rows."""
    n_rows: int
    """Number of all rows."""
    weight: FloatArray
    rows: FloatArray
    """Rows from which the feature map was computed."""
    feature_map: FeatureMap
    features: FloatArray

    @property
    def in_memory(self) -> bool:
        """Whether all rows and their features are in memory."""
        return True

    def only(self, rows: IntArray) -> KeptRows:
        """Some of these rows, with the feature map of all."""
        feature_map, features = self.feature_map.restricted(self.features, rows)
        kept, weight = self.kept[rows], self.weight[rows]
        return KeptRows(kept, self.n_rows, weight, self.rows[rows], feature_map, features)

    def of_all(self, values: FloatArray) -> FloatArray:
        """Values (n, ...) of all rows from those of these, zero for the others."""
        whole = np.zeros((self.n_rows, *values.shape[1:]))
        whole[self.kept] = values
        return whole

    def as_new(self) -> FloatArray:
        """Features computed as those of new rows are; the same up to rounding errors."""
        return np.asarray(self.feature_map.transform(self.rows))

    def far_weights(self, weights: FloatArray, targets: FloatArray) -> bool:
        """Whether rounding errors of features may matter in predictions with these weights."""
        reach = self._largest * float(np.abs(weights).max())
        return reach > _FAR * float(np.abs(targets).max())

    @cached_property
    def _largest(self) -> float:
        """The largest absolute value of all features."""
        blocks = RowBlocks(len(self.features), int(np.prod(self.features.shape[1:])))
        return max(blocks.map(lambda rows: float(np.abs(self.features[rows]).max())))

    @cached_property
    def residual(self) -> FloatArray:
        """Diagonal of the kernel less that of the features, see :meth:`FeatureMap.residual`."""
        return self.feature_map.residual(self.rows, self.features)

    def centre(self) -> FloatArray | None:
        """What is subtracted from the features if there is an unpenalized constant."""
        return self.feature_map.centre(self.features, self.weight)

    def design(self, features: FloatArray, coupling: FloatArray) -> Design:
        """Return the design of these features for the solvers."""
        return self.feature_map.design(features, coupling)

    def forms(self, push: FloatArray) -> FloatArray:
        """Quadratic forms pushᵀ K push of the kernel itself."""
        return self.feature_map.forms(self.rows, push)

    def wider(self, share: float) -> KeptRows | None:
        """The same rows with features that leave out ``share`` as much, if possible."""
        found = self.feature_map.wider(self.rows, self.features, share)
        return None if found is None else replace(self, feature_map=found[0], features=found[1])


class CertifiedEstimator(CheckedParameters, BaseEstimator):
    """Base class of all estimators: validation of data, and the result of the solver.

    Examples
    --------
    >>> from fenchel import Ridge
    >>> from fenchel.estimator import CertifiedEstimator
    >>> model = Ridge(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> isinstance(model, CertifiedEstimator), model.status_.converged
    (True, True)
    """

    _multi_output: ClassVar[bool] = False
    """Whether y may have several columns."""
    _takes_sparse: ClassVar[bool] = False
    """Whether X may be a sparse array of scipy."""

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has ended; parameter checks and ``prepare`` set attributes too."""
        return "status_" in vars(self)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Validate rows; they stay sparse if the class takes sparse rows."""
        return rows_of(self, X, reset=reset, sparse=self._takes_sparse and issparse(X))

    def _validated(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, FloatArray]:
        """Validate rows and targets, (n, t)."""
        X = self._rows(X, reset=True)
        y = targets_of(type(self).__name__, y, X.shape[0], self._multi_output)
        check_targets(y)
        self._flat = y.ndim == 1
        return X, y[:, None] if y.ndim == 1 else y

    def _new_rows(self, X: Any) -> Any:
        """Validate new rows."""
        if "status_" not in vars(self):  # which says it a tenth of a millisecond sooner
            check_is_fitted(self)
        return self._rows(X, reset=False)

    def _keep_end(self, solution: Any, stacklevel: int = 5) -> None:
        """Set the attributes of the solver's result, and warn if it stopped early.

        Raises an error if the model is not finite.
        """
        parts = {name: getattr(self, name) for name in _PARTS if name in vars(self)}
        parts["the objective"] = solution.certificate.primal
        for name, values in parts.items():
            if not np.isfinite(values).all():
                raise ValueError(_OVERFLOWS.format(f"{name} is not finite"))
        self.certificate_, self.status_ = solution.certificate, solution.status
        self.n_iter_, self.history_ = solution.n_iter, solution.history
        if not solution.status.converged:
            warnings.warn(solution.status.message, ConvergenceWarning, stacklevel=stacklevel)

    def _callback(self) -> Callback | None:
        """Callback of the solver, for ``verbose``, ``callback`` and ``max_time``, from now on."""
        name, verbose = type(self).__name__, bool(getattr(self, "verbose", 0))
        callback, max_time = getattr(self, "callback", None), getattr(self, "max_time", None)
        if not verbose and callback is None and max_time is None:
            return None
        return Watch(name, verbose, callback, max_time)

    def _html_repr(self) -> str:
        """HTML for notebooks: the results of a fit, if any, before scikit-learn's diagram."""
        facts = [
            f"<tr><th>{name}</th><td>{escape(fact)}</td></tr>" for name, fact in self._facts()
        ]
        table = f"<table>{''.join(facts)}</table>" if facts else ""
        return f"{table}{super()._html_repr()}"

    def _facts(self) -> list[tuple[str, str]]:
        """Kernel, certificate and scores of a fit in words."""
        known = vars(self)
        if "status_" not in known:
            return []
        facts = [("Kernel", shown(known["kernel_"]))] if "kernel_" in known else []
        if "alpha_" in known:
            facts.append(("Strength", f"alpha = {known['alpha_']:.3g}"))
        end = "" if self.status_.converged else f"; {self.status_.message}"
        gap = self.certificate_.relative_gap
        facts.append(("Certificate", f"relative gap at most {gap:.1e} from the optimum{end}"))
        if (learned := known.get("learned_")) is not None:
            loss = f"held-out loss {learned.said}"
            facts.append(("Score", f"{loss}, while parameters were learned"))
        return facts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        tags.input_tags.sparse = self._takes_sparse
        return tags


def _check_kernel(kernel: Any, name: str) -> None:
    if not isinstance(kernel, OperatorKernel):
        as_kernel(kernel, name)


class CheckedRegressor(RegressorMixin):
    """Regressor mixin that validates data in ``score`` as ``fit`` does.

    Examples
    --------
    >>> from fenchel import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> round(model.score([[0.0], [2.0]], [0.0, 2.0]), 6)
    1.0
    """

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the share of variance explained, averaged over outputs; at most 1."""
        model: Any = self
        prediction = model.predict(X)
        y = targets_of(type(self).__name__, y, len(prediction), prediction.ndim > 1)
        if sample_weight is not None:
            sample_weight = check_weights(prediction, sample_weight)
        return float(r2_score(y, prediction, sample_weight=sample_weight))


class KernelEstimator(Searchable, CertifiedEstimator):
    """Base class of the kernel estimators.

    A subclass has at least the parameters below. It defines :meth:`prepare`, which validates the
    data and does what depends on neither the strength nor the loss, and :meth:`fit_prepared`,
    which makes the problem, solves it, and keeps what predictions need. Both are public:
    cross-validation prepares once and fits many times, each fit starting from the previous one.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelRidge
    >>> X = np.linspace(0.0, 1.0, 20)[:, None]
    >>> model = KernelRidge(alpha=1e-3, learn=False)
    >>> prepared = model.prepare(X, np.sin(6.0 * X[:, 0]))
    >>> start = model.fit_prepared(prepared)
    >>> model.set_params(alpha=1e-4).fit_prepared(prepared, start).dual.shape
    (20, 1)
    """

    feature_parameters = (*Searchable.feature_parameters, "solver")
    constraints = declared(kernel=_check_kernel, features=FEATURES_CHOICE, solver=SOLVER_CHOICE)

    alpha: Any
    kernel: Any
    features: Any
    rank: int | None
    solver: Any
    tol: float
    max_iter: int
    random_state: Any
    verbose: int
    callback: Callback | None
    max_time: float | None
    kernel_: Any
    certified_kernel_: str
    """The kernel that the certificate refers to: as "given", or that of the "features"."""
    _learned: Any = None
    """Learned kernel and alpha, while a fit runs."""
    certificate_: Certificate
    status_: Status
    n_iter_: int
    history_: list[Progress]

    def check_parameters(self) -> None:
        """Raise an error for parameters that are not allowed."""
        super().check_parameters()
        check_one_kernel(self.features, self.kernel, self.rank)

    def with_kernel_of_fit(self, **parameters: Any) -> Self:
        """Return an unfitted copy with the kernel of the last fit, and with other parameters."""
        if getattr(self.features, "kernel", None) is not None:
            parameters["features"] = clone(self.features).set_params(kernel=None)
        return self.with_parameters(kernel=settled(self.kernel_), **parameters)

    @property
    def _tolerance(self) -> float:
        """Tolerance of the fit; that of the solver if a solver with its own is given."""
        return float(getattr(self.solver, "tol", self.tol))

    @property
    def given_gram(self) -> bool:
        """Whether X holds kernel values."""
        operator = isinstance(self.kernel, OperatorKernel)
        return not operator and isinstance(as_kernel(self.kernel), Precomputed)

    def _mapped(self, X: FloatArray, sample_weight: AnyArray | None) -> KeptRows:
        """Return the rows of positive weight, with the kernel on them and their features."""
        if self.given_gram:
            check_square(X)
        check_magnitude(X.matrix if isinstance(X, SparsePoints) else X, "X")
        weight = check_weights(X, sample_weight)
        kept, rows = np.arange(len(weight)), X
        if not weight.all():
            kept = np.flatnonzero(weight)
            rows = X[np.ix_(kept, kept)] if self.given_gram else X[kept]
            weight = weight[kept]
        feature_map, features = self._feature_map(rows, weight)
        return KeptRows(kept, len(X), weight, rows, feature_map, features)

    def _resolved_kernel(self, rows: FloatArray, weight: FloatArray) -> Any:
        """The kernel with numbers in place of rules, as learned if it was learned."""
        if self._learned is not None:
            return self._learned.kernel
        if isinstance(self.kernel, OperatorKernel):
            return self.kernel.resolved(rows, weight, self.random_state)
        return resolve(as_kernel(self.kernel), rows, weight, self.random_state)

    def _feature_map(self, rows: FloatArray, weight: FloatArray) -> tuple[FeatureMap, FloatArray]:
        """Return the fitted feature map and the features of the rows."""
        kernel = self._resolved_kernel(rows, weight)
        limits = self._kernel_rows() if takes_gram(self.solver) else NO_KERNEL_ROWS
        options = self.features, kernel, self.rank, self.random_state
        return fit_feature_map(*options, rows, limits, getattr(self, "max_time", None))

    def _kernel_rows(self) -> KernelRowLimits:
        """Maximum number of rows for which a kernel of full rank is used by its values."""
        return KernelRowLimits(10_000, 0)

    def _keep_map(self, kept: KeptRows, *, named: bool = False, stacklevel: int = 6) -> None:
        """Set the attributes of kernel and features, and warn if much of the kernel is left out.

        With ``named``, certificates refer to the kernel as given, if possible, and include what
        is left out.
        """
        self.feature_map_ = copy.copy(kept.feature_map)
        self.kernel_ = self.feature_map_.kernel_
        self.kernel_error_ = float(self.feature_map_.kernel_error_)
        self._kept = kept.kept
        self.certified_kernel_ = "given" if named and kept.feature_map.in_space else "features"
        if self.certified_kernel_ == "features" and self._warns_of_truncation(kept.feature_map):
            warn_of_truncation(self.feature_map_, stacklevel)

    def _warns_of_truncation(self, feature_map: FeatureMap) -> bool:
        """Whether to warn of features that leave out much of the kernel."""
        return True

    def _new_features(self, X: FloatArray) -> FloatArray:
        """Features of validated rows."""
        if isinstance(self.kernel_, Precomputed):
            X = X[:, self._kept]
        return np.asarray(self.feature_map_.transform(X))

    def _combination(self, X: FloatArray, weights: FloatArray) -> FloatArray:
        """Features of validated rows times weights, without an array of all features."""
        if isinstance(self.kernel_, Precomputed):
            X = X[:, self._kept]
        return self.feature_map_.combination(X, weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


__all__ = ["CertifiedEstimator", "CheckedRegressor", "KeptRows", "KernelEstimator"]

__dir__ = __all__.copy

"""The shell of the estimators: validate, prepare, problem, solve, keep, predict."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, ArrayLike, FloatArray, IntArray
from fenchel._validation import check_magnitude, check_number, check_weights
from fenchel.certificate import Callback, Certificate, Progress, Status
from fenchel.features import FeatureMap, fit_feature_map, warn_of_truncation
from fenchel.kernels import OperatorKernel, Precomputed, as_kernel, resolve
from fenchel.solvers import takes_gram
from fenchel.solvers.base import printer

_STRONGEST, _WEAKEST = 10.0, 1e-6  # in units of mean loss / spread² * mean diagonal


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Undo all changes of attributes on an error; arrays must not be changed in place."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class KeptRows(NamedTuple):
    """Rows of positive weight as a feature map sees them."""

    kept: IntArray
    """Their numbers among all rows."""
    n_rows: int
    """Number of all rows."""
    weight: FloatArray
    rows: FloatArray
    """What the feature map was made of."""
    feature_map: FeatureMap
    features: FloatArray

    def only(self, rows: IntArray) -> KeptRows:
        """Some of these rows, with the feature map of all."""
        feature_map, features = self.feature_map.restricted(self.features, rows)
        kept, weight = self.kept[rows], self.weight[rows]
        return KeptRows(kept, self.n_rows, weight, self.rows[rows], feature_map, features)


class Searchable:
    """What :class:`fenchel.model_selection.PathSearchCV` asks an estimator.

    Beside these, an estimator has ``check_parameters``, ``prepare`` and ``fit_prepared``, see
    :class:`KernelEstimator`.
    """

    feature_parameters: ClassVar[tuple[str, ...]] = ("kernel", "features", "rank", "random_state")
    """Parameters that ``prepare`` reads: for each of their settings it is called anew."""
    path_parameters: ClassVar[dict[str, str]] = {"alpha": "falling"}
    """Parameters along which fits start from one another, and in which order of their values.

    With a second one, what ``fit_prepared`` returns must be an array: it is extrapolated.
    """
    candidate_tol: ClassVar[float] = 0.0
    """Tolerance that is enough to compare candidates, where ``tol`` is left at its default."""
    default_selection: ClassVar[str] = "min"
    """What ``selection="auto"`` stands for."""
    kernel: Any

    def default_grid(self) -> dict[str, Any]:
        """Return the candidates where none are given."""
        raise NotImplementedError

    def path_grid(self, prepared: Any, name: str, n: int) -> FloatArray:
        """Return n values of a path parameter, in its order and in the units of the problem."""
        raise NotImplementedError

    def search_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return what is maximized where no scoring is given: the ``score``."""
        score: Any = getattr(self, "score")  # noqa: B009  (of scikit-learn's mixins)
        return float(score(X, y, sample_weight=sample_weight))

    @property
    def leave_one_out_by(self) -> str | None:
        """How rows are left out of fits on prepared rows: "closed_form", "refits", or not."""
        return None

    def leave_one_out_scores(self, prepared: Any, alphas: FloatArray) -> FloatArray:
        """Return minus the leave-one-out error and its standard error at each alpha, (2, m)."""
        raise ValueError(
            "scoring='loo' needs an estimator with leave-one-out errors in closed form, such as "
            f"KernelRidge, got {type(self).__name__}"
        )

    def with_parameters(self, **parameters: Any) -> Self:
        """Return an unfitted copy; ``length_scale`` is that of the kernel."""
        if "length_scale" in parameters:
            given = parameters.get("kernel", self.kernel)
            kernel = given if isinstance(given, OperatorKernel) else as_kernel(given)
            parameters["kernel"] = _scaled(kernel, parameters.pop("length_scale"))
        copied: Any = clone(self)
        return copied.set_params(**parameters)


def _scaled(kernel: Any, scale: Any) -> Any:
    """A copy of a kernel with another length scale, its own or that of the kernel within."""
    if hasattr(kernel, "length_scale"):
        return clone(kernel).set_params(length_scale=scale)
    if hasattr(kernel, "kernel"):
        return clone(kernel).set_params(kernel=_scaled(kernel.kernel, scale))
    raise ValueError(f"length_scale is for kernels that have one, got {kernel!r}")


def strengths(n: int) -> FloatArray:
    """Strengths on a geometric grid, largest first, where all units are one.

    From nearly constant models to nearly interpolating ones.
    """
    return np.geomspace(_STRONGEST, _WEAKEST, n)


class CertifiedEstimator(BaseEstimator):
    """What all estimators share: validated data, and how the fit ended."""

    _multi_output: ClassVar[bool] = False
    """Whether y may have several columns."""

    def _validated(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Rows and targets (n, t) as arrays."""
        options = {"multi_output": self._multi_output, "y_numeric": True, "order": "C"}
        X, y = validate_data(self, X, y, dtype=np.float64, **options)
        y = np.asarray(y, dtype=np.float64, order="C")
        check_magnitude(y, "y")
        self._flat = y.ndim == 1
        return X, y[:, None] if y.ndim == 1 else y

    def _new_rows(self, X: Any) -> FloatArray:
        """New rows, validated."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=False))

    def _keep_end(self, solution: Any, stacklevel: int = 4) -> None:
        """Set the attributes of the solver's end, and warn where it was early."""
        self.certificate_, self.status_ = solution.certificate, solution.status
        self.n_iter_, self.history_ = solution.n_iter, solution.history
        if not solution.status.converged:
            warnings.warn(solution.status.message, ConvergenceWarning, stacklevel=stacklevel)

    def _callback(self) -> Callback | None:
        return printer(type(self).__name__) if getattr(self, "verbose", 0) else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        return tags


class KernelEstimator(Searchable, CertifiedEstimator):
    """Base class of the estimators with a kernel; subclasses hold no mathematics.

    A subclass stores at least the parameters below, and defines :meth:`prepare`, which validates
    and does what depends neither on strength nor on loss, and :meth:`fit_prepared`, which makes
    the problem, solves it, and keeps what predictions need. Both are public: cross-validation
    prepares once and fits many times, each fit starting from what the one before returned.
    """

    feature_parameters = (*Searchable.feature_parameters, "solver")

    alpha: float
    kernel: Any
    features: Any
    rank: int | None
    solver: Any
    tol: float
    max_iter: int
    random_state: Any
    verbose: int
    kernel_: Any
    certificate_: Certificate
    status_: Status
    n_iter_: int
    history_: list[Progress]

    def check_parameters(self) -> None:
        """Raise a sentence for parameters that are not allowed."""
        check_number(self, "alpha", low=0.0, open_low=True)
        check_number(self, "tol", low=0.0, open_low=True)
        check_number(self, "max_iter", low=1, integer=True)
        if self.rank is not None:
            check_number(self, "rank", low=1, integer=True)

    def _given_gram(self) -> bool:
        """Whether X holds kernel values."""
        operator = isinstance(self.kernel, OperatorKernel)
        return not operator and isinstance(as_kernel(self.kernel), Precomputed)

    def _check_square(self, X: FloatArray) -> None:
        if self._given_gram() and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"with kernel='precomputed', X must be a square Gram matrix, got shape {X.shape}"
            )

    def _mapped(self, X: FloatArray, sample_weight: AnyArray | None) -> KeptRows:
        """Rows of positive weight, the kernel on them, and their features."""
        self._check_square(X)
        weight = check_weights(X, sample_weight)
        kept = np.flatnonzero(weight)
        rows = X[np.ix_(kept, kept)] if self._given_gram() else X[kept]
        weight = weight[kept]
        with threads_that_pay(len(rows)):
            feature_map, features = self._feature_map(rows, weight)
        return KeptRows(kept, len(X), weight, rows, feature_map, features)

    def _resolved_kernel(self, rows: FloatArray, weight: FloatArray) -> Any:
        """The kernel with numbers in the place of rules."""
        if isinstance(self.kernel, OperatorKernel):
            return self.kernel.resolved(rows, weight, self.random_state)
        return resolve(as_kernel(self.kernel), rows, weight, self.random_state)

    def _feature_map(self, rows: FloatArray, weight: FloatArray) -> tuple[FeatureMap, FloatArray]:
        """The fitted map and the features of the rows."""
        kernel = self._resolved_kernel(rows, weight)
        return fit_feature_map(
            self.features, kernel, self.rank, self.random_state, rows, takes_gram(self.solver)
        )

    def _keep_map(self, kept: KeptRows, stacklevel: int = 5) -> None:
        """Set the attributes of kernel and features, and warn where much is left out."""
        self.feature_map_ = copy.copy(kept.feature_map)
        self.kernel_ = self.feature_map_.kernel_
        self.kernel_error_ = float(self.feature_map_.kernel_error_)
        self._kept = kept.kept
        warn_of_truncation(self.feature_map_, stacklevel)

    def _new_features(self, X: FloatArray) -> FloatArray:
        """Features of rows that are validated."""
        if isinstance(self.kernel_, Precomputed):
            X = X[:, self._kept]
        return np.asarray(self.feature_map_.transform(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


__all__ = [
    "CertifiedEstimator",
    "KeptRows",
    "KernelEstimator",
    "Searchable",
    "strengths",
]

"""What models that are linear in the columns of X share: checks, centring, prediction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import qr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel._threads import threads_that_pay
from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel._validation import check_magnitude, check_weights
from fenchel.certificate import Certificate, Status


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of positive weight, with the weighted means taken off if there is an intercept.

    For the squared loss the best intercept is then known for any coefficients:
    ``target_mean - center @ coef``.
    """

    X: FloatArray
    """(m, d), in the order of columns."""
    y: FloatArray
    """(m, p)."""
    weight: FloatArray
    center: FloatArray
    """(d,), zero without intercept."""
    target_mean: FloatArray
    """(p,), zero without intercept."""

    @property
    def root(self) -> FloatArray:
        """Square roots of the weights over their mean, (m, 1): 1 where all are equal."""
        return np.sqrt(self.weight / self.weight.mean())[:, None]

    def weighted(self) -> tuple[FloatArray, FloatArray]:
        """X and y of the problem without weights: ½‖y - X w‖²/m is the weighted mean loss."""
        if np.ptp(self.weight) == 0.0:
            return self.X, self.y
        return np.asfortranarray(self.root * self.X), self.root * self.y


class Fit(NamedTuple):
    """What an algorithm hands back."""

    coef: FloatArray
    """(d, p)."""
    certificate: Certificate
    status: Status
    n_iter: int
    offset: FloatArray | float = 0.0
    """(p,), what the offset is off the best one for centred rows."""


class LinearModel(RegressorMixin, BaseEstimator):
    """Base class: subclasses check their parameters and solve for centred rows."""

    fit_intercept: bool

    def check_parameters(self) -> None:
        """Raise a sentence for parameters that are not allowed."""

    def _solve(self, rows: Rows) -> Fit:
        """Coefficients for centred rows, with their certificate."""
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights: an integer weight is the same as repeating the row.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For parameters or data that are not allowed; the sentence names which.
        """
        self.check_parameters()
        X, y = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, order="C"
        )
        y = np.ascontiguousarray(y, dtype=np.float64)
        rows = prepare(X, y, sample_weight, bool(self.fit_intercept))
        with threads_that_pay(min(rows.X.shape)):
            found = self._solve(rows)
        offset = rows.target_mean - rows.center @ found.coef + found.offset
        single = y.ndim == 1
        self.coef_ = found.coef[:, 0].copy() if single else np.ascontiguousarray(found.coef.T)
        self.intercept_ = float(offset[0]) if single else offset
        self.certificate_ = found.certificate
        self.status_ = found.status
        self.n_iter_ = found.n_iter
        if not found.status.converged:
            warnings.warn(found.status.message, ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As y was given.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False, order="C")
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def prepare(
    X: FloatArray, y: FloatArray, sample_weight: AnyArray | None, fit_intercept: bool
) -> Rows:
    """Rows of positive weight, centred if there is an intercept."""
    for name, values in (("X", X), ("y", y)):
        check_magnitude(values, name)
    weight = check_weights(X, sample_weight)
    targets = y[:, None] if y.ndim == 1 else y
    if not np.all(weight > 0.0):
        kept = weight > 0.0
        X, targets, weight = X[kept], targets[kept], weight[kept]
    if not fit_intercept:
        zero, none = np.zeros(X.shape[1]), np.zeros(targets.shape[1])
        return Rows(np.asfortranarray(X), np.asfortranarray(targets), weight, zero, none)
    centred, center = _centred(X, weight)
    target, target_mean = _centred(targets, weight)
    return Rows(centred, target, weight, center, target_mean)


def _centred(values: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns without their weighted means; exactly zero where constant up to rounding."""
    mean = weight @ values / weight.sum()
    centred = np.empty(values.shape, order="F")
    np.subtract(values, mean, out=centred)
    highest, lowest = centred.max(axis=0), centred.min(axis=0)
    constant = np.maximum(highest, -lowest) <= 64 * np.finfo(float).eps * np.abs(mean)
    centred[:, constant] = 0.0
    return centred, mean


def fewer_rows(design: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Many rows turned into d + p, orthogonally: all residuals keep their lengths."""
    cut, width = design.shape[1], design.shape[1] + target.shape[1]
    if len(design) <= 2 * width:
        return design, target
    both = np.empty((len(design), width), order="F")
    both[:, :cut], both[:, cut:] = design, target
    (factor,) = qr(both, mode="r", overwrite_a=True, check_finite=False)
    return np.ascontiguousarray(factor[:width, :cut]), factor[:width, cut:].copy()


__all__ = ["Fit", "LinearModel", "Rows", "fewer_rows", "prepare"]

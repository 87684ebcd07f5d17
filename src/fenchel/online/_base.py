"""Base class of online regressors: validation, order of rows, and restoring after errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel._bases import BaseEstimator
from fenchel._parameters import parameters
from fenchel._typing import ArrayLike, FloatArray, IntArray
from fenchel._validation import (
    BOOLEAN,
    COUNT,
    NONE,
    POSITIVE,
    CheckedParameters,
    OneOf,
    check_magnitude,
    check_weights,
    declared,
    random_of,
    rows_of,
    targets_of,
)
from fenchel.estimator import CheckedRegressor, all_or_nothing
from fenchel.online._pace import SCHEDULES, make_pace


@parameters
class OnlineRegressor(CheckedParameters, CheckedRegressor, BaseEstimator):
    """Base class of online regressors; subclasses initialize their state and learn rows."""

    constraints = declared(
        step=NONE | POSITIVE,
        schedule=OneOf(SCHEDULES),
        delay=POSITIVE,
        average=BOOLEAN | COUNT,
        n_epochs=COUNT,
        shuffle=BOOLEAN,
    )

    _: KW_ONLY
    step: float | None = None
    schedule: str = "constant"
    delay: float = 1.0
    average: bool | int = False
    fit_intercept: bool = True
    n_epochs: int = 10
    shuffle: bool = True
    random_state: Any = None

    def _begin(self, X: FloatArray, weight: FloatArray) -> None:
        """Set the state of a learner that has seen no row; the first rows may be looked at."""
        raise NotImplementedError

    def _learn(
        self, X: FloatArray, y: FloatArray, weight: FloatArray, orders: Iterable[IntArray]
    ) -> None:
        """Learn all rows in each of the orders, or raise if the step is too long."""
        raise NotImplementedError

    def _predicted(self, X: FloatArray) -> FloatArray:
        raise NotImplementedError

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the model from scratch, in ``n_epochs`` passes over the rows.

        There is no ``sample_weight``: in scikit-learn a weight in ``fit`` stands for repeated rows
        in any order, but here a weight makes a longer step, see ``partial_fit``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Target values.

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or data, or a diverging step. The estimator is then unchanged.
        """
        self.check_parameters()
        X, y = self._validated(X, y, reset=True)
        weight = np.ones(len(X))
        self._begin(X, weight)
        self._learn(X, y, weight, self._orders(len(X)))
        return self

    @all_or_nothing
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the model with more rows, in one pass in their order.

        The size of the blocks does not affect the model; blocks may be single rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Target values.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, see the class for their effect. Rows of weight zero are skipped.

        Raises
        ------
        ValueError, TypeError
            For invalid parameters or data, or a diverging step. The model is then the one before
            the call.
        """
        self.check_parameters()
        first = not self.__sklearn_is_fitted__()
        X, y = self._validated(X, y, reset=first)
        weight = check_weights(X, sample_weight, all_zero=True)
        if first:
            self._begin(X, weight)
        self._learn(X, y, weight, [np.flatnonzero(weight)])
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            X @ coef_ + intercept_, or k(X, support_vectors_) @ dual_coef_ + intercept_ with a
            kernel.
        """
        check_is_fitted(self)
        return self._predicted(rows_of(self, X, reset=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "t_")

    def _validated(self, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[FloatArray, FloatArray]:
        X = rows_of(self, X, reset=reset)
        y = targets_of(type(self).__name__, y, len(X))
        for name, values in (("X", X), ("y", y)):
            check_magnitude(values, name)
        return X, y

    def _orders(self, n_rows: int) -> Iterator[IntArray]:
        """Rows of each epoch."""
        random = random_of(self.random_state)
        for _ in range(int(self.n_epochs)):
            yield random.permutation(n_rows) if self.shuffle else np.arange(n_rows)

    def _pace(self) -> FloatArray:
        average = bool(self.average) if isinstance(self.average, np.bool_) else self.average
        return make_pace(self.step, self.schedule, self.delay, average)

    def _too_long(self, curvature: str, largest: float, row: int) -> ValueError:
        """What to say where the step is too long for these rows."""
        allowed = 1.0 / largest if largest > 0.0 else math.inf
        if self.step is None:
            return ValueError(
                f"step=None overflows at row {row}: scale X and y, or start from a new model"
            )
        return ValueError(
            f"step={self.step!r} diverges at row {row}: choose it below {allowed:.2g} (1 over "
            f"{curvature}, the largest so far), or step=None, which adapts to the rows"
        )

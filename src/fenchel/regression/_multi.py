"""What regressors of one or several targets share."""

from __future__ import annotations

from typing import Any, Self

from fenchel._typing import ArrayLike, FloatArray
from fenchel.regression._base import KernelRegressor


class TargetRegressor(KernelRegressor):
    """One output for each column of y."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; the (n_samples, n_samples) Gram matrix if ``kernel="precomputed"``.
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
        return self._fit(X, y, sample_weight)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; kernel values against the training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As y was given.
        """
        prediction = self._decision(X)
        return prediction[:, 0] if self._flat else prediction

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

"""scikit-learn's base classes, with types for those who check them: it ships none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn import base

from fenchel._typing import AnyArray

FEATURES = ("n_features_in_", "feature_names_in_")
"""Attributes that a fit sets from its rows."""

if TYPE_CHECKING:

    class BaseEstimator:
        """What has parameters."""

        n_features_in_: int
        feature_names_in_: AnyArray

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def _html_repr(self) -> str: ...
        def _repr_html_(self) -> str: ...
        def __sklearn_tags__(self) -> Any: ...
        def __sklearn_clone__(self) -> Any: ...
        def __getstate__(self) -> Any: ...

    class RegressorMixin:
        """What predicts numbers."""

    class TransformerMixin:
        """What maps rows."""

        def fit_transform(self, X: Any, y: Any = None) -> Any: ...
        def set_output(self, *, transform: Any = None) -> Self: ...

    class DensityMixin:
        """What has a density."""

    class MetaEstimatorMixin:
        """What is made of other estimators."""

else:
    BaseEstimator, RegressorMixin = base.BaseEstimator, base.RegressorMixin
    TransformerMixin, DensityMixin = base.TransformerMixin, base.DensityMixin
    MetaEstimatorMixin = base.MetaEstimatorMixin


def take_features(estimator: Any, inner: Any) -> None:
    """Set number and names of the features to those of a fitted model; none if it has none."""
    for name in FEATURES:
        estimator.__dict__.pop(name, None)
        if hasattr(inner, name):
            setattr(estimator, name, getattr(inner, name))

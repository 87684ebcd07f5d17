"""Estimators of several quantiles, made of estimators of one or more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fenchel._bases import BaseEstimator, RegressorMixin, take_features
from fenchel._typing import AnyArray, FloatArray
from fenchel.model_selection._folds import takes_groups

_SEVERAL = ("levels", "default_quantiles")  # parameters that hold all levels of a model
# The parameter that holds the only level, by the name of the loss; some are not in get_params.
_BY_OBJECTIVE = {"quantile": "alpha", "reg:quantileerror": "quantile_alpha"}


class LevelModels(RegressorMixin, BaseEstimator):
    """One model for each quantile, from the lowest to the highest; predictions are columns.

    ``levels`` are those of the models, if known.
    """

    def __init__(self, estimators: Sequence[Any], levels: Sequence[float] | None = None) -> None:
        self.estimators = estimators
        self.levels = levels

    @classmethod
    def of_fitted(cls, estimators: Sequence[Any]) -> Self:
        """Make an instance of fitted models."""
        made = cls(estimators)
        made.estimators_ = list(estimators)
        return made

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: AnyArray | None = None,
        groups: AnyArray | None = None,
    ) -> Self:
        """Fit each model to the same rows; those that take groups are given them."""
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        for estimator in self.estimators if options else ():
            if not has_fit_parameter(estimator, "sample_weight"):
                raise TypeError(
                    "estimator must take sample_weight in fit for sample_weight to be given, got "
                    f"{type(estimator).__name__}"
                )
        self.estimators_ = []
        for each in self.estimators:
            own = {"groups": groups} if groups is not None and takes_groups(each) else {}
            self.estimators_.append(clone(each).fit(X, y, **options, **own))
        take_features(self, self.estimators_[0])
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict with each model, (n_samples, n_models)."""
        check_is_fitted(self)
        return np.column_stack([each.predict(X) for each in self.estimators_])

    def __sklearn_is_fitted__(self) -> bool:
        try:
            for each in getattr(self, "estimators_", None) or self.estimators:
                check_is_fitted(each)
        except NotFittedError:
            return False
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimators[0]).input_tags
        return tags


def at_levels(estimator: Any, levels: list[float]) -> Any:
    """Return an unfitted copy that predicts these quantiles, if its parameters can say so."""
    if (name := _outermost(_of_several(estimator))) is not None:
        return clone(estimator).set_params(**{name: levels})
    if (name := _outermost(_of_one(estimator))) is not None:
        each = [clone(estimator).set_params(**{name: level}) for level in levels]
        return LevelModels(each, levels)
    return clone(estimator)


def levels_of(estimator: Any) -> FloatArray | None:
    """The levels that an estimator predicts, or None if its parameters do not say."""
    given = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    name = _outermost(_of_several(given))
    levels = None if name is None else given.get_params()[name]
    return None if levels is None else np.atleast_1d(np.asarray(levels, dtype=np.float64))


def _outermost(names: list[str]) -> str | None:
    """Name of a parameter of the estimator itself, or else of a step or a wrapped estimator."""
    return min(names, key=lambda name: name.count("__")) if names else None


def _of_several(estimator: Any) -> list[str]:
    """Parameters that hold all levels."""
    return [name for name in estimator.get_params() if name.split("__")[-1] in _SEVERAL]


def _of_one(estimator: Any) -> list[str]:
    """Parameters that hold the level of a single-level model."""
    parameters, found = estimator.get_params(), []
    for name, value in parameters.items():
        step, last = name[: -len(name.split("__")[-1])], name.split("__")[-1]
        if last == "objective" and isinstance(value, str) and value in _BY_OBJECTIVE:
            found.append(step + _BY_OBJECTIVE[value])
        elif last == "loss" and isinstance(value, str) and value == "quantile":
            # elsewhere alpha is a strength
            found.append(step + ("quantile" if f"{step}quantile" in parameters else "alpha"))
        elif last == "quantile" and f"{step}loss" not in parameters:
            found.append(name)
    return found

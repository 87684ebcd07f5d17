"""Prediction intervals of models without levels."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._threads import without_warnings
from fenchel._typing import FloatArray
from fenchel.inspection.models import final_estimator, inner_estimator, levels_of, rows_for_final

COVERAGE = 0.8  # of models that were given none


@dataclass(frozen=True)
class Intervals:
    """Prediction intervals of a fitted model.

    Attributes
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.
    coverage : float
        The share of new rows that the intervals should contain.

    Examples
    --------
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import intervals_of
    >>> from fenchel.model_selection import ConformalRegressor
    >>> X, y = load_engel(return_X_y=True)
    >>> found = intervals_of(ConformalRegressor(coverage=0.7).fit(X, y))
    >>> found.coverage, found.ends(X).shape
    (0.7, (235, 2))
    """

    estimator: Any
    coverage: float

    def ends(self, X: Any) -> FloatArray:
        """Lower and upper ends, (n, 2), for rows that ``estimator.predict`` takes.

        There is no warning for infinite ends.
        """
        model = final_estimator(self.estimator)
        rows = rows_for_final(self.estimator, X)
        with without_warnings(UserWarning):
            return np.asarray(model.predict_interval(rows, self.coverage), dtype=np.float64)


def intervals_of(estimator: Any) -> Intervals | None:
    """Intervals of a model without levels, at its own coverage, or at 0.8 if none was given.

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    Intervals or None
        None for models of levels, whose curves are the ends; for models without
        ``predict_interval(X, coverage)``; for intervals that were calibrated with weights, as
        new rows would need weights too; and if the model inside has a transformed target.

    Examples
    --------
    >>> from fenchel import SVR, HeteroscedasticRegressor
    >>> from fenchel.datasets import load_mcycle
    >>> from fenchel.inspection import intervals_of
    >>> X, y = load_mcycle(return_X_y=True)
    >>> intervals_of(HeteroscedasticRegressor().fit(X, y)).coverage
    0.8
    >>> intervals_of(SVR(learn=False).fit(X, y)) is None
    True
    """
    model = final_estimator(estimator)
    method = getattr(model, "predict_interval", None)
    if levels_of(model) is not None or method is None:
        return None
    known = "coverage" in inspect.signature(method).parameters
    if not known or getattr(model, "is_weighted_", False) or has_other_units(estimator):
        return None
    return Intervals(estimator, float(getattr(model, "coverage", COVERAGE)))


def has_other_units(estimator: Any) -> bool:
    """Whether the model inside was fitted to another target than ``estimator`` predicts.

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from fenchel import SVR
    >>> from fenchel.inspection import has_other_units
    >>> model = TransformedTargetRegressor(SVR(), func=np.log, inverse_func=np.exp)
    >>> has_other_units(model.fit([[0.0], [1.0]], [1.0, 2.0]))
    True
    """
    inner = inner_estimator(estimator)
    return inner is not None and (hasattr(estimator, "regressor_") or has_other_units(inner))

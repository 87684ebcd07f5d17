"""Feature importances for the columns of the table that a model was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.inspection.models import calibrated_estimator, certified_model, inner_estimator
from fenchel.metrics.effects import IDLE


@dataclass(frozen=True)
class Importances:
    """Variance of predictions due to each feature, as shares of the sum over all features.

    Attributes
    ----------
    names : list of str
        Names of the features; x0, x1, … if they have none.
    shares : ndarray of shape (n_features,)
        Importances that sum to 1; zeros if predictions are constant.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.inspection import Importances
    >>> found = Importances(["a", "b", "c"], np.array([0.2, 0.0, 0.8]))
    >>> found.largest(2), found.idle
    ([('c', 0.8), ('a', 0.2)], ['b'])
    """

    names: list[str]
    shares: FloatArray

    def largest(self, number: int | None = None) -> list[tuple[str, float]]:
        """Names and shares of the features that are used, largest first, at most ``number``."""
        order = np.argsort(-self.shares, kind="stable")[:number]
        return [(self.names[j], float(self.shares[j])) for j in order if self.shares[j] >= IDLE]

    def ordered(self, names: list[str]) -> list[str]:
        """Sort some feature names by their shares, largest first."""
        shares = dict(zip(self.names, self.shares, strict=True))
        return sorted(names, key=lambda name: -shares.get(name, 0.0))

    @property
    def idle(self) -> list[str]:
        """Features with an importance below one thousandth."""
        pairs = zip(self.names, self.shares, strict=True)
        return [name for name, share in pairs if share < IDLE]


def importances_of(estimator: Any) -> Importances | None:
    """Importances of the columns that a fitted model was given, or None if it has none.

    Columns that an encoder in a pipeline has made of one column of a table count as that column.
    For calibrated intervals, the importances are those of the model inside.

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    Importances or None

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import SVR
    >>> from fenchel.inspection import importances_of
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> importances_of(SVR().fit(X, X[:, 1])).idle
    ['x0']
    """
    model: Any = certified_model(estimator)
    number = getattr(model, "n_features_in_", None)
    if number is None or not hasattr(model, "importances_of_groups"):
        return None
    names, sources = _names(estimator, None, {})
    if names is None or len(names) != number:
        names = [f"x{j}" for j in range(number)]
    columns: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        columns.setdefault(sources.get(name, name), []).append(j)
    try:
        shares = model.importances_of_groups(list(columns.values()))
    except AttributeError:  # of kernel values, or sparse rows
        return None
    return Importances(list(columns), shares)


def _names(
    estimator: Any, given: list[str] | None, sources: dict[str, str]
) -> tuple[list[str] | None, dict[str, str]]:
    """Names of the inputs of the model inside, and the table columns that they come from."""
    inner = inner_estimator(estimator)
    if inner is None:
        inner = calibrated_estimator(estimator)
    if inner is None:
        own = getattr(estimator, "feature_names_in_", given)
        return None if own is None else [str(name) for name in own], sources
    if hasattr(estimator, "steps"):
        for step in (step for _, step in estimator.steps[:-1] if hasattr(step, "transform")):
            given = _names_after(step, given)
            if given is not None and hasattr(step, "sources_"):
                sources = sources | dict(zip(given, step.sources_, strict=True))
    return _names(inner, given, sources)


def _names_after(step: Any, given: list[str] | None) -> list[str] | None:
    """Names of the output columns of a step, or None if it does not provide them."""
    if not hasattr(step, "get_feature_names_out"):
        return None
    known = given is not None and not hasattr(step, "feature_names_in_")
    return [str(name) for name in step.get_feature_names_out(given if known else None)]

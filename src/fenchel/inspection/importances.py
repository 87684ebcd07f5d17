"""How much of what a fitted model predicts is due to each column of its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.inspection.models import calibrated_estimator, certified_model, inner_estimator
from fenchel.metrics.effects import IDLE


@dataclass(frozen=True)
class Importances:
    """Shares of the variance of predictions that are due to features.

    Attributes
    ----------
    names : list of str
        Of the features: x0, x1, … where they have none.
    shares : ndarray of shape (n_features,)
        Summing to 1; zeros where predictions are constant.

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
        """Names and shares of the features that are read, the largest first, so many at most."""
        order = np.argsort(-self.shares, kind="stable")[:number]
        return [(self.names[j], float(self.shares[j])) for j in order if self.shares[j] >= IDLE]

    def ordered(self, names: list[str]) -> list[str]:
        """Some names of features by their shares, the largest first."""
        shares = dict(zip(self.names, self.shares, strict=True))
        return sorted(names, key=lambda name: -shares.get(name, 0.0))

    @property
    def idle(self) -> list[str]:
        """Features with less than a thousandth of the importance."""
        pairs = zip(self.names, self.shares, strict=True)
        return [name for name, share in pairs if share < IDLE]


def importances_of(estimator: Any) -> Importances | None:
    """Importances of the columns that a fitted model was given; None where it has none.

    Columns that an encoder in a pipeline has made of one column of a table count as that one.
    Calibrated intervals have those of the model inside.

    Parameters
    ----------
    estimator : estimator
        Fitted, bare or inside pipelines and searches.

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
    """Names of what the model inside is given, and the columns of the table that they are of."""
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
    """Names of the columns that a step makes, None where it does not say."""
    if not hasattr(step, "get_feature_names_out"):
        return None
    known = given is not None and not hasattr(step, "feature_names_in_")
    return [str(name) for name in step.get_feature_names_out(given if known else None)]

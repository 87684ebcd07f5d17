"""Scores of all candidates with one feature map: on one fold, or with each row left out."""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split

from fenchel._threads import without_warnings
from fenchel._typing import FloatArray, IntArray
from fenchel.model_selection._candidates import Grid


class Data(NamedTuple):
    """The arguments of a fit."""

    X: Any
    y: Any
    sample_weight: FloatArray | None
    options: dict[str, Any]
    """Further ones, which are not cut to the fold."""

    @property
    def arguments(self) -> dict[str, Any]:
        """All of them, by name."""
        return {"X": self.X, "y": self.y, "sample_weight": self.sample_weight, **self.options}

    def part(self, estimator: Any, rows: IntArray, train: IntArray | None = None) -> Data:
        """Some rows; their kernel values are those against themselves, or against ``train``."""
        if get_tags(estimator).input_tags.pairwise:
            X, _ = _safe_split(estimator, self.X, None, rows, train)
        else:
            X = _cut(self.X, rows)
        return Data(X, _cut(self.y, rows), _cut(self.sample_weight, rows), self.options)


class Scores(NamedTuple):
    """Scores with one feature map."""

    values: FloatArray
    """(others, along, alphas)."""
    errors: FloatArray | None
    """Standard errors of the same shape, where they are not those of the mean over folds."""
    n_early_stops: int
    """Number of fits that ended before their tolerance."""


class _Line:
    """The last two solutions along a parameter, extrapolated to its next value."""

    def __init__(self) -> None:
        self._known: list[tuple[float, Any]] = []

    def take(self, value: float, point: Any) -> None:
        """Remember the solution at a value."""
        self._known = [*self._known[-1:], (value, point)]

    def ahead(self, value: float, start: Any) -> Any:
        """Where to start: on the line through the last two, no further than twice."""
        if len(self._known) < 2:
            return start
        (t0, before), (t1, last) = self._known
        share = min((value - t1) / (t1 - t0), 2.0) if t1 != t0 else 0.0
        return last + share * (last - before)


def scores_of_fold(
    model: Any, grid: Grid, data: Data, train: IntArray, test: IntArray, scorer: Any
) -> Scores:
    """Scores of a fold: along each path every fit starts from the one before.

    Where there is a second path parameter, it runs through its values for each alpha, from the
    solution for its first value at the alpha before.
    """
    seen, held_out = data.part(model, train), data.part(model, test, train)
    model.check_parameters()
    if model.candidate_tol > 0.0 and model.tol == signature(type(model)).parameters["tol"].default:
        model.set_params(tol=model.candidate_tol)
    prepared = model.prepare(**seen.arguments)
    weights = {} if data.sample_weight is None else {"sample_weight": held_out.sample_weight}
    values, early = np.empty(grid.shape[1:]), 0
    for i, other in enumerate(grid.others):
        first: Any = None
        for k, alpha in enumerate(grid.alphas):
            start, line = first, _Line()
            for j, point in enumerate(grid.along):
                model.set_params(**other, **point, **alpha).check_parameters()
                at = float(next(iter(point.values()), 0.0))
                with without_warnings(ConvergenceWarning):  # counted below
                    start = model.fit_prepared(prepared, line.ahead(at, start))
                line.take(at, start)
                first = start if j == 0 else first
                early += not model.status_.converged
                values[i, j, k] = scorer(model, held_out.X, held_out.y, **weights)
    return Scores(values, None, early)


def scores_of_rows(model: Any, grid: Grid, data: Data) -> Scores:
    """Scores with each row left out, from a closed form for all alphas together."""
    model.check_parameters()
    prepared = model.prepare(**data.arguments)
    given = [point.get("alpha", model.alpha) for point in grid.alphas]
    alphas = np.array([model.strength(prepared) if a is None else a for a in given], dtype=float)
    both = np.empty((2, *grid.shape[1:]))
    for i, other in enumerate(grid.others):
        for j, point in enumerate(grid.along):
            model.set_params(**other, **point).check_parameters()
            both[:, i, j] = model.leave_one_out_scores(prepared, alphas)
    return Scores(both[0], both[1], 0)


def search_score(model: Any, X: Any, y: Any, **weights: Any) -> float:
    """The scorer of an estimator's own score for searches."""
    return float(model.search_score(X, y, **weights))


def _cut(data: Any, rows: IntArray) -> Any:
    """Some rows of an array, frame, list or FDataGrid."""
    if data is None:
        return None
    return data[rows] if hasattr(data, "data_matrix") else _safe_indexing(data, rows)

"""Scores of all candidates with one feature map: on one fold, or with each row left out."""

from __future__ import annotations

from inspect import signature
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _num_samples, has_fit_parameter

from fenchel._sentences import said_of
from fenchel._threads import without_warnings
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import check_length, check_weights, shown
from fenchel.model_selection._candidates import Grid
from fenchel.model_selection._folds import Fold, described, folds_of


class Data(NamedTuple):
    """The arguments of a fit."""

    X: Any
    y: Any
    sample_weight: FloatArray | None
    options: dict[str, Any]
    """Further arguments, which are not split into folds."""

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments, by name."""
        return {"X": self.X, "y": self.y, "sample_weight": self.sample_weight, **self.options}

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, weight: Any, options: dict[str, Any]) -> Data:
        """Store the arguments, unchecked unless the rows are not in memory."""
        source = estimator.elsewhere(X, y, weight)
        if source is None:
            return cls(X, y, weight, options)
        return _Elsewhere(source, source.y, None if weight is None else source.weight, options)

    def checked(self) -> Data:
        """Return data that can be split into folds."""
        with said_of("X"):
            (X,) = indexable(self.X)
        with said_of("y"):
            (y,) = indexable(self.y)
        if y is not None:
            check_length(_num_samples(y), _num_samples(X))
        weight = self.sample_weight
        if weight is not None:
            weight = check_weights(X, weight)
        return self._replace(X=X, y=y, sample_weight=weight)

    @property
    def n_rows(self) -> int:
        """Number of rows, including those of weight zero."""
        return int(_num_samples(self.X))

    def folds(self, cv: Any, groups: AnyArray | None = None) -> list[Fold]:
        """Indices of training and test rows for each fold.

        If ``cv`` is a number, only rows of positive weight are split, as if there were no others.
        Splitters and given folds are used as they are.
        """
        if self.sample_weight is not None and _is_number(cv):
            return _dealt(np.flatnonzero(self.sample_weight), cv)
        _check_number(cv, self.n_rows)
        folds = folds_of(cv, self.X, self.y, self.n_rows, groups)
        if self.sample_weight is not None:
            _check_weighted(folds, self.sample_weight, cv)
        return folds

    def n_jobs(self, asked: int | None) -> int:
        """Number of processes that may be used."""
        return int(effective_n_jobs(asked))

    def refit(self, estimator: Any, groups: AnyArray | None) -> Any:
        """Fit to all rows, with their groups if the estimator uses them."""
        takes = groups is not None and has_fit_parameter(estimator, "groups")
        return estimator.fit(**self.arguments, **({"groups": groups} if takes else {}))

    def part(self, estimator: Any, rows: IntArray, train: IntArray | None = None) -> Data:
        """Some of the rows; kernel values are those against themselves, or against ``train``."""
        if get_tags(estimator).input_tags.pairwise:
            X, _ = _safe_split(estimator, self.X, None, rows, train)
        else:
            X = _cut(self.X, rows)
        return Data(X, _cut(self.y, rows), _cut(self.sample_weight, rows), self.options)


class _Elsewhere(Data):
    """Rows in files or on workers: parts of them stay there."""

    __slots__ = ()

    def checked(self) -> Data:
        return self

    @property
    def n_rows(self) -> int:
        return int(self.X.n_rows)

    def folds(self, cv: Any, groups: AnyArray | None = None) -> list[Fold]:
        """Folds by row indices, and by targets if no row has weight zero."""
        if _is_number(cv):
            return _dealt(self.X.kept, cv)
        y = self.y if len(self.y) == self.n_rows else None
        return folds_of(cv, np.empty((self.n_rows, 0)), y, self.n_rows, groups)

    def refit(self, estimator: Any, groups: AnyArray | None) -> Any:
        """Fit without groups, which are for rows in memory."""
        return super().refit(estimator, None)

    def n_jobs(self, asked: int | None) -> int:
        """Return one process, as each fit uses all resources."""
        return 1

    def part(self, estimator: Any, rows: IntArray, train: IntArray | None = None) -> Data:
        mine = self.X.part(rows)
        return Data(
            mine, mine.y, None if self.sample_weight is None else mine.weight, self.options
        )


def _check_weighted(folds: list[Fold], weight: FloatArray, cv: Any) -> None:
    """Raise an error if all rows on a side of a split have weight zero."""
    for k, sides in enumerate(folds):
        for rows, what in zip(sides, ("fit", "hold out"), strict=True):
            if not weight[rows].any():
                raise ValueError(
                    "cv must have rows of positive weight to fit and to hold out in each split, "
                    f"got none to {what} in split {k} of {described(cv)}"
                )


class Scores(NamedTuple):
    """Scores with one feature map."""

    values: FloatArray
    """(others, along, alphas)."""
    errors: FloatArray | None
    """Standard errors of the same shape, if they are not those of the mean over folds."""
    n_early_stops: int
    """Number of fits that stopped before reaching their tolerance."""
    gaps: FloatArray | None = None
    """Relative gaps of the fits, in the shape of the values, if there are fits."""


class _Line:
    """Extrapolation of the last two solutions along a parameter to its next value."""

    def __init__(self) -> None:
        self._known: list[tuple[float, Any]] = []

    def take(self, value: float, point: Any) -> None:
        """Remember the solution at a value."""
        self._known = [*self._known[-1:], (value, point)]

    def ahead(self, value: float, start: Any) -> Any:
        """Starting point on the line through the last two solutions, at most twice as far."""
        if len(self._known) < 2:
            return start
        (t0, before), (t1, last) = self._known
        share = min((value - t1) / (t1 - t0), 2.0) if t1 != t0 else 0.0
        point = last - before  # then in place: curves take some per cent of a fit to copy
        point *= share
        point += last
        return point


def scores_of_fold(
    model: Any, grid: Grid, data: Data, train: IntArray, test: IntArray, scorer: Any
) -> Scores:
    """Scores of a fold: along each path, every fit starts from the one before.

    A second path parameter runs through its values for each alpha, starting from the solution for
    its first value at the previous alpha.
    """
    model = clone(model)  # other folds and other parameters of the grid begin with it as well
    seen, held_out = data.part(model, train), data.part(model, test, train)
    model.check_parameters()
    if model.candidate_tol > 0.0 and model.tol == signature(type(model)).parameters["tol"].default:
        model.set_params(tol=model.candidate_tol)
    prepared = model.prepare(**seen.arguments)
    weights = {} if data.sample_weight is None else {"sample_weight": held_out.sample_weight}
    (values, gaps), early = np.empty((2, *grid.shape[1:])), 0
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
                gaps[i, j, k] = model.certificate_.relative_gap
                values[i, j, k] = _scored(scorer, model, held_out, weights)
    return Scores(values, None, early, gaps)


def _scored(scorer: Any, model: Any, held_out: Data, weights: dict[str, Any]) -> float:
    """Score of a fold, by a function that has to take weights if there are any."""
    try:
        return float(scorer(model, held_out.X, held_out.y, **weights))
    except TypeError as error:
        if not weights or "sample_weight" not in str(error):
            raise
        raise TypeError(
            "scoring must take sample_weight if fit is given sample_weight, got "
            f"{shown(scorer)}, which does not"
        ) from error


def scores_of_rows(model: Any, grid: Grid, data: Data) -> Scores:
    """Scores with each row left out, from a closed form for all alphas together."""
    model = clone(model)
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


class _MinusSquares(NamedTuple):
    """Minus the mean squared error, without scikit-learn's checks of each pair of arrays.

    These take longer than fits with few rows.
    """

    checked: Any
    """scikit-learn's scorer, which says what is wrong with arrays."""

    def __call__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        targets = np.asarray(y)
        if targets.dtype.kind == "f":
            predicted = model.predict(X)
            if predicted.shape == targets.shape:
                squares = (predicted - targets) ** 2
                score = -float(np.average(squares, axis=0, weights=sample_weight).mean())
                if np.isfinite(score):
                    return score
        return float(self.checked(model, X, y, **weights))


def scorer_of(estimator: Any, scoring: Any) -> Any:
    """What returns the score of a model on rows that are held out; larger is better."""
    if scoring is None:
        return search_score
    scorer = check_scoring(estimator, scoring=scoring)
    plain = isinstance(scoring, str) and scoring == "neg_mean_squared_error"
    return _MinusSquares(scorer) if plain else scorer


def search_score(model: Any, X: Any, y: Any, **weights: Any) -> float:
    """Scorer that calls the estimator's own score for searches."""
    return float(model.search_score(X, y, **weights))


def _is_number(cv: Any) -> bool:
    """Whether only the number of folds is given."""
    return cv is None or isinstance(cv, Integral)


def _check_number(cv: Any, n_rows: int) -> None:
    """Raise an error for more folds than rows, if only the number of folds is given."""
    if _is_number(cv) and n_rows < (number := check_cv(cv).get_n_splits()):
        raise ValueError(
            "cv must be at most the number of rows of X without those of weight zero, got "
            f"cv={number} with n_samples={n_rows}"
        )


def _dealt(rows: IntArray, cv: Any) -> list[Fold]:
    """Split these rows into folds, as if there were no others."""
    _check_number(cv, len(rows))
    return [(rows[train], rows[test]) for train, test in check_cv(cv).split(rows)]


def _cut(data: Any, rows: IntArray) -> Any:
    """Select rows of an array, frame, list or FDataGrid."""
    if data is None:
        return None
    return data[rows] if hasattr(data, "data_matrix") else _safe_indexing(data, rows)

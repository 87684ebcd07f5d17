"""Predictions of models fitted without a row: by folds, and by leaving out each row."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _num_samples

from fenchel._threads import threads_that_pay, without_warnings
from fenchel._typing import AnyArray, FloatArray, IntArray
from fenchel._validation import rows_of
from fenchel.kernels import Precomputed, SparsePoints
from fenchel.model_selection._folds import EachOut, Fold, takes_groups
from fenchel.model_selection._progress import SILENT, Told
from fenchel.solvers import WarmStart
from fenchel.solvers.leave_one_out import ridge_smoother

_BLOCK_VALUES = 2**21  # predictions at a time: 16 MiB

Columns = tuple[int, int]
"""The outputs of an estimator that are the lower and the upper end."""


class Ends(NamedTuple):
    """Ends of intervals before calibration, (m,) or (m, n)."""

    low: FloatArray
    high: FloatArray


def outputs(model: Any, X: AnyArray, columns: Columns) -> Ends:
    """Predict the two ends."""
    prediction = np.asarray(model.predict(X), dtype=np.float64)
    if prediction.ndim == 1:
        prediction = prediction[:, None]
    if prediction.ndim > 2:
        raise ValueError(
            "estimator must predict quantiles of one target, got predictions of shape "
            f"{prediction.shape}; calibrate a model for each of them"
        )
    if columns[0] != columns[1] and prediction.shape[1] < 2:
        raise TypeError(
            "estimator must predict two quantiles: a parameter levels, as QuantileRegressor has, "
            "a loss of quantiles, or several regressors from the lowest to the highest, got "
            f"{type(model).__name__}, which predicts one number"
        )
    return Ends(prediction[:, columns[0]], prediction[:, columns[1]])


def fit_part(
    estimator: Any,
    X: AnyArray,
    y: FloatArray,
    rows: IntArray,
    weight: FloatArray | None,
    groups: AnyArray | None = None,
) -> Any:
    """Return a copy of the estimator fitted to some rows.

    Their groups are passed on if the estimator holds out rows itself, or has a ``cv`` by groups.
    """
    part, targets = _safe_split(estimator, X, y, rows)
    options: dict[str, Any] = {} if weight is None else {"sample_weight": weight[rows]}
    if groups is not None and takes_groups(estimator):
        options["groups"] = groups[rows]
    return clone(estimator).fit(part, targets, **options)


class FoldModels:
    """One model for each fold, fitted to the rows outside of the fold.

    ``rows`` are the calibration rows, each held out once, and ``columns`` the outputs that are
    the ends.
    """

    def __init__(
        self,
        estimator: Any,
        X: AnyArray,
        y: FloatArray,
        weight: FloatArray | None,
        folds: Sequence[Fold],
        rows: IntArray,
        columns: Columns,
        told: Told = SILENT,
        groups: AnyArray | None = None,
    ) -> None:
        self.columns = columns
        self.models = []
        own = np.empty((2, len(y)))
        member = np.empty(len(y), dtype=np.intp)
        # a fold of rows without weight is none
        counted = [j for j in range(len(folds)) if np.isin(folds[j][1], rows).any()]
        for k, j in enumerate(told(counted, "fold")):
            train, held_out = folds[j]
            model = fit_part(estimator, X, y, train, weight, groups)
            part, _ = _safe_split(estimator, X, None, held_out, train)
            own[:, held_out] = outputs(model, part, columns)
            member[held_out] = k
            self.models.append(model)
        self.member = member[rows]
        self.own = own[:, rows]
        pairwise = estimator.__sklearn_tags__().input_tags.pairwise
        self.seen = [folds[j][0] for j in counted] if pairwise else None

    def blocks(self, X: AnyArray) -> Iterator[Ends]:
        """Predict with each model once; each calibration row gets the model of its fold."""
        n_rows = _num_samples(X)
        for part in _slices(n_rows, len(self.models)):
            whole = part.stop - part.start >= n_rows
            low, high = self._of_models(X if whole else _safe_indexing(X, part))
            for rows in _slices(len(low), len(self.member)):
                yield Ends(low[rows][:, self.member], high[rows][:, self.member])

    def _of_models(self, X: AnyArray) -> Ends:
        """The ends of each model, (m, n_models)."""
        parts: Iterable[AnyArray] = repeat(X, len(self.models))
        if self.seen is not None:
            parts = (np.asarray(X)[:, seen] for seen in self.seen)
        both = [outputs(*pair, self.columns) for pair in zip(self.models, parts, strict=True)]
        low = np.stack([ends.low for ends in both], axis=1)
        if self.columns[0] == self.columns[1]:
            return Ends(low, low)
        return Ends(low, np.stack([ends.high for ends in both], axis=1))


class _OneFeatureMap:
    """Predictions for new rows by models that share the feature map of all rows."""

    def __init__(self, model: Any, prepared: Any) -> None:
        self.model = model
        self.feature_map = prepared.inputs.feature_map
        self.kept = prepared.inputs.kept
        self.is_sparse = isinstance(prepared.inputs.rows, SparsePoints)

    def _features(self, X: AnyArray) -> Iterator[FloatArray]:
        """Compute features of rows, a few at a time."""
        X = rows_of(self.model, X, reset=False, sparse=issparse(X))
        given = isinstance(self.model.kernel_, Precomputed)
        points = SparsePoints(X) if self.is_sparse or issparse(X) else X
        for rows in _slices(len(points), len(self.kept)):
            part = points[rows]
            if isinstance(part, SparsePoints) and not self.is_sparse:
                part = part.toarray()
            yield self.feature_map.transform(part[:, self.kept] if given else part)


class LeaveOneOutRidge(_OneFeatureMap):
    r"""Kernel ridge regression with each row left out, in closed form.

    .. math:: h_{-i}(x) + b_{-i} = h(x) + b - H_i(x)\, e_i, \qquad h(x) + b = \sum_i H_i(x) y_i

    with e the leave-one-out residuals: the model without row i is the model in which y_i is
    replaced by its own prediction.
    """

    def __init__(self, model: Any, prepared: Any) -> None:
        super().__init__(model, prepared)
        inputs = prepared.inputs
        residuals = model.loo_residuals_[inputs.kept]
        targets = prepared.targets[:, 0] + prepared.shift[0]
        # A row that the fit follows whatever its target has no such model: its score is infinite.
        undefined = np.isnan(residuals)
        prediction = targets - residuals
        self.own = np.stack([np.where(undefined, sign * np.inf, prediction) for sign in (1, -1)])
        self.residuals = np.where(undefined, 0.0, residuals)
        self.targets, self.shift = prepared.targets[:, 0], float(prepared.shift[0])
        problem = model.make_problem(prepared)
        scale = float(model.coupling_[0, 0])
        with threads_that_pay(min(inputs.features.shape)):
            self.slopes, self.constant = ridge_smoother(
                inputs.features,
                problem.weight,
                scale,
                gram=problem.design.is_gram,
                fit_intercept=problem.fit_intercept,
            )

    def blocks(self, X: AnyArray) -> Iterator[Ends]:
        """Subtract the share of each row from the prediction."""
        for features in self._features(X):
            with threads_that_pay(min(features.shape)):
                smoother = features @ self.slopes + self.constant
                whole = smoother @ self.targets + self.shift
            prediction = whole[:, None] - smoother * self.residuals
            yield Ends(prediction, prediction)


class LeaveOneOutKernel(_OneFeatureMap):
    """Any kernel regressor with each row left out: refits that start from the fit to all rows.

    ``model`` is fitted to all rows, and ``each`` is the estimator fitted to all rows but one.
    """

    def __init__(
        self,
        model: Any,
        each: Any,
        prepared: Any,
        start: WarmStart,
        columns: Columns,
        told: Told = SILENT,
    ) -> None:
        super().__init__(model, prepared)
        inputs = prepared.inputs
        n = len(inputs.kept)
        gram = model.make_problem(prepared).design.is_gram
        used = sorted(set(columns))
        self.weights = np.empty((len(used), inputs.features.shape[1], n))
        self.offsets = np.empty((len(used), n))
        self.columns = used.index(columns[0]), used.index(columns[1])
        failures = []
        for i in told(range(n), "row"):
            near = start._replace(dual=np.delete(start.dual, i, axis=0))
            with without_warnings(UserWarning):  # on the feature map, the full fit has spoken
                left, weights = _without(each, prepared, i, near)
            if not left.status_.converged:
                failures.append(left.status_.message)
            if gram:
                weights = np.insert(weights, i, 0.0, axis=0)
            elif len(weights) != inputs.features.shape[1]:  # this fit took more features
                where = np.searchsorted(inputs.kept, left.support_)
                weights = inputs.features[where].T @ (left.dual_coef_ @ left.coupling_)
            self.weights[:, :, i] = weights[:, used].T
            self.offsets[:, i] = left.offset_[used]
        if failures:
            warnings.warn(
                f"{len(failures)} of {n} leave-one-out fits have not converged, the last one "
                f"because: {failures[-1]}",
                ConvergenceWarning,
                stacklevel=6,
            )
        own = np.einsum("ir,jri->ji", inputs.features, self.weights) + self.offsets
        self.own = own[list(self.columns)]

    def blocks(self, X: AnyArray) -> Iterator[Ends]:
        """Predict with all models in one product."""
        for features in self._features(X):
            with threads_that_pay(min(features.shape)):
                ends = features @ self.weights + self.offsets[:, None, :]
            yield Ends(*(ends[j] for j in self.columns))


HeldOut = FoldModels | LeaveOneOutRidge | LeaveOneOutKernel
"""For each calibration row, a model that was fitted without it.

``own`` are the ends (2, n) at the rows themselves, and ``blocks`` yields those of the n models for
new rows, a few rows at a time, (m, n).
"""


def _without(each: Any, prepared: Any, i: int, start: WarmStart) -> tuple[Any, FloatArray]:
    """Fit without row i, on the features of all rows; return the model and its weights."""
    part = prepared.only(np.delete(np.arange(len(prepared.inputs.kept)), i))
    left = clone(each)
    left.check_parameters()
    left.fit_prepared(part, start)
    return left, part.weights


def leave_one_out(
    estimator: Any,
    X: AnyArray,
    y: FloatArray,
    weight: FloatArray | None,
    rows: IntArray,
    columns: Columns,
    told: Told = SILENT,
) -> tuple[Any, HeldOut]:
    """Fit to all rows, and without each of the calibration rows.

    Parameters that an estimator of this library learns are learned once, from all rows.
    """
    how = getattr(estimator, "leave_one_out_by", None)
    if how is None:
        model = fit_part(estimator, X, y, np.arange(len(y)), weight)
        return model, FoldModels(estimator, X, y, weight, EachOut(rows), rows, columns, told)
    settled = settled_by(estimator, X, y, np.arange(len(y)), weight)
    model = settled.whole
    model.check_parameters()
    prepared = model.prepare(X, y, weight)
    n_kept = len(prepared.inputs.kept)
    if n_kept < 2:
        raise ValueError(
            f"method='jackknife+' needs two rows of positive weight, got n_samples = {len(y)} "
            f"with {n_kept} of them"
        )
    start = model.fit_prepared(prepared, None)
    model.learned_ = settled.learned  # as after a fit
    rows_of_fit = prepared.inputs.rows
    none = model.given_gram or isinstance(rows_of_fit, SparsePoints)
    model.keep_sample(None if none else rows_of_fit, prepared.inputs.weight)
    if how == "closed_form":
        return model, LeaveOneOutRidge(model, prepared)
    return model, LeaveOneOutKernel(model, settled.fold, prepared, start, columns, told)


class Settled(NamedTuple):
    """Unfitted copies of an estimator, with the parameters it has learned from some rows."""

    whole: Any
    fold: Any
    """For fits to folds, whose predictions are calibrated afterwards."""
    learned: Any
    """None if the estimator learns nothing."""


def settled_by(
    estimator: Any, X: AnyArray, y: FloatArray, rows: IntArray, weight: FloatArray | None
) -> Settled:
    """Return copies for all rows, with the parameters that were learned from some rows."""
    model = None
    if getattr(estimator, "learn", False):
        model = fit_part(estimator, X, y, rows, weight)
    if model is None or model.learned_ is None:
        return Settled(clone(estimator), clone(estimator), None)
    counts = np.ones(len(y)) if weight is None else weight
    times = counts.sum() / counts[rows].sum()
    fold = model.with_learned(times, held_out=False)
    return Settled(model.with_learned(times), fold, model.learned_)


def _slices(n_rows: int, n_models: int) -> Iterator[slice]:
    size = max(1, _BLOCK_VALUES // max(1, n_models))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)

"""Base class of the conformal estimators: calibration rows, their scores, and the bounds."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from fenchel._bases import BaseEstimator, MetaEstimatorMixin, take_features
from fenchel._parameters import parameters
from fenchel._sentences import said_of
from fenchel._typing import AnyArray, ArrayLike, FloatArray, IntArray
from fenchel._validation import (
    FOLDS,
    NONE,
    SHARE,
    CheckedParameters,
    Having,
    OneOf,
    check_read,
    check_weights,
    declared,
    exponent_of_weights,
    is_share,
    random_of,
    targets_of,
)
from fenchel.estimator import CheckedRegressor, all_or_nothing
from fenchel.model_selection._conformal_infinite import largest_coverage, least_rows, reason
from fenchel.model_selection._conformal_models import (
    Columns,
    FoldModels,
    HeldOut,
    fit_part,
    leave_one_out,
    outputs,
    settled_by,
)
from fenchel.model_selection._conformal_ranks import pool_quantile, score_quantile, scores_of
from fenchel.model_selection._folds import Fold, check_groups, described, folds_of, held_out_once
from fenchel.model_selection._progress import Told

METHODS = ("split", "cv+", "jackknife+")
SIDES = ("two-sided", "lower", "upper")
_PREFIT = "prefit"
_CALIBRATION_SHARE = 0.25
_FOLDS = 10


@parameters
class Conformal(CheckedParameters, MetaEstimatorMixin, CheckedRegressor, BaseEstimator):
    """Base class: subclasses choose the estimator and which of its outputs are the ends."""

    constraints = declared(
        estimator=NONE | Having("a regressor", ("fit", "predict", "get_params")),
        method=OneOf(METHODS),
        side=OneOf(SIDES),
        cv=FOLDS | SHARE | OneOf((_PREFIT,)),
        learn_share=NONE | SHARE,
    )

    estimator: Any = None
    _: KW_ONLY
    method: str = "split"
    coverage: float = 0.9
    side: str = "two-sided"
    cv: Any = None
    learn_share: float | None = None
    random_state: Any = None
    verbose: int = 0

    _default: ClassVar[type]  # of the estimator, where none is given

    def _base(self) -> Any:
        """The estimator as given, or the default."""
        return self._default() if self.estimator is None else self.estimator

    def _plain(self) -> Any:
        """The estimator that is to be fitted, or was."""
        return self._base()

    def _ends(self, plain: Any) -> Columns:
        """The outputs of the estimator that are the two ends."""
        raise NotImplementedError

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator and calibrate its intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in any form that the estimator takes.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, for fitting and for calibration: how much more likely a row
            is among the new rows than among these, up to a factor. See Notes.
        groups : array-like of shape (n_samples,), optional
            Group labels of the rows, for a splitter ``cv`` that uses them, and for an estimator
            that takes them or searches by groups. See Notes.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For parameters or data that are not allowed; the message says which.

        Warns
        -----
        UserWarning
            If there are too few calibration rows for the coverage: intervals are infinite.
        """
        self.check_parameters()
        plain = self._plain()
        X, y, weight = self._validated(plain, X, y, sample_weight)
        labels = self._groups(groups, len(y))
        self._columns = self._ends(plain)
        self._held_out: HeldOut | None = None
        self._fold: IntArray | None = None
        self.learned_: Any = None
        if self.method == "split":
            rows, ends = self._split(plain, X, y, weight, labels)
        else:
            rows, ends = self._leave_out(plain, X, y, weight, labels)
        self.conformity_scores_ = scores_of(self.side, y[rows], *ends)
        self.calibration_indices_ = rows
        self.n_calibration_ = len(rows)
        self._weight = None if weight is None else weight[rows]
        self._n_rows = len(y) if weight is None else int(np.count_nonzero(weight))
        self._set_quantile()
        take_features(self, self.estimator_)
        return self

    def _set_quantile(self) -> None:
        """Set the quantile for a new row of mean weight; warn if it is infinite."""
        typical, which = None, "every interval is"
        if self._weight is not None:
            typical = np.atleast_1d(self._weight.mean())
            which = "intervals of new rows of mean weight are"
        pool = self.conformity_scores_[None]
        self.quantile_ = float(pool_quantile(pool, self.coverage, *self._shares(typical))[0])
        if np.isinf(self.quantile_):
            self._warn_of_infinity(self.coverage, which, typical, stacklevel=5)

    @property
    def models_(self) -> list[Any]:
        """All fitted models: ``estimator_``, and with "cv+" those of the folds."""
        check_is_fitted(self)
        return [self.estimator_, *getattr(self._held_out, "models", [])]

    @property
    def is_weighted_(self) -> bool:
        """Whether calibration rows have weights; new rows then need weights too."""
        check_is_fitted(self)
        return self._weight is not None

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict with ``estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> FloatArray:
        """Predict an interval for the target of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        coverage : float, optional
            In (0, 1), by default that of the constructor. Nothing is fitted again.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the new rows, in the same units as in ``fit``; needed if and only if
            weights were given to ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends. With ``side="lower"`` the upper ends are infinite, with
            ``side="upper"`` the lower ends.

        Warns
        -----
        UserWarning
            If there are too few calibration rows for the coverage, so that a requested end is
            infinite.
        """
        check_is_fitted(self)
        coverage = SHARE(self.coverage if coverage is None else coverage, "coverage")
        if self._held_out is not None or sample_weight is not None:
            check_read(X, "X")
        new_weight = self._new_weight(X, sample_weight)
        if self._held_out is None:
            low, high = outputs(self.estimator_, X, self._columns)
            margin = score_quantile(self.conformity_scores_, coverage, self._weight, new_weight)
            low, high = low - margin, high + margin
        else:
            low, high = self._pooled(self._held_out, X, coverage, new_weight)
        wanted = {"two-sided": (low, high), "lower": (low,), "upper": (high,)}[self.side]
        n_infinite = int(np.isinf(wanted).any(axis=0).sum())
        if n_infinite:
            which = f"{n_infinite} of {len(low)} intervals are"
            heaviest = None if new_weight is None else np.atleast_1d(new_weight.max())
            self._warn_of_infinity(coverage, which, heaviest)
        if self.side == "two-sided":
            # Ends that have crossed are an empty set, and a point holds it.
            crossed = low > high
            low[crossed] = high[crossed] = 0.5 * (low[crossed] + high[crossed])
        elif self.side == "lower":
            high = np.full(len(low), np.inf)
        else:
            low = np.full(len(high), -np.inf)
        return np.column_stack([low, high])

    def _split(
        self,
        plain: Any,
        X: AnyArray,
        y: FloatArray,
        weight: FloatArray | None,
        groups: AnyArray | None,
    ) -> tuple[IntArray, FloatArray]:
        """Fit to some rows; return the others, and the ends predicted for them."""
        if self._prefit():
            check_is_fitted(plain)
            self.estimator_ = plain
            rows, part = np.arange(len(y)), X
        else:
            train, rows = self._folds(X, y, weight, groups)[0]
            self.estimator_ = fit_part(plain, X, y, train, weight, groups)
            part, _ = _safe_split(plain, X, None, rows, train)
        ends = np.stack(outputs(self.estimator_, part, self._columns))
        if weight is None:
            return rows, ends
        positive = weight[rows] > 0.0
        if not positive.any():
            raise ValueError(
                "sample_weight must be positive for a calibration row, got zeros only"
            )
        return rows[positive], ends[:, positive]

    def _leave_out(
        self,
        plain: Any,
        X: AnyArray,
        y: FloatArray,
        weight: FloatArray | None,
        groups: AnyArray | None,
    ) -> tuple[IntArray, FloatArray]:
        """Fit to all rows and without some; return the calibration rows and their ends."""
        told = Told(type(self).__name__, bool(self.verbose))
        rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        if self.method == "jackknife+":
            self._check_rows(len(y), 2)
            self.estimator_, held_out = leave_one_out(
                plain, X, y, weight, rows, self._columns, told
            )
        else:
            folds = self._folds(X, y, weight, groups)
            whole = np.concatenate([fold for _, fold in folds])
            if not np.array_equal(np.sort(whole[np.isin(whole, rows)]), rows):
                raise ValueError(
                    f"cv must hold each row out once for method='cv+', got {described(self.cv)}"
                )
            each = plain
            if self.learn_share is not None:
                plain, each, rows, folds = self._learned_once(plain, X, y, weight, rows, folds)
            held_out = FoldModels(each, X, y, weight, folds, rows, self._columns, told, groups)
            self._fold = held_out.member
            self.estimator_ = fit_part(plain, X, y, np.arange(len(y)), weight, groups)
        self._held_out = held_out
        return rows, held_out.own

    def _learned_once(
        self,
        plain: Any,
        X: AnyArray,
        y: FloatArray,
        weight: FloatArray | None,
        rows: IntArray,
        folds: list[Fold],
    ) -> tuple[Any, Any, IntArray, list[Fold]]:
        """Learn parameters from some rows; return estimators for all rows and for each fold.

        Also return folds of the other rows. If nothing is learned, all rows calibrate.
        """
        # another stream than that of folds of the same seed, which would hold out the same rows
        random = np.random.RandomState(random_of(self.random_state).randint(2**31))
        mixed = random.permutation(rows)
        few = np.sort(mixed[: max(1, int(float(self.learn_share or 0.0) * len(rows)))])
        whole, fold, self.learned_ = settled_by(plain, X, y, few, weight)
        if self.learned_ is None:
            return whole, fold, rows, folds
        parts = []
        for train, held_out in folds:
            seen = np.isin(held_out, few)
            if not seen.all():
                parts.append((np.sort(np.append(train, held_out[seen])), held_out[~seen]))
        return whole, fold, np.setdiff1d(rows, few), parts

    def _folds(
        self, X: AnyArray, y: FloatArray, weight: FloatArray | None, groups: AnyArray | None
    ) -> list[Fold]:
        """Folds of the rows of positive weight, or those of a splitter; the first for "split"."""
        seed = random_of(self.random_state)
        rows, splitter = np.arange(len(y)) if weight is None else np.flatnonzero(weight), self.cv
        if self.method == "split" and (splitter is None or is_share(splitter)):
            share = _CALIBRATION_SHARE if splitter is None else splitter
            least = int(np.ceil((1.0 - 1e-12) / (1.0 - share)))
            self._check_rows(len(rows), least, weight is not None)
            dealt = ShuffleSplit(1, test_size=share, random_state=seed).split(rows)
        elif splitter is None or isinstance(splitter, Integral):
            number = min(_FOLDS, max(2, len(rows))) if splitter is None else int(splitter)
            self._check_rows(len(rows), number, weight is not None)
            dealt = KFold(number, shuffle=True, random_state=seed).split(rows)
        else:
            return held_out_once(folds_of(splitter, X, y, len(y), groups), self.cv)
        # in order, so that the columns of kernel values for new rows are those of ``fit``
        return [(np.sort(rows[train]), np.sort(rows[held_out])) for train, held_out in dealt]

    def _groups(self, groups: ArrayLike | None, n: int) -> AnyArray | None:
        """Group labels for the splitter, which must use groups if any are given."""
        why = None
        if self.method == "jackknife+":
            why = "method='jackknife+', which leaves out one row at a time: 'cv+' can do groups"
        elif self._prefit():
            why = "cv='prefit', with which no rows are held out"
        elif self.learn_share is not None:
            why = "learn_share, which puts rows of each group into all fits"
        if groups is not None and why is not None:
            raise ValueError(f"groups must be None for {why}")
        return check_groups(groups, self.cv, n)

    def _check_rows(self, n: int, least: int, weighted: bool = False) -> None:
        """Raise an error if too few rows are left for fitting or for calibration."""
        if n < max(2, least):
            cv = "" if self.cv is None else f" with cv={self.cv!r}"
            rows = f"{max(2, least)} rows{' of positive weight' * weighted}"
            raise ValueError(
                f"{type(self).__name__}{cv} needs at least {rows}, some of which "
                f"calibrate what is fitted to the others, got n_samples = {n}"
            )

    def _pooled(
        self, held_out: HeldOut, X: AnyArray, coverage: float, new_weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Ends from the ends of all models, each moved by the score of its row."""
        low = np.full(_num_samples(X), -np.inf)
        high = np.full(_num_samples(X), np.inf)
        start = 0
        for block in held_out.blocks(X):
            rows = slice(start, start + len(block.low))
            start = rows.stop
            shares = self._shares(None if new_weight is None else new_weight[rows])
            if self.side != "upper":
                pool = self.conformity_scores_ - block.low
                low[rows] = -pool_quantile(pool, coverage, *shares)
            if self.side != "lower":
                pool = self.conformity_scores_ + block.high
                high[rows] = pool_quantile(pool, coverage, *shares)
        return low, high

    def _shares(self, new_weight: FloatArray | None) -> tuple[Any, ...]:
        """Shares of calibration rows for each new row, and their total; () if all are equal."""
        if self._weight is None or new_weight is None:
            return ()
        if self._fold is None:
            return self._weight, self._weight.sum() + new_weight
        folds = np.bincount(self._fold, self._weight)
        whole = folds + new_weight[:, None]
        return self._weight / whole[:, self._fold], float(len(folds))

    def _prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == _PREFIT

    def _validated(
        self, plain: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[AnyArray, FloatArray, FloatArray | None]:
        check_read(X, "X")
        with said_of("X"):
            (X,) = indexable(X)
            n_rows = _num_samples(X)
        y = targets_of(type(self).__name__, y, n_rows)
        if sample_weight is None:
            return X, y, None
        takes_weights = has_fit_parameter(plain, "sample_weight") or _routing_enabled()
        if not (self._prefit() or takes_weights):
            raise TypeError(
                "estimator must take sample_weight in fit, or be fitted before (cv='prefit'), for "
                f"sample_weight to be given, got {type(plain).__name__}"
            )
        weight = check_weights(X, sample_weight, all_zero=True)
        self._exponent = exponent_of_weights(float(weight.max()))
        return X, y, check_weights(X, weight)

    def _new_weight(self, X: ArrayLike, sample_weight: ArrayLike | None) -> FloatArray | None:
        if (sample_weight is None) != (self._weight is None):
            given, wanted = ("None", "given") if sample_weight is None else ("weights", "None")
            raise ValueError(
                f"sample_weight of new rows must be {wanted}, as it was in fit, got {given}"
            )
        if sample_weight is None:
            return None
        weight = check_weights(X, sample_weight, all_zero=True)  # in the units of those of fit
        with np.errstate(over="ignore"):
            return np.ldexp(weight, vars(self).get("_exponent", 0))

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.learn_share is not None and self.method != "cv+":
            raise ValueError(
                "learn_share needs method='cv+', got "
                f"learn_share={self.learn_share!r}, method={self.method!r}"
            )
        if self.learn_share is not None and not hasattr(self._base(), "with_learned"):
            raise TypeError(
                "estimator must be one that learns length scales or alpha (with_learned) for "
                f"learn_share to be given, got {type(self._base()).__name__}"
            )
        if self._prefit() and self.method != "split":
            raise ValueError(
                "cv='prefit' needs method='split': a fitted estimator cannot leave rows out, got "
                f"method={self.method!r}"
            )
        if is_share(self.cv) and self.method != "split":
            raise ValueError(
                "cv as a share of calibration rows needs method='split', got "
                f"cv={self.cv!r}, method={self.method!r}"
            )

    def _warn_of_infinity(
        self, coverage: float, which: str, new_weight: FloatArray | None, stacklevel: int = 3
    ) -> None:
        """Warn with what the coverage needs, what there is, and what would help."""
        weights: FloatArray | None = None
        heaviest = 1.0
        if self._weight is not None and new_weight is not None:
            folds = np.zeros(len(self._weight), np.intp) if self._fold is None else self._fold
            weights = np.bincount(folds, self._weight).astype(np.float64)
            heaviest = float(new_weight[0])
        why = reason(coverage, self.conformity_scores_, weights, heaviest)
        remedy = self._remedy(least_rows(coverage), new_weight)
        warnings.warn(
            f"{which} infinitely wide: {why}; take {remedy}", UserWarning, stacklevel=stacklevel
        )

    def _remedy(self, least: int, new_weight: FloatArray | None) -> str:
        """What would make the intervals finite, as far as these rows allow."""
        ways = ["more rows"]
        n_rows = vars(self).get("_n_rows", 0)  # unknown of models of earlier versions
        if self.method == "split" and not self._prefit():
            if self._weight is None and n_rows >= least:
                ways.append("method='cv+' (all rows calibrate)")
            if n_rows > least and (self.cv is None or is_share(self.cv)):
                ways.append("a larger share cv")
        elif self.method == "cv+" and self._weight is not None:
            ways.append("fewer folds cv")
        coverage = largest_coverage(self.conformity_scores_, *self._shares(new_weight))
        if coverage > 0.0:
            ways.append(f"a coverage of at most {coverage:g}")
        return f"{', '.join(ways[:-1])} or {ways[-1]}" if len(ways) > 1 else ways[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._base()).input_tags
        return tags

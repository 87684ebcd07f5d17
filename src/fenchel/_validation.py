"""Checks of parameters and data: one sentence for what is not allowed.

What a parameter may be is declared by name, in the attribute ``constraints`` of a class or of
one that it is derived from, and looked at by :meth:`CheckedParameters.check_parameters`::

    constraints = {"alpha": POSITIVE, "rank": NONE | COUNT, "center": NONE | OneOf(CENTERS)}

A check is anything that is called with a value and the name of the parameter, and raises a
sentence that names the parameter, what was given, and what is allowed.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight, _check_y, _num_samples, validate_data

from fenchel._sentences import check_collected, check_no_dates, said_of
from fenchel._threads import dot
from fenchel._typing import ArrayLike, FloatArray

_LARGEST = 1e150
_FEW_ROWS = 16  # whose spread is looked at first
_LEAST_SPREAD = 1e-100  # the cube is a number yet: squares, in units of y, over alpha in them
_WEIGHTS = 2.0**64  # between one over this and this, the largest weight is left as it is
_SHOWN = 80  # characters of what was given

Check: TypeAlias = Callable[[Any, str], Any]


class Constraint:
    """What a parameter may be; ``a | b`` is either of two."""

    allowed: str
    """In words, after "must be"."""

    def error(self, value: Any) -> type[Exception] | None:
        """Return None for a value that is allowed, else the kind of error."""
        raise NotImplementedError

    def __call__(self, value: Any, name: str) -> Any:
        """Return the value, or raise a sentence that names the parameter."""
        kind = self.error(value)
        if kind is not None:
            raise kind(f"{name} must be {self.allowed}, got {shown(value)}")
        return value

    def __or__(self, other: Constraint) -> Constraint:
        """Either of the two."""
        return _Either((self, other))


@dataclass(frozen=True)
class _Either(Constraint):
    parts: tuple[Constraint, ...]

    def __or__(self, other: Constraint) -> Constraint:
        return _Either((*self.parts, other))

    @property
    def allowed(self) -> str:  # type: ignore[override]  # others store it
        # None comes last, and lists within the list go on
        *first, last = (part.allowed for part in sorted(self.parts, key=lambda p: p is NONE))
        return f"{', '.join(first).replace(' or ', ', ')} or {last}"

    def error(self, value: Any) -> type[Exception] | None:
        kinds = [part.error(value) for part in self.parts]
        return None if None in kinds else ValueError if ValueError in kinds else TypeError


@dataclass(frozen=True)
class Number(Constraint):
    """A number between bounds; booleans are none."""

    low: float = -np.inf
    high: float = np.inf
    open_low: bool = False
    open_high: bool = False
    integer: bool = False
    infinite: bool = False

    @property
    def allowed(self) -> str:  # type: ignore[override]  # others store it
        low, high = f"{self.low:g}", f"{self.high:.10g}"
        if self.high < np.inf and self.low > -np.inf:
            kind = "an integer" if self.integer else "a number"
            return f"{kind} in {'(' if self.open_low else '['}{low}, {high}" + (
                ")" if self.open_high else "]"
            )
        kind = "an integer" if self.integer else "a number" if self.infinite else "a finite number"
        if self.high < np.inf:
            return f"{kind} {'<' if self.open_high else '<='} {high}"
        return f"{kind} {'>' if self.open_low else '>='} {low}" + " or inf" * self.infinite

    def error(self, value: Any) -> type[Exception] | None:
        expected: Any = Integral if self.integer else Real
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, expected):
            return TypeError
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        finite = _is_finite(value) or (self.infinite and value == np.inf)
        return None if above and below and finite else ValueError

    def __call__(self, value: Any, name: str) -> float:
        """Return the number as a float."""
        return float(super().__call__(value, name))


def _is_finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:  # an integer of more than 308 digits
        return False


@dataclass(frozen=True)
class OneOf(Constraint):
    """One of some names; they are looked up in ``more`` when a value is checked."""

    names: tuple[str, ...]
    more: Collection[str] = ()

    @property
    def allowed(self) -> str:  # type: ignore[override]  # others store it
        names = [repr(name) for name in (*self.names, *self.more)]
        return f"one of {', '.join(names)}" if len(names) > 1 else names[0]

    def error(self, value: Any) -> type[Exception] | None:
        known = isinstance(value, str) and (value in self.names or value in self.more)
        return None if known else ValueError


@dataclass(frozen=True)
class Having(Constraint):
    """An object, and no class, with some methods."""

    allowed: str
    methods: tuple[str, ...]

    def error(self, value: Any) -> type[Exception] | None:
        has = all(callable(getattr(value, name, None)) for name in self.methods)
        return None if has and not isinstance(value, type) else TypeError


@dataclass(frozen=True)
class That(Constraint):
    """What a function says yes to."""

    allowed: str
    holds: Callable[[Any], bool]
    kind: type[Exception] = TypeError

    def error(self, value: Any) -> type[Exception] | None:
        return None if self.holds(value) else self.kind


def _random_state(value: Any) -> bool:
    try:
        return not isinstance(value, (bool, np.bool_)) and check_random_state(value) is not None
    except (TypeError, ValueError):
        return False


def _numbers(value: Any) -> bool:
    try:
        array = np.asarray(value)
        return array.dtype.kind in "iuf" and bool(np.isfinite(array).all())
    except ValueError:  # rows of different lengths
        return False


def _are_positive(value: Any) -> bool:
    array = np.asarray(value) if _numbers(value) else np.empty(0)
    return array.ndim == 1 and array.size > 0 and bool((array > 0).all())


def _splits(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(isinstance(p, Sized) and len(p) == 2 for p in value)
    return isinstance(value, Iterator)


POSITIVE = Number(0.0, open_low=True)
NOT_NEGATIVE = Number(0.0)
COUNT = Number(1, integer=True)
ORDER = Number(1.0, infinite=True)
"""Of a norm."""
SHARE = Number(0.0, 1.0, open_low=True, open_high=True)
SEED = Number(0, integer=True)
NONE = That("None", lambda value: value is None)
BOOLEAN = That("True or False", lambda value: isinstance(value, (bool, np.bool_)))
FOLDS = (
    NONE
    | Number(2, integer=True)
    | Having("a splitter", ("split", "get_n_splits"))
    | That("pairs of rows to fit and to hold out", _splits)
)


def is_share(value: object) -> bool:
    """Whether it is a share of rows, such as 0.25, and not a number of folds."""
    return isinstance(value, Real) and not isinstance(value, Integral)


CALLABLE = Having("a function", ("__call__",))
POSITIVES = That("a sequence of finite numbers > 0", _are_positive, ValueError)
NUMBERS = That("an array of finite numbers", _numbers)
"""Shapes are looked at where the data are known."""
WITH_DATA = That("as the data demand", lambda value: True)
"""Checked as a whole where the data are known."""


def declared(**constraints: Check) -> Mapping[str, Check]:
    """Constraints of parameters by their names, for the attribute ``constraints`` of a class."""
    return MappingProxyType(constraints)


def shown(value: Any) -> str:
    """What was given, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


class CheckedParameters:
    """What has parameters whose constraints are declared by name, and stores them as they are."""

    constraints: ClassVar[Mapping[str, Check]] = declared(
        C=POSITIVE,
        alpha=POSITIVE,
        callback=NONE | CALLABLE,
        check=COUNT,
        coverage=SHARE,
        cv=FOLDS,
        epsilon=NOT_NEGATIVE,
        fit_intercept=BOOLEAN,
        inner_iter=COUNT,
        kappa=POSITIVE,
        level=SHARE,
        max_iter=COUNT,
        max_time=NONE | POSITIVE,
        n_jobs=NONE | COUNT | Number(high=-1, integer=True),
        random_state=That("None, an integer in [0, 2**32 - 1] or a RandomState", _random_state),
        rank=NONE | COUNT,
        tol=POSITIVE,
        verbose=BOOLEAN | Number(0, integer=True),
        warm_start=BOOLEAN,
    )
    """What parameters may be, for all that have one of this name."""

    def check_parameters(self) -> None:
        """Raise a sentence for parameters that are not allowed."""
        kind: type = type(self)
        for name, check in constraints_of(kind).items():
            check(getattr(self, name), name)


class CheckedWhenMade(CheckedParameters):
    """What checks its parameters when it is made."""

    def __post_init__(self) -> None:
        self.check_parameters()


@cache
def constraints_of(kind: type) -> dict[str, Check]:
    """Return the checks of the parameters of a class, by their names."""
    declared: dict[str, Check] = {}
    for base in reversed(kind.__mro__):
        declared.update(vars(base).get("constraints", {}))
    names = inspect.signature(kind).parameters
    return {name: declared[name] for name in names if name in declared}


_READ = (
    "read the table, as by pandas.read_parquet; QuantileRegressor, ExpectileRegressor, SVR and "
    "KernelRidge fit and predict tables in files"
)
_COLUMN = "give its values; names of columns are for fits of tables in files"


def check_read(values: Any, name: str) -> None:
    """Raise a sentence where numbers are due, for a name, the place of a table, masked cells."""
    if isinstance(values, (str, os.PathLike)):
        remedy = _READ if name == "X" else _COLUMN
        given = shown(os.fspath(values))
        raise TypeError(f"{name} must be an array of numbers, got {given}: {remedy}")
    check_collected(values, name)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        count = int(np.ma.getmaskarray(values).sum())  # NumPy would show what is behind them
        raise ValueError(f"{name} must have no masked cells, got {count} of them")


def rows_of(
    estimator: BaseEstimator, X: Any, *, reset: bool = True, least: int = 1, sparse: bool = False
) -> Any:
    """Rows as an array (n, d) of finite numbers; those of a fit say what is expected of others.

    With ``sparse`` they are a sparse array by columns.
    """
    check_read(X, "X")
    check_no_dates(X, "X")
    if sparse:
        with said_of("X"):
            return validate_data(estimator, X, reset=reset, dtype=np.float64, accept_sparse="csc")
    if _is_clean(X, least) and (reset or _is_expected(estimator, X)):
        if reset:
            known = vars(estimator)
            known.pop("feature_names_in_", None)
            known["n_features_in_"] = X.shape[1]
        return X
    with said_of("X", partial(first_not_finite, "X", X)):
        options: dict[str, Any] = {"dtype": np.float64, "order": "C", "ensure_min_samples": least}
        return np.asarray(validate_data(estimator, X, reset=reset, **options))


def _is_clean(values: Any, least: int, n_dimensions: int = 2) -> bool:
    """Whether there is nothing to convert or to say: known for a row sooner than by all checks.

    A fit of few rows would spend a tenth of its time on them.
    """
    if type(values) is not np.ndarray or values.dtype != np.float64:
        return False
    if values.ndim != n_dimensions or len(values) < least or values.size == 0:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(values.sum())  # in half the time, and finite but for huge values
    finite = np.isfinite(total) or np.isfinite(values).all()
    return values.flags.c_contiguous and bool(finite)


def _is_expected(estimator: BaseEstimator, X: FloatArray) -> bool:
    """Whether rows without names have as many columns as those of the fit, without names."""
    known = vars(estimator)
    return "feature_names_in_" not in known and X.shape[1] == known.get("n_features_in_")


def first_not_finite(name: str, values: Any, columns: Any = None) -> str:
    """Where the first entry is that is no finite number, in words; ``columns`` name an array's."""
    try:
        bad = ~np.isfinite(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        return ""
    if not (bad.ndim and bad.any()):
        return ""
    first = np.argwhere(bad)[0]
    columns = getattr(values, "columns", columns)
    if columns is not None and len(first) == 2:
        return f", first in column {str(columns[first[1]])!r} in row {first[0]}"
    return f", first in {name}[{', '.join(map(str, first))}]"


def targets_of(name: str, y: Any, n_rows: int, several: bool = False) -> FloatArray:
    """Finite targets (n,) for what has this name, or (n, p) where there may be several."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    check_read(y, "y")
    if not _is_clean(y, 1, 1):
        check_no_dates(y, "y")
        with said_of("y", partial(first_not_finite, "y", y)):
            if several:
                y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
            else:
                y = _check_y(y, y_numeric=True)
            y = np.asarray(y, dtype=np.float64, order="C")
    check_length(len(y), n_rows)
    return y


def check_levels(levels: Any, name: str = "levels", number: int | None = None) -> FloatArray:
    """Return levels as an array (n_levels,): inside (0, 1), none repeated, as many as there are.

    The ``number`` is that of the columns of predictions, where these are given.
    """
    try:
        given = np.atleast_1d(np.asarray(levels))
        array = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"{name} must be a number or a non-empty sequence of numbers, got {shown(levels)}"
        )
    if not np.all((array > 0.0) & (array < 1.0)):
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {shown(levels)}")
    if len(np.unique(array)) < len(array):
        raise ValueError(f"{name} must not repeat a level, got {shown(levels)}")
    if number is not None and len(array) != number:
        raise ValueError(
            f"{name} must name the {number} columns of predictions, got {len(array)} levels"
        )
    return array


def check_length(length: int, n_rows: int, name: str = "y") -> None:
    """Raise a sentence where there is not one target, curve or weight for each row."""
    if length != n_rows:
        raise ValueError(
            f"{name} must have one entry for each of the {n_rows} rows of X, got {length}: "
            "inconsistent numbers of samples"
        )


def check_weights(
    X: Any, sample_weight: ArrayLike | None, *, all_zero: bool = False
) -> FloatArray:
    """Weights of the rows of X, (n,), ones for None: >= 0, and not all zero unless allowed.

    Only their ratios count: very large or small ones are taken times a power of two, so that no
    sums or products overflow or vanish. Where they may be all zero, they are returned as given.
    """
    check_read(sample_weight, "sample_weight")
    check_no_dates(sample_weight, "sample_weight")
    if getattr(sample_weight, "ndim", isinstance(sample_weight, (list, tuple))) == 1:
        check_length(_num_samples(sample_weight), _num_samples(X), "sample_weight")
    with said_of("sample_weight"):
        if isinstance(sample_weight, Real):
            sample_weight = np.full(_num_samples(X), sample_weight)
        options = {"ensure_non_negative": True, "allow_all_zero_weights": True}
        weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, **options))
    if all_zero:
        return weight
    largest = float(weight.max())
    if not largest > 0.0:
        raise ValueError("sample_weight must have a positive entry, got zeros only")
    exponent = exponent_of_weights(largest)
    return np.ldexp(weight, exponent) if exponent else weight


def exponent_of_weights(largest: float) -> int:
    """Exponent of the power of two by which weights are multiplied, from the largest of them."""
    usual = largest == 0.0 or 1.0 / _WEIGHTS <= largest <= _WEIGHTS
    return 0 if usual else -int(np.frexp(largest)[1])


def check_magnitude(values: FloatArray, name: str, largest: float = _LARGEST) -> None:
    """Raise a sentence where squares of the values would overflow."""
    plain = isinstance(values, np.ndarray) and values.flags.c_contiguous
    if plain and dot(values, values) < min(largest, 1e150) ** 2:  # in one pass
        return
    found = float(max(values.max(), -values.min()))  # with no copy of many rows
    if found > largest:
        raise ValueError(
            f"{name} must be at most {largest:g} in absolute value, got {found:g}: its square "
            "would overflow"
        )


def check_one_strength(alpha: Any, radius: Any) -> None:
    """Not both a penalty and a bound."""
    if alpha is not None and radius is not None:
        raise ValueError(
            f"at most one of alpha and radius can be given, got alpha={alpha!r} and "
            f"radius={radius!r}"
        )


def check_dense(X: Any, name: str = "X") -> None:
    """Raise a sentence for sparse arrays, where only others will do."""
    if issparse(X):
        raise TypeError(
            f"{name} must be an array, got a sparse one: {name}.toarray() makes an array of it"
        )


def check_targets(values: FloatArray) -> None:
    """Raise a sentence for targets whose losses, in the units of problems, leave the floats."""
    check_magnitude(values, "y", 1.0 / _LEAST_SPREAD)
    check_spread(values, "y")


def check_spread(values: FloatArray, name: str) -> None:
    """Raise a sentence where values differ by so little that their products vanish."""
    few = values[:_FEW_ROWS] if isinstance(values, np.ndarray) else np.zeros(1)
    if np.ptp(few) >= _LEAST_SPREAD:
        return  # as of all rows
    spread = float(values.max()) - float(values.min())
    if 0.0 < spread < _LEAST_SPREAD:
        raise ValueError(
            f"{name} must be constant or have a range of {_LEAST_SPREAD:g} or more, got "
            f"{spread:g}: its square would vanish"
        )


def random_of(random_state: Any) -> Any:
    """Return scikit-learn's generator for a seed, a RandomState, or None.

    Fits are deterministic: here None is the seed 0, and not the global generator.
    """
    return check_random_state(0 if random_state is None else random_state)

"""Arguments that are not allowed: each is answered by one sentence, and changes nothing.

Every parameter of every public class, and all data, are replaced in turn by what they must not
be. The answer is a ValueError or TypeError of one line that names what was replaced; an estimator
that was fitted before still predicts bit for bit the same.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import fenchel
from attacks import Outcome
from fenchel import features, functional, kernels, losses, model_selection, online, positive
from fenchel._validation import constraints_of
from fenchel.learning import Learning

IN_CI, IN_FULL = 800, 20_000
SHARES = 48
N = 24
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (N, 2))
Y = 2.0 + X[:, 0] + 0.1 * RNG.standard_normal(N)
CURVES = np.column_stack([Y, Y + 1.0, Y - X[:, 1]])

BAD: dict[str, Any] = {
    "an object": object(),
    "a wrong name": "typo",
    "none": None,
    "a boolean": True,
    "a numpy boolean": np.False_,
    "a number": 3,
    "a fraction": 2.5,
    "zero": 0,
    "minus one": -1,
    "nan": np.nan,
    "inf": np.inf,
    "minus inf": -np.inf,
    "1e400": 10**400,
    "a number in quotes": "1",
    "bytes": b"0.5",
    "complex": 1j,
    "a list of a number": [0.5],
    "an empty list": [],
    "a dict": {},
    "an array": np.full((3, 3), 0.5),
    "an array with nan": np.array([0.5, np.nan]),
    "a matrix of words": [["a", "b"], ["c", "d"]],
    "ragged": [[1.0], [1.0, 2.0]],
    "a class": dict,
    "an estimator": fenchel.Ridge(),
    "a kernel": kernels.Gaussian(),
    "a negative kernel": kernels.Gaussian(-1.0),
    "a loss": losses.Squared(),
}
NEVER = ("an object", "a wrong name", "a dict", "complex", "bytes")
"""What no parameter may be, those apart that may be any name, function or dict."""
LOOSE = {"param_grid": ("a dict",), "scoring": ("a wrong name",), "transformer": ()}

ESTIMATORS: list[Any] = [
    fenchel.LinearRegression(),
    fenchel.Ridge(),
    fenchel.Lasso(0.01),
    fenchel.GroupLasso(alpha=0.01),
    fenchel.KernelRidge(1e-2),
    fenchel.SVR(alpha=1e-2),
    fenchel.QuantileRegressor([0.25, 0.75], alpha=1e-2),
    fenchel.ExpectileRegressor([0.25, 0.75], alpha=1e-2),
    functional.FunctionalRegressor(),
    positive.NonNegativeRegressor(alpha=1e-2, rank=5),
    positive.HeteroscedasticRegressor(1e-2, rank=5),
    positive.NonCrossingQuantileRegressor([0.25, 0.75], alpha=1e-2, learn=False, rank=5),
    positive.ConeRegressor(alpha=1e-2, rank=5, learn=False),
    positive.DensityEstimator(rank=5),
    online.WidrowHoff(),
    online.OnlineRidge(),
    online.OnlineLasso(),
    online.OnlineSVR(),
    online.OnlineQuadraticSVR(),
    model_selection.PathSearchCV(fenchel.KernelRidge(), {"alpha": [0.1]}, cv=2),
    model_selection.KernelRidgeCV([0.1]),
    model_selection.RidgeCV([0.1]),
    model_selection.LassoCV([0.1], cv=2),
    model_selection.GroupLassoCV(None, [0.1], cv=2),
    model_selection.ConformalRegressor(fenchel.KernelRidge()),
    model_selection.ConformalQuantileRegressor(coverage=0.5),
    features.PivotedCholesky(),
    features.Nystroem(rank=5),
    features.RandomFourier(rank=4),
    features.KernelRows(),
    features.Monomials(kernels.Polynomial(2)),
    features.Summands(),
    features.Explicit(),
    features.OperatorCholesky(kernels.Decomposable("gaussian", [[1.0]])),
]
KERNELS: list[Any] = [
    kernels.Gaussian(),
    kernels.Matern(),
    kernels.Laplacian(),
    kernels.Polynomial(),
    kernels.BetweenCurves(kernels.Gaussian()),
    kernels.IntegralGaussian(),
    kernels.OnColumns(kernels.Gaussian(), [0]),
    kernels.WithRanks(kernels.Gaussian()),
    kernels.Callable(np.minimum),
]
DATA: dict[str, Callable[[Any], Any]] = {
    "words": lambda a: np.full(np.shape(a), "a"),
    "objects": lambda a: np.full(np.shape(a), {}, dtype=object),
    "sparse": lambda a: sparse.csr_array(np.atleast_2d(a)),
    "three dimensions": lambda a: np.zeros((N, 1, 1)),
    "complex": lambda a: np.asarray(a) + 1j,
    "nan": lambda a: np.full(np.shape(a), np.nan),
    "inf": lambda a: np.where(np.arange(np.size(a)) == 0, np.inf, np.ravel(a)).reshape(
        np.shape(a)
    ),
    "empty": lambda a: np.zeros((0, *np.shape(a)[1:])),
    "one row less": lambda a: np.asarray(a)[1:],
    "a number": lambda a: 3.0,
    "an object": lambda a: object(),
}
WEIGHTS: dict[str, Callable[[Any], Any]] = {
    **{name: DATA[name] for name in ("words", "objects", "complex", "nan", "inf", "one row less")},
    "negative": lambda a: np.arange(N) - 1.0,
    "zeros": lambda a: np.zeros(N),
    "a number that is nan": lambda a: np.nan,
    "minus one": lambda a: -1.0,
    "a matrix": lambda a: np.ones((N, 2)),
    "a word": lambda a: "balanced",
}
# What some estimators may be given, or do not look at.
FINE = {
    ("FunctionalRegressor", "y", "nan"): "not observed",
    ("FunctionalRegressor", "X", "three dimensions"): "curves of one channel",
}


class Try(NamedTuple):
    """A call that must be refused."""

    what: str
    named: str
    """What the sentence must name."""
    call: Callable[[], Any]
    model: Any = None
    """What must be as it was, if it was fitted."""
    kinds: tuple[type[Exception], ...] = (ValueError, TypeError)


def attack(count: int, seed: int) -> Outcome:
    """Make so many of all the calls, in random order."""
    everything = tries()
    outcome = Outcome()
    for which in np.random.default_rng(seed).permutation(len(everything))[:count]:
        one = everything[which]
        before = None if one.model is None else answer(one.model)
        trouble = _answered(one)
        if before is not None and not np.array_equal(before, answer(one.model)):
            trouble = "it predicts otherwise than before"
        room = one.what.partition(".")[0]
        outcome.counts[f"{room}: one sentence" if trouble is None else "FAILED"] += 1
        if trouble is not None:
            outcome.failures.append(f"{one.what}: {trouble}")
    return outcome


def _answered(one: Try) -> str | None:
    """What is wrong with the answer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.call()
    except one.kinds as error:
        sentence = str(error)
        if "\n" in sentence or not sentence:
            return f"not one line: {sentence!r}"
        pattern = r"\b[yY]\b" if one.named == "y" else rf"\b{one.named}\b"
        return None if re.search(pattern, sentence) else f"{one.named} is not in: {sentence}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    return "accepted"


@cache
def tries() -> list[Try]:
    """Every call that must be refused."""
    return [
        *(one for each in ESTIMATORS for one in (*of_parameters(each), *of_data(each))),
        *(one for each in KERNELS for one in of_kernel(each)),
        *of_learning(),
        *of_functions(),
    ]


def name_of(estimator: Any) -> str:
    """Room and name of its class."""
    return f"{type(estimator).__module__.split('.')[1]}.{type(estimator).__name__}"


@cache
def fitted(number: int) -> Any:
    """A model that was fitted before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(ESTIMATORS[number]).fit(**data_of(ESTIMATORS[number]))


def data_of(estimator: Any) -> dict[str, Any]:
    """What it is fitted to."""
    if "Functional" in type(estimator).__name__:
        return {"X": X, "y": CURVES}
    none = isinstance(estimator, (features.FeatureMap, positive.DensityEstimator))
    return {"X": X} if none else {"X": X, "y": Y}


def answer(model: Any) -> Any:
    """What it says of its rows."""
    for name in ("predict", "score_samples", "transform"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError(model)


def refused_values(kind: type, name: str) -> Iterator[tuple[str, Any]]:
    """What the parameter must not be, by its constraint and by NEVER."""
    check = constraints_of(kind)[name]
    for what, value in BAD.items():
        try:
            check(value, name)
        except (TypeError, ValueError):
            yield what, value
        else:
            if what in NEVER and what not in LOOSE.get(name, ()) and name not in LOOSE:
                yield what, value


def of_parameters(estimator: Any) -> Iterator[Try]:
    """Each of its parameters, replaced by all that it must not be."""
    number = ESTIMATORS.index(estimator)
    for name in inspect.signature(type(estimator)).parameters:
        for what, value in refused_values(type(estimator), name):
            if name in ("random_state", "kernel") and isinstance(estimator, features.Explicit):
                continue  # there for the protocol

            def call(name: str = name, value: Any = value) -> None:
                model = fitted(number)
                kept = model.get_params(deep=False)[name]
                try:
                    model.set_params(**{name: value}).fit(**data_of(estimator))
                finally:
                    model.set_params(**{name: kept})

            label = f"{name_of(estimator)}({name}={what})"
            yield Try(label, name, call, fitted(number))


def takes_sparse(estimator: Any) -> bool:
    """Whether sparse rows are allowed."""
    return bool(get_tags(estimator).input_tags.sparse)


def of_data(estimator: Any) -> Iterator[Try]:
    """Rows, targets and weights of fit and predict, replaced by what they must not be."""
    number, given, name = ESTIMATORS.index(estimator), data_of(estimator), name_of(estimator)
    model = fitted(number)
    for argument, table in (("X", DATA), ("y", DATA), ("sample_weight", WEIGHTS)):
        takes = argument in given or argument == "sample_weight"
        if not takes or argument not in inspect.signature(model.fit).parameters:
            continue
        for what, change in table.items():
            if (type(estimator).__name__, argument, what) in FINE:
                continue
            if argument == "X" and what == "sparse" and takes_sparse(estimator):
                continue
            if what == "one row less" and argument == "X" and "y" not in given:
                continue
            bad = {**given, argument: change(given.get(argument, np.ones(N)))}
            named = "X" if what == "one row less" and argument == "X" else argument
            yield Try(
                f"{name}.fit({argument}: {what})", named, lambda b=bad: model.fit(**b), model
            )
    method = "transform" if hasattr(model, "transform") else "predict"
    method = method if hasattr(model, method) else "score_samples"
    for what, change in DATA.items():
        if what == "one row less" or (type(estimator).__name__, "X", what) in FINE:
            continue
        if what == "sparse" and takes_sparse(estimator):
            continue
        rows = change(X)
        yield Try(f"{name}.{method}({what})", "X", lambda r=rows: getattr(model, method)(r), model)
    wide = np.column_stack([X, X])
    yield Try(f"{name}.{method}(columns)", "X", lambda: getattr(model, method)(wide), model)
    yield Try(
        f"{name}.{method}(unfitted)",
        type(estimator).__name__,
        lambda: getattr(clone(estimator), method)(X),
        kinds=(NotFittedError,),
    )
    if "sample_weight" in inspect.signature(getattr(model, "score", answer)).parameters:
        for what, change in WEIGHTS.items():
            bad = {**given, "sample_weight": change(np.ones(N))}
            call = partial(model.score, **bad)
            yield Try(f"{name}.score(sample_weight: {what})", "sample_weight", call, model)


def of_kernel(kernel: Any) -> Iterator[Try]:
    """Each parameter of a kernel, in the kernel of a fit."""
    for name in inspect.signature(type(kernel)).parameters:
        for what, value in refused_values(type(kernel), name):
            bad = clone(kernel).set_params(**{name: value})
            call = partial(fenchel.KernelRidge(kernel=bad).fit, X, Y)
            yield Try(f"{name_of(kernel)}({name}={what})", name, call)


def of_learning() -> Iterator[Try]:
    """Each field of what says how to learn."""
    for name in inspect.signature(Learning).parameters:
        for what, value in refused_values(Learning, name):
            call = partial(Learning, **{name: value})
            yield Try(f"learning.Learning({name}={what})", name, call)


def of_functions() -> Iterator[Try]:
    """Arguments of functions and of losses."""
    makers: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "Huber": ("kappa", losses.Huber),
        "Pinball": ("levels", losses.Pinball),
        "SquaredPinball": ("levels", losses.SquaredPinball),
        "Squared.insensitive": ("epsilon", losses.Squared().insensitive),
        "make_loss": ("loss", losses.make_loss),
        "make_loss level": ("level", lambda value: losses.make_loss("pinball", level=value)),
        "as_kernel": ("kernel", kernels.as_kernel),
        "lasso_path intercept": (
            "fit_intercept",
            lambda value: fenchel.lasso_path(X, Y, fit_intercept=value),
        ),
    }
    for what in (*NEVER, "a number in quotes", "1e400", "nan", "minus one"):
        for label, (named, make) in makers.items():
            yield Try(f"functions.{label}({what})", named, lambda m=make, w=what: m(BAD[w]))
    for what, change in DATA.items():
        bad = change(X)
        yield Try(f"functions.lasso_path(X: {what})", "X", lambda b=bad: fenchel.lasso_path(b, Y))
        bad = change(Y)
        yield Try(f"functions.lasso_path(y: {what})", "y", lambda b=bad: fenchel.lasso_path(X, b))
    for what, change in WEIGHTS.items():
        weights = change(np.ones(N))
        call = partial(fenchel.lasso_path, X, Y, sample_weight=weights)
        yield Try(f"functions.lasso_path(sample_weight: {what})", "sample_weight", call)

"""Every parameter has a declared constraint, and the constraints say what they should."""

from __future__ import annotations

import importlib
import inspect
import warnings
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from attacks.bad_arguments import BAD, ESTIMATORS, KERNELS, NEVER, tries
from fenchel import KernelRidge, QuantileRegressor
from fenchel._parameters import parameters
from fenchel._validation import (
    BOOLEAN,
    COUNT,
    FOLDS,
    NONE,
    NUMBERS,
    POSITIVE,
    SHARE,
    WITH_DATA,
    Having,
    Number,
    OneOf,
    constraints_of,
    shown,
)
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Gaussian, Polynomial, ScalarKernel
from fenchel.positive import HeteroscedasticRegressor

ROOMS = (
    "features",
    "functional",
    "kernels",
    "model_selection",
    "online",
    "positive",
    "regression",
)
# They check what they are given when they are made or resolved: matrices that must fit together.
OPERATORS = {"Decomposable", "OperatorCallable", "OperatorSum", "Transformable"}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=30)


def public_classes():
    """All public classes with parameters."""
    for room in ROOMS:
        module = importlib.import_module(f"fenchel.{room}")
        for name in module.__all__:
            kind = getattr(module, name)
            ours = isinstance(kind, type) and issubclass(kind, (BaseEstimator, ScalarKernel))
            abstract = name in {"FeatureMap", "OperatorKernel", "ScalarKernel"}
            if ours and not abstract and name not in OPERATORS:
                yield kind


CLASSES = sorted(set(public_classes()), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_parameter_has_a_constraint(kind):
    missing = set(inspect.signature(kind).parameters) - set(constraints_of(kind))
    assert missing == set()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_attack_is_on_every_class(kind):
    attacked = {type(each) for each in (*ESTIMATORS, *KERNELS)}
    assert kind in attacked or not inspect.signature(kind).parameters


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_defaults_are_allowed(estimator):
    clone(estimator).check_parameters()


@pytest.mark.slow
def test_there_are_many_bad_arguments():
    assert len({one.what for one in tries()}) == len(tries()) > 5000
    assert set(NEVER) < set(BAD)


@pytest.mark.parametrize(
    ("constraint", "value", "kind", "sentence"),
    [
        (POSITIVE, -1, ValueError, "p must be a finite number > 0, got -1"),
        (POSITIVE, True, TypeError, "p must be a finite number > 0, got True"),
        (POSITIVE, 10**400, ValueError, "p must be a finite number > 0, got 1000"),
        (
            Number(0.0, infinite=True),
            np.nan,
            ValueError,
            "p must be a number >= 0 or inf, got",
        ),
        (Number(0.0, 1.0, open_high=True), 1.0, ValueError, "p must be a number in [0, 1), got"),
        (Number(high=-1, integer=True), 0, ValueError, "p must be an integer <= -1, got 0"),
        (SHARE, 1.0, ValueError, "p must be a number in (0, 1), got 1.0"),
        (COUNT, 1.0, TypeError, "p must be an integer >= 1, got 1.0"),
        (NONE | COUNT, 0, ValueError, "p must be an integer >= 1 or None, got 0"),
        (BOOLEAN, "foo", TypeError, "p must be True or False, got 'foo'"),
        (BOOLEAN | COUNT, 0, ValueError, "p must be True, False or an integer >= 1, got 0"),
        (OneOf(("a",), {"b": 1}), 3, ValueError, "p must be one of 'a', 'b', got 3"),
        (
            OneOf(("a",)) | Having("a Solver", ("solve",)),
            dict,
            ValueError,
            "p must be 'a' or a Solver, got <class 'dict'>",
        ),
        (NUMBERS, [np.nan], TypeError, "p must be an array of finite numbers, got [nan]"),
        (
            FOLDS,
            "typo",
            TypeError,
            "p must be an integer >= 2, a splitter, pairs of",
        ),
    ],
)
def test_sentences(constraint, value, kind, sentence):
    with pytest.raises(kind) as caught:
        constraint(value, "p")
    assert str(caught.value).startswith(sentence)


def test_what_was_given_is_shown_on_one_short_line():
    text = shown(np.arange(1000.0).reshape(-1, 2))
    assert "\n" not in text
    assert len(text) == 80


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        (POSITIVE, np.float32(0.5)),
        (COUNT, np.int64(3)),
        (BOOLEAN, np.True_),
        (Number(0.0, infinite=True), np.inf),
        (OneOf(("a",), {"b": 1}), "b"),
        (WITH_DATA, object()),
        (FOLDS, [(np.arange(3), np.arange(3, 5))]),
        (FOLDS, None),
    ],
)
def test_what_is_allowed(constraint, value):
    constraint(value, "p")


def test_constructors_check_nothing():
    """As scikit-learn has it: parameters are stored as they are."""
    assert KernelRidge(alpha="typo").alpha == "typo"
    assert Polynomial(degree=-1).degree == -1


@pytest.mark.slow
def test_tiny_targets_of_the_heteroscedastic_model():
    with pytest.raises(ValueError, match=r"^y must be zero or reach 1e-140 .* got .*e-310"):
        HeteroscedasticRegressor().fit(X, np.full(len(Y), 1e-310))
    with pytest.raises(ValueError, match=r"^y must be constant or have a range .* got .*e-310"):
        HeteroscedasticRegressor().fit(X, 1e-310 * Y)
    HeteroscedasticRegressor().fit(X, 0.0 * Y)
    mean, std = HeteroscedasticRegressor().fit(X, 1e-99 * Y).predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0.0)


def test_kernel_values_beyond_the_strength():
    kernel = Gaussian() + Polynomial(2)
    with pytest.raises(ValueError, match=r"^alpha=0.001 is too small beside .* rescale the colu"):
        KernelRidge(1e-3, kernel=kernel, learn=False, features="kernel_rows").fit(1e5 * X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 200])
def test_more_steps_are_no_remedy_where_rounding_is_in_the_way(n):
    rows = np.random.default_rng(0).normal(size=(n, 1))
    y = rows[:, 0] + 0.1 * np.random.default_rng(1).normal(size=n)
    model = QuantileRegressor([0.1, 0.5, 0.9], alpha=1e-3, kernel=Polynomial(3), learn=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(1e4 * rows, y)
    assert not model.status_.converged
    assert "rescale" in model.status_.message
    assert "max_iter" not in model.status_.message
    model.fit(rows, y)  # the remedy
    assert model.status_.converged


def test_scores_refuse_negative_weights():
    model = FunctionalRegressor().fit(X, np.column_stack([Y, Y]))
    for refused in (-np.ones(30), np.zeros(30), "typo"):
        with pytest.raises((ValueError, TypeError), match=r"\bsample_weight\b"):
            model.score(X, np.column_stack([Y, Y]), sample_weight=refused)


@pytest.mark.slow
def test_the_number_of_components_is_not_ignored():
    curves = np.column_stack([Y, Y, Y])
    model = FunctionalRegressor("huber", norm=1, representation="spline", n_components=2)
    with pytest.raises(ValueError, match=r"n_components .* got .*n_components=2"):
        model.fit(X, curves)
    model.set_params(representation="auto")
    with pytest.warns(UserWarning, match="n_components=2 is not used: .* norm=1") as said:
        model.fit(X, curves)
    assert said[0].filename == __file__
    gaps = curves.copy()
    gaps[0, 0] = np.nan
    with pytest.warns(UserWarning, match="n_components=2 is not used: .* without gaps"):
        model.set_params(norm=2).fit(X, gaps)
    model.fit(X, curves)  # warnings are errors: used


@parameters
class Solved(BaseEstimator):
    """Two parameters, by name alone, and what is none."""

    _: KW_ONLY
    tol: float = 1e-6
    rank: int | None = None
    kinds: ClassVar[dict[str, str]] = {}
    steps = 3


class Between(Solved):
    """No parameter of its own."""


@parameters
class Model(Between):
    """One by its place, one more by name, and another default of one."""

    alpha: float | None = None
    _: KW_ONLY
    width: Any = "scale"
    tol: float = 1e-2


def test_constructors_take_and_store_the_annotated_attributes():
    shown = str(inspect.signature(Model))
    assert shown == (
        "(alpha: 'float | None' = None, *, width: 'Any' = 'scale', tol: 'float' = 0.01, "
        "rank: 'int | None' = None) -> None"
    )
    model = Model(0.5, rank=7)
    assert vars(model) == {"alpha": 0.5, "width": "scale", "tol": 0.01, "rank": 7}
    assert vars(Between(tol=1.0)) == {"tol": 1.0, "rank": None}
    assert vars(Solved()) == {"tol": 1e-6, "rank": None}
    assert clone(model).set_params(width=2.0).get_params() == {**vars(model), "width": 2.0}


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ((0.5, 2.0), {}, r"Model\(\) too many positional arguments"),
        ((0.5,), {"alpha": 1.0}, r"Model\(\) multiple values for argument 'alpha'"),
        ((), {"beta": 1.0}, r"Model\(\) got an unexpected keyword argument 'beta'"),
    ],
)
def test_constructors_refuse_what_is_no_parameter(values, options, message):
    with pytest.raises(TypeError, match=message):
        Model(*values, **options)


def test_estimators_are_no_dataclasses():
    # dask and pandas would take one apart, and put it together again without its fit
    assert not hasattr(KernelRidge(), "__dataclass_fields__")

"""Conditions on places that a kernel hardly reaches from the rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fenchel.kernels import Gaussian, Laplacian, Matern, Points
from fenchel.positive import Condition, DensityEstimator, NonNegativeRegressor

RANDOM = np.random.default_rng(2)
X = np.sort(RANDOM.uniform(0.0, 10.0, (60, 1)), axis=0)
Y = np.abs(3.0 * np.sin(X[:, 0]) + 1.0) + 0.2 * RANDOM.normal(size=60)
FLAT = Condition("derivative", at=[3.0], equals=0.0)
SENTENCE = "conditions must be where the kernel reaches from the rows, got "


@pytest.mark.parametrize("loss", ["huber", "squared"])
@pytest.mark.parametrize(
    ("kernel", "learn", "place"),
    [(Matern(), False, 50.0), (Matern(), False, 20.0), (Gaussian("learned"), True, 50.0)],
)
def test_a_value_out_of_reach_is_refused_by_name(kernel, learn, place, loss):
    # predictions were 3e15 and 155 off, and the Gaussian kernel's error spoke of X, y and alpha
    far = [Condition("value", at=[place], at_least=1.0), FLAT]
    model = NonNegativeRegressor(loss, kernel=kernel, learn=learn, conditions=far)
    with pytest.raises(ValueError, match=rf"{SENTENCE}'value' at \[{place}\], and the smallest"):
        model.fit(X, Y)


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_the_bound_is_where_the_smallest_function_is_a_hundred_times_too_large(unit):
    # the exponential kernel k of the last row z alone reaches beyond it: with the value e at x the
    # smallest function has e / k(x, z)² at z
    scale = float(np.abs(Y).mean()) * unit
    for size, refused in ((90.0, False), (110.0, True)):
        value = 0.5 * scale
        distance = 0.5 * np.log(size * scale / value)
        place = float(X.max() + 2.0 * distance)
        model = NonNegativeRegressor(
            kernel=Laplacian(2.0),
            learn=False,
            conditions=[Condition("value", at=[place], equals=value)],
        )
        if refused:
            with pytest.raises(ValueError, match=SENTENCE):
                model.fit(X, unit * Y)
        else:
            model.fit(X, unit * Y)
            assert model.predict([[place]])[0] == pytest.approx(value, rel=1e-8)
            assert model.predict(X).max() > 50.0 * scale


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Condition("derivative", at=[40.0], equals=1.0), r"'derivative' at \[40"),
        (Condition("integral", over=(40.0, 50.0), equals=1.0), r"'integral' over \(40"),
        (Condition("moment", over=(40.0, 50.0), at_least=1.0), r"'moment' over \(40"),
        (Condition("integral", over=Points([[40.0]], [1.0]), equals=1.0), "'integral' over Poi"),
    ],
)
def test_other_kinds(condition, words):
    model = NonNegativeRegressor(kernel="gaussian", learn=False, conditions=[condition])
    with pytest.raises(ValueError, match=SENTENCE + words):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=SENTENCE + words):
        DensityEstimator(conditions=[condition]).fit(X)


@pytest.mark.parametrize(
    "condition",
    [
        Condition("value", at=[50.0], equals=0.0),
        Condition("value", at=[50.0], at_most=1.0),
        Condition("value", at=[50.0], at_least=0.0),
        Condition("derivative", at=[400.0], equals=0.0),
        Condition("integral", over=(40.0, 50.0), at_most=1.0),
    ],
)
def test_what_the_function_zero_meets_is_met_out_of_reach(condition):
    model = NonNegativeRegressor(kernel="gaussian", learn=False, conditions=[condition])
    assert model.fit(X, Y).status_.converged
    free = NonNegativeRegressor(kernel="gaussian", learn=False).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), free.predict(X), atol=1e-2)


@pytest.mark.slow
def test_a_small_density_in_a_tail_and_a_kernel_with_a_level_reach_far():
    rows = np.random.default_rng(0).normal(size=(150, 1))
    tail = Condition("value", at=[3.0], equals=1e-6)
    density = DensityEstimator(conditions=[tail]).fit(rows)
    assert density.status_.converged
    assert density.model_([[3.0]])[0] == pytest.approx(1e-6, rel=1e-6)
    far = [Condition("value", at=[50.0], at_least=1.0), FLAT]
    model = NonNegativeRegressor("huber", conditions=far).fit(X, Y)
    assert model.status_.converged
    assert model.predict([[50.0]])[0] >= 1.0 - 1e-8
    step = 1e-5
    ends = model.predict([[3.0 - step], [3.0 + step]])
    assert abs(np.diff(ends)[0]) / (2.0 * step) < 1e-5


@pytest.mark.parametrize(("near", "unit"), [(True, 1.0), (True, 1e-4), (True, 1e4), (False, 1.0)])
def test_conditions_that_nearly_contradict_each_other_are_told(near, unit):
    other, y = 5.01 if near else 6.0, unit * Y
    pair = [Condition("value", at=[5.0], equals=unit), Condition("value", at=[other], equals=0.0)]
    settings = {"learn": False, "solver": "newton", "conditions": pair}
    model = NonNegativeRegressor("huber", kernel=Gaussian(1.0), **settings)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        values = model.fit(X, y).predict(X)
    found = model.predict([[5.0], [other]])
    np.testing.assert_allclose(found, [unit, 0.0], atol=1e-6 * unit)
    assert (values.max() > 100.0 * y.max()) == near
    assert ["nearly contradict" in str(each.message) for each in told] == [True] * near
    assert all(each.filename == __file__ for each in told)

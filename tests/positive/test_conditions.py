"""Linear conditions by name: integrals, values, derivatives, moments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

import fenchel
import positive_referee as referee
from fenchel.kernels import Gaussian, Points
from fenchel.positive import Condition, DensityEstimator, NonNegativeRegressor

X = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 1))
Y = np.maximum(X[:, 0], 0.0) + 0.1 * np.random.default_rng(1).normal(size=40)
POINT = [0.4]
LINE = {
    "integral": Condition("integral", equals=2.0, over=(-1.0, 1.5)),
    "value": Condition("value", equals=0.9, at=POINT),
    "derivative": Condition("derivative", equals=0.2, at=POINT),
    "moment": Condition("moment", equals=0.7, over=(-1.0, 1.5), power=2),
}


def number(name, f):
    """The number of a condition, by its definition."""
    at = POINT[0]
    return {
        "integral": lambda: quad(f, -1.0, 1.5)[0],
        "value": lambda: f(at),
        "derivative": lambda: (f(at + 1e-5) - f(at - 1e-5)) / 2e-5,
        "moment": lambda: quad(lambda x: x**2 * f(x), -1.0, 1.5)[0],
    }[name]()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "pinball"])
@pytest.mark.parametrize("name", LINE)
def test_the_function_meets_the_condition(name, loss):
    model = NonNegativeRegressor(loss, alpha=1e-3, kernel=Gaussian(0.8), max_iter=500)
    free = model.fit(X, Y)

    def f(model):
        return lambda x: float(model.predict([[x]])[0])

    before, wanted = number(name, f(free)), LINE[name].equals
    assert abs(before - wanted) > 0.05
    bound = model.set_params(conditions=[LINE[name]]).fit(X, Y)
    assert number(name, f(bound)) == pytest.approx(wanted, abs=1e-5)
    assert bound.certificate_.relative_gap <= 1e-6
    assert bound.certificate_.feasibility <= 1e-9
    assert bound.predict(np.linspace(-9.0, 9.0, 500)[:, None]).min() >= 0.0


def test_optimum_under_conditions_is_that_of_a_semidefinite_program():
    conditions = [LINE["value"], Condition("integral", at_most=1.5, over=(-2.0, 2.0))]
    model = NonNegativeRegressor(
        alpha=1e-2, kernel=Gaussian(1.5), rank=5, tol=1e-8, conditions=conditions
    ).fit(X, Y)
    prepared = model.prepare(X, Y)
    optimum = referee.squared(model._problem(prepared), prepared.targets)
    assert model.certificate_.primal == pytest.approx(optimum, abs=1e-6)
    assert model.model_.integral((-2.0, 2.0)) <= 1.5 + 1e-9
    assert model.model_.integral((-2.0, 2.0)) == pytest.approx(1.5, abs=1e-4)


def test_bounds_that_do_not_bind_change_nothing():
    plain = NonNegativeRegressor(alpha=1e-2, kernel=Gaussian(0.8), tol=1e-8)
    free = plain.fit(X, Y).predict(X)
    slack = [
        Condition("value", at_most=100.0, at=POINT),
        Condition("integral", at_least=0.01, over=(-2.0, 2.0)),
    ]
    bound = plain.set_params(conditions=slack).fit(X, Y)
    np.testing.assert_allclose(bound.predict(X), free, atol=2e-4)
    much = plain.set_params(conditions=[Condition("integral", at_least=4.0, over=(-2.0, 2.0))])
    assert much.fit(X, Y).model_.integral((-2.0, 2.0)) == pytest.approx(4.0, abs=1e-4)


def test_density_with_a_mean_and_in_two_columns(tmp_path):
    mean = Condition("moment", equals=0.5)
    density = DensityEstimator(conditions=[mean]).fit(X)
    found = quad(lambda x: x * float(density.model_([[x]])[0]), -12.0, 12.0, limit=200)[0]
    assert found == pytest.approx(0.5, abs=1e-6)
    assert density.integral() == pytest.approx(1.0, abs=1e-8)
    same = fenchel.load(fenchel.save(density, tmp_path / "density.skops"))
    assert same.score(X) == density.score(X)
    assert same.conditions[0].equals == 0.5
    both = np.random.default_rng(2).normal(size=(60, 2))
    slope = Condition("derivative", equals=0.0, at=[0.0, 0.0], column=1)
    flat = DensityEstimator(conditions=[slope]).fit(both)
    assert flat.model_.gradient([[0.0, 0.0]])[0, 1] == pytest.approx(0.0, abs=1e-8)
    some = Points(both[:10], np.full(10, 0.1))
    points = Condition("moment", equals=0.01, over=some, column=1, power=2)
    weighed = DensityEstimator(conditions=[points]).fit(both)
    values = weighed.model_(both[:10]) * both[:10, 1] ** 2
    assert values.mean() == pytest.approx(0.01, abs=1e-8)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "median"}, "kind must be one of 'integral', 'value', 'derivative', 'moment'"),
        ({"kind": "integral"}, "equals must be given, or at_least or at_most, and one of them"),
        ({"kind": "integral", "equals": 1.0, "at_most": 2.0}, "and one of them only"),
        ({"kind": "value", "equals": 1.0}, "at must be a point for 'value' and 'derivative'"),
        ({"kind": "moment", "equals": 1.0, "power": 0}, "power must be an integer >= 1, got 0"),
    ],
)
def test_conditions_that_are_none(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Condition(**settings)


def test_refused_at_fit():
    def fit(*conditions):
        NonNegativeRegressor(conditions=list(conditions)).fit(X, Y)

    with pytest.raises(TypeError, match="conditions must be a list of Condition, got 3"):
        NonNegativeRegressor(conditions=3).fit(X, Y)
    with pytest.raises(ValueError, match="column must be below 1, the number of columns, got 1"):
        fit(Condition("derivative", equals=0.0, at=[0.0], column=1))
    with pytest.raises(ValueError, match="at must be 1 finite numbers, got"):
        fit(Condition("value", equals=0.0, at=[0.0, 1.0]))
    with pytest.raises(ValueError, match="at must be 1 finite numbers, got 'a'"):
        fit(Condition("value", equals=0.0, at="a"))
    with pytest.raises(TypeError, match="over must be None, a pair"):
        fit(Condition("integral", equals=1.0, over="a"))
    one = Condition("value", equals=0.0, at=np.zeros(1))
    assert one != Condition("value", equals=0.0, at=np.zeros(1))
    assert len({one, one}) == 1
    with pytest.raises(ValueError, match="constraints must not contradict one another"):
        fit(Condition("value", equals=-1.0, at=[0.0]))


def test_steps_go_on_where_conditions_nearly_contradict_each_other():
    random = np.random.default_rng(0)
    X = random.uniform(-2.0, 2.0, (100, 1))
    y = np.abs(np.sin(2.0 * X[:, 0])) + 0.1 * random.normal(size=100)
    near = [Condition("value", equals=v, at=[t]) for v, t in ((1.0, 0.0), (2.0, 0.02))]
    model = NonNegativeRegressor("huber", conditions=near, kernel=Gaussian(0.5), alpha=1e-4)
    assert model.fit(X, y).status_.converged
    np.testing.assert_allclose(model.predict([[0.0], [0.02]]), [1.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("loss", ["pinball", "absolute", "epsilon_insensitive"])
def test_so_they_do_on_one_row(loss):
    model = NonNegativeRegressor(loss).fit(X[:1], [3.0])
    assert model.status_.converged
    assert model.predict(X[:1]) == pytest.approx(3.0, rel=1e-5)

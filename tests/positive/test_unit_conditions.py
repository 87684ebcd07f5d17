"""Conditions of very different sizes are all met, whatever the units of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fenchel.losses import Squared
from fenchel.positive import (
    Condition,
    Constraint,
    NonNegativeRegressor,
    PSDPart,
    PSDProblem,
    Residual,
    _cone,
    solve,
)

RANDOM = np.random.default_rng(0)
RANDOM.normal(size=200)  # rows on which a lower bound was lost too
X = RANDOM.normal(1.0, 1.0, (200, 1))
Y = np.abs(5.0 + 3.0 * np.sin(5.0 * X[:, 0]) + 0.5 * RANDOM.normal(size=200))


def fitted(unit, loss, **bound):
    """The fit with an integral and a slope, for rows in these units."""
    conditions = [
        Condition("integral", equals=8.0 * unit, over=(-unit, 3.0 * unit)),
        Condition("derivative", at=[unit], **bound),
    ]
    model = NonNegativeRegressor(loss, alpha=1e-4, learn=False, conditions=conditions)
    return model.fit(X * unit, Y)


@pytest.mark.parametrize("unit", [1e-8, 1e6, 1e12])
@pytest.mark.parametrize("loss", ["squared", "pinball", "poisson"])
def test_conditions_are_met_in_any_units_of_the_rows(loss, unit):
    model, plain = fitted(unit, loss, equals=0.0), fitted(1.0, loss, equals=0.0)
    assert model.status_.converged
    ends = np.array([[1.0 - 1e-4], [1.0 + 1e-4]]) * unit
    low, high = model.predict(ends)
    assert abs(high - low) / 2e-4 < 1e-3  # 2.8 and -11 where the slope was lost to rounding
    area = np.trapezoid(model.predict(np.linspace(-1.0, 3.0, 4001)[:, None] * unit), dx=1e-3)
    assert area == pytest.approx(8.0, abs=1e-5)
    np.testing.assert_allclose(model.predict(X * unit), plain.predict(X), atol=2e-2)


@pytest.mark.parametrize("unit", [1e5, 1e6])
def test_lower_bounds_are_met_in_any_units_of_the_rows(unit):
    model = fitted(unit, "pinball", at_least=0.0)
    assert model.model_.gradient([[unit]])[0, 0] * unit >= -1e-9
    assert model.status_.converged


def test_multipliers_are_those_of_the_conditions_as_they_were_given():
    features = RANDOM.normal(size=(20, 3))
    loss = Residual(Squared(), 1.0 + RANDOM.random((20, 1)))
    part = PSDPart(features, 1e-2)
    # trace A = 1 written in another unit: Σ ν M and <ν, e> are to stay the same
    plain, large = (
        solve(
            PSDProblem(loss, [part], np.ones(20), constraints=[Constraint([u * np.eye(3)], u)]),
            tol=1e-10,
        )
        for u in (1.0, 1e7)
    )
    assert large.multipliers * 1e7 == pytest.approx(plain.multipliers, rel=1e-4)
    problem = PSDProblem(
        loss, [part], np.ones(20), constraints=[Constraint([1e7 * np.eye(3)], 1e7)]
    )
    again = problem.dual(large.dual, large.multipliers)
    assert again == pytest.approx(large.certificate.dual, abs=1e-9)


def test_a_fit_that_misses_a_condition_has_not_converged(monkeypatch):
    monkeypatch.setattr(_cone, "_STEPS", 0)  # multipliers stay where they start
    model = NonNegativeRegressor(
        learn=False, solver="fista", tol=1e3, conditions=[Condition("value", equals=9.0, at=[1.0])]
    )
    with pytest.warns(ConvergenceWarning, match="a condition missed by"):
        model.fit(X, Y)
    assert not model.status_.converged
    assert model.certificate_.feasibility > 1e-3

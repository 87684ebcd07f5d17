"""Conditions that something without a sign is zero, which no positive definite matrix meets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from fenchel.kernels import Gaussian, Linear, Points
from fenchel.losses import Squared
from fenchel.positive import (
    Condition,
    Constraint,
    DensityEstimator,
    NonNegativeRegressor,
    PSDPart,
    PSDProblem,
    Residual,
    solve,
)

X = np.random.default_rng(2).gamma(3, size=(150, 1))
ZERO = Condition("value", at=[0.0], equals=0.0)
SOME = [[0.0], [0.1], [-0.2]]
# A learned width is 1.4 times larger, and zeros so close to each other cost 0.36 nats with it.
KERNEL = Gaussian(1.131)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "places"),
    [
        (ZERO, [[0.0]]),
        (Condition("value", at=[0.0], at_most=0.0), [[0.0]]),
        (Condition("integral", over=Points(SOME, np.ones(3)), equals=0.0), SOME),
        (Condition("integral", over=Points(SOME, np.ones(3)), at_most=0.0), SOME),
    ],
)
def test_a_density_that_is_zero_somewhere(condition, places):
    # with its value alone the first took 78 s, to a gap of 1.5
    given = {"alpha": 0.1, "kernel": KERNEL}
    density = DensityEstimator(**given, conditions=[condition], max_iter=50).fit(X)
    assert density.status_.converged
    assert np.abs(density.model_(places)).max() < 1e-20

    def f(x):
        return float(density.model_([[x]])[0])

    assert quad(f, -12.0, 30.0, limit=400)[0] == pytest.approx(1.0, abs=1e-6)
    # a bound next to zero is a weaker condition, and one next to it
    near = Condition("integral", over=Points(places, np.ones(len(places))), at_most=1e-6)
    weaker = DensityEstimator(**given, conditions=[near]).fit(X).certificate_
    lost = density.certificate_.primal - weaker.dual
    assert 0.0 <= lost < (2e-2 if len(places) == 1 else 0.2)


@pytest.mark.parametrize("loss", ["absolute", "huber", "squared", "poisson"])
def test_a_regression_that_is_zero_somewhere(loss):
    random = np.random.default_rng(2)
    rows = np.sort(random.uniform(0.0, 10.0, (60, 1)), axis=0)
    y = np.abs(3.0 * np.sin(rows[:, 0]) + 1.0)
    model = NonNegativeRegressor(
        loss, learn=False, conditions=[Condition("value", at=[5.0], equals=0.0)]
    ).fit(rows, y)
    assert model.status_.converged
    assert model.certificate_.relative_gap <= 1e-6
    assert abs(model.predict([[5.0]])[0]) < 1e-20


def test_the_certificate_is_of_the_problem_with_the_condition():
    model = NonNegativeRegressor(learn=False, conditions=[ZERO], tol=1e-8).fit(X, X[:, 0])
    whole = model._problem(model.prepare(X, X[:, 0]))
    factor = model.model_.factor_ / np.sqrt(model.scale_)
    z = np.square(whole.psd[0].features @ factor).sum(axis=1)
    loss = 0.5 * np.mean(np.square(X[:, 0] / model.scale_ - z))
    inner = factor.T @ factor
    penalty = 1e-6 * np.trace(inner) + 0.5 * 1e-4 * np.sum(inner**2)
    assert loss + penalty == pytest.approx(model.certificate_.primal, rel=1e-10)
    # any multiplier gives a lower bound, and larger ones come as near as one likes
    dual = len(X) * model.dual_coef_[:, None]
    bounds = [whole.dual(dual, np.array([nu])) for nu in (1.0, 1e2, 1e4)]
    assert bounds[0] < bounds[1] < bounds[2]
    assert bounds[2] == pytest.approx(model.certificate_.dual, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-2, 0.0])
def test_beside_other_conditions_and_matrices(alpha):
    random = np.random.default_rng(0)
    features, u = random.normal(size=(20, 3)), random.normal(size=3)
    loss = Residual(Squared(), 1.0 + random.random((20, 1)))
    parts = [PSDPart(features, alpha, 1e-2), PSDPart(features[:, :2], alpha, 1e-2)]
    zero = Constraint([np.outer(u, u), None], 0.0)
    traces = Constraint([np.eye(3), np.eye(2)], 0.4)
    problem = PSDProblem(loss, parts, np.ones(20), constraints=[zero, traces])
    found = solve(problem, tol=1e-6)
    first, second = found.model.matrices
    assert abs(u @ first @ u) < 1e-15
    assert np.trace(first) + np.trace(second) == pytest.approx(0.4, abs=1e-9)
    assert found.status.converged
    assert found.multipliers[0] == 0.0
    # one of the pair that has the condition in its features
    complement = np.linalg.svd(u[None])[2][1:].T
    small = [PSDPart(features @ complement, alpha, 1e-2), parts[1]]
    other = Constraint([np.eye(2), np.eye(2)], 0.4)
    same = solve(PSDProblem(loss, small, np.ones(20), constraints=[other]), tol=1e-6)
    assert found.certificate.primal == pytest.approx(same.certificate.primal, abs=2e-6)


def test_many_rows_start_from_few_points_with_a_zero_too():
    rows = np.random.default_rng(2).gamma(3, size=(6000, 1))
    density = DensityEstimator(conditions=[ZERO], learn=False).fit(rows)
    assert density.status_.converged
    assert abs(density.model_([[0.0]])[0]) < 1e-20


def test_a_slope_where_the_value_is_zero_is_zero():
    slope = Condition("derivative", at=[0.0], equals=0.0)
    alone = DensityEstimator(conditions=[ZERO]).fit(X)
    both = DensityEstimator(conditions=[ZERO, slope]).fit(X)
    assert both.score(X) == alone.score(X)
    for other in (
        Condition("derivative", at=[0.0], equals=1.0),
        Condition("value", at=[0.0], at_least=0.1),
    ):
        with pytest.raises(ValueError, match="the left-hand side of one is zero for all"):
            DensityEstimator(conditions=[ZERO, other]).fit(X)


def test_the_function_zero_where_nothing_else_meets_the_conditions():
    zero = Condition("value", at=[1.0], equals=0.0)
    model = NonNegativeRegressor(kernel=Linear(), learn=False, conditions=[zero])
    rows = np.array([[0.0], [1.0], [2.0]])
    assert not model.fit(rows, [1.0, 2.0, 3.0]).predict(rows).any()
    assert model.status_.converged


def test_a_second_fit_starts_from_the_first():
    density = DensityEstimator(conditions=[ZERO], warm_start=True).fit(X)
    assert density.n_iter_ > 3
    assert density.fit(X).n_iter_ <= 2


@pytest.mark.parametrize(
    "condition",
    [
        Condition("value", at=X[3], equals=0.0),
        Condition("integral", over=(1.0, 3.0), at_most=0.0),
    ],
)
@pytest.mark.parametrize("kernel", [None, "laplacian"])
def test_a_density_that_must_be_zero_at_a_row_is_refused(condition, kernel):
    sentence = "constraints must leave functions above zero where the loss of zero is infinite"
    model = DensityEstimator(kernel=kernel, learn=False, conditions=[condition])
    with pytest.raises(ValueError, match=sentence):
        model.fit(X)
    counts = NonNegativeRegressor("poisson", kernel=kernel, learn=False, conditions=[condition])
    with pytest.raises(ValueError, match=sentence):
        counts.fit(X, np.ones(len(X)))
    least = NonNegativeRegressor(kernel=kernel, learn=False, conditions=[condition])
    assert least.fit(X, X[:, 0]).status_.converged  # the loss of zero is finite


@pytest.mark.parametrize("bound", ["equals", "at_least"])
def test_all_of_an_integral_on_a_part_is_nothing_on_the_rest(bound):
    random = np.random.default_rng(0)
    features, half = random.normal(size=(20, 3)), random.normal(size=(3, 2))
    part = half @ half.T
    rest = np.outer(features[0], features[0])
    sign = 1.0 if bound == "equals" else -1.0
    conditions = [
        Constraint([part + rest], 2.0),
        Constraint([sign * part], sign * 2.0, equality=bound == "equals"),
    ]
    loss = Residual(Squared(), 1.0 + random.random((20, 1)))
    problem = PSDProblem(loss, [PSDPart(features, 1e-2)], np.ones(20), constraints=conditions)
    found = solve(problem, tol=1e-8)
    matrix = found.model.matrices[0]
    assert found.status.converged
    assert abs(features[0] @ matrix @ features[0]) < 1e-14
    assert np.vdot(part, matrix) == pytest.approx(2.0, abs=1e-9)


def test_rows_beyond_all_of_a_density_are_told():
    # 92 s, to a gap of 3.2
    inside = Condition("integral", over=(2.0, 11.0), equals=1.0)
    density = DensityEstimator(kernel="laplacian", learn=False, conditions=[inside])
    with pytest.raises(ValueError, match="constraints must leave functions above zero"):
        density.fit(X)

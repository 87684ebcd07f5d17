"""Coupled outputs by an inverse for each: systems as they are defined, and fits without noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from fenchel import ExpectileRegressor, QuantileRegressor
from fenchel.design import Gram, factored
from fenchel.features import KernelRows
from fenchel.kernels import Computed, Matern
from fenchel.losses import Pinball
from fenchel.problem import Problem
from fenchel.solvers import Newton, WarmStart, newton_system, output_inverses
from fenchel.solvers.kept_factor import Unknowns
from fenchel.solvers.loop import Loop
from fenchel.solvers.newton_system import Kinks, solver_in_kinks
from fenchel.solvers.output_inverses import ByOutputs, OutputInverses, Stiffness, pays
from fenchel.solvers.smo import ascend
from fenchel.solvers.working_sets import OnSets

N = 90
COUPLING = np.linalg.cholesky(0.5 * np.eye(3) + 0.5)
SUMS = np.ones((3, 1))  # outputs that are one function
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))


def unknowns_of(coupling=COUPLING, missing=0, ratio=1.0, computed=False, without_row=False):
    values = Computed(X, Matern(1.0)) if computed else Matern(1.0)(X)
    y = np.sin(X[:, :1])
    problem = Problem(Pinball([0.1, 0.5, 0.9]), Gram(values, coupling), y, np.ones(N), 1e-3)
    places = np.setdiff1d(np.arange(3 * N), RNG.choice(3 * N, missing, replace=False))
    if without_row:
        places = places[places // 3 != 5]
    sizes = 30.0 * np.linspace(1.0, 2.0, N)[places // 3] * np.sqrt(ratio) ** (places % 3 == 1)
    return Unknowns(problem, places // 3, places % 3, sizes)


def system(unknowns):
    """I + U Uᵀ by its definition."""
    coupled = unknowns.problem.design.output_matrix
    outputs = coupled[np.ix_(unknowns.outputs, unknowns.outputs)]
    sizes = np.outer(unknowns.sizes, unknowns.sizes)
    return np.eye(len(sizes)) + Matern(1.0)(X[unknowns.rows]) * outputs * sizes


def solver_of(unknowns):
    return OutputInverses(unknowns.problem, Stiffness.of(unknowns).shared).solver(unknowns)


CASES = {
    "all": {},
    "computed": {"computed": True, "missing": 4},
    "some are missing": {"missing": 20},
    "many are missing": {"missing": 45},
    "a row has none": {"missing": 6, "without_row": True},
    "expectiles": {"ratio": 9.0},
    "expectiles, some missing": {"ratio": 9.0, "missing": 11},
    "one function": {"coupling": SUMS, "missing": 3},
}


@pytest.mark.parametrize("name", CASES)
def test_systems_are_solved_as_defined(name):
    unknowns = unknowns_of(**CASES[name])
    right = np.random.default_rng(1).normal(size=(len(unknowns.rows), 4))
    expected = np.linalg.solve(system(unknowns), right)
    found = solver_of(unknowns)(right)
    assert np.abs(found - expected).max() <= 1e-7 * np.abs(expected).max()


def test_when_it_pays():
    assert pays(unknowns_of())
    assert pays(unknowns_of(missing=20))
    assert pays(unknowns_of(missing=40))
    assert not pays(unknowns_of(missing=40), uses=1)
    assert not pays(unknowns_of(missing=90))
    assert pays(unknowns_of(missing=90), kept=True)
    assert not pays(unknowns_of(missing=150), kept=True)
    ratio = Stiffness.of(unknowns_of(ratio=1e4)).ratio
    assert ratio == pytest.approx(1e4)
    assert not pays(unknowns_of(), ratio)  # conjugate gradients take too long


def test_inverses_are_kept_while_the_stiffness_stays(sizes_of_factors, monkeypatch):
    monkeypatch.setattr(output_inverses, "_LEAST", 100)
    right = np.random.default_rng(1).normal(size=(3 * N, 2))
    first = unknowns_of()
    weight = np.linspace(1.0, 4.0, N)
    problem = Problem(first.problem.loss, first.problem.design, X[:, :1], weight, 1e-3)
    outputs = ByOutputs(problem)
    stiff = np.sqrt(weight)
    for step, missing, factors in ((2.0, 20, 3), (2.0, 31, 3), (2.0, 0, 3), (3.0, 8, 6)):
        unknowns = unknowns_of(missing=missing, without_row=missing == 20)
        sizes = step * stiff[unknowns.rows] * np.ones(len(unknowns.rows))
        unknowns = unknowns._replace(problem=problem, sizes=sizes)
        solve = outputs.solver(unknowns.rows, unknowns.vectors)
        assert sizes_of_factors == factors * [N]
        expected = np.linalg.solve(system(unknowns), right[: len(sizes)])
        np.testing.assert_allclose(solve(right[: len(sizes)]), expected, rtol=1e-7, atol=1e-9)
    one = Problem(Pinball(0.5), Gram(Matern(1.0)(X), np.eye(1)), X[:, :1], np.ones(N), 1e-3)
    monkeypatch.setattr(output_inverses, "_LEAST", 10)
    assert ByOutputs(one).solver(np.arange(N), np.ones((N, 1))) is None


@pytest.fixture
def sizes_of_factors(monkeypatch):
    sizes = []
    for module in (factored, newton_system):

        def noted(matrix, own=module.factor_lower):
            sizes.append(len(matrix))
            return own(matrix)

        monkeypatch.setattr(module, "factor_lower", noted)
    return sizes


def test_newton_asks_for_them_and_does_without(sizes_of_factors, monkeypatch):
    monkeypatch.setattr(output_inverses, "_LEAST", 100)
    unknowns = unknowns_of(missing=5)
    kinks = np.zeros((N, 3))
    kinks[unknowns.rows, unknowns.outputs] = unknowns.sizes**2
    arguments = unknowns.problem, Kinks(np.arange(N), kinks), unknowns.rows, unknowns.vectors
    right = np.ones((len(unknowns.rows), 2))
    expected = np.linalg.solve(system(unknowns), right)
    np.testing.assert_allclose(solver_in_kinks(*arguments)(right), expected, rtol=1e-6, atol=1e-9)
    assert sizes_of_factors == [N, N, N]
    monkeypatch.setattr(output_inverses, "_MOST_STEPS", 0)
    with pytest.raises(LinAlgError, match="do not end"):
        solver_of(unknowns)(right)
    np.testing.assert_allclose(solver_in_kinks(*arguments)(right), expected, rtol=1e-6, atol=1e-9)
    assert sizes_of_factors[-1] == len(unknowns.rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [QuantileRegressor, ExpectileRegressor])
def test_rows_without_noise(kind, sizes_of_factors):
    """All coordinates are free, as no residual is far from zero: few steps, and small factors."""
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(600, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    given = {"learn": False, "alpha": 1e-7, "kernel": Matern(1.0, 1.5)}
    model = kind([0.1, 0.5, 0.9], features=KernelRows(stored=False), **given).fit(X, y)
    assert model.status_.converged
    assert max(sizes_of_factors) <= 600
    assert model.n_iter_ <= 10
    features = kind([0.1, 0.5, 0.9], features="cholesky", solver=Newton(), **given).fit(X, y)
    unit = model.certificate_.unit
    assert abs(model.certificate_.dual - features.certificate_.dual) <= 2e-6 * unit


def test_an_ascent_that_ends_worse_than_it_would_begin_without_a_start_begins_without(monkeypatch):
    problem = unknowns_of(computed=True).problem
    good = Newton(tol=1e-3).solve(problem)
    bad = replace(good, dual=np.where(good.dual > 0.0, 0.9, -0.1))
    begun = []
    monkeypatch.setattr(OnSets, "run", lambda ascent, slope: begun.append(ascent.dual.any()))
    for start in (good, bad):
        ascend(problem, WarmStart(start.dual, start.offset), 1e-3, Loop(1e-6, None))
    assert begun == [True, True, False]

"""The system of a Newton step, against its definition by products with Q."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.losses import Pinball
from fenchel.positive import LinearPart, PSDPart, PSDProblem, Residual
from fenchel.positive._solution import start_of
from fenchel.positive._system import Curvature, NewtonSystem

N, P, RIDGE = 70, 3, 0.3
DOWN, UP, ALL = np.array([-1.0, 0.0, 0.0]), np.array([0.0, 0.5, 1.0]), np.ones(P)


def problem_of(random):
    features = random.normal(size=(N, 3))
    loss = Residual(Pinball([0.2, 0.5, 0.9]), random.normal(size=(N, 1)), np.ones(N), P)
    parts = [PSDPart(features, 0.1, 0.01, along) for along in (DOWN, UP)]
    weight = random.uniform(0.5, 2.0, N) / N
    line = LinearPart(random.normal(size=(N, 4)), 0.2, ALL)
    return PSDProblem(loss, parts, weight, [line], offsets=np.ones((P, 1)))


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("some", [False, True])
def test_a_solution_solves_the_system(diagonal, some):
    random = np.random.default_rng(0)
    problem = problem_of(random)
    rows = np.flatnonzero(random.random(N) < 0.6) if some else np.arange(N)
    roots = random.normal(size=(len(rows), P, P))
    blocks = roots @ roots.transpose(0, 2, 1)
    if diagonal:
        blocks = np.einsum("ijj->ij", blocks)
    spectra = start_of(problem, None, 0.1).spectra
    curvature = Curvature(problem, spectra, np.ones((N, P)))
    system = NewtonSystem(curvature, rows, blocks, RIDGE)
    assert not system.in_rows
    right, own = random.normal(size=curvature.width), random.normal(size=1)
    w, b, _ = system.solve(right, own)

    change = curvature.predict(w) - problem.outward @ b  # Q w - O b
    weighted = np.zeros((N, P))
    if diagonal:
        weighted[rows] = blocks * change[rows]
    else:
        weighted[rows] = np.einsum("ijk,ik->ij", blocks, change[rows])
    pulled = curvature.pull(weighted / problem.weight[:, None])
    np.testing.assert_allclose(w + pulled, right, atol=1e-9)
    np.testing.assert_allclose(
        -problem.outward.T @ weighted.sum(axis=0) + RIDGE * b, own, atol=1e-9
    )

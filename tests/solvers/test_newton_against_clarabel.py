"""The Newton solver against an independent conic solver on random problems."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from conic import conic_optimum
from fenchel.design import Plain
from fenchel.losses import Absolute, Huber, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.problem import Problem
from fenchel.solvers import Newton

TOL = 1e-7
REFEREE = 5e-8  # what the referee may be off by, in units of the baseline
LEVELS = {1: [0.3], 3: [0.5, 0.1, 0.8], 5: [0.1, 0.25, 0.5, 0.75, 0.95]}
LOSSES = {
    "squared": lambda p: Squared(),
    "absolute": lambda p: Absolute(),
    "pinball": lambda p: Pinball(LEVELS[p]),
    "squared pinball": lambda p: SquaredPinball(LEVELS[p]),
    "huber": lambda p: Huber(0.4),
    "l2 norm": lambda p: L2Norm(),
    "huber of vectors": lambda p: Squared().huber(0.6, 2),
}
STRENGTHS = {"large C": 1e-4, "small C": 0.3}


def coupling_of(name, p):
    if name == "identity":
        return np.eye(p)
    if name == "rank one":
        return np.ones((p, 1))
    levels = np.array(LEVELS[p])
    values, vectors = np.linalg.eigh(np.exp(-2.0 * np.subtract.outer(levels, levels) ** 2))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def random_problem(loss, p, coupling, alpha, fit_intercept, weighted, n=30, rank=7):
    seed = [p, len(coupling), int(1e6 * alpha), fit_intercept, weighted]
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, rank)) / np.sqrt(rank)
    columns = 1 if isinstance(loss, (Pinball, SquaredPinball)) else p
    targets = 1.0 + features @ rng.normal(size=(rank, columns)) + rng.normal(size=(n, columns))
    weight = rng.uniform(0.1, 2.0, n) if weighted else np.ones(n)
    design = Plain(features, coupling_of(coupling, p))
    return Problem(loss, design, targets, weight, alpha, fit_intercept)


@pytest.mark.parametrize("p", [1, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("name", LOSSES)
def test_agrees_with_clarabel(name, epsilon, p):
    epsilon *= np.sqrt(p)  # residuals of more outputs are longer
    loss = LOSSES[name](p).insensitive(epsilon)
    couplings = ("identity",) if p == 1 else ("identity", "gaussian", "rank one")
    n_inside = 0
    designs = product(couplings, STRENGTHS, (True, False))
    for index, (coupling, strength, fit_intercept) in enumerate(designs):
        weighted = (index // 2 + fit_intercept) % 2 == 0
        problem = random_problem(loss, p, coupling, STRENGTHS[strength], fit_intercept, weighted)
        optimum = conic_optimum(problem)
        unit = problem.baseline
        solution = Newton(tol=TOL).solve(problem)
        found = solution.certificate
        design = f"{coupling} coupling, {strength}, {fit_intercept=}, {weighted=}"

        # the referee knows the optimum
        assert -1e-12 * unit <= optimum.value - optimum.lower + REFEREE * unit, design
        assert optimum.value - optimum.lower <= REFEREE * unit, design
        # the library agrees, from both sides
        assert solution.status.converged, design
        assert abs(found.primal - optimum.value) <= (TOL + REFEREE) * unit, design
        assert abs(found.dual - optimum.value) <= (TOL + REFEREE) * unit, design
        assert found.dual <= optimum.value + REFEREE * unit, design
        assert found.primal >= optimum.lower - REFEREE * unit, design
        # the certificate is about the point returned, and consistent
        assert problem.primal(solution.weights, solution.offset) == pytest.approx(found.primal)
        assert problem.dual(solution.dual) == pytest.approx(found.dual)
        assert -1e-13 * abs(found.primal) <= found.gap <= TOL * unit, design
        assert found.relative_gap == pytest.approx(found.gap / unit)
        # the library's value of the referee's model is the referee's value
        assert abs(problem.primal(optimum.weights, optimum.offset) - optimum.value) <= (
            REFEREE * unit
        ), design
        # feasibility
        assert found.feasibility <= 1e-12, design
        if fit_intercept:
            total = problem.sample_weight @ np.abs(solution.dual)
            assert np.all(np.abs(problem.sample_weight @ solution.dual) <= 1e-12 * total), design
        else:
            np.testing.assert_array_equal(solution.offset, 0.0)
        if epsilon:
            # rows well inside the tube have no dual vector at all
            predicted = problem.design.values(solution.weights) + solution.offset
            length = np.linalg.norm(problem.targets - predicted, axis=1)
            inside = length <= 0.95 * epsilon
            n_inside += np.count_nonzero(inside)
            assert not np.any(solution.dual[inside]), design
            assert np.all(np.any(solution.dual[length >= 1.05 * epsilon] != 0.0, axis=1)), design
    assert n_inside > 0 or epsilon == 0.0

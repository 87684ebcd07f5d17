"""The problem and its certificate, by definition: a dual point bounds every model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from designs import as_gram, fresh
from fenchel.design import Gram, Plain
from fenchel.losses import Absolute, Huber, L2Norm, Pinball, Squared, SquaredPinball
from fenchel.problem import Problem

LEVELS = [0.2, 0.5, 0.9]
LOSSES = {
    "squared": Squared(),
    "absolute": Absolute(),
    "pinball": Pinball(LEVELS),
    "squared pinball": SquaredPinball(LEVELS),
    "huber": Huber(0.3),
    "length": L2Norm(),
    "huber of vectors": Squared().huber(0.5, 2),
    "insensitive squared": Squared().insensitive(0.4),
    "insensitive pinball": Pinball(LEVELS).insensitive(0.4),
    "insensitive squared pinball": SquaredPinball(LEVELS).insensitive(0.4),
    "insensitive huber": Huber(0.3).insensitive(0.4),
    "insensitive length": L2Norm().insensitive(0.4),
}
# where the conjugate is finite, from the definitions: box, ball or everything
INSIDE = {
    "absolute": lambda b: np.abs(b).max(axis=1) <= 1.0,
    "pinball": lambda b: ((b <= LEVELS) & (b >= np.subtract(LEVELS, 1.0))).all(axis=1),
    "huber": lambda b: np.abs(b).max(axis=1) <= 0.3,
    "length": lambda b: np.linalg.norm(b, axis=1) <= 1.0,
    "huber of vectors": lambda b: np.linalg.norm(b, axis=1) <= 0.5,
}
ROUNDING = 1e-12


def inside(name, dual):
    """Rows in the domain of the conjugate, up to rounding."""
    check = INSIDE.get(name.removeprefix("insensitive "))
    return np.full(len(dual), True) if check is None else check(dual * (1.0 - ROUNDING))


def random_problem(loss, *, n=25, seed=0, fit_intercept=True, kind=Plain, **change):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 6)) / np.sqrt(6)
    targets, coupling = rng.normal(size=(n, 3)), rng.normal(size=(3, 2))
    problem = Problem(
        loss=loss,
        design=kind(features @ features.T if kind is Gram else features, coupling),
        targets=targets,
        sample_weight=rng.uniform(0.3, 2.0, n),
        alpha=0.05,
        fit_intercept=fit_intercept,
    )
    return replace(problem, **change)


def random_models(problem, rng):
    """Models of all sizes, around nothing and around what random dual points stand for."""
    shape = problem.design.zero().shape
    for size in (0.0, 0.01, 0.3, 1.0, 30.0):
        offset = size * rng.normal(size=3) if problem.fit_intercept else np.zeros(3)
        yield size * rng.normal(size=shape), offset
        linked = problem.link(problem.feasible(size * rng.normal(size=problem.targets.shape)))
        yield linked, problem.minimizing_offset(linked)


@pytest.mark.parametrize("kind", [Plain, Gram])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_weak_duality(name, fit_intercept, kind):
    problem = random_problem(LOSSES[name], fit_intercept=fit_intercept, kind=kind)
    rng = np.random.default_rng(1)
    objectives = [problem.primal(*model) for model in random_models(problem, rng)]
    bounds = []
    for size in (0.0, 1e-3, 0.1, 0.5, 2.0, 100.0):
        for towards_targets in (0.0, 0.0, 1.0, 1.0, 10.0):
            noise = rng.normal(size=problem.targets.shape)
            point = problem.feasible(size * (towards_targets * problem.targets + noise))
            bounds.append(problem.dual(point))
    assert np.isfinite(bounds).all()
    assert max(bounds) > 0.0  # not vacuous: better than the point 0
    assert max(bounds) <= min(objectives) * (1.0 + ROUNDING)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [1e-3, 0.3, 10.0, 1e6])
def test_feasible(name, fit_intercept, size):
    problem = random_problem(LOSSES[name], fit_intercept=fit_intercept)
    rng = np.random.default_rng(2)
    wild = size * rng.normal(size=(25, 3))
    wild[rng.random(25) < 0.3] = 0.0
    wild[rng.random((25, 3)) < 0.2] = 0.0
    before = wild.copy()
    point = problem.feasible(wild)
    np.testing.assert_array_equal(wild, before)
    assert inside(name, point).all()
    assert np.isfinite(problem.loss.conjugate(point)).all()
    np.testing.assert_array_equal(point[wild == 0.0], 0.0)
    assert np.all(point * wild >= 0.0)  # signs are kept
    if fit_intercept:
        total = problem.weight @ np.abs(point)
        assert np.all(np.abs(problem.weight @ point) <= ROUNDING * total)
        assert total.min() > 0.0
    # a point that is feasible already stays
    np.testing.assert_allclose(problem.feasible(point), point, rtol=1e-11)


def test_feasible_where_all_have_one_sign():
    problem = random_problem(LOSSES["pinball"])
    np.testing.assert_array_equal(problem.feasible(np.full((25, 3), 0.1)), 0.0)
    through_zero = replace(problem, fit_intercept=False)
    np.testing.assert_array_equal(through_zero.feasible(np.full((25, 3), 0.1)), 0.1)


@pytest.mark.parametrize("kind", [Plain, Gram])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_certificate_is_of_feasible_points_only(name, fit_intercept, kind):
    problem = random_problem(LOSSES[name], fit_intercept=fit_intercept, kind=kind)
    wild = 5.0 * np.random.default_rng(3).normal(size=(25, 3)) + 1.0  # neither box nor balance
    certified = problem.certify(wild)
    certificate, dual = certified.certificate, certified.dual
    assert inside(name, dual).all()
    if fit_intercept:
        total = problem.weight @ np.abs(dual)
        assert np.all(np.abs(problem.weight @ dual) <= ROUNDING * total)
    assert certificate.feasibility <= ROUNDING
    assert certificate.dual == pytest.approx(problem.dual(dual), rel=1e-12)
    assert certificate.primal == pytest.approx(
        problem.primal(certified.weights, certified.offset), rel=1e-12
    )
    assert certificate.gap == certificate.primal - certificate.dual
    assert certificate.gap > 0.0
    assert certificate.relative_gap == pytest.approx(certificate.gap / problem.baseline)
    np.testing.assert_allclose(certified.weights, problem.link(dual), rtol=1e-12, atol=1e-300)
    if not fit_intercept:
        np.testing.assert_array_equal(certified.offset, 0.0)
    # the offset is the best one for those weights
    rng = np.random.default_rng(4)
    if fit_intercept:
        for size in (1e-4, 1e-2, 1.0):
            other = certified.offset + size * rng.normal(size=3)
            assert problem.primal(certified.weights, other) >= certificate.primal * (1 - 1e-12)


def test_certificate_of_a_given_model():
    problem = random_problem(LOSSES["pinball"])
    weights, offset = np.ones((6, 2)), np.array([1.0, 2.0, 3.0])
    certified = problem.certify(np.zeros((25, 3)), offset, weights)
    assert certified.certificate.primal == problem.primal(weights, offset)
    assert certified.certificate.dual == 0.0
    np.testing.assert_array_equal(certified.weights, weights)
    np.testing.assert_array_equal(certified.offset, offset)


def test_objectives_by_definition():
    """Row by row, with loops, for the pinball loss."""
    problem = random_problem(LOSSES["pinball"])
    rng = np.random.default_rng(5)
    weights, offset = rng.normal(size=(6, 2)), rng.normal(size=3)
    share = problem.sample_weight / problem.sample_weight.sum()
    mean_loss = 0.0
    for i in range(25):
        function = problem.design.coupling @ weights.T @ problem.design.features[i]
        residual = problem.targets[i] - function - offset
        mean_loss += share[i] * sum(
            max(level * r, (level - 1.0) * r) for level, r in zip(LEVELS, residual, strict=True)
        )
    expected = 0.5 * problem.alpha * np.sum(weights**2) + mean_loss
    assert problem.primal(weights, offset) == pytest.approx(expected, rel=1e-12)

    dual = problem.feasible(rng.normal(size=(25, 3)))
    coefficients = share[:, None] / problem.alpha * dual
    gram = problem.design.features @ problem.design.features.T
    output = problem.design.coupling @ problem.design.coupling.T
    expected = np.sum(coefficients * problem.targets)
    expected -= 0.5 * np.sum(coefficients * (gram @ coefficients @ output))
    assert problem.dual(dual) == pytest.approx(problem.alpha * expected, rel=1e-12)
    assert problem.dual(np.full((25, 3), 2.0)) == -np.inf


def test_gram_problem_is_the_same_problem():
    problem = random_problem(LOSSES["insensitive pinball"])
    gram = as_gram(problem)
    wild = np.random.default_rng(6).normal(size=(25, 3))
    first, second = problem.certify(wild).certificate, gram.certify(wild).certificate
    assert second.primal == pytest.approx(first.primal, rel=1e-10)
    assert second.dual == pytest.approx(first.dual, rel=1e-10)
    assert gram.baseline == pytest.approx(problem.baseline, rel=1e-12)
    rows = np.array([3, 7, 20, 21])
    assert gram.subset(rows).certify(wild[rows]).certificate.dual == pytest.approx(
        problem.subset(rows).certify(wild[rows]).certificate.dual, rel=1e-10
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_baseline_is_the_best_constant(name, fit_intercept):
    problem = random_problem(LOSSES[name], fit_intercept=fit_intercept)
    assert problem.baseline == problem.primal(problem.design.zero(), problem.best_constant)
    rng = np.random.default_rng(7)
    if not fit_intercept:
        np.testing.assert_array_equal(problem.best_constant, 0.0)
        return
    for size in (1e-4, 1e-2, 1.0):
        other = problem.best_constant + size * rng.normal(size=3)
        assert problem.primal(problem.design.zero(), other) >= problem.baseline * (1 - 1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9, 1e-200])
@pytest.mark.parametrize("name", LOSSES)
def test_baseline_of_constant_targets_is_zero(name, value):
    problem = random_problem(LOSSES[name], targets=np.full((25, 3), value))
    assert problem.baseline == 0.0
    certificate = problem.certify(np.zeros((25, 3)), problem.best_constant).certificate
    assert certificate.relative_gap == 0.0
    assert certificate.dual == 0.0


def test_blocks_change_nothing():
    problem = random_problem(LOSSES["insensitive pinball"])
    blocks = fresh(problem)
    blocks.design.blocks.block_rows = 4
    assert list(blocks.design.blocks)[-1] == slice(24, 25)
    wild = np.random.default_rng(8).normal(size=(25, 3))
    first, second = problem.certify(wild), blocks.certify(wild)
    np.testing.assert_allclose(second.weights, first.weights, rtol=1e-12, atol=1e-14)
    assert second.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-12)
    assert second.certificate.dual == pytest.approx(first.certificate.dual, rel=1e-12)


def test_scale_of_the_weights_does_not_matter():
    problem = random_problem(LOSSES["huber"])
    scaled = replace(problem, sample_weight=1e7 * problem.sample_weight)
    wild = np.random.default_rng(9).normal(size=(25, 3))
    first, second = problem.certify(wild).certificate, scaled.certify(wild).certificate
    assert second.primal == pytest.approx(first.primal, rel=1e-12)
    assert second.dual == pytest.approx(first.dual, rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("radius", [None, 2.0])
def test_the_best_constant_is_that_of_the_point_zero(name, fit_intercept, radius):
    problem = random_problem(LOSSES[name], fit_intercept=fit_intercept)
    problem = replace(problem, radius=radius)
    found = problem.constant()
    expected = problem.certify(np.zeros((25, 3)), problem.best_constant)
    np.testing.assert_array_equal(found.dual, expected.dual)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.offset, expected.offset)
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-14)
    assert found.certificate.dual == expected.certificate.dual
    assert found.certificate.feasibility == 0.0


@pytest.mark.parametrize("name", LOSSES)
def test_the_objective_with_the_best_offset_is_that_of_the_model(name):
    problem = random_problem(LOSSES[name], seed=3)
    found = problem.certify(0.3 * np.random.default_rng(3).normal(size=(25, 3)))
    assert np.abs(found.offset).max() > 0.0
    expected = problem.primal(found.weights, found.offset)
    assert found.certificate.primal == pytest.approx(expected, rel=1e-13)

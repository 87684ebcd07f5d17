"""The closed form against dense linear algebra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from designs import as_gram, with_coupling
from fenchel.design import Plain
from fenchel.losses import Absolute, Huber, Pinball, Squared, SquaredPinball
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm, Newton, make_solver

SHAPES = {"more rows": (30, 6), "as many": (12, 12), "more features": (10, 25)}


def random_problem(n=30, rank=6, p=1, *, coupling=None, alpha=1e-2, fit_intercept=True):
    rng = np.random.default_rng([n, rank, p])
    return Problem(
        loss=Squared(),
        design=Plain(
            rng.normal(size=(n, rank)) / np.sqrt(rank), np.eye(p) if coupling is None else coupling
        ),
        targets=2.0 + rng.normal(size=(n, p)),
        sample_weight=rng.uniform(0.2, 3.0, n),
        alpha=alpha,
        fit_intercept=fit_intercept,
    )


def dense_solution(problem):
    """Dual coefficients and offset of vec(Y) = (B ⊗ K + αN I ⊗ diag(1/s)) vec(a) + b ⊗ 1."""
    gram = problem.design.features @ problem.design.features.T
    output = problem.design.coupling @ problem.design.coupling.T
    weight = problem.sample_weight
    n, p = problem.targets.shape
    ridge = problem.alpha * weight.sum() / weight
    system = np.kron(output, gram) + np.kron(np.eye(p), np.diag(ridge))
    right = problem.targets.T.ravel()
    if not problem.fit_intercept:
        return np.linalg.solve(system, right).reshape(p, n).T, np.zeros(p)
    ones = np.kron(np.eye(p), np.ones((n, 1)))
    bordered = np.block([[system, ones], [ones.T, np.zeros((p, p))]])
    solved = np.linalg.solve(bordered, np.concatenate([right, np.zeros(p)]))
    return solved[: n * p].reshape(p, n).T, solved[n * p :]


def check_against_dense(problem, solved=None):
    solution = ClosedForm().solve(solved or problem)
    coefficients, offset = dense_solution(problem)
    scale = np.abs(coefficients).max()
    np.testing.assert_allclose(
        problem.weight[:, None] * solution.dual, coefficients, atol=1e-9 * scale
    )
    np.testing.assert_allclose(solution.offset, offset, atol=1e-9)
    gram = problem.design.features @ problem.design.features.T
    expected = gram @ coefficients @ problem.design.coupling @ problem.design.coupling.T
    found = (solved or problem).design.values(solution.weights)
    np.testing.assert_allclose(found, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
    assert solution.status.converged
    assert abs(solution.certificate.relative_gap) <= 1e-10
    assert solution.n_iter == 1
    assert len(solution.history) == 1


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("alpha", [1e-5, 1e-2, 1e3])
def test_one_output(alpha, shape, fit_intercept):
    problem = random_problem(*SHAPES[shape], alpha=alpha, fit_intercept=fit_intercept)
    check_against_dense(problem)
    check_against_dense(problem, as_gram(problem))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rank", ["full", "one", "two of three"])
def test_coupled_outputs(rank, shape, fit_intercept):
    mixing = np.random.default_rng(7).normal(size=(3, 3))
    coupling = {"full": mixing, "one": np.ones((3, 1)), "two of three": mixing[:, :2]}[rank]
    problem = random_problem(*SHAPES[shape], 3, coupling=coupling, fit_intercept=fit_intercept)
    check_against_dense(problem)
    check_against_dense(problem, as_gram(problem))


def test_without_weights_it_is_the_textbook():
    problem = replace(random_problem(12, 12), sample_weight=np.ones(12), fit_intercept=False)
    solution = ClosedForm().solve(problem)
    gram = problem.design.features @ problem.design.features.T
    textbook = np.linalg.solve(gram + 12 * problem.alpha * np.eye(12), problem.targets)
    np.testing.assert_allclose(problem.weight[:, None] * solution.dual, textbook, rtol=1e-9)


def test_one_column_of_targets_serves_every_output():
    coupling = np.random.default_rng(2).normal(size=(3, 3))
    problem = with_coupling(random_problem(p=1), coupling)
    solution = ClosedForm().solve(problem)
    wide = replace(problem, targets=np.repeat(problem.targets, 3, axis=1))
    np.testing.assert_allclose(solution.dual, ClosedForm().solve(wide).dual, atol=1e-12)
    check_against_dense(wide)


def test_newton_agrees():
    problem = random_problem(p=3)
    exact = ClosedForm().solve(problem).certificate
    newton = Newton(1e-9).solve(problem).certificate
    assert newton.primal == pytest.approx(exact.primal, abs=1e-9 * problem.baseline)


def test_calls_back_once():
    seen = []
    solution = ClosedForm().solve(random_problem(), callback=seen.append)
    assert seen == solution.history


@pytest.mark.parametrize(
    "loss",
    [Absolute(), Pinball(0.5), SquaredPinball(0.5), Huber(1.0), Squared().insensitive(0.1)],
    ids=lambda loss: type(loss).__name__,
)
def test_refuses_other_losses_and_names_a_solver_that_would_do(loss):
    problem = replace(random_problem(), loss=loss)
    sentence = ClosedForm().requires(problem)
    assert sentence is not None
    assert "squared loss" in sentence
    assert "solver='newton'" in sentence
    with pytest.raises(ValueError, match=r"solver='closed_form' cannot .* needs the squared loss"):
        make_solver("closed_form", problem, 1e-6, 10)
    assert isinstance(make_solver("auto", problem, 1e-6, 10), Newton)
    assert isinstance(make_solver("auto", random_problem(), 1e-6, 10), ClosedForm)


def test_rounding_is_admitted():
    """A gap that rounding errors leave above tol is not called convergence."""
    problem = random_problem(alpha=1e-2)
    solution = ClosedForm(tol=1e-300).solve(problem)
    if abs(solution.certificate.relative_gap) > 1e-300:
        assert not solution.status.converged
        assert "increase alpha" in solution.status.message
    else:
        assert solution.status.converged


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(40, 6), (30, 12)])
def test_singular_values_keep_digits_that_squares_lose(shape, fit_intercept):
    """Two columns that are nearly one, and a strength that hardly counts."""
    problem = random_problem(*shape, p=2, alpha=1e-20, fit_intercept=fit_intercept)
    features = problem.design.features.copy() + 3.0
    features[:, 1] = features[:, 0] + 1e-6 * features[:, 1]
    problem = replace(problem, design=Plain(features, np.eye(2)))
    found = ClosedForm(1e-12, singular_values=True).solve(problem)
    assert "by singular values" in found.status.message
    root = np.sqrt(problem.sample_weight / problem.sample_weight.sum())[:, None]
    columns = [features, np.ones((len(features), 1))][: 2 if fit_intercept else 1]
    design = root * np.hstack(columns)
    best = np.linalg.lstsq(design, root * problem.targets, rcond=1e-15)[0]
    expected = 0.5 * np.sum((root * problem.targets - design @ best) ** 2)
    assert found.certificate.primal == pytest.approx(expected, rel=1e-6, abs=1e-10)
    assert found.certificate.dual <= expected + 1e-10


def test_singular_values_are_not_asked_where_they_are_not_needed():
    problem = random_problem()
    plain, careful = ClosedForm(), ClosedForm(singular_values=True)
    np.testing.assert_array_equal(careful.solve(problem).dual, plain.solve(problem).dual)
    assert careful.requires(problem) is None
    assert "needs features" in careful.requires(as_gram(problem))
    coupled = random_problem(p=2, coupling=np.array([[1.0, 0.0], [0.5, 1.0]]))
    assert plain.requires(coupled) is None
    assert "independent outputs" in careful.requires(coupled)

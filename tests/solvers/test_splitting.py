"""The splitting on its own: nearly interpolating fits, known values, the spectrum that is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from fenchel.design import Gram, Masked, Plain
from fenchel.losses import CurveHuber, Pinball, Squared
from fenchel.problem import Problem
from fenchel.solvers import Splitting, WarmStart

N, P = 14, 10


def curves(alpha, kappa, n=N, p=P, seed=0):
    rng = np.random.default_rng(seed)
    X, theta = rng.uniform(size=(n, 2)), np.linspace(0.0, 1.0, p)
    gram = np.exp(-2.0 * np.sum((X[:, None] - X) ** 2, axis=2))
    coupling = np.linalg.cholesky(np.exp(-10.0 * np.abs(theta[:, None] - theta)) / p)
    Y = np.sin(6.0 * (theta + X[:, :1])) * X[:, 1:] + 0.05 * rng.standard_normal((n, p))
    Y[:2] *= -3.0
    loss = CurveHuber(kappa, 1, np.full(p, 1.0 / p))
    design = Gram(gram, coupling)
    return Problem(loss, design, Y / np.sqrt(p), np.ones(n), alpha, fit_intercept=False)


def exact_dual(problem):
    """The dual of Huber losses point by point: least squares between bounds."""
    n, p = problem.n_rows, problem.n_outputs
    kernel = np.kron(problem.design.gram, problem.design.coupling @ problem.design.coupling.T)
    root = np.linalg.cholesky(np.eye(n * p) + kernel / (n * problem.alpha)).T
    given = np.linalg.solve(root.T, problem.targets.ravel())
    bound = problem.loss.kappa / np.sqrt(p)
    found = lsq_linear(root, given, (-bound, bound), method="bvls", tol=1e-14, max_iter=5000)
    assert found.success
    beta = found.x
    value = beta @ problem.targets.ravel() - 0.5 * np.sum((root @ beta) ** 2)
    return value / n, beta.reshape(n, p)


@pytest.mark.parametrize("alpha", [1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("share", [0.03, 0.3])
def test_bounded_duals_are_those_of_least_squares_between_bounds(alpha, share):
    kappa = share * np.abs(curves(alpha, 1.0).targets).max() * np.sqrt(P)
    problem = curves(alpha, kappa)
    best, beta = exact_dual(problem)
    solution = Splitting(1e-9, 2000).solve(problem)
    assert solution.status.converged, solution.status.message
    assert solution.certificate.dual == pytest.approx(best, abs=2e-9 * problem.baseline)
    assert np.sum((solution.dual - beta) ** 2) <= 2.0 * N * solution.certificate.gap


@pytest.mark.parametrize("bound", [3.0, 30.0, 100.0, 1000.0])
def test_nearly_interpolated_curves_take_few_turns(bound):
    """Residuals are far larger than dual points there: it took 200 to more than 400 turns."""
    problem = curves(1e-9, 40 * bound * 1e-9, n=40, p=30)
    solution = Splitting(1e-3, 100).solve(problem)
    assert solution.status.converged, solution.status.message


@pytest.mark.parametrize(("alpha", "limit"), [(1e-9, 3), (1e-9, 400), (1e-3, 400)])
def test_the_objective_is_that_of_the_weights(alpha, limit):
    problem = curves(alpha, 3e3 * alpha, n=40, p=30)
    solution = Splitting(1e-6, limit).solve(problem)
    assert solution.status.converged == (limit == 400)
    residual = problem.targets - problem.design.values(solution.weights.copy())
    penalty = 0.5 * alpha * np.vdot(solution.weights, problem.targets - residual)
    size = np.abs(residual) * np.sqrt(30.0)
    kappa = problem.loss.kappa
    huber = np.where(size <= kappa, 0.5 * size**2, kappa * (size - 0.5 * kappa))
    objective = penalty + huber.mean()
    assert solution.certificate.primal == pytest.approx(objective, abs=1e-9 * problem.baseline)


def test_spectrum_is_kept_for_equal_weights():
    problem = curves(1e-3, 0.1)
    for design in (problem.design, Plain(problem.design.gram, problem.design.coupling)):
        kept = design.spectrum(np.ones(N))
        assert design.spectrum(np.ones(N)) is kept
        weights = np.linspace(1.0, 2.0, N)
        other = design.spectrum(weights)
        root = np.sqrt(weights / weights.sum())[:, None]
        gram = problem.design.gram
        matrix = gram @ gram.T if isinstance(design, Plain) else gram
        again = (other.vectors * other.values) @ other.vectors.T
        np.testing.assert_allclose(again, root * matrix * root.T, atol=1e-10)


def test_known_values_stand_for_a_product():
    problem = curves(1e-3, 0.1)
    certified = problem.certify(np.zeros((N, P)))
    source = np.random.default_rng(1).standard_normal((N, P))
    values = problem.design.values(problem.link(source))
    found = problem.with_model(certified.dual, certified.certificate.dual, source)
    assert problem.estimate(source, values) == pytest.approx(found.certificate.primal, rel=1e-14)
    twice = problem.estimate(source, 2.0 * values)
    assert twice != pytest.approx(found.certificate.primal, rel=1e-3)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3])
def test_a_chain_of_outputs_takes_the_turns_of_its_eigenbases(alpha, gaps):
    problem = curves(alpha, 0.1, n=30, p=40)
    assert problem.design.output_chain is not None
    dense = Gram(problem.design.gram, problem.design.coupling)
    dense.output_chain = None
    designs = [problem.design, dense]
    if gaps:
        mask = (np.random.default_rng(3).uniform(size=(30, 40)) > 0.2).astype(float)
        designs = [Masked(design, mask) for design in designs]
        problem = replace(problem, targets=mask * problem.targets)
    one, other = (
        Splitting(1e-8, 400, small=0).solve(replace(problem, design=design)) for design in designs
    )
    assert one.status.converged
    assert abs(one.n_iter - other.n_iter) <= 2
    gap = one.certificate.gap + other.certificate.gap
    assert abs(one.certificate.primal - other.certificate.primal) <= gap
    assert np.sum((one.dual - other.dual) ** 2) <= 2.0 * 30 * gap


@pytest.mark.parametrize("alpha", [1e-9, 1e-5])
@pytest.mark.parametrize("limit", [2, 30])
def test_models_of_stopped_fits_have_values_of_their_own(alpha, limit):
    """On the way values are known up to rounding; what is returned is computed anew."""
    problem = curves(alpha, 0.02, n=40, p=30)
    first = Splitting(1e-2, 400).solve(problem)
    start = WarmStart(first.nearby, first.offset, alpha)
    near = replace(problem, alpha=2.0 * alpha)
    solution = Splitting(1e-15, limit).solve(near, start)
    assert not solution.status.converged
    near.design._known.clear()
    assert near.primal(solution.weights, solution.offset) == solution.certificate.primal
    own = near.certify(solution.dual)
    assert solution.certificate.primal <= own.certificate.primal
    assert solution.certificate.dual == pytest.approx(own.certificate.dual, rel=1e-12)


def test_a_start_with_known_values_is_the_same_start():
    problem = curves(1e-3, 0.1)
    dual = np.random.default_rng(4).uniform(-0.02, 0.02, (N, P))
    values = problem.design.values(problem.link(dual))
    given = WarmStart(dual, np.zeros(P), 1e-3)
    one, other = (
        Splitting(1e-9).solve(problem, start) for start in (given, given._replace(values=values))
    )
    np.testing.assert_allclose(one.dual, other.dual, rtol=0.0, atol=1e-14)
    wrong = Splitting(1e-9).solve(problem, given._replace(values=3.0 * values))
    assert wrong.status.converged
    assert not np.array_equal(wrong.dual, one.dual)


def test_certificates_on_the_way_are_left_out_unless_a_callback_may_stop_there():
    """A callback sees one wherever else a gap is only estimated."""
    problem = curves(1e-9, 1e-4, n=40, p=30)
    start = WarmStart(np.zeros((40, 30)), np.zeros(30), 1e-9)
    seen = []
    alone = Splitting(1e-3, 300).solve(problem, start)
    watched = Splitting(1e-3, 300).solve(problem, start, seen.append)
    assert alone.status.converged
    assert watched.status.converged
    turns = [progress.iteration for progress in alone.history]
    assert len(turns) < len(seen)
    assert 10 <= np.diff(turns[:-1]).min() <= np.diff(turns).max() <= 20  # and one at the end


class Unchanged(Squared):
    """A prox that returns what it was given where nothing is to be done."""

    def conjugate_prox(self, point, step):
        point /= 1.0 + np.asarray(step)
        return point


def test_a_prox_may_work_in_place():
    problem = replace(curves(1e-3, 0.1), loss=Unchanged())
    one, other = (
        Splitting(1e-9).solve(each) for each in (problem, replace(problem, loss=Squared()))
    )
    assert one.status.converged
    np.testing.assert_allclose(one.dual, other.dual, rtol=0.0, atol=1e-14)


def test_certificates_come_often_at_first_and_every_ten_turns_later():
    """A search needs few turns for each of its fits, and should see at once that they are done.

    It was every ten turns all along.
    """
    seen = []
    problem = curves(1e-9, 1e-4, n=40, p=30)
    Splitting(1e-300, 80, small=0).solve(
        problem, None, lambda progress: seen.append(progress.iteration)
    )
    waits = np.diff(seen[1:])  # the first one is of the function zero
    assert seen[1] == 2
    assert waits.max() == 10
    assert all(wait <= max(3, turn // 2) for wait, turn in zip(waits, seen[2:], strict=True))


@pytest.mark.parametrize("same", [True, False])
def test_targets_may_be_one_column_for_all_outputs_and_in_any_order(same):
    problem, levels = curves(1e-3, 0.1), np.linspace(0.1, 0.9, P)
    column = problem.targets[:, :1]
    whole = np.repeat(column, P, axis=1)
    wanted = Splitting(1e-6).solve(replace(problem, loss=Pinball(levels), targets=whole))
    assert wanted.status.converged
    other = column if same else np.asfortranarray(whole)
    found = Splitting(1e-6).solve(replace(problem, loss=Pinball(levels), targets=other))
    np.testing.assert_array_equal(found.dual, wanted.dual)
    assert found.n_iter == wanted.n_iter

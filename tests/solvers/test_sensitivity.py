"""Derivatives of fits in all that they are made of, against differences of fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from differentiable import AFFINE, LOSSES, random_case, random_direction, solved
from fenchel.design import Masked, Plain
from fenchel.kernels import Gaussian
from fenchel.losses import Pinball, Squared
from fenchel.problem import Problem
from fenchel.solvers import Newton, newton_system, sensitivity_of
from fenchel.solvers import sensitivity as systems
from fenchel.solvers.smoothed import fit_smoothed, unit_step

STEP = 1e-4
ALLOWED = 1e-5
PER_LOSS = 13  # of 16 losses: 208 problems


def derivatives(case):
    """The derivative in everything, as random_direction names it."""
    problem, new = case.problem()
    found = sensitivity_of(problem, solved(problem), new, case.gradient)
    make, parameter, _ = LOSSES[case.name]
    targets = found.push if case.y.shape == found.push.shape else found.push.sum(axis=1)[:, None]
    return {
        "alpha": found.alpha(),
        "kernel": found.kernel(case.kernel, case.X, case.X_new, case.landmarks),
        "coupling": found.coupling(),
        "sample_weight": found.sample_weight(),
        "targets": targets,
        "loss": found.loss(make(parameter - 1e-6), make(parameter + 1e-6), 2e-6)
        if parameter
        else found.loss(make(-1e-6), make(1e-6), 2e-6),
    }


def differences(case, direction, size):
    high, low = (case.moved(side, direction).value() for side in (size, -size))
    return (high - low) / (2.0 * size)


def errors(name, seeds):
    """Relative errors along random directions, and how many problems are at kinks."""
    found, kinks = [], 0
    for seed in seeds:
        case = random_case(name, seed)
        direction = random_direction(case, np.random.default_rng(seed))
        parts = {
            key: float(np.vdot(value, direction[key])) for key, value in derivatives(case).items()
        }
        unit = np.linalg.norm(list(parts.values()))
        expected = differences(case, direction, STEP)
        if abs(expected - differences(case, direction, 0.5 * STEP)) > 0.1 * ALLOWED * unit:
            kinks += 1
            continue
        found.append(abs(sum(parts.values()) - expected) / unit)
    return np.array(found), kinks


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_differences(name):
    """In all parameters at once, on kernel rows and features, with and without an intercept."""
    found, kinks = errors(name, range(PER_LOSS))
    assert kinks <= PER_LOSS // 3
    assert found.max() < ALLOWED


def same_pieces(problem, one, other):
    """Whether the duals of two fits are on the same pieces of the prox, and β on that of P(β)."""
    step = unit_step(problem)
    jacobians = []
    for fit in (one, other):
        residual = problem.targets - problem.design.image(problem.weight[:, None] * fit.dual)
        point = fit.dual + step * (residual - fit.offset)
        jacobians.append(problem.loss.conjugate_prox_jacobian(point, step))
        signs = np.sign(problem.loss.conjugate_prox(point, step))
        if np.any(signs * fit.dual < 0.0):
            return False
    return np.array_equal(*jacobians)


def bounded_errors(name, seeds):
    """Error of loose derivatives over their bounds, and how many fits were on other pieces."""
    found, others = [], 0
    for seed in seeds:
        case = random_case(name, seed)
        problem, new = case.problem()
        loose, exact = Newton(10.0 ** -(2 + seed % 4)).solve(problem), solved(problem)
        if not same_pieces(problem, loose, exact):
            others += 1
            continue
        mine, best = (sensitivity_of(problem, fit, new, case.gradient) for fit in (loose, exact))
        rows = case.kernel, case.X, case.X_new, case.landmarks
        change = random_direction(case, np.random.default_rng(seed))["coupling"]
        wrong = [mine.alpha() - best.alpha(), *(mine.kernel(*rows) - best.kernel(*rows))]
        wrong.append(np.vdot(mine.coupling() - best.coupling(), change))
        bounds = [mine.error_of_alpha(), *mine.error_of_kernel(*rows)]
        bounds.append(mine.error_of_coupling(change))
        size = 1e-9 * np.abs([best.alpha(), *best.kernel(*rows), np.vdot(best.coupling(), change)])
        # bounds are made of differences that are good to 1e-6, predictions are of the size one
        found += list(np.abs(wrong) / (1.00001 * np.array(bounds) + size + 1e-12))
    return np.array(found), others


@pytest.mark.slow
@pytest.mark.parametrize("name", AFFINE)
def test_bound_from_the_gap_holds_where_no_piece_changes(name):
    found, others = bounded_errors(name, range(25))
    assert others <= 10
    assert found.max() <= 1.0
    assert found.max() > 1e-3  # it is not far off either


def test_bound_grows_with_the_gap():
    case = random_case("squared", 1)
    problem, new = case.problem()
    fit = solved(problem)
    certificate = replace(fit.certificate, dual=fit.certificate.primal - 1e-4)
    further = replace(certificate, dual=fit.certificate.primal - 4e-4)
    near, far = (
        sensitivity_of(problem, replace(fit, certificate=each), new, case.gradient)
        for each in (certificate, further)
    )
    assert far.error_of_alpha() == pytest.approx(2.0 * near.error_of_alpha())


@pytest.mark.parametrize("name", ["levels", "tube of levels", "own, a kink"])
def test_smoothed_fits(name):
    """The derivatives of a smoothed fit, in alpha, the kernel and the loss."""
    case = random_case(name, 3, kind="gram", fit_intercept=True)
    direction = random_direction(case, np.random.default_rng(0))
    direction = {key: np.zeros_like(value) for key, value in direction.items()} | {
        key: direction[key] for key in ("alpha", "kernel", "loss")
    }
    step = 5.0 * unit_step(case.problem()[0])

    def fitted(case):
        problem, new = case.problem()
        fit = fit_smoothed(problem, step, None, 1e-15)
        return problem, new, fit

    def value(case):
        problem, new, fit = fitted(case)
        values = new @ problem.design.feature_weights(fit.coef) + fit.offset
        return float(np.vdot(case.gradient, values))

    problem, new, fit = fitted(case)
    found = sensitivity_of(problem, fit, new, case.gradient, step)
    make, parameter, _ = LOSSES[name]
    expected = (
        (value(case.moved(STEP, direction)) - value(case.moved(-STEP, direction))) / 2 / STEP
    )
    moved = direction["alpha"] * found.alpha()
    moved += direction["kernel"] @ found.kernel(case.kernel, case.X, case.X_new)
    moved += direction["loss"] * found.loss(make(parameter), make(parameter + 1e-6), 1e-6)
    assert moved == pytest.approx(expected, rel=ALLOWED)
    assert np.isnan(found.error_of_alpha())


def many_rows(n=20_000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (n, 1))
    y = np.sin(X) + 0.3 * rng.normal(size=(n, 1))
    kernel, Z = Gaussian(0.7, length_scale_bounds=(0.1, 10.0)), np.linspace(-2, 2, 9)[:, None]
    root = np.linalg.cholesky(kernel(Z))
    features = np.linalg.solve(root, kernel(Z, X)).T
    problem = Problem(Squared(), Plain(features, np.eye(1)), y, np.ones(n), 1e-4)
    return problem, features[:3], (kernel, X, X[:3], Z)


def test_many_rows_need_no_square_array(monkeypatch):
    """Twenty thousand kinks are solved in nine weights."""
    problem, new, rows = many_rows()
    solution = Newton(1e-12).solve(problem)
    sizes, cholesky = [], newton_system.cholesky

    def noted(fill, size):
        sizes.append(size)
        return cholesky(fill, size)

    monkeypatch.setattr(newton_system, "cholesky", noted)
    found = sensitivity_of(problem, solution, new, np.ones((3, 1)))
    assert np.isfinite(found.kernel(*rows)).all()
    assert max(sizes) == 9


def test_both_systems_agree(monkeypatch):
    problem, new, rows = many_rows(300)
    fit = Newton(1e-13).solve(problem)
    inside = sensitivity_of(problem, fit, new, np.ones((3, 1)))
    monkeypatch.setattr(systems, "_FEW", 0)
    outside = sensitivity_of(problem, fit, new, np.ones((3, 1)))
    np.testing.assert_allclose(outside.push, inside.push, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(outside.offset, inside.offset, rtol=1e-7)
    assert outside.kernel(*rows) == pytest.approx(inside.kernel(*rows), rel=1e-8)


def test_an_offset_that_nothing_holds_does_not_move():
    """Level 0.5 of four equal weights: any offset between two targets is optimal."""
    x = np.zeros((4, 1))
    y = np.array([[0.0], [1.0], [2.0], [3.0]])
    problem = Problem(Pinball(0.5), Plain(x, np.eye(1)), y, np.ones(4), 1.0)
    fit = replace(Newton(1e-12).solve(problem), offset=np.array([1.5]))
    found = sensitivity_of(problem, fit, x[:1], np.ones((1, 1)))
    assert found.alpha() == 0.0
    assert not found.push.any()


def test_designs_without_a_scalar_kernel_are_refused():
    case = random_case("squared", 0, kind="features")
    problem, new = case.problem()
    problem = replace(problem, design=Masked(problem.design, np.ones(case.y.shape)))
    with pytest.raises(ValueError, match=r"^problem cannot be differentiated: it needs"):
        sensitivity_of(problem, Newton().solve(problem), new, case.gradient)

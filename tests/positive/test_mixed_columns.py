"""Systems of Newton steps in few mixed columns, for densities of two variables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from fenchel.positive import DensityEstimator, DualNewton, PSDPart, _system, solve
from fenchel.positive import problem as problems
from fenchel.positive._solution import start_of
from fenchel.positive._system import Curvature, FeatureColumns, PairColumns, inverse_blocks


def ring(n, seed=0):
    random = np.random.default_rng(seed)
    angle = random.uniform(0.0, 2.0 * np.pi, n)
    spread = 0.2 * random.standard_normal((n, 2))
    return 2.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + spread


def density_problem(n=250, **given):
    density = DensityEstimator(**{"learn": False, **given})
    return density._problem(density.prepare(ring(n)))


def weighted_curvature(problem, barrier):
    """Curvature at a start, with the diagonal of S."""
    point = start_of(problem, None, barrier)
    _, hessian = problem.loss.conjugate_derivatives(point.dual)
    weights = problem.weight[:, None] * inverse_blocks(hessian)
    return Curvature(problem, point.spectra, weights), point.spectra, weights[:, 0]


def by_definition(problem, spectra):
    """Products of columns of all pairs, theirs with the integral, and its with itself."""
    part, g = problem.psd[0], spectra.values[0]
    root = np.sqrt(g**2 + 4.0 * part.alpha * spectra.barrier)
    matrix_values = (root - g) / (2.0 * part.alpha)
    apart = g[:, None] - g
    differences = np.divide(
        matrix_values - matrix_values[:, None], apart, out=np.zeros_like(apart), where=apart != 0.0
    )
    equal = np.abs(apart) < 1e-6 * root.max()  # there the difference is the derivative
    slope = (matrix_values[:, None] + matrix_values) / (root[:, None] + root)
    h = np.where(equal, slope, differences)
    turned = part.features @ spectra.vectors[0]
    pairs = (turned[:, :, None] * turned[:, None, :]).reshape(len(turned), -1)
    moment = spectra.vectors[0].T @ problem.constraints[0].moments[0] @ spectra.vectors[0]
    bent = (h * moment).ravel()
    return (pairs * h.ravel()) @ pairs.T, pairs @ bent, bent @ moment.ravel()


@pytest.mark.slow
@pytest.mark.parametrize("barrier", [1e-2, 1e-5, 1e-9])
def test_mixed_columns_have_the_products_of_all_pairs(barrier, monkeypatch):
    problem = density_problem(400, rank=25)
    monkeypatch.setattr(_system, "_LEFT_OUT", 1e-9)  # whose root is 3e-5
    curvature, spectra, _ = weighted_curvature(problem, barrier)
    (columns,) = curvature.parts
    assert isinstance(columns, FeatureColumns)
    assert curvature.width < len(spectra.pairs(0).root)
    found = columns.columns(slice(None))
    products, border, own = by_definition(problem, spectra)
    size = np.abs(products).max()
    assert found.T @ found == pytest.approx(products, abs=4e-5 * size)
    length = np.sqrt(size * own)
    assert (curvature.plain @ found)[0] == pytest.approx(border, abs=4e-5 * length)
    assert curvature.plain @ curvature.plain.T == pytest.approx(own, rel=1e-7)


@pytest.mark.parametrize("barrier", [1e-4, 1e-6, 1e-9])
def test_what_is_left_out_is_little_beside_the_identity(barrier):
    problem = density_problem()
    curvature, spectra, weight = weighted_curvature(problem, barrier)
    found = curvature.parts[0].columns(slice(None))
    root = np.sqrt(weight)
    products = by_definition(problem, spectra)[0]
    whole = root[:, None] * products * root
    apart = root[:, None] * (found.T @ found) * root - whole
    shares = eigh(apart, np.eye(len(whole)) + whole, eigvals_only=True)
    assert np.abs(shares).max() < 0.33
    assert np.linalg.eigvalsh(whole).max() > 1.0  # not all is little


def test_pairs_where_products_of_features_are_too_many(monkeypatch):
    problem = density_problem()
    monkeypatch.setattr(_system, "_LEFT_OUT", -1.0)
    curvature, _, _ = weighted_curvature(problem, 1e-5)
    assert isinstance(curvature.parts[0], PairColumns)


@pytest.mark.parametrize("given", [{}, {"alpha": 1e-5, "trace_penalty": 0.0}, {"alpha": 1.0}])
def test_the_optimum_is_that_of_steps_in_all_pairs(given, monkeypatch):
    problem = density_problem(120, rank=40, **given)
    mixed = solve(problem, DualNewton(tol=1e-9))
    monkeypatch.setattr(_system, "_LEFT_OUT", -1.0)
    paired = solve(problem, DualNewton(tol=1e-9))
    assert mixed.status.converged
    assert paired.status.converged
    assert mixed.n_iter <= paired.n_iter + 2
    assert mixed.certificate.primal == pytest.approx(paired.certificate.primal, abs=2e-9)
    assert mixed.dual == pytest.approx(paired.dual, rel=1e-3)


def test_products_that_are_not_spanned_are_left_to_pairs():
    """Features that are noise have as many different products as there are pairs."""
    features = np.random.default_rng(0).standard_normal((400, 12))
    problem = density_problem()
    problem = type(problem)(
        problem.loss,
        [type(problem.psd[0])(features, 1e-2, 1e-3)],
        np.ones(400),
    )
    curvature, spectra, _ = weighted_curvature(problem, 1e-3)
    assert isinstance(curvature.parts[0], PairColumns)
    assert curvature.width == len(spectra.pairs(0).root)


def test_what_products_leave_out_of_rows_and_of_their_combinations(monkeypatch):
    monkeypatch.setattr(problems, "_SQUARES_TOL", 1e-3)
    features = DensityEstimator(learn=False, rank=25).prepare(ring(400)).inputs.features
    square = problems.Squares().of(features)
    products = np.square(features @ features.T)
    missing = products.diagonal() - np.square(square.features).sum(axis=1)
    assert missing.max() > 1e-5
    assert square.left == pytest.approx(np.maximum(missing, 0.0), abs=1e-12)
    differences = np.eye(400)[:-1] - np.eye(400)[1:]
    part = PSDPart(features, 1.0, combinations=differences)
    seen = square.combined(part)
    missing = (differences @ products @ differences.T).diagonal()
    missing = missing - np.square(seen.features).sum(axis=1)
    assert np.all(missing <= seen.left + 1e-12)

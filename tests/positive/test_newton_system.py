"""The system of a Newton step, against its definition by products with Q."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel import DensityEstimator, NonNegativeRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import Pinball, Squared
from fenchel.positive import (
    LinearPart,
    PSDPart,
    PSDProblem,
    Residual,
    _sampled,
    _system,
    solvers,
)
from fenchel.positive._kinks import KinkSystem
from fenchel.positive._sampled import SampledSystem, system_of
from fenchel.positive._solution import Start, start_of
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
@pytest.mark.parametrize("sampled", [0, 20, 100])
def test_a_solution_solves_the_system(diagonal, some, sampled, monkeypatch):
    monkeypatch.setattr(_sampled, "_ROWS", P * sampled)
    random = np.random.default_rng(0)
    problem = problem_of(random)
    rows = np.flatnonzero(random.random(N) < 0.6) if some else np.arange(N)
    roots = random.normal(size=(len(rows), P, P))
    blocks = roots @ roots.transpose(0, 2, 1)
    if diagonal:
        blocks = np.einsum("ijj->ij", blocks)
    spectra = start_of(problem, None, 0.1).spectra
    curvature = Curvature(problem, spectra, np.ones((N, P)))
    if sampled:
        system = SampledSystem(curvature, rows, blocks, RIDGE)
        assert len(system.factor[0]) == P * min(sampled, len(rows))
    else:
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
    atol = 1e-6 if sampled else 1e-9
    np.testing.assert_allclose(w + pulled, right, atol=atol)
    np.testing.assert_allclose(
        -problem.outward.T @ weighted.sum(axis=0) + RIDGE * b, own, atol=atol
    )


@pytest.mark.parametrize("combined", [False, True])
def test_products_of_rows_by_divided_differences_are_those_of_pairs(combined):
    """Up to what is little beside the weights."""
    random, r = np.random.default_rng(1), 70
    features = random.normal(size=(N, r)) * np.geomspace(1.0, 0.1, r)
    mixing = random.normal(size=(40, N)) / N if combined else None
    n = 40 if combined else N
    loss = Residual(Squared(), random.normal(size=(n, 1)))
    part = PSDPart(features, 1e-3, 0.01, combinations=mixing)
    problem = PSDProblem(loss, [part], np.full(n, 1.0 / n))
    dual = problem.loss.conjugate_prox(random.normal(size=(n, 1)), 1.0)
    spectra = start_of(problem, Start(dual, np.zeros(0)), 0.1).spectra
    curvature = Curvature(problem, spectra, np.full((n, 1), 1.0 / n))
    (columns,) = curvature.parts
    assert columns.width > 20 * r  # otherwise it is the product of the columns itself
    block = columns.columns(slice(None))
    products = block.T @ block
    apart = np.abs(columns.gram() - products).max()
    assert apart <= 2e-3 * n  # both leave out 1e-4 beside weights of 1 / n
    assert 0.0 < apart < 1e-4 * products.max()


def test_a_step_of_many_pairs_is_solved_in_the_rows():
    """To what divided differences leave out; with all pairs, as the products have them."""
    random, r = np.random.default_rng(1), 70
    features = random.normal(size=(N, r)) * np.geomspace(1.0, 0.1, r)
    loss = Residual(Squared(), random.normal(size=(N, 1)))
    weight = random.uniform(0.5, 2.0, N) / N
    line = LinearPart(random.normal(size=(N, 4)), 0.2)
    part = PSDPart(features, 1e-3, 0.01)
    problem = PSDProblem(loss, [part], weight, [line], offsets=np.ones((1, 1)))
    spectra = start_of(problem, None, 0.1).spectra
    blocks = weight[:, None] * random.uniform(0.5, 2.0, (N, 1))
    curvature = Curvature(problem, spectra, blocks)
    assert curvature.parts[0].width == r * (r + 1) // 2
    system = system_of(curvature, np.arange(N), blocks, RIDGE)
    assert isinstance(system, KinkSystem)
    right, own = random.normal(size=curvature.width), random.normal(size=1)
    w, b, _ = system.solve(right, own)
    exact, offset, _ = NewtonSystem(curvature, np.arange(N), blocks, RIDGE).solve(right, own)

    def length(w, b):
        change = curvature.predict(w)[:, 0] - b
        return np.sqrt(w @ w + blocks[:, 0] @ change**2 + RIDGE * b @ b)

    assert 0.0 < length(w - exact, b - offset) <= 1e-4 * length(exact, offset)


def test_a_density_by_divided_differences_is_that_by_pairs(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2)) + 3.0 * random.integers(3, size=(120, 2))
    made, fits = [], []

    class Watched(KinkSystem):
        def __init__(self, *given):
            made.append(given)
            super().__init__(*given)

    monkeypatch.setattr(_sampled, "KinkSystem", Watched)
    for most in (2**25, 0):
        monkeypatch.setattr(_system, "_MOST_VALUES", most)
        fits.append(DensityEstimator(kernel=Gaussian(0.5), alpha=0.1, learn=False).fit(X))
        assert bool(made) == (most > 0)
        made.clear()
    one, other = fits
    assert one.n_iter_ == other.n_iter_
    assert one.certificate_.dual == pytest.approx(other.certificate_.dual, abs=1e-8)
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), atol=1e-4)


@pytest.mark.parametrize("loss", ["squared", "poisson", "absolute", "huber"])
def test_a_fit_by_conjugate_gradients_is_that_by_factors(loss, monkeypatch):
    random = np.random.default_rng(2)
    X = random.normal(size=(150, 4))
    y = random.poisson(np.exp(X[:, 0])).astype(float)
    made = []

    class Watched(SampledSystem):
        def __init__(self, *given):
            made.append(given)
            super().__init__(*given)

    fits = []
    for pays in (False, True):
        Watched.pays = staticmethod(lambda _, count, pays=pays: pays and count > 10)
        for module in (_sampled, solvers):
            monkeypatch.setattr(module, "SampledSystem", Watched)
        monkeypatch.setattr(_sampled, "_ROWS", 40)
        monkeypatch.setattr(solvers, "takes_rows", lambda _: False)
        settings = {"learn": False, "alpha": 1e-3}
        settings["solver"] = "newton" if loss == "huber" else "proximal_newton"
        fits.append(NonNegativeRegressor(loss, **settings).fit(X, y))
        assert bool(made) == pays
    one, other = (fit.certificate_ for fit in fits)
    assert max(one.relative_gap, other.relative_gap) <= 1e-6
    assert abs(one.primal - other.primal) <= one.gap + other.gap

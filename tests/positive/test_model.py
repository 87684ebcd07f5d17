"""Values, gradients, integrals, marginals and samples of non-negative models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import nquad, quad

from fenchel.features import Explicit, Nystroem, PivotedCholesky, RandomFourier
from fenchel.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial
from fenchel.positive import Box, Normal, Points, PSDModel, moment


def model(kernel, d=1, seed=0, n=5, kind=PivotedCholesky):
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, size=(n, d))
    features = kind(kernel).fit(X)
    return PSDModel(features, random.standard_normal((features.rank_, 2)))


def by_quadrature(f, box, density=None):
    def integrand(*x):
        point = np.array([x])
        return f(point)[0] * (1.0 if density is None else density(point)[0])

    if len(box) == 1:
        points = np.sort(f.feature_map_.landmarks_[:, 0])
        inside = points[(points > box[0][0]) & (points < box[0][1])]
        return quad(integrand, *box[0], points=inside, limit=200, epsabs=1e-12)[0]
    # smooth functions: a product rule of Gauss and Legendre is exact to rounding
    nodes, weights = np.polynomial.legendre.leggauss(80)
    axes = [0.5 * (b - a) * nodes + 0.5 * (a + b) for a, b in box]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(box))
    total = np.outer(weights, weights).ravel() * np.prod([0.5 * (b - a) for a, b in box])
    return float(total @ (f(grid) * (1.0 if density is None else density(grid))))


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.8), Matern(0.9, 1.5)], ids=repr)
def test_integral_over_all_of_the_line(kernel):
    f = model(kernel)
    assert f.integral() == pytest.approx(by_quadrature(f, [(-30.0, 30.0)]), rel=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.8), Polynomial(3)], ids=repr)
@pytest.mark.parametrize("box", [(-0.4, 0.9), (1.5, 2.5), (-3.0, -1.2)])
def test_integral_over_an_interval(kernel, box):
    f = model(kernel)
    value, error = f.integral_with_error(box)
    assert 0.0 < error <= 1e-9 * f.integral((-5.0, 5.0))
    assert value == pytest.approx(by_quadrature(f, [box]), rel=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.8), Polynomial(2)], ids=repr)
def test_integral_against_a_normal_density(kernel):
    f = model(kernel)
    density = stats.norm(0.3, np.sqrt(0.5))
    expected = by_quadrature(f, [(-8.0, 8.0)], lambda x: density.pdf(x[:, 0]))
    value, error = f.integral_with_error(Normal([0.3], 0.5))
    assert 0.0 < error <= 1e-9 * value
    assert value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("kernel", [Gaussian([0.7, 1.1]), Polynomial(2)], ids=repr)
def test_integrals_in_two_dimensions(kernel):
    f = model(kernel, d=2, n=4)
    box = [(-0.5, 0.8), (-1.0, 0.3)]
    low, high = zip(*box, strict=True)
    assert f.integral((low, high)) == pytest.approx(by_quadrature(f, box), rel=1e-7)
    covariance = np.array([[0.3, 0.1], [0.1, 0.2]])
    density = stats.multivariate_normal([0.1, -0.2], covariance)
    expected = by_quadrature(f, [(-4.0, 4.0)] * 2, lambda x: np.atleast_1d(density.pdf(x)))
    assert f.integral(Normal([0.1, -0.2], covariance)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", [Laplacian(0.8), Matern(0.7, 2.5), Gaussian(0.6)], ids=repr)
@pytest.mark.parametrize("d", [2, 3])
def test_whole_space_in_more_dimensions(kernel, d):
    # against an average over normal points: a different rule, of known error
    f = model(kernel, d=d, n=3)
    random = np.random.default_rng(1)
    deviation = 1.2
    points = deviation * random.standard_t(5, size=(400_000, d))
    weights = 1.0 / stats.t(5, scale=deviation).pdf(points).prod(axis=1)
    values = f(points) * weights
    error = values.std() / np.sqrt(len(values))
    assert abs(f.integral() - values.mean()) < 5.0 * error
    assert error < 0.02 * f.integral()


def test_three_dimensions_on_a_box_by_a_product_rule():
    f = model(Gaussian([0.7, 1.0, 0.5]), d=3, n=4)
    nodes, weights = np.polynomial.legendre.leggauss(30)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), -1).reshape(-1, 3)
    weight = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    expected = float(weight @ f(grid))
    assert f.integral((-1.0, 1.0)) == pytest.approx(expected, rel=1e-9)
    assert f.integral(Points(grid, weight)) == pytest.approx(expected, rel=1e-9)


def test_quadrature_states_its_error():
    def rough(X, Y):  # of which only the values are known
        return np.exp(-0.5 * np.abs(X[:, None, :] - Y).sum(axis=2))

    f = model(rough)
    value, error = f.integral_with_error((-1.0, 2.0))
    assert 0.0 < error < 1e-9
    assert abs(value - by_quadrature(f, [(-1.0, 2.0)])) <= error
    high = model(rough, d=5)
    value, error = high.integral_with_error((-1.0, 1.0))
    points = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200_000, 5))
    values = 32.0 * high(points)
    assert abs(value - values.mean()) <= error + 4.0 * values.std() / np.sqrt(len(values))
    fourier = model(Gaussian(0.7), kind=RandomFourier)
    assert fourier.integral((0.0, 1.0)) == pytest.approx(
        quad(lambda x: fourier([[x]])[0], 0.0, 1.0)[0], rel=1e-8
    )


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian([0.7, 1.1]),
        Laplacian(0.8),
        Matern(0.9, 1.5),
        Matern(0.9, 2.5),
        Polynomial(3),
        Linear(),
        Gaussian(0.5) + Linear(),
    ],
    ids=repr,
)
def test_gradient(kernel):
    f = model(kernel, d=2)
    X = np.random.default_rng(3).uniform(-1.0, 1.0, size=(7, 2))
    step = 1e-6
    moves = step * np.eye(2)
    expected = np.stack([(f(X + m) - f(X - m)) / (2 * step) for m in moves], axis=1)
    assert np.abs(f.gradient(X) - expected).max() <= 1e-6 * np.abs(expected).max()


def test_gradient_of_explicit_features():
    f = PSDModel(Explicit().fit(np.eye(2)), np.array([[1.0], [2.0]]))  # (x + 2 y)²
    assert np.allclose(f.gradient([[1.0, 1.0]]), [[6.0, 12.0]])


@pytest.mark.parametrize("kind", [PivotedCholesky, Nystroem])
def test_marginals(kind):
    f = model(Gaussian([0.7, 1.1, 0.6]), d=3, kind=kind)
    g = f.marginal([2, 0])
    assert g.integral() == pytest.approx(f.integral(), rel=1e-9)
    expected = quad(lambda y: f([[0.3, y, -0.2]])[0], -12.0, 12.0, epsabs=1e-12)[0]
    assert g([[-0.2, 0.3]])[0] == pytest.approx(expected, rel=1e-8)
    part = f.marginal(1, ([-1.0, -9.0, 0.0], [0.5, 9.0, 1.0]))
    box = nquad(lambda x, z: f([[x, 0.1, z]])[0], [(-1.0, 0.5), (0.0, 1.0)])[0]
    assert part([[0.1]])[0] == pytest.approx(box, rel=1e-7)


def test_sums_and_multiples():
    f = model(Gaussian(0.7))
    g = PSDModel.from_matrix(f.feature_map_, np.eye(f.feature_map_.rank_))
    X = np.linspace(-2.0, 2.0, 9)[:, None]
    assert np.allclose((2.0 * f + g * 0.5)(X), 2.0 * f(X) + 0.5 * g(X))
    assert np.all((f + g)(X) >= 0.0)
    assert f.rank_ == 2
    assert g.rank_ == f.feature_map_.rank_
    with pytest.raises(ValueError, match="finite number >= 0, got -1"):
        -1 * f
    with pytest.raises(ValueError, match="share their feature map"):
        f + model(Gaussian(0.7))


@pytest.mark.slow
def test_samples_in_one_dimension():
    f = model(Gaussian(0.4))
    drawn = f.sample(4000, random_state=0)[:, 0]
    whole = f.integral()
    check = np.linspace(-3.0, 3.0, 400)
    cdf = np.array([f.integral((-np.inf, t)) for t in check]) / whole
    result = stats.kstest(drawn, lambda t: np.interp(t, check, cdf))
    assert result.pvalue > 1e-3
    # it would notice a shift by a tenth of the spread
    shifted = stats.kstest(drawn + 0.1 * drawn.std(), lambda t: np.interp(t, check, cdf))
    assert shifted.pvalue < 1e-3
    assert np.array_equal(f.sample(5, random_state=1), f.sample(5, random_state=1))


@pytest.mark.parametrize("domain", [None, ([-0.5, -0.5], [0.7, 1.0])])
def test_samples_in_two_dimensions(domain):
    f = model(Gaussian([0.5, 0.8]), d=2)
    drawn = f.sample(3000, random_state=0, domain=domain)
    low, high = (np.full(2, -np.inf), np.full(2, np.inf)) if domain is None else domain
    whole = f.integral((low, high))
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]):
        along = drawn @ direction
        for level in (0.2, 0.5, 0.8):
            cut = np.quantile(along, level)
            grid = Box(np.maximum(low, -4.0), np.minimum(high, 4.0))
            points = np.random.default_rng(5).uniform(*grid.bounds, size=(200_000, 2))
            share = np.mean(f(points) * (points @ direction <= cut))
            share *= np.prod(np.subtract(*grid.bounds)) / whole
            assert share == pytest.approx(level, abs=0.04)


def test_bad_input():
    f = model(Gaussian(0.7))
    r = f.feature_map_.rank_
    with pytest.raises(ValueError, match="factor must have shape"):
        PSDModel(f.feature_map_, np.ones((r + 1, 1)))
    with pytest.raises(ValueError, match="matrix must be positive semi-definite"):
        PSDModel.from_matrix(f.feature_map_, -np.eye(r))
    with pytest.raises(ValueError, match="polynomial kernel, whose integral is infinite"):
        model(Polynomial(2)).integral()
    with pytest.raises(ValueError, match="domain must be bounded"):
        model(Gaussian(0.5) + Linear()).integral()
    with pytest.raises(ValueError, match="low < high"):
        f.integral((1.0, 0.0))
    with pytest.raises(TypeError, match="domain must be None, a pair"):
        moment(f.feature_map_, "everywhere")
    with pytest.raises(ValueError, match="coordinates must be distinct integers"):
        f.marginal([0, 0])
    with pytest.raises(ValueError, match="needs a Gaussian or Matern kernel"):
        model(Polynomial(2), d=3).sample(2, domain=(0.0, 1.0))
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1, got 0"):
        f.sample(0)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_matrices_are_positive_in_any_units(unit):
    features = PivotedCholesky(Gaussian(1.0)).fit(np.array([[0.0], [3.0]]))
    matrix = unit * np.diag([1.0, -1e-3])
    with pytest.raises(ValueError, match="matrix must be positive semi-definite"):
        PSDModel.from_matrix(features, matrix)
    rounded = PSDModel.from_matrix(features, unit * np.diag([1.0, -1e-15]))
    assert rounded([[0.0]])[0] == pytest.approx(unit)

"""What is promised of integrals, against rules that share nothing with the library."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from sklearn.preprocessing import FunctionTransformer

from fenchel.features import Explicit, PivotedCholesky
from fenchel.kernels import Gaussian, Laplacian, Matern
from fenchel.kernels.measures import Box
from fenchel.kernels.product_integrals import gaussian_products
from fenchel.positive import (
    Constraint,
    DensityEstimator,
    LogLikelihood,
    Normal,
    Points,
    PSDModel,
    PSDPart,
    PSDProblem,
    moment,
    solve,
)


def by_panels(f, low, high, landmarks):
    """Gauss and Legendre between landmarks and 400 further cuts."""
    inside = landmarks[(landmarks > low) & (landmarks < high)]
    cuts = np.unique(np.concatenate([np.linspace(low, high, 401), inside]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(cuts)[:, None]
    points = cuts[:-1, None] + half * (nodes + 1.0)
    return float((half * weights).ravel() @ f(points.reshape(-1, 1)))


def by_random_points(f, centre, spread, low, high, n=60_000):
    """Importance sampling from Student's t: the integral and its standard error."""
    t = stats.t(4, loc=centre, scale=spread)
    points = t.rvs((n, len(centre)), random_state=np.random.default_rng(0))
    inside = np.all((points >= low) & (points <= high), axis=1)
    values = np.where(inside, f(points), 0.0) / t.pdf(points).prod(axis=1)
    return values.mean(), values.std() / np.sqrt(n)


@pytest.mark.parametrize(("d", "width"), [(2, 0.05), (3, 0.02), (4, 0.06), (6, 0.06)])
def test_a_matern_density_on_a_box_has_the_integral_one(d, width):
    spread = min(width, 0.04)
    X = np.clip(0.5 + spread * np.random.default_rng(d).standard_normal((60, d)), 0.0, 1.0)
    kernel = Matern(width, 1.5)
    density = DensityEstimator(
        kernel=kernel, support=(0, 1), alpha=1e-3, trace_penalty=0.0, rank=60, tol=1e-4
    ).fit(X)
    found, error = by_random_points(density.model_, X.mean(axis=0), 2.0 * spread, 0.0, 1.0)
    assert abs(found - 1.0) <= 5.0 * error
    assert error < 0.03
    assert abs(density.integral() - 1.0) <= density.integral_error_ <= 1e-4
    assert density.certificate_.feasibility == density.integral_error_
    assert f"the integral is 1 up to {density.integral_error_:.1e}" in density.status_.message


@pytest.mark.parametrize("width", [2e-4, 0.05, 1.0])
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, lambda w: Matern(w, 2.5)])
def test_a_density_on_an_interval_of_any_width(kernel, width):
    X = np.clip(0.5 + width * np.random.default_rng(0).standard_normal((80, 1)), 0.0, 1.0)
    for alpha in (1e-2, 1e-6):
        density = DensityEstimator(
            kernel=kernel(width), support=(0, 1), alpha=alpha, trace_penalty=0.0, tol=1e-4
        ).fit(X)
        landmarks = density.feature_map_.landmarks_[:, 0]
        near = np.clip([0.5 - 60.0 * width, 0.5 + 60.0 * width], 0.0, 1.0)
        exact = by_panels(density.model_, *near, landmarks)
        assert abs(exact - 1.0) <= density.integral_error_ <= 1e-8


def test_a_kernel_of_values_only_has_an_integral_on_a_line_or_a_refusal():
    def kernel(X, Y):
        return np.exp(-np.abs(X[:, None, :] - Y).sum(axis=2) / 1e-3)

    X = 0.5 + 2e-3 * np.random.default_rng(0).standard_normal((40, 1))
    line = DensityEstimator(kernel=kernel, support=(0, 1), tol=1e-4).fit(X)
    exact = by_panels(line.model_, 0.4, 0.6, line.feature_map_.landmarks_[:, 0])
    assert abs(exact - 1.0) <= line.integral_error_ <= 1e-8
    for d in (2, 4):
        many = 0.5 + 2e-3 * np.random.default_rng(0).standard_normal((40, d))
        with pytest.raises(
            ValueError, match=r"kernel must have integrals .* or a larger length scale"
        ):
            DensityEstimator(kernel=kernel, support=(0, 1)).fit(many)


def test_quadrature_that_is_uncertain_is_refused():
    def kernel(X, Y):
        return np.exp(-2.0 * np.abs(X[:, None, :] - Y).sum(axis=2))

    X = np.random.default_rng(0).uniform(size=(60, 5))
    with pytest.raises(ValueError, match="the integral of the density is known to"):
        DensityEstimator(kernel=kernel, support=(0, 1), alpha=1e-6, tol=1e-3).fit(X)


def test_panels_end_where_rounding_begins(monkeypatch):
    x = np.random.default_rng(0).standard_normal((500, 1))
    features, points = PivotedCholesky(Gaussian(1.5)).fit(x), []
    transform = features.transform
    monkeypatch.setattr(features, "transform", lambda X: points.append(len(X)) or transform(X))
    found = moment(features)
    assert sum(points) < 100 * 33  # points of a panel
    for j in range(features.rank_):
        value = by_panels(lambda z, j=j: transform(z)[:, j] ** 2, -15.0, 15.0, x[:, 0])
        assert found.matrix[j, j] == pytest.approx(value, abs=1e-12)


def test_kinks_inside_of_panels_are_found():
    bend = FunctionTransformer(lambda X: np.hstack([np.ones_like(X), np.abs(X - 0.3)]))
    features = Explicit(bend).fit(np.linspace(-1.0, 1.0, 5)[:, None])
    found = moment(features, (-1.0, 1.0))
    ends = np.array([1.3, 0.7])
    exact = np.array(
        [[2.0, (ends**2).sum() / 2.0], [(ends**2).sum() / 2.0, (ends**3).sum() / 3.0]]
    )
    assert np.abs(found.matrix - exact).max() <= 1e-13


def test_moments_are_positive_and_say_their_error():
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (40, 2))
    features = PivotedCholesky(Gaussian(1.0), tol=1e-12).fit(x)
    found = moment(features, (-1.0, 1.0))
    assert np.linalg.eigvalsh(found.matrix)[0] >= -1e-14 * np.trace(found.matrix)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    exact = moment(features, Points(grid, np.outer(weights, weights).ravel()))
    assert np.abs(found.matrix - exact.matrix).max() <= found.error + exact.error
    factor = np.random.default_rng(0).standard_normal((features.rank_, 3))
    apart = np.vdot(factor, (found.matrix - exact.matrix) @ factor)
    assert abs(apart) <= found.error_of(factor) + exact.error_of(factor)


@pytest.mark.parametrize("box", [(-1.0, 1.0), None])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(2.0), Matern(1.0, 2.5)], ids=repr)
def test_a_negative_integral_is_refused(kernel, box):
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (40, 1))
    features = PivotedCholesky(kernel, 1e-8, 300)
    part = PSDPart(features.fit_transform(x), 1e-3, 1e-3)
    condition = Constraint([moment(features, box).matrix], -1.0)
    problem = PSDProblem(LogLikelihood(), [part], np.ones(40), constraints=[condition])
    with pytest.raises(ValueError, match="constraints must not contradict one another"):
        solve(problem)


@pytest.mark.slow
def test_conditions_that_rounding_alone_can_meet_do_not_converge():
    """A moment matrix with an eigenvalue just below zero: matrices of a size of 1e8 meet it."""
    random = np.random.default_rng(0)
    phi = random.standard_normal((30, 6))
    turn = np.linalg.qr(random.standard_normal((6, 6)))[0]
    matrix = turn @ np.diag([1.0, 0.3, 0.1, 1e-2, 1e-4, -2.6e-8]) @ turn.T
    for value in (-1.0, -1e-3):
        problem = PSDProblem(
            LogLikelihood(),
            [PSDPart(phi, 1e-3, 1e-3)],
            np.ones(30),
            constraints=[Constraint([0.5 * (matrix + matrix.T)], value)],
        )
        solution = solve(problem)
        gap = solution.certificate.relative_gap
        assert not solution.status.converged or -1e-8 <= gap <= 1e-6


def test_a_density_with_a_support_is_zero_outside_of_it():
    X = np.abs(np.random.default_rng(0).standard_normal((150, 2)))
    density = DensityEstimator(support=(0.0, np.inf), tol=1e-4).fit(X)
    f = density.model_
    assert f.integral() == density.integral() == pytest.approx(1.0, abs=1e-9)
    assert f.integral((-3.0, 0.0)) == 0.0
    assert f.marginal(0).integral() == pytest.approx(1.0, abs=1e-7)
    assert f.marginal(0)([[-0.5]])[0] == 0.0
    expected = quad(lambda t: f([[0.4, t]])[0], 0.0, 12.0, epsabs=1e-12)[0]
    assert f.marginal(0)([[0.4]])[0] == pytest.approx(expected, rel=1e-7)
    outside = np.array([[-0.1, 0.5], [1.0, -2.0]])
    assert np.array_equal(f(outside), np.zeros(2))
    assert np.array_equal(f.gradient(outside), np.zeros((2, 2)))
    assert f.sample(200, random_state=0).min() >= 0.0
    assert (2.0 * f).integral() == pytest.approx((f + f).integral())
    with pytest.raises(ValueError, match="share their support"):
        f + PSDModel(f.feature_map_, f.factor_)
    with pytest.raises(ValueError, match="domain must be a box or Points"):
        f.integral(Normal([0.0, 0.0]))
    with pytest.raises(ValueError, match="domain must meet the support"):
        f.sample(3, domain=(-2.0, -1.0))


@pytest.mark.parametrize("width", [1e-4, 0.01, 30.0])
def test_gradients_by_differences_know_one_row_only(width):
    def values(X, Y):
        return np.exp(-np.square((X[:, None, :] - Y) / width).sum(axis=2) / 2.0)

    rows = width * np.random.default_rng(0).uniform(-2.0, 2.0, (8, 2))
    factor = np.random.default_rng(1).standard_normal((8, 2))
    blind = PSDModel(PivotedCholesky(values).fit(rows), factor)
    exact = PSDModel(PivotedCholesky(Gaussian(width)).fit(rows), factor)
    X = width * np.random.default_rng(2).uniform(-3.0, 3.0, (6, 2))
    expected = exact.gradient(X)
    found = blind.gradient(X)
    assert np.abs(found - expected).max() <= 1e-8 * np.abs(expected).max()
    beside = blind.gradient(np.concatenate([X, [[1e4, -1e4]]]))[:-1]
    assert np.abs(beside - found).max() <= 1e-8 * np.abs(expected).max()
    one = np.concatenate([blind.gradient(row[None]) for row in X])
    assert np.abs(one - found).max() <= 1e-8 * np.abs(expected).max()


@pytest.mark.slow
def test_the_bandwidth_follows_the_effective_number_of_different_rows():
    random = np.random.default_rng(0)
    X, weight = random.standard_normal((100, 2)), random.integers(0, 4, 100)

    def width(rows, weights=None):
        return (
            DensityEstimator(tol=1e-2, learn=False)
            .fit(rows, sample_weight=weights)
            .kernel_.length_scale
        )

    plain = width(X)
    for size in (1e-6, 0.01, 100.0):
        assert width(X, np.full(100, size)) == pytest.approx(plain, rel=1e-12)
    assert width(X, weight / weight.sum()) == pytest.approx(width(X, weight), rel=1e-12)
    assert width(np.repeat(X, weight, axis=0)) == pytest.approx(width(X, weight), rel=1e-12)
    number = weight.sum() ** 2 / np.sum(weight**2)
    share = weight / weight.sum()
    deviation = np.sqrt(share @ np.square(X - share @ X))
    assert width(X, weight) == pytest.approx(deviation * 2.0 * number ** (-1.0 / 6.0), rel=1e-12)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("kernel", [None, "laplacian", "matern52"])
def test_units_are_units_only(kernel, d):
    X = np.random.default_rng(0).standard_normal((60, d))
    first = DensityEstimator(kernel=kernel, tol=1e-8).fit(X)
    for unit in (1e-8, 1e8):
        other = DensityEstimator(kernel=kernel, tol=1e-8).fit(unit * X)
        expected = first.score_samples(X) - d * np.log(unit)
        assert other.score_samples(unit * X) == pytest.approx(expected, abs=2e-3)
        assert other.score(unit * X) == pytest.approx(expected.mean(), abs=1e-6)


@pytest.mark.parametrize("box", [((6.0, 0.0), (7.0, 1.0)), ((-9.0, -1.0), (-6.0, 2.0))])
def test_boxes_in_the_tail_have_no_cancellation(box):
    low, high = (np.array(end) for end in box)
    found = gaussian_products(np.zeros((1, 2)), np.ones(2), Box(low, high))[0, 0]
    sides = [
        quad(lambda x: np.exp(-x * x), a, b, epsabs=0.0)[0] for a, b in zip(low, high, strict=True)
    ]
    assert found == pytest.approx(np.prod(sides), rel=1e-9)


def test_normal_densities_that_are_none_are_refused():
    features = PivotedCholesky(Gaussian(1.0)).fit(np.array([[0.0, 0.0], [1.0, 1.0]]))
    for covariance in ([[1.0, 5.0], [0.5, 2.0]], [[1.0, 2.0], [2.0, 1.0]], [1.0, np.nan]):
        with pytest.raises(ValueError, match="covariance must be symmetric and positive definite"):
            moment(features, Normal([0.0, 0.0], covariance))
    with pytest.raises(ValueError, match=r"covariance must have shape \(2, 2\), got \(3,\)"):
        moment(features, Normal([0.0, 0.0], [1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="mean must be finite numbers"):
        moment(features, Normal([0.0, np.nan]))

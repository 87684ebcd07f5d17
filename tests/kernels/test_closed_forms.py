"""Integrals, gradients and factors of kernels against numerical ones, and of scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import kernels as sk

from fenchel.kernels import (
    Box,
    Callable,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Normal,
    OnColumns,
    Polynomial,
    as_scalar_kernel,
    has_measured_scale,
    level_coupling,
    parts_of,
)
from fenchel.kernels.mixture_integrals import mixture_distance, mixture_products
from fenchel.kernels.product_integrals import matern_products, monomials

Z = np.array([[-0.4], [0.1], [0.9]])
LINE = Box([-np.inf], [np.inf])
KNOWN = [
    (Gaussian(0.7), [LINE, Box([-1.0], [0.3]), Box([0.2], [np.inf]), Normal([0.2], 0.5)]),
    (Laplacian(0.7), [LINE, Box([-1.0], [0.3]), Box([0.2], [np.inf]), Normal([0.2], 0.5)]),
    (Matern(0.7, 0.5), [LINE, Box([-1.0], [0.3]), Box([0.2], [np.inf]), Normal([0.2], 0.5)]),
    (Matern(0.7, 1.5), [LINE, Box([-1.0], [0.3]), Box([0.2], [np.inf]), Box([1.0], [1.2])]),
    (Matern(0.7, 2.5), [LINE, Box([-1.0], [0.3]), Box([-np.inf], [0.0]), Box([-0.2], [0.0])]),
    (Linear(), [Box([-1.0], [0.3]), Normal([0.2], 0.5)]),
    (Polynomial(3, 0.5, 0.2), [Box([-1.0], [0.3]), Normal([0.2], 0.5)]),
]


@pytest.mark.parametrize(
    ("kernel", "measure"), [(kernel, each) for kernel, measures in KNOWN for each in measures]
)
def test_product_integrals_on_the_line(kernel, measure):
    low, high = (-9.0, 9.0) if isinstance(measure, Normal) else np.ravel(measure.bounds)

    def density(x):
        if isinstance(measure, Box):
            return 1.0
        return np.exp(-0.5 * (x - 0.2) ** 2 / 0.5) / np.sqrt(np.pi)

    def integral(j, k):
        inside = [float(z) for z in Z[:, 0] if max(low, -30.0) < z < min(high, 30.0)]
        return quad(
            lambda x: float(np.prod(kernel([[x]], Z[[j, k]]))) * density(x),
            max(low, -30.0),
            min(high, 30.0),
            points=inside,
            limit=300,
            epsabs=1e-13,
        )[0]

    expected = [[integral(j, k) for k in range(3)] for j in range(3)]
    assert np.allclose(kernel.product_integrals(Z, measure), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("kernel", "measure"),
    [
        (OnColumns(Gaussian(1.0), [0]), LINE),
        (Callable(lambda X, Y: X @ Y.T), Box([0.0], [1.0])),
    ],
)
def test_what_has_no_closed_form(kernel, measure):
    assert kernel.product_integrals(Z, measure) is None


@pytest.mark.parametrize("nu", [0.5, 0.8, 1.5, 2.5])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_sums_of_gaussian_kernels_are_as_near_as_they_say(nu, d):
    """Against the closed form over all of space, entry by entry."""
    random = np.random.default_rng(d)
    rows, scale = random.standard_normal((4, d)), random.uniform(0.3, 2.0, d)
    whole = Box(np.full(d, -np.inf), np.full(d, np.inf))
    exact = matern_products(rows, scale, nu, whole)
    found = mixture_products(rows, scale, nu, whole)
    distance = mixture_distance(nu, scale, whole)
    size = np.sqrt(exact[0, 0])
    assert np.abs(found - exact).max() <= 2.0 * size * distance + distance**2
    assert distance <= 1e-7 * size


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_kernels_in_two_dimensions_by_panels(nu):
    """Against Gauss and Legendre in polar coordinates around the kink of a single landmark."""
    kernel, corner = Matern([0.5, 0.8], nu), np.array([0.3, -0.2])
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for measure in (Box([-0.4, -1.0], [1.0, 0.1]), Normal([0.1, 0.0], [[0.3, 0.1], [0.1, 0.2]])):
        low, high = measure.bounds if isinstance(measure, Box) else (corner - 6.0, corner + 6.0)
        expected = 0.0
        for side in range(4):  # of the box: a triangle with the landmark as its tip
            begin, end = [
                np.array([(low, high)[a][0], (low, high)[b][1]])
                for a, b in [
                    ((0, 0), (1, 0)),
                    ((1, 0), (1, 1)),
                    ((1, 1), (0, 1)),
                    ((0, 1), (0, 0)),
                ][side]
            ]
            along, out = 0.5 * (nodes[:, None] + 1.0), (0.5 * (nodes + 1.0)) ** 3
            edge = begin + along * (end - begin) - corner
            area = abs(np.linalg.det(np.stack([begin - corner, end - begin])))
            points = corner + out[:, None, None] * edge
            size = 1.5 * (0.5 * (nodes + 1.0)) ** 2 * weights * out * area
            values = kernel(points.reshape(-1, 2), corner[None])[:, 0] ** 2
            if isinstance(measure, Normal):
                values *= multivariate_normal(measure.mean, measure.matrix).pdf(
                    points.reshape(-1, 2)
                )
            expected += size @ values.reshape(60, 60) @ (0.5 * weights)
        found = kernel.product_integrals(corner[None], measure)[0, 0]
        error = kernel.product_distance(measure)
        assert error > 0.0
        assert found == pytest.approx(expected, rel=1e-7)


def test_monomials_read_no_memory_that_is_not_theirs(monkeypatch):
    monkeypatch.setattr(np, "empty", lambda *shape, **_: np.full(*shape, np.nan))
    powers, rest, count = monomials(2, 2)
    assert powers.sum() + rest.sum() == 2 * len(powers)
    assert sorted(count) == pytest.approx([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2)])
def test_infinite_integrals_are_refused(kernel):
    with pytest.raises(ValueError, match="whose integral is infinite"):
        kernel.product_integrals(Z, LINE)


def test_closed_forms_need_a_length_scale():
    for ask in (
        lambda kernel: kernel.product_integrals(Z, LINE),
        lambda kernel: kernel.gradient(Z, Z, np.ones((3, 3))),
        lambda kernel: kernel.factor([0]),
    ):
        with pytest.raises(ValueError, match="is read off data"):
            ask(Gaussian("median"))


def test_rough_kernels_have_the_slope_zero_at_a_landmark():
    for kernel in (Laplacian(0.7), Matern(0.7, 0.5)):
        assert np.array_equal(kernel.gradient(Z, Z, np.eye(3)), np.zeros((3, 1)))


def test_factors_of_a_gaussian_kernel():
    assert Gaussian([1.0, 2.0, 3.0]).factor([2, 0]) == Gaussian(np.array([3.0, 1.0]))
    assert Gaussian(2.0).factor([1]) == Gaussian(2.0)
    assert Laplacian(2.0).factor([0]) is None
    assert Linear().factor([0]) is None


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        (sk.RBF(0.7), Gaussian(0.7)),
        (sk.Matern(0.7, nu=0.5), Matern(0.7, 0.5)),
        (sk.Matern([0.7, 0.9], nu=1.5), Matern([0.7, 0.9], 1.5)),
        (sk.Matern(0.7, nu=2.5), Matern(0.7, 2.5)),
        (sk.Matern(0.7, nu=np.inf), Gaussian(0.7)),
    ],
    ids=repr,
)
def test_kernels_of_scikit_learn(foreign, ours):
    assert as_scalar_kernel(foreign) == ours
    X = np.random.default_rng(0).standard_normal((6, 2))
    assert np.allclose(as_scalar_kernel(foreign)(X), foreign(X))


def test_matern_kernels_of_any_smoothness():
    """Scikit-learn has them: values and integrals are known, gradients are not."""
    kernel = sk.Matern(0.7, nu=0.8)
    own = as_scalar_kernel(kernel)
    assert np.allclose(own(Z), kernel(Z), rtol=1e-12)
    expected = quad(
        lambda x: float(np.prod(kernel([[x]], Z[:2]))), -30, 30, points=[-0.4, 0.1], limit=300
    )[0]
    assert own.product_integrals(Z, LINE)[0, 1] == pytest.approx(expected, rel=1e-7)
    assert own.gradient(Z, Z, np.ones((3, 3))) is None


def test_other_kernels_have_values_only():
    kernel = as_scalar_kernel(Gaussian(1.0) + sk.DotProduct())
    assert np.array_equal(kernel(Z), (Gaussian(1.0) + sk.DotProduct())(Z))
    assert kernel.product_integrals(Z, LINE) is None
    assert kernel.gradient(Z, Z, np.ones((3, 3))) is None
    assert kernel.factor([0]) is None
    mine = Laplacian(1.0)
    assert as_scalar_kernel(mine) is mine


def test_parts_and_measured_scales():
    kernel = OnColumns(Gaussian("median"), [0]) * sk.RBF(1.0) + 1.0
    assert [type(part).__name__ for part in parts_of(kernel)] == ["Product", "ConstantKernel"]
    assert parts_of(Gaussian()) == []
    assert has_measured_scale(kernel)
    assert not has_measured_scale(OnColumns(Gaussian(1.0), [0]) * sk.RBF(1.0))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1e-9, np.inf])
def test_level_coupling_is_a_factor(gamma):
    levels = np.array([0.1, 0.5, 0.9])
    S = level_coupling(levels, gamma)
    apart = np.subtract.outer(levels, levels) ** 2
    expected = np.eye(3) if gamma == np.inf else np.exp(-gamma * apart)
    assert np.allclose(S @ S.T, expected, atol=1e-12)
    assert S.shape[1] == np.linalg.matrix_rank(expected, tol=1e-13 * np.linalg.norm(expected, 2))

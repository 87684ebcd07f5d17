"""Projections on balls of L^r norms with weights, by the conditions that define them."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.losses import CurveHuber, CurveInsensitive
from fenchel.losses._norm_balls import project


def norm(x, root, order):
    """Norm of L^r(μ) of rows scaled by √μ, safe from overflow."""
    values = np.abs(x) / root
    largest = values.max(axis=1)
    if order == np.inf:
        return largest
    powers = root**2 * (values / largest[:, None]) ** order
    return largest * powers.sum(axis=1) ** (1.0 / order)


def draw(seed, decades):
    random = np.random.default_rng(seed)
    point = random.standard_normal((6, 11)) * 10.0 ** random.uniform(-decades, decades, (6, 11))
    return point, np.sqrt(random.uniform(1e-4, 1.0, (1, 11)))


@pytest.mark.parametrize("order", [1.0, 1.02, 1.3, 1.5, 2.0, 3.0, 8.0, 21.0, 50.0, np.inf])
@pytest.mark.parametrize("radius", [1e-6, 0.03, 1.0, 1e3])
@pytest.mark.parametrize("decades", [0, 2])
def test_nearest_point_of_the_ball(order, radius, decades):
    """What is taken off lies in the normal cone: no point of the ball is further along it."""
    point, root = draw(0, decades)
    x = project(point, root, np.full((6, 1), radius), order).point
    outside = norm(point, root, order) > radius
    np.testing.assert_array_equal(x[~outside], point[~outside])
    np.testing.assert_allclose(norm(x, root, order)[outside], radius, rtol=1e-9)
    dual = np.inf if order == 1.0 else 1.0 if order == np.inf else order / (order - 1.0)
    normal = point - x
    furthest = radius * norm(normal[outside], root, dual)
    along = np.sum(normal * x, axis=1)[outside]
    np.testing.assert_allclose(along, furthest, rtol=1e-6)


@pytest.mark.parametrize("order", [1.02, 1.5, 3.0, 8.0, 50.0])
@pytest.mark.parametrize("radius", [1e-30, 1e-150, 1e-250, 5e-324, 0.0])
def test_tiny_radii(order, radius):
    point, root = draw(1, 2)
    x = project(point, root, np.full((6, 1), radius), order).point
    assert np.all(np.isfinite(x))
    if radius >= 1e-150:
        np.testing.assert_allclose(norm(x, root, order), radius, rtol=1e-9)
    else:
        assert np.all(np.abs(x) <= radius)


@pytest.mark.parametrize("order", [1.5, 3.0, 30.0])
def test_units(order):
    point, root = draw(2, 1)
    x = project(point, root, np.full((6, 1), 0.5), order).point
    for unit in (1e-120, 1e120):
        scaled = project(unit * point, root, np.full((6, 1), 0.5 * unit), order).point
        np.testing.assert_allclose(scaled / unit, x, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("order", [1.3, 3.5])
@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3])
def test_losses_of_any_order_belong_together(order, step):
    """Fenchel and Young: equality at proxes, nowhere less elsewhere; Jacobians by differences."""
    point, root = draw(3, 1)
    random = np.random.default_rng(4)
    for loss in (CurveHuber(0.5, order, root[0] ** 2), CurveInsensitive(0.5, order, root[0] ** 2)):
        dual = loss.conjugate_prox(point, step)
        residual = (point - dual) / step
        total = loss.value(residual) + loss.conjugate(dual)
        inner = np.einsum("ij,ij->i", residual, dual)
        np.testing.assert_allclose(total, inner, rtol=1e-9, atol=1e-12 * np.abs(inner).max())
        other = loss.conjugate_prox(10.0 * random.standard_normal(point.shape), 1.0)
        assert np.all(
            loss.value(residual) + loss.conjugate(other)
            >= np.einsum("ij,ij->i", residual, other) * (1.0 - 1e-12) - 1e-12
        )
        direction = random.standard_normal(point.shape)
        near = 1e-6 * np.abs(point).max()
        change = loss.conjugate_prox(point + near * direction, step)
        change -= loss.conjugate_prox(point - near * direction, step)
        jacobian = loss.conjugate_prox_jacobian(point, step)
        np.testing.assert_allclose(
            np.einsum("ijk,ik->ij", jacobian, direction),
            change / (2.0 * near),
            rtol=1e-3,
            atol=1e-5 / (1.0 + step),
        )


@pytest.mark.parametrize("size", [1.0, 1e9, 1e18, 1e30])
def test_huber_loss_of_the_supremum_norm_far_away(size):
    """κ times the sum of |r| where only one value is not zero, whatever rounding leaves of it."""
    measure = np.array([0.5, 0.3, 0.2 - 1e-6, 1e-6])
    residual = np.zeros((4, 4))
    np.fill_diagonal(residual, [-size, size, -size, size])
    value = CurveHuber(1e-8, np.inf, measure).value(residual)
    # the least of 0.5 |r - s|^2 + κ |s| in the norms of L2 and L∞: r - s is κ / μ at that point
    expected = 1e-8 * size / np.sqrt(measure) - 0.5e-16 / measure
    np.testing.assert_allclose(value, expected, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-170, 1.0, 1e170])
def test_losses_of_lengths_where_squares_leave_the_range_of_numbers(size):
    """H(r) = κ (|r| - κ / 2) beyond κ and half the square of the rest beyond ε, with κ, ε = 1."""
    size = np.float64(size)
    residual = np.array([[3.0, -4.0], [0.0, 0.0]]) * size
    with np.errstate(over="ignore", under="ignore"):
        huber, beyond = 5.0 * size - 0.5, 0.5 * max(5.0 * size - 1.0, 0.0) ** 2
        expected = huber if size >= 1.0 else 12.5 * size**2
        value = CurveHuber(1.0, 2, np.ones(2)).value(residual)
        np.testing.assert_allclose(value, [expected, 0.0], rtol=1e-14)
        value = CurveInsensitive(1.0, 2, np.ones(2)).value(residual)
        np.testing.assert_allclose(value, [beyond, 0.0], rtol=1e-14)

"""Compiled losses of curves, point by point, against their formulas written with numpy."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.losses import CurveHuber, CurveInsensitive

N, M = 5, 7


def points_and_measure(each):
    rng = np.random.default_rng(0)
    measure = rng.uniform(0.1, 2.0, (N, M) if each else M)
    measure[..., 2] = 0.0
    point = rng.standard_normal((N, M)) * np.sqrt(measure)
    point[0, 0], point[1, 1] = 40.0, -40.0
    return point, measure, np.broadcast_to(np.sqrt(measure), (N, M))


@pytest.mark.parametrize("each", [False, True])
def test_huber(each):
    point, measure, root = points_and_measure(each)
    loss = CurveHuber(0.7, 1, measure)
    near = np.clip(point, -0.7 * root, 0.7 * root)
    np.testing.assert_allclose(loss.value(point), np.sum(near * (point - 0.5 * near), axis=1))
    np.testing.assert_allclose(loss.conjugate(near), 0.5 * np.sum(near**2, axis=1))
    for j in range(M):
        outside = near.copy()
        outside[3, j] = -0.7001 * root[3, j] if j != 2 else 5.0
        assert np.isinf(loss.conjugate(outside)).tolist() == [i == 3 and j != 2 for i in range(N)]
    step = np.linspace(0.1, 3.0, N)[:, None]
    near = np.clip(point / (1.0 + step), -0.7 * root, 0.7 * root)
    np.testing.assert_allclose(loss.conjugate_prox(point, step), near)


@pytest.mark.parametrize("each", [False, True])
def test_insensitive(each):
    point, measure, root = points_and_measure(each)
    loss = CurveInsensitive(0.7, np.inf, measure)
    left = np.maximum(np.abs(point) - 0.7 * root, 0.0)
    np.testing.assert_allclose(loss.value(point), 0.5 * np.sum(left**2, axis=1))
    conjugate = np.sum(0.5 * point**2 + 0.7 * root * np.abs(point), axis=1)
    np.testing.assert_allclose(loss.conjugate(point), conjugate)
    step = np.linspace(0.1, 3.0, N)[:, None]
    shrunk = np.maximum(np.abs(point) - step * 0.7 * root, 0.0) / (1.0 + step)
    found = loss.conjugate_prox(point, step)
    np.testing.assert_allclose(found, np.sign(point) * shrunk, atol=1e-15)


def test_what_is_no_number_stays_so():
    point = np.array([[0.1, np.nan, 3.0]])
    for loss in (CurveHuber(0.5, 1, np.ones(3)), CurveInsensitive(0.5, np.inf, np.ones(3))):
        assert np.isnan(loss.value(point)).all()
        assert np.isnan(loss.conjugate_prox(point, 1.0)[0]).tolist() == [False, True, False]

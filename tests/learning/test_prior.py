"""The prior is the formula of its docstring, and so are its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from fenchel.learning.prior import Prior

THETA = np.array([0.5, -1.0, 2.0, 0.7, -3.0])
CENTRE = np.array([0.1, 0.2, 0.3, 9.0, 1.0])
SCALES = np.array([True, True, True, False, False])


@pytest.mark.parametrize("scales", [SCALES, np.zeros(5, dtype=bool)], ids=["scales", "none"])
@pytest.mark.parametrize("loss", [0.05, 0.4])
@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_formula_and_derivatives(scales, loss, power):
    prior = Prior(CENTRE, scales, 2.0, power, 6.0)
    z = (THETA - CENTRE)[scales]
    wanted = 0.0
    if scales.any():
        size = 2.0 * max(6.0 * loss, 1.0) ** power
        wanted = size * (np.sum((z - z.mean()) ** 2) + 0.3 * 3.0 * z.mean() ** 2)
    value, gradient, slope = prior(THETA, loss)
    assert value == pytest.approx(wanted)
    slopes = approx_fprime(THETA, lambda theta: prior(theta, loss)[0], 1e-7)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    assert not gradient[~scales].any()
    beside = [prior(THETA, loss + step)[0] for step in (-1e-6, 1e-6)]
    assert slope == pytest.approx((beside[1] - beside[0]) / 2e-6, rel=1e-6, abs=1e-9)


def size(n_rows, n_scales, bounded, loss=0.5):
    """The factor of a penalty, without that which falls with the rows."""
    centre, scales = np.zeros(n_scales), np.ones(n_scales, dtype=bool)
    prior = Prior.of(centre, scales, 1.0, n_rows, bounded)
    value = prior(np.ones(n_scales), loss)[0]
    return 3.0 * n_rows**1.5 * value / (0.3 * n_scales)


@pytest.mark.parametrize("bounded", [True, False])
def test_few_length_scales_have_the_same_prior_for_every_loss(bounded):
    few = 18 if bounded else 8
    for n_scales, loss in [(1, 0.01), (1, 1.0), (few, 0.01), (few, 1.0)]:
        assert size(100, n_scales, bounded, loss) == pytest.approx(1.0)


@pytest.mark.parametrize("n_scales", [1, 9, 30, 1000])
@pytest.mark.parametrize("bounded", [True, False])
def test_none_is_less_where_the_loss_is_small(n_scales, bounded):
    assert size(1000, n_scales, bounded, 1e-3) == pytest.approx(1.0)


def test_that_of_many_is_a_share_of_the_loss_and_stronger_for_squares_and_few_rows():
    many = 24_000  # the power is one but for a millionth
    assert size(10**6, many, True, 0.9) == pytest.approx(1.8, rel=1e-4)
    assert size(10**6, many, False) == pytest.approx(2.0, rel=1e-4)
    assert size(1000, many, True, 0.9) == pytest.approx(3.6, rel=1e-4)
    assert size(1000, many, False) == pytest.approx(4.0, rel=1e-4)
    assert size(1000, 16, False, 1.0) == pytest.approx(4.0**0.75)

"""The prior is the formula of its docstring, and so is its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from fenchel.learning.prior import Prior, share_for

THETA = np.array([0.5, -1.0, 2.0, 0.7, -3.0])
CENTRE = np.array([0.1, 0.2, 0.3, 9.0, 1.0])
SCALES = np.array([True, True, True, False, False])


@pytest.mark.parametrize("scales", [SCALES, np.zeros(5, dtype=bool)], ids=["scales", "none"])
def test_formula_and_gradient(scales):
    prior = Prior(CENTRE, scales, 2.0)
    z = (THETA - CENTRE)[scales]
    wanted = 0.0
    if scales.any():
        wanted += 2.0 * (np.sum((z - z.mean()) ** 2) + 0.3 * 3.0 * z.mean() ** 2)
    value, gradient = prior(THETA)
    assert value == pytest.approx(wanted)
    slopes = approx_fprime(THETA, lambda theta: prior(theta)[0], 1e-7)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    assert not gradient[~scales].any()


def test_it_is_stronger_for_squares_and_for_many_scales_on_few_rows():
    for_values = share_for(True, 1000, 20)
    assert for_values == pytest.approx(1000**-1.5 / 3.0)
    assert share_for(False, 1000, 20) == pytest.approx(4.0 * for_values)
    assert share_for(False, 1000, 75) == pytest.approx(6.0 * for_values)
    assert share_for(False, 1000, 500) == pytest.approx(8.0 * for_values)
    assert share_for(True, 1000, 500) == pytest.approx(2.0 * for_values)
    assert share_for(True, 100, 24) == share_for(
        True, 100, 1
    )  # targets may be far from all others

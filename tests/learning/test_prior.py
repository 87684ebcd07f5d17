"""The prior is the formula of its docstring, and so is its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from fenchel.learning.prior import Prior

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

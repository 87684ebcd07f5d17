"""One rule between alpha and C; tests/docs/test_conversions.py holds it against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel import SVR
from fenchel.kernels import Gaussian
from fenchel.online import OnlineSVR
from fenchel.regression import alpha_of
from regression_cases import X, Y


def test_an_online_learner_has_a_penalized_offset():
    """Its fit is that of the kernel k + 1 without offset, and not that of k with a free one."""
    kernel = Gaussian(0.5)
    online = OnlineSVR(C=0.2, epsilon=0.2, kernel=kernel, n_epochs=400).fit(X, Y + 2.0)
    fixed = {"epsilon": 0.2, "alpha": alpha_of(0.2, 80), "learn": False}
    constant = SVR(kernel=kernel + 1.0, fit_intercept=False, **fixed).fit(X, Y + 2.0)
    free = SVR(kernel=kernel, **fixed).fit(X, Y + 2.0)
    np.testing.assert_allclose(online.predict(X), constant.predict(X), atol=1e-2)
    assert np.abs(free.predict(X) - constant.predict(X)).max() > 0.05


def test_the_rule_is_its_own_inverse():
    assert alpha_of(alpha_of(0.3, 70.5), 70.5) == pytest.approx(0.3, rel=1e-15)
    squared = alpha_of(0.3, 70, squared=True)
    assert alpha_of(squared, 70, squared=True) == pytest.approx(0.3, rel=1e-15)
    with pytest.raises(ValueError, match="C must be a finite number > 0, got 0"):
        alpha_of(0, 10)
    with pytest.raises(ValueError, match="n_samples must be a finite number > 0, got -1"):
        alpha_of(1.0, -1)

"""One rule between alpha and C, against packages and learners that have C."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm

from fenchel import SVR
from fenchel.kernels import Gaussian
from fenchel.online import OnlineSVR
from fenchel.regression import alpha_of
from regression_cases import WEIGHT, X, Y


@pytest.mark.parametrize("C", [0.3, 5.0])
def test_scikit_learn(C):
    theirs = svm.SVR(C=C, epsilon=0.2, gamma=2.0, tol=1e-8).fit(X, Y)
    ours = SVR(epsilon=0.2, kernel=Gaussian(0.5), alpha=alpha_of(C, 80), tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    weighted = svm.SVR(C=C, epsilon=0.2, gamma=2.0, tol=1e-8).fit(X, Y, WEIGHT)
    ours.set_params(alpha=alpha_of(C, WEIGHT.sum())).fit(X, Y, WEIGHT)
    np.testing.assert_allclose(ours.predict(X), weighted.predict(X), atol=1e-4)


def test_squares():
    theirs = svm.LinearSVR(
        C=0.7,
        epsilon=0.2,
        loss="squared_epsilon_insensitive",
        dual=True,
        fit_intercept=False,
        tol=1e-10,
        max_iter=100_000,
    ).fit(X, Y)
    ours = SVR(
        "squared_epsilon_insensitive",
        epsilon=0.2,
        kernel="linear",
        alpha=alpha_of(0.7, 80, squared=True),
        fit_intercept=False,
        learn=False,
        tol=1e-10,
    ).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)


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

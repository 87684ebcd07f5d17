"""Numbers of conditions where functions have kinks, and on supports, by quadrature of scipy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from fenchel.kernels import Normal, Points
from fenchel.positive import Condition, DensityEstimator, NonNegativeRegressor

X = np.random.default_rng(0).gamma(3, size=(60, 1))
SUPPORT = (0.0, 20.0)


def integral(model, low, high, power=0):
    """∫ x^power f, interval by interval between landmarks, where a kernel may have kinks."""
    landmarks = model.feature_map_.landmarks_[:, 0]
    even = np.linspace(low, high, 9)
    inside = landmarks[(landmarks > low) & (landmarks < high)]
    cuts = np.unique(np.concatenate([even, inside]))

    def f(x):
        return x**power * float(model.model_([[x]])[0])

    pairs = pairwise(cuts)
    return sum(quad(f, a, b, epsabs=1e-12, epsrel=1e-10)[0] for a, b in pairs)


@pytest.mark.parametrize("kernel", ["laplacian", "matern32", None])
def test_moments_of_kernels_with_kinks(kernel):
    mean = Condition("moment", over=(-20.0, 40.0), equals=3.0)
    density = DensityEstimator(kernel=kernel, alpha=0.1, conditions=[mean]).fit(X)
    assert density.status_.converged
    # off by 5e-3 and 2e-5 with equal panels
    assert integral(density, -20.0, 40.0, 1) == pytest.approx(3.0, abs=1e-7)


def test_a_moment_of_a_regression_with_kinks():
    second = Condition("moment", over=(0.0, 7.0), equals=90.0, power=2)
    model = NonNegativeRegressor(kernel="laplacian", learn=False, conditions=[second])
    model.fit(X, X[:, 0])
    assert integral(model, 0.0, 7.0, 2) == pytest.approx(90.0, abs=1e-6)


@pytest.mark.parametrize(
    ("condition", "low", "high", "power"),
    [
        (Condition("integral", over=(-5.0, 5.0), equals=0.8), 0.0, 5.0, 0),
        (Condition("moment", over=(-5.0, 30.0), equals=3.2), 0.0, 20.0, 1),
        (Condition("moment", equals=3.2), 0.0, 20.0, 1),
    ],
)
def test_numbers_are_those_of_the_part_on_the_support(condition, low, high, power):
    density = DensityEstimator(support=SUPPORT, conditions=[condition]).fit(X)
    assert density.status_.converged
    assert integral(density, low, high, power) == pytest.approx(condition.equals, abs=1e-7)
    assert integral(density, 0.0, 20.0) == pytest.approx(1.0, abs=1e-7)


def test_points_outside_of_the_support_do_not_count():
    points = Points([[-1.0], [1.0], [3.0]], [5.0, 0.5, 0.5])
    for kind, power in (("integral", 0), ("moment", 1)):
        condition = Condition(kind, over=points, equals=0.3)
        density = DensityEstimator(support=SUPPORT, conditions=[condition]).fit(X)
        values = density.model_([[1.0], [3.0]]) * np.array([1.0, 3.0]) ** power
        assert 0.5 * values.sum() == pytest.approx(0.3, abs=1e-8)


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (Condition("value", at=[-1.0], equals=0.1), r"at must be in the support Box.*got \[-1"),
        (Condition("derivative", at=[21.0], equals=0.0), r"at must be in the support Box.*\[21"),
        (Condition("integral", over=(-5.0, 0.0), equals=0.1), "over must meet the support Box"),
        (Condition("moment", over=(-5.0, -1.0), equals=-1.0), "over must meet the support Box"),
        (Condition("integral", over=Points([[-1.0]], [1.0]), equals=0.1), "over must meet the"),
        (Condition("integral", over=Normal([1.0]), equals=0.1), "over must be a box or Points"),
    ],
)
def test_what_lies_outside_of_the_support_is_refused(condition, sentence):
    with pytest.raises(ValueError, match=sentence):
        DensityEstimator(support=SUPPORT, conditions=[condition]).fit(X)

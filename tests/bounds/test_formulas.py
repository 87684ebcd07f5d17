"""Formulas against numbers worked out by hand, rates, and refusals."""

from __future__ import annotations

from math import e, exp, log, sqrt

import numpy as np
import pytest

from fenchel.bounds import (
    Bound,
    finite_class_bound,
    insensitive_excess_bound,
    joint_quantile_bound,
    kernel_ridge_bound,
    l1_ball_complexity,
    lasso_bound,
    lipschitz_bound,
    pseudo_dimension_bound,
    quadratic_svr_bound,
    quantile_deviation_bound,
    svr_bound,
)

BALL = {"norm": 3.0, "radius": 0.5, "residual_bound": 2.0}
DELTA = exp(-2.0)  # log(1/δ) = 2, so that with n = 100 the tail is √(2/200) = 0.1
TAIL2 = 3.0 * sqrt((2.0 + log(2.0)) / 200.0)


def joint(risk, n, **more):
    known = {"levels": [0.2, 0.5], "norm": 3.0, "diagonal": [1.0, 4.0], "target_bound": 2.0}
    return joint_quantile_bound(risk, n, **{**known, **more})


# name: a function of risk, n and delta, and by hand at n = 100: complexity, confidence, trivial
CASES = {
    "finite": (
        lambda r, n, d: finite_class_bound(r, n, n_hypotheses=8, loss_bound=2.0, delta=d),
        (None, 2.0 * sqrt((log(8) + 2.0) / 200.0), 2.0),
    ),
    "finite, two-sided": (
        lambda r, n, d: finite_class_bound(
            r, n, n_hypotheses=8, loss_bound=2.0, delta=d, two_sided=True
        ),
        (None, 2.0 * sqrt((log(16) + 2.0) / 200.0), 2.0),
    ),
    "lipschitz": (
        lambda r, n, d: lipschitz_bound(
            r, n, rademacher=0.7 / sqrt(n), lipschitz=3.0, loss_bound=2.0, delta=d
        ),
        (0.42, 0.2, 2.0),
    ),
    "lipschitz, of the sample": (
        lambda r, n, d: lipschitz_bound(
            r, n, rademacher=0.7 / sqrt(n), lipschitz=3.0, loss_bound=2.0, delta=d, empirical=True
        ),
        (0.42, 2.0 * TAIL2, 2.0),
    ),
    "ridge": (lambda r, n, d: kernel_ridge_bound(r, n, delta=d, **BALL), (1.2, 0.4, 4.0)),
    "ridge, trace": (
        lambda r, n, d: kernel_ridge_bound(r, n, delta=d, trace=0.16 * n, **BALL),
        (4 * 2 * 3 * 0.04, 4.0 * TAIL2, 4.0),
    ),
    "svr": (
        lambda r, n, d: svr_bound(r, n, delta=d, epsilon=0.5, **BALL),
        (0.3, 0.15, 1.5),
    ),
    "quadratic svr": (
        lambda r, n, d: quadratic_svr_bound(r, n, delta=d, epsilon=0.5, **BALL),
        (4 * 1.5 * 0.15, 0.225, 2.25),
    ),
    "lasso": (
        lambda r, n, d: lasso_bound(
            r, n, norm=3.0, radius=0.5, n_features=20, residual_bound=2.0, delta=d
        ),
        (4 * 0.5 * 3 * 2 * sqrt(2 * log(40)) / 10, 0.4, 4.0),
    ),
    "joint quantiles": (
        lambda r, n, d: joint(r, n, delta=d, offset_bound=1.0),
        # w = (0.8, 0.5), c √κ = (3, 6), a = 2, β = 1
        (2 * (0.8 * 4 + 0.5 * 7) / 10, 0.1 * (0.8 * 6 + 0.5 * 9), 9.3),
    ),
    "joint quantiles, as published": (
        lambda r, n, d: joint(r, n, delta=d, contraction="vector"),
        # c √(pκ) = 3 √10, 2 p a = 8
        (2 * sqrt(2) * 3 * sqrt(10) / 10, 0.1 * (8 + 3 * sqrt(10)), 8 + 3 * sqrt(10)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_terms_by_hand(name):
    make, (complexity, confidence, trivial) = CASES[name]
    result = make(0.3, 100, DELTA)
    wanted = {"empirical risk": 0.3, "complexity": complexity, "confidence": confidence}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    assert result.terms == pytest.approx(wanted, rel=1e-12)
    assert result.value == pytest.approx(sum(wanted.values()), rel=1e-12)
    assert result.trivial == pytest.approx(trivial)
    assert result.constants["n"] == 100


@pytest.mark.parametrize("name", CASES)
def test_rate_is_one_over_root_n(name):
    make, _ = CASES[name]
    sizes = np.array([1e2, 1e4, 1e6])
    excess = [make(0.0, int(n), 0.05).value for n in sizes]
    slopes = np.diff(np.log(excess)) / np.diff(np.log(sizes))
    np.testing.assert_allclose(slopes, -0.5, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_vacuous_is_said(name):
    make, _ = CASES[name]
    few, many = make(0.1, 2, 0.05), make(0.1, 10**6, 0.05)
    assert few.vacuous
    assert "vacuous" in str(few)
    assert "vacuous" in repr(few)
    assert not many.vacuous
    assert "vacuous" not in str(many)
    assert many.value < many.trivial
    assert "\n" not in repr(many)
    assert many.source in str(many)
    assert all(sentence in str(many) for sentence in many.assumptions)


@pytest.mark.parametrize("name", CASES)
def test_more_confidence_costs(name):
    make, _ = CASES[name]
    assert make(0.1, 50, 0.01).value > make(0.1, 50, 0.1).value
    if name != "finite":
        return
    assert make(0.1, 50, 1.0).value == pytest.approx(0.1 + 2.0 * sqrt(log(8) / 100))


def test_pseudo_dimension_by_hand():
    result = pseudo_dimension_bound(0.3, 100, dimension=4, loss_bound=2.0, delta=DELTA)
    assert result.terms["complexity"] == pytest.approx(2 * sqrt(8 * (1 + log(25)) / 100))
    assert result.terms["confidence"] == pytest.approx(0.2)
    other = pseudo_dimension_bound(
        0.3, 100, dimension=4, loss_bound=2.0, delta=DELTA, of="functions"
    )
    assert other.terms["complexity"] == pytest.approx(2 * sqrt(16 * (1 + log(25)) / 100))
    alone = pseudo_dimension_bound(0.3, 100, dimension=0, loss_bound=2.0)
    assert alone.terms["complexity"] == 0.0


def test_pseudo_dimension_above_the_size_of_the_sample():
    """The printed formula falls again for d > n, and is not a number for d > en."""
    known = {"loss_bound": 1.0}
    values = [
        pseudo_dimension_bound(0.0, 10, dimension=d, **known).value for d in (5, 10, 20, 100)
    ]
    assert values[0] < values[1] == values[2] == values[3]
    assert 20 * log(e * 10 / 20) < 10 * log(e)


def test_pseudo_dimension_rate():
    sizes = np.array([1e4, 1e6, 1e8])
    values = [
        pseudo_dimension_bound(0.0, int(n), dimension=3, loss_bound=1.0).value for n in sizes
    ]
    slopes = np.diff(np.log(values)) / np.diff(np.log(sizes))
    assert (slopes > -0.5).all()
    assert (slopes < -0.44).all()
    assert slopes[1] < slopes[0]  # the logarithm fades


def test_quantile_deviation_by_hand():
    residuals = np.repeat([-1.0, -0.1, 0.1, 1.0], 25)
    low, high = quantile_deviation_bound(
        residuals, margin=0.4, norm=0.5, radius=0.2, offset_bound=0.02, delta=2 * DELTA
    )
    width = 2 * (0.1 + 0.02) / 0.4 / 10
    # ramps: Γ⁻ = 1, ¼, 0, 0 and Γ⁺ = 1, 1, ¾, 0
    assert low.terms == pytest.approx({"ramp": 1.25 / 4, "complexity": -width, "confidence": -0.1})
    assert high.terms == pytest.approx({"ramp": 2.75 / 4, "complexity": width, "confidence": 0.1})
    assert high.value == pytest.approx(2.75 / 4 + 0.16)
    assert (low.trivial, high.trivial) == (0.0, 1.0)
    assert low.lower
    assert not high.lower
    assert ">=" in str(low)
    assert not low.vacuous
    again = quantile_deviation_bound(residuals[:4], margin=0.4, norm=5.0, radius=0.2)
    assert again.lower.vacuous
    assert again.upper.vacuous


def test_insensitive_excess_by_hand():
    known = {"rademacher": 0.05, "lipschitz": 3.0, "residual_bound": 2.0, "epsilon": 0.1}
    result = insensitive_excess_bound(100, delta=2 * DELTA, **known)
    assert result.terms == pytest.approx(
        {"complexity": 0.3, "confidence": 1.2, "insensitivity": 0.3}
    )
    assert result.trivial == 6.0
    vector = insensitive_excess_bound(100, delta=2 * DELTA, n_outputs=2, **known)
    assert vector.terms["complexity"] == pytest.approx(0.3 * sqrt(2))


def test_the_bound_output_by_output_is_the_smaller_one():
    random = np.random.RandomState(0)
    for _ in range(50):
        p = random.randint(1, 6)
        known = {
            "levels": np.sort(random.uniform(0.01, 0.99, p)),
            "diagonal": random.uniform(0.0, 2.0, p),
            "norm": random.uniform(0.0, 3.0),
            "target_bound": random.uniform(0.0, 3.0),
        }
        ours = joint(0.1, 50, **known)
        published = joint(0.1, 50, contraction="vector", **known)
        assert ours.terms["complexity"] <= published.terms["complexity"] / sqrt(2) + 1e-12
        assert ours.value <= published.value


def test_lasso_is_the_general_bound_with_the_slope_of_the_square():
    general = lipschitz_bound(
        0.1,
        100,
        rademacher=l1_ball_complexity(0.5, 3.0, 20, 100),
        lipschitz=4.0,
        loss_bound=4.0,
    )
    ours = lasso_bound(0.1, 100, norm=3.0, radius=0.5, n_features=20, residual_bound=2.0)
    assert ours.value == pytest.approx(general.value)


def test_a_tube_wider_than_all_residuals():
    result = svr_bound(0.0, 100, epsilon=5.0, **BALL)
    assert isinstance(result, Bound)
    assert result.value == result.trivial == 0.0


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: kernel_ridge_bound(0.1, 0, **BALL), ValueError, "n must be an integer >= 1"),
        (lambda: kernel_ridge_bound(-0.1, 9, **BALL), ValueError, "empirical_risk must be"),
        (lambda: kernel_ridge_bound(0.1, 9, delta=0.0, **BALL), ValueError, "delta must be a num"),
        (lambda: kernel_ridge_bound(0.1, 9, delta=1.5, **BALL), ValueError, "got 1.5"),
        (lambda: kernel_ridge_bound(0.1, 9, trace=9.0, **BALL), ValueError, "trace must be at mo"),
        (
            lambda: svr_bound(0.1, 9, **{**BALL, "residual_bound": np.inf}),
            ValueError,
            "residual_bound must be a finite number >= 0, got inf",
        ),
        (lambda: svr_bound(0.1, 9, **{**BALL, "radius": "1"}), TypeError, "radius must be"),
        (lambda: svr_bound(0.1, 9.5, **BALL), TypeError, "n must be an integer"),
        (
            lambda: kernel_ridge_bound(4.1, 9, **BALL),
            ValueError,
            "empirical_risk must be at most 4, the largest loss of these assumptions, got 4.1",
        ),
        (lambda: svr_bound(2.0, 9, epsilon=0.5, **BALL), ValueError, "must be at most 1.5"),
        (lambda: joint(20.0, 9), ValueError, "empirical_risk must be at most"),
        (
            lambda: finite_class_bound(5.0, 9, n_hypotheses=3, loss_bound=1.0),
            ValueError,
            "empirical_risk must be at most 1",
        ),
        (lambda: joint(0.1, 9, diagonal=[1.0]), ValueError, "diagonal must be a number or have"),
        (lambda: joint(0.1, 9, diagonal=-1.0), ValueError, "diagonal must be finite and >= 0"),
        (lambda: joint(0.1, 9, contraction="x"), ValueError, "contraction must be"),
        (
            lambda: joint(0.1, 9, contraction="vector", offset_bound=1.0),
            ValueError,
            "offset_bound must be 0",
        ),
        (lambda: joint(0.1, 9, levels=[0.0, 0.5]), ValueError, "levels must lie strictly"),
        (
            lambda: pseudo_dimension_bound(0.1, 9, dimension=2, loss_bound=1.0, of="x"),
            ValueError,
            "of must be 'losses' or 'functions'",
        ),
        (
            lambda: quantile_deviation_bound([], margin=1.0, norm=1.0, radius=1.0),
            ValueError,
            "residuals must be",
        ),
        (
            lambda: quantile_deviation_bound([1.0], margin=0.0, norm=1.0, radius=1.0),
            ValueError,
            "margin must be a finite number > 0",
        ),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("power", [10, 1022, 1100, 10**6])
def test_classes_of_any_size(power):
    found = finite_class_bound(0.1, 100, n_hypotheses=2**power, loss_bound=2.0, delta=DELTA)
    confidence = 2.0 * sqrt((power * log(2.0) + 2.0) / 200.0)
    assert found.terms["confidence"] == pytest.approx(confidence, rel=1e-14)
    assert "n_hypotheses = " in str(found)


def test_any_probability_of_failure():
    least = finite_class_bound(0.1, 100, n_hypotheses=1, loss_bound=1.0, delta=5e-324)
    assert least.value == pytest.approx(0.1 + sqrt(1074 * log(2.0) / 200.0), rel=1e-12)

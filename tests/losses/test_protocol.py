"""What losses say of themselves, names, and losses on curves."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.losses import (
    LOSSES,
    Absolute,
    BoxQuadratic,
    ConvexFunction,
    CurveHuber,
    CurveInsensitive,
    Huber,
    L2Norm,
    Loss,
    NonCrossing,
    Pinball,
    Pointwise,
    Radial,
    Squared,
    SquaredPinball,
    curve_loss,
    make_loss,
    parameters_of,
)
from fenchel.losses.base import Insensitive
from fenchel.positive import LogLikelihood, NormalLikelihood, Poisson, PredictionLoss, Residual

MEASURE = np.array([0.2, 0.3, 0.1, 0.4])


@pytest.mark.parametrize(
    ("loss", "squared", "linear"),
    [
        (Squared(), True, False),
        (Squared().rescaled(3.0), True, False),
        (Squared().insensitive(0.1), False, False),
        (BoxQuadratic(-np.inf, np.inf, 2.0, 2.0), False, False),
        (Huber(1.0), False, False),
        (SquaredPinball(0.5), False, False),
        (Absolute(), False, True),
        (Pinball([0.2, 0.7]), False, True),
    ],
    ids=repr,
)
def test_boxes(loss, squared, linear):
    box = loss.box(loss.n_outputs or 3)
    assert box.is_squared is squared
    assert box.is_linear is linear
    assert box.lower.shape == (loss.n_outputs or 3,)


@pytest.mark.parametrize(
    "loss", [L2Norm(), NonCrossing(Pinball([0.2, 0.7])), Insensitive(Huber(1.0), 0.1), Loss()]
)
def test_no_box(loss):
    assert loss.box(2) is None


def test_bounded_and_radial():
    bounded = [Absolute(), Pinball(0.3), Huber(1.0), Huber(1.0).insensitive(0.1)]
    bounded += [CurveHuber(1.0, 1, MEASURE), Pointwise(Absolute(), MEASURE)]
    free = [Squared(), L2Norm(), SquaredPinball(0.3), CurveHuber(1.0, 2, MEASURE), Loss()]
    free += [CurveInsensitive(1.0, 1, MEASURE), Pointwise(Squared(), MEASURE)]
    assert all(loss.bounded for loss in bounded)
    assert not any(loss.bounded for loss in free)
    radial = [Squared(), Squared().insensitive(0.1), L2Norm(), Radial(1.0, 0.5)]
    radial += [CurveHuber(1.0, 2, MEASURE), CurveInsensitive(1.0, 2, MEASURE)]
    others = [Absolute(), Huber(1.0), SquaredPinball(0.3), CurveHuber(1.0, 1, MEASURE), Loss()]
    assert all(loss.radial for loss in radial)
    assert not any(loss.radial for loss in others)


def test_single_outputs():
    assert Squared().insensitive(0.1).output(0, 2) is None
    assert Squared().insensitive(0.1).output(0, 1) is not None
    assert L2Norm().output(0, 2) is None
    levels = Pinball([0.9, 0.2])
    for j, level in enumerate((0.9, 0.2)):
        assert levels.output(j, 2).box(1).upper == pytest.approx([level])


def test_without_the_order():
    pinball = Pinball([0.2, 0.7])
    assert NonCrossing(pinball).unconstrained is pinball
    assert pinball.unconstrained is pinball


@pytest.mark.parametrize("name", LOSSES)
def test_a_name_in_other_units_is_the_same_kind(name):
    """Squares, absolute values and levels know no units, thresholds are divided by them."""
    numbers = {"kappa": 0.4, "epsilon": 0.3, "level": 0.8}
    loss = make_loss(name, **numbers)
    smaller = make_loss(name, kappa=0.1, epsilon=0.075, level=0.8)
    assert repr(loss.rescaled(4.0)) == repr(smaller)
    residual = np.linspace(-2.0, 2.0, 9)[:, None]
    np.testing.assert_array_equal(loss.rescaled(4.0).value(residual), smaller.value(residual))


def test_names_of_several_outputs():
    residual = np.array([[3.0, -4.0]])
    expected = {
        "squared": 12.5,
        "absolute": 7.0,
        "epsilon_insensitive": 4.0,
        "squared_epsilon_insensitive": 8.0,
        "huber": 4.5,
        "pinball": 0.8 * 3.0 + 0.2 * 4.0,
        "squared_pinball": 0.5 * (0.8 * 9.0 + 0.2 * 16.0),
    }
    for name in LOSSES:
        loss = make_loss(name, 2, kappa=1.0, epsilon=1.0, level=0.8)
        assert loss.value(residual) == pytest.approx([expected[name]])
    assert parameters_of("pinball") == ("level",)
    assert parameters_of(Huber(1.0)) == parameters_of("hinge") == ()


@pytest.mark.parametrize(
    ("name", "given"), [("kappa", 0.0), ("epsilon", -1.0), ("level", 1.0), ("level", 0.0)]
)
def test_parameters_are_checked_whether_read_or_not(name, given):
    for make in (make_loss, lambda loss, **numbers: curve_loss(loss, MEASURE, **numbers)):
        for loss in ("squared", Huber(1.0)):
            with pytest.raises(ValueError, match=f"{name} must be a.*got {given}"):
                make(loss, **{name: given})


def test_pointwise_is_an_integral():
    """Also with weights for each row, and none at some of the points."""
    weights = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.7, 0.0, 0.1]])
    loss = Pointwise(Pinball(0.8), weights)
    curves = np.array([[1.0, -2.0, 3.0], [-1.0, 2.0, 0.5], [1.0, 9.0, -1.0]])
    expected = (weights * np.where(curves > 0.0, 0.8 * curves, -0.2 * curves)).sum(axis=1)
    np.testing.assert_allclose(loss.value(loss.root * curves), expected, rtol=1e-15)
    dual = loss.conjugate_prox(loss.root * curves, np.array([[0.1], [1.0], [10.0]]))
    assert not dual[weights == 0.0].any()
    assert not loss.conjugate_prox_jacobian(loss.root * curves, 0.1)[weights == 0.0].any()
    np.testing.assert_array_equal(loss.conjugate(dual), 0.0)
    assert loss.conjugate(dual + (weights == 0.0))[1] == np.inf


@pytest.mark.parametrize(("loss", "norm"), [(Huber(0.4), 1), (Squared().huber(0.4, 2), 2)])
def test_curves_of_given_losses(loss, norm):
    """Point by point Huber's loss is that of the norm of L¹, of the length that of L²."""
    random = np.random.default_rng(0)
    residual, step = random.standard_normal((20, 4)), 0.3
    own, named = curve_loss(loss, MEASURE), CurveHuber(0.4, norm, MEASURE)
    for method in ("value", "conjugate"):
        at = named.conjugate_prox(residual, step) if method == "conjugate" else residual
        np.testing.assert_allclose(getattr(own, method)(at), getattr(named, method)(at))
    np.testing.assert_allclose(
        own.conjugate_prox(residual, step), named.conjugate_prox(residual, step), atol=1e-15
    )
    assert own.lipschitz == pytest.approx(named.lipschitz)


@pytest.mark.parametrize(
    "make",
    [
        lambda measure: CurveHuber(0.4, 1, measure),
        lambda measure: CurveInsensitive(0.4, 3, measure),
        lambda measure: Pointwise(Absolute(), measure),
        lambda measure: CurveHuber(0.4, 1, measure).rescaled(2.0),
        lambda measure: CurveHuber(0.4, 1, measure).insensitive(0.1),
    ],
)
def test_losses_of_curves_take_another_measure(make):
    uniform = np.full(4, 0.25)
    residual = np.array([[0.5, 2.0, -1.0, 0.1]])
    again = curve_loss(make(MEASURE), uniform)
    assert again.value(residual) == pytest.approx(make(uniform).value(residual), rel=1e-12)
    assert again.value(residual) != pytest.approx(make(MEASURE).value(residual), rel=1e-3)


@pytest.mark.parametrize(
    "loss",
    [
        LogLikelihood(),
        Poisson(np.arange(1.0, 7.0)),
        NormalLikelihood(np.arange(6.0)),
        Residual(Huber(1.0), np.arange(6.0)[:, None]),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_losses_of_predictions_are_the_other_half(loss):
    """The same four methods, also with a step for each row."""
    assert isinstance(loss, ConvexFunction)
    assert isinstance(loss, PredictionLoss)
    point = np.random.default_rng(0).standard_normal((6, loss.n_outputs))
    steps = np.linspace(0.5, 2.0, 6)[:, None]
    for method in (loss.conjugate_prox, loss.conjugate_prox_jacobian):
        together = method(point, steps)
        for i in range(6):
            np.testing.assert_allclose(together[i], method(point, float(steps[i, 0]))[i])


def test_units_of_gaps():
    """The mean loss of the best constant; of zero where it has none; and 1."""
    varied = np.array([[1.0], [3.0]])
    assert Residual(Squared(), varied).unit == pytest.approx(0.5)
    assert Residual(Squared(), np.full((2, 1), 3.0)).unit == pytest.approx(4.5)
    assert Residual(Squared(), np.zeros((2, 1))).unit == 1.0


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, np.inf])
def test_outputs_of_curves_with_weights_of_one(norm):
    one = CurveHuber(0.7, norm, np.ones(1))
    values = np.linspace(-3.0, 3.0, 9)[:, None]
    np.testing.assert_allclose(one.output(0, 1).value(values), one.value(values), atol=1e-14)
    assert CurveHuber(0.7, norm, np.ones(2)).output(0, 2) is None
    assert CurveHuber(0.7, norm, np.array([0.5])).output(0, 1) is None
    several = Pointwise(one, np.ones(3))
    rows = np.random.default_rng(0).normal(size=(5, 3))
    total = sum(several.output(j, 3).value(rows[:, [j]]) for j in range(3))
    np.testing.assert_allclose(total, several.value(rows), rtol=1e-12)
    assert Pointwise(one, np.array([1.0, 0.5])).output(1, 2) is None

"""Every loss keeps its contract."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fenchel import losses
from fenchel.losses import (
    Absolute,
    BoxQuadratic,
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
)
from fenchel.losses.base import Insensitive, Rescaled
from fenchel.testing import check_loss

FIVE = [0.05, 0.3, 0.5, 0.6, 0.99]
THREE = [0.1, 0.5, 0.8]

# One line per loss: each goes through all checks of this file.
MEASURE = np.array([0.2, 0.3, 0.1, 0.4])
LOSSES: list[Loss] = [
    Absolute(),
    L2Norm(),
    Squared(),
    Squared().huber(0.7),
    Squared().huber(0.7, norm=2),
    Huber(0.5),
    Pinball(0.3),
    Pinball(THREE),
    Pinball(FIVE),
    Pinball([0.7, 0.2], n_targets=2),
    SquaredPinball(0.8),
    SquaredPinball(THREE),
    SquaredPinball(FIVE),
    Radial(0.0, 2.0),
    Radial(0.5, np.inf),
    BoxQuadratic(-1.0, 2.0, 0.5, 3.0),
    BoxQuadratic([-1.0, -np.inf, -0.2], [2.0, 3.0, np.inf], [0.0, 1.0, 0.1], [2.0, 0.0, 0.7]),
    # the ε-insensitive versions are checked with each loss; these are ε-insensitive by birth
    Absolute().insensitive(0.3),
    L2Norm().insensitive(0.3),
    Squared().insensitive(0.3),
    Huber(0.5).insensitive(0.3),
    Pinball(THREE).insensitive(0.3),
    Pinball(FIVE).insensitive(0.3),
    SquaredPinball(0.8).insensitive(0.3),
    SquaredPinball(THREE).insensitive(0.3),
    Radial(1.0, 0.7, 0.2),
    *(CurveHuber(0.5, norm, MEASURE) for norm in (1, 2, np.inf)),
    *(CurveInsensitive(0.5, norm, MEASURE) for norm in (1, 2, np.inf)),
    BoxQuadratic(-1.0, 2.0, 0.5, 3.0, 0.3),
    Insensitive(Pinball(THREE), 0.3),
    Insensitive(SquaredPinball(0.8), 0.3),
    Insensitive(Huber(0.5), 0.3),
    *(Pointwise(loss, MEASURE) for loss in (Pinball(0.3), Huber(0.5).insensitive(0.1))),
    Pointwise(SquaredPinball(0.8), [0.2, 0.0, 0.8]),
    Rescaled(Huber(0.5), 3.0),
    Rescaled(L2Norm().insensitive(0.3), 0.2),
]
# The wrapper finds lengths by bisection, also within itself: a few are enough.
COMPILED = [
    loss
    for loss in LOSSES
    if not isinstance(loss, Insensitive | CurveHuber | CurveInsensitive | Pointwise | Rescaled)
]


# Infinite outside of a cone, and tested in a file of their own.
CONSTRAINED: list[Loss] = [
    NonCrossing(Pinball(0.3)),
    NonCrossing(Pinball(THREE)),
    NonCrossing(Pinball([0.6, 0.05, 0.99, 0.3, 0.5])),
]


def name(loss: Loss) -> str:
    epsilon = getattr(loss, "epsilon", 0.0)
    size = "" if loss.n_outputs is None else f"-{loss.n_outputs}"
    return f"{type(loss).__name__}{size}" + (f"-eps{epsilon:g}" if epsilon else "")


def sizes(loss: Loss) -> tuple[int, ...]:
    return (1, 3, 5) if loss.n_outputs is None else (loss.n_outputs,)


# They take seconds, and others of their class do not.
SLOW = {"Insensitive-3-eps0.3", "Rescaled-eps1.5"}


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(loss, id=name(loss), marks=[pytest.mark.slow] * (name(loss) in SLOW))
        for loss in LOSSES + CONSTRAINED
    ],
)
def test_contract(loss):
    """With five outputs in other units, below."""
    for size in sizes(loss)[:1] if isinstance(loss, Insensitive) else sizes(loss)[:2]:
        check_loss(loss, size)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize(
    "loss",
    # a BoxQuadratic has units of its own
    [loss for loss in COMPILED if type(loss) is not BoxQuadratic] + CONSTRAINED,
    ids=name,
)
def test_contract_in_other_units(loss, scale):
    check_loss(loss, sizes(loss)[-1], scale=scale, random_state=1)


@pytest.mark.parametrize("seed", [0, 11, 21, 55])
def test_contract_of_five_levels_whatever_the_seed(seed):
    """A random search alone ended above the lowest loss near a residual, for these of 100."""
    check_loss(Pinball([0.1, 0.3, 0.5, 0.7, 0.9]), 5, scale=1e8, random_state=seed)


def test_every_loss_is_registered():
    public = [getattr(losses, each) for each in losses.__all__]
    classes = {cls for cls in public if isinstance(cls, type) and issubclass(cls, Loss)} - {Loss}
    made_of_others = {Insensitive, Rescaled}
    assert classes | made_of_others == {type(loss) for loss in LOSSES + CONSTRAINED}


@pytest.mark.parametrize("loss", COMPILED, ids=name)
def test_compiled_insensitive_versions_agree_with_the_wrapper(loss):
    random = np.random.default_rng(0)
    p = sizes(loss)[-1]
    ours, wrapped = loss.insensitive(0.4), Insensitive(loss, 0.4)
    residual = random.standard_normal((40, p)) * 10.0 ** random.uniform(-1, 1, (40, 1))
    anchor = loss.conjugate_prox(residual, 0.5)
    np.testing.assert_allclose(ours.value(residual), wrapped.value(residual), atol=1e-12)
    mine, theirs = (each.envelope(anchor, residual, 0.3) for each in (ours, wrapped))
    np.testing.assert_allclose(mine.dual, theirs.dual, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mine.value, theirs.value, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(mine.active, theirs.active)
    jacobian = mine.jacobian if mine.jacobian.ndim == 3 else mine.jacobian[:, :, None]
    np.testing.assert_allclose(jacobian, theirs.jacobian, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_radii_add_up(loss):
    residual = np.random.default_rng(0).standard_normal((20, sizes(loss)[-1])) * 3.0
    twice = loss.insensitive(0.2).insensitive(0.3)
    np.testing.assert_allclose(
        twice.value(residual), loss.insensitive(0.5).value(residual), atol=1e-12
    )


def test_insensitive_leaves_the_loss_alone():
    loss = Pinball(0.3)
    loss.insensitive(1.0)
    assert loss.epsilon == 0.0
    assert loss.value(np.array([[1.0]]))[0] == 0.3


# Numbers of all sizes that hypothesis likes, zeros and ties among them.
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1e-8, -1e8]),
    st.builds(
        lambda sign, mantissa, exponent: sign * mantissa * 10.0**exponent,
        st.sampled_from([-1.0, 1.0]),
        st.floats(1.0, 10.0),
        st.integers(-8, 7),
    ),
)
steps = st.builds(lambda m, e: m * 10.0**e, st.floats(1.0, 10.0), st.integers(-8, 7))
anything = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def rows(data, loss, n: int) -> np.ndarray:
    p = data.draw(st.sampled_from(sizes(loss)))
    return np.array([[data.draw(numbers) for _ in range(p)] for _ in range(n)])


def dots(first, second):
    return np.einsum("ij,ij->i", first, second)


def lengths(array):
    return np.linalg.norm(array, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", COMPILED, ids=name)
@anything
@given(data=st.data())
def test_subgradients(loss, data):
    """What the prox returns is a subgradient: value, conjugate and product agree."""
    point, step = rows(data, loss, 1), data.draw(steps)
    dual = loss.conjugate_prox(point, step)
    conjugate = loss.conjugate(dual)
    assert np.all(np.isfinite(dual))
    assert np.all(np.isfinite(conjugate))
    assert np.all(lengths(dual) <= lengths(point) * (1 + 1e-12))
    residual = (point - dual) / step
    gap = loss.value(residual) + conjugate - dots(dual, residual)
    assert np.all(np.abs(gap) <= 1e-10 * lengths(point) * (lengths(point) / step + lengths(dual)))


@pytest.mark.parametrize("loss", COMPILED, ids=name)
@anything
@given(data=st.data())
def test_prox_is_firmly_nonexpansive(loss, data):
    points, step = rows(data, loss, 2), data.draw(steps)
    first, second = loss.conjugate_prox(points, step)
    moved, away = first - second, points[0] - points[1]
    rounding = 1e-12 * np.abs(points).max() * np.abs(away).max()
    assert moved @ moved <= moved @ away + rounding


@pytest.mark.parametrize("loss", COMPILED, ids=name)
@anything
@given(data=st.data())
def test_jacobian_is_between_zero_and_one(loss, data):
    """At ties and kinks too; and the loss of a residual does not depend on its neighbours."""
    point, step = rows(data, loss, 3), data.draw(steps)
    jacobian = loss.conjugate_prox_jacobian(point, step)
    for row, mine in zip(point, jacobian, strict=True):
        matrix = mine if mine.ndim == 2 else np.diag(mine)
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        spectrum = np.linalg.eigvalsh(matrix)
        assert spectrum[0] >= -1e-9
        assert spectrum[-1] <= 1.0 + 1e-9
        np.testing.assert_array_equal(loss.conjugate_prox_jacobian(row[None], step)[0], mine)
    np.testing.assert_array_equal(loss.value(point[:1]), loss.value(point)[:1])


@pytest.mark.parametrize("loss", COMPILED, ids=name)
@anything
@given(data=st.data())
def test_value_is_convex_and_grows_along_rays(loss, data):
    first, second = rows(data, loss, 2)
    ends = loss.value(np.array([first, second]))
    middle = loss.value(0.5 * (first + second)[None])[0]
    assert np.all(np.isfinite(ends))
    assert 0.0 <= middle <= 0.5 * ends.sum() * (1 + 1e-9)
    assert loss.value(0.5 * first[None])[0] <= 0.5 * ends[0] * (1 + 1e-9)


@pytest.mark.parametrize("loss", COMPILED, ids=name)
@anything
@given(data=st.data())
def test_inequality_of_fenchel_and_young(loss, data):
    point = rows(data, loss, 1)
    residual = np.array([[data.draw(numbers) for _ in point[0]]])
    dual = loss.conjugate_prox(point, 1e-9)
    product = dots(dual, residual)
    total = loss.value(residual) + loss.conjugate(dual)
    assert np.all(total >= product - 1e-9 * (total + np.abs(product)))


@pytest.mark.parametrize("loss", [loss for loss in COMPILED if loss.epsilon > 0], ids=name)
@anything
@given(data=st.data())
def test_zeros_are_exact(loss, data):
    point, step = rows(data, loss, 1), data.draw(steps)
    length = lengths(point)[0]
    if length > 0.0:
        inside = point * (loss.epsilon / length * (1 - 1e-12))
        assert loss.value(inside)[0] == 0.0
        assert not loss.conjugate_prox(inside * step, step).any()
        assert not loss.conjugate_prox_jacobian(inside * step, step).any()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Pinball(1.0), r"levels must lie strictly between 0 and 1, got 1\.0"),
        (lambda: Pinball([0.1, np.nan]), r"levels must lie strictly between 0 and 1"),
        (
            lambda: SquaredPinball([0.5, 0.5]),
            r"levels must not repeat a level, got",
        ),
        (lambda: Pinball(0.5, n_targets=0), r"n_targets must be an integer >= 1, got 0"),
        (lambda: Pinball([]), r"levels must be a number or a non-empty sequence"),
        (lambda: Huber(0.0), r"kappa must be a finite number > 0, got 0\.0"),
        (lambda: Huber(np.inf), r"kappa must be a finite number > 0, got inf"),
        (lambda: Squared().huber(1.0, norm=3), r"norm must be 1 or 2, got 3"),
        (lambda: Squared().insensitive(1.0).huber(1.0), r"not an insensitive version"),
        (lambda: Absolute().insensitive(-1.0), r"epsilon must be a finite number >= 0, got -1\.0"),
        (lambda: BoxQuadratic(0.0, 1.0, 0.0, 0.0), r"needs lower < 0 < upper"),
        (
            lambda: BoxQuadratic(-1.0, np.inf, 0.0, 0.0),
            r"positive curvature where it has no",
        ),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError, match="epsilon must be a finite number >= 0, got 'a'"):
        L2Norm().insensitive("a")


@pytest.mark.parametrize("method", ["value", "conjugate"])
def test_base_class_says_what_to_define(method):
    with pytest.raises(NotImplementedError, match=f"Loss must define {method}"):
        getattr(Loss(), method)(np.zeros((1, 1)))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 3.0])
def test_rearranged_offsets_cost_no_row_more(loss, epsilon):
    """Of one target, whatever it is; a loss of levels puts them in order."""
    loss = loss.insensitive(epsilon) if loss.cone is None else loss
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = loss.n_outputs or 3
        offset = rng.standard_normal(p)
        target = 3.0 * rng.standard_normal((40, 1))
        before, after = (loss.value(target - b) for b in (offset, loss.rearranged(offset)))
        assert np.all(after <= before + 1e-12)
        if getattr(loss, "levels", None) is not None:
            each = loss.rearranged(offset).reshape(-1, loss.n_targets)[np.argsort(loss.levels)]
            offset = offset.reshape(each.shape)
            np.testing.assert_array_equal(each, np.sort(offset, axis=0))

"""Losses that users write: a right one passes, and each way to be wrong is found."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.losses import L2Norm, Local, Loss, Squared
from fenchel.testing import check_loss


class LogCosh(Loss):
    """log cosh r, the smoothed absolute value, output by output; its slope is tanh r."""

    lipschitz = np.inf  # one number would not do for all numbers of outputs
    smoothness = 1.0

    def value(self, residual):
        size = np.abs(residual)
        near = 2.0 * np.sinh(0.5 * np.minimum(size, 1.0)) ** 2  # cosh - 1 without cancellation
        far = size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)
        return np.where(size < 1.0, np.log1p(near), far).sum(axis=1)

    def conjugate(self, dual):
        size = np.abs(dual)
        inside = np.minimum(size, 1.0)
        rest = np.where(inside < 1.0, 1.0 - inside, 1.0)  # 0 log 0 = 0
        value = 0.5 * ((1.0 + inside) * np.log1p(inside) + (1.0 - inside) * np.log(rest))
        return np.where(size <= 1.0, value, np.inf).sum(axis=1)

    def conjugate_prox(self, point, step):
        """x = tanh(r), where r solves tanh(r) + step r = point: r by Newton."""
        step = np.broadcast_to(np.asarray(step, float), (len(point), 1))
        target = np.abs(point)
        r = np.maximum(target - 1.0, 0.0) / step
        for _ in range(15):  # from the left of the root of a concave function: no overshoot
            tanh = np.tanh(r)
            move = (target - tanh - step * r) / (step + 1.0 - tanh**2)
            r = r + move
            if np.all(np.abs(move) <= 1e-12 * r):
                break
        return np.sign(point) * np.tanh(r)

    def conjugate_prox_jacobian(self, point, step):
        dual = self.conjugate_prox(point, step)
        curvature = 1.0 - dual**2
        return curvature / (curvature + step)


class Hinge(Loss):
    """Half the squared positive part of each residual: too low a prediction is what costs."""

    smoothness = 1.0

    def value(self, residual):
        return 0.5 * (np.maximum(residual, 0.0) ** 2).sum(axis=1)

    def conjugate(self, dual):
        return np.where((dual >= 0.0).all(axis=1), 0.5 * (dual**2).sum(axis=1), np.inf)

    def conjugate_prox(self, point, step):
        return np.maximum(point, 0.0) / (1.0 + step)

    def conjugate_prox_jacobian(self, point, step):
        return (point > 0.0) / (1.0 + step * np.ones_like(point))


class Length(Loss):
    """A loss that couples outputs: the Huber loss of the length, in its simplest form."""

    separable = False
    lipschitz = 1.0
    smoothness = 1.0

    def value(self, residual):
        length = np.linalg.norm(residual, axis=1)
        slope = np.minimum(length, 1.0)
        return slope * (length - 0.5 * slope)

    def conjugate(self, dual):
        length = np.linalg.norm(dual, axis=1)
        return np.where(length <= 1.0 + 1e-12, 0.5 * length**2, np.inf)

    def conjugate_prox(self, point, step):
        shrunk = point / (1.0 + step)
        return shrunk / np.maximum(np.linalg.norm(shrunk, axis=1, keepdims=True), 1.0)

    def conjugate_prox_jacobian(self, point, step):
        step = np.broadcast_to(np.asarray(step, float), (len(point), 1))[:, :, None]
        length = np.linalg.norm(point, axis=1)[:, None, None]
        unit = (point / np.maximum(length[:, 0], 1e-300))[:, :, None]
        eye = np.eye(point.shape[1])
        outside = (eye - unit * unit.transpose(0, 2, 1)) / np.maximum(length, 1e-300)
        return np.where(length > 1.0 + step, outside, eye / (1.0 + step))


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Hinge(), Length()], ids=["hinge", "length"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_right_losses_pass(loss, scale):
    check_loss(loss, scale=scale)


@pytest.mark.slow
def test_log_cosh_passes():
    check_loss(LogCosh(), 1)


def broken(**methods):
    """The class of log cosh with some methods replaced."""
    return type("Broken", (LogCosh,), methods)()


def wrong_envelope(self, anchor, residual, step):
    envelope = Loss.envelope(self, anchor, residual, step)
    return envelope._replace(value=envelope.value + 1e-3)


def forgetful_envelope(self, anchor, residual, step):
    envelope = Loss.envelope(self, anchor, residual, step)
    return envelope._replace(active=envelope.active[1:], jacobian=envelope.jacobian[1:])


def unsolid(self, dual):
    largest = np.abs(dual).max(axis=1)
    alone = (np.abs(dual).sum(axis=1) - largest < 1e-3) & (largest > 1e-3)
    return np.where(alone, np.inf, LogCosh.conjugate(self, dual))


def wrong_in_fits(size):
    """A Jacobian that is half of what it must be, for as many rows as trial fits have."""

    def jacobian(self, point, step):
        found = LogCosh.conjugate_prox_jacobian(self, point, step)
        return found * (0.5 if len(point) == size else 1.0)

    return jacobian


WRONG = {
    "negative value": (
        broken(value=lambda self, r: LogCosh.value(self, r) - 1e-3),
        r"value\(0\) must be 0",
    ),
    "another minimum": (
        broken(value=lambda self, r: LogCosh.value(self, r - 0.3)),
        r"value\(0\) must be 0",
    ),
    "not convex": (
        broken(value=lambda self, r: np.sqrt(np.abs(r)).sum(axis=1)),
        r"value is not convex: between \[.*\] and",
    ),
    "value of another loss": (
        broken(value=lambda self, r: 0.9 * LogCosh.value(self, r)),
        "belong together",
    ),
    "conjugate too large": (
        broken(conjugate=lambda self, b: 1.1 * LogCosh.conjugate(self, b)),
        "belong together",
    ),
    "conjugate too small": (
        broken(conjugate=lambda self, b: 0.9 * LogCosh.conjugate(self, b)),
        "belong together: at residual",
    ),
    "conjugate without its domain": (
        broken(conjugate=lambda self, b: LogCosh.conjugate(self, np.clip(b, -1.0, 1.0))),
        "belong together: at residual",
    ),
    "domain too small": (
        broken(
            conjugate=lambda self, b: np.where(
                (np.abs(b) < 0.5).all(axis=1), LogCosh.conjugate(self, b), np.inf
            )
        ),
        "conjugate is not finite at",
    ),
    "prox of another step": (
        broken(conjugate_prox=lambda self, v, t: LogCosh.conjugate_prox(self, v, 1.01 * t)),
        "belong together|not optimal",
    ),
    "prox a little off": (
        broken(conjugate_prox=lambda self, v, t: 0.999 * LogCosh.conjugate_prox(self, v, t)),
        "belong together|not optimal",
    ),
    "prox that ignores its step": (
        broken(conjugate_prox=lambda self, v, t: np.tanh(v)),
        "belong together|not optimal",
    ),
    "prox that moves its points": (
        broken(conjugate_prox=lambda self, v, t: LogCosh.conjugate_prox(self, np.abs(v, v), t)),
        "changes the points",
    ),
    "Jacobian a little off": (
        broken(
            conjugate_prox_jacobian=lambda self, v, t: (
                0.99 * LogCosh.conjugate_prox_jacobian(self, v, t)
            )
        ),
        r"conjugate_prox_jacobian is not the derivative .* finite differences give",
    ),
    "Jacobian above one": (
        broken(
            conjugate_prox_jacobian=lambda self, v, t: (
                1.0 + LogCosh.conjugate_prox_jacobian(self, v, t)
            )
        ),
        r"not between 0 and I .* eigenvalues",
    ),
    "Jacobian of a wrong shape": (
        broken(separable=False),
        r"must have shape \(60, 1, 1\), got \(60, 1\)",
    ),
    "steps not row by row": (
        broken(
            conjugate_prox=lambda self, v, t: LogCosh.conjugate_prox(self, v, np.mean(t)),
        ),
        r"conjugate_prox with an array \(n, 1\) of steps",
    ),
    "smoothness too small": (
        broken(smoothness=0.5),
        r"smoothness=0\.5 is too small: the curvature between",
    ),
    "Lipschitz constant too small": (
        broken(lipschitz=0.5),
        r"lipschitz=0\.5 is too small: the slope between",
    ),
    "envelope of another value": (
        broken(envelope=wrong_envelope),
        r"envelope\(\.\.\.\)\.value is not what",
    ),
    "envelope that forgets a row": (
        broken(envelope=forgetful_envelope),
        r"envelope\(\.\.\.\)\.jacobian is not what",
    ),
    "offset of another loss": (
        broken(minimizing_offset=lambda self, r, w: np.average(r, axis=0, weights=w)),
        "minimizing_offset is not optimal",
    ),
    "offset without weights": (
        broken(
            minimizing_offset=lambda self, r, w: Loss.minimizing_offset(self, r, np.ones(len(r)))
        ),
        "minimizing_offset is not optimal",
    ),
    "domain not solid": (broken(conjugate=unsolid), "domain of conjugate is not solid|finite"),
    "value of a wrong shape": (
        broken(value=lambda self, r: LogCosh.value(self, r)[:, None]),
        r"value\(residual\) must have shape \(60,\), got \(60, 1\)",
    ),
    "NaN": (broken(conjugate=lambda self, b: np.full(len(b), np.nan)), "conjugate"),
    "box of another loss": (
        broken(box=lambda self, p: Squared().box(p)),
        r"conjugate and box\(1\) do not belong together: at",
    ),
    "box of a wrong shape": (
        broken(box=lambda self, p: Squared().box(p + 1)),
        r"box\(1\)\.lower must have shape \(1,\)",
    ),
    "parts of another loss": (
        broken(conic_parts=lambda self, p: L2Norm().conic_parts(p)),
        r"the loss and conic_parts\(1\) do not belong together: at",
    ),
    "outputs of another loss": (
        broken(output=lambda self, j, p: Squared()),
        r"value is not the sum of those of output\(j, n_outputs\): at",
    ),
    "insensitive to small residuals, it says": (
        broken(epsilon=0.1),
        r"epsilon=0\.1, but the dual vector of the small residual",
    ),
    "bounded, it says": (
        type("Broken", (Squared,), {"bounded": True})(),
        r"bounded=True, but conjugate is finite at",
    ),
    "flat, it says": (
        broken(local=lambda self, reach: Local(0.5 * np.ones(1), True, 1e3)),
        r"local\(.*\)\.slopes are too small: from",
    ),
    "small, it says": (
        broken(local=lambda self, reach: Local(np.ones(1), True, 1e-3)),
        r"local\(.*\)\.most is 0\.001, and a loss there is",
    ),
    "the same in all units": (
        broken(rescaled=lambda self, scale: self),
        r"rescaled\(0\.3\)\.value\(ξ\) is not value\(0\.3 ξ\)",
    ),
    "a Jacobian that is wrong in fits": (
        broken(conjugate_prox_jacobian=wrong_in_fits(14)),
        r"a fit with the envelope of the loss changes with log alpha by .*, in differences of",
    ),
    "insensitive to nothing": (
        broken(insensitive=lambda self, epsilon: self),
        r"must be exactly zero within epsilon",
    ),
    "insensitive to something else": (
        type(
            "Broken",
            (Squared,),
            {"insensitive": lambda self, epsilon: Squared().insensitive(2.0 * epsilon)},
        )(),
        r"conjugate must be that of the loss plus epsilon times the length",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
def test_wrong_losses_are_found(case):
    loss, sentence = WRONG[case]
    with pytest.raises(AssertionError, match=f"^Broken.*{sentence}"):
        check_loss(loss, 1 if "solid" not in case else 2)


def test_a_loss_of_one_coordinate_is_not_radial():
    loss = LogCosh()
    loss.radial = True
    with pytest.raises(AssertionError, match="radial=True, but value depends on more than"):
        check_loss(loss, 2)


def test_conjugate_that_couples_is_not_separable():
    loss = Length()
    loss.separable = True
    loss.conjugate_prox_jacobian = lambda v, t: np.einsum(
        "ijj->ij", Length.conjugate_prox_jacobian(loss, v, t)
    )
    with pytest.raises(AssertionError, match="separable=True, but conjugate"):
        check_loss(loss, 3)


def test_zero_everywhere_says_to_set_the_scale():
    class Nothing(Squared):
        def value(self, residual):
            return np.zeros(len(residual))

    with pytest.raises(AssertionError, match=r"value is zero for most residuals .* set scale"):
        check_loss(Nothing())


def test_number_of_outputs():
    from fenchel.losses import Pinball

    with pytest.raises(ValueError, match="n_outputs must be 1 for this loss, got 2"):
        check_loss(Pinball(0.5), 2)

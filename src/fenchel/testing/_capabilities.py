"""Checks of what a loss states about itself beyond its four methods."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses import Box, BoxQuadratic
from fenchel.testing._saying import bad_rows, require, show
from fenchel.testing._trial import ROWS, TOL, Trial

_FAR = 1e9  # of a slope: beyond any bound of a loss that is made for these residuals
_NEAR = 1e-7  # of a residual: within ε, or at least on one side of a kink


def check_capabilities(trial: Trial) -> None:
    """Run all checks of this file."""
    _check_box(trial)
    _check_parts(trial)
    _check_outputs(trial)
    _check_flags(trial)
    _check_local(trial)
    _check_units(trial)


def _same(found: FloatArray, truth: FloatArray, points: FloatArray, sentence: str) -> None:
    """Values of two functions at dual points, infinite at the same ones."""
    with np.errstate(invalid="ignore"):
        good = (found == truth) | (np.abs(found - truth) <= TOL * np.abs(truth))
    for i in bad_rows(good):
        raise AssertionError(
            f"{sentence}: at {show(points[i])} one is {float(found[i]):.9g}, and the other "
            f"{float(truth[i]):.9g}"
        )


def _conjugate_of(box: Box, dual: FloatArray) -> FloatArray:
    inside = ((dual >= box.lower * (1.0 + 1e-12)) & (dual <= box.upper * (1.0 + 1e-12))).all(1)
    curvature = np.where(dual > 0.0, box.above, box.below)
    value = (0.5 * curvature * dual**2).sum(1) + box.epsilon * np.linalg.norm(dual, axis=1)
    return np.where(inside, value, np.inf)


def _check_box(trial: Trial) -> None:
    """The conjugate is a quadratic on the box."""
    loss, p = trial.loss, trial.size
    box = loss.box(p)
    if box is None:
        return
    for name, values in zip(Box._fields[:4], box[:4], strict=True):
        require(np.shape(values) == (p,), f"box({p}).{name} must have shape ({p},)")
    dual = np.concatenate([trial.duals(), trial.points(ROWS, trial.slope)])
    sentence = f"conjugate and box({p}) do not belong together"
    _same(loss.conjugate(dual), _conjugate_of(box, dual), dual, sentence)


def _check_parts(trial: Trial) -> None:
    """The infimal convolution of the parts is the loss."""
    loss, p = trial.loss, trial.size
    parts = loss.conic_parts(p)
    if parts is None:
        return
    sentence = f"the loss and conic_parts({p}) do not belong together"
    if parts.cone is not None:
        require(parts.box is not None and parts.epsilon == 0.0, f"{sentence}: a cone is of a box")
        assert parts.box is not None
        residual = loss.nearest(trial.residuals())
        inside = BoxQuadratic(*parts.box).value(residual)
        _same(loss.value(residual), inside, residual, sentence)
        return
    dual = np.concatenate([trial.duals(), trial.points(ROWS, trial.slope)])
    length = np.linalg.norm(dual, axis=1)
    total = parts.epsilon * length
    if parts.box is not None:
        total = total + _conjugate_of(parts.box, dual)
    if parts.length is not None:
        curvature, radius = parts.length
        total = total + np.where(
            length > radius * (1.0 + 1e-12), np.inf, 0.5 * curvature * length**2
        )
    _same(loss.conjugate(dual), total, dual, sentence)


def _check_outputs(trial: Trial) -> None:
    """The loss is the sum of those of its outputs."""
    loss, p = trial.loss, trial.size
    outputs = [loss.output(j, p) for j in range(p)]
    found = [each for each in outputs if each is not None]
    require(len(found) in (0, p), "output(j, n_outputs) is None for some outputs only")
    if not found:
        return
    residual = trial.residuals()
    total = sum(
        (each.value(residual[:, [j]]) for j, each in enumerate(found)), np.zeros(len(residual))
    )
    sentence = "value is not the sum of those of output(j, n_outputs)"
    _same(loss.value(residual), total, residual, sentence)


def _check_flags(trial: Trial) -> None:
    """``epsilon``, ``radial`` and ``bounded``."""
    loss, p = trial.loss, trial.size
    near = trial.step * trial.scale * _NEAR * trial.directions(ROWS)
    dual = loss.conjugate_prox(near, trial.step)
    moving = dual.any(axis=1)
    if loss.epsilon > 1e3 * _NEAR * trial.scale:
        for i in bad_rows(~moving):
            raise AssertionError(
                f"epsilon={loss.epsilon:.3g}, but the dual vector of the small residual "
                f"{show(near[i] / trial.step)} is not zero"
            )
    if loss.radial:
        residual = trial.residuals()
        turned = residual @ np.linalg.qr(trial.random.standard_normal((p, p)))[0]
        sentence = "radial=True, but value depends on more than the length of the residual"
        _same(loss.value(residual), loss.value(turned), residual, sentence)
    if loss.bounded:
        far = _FAR * trial.slope * np.concatenate([np.eye(p), -np.eye(p)])
        for i in bad_rows(np.isinf(loss.conjugate(far))):
            raise AssertionError(f"bounded=True, but conjugate is finite at {show(far[i])}")


def _check_local(trial: Trial) -> None:
    """Slope and range bound what the loss does."""
    loss, p = trial.loss.unconstrained, trial.size
    reach = trial.scale * trial.random.uniform(0.5, 2.0, p)
    at = loss.local(reach)
    first, second = (reach * trial.random.uniform(-1.0, 1.0, (4 * ROWS, p)) for _ in range(2))
    corners = reach * np.sign(trial.random.standard_normal((ROWS, p)))
    most = loss.value(np.concatenate([first, corners])).max()
    require(
        most <= at.most * (1.0 + TOL),
        f"local({show(reach)}).most is {at.most:.6g}, and a loss there is {float(most):.6g}",
    )
    moved, change = np.abs(first - second), np.abs(loss.value(first) - loss.value(second))
    size = moved @ at.slopes if at.by_output else at.slopes[0] * np.linalg.norm(moved, axis=1)
    for i in bad_rows(change <= size * (1.0 + TOL)):
        raise AssertionError(
            f"local({show(reach)}).slopes are too small: from {show(first[i])} to "
            f"{show(second[i])} the loss changes by {float(change[i]):.6g}"
        )


def _check_units(trial: Trial) -> None:
    """``rescaled`` is the loss in other units, in all of its parts."""
    loss = trial.loss
    for scale in (0.3, 7.0):
        other = loss.rescaled(scale)
        name = f"rescaled({scale:g})"
        divisor = scale**loss.degree
        point = loss.nearest(trial.points(ROWS, trial.scale / scale))
        expected = loss.value(scale * point) / divisor
        sentence = f"{name}.value(ξ) is not value({scale:g} ξ) / {divisor:.3g}"
        _same(other.value(point), expected, point, sentence)
        ratio = divisor / scale
        dual = trial.duals() / ratio
        _same(
            other.conjugate(dual),
            loss.conjugate(dual * ratio) / divisor,
            dual,
            f"{name}.conjugate is not that of {name}",
        )
        step = 0.7 * trial.step * scale / ratio
        point = trial.points(ROWS, trial.slope / ratio)
        found = other.conjugate_prox(point, step)
        truth = loss.conjugate_prox(point * ratio, step * ratio / scale) / ratio
        for i in bad_rows(
            np.abs(found - truth).max(axis=1) <= TOL * np.linalg.norm(point, axis=1)
        ):
            raise AssertionError(
                f"{name}.conjugate_prox is not that of {name}: at {show(point[i])} it is "
                f"{show(found[i])} instead of {show(truth[i])}"
            )
        for what in ("lipschitz", "smoothness"):
            power = 1 if what == "lipschitz" else 2
            wanted = getattr(loss, what) * scale**power / divisor
            require(
                np.isclose(getattr(other, what), wanted, rtol=TOL, atol=0.0),
                f"{name}.{what} must be {wanted:.6g}, got {getattr(other, what):.6g}",
            )

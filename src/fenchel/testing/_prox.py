"""Checks of the prox of a conjugate, and of everything that uses it."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses import Loss
from fenchel.testing._saying import bad_rows, require, require_shape, show
from fenchel.testing._trial import ROWS, STEPS, TOL, Trial


def check_prox(trial: Trial) -> None:
    """Check that no point is better than the prox."""
    loss = trial.loss
    for factor in STEPS:
        step = factor * trial.step
        point = trial.points(ROWS, trial.slope)
        dual = loss.conjugate_prox(point, step)
        for i in bad_rows(np.isfinite(loss.conjugate(dual))):
            raise AssertionError(
                f"conjugate is not finite at {show(dual[i])}, which conjugate_prox returns for "
                f"the point {show(point[i])} with step {step:.6g}"
            )

        def objective(candidate: FloatArray, step: float, point: FloatArray) -> FloatArray:
            away = candidate - point
            return step * loss.conjugate(candidate) + 0.5 * np.einsum("ij,ij->i", away, away)

        best = objective(dual, step, point)
        reach = np.linalg.norm(point, axis=1, keepdims=True)
        candidates = [trial.duals(), np.zeros_like(dual), loss.conjugate_prox(point, 0.1 * step)]
        candidates += [
            dual + size * reach * trial.directions(ROWS)
            for size in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
            for _ in range(4)
        ]
        candidates += [dual + share * (point - dual) for share in (-0.1, -1e-3, 1e-3, 0.1)]
        candidates += [dual * (1.0 + share) for share in (-0.1, -1e-3, 1e-3, 0.1)]
        for candidate in candidates:
            other = objective(candidate, step, point)
            far = np.linalg.norm(candidate - dual, axis=1)
            for i in bad_rows(best <= other + 1e-10 * (np.abs(best) + reach[:, 0] ** 2)):
                raise AssertionError(
                    f"conjugate_prox is not optimal: at point {show(point[i])} with step "
                    f"{step:.6g} it is {show(dual[i])}, and {show(candidate[i])}, at a distance "
                    f"of {float(far[i]):.2g}, has a lower objective by "
                    f"{float(best[i] - other[i]):.2g}"
                )


def check_domain(trial: Trial) -> None:
    loss = trial.loss
    dual = trial.duals(4 * ROWS)
    # a loss with a cone has a rule of its own where others count on a solid domain
    solid = dual.shape if loss.cone is None else (len(dual), 1)
    shrunk = dual * trial.random.choice([0.0, 0.5, 0.99, 1.0], solid)
    for i in bad_rows(np.isfinite(loss.conjugate(shrunk))):
        raise AssertionError(
            f"the domain of conjugate is not solid: it is finite at {show(dual[i])} and not at "
            f"{show(shrunk[i])}, whose coordinates are nearer to 0"
        )
    if loss.separable and trial.size > 1:
        mixed = trial.random.permuted(dual, axis=0)  # each coordinate from another row
        parts = [np.where(np.arange(trial.size) == j, mixed, 0.0) for j in range(trial.size)]
        total = np.sum([loss.conjugate(part) for part in parts], axis=0)
        whole = loss.conjugate(mixed)
        for i in bad_rows(np.isclose(whole, total, rtol=TOL, atol=0.0)):
            raise AssertionError(
                f"separable=True, but conjugate at {show(mixed[i])} is {float(whole[i]):.6g} and "
                f"not the sum over outputs, {float(total[i]):.6g}"
            )


def check_balance(trial: Trial) -> None:
    """Check that balanced points stay in the domain, and that zero rows do not change."""
    loss = trial.loss
    for shift in (0.0, 1.0):  # the second time far from balanced
        dual = trial.duals() + shift * trial.slope
        dual = loss.conjugate_prox(dual, 1e-3 * trial.step)
        dual[::5] = 0.0
        weight = trial.random.uniform(0.1, 2.0, len(dual))
        balanced = loss.balanced(dual, weight)
        left = np.abs(weight @ balanced)
        require(
            np.all(left <= 1e-12 * (weight @ np.abs(dual))),
            f"balanced leaves a sum of {show(left)}",
        )
        for i in bad_rows(np.isfinite(loss.conjugate(balanced))):
            raise AssertionError(
                f"balanced leaves the domain: {show(dual[i])} becomes {show(balanced[i])}"
            )
        require(not balanced[::5].any(), "balanced changes rows that are zero")
        require(
            np.allclose(
                loss.balanced(balanced, weight), balanced, rtol=TOL, atol=TOL * trial.slope
            ),
            "balanced changes a point that is balanced",
        )


def _dense(jacobian: FloatArray) -> FloatArray:
    """(n, p, p) from (n, p) or (n, p, p)."""
    return jacobian if jacobian.ndim == 3 else jacobian[:, :, None] * np.eye(jacobian.shape[1])


def check_jacobian(trial: Trial) -> None:
    loss = trial.loss
    for factor in STEPS:
        step = factor * trial.step
        point = trial.points(ROWS, trial.slope, -1.5)
        point[0] = 0.0
        point[1:8] = trial.duals(7)
        jacobian = _dense(loss.conjugate_prox_jacobian(point, step))
        where = f"with step {step:.6g}"
        skew = np.abs(jacobian - jacobian.transpose(0, 2, 1)).max(axis=(1, 2))
        for i in bad_rows(skew <= TOL):
            raise AssertionError(f"the Jacobian is not symmetric at {show(point[i])} {where}")
        spectrum = np.linalg.eigvalsh(jacobian)
        for i in bad_rows((spectrum[:, 0] >= -TOL) & (spectrum[:, -1] <= 1.0 + TOL)):
            raise AssertionError(
                f"the Jacobian is not between 0 and I at {show(point[i])} {where}: its "
                f"eigenvalues are {show(spectrum[i])}"
            )
        slopes, kink = _differences(trial, point, step)
        smooth = kink <= 1e-3
        require(
            smooth.mean() > 0.3,
            f"conjugate_prox has a kink or a jump at most points ({where}), which no prox has",
        )
        wrong = np.abs(slopes - jacobian).max(axis=(1, 2))
        for i in bad_rows(~smooth | (wrong <= 1e-5 + 2.0 * kink)):
            raise AssertionError(
                f"conjugate_prox_jacobian is not the derivative of conjugate_prox at "
                f"{show(point[i])} {where}: finite differences give "
                f"{show(slopes[i])}, the Jacobian is {show(jacobian[i])}"
            )


def _differences(trial: Trial, point: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Jacobian of the prox by central differences, (n, p, p), and how far they can be trusted.

    That is how much the differences on both sides and of two sizes disagree, (n,).
    """
    n, p = point.shape
    prox = trial.loss.conjugate_prox
    unit = 1e-6 * (np.linalg.norm(point, axis=1, keepdims=True) + 1e-2 * trial.slope)
    centre = prox(point, step)
    slopes, doubt = np.empty((n, p, p)), np.zeros(n)
    for j in range(p):
        shift = unit * (np.arange(p) == j)
        up = (prox(point + shift, step) - centre) / unit
        down = (centre - prox(point - shift, step)) / unit
        wide = (prox(point + 5.0 * shift, step) - prox(point - 5.0 * shift, step)) / unit
        slopes[:, :, j] = 0.5 * (up + down)
        doubt = np.maximum(doubt, np.abs(up - down).max(axis=1))
        doubt = np.maximum(doubt, np.abs(0.1 * wide - slopes[:, :, j]).max(axis=1))
    return slopes, doubt


def check_steps(trial: Trial) -> None:
    """Check that an array of steps gives the same result as one call for each row."""
    loss, n = trial.loss, 12
    point = trial.points(n, trial.slope)
    steps = trial.step * 10.0 ** trial.random.uniform(-1.0, 1.0, (n, 1))
    for name in ("conjugate_prox", "conjugate_prox_jacobian"):
        method = getattr(loss, name)
        together = method(point, steps)
        alone = np.concatenate([method(point[[i]], float(steps[i, 0])) for i in range(n)])
        require_shape(together, alone.shape, f"{name}(point, steps) with an array (n, 1) of steps")
        unit = trial.slope * 10.0**1.5 if name == "conjugate_prox" else 1.0
        good = np.abs(together - alone).reshape(n, -1).max(axis=1) <= TOL * unit
        for i in bad_rows(good):
            raise AssertionError(
                f"{name} with an array (n, 1) of steps differs from the one with a number at "
                f"{show(point[i])} with step {float(steps[i, 0]):.6g}: {show(together[i])} "
                f"instead of {show(alone[i])}"
            )


def check_envelope(trial: Trial) -> None:
    loss, n = trial.loss, ROWS
    anchor, residual = trial.duals(), trial.residuals()
    generic = np.arange(n) % 2 == 0  # at ties any of several Jacobians will do
    residual[generic] += 1e-2 * trial.scale * trial.random.standard_normal((n // 2, trial.size))
    for factor in STEPS:
        step = factor * trial.step
        found = loss.envelope(anchor, residual, step)
        truth = Loss.envelope(loss, anchor, residual, step)
        require_shape(found.dual, truth.dual.shape, "envelope(...).dual")
        require_shape(found.value, truth.value.shape, "envelope(...).value")
        active = np.asarray(found.active)
        require(
            active.ndim == 1 and active.dtype.kind in "iu" and np.all(np.diff(active) > 0),
            f"envelope(...).active must be increasing row numbers, got {active!r}",
        )
        shape = (len(active), *truth.jacobian.shape[1:])
        require_shape(found.jacobian, shape, "envelope(...).jacobian")
        mine = np.zeros((n, *shape[1:]))
        theirs = np.zeros_like(mine)
        mine[active], theirs[truth.active] = found.jacobian, truth.jacobian
        unit = np.linalg.norm(anchor, axis=1) + step * np.linalg.norm(residual, axis=1)
        for what, first, second, size in (
            ("dual", found.dual, truth.dual, unit),
            ("value", found.value, truth.value, unit**2 / step),
            ("jacobian", mine, theirs, np.where(generic, 1.0, np.inf)),
        ):
            wrong = np.abs(first - second).reshape(n, -1).max(axis=1)
            for i in bad_rows(wrong <= TOL * size):
                raise AssertionError(
                    f"envelope(...).{what} is not what conjugate_prox and conjugate say: at "
                    f"anchor {show(anchor[i])}, residual {show(residual[i])} and step "
                    f"{step:.6g} it is {show(first[i])} instead of {show(second[i])}"
                )

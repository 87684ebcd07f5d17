"""Check of a loss."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses import Loss
from fenchel.testing._capabilities import check_capabilities
from fenchel.testing._prox import (
    check_balance,
    check_domain,
    check_envelope,
    check_jacobian,
    check_prox,
    check_steps,
)
from fenchel.testing._saying import about, bad_rows, require, require_shape, show
from fenchel.testing._sensitivity import check_sensitivity
from fenchel.testing._trial import ROWS, STEPS, TOL, Trial

_SPLITTINGS = 300  # none of 100 checks of five levels fails after so many; four do without them


def check_loss(
    loss: Loss, n_outputs: int | None = None, *, scale: float = 1.0, random_state: int = 0
) -> None:
    r"""Check that a loss is convex and its methods are consistent.

    These checks use random points and no formulas: value(0) = 0 and value >= 0; convexity; the
    stated Lipschitz and smoothness constants; the Fenchel-Young inequality

    .. math:: \ell(\xi) + \ell^*(\beta) \ge \langle\beta, \xi\rangle,

    with equality at :math:`\beta = \operatorname{prox}_{t\ell^*}(v)`,
    :math:`\xi = (v - \beta)/t`; that no point near or far is a better prox; Jacobians against
    finite differences, symmetric and between 0 and I; steps given row by row; a solid domain;
    that balanced dual points stay in it; the envelope against its definition; the minimizing
    offset against a numerical one, and weights against repetition; the statements of ``box``,
    ``conic_parts``, ``output``, ``local``, ``epsilon``, ``radial`` and ``bounded``; the loss in
    other units, ``rescaled``; and derivatives of fits with respect to alpha against differences
    of fits. The ε-insensitive version is checked in the same way, except for balanced points,
    statements, units and derivatives of fits. It is also compared with a numerical infimal
    convolution.

    A loss with a ``cone`` must be infinite outside it and finite at the nearest points in it. Its
    domain need not be solid, and it has no ε-insensitive version.

    Parameters
    ----------
    loss : Loss
        The loss to check.
    n_outputs : int, optional
        Number of outputs of the trial points. By default the number of the loss, or both 1 and
        3 for a loss of any number of outputs.
    scale : float
        Typical length of residuals, in the units of y.
    random_state : int
        Seed of the trial points.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Loss
    >>> from fenchel.testing import check_loss
    >>> class Cubic(Loss):
    ...     def value(self, residual):
    ...         return (np.abs(residual) ** 3).sum(axis=1) / 3
    ...
    ...     def conjugate(self, dual):
    ...         return 2 / 3 * (np.abs(dual) ** 1.5).sum(axis=1)
    ...
    ...     def root(self, point, step):  # of x, where x + step * sqrt(x) = |point|
    ...         return 2 * np.abs(point) / (step + np.sqrt(step**2 + 4 * np.abs(point)))
    ...
    ...     def conjugate_prox(self, point, step):
    ...         return np.sign(point) * self.root(point, step) ** 2
    ...
    ...     def conjugate_prox_jacobian(self, point, step):
    ...         root = self.root(point, step)
    ...         return 2 * root / (2 * root + step)
    >>> check_loss(Cubic())

    With a conjugate that belongs to another loss:

    >>> class Wrong(Cubic):
    ...     def conjugate(self, dual):
    ...         return (dual**2).sum(axis=1) / 2
    >>> check_loss(Wrong())
    Traceback (most recent call last):
        ...
    AssertionError: Wrong with 1 output(s): value and conjugate do not belong together: ...
    """
    if loss.n_outputs is not None and n_outputs not in (None, loss.n_outputs):
        raise ValueError(f"n_outputs must be {loss.n_outputs} for this loss, got {n_outputs!r}")
    asked = loss.n_outputs if n_outputs is None else n_outputs
    sizes = [1, 3] if asked is None else [asked]
    for size in sizes:
        trial = Trial(loss, size, scale, random_state)
        with about(f"{type(loss).__name__} with {size} output(s)"):
            _check_all(trial)
            other = Trial(loss, size, scale, random_state + 2)
            _check_cone(other)
            check_balance(other)
            check_capabilities(Trial(loss, size, scale, random_state + 3))
            check_sensitivity(Trial(loss, size, scale, random_state + 4))
        if loss.cone is not None:
            continue
        epsilon = 0.4 * trial.scale
        wide = Trial(loss.insensitive(epsilon), size, scale, random_state + 1)
        with about(f"{type(loss).__name__}.insensitive({epsilon:.3g}) with {size} output(s)"):
            _check_all(wide)
            _check_insensitive(trial, wide, epsilon)


def _check_all(trial: Trial) -> None:
    _check_shapes(trial)
    _check_values(trial)
    _check_constants(trial)
    _check_conjugate(trial)
    check_prox(trial)
    check_domain(trial)
    check_jacobian(trial)
    check_steps(trial)
    check_envelope(trial)
    _check_offset(trial)


def _check_shapes(trial: Trial) -> None:
    loss, n, p = trial.loss, ROWS, trial.size
    residual, point = trial.residuals(), trial.points(ROWS, trial.slope)
    before, step = point.copy(), trial.step
    require_shape(loss.value(residual), (n,), "value(residual)")
    dual = loss.conjugate_prox(point, step)
    require_shape(dual, (n, p), "conjugate_prox(point, step)")
    require_shape(loss.conjugate(dual), (n,), "conjugate(dual)")
    shape = (n, p) if loss.separable else (n, p, p)
    what = f"conjugate_prox_jacobian(point, step) of a loss with separable={loss.separable}"
    require_shape(loss.conjugate_prox_jacobian(point, step), shape, what)
    require(np.array_equal(point, before), "conjugate_prox changes the points it is given")
    zero = np.zeros((1, p))
    for name, found in (
        ("value(0)", loss.value(zero)),
        ("conjugate(0)", loss.conjugate(zero)),
        ("conjugate_prox(0, step)", loss.conjugate_prox(zero, step)),
    ):
        require(
            np.all(np.abs(found) <= TOL * min(trial.slope, trial.slope * trial.scale)),
            f"{name} must be 0, and is {show(found)}",
        )


def _check_values(trial: Trial) -> None:
    loss = trial.loss
    first, second = trial.residuals(4 * ROWS), trial.residuals(4 * ROWS)
    value = loss.value(first)
    for i in bad_rows(value >= 0.0):
        raise AssertionError(f"value is negative at {show(first[i])}: {float(value[i]):.6g}")
    share = trial.random.random((len(first), 1))
    between = loss.value(share * first + (1.0 - share) * second)
    chord = share[:, 0] * value + (1.0 - share[:, 0]) * loss.value(second)
    for i in bad_rows(between <= chord + TOL * (chord + between)):
        raise AssertionError(
            f"value is not convex: between {show(first[i])} and {show(second[i])} it is "
            f"{float(between[i]):.6g}, above the chord at {float(chord[i]):.6g}"
        )


def _check_constants(trial: Trial) -> None:
    loss = trial.loss
    first, second = trial.residuals(4 * ROWS), trial.residuals(4 * ROWS)
    second[::2] = first[::2] + 1e-2 * second[::2]
    left, right = loss.value(first), loss.value(second)
    distance = np.linalg.norm(first - second, axis=1)
    rounding = TOL * (left + right) + TOL * trial.slope * distance
    if loss.lipschitz < np.inf:
        for i in bad_rows(np.abs(left - right) <= loss.lipschitz * distance + rounding):
            raise AssertionError(
                f"lipschitz={loss.lipschitz:.6g} is too small: the slope between "
                f"{show(first[i])} and {show(second[i])} is "
                f"{float(abs(left[i] - right[i]) / distance[i]):.6g}"
            )
    if loss.smoothness < np.inf:
        bend = 0.5 * (left + right) - loss.value(0.5 * (first + second))
        for i in bad_rows(bend <= loss.smoothness * distance**2 / 8.0 + rounding):
            raise AssertionError(
                f"smoothness={loss.smoothness:.6g} is too small: the curvature between "
                f"{show(first[i])} and {show(second[i])} is "
                f"{float(8.0 * bend[i] / distance[i] ** 2):.6g}"
            )


def _check_cone(trial: Trial) -> None:
    """The cone is where the loss is finite, and ``nearest`` projects on it."""
    loss = trial.loss
    residual = trial.points(4 * ROWS, trial.scale)
    nearest = loss.nearest(residual)
    away = residual - nearest
    length = np.linalg.norm(residual, axis=1)
    for i in bad_rows(np.isfinite(loss.value(nearest))):
        raise AssertionError(
            f"value is not finite at {show(nearest[i])}, nearest to {show(residual[i])}"
        )
    if loss.cone is None:
        for i in bad_rows(~away.any(axis=1)):
            raise AssertionError(
                f"nearest moves {show(residual[i])} although the loss has no cone"
            )
        return
    inside = (residual @ loss.cone.T >= 0.0).all(axis=1)
    for i in bad_rows(inside == np.isfinite(loss.value(residual))):
        raise AssertionError(
            f"value is finite outside of the cone, or infinite inside, at {show(residual[i])}"
        )
    # a projection on a convex cone: what is taken away is normal to it
    for i in bad_rows(np.abs(np.einsum("ij,ij->i", away, nearest)) <= TOL * length**2):
        raise AssertionError(
            f"nearest is not a projection at {show(residual[i])}: {show(nearest[i])}"
        )
    for i in bad_rows((away @ nearest.T).max(axis=1) <= TOL * length * length.max()):
        raise AssertionError(
            f"there is a point nearer to {show(residual[i])} than {show(nearest[i])}"
        )


def _check_conjugate(trial: Trial) -> None:
    """Fenchel and Young: an inequality for all pairs, an equality at subgradients."""
    loss = trial.loss
    points = trial.points(ROWS, trial.slope)
    dual = np.concatenate([trial.duals(), points])
    dual = dual[np.isfinite(loss.conjugate(dual))]
    residual = np.concatenate([trial.residuals(len(dual)), dual / trial.step])
    residual = np.concatenate([residual, 1e3 * residual])
    dual = np.tile(dual, (4, 1))
    product = np.einsum("ij,ij->i", dual, residual)
    total = loss.value(residual) + loss.conjugate(dual)
    rounding = TOL * np.linalg.norm(dual, axis=1) * np.linalg.norm(residual, axis=1)
    for i in bad_rows(total >= product - rounding - TOL * total):
        raise AssertionError(
            f"value and conjugate do not belong together: at residual {show(residual[i])} and "
            f"dual point {show(dual[i])} their sum {float(total[i]):.6g} must be at least the "
            f"inner product {float(product[i]):.6g}"
        )
    for factor in STEPS:
        step = factor * trial.step
        point = trial.points(ROWS, trial.slope)
        dual = loss.conjugate_prox(point, step)
        exact = (point - dual) / step
        residual = loss.nearest(exact)
        size = np.linalg.norm(point, axis=1) / step
        for i in bad_rows(np.linalg.norm(residual - exact, axis=1) <= TOL * size):
            raise AssertionError(
                f"the prox of {show(point[i])} with step {step:.6g} is a subgradient at "
                f"{show(exact[i])}, where the loss is not finite"
            )
        left, right = loss.value(residual), loss.conjugate(dual)
        product = np.einsum("ij,ij->i", dual, residual)
        rounding = np.linalg.norm(dual, axis=1) * size
        gap = np.abs(left + right - product)
        for i in bad_rows(gap <= 1e-7 * (np.abs(left) + np.abs(right) + rounding)):
            raise AssertionError(
                f"value, conjugate and conjugate_prox do not belong together: the prox of "
                f"{show(point[i])} with step {step:.6g} is {show(dual[i])}, a subgradient at the "
                f"residual {show(residual[i])}; there value {float(left[i]):.6g} + conjugate "
                f"{float(right[i]):.6g} must equal the inner product {float(product[i]):.6g}"
            )


def _check_offset(trial: Trial) -> None:
    loss, n, p = trial.loss, 12, trial.size
    residual = trial.scale * (trial.random.standard_normal((n, p)) + 0.5)
    residual[0] = residual[1]
    count = trial.random.integers(1, 4, n)
    weight = count / count.sum()

    def objective(offsets: FloatArray) -> FloatArray:
        values = loss.value((residual - offsets[:, None]).reshape(-1, p))
        return values.reshape(len(offsets), n) @ weight

    offset = np.asarray(loss.minimizing_offset(residual, count.astype(float)))
    require_shape(offset, (p,), "minimizing_offset(residual, sample_weight)")
    best = float(objective(offset[None])[0])
    rounding = TOL * best + 1e-10 * trial.slope * trial.scale
    other, value = _lowest_near(objective, offset, trial.scale, trial.random, 20, 1e-5)
    require(
        best <= value + rounding,
        f"minimizing_offset is not optimal: {show(offset)} gives a weighted mean loss of "
        f"{best:.9g}, and {show(other)} one of {value:.9g}",
    )
    repeated = loss.minimizing_offset(np.repeat(residual, count, axis=0), np.ones(count.sum()))
    value = float(objective(np.asarray(repeated)[None])[0])
    require(
        abs(best - value) <= rounding,
        "minimizing_offset does not treat a weight like repeated rows: weights give "
        f"{show(offset)} (mean loss {best:.9g}), repetition {show(repeated)} ({value:.9g})",
    )
    constant = np.tile(residual[:1], (n, 1))
    offset = np.asarray(loss.minimizing_offset(constant, weight))
    require(
        np.all(loss.value(constant[:1] - offset) <= TOL * trial.slope * trial.scale),
        f"minimizing_offset of equal residuals {show(constant[0])} is {show(offset)}, which has a "
        "positive loss",
    )


def _check_insensitive(trial: Trial, wide: Trial, epsilon: float) -> None:
    """The version ``wide.loss`` of ``trial.loss``: zeros, conjugate, infimal convolution."""
    loss, insensitive, p = trial.loss, wide.loss, trial.size
    inside = trial.directions(ROWS) * epsilon * trial.random.random((ROWS, 1)) * (1.0 - 1e-12)
    value = insensitive.value(inside)
    for i in bad_rows(value == 0.0):
        raise AssertionError(
            f"the loss must be exactly zero within epsilon, and is {float(value[i]):.3g} at "
            f"{show(inside[i])}"
        )
    dual = insensitive.conjugate_prox(inside * trial.step, trial.step)
    for i in bad_rows(~dual.any(axis=1)):
        raise AssertionError(
            f"conjugate_prox must be exactly zero within step * epsilon, and is {show(dual[i])} "
            f"at {show(inside[i] * trial.step)} with step {trial.step:.6g}"
        )
    dual = trial.duals()
    found = insensitive.conjugate(dual)
    truth = loss.conjugate(dual) + epsilon * np.linalg.norm(dual, axis=1)
    for i in bad_rows(np.abs(found - truth) <= TOL * truth):
        raise AssertionError(
            "the conjugate must be that of the loss plus epsilon times the length: at "
            f"{show(dual[i])} it is {float(found[i]):.9g} instead of {float(truth[i]):.9g}"
        )
    residual = trial.points(6, trial.scale, -0.3, 1.0)
    value, near = insensitive.value(residual), _lowest_by_splitting(trial, residual, epsilon)
    for row, start, mine in zip(residual, near, value, strict=True):
        _, lowest = _lowest_near(loss.value, row, epsilon, trial.random, start=start)
        unit = float(loss.value(row[None])[0]) + trial.slope * epsilon
        slack = (1e-8 if p == 1 else 1e-3 if p <= 3 else 1e-2) * unit
        require(
            lowest - slack <= mine <= lowest + 1e-9 * unit,
            f"the value at {show(row)} is {float(mine):.9g}, and the lowest loss in the ball of "
            f"radius {epsilon:.6g} around it {lowest:.9g}",
        )


def _lowest_near(
    function: Callable[[FloatArray], FloatArray],
    centre: FloatArray,
    radius: float,
    random: np.random.Generator,
    candidates: int = 100,
    accuracy: float = 1e-9,
    start: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Minimum of a convex function in a ball, by random search in shrinking neighbourhoods.

    It begins at the centre, or at another point of the ball that is lower.
    """
    p, n = len(centre), candidates * len(centre)
    best, lowest, reach = np.zeros(p), float(function(centre[None])[0]), 2.0 * radius
    if start is not None and (there := float(function(start[None])[0])) < lowest:
        best, lowest = start - centre, there
    while reach > accuracy * radius:
        moves = random.standard_normal((n, p))
        moves *= reach * random.random((n, 1)) / np.linalg.norm(moves, axis=1, keepdims=True)
        moves += best
        moves /= np.maximum(np.linalg.norm(moves, axis=1, keepdims=True) / radius, 1.0)
        values = function(centre + moves)
        winner = int(np.argmin(values))
        if values[winner] < lowest:
            best, lowest = moves[winner], float(values[winner])
        reach *= 0.7
    return centre + best, lowest


def _lowest_by_splitting(trial: Trial, centres: FloatArray, radius: float) -> FloatArray:
    """Points of balls where a loss is nearly lowest, by Douglas and Rachford's method.

    In five dimensions a random search alone ends too high at one centre of some hundred.
    """
    loss, step = trial.loss, trial.step
    point = best = centres
    for _ in range(_SPLITTINGS):
        move = point - centres
        length = np.linalg.norm(move, axis=1, keepdims=True)
        best = centres + move / np.maximum(length / radius, 1.0)
        other = 2.0 * best - point
        point = point + other - loss.conjugate_prox(step * other, step) / step - best
    return best

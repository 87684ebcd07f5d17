"""Accelerated proximal gradients: the extrapolation that all first-order solvers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from fenchel._typing import FloatArray

Moving = tuple[FloatArray, ...]
"""A point, and images of it under linear maps that are extrapolated with it."""


class Accelerated:
    r"""Iterator over points of FISTA with adaptive restart.

    .. math:: x^{k+1} = \mathrm{step}(z^k), \qquad
              z^{k+1} = x^{k+1} + \frac{t_k - 1}{t_{k+1}} (x^{k+1} - x^k), \qquad
              t_{k+1} = \tfrac12 \left(1 + \sqrt{1 + 4 t_k^2}\right)

    It restarts with t = 1 if the momentum points uphill,
    :math:`\langle z^k - x^{k+1}, x^{k+1} - x^k \rangle > 0`. It returns the number and the point
    of every ``check``-th step, and of the last step. It is not a generator, because Python drops
    an interrupt that arrives while it closes a generator that was left early.

    Parameters
    ----------
    step : callable
        The proximal gradient step from an extrapolated point.
    start : tuple of array
        The first point, and arrays that are extrapolated with it.
    check, max_iter : int
        Number of steps between returned points, and maximum number of steps.
    weight : float or array (n, 1), optional
        The metric of the inner product.

    References
    ----------
    Beck, Teboulle (2009); O'Donoghue, Candès (2015) for the restart.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.solvers.accelerated import Accelerated
    >>> curvature = np.array([1.0, 0.1])  # of a quadratic
    >>> def step(moving):
    ...     return (moving[0] - curvature * moving[0],)
    >>> points = Accelerated(step, (np.ones(2),), check=15, max_iter=40)
    >>> [(count, bool(np.abs(point).max() < 1e-3)) for count, point in points]
    [(15, False), (30, True), (40, True)]
    """

    def __init__(
        self,
        step: Callable[[Moving], Moving],
        start: Moving,
        *,
        check: int,
        max_iter: int,
        weight: FloatArray | float = 1.0,
    ) -> None:
        self._step, self._weight = step, weight
        self._check, self._max_iter = check, max_iter
        self._last = self._ahead = start
        self._momentum, self._done = 1.0, 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[int, FloatArray]:
        steps = min(self._check, self._max_iter - self._done)
        if steps <= 0:
            raise StopIteration
        for _ in range(steps):
            self._advance()
        self._done += steps
        return self._done, self._last[0]

    def _advance(self) -> None:
        new = self._step(self._ahead)
        moves = [a - b for a, b in zip(new, self._last, strict=True)]
        if np.vdot(self._ahead[0] - new[0], self._weight * moves[0]) > 0.0:
            self._ahead, self._momentum = new, 1.0
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self._momentum**2))
            ratio = (self._momentum - 1.0) / following
            self._ahead = tuple([a + ratio * move for a, move in zip(new, moves, strict=True)])
            self._momentum = following
        self._last = new

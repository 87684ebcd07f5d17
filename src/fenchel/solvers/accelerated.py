"""Accelerated proximal gradients: the extrapolation that all first-order solvers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from fenchel._typing import FloatArray

Moving = tuple[FloatArray, ...]
"""A point, and images of it under linear maps that are extrapolated with it."""


def accelerated(
    step: Callable[[Moving], Moving],
    start: Moving,
    weight: FloatArray | float = 1.0,
) -> Iterator[FloatArray]:
    r"""Yield the points of FISTA with adaptive restart.

    .. math:: x^{k+1} = \mathrm{step}(z^k), \qquad
              z^{k+1} = x^{k+1} + \frac{t_k - 1}{t_{k+1}} (x^{k+1} - x^k), \qquad
              t_{k+1} = \tfrac12 \left(1 + \sqrt{1 + 4 t_k^2}\right)

    and back to t = 1 where the momentum points uphill,
    :math:`\langle z^k - x^{k+1}, x^{k+1} - x^k \rangle > 0`.

    ``step`` is the proximal gradient step from an extrapolated point, ``weight`` the metric of the
    inner product, a number or (n, 1).

    References
    ----------
    Beck, Teboulle (2009); O'Donoghue, Candès (2015) for the restart.

    Examples
    --------
    >>> from itertools import islice
    >>> import numpy as np
    >>> from fenchel.solvers.accelerated import accelerated
    >>> curvature = np.array([1.0, 0.1])
    >>> points = accelerated(lambda z: z - curvature * z, np.ones(2))  # of a quadratic
    >>> bool(np.abs(list(islice(points, 40))[-1]).max() < 1e-3)
    True
    """
    last = ahead = start
    momentum = 1.0
    while True:
        new = step(ahead)
        moves = [a - b for a, b in zip(new, last, strict=True)]
        if np.vdot(ahead[0] - new[0], weight * moves[0]) > 0.0:
            ahead, momentum = new, 1.0
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ratio = (momentum - 1.0) / following
            ahead = tuple([a + ratio * move for a, move in zip(new, moves, strict=True)])
            momentum = following
        last = new
        yield new[0]


def every(
    points: Iterator[FloatArray], check: int, max_iter: int
) -> Iterator[tuple[int, FloatArray]]:
    """Number and point of each ``check``-th step, and of the last one of ``max_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.solvers.accelerated import every
    >>> [count for count, point in every(iter(np.zeros((100, 2))), check=3, max_iter=7)]
    [3, 6, 7]
    """
    done = 0
    while done < max_iter:
        steps = min(check, max_iter - done)
        done += steps
        yield done, next(islice(points, steps - 1, None))

"""Descriptions of a loss that solvers and bounds use, instead of asking for its type."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from fenchel._typing import FloatArray, IntArray

Step: TypeAlias = float | FloatArray
"""Step of a prox: a positive number, or an array (n, 1) with one for each row."""

ROUNDING = 1e-12
"""Share of its bounds by which a point may leave a domain: that of what a prox returns."""

Room: TypeAlias = tuple[FloatArray, FloatArray, IntArray, FloatArray]


class Envelope(NamedTuple):
    """The proximal dual of a block of rows, see :meth:`Loss.envelope`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Absolute
    >>> anchor, residual = np.zeros((2, 1)), np.array([[0.2], [5.0]])
    >>> found = Absolute().envelope(anchor, residual, step=1.0)
    >>> found.dual[:, 0], found.active  # rows with a Jacobian
    (array([0.2, 1. ]), array([0]))
    """

    dual: FloatArray
    """(n, p): the maximizing dual vectors."""
    value: FloatArray
    """(n,): the maximum, row by row."""
    active: IntArray
    """(m,): the rows whose dual vector moves with the residual."""
    jacobian: FloatArray
    """(m, p) or (m, p, p): generalized Jacobian of the prox on the active rows."""

    @staticmethod
    def room(n_rows: int, block: tuple[int, ...]) -> Room:
        """Return empty result arrays for compiled loops; ``block`` is the shape of a Jacobian."""
        active = np.empty(n_rows, dtype=np.intp)
        return np.empty((n_rows, block[0])), np.empty(n_rows), active, np.empty((n_rows, *block))

    @classmethod
    def of(cls, room: Room, n_active: int) -> Envelope:
        """Return the results in these arrays, with ``n_active`` active rows."""
        dual, value, active, jacobian = room
        return cls(dual, value, active[:n_active], jacobian[:n_active])


class Box(NamedTuple):
    r"""Conjugate that is a quadratic on a box, see :meth:`Loss.box`.

    .. math:: \ell^*(\beta) = \sum_j \tfrac{q_j^\pm}{2} \beta_j^2
              + \chi(l_j \le \beta_j \le u_j) + \varepsilon \|\beta\|_2

    Examples
    --------
    >>> from fenchel.losses import Pinball
    >>> box = Pinball(0.9).box(1)
    >>> box.lower, box.upper
    (array([-0.1]), array([0.9]))
    """

    lower: FloatArray
    """(p,): l < 0, -inf for no bound."""
    upper: FloatArray
    """(p,): u > 0, inf for no bound."""
    below: FloatArray
    """(p,): curvatures for negative entries, >= 0."""
    above: FloatArray
    """(p,): curvatures for positive entries, >= 0."""
    epsilon: float
    """Radius of insensitivity, >= 0."""

    @property
    def is_squared(self) -> bool:
        """Whether this is the conjugate of half the squared length."""
        free = np.all(np.isinf(self.lower)) and np.all(np.isinf(self.upper))
        return bool(free and np.all(self.curvature == 1.0)) and self.epsilon == 0.0

    @property
    def is_linear(self) -> bool:
        """Whether the loss is piecewise linear, apart from ε."""
        return not self.curvature.any()

    @property
    def curvature(self) -> FloatArray:
        """Curvatures for negative and positive dual vectors, (2, p)."""
        return np.stack([self.below, self.above])


class ConicParts(NamedTuple):
    r"""Loss as an infimal convolution of parts that conic programs can express.

    .. math:: \ell(\xi) = \min_{s + t + d = \xi}\; \ell_{\mathrm{box}}(s)
              + \ell_{\mathrm{length}}(t) \quad \text{s.t. } C s \ge 0,\; \|d\| \le \varepsilon

    A part that is None is absent from the sum.

    Examples
    --------
    >>> from fenchel.losses import Absolute, L2Norm
    >>> L2Norm().conic_parts(2).length  # curvature and radius of the length
    (0.0, 1.0)
    >>> Absolute().conic_parts(2).box.upper
    array([1., 1.])
    """

    box: Box | None = None
    """Part whose conjugate is a quadratic on a box; its ``epsilon`` is zero."""
    length: tuple[float, float] | None = None
    """(q, κ) of a part whose conjugate is q/2 ‖β‖² for ‖β‖ <= κ."""
    cone: FloatArray | None = None
    """C (m, p), a constraint on the residuals of the box part."""
    epsilon: float = 0.0
    """Radius of the ball of residuals with zero loss."""


class Local(NamedTuple):
    """Slopes and largest value of a loss on a box of residuals, see :meth:`Loss.local`.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Squared
    >>> local = Squared().local(np.array([3.0]))
    >>> local.slopes, local.most
    (array([3.]), 4.5)
    """

    slopes: FloatArray
    """Lipschitz constants: one for each output, or one for the whole vector."""
    by_output: bool
    """Whether the loss is a sum over outputs, with one slope for each."""
    most: float
    """Largest value."""


def at_end(
    reach: FloatArray, bound: FloatArray, curvature: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Derivative and value at one end: the maximum of βξ - qβ²/2 over β up to a bound."""
    free = np.divide(reach, curvature, out=np.full(len(reach), np.inf), where=curvature > 0.0)
    slope = np.where(reach > 0.0, np.minimum(free, bound), 0.0)
    return slope, slope * reach - 0.5 * curvature * slope**2

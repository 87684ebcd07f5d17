"""Pinball loss with a non-crossing constraint on the quantile curves."""

from __future__ import annotations

import numpy as np

from fenchel._quantiles import least_quantile
from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.losses import _ordered
from fenchel.losses.atoms import Pinball
from fenchel.losses.base import Loss
from fenchel.losses.forms import ROUNDING, ConicParts, Envelope, Step


class NonCrossing(Loss):
    r"""Pinball loss with non-crossing quantiles: infinite if the quantiles of a target cross.

    .. math:: \ell(\xi) = \sum_j \max(\tau_j \xi_j, (\tau_j - 1) \xi_j)
              + \chi(\xi_1 \ge \xi_2 \ge \dots \ge \xi_p), \qquad \tau_1 < \dots < \tau_p,

    .. math:: \ell^*(\beta) = \chi\Big( \sum_{j \le k} \beta_j \le \sum_{j \le k} \tau_j, \;\;
              \sum_{j > k} \beta_j \ge \sum_{j > k} (\tau_j - 1) \;\text{ for all } k \Big)

    Levels may be given in any order; the formulas use increasing levels. All outputs must be
    predictions of the same target, so that the larger residual is the lower prediction. The
    constraint has no tolerance: a violation by one ulp is a crossing. The prox is isotonic
    regression, by pooling adjacent violators.

    Parameters
    ----------
    pinball : Pinball
        The pinball loss, not ε-insensitive.

    References
    ----------
    Takeuchi, Le, Sears, Smola (2006), Nonparametric quantile estimation, section 3; Sangnier,
    Fercoq, d'Alché-Buc (2016), appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import NonCrossing, Pinball
    >>> loss = NonCrossing(Pinball([0.25, 0.75]))
    >>> loss.value(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    array([0.5, inf])
    """

    separable = False
    statistic = "quantiles"

    def __init__(self, pinball: Pinball) -> None:
        if not isinstance(pinball, Pinball) or pinball.epsilon > 0.0:
            raise ValueError(
                f"pinball must be a Pinball loss with epsilon=0, got {shown(pinball)}"
            )
        if pinball.n_targets > 1:
            raise ValueError(f"pinball must be a loss of one target, got {shown(pinball)}")
        self.pinball = pinball
        self.n_outputs = len(pinball.levels)
        self._order = np.argsort(pinball.levels)
        self._lower, self._upper = pinball.parameters(self.n_outputs)[:2]

    @property
    def _box(self) -> _ordered.Ordered:
        return self._order, self._lower, self._upper

    def _arguments(self) -> str:
        return repr(self.pinball)

    @property
    def cone(self) -> FloatArray:  # type: ignore[override]  # the base has an attribute
        """Differences of residuals of neighbouring levels, (p - 1, p)."""
        return -np.diff(np.eye(len(self._order))[self._order], axis=0)

    @property
    def unconstrained(self) -> Loss:
        """The pinball loss without the constraint."""
        return self.pinball

    def conic_parts(self, n_outputs: int) -> ConicParts:
        """Return the box of the pinball loss, with the order as a constraint on this part."""
        return self.pinball.conic_parts(n_outputs)._replace(cone=self.cone)

    def rescaled(self, scale: float) -> NonCrossing:
        """Return the loss itself, as quantiles and their order do not depend on units."""
        return self

    def value(self, residual: FloatArray) -> FloatArray:
        total = np.empty(len(residual))
        _ordered.value(np.ascontiguousarray(residual), self._box, total)
        return total

    def nearest(self, residual: FloatArray) -> FloatArray:
        """Isotonic regression of each row."""
        zero = np.zeros(len(self._order))
        return self._projected(residual, (self._order, zero, zero))[1]

    def conjugate(self, dual: FloatArray) -> FloatArray:
        excess = np.empty(len(dual))
        _ordered.excess(np.ascontiguousarray(dual), self._box, excess)
        return np.where(excess <= ROUNDING, 0.0, np.inf)

    def conjugate_prox(self, point: FloatArray, step: Step) -> FloatArray:
        """Projection on the domain, for any step."""
        return self._projected(point, self._box)[0]

    def conjugate_prox_jacobian(self, point: FloatArray, step: Step) -> FloatArray:
        point = np.ascontiguousarray(point)
        jacobian = np.empty((*point.shape, point.shape[1]))
        _ordered.projection_jacobian(point, self._box, jacobian)
        return jacobian

    def _projected(
        self, point: FloatArray, box: _ordered.Ordered
    ) -> tuple[FloatArray, FloatArray]:
        point = np.ascontiguousarray(point)
        dual, residual = np.empty_like(point), np.empty_like(point)
        _ordered.project(point, box, dual, residual)
        return dual, residual

    def envelope(self, anchor: FloatArray, residual: FloatArray, step: float) -> Envelope:
        n, p = residual.shape
        room = Envelope.room(n, (p, p))
        return Envelope.of(room, _ordered.envelope(anchor, residual, step, self._box, *room))

    def balanced(self, dual: FloatArray, weight: FloatArray) -> FloatArray:
        """Move the part in the box towards a corner of it, and keep the multipliers.

        With β = a + d, a in the box and d from the order, Σ c a is to become -Σ c d. Where no a
        could do that, d is made smaller.
        """
        dual = np.ascontiguousarray(dual)
        box, rest = np.empty_like(dual), np.empty_like(dual)
        _ordered.split(dual, self._box, box, rest)
        alive = np.asarray(dual.any(axis=1), dtype=np.float64)
        mass = float(weight @ alive)
        low, high = mass * self._lower, mass * self._upper
        wanted = -(weight @ rest)
        bound = np.where(wanted > 0.0, high, low)
        outside = np.abs(wanted) > np.abs(bound)
        share = float(np.divide(bound, wanted, out=np.ones_like(bound), where=outside).min())
        rest *= share
        wanted *= share
        total = weight @ box
        rises = wanted > total
        room = np.where(rises, high - total, low - total)
        part = np.divide(wanted - total, room, out=np.zeros_like(room), where=room != 0.0)
        corner = np.where(rises, self._upper, self._lower)
        box += alive[:, None] * np.clip(part, 0.0, 1.0) * (corner - box)
        return box + rest

    def minimizing_offset(self, residual: FloatArray, sample_weight: FloatArray) -> FloatArray:
        """Return the offsets of minimal loss for which no row crosses, exactly."""
        offset = self.pinball.minimizing_offset(residual, sample_weight)
        if np.all(np.isfinite(self.value(residual - offset))):
            return offset
        order = self._order
        ordered = residual[:, order]
        rounding = 8.0 * np.finfo(float).eps * float(np.abs(residual).max())
        apart = np.diff(ordered, axis=1).max(axis=0) + rounding
        shift = np.concatenate([[0.0], np.cumsum(apart)])
        slopes = self._upper[order]
        best = np.empty_like(offset)
        best[order] = shift + _increasing_quantiles(ordered - shift, sample_weight, slopes)
        return best


def _increasing_quantiles(
    points: FloatArray, weight: FloatArray, levels: FloatArray
) -> FloatArray:
    """Minimize the pinball losses of the columns over constants that increase.

    Pools of columns have the quantile of their mean level. The least of several minimizers is
    taken: pooling is right for any choice that a small perturbation would make unique.
    """
    pools: list[tuple[int, int, float]] = []

    def value_of(start: int, stop: int) -> float:
        level = float(levels[start:stop].mean())
        weights = np.repeat(weight, stop - start)
        return least_quantile(points[:, start:stop].ravel(), weights, level)

    for j in range(len(levels)):
        start, stop = j, j + 1
        value = value_of(start, stop)
        while pools and pools[-1][2] > value:
            start = pools.pop()[0]
            value = value_of(start, stop)
        pools.append((start, stop, value))
    return np.repeat([value for *_, value in pools], [stop - start for start, stop, _ in pools])

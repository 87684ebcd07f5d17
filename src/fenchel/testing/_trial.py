"""Trial points in the units of a loss."""

from __future__ import annotations

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses import Loss
from fenchel.testing._saying import require

ROWS = 60
TOL = 1e-8
STEPS = (0.1, 0.7, 10.0)


class Trial:
    """A loss with trial points in its units: residuals, and dual points."""

    def __init__(self, loss: Loss, size: int, scale: float, random_state: int) -> None:
        self.loss = loss
        self.size = size
        self.random = np.random.default_rng(random_state)
        self.scale = float(scale)
        for _ in range(60):
            lengths = self.scale * self.random.uniform(0.5, 2.0, (ROWS, 1))
            values = loss.value(loss.nearest(lengths * self.directions(ROWS)))
            require(
                np.all(np.isfinite(values)),
                f"value is not finite for residuals of length near {self.scale:.3g}",
            )
            slopes = values / lengths[:, 0]
            if np.median(slopes) > 0.0:
                break
            self.scale *= 2.0
        else:
            raise AssertionError(
                f"value is zero for most residuals up to a length of {self.scale:.3g}: set "
                "scale to the size of residuals that the loss is made for"
            )
        self.slope = float(np.median(slopes))
        self.step = self.slope / self.scale

    def directions(self, n: int) -> FloatArray:
        """Random unit vectors, some with zeros and some with ties."""
        points = self.random.standard_normal((n, self.size))
        points[n // 2 :] *= self.random.random((n - n // 2, self.size)) < 0.7
        points[: n // 8] = np.sign(points[: n // 8])
        length = np.linalg.norm(points, axis=1, keepdims=True)
        return points / np.where(length > 0.0, length, 1.0)

    def points(self, n: int, unit: float, low: float = -2.0, high: float = 1.5) -> FloatArray:
        """Vectors of lengths 10**low to 10**high units."""
        return self.directions(n) * unit * 10.0 ** self.random.uniform(low, high, (n, 1))

    def residuals(self, n: int = ROWS) -> FloatArray:
        """Trial residuals, half of them where the loss is finite."""
        points = self.points(n, self.scale)
        points[::2] = self.loss.nearest(points[::2])
        return points

    def duals(self, n: int = ROWS) -> FloatArray:
        """Points of the domain of the conjugate, its border included."""
        return self.loss.conjugate_prox(self.points(n, self.slope), 1e-3 * self.step)

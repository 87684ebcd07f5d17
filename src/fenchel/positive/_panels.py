"""Panels of a coordinate in which functions are polynomials, and their quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from fenchel._typing import FloatArray, IntArray
from fenchel.features import FeatureMap
from fenchel.kernels import as_scalar_kernel
from fenchel.positive._quadrature import clenshaw_curtis

_ORDER = 8
_NODES, _WEIGHTS, _ = clenshaw_curtis(_ORDER)
_ON_NODES = np.linalg.inv(chebyshev.chebvander(_NODES, _ORDER))
_RISE = chebyshev.chebint(_ON_NODES, lbnd=-1.0)  # from values to coefficients of the integral
_HALVINGS = 48
_MOST = 2**14  # panels of a piece
_PROBES, _LEAST_PROBES = 2**11, 32  # in all gaps, in one
_NOTHING = 1e-8  # of a kernel, where it has decayed


class Piece(NamedTuple):
    """An interval beyond which no landmark inside of it can be seen."""

    low: float
    high: float
    unit: float
    """Length scale of the coordinate, infinite where it is not known."""
    landmarks: IntArray
    """Numbers of those inside."""

    def edges(self, share: float, equal: int) -> FloatArray:
        """Cells of at most a share of the length scale, or so many where it is not known."""
        if np.isinf(self.unit):
            return np.linspace(self.low, self.high, equal + 1)
        number = np.ceil(min((self.high - self.low) / (share * self.unit), _MOST))
        return np.linspace(self.low, self.high, max(int(number), 1) + 1)


def pieces_of(feature_map: FeatureMap, column: int, low: float, high: float) -> list[Piece]:
    """The parts of an interval of a coordinate where functions of the features can be seen.

    One for landmarks whose tails meet: what lies between two of them may be any number of length
    scales long. All of the interval where kernels do not decay, or features know no landmarks.
    """
    landmarks = getattr(feature_map, "landmarks_", None)
    scale = getattr(feature_map.kernel_, "length_scale", None)
    unit = (
        np.inf
        if scale is None
        else float(np.broadcast_to(scale, feature_map.n_features_in_)[column])
    )
    if landmarks is None or scale is None:
        none = np.arange(0 if landmarks is None else len(landmarks))
        return [Piece(low, high, unit, none)]
    reach = as_scalar_kernel(feature_map.kernel_).tail * unit
    order = np.argsort(landmarks[:, column], kind="stable")
    at = landmarks[order, column]
    inside = (at + reach > low) & (at - reach < high)
    order, at = order[inside], at[inside]
    starts, ends = np.maximum(at - reach, low), np.minimum(at + reach, high)
    first = np.flatnonzero(np.append(True, starts[1:] > ends[:-1])[: len(at)])
    groups = np.split(order, first[1:])
    lows, highs = starts[first], ends[np.append(first[1:], len(at))[: len(first)] - 1]
    gaps = np.append(low, highs), np.append(lows, high)
    if not len(at) or not _is_nothing(feature_map, column, *gaps):
        return [Piece(low, high, unit, np.arange(len(landmarks)))]
    ends_of = zip(lows.tolist(), highs.tolist(), groups, strict=True)
    return [Piece(a, b, unit, group) for a, b, group in ends_of]


def _is_nothing(
    feature_map: FeatureMap, column: int, starts: FloatArray, ends: FloatArray
) -> bool:
    """Whether the kernel has decayed between pieces; one that is periodic has not."""
    wide = ends > starts
    number = max(_PROBES // max(int(wide.sum()), 1), _LEAST_PROBES)
    shares = np.modf(0.5 + 0.6180339887498949 * np.arange(number))[0]
    probes = (starts[wide, None] + (ends - starts)[wide, None] * shares).ravel()
    landmarks, kernel = feature_map.landmarks_, as_scalar_kernel(feature_map.kernel_)
    rows = landmarks[np.arange(len(probes)) % len(landmarks)]
    rows[:, column] = probes
    largest = np.abs(kernel(rows, landmarks)).max(initial=0.0)
    return bool(largest <= _NOTHING * kernel.diag(landmarks).max())


class Panels(NamedTuple):
    """Intervals in each of which a function is the polynomial through its values at nine points.

    The points are those of Clenshaw and Curtis, whose weights are positive.
    """

    starts: FloatArray
    sizes: FloatArray

    @classmethod
    def between(cls, edges: list[FloatArray]) -> Panels:
        """Panels between neighbours of each of some lists."""
        starts = np.concatenate([each[:-1] for each in edges])
        return cls(starts, np.concatenate([np.diff(each) for each in edges]))

    @property
    def points(self) -> FloatArray:
        """All points, panel by panel."""
        steps = 0.5 * self.sizes[:, None] * (_NODES + 1.0)
        return np.asarray((self.starts[:, None] + steps).ravel())

    @property
    def weights(self) -> FloatArray:
        """Of the points in an integral over all panels."""
        return np.asarray((0.5 * self.sizes[:, None] * _WEIGHTS).ravel())

    def between_points(self, values: FloatArray, at: FloatArray) -> FloatArray:
        """Values (n, k) at n places, from those of k functions at all points, (points, k)."""
        panel = np.searchsorted(self.starts, at, side="right") - 1
        panel = np.clip(panel, 0, len(self.sizes) - 1)
        shares = 2.0 * (at - self.starts[panel]) / self.sizes[panel] - 1.0
        basis = chebyshev.chebvander(shares, _ORDER) @ _ON_NODES
        known = values.reshape(len(self.sizes), len(_NODES), -1)
        found = np.empty((len(at), known.shape[2]))
        for each in np.unique(panel):
            rows = panel == each
            found[rows] = basis[rows] @ known[each]
        return found

    def quantiles(self, values: FloatArray, levels: FloatArray) -> FloatArray:
        """Where the share of the integral of a function reaches a level, (n,) of n levels.

        ``values`` (n, points) are those of a function >= 0 for each level; one row counts for all.
        """
        values = values.reshape(len(values), len(self.sizes), len(_NODES))
        masses = 0.5 * self.sizes * (values @ _WEIGHTS)
        below = np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)
        if len(values) == 1:
            row = np.zeros(len(levels), dtype=np.intp)
            target = levels * below[0, -1]
            panel = np.searchsorted(below[0], target, side="right") - 1
        else:
            row = np.arange(len(levels))
            target = levels * below[:, -1]
            panel = (below <= target[:, None]).sum(axis=1) - 1
        panel = np.clip(panel, 0, len(self.sizes) - 1)
        half = 0.5 * self.sizes[panel]
        rise = _RISE @ values[row, panel].T
        rest = (target - below[row, panel]) / half
        low, high = np.full(len(levels), -1.0), np.full(len(levels), 1.0)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            is_low = chebyshev.chebval(middle, rise, tensor=False) < rest
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return np.asarray(self.starts[panel] + half * (low + 1.0))

"""Linear conditions on non-negative models: integrals, values, derivatives and moments."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel._validation import COUNT, NONE, NUMBERS, Number, OneOf, shown
from fenchel.features import FeatureMap
from fenchel.kernels import Box, Normal, Points, as_measure
from fenchel.positive._quadrature import decay_range, line_rule, weighted_products
from fenchel.positive.integrals import moment, on_support
from fenchel.positive.problem import Constraint

KINDS = ("integral", "value", "derivative", "moment")
# The function of least norm with a value where the kernel is a k-th of what it is at the rows is
# k times as large beside them: with 100, predictions beside 60 rows of values up to 4 were 200.
_FURTHEST = 100.0
_BOUND, _COLUMN = NONE | Number(), Number(0, integer=True)


@dataclass(frozen=True, eq=False)
class Condition:
    r"""A linear condition on a function f.

    ================  =====================================================  ==================
    ``kind``          constrained quantity                                   parameters
    ================  =====================================================  ==================
    ``"integral"``    :math:`\int f\, d\mu`                                  ``over``
    ``"value"``       :math:`f(x)`                                           ``at``
    ``"derivative"``  :math:`\partial f / \partial x_{\mathrm{column}}(x)`   ``at``, ``column``
    ``"moment"``      :math:`\int x_{\mathrm{column}}^{\mathrm{power}} f`    ``over``, ``column``,
                                                                             ``power``
    ================  =====================================================  ==================

    The quantity equals ``equals``, is at least ``at_least``, or is at most ``at_most``, in the
    units of f. For a density with a support, integrals and moments are taken over the part of
    ``over`` inside the support, and points must lie in the support. ``fit`` rejects a condition
    that can only be met by functions more than a hundred times too large near the rows. This
    happens at points where the kernel values with all rows are nearly zero.

    Parameters
    ----------
    kind : {"integral", "value", "derivative", "moment"}
        The constrained quantity, see the table.
    equals, at_least, at_most : float, optional
        The required value or bound. Give exactly one of them.
    at : array-like of shape (n_features,), optional
        The point x of a value or derivative.
    over : None, (low, high), Box, Normal or Points
        Domain of an integral or moment, as in :func:`moment`. A "moment" needs a box, or Points if
        there is more than one column.
    column : int, default=0
        Index of the column of a derivative or moment.
    power : int, default=1
        Power of a moment, >= 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import Condition, NonNegativeRegressor
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> half = Condition("integral", equals=0.5, over=(0.0, 1.0))
    >>> model = NonNegativeRegressor(conditions=[half]).fit(X, X[:, 0] ** 2)
    >>> round(model.model_.integral((0.0, 1.0)), 6)
    0.5

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), (13), Proposition 4 and the remark below it.
    """

    kind: str
    equals: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    at: npt.ArrayLike | None = None
    over: Any = None
    column: int = 0
    power: int = 1

    def __post_init__(self) -> None:
        OneOf(KINDS)(self.kind, "kind")
        COUNT(self.power, "power")
        _COLUMN(self.column, "column")
        given = {name: getattr(self, name) for name in ("equals", "at_least", "at_most")}
        for name, value in given.items():
            _BOUND(value, name)
        if sum(value is not None for value in given.values()) != 1:
            raise ValueError(
                f"equals must be given, or at_least or at_most, and one of them only, got {given}"
            )
        if (self.at is None) != (self.kind in ("integral", "moment")):
            raise ValueError(
                "at must be a point for 'value' and 'derivative', and None else, "
                f"got {shown(self.at)} "
                f"for {self.kind!r}"
            )

    @property
    def of_all_space(self) -> bool:
        """Whether the condition is on an integral over all of space; not every kernel has one."""
        return self.at is None and self.over is None

    @property
    def summary(self) -> str:
        """Short description of the condition."""
        where = "over" if self.at is None else "at"
        return f"{self.kind!r} {where} {shown(getattr(self, where))}"

    def places(self, feature_map: FeatureMap, support: Box | None = None) -> FloatArray | None:
        """Points used by the condition where features may be largest; None if not known."""
        d = feature_map.n_features_in_
        if self.at is not None:
            return self._point(d, support)
        measure = self._measure(d, support)
        if isinstance(measure, Points):
            points, weights = np.asarray(measure.points), np.asarray(measure.weights)
            return np.asarray(points[weights != 0.0], dtype=np.float64)
        landmarks = getattr(feature_map, "landmarks_", None)
        if landmarks is None or not isinstance(measure, Box):
            return None
        return np.clip(landmarks, *measure.bounds)

    def matrix(self, feature_map: FeatureMap, support: Box | None = None) -> FloatArray:
        """Symmetric matrix M, (r, r), such that the constrained quantity of f_A is tr(M A).

        With a support, f_A is taken to be zero outside of it.
        """
        d = feature_map.n_features_in_
        if self.kind in ("derivative", "moment") and self.column >= d:
            raise ValueError(f"column must be below {d}, the number of columns, got {self.column}")
        if self.kind == "integral":
            return moment(feature_map, self._measure(d, support)).matrix
        if self.kind == "moment":
            return self._moment(feature_map, support)
        point = self._point(d, support)
        phi = feature_map.transform(point)[0]
        if self.kind == "value":
            return np.outer(phi, phi)
        every = np.repeat(point, len(phi), axis=0)
        slopes = feature_map.gradient(every, np.eye(len(phi)))
        if slopes is None:
            raise ValueError(
                "kernel must have a gradient for conditions on derivatives, as Gaussian and "
                f"Matern have, got {shown(feature_map.kernel_)}"
            )
        one = np.outer(phi, slopes[:, self.column])
        return np.asarray(one + one.T)

    def constraint(
        self, feature_map: FeatureMap, scale: float, support: Box | None = None
    ) -> Constraint:
        """Constraint on A for the function ``scale`` times f_A."""
        matrix = scale * self.matrix(feature_map, support)
        if self.equals is not None:
            return Constraint([matrix], float(self.equals))
        if self.at_most is not None:
            return Constraint([matrix], float(self.at_most), equality=False)
        assert self.at_least is not None
        return Constraint([-matrix], -float(self.at_least), equality=False)

    def _point(self, d: int, support: Box | None) -> FloatArray:
        """``at`` as a row (1, d), which must be in the support."""
        known = NUMBERS.error(self.at) is None
        point = np.asarray(self.at, dtype=np.float64).reshape(1, -1) if known else np.zeros((1, 0))
        if point.shape[1] != d:
            raise ValueError(f"at must be {d} finite numbers, got {shown(self.at)}")
        if support is not None and not support.contains(point)[0]:
            raise ValueError(
                f"at must be in the support {shown(support)}, outside of which the density is "
                f"zero, got {shown(self.at)}"
            )
        return point

    def _measure(self, d: int, support: Box | None) -> Box | Normal | Points:
        """``over`` on the support, of which there must be something."""
        measure = as_measure(self.over, d, "over")
        if support is None:
            return measure
        left = on_support(measure, support, "over")
        if left is None or (isinstance(left, Points) and not np.any(left.weights)):
            raise ValueError(
                f"over must meet the support {shown(support)}, outside of which the density is "
                f"zero, got {shown(self.over)}"
            )
        return left

    def _moment(self, feature_map: FeatureMap, support: Box | None) -> FloatArray:
        """By values: over weighted points, or panels of a box on the line."""
        d = feature_map.n_features_in_
        measure = self._measure(d, support)
        if isinstance(measure, Points):
            points = np.asarray(measure.points, dtype=np.float64)
            powers = points[:, self.column] ** self.power
            weights = np.asarray(measure.weights, dtype=np.float64)
            return weighted_products(feature_map, points, weights * powers)
        if not isinstance(measure, Box) or d > 1:
            raise ValueError(
                "over must be Points for a moment in several columns, or a box on the line, got "
                f"{shown(self.over)}"
            )
        ends = decay_range(feature_map, *measure.bounds, tails=2.0)
        if ends is None:
            raise ValueError(
                "over must be bounded for a moment with this kernel, got "
                f"{shown(feature_map.kernel_)}"
            )
        return line_rule(feature_map, float(ends[0][0]), float(ends[1][0]), self.power).matrix


def refuse_unreachable(
    conditions: Sequence[Condition],
    feature_map: FeatureMap,
    features: FloatArray,
    scale: float,
    support: Box | None = None,
) -> None:
    r"""Raise an error for a condition at points where all kernel values are nearly zero.

    With :math:`A \succeq 0`, :math:`\operatorname{tr}(M A) = e` needs
    :math:`\operatorname{tr} A \ge e / \lambda_{\max}(M)`, and a matrix of that size has values up
    to :math:`\operatorname{tr} A \max_i \|\varphi(x_i)\|^2` among the rows.

    Parameters
    ----------
    conditions : sequence of Condition
    feature_map : FeatureMap
        Fitted.
    features : ndarray of shape (n, r)
        Features of the rows.
    scale : float
        The function is ``scale`` times f_A, and f_A is about one at the rows.
    support : Box, optional
        The function is zero outside of this box.

    Raises
    ------
    ValueError
        If functions that meet a condition are far larger near the rows than the fitted values.
    """
    largest = float(np.einsum("ij,ij->i", features, features).max())
    for condition in conditions:
        places = condition.places(feature_map, support)
        if places is None:
            continue
        there = feature_map.transform(places)
        reached = float(np.einsum("ij,ij->i", there, there).max(initial=0.0))
        if reached * _FURTHEST >= largest:
            continue
        size = _size_needed(condition.constraint(feature_map, scale, support)) * largest
        if size > _FURTHEST:
            raise ValueError(
                "conditions must be where the kernel reaches from the rows, got "
                f"{condition.summary}, and the smallest function that meets it is more than "
                f"{_FURTHEST:g} times as large near the rows as what is fitted: a larger "
                "length_scale reaches further"
            )


def warn_of_near_contradiction(values: FloatArray, targets: FloatArray) -> None:
    """Warn if a function that meets several conditions is far larger than its targets.

    An example is a function that must be 1 at one point and 0 at another point much closer than a
    length scale. Values and targets are divided by the scale of the targets.
    """
    larger = float(values.max()) / max(float(np.abs(targets).max()), 1.0)
    if larger > _FURTHEST:
        warnings.warn(
            f"conditions nearly contradict each other: to meet them, predictions of the training "
            f"rows are up to {larger:.0f} times the largest target; a smaller length_scale "
            "changes faster",
            UserWarning,
            stacklevel=7,
        )


def _size_needed(constraint: Constraint) -> float:
    """The least trace of a matrix that meets a constraint; infinite where none does."""
    (matrix,), value = constraint.moments, constraint.value
    assert matrix is not None
    if value == 0.0 or (value > 0.0 and not constraint.equality):
        return 0.0
    largest = float((np.sign(value) * np.linalg.eigvalsh(matrix)).max())
    return abs(value) / largest if largest > 0.0 else np.inf


def check_conditions(conditions: Any, name: str = "conditions") -> tuple[Condition, ...]:
    """Return conditions as a tuple, or raise TypeError."""
    listed = conditions if isinstance(conditions, (list, tuple)) else None
    if listed is None or not all(isinstance(each, Condition) for each in listed):
        raise TypeError(f"{name} must be a list of Condition, got {shown(conditions)}")
    return tuple(listed)

"""Linear models made non-negative, to compare with: at the data only, or by their coefficients.

Both are convex programs, solved by Clarabel. Written as scikit-learn estimators, so that
``GridSearchCV`` chooses their parameters; what is held out is judged by ``score``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import clarabel
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from fenchel.features import FeatureMap, Nystroem, PivotedCholesky
from fenchel.kernels import Gaussian
from fenchel.positive import moment

FLOOR = 1e-6
"""Least density with which a held-out row is judged: linear models have negative values."""
MAX_STD = 3.0
"""Largest standard deviation, in units of that of y, as in HeteroscedasticRegressor."""
CONSTANT_STRENGTH = 1e-4
"""Of the constants of distances between quantiles, as in NonCrossingQuantileRegressor."""
FEATURE_TOL = 1e-8


class Program:
    """Minimize ½ xᵀPx + qᵀx over a list of conic constraints offset + rows x ∈ K."""

    def __init__(self, size: int) -> None:
        self.square = np.zeros((size, size))
        self.linear = np.zeros(size)
        self.rows: list[np.ndarray] = []
        self.offsets: list[np.ndarray] = []
        self.cones: list[Any] = []

    def require(self, rows: np.ndarray, offset: np.ndarray, cones: list[Any]) -> None:
        """Add constraints; the cones share the rows in their order."""
        self.rows.append(rows)
        self.offsets.append(offset)
        self.cones += cones

    def require_positive(self, rows: np.ndarray) -> None:
        """Rows x >= 0."""
        self.require(rows, np.zeros(len(rows)), [clarabel.NonnegativeConeT(len(rows))])

    def solve(self) -> np.ndarray:
        """Return x; an error where the solver fails."""
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(self.square)),
            self.linear,
            sparse.csc_matrix(-np.vstack(self.rows)),
            np.concatenate(self.offsets),
            self.cones,
            settings,
        )
        solution = solver.solve()
        if str(solution.status) not in ("Solved", "AlmostSolved"):
            raise RuntimeError(f"Clarabel: {solution.status}")
        return np.array(solution.x)


class Basis(NamedTuple):
    """Functions whose combinations are a model, and the norm of the combinations."""

    features: FeatureMap
    free: bool
    """Features of the map, with coefficients of any sign; else kernel functions at centres."""
    centres: np.ndarray

    @classmethod
    def of(
        cls, X: np.ndarray, length_scale: float, free: bool, n_centres: int | None = None
    ) -> Basis:
        """Functions at all rows, or at the centres of clusters where there are too many."""
        kernel = Gaussian(length_scale)
        if n_centres is None:
            return cls(PivotedCholesky(kernel, FEATURE_TOL, min(len(X), 300)).fit(X), free, X)
        features = Nystroem(kernel, n_centres, landmarks="kmeans").fit(X)
        return cls(features, free, features.landmarks_)

    def values(self, X: np.ndarray) -> np.ndarray:
        """All functions at rows, (n, m)."""
        return self.features.transform(X) if self.free else self.features.kernel_(X, self.centres)

    def square(self) -> np.ndarray:
        """Q with wᵀQw the squared norm of the combination w in the space of the kernel."""
        if self.free:
            return np.eye(self.features.rank_)
        square = self.values(self.centres)
        return square + 1e-10 * np.eye(len(square))

    def integrals(self) -> np.ndarray:
        """Of each function over R^d, (m,)."""
        scale, dimension = self.features.kernel_.length_scale, self.centres.shape[1]
        volume = (np.sqrt(2.0 * np.pi) * scale) ** dimension
        if not self.free:
            return np.full(len(self.centres), volume)
        return volume * self.features.coefficients(np.eye(self.features.rank_)).sum(axis=0)

    def at_least_zero(self, rows: np.ndarray) -> np.ndarray:
        """What must be non-negative, for combinations given their values at the rows."""
        return rows if self.free else np.eye(rows.shape[1])


def _exponentials(value: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and offsets of (top, 1, value) ∈ K_exp, so that top <= log value."""
    n, size = value.shape
    rows = np.zeros((n, 3, size))
    rows[:, 0], rows[:, 2] = top, value
    return rows.reshape(-1, size), np.tile([0.0, 1.0, 0.0], n)


@dataclass(eq=False, repr=False)
class LinearDensity(BaseEstimator):
    r"""Maximum likelihood with a linear model whose integral is one.

    .. math:: \min_w -\frac1n \sum_i \log f(x_i) + \frac{\mathrm{alpha}}{2} \|f\|^2, \qquad
              \int f = 1

    With ``free=True`` f is any function of the kernel's space and positive at the rows only (PNM);
    else it is Σ w_j k(x, x_j), w >= 0 (NCM). ``score`` is the mean log-likelihood for NCM, values
    below 1e-6 judged as 1e-6. A PNM may borrow from where it is negative, so that its likelihood
    is no measure of anything; its score is that of least squares, 2 mean f(x_i) - ∫f².
    """

    free: bool = True
    length_scale: float = 1.0
    alpha: float = 1e-3
    n_centres: int | None = None

    def fit(self, X: np.ndarray, y: object = None) -> Self:
        self.basis_ = Basis.of(X, self.length_scale, self.free, self.n_centres)
        values, n = self.basis_.values(X), len(X)
        m = values.shape[1]
        program = Program(m + n)
        program.square[:m, :m] = self.alpha * self.basis_.square()
        program.linear[m:] = -1.0 / n
        pad = np.zeros((n, n))
        rows, offset = _exponentials(np.hstack([values, pad]), np.eye(n, m + n, m))
        program.require(rows, offset, [clarabel.ExponentialConeT()] * n)
        one = np.concatenate([self.basis_.integrals(), np.zeros(n)])[None, :]
        program.require(one, np.array([-1.0]), [clarabel.ZeroConeT(1)])
        if not self.free:
            program.require_positive(np.eye(m, m + n))
        self.weights_ = program.solve()[:m]
        return self

    def density(self, X: np.ndarray) -> np.ndarray:
        return self.basis_.values(X) @ self.weights_

    def score(self, X: np.ndarray, y: object = None) -> float:
        values = self.density(X)
        if not self.free:
            return float(np.log(np.maximum(values, FLOOR)).mean())
        square = self.weights_ @ moment(self.basis_.features).matrix @ self.weights_
        return float(2.0 * values.mean() - square)


def log_likelihood(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> float:
    """Mean logarithm of normal densities, none judged as less than 1e-6."""
    density = np.exp(-0.5 * ((y - mean) / std) ** 2) / (np.sqrt(2.0 * np.pi) * std)
    return float(np.log(np.maximum(np.nan_to_num(density), FLOOR)).mean())


class NormalMixin:
    """Scoring of models that predict a mean and a standard deviation."""

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        return log_likelihood(y, *self.predict(X))


@dataclass(eq=False, repr=False)
class LinearPrecision(NormalMixin, BaseEstimator):
    r"""Mean and variance with a linear model of the precision, in natural parameters.

    The problem of ``HeteroscedasticRegressor``, with θ - max_std⁻² a linear model that is
    non-negative at the rows (PNM) or has non-negative coefficients (NCM). Where θ <= 0 there is
    no variance: it is nan.
    """

    free: bool = True
    length_scale: float = 1.0
    alpha: float = 1e-3
    precision_length_scale: float | None = None
    precision_strength: float = 1.0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.shift_, self.scale_ = float(y.mean()), float(y.std())
        y = (y - self.shift_) / self.scale_
        self.mean_ = Basis.of(X, self.length_scale, True)
        own = self.precision_length_scale or self.length_scale
        self.precision_ = Basis.of(X, own, self.free)
        means, values = self.mean_.values(X), self.precision_.values(X)
        n, r, m = len(X), means.shape[1], values.shape[1]
        where = np.split(np.arange(r + m + 2 * n), [r, r + m, r + m + n])
        program = Program(r + m + 2 * n)
        w, a, logs, ratios = where  # of η, of θ, log θ, bounds of η²/θ
        unit = np.eye(program.linear.size)
        eta, theta = means @ unit[w], values @ unit[a]
        program.square[np.ix_(w, w)] = self.alpha * np.eye(r)
        own_alpha = self.alpha * self.precision_strength
        program.square[np.ix_(a, a)] = own_alpha * self.precision_.square()
        program.linear += (0.5 * y**2 @ theta - y @ eta) / n
        program.linear[logs], program.linear[ratios] = -0.5 / n, 0.5 / n
        rows, offset = _exponentials(theta, unit[logs])
        offset[2::3] += MAX_STD**-2
        program.require(rows, offset, [clarabel.ExponentialConeT()] * n)
        # η² <= t θ as ‖(2η, t - θ)‖ <= t + θ
        rows = np.stack([unit[ratios] + theta, unit[ratios] - theta, 2.0 * eta], axis=1)
        offset = np.tile([MAX_STD**-2, -(MAX_STD**-2), 0.0], n)
        cones = [clarabel.SecondOrderConeT(3)] * n
        program.require(rows.reshape(3 * n, -1), offset, cones)
        program.require_positive(self.precision_.at_least_zero(values) @ unit[a])
        found = program.solve()
        self.mean_weights_, self.weights_ = found[w], found[a]
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = self.precision_.values(X) @ self.weights_ + MAX_STD**-2
        theta = np.where(theta > 0.0, theta, np.nan)
        mean = self.mean_.values(X) @ self.mean_weights_ / theta
        return self.shift_ + self.scale_ * mean, self.scale_ / np.sqrt(theta)


def pinball(y: np.ndarray, curves: np.ndarray, levels: tuple[float, ...]) -> float:
    """Mean over rows and levels."""
    residual = y[:, None] - curves
    return float(
        np.maximum(np.multiply(levels, residual), np.subtract(levels, 1.0) * residual).mean()
    )


class QuantileMixin:
    """Scoring of models that predict a curve for each level, in increasing order."""

    levels: tuple[float, ...]

    def predict(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        return -pinball(y, self.predict(X), self.levels)


@dataclass(eq=False, repr=False)
class NonNegativeGaps(QuantileMixin, BaseEstimator):
    r"""Three quantiles: a linear median, and distances with non-negative coefficients (NCM).

    The problem of ``NonCrossingQuantileRegressor`` with
    :math:`v_s(x) = c_s + \sum_j a_{sj} k(x, x_j)`, :math:`a, c \ge 0`, penalized by the squared
    norm of the sum.
    """

    levels: tuple[float, ...] = (0.25, 0.5, 0.75)
    length_scale: float = 1.0
    alpha: float = 1e-3
    gap_length_scale: float | None = None
    gap_strength: float = 1.0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.shift_ = float(np.median(y))
        self.scale_ = float(np.abs(y - self.shift_).mean())
        y = (y - self.shift_) / self.scale_
        self.median_ = Basis.of(X, self.length_scale, True)
        self.gaps_ = Basis.of(X, self.gap_length_scale or self.length_scale, False)
        medians, values = self.median_.values(X), self.gaps_.values(X)
        n, r = medians.shape
        sizes = [r, 1, n, 1, n, 1, 3 * n]
        program = Program(sum(sizes))
        w, b, low, c_low, high, c_high, over = np.split(
            np.arange(sum(sizes)), np.cumsum(sizes)[:-1]
        )
        unit, one = np.eye(program.linear.size), np.ones((n, 1))
        median = medians @ unit[w] + one @ unit[b]
        gaps = [values @ unit[low] + one @ unit[c_low], values @ unit[high] + one @ unit[c_high]]
        program.square[np.ix_(w, w)] = self.alpha * np.eye(r)
        for a, c in ((low, c_low), (high, c_high)):
            program.square[np.ix_(a, a)] = self.alpha * self.gap_strength * self.gaps_.square()
            program.square[c, c] = CONSTANT_STRENGTH
        # the pinball loss is τ ξ + s, s >= 0, s >= -ξ
        for j, curve in enumerate((median - gaps[0], median, median + gaps[1])):
            program.linear -= self.levels[j] / n * curve.sum(axis=0)
            slack = unit[over[j * n : (j + 1) * n]]
            program.require(slack - curve, y, [clarabel.NonnegativeConeT(n)])
        program.linear[over] = 1.0 / n
        program.require_positive(unit[np.concatenate([low, c_low, high, c_high, over])])
        found = program.solve()
        self.weights_, self.offset_ = found[w], found[b]
        self.gap_weights_ = np.maximum(np.stack([found[low], found[high]], axis=1), 0.0)
        self.gap_constants_ = np.maximum([found[c_low][0], found[c_high][0]], 0.0)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        median = self.median_.values(X) @ self.weights_ + self.offset_
        gaps = self.gaps_.values(X) @ self.gap_weights_ + self.gap_constants_
        curves = np.stack([median - gaps[:, 0], median, median + gaps[:, 1]], axis=1)
        return self.shift_ + self.scale_ * curves

"""Other regressions of curves on curves, of the introduction of Lambert et al. (2022).

Each is a frozen dataclass of its parameters, with ``fit(X, Y)`` for curves at equidistant points
of [0, 1], (n, m') and (n, m), which returns the function that predicts (n', m) from (n', m').
Integrals over θ are means over the points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold
from sklearn.preprocessing import SplineTransformer

Predict = Callable[[np.ndarray], np.ndarray]
THINNED = 25
"""At most as many points s in the double integrals of the additive kernel."""


class Method(Protocol):
    """What all of them share."""

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Predict:
        """Return the function that predicts."""


@dataclass(frozen=True)
class MeanCurve:
    """The pointwise mean of the outputs."""

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Predict:
        """Return the function that predicts."""
        mean = Y.mean(axis=0)
        return lambda new: np.tile(mean, (len(new), 1))


@dataclass(frozen=True)
class NadarayaWatson:
    """Σ_i w_i(x) y_i / Σ_i w_i(x), w_i = exp(-d(x, x_i)²/(2 width²)), d the L² distance.

    Ferraty, Laksaci, Tadj, Vieu (2011), Kernel regression with functional response.
    """

    width: float

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Predict:
        """Return the function that predicts."""

        def predict(new: np.ndarray) -> np.ndarray:
            exponent = -_squares(new, X) / (2.0 * self.width**2)
            # the nearest row has weight one, however far it is
            weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
            return weight @ Y / weight.sum(axis=1, keepdims=True)

        return predict


@dataclass(frozen=True)
class TripleBasis:
    """3BE: cosines for inputs and outputs, and random features of the coefficients between them.

    Oliva, Neiswanger, Póczos, Xing, Trac, Ho, Schneider (2015), Fast function to function
    regression: output coefficients are a ridge regression, of strength ``alpha`` n, on D random
    Fourier features of a Gaussian kernel of the input coefficients.
    """

    width: float
    alpha: float
    n_inputs: int = 20
    n_outputs: int = 20
    n_features: int = 500
    seed: int = 0

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Predict:
        """Return the function that predicts."""
        inner, outer = cosines(X.shape[1], self.n_inputs), cosines(Y.shape[1], self.n_outputs)
        random = np.random.default_rng(self.seed)
        frequencies = random.standard_normal((self.n_inputs, self.n_features)) / self.width
        phases = random.uniform(0.0, 2.0 * np.pi, self.n_features)

        def features(curves: np.ndarray) -> np.ndarray:
            angles = (curves @ inner / len(inner)) @ frequencies + phases
            return np.sqrt(2.0 / self.n_features) * np.cos(angles)

        Z = features(X)
        system = Z @ Z.T + self.alpha * len(Z) * np.eye(len(Z))
        weights = Z.T @ np.linalg.solve(system, Y @ outer / len(outer))
        return lambda new: features(new) @ weights @ outer.T


@dataclass(frozen=True)
class KernelAdditive:
    """y(t) = ∫ g(x(s), s, t) ds with g in the space of a product of three Gaussian kernels.

    Reimherr, Sriperumbudur, Taoufik (2018), Optimal prediction for additive function-on-function
    regression: least squares with the penalty ``alpha`` n ‖g‖².
    """

    width: float
    alpha: float
    width_s: float = 0.1
    width_t: float = 0.1

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Predict:
        """Return the function that predicts."""
        t = np.linspace(0.0, 1.0, Y.shape[1])
        between = np.exp(-((t[:, None] - t) ** 2) / (2.0 * self.width_t**2))
        rows, left = np.linalg.eigh(self.kernel(X, X))
        points, right = np.linalg.eigh(between)
        values = np.outer(rows, points)
        inside = left.T @ Y @ right / (values + self.alpha * values.shape[0])
        weights = left @ inside @ right.T @ between
        return lambda new: self.kernel(new, X) @ weights

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """∫∫ k(s, s') k(a(s), b(s')) ds ds', on at most ``THINNED`` points s."""
        step = max(1, -(-A.shape[1] // THINNED))
        parts = (np.ascontiguousarray(curves[:, ::step]).tobytes() for curves in (A, B))
        s = np.linspace(0.0, 1.0, A.shape[1])[::step]
        return _additive(*parts, tuple(s), self.width, self.width_s)


@lru_cache(maxsize=10)
def _additive(
    a: bytes, b: bytes, s: tuple[float, ...], width: float, width_s: float
) -> np.ndarray:
    """Values of the additive kernel, kept: strengths in turn need the same for each fold."""
    A, B = (np.frombuffer(curves).reshape(-1, len(s)) for curves in (a, b))
    near = np.exp(-(np.subtract.outer(s, s) ** 2) / (2.0 * width_s**2))
    total = np.zeros((len(A), len(B)))
    for j, column in enumerate(A.T):
        for k in np.flatnonzero(near[j] > 1e-6):
            squares = np.subtract.outer(column, B[:, k]) ** 2
            total += near[j, k] * np.exp(squares / (-2.0 * width**2))
    return total / len(s) ** 2


@dataclass(frozen=True)
class ProjectionLearning:
    """KPL: h(x) = Σ_l f_l(x) φ_l, with f by ridge regression of the curves themselves.

    Bouche, Clausel, Roueff, d'Alché-Buc (2021), Nonlinear functional output regression: a
    dictionary approach: f minimizes mean ‖y_i - Σ_l f_l(x_i) φ_l‖² + ``alpha`` ‖f‖² over functions
    of a Gaussian kernel of the L² distance. The dictionary is cubic B-splines.
    """

    width: float
    alpha: float
    n_atoms: int = 25

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Predict:
        """Return the function that predicts."""
        atoms = splines(Y.shape[1], self.n_atoms)
        rows, left = np.linalg.eigh(self._kernel(X, X))
        grams, right = np.linalg.eigh(atoms.T @ atoms / len(atoms))
        inside = left.T @ (Y @ atoms / len(atoms)) @ right
        inside /= np.outer(rows, grams) + self.alpha * len(X)
        weights = left @ inside @ right.T @ atoms.T
        return lambda new: self._kernel(new, X) @ weights

    def _kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(_squares(A, B) / (-2.0 * self.width**2)))


def _squares(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Squared L² distances."""
    return np.asarray(cdist(A, B, "sqeuclidean")) / A.shape[1]


def cosines(m: int, count: int) -> np.ndarray:
    """1, √2 cos(πθ), √2 cos(2πθ), … at the points, (m, count)."""
    theta = np.linspace(0.0, 1.0, m)
    basis = np.sqrt(2.0) * np.cos(np.pi * np.outer(theta, np.arange(count)))
    basis[:, 0] = 1.0
    return basis


def splines(m: int, count: int) -> np.ndarray:
    """Cubic B-splines at the points, (m, count)."""
    made = SplineTransformer(n_knots=count - 2, degree=3)
    return np.asarray(made.fit_transform(np.linspace(0.0, 1.0, m)[:, None]))


def chosen(
    candidates: list[Method], X: np.ndarray, Y: np.ndarray, robust: bool, seed: int
) -> Method:
    """Return the candidate with the least mean of the errors of five folds, or median."""
    folds = list(KFold(5, shuffle=True, random_state=seed).split(X))
    errors = [
        [np.mean((Y[out] - method.fit(X[kept], Y[kept])(X[out])) ** 2) for kept, out in folds]
        for method in candidates
    ]
    middle: Any = np.median if robust else np.mean
    return candidates[int(np.argmin(middle(errors, axis=1)))]


def spread(X: np.ndarray) -> float:
    """Median L² distance of the rows: the unit of widths."""
    return float(np.sqrt(np.median(_squares(X, X)[np.triu_indices(len(X), 1)])))

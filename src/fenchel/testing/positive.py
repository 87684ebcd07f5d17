"""Check of a non-negative model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from fenchel._typing import AnyArray, FloatArray
from fenchel.positive import PSDModel
from fenchel.testing._saying import (
    about,
    central_differences,
    require,
    require_near,
    require_shape,
    show,
    sobol_mean,
)

_NEGATIVE = 1e-10
_ROUNDING = 1e-9
_DIFFERENCE = 1e-4
_POINTS = 2**13
_DEVIATIONS = 6.0


def check_positive_model(model: PSDModel, X: AnyArray | None = None) -> None:
    r"""Check that a model is non-negative and consistent with its integral and gradient.

    The following are checked, at new points in the box of the rows X and far around it:

    - values have shape (n,), are finite and non-negative, and equal
      :math:`\varphi(x)^\top A \varphi(x)`;
    - the smallest eigenvalue of A is at least -1e-10 times the largest, and ``rank_`` is the
      number of eigenvalues above 1e-9 times the largest;
    - the gradient, against central differences;
    - the integral over the box, against a scrambled Sobol rule with the error that its
      repetitions show, and against the sum over two halves of the box;
    - values and integral of twice the model, and of its sum with itself;
    - values do not change by any of these calls.

    Parameters
    ----------
    model : PSDModel
        A fitted model, for example ``model_`` of a density estimator.
    X : array-like of shape (n, n_features), optional
        Rows of the region of interest; by default the landmarks of the feature map.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import DensityEstimator, PSDModel
    >>> from fenchel.testing import check_positive_model
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> density = DensityEstimator().fit(X)
    >>> check_positive_model(density.model_)
    >>> class Centred(PSDModel):
    ...     def __call__(self, X):
    ...         return super().__call__(X) - 0.1
    >>> check_positive_model(Centred(density.feature_map_, density.model_.factor_))
    Traceback (most recent call last):
        ...
    AssertionError: Centred: the value at [...] is -0.1, and must be >= 0
    """
    if X is None:
        X = getattr(model.feature_map_, "landmarks_", None)
    require(X is not None, "X must be given: the feature map has no landmarks")
    rows = np.array(X, dtype=np.float64)
    low, high = rows.min(axis=0), rows.max(axis=0)
    high = np.where(high > low, high, low + 1.0)
    with about(type(model).__name__):
        _check(model, rows, low, high)


def _check(model: Any, rows: FloatArray, low: FloatArray, high: FloatArray) -> None:
    random = np.random.default_rng(0)
    width = high - low
    points = np.concatenate(
        [low + width * random.uniform(-reach, 1.0 + reach, (200, len(low))) for reach in (0, 3)]
    )
    values = np.asarray(model(points))
    require_shape(values, (len(points),), "f(X)")
    require(np.all(np.isfinite(values)), "the values are not finite")
    worst = int(np.argmin(values))
    require(
        values[worst] >= 0.0,
        f"the value at {show(points[worst])} is {values[worst]:.6g}, and must be >= 0",
    )
    _check_matrix(model, points, values)
    _check_gradient(model, points[_apart(points, rows, width)], values.max(), width)
    _check_integral(model, low, high)
    _check_arithmetic(model, points, values, low, high)
    require(np.array_equal(model(points), values), "the values must be the same each time")


def _check_matrix(model: Any, points: FloatArray, values: FloatArray) -> None:
    """A ⪰ 0, and it is the matrix of the values."""
    matrix = np.asarray(model.matrix_)
    r = model.feature_map_.rank_
    require_shape(matrix, (r, r), "matrix_")
    require(np.allclose(matrix, matrix.T, rtol=0.0, atol=0.0), "matrix_ must be symmetric")
    lam = np.linalg.eigvalsh(matrix) if r else np.zeros(1)
    largest = float(np.abs(lam).max())
    require(
        lam[0] >= -_NEGATIVE * largest,
        f"matrix_ has the eigenvalue {lam[0]:.3g}, and the largest is {largest:.3g}",
    )
    features = np.asarray(model.feature_map_.transform(points))
    expected = np.einsum("ni,ij,nj->n", features, matrix, features)
    rounding = largest * float(np.einsum("ij,ij->i", features, features).max())
    require_near(values, expected, "f(X) must be φ(x)ᵀ A φ(x)", _ROUNDING * rounding)
    counts = [int(np.count_nonzero(lam > share * largest)) for share in (1e-8, 1e-9, 1e-10)]
    require(
        counts[0] <= model.rank_ <= counts[-1],
        f"rank_ must be the number of eigenvalues above 1e-9 times the largest, {counts[1]}, "
        f"got {model.rank_}",
    )


def _apart(points: FloatArray, rows: FloatArray, width: FloatArray) -> Any:
    """Which points are not next to a row, where a rough kernel has a kink."""
    distance = cKDTree(rows / width).query(points / width)[0]
    return np.flatnonzero(distance > 1e-3)


def _check_gradient(model: Any, points: FloatArray, size: float, width: FloatArray) -> None:
    before = points.copy()
    gradient = np.asarray(model.gradient(points))
    require_shape(gradient, points.shape, "gradient(X)")
    require(np.array_equal(points, before), "gradient changes the rows that it is given")
    differences = central_differences(model, points, 1e-5 * width)
    for j, expected in enumerate(differences.T):
        apart = np.abs(gradient[:, j] - expected)
        allowed = _DIFFERENCE * max(float(np.abs(expected).max()), size / width[j])
        worst = int(np.argmax(apart))
        require(
            apart[worst] <= allowed,
            f"gradient, coordinate {j}, at {show(points[worst])} is {gradient[worst, j]:.6g}, "
            f"and differences give {expected[worst]:.6g}",
        )


def _check_integral(model: Any, low: FloatArray, high: FloatArray) -> None:
    """Against a rule that knows only values; a box and its halves."""
    volume = float(np.prod(high - low))
    expected, error = sobol_mean(
        lambda unit: volume * float(model(low + (high - low) * unit).mean()), len(low), _POINTS
    )
    value, own = model.integral_with_error((low, high))
    require(own >= 0.0, f"the error of an integral must be >= 0, got {own:.3g}")
    allowed = _DEVIATIONS * error + own + 1e-7 * abs(expected)
    require(
        abs(value - expected) <= allowed,
        f"the integral over the box of X is {value:.9g}, and a Sobol rule gives "
        f"{expected:.9g} ± {error:.1g}",
    )
    middle_low, middle_high = low.copy(), high.copy()
    middle_low[0] = middle_high[0] = 0.5 * (low[0] + high[0])
    halves = [model.integral_with_error(box) for box in ((low, middle_high), (middle_low, high))]
    total = halves[0].value + halves[1].value
    allowed = own + halves[0].error + halves[1].error + 1e-8 * abs(value)
    require(
        abs(total - value) <= allowed,
        f"the integrals over two halves add up to {total:.9g}, over the box it is {value:.9g}",
    )


def _check_arithmetic(
    model: Any, points: FloatArray, values: FloatArray, low: FloatArray, high: FloatArray
) -> None:
    """Multiples and sums, of values and of integrals."""
    size, own = float(values.max()), model.integral((low, high))
    for other, name in ((2.0 * model, "2 f"), (model + model, "f + f")):
        require_near(other(points), 2.0 * values, f"{name} must be twice f", _ROUNDING * size)
        twice = other.integral((low, high))
        require(
            abs(twice - 2.0 * own) <= 1e-8 * abs(own),
            f"the integral of {name} must be {2.0 * own:.9g}, got {twice:.9g}",
        )

"""Check of a feature map."""

from __future__ import annotations

import importlib.util
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from fenchel._typing import AnyArray, FloatArray
from fenchel.features import FeatureMap, KernelRows
from fenchel.kernels import Box, Precomputed
from fenchel.testing._saying import (
    about,
    central_differences,
    require,
    require_near,
    require_shape,
    sobol_mean,
)

_TOL = 1e-7
_STEP = 1e-5
_DIFFERENCE = 1e-5  # the rounding of differences over such a step, and some
_POINTS, _DEVIATIONS = 2**10, 8.0


def check_feature_map(feature_map: FeatureMap, X: AnyArray | None = None) -> None:
    r"""Check that a feature map approximates its kernel within its stated error.

    The following are checked, where Φ are the features of the rows X:

    - :math:`\|K - \Phi\Phi^\top\|_F` is at most ``kernel_error_`` times trace(K), which holds for
      an error in trace as well as in the Frobenius norm (Φ = K for :class:`KernelRows`);
    - ``transform(X)`` equals the features of the training rows, row by row;
    - ``fit_transform`` equals ``fit`` followed by ``transform``, and is the same each time;
    - ``coefficients``, if there are landmarks;
    - if available, ``gradient`` against central differences, and ``product_integrals`` over a box
      against a scrambled Sobol rule;
    - ``clone`` and ``set_output``, and that parameters and rows do not change.

    Parameters
    ----------
    feature_map : FeatureMap
        The feature map. It is cloned and not changed.
    X : array-like of shape (n_samples, n_features), optional
        Rows to check on; by default 60 random rows of 2 features, or a Gram matrix for a
        precomputed kernel.

    Examples
    --------
    >>> from fenchel.features import Nystroem, PivotedCholesky
    >>> from fenchel.testing import check_feature_map
    >>> check_feature_map(PivotedCholesky("laplacian", rank=20))
    >>> class Optimist(Nystroem):
    ...     def _fit(self, X):
    ...         features = super()._fit(X)
    ...         self.kernel_error_ = 0.0
    ...         return features
    >>> check_feature_map(Optimist("laplacian", rank=20))
    Traceback (most recent call last):
        ...
    AssertionError: Optimist(kernel='laplacian', rank=20): kernel_error_ is 0, too low: ...
    """
    mapping = clone(feature_map)
    given = bool(mapping.__sklearn_tags__().input_tags.pairwise)
    rows = _rows(given) if X is None else np.array(X, dtype=np.float64)
    with about(f"{feature_map!r}"):
        _check(mapping, rows)


def _rows(given: bool) -> FloatArray:
    X = np.random.default_rng(0).standard_normal((60, 2))
    X[3] = X[2]
    if not given:
        return X
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.exp(-squares)


def _check(mapping: Any, X: FloatArray) -> None:
    n = len(X)
    before, parameters = X.copy(), repr(mapping)
    features = np.asarray(mapping.fit_transform(X))
    rank = mapping.rank_
    require_shape(features, (n, rank), "fit_transform(X), with rank_ columns,")
    require(np.all(np.isfinite(features)), "the features are not finite")
    same = partial(require_near, allowed=_TOL * float(np.abs(features).max()))
    some = np.arange(0, n, 7)
    same(mapping.transform(X), features, "transform(X) must be the features of the training rows")
    same(mapping.transform(X[some]), features[some], "transform must work row by row")
    weights = np.random.default_rng(0).standard_normal((rank, 2))
    require_near(
        mapping.combination(X, weights),
        features @ weights,
        "combination must be transform(X) @ weights",
        _TOL * float((np.abs(features) @ np.abs(weights)).max()),
    )
    _check_error(mapping, X, features)
    _check_coefficients(mapping, X, features)
    if not isinstance(mapping.kernel_, Precomputed):
        _check_gradient(mapping, X)
        _check_integrals(mapping, X)
    again = clone(mapping).fit(X)
    same(again.transform(X), features, "fit and transform must do what fit_transform does")
    same(clone(mapping).fit_transform(X), features, "a fit must be the same each time")
    require(repr(mapping) == parameters, "fit must not change the parameters")
    require(np.array_equal(X, before), "fit or transform changes the rows that it is given")
    names = mapping.get_feature_names_out()
    require(len(names) == rank, f"get_feature_names_out gives {len(names)} names for {rank}")
    if importlib.util.find_spec("pandas") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what pandas warns about while it is imported
            frame = clone(mapping).set_output(transform="pandas").fit_transform(X)
        require(hasattr(frame, "columns"), "set_output(transform='pandas') must give a data frame")
        require(list(frame.columns) == list(names), "columns must be get_feature_names_out()")
        same(frame.to_numpy(), features, "set_output must not change the features")


def _check_error(mapping: Any, X: FloatArray, features: FloatArray) -> None:
    """What is left of the Gram matrix is no more than stated."""
    error: Any = getattr(mapping, "kernel_error_", None)
    require(
        isinstance(error, float) and 0.0 <= error < np.inf,
        f"kernel_error_ must be a finite number >= 0, got {error!r}",
    )
    if isinstance(mapping.kernel_, Precomputed):
        gram = X
    else:
        transformer = getattr(mapping, "transformer_", None)
        own = X if transformer is None else transformer.transform(X)
        gram = np.asarray(mapping.kernel_(own.toarray() if hasattr(own, "toarray") else own))
    trace = float(np.trace(gram))
    if isinstance(mapping, KernelRows):  # its features are K itself, with another inner product
        sentence = "the features must be the kernel values against the training rows"
        require_near(features, gram, sentence, _TOL * trace)
        return
    left = float(np.linalg.norm(gram - features @ features.T))
    require(
        left <= (error + _TOL) * trace,
        f"kernel_error_ is {error:.3g}, too low: the Frobenius norm of K - ΦΦᵀ is "
        f"{left / trace:.3g} times the trace of K",
    )


def _check_gradient(mapping: Any, X: FloatArray) -> None:
    """Against central differences of the features."""
    random, spread = np.random.default_rng(2), float(np.ptp(X, axis=0).max()) or 1.0
    rows = X[:5] + 0.1 * spread * random.standard_normal(X[:5].shape)
    weights = random.standard_normal((len(rows), mapping.rank_))
    gradient = mapping.gradient(rows, weights)
    if gradient is None:
        return
    require_shape(gradient, rows.shape, "gradient(X, weights)")
    expected = central_differences(
        lambda points: np.einsum("ij,ij->i", weights, mapping.transform(points)),
        rows,
        np.full(X.shape[1], _STEP * spread),
    )
    for j, apart in enumerate(np.abs(gradient - expected).max(axis=0)):
        require(
            apart <= _DIFFERENCE * np.abs(weights).sum() / spread,
            f"gradient(X, weights) differs by {apart:.3g} from differences of the features in "
            f"coordinate {j}",
        )


def _check_integrals(mapping: Any, X: FloatArray) -> None:
    """Against a rule that knows only the features."""
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    found = mapping.product_integrals(Box(low, high))
    if found is None:
        return
    require_shape(found, (mapping.rank_, mapping.rank_), "product_integrals(measure)")

    def product(unit: FloatArray) -> FloatArray:
        values = mapping.transform(low + unit * (high - low))
        return np.asarray(values.T @ values * np.prod(high - low) / _POINTS)

    expected, error = sobol_mean(product, len(low), _POINTS)
    apart = float(np.abs(found - expected).max())
    require(
        apart <= _DEVIATIONS * error + _TOL * float(np.abs(expected).max()),
        f"product_integrals over a box differs by {apart:.3g} from a Sobol rule of error "
        f"{error:.1g}",
    )


def _check_coefficients(mapping: Any, X: FloatArray, features: FloatArray) -> None:
    """Features times weights are kernel values at landmarks times coefficients."""
    weights = np.random.default_rng(1).standard_normal((mapping.rank_, 2))
    try:
        coefficients = np.asarray(mapping.coefficients(weights))
    except NotImplementedError:
        return
    if isinstance(mapping.kernel_, Precomputed):
        columns = getattr(mapping, "pivots_", getattr(mapping, "landmarks_", None))
        values = X[:, columns]
    else:
        values = np.asarray(mapping.kernel_(X, mapping.landmarks_))
    require(
        coefficients.shape == (values.shape[1], 2),
        f"coefficients(weights) must have a row for each of the {values.shape[1]} landmarks, got "
        f"shape {coefficients.shape}",
    )
    rounding = float((np.abs(values) @ np.abs(coefficients)).max())
    sentence = "kernel values at the landmarks times coefficients(weights) must be features times \
weights"
    require_near(values @ coefficients, features @ weights, sentence, _TOL * rounding)
    sentence = "from_kernel_values of the kernel values at the landmarks must be the features"
    allowed = _TOL * max(float(np.abs(features).max()), 1.0)
    require_near(mapping.from_kernel_values(values.copy()), features, sentence, allowed)

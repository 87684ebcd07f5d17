"""Sampling from non-negative models, coordinate by coordinate."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from fenchel._typing import FloatArray
from fenchel.kernels import Gaussian
from fenchel.positive.integrals import kernel_products
from fenchel.positive.measures import Box, as_measure

if TYPE_CHECKING:
    from fenchel.positive.model import PSDModel

_GRID = 4097
_COARSE = 513
_WORK = 3e10
_TAIL = 6.5  # widths of a Gaussian kernel beyond the last landmark: exp(-42)
_CHUNK = 2**22


def sample_by_conditionals(
    model: PSDModel, n_samples: int, random_state: Any, domain: Any
) -> FloatArray:
    """Draw rows with density f / ∫ f."""
    whole = isinstance(n_samples, Integral) and not isinstance(n_samples, bool)
    if not whole or n_samples < 1:
        raise ValueError(f"n_samples must be an integer >= 1, got {n_samples!r}")
    d = model.n_features_in_
    measure = as_measure(domain, d)
    if not isinstance(measure, Box):
        raise ValueError(f"domain must be None, a pair (low, high) or Box, got {domain!r}")
    random = check_random_state(random_state)
    uniform = random.uniform(size=(n_samples, d))
    if d == 1:
        grid = np.linspace(*_range(model, measure, 0), _GRID)
        return _inverse(grid, model(grid[:, None])[None], uniform[:, 0])[:, None]
    coefficients, Z, width = model._product("sample in more than one dimension")
    inner = coefficients @ coefficients.T
    low, high = measure.bounds
    rows = np.empty((n_samples, d))
    given = np.ones((1, len(Z)))  # products of kernel values of the coordinates drawn so far
    for j in range(d):
        later = list(range(j + 1, d))
        weights = inner
        if later:
            rest = kernel_products(
                Gaussian(width[later]), Z[:, later], Box(low[later], high[later])
            )
            assert rest is not None
            weights = inner * rest
        values, vectors = np.linalg.eigh(0.5 * (weights + weights.T))
        kept = values > 1e-14 * values[-1]
        factor = vectors[:, kept] * np.sqrt(values[kept])
        work = len(given) * factor.size
        count = int(np.clip(_WORK / max(work, 1), _COARSE, _GRID)) // 2 * 2 + 1
        grid = np.linspace(*_range(model, measure, j), count)
        along = np.exp(-0.5 * np.square((grid[:, None] - Z[:, j]) / width[j]))
        rows[:, j] = _conditional(grid, along, given, factor, uniform[:, j])
        given = given * np.exp(-0.5 * np.square((rows[:, [j]] - Z[:, j]) / width[j]))
        given = given / given.max(axis=1, keepdims=True)
    return rows


def _conditional(
    grid: FloatArray, along: FloatArray, given: FloatArray, factor: FloatArray, uniform: FloatArray
) -> FloatArray:
    """Draw one coordinate for each row of ``given``, a single row counting for all."""
    if len(given) == 1:
        return _inverse(grid, np.square((along * given) @ factor).sum(axis=1)[None], uniform)
    drawn = np.empty(len(given))
    size = max(1, _CHUNK // (len(grid) * max(factor.shape)))
    for start in range(0, len(given), size):
        part = slice(start, start + size)
        products = (given[part, None, :] * along).reshape(-1, along.shape[1]) @ factor
        density = np.square(products, out=products).sum(axis=1).reshape(-1, len(grid))
        drawn[part] = _inverse(grid, density, uniform[part])
    return drawn


def _range(model: PSDModel, measure: Box, j: int) -> tuple[float, float]:
    """Where a coordinate can be, up to what cannot be seen in double precision."""
    low, high = float(measure.bounds[0][j]), float(measure.bounds[1][j])
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    landmarks = getattr(model.feature_map_, "landmarks_", None)
    scale = getattr(model.feature_map_.kernel_, "length_scale", None)
    if landmarks is None or scale is None:
        raise ValueError(
            "domain must be bounded to sample from a model whose kernel does not decay, got "
            f"{model.feature_map_.kernel_!r}"
        )
    width = float(np.broadcast_to(np.asarray(scale, dtype=np.float64), model.n_features_in_)[j])
    reach = (_TAIL if isinstance(model.feature_map_.kernel_, Gaussian) else 3 * _TAIL) * width
    return (
        max(low, float(landmarks[:, j].min()) - reach),
        min(high, float(landmarks[:, j].max()) + reach),
    )


def _inverse(grid: FloatArray, density: FloatArray, uniform: FloatArray) -> FloatArray:
    """Invert distribution functions of piecewise linear densities, a row of values for each."""
    step = grid[1] - grid[0]
    cells = 0.5 * step * (density[:, 1:] + density[:, :-1])
    cumulated = np.concatenate([np.zeros((len(cells), 1)), np.cumsum(cells, axis=1)], axis=1)
    if len(cells) == 1:
        target = uniform * cumulated[0, -1]
        cell = np.searchsorted(cumulated[0], target, side="right") - 1
        row = np.zeros(len(uniform), dtype=np.intp)
    else:
        target = uniform * cumulated[:, -1]
        cell = (cumulated <= target[:, None]).sum(axis=1) - 1
        row = np.arange(len(uniform))
    cell = np.clip(cell, 0, len(grid) - 2)
    left, right = density[row, cell], density[row, cell + 1]
    rest = np.maximum(target - cumulated[row, cell], 0.0)
    # left t + (right - left) t² / (2 step) = rest, in the form without cancellation
    root = np.sqrt(np.maximum(left**2 + 2.0 * (right - left) * rest / step, 0.0))
    total = left + root
    move = np.divide(2.0 * rest, total, out=np.zeros_like(rest), where=total > 0.0)
    return np.asarray(grid[cell] + np.minimum(move, step))


__all__ = ["sample_by_conditionals"]

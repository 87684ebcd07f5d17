"""Sampling from non-negative models, coordinate by coordinate."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.distributions.gridded import within_cell
from fenchel.features import FeatureMap
from fenchel.kernels import Box, as_box, as_scalar_kernel
from fenchel.positive._forms import product_form, root_of
from fenchel.positive._quadrature import decay_range

_GRID = 4097
_COARSE = 513
_LEFT = 1e-10  # share of a density that is not seen in samples
_WORK = 3e10
_CHUNK = 2**22


def sample_by_conditionals(
    values: Callable[[FloatArray], FloatArray],
    feature_map: FeatureMap,
    factor: FloatArray,
    n_samples: int,
    random_state: Any,
    domain: Any,
) -> FloatArray:
    """Draw rows with density f / ∫ f, from the values of f = ||Fᵀ φ||² and its parts φ and F."""
    whole = isinstance(n_samples, Integral) and not isinstance(n_samples, bool)
    if not whole or n_samples < 1:
        raise ValueError(f"n_samples must be an integer >= 1, got {shown(n_samples)}")
    d = feature_map.n_features_in_
    measure = as_box(domain, d)
    random = check_random_state(random_state)
    uniform = random.uniform(size=(n_samples, d))
    low, high = _range(feature_map, measure)
    if d == 1:
        grid = np.linspace(low[0], high[0], _GRID)
        return _inverse(grid, values(grid[:, None])[None], uniform[:, 0])[:, None]
    if d == 2 and as_scalar_kernel(feature_map.kernel_).factor([0, 1]) is None:
        return _in_the_plane(values, low, high, uniform)
    form = product_form(feature_map, factor, "sample in more than one dimension")
    inner = form.coefficients @ form.coefficients.T
    rows = np.empty((n_samples, d))
    given = np.ones((1, len(inner)))  # products of kernel values of the coordinates drawn so far
    for j in range(d):
        later = list(range(j + 1, d))
        weights = inner * form.integrals(later, measure) if later else inner
        root = root_of(weights, _LEFT)
        work = len(given) * root.size
        count = int(np.clip(_WORK / max(work, 1), _COARSE, _GRID)) // 2 * 2 + 1
        grid = np.linspace(low[j], high[j], count)
        along = form.along([j], grid[:, None])
        rows[:, j] = _conditional(grid, along, given, root, uniform[:, j])
        given = given * form.along([j], rows[:, [j]])
        given = given / given.max(axis=1, keepdims=True)
    return rows


def _in_the_plane(
    values: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    uniform: FloatArray,
) -> FloatArray:
    """Two coordinates by values alone: the first by sums over a grid, the second given it."""
    first, second = (np.linspace(a, b, _COARSE) for a, b in zip(low, high, strict=True))
    ends = np.full(_COARSE, 1.0)
    ends[[0, -1]] = 0.5
    sums = np.array([values(_beside(x, second)) @ ends for x in first])
    rows = np.empty_like(uniform)
    rows[:, 0] = _inverse(first, sums[None], uniform[:, 0])
    for row, share in zip(rows, uniform[:, 1], strict=True):
        row[1] = _inverse(second, values(_beside(row[0], second))[None], share[None])[0]
    return rows


def _beside(x: float, second: FloatArray) -> FloatArray:
    """Points of one first coordinate."""
    return np.stack([np.full_like(second, x), second], axis=1)


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


def _range(feature_map: FeatureMap, measure: Box) -> tuple[FloatArray, FloatArray]:
    """Where rows can be, up to what cannot be seen in double precision."""
    ends = decay_range(feature_map, *measure.bounds)
    if ends is None:
        raise ValueError(
            "domain must be bounded to sample from a model whose kernel does not decay, got "
            f"{feature_map.kernel_!r}"
        )
    return ends


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
    return np.asarray(grid[cell] + within_cell(left, right, step, rest))

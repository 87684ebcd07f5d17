"""Sampling from non-negative models, coordinate by coordinate."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import shown
from fenchel.features import FeatureMap
from fenchel.kernels import Box, as_box, as_scalar_kernel
from fenchel.positive._forms import MixtureForm, ProductForm, product_form, root_of
from fenchel.positive._panels import Panels, Piece, pieces_of
from fenchel.positive._quadrature import decay_range

_SHARE = 1.0  # of a length scale in a panel: Gaussian kernels are polynomials there to 1e-6
_FINE = 0.5  # and to 1e-8 of the largest value, which all conditional densities are to be
_EQUAL, _FEW_EQUAL = 512, 64  # panels where there is no length scale, of one column and of more
_CHUNK = 2**22
_AT_ONCE = 2**14  # points in the plane
_TRIED, _EXACT = 32, 1e-6  # rows at which polynomials are looked at, and what they may miss


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
    if not factor.any():
        raise ValueError("sample needs a function that is positive somewhere, got zero")
    d = feature_map.n_features_in_
    measure = as_box(domain, d)
    random = check_random_state(random_state)
    uniform = random.uniform(size=(n_samples, d))
    low, high = _range(feature_map, measure)
    columns = zip(range(d), low.tolist(), high.tolist(), strict=True)
    pieces = [pieces_of(feature_map, *each) for each in columns]
    if d == 1:
        landmarks = getattr(feature_map, "landmarks_", np.zeros((0, 1)))[:, 0]
        panels = Panels.between([_with_kinks(piece, landmarks) for piece in pieces[0]])
        return panels.quantiles(values(panels.points[:, None])[None], uniform[:, 0])[:, None]
    if d == 2:
        at_landmarks = getattr(feature_map, "landmarks_", None) is not None
        product = at_landmarks and as_scalar_kernel(feature_map.kernel_).factor([0, 1]) is not None
        both = [_panels(pieces[0], _FINE if product else _SHARE), _panels(pieces[1])]
        found = _in_the_plane(values, both, uniform, not product)
        if found is not None:
            return found
    form = product_form(feature_map, factor, "sample in more than one dimension")
    copies = len(form.landmarks) // len(feature_map.landmarks_)  # of a sum of kernels
    inner = form.coefficients @ form.coefficients.T
    rows = np.empty((n_samples, d))
    given = np.ones((1, len(inner)))  # products of kernel values of the coordinates drawn so far
    for j in range(d):
        later = list(range(j + 1, d))
        weights = inner * form.integrals(later, measure) if later else inner
        parts = [_part_of(form, j, piece, weights, copies) for piece in pieces[j]]
        rows[:, j] = _conditional(_panels(pieces[j]), parts, given, uniform[:, j])
        given = given * form.along([j], rows[:, [j]])
        given = given / given.max(axis=1, keepdims=True)
    return rows


def _with_kinks(piece: Piece, landmarks: FloatArray) -> FloatArray:
    """Edges of panels that end at landmarks too, where kernels may have kinks."""
    inside = landmarks[(landmarks > piece.low) & (landmarks < piece.high)]
    return np.unique(np.concatenate([piece.edges(_SHARE, _EQUAL), inside]))


def _panels(pieces: list[Piece], share: float = _SHARE) -> Panels:
    return Panels.between([piece.edges(share, _FEW_EQUAL) for piece in pieces])


def _in_the_plane(
    values: Callable[[FloatArray], FloatArray],
    panels: list[Panels],
    uniform: FloatArray,
    alone: bool = True,
) -> FloatArray | None:
    """Two coordinates by values alone: the first by sums over panels, the second given it.

    Of many rows, values at the first coordinates that were drawn are those of polynomials in their
    panels, as far as that is exact. Unless there are values ``alone``, None where it is not.
    """
    first, second = panels
    across, size = second.points, max(1, _AT_ONCE // len(second.points))
    rows, ends = np.empty_like(uniform), first.points
    many = len(rows) >= len(ends) and len(ends) * len(across) <= _CHUNK
    if not (many or alone):
        return None

    def beside(some: FloatArray) -> FloatArray:
        """Values at some first coordinates with all second ones."""
        pairs = [np.repeat(some, len(across)), np.tile(across, len(some))]
        return values(np.stack(pairs, axis=1)).reshape(len(some), -1)

    pieces = [beside(ends[k : k + size]) for k in range(0, len(ends), size)] if many else []
    parts = pieces or (beside(ends[k : k + size]) for k in range(0, len(ends), size))
    sums = np.concatenate([each @ second.weights for each in parts])
    rows[:, 0] = first.quantiles(sums[None], uniform[:, 0])
    of_rows = beside
    if many:
        grid = np.concatenate(pieces)
        if _agree(first.between_points(grid, rows[:_TRIED, 0]), beside(rows[:_TRIED, 0])):
            size = max(1, _CHUNK // len(across))
            of_rows = lambda some: np.maximum(first.between_points(grid, some), 0.0)  # noqa: E731
        elif not alone:
            return None
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        found = of_rows(rows[part, 0])
        rows[part, 1] = second.quantiles(found, uniform[part, 1])
    return rows


def _agree(values: FloatArray, exact: FloatArray) -> bool:
    """Whether values of rows are near the exact ones, in units of the largest of each row."""
    away = np.abs(values - exact).max(axis=1)
    return bool((away <= _EXACT * exact.max(axis=1)).all())


class _Part(NamedTuple):
    """What the density of a coordinate is made of in a piece: ||(given * along) root||²."""

    near: IntArray
    """The landmarks that are seen there."""
    along: FloatArray
    """Values of the coordinate's factors at the points, (points, near)."""
    root: FloatArray
    """Of their weights, (near, q)."""

    @property
    def work(self) -> int:
        """Numbers that a row needs."""
        return len(self.along) * max(self.root.shape)

    def values(self, given: FloatArray) -> FloatArray:
        """At the points, for each row of what is given of the landmarks."""
        products = (given[:, None, self.near] * self.along).reshape(-1, len(self.near)) @ self.root
        return np.square(products, out=products).sum(axis=1).reshape(len(given), -1)


def _part_of(
    form: ProductForm | MixtureForm, column: int, piece: Piece, weights: FloatArray, copies: int
) -> _Part:
    shift = len(weights) // copies * np.arange(copies)
    near = (shift[:, None] + piece.landmarks).ravel()
    along = form.along([column], _panels([piece]).points[:, None])[:, near]
    return _Part(near, along, root_of(weights[np.ix_(near, near)]))


def _conditional(
    panels: Panels, parts: list[_Part], given: FloatArray, uniform: FloatArray
) -> FloatArray:
    """Draw one coordinate for each row of ``given``, a single row counting for all."""
    most = max(len(panels.points), *(part.work for part in parts))
    size, drawn = max(1, _CHUNK // most), np.empty(len(uniform))
    for start in range(0, len(given), size):
        rows = slice(start, start + size) if len(given) > 1 else slice(None)
        density = np.concatenate(
            [part.values(given[start : start + size]) for part in parts], axis=1
        )
        drawn[rows] = panels.quantiles(density, uniform[rows])
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

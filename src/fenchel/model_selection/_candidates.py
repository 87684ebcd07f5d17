"""Candidates of a search: the grid of parameters for an estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, product
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from fenchel._typing import AnyArray, FloatArray
from fenchel._validation import shown

Settings = list[dict[str, Any]]
"""Parameters with values, for each of several candidates."""


class Grid(NamedTuple):
    """All combinations of four lists of settings; a list without candidates holds one ``{}``."""

    features: Settings
    """Settings that need their own feature map."""
    others: Settings
    """Settings that do not; each has its own path."""
    along: Settings
    """The second path parameter, in the order of its path."""
    alphas: Settings
    """The strengths, in the order of their path."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Number of settings in each list."""
        return len(self.features), len(self.others), len(self.along), len(self.alphas)

    def points(self) -> Settings:
        """All combinations, with the strengths varying fastest."""
        return [dict(chain(*(part.items() for part in point))) for point in product(*self)]


def make_grid(estimator: Any, param_grid: Any, data: Mapping[str, Any]) -> Grid:
    """Return the candidates of an estimator, which is checked at each of them, for these data.

    Numbers of values are replaced by values of the path, in the units of the problem.
    """
    given = estimator.default_grid() if param_grid is None else param_grid
    paths, settings = {}, {}
    for name, values in given.items():
        if name in estimator.path_parameters:
            paths[name] = _path(estimator, name, values)
        else:
            settings[name] = _listed(name, values)
    _count_out(estimator, paths, data)
    alphas = paths.pop("alpha", None)
    second = next((name for name in estimator.path_parameters if name in paths), None)
    along = {} if second is None else {second: paths.pop(second)}
    settings.update({name: list(values) for name, values in paths.items()})
    own = {name: v for name, v in settings.items() if _needs_features(estimator, name)}
    others = {name: v for name, v in settings.items() if name not in own}
    grid = Grid(
        _product(own),
        _product(others),
        _product(along),
        _product({} if alphas is None else {"alpha": alphas}),
    )
    _check(estimator, grid)
    return grid


def _path(estimator: Any, name: str, values: Any) -> Any:
    """A number of values, or values in the order of the path."""
    if np.ndim(values) == 0:
        if isinstance(values, Integral) and not isinstance(values, bool) and int(values) >= 1:
            return int(values)
        raise ValueError(
            f"param_grid[{name!r}] must be a number of values >= 1 or a sequence of numbers, got "
            f"{values!r}"
        )
    try:
        path = np.sort(np.asarray(values, dtype=np.float64).ravel())
    except (TypeError, ValueError):  # of words
        path = np.empty(0)
    if np.ndim(values) != 1 or len(path) == 0 or not np.all(np.isfinite(path)):
        raise ValueError(
            f"param_grid[{name!r}] must be a sequence of one or more finite numbers, got "
            f"{values!r}"
        )
    ordered = path if estimator.path_parameters[name] == "rising" else path[::-1]
    return ordered.tolist()


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable) or not list(values):
        raise ValueError(
            f"param_grid[{name!r}] must be a sequence of one or more candidates, "
            f"got {shown(values)}"
        )
    return list(values)


def _count_out(estimator: Any, paths: dict[str, Any], data: Mapping[str, Any]) -> None:
    """Replace numbers of values by values."""
    counted = [name for name, values in paths.items() if isinstance(values, int)]
    if not counted:
        return
    model = estimator.with_parameters()
    model.check_parameters()
    prepared = model.prepare(**data)
    for name in counted:
        paths[name] = model.path_grid(prepared, name, paths[name]).tolist()


def _needs_features(estimator: Any, name: str) -> bool:
    first = name.partition("__")[0]
    return first.endswith("length_scale") or first in estimator.feature_parameters


def _product(candidates: Mapping[str, list[Any]]) -> Settings:
    return [dict(zip(candidates, point, strict=True)) for point in product(*candidates.values())]


def _check(estimator: Any, grid: Grid) -> None:
    """Raise an error for parameters that are not allowed, before any candidate is fitted."""
    first = {**grid.along[0], **grid.alphas[0]}
    for own in grid.features:
        model = estimator.with_parameters(**own)
        for other in grid.others:
            model.set_params(**other, **first).check_parameters()
    for point in (*grid.along, *grid.alphas):
        model.set_params(**point).check_parameters()


def column(values: list[Any]) -> Any:
    """Values of one parameter as in ``cv_results_``: numbers as such, others as objects."""
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
    array: AnyArray | FloatArray = np.asarray(values) if numbers else np.empty(len(values), object)
    if not numbers:
        for k, value in enumerate(values):
            array[k] = value
    return np.ma.MaskedArray(array, mask=False)

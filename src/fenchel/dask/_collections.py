"""Dask collections as rows on workers, and predictions as collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import check_magnitude, check_targets, check_weights
from fenchel.dask import _tasks as tasks
from fenchel.dask._cluster import Cluster, part_of_dask
from fenchel.dask._rows import SpreadFeatures, SpreadRows
from fenchel.features import FeatureMap
from fenchel.regression.elsewhere import Source


@dataclass(frozen=True)
class OnWorkers(Source):
    """Collections that workers read: rows on the workers, targets and weights on the client."""

    kind = SpreadFeatures

    @classmethod
    def read(cls, client: Any, X: Any, y: Any, sample_weight: Any, random_state: Any) -> OnWorkers:
        """Read collections, with the same checks as for other data."""
        given = {"X": X, "y": y, "sample_weight": sample_weight}
        pieces = {name: _pieces(each, name) for name, each in given.items()}
        _check_same(given, pieces)
        cluster = Cluster(client)
        parts = []
        for k, of_X in enumerate(pieces["X"]):
            of_rows = [
                pieces[name][k] if pieces[name] else None for name in ("y", "sample_weight")
            ]
            both = [of_X, *of_rows]
            known = cluster.client.compute([each for each in both if each is not None])
            parts.append(cluster.submit(tasks.read, k, *known, *[None] * (3 - len(known))))
        beside = cluster.gathered([cluster.submit(tasks.all_but_rows, part) for part in parts])
        check_magnitude(np.array([largest for _, largest in beside]), "X")
        known_of = [known for known, _ in beside]
        begins = np.cumsum([0, *(known.n_rows for known in known_of)])
        kept = np.concatenate(
            [known.kept + start for known, start in zip(known_of, begins, strict=False)]
        )
        if len(kept) == 0:
            empty = begins[-1] == 0
            raise ValueError(
                "X must have at least one row, got none"
                if empty
                else "sample_weight must have a positive entry, got zeros only"
            )
        targets = np.concatenate([known.targets for known in known_of])
        check_targets(targets)
        weight = np.broadcast_to(1.0, len(kept))
        if sample_weight is not None:
            found = np.concatenate([known.weight for known in known_of])
            weight = check_weights(np.empty((len(found), 0)), found)
        some = [k for k, known in enumerate(known_of) if len(known.kept)]
        starts = np.cumsum([0, *(len(known_of[k].kept) for k in some)])
        rows = SpreadRows(
            cluster,
            [cluster.submit(tasks.rows_of, parts[k]) for k in some],
            starts,
            known_of[0].rows.shape[1],
        )
        return cls(
            rows,
            targets,
            weight,
            kept,
            int(begins[-1]),
            _names(X),
            random_state=random_state,
            flat=_is_flat(y),
        )

    def combination(self, feature_map: FeatureMap, weights: FloatArray) -> FloatArray:
        """Compute on the workers that have the rows."""
        return np.asarray(self.rows.combination(feature_map, weights))


def is_collection(values: Any) -> bool:
    """Whether these are an array or a data frame of Dask."""
    return bool(part_of_dask("dask").is_dask_collection(values))


def _is_frame(values: Any) -> bool:
    """Whether a collection has partitions with an index."""
    return hasattr(values, "map_partitions")


def _is_flat(values: Any) -> bool:
    return int(values.ndim) == 1


def _names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame if they are strings."""
    names = list(X.columns) if _is_frame(X) else []
    return names if names and all(isinstance(name, str) for name in names) else None


def _pieces(values: Any, name: str) -> list[Any]:
    """Delayed parts of a collection, in the order of the rows; none if there are no weights."""
    if values is None and name == "sample_weight":
        return []
    dimensions = (2,) if name == "X" else (1, 2) if name == "y" else (1,)
    if not is_collection(values) or getattr(values, "ndim", None) not in dimensions:
        allowed = " or ".join(map(str, dimensions))
        raise ValueError(
            f"{name} must be an array or data frame of Dask with {allowed} dimensions, got "
            f"{type(values).__name__} with {getattr(values, 'ndim', 'no')}"
        )
    if _is_frame(values):
        return list(values.to_delayed())
    if values.ndim == 2 and values.numblocks[1] != 1:
        raise ValueError(
            f"{name} must be in chunks of rows with all columns, got {values.numblocks[1]} chunks "
            f"side by side; {name}.rechunk({{1: -1}}) puts them together"
        )
    return list(values.to_delayed().ravel())


def _check_same(given: dict[str, Any], pieces: dict[str, list[Any]]) -> None:
    """Raise an error for collections in different partitions, if known before they are read."""
    number = len(pieces["X"])
    for name in ("y", "sample_weight"):
        if given[name] is not None and len(pieces[name]) != number:
            raise ValueError(
                f"{name} must be in the same partitions as X, and has {len(pieces[name])} where X "
                f"has {number}; rechunk or repartition one of them"
            )
        for i, (ours, theirs) in enumerate(
            zip(_lengths(given[name]), _lengths(given["X"]), strict=False)
        ):
            if ours < theirs or ours > theirs:  # neither is true of nan, a length not known yet
                raise tasks.other_lengths(name, ours, i, theirs)


def _lengths(values: Any) -> tuple[float, ...]:
    """Number of rows in each partition, nan if unknown; empty for a data frame."""
    return () if values is None or _is_frame(values) else tuple(values.chunks[0])


def lazily(
    X: Any, function: Callable[..., FloatArray], n_outputs: int | None, n_columns: int
) -> Any:
    """Apply a function to all parts of X, lazily, as a collection of X's kind.

    ``n_outputs`` is None if it returns (m,) for rows (m, d).
    """
    if X.ndim != 2 or X.shape[1] != n_columns:
        given = X.shape[1] if X.ndim == 2 else "no"
        raise ValueError(f"X must have {n_columns} columns, as in the fit, got {given}")
    if _is_frame(X):
        pandas = part_of_dask("pandas")
        meta = (
            pandas.Series(dtype=np.float64)
            if n_outputs is None
            else pandas.DataFrame({k: np.empty(0) for k in range(n_outputs)})
        )
        return X.map_partitions(_framed, function, meta=meta)
    _pieces(X, "X")
    chunks = (X.chunks[0],) if n_outputs is None else (X.chunks[0], (n_outputs,))
    return X.map_blocks(
        _of_rows,
        function,
        n_outputs,
        dtype=np.float64,
        chunks=chunks,
        drop_axis=[1] if n_outputs is None else None,
        meta=np.empty((0,) if n_outputs is None else (0, 0)),
    )


def _of_rows(X: Any, function: Callable[..., FloatArray], n_outputs: int | None) -> FloatArray:
    """Apply a function to rows, which may be empty."""
    if len(X) == 0:
        return np.empty((0,) if n_outputs is None else (0, n_outputs))
    return function(X)


def _framed(frame: Any, function: Callable[..., FloatArray]) -> Any:
    """Apply a function to a data frame, and keep its index."""
    pandas = part_of_dask("pandas")
    found = function(frame) if len(frame) else np.empty(0)
    kind = pandas.Series if found.ndim == 1 else pandas.DataFrame
    return kind(found, index=frame.index)

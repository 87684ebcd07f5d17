"""Fitted pipelines in files, with what the command line must know of them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from fenchel.cli.errors import InputError, one_line, one_sentence
from fenchel.cli.fitting import Fit
from fenchel.cli.measures import LOSS_NAMES
from fenchel.cli.places import place_of
from fenchel.persistence import load, load_metadata, save
from fenchel.report import Training
from fenchel.tables import TableEncoder


@dataclass(frozen=True)
class Saved:
    """A model from a file, whoever wrote it; ``encoder`` is None unless fenchel fit did."""

    path: str
    pipeline: Any
    encoder: TableEncoder | None
    metadata: dict[str, Any]
    warnings: list[str]

    @property
    def model(self) -> Any:
        """The regressor at the end of the pipeline."""
        return self.pipeline[-1]

    @property
    def target(self) -> str | None:
        """The column that it learned, if it says so."""
        target = self.metadata.get("target")
        return target if isinstance(target, str) else None

    @contextlib.contextmanager
    def used_on(self, label: str) -> Iterator[None]:
        """Say of whatever the model raises on a table that it was this model and this table."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # a model from elsewhere may raise anything
            raise InputError(f"{self.path} fails on {label}: {one_sentence(error)}") from error


def check_skops() -> None:
    """Say that skops is missing before any work is done."""
    try:
        import skops.io  # noqa: F401, PLC0415  (an optional dependency)
    except ImportError as error:
        raise InputError("a model file needs skops: pip install 'fenchel[io]'") from error


def save_model(fit: Fit, target: str, path: Path, training: Training) -> None:
    """Write a pipeline, its target, and what reports must know of its rows."""
    metadata = {"target": target, "training": training.to_dict()}
    try:
        save(fit.pipeline, path, metadata=metadata)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def load_any(path: str) -> Saved:
    """Read a model that fenchel saved, from the command line or from Python."""
    check_skops()
    if place_of(path, "MODEL").is_dir():
        raise InputError(f"{path} is a folder, and a model file is needed")
    try:
        metadata = load_metadata(path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline = load(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}" if error.strerror else one_line(error)
        ) from error
    except (ValueError, MemoryError) as error:
        raise InputError(one_line(error)) from error
    messages = list(dict.fromkeys(one_line(w.message) for w in caught))
    return Saved(path, pipeline, _encoder(pipeline, metadata), metadata, messages)


def _encoder(pipeline: Any, metadata: dict[str, Any]) -> TableEncoder | None:
    """What knows the columns that a model reads, if all is as fenchel fit writes it."""
    if not isinstance(metadata.get("target"), str) or not isinstance(pipeline, Pipeline):
        return None
    encoder, kinds = pipeline[0], getattr(pipeline[0], "kinds_", None)
    known = (
        isinstance(encoder, TableEncoder)
        and type(pipeline[-1]).__name__ in LOSS_NAMES
        and isinstance(kinds, dict)
        and all(isinstance(each, str) for pair in kinds.items() for each in pair)
    )
    return encoder if known else None


def load_model(path: str) -> Saved:
    """Read what :func:`save_model` wrote."""
    found = load_any(path)
    if found.encoder is None:
        raise InputError(
            f"{path} was not written by fenchel fit and does not say which columns it reads: "
            "use fenchel.load in Python"
        )
    return found

"""Fitted pipelines in files, with what the command line must know of them."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fenchel.cli.data_io import Columns
from fenchel.cli.errors import InputError, one_line
from fenchel.cli.fitting import Fit
from fenchel.persistence import load, load_metadata, save
from fenchel.report import Training


@dataclass(frozen=True)
class Saved:
    """A model from a file, whoever wrote it; ``columns`` is None unless fenchel fit did."""

    pipeline: Any
    columns: Any
    metadata: dict[str, Any]
    warnings: list[str]

    @property
    def model(self) -> Any:
        """The regressor at the end of the pipeline."""
        return self.pipeline[-1]


def check_skops() -> None:
    """Say that skops is missing before any work is done."""
    try:
        import skops.io  # noqa: F401, PLC0415  (an optional dependency)
    except ImportError as error:
        raise InputError("a model file needs skops: pip install 'fenchel[io]'") from error


def save_model(fit: Fit, target: str, path: Path, training: Training) -> None:
    """Write a pipeline, its target, its columns, and what reports must know of its rows."""
    columns = asdict(fit.columns)
    metadata = {"target": target, "columns": columns, "training": training.to_dict()}
    try:
        save(fit.pipeline, path, metadata=metadata)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def load_any(path: str) -> Saved:
    """Read a model that fenchel saved, from the command line or from Python."""
    check_skops()
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder, and a model file is needed")
    try:
        metadata = load_metadata(path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline = load(path)
        known = "target" in metadata and "columns" in metadata
        columns = Columns(**metadata["columns"]) if known else None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(one_line(error)) from error
    messages = list(dict.fromkeys(one_line(w.message) for w in caught))
    return Saved(pipeline, columns, metadata, messages)


def load_model(path: str) -> Saved:
    """Read what :func:`save_model` wrote."""
    found = load_any(path)
    if found.columns is None:
        raise InputError(
            f"{path} was not written by fenchel fit and does not say which columns it reads: "
            "use fenchel.load in Python"
        )
    return found

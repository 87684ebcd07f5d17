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


@dataclass(frozen=True)
class Saved:
    """A model from a file."""

    pipeline: Any
    columns: Columns
    target: str
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


def save_model(fit: Fit, target: str, path: Path) -> None:
    """Write a pipeline, its target and its columns."""
    try:
        save(fit.pipeline, path, metadata={"target": target, "columns": asdict(fit.columns)})
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def load_model(path: str) -> Saved:
    """Read what :func:`save_model` wrote."""
    check_skops()
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder, and a model file is needed")
    try:
        metadata = load_metadata(path)
        if "target" not in metadata or "columns" not in metadata:
            raise InputError(
                f"{path} was not written by fenchel fit and does not say which columns it reads: "
                "use fenchel.load in Python"
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline = load(path)
        columns = Columns(**metadata["columns"])
    except (OSError, ValueError, TypeError) as error:
        raise InputError(one_line(error)) from error
    messages = list(dict.fromkeys(one_line(w.message) for w in caught))
    return Saved(pipeline, columns, metadata["target"], messages)


__all__ = ["Saved", "check_skops", "load_model", "save_model"]

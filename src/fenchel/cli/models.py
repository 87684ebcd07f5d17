"""Fitted pipelines in files, with what the command line must know of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from fenchel.cli.errors import InputError, one_line, one_sentence
from fenchel.cli.fitting import Fit
from fenchel.cli.measures import LOSS_NAMES
from fenchel.cli.roles import Roles
from fenchel.cli.warned import recorded
from fenchel.inspection import certified_model
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
    def has_density(self) -> bool:
        """Whether it is a density, which has no target."""
        return self.encoder is not None and hasattr(self.model, "score_samples")

    @property
    def targets(self) -> list[str]:
        """The columns that it learned, as far as it says so: several of a curve."""
        target = self.metadata.get("target")
        return [target] if isinstance(target, str) else self._names("target")

    @property
    def ids(self) -> list[str]:
        """Columns that go into its predictions as they are."""
        return self._names("ids")

    @property
    def dropped(self) -> list[str]:
        """Columns that were in the table of the fit, and were not to be read."""
        return self._names("dropped")

    @property
    def missing(self) -> tuple[str, ...]:
        """Words that stood for missing values in the table of the fit."""
        return tuple(self._names("missing"))

    def _names(self, key: str) -> list[str]:
        names = self.metadata.get(key)
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        return list(names) if known and names else []

    def targets_in(
        self, names: list[str], label: str, target: str | None, known: str | None
    ) -> list[str]:
        """The columns of a table that its predictions are held against.

        ``known`` is what a data set of ours names as its target.
        """
        if self.has_density:
            return []
        of_curve = len(self.targets) > 1 and target is None
        own = ",".join(self.targets) if of_curve else next(iter(self.targets), known)
        return Roles(target).targets(names, label, own, many=of_curve)

    @contextlib.contextmanager
    def used_on(self, label: str) -> Iterator[None]:
        """Say of whatever the model raises on a table that it was this model and this table."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # a model from elsewhere may raise anything
            said = one_sentence(error)
            start = "" if label in said.split(" ", 1)[0] else f"{self.path} fails on {label}: "
            raise InputError(f"{start}{said}") from error


def save_model(
    fit: Fit, roles: dict[str, list[str]], path: Path, training: Training | None
) -> None:
    """Write a pipeline, which column was what, and what reports must know of its rows."""
    targets = roles["target"]
    metadata: dict[str, Any] = {**roles, "target": targets[0] if len(targets) == 1 else targets}
    if training is not None:
        metadata["training"] = training.to_dict()
    try:
        save(fit.pipeline, path, metadata=metadata)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def load_any(path: str) -> Saved:
    """Read a model that fenchel saved, from the command line or from Python."""
    try:
        metadata = load_metadata(path)
        with recorded() as messages:
            pipeline = load(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}" if error.strerror else one_line(error)
        ) from error
    except (ValueError, MemoryError) as error:
        raise InputError(one_line(error)) from error
    return Saved(path, pipeline, _encoder(pipeline, metadata), metadata, messages)


def _encoder(pipeline: Any, metadata: dict[str, Any]) -> TableEncoder | None:
    """What knows the columns that a model reads, if all is as fenchel fit writes it."""
    if not isinstance(metadata.get("target"), (str, list)) or not isinstance(pipeline, Pipeline):
        return None
    encoder, kinds = pipeline[0], getattr(pipeline[0], "kinds_", None)
    known = (
        isinstance(encoder, TableEncoder)
        and type(certified_model(pipeline)).__name__ in LOSS_NAMES
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

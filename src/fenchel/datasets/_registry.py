"""Metadata of the data sets, read once from ``data/manifest.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

from fenchel.datasets._store import Resource, fetch


@dataclass(frozen=True)
class Entry:
    """A data set: a comma-separated file with a header line and the target in the last column."""

    name: str
    title: str
    file: str
    sha256: str
    bundled: bool
    package: str
    item: str
    n_samples: int
    n_features: int
    columns: dict[str, str]
    dropped: list[str]
    categories: dict[str, list[str]]
    references: list[str]
    note: str

    @property
    def feature_names(self) -> list[str]:
        """All columns but the last."""
        return list(self.columns)[:-1]

    @property
    def target_name(self) -> str:
        """The last column."""
        return list(self.columns)[-1]

    @property
    def source(self) -> str:
        """The R package that publishes the data, and their name there."""
        return f"R package {self.package}, {self.item}"

    @property
    def description(self) -> str:
        """Title, columns with their units, and sources, as reStructuredText."""
        heading = f"{self.name}: {self.title}"
        lines = [
            heading,
            "=" * len(heading),
            "",
            f"{self.n_samples} rows, {self.n_features} features; "
            f"the target is ``{self.target_name}``.",
            "",
        ]
        for column, meaning in self.columns.items():
            codes = self.categories.get(column)
            lines.append(f"- ``{column}``: {meaning}{_coded(codes) if codes else ''}")
        if self.note:
            lines += ["", self.note]
        dropped = f" without {' and '.join(self.dropped)}" if self.dropped else ""
        lines += ["", f"Source: {self.source}{dropped}.", ""]
        lines += [f"- {reference}" for reference in self.references]
        return "\n".join(lines) + "\n"

    def read(self) -> bytes:
        """Content of the file."""
        if self.bundled:
            return (_DATA / f"{self.name}.csv").read_bytes()
        return fetch(Resource(self.file, self.sha256))


def _coded(codes: list[str]) -> str:
    return f" (coded {', '.join(f'{code} = {label}' for code, label in enumerate(codes))})"


_DATA = resources.files("fenchel.datasets") / "data"


@cache
def registry() -> dict[str, Entry]:
    """All entries by name, in alphabetical order."""
    manifest = json.loads((_DATA / "manifest.json").read_text(encoding="utf-8"))
    return {name: Entry(name=name, **fields) for name, fields in manifest.items()}

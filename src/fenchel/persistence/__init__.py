"""Models in files, through skops: no pickle, and nothing unknown is loaded."""

from __future__ import annotations

from fenchel.persistence._models import load, load_metadata, save, trusted_types
from fenchel.persistence._writing import write_whole

__all__ = ["load", "load_metadata", "save", "trusted_types", "write_whole"]


def __dir__() -> list[str]:
    return sorted(__all__)

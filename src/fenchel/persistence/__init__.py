"""Saving and loading models with skops: no pickle, and only known types are loaded."""

from fenchel.persistence._models import load, load_metadata, save
from fenchel.persistence._writing import write_whole

__all__ = ["load", "load_metadata", "save", "write_whole"]

__dir__ = __all__.copy

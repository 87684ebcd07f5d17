"""Models in files, through skops: no pickle, and nothing unknown is loaded."""

from fenchel.persistence._models import load, load_metadata, save
from fenchel.persistence._writing import write_whole

__all__ = ["load", "load_metadata", "save", "write_whole"]

__dir__ = __all__.copy

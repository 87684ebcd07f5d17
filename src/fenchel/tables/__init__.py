"""Data frames as arrays of numbers: categories, dates, true and false, and missing values."""

from fenchel.tables.encoder import TableEncoder, table_encoder

__all__ = ["TableEncoder", "table_encoder"]

__dir__ = __all__.copy

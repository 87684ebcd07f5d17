"""Encoding of data frames: categories, dates, booleans and missing values to numbers."""

from fenchel.tables.encoder import TableEncoder, table_encoder

__all__ = ["TableEncoder", "table_encoder"]

__dir__ = __all__.copy

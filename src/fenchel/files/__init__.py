"""Tables in files, block by block: Parquet files and folders, Arrow tables, arrays of NumPy."""

from fenchel.files._arrow import parquet_in, with_index
from fenchel.files._columns import (
    Columns,
    is_table,
    n_rows_of,
    names_of,
    read_blocks,
    read_columns,
    read_known,
    sample_of,
)
from fenchel.files._frames import encoded, only, read_frames, sample_frame
from fenchel.files._numbered import is_numbered, numbered, row_number
from fenchel.files._tables import Passed, Told

__all__ = [
    "Columns",
    "Passed",
    "Told",
    "encoded",
    "is_numbered",
    "is_table",
    "n_rows_of",
    "names_of",
    "numbered",
    "only",
    "parquet_in",
    "read_blocks",
    "read_columns",
    "read_frames",
    "read_known",
    "row_number",
    "sample_frame",
    "sample_of",
    "with_index",
]

__dir__ = __all__.copy

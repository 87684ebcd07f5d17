"""Designs: representations of the rows for solvers."""

from fenchel.design.base import Design, Functions
from fenchel.design.centred import (
    CentredRows,
    are_many,
    column_copies,
    column_squares,
    fewer_rows,
    linear_values,
)
from fenchel.design.chain import Chain, Smoother
from fenchel.design.content import distinct_rows, row_keys
from fenchel.design.factored import Factored
from fenchel.design.gram import Gram
from fenchel.design.kernel_values import KernelValues
from fenchel.design.masked import Masked
from fenchel.design.operator import Operator
from fenchel.design.plain import Plain
from fenchel.design.rows import RowBlocks, multiply_rows, row_products, subtract_from
from fenchel.design.sparse_rows import SparseRows
from fenchel.design.streamed import Streamed

__all__ = [
    "CentredRows",
    "Chain",
    "Design",
    "Factored",
    "Functions",
    "Gram",
    "KernelValues",
    "Masked",
    "Operator",
    "Plain",
    "RowBlocks",
    "Smoother",
    "SparseRows",
    "Streamed",
    "are_many",
    "column_copies",
    "column_squares",
    "distinct_rows",
    "fewer_rows",
    "linear_values",
    "multiply_rows",
    "row_keys",
    "row_products",
    "subtract_from",
]

__dir__ = __all__.copy

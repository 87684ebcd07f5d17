"""Record of the training rows: their number, their constants and their hashes."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fenchel._groups import is_missing
from fenchel._typing import AnyArray, FloatArray
from fenchel.design.content import ODD, Keys, mixed
from fenchel.inspection import FeatureTable
from fenchel.report._scores import measures_of

_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?")


@dataclass(frozen=True)
class Training:
    """Record of the training rows for a report, without the rows themselves.

    Parameters
    ----------
    data : str
        Origin of the rows.
    constants : tuple of float
        The constants with the smallest loss on the rows, one for each score of the model.
    rows : ndarray of uint32 of shape (n_samples,)
        A hash of each row and its target; two different rows have the same hash with probability
        2⁻³².
    columns : tuple of str, optional
        Names of the columns of a data frame that the model reads. Rows are recognized by these
        columns alone, in whatever order; those of an array by all columns.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.report import Training
    >>> X, y = load_engel(return_X_y=True)
    >>> Training.of(KernelRidge(learn=False).fit(X, y), X, y, data="engel").n_rows
    235
    """

    data: str
    constants: tuple[float, ...]
    rows: npt.NDArray[np.uint32]
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, data: str = "") -> Self:
        """Make the record of the rows that an estimator was fitted to.

        Parameters
        ----------
        estimator : estimator
            Fitted to these rows.
        X : DataFrame or array-like of shape (n_samples, n_features)
            The rows, in the form that ``estimator.predict`` takes.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        data : str, default=""
            Origin of the rows.

        Returns
        -------
        Training
            The record.
        """
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        constants = (m.constant(targets) for m in measures_of(estimator, targets.shape[1]))
        table = FeatureTable.of(X)
        columns = tuple(_read(estimator, table.names)) if _has_names(table) else None
        found = hashes(_chosen(table, columns), targets)
        return cls(data, tuple(float(c) for c in constants), found, columns)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the record in a form that JSON can hold."""
        raw = self.rows.astype("<u4").tobytes()
        return {
            "data": self.data,
            "constants": list(self.constants),
            "rows": base64.b64encode(raw).decode("ascii"),
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Make a record from the result of :meth:`to_dict`.

        Raises
        ------
        ValueError
            If it is anything else.
        """
        try:
            raw = base64.b64decode(record["rows"], validate=True)
            rows = np.frombuffer(raw, dtype="<u4").astype(np.uint32)
            names = record.get("columns")  # which older records lack
            columns = None if names is None else tuple(map(str, names))
            constants = tuple(map(float, record["constants"]))
            return cls(str(record["data"]), constants, rows, columns)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("the record of the training rows is damaged") from error

    def recognizes(self, X: Any) -> bool:
        """Whether these rows have the columns by which rows of the fit are recognized."""
        table = FeatureTable.of(X)
        return not _has_names(table) or set(self.columns or ()).issubset(table.names)

    def seen(self, X: Any, y: FloatArray) -> AnyArray:
        """Which of these rows, including targets, were among the training rows."""
        return np.isin(self._hashes(X, y), self.rows)

    def same(self, X: Any, y: FloatArray) -> bool:
        """Whether these are the training rows, in their order."""
        return np.array_equal(self._hashes(X, y), self.rows)

    def _hashes(self, X: Any, y: FloatArray) -> npt.NDArray[np.uint32]:
        return hashes(_chosen(FeatureTable.of(X), self.columns), y)


def _has_names(table: FeatureTable) -> bool:
    return hasattr(table.X, "iloc")


def _read(estimator: Any, names: list[str]) -> list[str]:
    """The columns that a model reads, as far as an encoder at its start says so."""
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    kinds = getattr(estimator[0], "kinds_", names) if hasattr(estimator, "steps") else names
    return [name for name in names if name in kinds]


def _chosen(table: FeatureTable, columns: tuple[str, ...] | None) -> list[AnyArray]:
    """Columns by name, or all of a table without names."""
    if columns is None or not _has_names(table):
        return table.columns
    return [table.columns[table.names.index(name)] for name in columns]


def hashes(columns: list[AnyArray], y: FloatArray) -> npt.NDArray[np.uint32]:
    """A hash of each row and its targets; equal numbers have equal hashes whatever their type."""
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    total = np.zeros(len(y), dtype=np.uint64)
    for values in [*columns, *targets.T]:
        total = mixed(total + ODD + _bits(values))
    return (total >> np.uint64(32)).astype(np.uint32)


def _bits(values: AnyArray) -> Keys:
    """64 bits for each value: those of the number, or of the digest of the label."""
    if np.issubdtype(values.dtype, np.number):
        numbers = np.ascontiguousarray(values.astype(np.float64) + 0.0)
        numbers[np.isnan(numbers)] = np.nan  # that of 0 / 0 has other bits
        return numbers.view(np.uint64)
    if np.issubdtype(values.dtype, np.datetime64):
        values = np.where(np.isnat(values), "nan", values.astype(str))
    words = np.where([*map(is_missing, values)], "nan", values.astype(str))
    labels, codes = np.unique(words, return_inverse=True)
    encoded = (_shortest(str(label)).encode("utf-8", "surrogatepass") for label in labels)
    digests = [hashlib.blake2b(label, digest_size=8).digest() for label in encoded]
    return np.asarray(np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[codes])


def _shortest(word: str) -> str:
    """A date as the shortest text for it, whatever its unit; other words as they are."""
    date = _DATE.fullmatch(word)
    if date is None:
        return word
    day, minute, second, fraction = date.groups()
    time = f"{minute}:{second or '00'}" + f".{(fraction or '').rstrip('0')}".rstrip(".")
    return day if time == "00:00:00" else f"{day} {time}"

"""Record of the training rows: their number, their constants and their hashes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fenchel._typing import AnyArray, FloatArray
from fenchel.design.content import ODD, Keys, mixed
from fenchel.inspection import FeatureTable
from fenchel.report._scores import measures_of


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
        return cls(data, tuple(float(c) for c in constants), hashes(X, targets))

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
            return cls(str(record["data"]), tuple(map(float, record["constants"])), rows)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("the record of the training rows is damaged") from error

    def seen(self, X: Any, y: FloatArray) -> AnyArray:
        """Which of these rows, including targets, were among the training rows."""
        return np.isin(hashes(X, y), self.rows)

    def same(self, X: Any, y: FloatArray) -> bool:
        """Whether these are the training rows, in their order."""
        return np.array_equal(hashes(X, y), self.rows)


def hashes(X: Any, y: FloatArray) -> npt.NDArray[np.uint32]:
    """A hash of each row and its targets; equal numbers have equal hashes whatever their type."""
    columns = [*FeatureTable.of(X).columns, *np.asarray(y, dtype=np.float64).reshape(len(y), -1).T]
    total = np.zeros(len(y), dtype=np.uint64)
    for values in columns:
        total = mixed(total + ODD + _bits(values))
    return (total >> np.uint64(32)).astype(np.uint32)


def _bits(values: AnyArray) -> Keys:
    """64 bits for each value: those of the number, or of the digest of the label."""
    if np.issubdtype(values.dtype, np.number):
        return np.ascontiguousarray(values.astype(np.float64) + 0.0).view(np.uint64)
    if np.issubdtype(values.dtype, np.datetime64):
        values = _written(values)
    labels, codes = np.unique(values.astype(str), return_inverse=True)
    encoded = (str(label).encode("utf-8", "surrogatepass") for label in labels)
    digests = [hashlib.blake2b(label, digest_size=8).digest() for label in encoded]
    return np.asarray(np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[codes])


def _written(dates: AnyArray) -> AnyArray:
    """Dates as written in a CSV file, whatever their unit here."""
    known = ~np.isnat(dates)
    units = ("D", "s", "ms", "us", "ns")
    short = (dates.astype(f"datetime64[{unit}]") for unit in units)
    shortest = next(each for each in short if (each == dates)[known].all())
    words = np.char.replace(shortest.astype(str), "T", " ")
    return np.where(known, words, "nan")

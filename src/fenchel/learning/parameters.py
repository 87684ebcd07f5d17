"""The numbers that are learned, and the kernel parameters that they represent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fenchel._typing import FloatArray
from fenchel.kernels import is_shared, opened, settled
from fenchel.learning.groups import groups_of
from fenchel.learning.rows import Rows


@dataclass(frozen=True)
class OpenParameters:
    """Logarithms of factors of the open parameters of a kernel: zero at the start.

    With factors, the learned parameters are the same to the last bit if units change by powers of
    two.

    Parameters
    ----------
    kernel : kernel
        Kernel with numbers for all open parameters.
    values : dict
        These numbers, by the names of hyperparameters.
    member : ndarray of shape (n_dims,)
        Index of the learned number of each entry of ``kernel.theta``.
    bounds : ndarray of shape (m, 2)
    scales : ndarray of shape (m,)
        Which of the learned numbers are length scales.
    """

    kernel: Any
    values: dict[str, FloatArray]
    member: npt.NDArray[np.intp]
    bounds: FloatArray
    scales: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, kernel: Any, rows: Rows, share_scales: bool) -> Self:
        """Open parameters of a kernel, with starting values computed from rows."""
        given, kernel = kernel, opened(kernel, rows.X, rows.weight)
        values = {}
        member: list[npt.NDArray[np.intp]] = []
        bounds: list[FloatArray] = []
        scales: list[bool] = []
        for h in (h for h in kernel.hyperparameters if not h.fixed):
            is_scale = h.name.endswith("length_scale")
            part, name = _owner(kernel, h.name)
            value = np.asarray(getattr(part, name), dtype=np.float64)
            own = np.arange(h.n_elements)
            idle = np.zeros(h.n_elements, dtype=bool)  # scales of constant columns say nothing
            asked = getattr(*_owner(given, h.name))
            shared = is_shared(asked)
            seen = _seen(kernel, h.name, rows.X) if is_scale else rows.X
            if shared:
                own = np.zeros_like(own)
                idle = np.full_like(idle, not np.ptp(seen, axis=0).any())
            elif is_scale and h.n_elements == seen.shape[1]:
                own = groups_of(seen) if share_scales else own
                idle = (np.bincount(own, np.ptp(seen, axis=0)) == 0.0)[own]
            first = np.unique(own, return_index=True)[1]
            ends = np.log(np.broadcast_to(h.bounds, (h.n_elements, 2)) / value.reshape(-1, 1))
            bounds.append(np.where(idle[:, None], 0.0, ends)[first])
            if len(first) < len(own) and not shared:  # of many columns: the spread of all of them
                value = np.sqrt(np.bincount(own, value**2))[own]
            values[h.name] = value
            member.append(own + len(scales))
            scales += [is_scale] * len(first)
        which = np.concatenate(member) if member else np.zeros(0, dtype=np.intp)
        ranges = np.concatenate(bounds) if bounds else np.zeros((0, 2))
        return cls(kernel, values, which, ranges, np.array(scales, dtype=bool))

    def of_few_columns(self, X: FloatArray) -> tuple[Self, FloatArray] | None:
        """Parameters and rows for the same distances in as many columns as there are rows.

        None where there are no fewer columns by that, or distances have more than one factor.
        """
        scale = self.values.get("length_scale")
        kernel = self.kernel
        if len(self.values) != 1 or scale is None or not hasattr(kernel, "reduced"):
            return None
        if not len(X) < X.shape[1] == scale.size == np.count_nonzero(self.member == 0):
            return None
        scaled, unit = kernel.reduced(X)
        unit.length_scale_bounds = np.exp(self.bounds[0])
        turned = np.asarray(np.linalg.qr((scaled - scaled.mean(axis=0)).T, mode="r"))
        known = {"length_scale": np.array(1.0)}
        one = replace(self, kernel=unit, values=known, member=self.member[:1])
        return one, np.ascontiguousarray(turned.T)

    def with_numbers(self, numbers: FloatArray) -> Any:
        """The kernel with these numbers as its parameters."""
        kernel, factors, at = clone(self.kernel), np.exp(numbers[self.member]), 0
        for name, value in self.values.items():
            own = factors[at : at + value.size]
            at += value.size
            _set(kernel, name, value * own if value.ndim else float(value * own[0]))
        return kernel

    def settled(self, numbers: FloatArray) -> Any:
        """The same with all parameters fixed."""
        return settled(self.with_numbers(numbers))

    def gathered(self, slopes: FloatArray) -> FloatArray:
        """Derivatives with respect to the learned numbers, from those to kernel parameters."""
        return np.asarray(np.bincount(self.member, slopes, minlength=len(self.scales)), float)


def _owner(kernel: Any, name: str) -> tuple[Any, str]:
    """The part of a kernel that has a hyperparameter, and the name of it there."""
    *path, last = name.split("__")
    for part in path:
        kernel = getattr(kernel, part)
    return kernel, last


def _seen(kernel: Any, name: str, X: FloatArray) -> FloatArray:
    """Rows as the part with a hyperparameter has them: some of the columns, or ranks as well."""
    for part in name.split("__"):
        X = kernel.seen(X) if hasattr(kernel, "seen") else X
        kernel = getattr(kernel, part)
    return X


def _set(kernel: Any, name: str, value: Any) -> None:
    part, own = _owner(kernel, name)
    part.set_params(**{own: value})

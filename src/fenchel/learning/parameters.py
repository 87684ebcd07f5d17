"""The numbers that are learned, and the parameters of a kernel that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel.kernels import opened, settled
from fenchel.learning.groups import groups_of
from fenchel.learning.rows import Rows


@dataclass(frozen=True)
class OpenParameters:
    """Logarithms of the open parameters of a kernel, one for all columns of a category.

    Parameters
    ----------
    kernel : kernel
        With numbers for all that is open.
    member : ndarray of shape (n_dims,)
        Which of the learned numbers each entry of ``kernel.theta`` is.
    start : ndarray of shape (m,)
        The learned numbers at first.
    bounds : ndarray of shape (m, 2)
    scales : ndarray of shape (m,)
        Which of them are length scales.
    """

    kernel: Any
    member: npt.NDArray[np.intp]
    start: FloatArray
    bounds: FloatArray
    scales: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, kernel: Any, rows: Rows, share_scales: bool) -> Self:
        """Those of a kernel, with starts read off rows."""
        kernel = opened(kernel, rows.X, rows.weight)
        groups = groups_of(rows.X) if share_scales else np.arange(rows.X.shape[1])
        member: list[npt.NDArray[np.intp]] = []
        scales: list[bool] = []
        idle: list[int] = []  # scales of constant columns, which say nothing
        for h in (h for h in kernel.hyperparameters if not h.fixed):
            is_scale = h.name.endswith("length_scale")
            own = np.arange(h.n_elements)
            if is_scale and h.n_elements >= len(groups):  # what follows are ranks
                own = np.append(groups, groups[-1] + 1 + np.arange(h.n_elements - len(groups)))
                constant = np.bincount(groups, np.ptp(rows.X, axis=0)) == 0.0
                idle += (len(scales) + np.flatnonzero(constant)).tolist()
            member.append(own + len(scales))
            scales += [is_scale] * (int(own.max()) + 1)
        which = np.concatenate(member) if member else np.zeros(0, dtype=np.intp)
        theta, bounds = kernel.theta, kernel.bounds.reshape(-1, 2)
        size = len(scales)
        # a category of many columns starts with the spread of all of them
        start = np.full(size, -np.inf)
        np.logaddexp.at(start, which, 2.0 * theta)
        start *= 0.5
        ends = np.empty((size, 2))
        ends[which] = bounds
        shift = start - np.bincount(which, theta, size) / np.bincount(which, minlength=size)
        ends += shift[:, None]
        ends[idle] = start[idle, None]
        return cls(kernel, which, start, ends, np.array(scales, dtype=bool))

    def with_numbers(self, numbers: FloatArray) -> Any:
        """The kernel with these in the place of its parameters."""
        return self.kernel.clone_with_theta(numbers[self.member])

    def settled(self, numbers: FloatArray) -> Any:
        """The same with all parameters fixed."""
        return settled(self.with_numbers(numbers))

    def gathered(self, slopes: FloatArray) -> FloatArray:
        """Derivatives in the learned numbers from those in the parameters of the kernel."""
        return np.asarray(np.bincount(self.member, slopes, minlength=len(self.start)), float)

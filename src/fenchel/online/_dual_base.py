"""What the dual learners share: points that grow in number, learned block by block."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from fenchel._threads import threads_that_pay
from fenchel._typing import FloatArray, IntArray
from fenchel._validation import COUNT, NONE, OneOf, declared
from fenchel.kernels import Precomputed, as_kernel, has_measured_scale, resolve
from fenchel.online._base import OnlineRegressor
from fenchel.online._coordinates import Coordinates
from fenchel.online._dual_steps import dual_steps
from fenchel.online._pace import AVERAGED, LARGEST_CURVATURE, ROWS
from fenchel.online._points import Points

REMOVALS = ("smallest", "oldest")
_BLOCK_VALUES = 2**19  # kernel values at a time: 4 MiB
_BLOCK_ROWS = 256
_NO_BUDGET = np.iinfo(np.int64).max


class DualLearner(OnlineRegressor):
    """Base class: subclasses say what bounds and what bends the dual objective."""

    constraints = declared(kernel=as_kernel, budget=NONE | COUNT, removal=OneOf(REMOVALS))

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: Any = None,
        step: float | None = None,
        schedule: str = "constant",
        delay: float = 1.0,
        average: bool | int = False,
        budget: int | None = None,
        removal: str = "smallest",
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.step = step
        self.schedule = schedule
        self.delay = delay
        self.average = average
        self.budget = budget
        self.removal = removal
        self.fit_intercept = fit_intercept
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _shape(self) -> FloatArray:
        """ε, the upper bound, and what the loss adds to the diagonal of the kernel."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.budget is not None and self.average:
            raise ValueError(
                f"average must be False with a budget, got average={self.average!r} and "
                f"budget={self.budget!r}: the average needs every row that was seen"
            )

    def _begin(self, X: FloatArray, weight: FloatArray) -> None:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            raise ValueError("kernel must be computed from rows, got 'precomputed'")
        seen = np.flatnonzero(weight)
        if len(seen) < 2 and has_measured_scale(kernel):
            raise ValueError(
                f"kernel must have a number as length_scale, got {kernel!r}: its scale is read "
                f"off the first rows, two at least, and these are n_samples = {len(seen)}"
            )
        self.kernel_ = resolve(kernel, X[seen], weight[seen], self.random_state)
        self._rows = np.zeros((0, X.shape[1]))
        self._dual = np.zeros((0, 3))
        self._track = np.zeros(4)

    def _learn(
        self, X: FloatArray, y: FloatArray, weight: FloatArray, orders: Iterable[IntArray]
    ) -> None:
        coordinates = Coordinates(self.kernel_, self._rows, self._dual, len(X))
        track = self._track.copy()
        shape = np.append(self._shape(), float(bool(self.fit_intercept)))
        budget = _NO_BUDGET if self.budget is None else int(self.budget)
        limits = shape, (budget, self.removal == "oldest")
        started = time.perf_counter()
        with threads_that_pay(_BLOCK_ROWS):
            for epoch, order in enumerate(orders, 1):
                done = 0
                while done < len(order):
                    size = max(_BLOCK_VALUES // (coordinates.count + _BLOCK_ROWS), 1)
                    block = order[done : done + min(size, _BLOCK_ROWS)]
                    done += len(block)
                    rows = X[block]
                    kernel = coordinates.enter(rows, block)
                    diagonal = np.ascontiguousarray(self.kernel_.diag(rows), dtype=np.float64)
                    data, points = (diagonal, y[block], weight[block]), coordinates.state
                    k = dual_steps(kernel, data, points, track, self._pace(), *limits)
                    if k >= 0 or not np.all(np.isfinite(coordinates.dual)):
                        top = float(track[LARGEST_CURVATURE])
                        raise self._too_long(self._curvature_name(), top, int(block[k]))
                    coordinates.settle()
                if self.verbose:
                    seconds = time.perf_counter() - started
                    line = f"epoch {epoch}: {coordinates.count} points after {seconds:.2f} s"
                    print(f"[{type(self).__name__}] {line}")  # noqa: T201  (asked for)
        self._rows, self._track = coordinates.points.rows, track
        self._dual = coordinates.dual.copy()
        self._show()

    def _show(self) -> None:
        """Set the public attributes."""
        n_averaged = self._track[AVERAGED]
        mean = self.average and n_averaged > 0.0
        self.t_ = int(self._track[ROWS])
        up, down, total = self._dual.T
        self.support_vectors_ = self._rows[: len(self._dual)]
        self.dual_coef_ = total / n_averaged if mean else up - down
        self.intercept_ = float(self.dual_coef_.sum()) if self.fit_intercept else 0.0

    def _curvature_name(self) -> str:
        return "k(x, x) + 1" if self.fit_intercept else "k(x, x)"

    def _predicted(self, X: FloatArray) -> FloatArray:
        points = Points(self.kernel_, self.support_vectors_, len(self.support_vectors_))
        prediction = np.full(len(X), self.intercept_)
        size = max(_BLOCK_VALUES // (points.count + 1), 1)
        with threads_that_pay(min(size, points.count)):
            for start in range(0, len(X) if points.count else 0, size):
                rows = X[start : start + size]
                values = points.values(rows)
                prediction[start : start + size] += values @ self.dual_coef_
        return prediction

    def __copy__(self) -> Self:
        """A copy that does not share the buffer, in which both would go on."""
        return copy.deepcopy(self)

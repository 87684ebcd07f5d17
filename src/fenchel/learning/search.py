"""Learning of open parameters from held-out rows: the descent for each kernel, and the best."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fenchel._clock import OutOfTime, within
from fenchel._typing import FloatArray
from fenchel.certificate import Callback
from fenchel.learning.criterion import HeldOut
from fenchel.learning.descent import Descent
from fenchel.learning.early_end import HALF, EarlyEnd
from fenchel.learning.fold import MANY_STRENGTHS, is_diagonal
from fenchel.learning.learning import DEFAULT_STRENGTH, MANY_ROWS, Data, Learned, Learning
from fenchel.learning.parameters import OpenParameters
from fenchel.learning.prior import Prior
from fenchel.learning.reach import is_bounded, is_perfect
from fenchel.learning.rows import Rows
from fenchel.learning.short_scales import points_of_changing, shorter_points
from fenchel.learning.units import (
    middle_of,
    size_of_functions,
    sizes_of_summands,
    unit_of_strength,
)
from fenchel.losses import Absolute

_LEAST, _MOST = 1e-7, 1e1
_APART = 10.0  # times: a summand that much smaller than the sum has an alpha of its own to start
_FEW_ROWS, _FEW_FOLDS = 350, 2  # of the first descent
_MANY_FOLDS = 150  # rows below which each of them counts, in the first descent too
_SMOOTHING = 8.0  # kinks as wide as an eighth of the spread first, then of what is left of it
_SHARPEST = 40.0
_SMOOTH_ALREADY = 1e6
_LEAST_ROWS = 3
_EACH_LEFT_OUT = 12  # rows below which folds have one row each, and a gain may be noise
_COUNTED, _SHARE, _LAST_FOLDS = 10_000, 0.4, 2  # rows whose share is in the last descent
_LAST_STEP, _LAST_OUTPUTS = 0.3, 3
_WORTH_IT = 1.5  # times the rows of the descent before, or another one is not
_UNKNOWNS = 1500  # of smooth losses of coupled outputs, where each row counts with all of them
_SYSTEMS = 3  # of 1000 rows, for coupled outputs of the squared loss; of more, fewer rows
_RESOLUTION = 512.0  # steps in log θ: far above rounding, far below what matters
_WIDER = 1.07  # log of the prior's middle over the start: dimension-scaled, Hvarfner et al. (2024)
_LITTLE = 0.9  # of the loss of a constant
_STRENGTHS = _MOST, 1.0, 0.1, 1e-2, DEFAULT_STRENGTH  # from nearly a constant to the start
_GAIN = 0.5  # over the root of the number of rows: the share by which more parameters must gain
GROWTH = 0.6
"""Alpha falls with the number of rows to this power, see docs/guide/learning.md."""
_LAST_GROWTH = 1.0  # and after a last descent to this one


def learn(
    data: Data,
    kernels: Sequence[Any],
    alpha: float | None,
    options: Learning,
    watch: Callback | None = None,
    n_before: int = 0,
) -> Learned | None:
    """Learn the open parameters of the best of several kernels, and alpha if it is None.

    ``watch`` counts evaluations from ``n_before`` on.

    Returns None if there is nothing to learn from: a constant without loss, fewer than three
    distinct rows or fewer than folds, a criterion that is not finite in the units of the rows, or
    sparse rows of more than 167 772 columns.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.kernels import Gaussian
    >>> from fenchel.learning import Data, Learning, learn
    >>> from fenchel.losses import Squared
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> data = Data(X, np.sin(6.0 * X), np.ones(30), Squared(), np.eye(1), fit_intercept=True)
    >>> learned = learn(data, [Gaussian("learned")], None, Learning(max_evaluations=3))
    >>> learned.criterion < 0.01
    True
    """
    if data.too_wide:
        return None
    n_rows, n_outputs = options.most_rows, len(data.coupling)
    tasks = data.tasks(data.targets)
    if len(tasks) < n_outputs and np.isfinite(data.loss.smoothness):
        n_rows = min(n_rows, max(_UNKNOWNS // n_outputs, 1))
    if len(tasks) == n_outputs and not is_diagonal(data.coupling):
        n_systems = len({float(task.coupling[0, 0]) for task in tasks})
        share = _SYSTEMS / min(n_systems, MANY_STRENGTHS)
        n_rows = round(n_rows * min(1.0, share) ** (1.0 / 3.0))
    rows = data.rows(n_rows)
    n_folds = rows.at_most(options.n_folds or _folds_for(len(rows.X)))
    rows = rows.first(n_rows, n_folds)
    perfect = is_perfect(data.loss, rows.targets, rows.weight)
    if perfect or rows.n_folds < n_folds or len(rows.X) < _LEAST_ROWS:
        return None
    unseen, rest = None, rows
    if data.unseen and len(kernels) > 1:
        unseen, rest = rows.apart()
        rest = rest.first(len(rest.X), rest.at_most(n_folds))
    few = rest
    if len(few.X) >= _MANY_FOLDS:
        most = len(few.X) if len(few.X) < _WORTH_IT * _FEW_ROWS else _FEW_ROWS
        fewer = few.first(most, _FEW_FOLDS)
        few = fewer if fewer.n_folds == _FEW_FOLDS else few
    end = EarlyEnd(watch, n_calls=n_before)
    tried = [_Try(data, rows, few, kernel, alpha, options, end) for kernel in kernels]
    for one in tried:
        if not end.reached:
            one.first()
        if unseen is not None and len(few.X) < len(rest.X) and not end.reached:
            one.second(rest)  # many length scales gain more by more rows than one does
    best = _chosen(tried, len(few.X), None if end.reached else unseen)
    if not np.isfinite(best.worth):
        return None
    if not end.reached:
        best.second(rows)
    if not end.reached:
        best.unless_noise()
    more = options.n_rows is None and n_rows == MANY_ROWS and n_outputs <= _LAST_OUTPUTS
    if more and not end.reached:
        best.last()
    return replace(best.learned(end.reason), choice=tried.index(best), ended_early=end.reached)


def _chosen(tried: list[_Try], n_rows: int, unseen: Rows | None) -> _Try:
    """The best kernel, or the first if the gain is within the noise for this number of rows.

    On ``unseen`` rows, if any: many length scales follow those that they are of.
    """
    first = tried[0]
    if unseen is None:
        best, losses = min(tried, key=lambda one: one.worth), [one.held_out for one in tried]
    else:
        losses, n_rows = [one.on_unseen(unseen) for one in tried], unseen.starts[1]
        best = tried[int(np.argmin(losses))]
    needed = 1.0 - _GAIN / np.sqrt(n_rows)
    return best if losses[tried.index(best)] < needed * losses[0] else first


def _folds_for(n_rows: int) -> int:
    """Default number of folds: more for few rows, where each counts and fits are fast."""
    if n_rows < _EACH_LEFT_OUT:
        return n_rows
    return 10 if n_rows < _MANY_FOLDS else 5 if n_rows < 500 else 3


class _Try:
    """The descent for one kernel."""

    def __init__(
        self,
        data: Data,
        rows: Rows,
        few: Rows,
        kernel: Any,
        alpha: float | None,
        options: Learning,
        watch: EarlyEnd,
    ) -> None:
        self.data, self.rows, self.few, self.options = data, rows, few, options
        self.watch = watch
        self.open = OpenParameters.of(kernel, rows, options.share_scales)
        self.alpha, self.growth = alpha, GROWTH
        self.middle = middle_of(self.open.kernel, few.X, data.fit_intercept)
        self.judge: HeldOut | None = None
        self.used = few  # rows that the best point is of, which alpha is scaled from
        smaller: list[float] = []
        if alpha is not None:
            self.unit, alpha_start, ends = alpha, 0.0, np.zeros(2)
        else:
            size = size_of_functions(self.open.kernel, rows.X, few.X, data.fit_intercept)
            self.unit = unit_of_strength(data.loss, rows.targets, rows.weight) * size
            alpha_start, ends = np.log(DEFAULT_STRENGTH), np.log([_LEAST, _MOST])
            parts = sizes_of_summands(self.open.kernel, rows.X, few.X, data.fit_intercept)
            smaller = [np.log(part / size) for part in parts if _APART * part < size]
            ends[0] += min(smaller, default=0.0)
        start = np.append(np.zeros(len(self.open.scales)), alpha_start)
        bounds = np.vstack([self.open.bounds, ends])
        free = bounds[:, 0] < bounds[:, 1]
        scales = np.append(self.open.scales, False) & free
        self.centre, self.scales = start + _WIDER, scales
        self.descent = Descent(start, bounds, self._prior(), watch)
        self.starts = [start] + [np.append(start[:-1], alpha_start + log) for log in smaller]

    @property
    def worth(self) -> float:
        """Penalized criterion of the best point."""
        return np.inf if self.descent.best is None else self.descent.best[0]

    @property
    def held_out(self) -> float:
        """Criterion of the best point."""
        return np.inf if self.descent.best is None else self.descent.best[1]

    def _prior(self) -> Prior:
        bounded = is_bounded(self.data.loss, self.rows.targets.shape[1])
        strength, n_rows = self.options.prior, len(self.rows.X)
        return Prior.of(self.centre, self.scales, strength, n_rows, bounded)

    def first(self) -> None:
        """Descend on few rows, starting from smooth functions.

        If next to nothing is explained, descend from shorter length scales too, as functions that
        change fast look like noise from the smooth side. If they change too fast for few rows,
        look on all rows, along columns where neighbouring targets are alike.
        """
        criterion, tol = self._criterion(self.few, 1.0), 3.0 * self.options.tol
        if len(self.starts) > 1:
            self.descent.best = np.inf, np.inf, self.descent.start
            self.descent.look(criterion, np.array(self.starts), 0.0)
        if self.watch.reached:
            return
        if not self.descent.run(criterion, 12, tol) or not _LITTLE < self.held_out < np.inf:
            return
        place = self.descent.start, self.descent.bounds, np.flatnonzero(self.scales)
        share = _GAIN / np.sqrt(len(self.few.X))
        if self.descent.look(criterion, shorter_points(*place), share):
            self.descent.run(criterion, 12, tol)
        elif len(self.rows.X) > len(self.few.X) and not self.watch.reached:
            before = self.descent.best
            points = points_of_changing(*place, self.rows.X, self.rows.targets)
            if len(points):
                self.descent.look(self._criterion(self.rows, 1.0), points, share)
                self.used = self.few if self.descent.best is before else self.rows

    def _criterion(self, rows: Rows, left: float) -> HeldOut:
        tasks, smoothing = self.data.tasks(rows.targets), self._smoothing(left)
        if self.middle is not None:
            rows = replace(rows, X=rows.X - self.middle)
        parameters, before = self.open, self.judge
        turned = parameters.of_few_columns(rows.X)
        if turned is not None:
            parameters, rows = turned[0], replace(rows, X=turned[1])
        if before is not None and (turned is not None or before.parameters is not self.open):
            before = None  # its rows have other columns
        self.judge = HeldOut(rows, tasks, parameters, self.unit, smoothing, before)
        return self.judge

    def on_unseen(self, rows: Rows) -> float:
        """Loss of the best point on the fold of rows that was held out from it."""
        if self.descent.best is None:
            return np.inf
        criterion, theta = self._criterion(rows, self.held_out), self.descent.best[2].copy()
        if self.alpha is None:
            rest = float(rows.weight[rows.starts[1] :].sum())
            theta[-1] += GROWTH * np.log(self._fitted / rest)
        return float(criterion(theta)[0])

    def _smoothing(self, left: float) -> float:
        """Width of smoothed kinks, a share of the loss that is left; none for smooth losses."""
        if np.isfinite(self.data.loss.smoothness):
            return _SMOOTH_ALREADY
        return min(_SMOOTHING / max(left, 1e-3), _SHARPEST)

    def second(self, rows: Rows) -> None:
        """Descend on more rows, or all, with kinks as sharp as the remaining loss."""
        self._go_on(rows, self.options.tol)

    def unless_noise(self) -> None:
        """Take the start with another alpha, unless the best point gains more than chance does.

        With many length scales some of them fit the noise of all folds; one number hardly can.
        """
        if self.alpha is not None or not self.judge:
            return
        n, held_out, least = len(self.rows.X), self.held_out, np.inf
        some = _STRENGTHS if held_out > _LITTLE and not self.data.compared else ()
        for strength in _STRENGTHS[:1] if n < _EACH_LEFT_OUT else some:
            theta = np.append(self.descent.start[:-1], np.log(strength))
            value = self.judge(theta)[0]
            self.descent.history.append(value)
            self.watch(value)
            if value < least and (1.0 - _GAIN / np.sqrt(n)) * value <= held_out:
                least, self.used = value, self.rows
                self.descent.best = value, value, theta
            if self.watch.reached:
                return

    def last(self) -> None:
        """Descend on more rows, starting from a correspondingly smaller alpha."""
        data, few = self.data, self._fitted
        rows = data.rows(_COUNTED)
        n_folds, n_rows = self.options.n_folds or _LAST_FOLDS, int(_SHARE * len(rows.X))
        rows = rows.first(n_rows, n_folds)
        if n_rows < _WORTH_IT * len(self.rows.X) or rows.n_folds < n_folds:
            return
        self.rows = self.used = rows
        self.growth, descent = _LAST_GROWTH, self.descent
        assert descent.best is not None
        whole, criterion, theta = descent.best
        low, high = descent.bounds[-1]
        theta = np.append(theta[:-1], theta[-1] + GROWTH * np.log(few / self._fitted))
        theta[-1] = min(max(theta[-1], low), high)
        descent.best = whole, criterion, theta
        descent.penalty = self._prior()
        self._go_on(rows, self.options.tol / 3.0, _LAST_STEP)

    def _go_on(self, rows: Rows, tol: float, first_step: float = 0.0) -> None:
        before = self.descent.best
        if before is None:
            return
        criterion = self._criterion(rows, before[1])
        try:
            with within(self.watch.seconds_left()):
                self.descent.run(criterion, self.options.max_evaluations, tol, first_step)
        except OutOfTime:
            self.watch.reason = self.watch.reason or HALF
        if self.descent.best is None:
            self.descent.best = before
        else:
            self.used = rows

    @property
    def _fitted(self) -> float:
        """Weight of the rows outside of a fold."""
        return float(self.used.weight.sum()) * (1.0 - 1.0 / self.used.n_folds)

    def learned(self, stopped: str) -> Learned:
        """Return the kernel and alpha of the best point; ``stopped`` says why it ended early."""
        descent = self.descent
        assert descent.best is not None
        _, criterion, theta = descent.best
        steps = np.rint(_RESOLUTION * (theta - descent.start)) / _RESOLUTION
        theta = descent.start + steps
        kernel = self.open.settled(theta[:-1])
        alpha = self.alpha
        if alpha is None:
            share = self._fitted / float(self.data.weight.sum())
            alpha = self.unit * float(np.exp(theta[-1])) * share**self.growth
        history, n_rows = descent.history, len(self.used.X)
        message = f"the best of {len(history)} evaluations"
        if stopped:
            message = f"stopped after {len(history)} evaluations: {stopped}"
        elif not steps.any():
            message = f"the start was the best of {len(history)} evaluations"
        learned = Learned(kernel, alpha, criterion, history, n_rows, message)
        residual = self._residual(theta) if self.data.measured and not stopped else None
        return replace(learned, constant=self.data.constant, residual=residual)

    def _residual(self, theta: FloatArray) -> float | None:
        """Median of the absolute held-out residuals times 1.4826."""
        assert self.judge is not None
        with suppress(OutOfTime, np.linalg.LinAlgError), within(self.watch.seconds_left()):
            size = np.sqrt((self.judge.residuals(theta) ** 2).mean(axis=1, keepdims=True))
            middle = Absolute().minimizing_offset(size, self.judge.rows.weight)
            return 1.4826 * float(middle[0])
        return None

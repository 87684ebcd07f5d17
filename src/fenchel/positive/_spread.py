"""Learning of kernels and strengths for mean and variance by held-out likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel

from fenchel._clock import OutOfTime, within
from fenchel._typing import FloatArray
from fenchel.certificate import Callback
from fenchel.features import PivotedCholesky
from fenchel.learning import GROWTH, Data, EarlyEnd, Learned, Learning, learn
from fenchel.learning.early_end import HALF
from fenchel.learning.fold import Fold
from fenchel.learning.rows import Rows
from fenchel.positive._row_sums import quadratic_forms
from fenchel.positive._solution import Start
from fenchel.positive.normal_likelihood import NormalRows, NormalStrengths
from fenchel.positive.problem import Squares
from fenchel.positive.solvers import solve
from fenchel.solvers.leave_one_out import LeaveOneOutPath

PRECISION_RANK = 30
"""Features of a precision whose kernel is learned. Of ten columns the likelihood is the same with
300, with which a fit of 1000 rows takes 8 s in place of 0.7."""
_MEAN_RANK = 100  # of fits that are compared
_FEATURE_TOL = 1e-8
_LEAST_ROWS, _FEW_ROWS, _FEW_FOLDS, _FOLDS = 12, 150, 5, 3
_TOL, _MOST_STEPS = 1e-2, 100  # nats a row, below the standard error of a difference
_STEP = 10.0  # from one strength to the next
_UP, _DOWN = 1, 4  # steps to stronger and to weaker ones
# Rows times the strength of A where precisions are about 1. With 1, 3 and 10, 18 tables and
# generators of at most 250 rows gain 0.71, 0.73 and 0.74 nats over one normal distribution, and
# the largest error of a standard deviation on 2000 rows is 12, 16 and 24 %.
_OF_PRECISION = 3.0
_LEAST_LEFT = 1e-4  # of the variance of y, of rows without noise
_LEAST_TOLD = 0.98  # held-out loss of deviations over the constant's, for a kernel of theirs
_ROUNDS = 2  # of the search along one strength and then the other
_WORTH = 1e-3  # nats a row by which a step is one
_CONSTANT = 0.5 * float(np.log(2.0 * np.pi))
_LEAST_DEVIATION = 0.5  # of the mean one: weights of rows differ by less than some dozen times


_OF_ITS_OWN, _SHARED, _SAME = range(3)  # kernels of the precision; the last one is a constant


class Mean(NamedTuple):
    """What is learned of the mean alone."""

    learned: Learned
    kernels: Sequence[Any]
    """The open kernels that it was learned from; none where the kernel is given."""

    @property
    def left(self) -> float:
        """The share of the variance of y that it leaves on held-out rows."""
        return float(np.clip(self.learned.criterion, _LEAST_LEFT, 1.0))

    def pair(self, own: Any) -> Pair:
        """With that kernel of the precision, or its own; strengths for all rows."""
        kernel, left = self.learned.kernel, self.left
        own_alpha = _OF_PRECISION / self.learned.n_rows * left**2
        return Pair(self, kernel, left * self.learned.alpha, own or kernel, own_alpha)


class Pair(NamedTuple):
    """The kernels of mean and precision, and strengths where the search starts."""

    mean: Mean
    kernel: Any
    alpha: float
    """Of w, where the precision is the same everywhere; for all rows."""
    own: Any
    own_alpha: float
    """Of A."""
    simplicity: int = _SHARED


class Setting(NamedTuple):
    """A pair, and how many steps its strengths are below those at which the search starts."""

    pair: int
    mean: int = 0
    precision: int = 0


class Spread(NamedTuple):
    """What was chosen."""

    pair: Pair
    strengths: NormalStrengths
    criterion: float | None
    """Minus the mean log-likelihood of held-out rows; None where none was held out."""
    history: list[float]
    """Of all that was tried, in its order."""
    reason: str
    """Why it ended early, if it did."""


@dataclass(frozen=True)
class Known:
    """What the search takes as it is."""

    precision_strength: float | None
    """The multiple of alpha that it always is, if it is given."""
    trace_penalty: float
    floor: float
    rank: int | None
    precision_rank: int | None
    """Caps on features, where they are given."""

    def strengths(self, pair: Pair, setting: Setting, share: float = 1.0) -> NormalStrengths:
        """Those of a setting, for rows whose alpha is that of all over ``share``."""
        alpha = pair.alpha / share * _STEP**-setting.mean
        own = pair.own_alpha * _STEP**-setting.precision
        if self.precision_strength is not None:
            own = alpha * self.precision_strength
        return NormalStrengths(alpha, own, self.trace_penalty, self.floor)


@dataclass
class SpreadSearch:
    """From what is learned of the mean alone to what governs mean and precision.

    Parameters
    ----------
    data : Data
        Standardized targets, and the squared loss.
    mean : Mean
        What is learned of it alone.
    ranked : sequence of kernels
        Open kernels of features and ranks, from which the mean is learned as well.
    known : Known
        What is given.
    own : kernel or None
        That of the precision, with numbers; None for that of the mean, or a constant where
        ``kernels`` are open.
    options : Learning
    watch : callable or None
    """

    data: Data
    mean: Mean
    ranked: Sequence[Any]
    known: Known
    own: Any
    options: Learning
    watch: Callback | None
    history: list[float] = field(default_factory=list)

    def run(self) -> Spread:
        """Search, as far as there is time; what the mean alone says is the start."""
        self.pairs = [self.mean.pair(self.own)]
        self._end = end = EarlyEnd(self.watch, n_calls=len(self.mean.learned.history))
        early = self.mean.learned.ended_early
        rows = None if early else judged_rows(self.data, self.options)
        judge = None
        if rows is not None:
            judge = _Judge(rows, self._share(rows), self.pairs, self.known, end, self.history)
            try:
                with within(end.seconds_left()):
                    self._search(rows, judge)
            except OutOfTime:
                end.reason = end.reason or HALF
        if judge is None or not judge.losses:
            return self._spread(Setting(0), None, end.reason)
        chosen = judge.simplest()
        return self._spread(chosen, judge(chosen), end.reason)

    def _search(self, rows: Rows, judge: _Judge) -> None:
        """Judge the kernel of the mean, that of features and ranks, and others like the better.

        Held-out errors of the mean do not say which that is: of 71 rows with 12 columns they are
        the same, where the likelihoods differ by 0.2 nats.
        """
        judge.search(0)
        ranked = self._learned_of(self.data, self.ranked)
        if ranked is not None and not ranked.ended_early:
            self.pairs.append(Mean(ranked, self.ranked).pair(self.own))
            judge.search(1)
        if not self._end.reached:
            n_pairs = len(self.pairs)
            self._add_pairs(rows, self.pairs[judge.best.pair].mean)
            judge.search(n_pairs)

    def _share(self, rows: Rows) -> float:
        """Alpha of all rows over that of some."""
        return float(rows.weight.sum() / self.data.weight.sum()) ** GROWTH

    def _spread(self, setting: Setting, criterion: float | None, reason: str) -> Spread:
        pair = self.pairs[setting.pair]
        strengths = self.known.strengths(pair, setting)
        return Spread(pair, strengths, criterion, self.history, reason)

    def _add_pairs(self, rows: Rows, mean: Mean) -> None:
        """Other kernels where that of the mean is open."""
        if not mean.kernels:
            return
        again, of_spread = self._weighted(rows, mean)
        first = mean.pair(self.own)
        if again is not None:
            own = again.kernel if self.own is None else self.own
            self.pairs.append(first._replace(kernel=again.kernel, alpha=again.alpha, own=own))
        if self.own is not None:
            return
        level = ConstantKernel(float(first.kernel.diag(rows.X[:1])[0]), "fixed")
        self.pairs.append(first._replace(own=level, simplicity=_SAME))
        if of_spread is not None and of_spread.criterion < _LEAST_TOLD:
            wider = _wider(of_spread.kernel)
            self.pairs.append(first._replace(own=wider, simplicity=_OF_ITS_OWN))

    def _weighted(self, rows: Rows, mean: Mean) -> tuple[Learned | None, Learned | None]:
        """The mean again, of rows weighted by a first guess of their precision, and that guess.

        Where the noise is uneven, squares of all rows alike are decided by a few of them.
        Deviations are guessed by ridge regression on roots of absolute residuals, whose noise is
        about the same everywhere; both are of rows left out.
        """
        share = self._share(rows)
        residual = _left_out(rows, rows.targets, mean.learned, share)
        roots = np.sqrt(np.abs(residual))
        middle = float(np.average(roots[:, 0], weights=rows.weight))
        spread = float(np.sqrt(np.average((roots[:, 0] - middle) ** 2, weights=rows.weight)))
        if not np.isfinite(spread) or spread <= 0.0:
            return None, None
        targets = (roots - middle) / spread
        part = replace(self.data, X=rows.X, targets=targets, weight=rows.weight, compared=True)
        of_spread = self._learned_of(part, mean.kernels)
        if of_spread is None or of_spread.ended_early:
            return None, None
        guess = roots - spread * _left_out(rows, part.targets, of_spread, 1.0)
        deviation = np.square(np.maximum(guess[:, 0], _LEAST_DEVIATION * middle))
        weight = rows.weight / np.square(deviation)
        weighted = replace(part, targets=rows.targets, weight=weight)
        again = self._learned_of(weighted, mean.kernels)
        if again is None or again.ended_early:
            return None, of_spread
        return replace(again, alpha=share * mean.left * again.alpha), of_spread

    def _learned_of(self, data: Data, kernels: Sequence[Any]) -> Learned | None:
        if self._end.reached or not kernels:
            return None
        found = learn(data, kernels, None, self.options, self.watch, self._end.n_calls)
        if found is not None:
            self.history += found.history
            self._end.n_calls += len(found.history)
            self._end.reason = found.message if found.ended_early else ""
        return found


def _wider(kernel: Any) -> Any:
    """The kernel with twice the length scales.

    What absolute residuals say of them is noisy, and squares of functions are twice as narrow.
    """
    known = kernel.get_params().items()
    scales = {name: 2.0 * each for name, each in known if name.endswith("length_scale")}
    return clone(kernel).set_params(**scales)


def judged_rows(data: Data, options: Learning) -> Rows | None:
    """Distinct rows in folds, None where there are too few of them."""
    rows = data.rows(options.most_rows)
    n_folds = options.n_folds or (_FEW_FOLDS if len(rows.X) < _FEW_ROWS else _FOLDS)
    rows = rows.first(options.most_rows, n_folds)
    return rows if len(rows.X) >= _LEAST_ROWS and rows.n_folds == n_folds else None


def _left_out(rows: Rows, targets: FloatArray, learned: Learned, share: float) -> FloatArray:
    """Residuals of ridge regression, each of a fit without its row, (n, 1)."""
    cholesky = PivotedCholesky(learned.kernel, _FEATURE_TOL, _MEAN_RANK)
    features = cholesky.to_arrays().fit_transform(rows.X)
    one = np.eye(1)
    path = LeaveOneOutPath(features, targets, rows.weight, one, gram=False, fit_intercept=True)
    return path.residuals(np.array([learned.alpha / share]))[0]


class _Judge:
    """The held-out likelihood of settings; fits start from the last ones of their pair."""

    def __init__(
        self,
        rows: Rows,
        of_all: float,
        pairs: Sequence[Pair],
        known: Known,
        end: EarlyEnd,
        history: list[float],
    ) -> None:
        self.rows, self.pairs, self.known, self.end = rows, pairs, known, end
        self.history = history
        self.of_all = of_all
        self.folds = [Fold(rows, k) for k in range(rows.n_folds)]
        self.losses: dict[Setting, FloatArray] = {}
        self._views: dict[int, _View] = {}
        self._share = rows.weight / rows.weight.sum()

    def __call__(self, setting: Setting) -> float:
        """Minus the mean log-likelihood."""
        if setting not in self.losses:
            self.losses[setting] = self._judged(setting)
            self.history.append(self(setting))
            self.end(self.history[-1])
        return float(self._share @ self.losses[setting])

    def _judged(self, setting: Setting) -> FloatArray:
        """Losses of all rows, each by the fit to the other folds."""
        pair = self.pairs[setting.pair]
        if setting.pair not in self._views:
            self._views[setting.pair] = _View(pair, self.rows, self.folds, self.known)
        strengths = self.known.strengths(pair, setting, self.of_all)
        return self._views[setting.pair].losses(strengths)

    def along(self, best: Setting, name: str) -> Setting:
        """The best setting of one strength, from there down, or else up."""
        for step in (1, -1):
            moved = best
            while not self.end.reached:
                tried = moved._replace(**{name: getattr(moved, name) + step})
                if not -_UP <= getattr(tried, name) <= _DOWN:
                    break
                if not self(tried) < self(moved) - _WORTH:
                    break
                moved = tried
            if moved != best:
                return moved
        return best

    def descended(self, best: Setting, names: Sequence[str]) -> Setting:
        """The best setting along one strength and then the other, until none is better."""
        self(best)
        for _ in range(_ROUNDS):
            before = best
            for name in names:
                best = self.along(best, name)
            if best == before:
                break
        return best

    @property
    def best(self) -> Setting:
        """Of those that are judged."""
        return min(self.losses, key=self, default=Setting(0))

    def search(self, first: int) -> None:
        """Judge settings of the pairs from that one on, each from the best one so far."""
        names = ("mean", "precision") if self.known.precision_strength is None else ("mean",)
        for k in range(first, len(self.pairs)):
            if self.end.reached:
                return
            if self.pairs[k].simplicity < _SAME:
                self.descended(self.best._replace(pair=k), names)
            else:
                self(Setting(k))

    def simplest(self) -> Setting:
        """The strongest setting of the best mean within a standard error of the best one.

        That of the differences of rows between the two: some rows are hard for all settings.
        """
        best = self.best
        of_best = self.pairs[best.pair].mean

        def is_near(setting: Setting) -> bool:
            if self.pairs[setting.pair].mean is not of_best:
                return False
            worse = self.losses[setting] - self.losses[best]
            mean = float(self._share @ worse)
            square = float(self._share @ np.square(worse - mean))
            return setting == best or mean <= np.sqrt(square / len(worse))

        return max(filter(is_near, self.losses), key=self._simplicity)

    def _simplicity(self, setting: Setting) -> tuple[int, int, int, int]:
        strong = -(setting.mean + setting.precision)
        return self.pairs[setting.pair].simplicity, strong, -setting.mean, -setting.pair


@dataclass
class _View:
    """The rows of each fold in the features of a pair, and where fits start."""

    pair: Pair
    rows: Rows
    folds: Sequence[Fold]
    known: Known
    starts: list[Start | None] = field(init=False)

    def __post_init__(self) -> None:
        X, self.starts = self.rows.X, [None] * len(self.folds)
        rank = min(self.known.rank or _MEAN_RANK, _MEAN_RANK)
        most = self.known.precision_rank or self.known.rank or PRECISION_RANK
        cholesky = PivotedCholesky(self.pair.kernel, _FEATURE_TOL, rank)
        features = cholesky.to_arrays().fit_transform(X)
        own_map = PivotedCholesky(self.pair.own, _FEATURE_TOL, min(most, PRECISION_RANK))
        own = own_map.to_arrays().fit_transform(X)
        whole = NormalRows(features, own, self.rows.targets[:, 0], self.rows.weight)
        self.outer = [NormalRows(*map(fold.outer, whole)) for fold in self.folds]
        self.inner = [NormalRows(*(part[fold.inside] for part in whole)) for fold in self.folds]
        self.squares = [Squares() for _ in self.folds]

    def losses(self, strengths: NormalStrengths) -> FloatArray:
        """Of all rows; infinite where rounding leaves no fit."""
        found = []
        for k, held in enumerate(self.inner):
            problem = self.outer[k].problem(strengths, self.squares[k])
            try:
                fit = solve(problem, "newton", _TOL, _MOST_STEPS, self.starts[k])
            except np.linalg.LinAlgError:
                found.append(np.full(len(held.targets), np.inf))
                continue
            self.starts[k] = Start(fit.dual, fit.multipliers)
            eta = held.features @ fit.model.weights[0]
            theta = quadratic_forms(held.own, fit.model.factors[0]) + strengths.floor
            found.append(_losses(held.targets, eta, theta, 1.0 / len(self.rows.X)))
        return np.concatenate(found)


def _losses(targets: FloatArray, eta: FloatArray, theta: FloatArray, share: float) -> FloatArray:
    r"""Minus log-likelihoods of standardized targets, a share of which may be anything, (n,).

    .. math:: -\log\bigl((1 - s)\, N(y; \mu, v) + s\, C(y)\bigr)

    with a Cauchy density C. Else a row far from all others decides alone: of engel the household
    of the highest income costs 2700 nats where the other 234 gain 40.
    """
    positive = theta > 0.0
    safe = np.where(positive, theta, 1.0)
    inside = 0.5 * (np.log(safe) - safe * np.square(targets - eta / safe)) - _CONSTANT
    inside = np.where(positive, inside, -np.inf)
    broad = -np.log(np.pi * (1.0 + np.square(targets)))
    return -np.logaddexp(np.log1p(-share) + inside, np.log(share) + broad)

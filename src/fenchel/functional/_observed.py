r"""Kernels and alpha judged by curves that are left out, where these are observed.

With the squared loss the problem is a ridge regression of the pairs :math:`(x_i, \theta_{ij})`,
with the product of both kernels. So from one eigendecomposition follow the residuals of all
curves, each left out of the fit, for every alpha, and no curve has to be continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from fenchel._typing import FloatArray, IntArray
from fenchel.functional._learning import are_noise
from fenchel.functional.curves import Curves
from fenchel.kernels import is_open
from fenchel.learning import GROWTH
from fenchel.learning.parameters import OpenParameters
from fenchel.learning.rows import Rows, rows_by_content

_WHOLE = 0.9  # share of the range that curves reach over, from which on they are continued little
_PAIRS = 500
POINTS = 8
"""Of a curve: groups of neighbours where there are more."""
_STRENGTHS = 10.0 ** np.arange(-6.0, 1.1, 0.5)  # times the trace
_FACTORS = (1.0, 0.5, 2.0, 4.0)  # of length scales
_FAR = 5.0  # times the median length of residuals
_LENGTH_SCALE_APART = np.exp(-0.5)  # a Gaussian kernel at its length scale


class Choice(NamedTuple):
    """What is chosen."""

    kernel: Any
    """Of the rows."""
    output: Any
    """The output kernel."""
    alpha: float
    number: int
    """Of the kernel, among those that there were."""
    criterion: float = np.nan
    """What curves that are left out lose, in units of what the center alone loses."""


class _Tried(NamedTuple):
    choice: Choice
    losses: FloatArray
    """Of the curves that are left out, times weights, (n,)."""


def are_short(curves: Curves, weight: FloatArray) -> bool:
    """Whether curves cover less than nine tenths of the range on average."""
    if curves.observed is None:
        return False
    first = curves.grid[curves.observed.argmax(axis=1)]
    last = curves.grid[::-1][curves.observed[:, ::-1].argmax(axis=1)]
    whole = _WHOLE * float(last.max() - first.min())
    return bool(weight @ (last - first) < whole * weight.sum())


def better_choice(
    pairs: Pairs,
    learned: Choice,
    kernels: Sequence[Any],
    outputs: Sequence[Any],
    *,
    any_alpha: bool,
    unit: float,
    robust: bool,
) -> Choice | None:
    """Return the kernels and alpha that predict left-out curves best.

    None if the improvement over the learned ones is within the standard error.

    Parameters
    ----------
    pairs : Pairs
        Of curves without their center.
    learned : Choice
    kernels : sequence of kernel
        Others to try, with learned length scales; those without any are left out.
    outputs : sequence of kernel
        Output kernels to try.
    any_alpha : bool
        Whether each has the best alpha.
    unit : float
        Alpha in units of the loss over that of the squared loss.
    robust : bool
        Whether the loss bounds the influence of curves: with some that are far from what the
        others predict, its fit is not that of the squared loss, and what was learned stays.
    """
    alpha = learned.alpha / unit / pairs.share**GROWTH
    given = np.array([alpha])
    usual = pairs.left_out(learned, given)
    alphas = None if any_alpha else given
    best = min(
        (pairs.left_out(each, alphas) for each in (learned, *pairs.started(learned, kernels))),
        key=_total,
    )
    others = [best.choice._replace(output=output) for output in outputs]
    best = min((best, *(pairs.left_out(each, alphas) for each in others)), key=_total)
    if robust and (pairs.outlying(usual) or pairs.outlying(best)):
        return None
    gains = usual.losses - best.losses
    if are_noise(gains):
        return None
    alone = 0.5 * float(np.sum((pairs.root * pairs.values) ** 2))
    alpha = best.choice.alpha * unit * pairs.share**GROWTH
    return best.choice._replace(alpha=alpha, criterion=_total(best) / alone)


def _total(tried: _Tried) -> float:
    return float(tried.losses.sum())


class Pairs(NamedTuple):
    """Some curves where they are observed, one after the other."""

    X: FloatArray
    weight: FloatArray
    lengths: IntArray
    points: FloatArray
    values: FloatArray
    root: FloatArray
    """Of the measure times the weight of the curve."""
    share: float
    """Of the weight of all curves."""
    grouped: bool
    """Whether curves have more points, and these are groups of neighbours."""

    @classmethod
    def of(cls, X: FloatArray, curves: Curves, weight: FloatArray) -> Self:
        """Choose curves by what they hold, so that neither order nor units count."""
        seen = ~np.isnan(curves.values)
        measure = np.where(seen, curves.measure, 0.0)
        most = int(_PAIRS / np.average(np.minimum(seen.sum(axis=1), POINTS), weights=weight))
        both = np.hstack([np.where(seen, curves.values, 0.0), measure])
        chosen = rows_by_content(X, both, weight, most, 1)
        values, measure = np.hsplit(chosen.targets, 2)
        grouped = [_grouped(curves.grid, *each) for each in zip(values, measure, strict=True)]
        lengths = np.array([len(points) for points, _, _ in grouped])
        points, heights, sums = (np.concatenate(each) for each in zip(*grouped, strict=True))
        root = np.sqrt(np.repeat(chosen.weight, lengths) * sums)
        share = float(chosen.weight.sum() / weight.sum())
        many = bool(np.median((measure > 0.0).sum(axis=1)) > POINTS)
        return cls(chosen.X, chosen.weight, lengths, points, heights, root, share, many)

    def are_far(self, output: Any) -> bool:
        """Whether neighbours of a curve are more than a length scale of an output kernel apart."""
        same = np.diff(np.repeat(np.arange(len(self.lengths)), self.lengths)) == 0
        values = np.diagonal(np.asarray(output(self.points[:, None])), 1)[same]
        return bool(np.median(values) < _LENGTH_SCALE_APART)

    def outlying(self, tried: _Tried) -> bool:
        """Whether any curve is far from what the others predict."""
        squares = tried.losses / self.weight
        return bool(np.any(squares > _FAR**2 * np.median(squares)))

    def started(self, learned: Choice, kernels: Sequence[Any]) -> list[Choice]:
        """Kernels where their learning begins, and with multiples of their length scales."""
        rows, found = Rows(self.X, self.values[:, None], self.weight, (0, len(self.X))), []
        for number, kernel in enumerate(kernels):
            if not is_open(kernel):
                continue
            parameters = OpenParameters.of(kernel, rows, False)
            for factor in np.log(_FACTORS):
                started = parameters.settled(factor * parameters.scales)
                found.append(learned._replace(kernel=started, number=number))
        return found

    def left_out(self, choice: Choice, alphas: FloatArray | None) -> _Tried:
        """The best of some alphas, by default of many: that of the choice does not count."""
        row = np.repeat(np.arange(len(self.X)), self.lengths)
        between = np.asarray(choice.output(self.points[:, None]))
        between = (
            self.root[:, None] * between * self.root * choice.kernel(self.X)[np.ix_(row, row)]
        )
        eigenvalues, vectors = np.linalg.eigh(between)
        eigenvalues, total = np.maximum(eigenvalues, 0.0), float(self.weight.sum())
        if alphas is None:
            alphas = _STRENGTHS * float(eigenvalues.sum()) / total
        inverse = 1.0 / (eigenvalues + total * alphas[:, None])
        solved = (inverse * (vectors.T @ (self.root * self.values))) @ vectors.T
        losses, ends = np.empty((len(alphas), len(self.X))), np.cumsum(self.lengths)
        for i, (start, end) in enumerate(zip(ends - self.lengths, ends, strict=True)):
            own = vectors[start:end]
            block = (own * inverse[:, None]) @ own.T
            residual = np.linalg.solve(block, solved[:, start:end, None])
            losses[:, i] = 0.5 * np.sum(residual**2, axis=(1, 2))
        best = int(losses.sum(axis=1).argmin())
        return _Tried(choice._replace(alpha=float(alphas[best])), losses[best])


def _grouped(
    grid: FloatArray, values: FloatArray, measure: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points, values and measure of a curve, of groups of neighbours where these are many."""
    seen = np.flatnonzero(measure)
    count = min(len(seen), POINTS)
    starts = np.linspace(0, len(seen), count, endpoint=False).astype(int)
    sums = np.add.reduceat(measure[seen], starts)
    points, heights = (
        np.add.reduceat(measure[seen] * of[seen], starts) / sums for of in (grid, values)
    )
    return points, heights, sums

"""Options for learning, what is learned from, and what is found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import FloatArray, IntArray
from fenchel._validation import (
    BOOLEAN,
    COUNT,
    NONE,
    NOT_NEGATIVE,
    POSITIVE,
    CheckedWhenMade,
    Number,
    That,
    declared,
)
from fenchel.kernels import SparsePoints
from fenchel.learning.fold import Task, tasks_of
from fenchel.learning.rows import Rows, rows_by_content, single_of, some_dense
from fenchel.losses import Loss

DEFAULT_STRENGTH = 1e-3
"""Default alpha in units of the problem if it is not learned; also where learning starts."""
MANY_ROWS = 1000
"""Default number of distinct rows in all descents but the last."""
_MOST_NUMBERS = 2**25  # in an array of sparse rows that are learned from: 256 MB
_FEW = 200  # rows, fewer than which say little of an alpha for many
_NAMES = ("gaussian", "laplacian", "matern12", "matern32", "matern52", "rbf")


def _are_kernels(value: Any) -> bool:
    names = isinstance(value, tuple) and len(value) > 0
    return names and all(
        k in _NAMES if isinstance(k, str) else isinstance(k, Kernel) for k in value
    )


@dataclass(frozen=True)
class Learning(CheckedWhenMade):
    """Options for learning kernel parameters and alpha from held-out rows.

    Parameters
    ----------
    n_rows : int, optional
        Maximum number of distinct rows used, chosen by their content. The default is 1000. With
        3750 or more distinct rows and at most three outputs (one, if they are expectiles that are
        coupled), a last descent then continues on 0.4 of the rows, at most 4000. Coupled
        expectiles have at most 1500 rows times outputs, and more than 3 coupled outputs of the
        squared loss have fewer rows, 572 for 16 or more.
    n_folds : int, optional
        Number of folds. The default is one fold for each row with fewer than 12 rows, 10 with
        fewer than 150, 5 with fewer than 500, and else 3. A first descent, on 150 rows or more,
        has 2 folds, and so has a last one by default.
    max_evaluations : int
        Maximum number of evaluations of the criterion with ``n_rows``, and in a last descent.
    tol : float
        Relative decrease of the criterion below which the descent ends.
    prior : float
        Strength of the penalty on length scales, divided by the number of rows to the power 3/2;
        for more than 8 of them, or 18 with losses of bounded slopes, it rises with the held-out
        loss. It prefers length scales that are a common multiple of the spreads of their features,
        namely about 4 times the square root of the number of features (3 for one of them).
    kernels : tuple of str or kernels, optional
        Kernels among which the first descent chooses if none is given: names, of kernels on the
        features and their ranks, or kernels that are used as they are, such as
        ``WithRanks(Matern()) + ConstantKernel(0.1) * Linear()``. The first is kept unless
        another has a loss lower by a share of 1/(2√n) on n rows. None is ``("matern32",)``. With
        more than 30 columns and at most five rows for each, regression then also tries
        ``Matern("shared")`` and ``Matern("shared_range")``, and compares the three on rows that
        the first descents have not seen. Functional regression with at most ten rows for each
        column also tries ``Gaussian("shared")``.
    share_scales : bool
        Whether all columns of a category (neighbouring columns of zeros and ones) share one length
        scale. On the tables of ``experiments.tables`` one for each is better: values of a
        category are seldom equally far apart.

    Raises
    ------
    ValueError, TypeError
        For a value that is not allowed.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.learning import Learning
    >>> quick = Learning(n_rows=300, max_evaluations=5)
    >>> model = QuantileRegressor([0.1, 0.9], learn=quick)
    """

    constraints = declared(
        n_rows=NONE | COUNT,
        n_folds=NONE | Number(2, integer=True),
        max_evaluations=COUNT,
        tol=POSITIVE,
        prior=NOT_NEGATIVE,
        kernels=NONE | That("a tuple of names or kernels", _are_kernels),
        share_scales=BOOLEAN,
    )

    n_rows: int | None = None
    n_folds: int | None = None
    max_evaluations: int = 20
    tol: float = 3e-3
    prior: float = 32.0
    kernels: tuple[Any, ...] | None = None
    share_scales: bool = False

    @property
    def most_rows(self) -> int:
        """Number of distinct rows in all descents but the last."""
        return MANY_ROWS if self.n_rows is None else self.n_rows


@dataclass(frozen=True)
class Data:
    """Rows of positive weight, and the problem that is fitted to them.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.learning import Data
    >>> from fenchel.losses import Squared
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> data = Data(X, np.sin(6.0 * X), np.ones(30), Squared(), np.eye(1), fit_intercept=True)
    >>> data.targets.shape
    (30, 1)
    """

    X: FloatArray | SparsePoints
    targets: FloatArray
    weight: FloatArray
    loss: Loss
    coupling: FloatArray
    fit_intercept: bool
    constant: str = "constant"
    """Name of the best constant, in words."""
    measured: bool = False
    """Whether the size of held-out residuals is to be measured."""
    groups: IntArray | None = None
    """Indices of groups whose rows are held out together, (n,)."""
    compared: bool = False
    """Whether what is learned is compared with others later, by another criterion."""
    unseen: bool = False
    """Whether several kernels are compared on rows that their length scales are not of."""

    @property
    def too_wide(self) -> bool:
        """Whether sparse rows have so many columns that too few of them fit."""
        return isinstance(self.X, SparsePoints) and self.X.shape[1] * _FEW > _MOST_NUMBERS

    def tasks(self, targets: FloatArray) -> list[Task]:
        """Problems of some rows that do not interact."""
        return tasks_of(self.loss, self.coupling, targets, self.fit_intercept)

    def rows(self, n_rows: int) -> Rows:
        """At most this number of distinct rows, in one fold; of sparse ones also what fits."""
        X, targets, weight, groups, unit = self.X, self.targets, self.weight, self.groups, None
        if isinstance(X, SparsePoints):
            n_rows, unit = min(n_rows, _MOST_NUMBERS // X.shape[1]), single_of(weight)
            X, targets, weight, groups = some_dense(X, targets, weight, groups, n_rows)
        return rows_by_content(X, targets, weight, n_rows, 1, groups=groups, unit=unit)


@dataclass(frozen=True)
class Learned:
    """Learned parameters and how they were found.

    Attributes
    ----------
    kernel : kernel
        The kernel with the learned numbers, all fixed.
    alpha : float
        Strength of the regularization, for all rows.
    criterion : float
        Held-out loss in units of the loss of the best constant (or of the best constant curve).
        For densities, and for mean and variance together, it is in nats a row.
    history : list of float
        The criterion at each evaluation. The first entries are on few rows and with smoother
        losses, so that entries of different descents are not comparable.
    n_rows : int
        Number of distinct rows that were used.
    message : str
        How learning ended.
    in_nats : bool
        Whether the criterion is minus a log-likelihood.
    constant : str
        Name of the best constant: a constant curve for functional outputs.
    choice : int
        Index of the chosen kernel among the candidates.
    ended_early : bool
        Whether a callback or the time limit ended it.
    residual : float, optional
        Median of absolute held-out residuals times 1.4826, an estimate of the standard deviation
        of normal residuals. For several outputs, their root mean squares are taken. Only set if
        the tube of an :class:`fenchel.SVR` depends on it.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.learning import Learning
    >>> quick = Learning(n_rows=100, max_evaluations=2)
    >>> learned = KernelRidge(kernel="rbf", learn=quick).fit(*load_engel(return_X_y=True)).learned_
    >>> learned.n_rows, learned.criterion < 1.0  # better than the best constant
    (100, True)
    """

    kernel: Any
    alpha: float
    criterion: float
    history: list[float] = field(repr=False)
    n_rows: int = 0
    message: str = ""
    in_nats: bool = False
    constant: str = "constant"
    choice: int = 0
    ended_early: bool = False
    residual: float | None = None

    @property
    def said(self) -> str:
        """The criterion in words."""
        unit = "nats a row" if self.in_nats else f"of the best {self.constant}'s"
        return f"{self.criterion:.3f} {unit}"


LEARNING = That("a Learning", lambda value: isinstance(value, Learning))
"""Values of the parameter ``learn`` other than True and False."""

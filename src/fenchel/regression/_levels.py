"""What quantile and expectile regression share: levels and their coupling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import Number, declared
from fenchel.certificate import Callback
from fenchel.distributions import QuantileDistribution
from fenchel.features import FeatureMap, KernelRowLimits
from fenchel.kernels import OperatorKernel, level_coupling
from fenchel.learning import Learning
from fenchel.losses import Loss
from fenchel.losses.atoms import check_levels
from fenchel.metrics import crossing_loss, d2_score
from fenchel.regression._base import KernelRegressor
from fenchel.solvers import Solver


class LevelRegressor(KernelRegressor):
    """Several levels of one statistic, learned together."""

    feature_parameters = (*KernelRegressor.feature_parameters, "levels")
    constraints = declared(levels=check_levels, level_gamma=Number(0.0, infinite=True))

    def __init__(
        self,
        levels: float | Sequence[float] | FloatArray = 0.5,
        *,
        kernel: str | Kernel | OperatorKernel | Callable[..., Any] | None = None,
        alpha: float | None = None,
        learn: bool | Learning = True,
        radius: float | None = None,
        level_gamma: float = 1.0,
        epsilon: float = 0.0,
        fit_intercept: bool = True,
        features: str | FeatureMap = "auto",
        rank: int | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        max_time: float | None = None,
    ) -> None:
        self.levels = levels
        self.kernel = kernel
        self.alpha = alpha
        self.learn = learn
        self.radius = radius
        self.level_gamma = level_gamma
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.max_time = max_time

    def _level_loss(self, levels: Any) -> Loss:
        """The loss that elicits the statistic at these levels."""
        raise NotImplementedError

    def _distribution(self, curves: FloatArray) -> QuantileDistribution:
        """The distributions with this statistic at the levels of the fit."""
        raise NotImplementedError

    def predict_distribution(self, X: ArrayLike) -> QuantileDistribution:
        """Predict the whole distribution of the target at each row.

        The curves of the fit are joined to a distribution, with exponential tails beyond the
        outermost: :class:`fenchel.distributions.QuantileDistribution` says how, also for rows at
        which curves cross. It has ``cdf``, ``pdf``, ``ppf`` at any levels, ``mean``, ``std``,
        ``interval``, ``sample``, ``crps`` and ``log_prob``. The more levels, the less is assumed:
        19 of them, ``np.arange(0.05, 1.0, 0.05)``, cost little more than three.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table
            Rows, as in ``predict``.

        Returns
        -------
        QuantileDistribution
            One distribution for each row.

        Raises
        ------
        ValueError
            If there are too few levels: two for quantiles; 0.5 and one on either side for
            expectiles. Or if the fit has ``epsilon`` > 0.
        """
        curves = self._decision(X)
        self._check_shares("distributions")
        return self._distribution(curves)

    _without_tube = "epsilon=0"
    """Parameters with which levels are shares of rows, for the message."""

    @property
    def _levels_are_shares(self) -> bool:
        """Whether a tube leaves the levels what they say of the rows."""
        return self.loss_.epsilon == 0.0

    def _check_shares(self, what: str) -> None:
        if not self._levels_are_shares:
            raise ValueError(
                f"epsilon must be 0 for {what}, got {self.loss_.epsilon:g}: rows inside of the "
                "tube do not count, so that levels are not the shares of rows below; fit with "
                f"{self._without_tube}, or let ConformalQuantileRegressor calibrate"
            )

    def make_loss(self, n_targets: int) -> Loss:
        return self._level_loss(self.levels_).insensitive(float(self.epsilon))

    def _kernel_rows(self) -> KernelRowLimits:
        """Fewer where levels are coupled: each step is then in all of them at once."""
        limits = super()._kernel_rows()
        n_levels = np.size(self.levels)
        if n_levels == 1 or self.level_gamma == np.inf:
            return limits
        return limits._replace(computed=min(limits.computed, max(10_000, 60_000 // n_levels)))

    def make_coupling(self, n_targets: int) -> FloatArray:
        return level_coupling(self.levels_, float(self.level_gamma))

    def _learned_task(self, n_targets: int) -> tuple[Loss, FloatArray]:
        """Of at most three levels, the outermost and the middle one, for they say most."""
        levels = np.sort(self.levels_)
        chosen = np.unique([0, len(levels) // 2, len(levels) - 1])
        some = levels[chosen]
        loss = self._level_loss(some).insensitive(float(self.epsilon))
        return loss, level_coupling(some, float(self.level_gamma))

    def check_parameters(self) -> None:
        super().check_parameters()
        self.levels_ = check_levels(self.levels)

    def crossing_loss(self, X: ArrayLike) -> float:
        r"""Mean amount by which curves of neighbouring levels cross on these rows.

        .. math:: \sum_j \frac1n \sum_i \max(0, h_j(x_i) - h_{j+1}(x_i))

        with levels in increasing order; 0 means that no curves cross there.
        """
        return crossing_loss(self._decision(X), self.levels_)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean over levels of D², the share of the loss of the best constant explained.

        1 is perfect, 0 is no better than the best constant of ``y`` itself.
        """
        prediction = self._decision(X)
        losses = [self._level_loss(level) for level in self.levels_]
        return float(d2_score(y, prediction, losses, sample_weight=sample_weight))

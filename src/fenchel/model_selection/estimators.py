"""The estimators that choose their own parameters."""

from __future__ import annotations

from typing import Any

from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from fenchel._typing import AnyArray, ArrayLike, FloatArray
from fenchel.losses import parameters_of
from fenchel.model_selection._leave_one_out import as_scores, loo_scores
from fenchel.model_selection.search import Grid, PathSearch, with_parameters
from fenchel.regression import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.regression._base import KernelRegressor

_SHARED = (
    "kernel",
    "fit_intercept",
    "features",
    "rank",
    "solver",
    "tol",
    "max_iter",
    "random_state",
)


class _LevelSearch(PathSearch):
    """Levels of one statistic, with the parameters of :class:`QuantileRegressor`."""

    _estimator: type[KernelRegressor]

    def __init__(
        self,
        levels: Any = 0.5,
        *,
        alphas: Any = 20,
        level_gammas: Any = (1.0,),
        epsilons: Any = (0.0,),
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        kernel: Any = None,
        fit_intercept: bool = True,
        features: Any = "auto",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.levels = levels
        self.alphas = alphas
        self.level_gammas = level_gammas
        self.epsilons = epsilons
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _plain(self) -> KernelRegressor:
        shared = {name: getattr(self, name) for name in _SHARED}
        return self._estimator(self.levels, **shared)

    def _grid(self) -> dict[str, Any]:
        return {"level_gamma": self.level_gammas, "epsilon": self.epsilons}

    def crossing_loss(self, X: ArrayLike) -> float:
        """How much curves cross, see :meth:`QuantileRegressor.crossing_loss`."""
        check_is_fitted(self)
        return float(self.best_estimator_.crossing_loss(X))


class QuantileRegressorCV(_LevelSearch):
    """Quantile regression whose strength, coupling, ε and width are cross-validated.

    Parameters
    ----------
    levels : float or sequence of float, default=0.5
        Levels in (0, 1), in any order, without repeats.
    alphas : int or sequence of float, default=20
        Strengths, or how many of them on a geometric grid over seven decades in the units of
        the problem. Each path runs from the largest to the smallest, warm-started.
    level_gammas : sequence of float, default=(1.0,)
        Candidates for the coupling of the levels.
    epsilons : sequence of float, default=(0.0,)
        Candidates for the radius of insensitivity.
    length_scales : sequence, optional
        Candidates for the ``length_scale`` of the kernel, numbers or rules; None keeps the
        kernel as it is. A rule is measured on each training fold.
    cv : int, splitter or iterable, default=5
        Folds, as in :class:`sklearn.model_selection.GridSearchCV`.
    scoring : str or callable, optional
        As in scikit-learn; by default the ``score`` of the plain estimator, mean D².
    selection : {"min", "one_standard_error"}, default="min"
        The best mean score, or the largest alpha within one standard error of it, the other
        parameters being those of the best.
    n_jobs : int, optional
        Number of processes over folds and length scales.
    kernel, fit_intercept, features, rank, solver, tol, max_iter, random_state
        As in :class:`fenchel.QuantileRegressor`.
    non_crossing : {None, "train"}, default=None
        As in :class:`fenchel.QuantileRegressor`: "train" keeps curves in order at the rows of
        each fit.

    Attributes
    ----------
    best_estimator_ : QuantileRegressor
        Fitted on all rows with the chosen parameters.
    best_params_, best_index_, best_score_, cv_results_
        As in :class:`sklearn.model_selection.GridSearchCV`.
    alpha_ : float
        The chosen strength.
    certificate_ : Certificate
        Of the final fit.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.model_selection import QuantileRegressorCV
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> model = QuantileRegressorCV([0.1, 0.9], alphas=[1e-1, 1e-3, 1e-5]).fit(X, y)
    >>> model.alpha_ in (1e-1, 1e-3, 1e-5)
    True
    """

    _estimator = QuantileRegressor

    def __init__(
        self,
        levels: Any = 0.5,
        *,
        alphas: Any = 20,
        level_gammas: Any = (1.0,),
        epsilons: Any = (0.0,),
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        kernel: Any = None,
        non_crossing: str | None = None,
        fit_intercept: bool = True,
        features: Any = "auto",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            levels,
            alphas=alphas,
            level_gammas=level_gammas,
            epsilons=epsilons,
            length_scales=length_scales,
            cv=cv,
            scoring=scoring,
            selection=selection,
            n_jobs=n_jobs,
            kernel=kernel,
            fit_intercept=fit_intercept,
            features=features,
            rank=rank,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
        )
        self.non_crossing = non_crossing

    def _plain(self) -> KernelRegressor:
        return super()._plain().set_params(non_crossing=self.non_crossing)

    def predict_interval(self, X: ArrayLike, coverage: float) -> FloatArray:
        """Central interval of a coverage, see :meth:`QuantileRegressor.predict_interval`."""
        check_is_fitted(self)
        return self.best_estimator_.predict_interval(X, coverage)


class ExpectileRegressorCV(_LevelSearch):
    """Expectile regression whose strength, coupling, ε and width are cross-validated.

    Parameters, attributes and methods are those of :class:`QuantileRegressorCV`.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.model_selection import ExpectileRegressorCV
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> ExpectileRegressorCV([0.1, 0.9], alphas=5).fit(X, y).predict(X).shape
    (100, 2)
    """

    _estimator = ExpectileRegressor


class SVRCV(PathSearch):
    """Support vector regression whose strength, ε or κ, and width are cross-validated.

    Parameters
    ----------
    loss : str or Loss, default="epsilon_insensitive"
        As in :class:`fenchel.SVR`.
    epsilons : sequence of float, default=(0.1,)
        Candidates for the width of the tube, for the insensitive losses.
    kappas : sequence of float, default=(1.0,)
        Candidates for the threshold of the Huber loss.
    level : float, default=0.5
        As in :class:`fenchel.SVR`.
    alphas, length_scales, cv, scoring, selection, n_jobs
        As in :class:`QuantileRegressorCV`; the default score is R².
    kernel, fit_intercept, features, rank, solver, tol, max_iter, random_state
        As in :class:`fenchel.SVR`.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.model_selection import SVRCV
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> SVRCV(epsilons=[0.1, 0.5], alphas=5).fit(X, y).best_params_["epsilon"] in (0.1, 0.5)
    True
    """

    def __init__(
        self,
        loss: Any = "epsilon_insensitive",
        *,
        epsilons: Any = (0.1,),
        kappas: Any = (1.0,),
        level: float = 0.5,
        alphas: Any = 20,
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        kernel: Any = None,
        fit_intercept: bool = True,
        features: Any = "auto",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.epsilons = epsilons
        self.kappas = kappas
        self.level = level
        self.alphas = alphas
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _plain(self) -> KernelRegressor:
        shared = {name: getattr(self, name) for name in _SHARED}
        return SVR(self.loss, level=self.level, **shared)

    def _grid(self) -> dict[str, Any]:
        if "kappa" in parameters_of(self.loss):
            return {"kappa": self.kappas}
        return {"epsilon": self.epsilons}


class KernelRidgeCV(PathSearch):
    r"""Kernel ridge regression whose strength and width are cross-validated.

    With ``scoring="loo"``, by the exact leave-one-out error, for all strengths from one
    eigendecomposition of the Gram matrix, or of the features' square, per length scale:

    .. math:: \frac{1}{\sum_i s_i} \sum_i s_i \Bigl(\frac{y_i - h(x_i) - b}{1 - M_{ii}}\Bigr)^2

    Parameters
    ----------
    alphas, length_scales, cv, selection, n_jobs
        As in :class:`QuantileRegressorCV`.
    scoring : str or callable, optional
        As in scikit-learn, by default R²; or "loo", minus the ``loo_error_`` of
        :class:`fenchel.KernelRidge`: then ``cv`` and ``solver`` play no part in the search,
        ``cv_results_`` has one split, and the standard error of "one_standard_error" is that
        of the mean of the n squared residuals. Strengths at which a residual is undefined have
        the score NaN and rank last.
    coupling, kernel, fit_intercept, features, rank, solver, tol, max_iter, random_state
        As in :class:`fenchel.KernelRidge`.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.model_selection import KernelRidgeCV
    >>> X, y, _ = make_sine_quantiles(100, random_state=0)
    >>> KernelRidgeCV(alphas=5, selection="one_standard_error").fit(X, y).predict(X).shape
    (100,)
    >>> model = KernelRidgeCV(alphas=50, scoring="loo").fit(X, y)
    >>> abs(model.best_score_ + model.best_estimator_.loo_error_) < 1e-9
    True
    """

    def __init__(
        self,
        alphas: Any = 20,
        *,
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        kernel: Any = None,
        coupling: Any = None,
        fit_intercept: bool = True,
        features: Any = "auto",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.alphas = alphas
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.coupling = coupling
        self.fit_intercept = fit_intercept
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _plain(self) -> KernelRegressor:
        shared = {name: getattr(self, name) for name in _SHARED}
        return KernelRidge(coupling=self.coupling, **shared)

    def _leaves_one_out(self) -> bool:
        return isinstance(self.scoring, str) and self.scoring == "loo"

    def _tasks(
        self,
        plain: KernelRegressor,
        grid: Grid,
        X: AnyArray,
        y: AnyArray,
        sample_weight: AnyArray | None,
    ) -> list[Any]:
        if not self._leaves_one_out():
            return super()._tasks(plain, grid, X, y, sample_weight)
        models = [with_parameters(plain, own) for own in grid.features]
        return [delayed(loo_scores)(model, grid.alphas, X, y, sample_weight) for model in models]

    def _gathered(self, grid: Grid, parts: list[Any]) -> tuple[FloatArray, FloatArray | None]:
        return as_scores(parts) if self._leaves_one_out() else super()._gathered(grid, parts)

"""Cross-validation of regressions on curves, along warm-started paths."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from fenchel._typing import FloatArray, IntArray
from fenchel.functional import FunctionalRegressor
from fenchel.functional._inputs import as_rows
from fenchel.functional.regressor import PreparedCurves
from fenchel.losses import parameters_of
from fenchel.model_selection._callbacks import with_callbacks
from fenchel.model_selection.search import Grid, Search, as_path, strengths, with_parameters

AGGREGATIONS = ("mean", "median")
_SMALLEST = 1e-3  # of κ and ε, in units of the curves
_SHARED = (
    "loss",
    "norm",
    "level",
    "kernel",
    "output_kernel",
    "center",
    "representation",
    "n_components",
    "quadrature",
    "features",
    "rank",
    "solver",
    "tol",
    "max_iter",
    "random_state",
)


class FunctionalRegressorCV(RegressorMixin, Search):
    r"""Regression of curves whose strength, κ or ε, and width are cross-validated.

    .. math:: \min_{\alpha, \kappa, \varepsilon}\;
              \operatorname*{mean\ or\ median}_{\mathrm{folds}\ F}\;
              \frac{1}{\sum_{i \in F} s_i} \sum_{i \in F} s_i
              \int (y_i - h_{-F}(x_i))^2\, \mathrm{d}\mu

    where :math:`h_{-F}` has not seen the fold, and the integral is over what is observed. For
    each fold and each length scale the kernels are evaluated once. On them alpha runs from the
    largest to the smallest, and for each alpha κ from the largest, or ε from the smallest,
    every fit starting from the one before.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        As in :class:`fenchel.functional.FunctionalRegressor`.
    norm : float, default=2
        As there.
    alphas : int or sequence of float, default=10
        Strengths, or how many of them on a geometric grid over seven decades in the units of
        the kernels.
    kappas : int or sequence of float, default=10
        Candidates for κ of the Huber loss, in the units of y, or how many of them on a
        geometric grid over three decades down from the median L² norm of the curves. Other
        losses do not read it.
    epsilons : int or sequence of float, default=10
        Candidates for ε of the insensitive losses, likewise.
    level : float, default=0.5
        As in :class:`fenchel.functional.FunctionalRegressor`.
    length_scales : sequence, optional
        Candidates for the ``length_scale`` of the input kernel, or of the kernel within it,
        numbers or rules; None keeps the kernel as it is. A rule is measured on each training
        fold.
    cv : int, splitter or iterable, default=5
        Folds, as in :class:`sklearn.model_selection.GridSearchCV`.
    scoring : str or callable, optional
        As in scikit-learn, for complete curves on one grid; by default minus the mean squared
        error above, for all curves.
    aggregation : {"mean", "median"}, default="mean"
        What ranks candidates: the mean score over folds, or the median, which outlying curves
        in a minority of the folds do not move.
    n_jobs : int, optional
        Number of processes over folds and length scales.
    kernel, output_kernel, center, representation, n_components, quadrature, features
        As in :class:`fenchel.functional.FunctionalRegressor`.
    rank, solver, tol, max_iter, random_state
        As there.

    Attributes
    ----------
    best_estimator_ : FunctionalRegressor
        Fitted on all rows with the chosen parameters.
    best_params_, best_index_, best_score_, cv_results_
        As in :class:`sklearn.model_selection.GridSearchCV`; with ``aggregation="median"``
        ranks and ``best_score_`` are those of ``cv_results_["median_test_score"]``.
    alpha_ : float
        The chosen strength.
    certificate_ : Certificate
        Of the final fit.

    References
    ----------
    Lambert, Bouche, Szabó, d'Alché-Buc (2022), Functional output regression with infimal
    convolution: exploring the Huber and ε-insensitive losses, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.model_selection import FunctionalRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X, theta = rng.uniform(size=(40, 1)), np.linspace(0.0, 1.0, 25)
    >>> Y = np.sin(2 * np.pi * (theta + X))
    >>> Y[:4] += 30.0
    >>> model = FunctionalRegressorCV(
    ...     "huber", alphas=[1e-2, 1e-4], kappas=[10.0, 1.0, 0.1], aggregation="median"
    ... )
    >>> bool(model.fit(X, Y, theta).best_params_["kappa"] < 10.0)
    True
    """

    _kernel = "kernel"
    selection = "min"

    def __init__(
        self,
        loss: Any = "squared",
        norm: float = 2,
        *,
        alphas: Any = 10,
        kappas: Any = 10,
        epsilons: Any = 10,
        level: float = 0.5,
        length_scales: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        aggregation: str = "mean",
        n_jobs: int | None = None,
        kernel: Any = None,
        output_kernel: Any = None,
        center: str | None = None,
        representation: str = "auto",
        n_components: int | None = None,
        quadrature: Any = "monte-carlo",
        features: Any = "auto",
        rank: int | None = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.norm = norm
        self.alphas = alphas
        self.kappas = kappas
        self.epsilons = epsilons
        self.level = level
        self.length_scales = length_scales
        self.cv = cv
        self.scoring = scoring
        self.aggregation = aggregation
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.output_kernel = output_kernel
        self.center = center
        self.representation = representation
        self.n_components = n_components
        self.quadrature = quadrature
        self.features = features
        self.rank = rank
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _plain(self) -> FunctionalRegressor:
        return FunctionalRegressor(**{name: getattr(self, name) for name in _SHARED})

    def _aggregation(self) -> str:
        return self.aggregation

    @with_callbacks
    def fit(
        self, X: Any, y: Any, theta: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Choose the parameters by cross-validation and refit on all rows.

        Parameters
        ----------
        X : array-like of shape (n, d), (n, m', channels) or FDataGrid
            Rows.
        y : array-like of shape (n, m) or (n,), list of pairs (θ, y), or FDataGrid
            Curves, NaN where they were not observed.
        theta : array-like of shape (m,), optional
            The grid; by default equidistant points of [0, 1].
        sample_weight : array-like of shape (n,), optional
            Non-negative weights, for fitting and for scoring.

        Returns
        -------
        FunctionalRegressorCV
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters or data that are not allowed; the sentence names which.
        """
        if self.aggregation not in AGGREGATIONS:
            raise ValueError(
                f"aggregation must be one of {AGGREGATIONS}, got {self.aggregation!r}"
            )
        plain = self._plain()
        plain.check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        rows, y = indexable(as_rows(X), y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, rows, ensure_non_negative=True)
        grid = self._resolved_grid(plain, rows, y, theta, sample_weight)
        scoring = negative_error if self.scoring is None else self.scoring
        scorer = check_scoring(plain, scoring=scoring)
        splits = list(check_cv(self.cv).split(rows, y))
        tasks = [
            delayed(_scores)(plain, own, grid, rows, y, theta, sample_weight, *split, scorer)
            for own in grid.features
            for split in splits
        ]
        self._search(plain, grid, tasks, (X, y, theta, sample_weight))
        return self

    def _resolved_grid(
        self, plain: FunctionalRegressor, X: Any, y: Any, theta: Any, sample_weight: Any
    ) -> Grid:
        """Candidates for every parameter, in the order of the path."""
        read = parameters_of(self.loss)
        varied = "kappas" if "kappa" in read else "epsilons" if "epsilon" in read else None
        names = ["alphas"] if varied is None else ["alphas", varied]
        counts = {name: _count(self, name) for name in names}
        size = unit = 1.0
        if any(counts.values()):
            prepared = with_parameters(plain, {}).prepare(X, y, theta, sample_weight)
            size, unit = _size(prepared), _unit(prepared)
        count = counts["alphas"]
        alphas = 0.5 * size * strengths(count) if count else as_path(self.alphas, "alphas")
        others: list[dict[str, Any]] = [{}]
        if varied is not None:
            count, given = counts[varied], getattr(self, varied)
            values = (
                unit * np.geomspace(1.0, _SMALLEST, count)
                if count
                else as_path(given, varied, zero=varied == "epsilons")
            )
            # from the squared loss on: its solution is a good start, and has a closed form
            ordered = values[::-1] if varied == "epsilons" else values
            others = [{varied.removesuffix("s"): value} for value in ordered.tolist()]
        scales = [None] if self.length_scales is None else list(self.length_scales)
        own = [{} if scale is None else {"length_scale": scale} for scale in scales]
        return Grid(alphas, own, others)

    def predict(self, X: Any, theta: Any = None) -> Any:
        """Predict with the chosen parameters, fitted on all rows.

        Parameters
        ----------
        X, theta : as in :meth:`fenchel.functional.FunctionalRegressor.predict`
            Rows, and the points to predict at.

        Returns
        -------
        ndarray of shape (n, m') or (n,), or FDataGrid
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X, theta)

    def score(
        self, X: Any, y: Any, theta: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Coefficient of determination of functions, with the chosen parameters.

        Parameters
        ----------
        X, y, theta, sample_weight : as in :meth:`fit`
            Curves to score.

        Returns
        -------
        float
            At most 1.
        """
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, theta, sample_weight))


def negative_error(
    model: FunctionalRegressor, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Minus the weighted mean of ∫(y - h(x))² dμ, over what is observed."""
    curves, predicted, weight = model._compared(X, y, None, sample_weight)
    errors = np.nansum(curves.measure * (curves.values - predicted) ** 2, axis=1)
    total = float(weight.sum())
    return -float(weight @ errors) / total if total > 0.0 else np.nan


def _count(search: FunctionalRegressorCV, name: str) -> int:
    """How many candidates of that name are asked for; 0 if they are given."""
    value = getattr(search, name)
    if np.ndim(value) > 0:
        return 0
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"{name} must be a number of candidates >= 1 or a sequence of numbers, got {value!r}"
        )
    return int(value)


def _size(prepared: PreparedCurves) -> float:
    """Trace of the operator-valued kernel, k(x, x) ∫ k_Θ(θ, θ) dμ, on average over rows."""
    inputs = prepared.inputs
    diagonal = inputs.feature_map.design(inputs.features, np.eye(1)).diagonal()
    mean = float(np.average(diagonal, weights=inputs.weight))
    measure = np.atleast_2d(prepared.curves.measure).mean(axis=0)
    return mean * float(measure @ prepared.between.diagonal()) or 1.0


def _unit(prepared: PreparedCurves) -> float:
    """Median L² norm of the curves."""
    curves = prepared.curves
    squares = np.nansum(curves.measure * curves.values**2, axis=1)
    return float(np.sqrt(np.median(squares))) or 1.0


def _part(y: Any, rows: IntArray) -> Any:
    return y[rows] if hasattr(y, "data_matrix") else _safe_indexing(y, rows)


class _Path:
    """The last two solutions along a parameter, extrapolated to its next value."""

    def __init__(self) -> None:
        self._known: list[tuple[float, FloatArray]] = []

    def take(self, parameters: dict[str, Any], point: FloatArray) -> None:
        """Remember the solution at a value of the one parameter that varies."""
        self._known = [*self._known[-1:], (float(next(iter(parameters.values()), 0.0)), point)]

    def ahead(self, parameters: dict[str, Any], start: FloatArray | None) -> FloatArray | None:
        """Start at the next value: on the line through the last two, no further than twice."""
        if len(self._known) < 2:
            return start
        (t0, before), (t1, last) = self._known
        t = float(next(iter(parameters.values()), 0.0))
        share = min((t - t1) / (t1 - t0), 2.0) if t1 != t0 else 0.0
        return last + share * (last - before)


def _scores(
    plain: FunctionalRegressor,
    own: dict[str, Any],
    grid: Grid,
    X: Any,
    y: Any,
    theta: Any,
    sample_weight: FloatArray | None,
    train: IntArray,
    test: IntArray,
    scorer: Any,
) -> FloatArray:
    """Test scores (others, alphas) of one fold with one input kernel."""
    model = with_parameters(plain, own, "kernel")
    weight = None if sample_weight is None else sample_weight[train]
    seen, _ = _safe_split(plain, X, None, train)
    prepared = model.prepare(seen, _part(y, train), theta, weight)
    held_out = _safe_split(plain, X, None, test, train)[0], _part(y, test)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
    scores = np.empty((len(grid.others), len(grid.alphas)))
    first: FloatArray | None = None
    for j, alpha in enumerate(grid.alphas):
        start, path = first, _Path()
        for i, other in enumerate(grid.others):
            model.set_params(alpha=float(alpha), **other).check_parameters()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # told of the final fit
                found = model.fit_prepared(prepared, path.ahead(other, start))
            path.take(other, found)
            first, start = (found if i == 0 else first), found
            scores[i, j] = scorer(model, *held_out, **weights)
    return scores


__all__ = ["FunctionalRegressorCV"]

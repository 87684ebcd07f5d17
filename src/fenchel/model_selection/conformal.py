"""Calibrated intervals: conformal prediction around any regressor."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from fenchel._typing import ArrayLike, FloatArray
from fenchel._validation import NONE, Having, That, declared
from fenchel.metrics import position_of_level
from fenchel.model_selection._conformal_base import Conformal
from fenchel.model_selection._conformal_models import Columns, HeldOut
from fenchel.model_selection._level_models import LevelModels, at_levels, levels_of
from fenchel.regression import KernelRidge, QuantileRegressor

_MEDIAN = 0.5


class ConformalRegressor(Conformal):
    r"""Intervals around the predictions of any regressor, valid for any distribution.

    With scores :math:`R_i = |y_i - f_{-i}(x_i)|` of n rows at models that have not seen them,

    .. math:: \Bigl[\, q^-_i\{f_{-i}(x) - R_i\},\; q^+_i\{f_{-i}(x) + R_i\} \Bigr]

    where :math:`q^+` is the value of rank :math:`\lceil (1 - \delta)(n + 1) \rceil` from below
    and :math:`q^-` that from above, at a coverage of 1 - δ: infinite if there are fewer values.

    Parameters
    ----------
    estimator : regressor, optional
        Any with a single output, :class:`fenchel.KernelRidge` by default.
    method : {"split", "cv+", "jackknife+"}, default="split"
        - "split": one model f, and rows that it is not fitted to. The interval is
          f(x) ± ``quantile_``.
        - "cv+": a model for each fold, :math:`f_{-i}` the one without the fold of row i. All
          rows calibrate, and ``predict`` is that of one more model, fitted to all.
        - "jackknife+": as many models as rows. In closed form for
          :class:`fenchel.KernelRidge`; refits that start from the fit to all rows for the
          other kernel estimators of this library; n fits from nothing for all else. What
          these learn (length scales, alpha) is learned once, from all rows: parameters have
          then seen each row that is left out, see Notes. The other two methods learn anew
          from the rows of each fit, but see ``learn_share``.
    coverage : float, default=0.9
        The probability 1 - δ in (0, 1) with which the interval is to hold the target.
    side : {"two-sided", "lower", "upper"}, default="two-sided"
        Which ends are wanted. One end has the whole δ to itself: its scores are the signed
        :math:`f_{-i}(x_i) - y_i` for a lower end, and minus these for an upper one.
    cv : int, float, splitter, iterable or "prefit", optional
        With "split", the share of calibration rows, by default 0.25; or folds, of which the
        first calibrates; or "prefit": the estimator is fitted already, and all rows given to
        ``fit`` calibrate (inside of a search, which clones, wrap it in
        :class:`sklearn.frozen.FrozenEstimator`). With "cv+", folds that hold each row once,
        by default 10 (with fewer rows than that, as many as there are rows). Not used
        with "jackknife+". A number stands for folds at random. A splitter by groups, such as
        GroupKFold, takes the ``groups`` of ``fit``, see Notes.
    learn_share : float, optional
        With "cv+", the share of rows, at random, from which an estimator of this library learns
        (length scales, alpha), once. They are in all fits, and only the others calibrate. By
        default it learns anew for each fold, and all rows calibrate, as they do where it learns
        nothing.
    random_state : int, RandomState or None, default=None
        Seed of what is at random in ``cv``; None is a fixed seed.
    verbose : int, default=0
        If positive, lines on the models without folds or rows, with the time that is left.

    Attributes
    ----------
    estimator_ : regressor
        The fitted model of ``predict``.
    conformity_scores_ : ndarray of shape (n_calibration_,)
        The scores R.
    calibration_indices_ : ndarray of shape (n_calibration_,)
        Rows that they belong to.
    n_calibration_ : int
        Number of rows that calibrate, those of weight zero not counted.
    quantile_ : float
        The score of rank ⌈(1 - δ)(n + 1)⌉, in the units of y: what is added on either side
        with "split", and about that with the others. With weights, that of a new row whose
        weight is the mean.
    learned_ : Learned or None
        What was learned with ``learn_share``, which ``estimator_`` has as its parameters.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn, where the estimator has them.

    Notes
    -----
    *What is guaranteed*, whatever the distribution, for a new row that is exchangeable with
    the calibration rows (for instance all independent, from one distribution), on average over
    calibration rows and new rows, not for each x:

    - "split": the interval holds the target with probability at least 1 - δ, and with
      ⌈(1 - δ)(n + 1)⌉ / (n + 1) exactly where scores have no ties.
    - "jackknife+": at least 1 - 2δ for any estimator that treats rows alike, and close to 1 - δ
      as a rule, where models hardly change when a row is left out.
    - "cv+" with K folds of n / K rows: at least
      1 - 2δ - min{2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1)}.

    The last two are proved by comparing scores of pairs of rows, hence for one-sided scores as
    well. With "jackknife+", the kernel estimators of this library share length scales and
    feature map of all rows among the models, and :class:`fenchel.KernelRidge` also alpha * N,
    N the number of rows: the statement is exact for a kernel with fixed parameters, up to
    ``kernel_error_``, and for length scales read off the data as long as one row has next
    to no influence on them. Where they are learned, and alpha with them, each row has had its
    part in the choice: no guarantee is left, and "split" and "cv+" are the ways to keep one.
    All other models are fitted from nothing to their rows.

    ``learn_share`` leaves the statement on "cv+" as it is, with n the rows that calibrate:
    parameters come from other rows. On tables of 2000 rows, 0.5 and 10 folds gave intervals whose
    score was 0.92 to 0.99 of that of "split" with 0.5, in 1.5 to 2.7 times the time, as models see
    nearly all rows and not a half; 5 folds that learn anew covered up to five points too much.

    *Weights* w are those under which ``fit`` minimizes, and in calibration the ratio of the
    densities of new rows and of calibration rows, up to a factor: what is held then is the
    coverage of the new rows (covariate shift). They must be a function of x, and
    ``predict_interval`` needs them for new rows as well. With w those of the n rows and
    w' that of the new one, quantiles are weighted:

    - "split": shares w_i / (Σw + w') of the scores, w' / (Σw + w') at infinity. At least 1 - δ
      [4]_, corollary 1.
    - "jackknife+": the same shares of :math:`f_{-i}(x) \pm R_i`. At least 1 - 2δ [5]_.
    - "cv+": shares w_i / (W_k + w') / K, with W_k the weight of the fold of row i. Each fold
      gives a p-value by [4]_ and twice their mean is one [6]_, so that this holds at least
      1 - 2δ. At equal weights it is wider than without: each fold has its own share at infinity.

    Weights of another kind, such as inverse variances, belong into an estimator that is fitted
    before (``cv="prefit"``).

    *Groups*: with a splitter by groups and ``groups``, whole groups are held out, so that scores
    are those of rows of groups that a model has not seen. A search in the place of the estimator
    whose own ``cv`` splits by groups is given those of its rows; what estimators learn by
    themselves they learn from rows whose groups they do not know. The statements above are for
    rows that are exchangeable, and rows of a group, which may depend on each other, are not:
    with few groups, intervals hold less than that of the rows of a new one. Give weights of 1
    over the number of rows of the group, and of 1 for new rows. If groups are exchangeable, and
    the rows within each, "split" then holds at least 1 - δ for a row of a new group: its shares
    are those of [7]_. "cv+" holds at least 1 - 2δ, as each fold gives a p-value by [7]_.

    References
    ----------
    .. [1] Vovk, Gammerman, Shafer (2005), Algorithmic learning in a random world; split form:
       Lei, G'Sell, Rinaldo, Tibshirani, Wasserman (2018), Distribution-free predictive
       inference for regression, theorem 2.2.
    .. [2] Barber, Candès, Ramdas, Tibshirani (2021), Predictive inference with the jackknife+,
       theorems 1 and 4.
    .. [3] Gupta, Kuchibhotla, Ramdas (2022), Nested conformal prediction and quantile
       out-of-bag ensemble methods.
    .. [4] Tibshirani, Barber, Candès, Ramdas (2019), Conformal prediction under covariate
       shift.
    .. [5] Prinster, Liu, Saria (2022), JAWS: auditing predictive uncertainty under covariate
       shift.
    .. [6] Vovk, Wang (2020), Combining p-values via averaging.
    .. [7] Lee, Foygel Barber, Willett (2023), Distribution-free inference with hierarchical data.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import make_sine_quantiles
    >>> from fenchel.model_selection import ConformalRegressor
    >>> X, y, _ = make_sine_quantiles(400, random_state=0)
    >>> model = ConformalRegressor(KernelRidge(alpha=1e-3), method="jackknife+")
    >>> interval = model.fit(X[:200], y[:200]).predict_interval(X[200:])
    >>> interval.shape
    (200, 2)
    >>> inside = (interval[:, 0] <= y[200:]) & (y[200:] <= interval[:, 1])
    >>> bool(np.mean(inside) >= 0.8)
    True
    """

    _default = KernelRidge

    def _ends(self, plain: Any) -> Columns:
        levels = levels_of(plain)
        if levels is not None and len(levels) > 1:
            raise ValueError(
                f"estimator must predict one number, got one with the levels {levels.tolist()}: "
                "ConformalQuantileRegressor calibrates the quantiles of such a model"
            )
        return 0, 0


def _are_several(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or len(value) not in (2, 3):
        return False
    methods = "fit", "predict", "get_params"
    return all(callable(getattr(each, name, None)) for each in value for name in methods)


class ConformalQuantileRegressor(Conformal):
    r"""Conformalized quantile regression: intervals as wide as the data are spread at x.

    With scores :math:`E_i = \max(l_{-i}(x_i) - y_i,\; y_i - u_{-i}(x_i))` of n rows at curves l
    and u that have not seen them,

    .. math:: \Bigl[\, q^-_i\{l_{-i}(x) - E_i\},\; q^+_i\{u_{-i}(x) + E_i\} \Bigr]

    with the ranks of :class:`ConformalRegressor`. Scores are negative where the curves are too
    far apart, so that intervals may shrink as well.

    Parameters
    ----------
    estimator : estimator or sequence of estimators, optional
        What predicts the quantiles, :class:`fenchel.QuantileRegressor` by default:

        - with a parameter ``levels``, as it has, and :class:`fenchel.ExpectileRegressor`, bare,
          inside of a :class:`PathSearchCV` or as the last step of a pipeline; or with
          ``default_quantiles``, as quantile forests have. The levels are set here, to
          (1 - coverage)/2 and (1 + coverage)/2, or to 1 - coverage or coverage for one side, and
          to 0.5 for ``predict``;
        - with a single level, such as ``HistGradientBoostingRegressor(loss="quantile")`` of
          scikit-learn and ``LGBMRegressor(objective="quantile")``: a model for each of these
          levels is fitted;
        - two or three regressors, from the lowest quantile to the highest, with levels of your
          own;
        - any that predicts several columns, of which the first and the last are the ends.

        With ``cv="prefit"`` they are fitted, where levels are known with those of the ends.
    method, coverage, side, cv, learn_share, random_state, verbose
        As in :class:`ConformalRegressor`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model of several levels.
    levels_ : ndarray of shape (n_levels,) or None
        Its levels, where they are known.
    conformity_scores_, calibration_indices_, n_calibration_, learned_
        As in :class:`ConformalRegressor`.
    quantile_ : float
        As in :class:`ConformalRegressor`: with "split" the interval is
        [l(x) - ``quantile_``, u(x) + ``quantile_``].
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn, where the estimator has them.

    Notes
    -----
    Guarantees and weights are those of :class:`ConformalRegressor`, as are those of
    "jackknife+" and "cv+", which hold for scores of any kind. ``predict_interval`` with
    another coverage calibrates the curves that are there, which is as valid, but less well
    adapted than fitting the levels of that coverage. Where curves cross by more than the
    scores put right, the interval is the point in the middle.

    References
    ----------
    Romano, Patterson, Candès (2019), Conformalized quantile regression, theorem 1. Gupta,
    Kuchibhotla, Ramdas (2022), Nested conformal prediction and quantile out-of-bag ensemble
    methods, for folds and single rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.model_selection import ConformalQuantileRegressor
    >>> X, y = load_engel(return_X_y=True)
    >>> model = ConformalQuantileRegressor(QuantileRegressor(alpha=1e-2), coverage=0.8)
    >>> interval = model.fit(X, y).predict_interval(X)
    >>> model.levels_.tolist()
    [0.1, 0.5, 0.9]
    >>> upper = ConformalQuantileRegressor(side="upper", coverage=0.8).fit(X, y)
    >>> bool(np.isneginf(upper.predict_interval(X)[:, 0]).all())
    True

    Around boosted trees:

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> trees = HistGradientBoostingRegressor(loss="quantile", max_iter=20)
    >>> model = ConformalQuantileRegressor(trees, coverage=0.8).fit(X, y)
    >>> model.predict_interval(X).shape
    (235, 2)
    """

    _default = QuantileRegressor
    constraints = declared(
        estimator=NONE
        | Having("a regressor", ("fit", "predict", "get_params"))
        | That("a pair of regressors", _are_several)
    )

    def _base(self) -> Any:
        given = super()._base()
        if not isinstance(given, (list, tuple)):
            return given
        return LevelModels.of_fitted(given) if self._prefit() else LevelModels(given)

    def _plain(self) -> Any:
        estimator = self._base()
        if self._prefit() or isinstance(self.estimator, (list, tuple)):
            return estimator
        return at_levels(estimator, sorted({_MEDIAN, *self._wanted(float(self.coverage))}))

    def _wanted(self, coverage: float) -> tuple[float, ...]:
        """Levels of the ends."""
        if self.side == "two-sided":
            return _level(0.5 * (1.0 - coverage)), _level(0.5 * (1.0 + coverage))
        return (_level(1.0 - coverage) if self.side == "lower" else coverage,)

    def _ends(self, plain: Any) -> Columns:
        self.levels_ = levels_of(plain)
        if self.levels_ is None:
            return {"two-sided": (0, -1), "lower": (0, 0), "upper": (-1, -1)}[self.side]
        places = [self._place(level) for level in self._wanted(float(self.coverage))]
        return places[0], places[-1]

    def _place(self, level: float) -> int:
        """Output of a level, where these are known."""
        assert self.levels_ is not None
        found = position_of_level(self.levels_, level)
        if found is None:
            raise ValueError(
                f"estimator must have the level {level:g} among its levels, got "
                f"{self.levels_.tolist()}"
            )
        return found

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict the median.

        Where levels are not known, the quantile in the middle, or the mean of the middle two.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        prediction = super().predict(X)
        if self.levels_ is None and prediction.ndim > 1:
            return np.asarray(np.median(np.sort(prediction, axis=1), axis=1))
        return prediction if prediction.ndim == 1 else prediction[:, self._place(_MEDIAN)]


def _level(value: float) -> float:
    """Without what differences leave in the last digits: 0.1 and not 0.09999999999999998."""
    return round(value, 12)


STORED_TYPES: tuple[type, ...] = (*get_args(HeldOut), LevelModels)
"""Parts of fitted wrappers."""

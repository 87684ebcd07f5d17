"""Conformal prediction intervals around any regressor."""

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
    r"""Conformal prediction intervals around the predictions of any regressor.

    The intervals are valid for any distribution. With scores :math:`R_i = |y_i - f_{-i}(x_i)|` of
    n rows, computed with models that were not fitted to row i, they are

    .. math:: \Bigl[\, q^-_i\{f_{-i}(x) - R_i\},\; q^+_i\{f_{-i}(x) + R_i\} \Bigr]

    At a coverage of 1 - δ, :math:`q^+` is the value of rank
    :math:`\lceil (1 - \delta)(n + 1) \rceil` from below and :math:`q^-` that from above. They are
    infinite if there are fewer values.

    Parameters
    ----------
    estimator : regressor, optional
        Any regressor with a single output; by default :class:`fenchel.KernelRidge`.
    method : {"split", "cv+", "jackknife+"}, default="split"
        - "split": one model f, calibrated on rows that it is not fitted to. The interval is
          f(x) ± ``quantile_``.
        - "cv+": one model for each fold; :math:`f_{-i}` is the model fitted without the fold of
          row i. All rows calibrate. ``predict`` uses one more model, fitted to all rows.
        - "jackknife+": one model for each row left out. For :class:`fenchel.KernelRidge` they
          are computed in closed form. The other kernel estimators of this library are refitted,
          starting from the fit to all rows. All other estimators are fitted n times from
          scratch. Estimators of this library learn their parameters (length scales, alpha) once,
          from all rows, so that the parameters have seen each row that is left out; see Notes.
          With the other two methods they learn anew from the rows of each fit, except with
          ``learn_share``.
    coverage : float, default=0.9
        The probability 1 - δ in (0, 1) with which the interval should contain the target.
    side : {"two-sided", "lower", "upper"}, default="two-sided"
        Which ends are computed. A single end has the whole δ: its scores are the signed
        :math:`f_{-i}(x_i) - y_i` for a lower end, and minus these for an upper one.
    cv : int, float, splitter, iterable or "prefit", optional
        With "split": the share of calibration rows, by default 0.25; or folds, of which the
        first is used for calibration; or "prefit" for an estimator that is already fitted, with
        all rows given to ``fit`` used for calibration (inside a search, which clones, wrap the
        estimator in :class:`sklearn.frozen.FrozenEstimator`). With "cv+": folds that hold out
        each row once, by default 10, or as many as there are rows if these are fewer. Ignored
        with "jackknife+". A number means random folds, of the rows of positive weight. A splitter
        by groups, such as GroupKFold, uses the ``groups`` of ``fit``, see Notes.
    learn_share : float, optional
        With "cv+", the share of rows, drawn at random, from which an estimator of this library
        learns its parameters (length scales, alpha) once. These rows are in all fits, and only
        the others calibrate. By default the estimator learns anew for each fold and all rows
        calibrate, as they also do if it learns nothing.
    random_state : int, RandomState or None, default=None
        Seed of the random splits of ``cv``; None is a fixed seed.
    verbose : int, default=0
        If positive, lines on the progress of the fits without folds or rows, with the time left.

    Attributes
    ----------
    estimator_ : regressor
        The fitted model that ``predict`` uses.
    conformity_scores_ : ndarray of shape (n_calibration_,)
        The scores R.
    calibration_indices_ : ndarray of shape (n_calibration_,)
        Indices of the calibration rows, in the order of the scores. With "split" and kernel values
        as X, new rows have those against all other rows, in their order.
    n_calibration_ : int
        Number of calibration rows, without those of weight zero.
    quantile_ : float
        The score of rank ⌈(1 - δ)(n + 1)⌉, in the units of y. With "split" it is added on either
        side; with the other methods the amount is about the same. With weights it is the
        quantile for a new row of mean weight.
    learned_ : Learned or None
        What was learned with ``learn_share``, and is a parameter of ``estimator_``.
    n_features_in_, feature_names_in_
        As in scikit-learn, if the estimator has them.

    Notes
    -----
    *Guarantees.* They hold for any distribution and for a new row that is exchangeable with the
    calibration rows (for instance, if all rows are independent draws from one distribution). They
    hold on average over calibration rows and new rows, not for each x:

    - "split": the interval contains the target with probability at least 1 - δ. If scores have no
      ties, the probability is exactly ⌈(1 - δ)(n + 1)⌉ / (n + 1).
    - "jackknife+": at least 1 - 2δ for any estimator whose fit does not depend on the order of
      the rows, and usually close to 1 - δ, if models hardly change when a row is left out.
    - "cv+" with K folds of n / K rows: at least
      1 - 2δ - min{2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1)}.

    The proofs of the last two compare scores of pairs of rows, so they apply to one-sided scores
    as well. With "jackknife+", the models of a kernel estimator of this library share the length
    scales and the feature map of all rows, and with :class:`fenchel.KernelRidge` also alpha * N,
    where N is the number of rows. The guarantee is exact for a kernel with fixed parameters and
    rows of equal weight, up to ``kernel_error_``. For length scales computed from the data by a
    rule it holds as long as one row has next to no influence on them. If length scales and alpha
    are learned, each row has taken part in the choice and there is no guarantee: use "split" or
    "cv+" to keep one. All other models are fitted from scratch to their rows.

    With ``learn_share`` the parameters come from other rows. The guarantee of "cv+" then holds
    with n the number of calibration rows, as far as folds have equally many of these. On tables
    of 2000 rows, 0.5 and 10 folds gave intervals whose interval score was 0.92 to 0.99 of that of
    "split" with 0.5, in 1.5 to 2.7 times the time, as the models are fitted to nearly all rows
    instead of half. With 5 folds that learn anew, the coverage was up to five points too high.

    *Weights* w are the sample weights of the fit. In calibration they are the ratio of the
    densities of new rows and of calibration rows, up to a factor: the intervals then have the
    coverage for the new rows (covariate shift). Weights must be a function of x, and
    ``predict_interval`` needs them for new rows as well. With w the weights of the n rows and w'
    that of the new row, quantiles are weighted:

    - "split": shares w_i / (Σw + w') of the scores, w' / (Σw + w') at infinity. At least 1 - δ
      [4]_, corollary 1.
    - "jackknife+": the same shares of :math:`f_{-i}(x) \pm R_i`. At least 1 - 2δ [5]_.
    - "cv+": shares w_i / (W_k + w') / K, with W_k the weight of the fold of row i. Each fold
      gives a p-value by [4]_ and twice their mean is a p-value [6]_, so that the coverage is at
      least 1 - 2δ. With equal weights the intervals are wider than without weights, since each
      fold has its own share at infinity.

    Other weights, such as inverse variances, should be used in an estimator that is fitted
    before (``cv="prefit"``).

    *Groups.* With a splitter by groups and ``groups``, whole groups are held out, so that scores
    are those of rows in groups that a model has not seen. An estimator that takes ``groups``
    itself, or a search whose own ``cv`` splits by groups, is given the groups of its rows. A
    pipeline is not. The guarantees above require exchangeable rows, which rows of the same group
    are not if they depend on each other. With few groups, intervals then contain less than that
    share of the rows of a new group. As a remedy, give each row the weight
    1 / (number of rows of its group), and new rows the weight 1. If groups are exchangeable, and
    the rows within each group too, "split" then covers a row of a new group with probability at
    least 1 - δ: its shares are those of [7]_. "cv+" covers it with probability at least 1 - 2δ,
    as each fold gives a p-value by [7]_.

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
    r"""Conformalized quantile regression: calibrated intervals of varying width.

    With scores :math:`E_i = \max(l_{-i}(x_i) - y_i,\; y_i - u_{-i}(x_i))` of n rows, where the
    curves l and u were not fitted to row i, the intervals are

    .. math:: \Bigl[\, q^-_i\{l_{-i}(x) - E_i\},\; q^+_i\{u_{-i}(x) + E_i\} \Bigr]

    with the ranks of :class:`ConformalRegressor`. If the curves are too far apart, scores are
    negative and the intervals shrink.

    Parameters
    ----------
    estimator : estimator or sequence of estimators, optional
        Estimator of the quantiles; by default :class:`fenchel.QuantileRegressor`. It may be

        - an estimator with a parameter ``levels``, such as :class:`fenchel.QuantileRegressor` and
          :class:`fenchel.ExpectileRegressor`, by itself, inside a :class:`PathSearchCV` or as
          the last step of a pipeline; or one with ``default_quantiles``, such as quantile
          forests. The levels are set here: to (1 - coverage)/2 and (1 + coverage)/2, or to
          1 - coverage or coverage for one side, and to 0.5 for ``predict``;
        - an estimator of one level, such as ``HistGradientBoostingRegressor(loss="quantile")`` of
          scikit-learn and ``LGBMRegressor(objective="quantile")``: one model is fitted for each
          of these levels;
        - a sequence of two or three regressors, from the lowest quantile to the highest, with
          levels chosen by the user;
        - any estimator that predicts several columns, of which the first and the last are the
          ends.

        With ``cv="prefit"`` they are already fitted; if levels are known, those of the ends must
        be among them.
    method, coverage, side, cv, learn_share, random_state, verbose
        As in :class:`ConformalRegressor`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model of several levels.
    levels_ : ndarray of shape (n_levels,) or None
        The levels of ``estimator_``, if known.
    conformity_scores_, calibration_indices_, n_calibration_, learned_
        As in :class:`ConformalRegressor`.
    quantile_ : float
        As in :class:`ConformalRegressor`: with "split" the interval is
        [l(x) - ``quantile_``, u(x) + ``quantile_``].
    n_features_in_, feature_names_in_
        As in scikit-learn, if the estimator has them.

    Notes
    -----
    Guarantees and weights are those of :class:`ConformalRegressor`, for all three methods, as
    they hold for any scores. ``predict_interval`` with another coverage calibrates the fitted
    curves. This is as valid, but less well adapted than fitting the levels of that coverage. If
    the curves cross by more than the scores correct, the interval is the point in the middle.

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
        """Index of the output of a level, if levels are known."""
        assert self.levels_ is not None
        found = position_of_level(self.levels_, level)
        if found is None:
            raise ValueError(
                f"estimator must have the level {level:g} among its levels, got "
                f"{self.levels_.tolist()}"
            )
        return found

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict the level 0.5: the median of quantiles, the mean of expectiles.

        If levels are not known, the middle quantile is returned, or the mean of the middle two.

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
    """Round off errors of differences: 0.1 and not 0.09999999999999998."""
    return round(value, 12)


STORED_TYPES: tuple[type, ...] = (*get_args(HeldOut), LevelModels)
"""Types that fitted wrappers consist of."""

"""The model inside pipelines and searches, and the meaning of its predictions.

An ``estimator`` may be a model by itself or inside pipelines and searches. It must be fitted
unless only its name is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel._typing import FloatArray
from fenchel.losses import Loss, Pinball, SquaredPinball
from fenchel.metrics import position_of_level
from fenchel.model_selection import ConformalQuantileRegressor

_STATISTICS = ("quantiles", "expectiles")  # that losses of levels elicit
_TITLES = {
    "QuantileRegressor": "Quantiles",
    "ExpectileRegressor": "Expectiles",
    "SVR": "Support vector regression",
    "KernelRidge": "Kernel ridge regression",
    "NonCrossingQuantileRegressor": "Quantiles that never cross",
    "HeteroscedasticRegressor": "Mean and standard deviation",
    "DensityEstimator": "Density",
    "FunctionalRegressor": "Curves",
    "ConformalRegressor": "Calibrated intervals",
    "ConformalQuantileRegressor": "Calibrated intervals",
}
_SINGLE = {"mean": "mean", "expectiles": "mean", "quantiles": "median"}  # by the statistic
_MOVED = ("offset_", "gap_constants_")  # which may be others than those that are certified
_WRAPPED = ("best_estimator_", "regressor_")  # of searches, of TransformedTargetRegressor


def final_estimator(estimator: Any) -> Any:
    """Return the model inside pipelines, searches and transformed targets.

    Parameters
    ----------
    estimator : estimator
        Must be fitted if it is a search.

    Returns
    -------
    estimator
        The innermost last step, or ``estimator`` itself if it is not wrapped.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fenchel import SVR
    >>> from fenchel.inspection import final_estimator
    >>> type(final_estimator(make_pipeline(StandardScaler(), SVR()))).__name__
    'SVR'
    """
    inner = inner_estimator(estimator)
    return estimator if inner is None else final_estimator(inner)


def inner_estimator(estimator: Any) -> Any:
    """The estimator directly inside a pipeline, search or transformed target; None for a model."""
    for name in _WRAPPED:
        if hasattr(estimator, name):
            return getattr(estimator, name)
    return estimator[-1] if hasattr(estimator, "steps") else None


def calibrated_estimator(estimator: Any) -> Any:
    """Return the estimator whose predictions conformal intervals calibrate.

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    estimator or None
        A model or a pipeline, which takes the rows of :func:`rows_for_final`; None if there are
        no calibrated intervals.

    Examples
    --------
    >>> from fenchel import SVR
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import calibrated_estimator
    >>> from fenchel.model_selection import ConformalRegressor
    >>> model = ConformalRegressor(SVR(learn=False)).fit(*load_engel(return_X_y=True))
    >>> calibrated_estimator(model)
    SVR(learn=False)
    """
    model = final_estimator(estimator)
    return model.estimator_ if hasattr(model, "conformity_scores_") else None


def certified_model(estimator: Any) -> Any:
    """Return the model that has the certificate, inside calibrated intervals if there are any.

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    estimator
        The same as by :func:`final_estimator` if there are no calibrated intervals.

    Examples
    --------
    >>> from fenchel import SVR
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import certified_model
    >>> from fenchel.model_selection import ConformalRegressor
    >>> model = ConformalRegressor(SVR(learn=False)).fit(*load_engel(return_X_y=True))
    >>> certified_model(model).certificate_.relative_gap < 1e-6
    True
    """
    inside = calibrated_estimator(estimator)
    return final_estimator(estimator if inside is None else inside)


def learned_of(estimator: Any) -> Any:
    """Return the learned parameters of a model, or those common to folds of calibrated intervals.

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    Learned or None
        None if nothing was learned.

    Examples
    --------
    >>> from fenchel import SVR
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import learned_of
    >>> learned_of(SVR(learn=False).fit(*load_engel(return_X_y=True))) is None
    True
    """
    ways = final_estimator(estimator), certified_model(estimator)
    found = (getattr(each, "learned_", None) for each in ways)
    return next((each for each in found if each is not None), None)


def rows_for_final(estimator: Any, X: Any) -> Any:
    """Transform rows to the form in which the model inside pipelines and searches takes them.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    X : DataFrame or array-like of shape (n_samples, n_features)
        Rows in the form that ``estimator.predict`` takes.

    Returns
    -------
    DataFrame or array-like
        Rows in the form that the ``predict`` of :func:`final_estimator` takes.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from fenchel import SVR
    >>> from fenchel.inspection import rows_for_final
    >>> model = make_pipeline(MinMaxScaler(), SVR()).fit([[0.0], [4.0]], [0.0, 1.0])
    >>> rows_for_final(model, [[1.0]])
    array([[0.25]])
    """
    for name in _WRAPPED:
        if hasattr(estimator, name):
            return rows_for_final(getattr(estimator, name), X)
    if not hasattr(estimator, "steps"):
        return X
    return rows_for_final(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)


def fitted_model(estimator: Any, *attributes: str, what: str) -> Any:
    """Return the model inside, which must have these fitted attributes.

    Parameters
    ----------
    estimator : estimator
        As in :func:`final_estimator`.
    *attributes : str
        Attributes that the model must have.
    what : str
        Description of the attributes, for the error message.

    Returns
    -------
    estimator
        The model.

    Raises
    ------
    ValueError
        If it lacks one of them; the message says which.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import fitted_model
    >>> X, y = load_engel(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), KernelRidge(learn=False)).fit(X, y)
    >>> type(fitted_model(pipeline, "history_", what="a history")).__name__
    'KernelRidge'
    """
    model = final_estimator(estimator)
    missing = [name for name in attributes if not hasattr(model, name)]
    if missing:
        raise ValueError(
            f"estimator must be fitted and have {' and '.join(attributes)}, {what}, "
            f"got {type(model).__name__} without {' and '.join(missing)}"
        )
    return model


def levels_of(estimator: Any) -> FloatArray | None:
    """Return the levels of the columns of predictions, or None for models without levels.

    Returns
    -------
    ndarray of shape (n_levels,) or None

    Examples
    --------
    >>> from fenchel import SVR, QuantileRegressor
    >>> from fenchel.inspection import levels_of
    >>> levels_of(QuantileRegressor([0.1, 0.9]).fit([[0.0], [1.0]], [0.0, 1.0]))
    array([0.1, 0.9])
    >>> levels_of(SVR().fit([[0.0], [1.0]], [0.0, 1.0])) is None
    True
    """
    model = final_estimator(estimator)
    levels = getattr(model, "levels_", None)
    if levels is None or isinstance(model, ConformalQuantileRegressor):
        return None  # the latter has levels of the model inside, and predicts one number
    return np.asarray(levels, dtype=np.float64)


def statistic_of(estimator: Any) -> str:
    """Return what the levels of a model refer to: "quantiles", "expectiles", or else "levels".

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    str

    Examples
    --------
    >>> from fenchel import ExpectileRegressor
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import statistic_of
    >>> statistic_of(ExpectileRegressor(0.9, learn=False).fit(*load_engel(return_X_y=True)))
    'expectiles'
    """
    model = final_estimator(estimator)
    elicited = getattr(getattr(model, "loss_", None), "statistic", "levels")
    return elicited if elicited in _STATISTICS else "levels"


def prediction_name(estimator: Any) -> str:
    """Name the prediction of a model without levels.

    Parameters
    ----------
    estimator : estimator
        Fitted, by itself or inside pipelines and searches.

    Returns
    -------
    str
        "mean" or "median" if the model, or the one inside calibrated intervals, says so;
        otherwise "prediction".

    Examples
    --------
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import prediction_name
    >>> from fenchel.model_selection import ConformalQuantileRegressor
    >>> prediction_name(ConformalQuantileRegressor().fit(*load_engel(return_X_y=True)))
    'median'
    """
    model, inside = final_estimator(estimator), certified_model(estimator)
    loss = getattr(inside, "loss_", None)
    levels = getattr(model, "levels_", getattr(inside, "levels_", getattr(loss, "levels", None)))
    if levels is None and hasattr(inside, "predict_distribution"):
        return "mean"  # of the distributions
    if levels is not None and position_of_level(levels, 0.5) is None:
        return "prediction"
    unknown = "" if levels is None else "quantiles"
    elicited = getattr(loss, "statistic", unknown)
    return _SINGLE.get(elicited, "prediction")


def level_losses(estimator: Any) -> list[Loss] | None:
    """Return the losses that elicit the predictions of a model of levels; None for other models.

    Returns
    -------
    list of Loss, or None
        For each column of predictions the pinball loss of its level (squared for expectiles),
        without the insensitivity or the constraints of the fit.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.inspection import level_losses
    >>> model = QuantileRegressor([0.1, 0.9], epsilon=0.2).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> level_losses(model)
    [Pinball([0.1]), Pinball([0.9])]
    """
    levels = levels_of(estimator)
    if levels is None:
        return None
    loss = SquaredPinball if statistic_of(estimator) == "expectiles" else Pinball
    return [loss(float(level)) for level in levels]


def has_moved_offsets(estimator: Any) -> bool:
    """Whether ``offset_``, or a constant beside it, differs from that of ``certificate_``.

    See ``refit_offsets`` of :class:`~fenchel.QuantileRegressor`.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_mcycle
    >>> from fenchel.inspection import has_moved_offsets
    >>> X, y = load_mcycle(return_X_y=True)
    >>> has_moved_offsets(QuantileRegressor().fit(X, y))
    True
    """
    model = final_estimator(estimator)
    names = [name for name in _MOVED if hasattr(model, f"certified_{name}")]
    return any(
        np.any(getattr(model, name) != getattr(model, f"certified_{name}")) for name in names
    )


def model_title(estimator: Any) -> str:
    """Return the name of a model for a heading.

    Returns
    -------
    str
        The name of the class if there is no better one.

    Examples
    --------
    >>> from fenchel import KernelRidge, Lasso
    >>> from fenchel.inspection import model_title
    >>> model_title(KernelRidge()), model_title(Lasso())
    ('Kernel ridge regression', 'Lasso')
    """
    name = type(final_estimator(estimator)).__name__
    return _TITLES.get(name, name)

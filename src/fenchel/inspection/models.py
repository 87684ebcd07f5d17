"""The model inside pipelines and searches, and what its predictions are.

An ``estimator`` is bare or inside pipelines and searches, and fitted unless its name will do.
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
    """The model inside pipelines, searches and transformed targets.

    Parameters
    ----------
    estimator : estimator
        Fitted, where it is a search.

    Returns
    -------
    estimator
        The last step of the last; ``estimator`` itself if nothing is around it.

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
    """The estimator right inside a pipeline, search or transformed target; None in a model."""
    for name in _WRAPPED:
        if hasattr(estimator, name):
            return getattr(estimator, name)
    return estimator[-1] if hasattr(estimator, "steps") else None


def calibrated_estimator(estimator: Any) -> Any:
    """The estimator that calibrated intervals are around.

    Parameters
    ----------
    estimator : estimator
        Fitted, bare or inside pipelines and searches.

    Returns
    -------
    estimator or None
        A model or a pipeline, which takes the rows of :func:`rows_for_final`; None where
        nothing was calibrated.

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
    """The model that a certificate is of: the one inside of calibrated intervals if there are any.

    Parameters
    ----------
    estimator : estimator
        Fitted, bare or inside pipelines and searches.

    Returns
    -------
    estimator
        That of :func:`final_estimator` where nothing was calibrated.

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
    """What a fitted model has learned, or once for the folds of calibrated intervals.

    Parameters
    ----------
    estimator : estimator
        Fitted, bare or inside pipelines and searches.

    Returns
    -------
    Learned or None
        None where nothing was learned.

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
    """Rows as the model inside pipelines and searches sees them.

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
    """The model inside, which must have these fitted attributes.

    Parameters
    ----------
    estimator : estimator
        As in :func:`final_estimator`.
    *attributes : str
        What it must have.
    what : str
        What these are, for the error.

    Returns
    -------
    estimator
        The model.

    Raises
    ------
    ValueError
        If it lacks one of them; the sentence names which.

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
    """Levels of the columns of predictions; None for models that predict targets.

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
    """What the levels of a model are levels of: "quantiles", "expectiles", or else "levels".

    Parameters
    ----------
    estimator : estimator
        Fitted, bare or inside pipelines and searches.

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
    """What the one number is that a model without levels predicts for a row.

    Parameters
    ----------
    estimator : estimator
        Fitted, bare or inside pipelines and searches.

    Returns
    -------
    str
        "mean" or "median" where the model or the one inside of calibrated intervals says so,
        else "prediction".

    Examples
    --------
    >>> from fenchel.datasets import load_engel
    >>> from fenchel.inspection import prediction_name
    >>> from fenchel.model_selection import ConformalQuantileRegressor
    >>> prediction_name(ConformalQuantileRegressor().fit(*load_engel(return_X_y=True)))
    'median'
    """
    model, inside = final_estimator(estimator), certified_model(estimator)
    levels = getattr(model, "levels_", getattr(inside, "levels_", None))
    if levels is None and hasattr(inside, "predict_distribution"):
        return "mean"  # of the distributions
    if levels is not None and position_of_level(levels, 0.5) is None:
        return "prediction"
    unknown = "" if levels is None else "quantiles"
    elicited = getattr(getattr(inside, "loss_", None), "statistic", unknown)
    return _SINGLE.get(elicited, "prediction")


def level_losses(estimator: Any) -> list[Loss] | None:
    """The losses that elicit what a model of levels predicts; None for other models.

    Returns
    -------
    list of Loss, or None
        For each column of predictions the pinball loss of its level, squared for expectiles,
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
    """Whether ``offset_``, or a constant beside it, is not the one that ``certificate_`` is of.

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
    """What a model is, for a heading.

    Returns
    -------
    str
        The name of the class where there is no better one.

    Examples
    --------
    >>> from fenchel import KernelRidge, Lasso
    >>> from fenchel.inspection import model_title
    >>> model_title(KernelRidge()), model_title(Lasso())
    ('Kernel ridge regression', 'Lasso')
    """
    name = type(final_estimator(estimator)).__name__
    return _TITLES.get(name, name)

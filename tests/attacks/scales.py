"""Data, weights and strengths in units from 1e-300 to 1e300.

A fit ends with a finite model whose certificate is that of its own predictions, or with one
sentence; and in other units, as long as they are powers of two, the model is the same.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from attacks import Outcome
from fenchel import (
    SVR,
    ExpectileRegressor,
    GroupLasso,
    KernelRidge,
    Lasso,
    LinearRegression,
    QuantileRegressor,
    Ridge,
)
from fenchel.functional import FunctionalRegressor
from fenchel.learning import Learning

IN_CI = 120
IN_FULL = 4000
SHARES = 12

_BRIEF = Learning(max_evaluations=4)
_LINEAR = (LinearRegression, Ridge, Lasso, GroupLasso)
_UNITS_AGREE = 1e-9  # of the spread of the predictions, or of their largest


def attack(count: int, seed: int) -> Outcome:
    """Fit every estimator in extreme units, and judge what comes back by hand."""
    outcome = Outcome()
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        task = _in_other_units if number % 3 == 0 else _in_extreme_units
        what, wrong = task(rng)
        outcome.counts[what] += 1
        if wrong:
            outcome.failures.append(f"try {number} of seed {seed}: {wrong}")
    return outcome


def _models(rng):
    """An estimator, and how its parameters go with the units of X and of y."""
    alpha, several = float(10.0 ** rng.uniform(-4, 0)), bool(rng.integers(2))
    levels = [0.2, 0.5, 0.7] if several else 0.3
    choices = [
        (LinearRegression(), {}),
        (Ridge(alpha), {"alpha": (2, 0)}),
        (Lasso(alpha), {"alpha": (1, 1)}),
        (Lasso(radius=1.0), {"radius": (-1, 1)}),
        (GroupLasso(alpha=alpha), {"alpha": (1, 1)}),
        (KernelRidge(alpha, learn=False), {}),
        (SVR(alpha=alpha, epsilon=0.1, learn=False), {"alpha": (0, -1), "epsilon": (0, 1)}),
        (QuantileRegressor(levels, alpha=alpha, learn=False), {"alpha": (0, -1)}),
        (ExpectileRegressor(levels, alpha=alpha, learn=False), {}),
        (KernelRidge(learn=_BRIEF), {}),
        (SVR(learn=_BRIEF), {}),
        (QuantileRegressor(levels, learn=_BRIEF), {}),
        (FunctionalRegressor(alpha=alpha, learn=_BRIEF), {}),
        (
            FunctionalRegressor("huber", kappa=0.5, alpha=alpha, learn=_BRIEF),
            {"kappa": (0, 1)},
        ),
        (
            FunctionalRegressor(
                "squared_epsilon_insensitive", epsilon=0.2, alpha=alpha, learn=False
            ),
            {"epsilon": (0, 1)},
        ),
    ]
    return choices[rng.integers(len(choices))]


def _data(rng, model):
    n, d = int(rng.integers(5, 25)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) + float(rng.choice([0.0, 3.0, 100.0]))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n) + float(rng.choice([0.0, 10.0]))
    if isinstance(model, FunctionalRegressor):
        y = y[:, None] + rng.standard_normal(6)
    return X, y, rng.uniform(0.2, 2.0, n)


def _fitted(model, X, y, weight):
    """The fitted model; a sentence, or what went wrong, as a string."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return model.fit(X, y, sample_weight=weight), None
        except (ValueError, TypeError) as error:
            sentence = str(error)
            plain = "\n" not in sentence and len(sentence) < 300
            return None, None if plain else f"not one sentence: {sentence!r}"
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"


def _in_extreme_units(rng):
    model, _ = _models(rng)
    X, y, weight = _data(rng, model)
    powers = [_power(rng) for _ in range(4)]
    X, y, weight = (
        values * 10.0**power for values, power in zip((X, y, weight), powers, strict=False)
    )
    if getattr(model, "alpha", None) is not None:
        model.alpha = float(model.alpha * 10.0 ** powers[3])
    name = f"{model!r} with units of X, y, weights and alpha of 10**{powers}"
    fitted, wrong = _fitted(model, X, y, weight)
    if fitted is None:
        return "a sentence" if wrong is None else "an error", wrong and f"{name}: {wrong}"
    wrong = _judged(fitted, X, y, weight)
    ended = "converged" if fitted.status_.converged else "not converged, with its true gap"
    if _says_nothing(fitted):
        ended = "not converged, with a gap above the loss of a constant"
    return ended if wrong is None else "a wrong fit", wrong and f"{name}: {wrong}"


def _power(rng):
    """Most often small, and sometimes to the end of the numbers."""
    sizes = [0, 8, 30, 100, 150, 300]
    return int(rng.choice([-1, 1]) * rng.choice(sizes, p=[0.4, 0.3, 0.1, 0.08, 0.07, 0.05]))


def _judged(model, X, y, weight):
    """What is wrong with a fitted model, or None."""
    certificate = model.certificate_
    numbers = [certificate.primal, certificate.dual, certificate.unit, certificate.relative_gap]
    predicted = np.asarray(model.predict(X))
    if not model.status_.converged and certificate.dual == -np.inf:
        numbers[1] = 0.0  # a bound that says nothing, and says so
    for values in (*_parameters(model), predicted, np.array(numbers[:3])):
        if not np.isfinite(values).all():
            return f"not finite: {certificate}"
    if model.status_.converged and not abs(certificate.relative_gap) <= getattr(
        model, "tol", 1e-6
    ):
        return f"converged with {certificate}"
    if _says_nothing(model):
        return None  # predictions may be rounding errors then, on which no two programs agree
    if hasattr(model, "certified_offset_"):  # the certificate is of the offsets of the fit
        predicted = predicted - (model.offset_ - model.certified_offset_)
    losses, penalties = _loss(model, y, predicted, weight), _penalties(model, X)
    rounding = _rounding(model)
    off = [
        abs(float(losses + penalty) - certificate.primal) - 1e-5 * float(penalty) - rounding
        for penalty in penalties
    ]
    if not min(off) <= 1e-8 * (certificate.unit + certificate.primal) + np.finfo(float).tiny:
        return f"by hand {losses} with {penalties}, but {certificate}"
    return None


def _says_nothing(model):
    """Whether a fit that did not converge is bounded by less than no model at all."""
    return not model.status_.converged and not model.certificate_.relative_gap <= 1.0


def _parameters(model):
    names = ("coef_", "intercept_", "weights_", "dual_coef_", "offset_", "center_")
    return [np.asarray(getattr(model, each)) for each in names if hasattr(model, each)]


def _loss(model, y, predicted, weight):
    """The printed mean loss of predictions, in long doubles."""
    share = weight / np.max(weight)
    share = share / share.astype(np.longdouble).sum()
    target = y.astype(np.longdouble)
    if predicted.ndim > target.ndim:
        target = target[:, None]
    residual = (target - predicted).reshape(len(y), -1)
    unit = np.abs(residual).max()
    if unit == 0.0:
        return np.longdouble(0.0)
    r = residual / unit
    size = np.abs(r)
    if isinstance(model, FunctionalRegressor):
        length = np.sqrt((r**2).mean(axis=1))
        losses = _of_length(model, length, unit)
    elif isinstance(model, SVR):
        return share @ np.maximum(size - model.epsilon_ / unit, 0.0).sum(axis=1) * unit
    elif isinstance(model, (QuantileRegressor, ExpectileRegressor)):
        levels = np.atleast_1d(model.levels)
        slope = np.where(r > 0.0, levels, 1.0 - levels)
        if isinstance(model, QuantileRegressor):
            return share @ (slope * size).sum(axis=1) * unit
        losses = 0.5 * (slope * r**2).sum(axis=1)
    else:
        losses = 0.5 * (r**2).sum(axis=1)
    return share @ losses * unit * unit


def _of_length(model, length, unit):
    if model.loss == "huber":
        kappa = model.kappa / unit
        return np.where(length <= kappa, 0.5 * length**2, kappa * (length - 0.5 * kappa))
    if model.loss == "squared":
        return 0.5 * length**2
    return 0.5 * np.maximum(length - model.epsilon / unit, 0.0) ** 2


def _rounding(model):
    """Of the norm of a function, by the digits that values of its kernel have."""
    if not hasattr(model, "feature_map_"):
        return 0.0
    coef = np.abs(model.feature_map_.coefficients(model.weights_))
    values = float(np.max(model.kernel_.diag(model.feature_map_.landmarks_), initial=0.0))
    between = getattr(model, "output_kernel_", None)
    if between is not None:
        values *= float(np.max(between.diag(model.grid_[:, None])))
    return 32 * np.finfo(float).eps * 0.5 * _strength(model) * float(coef.sum()) ** 2 * values


def _strength(model):
    """As given, or as learned."""
    return getattr(model, "alpha_", model.alpha)


def _penalties(model, X):
    """The printed penalty, in the ways in which a model keeps what it needs."""
    long = np.longdouble
    if isinstance(model, LinearRegression) or getattr(model, "radius", None) is not None:
        return [long(0.0)]
    alpha = long(_strength(model))
    if isinstance(model, Ridge):
        return [0.5 * alpha * (model.coef_.astype(long) ** 2).sum()]
    if isinstance(model, _LINEAR):
        return [alpha * np.abs(model.coef_.astype(long)).sum()]
    coef = model.feature_map_.coefficients(model.weights_).astype(long)
    landmarks = model.feature_map_.landmarks_
    gram = model.kernel_(landmarks).astype(long) if len(landmarks) else np.zeros((0, 0), long)
    if isinstance(model, FunctionalRegressor):
        between = model.output_kernel_(model.grid_[:, None])
    else:
        between = np.linalg.pinv(model.coupling_, hermitian=True)
    by_weights = 0.5 * alpha * ((gram @ coef) * (coef @ between)).sum()
    if isinstance(model, FunctionalRegressor):
        return [by_weights]
    values = model.predict(X).reshape(len(X), -1).astype(long) - model.offset_
    return [by_weights, 0.5 * alpha * (model.dual_coef_ * values[model.support_]).sum()]


def _in_other_units(rng):
    """The same fit in units that are powers of two."""
    model, rules = _models(rng)
    X, y, weight = _data(rng, model)
    limit = int(rng.choice([8, 30, 100, 400]))
    a, b, c = (int(rng.integers(-limit, limit + 1)) for _ in range(3))
    other = clone(model)
    for name, (of_x, of_y) in rules.items():
        setattr(other, name, float(np.ldexp(getattr(model, name), a * of_x + b * of_y)))
    name = f"{model!r} with units of X, y and weights of 2**{[a, b, c]}"
    once, wrong = _fitted(model, X, y, weight)
    if once is None:
        return "an error", f"{name}: {wrong or 'refused in units of one'}"
    fitted, wrong = _fitted(other, np.ldexp(X, a), np.ldexp(y, b), np.ldexp(weight, c))
    if fitted is None:
        return "a sentence in other units" if wrong is None else "an error", (
            wrong and f"{name}: {wrong}"
        )
    first, second = once.predict(X), np.ldexp(fitted.predict(np.ldexp(X, a)), -b)
    off = float(np.abs(first - second).max() / np.abs(first).max())
    if not off <= _UNITS_AGREE:
        return "another model in other units", f"{name}: predictions differ by {off:.1e}"
    return "the same in other units", None

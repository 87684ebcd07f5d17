"""Risk bounds for fitted estimators that account for choices made with the sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fenchel._typing import FloatArray
from fenchel._validation import BOOLEAN
from fenchel.bounds._applied import of_fit, range_of
from fenchel.bounds._reading import (
    Fit,
    affine_part,
    inner_of,
    is_linear,
    read,
    read_also,
    sample_of,
)
from fenchel.bounds._result import IID, Bound, check_delta, check_real
from fenchel.bounds.complexity import affine_pseudo_dimension
from fenchel.bounds.general import pseudo_dimension_bound


def bound(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    target_bound: Any = None,
    delta: float = 0.05,
    radius: Any = None,
    residual_bound: float | None = None,
    norm_bound: float | None = None,
    offset_bound: float | None = None,
    clip: bool = False,
    empirical: bool = False,
    smallest: bool = False,
) -> Bound:
    r"""Bound the risk of a fitted estimator from its training sample.

    .. math:: R(h) \le \hat R_S(h)
              + 2 \sum_j \mu_j \frac{\Lambda r \sqrt{B_{jj}} + \beta}{\sqrt n}
              + M \sqrt{\frac{\log(1 / \delta_\Lambda)}{2n}}

    Λ is at least the norm of the fit, and β is at least the distance of its offsets from the
    middle of the range of y. μ_j is the slope and M the largest value of the loss over the
    residuals that functions of this class can have. For a loss that couples outputs, Maurer's
    vector contraction replaces the sum.

    The theorems hold for a class fixed in advance, but *the norm is chosen by the data*. They are
    therefore applied to all balls Λ = 2^k a/r, k an integer, with a half the range of y. The
    probability of failure is divided among them: δ_Λ = ⅔ δ / ((\|k\| + 1)(\|k\| + 2)), which sum
    to δ. Offsets, β = 2^l a, are treated alike with a further share of this form. The cost is the
    term "choice of the class". It is saved if you give ``norm_bound`` and ``offset_bound`` that
    were fixed in advance. The strength alpha may have been chosen on the sample, because it only
    selects a ball.

    Parameters
    ----------
    estimator : fitted estimator
        Supported are :class:`KernelRidge`, :class:`SVR`, :class:`QuantileRegressor` and
        :class:`ExpectileRegressor` with any kernel, and their cross-validated forms; their
        ``radius`` is Λ, fixed in advance. :class:`NonNegativeRegressor` is supported in the ball
        of the squared kernel, except with the Poisson loss. For linear models of one target, of
        fenchel (also online) or scikit-learn, the squared error is bounded over balls of the
        penalized norm: the l1 norm for Lasso, the Euclidean norm for Ridge. The ``radius`` of
        ``Lasso(radius=...)`` is Λ, fixed in advance.
    X, y : array-like
        The training sample of the estimator, without weights.
    target_bound : float or (float, float), optional
        a with \|y\| <= a, or the range of y. It must be known in advance, not computed from the
        sample.
    delta : float, default=0.05
        Probability of failure.
    radius : float, or array-like of shape (n_outputs,), optional
        r with k(x, x) <= r² for every possible x. Stationary kernels do not need it. For a Lasso
        it is r∞ with \|x_j\| <= r∞, for a Ridge r with \|\|x\|\| <= r. For an operator-valued
        kernel it is r_j with K(x, x)_jj <= r_j², in place of r² B_jj.
    residual_bound : float, optional
        Bound on all residuals of all functions of the class, in place of the one that follows from
        ``target_bound``.
    norm_bound, offset_bound : float, optional
        Λ and β, if they were fixed in advance. Not used without a ball, or without an intercept.
    clip : bool, default=False
        Whether to bound the risk of predictions clipped to ``target_bound``. Residuals are then at
        most the length of that range, for any norm.
    empirical : bool, default=False
        Whether to use the trace of the Gram matrix of the sample in place of r, with 3M
        √(log(2/δ)/2n). For a Lasso it is the largest root mean square of a column.
    smallest : bool, default=False
        Whether to take the smallest of all bounds available for the fit; ``source`` names its
        theorem. These are the bounds with r and with the trace; for a Lasso also those of the
        Euclidean ball (with r∞ √d); and with ``clip``, for any linear model, that of the
        pseudo-dimension of linear functions. Each is computed with its share of delta, so that all
        hold together. The cost is the term "choice of the bound".

    Returns
    -------
    Bound
        Bound on the mean squared error (without ½) for squared losses, and on the mean loss
        otherwise. For non-crossing curves it bounds their pinball loss.

    Raises
    ------
    ValueError, TypeError
        If an assumption cannot hold or is contradicted by the sample. The message names it.

    References
    ----------
    Mohri, Rostamizadeh, Talwalkar, theorems 11.3, 11.11, 11.13, 11.14, and 11.16 with corrected
    constant; Sangnier, Fercoq, d'Alché-Buc (2016), theorem 4.1. See ``docs/mathematics.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import SVR
    >>> from fenchel.bounds import bound
    >>> from fenchel.kernels import Gaussian
    >>> X = np.random.RandomState(0).uniform(-1, 1, (2000, 1))
    >>> y = np.cos(3 * X[:, 0])
    >>> model = SVR(epsilon=0.1, alpha=1e-2, kernel=Gaussian(1.0)).fit(X, y)
    >>> result = bound(model, X, y, target_bound=1.0)
    >>> sorted(result.terms)
    ['choice of the class', 'complexity', 'confidence', 'empirical risk', 'offset']
    >>> result.vacuous
    False
    """
    numbers = {
        "residual_bound": residual_bound,
        "norm_bound": norm_bound,
        "offset_bound": offset_bound,
    }
    for name, value in numbers.items():
        if value is not None:
            check_real(name, value)
    for name, value in {"clip": clip, "empirical": empirical, "smallest": smallest}.items():
        BOOLEAN(value, name)
    delta, (rows, targets) = check_delta(delta), sample_of(estimator, X, y)
    interval = range_of(target_bound, targets)
    if interval is None and (residual_bound is None or clip):
        raise ValueError(
            "target_bound must be given"
            + ("" if clip else ", or residual_bound")
            + ": the theorems need an a-priori bound on y, which no sample can supply, got None"
        )

    def apply(fit: Fit, share: float, by_trace: bool) -> Bound:
        stated = residual_bound, norm_bound, offset_bound
        return of_fit(fit, interval, share, *stated, clip, by_trace)

    if not smallest:
        return apply(read(estimator, rows, targets, radius), delta, empirical)
    if empirical:
        raise ValueError("empirical must be False with smallest=True, which tries both, got True")
    refused, fits = read_also(estimator, rows, targets, radius)
    ways: dict[str, Callable[..., Bound]] = {}
    for fit, ball in zip(fits, ("the ball", "the Euclidean ball"), strict=False):
        for trace, size in enumerate(("radius", "the trace")):
            ways[f"{ball} with {size}"] = partial(apply, fit, by_trace=bool(trace))
    inner = inner_of(estimator)
    if clip and interval is not None and is_linear(inner):
        # a search over fit_intercept has chosen between classes: that with it contains both
        chosen = "fit_intercept" in getattr(estimator, "best_params_", ())
        free = chosen or bool(getattr(inner, "fit_intercept", True))
        ways["the pseudo-dimension"] = partial(_by_dimension, inner, rows, targets, interval, free)
    if not ways:
        raise TypeError(str(refused))
    return _smallest(ways, delta)


def _smallest(ways: Mapping[str, Callable[..., Bound]], delta: float) -> Bound:
    """The smallest of bounds that all hold together, and what that costs as a term."""
    tried = {name: way(share=delta / len(ways)) for name, way in ways.items()}
    name = min(tried, key=lambda each: tried[each].value)
    alone = ways[name](share=delta)
    price = {"choice of the bound": tried[name].value - alone.value}
    values = ", ".join(f"{each.value:.4g} by {way}" for way, each in tried.items())
    return replace(
        alone,
        terms={**alone.terms, **price},
        assumptions=(*alone.assumptions, f"all bounds hold, each for its part of delta: {values}"),
        constants={**alone.constants, "number of bounds": len(ways)},
        source=f"{alone.source}, the smallest of {len(ways)}: {name}",
    )


def _by_dimension(
    estimator: Any,
    X: FloatArray,
    targets: FloatArray,
    interval: tuple[float, float],
    free_offset: bool,
    share: float,
) -> Bound:
    """Of the class of all linear functions, clipped to the range of y."""
    weights, prediction = affine_part(estimator, X, targets)
    straight = X @ weights + np.ravel(estimator.intercept_)
    if not np.allclose(straight, prediction[:, 0]):
        raise TypeError(
            "estimator must predict X @ coef_ + intercept_ for the bound of linear functions, got "
            f"{type(estimator).__name__}"
        )
    low, high = interval
    residual = targets - np.clip(prediction, low, high)
    found = pseudo_dimension_bound(
        float((residual**2).mean()),
        len(X),
        dimension=affine_pseudo_dimension(len(weights), free_offset),
        loss_bound=(high - low) ** 2,
        delta=share,
        of="functions",
    )
    clipped = ", of predictions clipped to the range of y"
    return replace(
        found,
        assumptions=(IID, f"y is always in [{low:g}, {high:g}]"),
        source=found.source + ", of all linear functions" + clipped,
        risk="E ‖y - h(x)‖²" + clipped,
    )

"""Artificial data with known truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from fenchel._typing import FloatArray
from fenchel._validation import COUNT, check_levels

_N_HEAVY_FEATURES = 10


def make_sine_quantiles(
    n_samples: int = 200,
    *,
    levels: float | Sequence[float] | FloatArray = (0.1, 0.25, 0.5, 0.75, 0.9),
    random_state: int | np.random.RandomState | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Generate a modulated sine with decreasing Gaussian noise, and its true quantiles.

    With x uniform on [0, 1.5] and z standard normal,

    .. math:: y = \sin(2 \pi x) \, (1 + \sin(2 \pi x / 3)) + \sigma(x) z,

    where the standard deviation :math:`\sigma(x)` decreases linearly from 1.2 at 0 to 0.2 at 1.5.
    The conditional quantile of level t is obtained by replacing z by its quantile of level t.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    levels : float or sequence of floats, default=(0.1, 0.25, 0.5, 0.75, 0.9)
        Quantile levels in (0, 1), in any order.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible results.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The feature.
    y : ndarray of shape (n_samples,)
        The target.
    quantiles : ndarray of shape (n_samples, n_levels)
        The true conditional quantiles of y at the rows of X, in the order of ``levels``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from fenchel.datasets import make_sine_quantiles
    >>> X, y, quantiles = make_sine_quantiles(1000, levels=[0.1, 0.9], random_state=0)
    >>> X.shape, y.shape, quantiles.shape
    ((1000, 1), (1000,), (1000, 2))
    >>> (y[:, None] <= quantiles).mean(axis=0).round(1).tolist()
    [0.1, 0.9]
    """
    COUNT(n_samples, "n_samples")
    scores = ndtri(check_levels(levels))
    rng = check_random_state(random_state)
    x = rng.uniform(0.0, 1.5, size=n_samples)
    mean = np.sin(2.0 * np.pi * x) * (1.0 + np.sin(2.0 * np.pi * x / 3.0))
    deviation = 1.2 - x / 1.5
    y = mean + deviation * rng.standard_normal(n_samples)
    quantiles: FloatArray = mean[:, None] + deviation[:, None] * scores
    return x[:, None], y, quantiles


def make_heavy_tails(
    n_samples: int = 200, *, random_state: int | np.random.RandomState | None = None
) -> tuple[FloatArray, FloatArray]:
    r"""Generate ten features and a target with interactions and heavy-tailed noise.

    The features are standard normal in dimension 10, and t has Student's t distribution with 3
    degrees of freedom:

    .. math:: y = \sin 3 x_0 + x_1 x_2 + \tfrac12 x_3^2 + (0.3 + \tfrac12 |x_4|) \, t.

    The last five features have no effect.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible results.

    Returns
    -------
    X : ndarray of shape (n_samples, 10)
        The features.
    y : ndarray of shape (n_samples,)
        The target.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from fenchel.datasets import make_heavy_tails
    >>> X, y = make_heavy_tails(100, random_state=0)
    >>> X.shape, y.shape
    ((100, 10), (100,))
    """
    COUNT(n_samples, "n_samples")
    rng = check_random_state(random_state)
    X = rng.standard_normal((n_samples, _N_HEAVY_FEATURES))
    mean = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    y: FloatArray = mean + (0.3 + 0.5 * np.abs(X[:, 4])) * rng.standard_t(3, size=n_samples)
    return X, y

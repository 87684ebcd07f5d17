"""A sample, and by hand what bounds of fitted models are made of."""

from __future__ import annotations

from math import ceil, log, log2, sqrt

import numpy as np

from fenchel.kernels import Gaussian

N, DELTA = 150, 0.05
WIDTH = Gaussian(0.8)


def drawn():
    """Rows in [-1, 1]², targets in [-1.5, 1.5]."""
    random = np.random.RandomState(0)
    X = random.uniform(-1.0, 1.0, (N, 2))
    return X, np.clip(np.cos(3.0 * X[:, 0]) + 0.3 * random.standard_normal(N), -1.5, 1.5)


def ball(needed, unit):
    """Size of the ball 2^k unit around the fit, and its share, by the docstring."""
    k = ceil(log2(needed / unit))
    return unit * 2.0**k, 2.0 / 3.0 / ((abs(k) + 1) * (abs(k) + 2))


def tail(share, n=N):
    """√(log(1/δ)/2n)."""
    return sqrt(log(1.0 / share) / (2.0 * n))

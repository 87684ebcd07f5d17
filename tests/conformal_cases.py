"""Rows, new rows and weights that tests of conformal intervals share."""

from __future__ import annotations

import numpy as np

from fenchel import KernelRidge
from fenchel.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, size=(60, 2))
Y = np.sin(2.0 * X[:, 0]) + (0.2 + 0.2 * np.abs(X[:, 1])) * RNG.normal(size=60)
NEW = RNG.uniform(-2.0, 2.0, size=(25, 2))
WEIGHT = RNG.integers(0, 4, size=60).astype(float)
NEW_WEIGHT = RNG.uniform(0.5, 3.0, size=25)
SMOOTH = KernelRidge(1e-3, kernel=Gaussian(1.5))

"""
Sparse curves
=============

The ε-insensitive loss with ``norm=inf`` ignores the points at which a curve is closer than ε to
the model: their dual coefficients are exactly zero. A larger ε leaves fewer of them, and costs
little.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel.datasets import make_functional
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import BetweenCurves, Gaussian
from fenchel.plotting import CoefficientMatrixDisplay

X, Y, theta = make_functional(120, n_points=60, noise=0.3, random_state=1)
train, test = slice(0, 80), slice(80, None)
kernels = {"kernel": BetweenCurves(Gaussian("median")), "output_kernel": Gaussian(0.07)}

# %%
# The same curves with two radii: white is exactly zero.

fig, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
for ax, epsilon in zip(axes, (0.1, 0.5), strict=True):
    model = FunctionalRegressor(
        "squared_epsilon_insensitive", norm=np.inf, epsilon=epsilon, alpha=1e-4, **kernels
    )
    model.fit(X[train], Y[train], theta)
    CoefficientMatrixDisplay.from_estimator(model, ax=ax)
    error = np.mean((model.predict(X[test]) - Y[test]) ** 2)
    zeros = model.sparsity_.coefficients
    print(f"ε = {epsilon}: {zeros:.0%} zeros, mean squared error {error:.3f} on held-out curves")

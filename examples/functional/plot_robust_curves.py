"""
Curves as outputs, some of them corrupted
=========================================

Each row is a curve, and the output another one. A tenth of the training outputs is replaced by
outliers. The squared loss follows them; the Huber loss of curves does not. Both models are
functions of θ, so they can be evaluated between the points of the grid.
"""

import matplotlib.pyplot as plt
import numpy as np

from fenchel.datasets import make_functional, process_outliers
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import BetweenCurves, Gaussian

X, Y, theta = make_functional(120, n_points=60, noise=0.1, random_state=0)
train, test = slice(0, 80), slice(80, None)
seen, _ = process_outliers(Y[train], share=0.2, intensity=4.0, random_state=0)

kernels = {"kernel": BetweenCurves(Gaussian("median")), "output_kernel": Gaussian(0.07)}
square = FunctionalRegressor("squared", alpha=1e-4, **kernels).fit(X[train], seen, theta)
huber = FunctionalRegressor("huber", norm=2, kappa=0.05, alpha=1e-4, **kernels)
huber.fit(X[train], seen, theta)
print(huber.status_.message)

# %%
# Predictions on a grid four times as fine, for three curves that were held out.

fine = np.linspace(0.0, 1.0, 240)
fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for ax, row in zip(axes, (81, 95, 110), strict=True):
    ax.plot(theta, Y[row], ".", color="#4D4D4D", ms=3, label="held out")
    ax.plot(fine, square.predict(X[[row]], fine)[0], "--", color="#D55E00", label="squared")
    ax.plot(fine, huber.predict(X[[row]], fine)[0], color="#0072B2", label="Huber, norm 2")
    ax.set_xlabel("θ")
axes[0].set_ylabel("output")
axes[0].legend(frameon=False, fontsize=8)
for name, model in {"squared": square, "Huber": huber}.items():
    error = np.mean((model.predict(X[test]) - Y[test]) ** 2)
    print(f"{name}: mean squared error {error:.3f} on held-out curves")

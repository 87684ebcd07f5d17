"""
Mean and variance, in one convex problem
========================================

Acceleration of a head in a simulated motorcycle accident. There is hardly any noise before the
impact and much after it. In the natural parameters mean/variance and 1/variance the likelihood is
jointly convex: no starting values, and a certificate of how far from the optimum the fit is.
"""

# %%
# The precision 1/variance is a positive semi-definite model plus a floor, which ``max_std`` sets.

import matplotlib.pyplot as plt
import numpy as np

from fenchel.datasets import load_mcycle
from fenchel.kernels import Gaussian
from fenchel.positive import HeteroscedasticRegressor

X, y = load_mcycle(return_X_y=True)
model = HeteroscedasticRegressor(1e-6, kernel=Gaussian(length_scale=5.0)).fit(X, y)
grid = np.linspace(X.min(), X.max(), 500)[:, None]
mean, std = model.predict(grid, return_std=True)
low, high = model.predict_interval(grid, coverage=0.9).T
fig, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.0), layout="constrained")
left.scatter(X, y, s=10, color="0.5")
left.plot(grid, mean)
left.fill_between(grid[:, 0], low, high, alpha=0.25)
left.set(
    xlabel="time after impact (ms)",
    ylabel="acceleration (g)",
    title="mean and central 90 % interval",
)
right.plot(grid, std)
right.set(xlabel="time after impact (ms)", ylabel="standard deviation (g)", ylim=(0, None))
low, high = model.predict_interval(X, coverage=0.9).T
print(f"rows within the interval: {((low <= y) & (y <= high)).mean():.1%}")
print(f"duality gap: {model.certificate_.gap:.1e} nats a row")
plt.show()

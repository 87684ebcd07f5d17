"""
Quantiles that cross nowhere
============================

Acceleration of a head in a simulated motorcycle accident. Curves that are kept in order at the
rows may still cross between them. Where the distances of neighbouring curves are functions that
are never negative, there is no x at which they cross.
"""

# %%
# Before the impact there is no noise, and all curves are close. Where curves of the left model
# cross is marked in red.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import NonCrossingQuantileRegressor, QuantileRegressor
from fenchel.datasets import load_mcycle
from fenchel.kernels import Gaussian

X, y = load_mcycle(return_X_y=True)
levels = [0.1, 0.25, 0.5, 0.75, 0.9]
settings = {"alpha": 3e-5, "kernel": Gaussian(length_scale=6.0)}
models = {
    "in order at the rows": QuantileRegressor(
        levels, level_gamma=np.inf, non_crossing="train", **settings
    ),
    "in order everywhere": NonCrossingQuantileRegressor(levels, **settings),
}
grid = np.linspace(X.min(), X.max(), 2001)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(10.4, 4.0), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    curves = model.fit(X, y).predict(grid)
    crossed = np.any(np.diff(curves, axis=1) < 0.0, axis=1)
    ax.scatter(X, y, s=8, color="0.6")
    ax.plot(grid, curves, color="C0", linewidth=1.0)
    ax.fill_between(
        grid[:, 0], 0, 1, where=crossed, transform=ax.get_xaxis_transform(), color="C3", alpha=0.2
    )
    ax.set(title=f"{name}: {crossed.mean():.0%} crossed", xlabel="time after impact (ms)")
axes[0].set_ylabel("acceleration (g)")
plt.show()

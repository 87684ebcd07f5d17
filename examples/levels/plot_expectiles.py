"""
Quantiles and expectiles of the same rows
=========================================

The τ-quantile has the share τ of the rows below it. The τ-expectile balances the *distances* of
rows below and above it, weighted by 1 - τ and τ: it depends on how far the extreme
rows lie. The expectile of level ½ is the mean.
"""

# %%
# Data whose conditional quantiles are known: a sine with noise that decreases. To 3 % of the
# rows 6 is added: expectiles move towards these outliers, quantiles do not.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import ExpectileRegressor, QuantileRegressor
from fenchel.datasets import make_sine_quantiles

levels = [0.1, 0.5, 0.9]
X, y, _ = make_sine_quantiles(400, random_state=0)
y = y + 6.0 * (np.random.default_rng(0).random(400) < 0.03)
grid = np.linspace(0.0, 1.5, 300)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), sharey=True)
for ax, kind in zip(axes, (QuantileRegressor, ExpectileRegressor), strict=True):
    model = kind(levels).fit(X, y)
    ax.scatter(X, y, s=6, color="0.75")
    for level, curve, style in zip(levels, model.predict(grid).T, (":", "-", "--"), strict=True):
        ax.plot(grid, curve, style, color="C0", linewidth=2, label=f"level {level:g}")
    below = (y[:, None] <= model.predict(X)).mean(axis=0)
    ax.set(title=kind.__name__, xlabel="x", ylim=(-4, 10))
    print(f"{kind.__name__}: shares of rows below {below.round(2)}")
axes[0].set_ylabel("y")
axes[1].legend(loc="upper right", ncols=3)

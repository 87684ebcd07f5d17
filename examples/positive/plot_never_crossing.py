"""
Quantiles that cross nowhere
============================

Food expenditure of Belgian households. Curves that are kept in order at the rows may still cross
between them or beyond. Where the distances of neighbouring curves are positive semi-definite
models, there is no x at which they cross.
"""

# %%
# Both models are drawn beyond the incomes of the sample. Where curves of the left one cross is
# marked in red.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import NonCrossingQuantileRegressor, QuantileRegressor
from fenchel.datasets import load
from fenchel.kernels import Gaussian

engel = load("engel")
X, y = np.asarray(engel.data) / 1000.0, np.asarray(engel.target) / 1000.0
levels = [0.1, 0.25, 0.5, 0.75, 0.9]
kernel = Gaussian(length_scale=1.0)
models = {
    "in order at the rows": QuantileRegressor(
        levels, level_gamma=np.inf, non_crossing="train", alpha=1e-3, kernel=kernel
    ),
    "in order everywhere": NonCrossingQuantileRegressor(levels, alpha=1e-3, kernel=kernel),
}
grid = np.linspace(0.0, 7.0, 2001)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(10.4, 4.0), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    curves = model.fit(X, y).predict(grid)
    crossed = np.any(np.diff(curves, axis=1) < 0.0, axis=1)
    ax.scatter(X, y, s=8, color="0.6")
    ax.plot(grid, curves, color="C0", linewidth=1.0)
    ax.fill_between(
        grid[:, 0], 0, 1, where=crossed, transform=ax.get_xaxis_transform(), color="C3", alpha=0.2
    )
    ax.set(title=f"{name}: {crossed.mean():.0%} crossed", xlabel="income (1000 francs)")
axes[0].set_ylabel("food expenditure (1000 francs)")
plt.show()

"""
Food and income
===============

Engel's data: what 235 Belgian working-class households earned, and what they spent on food, in
francs a year, published in 1857. The spread grows with income: one curve is not enough.
"""

# %%
# Five levels are fitted at once, on logarithms: food grows in proportion to a power of income. On
# the left the default kernel, on the right one with a linear trend. Within the data they agree.
# Beyond the richest household the default knows nothing and flattens out; a trend goes on.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import QuantileRegressor
from fenchel.datasets import load_engel
from fenchel.kernels import Linear, Matern

X, y = load_engel(return_X_y=True)
levels = [0.1, 0.25, 0.5, 0.75, 0.9]
models = {
    "default": QuantileRegressor(levels),
    "Matern() + Linear()": QuantileRegressor(levels, kernel=Matern() + Linear()),
}
grid = np.linspace(X.min(), 7000.0, 300)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), sharey=True)
for ax, (title, model) in zip(axes, models.items(), strict=True):
    curves = np.exp(model.fit(np.log(X), np.log(y)).predict(np.log(grid)))
    ax.scatter(X, y, s=8, color="0.5")
    ax.plot(grid, curves, color="C0", linewidth=1.5)
    for level, end in zip(levels[::2], curves[-1, ::2], strict=True):
        ax.text(7080.0, end, f"{level:.0%}", fontsize=8, va="center")
    ax.axvline(X.max(), color="0.6", linestyle=":")
    ax.set(title=title, xlabel="income (francs)", ylim=(0, 4200))
    print(f"{title}: loss on held-out rows {model.learned_.criterion:.2f} of the best constants'")
axes[0].set_ylabel("food (francs)")

# %%
# Three statements, which are not the same. The certificate: no model of this kind has an
# objective lower by more than this share. The shares of rows at or below the curves: the levels,
# up to the rows that lie on a curve. The crossing loss: how far curves cross at the rows.

at_rows = model.predict(np.log(X))
print(f"relative gap  {model.certificate_.relative_gap:.0e}")
print("shares", (np.log(y)[:, None] <= at_rows).mean(axis=0).round(3))
print(f"crossing loss {model.crossing_loss(np.log(X)):.2g}")

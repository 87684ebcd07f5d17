"""
Food and income
===============

Engel's data: what 235 Belgian working-class households earned, and what they spent on food, in
francs a year, published in 1857. The spread grows with income: one curve is not enough.
"""

# %%
# Five levels are fitted at once, with a width of the kernel of 2000 francs: the curves are to
# bend slowly. A width that is read off the data, the default, follows the crowd of poor
# households, and lets the curves fall back where households are few.

import matplotlib.pyplot as plt

from fenchel import QuantileRegressor
from fenchel.datasets import load_engel
from fenchel.kernels import Gaussian
from fenchel.plotting import FanDisplay

X, y = load_engel(return_X_y=True, as_frame=True)
levels = [0.1, 0.25, 0.5, 0.75, 0.9]
wide, default = Gaussian(length_scale=2000.0), Gaussian()
fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), sharey=True)
for ax, kernel, title in zip(axes, (wide, default), ("2000 francs", "off the data"), strict=True):
    model = QuantileRegressor(levels, kernel=kernel, alpha=1e-5).fit(X, y)
    FanDisplay.from_estimator(model, X, y, ax=ax)
    width = model.kernel_.length_scale
    ax.set(title=f"width {title}", xlabel="income (francs)", ylabel="food (francs)")
    print(f"width {title}: {width}, D² {model.score(X, y):.3f}")

# %%
# Three statements, which are not the same. The certificate: no model of this class has an
# objective lower by more than this share. The shares of rows at or below the curves: the levels,
# up to the rows that lie on a curve. The crossing loss: how far curves cross at the rows.

model = QuantileRegressor(levels, kernel=wide, alpha=1e-5).fit(X, y)
print(f"relative gap  {model.certificate_.relative_gap:.0e}")
print("shares", (y.to_numpy()[:, None] <= model.predict(X)).mean(axis=0).round(3))
print(f"crossing loss {model.crossing_loss(X):.2g} francs")

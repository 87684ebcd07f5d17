"""
Food and income
===============

Engel's data: what 235 Belgian working-class households earned, and what they spent on food, in
francs a year, published in 1857. The spread grows with income: one curve is not enough.
"""

# %%
# Five levels are fitted at once. On the left kernel and alpha are learned from held-out rows, the
# default. On the right they follow rules: a width that is read off the data suits the crowd of
# poor households, and lets the curves bend where households are few.

import matplotlib.pyplot as plt

from fenchel import QuantileRegressor
from fenchel.datasets import load_engel
from fenchel.plotting import FanDisplay

X, y = load_engel(return_X_y=True, as_frame=True)
levels = [0.1, 0.25, 0.5, 0.75, 0.9]
models = {
    "learned": QuantileRegressor(levels).fit(X, y),
    "by rules": QuantileRegressor(levels, alpha=1e-5, learn=False).fit(X, y),
}
fig, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), sharey=True)
for ax, (title, model) in zip(axes, models.items(), strict=True):
    FanDisplay.from_estimator(model, X, y, ax=ax)
    ax.set(title=title, xlabel="income (francs)", ylabel="food (francs)")
    print(f"{title}: {model.kernel_}, alpha {model.alpha_:.1g}, D² {model.score(X, y):.3f}")
learned = models["learned"].learned_
print(f"held-out loss {learned.criterion:.3f} of the best constant's")

# %%
# Three statements, which are not the same. The certificate: no model of this class has an
# objective lower by more than this share. The shares of rows at or below the curves: the levels,
# up to the rows that lie on a curve. The crossing loss: how far curves cross at the rows.

model = models["learned"]
print(f"relative gap  {model.certificate_.relative_gap:.0e}")
print("shares", (y.to_numpy()[:, None] <= model.predict(X)).mean(axis=0).round(3))
print(f"crossing loss {model.crossing_loss(X):.2g} francs")

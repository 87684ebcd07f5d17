"""
A tube, and spoilt rows
=======================

Support vector regression pays nothing for residuals up to ε. Rows inside of the tube could move
within it without changing the curve: they have no dual coefficient.
"""

# %%
# The motorcycle data. Residuals may be 20 g long for free.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import SVR, KernelRidge
from fenchel.datasets import load_mcycle
from fenchel.kernels import Gaussian

X, y = load_mcycle(return_X_y=True)
grid = np.linspace(X.min(), X.max(), 400)[:, None]
settings = {"kernel": Gaussian(length_scale=5.0), "alpha": 1e-4}
model = SVR(epsilon=20.0, **settings).fit(X, y)
curve = model.predict(grid)
fig, left = plt.subplots()
left.fill_between(grid[:, 0], curve - 20, curve + 20, color="C0", alpha=0.2, linewidth=0)
left.plot(grid, curve, color="C0")
left.scatter(X, y, s=12, color="0.7")
left.scatter(X[model.support_], y[model.support_], s=12, color="C1")
left.set(title=f"{len(model.support_)} of {len(y)} rows carry the curve")
left.set(xlabel="time after impact (ms)", ylabel="acceleration (g)")

# %%
# Now ten rows are spoilt. The square follows them, the others less. Strengths of the square and of
# the others are in different units: losses that grow like y need alpha over a length in g.

spoilt = y.copy()
spoilt[40:50] += 200.0
models = {
    "squared": KernelRidge(alpha=1e-2, kernel=settings["kernel"]),
    "ε-insensitive": SVR(epsilon=20.0, **settings),
    "Huber": SVR("huber", kappa=5.0, **settings),
}
fig, right = plt.subplots()
right.scatter(X, spoilt, s=12, color="0.7")
for (name, each), style in zip(models.items(), ("--", "-", ":"), strict=True):
    right.plot(grid, each.fit(X, spoilt).predict(grid), style, linewidth=2, label=name)
    error = np.abs(each.predict(X) - y)[40:50].mean()
    print(f"{name:14} mean distance to the ten true values {error:5.1f} g")
right.set(title="ten rows moved by 200 g", ylim=(-150, 230))
right.set(xlabel="time after impact (ms)", ylabel="acceleration (g)")
right.legend()

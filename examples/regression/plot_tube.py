"""
Errors that cost nothing, and gross errors
==========================================

In support vector regression errors up to ε cost nothing. Rows that are closer to the curve than
that can be left out without changing it; the others are the support vectors.
"""

# %%
# Head acceleration in a motorcycle accident, with ε = 20 g. Support vectors are vermilion.

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
left.set(title=f"{len(model.support_)} of {len(y)} rows are support vectors")
left.set(xlabel="time after impact (ms)", ylabel="acceleration (g)")

# %%
# Now ten rows are wrong by 200 g. The squared loss follows them, the others do so less. Squares
# need another alpha, because they grow faster with the size of an error.

wrong = y.copy()
wrong[40:50] += 200.0
models = {
    "squared": KernelRidge(alpha=1e-2, kernel=settings["kernel"]),
    "ε-insensitive": SVR(epsilon=20.0, **settings),
    "Huber": SVR("huber", kappa=5.0, **settings),
}
fig, right = plt.subplots()
right.scatter(X, wrong, s=12, color="0.7")
for (name, each), style in zip(models.items(), ("--", "-", ":"), strict=True):
    right.plot(grid, each.fit(X, wrong).predict(grid), style, linewidth=2, label=name)
    error = np.abs(each.predict(X) - y)[40:50].mean()
    print(f"{name:14} mean distance to the ten true values {error:5.1f} g")
right.set(title="ten rows moved by 200 g", ylim=(-150, 230))
right.set(xlabel="time after impact (ms)", ylabel="acceleration (g)")
right.legend()

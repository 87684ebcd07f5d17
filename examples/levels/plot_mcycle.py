"""
From parallel to independent curves
===================================

Head acceleration in a simulated motorcycle accident: quiet at first, then violent. How much may
curves of different levels differ? ``level_gamma`` is the γ of exp(-γ(τ_j - τ_k)²), the coupling
of the levels: 0 makes curves parallel, infinity independent.
"""

# %%
# The spread is nothing in the first 13 ms. Parallel curves cannot say so; independent ones can,
# but nothing keeps them in order. In between they share what they have in common.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import QuantileRegressor
from fenchel.datasets import load_mcycle
from fenchel.kernels import Gaussian
from fenchel.plotting import FanDisplay

X, y = load_mcycle(return_X_y=True, as_frame=True)
settings = {"kernel": Gaussian(length_scale=6.0), "alpha": 3e-5}
levels = [0.1, 0.25, 0.5, 0.75, 0.9]
fig, axes = plt.subplots(1, 3, figsize=(10.8, 4.2), sharey=True)
for ax, gamma in zip(axes, (0.0, 10.0, np.inf), strict=True):
    model = QuantileRegressor(levels, level_gamma=gamma, **settings).fit(X, y)
    FanDisplay.from_estimator(model, X, y, ax=ax)
    ax.set(title=f"γ = {gamma:g}", xlabel="time after impact (ms)", ylim=(-160.0, 100.0))
    ax.label_outer()
    ax.get_legend().remove()
    print(f"γ = {gamma:3g}: crossing loss {model.crossing_loss(X):.3f} g")
axes[0].set_ylabel("acceleration (g)")
axes[2].legend(loc="lower right")

# %%
# With ``non_crossing="train"`` the order is a constraint, and the certificate is that of the
# constrained problem. It holds at the rows of the sample: between them, nothing is guaranteed.

grid = np.linspace(2.4, 57.6, 1000)[:, None]
for constraint in (None, "train"):
    model = QuantileRegressor(levels, level_gamma=np.inf, non_crossing=constraint, **settings)
    model.fit(X.to_numpy(), y)
    at_rows, between = model.crossing_loss(X.to_numpy()), model.crossing_loss(grid)
    print(f"{constraint!s:5}: crossing loss {at_rows:.4f} g at the rows, {between:.4f} g between")

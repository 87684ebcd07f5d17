"""
A whole distribution
====================

What is the acceleration of a motorcycle rider's head some milliseconds after an impact, and how
sure is that? Nineteen quantiles are nearly a whole distribution.
"""

# %%
# The levels from 5 % to 95 % are fitted at once, and joined to a distribution for each row.
# Between levels the quantile function is linear, beyond them tails are exponential: 10 % of the
# probability is in these, which is assumed and not fitted. Where curves cross they are sorted.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import HeteroscedasticRegressor, QuantileRegressor
from fenchel.datasets import load_mcycle

X, y = load_mcycle(return_X_y=True)
model = QuantileRegressor(np.arange(0.05, 1.0, 0.05)).fit(X, y)
times = np.linspace(X.min(), X.max(), 250)
predicted = model.predict_distribution(times[:, None])
print(predicted)

grid = np.linspace(-160.0, 100.0, 300)
fig, ax = plt.subplots()
below = predicted.cdf(grid[None, :])
shades = ax.pcolormesh(times, grid, below.T, cmap="RdBu_r", rasterized=True)
ax.scatter(X, y, s=8, color="black")
ax.set(xlabel="time after impact (ms)", ylabel="acceleration (g)")
fig.colorbar(shades, ax=ax, label="probability of a lower value")

# %%
# Questions that no fitted level answers: the probability of more than 20 g, an interval of any
# coverage, and how good the distributions are as a whole, beside normal ones. The score is in
# units of y, and is small for distributions that are narrow and hold the targets.

chosen = model.predict_distribution([[10.0], [20.0], [35.0]])
more, ends = 1.0 - chosen.cdf(20.0), chosen.interval(0.9)
for time, share, (low, high) in zip((10, 20, 35), more, ends, strict=True):
    print(f"{time} ms: more than 20 g with {share:.2f}, 90 % in [{low:.0f}, {high:.0f}] g")
fig, ax = plt.subplots()
for time, curve in zip((10, 20, 35), chosen.cdf(grid[None, :]), strict=True):
    ax.plot(grid, curve, label=f"{time} ms after impact")
ax.set(xlabel="acceleration (g)", ylabel="probability of a lower value")
ax.legend()

normal = HeteroscedasticRegressor().fit(X, y)
for name, fit in (("quantiles", model), ("normal distributions", normal)):
    print(f"CRPS of {name} at the training rows: {fit.predict_distribution(X).crps(y).mean():.1f}")

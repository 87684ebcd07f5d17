"""
Quantile curves of few rows
===========================

Old Faithful: how long the eruption lasted, and how long one had to wait for it. With
``epsilon`` > 0 a row whose residuals are shorter than ε, all levels taken together, has no dual
coefficient at all: the model keeps the other rows only.
"""

# %%
# Support vectors are drawn in vermilion. With a larger ε there are fewer, and the fit is a little
# worse. Length scale and alpha are learned once, with ε = 0, and are the same in all three. The
# kernel does not use ranks as the default does: eruptions at night were noted as "short" or "long"
# and stand at 2 and 4 minutes, and curves of ranks jump where many values are equal.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import QuantileRegressor
from fenchel.datasets import load
from fenchel.kernels import Matern

geyser = load("geyser")
X, y = geyser.data, geyser.target
grid = np.linspace(X.min(), X.max(), 300)[:, None]
fig, axes = plt.subplots(1, 3, figsize=(10.8, 3.8), sharey=True)
learned = QuantileRegressor([0.25, 0.5, 0.75], kernel=Matern()).fit(X, y).with_learned()
for ax, epsilon in zip(axes, (0.0, 10.0, 20.0), strict=True):
    model = learned.with_parameters(epsilon=epsilon).fit(X, y)
    ax.scatter(X, y, s=9, color="0.75")
    ax.scatter(X[model.support_], y[model.support_], s=9, color="C1")
    ax.plot(grid, model.predict(grid), color="C0")
    share = len(model.support_) / len(y)
    ax.set(title=f"ε = {epsilon:g}: {share:.0%} of the rows", xlabel="duration (min)")
    print(f"ε = {epsilon:2g}: D² {model.score(X, y):.3f}, {len(model.support_)} rows")
axes[0].set_ylabel("waiting time before (min)")

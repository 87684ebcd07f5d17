"""
A million rows
==============

With a smooth kernel the cost of a fit grows with the rows, not with their square: the kernel
becomes a dozen features that hold it to ten digits, and a Newton step is a few passes over them.
"""

# %%
# Five levels on a million rows, certified like any other fit. The default, a Matérn kernel, is not
# smooth; a Gaussian one is. Its width and alpha are learned from a thousand of the rows.

import time

import matplotlib.pyplot as plt
import numpy as np

from fenchel import QuantileRegressor
from fenchel.datasets import make_sine_quantiles

levels = [0.1, 0.25, 0.5, 0.75, 0.9]
X, y, _ = make_sine_quantiles(1_000_000, random_state=0)
started = time.perf_counter()
model = QuantileRegressor(levels, kernel="gaussian", tol=1e-6).fit(X, y)
seconds = time.perf_counter() - started
print(f"{seconds:.1f} s, rank {model.feature_map_.rank_}, kernel error {model.kernel_error_:.0e}")
print(f"{model.n_iter_} Newton steps, relative gap {model.certificate_.relative_gap:.0e}")

# %%
# The true quantiles are known. Left: the density of the rows, the curves, the truth in white
# dashes. Right: how far the curves are from it.

X_new, _, truth = make_sine_quantiles(2000, levels=levels, random_state=1)
order = np.argsort(X_new[:, 0])
x, truth, curves = X_new[order, 0], truth[order], model.predict(X_new[order])
fig, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2))
left.hexbin(X[:, 0], y, gridsize=80, cmap="Greys", bins="log", alpha=0.4, linewidths=0)
left.plot(x, curves, color="C0", linewidth=3)
left.plot(x, truth, "--", color="w", linewidth=1)
left.set(xlabel="x", ylabel="y", ylim=(-4, 5))
for error, level in zip((curves - truth).T, levels, strict=True):
    right.plot(x, error, label=f"{level:.0%}")
right.set(xlabel="x", ylabel="estimated less true quantile", ylim=(-0.08, 0.08))
right.legend(ncols=3)

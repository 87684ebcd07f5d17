"""
One tract of the brain from another
===================================

Fractional anisotropy along two tracts, of 100 people with multiple sclerosis: 93 numbers along
the corpus callosum for each, 55 along the right corticospinal tract. The second curve is
predicted from the first by kernel ridge regression with 55 coupled outputs.
"""

# %%
# needs the data set dti
#
# Neighbouring places along the tract have much in common: the output matrix B says so by a
# Gaussian of their distance. Curves with gaps are left out here, and 30 people are held back.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import KernelRidge
from fenchel.datasets import load_dti

dti = load_dti(case=1, visit=1)
whole = ~np.isnan(dti.cca).any(axis=1) & ~np.isnan(dti.rcst).any(axis=1)
X, Y = dti.cca[whole], dti.rcst[whole]
held = np.random.default_rng(0).permutation(len(X)) < 0.3 * len(X)
place = np.linspace(0.0, 1.0, Y.shape[1])
coupling = np.exp(-((place[:, None] - place) ** 2) / (2 * 0.1**2))

fits = {}
for name, B in (("coupled", coupling), ("places one by one", None)):
    grid = np.geomspace(1e-4, 10.0, 11)
    best = min(
        (KernelRidge(alpha=a, coupling=B, learn=False).fit(X[~held], Y[~held]) for a in grid),
        key=lambda model: model.loo_error_,
    )
    fits[name] = best.predict(X[held])
    error = np.mean((fits[name] - Y[held]) ** 2)
    print(f"{name:18} mean squared error of people held back {error:.5f}")
print(f"{'mean curve':18} {np.mean((Y[~held].mean(axis=0) - Y[held]) ** 2):43.5f}")

# %%
# Three of the people held back.

fig, axes = plt.subplots(1, 3, figsize=(10.8, 3.6), sharey=True)
for ax, person in zip(axes, (0, 1, 2), strict=True):
    ax.plot(place, Y[held][person], color="0.6", label="measured")
    for (name, curves), style in zip(fits.items(), ("-", ":"), strict=True):
        ax.plot(place, curves[person], style, linewidth=2, label=name)
    ax.set_xlabel("place along the tract")
axes[0].set(ylabel="fractional anisotropy", ylim=(0.3, 0.85))
axes[0].legend()

"""
The strength of ridge regression, without folds
===============================================

The residual of a row at the model that has not seen it is its residual over 1 - M_ii, with M the
hat matrix: exact leave-one-out errors of all strengths cost one eigendecomposition.
"""

# %%
# Fifty strengths. The error on the rows always falls with alpha; the leave-one-out error has a
# minimum. The rule of one standard error takes the largest alpha that is about as good.

import matplotlib.pyplot as plt
import numpy as np

from fenchel import KernelRidge
from fenchel.datasets import load_mcycle
from fenchel.kernels import Gaussian
from fenchel.model_selection import PathSearchCV

X, y = load_mcycle(return_X_y=True)
kernel, alphas = Gaussian(length_scale=4.0), np.geomspace(1.0, 1e-7, 50)
fig, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.0))
right.scatter(X, y, s=10, color="0.7")
grid = np.linspace(X.min(), X.max(), 400)[:, None]
for rule, style in (("min", "-"), ("one_standard_error", "--")):
    ridge = KernelRidge(kernel=kernel)
    search = PathSearchCV(ridge, {"alpha": alphas}, scoring="loo", selection=rule)
    search.fit(X, y)
    error = np.sqrt(-search.cv_results_["mean_test_score"])
    label = f"{rule}: alpha = {search.alpha_:.1g}"
    left.axvline(search.alpha_, color="C1", linestyle=style, label=label)
    right.plot(grid, search.predict(grid), style, color="C1", linewidth=2)
    print(f"{label}, error {np.sqrt(-search.best_score_):.1f} g")
left.semilogx(search.cv_results_["param_alpha"].astype(float), error, color="C0")
left.set(xlabel="alpha", ylabel="leave-one-out error (g)")
left.legend()
right.set(xlabel="time after impact (ms)", ylabel="acceleration (g)")

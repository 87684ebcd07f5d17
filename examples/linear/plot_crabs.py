"""
Which measures of a crab are needed
===================================

Rock crabs of two colours and both sexes: five lengths, and factors. The width of the shell is
predicted from the others, which are strongly correlated: the Lasso chooses among them.
"""

# %%
# All solutions at once. A path of the Lasso is linear between knots, and ``lasso_path`` returns
# the knots. Columns are standardized, so that coefficients can be compared.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from fenchel import GroupLasso, Lasso, lasso_path
from fenchel.datasets import load

crabs = load("crabs")
X, y = StandardScaler().fit_transform(crabs.data), crabs.target
path = lasso_path(X, y)
words = ("species", "sex", "frontal lobe", "rear width", "length", "depth")
fig, (ax, near) = plt.subplots(1, 2, figsize=(10.4, 4.2))
styles = ("-", "--", ":", "-.", (0, (6, 1.6, 1.2, 1.6)), (0, (1, 3)))
for coefficients, name, style in zip(path.coefs.T, words, styles, strict=True):
    for panel in (ax, near):
        panel.plot(path.radii, coefficients, linestyle=style, linewidth=2, label=name)
        panel.set(xlabel="ℓ₁ norm of the coefficients (mm)")
ax.set(ylabel="coefficient (mm)", title="the whole path")
near.set(ylim=(-1.0, 1.0), xlim=(6.0, None), title="its end, enlarged")
ax.legend()

# %%
# The bound and the penalty are two names of the same solutions. With groups, columns enter or
# stay out together: here the two factors, the two measures in front, and the rest.

model = Lasso(radius=8.0).fit(X, y)
print("radius 8:", [crabs.feature_names[j] for j in model.selected_], f"alpha {model.alpha_:.3f}")
same = Lasso(alpha=model.alpha_, tol=1e-10).fit(X, y)
print(
    "largest difference to the penalized form:", f"{np.abs(same.coef_ - model.coef_).max():.0e} mm"
)
groups = [
    "factor" if n in ("sp", "sex") else "front" if n in ("FL", "RW") else "body"
    for n in crabs.feature_names
]
print("groups kept:", np.unique(groups)[GroupLasso(groups, alpha=1.0).fit(X, y).selected_groups_])

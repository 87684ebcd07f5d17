"""
Rows that come one by one
=========================

Learners with ``partial_fit`` see each row once. With a constant step the last iterate keeps
moving about the solution; the mean of the iterates converges.
"""

# %%
# A linear model whose coefficients are known, in blocks of 200 rows as a stream gives them
# (:func:`fenchel.datasets.stream` reads such blocks from CSV and Parquet files).

import matplotlib.pyplot as plt
import numpy as np

from fenchel.kernels import Gaussian
from fenchel.online import OnlineSVR, WidrowHoff

random = np.random.default_rng(0)
truth = random.standard_normal(20)
learners = {
    "last iterate": WidrowHoff(),
    "mean of iterates": WidrowHoff(average=1000),
    "step η / √t": WidrowHoff(schedule="inverse_sqrt", delay=100.0),
}
fig, ax = plt.subplots()
distances: dict[str, list[float]] = {name: [] for name in learners}
for _ in range(200):
    X = random.standard_normal((200, 20))
    y = X @ truth + random.standard_normal(200)
    for name, learner in learners.items():
        learner.partial_fit(X, y)
        distances[name].append(np.linalg.norm(learner.coef_ - truth))
rows = 200 * np.arange(1, 201)
for (name, distance), style in zip(distances.items(), ("-", "--", ":"), strict=True):
    ax.loglog(rows, distance, style, label=name)
    print(f"{name:16} distance from the truth after {rows[-1]} rows {distance[-1]:.3f}")
ax.set(xlabel="rows", ylabel="distance of the coefficients from the truth")
ax.set_yticks([0.03, 0.1, 0.3, 1.0], ["0.03", "0.1", "0.3", "1"], minor=False)
ax.yaxis.set_minor_formatter("")
ax.legend()

# %%
# Kernel learners store points; a budget says how many.

X = random.uniform(0.0, 1.5, (5000, 1))
y = np.sin(2 * np.pi * X[:, 0]) + 0.2 * random.standard_normal(5000)
model = OnlineSVR(epsilon=0.2, kernel=Gaussian(length_scale=0.2), budget=100).partial_fit(X, y)
print(f"{len(model.support_vectors_)} points kept, R² {model.score(X, y):.3f}")

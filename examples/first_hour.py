"""
The first hour with a table of your own
=======================================

From a CSV file to calibrated ranges and a saved model, beside gradient boosting:

    python examples/first_hour.py TABLE.csv TARGET [MODEL.skops]

Without arguments, the flats of the tutorial. `first_hour.sh` does the same on the command line,
and `python -m experiments.first_hour` with nine tables and other packages beside.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import fenchel
from fenchel import QuantileRegressor
from fenchel.inspection import importances_of
from fenchel.metrics import interval_coverage, mean_pinball_loss
from fenchel.model_selection import ConformalQuantileRegressor
from fenchel.tables import table_encoder

LEVELS = [0.1, 0.5, 0.9]
FLATS = str(Path(__file__).parents[1] / "docs" / "_static" / "flats.csv")

table, target, *out = sys.argv[1:] or (FLATS, "rent")
frame = pd.read_csv(table)
X, y = frame.drop(columns=target), frame[target]
X_train, X_new, y_train, y_new = train_test_split(X, y, random_state=0)

# %%
# Fit, with nothing to choose: categories, dates and missing values become numbers, and the length
# scale of each column is learned from rows that `fit` holds out internally.

started = time.perf_counter()
model = make_pipeline(table_encoder(), QuantileRegressor(LEVELS)).fit(X_train, y_train)
print(f"fit of {len(X_train)} rows: {time.perf_counter() - started:.1f} s")
for column, what_was_done in model[0].description_.items():
    print(f"  {column}: {what_was_done}")

# %%
# How good are the curves on new rows, beside those of boosted trees?

columns = model[0]
trees = [
    HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
    .fit(columns.transform(X_train), y_train)
    .predict(columns.transform(X_new))
    for level in LEVELS
]
for name, curves in (("fenchel", model.predict(X_new)), ("HGB", np.column_stack(trees))):
    loss = mean_pinball_loss(y_new, curves, LEVELS)
    covered = interval_coverage(y_new, curves[:, [0, 2]])
    print(f"{name}: mean pinball loss {loss:.4g}, 80 % interval covers {covered:.1%}")

# %%
# Calibrated ranges: some rows are held out, and determine how wide they must be.

ranges = ConformalQuantileRegressor(model, coverage=0.8).fit(X_train, y_train)
covered = interval_coverage(y_new, ranges.predict_interval(X_new))
print(f"calibrated: 80 % interval covers {covered:.1%}")

# %%
# What matters, and a file without pickle.

found = importances_of(model)
most = sorted(zip(found.shares, found.names, strict=True), reverse=True)[:5]
print("most important:", ", ".join(f"{name} {share:.0%}" for share, name in most))
if out:
    fenchel.save(ranges, out[0])
    print("saved to", out[0])

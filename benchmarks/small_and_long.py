"""Fits of few rows that once took long, each the first call of a process.

Searches fit hundreds of small problems; 299 levels, or nine levels of a polynomial kernel, are
problems whose steps were many; a cone regressor has matrices with conditions for unknowns.
"""

from __future__ import annotations

from statistics import median

from benchmarks.harness import Row, in_process

_LIMIT, _RUNS = 3.0, 3
_START = """
import json, time, warnings
import numpy as np
from fenchel import QuantileRegressor
from fenchel.kernels import Polynomial
from fenchel.model_selection import PathSearchCV
from fenchel.positive import (
    ConeRegressor, DensityEstimator, NonCrossingQuantileRegressor, monotone_cone,
)
random = np.random.default_rng(0)
X = random.normal(size=({n}, {d}))
y = np.sin(2.0 * X[:, 0]) + 0.5 * random.normal(size={n})
warnings.simplefilter("ignore")
started = time.perf_counter()
"""
_END = """
print(json.dumps(dict(seconds=time.perf_counter() - started)))
"""
_CASES = {
    "search of NonCrossingQuantileRegressor, 60 rows": (
        60,
        1,
        "PathSearchCV(NonCrossingQuantileRegressor()).fit(X, y)",
    ),
    "299 levels, 60 rows": (
        60,
        1,
        "QuantileRegressor(np.arange(1, 300) / 300, alpha=1e-3, learn=False).fit(X, y)",
    ),
    "9 levels, polynomial of degree 5, 60 rows": (
        60,
        1,
        "QuantileRegressor(np.arange(1, 10) / 10, alpha=1e-3, kernel=Polynomial(5)).fit(X, y)",
    ),
    "ConeRegressor, monotone in six columns, 150 rows": (
        150,
        6,
        "ConeRegressor(monotone_cone(3)).fit(X, np.column_stack([y, y + 1.0, y + 2.0]))",
    ),
    "search of DensityEstimator, 200 rows": (
        200,
        1,
        "PathSearchCV(DensityEstimator()).fit(X)",
    ),
}


def fits(slow: bool) -> list[Row]:
    """Median seconds of each, imports outside and compiled code in its cache."""
    rows = []
    for name, (n, d, call) in _CASES.items():
        code = _START.format(n=n, d=d) + call + _END
        in_process(code)  # compiles what is not in the cache
        seconds = median(in_process(code)["seconds"] for _ in range(_RUNS))
        reached = seconds <= _LIMIT
        rows.append(Row(f"{name}, first fit", seconds, "s", f"<= {_LIMIT:g} s", reached))
    return rows

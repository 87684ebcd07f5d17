"""What needs rows in an array says so where they are sparse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from fenchel import QuantileRegressor
from fenchel.bounds import bound, excess_bound, l1_ball, level_bounds
from fenchel.inspection import feature_slice, partial_dependence
from fenchel.metrics import total_effects
from fenchel.report import make_report

RNG = np.random.default_rng(0)
X, Y = csr_array(RNG.integers(0, 2, (40, 3)).astype(float)), RNG.standard_normal(40)
MODEL = QuantileRegressor([0.1, 0.9], kernel="linear", alpha=1e-2).fit(X, Y)
CALLS = {
    "bound": lambda: bound(MODEL, X, Y, target_bound=5.0),
    "level_bounds": lambda: level_bounds(MODEL, X, Y, margin=1.0),
    "excess_bound": lambda: excess_bound(MODEL, X, Y, target_bound=5.0),
    "l1_ball": lambda: l1_ball(X, 1.0),
    "feature_slice": lambda: feature_slice(X),
    "partial_dependence": lambda: partial_dependence(MODEL.predict, X),
    "total_effects": lambda: total_effects(MODEL.predict, X),
    "make_report": lambda: make_report(MODEL, X, Y),
}


@pytest.mark.parametrize("name", CALLS)
def test_sparse_rows_are_refused_by_a_sentence(name):
    with pytest.raises(TypeError, match=r"X must be an array, got a sparse one: X.toarray\(\)"):
        CALLS[name]()

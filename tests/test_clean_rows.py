"""Rows with nothing to convert take a short way: what fits know of columns is the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fenchel import KernelRidge

X = np.random.default_rng(0).standard_normal((20, 2))


def test_names_of_a_former_fit_are_gone():
    model = KernelRidge(alpha=0.1, learn=False).fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0])
    assert list(model.feature_names_in_) == ["a", "b"]
    model.fit(X, X[:, 0])
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["X", "y"])
def test_what_is_not_finite_is_refused(name, value):
    given = {"X": X.copy(), "y": X[:, 0].copy()}
    given[name].flat[3] = value
    with pytest.raises(ValueError, match=f"(?i){name}.*(nan|infinity)"):
        KernelRidge(alpha=0.1, learn=False).fit(**given)


@pytest.mark.parametrize("empty", [np.empty((0, 2)), np.empty((20, 0))])
def test_what_is_empty_is_refused(empty):
    with pytest.raises(ValueError, match="minimum of 1"):
        KernelRidge(alpha=0.1, learn=False).fit(empty, np.zeros(len(empty)))

"""Learned parameters beside the stored losses of grids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments import harness, learned_quantiles
from experiments_cases import quick_form
from fenchel import QuantileRegressor


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return quick_form("learned_quantiles", tmp_path_factory.mktemp("learned_quantiles"))


@pytest.mark.slow
def test_losses_are_those_of_a_plain_fit(quick):
    results, page = quick
    assert set(results["data_set"]) == set(learned_quantiles.QUICK_SETS)
    X, y = harness.standardized("mcycle")
    train, test = harness.split(len(X), 1)
    model = QuantileRegressor(learned_quantiles.LEVELS).fit(X[train], y[train])
    residual = y[test][:, None] - model.predict(X[test])
    levels = np.array(learned_quantiles.LEVELS)
    loss = np.maximum(levels * residual, (levels - 1.0) * residual).sum(axis=1).mean()
    row = results.query("data_set == 'mcycle' and split == 1 and method == 'learned'").iloc[0]
    assert row["pinball"] == pytest.approx(loss, rel=1e-4)
    assert "Quick version" in page


@pytest.mark.slow
def test_grids_are_those_of_the_same_split(quick):
    results, _ = quick
    stored = pd.read_csv(harness.HERE / "results" / learned_quantiles.THEIRS / "results.csv")
    keys = ["data_set", "split", "method"]
    stored = stored.set_index(keys)["pinball"]
    grids = results[results["method"] != "learned"].set_index(keys)["pinball"]
    assert set(grids.index.get_level_values("method")) == set(learned_quantiles.GRIDS)
    assert (grids == stored[grids.index]).all()
    learned = results[results["method"] == "learned"]
    assert len(grids) == 2 * len(learned)
    timed = learned["split"] < learned_quantiles.TIMED_SPLITS
    assert (learned.loc[timed, "grid_seconds"] > 0.0).all()


def test_data_sets_are_counted_by_their_means():
    shifts = {"a": {"learned": -0.5, "IND": 0.0, "JQR": 0.1}}
    shifts["b"] = {"learned": 0.05, "IND": 0.0, "JQR": 0.1}
    rows = [
        {
            "data_set": name,
            "split": k,
            "method": method,
            "pinball": 1.0 + shift + (0.01 * k if method == "learned" else 0.0),
        }
        for name, methods in shifts.items()
        for method, shift in methods.items()
        for k in range(10)
    ]
    text = learned_quantiles.verdict(pd.DataFrame(rows))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    assert [each[:3] for each in cells] == [
        ["IND", "1 (1)", "1 (1): b"],
        ["JQR", "2 (1)", "0 (0):"],
    ]

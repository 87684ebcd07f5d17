"""The experiment of quantiles that cross nowhere, in its quick form."""

from __future__ import annotations

import pytest

from experiments import positive_quantiles
from experiments_cases import quick_form


@pytest.mark.slow
def test_quick_form(tmp_path):
    results, page = quick_form("positive_quantiles", tmp_path, "--splits", "1")
    ours = results[results["method"] == positive_quantiles.OURS]
    assert set(ours["data_set"]) == set(positive_quantiles.QUICK_SETS)
    assert (ours["far_crossings"] == 0).all()
    assert (ours["crossing"] == 0.0).all()
    assert (ours["relative_gap"] <= positive_quantiles.TOL).all()
    assert (positive_quantiles.ratios(results) < 1.5).all()  # a constant has about 2 on mcycle
    assert "| mcycle |" in page
    assert "**0**" in page

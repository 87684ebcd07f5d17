"""The experiment of quantiles that cross nowhere, in its quick form."""

from __future__ import annotations

import pandas as pd

from experiments import positive_quantiles


def test_quick_form(tmp_path):
    positive_quantiles.main(["--quick", "--splits", "1", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "picture.png", "page.md"}
    results = pd.read_csv(tmp_path / "results.csv")
    ours = results[results["method"] == positive_quantiles.OURS]
    assert set(ours["data_set"]) == set(positive_quantiles.QUICK_SETS)
    assert (ours["far_crossings"] == 0).all()
    assert (ours["crossing"] == 0.0).all()
    assert (ours["relative_gap"] <= positive_quantiles.TOL).all()
    assert (positive_quantiles.ratios(results) < 1.5).all()  # a constant has about 2 on mcycle
    page = (tmp_path / "page.md").read_text()
    assert "| mcycle |" in page
    assert "**0**" in page

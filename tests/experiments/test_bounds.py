"""The experiment on generalization bounds, in its quick form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments import bounds
from experiments_cases import quick_form


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return quick_form("bounds", tmp_path_factory.mktemp("bounds"))


@pytest.mark.slow
def test_every_fit_has_its_bounds(quick):
    results, _ = quick
    assert set(results["fit"]) == set(bounds.FITS)
    assert set(results["n"]) == set(bounds.QUICK_SIZES)
    assert (results.groupby(["fit", "n"])["split"].nunique() == 2).all()


def test_no_bound_is_passed_and_none_is_useless_in_the_end(quick):
    results, page = quick
    assert bounds.failures(results) == 0
    assert "None of the 48 bounds was passed" in page
    last = results[results["n"] == max(bounds.QUICK_SIZES)]
    assert (last["bound_clipped"] < last["trivial_clipped"]).all()
    assert (results["bound_clipped"] <= results["bound"]).all()
    assert (results["norm"] <= results["norm_bound"] * (1 + 1e-9)).all()
    assert (results["norm_bound"] < 2.0 * results["norm"]).all()
    stated = results["fit"] == "Lasso"
    assert (results.loc[stated, "choice"] == 0.0).all()
    assert (results.loc[~stated, "choice"] > 0.0).all()


def test_failures_are_counted(quick):
    results, _ = quick
    broken = results.copy()
    broken.loc[0, "risk"] = broken.loc[0, "bound"] + 1.0
    assert bounds.failures(broken) == 1


def test_risk_is_close_to_the_noise(quick):
    """Of the Lasso: E (0.3 + 0.2 x)² / 3, and a little more."""
    results, _ = quick
    noise = (0.09 + 0.04 / 3.0) / 3.0
    risk = results.loc[(results["fit"] == "Lasso") & (results["n"] == 1600), "risk"]
    assert (risk > noise).all()
    assert (risk < 1.2 * noise).all()


def test_what_is_added_shrinks_with_the_root_of_n(quick):
    """Exactly so, where the fits are in the same balls."""
    results, _ = quick
    results = results.assign(
        added=(results["bound"] - results["empirical"]) * np.sqrt(results["n"])
    )
    groups = results.groupby(["fit", "norm_bound", "offset_bound"])
    spread = groups["added"].agg(lambda added: added.max() / added.min() - 1.0)
    assert spread.max() < 1e-4  # the table has six digits
    assert (groups["n"].nunique().groupby("fit").max() >= 2).all()


def test_slope_is_that_of_the_table():
    frame = pd.DataFrame({"fit": "SVR", "n": [10, 1000], "bound": [3.0, 1.2], "empirical": 1.0})
    assert bounds.slope(frame, "SVR") == pytest.approx(-0.5)


def test_targets_are_within_their_bounds():
    for name in bounds.FITS:
        X, y = bounds.draw(name, 20_000, 0)
        assert np.abs(X).max() <= 1.0
        assert 0.8 < np.abs(y).max() <= 1.0

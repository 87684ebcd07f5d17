"""Reports of models of several targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fenchel import KernelRidge
from fenchel.kernels import Gaussian
from fenchel.report import make_report
from report_pages import Page, table


@pytest.mark.parametrize("named", [True, False])
def test_all_targets_are_named_and_the_pictures_say_which_is_drawn(named):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 1)), columns=["dose"])
    y = pd.DataFrame({"weight": np.sin(X["dose"]), "<age>": X["dose"]})
    targets = y if named else y.to_numpy()
    model = KernelRidge(kernel=Gaussian(1.0), alpha=1e-3).fit(X, targets)
    report = make_report(model, X, targets)
    page = Page(report.html)
    names = ("weight", "<age>") if named else ("output 0", "output 1")
    assert page.title.endswith("of weight, <age>" if named else "of y")
    squares = [f"squared error of {name}" for name in names]
    assert set(squares) <= set(table(page, "Scores"))
    losses = {score.name: score.model for score in report.facts.scores}
    error = np.mean((y.to_numpy() - model.predict(X)) ** 2, axis=0)
    np.testing.assert_allclose([losses[name] for name in squares], error)
    assert f"predictions of {names[0]} along dose" in " ".join(i["alt"] for i in page.images)
    assert f"predictions of {names[0]} as curves" in page.sections["pictures"]

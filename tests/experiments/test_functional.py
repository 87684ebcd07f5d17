"""Quick forms of the experiments on regression of curves, and what they are built of."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pandas as pd
import pytest
from experiments.functional_common import (
    OUTPUT_RHO,
    choose,
    contaminate,
    gaussian,
    make_loss,
    sparsity,
    synthetic,
    validation_errors,
)
from experiments.functional_figure1 import trade
from experiments.functional_figures5to8 import by_directions
from sklearn.model_selection import KFold

from experiments import functional_figure2
from fenchel.functional import FunctionalRegressor
from fenchel.losses import CurveHuber, CurveInsensitive
from fenchel.model_selection import PathSearchCV


@pytest.fixture(scope="module")
def ran(request, tmp_path_factory):
    """Folder with what the quick form of an experiment has written."""
    out = tmp_path_factory.mktemp(request.param)
    importlib.import_module(f"experiments.{request.param}").main(["--quick", "--out", str(out)])
    return out


def read(folder, *pictures):
    names = {"page.md", "results.csv", "picture.png", *pictures}
    assert {path.name for path in folder.iterdir()} == names
    for name in ("picture.png", *pictures):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    return pd.read_csv(folder / "results.csv"), (folder / "page.md").read_text()


@pytest.mark.parametrize("ran", ["functional_figure1"], indirect=True)
def test_figure1(ran):
    results, page = read(ran)
    assert results.relative_gap.max() <= 1e-6
    means = results.groupby(["loss", "epsilon"]).mean(numeric_only=True)
    for loss in ("eps2", "epsinf"):
        zeros = means.loc[loss].coefficients
        assert zeros[0.0] == 0.0
        assert (np.diff(zeros) >= 0.0).all()
    curves = results[results.loss == "eps2"]
    assert (curves.coefficients == curves.rows).all()  # whole curves or none of it
    assert means.loc["epsinf"].coefficients.iloc[-1] > 80.0
    # the noise has the norm 0.5, so that a smaller tube holds no curve
    assert (curves.coefficients[curves.epsilon < 0.35] == 0.0).all()
    for line in trade(results).itertuples():
        assert f"{line.mse:.4f}" in page


@pytest.mark.parametrize("ran", ["functional_figure2"], indirect=True)
def test_figure2(ran):
    results, page = read(ran)
    assert results.relative_gap.max() <= 1e-6
    clean = functional_figure2.at(results, functional_figure2.CLEAN, "square").mean()
    mean = {
        (kind, loss): functional_figure2.at(results, condition, loss).mean()
        for kind, condition in zip((2, 3), functional_figure2.KEY, strict=True)
        for loss in functional_figure2.LOSSES
    }
    for loss in ("H1", "H2"):
        assert mean[2, loss] - clean < 0.5 * (mean[2, "square"] - clean)
    assert mean[3, "H1"] < 0.5 * mean[3, "H2"]
    assert "at least halve the excess is **confirmed**" in page
    assert "not run" in page  # of the whole grids


@pytest.mark.parametrize("ran", ["functional_figure4"], indirect=True)
def test_figure4(ran):
    results, page = read(ran)
    assert results.relative_gap.max() <= 1e-4
    least = results.groupby(["kind", "loss", "alpha", "kappa"], dropna=False).mse.mean()
    least = least.groupby(["kind", "loss"]).min()
    assert (least[:, "H1"] < 0.5 * least[:, "square"]).all()
    assert least[3, "H1"] < 0.5 * least[3, "H2"]
    assert f"{least[2, 'H2']:.5f}" in page


@pytest.mark.parametrize("ran", ["functional_figures5to8"], indirect=True)
def test_figures5to8(ran):
    results, page = read(ran, "losses.png")
    assert (results.ratio > 1.0).all()
    means = results.groupby(["kind", "strength", "p"]).ratio.mean()
    assert means[2, 2.0].idxmin() == 2.0
    assert means[3, 0.1, 1.0] < means[3, 0.1, 2.0]
    assert f"{means[3, 0.1, 1.0]:.3f}" in page


@pytest.mark.parametrize("p", [1.0, 1.25, 2.0, np.inf])
def test_losses_are_those_of_the_definition(p):
    points = np.random.default_rng(1).uniform(-3.0, 3.0, (40, 2))
    huber = CurveHuber(0.8, p, np.ones(2)).value(points)
    np.testing.assert_allclose(by_directions(points, p, 4000), huber, rtol=1e-4)
    tube = CurveInsensitive(0.5, p, np.ones(2)).value(points)
    np.testing.assert_allclose(by_directions(points, p, 4000, 0.5), tube, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("square", 1.0), ("H1", 0.02), ("eps2", 0.3)])
def test_fits_are_those_of_the_estimator(name, value):
    data = synthetic(0, n=30)
    condition = (2, 0.2, 2.0)
    Y = contaminate(data.Y, condition, 3)
    fitted = data.train.fit(Y, name, 1e-5, value)
    loss = {"square": "squared", "H1": "huber", "eps2": "squared_epsilon_insensitive"}[name]
    model = FunctionalRegressor(
        loss,
        1 if name == "H1" else 2,
        kappa=value,
        epsilon=value,
        alpha=1e-5,
        kernel="precomputed",
        output_kernel=gaussian(OUTPUT_RHO),
    ).fit(data.train.gram, Y, data.theta)
    np.testing.assert_allclose(
        data.train.predict(fitted, data.gram_test), model.predict(data.gram_test), atol=1e-3
    )
    assert sparsity(fitted).rows == pytest.approx(100.0 * model.sparsity_.rows)
    assert type(make_loss(name, value, data.train.outputs.measure)) is type(model.loss_)


def test_selection_is_that_of_the_estimator():
    data = synthetic(1, n=30)
    Y = contaminate(data.Y, (3, 0.5, 0.2), 3)
    alphas, kappas = [1e-6, 1e-4], [0.003, 0.03, 0.3]
    errors = validation_errors(data.train, Y, "H1", alphas, kappas)
    search = PathSearchCV(
        FunctionalRegressor("huber", 1, kernel="precomputed", output_kernel=gaussian(OUTPUT_RHO)),
        {"alpha": alphas, "kappa": kappas},
        cv=KFold(5, shuffle=True, random_state=0),
        aggregation="median",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(data.train.gram, Y, theta=data.theta)
    chosen = choose(errors, alphas, kappas)
    assert chosen == (search.alpha_, search.best_params_["kappa"])
    middle = np.median(errors, axis=0).min()
    assert middle == pytest.approx(-search.best_score_, rel=5e-2)

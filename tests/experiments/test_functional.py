"""Quick forms of the experiments on regression of curves, and what they are built of."""

from __future__ import annotations

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
)
from experiments.functional_figure1 import trade, verdict
from experiments.functional_figures5to8 import by_directions
from experiments.functional_synthetic import RANK, at_ends, synthetic
from sklearn.model_selection import KFold

from experiments import functional_figure2, functional_synthetic
from experiments_cases import quick_form
from fenchel.functional import FunctionalRegressor
from fenchel.losses import CurveHuber, CurveInsensitive
from fenchel.model_selection import PathSearchCV


@pytest.mark.slow
def test_figure1(tmp_path):
    results, page = quick_form("functional_figure1", tmp_path)
    assert results.relative_gap.max() <= 1e-6
    means = results.groupby(["loss", "epsilon"]).mean(numeric_only=True)
    for loss in ("eps2", "epsinf", "eps2 whole"):
        zeros = means.loc[loss].coefficients
        assert zeros[0.0] == 0.0
        assert (np.diff(zeros) >= 0.0).all()
    curves = results[results.loss != "epsinf"]
    assert (curves.coefficients == curves.rows).all()  # whole curves or none of it
    assert means.loc["epsinf"].coefficients.iloc[-1] > 80.0
    # the noise has the norm 0.5, so that a smaller tube holds no curve, and half of it projected
    narrow = curves[curves.epsilon < 0.35].groupby("loss").coefficients.max()
    assert narrow["eps2 whole"] == 0.0
    assert narrow["eps2"] > 20.0
    # what the noise adds to the error of all models
    assert (results.nmse - results.clean).mean() == pytest.approx(0.25, abs=0.01)
    for line in trade(results).itertuples():
        assert f"{line.nmse:.4f}" in page


def test_claim_of_figure1():
    rows = pd.DataFrame(
        [
            *(("eps2", a, e, n, z) for a, e, n, z in [(1e-4, 0.0, 1.0, 0), (1e-5, 0.3, 1.09, 30)]),
            ("eps2", 1e-4, 0.5, 1.0, 60),  # with the λ of the best, not with a smaller one
            ("eps2", 1e-6, 0.9, 1.2, 90),  # too bad
            *(
                ("epsinf", a, e, n, z)
                for a, e, n, z in [(1e-4, 0.0, 1.0, 0), (1e-5, 0.3, 1.0, 19)]
            ),
        ],
        columns=["loss", "alpha", "epsilon", "nmse", "coefficients"],
    )
    found = trade(rows)
    assert found.coefficients.tolist() == [0, 30, 0, 19]
    assert verdict(found) == "confirmed for ε-insensitive, p = 2 only"


@pytest.mark.slow
def test_figure2(tmp_path):
    results, page = quick_form("functional_figure2", tmp_path)
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
    huber = results[results.loss == "H1"]
    first, last = ((huber.alpha == end).sum() for end in (1e-6, 1e-3))
    assert f"p = 1: for λ {first} and {last} of 6 times" in page


@pytest.mark.slow
def test_figure4(tmp_path):
    results, page = quick_form("functional_figure4", tmp_path)
    assert results.relative_gap.max() <= 1e-4
    least = results.groupby(["kind", "loss", "alpha", "kappa"], dropna=False).mse.mean()
    least = least.groupby(["kind", "loss"]).min()
    assert (least[:, "H1"] < 0.5 * least[:, "square"]).all()
    assert least[3, "H1"] < 0.5 * least[3, "H2"]
    assert f"{least[2, 'H2']:.5f}" in page


@pytest.mark.slow
def test_figures5to8(tmp_path):
    results, page = quick_form("functional_figures5to8", tmp_path, pictures=["losses.png"])
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


@pytest.mark.parametrize(
    ("name", "value", "representation"),
    [
        ("square", 1.0, "spline"),
        ("H1", 0.02, "spline"),
        ("H2", 0.02, "projected"),
        ("eps2", 0.3, "projected"),
        ("eps2 whole", 0.3, "spline"),
    ],
)
def test_fits_are_those_of_the_estimator(name, value, representation):
    data = synthetic(0, n=30)
    condition = (2, 0.2, 2.0)
    Y = contaminate(data.Y, condition, 3)
    # along a path, and not the first of it
    *_, fitted = data.train.path(Y, name, 1e-5, [1.5 * value, value], 1e-9)
    loss = {"s": "squared", "H": "huber", "e": "squared_epsilon_insensitive"}[name[0]]
    model = FunctionalRegressor(
        loss,
        1 if name == "H1" else 2,
        kappa=value,
        epsilon=value,
        alpha=1e-5,
        center=None,
        kernel="precomputed",
        output_kernel=gaussian(OUTPUT_RHO),
        representation=representation,
        n_components=RANK if representation == "projected" else None,
        tol=1e-9,
    ).fit(data.train.gram, Y, data.theta)
    np.testing.assert_allclose(
        data.train.predict(fitted, data.gram_test, name), model.predict(data.gram_test), atol=1e-3
    )
    assert sparsity(fitted).rows == pytest.approx(100.0 * model.sparsity_.rows)
    expected = make_loss(name.removesuffix(" whole"), value, data.train.points.measure)
    assert type(expected) is type(model.loss_)


def test_selection_is_that_of_the_estimator():
    data = synthetic(1, n=30)
    Y = contaminate(data.Y, (3, 0.5, 0.2), 3)
    alphas, kappas = [1e-6, 1e-4], [0.003, 0.03, 0.3]
    errors = functional_synthetic.validation_errors(data.train, Y, "H1", alphas, kappas)
    search = PathSearchCV(
        FunctionalRegressor(
            "huber",
            1,
            center=None,
            kernel="precomputed",
            output_kernel=gaussian(OUTPUT_RHO),
        ),
        {"alpha": alphas, "kappa": kappas},
        cv=KFold(5, shuffle=True, random_state=0),
        aggregation="median",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(data.train.gram, Y, theta=data.theta)
    chosen = choose(errors, alphas, kappas)
    assert chosen == (search.alpha_, search.best_params_["kappa"])
    middle = np.nanmin(np.median(errors, axis=0))
    assert middle == pytest.approx(-search.best_score_, rel=5e-2)


def test_folds_that_cannot_change_the_choice_are_left_out():
    """Strength by strength, where nothing is left out, the choice is the same."""
    data = synthetic(1, n=30)
    Y = contaminate(data.Y, (3, 0.5, 0.2), 3)
    alphas, kappas = [1e-6, 1e-5, 1e-4, 1e-3], [0.003, 0.03, 0.3]
    errors = functional_synthetic.validation_errors(data.train, Y, "H1", alphas, kappas)
    whole = np.concatenate(
        [
            functional_synthetic.validation_errors(data.train, Y, "H1", [alpha], kappas)
            for alpha in alphas
        ],
        axis=1,
    )
    known = np.isfinite(errors)
    assert np.isfinite(whole).all()
    assert (known.sum(axis=0) == 3).any()
    assert known.sum(axis=0).min() == 3
    np.testing.assert_allclose(errors[known], whole[known], rtol=0.05)
    assert choose(errors, alphas, kappas) == choose(whole, alphas, kappas)
    middle = np.median(whole, axis=0)
    assert np.all(middle[~known.all(axis=0)] >= 0.95 * middle.min())


def test_draws_share_their_processes():
    curves = np.vstack([synthetic(draw, n=10).clean_test for draw in (0, 1)])
    assert np.linalg.matrix_rank(curves, tol=1e-10) == 4


def test_ends_are_counted():
    assert at_ends(np.array([1.0, 2.0, 4.0, 1.0]), [1.0, 2.0, 4.0]) == "2 and 1 of 4"

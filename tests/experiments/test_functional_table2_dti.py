"""Quick form of the study of five losses on curves."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from experiments.functional_table2_dti_page import cells, verdict

from experiments import functional_table2_dti as experiment
from experiments import harness
from experiments_cases import quick_form

PUBLISHED = harness.published(experiment.NAME)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    if not os.environ.get("FENCHEL_DATA"):
        pytest.skip("FENCHEL_DATA is unset: the DTI study is not here")
    return quick_form(experiment.NAME, tmp_path_factory.mktemp("dti"), "--splits", "1")


@pytest.mark.slow
def test_page_shows_what_was_published(ran):
    _, page = ran
    for line in PUBLISHED.itertuples():
        assert f"| {line.mse_x10:.2f} ± {line.mse_sd:.2f} |" in page
    assert "85.9 ± 10.7 %" in page
    assert "Not run in the quick version." in page


@pytest.mark.slow
def test_results(ran):
    results, _ = ran
    assert results.relative_gap.max() <= 1e-6
    assert (results.mse_all_x10 >= results.mse_x10).all()
    sparse = results.loss.str.startswith("eps")
    assert results.sparsity_percent[~sparse].max() == 0.0
    full = results[np.all([results[n] == v for n, v in experiment.CHOSEN._asdict().items()], 0)]
    weak = full[(full.alpha == 1e-5) & (full.selection == "mean")].set_index("loss")
    assert weak.sparsity_percent["epsinf"] > 50.0
    # what the paper says of λ = 1e-5: too small for the square loss, not for the Huber losses
    strong = full[(full.alpha == 1e-3) & (full.selection == "mean")].set_index("loss")
    assert weak.mse_x10["square"] > 1.1 * strong.mse_x10["square"]
    assert weak.mse_x10[["H1", "H2"]].max() < 0.9 * weak.mse_x10["square"]
    # projections lack most of the noise, and have zeros where whole residuals have none or fewer
    assert weak.sparsity_percent["eps2"] >= weak.sparsity_percent["eps2 whole"]
    # the literal reading, which the page rejects
    literal = results[(results.norm == "euclidean") & ~results.center & ~results.extended]
    assert literal.mse_x10.min() > 1.3 * PUBLISHED.mse_x10.max()


def test_readings_are_what_they_say():
    Y = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    extended, theta = experiment.on_grid(Y, extended=True)
    np.testing.assert_array_equal(extended[0], [3.0, 2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0])
    np.testing.assert_allclose(theta[3:6], [0.0, 0.5, 1.0])
    plain, points = experiment.on_grid(Y, extended=False)
    np.testing.assert_array_equal(plain, Y)
    np.testing.assert_array_equal(points, theta[3:6])
    x = np.random.default_rng(0).normal(size=(2, 93))
    squares = float(np.sum((x[0] - x[1]) ** 2))
    for norm, distance in (("euclidean", squares), ("L2", squares / 93)):
        chosen = experiment.parameters(experiment.Reading(norm, True, False))
        assert chosen["kernel"](x)[0, 1] == pytest.approx(np.exp(-1.25 * distance))
    laplacian = chosen["output_kernel"](np.array([[0.2], [0.5]]))
    assert laplacian[0, 1] == pytest.approx(np.exp(-10 * 0.3))


def test_verdict_counts_cells():
    """Two errors are 1.1 deviations too large, and all shares of zeros two deviations."""
    records = [
        {
            "alpha": line["lambda"],
            "loss": line.loss,
            "mse_x10": line.mse_x10 + 1.1 * line.mse_sd * (line.loss == "H1"),
            "sparsity_percent": line.sparsity_percent + 2.0 * line.sparsity_sd,
            "parameter": 0.1,
        }
        for _, line in PUBLISHED.iterrows()
    ]
    table = cells(pd.DataFrame(records), PUBLISHED)
    np.testing.assert_allclose(table.mse_off[table.loss == "H1"], 1.1)
    text = verdict(table)
    assert "the error in 8 of 10 cells (not: H¹ at λ = 1e-05, H¹ at λ = 0.001)" in text
    assert "the share of zeros in 0 of 4" in text

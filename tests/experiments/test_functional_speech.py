"""The speech study: its pieces, its grids against fits one by one, and its quick form."""

from __future__ import annotations

import wave

import numpy as np
import pandas as pd
import pytest
from experiments.functional_common import make_loss
from experiments.functional_speech import FUNCTIONS_BY_NAME, main, output_kernel, whole
from experiments.functional_speech_page import (
    FUNCTIONS,
    cells,
    on_common_splits,
    pairs_in_order,
    printed,
)
from experiments.functional_speech_page import page as speech_page
from experiments.functional_speech_paths import SELECTION_TOL, Fold, coordinates, search

from experiments import functional_speech_data as data
from experiments import harness
from experiments_cases import quick_form
from fenchel.design import Gram
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm, Splitting, first_that_can

absent = data.missing()
needs_data = pytest.mark.skipif(absent is not None, reason=absent or "")
TABLES = [harness.published(f"functional_table{k}_speech") for k in (3, 4)]
M = 24


def fold(n_components=None, tol=SELECTION_TOL):
    rng = np.random.default_rng(0)
    theta = np.linspace(0.0, 1.0, M)
    X = rng.uniform(size=(40, 2))
    Y = np.sin(6.0 * (theta + X[:, :1])) * X[:, 1:] + 0.05 * rng.standard_normal((40, M))
    gram = np.exp(-3.0 * np.sum((X[:, None] - X) ** 2, axis=2))
    Y[:3] *= -1.0
    counted = np.arange(M) < rng.integers(12, M, (10, 1))
    outputs = coordinates(output_kernel(M), n_components)
    return Fold(gram[:30, :30], gram[30:, :30], outputs, Y[:30], Y[30:], counted, tol)


def folds_of_rows():
    """Five folds of the rows of one."""
    own = fold()
    parts = np.array_split(np.arange(30), 5)
    rests = [np.setdiff1d(np.arange(30), part) for part in parts]
    return [
        Fold(
            own.gram[np.ix_(rest, rest)],
            own.gram[np.ix_(part, rest)],
            own.outputs,
            own.Y[rest],
            own.Y[part],
            np.ones((len(part), M), dtype=bool),
        )
        for part, rest in zip(parts, rests, strict=True)
    ]


def one_by_one(own, name, alpha, value):
    """Error of a fit of its own, by other means: as values at the points."""
    kernel, root = output_kernel(M), np.sqrt(1.0 / M)
    spectrum, vectors = np.linalg.eigh(root * kernel * root)
    design = Gram(own.gram, vectors * np.sqrt(np.maximum(spectrum, 0.0)))
    loss, weight = make_loss(name, value, np.full(M, 1.0 / M)), np.ones(len(own.gram))
    problem = Problem(loss, design, own.Y * root, weight, alpha, fit_intercept=False)
    solution = first_that_can([ClosedForm(1e-9), Splitting(1e-9, 2000)], problem).solve(problem)
    missed = own.cross @ (solution.weights * root) @ kernel - own.held_out
    return np.mean([row[seen] @ row[seen] for row, seen in zip(missed, own.counted, strict=True)])


def grid(name):
    huber = name.startswith("H")
    values = np.geomspace(1e-3, 1.0, 8) if huber else np.geomspace(1e-3, 0.3, 8)
    return (1e-5, 1e-4, 1e-3), values


@pytest.mark.parametrize("name", ["H1", "H2", "eps2", "epsinf"])
def test_paths_have_the_errors_of_single_fits(name):
    (alphas, values), n_components = grid(name), M if name in ("H2", "eps2") else None
    expected = [[one_by_one(fold(), name, a, v) for v in values] for a in alphas]
    exact, usual = (fold(n_components, tol=tol) for tol in (1e-6, SELECTION_TOL))
    surface = search([exact], name, alphas, values, robust=False, hopeless=np.inf)
    np.testing.assert_allclose(surface.errors, expected, rtol=0.01)
    assert surface.chosen.error == surface.errors.min()
    surface = search([usual], name, alphas, values, robust=False, hopeless=np.inf)
    assert usual.solved < surface.errors.size
    i, j = alphas.index(surface.chosen.alpha), list(values).index(surface.chosen.value)
    assert expected[i][j] <= 1.02 * np.min(expected)


@pytest.mark.parametrize("name", ["H1", "H2", "eps2", "epsinf"])
def test_every_point_of_a_path_has_a_small_gap(name):
    """Points that were made of others too, whose products with the kernel are sums of theirs."""
    (alphas, _), n_components = grid(name), M if name in ("H2", "eps2") else None
    values = np.geomspace(1e-3, 0.3, 40)
    own = fold(n_components)
    search([own], name, alphas, values, robust=False, hopeless=np.inf)
    alpha, n = min(alphas), len(own.Y)
    assert len(own.now) > 20
    assert own.solved < len(alphas) * len(own.now)
    for place, point in own.now:
        value = np.exp(place) * (alpha if name.startswith("H") else 1.0)
        scale = value if name.startswith("H") else alpha
        loss, B = make_loss(name, value, own.outputs.measure), own.outputs.coupling
        model, dual = (scale / (n * alpha) * part for part in (point.model, point.dual))
        fitted, image = (own.gram @ part @ B @ B.T for part in (model, dual))
        np.testing.assert_allclose(scale / (n * alpha) * point.fitted, fitted, atol=1e-9)
        primal = np.mean(loss.value(own.targets - fitted)) + 0.5 * alpha * np.vdot(model, fitted)
        earned = np.sum(scale * point.dual * own.targets, axis=1)
        lower = np.mean(earned - loss.conjugate(scale * point.dual))
        lower -= 0.5 * alpha * np.vdot(dual, image)
        assert -1e-9 <= (primal - lower) / primal <= SELECTION_TOL


def test_paths_are_left_where_errors_grow():
    values = np.geomspace(1e-4, 1.0, 12)
    whole_path = search([fold()], "H1", [1e-4], values, False, np.inf)
    left = search([fold()], "H1", [1e-4], values, False)
    missing = np.isnan(left.errors)
    assert missing.any()
    assert not missing[0, -1]
    np.testing.assert_array_equal(left.errors[~missing], whole_path.errors[~missing])
    assert left.chosen[:3] == whole_path.chosen[:3]


@pytest.mark.parametrize("robust", [True, False])
def test_folds_that_cannot_change_the_choice_are_left_out(robust):
    """The choice is that of all folds, and a place is left out only where it is no better."""
    alphas, values = grid("H1")
    middle = np.median if robust else np.mean
    singles = [
        search([own], "H1", alphas, values, robust, np.inf).errors for own in folds_of_rows()
    ]
    complete = middle(singles, axis=0)
    surface = search(folds_of_rows(), "H1", alphas, values, robust, np.inf)
    left = np.isnan(surface.errors)
    assert left.any()
    of_others = surface.fits - 5 * np.count_nonzero(~left)
    assert (3 if robust else 1) * left.sum() <= of_others <= 4 * left.sum()
    np.testing.assert_allclose(surface.errors[~left], complete[~left], rtol=0.02)
    assert np.all(complete[left] >= 0.98 * surface.chosen.error)
    i, j = np.unravel_index(complete.argmin(), complete.shape)
    assert (surface.chosen.alpha, surface.chosen.value) == (alphas[i], values[j])


def test_all_eigenfunctions_are_the_points():
    one, other = fold(), fold(M)
    first, second = (own.predict(own.squared(1e-4).weights) for own in (one, other))
    np.testing.assert_allclose(first, second, atol=1e-8)
    few = fold(3)
    assert few.outputs.of(few.Y).shape == (30, 3)
    assert np.abs(few.predict(few.squared(1e-4).weights) - first).max() > 1e-3


def test_scaling():
    rng = np.random.default_rng(1)
    curves = data.scaled(rng.normal(5.0, 3.0, (6, 8, 20)))
    np.testing.assert_allclose(curves.min(axis=(0, 2)), -1.0)
    np.testing.assert_allclose(curves.max(axis=(0, 2)), 1.0)
    series = data.standardized(rng.normal(-2.0, 7.0, (6, 20, 13)))
    np.testing.assert_allclose(series.mean(axis=(0, 1)), 0.0, atol=1e-12)
    np.testing.assert_allclose(series.std(axis=(0, 1)), 1.0)


def test_splits():
    train, test = data.split(data.WORDS, 3)
    assert (len(train), len(test)) == (250, 163)
    assert set(train) | set(test) == set(range(413))
    assert set(train) != set(data.split(data.WORDS, 4)[0])


@pytest.mark.parametrize(
    ("outliers", "curves", "points"),
    [
        ("none", 0, 0),
        ("type1", 4, 30),
        ("type1_kept", 4, 30),
        ("type3", 4, 3),
        ("type3_all", 40, 3),
    ],
)
def test_outliers(outliers, curves, points):
    Y = np.random.default_rng(0).uniform(-1.0, 1.0, (40, 30))
    changed = data.contaminate(Y, outliers, 0) != Y
    assert changed.any(axis=1).sum() == curves
    assert set(changed.sum(axis=1)) <= {0, points}


def test_outliers_that_judge():
    Y = np.random.default_rng(0).uniform(0.5, 1.0, (40, 30))
    counted = np.arange(30) < np.arange(10, 30)[np.arange(40) % 20, None]
    for outliers in ("none", "type1", "type3"):
        judges, own = data.judges(Y, counted, outliers, 0)
        np.testing.assert_array_equal(judges, data.contaminate(Y, outliers, 0))
        np.testing.assert_array_equal(own, counted)
    judges, own = data.judges(Y, counted, "type3_all", 0)
    np.testing.assert_array_equal(judges, data.contaminate(Y, "type3_all", 0))
    np.testing.assert_array_equal(own, counted | (judges != Y))
    judges, own = data.judges(Y, counted, "type1_kept", 0)
    fitted = data.contaminate(Y, "type1_kept", 0)
    outlying = (fitted < 0.0).all(axis=1)
    assert outlying.sum() == 4
    np.testing.assert_array_equal(judges, np.where(outlying[:, None], -fitted, fitted))
    for curve, points in zip(judges[outlying], own[outlying], strict=True):
        whose = np.flatnonzero((curve == Y).all(axis=1))
        np.testing.assert_array_equal(points, counted[whose[0]])


def test_cepstra_are_of_frames():
    pytest.importorskip("python_speech_features", reason="sounds are read by it")
    signal = 1000.0 * np.random.default_rng(0).standard_normal(14501)
    found = data.cepstra(signal)
    assert found.shape == (290, 13)
    # the first coefficient is replaced by the log energy of the frame
    sharpened = np.append(signal[0], signal[1:] - 0.97 * signal[:-1])
    for k in (0, 7, 200):
        spectrum = np.abs(np.fft.rfft(sharpened[50 * k : 50 * k + 100], 512)) ** 2 / 512
        assert found[k, 0] == pytest.approx(np.log(spectrum.sum()))


def pronounce(where, word, samples, n_frames, rng):
    with wave.open(str(where / f"{word}.wav"), "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(data.RATE)
        recording.writeframes(samples.astype("<i2").tobytes())
    np.savetxt(
        where / f"{word}.csv", rng.normal(size=(14, n_frames)).cumsum(axis=1), delimiter=","
    )


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A folder of short words, of which two are pronounced alike."""
    where = tmp_path / "speech"
    where.mkdir()
    rng = np.random.default_rng(0)
    for k, word in enumerate(["a", *(f"w{k:02d}" for k in range(43))]):
        m = int(rng.integers(12, 25))
        samples = 3000.0 * np.sin(np.arange(50 * m + 1) * (0.05 + 0.01 * k))
        pronounce(where, word, samples, m, rng)
        if word == "a":
            pronounce(where, "b", samples, m, rng)
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    data.load.cache_clear()
    data.gram.cache_clear()
    yield where
    data.load.cache_clear()
    data.gram.cache_clear()


@pytest.mark.slow
def test_quick_form(made_up, tmp_path):
    pytest.importorskip("python_speech_features", reason="sounds are read by it")
    assert data.distinct(made_up) == ["a", *(f"w{k:02d}" for k in range(43))]
    results, page = quick_form("functional_speech", tmp_path / "out", "--splits", "1")
    assert len(results) == 8 * (5 + 3 + 3 + 3 + 3)
    assert results.relative_gap.max() <= 1e-4
    assert "not run" not in page
    assert "not complete" not in page
    assert "15.06 ± 2.22" in page
    some = results[(results.loss != "H1") | (results.function != "LP")].assign(seconds=3600.0)
    partial = " ".join(speech_page(some, TABLES, (12, 24), 60, quick=True).split())
    assert "131 of 136 cells times splits; the rest takes about 5.0 more hours" in partial
    speech = data.load(40)
    m = int(speech.lengths.max())
    assert speech.curves.shape == (40, 8, m)
    assert speech.sounds.shape == (40, m, 13)
    short = int(speech.lengths.argmin())
    n = int(speech.lengths[short])
    mirrored = speech.curves[short, :, n : 2 * n]
    np.testing.assert_array_equal(mirrored, speech.curves[short, :, :n][:, ::-1][:, : m - n])


def test_missing_data_are_said(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"the speech data are not at .*set FENCHEL_DATA"):
        main(["--quick", "--out", str(tmp_path)])


def test_published_tables():
    published = printed(TABLES)
    assert [len(table) for table in TABLES] == [40, 48]
    assert published.groupby("outliers").size().to_dict() == {
        "none": 40,
        "type1": 24,
        "type1_kept": 24,
        "type3": 24,
        "type3_all": 24,
    }
    assert set(published.function) == set(FUNCTIONS)


def test_losses_are_ordered_on_common_splits():
    runs = [("type1", k, loss) for k in range(3) for loss in ("square", "H2", "H1")]
    runs += [("none", 0, loss) for loss in ("square", "H2", "H1")] + [("type1", 3, "square")]
    results = pd.DataFrame(runs[:8] + runs[9:], columns=["outliers", "split", "loss"])
    kept = on_common_splits(results.assign(function="LP"))
    assert set(zip(kept.outliers, kept.split, kept.loss, strict=True)) == set(runs[:6])


def test_cells_complete_what_was_run_on_fewer_splits():
    square = [{"split": k, "loss": "square", "mse": 5.0 + k} for k in range(4)]
    huber = [{"split": 1, "loss": "H1", "mse": 5.5}]
    results = pd.DataFrame(square + huber).assign(outliers="none", function="LP")
    table = cells(results, printed(TABLES)).set_index(["outliers", "function", "loss"])
    assert table["mean"]["none", "LP", "square"] == 6.5
    assert table["mean"]["none", "LP", "H1"] == 6.0
    assert table.splits["none", "LP", "H1"] == 1
    assert table.off["none", "LP", "H1"] == pytest.approx((6.0 - 6.59) / 0.64)
    assert table.splits["none", "LA", "H1"] == 0


def test_pairs_in_order():
    part = printed(TABLES).query("outliers == 'type1' and function == 'TTCL'").assign(splits=1)
    # the two Huber losses are as good as equal in print
    assert pairs_in_order(part.assign(mean=part.published)) == (2, 2)
    assert pairs_in_order(part.assign(mean=-part.published)) == (0, 2)


@pytest.mark.slow
@needs_data
def test_words():
    speech = data.load()
    assert len(speech.words) == 413
    assert not {"two", "by", "sun"} & set(speech.words)
    assert (speech.lengths.min(), speech.lengths.max()) == (60, 290)
    assert speech.sounds.shape == (413, 290, 13)


@pytest.mark.slow
@needs_data
def test_published_error_of_one_function():
    outputs = coordinates(output_kernel(290), None)
    rho = float(data.RHOS[4])
    velum = whole(data.WORDS, rho, outputs, 0, FUNCTIONS_BY_NAME["VEL"], "none")
    error = velum.error(velum.predict(velum.squared(1e-10).weights))
    line = printed(TABLES).query("outliers == 'none' and function == 'VEL' and loss == 'square'")
    assert abs(error - line.published.item()) < line.sd.item()
    assert velum.error(np.zeros_like(velum.held_out)) > 4.0 * error

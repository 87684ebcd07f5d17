"""Fits of Dask collections: those of rows in memory, however they are cut and whoever dies."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

import fenchel
from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel._validation import constraints_of
from fenchel.kernels import Gaussian
from fenchel.model_selection import PathSearchCV
from fenchel.regression import elsewhere
from fenchel.testing import check_design

distributed = pytest.importorskip("distributed", reason="fits on a cluster need Dask")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd

from fenchel.dask import (
    DaskExpectileRegressor,
    DaskKernelRidge,
    DaskQuantileRegressor,
    DaskSVR,
    _cluster,
)
from fenchel.dask._cluster import Cluster
from fenchel.dask._design import Remote
from fenchel.dask._rows import SpreadFeatures, SpreadRows
from fenchel.features import PivotedCholesky

RNG = np.random.default_rng(0)
N = 900
X = RNG.uniform(size=(N, 2))
Y = np.sin(6 * X[:, 0]) + RNG.standard_normal(N) * (0.2 + X[:, 1])
W = RNG.integers(0, 3, N).astype(float)
SETTINGS = {"kernel": Gaussian(0.7), "alpha": 1e-3}
LEVELS = [0.1, 0.5, 0.9]
CUTS = (400, 100, 400)
dX, dY, dW = da.from_array(X, (CUTS, 2)), da.from_array(Y, (CUTS,)), da.from_array(W, (CUTS,))
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y, "w": W}, index=np.arange(N) + 7)


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs="CRITICAL") as cluster,
        distributed.Client(cluster) as known,
    ):
        yield known


def same(model, local):
    """One model up to the gaps of both."""
    bound = max(model.certificate_.gap, local.certificate_.gap) + 1e-12
    assert abs(model.certificate_.primal - local.certificate_.primal) <= bound
    assert model.status_.converged


CROSSING = {"levels": [0.48, 0.5, 0.52], "alpha": 1e-5}  # in 25 of the rows, if they may
PAIRS = [
    (DaskQuantileRegressor, QuantileRegressor, {**CROSSING, "non_crossing": "train"}),
    (DaskExpectileRegressor, ExpectileRegressor, {"levels": LEVELS}),
    (DaskSVR, SVR, {}),
    (DaskKernelRidge, KernelRidge, {}),
    (DaskSVR, SVR, {"kernel": "linear", "fit_intercept": False}),
]


@pytest.mark.parametrize(
    ("kind", "local", "given"),
    # the first one takes 16 s, the next ones 2 to 5
    [pytest.param(*PAIRS[0], marks=pytest.mark.slow), *PAIRS[1:]],
    ids=lambda each: str(each)[-40:],
)
def test_a_fit_is_that_of_the_rows_in_memory(client, kind, local, given):
    expected = local(**{**SETTINGS, **given}).fit(X, Y, W)
    model = kind(**{**SETTINGS, **given}, client=client).fit(dX, dY, dW)
    same(model, expected)
    assert model.certified_kernel_ == "given"
    lazy = model.predict(dX)
    assert isinstance(lazy, da.Array)
    found = lazy.compute()
    scale = 2 * np.sqrt(2 * expected.certificate_.gap / expected.alpha + 1e-10)
    np.testing.assert_allclose(found, expected.predict(X), atol=scale)
    np.testing.assert_allclose(model.score(dX, dY, dW), model.score(X, Y, W), rtol=1e-9)
    here = model.to_local()
    assert type(here) is local
    np.testing.assert_allclose(here.predict(X), found, rtol=1e-12)
    assert here.certificate_ == model.certificate_
    assert pickle.loads(pickle.dumps(model)).client is None


@pytest.mark.slow
def test_rows_far_from_zero_are_centred_on_the_workers(client):
    given = {"kernel": "linear", "alpha": 1e-3}
    far = da.from_array(X + 1e5, (CUTS, 2))
    expected = SVR(**given).fit(X + 1e5, Y)
    same(DaskSVR(**given, client=client).fit(far, dY), expected)


@pytest.mark.slow
def test_a_search_is_that_of_the_rows_in_memory(client):
    """On the same folds, wherever partitions end; and so is the fit of its choice."""
    grid = {"alpha": [1e-1, 1e-3], "length_scale": [0.4, 0.7]}
    folds = KFold(2, shuffle=True, random_state=0)
    here = ExpectileRegressor(0.3, refit_offsets=None)  # else those of held-out rows, in memory
    expected = PathSearchCV(here, grid, cv=folds).fit(X, Y, sample_weight=W)
    model = DaskExpectileRegressor(0.3, refit_offsets=None, client=client)
    search = PathSearchCV(model, grid, cv=folds).fit(dX, dY, sample_weight=dW)
    assert search.best_params_ == expected.best_params_
    for k in range(2):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(search.cv_results_[name], expected.cv_results_[name], atol=1e-4)
        assert search.cv_results_[f"split{k}_relative_gap"].max() <= 1e-6
    assert search.n_early_stops_ == 0
    same(search.best_estimator_, expected.best_estimator_)
    assert search.predict(dX).chunks[0] == dX.chunks[0]


@pytest.mark.slow
def test_a_search_scored_by_a_name(client):
    grid, given = {"alpha": 2}, {"cv": 2, "scoring": "neg_mean_absolute_error"}
    expected = PathSearchCV(KernelRidge(kernel=Gaussian(0.7)), grid, **given).fit(X, Y)
    model = DaskKernelRidge(kernel=Gaussian(0.7), client=client)
    search = PathSearchCV(model, grid, n_jobs=-1, **given).fit(dX, dY)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=1e-4
    )
    with pytest.raises(ValueError, match="X must be an array or data frame of Dask"):
        PathSearchCV(model, grid).fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "local"),
    [(DaskKernelRidge, KernelRidge), (DaskExpectileRegressor, ExpectileRegressor)],
    ids=["ridge", "expectiles"],
)
def test_a_bound_on_the_norm_in_the_place_of_alpha(client, kind, local):
    given = {"kernel": Gaussian(0.7), "radius": 0.5}
    if kind is DaskExpectileRegressor:  # else they are those of held-out rows, in memory only
        given["refit_offsets"] = None
    expected = local(**given).fit(X, Y)
    model = kind(**given, client=client).fit(dX, dY)
    same(model, expected)
    assert model.norm_ == pytest.approx(0.5, rel=1e-9)
    assert model.alpha_ == pytest.approx(expected.alpha_, rel=1e-2)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-4)


@pytest.mark.slow
def test_several_targets(client):
    both = np.column_stack([Y, X[:, 0]])
    expected = KernelRidge(**SETTINGS).fit(X, both)
    model = DaskKernelRidge(**SETTINGS, client=client).fit(dX, da.from_array(both, (CUTS, 2)))
    same(model, expected)
    assert model.predict(dX).compute().shape == (N, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DaskKernelRidge, DaskSVR])
def test_predictions_take_nothing_of_the_length_of_the_rows_to_workers(client, kind):
    model = kind(kernel=Gaussian(0.7), alpha=1e-1, client=client).fit(dX, dY)
    model.dual_coef_ = np.ones((10**6, 1))
    assert len(pickle.dumps(model._to_workers())) < 10**5
    np.testing.assert_allclose(model.predict(dX).compute(), model.predict(X), rtol=1e-12)
    own = [
        name for name, value in vars(model._to_workers()).items() if np.shape(value)[:1] == (N,)
    ]
    assert own == []


@pytest.mark.slow
def test_chunks_change_nothing_but_the_gap(client):
    local = ExpectileRegressor(0.3, **SETTINGS).fit(X, Y)
    for chunk in (N, 130):
        model = DaskExpectileRegressor(0.3, **SETTINGS, client=client)
        same(model.fit(dX.rechunk((chunk, 2)), dY.rechunk(chunk)), local)


@pytest.mark.slow
def test_unknown_chunks_and_empty_partitions(client):
    some = X[:, 0] < 0.8
    some[400:500] = False  # a partition without rows
    chosen = dX[:, 0] < 0.8
    chosen = da.concatenate([chosen[:400], da.zeros(100, dtype=bool), chosen[500:]])
    chosen = chosen.rechunk((CUTS,))
    model = DaskKernelRidge(**SETTINGS, client=client).fit(dX[chosen], dY[chosen])
    same(model, KernelRidge(**SETTINGS).fit(X[some], Y[some]))
    assert model.predict(dX[chosen]).compute().shape == (some.sum(),)


@pytest.mark.slow
def test_data_frames(client):
    frame = dd.from_pandas(FRAME, npartitions=2)
    columns = ["a", "b"]
    model = DaskExpectileRegressor(LEVELS, **SETTINGS, client=client)
    model.fit(frame[columns], frame["y"], frame["w"])
    same(model, ExpectileRegressor(LEVELS, **SETTINGS).fit(X, Y, W))
    assert list(model.feature_names_in_) == columns
    lazy = model.predict(frame[columns])
    assert isinstance(lazy, dd.DataFrame)
    found = lazy.compute()
    np.testing.assert_array_equal(found.index, FRAME.index)
    np.testing.assert_allclose(found, model.predict(FRAME[columns]), rtol=1e-12)
    one = DaskKernelRidge(**SETTINGS, client=client).fit(frame[columns], frame["y"])
    assert isinstance(one.predict(frame[columns]), dd.Series)


@pytest.mark.slow
def test_parameters_are_learned_from_the_sample(client):
    expected = QuantileRegressor(LEVELS, tol=1e-3).fit(X, Y)
    model = DaskQuantileRegressor(LEVELS, tol=1e-3, client=client)
    with pytest.warns(UserWarning, match="offsets are those of the fit.*not in memory"):
        model.fit(dX, dY)
    assert model.alpha_ == expected.alpha_
    np.testing.assert_array_equal(model.kernel_.theta, expected.kernel_.theta)


@pytest.mark.slow
def test_landmarks_are_added_until_the_certificate_holds(client, monkeypatch):
    monkeypatch.setattr(elsewhere, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(elsewhere, "_WORST", 400)
    model = DaskExpectileRegressor(LEVELS, **SETTINGS, client=client).fit(dX, dY)
    same(model, ExpectileRegressor(LEVELS, **SETTINGS).fit(X, Y))


@pytest.mark.slow
def test_the_design_keeps_its_contract(client):
    rows, coupling = X[:11], RNG.normal(size=(2, 2))
    feature_map = PivotedCholesky(Gaussian(0.7), rank=3).fit(rows)
    cluster = Cluster(client)
    parts = [cluster.submit(np.array, rows[some]) for some in (slice(0, 4), slice(4, 11))]
    features = SpreadFeatures(SpreadRows(cluster, parts, np.array([0, 4, 11]), 2), feature_map)
    np.testing.assert_allclose(features[[10, 0, 5]], feature_map.transform(rows[[10, 0, 5]]))
    design = Remote(features - np.full(3, 0.1), coupling)
    few = Remote(features, np.eye(1))
    few.blocks.block_rows = 3
    push = RNG.normal(size=(11, 1))
    np.testing.assert_allclose(
        few.blocks.sum(lambda mine: (few.pull(mine, push[mine]), 1.0))[0],
        feature_map.transform(rows).T @ push,
    )
    check_design(design)


@pytest.mark.slow
def test_the_attributes_of_the_other_and_its_copies(client):
    model = DaskQuantileRegressor([0.2], **SETTINGS, client=client)
    assert clone(model).client is client
    names = set(model.get_params(deep=False))
    assert names == {*QuantileRegressor().get_params(deep=False), "client"}
    assert DaskQuantileRegressor().client_ is client  # the default of the process
    ridge = DaskKernelRidge(**SETTINGS, client=client).fit(dX, dY)
    with pytest.raises(AttributeError, match="rows that are in memory"):
        _ = ridge.loo_residuals_


def test_models_are_saved_without_their_client(client, tmp_path):
    model = DaskKernelRidge(**SETTINGS, client=client).fit(dX, dY)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert type(same) is DaskKernelRidge
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    np.testing.assert_array_equal(same.predict(dX).compute(), model.predict(X))
    assert same.client is None


FRAMED_Y = dd.from_pandas(FRAME["y"], npartitions=3)

HOLE = FRAME[["a", "b"]].copy()
HOLE.loc[309, "b"] = np.nan
WORDS = FRAME[["a"]].assign(b=np.where(np.arange(N) % 2, "red", "blue"))
DATES = FRAME[["a"]].assign(b=pd.Timestamp("2020-01-01"))


WRONG = {
    "rows in memory": (lambda: (X, dY), "X must be an array or data frame of Dask"),
    "targets in memory": (lambda: (dX, Y), "y must be an array or data frame of Dask"),
    "one dimension": (lambda: (dY, dY), "X must be an array .* with 2 dimensions"),
    "chunked columns": (lambda: (dX.rechunk((300, 1)), dY), "X must be in chunks of rows"),
    "other number": (lambda: (dX, dY.rechunk(N)), "y must be in the same partitions as X"),
    "other lengths": (
        lambda: (dX, dY.rechunk(((100, 400, 400),))),
        "y must be in partitions of as many rows as those of X, and has 100 in partition 0",
    ),
    "other lengths, not known": (
        lambda: (dX[dX[:, 0] > -np.inf], dY[abs(dY) < 1.0]),
        r"y must be in partitions of as many rows as those of X, and has \d+ in partition \d",
    ),
    "weights": (lambda: (dX, dY, dW.rechunk(N)), "sample_weight must be in the same partitions"),
    "negative": (
        lambda: (dX, dY, -dW),
        r"sample_weight must not be negative, got -2 in row \d+ of partition \d$",
    ),
    "no weight": (lambda: (dX, dY, 0 * dW), "sample_weight must have a positive entry"),
    "not finite": (lambda: (dX / 0, dY), "X must hold finite numbers, and does not in partition"),
    "not finite, of a frame": (
        lambda: (dd.from_pandas(HOLE, npartitions=3), FRAMED_Y),
        "X must hold finite numbers, and does not in partition 1, first in column 'b' in row 2 of",
    ),
    "missing, in a type of pandas": (
        lambda: (dd.from_pandas(HOLE.astype("Float64"), npartitions=3), FRAMED_Y),
        "partition 1, first in column 'b' in row 2 of it; .*TableEncoder, fitted to some rows in",
    ),
    "words, of a frame": (
        lambda: (dd.from_pandas(WORDS, npartitions=3), FRAMED_Y),
        "X must hold numbers, .*: could not convert string .*; fenchel.tables.TableEncoder",
    ),
    "dates, of a frame": (
        lambda: (dd.from_pandas(DATES, npartitions=3), FRAMED_Y),
        "X must hold numbers, .*, got dates .*; fenchel.tables.TableEncoder, fitted to some rows",
    ),
    "not finite, of targets": (
        lambda: (dX, da.where(da.arange(N, chunks=(CUTS,)) == 402, np.nan, dY)),
        r"y must hold finite numbers, and does not in partition 1, first in y\[2\] of it$",
    ),
    "words": (
        lambda: (dX.map_blocks(lambda x: x.astype(str) + "a", dtype="U9"), dY),
        "X must hold numbers",
    ),
    "no rows": (lambda: (dX[:0], dY[:0]), "X must have at least one row"),
    "huge": (lambda: (dX * 1e200, dY), "X must be at most"),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(client, name):
    make, sentence = WRONG[name]
    model = DaskSVR(**SETTINGS, client=client)
    with pytest.raises(ValueError, match=sentence):
        model.fit(*make())
    assert not hasattr(model, "certificate_")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("names", [False, True])
def test_intervals_and_distributions_of_collections_are_those_of_rows(client, names, monkeypatch):
    """No warning of missing names; and workers predict, with a client that is not the default."""
    frame, framed = FRAME[["a", "b"]], dd.from_pandas(FRAME[["a", "b"]], npartitions=3)
    rows, there, targets = (frame, framed, FRAMED_Y) if names else (X, dX, dY)
    given = {**SETTINGS, "refit_offsets": None, "client": client}
    model = DaskQuantileRegressor(LEVELS, **given).fit(there, targets)
    interval, mean = model.predict_interval(rows), model.predict_distribution(rows).mean()
    monkeypatch.setattr(QuantileRegressor, "_evaluate", None)  # in this process
    with dask.config.set(scheduler="synchronous"):  # what is the default, if not this client
        np.testing.assert_allclose(model.predict_interval(there), interval, rtol=1e-9)
        np.testing.assert_allclose(model.predict_distribution(there).mean(), mean, rtol=1e-9)


def test_columns_of_words_are_encoded_in_partitions(client):
    table = WORDS.assign(b=WORDS.b.mask(np.arange(N) % 7 == 0))
    framed = dd.from_pandas(table, npartitions=3)
    encoder = fenchel.tables.TableEncoder().set_output(transform="pandas").fit(table, FRAME["y"])
    encoded = framed.map_partitions(encoder.transform)
    model = DaskKernelRidge(**SETTINGS, client=client).fit(encoded, FRAMED_Y)
    same(model, KernelRidge(**SETTINGS).fit(encoder.transform(table), FRAME["y"]))


@pytest.mark.slow
def test_models_and_predictions_that_are_refused(client):
    with pytest.raises(ValueError, match="X must be rows in memory"):
        DaskSVR(kernel="precomputed", client=client).fit(dX, dY)
    with pytest.raises(ValueError, match="these are on workers; solver='newton'"):
        DaskSVR(**SETTINGS, solver="augmented_lagrangian", client=client).fit(dX, dY)
    with pytest.raises(TypeError, match="client must be"):
        DaskSVR(client="here").fit(dX, dY)
    two = da.from_array(np.column_stack([Y, Y]), (CUTS, 2))
    with pytest.raises(ValueError, match="y must have one column for levels on a cluster, got 2"):
        DaskQuantileRegressor(LEVELS, **SETTINGS, client=client).fit(dX, two)
    model = DaskKernelRidge(**SETTINGS, client=client).fit(dX, dY)
    with pytest.raises(ValueError, match="X must have 2 columns"):
        model.predict(dX[:, :1])


def test_errors_of_reading_are_raised_as_they_are(client):
    def missing(part):
        raise FileNotFoundError("there is no file of this part")

    with pytest.raises(FileNotFoundError, match="of this part"):
        DaskSVR(**SETTINGS, client=client).fit(dX.map_blocks(missing, dtype=float), dY)


def test_futures_that_were_cancelled_end_a_fit(client):
    cluster = Cluster(client)
    future = cluster.submit(time.sleep, 1.0)
    client.cancel([future])
    with pytest.raises(RuntimeError, match="has lost what the fit needs"):
        cluster.gathered([future])


@pytest.mark.parametrize("kind", [pair[0] for pair in PAIRS[:4]])
def test_every_parameter_has_a_constraint(kind):
    parameters = inspect.signature(kind).parameters
    assert set(parameters) <= set(constraints_of(kind))
    assert parameters["client"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.slow
def test_estimators_of_clusters_can_be_derived_from(client):
    class Own(DaskKernelRidge):
        pass

    assert type(Own(**SETTINGS, client=client).fit(dX, dY).to_local()) is KernelRidge


def test_a_cluster_without_workers_is_refused():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as empty,
        pytest.raises(RuntimeError, match="client must have a worker that runs"),
    ):
        DaskSVR(**SETTINGS, client=empty).fit(dX, dY)


@pytest.mark.slow
def test_a_fit_ends_where_all_workers_have_gone(monkeypatch):
    monkeypatch.setattr(_cluster, "PATIENCE", 2.0)
    monkeypatch.setattr(_cluster, "_LOOK", 0.2)
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, dashboard_address=":0", silence_logs="CRITICAL"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as leaving,
    ):
        gone = []

        def leave(progress):
            if not gone:
                gone.append(cluster.scale(0))

        model = DaskQuantileRegressor(LEVELS, **SETTINGS, callback=leave, client=leaving)
        with pytest.raises(RuntimeError, match="no worker that runs for 2 seconds"):
            model.fit(dX, dY)


def test_a_worker_that_is_killed_changes_nothing_but_time(client):
    expected = QuantileRegressor(LEVELS, **SETTINGS).fit(X, Y)
    victim = next(iter(client.run(os.getpid).values()))
    killed = []

    def kill(progress):
        if progress.iteration > 0 and not killed:
            killed.append(os.kill(victim, signal.SIGKILL))

    model = DaskQuantileRegressor(LEVELS, **SETTINGS, callback=kill, client=client)
    same(model.fit(dX, dY), expected)
    assert killed

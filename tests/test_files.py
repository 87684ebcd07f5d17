"""Fits of tables in files: the same as in memory, whatever the pieces, and plain errors."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor, files, spool
from fenchel.features import FeaturesOnDisk, PivotedCholesky
from fenchel.files._arrow import ArrowTable
from fenchel.kernels import Gaussian, Matern
from fenchel.model_selection import PathSearchCV
from fenchel.regression import elsewhere
from fenchel.spool import Spool
from fenchel.tables import TableEncoder

pa = pytest.importorskip("pyarrow", reason="tables on disk need Arrow")
parquet = pytest.importorskip("pyarrow.parquet", reason="tables on disk need Arrow")
dataset = pytest.importorskip("pyarrow.dataset", reason="tables on disk need Arrow")

RNG = np.random.default_rng(0)
N = 1200
X = RNG.uniform(size=(N, 3))
Y = np.sin(6 * X[:, 0]) + RNG.standard_normal(N) * (0.2 + X[:, 1])
W = RNG.integers(0, 3, N).astype(float)
LEVELS = [0.1, 0.5, 0.9]
MODEL = QuantileRegressor(LEVELS, kernel=Gaussian(0.7), alpha=1e-3)


def table(rows=slice(None)):
    columns = {"a": X[rows, 0], "b": X[rows, 1], "c": X[rows, 2], "y": Y[rows], "w": W[rows]}
    return pa.table(columns)


def written(path, rows=slice(None), group=97):
    parquet.write_table(table(rows), path, row_group_size=group)
    return path


def in_folder(folder):
    folder.mkdir()
    for k, rows in enumerate((slice(0, 500), slice(500, 501), slice(501, N))):
        written(folder / f"part-{k}.parquet", rows)
    return folder


SOURCES = {
    "file": lambda place: written(place / "t.parquet"),
    "rows of its own": lambda place: written(place / "t.parquet", group=1),
    "name": lambda place: str(written(place / "t.parquet")),
    "folder": lambda place: in_folder(place / "parts"),
    "arrow": lambda place: table(),
    "data set": lambda place: dataset.dataset(in_folder(place / "parts")),
}


@pytest.mark.parametrize("kind", [pa.decimal128(20, 15), pa.decimal256(50, 15)])
def test_decimals_are_the_numbers_that_python_makes_of_them(kind, tmp_path):
    columns = [table().column(name).cast(kind, safe=False) for name in ("a", "b", "y")]
    columns[1] = pa.chunked_array([[None, *columns[1].to_pylist()[1:]]], kind)
    source = pa.table(columns, names=["a", "b", "y"])
    parquet.write_table(source, tmp_path / "t.parquet")
    a, b, y = (np.array(each.to_pylist(), dtype=float) for each in columns)
    (rows,) = files.read_blocks(tmp_path / "t.parquet", ["a"], 1)
    np.testing.assert_array_equal(rows[:, 0], a)
    found = files.read_columns(source.select(["a", "y"]), "y")
    np.testing.assert_array_equal(found.targets[:, 0], y)
    made = TableEncoder().fit(source.select(["b"])).transform(source.select(["b"]))
    (rows,) = files.read_blocks(made, None, 2)
    np.testing.assert_array_equal(rows[1:], np.column_stack([b[1:], np.zeros(N - 1)]))
    assert rows[0].tolist() == [np.median(b[1:]), 1.0]


@pytest.mark.parametrize("source", SOURCES)
def test_a_fit_is_that_of_the_rows_in_memory(source, tmp_path):
    place = SOURCES[source](tmp_path)
    expected = clone(MODEL).fit(X, Y, sample_weight=W)
    model = clone(MODEL).fit(place, "y", sample_weight="w")
    assert model.status_.converged
    assert model.certified_kernel_ == "given"
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert abs(model.certificate_.primal - expected.certificate_.primal) <= 1e-10
    np.testing.assert_array_equal(model.support_, expected.support_)
    np.testing.assert_allclose(model.predict(place), expected.predict(X), atol=1e-8)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_allclose(model.predict(X), model.predict(place), atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        ExpectileRegressor(LEVELS, kernel=Gaussian(0.7), alpha=1e-3),
        SVR(kernel=Gaussian(0.7), alpha=1e-3),
        KernelRidge(kernel=Gaussian(0.7), alpha=1e-3),
        SVR(kernel=Gaussian(0.7), radius=3.0),
        SVR("squared", kernel=Gaussian(0.7), alpha=1e-3, fit_intercept=False),
        QuantileRegressor(LEVELS, kernel=Gaussian(0.7), alpha=1e-3, non_crossing="train"),
        QuantileRegressor(LEVELS, kernel=Gaussian(0.7), alpha=1e-3, level_gamma=np.inf),
        QuantileRegressor(LEVELS, kernel="linear", alpha=1e-3),
        QuantileRegressor(0.3, kernel=Gaussian(0.7), alpha=1e-3, features="fourier", rank=50),
        QuantileRegressor(0.3, kernel=Gaussian(0.7), alpha=1e-3, features="nystroem", rank=50),
        QuantileRegressor(0.3, kernel=Gaussian(30.0), alpha=1e-3),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:stopped at a relative gap", "ignore:the feature map of rank")
def test_all_that_is_fitted_in_memory_is_fitted_on_disk(model):
    expected = clone(model).fit(X, Y)
    found = clone(model).fit(table().drop_columns("w"), "y")
    bound = max(expected.certificate_.gap, found.certificate_.gap) + 1e-9
    assert abs(found.certificate_.primal - expected.certificate_.primal) <= bound
    assert found.certified_kernel_ == expected.certified_kernel_


@pytest.mark.parametrize("kernel", ["linear", "polynomial", Gaussian(0.7)], ids=str)
def test_alpha_by_rule_is_that_in_memory(kernel):
    """Of kernels that are not stationary it is in units of what an offset leaves."""
    model = KernelRidge(kernel=kernel, learn=False)
    expected = clone(model).fit(X, Y).alpha_
    found = clone(model).fit(table().drop_columns("w"), "y").alpha_
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_learning_on_disk_is_learning_in_memory():
    """Of so few rows all are in the sample, and the same of them are chosen by content."""
    model = QuantileRegressor(LEVELS, tol=1e-3)
    expected = clone(model).fit(X, Y)
    with pytest.warns(UserWarning, match="offsets are those of the fit.*not in memory"):
        found = clone(model).fit(table().drop_columns("w"), "y")
    assert found.alpha_ == expected.alpha_
    np.testing.assert_array_equal(found.kernel_.theta, expected.kernel_.theta)
    np.testing.assert_array_equal(found.feature_importances_ > 0.01, [True, True, False])


def test_many_rows_for_each_feature_need_no_offsets_of_held_out_rows(recwarn):
    given = {"kernel": Gaussian(0.7), "alpha": 1e-3, "rank": 4, "refit_offsets": "held_out"}
    QuantileRegressor(LEVELS, **given).fit(table().drop_columns("w"), "y")
    assert not any("offsets" in str(each.message) for each in recwarn)


def test_arrays_in_files(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    expected = clone(MODEL).fit(X, Y, W)
    for y in (Y, tmp_path / "y.npy"):
        model = clone(MODEL).fit(tmp_path / "X.npy", y, W)
        found = model.predict(tmp_path / "X.npy")
        np.testing.assert_allclose(found, expected.predict(X), atol=1e-8)
    np.save(tmp_path / "half.npy", X.astype(np.float32))
    assert model.predict(tmp_path / "half.npy").shape == (N, 3)


def test_landmarks_from_a_sample_are_added_to_until_the_certificate_holds(monkeypatch):
    """The rows that the sample says nothing of are found, and the kernel is the one named."""
    monkeypatch.setattr(elsewhere, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(elsewhere, "_WORST", 400)
    expected = clone(MODEL).fit(X, Y)
    model = clone(MODEL).fit(table().drop_columns("w"), "y")
    assert model.feature_map_.rank_ > 60
    assert model.certified_kernel_ == "given"
    assert model.status_.converged
    gram = Gaussian(0.7)(X)
    coef = np.zeros((N, 3))
    coef[model.support_] = model.dual_coef_
    square = np.vdot(coef @ model.coupling_, gram @ coef)
    residual = Y[:, None] - model.predict(table())
    loss = np.maximum(np.array(LEVELS) * residual, (np.array(LEVELS) - 1) * residual).sum() / N
    dual = 1e-3 * (np.vdot(coef, np.repeat(Y[:, None], 3, axis=1)) - 0.5 * square)
    assert dual >= model.certificate_.dual - 1e-9
    assert loss <= expected.certificate_.primal
    assert model.certificate_.primal - dual <= 1e-6 * model.certificate_.unit


def test_features_are_the_same_kept_on_disk_or_made_anew(monkeypatch):
    kept = clone(MODEL).fit(table(), "y", "w")
    monkeypatch.setattr("fenchel.features.on_disk.fits_on_disk", lambda *shape: False)
    anew = clone(MODEL).fit(table(), "y", "w")
    assert abs(anew.certificate_.primal - kept.certificate_.primal) <= 1e-10
    np.testing.assert_allclose(anew.predict(table()), kept.predict(table()), atol=1e-8)


def test_rows_on_disk_are_the_rows():
    rows = Spool(3)
    for start in range(0, N, 70):
        rows.append(X[start : start + 70])
    assert rows.shape == X.shape
    np.testing.assert_array_equal(rows[100:900], X[100:900])
    np.testing.assert_array_equal(rows[5:5], X[5:5])
    np.testing.assert_array_equal(rows[:], X)
    some = RNG.integers(0, N, 300)
    np.testing.assert_array_equal(rows[some], X[some])
    np.testing.assert_array_equal(rows[np.empty(0, dtype=int)], X[:0])
    features = FeaturesOnDisk(rows, PivotedCholesky(Gaussian(0.7)).fit(X[:400]))
    expected = PivotedCholesky(Gaussian(0.7)).fit(X[:400]).transform(X)
    np.testing.assert_allclose(features[200:800], expected[200:800], atol=1e-11)
    np.testing.assert_allclose((features - 1.0)[some], expected[some] - 1.0, atol=1e-11)
    np.testing.assert_allclose(features.left, 1.0 - (expected**2).sum(axis=1), atol=1e-12)


def _bad(name, values):
    return table().set_column(table().schema.names.index(name), name, pa.array(values))


WORDS = ["1.5"] * N
HOLES = [None if i == 800 else 0.5 for i in range(N)]
INFINITE = np.where(np.arange(N) == 800, np.inf, 0.5)
BAD = {
    "no such column": (table(), "price", None, "no column 'price'; its columns are"),
    "no such weights": (table(), "y", "mass", "no column 'mass'"),
    "words": (_bad("b", WORDS), "y", None, "numbers in column 'b', got string"),
    "hole": (_bad("b", HOLES), "y", None, "column 'b' of row 801, and has nothing"),
    "infinite": (_bad("y", INFINITE), "y", None, "column 'y' of row 801, and has inf"),
    "negative weights": (_bad("w", -W), "y", "w", "sample_weight must not be negative"),
    "no weight": (_bad("w", 0 * W), "y", "w", "sample_weight must have a positive entry"),
    "no target": (table(), None, None, "y must be the name of the column"),
    "too few targets": (table(), Y[:5], None, "y must have one entry for each row of X, got 5"),
    "no rows": (table().slice(0, 0), "y", None, "must have at least one row"),
    "no features": (table().select(["y"]), "y", None, "a column beside y"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_allowed_is_said_and_changes_nothing(name):
    source, y, weight, sentence = BAD[name]
    model = clone(MODEL).fit(X[:50], Y[:50])
    before = dict(vars(model))
    with pytest.raises(ValueError, match=sentence):
        model.fit(source, y, sample_weight=weight)
    assert vars(model) == before


def test_the_remedy_for_missing_targets_works():
    holes = _bad("y", [None if i % 7 == 3 else y for i, y in enumerate(Y)])
    with pytest.raises(
        ValueError, match=re.escape("dataset(place).filter(field('y').is_valid())")
    ):
        clone(MODEL).fit(holes, "y")
    some = dataset.dataset(holes).filter(dataset.field("y").is_valid())
    known = np.arange(N) % 7 != 3
    found = clone(MODEL).fit(some, "y", "w")
    expected = clone(MODEL).fit(X[known], Y[known], W[known])
    np.testing.assert_allclose(found.predict(some), expected.predict(X[known]), atol=1e-8)


def test_a_column_that_is_missing_in_one_file(tmp_path):
    folder = in_folder(tmp_path / "parts")
    part = parquet.read_table(folder / "part-2.parquet").drop_columns("b")
    parquet.write_table(part, folder / "part-2.parquet")
    with pytest.raises(ValueError, match=r"part-2.parquet has no column 'b', which other files"):
        clone(MODEL).fit(folder, "y")


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        clone(MODEL).fit(tmp_path / "none.parquet", "y")
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match="X must be a Parquet file"):
        clone(MODEL).fit(tmp_path / "t.csv", "y")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match="cannot be read"):
        clone(MODEL).fit(tmp_path / "t.parquet", "y")
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    with pytest.raises(ValueError, match="stored row by row"):
        clone(MODEL).fit(tmp_path / "X.npy", Y)


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    place = written(tmp_path / "t.parquet")
    batches = ArrowTable._batches

    def changing(self, *arguments):
        yield from batches(self, *arguments)
        written(place, slice(0, 1000))

    monkeypatch.setattr(ArrowTable, "_batches", changing)
    with pytest.raises(ValueError, match="must not change while it is read, and has changed"):
        clone(MODEL).fit(place, "y")


def test_rows_that_are_to_be_predicted_have_the_columns_of_the_fit(tmp_path):
    model = clone(MODEL).fit(table(), "y")
    turned = table().select(["c", "w", "a", "y", "b"])
    np.testing.assert_array_equal(model.predict(turned), model.predict(table()))
    with pytest.raises(ValueError, match="no column 'b'"):
        model.predict(table().drop_columns("b"))
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="columns with names, as in the fit"):
        model.predict(tmp_path / "X.npy")


def test_an_interrupt_leaves_the_estimator_as_it_was(monkeypatch):
    model = clone(MODEL).fit(X[:50], Y[:50])
    before = dict(vars(model))

    def interrupted(self, start, rows):
        raise KeyboardInterrupt

    monkeypatch.setattr(spool.Spool, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table(), "y")
    assert vars(model) == before


@pytest.mark.parametrize(
    "model",
    [KernelRidge(kernel="precomputed"), QuantileRegressor(kernel="precomputed")],
    ids=["ridge", "quantiles"],
)
def test_models_that_need_all_rows_in_memory_say_so(model):
    with pytest.raises(ValueError, match="X must be rows in memory"):
        model.fit(table(), "y")


def test_solvers_that_need_all_features_say_so():
    with pytest.raises(ValueError, match="these are on disk; solver='newton' takes any"):
        clone(MODEL).set_params(solver="augmented_lagrangian").fit(table(), "y")


def test_rough_kernels_say_what_they_leave_out():
    model = QuantileRegressor(0.5, kernel=Matern(0.2, nu=0.5), alpha=1e-4, rank=40)
    with pytest.warns(UserWarning, match="increase rank"):
        model.fit(table(), "y")
    assert model.kernel_error_ > 0.01


def _trips():
    random = np.random.default_rng(3)
    words = random.choice(["north", "south", "west"], N)
    area = np.where(random.uniform(size=N) < 0.1, np.nan, X[:, 0])
    day = np.datetime64("2020-01-01") + (1000 * X[:, 1]).astype(int)
    columns = {
        "area": pa.array(area, from_pandas=True),
        "town": words.tolist(),
        "day": day,
        "y": Y,
    }
    return pa.table(columns)


def test_categories_dates_and_holes_are_those_of_the_encoder(tmp_path):
    pytest.importorskip("skrub", reason="skrub is not installed")
    trips = _trips()
    parquet.write_table(trips, tmp_path / "trips.parquet", row_group_size=97)
    model = make_pipeline(TableEncoder(), clone(MODEL).set_params(tol=1e-12))
    frame = trips.drop_columns("y").to_pandas()
    expected = clone(model).fit(frame, Y)
    found = clone(model).fit(tmp_path / "trips.parquet", "y")
    assert found[0].description_ == expected[0].description_
    assert not hasattr(found[1], "feature_names_in_")  # as after a fit in memory
    values = found.predict(tmp_path / "trips.parquet")
    np.testing.assert_allclose(values, expected.predict(frame), atol=1e-7)
    np.testing.assert_allclose(found.predict(frame), values, atol=1e-10)
    said = "TableEncoder must be the default for a table in files, .* got 'pandas': set_output"
    with config_context(transform_output="pandas"), pytest.raises(ValueError, match=said):
        clone(model).fit(tmp_path / "trips.parquet", "y")
    model[0].set_output(transform="default")
    with config_context(transform_output="pandas"):
        again = clone(model).fit(tmp_path / "trips.parquet", "y")
    np.testing.assert_array_equal(again.predict(frame), found.predict(frame))


@pytest.mark.slow
def test_weights_that_an_encoder_has_made_a_feature_of():
    """Columns of the fit would be others than those of new rows."""
    model = make_pipeline(TableEncoder(), clone(MODEL))
    name = f"{MODEL.__class__.__name__.lower()}__sample_weight"
    with pytest.raises(ValueError, match="sample_weight must not be a column that an encoder"):
        model.fit(table(), "y", **{name: "w"})
    model.fit(table().drop_columns("w"), "y", **{name: W})
    expected = clone(MODEL).fit(X, Y, W).predict(X)
    np.testing.assert_allclose(model.predict(table().drop_columns("w")), expected, atol=1e-8)


@pytest.mark.slow
def test_a_cell_of_another_kind_says_in_which_rows(monkeypatch):
    model = make_pipeline(TableEncoder(), clone(MODEL)).fit(_trips(), "y")
    bad = _trips().to_pandas()
    bad["day"] = ["2020-01-01"] * 800 + ["soon"] * 400
    with pytest.raises(ValueError, match=r"X, of rows 1 to 1200: .*soon"):
        model.predict(pa.Table.from_pandas(bad))


def test_the_encoder_looks_at_a_row_of_each_run_of_rows():
    frame, label = files.sample_frame(table(), "y", 100)
    assert label == "X (of which one row in 12 is looked at)"
    assert list(frame.columns) == ["a", "b", "c", "w"]
    row_of = {value: number for number, value in enumerate(X[:, 0])}
    numbers = np.array([row_of[value] for value in frame["a"]])
    np.testing.assert_array_equal(numbers // 12, np.arange(100))
    assert numbers[0] == 0
    assert set(numbers % 12) == set(range(12))  # of kinds of rows that take turns all are seen


def test_labels_of_rows_that_pandas_writes_are_no_feature(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.uniform(size=60), "y": random.uniform(size=60)})
    frame.sample(frac=0.5, random_state=0).to_parquet(
        tmp_path / "t.parquet"
    )  # with an index that is no range
    assert "__index_level_0__" in parquet.read_schema(tmp_path / "t.parquet").names
    model = QuantileRegressor(0.5, alpha=1e-3, kernel=Gaussian(1.0))
    assert list(model.fit(tmp_path / "t.parquet", "y").feature_names_in_) == ["x"]


SEARCHES = [
    (
        clone(MODEL).set_params(refit_offsets=None),  # else those of held-out rows, in memory only
        {"alpha": [1e-1, 1e-3], "length_scale": [0.4, 0.7]},
        None,
    ),
    (KernelRidge(kernel=Gaussian(0.7)), {"alpha": 4}, "neg_mean_absolute_error"),
]


@pytest.mark.parametrize(("model", "grid", "scoring"), SEARCHES, ids=["levels", "ridge"])
def test_a_search_is_that_of_the_rows_in_memory(model, grid, scoring, tmp_path):
    """Folds are in no order, and one row in three has no weight."""
    given = {"cv": ShuffleSplit(3, test_size=0.3, random_state=0), "scoring": scoring}
    expected = PathSearchCV(model, grid, **given).fit(X, Y, sample_weight=W)
    place = written(tmp_path / "t.parquet")
    found = PathSearchCV(model, grid, n_jobs=2, **given).fit(place, "y", sample_weight="w")
    assert found.best_params_ == pytest.approx(expected.best_params_)
    for name in ("mean_test_score", "std_test_score"):
        theirs = expected.cv_results_[name]
        np.testing.assert_allclose(found.cv_results_[name], theirs, atol=1e-4)
    assert found.n_early_stops_ == 0
    assert 0.0 <= max(found.cv_results_[f"split{k}_relative_gap"].max() for k in range(3)) < 1e-6
    np.testing.assert_allclose(found.predict(place), expected.predict(X), atol=1e-3)


@pytest.mark.slow
def test_the_choice_of_a_search_warns_of_offsets_too(tmp_path):
    with pytest.warns(UserWarning, match="not of held-out rows: the rows are not in memory"):
        PathSearchCV(MODEL, {"alpha": [1e-1]}, cv=2).fit(written(tmp_path / "t.parquet"), "y")


def test_searches_that_files_are_not_for():
    with pytest.raises(ValueError, match="scoring='loo' needs rows in memory"):
        PathSearchCV(KernelRidge(kernel=Gaussian(0.7)), {"alpha": 3}, scoring="loo").fit(
            table(), "y"
        )
    halves = [(np.arange(600), np.arange(600, N))]
    weight = np.repeat([1.0, 0.0], 600)
    with pytest.raises(ValueError, match="sample_weight must have a positive entry in each fold"):
        PathSearchCV(MODEL, {"alpha": [1e-3]}, cv=halves).fit(table(), "y", sample_weight=weight)


@pytest.mark.slow
def test_reading_says_how_far_it_is_and_what_is_left(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("fenchel.files._arrow.BLOCK_ROWS", 300)
    monkeypatch.setattr("fenchel.files._tables.BLOCK_ROWS", 300)
    monkeypatch.setattr("fenchel.files._arrow._READ_ROWS", 1)
    monkeypatch.setattr("fenchel.solvers.loop._PAUSE", 0.0)
    told = defaultdict(list)

    class Callback:
        def __call__(self, progress):
            return None

        def passes(self, what, done, total):
            told[what].append((done, total))

    place = written(tmp_path / "t.parquet", group=300)
    clone(MODEL).set_params(verbose=1, callback=Callback()).fit(place, "y")
    assert told["reading"] == [(300, N), (600, N), (900, N), (N, N)]
    lines = [line for line in capsys.readouterr().out.splitlines() if "reading" in line]
    assert re.fullmatch(
        r"\[QuantileRegressor\] reading: row 600 of 1200, 50 %, after [\d.]+ s, about \d+ s left",
        lines[1],
    )
    assert re.search(r"row 1200 of 1200, 100 %, after [\d.]+ s$", lines[-1])
    assert told["making features"] == [(N, N)] * 2
    np.save(tmp_path / "X.npy", X)
    told.clear()
    clone(MODEL).set_params(callback=Callback()).fit(tmp_path / "X.npy", Y)
    assert told["reading"] == [(300, N), (600, N), (900, N), (N, N)]

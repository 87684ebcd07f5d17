"""What is read off estimators and tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fenchel import SVR, ExpectileRegressor, KernelRidge, Lasso, QuantileRegressor
from fenchel.inspection import (
    FeatureTable,
    calibrated_estimator,
    certified_model,
    feature_slice,
    final_estimator,
    fitted_model,
    importances_of,
    intervals_of,
    level_losses,
    levels_of,
    model_title,
    partial_dependence,
    percent,
    prediction_name,
    rows_for_final,
    short_name,
    statistic_of,
    target_name_of,
)
from fenchel.losses import Pinball, SquaredPinball
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor
from fenchel.positive import HeteroscedasticRegressor, NonCrossingQuantileRegressor
from fenchel.tables import TableEncoder

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(size=(40, 2))
Y = X[:, 0] + 0.1 * RANDOM.normal(size=40)
LEVELS = [0.9, 0.25]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("income", "income"),
        ("a\n b\x00c", "a b c"),
        (12, "12"),
        ("ab" * 40, "ab" * 12 + "…" + "b" + "ab" * 11),
    ],
)
def test_short(name, shown):
    assert short_name(name) == shown
    assert len(short_name(name)) <= 48


def test_shares_and_targets():
    assert percent(0.999999) == "99.9999 %"
    assert percent(1 / 3, 2) == "33 %"
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    assert target_name_of(frame, 1) == "b"
    assert target_name_of(frame["a"]) == "a"
    assert target_name_of(pd.Series([1.0])) == "y"


@pytest.mark.slow
def test_the_model_inside_and_its_rows():
    search = GridSearchCV(make_pipeline(StandardScaler(), SVR()), {"svr__alpha": [1e-2]}, cv=2)
    outer = make_pipeline(StandardScaler(with_std=False), search).fit(X, Y)
    model = final_estimator(outer)
    assert isinstance(model, SVR)
    np.testing.assert_allclose(model.predict(rows_for_final(outer, X)), outer.predict(X))
    around = TransformedTargetRegressor(KernelRidge(), transformer=StandardScaler()).fit(X, Y)
    assert isinstance(final_estimator(around), KernelRidge)
    assert rows_for_final(around, X) is X
    assert fitted_model(outer, "dual_coef_", what="coefficients") is model


def test_the_model_inside_of_calibrated_intervals():
    inside = make_pipeline(StandardScaler(), KernelRidge(learn=False))
    model = make_pipeline(PCA(1), ConformalRegressor(inside, coverage=0.5)).fit(X, Y)
    around = calibrated_estimator(model)
    np.testing.assert_allclose(around.predict(rows_for_final(model, X)), model.predict(X))
    assert certified_model(model) is around[-1]
    assert calibrated_estimator(around) is None
    assert certified_model(around) is around[-1]
    found = intervals_of(model)
    assert found.coverage == 0.5
    own = model[-1].predict_interval(model[:-1].transform(X), 0.5)
    np.testing.assert_array_equal(found.ends(X), own)


def test_models_without_intervals_of_their_own():
    assert intervals_of(KernelRidge(learn=False).fit(X, Y)) is None
    assert intervals_of(QuantileRegressor([0.1, 0.9], learn=False).fit(X, Y)) is None
    of_others = ConformalRegressor(KernelRidge(learn=False))
    assert intervals_of(of_others.fit(X, Y, sample_weight=np.ones(len(Y)))) is None
    assert intervals_of(TransformedTargetRegressor(of_others).fit(X, Y)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KernelRidge(learn=False), "mean"),
        (ConformalRegressor(KernelRidge(learn=False)), "mean"),
        (ConformalRegressor(SVR(learn=False, epsilon=0.1)), "prediction"),
        (ConformalRegressor(QuantileRegressor(0.9, learn=False)), "prediction"),
        (ConformalQuantileRegressor(QuantileRegressor(learn=False)), "median"),
        (ConformalQuantileRegressor(ExpectileRegressor(learn=False)), "mean"),
        (ConformalQuantileRegressor(HistGradientBoostingRegressor(loss="quantile")), "median"),
        (HeteroscedasticRegressor(), "mean"),
    ],
)
def test_names_of_single_predictions(model, name):
    assert prediction_name(model.fit(X, Y)) == name


@pytest.mark.parametrize(
    ("loss", "level", "name"),
    [
        ("pinball", 0.9, "prediction"),
        ("pinball", 0.5, "median"),
        ("squared_pinball", 0.9, "prediction"),
        ("squared_pinball", 0.5, "mean"),
    ],
)
def test_names_of_predictions_at_the_level_of_a_loss(loss, level, name):
    assert prediction_name(SVR(loss, level=level, learn=False).fit(X, Y)) == name


def _table():
    frame = pd.DataFrame({"a": X[:, 0], "town": ["Bonn", "Trier"] * 20, "b": X[:, 1]})
    return frame, X[:, 0] + (frame["town"] == "Bonn")


@pytest.mark.parametrize(
    "steps",
    [
        (TableEncoder(),),
        (TableEncoder(), StandardScaler()),
        (TableEncoder().set_output(transform="pandas"), StandardScaler(), "passthrough"),
    ],
)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda m: m,
        TransformedTargetRegressor,
        make_pipeline,
        ConformalRegressor,
        lambda m: ConformalRegressor(make_pipeline(StandardScaler(), m)),
    ],
)
def test_importances_by_column_of_the_table(steps, wrap):
    frame, y = _table()
    model = make_pipeline(*steps, wrap(KernelRidge(alpha=1e-3, kernel="gaussian", learn=False)))
    found = importances_of(model.fit(frame, y))
    made = list(model[0].get_feature_names_out())
    shares = certified_model(model).importances_of_groups([[0], [1], [2, 3]])
    assert made == ["a", "b", "town=Bonn", "town=Trier"]
    assert found.names == ["a", "b", "town"]
    np.testing.assert_allclose(found.shares, shares)


@pytest.mark.parametrize("n_labels", [2, 5, 12])
def test_labels_of_a_column_change_together(n_labels):
    """One indicator alone makes rows with two labels or none, which are no rows of the table."""
    rng = np.random.default_rng(0)
    label, effect = rng.integers(0, n_labels, 400), rng.normal(size=n_labels)
    effect = (effect - effect[label].mean()) / effect[label].std()
    number = np.sqrt(3.0) * rng.uniform(-1.0, 1.0, 400)
    frame = pd.DataFrame({"label": [f"of {k}" for k in label], "number": number})
    y = effect[label] + number + 0.1 * rng.normal(size=400)
    model = make_pipeline(TableEncoder(), KernelRidge()).fit(frame, y)
    found = importances_of(model)
    squares = []
    for name in found.names:
        changed = [frame.assign(**{name: rng.permutation(frame[name])}) for _ in range(20)]
        moved = [model.predict(each) - model.predict(frame) for each in changed]
        squares.append(np.mean(np.square(moved)))
    np.testing.assert_allclose(found.shares, squares / np.sum(squares), atol=0.06)


def test_importances_of_columns_without_names():
    def importances(*steps):
        return importances_of(make_pipeline(*steps, KernelRidge(learn=False)).fit(X, Y)).names

    assert importances() == importances(StandardScaler()) == ["x0", "x1"]
    assert importances(FunctionTransformer(np.abs)) == ["x0", "x1"]
    assert importances(PCA(1)) == ["pca0"]
    assert importances_of(Lasso().fit(X, Y)) is None
    assert importances_of(KernelRidge()) is None


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="have support_ and coef_, two things, got SVR without"):
        fitted_model(SVR(), "support_", "coef_", what="two things")


class OfMyOwn(NonCrossingQuantileRegressor):
    """Known by its loss and not by its name."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "statistic", "loss"),
    [
        (QuantileRegressor(LEVELS, epsilon=0.1), "quantiles", Pinball),
        (QuantileRegressor(LEVELS, non_crossing="train"), "quantiles", Pinball),
        (NonCrossingQuantileRegressor(LEVELS, learn=False), "quantiles", Pinball),
        (OfMyOwn(LEVELS, learn=False), "quantiles", Pinball),
        (ExpectileRegressor(LEVELS), "expectiles", SquaredPinball),
    ],
)
def test_levels_statistic_and_losses(model, statistic, loss):
    model = make_pipeline(StandardScaler(), model).fit(X, Y)
    np.testing.assert_array_equal(levels_of(model), LEVELS)
    assert statistic_of(model) == statistic
    residual = RANDOM.normal(size=(5, 1))
    for level, found in zip(LEVELS, level_losses(model), strict=True):
        np.testing.assert_array_equal(found.value(residual), loss(level).value(residual))


@pytest.mark.slow
@pytest.mark.parametrize("model", [KernelRidge(), ConformalQuantileRegressor()])
def test_models_without_levels(model):
    model.fit(X, Y)
    assert levels_of(model) is None
    assert level_losses(model) is None


def test_titles():
    assert model_title(make_pipeline(StandardScaler(), QuantileRegressor())) == "Quantiles"
    assert model_title(Lasso()) == "Lasso"


def test_a_slice_holds_other_features_at_typical_values():
    frame = pd.DataFrame({"a": [0.0, 1.0, 5.0], "b": ["u", "v", "v"], "c": [3.0, 4.0, 8.0]})
    path = feature_slice(frame, "c", 3)
    assert path.rows["a"].tolist() == [1.0] * 3
    assert path.rows["b"].tolist() == ["v"] * 3
    assert path.rows["c"].tolist() == path.grid.tolist() == [3.0, 5.5, 8.0]
    assert path.note == "at a = 1, b = v"
    assert feature_slice([[1.0], [2.0]]).note == ""
    assert feature_slice(np.eye(5)).note.startswith("the other 4 features")


def test_categories_that_are_numbers_are_labels():
    """Their median is none of them, and an encoder would read it as an unknown label."""
    kinds = pd.Categorical([1, 1, 3, 4, 1, 4])
    frame = pd.DataFrame({"kind": kinds, "c": np.arange(6.0)})
    path = feature_slice(frame, grid_resolution=3)
    assert path.name == "c"
    assert path.rows["kind"].tolist() == [1] * 3
    assert isinstance(path.rows["kind"].dtype, pd.CategoricalDtype)
    with pytest.raises(ValueError, match="feature must be numeric to draw along it, got 'kind'"):
        feature_slice(frame, "kind")


def test_partial_dependence_by_a_loop():
    found = partial_dependence(lambda rows: rows[:, 0] * rows[:, 1], X, 1, grid_resolution=4)
    np.testing.assert_allclose(found.curves[:, 0], found.grid * X[:, 0].mean())
    assert found.n_rows == len(X)
    assert partial_dependence(lambda rows: rows[:, 0], X, subsample=7).n_rows == 7


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: FeatureTable.of([1.0]), "X must have two dimensions"),
        (lambda: feature_slice(X, "z"), "feature must be one of x0, x1, got 'z'"),
        (lambda: feature_slice(X, 2), r"feature must be in 0..1, got 2"),
        (lambda: feature_slice(X, grid_resolution=1), "grid_resolution must be at least 2"),
        (lambda: partial_dependence(len, X, subsample=0), "subsample must be at least 1"),
        (lambda: feature_slice(np.array([["a"]], dtype=object)), "X must have a numeric feature"),
    ],
)
def test_bad_input(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_frame_of_polars_is_read_as_one_of_pandas():
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame({"town": ["Bonn", "Trier", "Bonn"], "area": [20.0, 30.0, 50.0]})
    table = FeatureTable.of(polars.DataFrame(frame.to_dict("list")))
    assert table.names == ["town", "area"]
    assert table.position(None) == 1
    pd.testing.assert_frame_equal(
        table.rows(np.array([2, 0]), {}),
        frame.iloc[[2, 0]].reset_index(drop=True),
        check_dtype=False,
    )


@pytest.mark.parametrize("n", [1000, 4000])
def test_a_rare_indicator_that_is_read_is_not_idle(n):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=n), np.arange(n) < n // 100])
    y = rows[:, 0] + 30.0 * rows[:, 1] + 0.2 * rng.normal(size=n)
    model = KernelRidge(learn=False).fit(rows, y)
    assert len(model.idle_features_) == 0
    squares = []
    for j in range(2):
        changed = np.repeat(rows, 5, axis=0)
        changed[:, j] = rng.permutation(changed[:, j])
        squares.append(np.mean((model.predict(changed) - np.repeat(model.predict(rows), 5)) ** 2))
    np.testing.assert_allclose(model.feature_importances_, squares / np.sum(squares), atol=0.2)


def _two_factors(n):
    """Targets are the sum of the levels, of which the first has several times the variance."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 5, n), rng.random(n) < 0.1]).astype(float)
    variance = rows.var(axis=0)
    return rows, rows.sum(axis=1) + rng.normal(size=n), variance / variance.sum()


@pytest.mark.parametrize("n", [500, 5000])
def test_importances_in_tables_of_factors(n):
    """Rows of one cell were followed by one another, and cells counted once."""
    rows, y, expected = _two_factors(n)
    model = KernelRidge(learn=False, features="cholesky").fit(rows, y)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.05)
    assert len(model.idle_features_) == 0


def test_importances_with_weights_are_those_of_repeated_rows():
    rows, y, expected = _two_factors(500)
    cells, place, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(place.ravel(), y) / count
    model = KernelRidge(kernel="gaussian", alpha=1e-3, learn=False).fit(cells, means, count)
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.05)
    order = np.random.default_rng(1).permutation(len(rows))
    again = clone(model).fit(rows[order], means[place.ravel()[order]])
    np.testing.assert_allclose(again.feature_importances_, model.feature_importances_, rtol=1e-6)

"""Conformalized quantile regression around estimators of others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor as LinearQuantileRegressor
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import KernelRidge, QuantileRegressor
from fenchel.model_selection import ConformalQuantileRegressor

RNG = np.random.default_rng(0)


def rows(n, seed):
    random = np.random.default_rng(seed)
    X = random.uniform(-2.0, 2.0, size=(n, 1))
    return X, np.sin(2.0 * X[:, 0]) + (0.1 + 0.3 * np.abs(X[:, 0])) * random.normal(size=n)


X, Y = rows(800, 0)
NEW, HELD_OUT = rows(4000, 1)
TREES = HistGradientBoostingRegressor(
    loss="quantile", max_iter=40, learning_rate=0.2, random_state=0
)


class TwoColumns(RegressorMixin, BaseEstimator):
    """Neighbours' quantiles, under no name for levels."""

    def fit(self, X, y):
        self.neighbours_ = KNeighborsRegressor(40).fit(X, y)
        self.y_, self.n_features_in_ = np.asarray(y), X.shape[1]
        return self

    def predict(self, X):
        near = self.neighbours_.kneighbors(X, return_distance=False)
        return np.quantile(self.y_[near], [0.1, 0.9], axis=1).T


def at(level, estimator=TREES):
    return clone(estimator).set_params(quantile=level)


SINGLE = {
    "hist": TREES,
    "boosting": GradientBoostingRegressor(loss="quantile", n_estimators=40, random_state=0),
    "linear": LinearQuantileRegressor(alpha=0.0),
    "pipeline": make_pipeline(StandardScaler(), TREES),
}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", SINGLE.values(), ids=SINGLE)
def test_a_model_for_each_level(estimator):
    model = ConformalQuantileRegressor(estimator, coverage=0.8, random_state=0).fit(X, Y)
    assert model.levels_.tolist() == [0.1, 0.5, 0.9]
    low, high = model.predict_interval(NEW).T
    assert np.mean((low <= HELD_OUT) & (high >= HELD_OUT)) == pytest.approx(0.8, abs=0.05)
    # what is around the intervals of the models is one number
    curves = np.column_stack([each.predict(NEW) for each in model.estimator_.estimators_])
    assert np.allclose(low, curves[:, 0] - model.quantile_)
    assert np.array_equal(model.predict(NEW), curves[:, 1])


def test_parameters_of_other_meaning_are_left_alone():
    model = ConformalQuantileRegressor(LinearQuantileRegressor(alpha=0.125)).fit(X, Y)
    assert [each.alpha for each in model.estimator_.estimators_] == [0.125] * 3
    for estimator in (KernelRidge(), GradientBoostingRegressor(n_estimators=2)):
        with pytest.raises(TypeError, match="estimator must predict two quantiles"):
            ConformalQuantileRegressor(estimator).fit(X[:50], Y[:50])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_pairs_of_models(method):
    pair = [at(0.1), at(0.9)]
    model = ConformalQuantileRegressor(pair, method=method, coverage=0.8, cv=None).fit(X, Y)
    assert model.levels_ is None
    low, high = model.predict_interval(NEW).T
    assert np.mean((low <= HELD_OUT) & (high >= HELD_OUT)) == pytest.approx(0.8, abs=0.05)
    curves = model.estimator_.predict(NEW)
    assert np.allclose(model.predict(NEW), curves.mean(axis=1))
    assert not hasattr(pair[0], "n_features_in_")


@pytest.mark.slow
def test_fitted_pairs_and_triples():
    fit, calibrate = slice(0, 500), slice(500, 800)
    models = [at(level).fit(X[fit], Y[fit]) for level in (0.1, 0.5, 0.9)]
    three = ConformalQuantileRegressor(models, coverage=0.8, cv="prefit")
    three.fit(X[calibrate], Y[calibrate])
    two = ConformalQuantileRegressor((models[0], models[2]), coverage=0.8, cv="prefit")
    two.fit(X[calibrate], Y[calibrate])
    curves = np.column_stack([each.predict(X[calibrate]) for each in models])
    outside = np.maximum(curves[:, 0] - Y[calibrate], Y[calibrate] - curves[:, 2])
    wanted = np.sort(outside)[int(np.ceil(0.8 * 301)) - 1]
    assert three.quantile_ == two.quantile_ == wanted
    assert np.array_equal(three.predict_interval(NEW), two.predict_interval(NEW))
    ordered = np.sort([each.predict(NEW) for each in models], axis=0)
    assert np.array_equal(three.predict(NEW), ordered[1])
    upper = ConformalQuantileRegressor(models, coverage=0.8, side="upper", cv="prefit")
    upper.fit(X[calibrate], Y[calibrate])
    assert np.isneginf(upper.predict_interval(NEW)[:, 0]).all()
    assert np.mean(upper.predict_interval(NEW)[:, 1] >= HELD_OUT) == pytest.approx(0.8, abs=0.06)


def test_any_that_predicts_two_columns():
    model = ConformalQuantileRegressor(TwoColumns(), coverage=0.8).fit(X, Y)
    low, high = model.predict_interval(NEW).T
    assert np.mean((low <= HELD_OUT) & (high >= HELD_OUT)) == pytest.approx(0.8, abs=0.05)


def test_lightgbm_and_quantile_forests():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    forests = pytest.importorskip("quantile_forest", reason="quantile-forest is not installed")
    boosted = lightgbm.LGBMRegressor(objective="quantile", n_estimators=40, verbose=-1, n_jobs=1)
    forest = forests.RandomForestQuantileRegressor(40, min_samples_leaf=10, random_state=0)
    for estimator in (boosted, forest):
        model = ConformalQuantileRegressor(estimator, coverage=0.8).fit(X, Y)
        assert model.levels_.tolist() == [0.1, 0.5, 0.9]
        low, high = model.predict_interval(NEW).T
        assert np.mean((low <= HELD_OUT) & (high >= HELD_OUT)) == pytest.approx(0.8, abs=0.05)
    fitted = clone(forest).set_params(default_quantiles=[0.1, 0.5, 0.9]).fit(X[:500], Y[:500])
    model = ConformalQuantileRegressor(fitted, coverage=0.8, cv="prefit").fit(X[500:], Y[500:])
    assert model.levels_.tolist() == [0.1, 0.5, 0.9]
    with pytest.raises(ValueError, match=r"level 0\.05 among its levels"):
        ConformalQuantileRegressor(fitted, cv="prefit").fit(X[500:], Y[500:])


@pytest.mark.slow
def test_clones_weights_and_scores():
    pair = [at(0.1), at(0.9)]
    model = clone(ConformalQuantileRegressor(pair, coverage=0.8))
    assert [each.quantile for each in model.estimator] == [0.1, 0.9]
    assert np.isfinite(cross_val_score(model, X, Y, cv=2)).all()
    weight = np.ones(len(X))
    model.fit(X, Y, sample_weight=weight)
    neighbours = [KNeighborsRegressor(3), KNeighborsRegressor(5)]
    with pytest.raises(TypeError, match="estimator must take sample_weight in fit"):
        ConformalQuantileRegressor(neighbours).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("given", [[TREES], [TREES] * 4, [TREES, 3], "trees", []])
def test_other_sequences_are_refused(given):
    with pytest.raises((TypeError, ValueError), match="estimator must be a regressor"):
        ConformalQuantileRegressor(given).fit(X, Y)


def test_pairs_that_are_not_fitted_are_told():
    with pytest.raises(Exception, match="not fitted"):
        ConformalQuantileRegressor([at(0.1), at(0.9)], cv="prefit").fit(X, Y)


def test_pairs_go_into_files(tmp_path):
    pytest.importorskip("skops", reason="skops is not installed")
    import fenchel

    pair = [QuantileRegressor(level, learn=False) for level in (0.1, 0.9)]
    model = ConformalQuantileRegressor(pair, coverage=0.8).fit(X[:200], Y[:200])
    path = fenchel.save(model, tmp_path / "model.skops")
    loaded = fenchel.load(path)
    assert np.array_equal(loaded.predict_interval(NEW), model.predict_interval(NEW))

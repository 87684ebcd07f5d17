"""What conformal wrappers learn, and from which rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, ShuffleSplit

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian
from fenchel.learning import Learning
from fenchel.model_selection import ConformalQuantileRegressor, ConformalRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (45, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.standard_normal(45)
NEW = RNG.uniform(-2.0, 2.0, (9, 2))
WEIGHT = RNG.integers(0, 3, 45).astype(float)
BRIEF = Learning(max_evaluations=3)
LEARNERS = [
    KernelRidge(learn=BRIEF),
    SVR(learn=BRIEF, tol=1e-8),
    ExpectileRegressor(0.4, learn=BRIEF, tol=1e-8),
]
learners = pytest.mark.parametrize("estimator", LEARNERS, ids=lambda each: type(each).__name__)


@pytest.fixture
def calls(monkeypatch):
    """Numbers of the rows that were learned from."""
    from fenchel import learning_estimator

    seen, original = [], learning_estimator.learn

    def counted(data, *arguments):
        seen.append(len(data.X))
        return original(data, *arguments)

    monkeypatch.setattr(learning_estimator, "learn", counted)
    return seen


@pytest.mark.slow
@learners
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_jackknife_plus_learns_once_from_all_rows(estimator, weight, calls):
    model = ConformalRegressor(estimator, method="jackknife+", coverage=0.8).fit(X, Y, weight)
    assert calls == [45 if weight is None else np.count_nonzero(weight)]
    whole = clone(estimator).fit(X, Y, weight)
    assert model.estimator_.kernel_ == whole.kernel_
    assert model.estimator_.alpha_ == whole.alpha_
    copy = whole.with_learned(held_out=False)  # each fit is calibrated afterwards
    plain = ConformalRegressor(copy, method="jackknife+", coverage=0.8)
    plain.fit(X, Y, weight)
    np.testing.assert_array_equal(model.conformity_scores_, plain.conformity_scores_)
    np.testing.assert_array_equal(
        model.predict_interval(NEW, sample_weight=None if weight is None else np.ones(9)),
        plain.predict_interval(NEW, sample_weight=None if weight is None else np.ones(9)),
    )


@pytest.mark.slow
def test_jackknife_plus_with_learned_parameters_is_that_of_refits():
    estimator = SVR(learn=BRIEF, tol=1e-9)
    model = ConformalRegressor(estimator, method="jackknife+").fit(X, Y)
    once = clone(estimator).fit(X, Y).with_learned()
    others = [np.delete(np.arange(45), i) for i in range(45)]
    own = [clone(once).fit(X[rows], Y[rows]).predict(X[[i]])[0] for i, rows in enumerate(others)]
    np.testing.assert_allclose(model.conformity_scores_, np.abs(Y - own), atol=2e-4)


@pytest.mark.parametrize(
    "estimator",
    [KernelRidge(1e-2, kernel=Gaussian(1.0)), KernelRidge(learn=False), SVR(learn=False)],
    ids=["all is given", "ridge", "svr"],
)
def test_jackknife_plus_of_what_learns_nothing(estimator, calls):
    model = ConformalRegressor(estimator, method="jackknife+", coverage=0.8).fit(X, Y)
    assert calls == []
    assert model.estimator_.alpha == estimator.alpha


@pytest.mark.slow
@learners
def test_split_learns_from_the_rows_of_its_fit(estimator, calls):
    cv = ShuffleSplit(1, test_size=15, random_state=0)
    model = ConformalRegressor(estimator, cv=cv, coverage=0.8).fit(X, Y)
    assert calls == [30]
    train, _ = next(cv.split(X))
    alone = clone(estimator).fit(X[train], Y[train])
    assert model.estimator_.kernel_ == alone.kernel_
    assert model.estimator_.alpha_ == alone.alpha_


@pytest.mark.slow
@learners
def test_cv_plus_learns_anew_without_each_fold(estimator, calls):
    folds = KFold(3, shuffle=True, random_state=0)
    model = ConformalRegressor(estimator, method="cv+", cv=folds, coverage=0.8).fit(X, Y)
    assert calls == [30, 30, 30, 45]
    for part, (train, held_out) in zip(model._held_out.models, folds.split(X), strict=True):
        alone = clone(estimator).fit(X[train], Y[train])
        assert part.kernel_ == alone.kernel_
        assert part.alpha_ == alone.alpha_
        scores = np.abs(Y[held_out] - alone.predict(X[held_out]))
        np.testing.assert_array_equal(model.conformity_scores_[held_out], scores)
    assert len({part.alpha_ for part in model._held_out.models}) == 3


@pytest.mark.slow
@learners
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_a_share_of_the_rows_is_learned_from_once(estimator, weight, calls):
    """The scores by their definition, of models that have the rows learned from and others."""
    folds = KFold(3, shuffle=True, random_state=0)
    model = ConformalRegressor(estimator, method="cv+", cv=folds, coverage=0.8, learn_share=0.4)
    model.fit(X, Y, weight)
    counts = np.ones(45) if weight is None else weight
    used = np.flatnonzero(counts)
    few = np.setdiff1d(used, model.calibration_indices_)
    assert calls == [len(few)] == [int(0.4 * len(used))]
    alone = clone(estimator).fit(X[few], Y[few], counts[few])
    assert model.learned_.alpha == alone.alpha_
    once = alone.with_learned(counts.sum() / counts[few].sum())
    assert once.alpha == pytest.approx(alone.alpha_ * (counts[few].sum() / counts.sum()) ** 0.6)
    whole = clone(once).fit(X, Y, counts)
    np.testing.assert_array_equal(model.predict(NEW), whole.predict(NEW))
    if hasattr(once, "refit_offsets"):
        assert once.refit_offsets == "held_out"
        once.set_params(refit_offsets=None)  # which costs fits: ends are calibrated afterwards
    expected = np.full(45, np.nan)
    for _, held_out in folds.split(X):
        out = np.setdiff1d(held_out, few)
        rest = np.setdiff1d(np.arange(45), out)
        part = clone(once).fit(X[rest], Y[rest], counts[rest])
        expected[out] = np.abs(Y[out] - part.predict(X[out]))
    scores = expected[model.calibration_indices_]
    np.testing.assert_allclose(model.conformity_scores_, scores, rtol=1e-9)


def test_a_share_to_learn_from_where_nothing_is_learned():
    """All rows calibrate, with whole folds to learn from or none."""
    given = {"method": "cv+", "cv": 3, "coverage": 0.8}
    for estimator in (KernelRidge(1e-2, kernel=Gaussian(1.0)), KernelRidge(learn=False)):
        plain = ConformalRegressor(estimator, **given).fit(X, Y)
        model = ConformalRegressor(estimator, learn_share=0.5, **given).fit(X, Y)
        assert model.learned_ is None
        np.testing.assert_array_equal(model.conformity_scores_, plain.conformity_scores_)
    alone = KernelRidge(1e-2, kernel=Gaussian(1.0)).fit(X, Y)
    assert alone.with_learned(10.0).alpha == 1e-2  # given, not learned
    with pytest.raises(ValueError, match="times_rows must be"):
        alone.with_learned(0.0)


@pytest.mark.slow
def test_folds_that_hold_out_only_rows_that_were_learned_from():
    folds = [(np.arange(1, 45), np.array([0])), (np.array([0]), np.arange(1, 45))]
    found = set()
    for seed in range(8):
        model = ConformalRegressor(
            KernelRidge(learn=BRIEF),
            method="cv+",
            cv=folds,
            coverage=0.5,
            learn_share=0.5,
            random_state=seed,
        ).fit(X, Y, WEIGHT + 1.0)
        found.add(len(model.models_))
        assert model.n_calibration_ == 23
        ends = model.predict_interval(NEW, sample_weight=np.ones(9))
        assert np.isfinite(ends).all()
    assert found == {2, 3}


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"learn_share": 0.5}, ValueError, "learn_share needs method='cv\\+'"),
        ({"learn_share": 1.0, "method": "cv+"}, ValueError, "learn_share must"),
        (
            {"learn_share": 0.5, "method": "cv+", "estimator": LinearRegression()},
            TypeError,
            "estimator must be one that learns",
        ),
    ],
)
def test_shares_that_cannot_be(given, error, said):
    with pytest.raises(error, match=said):
        ConformalRegressor(**given).fit(X, Y)


@pytest.mark.slow
def test_curves_learn_once(calls):
    quantiles = QuantileRegressor(learn=BRIEF)
    model = ConformalQuantileRegressor(quantiles, method="jackknife+", coverage=0.8).fit(X, Y)
    assert calls == [45]
    assert model.levels_.tolist() == [0.1, 0.5, 0.9]
    assert model.estimator_.predict(NEW).shape == (9, 3)


def test_the_model_of_none_is_ridge_regression_that_learns():
    given = {"coverage": 0.8, "random_state": 0}
    expected = ConformalRegressor(KernelRidge(), **given).fit(X, Y)
    model = ConformalRegressor(**given).fit(X, Y)
    assert model.estimator_.learned_ is not None
    np.testing.assert_array_equal(model.predict_interval(NEW), expected.predict_interval(NEW))


def test_jackknife_plus_is_of_fitted_functions_where_the_penalty_is_next_to_nothing():
    # there a dual point of a small gap stands for a function far from the certified one
    random = np.random.default_rng(2)
    rows = np.exp(random.normal(size=(60, 3)))
    y = rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.1 * random.normal(size=60)
    given = {"kernel": Gaussian(8.0), "alpha": 1e-8, "learn": False}
    ridge, expectile = (
        ConformalRegressor(each, method="jackknife+").fit(rows, y).conformity_scores_
        for each in (KernelRidge(**given), ExpectileRegressor(0.5, refit_offsets=None, **given))
    )
    assert 0.5 <= np.median(expectile) / np.median(ridge) <= 2.0

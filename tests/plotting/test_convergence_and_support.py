"""What a solver did, and the rows that carry its solution."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import SVR, KernelRidge, Lasso, QuantileRegressor
from fenchel.datasets import load_mcycle
from fenchel.model_selection import PathSearchCV
from fenchel.online import OnlineLasso
from fenchel.plotting import ConvergenceDisplay, SupportDisplay
from fenchel.solvers import Progress


@pytest.fixture(scope="module")
def mcycle():
    return load_mcycle(return_X_y=True, as_frame=True)


@pytest.mark.slow
@pytest.mark.parametrize(("against", "place"), [("time", "seconds"), ("iteration", "iteration")])
def test_history_is_drawn(mcycle, ax, against, place):
    X, y = mcycle
    model = QuantileRegressor([0.1, 0.9], alpha=1e-3, tol=1e-7).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model, against=against, ax=ax)
    (line,) = display.lines_
    expected = [(getattr(entry, place), entry.relative_gap) for entry in model.history_]
    assert len(expected) > 2
    np.testing.assert_allclose(line.get_xydata(), expected)
    np.testing.assert_allclose(display.tol_line_.get_ydata(), 1e-7)
    assert ax.get_yscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        {"time": "time in seconds", "iteration": "iteration"}[against],
        "relative duality gap",
    )
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["QuantileRegressor", "tol: 1e-07"]


def test_inside_of_pipelines_and_searches(mcycle, ax):
    X, y = mcycle
    search = PathSearchCV(SVR(), {"alpha": 3}, cv=2).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), search).fit(X, y)
    display = ConvergenceDisplay.from_estimator(pipeline, ax=ax)
    history = pipeline[-1].best_estimator_.history_
    assert len(display.lines_[0].get_xdata()) == len(history)


def test_gaps_of_rounding_and_of_nothing(ax):
    gaps = [np.inf, 1.0, 1e-3, 0.0, -1e-18]
    history = [Progress(k, 0.1 * k, 0.0, 0.0, gap) for k, gap in enumerate(gaps)]
    display = ConvergenceDisplay.from_histories({"a": history, "b": history[1:]}, ax=ax)
    drawn = display.lines_[0].get_ydata()
    assert np.isnan(drawn[0])
    np.testing.assert_allclose(drawn[1:3], gaps[1:3])
    np.testing.assert_allclose(drawn[3:], np.finfo(float).eps)
    styles = {(line.get_color(), line.get_linestyle()) for line in display.lines_}
    assert len(styles) == 2
    assert display.tol_line_ is None


def test_bad_histories(mcycle, ax):
    X, y = mcycle
    with pytest.raises(ValueError, match=r"have history_, .* got OnlineLasso without history_"):
        ConvergenceDisplay.from_estimator(OnlineLasso().fit(X, y), ax=ax)
    with pytest.raises(ValueError, match="got none for 'a'"):
        ConvergenceDisplay.from_histories({"a": []}, ax=ax)
    with pytest.raises(ValueError, match="got no history"):
        ConvergenceDisplay.from_histories({}, ax=ax)
    with pytest.raises(ValueError, match=r"against must be one of .*, got 'hours'"):
        ConvergenceDisplay.from_histories({"a": [None]}, against="hours", ax=ax)


def _points(collection):
    return np.asarray(collection.get_offsets())


def test_rows_by_sign_and_size(mcycle, ax):
    X, y = mcycle
    model = SVR(epsilon=20.0, alpha=1e-3).fit(X, y)
    display = SupportDisplay.from_estimator(model, X, y, ax=ax)
    rows = np.column_stack([X.iloc[:, 0], y])
    whole = np.zeros(len(y))
    whole[model.support_] = model.dual_coef_[:, 0]
    up, down = display.carrying_
    np.testing.assert_allclose(_points(up), rows[whole > 0])
    np.testing.assert_allclose(_points(down), rows[whole < 0])
    np.testing.assert_allclose(_points(display.idle_), rows[whole == 0])
    assert min(len(_points(part)) for part in (up, down, display.idle_)) > 10
    # a row that pulls up lies above the model, by the tube at least
    residual = y - model.predict(X)
    assert np.all(residual[whole > 0] > 19.9)
    sizes = up.get_sizes()
    large = sizes > 6.0
    share = sizes[large] / np.abs(whole[whole > 0][large])
    np.testing.assert_allclose(share, share[0])
    n = len(model.support_)
    assert ax.get_title(loc="left").startswith(f"{n} of 133 rows (")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("times", "accel")


def test_marks_of_many_rows_leave_others_to_be_seen(ax):
    random = np.random.default_rng(0)
    values, targets = random.normal(size=(2, 400))
    coefficients = np.where(np.arange(400) % 4 == 0, 0.0, random.choice([-1.0, 1.0], 400))
    few = SupportDisplay(values[:40], targets[:40], coefficients[:40]).plot(ax=ax)
    many = SupportDisplay(values, targets, coefficients).plot(ax=ax)
    largest = [max(part.get_sizes().max() for part in each.carrying_) for each in (few, many)]
    assert largest[0] == 90.0
    assert largest[1] * np.count_nonzero(coefficients) <= 5000.0
    for each in (few, many):
        assert each.idle_.get_zorder() > max(part.get_zorder() for part in each.carrying_)


@pytest.mark.slow
def test_several_levels_together_or_one(mcycle, ax):
    X, y = mcycle
    model = QuantileRegressor([0.2, 0.8], alpha=1e-3, epsilon=20.0).fit(X, y)
    both = SupportDisplay.from_estimator(model, X, y, ax=ax)
    assert len(both.carrying_) == 1
    np.testing.assert_allclose(
        both.coefficients[model.support_], np.sqrt((model.dual_coef_**2).sum(axis=1))
    )
    one = SupportDisplay.from_estimator(model, X, y, output=1, ax=ax)
    np.testing.assert_allclose(one.coefficients[model.support_], model.dual_coef_[:, 1])
    assert len(one.carrying_) == 2


def test_a_feature_of_several_and_a_target_of_several(ax):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"word": ["a", "b"] * 15, "p": random.uniform(size=30), "q": 1.0})
    Y = random.normal(size=(30, 2))
    model = KernelRidge().fit(X[["p", "q"]], Y)
    display = SupportDisplay.from_estimator(model, X, Y, output=1, ax=ax)
    np.testing.assert_allclose(display.values, X["p"])
    np.testing.assert_allclose(display.targets, Y[:, 1])
    assert ax.get_xlabel() == "p"


def test_coefficients_of_all_rows(ax):
    class Model:
        support_ = np.array([1, 3])
        dual_coef_ = np.array([[0.0], [2.0], [0.0], [-1.0]])

    X, y = np.arange(4.0)[:, None], np.ones(4)
    display = SupportDisplay.from_estimator(Model(), X, y, ax=ax)
    np.testing.assert_array_equal(display.coefficients, [0.0, 2.0, 0.0, -1.0])


def test_bad_support(mcycle, ax):
    X, y = mcycle
    model = SVR(epsilon=20.0, alpha=1e-3).fit(X, y)
    with pytest.raises(ValueError, match=r"support_ and dual_coef_, .* got Lasso"):
        SupportDisplay.from_estimator(Lasso().fit(X, y), X, y, ax=ax)
    with pytest.raises(ValueError, match=r"X must hold the training rows.* got 5 rows"):
        SupportDisplay.from_estimator(model, X[:5], y[:5], ax=ax)
    with pytest.raises(ValueError, match=r"output must be in 0\.\.0, got 2"):
        SupportDisplay.from_estimator(model, X, y, output=2, ax=ax)


def test_a_constant_has_no_support_vectors(ax):
    X, y = np.arange(20.0)[:, None], np.full(20, 7.0)
    model = KernelRidge(learn=False, alpha=1e-3).fit(X, y)
    display = SupportDisplay.from_estimator(model, X, y, ax=ax)
    np.testing.assert_array_equal(display.coefficients, np.zeros(20))
    assert ax.get_title(loc="left").startswith("0 of 20 rows (0 %)")

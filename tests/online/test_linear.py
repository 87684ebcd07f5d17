"""The linear learners against their pseudocode, row by row, and against batch solutions."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.base import clone

import fenchel
from fenchel.online import OnlineLasso, OnlineRidge, WidrowHoff

LEARNERS = [WidrowHoff, OnlineRidge, OnlineLasso]


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((300, 4)) * [1.0, 0.5, 2.0, 1.0]
    y = X @ [1.0, -2.0, 0.0, 0.5] + 3.0 + 0.3 * random.standard_normal(300)
    return X, y, random.uniform(0.0, 2.0, 300)


def eta(step, schedule, delay, t):
    return {
        "constant": step,
        "inverse_sqrt": step / (1 + (t - 1) / delay) ** 0.5,
        "inverse": step / (1 + (t - 1) / delay),
    }[schedule]


def plain(kind, X, y, weight, step, schedule="constant", delay=1.0, alpha=0.0, ones=True):
    """All iterates, (T + 1, d + 1) with the offset last; the sign of Figure 11.7 put right.

    Without a step the column of the offset has the size of the entries so far in place of 1, or
    that of a ridge penalty if it is larger, so that its weight moves by the square of that, and
    the first row moves no other weight.
    """
    sizes = np.cumsum((X**2).mean(axis=1)) / np.arange(1, len(X) + 1)
    sizes = np.maximum(sizes, alpha if kind is OnlineRidge else 0.0)
    X = np.column_stack([X, np.ones(len(X)) if ones else np.zeros(len(X))])
    penalized = np.r_[np.ones(X.shape[1] - 1), 0.0]
    w, plus, minus = (np.zeros(X.shape[1]) for _ in range(3))
    iterates = [w]
    longest = 0.0
    for t, (x, target, s) in enumerate(zip(X, y, weight, strict=True), 1):
        along = x.copy()
        if step is None and ones:
            along[-1] = sizes[t - 1]
            along[:-1] *= t > 1
        square = x[:-1] @ x[:-1] + along[-1] + (alpha if kind is OnlineRidge else 0.0)
        longest = max(longest, s * square)
        base = 0.5 / longest if step is None else step
        n = eta(base, schedule, delay, t) * s
        if kind is OnlineLasso:
            residual = target - (plus - minus) @ x
            new_plus, new_minus = np.zeros_like(w), np.zeros_like(w)
            for j in range(len(w) - 1):
                new_plus[j] = max(0.0, plus[j] - n * (alpha - residual * along[j]))
                new_minus[j] = max(0.0, minus[j] - n * (alpha + residual * along[j]))
            new_plus[-1] = plus[-1] + n * residual * along[-1]  # the offset has any sign
            plus, minus = new_plus, new_minus
            w = plus - minus
        else:
            w = w - 2 * n * ((w @ x - target) * along + alpha * penalized * w)
        iterates.append(w)
    return np.array(iterates)


def make(kind, alpha=0.0, **parameters):
    return kind(**parameters) if kind is WidrowHoff else kind(alpha, **parameters)


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "inverse"])
@pytest.mark.parametrize(("step", "delay"), [(0.01, 1.0), (0.02, 7.5), (None, 20.0)])
@pytest.mark.parametrize("ones", [True, False])
def test_pseudocode(kind, schedule, step, delay, ones, data):
    X, y, weight = data
    alpha = 0.0 if kind is WidrowHoff else 0.3
    expected = plain(kind, X, y, weight, step, schedule, delay, alpha, ones)
    model = make(kind, alpha, step=step, schedule=schedule, delay=delay, fit_intercept=ones)
    for i in (1, 2, 17, 300):
        last = getattr(model, "t_", 0)
        model.partial_fit(X[last:i], y[last:i], weight[last:i])
        found = np.r_[model.coef_, model.intercept_]
        np.testing.assert_allclose(found, expected[i], rtol=1e-10, atol=1e-13)
        assert model.t_ == i
    assert np.ptp(expected[-1]) > 0.01  # something was learned


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("average", [True, 1, 40])
def test_average_is_the_mean_of_the_iterates(kind, average, data):
    X, y, weight = data
    alpha = 0.0 if kind is WidrowHoff else 0.1
    iterates = plain(kind, X, y, weight, 0.02, alpha=alpha)
    model = make(kind, alpha, step=0.02, average=average)
    model.partial_fit(X[:25], y[:25], weight[:25])
    start = int(average)
    expected = iterates[25] if start > 25 else iterates[start:26].mean(axis=0)
    np.testing.assert_allclose(np.r_[model.coef_, model.intercept_], expected, rtol=1e-10)
    model.partial_fit(X[25:], y[25:], weight[25:])
    expected = iterates[start:].mean(axis=0)
    np.testing.assert_allclose(np.r_[model.coef_, model.intercept_], expected, rtol=1e-10)


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("parameters", [{}, {"average": True}, {"schedule": "inverse"}])
def test_blocks_of_any_size_give_the_same_bits(kind, parameters, data):
    X, y, weight = data
    whole = kind(**parameters).partial_fit(X, y, weight)
    for size in (1, 7, 128):
        model = kind(**parameters)
        for i in range(0, 300, size):
            model.partial_fit(X[i : i + size], y[i : i + size], weight[i : i + size])
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert model.intercept_ == whole.intercept_
    once = kind(n_epochs=1, shuffle=False, **parameters).fit(X, y)
    np.testing.assert_array_equal(once.coef_, kind(**parameters).partial_fit(X, y).coef_)


@pytest.mark.parametrize("kind", LEARNERS)
def test_rows_of_weight_zero_are_not_seen(kind, data):
    X, y, _ = data
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    kept = weight > 0
    model = kind(schedule="inverse_sqrt").partial_fit(X, y, weight)
    same = kind(schedule="inverse_sqrt").partial_fit(X[kept], y[kept])
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert model.t_ == 200
    before = model.coef_.copy()
    model.partial_fit(X, y, np.zeros(300))
    np.testing.assert_array_equal(model.coef_, before)


def stationary(n_rounds=1000, weighted=False, independent=False):
    """A hundred rows again and again, each time in another order, or drawn at random."""
    random = np.random.default_rng(1)
    X = random.standard_normal((100, 3))
    y = X @ [1.0, -2.0, 0.2] + 0.5 + 0.5 * random.standard_normal(100)
    weight = random.uniform(0.2, 2.0, 100) if weighted else np.ones(100)
    if independent:
        return X, y, weight, random.integers(0, 100, 100 * n_rounds)
    return X, y, weight, np.concatenate([random.permutation(100) for _ in range(n_rounds)])


def assert_solves(model, kind, X, y, weight, tolerance):
    alpha = 0.3
    for batch in {
        WidrowHoff: (linear_model.LinearRegression(), fenchel.LinearRegression()),
        OnlineRidge: (linear_model.Ridge(alpha * weight.sum()), fenchel.Ridge(alpha)),
        OnlineLasso: (linear_model.Lasso(alpha, tol=1e-10), fenchel.Lasso(alpha)),
    }[kind]:
        batch.fit(X, y, weight)
        np.testing.assert_allclose(model.coef_, batch.coef_, atol=tolerance, rtol=0)
        np.testing.assert_allclose(model.intercept_, batch.intercept_, atol=tolerance, rtol=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", LEARNERS)
def test_falling_steps_converge_to_the_batch_solution(kind, weighted):
    X, y, weight, drawn = stationary(weighted=weighted)
    model = make(kind, 0.3, step=0.2, schedule="inverse", delay=50.0)
    model.partial_fit(X[drawn[:300]], y[drawn[:300]], weight[drawn[:300]])
    with pytest.raises(AssertionError):
        assert_solves(model, kind, X, y, weight, 5e-3)
    model.partial_fit(X[drawn[300:]], y[drawn[300:]], weight[drawn[300:]])
    assert_solves(model, kind, X, y, weight, 5e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt"])
@pytest.mark.parametrize("kind", [WidrowHoff, OnlineRidge])
def test_the_mean_of_iterates_is_the_batch_solution(kind, schedule, weighted):
    # for independent rows, the last iterate and the next row are, which makes the mean unbiased
    X, y, weight, drawn = stationary(4000, weighted, independent=True)
    parameters = {"step": 0.02, "schedule": schedule, "delay": 1000.0}
    model = make(kind, 0.3, average=1000, **parameters)
    model.partial_fit(X[drawn], y[drawn], weight[drawn])
    assert_solves(model, kind, X, y, weight, 5e-3)  # sums of 400 000 rows: 1e-3 and more
    model = make(kind, 0.3, **parameters).partial_fit(X[drawn], y[drawn], weight[drawn])
    if schedule == "constant":
        with pytest.raises(AssertionError):
            assert_solves(model, kind, X, y, weight, 2e-2)


def test_consistent_equations_are_solved_exactly():
    random = np.random.default_rng(2)
    X = random.standard_normal((400, 5)) * 10.0 + 1.0
    y = X @ np.arange(5.0) - 4.0
    model = WidrowHoff(n_epochs=300).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.arange(5.0), atol=1e-8)
    np.testing.assert_allclose(model.intercept_, -4.0, atol=1e-7)


def test_lasso_has_exact_zeros():
    X, y, _, drawn = stationary(200)
    model = OnlineLasso(0.5, schedule="inverse", delay=100.0).partial_fit(X[drawn], y[drawn])
    assert model.coef_[2] == 0.0
    assert np.all(model.coef_[:2] != 0.0)


def test_fit_goes_through_the_rows_in_the_order_of_the_seed(data):
    X, y, _ = data
    model = WidrowHoff(n_epochs=2, random_state=3).fit(X, y)
    random = np.random.RandomState(3)
    order = np.concatenate([random.permutation(300), random.permutation(300)])
    expected = plain(WidrowHoff, X[order], y[order], np.ones(600), None)[-1]
    np.testing.assert_allclose(np.r_[model.coef_, model.intercept_], expected, rtol=1e-10)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert np.any(clone(model).set_params(random_state=4).fit(X, y).coef_ != model.coef_)
    assert model.t_ == 600


# --- steps that are too long ------------------------------------------------------------------


@pytest.mark.parametrize("kind", LEARNERS)
def test_diverging_step_is_reported_and_nothing_is_lost(kind, data):
    X, y, _ = data
    model = kind(step=0.02).partial_fit(X[:100], y[:100])
    before = copy.deepcopy(vars(model))
    longest = (np.einsum("ij,ij->i", X, X) + 1).max()
    message = (
        r"^step=2\.0 diverges at row \d+: choose it below [\d.e+-]+ \(1 over the weight times "
    )
    model.set_params(step=2.0)
    with pytest.raises(ValueError, match=message) as caught:
        model.partial_fit(X[100:], y[100:])
    assert "\n" not in str(caught.value)
    allowed = float(str(caught.value).split("below ")[1].split(" ")[0])
    assert allowed >= 0.95 / longest
    model.set_params(step=0.02)
    after = vars(model)
    assert set(after) == set(before)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    model.partial_fit(X[100:], y[100:])
    whole = kind(step=0.02).partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    with pytest.raises(ValueError, match=r"step=2\.0 diverges"):
        model.set_params(step=2.0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_a_failed_first_call_leaves_an_unfitted_model(data):
    X, y, _ = data
    model = WidrowHoff(step=50.0)
    with pytest.raises(ValueError, match="diverges"):
        model.partial_fit(X, y)
    assert vars(model).keys() == WidrowHoff().get_params().keys()
    model.set_params(step=0.01).partial_fit(X[:, :2], y)
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_step_below_the_advice_does_not_diverge(kind, scale):
    random = np.random.default_rng(5)
    X = random.standard_t(2, (2000, 6)) * scale  # heavy tails: some rows are very long
    y = random.standard_normal(2000)
    longest = (np.einsum("ij,ij->i", X, X) + 1).max()
    model = make(kind, step=0.99 / longest).partial_fit(X, y)
    assert np.all(np.isfinite(model.coef_))
    assert np.abs(model.predict(X)).max() < 1e3
    automatic = make(kind).partial_fit(X, y)
    assert np.abs(automatic.predict(X)).max() < 1e3


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("unit", [1e-6, 1e3])
def test_units_are_of_no_matter_without_a_step(kind, unit, data):
    X, y, weight = data
    model = make(kind).partial_fit(X, y, weight)
    assert model.score(X, y) > 0.5  # something was learned
    for part, size in ((X * unit, 1.0), (X, unit)):
        other = make(kind).partial_fit(part, y * size, weight)
        np.testing.assert_allclose(other.predict(part) / size, model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("kind", LEARNERS)
def test_rows_of_zeros_move_the_offset(kind, data):
    X, y, _ = data
    model = make(kind).partial_fit(np.zeros((40, 4)), np.full(40, 3.0))
    assert model.intercept_ == pytest.approx(3.0)
    assert model.partial_fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize("unit", [0.0, 1e-9, 1e-3])
def test_a_strong_penalty_does_not_hold_the_offset_up(unit, data):
    X, y = unit * data[0], np.full(len(data[0]), 3.0)
    model = OnlineRidge(alpha=1e-3, n_epochs=1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-2)


@pytest.mark.parametrize("kind", LEARNERS)
def test_an_offset_that_is_no_longer_fitted_is_zero(kind, data):
    X, y, _ = data
    model = make(kind).partial_fit(X, y).set_params(fit_intercept=False).partial_fit(X, y)
    assert model.intercept_ == 0.0  # as in the errors of its steps


def test_a_short_first_row_says_nothing_of_slopes():
    model = WidrowHoff().partial_fit([[1e-6], [1.0]], [3.0, 3.0])
    assert abs(model.coef_[0]) < 3.0


def test_overflow_is_reported_without_a_step():
    X = np.array([[1e-100], [1e150]])
    model = WidrowHoff(fit_intercept=False).partial_fit(X[:1], [1e100])
    with pytest.raises(ValueError, match="step=None overflows at row 0"):
        model.partial_fit(X[1:], [0.0])
    assert model.t_ == 1


# --- parameters and data that are not allowed -------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"step": 0.0}, ValueError, r"step must be a finite number > 0 or None, got 0\.0"),
        ({"step": "fast"}, TypeError, "step must be a finite number > 0 or None, got 'fast'"),
        ({"schedule": "falling"}, ValueError, "schedule must be one of .*, got 'falling'"),
        ({"delay": -1.0}, ValueError, r"delay must be a finite number > 0, got -1\.0"),
        ({"n_epochs": 0}, ValueError, "n_epochs must be an integer >= 1, got 0"),
        ({"average": 0}, ValueError, "average must be True, False or an integer >= 1, got 0"),
        ({"average": "on"}, TypeError, "average must be .* got 'on'"),
    ],
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_parameters(parameters, error, message, call, data):
    X, y, _ = data
    with pytest.raises(error, match=message):
        getattr(WidrowHoff(**parameters), call)(X, y)


@pytest.mark.parametrize("kind", [OnlineRidge, OnlineLasso])
def test_alpha(kind, data):
    with pytest.raises(ValueError, match=r"alpha must be a finite number >= 0, got -1\.0"):
        kind(-1.0).fit(*data[:2])


def test_data(data):
    X, y, _ = data
    with pytest.raises(ValueError, match=r"X must be at most 1e\+150 in absolute value, got "):
        WidrowHoff().fit(X * 1e160, y)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        WidrowHoff().partial_fit(X, y, np.full(300, -1.0))
    model = WidrowHoff().partial_fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but WidrowHoff is expecting 4"):
        model.partial_fit(X[:, :3], y)


def test_feature_names(data):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = OnlineRidge().partial_fit(frame, y)
    assert list(model.feature_names_in_) == list("abcd")
    model.partial_fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"a": "z"}), y)
    assert list(model.feature_names_in_) == list("abcd")

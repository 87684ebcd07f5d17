"""What is learned from curves: kernel and alpha, and what must not change them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fenchel import KernelRidge
from fenchel.datasets import make_functional
from fenchel.functional import FunctionalRegressor
from fenchel.functional._gaps import center_of
from fenchel.functional._learning import (
    coordinates_of,
    kernels_of_many_columns,
    loss_of_coordinates,
)
from fenchel.functional._representation import LossChoice
from fenchel.functional.curves import as_curves
from fenchel.kernels import Gaussian, Matern, is_open
from fenchel.learning import Learning
from fenchel.losses import Absolute, CurveHuber, Huber, Pinball, Squared
from fenchel.model_selection import PathSearchCV

RNG = np.random.default_rng(0)
THETA = np.linspace(0.0, 2.0, 21)
X = RNG.uniform(size=(90, 3)) * [1.0, 8.0, 0.25]
NEW = RNG.uniform(size=(200, 3)) * [1.0, 8.0, 0.25]
SHORT = Learning(max_evaluations=6, n_folds=3)


def truth(rows):
    """Curves that are moved by the first column and tilted by the second; the third is idle."""
    return np.sin(np.pi * (THETA + 2.0 * rows[:, :1])) + 2.0 * (rows[:, 1:2] / 8.0) ** 2 * THETA


Y = truth(X) + 0.2 * RNG.standard_normal((90, 21))


def make(loss="squared", **parameters):
    return FunctionalRegressor(loss, **{"kernel": Matern(), "learn": SHORT, **parameters})


def error(model):
    return float(np.mean((model.predict(NEW) - truth(NEW)) ** 2))


def test_a_coordinate_of_the_fit_is_the_scalar_fit_to_the_coordinate():
    """The premise: one kernel, and alpha over the eigenvalue for each."""
    alpha, kernel, output = 0.01, Gaussian([0.5, 4.0, 1.0]), Gaussian(0.3)
    curves = as_curves(Y, THETA)
    found = coordinates_of(curves, output(THETA[:, None]), np.ones(90))
    given = {"kernel": kernel, "output_kernel": output, "center": None}
    model = FunctionalRegressor(alpha=alpha, tol=1e-12, **given)
    fitted = coordinates_of(
        as_curves(model.fit(X, Y, THETA).predict(X), THETA), output(THETA[:, None]), np.ones(90)
    )
    gram = kernel(X)
    for j in range(4):
        strength = alpha / found.unit / found.coupling[j, j] ** 2
        target = found.targets[:, j]
        expected = gram @ np.linalg.solve(gram + 90.0 * strength * np.eye(90), target)
        nearest = np.abs(fitted.targets - expected[:, None]).max(axis=0).min()
        assert nearest < 1e-6 * np.abs(expected).max()
    assert (np.diff((found.targets**2).sum(axis=0)) <= 0.0).all()


@pytest.mark.slow
def test_defaults_learn_kernel_and_alpha():
    model = FunctionalRegressor().fit(X, Y, THETA)
    assert model.kernel_ == model.learned_.kernel
    assert not is_open(model.kernel_)
    assert model.alpha_ == model.learned_.alpha
    assert model.learned_.criterion < model.learned_.history[0]
    assert error(model) < 0.5 * error(FunctionalRegressor(learn=False).fit(X, Y, THETA))
    widths = make().fit(X, Y, THETA).kernel_.length_scale / X.std(axis=0)
    assert widths[2] > widths[1] > widths[0]


@pytest.mark.slow
def test_the_zero_of_the_units_of_curves_does_not_matter():
    levels = 290.0 + 20.0 * THETA
    one, other = make().fit(X, Y, THETA), make().fit(X, Y + levels, THETA)
    assert other.alpha_ == pytest.approx(one.alpha_, rel=1e-9)
    np.testing.assert_allclose(other.predict(NEW), one.predict(NEW) + levels, atol=1e-8)


@pytest.mark.parametrize("center", ["mean", None])
def test_the_criterion_is_in_units_of_the_best_constant_curve(center):
    """Noise of which nothing can be learned loses as much as the mean curve does."""
    noise = 290.0 + np.random.default_rng(3).standard_normal((90, 21))
    learned = make(center=center).fit(X, noise, THETA).learned_
    assert learned.criterion == pytest.approx(1.0, abs=0.1)
    assert learned.said == f"{learned.criterion:.3f} of the best constant curve's"


@pytest.mark.slow
def test_points_of_smooth_curves_share_a_length_scale():
    inputs, outputs, theta = make_functional(160, noise=0.1, random_state=0, process_state=0)
    clean = make_functional(160, random_state=0, process_state=0)[1]

    def wrong(learn):
        model = FunctionalRegressor(learn=learn).fit(inputs[:80], outputs[:80], theta)
        return np.mean((model.predict(inputs[80:]) - clean[80:]) ** 2), model.kernel_

    chosen, kernel = wrong(True)
    factors = kernel.length_scale / inputs[:80].std(axis=0)
    np.testing.assert_allclose(factors, factors[0], rtol=1e-9)
    assert chosen < 0.8 * wrong(Learning(kernels=("matern32",)))[0]


def test_points_that_matter_alone_keep_their_own_length_scales():
    rows = RNG.standard_normal((90, 30))
    curves = np.tanh(rows[:, 10:11]) * np.sin(6.0 * THETA)
    model = FunctionalRegressor(learn=SHORT).fit(rows, curves, THETA)
    scales = model.kernel_.kernel.length_scale  # of columns, and then of their ranks
    shares = scales.reshape(2, 30) / scales.reshape(2, 30).max(axis=1, keepdims=True)
    assert shares.min(axis=0).argmin() == 10


def test_the_fit_is_that_of_what_was_learned():
    model = make("huber", kappa=0.5, tol=1e-10).fit(X, Y, THETA)
    same = model.with_learned().fit(X, Y, THETA)
    assert same.learned_ is None
    assert same.kernel_ == model.kernel_
    np.testing.assert_allclose(same.predict(NEW), model.predict(NEW), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_what_is_given_stays():
    kernel = Gaussian([0.5, 4.0, 1.0])
    model = make(kernel=kernel).fit(X, Y, THETA)
    assert model.kernel_.length_scale == pytest.approx(kernel.length_scale)
    assert model.alpha_ == model.learned_.alpha
    model = make(alpha=0.02).fit(X, Y, THETA)
    assert model.alpha_ == model.learned_.alpha == 0.02
    assert make(kernel=kernel, alpha=0.02).fit(X, Y, THETA).learned_ is None
    gram = make(kernel="precomputed").fit(kernel(X), Y, THETA)
    assert gram.learned_ is None
    assert gram.alpha_ == pytest.approx(0.5e-3)


@pytest.mark.slow
def test_repetitions_and_order_do_not_matter():
    counts, order = RNG.integers(0, 3, 90), RNG.permutation(90)
    times = np.repeat(np.arange(90), counts)
    one = make().fit(X[order], Y[order], THETA, sample_weight=counts[order])
    other = make().fit(X[times], Y[times], THETA)
    np.testing.assert_array_equal(one.kernel_.length_scale, other.kernel_.length_scale)
    assert one.alpha_ == pytest.approx(other.alpha_, rel=1e-9)
    assert one.kernel_ != make().fit(X, Y, THETA).kernel_


def repeated_curves(d):
    """60 rows, their curves, and how often each of them is there."""
    r = np.random.default_rng(1)
    rows = r.normal(size=(60, d))
    rows[:, -1] = r.integers(0, 3, 60)
    size = np.sin(2.0 * rows[:, 0]) + rows[:, -1]
    curves = size[:, None] * np.linspace(0.0, 1.0, 15) + 0.1 * r.normal(size=(60, 15))
    return rows, curves, r.integers(0, 4, 60)


@pytest.mark.slow
def test_copies_of_a_curve_are_one_row_of_what_is_learned_from():
    """Copies at other places of a product of matrices differ in the last digit."""
    rows, curves, counts = repeated_curves(3)
    one = make(kernel=None).fit(rows, curves, sample_weight=counts).alpha_
    for seed in range(3):
        times = np.random.default_rng(seed).permutation(np.repeat(np.arange(60), counts))
        model = make(kernel=None).fit(rows[times], curves[times])
        assert model.learned_.n_rows == np.count_nonzero(counts)
        assert model.alpha_ == pytest.approx(one, rel=1e-9)


@pytest.mark.slow
def test_copies_do_not_change_which_kernels_there_are_to_choose_among():
    rows, curves, counts = repeated_curves(5)  # 44 distinct rows are few for five columns
    times = np.repeat(np.arange(60), counts)
    assert len(times) > 10 * 5 >= np.count_nonzero(counts)
    one = make(kernel=None).fit(rows, curves, sample_weight=counts)
    other = make(kernel=None).fit(rows[times], curves[times])
    assert one.kernel_ == other.kernel_
    assert one.alpha_ == pytest.approx(other.alpha_, rel=1e-9)
    assert [len(kernels_of_many_columns(rows[:n], 1000)) for n in (50, 51)] == [1, 0]
    assert len(kernels_of_many_columns(rows, 50)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_units_do_not_matter(loss):
    """Of columns and of curves; alpha has those of the measure."""
    scales, quadrature = np.array([4.0, 0.5, 1024.0]), np.full(21, 1.0 / 16.0)
    one = make(loss, kappa=0.25, quadrature=quadrature).fit(X, Y, THETA)
    two = make(loss, kappa=4.0, quadrature=quadrature).fit(scales * X, 16.0 * Y, THETA)
    np.testing.assert_allclose(
        two.kernel_.length_scale, scales * one.kernel_.length_scale, rtol=1e-9
    )
    assert two.alpha_ == pytest.approx(one.alpha_, rel=1e-6)
    np.testing.assert_allclose(two.predict(scales * NEW), 16.0 * one.predict(NEW), atol=1e-3)
    wide = make(quadrature=4.0 * quadrature).fit(X, Y, THETA)
    narrow = make(quadrature=quadrature).fit(X, Y, THETA)
    np.testing.assert_array_equal(wide.kernel_.length_scale, narrow.kernel_.length_scale)
    assert wide.alpha_ == pytest.approx(4.0 * narrow.alpha_, rel=1e-6)


@pytest.mark.slow
def test_outliers_do_not_decide_with_a_robust_loss():
    spoiled = Y.copy()
    spoiled[::10] += 40.0 * RNG.standard_normal((9, 1))
    options = {"center": "median", "kappa": 0.3}
    model = make("huber", **options).fit(X, spoiled, THETA)
    deceived = make(**options).fit(X, spoiled, THETA).with_learned().set_params(loss="huber")
    assert error(model) < 0.5 * error(deceived.fit(X, spoiled, THETA))
    assert error(model) < 0.5 * error(make("huber", learn=False, **options).fit(X, spoiled, THETA))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("squared", "Squared()"),
        ("huber", "Huber(0.7)"),
        ("absolute", "Absolute()"),
        ("pinball", "Absolute()"),
        ("squared_pinball", "Squared()"),
        ("epsilon_insensitive", "Absolute()"),
        ("squared_epsilon_insensitive", "Squared()"),
        (Huber(2.0), "Huber(2)"),
        (Pinball(0.9), "Absolute()"),
        (CurveHuber(0.7, 1, np.full(21, 1.0 / 21)), "Huber(0.7)"),
    ],
)
def test_which_loss_judges(loss, expected):
    chosen = loss_of_coordinates(LossChoice(loss, 2.0, 0.7, 0.1, 0.5), 2).output(1, 2)
    values = np.linspace(-3.0, 3.0, 6)[:, None]
    names = {"Squared()": Squared(), "Absolute()": Absolute()}
    names |= {"Huber(0.7)": Huber(0.7), "Huber(2)": Huber(2.0)}
    ratio = chosen.value(values) / names[expected].value(values)
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "norm"),
    [
        ("huber", 1),
        ("absolute", 2),
        ("pinball", 2),
        ("squared_pinball", 2),
        ("epsilon_insensitive", 2),
        ("squared_epsilon_insensitive", np.inf),
        (Huber(0.5), 2),
    ],
)
def test_every_loss_learns(loss, norm):
    model = make(loss, norm=norm, kappa=0.5, epsilon=0.05, tol=1e-3).fit(X, Y, THETA)
    plain = make(loss, norm=norm, kappa=0.5, epsilon=0.05, tol=1e-3, learn=False).fit(X, Y, THETA)
    assert model.learned_ is not None
    assert error(model) < error(plain)


@pytest.mark.slow
def test_gaps_and_points_of_their_own():
    seen = np.random.default_rng(0).uniform(size=Y.shape) < 0.7  # whichever tests came before
    with_gaps = np.where(seen, Y, np.nan)
    pairs = [(THETA[row], y[row]) for row, y in zip(seen, Y, strict=True)]
    whole = error(make().fit(X, Y, THETA))
    for model in (make().fit(X, with_gaps, THETA), make().fit(X, pairs)):
        assert model.learned_ is not None
        assert error(model) < 2.0 * whole


def test_without_a_center_there_is_nothing_to_take_off():
    values = np.array([[0.0, np.nan, 2.0, np.nan], [1.0, 1.0, np.nan, 5.0]])
    assert not center_of(None, as_curves(values), np.ones(2)).any()


def test_two_curves_teach_nothing():
    model = make().fit(X[:2], Y[:2], THETA)
    assert model.learned_ is None
    assert model.alpha_ == pytest.approx(0.5e-3)


def test_searches_learn_nothing():
    search = PathSearchCV(make(), {"alpha": 3}, cv=3).fit(X, Y, theta=THETA)
    assert search.best_estimator_.alpha_ == search.best_params_["alpha"]
    assert search.best_estimator_.kernel_.length_scale == pytest.approx(
        make(learn=False, alpha=1.0).fit(X, Y, THETA).kernel_.length_scale
    )


def test_a_callback_ends_learning_with_the_best_so_far():
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) == 2

    model = make(callback=stop).fit(X, Y, THETA)
    assert len(model.learned_.history) == 2
    assert "stopped after 2 evaluations" in model.learned_.message


def test_a_solver_that_is_none_for_the_loss_is_refused_before_learning():
    calls = []
    model = make("absolute", solver="closed_form", callback=calls.append)
    with pytest.raises(ValueError, match="closed_form"):
        model.fit(X, Y, THETA)
    assert not calls


@pytest.mark.parametrize("moved", [lambda t: t - 5.0, lambda t: 1e6 * t - 1e9, lambda t: t + 1e6])
def test_where_the_points_begin_does_not_matter(moved):
    # of an even grid two entries of an eigenvector are largest, but for rounding
    random = np.random.default_rng(0)
    X, theta = random.uniform(size=(30, 2)), np.linspace(0.0, 1.0, 15)
    Y = np.sin(6.0 * (theta + X[:, :1])) + 0.1 * random.normal(size=(30, 15))
    expected = FunctionalRegressor().fit(X, Y, theta).predict(X, theta)
    found = FunctionalRegressor().fit(X, Y, moved(theta)).predict(X, moved(theta))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("n_points", [1, 2])
def test_curves_of_one_or_two_points_are_learned(n_points):
    """As well as by a fit to rows that hold the points as well, or nearly."""
    random = np.random.default_rng(0)
    X, new, grid = random.uniform(size=(150, 1)), random.uniform(size=(100, 1)), THETA / 2.0
    theta = np.sort(random.uniform(size=(150, n_points)), axis=1)
    values = np.sin(2.0 * np.pi * (theta + X)) + 0.1 * random.normal(size=theta.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FunctionalRegressor().fit(X, list(zip(theta, values, strict=True)))
    rows = np.column_stack([np.repeat(X, n_points, axis=0), theta.ravel()])
    plain = KernelRidge().fit(rows, values.ravel())
    expected = np.sin(2.0 * np.pi * (grid + new))
    both = np.column_stack([np.repeat(new, len(grid)), np.tile(grid, len(new))])
    other = plain.predict(both).reshape(expected.shape)
    error, usual = (np.mean((each - expected) ** 2) for each in (model.predict(new, grid), other))
    assert error < 3.0 * usual
    assert error < 0.05 * np.var(expected)

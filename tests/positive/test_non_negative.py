"""Regression whose predictions are non-negative everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, mean_poisson_deviance, r2_score

import fenchel
import positive_referee as referee
from contract_cases import with_checks
from fenchel.features import Nystroem, PivotedCholesky
from fenchel.kernels import Gaussian, Matern
from fenchel.positive import Condition, ConeRegressor, NonNegativeRegressor

TUBE = "epsilon_insensitive"
LOSSES = ["squared", "huber", "pinball", "poisson"]


def data(loss="squared", n=40, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, d))
    mean = 2.0 * np.maximum(np.sin(2.0 * X[:, 0]), 0.0) + 0.05
    y = rng.poisson(mean).astype(float) if loss == "poisson" else mean + 0.3 * rng.normal(size=n)
    return X, y, rng.uniform(0.5, 2.0, n)


# Where a check asks for a score it sets alpha = 0.01, strong for targets whose spread is a quarter
# of their mean: the kernel is wide.
@with_checks(
    NonNegativeRegressor(kernel=Gaussian(8.0)),
    NonNegativeRegressor("huber", kappa=3.0, kernel=Gaussian(8.0)),
    NonNegativeRegressor("poisson", kernel=Gaussian(8.0)),
    # rougher, or rows that it interpolates leave the fit undetermined to the 1e-7 of a check
    NonNegativeRegressor("pinball", kernel=Matern(8.0, nu=1.5), alpha=1e-2),
    slow_others=True,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", LOSSES)
def test_against_a_semidefinite_program(loss):
    X, y, weight = data(loss, n=25)
    settings = {"level": 0.8, "kappa": 0.4, "alpha": 3e-3, "trace_penalty": 2e-2, "rank": 6}
    model = NonNegativeRegressor(loss, tol=1e-8, learn=False, **settings)
    model.fit(X, y, weight)
    scale = float(np.average(np.abs(y), weights=weight))
    assert model.scale_ == pytest.approx(scale, rel=1e-14)
    prepared = model.prepare(X, y, weight)
    problem = model._problem(prepared)
    targets = (y / scale)[:, None]
    optimum = {
        "squared": lambda: referee.squared(problem, targets),
        "huber": lambda: referee.huber(problem, targets, 0.4 / scale),
        "pinball": lambda: referee.pinball(problem, targets, [0.8]),
        "poisson": lambda: referee.poisson(problem, targets[:, 0]),
    }[loss]()
    certificate = model.certificate_
    assert certificate.relative_gap <= 1e-8
    assert certificate.primal == pytest.approx(optimum, abs=1e-7)
    # the predictions attain this objective
    z = model.predict(X) / scale
    np.testing.assert_allclose(
        problem.loss.value(z[:, None]) @ problem.weight + _penalty(model, settings),
        certificate.primal,
        rtol=1e-10,
    )


def _penalty(model, settings):
    matrix = model.model_.matrix_ / model.scale_
    squares = 0.5 * settings["alpha"] * np.sum(matrix**2)
    return settings["trace_penalty"] * np.trace(matrix) + squares


@pytest.mark.parametrize("loss", LOSSES)
def test_never_negative(loss):
    X, y, _ = data(loss, n=80, d=2)
    y = y - 0.5 * (loss != "poisson")  # many targets are below zero
    model = NonNegativeRegressor(loss, alpha=1e-5, trace_penalty=0.0).fit(X, y)
    rng = np.random.default_rng(1)
    for size in (2.0, 10.0, 1e6):
        prediction = model.predict(rng.uniform(-size, size, (100_000, 2)))
        assert prediction.min() >= 0.0
        assert np.all(np.isfinite(prediction))
    assert np.linalg.eigvalsh(model.model_.matrix_)[0] >= -1e-10


@pytest.mark.parametrize(
    ("loss", "kappa"), [*((loss, None) for loss in LOSSES), ("huber", 1.0), (TUBE, None)]
)
@pytest.mark.parametrize("factor", [1e-6, pytest.param(1e5, marks=pytest.mark.slow)])
def test_equivariant_to_the_scale_of_y(loss, kappa, factor):
    X, y, weight = data(loss)
    plain = NonNegativeRegressor(loss, kappa=kappa, tol=1e-7).fit(X, y, weight)
    kappa = None if kappa is None else factor * kappa
    scaled = NonNegativeRegressor(loss, kappa=kappa, tol=1e-7).fit(X, factor * y, weight)
    np.testing.assert_allclose(
        scaled.predict(X), factor * plain.predict(X), atol=1e-3 * factor * np.abs(y).max()
    )
    assert scaled.score(X, factor * y) == pytest.approx(plain.score(X, y), abs=1e-4)


@pytest.mark.parametrize("estimator", [NonNegativeRegressor, ConeRegressor, fenchel.SVR])
@pytest.mark.parametrize("loss", ["huber", TUBE])
def test_tubes_and_thresholds_are_read_off_y(estimator, loss):
    X, y, weight = data()
    y = 1e-3 * y  # much smaller than any number that could stand for all units
    model = estimator(loss=loss, learn=False).fit(X, y, weight)

    def median(values, weight):
        order = np.argsort(values)
        return values[order][np.searchsorted(np.cumsum(weight[order]), 0.5 * weight.sum())]

    spread = 1.4826 * median(np.abs(y - median(y, weight)), weight)
    assert model.kappa_ == pytest.approx(0.5 * spread, rel=0.05)
    assert model.epsilon_ == pytest.approx(0.1 * spread, rel=0.05)
    assert model.score(X, y) > 0.3
    given = model.set_params(kappa=0.25, epsilon=0.5).fit(X, y, weight)
    assert (given.kappa_, given.epsilon_) == (0.25, 0.5)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_counts(loss):
    X, y, _ = data(loss, n=30)
    counts = np.random.default_rng(2).integers(0, 4, 30)
    settings = {"kernel": Gaussian(0.7), "tol": 1e-7}
    weighted = NonNegativeRegressor(loss, **settings).fit(X, y, counts)
    repeated = NonNegativeRegressor(loss, **settings).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=5e-3)
    assert np.all(weighted.dual_coef_[counts == 0] == 0.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_gives_the_matrix(loss):
    X, y, weight = data(loss)
    model = NonNegativeRegressor(loss, solver="proximal_newton", learn=False).fit(X, y, weight)
    features = model.feature_map_.transform(X)
    gram = features.T @ (model.dual_coef_[:, None] * features)
    values, vectors = np.linalg.eigh(gram + model.trace_penalty * np.eye(len(gram)))
    matrix = (vectors * np.maximum(-values, 0.0)) @ vectors.T / model.alpha_ * model.scale_
    largest = np.abs(matrix).max()
    np.testing.assert_allclose(model.model_.matrix_, matrix, atol=1e-8 * largest)


@pytest.mark.slow
def test_scores_are_those_of_scikit_learn():
    X, y, weight = data()
    model = NonNegativeRegressor().fit(X, y)
    assert model.score(X, y, weight) == pytest.approx(
        r2_score(y, model.predict(X), sample_weight=weight), abs=1e-12
    )
    model = NonNegativeRegressor("pinball", level=0.3).fit(X, y)
    assert model.score(X, y) == pytest.approx(
        d2_pinball_score(y, model.predict(X), alpha=0.3),
        abs=1e-3,  # another empirical quantile
    )
    X, y, weight = data("poisson")
    model = NonNegativeRegressor("poisson").fit(X, y)
    assert model.predict(X).min() > 0.0
    assert model.score(X, y, weight) == pytest.approx(
        d2_tweedie_score(y, model.predict(X), sample_weight=weight, power=1.0), abs=1e-12
    )


def test_strong_alpha_and_constant_targets():
    X, _, _ = data()
    zero = NonNegativeRegressor().fit(X, np.zeros(len(X)))
    assert np.all(zero.predict(X) == 0.0)
    assert zero.rank_ == 0
    weak = NonNegativeRegressor(alpha=1e-8, trace_penalty=0.0).fit(X, np.full(len(X), 7.0))
    np.testing.assert_allclose(weak.predict(X), 7.0, rtol=1e-2)
    assert np.all(NonNegativeRegressor().fit(X, np.full(len(X), -3.0)).predict(X) == 0.0)


def test_quantiles_lie_above_their_share():
    X, y, _ = data(n=300)
    for level in (0.2, 0.9):
        model = NonNegativeRegressor("pinball", level=level, alpha=1e-6, trace_penalty=0.0)
        assert np.mean(y <= model.fit(X, y).predict(X)) == pytest.approx(
            level,
            abs=0.25 if level < 0.5 else 0.03,  # low quantiles below zero are out of reach
        )


def test_poisson_beats_the_constant_out_of_sample():
    X, y, _ = data("poisson", n=300)
    model = NonNegativeRegressor("poisson", alpha=1e-3).fit(X[:200], y[:200])
    constant = np.full(100, y[:200].mean())
    prediction = model.predict(X[200:])
    assert mean_poisson_deviance(y[200:], prediction) < mean_poisson_deviance(y[200:], constant)


@pytest.mark.parametrize(
    "settings",
    [{"kernel": "laplacian"}, {"features": Nystroem(rank=20)}, {"kernel": "linear"}],
    ids=["laplacian", "nystroem", "linear"],
)
def test_other_kernels_and_features(settings):
    X, y, _ = data()
    model = NonNegativeRegressor(**settings).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.predict(10.0 * X).min() >= 0.0


def test_given_gram_matrix_and_rows_without_weight():
    X, y, weight = data()
    weight[::5] = 0.0
    kernel = Gaussian(0.8)
    fine = PivotedCholesky(tol=1e-12)  # pivots differ
    plain = NonNegativeRegressor(kernel=kernel, learn=False, features=fine, tol=1e-9)
    given = NonNegativeRegressor(kernel="precomputed", learn=False, features=fine, tol=1e-9)
    plain.fit(X, y, weight)
    given.fit(kernel(X), y, weight)
    new = np.linspace(-3.0, 3.0, 50)[:, None]
    np.testing.assert_allclose(
        given.predict(kernel(new, X)), plain.predict(new), atol=1e-6 * np.abs(y).max()
    )


def test_file_round_trip(tmp_path):
    X, y, _ = data()
    model = NonNegativeRegressor("huber", learn=False).fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    assert np.array_equal(same.predict(X), model.predict(X))
    assert same.model_.integral() == model.model_.integral()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of"),
        ({"loss": None}, "loss must be one of"),
        ({"alpha": 0.0}, "alpha must be a finite number > 0 or None, got 0.0"),
        ({"trace_penalty": -1.0}, "trace_penalty must be a finite number >= 0, got -1"),
        ({"level": 1.0}, r"level must be a number in \(0, 1\), got 1.0"),
        ({"level": 0.0}, "level must be a number in .0, 1., got 0"),
        ({"kappa": -2.0}, "kappa must be a finite number > 0 or None, got -2"),
        ({"rank": 0}, "rank must be an integer >= 1 or None, got 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
        ({"tol": np.nan}, "tol must be a finite number > 0, got nan"),
        ({"solver": "sgd"}, "solver must be one of"),
        ({"features": "magic"}, "features must be one of"),
    ],
)
def test_bad_parameters(settings, message):
    X, y, _ = data()
    with pytest.raises(ValueError, match=message):
        NonNegativeRegressor(**settings).fit(X, y)


def test_bad_data():
    X, y, _ = data("poisson")
    y[3] = -1.0
    with pytest.raises(ValueError, match="y must be >= 0 with loss='poisson', got -1 in row 3"):
        NonNegativeRegressor("poisson").fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must have a positive entry"):
        NonNegativeRegressor().fit(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="y must be at most 1e"):
        NonNegativeRegressor().fit(X, np.where(y > 0, 1e200, 0.0))
    with pytest.raises(ValueError, match="square Gram matrix"):
        NonNegativeRegressor(kernel="precomputed").fit(X, y)


def test_too_few_steps_are_told():
    X, y, _ = data()
    with pytest.warns(ConvergenceWarning, match="relative gap of"):
        NonNegativeRegressor(max_iter=1, alpha=1e-6).fit(X, y)


CELLS = np.array([1.0, 3.0, 0.5, 6.0])


def counts_of_cells(n, seed=0):
    random = np.random.default_rng(seed)
    cell = random.integers(0, 4, n)
    return np.eye(4)[cell], random.poisson(CELLS[cell]).astype(float)


@pytest.mark.parametrize("seed", [0, 1])
def test_cells_of_many_counts_are_not_shrunk(seed):
    X, y = counts_of_cells(3000, seed)
    model = NonNegativeRegressor("poisson").fit(X, y)
    own = [y[X[:, k] == 1.0].mean() for k in range(4)]
    np.testing.assert_allclose(model.predict(np.eye(4)), own, atol=0.12)  # it was 0.3 and more
    assert model.with_learned().fit(X, y).alpha_ == model.alpha_


def test_a_weaker_strength_does_not_depend_on_repetition():
    X, y = counts_of_cells(600)
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    weighted = NonNegativeRegressor("poisson").fit(rows[:, :4], rows[:, 4], counts)
    repeated = NonNegativeRegressor("poisson").fit(X, y)
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-6)


def test_learning_a_weaker_strength_is_ended_by_the_callback():
    X, y = counts_of_cells(3000)
    last = NonNegativeRegressor("poisson").fit(X, y).learned_
    calls = []

    def end(progress):
        calls.append(progress.primal)
        return len(calls) == len(last.history) - 1

    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        model = NonNegativeRegressor("poisson", callback=end).fit(X, y)
    assert model.learned_.history == last.history[:-1]
    assert model.learned_.ended_early


def test_conditions_keep_the_strength_of_the_linear_model():
    X, y = counts_of_cells(600)
    at = Condition("value", at=[1.0, 0.0, 0.0, 0.0], equals=1.0)
    model = NonNegativeRegressor("poisson", conditions=[at]).fit(X, y)
    assert model.alpha_ > NonNegativeRegressor("poisson").fit(X, y).alpha_

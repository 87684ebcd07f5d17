"""Bounds of fitted estimators: what is read off them, what is refused, how often they fail."""

from __future__ import annotations

import warnings
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.preprocessing import PolynomialFeatures

from bounds_cases import DELTA, WIDTH, N, ball, drawn, tail
from fenchel import (
    SVR,
    ExpectileRegressor,
    FunctionalRegressor,
    KernelRidge,
    Lasso,
    NonCrossingQuantileRegressor,
    QuantileRegressor,
)
from fenchel.bounds import bound
from fenchel.bounds._applied import ball_around, share_of
from fenchel.bounds._losses import local
from fenchel.features import Explicit
from fenchel.kernels import Decomposable, Laplacian, Linear
from fenchel.losses import Absolute, Huber, L2Norm, Loss, Pinball, Squared, SquaredPinball
from fenchel.model_selection import PathSearchCV
from fenchel.positive import DensityEstimator, NonNegativeRegressor


@pytest.fixture(scope="module")
def sample():
    return drawn()


def test_kernel_ridge_by_hand(sample):
    X, y = sample
    model = KernelRidge(1e-2, kernel=WIDTH, fit_intercept=False).fit(X, y)
    result = bound(model, X, y, target_bound=2.0)
    K = WIDTH(X)
    a = np.linalg.solve(K + 1e-2 * N * np.eye(N), y)
    norm = sqrt(a @ K @ a)
    Lambda, share = ball(norm, 2.0)
    M = Lambda + 2.0
    wanted = {
        "empirical risk": np.mean((y - K @ a) ** 2),
        "complexity": 4.0 * M * Lambda / sqrt(N),
        "confidence": M**2 * tail(DELTA),
        "choice of the class": M**2 * (tail(DELTA * share) - tail(DELTA)),
    }
    assert result.terms == pytest.approx(wanted, rel=1e-6)
    assert result.value == pytest.approx(sum(wanted.values()), rel=1e-6)
    assert result.constants["fitted norm"] == pytest.approx(norm, rel=1e-6)
    assert result.trivial == pytest.approx(M**2)
    assert result.caveats == ()
    assert result.vacuous == (result.value >= M**2)
    assert "theorem 11.11" in result.source


def test_offset_by_hand_with_a_range_that_is_not_around_zero(sample):
    X, y = sample
    y = y + 10.0
    model = SVR(epsilon=0.1, alpha=1e-2, kernel=WIDTH).fit(X, y)
    result = bound(model, X, y, target_bound=(8.0, 11.5), delta=0.1)
    a = model.dual_coef_[:, 0]
    norm = sqrt(a @ WIDTH(X[model.support_]) @ a)
    half = 1.75
    Lambda, share = ball(norm, half)
    beta, portion = ball(abs(model.offset_[0] - 9.75), half)
    most = Lambda + beta + half - 0.1
    assert result.terms["complexity"] == pytest.approx(2.0 * Lambda / sqrt(N))
    assert result.terms["offset"] == pytest.approx(2.0 * beta / sqrt(N))
    assert result.terms["confidence"] == pytest.approx(most * tail(0.1))
    both = most * tail(0.1 * share * portion)
    assert result.terms["confidence"] + result.terms["choice of the class"] == pytest.approx(both)
    loss = np.maximum(np.abs(y - model.predict(X)) - 0.1, 0.0).mean()
    assert result.terms["empirical risk"] == pytest.approx(loss)
    assert "theorem 11.13" in result.source


def test_joint_quantiles_by_hand(sample):
    X, y = sample
    levels = np.array([0.1, 0.5, 0.9])
    model = QuantileRegressor(levels, kernel=WIDTH, alpha=1e-2, fit_intercept=False).fit(X, y)
    result = bound(model, X, y, target_bound=1.5)
    B = np.exp(-(np.subtract.outer(levels, levels) ** 2))
    a = model.dual_coef_
    norm = sqrt(np.sum((WIDTH(X[model.support_]) @ a @ B) * a))
    Lambda, share = ball(norm, 1.5)
    slopes = np.array([0.9, 0.5, 0.9])
    assert result.terms["complexity"] == pytest.approx(2.0 * slopes.sum() * Lambda / sqrt(N))
    most = slopes.sum() * (Lambda + 1.5)
    total = result.terms["confidence"] + result.terms["choice of the class"]
    assert total == pytest.approx(most * tail(DELTA * share))
    residual = y[:, None] - model.predict(X)
    pinball = np.maximum(levels * residual, (levels - 1.0) * residual).sum(axis=1).mean()
    assert result.terms["empirical risk"] == pytest.approx(pinball)
    stated = bound(model, X, y, target_bound=1.5, norm_bound=Lambda)
    assert stated.terms["choice of the class"] == 0.0
    assert stated.value == pytest.approx(
        result.value - result.terms["choice of the class"], rel=1e-12
    )


ESTIMATORS = {
    "ridge": KernelRidge(1e-2, kernel=WIDTH),
    "ridge, fourier": KernelRidge(1e-2, kernel=WIDTH, features="fourier", rank=60),
    "svr": SVR(epsilon=0.1, kernel=WIDTH),
    "svr, rough kernel": SVR(epsilon=0.1, kernel=Laplacian(0.5), alpha=1e-5),
    "quadratic": SVR("squared_epsilon_insensitive", epsilon=0.1, kernel=WIDTH),
    "huber": SVR("huber", kappa=0.1, kernel=WIDTH),
    "quantile": QuantileRegressor(0.3, kernel=WIDTH),
    "joint": QuantileRegressor([0.9, 0.1, 0.5], kernel=WIDTH),
    "joint, in order": QuantileRegressor([0.2, 0.5], kernel=WIDTH, non_crossing="train"),
    "joint, insensitive": QuantileRegressor([0.2, 0.5], kernel=WIDTH, epsilon=0.2),
    "expectiles": ExpectileRegressor([0.2, 0.5], kernel=WIDTH),
    "expectiles, insensitive": ExpectileRegressor([0.2, 0.5], kernel=WIDTH, epsilon=0.2),
}


@pytest.mark.filterwarnings("ignore:the feature map of rank")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(sample, name):
    X, y = sample
    model = ESTIMATORS[name].fit(X, y)
    results = [
        bound(model, X, y, target_bound=1.5, clip=clip, empirical=empirical)
        for clip in (False, True)
        for empirical in (False, True)
    ]
    for result in results:
        assert sum(result.terms.values()) == pytest.approx(result.value, rel=1e-14)
        assert min(result.terms.values()) >= 0.0
        assert result.caveats == ()
        assert result.source in str(result)
    plain, observed, clipped, _ = results
    # the kernel is 1 on its diagonal: the trace says no more, and costs more confidence
    assert observed.terms["complexity"] == pytest.approx(plain.terms["complexity"])
    assert observed.value > plain.value
    # the norm as the dual coefficients have it
    function = np.asarray(model.predict(X)).reshape(N, -1) - model.offset_
    earned = np.sum(model.dual_coef_ * function[model.support_])
    assert plain.constants["fitted norm"] == pytest.approx(sqrt(earned), rel=1e-3)
    assert plain.constants["norm"] / 2 <= plain.constants["fitted norm"]
    assert plain.constants["fitted norm"] <= plain.constants["norm"]
    assert clipped.constants["residual_bound"] == 3.0
    assert "clipped" in clipped.risk


@pytest.mark.slow
def test_several_targets(sample):
    X, y = sample
    Y = np.column_stack([y, -y])
    single = bound(KernelRidge(kernel=WIDTH).fit(X, y), X, y, target_bound=1.5, norm_bound=9.0)
    double = bound(KernelRidge(kernel=WIDTH).fit(X, Y), X, Y, target_bound=1.5, norm_bound=9.0)
    assert double.terms["complexity"] == pytest.approx(2.0 * single.terms["complexity"])
    coupled = bound(SVR(kernel=WIDTH).fit(X, Y), X, Y, target_bound=1.5, norm_bound=9.0)
    # Maurer: 2 √2 L Λ √(r² p) / √n with L = 1
    assert coupled.terms["complexity"] == pytest.approx(2.0 * sqrt(2.0) * 9.0 * sqrt(2.0 / N))


def test_linear_kernel_with_a_stated_radius(sample):
    X, y = sample
    model = KernelRidge(1e-2, kernel=Linear(), fit_intercept=False).fit(X, y)
    result = bound(model, X, y, target_bound=1.5, radius=sqrt(2.0), norm_bound=1.0)
    weights = np.linalg.solve(X.T @ X + 1e-2 * N * np.eye(2), X.T @ y)
    assert result.constants["fitted norm"] == pytest.approx(np.linalg.norm(weights), rel=1e-6)
    M = sqrt(2.0) + 1.5
    assert result.terms["complexity"] == pytest.approx(4.0 * M * sqrt(2.0 / N))
    observed = bound(
        model, X, y, target_bound=1.5, radius=sqrt(2.0), norm_bound=1.0, empirical=True
    )
    wanted = 4.0 * M * sqrt(np.trace(X @ X.T)) / N
    assert observed.terms["complexity"] == pytest.approx(wanted)
    assert observed.terms["confidence"] == pytest.approx(
        3.0 * M**2 * sqrt(log(2.0 / DELTA) / (2 * N))
    )


def test_a_given_gram_matrix_is_the_same_model(sample):
    X, y = sample
    K = WIDTH(X)
    given = KernelRidge(1e-2, kernel="precomputed").fit(K, y)
    direct = KernelRidge(1e-2, kernel=WIDTH).fit(X, y)
    assert bound(given, K, y, target_bound=1.5, radius=1.0).value == pytest.approx(
        bound(direct, X, y, target_bound=1.5).value, rel=1e-6
    )


@pytest.mark.slow
def test_what_depends_on_the_sample_is_said(sample):
    X, y = sample
    (said,) = bound(KernelRidge(learn=False).fit(X, y), X, y, target_bound=1.5).caveats
    assert "length scale" in said
    (said,) = bound(KernelRidge().fit(X, y), X, y, target_bound=1.5).caveats
    assert said.startswith("parameters of the kernel WithRanks(")
    assert said.endswith(" were learned on the sample")
    for model, name in [(SVR(kernel=WIDTH), "epsilon"), (SVR("huber", kernel=WIDTH), "kappa")]:
        (said,) = bound(model.fit(X, y), X, y, target_bound=1.5).caveats
        assert said == f"{name} of the loss was measured on the sample"
    model = PathSearchCV(KernelRidge(kernel=WIDTH), {"alpha": [1e-2, 1e-3]}).fit(X, y)
    result = bound(model, X, y, target_bound=1.5)
    assert result.caveats == ()  # alpha only chooses a ball
    assert result.value == bound(model.best_estimator_, X, y, target_bound=1.5).value
    features = Explicit(PolynomialFeatures(2))
    model = KernelRidge(1e-2, features=features).fit(X, y)
    (said,) = bound(model, X, y, target_bound=1.5, radius=3.0).caveats
    assert "transformer" in said
    assert "not covered: the transformer" in str(bound(model, X, y, target_bound=1.5, radius=3.0))


@pytest.mark.slow
def test_parameters_chosen_by_cross_validation_are_said(sample):
    X, y = sample
    grid = {"alpha": [1e-2, 1e-3], "level_gamma": [0.1, 1.0]}
    model = PathSearchCV(QuantileRegressor([0.2, 0.8], kernel=WIDTH), grid).fit(X, y)
    (said,) = bound(model, X, y, target_bound=1.5).caveats
    assert "level_gamma" in said


@pytest.mark.parametrize(
    ("loss", "name"), [("huber", "kappa"), ("epsilon_insensitive", "epsilon")]
)
def test_measured_thresholds_of_non_negative_models_are_said(sample, loss, name):
    X, y = sample
    model = NonNegativeRegressor(loss, alpha=1e-2, kernel=WIDTH).fit(X, y)
    caveats = bound(model, X, y, target_bound=2.0).caveats
    assert caveats == (f"{name} of the loss was measured on the sample",)
    model.set_params(**{name: 0.1}).fit(X, y)
    assert bound(model, X, y, target_bound=2.0).caveats == ()


@pytest.mark.parametrize(
    "model", [KernelRidge(1e-2, kernel=WIDTH), Lasso(1e-2)], ids=["kernel", "linear"]
)
def test_data_frames_have_the_columns_of_the_fit(sample, model):
    X, y = sample
    frame, known = pd.DataFrame(X, columns=["a", "b"]), {"target_bound": 1.5, "radius": 2.0}
    model.fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bound(model, frame, y, **known)
        assert found.value == bound(model, X, y, **known).value
    with pytest.raises(ValueError, match=r"X must have the columns of the fit, \['a', 'b'\], got"):
        bound(model, frame[["b", "a"]], y, **known)


def test_shares_sum_to_one():
    steps = np.arange(-200_000, 200_001)
    total = sum(share_of(int(step)) for step in steps)
    assert 1.0 - 1e-5 < total < 1.0


LOSSES = [
    Squared(),
    Squared().insensitive(0.3),
    Absolute(),
    Absolute().insensitive(0.3),
    Huber(0.4),
    Pinball(0.2),
    Pinball(0.2).insensitive(0.1),
    SquaredPinball(0.8),
    L2Norm().insensitive(0.2),
    Squared().huber(0.4, norm=2),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("reach", [0.25, 2.0])
def test_slope_and_range_on_a_grid(loss, reach):
    grid = np.linspace(-reach, reach, 4001)
    values = loss.value(grid[:, None])
    steepest = np.abs(np.diff(values)).max() / (grid[1] - grid[0])
    at = local(loss, np.array([reach]))
    assert at.by_output
    assert at.most == pytest.approx(values.max(), abs=1e-15)
    assert at.slopes[0] == pytest.approx(steepest, rel=2e-3, abs=1e-12)
    assert at.slopes[0] >= steepest * (1 - 1e-9)


@pytest.mark.parametrize(
    "loss",
    [
        Pinball([0.1, 0.5]),
        Pinball([0.1, 0.5]).insensitive(0.3),
        SquaredPinball([0.1, 0.5]).insensitive(0.3),
        Squared().insensitive(0.3),
        L2Norm(),
    ],
    ids=repr,
)
def test_slope_and_range_of_two_outputs(loss):
    random = np.random.RandomState(0)
    reach = np.array([1.0, 2.0])
    at = local(loss, reach)
    points, others = (random.uniform(-reach, reach, (20_000, 2)) for _ in range(2))
    corners = reach * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    assert loss.value(np.concatenate([points, corners])).max() <= at.most * (1 + 1e-12)
    near = points + 1e-3 * (others - points)
    moved = np.abs(near - points)
    change = np.abs(loss.value(near) - loss.value(points))
    allowed = moved @ at.slopes if at.by_output else at.slopes[0] * np.linalg.norm(moved, axis=1)
    assert (change <= allowed + 1e-12).all()
    assert (change / allowed).max() > 0.5


def test_a_loss_of_ones_own():
    class Soft(Loss):  # log cosh
        def value(self, residual):
            return np.log(np.cosh(residual[:, 0]))

    at = local(Soft(), np.array([2.0]))
    assert np.tanh(2.0) <= at.slopes[0] <= np.tanh(2.0) * (1 + 1e-4)
    assert at.most == pytest.approx(np.log(np.cosh(2.0)))
    with pytest.raises(ValueError, match="no Lipschitz constant"):
        local(Soft(), np.array([2.0, 1.0]))


@pytest.fixture(scope="module")
def fitted(sample):
    X, y = sample
    return {
        "ridge": KernelRidge(1e-2, kernel=WIDTH).fit(X, y),
        "linear": KernelRidge(1e-2, kernel=Linear()).fit(X, y),
        "weighted": KernelRidge(1e-2, kernel=WIDTH).fit(X, y, np.linspace(0.5, 2.0, N)),
        "lasso": linear_model.Lasso(0.01).fit(X, y),
        "given": KernelRidge(1e-2, kernel="precomputed").fit(WIDTH(X), y),
        "operator": QuantileRegressor(
            [0.2, 0.8], kernel=Decomposable(WIDTH, np.eye(2)), alpha=1e-2
        ).fit(X, y),
        "tree": SimpleNamespace(predict=None),
    }


@pytest.mark.parametrize(
    ("name", "more", "match"),
    [
        ("ridge", {}, "target_bound must be given, or residual_bound"),
        ("ridge", {"residual_bound": 9.0, "clip": True}, "target_bound must be given: "),
        ("ridge", {"target_bound": 0.5}, "target_bound must contain all of y"),
        ("ridge", {"target_bound": (2.0, 1.0)}, "target_bound must be a number >= 0 or a pair"),
        ("ridge", {"target_bound": 2.0, "radius": 0.5}, "radius must be at least 1, which"),
        ("ridge", {"target_bound": 2.0, "delta": 0}, "delta must be a number"),
        ("ridge", {"target_bound": 2.0, "norm_bound": 0.01}, "norm_bound must be at least that"),
        ("ridge", {"target_bound": 2.0, "offset_bound": 0.0}, "offset_bound must be at least"),
        ("ridge", {"residual_bound": 0.1}, "residual_bound must be at least"),
        ("ridge", {"target_bound": ("a", "b")}, "target_bound must be a number >= 0 or a pair"),
        ("given", {"target_bound": 2.0, "offset_bound": -7.0}, "offset_bound must be a finite"),
        ("lasso", {"target_bound": 2.0, "norm_bound": -7.0}, "norm_bound must be a finite"),
        ("linear", {"target_bound": 2.0}, "radius must be given.*Linear"),
        ("given", {"target_bound": 2.0}, "radius must be given.*Precomputed"),
        ("lasso", {"target_bound": 2.0}, "radius must be given, with .x_j. <= radius"),
        ("weighted", {"target_bound": 2.0}, "all rows with the same weight"),
        ("operator", {"target_bound": 2.0}, "radius must be given for an operator"),
    ],
)
def test_refusals(sample, fitted, name, more, match):
    X, y = sample
    X = WIDTH(X) if name == "given" else X
    with pytest.raises(ValueError, match=match) as caught:
        bound(fitted[name], X, y, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_words_are_refused_as_by_the_fit(sample, fitted):
    X, y = sample
    with pytest.raises(ValueError, match=r"^X must be an array of numbers: .*TableEncoder"):
        bound(fitted["ridge"], X.astype(str).astype(object) + "x", y, target_bound=2.0)


def test_another_sample_is_refused(sample, fitted):
    X, y = sample
    for rows, targets in ((X[::-1], y), (X, y[::-1]), (X[:100], y[:100])):
        with pytest.raises(ValueError, match="must be the sample"):
            bound(fitted["ridge"], rows, targets, target_bound=2.0)
    with pytest.raises(ValueError, match="y must have one entry for each"):
        bound(fitted["ridge"], X, y[:100], target_bound=2.0)
    with pytest.raises(TypeError, match="estimator must be a fitted kernel regressor"):
        bound(fitted["tree"], X, y, target_bound=2.0)
    curves = FunctionalRegressor().fit(X, np.column_stack([y, y, y]))
    with pytest.raises(TypeError, match="coef_, got FunctionalRegressor"):
        bound(curves, X, np.column_stack([y, y, y]), target_bound=2.0)
    never_crossing = NonCrossingQuantileRegressor([0.1, 0.9], learn=False).fit(X, y)
    with pytest.raises(TypeError, match="coef_, got NonCrossing"):
        bound(never_crossing, X, y, target_bound=2.0)
    with pytest.raises(ValueError, match="linear model of one target on the columns of X"):
        bound(fitted["lasso"], X[:, :1], y, target_bound=2.0, radius=1.0)


def test_bound_shrinks_at_its_rate():
    """With the same class: 4^3 times the rows, an eighth of what is added to the risk."""
    random = np.random.RandomState(0)
    added = []
    for n in (100, 6400):
        X = random.uniform(-1.0, 1.0, (n, 1))
        y = np.cos(3.0 * X[:, 0])
        model = KernelRidge(1e-2, kernel=WIDTH).fit(X, y)
        result = bound(model, X, y, target_bound=1.0, norm_bound=8.0, offset_bound=2.0)
        added.append(result.value - result.terms["empirical risk"])
    assert added[0] / added[1] == pytest.approx(8.0, rel=1e-12)


@pytest.mark.slow
def test_fits_to_noise_do_not_pass_their_bounds():
    """Fair signs on 20 atoms by the kernel 1(x = x'): the risk of a function is 1 + E h²."""
    random = np.random.RandomState(0)
    n, atoms, delta = 16, 20, 0.5
    failed, fooled = 0, 0
    for _ in range(500):
        X = random.randint(0, atoms, (n, 1)).astype(float)
        y = 2.0 * random.randint(0, 2, n) - 1.0
        model = KernelRidge(1e-3, kernel=Laplacian(1e-3), fit_intercept=False).fit(X, y)
        result = bound(model, X, y, target_bound=1.0, delta=delta)
        risk = 1.0 + np.mean(model.predict(np.arange(float(atoms))[:, None]) ** 2)
        failed += risk > result.value
        fooled += risk > result.terms["empirical risk"] + 0.5
    assert failed <= delta * 500
    assert fooled > delta * 500


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_did_not_converge_has_a_bound(sample):
    """Its norm is that of the model returned, not that of its dual point."""
    X, y = sample
    model = QuantileRegressor(0.3, kernel=WIDTH, alpha=1e-3, solver="newton", max_iter=2)
    model.fit(X, y)
    assert not model.status_.converged
    result = bound(model, X, y, target_bound=1.5)
    loss = Pinball(0.3).value(y[:, None] - model.predict(X)[:, None]).mean()
    assert result.terms["empirical risk"] == pytest.approx(loss)
    squared = 2.0 * (model.certificate_.primal - loss) / 1e-3
    assert result.constants["fitted norm"] >= sqrt(squared) * (1 - 1e-12)


def test_a_constant_fit(sample):
    X, _ = sample
    result = bound(KernelRidge(kernel=WIDTH).fit(X, np.ones(N)), X, np.ones(N), target_bound=2.0)
    assert result.terms["empirical risk"] == 0.0
    assert 0.0 < result.constants["norm"] < 1e-5


def test_the_ball_contains_the_fit_at_the_edge_too():
    random = np.random.RandomState(0)
    for unit in random.uniform(0.1, 10.0, 300):
        for k in (-3, 0, 5):
            edge = unit * 2.0**k
            for needed, step in ((edge, k), (np.nextafter(edge, np.inf), k + 1)):
                size, share = ball_around("norm_bound", None, needed, unit)
                assert size == unit * 2.0**step
                assert share == share_of(step)


@pytest.mark.parametrize("loss", ["squared", "huber", "pinball"])
def test_non_negative_model_by_hand(sample, loss):
    X, y = sample
    model = NonNegativeRegressor(loss, alpha=1e-2, kappa=0.3, level=0.7, kernel=WIDTH).fit(X, y)
    result = bound(model, X, y, target_bound=2.0)
    values = np.linalg.eigvalsh(model.model_.matrix_)
    Lambda, share = ball(np.linalg.norm(values), 2.0)
    M = Lambda + 2.0
    xi = y - model.predict(X)
    risk, slope, most = {
        "squared": (np.mean(xi**2), 2.0 * M, M**2),
        "huber": (
            np.mean(np.where(abs(xi) < 0.3, xi**2 / 2, 0.3 * abs(xi) - 0.045)),
            0.3,
            0.3 * M - 0.045,
        ),
        "pinball": (np.mean(np.maximum(0.7 * xi, -0.3 * xi)), 0.7, 0.7 * M),
    }[loss]
    wanted = {
        "empirical risk": risk,
        "complexity": 2.0 * slope * Lambda / sqrt(N),
        "confidence": most * tail(DELTA),
        "choice of the class": most * (tail(DELTA * share) - tail(DELTA)),
    }
    assert result.terms == pytest.approx(wanted, rel=1e-6)
    assert "theorem 5" in result.source
    observed = bound(model, X, y, target_bound=2.0, empirical=True)
    # k(x, x) = 1: the trace of the sample is no smaller than the bound on all x
    assert observed.terms["complexity"] == pytest.approx(wanted["complexity"])
    with pytest.raises(ValueError, match="must be the sample"):
        bound(model, X, y[::-1], target_bound=2.0)


@pytest.mark.slow
def test_non_negative_models_that_are_refused(sample):
    X, y = sample
    counts = np.round(2.0 + y)
    model = NonNegativeRegressor("poisson").fit(X, counts)
    with pytest.raises(ValueError, match="loss='poisson'"):
        bound(model, X, counts, target_bound=4.0)
    with pytest.raises(TypeError, match="got DensityEstimator"):
        bound(DensityEstimator().fit(X), X, y, target_bound=2.0)

"""The judge is right about honest fits, finds planted lies, and knows its own formulas."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from fenchel import SVR, ExpectileRegressor, KernelRidge, QuantileRegressor
from fenchel.certificate import Status
from fenchel.kernels import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    WithRanks,
    resolve,
)
from judge import losses
from judge.certificates import ANOTHER, Named, judge
from judge.kernels import kernel_values

LEVELS = np.array([0.1, 0.5, 0.9])
NEAR = np.exp(-(np.subtract.outer(LEVELS, LEVELS) ** 2))


def data(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n), rng.normal(size=(7, 2))


def honest(kind, **parameters):
    """A fit, as the judge sees it; of given parameters unless told to learn."""
    X, y, _ = data()
    given = {"kernel": Gaussian(1.0), "alpha": 1e-3, "learn": False, "features": "kernel_rows"}
    model, loss, coupling = {
        "svr": lambda: (SVR(epsilon=0.1), losses.named("epsilon_insensitive", 0.1), np.eye(1)),
        "huber": lambda: (SVR("huber", kappa=1.0), losses.named("huber"), np.eye(1)),
        "levels": lambda: (QuantileRegressor(LEVELS), losses.pinball(LEVELS), NEAR),
        "ordered": lambda: (
            QuantileRegressor(LEVELS, non_crossing="train"),
            losses.Ordered(LEVELS, 1e-12),
            NEAR,
        ),
        "expectiles": lambda: (
            ExpectileRegressor(LEVELS),
            losses.squared_pinball(LEVELS),
            NEAR,
        ),
        "ridge": lambda: (KernelRidge(), losses.named("squared"), np.eye(1)),
    }[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(**{**given, **parameters}).fit(X, y)
    targets = np.broadcast_to(y[:, None], (len(y), len(coupling)))
    return Named(model, X, targets, np.ones(len(y)), loss, coupling)


ALL = ("svr", "huber", "levels", "ordered", "expectiles", "ridge")


@pytest.mark.parametrize("kind", ALL)
def test_nothing_is_found_in_an_honest_fit(kind):
    verdict = judge(honest(kind, tol=1e-8), data()[2])
    assert verdict.kinds <= {ANOTHER}, verdict.findings


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svr", "levels", "ridge"])
@pytest.mark.parametrize("kernel", [None, 0.5 * sk.Matern(1.0, nu=1.5)])
def test_what_was_learned_is_judged_as_if_it_were_given(kind, kernel):
    learned = {"kernel": kernel, "alpha": None, "learn": True, "features": "auto", "tol": 1e-8}
    named = honest(kind, **learned)
    assert named.model.learned_ is not None
    verdict = judge(named, data()[2])
    assert verdict.kinds <= {ANOTHER}, verdict.findings
    named.model.alpha_ *= 1.001
    assert judge(named).kinds - {ANOTHER}


def test_a_strength_that_is_not_the_given_one_is_found():
    named = honest("ridge")
    named.model.alpha = 2e-3
    assert judge(named).kinds == {"alpha"}


@pytest.mark.parametrize("kind", ALL)
def test_a_wrong_coefficient_is_found(kind):
    named = honest(kind)
    named.model.dual_coef_ = named.model.dual_coef_.copy()
    named.model.dual_coef_[3] *= 1.01
    assert "predict is not the formula" in judge(named, data()[2]).kinds


@pytest.mark.parametrize("kind", ALL)
def test_a_wrong_row_of_the_support_is_found(kind):
    named = honest(kind)
    support = named.model.support_.copy()
    support[:2] = support[1::-1]
    named.model.support_ = support
    assert "predict is not the formula" in judge(named).kinds


@pytest.mark.parametrize("kind", ALL)
def test_a_wrong_offset_is_found(kind):
    named = honest(kind, tol=1e-8)
    named.model.offset_ = named.model.offset_ + 0.01
    assert "offset" in judge(named).kinds
    named.model.certified_offset_ = named.model.offset_
    assert {"primal", "gap above the claim"} & judge(named).kinds


@pytest.mark.parametrize("kind", ALL)
def test_a_claimed_gap_that_is_too_small_is_found(kind):
    named = honest(kind, solver="newton" if kind != "ridge" else "fista", max_iter=1, tol=1e-12)
    model, numbers = named.model, named.model.certificate_
    assert numbers.gap > 1e-9
    for lie in (
        replace(numbers, dual=numbers.primal),
        replace(numbers, primal=numbers.dual),
        replace(numbers, dual=numbers.primal + numbers.gap),
    ):
        model.certificate_ = lie
        assert judge(named).kinds & {"gap above the claim", "negative gap"}


@pytest.mark.parametrize("kind", ALL)
def test_a_fit_that_only_says_that_it_converged_is_found(kind):
    named = honest(kind, solver="newton" if kind != "ridge" else "fista", max_iter=1, tol=1e-12)
    named.model.status_ = Status(True, "converged, or so it says")
    assert "silent gap" in judge(named).kinds
    assert "silent gap" not in judge(named, warned=True).kinds


@pytest.mark.parametrize("kind", ALL)
def test_a_unit_that_is_too_large_is_found(kind):
    named = honest(kind)
    numbers = named.model.certificate_
    named.model.certificate_ = replace(numbers, unit=numbers.unit * 1.001)
    assert "unit" in judge(named).kinds


@pytest.mark.parametrize("kind", ALL)
def test_a_dual_value_above_the_optimum_is_found(kind):
    named = honest(kind)
    numbers = named.model.certificate_
    above = numbers.primal + 1e-6 * numbers.unit
    named.model.certificate_ = replace(numbers, dual=above)
    assert judge(named).kinds & {"dual", "dual above the optimum"}


def test_numbers_that_are_not_finite_are_found():
    named = honest("svr")
    named.model.offset_ = np.array([np.nan])
    assert judge(named).kinds == {"not finite"}


KERNELS = [
    (Gaussian(0.7), sk.RBF(0.7)),
    (Gaussian([0.5, 2.0]), sk.RBF([0.5, 2.0])),
    (Laplacian(0.7), sk.Matern(0.7, nu=0.5)),
    (Matern(0.7, nu=1.5), sk.Matern(0.7, nu=1.5)),
    (Matern(0.7, nu=2.5), sk.Matern(0.7, nu=2.5)),
    (Linear(), sk.DotProduct(0.0)),
    (Polynomial(3, 1.0, 2.0), sk.DotProduct(np.sqrt(2.0)) ** 3),
    (Gaussian(0.7) + Linear(), sk.RBF(0.7) + sk.DotProduct(0.0)),
    (2.0 * Gaussian(0.7) * Laplacian(1.0), 2.0 * sk.RBF(0.7) * sk.Matern(1.0, nu=0.5)),
]


@pytest.mark.parametrize(("kernel", "theirs"), KERNELS, ids=[repr(k) for k, _ in KERNELS])
def test_kernels_are_those_of_scikit_learn(kernel, theirs):
    X, _, Z = data()
    own = kernel_values(kernel, X, Z)
    np.testing.assert_allclose(own.value.astype(float), theirs(X, Z), rtol=1e-13, atol=1e-15)
    assert (own.error / np.abs(own.value).max()).max() < 1e-14


def test_ranks_are_those_of_numpy():
    X, _, Z = data()
    X[:, 1] = np.round(X[:, 1])
    inner = Matern([0.7, 2.0, 0.3, 0.4], nu=1.5)
    kernel = resolve(WithRanks(inner), X)
    assert list(kernel.columns) == [0, 1]

    def seen(rows):
        return np.column_stack([rows, *(np.interp(rows[:, j], *kernel.knots[j]) for j in (0, 1))])

    own = kernel_values(kernel, X, Z)
    theirs = sk.Matern(inner.length_scale, nu=1.5)(seen(X), seen(Z))
    np.testing.assert_allclose(own.value.astype(float), theirs, rtol=1e-12)
    assert own.error.max() < 2e-14


LOSSES = {
    "pinball": losses.pinball(LEVELS),
    "insensitive pinball": losses.pinball(LEVELS, 0.5),
    "squared pinball": losses.squared_pinball(LEVELS),
    "insensitive squared pinball": losses.squared_pinball(LEVELS, 0.5),
    "ordered": losses.Ordered(LEVELS, 0.0),
    "log cosh": losses.LogCosh(0.7),
    "huber by output": losses.huber_by_output(0.7),
    "absolute": losses.absolute(),
    **{
        name: losses.named(name, epsilon=0.5, kappa=0.7, level=0.2)
        for name in ("squared", "epsilon_insensitive", "squared_epsilon_insensitive", "huber")
    },
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_conjugates_belong_together(name):
    loss, rng = LOSSES[name], np.random.default_rng(0)
    residual = np.sort(3.0 * rng.normal(size=(500, 3)))[:, ::-1].astype(np.longdouble)
    beta = loss.nearest(2.0 * rng.normal(size=(500, 3)).astype(np.longdouble))
    np.testing.assert_allclose((loss.nearest(beta) - beta).astype(float), 0.0, atol=1e-17)
    value = loss.value(residual)
    young = value + loss.conjugate(beta) - (residual * beta).sum(axis=1)
    assert young.min() > -1e-16
    tight = loss.slope(residual)
    young = value + loss.conjugate(tight) - (residual * tight).sum(axis=1)
    assert abs(young).max() < 1e-15
    assert abs(loss.nearest(tight) - tight).max() < 1e-17


@pytest.mark.parametrize("name", ["insensitive pinball", "insensitive squared pinball"])
def test_an_insensitive_loss_is_the_least_loss_in_a_ball(name):
    loss = LOSSES[name]
    plain = replace(loss, epsilon=0.0)
    rng = np.random.default_rng(0)
    for residual in rng.normal(size=(5, 3)):
        moves = rng.normal(size=(20000, 3))
        moves *= 0.5 / np.linalg.norm(moves, axis=1, keepdims=True)
        least = float(plain.value((residual - moves).astype(np.longdouble)).min())
        value = float(loss.value(residual[None].astype(np.longdouble))[0])
        assert value <= least < value + 0.05


def test_the_mean_loss_of_the_best_constant_is_found():
    from judge.certificates import mean_loss_of_constant

    named = honest("expectiles")
    y = named.targets
    by_search = sum(
        minimize(
            lambda b, tau=tau, j=j: np.mean(
                0.5 * np.abs(tau - (y[:, j] < b)) * (y[:, j] - b) ** 2
            ),
            0.0,
            tol=1e-12,
        ).fun
        for j, tau in enumerate(LEVELS)
    )
    assert mean_loss_of_constant(named) == pytest.approx(by_search, rel=1e-8)

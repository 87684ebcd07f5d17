"""One list of names and one protocol: a loss means the same in every estimator that takes one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fenchel import SVR
from fenchel.functional import FunctionalRegressor
from fenchel.kernels import Gaussian
from fenchel.losses import LOSSES, Huber, Squared, curve_loss, make_loss
from fenchel.model_selection import PathSearchCV
from fenchel.positive import NonNegativeRegressor
from fenchel.testing import check_loss
from own_losses import Elastic, LogCosh, slope

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-1.0, 1.0, (24, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.3 * RANDOM.standard_normal(24)
Y[0] += 5.0
THETA = np.linspace(0.0, 1.0, 5)
CURVES = np.sin(3.0 * (X[:14, :1] + THETA)) + 0.2 * RANDOM.standard_normal((14, 5))
CURVES[0, 2] += 4.0
ONE = Gaussian(1e6)

OWN = [LogCosh(), Elastic()]


def lowest(objective, gradient, start):
    """Minimum by BFGS; kinks are few and stop it only near the end."""
    found = minimize(objective, start, jac=gradient, method="BFGS", options={"gtol": 1e-10})
    return found.x, float(found.fun)


def no_better_nearby(objective, best, size=1e-3, tries=300):
    """Whether random moves of several sizes find nothing lower than the given point."""
    random = np.random.default_rng(1)
    value = objective(best)
    moves = size * random.standard_normal((tries, best.size))
    moves *= 10.0 ** random.uniform(-2.0, 1.0, (tries, 1))
    return min(objective(best + move.reshape(best.shape)) for move in moves) >= value * (1 - 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("loss", OWN, ids=repr)
def test_it_passes_the_checks(loss):
    check_loss(loss)


@pytest.mark.parametrize("loss", OWN, ids=repr)
def test_kernel_regression(loss):
    alpha, n = 0.1, len(Y)
    model = SVR(loss, kernel="linear", alpha=alpha, tol=1e-10).fit(X, Y)
    design = np.column_stack([X, np.ones(n)])

    def objective(v):
        return 0.5 * alpha * v[:2] @ v[:2] + loss.value((Y - design @ v)[:, None]).mean()

    def gradient(v):
        return np.append(alpha * v[:2], 0.0) - design.T @ slope(loss, Y - design @ v) / n

    found = np.linalg.lstsq(design, model.predict(X), rcond=None)[0]
    if isinstance(loss, LogCosh):
        peer, _ = lowest(objective, gradient, np.zeros(3))
        np.testing.assert_allclose(found, peer, atol=1e-5)
    assert no_better_nearby(objective, found)
    squared = SVR(Squared(), kernel="linear", alpha=alpha).fit(X, Y)
    assert np.abs(squared.predict(X) - model.predict(X)).max() > 0.05


@pytest.mark.parametrize("loss", OWN, ids=repr)
def test_curves(loss):
    """Functions Σ k(x, x_i) k_Θ(θ, θ_j) w_ij with any w, against the integral of the loss."""
    alpha, measure = 1e-2, np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    inner, outer = Gaussian(0.8), Gaussian(0.4)
    rows, (n, m) = X[:14], CURVES.shape
    model = FunctionalRegressor(
        loss,
        center=None,
        alpha=alpha,
        kernel=inner,
        output_kernel=outer,
        quadrature=measure,
        tol=1e-10,
        max_iter=5000,
    ).fit(rows, CURVES, THETA)
    assert model.certificate_.relative_gap <= 1e-10
    left, right = inner(rows), outer(THETA[:, None])
    values, vectors = np.linalg.eigh(left)
    across, down = np.linalg.eigh(right)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # h = root v rootᵀ has the norm of v
    other = down * np.sqrt(np.maximum(across, 0.0))

    def objective(v):
        v = v.reshape(n, m)
        residual = CURVES - root @ v @ other.T
        losses = loss.value(residual.reshape(-1, 1)).reshape(n, m) @ measure
        return 0.5 * alpha * np.sum(v * v) + losses.mean()

    def gradient(v):
        v = v.reshape(n, m)
        pull = measure * slope(loss, CURVES - root @ v @ other.T) / n
        return (alpha * v - root.T @ pull @ other).ravel()

    found = np.linalg.lstsq(root, model.predict(rows) @ np.linalg.pinv(other.T), rcond=None)[0]
    if isinstance(loss, LogCosh):
        peer, value = lowest(objective, gradient, np.zeros(n * m))
        expected = root @ peer.reshape(n, m) @ other.T
        np.testing.assert_allclose(model.predict(rows), expected, atol=1e-4)
        assert objective(found) == pytest.approx(value, rel=1e-6)
    assert no_better_nearby(objective, found)
    squared = FunctionalRegressor(alpha=alpha, kernel=inner, output_kernel=outer)
    squared.fit(rows, CURVES, THETA)
    assert np.abs(squared.predict(rows) - model.predict(rows)).max() > 0.05


@pytest.mark.parametrize("loss", OWN, ids=repr)
def test_non_negative_models(loss):
    """Quadratic forms xᵀ A x, A = F Fᵀ, for targets in units of their mean size s."""
    alpha, trace, n = 1e-2, 1e-2, len(Y)
    model = NonNegativeRegressor(
        loss, alpha=alpha, trace_penalty=trace, kernel="linear", tol=1e-9
    ).fit(X, Y)
    assert model.certificate_.relative_gap <= 1e-9
    s = np.abs(Y).mean()
    divisor = s**2 if isinstance(loss, LogCosh) else s  # smooth losses grow like squares

    def prediction(v):
        return np.square(X @ v.reshape(2, 2)).sum(axis=1)

    def objective(v):
        factor = v.reshape(2, 2)
        matrix = factor @ factor.T
        losses = loss.value((Y - s * prediction(v))[:, None]) / divisor
        return losses.mean() + trace * np.trace(matrix) + 0.5 * alpha * np.sum(matrix**2)

    matrix = np.linalg.lstsq(
        np.einsum("ij,ik->ijk", X, X).reshape(n, 4), model.predict(X) / s, rcond=None
    )[0].reshape(2, 2)
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    found = (vectors * np.sqrt(np.maximum(values, 0.0))).ravel()
    assert objective(found) == pytest.approx(model.certificate_.primal, rel=1e-6)
    if isinstance(loss, LogCosh):
        starts = np.random.default_rng(2).standard_normal((4, 4))
        tries = [minimize(objective, start, options={"gtol": 1e-9}).x for start in starts]
        peer = min(tries, key=objective)
        np.testing.assert_allclose(model.predict(X), s * prediction(peer), atol=1e-4)
    assert no_better_nearby(objective, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_a_name_is_one_loss(name):
    """At a single point curves are numbers, and the same ones in kernel regression."""
    numbers = {"kappa": 0.4, "epsilon": 0.3, "level": 0.8}
    settings = {"alpha": 1e-2, "tol": 1e-9}
    kernel = Gaussian(0.7)
    named = SVR(name, kernel=kernel, fit_intercept=False, **numbers, **settings).fit(X, Y)
    given = SVR(make_loss(name, **numbers), kernel=kernel, fit_intercept=False, **settings)
    np.testing.assert_array_equal(given.fit(X, Y).predict(X), named.predict(X))
    curves = FunctionalRegressor(
        name,
        **numbers,
        kernel=kernel,
        output_kernel=ONE,
        center=None,
        alpha=1e-2,
        tol=1e-7,
        max_iter=10_000,
    ).fit(X, Y[:, None], [0.0])
    np.testing.assert_allclose(curves.predict(X)[:, 0], named.predict(X), atol=2e-3)
    positive = NonNegativeRegressor(name, **numbers).fit(X, np.abs(Y))
    own = NonNegativeRegressor(make_loss(name, **numbers)).fit(X, np.abs(Y))
    np.testing.assert_allclose(own.predict(X), positive.predict(X), rtol=0, atol=1e-12)
    assert repr(positive.loss_) == repr(named.loss_) == repr(make_loss(name, **numbers))


@pytest.mark.parametrize("name", ["hinge", "square", "poisson", 3, None])
@pytest.mark.parametrize(
    "fit",
    [
        lambda loss: SVR(loss).fit(X, Y),
        lambda loss: FunctionalRegressor(loss).fit(X[:14], CURVES),
        lambda loss: PathSearchCV(FunctionalRegressor(loss)).fit(X[:14], CURVES),
        lambda loss: curve_loss(loss, np.ones(3)),
        make_loss,
    ],
)
def test_one_sentence_for_what_is_not_allowed(fit, name):
    listed = ", ".join(repr(each) for each in LOSSES)
    with pytest.raises(ValueError, match="loss must be one of") as caught:
        fit(name)
    assert str(caught.value) == f"loss must be one of {listed} or a Loss, got {name!r}"


@pytest.mark.parametrize(
    "model", [NonNegativeRegressor("hinge"), PathSearchCV(NonNegativeRegressor("hinge"))]
)
def test_non_negative_models_know_one_name_more(model):
    with pytest.raises(ValueError, match="loss must be one of") as caught:
        model.fit(X, Y)
    assert "'poisson'" in str(caught.value)
    assert str(caught.value).endswith(" or a Loss, got 'hinge'")


def test_a_loss_of_several_outputs_is_refused_where_there_is_one():
    for model in (SVR, NonNegativeRegressor):
        with pytest.raises(ValueError, match="loss is made for 3 outputs, but y has 1"):
            model(_OfThree()).fit(X, Y)
    with pytest.raises(ValueError, match="loss must be of one output to be applied to every"):
        FunctionalRegressor(_OfThree()).fit(X[:14], CURVES)
    with pytest.raises(ValueError, match="norm must be 2 with loss='epsilon_insensitive'"):
        FunctionalRegressor("epsilon_insensitive", norm=1).fit(X[:14], CURVES)


class _OfThree(Squared):
    def __init__(self):
        super().__init__()
        self.n_outputs = 3

    radial = False


def test_given_losses_of_curves_take_the_measure_of_the_fit():
    """Point by point Huber's loss is the one of the L¹ norm; of the length it is one of L²."""
    settings = {"alpha": 1e-3, "tol": 1e-9, "learn": False}
    rows = X[:14]
    for name, norm, given in (
        ("huber", 1, Huber(0.3)),
        ("huber", 1, curve_loss("huber", np.ones(3), 1, kappa=0.3)),
        ("huber", 2, Squared().huber(0.3, norm=2)),
        ("squared_epsilon_insensitive", 2, Squared().insensitive(0.2)),
    ):
        named = FunctionalRegressor(name, norm, 0.3, 0.2, **settings).fit(rows, CURVES)
        own = FunctionalRegressor(given, **settings).fit(rows, CURVES)
        np.testing.assert_allclose(own.predict(rows), named.predict(rows), atol=1e-4)

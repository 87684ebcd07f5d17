"""Against scikit-learn and by definition, with losses of one's own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import kernel_ridge, svm
from sklearn.base import clone

from fenchel import SVR, KernelRidge, QuantileRegressor
from fenchel.kernels import Gaussian, Laplacian
from fenchel.losses import Absolute, Huber, L2Norm, Loss, Pinball, Squared
from regression_cases import (
    BRIEFLY,
    TOL,
    WEIGHT,
    Y2,
    X,
    Y,
    by_default,
    data,
    uncertainty,
    with_targets,
)

# Ridge and support vectors against scikit-learn


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [Y, Y2], ids=["one output", "two outputs"])
def test_ridge_against_scikit_learn(targets, weighted):
    weight = WEIGHT if weighted else None
    total = WEIGHT.sum() if weighted else 80
    # length_scale ½: gamma of scikit-learn's rbf is 1 / (2 length_scale²)
    model = KernelRidge(alpha=1e-3, kernel=Gaussian(0.5), fit_intercept=False)
    model.fit(X, targets, weight)
    theirs = kernel_ridge.KernelRidge(alpha=1e-3 * total, kernel="rbf", gamma=2.0)
    theirs.fit(X, targets, weight)
    new_X = data(seed=6)[0]
    assert model.predict(new_X).shape == theirs.predict(new_X).shape
    np.testing.assert_allclose(model.predict(new_X), theirs.predict(new_X), atol=1e-6)
    if not weighted:
        coefficients = theirs.dual_coef_.reshape(80, -1)
        scale = np.abs(coefficients).max()
        np.testing.assert_allclose(model.dual_coef_, coefficients, atol=1e-5 * scale)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_solves_its_equation(weighted, fit_intercept):
    """(K + alpha N diag(1/s)) dual_coef = y - offset."""
    weight = WEIGHT if weighted else np.ones(80)
    model = KernelRidge(alpha=1e-3, kernel=Laplacian(0.5), fit_intercept=fit_intercept)
    model.fit(X, Y2, weight if weighted else None)
    system = model.kernel_(X) + 1e-3 * weight.sum() * np.diag(1.0 / weight)
    np.testing.assert_array_equal(model.support_, np.arange(80))
    np.testing.assert_allclose(system @ model.dual_coef_, Y2 - model.offset_, atol=1e-9)
    if fit_intercept:
        np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-9)
    assert model.certificate_.relative_gap <= 1e-10


def svr_objective(prediction, norm, epsilon, C):
    return 0.5 * norm + C * np.maximum(np.abs(Y - prediction) - epsilon, 0.0).sum()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_svr_against_scikit_learn(alpha, epsilon):
    C = 1.0 / (alpha * 80)
    theirs = svm.SVR(kernel="rbf", gamma=2.0, C=C, epsilon=epsilon, tol=1e-6).fit(X, Y)
    model = SVR(alpha=alpha, epsilon=epsilon, kernel=Gaussian(0.5), tol=TOL).fit(X, Y)
    objectives = []
    for fit, coefficients in ((theirs, theirs.dual_coef_.T), (model, model.dual_coef_)):
        gram = Gaussian(0.5)(X[fit.support_])
        norm = float((coefficients.T @ gram @ coefficients)[0, 0])
        objectives.append(svr_objective(fit.predict(X), norm, epsilon, C))
    assert objectives[1] <= objectives[0] * (1.0 + TOL) + 1e-12
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-4)
    assert model.certificate_.primal == pytest.approx(alpha * objectives[1], rel=1e-7)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-2)


@pytest.mark.parametrize(
    ("model", "definition"),
    [
        (SVR(epsilon=0.2), lambda r: np.maximum(r - 0.2, 0.0)),
        (
            SVR("squared_epsilon_insensitive", epsilon=0.2),
            lambda r: 0.5 * np.maximum(r - 0.2, 0.0) ** 2,
        ),
        (SVR("huber", kappa=0.2), lambda r: np.where(r < 0.2, 0.5 * r**2, 0.2 * r - 0.02)),
    ],
    ids=["epsilon_insensitive", "squared", "huber"],
)
@pytest.mark.parametrize("targets", [Y, Y2], ids=["one output", "two outputs"])
def test_svr_losses_by_definition(model, definition, targets):
    """The certified objective is the one in the docstring: lengths of residual vectors."""
    model = clone(model).set_params(alpha=1e-2, learn=False).fit(X, targets)
    prediction = model.predict(X)
    assert prediction.shape == targets.shape
    length = np.linalg.norm((targets - prediction).reshape(80, -1), axis=1)
    gram = model.kernel_(X[model.support_])
    norm = np.sum(model.dual_coef_ * (gram @ model.dual_coef_))
    objective = 0.5e-2 * norm + definition(length).mean()
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-6)


@pytest.mark.slow
@with_targets
def test_several_outputs(estimator):
    model = estimator(learn=BRIEFLY).fit(X, Y2)
    assert model.predict(X).shape == (80, 2)
    assert model.offset_.shape == (2,)
    assert model.score(X, Y2) > 0.5
    column = estimator().fit(X, Y[:, None])
    assert column.predict(X).shape == (80, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], by_default(estimator).predict(X))


def test_ridge_of_several_outputs_is_one_for_each():
    model = KernelRidge(alpha=1e-3, learn=False).fit(X, Y2)
    for j in range(2):
        alone = KernelRidge(alpha=1e-3, learn=False).fit(X, Y2[:, j])
        np.testing.assert_allclose(model.predict(X)[:, j], alone.predict(X), rtol=1e-9)


def test_svr_of_several_outputs_does_not_depend_on_their_axes():
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    model = SVR(epsilon=0.3, alpha=1e-3, learn=False, tol=TOL).fit(X, Y2)
    rotated = SVR(epsilon=0.3, alpha=1e-3, learn=False, tol=TOL).fit(X, Y2 @ rotation)
    bound = 20 * uncertainty(model)
    np.testing.assert_allclose(rotated.predict(X), model.predict(X) @ rotation, atol=bound)


# Losses of one's own


class Quartic(Loss):
    """A quarter of the fourth power of one residual, conjugate ¾ |β|^(4/3)."""

    n_outputs = 1
    statistic = "minimizer of the mean fourth power"

    def value(self, residual):
        return 0.25 * residual[:, 0] ** 4

    def conjugate(self, dual):
        return 0.75 * np.abs(dual[:, 0]) ** (4.0 / 3.0)

    def _root(self, point, step):
        """u >= 0 with u³ + step u = |point|: the prox is u³."""
        size = np.abs(point)
        root = np.minimum(np.cbrt(size), size / step)
        for _ in range(60):
            root = root - (root**3 + step * root - size) / (3.0 * root**2 + step)
        return root

    def conjugate_prox(self, point, step):
        return np.sign(point) * self._root(point, step) ** 3

    def conjugate_prox_jacobian(self, point, step):
        square = 3.0 * self._root(point, step) ** 2
        return square / (square + step)


def test_loss_of_ones_own():
    model = SVR(loss=Quartic(), alpha=1e-2, kernel=Gaussian(0.5), tol=TOL).fit(X, Y)
    assert model.certificate_.relative_gap <= TOL
    # stationarity, from the definition: coefficients are c times the cubed residuals
    residual = Y - model.predict(X)
    coefficients = np.zeros(80)
    coefficients[model.support_] = model.dual_coef_[:, 0]
    cubes = residual**3 / (1e-2 * 80)
    np.testing.assert_allclose(coefficients, cubes, atol=1e-3 * np.abs(cubes).max())
    assert abs(cubes.sum()) <= 1e-3 * np.abs(cubes).sum()
    objective = 0.5e-2 * coefficients @ model.kernel_(X) @ coefficients
    objective += 0.25 * np.mean(residual**4)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_loss_of_ones_own_made_insensitive(epsilon):
    model = SVR(loss=Quartic().insensitive(epsilon), alpha=1e-2, kernel=Gaussian(0.5)).fit(X, Y)
    assert model.certificate_.relative_gap <= model.tol
    length = np.abs(Y - model.predict(X))
    inside = np.flatnonzero(length < 0.9 * epsilon)
    assert len(inside) > 0 or epsilon == 0.0
    assert not np.intersect1d(inside, model.support_).size


@pytest.mark.slow
def test_losses_of_the_library():
    quantiles = QuantileRegressor(0.3, alpha=1e-2, tol=TOL, refit_offsets=None).fit(X, Y)
    model = SVR(loss=Pinball(0.3), alpha=1e-2, tol=TOL).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), quantiles.predict(X))
    same = SVR(loss=Absolute().insensitive(0.2), epsilon=77.0, learn=BRIEFLY).fit(X, Y)
    named = SVR(epsilon=0.2, learn=BRIEFLY).fit(X, Y)
    np.testing.assert_array_equal(same.predict(X), named.predict(X))
    huber = SVR(loss=Huber(0.2), learn=BRIEFLY).fit(X, Y)
    named = SVR("huber", kappa=0.2, learn=BRIEFLY).fit(X, Y)
    np.testing.assert_array_equal(huber.predict(X), named.predict(X))
    ridge = SVR(loss=Squared()).fit(X, Y2)
    np.testing.assert_allclose(ridge.predict(X), KernelRidge().fit(X, Y2).predict(X), rtol=1e-9)
    assert SVR(loss=L2Norm(), learn=BRIEFLY).fit(X, Y2).predict(X).shape == (80, 2)

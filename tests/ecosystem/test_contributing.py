"""What CONTRIBUTING.md says, followed to the letter by a stranger."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

import fenchel
from fenchel import (
    SVR,
    ExpectileRegressor,
    FunctionalRegressor,
    KernelRidge,
    NonNegativeRegressor,
    QuantileRegressor,
)
from fenchel.design import Design, Plain
from fenchel.features import FeatureMap
from fenchel.kernels import ScalarKernel
from fenchel.losses import BoxQuadratic, Squared
from fenchel.solvers import SOLVERS, Iterate, Loop, solution_of
from fenchel.testing import (
    check_design,
    check_feature_map,
    check_kernel,
    check_loss,
    check_solver,
    small_problems,
)
from own_losses import Elastic

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (24, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(24)


# --- a loss ------------------------------------------------------------------------------------


class Shortfall(BoxQuadratic):
    """Absolute loss, five times dearer for predictions too low: no methods, only parameters."""

    statistic = "quantile of level 5/6"

    def __init__(self):
        super().__init__(-0.2, 1.0, 0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Elastic(), Elastic(2.0), Shortfall()], ids=repr)
def test_a_loss_passes_the_checks(loss):
    check_loss(loss)


def test_a_loss_without_methods_is_what_its_parameters_say():
    residual = np.array([[-2.0], [0.0], [3.0]])
    np.testing.assert_array_equal(Shortfall().value(residual), [0.4, 0.0, 3.0])


def test_a_loss_goes_into_an_estimator():
    """The linear model, against a general-purpose solver of the same program."""
    alpha, loss, n = 0.1, Elastic(), len(Y)
    model = SVR(loss, kernel="linear", alpha=alpha, tol=1e-10).fit(X, Y)

    def residual(v):
        return Y - X @ v[:2] - v[2]

    def objective(v):  # weights, offset, and bounds on the sizes of the residuals
        r = residual(v)
        return 0.5 * alpha * v[:2] @ v[:2] + np.mean(0.5 * r**2 + loss.kappa * v[3:])

    def gradient(v):
        r = residual(v)
        slope = np.append(alpha * v[:2] - X.T @ r / n, -r.mean())
        return np.append(slope, np.full(n, loss.kappa / n))

    slopes = np.column_stack([X, np.ones(n)])
    rows = [
        {
            "type": "ineq",
            "fun": lambda v, s=sign: v[3:] - s * residual(v),
            "jac": lambda v, s=sign: np.hstack([s * slopes, np.eye(n)]),
        }
        for sign in (1.0, -1.0)
    ]
    start = np.append(np.zeros(3), np.abs(Y))
    options = {"ftol": 1e-14, "maxiter": 500}
    peer = minimize(objective, start, jac=gradient, constraints=rows, options=options)
    assert peer.success
    expected = X @ peer.x[:2] + peer.x[2]
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)
    assert model.certificate_.primal == pytest.approx(peer.fun, rel=1e-7)
    plain = SVR(Squared(), kernel="linear", alpha=alpha).fit(X, Y)
    assert np.abs(plain.predict(X) - expected).max() > 1e-2


# --- a kernel ----------------------------------------------------------------------------------


class Cauchy(ScalarKernel):
    """k(x, x') = 1 / (1 + ||x - x'||² / length_scale²)."""

    def __init__(self, length_scale="median"):
        self.length_scale = length_scale

    def _evaluate(self, X, Y):
        difference = (X[:, None, :] - Y[None, :, :]) / self.length_scale
        return 1.0 / (1.0 + (difference**2).sum(axis=2))


class Affine(ScalarKernel):
    """k(x, x') = offset + <x, x'>, which is not one on the diagonal."""

    def __init__(self, offset=1.0):
        self.offset = offset

    def _evaluate(self, X, Y):
        return self.offset + X @ Y.T

    def diag(self, X):
        return self.offset + (np.asarray(X) ** 2).sum(axis=1)

    def is_stationary(self):
        return False


class Forgetful(Affine):
    """The same without its diagonal."""

    diag = ScalarKernel.diag


@pytest.mark.parametrize("kernel", [Cauchy(), Cauchy(0.7), Affine(), Cauchy() + 0.5 * Affine()])
def test_a_kernel_passes_the_checks(kernel):
    check_kernel(kernel)


def test_a_kernel_that_forgets_that_it_is_not_stationary_is_found():
    """Bounds and units take k(x, x) of one row for that of all."""

    class Moving(Affine):
        is_stationary = ScalarKernel.is_stationary

    with pytest.raises(AssertionError, match=r"is_stationary\(\) must be False"):
        check_kernel(Moving())


def test_a_forgotten_diagonal_is_found():
    with pytest.raises(AssertionError, match="diag"):
        check_kernel(Forgetful())


def test_a_kernel_goes_into_an_estimator():
    """Its length scale is the median distance, and the fit that of the linear system."""
    n, alpha = len(Y), 1e-2
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(n, 1)]
    median = np.quantile(distances, 0.5, method="inverted_cdf")
    model = KernelRidge(alpha, kernel=Cauchy(), fit_intercept=False).fit(X, Y)
    assert model.kernel_.length_scale == pytest.approx(median, rel=1e-12)
    gram = Cauchy(median)(X)
    expected = gram @ np.linalg.solve(gram + alpha * n * np.eye(n), Y)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5, atol=1e-6)


# --- a solver ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ista:
    """Proximal gradient steps on the dual, without momentum and for no intercept."""

    tol: float = 1e-6
    max_iter: int = 200_000

    def requires(self, problem):
        if problem.design.features is None:
            return problem.design.refusal
        if problem.fit_intercept:
            return "needs fit_intercept=False; solver='newton' takes an intercept"
        return None

    def solve(self, problem, warm_start=None, callback=None):
        loop = Loop(self.tol, callback)
        loop.run(self._iterates(problem, warm_start))
        status = loop.status("increase max_iter, or use solver='newton'")
        return solution_of(loop, status)

    def _iterates(self, problem, warm_start):
        scaled = np.sqrt(problem.weight)[:, None] * problem.design.features
        curvature = (
            np.linalg.norm(scaled, 2) ** 2 * np.linalg.norm(problem.design.coupling, 2) ** 2
        )
        step = 1.0 / curvature
        shape = (problem.n_rows, problem.n_outputs)
        dual = np.zeros(shape) if warm_start is None else problem.feasible(warm_start.dual)
        for done in range(0, self.max_iter + 1, 100):
            yield Iterate(done, problem.certify(dual))
            for _ in range(100):
                gradient = problem.targets - problem.design.values(problem.link(dual))
                dual = problem.loss.conjugate_prox(dual + step * gradient, step)


@pytest.mark.slow
def test_a_solver_passes_the_checks():
    check_solver(Ista())


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber", Elastic()])
def test_a_solver_goes_into_an_estimator(loss, monkeypatch):
    """By its name and as an object, next to the library's own."""
    monkeypatch.setitem(SOLVERS, "ista", Ista)
    settings = {"epsilon": 0.1, "kappa": 0.1, "alpha": 0.1, "fit_intercept": False, "tol": 1e-8}
    settings["learn"] = False
    named = SVR(loss, solver="ista", **settings).fit(X, Y)
    given = SVR(loss, solver=Ista(tol=1e-8), **settings).fit(X, Y)
    newton = SVR(loss, solver="newton", **settings).fit(X, Y)
    assert named.certificate_.relative_gap <= 1e-8
    np.testing.assert_array_equal(named.predict(X), given.predict(X))
    np.testing.assert_allclose(named.predict(X), newton.predict(X), atol=1e-3)
    objective = newton.certificate_.primal
    assert named.certificate_.primal == pytest.approx(objective, rel=1e-7)


def test_a_refusal_reaches_the_user(monkeypatch):
    monkeypatch.setitem(SOLVERS, "ista", Ista)
    with pytest.raises(ValueError, match=r"solver='ista' cannot .* needs fit_intercept=False"):
        SVR(solver="ista").fit(X, Y)


# --- a feature map and a design ----------------------------------------------------------------


class SparseProducts:
    """Functions of some rows, by their weights."""

    def __init__(self, features, mixed):
        self.features, self.mixed = features, mixed

    def values(self, weights):
        return np.einsum("kq,kq->k", self.features @ weights, self.mixed)

    def gram(self):
        return (self.features @ self.features.T).toarray() * (self.mixed @ self.mixed.T)

    def fill(self, matrix):
        matrix[...] = np.eye(len(self.mixed)) + self.gram()

    def weights(self, sizes):
        return self.features.T @ (sizes[:, None] * self.mixed)


class SparseRows(Design):
    """Features that are mostly zero, kept as such."""

    def __init__(self, features, coupling):
        self.rows, self.mixing = sparse.csr_array(features), coupling
        self.n_rows, self.n_outputs = features.shape[0], len(coupling)
        self.width = features.shape[1]

    def zero(self):
        return np.zeros((self.width, self.mixing.shape[1]))

    def directions(self, weights):
        return weights @ self.mixing.T

    def predict(self, rows, directions, out=None):
        values = self.rows[rows] @ directions
        if out is None:
            return values
        out[...] = values
        return out

    def pull(self, rows, push):
        return self.rows[rows].T @ push

    def weights_of(self, pulled):
        return pulled @ self.mixing

    def functions(self, rows, vectors):
        return SparseProducts(self.rows[rows], vectors @ self.mixing)

    def subset(self, rows):
        return SparseRows(self.rows[rows], self.mixing)

    def diagonal(self):
        squares = (self.rows * self.rows).sum(axis=1)
        return squares * np.sum(self.mixing**2) / self.n_outputs


class SameCell(ScalarKernel):
    """1 for two rows in the same cell of a grid, and 0 elsewhere."""

    def __init__(self):
        pass

    def is_stationary(self):
        return False

    def _evaluate(self, X, Y):
        cells = (np.floor(rows / 0.5) for rows in (X, Y))
        return np.equal(*np.meshgrid(*(c @ [1e6, 1.0] for c in cells), indexing="ij")).astype(
            float
        )


class Bins(FeatureMap):
    """One feature for each cell of a grid: a kernel that is 1 in the same cell and 0 elsewhere."""

    def __init__(self, kernel=None, size=0.5, random_state=None):
        self.kernel = kernel
        self.size = size
        self.random_state = random_state

    def _fit(self, X):
        self.cells_ = np.unique(np.floor(X / self.size), axis=0)
        self.rank_, self.kernel_error_ = len(self.cells_), 0.0
        return self._map(X)

    def _map(self, X):
        same = np.floor(X / self.size)[:, None, :] == self.cells_
        return same.all(axis=2).astype(float)

    def design(self, features, coupling):
        return SparseRows(features, coupling)


class DenseBins(Bins):
    """The same with the library's own design."""

    def design(self, features, coupling):
        return Plain(features, coupling)


@pytest.mark.parametrize("p", [1, 3])
def test_a_design_passes_the_checks(p):
    check_design(SparseRows(Bins().fit_transform(X), np.eye(p) + 0.3))


def test_a_feature_map_passes_the_checks():
    check_feature_map(Bins(SameCell()), X)


@pytest.mark.parametrize(
    "estimator",
    [
        SVR(alpha=1e-2, learn=False),
        KernelRidge(alpha=1e-2, learn=False),
        QuantileRegressor([0.2, 0.8], alpha=1e-2, learn=False),
        ExpectileRegressor([0.2, 0.8], alpha=1e-2, learn=False),
        QuantileRegressor([0.2, 0.8], alpha=1e-2, learn=False, non_crossing="train"),
        FunctionalRegressor("huber", kappa=0.3, alpha=1e-2, learn=False),
        FunctionalRegressor("huber", kappa=0.3, alpha=1e-2, learn=False, solver="newton"),
    ],
    ids=lambda e: repr(e)[:40],
)
def test_a_design_goes_into_every_estimator(estimator):
    curves = isinstance(estimator, FunctionalRegressor)
    targets = np.cos(Y[:, None] + np.linspace(0.0, 1.0, 6)) if curves else Y
    own, library = (clone(estimator).set_params(features=kind()) for kind in (Bins, DenseBins))
    own.set_params(tol=1e-10).fit(X, targets)
    library.set_params(tol=1e-10).fit(X, targets)
    assert own.certificate_.relative_gap <= 1e-10
    assert own.certificate_.primal == pytest.approx(library.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(own.predict(X), library.predict(X), atol=1e-4)


def test_solvers_that_cannot_do_with_a_design_say_so():
    with pytest.raises(ValueError, match=r"solver='pdcd' cannot .* needs plain features"):
        SVR(features=Bins(), solver="pdcd").fit(X, Y)
    with pytest.raises(ValueError, match=r"solver='smo' cannot .* needs a scalar kernel"):
        SVR(features=Bins(), solver="smo").fit(X, Y)


def test_a_feature_map_goes_into_non_negative_models():
    model = NonNegativeRegressor(features=Bins(), alpha=1e-2).fit(X, Y**2)
    assert model.certificate_.relative_gap <= 1e-6
    assert model.predict(X).min() >= 0.0


# --- the text itself ---------------------------------------------------------------------------

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# What is made rather than kept, and what only some machines have.
MADE = {"build/docs", ".venv", ".venv/bin/pytest", "experiments/results/NAME"}


def test_every_file_that_is_named_is_there():
    named = set(re.findall(r"`([\w./]*/[\w./]+)`", TEXT)) - MADE
    assert len(named) > 10
    missing = [name for name in named if not (ROOT / name).exists() and "NAME" not in name]
    assert missing == []


def shown_code(word):
    """The block of code with this word."""
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (shown,) = (block for block in blocks if word in block)
    return shown


def test_the_solver_shown_solves():
    """With the steps of another one, and more of them than its limit."""
    names = {"dataclass": dataclass}
    exec(shown_code("class Ascent"), names)
    names["Ascent"]._iterates = Ista._iterates
    check_solver(names["Ascent"](max_iter=200_000), small_problems()[:6])


def test_the_loss_shown_is_that_of_the_library():
    shown = shown_code("class Huber")
    source = Path(fenchel.losses.atoms.__file__).read_text(encoding="utf-8")
    (wanted,) = ast.parse(shown).body
    (found,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == wanted.name
    )
    whole = {ast.unparse(part) for part in found.body}
    assert all(ast.unparse(part) in whole for part in wanted.body)

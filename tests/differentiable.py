"""Random problems whose parameters can be moved, and their solutions to the last digit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fenchel.design import Gram, Plain
from fenchel.kernels import Gaussian, Matern
from fenchel.losses import (
    Absolute,
    CurveHuber,
    CurveInsensitive,
    Huber,
    L2Norm,
    NonCrossing,
    Pinball,
    Squared,
    SquaredPinball,
)
from fenchel.problem import Problem
from fenchel.solvers import Newton
from fenchel.solvers.smoothed import unit_step
from own_losses import Elastic, LogCosh

LEVELS = np.array([0.2, 0.5, 0.9])
LOSSES = {  # of a parameter, where that is, and the number of outputs
    "pinball": (Pinball, 0.3, 1),
    "levels": (lambda shift: Pinball(LEVELS + shift), 0.0, 3),
    "expectile": (SquaredPinball, 0.8, 1),
    "expectiles": (lambda shift: SquaredPinball(LEVELS + shift), 0.0, 3),
    "tube": (Absolute().insensitive, 0.2, 1),
    "squared tube": (Squared().insensitive, 0.2, 1),
    "huber": (Huber, 0.5, 1),
    "squared": (lambda unused: Squared(), 0.0, 2),
    "tube of levels": (Pinball(LEVELS).insensitive, 0.2, 3),
    "length": (lambda unused: L2Norm(), 0.0, 2),
    "tube of lengths": (L2Norm().insensitive, 0.3, 2),
    "curves": (lambda kappa: CurveHuber(kappa, 2, [0.2, 0.3, 0.4]), 0.5, 3),
    "curves within a tube": (
        lambda epsilon: CurveInsensitive(epsilon, 1, [0.2, 0.3, 0.4]),
        0.3,
        3,
    ),
    "levels that do not cross": (lambda shift: NonCrossing(Pinball(LEVELS + shift)), 0.0, 3),
    "own, smooth": (LogCosh, 0.5, 2),
    "own, a kink": (Elastic, 0.5, 1),
}
AFFINE = list(LOSSES)[:8]  # on pieces


@dataclass(frozen=True)
class Case:
    """A problem by what it is made of, where ``at`` moves it."""

    name: str
    X: np.ndarray
    X_new: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    alpha: float
    coupling: np.ndarray
    kernel: object
    fit_intercept: bool
    kind: str
    gradient: np.ndarray
    parameter: float

    @property
    def loss(self):
        return LOSSES[self.name][0](self.parameter)

    @property
    def landmarks(self):
        return self.X[:12] if self.kind == "landmarks" else None

    def moved(self, size, direction):
        """The case with ``size`` times a change of everything."""
        return replace(
            self,
            alpha=self.alpha * np.exp(size * direction["alpha"]),
            kernel=self.kernel.clone_with_theta(self.kernel.theta + size * direction["kernel"]),
            coupling=self.coupling + size * direction["coupling"],
            weight=self.weight + size * direction["sample_weight"],
            y=self.y + size * direction["targets"],
            parameter=self.parameter + size * direction["loss"],
        )

    def problem(self):
        """The problem, and what the design knows of the new rows."""
        root = np.linalg.cholesky(self.coupling)
        basis = self.landmarks if self.kind == "landmarks" else self.X
        gram = self.kernel(basis)
        if self.kind == "gram":
            design, new = Gram(gram, root), self.kernel(self.X_new, self.X)
        else:
            factor = np.linalg.cholesky(gram)
            design = Plain(np.linalg.solve(factor, self.kernel(basis, self.X)).T, root)
            new = np.linalg.solve(factor, self.kernel(basis, self.X_new)).T
        problem = Problem(self.loss, design, self.y, self.weight, self.alpha, self.fit_intercept)
        return problem, new

    def value(self):
        """The linear function of predictions."""
        problem, new = self.problem()
        fit = solved(problem)
        weights = problem.design.feature_weights(problem.link(fit.dual))
        return float(np.vdot(self.gradient, new @ weights + fit.offset))


def random_case(name, seed, **change):
    """A random problem of some kind."""
    rng = np.random.default_rng(seed)
    _, parameter, p = LOSSES[name]
    n = int(rng.integers(15, 40))
    X, X_new = rng.normal(size=(n, 2)), rng.normal(size=(5, 2))
    bounds = 1e-2, 1e2
    kernels = [
        Gaussian(rng.uniform(0.5, 1.2, 2), length_scale_bounds=bounds),
        Matern(
            rng.uniform(0.7, 2.0, 2), nu=rng.choice([0.5, 1.5, 2.5]), length_scale_bounds=bounds
        ),
        2.0 * Matern(1.0, length_scale_bounds=bounds) + 0.3 * Gaussian(0.7),
    ]
    columns = 1 if "level" in name or "expectile" in name else p
    y = np.sin(2.0 * X[:, :1]) + 0.5 * X[:, 1:] + 0.5 * rng.normal(size=(n, columns))
    case = Case(
        name=name,
        X=X,
        X_new=X_new,
        y=y,
        weight=rng.uniform(0.3, 2.0, n),
        alpha=10.0 ** rng.uniform(-3.0, -1.0),
        coupling=0.5 * np.eye(p) + 0.5 * np.ones((p, p)),
        kernel=kernels[rng.integers(3)],
        fit_intercept=bool(rng.random() < 0.5),
        kind=str(rng.choice(["gram", "features", "landmarks"])),
        gradient=rng.normal(size=(5, p)),
        parameter=parameter,
    )
    return replace(case, **change)


def random_direction(case, rng):
    """A change of everything, of about the size one."""
    p = len(case.coupling)
    change = 0.2 * rng.normal(size=(p, p))
    return {
        "alpha": rng.normal(),
        "kernel": rng.normal(size=len(case.kernel.theta)),
        "coupling": change + change.T,
        "sample_weight": 0.1 * rng.normal(size=len(case.X)),
        "targets": 0.1 * rng.normal(size=case.y.shape),
        "loss": 0.1 * rng.normal(),
    }


def solved(problem):
    """The solution to the last digit: semismooth Newton, dense, on β = P(β + t r)."""
    fit = Newton(1e-10).solve(problem)
    loss, design, n, p = problem.loss, problem.design, problem.n_rows, problem.n_outputs
    gram = design.features @ design.features.T if design.gram is None else design.gram
    coupling = design.coupling @ design.coupling.T
    columns = np.kron(gram, coupling) * np.repeat(problem.weight, p)
    ones = np.tile(np.eye(p), (n, 1))
    total = (ones * np.repeat(problem.weight, p)[:, None]).T
    step = unit_step(problem)
    y = np.broadcast_to(problem.targets, (n, p)).ravel()
    dual, offset, best, kept = fit.dual.ravel(), fit.offset, np.inf, None
    for _ in range(15):
        point = (dual + step * (y - columns @ dual - ones @ offset)).reshape(n, p)
        wrong = dual - loss.conjugate_prox(point, step).ravel()
        balance = total @ dual * problem.fit_intercept
        size = max(np.abs(wrong).max(), np.abs(balance).max())
        if not size < best:
            break
        best, kept = size, (dual, offset)
        slope = np.zeros((n, p, n, p))
        jacobian = loss.conjugate_prox_jacobian(point, step)
        full = jacobian[:, :, None] * np.eye(p) if jacobian.ndim == 2 else jacobian
        slope[np.arange(n), :, np.arange(n)] = full
        slope = slope.reshape(n * p, n * p)
        matrix = np.eye(n * p) - slope @ (np.eye(n * p) - step * columns)
        right = -wrong
        if problem.fit_intercept:
            matrix = np.block([[matrix, step * slope @ ones], [total, np.zeros((p, p))]])
            right = np.append(right, -balance)
        move = np.linalg.lstsq(matrix, right, rcond=1e-14)[0]
        dual = dual + move[: n * p]
        if problem.fit_intercept:
            offset = offset + move[n * p :]
    return replace(fit, dual=kept[0].reshape(n, p), offset=kept[1])

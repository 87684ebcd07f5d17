"""Quick forms of the experiments with ε-insensitive losses, and the methods compared with."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from experiments.comparisons.sparse import (
    ParkKim,
    largest_penalty,
    sparse_quantile,
    sparse_ridge,
)
from experiments.epsilon_common import LEVELS, mapped, quantile_problem
from experiments.epsilon_table2 import GAMMA
from experiments.harness import VARIANTS, standardized
from scipy import sparse
from scipy.optimize import linprog

from experiments import epsilon_interior_point, harness
from experiments_cases import quick_form
from fenchel.design import Plain
from fenchel.kernels import Gaussian
from fenchel.losses import Pinball
from fenchel.problem import Problem
from fenchel.solvers import Newton
from fenchel.testing import check_loss


@pytest.mark.slow
def test_table2(tmp_path):
    results, page = quick_form("epsilon_table2", tmp_path, "--splits", "1")
    published = harness.published("epsilon_insensitive_table2").set_index(["data_set", "epsilon"])
    for epsilon in (0.0, 1.0):
        line = published.loc[("topo", epsilon)]
        shown = f"{line.pinball_x100:.1f} ± {line.sd:.1f} ({line.support_vectors_percent:.0f})"
        assert shown in page
    assert results.relative_gap.max() <= 1e-6
    assert results.support_percent.between(0.0, 100.0).all()
    assert (results.support_percent <= results.nonzero_percent).all()
    at = results.set_index(["data_set", "epsilon"]).groupby(level=[0, 1]).mean(numeric_only=True)
    for name in ("topo", "CobarOre", "CobarOre, target y"):
        assert at.loc[(name, 0.0)].support_percent > 99.0
        assert at.loc[(name, 3.0)].support_percent < 30.0
    # a target among the features is learned, and leaves the published few support vectors
    assert at.loc[("CobarOre, target y", 0.0)].pinball_x100 < 2.0
    assert at.loc[("CobarOre, target y", 0.2)].support_percent < 50.0
    # better than the constant quantiles where there is something to learn
    assert at.loc[("topo", 0.0)].pinball_x100 < 0.7 * at.loc[("topo", 0.0)].constant_x100


@pytest.mark.slow
def test_figure3(tmp_path):
    results, page = quick_form("epsilon_figure3", tmp_path)
    assert "active set" in page
    assert ("not installed" in page) != epsilon_interior_point.available()
    last = results.groupby(["epsilon", "method"]).gap.min()
    assert (last.xs("newton", level="method") <= 1e-9).all()
    for _, curve in results.groupby(["epsilon", "method"]):
        assert (np.diff(curve.sort_values("iteration").gap) <= 0.0).all()
    hard = results[(results.epsilon == 5.0) & (results.gap <= 1e-4)]
    passes = hard.groupby("method").iteration.min()
    assert passes["pdcd_active"] < 0.5 * passes["pdcd_plain"]


@pytest.mark.slow
def test_figures12(tmp_path):
    table, _ = quick_form("epsilon_figures12", tmp_path)
    flat = table.residual.abs() < 0.2
    assert (table.insensitive[flat] == 0.0).all()
    assert (table.insensitive[~flat] >= 0.0).all()
    assert (table.pinball >= table.insensitive).all()
    tube = table.residual[table.park_kim == 0.0]
    assert tube.min() >= -0.2 / 0.75
    assert tube.max() <= 0.2 / 0.25


@pytest.mark.slow
def test_comparisons(tmp_path):
    results, page = quick_form("epsilon_comparisons", tmp_path)
    assert "Park & Kim" in page
    assert results.support_percent.between(0.0, 100.0).all()
    for _, group in results.groupby(["pair", "split", "method"]):
        ordered = group.sort_values("epsilon")
        assert ordered.support_percent.iloc[-1] < ordered.support_percent.iloc[0]


def test_sparse_quantiles_against_their_conditions():
    """The objective is that of the dual program: max <β, y>, |Kβ| <= λ, with β in its box."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(31, 1))
    y = np.sin(6.0 * X[:, 0]) + 0.3 * rng.normal(size=31)
    gram, level = Gaussian(0.3)(X), 0.3
    most = largest_penalty(gram, y, level)
    alone = sparse_quantile(gram, y, level, 1.001 * most)
    assert not alone.coefficients.any()
    assert alone.offset == pytest.approx(np.sort(y)[9])  # 9.3 of 31 rows
    assert sparse_quantile(gram, y, level, 0.999 * most).coefficients.any()
    found = sparse_quantile(gram, y, level, 0.02 * most)
    assert 0 < np.count_nonzero(found.coefficients) < 15
    penalty, two = 0.02 * most, np.vstack([gram, -gram])
    box = ((level - 1.0) / 31, level / 31)  # β over n, of the dual program
    dual = linprog(
        -y, A_ub=two, b_ub=np.full(62, penalty), A_eq=np.ones((1, 31)), b_eq=[0.0], bounds=box
    )
    left = y - gram @ found.coefficients - found.offset
    value = np.maximum(level * left, (level - 1.0) * left).mean()
    value += penalty * np.abs(found.coefficients).sum()
    assert value == pytest.approx(-dual.fun, rel=1e-6)
    assert abs(found.relative_gap) <= 1e-8


def test_dual_vectors_are_those_of_the_paper():
    X, y = harness.standardized("topo")
    rows = mapped(X, y, np.arange(40), np.arange(40, 52))
    strength = 3.0
    problem = quantile_problem(rows.features, rows.y, GAMMA, 0.3, strength)
    solution = Newton(1e-9).solve(problem)
    alpha = solution.dual
    assert np.all((alpha >= LEVELS - 1.0 - 1e-12) & (alpha <= LEVELS + 1e-12))
    output = np.exp(-GAMMA * np.subtract.outer(LEVELS, LEVELS) ** 2)
    kernel = rows.features @ rows.features.T
    h = strength * kernel @ alpha @ output  # 1/(λn) Σ K(·, x_i) α_i
    np.testing.assert_allclose(
        h, rows.features @ problem.design.directions(solution.weights), atol=1e-9
    )
    quadratic = 0.5 * strength * np.vdot(alpha, kernel @ alpha @ output)
    p5 = quadratic - np.sum(alpha * rows.y[:, None]) + 0.3 * np.linalg.norm(alpha, axis=1).sum()
    assert -p5 * strength * problem.alpha == pytest.approx(solution.certificate.dual, rel=1e-9)


def test_variants_keep_the_rows():
    for name, variant in VARIANTS.items():
        if variant.data_set == "UN3":
            continue  # not bundled
        X, y = standardized(name)
        assert X.shape == (len(y), len(variant.features))
    X, y = standardized("CobarOre, target y")
    np.testing.assert_allclose(X[:, 1], y)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.25, 0.9])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_park_kim_is_a_loss(level, epsilon):
    check_loss(ParkKim(level, epsilon))


def test_park_kim_at_the_median_is_the_insensitive_loss_with_twice_the_width():
    residual = np.linspace(-2.0, 2.0, 41)[:, None]
    ours = Pinball(0.5).insensitive(0.6).value(residual)
    np.testing.assert_allclose(ParkKim(0.5, 0.3).value(residual), ours, atol=1e-15)


def test_newton_solves_park_kim():
    X, y = harness.standardized("mcycle")
    rows = mapped(X, y, np.arange(90), np.arange(90, 133))
    design = Plain(rows.features, np.eye(1))
    problem = Problem(ParkKim(0.25, 0.2), design, rows.y[:, None], np.ones(90), 1e-3)
    solution = Newton(1e-8).solve(problem)
    assert solution.certificate.relative_gap <= 1e-8
    prediction = rows.features @ problem.design.directions(solution.weights) + solution.offset
    residual = rows.y[:, None] - prediction
    inside = (residual > -0.2 / 0.75 + 1e-4) & (residual < 0.2 / 0.25 - 1e-4)
    assert inside.any()
    assert np.all(solution.dual[inside] == 0.0)


def tiny(n, p):
    random = np.random.default_rng(0)
    X = random.standard_normal((n, 2))
    gram = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    return gram, np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])[:, :p]


def test_sparse_ridge_satisfies_the_rule_of_fermat():
    gram, y = tiny(25, 2)
    found = sparse_ridge(gram, y, 5.0, 0.5, tol=1e-12)
    c = found.coefficients
    pull = gram @ (y - 5.0 * gram @ c - c)
    length = np.linalg.norm(c, axis=1)
    kept = length > 0.0
    assert 0 < kept.sum() < 25
    assert np.linalg.norm(pull[~kept], axis=1).max() <= 0.5 * (1.0 + 1e-4)
    np.testing.assert_allclose(pull[kept], 0.5 * c[kept] / length[kept, None], atol=1e-4)


def test_sparse_ridge_against_clarabel():
    gram, y = tiny(10, 2)
    n, p, strength, epsilon = 10, 2, 5.0, 0.3
    found = sparse_ridge(gram, y, strength, epsilon, tol=1e-12)
    # variables c (n p), then t with t_i >= ||c_i||
    quadratic = np.kron(gram + strength * gram @ gram, np.eye(p))
    P = sparse.csc_matrix(np.triu(np.pad(quadratic, (0, n))))
    q = np.concatenate([-(gram @ y).ravel(), np.full(n, epsilon)])
    A = np.zeros((n, p + 1, n * p + n))
    for i in range(n):
        A[i, 0, n * p + i] = A[i, 1, p * i] = A[i, 2, p * i + 1] = -1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.SecondOrderConeT(p + 1)] * n
    left = sparse.csc_matrix(A.reshape(-1, n * p + n))
    solved = clarabel.DefaultSolver(P, q, left, np.zeros(n * (p + 1)), cones, settings).solve()
    c = found.coefficients
    objective = 0.5 * np.vdot(c, (gram + strength * gram @ gram) @ c) - np.vdot(gram @ y, c)
    objective += epsilon * np.linalg.norm(c, axis=1).sum()
    assert objective == pytest.approx(solved.obj_val, abs=1e-7)
    assert found.gap + 1e-12 >= 0.0
    assert objective - found.gap <= solved.obj_val + 1e-7


@pytest.mark.skipif(not epsilon_interior_point.available(), reason="CVXOPT is not installed")
def test_cvxopt_agrees_with_newton():
    X, y = harness.standardized("CobarOre")
    rows = mapped(X, y, np.arange(25), np.arange(25, 38))
    problem = quantile_problem(rows.features, rows.y, GAMMA, 0.5, 1.0)
    best = Newton(1e-10).solve(problem).certificate
    dual = epsilon_interior_point.Dual(problem)
    found = dual.conic(50)
    assert problem.dual(problem.feasible(found.dual)) == pytest.approx(best.dual, rel=1e-6)
    iterates = dual.alternating()
    for _ in range(60):
        found = next(iterates)
    assert problem.dual(problem.feasible(found.dual)) == pytest.approx(best.dual, rel=1e-3)

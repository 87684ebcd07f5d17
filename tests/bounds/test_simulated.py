"""Bounds on simulated samples: how often they fail, and that their terms are needed.

Targets are fair signs, independent of x, so that the risk of every function with values in
[-1, 1] is known: 1 for the absolute loss, 1 + E h² for the squared one. Each learner chooses the
function of the class that looks best, far better than it is. A bound may fail in a share of at
most DELTA of the draws; what is left of it without its complexity term must fail more often, or
the simulation would show nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.bounds import (
    finite_class_bound,
    insensitive_excess_bound,
    joint_quantile_bound,
    kernel_ball,
    kernel_ridge_bound,
    lasso_bound,
    lipschitz_bound,
    positive_excess_bound,
    pseudo_dimension_bound,
    quadratic_svr_bound,
    quantile_deviation_bound,
    rademacher_complexity,
    svr_bound,
)
from fenchel.losses import Pinball

DRAWS, N, ATOMS = 500, 20, 400
DELTA = 0.5  # generous, so that a failure could be seen


def judge(result, deviation, without=("complexity",)):
    """Shares of draws in which a bound, and what is left of it, is passed."""
    assert result.terms.get("empirical risk", 0.0) == 0.0
    deviation = np.asarray(deviation)
    assert deviation.shape == (DRAWS,)
    assert (deviation > result.value).mean() <= DELTA
    left = result.value - sum(result.terms[name] for name in without)
    assert (deviation > left).mean() > DELTA


def signs(random, *shape):
    return 2.0 * random.randint(0, 2, shape) - 1.0


@pytest.fixture(scope="module")
def memory():
    """A kernel without similarity, on 400 atoms: h(x) = Σ_i y_i 1(x = x_i) / Λ', of norm Λ.

    Columns: size of h on the atoms seen (draws,), values on the sample (draws, n), targets.
    """
    random = np.random.RandomState(0)
    atoms = random.randint(0, ATOMS, (DRAWS, N))
    y = signs(random, DRAWS, N)
    tables = np.zeros((DRAWS, ATOMS))
    np.add.at(tables, (np.arange(DRAWS)[:, None], atoms), y)
    tables = np.sign(tables)
    norms = np.sqrt((tables**2).sum(axis=1))
    return atoms, y, tables, norms


NORM = np.sqrt(N)  # Λ: the tables have at most N entries ±1, and k(x, x') = 1(x = x')


def test_kernel_ridge(memory):
    atoms, y, tables, norms = memory
    assert norms.max() <= NORM
    values = np.take_along_axis(tables, atoms, axis=1)
    risk = 1.0 + (tables**2).mean(axis=1)
    deviation = risk - ((values - y) ** 2).mean(axis=1)
    known = {"norm": NORM, "radius": 1.0, "residual_bound": 2.0, "delta": DELTA}
    judge(kernel_ridge_bound(0.0, N, **known), deviation)
    traced = kernel_ridge_bound(0.0, N, trace=float(N), **known)
    assert (deviation > traced.value).mean() <= DELTA


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_svr_and_its_quadratic_form(memory, epsilon):
    atoms, y, tables, _ = memory
    values = np.take_along_axis(tables, atoms, axis=1)
    known = {"norm": NORM, "radius": 1.0, "residual_bound": 2.0, "delta": DELTA}
    seen = (tables != 0.0).mean(axis=1)  # residuals are 0 or ±2 there with equal chances, else ±1
    for make, power in ((svr_bound, 1), (quadratic_svr_bound, 2)):
        loss = np.maximum(np.abs(values - y) - epsilon, 0.0) ** power
        risk = seen * 0.5 * (2.0 - epsilon) ** power + (1.0 - seen) * (1.0 - epsilon) ** power
        judge(make(0.0, N, epsilon=epsilon, **known), risk - loss.mean(axis=1))


def test_lipschitz_with_both_complexities(memory):
    """The complexity of this ball, by Monte Carlo over signs on the first sample and exactly."""
    atoms, y, tables, _ = memory
    values = np.take_along_axis(tables, atoms, axis=1)
    deviation = 1.0 - np.abs(values - y).mean(axis=1)
    known = {"lipschitz": 1.0, "loss_bound": 2.0, "delta": DELTA}
    judge(lipschitz_bound(0.0, N, rademacher=NORM / np.sqrt(N), **known), deviation)
    passed = []
    for k in range(100):
        gram = (atoms[k][:, None] == atoms[k]).astype(float)
        observed = rademacher_complexity(kernel_ball(gram, NORM), N, 100, k).value
        result = lipschitz_bound(0.0, N, rademacher=observed, empirical=True, **known)
        passed.append(deviation[k] > result.value)
    assert np.mean(passed) <= DELTA


def test_finite_class():
    """Eight functions with fair losses: the union over them is needed."""
    random = np.random.RandomState(1)
    losses = random.randint(0, 2, (DRAWS, N, 8))
    deviation = (0.5 - losses.mean(axis=1)).max(axis=1)
    known = {"loss_bound": 1.0, "delta": DELTA}
    result = finite_class_bound(0.0, N, n_hypotheses=8, **known)
    assert (deviation > result.value).mean() <= DELTA
    assert (deviation > finite_class_bound(0.0, N, n_hypotheses=1, **known).value).mean() > DELTA
    both = finite_class_bound(0.0, N, n_hypotheses=8, two_sided=True, **known)
    sides = np.abs(0.5 - losses.mean(axis=1)).max(axis=1)
    assert (sides > both.value).mean() <= DELTA


@pytest.mark.parametrize("of", ["losses", "functions"])
def test_pseudo_dimension(of):
    """Least squares on noise, with 30 features for 60 rows, clipped to [-1, 1].

    For signs y and the absolute loss on [-1, 1], |y - h| = 1 - y h is above a threshold where
    y h is below another: the losses have the pseudo-dimension of the functions.
    """
    random = np.random.RandomState(2)
    n, d = 60, 30
    X, y = random.standard_normal((DRAWS, n, d)), signs(random, DRAWS, n)
    gram = np.einsum("kia,kib->kab", X, X)
    weights = np.linalg.solve(gram, np.einsum("kia,ki->ka", X, y)[..., None])[..., 0]
    values = np.clip(np.einsum("kia,ka->ki", X, weights), -1.0, 1.0)
    deviation = 1.0 - np.abs(values - y).mean(axis=1)
    judge(
        pseudo_dimension_bound(0.0, n, dimension=d, loss_bound=2.0, delta=DELTA, of=of), deviation
    )


def test_lasso():
    """The best single column of 200 for targets that no column explains."""
    random = np.random.RandomState(3)
    d, size = 200, 0.5
    X, y = signs(random, DRAWS, N, d), signs(random, DRAWS, N)
    products = np.einsum("kia,ki->ka", X, y) / N
    best = np.abs(products).max(axis=1)
    # w = size e_j s: E (wx - y)² = size² + 1, on the sample size² + 1 - 2 size best
    result = lasso_bound(
        0.0, N, norm=size, radius=1.0, n_features=d, residual_bound=1.0 + size, delta=DELTA
    )
    judge(result, 2.0 * size * best)


@pytest.mark.parametrize("contraction", ["outputs", "vector"])
def test_joint_quantiles(contraction):
    """Levels ¼ and ¾ of noise, in a ball large enough to tell every row, Λ = √(2n)."""
    random = np.random.RandomState(4)
    n, levels = 200, np.array([0.25, 0.75])
    atoms, y = random.randint(0, 10 * n, (DRAWS, n)), signs(random, DRAWS, n)
    tables = np.zeros((DRAWS, 10 * n))
    np.put_along_axis(tables, atoms, y, axis=1)  # of an atom seen twice, the last
    fitted = np.take_along_axis(tables, atoms, axis=1)
    assert (tables**2).sum(axis=1).max() <= n
    loss = Pinball(levels)

    def mean_loss(residual):
        rows = np.repeat(residual.reshape(-1, 1), 2, axis=1)
        return loss.value(rows).reshape(residual.shape).mean(axis=1)

    share = (tables != 0.0).mean(axis=1)
    at = loss.value(np.array([[0.0, 0.0], [2.0, 2.0], [-2.0, -2.0], [1.0, 1.0], [-1.0, -1.0]]))
    risk = share * 0.5 * (at[0] + 0.5 * (at[1] + at[2])) + (1 - share) * 0.5 * (at[3] + at[4])
    deviation = risk - mean_loss(y - fitted)
    known = {"levels": levels, "norm": np.sqrt(2.0 * n), "diagonal": 1.0, "target_bound": 1.0}
    result = joint_quantile_bound(0.0, n, delta=DELTA, contraction=contraction, **known)
    assert (deviation > result.value).mean() <= DELTA
    # with the range of the loss on [-1, 1] alone, for which M = 2 Σ w suffices
    hoeffding = finite_class_bound(0.0, n, n_hypotheses=1, loss_bound=3.0, delta=DELTA)
    assert (deviation > hoeffding.value).mean() > DELTA


def test_quantile_deviation():
    """A curve above all targets of the sample, and below all targets elsewhere."""
    random = np.random.RandomState(5)
    n, margin, offset = 200, 0.5, -1.1  # the offset is fixed in advance
    atoms, y = random.randint(0, 10 * n, (DRAWS, n)), signs(random, DRAWS, n)
    tables = np.zeros((DRAWS, 10 * n))
    np.put_along_axis(tables, atoms, y + margin - offset, axis=1)
    norm = np.sqrt(n) * (1.0 + margin - offset)
    assert (tables**2).sum(axis=1).max() <= norm**2
    residuals = y - np.take_along_axis(tables, atoms, axis=1) - offset
    curve = tables + offset
    truth = (0.5 * (curve >= -1.0) + 0.5 * (curve >= 1.0)).mean(axis=1)
    failed, bare = [], []
    for residual, probability in zip(residuals, truth, strict=True):
        low, up = quantile_deviation_bound(
            residual, margin=margin, norm=norm, radius=1.0, delta=DELTA
        )
        failed.append(not low.value <= probability <= up.value)
        bare.append(probability < low.value - low.terms["complexity"])
    assert np.mean(failed) <= DELTA
    assert np.mean(bare) > DELTA


def test_insensitive_excess():
    """Constants in [-1, 1] fitted to noisy signs by a loss that sees no residual below ε."""
    random = np.random.RandomState(6)
    n, epsilon, chance = 40, 0.3, 0.7
    y = np.where(random.uniform(size=(DRAWS, n)) < chance, 0.5, -0.5)
    grid = np.linspace(-1.0, 1.0, 201)
    share = (y > 0.0).mean(axis=1)

    def loss(residual):
        return np.maximum(np.abs(residual) - epsilon, 0.0)

    empirical = np.outer(share, loss(0.5 - grid)) + np.outer(1.0 - share, loss(-0.5 - grid))
    ties = empirical <= empirical.min(axis=1, keepdims=True) + 1e-12
    risk = chance * np.abs(0.5 - grid) + (1.0 - chance) * np.abs(-0.5 - grid)
    worst = np.where(ties, risk, -np.inf).max(axis=1)  # the worst of all minimizers
    excess = worst - risk.min()
    average = np.abs(signs(random, 20_000, n).sum(axis=1)).mean() / n
    result = insensitive_excess_bound(
        n, rademacher=average, lipschitz=1.0, residual_bound=1.5, epsilon=epsilon, delta=DELTA
    )
    assert (excess > result.value).mean() <= DELTA
    assert excess.max() > 0.0


def test_the_term_in_epsilon_is_reached():
    """Targets 0: every constant in [-ε, ε] has no ε-insensitive loss, and ε loses ε."""
    n, epsilon = 10**6, 0.3
    average = np.sqrt(2.0 / (np.pi * n))
    result = insensitive_excess_bound(
        n, rademacher=average, lipschitz=1.0, residual_bound=1.0, epsilon=epsilon
    )
    excess = epsilon
    assert result.value - result.terms["insensitivity"] < excess < result.value


@pytest.mark.parametrize("n", [10, 40, 160])
def test_positive_excess(n):
    """As many atoms as rows, φ(x) the unit vector of its atom: f is any a >= 0 with ‖a‖ <= L.

    The loss is -y f with signs y of mean ½; its minimizers are known, on the sample and outside.
    The excess has the rate of the bound.
    """
    random = np.random.RandomState(7)
    L = 3.0
    atoms = random.randint(0, n, (DRAWS, n))
    y = np.where(random.uniform(size=(DRAWS, n)) < 0.75, 1.0, -1.0)
    pull = np.zeros((DRAWS, n))
    np.add.at(pull, (np.arange(DRAWS)[:, None], atoms), y)
    pull = np.maximum(pull, 0.0)
    fitted = L * pull / np.maximum(np.linalg.norm(pull, axis=1, keepdims=True), 1e-9)
    best = np.full(n, L / np.sqrt(n))
    excess = 0.5 * (best.mean() - fitted.mean(axis=1))
    assert excess.min() >= 0.0
    result = positive_excess_bound(n, norm=L, radius=1.0, lipschitz=1.0)
    assert 0.03 * result.value < excess.mean() < result.value

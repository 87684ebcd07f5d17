"""Least squares with group norms against a conic solver."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso

import fenchel
from fenchel import GroupLasso, Lasso
from fenchel.norm_problem import NormProblem
from fenchel.norms import GroupNorm
from norm_conic import norm_optimum

NUMBERS = (1, 2, np.inf)
ANY = [(1.5, 1), (3, 1), (1.5, 3), (1, 1.5), (np.inf, 3), (2, 1.2), (4, np.inf), (5, 2)]
PAIRS = [*itertools.product(NUMBERS, NUMBERS), *ANY]
GROUPS = np.array([2, 0, 0, 1, 2, 1, 0, 3, 3])
each_pair = pytest.mark.parametrize(("q", "p"), PAIRS)


def norm(W, labels, q, p):
    """‖W‖_{q,p} from its definition."""
    inside = [np.linalg.norm(W[labels == j].ravel(), q) for j in np.unique(labels)]
    return np.linalg.norm(inside, p)


def data(outputs=1, seed=0, n=60):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, len(GROUPS))) @ random.normal(size=(len(GROUPS), len(GROUPS)))
    X += random.normal(size=len(GROUPS)) * 3.0
    W = random.normal(size=(len(GROUPS), outputs)) * (GROUPS != 1)[:, None]
    y = X @ W + random.normal(size=(n, outputs)) + 5.0
    return X, y if outputs > 1 else y[:, 0]


def objective(model, X, y, weight=None):
    """The penalized objective of a fitted model, from the formula."""
    weight = np.ones(len(X)) if weight is None else weight
    residual = (y - X @ model.coef_.T - model.intercept_).reshape(len(X), -1)
    W = np.atleast_2d(model.coef_).T
    loss = 0.5 * weight @ np.sum(residual**2, axis=1) / weight.sum()
    penalty = 0.0 if model.alpha is None else model.alpha
    return loss + penalty * norm(W, model.labels_, model.q, model.p)


def spread(y):
    """Objective of the best constant model."""
    y = y.reshape(len(y), -1)
    return 0.5 * np.mean(np.sum((y - y.mean(axis=0)) ** 2, axis=1))


# --- against Clarabel ----------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
@each_pair
def test_penalized_form_against_a_conic_solver(q, p, outputs):
    X, y = data(outputs)
    weight = np.random.default_rng(4).integers(1, 4, len(X)).astype(float)
    alpha = 0.5 if p == 1 else 2.0
    model = GroupLasso(GROUPS, alpha, q=q, p=p, tol=1e-8).fit(X, y, weight)
    best = norm_optimum(X, y, GROUPS, q, p, alpha=alpha, weight=weight)
    value = objective(model, X, y, weight)
    unit = spread(y)
    certificate = model.certificate_
    assert certificate.relative_gap <= 1e-8
    assert certificate.primal == pytest.approx(value, rel=1e-12)
    assert certificate.dual <= best.value + 1e-9 * unit
    assert best.lower - 1e-9 * unit <= value <= best.value + 1e-8 * 2 * unit
    assert model.norm_ == pytest.approx(norm(np.atleast_2d(model.coef_).T, GROUPS, q, p))
    assert abs(value - unit) > 0.01 * unit  # neither form is trivial


@each_pair
def test_constrained_form_against_a_conic_solver(q, p):
    X, y = data(seed=5)
    free = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0]
    radius = 0.3 * norm(free[:, None], GROUPS, q, p)
    model = GroupLasso(GROUPS, radius=radius, q=q, p=p, tol=1e-8).fit(X, y)
    best = norm_optimum(X, y, GROUPS, q, p, radius=radius)
    value = objective(model, X, y)
    unit = spread(y)
    assert norm(model.coef_[:, None], GROUPS, q, p) <= radius * (1 + 1e-12)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-12)
    assert model.certificate_.relative_gap <= 1e-8
    assert best.lower - 1e-8 * unit <= value <= best.value + 2e-8 * unit


def test_without_intercept():
    X, y = data(seed=6)
    model = GroupLasso(GROUPS, 0.7, fit_intercept=False, tol=1e-8).fit(X, y)
    best = norm_optimum(X, y, GROUPS, 2, 1, alpha=0.7, fit_intercept=False)
    assert model.intercept_ == 0.0
    assert objective(model, X, y) == pytest.approx(best.value, rel=1e-7)


@pytest.mark.parametrize("constrained", [False, True])
@each_pair
def test_the_certificate_bounds_the_suboptimality_of_any_coefficients(q, p, constrained):
    X, y = data(seed=7, n=25)
    centred, target = X - X.mean(axis=0), (y - y.mean())[:, None]
    strength = 3.0 if constrained else 0.4
    kind = {"radius" if constrained else "alpha": strength}
    best = norm_optimum(X, y, GROUPS, q, p, **kind)
    problem = NormProblem(
        centred, target, len(y), GroupNorm(GROUPS, float(q), float(p)), strength, constrained
    )
    random = np.random.default_rng(8)
    tight = []
    for size in (0.0, 1e-4, 1e-2, 1.0):
        W = best.weights + size * random.normal(size=(len(GROUPS), 1))
        if constrained:
            W *= min(1.0, strength / norm(W, GROUPS, q, p))
        found = problem.certify(W).certificate
        value = 0.5 * np.mean((target - centred @ W) ** 2)
        value += 0.0 if constrained else strength * norm(W, GROUPS, q, p)
        assert found.primal == pytest.approx(value, rel=1e-12)
        assert found.dual <= best.value + 1e-9 * spread(y)
        assert found.gap == found.primal - found.dual
        assert found.gap >= value - best.value - 1e-9 * spread(y)
        assert found.relative_gap == pytest.approx(found.gap / spread(y), rel=1e-12)
        tight.append(found.relative_gap)
    assert tight[0] <= 1e-6  # the bound is of some use near the optimum


# --- special cases with an answer of their own ---------------------------------------------


def test_groups_of_one_column_are_the_lasso():
    X, y = data(seed=9)
    ours = GroupLasso(alpha=0.3, tol=1e-10).fit(X, y)
    lasso = Lasso(alpha=0.3, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, lasso.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.selected_, lasso.selected_)


def test_one_group_of_all_outputs_is_the_multi_task_lasso():
    X, y = data(3, seed=10)
    ours = GroupLasso(alpha=0.5, tol=1e-9).fit(X, y)
    theirs = MultiTaskLasso(alpha=0.5, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)


def test_whole_groups_are_zero():
    random = np.random.default_rng(11)
    X = random.normal(size=(100, 9))
    y = X @ (GROUPS == 2) + 0.1 * random.normal(size=100)
    model = GroupLasso(GROUPS, 0.2).fit(X, y)
    np.testing.assert_array_equal(model.selected_groups_, [2])
    np.testing.assert_array_equal(model.selected_, np.flatnonzero(GROUPS == 2))
    assert np.all(model.coef_[GROUPS != 2] == 0.0)
    # the strength at which all vanish, from the definition of the dual norm
    pull = (X - X.mean(axis=0)).T @ (y - y.mean()) / len(y)
    labels = GROUPS.copy()
    largest = max(np.linalg.norm(pull[labels == j]) for j in range(4))
    assert not GroupLasso(GROUPS, 1.0001 * largest).fit(X, y).coef_.any()
    assert GroupLasso(GROUPS, 0.999 * largest).fit(X, y).coef_.any()


def test_groups_may_be_given_as_lists_or_names():
    X, y = data(seed=12)
    model = GroupLasso(GROUPS, 0.4).fit(X, y)
    labels = model.labels_
    lists = [np.flatnonzero(labels == j).tolist() for j in range(4)]
    names = np.array(["a", "b", "c", "d"])[GROUPS]
    for given in (lists, names, list(GROUPS + 7)):
        other = GroupLasso(given, 0.4).fit(X, y)
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(other.labels_, GROUPS)


def test_many_rows_are_turned_into_few_without_loss():
    X, y = data(2, seed=19)
    norm_of_groups = GroupNorm(GROUPS, 2.0, 1.0)
    whole = NormProblem(np.tile(X, (4, 1)), np.tile(y, (4, 1)), 240.0, norm_of_groups, 0.3)
    few = whole.reduced()
    assert len(few.features) == len(GROUPS) + 2
    W = np.random.default_rng(20).normal(size=(len(GROUPS), 2))
    for name in ("primal", "dual", "relative_gap"):
        value = getattr(whole.certify(W).certificate, name)
        assert getattr(few.certify(W).certificate, name) == pytest.approx(value, rel=1e-11)


def test_weights_are_repetitions():
    X, y = data(seed=13)
    weight = np.random.default_rng(14).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    by_weight = GroupLasso(GROUPS, 0.5, tol=1e-12).fit(X, y, weight)
    repeated = GroupLasso(GROUPS, 0.5, tol=1e-12).fit(X[rows], y[rows])
    np.testing.assert_allclose(by_weight.coef_, repeated.coef_, atol=1e-5)
    assert by_weight.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize(("q", "alike"), [(1, False), (2, False), (1.5, True), (np.inf, True)])
def test_units_cost_no_steps(q, alike):
    """The penalized problem is solved in about as many steps, and as well as by Clarabel.

    For q = 1 and 2 the columns of a group may have different units.
    """
    X, y = data(seed=16)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    each = np.array([1.0, 1e5, 1e-4, 30.0, 1.0, 2e3, 1.0, 0.1, 10.0])
    units = each[GROUPS] if alike else each
    plain = GroupLasso(GROUPS, 1e-2, q=q).fit(X, y)
    for rows in (X * units, sparse.csr_array(X * units)):
        model = GroupLasso(GROUPS, 1e-2, q=q).fit(rows, y)
        assert model.status_.converged
        assert model.n_iter_ <= 3 * plain.n_iter_
        best = norm_optimum(X * units, y, GROUPS, q, 1, alpha=1e-2)
        assert objective(model, X * units, y) <= best.value + 1e-6 * spread(y)


def test_not_converged():
    X, y = data(seed=15)
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        model = GroupLasso(GROUPS, 1e-3, max_iter=2).fit(X, y)
    assert not model.status_.converged
    assert model.n_iter_ == 2
    best = norm_optimum(X, y, GROUPS, 2, 1, alpha=1e-3)
    assert model.certificate_.gap >= objective(model, X, y) - best.value - 1e-9


def test_history_is_kept_and_printed(capsys):
    X, y = data(seed=15)
    model = GroupLasso(GROUPS, 0.5, tol=1e-10, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    steps = [*range(0, 101, 20), *range(101, model.n_iter_ + 1)]  # of the gradient, of Newton
    assert [line.iteration for line in model.history_] == steps
    assert len(lines) == len(model.history_)
    assert all(line.startswith("[GroupLasso] step ") for line in lines)
    GroupLasso(GROUPS, 0.5).fit(X, y)
    assert capsys.readouterr().out == ""


def test_prepared_rows_serve_many_fits():
    """Each from the one before: the same as fits of their own, in fewer steps."""
    X, y = data(seed=15)
    model = GroupLasso(GROUPS, 0.5, tol=1e-10)
    prepared = model.prepare(X, y)
    start = model.fit_prepared(prepared)
    model.set_params(alpha=0.49)
    model.fit_prepared(prepared, start)
    alone = GroupLasso(GROUPS, 0.49, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(alone.intercept_, abs=1e-3)
    assert model.n_iter_ < alone.n_iter_


def test_round_trip(tmp_path):
    X, y = data(2, seed=16)
    model = GroupLasso(GROUPS.tolist(), 0.5, q=np.inf).fit(X, y)
    same = fenchel.load(fenchel.save(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.certificate_ == model.certificate_
    assert same.get_params() == model.get_params()


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"groups": [0, 1]}, ValueError, ["groups", "9 columns", "got 2"]),
        ({"groups": 3}, TypeError, ["groups", "3"]),
        ({"groups": [*"aabbccdd", None]}, ValueError, ["groups", "label", "None for column 8"]),
        ({"groups": [np.nan, *range(8)]}, ValueError, ["groups", "label", "nan for column 0"]),
        ({"groups": [np.float32("nan"), *range(8)]}, ValueError, ["label", "nan for column 0"]),
        ({"groups": [pd.NA, *"aabbccdd"]}, ValueError, ["label", "<NA> for column 0"]),
        ({"groups": [1, "1", *range(7)]}, TypeError, ["labels of one type", "got several"]),
        ({"groups": {j: [j] for j in range(9)}}, TypeError, ["groups", "list of lists", "{0:"]),
        ({"groups": "abc"}, TypeError, ["groups", "'abc'"]),
        (
            {"groups": [[0, 0, 1], [2, 3, 4, 5, 6, 7, 8]]},
            ValueError,
            ["column twice", "[0, 0, 1]"],
        ),
        ({"group_weights": "large"}, ValueError, ["group_weights", "'size'", "'large'"]),
        ({"group_weights": [1.0, -1.0]}, ValueError, ["group_weights", "> 0"]),
        ({"group_weights": [1.0, 2.0]}, ValueError, ["group_weights", "9 groups", "(2,)"]),
        ({"groups": [[0, 1, 2], [3, 4]]}, ValueError, ["groups", "every column", "column 5"]),
        ({"groups": [[0, 1, 2], [3, 9]]}, ValueError, ["groups", "0 to 8", "got 9"]),
        ({"groups": [[0, 1, 2], []]}, ValueError, ["groups", "integers", "[]"]),
        ({"groups": [[0.5, 1, 2], [3]]}, ValueError, ["groups", "integers", "0.5"]),
        ({"q": 0.5}, ValueError, ["q", "a number >= 1 or inf", "0.5"]),
        ({"p": "2"}, TypeError, ["p", "a number >= 1 or inf", "'2'"]),
        ({"p": True}, TypeError, ["p", "a number >= 1 or inf", "True"]),
        ({"q": None}, TypeError, ["q", "a number >= 1 or inf", "None"]),
        ({"alpha": 0.0}, ValueError, ["alpha", "> 0", "0.0"]),
        ({"alpha": 1.0, "radius": 2.0}, ValueError, ["alpha=1.0", "radius=2.0", "one"]),
        ({"radius": -1.0}, ValueError, ["radius", "> 0", "-1.0"]),
        ({"max_iter": 0}, ValueError, ["max_iter", ">= 1", "0"]),
        ({"tol": "small"}, TypeError, ["tol", "> 0", "'small'"]),
    ],
)
def test_bad_parameters(parameters, error, words):
    X, y = data(seed=17)
    with pytest.raises(error) as caught:
        GroupLasso(**parameters).fit(X, y)
    for word in words:
        assert word in str(caught.value)

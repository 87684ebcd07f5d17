"""Weights of groups, and groups that overlap, against a conic solver and by definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fenchel import GroupLasso

LABELS = np.array([0, 0, 0, 0, 1, 1, 2])
RNG = np.random.default_rng(3)
X = RNG.normal(size=(50, 7))
Y = X @ np.array([1.0, 0.5, 0.0, -0.5, 0.3, 0.0, 0.8]) + 0.3 * RNG.normal(size=50) + 2.0
CENTRED, TARGET = X - X.mean(axis=0), Y - Y.mean()


def group_norms(coef, labels, q):
    return np.array([np.linalg.norm(coef[labels == j], q) for j in np.unique(labels)])


@pytest.mark.parametrize("q", [1, 2, 2.5, np.inf])
@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize("given", ["size", [3.0, 1.0, 0.5]])
def test_the_penalty_is_that_of_weighted_norms(q, p, given):
    weights = np.sqrt([4.0, 2.0, 1.0]) if isinstance(given, str) else np.array(given)
    model = GroupLasso(LABELS, 0.1, group_weights=given, q=q, p=p).fit(X, Y)
    np.testing.assert_allclose(model.group_weights_, weights)

    def objective(coef):
        loss = 0.5 * np.mean((TARGET - CENTRED @ coef) ** 2)
        return loss + 0.1 * np.linalg.norm(weights * group_norms(coef, LABELS, q), p)

    assert model.certificate_.primal == pytest.approx(objective(model.coef_), rel=1e-12)
    assert model.certificate_.relative_gap <= 1e-6
    # what the certificate says no coefficients can do
    random = np.random.default_rng(0)
    found = minimize(objective, model.coef_, method="Nelder-Mead", options={"maxfev": 2000})
    assert found.fun >= model.certificate_.dual - 1e-12
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(50):
            moved = model.coef_ + size * random.standard_normal(7)
            assert objective(moved) >= model.certificate_.dual - 1e-12
    np.testing.assert_allclose(model.group_norms_, group_norms(model.coef_, LABELS, q), atol=1e-12)
    assert model.norm_ == pytest.approx(np.linalg.norm(weights * model.group_norms_, p))


def test_a_bound_is_on_the_weighted_norm():
    model = GroupLasso(LABELS, radius=0.5, group_weights="size").fit(X, Y)
    norms = group_norms(model.coef_, LABELS, 2)
    assert np.sqrt([4.0, 2.0, 1.0]) @ norms == pytest.approx(0.5, rel=1e-9)


def test_weights_of_one_are_no_weights():
    plain, ones = GroupLasso(LABELS, 0.1), GroupLasso(LABELS, 0.1, group_weights=[1, 1, 1])
    np.testing.assert_array_equal(plain.fit(X, Y).coef_, ones.fit(X, Y).coef_)


@pytest.mark.slow
def test_groups_of_noise_are_selected_alike_whatever_their_size():
    """The strength at which a group enters: with roots of sizes it is much the same for all."""
    labels = np.repeat([0, 1], [1, 40])
    random = np.random.default_rng(5)
    entered = {"size": 0, None: 0}
    for _ in range(30):
        rows, y = random.normal(size=(100, 41)), random.normal(size=100)
        for weights in entered:
            path = [
                GroupLasso(labels, a, group_weights=weights).fit(rows, y).selected_groups_
                for a in np.geomspace(1.0, 0.05, 12)
            ]
            first = next(chosen for chosen in path if len(chosen))
            entered[weights] += 1 in first
    assert entered[None] == 30
    assert entered["size"] < 25


GROUPS = [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


def test_overlapping_groups_are_sums_of_parts():
    """Min over parts V_j that live on group j and sum to w of Σ ‖V_j‖, by definition."""
    model = GroupLasso(GROUPS, 0.6).fit(X, Y)
    np.testing.assert_array_equal(model.columns_, [0, 1, 2, 2, 3, 4, 4, 5, 6])
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    copied = GroupLasso(model.labels_, 0.6).fit(X[:, model.columns_], Y)
    assert model.certificate_.primal == pytest.approx(copied.certificate_.primal, rel=1e-12)
    summed = np.bincount(model.columns_, copied.coef_)
    np.testing.assert_allclose(model.coef_, summed, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), copied.predict(X[:, model.columns_]), atol=1e-12)
    # the selected columns are a union of the selected groups
    union = sorted({column for j in model.selected_groups_ for column in GROUPS[j]})
    np.testing.assert_array_equal(model.selected_, union)
    assert 0 < len(model.selected_groups_) < 3


def test_overlap_with_several_outputs_weights_and_a_bound():
    Z = np.column_stack([Y, X[:, 0] - X[:, 6]])
    model = GroupLasso(GROUPS, radius=0.7, group_weights=[1.0, 2.0, 3.0]).fit(X, Z)
    assert model.coef_.shape == (2, 7)
    assert model.norm_ == pytest.approx(0.7, rel=1e-9)
    residual = Z - model.predict(X)
    assert model.certificate_.primal == pytest.approx(0.5 * np.mean((residual**2).sum(axis=1)))


def test_lists_that_do_not_overlap_are_labels():
    lists = GroupLasso([[6], [4, 5], [0, 1, 2, 3]], 0.1, group_weights="size").fit(X, Y)
    labels = GroupLasso(2 - LABELS, 0.1, group_weights="size").fit(X, Y)
    np.testing.assert_array_equal(lists.labels_, 2 - LABELS)
    np.testing.assert_array_equal(lists.coef_, labels.coef_)

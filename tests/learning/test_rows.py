"""Rows to learn from are chosen and dealt by what they hold, and by nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from fenchel import ExpectileRegressor, KernelRidge, NonNegativeRegressor, QuantileRegressor
from fenchel.kernels import SparsePoints
from fenchel.learning.rows import are_codes, effective_number, folds_by_content, rows_by_content
from fenchel.tables import table_encoder


def table(n=300, d=3, p=2, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, n).astype(float)
    return rng.normal(size=(n, d)), rng.normal(size=(n, p)), weight


def assert_same(one, other):
    assert one.starts == other.starts
    for name in ("X", "targets", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("n_rows", [1000, 120])
def test_order_does_not_matter(n_rows):
    X, y, weight = table()
    order = np.random.default_rng(1).permutation(len(X))
    one = rows_by_content(X, y, weight, n_rows, 3)
    assert_same(one, rows_by_content(X[order], y[order], weight[order], n_rows, 3))
    assert len(one.X) == min(n_rows, len(X))


@pytest.mark.parametrize("n_rows", [1000, 120])
def test_a_weight_is_a_repetition(n_rows):
    X, y, weight = table()
    counts = weight.astype(int)
    repeated = (np.repeat(each, counts, axis=0) for each in (X, y))
    assert_same(
        rows_by_content(X, y, weight, n_rows, 3),
        rows_by_content(*repeated, np.ones(counts.sum()), n_rows, 3),
    )


def test_units_do_not_matter():
    X, y, weight = table()
    scales, shifts = np.array([3.7, 1e-6, 2e5]), np.array([-1.0, 2e-6, 1e5])
    one = rows_by_content(X, y, weight, 120, 3)
    other = rows_by_content(scales * X + shifts, 0.3 * y - 9.0, weight, 120, 3)
    assert one.starts == other.starts
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_allclose(other.X, scales * one.X + shifts, rtol=1e-12)


def test_folds_are_of_equal_size():
    X, y, weight = table(301)
    rows = rows_by_content(X, y, weight, 1000, 4)
    sizes = np.diff(rows.starts)
    assert rows.n_folds == 4
    assert rows.starts[-1] == 301
    assert sizes.max() - sizes.min() <= 1
    assert [rows.fold(k).stop - rows.fold(k).start for k in range(4)] == sizes.tolist()


def test_folds_do_not_follow_features():
    """Each fold has rows from all over."""
    X, y, weight = table(1000)
    rows = rows_by_content(X, y, weight, 1000, 4)
    means = [rows.X[rows.fold(k)].mean(axis=0) for k in range(4)]
    assert np.abs(means).max() < 5.0 / np.sqrt(250.0)


def test_equal_features_are_in_one_fold():
    X, y, _ = table(300)
    X = X[np.repeat(np.arange(150), 2)]
    rows = rows_by_content(X, y, np.ones(300), 1000, 3)
    folds = np.repeat(np.arange(3), np.diff(rows.starts))
    for row in X[::2]:
        assert len(set(folds[(row == rows.X).all(axis=1)])) == 1
    sizes = np.diff(rows.starts)
    assert sizes.max() - sizes.min() <= 5


def test_too_few_different_features_are_dealt_with_their_targets():
    X, y, weight = table(300)
    X = X[:2][np.arange(300) % 2]
    sizes = np.diff(rows_by_content(X, y, weight, 1000, 3).starts)
    assert len(sizes) == 3
    assert sizes.max() - sizes.min() <= 1


def test_first_rows_are_some_of_them():
    X, y, weight = table()
    rows = rows_by_content(X, y, weight, 200, 3)
    few = rows.first(50, 2)
    assert few.n_folds == 2
    assert len(few.X) == 50
    assert {tuple(row) for row in few.X} <= {tuple(row) for row in rows.X}


def test_values_far_from_all_others_hide_no_differences():
    """In units of the ranges 500 rows would be one: all of them, or none, would take part."""
    X = np.random.default_rng(0).normal(size=(500, 1))
    y = X**2
    X[0], y[0] = 1e12, 1e13
    rows = rows_by_content(X, y, np.ones(500), 100, 4)
    assert len(rows.X) == 100
    assert np.diff(rows.starts).tolist() == [25] * 4
    order = np.random.default_rng(1).permutation(500)
    again = rows_by_content(X[order], y[order], np.ones(500), 100, 4)
    np.testing.assert_array_equal(again.X, rows.X)


def test_many_repeats_leave_as_many_different_rows():
    """Those that are looked at first are repeats of a few."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = rng.normal(size=(400, 1))
    repeats = np.where(np.arange(400) < 200, 30, 1)
    once = rows_by_content(X, y, repeats.astype(float), 50, 3)
    times = (np.repeat(a, repeats, axis=0) for a in (X, y))
    again = rows_by_content(*times, np.ones(repeats.sum()), 50, 3)
    assert len(again.X) == 50
    np.testing.assert_array_equal(again.X, once.X)
    np.testing.assert_array_equal(again.weight, once.weight)


def test_folds_of_sparse_rows():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 6)) < 0.3, rng.normal(size=(200, 6)), 0.0)
    X[150:] = X[:50]  # with other targets
    y = rng.normal(size=(200, 1))

    def folds(rows, targets):
        return folds_by_content(SparsePoints(sparse.csr_array(rows)), targets, 5)

    found, order = folds(X, y), rng.permutation(200)
    assert np.bincount(found).max() <= 60
    assert np.bincount(found).min() >= 30
    empty = ~X.any(axis=1)  # an eighth of the rows, which are no samples measured again
    np.testing.assert_array_equal(found[150:][~empty[150:]], found[:50][~empty[:50]])
    assert len(np.unique(found[empty])) == 5
    np.testing.assert_array_equal(folds(X[order], y[order]), found[order])
    np.testing.assert_array_equal(folds(np.array([3.7, 1e-6, 2e5, 1, 2, 3]) * X, 9.0 * y), found)
    one = sparse.csr_array(X)
    explicit = sparse.csr_array((X.ravel(), np.tile(np.arange(6), 200), np.arange(0, 1201, 6)))
    assert explicit.nnz > one.nnz
    np.testing.assert_array_equal(folds(explicit, y), found)
    # as dense rows are dealt: which are together, groups of equal rows aside, is by chance
    assert len(set(zip(found, folds_by_content(X, y, 5), strict=True))) == 25


def test_the_effective_number_is_of_distinct_rows_and_of_no_unit():
    X, y, weight = table()
    number = effective_number(X, y, weight)
    assert number == pytest.approx(weight.sum() ** 2 / np.sum(weight**2))
    assert effective_number(X, y, 1e-3 * weight) == pytest.approx(number)
    repeated = (np.repeat(each, weight.astype(int), axis=0) for each in (X, y))
    assert effective_number(*repeated, np.ones(int(weight.sum()))) == pytest.approx(number)
    assert effective_number(SparsePoints(sparse.csr_array(X)), y, weight) == pytest.approx(number)
    assert effective_number(X, y, np.ones(len(X))) == pytest.approx(len(X))


def replicated(n_different, n_each, d, seed=0):
    """Rows whose features are those of others, with targets of their own."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.uniform(size=(n_different, d)), n_each, axis=0)
    return X, rng.normal(size=(len(X), 1)), np.ones(len(X))


def folds_of_groups(rows):
    """In how many folds the rows of each group with equal features are."""
    group = np.unique(rows.X, axis=0, return_inverse=True)[1].ravel()
    fold = np.concatenate([np.full(np.diff(rows.starts)[k], k) for k in range(rows.n_folds)])
    return np.array([len(np.unique(fold[group == g])) for g in range(group.max() + 1)])


@pytest.mark.parametrize("d", [1, 3])
def test_rows_of_a_unit_are_in_one_fold(d):
    assert folds_of_groups(rows_by_content(*replicated(60, 30, d), 2000, 3)).tolist() == [1] * 60


def test_codes_are_told_from_measured_numbers():
    rng = np.random.default_rng(0)
    assert are_codes(np.arange(60.0)[:, None])
    assert are_codes(0.25 * np.arange(24.0)[:, None] - 7.0)
    assert are_codes(np.eye(30))
    assert are_codes(rng.integers(0, 5, (200, 3)).astype(float))
    assert not are_codes(rng.uniform(size=(60, 1)))
    assert not are_codes(rng.uniform(size=(60, 1)).round(3))
    measured = rng.uniform(size=(60, 3))
    assert not are_codes(measured)
    assert are_codes(np.column_stack([measured, rng.permutation(60)]))  # each unit has a number
    assert not are_codes(np.column_stack([measured, rng.integers(20, 40, 60)]))  # or an age
    assert are_codes(np.arange(60.0)[:, None], few=True)
    assert not are_codes(rng.integers(0, 5, (200, 3)).astype(float), few=True)


@pytest.mark.parametrize("d", [1, 2])
def test_intervals_are_for_units_that_were_not_seen(d):
    """Of which each has a mean of its own."""
    rng = np.random.default_rng(0)
    rows, new = rng.uniform(size=(80, d)), rng.uniform(size=(600, d))
    means, others = (np.sin(5.0 * Z[:, 0]) + rng.normal(size=len(Z)) for Z in (rows, new))
    X, y = np.repeat(rows, 4, axis=0), np.repeat(means, 4) + 0.3 * rng.normal(size=320)
    curves = QuantileRegressor([0.1, 0.9]).fit(X, y).predict(new)
    y_new = others + 0.3 * rng.normal(size=600)
    inside = (y_new >= curves[:, 0]) & (y_new <= curves[:, 1])
    assert 0.7 < inside.mean() < 0.9


@pytest.mark.parametrize("d", [1, 3])
def test_levels_of_factors_are_in_all_folds(d):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40 if d == 1 else 4, (1500, d)).astype(float)
    rows = rows_by_content(X, rng.normal(size=(1500, 1)), np.ones(1500), 2000, 3)
    assert folds_of_groups(rows).tolist() == [3] * len(np.unique(X, axis=0))
    folds = folds_by_content(X, rng.normal(size=(1500, 1)), 5)
    for row in np.unique(X, axis=0):
        assert len(np.unique(folds[(row == X).all(axis=1)])) > 2


def test_means_of_levels_are_learned():
    """Of codes that say nothing of the means, which no held-out level can be told by."""
    rng = np.random.default_rng(0)
    code, means = np.repeat(np.arange(50.0), 10), 2.0 * rng.normal(size=50)
    y = means[code.astype(int)] + rng.normal(size=500)
    X, new = code[:, None], means + rng.normal(size=(40, 50))
    ridge = KernelRidge().fit(X, y)
    explained = [ridge.score(X[::10], each) for each in new]
    assert np.mean(explained) > 0.7  # 4 / (4 + 1), less what ten rows do not tell
    curves = QuantileRegressor([0.1, 0.5, 0.9]).fit(X, y).predict(X[::10])
    inside = (new >= curves[:, 0]) & (new <= curves[:, 2])
    assert 0.7 < inside.mean() < 0.9
    assert np.std(curves[:, 1]) > 1.5


def test_means_of_levels_with_two_rows_are_learned():
    rng = np.random.default_rng(0)
    code, means = np.repeat(np.arange(100.0), 2), 2.0 * rng.normal(size=100)
    y = means[code.astype(int)] + rng.normal(size=200)
    new = means + rng.normal(size=(40, 100))
    model = KernelRidge().fit(code[:, None], y)
    explained = [model.score(code[::2, None], each) for each in new]
    assert np.mean(explained) > 0.6  # 4 / (4 + 1), less what two rows do not tell


def test_words_that_name_rows_are_seen_again():
    """50 names, which say nothing of the means, with 10 rows each."""
    rng = np.random.default_rng(0)
    names = np.array(["".join(rng.choice(list("abcdefghikl"), 8)) for _ in range(50)])
    level, means = np.repeat(np.arange(50), 10), 2.0 * rng.normal(size=50)
    table, y = pd.DataFrame({"name": names[level]}), means[level] + rng.normal(size=500)
    new = means + rng.normal(size=(40, 50))
    model = make_pipeline(table_encoder(), QuantileRegressor([0.1, 0.5, 0.9])).fit(table, y)
    curves = model.predict(pd.DataFrame({"name": names}))
    inside = (new >= curves[:, 0]) & (new <= curves[:, 2])
    assert 0.7 < inside.mean() < 0.9
    assert np.std(curves[:, 1]) > 1.5


def test_what_is_learned_is_good_between_replicated_rows():
    rng = np.random.default_rng(0)
    X, new = np.repeat(rng.uniform(size=(60, 3)), 5, axis=0), rng.uniform(size=(500, 3))
    y, truth = (np.sin(25.0 * Z[:, 0]) + Z[:, 2] for Z in (X, new))
    y = y + 0.1 * rng.normal(size=300)
    assert KernelRidge().fit(X, y).score(new, truth) > 0.8


def cells(n_levels, n_each, seed=0):
    """Targets 0 and 1 whose shares are those of levels of one factor."""
    rng = np.random.default_rng(seed)
    level = np.repeat(np.arange(n_levels), n_each)
    share = 1.0 / (1.0 + np.exp(-2.0 * rng.normal(size=n_levels)))
    return np.eye(n_levels)[level], (rng.random(len(level)) < share[level]).astype(float)


@pytest.mark.parametrize("n_levels", [5, 20])
@pytest.mark.parametrize("make", [KernelRidge, lambda: NonNegativeRegressor("poisson")])
def test_shares_of_levels_are_learned(make, n_levels):
    """Where all rows that are equal are held out at once, they are in no other fold."""
    X, y = cells(n_levels, 60)
    found = make().fit(X, y).predict(np.eye(n_levels))
    means = y.reshape(n_levels, 60).mean(axis=1)
    assert np.mean((found - means) ** 2) < 0.2 * np.var(means)


def test_cells_are_in_several_folds_by_their_weight():
    X, y = cells(6, 50)
    rows = rows_by_content(X, y[:, None], np.ones(300), 1000, 3)
    counts = np.bincount(X.argmax(axis=1) * 2 + y.astype(int), minlength=12)
    assert rows.weight.sum() == pytest.approx(300.0)
    assert len(rows.X) == np.minimum(counts, 3).sum()
    for k in range(3):
        fold = rows.fold(k)
        assert len(np.unique(np.hstack([rows.X, rows.targets])[fold], axis=0)) == len(rows.X[fold])
    few = rows_by_content(X, y[:, None], np.ones(300), 10, 3)
    assert 8 <= len(few.X) <= 10
    table = np.unique(np.column_stack([X, y]), axis=0)
    weight = counts[counts > 0].astype(float)
    order = np.lexsort(np.column_stack([table[:, :6].argmax(axis=1), table[:, 6]]).T[::-1])
    merged = rows_by_content(table[order][:, :6], table[order][:, 6:], weight, 1000, 3)
    assert_same(rows, merged)


def test_cells_with_one_row_each_are_no_repetitions():
    X = cells(20, 40)[0]
    rows = rows_by_content(X, np.arange(800.0)[:, None], np.ones(800), 1000, 3)
    assert len(rows.X) == 800


def amounts(n_levels, n_each):
    """Exponential amounts, the larger the higher the level, and as many zeros."""
    share = (np.arange(n_each) + 0.5) / n_each
    positive = np.multiply.outer(np.arange(1.0, n_levels + 1.0), -np.log1p(-share))
    y = np.hstack([np.zeros_like(positive), positive]).ravel()
    return np.eye(n_levels)[np.repeat(np.arange(n_levels), 2 * n_each)], y


def test_amounts_with_many_zeros_are_learned():
    """Where all zeros of a level are held out at once, the others say nothing of them."""
    X, y = amounts(3, 40)
    means, quantiles = KernelRidge().fit(X, y), QuantileRegressor([0.25, 0.9]).fit(X, y)
    np.testing.assert_allclose(means.predict(np.eye(3)), [0.5, 1.0, 1.5], atol=0.2)
    low, high = quantiles.predict(np.eye(3)).T
    np.testing.assert_allclose(low, 0.0, atol=1e-2)
    np.testing.assert_allclose(high / [1.0, 2.0, 3.0], 1.6, atol=0.3)  # log 5


def test_many_zeros_are_in_several_folds_by_their_weight():
    X, y = amounts(3, 40)
    table, count = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    whole = rows_by_content(X, y[:, None], np.ones(240), 1000, 1)
    merged = rows_by_content(table[:, :3], table[:, 3:], count.astype(float), 1000, 1)
    for rows in (whole, merged):
        parts = rows.first(1000, 5)
        for some, n_folds in ((parts, 5), (parts.first(150, 2), 2)):
            zeros = [(some.targets[some.fold(k)] == 0.0).sum() for k in range(n_folds)]
            assert zeros == [3] * n_folds
        assert parts.weight.sum() == pytest.approx(240.0)
    assert_same(whole.first(1000, 5), merged.first(1000, 5))
    assert len(np.unique(folds_by_content(X, y[:, None], 5))) == 1


@pytest.mark.parametrize("seed", range(3))
def test_few_levels_of_many_rows_are_learned(seed):
    """The rows that were learned from were those of one level, from which nothing is learned."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 2, 3000)
    y = level + 0.5 * rng.normal(size=3000)
    model = KernelRidge(features="cholesky").fit(level[:, None], y)
    means = [y[level == one].mean() for one in (0, 1)]
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), means, atol=0.03)


@pytest.mark.parametrize("share", [0.02, 0.08, 0.3])
def test_a_value_that_many_rows_have_is_not_held_out_whole(share):
    """What others say of it is no more than chance: what was learned was too smooth or rough."""
    rng = np.random.default_rng(0)
    x = np.where(rng.uniform(size=2000) < share, 0.0, rng.uniform(size=2000))
    y = 2.0 * (x == 0.0) + np.sin(6.0 * x) + 0.1 * rng.normal(size=2000)
    grid = np.linspace(0.0, 1.0, 51)
    wanted = 2.0 * (grid == 0.0) + np.sin(6.0 * grid)
    apart = KernelRidge().fit(x[:, None], y).predict(grid[:, None]) - wanted
    assert np.sqrt(np.mean(apart**2)) < 0.025  # was 0.24, 0.07 and 0.42


@pytest.mark.parametrize("estimator", [KernelRidge, ExpectileRegressor])
@pytest.mark.parametrize("shares", [[0.0, 1.0, 0.0, 0.5], [0.0, 1.0, 0.0, 1.0, 0.0]], ids=str)
@pytest.mark.parametrize("by_number", [True, False])
def test_levels_whose_rows_all_have_the_same_target_are_learned(by_number, shares, estimator):
    """Whole levels were held out, of which the others say nothing: the fits were constants."""
    rng = np.random.default_rng(0)
    n = len(shares)
    level = np.repeat(np.arange(n), 50)
    y = (rng.random(50 * n) < np.array(shares)[level]).astype(float)
    levels = np.arange(float(n))[:, None] if by_number else np.eye(n)
    model = estimator(**({} if estimator is KernelRidge else {"levels": 0.5}))
    model.fit(levels[level], y)
    means = [y[level == one].mean() for one in range(n)]
    np.testing.assert_allclose(np.ravel(model.predict(levels)), means, atol=0.02)


def test_averages_with_numbers_of_rows_are_not_pure_levels():
    """Nor are copies of measured rows, whose features are no codes."""
    rng = np.random.default_rng(0)
    codes, measured = np.arange(12.0)[:, None], rng.normal(size=(12, 1))
    averages, few, counts = rng.normal(size=(12, 1)), codes % 2.0, np.full(12, 50.0)
    for X, targets, n_rows in ((codes, few, 120), (codes, averages, 12), (measured, few, 12)):
        assert len(rows_by_content(X, targets, counts, 1000, 10).X) == n_rows


def survey(n, seed=0):
    """Ages, years of school, a yes or no, and whole hours that depend on them, with weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.integers(18, 80, n), rng.integers(8, 20, n), rng.integers(0, 2, n)]
    ).astype(float)
    return X, np.rint(hours(X) + 6.0 * rng.normal(size=n)), rng.integers(50, 400, n).astype(float)


def hours(X):
    return 35.0 + 8.0 * np.exp(-(((X[:, 0] - 45.0) / 20.0) ** 2)) + 0.5 * X[:, 1] + 2.0 * X[:, 2]


@pytest.mark.parametrize("equal", [True, False])
def test_persons_of_a_survey_are_held_out_whole(equal):
    """Each was in all folds with the same target, and what was learned went through all."""
    X, y, weight = survey(300)
    weight = np.full(300, 7.0) if equal else weight
    new = survey(300, seed=1)[0]
    error = KernelRidge().fit(X, y, sample_weight=weight).predict(new) - hours(new)
    assert np.sqrt(np.mean(error**2)) < 1.5  # their deviation is 3.3, and that of the noise 6
    rows = rows_by_content(X, y[:, None], weight, 1000, 5)
    assert len(rows.X) == len(np.unique(np.column_stack([X, y]), axis=0))
    assert len(np.unique(folds_by_content(X, y[:, None], 5))) == 5


@pytest.mark.parametrize("n_levels", [8, 30])
@pytest.mark.parametrize("kind", ["one_hot", "sparse"])
def test_many_pure_levels_of_one_factor_are_held_out_in_part(kind, n_levels):
    X = np.repeat(np.eye(n_levels), 20, axis=0)
    y = np.repeat(np.arange(float(n_levels)) % 2.0, 20)
    y[0] = 1.0  # nearly all
    if kind == "sparse":
        X = SparsePoints(sparse.csr_array(X))
        assert len(np.unique(folds_by_content(X, y[:, None], 5))) == 1
        return
    rows = rows_by_content(X, y[:, None], np.ones(len(X)), 1000, 5)
    assert len(rows.X) == 5 * n_levels + 1


def answers(n, seed=0):
    """Yes or no by age, and the share of yes at each age."""
    rng = np.random.default_rng(seed)
    ages = np.arange(18.0, 48.0)
    share = 1.0 / (1.0 + np.exp(-np.sin((ages - 18.0) / 12.0)))
    age = rng.integers(0, 30, n)
    return ages[age][:, None], (rng.random(n) < share[age]).astype(float), ages[:, None], share


@pytest.mark.parametrize("make", [KernelRidge, lambda: ExpectileRegressor(0.5)])
def test_shares_of_levels_that_tell_of_each_other_are_smoothed(make):
    """Each fold had the same part of the yes of an age, and fits were the means of each age."""
    X, y, ages, share = answers(1000)
    found = np.ravel(make().fit(X, y).predict(ages))
    means = np.array([y[X[:, 0] == age].mean() for age in ages[:, 0]])
    assert np.mean((found - share) ** 2) < 0.4 * np.mean((means - share) ** 2)


def test_repetitions_are_dealt_at_random():
    X, y = answers(3000)[:2]
    rows = rows_by_content(X, y[:, None], np.ones(3000), 1000, 5)
    assert rows.weight.sum() == pytest.approx(3000.0)
    shares = []
    for k in range(5):
        fold = rows.fold(k)
        x, target, weight = rows.X[fold, 0], rows.targets[fold, 0], rows.weight[fold]
        np.testing.assert_allclose(weight, np.rint(weight))
        some = x < 33.0
        shares.append(np.average(target[some], weights=weight[some]))
    assert 0.01 < np.std(shares) < 0.06  # of 300 rows, of which two thirds are yes: 0.027
    order = np.random.default_rng(1).permutation(3000)
    assert_same(rows, rows_by_content(X[order], y[order, None], np.ones(3000), 1000, 5))


@pytest.mark.parametrize("seed", range(5))
def test_no_fold_of_few_repetitions_is_without_rows(seed):
    """Nothing would be learned."""
    level = np.repeat(np.arange(4.0), 6)[:, None]
    y = np.random.default_rng(seed).integers(0, 2, (24, 1)).astype(float)
    assert rows_by_content(level, y, np.ones(24), 1000, 8).n_folds == 8

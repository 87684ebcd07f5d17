"""Distinct rows, and numbers that tell rows by what they hold."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.design import content, distinct_rows, row_keys
from fenchel.design.content import sample_by_content


@pytest.mark.parametrize("size", [1.0, 1.5e308, 1e-320])
@pytest.mark.parametrize("n_targets", [0, 2])
def test_distinct_rows_are_those_of_numpy(size, n_targets):
    rng = np.random.default_rng(0)
    X = size * (rng.integers(-2, 3, (200, 3)) / 2.0)
    targets = rng.integers(0, 2, (200, n_targets)).astype(float)
    weight = rng.integers(1, 4, 200).astype(float)
    _, rows, found, share = distinct_rows(X, targets, weight, 10_000)
    expected, place = np.unique(np.hstack([X, targets]), axis=0, return_inverse=True)
    whole = np.hstack([rows, found])
    order = np.lexsort(whole.T[::-1])
    np.testing.assert_array_equal(whole[order], expected)
    np.testing.assert_array_equal(share[order], np.bincount(place.ravel(), weight))


def test_some_of_the_rows_are_the_same_whatever_their_order_and_repeats():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    some = np.random.default_rng(1).integers(0, 5000, 20_000)
    again = np.concatenate([X[some], X])
    one, other = (
        distinct_rows(each, each[:, :0], np.ones(len(each)), 50)[1] for each in (X, again)
    )
    assert one.shape == (50, 2)
    np.testing.assert_array_equal(one, other)


def test_keys_tell_features_and_targets():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    keys = row_keys(X, np.array([[0.0], [1.0], [0.0], [0.0]]))
    assert len(np.unique(keys[:, 0])) == 2
    assert len(np.unique(keys[:, 1])) == 3
    np.testing.assert_array_equal(keys[0], keys[3])


@pytest.mark.parametrize("far", [False, True])
def test_rows_that_are_near_count_as_one_unless_they_are_most(far):
    X = np.repeat(np.arange(50.0), 2)[:, None] + np.tile([0.0, 1e-9], 50)[:, None]
    if far:
        X[-1] = 1e12
    order = np.random.default_rng(0).permutation(100)
    one, other = (
        distinct_rows(each, each[:, :0], np.ones(100), 20, exact=False)[1]
        for each in (X, X[order])
    )
    np.testing.assert_array_equal(one, other)
    assert len(one) == (20 if far else 40)


def test_rows_with_equal_features_leave_room_for_others():
    """Of few levels all are seen, in proportion; of many, as many rows of each as there are."""
    random = np.random.default_rng(0)
    weight = np.ones(3000)
    for sizes, n_rows, expected in (
        ([1500, 1500], 350, [175, 175]),
        ([2700, 300], 1000, [900, 100]),
        ([10] * 300, 1000, [10] * 100),
        ([1500] + [1] * 1500, 1000, None),
    ):
        X = np.repeat(np.arange(float(len(sizes))), sizes)[:, None]
        y = random.normal(size=(3000, 1))
        _, rows, targets, _ = distinct_rows(X, y, weight, n_rows)
        assert len(rows) == n_rows
        found = np.unique(rows, return_counts=True)[1]
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=0.2)
        else:
            assert abs(np.mean(rows == 0.0) - 0.5) < 0.05
        order = random.permutation(3000)
        again = distinct_rows(X[order], y[order], weight, n_rows)
        np.testing.assert_array_equal(again[1], rows)
        np.testing.assert_array_equal(again[2], targets)


def test_keys_are_hashes_of_steps_by_the_finalizer_of_splitmix64():
    """In integers of Python; model files store keys, so that they may never change."""
    values = np.random.default_rng(5).normal(size=(40, 3)) * [1.0, 1e-9, 0.0]
    all_bits = 2**64 - 1

    def hashed(key):
        key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9 & all_bits
        key = (key ^ (key >> 27)) * 0x94D049BB133111EB & all_bits
        return key ^ (key >> 31)

    low, span = values.min(axis=0), np.ptp(values, axis=0)
    expected = []
    for row in values:
        key = 0
        for j in (0, 1):  # the last column is constant
            step = int(np.rint(2.0**20 * ((row[j] - low[j]) / span[j])))
            key = hashed((key * 0x9E3779B97F4A7C15 + step + 1) & all_bits)
        expected.append(key)
    assert content._keys(values).tolist() == expected
    assert content._keys(np.asfortranarray(values)[:, ::-1][:, ::-1]).tolist() == expected


@pytest.mark.parametrize("n", [60_000, 600_000])
def test_a_sample_of_many_rows_is_in_proportion_to_weights_however_they_are_written(n):
    rng = np.random.default_rng(3)
    X, weight = rng.uniform(size=(n, 1)), rng.integers(1, 4, n)
    weight[X[:, 0] > 0.5] *= 3
    sample = sample_by_content(X, weight.astype(float), 1000)
    assert len(sample) == len(np.unique(sample)) == 1000
    assert np.mean(sample > 0.5) == pytest.approx(0.75, abs=0.04)  # 3 standard errors
    again = rng.permutation(np.repeat(X, weight, axis=0))
    np.testing.assert_array_equal(sample_by_content(again, np.ones(len(again)), 1000), sample)


def test_a_value_that_many_rows_have_is_in_samples_of_many_rows():
    """It has one key: rows with the smallest keys would be all or none of them."""
    X = np.random.default_rng(4).uniform(size=(60_000, 1))
    X[::5] = 0.0
    sample = sample_by_content(X, np.ones(60_000), 1000)
    assert np.mean(sample == 0.0) == pytest.approx(0.2, abs=0.001)
    targets = np.arange(60_000.0)[:, None]
    rows = distinct_rows(X, targets, np.ones(60_000), 1000, exact=False)[1]
    assert np.mean(rows == 0.0) == pytest.approx(0.2, abs=0.04)

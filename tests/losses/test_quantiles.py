"""Quantiles of many values against sorting all of them."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fenchel.losses.quantiles import middle_quantiles

LEVELS = np.array([0.01, 0.1, 0.5, 0.9, 0.9999])


def sorted_quantiles(values):
    """The same by the definition, from all values in their order."""
    n, found = len(values), []
    for level, column in zip(LEVELS, np.sort(values, axis=0).T, strict=True):
        place = n * level
        if abs(place - round(place)) <= 1e-9 * n and 0 < round(place) < n:
            found.append(0.5 * (column[round(place) - 1] + column[round(place)]))
        else:
            found.append(column[min(max(int(np.ceil(place)) - 1, 0), n - 1)])
    return np.array(found)


def away_from_the_sample(values):
    """Outliers in just those rows of which a sample with equal steps consists."""
    every = max(len(values) // 4096, 1)
    return np.where(np.arange(len(values))[:, None] % every == 0, 1e6, values)


KINDS = {
    "normal": lambda rng, n: rng.normal(size=(n, 5)),
    "ties": lambda rng, n: np.round(rng.normal(size=(n, 5))),
    "in order": lambda rng, n: np.sort(rng.normal(size=(n, 5)), axis=0),
    "constant": lambda rng, n: np.zeros((n, 5)),
    "one column": lambda rng, n: np.broadcast_to(rng.standard_t(1, size=(n, 1)), (n, 5)),
    "outliers": lambda rng, n: away_from_the_sample(rng.normal(size=(n, 5))),
    "columns first": lambda rng, n: np.asfortranarray(rng.normal(size=(n, 5))),
}


@pytest.mark.parametrize("n", [1, 2, 7, 100, 19_999, 20_000, 54_321, 200_000])
@pytest.mark.parametrize("kind", KINDS)
def test_middle_quantiles_are_those_of_sorted_values(kind, n):
    values = KINDS[kind](np.random.default_rng(n), n)
    np.testing.assert_array_equal(middle_quantiles(values, LEVELS), sorted_quantiles(values))


@pytest.mark.parametrize("number", [1, 2])
def test_values_stay_as_they_are_whatever_the_number_of_threads(number):
    values = np.random.default_rng(0).normal(size=(100_000, 5))
    before = values.copy()
    with threadpool_limits(number, user_api="blas"):
        found = middle_quantiles(values, LEVELS)
    np.testing.assert_array_equal(found, sorted_quantiles(before))
    np.testing.assert_array_equal(values, before)

"""Products with few columns: those of linear algebra, and used where rows are many."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.design import Plain
from fenchel.design.narrow import is_narrow, narrow_product, narrow_pull

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n_columns", range(2, 7))
@pytest.mark.parametrize("n_rows", [1, 3, 4, 70])
def test_products_are_those_of_linear_algebra(n_rows, n_columns):
    features = RNG.standard_normal((n_rows, 37))
    directions, push = RNG.standard_normal((37, 6)), RNG.standard_normal((n_rows, n_columns))
    directions = directions[:, :n_columns]
    out = np.full((n_rows, n_columns), np.nan)
    assert narrow_product(features, directions, out) is out  # directions are no whole array
    np.testing.assert_allclose(out, features @ directions, atol=1e-13)
    np.testing.assert_allclose(narrow_product(features, directions), out, atol=0)
    np.testing.assert_allclose(narrow_pull(features, push), features.T @ push, atol=1e-12)


def test_it_takes_few_columns_of_wide_rows():
    features = np.zeros((10, 37))
    assert [is_narrow(features, p) for p in (1, 2, 6, 7)] == [False, True, True, False]
    assert not is_narrow(np.asfortranarray(features), 3)
    assert not is_narrow(np.zeros((10, 5)), 3)


def test_many_rows_have_the_values_of_few():
    features = RNG.standard_normal((60_000, 24))
    many, few = (Plain(rows, np.eye(3)) for rows in (features, features[:1000]))
    weights = RNG.standard_normal((24, 3))
    np.testing.assert_allclose(many.values(weights)[:1000], few.values(weights), atol=1e-12)
    push = np.zeros((60_000, 3))
    push[:1000] = RNG.standard_normal((1000, 3))
    np.testing.assert_allclose(many.link(push), few.link(push[:1000]), atol=1e-11)

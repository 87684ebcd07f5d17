"""The least sum over folds is found, and what can't be the least is left out."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.selection import least


def losses_of(table, asked):
    def losses(k, cells):
        asked.append((k, tuple(cells)))
        return [float(table[cell, k]) for cell in cells]

    return losses


@pytest.mark.parametrize("seed", range(20))
def test_each_group_has_its_least_sum(seed):
    rng = np.random.default_rng(seed)
    folds = int(rng.integers(1, 6))
    table = rng.exponential(size=(12, 1)) * rng.uniform(0.5, 1.5, (12, folds))
    groups = [list(range(12)), [3, 5, 7], [8]]
    asked = []
    found = least(groups, folds, losses_of(table, asked))
    sums = table.sum(axis=1)
    assert found == [group[int(np.argmin(sums[group]))] for group in groups]
    single = [(k, cell) for k, cells in asked for cell in cells]
    assert len(set(single)) == len(single) <= table.size


def test_what_is_far_from_the_least_sees_one_fold():
    table = np.array([[1.0, 1.0, 1.0], [9.0, 0.0, 0.0], [1.2, 1.2, 0.1], [1.4, 2.0, 0.0]])
    asked = []
    assert least([range(4)], 3, losses_of(table, asked)) == [2]
    assert asked == [(0, (0, 1, 2, 3)), (1, (0,)), (2, (0,)), (1, (2, 3)), (2, (2,))]

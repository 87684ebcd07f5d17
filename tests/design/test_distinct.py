"""Different rows and their places, as numpy has them."""

from __future__ import annotations

import numpy as np
import pytest

from fenchel.design.base import distinct


@pytest.mark.parametrize("rows", [[], [4], [0, 0, 2, 5, 5, 5], [3, 1, 3, 0]])
def test_as_numpy(rows):
    given = np.array(rows, dtype=np.intp)
    for found, expected in zip(
        distinct(given), np.unique(given, return_inverse=True), strict=True
    ):
        assert np.array_equal(found, expected)

"""The page on growth says what was measured, and its formulas what they were fitted to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.growth import (
    BASE,
    IN_FILES,
    ON_WORKERS,
    fitted,
    terms_of_client,
    terms_of_file,
    terms_of_workers,
)
from benchmarks.growth_page import page

ROOT = Path(__file__).parents[2]
FOUND = json.loads((ROOT / "benchmarks" / "growth.json").read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_measurements():
    """``python -m benchmarks.growth --page`` writes it."""
    assert (ROOT / "docs" / "guide" / "growth.md").read_text(encoding="utf-8") == page(FOUND)


@pytest.mark.parametrize(
    ("cases", "terms", "planted"),
    [
        (IN_FILES, terms_of_file, [0.2, 1e-6, 3e-6, 4e-8]),
        (ON_WORKERS, terms_of_client, [1.5, 4e-6]),
        (ON_WORKERS, terms_of_workers, [0.5, 2e-5]),
    ],
    ids=["files", "client", "workers"],
)
def test_coefficients_are_found(cases, terms, planted):
    known = [{**case, "cpu": float(np.dot(planted, terms(case)))} for case in cases]
    found = fitted(known, terms, "cpu")
    np.testing.assert_allclose(found.coefficients, planted, rtol=1e-6, atol=1e-14)
    assert found.error < 1e-9
    assert found(terms({**BASE, "rows": 10**8, "workers": 16})) > 0.0

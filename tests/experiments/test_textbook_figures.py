"""The textbook's figures from fits."""

from __future__ import annotations

import re

import pytest

from experiments_cases import quick_form


@pytest.mark.slow
def test_quick_form_shows_the_sparse_and_the_dense_solution(tmp_path):
    table, page = quick_form("textbook_figures", tmp_path)
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    outside = table["residual"].abs() > 0.5
    assert (table.loc[~outside, "ε-insensitive"] == 0).all()
    assert (table.loc[outside, "ε-insensitive"] > 0).all()
    pairs = re.findall(r"\((-?\d\.\d{3}), (-?\d\.\d{3})\)", page)
    (first, second), (ridge_first, ridge_second) = [tuple(map(float, pair)) for pair in pairs]
    assert (first, second) == (0.45, 0.0)
    assert abs(ridge_first**2 + ridge_second**2 - 0.45**2) < 2e-3
    assert min(ridge_first, ridge_second) > 0.1

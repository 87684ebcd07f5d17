from __future__ import annotations

import numpy as np
import pytest

from fenchel.datasets import local_outliers, make_functional, process_outliers
from fenchel.functional import robustness_ratio

LEVELS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]


def huber(size, kappa):
    return np.where(size <= kappa, size**2 / 2, kappa * (size - kappa / 2))


def global_huber(residuals, kappa):
    """Huber's function of the L² norm of each curve."""
    return huber(np.sqrt(np.mean(residuals**2, axis=1)), kappa)


def local_huber(residuals, kappa):
    """The mean of Huber's function of each value."""
    return np.mean(huber(np.abs(residuals), kappa), axis=1)


def squared(residuals, kappa):
    return np.mean(residuals**2, axis=1) / 2


def test_definition():
    rng = np.random.default_rng(0)
    clean, other = rng.normal(size=(6, 9)), 3.0 * rng.normal(size=(6, 9))
    kappas = [0.2, 0.5, 1.5]
    ratios = []
    for kappa in kappas:
        terms = [
            global_huber(other[i : i + 1], kappa)[0] / global_huber(clean[i : i + 1], kappa)[0]
            for i in range(6)
        ]
        ratios.append(sum(terms) / 6)
    assert len(set(ratios)) == 3
    assert robustness_ratio(global_huber, clean, other, kappas) == pytest.approx(min(ratios))
    assert robustness_ratio(global_huber, clean, clean, kappas) == 1.0


@pytest.mark.parametrize("n_samples", [100])
def test_which_loss_resists_which_outliers(n_samples):
    """The ends p = 2 and p = 1 of the paper's Figure 5, with square losses for comparison."""
    _, clean, _ = make_functional(n_samples, random_state=0)
    by_norm = np.quantile(np.sqrt(np.mean(clean**2, axis=1)), LEVELS)
    by_value = np.quantile(np.abs(clean).max(axis=1), LEVELS)
    swamped, _ = process_outliers(clean, 0.2, random_state=0)
    spotted, _ = local_outliers(clean, 1.0, share_of_points=0.1, random_state=0)

    def ratios(contaminated):
        return (
            robustness_ratio(global_huber, clean, contaminated, by_norm),
            robustness_ratio(local_huber, clean, contaminated, by_value),
            robustness_ratio(squared, clean, contaminated, [1.0]),
        )

    of_norm, of_values, of_squares = ratios(swamped)
    assert 1.0 < of_norm < of_values < of_squares
    of_norm, of_values, of_squares = ratios(spotted)
    assert 1.0 < of_values < of_norm < of_squares


@pytest.mark.parametrize(
    ("clean", "other", "kappas", "sentence"),
    [
        ([[1.0]], [[1.0, 2.0]], [1.0], r"of the same shape, got \(1, 1\) and \(1, 2\)"),
        ([1.0], [1.0], [1.0], r"must be two-dimensional of the same shape"),
        ([[1.0]], [[1.0]], [0.0], r"kappas must be an array of positive numbers"),
        ([[1.0]], [[1.0]], [], r"kappas must be an array of positive numbers"),
        ([[1.0], [0.0]], [[1.0], [1.0]], [2.0], r"got 0 for curve 1 at kappa=2"),
    ],
)
def test_bad_input(clean, other, kappas, sentence):
    with pytest.raises(ValueError, match=sentence):
        robustness_ratio(squared, clean, other, kappas)


def test_loss_of_another_shape():
    with pytest.raises(ValueError, match=r"one value for each of the 2 rows, got shape \(\)"):
        robustness_ratio(lambda rows, kappa: 1.0, np.ones((2, 3)), np.ones((2, 3)), [1.0])

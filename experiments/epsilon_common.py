"""What the experiments with ε-insensitive quantile regression share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fenchel.design import Plain
from fenchel.features import PivotedCholesky
from fenchel.kernels import DistanceQuantile, Gaussian
from fenchel.losses import Pinball
from fenchel.problem import Problem
from fenchel.solvers import Solution

LEVELS = np.array([0.25, 0.5, 0.75])


class Rows(NamedTuple):
    """Training rows with their features, and held-out rows."""

    features: np.ndarray
    y: np.ndarray
    new_features: np.ndarray
    new_y: np.ndarray

    def predict(self, problem: Problem, solution: Solution) -> np.ndarray:
        """Prediction for the held-out rows, a column for each output."""
        return self.new_features @ problem.design.directions(solution.weights) + solution.offset


def mapped(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Rows:
    """Rows of a split behind a Gaussian kernel.

    Its σ is the 0.7-quantile of the distances between training rows.
    """
    width = DistanceQuantile(0.7).measure(X[train])
    feature_map = PivotedCholesky(kernel=Gaussian(length_scale=width))
    features = feature_map.fit_transform(X[train])
    return Rows(features, y[train], feature_map.transform(X[test]), y[test])


def quantile_problem(
    features: np.ndarray, y: np.ndarray, gamma: float, epsilon: float, strength: float
) -> Problem:
    """Problem (P5) of the paper: ``strength`` is its 1/(λn), and dual vectors are its α_i."""
    coupling = np.linalg.cholesky(np.exp(-gamma * np.subtract.outer(LEVELS, LEVELS) ** 2))
    return Problem(
        loss=Pinball(LEVELS).insensitive(epsilon),
        design=Plain(features, coupling),
        targets=y[:, None],
        sample_weight=np.ones(len(y)),
        alpha=1.0 / (strength * len(y)),
    )

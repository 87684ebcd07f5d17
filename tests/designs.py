"""The same problem with other designs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fenchel.design import Gram, Plain
from fenchel.problem import Problem


def with_features(problem: Problem, features: np.ndarray) -> Problem:
    """The problem with other features."""
    return replace(problem, design=Plain(features, problem.design.coupling))


def with_coupling(problem: Problem, coupling: np.ndarray) -> Problem:
    """The problem with another matrix S, on the same features or Gram matrix."""
    design = problem.design
    if design.features is None:
        return replace(problem, design=Gram(design.gram, coupling))
    return replace(problem, design=Plain(design.features, coupling))


def as_gram(problem: Problem) -> Problem:
    """The problem on the Gram matrix of its features."""
    features = problem.design.features
    return replace(problem, design=Gram(features @ features.T, problem.design.coupling))


def fresh(problem: Problem) -> Problem:
    """The problem with a design that remembers nothing."""
    return with_coupling(problem, problem.design.coupling)

"""Curves of the appendix B.2 of Lambert et al. (2022), and paths of fits on them.

In the representations of the paper: r leading eigenfunctions of the output kernel for p = 2,
values at the points for all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import KFold

from experiments.functional_common import (
    INPUT_RHO,
    OUTPUT_RHO,
    SELECTION_TOL,
    SIZE,
    TOL,
    gaussian,
    make_loss,
)
from fenchel.datasets import make_functional
from fenchel.design import Gram
from fenchel.functional import curve_nmse
from fenchel.kernels import BetweenCurves
from fenchel.problem import Problem
from fenchel.solvers import ClosedForm, Solution, Splitting, WarmStart

PROCESSES = 0
"""Seed of the processes, which the paper draws once."""
RANK = 25
"""Eigenfunctions, as in the code of the authors."""
FOLDS = 5


class OnPoints:
    """Curves as values at the points."""

    def __init__(self, kernel: np.ndarray, measure: np.ndarray) -> None:
        self.kernel, self.root = kernel, np.sqrt(measure)
        values, vectors = np.linalg.eigh(self.root[:, None] * kernel * self.root)
        self.values, self.vectors = np.maximum(values, 0.0), vectors
        self.coupling = vectors * np.sqrt(self.values)
        self.measure = measure

    def targets(self, Y: np.ndarray) -> np.ndarray:
        """Return curves scaled so that their inner product is the plain one."""
        return Y * self.root

    def curves(self, coefficients: np.ndarray) -> np.ndarray:
        """Return functions, at the points, by the coefficients of their output kernels."""
        return (coefficients * self.root) @ self.kernel


class InEigenfunctions(OnPoints):
    """Curves as coefficients in the leading eigenfunctions of the output kernel."""

    def __init__(self, kernel: np.ndarray, measure: np.ndarray, rank: int = RANK) -> None:
        super().__init__(kernel, measure)
        self.values, self.vectors = self.values[-rank:], self.vectors[:, -rank:]
        self.coupling = np.diag(np.sqrt(self.values))
        self.measure = np.ones(rank)

    def targets(self, Y: np.ndarray) -> np.ndarray:
        """Return coefficients."""
        return (Y * self.root) @ self.vectors

    def curves(self, coefficients: np.ndarray) -> np.ndarray:
        """Return functions, at the points, by the coefficients of their output kernels."""
        return (coefficients * self.values) @ self.vectors.T / self.root


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows by their Gram matrix, and the two ways to see curves."""

    gram: np.ndarray
    points: OnPoints
    eigenfunctions: InEigenfunctions

    def part(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.gram[np.ix_(rows, rows)], self.points, self.eigenfunctions)

    def outputs(self, name: str) -> OnPoints:
        """Return how the paper sees curves with this loss; a "whole" one is never projected."""
        return self.eigenfunctions if name in ("H2", "eps2") else self.points

    @cached_property
    def _weight(self) -> np.ndarray:
        return np.ones(len(self.gram))

    @cached_property
    def _designs(self) -> dict[int, Gram]:
        """With the spectra of rows and outputs, which are the same for all losses."""
        return {
            id(outputs): Gram(self.gram, outputs.coupling)
            for outputs in (self.points, self.eigenfunctions)
        }

    def path(
        self,
        Y: np.ndarray,
        name: str,
        alpha: float,
        values: Sequence[float],
        tol: float = TOL,
    ) -> Iterator[Solution]:
        """Fits for each κ or ε, each from the one before."""
        seen = self.outputs(name)
        targets, near = seen.targets(Y), None
        for value in values:
            loss = make_loss(name.removesuffix(" whole"), value, seen.measure)
            design = self._designs[id(seen)]
            problem = Problem(loss, design, targets, self._weight, alpha, fit_intercept=False)
            if name == "square":
                yield ClosedForm(tol).solve(problem)
                continue
            found = Splitting(tol, 2000).solve(problem, near)
            nearby = found.dual if found.nearby is None else found.nearby
            near = WarmStart(nearby, np.zeros(nearby.shape[1]), alpha)
            yield found

    def fit(self, Y: np.ndarray, name: str, alpha: float, value: float = 1.0) -> Solution:
        """One fit."""
        return next(self.path(Y, name, alpha, [value]))

    def predict(self, solution: Solution, gram: np.ndarray, name: str) -> np.ndarray:
        """Curves of rows, from the kernel between them and the training rows."""
        return self.outputs(name).curves(gram @ solution.weights)


class Synthetic(NamedTuple):
    """Curves to train and to test on, and the kernels between their inputs."""

    train: Rows
    gram_test: np.ndarray
    Y: np.ndarray
    Y_test: np.ndarray
    """With the noise of the training curves."""
    clean_test: np.ndarray
    """Without."""
    theta: np.ndarray


def synthetic(draw: int, noise: float = 0.0, n: int = SIZE) -> Synthetic:
    """Draw curves to train on and as many to test on, of processes that stay the same.

    The norms in the kernel of the inputs are plain sums over the points.
    """
    seeds: dict[str, Any] = {"random_state": draw, "process_state": PROCESSES}
    X, Y, theta = make_functional(2 * n, noise=noise, **seeds)
    clean = make_functional(2 * n, **seeds)[1]
    gram = BetweenCurves(gaussian(INPUT_RHO), quadrature=np.ones(len(theta)))(X)
    given = gaussian(OUTPUT_RHO)(theta[:, None]), np.full(len(theta), 1.0 / len(theta))
    rows = Rows(gram[:n, :n], OnPoints(*given), InEigenfunctions(*given))
    return Synthetic(rows, gram[n:, :n], Y[:n], Y[n:], clean[n:], theta)


def validation_errors(
    rows: Rows,
    Y: np.ndarray,
    name: str,
    alphas: Sequence[float],
    values: Sequence[float],
) -> np.ndarray:
    """NMSE of the folds, (folds, alphas, values): of κ on a path from the largest.

    Folds of large errors come first. Where these alone show that the median is no less than the
    least one of the strengths before, it is NaN for the others.
    """
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(Y))
    errors = np.full((len(splits), len(alphas), len(values)), np.nan)
    falling, least = np.argsort(values)[::-1], np.inf
    for i, alpha in enumerate(alphas):
        for k in np.argsort(-np.nanmean(errors, axis=(1, 2))) if i else range(len(splits)):
            # what is missing is no error below zero
            open_ = np.median(np.nan_to_num(errors[:, i]), axis=0) < least
            asked = falling[open_[falling]]
            inside, outside = splits[k]
            part, across = rows.part(inside), rows.gram[np.ix_(outside, inside)]
            path = part.path(Y[inside], name, alpha, np.asarray(values)[asked], SELECTION_TOL)
            for j, fitted in zip(asked, path, strict=True):
                errors[k, i, j] = curve_nmse(Y[outside], part.predict(fitted, across, name))
        complete = np.median(errors[:, i], axis=0)
        least = min(least, np.nanmin(complete, initial=np.inf))
    return errors


def at_ends(chosen: Sequence[float], grid: Sequence[float]) -> str:
    """How often the first and the last value of a grid were chosen."""
    first, last = (int(np.isclose(chosen, end).sum()) for end in (grid[0], grid[-1]))
    return f"{first} and {last} of {len(chosen)}"

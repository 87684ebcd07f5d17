"""Compiled Newton steps at one barrier, on few rows: arrays too small for NumPy to pay.

The same numbers as :mod:`fenchel.positive._row_system` and the line search of Newton's method, for
losses whose conjugate is a quadratic on a box with a barrier. Matrices of all parts lie one after
the other in one array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fenchel._compiling import INSIDE, njit
from fenchel._typing import FloatArray, IntArray
from fenchel.positive._loops import (
    barrier_conjugate,
    barrier_derivatives,
    pair_columns,
    row_matrix,
    sizes_of,
    steps_to_border,
)

_HOW: Any = {"cache": True, "nogil": True, "error_model": "numpy"}


def _inside(function):  # type: ignore[no-untyped-def]  # NumPy scalars are ints only when compiled
    return njit(**_HOW, **INSIDE)(function)


class Parts(NamedTuple):
    """What does not change from step to step."""

    weight: FloatArray
    """(n,)"""
    directions: FloatArray
    """(parts, p), those of matrices first."""
    outward: FloatArray
    """(p, m), m at most one."""
    features: FloatArray
    """Of all matrices, one after the other, (Σ r, n)."""
    ends: IntArray
    """Where those of each end."""
    strengths: FloatArray
    """alpha of each feature, (Σ r,)."""
    traces: FloatArray
    """(matrices,)"""
    lines: FloatArray
    """Features of linear parts over √alpha, one after the other, (Σ q, n)."""
    line_ends: IntArray
    line_grams: FloatArray
    """(lines, n, n)"""


class Barrier(NamedTuple):
    """Quadratics on a box, with a barrier."""

    targets: FloatArray
    lower: FloatArray
    upper: FloatArray
    curvature: FloatArray
    barrier: float


class State(NamedTuple):
    """A point, in arrays that steps write to."""

    dual: FloatArray
    """(n, p)"""
    gram: FloatArray
    """The matrices without the penalty of the trace."""
    linear: FloatArray
    """Of linear parts, over √alpha."""
    values: FloatArray
    vectors: FloatArray
    sizes: FloatArray
    roots: FloatArray

    def room(self) -> State:
        """Return arrays of the same shapes."""
        return State(*(np.empty_like(array) for array in self))


class Rule(NamedTuple):
    """When steps end."""

    most: int
    worth: float
    """Where a step was to gain as little."""
    halvings: int
    armijo: float
    rounding: float
    """Of values, in their size."""
    unit: float


@_inside
def _pushed(parts: Parts, dual: FloatArray, gram: FloatArray, linear: FloatArray) -> None:
    """What a dual point, or a change of it, does to matrices and linear parts."""
    n, p = dual.shape
    along = np.empty(n)
    start = place = first = 0
    for k in range(parts.directions.shape[0]):
        for i in range(n):
            total = 0.0
            for j in range(p):
                total += parts.directions[k, j] * dual[i, j]
            along[i] = parts.weight[i] * total
        if k < parts.ends.size:
            own = parts.features[start : parts.ends[k]]
            r = own.shape[0]
            for a in range(r):
                weighted = own[a] * along
                for b in range(a + 1):
                    value = np.dot(weighted, own[b])
                    gram[place + a * r + b] = value
                    gram[place + b * r + a] = value
            start, place = parts.ends[k], place + r * r
        else:
            last = parts.line_ends[k - parts.ends.size]
            for a in range(first, last):
                linear[a] = np.dot(parts.lines[a], along)
            first = last


@_inside
def _decomposed(parts: Parts, gram: FloatArray, values: FloatArray, vectors: FloatArray) -> None:
    """Eigenvalues and vectors of the matrices with the penalty of the trace."""
    start = place = 0
    for k in range(parts.ends.size):
        r = parts.ends[k] - start
        if r == 1:
            values[start], vectors[place] = gram[place] + parts.traces[k], 1.0
        else:
            matrix = np.empty((r, r))
            for a in range(r):
                for b in range(r):
                    matrix[a, b] = gram[place + a * r + b]
                matrix[a, a] += parts.traces[k]
            found, turned = np.linalg.eigh(matrix)
            for a in range(r):
                values[start + a] = found[a]
                for b in range(r):
                    vectors[place + a * r + b] = turned[a, b]
        start, place = parts.ends[k], place + r * r


@_inside
def _weighed(parts: Parts, dual: FloatArray, box: Barrier) -> float:
    """Sum of the conjugates."""
    value = np.empty(dual.shape[0])
    barrier_conjugate(dual, box.targets, box.lower, box.upper, box.curvature, box.barrier, value)
    return float(np.dot(parts.weight, value))


@_inside
def _functions(parts: Parts, state: State, z: FloatArray, grams: FloatArray) -> None:
    """Add the values of the model at the rows to z; write Q Qᵀ of each part."""
    n, p = z.shape
    start = place = first = 0
    for k in range(parts.ends.size):
        end = parts.ends[k]
        r = end - start
        turned = np.zeros((r, n))
        for a in range(r):
            for b in range(r):
                share = state.vectors[place + b * r + a]
                for i in range(n):
                    turned[a, i] += share * parts.features[start + b, i]
            for i in range(n):
                value = state.sizes[start + a] * turned[a, i] * turned[a, i]
                for j in range(p):
                    z[i, j] += parts.directions[k, j] * value
        columns = np.empty((r * (r + 1) // 2, n))
        pair_columns(turned, state.sizes[start:end], state.roots[start:end], columns)
        np.dot(columns.T, columns, grams[k])
        start, place = end, place + r * r
    for k in range(parts.line_ends.size):
        last, part = parts.line_ends[k], parts.ends.size + k
        for a in range(first, last):
            for i in range(n):
                move = state.linear[a] * parts.lines[a, i]
                for j in range(p):
                    z[i, j] -= parts.directions[part, j] * move
        for i in range(n):
            for other in range(n):
                grams[part, i, other] = parts.line_grams[k, i, other]
        first = last


@_inside
def _solved(columns: FloatArray, right: FloatArray) -> None:
    """Solve by a Cholesky factor in columns, in place."""
    size = right.size
    for j in range(size):
        right[j] /= columns[j, j]
        for i in range(j + 1, size):
            right[i] -= right[j] * columns[j, i]
    for j in range(size - 1, -1, -1):
        total = right[j]
        for i in range(j + 1, size):
            total -= columns[j, i] * right[i]
        right[j] = total / columns[j, j]


@_inside
def _direction(
    parts: Parts, state: State, box: Barrier, change: FloatArray, offset: FloatArray
) -> float:
    """A Newton step and the offsets that go with it; what it is to gain."""
    (n, p), m = state.dual.shape, offset.size
    z, slope, hessian = np.zeros((n, p)), np.empty((n, p)), np.empty((n, p))
    grams, matrix = np.empty((parts.directions.shape[0], n, n)), np.zeros((n * p, n * p))
    _functions(parts, state, z, grams)
    barrier_derivatives(
        state.dual, box.targets, box.lower, box.upper, box.curvature, box.barrier, slope, hessian
    )
    root, inner, border = np.empty((p, n)), np.empty(n * p), np.zeros(n * p)
    for j in range(p):
        for i in range(n):
            root[j, i] = np.sqrt(parts.weight[i] / hessian[i, j])
            inner[j * n + i] = root[j, i] * (z[i, j] - slope[i, j])
            if m > 0:
                border[j * n + i] = root[j, i] * parts.outward[j, 0]
    row_matrix(grams, parts.directions, root, matrix)
    columns = np.linalg.cholesky(matrix).T
    _solved(columns, inner)
    if m > 0:
        missing = np.dot(border, inner)
        for i in range(n):
            for j in range(p):
                missing += parts.weight[i] * parts.outward[j, 0] * state.dual[i, j]
        reduced = border.copy()
        _solved(columns, reduced)
        offset[0] = -missing / np.dot(border, reduced)
        for i in range(n * p):
            inner[i] += offset[0] * reduced[i]
    decrease = 0.0
    for i in range(n):
        for j in range(p):
            change[i, j] = root[j, i] * inner[j * n + i] / parts.weight[i]
            decrease += parts.weight[i] * (z[i, j] - slope[i, j]) * change[i, j]
    return decrease


@_inside
def _moved(base: FloatArray, change: FloatArray, size: float, out: FloatArray) -> None:
    """Write base + size * change, which are flat."""
    for k in range(out.size):
        out[k] = base[k] + size * change[k]


@_inside
def _copied(source: FloatArray, out: FloatArray) -> None:
    """Write one flat array to another."""
    for k in range(out.size):
        out[k] = source[k]


@_inside
def _reached(parts: Parts, point: State, barrier: float, losses: float) -> float:
    """Minus the dual of a point, whose matrices are decomposed, with what losses add to it."""
    spectral = sizes_of(point.values, parts.strengths, barrier, point.sizes, point.roots)
    return losses + spectral + 0.5 * np.dot(point.linear, point.linear)


@njit(**_HOW)
def advance(
    parts: Parts,
    states: tuple[State, State, State],
    box: Barrier,
    barrier: float,
    rule: Rule,
    offset: FloatArray,
) -> tuple[int, bool, float]:
    """Steps made, whether the last one went down, and what the whole of it was to gain.

    Of the states, the first is the start and, in the end, the last point that was reached; the
    second one is room for points that are tried, the third for their change.
    """
    best, trial, change = states
    flat, moving = best.dual.ravel(), change.dual.ravel()
    losses, decrease = _weighed(parts, best.dual, box), 0.0
    value = _reached(parts, best, barrier, losses)
    for step in range(1, rule.most + 1):
        decrease = _direction(parts, best, box, change.dual, offset)
        share = min(1.0, 0.995 * steps_to_border(best.dual, change.dual, box.lower, box.upper))
        rounding = rule.rounding * max(abs(value), abs(losses), rule.unit)
        found = False
        if share * decrease > -rounding:
            _pushed(parts, change.dual, change.gram, change.linear)
            size = share
            for _ in range(rule.halvings):
                _moved(flat, moving, size, trial.dual.ravel())
                known = _weighed(parts, trial.dual, box)
                if known < np.inf:
                    _moved(best.gram, change.gram, size, trial.gram)
                    _moved(best.linear, change.linear, size, trial.linear)
                    _decomposed(parts, trial.gram, trial.values, trial.vectors)
                    reached = _reached(parts, trial, barrier, known)
                    if reached <= value - rule.armijo * size * decrease + rounding:
                        found = True
                        break
                size *= 0.5
        if not found:
            return step, False, decrease
        value, losses = reached, known
        _copied(trial.dual.ravel(), flat)
        _copied(trial.gram, best.gram)
        _copied(trial.linear, best.linear)
        _copied(trial.values, best.values)
        _copied(trial.vectors, best.vectors)
        _copied(trial.sizes, best.sizes)
        _copied(trial.roots, best.roots)
        if decrease <= rule.worth:
            break
    return step, True, decrease

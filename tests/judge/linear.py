"""The judge of linear models: least squares with a norm of the coefficients, or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.certificates import Judged, compare
from judge.findings import UNIT, not_finite, wide


@dataclass(frozen=True)
class LinearProblem:
    """What a call of ``fit`` names, by its printed formula."""

    model: Any
    X: np.ndarray
    targets: np.ndarray
    """(n, p)."""
    weight: np.ndarray
    form: str
    """"none", "squares", "penalty" or "bound"."""
    strength: float = 0.0
    value: Callable[[np.ndarray], Any] | None = None
    """The norm of coefficients (d, p)."""
    dual: Callable[[np.ndarray], Any] | None = None
    """Its dual norm."""


def lasso_norms() -> tuple[Callable[[np.ndarray], Any], Callable[[np.ndarray], Any]]:
    """ℓ₁, of one output, and ℓ∞."""
    return lambda w: np.abs(w).sum(), lambda z: np.abs(z).max(initial=0.0)


def group_norms(
    labels: np.ndarray, q: float, p: float
) -> tuple[Callable[[np.ndarray], Any], Callable[[np.ndarray], Any]]:
    """L_{q,p} of groups of rows of W, and L_{q*,p*}."""

    def conjugate(order: float) -> float:
        return np.inf if order == 1 else 1.0 if order == np.inf else order / (order - 1.0)

    def length(values: np.ndarray, order: float) -> Any:
        values = np.abs(values)
        largest = values.max(initial=0.0)
        if order == np.inf or largest == 0.0:
            return largest
        return largest * ((values / largest) ** order).sum() ** (1.0 / wide(order))

    def mixed(inner: float, outer: float) -> Callable[[np.ndarray], Any]:
        return lambda w: length(wide([length(w[labels == g], inner) for g in set(labels)]), outer)

    return mixed(q, p), mixed(conjugate(q), conjugate(p))


def judge_linear(
    named: LinearProblem, fresh: np.ndarray | None = None, *, warned: bool = False
) -> Judged:
    """Judge a fitted linear model against the problem that it was given."""
    model, judged, numbers = named.model, Judged(), named.model.certificate_
    judged.findings += not_finite(
        coef_=model.coef_,
        intercept_=model.intercept_,
        certificate_=[numbers.primal, numbers.dual, numbers.unit, numbers.feasibility],
    )
    if judged.findings:
        return judged
    coef = wide(np.atleast_2d(model.coef_)).T  # (d, p)
    offset = wide(np.atleast_1d(model.intercept_))
    for rows, where in ((named.X, "training rows"), (fresh, "new rows")):
        if rows is None:
            continue
        predicted = np.asarray(model.predict(rows)).reshape(len(rows), -1)
        judged.findings += not_finite(predict=predicted)
        sizes = np.abs(wide(rows)) @ np.abs(coef) + np.abs(offset)
        off = np.abs(predicted - wide(rows) @ coef - offset)
        if np.any(off > (len(coef) + 4) * UNIT * sizes):
            judged.add("predict is not the formula", f"off by {float(off.max()):.2e} at {where}")
    _objectives(judged, named, coef, offset)
    most = 0.0
    if judged.shares is not None:
        share, targets = judged.shares
        centre = (share * targets).sum(axis=0) if model.fit_intercept else 0
        most = float((share * (targets - centre) ** 2).sum() / 2)
    compare(judged, numbers, getattr(model, "tol", 1e-6), model.status_.converged, warned, most)
    return judged


def _objectives(
    judged: Judged, named: LinearProblem, coef: np.ndarray, offset: np.ndarray
) -> None:
    """Primal value of coefficients and intercept, dual value of the best multiple of residuals."""
    kept = named.weight > 0
    share = wide(named.weight[kept])[:, None]
    share = share / share.sum()
    X, y = wide(named.X)[kept], wide(named.targets)[kept]
    residual = y - X @ coef - offset
    sizes = np.abs(X) @ np.abs(coef) + np.abs(y) + np.abs(offset)
    move = (len(coef) + 16) * UNIT * sizes
    loss = (share * residual**2).sum() / 2
    slack = (share * (np.abs(residual) * move + move**2 / 2)).sum()
    if named.model.fit_intercept:
        x_mean, y_mean = (share * X).sum(axis=0), (share * y).sum(axis=0)
    else:
        x_mean, y_mean = 0 * X[0], 0 * y[0]
    moved_rows = 16 * UNIT * np.abs(X)
    X, y = X - x_mean, y - y_mean
    theta = y - X @ coef
    judged.shares = share, y + y_mean
    penalty = gap_slack = lower = wide(0)
    if named.form == "squares":
        penalty = named.strength / 2 * (coef**2).sum()
        best = _best_ridge(X, y, share, named.strength, coef)
        rest = y - X @ best
        pulled = X.T @ (share * rest)
        lower = (share * (rest * y - rest**2 / 2)).sum()
        lower = lower - (pulled**2).sum() / (2 * wide(named.strength))
        blurred = moved_rows.T @ (share * np.abs(theta)) + np.abs(X).T @ (share * move)
        gap_slack = (np.abs(pulled) * blurred).sum() / named.strength
    elif named.form == "none":
        lower, gap_slack = _least_squares(named, X, y, theta, share)
    else:
        penalty, lower, gap_slack = _with_norm(
            judged, named, coef, X, y, theta, share, moved_rows, move
        )
    primal = loss + penalty
    judged.primal, judged.gap = float(primal), float(primal - lower)
    judged.slack = float(2 * slack + gap_slack + 64 * UNIT * np.abs(primal))


def _best_ridge(
    X: np.ndarray, y: np.ndarray, share: np.ndarray, alpha: float, coef: np.ndarray
) -> np.ndarray:
    """The minimizer to more digits than those of coefficients, by steps in their residuals.

    A residual is divided by alpha where it is a dual point, and so is what it lacks.
    """
    matrix = (X.T @ (share * X)).astype(float) + alpha * np.eye(X.shape[1])
    for _ in range(4):
        pull = X.T @ (share * (y - X @ coef)) - wide(alpha) * coef
        size = np.abs(pull).max()
        if size == 0:
            break
        coef = coef + size * wide(np.linalg.lstsq(matrix, (pull / size).astype(float))[0])
    return coef


def _with_norm(
    judged: Judged,
    named: LinearProblem,
    coef: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    theta: np.ndarray,
    share: np.ndarray,
    moved_rows: np.ndarray,
    move: np.ndarray,
) -> tuple[Any, Any, Any]:
    assert named.value is not None
    assert named.dual is not None
    strength = wide(named.strength)
    penalty = wide(0)
    norm = named.value(coef)
    if named.form == "penalty":
        penalty = strength * norm
    elif norm > strength * (1 + 64 * UNIT * len(coef)):
        judged.add("bound", f"the norm is {float(norm):.15e}, the bound {named.strength:.15e}")
    steep = named.dual(X.T @ (share * theta))
    blurred = named.dual(moved_rows.T @ (share * np.abs(theta)) + np.abs(X).T @ (share * move))
    square, along = (share * theta**2).sum(), (share * theta * y).sum()
    if square == 0:
        return penalty, wide(0), wide(0)
    if named.form == "bound":
        multiple = np.maximum(along - strength * steep, 0) / square
        lower = multiple * along - multiple**2 * square / 2 - strength * multiple * steep
        return penalty, lower, strength * multiple * blurred
    most = strength / steep if steep > 0 else wide(np.inf)
    multiple = np.clip(along / square, -most, most)
    lower = multiple * along - multiple**2 * square / 2
    share_lost = blurred / np.maximum(steep, strength)
    return penalty, lower, share_lost * np.abs(multiple * along - multiple**2 * square)


def _least_squares(
    named: LinearProblem, X: np.ndarray, y: np.ndarray, theta: np.ndarray, share: np.ndarray
) -> tuple[Any, Any]:
    """The residuals without their part in the range of the rows, of the documented rank."""
    root = np.sqrt(share)
    rest = root * theta
    for column in _basis(root * X, named.model.rank_):
        rest = rest - np.multiply.outer(column, column @ rest)
    lower = (rest * root * y - rest**2 / 2).sum()
    size = 64 * UNIT * len(rest)
    return lower, size * ((root * y) ** 2).sum()


def _basis(columns: np.ndarray, rank: int) -> list[np.ndarray]:
    """So many orthonormal vectors in the range, the longest column first, twice orthogonal."""
    left, found = columns.copy(), []
    for _ in range(rank):
        lengths = np.sqrt((left**2).sum(axis=0))
        if not lengths.any():
            break
        column = left[:, np.argmax(lengths)]
        for _ in range(2):
            for other in found:
                column = column - other * (other @ column)
            column = column / np.sqrt((column**2).sum())
        found.append(column)
        left = left - np.multiply.outer(column, column @ left)
    return found

"""The judge of kernel estimators: what they predict, what it costs, and how far that is off."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from judge.findings import UNIT, Finding, not_finite, wide
from judge.functions import (
    Function,
    combination,
    diagonal,
    feature_terms,
    given_term,
    operator_diagonal,
    operator_terms,
    scalar_term,
)

ANOTHER = "dual_coef_ and predict are two points within the gap"
"""Both are then within √(2 gap / alpha) of the best function in norm."""
_NOTHING = 1e-12  # a change of this share has a squared norm that no sum of this length holds
_OUTSIDE = 4e-12  # share by which a dual point may be outside of its domain: sums of rounding
_UNSEEN = 1e-10  # of the unit: rounding of a function whose coefficients are not public
_COUPLING = 1e-12  # of the largest: eigenvalues that far down are the rounding of an eigensolver


@dataclass(frozen=True)
class Named:
    """The problem that a call of ``fit`` names, by its printed formula."""

    model: Any
    X: np.ndarray
    targets: np.ndarray
    """(n, p)."""
    weight: np.ndarray
    loss: Any
    """Of the judge."""
    coupling: np.ndarray
    """B; the identity with an operator-valued kernel."""
    approximate: bool = False
    """Whether the kernel is that of the features, which the documentation says."""

    @property
    def alpha(self) -> float:
        """As given, or as learned."""
        return float(getattr(self.model, "alpha_", self.model.alpha))

    def terms(self, rows: np.ndarray) -> list[Any]:
        """k(rows, X[support_]) times B."""
        model, support = self.model, self.model.support_
        kernel = type(model.kernel_).__name__
        if len(support) == 0:
            return []
        if self.approximate and kernel == "Precomputed":
            kept = self.weight > 0
            centres = self.X[np.ix_(support, kept)]
            return feature_terms(model.feature_map_, rows[:, kept], centres, self.coupling)
        if self.approximate:
            return feature_terms(model.feature_map_, rows, self.X[support], self.coupling)
        if kernel == "Precomputed":
            sizes = np.full((len(rows), len(support)), np.sqrt(np.diag(self.X).max()))
            sizes = sizes * np.sqrt(np.maximum(np.diag(self.X)[support], 0.0))
            return [given_term(rows[:, support], sizes, self.coupling)]
        if hasattr(model.kernel_, "n_outputs"):
            return operator_terms(model.kernel_, rows, self.X[support])
        return [scalar_term(model.kernel_, rows, self.X[support], self.coupling)]

    def at_centres(self, centres: np.ndarray) -> Named:
        """The same kernel with these rows as centres."""
        seen = vars(self.model)
        model = SimpleNamespace(**{**seen, "support_": centres})
        return replace(self, model=model)

    def diagonal(self, rows: np.ndarray) -> np.ndarray:
        """The squared norms of the evaluations of rows and outputs, (n, p)."""
        kernel = self.model.kernel_
        if type(kernel).__name__ == "Precomputed":  # that of new rows is not known
            squares = np.full(len(rows), np.diag(self.X).max())
        elif self.approximate:
            squares = (wide(self.model.feature_map_.transform(rows)) ** 2).sum(axis=-1)
            if squares.ndim == 2:
                return squares
        elif hasattr(kernel, "n_outputs"):
            return operator_diagonal(kernel, rows)
        else:
            squares = diagonal(kernel, rows)
        return np.multiply.outer(squares, np.diag(self.coupling))


@dataclass
class Judged:
    """What the judge found, with the numbers that it is about."""

    findings: list[Finding] = field(default_factory=list)
    primal: float = np.nan
    gap: float = np.nan
    slack: float = np.nan
    """What rounding may do to the gap."""
    moved: float = 0.0
    """What it took to make the dual point feasible, relative to its largest entry."""
    push: float = 0.0
    """What that did to the quadratic terms of the gap."""
    shares: Any = None
    """Weights (n, 1) that sum to one, and targets, of rows of positive weight."""
    unseen: float = 0.0
    """What rounding of ``predict`` may do to the gap, where a fit has warned of rounding."""
    apart: float = 0.0
    """The largest ratio of |predict - formula| to what rounding may do."""

    def add(self, kind: str, text: str) -> None:
        """One more finding."""
        self.findings.append(Finding(kind, text))

    @property
    def kinds(self) -> set[str]:
        """The kinds of the findings."""
        return {finding.kind for finding in self.findings}


def judge(named: Named, fresh: np.ndarray | None = None, *, warned: bool = False) -> Judged:
    """Judge a fitted estimator with ``dual_coef_`` against the problem that it was given."""
    model, judged = named.model, Judged()
    numbers = model.certificate_
    judged.findings += not_finite(
        dual_coef_=model.dual_coef_,
        offset_=model.offset_,
        certified_offset_=model.certified_offset_,
        certificate_=[numbers.primal, numbers.dual, numbers.unit, numbers.feasibility],
    )
    predicted = np.asarray(model.predict(named.X)).reshape(len(named.X), -1)
    judged.findings += not_finite(predict=predicted)
    if judged.findings:
        return judged
    if np.abs(named.coupling - model.coupling_).max() > _COUPLING * np.abs(named.coupling).max():
        judged.add("coupling", "coupling_ is not the matrix of the formula")
    if model.alpha is not None and named.alpha != model.alpha:
        judged.add("alpha", f"alpha_ is {named.alpha!r}, given was {model.alpha!r}")
    moved = model.offset_ - model.certified_offset_
    if np.any(moved != 0.0) and not _may_move(model):
        judged.add("offset", f"offset_ is {moved} off the offset that is certified")
    function = combination(named.terms(named.X), model.dual_coef_, len(named.X))
    certified = predicted - moved
    _objectives(judged, named, function, certified)
    if judged.findings:
        return judged
    if warned:
        judged.unseen = _of_weights(named, certified)
    _formula(judged, named, named.X, predicted, "training rows", function)
    if fresh is not None:
        values = np.asarray(model.predict(fresh)).reshape(len(fresh), -1)
        judged.findings += not_finite(predict_of_new_rows=values)
        new = combination(named.terms(fresh), model.dual_coef_, len(fresh))
        _formula(judged, named, fresh, values, "new rows", new)
    _verdict(judged, named, warned)
    return judged


def _may_move(model: Any) -> bool:
    """Whether the offsets are those of held-out or training rows, which were asked for."""
    which = getattr(model, "refit_offsets", None)
    learning = which == "auto" and bool(model.learn) and model.fit_intercept
    return which in ("held_out", "train") or bool(learning)


def _formula(
    judged: Judged,
    named: Named,
    rows: np.ndarray,
    predicted: np.ndarray,
    where: str,
    function: Function,
) -> None:
    """``predict`` is k(x, X[support_]) @ dual_coef_ @ coupling_ + offset_."""
    model = named.model
    size = np.abs(function.value) + np.abs(wide(model.offset_))
    allowed = function.error + 4 * UNIT * size
    off = np.abs(predicted - function.value - wide(model.offset_))
    worst = float(np.max(off / np.maximum(allowed, np.finfo(float).tiny), initial=0.0))
    judged.apart = max(judged.apart, worst)
    if worst > 1.0:
        gap = np.maximum(wide(model.certificate_.gap), 0) + judged.slack
        within = 2 * np.sqrt(2 * gap / wide(named.alpha) * named.diagonal(rows))
        kind = ANOTHER if np.all(off <= within + allowed) else "predict is not the formula"
        judged.add(
            kind,
            f"predict is off by {float(off.max()):.2e} at {where}, {worst:.1e} times what "
            f"rounding does, of values up to {float(size.max()):.1e}",
        )


def _objectives(judged: Judged, named: Named, function: Function, predicted: np.ndarray) -> None:
    """Primal and dual values.

    ``predicted`` is with the certified offsets. With h the function that is predicted, whose norm
    nobody sees, and g that of the coefficients a, ‖h‖² >= 2⟨h, g⟩ - ‖g‖², where
    ⟨h, g⟩ = Σ a h(x), which is sharp where the two are the same. The objective with that bound in
    the place of the norm is above the dual value by Σ s (ℓ(r) + ℓ*(β) - ⟨β, r⟩), residuals r being
    those of ``predicted``: no term is negative, and no digits are lost.
    """
    model, loss = named.model, named.loss
    alpha, kept = wide(named.alpha), named.weight > 0
    share = wide(named.weight[kept])
    share = share / share.sum()
    targets, offset = wide(named.targets)[kept], wide(model.certified_offset_)
    values, formula = wide(predicted)[kept], function.value[kept]
    if not np.all(kept[model.support_]):
        judged.add("support", "a row of weight zero has a dual coefficient")
        return
    coefficients = wide(np.zeros(formula.shape))
    coefficients[np.searchsorted(np.flatnonzero(kept), model.support_)] = wide(model.dual_coef_)
    sizes = np.abs(targets) + np.abs(formula) + np.abs(offset) + np.abs(wide(model.offset_))
    move = function.error[kept] + 16 * UNIT * sizes
    residual, losses = targets - values, loss.value(targets - values)
    squared_norm = (coefficients * formula).sum()
    between = (coefficients * (values - offset)).sum()
    norm_slack = alpha * (np.abs(coefficients) * move).sum()
    primal = alpha / 2 * (2 * between - squared_norm) + (share * losses).sum()
    slack = 2 * norm_slack + (share * loss.steepness(residual, move)).sum()
    slack += 64 * UNIT * np.abs(primal)
    given = coefficients * alpha / share[:, None]
    beta, judged.moved = _feasible(given, share, loss, model.fit_intercept)
    young = losses + loss.conjugate(beta) - (beta * residual).sum(axis=1)
    change = (beta - given) * share[:, None] / alpha
    if np.abs(change).max(initial=0.0) > _NOTHING * np.abs(coefficients).max(initial=0.0):
        kept_rows = named.at_centres(np.flatnonzero(kept))
        own = combination(kept_rows.terms(named.X[kept]), change, len(change)).value
        judged.push = float(alpha / 2 * (change * own).sum())
        # the two parts of the norm are of the given coefficients, and the push is between them
        judged.push += float(alpha * (change * (formula - (values - offset))).sum())
    judged.primal = float(primal)
    judged.gap = float((share * young).sum()) + judged.push
    slack += (share[:, None] * np.abs(beta) * move).sum()
    if judged.moved <= _OUTSIDE:
        slack += judged.moved * (share[:, None] * np.abs(beta) * np.abs(residual)).sum()
    judged.slack = float(slack)
    if squared_norm < -norm_slack / alpha:
        judged.add("norm", f"dual_coef_ has the squared norm {float(squared_norm):.3e}")


def _of_weights(named: Named, predicted: np.ndarray) -> float:
    """What rounding does to the mean loss of what is predicted from ``weights_``.

    Terms of kernels whose values are huge, that cancel, leave the rounding of their sizes.
    """
    model, kept = named.model, named.weight > 0
    if type(model.kernel_).__name__ == "Precomputed" or not hasattr(model, "weights_"):
        return 0.0
    features = np.abs(model.feature_map_.transform(named.X[kept]))
    if features.ndim != 2:
        return 0.0
    share, residual = wide(named.weight[kept]), wide(named.targets - predicted)[kept]
    move = 4 * UNIT * wide(features @ np.abs(model.weights_))
    return float((share / share.sum() * named.loss.steepness(residual, move)).sum())


def _feasible(
    beta: np.ndarray, share: np.ndarray, loss: Any, intercept: bool
) -> tuple[np.ndarray, float]:
    """The nearest point of the domain, then Σ s β = 0 by shrinking one sign of each output.

    A domain that is a ball or a box around zero keeps what shrinks; of any other, one multiple
    of all rows is taken in the end.
    """
    start, beta = beta, loss.nearest(beta)
    if intercept:
        up = (share[:, None] * np.maximum(beta, 0)).sum(axis=0)
        down = (share[:, None] * np.maximum(-beta, 0)).sum(axis=0)
        both = np.minimum(up, down)
        beta = np.where(
            beta > 0,
            beta * np.where(up > 0, both / np.where(up > 0, up, 1), 1),
            beta * np.where(down > 0, both / np.where(down > 0, down, 1), 1),
        )
        shrunk = loss.nearest(beta)
        size = np.abs(beta).max(axis=1)
        outside = size > 0
        share_kept = np.abs(shrunk).max(axis=1)[outside] / size[outside]
        beta = beta * np.min(share_kept, initial=1.0)
    scale = np.abs(start).max(initial=0.0)
    return beta, float(np.abs(beta - start).max(initial=0.0) / scale) if scale > 0 else 0.0


def _verdict(judged: Judged, named: Named, warned: bool) -> None:
    model, numbers = named.model, named.model.certificate_
    if ANOTHER in judged.kinds:
        judged.slack += max(_UNSEEN * numbers.unit, judged.unseen)
    if getattr(model, "non_crossing", None):  # residuals as far out of order are put in order
        judged.slack += _OUTSIDE * (numbers.unit + abs(numbers.primal))
    primal, gap, slack = judged.primal, judged.gap, judged.slack
    compare(
        judged,
        numbers,
        model.tol,
        model.status_.converged,
        warned,
        mean_loss_of_constant(named),
    )
    dual = primal - gap
    if numbers.dual > dual + slack + 1e-6 * abs(numbers.gap):
        judged.add("dual", f"certificate_.dual {numbers.dual:.12e}, own {dual:.12e} ± {slack:.1e}")


def compare(
    judged: Judged, numbers: Any, tol: float, converged: bool, warned: bool, unit: float
) -> None:
    """Hold the numbers of a certificate against those of the judge."""
    primal, gap, slack = judged.primal, judged.gap, judged.slack
    own = f"own primal {primal:.12e} ± {slack:.1e}"
    if judged.apart <= 1.0:
        if abs(numbers.primal - primal) > slack:
            judged.add(
                "primal",
                f"certificate_.primal {numbers.primal:.12e}, own {primal:.12e} ± {slack:.1e}",
            )
        if numbers.dual > primal + slack:
            judged.add("dual above the optimum", f"certificate_.dual {numbers.dual:.12e}, {own}")
    elif numbers.primal < primal - slack:
        judged.add(
            "primal below what it can be",
            f"certificate_.primal {numbers.primal:.12e}, own {primal:.12e} ± {slack:.1e}",
        )
    if gap < -slack:
        judged.add("judge", f"the judge's own gap is negative: {gap:.3e}, rounding {slack:.1e}")
    if numbers.gap < -slack:
        judged.add("negative gap", f"certificate_.gap is {numbers.gap:.3e}, rounding {slack:.1e}")
    if numbers.unit > unit * (1 + 1e-9) + slack:
        judged.add("unit", f"certificate_.unit {numbers.unit:.9e}, a constant has {unit:.9e}")
    said = f"true {gap:.3e}, unit {numbers.unit:.3e}, rounding {slack:.1e}, dual point moved by "
    said += f"{judged.moved:.1e}"
    if gap > max(numbers.gap, 0.0) * (1 + 1e-6) + slack:
        judged.add("gap above the claim", f"claimed {numbers.gap:.3e}, {said}")
    if converged and not warned and gap > tol * numbers.unit + slack:
        judged.add("silent gap", f"{said}, tol {tol:g}")


def mean_loss_of_constant(named: Named) -> float:
    """The least mean loss among some constants, an upper bound on that of the best.

    The fixed offset without intercept; else, output by output, the best for separable losses by
    bisection of the slope, which for others is some constant.
    """
    kept = named.weight > 0
    share = wide(named.weight[kept]) / wide(named.weight[kept]).sum()
    targets, loss = wide(named.targets)[kept], named.loss

    def mean(constant: np.ndarray) -> float:
        with np.errstate(invalid="ignore"):
            return float((share * loss.value(targets - constant)).sum())

    if not named.model.fit_intercept:
        return mean(wide(named.model.certified_offset_))
    # an insensitive loss of several outputs is slow, and any constant will do
    plain = loss
    if getattr(loss, "epsilon", 0.0) > 0.0 and targets.shape[1] > 1 and hasattr(loss, "low"):
        plain = replace(loss, epsilon=0.0)
    low, high = targets.min(axis=0), targets.max(axis=0)
    for _ in range(70):
        middle = (low + high) / 2
        up = (share[:, None] * plain.slope(targets - middle)).sum(axis=0) > 0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return min(mean(low), mean(high), mean((low + high) / 2))

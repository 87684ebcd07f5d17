"""Convex problems in positive semi-definite matrices, and certificates of their solutions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fenchel._typing import FloatArray
from fenchel._validation import shown
from fenchel.certificate import Certificate
from fenchel.features import PivotedCholesky
from fenchel.kernels import Polynomial
from fenchel.positive._cone import Cone, Spectra
from fenchel.positive._row_sums import quadratic_forms, weighted_gram
from fenchel.positive.losses import PredictionLoss

_SQUARES_TOL = 1e-12
_MOST_LEFT = 1e-8  # of products of features, where the cap ends them: enough for alpha of 1e-4


@dataclass(frozen=True, eq=False)
class PSDPart:
    r"""A term :math:`\varphi(x)^\top A \varphi(x)`, A ⪰ 0, of the predictions.

    Its penalty is :math:`\mathrm{trace\_penalty}\, \mathrm{tr} A + \tfrac{\mathrm{alpha}}{2}
    \|A\|_F^2`.

    Parameters
    ----------
    features : ndarray of shape (n, r)
        Features of the rows.
    alpha : float
        Strength of the squared norm, > 0, or 0 if there is a ``trace_penalty``. With 0 the dual is
        finite only if :math:`G \succeq 0`.
    trace_penalty : float
        Strength of the trace, >= 0. It lowers the rank.
    direction : array of shape (p,)
        The term contributes f(x) times this vector to the predictions; (1,) by default.
    combinations : ndarray of shape (m, n), optional
        Linear combinations of the n values f(x_i), one for each of m losses. A loss can then
        couple rows, for instance by f(x_i) - f(x_j). None uses the values themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import PSDPart
    >>> part = PSDPart(np.ones((10, 3)), alpha=0.1, trace_penalty=0.01)
    >>> part.features.shape
    (10, 3)
    """

    features: FloatArray
    alpha: float
    trace_penalty: float = 0.0
    direction: FloatArray | None = None
    combinations: FloatArray | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.trace_penalty) and self.trace_penalty >= 0.0):
            raise ValueError(
                f"trace_penalty must be a finite number >= 0, got {shown(self.trace_penalty)}"
            )
        free = self.alpha == 0.0 and self.trace_penalty > 0.0
        if not (free or (np.isfinite(self.alpha) and self.alpha > 0.0)):
            raise ValueError(
                f"alpha must be a finite number > 0, got {shown(self.alpha)}, or 0 with "
                "trace_penalty > 0: without a penalty there need be no solution"
            )
        shape = None if self.combinations is None else np.shape(self.combinations)
        if shape is not None and shape[1:] != (len(self.features),):
            raise ValueError(
                f"combinations must have shape (m, {len(self.features)}), a column for each row "
                f"of features, got {shape}"
            )

    @property
    def n_rows(self) -> int:
        """Number of losses, n or m."""
        return len(self.features if self.combinations is None else self.combinations)

    def combined(self, values: FloatArray) -> FloatArray:
        """Map an array (n, ...) of rows to the combinations seen by the losses, (m, ...)."""
        if self.combinations is None:
            return values
        return np.asarray(np.tensordot(self.combinations, values, 1))

    def spread(self, losses: FloatArray) -> FloatArray:
        """Apply the adjoint of ``combined`` to numbers (m,); return an array (n,)."""
        return losses if self.combinations is None else losses @ self.combinations


@dataclass(frozen=True, eq=False)
class LinearPart:
    r"""A linear term :math:`w^\top \varphi(x)` of the predictions, with penalty alpha/2 ‖w‖².

    Parameters
    ----------
    features : ndarray of shape (n, r)
        Features of the rows.
    alpha : float
        Strength of the penalty, > 0.
    direction : array of shape (p,)
        The term contributes its value times this vector to the predictions; (1,) by default.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.positive import LinearPart
    >>> LinearPart(np.ones((10, 3)), alpha=0.1).features.shape
    (10, 3)
    """

    features: FloatArray
    alpha: float
    direction: FloatArray | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.alpha) and self.alpha > 0.0):
            raise ValueError(f"alpha must be a finite number > 0, got {shown(self.alpha)}")

    @property
    def n_rows(self) -> int:
        """Number of losses."""
        return len(self.features)


@dataclass(frozen=True, eq=False)
class Constraint:
    r"""A linear constraint :math:`\sum_k \mathrm{tr}(M_k A_k) = \mathrm{value}`, or <=.

    Parameters
    ----------
    moments : sequence of (r_k, r_k) arrays or None
        One symmetric matrix M_k for each PSD part, None for zero. For the integral of
        :math:`f_{A_k}` it is the result of :func:`fenchel.positive.moment` for its feature map.
    value : float
        The right-hand side.
    equality : bool
        Whether the relation is "=" or "<="; change both signs for ">=".

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Squared
    >>> from fenchel.positive import Constraint, PSDPart, PSDProblem, Residual, solve
    >>> part = PSDPart(np.array([[1.0, 0.0], [1.0, 1.0]]), alpha=1e-3)
    >>> loss = Residual(Squared(), np.array([[1.0], [4.0]]))
    >>> trace = Constraint([np.eye(2)], value=2.0)
    >>> fit = solve(PSDProblem(loss, [part], np.ones(2), constraints=[trace]))
    >>> round(float(np.trace(fit.model.matrices[0])), 6)
    2.0
    """

    moments: Sequence[FloatArray | None]
    value: float
    equality: bool = True


class Model(NamedTuple):
    """Primal variables of a problem."""

    matrices: list[FloatArray]
    """A_k ⪰ 0 of each PSD part, (r_k, r_k)."""
    factors: list[FloatArray]
    """F_k (r_k, rank) with A_k = F_k F_kᵀ."""
    weights: list[FloatArray]
    """w_l of each linear part, (r_l,)."""
    offset: FloatArray
    """b, (m,)."""


@dataclass(frozen=True, eq=False)
class Push:
    """Linear images of a dual point in the parts.

    ``linear`` has the vectors Φᵀ (c β d) of the linear parts. ``gram`` has the matrices with φφᵀ
    in place of φ for the PSD parts, without the trace penalty.
    """

    gram: list[FloatArray]
    linear: list[FloatArray]

    def moved(self, other: Push, size: float) -> Push:
        """Return the sum with ``size`` times another image."""
        pairs = zip(self.gram, other.gram, strict=True)
        lines = zip(self.linear, other.linear, strict=True)
        return Push([a + size * b for a, b in pairs], [a + size * b for a, b in lines])


class Squares:
    """Compressed features, computed once for all parts and problems with the same features."""

    def __init__(self) -> None:
        self._known: list[tuple[FloatArray, Compressed | None]] = []

    def of(self, features: FloatArray) -> Compressed | None:
        """Return those of features (n, r); None if compression does not reduce them."""
        for known, square in self._known:
            if known is features or np.array_equal(known, features):
                return square
        self._known.append((features, _compressed(features)))
        return self._known[-1][1]


@dataclass(frozen=True, eq=False)
class PSDProblem:
    r"""A convex fit over positive semi-definite matrices, independent of the algorithm.

    .. math:: P = \sum_i c_i\, \ell_i(z_i)
              + \sum_k \Big(\lambda_k \operatorname{tr} A_k
              + \tfrac{\alpha_k}{2} \|A_k\|_F^2\Big)
              + \sum_l \tfrac{\alpha_l}{2} \|w_l\|^2, \qquad A_k \succeq 0

    .. math:: z_i = \sum_k d_k\, \varphi_k(x_i)^\top A_k \varphi_k(x_i)
              + \sum_l d_l\, w_l^\top \varphi_l(x_i) + O\, b \in R^p

    subject to linear constraints on the matrices. The dual, over vectors β_i and multipliers ν:

    .. math:: D = -\sum_i c_i\, \ell_i^*(\beta_i)
              - \sum_k \frac{\|[G_k]_-\|_F^2}{2 \alpha_k} - \sum_t \nu_t e_t
              - \sum_l \frac{\|\Phi_l^\top (c \beta d_l)\|^2}{2 \alpha_l}

    .. math:: G_k = \sum_i c_i \langle\beta_i, d_k\rangle \varphi_k(x_i) \varphi_k(x_i)^\top
              + \lambda_k I + \sum_t \nu_t M_{tk}, \qquad A_k = [G_k]_- / \alpha_k, \quad
              [G]_- = U \max(0, -\Lambda) U^\top

    with :math:`\sum_i c_i O^\top \beta_i = 0`, and ν >= 0 for inequalities. The multipliers are
    maximized out exactly, so the matrices of any β satisfy the constraints. A constraint that a
    sum of squares is (at most) zero removes features, and the problem is solved in the others. The
    dual value is then a limit that no ν attains.

    Parameters
    ----------
    loss : PredictionLoss
        Losses of the rows.
    psd : sequence of PSDPart
        Terms with positive semi-definite matrices, at least one.
    sample_weight : ndarray of shape (n,)
        Positive weights; c is ``sample_weight`` over its sum.
    linear : sequence of LinearPart
        Linear terms, not restricted in sign.
    offsets : ndarray of shape (p, m)
        The matrix O of unpenalized constants; None for no constants.
    constraints : sequence of Constraint
        Linear constraints on the matrices.
    shared : Squares, optional
        Compressed features shared by problems with the same features.

    Raises
    ------
    ValueError
        If no matrices meet the constraints, or shapes do not agree.

    References
    ----------
    Marteau-Ferey, Bach, Rudi (2020), Theorem 2 and (13).

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.losses import Squared
    >>> from fenchel.positive import PSDPart, PSDProblem, Residual, solve
    >>> x = np.linspace(-1.0, 1.0, 20)[:, None]
    >>> part = PSDPart(np.hstack([np.ones_like(x), x]), alpha=1e-4)
    >>> problem = PSDProblem(Residual(Squared(), x**2), [part], np.ones(20))
    >>> matrix = solve(problem).model.matrices[0]
    >>> round(float(matrix[1, 1]), 3)  # near f(x) = x²
    0.999
    """

    loss: PredictionLoss
    psd: Sequence[PSDPart]
    sample_weight: FloatArray
    linear: Sequence[LinearPart] = ()
    offsets: FloatArray | None = None
    constraints: Sequence[Constraint] = ()
    shared: Squares = field(default_factory=Squares)

    def __post_init__(self) -> None:
        n, p = len(self.sample_weight), self.loss.n_outputs
        if not self.psd:
            raise ValueError("psd must have a part or more, got none")
        if not (least := np.min(self.sample_weight)) >= 0.0:
            raise ValueError(f"sample_weight must be positive, got {least:g}")
        if self.offsets is not None and (np.ndim(self.offsets), len(self.offsets)) != (2, p):
            raise ValueError(
                f"offsets must have shape ({p}, number of offsets), got {np.shape(self.offsets)}"
            )
        parts: list[PSDPart | LinearPart] = [*self.psd, *self.linear]
        for part in parts:
            if part.n_rows != n:
                raise ValueError(f"features must have {n} rows, got {part.n_rows}")
            if part.direction is None and p != 1:
                raise ValueError(f"direction must be given where there are {p} outputs, got None")
            if part.direction is not None and np.shape(part.direction) != (p,):
                raise ValueError(
                    f"direction must have shape ({p},), got {np.shape(part.direction)}"
                )

    @property
    def n_outputs(self) -> int:
        """Length p of a prediction vector."""
        return self.loss.n_outputs

    @cached_property
    def weight(self) -> FloatArray:
        """The weights c of the losses, (n,), which sum to one."""
        return self.sample_weight / self.sample_weight.sum()

    @cached_property
    def outward(self) -> FloatArray:
        """The matrix O, (p, m)."""
        return np.zeros((self.n_outputs, 0)) if self.offsets is None else self.offsets

    @cached_property
    def cone(self) -> Cone:
        """The matrices with their penalties and constraints."""
        sizes = [part.features.shape[1] for part in self.psd]
        return Cone(
            sizes,
            [float(part.alpha) for part in self.psd],
            [float(part.trace_penalty) for part in self.psd],
            [list(condition.moments) for condition in self.constraints],
            np.array([condition.value for condition in self.constraints], dtype=np.float64),
            np.array([condition.equality for condition in self.constraints], dtype=bool),
        )

    @cached_property
    def squares(self) -> list[Compressed | None]:
        """Compressed features of the matrices φφᵀ for each PSD part, None where not few."""
        found = []
        for part in self.psd:
            square = self.shared.of(part.features)
            found.append(None if square is None else square.combined(part))
        return found

    def with_loss(self, loss: PredictionLoss) -> PSDProblem:
        """Return the problem with another loss, sharing what does not depend on the loss."""
        for name in ("weight", "outward", "cone", "squares", "directions"):
            getattr(self, name)
        other = copy(self)
        vars(other)["loss"] = loss
        return other

    @property
    def of_traces_alone(self) -> bool:
        """Whether some matrix has a trace penalty only, with alpha=0."""
        return any(part.alpha == 0.0 for part in self.psd)

    @cached_property
    def directions(self) -> FloatArray:
        """The vectors d of all parts, PSD parts first, (parts, p)."""
        both: list[PSDPart | LinearPart] = [*self.psd, *self.linear]
        return np.array([self.direction(part) for part in both])

    @cached_property
    def linear_grams(self) -> list[FloatArray]:
        """Gram matrix over alpha for each linear part, (n, n)."""
        return [line.features @ line.features.T / line.alpha for line in self.linear]

    def direction(self, part: PSDPart | LinearPart) -> FloatArray:
        """The vector d of a part, (p,)."""
        if part.direction is None:
            return np.ones(1)
        return np.asarray(part.direction, dtype=np.float64)

    def push(self, dual: FloatArray) -> Push:
        """Return the linear images in the parts of a dual point (n, p), or of a change of it."""
        along = self.directions @ (self.weight[:, None] * dual).T
        own, rest = along[: len(self.psd)], along[len(self.psd) :]
        pairs = zip(self.psd, own, strict=True)
        gram = [weighted_gram(part.features, part.spread(w)) for part, w in pairs]
        lines = zip(self.linear, rest, strict=True)
        return Push(gram, [line.features.T @ w for line, w in lines])

    def unpenalized(self, push: Push, spectra: Spectra) -> float:
        """Return minus the dual value without the conjugates."""
        return spectra.value + self._of_lines(push)

    def _of_lines(self, push: Push) -> float:
        """What linear parts take from the dual."""
        pairs = zip(self.linear, push.linear, strict=True)
        return sum(float(pulled @ pulled) / (2.0 * part.alpha) for part, pulled in pairs)

    def conjugates(self, dual: FloatArray) -> float:
        """Return Σ c ℓ*(β), inf outside of the domain."""
        return float(self.weight @ self.loss.conjugate(dual))

    def model(self, push: Push, spectra: Spectra, offset: FloatArray | None = None) -> Model:
        """Return the model of a dual point."""
        weights = [
            pulled / -part.alpha for part, pulled in zip(self.linear, push.linear, strict=True)
        ]
        factors = spectra.factors()
        offset = np.zeros(self.outward.shape[1]) if offset is None else offset
        return Model([f @ f.T for f in factors], factors, weights, offset)

    def predictions(self, model: Model) -> FloatArray:
        """Return the predictions z of the rows, (n, p)."""
        return self._summed(model.factors, model.weights) + self.outward @ model.offset

    def values(self, push: Push, spectra: Spectra) -> FloatArray:
        """Return predictions, without offsets, of the model of a dual point, (n, p)."""
        lines = zip(self.linear, push.linear, strict=True)
        return self._summed(spectra.factors(), [w / -line.alpha for line, w in lines])

    def _summed(self, factors: list[FloatArray], weights: list[FloatArray]) -> FloatArray:
        """The functions of all parts along their directions, (n, p)."""
        forms = zip(self.psd, factors, strict=True)
        lines = zip(self.linear, weights, strict=True)
        values = [part.combined(quadratic_forms(part.features, factor)) for part, factor in forms]
        values += [line.features @ w for line, w in lines]
        return np.asarray(np.array(values).T @ self.directions)

    def penalty(self, model: Model) -> float:
        """Return the penalties of a model."""
        total = 0.0
        for part, factor in zip(self.psd, model.factors, strict=True):
            small = factor.T @ factor
            total += part.trace_penalty * float(np.vdot(factor, factor))
            total += 0.5 * part.alpha * float(np.vdot(small, small))
        for line, weights in zip(self.linear, model.weights, strict=True):
            total += 0.5 * line.alpha * float(weights @ weights)
        return total

    def primal(self, model: Model, predictions: FloatArray | None = None) -> float:
        """Return the primal objective of a model."""
        z = self.predictions(model) if predictions is None else predictions
        return float(self.weight @ self.loss.value(z)) + self.penalty(model)

    def dual(self, dual: FloatArray, multipliers: FloatArray) -> float:
        """Return the dual objective at given multipliers; the dual point must balance offsets."""
        push = self.push(dual)
        total = self.conjugates(dual) + float(multipliers @ self.cone.right)
        matrices = self.cone.shifted(push.gram, multipliers)
        for part, matrix in zip(self.psd, matrices, strict=True):
            negative = np.minimum(np.linalg.eigvalsh(matrix), 0.0)
            if part.alpha > 0.0:
                total += float(negative @ negative) / (2.0 * part.alpha)
            elif negative.any():
                return -np.inf
        return -total - self._of_lines(push)

    def lower(self, push: Push, spectra: Spectra, conjugates: float) -> float:
        """Return the dual objective at the multipliers of a barrier problem."""
        plain = 0.0
        for g, alpha in zip(spectra.values, self.cone.alphas, strict=True):
            negative = np.minimum(g, 0.0)
            plain += float(negative @ negative) / (2.0 * alpha)
        smoothed = spectra.value - float(spectra.multipliers @ self.cone.right)
        return -conjugates - self.unpenalized(push, spectra) + smoothed - plain

    def certificate(self, primal: float, lower: float, model: Model) -> Certificate:
        """Return the certificate of a model and a feasible dual point.

        The gap is relative to ``loss.unit``. ``feasibility`` is the largest relative violation of
        a constraint by the matrices, which is due to rounding only.
        """
        return Certificate(primal, lower, self.loss.unit, self.cone.violation(model.matrices))


class Compressed(NamedTuple):
    r"""A few features ψ with :math:`\psi_i^\top \psi_j = (\varphi_i^\top \varphi_j)^2`.

    For smooth functions the products of r features span far less than r (r + 1)/2 dimensions.
    """

    features: FloatArray
    """ψ, (n, R)."""
    pivots: FloatArray
    """The features φ of R rows, (R, r)."""
    factor: FloatArray
    """The features ψ of the same rows, lower triangular."""
    left: FloatArray
    """Part of the squared norms that ψ does not represent, (n,)."""

    def combined(self, part: PSDPart) -> Compressed:
        """Return the compressed features of the combinations seen by losses."""
        if part.combinations is None:
            return self
        left = np.square(np.abs(part.combinations) @ np.sqrt(self.left))
        return self._replace(features=part.combined(self.features), left=left)


def _compressed(features: FloatArray) -> Compressed | None:
    n, r = features.shape
    cap = min(n // 2, r * (r + 1) // 2, 5 * r)
    if cap < 1:
        return None
    chosen = PivotedCholesky(Polynomial(2, 1.0, 0.0), tol=_SQUARES_TOL, rank=cap)
    squares = chosen.to_arrays().fit_transform(features)
    if chosen.rank_ == cap and cap < r * (r + 1) // 2 and chosen.kernel_error_ > _MOST_LEFT:
        return None
    left = np.maximum(chosen.residual(features, squares), 0.0)
    return Compressed(squares, chosen.landmarks_, chosen.factor_, left)

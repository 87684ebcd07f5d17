"""Certificates, status and progress of fits, the same for all problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from fenchel._typing import FloatArray


@dataclass(frozen=True)
class Certificate:
    """Certificate of a fit: a rigorous bound on its distance from the optimum.

    The objectives are those of the formula in the docstring of the estimator.

    Parameters
    ----------
    primal : float
        Objective of the fitted model, with the offset of the fit. If offsets are adjusted for
        new rows after the fit, that offset is ``certified_offset_``.
    dual : float
        Objective of a feasible dual point, a lower bound on the objective of any model.
    unit : float
        Denominator of ``relative_gap``: the mean loss of the best constant model, which is its
        objective. For log-likelihoods, which have no natural zero, it is 1 (a nat per row).
    feasibility : float, default=0.0
        Violation of constraints by the dual point or the model, relative to their size. It is at
        the level of rounding errors.

    Attributes
    ----------
    gap : float
        ``primal - dual``. The objective of the fitted model exceeds the optimum by at most this.
    relative_gap : float
        ``gap / unit``. If the best constant has zero loss (``unit`` is 0), it is 0 for a model
        with zero loss and infinite for any other. NaN if an objective or the unit is NaN, or if
        the unit is infinite.

    Examples
    --------
    >>> from fenchel.certificate import Certificate
    >>> certificate = Certificate(primal=1.5, dual=1.0, unit=2.0)
    >>> certificate.gap, certificate.relative_gap
    (0.5, 0.25)
    """

    primal: float
    dual: float
    unit: float
    feasibility: float = 0.0

    @property
    def gap(self) -> float:
        """``primal - dual``."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``gap / unit``."""
        if math.isnan(self.gap) or not math.isfinite(self.unit):
            return math.nan
        if self.unit > 0.0:
            return self.gap / self.unit
        return 0.0 if self.gap <= 0.0 else float("inf")

    @classmethod
    def of_sum(cls, parts: Iterable[Certificate]) -> Certificate:
        """Return the certificate of the sum of independent problems."""
        known = list(parts)
        return cls(
            sum(c.primal for c in known),
            sum(c.dual for c in known),
            sum(c.unit for c in known),
            max(c.feasibility for c in known),
        )


class FeasiblePoint(NamedTuple):
    """A feasible dual point, the weights of its function, and the lower bound that it gives.

    Examples
    --------
    >>> from fenchel.testing import small_problems
    >>> problem = small_problems()[0]
    >>> point = problem.feasible_point(0.0 * problem.targets)
    >>> point.lower
    0.0
    """

    dual: FloatArray
    """β, (n, p)."""
    weights: FloatArray
    """Weights of h_β."""
    lower: float
    """D(β)."""


@dataclass(frozen=True)
class Certified:
    """Feasible dual point and model, with their certificate.

    Attributes
    ----------
    dual : ndarray of shape (n, p)
        The dual point.
    weights : ndarray
        Weights of the function of the model.
    offset : ndarray of shape (p,)
        Offset of the model.
    certificate : Certificate
        Certificate of the model and the dual point.
    source : ndarray of shape (n, p) or None
        The dual point whose function is the model: ``dual`` or another one; None if unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel.design import Plain
    >>> from fenchel.losses import Absolute
    >>> from fenchel.problem import Problem
    >>> design = Plain(np.array([[-1.0], [0.0], [1.0]]), np.eye(1))
    >>> targets = np.array([[0.0], [1.0], [4.0]])
    >>> problem = Problem(Absolute(), design, targets, np.ones(3), alpha=0.1)
    >>> point = problem.certify(np.array([[-1.0], [0.0], [1.0]]))
    >>> bool(point.certificate.gap >= 0.0)
    True
    """

    dual: FloatArray
    weights: FloatArray
    offset: FloatArray
    certificate: Certificate
    source: FloatArray | None = None


@dataclass(frozen=True)
class Status:
    """Status of a solver: whether it converged, and a message that says what to do if not.

    Examples
    --------
    >>> from fenchel import KernelRidge
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> status = KernelRidge(learn=False).fit(X, y).status_
    >>> status.converged
    True
    """

    converged: bool
    message: str


class Progress(NamedTuple):
    """One line of the history of a solver, or of the learning of parameters.

    For learning, see :attr:`is_learning`, the primal value is the criterion.

    Examples
    --------
    >>> from fenchel import QuantileRegressor
    >>> from fenchel.datasets import load_engel
    >>> X, y = load_engel(return_X_y=True)
    >>> lines = []
    >>> model = QuantileRegressor(0.9, learn=False, callback=lines.append).fit(X, y)
    >>> lines[-1].relative_gap <= model.tol, lines[-1].is_learning
    (True, False)
    """

    iteration: int
    seconds: float
    primal: float
    dual: float
    relative_gap: float

    @property
    def is_learning(self) -> bool:
        """Whether this is an evaluation of the held-out loss, which has no dual value."""
        return math.isnan(self.dual)


Callback = Callable[[Progress], object]
"""Called for each certificate; a truthy return value stops the solver, and a string says why.

One with a method ``seconds_left`` is asked by solvers that take a limit on their time. One with a
method ``reads`` is told of tables in files how many rows were read, and of how many. One with a
true attribute ``asked_again`` that ends learning is asked again whether the fit is to end too.
"""

__all__ = ["Callback", "Certificate", "Certified", "FeasiblePoint", "Progress", "Status"]

__dir__ = __all__.copy
